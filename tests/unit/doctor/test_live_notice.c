#include "doctor/live.h"

#include "tests/unit/doctor/live_stage.h"
#include "tests/tap.h"

static struct stage stage;

static struct recording_process *process(size_t i)
{
	return stage.hand.list[i];
}

/* A world of `count` ranks; all but `missing` (-1: none) are in their first AllReduce. */
static void all_enter(int count, int missing)
{
	stage_init(&stage);
	stage_world(&stage, count, count, "dp");
	for (int i = 0; i < count; i++)
		if (i != missing)
			stage_enter(&stage, process((size_t)i), 1, OP_ALL_REDUCE, 1);
	stage_looks(&stage, 1);
}

static void test_missing(void)
{
	const struct live_notice *notice;
	uint64_t first;

	all_enter(4, 2);
	stage_looks(&stage, 3);
	EXPECT_THAT("nothing after four seconds", stage.live.notice_count == 0);
	stage_looks(&stage, 2);
	notice = stage_notice(&stage, LIVE_BEHIND, 0);
	EXPECT_THAT("after lag_ns it is behind",
		    stage_says(notice, "rank 2 has not called AllReduce #1 of dp",
			       "Rank 2 (node0, pid 1002) is at collective #0"));
	EXPECT_THAT("the culprit is named",
		    notice && stage.live.job.seats[notice->seat].process == 2);
	EXPECT_EQUAL(stage.live.notice_count, 1);
	stage_looks(&stage, 15);
	EXPECT_THAT("after hang_ns it hangs", stage_notice(&stage, LIVE_MISSING, 0) != NULL);
	notice = stage_notice(&stage, LIVE_MISSING, 0);
	EXPECT_THAT("the texts",
		    stage_says(notice, "rank 2 has not called AllReduce #1 of dp; 3 ranks wait",
			       "3 of 4 ranks of dp have been in AllReduce #1 for 21.0 s. Rank 2 "
			       "(node0, pid 1002) has called 0 collectives on dp"));
	EXPECT_THAT("with a command to run", notice && strstr(notice->hint, "ringside ps @1002"));
	EXPECT_EQUAL(stage.live.notice_count, 1);
	first = notice ? notice->first_wall_ns : 0;
	stage_looks(&stage, 5);
	notice = stage_notice(&stage, LIVE_MISSING, 0);
	EXPECT_THAT("it persists and has a start time",
		    notice && notice->first_wall_ns == first &&
			    notice->since_wall_ns == stage.live.wall_ns - 26 * SECOND);
	stage_enter(&stage, process(2), 1, OP_ALL_REDUCE, 1);
	stage_looks(&stage, 1);
	EXPECT_THAT("it arrives, and the notice clears", stage.live.notice_count == 0);
	stage_release(&stage);
}

/* What agent, page, hub and top show of a job that allows a minute. */
static void test_hang_after(void)
{
	static char info[] = "hang_after_s=60\n";
	const struct live_job *job;
	char text[300] = "";

	stage_init(&stage);
	stage_world(&stage, 4, 4, "dp");
	process(1)->info = info;
	process(1)->info_bytes = strlen(info);
	for (size_t i = 0; i < 4; i++)
		if (i != 2)
			stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
	stage_looks(&stage, 40);
	job = &stage.live.jobs[0];
	EXPECT_THAT("after 40 s the missing rank is behind, and nothing hangs",
		    stage.live.notice_count == 1 && stage_notice(&stage, LIVE_BEHIND, 0) != NULL &&
			    stage.live.verdicts.count == 0);
	EXPECT_THAT("no rank is stuck", live_state(&stage.live, 0) != LIVE_STUCK);
	live_say_hangs(text, sizeof(text), job);
	EXPECT_THAT("the job is judged, but not called fine",
		    job->hangs.is_judged && !live_is_fine(&job->hangs) &&
			    strstr(text, "none yet: within RINGSIDE_HANG_AFTER: rank 2 has not"));
	stage.live.limits.is_hang_fixed = true;
	stage_looks(&stage, 1);
	EXPECT_THAT("--hang of the agent wins", stage_notice(&stage, LIVE_MISSING, 0) != NULL &&
							live_state(&stage.live, 0) == LIVE_STUCK);
	stage.live.limits.is_hang_fixed = false;
	stage_looks(&stage, 20);
	EXPECT_THAT("after a minute it hangs", stage_notice(&stage, LIVE_MISSING, 0) != NULL &&
						       live_state(&stage.live, 0) == LIVE_STUCK);
	process(1)->info = NULL;
	stage_release(&stage);
}

