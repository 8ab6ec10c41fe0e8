/* What the hub shows, as JSON and as metrics, and the alerts it takes. */
#include "hub/hub.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "common/attributes.h"
#include "common/text.h"
#include "import/json_scan.h"
#include "output/json.h"
#include "output/verdict_show.h"
#include "serve/serve.h"

enum { SILENT_LISTED = 64, METRIC_JOBS_MAX = 1000 };

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_share(struct json *json, const char *key, double share)
{
	json_put_double(json, key, round(share * 1e4) / 1e4);
}

static void put_ago(struct json *json, const char *key, uint64_t then_ns, uint64_t now_ns)
{
	json_put_known(json, key, then_ns > 0 && then_ns <= now_ns, now_ns - then_ns);
}

static void put_sources(struct json *json, const struct hub_state *hub)
{
	const struct hub_agents *agents = &hub->agents;

	json_put_array(json, "sources");
	for (size_t i = 0; i < agents->source_count; i++) {
		const struct hub_source *source = &agents->sources[i];

		json_object(json);
		json_put_string(json, "kind", hub_source_name(source->wanted.kind));
		json_put_string(json, "value", source->wanted.value);
		json_put_unsigned(json, "agents", source->found.count);
		json_put_text_or_null(json, "problem", source->problem);
		json_end(json);
	}
	if (hub->options->prometheus) {
		json_object(json);
		json_put_string(json, "kind", "prometheus");
		json_put_string(json, "value", hub->options->prometheus);
		json_put_null(json, "agents");
		json_put_text_or_null(json, "problem", agents->prometheus_problem);
		json_end(json);
	}
	json_end(json);
}

