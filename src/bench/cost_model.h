/*
 * How long an operation should take:
 *
 *	time = call + sum over kinds of links (hops x latency + fill / bandwidth)
 *	            + the larger of (bytes / bandwidth) of the two kinds of links
 *
 * with hops, fill and bytes from cost_work.h. Parameters come from measurements (cost_fit.h), from
 * the user or from a textbook by its name; a parameter that nobody told is unknown, and what needs
 * it is not predicted.
 */
#ifndef COST_MODEL_H
#define COST_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/cost_work.h"
#include "common/attributes.h"
#include "common/status.h"

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

#endif
