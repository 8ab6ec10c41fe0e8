/* Jobs of a cluster at their limits: what is added up, when a job is in trouble, and when and how it is judged. */
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/hub.h"
#include "common/attributes.h"
#include "common/text.h"
#include "doctor/live.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define BEGIN (1000 * SECOND)

enum { AGENTS = 3, ROWS = 64 };
static struct hub_options options;
static struct hub_agent agents_of[AGENTS];
static struct hub_agent *agent_list[AGENTS];
static struct hub_row rows[AGENTS][ROWS];
static struct hub_agents agents;
static struct hub_jobs jobs;
static uint64_t now;

/* Three agents with one part each of the job "llm". */
static void begin(void)
{
	static const char *const names[AGENTS] = { "n0:1", "node1:1", "n2:1" };

	now = BEGIN;
	options = (struct hub_options){ .interval_ns = 5 * SECOND,
					.hang_ns = 20 * SECOND,
					.check_ns = 600 * SECOND };
	agents = (struct hub_agents){
		.options = &options, .list = agent_list, .count = AGENTS, .epoll = -1
	};
	memset(rows, 0, sizeof(rows));
	for (int i = 0; i < AGENTS; i++) {
		rows[i][0] = (struct hub_row){
			.job = "llm", .owner = -1, .processes = 8, .alive = 8, .wait_share = NAN
		};
		agents_of[i] = (struct hub_agent){ .target = { (char *)names[i], "http://n", NULL },
						   .answered_ns = now,
						   .summary = { .rows = rows[i], .count = 1 } };
		agent_list[i] = &agents_of[i];
	}
	hub_jobs_init(&jobs, &options, "/bin/false");
}

static struct hub_job *update(void)
{
	agents.changes++;
	hub_jobs_update(&jobs, &agents, now);
	return jobs.count > 0 ? jobs.list[0] : NULL;
}

static void end(void)
{
	hub_jobs_release(&jobs);
}

/* An answer of the doctor that took this long. */
static void judged(struct hub_job *job, const char *verdicts, int code, uint64_t took_ns)
{
	static char text[1 << 16];
	struct child child = { .begun_ns = now - took_ns, .code = code, .bytes = text };

	text_format(text, sizeof(text), "{\"format\":\"ringside-doctor\",\"verdicts\":[%s]}",
		    verdicts);
	child.used = strlen(text);
	job->judge_ns = UINT64_MAX;
	hub_jobs_judged(&jobs, job, &child, now, now + 1);
}

#define VERDICT(class, severity, title) \
	"{\"class\":\"" class "\",\"severity\":\"" severity "\",\"title\":\"" title "\"}"
#define HANG VERDICT("never_issued", "error", "hang")
#define SLOW VERDICT("slow_rank", "warning", "slow")

/* ---- adding up -------------------------------------------------------------------------------- */

static void test_totals(void)
{
	struct hub_job *job;

	begin();
	rows[0][0] = (struct hub_row){ .job = "llm",
				       .world_size = 8,
				       .ranks = 3,
				       .processes = 4,
				       .alive = 2,
				       .operations = 100,
				       .stuck_ns = 7,
				       .hang_after_ns = 50,
				       .wait_ns = 1000,
				       .wait_share = 0.25,
				       .verdicts = 1,
				       .notices = 64 };
	rows[1][0] = (struct hub_row){ .job = "llm",
				       .world_size = 24,
				       .ranks = 5,
				       .processes = 6,
				       .alive = 5,
				       .operations = 30,
				       .stuck_ns = 9,
				       .hang_after_ns = 70,
				       .wait_ns = 200,
				       .wait_share = NAN,
				       .verdicts = 4,
				       .notices = 2 };
	rows[2][0] = (struct hub_row){ .job = "llm",
				       .world_size = 16,
				       .ranks = 7,
				       .processes = 12,
				       .alive = 11,
				       .operations = 4,
				       .stuck_ns = 8,
				       .hang_after_ns = 60,
				       .wait_ns = 30,
				       .wait_share = 0.5,
				       .verdicts = 8,
				       .notices = 4 };
	agents_of[0].summary.left_out = 2;
	agents_of[2].summary.left_out = 3;
	job = update();
	EXPECT(jobs.count == 1 && job->nodes == 3 && job->silent == 0);
	EXPECT_THAT("counts are sums", job->ranks == 15 && job->processes == 22 &&
					       job->alive == 18 && job->operations == 134 &&
					       job->wait_ns == 1230);
	EXPECT_THAT("sizes and times are the largest",
		    job->world_size == 24 && job->stuck_ns == 9 && job->hang_after_ns == 70);
	EXPECT_THAT("signs of any node count", job->verdicts == 13 && job->notices == 70);
	EXPECT_THAT("the share is weighted with processes, of nodes that know it",
		    fabs(job->wait_share - (0.25 * 4 + 0.5 * 12) / 16) < 1e-12 &&
			    job->wait_known == 16);
	EXPECT_EQUAL(jobs.left_out, 5);
	EXPECT(job->seen_ns == BEGIN && jobs.updated_ns == BEGIN && jobs.changes == 1);
	update();
	EXPECT_THAT("nothing is counted twice", job->ranks == 15 && job->wait_known == 16 &&
							job->verdicts == 13 && jobs.left_out == 5);
	rows[0][0].wait_share = rows[2][0].wait_share = NAN;
	EXPECT_THAT("nobody knows the share", isnan(update()->wait_share));
	end();
}

