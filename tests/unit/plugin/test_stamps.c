/*
 * GPU stamps that belong to other work, one fault at a time: each is detected and flagged. What
 * only looks like a fault is not flagged.
 */
#include "common/op.h"
#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

static uint32_t comm_id(void *context)
{
	return hot_comm(context)->shared->info.id;
}

static bool is_marked(const struct op_record *op)
{
	return op->flags & OP_STAMPS_UNTRUSTED;
}

static bool is_timed(const struct op_record *op)
{
	return op->time_source == OP_TIME_KERNEL_GPU && !is_marked(op) &&
	       op_duration_ns(op) == 20000;
}

/*
 * Self sends advance the device's counter but not the host's: from then on the stamps are those of
 * earlier works.
 */
static void drift_after_a_self_send_is_found(void)
{
	void *context = play_init(1, 2, 2, 0), *kernels[2];
	struct stamp_op good[3], late;
	uint32_t id = comm_id(context);

	for (int i = 0; i < 3; i++)
		good[i] = stamp_good(context);
	stamp_move(50 * STAMP_MS);
	/*
	 * The peer is 2 s late. Channel 0 shows the last one's stamps, at once; channel 1 is right.
	 */
	late = stamp_issue(context, 2, 10000, 2 * STAMP_S);
	stamp_move(570000);
	kernels[0] = play_kernel_start(context, late.op.task, 0, stamp_gpu(good[2].start_ns));
	play_kernel_stop(kernels[0], stamp_gpu(good[2].stop_ns));
	kernels[1] = play_kernel_start(context, late.op.task, 1, stamp_gpu(late.start_ns));
	EXPECT_THAT("drift: with one channel stopped too early it is still running",
		    live_find(handle_decode(recorder.salt, late.op.task))->op.state == OP_RUNNING);
	stamp_move(2 * STAMP_S);
	play_kernel_stop(kernels[1], stamp_gpu(late.stop_ns));
	stamp_good(context);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("drift: those before are timed", is_timed(stamp_record(id, 3)));
	EXPECT_THAT("drift: a start from before the call is marked",
		    stamp_record(id, 4)->flags & OP_FLAG_STAMP_STALE);
	EXPECT_THAT("drift: it is not used as a time",
		    stamp_record(id, 4)->time_source != OP_TIME_KERNEL_GPU);
	EXPECT_THAT("drift: the channel stays untrusted, plausible or not",
		    stamp_record(id, 5)->flags & OP_FLAG_STAMP_CHANNEL);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.untrusted, 2);
	EXPECT_EQUAL(recorder.region.comms[id - 1].untrusted_channels[0], 1);
}

/* One work off, back to back: no stamp is older than its call, each is its predecessor's. */
static void drift_under_a_deep_queue_is_found(void)
{
	void *context = play_init(2, 1, 2, 0);
	uint32_t id = comm_id(context);
	struct stamp_op queue[8];

	for (int i = 0; i < 8; i++)
		queue[i] = stamp_issue(context, 1, 1000000 + (uint64_t)i * 30000, 20000);
	for (int i = 0; i < 8; i++) {
		struct stamp_op shown = queue[i < 4 ? i : i - 1];

		shown.op = queue[i].op;
		stamp_report(context, &shown, 1, 40000);
	}
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("drift: before it, operations are timed", is_timed(stamp_record(id, 4)));
	EXPECT_THAT("drift: after it none is", is_marked(stamp_record(id, 6)) &&
						       is_marked(stamp_record(id, 7)) &&
						       is_marked(stamp_record(id, 8)));
}

