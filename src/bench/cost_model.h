/*
 * How long an operation should take:
 *
 *	time = call + sum over kinds of links (hops x latency + fill / bandwidth)
 *	            + the larger of (bytes / bandwidth) of the two kinds of links
 *
 * with hops, fill and bytes of struct cost_work. Parameters come from measurements (cost_fit()), from
 * the user or from a textbook by its name; a parameter that nobody told is unknown, and what needs
 * it is not predicted.
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
 * How much an operation has to carry and how far: hops and bytes of ring, tree, double tree and
 * direct transfers, without any speed. docs/BENCH.md has the table.
 *
 * n ranks on N nodes, g = n / N of them (rounded up) on one, S bytes of the message as nccl-tests
 * counts them, k = min(g, NICs of a node), c bytes of a chunk. Hops are those of the critical path.
 * "Inside" bytes pass the busiest GPU in one direction, "between" bytes the busiest NIC.
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
 * Bytes of trees count 1 / COST_TREE_SHARE: ranks that take from two and give to two do not keep
 * their links as busy. Filling a pipeline takes c for every hop but one. On one node trees are
 * chains; a chain of two carries S and not 2S.
 */

enum cost_link { COST_INSIDE = 0, COST_BETWEEN = 1, COST_LINKS = 2 };

enum cost_algorithm {
	COST_ANY = 0,
	COST_RING = 1,
	COST_TREE = 2,	      /* one binary tree over nodes: a textbook's; NCCL has two */
	COST_DOUBLE_TREE = 3, /* NCCL's "Tree" */
	COST_DIRECT = 4,      /* every message straight to whom it is for */
	COST_ALGORITHMS = 5,
};

enum {
	COST_DIRECT_WIDTH = 8,	     /* W: NCCL puts so many transfers into one batch */
	COST_CHUNK_LEAST = 32 << 10, /* c: one channel; small messages use few */
	COST_CHUNK_MOST = 4 << 20,   /* 8 channels of 512 KiB */
	COST_CHUNKS_PER_HOP = 8,     /* as many as the size allows between these two */
};

/* Share of a link's bandwidth that trees get; NCCL's own tuner supposes as much. */
#define COST_TREE_SHARE 0.92

/* Where an operation runs. */
struct cost_shape {
	int32_t ranks;
	int32_t nodes; /* as NCCL sees them: ranks that share a GPU count as one node each */
	int32_t rails; /* NICs of a node; 0: one for each rank */
};

struct cost_work {
	double hops[COST_LINKS];
	double bytes[COST_LINKS]; /* carried at the same time: the slower one of the two decides */
	double fill[COST_LINKS];  /* bytes that wait for each other: they add up */
	double steps;		  /* of the algorithm, for people: 2(n-1) of a ring AllReduce */
	double step_bytes;	  /* that one of them carries over one link */
};

const char *cost_algorithm_name(enum cost_algorithm algorithm); /* "ring", "double-tree" */
const char *cost_link_name(enum cost_link link);		/* "inside", "between" */
enum cost_algorithm cost_algorithm_find(const char *name);	/* COST_ANY: no such name */

/* What of op_algorithm this models: Ring, Tree (the double one); COST_ANY for those that it does
 * not. */
enum cost_algorithm cost_algorithm_of(uint8_t op_algorithm);
/* Does NCCL do this function so? Tree and double tree are also there to compare with. */
bool cost_is_in_nccl(uint8_t function, enum cost_algorithm algorithm);

/* False: this function cannot be done so, or the shape makes no sense (no ranks, more nodes than
 * ranks). One rank has no work: all 0. */
bool cost_work_of(uint8_t function, enum cost_algorithm algorithm, const struct cost_shape *shape,
		  uint64_t bytes, struct cost_work *work);

/* SendRecv between pairs that are told apart: `leaving` ranks of the busiest node talk to another
 * node at the same time; 0: every pair is inside a node. */
bool cost_work_of_pairs(const struct cost_shape *shape, int32_t leaving, uint64_t bytes,
			struct cost_work *work);

enum cost_parameter {
	COST_CALL = 0,		 /* ns that every call takes */
	COST_LATENCY_INSIDE = 1, /* ns a hop */
	COST_LATENCY_BETWEEN = 2,
	COST_TIME_INSIDE = 3,  /* ns a byte: 1 / (GB/s) */
	COST_TIME_BETWEEN = 4, /* ... of one NIC */
	COST_PARAMETERS = 5,
};

