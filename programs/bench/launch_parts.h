/* Between bench_launch.c, which watches over ranks, and launch_rank.c, which is one. */
#ifndef LAUNCH_PARTS_H
#define LAUNCH_PARTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "programs/bench/bench_launch.h"
#include "programs/bench/bench_mps.h"

struct launch_rank {
	pid_t pid; /* 0: it is over */
	int status;
	bool is_ended_by_us;
};

struct launch_job {
	const struct bench_launch *launch;
	struct bench_mps mps;
	pid_t pid; /* the launcher */
	struct launch_rank *ranks;
	int gpus;
	int left;	     /* ranks that still run */
	int listen_fd;	     /* for rank 0 */
	int problem_ends[2]; /* ranks say why they fail */
	int signal_fd;
	sigset_t signals_before;
	struct bench_place place; /* rank 0's; others differ in rank */
	uint64_t began_ns;
	uint64_t end_ns;  /* then what is left is killed; 0: not yet decided */
	bool is_end_told; /* SIGTERM was sent, SIGKILL is next */
	int signal;	  /* that ended us; 0 none */
	int code;
	bool has_failed; /* a rank did */
	char told[512];	 /* the first reason that a rank gave */
	char death[512]; /* the first rank that died instead of ending */
};

/* In the child: becomes rank `rank`; does not come back. */
void launch_become_rank(const struct launch_job *job, int rank, bench_rank_fn body, void *context)
	__attribute__((noreturn));

#endif
