/* How the callbacks record single operations. */
#include <pthread.h>

#include "common/op.h"
#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

static void a_collective_is_recorded_with_its_gpu_span(void)
{
	void *context = play_init(1, 1, 8, 3);
	struct play_op op = play_issue(context, "AllReduce", 1024, "ncclFloat32", 2);
	uint64_t gpu = play_gpu_now();
	void *first = play_kernel_start(context, op.task, 0, gpu);
	void *second = play_kernel_start(context, op.task, 1, gpu + 300);
	const struct op_record *record;

	play_kernel_stop(first, gpu + 1000);
	play_kernel_stop(second, gpu + 1900);
	ncclProfiler_v5.finalize(context);
	record = play_record(1);
	EXPECT_EQUAL(record->state, OP_DONE);
	EXPECT_EQUAL(record->function, OP_ALL_REDUCE);
	EXPECT_EQUAL(record->datatype, OP_FLOAT32);
	EXPECT_EQUAL(record->algorithm, OP_RING);
	EXPECT_EQUAL(record->protocol, OP_SIMPLE);
	EXPECT_EQUAL(record->bytes, 4096);
	EXPECT_EQUAL(record->time_source, OP_TIME_KERNEL_GPU);
	EXPECT_EQUAL(op_duration_ns(record), 1900);
	EXPECT_EQUAL(record->start_spread_ns, 300);
	EXPECT_EQUAL(record->stop_spread_ns, 900);
	EXPECT_EQUAL(record->number, 1);
	EXPECT_EQUAL(record->match, 1);
	EXPECT(record->signature != 0);
	EXPECT(record->issue_ns != 0 && record->issue_ns <= record->done_ns);
}

static void bytes_are_right_or_unknown(void)
{
	void *context = play_init(2, 2, 4, 0);

	play_issue(context, "AllGather", 100, "ncclFloat32", 1);
	play_issue(context, "ReduceScatter", 100, "ncclBfloat16", 1);
	play_issue(context, "Broadcast", 100, "ncclFloat32", 1);
	play_issue(context, "AllReduce", 100, "Unknown", 1);
	play_issue(context, "AllReduce", 0, "ncclInt8", 1);
	play_issue(context, "Quantum", 7, "ncclInt128", 1);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(play_record(6)->bytes, 100 * 4 * 4);
	EXPECT_EQUAL(play_record(5)->bytes, 100 * 2 * 4);
	EXPECT_EQUAL(play_record(4)->bytes, 100 * 4);
	EXPECT_THAT("NCCL's Unknown is uint8",
		    play_record(3)->bytes == 100 && play_record(3)->datatype == OP_UINT8);
	EXPECT_EQUAL(play_record(2)->bytes, 0);
	EXPECT_THAT("an unknown datatype has unknown bytes",
		    play_record(1)->bytes == OP_BYTES_UNKNOWN);
	EXPECT_THAT("an unknown name is interned", play_record(1)->function >= OP_NAME_INTERNED);
	EXPECT(strcmp(recorder.region.names[play_record(1)->function - OP_NAME_INTERNED].text,
		      "Quantum") == 0);
}

static void graphs_have_a_capture_and_replays(void)
{
	void *context = play_init(3, 2, 2, 0);
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *group_api = play_start(context, group);
	void *captured = play_coll_api(context, group_api, "AllReduce", 8, "ncclFloat32", true);
	uint64_t number = play_record(1)->number;

	EXPECT_EQUAL(play_record(1)->state, OP_CAPTURED);
	play_stop(group_api);
	for (int i = 0; i < 3; i++)
		play_stop(play_coll(context, captured, "AllReduce", 8, "ncclFloat32", 1));
	ncclProfiler_v5.finalize(context);
	EXPECT(play_record(1)->flags & OP_FLAG_REPLAY);
	EXPECT_EQUAL(play_record(1)->captured_number, number);
	EXPECT_EQUAL(play_record(1)->match, 3);
	EXPECT_EQUAL(play_record(3)->match, 1);
	EXPECT_EQUAL(play_record(1)->number, 4);
}

