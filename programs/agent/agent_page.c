#include "programs/agent/agent_page.h"

#include <stddef.h>

static const struct cli_option options[] = {
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
	.options = options,
	.examples = examples,
};