static void test_owners(void)
{
	struct hub_job *job;

	begin();
	rows[1][0].owner = 0;
	job = update();
	EXPECT_THAT("a job gets the user that some agent knows",
		    jobs.count == 1 && job->owner == 0 && job->nodes == 3);
	update();
	EXPECT_THAT("agents that do not know it take it from nobody",
		    jobs.count == 1 && job->owner == 0);
	end();
	begin();
	rows[0][0].owner = 1000;
	rows[1][0].owner = 0;
	rows[2][0].owner = 1000;
	update();
	EXPECT_THAT("root is a user like others",
		    jobs.count == 2 && jobs.list[0]->owner == 1000 && jobs.list[1]->owner == 0 &&
			    jobs.list[0]->nodes == 2 &&
			    strcmp(jobs.list[1]->key, "llm (uid 0)") == 0);
	EXPECT(hub_jobs_find(&jobs, "llm") == jobs.list[0] &&
	       hub_jobs_find(&jobs, "llm (uid 0)") == jobs.list[1] &&
	       hub_jobs_find(&jobs, "ll") == NULL && hub_jobs_find(&jobs, "z") == NULL);
	end();
	begin();
	rows[0][0].owner = rows[1][0].owner = 1000;
	rows[2][0].owner = 0;
	text_copy(rows[1][0].job, HUB_JOB_NAME, "llm (uid 0)");
	update();
	EXPECT_THAT("a name that looks like that of another user's job takes nothing from it",
		    jobs.count == 3 && jobs.left_out == 0 &&
			    strcmp(jobs.list[1]->key, "llm (uid 0)") == 0 &&
			    jobs.list[1]->owner == 0 &&
			    strcmp(jobs.list[2]->key, "llm (uid 0) (uid 1000)") == 0 &&
			    jobs.list[2]->owner == 1000);
	end();
	begin();
	rows[0][0].owner = rows[2][0].owner = 1000;
	rows[0][0].shows_owner = true;
	rows[1][0].owner = 0;
	update();
	EXPECT_THAT("what one agent calls by its user is the same job on others",
		    jobs.count == 2 && jobs.list[0]->owner == 1000 && jobs.list[0]->nodes == 2 &&
			    jobs.list[0]->shows_owner && !jobs.list[1]->shows_owner);
	EXPECT_THAT("an alert may call it by its user",
		    hub_jobs_alert(&jobs, "llm (uid 1000)", BEGIN) && jobs.list[0]->alert_ns > 0 &&
			    !hub_jobs_alert(&jobs, "llm (uid 7)", BEGIN));
	end();
	begin();
	options.is_any_owner = true;
	rows[0][0].owner = 1000;
	rows[2][0].owner = 1001;
	update();
	EXPECT(jobs.count == 1 && jobs.list[0]->owner == -1 && jobs.list[0]->nodes == 3);
	end();
}

/* Jobs are found by key, whatever order they came in. */
static void test_order(void)
{
	static const char *const names[] = { "m", "c", "x", "a", "n", "", "z", "d" };
	bool is_found = true;

	begin();
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		text_copy(rows[1][i].job, HUB_JOB_NAME, names[i]);
	agents_of[1].summary.count = ARRAY_LENGTH(names);
	agents_of[0].summary.count = agents_of[2].summary.count = 0;
	update();
	EXPECT_EQUAL(jobs.count, ARRAY_LENGTH(names));
	for (size_t i = 1; i < jobs.count; i++)
		is_found &= strcmp(jobs.list[i - 1]->key, jobs.list[i]->key) < 0;
	for (size_t i = 0; i < jobs.count; i++)
		is_found &= hub_jobs_find(&jobs, jobs.list[i]->key) == jobs.list[i];
	EXPECT_THAT("jobs are sorted by key, and all are found", is_found);
	EXPECT_THAT("a job without a name has the agent's",
		    strcmp(jobs.list[0]->key, " node1:1") == 0 && jobs.list[0]->name[0] == '\0');
	EXPECT(!jobs.list[0]->is_crowded);
	text_copy(rows[1][8].job, HUB_JOB_NAME, "b");
	agents_of[1].summary.count = 9;
	update();
	EXPECT_THAT("an agent with more than eight jobs is a crowd",
		    jobs.count == 9 && jobs.list[0]->is_crowded);
	text_copy(rows[0][0].job, HUB_JOB_NAME, "c");
	agents_of[0].summary.count = 1;
	update();
	EXPECT_THAT("a job that others have, too, is not its invention",
		    jobs.list[0]->is_crowded && !hub_jobs_find(&jobs, "c")->is_crowded &&
			    hub_jobs_find(&jobs, "c")->nodes == 2);
	end();
}

/* Half of the table is for agents with few jobs. */
static void test_full(void)
{
	enum { LIARS = HUB_JOBS_MAX / 2 / ROWS };
	static struct hub_agent liars[LIARS], *list[LIARS + 2];
	static struct hub_row lies[LIARS][ROWS];

	begin();
	for (int i = 0; i < LIARS; i++) {
		for (int j = 0; j < ROWS; j++)
			text_format(lies[i][j].job, HUB_JOB_NAME, "%d-%d", i, j);
		liars[i] = (struct hub_agent){ .target = { "liar", "http://a", NULL },
					       .summary = { .rows = lies[i], .count = ROWS } };
		list[i] = &liars[i];
	}
	agents.list = list;
	agents.count = LIARS;
	update();
	EXPECT(jobs.count == HUB_JOBS_MAX / 2 && jobs.left_out == 0);
	for (int i = 0; i < 9; i++)
		text_format(rows[0][i].job, HUB_JOB_NAME, "honest %d", i);
	agents_of[0].summary.count = 9;
	list[LIARS] = &agents_of[0];
	agents.count = LIARS + 1;
	update();
	EXPECT_THAT("beyond half of the table an agent with nine jobs is left out",
		    jobs.count == HUB_JOBS_MAX / 2 && jobs.left_out == 9);
	agents_of[0].summary.count = 8;
	update();
	EXPECT_THAT("one with eight is not", jobs.count == HUB_JOBS_MAX / 2 + 8 &&
						     jobs.left_out == 0 &&
						     hub_jobs_find(&jobs, "honest 7") != NULL);
	agents.list = agent_list;
	end();
}

/* A table that is full of jobs of agents with few jobs has none of a liar, wherever that is in the list. */
static void test_full_of_honest(void)
{
	enum { HONEST = HUB_JOBS_MAX / 8 };
	static struct hub_agent many[HONEST + 1], *list[HONEST + 1];
	static struct hub_row of_them[HONEST][8];

	begin();
	for (int i = 0; i < 9; i++)
		text_format(rows[0][i].job, HUB_JOB_NAME, "lie %d", i);
	agents_of[0].summary.count = 9;
	list[0] = &agents_of[0];
	for (int i = 0; i < HONEST; i++) {
		for (int j = 0; j < 8; j++)
			text_format(of_them[i][j].job, HUB_JOB_NAME, "job %04d", 8 * i + j);
		many[i] = (struct hub_agent){ .target = { "n", "http://a", NULL },
					      .summary = { .rows = of_them[i], .count = 8 } };
		list[i + 1] = &many[i];
	}
	agents.list = list;
	agents.count = HONEST + 1;
	update();
	EXPECT(jobs.count == HUB_JOBS_MAX && jobs.left_out == 9 &&
	       hub_jobs_find(&jobs, "lie 0") == NULL &&
	       hub_jobs_find(&jobs, "job 4095") == jobs.list[HUB_JOBS_MAX - 1]);
	agents.list = agent_list;
	end();

	/* All but the last agent's are of one user. */
	begin();
	for (int i = 0; i < HONEST - 1; i++)
		for (int j = 0; j < 8; j++)
			of_them[i][j].owner = 1000;
	agents.list = list + 1;
	agents.count = HONEST;
	update();
	EXPECT_THAT("a user has at most half of the table, and others have room",
		    jobs.count == HUB_JOBS_MAX / 2 + 8 && jobs.left_out == HUB_JOBS_MAX / 2 - 8 &&
			    hub_jobs_find(&jobs, "job 4095") != NULL &&
			    hub_jobs_find(&jobs, "job 2048") == NULL);
	agents.list = agent_list;
	end();
}

