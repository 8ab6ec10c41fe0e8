/* Calls, groups and captures, at the bounds of their tables. */
#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

static const struct call all_reduce = { .function = OP_ALL_REDUCE,
					.datatype = OP_INT8,
					.root = OP_NOBODY,
					.peer = OP_NOBODY,
					.count = 1 };

static struct handle handle_from(const void *opaque)
{
	return handle_decode(recorder.salt, opaque);
}

static struct region_live *live_from(const void *opaque)
{
	return live_find(handle_from(opaque));
}

static void a_group_is_known_until_its_slot_has_another(void)
{
	static const uint64_t laps[] = { 1, 2, 2048, 4096, (UINT64_C(1) << 31) - 1 };

	for (size_t i = 0; i < ARRAY_LENGTH(laps); i++) {
		void *before, *after;
		struct group_state *group = &recorder.groups[5];

		recorder.group_cursor = 5;
		before = hot_group_start();
		recorder.group_cursor = 5 + laps[i] * GROUPS;
		after = hot_group_start();
		EXPECT(before != after);
		hot_group_stop(handle_from(before));
		hot_launch_stop(handle_from(hot_launch_start(NULL, before, NULL)));
		EXPECT_THAT("an old one changes nothing",
			    group->is_open == 1 && group->launch_ns == 0);
		hot_launch_stop(handle_from(hot_launch_start(NULL, after, NULL)));
		hot_group_stop(handle_from(after));
		EXPECT(group->is_open == 0 && group->launch_ns != 0);
	}
	recorder.group_cursor = 0;
}

static void no_group_lies_behind_the_last(void)
{
	void *last = handle_make(HANDLE_GROUP_API, 0, GROUPS - 1, 0);
	void *behind = handle_make(HANDLE_GROUP_API, 0, GROUPS, 0);

	EXPECT_EQUAL(handle_kind(handle_from(hot_launch_start(NULL, last, NULL))), HANDLE_LAUNCH);
	EXPECT_EQUAL(handle_kind(handle_from(hot_launch_start(NULL, behind, NULL))),
		     HANDLE_IGNORED);
	EXPECT_EQUAL(recorder.others[0].stopped, 0);
	hot_launch_stop(handle_of(HANDLE_LAUNCH, 0, GROUPS, 0));
	EXPECT_THAT("nothing is written there", recorder.others[0].stopped == 0);
}

static void operations_of_a_group_know_its_first(void)
{
	void *context = play_init(1, 1, 2, 0);
	void *groups[2] = { hot_group_start(), hot_group_start() };

	for (uint64_t number = 1; number <= 6; number++) {
		void *api = hot_api_call(context, groups[(number - 1) / 3], &all_reduce);

		EXPECT_EQUAL(live_from(api)->op.number, number);
		EXPECT_EQUAL(live_from(api)->group_first, number <= 3 ? 1 : 4);
	}
	for (uint64_t number = 7; number <= 8; number++)
		EXPECT_EQUAL(live_from(hot_api_call(context, NULL, &all_reduce))->group_first,
			     number);
	ncclProfiler_v5.finalize(context);
}

/* A kernel with so many works does not wait for the network as a whole. */
static void nine_works_make_it_loose(void)
{
	void *context = play_init(2, 1, 2, 0);
	struct call call = all_reduce;

	for (int kernel = 0; kernel < 3; kernel++) {
		call.group = hot_plan_start(context);
		for (int work = 0; work < KERNEL_WORKS; work++)
			hot_task(context, hot_api_call(context, NULL, &all_reduce), &call);
	}
	EXPECT_EQUAL(hot_comm(context)->plan_tasks, KERNEL_WORKS);
	EXPECT_THAT("eight do not", hot_comm(context)->is_loose == 0);
	hot_task(context, hot_api_call(context, NULL, &all_reduce), &call);
	EXPECT_EQUAL(hot_comm(context)->is_loose, 1);
	ncclProfiler_v5.finalize(context);
}

