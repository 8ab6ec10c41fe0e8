/*
 * Any finished job: ranks that do the same thing repeatedly, in phases whose figures the input
 * chooses for each rank, including absurd ones. There is a report, and the doctor's verdicts on
 * slowness can be printed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_main.h"
#include "tests/support/hand_made.h"

enum { RANKS = 5, PHASES = 3, PHASE_MEETINGS = 160 };
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

/* Mostly the usual value, sometimes a few times as much, seldom anything. */
static uint64_t about(struct input *input, uint64_t usual)
{
	uint8_t value = byte(input);

	if (value == 255)
		return UINT64_MAX;
	if (value == 254)
		return 0;
	return value >= 240 ? (uint64_t)byte(input) << (byte(input) % 57)
			    : usual * (1 + (value >> 5));
}

/* What all ranks do in a phase. */
struct phase {
	uint8_t function;
	uint8_t flags;
	uint64_t bytes;
	int matches;
};

/* What one of them does; only `every` other collective. */
struct part {
	uint64_t wire_ns, flush_ns, consume_ns, duration_ns;
	uint32_t steps;
	uint8_t every, state;
};

static struct phase take_phase(struct input *input)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_SEND, OP_RECV,
					     OP_BROADCAST };
	struct phase phase = { .function = functions[byte(input) % sizeof(functions)],
			       .flags = byte(input) & 1 ? OP_FLAG_REPLAY : 0,
			       .bytes = about(input, UINT64_C(32) << 20),
			       .matches = byte(input) % (PHASE_MEETINGS + 1) };

	return phase;
}

static struct part take_part(struct input *input)
{
	struct part part = { .wire_ns = about(input, 200 * US),
			     .flush_ns = about(input, 20 * US),
			     .consume_ns = about(input, 100 * US),
			     .duration_ns = about(input, 10 * MS),
			     .steps = byte(input),
			     .every = 1 + byte(input) % 4 };
	uint8_t state = byte(input);

	part.state = state >= 250 ? state % OP_STATES : OP_DONE;
	return part;
}

static void play_op(struct recording_process *process, const struct phase *phase,
		    const struct part *part, uint64_t match, bool is_odd)
{
	uint64_t factor = is_odd ? 50 : 1;
	struct op_record *op = hand_op(process, 1, phase->function, match, phase->bytes,
				       part->duration_ns, match * 100 * MS);

	op->flags |= phase->flags;
	op->state = part->state;
	if (!op_is_collective(phase->function))
		op->peer = (int32_t)((process->rank + 1) % RANKS);
	op->send_steps = op->recv_steps = part->steps;
	op->proxies_started = op->proxies_stopped = part->steps % 8;
	op->wait_ns[OP_WAIT_SEND_NET] = part->wire_ns * part->steps * factor;
	op->wait_ns[OP_WAIT_RECV_FLUSH] = part->flush_ns * part->steps;
	op->wait_ns[OP_WAIT_RECV_GPU] = part->consume_ns * part->steps;
}

static void play(struct hand_made *hand, struct input *input, struct region_link *links)
{
	struct phase phases[PHASES];
	int ranks = 1 + byte(input) % RANKS, nodes = 1 + byte(input) % RANKS;

	for (int i = 0; i < PHASES; i++)
		phases[i] = take_phase(input);
	for (int rank = 0; rank < ranks; rank++) {
		char host[2] = { (char)('a' + rank % nodes), '\0' };
		struct recording_process *process = hand_process(hand, "j", rank, host);
		uint64_t match = 1;

		hand_comm(process, 7, "world", rank, ranks, nodes);
		for (int i = 0; i < PHASES; i++) {
			struct part part = take_part(input);

			for (int j = 0; j < phases[i].matches; j++, match++)
				play_op(process, &phases[i], &part, match,
					part.every > 1 && j % part.every == 0);
		}
		links[rank] = (struct region_link){ .key = UINT64_C(1) << 34 |
							   (uint32_t)((rank + 1) % ranks + 1),
						    .steps = about(input, 1000),
						    .bytes = about(input, 1 << 30),
						    .wait_ns = { 0, 0, about(input, 1000 * MS) } };
		process->links = &links[rank];
		process->link_count = byte(input) % 8 != 0;
	}
}

static void check(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		if (verdict->title[0] == '\0' || verdict->page[0] == '\0' ||
		    verdict->evidence.count == 0 ||
		    !(verdict->confidence > 0 && verdict->confidence <= 1) ||
		    memchr(verdict->title, '\0', sizeof(verdict->title)) == NULL)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size, 0 };
	struct timeline_options options = { .custom_by = { BASELINE_BY }, .custom_count = 1 };
	struct slow_options wanted = { 0 };
	struct region_link links[RANKS];
	static struct hand_made hand;
	struct timeline_report report;
	struct verdicts verdicts;
	struct filter filter = { 0 };

	wanted.peak_network = byte(&input) % 4 == 0 ? (double)about(&input, US) * 1e6 : 0;
	filter.since = (struct filter_time){ byte(&input) % 3, about(&input, 1000 * MS) };
	play(&hand, &input, links);
	if (timeline_report_make(&report, &hand.recording, &filter, &options) != OK)
		abort();
	verdicts_init(&verdicts);
	if (slow_find(&verdicts, &report, &wanted) != OK)
		abort();
	verdicts_sort(&verdicts);
	check(&verdicts);
	verdicts_release(&verdicts);
	timeline_report_release(&report);
	for (size_t i = 0; i < hand.recording.count; i++)
		hand.list[i]->links = NULL;
	hand_release(&hand);
	return 0;
}