/* ---- trouble ---------------------------------------------------------------------------------- */

/* One window of 30 s after the other: at least three before the last one, without trouble, make a rate to compare with. */
static void test_rate(void)
{
	static const struct {
		uint64_t after_ms, operations;
		double lowest, last;
		unsigned int windows;
		bool is_low;
	} steps[] = {
		{ 0, 1000, 0, 0, 0, false },
		{ 29999, 2000, 0, 0, 0, false },
		{ 1, 4000, 0, 100, 1, false },
		{ 30000, 7600, 100, 120, 2, false },
		{ 60000, 13000, 100, 90, 3, false },
		{ 30000, 15700, 90, 90, 4, false },
		/* Exactly two thirds are not low. */
		{ 30000, 17500, 90, 60, 5, false },
		/* That window is compared with only now. */
		{ 30000, 19900, 60, 80, 6, false },
		{ 30000, 21100, 60, 40, 7, false },
		{ 30000, 22300, 40, 40, 8, false },
		{ 30000, 23080, 40, 26, 9, true },
		{ 30000, 23860, 40, 26, 10, true },
		{ 30000, 24760, 26, 30, 11, false },
		/* Less than before: it started again. */
		{ 30000, 24759, 0, 0, 0, false },
		{ 30000, 24759, 0, 0, 1, false },
		{ 30000, 24789, 0, 1, 2, false },
	};
	struct hub_job *job = NULL;

	begin();
	for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
		const struct hub_rate *rate;
		char text[80];

		now += steps[i].after_ms * 1000000;
		rows[1][0].operations = steps[i].operations;
		job = update();
		rate = &job->rate;
		text_format(text, sizeof(text), "step %zu: %g, %g, %u windows%s", i, rate->lowest,
			    rate->last, rate->windows, rate->is_low ? ", low" : "");
		EXPECT_THAT(text, fabs(rate->lowest - steps[i].lowest) < 1e-9 &&
					  fabs(rate->last - steps[i].last) < 1e-9 &&
					  rate->windows == steps[i].windows &&
					  rate->is_low == steps[i].is_low &&
					  job->trouble == (rate->is_low ? HUB_TROUBLE_SLOW
									: HUB_TROUBLE_NONE));
	}
	agents_of[1].is_silent = true;
	now += 30 * SECOND;
	update();
	EXPECT_THAT("a node that does not answer says nothing about the rate",
		    job->rate.windows == 2);
	end();
}

/* Two thirds of the slowest window are compared from the fourth window on. */
static void test_rate_begins(void)
{
	static const bool is_low[] = { false, false, false, true };
	struct hub_job *job;

	for (size_t windows = 1; windows <= ARRAY_LENGTH(is_low); windows++) {
		begin();
		rows[0][0].operations = 0;
		job = update();
		for (size_t i = 1; i < windows; i++) {
			now += HUB_RATE_NS;
			rows[0][0].operations += 3000;
			update();
		}
		now += HUB_RATE_NS;
		rows[0][0].operations += 1999;
		update();
		EXPECT_EQUAL(job->rate.is_low, is_low[windows - 1]);
		EXPECT_EQUAL(job->rate.windows, windows);
		end();
	}
}

static void test_signs(void)
{
	struct hub_job *job;

	begin();
	for (unsigned int class = 0; class < VERDICT_CLASSES; class ++) {
		rows[1][0].verdicts = UINT64_C(1) << class;
		job = update();
		EXPECT_THAT(verdict_class_name((enum verdict_class) class),
			    job->trouble == (class <= VERDICT_STUCK	       ? HUB_TROUBLE_STUCK
					     : class <= VERDICT_BELOW_EXPECTED ? HUB_TROUBLE_SLOW
									       : HUB_TROUBLE_NONE));
	}
	rows[1][0].verdicts = 0;
	for (unsigned int kind = 0; kind < LIVE_NOTICE_KINDS; kind++) {
		rows[1][0].notices = UINT64_C(1) << kind;
		job = update();
		EXPECT_THAT(live_notice_name((enum live_notice_kind)kind),
			    job->trouble == (kind <= LIVE_DEAD	      ? HUB_TROUBLE_STUCK
					     : kind == LIVE_STRAGGLER ? HUB_TROUBLE_SLOW
								      : HUB_TROUBLE_NONE));
	}
	rows[1][0].notices = 0;
	rows[1][0].stuck_ns = options.hang_ns - 1;
	EXPECT(update()->trouble == HUB_TROUBLE_NONE);
	rows[1][0].stuck_ns = options.hang_ns;
	EXPECT_THAT("as long as --hang is a hang", update()->trouble == HUB_TROUBLE_STUCK);
	rows[2][0].hang_after_ns = options.hang_ns - 1;
	EXPECT_THAT("a job cannot shorten it", update()->trouble == HUB_TROUBLE_STUCK);
	rows[2][0].hang_after_ns = options.hang_ns + 1;
	EXPECT_THAT("but allow more", update()->trouble == HUB_TROUBLE_NONE);
	rows[1][0].stuck_ns++;
	EXPECT(update()->trouble == HUB_TROUBLE_STUCK);
	rows[0][0].alive = rows[1][0].alive = rows[2][0].alive = 0;
	EXPECT_THAT("a job without processes has no trouble",
		    update()->trouble == HUB_TROUBLE_NONE);
	end();
	EXPECT(strcmp(hub_trouble_name(HUB_TROUBLE_ALERT), "alert") == 0 &&
	       strcmp(hub_trouble_name(HUB_TROUBLE_SLOW), "slow") == 0 &&
	       strcmp(hub_judgement_name(HUB_COULD_NOT), "could_not_tell") == 0);
}

