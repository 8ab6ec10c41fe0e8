/* The command line. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_probe.h"
#include "agent/agent_system.h"
#include "agent/web.h"
#include "cmds/cli.h"
#include "doctor/live.h"
#include "recording/watch.h"

/* The options of the agent, shared by its parser and the help of the tool, which works without the agent. */

extern const struct cli_page agent_page;

enum { AGENT_PORT = 9749 };

/* What agent and hub have in common. */
struct serving_options {
	struct web_address listen[AGENT_LISTENERS_MAX];
	size_t listen_count; /* 0: not given */
	const char *web_config;
	const char *hook; /* NULL none */
	uint64_t hook_ns;
	char host[256]; /* name of this host */
	bool is_host_given;
	const char *user;
	const char *group;
};
void serving_options_init(struct serving_options *serving);

/* Rows of both pages, for a struct with a member `serving`. */
int serving_take_listen(const struct cli_said *said);
int serving_take_host(const struct cli_said *said);
int serving_take_hook(const struct cli_said *said);
#define SERVING_TIME .like = "is not a time like 30s, 5m or 500ms", .less = "is less than 1s"
#define SERVING_LISTEN(type, port)                                                          \
	{ 'l', "listen", "ADDRESS",                                                         \
	  "address to listen on: 127.0.0.1:" port " (default), [::1]:" port ", :" port      \
	  " for all addresses, unix:/path; can be repeated",                                \
	  CLI_CALL(type, serving, serving_take_listen) },                                   \
	{                                                                                   \
		0, "web-config", "FILE",                                                    \
			"TLS and passwords, in the web configuration format of Prometheus " \
			"exporters",                                                        \
			CLI_TEXT(type, serving.web_config)                                  \
	}
#define SERVING_HOOK(type, when)                                                          \
	{ 0, "hook", "COMMAND",                                                           \
	  "run this command when " when " appears and when it clears: absolute path and " \
	  "arguments, split at blanks; standard input has the verdict as JSON",           \
	  CLI_CALL(type, serving, serving_take_hook) },                                   \
	{                                                                                 \
		0, "hook-time", "TIME", "time limit of the hook (default 60s)",           \
			CLI_TIME(type, serving.hook_ns, CLI_SECONDS(1), 0), SERVING_TIME  \
	}
#define SERVING_USER(type, about_host)                                                    \
	{ 0, "host", "NAME", about_host, CLI_CALL(type, serving, serving_take_host) },    \
		{ 0, "user", "NAME", "switch to this user after startup (requires root)", \
		  CLI_TEXT(type, serving.user) },                                         \
	{                                                                                 \
		0, "group", "NAME", "switch to this group, which also owns Unix sockets", \
			CLI_TEXT(type, serving.group)                                     \
	}

struct agent_options {
	struct serving_options serving;
	const char *textfile;
	uint64_t interval_ns;
	struct watch_settings watch;
	struct live_limits limits;
	struct agent_probe_options probe;
	bool has_kernel; /* ask for kernel events on demand */
	uint64_t kernel_ns;
};

/* Returns -1 to continue, else the exit code: help or an error was printed. */
int agent_options_parse(struct agent_options *options, int argc, char **argv);

#endif