static void test_hang(void)
{
	struct recording_proxy proxy = { .proxy = { .peer = 3, .steps = 4, .flags = 0 },
					 .step_count = 1 };
	const struct live_notice *notice;

	proxy.steps[0] = (struct region_step){ .step_plus_1 = 1, .state = 10, .time_ns = { 5 } };
	all_enter(4, -1);
	process(1)->flights[0].proxies = &proxy;
	process(1)->flights[0].proxy_count = 1;
	process(1)->flights[0].op.issue_ns -= SECOND;
	stage_looks(&stage, 18);
	EXPECT_THAT("not yet", stage.live.notice_count == 0);
	stage_looks(&stage, 2);
	notice = stage_notice(&stage, LIVE_HANG, 0);
	EXPECT_THAT("all ranks are in it and the cause is unknown",
		    stage_says(notice, "4 ranks stuck in AllReduce #1 of dp",
			       "Rank 1 waits for data from rank 3 on channel 0 ("));
	EXPECT_THAT("no rank is named as the culprit", notice && notice->seat == UINT32_MAX);
	/* A send that the network does not complete. */
	proxy.proxy.flags = PROXY_IS_SEND;
	proxy.steps[0].state = 9;
	stage_looks(&stage, 1);
	notice = stage_notice(&stage, LIVE_HANG, 0);
	EXPECT_THAT("the only rank whose sends are stuck is named",
		    notice && notice->seat != UINT32_MAX &&
			    stage.live.job.seats[notice->seat].process == 1 &&
			    strstr(notice->title, "rank 1 -> rank 3, channel 0"));
	stage_release(&stage);
}

static void test_no_hang(void)
{
	all_enter(4, -1);
	for (uint64_t i = 1; i < 60; i++) {
		/* Slow, but making progress. */
		if (i % 15 == 0)
			process(i % 4)->comms[0].counts.issued++;
		stage_looks(&stage, 1);
	}
	EXPECT_THAT("progress is not a hang", stage_notice(&stage, LIVE_HANG, 0) == NULL);
	stage_release(&stage);
	stage_init(&stage);
	stage_world(&stage, 4, 4, "dp");
	stage_looks(&stage, 200);
	EXPECT_THAT("an idle job is not hung", stage.live.notice_count == 0);
	stage_release(&stage);
}

/* Stages of a pipeline have sent and received unequal numbers, which is normal. */
static void test_pipeline(void)
{
	stage_init(&stage);
	stage_world(&stage, 4, 4, "pp");
	for (uint64_t i = 1; i < 40; i++) {
		for (size_t p = 0; p < 4; p++) {
			struct recording_flight *flight;

			process(p)->flight_count = 0;
			process(p)->comms[0].counts.issued += 4 - p;
			flight = stage_enter(&stage, process(p), 1, p % 2 ? OP_RECV : OP_SEND,
					     i * (4 - p));
			process(p)->comms[0].counts.last_done_number = flight->op.number;
		}
		stage_looks(&stage, 1);
		if (stage.live.notice_count > 0)
			break;
	}
	EXPECT_THAT("ranks at unequal numbers are not reported", stage.live.notice_count == 0);
	stage_looks(&stage, 21);
	EXPECT_THAT("but a stuck pipeline is",
		    stage_says(stage_notice(&stage, LIVE_HANG, 0),
			       "4 ranks stuck in Send #156 of pp", "for 22.0 s"));
	stage_release(&stage);
}

/* Rank 3 does not arrive in its group; so rank 2 of that group does not arrive at rank 0. */
static void test_cause(void)
{
	const struct live_notice *notice;

	stage_init(&stage);
	for (int i = 0; i < 4; i++)
		stage_process(&stage, i, "node0");
	for (size_t i = 2; i < 4; i++)
		hand_comm(process(i), 0x900, "tp", (int32_t)i - 2, 2, 1);
	hand_comm(process(0), 0x901, "pair", 0, 2, 1);
	hand_comm(process(2), 0x901, "pair", 1, 2, 1);
	stage_enter(&stage, process(2), 1, OP_ALL_GATHER, 1);
	stage_enter(&stage, process(0), 1, OP_ALL_REDUCE, 1);
	stage_looks(&stage, 22);
	notice = stage_notice(&stage, LIVE_MISSING, 0);
	EXPECT_THAT("the cause is reported first", notice == &stage.live.notices[0]);
	EXPECT_THAT("with the missing rank, and all that wait for it",
		    stage_says(notice, "rank 3 has not called AllGather #1 of tp; 2 ranks wait",
			       "1 of 2 ranks of pair has been in AllReduce #1 for 22.0 s: rank 2 "
			       "has not called it and is in AllGather #1 of tp."));
	EXPECT_THAT("victims have no notice", stage.live.notice_count == 1);
	stage_release(&stage);
}

