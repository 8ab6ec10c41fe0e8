/* Sends and Recvs, and deadlocks across communicators. */

#include "tests/unit/doctor/hang_stage.h"
#include "tests/tap.h"

static struct hang_stage stage;

static const struct verdict *first(void)
{
	return &stage.verdicts.list[0];
}

static struct recording_flight *pair(int rank, int comm, uint8_t function, int peer, uint64_t match,
				     uint8_t state, uint64_t ago_ns)
{
	struct recording_flight *flight =
		stage_call(&stage, rank, comm, function, match, state, ago_ns);

	flight->op.peer = peer;
	return flight;
}

static void test_not_called(void)
{
	stage_begin(&stage, 4, 1);
	pair(1, 1, OP_RECV, 0, 7, OP_RUNNING, 60 * SECOND);
	pair(0, 1, OP_SEND, 1, 6, OP_DONE, 61 * SECOND);
	EXPECT_THAT("a Recv without its Send", stage_only(&stage, VERDICT_NEVER_ISSUED, 0));
	EXPECT_THAT("the title",
		    strcmp(first()->title, "rank 0 has not called the Send for rank 1's Recv #7 "
					   "from rank 0 of world; 1 rank waits") == 0);
	stage_end(&stage);

	stage_begin(&stage, 4, 1);
	pair(1, 1, OP_SEND, 2, 7, OP_RUNNING, 60 * SECOND);
	EXPECT_THAT("a Send without its Recv", stage_only(&stage, VERDICT_NEVER_ISSUED, 2));
	EXPECT_THAT("with less confidence: nothing is known of that peer",
		    first()->confidence < 0.9);
	stage_end(&stage);
}

/* Stages of a pipeline: 3 waits for 2, 2 for 1, 1 for 0, which does not send. */
static void test_pipeline(void)
{
	stage_begin(&stage, 4, 1);
	for (int i = 1; i < 4; i++)
		pair(i, 1, OP_RECV, i - 1, 5, OP_RUNNING, 60 * SECOND);
	EXPECT_THAT("the first stage is the culprit", stage_only(&stage, VERDICT_NEVER_ISSUED, 0));
	EXPECT_EQUAL(first()->victims, 3);
	stage_rank(&stage, 0)->life = RECORDING_KILLED;
	EXPECT_THAT("or dead", stage_only(&stage, VERDICT_PROCESS_DEAD, 0));
	stage_rank(&stage, 0)->life = RECORDING_ALIVE;
	stage_rank(&stage, 1)->comms[0].counts.last_done_ns = NOW_NS - SECOND;
	EXPECT_THAT("while it makes progress no rank is blamed", stage_nobody(&stage));
	stage_end(&stage);
}

static void test_both(void)
{
	struct recording_flight *send;

	stage_begin(&stage, 4, 1);
	send = pair(0, 1, OP_SEND, 1, 5, OP_RUNNING, 60 * SECOND);
	stage_proxy(send, true, 1, 3, STEP_SEND_NET, 59 * SECOND);
	stage_proxy(pair(1, 1, OP_RECV, 0, 5, OP_RUNNING, 60 * SECOND), false, 0, 3, STEP_RECV_NET,
		    59 * SECOND);
	EXPECT_THAT("the network between them", stage_only(&stage, VERDICT_NETWORK_STUCK, 0));
	EXPECT_THAT("reported once", first()->peer == 1 && first()->channel == 3 &&
					     strstr(first()->title, "rank 0 -> rank 1, channel 3"));
	send->proxies[0].steps[0].state = STEP_SEND_GPU;
	EXPECT_THAT("a sender that produces no data", stage_only(&stage, VERDICT_GPU_STUCK, 0));
	send->op.state = OP_LAUNCHED;
	send->op.kernels_started = 0;
	EXPECT_THAT("a rank whose GPU has not started it",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 0));
	EXPECT_THAT("with its own call, not that of its peer",
		    strstr(first()->title, "rank 0 has called Send #5 to rank 1 of world") != NULL);
	stage_end(&stage);

	/* One launch, any order: rank 0 has received from 2 and not sent to 1. */
	stage_begin(&stage, 4, 1);
	send = pair(0, 1, OP_SEND, 1, 5, OP_RUNNING, 60 * SECOND);
	stage_proxy(send, true, 1, 3, STEP_SEND_NET, 59 * SECOND);
	pair(0, 1, OP_RECV, 2, 5, OP_DONE, 60 * SECOND);
	stage_proxy(pair(1, 1, OP_RECV, 0, 5, OP_RUNNING, 60 * SECOND), false, 0, 3, STEP_RECV_NET,
		    59 * SECOND);
	EXPECT_THAT("an operation older than a finished one may still be open",
		    stage_only(&stage, VERDICT_NETWORK_STUCK, 0));
	stage_end(&stage);
}

