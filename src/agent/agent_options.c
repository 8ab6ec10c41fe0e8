#include "agent/agent_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_hook.h"
#include "cmds/cli.h"
#include "common/text.h"

static int take_listen(const struct cli_said *said)
{
	struct agent_options *options = said->target;
	const char *why;

	if (options->listen_count == AGENT_LISTENERS_MAX)
		return cli_usage(said->page, "--listen can be given at most %d times",
				 AGENT_LISTENERS_MAX);
	if (web_address_parse(&options->listen[options->listen_count], said->value, &why) != OK)
		return cli_usage(said->page, "--listen %s: %s", said->value, why);
	options->listen_count++;
	return 0;
}

static int take_host(const struct cli_said *said)
{
	struct agent_options *options = said->target;

	if (said->value[0] == '\0' || !text_copy(options->host, sizeof(options->host), said->value))
		return cli_usage(said->page, "--host '%s' is not a host name", said->value);
	options->watch.only_host = options->host;
	return 0;
}

static int take_hook(const struct cli_said *said)
{
	struct agent_options *options = said->target;

	if (said->value[0] != '/')
		return cli_usage(said->page, "--hook %s is not an absolute path of a program",
				 said->value);
	options->hook = said->value;
	return 0;
}

/* For all time options. */
#define AGENT_TIME .like = "is not a time like 30s, 5m or 500ms", .less = "is less than 1s"

static const struct cli_option agent_option_rows[] = {
	{ 'l', "listen", "ADDRESS",
	  "address to listen on: 127.0.0.1:9749 (default), [::1]:9749, :9749 for all addresses, "
	  "unix:/path; can be repeated",
	  CLI_CALL_ALL(take_listen) },
	{ 0, "web-config", "FILE",
	  "TLS and passwords, in the web configuration format of Prometheus exporters",
	  CLI_TEXT(struct agent_options, web_config) },
	{ 0, "textfile", "DIR", "also write files for the textfile collector of node-exporter",
	  CLI_TEXT(struct agent_options, textfile) },
	{ 0, "interval", "TIME", "how often to write these files (default 15s)",
	  CLI_TIME(struct agent_options, interval_ns, CLI_SECONDS(1), 0), AGENT_TIME },
	{ 0, "directory", "DIR",
	  "directory of the shared-memory regions (default RINGSIDE_SHM or /dev/shm)",
	  CLI_TEXT(struct agent_options, watch.directory) },
	{ 0, "keep", "TIME", "how long to keep the last state of an ended process (default 5m)",
	  CLI_TIME(struct agent_options, watch.keep_ns, 0, 0), AGENT_TIME },
	{ 0, "hang", "TIME",
	  "report a hang after this long without progress (default 20s, "
	  "or RINGSIDE_HANG_AFTER of the job)",
	  CLI_TIME(struct agent_options, limits.hang_ns, CLI_SECONDS(1), 0), AGENT_TIME },
	{ 0, "lag", "TIME", "report a late rank after others have waited this long (default 5s)",
	  CLI_TIME(struct agent_options, limits.lag_ns, CLI_SECONDS(1), 0), AGENT_TIME },
	{ 0, "hook", "COMMAND",
	  "run this command when a hang or slowness appears and when it clears: absolute path and "
	  "arguments, "
	  "split at blanks; standard input has the verdict as JSON",
	  CLI_CALL_ALL(take_hook) },
	{ 0, "hook-time", "TIME", "time limit of the hook (default 60s)",
	  CLI_TIME(struct agent_options, hook_ns, CLI_SECONDS(1), 0), AGENT_TIME },
	{ 0, "kernel-on-demand", NULL,
	  "ask processes to time every operation for a while when they may be hung or slow and are "
	  "not timed; at most once per job in 10 minutes",
	  CLI_FLAG(struct agent_options, has_kernel) },
	{ 0, "kernel-time", "TIME", "how long to time every operation, up to 1m (default 10s)",
	  CLI_TIME(struct agent_options, kernel_ns, CLI_SECONDS(1), CLI_SECONDS(60)), AGENT_TIME,
	  .more = "is more than 1m" },
	{ 0, "host", "NAME", "name of this host; processes recorded under another name are ignored",
	  CLI_CALL_ALL(take_host) },
	{ 0, "user", "NAME", "switch to this user after startup (requires root)",
	  CLI_TEXT(struct agent_options, user) },
	{ 0, "group", "NAME", "switch to this group, which also owns Unix sockets",
	  CLI_TEXT(struct agent_options, group) },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside agent", "metrics and the live page on http://127.0.0.1:9749" },
	{ "ringside agent --listen :9749 --web-config /etc/ringside/web.yml",
	  "on all addresses, with TLS and passwords" },
	{ "ringside agent --textfile /var/lib/prometheus/node-exporter",
	  "export through a node-exporter" },
	{ "ringside agent --hang 60s --hook /usr/local/bin/page-me",
	  "run a command when a job hangs for a minute" },
	{ "curl http://127.0.0.1:9749/metrics", "show the metrics" },
	{ NULL, NULL },
};

const struct cli_page agent_page = {
	.name = "agent",
	.operands = "",
	.about = "Watches the jobs on this host and serves /metrics for Prometheus, a live page at "
		 "/, "
		 "the same data as JSON under /api/v1, and /healthz. It reads the shared-memory "
		 "regions of the processes and does not write to them, except with "
		 "--kernel-on-demand; as root it sees the processes of all users.\n"
		 "SIGHUP reloads the web configuration, SIGTERM stops the agent.\n",
	.options = agent_option_rows,
	.examples = examples,
};

int agent_options_parse(struct agent_options *options, int argc, char **argv)
{
	int code;

	*options = (struct agent_options){
		.interval_ns = CLI_SECONDS(15),
		.hook_ns = AGENT_HOOK_TIMEOUT_NS,
		.kernel_ns = CLI_SECONDS(10),
		.watch = { .directory = getenv("RINGSIDE_SHM"), .keep_ns = CLI_SECONDS(300) },
		.limits = live_limits_default(),
	};
	options->limits.hang_ns = 0;
	if (gethostname(options->host, sizeof(options->host) - 1) == -1)
		options->host[0] = '\0';
	code = cli_parse(&agent_page, options, argc, argv);
	options->limits.is_hang_fixed = options->limits.hang_ns != 0;
	if (!options->limits.is_hang_fixed)
		options->limits.hang_ns = live_limits_default().hang_ns;
	return code;
}
