/* What `ringside bench health` was asked for. */
#ifndef HEALTH_OPTIONS_H
#define HEALTH_OPTIONS_H

#include <stdbool.h>

#include "bench/link_health.h"
#include "cmds/cli.h"
#include "import/expected.h"
#include "programs/cli/bench_command.h"
#include "programs/cli/bench_outputs.h"
#include "programs/cli/health_steps.h"

struct health_request {
	struct bench_how how;
	struct health_budget budget;
	struct health_options judge;
	struct expected expected; /* judge.expected, when a file was given */
	bool has_expected;
	const char *from; /* a former run; NULL: measure */
	int measuring;	  /* an option that says what or how to measure; 0: none was said */
	struct bench_outputs files;
	char command[1024]; /* for those who read the results */
	bool is_quiet;
	bool is_strict; /* what could not be judged is trouble, too */
};

extern const struct cli_page health_page;

/* Understand the command line. -1: go on; else the exit code. In every case the caller releases. */
int health_request_read(struct health_request *request, int argc, char **argv);
void health_request_release(struct health_request *request);

#endif
