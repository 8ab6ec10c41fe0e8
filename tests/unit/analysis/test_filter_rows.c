/* Which processes, operations and rows a filter selects. Two ranks on two hosts; rank 1 began an hour later. */
#include "analysis/filter.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "tests/tap.h"
#include "tests/support/hand_made.h"

#define SECOND UINT64_C(1000000000)
#define WALL (1700000000 * SECOND)

static struct hand_made hand;
static struct job job;
/* The recorder's clock of each begins at 1000 s, and its last anchor is 100 s later. */
static struct clock_anchor anchors[2][2] = {
	{ { 1000 * SECOND, WALL }, { 1100 * SECOND, WALL + 100 * SECOND } },
	{ { 1000 * SECOND, WALL + 3600 * SECOND }, { 1100 * SECOND, WALL + 3700 * SECOND } },
};

static void begin(void)
{
	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process =
			hand_process(&hand, "j", rank, rank == 0 ? "a" : "b");

		process->anchors = anchors[rank];
		process->anchor_count = 2;
		hand_comm(process, 0x77, "world", rank, 2, 2);
		hand_comm(process, 0x80 + (uint64_t)rank, rank == 0 ? "left" : "right", 0, 1, 1);
		process->comms[1].counts.last_done_ns = 1150 * SECOND;
		process->comms[0].counts.last_issue_ns = 1200 * SECOND;
	}
	if (job_make(&job, &hand.recording) != OK)
		abort();
}

static void over(void)
{
	for (size_t i = 0; i < hand.recording.count; i++)
		hand.list[i]->anchors = NULL;
	job_release(&job);
	hand_release(&hand);
}

static void test_empty(void)
{
	static const struct {
		struct filter filter;
		bool is_empty;
	} cases[] = {
		{ { .comm_count = 0 }, true },
		{ { .comm_count = 1 }, false },
		{ { .function_count = 1 }, false },
		{ { .range_count = 1 }, false },
		{ { .since = { FILTER_WALL, 1 } }, false },
		{ { .until = { FILTER_WALL, 1 } }, false },
		{ { .has_tag = true }, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_EQUAL(filter_is_empty(&cases[i].filter), cases[i].is_empty);
}

static void test_limits(void)
{
	static const struct {
		struct filter_time time;
		uint64_t wall_ns;
	} cases[] = {
		{ { FILTER_NO_TIME, 0 }, 0 },
		{ { FILTER_FROM_START, 50 * SECOND }, WALL + 50 * SECOND },
		/* The last record is 1150 s on the clock of rank 1, 150 s after its start. */
		{ { FILTER_FROM_END, 50 * SECOND }, WALL + 3700 * SECOND },
		{ { FILTER_FROM_END, 2000000000 * SECOND }, 1 },
		{ { FILTER_WALL, WALL + 3610 * SECOND }, WALL + 3610 * SECOND },
	};
	uint64_t since, until;

	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct filter filter = { .since = cases[i].time, .until = cases[i].time };

		filter_wall_limits(&filter, &hand.recording, &since, &until);
		EXPECT_EQUAL(since, cases[i].wall_ns);
		EXPECT_EQUAL(until, cases[i].wall_ns);
	}
	for (uint64_t rank = 0; rank < 2; rank++) {
		const uint64_t clock_ns = (4610 - rank * 3600) * SECOND;

		filter_clock_limits(hand.list[rank], WALL + 3610 * SECOND, 0, &since, &until);
		EXPECT(since == clock_ns && until == UINT64_MAX);
		filter_clock_limits(hand.list[rank], 0, WALL + 3610 * SECOND, &since, &until);
		EXPECT(since == 0 && until == clock_ns);
	}
	over();
	/* Nobody knows the time. */
	begin();
	hand.list[0]->anchor_count = hand.list[1]->anchor_count = 0;
	for (int base = FILTER_FROM_START; base <= FILTER_TIME_OF_DAY; base++) {
		struct filter filter = { .since = { (enum filter_time_base)base, 5 } };

		filter_wall_limits(&filter, &hand.recording, &since, &until);
		EXPECT_EQUAL(since, base == FILTER_WALL ? 5 : base == FILTER_FROM_END ? 1 : 0);
	}
	over();
}

static void test_functions(void)
{
	struct filter filter = { .functions = { "allreduce", "Send" }, .function_count = 2 };

	begin();
	EXPECT(filter_check_function(&job, "AllReduce") == OK &&
	       filter_check_function(&job, "recv") == OK &&
	       filter_check_function(&job, "AllWhat") == ERR_FORMAT);
	EXPECT(filter_has_function(&filter, &job, OP_ALL_REDUCE) &&
	       filter_has_function(&filter, &job, OP_SEND) &&
	       !filter_has_function(&filter, &job, OP_RECV));
	filter.function_count = 0;
	EXPECT(filter_has_function(&filter, &job, OP_RECV));
	over();
}

static void test_processes(void)
{
	static const struct {
		struct filter filter;
		bool has[2];
	} cases[] = {
		{ { .comm_count = 0 }, { true, true } },
		{ { .ranks = { { 1, 3 } }, .range_count = 1 }, { false, true } },
		{ { .ranks = { { 2, 3 } }, .range_count = 1 }, { false, false } },
		{ { .comms = { "left" }, .comm_count = 1 }, { true, false } },
		{ { .comms = { "world" }, .comm_count = 1 }, { true, true } },
		/* Rank 0 was recorded until 200 s after its start, by its last call. */
		{ { .since = { FILTER_WALL, WALL + 200 * SECOND } }, { true, true } },
		{ { .since = { FILTER_WALL, WALL + 200 * SECOND + 1 } }, { false, true } },
		{ { .until = { FILTER_WALL, WALL + 3600 * SECOND } }, { true, false } },
		{ { .until = { FILTER_WALL, WALL + 3600 * SECOND + 1 } }, { true, true } },
	};

	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t process = 0; process < 2; process++)
			EXPECT_EQUAL(filter_has_process(&cases[i].filter, &job, process),
				     cases[i].has[process]);
	over();
	begin();
	hand.list[0]->anchor_count = 0;
	memset(&hand.list[0]->comms[0].counts, 0, sizeof(struct comm_counts));
	memset(&hand.list[0]->comms[1].counts, 0, sizeof(struct comm_counts));
	EXPECT_THAT("a process without known times passes",
		    filter_has_process(&cases[6].filter, &job, 0));
	over();
}

