/* One rank: its GPU, streams, buffers and communicators. Any failure ends it, with the cause. */
#include "driver.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

enum { ID_WAIT_MS = 60 * 1000, MANY_RANKS = 4, CHANNELS_OF_MANY = 8 };

static uint64_t started_ns;
static int said_rank = -1;

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pause_us(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	if (us > 0)
		nanosleep(&time, NULL);
}

static void say_list(const char *format, va_list arguments)
{
	double elapsed = started_ns ? (double)(now_ns() - started_ns) / 1e9 : 0;

	fprintf(stderr, "[%7.2f s] rank %d: ", elapsed, said_rank);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	fflush(stderr);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_list(format, arguments);
	va_end(arguments);
}

/* Not exit(): the exit handlers of CUDA and NCCL may wait for ranks that will never come. */
void die(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_list(format, arguments);
	va_end(arguments);
	_exit(1);
}

void must_cuda(int result, const char *what)
{
	if (result != cudaSuccess)
		die("%s failed: %s (%s)", what, cudaGetErrorString((cudaError_t)result),
		    cudaGetErrorName((cudaError_t)result));
}

void must_nccl(int result, const char *what)
{
	if (result != ncclSuccess)
		die("%s failed: %s; NCCL says: %s", what, ncclGetErrorString((ncclResult_t)result),
		    ncclGetLastError(NULL));
}

static void pid_write(const struct options *options)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/pid-%d", options->out, options->rank);
	file = fopen(path, "w");
	if (!file)
		die("cannot write %s: %s", path, strerror(errno));
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
}

static size_t largest(const struct options *options)
{
	size_t bytes = options->big_bytes > (1 << 20) ? options->big_bytes : 1 << 20;

	for (int i = 0; i < options->size_count; i++)
		if (options->sizes[i] > bytes)
			bytes = options->sizes[i];
	return bytes;
}

void job_open(struct job *job, const struct options *options)
{
	memset(job, 0, sizeof(*job));
	job->options = *options;
	job->phase = "";
	started_ns = now_ns();
	said_rank = options->rank;
	pid_write(options);
	say("started, pid %d", (int)getpid());
	/* More spinning threads than cores would only compete. */
	if (options->ranks > MANY_RANKS)
		(void)cudaSetDeviceFlags(cudaDeviceScheduleYield);
	must_cuda(cudaSetDevice(0), "cudaSetDevice");
	must_cuda(cudaStreamCreateWithFlags(&job->stream, cudaStreamNonBlocking), "stream");
	must_cuda(cudaStreamCreateWithFlags(&job->other_stream, cudaStreamNonBlocking), "stream");
	must_cuda(cudaEventCreate(&job->before), "cudaEventCreate");
	must_cuda(cudaEventCreate(&job->after), "cudaEventCreate");
	must_cuda(cudaEventCreateWithFlags(&job->fork, cudaEventDisableTiming), "event");
	must_cuda(cudaEventCreateWithFlags(&job->join, cudaEventDisableTiming), "event");
	job->buffer_bytes = largest(options);
	must_cuda(cudaMalloc((void **)&job->send, job->buffer_bytes), "cudaMalloc");
	must_cuda(cudaMalloc((void **)&job->recv, job->buffer_bytes), "cudaMalloc");
	must_cuda(cudaMemset(job->send, 0, job->buffer_bytes), "cudaMemset");
	must_cuda(cudaMemset(job->recv, 0, job->buffer_bytes), "cudaMemset");
	must_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	say("GPU ready");
	log_open(job);
}

void job_close(struct job *job)
{
	log_close(job);
	must_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	say("done");
}

/* Rank 0's id reaches the others through a file that is created atomically. */
static void id_write(const char *path, const ncclUniqueId *id)
{
	char temporary[4200];
	FILE *file;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = fopen(temporary, "w");
	if (!file || fwrite(id, sizeof(*id), 1, file) != 1 || fclose(file) != 0)
		die("cannot write %s: %s", temporary, strerror(errno));
	if (rename(temporary, path) != 0)
		die("cannot rename %s: %s", temporary, strerror(errno));
}

static void id_read(const char *path, ncclUniqueId *id)
{
	struct timespec millisecond = { 0, 1000 * 1000 };

	for (int waited = 0; waited < ID_WAIT_MS; waited++) {
		FILE *file = fopen(path, "r");

		if (file) {
			size_t got = fread(id, sizeof(*id), 1, file);

			fclose(file);
			if (got == 1)
				return;
		}
		nanosleep(&millisecond, NULL);
	}
	die("rank 0 wrote no %s", path);
}

static struct communicator *communicator_new(struct job *job, const char *name)
{
	struct communicator *communicator = calloc(1, sizeof(*communicator));

	if (!communicator || job->comms_made == COMMS_MAX)
		die("no room for another communicator");
	snprintf(communicator->name, sizeof(communicator->name), "%s", name);
	job->all[job->comms_made] = communicator;
	communicator->order = ++job->comms_made;
	return communicator;
}

/* All ranks' kernels must fit on the one GPU at the same time, or they wait for each other. */
static ncclConfig_t config_of(const struct job *job, const struct communicator *communicator)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

	config.commName = communicator->name;
	/* Inside a node NCCL uses more channels: two communicators of two ranks do not fit. */
	if (job->options.ranks >= MANY_RANKS || getenv("NCCL_MULTI_RANK_GPU_ENABLE") != NULL)
		config.maxCTAs = CHANNELS_OF_MANY;
	return config;
}

static void communicator_ready(struct job *job, struct communicator *communicator)
{
	must_nccl(ncclCommUserRank(communicator->comm, &communicator->rank), "ncclCommUserRank");
	must_nccl(ncclCommCount(communicator->comm, &communicator->ranks), "ncclCommCount");
	log_communicator(job, communicator);
	say("communicator %d %s: rank %d of %d", communicator->order, communicator->name,
	    communicator->rank, communicator->ranks);
}

struct communicator *job_communicator(struct job *job, const char *name)
{
	struct communicator *communicator = communicator_new(job, name);
	ncclConfig_t config = config_of(job, communicator);
	ncclUniqueId id;
	char path[4096];

	snprintf(path, sizeof(path), "%s/id-%d", job->options.out, communicator->order);
	if (job->options.rank == 0) {
		must_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
		id_write(path, &id);
	} else {
		id_read(path, &id);
	}
	must_nccl(ncclCommInitRankConfig(&communicator->comm, job->options.ranks, id,
					 job->options.rank, &config),
		  "ncclCommInitRankConfig");
	communicator_ready(job, communicator);
	return communicator;
}

/*
 * Even and odd ranks separately if that leaves two each, and in reverse order, so that a child's rank never equals
 * the parent's by accident.
 */
struct communicator *job_split(struct job *job, struct communicator *parent, const char *name)
{
	struct communicator *communicator = communicator_new(job, name);
	ncclConfig_t config = config_of(job, communicator);
	int color = parent->ranks >= 4 ? parent->rank % 2 : 0;

	must_nccl(ncclCommSplit(parent->comm, color, parent->ranks - parent->rank,
				&communicator->comm, &config),
		  "ncclCommSplit");
	communicator_ready(job, communicator);
	return communicator;
}

/* The struct stays: NCCL keeps pointers to names, and children copy them. */
void job_destroy(struct job *job, struct communicator **communicator)
{
	(void)job;
	if (!*communicator)
		return;
	must_nccl(ncclCommDestroy((*communicator)->comm), "ncclCommDestroy");
	(*communicator)->comm = NULL;
	*communicator = NULL;
}
