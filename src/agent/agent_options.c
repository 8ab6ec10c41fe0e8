/* The command line of the agent. */
#include "agent/agent.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/pages.h"
#include "common/text.h"

static const struct cli_option agent_option_rows[] = {
	SERVING_LISTEN(struct agent_options, "9749"),
	{ 0, "textfile", "DIR", "also write files for the textfile collector of node-exporter",
	  CLI_TEXT(struct agent_options, textfile) },
	{ 0, "interval", "TIME", "how often to write these files (default 15s)",
	  CLI_TIME(struct agent_options, interval_ns, CLI_SECONDS(1), 0), SERVING_TIME },
	{ 0, "directory", "DIR",
	  "directory of the shared-memory regions (default RINGSIDE_SHM or /dev/shm)",
	  CLI_TEXT(struct agent_options, watch.directory) },
	{ 0, "keep", "TIME", "how long to keep the last state of an ended process (default 5m)",
	  CLI_TIME(struct agent_options, watch.keep_ns, 0, 0), SERVING_TIME },
	{ 0, "any-owner", NULL,
	  "take processes of different users for one job if it has the same name",
	  CLI_FLAG(struct agent_options, watch.is_any_owner) },
	{ 0, "hang", "TIME",
	  "report a hang after this long without progress (default 20s, "
	  "or RINGSIDE_HANG_AFTER of the job)",
	  CLI_TIME(struct agent_options, limits.hang_ns, CLI_SECONDS(1), 0), SERVING_TIME },
	{ 0, "lag", "TIME", "report a late rank after others have waited this long (default 5s)",
	  CLI_TIME(struct agent_options, limits.lag_ns, CLI_SECONDS(1), 0), SERVING_TIME },
	SERVING_HOOK(struct agent_options, "a hang or slowness"),
	{ 0, "stacks", NULL,
	  "when a job hangs, read where its processes are in their program, of all users: from "
	  "/proc and py-spy, "
	  "which does not stop them; RINGSIDE_STACKS=0 in the environment of a process forbids it",
	  CLI_FLAG(struct agent_options, probe.has_stacks) },
	{ 0, "native", NULL,
	  "with --stacks, also native frames (eu-stack or gdb) of processes of the agent's user; "
	  "stops each for up to 100 ms",
	  CLI_FLAG(struct agent_options, probe.has_native) },
	{ 0, "ras", NULL,
	  "when a job hangs, query its RAS if that listens on this host: NCCL_RAS_ADDR of the job "
	  "or localhost:28028",
	  CLI_FLAG(struct agent_options, probe.has_ras) },
	{ 0, "kernel-on-demand", NULL,
	  "ask processes to time every operation for a while when they may be hung or slow and are "
	  "not timed; at most once per job in 10 minutes",
	  CLI_FLAG(struct agent_options, has_kernel) },
	{ 0, "kernel-time", "TIME", "how long to time every operation, up to 1m (default 10s)",
	  CLI_TIME(struct agent_options, kernel_ns, CLI_SECONDS(1), CLI_SECONDS(60)), SERVING_TIME,
	  .more = "is more than 1m" },
	SERVING_USER(struct agent_options,
		     "name of this host; processes recorded under another name are ignored"),
	CLI_OPTION_END,
};

/* Agents of other nodes are expected where this one listens; 0: at the default port. */
static unsigned int port_of(const struct agent_options *options)
{
	unsigned int found = 0;
	bool is_for_others = false;

	for (size_t i = 0; i < options->serving.listen_count && !is_for_others; i++) {
		const struct web_address *address = &options->serving.listen[i];
		unsigned int port = web_address_port(address);

		if (port == 0)
			continue;
		is_for_others = !address->is_loopback;
		if (found == 0 || is_for_others)
			found = port;
	}
	return found == SERVE_AGENT_PORT ? 0 : found;
}

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
		.kernel_ns = CLI_SECONDS(10),
		.watch = { .directory = getenv("RINGSIDE_SHM"), .keep_ns = CLI_SECONDS(300) },
		.limits = live_limits_default(),
	};
	options->limits.hang_ns = 0;
	serving_options_init(&options->serving);
	code = cli_parse(&agent_page, options, argc, argv);
	if (code == -1 && options->probe.has_native && !options->probe.has_stacks)
		return cli_usage(&agent_page, "--native needs --stacks");
	if (options->serving.is_host_given)
		options->watch.only_host = options->serving.host;
	options->limits.is_hang_fixed = options->limits.hang_ns != 0;
	if (!options->limits.is_hang_fixed)
		options->limits.hang_ns = live_limits_default().hang_ns;
	options->limits.agent_port = port_of(options);
	return code;
}