/* The kernel starts and ends between two polls: no start, and the stop goes to an old handle. */
static void a_lost_start_is_found(void)
{
	void *context = play_init(3, 1, 2, 0);
	uint32_t id = comm_id(context);
	struct stamp_op before = stamp_issue(context, 2, 10000, 20000), lost;
	uint64_t odd = recorder.region.header->odd[ODD_REPEATED_STOP];

	stamp_report(context, &before, 2, 2000);
	stamp_move(5000);
	lost = stamp_issue(context, 2, 10000, 20000);
	stamp_move(12000);
	lost.kernels[0] = play_kernel_start(context, lost.op.task, 0, stamp_gpu(lost.start_ns));
	stamp_move(30000);
	play_kernel_stop(lost.kernels[0], stamp_gpu(lost.stop_ns));
	play_kernel_stop(before.kernels[1], stamp_gpu(lost.stop_ns));
	stamp_good(context);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("lost start: one channel fewer than announced is marked",
		    stamp_record(id, 2)->flags & OP_FLAG_CHANNELS_MISSING);
	EXPECT_EQUAL(stamp_record(id, 2)->kernels_started, 1);
	EXPECT_THAT("foreign stop: the operation that got it is marked",
		    stamp_record(id, 1)->flags & OP_FLAG_FOREIGN_STOP);
	EXPECT_THAT("foreign stop: it changes no time", is_timed(stamp_record(id, 1)));
	EXPECT_THAT("foreign stop: it is counted",
		    recorder.region.header->odd[ODD_REPEATED_STOP] == odd + 1);
	EXPECT_THAT("lost start: the next one is timed again", is_timed(stamp_record(id, 3)));
}

/* All channels lost: nothing marks its end until a later one is done. */
static void an_operation_without_any_start_ends(void)
{
	void *context = play_init(4, 1, 2, 0);
	uint32_t id = comm_id(context);
	struct stamp_op before = stamp_good(context);

	stamp_issue(context, 1, 10000, 20000);
	stamp_move(50000);
	play_kernel_stop(before.kernels[0], stamp_gpu(stamp_now_ns));
	for (int i = 0; i < 20; i++) {
		stamp_move(STAMP_S);
		stamp_good(context);
	}
	EXPECT_THAT("lost start: it does not stay in flight", stamp_record(id, 2) != NULL);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(stamp_record(id, 2)->time_source, OP_TIME_HOST);
	EXPECT(stamp_record(id, 2)->flags & OP_FLAG_CHANNELS_MISSING);
}

/*
 * The proxy thread sleeps while 100 works run; NCCL keeps 64 stamps: each slot has the last one's.
 */
static void an_overrun_ring_of_stamps_is_found(void)
{
	enum { WORKS = 100, RING = 64 };
	void *context = play_init(5, 1, 2, 0);
	uint32_t id = comm_id(context);
	struct stamp_op works[WORKS], before = stamp_good(context);
	unsigned int wrong = 0, good = 0;

	(void)before;
	for (int i = 0; i < WORKS; i++)
		works[i] = stamp_issue(context, 1, 10000 + (uint64_t)i * 30000, 20000);
	stamp_move(works[WORKS - 1].stop_ns + 100000 - stamp_now_ns);
	for (int i = 0; i < WORKS; i++) {
		struct stamp_op shown = works[i + RING < WORKS ? i + RING : i];
		void *kernel =
			play_kernel_start(context, works[i].op.task, 0, stamp_gpu(shown.start_ns));

		play_kernel_stop(kernel, stamp_gpu(shown.stop_ns));
		stamp_move(1000);
	}
	for (int i = 0; i < 5; i++)
		stamp_good(context);
	ncclProfiler_v5.finalize(context);
	for (uint64_t i = 0; i < WORKS - RING; i++)
		wrong += !(stamp_record(id, 2 + i)->flags & OP_FLAG_STAMP_OVERRUN);
	EXPECT_THAT("overrun: every stamp of other work is marked", wrong == 0);
	for (uint64_t i = 0; i < 5; i++)
		good += is_timed(stamp_record(id, 2 + WORKS + i));
	EXPECT_THAT("overrun: after the queue, operations are timed again", good == 5);
	EXPECT_EQUAL(recorder.region.comms[id - 1].untrusted_channels[0], 0);
}

static void a_deep_queue_alone_is_no_overrun(void)
{
	enum { WORKS = 200 };
	void *context = play_init(6, 1, 2, 0);
	uint32_t id = comm_id(context);
	struct stamp_op works[WORKS];

	for (int i = 0; i < WORKS; i++)
		works[i] = stamp_issue(context, 1, 10000 + (uint64_t)i * 30000, 20000);
	for (int i = 0; i < WORKS; i++)
		stamp_report(context, &works[i], 1, 3000);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.timed, WORKS);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.untrusted, 0);
}

