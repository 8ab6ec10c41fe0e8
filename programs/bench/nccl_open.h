/*
 * NCCL, opened when the benchmark runs: the one that the loader finds, or the one that is named, so the
 * same program measures the system's NCCL, PyTorch's, or one that was just built.
 */
#ifndef NCCL_OPEN_H
#define NCCL_OPEN_H

#include <stddef.h>

struct CUstream_st;
struct ncclComm;
typedef int nccl_result; /* 0 is success */
typedef int nccl_type;	 /* ncclDataType_t */
typedef int nccl_op;	 /* ncclRedOp_t */

enum { NCCL_UNIQUE_ID_BYTES = 128, NCCL_IN_PROGRESS = 7 };
struct nccl_unique_id {
	char bytes[NCCL_UNIQUE_ID_BYTES];
};

/* X(member, symbol, parameters): all return nccl_result. Those every NCCL 2.x since 2.7 has. */
#define NCCL_FUNCTIONS(X)                                                                          \
	X(get_version, ncclGetVersion, (int *))                                                    \
	X(get_unique_id, ncclGetUniqueId, (struct nccl_unique_id *))                               \
	X(comm_init, ncclCommInitRank, (struct ncclComm **, int, struct nccl_unique_id, int))      \
	X(comm_destroy, ncclCommDestroy, (struct ncclComm *))                                      \
	X(comm_abort, ncclCommAbort, (struct ncclComm *))                                          \
	X(comm_async_error, ncclCommGetAsyncError, (struct ncclComm *, nccl_result *))             \
	X(group_start, ncclGroupStart, (void))                                                     \
	X(group_end, ncclGroupEnd, (void))                                                         \
	X(all_reduce, ncclAllReduce,                                                               \
	  (const void *, void *, size_t, nccl_type, nccl_op, struct ncclComm *,                    \
	   struct CUstream_st *))                                                                  \
	X(all_gather, ncclAllGather,                                                               \
	  (const void *, void *, size_t, nccl_type, struct ncclComm *, struct CUstream_st *))      \
	X(reduce_scatter, ncclReduceScatter,                                                       \
	  (const void *, void *, size_t, nccl_type, nccl_op, struct ncclComm *,                    \
	   struct CUstream_st *))                                                                  \
	X(broadcast, ncclBroadcast,                                                                \
	  (const void *, void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *)) \
	X(reduce, ncclReduce,                                                                      \
	  (const void *, void *, size_t, nccl_type, nccl_op, int, struct ncclComm *,               \
	   struct CUstream_st *))                                                                  \
	X(send, ncclSend,                                                                          \
	  (const void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *))         \
	X(recv, ncclRecv, (void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *))

/* Since 2.28; NULL before: the benchmark then groups Sends and Recvs, and says so. */
#define NCCL_NEW_FUNCTIONS(X)                                                                      \
	X(all_to_all, ncclAlltoAll,                                                                \
	  (const void *, void *, size_t, nccl_type, struct ncclComm *, struct CUstream_st *))      \
	X(gather, ncclGather,                                                                      \
	  (const void *, void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *)) \
	X(scatter, ncclScatter,                                                                    \
	  (const void *, void *, size_t, nccl_type, int, struct ncclComm *, struct CUstream_st *))

struct nccl {
	void *library;
	int version;				      /* 22809 */
	char path[256];				      /* the file that was loaded */
	const char *(*error_text)(nccl_result);	      /* ncclGetErrorString */
	const char *(*last_error)(struct ncclComm *); /* ncclGetLastError since 2.13; may be NULL */
#define NCCL_MEMBER(member, symbol, parameters) nccl_result(*member) parameters;
	NCCL_FUNCTIONS(NCCL_MEMBER)
	NCCL_NEW_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
};

/* Open `path`; NULL: what RINGSIDE_NCCL names, else libnccl.so.2 where the loader finds it. 0; -1: *problem
 * says in one line what is missing and what to do. */
int nccl_open(struct nccl *nccl, const char *path, char *problem, size_t problem_size);

/* "ncclAllReduce failed: unhandled cuda error; NCCL says: ..." Gives back `problem`. */
const char *nccl_explain(const struct nccl *nccl, nccl_result result, const char *what,
			 char *problem, size_t problem_size);

/* Our numbers (op_layout.h, bench_result.h) in NCCL's; -1: NCCL has no such, or this release has not. */
nccl_type nccl_type_of(const struct nccl *nccl, unsigned int datatype);
nccl_op nccl_op_of(unsigned int redop);

#endif
