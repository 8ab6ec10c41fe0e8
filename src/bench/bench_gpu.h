/*
 * The CUDA driver, loaded at run time: building needs nothing from CUDA, and one binary works with all CUDA
 * releases. Declares the part of libcuda.so.1 that is used; its ABI is stable, changed functions get a new name
 * (_v2).
 */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "common/cuda_driver.h"

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUmod_st;
struct CUfunc_st;
struct ncclComm;

typedef int cuda_result; /* 0 is success */
typedef int cuda_device;
typedef uint64_t cuda_address; /* CUdeviceptr */

enum {
	CUDA_STREAM_NON_BLOCKING = 1,
	CUDA_EVENT_DEFAULT = 0,
	CUDA_EVENT_DISABLE_TIMING = 2,
	CUDA_EVENT_RECORD_EXTERNAL = 1, /* a real event inside a graph, not a dependency */
	CUDA_CAPTURE_THREAD_LOCAL = 1,
	CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
	CUDA_P2P_ACCESS_SUPPORTED = 2,
};

struct cuda_uuid {
	unsigned char bytes[16];
};

/* Every function that the benchmark calls; all return cuda_result. X(member, symbol, parameters). */
#define CUDA_FUNCTIONS(X)                                                                         \
	X(init, cuInit, (unsigned int))                                                           \
	X(driver_version, cuDriverGetVersion, (int *))                                            \
	X(error_name, cuGetErrorName, (cuda_result, const char **))                               \
	X(error_text, cuGetErrorString, (cuda_result, const char **))                             \
	X(device_count, cuDeviceGetCount, (int *))                                                \
	X(device_get, cuDeviceGet, (cuda_device *, int))                                          \
	X(device_name, cuDeviceGetName, (char *, int, cuda_device))                               \
	X(device_uuid, cuDeviceGetUuid, (struct cuda_uuid *, cuda_device))                        \
	X(device_pci, cuDeviceGetPCIBusId, (char *, int, cuda_device))                            \
	X(device_memory, cuDeviceTotalMem_v2, (size_t *, cuda_device))                            \
	X(device_attribute, cuDeviceGetAttribute, (int *, int, cuda_device))                      \
	X(device_p2p, cuDeviceGetP2PAttribute, (int *, int, cuda_device, cuda_device))            \
	X(primary_flags, cuDevicePrimaryCtxSetFlags_v2, (cuda_device, unsigned int))              \
	X(primary_retain, cuDevicePrimaryCtxRetain, (struct CUctx_st **, cuda_device))            \
	X(primary_release, cuDevicePrimaryCtxRelease_v2, (cuda_device))                           \
	X(context_set, cuCtxSetCurrent, (struct CUctx_st *))                                      \
	X(memory_info, cuMemGetInfo_v2, (size_t *, size_t *))                                     \
	X(memory_alloc, cuMemAlloc_v2, (cuda_address *, size_t))                                  \
	X(memory_free, cuMemFree_v2, (cuda_address))                                              \
	X(copy_to_device, cuMemcpyHtoD_v2, (cuda_address, const void *, size_t))                  \
	X(copy_to_host, cuMemcpyDtoH_v2, (void *, cuda_address, size_t))                          \
	X(memory_set, cuMemsetD8Async,                                                            \
	  (cuda_address, unsigned char, size_t, struct CUstream_st *))                            \
	X(stream_create, cuStreamCreate, (struct CUstream_st **, unsigned int))                   \
	X(stream_destroy, cuStreamDestroy_v2, (struct CUstream_st *))                             \
	X(stream_wait, cuStreamSynchronize, (struct CUstream_st *))                               \
	X(stream_query, cuStreamQuery, (struct CUstream_st *))                                    \
	X(event_create, cuEventCreate, (struct CUevent_st **, unsigned int))                      \
	X(event_destroy, cuEventDestroy_v2, (struct CUevent_st *))                                \
	X(event_record, cuEventRecord, (struct CUevent_st *, struct CUstream_st *))               \
	X(event_record_flags, cuEventRecordWithFlags,                                             \
	  (struct CUevent_st *, struct CUstream_st *, unsigned int))                              \
	X(event_elapsed, cuEventElapsedTime, (float *, struct CUevent_st *, struct CUevent_st *)) \
	X(capture_begin, cuStreamBeginCapture_v2, (struct CUstream_st *, int))                    \
	X(capture_end, cuStreamEndCapture, (struct CUstream_st *, struct CUgraph_st **))          \
	X(graph_instantiate, cuGraphInstantiateWithFlags,                                         \
	  (struct CUgraphExec_st **, struct CUgraph_st *, unsigned long long))                    \
	X(graph_destroy, cuGraphDestroy, (struct CUgraph_st *))                                   \
	X(graph_launch, cuGraphLaunch, (struct CUgraphExec_st *, struct CUstream_st *))           \
	X(graph_free, cuGraphExecDestroy, (struct CUgraphExec_st *))                              \
	X(module_load, cuModuleLoadData, (struct CUmod_st **, const void *))                      \
	X(module_unload, cuModuleUnload, (struct CUmod_st *))                                     \
	X(module_function, cuModuleGetFunction,                                                   \
	  (struct CUfunc_st **, struct CUmod_st *, const char *))                                 \
	X(launch, cuLaunchKernel,                                                                 \
	  (struct CUfunc_st *, unsigned int, unsigned int, unsigned int, unsigned int,            \
	   unsigned int, unsigned int, unsigned int, struct CUstream_st *, void **, void **))

