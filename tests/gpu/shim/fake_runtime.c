/*
 * The CUDA runtime and the rest of NCCL on top of tests/fake_gpu, as far as the driver uses them: with this all of
 * tests/gpu runs on a host without a GPU. Built as libcudart.so by tests/gpu/test_matrix.py.
 *
 * Ranks of a split find each other through files in FAKE_RUNTIME_DIR.
 */
#include <cuda_runtime.h>
#include <nccl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fake_gpu/fake_stream.h"

enum { STREAMS_MAX = 16, EVENTS_MAX = 64, COMMS_MAX = 512, RANKS_MAX = 64, PATH_BYTES = 512 };
enum { OUT_OF_ROOM = 2 };

int cuInit(unsigned int flags);
int cuGetErrorName(int result, const char **name);
int cuGetErrorString(int result, const char **text);
int cuDriverGetVersion(int *version);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuStreamCreate(cudaStream_t *stream, unsigned int flags);
int cuStreamSynchronize(cudaStream_t stream);
int cuStreamBeginCapture_v2(cudaStream_t stream, int mode);
int cuStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
int cuEventCreate(cudaEvent_t *event, unsigned int flags);
int cuEventRecord(cudaEvent_t event, cudaStream_t stream);
int cuEventElapsedTime(float *ms, cudaEvent_t before, cudaEvent_t after);
int cuGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
int cuGraphDestroy(cudaGraph_t graph);
int cuGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
int cuGraphExecDestroy(cudaGraphExec_t exec);
int ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);

static cudaStream_t streams[STREAMS_MAX];
static int stream_count;
/* For cudaStreamWaitEvent: where an event was last recorded. */
static struct {
	cudaEvent_t event;
	cudaStream_t stream;
} recorded[EVENTS_MAX];
static struct known_comm {
	ncclComm_t comm;
	int rank;
	int ranks;
	int splits;
	unsigned long long hash;
} comms[COMMS_MAX];
static int comm_count;

/* ---- CUDA ------------------------------------------------------------------------------------ */

static int context_use(void)
{
	static void *context;
	int device = 0, result;

	if (!context) {
		result = cuInit(0);
		if (result == 0)
			result = cuDeviceGet(&device, 0);
		if (result == 0)
			result = cuDevicePrimaryCtxRetain(&context, device);
		if (result != 0)
			return result;
	}
	return cuCtxSetCurrent(context);
}

const char *cudaGetErrorName(cudaError_t error)
{
	const char *name = NULL;

	return cuGetErrorName(error, &name) == 0 && name ? name : "unknown";
}

const char *cudaGetErrorString(cudaError_t error)
{
	const char *text = NULL;

	return cuGetErrorString(error, &text) == 0 && text ? text : "unknown";
}

cudaError_t cudaDriverGetVersion(int *version)
{
	int result = context_use();

	return result ? result : cuDriverGetVersion(version);
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = 0;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *device, int ordinal)
{
	(void)ordinal;
	memset(device, 0, sizeof(*device));
	snprintf(device->name, sizeof(device->name), "no GPU");
	return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	(void)flags;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal)
{
	(void)ordinal;
	return context_use();
}

cudaError_t cudaDeviceSynchronize(void)
{
	for (int i = 0; i < stream_count; i++) {
		int result = cuStreamSynchronize(streams[i]);

		if (result != 0)
			return result;
	}
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	uint64_t address = 0;
	int result = cuMemAlloc_v2(&address, bytes);

	*memory = (void *)(uintptr_t)address;
	return result;
}

cudaError_t cudaFree(void *memory)
{
	return cuMemFree_v2((uint64_t)(uintptr_t)memory);
}

/* Device memory is host memory there. */
cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
	memset(memory, value, bytes);
	return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyHostToDevice
		       ? cuMemcpyHtoD_v2((uint64_t)(uintptr_t)to, from, bytes)
		       : cuMemcpyDtoH_v2(to, (uint64_t)(uintptr_t)from, bytes);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	int result = cuStreamCreate(stream, flags);

	if (result == 0 && stream_count == STREAMS_MAX)
		return OUT_OF_ROOM;
	if (result == 0)
		streams[stream_count++] = *stream;
	return result;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return cuStreamSynchronize(stream);
}

