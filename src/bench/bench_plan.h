/* What to measure: the parsed command line. Pure; no CUDA. */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"

enum { PLAN_FUNCTIONS = 16, PLAN_SIZES = 128, PLAN_TYPES = 16, PLAN_MODES = 4 };

enum plan_place { PLAN_OUT_OF_PLACE = 1, PLAN_IN_PLACE = 2, PLAN_BOTH_PLACES = 3 };
/*
 * How ranks are aligned before each measured call (blocking) or block: not at all, by the hub, or by an AllReduce
 * of one element on the same stream right before the first event.
 */
enum plan_align { PLAN_ALIGN_NONE = 0, PLAN_ALIGN_HUB = 1, PLAN_ALIGN_NCCL = 2 };

struct bench_plan {
	uint8_t functions[PLAN_FUNCTIONS];
	size_t function_count;
	uint64_t sizes[PLAN_SIZES]; /* message size as nccl-tests counts it */
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
	double seconds; /* time budget of one cell without warm-up; 0: by `calls`. Both: whichever ends first */
	uint32_t least_calls; /* minimum when a time budget is set */
	uint32_t warmups;
	uint32_t graph_calls; /* calls captured into one graph */
	enum plan_align align;
	int patience_s; /* time limit of a call, after which the job is ended as hung; 0: none */
	bool is_checked;
	enum bench_over over;
	char nccl_path[4096]; /* "": the loader's default */
};

/*
 * AllReduce, 1 KiB to 128 MiB by a factor of 4, float32, sum, in place and out of place, blocking, 20 calls after
 * 5.
 */
void plan_init(struct bench_plan *plan);

/*
 * "allreduce,allgather" or "all"; accepts the spellings of nccl-tests and NCCL in any case. 0, or -1 and *problem.
 */
int plan_functions(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_datatypes(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_redops(struct bench_plan *plan, const char *text, char *problem, size_t size);
int plan_modes(struct bench_plan *plan, const char *text, char *problem, size_t size);
/* Number of cells, including those that may turn out to be impossible. */
size_t plan_cells(const struct bench_plan *plan);

/* "1K,32K,1M", "1K..1G" (doubling), "1K..1G*4" (by a factor), "1M..8M+1M" (in steps). K, M, G are 1024-based. */
int plan_sizes(struct bench_plan *plan, const char *text, char *problem, size_t size);

/* Number of calls: decided by rank 0 from the plan and the time of one call. Pure. */

enum { BUDGET_CALLS_MAX = 1000000, BUDGET_CALLS_BYTES = 1 << 28 };

/* Maximum number of calls kept per cell. */
uint32_t budget_calls_limit(int nranks);
/* Measured calls of one cell if one takes about `call_ns` (0: unknown). At least 1. */
uint32_t budget_calls(const struct bench_plan *plan, double call_ns, int nranks);

/*
 * Warm-up calls left after `made` of them took `spent_ns`, the last one `last_ns`: with a time budget they may take
 * half of it.
 */
uint32_t budget_warmups(const struct bench_plan *plan, uint32_t made, double spent_ns,
			double last_ns);

/*
 * NCCL's number types as bits: only non-negative ones, whose bits sort like their values. Software implementation,
 * because the host has no half, bfloat16 or float8. Pure.
 */

bool number_is_float(uint8_t datatype); /* enum op_datatype */

/* The type can represent every whole number up to this one. 0: no such type. */
uint64_t number_top(uint8_t datatype);

/* Bits of a whole number up to number_top(). */
uint64_t number_bits(uint8_t datatype, uint64_t whole);

/* Floating point types only. The value of finite, non-negative bits; */
double number_value(uint8_t datatype, uint64_t bits);
/*
 * the bits of the largest number not above `value`, and of the smallest not below it; clamped to the type's range.
 */
uint64_t number_below(uint8_t datatype, double value);
uint64_t number_above(uint8_t datatype, double value);

/*
 * Buffer contents and correct results, as tables of bits that repeat with a prime period, so that a part in the
 * wrong place is detected. Pure.
 *
 * Functions that move data: one table of random bits for all ranks, each starting at a different offset
 * (pattern_phase). Reductions: small whole numbers, few of them above zero if the type is narrow, so that every sum
 * and product is exact in any order and for any number of ranks. The one exception is the floating-point mean over
 * a number of ranks that is not a power of two: NCCL multiplies by a rounded 1/n before adding, and each step
 * rounds, so a range of values is accepted.
 */

enum { PATTERN_PERIOD = 8191 };

struct bench_pattern {
	uint64_t
		input[PATTERN_PERIOD]; /* of this rank; entry (i + phase) mod period is element i */
	uint64_t low[PATTERN_PERIOD];  /* correct values are at least this ... */
	uint64_t high[PATTERN_PERIOD]; /* ... and at most this */
	uint64_t poison[PATTERN_PERIOD]; /* never correct */
};

/* Elements of this many bytes, copied unchanged. */
void pattern_move(struct bench_pattern *pattern, unsigned int element_bytes);
/* False: no such type or operation. */
bool pattern_reduce(struct bench_pattern *pattern, uint8_t datatype, uint8_t redop, int rank,
		    int nranks);

/* `steps` elements further on. */
uint32_t pattern_advance(uint32_t phase, uint64_t steps);

/*
 * Counts and offsets of every function, with the buffer layout of nccl-tests: who sends how much from where, and
 * what must be where afterwards. Pure; in elements.
 */

struct bench_layout {
	uint64_t count;	     /* the argument of the NCCL call, and nccl-tests' column */
	uint64_t bytes;	     /* of the message */
	uint64_t send_count; /* in this rank's send buffer */
	uint64_t recv_count;
	uint64_t send_at; /* in place: start in the shared buffer; otherwise 0 */
	uint64_t recv_at;
	uint64_t whole_count; /* in place: size of the shared buffer */
};

/* A part of a buffer, and its start in the table. */
struct layout_part {
	uint64_t at;
	uint64_t count;
	uint32_t phase;
};

bool layout_is_reduction(uint8_t function);
bool layout_is_rooted(uint8_t function);
/* Whether the function has an in-place form. AlltoAll and Send/Recv do not. */
bool layout_has_in_place(uint8_t function);
/* Whether the result is still correct if the call is repeated on its own result. */
bool layout_is_repeatable(const struct bench_cell *cell);

/*
 * For cell->bytes, rounded down: ranks' parts to 16 bytes as in nccl-tests, or to whole elements if that would
 * leave nothing. False: nothing left, or no such function or type.
 */
bool layout_of(struct bench_layout *layout, const struct bench_cell *cell, int rank);

/* What this rank sends; false: nothing that is read. `at` is relative to the start of its buffer. */
bool layout_input(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		  struct layout_part *part);
/*
 * What this rank must have received: parts from index 0 until false. A rank without a defined result (not the root
 * of a Reduce) has none.
 */
bool layout_expected(const struct bench_layout *layout, const struct bench_cell *cell, int rank,
		     int index, struct layout_part *part);

/* OP_SEND_RECV: the ranks that a rank sends to and receives from; -1: none. */
int layout_send_peer(const struct bench_cell *cell, int rank);
int layout_recv_peer(const struct bench_cell *cell, int rank);

#endif
