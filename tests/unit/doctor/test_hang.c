/* Ranks that have not arrived, processes that are gone, and hangs without a culprit. */

#include "tests/unit/doctor/hang_stage.h"
#include "tests/tap.h"

static struct hang_stage stage;

static const struct verdict *first(void)
{
	return &stage.verdicts.list[0];
}

/* All ranks of world finished AllReduce #1; all but `missing` have been in AllReduce #2 for `ago_ns`. */
static void all_but(int count, int per_host, int missing, uint64_t ago_ns)
{
	stage_begin(&stage, count, per_host);
	for (int i = 0; i < count; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, ago_ns + SECOND);
		if (i != missing)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_RUNNING, ago_ns);
	}
}

static void test_never_issued(void)
{
	all_but(8, 4, 5, 60 * SECOND);
	EXPECT_THAT("the rank that has not called it is named",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5));
	EXPECT_EQUAL(first()->victims, 7);
	EXPECT_EQUAL(first()->for_ns, 60 * SECOND);
	EXPECT_EQUAL(first()->since_wall_ns, WALL_NS - 60 * SECOND);
	EXPECT_EQUAL(first()->pid, 4005);
	EXPECT_EQUAL(first()->gpu, 5);
	EXPECT_EQUAL(first()->number, 2);
	EXPECT_THAT("with its host", strcmp(first()->host, "node1") == 0);
	EXPECT_THAT("and communicator", strcmp(first()->comm, "world") == 0);
	EXPECT_THAT("the title",
		    strcmp(first()->title,
			   "rank 5 has not called AllReduce #2 of world; 7 ranks wait") == 0);
	EXPECT_THAT("with its last activity",
		    stage_has_line(&first()->evidence, "AllReduce #1 of world, 1 min 00 s ago"));
	EXPECT_THAT("and a command to run",
		    stage_has_line(&first()->advice, "ringside stacks @4005"));
	EXPECT_THAT("high confidence", first()->confidence > 0.95);
	EXPECT_EQUAL(first()->severity, VERDICT_ERROR);
	stage_end(&stage);
}

static void test_several_missing(void)
{
	all_but(8, 4, 5, 60 * SECOND);
	stage_rank(&stage, 6)->flight_count = 1;
	stage_rank(&stage, 6)->comms[0].counts.collectives = 1;
	EXPECT_THAT("two missing ranks are one verdict",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5));
	EXPECT_THAT("that lists both", stage_has_line(&first()->evidence, "2 ranks (5, 6)"));
	EXPECT_THAT("and their host", stage_has_line(&first()->evidence, "All are on node1"));
	EXPECT_EQUAL(first()->victims, 6);
	stage_end(&stage);

	stage_begin(&stage, 512, 8);
	for (int i = 0; i < 12; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	EXPECT_THAT("500 missing ranks of 512 are one verdict",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 12));
	EXPECT_THAT("listed as a range", stage_has_line(&first()->evidence, "500 ranks (12-511)."));
	EXPECT_THAT("and confidence drops",
		    stage_has_line(&first()->missing, "one call too many") &&
			    first()->confidence < 0.8);
	stage_end(&stage);
}

