/* Times: when events happen, with a clock set by the test, and GPU timestamps. */
#include "sim/host.h"
#include "tests/unit/sim/stage.h"

static uint64_t now_ns;

static uint64_t test_clock(void *arg)
{
	(void)arg;
	return load_relaxed(&now_ns);
}

static struct stage timed_stage(int release, enum host_time time, int64_t gpu_offset_ns)
{
	struct host_config config = {
		.release = release,
		.time = time,
		.clock = test_clock,
		.gpu_offset_ns = gpu_offset_ns,
	};

	store_relaxed(&now_ns, 1000000);
	return stage_set(&config, STAGE_ALL);
}

/* On return, everything due by then has happened. */
static size_t move_to(struct stage *stage, uint64_t ns)
{
	store_relaxed(&now_ns, ns);
	host_tick(stage->host);
	return host_comm_settle(stage->comm);
}

static uint64_t stop_stamp(size_t nth)
{
	const struct witness_call *stop =
		witness_find('T', witness_nth(ABI_KERNEL_CH, nth)->handle, ABI_KERNEL_CH_STOP);

	return stop ? stop->arg : 0;
}

static void virtual_stamps_follow_the_clock(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_VIRTUAL, 220000);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.channels = 3;
	op.duration_ns = 5000;
	op.start_skew_ns = 10;
	op.stop_skew_ns = 100;
	stage_play(&stage, &op);
	for (unsigned int i = 0; i < 3; i++) {
		EXPECT_EQUAL(witness_nth(ABI_KERNEL_CH, i)->gpu_ns, 1220000 + i * 10);
		EXPECT_EQUAL(stop_stamp(i), 1225000 + i * 100);
	}
	stage_play(&stage, &op);
	EXPECT_THAT("a kernel starts when the previous one has ended on all channels",
		    witness_nth(ABI_KERNEL_CH, 3)->gpu_ns == 1225200);
	move_to(&stage, 9000000);
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_CH, 6)->gpu_ns, 9220000);
	stage_strike(&stage);
}

static void kernel_takes_its_time(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_REAL, -50);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.start_ns = 1000500;
	op.duration_ns = 2000;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 1);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 0);
	EXPECT_EQUAL(move_to(&stage, 1000499), 1);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 0);
	EXPECT_EQUAL(move_to(&stage, 1000700), 1);
	EXPECT_THAT("started when it was due, not when it was noticed",
		    witness_nth(ABI_KERNEL_CH, 0)->gpu_ns == 1000450);
	EXPECT_EQUAL(stop_stamp(0), 0);
	EXPECT_EQUAL(move_to(&stage, 1002499), 1);
	EXPECT_EQUAL(move_to(&stage, 1002500), 0);
	EXPECT_EQUAL(stop_stamp(0), 1002450);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void kernels_of_a_communicator_queue_up(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_REAL, 0);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.duration_ns = 1000;
	for (unsigned int i = 0; i < 3; i++)
		EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 3);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1);
	EXPECT_EQUAL(move_to(&stage, 1001000), 2);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 2);
	EXPECT_EQUAL(move_to(&stage, 1009000), 0);
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_CH, 1)->gpu_ns, 1001000);
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_CH, 2)->gpu_ns, 1002000);
	EXPECT_EQUAL(stop_stamp(2), 1003000);
	stage_strike(&stage);
}

static int state_of(size_t nth_step)
{
	uint64_t handle = witness_nth(ABI_PROXY_STEP, nth_step)->handle;

	return witness_find('E', handle, 0) ? -1 : witness_last_state(handle);
}

static void transfers_take_their_time(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_REAL, 0);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.has_network = true;
	op.steps = 2;
	op.duration_ns = 2000; /* a step every 1000 */
	op.edge_count = 2;
	op.edges[0] = (struct host_edge){ .peer = 0, .wait_ns = { 400, 10, 300 } };
	op.edges[1] =
		(struct host_edge){ .peer = 2, .is_send = true, .wait_ns = { 100, 200, 600 } };
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	host_comm_settle(stage.comm);
	EXPECT_EQUAL(witness_starts(ABI_PROXY_STEP), 4);
	EXPECT_EQUAL(state_of(0), ABI_STEP_RECV_WAIT);
	EXPECT_EQUAL(state_of(1), ABI_STEP_SEND_GPU_WAIT);
	move_to(&stage, 1000100);
	EXPECT_EQUAL(state_of(1), ABI_STEP_SEND_PEER_WAIT);
	move_to(&stage, 1000300);
	EXPECT_EQUAL(state_of(1), ABI_STEP_SEND_WAIT);
	EXPECT_EQUAL(state_of(0), ABI_STEP_RECV_WAIT);
	move_to(&stage, 1000400);
	EXPECT_EQUAL(state_of(0), ABI_STEP_RECV_FLUSH_WAIT);
	move_to(&stage, 1000410);
	EXPECT_EQUAL(state_of(0), ABI_STEP_RECV_GPU_WAIT);
	move_to(&stage, 1000900);
	EXPECT_EQUAL(state_of(0), -1);
	EXPECT_EQUAL(state_of(1), -1);
	EXPECT_EQUAL(state_of(3), ABI_STEP_SEND_GPU_WAIT);
	EXPECT_EQUAL(move_to(&stage, 1001899), 1);
	EXPECT_EQUAL(move_to(&stage, 1002000), 0);
	EXPECT_EQUAL(stop_stamp(0), 1002000);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void slow_transfer_keeps_the_kernel(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_REAL, 7);
	struct host_op op = stage_op(&stage, OP_SEND);

	op.has_network = true;
	op.edge_count = 1;
	op.edges[0] = (struct host_edge){ .peer = 2, .is_send = true, .wait_ns = { 0, 0, 90000 } };
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(move_to(&stage, 1050000), 1);
	EXPECT_EQUAL(state_of(0), ABI_STEP_SEND_WAIT);
	EXPECT_EQUAL(move_to(&stage, 1090000), 0);
	EXPECT_EQUAL(stop_stamp(0), 1090007);
	stage_strike(&stage);
}

