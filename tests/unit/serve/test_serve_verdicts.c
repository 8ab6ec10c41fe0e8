/* Verdicts and notices are reported once when they appear and once when they clear, in the log and to the hook. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/text.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)

static char log_path[200], out_path[200], hook_path[200];
static struct serve_verdicts verdicts;
static struct serve_hook hook;
static struct live live;
static const struct serve_verdicts_to to = { .hook = &hook, .host = "here" };

static int lines_with(const char *path, const char *part)
{
	char line[4096];
	FILE *file = fopen(path, "r");
	int count = 0;

	while (file && fgets(line, sizeof(line), file))
		count += strstr(line, part) != NULL;
	if (file)
		fclose(file);
	return count;
}

static void forget(void)
{
	if (truncate(log_path, 0) == -1)
		exit(1);
	unlink(out_path);
}

static void begin(void)
{
	forget();
	memset(&verdicts, 0, sizeof(verdicts));
	if (serve_hook_init(&hook, hook_path, -1) != NULL)
		exit(1);
}

static void end(void)
{
	serve_verdicts_release(&verdicts);
	serve_hook_release(&hook);
	verdicts_release(&live.verdicts);
}

static struct verdict *add(int64_t rank)
{
	struct verdict *verdict = verdicts_add(&live.verdicts, VERDICT_NEVER_ISSUED, VERDICT_ERROR);

	verdict->rank = rank;
	verdict->since_wall_ns = UINT64_C(1700000000) * SECOND;
	text_copy(verdict->job, sizeof(verdict->job), "train");
	text_copy(verdict->host, sizeof(verdict->host), "node7");
	verdict_title(verdict, "rank %d has not come", (int)rank);
	return verdict;
}

/* A scan at this second in which these ranks are culprits. */
static void scan(uint64_t second, const int *ranks, size_t count)
{
	verdicts_release(&live.verdicts);
	for (size_t i = 0; i < count; i++)
		add(ranks[i]);
	live.wall_ns = (UINT64_C(1700000100) + second) * SECOND;
	serve_verdicts_report(&verdicts, &live, &to, (1000 + second) * SECOND);
}

static void settle(void)
{
	/* 5 ms each: give up after two minutes. */
	for (int i = 0; i < 24000 && (hook.pid != 0 || hook.count > 0); i++) {
		serve_hook_run(&hook, 1000 * SECOND);
		serve_hook_handle(&hook, 1000 * SECOND);
		poll(NULL, 0, 5);
	}
}

static void test_once(void)
{
	const int five[] = { 5 };

	begin();
	for (uint64_t second = 0; second < 30; second++)
		scan(second, five, 1);
	EXPECT_THAT("a lasting verdict is reported once",
		    lines_with(log_path, "never_issued: rank 5 has not come; job train, since "
					 "2023-11-14T22:13:20Z, confidence 100%") == 1);
	for (uint64_t second = 30; second < 39; second++)
		scan(second, NULL, 0);
	EXPECT_THAT("it has not cleared after nine seconds",
		    lines_with(log_path, "cleared after") == 0);
	scan(39, NULL, 0);
	EXPECT_THAT("it has cleared after ten seconds",
		    lines_with(log_path, "cleared after 29 s: never_issued: rank 5 has not "
					 "come") == 1);
	settle();
	EXPECT_EQUAL(hook.runs, 2);
	EXPECT_EQUAL(lines_with(out_path, "appeared never_issued 5 node7 train"), 1);
	EXPECT_EQUAL(lines_with(out_path, "cleared never_issued 5 node7 train"), 1);
	EXPECT_THAT("the hook gets the verdict on standard input",
		    lines_with(out_path, "\"event\":\"cleared\",\"agent_host\":\"here\"") == 1 &&
			    lines_with(out_path, "\"told_ns\":29000000000,\"verdict\":{\"class\":"
						 "\"never_issued\"") == 1);
	scan(60, five, 1);
	EXPECT_THAT("a later one is a new verdict", verdicts.totals[VERDICT_NEVER_ISSUED] == 2);
	end();
}

