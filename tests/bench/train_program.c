/*
 * Looks like a PyTorch training to NCCL, without PyTorch: linked with NCCL, started through a fake python3. Takes
 * the same arguments as src/bench/densenet.py and writes the same file. Each step is one AllReduce; each epoch
 * starts with a Broadcast.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench_gpu.h"

#define DECLARE_NCCL(member, symbol, parameters) nccl_result symbol parameters;
NCCL_FUNCTIONS(DECLARE_NCCL)
#define DECLARE_CUDA(member, symbol, parameters) cuda_result symbol parameters;
CUDA_FUNCTIONS(DECLARE_CUDA)

enum { FLOAT32 = 7, SUM = 0, COUNT = 4096, EPOCHS_MAX = 32 };

static struct {
	int rank, ranks, epochs, steps;
	const char *out;
	struct ncclComm *comm;
	struct CUstream_st *stream;
	void *buffer;
} train;

static void need(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s failed: %d\n", what, result);
	exit(1);
}

static uint64_t now_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Rank 0 writes it to a file atomically, and the others wait for the file. */
static void share_id(struct nccl_unique_id *id)
{
	char path[4096], part[4200];
	FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/id", train.out);
	snprintf(part, sizeof(part), "%s.part", path);
	if (train.rank == 0) {
		need(ncclGetUniqueId(id), "ncclGetUniqueId");
		file = fopen(part, "w");
		need(file == NULL || fwrite(id, sizeof(*id), 1, file) != 1 || fclose(file) != 0 ||
			     rename(part, path) != 0,
		     "sharing the id");
		return;
	}
	for (int i = 0; i < 2000 && (file = fopen(path, "r")) == NULL; i++)
		usleep(5000);
	need(file == NULL || fread(id, sizeof(*id), 1, file) != 1 || fclose(file) != 0,
	     "reading the id");
}

static void begin(void)
{
	struct nccl_unique_id id;
	struct CUctx_st *context;
	cuda_address address;

	need(cuInit(0), "cuInit");
	need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	need(cuStreamCreate(&train.stream, CUDA_STREAM_NON_BLOCKING), "cuStreamCreate");
	need(cuMemAlloc_v2(&address, COUNT * 4), "cuMemAlloc");
	train.buffer = (void *)(uintptr_t)address;
	share_id(&id);
	need(ncclCommInitRank(&train.comm, train.ranks, id, train.rank), "ncclCommInitRank");
}

static void epoch(FILE *file, int number)
{
	uint64_t begin_ns = now_ns(CLOCK_REALTIME), began = now_ns(CLOCK_MONOTONIC);

	need(ncclBroadcast(train.buffer, train.buffer, COUNT, FLOAT32, 0, train.comm, train.stream),
	     "ncclBroadcast");
	for (int i = 0; i < train.steps; i++)
		need(ncclAllReduce(train.buffer, train.buffer, COUNT, FLOAT32, SUM, train.comm,
				   train.stream),
		     "ncclAllReduce");
	need(cuStreamSynchronize(train.stream), "cuStreamSynchronize");
	fprintf(file, "%s{\"begin_ns\": %" PRIu64 ", \"ns\": %" PRIu64 "}", number ? ", " : "",
		begin_ns, now_ns(CLOCK_MONOTONIC) - began);
}

static int number_after(int argc, char **argv, const char *name)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return (int)strtol(argv[i + 1], NULL, 10);
	return 0;
}

int main(int argc, char **argv)
{
	char path[4200];
	FILE *file;

	train.rank = (int)strtol(getenv("RANK"), NULL, 10);
	train.ranks = (int)strtol(getenv("WORLD_SIZE"), NULL, 10);
	train.epochs = number_after(argc, argv, "--epochs");
	train.steps = number_after(argc, argv, "--steps");
	train.out = argv[3];
	if (getenv("MASTER_ADDR") == NULL || getenv("MASTER_PORT") == NULL || argc < 12)
		return 3;
	begin();
	snprintf(path, sizeof(path), "%s/train-%d.json", train.out, train.rank);
	file = fopen(path, "w");
	need(file == NULL, "opening the results");
	fprintf(file,
		"{\"rank\": %d, \"ranks\": %d, \"pid\": %d, \"gpu\": \"Fake GPU\", \"parameters\": "
		"7978856, "
		"\"steps\": %d, \"torch\": \"none\", \"nccl\": \"2.28.9\", \"epochs\": [",
		train.rank, train.ranks, (int)getpid(), train.steps);
	for (int i = 0; i < train.epochs; i++)
		epoch(file, i);
	fprintf(file, "]}");
	need(fclose(file), "writing the results");
	need(ncclCommDestroy(train.comm), "ncclCommDestroy");
	return 0;
}
