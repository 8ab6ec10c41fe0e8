/* Groups, graphs, threads, and what a release does not show. */
#include <pthread.h>

#include "sim/host.h"
#include "tests/unit/sim/stage.h"

/* ---- groups ---------------------------------------------------------------------------------- */

static void group_sorts_by_size(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op ops[3];

	for (unsigned int i = 0; i < 3; i++) {
		ops[i] = stage_op(&stage, OP_ALL_REDUCE);
		ops[i].count = 100 * (i + 1);
	}
	stage_play_group(&stage, ops, 3);
	EXPECT_EQUAL(witness_starts(ABI_GROUP_API), 1);
	EXPECT_EQUAL(witness_nth(ABI_GROUP_API, 0)->depth, 2);
	EXPECT_EQUAL(witness_nth(ABI_COLL_API, 0)->count, 100);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 0)->count, 300);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 0)->parent, witness_nth(ABI_COLL_API, 2)->handle);
	EXPECT_EQUAL(witness_starts(ABI_GROUP), 1);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_LAUNCH), 1);
	EXPECT_THAT("one kernel: all its collectives have one start",
		    witness_nth(ABI_KERNEL_CH, 0)->gpu_ns == witness_nth(ABI_KERNEL_CH, 2)->gpu_ns);
	stage_strike(&stage);
}

static void group_makes_several_kernels(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op ops[5];
	struct host_group group = { .ops = ops, .count = 5, .tasks_per_plan = 2, .depth = 3 };

	for (unsigned int i = 0; i < 5; i++)
		ops[i] = stage_op(&stage, OP_ALL_REDUCE);
	EXPECT_EQUAL(host_play_group(&stage.user, &group), OK);
	host_comm_settle(stage.comm);
	EXPECT_EQUAL(witness_starts(ABI_GROUP), 3);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_LAUNCH), 3);
	EXPECT_EQUAL(witness_starts(ABI_GROUP_API), 1);
	EXPECT_EQUAL(witness_nth(ABI_GROUP_API, 0)->depth, 3);
	EXPECT_THAT("the next kernel starts after the previous one",
		    witness_nth(ABI_KERNEL_CH, 2)->gpu_ns >=
			    witness_nth(ABI_KERNEL_CH, 0)->gpu_ns + 1000);
	stage_strike(&stage);
}

