/*
 * What the fake NCCL needs of the fake CUDA beyond CUDA's own interface: work of its own on a stream,
 * which is captured into graphs as kernels are, and time.
 *
 * FAKE_GPU_CLOCK=model: a stream has a clock of its own, which moves only by what its work is said to take. So
 * times between events are exactly those of the model, however busy the machine is. Otherwise time is real,
 * and work that is done early waits until its time is over.
 */
#ifndef FAKE_STREAM_H
#define FAKE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"

struct CUstream_st;

struct fake_work {
	/* On the stream's thread, once for each time that it comes up; gives back a CUDA error, which
	 * then is the stream's for good. */
	int (*run)(void *arg, struct CUstream_st *stream);
	/* Once, when neither a stream nor a graph has it any more; may be NULL. From any thread. */
	void (*release)(void *arg);
	void *arg;
};

/* Put it behind all that is there; into the graph while the stream is being captured. Gives back a CUDA
 * error; then the work is still the caller's. */
EXPORTED int fake_stream_add(struct CUstream_st *stream, const struct fake_work *work);
EXPORTED bool fake_stream_is_capturing(struct CUstream_st *stream);

/* Within run(): the work began at begin_ns (fake_clock()) and takes so long. Returns when it is over. */
EXPORTED void fake_stream_pass(struct CUstream_st *stream, uint64_t begin_ns, uint64_t duration_ns);

/* Within run(): the stream's time, as an event would have it. */
EXPORTED uint64_t fake_stream_time(const struct CUstream_st *stream);

/* CLOCK_MONOTONIC. */
EXPORTED uint64_t fake_clock(void);

/* Is this all device memory of one allocation? */
EXPORTED bool fake_memory_has(uint64_t address, size_t bytes);

#endif
