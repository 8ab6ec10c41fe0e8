/*
 * What the fake NCCL needs from the fake CUDA beyond CUDA's own interface: work on a stream, which is captured into
 * graphs like kernels, and time.
 *
 * FAKE_GPU_CLOCK=model: a stream has its own clock, which only advances by the duration of its work. Times between
 * events are then exactly those of the model, however busy the host is. Otherwise time is real, and work that is
 * done early waits until its time is over.
 */
#ifndef FAKE_STREAM_H
#define FAKE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"

struct CUstream_st;
struct CUgraphNode_st;

struct fake_work {
	/* On the stream's thread, each time it runs; returns a CUDA error, which then stays on the stream. */
	int (*run)(void *arg, struct CUstream_st *stream);
	/* Once, when no stream or graph uses it anymore; can be NULL. From any thread. */
	void (*release)(void *arg);
	void *arg;
};

/*
 * Enqueues it; adds it to the graph if the stream is being captured. Returns a CUDA error; the caller then keeps
 * the work.
 */
EXPORTED int fake_stream_add(struct CUstream_st *stream, const struct fake_work *work);
/* The same for a kernel of NCCL: counts as cuLaunchKernelEx, which a test can make fail. */
EXPORTED int fake_stream_launch(struct CUstream_st *stream, const struct fake_work *work);
EXPORTED bool fake_stream_is_capturing(struct CUstream_st *stream);

/*
 * While a stream is captured NCCL puts event nodes of its own around its kernels, so that they run in order with others
 * (NCCL_GRAPH_MIXING_SUPPORT): an event wait before the first, an event record after each, on which the next depends.
 */
struct fake_order {
	uint64_t capture;
	struct CUgraphNode_st *record;
};
EXPORTED void fake_capture_order_before(struct CUstream_st *stream, struct fake_order *order);
EXPORTED void fake_capture_order_after(struct CUstream_st *stream, struct fake_order *order);

/* Within run(): the work began at begin_ns (fake_clock()) and takes this long. Returns when it is over. */
EXPORTED void fake_stream_pass(struct CUstream_st *stream, uint64_t begin_ns, uint64_t duration_ns);

/* Within run(): the stream's time, as recorded by an event. */
EXPORTED uint64_t fake_stream_time(const struct CUstream_st *stream);

/* CLOCK_MONOTONIC. */
EXPORTED uint64_t fake_clock(void);

/* Whether all of it is device memory of one allocation. */
EXPORTED bool fake_memory_has(uint64_t address, size_t bytes);

#endif
