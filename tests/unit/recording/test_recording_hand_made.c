/* Processes made by hand: their accounts, how two sources of one are joined, owners, order, and the last sign of life. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
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

/* ---- accounts -------------------------------------------------------------------------------- */

struct hand_made {
	const char *name;
	struct {
		uint32_t id; /* 0: no more */
		bool is_uncounted;
		uint64_t issued, recorded;
	} comms[3];
	struct {
		uint32_t comm; /* 0: no more */
		uint64_t sequence;
		bool is_retiring;
	} flights[4];
	size_t filling;
	bool is_final, is_moving;
};

/* Without files: what the counters say. */
static void show_counted(struct sink *sink, const struct hand_made *made)
{
	struct recording_process *process = recording_process_new();

	process->has_counts = true;
	process->is_final = made->is_final;
	process->is_moving = made->is_moving;
	process->filling = made->filling;
	for (size_t i = 0; i < ARRAY_LENGTH(made->comms) && made->comms[i].id != 0; i++) {
		struct recording_comm *comm = recording_load_comm(process, made->comms[i].id);

		comm->has_counts = !made->comms[i].is_uncounted;
		comm->counts.issued = made->comms[i].issued;
		comm->counts.recorded = made->comms[i].recorded;
		comm->counts.timed = 1 + i;
		comm->counts.untrusted = 10 + i;
		comm->counts.captured = 100 + i;
	}
	recording_load_comms_end(process);
	process->flights = calloc(ARRAY_LENGTH(made->flights), sizeof(*process->flights));
	for (size_t i = 0; i < ARRAY_LENGTH(made->flights) && made->flights[i].comm != 0; i++)
		process->flights[process->flight_count++] =
			(struct recording_flight){ .op = { .comm = made->flights[i].comm,
							   .sequence = made->flights[i].sequence,
							   .number = i + 1,
							   .state = OP_RUNNING },
						   .is_retiring = made->flights[i].is_retiring };
	sink_format(sink, "=== %s\n", made->name);
	show_account(sink, process);
	recording_process_free(process);
}

static void counters_add_up(void)
{
	static const struct hand_made list[] = {
		{ "nothing", .is_final = true },
		{ "all is recorded", { { 1, false, 5, 5 }, { 7, false, 9, 9 } }, .is_final = true },
		{ "not final", { { 1, false, 5, 5 } }, .is_moving = true },
		{ "two in flight",
		  { { 1, false, 5, 3 } },
		  { { 1, 0, false }, { 1, 0, false } },
		  .is_final = true },
		{ "one of them is in a trace",
		  { { 1, false, 5, 3 } },
		  { { 1, 4, false }, { 1, 0, false } },
		  .is_final = true },
		{ "one is missing", { { 1, false, 5, 3 } }, { { 1, 0, false } }, .is_final = true },
		{ "one too many", { { 1, false, 5, 5 } }, { { 1, 0, false } }, .is_final = true },
		{ "one that retires and is needed",
		  { { 1, false, 5, 4 } },
		  { { 1, 0, true } },
		  .is_final = true },
		{ "one that retires and is not",
		  { { 1, false, 5, 5 } },
		  { { 1, 0, true } },
		  .is_final = true },
		{ "two retire, one is needed",
		  { { 1, false, 5, 4 } },
		  { { 1, 0, true }, { 1, 0, true } },
		  .is_final = true },
		{ "three are missing, one retires",
		  { { 1, false, 8, 4 } },
		  { { 1, 0, true } },
		  .is_final = true },
		{ "two are being filled, one is missing",
		  { { 1, false, 5, 4 } },
		  .filling = 2,
		  .is_final = true },
		{ "one is being filled, two are missing",
		  { { 1, false, 6, 4 } },
		  .filling = 1,
		  .is_final = true },
		{ "missing here, too many there",
		  { { 1, false, 6, 4 }, { 2, false, 4, 6 } },
		  .is_final = true },
		{ "a communicator that is not counted",
		  { { 1, true, 6, 4 }, { 2, false, 6, 6 } },
		  { { 1, 0, false } },
		  .is_final = true },
		{ "a communicator that nobody described",
		  { { 2, false, 6, 6 } },
		  { { 9, 0, false }, { 1, 0, false }, { 9, 0, false } },
		  .is_final = true },
		{ "absurd counts",
		  { { 1, false, UINT64_MAX, 0 },
		    { 2, false, 0, UINT64_MAX },
		    { 3, false, UINT64_MAX, 1 } },
		  .is_final = true },
		{ "absurd counts that do not cancel out",
		  { { 1, false, UINT64_MAX, 0 },
		    { 2, false, UINT64_MAX, 0 },
		    { 3, false, UINT64_MAX, 5 } },
		  .is_final = false },
		{ "absurd counts below nothing",
		  { { 1, false, 0, UINT64_MAX },
		    { 2, false, 3, UINT64_MAX },
		    { 3, false, 5, UINT64_MAX } },
		  .is_final = false },
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(list); i++)
		show_counted(&sink, &list[i]);
	expect_shown(&sink, "counters add up as expected",
		     "tests/unit/recording/expected/hand_made_counts.txt");
}

