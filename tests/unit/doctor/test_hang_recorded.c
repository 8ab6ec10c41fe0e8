/*
 * Ranks that made different calls long ago: live slots have the last call only, and what was called before is in trace
 * files. Rank 2 of four differs from the others.
 */
#include "tests/support/sample_trace.h"
#include "tests/unit/doctor/hang_stage.h"
#include "tests/tap.h"

enum { RANKS = 4, ODD = 2, LAST = 100 };

static struct hang_stage stage;
static struct sample traces[RANKS];
static struct recording_file files[RANKS];

/* The calls 1 to LAST - 1 of a rank that differs from call `from` on; it has not kept `left_out`. */
struct past {
	uint64_t from, left_out, until;
};

static struct op_record call(uint64_t number, bool is_odd)
{
	return (struct op_record){ .sequence = number,
				   .comm = 1,
				   .function = OP_ALL_REDUCE,
				   .datatype = OP_FLOAT32,
				   .number = number,
				   .match = number,
				   .signature = (is_odd ? 0x90000 : 0x10000) + number,
				   .count = is_odd ? 77 : 1000 + number,
				   .root = OP_NOBODY,
				   .peer = OP_NOBODY,
				   .state = OP_DONE,
				   .issue_ns = 10 * SECOND + number,
				   .done_ns = 10 * SECOND + number + 1 };
}

/* What is no call of the communicator: on each rank it is something else. */
static size_t add_noise(struct op_record *ops, uint64_t number, int rank)
{
	for (int i = 0; i < 5; i++) {
		ops[i] = call(number, false);
		ops[i].number += 1000 * (uint64_t)(i + 1);
		ops[i].signature += (uint64_t)rank + 1;
		ops[i].count = 5;
	}
	ops[0].comm = 2;
	ops[1].function = OP_SEND;
	ops[1].peer = 0;
	ops[2].flags = OP_FLAG_REPLAY;
	ops[3].match = 0;
	ops[4].signature = 0;
	return 5;
}

static void keep(int rank, const struct past *past)
{
	struct sample *trace = &traces[rank];
	uint64_t sequence = 0;
	char info[200];

	*trace = (struct sample){ .size = 0 };
	snprintf(info, sizeof(info), "host=node0\npid=%d\njob=job\nrank=%d\nmode=trace\n",
		 4000 + rank, rank);
	sample_header(trace, TRACE_MAJOR, TRACE_MINOR);
	sample_block(trace, TRACE_PROCESS, info, strlen(info), 1);
	for (uint64_t number = 1; number < past->until; number++) {
		struct op_record ops[SAMPLE_ROWS_MAX];
		size_t count = number % 40 == 9 ? add_noise(ops, number, rank) : 0;

		if (number != past->left_out)
			ops[count++] = call(number, rank == ODD && number >= past->from);
		for (size_t i = 0; i < count; i++)
			ops[i].sequence = ++sequence;
		if (count > 0)
			sample_coded(trace, TRACE_OPS, ops, OP_RECORD_WORDS, (uint32_t)count);
	}
	files[rank] = (struct recording_file){ .path = "memory",
					       .memory = trace->bytes,
					       .bytes = trace->size,
					       .first_sequence = 1,
					       .last_sequence = sequence };
	stage_rank(&stage, rank)->files = &files[rank];
	stage_rank(&stage, rank)->file_count = 1;
}

static void begin(uint64_t last)
{
	stage_begin(&stage, RANKS, RANKS);
	stage.is_numbered = true; /* the first rank of each side is compared */
	stage_comm(&stage, 0x200, "other", 0, RANKS, 1, RANKS);
	for (int i = 0; i < RANKS; i++) {
		struct recording_flight *flight =
			stage_call(&stage, i, 1, OP_ALL_REDUCE, last, OP_RUNNING, 60 * SECOND);

		flight->op.number = last;
		if (i == ODD)
			stage_diverge(&stage, i, 1, flight);
	}
}

static void end(void)
{
	for (int i = 0; i < RANKS; i++) {
		stage_rank(&stage, i)->files = NULL;
		stage_rank(&stage, i)->file_count = 0;
		free(traces[i].bytes);
		traces[i] = (struct sample){ .size = 0 };
	}
	stage_end(&stage);
}

static const struct {
	const char *sentence;
	struct past usual, odd;
	uint64_t number; /* where the verdict puts it */
	bool is_first;	 /* without a caveat */
} cases[] = {
	{ "in the middle", { 0, 0, LAST }, { 50, 0, LAST }, 50, true },
	{ "at the first call", { 0, 0, LAST }, { 1, 0, LAST }, 1, true },
	{ "at the second", { 0, 0, LAST }, { 2, 0, LAST }, 2, true },
	{ "at the one before the last", { 0, 0, LAST }, { LAST - 1, 0, LAST }, LAST - 1, true },
	{ "the number before is missing on one", { 0, 0, LAST }, { 50, 49, LAST }, LAST, false },
	{ "the number before is missing on the other",
	  { 0, 49, LAST },
	  { 50, 0, LAST },
	  LAST,
	  false },
	{ "the first difference is missing: the next one is not the first",
	  { 0, 0, LAST },
	  { 50, 50, LAST },
	  LAST,
	  false },
	{ "a gap long before does not matter", { 0, 0, LAST }, { 50, 30, LAST }, 50, true },
	{ "a gap after it does not matter", { 0, 60, LAST }, { 50, 70, LAST }, 50, true },
	{ "nothing differs until there", { 0, 0, LAST }, { LAST, 0, LAST }, LAST, true },
	{ "the usual rank has few calls", { 0, 0, 20 }, { 10, 0, LAST }, 10, true },
	{ "too few", { 0, 0, 10 }, { 10, 0, LAST }, LAST, false },
	{ "the odd rank has few calls", { 0, 0, LAST }, { 10, 0, 11 }, 10, true },
	{ "the usual rank has none", { 0, 0, 1 }, { 10, 0, LAST }, LAST, false },
	{ "the odd rank has none", { 0, 0, LAST }, { 10, 0, 1 }, LAST, false },
};

static void test_cases(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct verdict *verdict;

		begin(LAST);
		keep(0, &cases[i].usual);
		keep(ODD, &cases[i].odd);
		stage_find_in(&stage, cases[i].sentence);
		verdict = &stage.verdicts.list[0];
		EXPECT_THAT(cases[i].sentence,
			    stage.verdicts.count == 1 && verdict->class == VERDICT_MISMATCH &&
				    verdict->rank == ODD && verdict->number == cases[i].number &&
				    stage_has_line(&verdict->missing, "or earlier") !=
					    cases[i].is_first);
		end();
	}
}

static void test_quick(void)
{
	struct past usual = { 0, 0, LAST }, odd = { 50, 0, LAST };

	begin(LAST);
	keep(0, &usual);
	keep(ODD, &odd);
	stage.options.is_quick = true;
	stage_find(&stage);
	EXPECT_THAT("a repeated scan does not read traces",
		    stage.verdicts.count == 1 && stage.verdicts.list[0].number == LAST);
	end();
}

/* More calls than the first allocation has room for. */
static void test_many(void)
{
	struct past usual = { 0, 0, 9000 }, odd = { 8500, 0, 9000 };

	begin(9000);
	keep(0, &usual);
	keep(ODD, &odd);
	stage_find(&stage);
	EXPECT_THAT("thousands of calls",
		    stage.verdicts.count == 1 && stage.verdicts.list[0].number == 8500);
	end();
}

int main(void)
{
	test_cases();
	test_quick();
	test_many();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_recorded.txt");
	return tap_done();
}