static void ranks_agree_on_the_signature_until_they_diverge(void)
{
	void *here = play_init(4, 2, 2, 0), *there = play_init(4, 2, 2, 1);
	uint64_t signatures[2];

	for (int i = 0; i < 2; i++) {
		void *context = i == 0 ? here : there;

		play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
		play_issue(context, "ReduceScatter", 9, "ncclFloat16", 1);
	}
	signatures[0] = hot_comm(here)->shared->counts.signature;
	signatures[1] = hot_comm(there)->shared->counts.signature;
	EXPECT(signatures[0] == signatures[1]);
	play_issue(here, "AllReduce", 8, "ncclFloat32", 1);
	play_issue(there, "AllReduce", 8, "ncclFloat64", 1);
	EXPECT(hot_comm(here)->shared->counts.signature !=
	       hot_comm(there)->shared->counts.signature);
	ncclProfiler_v5.finalize(here);
	ncclProfiler_v5.finalize(there);
}

static void sends_and_receives_are_matched_by_peer(void)
{
	void *context = play_init(5, 2, 4, 1);
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *group_api = play_start(context, group), *apis[4];
	uint64_t signature = hot_comm(context)->shared->counts.signature;

	for (int i = 0; i < 4; i++)
		apis[i] = play_p2p_api(context, group_api, i % 2 ? "Recv" : "Send", 16);
	play_p2p(context, apis[0], "Send", 16, 2);
	play_p2p(context, apis[1], "Recv", 16, 2);
	play_p2p(context, apis[2], "Send", 16, 2);
	play_p2p(context, apis[3], "Recv", 16, 1);
	EXPECT_THAT("they do not enter the signature",
		    hot_comm(context)->shared->counts.signature == signature);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(play_record(4)->match, 1);
	EXPECT_EQUAL(play_record(3)->match, 1);
	EXPECT_EQUAL(play_record(2)->match, 2);
	EXPECT_EQUAL(play_record(2)->peer, 2);
	EXPECT_THAT("a receive from oneself is marked", play_record(1)->flags & OP_FLAG_SELF);
}

static const struct region_link *link_to(const struct region_comm *comm, bool is_receive, int peer)
{
	uint64_t key = REGION_LINK_KEY(comm->info.id, is_receive, peer);

	for (uint32_t i = 1; i < recorder.region.link_count; i++)
		if (recorder.region.links[i].key == key)
			return &recorder.region.links[i];
	return NULL;
}

static void transfers_are_summed_by_peer(const struct op_record *record,
					 const struct region_comm *comm)
{
	const struct region_link *send = link_to(comm, false, 1), *recv = link_to(comm, true, 1);

	EXPECT(send != NULL && recv != NULL && link_to(comm, false, 0) == NULL);
	if (send == NULL || recv == NULL)
		return;
	EXPECT_EQUAL(send->proxies, 1);
	EXPECT_EQUAL(send->steps, 12);
	EXPECT_EQUAL(send->bytes, 12000);
	EXPECT_EQUAL(recv->bytes, 6000);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQUAL(send->wait_ns[i], record->wait_ns[OP_WAIT_SEND_GPU + i]);
		EXPECT_EQUAL(recv->wait_ns[i], record->wait_ns[OP_WAIT_RECV_NET + i]);
	}
}