/* When trouble began, and when it is judged. */
static void test_trouble(void)
{
	struct hub_job *job;

	begin();
	rows[0][0].notices = UINT64_C(1) << LIVE_STRAGGLER;
	job = update();
	EXPECT(job->trouble_ns == BEGIN && job->trouble_last_ns == BEGIN &&
	       job->judge_ns == BEGIN && job->pause_ns == HUB_JUDGE_FIRST_NS);
	job->judged = 3;
	job->judge_ns = UINT64_MAX;
	now += SECOND;
	update();
	EXPECT_THAT("trouble that lasts began when it began",
		    job->trouble_ns == BEGIN && job->trouble_last_ns == now);
	EXPECT_THAT("and is judged after the pause",
		    job->judge_ns == now + HUB_JUDGE_FIRST_NS && job->judged == 3);
	now += SECOND;
	update();
	EXPECT(job->judge_ns == now - SECOND + HUB_JUDGE_FIRST_NS);
	rows[0][0].stuck_ns = options.hang_ns;
	update();
	EXPECT_THAT("worse trouble is judged at once",
		    job->judge_ns == now && job->judged == 0 && job->trouble_ns == BEGIN);
	job->judge_ns = now + 77;
	rows[0][0].stuck_ns = 0;
	update();
	EXPECT_THAT("less is not", job->judge_ns == now + 77 && job->trouble == HUB_TROUBLE_SLOW);
	job->judged_without = 1;
	job->is_judging = true;
	update();
	EXPECT_THAT("nor one that is being judged", job->judge_ns == now + 77);
	job->is_judging = false;
	agents_of[2].is_silent = true;
	update();
	EXPECT_THAT("nor one whose missing node is still missing", job->judge_ns == now + 77);
	agents_of[2].is_silent = false;
	update();
	EXPECT_THAT("a node that answers again has it judged",
		    job->judge_ns == now && job->judged_without == 0);
	end();
}

static void test_calm(void)
{
	struct hub_job *job;

	begin();
	job = update();
	EXPECT_THAT("a new job is judged once its rate is known",
		    job->judge_ns == BEGIN + 2 * HUB_RATE_NS);
	now += SECOND;
	update();
	EXPECT(job->judge_ns == BEGIN + 2 * HUB_RATE_NS);
	job->judge_ns = UINT64_MAX;
	job->judged = 1;
	update();
	EXPECT_THAT("later at the interval of checks", job->judge_ns == now + options.check_ns);
	job->judge_ns = UINT64_MAX;
	options.check_ns = 0;
	update();
	EXPECT_THAT("or never", job->judge_ns == UINT64_MAX);
	judged(job, "", 0, 1);
	EXPECT(job->judge_ns == UINT64_MAX && job->judgement == HUB_HEALTHY);
	end();

	begin();
	rows[0][0].stuck_ns = options.hang_ns;
	job = update();
	judged(job, HANG, 1, 1);
	rows[0][0].stuck_ns = 0;
	now += 2 * options.interval_ns;
	update();
	EXPECT_THAT("after two intervals a hang may not be over", job->found.count == 1);
	now++;
	update();
	EXPECT_THAT("after more it is", job->found.count == 0 && job->judgement == HUB_NOT_JUDGED &&
						job->judge_ns == now + HUB_JUDGE_FIRST_NS);
	end();

	begin();
	job = update();
	judged(job, SLOW, 1, 1);
	now += 10 * options.interval_ns;
	update();
	EXPECT_THAT("slowness is not over by itself", job->found.count == 1);
	job->judge_ns = UINT64_MAX;
	update();
	EXPECT(job->judge_ns == UINT64_MAX);
	for (int i = 0; i < AGENTS; i++) {
		rows[i][0].alive = 0;
		agents_of[i].is_silent = true;
	}
	update();
	EXPECT_THAT("a job whose nodes do not answer may go on", job->found.count == 1);
	agents_of[0].is_silent = false;
	update();
	EXPECT_THAT("one without processes has ended", job->found.count == 0 &&
							       job->judge_ns == UINT64_MAX &&
							       job->judgement == HUB_NOT_JUDGED);
	end();
}

static void test_forget(void)
{
	begin();
	text_copy(rows[1][0].job, HUB_JOB_NAME, "a");
	text_copy(rows[2][0].job, HUB_JOB_NAME, "z");
	update();
	EXPECT_EQUAL(jobs.count, 3);
	agents_of[0].summary.count = 0;
	now += HUB_JOB_KEEP_NS;
	update();
	EXPECT_THAT("a job that no agent has is kept for a minute",
		    jobs.count == 3 && !hub_jobs_find(&jobs, "llm")->is_seen &&
			    hub_jobs_find(&jobs, "llm")->seen_ns == BEGIN);
	hub_jobs_find(&jobs, "llm")->is_judging = true;
	now++;
	update();
	EXPECT_THAT("and while it is judged", jobs.count == 3);
	hub_jobs_find(&jobs, "llm")->is_judging = false;
	update();
	EXPECT_THAT("no longer; the others are", jobs.count == 2 &&
							 strcmp(jobs.list[0]->key, "a") == 0 &&
							 strcmp(jobs.list[1]->key, "z") == 0);
	end();
}

static void test_alerts(void)
{
	struct hub_job *job;

	begin();
	now += 40 * SECOND;
	job = update();
	job->judge_ns = UINT64_MAX;
	EXPECT(!hub_jobs_alert(&jobs, "other", now) && hub_jobs_alert(&jobs, "llm", now));
	EXPECT(job->trouble == HUB_TROUBLE_ALERT && job->trouble_ns == now &&
	       job->trouble_last_ns == now && job->pause_ns == HUB_JUDGE_FIRST_NS &&
	       job->judge_ns == now && job->alert_ns == now + 60 * SECOND);
	judged(job, "", 0, 1);
	job->judge_ns = 7;
	job->pause_ns = 9;
	now += 30 * SECOND;
	hub_jobs_alert(&jobs, "llm", now);
	EXPECT_THAT("one judgement in 30 s for alerts that repeat",
		    job->judge_ns == 7 && job->pause_ns == 9 &&
			    job->trouble_ns == now - 30 * SECOND);
	now++;
	hub_jobs_alert(&jobs, "llm", now);
	EXPECT_THAT("then another one", job->judge_ns == now);
	now = job->alert_ns - 1;
	EXPECT_THAT("an alert counts for a minute", update()->trouble == HUB_TROUBLE_ALERT);
	now++;
	EXPECT(update()->trouble == HUB_TROUBLE_NONE);
	end();
}