static void put_agents(struct json *json, const struct hub_state *hub, uint64_t now_ns)
{
	const struct hub_agents *agents = &hub->agents;
	size_t silent = hub_agents_silent(agents), listed = 0;

	json_put_object(json, "agents");
	json_put_unsigned(json, "total", agents->count);
	json_put_unsigned(json, "silent", silent);
	json_put_array(json, "silent_list");
	for (size_t i = 0; i < agents->count && listed < SILENT_LISTED; i++) {
		const struct hub_agent *agent = agents->list[i];

		if (!agent->is_silent)
			continue;
		listed++;
		json_object(json);
		json_put_string(json, "name", agent->target.name);
		json_put_string(json, "url", agent->target.socket ? NULL : agent->target.url);
		json_put_text_or_null(json, "problem", agent->why);
		put_ago(json, "silent_ns", agent->answered_ns, now_ns);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

static void put_judgement(struct json *json, const struct hub_job *job, uint64_t now_ns)
{
	json_put_string(json, "judgement", hub_judgement_name(job->judgement));
	json_put_bool(json, "is_judging", job->is_judging);
	put_ago(json, "judged_ago_ns", job->judged_ns, now_ns);
	json_put_known(json, "judged_again_ns",
		       job->judge_ns != UINT64_MAX && job->judge_ns > now_ns,
		       job->judge_ns - now_ns);
	json_put_text_or_null(json, "problem", job->why);
	json_key(json, "verdict");
	if (job->found.count > 0)
		verdict_json_one(json, &job->found.list[0]);
	else
		json_null(json);
}

static void put_job(struct json *json, const struct hub_state *hub, const struct hub_job *job,
		    uint64_t now_ns)
{
	double hours = hub_job_gpu_hours(job, hub->options);

	json_object(json);
	json_put_string(json, "key", job->key);
	json_put_text_or_null(json, "name", job->name);
	json_put_string(json, "state", hub_job_state(job));
	json_put_string(json, "trouble", hub_trouble_name(job->trouble));
	json_put_known(json, "trouble_ns", job->trouble != HUB_TROUBLE_NONE,
		       now_ns - job->trouble_ns);
	json_put_unsigned(json, "nodes", job->nodes);
	json_put_unsigned(json, "nodes_silent", job->silent);
	json_put_unsigned(json, "ranks", job->ranks);
	json_put_unsigned(json, "processes_alive", job->alive);
	json_put_known_signed(json, "world_size", job->world_size > 0, job->world_size);
	json_put_unsigned(json, "stuck_ns", job->stuck_ns);
	put_share(json, "wait_share", job->wait_share);
	json_put_double(json, "gpu_hours", round(hours * 1e4) / 1e4);
	json_put_known_double(json, "money", hub->options->gpu_hour_price > 0,
			      round(hours * hub->options->gpu_hour_price * 100) / 100);
	put_judgement(json, job, now_ns);
	json_end(json);
}

static void put_node(struct json *json, const struct hub_agent *agent, const struct hub_row *row)
{
	json_object(json);
	json_put_string(json, "agent", agent->target.name);
	json_put_string(json, "url", agent->target.socket ? NULL : agent->target.url);
	json_put_text_or_null(json, "host", agent->summary.host);
	json_put_bool(json, "is_silent", agent->is_silent);
	json_put_text_or_null(json, "problem", agent->why);
	json_put_unsigned(json, "ranks", row->ranks);
	json_put_unsigned(json, "processes_alive", row->alive);
	json_put_unsigned(json, "stuck_ns", row->stuck_ns);
	put_share(json, "wait_share", row->wait_share);
	json_end(json);
}

static void put_nodes(struct json *json, const struct hub_state *hub, const struct hub_job *job)
{
	const struct hub_agents *agents = &hub->agents;

	json_put_array(json, "job_nodes");
	for (size_t i = 0; job && i < agents->count; i++)
		for (size_t r = 0; r < agents->list[i]->summary.count; r++)
			if (hub_job_is_row(job, agents->list[i], &agents->list[i]->summary.rows[r]))
				put_node(json, agents->list[i], &agents->list[i]->summary.rows[r]);
	json_end(json);
	json_put_array(json, "job_verdicts");
	for (size_t i = 0; job && i < job->found.count; i++)
		verdict_json_one(json, &job->found.list[i]);
	json_end(json);
}

void hub_show_jobs(struct sink *sink, const struct hub_state *hub, const char *key, uint64_t now_ns,
		   uint64_t wall_ns)
{
	const struct hub_jobs *jobs = &hub->jobs;
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-hub");
	json_put_unsigned(&json, "version", 1);
	json_put_string(&json, "ringside", RINGSIDE_VERSION);
	json_put_string(&json, "host", hub->options->serving.host);
	json_put_unsigned(&json, "time_ms", wall_ns / 1000000);
	json_put_unsigned(&json, "interval_ns", hub->options->interval_ns);
	json_put_unsigned(&json, "hang_ns", hub->options->hang_ns);
	json_put_string(&json, "grafana", hub->options->grafana);
	put_sources(&json, hub);
	put_agents(&json, hub, now_ns);
	json_put_array(&json, "jobs");
	for (size_t i = 0; i < jobs->count; i++)
		put_job(&json, hub, jobs->list[i], now_ns);
	json_end(&json);
	json_put_unsigned(&json, "jobs_left_out", jobs->left_out);
	if (key)
		put_nodes(&json, hub, hub_jobs_find(jobs, key));
	json_end(&json);
	json_line(&json);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void put_head(struct sink *sink, const char *name, const char *type, const char *help)
{
	sink_format(sink, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(struct sink *sink, bool *is_first, const char *name, const char *value)
{
	if (value[0] == '\0')
		return;
	sink_format(sink, "%s%s=\"", *is_first ? "{" : ",", name);
	*is_first = false;
	for (; *value != '\0'; value++) {
		if (*value == '\n')
			sink_format(sink, "\\n");
		else if (*value == '\\' || *value == '"')
			sink_format(sink, "\\%c", *value);
		else
			sink_byte(sink, *value);
	}
	sink_byte(sink, '"');
}

static void put_number_label(struct sink *sink, bool *is_first, const char *name, int64_t number)
{
	char text[24];

	text_format(text, sizeof(text), "%" PRId64, number);
	if (number >= 0)
		put_label(sink, is_first, name, text);
}

static void put_verdict_info(struct sink *sink, const struct hub_job *job)
{
	const struct verdict *verdict = &job->found.list[0];
	bool is_first = true;

	sink_format(sink, "ringside_hub_verdict_info");
	put_label(sink, &is_first, "nccl_job", job->name);
	put_label(sink, &is_first, "class", verdict_class_name(verdict->class));
	put_label(sink, &is_first, "severity", verdict_severity_name(verdict->severity));
	put_number_label(sink, &is_first, "global_rank", verdict->rank);
	put_number_label(sink, &is_first, "peer_global_rank", verdict->peer);
	put_label(sink, &is_first, "host", verdict->host);
	put_label(sink, &is_first, "peer_host", verdict->peer_host);
	put_label(sink, &is_first, "confidence", verdict_confidence_word(verdict->confidence));
	sink_format(sink, "} 1\n");
}

/* The labels of what the verdict is about, without those that change while it lasts. */
static void put_verdict_slowdown(struct sink *sink, const struct hub_job *job)
{
	const struct verdict *verdict = &job->found.list[0];
	bool is_first = true;

	if (!(verdict->percent > 0) || !verdict_is_slow(verdict->class))
		return;
	sink_format(sink, "ringside_hub_verdict_slowdown_ratio");
	put_label(sink, &is_first, "nccl_job", job->name);
	put_label(sink, &is_first, "class", verdict_class_name(verdict->class));
	put_number_label(sink, &is_first, "global_rank", verdict->rank);
	put_number_label(sink, &is_first, "peer_global_rank", verdict->peer);
	put_label(sink, &is_first, "host", verdict->host);
	put_label(sink, &is_first, "peer_host", verdict->peer_host);
	sink_format(sink, "} %.4g\n", verdict->percent / 100);
}

/* Of the first jobs that have a verdict. */
static void put_verdicts(struct sink *sink, const struct hub_jobs *jobs,
			 void (*put)(struct sink *sink, const struct hub_job *job))
{
	size_t shown = 0;

	for (size_t i = 0; i < jobs->count && shown < METRIC_JOBS_MAX; i++)
		if (jobs->list[i]->found.count > 0) {
			shown++;
			put(sink, jobs->list[i]);
		}
}

static void put_job_metrics(struct sink *sink, const struct hub_state *hub)
{
	const struct hub_jobs *jobs = &hub->jobs;
	static const char *const states[] = { "running", "stuck", "slow", "ended", "silent" };

	put_head(sink, "ringside_hub_jobs", "gauge", "Jobs by state.");
	for (size_t s = 0; s < ARRAY_LENGTH(states); s++) {
		size_t count = 0;

		for (size_t i = 0; i < jobs->count; i++)
			count += strcmp(hub_job_state(jobs->list[i]), states[s]) == 0;
		sink_format(sink, "ringside_hub_jobs{state=\"%s\"} %zu\n", states[s], count);
	}
	put_head(sink, "ringside_hub_jobs_left_out", "gauge",
		 "Jobs beyond the limits of agents and hub.");
	sink_format(sink, "ringside_hub_jobs_left_out %" PRIu64 "\n", jobs->left_out);
	put_head(sink, "ringside_hub_verdict_info", "gauge",
		 "The verdict on a job that is hung or slow; at most one per job.");
	put_verdicts(sink, jobs, put_verdict_info);
	put_head(sink, "ringside_hub_verdict_slowdown_ratio", "gauge",
		 "How much slower it is, or for which share of the time others wait for a rank: "
		 "0.2 is 20%.");
	put_verdicts(sink, jobs, put_verdict_slowdown);
	put_head(sink, "ringside_hub_judgements_total", "counter", "Runs of the doctor by result.");
	for (int i = HUB_HEALTHY; i < HUB_JUDGEMENTS; i++)
		sink_format(sink, "ringside_hub_judgements_total{result=\"%s\"} %" PRIu64 "\n",
			    hub_judgement_name((enum hub_judgement)i), jobs->judgements[i]);
	put_head(sink, "ringside_hub_judgement_seconds_total", "counter",
		 "Time that runs of the doctor took.");
	sink_format(sink, "ringside_hub_judgement_seconds_total %.3f\n",
		    (double)jobs->judge_ns / 1e9);
}

static void put_counter(struct sink *sink, const char *name, const char *help, uint64_t value)
{
	put_head(sink, name, "counter", help);
	sink_format(sink, "%s %" PRIu64 "\n", name, value);
}

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void put_process_metrics(struct sink *sink, const struct hub_state *hub)
{
	struct rusage own, children;
	uint64_t resident = serve_resident_bytes();

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	put_head(sink, "process_cpu_seconds_total", "counter", "CPU time used by the hub.");
	sink_format(sink, "process_cpu_seconds_total %.3f\n",
		    seconds_of(&own.ru_utime) + seconds_of(&own.ru_stime));
	put_head(sink, "ringside_hub_children_cpu_seconds_total", "counter",
		 "CPU time used by its child processes that have ended.");
	sink_format(sink, "ringside_hub_children_cpu_seconds_total %.3f\n",
		    seconds_of(&children.ru_utime) + seconds_of(&children.ru_stime));
	put_head(sink, "ringside_hub_children_given_up_total", "counter",
		 "Child processes of the hub that could not be killed.");
	sink_format(sink, "ringside_hub_children_given_up_total %" PRIu64 "\n", child_given_up());
	if (resident > 0) {
		put_head(sink, "process_resident_memory_bytes", "gauge",
			 "Resident memory of the hub.");
		sink_format(sink, "process_resident_memory_bytes %" PRIu64 "\n", resident);
	}
	put_head(sink, "process_start_time_seconds", "gauge",
		 "Start time of the hub in seconds since 1970.");
	sink_format(sink, "process_start_time_seconds %.3f\n", (double)hub->start_wall_ns / 1e9);
}

void hub_show_metrics(struct sink *sink, const struct hub_state *hub)
{
	const struct hub_agents *agents = &hub->agents;
	size_t silent = hub_agents_silent(agents);

	put_head(sink, "ringside_build_info", "gauge", "Version of the hub.");
	sink_format(sink, "ringside_build_info{version=\"%s\"} 1\n", RINGSIDE_VERSION);
	put_head(sink, "ringside_hub_agents", "gauge", "Agents by whether they answer.");
	sink_format(sink, "ringside_hub_agents{state=\"answering\"} %zu\n", agents->count - silent);
	sink_format(sink, "ringside_hub_agents{state=\"silent\"} %zu\n", silent);
	put_counter(sink, "ringside_hub_requests_total", "Summaries requested from agents.",
		    agents->asked);
	put_counter(sink, "ringside_hub_failed_requests_total", "Requests without a usable answer.",
		    agents->failed);
	put_counter(sink, "ringside_hub_received_bytes_total",
		    "Bytes of answers to these requests, without headers.", agents->received_bytes);
	put_counter(sink, "ringside_hub_alerts_total",
		    "Alerts about known jobs taken from webhooks.", hub->alerts);
	put_job_metrics(sink, hub);
	put_process_metrics(sink, hub);
}

/* ---- alerts ---------------------------------------------------------------------------------- */

/* The job of an alert that fires; "" none. */
static void read_alert(struct json_scan *scan, char *job, size_t size)
{
	char status[16] = "";

	job[0] = '\0';
	while (json_scan_next(scan) == JSON_SCAN_KEY) {
		if (json_scan_is(scan, "status"))
			json_scan_read_text(scan, status, sizeof(status));
		else if (json_scan_is(scan, "labels"))
			json_scan_read_member(scan, "nccl_job", job, size);
		else
			json_scan_skip(scan);
	}
	if (strcmp(status, "firing") != 0)
		job[0] = '\0';
}

enum status hub_alerts_take(struct hub_jobs *jobs, const char *bytes, size_t length,
			    uint64_t now_ns, unsigned int *known, unsigned int *unknown)
{
	char job[HUB_JOB_NAME];
	struct json_scan scan;
	bool has_alerts = false;

	*known = *unknown = 0;
	json_scan_init(&scan, bytes, length);
	if (!json_scan_enter(&scan, JSON_SCAN_OBJECT))
		return ERR_FORMAT;
	while (json_scan_next(&scan) == JSON_SCAN_KEY) {
		if (!json_scan_is(&scan, "alerts")) {
			json_scan_skip(&scan);
			continue;
		}
		has_alerts = json_scan_enter(&scan, JSON_SCAN_ARRAY);
		while (has_alerts && json_scan_next_object(&scan)) {
			read_alert(&scan, job, sizeof(job));
			if (job[0] == '\0' || *known + *unknown == HUB_ALERTS_MAX)
				continue;
			++*(hub_jobs_alert(jobs, job, now_ns) ? known : unknown);
		}
	}
	return has_alerts && json_scan_next(&scan) == JSON_SCAN_END ? OK : ERR_FORMAT;
}
