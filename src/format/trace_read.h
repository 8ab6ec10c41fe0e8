/*
 * Reading a trace file, from memory or, block by block, from a file of any size. Nothing in it is
 * trusted. A damaged block affects only itself; a truncation is reported with its offset.
 *
 *	trace_open(&reader, path, &problem);
 *	while (trace_next(&reader, &item) != TRACE_END)
 *		switch (item.found) ...
 *	trace_close(&reader);
 */
#ifndef TRACE_READ_H
#define TRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "format/region_layout.h"
#include "format/trace_code.h"
#include "format/trace_layout.h"

enum trace_found {
	TRACE_BLOCK = 1,   /* a valid block of a known type */
	TRACE_UNKNOWN = 2, /* a valid block of a type from a newer minor version: skip it */
	TRACE_DAMAGE = 3,  /* bytes that are not a valid block; reading continues after them */
	TRACE_CUT = 4,	   /* the file ends without CLOSE; offset: end of the last valid block */
	TRACE_END = 5,	   /* end of file */
};

struct trace_item {
	enum trace_found found;
	uint64_t offset;    /* of the block or of the damage, in the file */
	uint64_t bytes;	    /* of the block with its head; of the damage; TRACE_CUT: left over */
	const char *reason; /* damage and cut: a few words, static */
	uint16_t type;	    /* enum trace_block_type */
	uint32_t records;   /* from the block, checked against its length */
	const unsigned char *payload; /* valid until the next trace_next() or trace_close() */
	uint32_t payload_bytes;
};

struct trace_reader {
	int fd; /* -1: memory */
	const unsigned char *memory;
	uint64_t start; /* fd: where it begins in the file; offsets below are relative to it */
	uint64_t length;
	uint64_t at;	       /* where the next block is expected */
	unsigned char *window; /* fd: what was read last */
	uint64_t window_offset;
	size_t window_bytes;
	uint64_t effort_left; /* bytes that may still be checksummed in search of a block */
	struct trace_header header;
	bool is_header_damaged; /* header is then zero except for the version, which is ours */
	bool is_closed;		/* the last valid block is CLOSE; final after TRACE_END */
	bool is_done;
	uint64_t unknown_blocks;
	uint64_t damages;
};

/*
 * Check the header. ERR_FORMAT: not a trace file, ERR_VERSION: newer major version (problem has
 * found_major), ERR_TRUNCATED: shorter than a header, ERR_SYSTEM (errno), ERR_NO_SPACE (memory). A
 * damaged header before valid blocks is not a failure: the first item is then TRACE_DAMAGE at 0.
 * `problem` may be NULL. The caller owns *reader; see trace_close().
 */
enum status trace_open_memory(struct trace_reader *reader, const void *bytes, size_t length,
			      struct status_problem *problem);
enum status trace_open(struct trace_reader *reader, const char *path,
		       struct status_problem *problem);
/* The descriptor is borrowed for the call and duplicated. */
enum status trace_open_fd(struct trace_reader *reader, int fd, struct status_problem *problem);
/* A part of a file, such as a trace inside an archive. */
enum status trace_open_part(struct trace_reader *reader, int fd, uint64_t start, uint64_t length,
			    struct status_problem *problem);
void trace_close(struct trace_reader *reader);

enum trace_found trace_next(struct trace_reader *reader, struct trace_item *item);

/* Continue at an offset where a valid block was found before. */
void trace_seek(struct trace_reader *reader, uint64_t offset);

/* Is this the beginning of a trace file (even with a damaged header)? Needs up to 64 bytes. */
bool trace_probe(const void *bytes, size_t length);

/*
 * The columns of a coded block. Only requested columns are decoded; the others are skipped by their
 * length. For any input, nothing outside the payload is read, and the work is bounded by rows and
 * words.
 *
 *	trace_columns_open(&columns, payload, bytes, OP_RECORD_WORDS, rows, wanted);
 *	while ((count = trace_columns_next(&columns, 256, column)) > 0) ...
 */

