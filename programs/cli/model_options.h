/* What `ringside model` is asked: words and numbers of its command line, understood. */
#ifndef MODEL_OPTIONS_H
#define MODEL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/cost_model.h"
#include "cmds/cli.h"
#include "programs/bench/bench_plan.h"

enum { MODEL_FILES_MAX = 64 };

struct model_options {
	uint8_t function;	/* 0: not said yet */
	struct bench_plan plan; /* its sizes alone */
	bool has_sizes;
	int32_t ranks; /* 0: not said */
	int32_t nodes;
	int32_t nics;
	uint8_t mode; /* enum bench_mode; 0: not said */
	enum cost_algorithm algorithm;
	uint8_t protocol;
	const char *hardware; /* NULL: none */
	const char *files[MODEL_FILES_MAX];
	size_t file_count;
	double value[COST_PARAMETERS]; /* as the model has them */
	bool has_value[COST_PARAMETERS];
	bool is_json;
};

extern const struct cli_page model_page;

/* 0, or the exit code after help was shown or an error was told. */
int model_options_read(struct model_options *options, int argc, char **argv, bool *is_over);

#endif