static const struct verdict *verdict_of(enum verdict_class class)
{
	for (size_t i = 0; i < stage.live.verdicts.count; i++)
		if (stage.live.verdicts.list[i].class == class)
			return &stage.live.verdicts.list[i];
	return NULL;
}

static bool advises(const struct verdict *verdict, const char *line)
{
	for (size_t i = 0; verdict != NULL && i < verdict->advice.count; i++)
		if (strcmp(verdict->advice.list[i], line) == 0)
			return true;
	return false;
}

/* Sends to a rank of another node, eight steps: all done, or the fourth stays on the wire. */
static void send_to(struct recording_flight *flight, int32_t peer, bool is_stuck)
{
	struct recording_proxy *proxy = calloc(1, sizeof(*proxy));

	if (proxy == NULL)
		abort();
	proxy->proxy.peer = peer;
	proxy->proxy.flags = PROXY_IS_SEND | PROXY_IN_PROGRESS;
	proxy->proxy.steps = 8;
	proxy->proxy.done = is_stuck ? 3 : 8;
	proxy->proxy.start_ns = proxy->proxy.since_ns = flight->op.issue_ns;
	if (is_stuck) {
		proxy->step_count = 1;
		proxy->steps[0].step_plus_1 = 4;
		proxy->steps[0].state = 9; /* NCCL's SendWait */
		proxy->steps[0].time_ns[2] = flight->op.issue_ns;
	}
	flight->proxies = proxy;
	flight->proxy_count = 1;
}

/* Two of eight ranks are on this node. */
static void test_elsewhere(void)
{
	const struct verdict *verdict;

	stage_init(&stage);
	stage_world(&stage, 2, 8, "dp");
	for (size_t i = 0; i < 2; i++) {
		process(i)->comms[0].info.nnodes = 4;
		stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
	}
	stage_looks(&stage, 22);
	EXPECT_THAT("that they are stuck is reported",
		    stage_says(stage_notice(&stage, LIVE_HANG, 0),
			       "2 local ranks wait for ranks on other nodes",
			       "6 of the job's ranks are on other nodes"));
	verdict = verdict_of(VERDICT_ELSEWHERE);
	EXPECT_THAT("as one verdict that names no rank",
		    verdict != NULL && stage.live.verdicts.count == 1 && verdict->rank == -1 &&
			    verdict->peer == -1 && verdict->host[0] == '\0' && verdict->pid == -1 &&
			    verdict->victims == 2);
	EXPECT_THAT("with the command that asks all nodes",
		    advises(verdict, "$ ringside doctor --agents HOSTS"));
	EXPECT_EQUAL(stage.live.jobs[0].hangs.found, 1);
	stage_release(&stage);

	for (int is_done = 0; is_done < 2; is_done++) {
		stage_init(&stage);
		stage_world(&stage, 2, 8, "dp");
		for (size_t i = 0; i < 2; i++) {
			process(i)->comms[0].info.nnodes = 4;
			send_to(stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1), 4,
				i == 1 && !is_done);
		}
		stage_looks(&stage, 22);
		verdict = verdict_of(VERDICT_ELSEWHERE);
		EXPECT_THAT(
			is_done ? "transfers that are done are not the cause"
				: "a transfer of this node that does not end may be the cause",
			verdict != NULL && (verdict->confidence < 0.8) == !is_done &&
				stage_says(
					stage_notice(&stage, LIVE_HANG, 0),
					"2 local ranks wait for ranks on other nodes",
					is_done ? "Nothing on this node explains it"
						: "Rank 1 waits for the network to complete sends "
						  "to rank 4 of dp (3 done): that may be the "
						  "cause. Its other end is on another node"));
		stage_release(&stage);
	}

	stage_init(&stage);
	stage_world(&stage, 2, 8, "dp");
	for (size_t i = 0; i < 2; i++) {
		process(i)->comms[0].info.nnodes = 4;
		process(i)->info = strdup("env.RINGSIDE_HOSTS=node[001-004]\n");
		process(i)->info_bytes = strlen(process(i)->info);
		stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
	}
	stage_looks(&stage, 22);
	EXPECT_THAT("the hosts are filled in if they are known",
		    advises(verdict_of(VERDICT_ELSEWHERE),
			    "$ ringside doctor --agents 'node[001-004]'"));
	stage_release(&stage);

	stage_init(&stage);
	stage.live.limits.agent_port = 9800;
	stage_world(&stage, 2, 8, "dp");
	for (size_t i = 0; i < 2; i++) {
		process(i)->comms[0].info.nnodes = 4;
		process(i)->info = strdup("env.RINGSIDE_HOSTS=node[001-003,7],a:1,b\n");
		process(i)->info_bytes = strlen(process(i)->info);
		stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
	}
	stage_looks(&stage, 22);
	EXPECT_THAT("with the port of this agent, where none is given",
		    advises(verdict_of(VERDICT_ELSEWHERE),
			    "$ ringside doctor --agents 'node[001-003,7]:9800,a:1,b:9800'"));
	stage_release(&stage);

	stage_init(&stage);
	stage_world(&stage, 2, 8, "dp");
	for (size_t i = 0; i < 2; i++) {
		process(i)->comms[0].info.nnodes = 4;
		process(i)->info = strdup("env.RINGSIDE_HOSTS=node1';reboot #\n");
		process(i)->info_bytes = strlen(process(i)->info);
		stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
	}
	stage_looks(&stage, 22);
	EXPECT_THAT("but not if they are no plain names",
		    advises(verdict_of(VERDICT_ELSEWHERE), "$ ringside doctor --agents HOSTS"));
	stage_release(&stage);

	stage_init(&stage);
	stage_world(&stage, 2, 8, "dp");
	for (size_t i = 0; i < 2; i++)
		stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
	stage_looks(&stage, 22);
	EXPECT_THAT("on a communicator of one node the others are here, without a recording",
		    verdict_of(VERDICT_ELSEWHERE) == NULL && verdict_of(VERDICT_UNSEEN) != NULL);
	stage_release(&stage);
}