static unsigned int in_flight(void *context)
{
	unsigned int count = 0;

	for (uint32_t i = 0; i < recorder.region.live_count; i++)
		count += region_slot_is_used(recorder.region.live[i].word) &&
			 recorder.region.live[i].op.comm == hot_comm(context)->shared->info.id;
	return count;
}

/* Of calls without children the last 16 stay, and all of a group that waits for its tasks. */
static void calls_without_children_are_forgotten(void)
{
	void *context = play_init(3, 1, 2, 0), *group = hot_group_start(), *apis[40];

	hot_comm(context)->expects_kernels = hot_comm(context)->expects_proxies = 0;
	for (unsigned int i = 1; i <= 300; i++) {
		hot_api_call(context, i % 3 == 0 ? NULL : hot_group_start(), &all_reduce);
		if (i % 60 == 0)
			EXPECT_EQUAL(in_flight(context), RECENT + 1);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(apis); i++)
		apis[i] = hot_api_call(context, group, &all_reduce);
	EXPECT_EQUAL(in_flight(context), ARRAY_LENGTH(apis));
	for (size_t i = 0; i < ARRAY_LENGTH(apis); i++) {
		struct region_live *live = live_from(apis[i]);

		EXPECT_EQUAL(live->op.state, OP_ISSUED);
		hot_task(context, apis[i], &all_reduce);
		EXPECT_THAT("it stays with its task", live_from(apis[i]) == live);
	}
	for (int i = 0; i <= RECENT; i++)
		hot_api_call(context, hot_group_start(), &all_reduce);
	EXPECT_EQUAL(in_flight(context), RECENT + 1);
	ncclProfiler_v5.finalize(context);
}

/* Children are expected of a communicator's first operations, even if none ever came. */
static void children_are_expected_at_first(void)
{
	void *context = play_init(4, 1, 2, 0), *tasks[CHILDLESS_AGE];

	EXPECT(hot_comm(context)->expects_kernels != 0);
	for (int i = 0; i < CHILDLESS_AGE - 1; i++) {
		void *api = hot_api_call(context, NULL, &all_reduce);

		tasks[i] = hot_task(context, api, &all_reduce);
	}
	EXPECT_EQUAL(in_flight(context), CHILDLESS_AGE - 1);
	tasks[CHILDLESS_AGE - 1] =
		hot_task(context, hot_api_call(context, NULL, &all_reduce), &all_reduce);
	EXPECT_EQUAL(in_flight(context), CHILDLESS_AGE - 1);
	EXPECT_THAT("the one 16 calls ago went",
		    live_from(tasks[CHILDLESS_AGE - RECENT - 1]) == NULL);
	ncclProfiler_v5.finalize(context);
}

static void without_a_slot_a_call_is_recorded_as_such(void)
{
	void *context = play_init(5, 1, 2, 0);
	uint64_t *words = calloc(recorder.region.live_count, sizeof(*words));
	struct call captured = all_reduce;

	captured.is_captured = true;
	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		words[i] = recorder.region.live[i].word;
		recorder.region.live[i].word = words[i] | UINT64_C(1) << 32 | 1;
	}
	hot_api_call(context, NULL, &all_reduce);
	EXPECT_EQUAL(play_record(1)->state, OP_ISSUED);
	EXPECT_EQUAL(play_record(1)->flags, OP_FLAG_UNTRACKED);
	EXPECT_EQUAL(play_record(1)->number, 1);
	hot_api_call(context, NULL, &captured);
	EXPECT_EQUAL(play_record(1)->state, OP_CAPTURED);
	EXPECT_EQUAL(play_record(1)->number, 2);
	EXPECT_EQUAL(hot_comm(context)->shared->counts.untracked, 1);
	EXPECT_EQUAL(hot_comm(context)->shared->counts.recorded, 2);
	for (uint32_t i = 0; i < recorder.region.live_count; i++)
		recorder.region.live[i].word = words[i];
	free(words);
	ncclProfiler_v5.finalize(context);
}

static uint64_t tag_of_replay(void *context, void *captured, uint64_t own_tag)
{
	struct call call = all_reduce;

	call.user_tag = own_tag;
	return live_from(hot_task(context, captured, &call))->op.user_tag;
}

