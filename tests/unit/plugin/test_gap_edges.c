/* Gaps in NCCL's numbers, at their exact bounds. */
#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

#define GAP_MAX (UINT64_C(1) << 40)

static void *numbered_task(void *context, void *api, const char *function, uint64_t sequence)
{
	struct abi_descr_v5 descr = { .type = ABI_COLL, .parent = api };

	descr.coll.function = function;
	descr.coll.count = 1;
	descr.coll.datatype = "ncclInt8";
	descr.coll.sequence = sequence;
	descr.coll.channels = 1;
	return play_start(context, descr);
}

static void *begin_group(void *context)
{
	return play_start(context, (struct abi_descr_v5){ .type = ABI_GROUP_API });
}

/* A call in a group of its own; sequence UINT64_MAX: its task is not reported. */
static void numbered(void *context, const char *function, uint64_t sequence)
{
	void *group = begin_group(context);
	void *api = play_coll_api(context, group, function, 1, "ncclInt8", false);

	if (sequence != UINT64_MAX)
		play_stop(numbered_task(context, api, function, sequence));
	play_stop(group);
}

static const struct comm_counts *counts_of(void *context)
{
	return &hot_comm(context)->shared->counts;
}

static void only_numbered_functions_have_gaps(void)
{
	static const struct {
		const char *function;
		unsigned int interface;
		uint64_t missed;
	} cases[] = {
		{ "AllReduce", 5, 3 }, { "AllGather", 5, 3 }, { "Reduce", 5, 3 },
		{ "Broadcast", 5, 3 }, { "Broadcast", 6, 0 }, { "Broadcast", 7, 0 },
		{ "Reduce", 7, 3 },    { "AlltoAll", 5, 0 },  { "Quantum", 5, 0 },
		{ "Send", 5, 0 },      { NULL, 5, 0 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(100 + i, 1, 2, 0);

		hot_comm(context)->shared->info.interface = cases[i].interface;
		numbered(context, cases[i].function, 0);
		numbered(context, cases[i].function, 1);
		numbered(context, cases[i].function, 5);
		EXPECT_EQUAL(counts_of(context)->missed, cases[i].missed);
		numbered(context, cases[i].function, 6);
		EXPECT_EQUAL(counts_of(context)->missed, cases[i].missed);
		ncclProfiler_v5.finalize(context);
	}
}

static void calls_without_a_task_had_a_number(void)
{
	void *context = play_init(120, 1, 2, 0);

	numbered(context, "AllReduce", 0);
	numbered(context, "AllReduce", UINT64_MAX);
	numbered(context, "AllReduce", UINT64_MAX);
	numbered(context, "AllReduce", 3);
	EXPECT_THAT("exactly as many numbers as calls", counts_of(context)->missed == 0);
	numbered(context, "AllReduce", UINT64_MAX);
	numbered(context, "AllReduce", UINT64_MAX);
	numbered(context, "AllReduce", 9);
	EXPECT_THAT("three more numbers than calls", counts_of(context)->missed == 3);
	numbered(context, "AllReduce", UINT64_MAX);
	numbered(context, "AllReduce", UINT64_MAX);
	numbered(context, "AllReduce", 11);
	EXPECT_THAT("one number less than calls", counts_of(context)->missed == 3);
	ncclProfiler_v5.finalize(context);
}

static void a_jump_too_large_is_none(void)
{
	void *context = play_init(121, 1, 2, 0);

	numbered(context, "AllReduce", 0);
	numbered(context, "AllReduce", 1 + GAP_MAX);
	EXPECT_EQUAL(counts_of(context)->missed, 0);
	numbered(context, "AllReduce", 2 + GAP_MAX + GAP_MAX - 1);
	EXPECT_EQUAL(counts_of(context)->missed, GAP_MAX - 1);
	ncclProfiler_v5.finalize(context);
}

/* The last call of the group, too, and not the one before it or after it. */
static void the_calls_of_a_group_move_behind_the_gap(void)
{
	void *context = play_init(122, 1, 2, 0), *group, *apis[3];

	numbered(context, "AllReduce", 0);
	group = begin_group(context);
	for (int i = 0; i < 3; i++)
		apis[i] = play_coll_api(context, group, "AllReduce", 1, "ncclInt8", false);
	for (uint64_t i = 0; i < 3; i++)
		play_stop(numbered_task(context, apis[i], "AllReduce", 5 + i));
	play_stop(group);
	numbered(context, "AllReduce", 8);
	ncclProfiler_v5.finalize(context);
	for (uint64_t i = 1; i <= 5; i++) {
		const struct op_record *record = play_record(6 - i);

		EXPECT_EQUAL(record->number, i);
		EXPECT_EQUAL(record->match, i == 1 ? 1 : i + 4);
		EXPECT_EQUAL((record->flags & OP_FLAG_AFTER_GAP) != 0, i == 2);
		EXPECT_EQUAL(record->signature != 0, i == 1);
	}
}

/* Two gaps in one group add up; a gap after it counts alone. */
static void a_second_gap_moves_them_further(void)
{
	void *context = play_init(123, 1, 2, 0), *group, *apis[2];

	group = begin_group(context);
	apis[0] = play_coll_api(context, group, "AllReduce", 1, "ncclInt8", false);
	apis[1] = play_coll_api(context, group, "AllGather", 1, "ncclInt8", false);
	play_stop(numbered_task(context, apis[0], "AllReduce", 2));
	play_stop(numbered_task(context, apis[1], "AllGather", 3));
	play_stop(group);
	numbered(context, "AllReduce", 13);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(play_record(3)->match, 1 + 2);
	EXPECT_EQUAL(play_record(2)->match, 2 + 2 + 3);
	EXPECT_EQUAL(play_record(1)->match, 3 + 2 + 3 + 10);
}

static void replays_after_a_gap_keep_their_numbers(void)
{
	void *context = play_init(124, 1, 2, 0), *group, *captured;

	numbered(context, "AllReduce", 0);
	numbered(context, "AllReduce", 4);
	EXPECT_EQUAL(counts_of(context)->missed, 3);
	group = begin_group(context);
	captured = play_coll_api(context, group, "AllReduce", 1, "ncclInt8", true);
	play_stop(group);
	play_stop(numbered_task(context, captured, "AllReduce", 77));
	EXPECT_THAT("their numbers are not compared", counts_of(context)->missed == 3);
	ncclProfiler_v5.finalize(context);
	EXPECT(play_record(1)->flags & OP_FLAG_REPLAY);
	EXPECT_EQUAL(play_record(1)->match, 1);
}

/* Whose number a task has that came too late is unknown, so the next one of each function is new. */
static void a_task_too_late_is_no_gap(void)
{
	static const char *const functions[] = { "AllReduce", "AllGather", "ReduceScatter",
						 "Broadcast", "Reduce" };
	void *context = play_init(125, 1, 2, 0), *group, *api;
	struct handle handle;

	for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
		numbered(context, functions[i], 0);
	group = begin_group(context);
	api = play_coll_api(context, group, "AllReduce", 1, "ncclInt8", false);
	handle = handle_decode(recorder.salt, api);
	EXPECT(live_retire(&recorder.region.live[handle_slot(handle)], handle_generation(handle),
			   false));
	play_stop(numbered_task(context, api, "AllReduce", 1));
	play_stop(group);
	EXPECT_EQUAL(hot_comm(context)->gap_issued, 0);
	for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
		numbered(context, functions[i], 50);
	EXPECT_EQUAL(counts_of(context)->missed, 0);
	for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
		numbered(context, functions[i], 52);
	EXPECT_EQUAL(counts_of(context)->missed, 5);
	ncclProfiler_v5.finalize(context);
}

int main(void)
{
	play_setup("flight");
	only_numbered_functions_have_gaps();
	calls_without_a_task_had_a_number();
	a_jump_too_large_is_none();
	the_calls_of_a_group_move_behind_the_gap();
	a_second_gap_moves_them_further();
	replays_after_a_gap_keep_their_numbers();
	a_task_too_late_is_no_gap();
	return tap_done();
}
