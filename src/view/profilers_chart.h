/* Charts of a comparison of profilers: filled by name, then drawn as SVG or as text. */
#ifndef PROFILERS_CHART_H
#define PROFILERS_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "output/sink.h"
#include "view/bench_svg.h"

enum { CHART_GROUPS_MAX = 48, CHART_SERIES_MAX = SVG_SERIES_MAX, CHART_NAME_BYTES = 128 };

/* Where it is drawn. */
struct paper {
	struct sink *sink;
	bool is_text;	    /* else <svg> */
	unsigned int width; /* of text */
};

/* What a chart is made of. Names are found or added; what does not fit any more is counted. */
struct chart {
	char groups[CHART_GROUPS_MAX][CHART_NAME_BYTES];
	uint64_t keys[CHART_GROUPS_MAX][2]; /* by which groups are sorted and found */
	size_t group_count;
	char series[CHART_SERIES_MAX][CHART_NAME_BYTES];
	size_t series_count;
	double values[CHART_GROUPS_MAX * CHART_SERIES_MAX];
	struct svg_box boxes[CHART_GROUPS_MAX * CHART_SERIES_MAX];
	size_t left_out;
};

/* Empty; NULL: no memory. free() ends it. */
struct chart *chart_new(void);
/* All groups are added before the first value: they are sorted. SIZE_MAX: no room, or (without a name) no such. */
size_t chart_group(struct chart *chart, uint64_t first, uint64_t second, const char *name);
/* Found, or added; SIZE_MAX: no room. Values of both are at [group * CHART_SERIES_MAX + series]. */
size_t chart_series(struct chart *chart, const char *name);
/* Once: places are moved. A chart without groups or series draws nothing. */
enum status chart_draw(const struct paper *paper, struct chart *chart, bool is_boxes,
		       struct svg_options *options);

#endif
