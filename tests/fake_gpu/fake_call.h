/* One call of the fake NCCL, and the communicator it is made on. */
#ifndef FAKE_CALL_H
#define FAKE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_gpu.h"
#include "common/attributes.h"
#include "tests/fake_gpu/fake_model.h"
#include "tests/fake_gpu/fake_stream.h"
#include "tests/fake_gpu/fake_wire.h"

enum fake_nccl_error {
	FAKE_NCCL_CUDA_ERROR = 1,
	FAKE_NCCL_SYSTEM_ERROR = 2,
	FAKE_NCCL_INTERNAL_ERROR = 3,
	FAKE_NCCL_INVALID_ARGUMENT = 4,
	FAKE_NCCL_INVALID_USAGE = 5,
};

/* In the public form of bench_gpu.h. */
#define FAKE_DECLARE(member, symbol, parameters) EXPORTED nccl_result symbol parameters;
NCCL_FUNCTIONS(FAKE_DECLARE)
NCCL_NEW_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE
EXPORTED const char *ncclGetErrorString(nccl_result result);
EXPORTED const char *ncclGetLastError(struct ncclComm *comm);

struct fake_show;

struct ncclComm {
	int references; /* the user's, plus one per kernel on a stream or in a graph */
	int rank;
	int nranks;
	int is_aborted;
	struct fake_wire *wire;
	struct fake_show *show;
	struct fake_model model;
	struct fake_order order;
};

void fake_comm_drop(struct ncclComm *comm);

struct fake_call {
	struct ncclComm *comm;
	uint8_t function; /* enum op_function */
	int type;
	int op;
	int root;
	int peer;
	const void *send;
	void *recv;
	size_t count;
	struct CUstream_st *stream;
	struct fake_choice choice; /* collectives */
	bool hangs;		   /* by FAKE_NCCL_HANG */
};

/* Checks the call, then runs it or keeps it until the group ends. */
nccl_result fake_call_make(const char *name, const struct fake_call *call);

/* Enqueues calls of one communicator on their stream as one kernel. */
nccl_result fake_kernel_launch(const struct fake_call *calls, size_t count);

/* Sets the reason for ncclGetLastError; returns `result`. */
nccl_result fake_nccl_fail(nccl_result result, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
