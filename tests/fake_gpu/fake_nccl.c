/*
 * NCCL 2.28.9 on the CPU: libnccl.so.2 for tests on hosts without a GPU. Data really moves between processes,
 * results are real, a profiler plugin gets NCCL's events; times come from a model (fake_model.h).
 *
 *	FAKE_NCCL_FAIL		function:nth[:error],...
 *	FAKE_NCCL_DIE		rank:nth call: this rank dies; 0: while communicators are created
 *	FAKE_NCCL_HANG		rank:nth call: its kernel never ends, until the communicator is aborted; 0:
 *				it never returns from ncclCommInitRank
 *	FAKE_NCCL_WRONG		function:rank: one byte of the result is wrong there
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "common/order.h"
#include "tests/fake_gpu/fake_call.h"
#include "tests/fake_gpu/fake_number.h"
#include "tests/fake_gpu/fake_point.h"
#include "tests/fake_gpu/fake_show.h"
#include "tests/fake_gpu/fake_stream.h"

enum { FAKE_NCCL_VERSION = 22809, GROUP_CALLS = 1024 };

static char last_error[256];
static uint32_t calls_made;

/* What a thread has called since ncclGroupStart. */
static _Thread_local struct {
	int depth;
	size_t count;
	nccl_result error;
	struct fake_call *calls;
} group;

nccl_result fake_nccl_fail(nccl_result result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(last_error, sizeof(last_error), format, arguments);
	va_end(arguments);
	return result;
}

static nccl_result told_to_fail(const char *function)
{
	static uint32_t calls[FAKE_POINTS];
	nccl_result result = fake_point("FAKE_NCCL_FAIL", function, calls, FAKE_NCCL_SYSTEM_ERROR);

	return result == 0 ? 0 : fake_nccl_fail(result, "%s: injected failure", function);
}

/* ---- the library ----------------------------------------------------------------------------- */

const char *ncclGetErrorString(nccl_result result)
{
	static const char *const texts[] = {
		"no error",
		"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
		"unhandled system error (run with NCCL_DEBUG=INFO for details)",
		"internal error - please report this issue to the NCCL developers",
		"invalid argument (run with NCCL_DEBUG=WARN for details)",
		"invalid usage (run with NCCL_DEBUG=WARN for details)",
		"remote process exited or there was a network error",
		"NCCL operation in progress",
	};

	return result >= 0 && result < (int)ARRAY_LENGTH(texts) ? texts[result]
								: "unknown result code";
}

const char *ncclGetLastError(struct ncclComm *comm)
{
	(void)comm;
	return last_error;
}

nccl_result ncclGetVersion(int *version)
{
	*version = FAKE_NCCL_VERSION;
	return 0;
}

nccl_result ncclGetUniqueId(struct nccl_unique_id *id)
{
	nccl_result result = told_to_fail(__func__);

	if (result != 0)
		return result;
	if (fake_wire_id(id->bytes) != 0)
		return fake_nccl_fail(FAKE_NCCL_SYSTEM_ERROR, "no shared memory");
	return 0;
}

/* ---- communicators --------------------------------------------------------------------------- */

