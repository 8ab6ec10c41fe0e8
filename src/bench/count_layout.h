/*
 * The file in which libringside-count.so counts NCCL calls while the process runs: memory-mapped, so that it is
 * complete however the process ends. Host byte order; it is read on the same host.
 */
#ifndef COUNT_LAYOUT_H
#define COUNT_LAYOUT_H

#include <stdint.h>

#define COUNT_MAGIC UINT64_C(0x31544e4b474e4952) /* "RINGKNT1" */

enum count_function {
	COUNT_ALL_REDUCE = 0,
	COUNT_ALL_GATHER = 1,
	COUNT_REDUCE_SCATTER = 2,
	COUNT_BROADCAST = 3, /* includes ncclBcast */
	COUNT_REDUCE = 4,
	COUNT_SEND = 5,
	COUNT_RECV = 6,
	COUNT_ALL_TO_ALL = 7,
	COUNT_GATHER = 8,
	COUNT_SCATTER = 9,
	COUNT_GROUP_START = 10,
	COUNT_GROUP_END = 11,
	COUNT_FUNCTIONS = 12,
};

/* NCCL's names without "nccl". */
#define COUNT_NAMES                                                                               \
	{                                                                                         \
		"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "Send", "Recv", \
			"AlltoAll", "Gather", "Scatter", "GroupStart", "GroupEnd"                 \
	}

struct count_entry {
	uint64_t calls;	 /* made by the program, without NCCL's internal ones */
	uint64_t failed; /* of these: NCCL returned an error */
	uint64_t ns;	 /* inside the calls, on the calling threads */
	uint64_t bytes;	 /* count times the size of the type, from the arguments */
};

struct count_file {
	uint64_t magic;
	uint32_t size;	    /* of this struct */
	uint32_t functions; /* COUNT_FUNCTIONS */
	int32_t pid;
	int32_t rank;	     /* from the launcher's variables; -1: unknown */
	uint64_t started_ns; /* wall time of the first call */
	uint64_t unknown;    /* calls for which no NCCL was found: they failed */
	char host[64];
	struct count_entry entries[COUNT_FUNCTIONS];
};

_Static_assert(sizeof(struct count_file) == 8 + 8 + 8 + 16 + 64 + 32 * COUNT_FUNCTIONS,
	       "no holes: other processes read it");

#endif
