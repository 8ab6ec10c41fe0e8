/*
 * Which algorithm and protocol is the fastest at which size, for people: a table, a plot, where curves cross,
 * what NCCL itself took, advice, and how well the model fits. docs/CROSSOVER.md shows one.
 */
#ifndef CROSSOVER_TEXT_H
#define CROSSOVER_TEXT_H

#include <stdbool.h>

#include "bench/bench_result.h"
#include "bench/cost_fit.h"
#include "bench/cost_model.h"
#include "bench/crossover.h"
#include "common/status.h"
#include "output/sink.h"

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

/* "AllReduce, float32, sum, blocking, 8 ranks"; gives back `to`. */
enum { CROSSOVER_TITLE = 128 };
const char *crossover_title(char to[static CROSSOVER_TITLE], const struct crossover *one);

/* "Tree below 24 KiB, Ring above (they meet between 16 KiB and 64 KiB); ..."; gives back `to`. */
enum { CROSSOVER_SENTENCE = 320 };
const char *crossover_sentence(char to[static CROSSOVER_SENTENCE], const struct crossover *one,
			       const struct crossover_crossing *crossing);

/* Is it between algorithms, each with its best protocol? Those are told first. */
bool crossover_is_main(const struct crossover *one, const struct crossover_crossing *crossing);

/* Which cell of the run a point of a curve stands for; NULL: none. */
const struct bench_cell *crossover_cell(const struct bench_run *run, const struct crossover *one,
					const struct crossover_curve *curve, uint64_t bytes);
/* What the model says of a point; 0: nothing. */
double crossover_expected_ns(const struct crossover_view *view, const struct crossover *one,
			     const struct crossover_curve *curve, uint64_t bytes);
/* Of a curve beside the model: the median and the largest of |expected / measured - 1|. False: no model. */
struct crossover_error {
	double median;
	double worst;
	uint64_t worst_bytes;
	size_t points;
};
bool crossover_error_of(const struct crossover_view *view, const struct crossover *one,
			const struct crossover_curve *curve, struct crossover_error *error);

#endif
