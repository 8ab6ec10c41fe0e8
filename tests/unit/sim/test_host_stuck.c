/* Faults: operations that hang, communicators that are aborted or end too early. */
#include <pthread.h>

#include "sim/host.h"
#include "tests/unit/sim/stage.h"

/* ---- stuck ----------------------------------------------------------------------------------- */

static void hangs_where_it_is_told_to(void)
{
	static const struct {
		enum host_stuck stuck;
		int send_state, recv_state; /* of the first step of channel 0; -1: stopped */
	} cases[] = {
		{ HOST_STUCK_SEND_GPU, ABI_STEP_SEND_GPU_WAIT, -1 },
		{ HOST_STUCK_SEND_PEER, ABI_STEP_SEND_PEER_WAIT, -1 },
		{ HOST_STUCK_SEND_NET, ABI_STEP_SEND_WAIT, -1 },
		{ HOST_STUCK_RECV_NET, -1, ABI_STEP_RECV_WAIT },
		{ HOST_STUCK_RECV_FLUSH, -1, ABI_STEP_RECV_FLUSH_WAIT },
		{ HOST_STUCK_RECV_GPU, -1, ABI_STEP_RECV_GPU_WAIT },
		{ HOST_STUCK_KERNEL, ABI_STEP_SEND_GPU_WAIT, ABI_STEP_RECV_GPU_WAIT },
		{ HOST_STUCK_KERNEL_END, -1, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
		uint64_t recv, send;

		printf("# stuck %d\n", cases[i].stuck);
		op.has_network = true;
		op.channels = 2;
		op.stuck = (uint8_t)cases[i].stuck;
		op.stuck_channel = 0;
		if (op.stuck == HOST_STUCK_KERNEL)
			op.stuck_channel = -1;
		EXPECT_EQUAL(host_play(&stage.user, &op), OK);
		EXPECT_EQUAL(host_comm_settle(stage.comm), 1);
		recv = witness_nth(ABI_PROXY_STEP, 0)->handle;
		send = witness_nth(ABI_PROXY_STEP, 1)->handle;
		EXPECT_EQUAL(witness_find('E', send, 0) ? -1 : witness_last_state(send),
			     cases[i].send_state);
		EXPECT_EQUAL(witness_find('E', recv, 0) ? -1 : witness_last_state(recv),
			     cases[i].recv_state);
		EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), op.stuck == HOST_STUCK_KERNEL ? 0 : 2);
		EXPECT_EQUAL(witness_states(ABI_KERNEL_CH_STOP),
			     op.stuck == HOST_STUCK_KERNEL ? 0 : 1);
		host_comm_release(stage.comm);
		EXPECT_EQUAL(host_comm_settle(stage.comm), 0);
		stage_strike(&stage);
		EXPECT(stage_is_balanced());
	}
}

static void later_operations_wait_behind(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.has_network = true;
	op.stuck = HOST_STUCK_RECV_NET;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	op.stuck = HOST_STUCK_NONE;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 2);
	EXPECT_EQUAL(witness_starts(ABI_PROXY_OP), 4);
	EXPECT_THAT("its receive is queued behind the stuck one: no state 19",
		    witness_last_state(witness_nth(ABI_PROXY_OP, 2)->handle) == -1);
	EXPECT_THAT("its send has started and waits for the kernel",
		    witness_last_state(witness_nth(ABI_PROXY_STEP, 2)->handle) ==
			    ABI_STEP_SEND_GPU_WAIT);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1);
	host_comm_release(stage.comm);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 0);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 2);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void hangs_at_a_step_towards_a_peer(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	size_t stopped = 0;

	op.has_network = true;
	op.steps = 20;
	op.edge_count = 2;
	op.edges[0] = (struct host_edge){ .peer = 0, .is_send = true };
	op.edges[1] = (struct host_edge){ .peer = 3, .is_send = true };
	op.stuck = HOST_STUCK_SEND_NET;
	op.stuck_peer = 3;
	op.stuck_step = 12;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 1);
	for (size_t i = 0; i < witness_starts(ABI_PROXY_STEP); i++)
		stopped += witness_count_of('E', witness_nth(ABI_PROXY_STEP, i)->handle);
	EXPECT_EQUAL(stopped, 20 + 12);
	EXPECT_THAT("eight are in flight behind it", witness_starts(ABI_PROXY_STEP) == 20 + 20);
	EXPECT_EQUAL(witness_count_of('E', witness_nth(ABI_PROXY_OP, 0)->handle), 1);
	EXPECT_EQUAL(witness_count_of('E', witness_nth(ABI_PROXY_OP, 1)->handle), 0);
	stage_strike(&stage);
	EXPECT_THAT("destroy releases it", stage_is_balanced());
}

