/*
 * Jobs that hang or slow down for one known reason: doctor diagnoses them from outside. Rank --victim has the
 * fault. Ranks report by a file that they are ready, run their part and are ended from outside.
 */
#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>
#include <nccl.h>

enum { WARM_UPS = 10, AFTERWARDS = 20 };
enum { SMALL_BYTES = 4 << 20, LOOP_BYTES = 64 << 20, LINK_BYTES = 32 << 20, SHARE = 16 };

struct scene {
	const char *name;
	void (*play)(struct job *job);
};

static void all_reduce(struct job *job, const struct communicator *on, size_t bytes,
		       ncclDataType_t type, cudaStream_t stream)
{
	if (bytes > job->buffer_bytes)
		bytes = job->buffer_bytes;
	must_nccl(ncclAllReduce(job->send, job->recv, bytes / 4, type, ncclSum, on->comm, stream),
		  "ncclAllReduce");
}

static void wait_for(cudaStream_t stream)
{
	must_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

static int is_victim(const struct job *job)
{
	return job->options.rank == job->options.victim;
}

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

/* One rank does not make the call that all others are in. */
static void play_skip(struct job *job)
{
	if (is_victim(job))
		wait_for_ever();
	all_reduce(job, job->main, SMALL_BYTES, ncclFloat32, job->stream);
	wait_for(job->stream);
}

/*
 * One rank uses a much smaller count, finishes, and is alone in its next call. If the counts are close to each
 * other, NCCL over sockets finishes, with wrong results.
 */
static void play_size(struct job *job)
{
	size_t bytes = job->buffer_bytes;

	all_reduce(job, job->main, is_victim(job) ? bytes / SHARE : bytes, ncclFloat32,
		   job->stream);
	wait_for(job->stream);
	all_reduce(job, job->main, bytes, ncclFloat32, job->stream);
	wait_for(job->stream);
}

/* The same number of bytes: NCCL notices nothing and adds integers to floats. */
static void play_datatype(struct job *job)
{
	all_reduce(job, job->main, SMALL_BYTES, is_victim(job) ? ncclInt32 : ncclFloat32,
		   job->stream);
	for (int i = 0; i < AFTERWARDS; i++)
		all_reduce(job, job->main, SMALL_BYTES, ncclFloat32, job->stream);
	wait_for(job->stream);
}

/* Until a signal from outside stops or kills one of them. */
static void play_loop(struct job *job)
{
	for (;;) {
		all_reduce(job, job->main, LOOP_BYTES, ncclFloat32, job->stream);
		wait_for(job->stream);
	}
}

/* One rank reads its sockets slowly: shim/slow_reader.c is loaded into it. Or none, for comparison. */
static void play_link(struct job *job)
{
	for (;;) {
		all_reduce(job, job->main, LINK_BYTES, ncclFloat32, job->stream);
		wait_for(job->stream);
	}
}

static void CUDART_CB block(void *unused)
{
	(void)unused;
	wait_for_ever();
}

/* One rank's stream is blocked before its kernel by something that does not end. */
static void play_gpu(struct job *job)
{
	if (is_victim(job))
		must_cuda(cudaLaunchHostFunc(job->stream, block, NULL), "cudaLaunchHostFunc");
	all_reduce(job, job->main, SMALL_BYTES, ncclFloat32, job->stream);
	wait_for(job->stream);
}

/*
 * Ranks 0 and 1 use two communicators in opposite order, each waiting for the first one before using the second.
 * The others are in both.
 */
static void play_deadlock(struct job *job)
{
	int rank = job->options.rank;
	struct communicator *first = rank == 1 ? job->other : job->main;
	struct communicator *second = rank == 1 ? job->main : job->other;

	all_reduce(job, first, SMALL_BYTES, ncclFloat32, job->stream);
	if (rank < 2)
		wait_for(job->stream);
	all_reduce(job, second, SMALL_BYTES, ncclFloat32, job->other_stream);
	wait_for(job->stream);
	wait_for(job->other_stream);
}

static const struct scene scenes[] = {
	{ "skip", play_skip }, { "size", play_size }, { "datatype", play_datatype },
	{ "stop", play_loop }, { "kill", play_loop }, { "link", play_link },
	{ "calm", play_link }, { "gpu", play_gpu },   { "deadlock", play_deadlock },
};

static const struct scene *scene_find(const char *name)
{
	for (size_t i = 0; name && i < sizeof(scenes) / sizeof(*scenes); i++)
		if (strcmp(scenes[i].name, name) == 0)
			return &scenes[i];
	die("unknown scene '%s'", name ? name : "");
}

static void ready_write(const struct options *options)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/ready-%d", options->out, options->rank);
	file = fopen(path, "w");
	if (!file || fclose(file) != 0)
		die("cannot write %s: %s", path, strerror(errno));
}

int hang_run(const struct options *options)
{
	struct job job;
	const struct scene *scene;

	job_open(&job, options);
	scene = scene_find(options->scene);
	job.main = job_communicator(&job, "first");
	job.other = job_communicator(&job, "second");
	for (int i = 0; i < WARM_UPS; i++) {
		all_reduce(&job, job.main, SMALL_BYTES, ncclFloat32, job.stream);
		wait_for(job.stream);
		all_reduce(&job, job.other, SMALL_BYTES, ncclFloat32, job.other_stream);
		wait_for(job.other_stream);
	}
	say("runs %s", scene->name);
	ready_write(options);
	scene->play(&job);
	say("has finished its part");
	wait_for_ever();
	return 1;
}