static void hang_is_released_in_time(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_31, HOST_TIME_REAL, 0);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.has_network = true;
	op.stuck = HOST_STUCK_KERNEL;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(move_to(&stage, 5000000), 1);
	EXPECT_EQUAL(state_of(0), ABI_STEP_RECV_GPU_WAIT);
	EXPECT_EQUAL(state_of(1), ABI_STEP_SEND_GPU_WAIT);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 0);
	host_comm_release(stage.comm);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 1);
	EXPECT_EQUAL(move_to(&stage, 5002000), 0);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1);
	EXPECT_THAT("the kernel started when it was released",
		    witness_nth(ABI_KERNEL_CH, 0)->gpu_ns == 5000000);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static uint64_t others_are_there; /* from then on; 0: not yet */

static bool test_gate(void *arg, uint64_t now, struct host_gate *gate)
{
	(void)arg;
	(void)now;
	*gate = (struct host_gate){ .begin_ns = load_relaxed(&others_are_there),
				    .duration_ns = 1000 };
	return gate->begin_ns != 0;
}

static void operation_waits_for_others(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_REAL, 0);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	store_relaxed(&others_are_there, 0);
	op.has_network = true;
	op.gate = test_gate;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(move_to(&stage, 3000000), 1);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1);
	EXPECT_EQUAL(state_of(0), ABI_STEP_RECV_WAIT);
	EXPECT_EQUAL(state_of(1), ABI_STEP_SEND_GPU_WAIT);
	store_relaxed(&others_are_there, 3500000);
	EXPECT_EQUAL(move_to(&stage, 3500999), 1);
	EXPECT_EQUAL(move_to(&stage, 3501000), 0);
	EXPECT_EQUAL(stop_stamp(0), 3501000);
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	store_relaxed(&others_are_there, 0);
	stage_strike(&stage);
	EXPECT_THAT("destroy opens the gate", stage_is_balanced());
}

static void group_waits_as_a_whole(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_REAL, 0);
	struct host_op ops[2] = { stage_op(&stage, OP_SEND), stage_op(&stage, OP_RECV) };
	struct host_group group = { .ops = ops, .count = 2 };

	ops[0].gate = ops[1].gate = test_gate;
	store_relaxed(&others_are_there, 0);
	EXPECT_EQUAL(host_play_group(&stage.user, &group), OK);
	EXPECT_EQUAL(host_play_group(&stage.user, &group), OK);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 4);
	store_relaxed(&others_are_there, 1005000);
	(void)move_to(&stage, 1005000);
	EXPECT_EQUAL(move_to(&stage, 1020000), 0);
	EXPECT_THAT("nothing of the second group starts before the first has ended",
		    witness_nth(ABI_KERNEL_CH, 2)->gpu_ns >= stop_stamp(0) &&
			    witness_nth(ABI_KERNEL_CH, 3)->gpu_ns >= stop_stamp(0));
	stage_strike(&stage);
}

static void connection_of_one_channel(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_VIRTUAL, 0);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.has_network = true;
	op.channels = 3;
	op.edge_count = 2;
	op.edges[0] = (struct host_edge){ .peer = 0 };
	op.edges[1] = (struct host_edge){ .peer = 3, .is_send = true, .channel_plus_1 = 2 };
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness_starts(ABI_PROXY_OP), 3 + 1);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void destroy_does_not_wait_for_a_clock_that_stands(void)
{
	struct stage stage = timed_stage(HOST_NCCL_2_28, HOST_TIME_REAL, 0);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

	op.has_network = true;
	op.start_ns = 77000000;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 1);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 1);
}

/* With the system's clock: it ends by itself. */
static void real_clock_runs(void)
{
	struct host_config config = { .release = HOST_NCCL_2_28, .time = HOST_TIME_REAL };
	struct stage stage = stage_set(&config, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	uint64_t before = host_now(stage.host);

	op.has_network = true;
	op.duration_ns = 3000000;
	EXPECT_EQUAL(host_play(&stage.user, &op), OK);
	EXPECT_EQUAL(host_comm_settle(stage.comm), 0);
	EXPECT(host_now(stage.host) >= before + 3000000);
	EXPECT(stop_stamp(0) >= witness_nth(ABI_KERNEL_CH, 0)->gpu_ns + 3000000);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

int main(void)
{
	virtual_stamps_follow_the_clock();
	kernel_takes_its_time();
	kernels_of_a_communicator_queue_up();
	transfers_take_their_time();
	slow_transfer_keeps_the_kernel();
	hang_is_released_in_time();
	operation_waits_for_others();
	group_waits_as_a_whole();
	connection_of_one_channel();
	destroy_does_not_wait_for_a_clock_that_stands();
	real_clock_runs();
	return tap_done();
}