/* The data has arrived, and the receiver's GPU does not consume it. */
static void test_unread(void)
{
	stage_begin(&stage, 4, 1);
	stage_proxy(pair(0, 1, OP_SEND, 1, 7, OP_RUNNING, 60 * SECOND), true, 1, 0, STEP_SEND_PEER,
		    59 * SECOND);
	stage_proxy(pair(1, 1, OP_RECV, 0, 7, OP_RUNNING, 60 * SECOND), false, 0, 0, STEP_RECV_GPU,
		    59 * SECOND);
	EXPECT_THAT("the receiver's GPU", stage_only(&stage, VERDICT_GPU_STUCK, 1));
	stage_end(&stage);
}

/* Each rank sends first and receives afterwards. */
static void test_circle_of_sends(void)
{
	stage_begin(&stage, 3, 1);
	for (int i = 0; i < 3; i++)
		pair(i, 1, OP_SEND, (i + 1) % 3, 1, OP_RUNNING, 60 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("a cycle of Sends is a deadlock",
		    stage.verdicts.count == 1 && first()->class == VERDICT_DEADLOCK);
	EXPECT_EQUAL(first()->evidence.count, 3);
	EXPECT_EQUAL(first()->victims, 3);
	stage_end(&stage);
}

/* Ranks 0 and 1 call world and pair in a different order, and wait for each before they call the next. */
static void test_deadlock(void)
{
	int tp;

	stage_begin(&stage, 4, 1);
	tp = stage_comm(&stage, 0x200, "tp", 0, 2, 1, 2);
	for (int i = 0; i < 4; i++)
		if (i != 1)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 1, tp, OP_ALL_GATHER, 1, OP_RUNNING, 60 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("ranks that wait for each other over two communicators",
		    stage.verdicts.count == 1 && first()->class == VERDICT_DEADLOCK);
	EXPECT_EQUAL(first()->evidence.count, 2);
	EXPECT_EQUAL(first()->victims, 4);
	EXPECT_THAT(
		"every link is listed",
		stage_has_line(&first()->evidence,
			       "is in AllReduce #1 of world and waits for rank 1 (node1, pid 4001, "
			       "GPU 1), which has not called it and is in AllGather #1 of tp") &&
			stage_has_line(&first()->evidence,
				       "Rank 1 (node1, pid 4001, GPU 1) is in AllGather #1 of tp "
				       "and waits for rank 0"));
	EXPECT_THAT("with both communicators", strstr(first()->title, "world, tp") != NULL);
	stage_end(&stage);
}

/* The same with hosts that do not wait: both called both, and each GPU runs the one called first. */
static void test_deadlock_of_gpus(void)
{
	int tp;

	stage_begin(&stage, 2, 1);
	tp = stage_comm(&stage, 0x200, "tp", 0, 2, 1, 2);
	stage_call(&stage, 0, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 0, tp, OP_ALL_GATHER, 1, OP_LAUNCHED, 60 * SECOND);
	stage_call(&stage, 1, tp, OP_ALL_GATHER, 1, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 1, 1, OP_ALL_REDUCE, 1, OP_LAUNCHED, 60 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("GPUs that wait for each other",
		    stage.verdicts.count == 1 && first()->class == VERDICT_DEADLOCK);
	EXPECT_THAT("the evidence mentions the GPU",
		    stage_has_line(&first()->evidence, "whose GPU has not started it"));
	stage_end(&stage);
}

/* A cycle, and outside of it a rank that has not arrived: that one is certain. */
static void test_circle_with_exit(void)
{
	int tp;

	stage_begin(&stage, 4, 1);
	tp = stage_comm(&stage, 0x200, "tp", 0, 2, 1, 2);
	stage_call(&stage, 0, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 3, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 1, tp, OP_ALL_GATHER, 1, OP_RUNNING, 60 * SECOND);
	EXPECT_THAT("an idle rank comes before a cycle",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 2));
	stage_end(&stage);
}

/* The state of a stopped process is old: its own waits are ignored. */
static void test_stopped(void)
{
	stage_begin(&stage, 3, 1);
	pair(0, 1, OP_RECV, 1, 1, OP_RUNNING, 60 * SECOND);
	stage_proxy(pair(1, 1, OP_RECV, 2, 1, OP_RUNNING, 61 * SECOND), false, 2, 0, STEP_RECV_NET,
		    60 * SECOND);
	stage_proxy(pair(2, 1, OP_SEND, 1, 1, OP_RUNNING, 60 * SECOND), true, 1, 0, STEP_SEND_PEER,
		    60 * SECOND);
	stage_rank(&stage, 1)->process_state = 'T';
	EXPECT_THAT("a Send to a stopped process is a victim",
		    stage_only(&stage, VERDICT_PROCESS_STOPPED, 1));
	EXPECT_EQUAL(first()->victims, 2);
	EXPECT_THAT("and the stopped process itself is not listed as waiting",
		    !stage_has_line(&first()->evidence, "Rank 1 has been in"));
	stage_end(&stage);

	stage_begin(&stage, 2, 1);
	pair(1, 1, OP_RECV, 0, 1, OP_RUNNING, 61 * SECOND);
	stage_rank(&stage, 1)->process_state = 'T';
	EXPECT_THAT("also if no rank waits for it yet",
		    stage_only(&stage, VERDICT_PROCESS_STOPPED, 1));
	stage_end(&stage);
}

/* Rank 0's Send does not complete; after it, all ranks have an AllGather of the same communicator. */
static void test_behind(void)
{
	stage_begin(&stage, 4, 1);
	stage_proxy(pair(0, 1, OP_SEND, 1, 1, OP_RUNNING, 60 * SECOND), true, 1, 0, STEP_SEND_NET,
		    60 * SECOND);
	stage_proxy(pair(1, 1, OP_RECV, 0, 1, OP_RUNNING, 60 * SECOND), false, 0, 0, STEP_RECV_NET,
		    60 * SECOND);
	for (int i = 0; i < 4; i++)
		stage_call(&stage, i, 1, OP_ALL_GATHER, 1, i < 2 ? OP_LAUNCHED : OP_RUNNING,
			   59 * SECOND);
	EXPECT_THAT("a collective after a Send waits for the Send",
		    stage_only(&stage, VERDICT_NETWORK_STUCK, 0));
	EXPECT_EQUAL(first()->victims, 3);
	stage_end(&stage);

	/* Rank 1 never calls the Recv: it is in the AllGather, which rank 0 reaches after its Send. */
	stage_begin(&stage, 4, 1);
	pair(0, 1, OP_SEND, 1, 1, OP_RUNNING, 60 * SECOND);
	for (int i = 0; i < 4; i++)
		stage_call(&stage, i, 1, OP_ALL_GATHER, 1, i == 0 ? OP_LAUNCHED : OP_RUNNING,
			   59 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("and the Send may wait for the collective: a cycle",
		    stage.verdicts.count == 1 && first()->class == VERDICT_DEADLOCK);
	stage_end(&stage);
}

/* Ranks 0 and 1 wait for 2 in world, and nothing explains why they are stuck in tp. */
static void test_weak(void)
{
	int tp, other;

	stage_begin(&stage, 5, 5);
	tp = stage_comm(&stage, 0x200, "tp", 0, 2, 1, 2);
	for (int i = 0; i < 2; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
		stage_call(&stage, i, tp, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	}
	for (int i = 3; i < 5; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 61 * SECOND);
	EXPECT_THAT("an unexplained operation of victims is not a second cause",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 2));
	/* 3 and 4 are unrelated. */
	other = stage_comm(&stage, 0x300, "other", 3, 2, 1, 2);
	for (int i = 3; i < 5; i++)
		stage_call(&stage, i, other, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("of other ranks it is", stage.verdicts.count == 2 &&
						    first()->class == VERDICT_NEVER_ISSUED &&
						    stage.verdicts.list[1].class == VERDICT_STUCK);
	stage_end(&stage);
}

int main(void)
{
	test_not_called();
	test_pipeline();
	test_both();
	test_unread();
	test_circle_of_sends();
	test_deadlock();
	test_deadlock_of_gpus();
	test_circle_with_exit();
	test_stopped();
	test_behind();
	test_weak();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_pair.txt");
	return tap_done();
}