/* With a file of seven operations, of which communicator 2 has the first, 1 the second, and so on. */
static void records_add_up(void)
{
	static const struct {
		const char *name;
		uint64_t recorded, lost_ring, lost_write, lost_details, lost_off;
		const char *mode;
		uint64_t issued, counted; /* of communicator 1; 0: as they are */
		bool is_not_final, is_snapshot;
	} list[] = {
		{ "as it is", .recorded = 7 },
		{ "ten were recorded", .recorded = 10 },
		{ "ten were recorded, one was lost", .recorded = 10, .lost_ring = 1 },
		{ "ten were recorded, three were lost", .recorded = 10, .lost_ring = 1,
		  .lost_write = 2 },
		{ "ten were recorded, five were lost", .recorded = 10, .lost_ring = 4,
		  .lost_write = 1 },
		{ "details and what was off do not count", .recorded = 10, .lost_details = 2,
		  .lost_off = 1 },
		{ "five were recorded when it was read", .recorded = 5 },
		{ "another mode", .recorded = 10, .mode = "flight" },
		{ "mode full", .recorded = 10, .mode = "full" },
		{ "a snapshot", .recorded = 10, .is_snapshot = true },
		{ "older counts", .recorded = 7, .issued = 2, .counted = 1, .is_not_final = true },
		{ "older counts, more issued", .recorded = 7, .issued = 9, .counted = 1,
		  .is_not_final = true },
		{ "final counts that are too low", .recorded = 7, .issued = 2, .counted = 1 },
		{ "newer counts", .recorded = 7, .issued = 8, .counted = 8, .is_not_final = true },
	};
	struct sample sample = sample_trace();
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(list); i++) {
		struct recording recording;
		struct recording_process *process;

		recording_init(&recording);
		if (recording_add_memory(&recording, "sample", sample.bytes, sample.size, 0) !=
			    OK ||
		    recording_finish(&recording) != OK || recording.count != 1)
			abort();
		process = recording.processes[0];
		process->recorded = list[i].recorded;
		process->lost[LOST_RING_BUSY] = list[i].lost_ring;
		process->lost[LOST_WRITE_ERROR] = list[i].lost_write;
		process->lost[LOST_DETAIL_OVERRUN] = list[i].lost_details;
		process->lost[LOST_OFF] = list[i].lost_off;
		process->is_final = !list[i].is_not_final;
		process->is_snapshot = list[i].is_snapshot;
		if (list[i].mode != NULL)
			snprintf(process->mode, sizeof(process->mode), "%s", list[i].mode);
		if (list[i].counted != 0) {
			process->comms[0].counts.issued = list[i].issued;
			process->comms[0].counts.recorded = list[i].counted;
		}
		sink_format(&sink, "=== %s\n", list[i].name);
		show_account(&sink, process);
		recording_release(&recording);
	}
	free(sample.bytes);
	expect_shown(&sink, "records add up as expected",
		     "tests/unit/recording/expected/hand_made_records.txt");
}

/* ---- joining --------------------------------------------------------------------------------- */

/* One of two sources: everything in it depends on its number. */
static struct recording_process *source(uint64_t number)
{
	struct recording_process *process = recording_process_new();

