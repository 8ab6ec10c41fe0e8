/*
 * A trace file: a header followed by blocks, append-only. docs/FORMATS.md has the byte tables.
 *
 *	header | PROCESS | COMM | ANCHOR | OPS | OPS | COUNTS | ... | LINKS | CLOSE
 *
 * Each block has a checksum and can be read alone: a truncated file is readable up to the cut, and
 * a damaged block affects only itself. The last block shows how the file ended: CLOSE, or it was
 * truncated.
 */
#ifndef TRACE_LAYOUT_H
#define TRACE_LAYOUT_H

#include <stdint.h>

#include "common/op_layout.h"

#define TRACE_MAGIC UINT64_C(0x4543415254475252) /* "RRGTRACE" */
#define TRACE_BLOCK_MAGIC UINT32_C(0x4b4c4252)	 /* "RBLK" */
enum { TRACE_MAJOR = 2, TRACE_MINOR = 1 };

struct trace_header {
	uint64_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t byte_order; /* REGION_BYTE_ORDER */
	uint32_t header_bytes;
	uint32_t reserved;
	uint64_t created_wall_ns;
	uint64_t checksum; /* hash_bytes of the 32 bytes before it */
};

_Static_assert(sizeof(struct trace_header) == 40, "trace_header changed its size");

enum trace_block_type {
	TRACE_PROCESS = 1, /* "key=value" lines, as in the region's info */
	TRACE_COMM = 2,	   /* struct comm_info, one per record; the latest of an id counts */
	TRACE_OPS = 3,	   /* struct op_record, as columns */
	TRACE_DETAILS = 4, /* struct op_detail, as columns */
	TRACE_ANCHOR = 5,  /* struct clock_anchor, one per record */
	TRACE_NAME = 6,	   /* struct trace_name, one per record */
	TRACE_COUNTS = 7,  /* struct trace_counts, then comms x (id, struct comm_counts) */
	TRACE_CLOSE = 8,   /* the same; the process ended its recording here */
	TRACE_LINKS =
		9, /* struct region_link, one per record; the latest block counts; since 2.1 */
};

struct trace_block {
	uint32_t magic;
	uint16_t type;
	uint16_t reserved;
	uint32_t payload_bytes;
	uint32_t records;
	uint64_t checksum; /* trace_block_checksum() */
};

_Static_assert(sizeof(struct trace_block) == 24, "trace_block changed its size");

/* No block is larger, so a reader can reject a length at once. */
enum { TRACE_BLOCK_PAYLOAD_MAX = 1 << 20 };
/* Links have 64 bytes each. */
enum { TRACE_LINKS_MAX = TRACE_BLOCK_PAYLOAD_MAX / 64 };

/* Coded blocks, OPS and DETAILS: see docs/FORMATS.md. */
enum {
	TRACE_ROWS_MAX = 1024,	     /* records per block */
	TRACE_WORDS_MAX = 32,	     /* words per record */
	TRACE_WIDTH_MAX = 56,	     /* bits of a packed value, unless it has all 64 */
	TRACE_SIGNATURE_PLACES = 64, /* communicators whose last signature is remembered */
};

/* Low three bits of a column's tag. */
enum trace_packing {
	TRACE_SAME = 0,	   /* [start] base */
	TRACE_PACKED = 1,  /* [start] base width bits */
	TRACE_PATCHED = 2, /* [start] base width patches size bits positions values */
	TRACE_TABLE = 3,   /* entries size values bits */
	TRACE_HALVES = 4,  /* two columns: the low 32 bits, the high ones */
	TRACE_HOLES = 5,   /* one bit per row: the value is 0; then a column */
	TRACE_SIGNED = 6,  /* patches positions values */
};

/* High five bits of a column's tag: what the differences refer to. */
enum trace_reference {
	TRACE_REFERENCE_NONE = 0,
	TRACE_REFERENCE_PREVIOUS = 1, /* the previous row */
	TRACE_REFERENCE_WORD = 2,     /* and above: the column that many words earlier, plus 1 */
};

struct trace_name {
	uint32_t id;
	char text[32];
};

struct trace_counts {
	uint64_t clock_ns;
	uint64_t trace_records; /* operations written to this file before this block */
	uint64_t ring_head;	/* operations recorded by the process so far */
	uint64_t lost[LOST_REASONS];
	uint64_t odd[ODD_REASONS];
	uint64_t comms; /* entries that follow */
};

struct trace_comm_counts {
	uint64_t id;
	struct comm_counts counts;
};

#endif
