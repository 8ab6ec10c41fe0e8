/*
 * One rank's part of a benchmark: its GPU, its communicator, and measuring one cell at a time. Every rank makes the
 * same calls in the same order; after each cell rank 0 has all ranks' calls.
 *
 *	bench_job_open(&job, place, hub, plan, &run)
 *	bench_job_connect(job, NULL, NULL)
 *	for each cell of the plan
 *		bench_job_measure(job, &cell)
 *	bench_job_close(job)
 *
 * Functions return 0, or -1 after handing the reason to the hub (hub_problem()).
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

/* A thread that watches its owner, which may be in a call that never returns. The lock guards what both use. */

struct watch_thread {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool is_started; /* false: no thread could be started, nothing is watched */
	bool is_over;
};

/* 0, or -1: could not start the thread. End it with watch_thread_end() in both cases. */
int watch_thread_begin(struct watch_thread *watch, void *(*run)(void *), void *context);

/*
 * For the thread, which holds the lock: waits until the owner ends the watch (true) or the time is over (false).
 * The lock is released meanwhile.
 */
bool watch_thread_is_over_within(struct watch_thread *watch, double seconds);

void watch_thread_end(struct watch_thread *watch);

/*
 * After a call on the job or the hub failed: reports the reason, once for all ranks, and which ranks gave no sign
 * of life. The hub can only be closed after that.
 */
void bench_watch_tell(const struct bench_place *place, struct bench_hub *hub);

/*
 * Opens CUDA, NCCL, the GPU (local_rank modulo the number of GPUs), a stream, and buffers for the plan's largest
 * size or as much as memory allows (with a note). Fills run's ranks, versions and notes on rank 0. `run` is
 * borrowed until close and only used on rank 0. `plan` is borrowed, too, and read again for each cell: calls,
 * seconds and checks may change in between if they change alike on all ranks. Sizes above the largest at open are
 * skipped.
 */
int bench_job_open(struct bench_job **job, const struct bench_place *place, struct bench_hub *hub,
		   const struct bench_plan *plan, struct bench_run *run);

/*
 * Replaces the communicator with a new one of all ranks and makes no calls on it. NCCL reads NCCL_ALGO and
 * NCCL_PROTO when a communicator is created: "Ring", "Tree", "LL128"; NULL: the user's values, with a note if they
 * were set. A choice that NCCL refuses is not a failure: returns 1, and the job has no communicator.
 */
int bench_job_connect(struct bench_job *job, const char *algorithm, const char *protocol);

/*
 * Measures `cell` (function, datatype, redop, mode, in place, root, bytes or count, peers; algorithm and protocol
 * are labels) with the plan's calls, seconds, warm-up and alignment. Rank 0's run gets the cell. bytes is the
 * requested size, rounded down to whole elements for every rank. The order is warm-up, measured calls, checks.
 * Cells that cannot be measured here (too large, less than one element per rank, unsupported type, no in-place
 * form) are skipped with a note: returns 0, and no cell. Returns 1 and adds no cell if NCCL refuses the first call
 * with the algorithm or protocol given to connect.
 */
int bench_job_measure(struct bench_job *job, const struct bench_cell *cell);

/*
 * Measures all cells of the plan on the current communicator. `progress` (can be NULL) is called on rank 0 after each
 * one, to show progress.
 */
typedef void (*bench_progress_fn)(void *context, const struct bench_run *run);
int bench_job_measure_all(struct bench_job *job, bench_progress_fn progress, void *context);

/*
 * Fills in what NCCL chose for each cell measured since connect (chosen_algorithm, chosen_protocol) from this
 * process's own region. Does nothing if the Ringside plugin is not loaded.
 */
void bench_job_choices(struct bench_job *job);

void bench_job_close(struct bench_job *job);

#endif