static void *play_main(void *arg)
{
	struct stage *stage = arg;
	struct host_op op = stage_op(stage, OP_ALL_REDUCE);

	op.stuck = HOST_STUCK_BEFORE_LAUNCH;
	return (void *)(intptr_t)host_play(&stage->user, &op);
}

static void wait_for_calls(size_t count)
{
	size_t seen = 0;

	while (seen < count) {
		pthread_mutex_lock(&witness.lock);
		seen = witness.count;
		pthread_mutex_unlock(&witness.lock);
		sched_yield();
	}
}

static void hangs_before_the_launch(void)
{
	for (unsigned int is_abort = 0; is_abort < 2; is_abort++) {
		struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
		pthread_t thread;
		void *status;

		if (pthread_create(&thread, NULL, play_main, &stage) != 0)
			abort();
		wait_for_calls(6); /* init, GroupApi, 23, CollApi start and stop, 24 */
		EXPECT_EQUAL(witness_starts(ABI_KERNEL_LAUNCH), 0);
		if (is_abort)
			host_comm_abort(stage.comm);
		else
			host_comm_release(stage.comm);
		pthread_join(thread, &status);
		EXPECT_EQUAL((intptr_t)status, is_abort ? ERR_GONE : OK);
		EXPECT_EQUAL(witness_starts(ABI_KERNEL_LAUNCH), is_abort ? 0 : 1);
		stage_strike(&stage);
	}
}

static void launch_thread_hangs_alone(void)
{
	for (unsigned int is_abort = 0; is_abort < 2; is_abort++) {
		struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
		struct host_comm_config config = { .hash = 9, .flags = HOST_COMM_NONBLOCKING };
		struct host_comm *stuck, *other;
		struct host_op op;

		host_comm_new(stage.host, &stuck, &config);
		host_comm_new(stage.host, &other, &config);
		op = host_op_make(stuck, OP_ALL_REDUCE, 5, OP_FLOAT16);
		op.stuck = HOST_STUCK_BEFORE_LAUNCH;
		EXPECT_EQUAL(host_play(&stage.user, &op), OK);
		op = host_op_make(other, OP_ALL_REDUCE, 5, OP_FLOAT16);
		EXPECT_EQUAL(host_play(&stage.user, &op), OK);
		EXPECT_EQUAL(host_comm_settle(other), 0);
		EXPECT_EQUAL(witness_starts(ABI_COLL), 1);
		if (is_abort)
			host_comm_abort(stuck);
		else
			host_comm_destroy(stuck);
		EXPECT_EQUAL(witness_starts(ABI_COLL), is_abort ? 1 : 2);
		host_comm_destroy(other);
		stage_strike(&stage);
	}
}

/* ---- communicators that end badly ------------------------------------------------------------ */

static void abort_leaves_children_open(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	size_t count;

	op.has_network = true;
	op.stuck = HOST_STUCK_SEND_NET;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	host_comm_settle(stage.comm);
	host_comm_abort(stage.comm);
	EXPECT_EQUAL(witness.calls[witness.count - 1].what, 'F');
	EXPECT_EQUAL(witness_count_of('E', witness_nth(ABI_PROXY_OP, 1)->handle), 0);
	EXPECT_EQUAL(witness_count_of('E', witness_nth(ABI_KERNEL_CH, 0)->handle), 0);
	count = witness.count;
	EXPECT_EQUAL(host_play(&stage.user, &op), ERR_GONE);
	host_comm_destroy(stage.comm);
	EXPECT_EQUAL(witness.count, count);
	host_free(stage.host);
}

static void revoke_finalizes_with_destroy(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.stuck = HOST_STUCK_KERNEL;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	host_comm_settle(stage.comm);
	host_comm_revoke(stage.comm);
	EXPECT(witness.calls[witness.count - 1].what != 'F');
	EXPECT_EQUAL(host_play(&stage.user, &op), ERR_GONE);
	host_comm_destroy(stage.comm);
	EXPECT_EQUAL(witness.calls[witness.count - 1].what, 'F');
	host_free(stage.host);
}

static void full_queue_waits_and_an_abort_frees(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	struct host_counts counts;

	for (unsigned int i = 0; i < 2000; i++)
		if (host_play(&stage.user, &op) != OK)
			abort();
	EXPECT(host_comm_wait(stage.comm, 100));
	EXPECT_EQUAL(host_comm_settle(stage.comm), 0);
	host_comm_counts(stage.comm, &counts);
	EXPECT_EQUAL(counts.stops[6], 2000);
	host_comm_abort(stage.comm);
	EXPECT(!host_comm_wait(stage.comm, 0));
	host_free(stage.host);
}

