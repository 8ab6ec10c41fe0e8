/*
 * How host and device count works, by release, and the effect of different counts: old timestamps, or none, and
 * then ncclCommDestroy never returns.
 */
#include "common/attributes.h"
#include "common/order.h"
#include "sim/host.h"
#include "tests/unit/sim/stage.h"

enum { MASK_ON = ABI_COLL | ABI_P2P | ABI_KERNEL_CH, MASK_OFF = ABI_COLL | ABI_P2P, REPLAYS = 10 };

static void mask_set(struct stage *stage, bool is_on)
{
	store_relaxed(host_mask(stage->host), is_on ? MASK_ON : MASK_OFF);
}

/* Whether all kernel events since the n-th have their own start time. */
static bool stamps_are_own(size_t first)
{
	size_t count = witness_starts(ABI_KERNEL_CH);

	for (size_t i = first; i < count; i++)
		for (size_t earlier = 0; earlier < i; earlier++)
			if (witness_nth(ABI_KERNEL_CH, i)->gpu_ns ==
			    witness_nth(ABI_KERNEL_CH, earlier)->gpu_ns)
				return false;
	return count > first;
}

static struct host_counts stage_end(struct stage *stage)
{
	struct host_counts counts;

	host_comm_destroy(stage->comm);
	host_counts(stage->host, &counts);
	host_free(stage->host);
	return counts;
}

static struct host_graph *capture(struct stage *stage, const struct host_op *ops, size_t count)
{
	struct host_group group = { .ops = ops, .count = 1 };

	if (host_graph_new(stage->host, &group.capture) != OK)
		abort();
	for (size_t i = 0; i < count; i++) {
		group.ops = &ops[i];
		if (host_play_group(&stage->user, &group) != OK)
			abort();
	}
	return group.capture;
}

static void replay(struct stage *stage, struct host_graph *graph, size_t times)
{
	for (size_t i = 0; i < times; i++) {
		if (host_graph_replay(graph) != OK)
			abort();
		host_comm_settle(stage->comm);
	}
}

/* ---- what stays right ------------------------------------------------------------------------ */

static void eager_works_are_counted_in_step(void)
{
	static const int releases[] = { 22602, 22603, 22707, 22809, 22907, 23007 };

	for (size_t r = 0; r < ARRAY_LENGTH(releases); r++) {
		struct stage stage = stage_of(releases[r], MASK_ON);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
		struct host_counts counts;

		op.channels = 12;
		for (unsigned int i = 0; i < 200; i++) {
			mask_set(&stage, i % 7 < 2);
			stage_play(&stage, &op);
		}
		EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), (200 / 7 * 2 + 2) * 12);
		EXPECT_THAT("switched on and off, eager works have their own timestamps",
			    releases[r] < 22700 ||
				    (witness_nth(ABI_KERNEL_CH, 12)->gpu_ns >
					     witness_nth(ABI_KERNEL_CH, 0)->gpu_ns &&
				     witness_nth(ABI_KERNEL_CH, 58 * 12 - 1)->gpu_ns >
					     witness_nth(ABI_KERNEL_CH, 57 * 12 - 1)->gpu_ns));
		counts = stage_end(&stage);
		EXPECT_EQUAL(counts.would_hang, 0);
	}
}

static void an_eager_broadcast_is_counted_in_step(void)
{
	static const int releases[] = { HOST_NCCL_2_28, HOST_NCCL_2_29, HOST_NCCL_2_30 };

	for (size_t r = 0; r < ARRAY_LENGTH(releases); r++) {
		struct stage stage = stage_of(releases[r], MASK_ON);
		struct host_op broadcast = stage_op(&stage, OP_BROADCAST);
		struct host_op reduce = stage_op(&stage, OP_ALL_REDUCE);

		for (unsigned int i = 0; i < 20; i++) {
			stage_play(&stage, &broadcast);
			stage_play(&stage, &reduce);
		}
		EXPECT_THAT("an AllReduce after a Broadcast has its own timestamps",
			    stamps_are_own(0));
		EXPECT_EQUAL(stage_end(&stage).would_hang, 0);
	}
}

