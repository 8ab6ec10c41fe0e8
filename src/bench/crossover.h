/*
 * Which algorithm and protocol is fastest at which size, where their curves cross, and how good NCCL's choice was.
 * Needs a run that has cells with a forced algorithm or protocol and cells of NCCL's choice (algorithm 0 and
 * protocol 0).
 *
 * Noise is not interpreted: a curve is faster at a size only if the intervals of the medians do not overlap and the
 * difference is at least CROSSOVER_LEAST; otherwise the two count as equal.
 */
#ifndef CROSSOVER_H
#define CROSSOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench_result.h"
#include "bench/cost_model.h"
#include "common/status.h"
#include "output/sink.h"

/*
 * Median of one cell with its 99% interval (order statistics; with fewer than 8 calls the extremes): many are
 * compared, so 95% would find differences in noise. Equal cells of several rounds are combined: their calls are one
 * sample, and the interval contains the median of each.
 */
struct crossover_point {
	uint64_t bytes;
	double median_ns;
	double low_ns;
	double high_ns;
	size_t calls;
	uint64_t wrong;		  /* wrong result elements; such a point is never the best */
	uint8_t chosen_algorithm; /* for NCCL's choice: what it chose; 0: unknown */
	uint8_t chosen_protocol;
};

/* One algorithm and protocol over all measured sizes, smallest first. */
struct crossover_curve {
	uint8_t algorithm; /* enum op_algorithm, 0: not forced */
	uint8_t protocol;  /* enum op_protocol, 0: not forced; in an envelope: the best one */
	bool is_own;	   /* NCCL's choice */
	bool is_envelope;  /* the fastest of the algorithm's protocols at each size */
	struct crossover_point *points;
	size_t count;
};

/* One forced algorithm with one protocol. */
static inline bool crossover_is_forced(const struct crossover_curve *curve)
{
	return !curve->is_own && !curve->is_envelope;
}

enum crossover_answer {
	CROSSOVER_CROSSES = 1, /* `first` is faster below, `second` above */
	/* No crossing in the measured range: never clearly slower, somewhere clearly faster. */
	CROSSOVER_FIRST_WINS = 2,
	CROSSOVER_SECOND_WINS = 3,
	CROSSOVER_ALIKE = 4,   /* no clear difference at any size */
	CROSSOVER_NO_DATA = 5, /* fewer than two sizes in common */
};

struct crossover_crossing {
	size_t first; /* of curves[] */
	size_t second;
	enum crossover_answer answer;
	double bytes;	  /* CROSSES: where the curves intersect, interpolated in log-log */
	double low_bytes; /* ... the interval, given the uncertainty of the medians */
	double high_bytes;
	bool is_repeated;    /* one of several crossings */
	double most_ratio;   /* the largest clear ratio of slower to faster, >= 1 */
	uint64_t most_bytes; /* ... at this size; 0 none */
};

/* One size. */
struct crossover_size {
	uint64_t bytes;
	size_t best;	    /* curve (forced, no envelope); SIZE_MAX none */
	bool is_best_clear; /* clearly faster than all others */
	double best_ns;
	size_t second; /* SIZE_MAX: none */
	bool has_own;
	double own_ns;
	uint8_t own_algorithm; /* NCCL's choice, as recorded by the plugin; 0: unknown */
	uint8_t own_protocol;
	double regret;	   /* own_ns / best_ns; 0 unknown */
	double regret_low; /* lower bound from the intervals */
	double regret_high;
	bool is_regret_clear; /* beyond noise and CROSSOVER_LEAST, and NCCL chose something else */
	bool is_same_slower; /* ... and NCCL chose the same: forcing changed more than the choice */
};

enum crossover_advice_kind {
	CROSSOVER_LEAVE = 1,   /* NCCL's choice is as good as the best */
	CROSSOVER_CHANGE = 2,  /* another one is clearly faster in a range of sizes */
	CROSSOVER_CAUTION = 3, /* additional: risks, limits of the measurement */
	CROSSOVER_UNSURE = 4,  /* could not tell, and why */
};

