/*
 * The functions of the CUDA driver that give times: our own declarations of what libcuda.so.1 exports under these names.
 * The recorder looks them up at run time; the simulator and the tests define them.
 */
#ifndef CUDA_DRIVER_H
#define CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;

enum cuda_driver_result {
	CUDA_OK = 0,
	CUDA_DEINITIALIZED = 4,
	CUDA_INVALID_HANDLE = 400, /* also: the event was never recorded */
	CUDA_NOT_READY = 600,
	CUDA_CAPTURE_IMPLICIT = 906, /* the legacy stream, while another stream captures */
};

enum cuda_capture_status {
	CUDA_CAPTURE_NONE = 0,
	CUDA_CAPTURE_ACTIVE = 1,
	CUDA_CAPTURE_INVALIDATED = 2,
};

enum { CUDA_CAPTURE_MODE_RELAXED = 2 };
enum { CUDA_RECORD_EXTERNAL = 1 };
enum { CUDA_NODE_EVENT_WAIT = 6, CUDA_NODE_EVENT_RECORD = 7 }; /* CUgraphNodeType */
/* Streams 0, 1 (legacy) and 2 (per thread) belong to whatever context is current. */
enum { CUDA_STREAMS_WITHOUT_CONTEXT = 3 };

/* X(member, name, parameters) */
#define CUDA_TIMING_FUNCTIONS(X)                                                                 \
	X(ctx_get_current, cuCtxGetCurrent, (struct CUctx_st * *context))                        \
	X(ctx_set_current, cuCtxSetCurrent, (struct CUctx_st * context))                         \
	X(ctx_get_device, cuCtxGetDevice, (int *device))                                         \
	X(primary_ctx_get_state, cuDevicePrimaryCtxGetState,                                     \
	  (int device, unsigned int *flags, int *is_active))                                     \
	X(stream_get_ctx, cuStreamGetCtx,                                                        \
	  (struct CUstream_st * stream, struct CUctx_st * *context))                             \
	X(stream_is_capturing, cuStreamIsCapturing, (struct CUstream_st * stream, int *state))   \
	X(event_create, cuEventCreate, (struct CUevent_st * *event, unsigned int flags))         \
	X(event_record, cuEventRecord, (struct CUevent_st * event, struct CUstream_st * stream)) \
	X(event_query, cuEventQuery, (struct CUevent_st * event))                                \
	X(event_elapsed, cuEventElapsedTime,                                                     \
	  (float *ms, struct CUevent_st *start, struct CUevent_st *stop))                        \
	X(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (int *mode))

/* Absent from older drivers (before CUDA 11.1, 11.3 and 12.0): times without them are eager or less guarded. */
#define CUDA_TIMING_FUNCTIONS_NEWER(X)                                                       \
	X(ctx_get_id, cuCtxGetId, (struct CUctx_st * context, unsigned long long *id))       \
	X(event_record_with_flags, cuEventRecordWithFlags,                                   \
	  (struct CUevent_st * event, struct CUstream_st * stream, unsigned int flags))      \
	X(stream_get_capture_info, cuStreamGetCaptureInfo_v2,                                \
	  (struct CUstream_st * stream, int *state, uint64_t *id, struct CUgraph_st **graph, \
	   struct CUgraphNode_st *const **nodes, size_t *count))                             \
	X(graph_node_get_type, cuGraphNodeGetType, (struct CUgraphNode_st * node, int *type))

#define CUDA_DRIVER_MEMBER(member, name, parameters) int(*member) parameters;
struct cuda_driver {
	CUDA_TIMING_FUNCTIONS(CUDA_DRIVER_MEMBER)
	CUDA_TIMING_FUNCTIONS_NEWER(CUDA_DRIVER_MEMBER)
};
#undef CUDA_DRIVER_MEMBER

#endif