static void test_flaps(void)
{
	const int five[] = { 5 };

	begin();
	for (uint64_t second = 0; second < 120; second++)
		scan(second, five, second % 6 == 0);
	EXPECT_EQUAL(verdicts.totals[VERDICT_NEVER_ISSUED], 1);
	EXPECT_EQUAL(lines_with(log_path, "rank 5"), 1);
	settle();
	EXPECT_EQUAL(hook.runs, 1);
	end();
}

static void test_many(void)
{
	int ranks[100];

	begin();
	for (int i = 0; i < 100; i++)
		ranks[i] = i;
	scan(0, ranks, 100);
	scan(1, ranks, 100);
	EXPECT_EQUAL(lines_with(log_path, "has not come; job"), SERVE_VERDICTS_OF_USER);
	EXPECT_EQUAL(lines_with(log_path, "more than 64 verdicts"), 1);
	EXPECT_EQUAL(hook.count, SERVE_HOOK_A_MINUTE);
	scan(20, NULL, 0);
	EXPECT_THAT("the hook is called for the end of those it was called for",
		    hook.count == 2 * SERVE_HOOK_A_MINUTE && verdicts.count == 0);
	EXPECT_EQUAL(hook.left_out, SERVE_VERDICTS_OF_USER - SERVE_HOOK_A_MINUTE);
	end();
}

/* Hook calls over the rate limit are made later. */
static void test_late(void)
{
	int ranks[SERVE_HOOK_A_MINUTE + 3];

	begin();
	for (int i = 0; i < SERVE_HOOK_A_MINUTE + 3; i++)
		ranks[i] = i;
	for (uint64_t second = 0; second < 59; second++)
		scan(second, ranks, SERVE_HOOK_A_MINUTE + 3);
	settle();
	EXPECT_EQUAL(hook.runs, SERVE_HOOK_A_MINUTE);
	EXPECT_THAT("each delayed verdict is counted once", hook.left_out == 3);
	for (uint64_t second = 59; second < 70; second++)
		scan(second, ranks, SERVE_HOOK_A_MINUTE + 3);
	settle();
	EXPECT_EQUAL(hook.runs, SERVE_HOOK_A_MINUTE + 3);
	EXPECT_EQUAL(lines_with(out_path, "appeared never_issued 12 node7 train"), 1);
	scan(90, NULL, 0);
	settle();
	EXPECT_THAT("and the end of a delayed one is passed on",
		    lines_with(out_path, "cleared never_issued 12 ") == 1);
	end();
}

/* A user with endless verdicts does not displace those of other users. */
static void test_users(void)
{
	struct recording_process mine = { .pid = 1 }, theirs = { .pid = 2 };
	struct recording_process *processes[] = { &mine, &theirs };
	struct watch_process known[] = { { .file.owner = 1000 }, { .file.owner = 2000 } };
	const struct watch watch = { .recording.processes = processes,
				     .recording.count = 2,
				     .processes = known };
	const struct serve_verdicts_to all = { .hook = &hook, .host = "here", .watch = &watch };

	begin();
	text_copy(mine.job, sizeof(mine.job), "bogus");
	text_copy(theirs.job, sizeof(theirs.job), "train");
	for (int i = 0; i < 100; i++)
		text_copy(add(i)->job, sizeof(mine.job), "bogus");
	add(777);
	serve_verdicts_report(&verdicts, &live, &all, 1000 * SECOND);
	EXPECT_EQUAL(hook.count, SERVE_HOOK_A_MINUTE + 1);
	EXPECT_EQUAL(lines_with(log_path, "job bogus"), SERVE_VERDICTS_OF_USER);
	EXPECT_EQUAL(lines_with(log_path, "rank 777 has not come; job train"), 1);
	settle();
	EXPECT_EQUAL(lines_with(out_path, "appeared never_issued 777 node7 train"), 1);
	end();
}