static void test_states(void)
{
	static const struct {
		const char *state;
		uint32_t nodes, silent, alive;
		enum hub_trouble trouble;
		const char *found;
	} cases[] = {
		{ "running", 2, 1, 8, HUB_TROUBLE_NONE, "" },
		{ "running", 2, 0, 8, HUB_TROUBLE_ALERT, "" },
		{ "silent", 2, 2, 0, HUB_TROUBLE_STUCK, "" },
		{ "ended", 0, 0, 0, HUB_TROUBLE_NONE, "" },
		{ "ended", 2, 1, 0, HUB_TROUBLE_NONE, "" },
		{ "stuck", 2, 1, 8, HUB_TROUBLE_STUCK, "" },
		{ "stuck", 2, 1, 8, HUB_TROUBLE_NONE, HANG },
		{ "slow", 2, 1, 8, HUB_TROUBLE_SLOW, "" },
		{ "slow", 2, 1, 8, HUB_TROUBLE_NONE, SLOW },
	};
	struct hub_job *job;

	begin();
	job = update();
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		judged(job, cases[i].found, 1, 1);
		job->nodes = cases[i].nodes;
		job->silent = cases[i].silent;
		job->alive = cases[i].alive;
		job->trouble = cases[i].trouble;
		EXPECT_THAT(cases[i].state, strcmp(hub_job_state(job), cases[i].state) == 0);
	}
	end();
}

static void test_gpu_hours(void)
{
	struct hub_job job = { .ranks = 4,
			       .processes = 4,
			       .alive = 4,
			       .wait_ns = 1800 * SECOND,
			       .stuck_ns = 20 * SECOND - 1 };
	struct verdict *verdict;

	begin();
	EXPECT(fabs(hub_job_gpu_hours(&job, &options) - 0.5) < 1e-12);
	job.stuck_ns++;
	EXPECT_THAT("a hang costs the time of all processes",
		    fabs(hub_job_gpu_hours(&job, &options) - 0.5 - 80.0 / 3600) < 1e-12);
	job.ranks = 32;
	EXPECT_THAT("and each rank of a process has a GPU",
		    fabs(hub_job_gpu_hours(&job, &options) - 0.5 - 640.0 / 3600) < 1e-12);
	job.alive = 2;
	EXPECT_THAT("those of dead processes cost nothing",
		    fabs(hub_job_gpu_hours(&job, &options) - 0.5 - 320.0 / 3600) < 1e-12);
	job.ranks = 0;
	EXPECT_THAT("a job of unknown size has a GPU for each process",
		    fabs(hub_job_gpu_hours(&job, &options) - 0.5 - 40.0 / 3600) < 1e-12);
	job.stuck_ns = 0;
	job.alive = 4;
	verdicts_init(&job.found);
	verdict = verdicts_add(&job.found, VERDICT_SLOW_LINK, VERDICT_WARNING);
	verdict->cost_percent = 50;
	verdict->for_ns = 3600 * SECOND;
	EXPECT_THAT("a slow link costs its share of the time of all ranks",
		    fabs(hub_job_gpu_hours(&job, &options) - 2) < 1e-12);
	verdict->is_cost_bound = true;
	verdict->cost_least_percent = 25;
	EXPECT_THAT("at least, where it is not known exactly",
		    fabs(hub_job_gpu_hours(&job, &options) - 1) < 1e-12);
	verdict->cost_least_percent = 0;
	EXPECT_THAT("and what was waited, if that is more",
		    fabs(hub_job_gpu_hours(&job, &options) - 0.5) < 1e-12);
	verdicts_release(&job.found);
	end();
}

/* ---- the doctor's answer ---------------------------------------------------------------------- */

#define ANSWER(verdicts)                                                                           \
	"{\"x\":[{}],\"verdicts\":[" verdicts "],\"format\":\"ringside-doctor\",\"y\":{\"z\":[1]}" \
	"}"

static void put_answer(struct expected_text *to, const char *heading, const char *text)
{
	struct verdicts verdicts;

	if (!EXPECT(hub_verdicts_read(&verdicts, text, strlen(text)) == OK))
		return;
	expected_put_verdicts(to, heading, &verdicts);
	verdicts_release(&verdicts);
}

