/*
 * Operations as rows of columns: what all formats of `ringside export` are written from.
 *
 *	export_rows_new()
 *	export_rows_process()          the batches that follow are this process's
 *	while (at < batch->rows) {
 *		at += export_rows_take(rows, batch, at, &frame);
 *		... write frame.rows rows ...
 *		if (rows->is_full)
 *			export_rows_forget(rows);
 *	}
 *
 * Memory is bounded: groups have at most EXPORT_ENTRIES_MAX entries, then they must be forgotten.
 */
#ifndef EXPORT_ROWS_H
#define EXPORT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op.h"
#include "common/status.h"
#include "recording/recording.h"
#include "view/export_columns.h"

enum { EXPORT_FRAME_ROWS = 4096, EXPORT_ENTRIES_MAX = 1 << 14 };

/* A value of a column of a group. */
struct export_cell {
	const char *text; /* strings: valid UTF-8, NULL is null */
	uint64_t number;  /* others; signed ones sign-extended */
	bool is_null;
};

/* All values of a group that occurred, each once: `cells` has a row of `width` cells for each. */
struct export_entries {
	uint32_t count;
	uint32_t width;
	struct export_cell *cells;
	/* For finding them again. */
	uint64_t *keys;
	uint16_t *slots; /* entry + 1, 0 empty */
};

struct export_rows {
	struct export_entries entries[EXPORT_GROUPS];
	uint8_t place[EXPORT_COLUMNS]; /* of a group's column: which of its cells */
	bool is_full;		       /* some group has no room for the next row: forget */
	enum status status;	       /* ERR_NO_SPACE: no memory; nothing is taken any more */
	const struct recording_process *process;
	uint64_t anchor_from; /* recorder's clock within [from, from + span] has this offset */
	uint64_t anchor_span;
	uint64_t anchor_offset;
	struct export_string *strings; /* what cells point to */
	struct export_scratch *scratch;
};

struct export_frame {
	uint32_t rows;
	const uint64_t
		*values[EXPORT_COLUMNS];      /* columns without a group; null as the table says */
	const uint16_t *entry[EXPORT_GROUPS]; /* per row: which entry of the group */
};

/* NULL when there is no memory. */
struct export_rows *export_rows_new(void);
void export_rows_free(struct export_rows *rows);

/* Borrowed until the next one. */
void export_rows_process(struct export_rows *rows, const struct recording_process *process);

/* The next rows of the batch, from `at` on, at most EXPORT_FRAME_ROWS: how many. All words of
 * export_words() must be there. The frame is valid until the next call, and until the batch goes. 0
 * only when is_full, or without memory (status). */
uint32_t export_rows_take(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			  struct export_frame *frame);

/* Forget all entries: numbers of entries count from 0 again. */
void export_rows_forget(struct export_rows *rows);

static inline const struct export_cell *export_cell(const struct export_rows *rows,
						    enum export_column_id column, uint32_t entry)
{
	const struct export_entries *entries = &rows->entries[export_columns[column].group];

	return &entries->cells[(size_t)entry * entries->width + rows->place[column]];
}

#endif
