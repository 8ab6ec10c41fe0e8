/*
 * Two jobs that run for some seconds. `steady`: one rank always arrives late, so that times of all calls can be
 * compared with those of a sample. `windows`: plain collectives, so that the plugin switches kernel events on and
 * off; then everything that desynchronizes NCCL's counters, in turn, --kinds (capture, self or broadcasts) first.
 * It must finish.
 */
#include "driver.h"

#include <string.h>

#include <cuda_runtime.h>
#include <nccl.h>

enum { FLAG_FLOATS = 1, LATE_US = 400, STEP_US = 200, STEPS_BETWEEN_FLAGS = 64 };
enum { GRAPHS_KEPT = 4, ROUNDS_MAX = 4000, CHILD_ROUNDS = 8, CHILDREN_MAX = 64, EAGER = 8 };
enum { ROUND_US = 5000, STEP_CALLS = 16 };

/* All ranks continue until rank 0's clock says otherwise, so all make the same calls. */
static int is_over(struct job *job, uint64_t end_ns)
{
	struct shape shape = shape_of(FLAG_FLOATS * sizeof(float), 0);
	float flag = job->options.rank == 0 && now_ns() >= end_ns ? 1.0f : 0.0f;

	must_cuda(cudaMemcpy(job->send, &flag, sizeof(flag), cudaMemcpyHostToDevice), "copy");
	must_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	style_sync(job, kind_find("allreduce"), &shape, 1, 0);
	must_cuda(cudaMemcpy(&flag, job->recv, sizeof(flag), cudaMemcpyDeviceToHost), "copy");
	return flag > 0.5f;
}

static uint64_t end_of(const struct job *job)
{
	return now_ns() + (uint64_t)job->options.seconds * 1000000000u;
}

int loop_steady(const struct options *options)
{
	struct shape large = shape_of(1 << 20, 0), small = shape_of(64 << 10, 0);
	uint64_t end_ns, fault_ns;
	struct job job;
	int steps = 0;

	job_open(&job, options);
	job.kind = "steady";
	job.style = "sync";
	job.main = job_communicator(&job, "steady");
	end_ns = end_of(&job);
	fault_ns = now_ns() + (uint64_t)options->fault_after * 1000000000u;
	do {
		for (int i = 0; i < STEPS_BETWEEN_FLAGS; i++, steps++) {
			int is_late = options->rank == options->victim && now_ns() >= fault_ns;

			pause_us(is_late ? LATE_US : STEP_US);
			style_sync(&job, kind_find("allreduce"), &large, 1, 0);
			style_sync(&job, kind_find("allgather"), &small, 1, 0);
		}
	} while (!is_over(&job, end_ns));
	say("%d steps", steps);
	log_write(&job);
	job_destroy(&job, &job.main);
	job_close(&job);
	return 0;
}

