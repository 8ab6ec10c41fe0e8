/* The parts of a screen. For top_draw.c. */
#ifndef TOP_BRUSH_H
#define TOP_BRUSH_H

#include <stdbool.h>

#include "programs/top/top_draw.h"

struct top_brush {
	struct top_canvas *canvas;
	const struct top_model *model;
	struct top_view *view;
	const struct top_around *around;
};

void top_brush_head(struct top_brush *brush);
void top_brush_keys(struct top_brush *brush, unsigned int row);
void top_brush_help(struct top_brush *brush, unsigned int row);
/* When there is nothing to show. */
void top_brush_nothing(struct top_brush *brush, unsigned int row);

/* A pane with its title, or the notices, in so many lines from this row on. */
void top_brush_pane(struct top_brush *brush, enum top_pane pane, unsigned int row,
		    unsigned int lines);

/* Lines that a row takes: more than one where its details are shown. */
unsigned int top_brush_row_lines(const struct top_brush *brush, enum top_pane pane, size_t row);

/* Wrapped to the width; gives back the lines it took, or would take where `end` is `row`. */
unsigned int top_brush_wrap(struct top_brush *brush, unsigned int row, unsigned int end,
			    unsigned int indent, enum top_style style, const char *text);

#endif
