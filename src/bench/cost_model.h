/*
 * How long an operation should take:
 *
 *	time = call + sum over kinds of links (hops x latency + fill / bandwidth)
 *	            + the larger of (bytes / bandwidth) of the two kinds of links
 *
 * with hops, fill and bytes of struct cost_work. Parameters come from measurements (cost_fit()), from the user or
 * from named textbook values; other parameters are unknown, and nothing that needs them is predicted.
 */
#ifndef COST_MODEL_H
#define COST_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/status.h"

/*
 * The work of an operation: hops and bytes of ring, tree, double tree and direct transfers, without any speeds.
 * docs/BENCH.md derives every line.
 *
 * n ranks on N nodes, g = n / N of them (rounded up) per node, S bytes of the message as nccl-tests counts them,
 * k = min(g, NICs per node), c bytes of a chunk. Hops are those of the critical path. "Inside" bytes go through the
 * busiest GPU in one direction, "between" bytes through the busiest NIC.
 *
 *			hops inside / between		bytes inside / between
 *	ring
 *	 AllReduce	2(n-1) in all / up to 2N	2(n-1)/n S / the same over k
 *	 AllGather	n-1 in all / up to N		(n-1)/n S / the same over k
 *	 ReduceScatter	as AllGather
 *	 Broadcast	n-N / N-1			S / S over k; fills a pipeline
 *	 Reduce		as Broadcast
 *	tree
 *	 AllReduce	2(g-1) / 2 ceil(log2 N)		2S / min(3, N-1) S over k; fills
 *	 Broadcast	g-1 / ceil(log2 N)		S / min(2, N/2) S over k; fills
 *	 Reduce		as Broadcast
 *	double tree: hops as tree
 *	 AllReduce					2S / min(2, N/2) S over k; fills
 *	 Broadcast					S / S over k; fills
 *	 Reduce		as Broadcast
 *	direct, W transfers at once
 *	 SendRecv	1 of the slower kind		S
 *	 AlltoAll	(g-1)/W / (n-g)/W, rounded up	(g-1)/n S / g(n-g)/n S over k
 *	 Gather		as AlltoAll			(g-1)/n S / (n-g)/n S of one NIC
 *	 Scatter	as Gather
 *
 * Bytes of trees are divided by COST_TREE_SHARE: ranks that receive from two and send to two do not keep their links
 * as busy. Filling a pipeline takes c for every hop but one. On one node trees are chains; a chain of two transfers S
 * and not 2S.
 */

enum cost_link { COST_INSIDE = 0, COST_BETWEEN = 1, COST_LINKS = 2 };

enum cost_algorithm {
	COST_ANY = 0,
	COST_RING = 1,
	COST_TREE = 2,	      /* one binary tree over nodes, as in textbooks; NCCL has two */
	COST_DOUBLE_TREE = 3, /* NCCL's "Tree" */
	COST_DIRECT = 4,      /* every message goes directly to its destination */
	COST_ALGORITHMS = 5,
};

enum {
	COST_DIRECT_WIDTH = 8,	     /* W: NCCL puts this many transfers into one batch */
	COST_CHUNK_LEAST = 32 << 10, /* c: one channel; small messages use few */
	COST_CHUNK_MOST = 4 << 20,   /* 8 channels of 512 KiB */
	COST_CHUNKS_PER_HOP = 8,     /* as many as the size allows between these two */
};

/* Share of a link's bandwidth that trees get; NCCL's own tuner assumes as much. */
#define COST_TREE_SHARE 0.92

/* Where an operation runs. */
struct cost_shape {
	int32_t ranks;
	int32_t nodes; /* as NCCL sees them: ranks that share a GPU count as one node each */
	int32_t rails; /* NICs per node; 0: one per rank */
};

