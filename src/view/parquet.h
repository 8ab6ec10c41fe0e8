/*
 * Parquet files, written in one pass into a sink. docs/EXPORT.md says which parts of the format are
 * used and why.
 *
 *	parquet = parquet_new(&sink, columns, count);
 *	for each few rows {
 *		for each column
 *			parquet_put_values(parquet, c, values, rows);
 *			  or parquet_put_codes(parquet, c, entries, codes, rows);
 *		parquet_end_rows(parquet, rows);
 *		if (parquet_is_group_full(parquet))
 *			parquet_end_group(parquet);       codes are void from here on
 *	}
 *	status = parquet_finish(parquet);
 *	parquet_free(parquet);
 *
 * The first failure sticks; parquet_finish() says it. Memory is bounded: a page of every column as it
 * comes, the pages of one row group packed (PARQUET_GROUP_BYTES, and what the last page adds), and
 * what the footer says about the row groups before: some 5 KiB each.
 */
#ifndef PARQUET_H
#define PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "view/sink.h"

enum parquet_type {
	PARQUET_BOOL, /* codes only */
	PARQUET_INT32,
	PARQUET_INT64,
	PARQUET_UINT8,
	PARQUET_UINT16,
	PARQUET_UINT32,
	PARQUET_UINT64,
	PARQUET_TIME_NS, /* since 1970, of no time zone: nanoseconds survive in every reader */
	PARQUET_STRING,	 /* UTF-8; codes only */
};

/* How values are packed when they are put as they are. A page of one value only is a word of a
 * dictionary in any case. */
enum parquet_style {
	PARQUET_DELTA,		  /* differences to the value before */
	PARQUET_PLAIN,		  /* as they are */
	PARQUET_DICTIONARY_DELTA, /* words of a dictionary, until there are too many of them */
	PARQUET_DICTIONARY_PLAIN,
};

struct parquet_column {
	const char *name;
	enum parquet_type type;
	enum parquet_style style;
	bool is_nullable;
	uint64_t null; /* what stands for null among values */
};

enum {
	PARQUET_ROWS_AT_ONCE = 4096,
	PARQUET_PAGE_ROWS = 32768, /* a page ends with the rows that reach this */
	PARQUET_GROUP_ROWS = 1 << 18,
	PARQUET_GROUP_BYTES = 32 << 20,
};

struct parquet;

/* NULL when there is no memory. `columns` and what it points to are borrowed until parquet_free(). */
struct parquet *parquet_new(struct sink *sink, const struct parquet_column *columns, size_t count);
void parquet_free(struct parquet *parquet);

/* The code of a value in this column, good until the row group ends. Put rows with it before asking
 * for the next one where it may not be used at all: statistics take each as present. There are
 * PARQUET_DICTIONARY_MAX at most. 0 after a failure, which sticks. */
uint16_t parquet_code_number(struct parquet *parquet, size_t column, uint64_t number);
uint16_t parquet_code_text(struct parquet *parquet, size_t column, const char *text);
uint16_t parquet_code_null(struct parquet *parquet, size_t column);

/* The next rows of a column, PARQUET_ROWS_AT_ONCE at most. A column takes either values or codes. */
void parquet_put_values(struct parquet *parquet, size_t column, const uint64_t *values,
			size_t rows);
/* Row i has the code codes[entries[i]]. */
void parquet_put_codes(struct parquet *parquet, size_t column, const uint16_t *entries,
		       const uint16_t *codes, size_t rows);

/* The same for rows that come in runs of one entry. */
struct parquet_run {
	uint32_t rows;
	uint16_t entry;
};
void parquet_put_runs(struct parquet *parquet, size_t column, const struct parquet_run *runs,
		      size_t count, const uint16_t *codes);

/* All columns have got these rows. */
void parquet_end_rows(struct parquet *parquet, size_t rows);

bool parquet_is_group_full(const struct parquet *parquet);
void parquet_end_group(struct parquet *parquet);

/* Key-value metadata, at any time before the end. Copied. */
void parquet_pair(struct parquet *parquet, const char *key, const char *value);

uint64_t parquet_rows(const struct parquet *parquet);
enum status parquet_status(const struct parquet *parquet);

/* Ends the row group and writes the footer. The sink is not flushed. */
enum status parquet_finish(struct parquet *parquet);

#endif
