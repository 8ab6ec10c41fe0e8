/*
 * Sends and Recvs, and the functions made of them. All of one group move concurrently; a send to itself is copied,
 * the n-th Send to the n-th Recv.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/op_layout.h"
#include "tests/fake_gpu/fake_kernel_run.h"
#include "tests/fake_gpu/fake_number.h"

struct pairs {
	struct fake_transfer *transfers;
	size_t count;
};

bool fake_is_pairs(uint8_t function)
{
	return function == OP_SEND || function == OP_RECV || function == OP_ALL_TO_ALL ||
	       function == OP_GATHER || function == OP_SCATTER;
}

static void pair_add(struct pairs *pairs, bool is_send, int peer, const void *bytes, size_t part,
		     size_t length)
{
	pairs->transfers[pairs->count++] = (struct fake_transfer){
		.peer = peer,
		.is_send = is_send,
		.bytes = (unsigned char *)(uintptr_t)bytes + part * length,
		.length = length,
		.what = OP_SEND_RECV,
	};
}

/* In Gather and Scatter the root has a part for every rank, the others have one. */
static void call_add(struct pairs *pairs, const struct fake_call *call)
{
	size_t bytes = call->count * fake_type_bytes(call->type);
	int rank = call->comm->rank, nranks = call->comm->nranks;

	if (call->function == OP_SEND)
		pair_add(pairs, true, call->peer, call->send, 0, bytes);
	if (call->function == OP_RECV)
		pair_add(pairs, false, call->peer, call->recv, 0, bytes);
	if (call->function == OP_GATHER)
		pair_add(pairs, true, call->root, call->send, 0, bytes);
	if (call->function == OP_SCATTER)
		pair_add(pairs, false, call->root, call->recv, 0, bytes);
	for (int peer = 0; peer < nranks; peer++) {
		bool is_all = call->function == OP_ALL_TO_ALL, is_root = rank == call->root;

		if (is_all || (call->function == OP_SCATTER && is_root))
			pair_add(pairs, true, peer, call->send, (size_t)peer, bytes);
		if (is_all || (call->function == OP_GATHER && is_root))
			pair_add(pairs, false, peer, call->recv, (size_t)peer, bytes);
	}
}

static int pairs_make(struct pairs *pairs, const struct fake_call *calls, size_t count)
{
	size_t room = 1;

	for (size_t i = 0; i < count; i++)
		room += 2 * (size_t)calls[i].comm->nranks;
	*pairs = (struct pairs){ .transfers = calloc(room, sizeof(*pairs->transfers)) };
	if (pairs->transfers == NULL)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (fake_is_pairs(calls[i].function))
			call_add(pairs, &calls[i]);
	}
	return 0;
}

/* Matches a Send to itself with its Recv; both are done then. Real NCCL hangs or refuses if there is none. */
static void self_copy(struct pairs *pairs, int rank)
{
	size_t recv = 0;

	for (size_t send = 0; send < pairs->count; send++) {
		struct fake_transfer *from = &pairs->transfers[send], *to;

		if (from->peer != rank || !from->is_send)
			continue;
		while (recv < pairs->count &&
		       (pairs->transfers[recv].peer != rank || pairs->transfers[recv].is_send))
			recv++;
		to = &pairs->transfers[recv++];
		if (recv > pairs->count || to->length != from->length) {
			(void)fprintf(
				stderr,
				"fake NCCL: rank %d sends to itself without a matching receive\n",
				rank);
			abort();
		}
		memmove(to->bytes, from->bytes, from->length);
		from->is_over = to->is_over = true;
	}
}

static void over_remove(struct pairs *pairs)
{
	size_t kept = 0;

	for (size_t i = 0; i < pairs->count; i++) {
		if (!pairs->transfers[i].is_over)
			pairs->transfers[kept++] = pairs->transfers[i];
	}
	pairs->count = kept;
}

int fake_pairs_run(const struct fake_call *calls, size_t count, uint64_t *ready_ns)
{
	const struct ncclComm *comm = calls[0].comm;
	struct pairs pairs;
	int result;

	if (pairs_make(&pairs, calls, count) != 0)
		abort();
	self_copy(&pairs, comm->rank);
	over_remove(&pairs);
	result = fake_wire_move(comm->wire, pairs.transfers, pairs.count, &comm->is_aborted,
				ready_ns);
	free(pairs.transfers);
	return result;
}

/* Sending and receiving overlap; several peers are served one after the other. */
uint64_t fake_pairs_duration(const struct fake_call *calls, size_t count)
{
	const struct ncclComm *comm = calls[0].comm;
	uint64_t latency = fake_model_transfer(&comm->model, 0, 0, 0), sum[2] = { 0, 0 };
	struct pairs pairs;

	if (pairs_make(&pairs, calls, count) != 0)
		return 0;
	for (size_t i = 0; i < pairs.count; i++) {
		const struct fake_transfer *transfer = &pairs.transfers[i];

		if (transfer->peer != comm->rank)
			sum[transfer->is_send] +=
				fake_model_transfer(&comm->model, comm->rank, transfer->peer,
						    transfer->length) -
				latency;
	}
	free(pairs.transfers);
	if (pairs.count == 0)
		return 0;
	return latency + (sum[0] > sum[1] ? sum[0] : sum[1]);
}
