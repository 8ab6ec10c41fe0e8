/*
 * Writing a trace file, or a trace in memory: used by the plugin's trace thread and by the
 * simulator. Blocks only on the disk; never called from a callback.
 */
#ifndef TRACE_WRITE_H
#define TRACE_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "format/trace_layout.h"

/* The best choice for a column, kept for the next blocks. */
struct trace_choice {
	uint8_t is_made;    /* 0: still to be made */
	uint8_t reference;  /* enum trace_reference */
	uint8_t width;	    /* of most differences */
	uint8_t bits;	    /* approximate cost of a row with patches */
	uint8_t is_patched; /* the last block had patches */
};

/*
 * Encodes records into the payload of a block. Used by the trace thread inside the job: no system
 * call and no allocation; all memory is in the encoder, whatever the records are.
 */
enum {
	TRACE_ENCODE_STRIDE = TRACE_ROWS_MAX + 8, /* columns start in different cache sets */
	TRACE_ENCODE_TABLE = 64,		  /* entries at most */
	TRACE_ENCODE_SLOTS = 256,
};

/* The choices for earlier blocks of one kind of records. */
struct trace_habits {
	struct trace_choice choices[3]
				   [TRACE_WORDS_MAX]; /* whole columns, low halves, high halves */
	uint64_t rows;				      /* so far */
	uint64_t choose_at; /* number of rows at which choices are made again */
};

/*
 * Created by trace_encoder_new(). Remembers what was good for earlier blocks; blocks do not depend
 * on each other.
 */
struct trace_encoder {
	uint64_t columns[TRACE_WORDS_MAX][TRACE_ENCODE_STRIDE] __attribute__((aligned(CACHE_LINE)));
	uint64_t any[TRACE_WORDS_MAX];	   /* all values of a column, or-ed */
	uint64_t differs[TRACE_WORDS_MAX]; /* bits in which they differ from the first, or-ed */
	uint64_t halves[2][TRACE_ROWS_MAX];
	uint64_t differences[TRACE_ROWS_MAX];
	uint16_t patches[TRACE_ROWS_MAX + 1];
	uint64_t table[TRACE_ENCODE_TABLE];
	uint8_t slots[TRACE_ENCODE_SLOTS]; /* by hash: entry of the table */
	uint8_t indexes[TRACE_ROWS_MAX];
	struct trace_habits habits[2]; /* operations, details */
};

/* Upper bound of the bytes that trace_encode() touches. */
#define TRACE_ENCODED_MAX(words, rows) (16 + (words) * ((size_t)(rows)*9 + 128))

/* NULL: out of memory. The caller frees it with free(3). */
struct trace_encoder *trace_encoder_new(void);

/*
 * Encode `rows` records of `words` words each (OP_RECORD_WORDS or OP_DETAIL_WORDS), contiguous; at
 * least one, at most TRACE_ROWS_MAX. Returns the bytes written to `to`, which has room for
 * TRACE_ENCODED_MAX.
 */
size_t trace_encode(struct trace_encoder *encoder, const void *records, unsigned int words,
		    uint32_t rows, unsigned char *to);

enum { TRACE_OPS_PER_BLOCK = TRACE_ROWS_MAX };

struct trace_writer {
	int fd;		       /* -1: not open, or in memory */
	uint64_t bytes;	       /* written so far, all of them whole blocks */
	uint64_t quota;	       /* bytes; 0: no limit */
	unsigned char *buffer; /* one block */
	struct trace_encoder *encoder;
	unsigned char *memory; /* what was written if there is no file; NULL: there is one */
	size_t memory_room;
};

/*
 * Create `path` (never an existing file: ERR_SYSTEM with EEXIST) and write the header. `mode` as
 * for open(2). The caller owns *writer; see trace_writer_close().
 */
enum status trace_writer_open(struct trace_writer *writer, const char *path, unsigned int mode,
			      uint64_t quota);

/* With a given creation time, so that a simulation writes the same bytes twice. */
enum status trace_writer_open_at(struct trace_writer *writer, const char *path, unsigned int mode,
				 uint64_t quota, uint64_t created_wall_ns);

/* In memory, without a limit: ERR_NO_SPACE is memory. See trace_writer_take(). */
enum status trace_writer_open_memory(struct trace_writer *writer, uint64_t created_wall_ns);

/*
 * All of these append a whole block or nothing: OK, ERR_RANGE (quota), ERR_NO_SPACE, ERR_SYSTEM.
 * TRACE_CLOSE may use the room that the quota and the disk reserve for it.
 */
enum status trace_write_text(struct trace_writer *writer, enum trace_block_type type,
			     const char *text, size_t length);
enum status trace_write_records(struct trace_writer *writer, enum trace_block_type type,
				const void *records, size_t record_bytes, uint32_t count);
/* At most TRACE_OPS_PER_BLOCK per call; zero records write nothing. */
enum status trace_write_ops(struct trace_writer *writer, const struct op_record *ops,
			    uint32_t count);
enum status trace_write_details(struct trace_writer *writer, const struct op_detail *details,
				uint32_t count);
enum status trace_write_counts(struct trace_writer *writer, enum trace_block_type type,
			       const struct trace_counts *counts,
			       const struct trace_comm_counts *comms);

/* The bytes written to memory, the caller's to free(); the writer is closed. */
unsigned char *trace_writer_take(struct trace_writer *writer, size_t *length);

/* Close the file; writes nothing. A writer that is not open is fine. */
void trace_writer_close(struct trace_writer *writer);

#endif