struct crossover_advice {
	enum crossover_advice_kind kind;
	uint64_t from_bytes; /* CHANGE: the range of measured sizes */
	uint64_t to_bytes;
	size_t curve;	  /* CHANGE: the faster curve; SIZE_MAX */
	double ratio;	  /* CHANGE: the geometric mean over the range */
	double ratio_low; /* smallest lower bound over the range */
	char text[512];
};

enum { CROSSOVER_ADVICE_MAX = 16 };

/* One function in one mode, in or out of place, with one datatype and reduction. */
struct crossover {
	uint8_t function;
	uint8_t datatype;
	uint8_t redop;
	uint8_t mode;
	bool is_in_place;
	int32_t root;
	int32_t nranks;
	struct crossover_curve *curves; /* forced ones, then envelopes, then NCCL's choice */
	size_t curve_count;
	size_t own;		      /* SIZE_MAX: not measured */
	struct crossover_size *sizes; /* all measured sizes, smallest first */
	size_t size_count;
	/* Algorithms compared, each with its best protocol, and the protocols of each algorithm. */
	struct crossover_crossing *crossings;
	size_t crossing_count;
	struct crossover_advice advice[CROSSOVER_ADVICE_MAX];
	size_t advice_count;
	double worst_regret; /* the largest clear one; 1: none */
};

/* All crossovers of a run. */
struct crossover_set {
	struct crossover *all;
	size_t count;
	size_t unusable; /* cells without times of single calls (loop mode) or without a size */
};

void crossover_set_init(struct crossover_set *set);
void crossover_set_release(struct crossover_set *set);

/* ERR_UNKNOWN: no usable cell; ERR_NO_SPACE. Pairs (SendRecv with peers) are skipped. */
enum status crossover_find(struct crossover_set *set, const struct bench_run *run,
			   enum bench_over over);

/* "Ring+LL128", "Tree", "NCCL's choice"; returns `to`. */
enum { CROSSOVER_NAME = 48 };
const char *crossover_curve_name(char to[static CROSSOVER_NAME],
				 const struct crossover_curve *curve);

/*
 * Compares two curves; up to `room` crossings go to `found`, whose `first` and `second` are then 0 for the first
 * curve and 1 for the second. Returns the number of crossings, at least 1: the answer is in the first. 0: out of
 * memory, or no room.
 */
size_t crossover_cross(const struct crossover_curve *first, const struct crossover_curve *second,
		       struct crossover_crossing *found, size_t room);

/*
 * Which algorithm and protocol is fastest at which size, as text: a table, a plot, crossings, NCCL's choice,
 * advice, and how well the model fits. docs/BENCH.md has an example.
 */

/* What all outputs of a crossover show; all borrowed. */
struct crossover_view {
	const struct bench_run *run;
	const struct crossover_set *set;
	const struct cost_model *model; /* NULL: nothing could be fitted */
	const char *why_no_model;	/* if there is no model; can be NULL */
};

struct crossover_text_options {
	unsigned int width; /* 0: unlimited */
	bool is_ascii;	    /* the plot without Braille */
	bool has_plot;
};

/* ERR_NO_SPACE, or the sink's status. */
enum status crossover_text(struct sink *sink, const struct crossover_view *view,
			   const struct crossover_text_options *options);

/*
 * The same as JSON: {"format":"ringside-crossover","version":1,...} with the whole measurement, which `ringside
 * bench crossover --from` can show again. docs/BENCH.md documents the keys.
 */

/* The document and a newline. ERR_NO_SPACE, or the sink's status. */
enum status crossover_json(struct sink *sink, const struct crossover_view *view);

/*
 * The same as a page: a single file without scripts or external resources, SVG charts, light and dark. All text is
 * escaped.
 */

/* ERR_NO_SPACE, or the sink's status. */
enum status crossover_html(struct sink *sink, const struct crossover_view *view);

#endif