static void replays_are_counted_in_step(void)
{
	static const int releases[] = { 22707, 22809, 23007, 23102 };

	for (size_t r = 0; r < ARRAY_LENGTH(releases); r++) {
		struct stage stage = stage_of(releases[r], MASK_ON);
		struct host_op ops[2] = { stage_op(&stage, OP_ALL_REDUCE),
					  stage_op(&stage, OP_ALL_GATHER) };
		struct host_graph *graph;

		stage_play(&stage, &ops[0]);
		graph = capture(&stage, ops, 2);
		replay(&stage, graph, REPLAYS);
		EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1 + 2 * REPLAYS);
		EXPECT_THAT("replays have their own timestamps", stamps_are_own(0));
		host_graph_free(graph);
		EXPECT_EQUAL(stage_end(&stage).would_hang, 0);
	}
}

/* ---- old stamps ------------------------------------------------------------------------------ */

static void replays_after_an_eager_work_show_old_stamps(void)
{
	static const int releases[] = { HOST_NCCL_2_27, HOST_NCCL_2_30, HOST_NCCL_2_31 };

	for (size_t r = 0; r < ARRAY_LENGTH(releases); r++) {
		struct stage stage = stage_of(releases[r], MASK_ON);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
		struct host_graph *graph = capture(&stage, &op, 1);

		replay(&stage, graph, 3);
		stage_play(&stage, &op);
		replay(&stage, graph, 3);
		EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 7);
		if (releases[r] < HOST_NCCL_2_31)
			EXPECT_THAT("each has the timestamps of the last counted replay",
				    witness_nth(ABI_KERNEL_CH, 4)->gpu_ns ==
						    witness_nth(ABI_KERNEL_CH, 2)->gpu_ns &&
					    witness_nth(ABI_KERNEL_CH, 6)->gpu_ns ==
						    witness_nth(ABI_KERNEL_CH, 2)->gpu_ns);
		else
			EXPECT_THAT("2.31 counts all of them", stamps_are_own(0));
		host_graph_free(graph);
		EXPECT_EQUAL(stage_end(&stage).would_hang, 0);
	}
}

static void a_group_of_broadcasts_is_not_counted(void)
{
	for (unsigned int is_gathered = 0; is_gathered < 2; is_gathered++) {
		struct stage stage = stage_of(HOST_NCCL_2_30, MASK_ON);
		struct host_op reduce = stage_op(&stage, OP_ALL_REDUCE);
		struct host_op ops[2] = { stage_op(&stage, OP_BROADCAST),
					  stage_op(&stage, OP_BROADCAST) };

		ops[1].root = is_gathered ? 2 : 0;
		for (unsigned int i = 0; i < 3; i++)
			stage_play(&stage, &reduce);
		stage_play_group(&stage, ops, 2);
		for (unsigned int i = 0; i < 3; i++)
			stage_play(&stage, &reduce);
		if (is_gathered)
			EXPECT_THAT("AllGatherV: waits for the previous work, which has no "
				    "timestamp",
				    witness_starts(ABI_KERNEL_CH) == 3);
		else
			EXPECT(stamps_are_own(0) && witness_starts(ABI_KERNEL_CH) == 6);
		EXPECT_EQUAL(stage_end(&stage).would_hang, is_gathered ? 3 : 0);
	}
}

static void the_newest_does_not_hang_but_drifts(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_31, MASK_ON);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	struct host_counts counts;

	stage_play(&stage, &op);
	stage_play(&stage, &op);
	mask_set(&stage, false);
	stage_play(&stage, &op);
	mask_set(&stage, true);
	stage_play(&stage, &op);
	EXPECT_THAT("after an off period it waits for a timestamp that never comes",
		    witness_starts(ABI_KERNEL_CH) == 2);
	stage_play(&stage, &op);
	EXPECT_THAT("the next one has the timestamps of the previous one",
		    witness_starts(ABI_KERNEL_CH) == 3);
	counts = stage_end(&stage);
	EXPECT_EQUAL(counts.would_hang, 0);
	EXPECT_EQUAL(counts.purged, 1);
}

