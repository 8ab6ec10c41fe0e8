/*
 * Reading a trace file, from memory or, block by block, from a file of any size. Nothing in it is
 * trusted; a damaged block costs itself; a cut is said with its place.
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

#include "base/status.h"
#include "trace/trace_layout.h"

enum trace_found {
	TRACE_BLOCK = 1,   /* a good block of a type we know */
	TRACE_UNKNOWN = 2, /* a good block of a type that a newer minor version has: skip it */
	TRACE_DAMAGE = 3,  /* bytes that are no good block; reading went on behind them */
	TRACE_CUT = 4,	   /* the file ends without CLOSE; offset: where the last good block ends */
	TRACE_END = 5,	   /* nothing more */
};

struct trace_item {
	enum trace_found found;
	uint64_t offset;    /* of the block or of the damage, in the file */
	uint64_t bytes;	    /* of the block with its head; of the damage; cut: left over */
	const char *reason; /* damage and cut: a few words, static */
	uint16_t type;	    /* enum trace_block_type */
	uint32_t records;   /* as the block says: checked against its length */
	const unsigned char *payload; /* until the next trace_next() or trace_close() */
	uint32_t payload_bytes;
};

struct trace_problem {
	const char *what; /* a few words, static */
	uint16_t found_major;
	uint16_t found_minor;
};

struct trace_reader {
	int fd; /* -1: memory */
	const unsigned char *memory;
	uint64_t start; /* fd: where in the file it begins; offsets below count from there */
	uint64_t length;
	uint64_t at;	       /* where the next block is expected */
	unsigned char *window; /* fd: what was read last */
	uint64_t window_offset;
	size_t window_bytes;
	uint64_t effort_left; /* bytes that may still be summed up in search of a block */
	struct trace_header header;
	bool is_header_damaged; /* header is then zeroed but for the version: ours */
	bool is_closed;		/* the last good block is CLOSE; final once TRACE_END came */
	bool is_done;
	uint64_t unknown_blocks;
	uint64_t damages;
};

/*
 * Check the header. ERR_FORMAT not a trace file, ERR_VERSION newer major (problem has found_major),
 * ERR_TRUNCATED shorter than a header, ERR_SYSTEM (errno), ERR_NO_SPACE (memory). A damaged header
 * before good blocks is no failure: the first item is TRACE_DAMAGE at 0. `problem` may be NULL.
 * The caller owns *reader; see trace_close().
 */
enum status trace_open_memory(struct trace_reader *reader, const void *bytes, size_t length,
			      struct trace_problem *problem);
enum status trace_open(struct trace_reader *reader, const char *path,
		       struct trace_problem *problem);
/* The descriptor is borrowed for the call and duplicated. */
enum status trace_open_fd(struct trace_reader *reader, int fd, struct trace_problem *problem);
/* The same of a part of the file: one that lies in an archive. */
enum status trace_open_part(struct trace_reader *reader, int fd, uint64_t start, uint64_t length,
			    struct trace_problem *problem);
void trace_close(struct trace_reader *reader);

enum trace_found trace_next(struct trace_reader *reader, struct trace_item *item);

/* Go on from a place where a good block was found before. */
void trace_seek(struct trace_reader *reader, uint64_t offset);

/* Is this the beginning of a trace file (even one with a damaged header)? Needs up to 64 bytes. */
bool trace_probe(const void *bytes, size_t length);

#endif
