/*
 * What a benchmark measured: every call of every rank, and who they were. The one structure that the
 * benchmark fills and that tables, files, models and comparisons read. docs/BENCH.md describes it.
 *
 *	run
 *	 +-- ranks[]     where each rank was: machine, GPU
 *	 +-- cells[]     one line of the table: function, size, type, mode ...
 *	      +-- calls[]  rank * cell.calls + call
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/status.h"

/* How calls follow each other. */
enum bench_mode {
	BENCH_BLOCKING = 1,	/* each is waited for before the next is made */
	BENCH_BACK_TO_BACK = 2, /* all are made, then waited for */
	BENCH_GRAPH = 3,	/* captured into a CUDA graph, which is launched again and again */
	BENCH_LOOP = 4, /* as nccl-tests does: one time around all of them, no single ones */
	BENCH_MODES = 5,
};

enum bench_redop {
	BENCH_NO_REDOP = 0, /* the function does not reduce */
	BENCH_SUM = 1,
	BENCH_PROD = 2,
	BENCH_MAX = 3,
	BENCH_MIN = 4,
	BENCH_AVG = 5,
	BENCH_REDOPS = 6,
};

const char *bench_mode_name(unsigned int mode);	  /* "blocking", "back-to-back", "graph", "loop" */
const char *bench_redop_name(unsigned int redop); /* "sum"; "none" */
/* 0: no such name. */
unsigned int bench_mode_find(const char *name);
unsigned int bench_redop_find(const char *name);

/* One call on one rank. Times of calls in a graph are those of its replays. */
struct bench_call {
	uint64_t begin_ns; /* wall time before the call, or before the launch of its graph */
	uint64_t gpu_ns;   /* between CUDA events right before and right behind it; 0 not taken */
	uint64_t issue_ns; /* inside the call, on the calling thread; graph: the launch's share */
	uint64_t done_ns;  /* blocking: from begin_ns until it was seen to be over; else 0 */
};

#define BENCH_UNCHECKED UINT64_MAX

struct bench_cell {
	uint8_t function;  /* enum op_function; OP_SEND_RECV: a Send and a Recv in a group */
	uint8_t datatype;  /* enum op_datatype */
	uint8_t redop;	   /* enum bench_redop */
	uint8_t mode;	   /* enum bench_mode */
	uint8_t algorithm; /* enum op_algorithm that NCCL was made to take; 0: its own choice */
	uint8_t protocol;  /* enum op_protocol, likewise */
	uint8_t chosen_algorithm; /* what NCCL took, as the recorder saw it; 0 unknown */
	uint8_t chosen_protocol;
	bool is_in_place;
	bool is_grouped_sends; /* this NCCL has no such call: made of Sends and Recvs in a group */
	int32_t root;	       /* -1: none */
	int32_t nranks;
	uint64_t count; /* elements, as nccl-tests' column has it: of the rank's part */
	uint64_t bytes; /* of the message, as nccl-tests counts it (op_message_bytes) */
	uint64_t wrong; /* elements that are not what they must be, of all ranks; BENCH_UNCHECKED */
	uint32_t calls; /* measured, of each rank */
	uint32_t warmups;  /* before them */
	uint32_t checks;   /* made to check results, not measured */
	uint32_t aligns;   /* AllReduces of one element that kept ranks together, not measured */
	uint32_t captured; /* graph: how many calls one graph has; 0 otherwise */
	uint64_t loop_ns;  /* BENCH_LOOP: of one call, the mean over calls and ranks */
	struct bench_call *calls_of; /* [rank * calls + call]; NULL: BENCH_LOOP */
	int32_t *peers;		     /* OP_SEND_RECV between pairs: whom rank r exchanges with, -1
				      * nobody; NULL: to the next rank, from the one before */
};

struct bench_rank {
	char host[64];
	int32_t node;	/* machines numbered in order of their first rank */
	int32_t device; /* CUDA's number */
	int32_t pid;
	char gpu_name[64];
	char gpu_uuid[48]; /* "GPU-..." */
	char pci[32];
	uint64_t memory_bytes;
};

enum {
	BENCH_NOTES_MAX = 32,
	BENCH_TEXT_BYTES = 256,
	BENCH_CELLS_MAX = 1 << 16,
	BENCH_RANKS_MAX = 1 << 16
};

struct bench_run {
	int32_t nccl_version; /* 22809 */
	int32_t cuda_version; /* of the driver, 13000 */
	int32_t nranks;
	int32_t nodes;
	bool is_gpu_shared;	       /* several ranks on one GPU: they talk through sockets */
	bool is_mps;		       /* ... and MPS lets their kernels run together */
	uint64_t started_ns;	       /* wall time */
	char launcher[16];	       /* "self", "torchrun", "mpirun", "srun", "env" */
	char plugin[BENCH_TEXT_BYTES]; /* NCCL_PROFILER_PLUGIN as it was; "" none */
	char nccl_path[BENCH_TEXT_BYTES];
	char command[BENCH_TEXT_BYTES * 4];
	struct bench_rank *ranks; /* nranks of them */
	struct bench_cell *cells;
	size_t cell_count;
	size_t cell_room;
	char notes[BENCH_NOTES_MAX]
		  [BENCH_TEXT_BYTES]; /* what a reader must know beside the figures */
	size_t note_count;
	size_t notes_lost; /* those that did not fit */
};

void bench_run_init(struct bench_run *run);
void bench_run_release(struct bench_run *run);
/* Room for the ranks, all zero. ERR_RANGE, ERR_NO_SPACE. */
enum status bench_run_set_ranks(struct bench_run *run, int32_t nranks);
/* A cell like *like, which owns calls (nranks * calls, zero) and, where `like` has them, a copy of the
 * peers; NULL: no memory or too many. Valid until the next one is added. */
struct bench_cell *bench_run_add_cell(struct bench_run *run, const struct bench_cell *like);
/* Copied; one that is there already is not added again. */
void bench_run_note(struct bench_run *run, const char *format, ...) PRINTF_LIKE(2, 3);

static inline const struct bench_call *bench_cell_call(const struct bench_cell *cell, int32_t rank,
						       uint32_t call)
{
	return &cell->calls_of[(size_t)rank * cell->calls + call];
}

/* NCCL operations that one step of this cell is on one rank: a profiler should see so many. 2 for
 * SendRecv (0 for a rank that has no peer), a Send and a Recv for every rank of AlltoAll and so on
 * (NCCL shows what these are made of), else 1. */
uint64_t bench_cell_operations(const struct bench_cell *cell, int32_t rank);
/* Steps that ran: warm-up, measured, checks. */
uint64_t bench_cell_steps(const struct bench_cell *cell);

#endif