static void a_replay_has_the_tag_of_its_capture(void)
{
	void *contexts[2] = { play_init(6, 1, 2, 0), play_init(7, 1, 2, 0) }, *captured[2][3];
	struct call call = all_reduce;

	call.is_captured = true;
	for (uint64_t i = 0; i < 2; i++)
		for (uint64_t j = 0; j < 3; j++) {
			/* The last has none. */
			call.user_tag = j == 2 ? 0 : 10 * (i + 1) + j;
			captured[i][j] = hot_api_call(contexts[i], NULL, &call);
		}
	for (uint64_t i = 0; i < 2; i++) {
		for (uint64_t j = 0; j < 2; j++)
			EXPECT_EQUAL(tag_of_replay(contexts[i], captured[i][j], 0),
				     10 * (i + 1) + j);
		EXPECT_EQUAL(tag_of_replay(contexts[i], captured[i][2], 0), 0);
		EXPECT_THAT("or its own", tag_of_replay(contexts[i], captured[i][0], 99) == 99);
		EXPECT_EQUAL(tag_of_replay(contexts[i], captured[i][2], 98), 98);
		ncclProfiler_v5.finalize(contexts[i]);
	}
}

/* While the capturing group is open, each of its calls can have one task, which is no replay. */
static void tasks_of_a_capture_are_no_replays(void)
{
	void *context = play_init(8, 1, 2, 0), *first, *second, *group = hot_group_start();
	struct call call = all_reduce;

	call.is_captured = true;
	first = hot_api_call(context, NULL, &call);
	second = hot_api_call(context, group, &call);
	EXPECT_THAT("a call of an earlier group is a replay",
		    handle_kind(handle_from(hot_task(context, first, &all_reduce))) == HANDLE_TASK);
	EXPECT_EQUAL(handle_kind(handle_from(hot_task(context, second, &all_reduce))),
		     HANDLE_UNTRACKED);
	EXPECT_THAT("a second task is one",
		    handle_kind(handle_from(hot_task(context, second, &all_reduce))) ==
			    HANDLE_TASK);
	hot_api_call(context, group, &call);
	hot_group_stop(handle_from(group));
	EXPECT_THAT("and any after the group",
		    handle_kind(handle_from(hot_task(context, second, &all_reduce))) ==
			    HANDLE_TASK);
	EXPECT_EQUAL(hot_comm(context)->shared->counts.replays, 3);
	ncclProfiler_v5.finalize(context);
}

static void no_handle_is_not_a_foreign_one(void)
{
	const uint64_t *odd = recorder.region.header->odd;
	uint64_t none = odd[ODD_NULL_HANDLE], foreign = odd[ODD_FOREIGN_HANDLE];

	play_stop(NULL);
	EXPECT_EQUAL(odd[ODD_NULL_HANDLE], none + 1);
	play_state(NULL, ABI_KERNEL_CH_STOP, 0);
	EXPECT_EQUAL(odd[ODD_NULL_HANDLE], none + 2);
	EXPECT_EQUAL(odd[ODD_FOREIGN_HANDLE], foreign);
	play_stop(&none);
	EXPECT_EQUAL(odd[ODD_FOREIGN_HANDLE], foreign + 1);
	play_state(&none, ABI_KERNEL_CH_STOP, 0);
	EXPECT_EQUAL(odd[ODD_FOREIGN_HANDLE], foreign + 2);
	EXPECT_EQUAL(odd[ODD_NULL_HANDLE], none + 2);
}

int main(void)
{
	play_setup("flight");
	play_init(0, 1, 2, 0);
	a_group_is_known_until_its_slot_has_another();
	no_group_lies_behind_the_last();
	operations_of_a_group_know_its_first();
	nine_works_make_it_loose();
	calls_without_children_are_forgotten();
	children_are_expected_at_first();
	without_a_slot_a_call_is_recorded_as_such();
	a_replay_has_the_tag_of_its_capture();
	tasks_of_a_capture_are_no_replays();
	no_handle_is_not_a_foreign_one();
	return tap_done();
}