struct cost_work {
	double hops[COST_LINKS];
	double bytes
		[COST_LINKS]; /* transferred concurrently: the slower of the two is the bottleneck */
	double fill[COST_LINKS]; /* transferred sequentially: they add up */
	double steps;		 /* of the algorithm, for display: 2(n-1) of a ring AllReduce */
	double step_bytes;	 /* that one of them transfers over one link */
};

const char *cost_algorithm_name(enum cost_algorithm algorithm); /* "ring", "double-tree" */
const char *cost_link_name(enum cost_link link);		/* "inside", "between" */
enum cost_algorithm cost_algorithm_find(const char *name);	/* COST_ANY: no such name */

/* The model's name of an op_algorithm: Ring, Tree (the double one); COST_ANY if it is not modeled. */
enum cost_algorithm cost_algorithm_of(uint8_t op_algorithm);
/* Whether NCCL has this algorithm for the function. Tree and double tree also exist for comparison. */
bool cost_is_in_nccl(uint8_t function, enum cost_algorithm algorithm);

/*
 * False: no such algorithm for this function, or an invalid shape (no ranks, more nodes than ranks). One rank has
 * no work: all 0.
 */
bool cost_work_of(uint8_t function, enum cost_algorithm algorithm, const struct cost_shape *shape,
		  uint64_t bytes, struct cost_work *work);

/*
 * SendRecv in pairs: `leaving` ranks of the busiest node exchange with another node at the same time; 0: every pair
 * is inside a node.
 */
bool cost_work_of_pairs(const struct cost_shape *shape, int32_t leaving, uint64_t bytes,
			struct cost_work *work);

enum cost_parameter {
	COST_CALL = 0,		 /* ns per call */
	COST_LATENCY_INSIDE = 1, /* ns per hop */
	COST_LATENCY_BETWEEN = 2,
	COST_TIME_INSIDE = 3,  /* ns per byte: 1 / (GB/s) */
	COST_TIME_BETWEEN = 4, /* ... of one NIC */
	COST_PARAMETERS = 5,
};

/* "call", "latency inside", ... */
const char *cost_parameter_name(enum cost_parameter parameter);

enum cost_source { COST_FROM_FIT = 1, COST_BY_HAND = 2, COST_FROM_HARDWARE = 3 };

/* The measured range: predictions beyond it are extrapolations. All 0: nothing measured. */
struct cost_range {
	uint64_t bytes_least, bytes_most;
	int32_t ranks_least, ranks_most;
	int32_t nodes_least, nodes_most;
};

/* Parameters of one algorithm and protocol. */
struct cost_group {
	uint8_t function;	       /* enum op_function; 0: any */
	enum cost_algorithm algorithm; /* COST_ANY: any */
	uint8_t protocol;	       /* enum op_protocol; 0: any or unknown */
	/*
	 * Sizes it is for; 0, 0: all. Times bend where NCCL switches to another protocol or more channels: each
	 * range then has its own parameters.
	 */
	uint64_t bytes_from, bytes_to;
	double value[COST_PARAMETERS];
	uint8_t source[COST_PARAMETERS]; /* enum cost_source; 0: unknown */
	/* Of a fit; cells 0: none. */
	size_t cells;
	size_t sizes;	     /* distinct ones */
	size_t points;	     /* distinct sizes, shapes and functions; other cells repeat these */
	double median_error; /* |expected / measured - 1| over the cells */
	double worst_error;
	double scatter; /* standard deviation of ln(measured / expected), robust */
	double covariance[COST_PARAMETERS][COST_PARAMETERS];
	struct cost_range range;
	/*
	 * Bit p: the measurements only determine parameter p together with others (one number of ranks: call and
	 * latency); its value is in the latency (or the later one), and `fixed_ns` is their measured total.
	 */
	unsigned int inseparable;
	double fixed_ns;
	/*
	 * Bit l: links of kind l (enum cost_link) were used but never the bottleneck: their speed is unknown and,
	 * on such nodes, does not matter.
	 */
	unsigned int faster;
	/* All sizes took the same time within noise: nothing is known about larger ones. */
	bool is_flat;
};

