/*
 * What stands in front of NCCL: each function counts itself and calls the real one. Own declarations; all
 * parameters are passed on as they are. A program that looks NCCL's functions up by dlsym() in a handle of its own
 * goes past these.
 */
#include <stddef.h>

#include "common/attributes.h"
#include "programs/count/count_book.h"

struct ncclComm;
struct CUstream_st;

/* ncclSystemError: there is no NCCL behind us. */
enum { COUNT_NO_NCCL = 2, COUNT_NO_TYPE = -1 };

#define COUNTED(function, name, parameters, arguments, elements, type)                            \
	EXPORTED int name parameters;                                                             \
	int name parameters                                                                       \
	{                                                                                         \
		static void *kept;                                                                \
		int(*next) parameters =                                                           \
			(int(*) parameters)count_next(&kept, #name, __builtin_return_address(0)); \
		struct count_call call;                                                           \
		int result;                                                                       \
                                                                                                  \
		count_begin(&call, function, next != NULL);                                       \
		result = next ? next arguments : COUNT_NO_NCCL;                                   \
		count_end(&call, elements, type, result);                                         \
		return result;                                                                    \
	}

COUNTED(COUNT_ALL_REDUCE, ncclAllReduce,
	(const void *from, void *to, size_t count, int type, int op, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, op, comm, stream), count, type)

COUNTED(COUNT_ALL_GATHER, ncclAllGather,
	(const void *from, void *to, size_t count, int type, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, comm, stream), count, type)

COUNTED(COUNT_REDUCE_SCATTER, ncclReduceScatter,
	(const void *from, void *to, size_t count, int type, int op, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, op, comm, stream), count, type)

COUNTED(COUNT_BROADCAST, ncclBroadcast,
	(const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, root, comm, stream), count, type)

COUNTED(COUNT_BROADCAST, ncclBcast,
	(void *buffer, size_t count, int type, int root, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(buffer, count, type, root, comm, stream), count, type)

COUNTED(COUNT_REDUCE, ncclReduce,
	(const void *from, void *to, size_t count, int type, int op, int root,
	 struct ncclComm *comm, struct CUstream_st *stream),
	(from, to, count, type, op, root, comm, stream), count, type)

COUNTED(COUNT_SEND, ncclSend,
	(const void *from, size_t count, int type, int peer, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, count, type, peer, comm, stream), count, type)

COUNTED(COUNT_RECV, ncclRecv,
	(void *to, size_t count, int type, int peer, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(to, count, type, peer, comm, stream), count, type)

COUNTED(COUNT_ALL_TO_ALL, ncclAlltoAll,
	(const void *from, void *to, size_t count, int type, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, comm, stream), count, type)

COUNTED(COUNT_GATHER, ncclGather,
	(const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, root, comm, stream), count, type)

COUNTED(COUNT_SCATTER, ncclScatter,
	(const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,
	 struct CUstream_st *stream),
	(from, to, count, type, root, comm, stream), count, type)

COUNTED(COUNT_GROUP_START, ncclGroupStart, (void), (), 0, COUNT_NO_TYPE)

COUNTED(COUNT_GROUP_END, ncclGroupEnd, (void), (), 0, COUNT_NO_TYPE)
