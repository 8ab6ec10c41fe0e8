/*
 * What the parts of a benchmark's rank share: one struct, filled from top to bottom by bench_job_open() and
 * emptied by bench_job_close(). Not for others: they take bench_job.h.
 *
 *	bench_device.c	the GPU: context, stream, events, buffers
 *	bench_ranks.c	who all ranks are, and what follows from it
 *	bench_issue.c	one call of NCCL
 *	bench_wait.c	until the stream is idle, or somebody failed
 *	bench_fill.c	inputs, and results checked
 *	bench_prove.c	that the checking works
 *	bench_measure.c	blocking, back to back, loop
 *	bench_graph.c	CUDA graphs
 *
 * Functions give back 0, or -1 after the reason was handed to the hub.
 */
#ifndef BENCH_INSIDE_H
#define BENCH_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "programs/bench/bench_job.h"
#include "programs/bench/bench_kernels.h"
#include "programs/bench/bench_layout.h"
#include "programs/bench/bench_pattern.h"
#include "programs/bench/cuda_open.h"
#include "programs/bench/nccl_open.h"

enum {
	JOB_GUARD_BYTES =
		4096, /* in front of and behind the receive buffer: must stay as they are */
	JOB_EVENTS_MAX = 4097, /* calls of one block of back-to-back, and one */
	JOB_VARIABLE_BYTES =
		4096, /* lists for each function are long; set again, they must be whole */
};

/* Tables on the GPU: as in struct bench_pattern, and what guards hold. */
struct job_tables {
	cuda_address memory;
	cuda_address input;
	cuda_address low;
	cuda_address high;
	cuda_address poison;
	cuda_address guard;
	cuda_address counter;
	/* What they are for; datatype 0: nothing yet. */
	bool is_reduction;
	uint8_t datatype;
	uint8_t redop;
};

/* What a user set before we did. */
struct job_variable {
	bool is_set;
	char value[JOB_VARIABLE_BYTES];
};

struct bench_job {
	const struct bench_place *place;
	struct bench_hub *hub;
	const struct bench_plan *plan; /* read anew at each cell */
	struct bench_run *run;	       /* NULL but on rank 0 */
	struct job_variable algorithm; /* NCCL_ALGO and NCCL_PROTO as they were */
	struct job_variable protocol;

	int local_rank; /* as the launcher says, or counted */
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
	cuda_address one; /* the element of aligning */
	uint64_t room_bytes;
	struct job_tables tables;
	struct bench_pattern *pattern;

	int sharers;	 /* ranks on this rank's GPU */
	int least_major; /* of the GPUs' compute capabilities */
	bool is_crowded; /* more ranks than processors here: who polls yields */

	struct ncclComm *comm;
	bool is_forced;	   /* an algorithm or protocol was named */
	size_t first_cell; /* of run: measured with this communicator */
};

/* One cell while it is measured. */
struct job_cell {
	struct bench_job *job;
	struct bench_cell cell; /* owns nothing; calls_of is this rank's alone */
	struct bench_layout layout;
	struct bench_call *calls; /* of this rank */
	bool takes_part;	  /* has somebody to send to or receive from */
	double expected_ns;	  /* of one call, from the warm-up; alike on all ranks */
};

/* Hands the reason to the hub; always -1. */
int job_fail(struct bench_job *job, const char *format, ...) PRINTF_LIKE(2, 3);
int job_cuda(struct bench_job *job, cuda_result result, const char *what);
int job_nccl(struct bench_job *job, nccl_result result, const char *what);
/* Rank 0's run gets a note; nothing elsewhere. */
void job_note(struct bench_job *job, const char *format, ...) PRINTF_LIKE(2, 3);

/* On how many ranks is it not 0? All get the same answer; -1: a rank failed. */
int job_agree(struct bench_job *job, int32_t state);

uint64_t job_now(void);	 /* CLOCK_MONOTONIC */
uint64_t job_wall(void); /* CLOCK_REALTIME */

int device_open(struct bench_job *job);
int device_memory_open(struct bench_job *job);
/* Free memory now, for two buffers and the tables: what one buffer may take. */
int device_room(struct bench_job *job, uint64_t *room_bytes);
int device_events(struct bench_job *job, size_t count); /* at least so many */
void device_close(struct bench_job *job);

/* Which rank of its machine each is. */
int ranks_count(struct bench_job *job);
/* Tells all ranks who they all are: run's ranks, sharers, least_major. */
int ranks_meet(struct bench_job *job);

/* The call of this cell, on this rank: *what is the function that failed. */
nccl_result issue_call(const struct job_cell *work, const char **what);
/* An AllReduce of one element. */
nccl_result issue_align(const struct bench_job *job, const char **what);
bool issue_is_grouped(const struct bench_job *job, uint8_t function);

/* Until the stream is idle. `calls` of them are waited for, of which each may be patience_s late. */
int wait_stream(const struct job_cell *work, uint64_t calls);

/* Do filling and checking work on this GPU? Fails when right is told to be wrong, or wrong right. job->pattern
 * is what the guards' table has. */
int prove_check(struct bench_job *job);
/* Poison, inputs and guards; enqueued and waited for. */
int fill_buffers(struct job_cell *work);
/* Elements that are wrong on this rank now. */
int fill_check(struct job_cell *work, uint64_t *wrong);

/* Warm up and measure as cell.mode says: sets cell.warmups, calls, aligns, captured, loop_ns (of this rank),
 * and work->calls. 1: NCCL refused the first call on all ranks, with a forced algorithm or protocol. */
int measure_cell(struct job_cell *work);
/* One call, aligned before, waited for; times into *call. */
int measure_one(struct job_cell *work, struct bench_call *call);
/* One call, waited for, of which nothing is kept. */
int measure_unmeasured(struct job_cell *work);
/* A call took so long. The least of all counts: a machine that hesitates once must not cut what follows. */
void measure_expect(struct job_cell *work, double call_ns);
/* How many calls rank 0 wants measured, when one takes so long; alike on all ranks afterwards. */
int measure_plan_calls(struct job_cell *work, double call_ns);
int measure_calls_alloc(struct job_cell *work);
int measure_align(struct job_cell *work);
int measure_graph(struct job_cell *work);

#endif