static void transfers_are_summed_by_state(void)
{
	void *context = play_init(6, 2, 2, 0);
	struct play_op op = play_issue(context, "AllReduce", 1 << 20, "ncclFloat32", 1);
	void *send = play_proxy_start(context, op.task, getpid(), 0, 1, true);
	void *recv = play_proxy_start(context, op.task, getpid(), 0, 1, false);
	void *step;
	const struct op_record *record;
	const struct region_comm *comm = hot_comm(context)->shared;

	play_state(send, ABI_OP_IN_PROGRESS, 0);
	for (int i = 0; i < 12; i++) {
		step = play_step_start(context, send, i);
		play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
		play_state(step, ABI_STEP_SEND_PEER_WAIT, 0);
		play_state(step, ABI_STEP_SEND_PEER_WAIT, 0);
		play_state(step, ABI_STEP_SEND_WAIT, 1000);
		play_stop(step);
		step = play_step_start(context, recv, i);
		step = play_step_start(context, recv, i);
		play_state(step, ABI_STEP_RECV_WAIT, 77);
		play_state(step, ABI_STEP_RECV_FLUSH_WAIT, 500);
		play_state(step, ABI_STEP_RECV_GPU_WAIT, 500);
		play_stop(step);
	}
	play_stop(send);
	EXPECT_EQUAL(live_find(handle_decode(recorder.salt, op.task))->op.state, OP_RUNNING);
	play_stop(recv);
	ncclProfiler_v5.finalize(context);
	record = play_record(1);
	EXPECT_EQUAL(record->send_bytes, 12000);
	EXPECT_EQUAL(record->recv_bytes, 6000);
	EXPECT_EQUAL(record->send_steps, 12);
	EXPECT_EQUAL(record->recv_steps, 12);
	EXPECT_EQUAL(record->proxies_started, 2);
	EXPECT_EQUAL(record->proxies_stopped, 2);
	EXPECT_EQUAL(record->time_source, OP_TIME_PROXY);
	EXPECT_EQUAL(op_span_ns(record), record->done_ns - record->active_ns);
	EXPECT_EQUAL(op_duration_ns(record), 0);
	for (int i = 0; i < OP_WAITS; i++)
		EXPECT(record->wait_ns[i] <= 12 * (record->done_ns - record->active_ns));
	EXPECT(recorder.region.header->odd[ODD_REPEATED_STATE] >= 12);
	transfers_are_summed_by_peer(record, comm);
}

static const struct region_proxy *proxy_of(const void *handle)
{
	return &recorder.region.proxies[handle_slot(handle_decode(recorder.salt, handle))];
}

static void states_of_a_proxy_are_known_or_odd(void)
{
	uint64_t *odd = &recorder.region.header->odd[ODD_UNKNOWN_STATE];
	void *context = play_init(10, 2, 2, 0);
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	void *proxy = play_proxy_start(context, op.task, getpid(), 0, 1, true);
	uint64_t before = *odd;

	for (int state = ABI_OP_SEND_POSTED; state <= ABI_OP_RECV_DONE; state++)
		play_state(proxy, state, 0);
	EXPECT_THAT("all eight states of NCCL 2.23 to 2.26 are known", *odd == before);
	for (int state = ABI_OP_SEND_POSTED; state <= ABI_OP_RECV_DONE; state++)
		play_state(proxy, state, (uint64_t)state * 100);
	EXPECT_THAT("the total comes with the last transmission or receipt",
		    proxy_of(proxy)->bytes == ABI_OP_RECV_RECEIVED * 100);
	play_state(proxy, ABI_OP_SEND_TRANSMITTED, 7777);
	play_state(proxy, ABI_OP_SEND_DONE, 0);
	EXPECT_THAT("other states have none", proxy_of(proxy)->bytes == 7777);
	play_state(proxy, ABI_OP_SEND_POSTED - 1, 0);
	EXPECT_EQUAL(*odd, before + 1);
	play_state(proxy, ABI_OP_RECV_DONE + 1, 0);
	EXPECT_EQUAL(*odd, before + 2);
	play_stop(proxy);
	ncclProfiler_v5.finalize(context);
}

/* As many kinds of operations as there are slots for, but for one in eight: some share their first slot. */
static void kinds_that_share_a_slot_have_totals_of_their_own(void)
{
	uint32_t kinds = recorder.region.total_count / 8;
	uint32_t missing = 0, shared = 0;
	const struct region_total *total;

	for (uint32_t i = 0; i < kinds; i++) {
		total = record_total_find(TOTALS_KEY(1000 + i, 1, 1, 1, 1, 1));
		missing += total == NULL;
	}
	EXPECT_THAT("every kind has a slot", missing == 0);
	for (uint32_t i = 0; i < kinds; i++) {
		total = record_total_find(TOTALS_KEY(1000 + i, 1, 1, 1, 1, 1));
		shared += total == NULL || total == recorder.region.totals ||
			  total->key != TOTALS_KEY(1000 + i, 1, 1, 1, 1, 1);
	}
	EXPECT_THAT("its own, and found again", shared == 0);
}