static void group_spans_communicators(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_comm_config config = { .hash = 2, .nranks = 4, .rank = 3 };
	struct host_comm *other;
	struct host_op ops[2];
	struct host_counts counts;

	EXPECT_EQUAL(host_comm_new(stage.host, &other, &config), OK);
	ops[0] = stage_op(&stage, OP_ALL_REDUCE);
	ops[1] = host_op_make(other, OP_ALL_GATHER, 8, OP_INT64);
	stage_play_group(&stage, ops, 2);
	host_comm_settle(other);
	EXPECT_EQUAL(witness_starts(ABI_GROUP_API), 1);
	EXPECT_EQUAL(witness_nth(ABI_GROUP_API, 0)->context, 1);
	EXPECT_EQUAL(witness_nth(ABI_COLL_API, 1)->context, 2);
	EXPECT_EQUAL(witness_nth(ABI_COLL_API, 1)->parent, witness_nth(ABI_GROUP_API, 0)->handle);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_LAUNCH), 2);
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_LAUNCH, 1)->context, 2);
	host_comm_counts(other, &counts);
	EXPECT_EQUAL(counts.shown, 1);
	EXPECT_EQUAL(counts.shown_of[OP_ALL_GATHER], 1);
	host_comm_destroy(other);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void nested_group_splits_the_api_event(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op ops[3];
	struct host_group group = { .ops = ops, .count = 3, .flags = HOST_GROUP_SPLIT_API };

	for (unsigned int i = 0; i < 3; i++)
		ops[i] = stage_op(&stage, OP_ALL_REDUCE);
	EXPECT_EQUAL(host_play_group(&stage.user, &group), OK);
	host_comm_settle(stage.comm);
	EXPECT_EQUAL(witness_starts(ABI_GROUP_API), 2);
	EXPECT_EQUAL(witness_nth(ABI_COLL_API, 2)->parent, witness_nth(ABI_GROUP_API, 1)->handle);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void send_and_recv_share_a_kernel(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op ops[2] = { stage_op(&stage, OP_SEND), stage_op(&stage, OP_RECV) };
	const struct witness_call *first, *second;

	for (unsigned int i = 0; i < 2; i++) {
		ops[i].has_network = true;
		ops[i].first_channel = 4;
	}
	stage_play_group(&stage, ops, 2);
	stage_play_group(&stage, ops, 2);
	EXPECT_EQUAL(witness_starts(ABI_P2P_API), 4);
	EXPECT_EQUAL(witness_starts(ABI_P2P), 4);
	EXPECT_EQUAL(witness_starts(ABI_PROXY_OP), 4);
	EXPECT_EQUAL(witness_nth(ABI_P2P, 0)->peer, 2);
	EXPECT_EQUAL(witness_nth(ABI_P2P, 1)->peer, 0);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 4);
	for (unsigned int i = 0; i < 4; i += 2) {
		first = witness_nth(ABI_KERNEL_CH, i);
		second = witness_nth(ABI_KERNEL_CH, i + 1);
		EXPECT_EQUAL(first->channel, 4);
		EXPECT_EQUAL(first->gpu_ns, second->gpu_ns);
		EXPECT_EQUAL(witness_find('T', first->handle, ABI_KERNEL_CH_STOP)->arg,
			     witness_find('T', second->handle, ABI_KERNEL_CH_STOP)->arg);
	}
	EXPECT(witness_nth(ABI_KERNEL_CH, 2)->gpu_ns > witness_nth(ABI_KERNEL_CH, 0)->gpu_ns);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void all_to_all_is_sends_and_receives(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_TO_ALL);
	struct host_counts counts;

	op.has_network = true;
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness_starts(ABI_P2P_API), 8);
	EXPECT_EQUAL(witness_starts(ABI_P2P), 8);
	EXPECT_THAT("none for the send to itself", witness_starts(ABI_PROXY_OP) == 6);
	EXPECT_THAT("and no kernel channel", witness_starts(ABI_KERNEL_CH) == 6);
	op.function = OP_GATHER;
	stage_play(&stage, &op);
	EXPECT_THAT("a leaf of Gather only sends", witness_starts(ABI_P2P_API) == 9);
	op.function = OP_SCATTER;
	op.root = 1;
	stage_play(&stage, &op);
	EXPECT_THAT("the root of Scatter sends to all and receives its own part",
		    witness_starts(ABI_P2P_API) == 14);
	host_comm_counts(stage.comm, &counts);
	EXPECT_EQUAL(counts.shown, 14);
	EXPECT_EQUAL(counts.shown_of[OP_SEND], 4 + 1 + 4);
	EXPECT_EQUAL(counts.shown_of[OP_ALL_TO_ALL], 0);
	stage_strike(&stage);
}

/* ---- what is not shown ----------------------------------------------------------------------- */

static struct host_counts counts_of(int release, uint8_t function, uint8_t path)
{
	struct stage stage = stage_of(release, STAGE_ALL);
	struct host_op op = stage_op(&stage, function);
	struct host_counts counts;

	op.path = path;
	stage_play(&stage, &op);
	host_comm_counts(stage.comm, &counts);
	if (!stage_counts_agree(&stage))
		counts.calls = 99;
	stage_strike(&stage);
	return counts;
}

