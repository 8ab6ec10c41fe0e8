#include "agent/agent_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_hook.h"
#include "cmds/cli.h"
#include "common/text.h"
#include "common/text_amounts.h"

enum agent_option {
	AGENT_OPTION_WEB = CLI_LONG_ONLY,
	AGENT_OPTION_DIRECTORY,
	AGENT_OPTION_KEEP,
	AGENT_OPTION_HOST,
	AGENT_OPTION_TEXTFILE,
	AGENT_OPTION_INTERVAL,
	AGENT_OPTION_HANG,
	AGENT_OPTION_LAG,
	AGENT_OPTION_HOOK,
	AGENT_OPTION_HOOK_TIME,
	AGENT_OPTION_KERNEL,
	AGENT_OPTION_KERNEL_TIME,
	AGENT_OPTION_USER,
	AGENT_OPTION_GROUP,
};

static const struct cli_option agent_option_rows[] = {
	{ 'l', "listen", "ADDRESS",
	  "where to listen: 127.0.0.1:9749 (default), [::1]:9749, :9749 for all addresses, "
	  "unix:/path; may be said several times" },
	{ AGENT_OPTION_WEB, "web-config", "FILE",
	  "TLS and users with passwords, as Prometheus' exporters have it" },
	{ AGENT_OPTION_TEXTFILE, "textfile", "DIR",
	  "also write files for node-exporter's textfile collector" },
	{ AGENT_OPTION_INTERVAL, "interval", "TIME", "how often these are written (15s)" },
	{ AGENT_OPTION_DIRECTORY, "directory", "DIR",
	  "where regions are (RINGSIDE_SHM, else /dev/shm)" },
	{ AGENT_OPTION_KEEP, "keep", "TIME",
	  "how long the last state of a dead process is kept (5m)" },
	{ AGENT_OPTION_HANG, "hang", "TIME",
	  "an operation without progress for so long hangs (20s)" },
	{ AGENT_OPTION_LAG, "lag", "TIME",
	  "a rank is behind when others wait for it for so long (5s)" },
	{ AGENT_OPTION_HOOK, "hook", "COMMAND",
	  "run this when a hang appears and when it is over: the path of a program and its "
	  "words, cut at blanks; the verdict is JSON on its standard input" },
	{ AGENT_OPTION_HOOK_TIME, "hook-time", "TIME", "how long that may take (60s)" },
	{ AGENT_OPTION_KERNEL, "kernel-on-demand", NULL,
	  "ask processes to time every operation for a while when they may hang or be slow and "
	  "are not timed; at most once a job in 10 minutes" },
	{ AGENT_OPTION_KERNEL_TIME, "kernel-time", "TIME", "for how long (10s; up to 1m)" },
	{ AGENT_OPTION_HOST, "host", "NAME",
	  "this machine's name; processes that recorded another one are passed over" },
	{ AGENT_OPTION_USER, "user", "NAME", "become this user once all is open (for root)" },
	{ AGENT_OPTION_GROUP, "group", "NAME", "become this group, and give Unix sockets to it" },
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

#define SECOND_NS UINT64_C(1000000000)

static int take_listen(struct agent_options *options, const char *text)
{
	const char *why;

	if (options->listen_count == AGENT_LISTENERS_MAX)
		return cli_usage(&agent_page, "--listen may be said %d times", AGENT_LISTENERS_MAX);
	if (web_address_parse(&options->listen[options->listen_count], text, &why) != OK)
		return cli_usage(&agent_page, "--listen %s: %s", text, why);
	options->listen_count++;
	return -1;
}

static int agent_take_time(const char *name, const char *text, uint64_t least_ns, uint64_t *ns)
{
	uint64_t value;

	if (text_duration(text, &value) != OK)
		return cli_usage(&agent_page, "--%s %s is not a time like 30s, 5m or 500ms", name,
				 text);
	if (value < least_ns)
		return cli_usage(&agent_page, "--%s %s is less than %us", name, text,
				 (unsigned int)(least_ns / SECOND_NS));
	*ns = value;
	return -1;
}

static int take_host(struct agent_options *options, const char *text)
{
	if (text[0] == '\0' || !text_copy(options->host, sizeof(options->host), text))
		return cli_usage(&agent_page, "--host '%s' is no name of a machine", text);
	options->watch.only_host = options->host;
	return -1;
}

static int take_hook(struct agent_options *options, const char *text)
{
	if (text[0] != '/')
		return cli_usage(&agent_page, "--hook %s is not the whole path of a program", text);
	options->hook = text;
	return -1;
}

static int take_kernel_time(struct agent_options *options, const char *text)
{
	int code = agent_take_time("kernel-time", text, SECOND_NS, &options->kernel_ns);

	if (code == -1 && options->kernel_ns > 60 * SECOND_NS)
		return cli_usage(&agent_page, "--kernel-time %s is more than 1m", text);
	return code;
}

static int agent_take_option(struct agent_options *options, int found, const char *value)
{
	switch (found) {
	case 'l':
		return take_listen(options, value);
	case AGENT_OPTION_WEB:
		options->web_config = value;
		return -1;
	case AGENT_OPTION_TEXTFILE:
		options->textfile = value;
		return -1;
	case AGENT_OPTION_INTERVAL:
		return agent_take_time("interval", value, SECOND_NS, &options->interval_ns);
	case AGENT_OPTION_DIRECTORY:
		options->watch.directory = value;
		return -1;
	case AGENT_OPTION_KEEP:
		return agent_take_time("keep", value, 0, &options->watch.keep_ns);
	case AGENT_OPTION_HANG:
		return agent_take_time("hang", value, SECOND_NS, &options->limits.hang_ns);
	case AGENT_OPTION_LAG:
		return agent_take_time("lag", value, SECOND_NS, &options->limits.lag_ns);
	case AGENT_OPTION_HOOK:
		return take_hook(options, value);
	case AGENT_OPTION_HOOK_TIME:
		return agent_take_time("hook-time", value, SECOND_NS, &options->hook_ns);
	case AGENT_OPTION_KERNEL:
		options->has_kernel = true;
		return -1;
	case AGENT_OPTION_KERNEL_TIME:
		return take_kernel_time(options, value);
	case AGENT_OPTION_HOST:
		return take_host(options, value);
	case AGENT_OPTION_USER:
		options->user = value;
		return -1;
	case AGENT_OPTION_GROUP:
		options->group = value;
		return -1;
	default:
		return cli_usage(&agent_page, "'%s' is not expected", value);
	}
}

int agent_options_parse(struct agent_options *options, int argc, char **argv)
{
	struct cli_args args;
	int found, code;

	*options = (struct agent_options){
		.interval_ns = 15 * SECOND_NS,
		.hook_ns = AGENT_HOOK_TIMEOUT_NS,
		.kernel_ns = 10 * SECOND_NS,
		.watch = { .directory = getenv("RINGSIDE_SHM"), .keep_ns = 300 * SECOND_NS },
		.limits = live_limits_default(),
	};
	if (gethostname(options->host, sizeof(options->host) - 1) == -1)
		options->host[0] = '\0';
	cli_args_init(&args, &agent_page, argc, argv);
	while ((found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP)
			return args.exit_code;
		code = agent_take_option(options, found, args.value);
		if (code != -1)
			return code;
	}
	return -1;
}