enum { NETWORK_WORKS = 200, NETWORK_LATE_NS = 250000 };

/* NCCL queues the transfer to the other rank right after the launch. */
static void *send_queue(void *context, const struct stamp_op *work)
{
	return play_proxy_start(context, work->op.task, getpid(), 0, 1, true);
}

static void send_begin(void *context, void *proxy)
{
	play_state(play_step_start(context, proxy, 0), ABI_STEP_SEND_GPU_WAIT, 0);
}

/*
 * A deep queue with late callbacks, over the network: transfers begin `ahead` works early
 * (negative: late), and the first kernel has several works. Returns the communicator.
 */
static uint32_t play_network(uint64_t hash, int ahead, int works_of_first)
{
	void *context = play_init(hash, 2, 2, 0), *proxies[NETWORK_WORKS], *plan;
	uint32_t id = comm_id(context);
	struct stamp_op works[NETWORK_WORKS], first = stamp_issue(context, 1, 10000, 20000);

	/* In time: it gives the offset between the clocks. */
	proxies[0] = send_queue(context, &first);
	send_begin(context, proxies[0]);
	stamp_report(context, &first, 1, 2000);
	play_stop(proxies[0]);
	plan = stamp_plan(context);
	for (int i = 0; i < works_of_first; i++)
		(void)stamp_call(context, 1, plan);
	for (int i = 0; i < NETWORK_WORKS; i++) {
		works[i] = stamp_issue(context, 1, 10000 + (uint64_t)i * 300000, 290000);
		proxies[i] = send_queue(context, &works[i]);
	}
	for (int i = 0, begun = 0; i < NETWORK_WORKS; i++) {
		while (begun <= i + ahead && begun < NETWORK_WORKS)
			send_begin(context, proxies[begun++]);
		stamp_report(context, &works[i], 1, NETWORK_LATE_NS);
	}
	for (int i = 0; i < NETWORK_WORKS; i++)
		play_stop(proxies[i]);
	ncclProfiler_v5.finalize(context);
	return id;
}

/* The thread that reports also moves the data: late or not, no later work can be done. */
static void the_network_holds_the_gpu(void)
{
	uint32_t id = play_network(60, 2, 1);

	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.untrusted, 0);
	EXPECT(recorder.region.comms[id - 1].counts.timed > NETWORK_WORKS);
	id = play_network(64, -3, 1);
	EXPECT_THAT("a rank that only sends may be some works ahead of the network",
		    recorder.region.comms[id - 1].counts.untrusted == 0);
	id = play_network(61, 70, 1);
	EXPECT_THAT("a network that is 64 works further proves nothing",
		    recorder.region.comms[id - 1].counts.untrusted > NETWORK_WORKS / 2);
	id = play_network(63, 2, 9);
	EXPECT_THAT("nor where one kernel has many works",
		    recorder.region.comms[id - 1].counts.untrusted > NETWORK_WORKS / 2);
}

/* One that needs no network shows that others may not need it either. */
static void without_network_late_callbacks_are_doubted(void)
{
	void *context = play_init(62, 1, 2, 0);
	uint32_t id = comm_id(context);
	struct stamp_op works[NETWORK_WORKS];

	stamp_good(context);
	for (int i = 0; i < NETWORK_WORKS; i++)
		works[i] = stamp_issue(context, 1, 10000 + (uint64_t)i * 300000, 290000);
	for (int i = 0; i < NETWORK_WORKS; i++)
		stamp_report(context, &works[i], 1, NETWORK_LATE_NS);
	ncclProfiler_v5.finalize(context);
	EXPECT(recorder.region.comms[id - 1].counts.untrusted > NETWORK_WORKS / 2);
}