static void releases_hide_what_they_hide(void)
{
	struct host_counts counts = counts_of(HOST_NCCL_2_28, OP_BROADCAST, HOST_PATH_KERNEL);

	EXPECT_EQUAL(counts.starts[1], 1);
	EXPECT_EQUAL(counts.api_only, 0);
	counts = counts_of(HOST_NCCL_2_30, OP_BROADCAST, HOST_PATH_KERNEL);
	EXPECT_THAT("Broadcast only shows its call since 2.29",
		    counts.shown == 1 && counts.api_only == 1 && counts.starts[1] == 0 &&
			    counts.starts[11] == 0 && counts.starts[0] == 0);
	counts = counts_of(HOST_NCCL_2_27, OP_ALL_REDUCE, HOST_PATH_SYMMETRIC);
	EXPECT_THAT("symmetric kernels are invisible in 2.27",
		    counts.calls == 1 && counts.hidden == 1 && counts.shown == 0);
	counts = counts_of(HOST_NCCL_2_28, OP_ALL_REDUCE, HOST_PATH_SYMMETRIC);
	EXPECT(counts.shown == 1 && counts.api_only == 1);
	counts = counts_of(HOST_NCCL_2_31, OP_ALL_REDUCE, HOST_PATH_SYMMETRIC);
	EXPECT(counts.shown == 1 && counts.api_only == 0 && counts.starts[6] == 1);
	counts = counts_of(HOST_NCCL_2_28, OP_ALL_GATHER, HOST_PATH_COPY_ENGINE);
	EXPECT(counts.hidden == 1);
	counts = counts_of(HOST_NCCL_2_30, OP_ALL_GATHER, HOST_PATH_COPY_ENGINE);
	EXPECT_THAT("copy engines show CeColl, two barriers and a batch",
		    counts.shown == 1 && counts.api_only == 0 && counts.starts[12] == 1 &&
			    counts.starts[13] == 2 && counts.starts[14] == 1 &&
			    counts.starts[11] == 0);
	counts = counts_of(HOST_NCCL_2_30, OP_PUT_SIGNAL, HOST_PATH_RMA);
	EXPECT(counts.hidden == 1 && counts.shown == 0);
	counts = counts_of(HOST_NCCL_2_30, OP_ALL_REDUCE, HOST_PATH_SIMULATED);
	EXPECT(counts.shown == 1 && counts.api_only == 1);
}

static void nothing_to_do_shows_nothing(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_comm_config config = { .nranks = 1 };
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	struct host_comm *alone;
	struct host_counts counts;

	op.count = 0;
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness.count, 1);
	EXPECT_EQUAL(host_comm_new(stage.host, &alone, &config), OK);
	op = host_op_make(alone, OP_ALL_REDUCE, 5, OP_INT8);
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness.count, 2);
	op = host_op_make(alone, OP_SEND, 0, OP_INT8);
	stage_play(&stage, &op);
	EXPECT_THAT("but an empty Send has its events", witness_starts(ABI_P2P) == 1);
	host_comm_counts(alone, &counts);
	EXPECT(counts.calls == 2 && counts.hidden == 1 && counts.shown == 1);
	op.send_buffer = op.recv_buffer;
	stage_play(&stage, &op);
	EXPECT_THAT("in place to itself: only the call",
		    witness_starts(ABI_P2P_API) == 2 && witness_starts(ABI_P2P) == 1);
	host_comm_destroy(alone);
	stage_strike(&stage);
}

static void collnet_never_stops(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.path = HOST_PATH_COLLNET;
	op.algorithm = OP_COLLNET_DIRECT;
	op.has_network = true;
	op.channels = 2;
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 0)->channels, 0);
	EXPECT_EQUAL(witness_starts(ABI_PROXY_OP), 4);
	EXPECT_EQUAL(witness_nth(ABI_PROXY_OP, 1)->is_send, 0);
	EXPECT_EQUAL(witness_count_of('E', witness_nth(ABI_PROXY_OP, 0)->handle), 0);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 2);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 0);
	stage_strike(&stage);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void capture(struct stage *stage, struct host_graph *graph, const struct host_op *op)
{
	struct host_group group = { .ops = op, .count = 1, .capture = graph };

	if (host_play_group(&stage->user, &group) != OK)
		abort();
}