	process->pid = 5;
	process->start_ticks = 6;
	process->recorded = 10 * number;
	process->counts_ns = 1000 * number;
	process->has_counts = true;
	process->is_final = number == 1;
	process->filling = number;
	process->refused = number;
	process->refused_why = number == 1 ? "one" : "two";
	process->lost[0] = number;
	process->lost[LOST_REASONS - 1] = 10 - number;
	process->odd[0] = number;
	process->odd[ODD_REASONS - 1] = 10 - number;
	snprintf(process->names[0], sizeof(process->names[0]), "name of %d", (int)number);
	if (number == 2)
		snprintf(process->names[OP_NAMES_INTERNED_MAX - 1], sizeof(process->names[0]),
			 "last");
	process->links = calloc(number, sizeof(*process->links));
	process->link_count = number;
	process->flights = calloc(number, sizeof(*process->flights));
	process->flight_count = number;
	process->proxies = calloc(number, sizeof(*process->proxies));
	process->proxy_count = number;
	for (uint64_t i = 0; i < 3; i++) {
		struct recording_comm *comm = recording_load_comm(process, (uint32_t)(i + number));

		comm->has_counts = i != 1;
		comm->counts.issued = 100 * number + i;
		comm->info.nranks = (int32_t)number;
		if (recording_load_anchor(
			    process,
			    (struct clock_anchor){ 100 * (i + 1) + 50 * (number - 1),
						   SAMPLE_CREATED_NS + 10 * number + i }) != OK)
			abort();
	}
	recording_load_comms_end(process);
	process->files = calloc(2, sizeof(*process->files));
	process->file_count = 2;
	for (uint64_t i = 0; i < 2; i++)
		process->files[i] =
			(struct recording_file){ .path = strdup(i == 0 ? "own" : "shared"),
						 .device = 7,
						 .inode = i == 0 ? number : 99,
						 .start = 5,
						 .first_sequence = i == 0 ? 10 * number : 1 };
	process->snapshot_wall_ns = number;
	process->snapshot_operations = number;
	process->snapshot_state = (char)('a' + number);
	process->is_snapshot = true;
	return process;
}

static void show_joined(struct sink *sink, const char *name, struct recording_process *to,
			struct recording_process *from)
{
	struct recording recording;

	recording_init(&recording);
	recording_load_trouble(&recording, RECORDING_DAMAGE, "of to", to, "first");
	recording_load_trouble(&recording, RECORDING_DAMAGE, "of from", from, "second");
	recording_load_trouble(&recording, RECORDING_DAMAGE, "of nobody", NULL, "third");
	if (recording_join(&recording, to, from) != OK)
		abort();
	sink_format(sink,
		    "=== %s\nrecorded %d, counts at %d%s%s, filling %d, refused %d (%s), lost %d "
		    "%d, odd %d %d, "
		    "names '%s' '%s'\n",
		    name, (int)to->recorded, (int)to->counts_ns, to->has_counts ? "" : " (none)",
		    to->is_final ? ", final" : "", (int)to->filling, (int)to->refused,
		    to->refused_why, (int)to->lost[0], (int)to->lost[LOST_REASONS - 1],
		    (int)to->odd[0], (int)to->odd[ODD_REASONS - 1], to->names[0],
		    to->names[OP_NAMES_INTERNED_MAX - 1]);
	sink_format(sink,
		    "owner %d, info '%.*s', %d links, %d flights, %d proxies, snapshot %d of %d "
		    "'%c'%s\n",
		    (int)to->owner, (int)to->info_bytes, to->info ? to->info : "",
		    (int)to->link_count, (int)to->flight_count, (int)to->proxy_count,
		    (int)to->snapshot_wall_ns, (int)to->snapshot_operations, to->snapshot_state,
		    to->is_snapshot ? "" : " (not only)");
	for (size_t i = 0; i < to->comm_count; i++)
		sink_format(sink, "comm %u issued %d%s, of %d\n", to->comms[i].info.id,
			    (int)to->comms[i].counts.issued,
			    to->comms[i].has_counts ? "" : " (not counted)",
			    to->comms[i].info.nranks);
	for (size_t i = 0; i < to->anchor_count; i++)
		sink_format(sink, "anchor %d %d\n", (int)to->anchors[i].clock_ns,
			    (int)(to->anchors[i].wall_ns - SAMPLE_CREATED_NS));
	for (size_t i = 0; i < to->file_count; i++)
		sink_format(sink, "file %s %d\n", to->files[i].path, (int)to->files[i].inode);
	for (size_t i = 0; i < recording.trouble_count; i++)
		sink_format(sink, "trouble %s: %s\n", recording.troubles[i].path,
			    recording.troubles[i].process == to ? "joined" : "nobody's");
	recording_process_free(to);
	recording_release(&recording);
}