/* Rank 3 does not arrive on tp, so rank 2, which waits there, does not arrive on world. */
static void test_held_elsewhere(void)
{
	int tp;

	all_but(4, 4, -1, 60 * SECOND);
	for (int i = 2; i < 4; i++) {
		stage_rank(&stage, i)->flight_count = 1;
		stage_rank(&stage, i)->comms[0].counts.collectives = 1;
	}
	tp = stage_comm(&stage, 0x200, "tp", 2, 2, 1, 2);
	stage_call(&stage, 2, tp, OP_ALL_GATHER, 1, OP_RUNNING, 50 * SECOND);
	EXPECT_THAT("the end of the chain is named", stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	EXPECT_EQUAL(first()->victims, 3);
	EXPECT_THAT("with its links",
		    stage_has_line(&first()->evidence,
				   "2 of 4 ranks of world have been in AllReduce #2"));
	stage_end(&stage);

	/* The same while tp has been stuck for less than a hang: rank 2 is not blamed meanwhile. */
	all_but(4, 4, 2, 60 * SECOND);
	tp = stage_comm(&stage, 0x200, "tp", 2, 2, 1, 2);
	stage_call(&stage, 2, tp, OP_ALL_GATHER, 1, OP_RUNNING, 8 * SECOND);
	stage_rank(&stage, 3)->flight_count = 1;
	stage_rank(&stage, 3)->comms[0].counts.collectives = 1;
	EXPECT_THAT("a rank that has been in something else for some seconds is not blamed",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	stage_end(&stage);

	/* Rank 2 is active elsewhere. */
	all_but(4, 4, 2, 60 * SECOND);
	tp = stage_comm(&stage, 0x200, "tp", 2, 2, 1, 2);
	stage_call(&stage, 2, tp, OP_ALL_GATHER, 1, OP_DONE, SECOND);
	EXPECT_THAT("a rank that is active elsewhere", stage_only(&stage, VERDICT_NEVER_ISSUED, 2));
	EXPECT_THAT("is reported with lower confidence",
		    first()->severity == VERDICT_WARNING && first()->confidence < 0.7);
	stage_end(&stage);
}

static void test_processes(void)
{
	all_but(8, 4, -1, 60 * SECOND);
	stage_kill(&stage, 3, 59 * SECOND);
	EXPECT_THAT("a killed process is the cause", stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	EXPECT_THAT("with certainty", first()->confidence >= 0.95 && first()->victims == 7);
	EXPECT_THAT("and its operation is shown",
		    stage_has_line(&first()->evidence, "It was in AllReduce #2 of world"));
	stage_end(&stage);

	all_but(8, 4, 3, 60 * SECOND);
	stage_rank(&stage, 3)->life = RECORDING_KILLED;
	EXPECT_THAT("also if it had not called it", stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	EXPECT_THAT("and no second cause is seen", first()->missing.count == 0);
	stage_end(&stage);

	all_but(8, 4, 5, 60 * SECOND);
	stage_kill(&stage, 3, 59 * SECOND);
	EXPECT_THAT("a dead rank, and one that has not called it",
		    stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	EXPECT_THAT("which may be a second cause",
		    stage_has_line(&first()->missing, "Rank 5 has not called it either"));
	stage_end(&stage);

	all_but(8, 4, -1, 60 * SECOND);
	stage_rank(&stage, 6)->process_state = 'T';
	EXPECT_THAT("a stopped process is the cause, too",
		    stage_only(&stage, VERDICT_PROCESS_STOPPED, 6));
	EXPECT_THAT("with the command that resumes it",
		    stage_has_line(&first()->advice, "kill -CONT 4006"));
	stage_end(&stage);

	all_but(8, 4, 3, 60 * SECOND);
	stage_rank(&stage, 3)->life = RECORDING_ENDED;
	EXPECT_THAT("a rank that ended without calling it",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	EXPECT_THAT("is reported as ended", strstr(first()->title, "has ended") != NULL);
	stage_end(&stage);

	all_but(8, 4, -1, 60 * SECOND);
	stage_rank(&stage, 3)->life = RECORDING_ENDED;
	EXPECT_THAT("a rank that called exit() in the middle of it",
		    stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	EXPECT_THAT("is reported as exited",
		    strstr(first()->title, "rank 3 has exited; 7") != NULL);
	EXPECT_EQUAL(first()->victims, 7);
	stage_rank(&stage, 3)->flight_count = 0;
	stage_rank(&stage, 3)->comms[0].counts.abandoned = 1;
	EXPECT_THAT("also if only its counts show that it left something unfinished",
		    stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	stage_rank(&stage, 3)->comms[0].info.flags |= COMM_FLAG_FINALIZED;
	stage_find(&stage);
	EXPECT_THAT("but not if it closed the communicator first",
		    stage.verdicts.count == 0 || first()->rank != 3);
	stage_end(&stage);
}

/* Watchdogs do not end all ranks at the same time, nor do launchers. */
static void test_victims(void)
{
	all_but(8, 4, 5, 60 * SECOND);
	stage_kill(&stage, 3, 30 * SECOND);
	stage_kill(&stage, 6, 10 * SECOND);
	EXPECT_THAT("ranks died in a hang that is another one's fault",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5));
	EXPECT_THAT("they are victims", first()->victims == 7 && first()->confidence > 0.9);
	EXPECT_THAT("and named", stage_has_line(&first()->evidence, "Ranks 3, 6 have died since"));
	stage_end(&stage);

	all_but(8, 4, 5, 60 * SECOND);
	stage_kill(&stage, 3, 45 * SECOND);
	EXPECT_THAT("it was not in it for long", stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	stage_end(&stage);

	/* Rank 5 was late, for a reason of its own, and calls it after the death. */
	all_but(8, 4, 5, 60 * SECOND);
	stage_call(&stage, 5, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 25 * SECOND);
	stage_kill(&stage, 3, 30 * SECOND);
	EXPECT_THAT("the last rank arrived after the death",
		    stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	EXPECT_THAT("which is certain", first()->confidence >= 0.95);
	stage_end(&stage);

	all_but(8, 4, -1, 60 * SECOND);
	stage_kill(&stage, 3, 30 * SECOND);
	EXPECT_THAT("all were in it for long: the death may be a consequence",
		    stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	EXPECT_THAT("which the verdict says",
		    first()->confidence < 0.8 &&
			    stage_has_line(&first()->missing, "there may be an earlier cause"));
	stage_end(&stage);
}

/* What a dead job left behind: whether a process was alive is unknown. */
static void test_left_behind(void)
{
	all_but(8, 4, 3, 60 * SECOND);
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->life = RECORDING_UNKNOWN;
	EXPECT_THAT("all recordings end together: the rank has not called it",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	stage_rank(&stage, 3)->counts_ns = NOW_NS - 59 * SECOND;
	EXPECT_THAT("its recording ends long before the others: it is dead",
		    stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	EXPECT_THAT("probably", first()->confidence > 0.5 && first()->confidence < 0.8);
	stage_rank(&stage, 3)->counts_ns = NOW_NS - 5 * SECOND;
	EXPECT_THAT("slightly earlier proves nothing", stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	stage_end(&stage);

	all_but(8, 4, 3, SECOND);
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->life = i % 2 ? RECORDING_UNKNOWN : RECORDING_KILLED;
	EXPECT_THAT("a job killed as a whole is not a hang", stage_nobody(&stage));
	stage_end(&stage);

	/* Yesterday's job, which was killed, and today's, with the same name. */
	all_but(4, 4, 3, SECOND);
	for (int i = 0; i < 2; i++) {
		struct recording_process *process = stage_rank(&stage, i);

		process->comms[0].info.hash = 0x999;
		process->comms[0].info.nranks = 2;
		process->life = RECORDING_KILLED;
		process->anchors[0].wall_ns -= 86400 * SECOND;
	}
	EXPECT_THAT("another attempt is unrelated", stage_nobody(&stage));
	stage_end(&stage);
}

static void test_nobody(void)
{
	all_but(4, 4, 2, 19 * SECOND);
	EXPECT_THAT("below the limit", stage_nobody(&stage));
	stage.options.hang_ns = 10 * SECOND;
	EXPECT_THAT("the limit can be set", stage_only(&stage, VERDICT_NEVER_ISSUED, 2));
	stage_end(&stage);

	all_but(4, 4, 2, 60 * SECOND);
	stage_rank(&stage, 1)->comms[0].counts.last_issue_ns = NOW_NS - SECOND;
	EXPECT_THAT("a call is progress", stage_nobody(&stage));
	stage_rank(&stage, 1)->comms[0].counts.last_issue_ns = 0;
	stage_rank(&stage, 1)->comms[0].counts.last_done_ns = NOW_NS - 19 * SECOND;
	EXPECT_THAT("a completion is progress", stage_nobody(&stage));
	stage_end(&stage);

	all_but(4, 1, -1, 60 * SECOND);
	stage_proxy(&stage_rank(&stage, 1)->flights[1], true, 2, 0, STEP_SEND_NET, 60 * SECOND);
	stage_rank(&stage, 1)->flights[1].proxies[0].proxy.since_ns = NOW_NS - SECOND;
	EXPECT_THAT("a transfer is progress", stage_nobody(&stage));
	stage_end(&stage);
}

/* No rank has been inside for long, whatever it called. */
static void test_nobody_inside(void)
{
	stage_begin(&stage, 4, 4);
	for (int i = 0; i < 4; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_LAUNCHED, 600 * SECOND);
	EXPECT_THAT("hosts that ran ahead of computing GPUs", stage_nobody(&stage));
	stage_end(&stage);

	/* The same in the first operation of a communicator, before anything was recorded of it. */
	stage_begin(&stage, 4, 4);
	stage_comm(&stage, 0x200, "tp", 0, 4, 1, 4);
	for (int i = 0; i < 4; i++) {
		stage_rank(&stage, i)->comms[1].info.flags = 0;
		stage_call(&stage, i, 2, OP_ALL_REDUCE, 1, OP_LAUNCHED, 600 * SECOND);
		stage_rank(&stage, i)->comms[1].info.mask = 64;
		stage_rank(&stage, i)->comms[0].info.mask = 64;
	}
	EXPECT_THAT("also in the first operation of a communicator", stage_nobody(&stage));
	stage_end(&stage);

	stage_begin(&stage, 4, 4);
	for (int i = 0; i < 4; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 600 * SECOND);
	EXPECT_THAT("nothing in flight: the job computes or saves", stage_nobody(&stage));
	stage_end(&stage);

	/* Called long ago, started just now. */
	all_but(4, 4, 3, 600 * SECOND);
	for (int i = 0; i < 3; i++)
		stage_rank(&stage, i)->flights[1].op.active_ns = NOW_NS - 5 * SECOND;
	EXPECT_THAT("only the time inside counts", stage_nobody(&stage));
	stage_end(&stage);

	stage_begin(&stage, 1, 1);
	stage_call(&stage, 0, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 600 * SECOND);
	EXPECT_THAT("a communicator of one rank", stage_nobody(&stage));
	stage_end(&stage);

	stage_begin(&stage, 1, 1);
	stage.recording.count = 0;
	EXPECT_THAT("nothing recorded", stage_nobody(&stage));
	stage.recording.count = 1;
	stage_end(&stage);
}

/* A watchdog closed all communicators after ten minutes: nothing is in flight any more. */
static void test_given_up(void)
{
	all_but(8, 4, 3, 600 * SECOND);
	for (int i = 0; i < 8; i++) {
		struct recording_process *process = stage_rank(&stage, i);

		process->life = RECORDING_ENDED;
		process->flight_count = 1;
		process->comms[0].info.flags |= COMM_FLAG_FINALIZED;
		process->comms[0].info.finalize_ns = NOW_NS;
		process->comms[0].counts.abandoned = i != 3;
	}
	EXPECT_THAT("the rank that was missing when the others aborted is named",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	EXPECT_EQUAL(first()->victims, 7);
	EXPECT_EQUAL(first()->for_ns, 600 * SECOND);
	EXPECT_EQUAL(first()->number, 2);
	stage.options.only_living = true;
	EXPECT_THAT("not reported if only live jobs are asked for", stage_nobody(&stage));
	stage.options.only_living = false;
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->comms[0].info.finalize_ns = NOW_NS - 590 * SECOND;
	EXPECT_THAT("a job that is stopped at once is not hung", stage_nobody(&stage));
	stage_end(&stage);

	/* All ranks were in it. */
	all_but(4, 4, -1, 600 * SECOND);
	for (int i = 0; i < 4; i++) {
		stage_rank(&stage, i)->flight_count = 1;
		stage_rank(&stage, i)->comms[0].info.flags |= COMM_FLAG_FINALIZED;
		stage_rank(&stage, i)->comms[0].info.finalize_ns = NOW_NS;
		stage_rank(&stage, i)->comms[0].counts.abandoned = 1;
	}
	EXPECT_THAT("if all ranks are equally far, none is named", stage_nobody(&stage));
	stage_end(&stage);
}

static void test_doubts(void)
{
	all_but(8, 4, 5, 60 * SECOND);
	stage_rank(&stage, 5)->lost[LOST_OFF] = 3;
	stage_only(&stage, VERDICT_NEVER_ISSUED, 5);
	EXPECT_THAT("unrecorded calls lower the confidence",
		    first()->confidence < 0.7 && stage_has_line(&first()->missing, "3 calls"));
	stage_rank(&stage, 5)->lost[LOST_OFF] = 0;
	stage_rank(&stage, 5)->comms[0].counts.untracked = 1;
	stage_only(&stage, VERDICT_NEVER_ISSUED, 5);
	EXPECT_THAT("and so do untracked operations",
		    first()->confidence < 0.9 && stage_has_line(&first()->missing, "tracked"));
	stage_rank(&stage, 5)->comms[0].counts.untracked = 0;
	stage_comm(&stage, 0x300, "weights", 5, 1, 1, 2);
	stage_call(&stage, 5, 2, OP_BROADCAST, 1, OP_LAUNCHED, 70 * SECOND)->op.flags =
		OP_FLAG_API_ONLY;
	stage_only(&stage, VERDICT_NEVER_ISSUED, 5);
	EXPECT_THAT("and operations whose end is not reported",
		    first()->confidence < 0.9 && stage_has_line(&first()->missing, "on weights"));
	stage_end(&stage);

	all_but(8, 4, 5, 60 * SECOND);
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->comms[0].info.nranks = 16;
	EXPECT_THAT("invisible ranks do not hide a visible culprit",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5));
	EXPECT_THAT("but are mentioned",
		    stage_has_line(&first()->missing, "8 of 16 ranks of world"));
	stage_end(&stage);
}

/* A job that expects ranks to wait for long, while one writes a checkpoint. */
static void test_hang_after(void)
{
	static char info[] = "uid=1000\nhang_after_s=900\n";

	all_but(8, 4, 5, 60 * SECOND);
	stage_rank(&stage, 3)->info = info;
	stage_rank(&stage, 3)->info_bytes = strlen(info);
	stage_only(&stage, VERDICT_NEVER_ISSUED, 5);
	EXPECT_THAT("a caller with a limit of its own is not stopped",
		    first()->severity == VERDICT_ERROR && !first()->is_allowed);
	stage.options.has_job_limits = true;
	stage_only(&stage, VERDICT_NEVER_ISSUED, 5);
	EXPECT_THAT("before RINGSIDE_HANG_AFTER a missing rank is a note",
		    first()->severity == VERDICT_NOTE && first()->is_allowed);
	EXPECT_THAT("with the reason",
		    strncmp(first()->title, "within RINGSIDE_HANG_AFTER: rank 5 has not", 42) ==
				    0 &&
			    stage_has_line(&first()->evidence, "of this job is 15 min"));
	stage_rank(&stage, 5)->process_state = 'T';
	EXPECT_THAT("a stopped process writes no checkpoint",
		    stage_only(&stage, VERDICT_PROCESS_STOPPED, 5) &&
			    first()->severity == VERDICT_ERROR);
	stage_rank(&stage, 5)->process_state = 0;
	stage_rank(&stage, 3)->info = NULL;
	stage_end(&stage);

	all_but(8, 4, 5, 901 * SECOND);
	stage_rank(&stage, 3)->info = info;
	stage_rank(&stage, 3)->info_bytes = strlen(info);
	stage.options.has_job_limits = true;
	stage_only(&stage, VERDICT_NEVER_ISSUED, 5);
	EXPECT_THAT("after that it is a hang",
		    first()->severity == VERDICT_ERROR && !first()->is_allowed);
	stage_rank(&stage, 3)->info = NULL;
	stage_end(&stage);
}

int main(void)
{
	test_hang_after();
	test_never_issued();
	test_several_missing();
	test_held_elsewhere();
	test_processes();
	test_victims();
	test_left_behind();
	test_nobody();
	test_nobody_inside();
	test_given_up();
	test_doubts();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang.txt");
	return tap_done();
}