/* ---- no stamps: NCCL would not return from ncclCommDestroy ----------------------------------- */

/* A parent, a child split from it, and a graph of AllReduce and Broadcast on the child. */
static struct host_counts split_with_graph(int release, bool no_allgatherv, bool is_shared)
{
	struct host_config config = { .release = release, .no_allgatherv = no_allgatherv };
	struct stage stage = stage_set(&config, MASK_ON), child = stage;
	struct host_comm_config split = { .hash = 0xdef, .nranks = 2, .nnodes = 2 };
	struct host_op ops[3];
	struct host_graph *graph;

	split.share = is_shared ? stage.comm : NULL;
	if (host_comm_new(stage.host, &child.comm, &split) != OK)
		abort();
	ops[0] = stage_op(&child, OP_ALL_REDUCE);
	ops[1] = stage_op(&child, OP_BROADCAST);
	ops[2] = stage_op(&stage, OP_ALL_REDUCE);
	graph = capture(&stage, ops, 3);
	replay(&child, graph, REPLAYS);
	host_comm_settle(stage.comm);
	host_graph_free(graph);
	host_comm_destroy(child.comm);
	return stage_end(&stage);
}

static void a_graph_with_a_broadcast_hangs(void)
{
	struct host_counts counts = split_with_graph(HOST_NCCL_2_28, false, false);

	EXPECT_EQUAL(counts.would_hang, 0);
	EXPECT_EQUAL(counts.starts[6], 3 * REPLAYS);
	for (int release = HOST_NCCL_2_29; release <= HOST_NCCL_2_30; release += 100) {
		counts = split_with_graph(release, false, false);
		EXPECT_THAT("every AllReduce of the child waits, the parent's do not",
			    counts.would_hang == REPLAYS && counts.stops[6] == REPLAYS);
		counts = split_with_graph(release, true, false);
		EXPECT_THAT("with NCCL_ALLGATHERV_ENABLE=0 none waits",
			    counts.would_hang == 0 && counts.stops[6] == 3 * REPLAYS);
		counts = split_with_graph(release, false, true);
		EXPECT_THAT("a child that shares its parent's proxy blocks the parent",
			    counts.would_hang == REPLAYS);
	}
	counts = split_with_graph(HOST_NCCL_2_31, false, false);
	EXPECT_THAT("2.31 purges", counts.would_hang == 0 && counts.purged > 0);
}

/* Captured while switched off, replayed, then switched on. */
static void a_graph_and_a_switched_mask_hang(void)
{
	for (unsigned int is_switched = 0; is_switched < 2; is_switched++) {
		struct stage stage = stage_of(HOST_NCCL_2_28, MASK_ON);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
		struct host_graph *graph;

		mask_set(&stage, !is_switched);
		graph = capture(&stage, &op, 1);
		replay(&stage, graph, REPLAYS);
		mask_set(&stage, true);
		stage_play(&stage, &op);
		EXPECT_EQUAL(host_comm_settle(stage.comm), is_switched);
		for (unsigned int i = 0; i < 64 && is_switched; i++)
			stage_play(&stage, &op);
		EXPECT_THAT("64 works later it ends, with a wrong time",
			    host_comm_settle(stage.comm) == 0);
		host_graph_free(graph);
		EXPECT_EQUAL(stage_end(&stage).would_hang, 0);
	}
}

static void sends_to_oneself_and_a_switched_mask_hang(void)
{
	for (unsigned int is_switched = 0; is_switched < 2; is_switched++) {
		struct stage stage = stage_of(HOST_NCCL_2_28, MASK_ON);
		struct host_op op = stage_op(&stage, OP_ALL_TO_ALL);

		stage_play(&stage, &op);
		op = stage_op(&stage, OP_ALL_REDUCE);
		mask_set(&stage, !is_switched);
		for (unsigned int i = 0; i < 5; i++)
			stage_play(&stage, &op);
		mask_set(&stage, true);
		stage_play(&stage, &op);
		EXPECT_THAT("always on, it drifts; switched, it waits for a work without a "
			    "timestamp",
			    stage_end(&stage).would_hang == is_switched);
	}
}

