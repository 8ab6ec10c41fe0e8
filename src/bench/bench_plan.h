/* What is to be measured: the command line, understood. Pure; no CUDA. */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"

enum { PLAN_FUNCTIONS = 16, PLAN_SIZES = 128, PLAN_TYPES = 16, PLAN_MODES = 4 };

enum plan_place { PLAN_OUT_OF_PLACE = 1, PLAN_IN_PLACE = 2, PLAN_BOTH_PLACES = 3 };
/* What keeps ranks together before each measured call (blocking) or block: nothing, the hub, or an
 * AllReduce of one element on the same stream right before the first event. */
enum plan_align { PLAN_ALIGN_NONE = 0, PLAN_ALIGN_HUB = 1, PLAN_ALIGN_NCCL = 2 };

struct bench_plan {
	uint8_t functions[PLAN_FUNCTIONS];
	size_t function_count;
	uint64_t sizes[PLAN_SIZES]; /* bytes of the message as nccl-tests counts them */
	size_t size_count;
	uint8_t datatypes[PLAN_TYPES];
	size_t datatype_count;
	uint8_t redops[BENCH_REDOPS];
	size_t redop_count;
	uint8_t modes[PLAN_MODES];
	size_t mode_count;
	unsigned int places; /* enum plan_place */
	int32_t root;
	uint32_t calls; /* measured calls; 0: by `seconds` */
	double seconds; /* time budget of one cell, warm-up apart; 0: by `calls`. Both: what ends first */
	uint32_t least_calls; /* with a time budget: never fewer */
	uint32_t warmups;
	uint32_t graph_calls; /* calls captured into one graph */
	enum plan_align align;
	int patience_s; /* a call that is not over by then is a hang, and ends the job; 0: no limit */
	bool is_checked;
	enum bench_over over;
	char nccl_path[4096]; /* "": as the loader finds it */
};

/* AllReduce, 1 KiB to 128 MiB by 4, float32, sum, both places, blocking, 20 calls after 5. */
void plan_init(struct bench_plan *plan);

/* "allreduce,allgather" or "all"; nccl-tests' and NCCL's spellings, any case. 0, or -1 and *problem. */
int plan_functions(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_datatypes(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_redops(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_modes(struct bench_plan *plan, const char *text, char *problem, size_t size);
/* How many cells it has, of which some may turn out not to be possible. */
size_t plan_cells(const struct bench_plan *plan);

/* "1K,32K,1M", "1K..1G" (by 2), "1K..1G*4" (by a factor), "1M..8M+1M" (by steps). K, M, G are 1024. */
int plan_sizes(struct bench_plan *plan, const char *text, char *problem, size_t size);

/* How many calls are made: decided by rank 0 alone, from the plan and the time that one takes. Pure. */

enum { BUDGET_CALLS_MAX = 1000000, BUDGET_CALLS_BYTES = 1 << 28 };

/* More calls of one cell are not kept. */
uint32_t budget_calls_limit(int nranks);
/* Measured calls of one cell when one takes about `call_ns` (0: not known). At least 1. */
uint32_t budget_calls(const struct bench_plan *plan, double call_ns, int nranks);

/* Warm-up calls still to be made after `made` of them took `spent_ns`, the last of them `last_ns`: with a
 * time budget they may take half of it. */
uint32_t budget_warmups(const struct bench_plan *plan, uint32_t made, double spent_ns,
			double last_ns);

/*
 * Numbers of NCCL's types as bits: non-negative ones only, whose bits order as their values do. By hand, as
 * the host has no half, bfloat16 or float8. Pure.
 */

bool number_is_float(uint8_t datatype); /* enum op_datatype */

/* Up to here the type has every whole number. 0: no such type. */
uint64_t number_top(uint8_t datatype);

/* A whole number up to number_top(), as bits. */
uint64_t number_bits(uint8_t datatype, uint64_t whole);

/* Floating point types only. What finite, non-negative bits stand for; */
double number_value(uint8_t datatype, uint64_t bits);
/* the bits of the greatest number that is not above `value`, and of the least that is not below; within
 * what the type has. */
uint64_t number_below(uint8_t datatype, double value);
uint64_t number_above(uint8_t datatype, double value);

/*
 * What buffers are filled with and what must come out, as tables of bits that repeat with a prime
 * period, so that a part in the wrong place shows. Pure.
 *
 * Functions that move data: one table of random bits for all ranks, each of which begins at another place
 * of it (pattern_phase). Functions that reduce: small whole numbers, so few of them above nothing where
 * the type is narrow that every sum and product is exact in any order and for any number of ranks. The one
 * exception is the mean of floating point numbers over a number of ranks that is no power of two: NCCL
 * multiplies by a rounded 1/n before it adds, and each step rounds, so a range is right there.
 */

enum { PATTERN_PERIOD = 8191 };

struct bench_pattern {
	uint64_t
		input[PATTERN_PERIOD]; /* of this rank; entry (i + phase) mod period is element i */
	uint64_t low[PATTERN_PERIOD];  /* right is what is not below this ... */
	uint64_t high[PATTERN_PERIOD]; /* ... and not above that */
	uint64_t poison[PATTERN_PERIOD]; /* never right */
};

/* Elements of that many bytes, moved as they are. */
void pattern_move(struct bench_pattern *pattern, unsigned int element_bytes);
/* false: no such type or operation. */
bool pattern_reduce(struct bench_pattern *pattern, uint8_t datatype, uint8_t redop, int rank,
		    int nranks);

/* `steps` elements further on. */
uint32_t pattern_advance(uint32_t phase, uint64_t steps);

/*
 * Who sends how much from where, and what must lie where afterwards: counts and offsets of every function, as
 * nccl-tests lays its buffers out. Pure; in elements.
 */

struct bench_layout {
	uint64_t count;	     /* the one that NCCL is called with, and nccl-tests' column */
	uint64_t bytes;	     /* of the message */
	uint64_t send_count; /* in this rank's send buffer */
	uint64_t recv_count;
	uint64_t send_at; /* in place: where they begin in the one buffer; else 0 */
	uint64_t recv_at;
	uint64_t whole_count; /* in place: of the one buffer */
};

/* A stretch of a buffer, and where in its table it begins. */
struct layout_part {
	uint64_t at;
	uint64_t count;
	uint32_t phase;
};

bool layout_is_reduction(uint8_t function);
bool layout_is_rooted(uint8_t function);
/* Has it a form with one buffer? AlltoAll and Send with Recv have none. */
bool layout_has_in_place(uint8_t function);
/* Is the result still right after it was made again on its own result? */
bool layout_is_repeatable(const struct bench_cell *cell);

/* For cell->bytes, rounded down: parts of ranks to 16 bytes as nccl-tests does, or to whole elements
 * where that would leave nothing. false: nothing is left, or no such function or type. */
bool layout_of(struct bench_layout *layout, const struct bench_cell *cell, int rank);

/* What this rank sends; false: nothing that anybody reads. `at` is from the start of the buffer it lies in. */
bool layout_input(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		  struct layout_part *part);
/* What this rank must have received: parts from index 0 until false. A rank that is not promised
 * anything (not the root of a Reduce) has none. */
bool layout_expected(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		     int index, struct layout_part *part);

/* OP_SEND_RECV: whom a rank sends to and receives from; -1: nobody. */
int layout_send_peer(const struct bench_cell *cell, int rank);
int layout_recv_peer(const struct bench_cell *cell, int rank);

#endif
