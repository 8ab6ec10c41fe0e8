/*
 * Snapshots of processes made by hand, in every state and with everything that a snapshot can have: read again, each field
 * is compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "recording/recording.h"
#include "recording/recording_internal.h"
#include "tests/support/expected_file.h"
#include "tests/support/sample_trace.h"
#include "tests/tap.h"
#include "tests/unit/recording/recording_show.h"

static void expect_shown(struct sink *sink, const char *sentence, const char *path)
{
	EXPECT_THAT(sentence, sink->status == OK && expected_file(sink_string(sink), path));
	sink_release(sink);
}

/* Seven operations on two communicators, and what a test adds to them. */
static struct recording_process *load_sample(struct recording *recording,
					     const struct sample *sample)
{
	recording_init(recording);
	if (recording_add_memory(recording, "sample", sample->bytes, sample->size, 0) != OK ||
	    recording_finish(recording) != OK || recording->count != 1)
		abort();
	return recording->processes[0];
}

/* The snapshot, and a snapshot of what was read from it: that one is the same. */
static void show_snapshot(struct sink *sink, const char *name,
			  const struct recording_process *process, size_t operations)
{
	struct recording again, third;
	unsigned char *bytes, *second;
	size_t length, second_length;
	bool is_same;

	recording_init(&again);
	recording_init(&third);
	if (recording_snapshot(process, operations, 0, &bytes, &length) != OK ||
	    recording_add_memory(&again, "snapshot", bytes, length, 0) != OK ||
	    recording_finish(&again) != OK)
		abort();
	sink_format(sink, "=== %s\n", name);
	show_recording(sink, &again);
	if (recording_snapshot(again.processes[0], operations, 0, &second, &second_length) != OK ||
	    recording_add_memory(&third, "second", second, second_length, 0) != OK ||
	    recording_finish(&third) != OK)
		abort();
	is_same = third.processes[0]->flight_count == again.processes[0]->flight_count &&
		  third.processes[0]->recorded == again.processes[0]->recorded &&
		  third.processes[0]->counts_ns == again.processes[0]->counts_ns &&
		  third.processes[0]->snapshot_wall_ns == again.processes[0]->snapshot_wall_ns &&
		  third.processes[0]->info_bytes == again.processes[0]->info_bytes;
	sink_format(sink, "  a snapshot of it is %s\n", is_same ? "the same" : "another one");
	free(bytes);
	free(second);
	recording_release(&again);
	recording_release(&third);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void moments_are_kept(void)
{
	static const struct {
		const char *name;
		enum recording_life life;
		uint64_t heartbeat_ns, counts_ns, alive_ns;
		bool has_fresh, has_no_anchors;
	} list[] = {
		{ "alive", RECORDING_ALIVE, .counts_ns = 2500000 },
		{ "alive, when is not known", RECORDING_ALIVE, .heartbeat_ns = 5 },
		{ "ended", RECORDING_ENDED, .counts_ns = 2500000 },
		{ "killed", RECORDING_KILLED, .counts_ns = 2500000 },
		{ "killed, seen later", RECORDING_KILLED, .alive_ns = 2600000, .has_fresh = true },
		{ "unknown", RECORDING_UNKNOWN, .counts_ns = 2500000 },
		{ "unknown, with a heartbeat", RECORDING_UNKNOWN, .heartbeat_ns = 5,
		  .alive_ns = 2600000 },
		{ "no anchors", RECORDING_ALIVE, .counts_ns = 2500000, .has_no_anchors = true },
		{ "nothing", RECORDING_ALIVE, .has_no_anchors = true },
	};
	struct sample sample = sample_trace();
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(list); i++) {
		struct recording recording;
		struct recording_process *process = load_sample(&recording, &sample);

		process->life = list[i].life;
		process->heartbeat_ns = list[i].heartbeat_ns;
		process->counts_ns = list[i].counts_ns;
		process->alive_ns = list[i].alive_ns;
		if (list[i].has_fresh)
			process->fresh_anchor =
				(struct clock_anchor){ 9000000, SAMPLE_CREATED_NS + 8000000 };
		if (list[i].has_no_anchors)
			process->anchor_count = 0;
		show_snapshot(&sink, list[i].name, process, 2);
		recording_release(&recording);
	}
	free(sample.bytes);
	expect_shown(&sink, "a snapshot has the moment of its process",
		     "tests/unit/recording/expected/snapshot_moments.txt");
}