/* Sends to itself, from one buffer to the other: NCCL has no separate operation for these. */
static void issue_self(struct job *job, const struct shape *shape)
{
	size_t count = shape->bytes / shape->element_bytes;
	int self = job->main->rank;

	must_nccl(ncclGroupStart(), "ncclGroupStart");
	log_call(job, job->main, "Send", count, shape, -1, self);
	must_nccl(ncclSend(job->send, count, (ncclDataType_t)shape->type, self, job->main->comm,
			   job->stream),
		  "ncclSend");
	log_call(job, job->main, "Recv", count, shape, -1, self);
	must_nccl(ncclRecv(job->recv, count, (ncclDataType_t)shape->type, self, job->main->comm,
			   job->stream),
		  "ncclRecv");
	must_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

/* Every rank is root of one broadcast, all in one group: since 2.29 this is a special kernel. */
static void issue_broadcasts(struct job *job, const struct shape *shape)
{
	size_t count = shape->bytes / shape->element_bytes;

	must_nccl(ncclGroupStart(), "ncclGroupStart");
	for (int root = 0; root < job->main->ranks; root++) {
		char *at = job->recv + (size_t)root * shape->bytes;

		log_call(job, job->main, "Broadcast", count, shape, root, -1);
		must_nccl(ncclBroadcast(root == job->main->rank ? job->send : at, at, count,
					(ncclDataType_t)shape->type, root, job->main->comm,
					job->stream),
			  "ncclBroadcast");
	}
	must_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

static void issue_all(struct job *job, const struct shape *shape)
{
	kind_find("split")->issue(job, shape);
	kind_find("alltoall")->issue(job, shape);
	issue_broadcasts(job, shape);
}

static const struct kind self_kind = { "self", "windows", issue_self, 0, 0 };
static const struct kind broadcasts_kind = { "broadcasts", "windows", issue_broadcasts, 0, 0 };
static const struct kind all_kind = { "all", "windows", issue_all, 0, 0 };

static void child_renew(struct job *job, int round)
{
	char name[COMM_NAME_BYTES];

	if (round % CHILD_ROUNDS != 0 || round / CHILD_ROUNDS >= CHILDREN_MAX)
		return;
	job_destroy(job, &job->child);
	snprintf(name, sizeof(name), "windows-child-%d", round / CHILD_ROUNDS);
	job->child = job_split(job, job->main, name);
}

static void graphs_end(cudaGraphExec_t *graphs)
{
	for (int i = 0; i < GRAPHS_KEPT; i++) {
		if (graphs[i])
			must_cuda(cudaGraphExecDestroy(graphs[i]), "cudaGraphExecDestroy");
		graphs[i] = NULL;
	}
}

static void round_play(struct job *job, int round, cudaGraphExec_t *graphs)
{
	struct shape shape = shape_of(round % 2 ? 1 << 10 : 16 << 10, 0);
	cudaGraphExec_t *own = &graphs[round % GRAPHS_KEPT];
	size_t first, count;

	style_burst(job, kind_find("allreduce"), &shape, EAGER);
	if (*own)
		must_cuda(cudaGraphExecDestroy(*own), "cudaGraphExecDestroy");
	*own = style_capture(job, &all_kind, &shape, 1, &first, &count);
	style_replay(job, *own, first, count, 2, 1, 0);
	style_sync(job, &self_kind, &shape, 1, 0);
	style_replay(job, *own, first, count, 2, 0, 0);
	style_sync(job, &broadcasts_kind, &shape, 1, 0);
	style_burst(job, kind_find("split"), &shape, 2);
}

/* Half of the time: the plugin samples such calls. */
static void collectives_play(struct job *job)
{
	static const char *const names[] = { "allreduce", "allgather", "reducescatter" };
	uint64_t end_ns = now_ns() + (uint64_t)job->options.seconds * 500000000u;
	int step = 0;

	do {
		struct shape shape = shape_of(1024u << (step % 9), 0);
		const struct kind *kind = kind_find(names[step % 3]);

		style_sync(job, kind, &shape, STEP_CALLS, 0);
		style_burst(job, kind, &shape, STEP_CALLS);
		pause_us(ROUND_US);
		step++;
	} while (!is_over(job, end_ns));
	log_write(job);
}

int loop_windows(const struct options *options)
{
	cudaGraphExec_t graphs[GRAPHS_KEPT] = { NULL };
	struct shape first = shape_of(16 << 10, 0);
	uint64_t end_ns;
	struct job job;
	int round = 0;

	job_open(&job, options);
	job.kind = "windows";
	job.style = "mixed";
	job.main = job_communicator(&job, "windows");
	end_ns = end_of(&job);
	collectives_play(&job);
	if (strcmp(options->kinds, "self") == 0)
		style_sync(&job, &self_kind, &first, 2, 0);
	else if (strcmp(options->kinds, "broadcasts") == 0)
		style_sync(&job, &broadcasts_kind, &first, 2, 0);
	style_burst(&job, kind_find("allreduce"), &first, 4 * STEP_CALLS);
	do {
		if (round % CHILD_ROUNDS == 0) /* graphs of a child end before it */
			graphs_end(graphs);
		child_renew(&job, round);
		round_play(&job, round, graphs);
		log_write(&job);
		pause_us(ROUND_US); /* the duration of windows matters, not the number of calls */
	} while (++round < ROUNDS_MAX && !is_over(&job, end_ns));
	graphs_end(graphs);
	say("%d rounds; destroying", round);
	job_destroy(&job, &job.child);
	job_destroy(&job, &job.main);
	job_close(&job);
	return 0;
}
