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
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_gpu.h"
#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "bench/bench_result.h"
#include "common/attributes.h"

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

/*
 * Calls of NCCL in which ranks wait for each other on the host: creating a communicator, and the first call on it,
 * which sets up connections. If a rank dies or fails meanwhile, the others would wait forever: during such a call a
 * thread watches the hub and ends the process, with the reason, if NCCL does not return.
 */

struct bench_job;

struct bench_watch {
	struct bench_job *job; /* borrowed */
	const char *what;      /* borrowed: name of the call */
	uint64_t began_ns;
	struct watch_thread thread;
};

/* Between these two the caller makes the NCCL call and nothing else; in particular it does not use the hub. */
void bench_watch_begin(struct bench_watch *watch, struct bench_job *job, const char *what);
void bench_watch_end(struct bench_watch *watch);

/*
 * Shared by the parts of a benchmark's rank: one struct, filled from top to bottom by bench_job_open() and emptied
 * by bench_job_close(). Others use bench_job.h.
 *
 *	bench_job.c	GPU, ranks, waiting for the stream, inputs, checks
 *	bench_measure.c	calls of NCCL in all modes, CUDA graphs
 *
 * Functions return 0, or -1 after handing the reason to the hub.
 */

enum {
	JOB_GUARD_BYTES = 4096, /* before and after the receive buffer; must not change */
	JOB_EVENTS_MAX = 4097,	/* calls of one back-to-back block, plus one */
	JOB_VARIABLE_BYTES =
		4096, /* a list per function can be long; must be restored completely */
};

/* Tables on the GPU: as in struct bench_pattern, and the guards' values. */
struct job_tables {
	cuda_address memory;
	cuda_address input;
	cuda_address low;
	cuda_address high;
	cuda_address poison;
	cuda_address guard;
	cuda_address counter;
	/* What they are for; datatype 0: not filled yet. */
	bool is_reduction;
	uint8_t datatype;
	uint8_t redop;
};

/* A variable as the user had set it. */
struct job_variable {
	bool is_set;
	char value[JOB_VARIABLE_BYTES];
};

struct bench_job {
	const struct bench_place *place;
	struct bench_hub *hub;
	const struct bench_plan *plan; /* read again for each cell */
	struct bench_run *run;	       /* NULL except on rank 0 */
	struct job_variable algorithm; /* the user's NCCL_ALGO and NCCL_PROTO */
	struct job_variable protocol;

	int local_rank; /* from the launcher, or counted */
	int local_ranks;

	struct cuda cuda;
	struct nccl nccl;
	int device_number;
	cuda_device device;
	struct CUctx_st *context;
	struct CUstream_st *stream;
	struct bench_kernels kernels;
	struct CUevent_st **events;
	size_t event_count;
	bool is_graph_timed; /* events can be recorded inside a graph */

	cuda_address send_memory; /* guard, room_bytes, guard */
	cuda_address recv_memory;
	cuda_address one; /* the element used for alignment */
	uint64_t room_bytes;
	struct job_tables tables;
	struct bench_pattern *pattern;

	int sharers;	 /* ranks on this rank's GPU */
	int least_major; /* of the GPUs' compute capabilities */
	bool is_crowded; /* more ranks than CPUs: polling ranks yield */

	struct ncclComm *comm;
	bool is_forced;	   /* an algorithm or protocol was given */
	size_t first_cell; /* in run: first cell measured with this communicator */
};

/* One cell while it is being measured. */
struct job_cell {
	struct bench_job *job;
	struct bench_cell cell; /* owns nothing; calls_of is only this rank's */
	struct bench_layout layout;
	struct bench_call *calls; /* of this rank */
	bool takes_part;	  /* sends to or receives from some rank */
	double expected_ns;	  /* of one call, from the warm-up; same on all ranks */
};

/* Hands the reason to the hub; always returns -1. */
int job_fail(struct bench_job *job, const char *format, ...) PRINTF_LIKE(2, 3);
/* 0 for a result of 0, otherwise as job_fail(). */
int job_cuda(struct bench_job *job, cuda_result result, const char *what);
int job_nccl(struct bench_job *job, nccl_result result, const char *what);
/* Adds a note to rank 0's run; does nothing on other ranks. */
void job_note(struct bench_job *job, const char *format, ...) PRINTF_LIKE(2, 3);

/* On how many ranks it is not 0. All get the same answer; -1: a rank failed. */
int job_agree(struct bench_job *job, int32_t state);

int device_events(struct bench_job *job, size_t count); /* at least this many */

/* Waits until the stream is idle; `calls` operations may take patience_s each. */
int wait_stream(const struct job_cell *work, uint64_t calls);

/* Poison, inputs and guards; waits for the GPU. */
int fill_buffers(struct job_cell *work);
/* Counts the wrong elements on this rank. */
int fill_check(struct job_cell *work, uint64_t *wrong);

#endif
