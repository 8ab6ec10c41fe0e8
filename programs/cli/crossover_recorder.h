/*
 * The recorder beside a benchmark: NCCL tells a profiler plugin which algorithm and protocol it took, and
 * nobody else. Ours writes into a directory that nobody else looks into, and that is removed at the end.
 */
#ifndef CROSSOVER_RECORDER_H
#define CROSSOVER_RECORDER_H

#include <stdbool.h>

#include "programs/bench/bench_keeper.h"
#include "programs/bench/bench_launch.h"

enum { CROSSOVER_RECORDER_VARIABLES = 4 };

struct crossover_recorder {
	bool is_on;	     /* else `why` says why NCCL's choice stays unknown */
	bool is_in_place_of; /* NCCL_PROFILER_PLUGIN named another plugin, which is not loaded now */
	char why[512];
	char plugin[4096];
	char directory[4096];
	struct bench_keeper keeper; /* of the directory: what lies in it takes memory */
	struct bench_variable variables[CROSSOVER_RECORDER_VARIABLES + 1]; /* for the ranks */
};

/* Find the plugin, make the directory. Without either it is off. */
void crossover_recorder_open(struct crossover_recorder *recorder);
/* In a rank that somebody else started: into its own environment, before NCCL is opened. */
void crossover_recorder_set(const struct crossover_recorder *recorder);
/* Remove the directory with what was recorded; it happens by itself when this process is killed. */
void crossover_recorder_close(struct crossover_recorder *recorder);

#endif