static void sources_are_joined(void)
{
	struct recording_process *to, *from;
	struct sink sink;

	sink_init_memory(&sink);
	show_joined(&sink, "the second is newer", source(1), source(2));
	show_joined(&sink, "the first is newer", source(2), source(1));
	to = source(1);
	from = source(2);
	to->recorded = from->recorded;
	show_joined(&sink, "as many records: the later counts", to, from);
	to = source(2);
	from = source(1);
	from->recorded = to->recorded;
	from->counts_ns = to->counts_ns;
	show_joined(&sink, "as many records at the same time", to, from);
	to = source(2);
	from = source(1);
	to->has_counts = false;
	show_joined(&sink, "only the second has counts", to, from);
	to = source(1);
	from = source(2);
	from->has_counts = false;
	from->snapshot_wall_ns = 0;
	from->is_snapshot = false;
	show_joined(&sink, "only the first has counts and is a snapshot", to, from);
	to = source(1);
	from = source(2);
	to->snapshot_wall_ns = 0;
	to->is_snapshot = false;
	to->recorded = 30;
	show_joined(&sink, "the second is an older snapshot", to, from);
	to = source(1);
	from = source(2);
	free(to->links);
	to->links = NULL;
	to->link_count = 0;
	to->recorded = 30;
	from->owner = 77;
	if (recording_load_info(from, "host=h\nrank=3\n", 14) != OK)
		abort();
	show_joined(&sink, "what the first lacks", to, from);
	to = source(1);
	from = source(2);
	free(from->links);
	from->links = NULL;
	from->link_count = 0;
	to->owner = 0;
	from->owner = 77;
	if (recording_load_info(to, "host=g\n", 7) != OK ||
	    recording_load_info(from, "host=h\n", 7) != OK)
		abort();
	show_joined(&sink, "what the first has", to, from);
	expect_shown(&sink, "two sources become one",
		     "tests/unit/recording/expected/hand_made_joined.txt");
}

/* ---- owners and order ------------------------------------------------------------------------ */

static void keep(struct recording *recording, const char *job, int64_t rank, int64_t owner,
		 uint64_t started, const char *host, int64_t pid)
{
	struct recording_process *process = recording_process_new();

	snprintf(process->job, sizeof(process->job), "%s", job);
	snprintf(process->host, sizeof(process->host), "%s", host);
	process->rank = rank;
	process->owner = owner;
	process->pid = pid;
	process->started_wall_ns = started;
	if (recording_load_keep(recording, process) != OK)
		abort();
}

static void show_order(struct sink *sink, const char *name, struct recording *recording)
{
	if (recording_finish(recording) != OK)
		abort();
	sink_format(sink, "=== %s: %zu apart\n", name, recording->owners_apart);
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		sink_format(sink, "%s: rank %d, owner %d, started %d, %s, pid %d, run %u of %u%s\n",
			    process->job, (int)process->rank, (int)process->owner,
			    (int)process->started_wall_ns, process->host, (int)process->pid,
			    process->run, process->runs,
			    process->is_earlier_run ? " (earlier)" : "");
	}
	recording_release(recording);
}