struct toggle {
	struct stage *stage;
	bool first, second;
};

static void toggle_between(void *arg, size_t call)
{
	const struct toggle *toggle = arg;

	mask_set(toggle->stage, call == 0 ? toggle->first : toggle->second);
}

/* The pair is one work of the device, which only checks the Recv's mask. */
static void a_mask_switched_within_a_pair_hangs(void)
{
	static const struct {
		bool send, recv;
		uint64_t hangs;
	} cases[] = { { true, true, 0 }, { false, true, 0 }, { true, false, 1 } };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct stage stage = stage_of(HOST_NCCL_2_28, MASK_ON);
		struct toggle toggle = { &stage, cases[i].send, cases[i].recv };
		struct host_op ops[2] = { stage_op(&stage, OP_SEND), stage_op(&stage, OP_RECV) };
		struct host_group group = {
			.ops = ops, .count = 2, .between = toggle_between, .between_arg = &toggle
		};

		if (host_play_group(&stage.user, &group) != OK)
			abort();
		EXPECT_EQUAL(host_comm_settle(stage.comm), cases[i].hangs);
		EXPECT_EQUAL(stage_end(&stage).would_hang, cases[i].hangs);
	}
}

/* 2.26.2 expects too much of replays once anything ran before the capture. */
static void the_first_with_kernel_events_hangs_in_graphs(void)
{
	for (int release = 22602; release <= 22603; release++) {
		struct stage stage = stage_of(release, MASK_ON);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
		struct host_graph *graph;

		for (unsigned int i = 0; i < 5; i++)
			stage_play(&stage, &op);
		graph = capture(&stage, &op, 1);
		replay(&stage, graph, REPLAYS);
		host_graph_free(graph);
		EXPECT_THAT("6, 12, 18 ... are expected of 6, 7, 8 ... works",
			    stage_end(&stage).would_hang == (release == 22602 ? REPLAYS - 2 : 0));
	}
}

/* ---- as measured ----------------------------------------------------------------------------- */

/*
 * The scenarios of docs/results/mask-hazards-h200.txt, measured with real NCCL; without AllGatherV only those with
 * Broadcasts, the others must end as with it.
 */

static void play_some(struct stage *stage, bool is_on, enum op_function function,
		      unsigned int times)
{
	struct host_op op = stage_op(stage, function);

	mask_set(stage, is_on);
	for (unsigned int i = 0; i < times; i++)
		stage_play(stage, &op);
}

/* Captured one by one, with and without events, replayed and freed. */
static void play_graph(struct stage *stage, const enum op_function functions[2], bool first,
		       bool second, size_t times)
{
	struct host_op ops[2] = { stage_op(stage, functions[0]), stage_op(stage, functions[1]) };
	struct host_group group = { .count = 1 };

	if (host_graph_new(stage->host, &group.capture) != OK)
		abort();
	for (unsigned int i = 0; i < 2; i++) {
		mask_set(stage, i == 0 ? first : second);
		group.ops = &ops[i];
		if (host_play_group(&stage->user, &group) != OK)
			abort();
	}
	replay(stage, group.capture, times);
	host_graph_free(group.capture);
}

static const enum op_function two_reduces[2] = { OP_ALL_REDUCE, OP_ALL_REDUCE };
static const enum op_function with_broadcast[2] = { OP_ALL_REDUCE, OP_BROADCAST };

static void play_pair(struct stage *stage, bool send, bool recv)
{
	struct toggle toggle = { stage, send, recv };
	struct host_op ops[2] = { stage_op(stage, OP_SEND), stage_op(stage, OP_RECV) };
	struct host_group group = {
		.ops = ops, .count = 2, .between = toggle_between, .between_arg = &toggle
	};

	if (host_play_group(&stage->user, &group) != OK)
		abort();
}

