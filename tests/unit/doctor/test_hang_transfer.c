/* All ranks have called it: GPUs, the network, channels, invisible ranks. */
#include "doctor/doctor.h"

#include "tests/unit/doctor/hang_stage.h"
#include "tests/tap.h"

static struct hang_stage stage;

static const struct verdict *first(void)
{
	return &stage.verdicts.list[0];
}

static struct recording_flight *front(int rank)
{
	return &stage_rank(&stage, rank)->flights[0];
}

static void all_in(int count, int per_host)
{
	stage_begin(&stage, count, per_host);
	for (int i = 0; i < count; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
}

/* A ring over the ranks, one per host: all wait for data and for their GPUs, which have none. */
static void ring_waits(int count, int channels)
{
	for (int i = 0; i < count; i++)
		for (int c = 0; c < channels; c++) {
			stage_proxy(front(i), true, (i + 1) % count, c, STEP_SEND_GPU, 59 * SECOND);
			stage_proxy(front(i), false, (i + count - 1) % count, c, STEP_RECV_NET,
				    59 * SECOND);
		}
}

/* The proxy of a rank on a channel; the order is send, receive, send, receive. */
static struct recording_proxy *proxy_of(int rank, bool is_send, int channel)
{
	return &front(rank)->proxies[2 * channel + !is_send];
}

static void set_state(struct recording_proxy *proxy, int state, int stage_of_it)
{
	proxy->steps[0].state = (uint8_t)state;
	proxy->steps[0].time_ns[stage_of_it] = NOW_NS - 58 * SECOND;
}

static void test_gpu(void)
{
	all_in(4, 4);
	front(2)->op.state = OP_ISSUED;
	front(2)->op.kernels_started = 0;
	front(2)->open_children = 0;
	EXPECT_THAT("called and not launched", stage_only(&stage, VERDICT_NOT_LAUNCHED, 2));
	front(2)->op.state = OP_LAUNCHED;
	EXPECT_THAT("launched and not started", stage_only(&stage, VERDICT_GPU_NOT_REACHED, 2));
	EXPECT_EQUAL(first()->victims, 3);
	/* Its proxies are posted before its kernel starts. */
	front(2)->op.state = OP_RUNNING;
	EXPECT_THAT("also if its network side has started",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 2));
	stage_proxy(front(2), true, 3, 0, STEP_SEND_GPU, 59 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("but not if its GPU has filled transfers",
		    stage.verdicts.count == 1 && first()->class != VERDICT_GPU_NOT_REACHED);
	front(2)->proxies[0].proxy.done = 0;
	EXPECT_THAT("which it has not", stage_only(&stage, VERDICT_GPU_NOT_REACHED, 2));
	EXPECT_THAT("with the GPU to check",
		    stage_has_line(&first()->advice, "nvidia-smi -q -i 2"));
	stage_rank(&stage, 2)->comms[0].info.flags = 0;
	EXPECT_THAT("also in its first operation, before anything was recorded",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 2));
	front(2)->proxy_count = 0;
	for (int i = 0; i < 4; i++) {
		stage_rank(&stage, i)->comms[0].info.flags = COMM_FLAG_SEES_PROXIES;
		front(i)->op.kernels_started = 0;
	}
	stage_find(&stage);
	EXPECT_THAT("without kernel events the cause is unknown",
		    stage.verdicts.count == 1 && first()->class == VERDICT_STUCK);
	stage_end(&stage);
}