static void owners_are_kept_apart(void)
{
	struct recording recording;
	struct sink sink;

	sink_init_memory(&sink);
	recording_init(&recording);
	keep(&recording, "b", 1, 5, 7, "h", 3);
	keep(&recording, "b", 0, 5, 7, "h", 4);
	keep(&recording, "a", 2, 5, 7, "i", 4);
	keep(&recording, "a", 2, 5, 7, "h", 9);
	keep(&recording, "a", 2, 5, 7, "h", 8);
	keep(&recording, "a", 2, 5, 6, "h", 10);
	keep(&recording, "a", -1, 5, 9, "h", 12);
	keep(&recording, "a", -1, 5, 8, "h", 13);
	show_order(&sink, "one owner", &recording);
	recording_init(&recording);
	keep(&recording, "a", 0, 5, 7, "h", 3);
	keep(&recording, "a", 1, 6, 6, "h", 4);
	keep(&recording, "a", 2, -1, 1, "h", 5);
	keep(&recording, "a", 3, 0, 8, "h", 6);
	keep(&recording, "b", 3, 9, 8, "h", 6);
	show_order(&sink, "the first that started keeps the name", &recording);
	recording_init(&recording);
	keep(&recording, "a", 0, 6, 7, "h", 3);
	keep(&recording, "a", 1, 5, 7, "h", 4);
	keep(&recording, "a (uid 6)", 0, 7, 5, "h", 5);
	keep(&recording, "a (uid 6) (uid 6)", 0, 8, 5, "h", 6);
	show_order(&sink, "names that others have chosen", &recording);
	recording_init(&recording);
	recording.is_any_owner = true;
	keep(&recording, "a", 0, 6, 7, "h", 3);
	keep(&recording, "a", 1, 5, 7, "h", 4);
	show_order(&sink, "any owner", &recording);
	recording_init(&recording);
	keep(&recording, "a", 0, -1, 7, "h", 3);
	keep(&recording, "a", 1, -1, 7, "h", 4);
	show_order(&sink, "owners that are not known", &recording);
	expect_shown(&sink, "processes are sorted, and of one owner in each job",
		     "tests/unit/recording/expected/hand_made_order.txt");
}

