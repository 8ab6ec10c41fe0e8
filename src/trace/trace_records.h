/* The records inside a good block, one by one. The payload is checked all the same. */
#ifndef TRACE_RECORDS_H
#define TRACE_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/status.h"
#include "op/comm_layout.h"
#include "op/op_layout.h"
#include "region/region_layout.h"
#include "trace/trace_decode.h"
#include "trace/trace_layout.h"
#include "trace/trace_read.h"

enum { TRACE_PIECE_ROWS = 64 };

struct trace_records {
	const unsigned char *at;
	const unsigned char *end;
	uint32_t left;	 /* records still to come */
	uint32_t stride; /* of uncoded records; a newer minor version may have longer ones */
	/* Coded ones: some rows at a time. */
	struct trace_columns columns;
	uint32_t piece_rows; /* decoded */
	uint32_t piece_at;   /* of these: given */
	uint64_t piece[TRACE_WORDS_MAX][TRACE_PIECE_ROWS];
};

/* NULL when the block's length can hold what it says it holds, else what is wrong. */
const char *trace_records_check(const struct trace_item *item);

/* ERR_FORMAT when the block's length cannot hold its records. Any type but PROCESS. The payload is
 * borrowed while records are taken. */
enum status trace_records_init(struct trace_records *records, const struct trace_item *item);

/* OK; ERR_GONE after the last one; ERR_FORMAT: the coding is damaged, there will be none. */
enum status trace_records_op(struct trace_records *records, struct op_record *op);
enum status trace_records_detail(struct trace_records *records, struct op_detail *detail);
enum status trace_records_comm(struct trace_records *records, struct comm_info *comm);
enum status trace_records_anchor(struct trace_records *records, struct clock_anchor *anchor);
enum status trace_records_name(struct trace_records *records, struct trace_name *name);
enum status trace_records_link(struct trace_records *records, struct region_link *link);
/* COUNTS and CLOSE: first the counts, once; then trace_counts.comms times the other. */
enum status trace_records_counts(struct trace_records *records, struct trace_counts *counts);
enum status trace_records_comm_counts(struct trace_records *records,
				      struct trace_comm_counts *counts);

#endif
