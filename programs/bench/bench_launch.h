/*
 * Starting the ranks of a job on this machine: forked from a process that never touched CUDA, each
 * with its place; they die with it. With fewer GPUs than ranks they share them: every rank gets an
 * NCCL_HOSTID of its own, sockets over the loopback, fewer channels, and MPS where it can be had.
 */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "programs/bench/bench_place.h"

struct bench_variable {
	const char *name;
	const char *value; /* NULL: unset */
};

struct bench_launch {
	int ranks;
	int gpus; /* on this machine; 0: asked */
	bool is_mps_wanted;
	int results_fd; /* rank 0's standard output for results; -1: the caller's */
	const struct bench_variable
		*variables; /* set in every rank, ends with a NULL name; may be NULL */
	const char *log; /* ranks' stderr goes to this file, "%r" is the rank; NULL: the caller's */
	char *problem;	 /* the line goes here instead of to stderr; may be NULL */
	size_t problem_size;
	int limit_s; /* not over after so long: a hang, told and ended; 0: no limit */
};

/* What a rank does; its return value is the rank's exit code. */
typedef int (*bench_rank_fn)(const struct bench_place *place, void *context);

/* Give back 0 when all ranks did, else 1 (2 when all that failed gave 2) after one line for the first that
 * failed; a rank that exits with 1 or 2 told it, to the launcher by bench_tell() or by itself. 128 + n when
 * signal n ended it: Ctrl-C, SIGTERM and SIGHUP reach the ranks. */
int bench_launch(const struct bench_launch *launch, bench_rank_fn body, void *context);

/* The signals that end a job: Ctrl-C, SIGTERM and SIGHUP, less those that are ignored. */
void bench_launch_signals(sigset_t *ending);

/* A rank says why it cannot go on: to the launcher, who tells the first one, or on stderr where there
 * is none. One line without "ringside: ". */
void bench_tell(const struct bench_place *place, const char *problem);

/* GPUs on this machine, asked in a forked child; -1 and *problem when CUDA cannot be opened. */
int bench_launch_gpus(char *problem, size_t problem_size);

#endif
