/* What the hub shows, as a whole: jobs as JSON and metrics for Prometheus. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hub/hub.h"
#include "common/attributes.h"
#include "common/text.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define NOW (1000 * SECOND)

enum { AGENTS = 4, JOBS = 5 };
static struct hub_options options;
static struct hub_agent agents[AGENTS], *agent_list[AGENTS];
static struct hub_row rows[AGENTS][2];
static struct hub_job jobs[JOBS], *job_list[JOBS];
static struct hub_state hub;

static void set_job(int at, const char *name, uint32_t nodes, uint32_t silent, uint32_t alive)
{
	struct hub_job *job = &jobs[at];

	*job = (struct hub_job){ .owner = -1,
				 .nodes = nodes,
				 .silent = silent,
				 .alive = alive,
				 .processes = alive,
				 .ranks = 8 * nodes,
				 .wait_share = NAN,
				 .judge_ns = UINT64_MAX };
	text_copy(job->key, sizeof(job->key), name);
	text_copy(job->name, sizeof(job->name), name);
	verdicts_init(&job->found);
	job_list[at] = job;
}

static void add_verdict(struct hub_job *job, enum verdict_class class, int64_t rank, int64_t peer)
{
	struct verdict *verdict = verdicts_add(&job->found, class, VERDICT_ERROR);

	verdict->rank = rank;
	verdict->peer = peer;
	verdict->confidence = 0.9;
	text_copy(verdict->host, sizeof(verdict->host), rank >= 0 ? "node1" : "");
	verdict_title(verdict, "what is wrong");
}

static void begin(void)
{
	static const char *const names[AGENTS] = { "n0:1", "n1:1", "n2:1", "unix:/run/a" };

	options = (struct hub_options){ .serving = { .host = "head" },
					.interval_ns = 5 * SECOND,
					.hang_ns = 20 * SECOND };
	hub = (struct hub_state){ .options = &options,
				  .alerts = 3,
				  .start_wall_ns = 1700000000500000000 };
	for (int i = 0; i < AGENTS; i++) {
		agents[i] = (struct hub_agent){ .target = { (char *)(uintptr_t)names[i], "http://n",
							    i == 3 ? "/run/a" : NULL },
						.answered_ns = NOW - (uint64_t)i,
						.summary = { .rows = rows[i], .count = 2 } };
		text_format(agents[i].summary.host, sizeof(agents[i].summary.host), "host %d", i);
		for (int r = 0; r < 2; r++) {
			rows[i][r] = (struct hub_row){ .owner = -1,
						       .ranks = 8,
						       .alive = 7,
						       .stuck_ns = (uint64_t)(i + r),
						       .wait_share = 0.123456 };
			text_copy(rows[i][r].job, HUB_JOB_NAME, r == 0 ? "hangs" : "runs");
		}
		agent_list[i] = &agents[i];
	}
	agents[1].is_silent = agents[3].is_silent = true;
	agents[3].answered_ns = 0;
	text_copy(agents[1].why, sizeof(agents[1].why), "connection refused");
	hub.agents = (struct hub_agents){ .options = &options,
					  .list = agent_list,
					  .count = AGENTS,
					  .asked = 11,
					  .failed = 2,
					  .received_bytes = 333 };
	set_job(0, "", 1, 0, 8);
	text_copy(jobs[0].key, sizeof(jobs[0].key), " n0:1");
	set_job(1, "ended", 1, 0, 0);
	set_job(2, "hangs", 4, 1, 32);
	jobs[2].trouble = HUB_TROUBLE_STUCK;
	jobs[2].trouble_ns = NOW - 30 * SECOND;
	jobs[2].world_size = 32;
	jobs[2].stuck_ns = 40 * SECOND;
	jobs[2].wait_ns = 7200 * SECOND;
	jobs[2].wait_share = 0.25006;
	jobs[2].judgement = HUB_FOUND;
	jobs[2].judged_ns = NOW;
	jobs[2].judge_ns = NOW + 1;
	jobs[2].is_judging = true;
	text_copy(jobs[2].why, sizeof(jobs[2].why), "a problem");
	add_verdict(&jobs[2], VERDICT_NETWORK_STUCK, 0, 9);
	add_verdict(&jobs[2], VERDICT_SLOW_RANK, -1, -1);
	set_job(3, "runs", 4, 0, 32);
	jobs[3].judge_ns = NOW;
	jobs[3].judged_ns = NOW + 1;
	set_job(4, "slow", 1, 0, 8);
	add_verdict(&jobs[4], VERDICT_SLOW_HOST, -1, -1);
	hub.jobs = (struct hub_jobs){ .options = &options,
				      .list = job_list,
				      .count = JOBS,
				      .left_out = 6,
				      .judgements = { 1, 2, 3, 4, 5 },
				      .judge_ns = 1500000000 };
}

static void end(void)
{
	for (int i = 0; i < JOBS; i++)
		verdicts_release(&jobs[i].found);
}

static void test_jobs(void)
{
	struct sink sink;

	begin();
	sink_init_memory(&sink);
	hub_show_jobs(&sink, &hub, "hangs", NOW, UINT64_C(1700000000123456789));
	EXPECT_THAT("all jobs, and the nodes of one",
		    expected_json(&sink, "tests/unit/hub/expected/hub_show_jobs"));
	options.gpu_hour_price = 2.5;
	options.grafana = "https://g";
	options.prometheus = "http://p";
	hub.agents.source_count = 2;
	hub.agents.sources[0].wanted = (struct hub_source_wanted){ HUB_SOURCE_LIST, "n0:1" };
	hub.agents.sources[0].found.count = 4;
	hub.agents.sources[1].wanted = (struct hub_source_wanted){ HUB_SOURCE_SLURM, "" };
	text_copy(hub.agents.sources[1].problem, sizeof(hub.agents.sources[1].problem), "no sinfo");
	text_copy(hub.agents.prometheus_problem, sizeof(hub.agents.prometheus_problem), "down");
	hub.jobs.count = 3;
	sink_init_memory(&sink);
	hub_show_jobs(&sink, &hub, "none", NOW, 0);
	EXPECT_THAT("sources, a price, and a job that there is not",
		    expected_json(&sink, "tests/unit/hub/expected/hub_show_sources"));
	hub.agents.sources[0].found.count = 0;
	end();
}

/* Of 66 silent agents 64 are listed. */
static void test_silent(void)
{
	static struct hub_agent many[66], *list[66];
	const char *at;
	struct sink sink;
	int count = 0;

	begin();
	for (int i = 0; i < 66; i++) {
		many[i] = (struct hub_agent){ .target = { "n", "http://n", NULL },
					      .is_silent = true };
		list[i] = &many[i];
	}
	hub.agents.list = list;
	hub.agents.count = 66;
	hub.jobs.count = 0;
	sink_init_memory(&sink);
	hub_show_jobs(&sink, &hub, NULL, NOW, 0);
	for (at = sink_string(&sink); (at = strstr(at, "\"name\":\"n\"")) != NULL; at++)
		count++;
	EXPECT_EQUAL(count, 64);
	EXPECT(strstr(sink_string(&sink), "\"silent\":66,") != NULL);
	sink_release(&sink);
	end();
}

