/*
 * A CUDA driver on the CPU: libcuda.so.1 for tests on hosts without a GPU. Device memory is host memory, a stream
 * is a thread with a queue, a kernel is a C function of the same name. docs/HACKING.md lists the settings.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>

#include "bench/bench_gpu.h"
#include "common/attributes.h"
#include "tests/fake_gpu/fake_point.h"

enum fake_cuda_error {
	FAKE_INVALID_VALUE = 1,
	FAKE_OUT_OF_MEMORY = 2,
	FAKE_NOT_INITIALIZED = 3,
	FAKE_NO_DEVICE = 100,
	FAKE_INVALID_DEVICE = 101,
	FAKE_INVALID_CONTEXT = 201,
	FAKE_INVALID_PTX = 218,
	FAKE_INVALID_HANDLE = 400,
	FAKE_ILLEGAL_STATE = 401,
	FAKE_NOT_FOUND = 500,
	FAKE_ILLEGAL_ADDRESS = 700,
	FAKE_CONTEXT_IS_DESTROYED = 709,
	FAKE_LAUNCH_FAILED = 719,
	FAKE_CAPTURE_UNSUPPORTED = 900,
	FAKE_CAPTURE_INVALIDATED = 901,
	FAKE_CAPTURE_UNMATCHED = 902,
	FAKE_CAPTURE_MERGE = 903,
	FAKE_CAPTURE_ISOLATION = 905,
	FAKE_CAPTURED_EVENT = 907,
	FAKE_CAPTURE_WRONG_THREAD = 908,
	FAKE_UPDATE_FAILURE = 910,
};

/* What the benchmark and the recorder do not call, but jobs do. */
#define CUDA_MORE_FUNCTIONS(X)                                                                     \
	X(context_create, cuCtxCreate_v2, (struct CUctx_st **, unsigned int, cuda_device))         \
	X(context_destroy, cuCtxDestroy_v2, (struct CUctx_st *))                                   \
	X(primary_reset, cuDevicePrimaryCtxReset_v2, (cuda_device)) /* cudaDeviceReset() */        \
	X(stream_wait_event, cuStreamWaitEvent,                                                    \
	  (struct CUstream_st *, struct CUevent_st *, unsigned int))                               \
	X(capture_begin_to, cuStreamBeginCaptureToGraph,                                           \
	  (struct CUstream_st *, struct CUgraph_st *, struct CUgraphNode_st *const *,              \
	   const void *, size_t, int))                                                             \
	X(capture_depend, cuStreamUpdateCaptureDependencies,                                       \
	  (struct CUstream_st *, struct CUgraphNode_st **, size_t, unsigned int))                  \
	X(graph_create, cuGraphCreate, (struct CUgraph_st **, unsigned int))                       \
	X(graph_nodes, cuGraphGetNodes, (struct CUgraph_st *, struct CUgraphNode_st **, size_t *)) \
	X(graph_add_wait, cuGraphAddEventWaitNode,                                                 \
	  (struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, size_t,  \
	   struct CUevent_st *))                                                                   \
	X(graph_add_record, cuGraphAddEventRecordNode,                                             \
	  (struct CUgraphNode_st **, struct CUgraph_st *, struct CUgraphNode_st *const *, size_t,  \
	   struct CUevent_st *))                                                                   \
	X(graph_update, cuGraphExecUpdate_v2,                                                      \
	  (struct CUgraphExec_st *, struct CUgraph_st *, struct fake_update *))

/* CUgraphExecUpdateResultInfo */
struct fake_update {
	int reason; /* 2: the graph has other nodes */
	struct CUgraphNode_st *node;
	struct CUgraphNode_st *from;
};

#define FAKE_DECLARE(member, symbol, parameters) EXPORTED cuda_result symbol parameters;
CUDA_FUNCTIONS(FAKE_DECLARE)
CUDA_MORE_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE
#define FAKE_DECLARE(member, symbol, parameters) EXPORTED cuda_result symbol parameters;
CUDA_TIMING_FUNCTIONS(FAKE_DECLARE)
CUDA_TIMING_FUNCTIONS_NEWER(FAKE_DECLARE)
#undef FAKE_DECLARE

enum { FAKE_DEVICES_MAX = 16, FAKE_CONTEXTS_MAX = 32 };

/* Primary contexts by device, then others. Memory is used again, numbers are not. */
struct CUctx_st {
	int device;
	unsigned int retained;	    /* a primary context: how often */
	uint64_t id;		    /* 0: it does not exist */
	cuda_result error;	    /* of a kernel: stays until the end */
	struct CUstream_st *legacy; /* stream 0, made when it is first used */
};
struct CUctx_st *fake_context_current(void); /* or NULL; it may no longer exist */
size_t fake_context_number(const struct CUctx_st *context);

/* The context that an object was made in. */
struct fake_home {
	struct CUctx_st *context;
	uint64_t id;
};
struct fake_home fake_home_current(void);
bool fake_home_exists(const struct fake_home *home);
/* Ends the streams of a context that has ended. */
void fake_streams_end(const struct CUctx_st *context, uint64_t id);

/*
 * Called before every function except cuInit: checks for an injected failure, for cuInit and, if needed, for a
 * current context. 0: continue.
 */
cuda_result fake_enter(const char *function, bool needs_context);
#define FAKE_ENTER(needs_context)                                            \
	do {                                                                 \
		cuda_result entered = fake_enter(__func__, (needs_context)); \
		if (entered != 0)                                            \
			return entered;                                      \
	} while (0)

/*
 * The part of fake_enter() that tests control (fake_control.h): counts the call, waits while it is blocked, returns the
 * code to fail with or 0.
 */
cuda_result fake_control_enter(const char *function);
/* Counts the use of a handle whose object is gone; returns `result`. */
cuda_result fake_stale(cuda_result result);

#endif
