/* The hub: what it reads from agents and from the doctor, and when it has a job judged. */
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub/hub.h"
#include "common/text.h"
#include "doctor/live.h"
#include "output/json.h"
#include "output/verdict_show.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define HEAD "{\"format\":\"ringside-summary\",\"version\":1,\"ringside\":\"9\",\"host\":\"n1\","

static struct hub_options options = { .interval_ns = 5 * SECOND,
				      .hang_ns = 20 * SECOND,
				      .check_ns = 600 * SECOND };

/* ---- reading --------------------------------------------------------------------------------- */

static enum status summary_of(struct hub_summary *summary, const char *text)
{
	const char *why;

	return hub_summary_read(summary, text, strlen(text), &why);
}

static void test_summary(void)
{
	struct hub_summary summary;
	char *many = malloc(1 << 16);

	EXPECT(summary_of(&summary, HEAD
			  "\"jobs\":[{\"name\":\"a\\u0022b\",\"world_size\":16,\"ranks\":8,"
			  "\"processes\":8,\"processes_alive\":7,\"operations\":9,\"stuck_ns\":38,"
			  "\"hang_after_ns\":900000000000,"
			  "\"wait_share\":0.25,\"wait_ns\":5,\"verdicts\":[\"mismatch\",\"new\"],"
			  "\"notices\":[\"dead\"],\"state\":\"stuck\",\"x\":{}}],"
			  "\"jobs_left_out\":2}") == OK);
	EXPECT(summary.count == 1 && strcmp(summary.rows[0].job, "a\"b") == 0);
	EXPECT(summary.rows[0].ranks == 8 && summary.rows[0].alive == 7 &&
	       summary.rows[0].stuck_ns == 38 && summary.rows[0].hang_after_ns == 900 * SECOND &&
	       summary.rows[0].wait_share == 0.25);
	EXPECT_THAT("classes and kinds that are not known are left out",
		    summary.rows[0].verdicts == UINT64_C(1) << VERDICT_MISMATCH &&
			    summary.rows[0].notices == UINT64_C(1) << LIVE_DEAD);
	EXPECT(summary.left_out == 2 && strcmp(summary.host, "n1") == 0);
	hub_summary_release(&summary);

	EXPECT(summary_of(&summary,
			  HEAD "\"jobs\":[{\"ranks\":99999999999,\"processes\":5000000000,"
			       "\"hang_after_ns\":604800000000001,"
			       "\"processes_alive\":7,\"wait_share\":7e300,\"name\":7,"
			       "\"world_size\":-3}]}") == OK);
	EXPECT_THAT("figures that no node has are bounded",
		    summary.rows[0].ranks == 4096 && summary.rows[0].processes == 4096 &&
			    summary.rows[0].hang_after_ns == 0 && summary.rows[0].wait_share == 1 &&
			    summary.rows[0].world_size == 0);
	hub_summary_release(&summary);

	EXPECT(summary_of(&summary, HEAD "\"jobs\":[{\"wait_share\":{\"ranks\":9},\"ranks\":2,"
					 "\"name\":\"x\"}],\"jobs_left_out\":3}") == OK);
	EXPECT_THAT("an object instead of a number is skipped as a whole",
		    summary.count == 1 && isnan(summary.rows[0].wait_share) &&
			    summary.rows[0].ranks == 2 && strcmp(summary.rows[0].job, "x") == 0 &&
			    summary.left_out == 3);
	hub_summary_release(&summary);

	text_copy(many, 1 << 16, HEAD "\"jobs\":[{}");
	for (int i = 0; i < 100; i++)
		text_append(many, 1 << 16, ",{\"name\":\"x\"}");
	text_append(many, 1 << 16, "]}");
	EXPECT(summary_of(&summary, many) == OK);
	EXPECT_THAT("an agent has at most 64 jobs; the rest is counted",
		    summary.count == 64 && summary.left_out == 37);
	hub_summary_release(&summary);
	free(many);

	EXPECT(summary_of(&summary, "") == ERR_FORMAT && summary_of(&summary, "[]") == ERR_FORMAT);
	EXPECT(summary_of(&summary, "{\"format\":\"ringside-now\",\"version\":1}") == ERR_FORMAT);
	EXPECT(summary_of(&summary, "{\"format\":\"ringside-summary\",\"version\":2}") ==
	       ERR_FORMAT);
	EXPECT(summary_of(&summary, HEAD "\"jobs\":[{\"name\":\"a\"}") == ERR_FORMAT);
	EXPECT(summary_of(&summary, HEAD "\"jobs\":[]} x") == ERR_FORMAT);
}

