/*
 * Which algorithm and protocol is the fastest at which size, where their curves cross, and how good
 * NCCL's own choice was. From a run that has cells with forced algorithm or protocol and cells of
 * NCCL's own choice (algorithm 0 and protocol 0).
 *
 * Nothing is concluded from noise: a curve is faster at a size where the intervals of the medians
 * do not overlap and the difference is at least CROSSOVER_LEAST; elsewhere the two are equal as far
 * as anyone can tell.
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

/* Median of one cell, with its 99 % interval (order statistics; with fewer than 8 calls the
 * extremes): many are compared, so 95 % would find differences in noise. Equal cells, of several
 * rounds, are put together: their calls are one sample, and the interval holds the median of each. */
struct crossover_point {
	uint64_t bytes;
	double median_ns;
	double low_ns;
	double high_ns;
	size_t calls;
	uint64_t wrong;		  /* elements with wrong results; such a point is never the best */
	uint8_t chosen_algorithm; /* NCCL's own choice: what it took; 0 unknown */
	uint8_t chosen_protocol;
};

/* One way to do it over all sizes that were measured, smallest first. */
struct crossover_curve {
	uint8_t algorithm; /* enum op_algorithm, 0: not forced */
	uint8_t protocol; /* enum op_protocol, 0: not forced, or of an envelope: the best of them */
	bool is_own;	  /* NCCL's own choice */
	bool is_envelope; /* at each size the fastest of the algorithm's protocols */
	struct crossover_point *points;
	size_t count;
};

/* One algorithm with one protocol, which NCCL was made to take. */
static inline bool crossover_is_forced(const struct crossover_curve *curve)
{
	return !curve->is_own && !curve->is_envelope;
}

enum crossover_answer {
	CROSSOVER_CROSSES = 1, /* `first` is faster below, `second` above */
	/* Never in the measured range: never clearly slower, somewhere clearly faster. */
	CROSSOVER_FIRST_WINS = 2,
	CROSSOVER_SECOND_WINS = 3,
	CROSSOVER_ALIKE = 4,   /* no clear difference at any size */
	CROSSOVER_NO_DATA = 5, /* fewer than two sizes in common */
};

struct crossover_crossing {
	size_t first; /* of curves[] */
	size_t second;
	enum crossover_answer answer;
	double bytes;	  /* CROSSES: where the curves meet, interpolated in log-log */
	double low_bytes; /* ... where they may meet, as far as the medians are known */
	double high_bytes;
	bool is_repeated;    /* they cross more than once: this is one of several */
	double most_ratio;   /* the largest clear ratio of the slower to the faster one, >= 1 */
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
	uint8_t own_algorithm; /* what NCCL took, as the recorder saw it; 0 unknown */
	uint8_t own_protocol;
	double regret;	   /* own_ns / best_ns; 0 unknown */
	double regret_low; /* the least that the intervals allow */
	double regret_high;
	bool is_regret_clear; /* beyond noise and CROSSOVER_LEAST, and NCCL took something else */
	bool is_same_slower; /* ... and NCCL took the very same: forcing changed more than the choice */
};

enum crossover_advice_kind {
	CROSSOVER_LEAVE = 1,   /* NCCL's choice is as good as it gets */
	CROSSOVER_CHANGE = 2,  /* something else is clearly faster in a range of sizes */
	CROSSOVER_CAUTION = 3, /* what goes with it: dangers, limits of what was measured */
	CROSSOVER_UNSURE = 4,  /* cannot be told, and why */
};

struct crossover_advice {
	enum crossover_advice_kind kind;
	uint64_t from_bytes; /* CHANGE: the range of measured sizes */
	uint64_t to_bytes;
	size_t curve;	  /* CHANGE: what is faster; SIZE_MAX */
	double ratio;	  /* CHANGE: by how much, the geometric mean over the range */
	double ratio_low; /* the least over the range that is beyond doubt */
	char text[512];
};

enum { CROSSOVER_ADVICE_MAX = 16 };

/* One function in one mode, in or out of place, with one datatype and operation. */
struct crossover {
	uint8_t function;
	uint8_t datatype;
	uint8_t redop;
	uint8_t mode;
	bool is_in_place;
	int32_t root;
	int32_t nranks;
	struct crossover_curve *curves; /* forced ones, then envelopes, then NCCL's own */
	size_t curve_count;
	size_t own;		      /* SIZE_MAX: not measured */
	struct crossover_size *sizes; /* all that were measured, smallest first */
	size_t size_count;
	/* Algorithms against each other, each with its best protocol, and protocols of one
	 * algorithm against each other. */
	struct crossover_crossing *crossings;
	size_t crossing_count;
	struct crossover_advice advice[CROSSOVER_ADVICE_MAX];
	size_t advice_count;
	double worst_regret; /* the largest that is clear; 1: none */
};

/* Everything of a run. */
struct crossover_set {
	struct crossover *all;
	size_t count;
	size_t unusable; /* cells without single times (loop mode) or without a size */
};

void crossover_set_init(struct crossover_set *set);
void crossover_set_release(struct crossover_set *set);

/* ERR_UNKNOWN: no cell that could be used; ERR_NO_SPACE. Pairs (SendRecv with peers) are passed
 * over. */
enum status crossover_find(struct crossover_set *set, const struct bench_run *run,
			   enum bench_over over);

/* "Ring+LL128", "Tree", "NCCL's choice"; gives back `to`. */
enum { CROSSOVER_NAME = 48 };
const char *crossover_curve_name(char to[static CROSSOVER_NAME],
				 const struct crossover_curve *curve);

/* Two curves against each other; up to `room` crossings go to `found`, whose `first` and `second`
 * are then 0 for the first curve and 1 for the second. Gives back how many there are, at least 1:
 * the answer is in the first. 0: no memory, or no room. */
size_t crossover_cross(const struct crossover_curve *first, const struct crossover_curve *second,
		       struct crossover_crossing *found, size_t room);

/*
 * Which algorithm and protocol is the fastest at which size, for people: a table, a plot, where curves cross,
 * what NCCL itself took, advice, and how well the model fits. docs/BENCH.md shows one.
 */

/* What all views of a crossover show; all borrowed. */
struct crossover_view {
	const struct bench_run *run;
	const struct crossover_set *set;
	const struct cost_model *model; /* NULL: nothing could be fitted */
	const char *why_no_model;	/* where there is none; may be NULL */
};

struct crossover_text_options {
	unsigned int width; /* 0: as wide as it takes */
	bool is_ascii;	    /* the plot without Braille dots */
	bool has_plot;
};

/* ERR_NO_SPACE, or the sink's status. */
enum status crossover_text(struct sink *sink, const struct crossover_view *view,
			   const struct crossover_text_options *options);

/*
 * The same as crossover_text(), for programs: {"format":"ringside-crossover","version":1,...} with the whole
 * measurement inside, from which `ringside bench crossover --from` shows it again. docs/JSON.md has the keys.
 */

/* The document and a newline. ERR_NO_SPACE, or the sink's status. */
enum status crossover_json(struct sink *sink, const struct crossover_view *view);

/*
 * The same as a page: one file that fetches nothing and runs nothing, charts as SVG, light
 * and dark. Whatever text it shows is escaped.
 */

/* ERR_NO_SPACE, or the sink's status. */
enum status crossover_html(struct sink *sink, const struct crossover_view *view);

#endif
