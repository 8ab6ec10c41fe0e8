/* GPU stamps at the exact bounds of what is accepted; see hot_kernel.c. */
#include "tests/unit/plugin/gpu_play.h"
#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

static const struct call all_reduce = { .function = OP_ALL_REDUCE,
					.datatype = OP_INT8,
					.root = OP_NOBODY,
					.peer = OP_NOBODY,
					.count = 1 };

static struct region_live *live_from(const void *opaque)
{
	return live_find(handle_decode(recorder.salt, opaque));
}

static void *issue(void *context, enum op_function function, const void *plan)
{
	struct call call = all_reduce;

	call.function = (uint8_t)function;
	call.group = plan;
	if (function == OP_RECV || function == OP_SEND)
		call.peer = 1;
	return hot_task(context, hot_api_call(context, NULL, &call), &call);
}

static void *new_comm(void)
{
	stamp_move(0);
	return play_init(1, 1, 4, 0);
}

static void kernel_stop(void *kernel, uint64_t gpu_ns)
{
	hot_kernel_state(handle_decode(recorder.salt, kernel), gpu_ns);
	hot_kernel_stop(handle_decode(recorder.salt, kernel));
}

/* An operation that says nothing but how the clocks differ: offset 0. */
static void learn_the_offset(void *context)
{
	kernel_stop(hot_kernel_start(issue(context, OP_ALL_REDUCE, NULL), 255, stamp_now_ns, true),
		    stamp_now_ns);
}

/* Units of 2^14 ns, in which the bound sinks by 1 ns. */
enum { SINK_NS = 1 << 14 };

static void the_offset_is_the_greatest_difference(void)
{
	void *context = new_comm();
	const struct comm_info *info = &hot_comm(context)->shared->info;
	int64_t first = -(int64_t)STAMP_S;
	uint64_t at = stamp_now_ns;

	hot_kernel_start(issue(context, OP_ALL_REDUCE, NULL), 0, stamp_now_ns + (uint64_t)first,
			 true);
	EXPECT_THAT("any first one is taken",
		    info->gpu_offset_ns == first && info->gpu_offset_at_ns == at);
	stamp_move(1000 * SINK_NS);
	hot_kernel_start(issue(context, OP_ALL_REDUCE, NULL), 1,
			 stamp_now_ns + (uint64_t)(first - 1000), true);
	EXPECT_THAT("the same, as clocks drift, is no news",
		    info->gpu_offset_ns == first && info->gpu_offset_at_ns == at);
	hot_kernel_start(issue(context, OP_ALL_REDUCE, NULL), 2,
			 stamp_now_ns + (uint64_t)(first - 999), true);
	EXPECT_THAT("a greater one is",
		    info->gpu_offset_ns == first - 999 && info->gpu_offset_at_ns == stamp_now_ns);
	ncclProfiler_v5.finalize(context);
}

static void a_channel_is_distrusted_alone(void)
{
	static const struct {
		enum op_function function;
		uint8_t channel;
	} cases[] = {
		{ OP_SEND, 0 },	 { OP_SEND, 1 },   { OP_SEND, 63 },  { OP_SEND, 64 },
		{ OP_SEND, 65 }, { OP_SEND, 255 }, { OP_RECV, 0 },   { OP_RECV, 2 },
		{ OP_RECV, 64 }, { OP_RECV, 130 }, { OP_RECV, 255 },
	};
	const uint64_t *counted = &recorder.region.header->odd[ODD_CHANNEL];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = new_comm(), *tasks[3];
		const uint64_t *bits = hot_comm(context)->shared->untrusted_channels;
		unsigned int place = (cases[i].function == OP_RECV) * 256 + cases[i].channel;
		uint64_t before = *counted;
		unsigned int others = 0;

		learn_the_offset(context);
		for (int j = 0; j < 2; j++) {
			stamp_move(STAMP_MS);
			tasks[j] = issue(context, cases[i].function, NULL);
			kernel_stop(hot_kernel_start(tasks[j], cases[i].channel,
						     stamp_now_ns - STAMP_MS / 2, true),
				    stamp_now_ns);
			EXPECT_THAT("counted once", *counted == before + 1);
		}
		EXPECT_EQUAL(live_from(tasks[1])->op.flags & OP_STAMPS_UNTRUSTED,
			     OP_FLAG_STAMP_STALE);
		EXPECT(bits[place / 64] == UINT64_C(1) << place % 64);
		for (unsigned int j = 0; j < 8; j++)
			others += j != place / 64 && bits[j] != 0;
		EXPECT_EQUAL(others, 0);
		stamp_move(STAMP_MS);
		tasks[2] = issue(context, cases[i].function, NULL);
		hot_kernel_start(tasks[2], cases[i].channel, stamp_now_ns, true);
		EXPECT_EQUAL(live_from(tasks[2])->op.flags & OP_STAMPS_UNTRUSTED,
			     OP_FLAG_STAMP_CHANNEL);
		tasks[2] = issue(context, cases[i].function, NULL);
		hot_kernel_start(tasks[2], cases[i].channel ^ 1, stamp_now_ns, true);
		EXPECT_EQUAL(live_from(tasks[2])->op.flags & OP_STAMPS_UNTRUSTED, 0);
		ncclProfiler_v5.finalize(context);
	}
}