/* One column, or half of one, and the position in it. */
struct trace_stream {
	uint8_t packing;   /* enum trace_packing: SAME, PACKED, PATCHED, TABLE or SIGNED */
	uint8_t reference; /* enum trace_reference */
	uint8_t width;
	uint8_t value_bytes; /* of a patch or a table entry */
	uint16_t patches;
	uint16_t next_patch;
	uint32_t entries;
	uint64_t base;
	uint64_t running;	    /* the value of the previous row */
	const unsigned char *holes; /* or NULL */
	const unsigned char *bits;
	const unsigned char *positions;
	const unsigned char *values; /* of patches, or the table */
};

struct trace_columns {
	const unsigned char *end;
	uint32_t rows;
	uint32_t next;	 /* row */
	uint32_t needed; /* bit per word: requested, or referenced by one that is */
	unsigned int words;
	struct trace_stream streams[TRACE_WORDS_MAX]; /* SAME 0 if there is no column */
	struct trace_stream high[TRACE_WORDS_MAX];    /* of columns in halves */
	uint32_t halves;			      /* bit per word */
	bool has_signatures; /* requested, and to be computed from other columns */
	struct trace_signatures signatures;
};

/*
 * The payload is borrowed while columns are read. ERR_FORMAT: these bytes are not valid columns, or
 * there are more rows or words than the format allows. After OK nothing else can fail.
 */
enum status trace_columns_open(struct trace_columns *columns, const unsigned char *payload,
			       size_t bytes, unsigned int words, uint32_t rows, uint32_t wanted);

enum { TRACE_VALUES_MAX = 256 };

/*
 * All values a column can have, if there are only a few: returns how many, 0 if there may be more.
 * Some of them may not occur in any row.
 */
uint32_t trace_columns_values(const struct trace_columns *columns, unsigned int word,
			      uint64_t values[TRACE_VALUES_MAX]);

/* Does it have the same value in all rows of the block? */
bool trace_columns_constant(const struct trace_columns *columns, unsigned int word,
			    uint64_t *value);

/*
 * Does it strictly rise from row to row without overflow? Then the values of the next row and of
 * the last one give its range.
 */
bool trace_columns_rising(const struct trace_columns *columns, unsigned int word, uint64_t *next,
			  uint64_t *last);

/*
 * The next rows, at most `most`, of all columns in columns->needed: to[w] has room for them.
 * Returns how many; 0 after the last.
 */
uint32_t trace_columns_next(struct trace_columns *columns, uint32_t most,
			    uint64_t *const to[TRACE_WORDS_MAX]);

/* The records inside a valid block, one by one. The payload is checked nevertheless. */

enum { TRACE_PIECE_ROWS = 64 };

struct trace_records {
	const unsigned char *at;
	const unsigned char *end;
	uint32_t left;	 /* records still to come */
	uint32_t stride; /* of uncoded records; a newer minor version may have longer ones */
	/* Coded records: some rows at a time. */
	struct trace_columns columns;
	uint32_t piece_rows; /* decoded */
	uint32_t piece_at;   /* of these: returned */
	uint64_t piece[TRACE_WORDS_MAX][TRACE_PIECE_ROWS];
};

/*
 * ERR_FORMAT if the block is too short for its records. Any type but PROCESS. The payload is
 * borrowed while records are read.
 */
enum status trace_records_init(struct trace_records *records, const struct trace_item *item);

/* OK; ERR_GONE after the last one; ERR_FORMAT: the coding is damaged, no records follow. */
enum status trace_records_op(struct trace_records *records, struct op_record *op);
enum status trace_records_detail(struct trace_records *records, struct op_detail *detail);
enum status trace_records_comm(struct trace_records *records, struct comm_info *comm);
enum status trace_records_anchor(struct trace_records *records, struct clock_anchor *anchor);
enum status trace_records_name(struct trace_records *records, struct trace_name *name);
enum status trace_records_link(struct trace_records *records, struct region_link *link);
/* COUNTS and CLOSE: first the counts, once; then the other function trace_counts.comms times. */
enum status trace_records_counts(struct trace_records *records, struct trace_counts *counts);
enum status trace_records_comm_counts(struct trace_records *records,
				      struct trace_comm_counts *counts);

#endif
