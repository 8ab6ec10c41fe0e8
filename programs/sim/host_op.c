#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "programs/sim/host_inside.h"

/* ncclUint8 has no case in NCCL's table and comes out as "Unknown". */
static const char *const datatypes[OP_DATATYPES] = {
	[OP_DATATYPE_UNKNOWN] = "Unknown",
	[OP_INT8] = "ncclInt8",
	[OP_UINT8] = "Unknown",
	[OP_INT32] = "ncclInt32",
	[OP_UINT32] = "ncclUint32",
	[OP_INT64] = "ncclInt64",
	[OP_UINT64] = "ncclUint64",
	[OP_FLOAT16] = "ncclFloat16",
	[OP_FLOAT32] = "ncclFloat32",
	[OP_FLOAT64] = "ncclFloat64",
	[OP_BFLOAT16] = "ncclBfloat16",
	[OP_FLOAT8_E4M3] = "ncclFloat8e4m3",
	[OP_FLOAT8_E5M2] = "ncclFloat8e5m2",
};

/* ncclDataType_t; v1 sends these. */
static const uint8_t datatypes_v1[OP_DATATYPES] = {
	[OP_DATATYPE_UNKNOWN] = 255,
	[OP_INT8] = 0,
	[OP_UINT8] = 1,
	[OP_INT32] = 2,
	[OP_UINT32] = 3,
	[OP_INT64] = 4,
	[OP_UINT64] = 5,
	[OP_FLOAT16] = 6,
	[OP_FLOAT32] = 7,
	[OP_FLOAT64] = 8,
	[OP_BFLOAT16] = 9,
	[OP_FLOAT8_E4M3] = 10,
	[OP_FLOAT8_E5M2] = 11,
};

static const uint8_t functions_v1[OP_FUNCTIONS] = {
	[OP_BROADCAST] = 0,  [OP_REDUCE] = 1,	 [OP_ALL_GATHER] = 2, [OP_REDUCE_SCATTER] = 3,
	[OP_ALL_REDUCE] = 4, [OP_SEND_RECV] = 5, [OP_SEND] = 6,	      [OP_RECV] = 7,
};

const char *host_datatype_name(uint8_t datatype)
{
	return datatype < OP_DATATYPES ? datatypes[datatype] : "Unknown";
}

const char *host_function_name(uint8_t function)
{
	return function == OP_FUNCTION_UNKNOWN ? "Invalid" : op_function_name(function);
}

struct host_names host_names_of(const struct host_op *op, uint8_t function, uint8_t datatype)
{
	return (struct host_names){
		.function = host_function_name(function),
		.datatype = datatypes[datatype],
		.algorithm = op_algorithm_name(op->algorithm),
		.protocol = op_protocol_name(op->protocol),
		.function_v1 = functions_v1[function],
		.datatype_v1 = datatypes_v1[datatype],
		.algorithm_v1 = (uint8_t)(op->algorithm - OP_TREE),
		.protocol_v1 = (uint8_t)(op->protocol - OP_LL),
	};
}

struct host_op host_op_make(struct host_comm *comm, enum op_function function, uint64_t count,
			    enum op_datatype datatype)
{
	const struct host_comm_config *config = &comm->config;

	return (struct host_op){
		.comm = comm,
		.function = (uint8_t)function,
		.datatype = (uint8_t)datatype,
		.algorithm = OP_RING,
		.protocol = OP_LL,
		.warps = 3,
		.channels = 1,
		.count = count,
		.peer = (config->rank + (function == OP_RECV ? config->nranks - 1 : 1)) %
			config->nranks,
		.send_buffer = (const void *)(uintptr_t)0x7f0000000000,
		.recv_buffer = (const void *)(uintptr_t)0x7f4000000000,
		.stream = (void *)(uintptr_t)0x5500000010,
		.steps = 1,
		.chunk_bytes = 512 << 10,
		.duration_ns = 1000,
		.stuck_channel = -1,
		.stuck_peer = -1,
	};
}

uint64_t host_op_bytes(const struct host_op *op)
{
	unsigned int size = op_datatype_bytes(op->datatype);

	return op->count * (size ? size : 1);
}

bool host_op_is_possible(const struct host_op *op)
{
	const struct host_comm_config *config;

	if (op->comm == NULL)
		return false;
	config = &op->comm->config;
	return op->function < OP_FUNCTIONS && op->datatype < OP_DATATYPES &&
	       op->algorithm <= OP_PAT && op->protocol <= OP_SIMPLE &&
	       op->path <= HOST_PATH_SIMULATED && op->stuck <= HOST_STUCK_EDGES &&
	       op->channels >= 1 && op->channels <= HOST_CHANNELS && op->edge_count <= HOST_EDGES &&
	       op->peer >= 0 && op->peer < config->nranks && op->root >= 0 &&
	       op->root < config->nranks && (op->steps > 0 || !op->has_network);
}

/* The ring of a rooted operation is open: it starts behind or at the root. */
static bool is_ring_cut(const struct host_op *op, bool is_send)
{
	int nranks = op->comm->config.nranks, rank = op->comm->config.rank;
	int before_root = (op->root + nranks - 1) % nranks;

	if (op->function == OP_BROADCAST)
		return is_send ? rank == before_root : rank == op->root;
	if (op->function == OP_REDUCE)
		return is_send ? rank == op->root : rank == (op->root + 1) % nranks;
	return false;
}

static uint8_t ring_edges(const struct host_op *op, struct host_edge edges[HOST_EDGES])
{
	int nranks = op->comm->config.nranks, rank = op->comm->config.rank;
	uint8_t count = 0;

	if (!is_ring_cut(op, false))
		edges[count++] = (struct host_edge){ .peer = (rank + nranks - 1) % nranks };
	if (!is_ring_cut(op, true))
		edges[count++] = (struct host_edge){ .peer = (rank + 1) % nranks, .is_send = true };
	return count;
}

/* Send or Recv: the edge that the user gave for it, as it may have times of its own. */
static struct host_edge peer_edge(const struct host_op *op, bool is_send, int32_t peer)
{
	for (unsigned int i = 0; i < op->edge_count; i++)
		if (op->edges[i].peer == peer && op->edges[i].is_send == is_send)
			return op->edges[i];
	return (struct host_edge){ .peer = peer, .is_send = is_send };
}

uint8_t host_op_edges(const struct host_op *op, uint8_t function, int32_t peer,
		      struct host_edge edges[HOST_EDGES])
{
	if (!op->has_network)
		return 0;
	if (function == OP_SEND || function == OP_RECV) {
		edges[0] = peer_edge(op, function == OP_SEND, peer);
		return 1;
	}
	if (op->edge_count == 0)
		return ring_edges(op, edges);
	memcpy(edges, op->edges, op->edge_count * sizeof(edges[0]));
	return op->edge_count;
}