static void test_doubt(void)
{
	begin();
	for (uint64_t second = 0; second < 8; second++) {
		verdicts_release(&live.verdicts);
		add(5)->severity = second < 2 || second == 4 ? VERDICT_WARNING : VERDICT_ERROR;
		serve_verdicts_report(&verdicts, &live, &to, (1000 + second) * SECOND);
	}
	EXPECT_THAT("a warning that becomes an error is reported again",
		    lines_with(log_path, "rank 5 has not come; job") == 2);
	EXPECT_EQUAL(verdicts.totals[VERDICT_NEVER_ISSUED], 1);
	scan(40, NULL, 0);
	EXPECT_EQUAL(lines_with(log_path, "cleared after"), 1);
	settle();
	EXPECT_EQUAL(lines_with(out_path, "\"severity\":\"warning\""), 1);
	EXPECT_EQUAL(lines_with(out_path, "cleared never_issued"), 1);
	EXPECT_EQUAL(hook.runs, 3);
	end();
}

static void test_lines(void)
{
	const struct serve_verdicts_to log_alone = { .host = "here" };
	struct verdict *verdict;

	begin();
	verdict = add(7);
	verdict->confidence = 0.6;
	verdict_evidence(verdict, "This was seen.");
	verdict_missing(verdict, "That was not.");
	verdict_advice(verdict, "Look at it:");
	verdict_advice(verdict, "$ ringside ps @1\n\033[31m");
	serve_verdicts_report(&verdicts, &live, &log_alone, SECOND);
	EXPECT_THAT("one line has confidence, evidence, caveat and next step",
		    lines_with(log_path,
			       "confidence 60%; evidence: This was seen; caveat: That was not; "
			       "next step: ringside ps @1") == 1);
	EXPECT_EQUAL(lines_with(log_path, "\033"), 0);
	end();
}

/* The job of the verdicts; notices are of job "b". */
static const char *verdict_job = "b";

static void notice_at(uint64_t second, enum live_notice_kind kind, size_t notice_count,
		      enum verdict_class class, size_t verdict_count)
{
	static struct agent_notices notices;
	static struct job_group group = { .name = "b" };
	static struct job_comm comm = { .label = "world" };
	static struct job_rank rank = { .label = "5" };
	static struct job_seat seat;
	static struct live_notice notice;
	struct live one = { .notices = &notice, .notice_count = notice_count };

	if (second == 0)
		memset(&notices, 0, sizeof(notices));
	notice = (struct live_notice){ .kind = kind, .title = "rank 5 of world" };
	one.job.groups = &group;
	one.job.group_count = 1;
	one.job.comms = &comm;
	one.job.ranks = &rank;
	one.job.seats = &seat;
	one.job.comm_count = one.job.rank_count = one.job.seat_count = 1;
	if (verdict_count > 0) {
		struct verdict *verdict = verdicts_add(&one.verdicts, class, VERDICT_ERROR);

		text_copy(verdict->job, sizeof(verdict->job), verdict_job);
		text_copy(verdict->comm, sizeof(verdict->comm), "world");
		text_copy(verdict->rank_label, sizeof(verdict->rank_label), "5");
	}
	agent_notices_report(&notices, &one, (1000 + second) * SECOND);
	verdicts_release(&one.verdicts);
}