static void test_own_gpu(void)
{
	all_in(4, 1);
	ring_waits(4, 2);
	set_state(proxy_of(1, false, 0), STEP_RECV_GPU, 2);
	set_state(proxy_of(1, false, 1), STEP_RECV_GPU, 2);
	EXPECT_THAT("data arrived, nothing is consumed or produced: its GPU",
		    stage_only(&stage, VERDICT_GPU_STUCK, 1));
	EXPECT_THAT("on these channels", stage_has_line(&first()->evidence, "channels 0-1"));
	stage_end(&stage);

	/* Two GPUs of a host: what one receives the other one forwards. */
	all_in(4, 2);
	stage_proxy(front(0), false, 3, 0, STEP_RECV_GPU, 59 * SECOND);
	stage_proxy(front(1), true, 2, 0, STEP_SEND_GPU, 59 * SECOND);
	stage_proxy(front(2), false, 1, 0, STEP_RECV_NET, 59 * SECOND);
	stage_proxy(front(3), true, 0, 0, STEP_SEND_GPU, 59 * SECOND);
	EXPECT_THAT("a GPU of that host", stage_only(&stage, VERDICT_GPU_STUCK, -1));
	EXPECT_THAT("but which one is unknown",
		    strstr(first()->title, "a GPU of node0") && first()->confidence < 0.6);
	/* Rank 1 receives in another channel, and rank 0 sends there: 1 is behind in both directions. */
	stage_proxy(front(1), false, 2, 1, STEP_RECV_GPU, 59 * SECOND)->proxy.done = 1;
	stage_proxy(front(0), true, 3, 1, STEP_SEND_GPU, 59 * SECOND)->proxy.done = 4;
	EXPECT_THAT("unless one has received and sent the least",
		    stage_only(&stage, VERDICT_GPU_STUCK, 1));
	EXPECT_THAT("the evidence says so",
		    stage_has_line(&first()->evidence, "received and sent the least") &&
			    strcmp(first()->channels, "0-1") == 0);
	stage_end(&stage);
}

static void test_link(void)
{
	all_in(8, 1);
	ring_waits(8, 4);
	set_state(proxy_of(5, true, 1), STEP_SEND_NET, 2);
	EXPECT_THAT("the link is found", stage_only(&stage, VERDICT_NETWORK_STUCK, 5));
	EXPECT_EQUAL(first()->peer, 6);
	EXPECT_EQUAL(first()->channel, 1);
	EXPECT_EQUAL(first()->victims, 7);
	EXPECT_EQUAL(first()->for_ns, 58 * SECOND);
	EXPECT_THAT("with both ends", strcmp(first()->host, "node5") == 0 &&
					      strcmp(first()->peer_host, "node6") == 0);
	EXPECT_THAT("one of its channels",
		    stage_has_line(&first()->evidence, "on channel 1 (1 of 4 between them)"));
	EXPECT_THAT("the receiver agrees", stage_has_line(&first()->evidence, "Rank 6 agrees"));
	EXPECT_THAT("with its steps", stage_has_line(&first()->evidence, "3 of at most 8 steps"));
	EXPECT_THAT("with commands", stage_has_line(&first()->advice, "$ ss -tinp") &&
					     stage_has_line(&first()->advice, "$ ibstat"));
	/* Upstream of it everything is full: sends stay on the wire because no rank receives them. */
	set_state(proxy_of(4, true, 1), STEP_SEND_NET, 2);
	set_state(proxy_of(5, false, 1), STEP_RECV_GPU, 2);
	EXPECT_THAT("a full receiver is not the network",
		    stage_only(&stage, VERDICT_NETWORK_STUCK, 5) && first()->peer == 6);
	stage_end(&stage);

	all_in(4, 1);
	ring_waits(4, 1);
	set_state(proxy_of(1, true, 0), STEP_SEND_NET, 2);
	stage_rank(&stage, 2)->process_state = 'T';
	EXPECT_THAT("a stopped receiver is the cause, not the network",
		    stage_only(&stage, VERDICT_PROCESS_STOPPED, 2));
	stage_rank(&stage, 2)->process_state = 0;
	stage_rank(&stage, 2)->life = RECORDING_KILLED;
	EXPECT_THAT("and a dead one", stage_only(&stage, VERDICT_PROCESS_DEAD, 2));
	stage_end(&stage);
}