struct cuda {
	void *library;
#define CUDA_MEMBER(member, symbol, parameters) cuda_result(*member) parameters;
	CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/*
 * Loads libcuda.so.1 (or the file in RINGSIDE_CUDA), resolves all functions, calls cuInit. 0; -1: *problem says in
 * one line what is missing and what to do.
 */
int cuda_open(struct cuda *cuda, char *problem, size_t problem_size);

/* "cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". Returns `problem`. */
const char *cuda_explain(const struct cuda *cuda, cuda_result result, const char *what,
			 char *problem, size_t problem_size);

/*
 * NCCL, loaded at run time: the loader's default or a given file, so that one binary can measure the system's NCCL,
 * PyTorch's, or a new build.
 */

typedef int nccl_result; /* 0 is success */
typedef int nccl_type;	 /* ncclDataType_t */
typedef int nccl_op;	 /* ncclRedOp_t */

enum { NCCL_UNIQUE_ID_BYTES = 128, NCCL_IN_PROGRESS = 7 };
struct nccl_unique_id {
	char bytes[NCCL_UNIQUE_ID_BYTES];
};

/* X(member, symbol, parameters): all return nccl_result. Present in every NCCL since 2.7. */
#define NCCL_FUNCTIONS(X)                                                                          \
	X(get_version, ncclGetVersion, (int *))                                                    \
	X(get_unique_id, ncclGetUniqueId, (struct nccl_unique_id *))                               \
	X(comm_init, ncclCommInitRank, (struct ncclComm **, int, struct nccl_unique_id, int))      \
	X(comm_destroy, ncclCommDestroy, (struct ncclComm *))                                      \
	X(comm_abort, ncclCommAbort, (struct ncclComm *))                                          \
	X(comm_async_error, ncclCommGetAsyncError, (struct ncclComm *, nccl_result *))             \
	X(group_start, ncclGroupStart, (void))                                                     \
	X(group_end, ncclGroupEnd, (void))                                                         \
	X(all_reduce, ncclAllReduce,                                                               \
	  (const void *, void *, size_t, nccl_type, nccl_op, struct ncclComm *,                    \
	   struct CUstream_st *))                                                                  \
	X(all_gather, ncclAllGather,                                                               \
	  (const void *, void *, size_t, nccl_type, struct ncclComm *, struct CUstream_st *))      \
	X(reduce_scatter, ncclReduceScatter,                                                       \
	  (const void *, void *, size_t, nccl_type, nccl_op, struct ncclComm *,                    \
	   struct CUstream_st *))                                                                  \
	X(broadcast, ncclBroadcast,                                                                \
	  (const void *, void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *)) \
	X(reduce, ncclReduce,                                                                      \
	  (const void *, void *, size_t, nccl_type, nccl_op, int, struct ncclComm *,               \
	   struct CUstream_st *))                                                                  \
	X(send, ncclSend,                                                                          \
	  (const void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *))         \
	X(recv, ncclRecv, (void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *))

/* Since 2.28, otherwise NULL: the benchmark then uses grouped Sends and Recvs and adds a note. */
#define NCCL_NEW_FUNCTIONS(X)                                                                      \
	X(all_to_all, ncclAlltoAll,                                                                \
	  (const void *, void *, size_t, nccl_type, struct ncclComm *, struct CUstream_st *))      \
	X(gather, ncclGather,                                                                      \
	  (const void *, void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *)) \
	X(scatter, ncclScatter,                                                                    \
	  (const void *, void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *))

struct nccl {
	void *library;
	int version;				      /* 22809 */
	char path[256];				      /* the file that was loaded */
	const char *(*error_text)(nccl_result);	      /* ncclGetErrorString */
	const char *(*last_error)(struct ncclComm *); /* ncclGetLastError since 2.13; can be NULL */
#define NCCL_MEMBER(member, symbol, parameters) nccl_result(*member) parameters;
	NCCL_FUNCTIONS(NCCL_MEMBER)
	NCCL_NEW_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
};

/*
 * Loads `path`; NULL: the file in RINGSIDE_NCCL, otherwise the loader's libnccl.so.2. 0; -1: *problem says in one
 * line what is missing and what to do.
 */
int nccl_open(struct nccl *nccl, const char *path, char *problem, size_t problem_size);

/* "ncclAllReduce failed: unhandled cuda error; NCCL says: ..." Returns `problem`. */
const char *nccl_explain(const struct nccl *nccl, nccl_result result, const char *what,
			 char *problem, size_t problem_size);

/* Converts our numbers (op_layout.h, bench_result.h) to NCCL's; -1: not supported by NCCL or by this release. */
nccl_type nccl_type_of(const struct nccl *nccl, unsigned int datatype);
nccl_op nccl_op_of(unsigned int redop);

/*
 * Two kernels that fill and check buffers on the GPU, in hand-written PTX that the driver compiles for any GPU since
 * 2014. They compare bits and know no types: the expected values are in tables made by the host (bench_plan.h), with
 * one 64-bit entry per element of any size. Element i belongs to entry (i + phase) mod period.
 *
 *	ringside_fill	uint64_t buffer		address, aligned to element_bytes
 *			uint64_t count		elements
 *			uint32_t element_bytes	1, 2, 4 or 8
 *			uint64_t table		address of `period` entries of uint64_t: an element's bits
 *			uint32_t period
 *			uint32_t phase		below period
 *
 *	ringside_check	uint64_t buffer
 *			uint64_t count
 *			uint32_t element_bytes
 *			uint64_t low		address of `period` entries of uint64_t
 *			uint64_t high		likewise
 *			uint32_t period
 *			uint32_t phase
 *			uint64_t counter	address of one uint64_t: incremented by the number of
 *						elements whose bits, as an unsigned number, are not in
 *						[low, high]
 *
 * kernelParams has pointers to these, in this order. One-dimensional grid and blocks, no shared memory.
 */

#define KERNEL_FILL "ringside_fill"
#define KERNEL_CHECK "ringside_check"

struct bench_kernels {
	struct CUmod_st *module;
	struct CUfunc_st *fill;
	struct CUfunc_st *check;
};

struct kernel_span {
	cuda_address buffer;
	uint64_t count;
	uint32_t element_bytes;
	uint32_t period;
	uint32_t phase;
	uint32_t blocks; /* of the grid; 0: automatic */
};

/* 0, or CUDA's error with the name of the function in *what. The context must be current. */
cuda_result kernels_load(struct bench_kernels *kernels, const struct cuda *cuda, const char **what);
void kernels_unload(struct bench_kernels *kernels, const struct cuda *cuda);

/* Enqueued on the stream; does nothing for a count of 0. */
cuda_result kernels_fill(const struct bench_kernels *kernels, const struct cuda *cuda,
			 struct CUstream_st *stream, const struct kernel_span *span,
			 cuda_address table);
cuda_result kernels_check(const struct bench_kernels *kernels, const struct cuda *cuda,
			  struct CUstream_st *stream, const struct kernel_span *span,
			  cuda_address low, cuda_address high, cuda_address counter);

#endif