static void test_reading(void)
{
	static const char all[] = ANSWER(
		"{\"title\":\"a \\\"title\\\"\",\"class\":\"network_stuck\",\"severity\":\"error\","
		"\"confidence\":0.875,\"rank\":3,\"pid\":71,\"gpu\":2,\"peer\":4,\"channel\":5,"
		"\"communicator\":\"world\",\"communicator_rank\":6,\"communicator_hash\":"
		"\"00000000000000ff\",\"operation\":{\"x\":[1],\"number\":812,\"y\":{},"
		"\"function\":\"AllReduce\"},\"since_ns\":1794835415000000000,\"seconds\":17.5,"
		"\"victims\":7,\"gpu_hours\":0.5,\"money\":1.25,\"percent\":33.5,"
		"\"cost_percent\":12.5,\"cost_bound\":\"most\",\"cost_least_percent\":2.5,"
		"\"job\":\"llm\",\"rank_label\":\"rank 3\",\"host\":\"n1\",\"peer_label\":\"rank "
		"4\","
		"\"peer_host\":\"n2\",\"channels\":\"0-7\",\"rule\":\"count\",\"page\":\"p.md\","
		"\"evidence\":[\"one\",{\"a\":[\"no\"]},[\"no\",[]],5,null,\"two\"],"
		"\"missing\":[\"three\"],\"advice\":[\"$ "
		"four\",\"five\"],\"unknown\":{\"rank\":9}},"
		"{\"class\":\"slow_rank\",\"severity\":\"warning\",\"rank\":null,"
		"\"pid\":9223372036854775807,\"peer\":9223372036854775808,\"confidence\":7,"
		"\"seconds\":-1,\"victims\":null,\"evidence\":null,\"operation\":null},"
		"{\"class\":\"slow_link\",\"severity\":\"warning\",\"cost_percent\":12.5,"
		"\"cost_bound\":null,\"cost_least_percent\":null},"
		"{\"class\":\"slow_host\",\"severity\":\"warning\",\"cost_percent\":1e9,"
		"\"cost_bound\":\"least\",\"cost_least_percent\":-1},"
		"{\"severity\":\"note\",\"class\":\"never_issued\",\"confidence\":-7,"
		"\"seconds\":1e300,\"victims\":9000000000}");
	static const char strange[] =
		ANSWER(VERDICT("new_class", "error", "an unknown class") "," VERDICT(
			"mismatch", "panic",
			"an unknown severity") "," VERDICT("elsewhere", "warning",
							   "the last class") "," VERDICT("never_"
											 "issued",
											 "error",
											 "the "
											 "first "
											 "class "
											 "and the "
											 "last "
											 "severit"
											 "y"));
	static const char *const wrong[] = {
		"",
		"[]",
		"{}",
		"{\"format\":\"ringside-doctor\"",
		"{\"format\":\"ringside-doctor\"} x",
		"{\"format\":\"ringside-now\",\"verdicts\":[]}",
		"{\"format\":\"ringside-doctor\",\"verdicts\":[{\"evidence\":[\"cut",
		"{\"format\":\"ringside-doctor\",\"verdicts\":[{\"title\":\"x\"}",
	};
	struct expected_text text = { .text = NULL };
	struct verdicts verdicts;

	put_answer(&text, "every field", all);
	put_answer(&text, "what this hub does not know is a note", strange);
	put_answer(&text, "objects instead of numbers",
		   ANSWER("{\"confidence\":{\"rank\":9},\"seconds\":[5],\"severity\":\"error\","
			  "\"class\":\"mismatch\",\"rank\":3,\"title\":\"whole\"}"));
	put_answer(&text, "no list", "{\"verdicts\":7,\"format\":\"ringside-doctor\"}");
	expected_compare(&text, "tests/unit/hub/expected/hub_doctor_answers");
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
		EXPECT_THAT(wrong[i], hub_verdicts_read(&verdicts, wrong[i], strlen(wrong[i])) ==
						      ERR_FORMAT &&
					      verdicts.count == 0);
}

static void put_judged(struct expected_text *to, const char *heading, const struct hub_job *job)
{
	expected_put_verdicts(to, heading, &job->found);
	expected_put(to, "%s, why \"%s\", %zu left out\n", hub_judgement_name(job->judgement),
		     job->why, job->found.left_out);
}

static void test_kept(void)
{
#define SETUP VERDICT("setup", "warning", "a wrong setting")
	struct expected_text text = { .text = NULL };
	struct child child = { .begun_ns = BEGIN, .code = 3 };
	struct hub_job *job;

	begin();
	job = update();
	judged(job, SETUP "," SLOW "," VERDICT("setup", "note", "no") "," HANG "," SETUP, 1, 1);
	put_judged(&text, "hangs and slowness come first", job);
	judged(job, SETUP "," VERDICT("slow_rank", "note", "a note"), 1, 1);
	put_judged(&text, "settings alone are no trouble", job);
	judged(job, SLOW "," SLOW "," SLOW "," SLOW "," SLOW "," SLOW "," SLOW "," HANG, 1, 1);
	put_judged(&text, "eight verdicts are kept", job);
	judged(job, SLOW "," SLOW "," SLOW "," SLOW "," SLOW "," SLOW "," SLOW "," HANG "," SLOW, 1,
	       1);
	put_judged(&text, "further ones are counted", job);
	judged(job, VERDICT("blind", "note", "half of the ranks cannot be seen"), 0, 1);
	put_judged(&text, "a note of a judgement needs no reason", job);
	judged(job,
	       VERDICT("setup", "note", "x") "," VERDICT(
		       "blind", "note", "first reason") "," VERDICT("blind", "note",
								    "second reason"),
	       3, 1);
	put_judged(&text, "the doctor could not tell", job);
	text_copy(child.why, sizeof(child.why), "said on standard error");
	child.bytes = "{\"format\":\"ringside-doctor\",\"verdicts\":[" VERDICT("blind", "note",
									       "a reason") "]}";
	child.used = strlen(child.bytes);
	hub_jobs_judged(&jobs, job, &child, now, now);
	put_judged(&text, "and says why", job);
	judged(job, HANG, 1, 1);
	child.bytes = "not an answer";
	child.used = strlen(child.bytes);
	hub_jobs_judged(&jobs, job, &child, now, now);
	put_judged(&text, "a verdict is kept if there is no answer", job);
	child.code = 0;
	hub_jobs_judged(&jobs, job, &child, now, now);
	put_judged(&text, "also if the doctor fails", job);
	child.code = -1;
	child.bytes = NULL;
	hub_jobs_judged(&jobs, job, &child, now, now);
	put_judged(&text, "or is killed", job);
	expected_put(&text, "=== totals\n");
	for (int i = 0; i < HUB_JUDGEMENTS; i++)
		expected_put(&text, "%s %d\n", hub_judgement_name((enum hub_judgement)i),
			     (int)jobs.judgements[i]);
	expected_compare(&text, "tests/unit/hub/expected/hub_judged");
	end();
}