static void a_new_process_is_kept_apart(void)
{
	static const struct {
		const char *job, *others[3];
		int64_t owner, other;
		const char *wanted;
	} cases[] = {
		{ "a", { "a" }, 5, 6, "a (uid 5)" },
		{ "a", { "a" }, 5, 5, "a" },
		{ "a", { "a" }, -1, 5, "a" },
		{ "a", { "a" }, 5, -1, "a" },
		{ "a", { "a" }, 0, 1, "a (uid 0)" },
		{ "a", { "b" }, 5, 6, "a" },
		{ "a", { "b", "a" }, 5, 6, "a (uid 5)" },
		{ "a (uid 6)", { "b" }, 5, 6, "a (uid 6) (uid 5)" },
		{ "a (uid 5)", { "b" }, 5, 6, "a" },
		{ "a (uid 5)", { "a" }, 5, 6, "a (uid 5)" },
		{ "a (uid 5)", { "b" }, -1, 6, "a (uid 5)" },
		{ "a (uid 6)x", { "b" }, 5, 6, "a (uid 6)x (uid 5)" },
		{ "a(uid 6)", { "b" }, 5, 6, "a(uid 6) (uid 5)" },
		{ "(uid 6)", { "b" }, 5, 6, "(uid 6) (uid 5)" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct recording_process process = { .owner = cases[i].owner }, others[3];
		struct recording_process *list[3] = { &others[0], &others[1], &others[2] };
		size_t count = 0;

		snprintf(process.job, sizeof(process.job), "%s", cases[i].job);
		for (; count < 3 && cases[i].others[count] != NULL; count++) {
			others[count] = (struct recording_process){ .owner = cases[i].other };
			snprintf(others[count].job, sizeof(others[count].job), "%s",
				 cases[i].others[count]);
		}
		recording_keep_apart(&process, list, count);
		EXPECT_THAT(cases[i].wanted, strcmp(process.job, cases[i].wanted) == 0);
	}
}

/* ---- single questions ------------------------------------------------------------------------ */

static void is_its_end_known(void)
{
	struct region region = { .fd = -1 };
	const struct {
		struct recording_process process;
		bool is_known;
	} cases[] = {
		{ { .life = RECORDING_ENDED }, true },
		{ { .life = RECORDING_KILLED }, false },
		{ { .life = RECORDING_KILLED, .counts_ns = 1 }, true },
		{ { .life = RECORDING_KILLED, .region = &region, .counts_ns = 1 }, false },
		{ { .life = RECORDING_KILLED, .region = &region, .heartbeat_ns = 1 }, false },
		{ { .life = RECORDING_KILLED, .region = &region, .alive_ns = 1 }, false },
		{ { .life = RECORDING_KILLED, .region = &region, .heartbeat_ns = 1, .alive_ns = 1 },
		  true },
		{ { .life = RECORDING_KILLED, .is_snapshot = true, .counts_ns = 1 }, false },
		{ { .life = RECORDING_KILLED, .is_snapshot = true, .heartbeat_ns = 1 }, true },
		{ { .life = RECORDING_KILLED, .is_snapshot = true, .mode = "trace" }, true },
		{ { .life = RECORDING_KILLED, .is_snapshot = true, .mode = "full" }, true },
		{ { .life = RECORDING_KILLED, .is_snapshot = true, .mode = "flight" }, false },
		{ { .life = RECORDING_UNKNOWN, .is_snapshot = true, .mode = "full" }, false },
		{ { .life = RECORDING_UNKNOWN, .is_snapshot = true, .counts_ns = 1 }, true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		if (!EXPECT(recording_end_is_known(&cases[i].process) == cases[i].is_known))
			printf("# case %zu\n", i);
}

static void the_last_sign_of_life(void)
{
	struct clock_anchor anchors[2] = { { 5, 1 }, { 9, 1 } };
	struct recording_comm comms[2] = { { .info.id = 1 }, { .info.id = 2 } };
	struct recording_proxy proxies[2] = { { .proxy.since_ns = 3 }, { .proxy.since_ns = 4 } };
	struct recording_flight flights[2] = { { .proxies = proxies, .proxy_count = 2 },
					       { .op.number = 2 } };
	struct region region = { .fd = -1 };
	struct recording_process process = { .anchors = anchors,
					     .anchor_count = 2,
					     .comms = comms,
					     .comm_count = 2,
					     .flights = flights,
					     .flight_count = 2 };
	uint64_t *const signs[] = { &process.ended_ns,
				    &process.alive_ns,
				    &process.counts_ns,
				    &anchors[0].clock_ns,
				    &anchors[1].clock_ns,
				    &comms[0].counts.last_issue_ns,
				    &comms[1].counts.last_issue_ns,
				    &comms[1].counts.last_done_ns,
				    &comms[1].info.finalize_ns,
				    &flights[0].op.active_ns,
				    &flights[1].op.active_ns,
				    &flights[1].op.done_ns,
				    &proxies[0].proxy.since_ns,
				    &proxies[1].proxy.since_ns };

	EXPECT_EQUAL(recording_last_ns(&process), 9);
	for (size_t i = 0; i < ARRAY_LENGTH(signs); i++) {
		*signs[i] = 10 + i;
		EXPECT_EQUAL(recording_last_ns(&process), 10 + i);
	}
	process.counts_ns = 99;
	EXPECT_EQUAL(recording_last_ns(&process), 99);
	process.region = &region;
	EXPECT_THAT("counts of a region are ours", recording_last_ns(&process) < 99);
}

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void names_of_containers(void)
{
	static const struct {
		const char *cgroups, *container, *pod;
	} cases[] = {
		{ "", "", "" },
		{ "0::/user.slice/session-1.scope\n", "", "" },
		{ "0::/docker/" HEX64 "\n", "0123456789ab", "" },
		{ "0::/docker/" HEX64 "0\n", "", "" },
		{ "0::/docker-" HEX64 ".scope/" HEX64 "\n", "0123456789ab", "" },
		{ "0::/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice/"
		  "cri-" HEX64 ".scope\n",
		  "0123456789ab", "01234567-89ab-cdef-0123-456789abcdef" },
		{ "0::/kubepods/burstable/pod01234567-89ab-cdef-0123-456789abcdef/x\n", "",
		  "01234567-89ab-cdef-0123-456789abcdef" },
		{ "0::/pod01234567-89ab-cdef-0123-456789abcde/x\n", "", "" },
		{ "0::/pod01234567-89ab-cdef-0123-456789abcdef0/x\n", "", "" },
		{ "0::/pod01234567.89ab-cdef-0123-456789abcdef/x\n", "", "" },
		{ "0::/pod01234567-89ab-cdef_0123.456789abcdef/x\n", "", "" },
		{ "0::/pod0123456-89ab-cdef-0123-456789abcdef/x\n", "", "" },
		{ "0::/podpod01234567-89ab-cdef-0123-456789abcdef/x\n", "",
		  "01234567-89ab-cdef-0123-456789abcdef" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char container[16], pod[40];

		recording_container(cases[i].cgroups, container, pod);
		if (!EXPECT(strcmp(container, cases[i].container) == 0 &&
			    strcmp(pod, cases[i].pod) == 0))
			printf("# %s: %s %s\n", cases[i].cgroups, container, pod);
	}
}

/* Ids in any order, and so many that the index grows several times. */
static void communicators_are_found_by_id(void)
{
	enum { COUNT = 700 };
	struct recording_process *process = recording_process_new();
	size_t right = 0;

	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < COUNT; i++) {
			struct recording_comm *comm =
				recording_load_comm(process, i * 271 % COUNT * 64);

			right += comm != NULL && comm->info.id == i * 271 % COUNT * 64 &&
				 comm->info.rank == -1 && comm->info.gpu == -1 &&
				 comm->counts.issued == (round == 0 ? 0 : i + 1);
			comm->counts.issued = i + 1;
		}
	EXPECT_EQUAL(right, 2 * COUNT);
	EXPECT_EQUAL(process->comm_count, COUNT);
	recording_load_comms_end(process);
	right = 0;
	for (uint32_t i = 0; i < COUNT; i++)
		right += process->comms[i].info.id == i * 64 &&
			 recording_comm(process, i * 64) == &process->comms[i];
	EXPECT_EQUAL(right, COUNT);
	EXPECT(recording_comm(process, 1) == NULL && process->comm_index == NULL);
	recording_process_free(process);
}

static void values_of_an_info_text(void)
{
	static const char text[] =
		"host=h\nboot_id=b\njob=j\nmode=m\npid=1\nrank=2\nlocal_rank=3\nworld_size=4\n"
		"pid_namespace=5\nstart_ticks=6\ninterface=7\nstarted_wall_ns=8\nheartbeat_ns=9\n";
	static const char wrong[] = "pid_namespace=-5\nstart_ticks=0\ninterface=1000\nstarted_wall_"
				    "ns=-1\nheartbeat_ns=0\n";
	struct recording_process *process = recording_process_new();
	char value[8] = "";

	EXPECT(recording_load_info(process, text, 0) == OK && process->info == NULL);
	EXPECT(recording_load_info(process, text, sizeof(text) - 1) == OK);
	EXPECT(strcmp(process->host, "h") == 0 && strcmp(process->boot_id, "b") == 0 &&
	       strcmp(process->job, "j") == 0 && strcmp(process->mode, "m") == 0 &&
	       process->pid == 1 && process->rank == 2 && process->local_rank == 3 &&
	       process->world_size == 4 && process->pid_namespace == 5 &&
	       process->start_ticks == 6 && process->interface == 7 &&
	       process->started_wall_ns == 8 && process->heartbeat_ns == 9);
	EXPECT(recording_load_info(process, wrong, sizeof(wrong) - 1) == OK);
	EXPECT_THAT("the first text is kept",
		    process->pid_namespace == 5 && process->info_bytes == sizeof(text) - 1 &&
			    recording_info(process, "rank", value, sizeof(value)) &&
			    strcmp(value, "2") == 0);
	recording_process_free(process);
	process = recording_process_new();
	EXPECT(recording_load_info(process, wrong, sizeof(wrong) - 1) == OK);
	EXPECT(process->pid_namespace == 0 && process->start_ticks == 0 &&
	       process->interface == 0 && process->started_wall_ns == 0 &&
	       process->heartbeat_ns == 0 && process->pid == -1);
	recording_process_free(process);
	process = recording_process_new();
	EXPECT(recording_load_info(process, "interface=999\n", 14) == OK &&
	       process->interface == 999);
	recording_process_free(process);
}

static void names_of_numbers(void)
{
	static struct recording_process process;

	snprintf(process.names[0], sizeof(process.names[0]), "first");
	snprintf(process.names[OP_NAMES_INTERNED_MAX - 1], sizeof(process.names[0]), "last");
	EXPECT(strcmp(recording_name(&process, OP_NAMES_FUNCTION, OP_NAME_INTERNED), "first") ==
		       0 &&
	       strcmp(recording_name(&process, OP_NAMES_FUNCTION, OP_NAME_INTERNED + 1), "?") ==
		       0 &&
	       strcmp(recording_name(&process, OP_NAMES_FUNCTION,
				     OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX - 1),
		      "last") == 0 &&
	       strcmp(recording_name(&process, OP_NAMES_FUNCTION,
				     OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX),
		      "?") == 0 &&
	       strcmp(recording_name(&process, OP_NAMES_FUNCTION, OP_NAME_INTERNED - 1), "?") ==
		       0 &&
	       strcmp(recording_name(&process, OP_NAMES_FUNCTION, OP_ALL_REDUCE), "AllReduce") ==
		       0);
}

/* An anchor that the reader took: the clock was set between it and the last one of the recording. */
static void a_fresh_anchor(void)
{
	const uint64_t start = SAMPLE_CREATED_NS, s = SECOND_NS;
	struct recording_process *process = recording_process_new();
	static const struct {
		uint64_t clock_s, wall_s;
	} set[] = {
		{ 9, 0 }, { 10, 1 }, { 14, 5 }, { 15, 6 }, { 16, 96 }, { 20, 100 }, { 25, 105 }
	};
	uint64_t ns = 0;

	process->fresh_anchor = (struct clock_anchor){ 20 * s, start + 100 * s };
	EXPECT(recording_wall_ns(process, 21 * s, &ns) && ns == start + 101 * s);
	EXPECT(recording_wall_ns(process, 19 * s, &ns) && ns == start + 99 * s);
	if (recording_load_anchor(process, (struct clock_anchor){ 10 * s, start + s }) != OK)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(set); i++)
		EXPECT(recording_wall_ns(process, set[i].clock_s * s, &ns) &&
		       ns == start + set[i].wall_s * s);
	process->fresh_anchor.clock_ns = 10 * s;
	EXPECT_THAT("one that is not later says nothing",
		    recording_wall_ns(process, 20 * s, &ns) && ns == start + 11 * s);
	recording_process_free(process);
}

/* What a recorder wrote down about the hosts of its job. */
static void hosts_from_an_info_text(void)
{
	static const struct {
		const char *value, *wanted; /* NULL: refused */
	} cases[] = {
		{ "a", "a" },
		{ "node[001-064],login1", "node[001-064],login1" },
		{ "a.b-c_d:9750,9", "a.b-c_d:9750,9" },
		{ "", NULL },
		{ "-a", NULL },
		{ "[1-2]", NULL },
		{ "a[1-2", NULL },
		{ "a]1-2[", NULL },
		{ "a[[1]]", NULL },
		{ "a[1][2]", "a[1][2]" },
		{ "a b", NULL },
		{ "a;b", NULL },
		{ "a'b", NULL },
		{ "a...", NULL },
		{ "12345678901234567890123456789012", NULL },
		{ "1234567890123456789012345678901", "1234567890123456789012345678901" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct recording_process *process = recording_process_new();
		char info[128], hosts[32] = "";
		bool is_found;

		snprintf(info, sizeof(info), "env.RINGSIDE_HOSTS=%s\n", cases[i].value);
		if (recording_load_info(process, info, strlen(info)) != OK)
			abort();
		is_found = recording_hosts(process, hosts, sizeof(hosts));
		EXPECT_THAT(cases[i].value,
			    is_found == (cases[i].wanted != NULL) &&
				    (!is_found || strcmp(hosts, cases[i].wanted) == 0));
		recording_process_free(process);
	}
}

int main(void)
{
	counters_add_up();
	records_add_up();
	sources_are_joined();
	owners_are_kept_apart();
	a_new_process_is_kept_apart();
	is_its_end_known();
	the_last_sign_of_life();
	names_of_containers();
	communicators_are_found_by_id();
	values_of_an_info_text();
	names_of_numbers();
	a_fresh_anchor();
	hosts_from_an_info_text();
	return tap_done();
}