static void null_context_for_old_releases(void)
{
	for (int release = HOST_NCCL_2_27; release <= HOST_NCCL_2_28; release += 102) {
		struct host_comm_config config = { .flags = HOST_COMM_NULL_CONTEXT };
		struct stage stage = stage_of(release, STAGE_ALL);
		struct host_comm *comm;
		size_t count;

		host_comm_new(stage.host, &comm, &config);
		count = witness.count;
		host_comm_destroy(comm);
		EXPECT_EQUAL(witness.count - count, release < 22800 ? 1 : 0);
		if (release < 22800)
			EXPECT_EQUAL(witness.calls[witness.count - 1].context, 0);
		stage_strike(&stage);
	}
}

static uint64_t manual_now;

static uint64_t manual_clock(void *arg)
{
	(void)arg;
	return load_relaxed(&manual_now);
}

static void children_come_after_finalize(void)
{
	struct host_config config = { .release = HOST_NCCL_2_28,
				      .time = HOST_TIME_REAL,
				      .clock = manual_clock };
	struct stage stage = stage_set(&config, STAGE_ALL | ABI_PROXY_CTRL);
	struct host_comm_config share = { .hash = 5, .nranks = 4, .rank = 1, .share = stage.comm };
	struct host_comm *child;
	struct host_op op;
	size_t finalized;

	store_relaxed(&manual_now, 1000);
	host_comm_new(stage.host, &child, &share);
	op = host_op_make(child, OP_ALL_REDUCE, 1, OP_INT8);
	op.has_network = true;
	op.start_ns = 5000;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	host_comm_settle(child);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 0);
	host_comm_destroy(child);
	store_relaxed(&manual_now, 1000000);
	host_tick(stage.host);
	host_comm_settle(stage.comm);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1);
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_CH, 0)->context, 2);
	for (finalized = 0; witness.calls[finalized].what != 'F';)
		finalized++;
	EXPECT_EQUAL(witness.calls[finalized].context, 2);
	EXPECT_THAT("its kernel channel came after its finalize",
		    witness_nth(ABI_KERNEL_CH, 0) - witness.calls > (ptrdiff_t)finalized);
	EXPECT_EQUAL(witness_nth(ABI_PROXY_CTRL, 0)->context, 1);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void shared_proxy_outlives_its_maker(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_comm_config share = { .hash = 5, .nranks = 4, .share = stage.comm };
	struct host_comm *child;
	struct host_op op;

	host_comm_new(stage.host, &child, &share);
	op = stage_op(&stage, OP_ALL_REDUCE);
	op.has_network = true;
	op.channels = 64;
	for (unsigned int i = 0; i < 20; i++)
		if (host_play(&stage.user, &op) != OK)
			abort();
	host_comm_destroy(stage.comm);
	host_comm_settle(child);
	EXPECT_THAT("its owner waits for its own operations before finalize",
		    witness.calls[witness.count - 1].what == 'F');
	EXPECT(stage_is_balanced());
	witness.count = 0;
	op = host_op_make(child, OP_ALL_REDUCE, 1, OP_INT8);
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(host_comm_settle(child), 0);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1);
	host_comm_destroy(child);
	host_free(stage.host);
}

static void last_stop_is_purged(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_31, STAGE_ALL & ~ABI_KERNEL_PHASE);
	struct host_comm_config config = { .hash = 5, .flags = HOST_COMM_LAST_STOP_LOST };
	struct host_comm *comm;
	struct host_op op;

	host_comm_new(stage.host, &comm, &config);
	op = host_op_make(comm, OP_ALL_REDUCE, 1, OP_INT8);
	op.stuck = HOST_STUCK_KERNEL_END;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	host_comm_settle(comm);
	host_comm_destroy(comm);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1);
	EXPECT(witness_states(ABI_KERNEL_CH_STOP) <= 1);
	stage_strike(&stage);
}

int main(void)
{
	hangs_where_it_is_told_to();
	later_operations_wait_behind();
	hangs_at_a_step_towards_a_peer();
	hangs_before_the_launch();
	launch_thread_hangs_alone();
	abort_leaves_children_open();
	revoke_finalizes_with_destroy();
	full_queue_waits_and_an_abort_frees();
	null_context_for_old_releases();
	children_come_after_finalize();
	shared_proxy_outlives_its_maker();
	last_stop_is_purged();
	return tap_done();
}