/* ---- operations ------------------------------------------------------------------------------ */

static void fill_proxy(struct recording_proxy *proxy, uint32_t comm, uint64_t number,
		       uint16_t flags)
{
	*proxy = (struct recording_proxy){ .proxy = { .comm = comm,
						      .number = number,
						      .channel = 3,
						      .peer = 6,
						      .flags = (uint8_t)flags,
						      .steps = 8,
						      .done = 2,
						      .start_ns = 2100000,
						      .active_ns = 2110000,
						      .since_ns = 2150000,
						      .bytes = 4096 },
					   .step_count = 2 };
	for (uint32_t i = 0; i < 2; i++)
		proxy->steps[i] = (struct region_step){ .step_plus_1 = 3 + i,
							.state = (uint8_t)(i == 0 ? 9 : 8),
							.bytes = 512,
							.time_ns = { 2130000 + i, 2140000 + i } };
}

static void add_flights(struct recording_process *process)
{
	process->flights = calloc(4, sizeof(*process->flights));
	process->flight_count = 4;
	for (uint64_t i = 0; i < 4; i++) {
		struct recording_flight *flight = &process->flights[i];

		flight->op = sample_op(8 + i);
		flight->op.sequence = i == 3 ? 7 : 0;
		flight->op.comm = 1;
		flight->op.number = 10 + i;
		flight->op.state = i == 2 ? OP_DONE : OP_RUNNING;
		flight->op.time_source = i == 2 ? OP_TIME_KERNEL_GPU : OP_TIME_NONE;
		flight->open_children = (uint32_t)(5 + i);
		flight->is_retiring = i == 2;
	}
	process->flights[0].started[0] = UINT64_C(1) << 63 | 3;
	process->flights[0].stopped[0] = 1;
	process->flights[0].started[3] = UINT64_C(1) << 63;
	process->flights[0].stopped[1] = 1;
	process->flights[1].proxies = calloc(2, sizeof(*process->flights[1].proxies));
	process->flights[1].proxy_count = 2;
	fill_proxy(&process->flights[1].proxies[0], 1, 11, PROXY_IS_SEND);
	fill_proxy(&process->flights[1].proxies[1], 1, 11, 0);
	process->flights[1].proxies[1].proxy.done = 0;
	process->flights[1].proxies[1].step_count = 0;
	process->proxies = calloc(1, sizeof(*process->proxies));
	process->proxy_count = 1;
	fill_proxy(&process->proxies[0], 0, 0, PROXY_IS_SEND | PROXY_IS_FOREIGN);
	process->proxies[0].proxy.origin_pid = 77;
}