/* Rank 3 computes while the others are in the collective already: that is normal, until it lasts. */
static void test_states(void)
{
	stage_init(&stage);
	stage_world(&stage, 4, 4, "dp");
	for (size_t i = 0; i < 3; i++)
		stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
	stage_look(&stage, SECOND / 2);
	EXPECT_THAT("every rank of a healthy job is running",
		    live_state(&stage.live, 0) == LIVE_RUNNING &&
			    live_state(&stage.live, 3) == LIVE_RUNNING);
	stage_looks(&stage, 2);
	EXPECT_EQUAL(live_state(&stage.live, 0), LIVE_RUNNING);
	EXPECT_EQUAL(live_state(&stage.live, 3), LIVE_NOT_ARRIVED);
	stage_looks(&stage, 6);
	EXPECT_EQUAL(live_state(&stage.live, 0), LIVE_NO_PROGRESS);
	stage_looks(&stage, 20);
	EXPECT_EQUAL(live_state(&stage.live, 0), LIVE_STUCK);
	stage_release(&stage);
}

/* A process is stopped, and nobody waits for it yet. */
static void test_stopped(void)
{
	char text[300] = "";

	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	process(1)->process_state = 'T';
	stage_looks(&stage, 2);
	live_say_hangs(text, sizeof(text), &stage.live.jobs[0]);
	EXPECT_THAT("that is no hang, but not fine either",
		    stage.live.verdicts.count == 0 && !live_is_fine(&stage.live.jobs[0].hangs) &&
			    strstr(text, "Hangs: judged, none yet: rank 1 is stopped"));
	process(1)->process_state = 'S';
	stage_looks(&stage, 1);
	EXPECT(live_is_fine(&stage.live.jobs[0].hangs));
	stage_release(&stage);
}

