#include "common/op.h"
#include "common/op_layout.h"
#include "programs/bench/bench_inside.h"

/* Where this rank's data lies in this cell. */
struct issue_place {
	const char *send;
	char *recv;
	uint64_t part_bytes; /* from one rank's part to the next */
	nccl_type type;
	nccl_op op;
};

static void *pointer_of(cuda_address address)
{
	return (void *)(uintptr_t)address;
}

static struct issue_place place_of(const struct job_cell *work)
{
	const struct bench_job *job = work->job;
	uint64_t element_bytes = op_datatype_bytes(work->cell.datatype);
	cuda_address recv = job->recv_memory + JOB_GUARD_BYTES;
	cuda_address send = work->cell.is_in_place ? recv : job->send_memory + JOB_GUARD_BYTES;

	return (struct issue_place){
		.send = pointer_of(send + work->layout.send_at * element_bytes),
		.recv = pointer_of(recv + work->layout.recv_at * element_bytes),
		.part_bytes = work->layout.count * element_bytes,
		.type = nccl_type_of(&job->nccl, work->cell.datatype),
		.op = nccl_op_of(work->cell.redop),
	};
}

bool issue_is_grouped(const struct bench_job *job, uint8_t function)
{
	switch (function) {
	case OP_ALL_TO_ALL:
		return job->nccl.all_to_all == NULL;
	case OP_GATHER:
		return job->nccl.gather == NULL;
	case OP_SCATTER:
		return job->nccl.scatter == NULL;
	default:
		return false;
	}
}

static nccl_result send_to(const struct job_cell *work, const struct issue_place *place, int peer,
			   uint64_t offset)
{
	const struct bench_job *job = work->job;

	return job->nccl.send(place->send + offset, work->layout.count, place->type, peer,
			      job->comm, job->stream);
}

static nccl_result recv_from(const struct job_cell *work, const struct issue_place *place, int peer,
			     uint64_t offset)
{
	const struct bench_job *job = work->job;

	return job->nccl.recv(place->recv + offset, work->layout.count, place->type, peer,
			      job->comm, job->stream);
}

/* A part to and from every rank, as far as the function has them. */
static nccl_result parts_move(const struct job_cell *work, const struct issue_place *place)
{
	const struct bench_cell *cell = &work->cell;
	int rank = work->job->place->rank, root = cell->root;
	nccl_result result = 0;

	for (int peer = 0; peer < cell->nranks && result == 0; peer++) {
		uint64_t at = (uint64_t)peer * place->part_bytes;
		bool sends = cell->function == OP_ALL_TO_ALL ||
			     (cell->function == OP_SCATTER && rank == root);
		bool receives = cell->function == OP_ALL_TO_ALL ||
				(cell->function == OP_GATHER && rank == root);

		if (sends)
			result = send_to(work, place, peer, at);
		if (receives && result == 0)
			result = recv_from(work, place, peer, at);
	}
	if (cell->function == OP_GATHER && result == 0)
		result = send_to(work, place, root, 0);
	if (cell->function == OP_SCATTER && result == 0)
		result = recv_from(work, place, root, 0);
	return result;
}

static nccl_result exchange(const struct job_cell *work, const struct issue_place *place)
{
	int rank = work->job->place->rank;
	nccl_result result;

	result = send_to(work, place, layout_send_peer(&work->cell, rank), 0);
	if (result == 0)
		result = recv_from(work, place, layout_recv_peer(&work->cell, rank), 0);
	return result;
}

static nccl_result group(const struct job_cell *work, const struct issue_place *place,
			 const char **what)
{
	const struct nccl *nccl = &work->job->nccl;
	nccl_result result, end;

	*what = "ncclGroupStart";
	result = nccl->group_start();
	if (result)
		return result;
	*what = "ncclSend or ncclRecv";
	result = work->cell.function == OP_SEND_RECV ? exchange(work, place)
						     : parts_move(work, place);
	end = nccl->group_end();
	if (result)
		return result;
	*what = "ncclGroupEnd";
	return end;
}

static nccl_result issue_collective(const struct job_cell *work, const struct issue_place *p,
				    const char **what)
{
	const struct bench_job *job = work->job;
	const struct nccl *nccl = &job->nccl;
	uint64_t count = work->layout.count;
	int root = work->cell.root;

	*what = op_function_name(work->cell.function);
	switch (work->cell.function) {
	case OP_ALL_REDUCE:
		return nccl->all_reduce(p->send, p->recv, count, p->type, p->op, job->comm,
					job->stream);
	case OP_ALL_GATHER:
		return nccl->all_gather(p->send, p->recv, count, p->type, job->comm, job->stream);
	case OP_REDUCE_SCATTER:
		return nccl->reduce_scatter(p->send, p->recv, count, p->type, p->op, job->comm,
					    job->stream);
	case OP_BROADCAST:
		return nccl->broadcast(p->send, p->recv, count, p->type, root, job->comm,
				       job->stream);
	case OP_REDUCE:
		return nccl->reduce(p->send, p->recv, count, p->type, p->op, root, job->comm,
				    job->stream);
	case OP_ALL_TO_ALL:
		return nccl->all_to_all(p->send, p->recv, count, p->type, job->comm, job->stream);
	case OP_GATHER:
		return nccl->gather(p->send, p->recv, count, p->type, root, job->comm, job->stream);
	default:
		return nccl->scatter(p->send, p->recv, count, p->type, root, job->comm,
				     job->stream);
	}
}

nccl_result issue_call(const struct job_cell *work, const char **what)
{
	struct issue_place place = place_of(work);

	if (!work->takes_part)
		return 0;
	if (work->cell.function == OP_SEND_RECV || issue_is_grouped(work->job, work->cell.function))
		return group(work, &place, what);
	return issue_collective(work, &place, what);
}

nccl_result issue_align(const struct bench_job *job, const char **what)
{
	void *one = pointer_of(job->one);

	*what = "AllReduce of one element";
	return job->nccl.all_reduce(one, one, 1, nccl_type_of(&job->nccl, OP_INT32),
				    nccl_op_of(BENCH_MAX), job->comm, job->stream);
}
