/* Collectives: each rank reduces its part of the data, in a ring's order, and sends it to those that need it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"
#include "tests/fake_gpu/fake_kernel_run.h"
#include "tests/fake_gpu/fake_number.h"

struct moving {
	const struct fake_call *call;
	size_t width;			 /* bytes of an element */
	struct fake_transfer *transfers; /* room for a send and a receive per rank */
	size_t count;
	unsigned int phase;
	uint64_t *ready_ns;
};

static void transfer_add(struct moving *moving, bool is_send, int peer, void *bytes, size_t length)
{
	moving->transfers[moving->count++] = (struct fake_transfer){
		.peer = peer,
		.is_send = is_send,
		.bytes = bytes,
		.length = length,
		.what = (uint32_t)moving->call->function << 8 | moving->phase,
	};
}

static int transfers_run(struct moving *moving)
{
	const struct ncclComm *comm = moving->call->comm;
	size_t count = moving->count;

	moving->count = 0;
	moving->phase++;
	return fake_wire_move(comm->wire, moving->transfers, count, &comm->is_aborted,
			      moving->ready_ns);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* The elements that rank `rank` reduces. */
struct part {
	size_t first;
	size_t count;
};

static struct part part_of(const struct fake_call *call, int rank)
{
	size_t nranks = (size_t)call->comm->nranks, i = (size_t)rank;

	if (call->function == OP_REDUCE_SCATTER)
		return (struct part){ i * call->count, call->count };
	return (struct part){ call->count / nranks * i +
				      (i < call->count % nranks ? i : call->count % nranks),
			      call->count / nranks + (i < call->count % nranks) };
}

/* Reduces all ranks' inputs for this rank's part into `into`. */
static int part_reduce(struct moving *moving, void *into)
{
	const struct fake_call *call = moving->call;
	int nranks = call->comm->nranks, rank = call->comm->rank;
	struct part own = part_of(call, rank);
	unsigned char *send = (unsigned char *)(uintptr_t)call->send;
	size_t width = moving->width, bytes = own.count * width;
	const void *inputs[FAKE_RANKS_MAX];
	unsigned char *scratch = malloc((size_t)nranks * bytes + 1);
	int result;

	if (scratch == NULL)
		abort();
	for (int i = 1; i <= nranks; i++) {
		int peer = (rank + i) % nranks;
		struct part theirs = part_of(call, peer);
		unsigned char *input = scratch + (size_t)peer * bytes;

		/* The ring's order: starting at the next rank, this one last. */
		inputs[i - 1] = peer == rank ? send + own.first * width : input;
		if (peer == rank)
			continue;
		transfer_add(moving, true, peer, send + theirs.first * width, theirs.count * width);
		transfer_add(moving, false, peer, input, bytes);
	}
	result = transfers_run(moving);
	if (result == 0)
		fake_fold(call->type, call->op, into, inputs, (size_t)nranks, own.count);
	free(scratch);
	return result;
}

static int all_reduce(struct moving *moving)
{
	const struct fake_call *call = moving->call;
	struct part own = part_of(call, call->comm->rank);
	unsigned char *recv = call->recv, *reduced = recv + own.first * moving->width;

	if (part_reduce(moving, reduced) != 0)
		return -1;
	for (int peer = 0; peer < call->comm->nranks; peer++) {
		struct part theirs = part_of(call, peer);

		if (peer == call->comm->rank)
			continue;
		transfer_add(moving, true, peer, reduced, own.count * moving->width);
		transfer_add(moving, false, peer, recv + theirs.first * moving->width,
			     theirs.count * moving->width);
	}
	return transfers_run(moving);
}

/* Like AllReduce, but only the root gets the parts. */
static int reduce(struct moving *moving)
{
	const struct fake_call *call = moving->call;
	int rank = call->comm->rank;
	size_t width = moving->width;
	struct part own = part_of(call, rank);
	unsigned char *recv = call->recv, *reduced = malloc(own.count * width + 1);
	int result;

	if (reduced == NULL)
		abort();
	result = part_reduce(moving, reduced);
	if (result == 0 && rank != call->root) {
		transfer_add(moving, true, call->root, reduced, own.count * width);
	} else if (result == 0) {
		memcpy(recv + own.first * width, reduced, own.count * width);
		for (int peer = 0; peer < call->comm->nranks; peer++) {
			struct part theirs = part_of(call, peer);

			if (peer != rank)
				transfer_add(moving, false, peer, recv + theirs.first * width,
					     theirs.count * width);
		}
	}
	if (result == 0)
		result = transfers_run(moving);
	free(reduced);
	return result;
}

/* ---- the others ------------------------------------------------------------------------------ */

static int all_gather(struct moving *moving)
{
	const struct fake_call *call = moving->call;
	size_t bytes = call->count * moving->width;
	unsigned char *recv = call->recv, *own = recv + (size_t)call->comm->rank * bytes;

	memmove(own, call->send, bytes);
	for (int peer = 0; peer < call->comm->nranks; peer++) {
		if (peer == call->comm->rank)
			continue;
		transfer_add(moving, true, peer, own, bytes);
		transfer_add(moving, false, peer, recv + (size_t)peer * bytes, bytes);
	}
	return transfers_run(moving);
}

static int broadcast(struct moving *moving)
{
	const struct fake_call *call = moving->call;
	size_t bytes = call->count * moving->width;

	if (call->comm->rank != call->root) {
		transfer_add(moving, false, call->root, call->recv, bytes);
		return transfers_run(moving);
	}
	memmove(call->recv, call->send, bytes);
	for (int peer = 0; peer < call->comm->nranks; peer++) {
		if (peer != call->root)
			transfer_add(moving, true, peer, call->recv, bytes);
	}
	return transfers_run(moving);
}

static int dispatch(struct moving *moving)
{
	switch (moving->call->function) {
	case OP_ALL_REDUCE:
		return all_reduce(moving);
	case OP_REDUCE_SCATTER:
		return part_reduce(moving, moving->call->recv);
	case OP_REDUCE:
		return reduce(moving);
	case OP_ALL_GATHER:
		return all_gather(moving);
	default:
		return broadcast(moving);
	}
}

int fake_collective_run(const struct fake_call *call, uint64_t *ready_ns)
{
	struct fake_transfer transfers[2 * FAKE_RANKS_MAX];
	struct moving moving = {
		.call = call,
		.width = fake_type_bytes(call->type),
		.transfers = transfers,
		.ready_ns = ready_ns,
	};

	return dispatch(&moving);
}