static void replays_are_seen_through_the_network(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	struct host_graph *graph;
	struct host_counts counts;

	host_graph_new(stage.host, &graph);
	op.has_network = true;
	for (unsigned int i = 0; i < 10; i++)
		capture(&stage, graph, &op);
	host_comm_settle(stage.comm);
	expect_story("capture shows the calls and the launches", pthread_self(),
		     "S8 T23 S9 E9 T24 S11 E11 E8 S8 T23 S9 E9 T24 S11 E11 E8 "
		     "S8 T23 S9 E9 T24 S11 E11 E8 S8 T23 S9 E9 T24 S11 E11 E8 "
		     "S8 T23 S9 E9 T24 S11 E11 E8 S8 T23 S9 E9 T24 S11 E11 E8 "
		     "S8 T23 S9 E9 T24 S11 E11 E8 S8 T23 S9 E9 T24 S11 E11 E8 "
		     "S8 T23 S9 E9 T24 S11 E11 E8 S8 T23 S9 E9 T24 S11 E11 E8");
	EXPECT(witness_nth(ABI_COLL_API, 3)->is_captured);
	EXPECT_EQUAL(host_graph_replay(graph), OK);
	EXPECT_EQUAL(host_graph_replay(graph), OK);
	host_comm_settle(stage.comm);
	EXPECT_EQUAL(witness_starts(ABI_COLL), 20);
	EXPECT_EQUAL(witness_starts(ABI_COLL_API), 10);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 20);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 13)->parent, witness_nth(ABI_COLL_API, 3)->handle);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 13)->sequence, 13);
	EXPECT_THAT("from their own thread",
		    !pthread_equal(witness_nth(ABI_COLL, 0)->thread, pthread_self()) &&
			    !pthread_equal(witness_nth(ABI_COLL, 0)->thread,
					   witness_nth(ABI_KERNEL_CH, 0)->thread));
	host_comm_counts(stage.comm, &counts);
	EXPECT(counts.calls == 10 && counts.captured == 10 && counts.replayed == 20 &&
	       counts.shown == 30);
	EXPECT(stage_counts_agree(&stage));
	host_graph_free(graph);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void replays_in_a_node_need_kernel_channels(void)
{
	for (int release = HOST_NCCL_2_26; release <= HOST_NCCL_2_27; release += 105) {
		struct stage stage = stage_of(release, STAGE_ALL & ~ABI_KERNEL_CH);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
		struct host_graph *graph;

		host_graph_new(stage.host, &graph);
		capture(&stage, graph, &op);
		host_graph_replay(graph);
		host_comm_settle(stage.comm);
		EXPECT_EQUAL(witness_starts(ABI_COLL), release < 22700 ? 0 : 1);
		host_graph_free(graph);
		stage_strike(&stage);
	}
}

static void mask_is_frozen_at_capture(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	struct host_graph *graph;

	host_graph_new(stage.host, &graph);
	capture(&stage, graph, &op);
	*host_mask(stage.host) = 0;
	host_graph_replay(graph);
	host_comm_settle(stage.comm);
	EXPECT_EQUAL(witness_starts(ABI_COLL), 1);
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness_starts(ABI_COLL), 1);
	EXPECT_THAT("the old CollApi handle is stopped again",
		    witness_count_of('E', witness_nth(ABI_COLL_API, 0)->handle) == 2);
	host_graph_free(graph);
	stage_strike(&stage);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void nonblocking_launches_elsewhere(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_comm_config config = { .hash = 9, .flags = HOST_COMM_NONBLOCKING };
	struct host_comm *comm;
	struct host_op op;

	host_comm_new(stage.host, &comm, &config);
	op = host_op_make(comm, OP_ALL_REDUCE, 5, OP_FLOAT16);
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	host_comm_settle(comm);
	expect_story("the user's thread makes its calls and returns", pthread_self(),
		     "S8 T23 S9 E9 T24 E8");
	expect_story("another one launches", witness_nth(ABI_COLL, 0)->thread,
		     "S11 E11 S0 S1 E1 E0");
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_LAUNCH, 0)->parent,
		     witness_nth(ABI_GROUP_API, 0)->handle);
	host_comm_destroy(comm);
	stage_strike(&stage);
}