static void test_mismatch(void)
{
	const struct live_notice *notice;

	all_enter(4, -1);
	process(2)->flights[0].op.function = OP_ALL_GATHER;
	process(2)->flights[0].op.signature ^= 5;
	process(2)->comms[0].counts.signature ^= 5;
	stage_looks(&stage, 1);
	notice = stage_notice(&stage, LIVE_MISMATCH, 0);
	EXPECT_THAT(
		"the rank that called something else is named at once",
		stage_says(
			notice,
			"rank 2 disagrees with 3 ranks on collective #1 of dp: different function",
			"Rank 2 called AllGather of 262144 float32. "
			"Rank 0 and 2 others called AllReduce of 262144 float32."));
	stage_looks(&stage, 25);
	EXPECT_THAT("the hang that follows is the same notice",
		    stage.live.notices[0].kind == LIVE_MISMATCH && stage.live.notice_count == 1);
	stage_release(&stage);

	/* One left it early and is in its next call: the others are not missing there. */
	all_enter(4, -1);
	process(1)->flights[0].op.state = OP_DONE;
	process(1)->flights[0].op.signature ^= 5;
	process(1)->comms[0].counts.signature ^= 5;
	process(1)->flights[0].op.count /= 2;
	process(1)->comms[0].counts.last_done_number = 1;
	stage_enter(&stage, process(1), 1, OP_ALL_REDUCE, 2);
	stage_looks(&stage, 25);
	EXPECT_THAT(
		"half the count",
		stage_says(stage_notice(&stage, LIVE_MISMATCH, 0),
			   "rank 1 disagrees with 3 ranks on collective #1 of dp: different count",
			   "called AllReduce of 131072 float32"));
	EXPECT_THAT("no rank is reported missing",
		    stage_notice(&stage, LIVE_MISSING, 0) == NULL &&
			    stage_notice(&stage, LIVE_BEHIND, 0) == NULL);
	stage_release(&stage);
}

/* Ranks arrive one after the other: one against one, two against one, three against one. */
static void test_one_after_the_other(void)
{
	all_enter(4, -1);
	stage_looks(&stage, 2);
	for (size_t i = 0; i < 4; i++) {
		if (i != 1)
			stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 2);
		else
			stage_enter(&stage, process(1), 1, OP_ALL_GATHER, 2)->op.signature ^= 5;
		if (i == 1)
			process(1)->comms[0].counts.signature ^= 5;
		/* The others are still active. */
		for (size_t j = i + 1; j < 4; j++)
			process(j)->comms[0].counts.issued++;
		if (i == 3)
			break;
		stage_look(&stage, SECOND / 10);
		EXPECT_THAT("nothing is reported while some have not arrived",
			    stage.live.notice_count == 0);
	}
	stage_look(&stage, SECOND / 10);
	EXPECT_THAT(
		"with the last of them the final verdict is reported",
		stage_says(
			stage_notice(&stage, LIVE_MISMATCH, 0),
			"rank 1 disagrees with 3 ranks on collective #2 of dp: different function",
			"Rank 0 and 2 others called"));
	stage_release(&stage);
}

/* With two ranks there is no majority. And it was before what is recorded. */
static void test_undecided(void)
{
	const struct live_notice *notice;

	all_enter(2, -1);
	process(1)->flights[0].op.signature ^= 5;
	process(1)->comms[0].counts.signature ^= 5;
	stage_looks(&stage, 1);
	notice = stage_notice(&stage, LIVE_MISMATCH, 0);
	EXPECT_THAT("of two ranks none is named",
		    stage_says(notice, "ranks of dp disagree on collective #1 (evenly split)",
			       "Rank 0 called") &&
			    notice->seat == UINT32_MAX);
	stage_release(&stage);

	/* Only the counters are left. */
	stage_init(&stage);
	stage_world(&stage, 3, 3, "dp");
	for (size_t i = 0; i < 3; i++) {
		process(i)->comms[0].counts.collectives = 7;
		process(i)->comms[0].counts.signature = i == 1 ? 8 : 9;
	}
	stage_looks(&stage, 1);
	EXPECT_THAT("counters that may be changing prove nothing", stage.live.notice_count == 0);
	stage_looks(&stage, 1);
	EXPECT_THAT("those of stuck ranks do",
		    stage_says(stage_notice(&stage, LIVE_MISMATCH, 0),
			       "rank 1 disagrees with 2 ranks on collective #7 of dp",
			       "no longer recorded"));
	stage_release(&stage);
}

