/* The command line. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent_system.h"
#include "agent/web.h"
#include "cmds/cli.h"
#include "doctor/live.h"
#include "recording/watch.h"

/* The options of the agent, shared by its parser and the help of the tool, which works without the agent. */

extern const struct cli_page agent_page;

struct agent_options {
	struct web_address listen[AGENT_LISTENERS_MAX];
	size_t listen_count; /* 0: not given */
	const char *web_config;
	const char *textfile;
	uint64_t interval_ns;
	struct watch_settings watch;
	struct live_limits limits;
	const char *hook; /* NULL none */
	uint64_t hook_ns;
	bool has_kernel; /* ask for kernel events on demand */
	uint64_t kernel_ns;
	char host[256]; /* name of this host */
	const char *user;
	const char *group;
};

/* Returns -1 to continue, else the exit code: help or an error was printed. */
int agent_options_parse(struct agent_options *options, int argc, char **argv);

#endif