static void profiler_thread_of_2_31(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_31, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.has_network = true;
	op.user_tag = 77;
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness_nth(ABI_COLL_API, 0)->tag, 77);
	EXPECT_THAT("kernels are no longer polled by the proxy",
		    !pthread_equal(witness_nth(ABI_KERNEL_CH, 0)->thread,
				   witness_nth(ABI_PROXY_OP, 0)->thread));
	expect_story("phases are within their kernel", witness_nth(ABI_KERNEL_CH, 0)->thread,
		     "S6 S15 T31 E15 S15 T31 E15 T22 E6");
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_PHASE, 0)->parent,
		     witness_nth(ABI_KERNEL_CH, 0)->handle);
	stage_strike(&stage);
}

static void proxy_tells_what_it_does(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, ABI_PROXY_CTRL | ABI_KERNEL_CH);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	stage_play(&stage, &op);
	EXPECT(witness_states(ABI_CTRL_APPEND) == 1);
	EXPECT(witness_states(ABI_CTRL_APPEND_END) == 1);
	EXPECT(witness_states(ABI_CTRL_SLEEP) >= 1);
	EXPECT(witness_states(ABI_CTRL_ACTIVE) >= 1);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

struct many {
	struct host *host;
	unsigned int number;
};

static void *many_main(void *arg)
{
	const struct many *many = arg;
	struct host_comm_config config = { .hash = many->number, .nranks = 8, .rank = 2 };
	struct host_user user = { 0 };
	struct host_comm *comm;
	struct host_op op;

	for (unsigned int round = 0; round < 5; round++) {
		if (host_comm_new(many->host, &comm, &config) != OK)
			abort();
		op = host_op_make(comm, OP_ALL_REDUCE, 1000, OP_BFLOAT16);
		op.has_network = true;
		op.channels = 4;
		for (unsigned int i = 0; i < 40; i++)
			if (host_play(&user, &op) != OK)
				abort();
		host_comm_destroy(comm);
	}
	return NULL;
}

static void many_threads_count_exactly(void)
{
	struct host_config config = { .release = HOST_NCCL_2_30, .linked = &witness_linked };
	struct stage stage = { 0 };
	struct many many[4];
	pthread_t threads[4];
	struct host_counts counts;

	witness_reset(STAGE_ALL);
	host_new(&stage.host, &config);
	for (unsigned int i = 0; i < 4; i++) {
		many[i] = (struct many){ stage.host, i };
		if (pthread_create(&threads[i], NULL, many_main, &many[i]) != 0)
			abort();
	}
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	host_counts(stage.host, &counts);
	EXPECT_EQUAL(counts.shown, 4 * 5 * 40);
	EXPECT_EQUAL(counts.starts[3], 4 * 5 * 40 * 8);
	EXPECT_EQUAL(counts.stops[6], 4 * 5 * 40 * 4);
	EXPECT(stage_counts_agree(&stage));
	host_free(stage.host);
}

int main(void)
{
	group_sorts_by_size();
	group_makes_several_kernels();
	group_spans_communicators();
	nested_group_splits_the_api_event();
	send_and_recv_share_a_kernel();
	all_to_all_is_sends_and_receives();
	releases_hide_what_they_hide();
	nothing_to_do_shows_nothing();
	collnet_never_stops();
	replays_are_seen_through_the_network();
	replays_in_a_node_need_kernel_channels();
	mask_is_frozen_at_capture();
	nonblocking_launches_elsewhere();
	profiler_thread_of_2_31();
	proxy_tells_what_it_does();
	many_threads_count_exactly();
	return tap_done();
	return tap_done();
}