/* NCCL_HOSTID makes ranks of one host look like several. */
static uint64_t host_hash(void)
{
	const char *name = getenv("NCCL_HOSTID");
	uint64_t hash = 0xcbf29ce484222325u;

	for (; name != NULL && *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return hash;
}

/* NCCL prints to standard output. */
static void noise(int rank, int nranks)
{
	const char *level = getenv("NCCL_DEBUG");

	if (level == NULL)
		return;
	if (rank == 0)
		(void)printf("NCCL version 2.28.9+fake\n");
	if (strcasecmp(level, "INFO") == 0)
		(void)printf("host:%d:%d [0] NCCL INFO comm rank %d nranks %d - Init COMPLETE\n",
			     (int)getpid(), (int)getpid(), rank, nranks);
	(void)fflush(stdout);
}

static nccl_result comm_connect(struct ncclComm *comm, const char *id)
{
	if (fake_model_init(&comm->model, comm->nranks) != 0)
		return fake_nccl_fail(FAKE_NCCL_INVALID_USAGE,
				      "unknown name in NCCL_ALGO or NCCL_PROTO");
	if (fake_wire_open(&comm->wire, id, comm->nranks, comm->rank, host_hash()) != 0)
		return fake_nccl_fail(FAKE_NCCL_SYSTEM_ERROR, "cannot reach the other ranks");
	if (fake_show_open(&comm->show, fake_wire_hash(comm->wire), comm->nranks,
			   fake_wire_hosts(comm->wire), comm->rank) != 0)
		return fake_nccl_fail(FAKE_NCCL_INTERNAL_ERROR, "no profiler");
	noise(comm->rank, comm->nranks);
	return 0;
}

static bool is_told(const char *variable, int rank, uint32_t nth)
{
	const char *text = getenv(variable);
	char *end;

	if (text == NULL || strtol(text, &end, 10) != rank || *end != ':')
		return false;
	return strtoul(end + 1, NULL, 10) == nth;
}

nccl_result ncclCommInitRank(struct ncclComm **comm, int nranks, struct nccl_unique_id id, int rank)
{
	nccl_result result = told_to_fail(__func__);
	struct ncclComm *made;

	if (result != 0)
		return result;
	if (nranks < 1 || nranks > FAKE_RANKS_MAX || rank < 0 || rank >= nranks)
		return fake_nccl_fail(FAKE_NCCL_INVALID_ARGUMENT, "rank %d of %d", rank, nranks);
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return FAKE_NCCL_SYSTEM_ERROR;
	made->references = 1;
	made->rank = rank;
	made->nranks = nranks;
	id.bytes[NCCL_UNIQUE_ID_BYTES - 1] = '\0';
	if (is_told("FAKE_NCCL_DIE", rank, 0))
		(void)raise(SIGKILL);
	while (is_told("FAKE_NCCL_HANG", rank, 0))
		(void)pause();
	result = comm_connect(made, id.bytes);
	if (result != 0)
		fake_comm_drop(made);
	else
		*comm = made;
	return result;
}

void fake_comm_drop(struct ncclComm *comm)
{
	if (__atomic_sub_fetch(&comm->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	fake_wire_close(comm->wire);
	free(comm);
}

static nccl_result comm_end(struct ncclComm *comm, bool is_abort)
{
	if (comm == NULL)
		return 0;
	/* Operations still on a stream give up: ncclCommDestroy must not be called before they are over. */
	store_relaxed(&comm->is_aborted, 1);
	fake_show_close(comm->show, is_abort);
	comm->show = NULL;
	fake_comm_drop(comm);
	return 0;
}

nccl_result ncclCommDestroy(struct ncclComm *comm)
{
	nccl_result result = told_to_fail(__func__);

	return result != 0 ? result : comm_end(comm, false);
}

nccl_result ncclCommAbort(struct ncclComm *comm)
{
	return comm_end(comm, true);
}

nccl_result ncclCommGetAsyncError(struct ncclComm *comm, nccl_result *error)
{
	if (comm == NULL)
		return FAKE_NCCL_INVALID_ARGUMENT;
	*error = told_to_fail(__func__);
	return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* How many parts of `count` elements a buffer has. */
static size_t parts_of(const struct fake_call *call, bool is_send)
{
	size_t nranks = (size_t)call->comm->nranks;
	bool is_root = call->comm->rank == call->root;

	switch (call->function) {
	case OP_ALL_GATHER:
		return is_send ? 1 : nranks;
	case OP_REDUCE_SCATTER:
		return is_send ? nranks : 1;
	case OP_ALL_TO_ALL:
		return nranks;
	case OP_BROADCAST:
		return is_send ? is_root : 1;
	case OP_REDUCE:
		return is_send ? 1 : is_root;
	case OP_GATHER:
		return is_send ? 1 : is_root ? nranks : 0;
	case OP_SCATTER:
		return is_send ? is_root ? nranks : 0 : 1;
	case OP_SEND:
		return is_send;
	case OP_RECV:
		return !is_send;
	default:
		return 1;
	}
}

static bool has_memory(const struct fake_call *call)
{
	size_t bytes = call->count * fake_type_bytes(call->type);
	size_t send = bytes * parts_of(call, true), recv = bytes * parts_of(call, false);

	return (send == 0 || fake_memory_has((uintptr_t)call->send, send)) &&
	       (recv == 0 || fake_memory_has((uintptr_t)call->recv, recv));
}

static nccl_result call_check(const char *name, const struct fake_call *call)
{
	if (call->comm == NULL)
		return fake_nccl_fail(FAKE_NCCL_INVALID_ARGUMENT, "%s: no communicator", name);
	if (call->type < 0 || call->type >= FAKE_TYPES || call->op < 0 || call->op >= FAKE_OPS)
		return fake_nccl_fail(FAKE_NCCL_INVALID_ARGUMENT, "%s: type %d, operation %d", name,
				      call->type, call->op);
	if (call->root < 0 || call->root >= call->comm->nranks || call->peer < 0 ||
	    call->peer >= call->comm->nranks)
		return fake_nccl_fail(FAKE_NCCL_INVALID_ARGUMENT, "%s: rank %d", name,
				      call->root + call->peer);
	if (!has_memory(call))
		return fake_nccl_fail(FAKE_NCCL_INVALID_ARGUMENT,
				      "%s: %zu elements are not within device memory", name,
				      call->count);
	return 0;
}

static bool is_modelled(uint8_t function)
{
	return function >= OP_ALL_REDUCE && function <= OP_REDUCE;
}

static nccl_result call_choose(struct fake_call *call)
{
	uint64_t bytes =
		op_message_bytes(call->function, call->count,
				 (unsigned int)fake_type_bytes(call->type), call->comm->nranks);

	if (!is_modelled(call->function) ||
	    fake_model_choose(&call->comm->model, call->function, bytes, &call->choice) == 0)
		return 0;
	return fake_nccl_fail(
		FAKE_NCCL_INVALID_USAGE,
		"Error : no algorithm/protocol available for function %s with datatype "
		"%s. NCCL_ALGO was set to %s.",
		op_function_name(call->function),
		op_datatype_name(op_datatype_from_nccl((uint8_t)call->type)),
		getenv("NCCL_ALGO") ? getenv("NCCL_ALGO") : "nothing");
}

/* Kernels in the order of their communicators' first call. */
static nccl_result calls_launch(const struct fake_call *calls, size_t count)
{
	struct fake_call *own = malloc(count * sizeof(*own));
	nccl_result result = own == NULL ? FAKE_NCCL_SYSTEM_ERROR : 0;

	for (size_t i = 0; i < count && result == 0; i++) {
		size_t earlier = 0, mine = 0;

		while (calls[earlier].comm != calls[i].comm)
			earlier++;
		for (size_t j = i; j < count && earlier == i; j++) {
			if (calls[j].comm == calls[i].comm)
				own[mine++] = calls[j];
		}
		if (mine > 0)
			result = fake_kernel_launch(own, mine);
	}
	free(own);
	return result;
}

static nccl_result call_take(const char *name, struct fake_call *call)
{
	nccl_result result = told_to_fail(name);
	uint32_t nth = add_relaxed(&calls_made, 1) + 1;

	if (result == 0)
		result = call_check(name, call);
	if (result == 0)
		result = call_choose(call);
	if (result != 0)
		return result;
	if (is_told("FAKE_NCCL_DIE", call->comm->rank, nth))
		(void)raise(SIGKILL);
	call->hangs = is_told("FAKE_NCCL_HANG", call->comm->rank, nth);
	if (group.depth == 0)
		return calls_launch(call, 1);
	if (group.count == GROUP_CALLS)
		return fake_nccl_fail(FAKE_NCCL_INVALID_USAGE, "more than %d calls in a group",
				      GROUP_CALLS);
	group.calls[group.count++] = *call;
	return 0;
}

nccl_result fake_call_make(const char *name, const struct fake_call *call)
{
	struct fake_call own = *call;
	nccl_result result = call_take(name, &own);

	if (group.error == 0)
		group.error = result;
	return result;
}

nccl_result ncclGroupStart(void)
{
	nccl_result result = told_to_fail(__func__);

	if (result != 0)
		return result;
	if (group.calls == NULL)
		group.calls = calloc(GROUP_CALLS, sizeof(*group.calls));
	if (group.calls == NULL)
		return FAKE_NCCL_SYSTEM_ERROR;
	if (group.depth++ == 0) {
		group.count = 0;
		group.error = 0;
	}
	return 0;
}

nccl_result ncclGroupEnd(void)
{
	nccl_result result = told_to_fail(__func__);

	if (result != 0)
		return result;
	if (group.depth == 0)
		return fake_nccl_fail(FAKE_NCCL_INVALID_USAGE,
				      "ncclGroupEnd: not in a group call.");
	if (--group.depth > 0)
		return 0;
	result = group.error;
	if (result == 0 && group.count > 0)
		result = calls_launch(group.calls, group.count);
	free(group.calls);
	group.calls = NULL;
	return result;
}

nccl_result ncclAllReduce(const void *send, void *recv, size_t count, nccl_type type, nccl_op op,
			  struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_ALL_REDUCE,
							     .type = type,
							     .op = op,
							     .send = send,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}

nccl_result ncclAllGather(const void *send, void *recv, size_t count, nccl_type type,
			  struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_ALL_GATHER,
							     .type = type,
							     .send = send,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}

nccl_result ncclReduceScatter(const void *send, void *recv, size_t count, nccl_type type,
			      nccl_op op, struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_REDUCE_SCATTER,
							     .type = type,
							     .op = op,
							     .send = send,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}

nccl_result ncclBroadcast(const void *send, void *recv, size_t count, nccl_type type, int root,
			  struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_BROADCAST,
							     .type = type,
							     .root = root,
							     .send = send,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}

nccl_result ncclReduce(const void *send, void *recv, size_t count, nccl_type type, nccl_op op,
		       int root, struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_REDUCE,
							     .type = type,
							     .op = op,
							     .root = root,
							     .send = send,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}

nccl_result ncclSend(const void *send, size_t count, nccl_type type, int peer,
		     struct ncclComm *comm, struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_SEND,
							     .type = type,
							     .peer = peer,
							     .send = send,
							     .count = count,
							     .stream = stream });
}

nccl_result ncclRecv(void *recv, size_t count, nccl_type type, int peer, struct ncclComm *comm,
		     struct CUstream_st *stream)
{
	return fake_call_make(__func__, &(struct fake_call){ .comm = comm,
							     .function = OP_RECV,
							     .type = type,
							     .peer = peer,
							     .recv = recv,
							     .count = count,
							     .stream = stream });
}
