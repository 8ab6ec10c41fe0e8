/*
 * CUDA's driver, opened when the benchmark runs: nothing of CUDA is needed to build, and one program
 * fits all CUDA releases. Own declarations of what of libcuda.so.1 is used; its ABI is stable, new
 * forms of a function get a new name (_v2).
 */
#ifndef CUDA_OPEN_H
#define CUDA_OPEN_H

#include <stddef.h>
#include <stdint.h>

typedef int cuda_result; /* 0 is success */
typedef int cuda_device;
typedef uint64_t cuda_address; /* CUdeviceptr */
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUmod_st;
struct CUfunc_st;

enum {
	CUDA_NOT_READY = 600,
	CUDA_STREAM_NON_BLOCKING = 1,
	CUDA_EVENT_DEFAULT = 0,
	CUDA_EVENT_DISABLE_TIMING = 2,
	CUDA_EVENT_RECORD_EXTERNAL = 1, /* a real event inside a graph, not a dependency */
	CUDA_CAPTURE_THREAD_LOCAL = 1,
	CUDA_SCHEDULE_YIELD = 2,
	CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
	CUDA_P2P_ACCESS_SUPPORTED = 2,
};

struct cuda_uuid {
	unsigned char bytes[16];
};

/* Every function the benchmark calls: return type is cuda_result. X(member, symbol, parameters). */
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

/* Open libcuda.so.1 (or what RINGSIDE_CUDA names), take all functions, call cuInit. 0; -1: *problem says in
 * one line what is missing and what to do. */
int cuda_open(struct cuda *cuda, char *problem, size_t problem_size);

/* "cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". Gives back `problem`. */
const char *cuda_explain(const struct cuda *cuda, cuda_result result, const char *what,
			 char *problem, size_t problem_size);

#endif
