#include "trace/trace_records.h"

#include <string.h>

/* Bytes of one record in a block of records that are not coded; 0 for other blocks. */
static uint32_t plain_bytes(uint16_t type)
{
	switch (type) {
	case TRACE_COMM:
		return sizeof(struct comm_info);
	case TRACE_ANCHOR:
		return sizeof(struct clock_anchor);
	case TRACE_NAME:
		return sizeof(struct trace_name);
	case TRACE_LINKS:
		return sizeof(struct region_link);
	default:
		return 0;
	}
}

static bool is_coded(uint16_t type)
{
	return type == TRACE_OPS || type == TRACE_DETAILS;
}

static bool is_counts(uint16_t type)
{
	return type == TRACE_COUNTS || type == TRACE_CLOSE;
}

static uint64_t count_entries(const struct trace_item *item)
{
	struct trace_counts counts;

	memcpy(&counts, item->payload, sizeof(counts));
	return counts.comms;
}

const char *trace_records_check(const struct trace_item *item)
{
	uint32_t plain = plain_bytes(item->type);

	if (is_coded(item->type) && (item->records == 0 || item->records > TRACE_ROWS_MAX))
		return "the block cannot hold its records";
	if (plain != 0 && item->records == 0)
		return item->payload_bytes == 0 ? NULL : "the block has bytes and no records";
	if (plain != 0 && (item->payload_bytes % item->records != 0 ||
			   item->payload_bytes / item->records < plain))
		return "the block cannot hold its records";
	if (is_counts(item->type) &&
	    (item->payload_bytes < sizeof(struct trace_counts) ||
	     count_entries(item) > (item->payload_bytes - sizeof(struct trace_counts)) /
					   sizeof(struct trace_comm_counts)))
		return "the block cannot hold its counts";
	return NULL;
}

enum status trace_records_init(struct trace_records *records, const struct trace_item *item)
{
	records->at = records->end = NULL;
	records->left = records->stride = 0;
	records->piece_rows = records->piece_at = 0;
	records->columns.words = 0;
	if (trace_records_check(item) != NULL)
		return ERR_FORMAT;
	records->at = item->payload;
	records->end = item->payload + item->payload_bytes;
	records->left = item->records;
	if (plain_bytes(item->type) != 0 && item->records != 0)
		records->stride = item->payload_bytes / item->records;
	if (is_counts(item->type)) {
		records->left = (uint32_t)count_entries(item);
		records->stride = sizeof(struct trace_comm_counts);
	}
	return OK;
}

/* The next few rows of all columns. */
static enum status next_piece(struct trace_records *records, unsigned int words)
{
	uint64_t *to[TRACE_WORDS_MAX];
	enum status status = OK;

	if (records->columns.words == 0)
		status = trace_columns_open(&records->columns, records->at,
					    (size_t)(records->end - records->at), words,
					    records->left, UINT32_MAX);
	if (status != OK) {
		records->left = 0;
		return status;
	}
	for (unsigned int word = 0; word < TRACE_WORDS_MAX; word++)
		to[word] = records->piece[word];
	records->piece_rows = trace_columns_next(&records->columns, TRACE_PIECE_ROWS, to);
	records->piece_at = 0;
	return OK;
}

static enum status next_coded(struct trace_records *records, unsigned int words, void *record)
{
	uint64_t values[TRACE_WORDS_MAX];
	enum status status = OK;

	if (records->left == 0)
		return ERR_GONE;
	if (records->piece_at == records->piece_rows)
		status = next_piece(records, words);
	if (status != OK)
		return status;
	for (unsigned int word = 0; word < words; word++)
		values[word] = records->piece[word][records->piece_at];
	memcpy(record, values, words * sizeof(values[0]));
	records->piece_at++;
	records->left--;
	return OK;
}

static enum status next_plain(struct trace_records *records, void *record, size_t bytes)
{
	if (records->left == 0 || records->stride < bytes ||
	    (size_t)(records->end - records->at) < records->stride)
		return ERR_GONE;
	memcpy(record, records->at, bytes);
	records->at += records->stride;
	records->left--;
	return OK;
}

enum status trace_records_op(struct trace_records *records, struct op_record *op)
{
	return next_coded(records, OP_RECORD_WORDS, op);
}

enum status trace_records_detail(struct trace_records *records, struct op_detail *detail)
{
	return next_coded(records, OP_DETAIL_WORDS, detail);
}

enum status trace_records_comm(struct trace_records *records, struct comm_info *comm)
{
	return next_plain(records, comm, sizeof(*comm));
}

enum status trace_records_anchor(struct trace_records *records, struct clock_anchor *anchor)
{
	return next_plain(records, anchor, sizeof(*anchor));
}

enum status trace_records_name(struct trace_records *records, struct trace_name *name)
{
	return next_plain(records, name, sizeof(*name));
}

enum status trace_records_link(struct trace_records *records, struct region_link *link)
{
	return next_plain(records, link, sizeof(*link));
}

enum status trace_records_counts(struct trace_records *records, struct trace_counts *counts)
{
	if ((size_t)(records->end - records->at) < sizeof(*counts))
		return ERR_GONE;
	memcpy(counts, records->at, sizeof(*counts));
	records->at += sizeof(*counts);
	return OK;
}

enum status trace_records_comm_counts(struct trace_records *records,
				      struct trace_comm_counts *counts)
{
	return next_plain(records, counts, sizeof(*counts));
}
