/* What `ringside sim` is asked: words and numbers of its command line, understood. */
#ifndef SIM_REQUEST_H
#define SIM_REQUEST_H

#include <stdbool.h>

#include "cmds/cli.h"
#include "programs/sim/sim_options.h"

struct sim_request {
	struct sim_options options;
	const char *mode; /* NULL: not said */
	bool is_json;
	bool is_list; /* explain workloads and faults, play nothing */
};

extern const struct cli_page sim_page;

/* 0, or the exit code after help was shown or an error was told. */
int sim_request_read(struct sim_request *request, int argc, char **argv, bool *is_over);

#endif