/* "call", "latency inside", ... */
const char *cost_parameter_name(enum cost_parameter parameter);

enum cost_source { COST_FROM_FIT = 1, COST_BY_HAND = 2, COST_FROM_HARDWARE = 3 };

/* Where measurements were made: beyond these a prediction is an extrapolation. All 0: none were. */
struct cost_range {
	uint64_t bytes_least, bytes_most;
	int32_t ranks_least, ranks_most;
	int32_t nodes_least, nodes_most;
};

/* Parameters for one way to do it. */
struct cost_group {
	uint8_t function;	       /* enum op_function; 0: any */
	enum cost_algorithm algorithm; /* COST_ANY: any */
	uint8_t protocol;	       /* enum op_protocol; 0: any or not told */
	/* Sizes that it is for; 0, 0: all. Times bend where NCCL goes over to another protocol or to
	 * more channels: each stretch then has a set of its own. */
	uint64_t bytes_from, bytes_to;
	double value[COST_PARAMETERS];
	uint8_t source[COST_PARAMETERS]; /* enum cost_source; 0: unknown */
	/* Of a fit; cells 0: there was none. */
	size_t cells;
	size_t sizes;	     /* different ones */
	size_t points;	     /* different sizes, shapes and functions: others repeat these */
	double median_error; /* |expected / measured - 1| over the cells */
	double worst_error;
	double scatter; /* standard deviation of ln(measured / expected), robust */
	double covariance[COST_PARAMETERS][COST_PARAMETERS];
	struct cost_range range;
	/* Bit p: the measurements tell parameter p together with others only (one number of
	 * ranks: call and latency); its value is in the latency (or the later one), and
	 * `fixed_ns` is their sum as measured. */
	unsigned int inseparable;
	double fixed_ns;
	/* Bit l: links of kind l (enum cost_link) were in use and never were what decided: how fast
	 * they are is not known and, on such nodes, does not matter. */
	unsigned int faster;
	/* All sizes took the same time, as far as can be told: nothing is said of larger ones. */
	bool is_flat;
};

enum { COST_GROUPS_MAX = 128, COST_NOTES_MAX = 16, COST_NOTE_BYTES = 256 };

struct cost_model {
	struct cost_group groups[COST_GROUPS_MAX];
	size_t group_count;
	size_t groups_lost; /* that did not fit */
	int32_t rails;	    /* NICs of a node; 0: one for each rank */
	char hardware[32];  /* its name; "" none */
	/* Sentences: what could not be told, what was left out. */
	char notes[COST_NOTES_MAX][COST_NOTE_BYTES];
	size_t note_count;
	size_t notes_lost;
};

void cost_model_init(struct cost_model *model);
void cost_model_note(struct cost_model *model, const char *format, ...) PRINTF_LIKE(2, 3);

/* Say a parameter by hand: in every group (one is made when there is none). Latency and call in
 * ns, time per byte in ns; protocols of a textbook keep their proportion to Simple, which this is.
 * ERR_RANGE: negative, not finite, or no time per byte at all. */
enum status cost_model_set(struct cost_model *model, enum cost_parameter parameter, double value);

/* A textbook's values, for all that is unknown or, in an empty model, for everything. False: no
 * such name. */
bool cost_model_hardware(struct cost_model *model, const char *name);
struct cost_hardware {
	const char *name;
	const char *what;     /* "8 H100 SXM with NVLink 4 a node, 8 NICs of 400 Gb/s" */
	int32_t ranks_a_node; /* what a node of this kind has */
	int32_t rails;
	double inside;	/* GB/s */
	double between; /* GB/s of a NIC */
};
/* The index-th; NULL past the last. */
const struct cost_hardware *cost_hardware(size_t index);

enum cost_flag {
	COST_BEYOND_BYTES = 1u << 0, /* more or fewer bytes than were measured */
	COST_BEYOND_RANKS = 1u << 1,
	COST_BEYOND_NODES = 1u << 2,
	COST_OTHER_FUNCTION = 1u << 3, /* never measured: from other functions' measurements */
	COST_OTHER_ALGORITHM = 1u << 4,
	/* Other ranks than measured, and call and latency could not be told apart: the interval
	 * goes from "all of it is the call" to "all of it is hops". */
	COST_UNSEPARATED = 1u << 5,
	COST_NOT_IN_NCCL = 1u << 6, /* NCCL has no such algorithm for this function */
};

