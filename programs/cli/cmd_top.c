#include <string.h>

#include "programs/cli/cli_become.h"
#include "programs/cli/cli_commands.h"
#include "programs/top/top_page.h"

/* A program of its own: the tool runs where there is no ncurses. */
int cmd_top(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
			return cli_page_help(&top_page);
	return cli_become("ringside-top", "ncurses", argv);
}
