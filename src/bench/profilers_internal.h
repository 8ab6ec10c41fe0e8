/* What the files share that compare profilers. */
#ifndef PROFILERS_INTERNAL_H
#define PROFILERS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/profilers.h"
#include "common/status.h"
#include "output/sink.h"
#include "output/table.h"

/* A list that grows: `items` of `size` bytes each. */
struct profilers_list {
	void *items;
	size_t size;
	size_t count;
};

/* Room for one more, all zero; NULL: no memory, or past `most`. */
void *profilers_list_add(struct profilers_list *list, size_t most);
void profilers_list_release(struct profilers_list *list);

/* Times of the calls of one job: of one function, size and clock. */
struct profilers_sample {
	uint8_t plugin;
	uint8_t mode;
	uint8_t function;
	uint8_t clock;
	uint32_t run;
	uint64_t bytes;
	double *values;
	size_t count;
};

/* Ratios of reported to measured times. Source OP_TIME_SOURCES: how many calls were measured, no values. */
struct profilers_ratios {
	uint8_t plugin;
	uint8_t mode;
	uint8_t function;
	uint8_t source;
	bool is_mean_only;
	uint64_t bytes;
	uint64_t bytes_to;
	uint64_t calls;
	uint64_t in_order;
	uint64_t by_time;
	double *values;
	size_t count;
};

struct profilers {
	struct profilers_comparison out;
	struct profilers_list complete;	 /* struct profilers_complete, unmerged */
	struct profilers_list samples;	 /* struct profilers_sample */
	struct profilers_list ratios;	 /* struct profilers_ratios */
	struct profilers_list jobs;	 /* struct profilers_jobs */
	struct profilers_list trainings; /* struct profilers_training, problem not kept */
	char problems[PROFILERS_PLUGINS_MAX][PROFILERS_TEXT_BYTES]; /* of trainings, the last */
};

/* Where the ratios of a function and size are collected; NULL: no memory. */
struct profilers_ratios *profilers_ratios_of(struct profilers *work,
					     const struct profilers_ratios *like);
bool profilers_ratios_add(struct profilers_ratios *ratios, double value);

enum status profilers_take_times(struct profilers *work, const struct profilers_trial *trial);

/* Figures 1 to 4 of a comparison of profilers, as SVG and as text: each one chart for each mode. */

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
/* The same charts as lines of text, each after an empty line. */
enum status profilers_figure_text(struct sink *sink, const struct profilers_comparison *comparison,
				  enum profilers_figure which, unsigned int width);

/* What came out for a plugin, in one sentence: what stands first in the text and on the page. */

enum { PROFILERS_SHORT_SENTENCE = 768 };

/*
 * "ringside: calls recorded: 100 % (blocking), 100 % (graph); GPU time of a call 1.005 times that without
 * (0.981 to 1.030: no difference shown), graph alone 1.030 (1.002 to 1.058: slower); host time in the call ...". Parts
 * that are not known are not there; "" where none is.
 */
const char *profilers_short(char to[static PROFILERS_SHORT_SENTENCE],
			    const struct profilers_comparison *comparison, size_t plugin);

/* The tables of a comparison of profilers, as grids: the text view and the page show the same. */

enum profilers_table {
	PROFILERS_TABLE_COMPLETE = 0,	 /* plugin x mode */
	PROFILERS_TABLE_BY_FUNCTION = 1, /* plugin and function, a column for each mode */
	PROFILERS_TABLE_BY_SIZE = 2,
	PROFILERS_TABLE_BY_RANK = 3,
	PROFILERS_TABLE_ACCURACY = 4, /* plugin, mode, size */
	PROFILERS_TABLE_OVERHEAD = 5, /* plugin, mode */
	PROFILERS_TABLE_OVERHEAD_BY_SIZE = 6,
	PROFILERS_TABLE_TRAINING = 7,
	PROFILERS_TABLE_ACCURACY_CELLS = 8, /* for those who want it all: each function and size */
	PROFILERS_TABLE_OVERHEAD_CELLS = 9,
	PROFILERS_TABLES = 10,
};

/* "completeness: calls recorded of calls issued". */
const char *profilers_table_title(enum profilers_table which);
/* What its columns mean, in a sentence or two. */
const char *profilers_table_words(enum profilers_table which);

/* Columns and rows into a grid that was initialised; no rows: there is nothing to show. */
void profilers_table_fill(struct report_grid *grid, const struct profilers_comparison *comparison,
			  enum profilers_table which);

enum { PROFILERS_SHORT_TEXT = 64 };
/* "1 KiB"; "1 KiB to 8 KiB"; "from 32 MiB"; "size not told". */
const char *profilers_size_text(char to[static PROFILERS_SHORT_TEXT], uint64_t bytes,
				uint64_t bytes_to);
/* "NVIDIA H200 on node-1, 4 ranks sharing one GPU (MPS), NCCL 2.28.9, CUDA 13.0". */
enum { PROFILERS_PLACE_TEXT = 320 };
const char *profilers_place_text(char to[static PROFILERS_PLACE_TEXT],
				 const struct profilers_comparison *comparison);
/* "5 runs alternating, 15,000 measured calls of each rank". */
const char *profilers_amount_text(char to[static PROFILERS_PLACE_TEXT],
				  const struct profilers_comparison *comparison);

#endif
