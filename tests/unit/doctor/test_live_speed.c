/* Speed is judged from time to time. What is slow is reported when two judgements in a row find it, and no sooner. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "doctor/live.h"
#include "tests/tap.h"
#include "tests/unit/doctor/transfers.h"

#define SECOND UINT64_C(1000000000)
/* A judgement that takes half a second of CPU is followed by a pause of 100 s. */
#define LATER (200 * SECOND)
#define WALL (UINT64_C(1700000000) * SECOND)

static struct live live;
static uint64_t now_ns;

static double network_later(const struct transfers_what *what)
{
	return what->group != TRANSFERS_TP && what->call >= TRANSFERS_CALLS / 2 ? 4 : 1;
}

static double network(const struct transfers_what *what)
{
	return what->group != TRANSFERS_TP ? 4 : 1;
}

static void begin(uint32_t times)
{
	struct live_limits limits = live_limits_default();

	limits.slow_times = times;
	live_init(&live, &limits);
	now_ns = SECOND;
}

/* A running job, whose operations begin this many seconds after the first one's. */
static void make(struct transfers *job, uint64_t after_s)
{
	for (int rank = 0; rank < job->nodes * job->gpus; rank++)
		transfers_rank(job, rank);
	for (size_t p = 0; p < job->hand.recording.count; p++) {
		struct recording_process *process = job->hand.list[p];

		process->life = RECORDING_ALIVE;
		process->is_final = false;
		process->world_size = job->nodes * job->gpus;
		process->anchors = calloc(1, sizeof(*process->anchors));
		if (process->anchors == NULL)
			abort();
		process->anchor_count = 1;
		process->anchors[0] = (struct clock_anchor){ .clock_ns = SECOND, .wall_ns = WALL };
		for (size_t i = 0; i < process->flight_count; i++) {
			process->flights[i].op.issue_ns += after_s * SECOND;
			process->flights[i].op.active_ns += after_s * SECOND;
			process->flights[i].op.done_ns += after_s * SECOND;
		}
		process->counts_ns =
			process->flights[process->flight_count - 1].op.done_ns + SECOND / 10;
	}
}

/* Something has finished since; it is judged, and the next scan shows the result. */
static bool judge(struct transfers *job)
{
	static uint64_t finished;
	bool is_judged;

	now_ns += LATER;
	job->hand.list[0]->recorded = ++finished;
	if (live_look(&live, &job->hand.recording, now_ns, WALL + now_ns) != OK)
		abort();
	is_judged = live_judge(&live, now_ns);
	now_ns += SECOND;
	if (live_look(&live, &job->hand.recording, now_ns, WALL + now_ns) != OK)
		abort();
	return is_judged;
}

static void look_both(const struct recording *both)
{
	if (live_look(&live, both, now_ns, WALL + now_ns) != OK)
		abort();
}

static bool says(const char *part)
{
	char text[600] = "";

	live_say_speed(text, sizeof(text), &live.jobs[0]);
	if (strstr(text, part) == NULL)
		printf("# %s\n", text);
	return strstr(text, part) != NULL;
}

static const struct verdict *shown(enum verdict_class class)
{
	for (size_t i = 0; i < live.verdicts.count; i++)
		if (live.verdicts.list[i].class == class)
			return &live.verdicts.list[i];
	return NULL;
}

static void test_pace(void)
{
	struct transfers job = { .nodes = 2, .gpus = 2, .seed = 3, .late_rank = -1 };

	begin(2);
	make(&job, 0);
	if (live_look(&live, &job.hand.recording, now_ns, WALL) != OK)
		abort();
	EXPECT_THAT("before the first judgement nothing is fine",
		    says("not judged yet") && !live_is_fine(&live.jobs[0].speed));
	EXPECT(judge(&job));
	EXPECT_THAT("a healthy job is fine once it was judged",
		    says("Speed: judged over the last ") && says("nothing slow") &&
			    live_is_fine(&live.jobs[0].speed));
	job.hand.list[0]->recorded++;
	EXPECT_THAT("not judged again within ten seconds", !live_judge(&live, now_ns));
	now_ns += LATER;
	job.hand.list[0]->recorded--;
	if (live_look(&live, &job.hand.recording, now_ns, WALL + now_ns) != OK)
		abort();
	EXPECT_THAT("nor if nothing has finished since", !live_judge(&live, now_ns));
	live_release(&live);
	hand_release(&job.hand);
}