static void play_self(struct stage *stage, bool is_on)
{
	struct host_op ops[2] = { stage_op(stage, OP_SEND), stage_op(stage, OP_RECV) };

	mask_set(stage, is_on);
	ops[0].peer = ops[1].peer = 1;
	stage_play_group(stage, ops, 2);
}

static void play_roots(struct stage *stage, bool is_on)
{
	struct host_op ops[2] = { stage_op(stage, OP_BROADCAST), stage_op(stage, OP_BROADCAST) };

	mask_set(stage, is_on);
	ops[1].root = 3;
	stage_play_group(stage, ops, 2);
}

static void scene_off(struct stage *stage)
{
	play_some(stage, false, OP_BROADCAST, 2);
	play_graph(stage, with_broadcast, false, false, 4);
	play_self(stage, false);
	play_some(stage, false, OP_ALL_REDUCE, 2);
}

static void scene_switched(struct stage *stage)
{
	for (unsigned int i = 0; i < 120; i++)
		play_some(stage, i % 4 == 1, OP_ALL_REDUCE, 1);
}

static void scene_switched_in_group(struct stage *stage)
{
	struct toggle toggle = { stage, true, false };
	struct host_op ops[2] = { stage_op(stage, OP_ALL_REDUCE), stage_op(stage, OP_ALL_REDUCE) };
	struct host_group group = {
		.ops = ops, .count = 2, .between = toggle_between, .between_arg = &toggle
	};

	for (unsigned int i = 0; i < 2; i++)
		if (host_play_group(&stage->user, &group) != OK)
			abort();
}

static void scene_switched_around_broadcast(struct stage *stage)
{
	for (unsigned int i = 0; i < 48; i++) {
		play_some(stage, i % 2 == 0, OP_ALL_REDUCE, 1);
		play_some(stage, i % 2 == 0, OP_BROADCAST, 1);
	}
}

static void scene_graph(struct stage *stage)
{
	play_graph(stage, two_reduces, true, true, 10);
}

static void scene_on_off_graph(struct stage *stage)
{
	play_some(stage, true, OP_ALL_REDUCE, 2);
	play_graph(stage, two_reduces, false, false, 10);
}

static void scene_half_a_graph(struct stage *stage)
{
	play_graph(stage, two_reduces, true, false, 10);
}

static void scene_graph_then_on(struct stage *stage)
{
	play_graph(stage, two_reduces, false, false, 10);
	play_some(stage, true, OP_ALL_REDUCE, 3);
}

static void scene_no_replay_then_on(struct stage *stage)
{
	play_graph(stage, two_reduces, false, false, 0);
	play_some(stage, true, OP_ALL_REDUCE, 4);
}

static void scene_self_then_on(struct stage *stage)
{
	play_self(stage, false);
	play_some(stage, true, OP_ALL_REDUCE, 3);
}

static void scene_on_self_off(struct stage *stage)
{
	play_some(stage, true, OP_ALL_REDUCE, 2);
	play_self(stage, true);
	play_some(stage, true, OP_ALL_REDUCE, 1);
	play_some(stage, false, OP_ALL_REDUCE, 3);
}

static void scene_send_alone(struct stage *stage)
{
	play_pair(stage, true, false);
}

static void scene_recv_alone(struct stage *stage)
{
	play_pair(stage, false, true);
}

static void scene_graph_with_broadcast(struct stage *stage)
{
	play_graph(stage, with_broadcast, true, true, 20);
}

static void scene_roots_then_on(struct stage *stage)
{
	play_roots(stage, false);
	play_some(stage, true, OP_ALL_REDUCE, 2);
}

