/* Curves of a crossover as series of a chart, for the terminal and for the page. */
#ifndef CROSSOVER_LINES_H
#define CROSSOVER_LINES_H

#include "common/status.h"
#include "view/bench_plot.h"
#include "view/crossover_text.h"

enum crossover_lines_kind {
	CROSSOVER_LINES_TIME =
		0, /* every forced curve and NCCL's own; too many: the best protocol of each */
	CROSSOVER_LINES_BUSBW = 1,  /* the same, in GB/s */
	CROSSOVER_LINES_MODEL = 2,  /* forced curves, and what the model says of each as a line */
	CROSSOVER_LINES_REGRET = 3, /* NCCL's time over the best one's */
};

struct crossover_lines {
	struct plot_series series[PLOT_SERIES_MAX];
	char names[PLOT_SERIES_MAX][CROSSOVER_NAME + 16];
	size_t count;
	size_t left_out; /* curves that there was no room for */
	double *values;	 /* of all series */
	size_t used;
};

/* On success the caller releases; ERR_NO_SPACE. */
enum status crossover_lines_make(struct crossover_lines *lines, const struct crossover_view *view,
				 const struct crossover *one, enum crossover_lines_kind kind);
void crossover_lines_release(struct crossover_lines *lines);

#endif
