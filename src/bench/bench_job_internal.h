/*
 * Calls of NCCL in which ranks wait for each other on the host: making a communicator, and the first call on it,
 * which makes connections. Where a rank dies or fails meanwhile the others would wait for ever: a thread looks at
 * the hub as long as such a call lasts, and ends the process, with the reason, where NCCL does not come back.
 */
#ifndef BENCH_JOB_INTERNAL_H
#define BENCH_JOB_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_gpu.h"
#include "bench/bench_job.h"
#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "bench/bench_result.h"
#include "bench/hub.h"
#include "common/attributes.h"

struct bench_job;

struct bench_watch {
	struct bench_job *job; /* borrowed */
	const char *what;      /* borrowed: the call */
	uint64_t began_ns;
	struct watch_thread thread;
};

/* Between these two the caller makes the call and nothing else; above all it leaves the hub alone. */
void bench_watch_begin(struct bench_watch *watch, struct bench_job *job, const char *what);
void bench_watch_end(struct bench_watch *watch);

/*
 * What the parts of a benchmark's rank share: one struct, filled from top to bottom by bench_job_open() and
 * emptied by bench_job_close(). Not for others: they take bench_job.h.
 *
 *	bench_job.c	the GPU: context, stream, events, buffers
 *	bench_job.c	who all ranks are, and what follows from it
 *	bench_measure.c	one call of NCCL
 *	bench_job.c	until the stream is idle, or somebody failed
 *	bench_job.c	inputs, and results checked
 *	bench_job.c	that the checking works
 *	bench_measure.c	blocking, back to back, loop
 *	bench_measure.c	CUDA graphs
 *
 * Functions give back 0, or -1 after the reason was handed to the hub.
 */

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

int device_events(struct bench_job *job, size_t count); /* at least so many */

/* Until the stream is idle. `calls` of them are waited for, of which each may be patience_s late. */
int wait_stream(const struct job_cell *work, uint64_t calls);

/* Poison, inputs and guards; enqueued and waited for. */
int fill_buffers(struct job_cell *work);
/* Elements that are wrong on this rank now. */
int fill_check(struct job_cell *work, uint64_t *wrong);

#endif