/* NCCL numbers transfers; the eighth after one is in the same slot. */
static void a_forgotten_transfer_makes_room_for_another(void)
{
	uint64_t *odd = recorder.region.header->odd;
	void *context = play_init(11, 2, 2, 0), *proxy, *first, *next;
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	uint64_t repeated, stale;

	proxy = play_proxy_start(context, op.task, getpid(), 0, 1, true);
	first = play_step_start(context, proxy, 0);
	play_state(first, ABI_STEP_SEND_GPU_WAIT, 0);
	repeated = odd[ODD_REPEATED_STATE];
	stale = odd[ODD_STALE_HANDLE];
	next = play_step_start(context, proxy, WINDOW_STEPS);
	play_state(next, ABI_STEP_SEND_GPU_WAIT, 0);
	EXPECT_THAT("its first state is not the other's again",
		    odd[ODD_REPEATED_STATE] == repeated);
	play_state(first, ABI_STEP_SEND_WAIT, 1000);
	EXPECT_THAT("which is over", odd[ODD_STALE_HANDLE] == stale + 1);
	play_state(next, ABI_STEP_SEND_WAIT, 1000);
	EXPECT_EQUAL(odd[ODD_STALE_HANDLE], stale + 1);
	repeated = odd[ODD_REPEATED_STOP];
	play_stop(first);
	EXPECT_THAT("its stop comes too late, and ends nothing",
		    odd[ODD_REPEATED_STOP] == repeated + 1 && proxy_of(proxy)->done == 0);
	play_stop(next);
	EXPECT_THAT("the other one's ends it",
		    odd[ODD_REPEATED_STOP] == repeated + 1 && proxy_of(proxy)->done == 1);
	play_stop(next);
	EXPECT_EQUAL(odd[ODD_REPEATED_STOP], repeated + 2);
	play_stop(proxy);
	ncclProfiler_v5.finalize(context);
}

static void open_operations_are_abandoned_with_their_communicator(void)
{
	void *context = play_init(7, 2, 2, 0);
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	void *proxy = play_proxy_start(context, op.task, getpid(), 0, 1, true);
	const struct region_live *live = live_find(handle_decode(recorder.salt, op.task));
	uint32_t generation = REGION_GENERATION(live->word);

	play_state(proxy, ABI_OP_IN_PROGRESS, 0);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(play_record(1)->state, OP_ABANDONED);
	EXPECT_THAT("its slot rests with the same generation: late children still write there",
		    REGION_GENERATION(live->word) == generation &&
			    region_slot_is_used(live->word) && LIVE_OPEN(live->word) != 0 &&
			    live->word & LIVE_RETIRING);
	play_stop(proxy);
	play_stop(op.task);
	EXPECT_THAT("its slot is not handed to a late child", play_record(1)->proxies_stopped == 0);
}

/* NCCL gives a launch its group as parent. */
static void a_launch_belongs_to_a_group(void)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API },
			    launch = { .type = ABI_KERNEL_LAUNCH };
	void *context = play_init(12, 1, 2, 0);
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	void *handle;

	launch.parent = play_start(context, group);
	handle = play_start(context, launch);
	EXPECT_EQUAL(handle_kind(handle_decode(recorder.salt, handle)), HANDLE_LAUNCH);
	play_stop(handle);
	launch.parent = op.task;
	handle = play_start(context, launch);
	EXPECT_THAT("an operation is none, whatever its slot",
		    handle_kind(handle_decode(recorder.salt, handle)) == HANDLE_IGNORED);
	launch.parent = NULL;
	handle = play_start(context, launch);
	EXPECT_EQUAL(handle_kind(handle_decode(recorder.salt, handle)), HANDLE_IGNORED);
	ncclProfiler_v5.finalize(context);
}