struct cost_answer {
	enum cost_algorithm algorithm;
	uint8_t protocol; /* of the group that it comes from */
	const struct cost_group *group;
	struct cost_work work;
	double time_ns;
	double low_ns; /* 95 % interval; the time itself where nothing like it was measured */
	double high_ns;
	bool has_interval;
	double algbw; /* GB/s */
	double busbw;
	unsigned int flags;  /* enum cost_flag */
	double bytes_factor; /* how far beyond the range, at least 1 */
	double ranks_factor;
	double nodes_factor;
	double doublings; /* of all these; ranks and nodes mostly grow together and count once */
	/* Parts of time_ns, for people. */
	double call_ns;
	double latency_ns;
	double transfer_ns;
};

/* Time of one algorithm: the fastest of the protocols that there are parameters for (`protocol`
 * 0), or of that one. False: it cannot be told, and *why, if not NULL, is a static sentence. */
bool cost_predict(const struct cost_model *model, uint8_t function, enum cost_algorithm algorithm,
		  uint8_t protocol, const struct cost_shape *shape, uint64_t bytes,
		  struct cost_answer *answer, const char **why);

/* All algorithms that can be told, the fastest first; how many (at most COST_ALGORITHMS). Those
 * that NCCL does not have for this function come last. */
size_t cost_predict_all(const struct cost_model *model, uint8_t function,
			const struct cost_shape *shape, uint64_t bytes,
			struct cost_answer answers[COST_ALGORITHMS], const char **why);

/* The formula alone. False: a parameter that it needs is unknown; *missing says which. A call whose
 * cost nobody told costs nothing: who shows the figure says so. */
bool cost_time(const struct cost_group *group, const struct cost_work *work, double *time_ns,
	       enum cost_parameter *missing);

/*
 * The model's parameters from measurements: least squares on the logarithm of the time (so that the
 * error is relative), with bounds, where single wild values count little (Huber).
 *
 * Cells are put together by algorithm and protocol where the measurement says which (forced, or as
 * the recorder saw NCCL choose); a function that was measured in enough sizes has parameters of its
 * own, and all functions together have a set for those that were not. What the measurements cannot
 * tell apart is noted and not made up.
 */

struct cost_fit_options {
	enum bench_over over;
	uint8_t mode;  /* enum bench_mode; 0: blocking if there, else the first */
	int32_t rails; /* 0: one NIC for each rank */
};

/* One cell beside the model. */
struct cost_cell {
	size_t run;
	size_t cell;
	bool is_used; /* in the fit; else `why` says why not, static */
	const char *why;
	double measured_ns; /* the median; 0 not known */
	double expected_ns; /* of the group that it belongs to; 0: none */
	double error;	    /* expected / measured - 1 */
	uint8_t protocol;
	enum cost_algorithm algorithm;
};

struct cost_fit {
	struct cost_cell *cells; /* all cells of all runs, in order */
	size_t cell_count;
	size_t used;
	uint8_t mode;	     /* that was fitted */
	double median_error; /* over all that were used, each by its best group */
	double worst_error;
};

/*
 * Fits and adds groups to *model (made by cost_model_init). *fit may be NULL; else it is filled and
 * the caller releases it. ERR_UNKNOWN: nothing could be fitted, the notes say why; ERR_NO_SPACE.
 * Same input, same result.
 */
enum status cost_fit(struct cost_model *model, struct cost_fit *fit,
		     const struct bench_run *const *runs, size_t run_count,
		     const struct cost_fit_options *options);
void cost_fit_release(struct cost_fit *fit);

/* Ranks and nodes of a cell as NCCL sees them. */
struct cost_shape cost_shape_of(const struct bench_run *run, const struct bench_cell *cell,
				int32_t rails);

/* What the model says for a cell, with the cell's own algorithm and protocol where they are
 * known, else the fastest; to be shown beside it. False: cannot be told. */
bool cost_predict_cell(const struct cost_model *model, const struct bench_run *run,
		       const struct bench_cell *cell, struct cost_answer *answer);

#endif