/* Metrics up to those of the process, which change from run to run. */
static void test_metrics(void)
{
	static const char *const changing[] = { "\nprocess_cpu_seconds_total ",
						"\nringside_hub_children_cpu_seconds_total ",
						"\nprocess_resident_memory_bytes " };
	struct sink sink, first;
	const char *cut;

	begin();
	sink_init_memory(&sink);
	hub_show_metrics(&sink, &hub);
	cut = strstr(sink_string(&sink), "# HELP process_cpu_seconds_total");
	sink_init_memory(&first);
	sink_write(&first, sink_string(&sink), cut ? (size_t)(cut - sink_string(&sink)) : 0);
	EXPECT_THAT("metrics", expected_text(&first, "tests/unit/hub/expected/hub_show_metrics"));
	for (size_t i = 0; i < ARRAY_LENGTH(changing); i++) {
		const char *at = strstr(sink_string(&sink), changing[i]);
		double value = at ? strtod(at + strlen(changing[i]), NULL) : -1;

		EXPECT_THAT(changing[i] + 1, value >= 0 && value < 1e13);
	}
	EXPECT(strstr(sink_string(&sink), "\nprocess_start_time_seconds 1700000000.500\n"));
	sink_release(&sink);
	end();
}

/* Verdicts of 1,000 jobs. */
static void test_many_verdicts(void)
{
	static struct hub_job many[1002], *list[1002];
	struct sink sink;
	const char *at;
	int count = 0;

	begin();
	for (int i = 0; i < 1002; i++) {
		many[i] = jobs[4];
		list[i] = &many[i];
	}
	hub.jobs.list = list;
	hub.jobs.count = 1002;
	sink_init_memory(&sink);
	hub_show_metrics(&sink, &hub);
	for (at = sink_string(&sink); (at = strstr(at, "\nringside_hub_verdict_info{")); at++)
		count++;
	EXPECT_EQUAL(count, 1000);
	EXPECT(strstr(sink_string(&sink), "\nringside_hub_jobs{state=\"slow\"} 1002\n"));
	sink_release(&sink);
	end();
}

/* An alert has other members, too; 256 of them count. */
static void test_alerts(void)
{
	static const char strange[] =
		"{\"x\":[{}],\"alerts\":[{\"y\":{\"labels\":7},\"labels\":{\"z\":[1],\"nccl_job\":"
		"\"hangs\",\"a\":\"b\"},\"status\":\"firing\"},{\"labels\":7,\"status\":\"firing\"}"
		","
		"{\"status\":\"firing\",\"labels\":{\"nccl_job\":\"\"}},7]}";
	static char many[300 * 60];
	unsigned int known, unknown;

	begin();
	EXPECT(hub_alerts_take(&hub.jobs, strange, strlen(strange), NOW, &known, &unknown) == OK);
	EXPECT(known == 1 && unknown == 0 && jobs[2].alert_ns == NOW + 60 * SECOND);
	text_copy(many, sizeof(many), "{\"alerts\":[");
	for (int i = 0; i < 260; i++) {
		text_append(many, sizeof(many), i > 0 ? "," : "");
		text_append(many, sizeof(many), "{\"status\":\"firing\",\"labels\":{\"nccl_job\":");
		text_append(many, sizeof(many), i < 200 ? "\"x\"}}" : "\"runs\"}}");
	}
	text_append(many, sizeof(many), "]}");
	EXPECT(hub_alerts_take(&hub.jobs, many, strlen(many), NOW, &known, &unknown) == OK);
	EXPECT_EQUAL(known, 56);
	EXPECT_EQUAL(unknown, 200);
	EXPECT(hub_alerts_take(&hub.jobs, "{\"alerts\":7}", 12, NOW, &known, &unknown) ==
	       ERR_FORMAT);
	EXPECT(hub_alerts_take(&hub.jobs, "[]", 2, NOW, &known, &unknown) == ERR_FORMAT);
	EXPECT(hub_alerts_take(&hub.jobs, "{\"alerts\":[]} 7", 15, NOW, &known, &unknown) ==
	       ERR_FORMAT);
	end();
}

int main(void)
{
	test_jobs();
	test_silent();
	test_metrics();
	test_many_verdicts();
	test_alerts();
	return tap_done();
}
