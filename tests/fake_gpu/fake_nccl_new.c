/* Functions that NCCL has since 2.28; not in libnccl-old.so.2. */
#include "common/op_layout.h"
#include "tests/fake_gpu/fake_call.h"

nccl_result ncclAlltoAll(const void *send, void *recv, size_t count, nccl_type type,
			 struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_ALL_TO_ALL,
							     .type = type,
							     .send = send,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}

nccl_result ncclGather(const void *send, void *recv, size_t count, nccl_type type, int root,
		       struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_GATHER,
							     .type = type,
							     .root = root,
							     .send = send,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}

nccl_result ncclScatter(const void *send, void *recv, size_t count, nccl_type type, int root,
			struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_SCATTER,
							     .type = type,
							     .root = root,
							     .send = send,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}