static void test_notices(void)
{
	forget();
	notice_at(0, LIVE_BEHIND, 1, VERDICT_NEVER_ISSUED, 0);
	notice_at(4, LIVE_BEHIND, 1, VERDICT_NEVER_ISSUED, 0);
	EXPECT_EQUAL(lines_with(log_path, "behind: rank 5 of world"), 1);
	notice_at(14, LIVE_BEHIND, 0, VERDICT_NEVER_ISSUED, 0);
	EXPECT_THAT("a notice that ends is reported as cleared",
		    lines_with(log_path, "cleared after 4 s: rank 5 of world") == 1);

	forget();
	notice_at(0, LIVE_BEHIND, 1, VERDICT_NEVER_ISSUED, 0);
	notice_at(4, LIVE_MISSING, 1, VERDICT_NEVER_ISSUED, 1);
	notice_at(40, LIVE_MISSING, 1, VERDICT_NEVER_ISSUED, 1);
	EXPECT_THAT("a notice that becomes a verdict has not cleared",
		    lines_with(log_path, "behind: ") == 1 && lines_with(log_path, "cleared") == 0);

	forget();
	notice_at(0, LIVE_BEHIND, 1, VERDICT_NEVER_ISSUED, 0);
	notice_at(4, LIVE_MISSING, 1, VERDICT_NEVER_ISSUED, 1);
	notice_at(6, LIVE_BEHIND, 1, VERDICT_NEVER_ISSUED, 0);
	notice_at(30, LIVE_BEHIND, 0, VERDICT_NEVER_ISSUED, 0);
	EXPECT_THAT("it clears if it was active again after the verdict",
		    lines_with(log_path, "cleared after 6 s") == 1);

	forget();
	notice_at(0, LIVE_DEAD, 1, VERDICT_PROCESS_DEAD, 0);
	notice_at(4, LIVE_DEAD, 1, VERDICT_PROCESS_DEAD, 1);
	notice_at(40, LIVE_DEAD, 0, VERDICT_PROCESS_DEAD, 0);
	EXPECT_THAT("a death never clears",
		    lines_with(log_path, "dead: ") == 1 && lines_with(log_path, "cleared") == 0);

	forget();
	verdict_job = "a";
	notice_at(0, LIVE_DEAD, 1, VERDICT_PROCESS_DEAD, 1);
	notice_at(4, LIVE_BEHIND, 1, VERDICT_NEVER_ISSUED, 1);
	EXPECT_THAT("a verdict on rank 5 of another job covers no notice",
		    lines_with(log_path, "dead: ") == 1 && lines_with(log_path, "behind: ") == 1);
	verdict_job = "b";
}

/* Two jobs on one node: rank 3 of each dies, and the first death is a verdict. */
static void test_two_jobs(void)
{
	static struct agent_notices notices;
	struct job_group groups[] = { { .name = "first" }, { .name = "second" } };
	struct job_comm comms[] = { { .label = "world" }, { .label = "world 2", .group = 1 } };
	struct job_rank ranks[] = { { .label = "3" }, { .label = "3", .group = 1 } };
	struct job_seat seats[] = { { .rank = 0 }, { .rank = 1, .comm = 1 } };
	struct live_notice dead[] = {
		{ .kind = LIVE_DEAD, .title = "rank 3 of first died" },
		{ .kind = LIVE_DEAD, .comm = 1, .seat = 1, .title = "rank 3 of second died" }
	};
	struct live one = { .notices = dead, .notice_count = 2 };
	struct verdict *verdict = verdicts_add(&one.verdicts, VERDICT_PROCESS_DEAD, VERDICT_ERROR);

	one.job.groups = groups;
	one.job.comms = comms;
	one.job.ranks = ranks;
	one.job.seats = seats;
	one.job.group_count = one.job.comm_count = one.job.rank_count = one.job.seat_count = 2;
	text_copy(verdict->job, sizeof(verdict->job), "first");
	text_copy(verdict->rank_label, sizeof(verdict->rank_label), "3");
	forget();
	agent_notices_report(&notices, &one, 1000 * SECOND);
	EXPECT_THAT("a death that is a verdict is not logged again",
		    lines_with(log_path, "rank 3 of first") == 0);
	EXPECT_THAT("that of the same rank of another job is",
		    lines_with(log_path, "dead: rank 3 of second died") == 1);
	verdicts_release(&one.verdicts);
}

/* In a container a process has another number than on the host, which verdicts show. */
static void test_user_in_container(void)
{
	struct recording_process mine = { .pid = 7, .pid_here = 4007, .job = "train" };
	struct recording_process theirs = { .pid = 7, .pid_here = 5007, .job = "train" };
	struct recording_process *processes[] = { &mine, &theirs };
	struct watch_process known[] = { { .file.owner = 1000 }, { .file.owner = 2000 } };
	const struct watch watch = { .recording.processes = processes,
				     .recording.count = 2,
				     .processes = known };
	const struct serve_verdicts_to all = { .hook = &hook, .host = "here", .watch = &watch };

	begin();
	text_copy(mine.host, sizeof(mine.host), "node7");
	text_copy(theirs.host, sizeof(theirs.host), "node7");
	add(5)->pid = 5007;
	serve_verdicts_report(&verdicts, &live, &all, 1000 * SECOND);
	EXPECT_EQUAL(verdicts.reported[0].user, 2001);
	settle();
	end();
}