static void test_dead(void)
{
	const struct live_notice *notice;

	all_enter(4, -1);
	process(3)->life = RECORDING_KILLED;
	stage_looks(&stage, 2);
	EXPECT_THAT("the whole job may be dying", stage.live.notice_count == 0);
	stage_looks(&stage, 1);
	notice = stage_notice(&stage, LIVE_DEAD, 0);
	EXPECT_THAT(
		"others are alive",
		stage_says(notice, "rank 3 died; 3 ranks of dp are left",
			   "The process of rank 3 (node0, pid 1003) is gone and did not close its "
			   "recording: it was killed or crashed. It was in AllReduce #1 of dp."));
	stage_looks(&stage, 22);
	EXPECT_THAT("they hang because of it",
		    stage_says(stage_notice(&stage, LIVE_HANG, 0),
			       "rank 3 is dead; 3 ranks wait in AllReduce #1 of dp",
			       "It was in AllReduce #1 of dp."));
	EXPECT_THAT("in this order", stage.live.notices[0].kind == LIVE_DEAD);
	for (size_t i = 0; i < 3; i++)
		process(i)->life = RECORDING_KILLED;
	stage_looks(&stage, 5);
	EXPECT_THAT("no rank is left", stage.live.notice_count == 0);
	stage_release(&stage);

	all_enter(2, -1);
	process(1)->life = RECORDING_ENDED;
	stage_looks(&stage, 10);
	EXPECT_THAT("a process that ended is not dead", stage_notice(&stage, LIVE_DEAD, 0) == NULL);
	stage_release(&stage);
}

/* `seconds` in which rank 1 is late: the others spend half of the time waiting for it. */
static void straggle(int seconds, uint64_t *count, uint64_t *others_ns, uint64_t *own_ns)
{
	for (int i = 0; i < seconds; i++) {
		*count += 2;
		*others_ns += SECOND * 6 / 10;
		*own_ns += SECOND / 10;
		for (size_t p = 0; p < 4; p++)
			stage_total(process(p), 1, OP_ALL_REDUCE, *count,
				    p == 1 ? *own_ns : *others_ns);
		stage_looks(&stage, 1);
	}
}

static void test_straggler(void)
{
	uint64_t count = 0, others_ns = 0, own_ns = 0;
	const struct live_notice *notice;

	stage_init(&stage);
	stage_world(&stage, 4, 8, "dp");
	straggle(30, &count, &others_ns, &own_ns);
	EXPECT_THAT("once is not enough", stage.live.notice_count == 0);
	straggle(10, &count, &others_ns, &own_ns);
	notice = stage_notice(&stage, LIVE_STRAGGLER, 0);
	EXPECT_THAT(
		"repeatedly is",
		stage_says(notice, "3 ranks of dp wait for rank 1: 50% of the time",
			   "rank 1 (node0, pid 1001) has been last to arrive at the collectives of "
			   "dp. Those of the others waited at least 50% of that time, part of it "
			   "perhaps during compute. 4 ranks are on"));
	EXPECT_EQUAL(stage.live.job.seats[stage.live.comms[0].straggler].process, 1);
	/* Now no rank is late. */
	for (int i = 0; i < 11; i++) {
		count += 2;
		others_ns += SECOND / 10;
		own_ns += SECOND / 10;
		for (size_t p = 0; p < 4; p++)
			stage_total(process(p), 1, OP_ALL_REDUCE, count,
				    p == 1 ? own_ns : others_ns);
		stage_looks(&stage, 1);
	}
	EXPECT_THAT("it recovers",
		    stage.live.notice_count == 0 && stage.live.comms[0].straggler == UINT32_MAX);
	stage_release(&stage);
}

/* Late in turns: all ranks wait, and none is the cause. */
static void test_turns(void)
{
	uint64_t time_ns[4] = { 0 };

	stage_init(&stage);
	stage_world(&stage, 4, 4, "dp");
	for (uint64_t i = 1; i < 100; i++) {
		for (size_t p = 0; p < 4; p++) {
			time_ns[p] += i % 4 == p ? SECOND / 10 : SECOND * 6 / 10;
			stage_total(process(p), 1, OP_ALL_REDUCE, i, time_ns[p]);
		}
		stage_looks(&stage, 1);
		if (stage.live.notice_count > 0)
			break;
	}
	EXPECT_THAT("ranks that are late in turns are no stragglers", stage.live.notice_count == 0);
	stage_release(&stage);
}