static void the_64th_channel_has_no_place(void)
{
	void *context = new_comm(), *task = issue(context, OP_SEND, NULL);
	const struct comm_state *comm = hot_comm(context);

	kernel_stop(hot_kernel_start(task, 63, stamp_now_ns, true), stamp_now_ns + 1);
	kernel_stop(hot_kernel_start(task, 64, stamp_now_ns + 2, true), stamp_now_ns + 3);
	EXPECT_EQUAL(comm->stamps[0][63].start_ns, stamp_now_ns);
	EXPECT_EQUAL(comm->stamps[0][63].stop_ns, stamp_now_ns + 1);
	EXPECT(comm->stamps[1][0].start_ns == 0 && comm->stamps[1][0].stop_ns == 0);
	ncclProfiler_v5.finalize(context);
}

/* With more than 64 works queued and a late callback, a stamp may be that of later work. */
static void late_stamps_behind_a_full_ring(void)
{
	static const struct {
		uint64_t index, queued, network_at, overrun_until;
		bool is_loose;
		int64_t late_ns;
		bool is_overrun;
	} cases[] = {
		{ 1000, STAMP_RING, 0, 0, false, STAMP_LATE_NS, false },
		{ 1000, STAMP_RING + 1, 0, 0, false, STAMP_LATE_NS, true },
		{ 1000, STAMP_RING + 1, 0, 0, false, STAMP_LATE_NS - 1, false },
		/* Something was overrun before. */
		{ 1000, STAMP_RING + 1, 0, 1001, false, 0, true },
		{ 1000, STAMP_RING + 1, 0, 1000, false, 0, false },
		{ 1000, STAMP_RING, 0, 1001, false, 0, false },
		/* The network holds the GPU back. */
		{ 1000, STAMP_RING + 1, 1000, 0, false, STAMP_LATE_NS, false },
		{ 1000, STAMP_RING + 1, 1000, 0, true, STAMP_LATE_NS, true },
		{ 1000, STAMP_RING + 1, 969, 0, false, STAMP_LATE_NS, false },
		{ 1000, STAMP_RING + 1, 968, 0, false, STAMP_LATE_NS, true },
		{ 1000, STAMP_RING + 1, 1031, 0, false, STAMP_LATE_NS, false },
		{ 1000, STAMP_RING + 1, 1032, 0, false, STAMP_LATE_NS, true },
		/* No transfer has begun at all. */
		{ 10, STAMP_RING + 1, 0, 0, false, STAMP_LATE_NS, true },
		{ 10, STAMP_RING + 1, 1, 0, false, STAMP_LATE_NS, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = new_comm(), *task;
		struct comm_state *comm = hot_comm(context);
		uint64_t tasks = cases[i].index + cases[i].queued;
		struct region_live *live;

		learn_the_offset(context);
		stamp_move(STAMP_S);
		task = issue(context, OP_ALL_REDUCE, NULL);
		/* Its offset was learned a second ago, and the callback comes a second later. */
		stamp_move(STAMP_S);
		comm->shared->info.gpu_offset_ns = 777;
		comm->shared->info.gpu_offset_at_ns = stamp_now_ns;
		live = live_from(task);
		live->task_index = cases[i].index;
		live->op.kernels_started = live->op.kernels_stopped = 1; /* not the first */
		comm->tasks = tasks;
		comm->network_at = cases[i].network_at;
		comm->overrun_until = cases[i].overrun_until;
		comm->is_loose = cases[i].is_loose;
		hot_kernel_start(task, 0, stamp_now_ns + 777 - (uint64_t)cases[i].late_ns, true);
		EXPECT_EQUAL((live->op.flags & OP_FLAG_STAMP_OVERRUN) != 0, cases[i].is_overrun);
		EXPECT_EQUAL(comm->overrun_until,
			     cases[i].is_overrun && cases[i].late_ns >= STAMP_LATE_NS
				     ? tasks
				     : cases[i].overrun_until);
		ncclProfiler_v5.finalize(context);
	}
}

/* A start lies after the call; a call that is known only from its task has no such bound. */
static void nothing_starts_before_its_call(void)
{
	static const struct {
		uint64_t learned_before; /* units of 2^14 ns before the call; 0: after it */
		bool is_from_task, is_replay;
		int64_t too_early_ns;
		bool is_stale;
	} cases[] = {
		{ 0, false, false, 0, false },	 { 0, false, false, 1, true },
		{ 500, false, false, 0, false }, { 500, false, false, 1, true },
		{ 500, true, false, 1, false },	 { 500, true, true, 1, true },
		{ 500, true, true, 0, false },	 { 500, false, true, 1, true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = new_comm(), *task;
		struct comm_info *info = &hot_comm(context)->shared->info;
		struct region_live *live;
		uint64_t issued;

		stamp_move(STAMP_S);
		issued = stamp_now_ns;
		task = issue(context, OP_ALL_REDUCE, NULL);
		live = live_from(task);
		live->notes |= cases[i].is_from_task ? LIVE_FROM_TASK : 0;
		live->op.flags |= cases[i].is_replay ? OP_FLAG_REPLAY : 0;
		live->op.kernels_started = live->op.kernels_stopped = 1;
		info->gpu_offset_ns = 4000000;
		info->gpu_offset_at_ns = cases[i].learned_before == 0
						 ? issued + 1000 * SINK_NS
						 : issued - cases[i].learned_before * SINK_NS;
		stamp_move(STAMP_MS);
		hot_kernel_start(task, 0,
				 issued + 4000000 - cases[i].learned_before - STAMP_SLACK_NS -
					 (uint64_t)cases[i].too_early_ns,
				 true);
		EXPECT_EQUAL((live->op.flags & OP_FLAG_STAMP_STALE) != 0, cases[i].is_stale);
		ncclProfiler_v5.finalize(context);
	}
}

/* Nothing starts before its predecessor stops, but works of one kernel can start together. */
static void nothing_starts_before_its_predecessor(void)
{
	static const struct {
		int64_t after_start_ns; /* of the predecessor, which takes 1000 ns */
		bool is_same_kernel, was_overrun;
		bool is_stale;
	} cases[] = {
		{ 1000, false, false, false }, { 999, false, false, true },
		{ 999, false, true, false },   { 999, true, false, true },
		{ 0, true, false, false },     { 0, false, false, true },
		{ 0, false, true, false },     { 1, true, false, true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = new_comm(), *plan = hot_plan_start(context), *first, *second;
		struct comm_state *comm = hot_comm(context);
		uint64_t start;

		learn_the_offset(context);
		first = issue(context, OP_ALL_REDUCE, plan);
		second = issue(context, OP_ALL_REDUCE,
			       cases[i].is_same_kernel ? plan : hot_plan_start(context));
		start = stamp_now_ns;
		stamp_move(2000);
		kernel_stop(hot_kernel_start(first, 7, start, true), start + 1000);
		comm->overrun_until = live_from(second)->task_index + cases[i].was_overrun;
		hot_kernel_start(second, 7, start + (uint64_t)cases[i].after_start_ns, true);
		EXPECT_EQUAL((live_from(second)->op.flags & OP_FLAG_STAMP_STALE) != 0,
			     cases[i].is_stale);
		ncclProfiler_v5.finalize(context);
	}
}

static void a_stop_lies_not_before_its_start(void)
{
	for (uint64_t early = 0; early <= 1; early++) {
		void *context = new_comm(), *task = issue(context, OP_ALL_REDUCE, NULL);

		kernel_stop(hot_kernel_start(task, 3, stamp_now_ns, true), stamp_now_ns - early);
		EXPECT_EQUAL((live_from(task)->op.flags & OP_FLAG_STAMP_REVERSED) != 0, early);
		ncclProfiler_v5.finalize(context);
	}
}

static void every_channel_starts_and_stops_once(void)
{
	static const uint8_t channels[] = { 0, 1, 5, 62, 63, 64, 65, 127, 128, 191, 192, 255 };
	const uint64_t *odd = recorder.region.header->odd;
	void *context = new_comm(), *task = issue(context, OP_ALL_REDUCE, NULL);
	struct region_live *live = live_from(task);

	for (size_t i = 0; i < ARRAY_LENGTH(channels); i++) {
		void *kernel = hot_kernel_start(task, channels[i], stamp_now_ns, true);
		uint64_t starts = odd[ODD_REPEATED_START], stops = odd[ODD_REPEATED_STOP];
		uint64_t states = odd[ODD_REPEATED_STATE];

		EXPECT(hot_kernel_start(task, channels[i], stamp_now_ns, true) == kernel);
		EXPECT_EQUAL(odd[ODD_REPEATED_START], starts + 1);
		live->op.flags = 0;
		kernel_stop(kernel, stamp_now_ns + 5);
		EXPECT_EQUAL(odd[ODD_REPEATED_STOP] + odd[ODD_REPEATED_STATE], stops + states);
		EXPECT_EQUAL(live->op.flags & OP_FLAG_FOREIGN_STOP, 0);
		kernel_stop(kernel, stamp_now_ns + 5);
		EXPECT_EQUAL(odd[ODD_REPEATED_STOP], stops + 1);
		EXPECT_EQUAL(odd[ODD_REPEATED_STATE], states + 1);
		EXPECT_EQUAL(live->op.flags & OP_FLAG_FOREIGN_STOP, OP_FLAG_FOREIGN_STOP);
		EXPECT_EQUAL(live->op.kernels_started, i + 1);
		EXPECT_EQUAL(live->op.kernels_stopped, i + 1);
	}
	ncclProfiler_v5.finalize(context);
}

static void without_a_stamp_nothing_is_judged(void)
{
	void *context = new_comm(), *task = issue(context, OP_ALL_REDUCE, NULL);
	struct region_live *live = live_from(task);

	hot_kernel_start(task, 0, 77, false);
	EXPECT_EQUAL(live->op.state, OP_RUNNING);
	EXPECT_EQUAL(live->op.flags, 0);
	EXPECT_EQUAL(live->op.gpu_start_ns, 0);
	EXPECT_EQUAL(hot_comm(context)->shared->info.gpu_offset_at_ns, 0);
	hot_kernel_start(task, 1, 0, true);
	EXPECT_EQUAL(live->op.flags, OP_FLAG_STAMP_ZERO);
	ncclProfiler_v5.finalize(context);
}

/* Of the same GPU, what was learned last; of another one, nothing. */
static void a_new_communicator_knows_its_gpus_clock(void)
{
	void *library, *contexts[5];
	struct comm_info *infos[5];

	setenv("FAKE_GPUS", "2", 1);
	library = gpu_play_library();
	for (int i = 0; i < 2; i++) {
		EXPECT(gpu_play_use(library, i));
		contexts[i] = new_comm();
		infos[i] = &hot_comm(contexts[i])->shared->info;
		EXPECT_EQUAL(infos[i]->gpu_offset_at_ns, 0);
		infos[i]->gpu_offset_ns = 1000 + i;
		infos[i]->gpu_offset_at_ns = 5000 + (uint64_t)i;
	}
	for (int i = 2; i < 5; i++) {
		EXPECT(gpu_play_use(library, 0));
		contexts[i] = new_comm();
		infos[i] = &hot_comm(contexts[i])->shared->info;
		EXPECT_EQUAL(infos[i]->gpu, 0);
		EXPECT_EQUAL(infos[i]->gpu_offset_ns, i < 4 ? 1000 : 7);
		EXPECT_EQUAL(infos[i]->gpu_offset_at_ns, i < 4 ? 5000 : 6000);
		/* The third knows something else since the same moment, later something newer. */
		infos[2]->gpu_offset_ns = i == 2 ? 6 : 7;
		infos[2]->gpu_offset_at_ns = i == 2 ? 5000 : 6000;
	}
	for (int i = 0; i < 5; i++)
		ncclProfiler_v5.finalize(contexts[i]);
}

int main(void)
{
	play_setup("flight");
	play_init(0, 1, 2, 0);
	the_offset_is_the_greatest_difference();
	a_channel_is_distrusted_alone();
	the_64th_channel_has_no_place();
	late_stamps_behind_a_full_ring();
	nothing_starts_before_its_call();
	nothing_starts_before_its_predecessor();
	a_stop_lies_not_before_its_start();
	every_channel_starts_and_stops_once();
	without_a_stamp_nothing_is_judged();
	a_new_communicator_knows_its_gpus_clock();
	return tap_done();
}