/* When a job is judged again. */
static void test_again(void)
{
	struct hub_job *job;

	begin();
	rows[0][0].stuck_ns = options.hang_ns;
	job = update();
	for (unsigned int i = 1; i <= 4; i++) {
		judged(job, "", 0, 3);
		EXPECT_EQUAL(job->judge_ns, now + HUB_JUDGE_FIRST_NS);
		EXPECT_EQUAL(job->judged, i);
	}
	judged(job, "", 0, 3);
	EXPECT_THAT("without a verdict the pause grows after four",
		    job->judge_ns == now + 2 * HUB_JUDGE_FIRST_NS);
	EXPECT(jobs.judge_ns == 15 && job->took_ns == 3 && job->judged_ns == now &&
	       job->judged_wall_ns == now + 1);
	judged(job, "", 0, HUB_JUDGE_FIRST_NS);
	EXPECT_THAT("judging takes at most a tenth of the time",
		    job->pause_ns == 4 * HUB_JUDGE_FIRST_NS &&
			    job->judge_ns == now + 10 * HUB_JUDGE_FIRST_NS);
	job->pause_ns = HUB_JUDGE_MOST_NS / 2 - 1;
	judged(job, HANG, 1, 1);
	EXPECT(job->pause_ns == HUB_JUDGE_MOST_NS - 2);
	judged(job, HANG, 1, 1);
	EXPECT(job->pause_ns == HUB_JUDGE_MOST_NS && job->judge_ns == now + HUB_JUDGE_MOST_NS);
	job->pause_ns = 0;
	job->judged = 0;
	judged(job, "", 0, 1);
	EXPECT_THAT("there is always a pause", job->pause_ns == HUB_JUDGE_FIRST_NS);
	job->silent = 2;
	job->judged_without = 1;
	judged(job, "", 0, 1);
	EXPECT_EQUAL(job->judged_without, 2);
	job->silent = 0;
	judged(job, "", 0, 1);
	EXPECT_THAT("a node that answers again meanwhile is not forgotten",
		    job->judged_without == 2);
	job->trouble = HUB_TROUBLE_NONE;
	judged(job, "", 0, 1);
	EXPECT_THAT("a healthy job is checked from time to time",
		    job->judge_ns == now + options.check_ns);
	judged(job, SLOW, 1, 1);
	EXPECT_THAT("but one with a verdict after a pause",
		    job->judge_ns == now + 2 * HUB_JUDGE_FIRST_NS);
	end();
}

/* Of two jobs that are due, the first of each pair is judged. */
static void test_due(void)
{
	static const struct hub_job pairs[][2] = {
		{ { .nodes = 1, .trouble = HUB_TROUBLE_STUCK, .judge_ns = 9 },
		  { .nodes = 9, .trouble = HUB_TROUBLE_SLOW, .judge_ns = 1 } },
		{ { .nodes = 3, .trouble = HUB_TROUBLE_SLOW, .judge_ns = 9 },
		  { .nodes = 2, .trouble = HUB_TROUBLE_SLOW, .judge_ns = 1 } },
		{ { .nodes = 2, .trouble = HUB_TROUBLE_SLOW, .judge_ns = 1 },
		  { .nodes = 2, .trouble = HUB_TROUBLE_SLOW, .judge_ns = 2 } },
		{ { .nodes = 1, .trouble = HUB_TROUBLE_NONE, .judge_ns = 10 },
		  { .nodes = 9, .trouble = HUB_TROUBLE_STUCK, .judge_ns = 1, .is_crowded = true } },
		{ { .nodes = 1, .trouble = HUB_TROUBLE_NONE, .judge_ns = 10 },
		  { .nodes = 9, .trouble = HUB_TROUBLE_STUCK, .judge_ns = 11 } },
		{ { .nodes = 1, .trouble = HUB_TROUBLE_NONE, .judge_ns = 10 },
		  { .nodes = 0, .trouble = HUB_TROUBLE_STUCK, .judge_ns = 1 } },
		{ { .nodes = 1, .trouble = HUB_TROUBLE_NONE, .judge_ns = 10 },
		  { .nodes = 9, .trouble = HUB_TROUBLE_STUCK, .judge_ns = 1, .is_judging = true } },
	};
	struct hub_job one, other;

	for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
		struct hub_job *list[] = { &one, &other }, *reversed[] = { &other, &one };
		struct hub_jobs some = { .list = list, .count = 2 };

		one = pairs[i][0];
		other = pairs[i][1];
		EXPECT_EQUAL(hub_jobs_due(&some, 10, true) == &one, true);
		some.list = reversed;
		EXPECT_EQUAL(hub_jobs_due(&some, 10, true) == &one, true);
		one.judge_ns = other.judge_ns = 11;
		EXPECT(hub_jobs_due(&some, 10, true) == NULL);
	}
	one = pairs[0][0];
	other = pairs[0][0];
	EXPECT_THAT("of equal ones the first in the list",
		    hub_jobs_due(&(struct hub_jobs){ .list = (struct hub_job *[]){ &other, &one },
						     .count = 2 },
				 10, true) == &other);
}

/* ---- running the doctor ----------------------------------------------------------------------- */

static char doctor[96], said[96], answer[96];

/* A doctor that writes down its words and its input, and answers with a file. */
static void write_doctor(const char *directory)
{
	FILE *file;

	text_format(doctor, sizeof(doctor), "%s/doctor", directory);
	text_format(said, sizeof(said), "%s/said", directory);
	text_format(answer, sizeof(answer), "%s/answer", directory);
	file = fopen(doctor, "we");
	fprintf(file, "#!/bin/sh\n{ echo \"$*\"; cat; } >> %s\ncat %s\nexit 1\n", said, answer);
	fclose(file);
	chmod(doctor, 0700);
	file = fopen(answer, "we");
	fprintf(file, "{\"format\":\"ringside-doctor\",\"verdicts\":[%s]}", HANG);
	fclose(file);
}

static bool was_said(const char *wanted)
{
	char text[4096];
	FILE *file = fopen(said, "re");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	remove(said);
	text[length] = '\0';
	if (strcmp(text, wanted) != 0)
		printf("# got %s# wanted %s", text, wanted);
	return strcmp(text, wanted) == 0;
}

/* Until no doctor runs; time does not pass meanwhile. */
static void run_doctors(void)
{
	for (;;) {
		bool is_running = false;

		hub_jobs_run(&jobs, &agents, now);
		for (size_t i = 0; i < HUB_JUDGES; i++)
			is_running |= jobs.judges[i].child.begun_ns > 0;
		if (!is_running)
			return;
		poll(NULL, 0, 1);
	}
}

