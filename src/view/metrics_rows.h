/*
 * Totals and links, added up to the rows that are shown: one row per member and what tells its series
 * apart. Rows beyond the budget of a GPU are added up as "other" of their member, so that sums stay.
 */
#ifndef METRICS_ROWS_H
#define METRICS_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "view/metrics_model.h"

enum { METRICS_ROW_VALUES = 5 };

struct metrics_row {
	uint32_t member;
	uint64_t what;			     /* METRICS_..._KEY below */
	uint64_t values[METRICS_ROW_VALUES]; /* the first is its use: who has most stays */
	double bus_bytes;
	struct metrics_labels labels; /* the writer's */
};

struct metrics_rows {
	struct metrics_row *rows; /* by member and what */
	size_t count;
	uint64_t folded; /* rows that are shown as other */
};

/* Sizes: classes of region totals, those below 256 bytes and those above 8 GiB together. */
enum { METRICS_SIZE_UNKNOWN = 0, METRICS_SIZE_ZERO = 1, METRICS_SIZE_OTHER = METRICS_SIZES - 1 };
unsigned int metrics_size(unsigned int size_class);
const char *metrics_size_text(unsigned int size); /* "1MiB", "0", "unknown", "other" */

/* (function, size): operations, bytes, timed bytes, nanoseconds, timed operations; bus bytes. */
#define METRICS_SIZE_KEY(function, size) ((uint64_t)(function) << 8 | (size))
enum { ROW_OPERATIONS = 0, ROW_BYTES = 1, ROW_TIMED_BYTES = 2, ROW_TIME = 3, ROW_TIMED = 4 };
enum status metrics_rows_sizes(struct metrics_rows *rows, const struct metrics_model *model);

/* (function, algorithm, protocol): operations, nanoseconds in ROW_TIME, ROW_TIMED. */
#define METRICS_CHOICE_KEY(function, algorithm, protocol) \
	((uint64_t)(function) << 16 | (uint64_t)(algorithm) << 8 | (protocol))
enum status metrics_rows_choices(struct metrics_rows *rows, const struct metrics_model *model);

/* (function): timed operations. */
enum status metrics_rows_functions(struct metrics_rows *rows, const struct metrics_model *model);

/* (direction, peer): bytes, transfers, and what was waited for. A link that is "other" does not know its
 * direction; what it waited for is in the first of the three. */
enum metrics_direction { METRICS_SEND = 0, METRICS_RECV = 1, METRICS_EITHER = 2 };
#define METRICS_PEER_OTHER UINT32_MAX
#define METRICS_LINK_KEY(direction, peer) ((uint64_t)(direction) << 32 | (uint32_t)(peer))
enum { ROW_LINK_BYTES = 0, ROW_TRANSFERS = 1, ROW_WAITS = 2 };
enum status metrics_rows_links(struct metrics_rows *rows, const struct metrics_model *model);

/* All release what was there; fine on zeroes. */
void metrics_rows_release(struct metrics_rows *rows);

/* The histogram of each row of (function), one after the other. */
typedef void metrics_visit_histogram(const struct metrics_row *row,
				     const struct metrics_histogram *histogram, void *context);
enum status metrics_rows_histograms(const struct metrics_rows *functions,
				    const struct metrics_model *model,
				    metrics_visit_histogram *visit, void *context);

#endif
