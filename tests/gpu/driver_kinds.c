/* The kinds of calls. Each makes one step on the job's communicators and logs it. */
#include "driver.h"

#include <string.h>

#include <cuda_runtime.h>
#include <nccl.h>

struct shape shape_of(size_t bytes, int is_uint8)
{
	struct shape shape = { bytes, ncclFloat32, 4, "float32" };

	if (is_uint8) {
		shape.type = ncclUint8;
		shape.element_bytes = 1;
		shape.type_name = "uint8";
	}
	return shape;
}

static void all_reduce_on(struct job *job, struct communicator *on, const struct shape *shape,
			  cudaStream_t stream)
{
	size_t count = shape->bytes / shape->element_bytes;

	log_call(job, on, "AllReduce", count, shape, -1, -1);
	must_nccl(ncclAllReduce(job->send, job->recv, count, (ncclDataType_t)shape->type, ncclSum,
				on->comm, stream),
		  "ncclAllReduce");
}

static void all_gather_on(struct job *job, struct communicator *on, const struct shape *shape,
			  cudaStream_t stream)
{
	size_t count = shape->bytes / shape->element_bytes / (size_t)on->ranks;

	log_call(job, on, "AllGather", count, shape, -1, -1);
	must_nccl(ncclAllGather(job->send, job->recv, count, (ncclDataType_t)shape->type, on->comm,
				stream),
		  "ncclAllGather");
}

static void broadcast_on(struct job *job, struct communicator *on, const struct shape *shape)
{
	size_t count = shape->bytes / shape->element_bytes;
	int root = on->ranks - 1;

	log_call(job, on, "Broadcast", count, shape, root, -1);
	must_nccl(ncclBroadcast(job->send, job->recv, count, (ncclDataType_t)shape->type, root,
				on->comm, job->stream),
		  "ncclBroadcast");
}

static void issue_all_reduce(struct job *job, const struct shape *shape)
{
	all_reduce_on(job, job->main, shape, job->stream);
}

static void issue_all_gather(struct job *job, const struct shape *shape)
{
	all_gather_on(job, job->main, shape, job->stream);
}

static void issue_broadcast(struct job *job, const struct shape *shape)
{
	broadcast_on(job, job->main, shape);
}

static void issue_reduce_scatter(struct job *job, const struct shape *shape)
{
	size_t count = shape->bytes / shape->element_bytes / (size_t)job->main->ranks;

	log_call(job, job->main, "ReduceScatter", count, shape, -1, -1);
	must_nccl(ncclReduceScatter(job->send, job->recv, count, (ncclDataType_t)shape->type,
				    ncclSum, job->main->comm, job->stream),
		  "ncclReduceScatter");
}

static void issue_reduce(struct job *job, const struct shape *shape)
{
	size_t count = shape->bytes / shape->element_bytes;
	int root = job->main->ranks - 1;

	log_call(job, job->main, "Reduce", count, shape, root, -1);
	must_nccl(ncclReduce(job->send, job->recv, count, (ncclDataType_t)shape->type, ncclSum,
			     root, job->main->comm, job->stream),
		  "ncclReduce");
}

static void send_to(struct job *job, const struct shape *shape, size_t count, int peer, int part)
{
	const char *from = job->send + (size_t)part * count * shape->element_bytes;

	log_call(job, job->main, "Send", count, shape, -1, peer);
	must_nccl(ncclSend(from, count, (ncclDataType_t)shape->type, peer, job->main->comm,
			   job->stream),
		  "ncclSend");
}

static void recv_from(struct job *job, const struct shape *shape, size_t count, int peer, int part)
{
	char *to = job->recv + (size_t)part * count * shape->element_bytes;

	log_call(job, job->main, "Recv", count, shape, -1, peer);
	must_nccl(ncclRecv(to, count, (ncclDataType_t)shape->type, peer, job->main->comm,
			   job->stream),
		  "ncclRecv");
}

/* Around the ring: to the next rank, from the previous one. */
static void issue_send_recv(struct job *job, const struct shape *shape)
{
	size_t count = shape->bytes / shape->element_bytes;
	int rank = job->main->rank, ranks = job->main->ranks;

	must_nccl(ncclGroupStart(), "ncclGroupStart");
	send_to(job, shape, count, (rank + 1) % ranks, 0);
	recv_from(job, shape, count, (rank + ranks - 1) % ranks, 0);
	must_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

/*
 * To all ranks, including itself: NCCL does not count its own part as the GPU does, and from then on the GPU's
 * timestamps belong to other operations.
 */
static void issue_all_to_all(struct job *job, const struct shape *shape)
{
	int ranks = job->main->ranks;
	size_t count = shape->bytes / shape->element_bytes / (size_t)ranks;

	must_nccl(ncclGroupStart(), "ncclGroupStart");
	for (int peer = 0; peer < ranks; peer++) {
		send_to(job, shape, count, peer, peer);
		recv_from(job, shape, count, peer, peer);
	}
	must_nccl(ncclGroupEnd(), "ncclGroupEnd");
}

/* One group over two communicators, each with its stream. In a graph they share one. */
static void issue_two_comms(struct job *job, const struct shape *shape)
{
	cudaStream_t second = job->is_capturing ? job->stream : job->other_stream;

	if (!job->is_capturing) {
		must_cuda(cudaEventRecord(job->fork, job->stream), "cudaEventRecord");
		must_cuda(cudaStreamWaitEvent(second, job->fork, 0), "cudaStreamWaitEvent");
	}
	must_nccl(ncclGroupStart(), "ncclGroupStart");
	all_reduce_on(job, job->main, shape, job->stream);
	all_gather_on(job, job->other, shape, second);
	must_nccl(ncclGroupEnd(), "ncclGroupEnd");
	if (!job->is_capturing) {
		must_cuda(cudaEventRecord(job->join, second), "cudaEventRecord");
		must_cuda(cudaStreamWaitEvent(job->stream, job->join, 0), "cudaStreamWaitEvent");
	}
}

/* On the child and on its parent. */
static void issue_split(struct job *job, const struct shape *shape)
{
	all_reduce_on(job, job->child, shape, job->stream);
	broadcast_on(job, job->child, shape);
	all_reduce_on(job, job->main, shape, job->stream);
}

const struct kind kinds[] = {
	{ "allreduce", "collectives", issue_all_reduce, 1, 0 },
	{ "allgather", "collectives", issue_all_gather, 0, 0 },
	{ "reducescatter", "collectives", issue_reduce_scatter, 0, 0 },
	{ "broadcast", "collectives", issue_broadcast, 0, 0 },
	{ "reduce", "collectives", issue_reduce, 0, 0 },
	{ "sendrecv", "sendrecv", issue_send_recv, 1, 0 },
	{ "alltoall", "alltoall", issue_all_to_all, 0, 1 },
	{ "twocomms", "twocomms", issue_two_comms, 0, 0 },
	{ "split", "split", issue_split, 0, 0 },
};
const size_t kind_count = sizeof(kinds) / sizeof(*kinds);

const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < kind_count; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}
