/*
 * Writing a trace file: from the plugin's own thread, and from simulations; or one in memory. libc only.
 * Never blocks on anything but the disk; never from a callback.
 */
#ifndef TRACE_WRITE_H
#define TRACE_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/status.h"
#include "op/comm_layout.h"
#include "op/op_layout.h"
#include "trace/trace_encode.h"
#include "trace/trace_layout.h"

enum { TRACE_OPS_PER_BLOCK = TRACE_ROWS_MAX };

struct trace_writer {
	int fd;		       /* -1: not open, or in memory */
	uint64_t bytes;	       /* written so far, all of them whole blocks */
	uint64_t quota;	       /* bytes; 0: no limit */
	unsigned char *buffer; /* one block */
	struct trace_encoder *encoder;
	unsigned char *memory; /* what was written, where there is no file; NULL: there is one */
	size_t memory_room;
};

/* Create path (never an existing file: ERR_SYSTEM with EEXIST) and write the header. `mode` as for
 * open(2). The caller owns *writer; see trace_writer_close(). */
enum status trace_writer_open(struct trace_writer *writer, const char *path, unsigned int mode,
			      uint64_t quota);

/* The same with a given time of creation: simulations write the same bytes twice. */
enum status trace_writer_open_at(struct trace_writer *writer, const char *path, unsigned int mode,
				 uint64_t quota, uint64_t created_wall_ns);

/* The same in memory, without a limit: ERR_NO_SPACE is memory. See trace_writer_take(). */
enum status trace_writer_open_memory(struct trace_writer *writer, uint64_t created_wall_ns);

/* All of these append one block whole or not at all: OK, ERR_RANGE (quota), ERR_NO_SPACE,
 * ERR_SYSTEM. TRACE_CLOSE may use the room that the quota and the disk keep for it. */
enum status trace_write_text(struct trace_writer *writer, enum trace_block_type type,
			     const char *text, size_t length);
enum status trace_write_records(struct trace_writer *writer, enum trace_block_type type,
				const void *records, size_t record_bytes, uint32_t count);
/* At most TRACE_OPS_PER_BLOCK a call; nothing is written for none. */
enum status trace_write_ops(struct trace_writer *writer, const struct op_record *ops,
			    uint32_t count);
enum status trace_write_details(struct trace_writer *writer, const struct op_detail *details,
				uint32_t count);
enum status trace_write_counts(struct trace_writer *writer, enum trace_block_type type,
			       const struct trace_counts *counts,
			       const struct trace_comm_counts *comms);

/* The bytes that were written to memory, the caller's to free(); the writer is closed. */
unsigned char *trace_writer_take(struct trace_writer *writer, size_t *length);

/* Closes the file; writes nothing. Fine on a writer that is not open. */
void trace_writer_close(struct trace_writer *writer);

#endif