static void test_targets(void)
{
	static const char good[] = "[{\"targets\":[\"a:1\",\"b\"],\"labels\":{\"x\":\"y\"}},"
				   "{\"labels\":{\"__scheme__\":\"https\"},\"targets\":[\"c:2\"]},{"
				   "\"targets\":[\"a:1\"]}]";
	struct fetch_targets targets;
	char why[200];

	fetch_targets_init(&targets);
	EXPECT(hub_agents_read_sd(&targets, good, strlen(good), why, sizeof(why)) == OK);
	EXPECT(targets.count == 3 && strcmp(targets.list[0].url, "http://a:1") == 0 &&
	       strcmp(targets.list[1].url, "http://b:9749") == 0 &&
	       strcmp(targets.list[2].url, "https://c:2") == 0);
	EXPECT(hub_agents_read_sd(&targets, "- targets: [a]", 14, why, sizeof(why)) == ERR_FORMAT);
	EXPECT(strstr(why, "JSON") != NULL);
	EXPECT(hub_agents_read_sd(&targets, "[{\"targets\":[\"a b/../c\"]}]", 26, why,
				  sizeof(why)) == ERR_FORMAT);
	fetch_targets_release(&targets);
}

/* What the doctor writes is read back: the same key, and the same document when shown again. */
static void test_verdicts(void)
{
	struct verdicts made, read;
	struct verdict *verdict;
	struct sink sink, again;
	struct json json;

	verdicts_init(&made);
	verdict = verdicts_add(&made, VERDICT_NETWORK_STUCK, VERDICT_ERROR);
	verdict_title(verdict, "network send stuck: rank 3 -> \"4\"\n");
	verdict->confidence = 0.96;
	verdict->rank = 3;
	verdict->peer = 4;
	verdict->pid = 71;
	verdict->comm_hash = 0xd5e946052b998965;
	verdict->comm_rank = 3;
	verdict->number = 812;
	verdict->since_wall_ns = 1794835415557909941;
	verdict->for_ns = 17 * SECOND;
	verdict->victims = 7;
	verdict->gpu_hours = 0.5;
	text_copy(verdict->job, sizeof(verdict->job), "llm");
	text_copy(verdict->host, sizeof(verdict->host), "node1");
	text_copy(verdict->comm, sizeof(verdict->comm), "world");
	text_copy(verdict->function, sizeof(verdict->function), "AllReduce");
	text_copy(verdict->channels, sizeof(verdict->channels), "0-7");
	verdict_evidence(verdict, "one");
	verdict_advice(verdict, "$ ringside ps");
	sink_init_memory(&sink);
	json_init(&json, &sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-doctor");
	json_put_array(&json, "verdicts");
	verdict_json_one(&json, verdict);
	json_end(&json);
	json_end(&json);
	EXPECT(hub_verdicts_read(&read, sink_string(&sink), sink.used) == OK && read.count == 1);
	EXPECT(verdict_key(&read.list[0]) == verdict_key(verdict));
	sink_init_memory(&again);
	json_init(&json, &again);
	json_object(&json);
	json_put_string(&json, "format", "ringside-doctor");
	json_put_array(&json, "verdicts");
	verdict_json_one(&json, &read.list[0]);
	json_end(&json);
	json_end(&json);
	EXPECT_THAT("nothing is lost on the way",
		    strcmp(sink_string(&sink), sink_string(&again)) == 0);
	verdicts_release(&read);
	EXPECT(hub_verdicts_read(&read, sink.bytes, sink.used - 1) == ERR_FORMAT);
	EXPECT(hub_verdicts_read(&read, "{}", 2) == ERR_FORMAT);
	sink_release(&sink);
	sink_release(&again);
	verdicts_release(&made);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

enum { AGENTS = 3 };
static struct hub_agent agents_of[AGENTS];
static struct hub_agent *agent_list[AGENTS];
static struct hub_row rows[AGENTS];
static struct hub_agents agents;
static struct hub_jobs jobs;
static uint64_t now;

static void begin(void)
{
	static const char *const names[AGENTS] = { "n0:1", "n1:1", "n2:1" };

	now = 1000 * SECOND;
	agents = (struct hub_agents){ .options = &options, .list = agent_list, .count = AGENTS };
	for (int i = 0; i < AGENTS; i++) {
		rows[i] = (struct hub_row){ .job = "llm",
					    .world_size = 24,
					    .ranks = 8,
					    .processes = 8,
					    .alive = 8,
					    .wait_share = NAN };
		agents_of[i] = (struct hub_agent){
			.target = { (char *)names[i], "http://n", NULL },
			.answered_ns = now,
			.summary = { .rows = &rows[i], .count = 1, .host = "n" }
		};
		agent_list[i] = &agents_of[i];
	}
	hub_jobs_init(&jobs, &options, "/bin/false");
}

static struct hub_job *look(void)
{
	agents.changes++;
	hub_jobs_update(&jobs, &agents, now);
	return jobs.count > 0 ? jobs.list[0] : NULL;
}

/* The doctor answers with a verdict of this class, or none. */
static void judge(struct hub_job *job, const char *class, int code)
{
	char text[400];
	struct child child = { .begun_ns = now, .code = code };

	text_format(text, sizeof(text), "{\"format\":\"ringside-doctor\",\"verdicts\":[%s%s%s]}",
		    class ? "{\"severity\":\"error\",\"title\":\"t\",\"job\":\"llm\",\"class\":\""
			  : "",
		    class ? class : "", class ? "\"}" : "");
	child.bytes = text;
	child.used = strlen(text);
	job->judge_ns = UINT64_MAX;
	hub_jobs_judged(&jobs, job, &child, now, now);
}

static void test_owners(void)
{
	begin();
	rows[0].owner = rows[1].owner = 0;
	rows[2].owner = 1000;
	look();
	EXPECT_THAT("jobs of one name and two users are two jobs",
		    jobs.count == 2 && jobs.list[0]->nodes == 2 && jobs.list[1]->nodes == 1);
	EXPECT_THAT("the later one is named by its user",
		    strcmp(jobs.list[0]->name, "llm") == 0 &&
			    strcmp(jobs.list[1]->name, "llm (uid 1000)") == 0);
	EXPECT_THAT("each has its own rows",
		    hub_job_is_row(jobs.list[0], &agents_of[0], &rows[0]) &&
			    !hub_job_is_row(jobs.list[0], &agents_of[2], &rows[2]) &&
			    hub_job_is_row(jobs.list[1], &agents_of[2], &rows[2]));
	hub_jobs_release(&jobs);
	begin();
	rows[0].owner = rows[1].owner = 0;
	rows[2].owner = 1000;
	options.is_any_owner = true;
	look();
	look();
	EXPECT_THAT("unless they are asked for as one",
		    jobs.count == 1 && jobs.list[0]->nodes == 3 &&
			    hub_job_is_row(jobs.list[0], &agents_of[2], &rows[2]));
	options.is_any_owner = false;
	hub_jobs_release(&jobs);
}

static void test_totals(void)
{
	struct hub_job *job;

	begin();
	rows[0].stuck_ns = 3;
	rows[1].wait_share = 0.5;
	agents_of[2].is_silent = true;
	rows[2].stuck_ns = 99 * SECOND;
	job = look();
	EXPECT(jobs.count == 1 && job->nodes == 3 && job->silent == 1 && job->ranks == 24);
	EXPECT_THAT("what a silent agent said last is not its state now",
		    job->alive == 16 && job->stuck_ns == 3);
	EXPECT_THAT("only agents that know the waiting count", job->wait_share == 0.5);
	EXPECT(strcmp(hub_job_state(job), "running") == 0);
	agents_of[0].is_silent = agents_of[1].is_silent = true;
	EXPECT(strcmp(hub_job_state(look()), "silent") == 0);
	hub_jobs_release(&jobs);

	begin();
	rows[0].job[0] = rows[1].job[0] = '\0';
	look();
	EXPECT_THAT("jobs without a name are one per agent", jobs.count == 3);
	hub_jobs_release(&jobs);
}

static void test_hang(void)
{
	struct hub_job *job;

	begin();
	job = look();
	EXPECT(hub_jobs_due(&jobs, now, true) == NULL && job->trouble == HUB_TROUBLE_NONE);
	rows[1].stuck_ns = 19 * SECOND;
	EXPECT(look()->trouble == HUB_TROUBLE_NONE);
	rows[1].stuck_ns = 21 * SECOND;
	job = look();
	EXPECT_THAT("a hang is judged at once",
		    job->trouble == HUB_TROUBLE_STUCK && hub_jobs_due(&jobs, now, true) == job);
	judge(job, NULL, 0);
	EXPECT(job->judgement == HUB_HEALTHY && job->found.count == 0);
	EXPECT_THAT("a job that is stuck and has no verdict is judged again soon",
		    job->judge_ns == now + HUB_JUDGE_FIRST_NS);
	now += HUB_JUDGE_FIRST_NS;
	EXPECT(look() == hub_jobs_due(&jobs, now, true));
	judge(job, "never_issued", 1);
	EXPECT(job->judgement == HUB_FOUND && job->found.list[0].class == VERDICT_NEVER_ISSUED);
	for (uint64_t pause = 2 * HUB_JUDGE_FIRST_NS; pause < HUB_JUDGE_MOST_NS; pause *= 2) {
		EXPECT_EQUAL(job->judge_ns - now, pause);
		now = job->judge_ns;
		judge(look(), "never_issued", 1);
	}
	EXPECT_EQUAL(job->judge_ns - now, HUB_JUDGE_MOST_NS);
	judge(job, "never_issued", -1);
	EXPECT_THAT("the verdict stays when the doctor cannot answer, and says so",
		    job->found.count == 1 && job->judgement == HUB_JUDGE_FAIL);
	rows[1].stuck_ns = 0;
	now += SECOND;
	EXPECT_THAT("it is not over before all agents were asked again", look()->found.count == 1);
	now += 2 * options.interval_ns;
	EXPECT_THAT("then it is", look()->found.count == 0 && job->judgement == HUB_NOT_JUDGED);
	EXPECT_THAT("and the job is judged once more", job->judge_ns <= now + HUB_JUDGE_FIRST_NS);
	hub_jobs_release(&jobs);
}

/* A judgement that waits for a silent agent takes long, and what takes long is not repeated soon. */
static void test_agent_returns(void)
{
	struct hub_job *job;

	begin();
	rows[1].stuck_ns = 21 * SECOND;
	agents_of[2].is_silent = true;
	job = look();
	judge(job, "agent_dead", 1);
	EXPECT(look()->judge_ns > now);
	agents_of[2].is_silent = false;
	EXPECT_THAT("a job is judged again as soon as a node that was missing answers",
		    look()->judge_ns == now && hub_jobs_due(&jobs, now, true) == job);
	judge(job, "never_issued", 1);
	EXPECT_THAT("once", look()->judge_ns > now);
	hub_jobs_release(&jobs);
}

/* RINGSIDE_HANG_AFTER of a job, from the summaries. */
static void test_hang_after(void)
{
	struct hub_options fixed = options;

	begin();
	rows[0].hang_after_ns = 60 * SECOND;
	rows[1].stuck_ns = 21 * SECOND;
	EXPECT_THAT("a job that allows a minute is not stuck before",
		    look()->trouble == HUB_TROUBLE_NONE &&
			    hub_job_gpu_hours(look(), &options) == 0);
	fixed.is_hang_fixed = true;
	jobs.options = &fixed;
	EXPECT_THAT("--hang of the hub wins", look()->trouble == HUB_TROUBLE_STUCK);
	hub_jobs_release(&jobs);
	begin();
	rows[0].hang_after_ns = 60 * SECOND;
	rows[1].stuck_ns = 61 * SECOND;
	EXPECT(look()->trouble == HUB_TROUBLE_STUCK && hub_job_gpu_hours(look(), &options) > 0);
	hub_jobs_release(&jobs);
}

static void test_slow(void)
{
	struct hub_job *job;

	begin();
	rows[0].notices = UINT64_C(1) << LIVE_STRAGGLER;
	job = look();
	EXPECT(job->trouble == HUB_TROUBLE_SLOW && hub_jobs_due(&jobs, now, true) == job);
	judge(job, "slow_rank", 1);
	EXPECT(strcmp(hub_job_state(job), "slow") == 0);
	rows[0].notices = 0;
	now += 3 * options.interval_ns;
	EXPECT_THAT("slowness is over when the doctor says so", look()->found.count == 1);
	judge(job, NULL, 0);
	EXPECT(job->found.count == 0 && job->judgement == HUB_HEALTHY);
	EXPECT_THAT("a healthy job is judged from time to time",
		    job->judge_ns == now + options.check_ns);
	rows[0].stuck_ns = 30 * SECOND;
	EXPECT_THAT("a hang does not wait for that",
		    hub_jobs_due((look(), &jobs), now, true) == job);
	rows[0].alive = rows[1].alive = rows[2].alive = 0;
	judge(job, "never_issued", 1);
	job = look();
	EXPECT_THAT("a job that has ended has no verdict",
		    job->found.count == 0 && strcmp(hub_job_state(job), "ended") == 0 &&
			    hub_jobs_due(&jobs, now + 3600 * SECOND, true) == NULL);
	agents.count = 0;
	now += HUB_JOB_KEEP_NS + SECOND;
	look();
	EXPECT_THAT("and is forgotten when no agent knows it", jobs.count == 0);
	hub_jobs_release(&jobs);
}

static void test_rate(void)
{
	struct hub_job *job = NULL;

	begin();
	for (int i = 0; i < 100; i++, now += 5 * SECOND) {
		rows[0].operations += 5000;
		job = look();
	}
	EXPECT(job->trouble == HUB_TROUBLE_NONE && !job->rate.is_low);
	for (int i = 0; i < 20 && job->trouble == HUB_TROUBLE_NONE; i++, now += 5 * SECOND) {
		rows[0].operations += 2500;
		job = look();
	}
	EXPECT_THAT("a job that slows down to half is judged", job->trouble == HUB_TROUBLE_SLOW);
	hub_jobs_release(&jobs);
}

/* Prometheus' answers become the same summaries. */
static void test_queries(void)
{
#define ANSWER(labels, value)                                                                  \
	"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":" \
	"{" labels "},\"value\":[1.5,\"" value "\"]}]}}"
#define NODE "\"nccl_job\":\"llm\",\"instance\":\"n1:1\""
	static const struct {
		enum hub_query query;
		const char *answer;
	} answers[] = {
		{ HUB_QUERY_AGENTS, ANSWER("\"instance\":\"n1:1\",\"version\":\"9\"", "1") },
		{ HUB_QUERY_PROCESSES,
		  ANSWER(NODE ",\"world_size\":\"16\",\"state\":\"alive\"", "8") },
		{ HUB_QUERY_PROCESSES, ANSWER(NODE ",\"state\":\"killed\"", "1") },
		{ HUB_QUERY_STUCK, ANSWER(NODE, "21.5") },
		{ HUB_QUERY_VERDICTS, ANSWER(NODE ",\"class\":\"mismatch\"", "2") },
		{ HUB_QUERY_NOTICES, ANSWER(NODE ",\"kind\":\"dead\"", "1") },
		{ HUB_QUERY_SHARE, ANSWER(NODE, "NaN") },
		{ HUB_QUERY_WAIT, ANSWER(NODE, "1.5") },
		{ HUB_QUERY_OPERATIONS, ANSWER(NODE, "700") },
		{ HUB_QUERY_HANG_AFTER, ANSWER(NODE, "900") },
	};
	struct hub_agents found;
	struct hub_row *row;

	hub_agents_init(&found, &options, "", -1);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		EXPECT(hub_query_take(&found, answers[i].query, answers[i].answer,
				      strlen(answers[i].answer), 1) == OK);
	EXPECT(found.count == 1 && found.list[0]->is_coming && found.list[0]->coming.count == 1);
	row = found.list[0]->coming.rows;
	EXPECT(row->processes == 9 && row->alive == 8 && row->world_size == 16);
	EXPECT(row->hang_after_ns == 900 * SECOND);
	EXPECT(row->stuck_ns == 21500000000 && row->operations == 700 && isnan(row->wait_share));
	EXPECT(row->verdicts == UINT64_C(1) << VERDICT_MISMATCH &&
	       row->notices == UINT64_C(1) << LIVE_DEAD);
	EXPECT(hub_query_take(&found, HUB_QUERY_STUCK, "{\"status\":\"error\"}", 18, 1) ==
	       ERR_FORMAT);
	EXPECT(hub_query_take(&found, HUB_QUERY_STUCK, ANSWER("\"instance\":\"a b,c\"", "1"),
			      strlen(ANSWER("\"instance\":\"a b,c\"", "1")), 1) == OK);
	EXPECT_THAT("an instance that is no address is left out", found.count == 1);
	hub_agents_release(&found);
}

/* A liar with many jobs must not displace the jobs of others. */
static void test_liars(void)
{
	static struct hub_agent crowd[200];
	static struct hub_agent *list[201];
	static struct hub_row lies[200][64];
	char names[200][16];

	begin();
	for (int i = 0; i < 200; i++) {
		text_format(names[i], sizeof(names[i]), "a%d:1", i);
		for (int j = 0; j < 64; j++)
			text_format(lies[i][j].job, sizeof(lies[i][j].job), "%d-%d", i, j);
		crowd[i] = (struct hub_agent){ .target = { names[i], "http://a", NULL },
					       .summary = { .rows = lies[i], .count = 64 } };
		list[i] = &crowd[i];
	}
	agents.list = list;
	agents.count = 200;
	look();
	EXPECT(jobs.count == HUB_JOBS_MAX / 2 && jobs.left_out == 200 * 64 - HUB_JOBS_MAX / 2);
	EXPECT_THAT("jobs that a liar makes up are known as such at once",
		    jobs.list[0]->is_crowded && jobs.list[jobs.count - 1]->is_crowded);
	list[200] = &agents_of[0];
	agents.count = 201;
	look();
	EXPECT(hub_jobs_find(&jobs, "llm") != NULL);
	for (int i = 0; i < 200; i++)
		for (int j = 0; j < 64; j++) {
			lies[i][j].processes = lies[i][j].alive = 1;
			lies[i][j].stuck_ns = 99 * SECOND;
		}
	rows[0].notices = UINT64_C(1) << LIVE_STRAGGLER;
	look();
	EXPECT_THAT("and are judged after a job that is only slow",
		    strcmp(hub_jobs_due(&jobs, now, true)->key, "llm") == 0);
	hub_jobs_find(&jobs, "llm")->judge_ns = UINT64_MAX;
	EXPECT(hub_jobs_due(&jobs, now, true) != NULL && hub_jobs_due(&jobs, now, false) == NULL);
	hub_jobs_release(&jobs);
}

static void test_alerts(void)
{
	static const char alerts[] =
		"{\"version\":\"4\",\"status\":\"firing\",\"alerts\":["
		"{\"status\":\"firing\",\"labels\":{\"alertname\":\"NcclHang\",\"nccl_job\":"
		"\"llm\"}},"
		"{\"status\":\"firing\",\"labels\":{\"nccl_job\":\"none\"}},"
		"{\"status\":\"resolved\",\"labels\":{\"nccl_job\":\"llm\"}}]}";
	unsigned int known, unknown;
	struct hub_job *job;

	begin();
	job = look();
	EXPECT(hub_jobs_due(&jobs, now, true) == NULL);
	EXPECT(hub_alerts_take(&jobs, alerts, strlen(alerts), now, &known, &unknown) == OK);
	EXPECT(known == 1 && unknown == 1 && hub_jobs_due(&jobs, now, true) == job);
	judge(job, NULL, 0);
	now += SECOND;
	hub_alerts_take(&jobs, alerts, strlen(alerts), now, &known, &unknown);
	EXPECT_THAT("alerts that repeat do not have it judged all the time",
		    hub_jobs_due(&jobs, now, true) == NULL);
	EXPECT(hub_alerts_take(&jobs, "{}", 2, now, &known, &unknown) == ERR_FORMAT);
	EXPECT(hub_alerts_take(&jobs, alerts, 40, now, &known, &unknown) == ERR_FORMAT);
	hub_jobs_release(&jobs);
}

/* Names cannot break a format. */
static void test_metrics(void)
{
	struct hub_state hub = { .options = &options };
	struct hub_job *job;
	struct sink sink;

	begin();
	for (int i = 0; i < AGENTS; i++)
		text_copy(rows[i].job, sizeof(rows[i].job), "a\"} 1\nup 0\\</script>");
	rows[0].stuck_ns = 30 * SECOND;
	job = look();
	judge(job, "never_issued", 1);
	hub.agents = agents;
	hub.jobs = jobs;
	sink_init_memory(&sink);
	hub_show_metrics(&sink, &hub);
	EXPECT(strstr(sink_string(&sink), "\nringside_hub_verdict_info{nccl_job=\"a\\\"} 1\\nup "
					  "0\\\\</script>\",class=\"never_issued\",") != NULL);
	EXPECT(strstr(sink_string(&sink), "\nup 0") == NULL);
	sink_release(&sink);
	sink_init_memory(&sink);
	hub_show_jobs(&sink, &hub, job->key, now, now);
	EXPECT(strstr(sink_string(&sink), "\"key\":\"a\\\"} 1\\nup 0\\\\</script>\"") != NULL);
	EXPECT(strstr(sink_string(&sink), "\"job_nodes\":[{\"agent\":\"n0:1\"") != NULL);
	sink_release(&sink);
	hub_jobs_release(&jobs);
}

/* ---- children -------------------------------------------------------------------------------- */

static int child_sleeps(const char *input, void *context)
{
	(void)input;
	(void)context;
	pause();
	return 0;
}

static int child_talks(const char *input, void *context)
{
	static const char bytes[4096];

	(void)input;
	(void)context;
	while (write(STDOUT_FILENO, bytes, sizeof(bytes)) > 0)
		continue;
	return 0;
}

static int child_allocates(const char *input, void *context)
{
	const uint64_t *bytes = context;
	/* volatile: the compiler may leave out an allocation that nobody uses. */
	void *volatile got = malloc(*bytes);

	(void)input;
	return got == NULL ? 7 : 0;
}

static int child_closes(const char *input, void *context)
{
	const int *fds = context;

	(void)input;
	return fcntl(fds[0], F_GETFD) != -1 && fcntl(fds[1], F_GETFD) == -1 ? 0 : 1;
}

static int child_crashes(const char *input, void *context)
{
	(void)input;
	(void)context;
	signal(SIGABRT, SIG_DFL);
	abort();
}

/* Runs it to its end; from then on the clock is at `later_ns`. */
static struct child child_end(const struct child_task *task, uint64_t later_ns)
{
	struct child child;

	child_start(&child, task, -1, 1);
	while (!child_has_ended(&child, later_ns))
		poll(NULL, 0, 1);
	return child;
}

static void test_child(void)
{
	int fds[2] = { open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		       socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	uint64_t much = UINT64_C(1) << 30;
	struct child_task task = { .work = child_sleeps,
				   .timeout_ns = 600 * SECOND,
				   .limit_bytes = 1 << 20 };
	struct child child = child_end(&task, 601 * SECOND);

	EXPECT_THAT("a child that takes too long is killed",
		    child.code == -1 && strcmp(child.why, "it took too long") == 0);
	child_release(&child);
	task.work = child_talks;
	child = child_end(&task, 1);
	EXPECT_THAT("so is one that writes too much",
		    child.code == -1 && strcmp(child.why, "its output exceeds the limit") == 0 &&
			    child.used <= task.limit_bytes + (1 << 16));
	child_release(&child);
	task.work = child_allocates;
	task.context = &much;
	child = child_end(&task, 1);
	EXPECT_THAT("without a limit there is memory", child.code == 0);
	child_release(&child);
	task.memory_bytes = much / 2;
	child = child_end(&task, 1);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* Sanitizers reserve more address space than any limit allows. */
	EXPECT_THAT("memory is limited", child.code == 7);
#endif
	child_release(&child);
	task.memory_bytes = 0;
	task.work = child_closes;
	task.keeps_files = true;
	task.context = fds;
	child = child_end(&task, 1);
	EXPECT_THAT("it keeps files and no connection",
		    fds[0] != -1 && fds[1] != -1 && child.code == 0);
	child_release(&child);
	close(fds[0]);
	close(fds[1]);
	task.work = child_crashes;
	child = child_end(&task, 1);
	EXPECT_THAT("a crash costs the child alone",
		    child.code == -1 && strcmp(child.why, "it was ended by signal 6") == 0);
	child_release(&child);
}

/* What an agent calls by its user is that user's job everywhere; what only looks like that is another name. */
static void test_names_of_owners(void)
{
	struct hub_summary summary = { 0 };

	EXPECT(summary_of(
		       &summary, HEAD
		       "\"jobs\":["
		       "{\"name\":\"x (uid 7)\",\"owner\":7},{\"name\":\"x (uid 7)\",\"owner\":8},"
		       "{\"name\":\"x (uid 7)\"},{\"name\":\"x\",\"owner\":7}]}") == OK &&
	       summary.count == 4);
	EXPECT(strcmp(summary.rows[0].job, "x") == 0 && summary.rows[0].shows_owner);
	EXPECT(strcmp(summary.rows[1].job, "x (uid 7)") == 0 && !summary.rows[1].shows_owner);
	EXPECT(strcmp(summary.rows[2].job, "x (uid 7)") == 0 && !summary.rows[2].shows_owner);
	EXPECT(strcmp(summary.rows[3].job, "x") == 0 && !summary.rows[3].shows_owner);
	hub_summary_release(&summary);
}

int main(void)
{
	test_child();
	test_summary();
	test_names_of_owners();
	test_targets();
	test_verdicts();
	test_owners();
	test_totals();
	test_hang();
	test_agent_returns();
	test_hang_after();
	test_slow();
	test_rate();
	test_queries();
	test_liars();
	test_alerts();
	test_metrics();
	return tap_done();
}