static void test_loss(void)
{
	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	process(1)->lost[LOST_QUOTA] = 5;
	stage_looks(&stage, 2);
	EXPECT_THAT("earlier losses are not reported", stage.live.notice_count == 0);
	process(1)->lost[LOST_QUOTA] = 12;
	process(1)->lost[LOST_PROXY_SLOT] = 99; /* a detail */
	stage_looks(&stage, 2);
	EXPECT_THAT("losses are reported",
		    stage_says(stage_notice(&stage, LIVE_LOSS, 0),
			       "rank 1: 7 operations not recorded", "by reason: quota 12."));
	stage_looks(&stage, 70);
	EXPECT_THAT("for a minute", stage.live.notice_count == 0);
	stage_release(&stage);
}

/* One user has more notices than there is room for. */
static void test_many_of_one_user(void)
{
	size_t of_other = 0;

	stage_init(&stage);
	for (int i = 0; i < HAND_PROCESSES; i++) {
		struct recording_process *one = stage_process(&stage, i, "node0");

		one->owner = i >= HAND_PROCESSES - 2 ? 1000 : 2000;
		hand_comm(one, 1000 + (uint64_t)i, "c", 0, 2, 1);
		stage_enter(&stage, one, 1, OP_ALL_REDUCE, 1);
	}
	stage_looks(&stage, 25);
	EXPECT_EQUAL(stage.live.notice_count, LIVE_NOTICES_MAX - 1);
	EXPECT_EQUAL(stage.live.notice_count + stage.live.notices_left_out, HAND_PROCESSES);
	for (size_t i = 0; i < stage.live.notice_count; i++) {
		uint32_t seat = stage.live.job.comms[stage.live.notices[i].comm].seats[0];

		of_other += process((int)stage.live.job.seats[seat].process)->owner == 1000;
	}
	EXPECT_THAT("it does not displace those of others", of_other == 2);
	stage_release(&stage);
}

/* Unrelated jobs, each waiting for another node. */
static void test_many(void)
{
	bool is_ordered = true;

	stage_init(&stage);
	for (int i = 0; i < HAND_PROCESSES; i++) {
		struct recording_process *one = stage_process(&stage, i, "node0");

		hand_comm(one, 1000 + (uint64_t)i, "c", 0, 2, 1);
		stage_enter(&stage, one, 1, OP_ALL_REDUCE, 1);
	}
	stage_looks(&stage, 25);
	EXPECT_EQUAL(stage.live.notice_count, LIVE_NOTICES_MAX - 1);
	EXPECT_EQUAL(stage.live.notice_count + stage.live.notices_left_out, HAND_PROCESSES);
	for (size_t i = 0; i < stage.live.notice_count; i++)
		is_ordered &= stage.live.notices[i].first_wall_ns != 0 &&
			      stage.live.notices[i].title[0] != '\0';
	EXPECT_THAT("as many as there is room for", is_ordered);
	stage_release(&stage);
}

static void test_names(void)
{
	EXPECT_THAT("names of kinds",
		    strcmp(live_notice_name(LIVE_HANG), "hang") == 0 &&
			    strcmp(live_notice_name(LIVE_LOSS), "loss") == 0 &&
			    strcmp(live_notice_name(LIVE_NOTICE_KINDS), "?") == 0);
}

/* Of twelve ranks, the first has been in it; `behind` of the others have not called it. Some of them are over. */
static void test_who_is_behind(void)
{
	for (int behind = 1; behind <= 7; behind += 2)
		for (int over = 0; over < (behind == 3 ? 4 : 1); over++) {
			stage_init(&stage);
			stage_world(&stage, 12, 12 + over, "dp");
			for (int i = 0; i < 12; i++) {
				process((size_t)i)->comms[0].info.nnodes = 2;
				process((size_t)i)->comms[0].counts.collectives = 6;
				if (i == 0 || i > behind)
					stage_enter(&stage, process((size_t)i), 1, OP_ALL_REDUCE,
						    7);
			}
			if (over > 0) {
				process(1)->life = over == 1 ? RECORDING_KILLED : RECORDING_ENDED;
				process(1)->comms[0].info.flags |=
					over == 3 ? COMM_FLAG_FINALIZED : 0;
			}
			stage_looks(&stage, 7);
			EXPECT_THAT("somebody is behind or dead", stage.live.notice_count > 0);
			stage_release(&stage);
		}
}

