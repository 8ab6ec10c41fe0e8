/*
 * The columns of an exported operation, for all formats. docs/EXPORT.md documents each column; a test compares it
 * with this table. Columns that come from the same word of a record form a group: their values are computed once
 * for each distinct value of the word. Columns without a group have a number in every row.
 */
#ifndef EXPORT_H
#define EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op.h"
#include "common/status.h"
#include "output/sink.h"
#include "recording/recording.h"

enum export_type {
	EXPORT_STRING,
	EXPORT_BOOL,
	EXPORT_INT32,
	EXPORT_INT64,
	EXPORT_UINT8,
	EXPORT_UINT16,
	EXPORT_UINT32,
	EXPORT_UINT64,
	EXPORT_TIME, /* nanoseconds since 1970 UTC, signed */
};

enum export_group {
	EXPORT_WHO = 0,	     /* process, communicator, names: OP_WORD_KIND */
	EXPORT_STATE = 1,    /* OP_WORD_STATE */
	EXPORT_ENDS = 2,     /* OP_WORD_ENDS */
	EXPORT_CHILDREN = 3, /* OP_WORD_CHILDREN */
	EXPORT_GROUPS = 4,
	EXPORT_EACH = 4, /* no group */
};

/* How consecutive numbers of a column relate. */
enum export_habit {
	EXPORT_CLIMBS,	/* close to the previous one */
	EXPORT_REPEATS, /* few distinct values */
	EXPORT_JUMPS,	/* arbitrary */
};

enum export_column_id {
	EXPORT_JOB,
	EXPORT_HOST,
	EXPORT_RANK,
	EXPORT_PID,
	EXPORT_COMM_ID,
	EXPORT_COMM_HASH,
	EXPORT_COMM_NAME,
	EXPORT_COMM_RANK,
	EXPORT_COMM_RANKS,
	EXPORT_COMM_NODES,
	EXPORT_COMM_KIND,
	EXPORT_GPU,
	EXPORT_GPU_UUID,
	EXPORT_INTERFACE,
	EXPORT_FUNCTION,
	EXPORT_DATATYPE,
	EXPORT_ALGORITHM,
	EXPORT_PROTOCOL,
	EXPORT_COUNT,
	EXPORT_BYTES,
	EXPORT_ROOT,
	EXPORT_PEER,
	EXPORT_SEQUENCE,
	EXPORT_NUMBER,
	EXPORT_MATCH,
	EXPORT_SIGNATURE,
	EXPORT_IS_REPLAY,
	EXPORT_CAPTURED_NUMBER,
	EXPORT_NCCL_SEQUENCE,
	EXPORT_STREAM,
	EXPORT_USER_TAG,
	EXPORT_STATE_NAME,
	EXPORT_FLAGS,
	EXPORT_TIME_SOURCE,
	EXPORT_DURATION,
	EXPORT_ISSUE_TIME,
	EXPORT_LAUNCH_TIME,
	EXPORT_TASK_TIME,
	EXPORT_ACTIVE_TIME,
	EXPORT_DONE_TIME,
	EXPORT_CLOCK_OFFSET,
	EXPORT_GPU_START,
	EXPORT_GPU_STOP,
	EXPORT_START_SPREAD,
	EXPORT_STOP_SPREAD,
	EXPORT_CHANNELS,
	EXPORT_WARPS,
	EXPORT_KERNELS_STARTED,
	EXPORT_KERNELS_STOPPED,
	EXPORT_PROXIES_STARTED,
	EXPORT_PROXIES_STOPPED,
	EXPORT_SEND_BYTES,
	EXPORT_RECV_BYTES,
	EXPORT_SEND_STEPS,
	EXPORT_RECV_STEPS,
	EXPORT_WAIT_SEND_GPU,
	EXPORT_WAIT_SEND_PEER,
	EXPORT_WAIT_SEND_NET,
	EXPORT_WAIT_RECV_NET,
	EXPORT_WAIT_RECV_FLUSH,
	EXPORT_WAIT_RECV_GPU,
	EXPORT_COLUMNS,
};

_Static_assert(EXPORT_COLUMNS <= 64, "a choice of columns is a word");

struct export_column {
	const char *name;
	enum export_type type;
	enum export_group group;
	enum export_habit habit; /* without a group */
	bool is_nullable;
	uint64_t null; /* without a group: the number that means unknown */
	uint8_t word;  /* without a group: the word that holds the number, or EXPORT_NO_WORD */
};

extern const struct export_column export_columns[EXPORT_COLUMNS];

/* Means unknown in columns that are not a word of the record. */
#define EXPORT_NULL_SIGNED ((uint64_t)INT64_MIN)

#define EXPORT_ALL_COLUMNS (UINT64_MAX >> (64 - EXPORT_COLUMNS))
#define EXPORT_COLUMN_BIT(id) (UINT64_C(1) << (id))
/* Columns in the names of directories, which files below need not repeat. */
#define EXPORT_PARTITION_COLUMNS                                          \
	(EXPORT_COLUMN_BIT(EXPORT_JOB) | EXPORT_COLUMN_BIT(EXPORT_HOST) | \
	 EXPORT_COLUMN_BIT(EXPORT_RANK))

/* The words of a record that these columns come from. */
uint32_t export_words(void);