static void test_persistence(void)
{
	struct transfers good = { .nodes = 2, .gpus = 2, .seed = 3, .late_rank = -1 };
	struct transfers bad = { .nodes = 2, .gpus = 2, .seed = 3, .late_rank = 3, .late_ns = 4e6 };

	begin(2);
	make(&good, 0);
	make(&bad, 0);
	judge(&bad);
	EXPECT_THAT("what was found once is not reported",
		    shown(VERDICT_SLOW_RANK) == NULL && live.notice_count == 0);
	EXPECT_THAT("but the job is not fine", says("found once and not confirmed yet: ") &&
						       !live_is_fine(&live.jobs[0].speed));
	judge(&good);
	EXPECT_THAT("if it is not found again, it is forgotten", live_is_fine(&live.jobs[0].speed));
	judge(&bad);
	EXPECT(shown(VERDICT_SLOW_RANK) == NULL);
	judge(&bad);
	EXPECT_THAT("twice in a row is enough",
		    shown(VERDICT_SLOW_RANK) != NULL && shown(VERDICT_SLOW_RANK)->rank == 3);
	EXPECT(says("1 found"));
	EXPECT_THAT("with a notice for top",
		    live.notice_count == 1 && live.notices[0].kind == LIVE_SLOW);
	judge(&good);
	EXPECT_THAT("once not found: it stays", shown(VERDICT_SLOW_RANK) != NULL);
	judge(&good);
	EXPECT_THAT("twice: it is gone", shown(VERDICT_SLOW_RANK) == NULL);
	live_release(&live);

	begin(1);
	judge(&bad);
	EXPECT_THAT("top --once has no second judgement", shown(VERDICT_SLOW_RANK) != NULL);
	live_release(&live);
	hand_release(&good.hand);
	hand_release(&bad.hand);
}

/* In steps, with scans in between: as the agent's child does it. */
static void test_steps(void)
{
	struct transfers bad = { .nodes = 2, .gpus = 2, .seed = 3, .late_rank = 3, .late_ns = 4e6 };
	struct live_judgement judgement;
	struct recording nobody;

	begin(1);
	make(&bad, 0);
	recording_init(&nobody);
	look_both(&bad.hand.recording);
	EXPECT(live_judge_begin(&live, now_ns, &judgement));
	live_judge_compare(&live, &judgement);
	now_ns += SECOND;
	look_both(&bad.hand.recording);
	EXPECT_THAT("a judgement counts when it has ended", says("not judged yet"));
	live_judge_end(&live, &judgement, 1);
	now_ns += SECOND;
	look_both(&bad.hand.recording);
	EXPECT_THAT("also after another scan", shown(VERDICT_SLOW_RANK) != NULL);

	now_ns += LATER;
	bad.hand.list[0]->recorded++;
	look_both(&bad.hand.recording);
	EXPECT(live_judge_begin(&live, now_ns, &judgement));
	judgement.status = ERR_SYSTEM;
	live_judge_end(&live, &judgement, 1);
	now_ns += SECOND;
	look_both(&bad.hand.recording);
	EXPECT_THAT("one that failed says so", says("not judged: its operations cannot be read"));

	now_ns += LATER;
	bad.hand.list[0]->recorded++;
	look_both(&bad.hand.recording);
	EXPECT(live_judge_begin(&live, now_ns, &judgement));
	live_judge_compare(&live, &judgement);
	now_ns += SECOND;
	look_both(&nobody);
	live_judge_end(&live, &judgement, 1);
	EXPECT_THAT("of a job that is gone nothing is kept",
		    live.job.group_count == 0 && judgement.found.count == 0);
	live_release(&live);
	hand_release(&bad.hand);
}