static void zero_and_reversed_stamps_are_found(void)
{
	void *context = play_init(7, 1, 2, 0), *kernel;
	uint32_t id = comm_id(context);
	struct stamp_op op;

	stamp_good(context);
	op = stamp_issue(context, 1, 10000, 20000);
	stamp_move(12000);
	kernel = play_kernel_start(context, op.op.task, 0, 0);
	stamp_move(20000);
	play_kernel_stop(kernel, stamp_gpu(op.stop_ns));
	op = stamp_issue(context, 1, 10000, 20000);
	stamp_move(12000);
	kernel = play_kernel_start(context, op.op.task, 0, stamp_gpu(op.start_ns));
	stamp_move(20000);
	play_kernel_stop(kernel, 0);
	op = stamp_issue(context, 1, 10000, 20000);
	stamp_move(12000);
	kernel = play_kernel_start(context, op.op.task, 0, stamp_gpu(op.start_ns));
	stamp_move(20000);
	play_kernel_stop(kernel, stamp_gpu(op.start_ns) - 500000);
	stamp_good(context);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("a start stamp of 0 is marked",
		    stamp_record(id, 2)->flags & OP_FLAG_STAMP_ZERO);
	EXPECT_THAT("a stop stamp of 0 is marked", stamp_record(id, 3)->flags & OP_FLAG_STAMP_ZERO);
	EXPECT_THAT("a stop before its start is marked",
		    stamp_record(id, 4)->flags & OP_FLAG_STAMP_REVERSED);
	for (uint64_t i = 2; i <= 4; i++)
		EXPECT(stamp_record(id, i)->time_source != OP_TIME_KERNEL_GPU);
	EXPECT_THAT("the next one is timed again", is_timed(stamp_record(id, 5)));
}

/* Works of one batch get their stamps together. */
static void a_batch_with_equal_stamps_is_not_marked(void)
{
	enum { BATCH = 8 };
	void *context = play_init(8, 1, 16, 0);
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *group_api = play_start(context, group), *tasks[BATCH];
	uint32_t id = comm_id(context);
	uint64_t start;

	for (int i = 0; i < BATCH; i++)
		tasks[i] = play_p2p_api(context, group_api, "Send", 16);
	for (int i = 0; i < BATCH; i++)
		tasks[i] = play_p2p(context, tasks[i], "Send", 16, i + 1);
	start = stamp_now_ns + 10000;
	stamp_move(40000);
	for (int i = 0; i < BATCH; i++)
		play_kernel_stop(play_kernel_start(context, tasks[i], 0, stamp_gpu(start)),
				 stamp_gpu(start + 20000));
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.timed, BATCH);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.untrusted, 0);
	EXPECT_THAT("a batch: the eighth is timed like the first", is_timed(stamp_record(id, 8)));
}

/* A Send and a Recv in one device work carry the same stamps, on the same channel. */
static void a_fused_send_and_receive_is_not_marked(void)
{
	void *context = play_init(9, 1, 2, 0);
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	uint32_t id = comm_id(context);

	for (int i = 0; i < 3; i++) {
		void *group_api = play_start(context, group);
		void *send = play_p2p_api(context, group_api, "Send", 16);
		void *recv = play_p2p_api(context, group_api, "Recv", 16);
		uint64_t start = stamp_now_ns + 10000;

		send = play_p2p(context, send, "Send", 16, 1);
		recv = play_p2p(context, recv, "Recv", 16, 1);
		stamp_move(40000);
		play_kernel_stop(play_kernel_start(context, send, 0, stamp_gpu(start)),
				 stamp_gpu(start + 20000));
		play_kernel_stop(play_kernel_start(context, recv, 0, stamp_gpu(start)),
				 stamp_gpu(start + 20000));
	}
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.timed, 6);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.untrusted, 0);
}