/* A hang that another node explains is logged, but the hook is for causes. */
static void test_elsewhere(void)
{
	begin();
	add(-1)->class = VERDICT_ELSEWHERE;
	serve_verdicts_report(&verdicts, &live, &to, 1000 * SECOND);
	EXPECT_EQUAL(lines_with(log_path, "elsewhere: "), 1);
	EXPECT_EQUAL(hook.count, 0);
	scan(40, NULL, 0);
	EXPECT_EQUAL(lines_with(log_path, "cleared after"), 1);
	settle();
	EXPECT_EQUAL(lines_with(out_path, "elsewhere"), 0);
	end();
}

static void write_hook(void)
{
	FILE *file = fopen(hook_path, "w");

	if (file == NULL)
		exit(1);
	fprintf(file,
		"#!/bin/sh\n{ echo \"$RINGSIDE_EVENT $RINGSIDE_CLASS $RINGSIDE_RANK $RINGSIDE_HOST "
		"$RINGSIDE_JOB\"; cat; } >>%s\n",
		out_path);
	fclose(file);
	chmod(hook_path, 0700);
}

/* The job is started again, and the same rank hangs before the old verdict has cleared. */
static void test_next_run(void)
{
	const int five[] = { 5 };

	begin();
	scan(0, five, 1);
	scan(4, NULL, 0);
	add(5)->job_start_wall_ns = UINT64_C(1700000102) * SECOND;
	live.wall_ns = UINT64_C(1700000106) * SECOND;
	serve_verdicts_report(&verdicts, &live, &to, 1006 * SECOND);
	EXPECT_THAT("that is another hang",
		    lines_with(log_path, "cleared after 0 s") == 1 &&
			    lines_with(log_path, "rank 5 has not come; job") == 2);
	add(5)->job_start_wall_ns = UINT64_C(1700000102) * SECOND;
	serve_verdicts_report(&verdicts, &live, &to, 1007 * SECOND);
	settle();
	EXPECT_EQUAL(hook.runs, 3);
	EXPECT_EQUAL(verdicts.count, 1);
	end();
}

/* The job started, then the host's clock was set back by two hours. */
static void test_clock_set_back(void)
{
	begin();
	for (unsigned int i = 0; i < 3; i++) {
		verdicts_release(&live.verdicts);
		add(5)->job_start_wall_ns = UINT64_C(1700007200) * SECOND;
		live.wall_ns = (UINT64_C(1700000100) + i) * SECOND;
		serve_verdicts_report(&verdicts, &live, &to, (1000 + i) * SECOND);
	}
	settle();
	EXPECT_THAT("its hang is reported once",
		    lines_with(log_path, "rank 5 has not come; job") == 1 &&
			    lines_with(log_path, "cleared") == 0);
	EXPECT_EQUAL(hook.runs, 1);
	end();
}

int main(void)
{
	int fd;

	scratch_make();
	text_format(log_path, sizeof(log_path), "%s/log", scratch_dir.path);
	text_format(out_path, sizeof(out_path), "%s/out", scratch_dir.path);
	text_format(hook_path, sizeof(hook_path), "%s/hook", scratch_dir.path);
	fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd == -1 || dup2(fd, STDERR_FILENO) == -1)
		return 1;
	write_hook();
	test_next_run();
	test_clock_set_back();
	test_once();
	test_flaps();
	test_many();
	test_late();
	test_users();
	test_doubt();
	test_lines();
	test_notices();
	test_two_jobs();
	test_user_in_container();
	test_elsewhere();
	return tap_done();
}
