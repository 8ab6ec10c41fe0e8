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
		return cli_usage(said->page, "--listen may be said %d times", AGENT_LISTENERS_MAX);
	if (web_address_parse(&options->listen[options->listen_count], said->value, &why) != OK)
		return cli_usage(said->page, "--listen %s: %s", said->value, why);
	options->listen_count++;
	return 0;
}

static int take_host(const struct cli_said *said)
{
	struct agent_options *options = said->target;

	if (said->value[0] == '\0' || !text_copy(options->host, sizeof(options->host), said->value))
		return cli_usage(said->page, "--host '%s' is no name of a machine", said->value);
	options->watch.only_host = options->host;
	return 0;
}

static int take_hook(const struct cli_said *said)
{
	struct agent_options *options = said->target;

	if (said->value[0] != '/')
		return cli_usage(said->page, "--hook %s is not the whole path of a program",
				 said->value);
	options->hook = said->value;
	return 0;
}

/* Of all times. */
#define AGENT_TIME .like = "is not a time like 30s, 5m or 500ms", .less = "is less than 1s"

static const struct cli_option agent_option_rows[] = {
	{ 'l', "listen", "ADDRESS",
	  "where to listen: 127.0.0.1:9749 (default), [::1]:9749, :9749 for all addresses, "
	  "unix:/path; may be said several times",
	  CLI_CALL_ALL(take_listen) },
	{ 0, "web-config", "FILE", "TLS and users with passwords, as Prometheus' exporters have it",
	  CLI_TEXT(struct agent_options, web_config) },
	{ 0, "textfile", "DIR", "also write files for node-exporter's textfile collector",
	  CLI_TEXT(struct agent_options, textfile) },
	{ 0, "interval", "TIME", "how often these are written (15s)",
	  CLI_TIME(struct agent_options, interval_ns, CLI_SECONDS(1), 0), AGENT_TIME },
	{ 0, "directory", "DIR", "where regions are (RINGSIDE_SHM, else /dev/shm)",
	  CLI_TEXT(struct agent_options, watch.directory) },
	{ 0, "keep", "TIME", "how long the last state of a dead process is kept (5m)",
	  CLI_TIME(struct agent_options, watch.keep_ns, 0, 0), AGENT_TIME },
	{ 0, "hang", "TIME", "an operation without progress for so long hangs (20s)",
	  CLI_TIME(struct agent_options, limits.hang_ns, CLI_SECONDS(1), 0), AGENT_TIME },
	{ 0, "lag", "TIME", "a rank is behind when others wait for it for so long (5s)",
	  CLI_TIME(struct agent_options, limits.lag_ns, CLI_SECONDS(1), 0), AGENT_TIME },
	{ 0, "hook", "COMMAND",
	  "run this when a hang appears and when it is over: the path of a program and its "
	  "words, cut at blanks; the verdict is JSON on its standard input",
	  CLI_CALL_ALL(take_hook) },
	{ 0, "hook-time", "TIME", "how long that may take (60s)",
	  CLI_TIME(struct agent_options, hook_ns, CLI_SECONDS(1), 0), AGENT_TIME },
	{ 0, "kernel-on-demand", NULL,
	  "ask processes to time every operation for a while when they may hang or be slow and "
	  "are not timed; at most once a job in 10 minutes",
	  CLI_FLAG(struct agent_options, has_kernel) },
	{ 0, "kernel-time", "TIME", "for how long (10s; up to 1m)",
	  CLI_TIME(struct agent_options, kernel_ns, CLI_SECONDS(1), CLI_SECONDS(60)), AGENT_TIME,
	  .more = "is more than 1m" },
	{ 0, "host", "NAME",
	  "this machine's name; processes that recorded another one are passed over",
	  CLI_CALL_ALL(take_host) },
	{ 0, "user", "NAME", "become this user once all is open (for root)",
	  CLI_TEXT(struct agent_options, user) },
	{ 0, "group", "NAME", "become this group, and give Unix sockets to it",
	  CLI_TEXT(struct agent_options, group) },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside agent", "metrics and the live page on http://127.0.0.1:9749" },
	{ "ringside agent --listen :9749 --web-config /etc/ringside/web.yml",
	  "for the whole network, with TLS and passwords" },
	{ "ringside agent --textfile /var/lib/prometheus/node-exporter",
	  "through a node-exporter that runs anyway" },
	{ "ringside agent --hang 60s --hook /usr/local/bin/page-me",
	  "be woken when a job stands still for a minute" },
	{ "curl http://127.0.0.1:9749/metrics", "what a scraper gets" },
	{ NULL, NULL },
};

const struct cli_page agent_page = {
	.name = "agent",
	.operands = "",
	.about = "Follows the jobs on this machine and serves what they do: /metrics for "
		 "Prometheus, a "
		 "live page at /, the same as JSON below /api/v1, /healthz. It reads what "
		 "processes record and writes nothing there without --kernel-on-demand; as root it "
		 "sees all users' processes.\n"
		 "SIGHUP reads the web configuration anew, SIGTERM ends it.\n",
	.options = agent_option_rows,
	.examples = examples,
};

int agent_options_parse(struct agent_options *options, int argc, char **argv)
{
	*options = (struct agent_options){
		.interval_ns = CLI_SECONDS(15),
		.hook_ns = AGENT_HOOK_TIMEOUT_NS,
		.kernel_ns = CLI_SECONDS(10),
		.watch = { .directory = getenv("RINGSIDE_SHM"), .keep_ns = CLI_SECONDS(300) },
		.limits = live_limits_default(),
	};
	if (gethostname(options->host, sizeof(options->host) - 1) == -1)
		options->host[0] = '\0';
	return cli_parse(&agent_page, options, argc, argv);
}