static void scene_all_on(struct stage *stage)
{
	play_some(stage, true, OP_ALL_REDUCE, 4);
	play_graph(stage, with_broadcast, true, true, 10);
	play_some(stage, true, OP_BROADCAST, 2);
	play_graph(stage, with_broadcast, true, true, 10);
	play_self(stage, true);
	play_some(stage, true, OP_ALL_REDUCE, 10);
}

enum { PLAIN_2_28, PLAIN_2_30, NO_ALLGATHERV, PLAYED };

static const struct {
	const char *name;
	void (*play)(struct stage *stage);
	const char *ends[PLAYED]; /* and whether any kernel event is shown: "ends", "ends 0" ... */
} scenes[] = {
	{ "no kernel events", scene_off, { "ends 0", "ends 0", "ends 0" } },
	{ "switched between collectives", scene_switched, { "ends", "ends", "ends" } },
	{ "switched within a group", scene_switched_in_group, { "ends", "ends", "ends" } },
	{ "switched around Broadcast",
	  scene_switched_around_broadcast,
	  { "ends", "ends", "ends" } },
	{ "on, a graph", scene_graph, { "ends", "ends", "ends" } },
	{ "on, off, a graph", scene_on_off_graph, { "ends", "ends", "ends" } },
	{ "half a graph on", scene_half_a_graph, { "hangs 0", "hangs 0", "hangs 0" } },
	{ "a graph off, replayed, on", scene_graph_then_on, { "hangs 0", "hangs 0", "hangs 0" } },
	{ "a graph off, no replay, on", scene_no_replay_then_on, { "hangs", "hangs", "hangs" } },
	{ "sends to itself, then on", scene_self_then_on, { "hangs 0", "hangs 0", "hangs 0" } },
	{ "on, sends to itself, off", scene_on_self_off, { "ends", "ends", "ends" } },
	{ "on only for Send", scene_send_alone, { "hangs 0", "hangs 0", "hangs 0" } },
	{ "on only for Recv", scene_recv_alone, { "ends", "ends", "ends" } },
	{ "on, a graph with Broadcast", scene_graph_with_broadcast, { "ends", "hangs 0", "ends" } },
	{ "several roots, on", scene_roots_then_on, { "ends", "hangs 0", "ends" } },
	{ "all on", scene_all_on, { "ends", "hangs", "ends" } },
};

static void scenes_end_as_on_real_nccl(void)
{
	static const char *const releases[] = { "2.28", "2.30", "2.30, no AllGatherV" };

	for (size_t i = 0; i < ARRAY_LENGTH(scenes); i++)
		for (unsigned int played = 0; played < PLAYED; played++) {
			struct host_config config = {
				.release = played == PLAIN_2_28 ? HOST_NCCL_2_28 : HOST_NCCL_2_30,
				.no_allgatherv = played == NO_ALLGATHERV,
			};
			struct stage stage = stage_set(&config, MASK_OFF);
			struct host_counts counts;
			char sentence[200], got[20];

			scenes[i].play(&stage);
			counts = stage_end(&stage);
			snprintf(got, sizeof(got), "%s%s", counts.would_hang > 0 ? "hangs" : "ends",
				 counts.stops[6] == 0 ? " 0" : "");
			snprintf(sentence, sizeof(sentence), "%s: %s %s (got %s)", releases[played],
				 scenes[i].name, scenes[i].ends[played], got);
			EXPECT_THAT(sentence, strcmp(got, scenes[i].ends[played]) == 0);
		}
}

int main(void)
{
	eager_works_are_counted_in_step();
	an_eager_broadcast_is_counted_in_step();
	replays_are_counted_in_step();
	replays_after_an_eager_work_show_old_stamps();
	a_group_of_broadcasts_is_not_counted();
	the_newest_does_not_hang_but_drifts();
	a_graph_with_a_broadcast_hangs();
	a_graph_and_a_switched_mask_hang();
	sends_to_oneself_and_a_switched_mask_hang();
	a_mask_switched_within_a_pair_hangs();
	the_first_with_kernel_events_hangs_in_graphs();
	scenes_end_as_on_real_nccl();
	return tap_done();
}