/* A replay after an eager operation reuses an old counter: old stamps, at once. */
static void replays_mixed_with_eager_operations(void)
{
	void *context = play_init(10, 2, 2, 0);
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *group_api = play_start(context, group);
	void *captured = play_coll_api(context, group_api, "AllReduce", 8, "ncclFloat32", true);
	uint32_t id = comm_id(context);
	uint64_t start = 0;

	play_stop(group_api);
	for (int i = 0; i < 3; i++) {
		void *task = play_coll(context, captured, "AllReduce", 8, "ncclFloat32", 1);

		start = stamp_now_ns + 10000;
		stamp_move(40000);
		play_kernel_stop(play_kernel_start(context, task, 0, stamp_gpu(start)),
				 stamp_gpu(start + 20000));
	}
	stamp_good(context);
	stamp_move(STAMP_MS);
	for (int i = 0; i < 3; i++) {
		void *task = play_coll(context, captured, "AllReduce", 8, "ncclFloat32", 1);

		stamp_move(1000);
		play_kernel_stop(play_kernel_start(context, task, 0, stamp_gpu(start)),
				 stamp_gpu(start + 20000));
		stamp_move(100000);
	}
	ncclProfiler_v5.finalize(context);
	for (uint64_t i = 2; i <= 4; i++)
		EXPECT_THAT("a replay with its own stamps is timed", is_timed(stamp_record(id, i)));
	for (uint64_t i = 6; i <= 8; i++)
		EXPECT_THAT("a replay with old stamps is marked", is_marked(stamp_record(id, i)));
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.replayed, 6);
}

/* Hours of operations with pauses, and a GPU clock with its own rate. */
static void slow_clocks_are_not_marked(double parts_per_million, int hours, uint64_t pause_ms)
{
	void *context = play_init(11, 1, 2, 0);
	uint32_t id = comm_id(context);
	uint64_t random = 1, count = (uint64_t)hours * 3600 * 1000 / pause_ms;

	stamp_rate = 1 + parts_per_million * 1e-6;
	for (uint64_t i = 0; i < count; i++) {
		struct stamp_op op = stamp_issue(context, 2, 5000, 20000);

		/* The proxy thread polls soon, or later, and sometimes much later. */
		random = random * UINT64_C(6364136223846793005) + 1;
		stamp_report(context, &op, 2,
			     500 + (random >> 33) % 20000 + (i % 1000 == 7 ? 3 * STAMP_MS : 0));
		stamp_move(pause_ms * STAMP_MS);
		if (i == count / 2)
			stamp_move(3600 * STAMP_S); /* an hour's pause */
	}
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.untrusted, 0);
	EXPECT_EQUAL(recorder.region.comms[id - 1].counts.timed, count);
	stamp_rate = 1;
}

static void other_offsets_are_not_marked(void)
{
	static const int64_t offsets[] = { 0, -5 * (int64_t)STAMP_S, INT64_C(1794701335372047546) };

	for (unsigned int i = 0; i < ARRAY_LENGTH(offsets); i++) {
		void *context = play_init(12, 1, 2, 0);
		uint32_t id = comm_id(context);

		stamp_offset_ns = offsets[i];
		for (int j = 0; j < 50; j++)
			stamp_good(context);
		ncclProfiler_v5.finalize(context);
		EXPECT_EQUAL(recorder.region.comms[id - 1].counts.timed, 50);
	}
}

int main(void)
{
	play_setup("flight");
	ncclProfiler_v5.finalize(play_init(0, 1, 1, 0));
	recorder.region.header->comms_made = 0;
	memset(recorder.region.comms, 0, sizeof(*recorder.region.comms));
	stamp_move(0);
	drift_after_a_self_send_is_found();
	drift_under_a_deep_queue_is_found();
	a_lost_start_is_found();
	an_operation_without_any_start_ends();
	an_overrun_ring_of_stamps_is_found();
	a_deep_queue_alone_is_no_overrun();
	the_network_holds_the_gpu();
	without_network_late_callbacks_are_doubted();
	zero_and_reversed_stamps_are_found();
	a_batch_with_equal_stamps_is_not_marked();
	a_fused_send_and_receive_is_not_marked();
	replays_mixed_with_eager_operations();
	slow_clocks_are_not_marked(8, 3, TAP_IS_SLOW ? 1000 : 100);
	slow_clocks_are_not_marked(-8, 3, TAP_IS_SLOW ? 1000 : 100);
	slow_clocks_are_not_marked(8, 300, 60000);
	slow_clocks_are_not_marked(-8, 300, 60000);
	slow_clocks_are_not_marked(30, 3, 2000);
	slow_clocks_are_not_marked(-30, 3, 2000);
	other_offsets_are_not_marked();
	return tap_done();
}