static void test_many_links(void)
{
	all_in(8, 2);
	for (int i = 2; i < 4; i++) {
		stage_proxy(front(i), true, i + 2, i, STEP_SEND_NET, 59 * SECOND);
		stage_proxy(front(i + 2), false, i, i, STEP_RECV_NET, 59 * SECOND);
	}
	stage_find(&stage);
	EXPECT_THAT("several links into one host",
		    stage.verdicts.count == 1 && strstr(first()->title, "to host node2"));
	stage_proxy(front(3), true, 6, 5, STEP_SEND_NET, 59 * SECOND);
	stage_proxy(front(6), false, 3, 5, STEP_RECV_NET, 59 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("several links out of one",
		    stage.verdicts.count == 1 &&
			    strstr(first()->title, "network sends stuck: from host node1"));
	stage_proxy(front(6), true, 0, 6, STEP_SEND_NET, 59 * SECOND);
	stage_proxy(front(0), false, 6, 6, STEP_RECV_NET, 59 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("several hosts: the network",
		    stage.verdicts.count == 1 && strstr(first()->title, "several hosts"));
	EXPECT_THAT("each is listed", stage_has_line(&first()->evidence, "rank 6 (node3"));
	stage_end(&stage);
}

static void test_lost(void)
{
	all_in(4, 1);
	ring_waits(4, 1);
	proxy_of(1, true, 0)->step_count = 0;
	proxy_of(1, true, 0)->proxy.done = 8;
	EXPECT_THAT("sent and never arrived", stage_only(&stage, VERDICT_NETWORK_STUCK, 1));
	EXPECT_THAT("with less confidence",
		    first()->confidence < 0.8 && first()->peer == 2 &&
			    stage_has_line(&first()->evidence, "have not arrived"));
	stage_end(&stage);
}

/* Waits for its own GPU to send to a peer, and for that peer's data: a branch of a tree. */
static void both_ways(int rank, int peer, int channel)
{
	stage_proxy(front(rank), true, peer, channel, STEP_SEND_GPU, 59 * SECOND);
	stage_proxy(front(rank), false, peer, channel, STEP_RECV_NET, 59 * SECOND);
}

/* Host 2 is below host 1, which is below host 0: it sends nothing, and 3, also below 0, has sent
 * everything. */
static void test_tree(void)
{
	all_in(8, 2);
	for (int i = 0; i < 8; i++)
		front(i)->op.algorithm = OP_TREE;
	for (int c = 0; c < 2; c++) {
		both_ways(0 + c, 2 + c, c);
		both_ways(2 + c, 0 + c, c);
		both_ways(2 + c, 4 + c, c);
		both_ways(4 + c, 2 + c, c);
		stage_proxy(front(0 + c), true, 6 + c, c, STEP_SEND_GPU, 59 * SECOND);
		stage_proxy(front(6 + c), false, 0 + c, c, STEP_RECV_NET, 59 * SECOND);
	}
	stage.is_numbered = true; /* the tree is that of these numbers */
	EXPECT_THAT("in a tree the host that sends nothing",
		    stage_only(&stage, VERDICT_GPU_STUCK, -1));
	EXPECT_THAT("is named, not a rank", strcmp(first()->host, "node2") == 0 &&
						    first()->pid == -1 && first()->gpu == -1);
	EXPECT_THAT("with a caveat",
		    first()->confidence <= 0.5 && stage_has_line(&first()->missing, "any of them"));
	for (int i = 0; i < 8; i++)
		front(i)->op.algorithm = OP_RING;
	EXPECT_THAT("in a ring that proves nothing", stage_only(&stage, VERDICT_STUCK, -1));
	stage_end(&stage);
}

/* One node: nothing goes over the network. */
static void test_nvlink(void)
{
	all_in(4, 4);
	EXPECT_THAT("without any evidence: stuck", stage_only(&stage, VERDICT_STUCK, -1));
	EXPECT_THAT("with low confidence and its channels",
		    first()->confidence < 0.5 &&
			    stage_has_line(&first()->evidence, "channels 0-1"));
	EXPECT_EQUAL(first()->victims, 4);
	for (int i = 0; i < 4; i++)
		front(i)->stopped[0] = i == 2 ? 1 : 3;
	EXPECT_THAT("a rank that is behind the others in a channel",
		    stage_only(&stage, VERDICT_GPU_STUCK, 2));
	EXPECT_THAT("by channels alone",
		    stage_has_line(&first()->evidence, "channel 1") && first()->confidence < 0.8);
	stage_end(&stage);
}

/* Rings through three hosts of four ranks, on two channels: rank 4h receives and rank 4h + 3 sends on channel 0,
 * the next ones on channel 1. */
static void rings_of_hosts(const unsigned int sent[2][3])
{
	all_in(12, 4);
	for (int i = 0; i < 12; i++)
		front(i)->op.algorithm = OP_RING;
	for (int c = 0; c < 2; c++)
		for (int h = 0; h < 3; h++) {
			int to = (4 * (h + 1) + c) % 12, from = 4 * h + (c == 0 ? 3 : 0);

			stage_proxy(front(from), true, to, c, STEP_SEND_GPU, 59 * SECOND)
				->proxy.done = sent[c][h];
			stage_proxy(front(to), false, from, c, STEP_RECV_NET, 59 * SECOND)
				->proxy.done = sent[c][h];
		}
}

static void test_rings(void)
{
	rings_of_hosts((const unsigned int[2][3]){ { 0, 4, 8 }, { 1, 5, 9 } });
	EXPECT_THAT("a GPU that has not even sent its own data",
		    stage_only(&stage, VERDICT_GPU_STUCK, 3));
	EXPECT(stage_has_line(&first()->evidence, "has sent less than any other rank"));
	stage_end(&stage);

	rings_of_hosts((const unsigned int[2][3]){ { 6, 2, 10 }, { 5, 1, 9 } });
	EXPECT_THAT("a host whose GPUs have sent less than all others",
		    stage_only(&stage, VERDICT_GPU_STUCK, -1));
	EXPECT(strcmp(first()->host, "node1") == 0);
	stage_end(&stage);

	rings_of_hosts((const unsigned int[2][3]){ { 6, 2, 10 }, { 1, 5, 9 } });
	EXPECT_THAT("channels that disagree: no GPU is named",
		    stage_only(&stage, VERDICT_STUCK, -1));
	stage_end(&stage);
}

/* Host 1 waits for its own GPUs, and one of its ranks is not recorded. */
static void test_unseen_of_host(void)
{
	all_in(6, 2);
	for (int i = 0; i < 6; i++)
		stage_rank(&stage, i)->comms[0].info.nranks = 7;
	for (int i = 3; i < 6; i++)
		stage_rank(&stage, i)->comms[0].info.rank = i + 1;
	for (int i = 4; i < 6; i++)
		snprintf(stage_rank(&stage, i)->host, sizeof(stage_rank(&stage, i)->host), "node2");
	snprintf(stage_rank(&stage, 2)->host, sizeof(stage_rank(&stage, 2)->host), "node1");
	snprintf(stage_rank(&stage, 3)->host, sizeof(stage_rank(&stage, 3)->host), "node2");
	stage_proxy(front(2), true, 4, 0, STEP_SEND_GPU, 59 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("the rank that is not visible is named, not the one that is",
		    stage.verdicts.count == 1 && first()->class == VERDICT_UNSEEN &&
			    strstr(first()->title, "no data from rank 3 of world") != NULL);
	EXPECT(strcmp(first()->host, "node1") == 0);
	stage_end(&stage);
}

static void test_unseen(void)
{
	struct hang_source sources[] = { { "node0:9749", false, NULL },
					 { "node4:9749", true, "connection refused" } };

	all_in(4, 1);
	for (int i = 0; i < 4; i++)
		stage_rank(&stage, i)->comms[0].info.nranks = 5;
	for (int i = 0; i < 4; i++) {
		stage_proxy(front(i), true, i + 1, 0, STEP_SEND_GPU, 59 * SECOND);
		stage_proxy(front(i), false, (i + 4) % 5, 0, STEP_RECV_NET, 59 * SECOND);
	}
	EXPECT_THAT("the chain leads to an invisible rank", stage_only(&stage, VERDICT_UNSEEN, -1));
	EXPECT_THAT("named as far as possible",
		    strstr(first()->title, "no data from rank 4 of world") != NULL);
	stage.options.sources = sources;
	stage.options.source_count = 2;
	EXPECT_THAT("an agent that does not answer", stage_only(&stage, VERDICT_AGENT_DEAD, -1));
	EXPECT_THAT("its host is given", strcmp(first()->host, "node4") == 0);
	EXPECT_THAT("is named", stage_has_line(&first()->evidence,
					       "node4:9749 does not answer: connection refused"));
	/* A visible culprit. */
	stage_rank(&stage, 2)->comms[0].counts.collectives = 0;
	stage_rank(&stage, 2)->flight_count = 0;
	free(front(2)->proxies);
	EXPECT_THAT("a visible rank that has not called comes first",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 2));
	stage_end(&stage);
}

/* ---- without kernel events ---------------------------------------------------------------------- */

/* As NCCL 2.28 over sockets reported it: rank 2 of a ring whose GPU never starts its kernel. All on one
 * host, each neighbour reached over the network. */
static void unstarted_ring(int count)
{
	all_in(count, count);
	ring_waits(count, 2);
	for (int i = 0; i < count; i++) {
		front(i)->op.kernels_started = 0;
		front(i)->started[0] = 0;
		front(i)->op.algorithm = OP_RING;
		stage_rank(&stage, i)->comms[0].info.flags = COMM_FLAG_SEES_PROXIES;
	}
	for (int c = 0; c < 2; c++) {
		struct recording_proxy *receive = proxy_of(count - 2, false, c);

		proxy_of(count - 2, true, c)->proxy.done = receive->proxy.done = 0;
		set_state(receive, STEP_RECV_GPU, 2);
	}
}

static void test_unstarted(void)
{
	unstarted_ring(4);
	EXPECT_THAT("a rank that has sent and received nothing has not started",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 2));
	EXPECT_THAT("with less confidence than with kernel events",
		    first()->confidence > 0.6 && first()->confidence < 0.85);
	EXPECT_THAT("the evidence explains why",
		    stage_has_line(&first()->evidence, "sent nothing on any channel"));
	EXPECT_THAT("with the caveat", stage_has_line(&first()->missing, "Kernel events"));
	stage_end(&stage);
	unstarted_ring(2);
	EXPECT_THAT("two such ranks, too", stage_only(&stage, VERDICT_GPU_NOT_REACHED, 0));
	stage_end(&stage);
}

static bool is_silent(const char *sentence)
{
	size_t count = stage_find(&stage);
	bool is_so = true;

	for (size_t i = 0; i < count; i++)
		is_so &= stage.verdicts.list[i].class != VERDICT_GPU_NOT_REACHED;
	if (!is_so)
		stage_print(&stage);
	stage_end(&stage);
	return EXPECT_THAT(sentence, is_so);
}

/* If anything differs from that, no rank is reported as not started. */
static void test_started(void)
{
	unstarted_ring(4);
	proxy_of(2, true, 1)->proxy.done = 1;
	is_silent("a rank that has sent a single transfer runs");
	unstarted_ring(4);
	set_state(proxy_of(2, true, 0), STEP_SEND_NET, 2);
	is_silent("a rank whose first transfer is on a slow wire runs");
	unstarted_ring(4);
	set_state(proxy_of(2, true, 0), STEP_SEND_PEER, 1);
	is_silent("a rank whose peer is not ready to receive has filled a buffer");
	unstarted_ring(4);
	proxy_of(2, false, 0)->proxy.done = 1;
	is_silent("a rank that has received something runs");
	unstarted_ring(4);
	for (int c = 0; c < 2; c++)
		set_state(proxy_of(2, false, c), STEP_RECV_NET, 0);
	is_silent("without data to receive, its proxy may hang");
	unstarted_ring(4);
	front(2)->op.algorithm = OP_TREE;
	is_silent("in a tree it may wait for others first");
	unstarted_ring(4);
	for (int i = 0; i < 4; i++)
		front(i)->op.function = OP_BROADCAST;
	is_silent("also in a Broadcast");
	unstarted_ring(4);
	front(2)->proxies[2] = front(2)->proxies[3];
	front(2)->proxy_count = 3;
	is_silent("sends to a neighbour not reached over the network are not recorded");
	/* Ranks 2 and 3 are in something else that reports nothing. */
	unstarted_ring(4);
	stage_comm(&stage, 0x200, "inside", 2, 2, 1, 2);
	for (int i = 2; i < 4; i++) {
		for (int c = 0; c < 2; c++)
			proxy_of(i, true, c)->proxy.done = proxy_of(i, false, c)->proxy.done = 0;
		stage_rank(&stage, i)->comms[1].info.flags = 0;
		stage_rank(&stage, i)->comms[1].info.mask = 1;
		stage_call(&stage, i, 2, OP_ALL_REDUCE, 1, OP_LAUNCHED, 61 * SECOND);
	}
	is_silent("it may be in an earlier call that is not recorded");
}

/* Recordings of real jobs, without their kernel events. */
static void test_recorded(const char *scene, bool is_gpu)
{
	struct recording recording;
	struct hang_options options = { .hang_ns = 5 * SECOND };
	struct verdicts verdicts;
	size_t accused = 0, right = 0;
	struct job job;
	char path[80];

	snprintf(path, sizeof(path), "tests/gpu/recorded/%s.tar", scene);
	recording_init(&recording);
	verdicts_init(&verdicts);
	if (recording_add(&recording, path, 0) != OK || recording_finish(&recording) != OK)
		abort();
	for (size_t p = 0; p < recording.count; p++) {
		struct recording_process *process = recording.processes[p];

		for (size_t i = 0; i < process->comm_count; i++) {
			process->comms[i].info.flags &= ~(uint32_t)COMM_FLAG_SEES_KERNELS;
			process->comms[i].info.mask &= ~UINT32_C(0x40);
		}
		for (size_t i = 0; i < process->flight_count; i++) {
			struct recording_flight *flight = &process->flights[i];

			flight->op.kernels_started = 0;
			memset(flight->started, 0, sizeof(flight->started));
			memset(flight->stopped, 0, sizeof(flight->stopped));
		}
	}
	if (job_make(&job, &recording) != OK || hang_find(&verdicts, &job, &options) != OK)
		abort();
	for (size_t i = 0; i < verdicts.count; i++) {
		accused += verdicts.list[i].class == VERDICT_GPU_NOT_REACHED;
		right += verdicts.list[i].class == VERDICT_GPU_NOT_REACHED &&
			 verdicts.list[i].rank == 2;
	}
	EXPECT_THAT(scene, recording.count == 4 && accused == is_gpu && right == is_gpu);
	verdicts_release(&verdicts);
	job_release(&job);
	recording_release(&recording);
}

int main(void)
{
	test_unstarted();
	test_started();
	test_recorded("gpu", true);
	test_recorded("calm", false);
	test_recorded("link", false);
	test_recorded("stop", false);
	test_recorded("skip", false);
	test_recorded("size", false);
	test_recorded("deadlock", false);
	test_recorded("datatype", false);
	test_gpu();
	test_own_gpu();
	test_link();
	test_many_links();
	test_lost();
	test_tree();
	test_nvlink();
	test_rings();
	test_unseen_of_host();
	test_unseen();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_transfer.txt");
	return tap_done();
}