/* A job that takes too long to judge is not judged, and the next one is. */
static void test_budget(void)
{
	struct transfers job = { .nodes = 2, .gpus = 2, .seed = 3, .late_rank = -1 };
	struct transfers other = { .nodes = 2, .gpus = 2, .seed = 4, .late_rank = -1 };
	struct recording both;
	int failed;

	begin(2);
	make(&job, 0);
	live.limits.judge_ns = 0;
	EXPECT(judge(&job));
	EXPECT_THAT("a job that exceeds its time says so, and is not fine",
		    says("Speed: not judged: its operations take more than 0.0 s of CPU time") &&
			    !live_is_fine(&live.jobs[0].speed));
	live_release(&live);

	begin(2);
	make(&other, 0);
	both = job.hand.recording;
	both.count += other.hand.recording.count;
	both.processes = calloc(both.count, sizeof(*both.processes));
	if (both.processes == NULL)
		abort();
	for (size_t p = 0; p < both.count; p++) {
		bool is_first = p < job.hand.recording.count;

		both.processes[p] =
			is_first ? job.hand.list[p] : other.hand.list[p - job.hand.recording.count];
		text_copy(both.processes[p]->job, sizeof(both.processes[p]->job),
			  is_first ? "first" : "second");
		both.processes[p]->recorded += 1000;
	}
	live.limits.judge_ns = 0;
	look_both(&both);
	EXPECT(live.job.group_count == 2 && live_judge(&live, now_ns));
	now_ns += SECOND;
	look_both(&both);
	failed = live.jobs[1].speed.why[0] != '\0';
	EXPECT(live.jobs[failed].speed.why[0] != '\0' && live.jobs[!failed].speed.why[0] == '\0');
	live.limits.judge_ns = live_limits_default().judge_ns;
	now_ns += LATER;
	both.processes[0]->recorded++;
	both.processes[both.count - 1]->recorded++;
	look_both(&both);
	EXPECT(live_judge(&live, now_ns));
	now_ns += SECOND;
	look_both(&both);
	EXPECT_THAT("the next judgement is of the other job, although the first is due again",
		    live_is_fine(&live.jobs[!failed].speed) &&
			    !live_is_fine(&live.jobs[failed].speed));
	live_release(&live);
	free(both.processes);
	hand_release(&job.hand);
	hand_release(&other.hand);
}

/* Slower than before; then the buffers only hold the slow time. */
static void test_held(void)
{
	struct transfers change = { .nodes = 4,
				    .gpus = 2,
				    .seed = 5,
				    .late_rank = -1,
				    .slower = network_later,
				    .costs_time = true };
	struct transfers after = { .nodes = 4,
				   .gpus = 2,
				   .seed = 6,
				   .late_rank = -1,
				   .slower = network,
				   .costs_time = true };
	const struct verdict *verdict;

	begin(2);
	make(&change, 0);
	make(&after, 1000);
	judge(&change);
	judge(&change);
	verdict = shown(VERDICT_SLOW_NETWORK);
	EXPECT_THAT("a network that became slower is reported",
		    verdict != NULL && strcmp(verdict->rule, "past") == 0);
	judge(&after);
	judge(&after);
	verdict = shown(VERDICT_SLOW_NETWORK);
	EXPECT_THAT("it stays while nothing shows that it is over",
		    verdict != NULL && verdict->missing.count > 0 &&
			    strstr(verdict->missing.list[verdict->missing.count - 1],
				   "Last confirmed at ") != NULL);
	for (int i = 0; i < 5; i++)
		judge(&after);
	EXPECT_THAT("but not for ever", shown(VERDICT_SLOW_NETWORK) == NULL);
	live_release(&live);
	hand_release(&change.hand);
	hand_release(&after.hand);
}

int main(void)
{
	test_pace();
	test_budget();
	test_persistence();
	test_steps();
	test_held();
	return tap_done();
}