static void test_words(void)
{
	struct hub_job *job;

	begin();
	jobs.doctor = doctor;
	agents.changes = 1;
	rows[0][0].stuck_ns = options.hang_ns;
	text_copy(rows[1][0].job, HUB_JOB_NAME, "other");
	text_copy(rows[2][1].job, HUB_JOB_NAME, "llm");
	text_copy(rows[2][0].job, HUB_JOB_NAME, "third");
	agents_of[2].summary.count = 2;
	run_doctors();
	job = hub_jobs_find(&jobs, "llm");
	EXPECT(was_said("doctor --json --quiet --agents @/dev/stdin --job=llm --timeout 5000ms "
			"--parallel 256\nn0:1\nn2:1\n"));
	EXPECT(job->judgement == HUB_FOUND && job->judged_for == HUB_TROUBLE_STUCK &&
	       !job->is_judging && job->found.count == 1 && job->judged == 1);
	options.timeout_ns = 7 * SECOND;
	options.is_hang_fixed = true;
	options.gpu_hour_price = 2.5;
	options.auth = "/a";
	options.ca_file = "/c";
	options.is_insecure = options.is_any_owner = true;
	job->judge_ns = now;
	agents_of[2].is_silent = true;
	run_doctors();
	EXPECT(was_said(
		"doctor --json --quiet --agents @/dev/stdin --job=llm --hang 20000ms "
		"--timeout 7000ms --parallel 256 --gpu-hour-price 2.5 --auth /a --cacert /c "
		"--insecure --any-owner\nn0:1\nn2:1\n"));
	end();
}

/* What runs when, and when the next thing is due. */
static void test_run(void)
{
	struct hub_job *job;
	uint64_t next;

	begin();
	jobs.doctor = doctor;
	agents.changes = 1;
	next = hub_jobs_run(&jobs, &agents, now);
	job = jobs.list[0];
	EXPECT_THAT("a healthy job is judged when its rate is known",
		    jobs.count == 1 && next == BEGIN + 2 * HUB_RATE_NS);
	agents.changes = 2;
	rows[1][0].stuck_ns = options.hang_ns;
	next = hub_jobs_run(&jobs, &agents, now + 199999999);
	EXPECT_THAT("summaries are added up five times per second",
		    jobs.updated_ns == BEGIN && next == BEGIN + 200000000);
	now += 200000000;
	next = hub_jobs_run(&jobs, &agents, now);
	EXPECT(jobs.updated_ns == now && job->is_judging && next == now + 1 &&
	       job->judge_ns == UINT64_MAX);
	EXPECT(jobs.judges[0].child.begun_ns == now && jobs.judges[1].child.begun_ns == 0 &&
	       strcmp(jobs.judges[0].key, "llm") == 0 &&
	       jobs.judges[0].child.until_ns == now + 60 * SECOND);
	run_doctors();
	EXPECT(was_said("doctor --json --quiet --agents @/dev/stdin --job=llm --timeout 5000ms "
			"--parallel 256\nn0:1\nnode1:1\nn2:1\n"));
	next = hub_jobs_run(&jobs, &agents, now);
	EXPECT_THAT("then it is judged again after a pause",
		    next == now + 2 * HUB_JUDGE_FIRST_NS && next == job->judge_ns);
	job->judge_ns = now + 1;
	EXPECT(hub_jobs_run(&jobs, &agents, now) == now + 1);
	end();
}

/* A doctor that does not end. */
static void test_slow_doctor(void)
{
	struct hub_job *job;
	uint64_t next;
	FILE *file;

	begin();
	file = fopen(doctor, "we");
	fputs("#!/bin/sh\nexec sleep 600\n", file);
	fclose(file);
	jobs.doctor = doctor;
	agents.changes = 1;
	for (int i = 0; i < AGENTS; i++) {
		text_format(rows[i][0].job, HUB_JOB_NAME, "job %d", i);
		rows[i][0].stuck_ns = options.hang_ns;
	}
	rows[2][0].alive = 0;
	next = hub_jobs_run(&jobs, &agents, now);
	EXPECT_THAT("two jobs are judged at the same time",
		    jobs.judges[0].child.begun_ns == now && jobs.judges[1].child.begun_ns == now &&
			    next == now + 1);
	next = hub_jobs_run(&jobs, &agents, now + 5);
	EXPECT_THAT("for at most a minute", next == now + 60 * SECOND);
	jobs.list[2]->judge_ns = now + 7;
	EXPECT_THAT("a job that is due next is not forgotten",
		    hub_jobs_run(&jobs, &agents, now + 6) == now + 7);
	EXPECT_THAT("one that waits for a doctor is looked at ten times per second",
		    hub_jobs_run(&jobs, &agents, now + 7) == now + 7 + 100000000);
	jobs.list[2]->judge_ns = UINT64_MAX;
	job = jobs.list[0];
	now += 60 * SECOND;
	while (job->is_judging || jobs.list[1]->is_judging) {
		hub_jobs_run(&jobs, &agents, now);
		poll(NULL, 0, 1);
	}
	EXPECT(job->judgement == HUB_JUDGE_FAIL && strcmp(job->why, "it took too long") == 0 &&
	       job->took_ns == 60 * SECOND && job->judge_ns == now + 600 * SECOND);
	end();
}

/* One judge is for jobs that are not made up; and large jobs get more time. */
static void test_crowd_and_size(void)
{
	uint64_t next;

	begin();
	jobs.doctor = "/bin/true";
	agents.changes = 1;
	options.timeout_ns = 6 * SECOND;
	for (int i = 0; i < 9; i++) {
		rows[0][i] = rows[0][0];
		text_format(rows[0][i].job, HUB_JOB_NAME, "lie %d", i);
		rows[0][i].stuck_ns = options.hang_ns;
	}
	agents_of[0].summary.count = 9;
	agents_of[1].summary.count = agents_of[2].summary.count = 0;
	hub_jobs_run(&jobs, &agents, now);
	EXPECT_THAT("jobs that only a crowd has leave one judge free, from the first update on",
		    jobs.count == 9 && jobs.judges[0].child.begun_ns == 0 &&
			    jobs.judges[1].child.begun_ns == now);
	end();

	begin();
	jobs.doctor = "/bin/true";
	options.timeout_ns = 6 * SECOND;
	rows[0][0].stuck_ns = options.hang_ns;
	update();
	agents.changes = jobs.changes;
	jobs.list[0]->nodes = 513;
	next = hub_jobs_run(&jobs, &agents, now);
	EXPECT(next == now + 1 && jobs.judges[0].child.until_ns == now + (60 + 2 * 6) * SECOND);
	end();
}

int main(void)
{
	write_doctor(scratch_make());
	test_totals();
	test_owners();
	test_order();
	test_full();
	test_full_of_honest();
	test_rate();
	test_rate_begins();
	test_signs();
	test_trouble();
	test_calm();
	test_forget();
	test_alerts();
	test_states();
	test_gpu_hours();
	test_reading();
	test_kept();
	test_again();
	test_due();
	test_words();
	test_run();
	test_slow_doctor();
	test_crowd_and_size();
	return tap_done();
}
