#include <string.h>

#include "programs/agent/agent_page.h"
#include "programs/cli/cli_become.h"
#include "programs/cli/cli_commands.h"

/* A program of its own: the tool runs where there is no HTTP library. */
int cmd_agent(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return cli_page_help(&agent_page);
	return cli_become("ringside-agent", "libmicrohttpd", argv);
}
