/* The table of operations in flight: who may leave it, and what the record says then. */
#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

enum { CLAIM_TRIES = 256 };

/* What the word of a slot in use looks like that nobody may take: one open child. */
#define TAKEN (UINT64_C(1) << 32 | 1)
#define RESTING UINT64_C(0xffffffff)

static const struct call all_reduce = { .function = OP_ALL_REDUCE,
					.datatype = OP_INT8,
					.root = OP_NOBODY,
					.peer = OP_NOBODY,
					.count = 1 };

static uint64_t *words;

static uint32_t mask(void)
{
	return recorder.region.live_count - 1;
}

static struct region_live *live_from(const void *opaque)
{
	return live_find(handle_decode(recorder.salt, opaque));
}

static uint32_t slot_from(const void *opaque)
{
	return handle_slot(handle_decode(recorder.salt, opaque));
}

static void *issue(void *context)
{
	return hot_task(context, hot_api_call(context, NULL, &all_reduce), &all_reduce);
}

static void *finish(void *context)
{
	void *task = issue(context);

	play_stop(play_kernel_start(context, task, 0, stamp_now_ns));
	return task;
}

static void take_all_but(uint32_t slot)
{
	for (uint32_t i = 0; i <= mask(); i++) {
		words[i] = recorder.region.live[i].word;
		if (i != slot)
			recorder.region.live[i].word = TAKEN;
	}
}

static void give_all_but(uint32_t slot)
{
	for (uint32_t i = 0; i <= mask(); i++)
		if (i != slot)
			recorder.region.live[i].word = words[i];
}

/* Let the cursor arrive at this slot at the n-th try, from 0. */
static void aim_at(uint32_t slot, uint32_t nth)
{
	uint32_t cursor = 0;

	while ((cursor * SCATTER & mask()) != slot)
		cursor++;
	recorder.region.header->live_cursor = cursor + recorder.region.live_count - nth;
}

/* Does a new call get this slot, the only one it could get? */
static bool is_claimed(void *context, uint32_t wanted, uint32_t nth)
{
	uint32_t slot = 0;
	struct region_live *live;

	take_all_but(wanted);
	hot_comm(context)->live_hint = (wanted + 100) & mask();
	aim_at(wanted, nth);
	live = live_claim(hot_comm(context), &slot);
	give_all_but(wanted);
	if (live == NULL)
		return false;
	EXPECT_EQUAL(slot, wanted);
	EXPECT_EQUAL(hot_comm(context)->live_hint, (wanted + 1) & mask());
	/* Free again. */
	live->word = (uint64_t)(REGION_GENERATION(live->word) + 1) << 32;
	return true;
}