/* The same operations one by one and as rows. */
static void test_operations(void)
{
	enum { OPS = 6 };
	static const struct op_record ops[OPS] = {
		{ .comm = 1, .function = OP_ALL_REDUCE, .done_ns = 1010 * SECOND, .user_tag = 7 },
		{ .comm = 1, .function = OP_SEND, .done_ns = 1020 * SECOND },
		{ .comm = 2, .function = OP_ALL_REDUCE, .done_ns = 1030 * SECOND },
		{ .comm = 1, .function = OP_ALL_REDUCE, .issue_ns = 1030 * SECOND },
		{ .comm = 1, .function = OP_ALL_REDUCE },
		{ .comm = 9, .function = OP_ALL_REDUCE, .done_ns = 1030 * SECOND },
	};
	static const struct {
		struct filter filter;
		const char *one_by_one; /* which of them pass */
		const char *rows;	/* a row's communicator is always known */
	} cases[] = {
		{ { .comm_count = 0 }, "012345", "01234" },
		{ { .comms = { "world" }, .comm_count = 1 }, "0134", "0134" },
		{ { .comms = { "left" }, .comm_count = 1 }, "2", "2" },
		{ { .functions = { "Send" }, .function_count = 1 }, "1", "1" },
		{ { .has_tag = true, .tag = 7 }, "0", "0" },
		{ { .has_tag = true, .tag = 0 }, "12345", "1234" },
		{ { .since = { FILTER_WALL, WALL + 20 * SECOND } }, "12345", "1234" },
		{ { .until = { FILTER_WALL, WALL + 20 * SECOND } }, "04", "04" },
		{ { .until = { FILTER_WALL, WALL + 20 * SECOND + 1 } }, "014", "014" },
	};
	uint64_t columns[OP_RECORD_WORDS][OPS];
	struct op_batch batch = { .rows = OPS };

	for (int i = 0; i < OPS; i++) {
		uint64_t words[OP_RECORD_WORDS];

		memcpy(words, &ops[i], sizeof(words));
		for (int w = 0; w < OP_RECORD_WORDS; w++)
			columns[w][i] = words[w];
	}
	for (int w = 0; w < OP_RECORD_WORDS; w++)
		batch.column[w] = columns[w];
	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct filter_rows rows;
		char passed[16] = "";
		uint32_t places[OPS], count;

		EXPECT(filter_rows_start(&rows, &cases[i].filter, &job, 0));
		for (int j = 0; j < OPS; j++)
			if (filter_rows_has_op(&rows, &ops[j]))
				text_append(passed, sizeof(passed), "%d", j);
		if (!EXPECT(strcmp(passed, cases[i].one_by_one) == 0))
			printf("# case %zu: %s\n", i, passed);
		count = filter_rows_choose(&rows, &batch, places);
		passed[0] = '\0';
		for (uint32_t j = 0; j < count; j++)
			text_append(passed, sizeof(passed), "%u", places[j]);
		if (!EXPECT(strcmp(passed, cases[i].rows) == 0))
			printf("# case %zu: %s\n", i, passed);
	}
	over();
}

int main(void)
{
	test_empty();
	test_limits();
	test_functions();
	test_processes();
	test_operations();
	return tap_done();
}
