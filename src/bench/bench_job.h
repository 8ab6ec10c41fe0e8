/*
 * One rank's part of a benchmark: its GPU, its communicator, and measuring one cell at a time. Every
 * rank makes the same calls in the same order; after each cell rank 0 has all ranks' calls.
 *
 *	bench_job_open(&job, place, hub, plan, &run)
 *	bench_job_connect(job, NULL, NULL)
 *	for each cell of the plan
 *		bench_job_measure(job, &cell)
 *	bench_job_close(job)
 *
 * Give back 0, or -1 after the reason was handed to the hub (hub_problem()).
 */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include <pthread.h>
#include <stdbool.h>

#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "bench/bench_result.h"
#include "bench/hub.h"

struct bench_job;

/*
 * A thread that watches over its owner, who may be somewhere it does not come back from. The lock guards what both
 * look at.
 */

struct watch_thread {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool is_started; /* else nobody watches: no thread could be made */
	bool is_over;
};

/* 0, or -1: no thread could be made. Ended by watch_thread_end() in both cases. */
int watch_thread_begin(struct watch_thread *watch, void *(*run)(void *), void *context);

/* For the thread, which has the lock: waits until the owner ends the watch (true), or for so long (false). The lock is
 * free meanwhile. */
bool watch_thread_is_over_within(struct watch_thread *watch, double seconds);

void watch_thread_end(struct watch_thread *watch);

/* A call on the job or the hub failed: tell why, once for all ranks, and who gave no sign of life. The hub is
 * only good for being closed after that. */
void bench_watch_tell(const struct bench_place *place, struct bench_hub *hub);

/* CUDA, NCCL, the GPU (local_rank modulo the GPUs here), stream, buffers for the plan's largest size, or for
 * what memory has room for (a note says so). Fills run's ranks, versions and notes on rank 0. `run` is
 * borrowed until close, and rank 0's alone. `plan` too: it is read anew at each cell, so that calls, seconds
 * and checks may change in between, alike on all ranks; sizes above the largest at open are left out. */
int bench_job_open(struct bench_job **job, const struct bench_place *place, struct bench_hub *hub,
		   const struct bench_plan *plan, struct bench_run *run);

/* A new communicator of all ranks, in place of the one before; nothing is called on it. NCCL reads NCCL_ALGO
 * and NCCL_PROTO when a communicator is made: "Ring", "Tree", "LL128"; NULL: as they were before we came, which
 * a note tells where they were set. A choice that NCCL refuses is no failure of the job: gives back 1 and the
 * job has no communicator. */
int bench_job_connect(struct bench_job *job, const char *algorithm, const char *protocol);

/* Measure what `cell` says (function, datatype, redop, mode, in place, root, bytes or count, peers,
 * algorithm and protocol as labels); calls, seconds, warm-up and alignment as the plan says. Rank 0's run
 * gets the cell. bytes is what is asked for: it is rounded down to whole elements for every rank. Steps run
 * in this order: warm-up, measured calls, checks. What cannot be measured here (too large, no element for each
 * rank, a type that this NCCL has not, no form in place) is left out with a note: 0, and no cell. Gives back 1
 * and adds no cell where NCCL refuses the first call with the algorithm or protocol that connect was given. */
int bench_job_measure(struct bench_job *job, const struct bench_cell *cell);

/* All cells of the plan on the communicator there is. `told` (may be NULL) is called on rank 0 after
 * each one, for progress. */
typedef void (*bench_told_fn)(void *context, const struct bench_run *run);
int bench_job_measure_all(struct bench_job *job, bench_told_fn told, void *context);

/* What NCCL took for each cell measured since connect (chosen_algorithm, chosen_protocol), where the Ringside
 * plugin is loaded into this process: read from its own region. Quietly nothing where it is not. */
void bench_job_choices(struct bench_job *job);

void bench_job_close(struct bench_job *job);

#endif
