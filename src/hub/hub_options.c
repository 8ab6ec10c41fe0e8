/* The command line of the hub. */
#include "hub/hub.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/pages.h"
#include "common/text.h"
#include "fetch/fetch.h"
#include "serve/serve.h"

static int take_source(const struct cli_said *said, enum hub_source_kind kind)
{
	struct hub_options *options = said->target;

	if (options->source_count == HUB_SOURCES_MAX)
		return cli_usage(said->page, "agents can come from at most %d sources",
				 HUB_SOURCES_MAX);
	options->sources[options->source_count++] =
		(struct hub_source_wanted){ kind, said->value ? said->value : "" };
	return 0;
}

/* A wrong list is an error now; a file is read repeatedly. */
static int take_agents(const struct cli_said *said)
{
	struct fetch_targets targets;
	char why[200] = "";
	enum status status = OK;

	fetch_targets_init(&targets);
	if (said->value[0] != '@')
		status = fetch_targets_add(&targets, said->value, HUB_AGENT_PORT, why, sizeof(why));
	if (status == OK && said->value[0] != '@' && targets.count == 0)
		text_copy(why, sizeof(why), "lists no agent");
	fetch_targets_release(&targets);
	return why[0] ? cli_usage(said->page, "--agents: %s", why)
		      : take_source(said, HUB_SOURCE_LIST);
}

static int take_file_sd(const struct cli_said *said)
{
	return take_source(said, HUB_SOURCE_FILE_SD);
}

static bool is_url(const char *value)
{
	return fetch_url_is_good(value) && strchr(value, '#') == NULL;
}

static int take_http_sd(const struct cli_said *said)
{
	if (!is_url(said->value))
		return cli_usage(said->page, "--http-sd '%s' is not a URL", said->value);
	return take_source(said, HUB_SOURCE_HTTP_SD);
}

static int take_slurm(const struct cli_said *said)
{
	return take_source(said, HUB_SOURCE_SLURM);
}

static int take_dns(const struct cli_said *said)
{
	size_t length = strspn(said->value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					    "0123456789._-");

	if (length == 0 || length > 253 ||
	    (said->value[length] != '\0' && said->value[length] != ':'))
		return cli_usage(said->page,
				 "--dns '%s' is not a host name like agents.example "
				 "or agents.example:9749",
				 said->value);
	return take_source(said, HUB_SOURCE_DNS);
}

static int take_prometheus(const struct cli_said *said)
{
	if (!is_url(said->value) || strchr(said->value, '?'))
		return cli_usage(said->page,
				 "--prometheus '%s' is not a URL like http://prometheus:9090 (a "
				 "password goes into a file: --prometheus-auth)",
				 said->value);
	*(const char **)said->target = said->value;
	return 0;
}

static int take_grafana(const struct cli_said *said)
{
	if (!is_url(said->value))
		return cli_usage(said->page, "--grafana '%s' is not a URL", said->value);
	*(const char **)said->target = said->value;
	return 0;
}

