/* Shared by the files that compare profilers. */
#ifndef PROFILERS_INTERNAL_H
#define PROFILERS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/profilers.h"
#include "common/status.h"
#include "output/sink.h"
#include "output/table.h"

/* A growing list: `items` of `size` bytes each. */
struct profilers_list {
	void *items;
	size_t size;
	size_t count;
};

/* Appends one zeroed item; NULL: out of memory, or more than `most`. */
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

/* Ratios of reported to measured times. Source OP_TIME_SOURCES: only the number of measured calls, no values. */
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
	char problems[PROFILERS_PLUGINS_MAX]
		     [PROFILERS_TEXT_BYTES]; /* the last one of each plugin's trainings */
};

/* Where the ratios of a function and size are collected; NULL: out of memory. */
struct profilers_ratios *profilers_ratios_of(struct profilers *work,
					     const struct profilers_ratios *like);
bool profilers_ratios_add(struct profilers_ratios *ratios, double value);

enum status profilers_take_times(struct profilers *work, const struct profilers_trial *trial);

/* Figures 1 to 4 of a comparison, as SVG and text: one chart per mode. */

enum profilers_figure {
	PROFILERS_FIGURE_COMPLETE = 1,
	PROFILERS_FIGURE_ACCURACY = 2,
	PROFILERS_FIGURE_OVERHEAD = 3,
	PROFILERS_FIGURE_TRAINING = 4,
	PROFILERS_FIGURES = 5,
};

const char *profilers_figure_title(enum profilers_figure which);
/* The caption. */
const char *profilers_figure_words(enum profilers_figure which);
/* Whether there is anything to draw. */
bool profilers_figure_is_there(const struct profilers_comparison *comparison,
			       enum profilers_figure which);
/* The same charts as text, each after an empty line. */
enum status profilers_figure_text(struct sink *sink, const struct profilers_comparison *comparison,
				  enum profilers_figure which, unsigned int width);

/* The result for a plugin in one sentence, shown at the top of the text and the page. */

enum { PROFILERS_SHORT_SENTENCE = 768 };

/*
 * "ringside: calls recorded: 100% (blocking), 100% (graph); GPU time per call 1.005x (0.981-1.030: no significant
 * difference), graph 1.030x (1.002-1.058: slower); host time in the call ...". Unknown parts are omitted; "" if all
 * are.
 */
const char *profilers_short(char to[static PROFILERS_SHORT_SENTENCE],
			    const struct profilers_comparison *comparison, size_t plugin);

/* The tables of a comparison as grids, for text and page. */

enum profilers_table {
	PROFILERS_TABLE_COMPLETE = 0,	 /* plugin x mode */
	PROFILERS_TABLE_BY_FUNCTION = 1, /* plugin and function, one column per mode */
	PROFILERS_TABLE_BY_SIZE = 2,
	PROFILERS_TABLE_BY_RANK = 3,
	PROFILERS_TABLE_ACCURACY = 4, /* plugin, mode, size */
	PROFILERS_TABLE_OVERHEAD = 5, /* plugin, mode */
	PROFILERS_TABLE_OVERHEAD_BY_SIZE = 6,
	PROFILERS_TABLE_TRAINING = 7,
	PROFILERS_TABLE_ACCURACY_CELLS = 8, /* details: each function and size */
	PROFILERS_TABLE_OVERHEAD_CELLS = 9,
	PROFILERS_TABLES = 10,
};

/* "Completeness: share of issued calls that were recorded". */
const char *profilers_table_title(enum profilers_table which);
/* Explains the columns in a sentence or two. */
const char *profilers_table_words(enum profilers_table which);

/* Adds columns and rows to an initialized grid; no rows: there is nothing to show. */
void profilers_table_fill(struct report_grid *grid, const struct profilers_comparison *comparison,
			  enum profilers_table which);

enum { PROFILERS_SHORT_TEXT = 64 };
/* "1 KiB"; "1 KiB to 8 KiB"; "from 32 MiB"; "unknown size". */
const char *profilers_size_text(char to[static PROFILERS_SHORT_TEXT], uint64_t bytes,
				uint64_t bytes_to);
/* "NVIDIA H200 on node-1, 4 ranks sharing one GPU (MPS), NCCL 2.28.9, CUDA 13.0". */
enum { PROFILERS_PLACE_TEXT = 320 };
const char *profilers_place_text(char to[static PROFILERS_PLACE_TEXT],
				 const struct profilers_comparison *comparison);
/* "5 runs alternating, 15,000 measured calls per rank". */
const char *profilers_amount_text(char to[static PROFILERS_PLACE_TEXT],
				  const struct profilers_comparison *comparison);

#endif
