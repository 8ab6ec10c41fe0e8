/*
 * NVIDIA's MPS for ranks that share a GPU: their kernels run together instead of taking turns of some
 * 2 ms. Started with directories of its own, so that it is nobody else's, and stopped at the end.
 */
#ifndef BENCH_MPS_H
#define BENCH_MPS_H

#include <stdbool.h>

#include "programs/bench/bench_keeper.h"

struct bench_mps {
	bool is_on;	     /* ranks will run under it, ours or one that was there */
	bool is_ours;	     /* to be stopped */
	char control[4096];  /* the program */
	char directory[128]; /* "" unless it is ours */
	char pipe[160];	     /* for CUDA_MPS_PIPE_DIRECTORY; "" unless it is ours */
	char log[160];
	struct bench_keeper keeper; /* stops it, also when we are killed */
};

/* Quietly off where there is no MPS, or it does not start. */
void bench_mps_start(struct bench_mps *mps);
/* Nothing of it stays: neither daemon, server nor directory. It happens by itself when this process and those
 * that it forked end otherwise. */
void bench_mps_stop(struct bench_mps *mps);
/* In a rank, before CUDA is opened. */
void bench_mps_environment(const struct bench_mps *mps);

#endif