/* CollNet queues transfers and never reports on them: its operations must not wait for these. */
static void silent_algorithms_do_not_wait_for_the_network(void)
{
	static const struct {
		const char *name;
		uint32_t open;
	} algorithms[] = { { "RING", 1 },	   { "TREE", 1 }, { "COLLNET_DIRECT", 0 },
			   { "COLLNET_CHAIN", 0 }, { "NVLS", 0 }, { "NVLS_TREE", 1 } };
	void *context = play_init(15, 2, 2, 0);

	for (size_t i = 0; i < ARRAY_LENGTH(algorithms); i++) {
		struct abi_descr_v5 descr = { .type = ABI_COLL };
		void *task;

		descr.parent = play_coll_api(context, NULL, "AllReduce", 8, "ncclFloat32", false);
		descr.coll.function = "AllReduce";
		descr.coll.count = 8;
		descr.coll.datatype = "ncclFloat32";
		descr.coll.algorithm = algorithms[i].name;
		task = play_start(context, descr);
		play_proxy_start(context, task, getpid(), 0, 1, true);
		EXPECT_THAT(algorithms[i].name,
			    LIVE_OPEN(live_find(handle_decode(recorder.salt, task))->word) ==
				    algorithms[i].open);
	}
	ncclProfiler_v5.finalize(context);
}

/* The table of peers is full: a Send is recorded, but not which one to that peer it is. */
static void sends_to_too_many_peers_have_no_number(void)
{
	uint32_t peers = recorder.region.peer_count * 2, without = 0;
	void *context = play_init(16, 2, (int)peers + 1, 0);
	uint64_t recorded;

	for (uint32_t i = 1; i <= peers; i++) {
		void *api = play_p2p_api(context, NULL, "Send", 1);
		void *task = play_p2p(context, api, "Send", 1, (int)i);
		const struct region_live *live = live_find(handle_decode(recorder.salt, task));

		without += live != NULL && live->op.match == 0;
		play_stop(task);
		play_stop(api);
	}
	recorded = hot_comm(context)->shared->counts.issued;
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(recorded, peers);
	EXPECT_THAT("half of them have none", without >= peers / 4 && without <= peers * 3 / 4);
}

/* How far the network has come bounds how far the GPU can be. */
static void the_network_does_not_go_back(void)
{
	void *context = play_init(13, 2, 2, 0), *proxies[2], *step;
	const struct comm_state *comm = hot_comm(context);
	struct play_op ops[2];

	for (int i = 0; i < 2; i++) {
		ops[i] = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
		proxies[i] = play_proxy_start(context, ops[i].task, getpid(), 0, 1, true);
	}
	for (int i = 1; i >= 0; i--) {
		step = play_step_start(context, proxies[i], 0);
		play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
		EXPECT_EQUAL(comm->network_at, 2);
	}
	ncclProfiler_v5.finalize(context);
}

static void await_next_nanosecond(void)
{
	uint64_t now = recorder_now();

	while (recorder_now() == now)
		;
}

/* A transfer that waits for a moment in each state. */
static void *send_slowly(void *proxy)
{
	void *step = play_step_start(NULL, proxy, 0);

	play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
	await_next_nanosecond();
	play_state(step, ABI_STEP_SEND_PEER_WAIT, 0);
	await_next_nanosecond();
	/* Only a repeated one means waiting. */
	play_state(step, ABI_STEP_SEND_PEER_WAIT, 0);
	play_state(step, ABI_STEP_SEND_WAIT, 4096);
	await_next_nanosecond();
	play_stop(step);
	play_stop(proxy);
	return NULL;
}

/* As with PXN: the proxy thread of another rank's GPU reports transfers of this operation. */
struct other_thread {
	void *context, *task;
};

static void *work_for_another(void *argument)
{
	const struct other_thread *other = argument;

	return send_slowly(play_proxy_start(other->context, other->task, getpid(), 1, 1, true));
}

