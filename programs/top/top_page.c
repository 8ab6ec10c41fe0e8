#include "programs/top/top_page.h"

#include <stddef.h>

static const struct cli_option options[] = {
	{ TOP_OPTION_INTERVAL, "interval", "TIME", "time between looks, 200ms to 60s (1s)" },
	{ TOP_OPTION_ONCE, "once", NULL,
	  "print what two looks show as plain text, and end; so it is without a terminal" },
	{ TOP_OPTION_DIRECTORY, "directory", "DIR",
	  "where regions are (RINGSIDE_SHM, else /dev/shm)" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside top", "watch the jobs of this machine; ? explains the keys" },
	{ "ssh -t node01 ringside top", "those of another one" },
	{ "ringside top --once | less -S", "one look, all rows" },
	{ NULL, NULL },
};

const struct cli_page top_page = {
	.name = "top",
	.operands = "",
	.about = "Shows the jobs of this machine while they run: what hangs or lags, in words; "
		 "communicators with their bandwidth and waiting; the ranks of one of them side by "
		 "side; operations in flight and what they wait for. It reads what processes "
		 "record and needs no agent; as root it sees all users' processes.\n"
		 "For programs, 'ringside ps --json' and 'ringside report --json' say more.\n",
	.options = options,
	.examples = examples,
};
