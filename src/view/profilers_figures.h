/* Figures 1 to 4 of a comparison of profilers, as SVG and as text: each one chart for each mode. */
#ifndef PROFILERS_FIGURES_H
#define PROFILERS_FIGURES_H

#include <stdbool.h>

#include "bench/profilers.h"
#include "common/status.h"
#include "output/sink.h"

enum profilers_figure {
	PROFILERS_FIGURE_COMPLETE = 1,
	PROFILERS_FIGURE_ACCURACY = 2,
	PROFILERS_FIGURE_OVERHEAD = 3,
	PROFILERS_FIGURE_TRAINING = 4,
	PROFILERS_FIGURES = 5,
};

const char *profilers_figure_title(enum profilers_figure which);
/* What is drawn, for the caption. */
const char *profilers_figure_words(enum profilers_figure which);
/* Is there anything to draw? */
bool profilers_figure_is_there(const struct profilers_comparison *comparison,
			       enum profilers_figure which);
/* The <svg> elements, with .has_no_style: the page has it. ERR_NO_SPACE, or the sink's status. */
enum status profilers_figure_write(struct sink *sink, const struct profilers_comparison *comparison,
				   enum profilers_figure which);
/* The same charts as lines of text, each after an empty line. */
enum status profilers_figure_text(struct sink *sink, const struct profilers_comparison *comparison,
				  enum profilers_figure which, unsigned int width);

#endif
