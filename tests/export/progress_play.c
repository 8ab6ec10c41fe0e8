/* Ten seconds of work in simulated time, with progress as on a terminal. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define SECOND UINT64_C(1000000000)

int main(int argc, char **argv)
{
	struct cli_progress progress;
	uint64_t total = argc > 1 && strcmp(argv[1], "endless") == 0 ? 0 : 10000000;

	cli_progress_start(&progress, "export", "operations", total);
	progress.fd = 1;
	progress.is_on = argc <= 1 || strcmp(argv[1], "quiet") != 0;
	/* A thousand steps; progress is written a few times per second, starting after one second. */
	for (uint64_t i = 0; i <= 1000; i++)
		cli_progress_at_time(&progress, i * 10000, progress.began_ns + i * SECOND / 100);
	cli_progress_hide(&progress);
	cli_progress_end(&progress);
	return 0;
}