static void work_of_other_proxy_threads_is_added(void)
{
	void *context = play_init(14, 2, 2, 0);
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	struct other_thread other = { context, op.task };
	uint64_t own[OP_WAITS];
	const struct op_record *record;
	pthread_t thread;

	/* The first one to come is the communicator's own. */
	send_slowly(play_proxy_start(context, op.task, getpid(), 0, 1, true));
	memcpy(own, live_find(handle_decode(recorder.salt, op.task))->op.wait_ns, sizeof(own));
	if (pthread_create(&thread, NULL, work_for_another, &other) != 0)
		abort();
	pthread_join(thread, NULL);
	ncclProfiler_v5.finalize(context);
	record = play_record(1);
	EXPECT_EQUAL(record->proxies_stopped, 2);
	EXPECT_EQUAL(record->send_steps, 2);
	EXPECT_EQUAL(record->send_bytes, 8192);
	for (int i = OP_WAIT_SEND_GPU; i <= OP_WAIT_SEND_NET; i++)
		EXPECT(own[i] > 0 && record->wait_ns[i] > own[i]);
}

static void handles_of_others_are_refused(void)
{
	uint64_t *odd = recorder.region.header->odd;
	void *context = play_init(8, 2, 2, 0);
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	uint64_t before = odd[ODD_UNKNOWN_CONTEXT];
	void *proxy;

	EXPECT_THAT("an unknown context still gets a handle",
		    play_coll_api((void *)0x7f0012345678, NULL, "AllReduce", 1, "ncclInt8",
				  false) != NULL);
	EXPECT(odd[ODD_UNKNOWN_CONTEXT] > before);
	before = odd[ODD_FOREIGN_PROCESS];
	proxy = play_proxy_start((void *)0x7f0012345678, (void *)0x7f00deadbeef, getpid() + 1, 3, 1,
				 true);
	EXPECT_EQUAL(odd[ODD_FOREIGN_PROCESS], before + 1);
	EXPECT(proxy != NULL);
	play_stop(proxy);
	before = odd[ODD_FOREIGN_HANDLE] + odd[ODD_NULL_HANDLE];
	play_stop((void *)0x7f00deadbee8);
	play_stop(NULL);
	play_state(NULL, 8, 0);
	EXPECT(odd[ODD_FOREIGN_HANDLE] + odd[ODD_NULL_HANDLE] >= before + 2);
	play_stop(op.task);
	ncclProfiler_v5.finalize(context);
	ncclProfiler_v5.finalize(context);
	ncclProfiler_v5.finalize(NULL);
}

static void issued_is_recorded_exactly(void)
{
	void *context = play_init(9, 1, 2, 0);
	struct comm_counts *counts = &hot_comm(context)->shared->counts;
	uint64_t head = recorder.region.header->ring_head;

	for (int i = 0; i < 100000; i++)
		play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	EXPECT_EQUAL(counts->issued, 100000);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(counts->recorded, 100000);
	EXPECT_EQUAL(recorder.region.header->ring_head - head, 100000);
}

int main(void)
{
	play_setup("flight");
	a_collective_is_recorded_with_its_gpu_span();
	bytes_are_right_or_unknown();
	graphs_have_a_capture_and_replays();
	ranks_agree_on_the_signature_until_they_diverge();
	sends_and_receives_are_matched_by_peer();
	transfers_are_summed_by_state();
	open_operations_are_abandoned_with_their_communicator();
	handles_of_others_are_refused();
	issued_is_recorded_exactly();
	states_of_a_proxy_are_known_or_odd();
	a_forgotten_transfer_makes_room_for_another();
	a_launch_belongs_to_a_group();
	the_network_does_not_go_back();
	work_of_other_proxy_threads_is_added();
	silent_algorithms_do_not_wait_for_the_network();
	kinds_that_share_a_slot_have_totals_of_their_own();
	sends_to_too_many_peers_have_no_number();
	return tap_done();
}