/*
 * Operations as rows of columns, from which all table formats are written.
 *
 *	export_rows_new()
 *	export_rows_process()          the following batches are of this process
 *	while (at < batch->rows) {
 *		at += export_rows_take(rows, batch, at, &frame);
 *		... write frame.rows rows ...
 *		if (rows->is_full)
 *			export_rows_forget(rows);
 *	}
 *
 * Memory is bounded: after EXPORT_ENTRIES_MAX entries, a group has to be forgotten.
 */

enum { EXPORT_FRAME_ROWS = 4096, EXPORT_ENTRIES_MAX = 1 << 14 };

/* A value in a column of a group. */
struct export_cell {
	const char *text; /* strings: valid UTF-8, NULL is null */
	uint64_t number;  /* others; signed ones sign-extended */
	bool is_null;
};

/* The distinct values of a group: `cells` has a row of `width` cells for each. */
struct export_entries {
	uint32_t count;
	uint32_t width;
	struct export_cell *cells;
	/* For lookup. */
	uint64_t *keys;
	uint16_t *slots; /* entry + 1, 0 empty */
};

struct export_rows {
	struct export_entries entries[EXPORT_GROUPS];
	uint8_t place[EXPORT_COLUMNS]; /* for columns of a group: the index of the cell */
	bool is_full;	    /* a group has no room for the next row: call export_rows_forget() */
	enum status status; /* ERR_NO_SPACE: out of memory; no more rows are taken */
	const struct recording_process *process;
	uint64_t anchor_from; /* the offset applies to recorder's clock in [from, from + span] */
	uint64_t anchor_span;
	uint64_t anchor_offset;
	struct export_string *strings; /* storage of cells */
	struct export_scratch *scratch;
};

struct export_frame {
	uint32_t rows;
	const uint64_t *values[EXPORT_COLUMNS]; /* columns without a group */
	const uint16_t *entry[EXPORT_GROUPS];	/* per row: entry of the group */
};

/* NULL without memory. */
struct export_rows *export_rows_new(void);
void export_rows_free(struct export_rows *rows);

/* `process` is borrowed until the next call. */
void export_rows_process(struct export_rows *rows, const struct recording_process *process);

/*
 * Takes the next rows of the batch, from `at` on, at most EXPORT_FRAME_ROWS, and returns how many. The batch must
 * have all words of export_words(). The frame is valid until the next call or the end of the batch. Returns 0 only
 * if is_full, or without memory (status).
 */
uint32_t export_rows_take(struct export_rows *rows, const struct op_batch *batch, uint32_t at,
			  struct export_frame *frame);

/* Forgets all entries; their numbers start from 0 again. */
void export_rows_forget(struct export_rows *rows);

static inline const struct export_cell *export_cell(const struct export_rows *rows,
						    enum export_column_id column, uint32_t entry)
{
	const struct export_entries *entries = &rows->entries[export_columns[column].group];

	return &entries->cells[(size_t)entry * entries->width + rows->place[column]];
}

/* ---- text of cells --------------------------------------------------------------------------- */

/* Text of cells, freed as a whole. */
struct export_string {
	struct export_string *next;
	char bytes[];
};

void export_string_free(struct export_string **strings);

/* `text` as UTF-8: itself if valid, else a copy with U+FFFD for each invalid byte. NULL without memory. */
const char *export_string_clean(struct export_string **strings, const char *text);

/* Numbers and times as text. Return the length; the text is not terminated. */

enum { EXPORT_NUMBER_TEXT = 20, EXPORT_TIME_TEXT = 29 };

size_t export_text_signed(char to[static EXPORT_NUMBER_TEXT], int64_t number);

/* The last day written, because most times are of the same day. */
struct export_day {
	int64_t day; /* since 1970 */
	char text[12];
};
#define EXPORT_DAY_INIT          \
	{                        \
		.day = INT64_MIN \
	}

/* "2026-11-15T02:09:00.123456789", UTC, of nanoseconds since 1970. */
size_t export_text_time(char to[static EXPORT_TIME_TEXT], int64_t ns, struct export_day *day);

/*
 * Formats of `ringside export`. Each writes into a sink; the ones declared below are tables of the columns above.
 *
 *	writer = format->begin(&sink, columns);
 *	for each process {
 *		format->process(writer, process);
 *		for each batch
 *			format->batch(writer, batch);
 *	}
 *	format->fact(writer, "ringside.lost", "0");
 *	status = format->end(writer);
 */

struct export_format {
	const char *name;
	const char *suffix; /* of files, with the dot */
	bool is_binary;	    /* not for a terminal */
	/*
	 * NULL: a table, of which directories are partitioned by job, host and rank. Otherwise directories have one
	 * file per process, with this name.
	 */
	void (*file_name)(char *name, size_t size, const struct recording_process *process);
	/* Bit c of `columns`: column c. NULL without memory. */
	void *(*begin)(struct sink *sink, uint64_t columns);
	/* `process` is borrowed until the end. */
	void (*process)(void *writer, const struct recording_process *process);
	/* The batch must have all words of export_words(). Stop unless it returns OK. */
	enum status (*batch)(void *writer, const struct op_batch *batch);
	/* Metadata of the file; ignored by formats without metadata. */
	void (*fact)(void *writer, const char *key, const char *value);
	/* Writes the rest and frees the writer. Does not flush the sink. */
	enum status (*end)(void *writer);
};

extern const struct export_format export_parquet;
extern const struct export_format export_csv;
extern const struct export_format export_jsonl;

#endif