static void operations_are_kept(void)
{
	struct sample sample = sample_trace();
	struct recording recording;
	struct recording_process *process = load_sample(&recording, &sample);
	struct sink sink;
	char name[64];

	sink_init_memory(&sink);
	process->life = RECORDING_ALIVE;
	for (size_t count = 0; count <= 8; count++) {
		snprintf(name, sizeof(name), "the last %zu", count);
		show_snapshot(&sink, name, process, count);
	}
	process->recorded = 5;
	show_snapshot(&sink, "what is later than its counts is left out", process, 3);
	process->recorded = 7;
	add_flights(process);
	process->filling = 2;
	process->is_moving = true;
	process->process_state = 't';
	process->owner = 4242424; /* nobody's, so that it is not that of whoever runs this */
	process->lost[LOST_QUOTA] = 5;
	process->odd[ODD_FOREIGN_HANDLE] = 6;
	snprintf(process->names[OP_NAMES_INTERNED_MAX - 1], sizeof(process->names[0]), "last");
	process->comms[1].has_counts = false;
	show_snapshot(&sink, "in flight", process, 2);
	process->life = RECORDING_ENDED;
	show_snapshot(&sink, "in flight when it ended", process, 0);
	recording_release(&recording);
	free(sample.bytes);
	expect_shown(&sink, "a snapshot has the last operations and those in flight",
		     "tests/unit/recording/expected/snapshot_operations.txt");
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void texts_are_kept(void)
{
	static const struct {
		const char *info, *wanted;
	} cases[] = {
		{ "host=h\n", "host=h\n" },
		{ "host=h", "host=h\n" },
		{ "\n\nhost=h\n\nrank=3\n", "host=h\nrank=3\n" },
		{ "snapshot_=5\nhost=h\nsnapshot_life=alive\n", "host=h\n" },
		{ "snapshot=5\nhost=h\nsnapshot_", "snapshot=5\nhost=h\n" },
		{ "snapsho", "snapsho\n" },
		{ "env.API_TOKEN=abcdef\nhost=h\n", "host=h\n" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct recording_process *process = recording_process_new();
		struct recording again;
		unsigned char *bytes;
		size_t length, wanted = strlen(cases[i].wanted);

		recording_init(&again);
		if (recording_load_info(process, cases[i].info, strlen(cases[i].info)) != OK ||
		    recording_snapshot(process, 0, 0, &bytes, &length) != OK ||
		    recording_add_memory(&again, "snapshot", bytes, length, 0) != OK ||
		    recording_finish(&again) != OK || again.count != 1)
			abort();
		EXPECT_THAT(cases[i].wanted,
			    again.processes[0]->info_bytes > wanted &&
				    memcmp(again.processes[0]->info +
						   again.processes[0]->info_bytes - wanted,
					   cases[i].wanted, wanted) == 0 &&
				    again.processes[0]->info[again.processes[0]->info_bytes -
							     wanted - 1] == '\n');
		EXPECT(memmem(again.processes[0]->info, again.processes[0]->info_bytes, "abcdef",
			      6) == NULL);
		free(bytes);
		recording_process_free(process);
		recording_release(&again);
	}
}

/* ---- very many communicators ----------------------------------------------------------------- */

/* Every third is finalized. Of more than 4,096 those are left out. */
static void many_communicators(void)
{
	for (uint32_t count = 4095; count <= 4098; count++) {
		struct recording_process *process = recording_process_new();
		struct recording again;
		unsigned char *bytes;
		size_t length, right = 0, finalized = 0;

		for (uint32_t i = 0; i < count; i++) {
			struct recording_comm *comm = recording_load_comm(process, i + 1);

			comm->info.rank = (int32_t)i;
			comm->info.nranks = 1 << 20;
			comm->info.finalize_ns = i % 3 == 0 ? 5 : 0;
			comm->has_counts = true;
			comm->counts.issued = comm->counts.recorded = i;
			finalized += i % 3 == 0;
		}
		recording_load_comms_end(process);
		process->has_counts = true;
		recording_init(&again);
		if (recording_snapshot(process, 0, 0, &bytes, &length) != OK ||
		    recording_add_memory(&again, "snapshot", bytes, length, 0) != OK ||
		    recording_finish(&again) != OK || again.count != 1)
			abort();
		EXPECT_EQUAL(again.processes[0]->comm_count,
			     count > 4096 ? count - finalized : count);
		for (size_t i = 0; i < again.processes[0]->comm_count; i++) {
			const struct recording_comm *comm = &again.processes[0]->comms[i];

			right += comm->has_counts && comm->counts.issued == comm->info.id - 1 &&
				 comm->info.rank == (int32_t)comm->info.id - 1;
		}
		EXPECT_EQUAL(right, again.processes[0]->comm_count);
		free(bytes);
		recording_process_free(process);
		recording_release(&again);
	}
}

int main(void)
{
	moments_are_kept();
	operations_are_kept();
	texts_are_kept();
	many_communicators();
	return tap_done();
}
