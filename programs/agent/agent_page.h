/* The agent's options, for who parses them and for who explains them: the tool does so without the agent. */
#ifndef AGENT_PAGE_H
#define AGENT_PAGE_H

#include "cmds/cli.h"

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

extern const struct cli_page agent_page;

#endif