static void who_may_leave(void)
{
	static const struct {
		const char *what;
		bool is_foreign, is_done, is_last, is_grouped, has_task, is_passed, is_childless;
		bool goes;
	} cases[] = {
		{ "one that can have children", .has_task = true },
		{ "one that is done", .has_task = true, .is_done = true, .goes = true },
		{ "the last one", .has_task = true, .is_last = true, .is_childless = true },
		{ "the last one, done", .is_done = true, .is_last = true, .goes = true },
		{ "one without a communicator", .is_foreign = true, .goes = true },
		{ "one without children", .has_task = true, .is_childless = true, .goes = true },
		{ "one that was passed", .has_task = true, .is_passed = true, .goes = true },
		{ "one that waits for its task", .is_grouped = true, .is_childless = true },
		{ "one of the group with its task", .is_grouped = true, .has_task = true,
		  .is_childless = true, .goes = true },
		{ "one without a task in no group", .is_childless = true, .goes = true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(1, 1, 2, 0), *group = hot_group_start();
		struct comm_state *comm = hot_comm(context);
		struct region_live *live = live_from(
			hot_api_call(context, cases[i].is_grouped ? group : NULL, &all_reduce));

		if (!cases[i].is_last)
			hot_api_call(context, cases[i].is_grouped ? group : NULL, &all_reduce);
		live->notes |= cases[i].has_task ? LIVE_HAS_TASK : 0;
		live->op.state = cases[i].is_done ? OP_DONE : OP_LAUNCHED;
		live->op.comm += cases[i].is_foreign ? 1000 : 0;
		if (cases[i].is_childless)
			comm->expects_kernels = comm->expects_proxies = 0;
		if (cases[i].is_passed) {
			comm->shared->counts.last_done_number = live->op.number + 1;
			comm->shared->counts.last_done_ns = live->op.issue_ns + PASSED_NS + 1;
		}
		EXPECT_THAT(cases[i].what,
			    is_claimed(context, (uint32_t)(live - recorder.region.live), 0) ==
				    cases[i].goes);
		ncclProfiler_v5.finalize(context);
	}
}

static void a_free_slot_is_found_in_so_many_tries(void)
{
	void *context = play_init(2, 1, 2, 0);
	struct comm_state *comm = hot_comm(context);
	uint32_t slot, wanted = mask() - 5;

	EXPECT(mask() > 2 * CLAIM_TRIES);
	EXPECT(is_claimed(context, wanted, 0));
	EXPECT(is_claimed(context, wanted, CLAIM_TRIES - 1));
	EXPECT(!is_claimed(context, wanted, CLAIM_TRIES));
	/* Next to the one freed last, around the end of the table. */
	for (uint32_t after = HINT_TRIES - 1; after <= HINT_TRIES; after++) {
		uint32_t next = (wanted + after) & mask();
		struct region_live *live;

		take_all_but(next);
		comm->live_hint = wanted;
		aim_at(next, CLAIM_TRIES);
		live = live_claim(comm, &slot);
		give_all_but(next);
		EXPECT_EQUAL(live != NULL, after < HINT_TRIES);
		if (live != NULL) {
			EXPECT_EQUAL(slot, next);
			live->word = (uint64_t)(REGION_GENERATION(live->word) + 1) << 32;
		}
	}
	ncclProfiler_v5.finalize(context);
}

/* The search next to the hint takes free slots only; the search elsewhere makes room. */
static void nobody_is_evicted_while_neighbours_are_free(void)
{
	void *context = play_init(3, 1, 2, 0), *done = finish(context), *next;

	hot_comm(context)->live_hint = slot_from(done);
	EXPECT_EQUAL(live_from(done)->op.state, OP_DONE);
	next = issue(context);
	EXPECT(slot_from(next) != slot_from(done) && live_from(done) != NULL);
	ncclProfiler_v5.finalize(context);
}

static void a_slot_rests_until_the_cursor_passes(void)
{
	void *context = play_init(4, 1, 2, 0), *task = issue(context);
	struct region_live *live = live_from(task);
	uint32_t slot, at = slot_from(task);
	uint64_t word = live->word;

	play_kernel_start(context, task, 0, stamp_now_ns);
	EXPECT(live_retire(live, REGION_GENERATION(word), true));
	EXPECT_EQUAL(live->word, word | RESTING);
	take_all_but(at);
	aim_at(at, 0);
	hot_comm(context)->live_hint = at;
	EXPECT(live_claim(hot_comm(context), &slot) == live);
	give_all_but(at);
	EXPECT_THAT("with the next odd generation",
		    REGION_GENERATION(live->word) == REGION_GENERATION(word) + 2);
	EXPECT_EQUAL(live->op.kernels_started, 0);
	live->word = (uint64_t)(REGION_GENERATION(live->word) + 1) << 32;
	ncclProfiler_v5.finalize(context);
}

static void a_done_operation_lingers(void)
{
	void *context = play_init(5, 1, 2, 0), *first = finish(context);

	for (int i = 1; i < LINGER; i++)
		finish(context);
	EXPECT_THAT("until 64 others are done", live_from(first) != NULL);
	finish(context);
	EXPECT(live_from(first) == NULL);
	ncclProfiler_v5.finalize(context);
}

static void it_lingers_again_after_another_child(void)
{
	void *context = play_init(6, 1, 2, 0), *first = finish(context), *kernel;
	struct region_live *live = live_from(first);

	kernel = play_kernel_start(context, first, 1, stamp_now_ns);
	EXPECT_EQUAL(live->op.state, OP_RUNNING);
	for (int i = 0; i < LINGER; i++)
		finish(context);
	EXPECT_THAT("not while a child is open",
		    live_from(first) == live && !(live->notes & LIVE_LINGERS));
	play_stop(kernel);
	EXPECT(live->notes & LIVE_LINGERS);
	for (int i = 0; i < LINGER; i++)
		finish(context);
	EXPECT(live_from(first) == NULL);
	ncclProfiler_v5.finalize(context);
}

/* Its slot has another owner, which lingers on its own account. */
static void one_that_left_early_takes_nobody_along(void)
{
	void *context = play_init(7, 1, 2, 0), *second = finish(context);
	struct comm_state *comm = hot_comm(context);
	struct region_live *live = live_from(second);
	uint64_t before = REGION_GENERATION(live->word) - 2;

	comm->linger[comm->linger_cursor % LINGER] = before << 32 | slot_from(second);
	finish(context);
	EXPECT(live_from(second) == live && live->notes & LIVE_LINGERS);
	ncclProfiler_v5.finalize(context);
}

static void operations_without_transfers_make_it_loose(void)
{
	void *context = play_init(8, 2, 2, 0), *task = issue(context), *proxy;
	const struct comm_state *comm = hot_comm(context);

	proxy = play_proxy_start(context, task, getpid(), 0, 1, true);
	play_stop(proxy);
	EXPECT_EQUAL(live_from(task)->op.state, OP_DONE);
	EXPECT_EQUAL(comm->is_loose, 0);
	EXPECT_EQUAL(comm->shared->counts.last_done_number, 1);
	finish(context);
	EXPECT_EQUAL(comm->is_loose, 1);
	EXPECT_EQUAL(comm->shared->counts.last_done_number, 2);
	proxy = play_proxy_start(context, task, getpid(), 1, 1, true);
	play_stop(proxy);
	EXPECT_THAT("an earlier one does not take it back",
		    comm->is_loose == 1 && comm->shared->counts.last_done_number == 2);
	ncclProfiler_v5.finalize(context);
}

/* The record of an operation after this was done to it. */
static const struct op_record *retire(struct region_live *live, bool by_force)
{
	EXPECT(live_retire(live, REGION_GENERATION(live->word), by_force));
	return play_record(1);
}

static void its_end_may_be_known_from_a_later_one(void)
{
	static const struct {
		enum op_state state;
		uint64_t later;
		int64_t after_issue_ns;
		bool is_childless, is_foreign;
		enum op_time_source source;
	} cases[] = {
		{ OP_LAUNCHED, 1, 500, false, false, OP_TIME_HOST },
		{ OP_LAUNCHED, 1, 0, false, false, OP_TIME_HOST },
		{ OP_LAUNCHED, 1, -1, false, false, OP_TIME_NONE },
		{ OP_LAUNCHED, 0, 500, false, false, OP_TIME_NONE },
		{ OP_LAUNCHED, 1, 500, true, false, OP_TIME_NONE },
		{ OP_LAUNCHED, 1, 500, false, true, OP_TIME_NONE },
		{ OP_ISSUED, 1, 500, false, false, OP_TIME_NONE },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(9, 1, 2, 0), *task = issue(context);
		struct comm_state *comm = hot_comm(context);
		struct region_live *live = live_from(task);
		const struct op_record *record;

		live->op.state = (uint8_t)cases[i].state;
		comm->shared->counts.last_done_number = live->op.number + cases[i].later;
		comm->shared->counts.last_done_ns =
			live->op.issue_ns + (uint64_t)cases[i].after_issue_ns;
		if (cases[i].is_childless)
			comm->expects_kernels = comm->expects_proxies = 0;
		if (cases[i].is_foreign)
			live->comm_slot = recorder.region.comm_count;
		record = retire(live, false);
		EXPECT_EQUAL(record->time_source, cases[i].source);
		EXPECT_EQUAL(record->state, cases[i].state);
		if (cases[i].source == OP_TIME_HOST)
			EXPECT_EQUAL(record->done_ns - record->issue_ns, cases[i].after_issue_ns);
		ncclProfiler_v5.finalize(context);
	}
}

static void what_other_threads_did_is_added_once(void)
{
	static const struct {
		uint16_t own;
		uint64_t others;
		bool has_others;
		uint16_t sum;
	} cases[] = {
		{ 1, 3, true, 4 },	   { 1, 3, false, 1 },	      { 3, 1, true, 4 },
		{ 65530, 4, true, 65534 }, { 65530, 5, true, 65535 }, { 65530, 6, true, 65535 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(10, 2, 2, 0), *task = issue(context);
		struct live_others *others = &recorder.others[slot_from(task)];
		struct region_live *live = live_from(task);
		const struct op_record *record;

		live->op.proxies_started = live->op.proxies_stopped = cases[i].own;
		live->op.send_steps = 10;
		live->op.recv_bytes = 100;
		live->notes |= cases[i].has_others ? LIVE_HAS_OTHERS : 0;
		*others = (struct live_others){ .started = cases[i].others,
						.stopped = cases[i].others,
						.send_steps = 7,
						.recv_bytes = 70 };
		record = retire(live, false);
		EXPECT_EQUAL(record->proxies_started, cases[i].sum);
		EXPECT_EQUAL(record->proxies_stopped, cases[i].sum);
		EXPECT_EQUAL(record->send_steps, cases[i].has_others ? 17 : 10);
		EXPECT_EQUAL(record->recv_bytes, cases[i].has_others ? 170 : 100);
		*others = (struct live_others){ 0 };
		ncclProfiler_v5.finalize(context);
	}
}

static void missing_channels_are_marked(void)
{
	static const struct {
		uint8_t announced;
		uint16_t started;
		bool sees_kernels, is_open;
		uint32_t flags;
		bool is_marked;
	} cases[] = {
		{ 64, 63, true, false, 0, true },
		{ 64, 64, true, false, 0, false },
		{ 65, 63, true, false, 0, false },
		{ 2, 1, false, false, 0, false },
		{ 2, 1, true, true, 0, false },
		{ 2, 1, true, false, OP_FLAG_SELF, false },
		{ 2, 1, true, false, OP_FLAG_COPY_ENGINE, false },
		{ 2, 1, true, false, OP_FLAG_AFTER_GAP, true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(11, 1, 2, 0), *task = issue(context);
		struct region_live *live = live_from(task);
		const struct op_record *record;

		if (cases[i].sees_kernels)
			hot_comm(context)->shared->info.flags |= COMM_FLAG_SEES_KERNELS;
		live->op.channels = cases[i].announced;
		live->op.kernels_started = live->op.kernels_stopped = cases[i].started;
		live->op.flags = cases[i].flags;
		live->word += cases[i].is_open;
		record = retire(live, true);
		EXPECT_EQUAL((record->flags & OP_FLAG_CHANNELS_MISSING) != 0, cases[i].is_marked);
		EXPECT_EQUAL(record->state, cases[i].is_open ? OP_ABANDONED : OP_LAUNCHED);
		ncclProfiler_v5.finalize(context);
	}
}

static void a_call_without_execution_is_marked(void)
{
	void *context = play_init(12, 1, 2, 0);
	struct region_live *live;

	live = live_from(hot_api_call(context, NULL, &all_reduce));
	EXPECT_EQUAL(retire(live, false)->flags, OP_FLAG_API_ONLY);
	live = live_from(hot_api_call(context, NULL, &all_reduce));
	live->op.state = OP_RUNNING;
	EXPECT_EQUAL(retire(live, false)->flags, 0);
	live = live_from(issue(context));
	live->op.state = OP_ISSUED;
	EXPECT_EQUAL(retire(live, false)->flags, 0);
	ncclProfiler_v5.finalize(context);
}

/* Only what has stopped has a spread. */
static void a_spread_needs_a_stop(void)
{
	void *context = play_init(13, 1, 2, 0), *task = issue(context), *kernel;
	uint64_t gpu = stamp_now_ns;

	play_kernel_start(context, task, 0, gpu);
	play_kernel_start(context, task, 1, gpu + 30);
	EXPECT_EQUAL(retire(live_from(task), true)->start_spread_ns, 0);
	task = issue(context);
	kernel = play_kernel_start(context, task, 0, gpu + 100);
	play_kernel_start(context, task, 1, gpu + 130);
	play_kernel_stop(kernel, gpu + 200);
	EXPECT_EQUAL(retire(live_from(task), true)->start_spread_ns, 30);
	ncclProfiler_v5.finalize(context);
}

int main(void)
{
	play_setup("flight");
	play_init(0, 1, 2, 0);
	stamp_move(0);
	words = calloc(recorder.region.live_count, sizeof(*words));
	who_may_leave();
	a_free_slot_is_found_in_so_many_tries();
	nobody_is_evicted_while_neighbours_are_free();
	a_slot_rests_until_the_cursor_passes();
	a_done_operation_lingers();
	it_lingers_again_after_another_child();
	one_that_left_early_takes_nobody_along();
	operations_without_transfers_make_it_loose();
	its_end_may_be_known_from_a_later_one();
	what_other_threads_did_is_added_once();
	missing_channels_are_marked();
	a_call_without_execution_is_marked();
	a_spread_needs_a_stop();
	free(words);
	return tap_done();
}
