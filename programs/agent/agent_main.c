/* ringside-agent: see docs/AGENT.md. The tool's `ringside agent` starts it. */
#include "programs/agent/agent_loop.h"
#include "programs/agent/agent_options.h"

int main(int argc, char **argv)
{
	struct agent_options options;
	int code = agent_options_parse(&options, argc, argv);

	return code == -1 ? agent_loop(&options) : code;
}
