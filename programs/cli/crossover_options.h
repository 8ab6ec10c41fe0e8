/* What `ringside bench crossover` was asked for. */
#ifndef CROSSOVER_OPTIONS_H
#define CROSSOVER_OPTIONS_H

#include <stdbool.h>

#include "cmds/cli.h"
#include "programs/cli/bench_command.h"
#include "programs/cli/bench_outputs.h"
#include "programs/cli/crossover_measure.h"
#include "programs/cli/crossover_recorder.h"
#include "programs/cli/crossover_variants.h"

struct crossover_request {
	struct bench_how how;
	struct bench_plan plan;
	struct crossover_variants variants;
	struct crossover_recorder recorder;
	struct crossover_budget budget;
	const char *from; /* a former run; NULL: measure */
	int measuring;	  /* an option that says what or how to measure; 0: none was said */
	struct bench_outputs files;
	char command[1024]; /* for those who read the results */
	bool is_ascii;
};

extern const struct cli_page crossover_page;

/* Understand the command line. -1: go on; else the exit code. */
int crossover_request_read(struct crossover_request *request, int argc, char **argv);

#endif