enum { COST_GROUPS_MAX = 128, COST_NOTES_MAX = 16, COST_NOTE_BYTES = 256 };

struct cost_model {
	struct cost_group groups[COST_GROUPS_MAX];
	size_t group_count;
	size_t groups_lost; /* that did not fit */
	int32_t rails;	    /* NICs per node; 0: one per rank */
	char hardware[32];  /* its name; "" none */
	/* Sentences: what could not be determined, what was skipped. */
	char notes[COST_NOTES_MAX][COST_NOTE_BYTES];
	size_t note_count;
	size_t notes_lost;
};

void cost_model_init(struct cost_model *model);
void cost_model_note(struct cost_model *model, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Sets a parameter by hand in every group (adds one if there is none). Latency and call in ns, time per byte in ns;
 * protocols of textbook values keep their ratio to Simple, which this sets. ERR_RANGE: negative, not finite, or a
 * time per byte of 0.
 */
enum status cost_model_set(struct cost_model *model, enum cost_parameter parameter, double value);

/* Textbook values for every unknown parameter; in an empty model, for all. False: no such name. */
bool cost_model_hardware(struct cost_model *model, const char *name);
struct cost_hardware {
	const char *name;
	const char *what;     /* "8 H100 SXM with NVLink 4 per node, 8 NICs of 400 Gb/s" */
	int32_t ranks_a_node; /* per node of this kind */
	int32_t rails;
	double inside;	/* GB/s */
	double between; /* GB/s of a NIC */
};
/* NULL past the last one. */
const struct cost_hardware *cost_hardware(size_t index);

enum cost_flag {
	COST_BEYOND_BYTES = 1u << 0, /* more or fewer bytes than measured */
	COST_BEYOND_RANKS = 1u << 1,
	COST_BEYOND_NODES = 1u << 2,
	COST_OTHER_FUNCTION = 1u << 3, /* not measured: from measurements of other functions */
	COST_OTHER_ALGORITHM = 1u << 4,
	/*
	 * Other numbers of ranks than measured, and call and latency could not be separated: the interval ranges
	 * from "all of it is the call" to "all of it is hops".
	 */
	COST_UNSEPARATED = 1u << 5,
	COST_NOT_IN_NCCL = 1u << 6, /* NCCL has no such algorithm for this function */
};

struct cost_answer {
	enum cost_algorithm algorithm;
	uint8_t protocol; /* of the group used */
	const struct cost_group *group;
	struct cost_work work;
	double time_ns;
	double low_ns; /* 95% interval; the time itself if nothing similar was measured */
	double high_ns;
	bool has_interval;
	double algbw; /* GB/s */
	double busbw;
	unsigned int flags;  /* enum cost_flag */
	double bytes_factor; /* factor beyond the range, at least 1 */
	double ranks_factor;
	double nodes_factor;
	double doublings; /* of all these; ranks and nodes usually grow together and count once */
	/* Parts of time_ns, for display. */
	double call_ns;
	double latency_ns;
	double transfer_ns;
};

/*
 * Time of one algorithm: with `protocol`, or if 0 with the fastest one that has parameters. False: unknown, and
 * *why, if not NULL, is a static sentence.
 */
bool cost_predict(const struct cost_model *model, uint8_t function, enum cost_algorithm algorithm,
		  uint8_t protocol, const struct cost_shape *shape, uint64_t bytes,
		  struct cost_answer *answer, const char **why);

/*
 * All algorithms that can be predicted, fastest first; returns how many (at most COST_ALGORITHMS). Those that NCCL
 * does not have for this function come last.
 */
size_t cost_predict_all(const struct cost_model *model, uint8_t function,
			const struct cost_shape *shape, uint64_t bytes,
			struct cost_answer answers[COST_ALGORITHMS], const char **why);

/*
 * Only the formula. False: a required parameter is unknown; *missing says which. An unknown call overhead counts as
 * 0: whoever shows the time must say so.
 */
bool cost_time(const struct cost_group *group, const struct cost_work *work, double *time_ns,
	       enum cost_parameter *missing);

/*
 * Fits the model's parameters to measurements: bounded least squares on the logarithm of the time (so that errors
 * are relative), with little weight for outliers (Huber).
 *
 * Cells are grouped by algorithm and protocol if known (forced, or as recorded by the plugin); a function measured
 * in enough sizes has its own parameters, and all functions together have a set for the others. What the
 * measurements cannot separate is noted, not guessed.
 */

struct cost_fit_options {
	enum bench_over over;
	uint8_t mode;  /* enum bench_mode; 0: blocking if present, otherwise the first */
	int32_t rails; /* 0: one NIC per rank */
};

/* One cell compared with the model. */
struct cost_cell {
	size_t run;
	size_t cell;
	bool is_used; /* used in the fit; otherwise `why` is a static reason */
	const char *why;
	double measured_ns; /* the median; 0: unknown */
	double expected_ns; /* by its group; 0: none */
	double error;	    /* expected / measured - 1 */
	uint8_t protocol;
	enum cost_algorithm algorithm;
};

struct cost_fit {
	struct cost_cell *cells; /* all cells of all runs, in order */
	size_t cell_count;
	size_t used;
	uint8_t mode;	     /* that was fitted */
	double median_error; /* over all used cells, each with its best group */
	double worst_error;
};

/*
 * Fits groups and adds them to *model (initialized by cost_model_init). *fit can be NULL; otherwise the caller
 * releases it. ERR_UNKNOWN: nothing could be fitted, see the notes; ERR_NO_SPACE. Deterministic.
 */
enum status cost_fit(struct cost_model *model, struct cost_fit *fit,
		     const struct bench_run *const *runs, size_t run_count,
		     const struct cost_fit_options *options);
void cost_fit_release(struct cost_fit *fit);

/* Ranks and nodes of a cell as NCCL sees them. */
struct cost_shape cost_shape_of(const struct bench_run *run, const struct bench_cell *cell,
				int32_t rails);

/*
 * The model's answer for a cell, with its own algorithm and protocol if known, otherwise the fastest. False:
 * unknown.
 */
bool cost_predict_cell(const struct cost_model *model, const struct bench_run *run,
		       const struct bench_cell *cell, struct cost_answer *answer);

/* Shared by the parts of the cost model: the formula as a row of factors, one per parameter. */

/* time = sum of row[p] * value[p], if links of kind `slow` are the bottleneck. */
static inline void cost_row(const struct cost_work *work, enum cost_link slow,
			    double row[COST_PARAMETERS])
{
	row[COST_CALL] = 1;
	row[COST_LATENCY_INSIDE] = work->hops[COST_INSIDE];
	row[COST_LATENCY_BETWEEN] = work->hops[COST_BETWEEN];
	row[COST_TIME_INSIDE] = work->fill[COST_INSIDE];
	row[COST_TIME_BETWEEN] = work->fill[COST_BETWEEN];
	if (slow == COST_INSIDE)
		row[COST_TIME_INSIDE] += work->bytes[COST_INSIDE];
	else
		row[COST_TIME_BETWEEN] += work->bytes[COST_BETWEEN];
}

/* The kind of link that is the bottleneck. */
static inline enum cost_link cost_slow(const struct cost_work *work, const double *value)
{
	return work->bytes[COST_INSIDE] * value[COST_TIME_INSIDE] >
			       work->bytes[COST_BETWEEN] * value[COST_TIME_BETWEEN]
		       ? COST_INSIDE
		       : COST_BETWEEN;
}

static inline double cost_product(const double *row, const double *value)
{
	double sum = 0;

	for (int p = 0; p < COST_PARAMETERS; p++)
		sum += row[p] * value[p];
	return sum;
}

#endif