/* The host waits instead of the stream: stricter than CUDA, and sufficient for the driver. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	(void)stream, (void)flags;
	for (int i = 0; i < EVENTS_MAX; i++)
		if (recorded[i].event == event)
			return cuStreamSynchronize(recorded[i].stream);
	return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	return cuStreamBeginCapture_v2(stream, (int)mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	return cuStreamEndCapture(stream, graph);
}

struct host_call {
	cudaHostFn_t function;
	void *data;
};

static int host_call_run(void *arg, cudaStream_t stream)
{
	struct host_call *call = arg;

	(void)stream;
	call->function(call->data);
	return 0;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
	struct host_call *call = malloc(sizeof(*call));
	struct fake_work work = { host_call_run, free, call };

	if (!call)
		return OUT_OF_ROOM;
	*call = (struct host_call){ function, data };
	return fake_stream_add(stream, &work);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cuEventCreate(event, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	return cuEventCreate(event, flags);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	for (int i = 0; i < EVENTS_MAX; i++) {
		if (recorded[i].event && recorded[i].event != event)
			continue;
		recorded[i].event = event;
		recorded[i].stream = stream;
		break;
	}
	return cuEventRecord(event, stream);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t before, cudaEvent_t after)
{
	return cuEventElapsedTime(ms, before, after);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags)
{
	return cuGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	return cuGraphDestroy(graph);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return cuGraphLaunch(exec, stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	return cuGraphExecDestroy(exec);
}

/* ---- NCCL ------------------------------------------------------------------------------------ */

static struct known_comm *comm_find(ncclComm_t comm)
{
	for (int i = comm_count - 1; i >= 0; i--)
		if (comms[i].comm == comm)
			return &comms[i];
	return NULL;
}

static unsigned long long id_hash(const ncclUniqueId *id)
{
	unsigned long long hash = 1469598103934665603u;

	for (size_t i = 0; i < sizeof(id->internal) && id->internal[i]; i++)
		hash = (hash ^ (unsigned char)id->internal[i]) * 1099511628211u;
	return hash;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	ncclResult_t result = ncclCommInitRank(comm, ranks, id, rank);

	(void)config;
	if (result == ncclSuccess && comm_count == COMMS_MAX)
		return (ncclResult_t)OUT_OF_ROOM;
	if (result == ncclSuccess)
		comms[comm_count++] = (struct known_comm){ *comm, rank, ranks, 0, id_hash(&id) };
	return result;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	*rank = comm_find(comm)->rank;
	return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *ranks)
{
	*ranks = comm_find(comm)->ranks;
	return ncclSuccess;
}

static void file_write(const char *path, const void *data, size_t bytes)
{
	char temporary[PATH_BYTES + 16];
	FILE *file;

	snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid());
	file = fopen(temporary, "w");
	if (!file || fwrite(data, bytes, 1, file) != 1 || fclose(file) != 0 ||
	    rename(temporary, path) != 0)
		abort();
}

static void file_read(const char *path, void *data, size_t bytes)
{
	struct timespec millisecond = { 0, 1000 * 1000 };
	FILE *file;

	while (!(file = fopen(path, "r")))
		nanosleep(&millisecond, NULL);
	if (fread(data, bytes, 1, file) != 1)
		abort();
	fclose(file);
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t *comm,
			   ncclConfig_t *config)
{
	struct known_comm *known = comm_find(parent);
	const char *directory = getenv("FAKE_RUNTIME_DIR");
	char base[PATH_BYTES / 2], path[PATH_BYTES];
	int own[2] = { color, key }, rank = 0, ranks = 0;
	ncclUniqueId id;

	/* Ids repeat within a process; all ranks create their communicators in the same order. */
	snprintf(base, sizeof(base), "%s/split-%llx-%d-%d", directory ? directory : "/tmp",
		 known->hash, (int)(known - comms), known->splits++);
	snprintf(path, sizeof(path), "%s-%d", base, known->rank);
	file_write(path, own, sizeof(own));
	for (int other = 0; other < known->ranks; other++) {
		int theirs[2];

		snprintf(path, sizeof(path), "%s-%d", base, other);
		file_read(path, theirs, sizeof(theirs));
		if (theirs[0] != color)
			continue;
		ranks++;
		rank += theirs[1] < key || (theirs[1] == key && other < known->rank);
	}
	snprintf(path, sizeof(path), "%s-id-%d", base, color);
	if (rank == 0) {
		ncclGetUniqueId(&id);
		file_write(path, &id, sizeof(id));
	} else {
		file_read(path, &id, sizeof(id));
	}
	return ncclCommInitRankConfig(comm, ranks, id, rank, config);
}