static const struct cli_option hub_option_rows[] = {
	SERVING_LISTEN(struct hub_options, "9748"),
	{ 0, "agents", "LIST",
	  "agents: host[:port], URLs, ranges like node[001-064], @FILE with one per line; can be "
	  "repeated, as all sources of agents",
	  CLI_CALL_ALL(take_agents) },
	{ 0, "file-sd", "FILE",
	  "agents from a file of Prometheus' file_sd_configs (JSON; * and ? as in a shell)",
	  CLI_CALL_ALL(take_file_sd) },
	{ 0, "http-sd", "URL", "agents from a URL of Prometheus' http_sd_configs",
	  CLI_CALL_ALL(take_http_sd) },
	{ 0, "slurm", NULL, "an agent on each node that sinfo lists", CLI_CALL_ALL(take_slurm) },
	{ 0, "dns", "NAME",
	  "an agent on each address of NAME[:PORT], or on each target of an SRV record "
	  "_service._proto.NAME",
	  CLI_CALL_ALL(take_dns) },
	{ 0, "prometheus", "URL",
	  "find jobs and trouble through this Prometheus, which scrapes the agents, instead of "
	  "polling them",
	  CLI_CALL(struct hub_options, prometheus, take_prometheus) },
	{ 0, "interval", "TIME", "how often to ask each agent, or Prometheus (default 5s)",
	  CLI_TIME(struct hub_options, interval_ns, CLI_SECONDS(1), CLI_SECONDS(3600)),
	  SERVING_TIME, .more = "is more than 1h" },
	{ 0, "refresh", "TIME", "how often to look for new agents (default 30s)",
	  CLI_TIME(struct hub_options, refresh_ns, CLI_SECONDS(1), CLI_SECONDS(86400)),
	  SERVING_TIME, .more = "is more than 1d" },
	{ 0, "hang", "TIME",
	  "report a hang after this long without progress (default 20s, "
	  "or RINGSIDE_HANG_AFTER of the job)",
	  CLI_TIME(struct hub_options, hang_ns, CLI_SECONDS(1), CLI_SECONDS(86400)), SERVING_TIME,
	  .more = "is more than 1d" },
	{ 0, "check", "TIME",
	  "also judge jobs without any sign of trouble this often; 0s: never (default 1m, up to "
	  "10m with thousands of agents)",
	  CLI_TIME(struct hub_options, check_ns, 0, 0), SERVING_TIME },
	{ 0, "timeout", "TIME", "timeout per agent (default 3s)",
	  CLI_TIME(struct hub_options, timeout_ns, CLI_SECONDS(1) / 10, CLI_SECONDS(60)),
	  .like = "is not a time like 3s or 500ms", .less = "is less than 100ms",
	  .more = "is more than 1m" },
	{ 0, "auth", "FILE",
	  "credentials for agents: a file with one line, basic NAME:PASSWORD or bearer TOKEN",
	  CLI_TEXT(struct hub_options, auth) },
	{ 0, "prometheus-auth", "FILE", "the same for Prometheus and --http-sd",
	  CLI_TEXT(struct hub_options, prometheus_auth) },
	{ 0, "cacert", "FILE", "CA certificates to trust instead of the system's",
	  CLI_TEXT(struct hub_options, ca_file) },
	{ 0, "insecure", NULL, "accept any certificate",
	  CLI_FLAG(struct hub_options, is_insecure) },
	{ 0, "any-owner", NULL,
	  "take processes of different users for one job if it has the same name",
	  CLI_FLAG(struct hub_options, is_any_owner) },
	SERVING_HOOK(struct hub_options, "a verdict"),
	{ 0, "grafana", "URL", "dashboard of a job, for links; ?var-nccl_job=NAME is added",
	  CLI_CALL(struct hub_options, grafana, take_grafana) },
	{ 0, "gpu-hour-price", "PRICE", "price of a GPU-hour, to show what lost time costs",
	  CLI_CALL(struct hub_options, gpu_hour_price, cli_take_price) },
	SERVING_USER(struct hub_options, "name of this host"),
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside hub --agents 'node[001-064]'", "a page of all jobs on http://127.0.0.1:9748" },
	{ "ringside hub --slurm --listen :9748 --web-config /etc/ringside/web.yml",
	  "the nodes of a Slurm cluster; with TLS and passwords" },
	{ "ringside hub --prometheus http://prometheus:9090 --hook /usr/local/bin/page-me",
	  "find trouble through Prometheus, and run a command" },
	{ "curl http://127.0.0.1:9748/api/v1/jobs", "all jobs and their verdicts" },
	{ NULL, NULL },
};

const struct cli_page hub_page = {
	.name = "hub",
	.operands = "",
	.about = "Watches the agents of a cluster. When a job hangs or slows down, it collects the "
		 "snapshots of that job's nodes, runs the doctor once, and publishes one verdict: "
		 "on a page at /, in /metrics, in the log and to a hook. /api/v1/jobs has the same "
		 "as JSON; POST /api/v1/alerts takes webhooks of Alertmanager.\n"
		 "It stores nothing: after a restart it finds everything again.\n"
		 "SIGHUP reloads the web configuration, SIGTERM stops the hub.\n",
	.options = hub_option_rows,
	.examples = examples,
};

int hub_options_parse(struct hub_options *options, int argc, char **argv)
{
	int code;

	*options = (struct hub_options){
		.interval_ns = CLI_SECONDS(5),
		.refresh_ns = CLI_SECONDS(30),
		.check_ns = UINT64_MAX,
		.timeout_ns = CLI_SECONDS(3),
	};
	serving_options_init(&options->serving);
	code = cli_parse(&hub_page, options, argc, argv);
	options->is_hang_fixed = options->hang_ns != 0;
	if (!options->is_hang_fixed)
		options->hang_ns = CLI_SECONDS(20);
	options->is_check_fixed = options->check_ns != UINT64_MAX;
	if (!options->is_check_fixed)
		options->check_ns = CLI_SECONDS(60);
	if (code == CLI_GO_ON && options->source_count == 0 && options->prometheus == NULL)
		return cli_usage(&hub_page, "no agents: use --agents, --file-sd, --http-sd, "
					    "--slurm, --dns or --prometheus");
	return code;
}