/* A rank that is behind, but in an operation of another communicator, is not the cause. */
static void test_held_up(void)
{
	for (int order = 0; order < 2; order++) {
		size_t held = order == 0 ? 1 : 2;

		stage_init(&stage);
		stage_world(&stage, 4, 4, "dp");
		stage_world(&stage, 4, 4, "tp");
		stage_enter(&stage, process(0), 1, OP_ALL_REDUCE, 1);
		stage_enter(&stage, process(3), 1, OP_ALL_REDUCE, 1);
		stage_enter(&stage, process(held), 2, OP_ALL_GATHER, 1);
		stage_looks(&stage, 7);
		for (size_t i = 0; i < stage.live.notice_count; i++)
			EXPECT_THAT("the one that is in nothing is named",
				    stage.live.job.seats[stage.live.notices[i].seat].process !=
					    held);
		stage_release(&stage);
	}
}

/* More ranks of this node than a sentence lists, in two communicators, some of a job of one node. */
static void test_many_elsewhere(void)
{
	for (int local = 1; local <= 6; local += local == 1 ? 3 : 1)
		for (int second = 0; second < 3; second++) {
			stage_init(&stage);
			stage_world(&stage, local, local + 1, "dp");
			stage_world(&stage, local, local + 2, "pp");
			for (int i = 0; i < local; i++) {
				process((size_t)i)->world_size = 16;
				process((size_t)i)->comms[0].info.nnodes = 2;
				process((size_t)i)->comms[1].info.nnodes = 2;
				stage_enter(&stage, process((size_t)i), second == 2 ? 2 : 1,
					    OP_ALL_REDUCE, 1);
			}
			stage_looks(&stage, second == 0 ? 0 : 4);
			for (int i = 0; second > 0 && i < local; i++)
				stage_enter(&stage, process((size_t)i), second == 2 ? 1 : 2,
					    OP_ALL_GATHER, 1);
			stage_looks(&stage, 24);
			EXPECT_THAT("one verdict for the job",
				    stage.live.verdicts.count == 1 &&
					    verdict_of(VERDICT_ELSEWHERE) != NULL);
			stage_release(&stage);
		}
}

/* All ranks of a communicator are here and in it, others of the job are not. */
static void test_stuck_elsewhere(void)
{
	for (int nnodes = 1; nnodes <= 2; nnodes++)
		for (int64_t world = 4; world <= 8; world += 4) {
			stage_init(&stage);
			stage_world(&stage, 4, 4, "dp");
			for (size_t i = 0; i < 4; i++) {
				process(i)->world_size = world;
				process(i)->comms[0].info.nnodes = nnodes;
				stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
			}
			stage_looks(&stage, 22);
			EXPECT_THAT("ranks elsewhere may be the cause",
				    (verdict_of(VERDICT_ELSEWHERE) != NULL) ==
					    (nnodes == 2 && world == 8));
			stage_release(&stage);
		}
}

/* A Send and a Recv that hang, with their peer. */
static void test_pairs(void)
{
	for (int replay = 0; replay < 2; replay++) {
		stage_init(&stage);
		stage_world(&stage, 4, 4, "pp");
		for (size_t i = 0; i < 4; i++) {
			struct recording_flight *flight = stage_enter(
				&stage, process(i), 1, i % 2 == 0 ? OP_SEND : OP_RECV, 1);

			flight->op.peer = (int32_t)(i ^ 1);
			flight->op.flags |= replay ? OP_FLAG_REPLAY : 0;
		}
		stage_looks(&stage, 22);
		EXPECT(stage.live.notice_count > 0);
		stage_release(&stage);
		stage_init(&stage);
		stage_world(&stage, 4, 4, "pp");
		stage_enter(&stage, process(1), 1, replay ? OP_RECV : OP_SEND, 1)->op.peer = 2;
		stage_looks(&stage, 22);
		EXPECT(stage.live.notice_count > 0);
		stage_release(&stage);
	}
}

int main(void)
{
	test_missing();
	test_hang_after();
	test_hang();
	test_no_hang();
	test_pipeline();
	test_cause();
	test_elsewhere();
	test_states();
	test_stopped();
	test_mismatch();
	test_one_after_the_other();
	test_undecided();
	test_dead();
	test_straggler();
	test_turns();
	test_loss();
	test_many();
	test_many_of_one_user();
	test_names();
	test_who_is_behind();
	test_held_up();
	test_many_elsewhere();
	test_stuck_elsewhere();
	test_pairs();
	expected_compare(&stage_text, "tests/unit/doctor/expected/live_notice.txt");
	return tap_done();
}
