/*
 * Reads trace files through a window: for memory it is the memory, for a file the bytes read last.
 * A window holds any block as a whole, so no length field ever decides how much is allocated.
 *
 * After damage the next block is searched byte by byte: its magic, then its checksum. A file made
 * of magics would make that quadratic, so the search has a budget.
 */
#include "format/trace_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/hash.h"

enum {
	WINDOW_BYTES = 2 << 20,
	READ_BYTES = 256 << 10, /* at a time, or what is requested: it stays in the cache */
	HEADER_BYTES_MAX = 4096,
	EFFORT_PER_BYTE = 8,
	EFFORT_LEAST = 64 << 20,
	EFFORT_PER_CHECK = 64,
};
_Static_assert(WINDOW_BYTES >= TRACE_BLOCK_PAYLOAD_MAX + sizeof(struct trace_block),
	       "a block does not fit into the window");

static void spend_effort(struct trace_reader *reader, uint64_t effort)
{
	reader->effort_left -= effort < reader->effort_left ? effort : reader->effort_left;
}

/*
 * Make [offset, offset + bytes) available, bytes <= WINDOW_BYTES; NULL if the file ends before
 * that.
 */
static const unsigned char *window(struct trace_reader *reader, uint64_t offset, size_t bytes)
{
	size_t got = 0;

	if (offset > reader->length || bytes > reader->length - offset)
		return NULL;
	if (reader->fd == -1)
		return reader->memory + offset;
	if (offset < reader->window_offset ||
	    offset - reader->window_offset > reader->window_bytes ||
	    bytes > reader->window_bytes - (offset - reader->window_offset)) {
		reader->window_bytes = 0;
		reader->window_offset = offset;
		/* A read error is treated like the end of the file: truncated. */
		if (file_pread_some(reader->fd, reader->window,
				    bytes > READ_BYTES ? bytes : READ_BYTES, reader->start + offset,
				    &got) != OK ||
		    got < bytes)
			reader->length = offset + got;
		/* Bytes after a part of a file do not belong to it. */
		if (got > reader->length - offset)
			got = (size_t)(reader->length - offset);
		reader->window_bytes = got;
		spend_effort(reader, got);
		if (got < bytes)
			return NULL;
	}
	return reader->window + (offset - reader->window_offset);
}

/* Do the remaining bytes look like the beginning of a truncated block? */
static bool is_cut_head(const unsigned char *bytes, size_t length)
{
	const uint32_t magic = TRACE_BLOCK_MAGIC;

	return memcmp(bytes, &magic, length < sizeof(magic) ? length : sizeof(magic)) == 0;
}

/* Bytes of one record in a block of uncoded records; 0 for other blocks. */
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

/* NULL if the block is long enough for its contents, else what is wrong. */
static const char *trace_records_check(const struct trace_item *item)
{
	uint32_t plain = plain_bytes(item->type);

	if (is_coded(item->type) && (item->records == 0 || item->records > TRACE_ROWS_MAX))
		return "block too short for its records";
	if (plain != 0 && item->records == 0)
		return item->payload_bytes == 0 ? NULL : "block with bytes but no records";
	if (plain != 0 && (item->payload_bytes % item->records != 0 ||
			   item->payload_bytes / item->records < plain))
		return "block too short for its records";
	if (is_counts(item->type) &&
	    (item->payload_bytes < sizeof(struct trace_counts) ||
	     count_entries(item) > (item->payload_bytes - sizeof(struct trace_counts)) /
					   sizeof(struct trace_comm_counts)))
		return "block too short for its counts";
	return NULL;
}

static const char *check_head(const struct trace_reader *reader, const struct trace_block *block)
{
	if (block->magic != TRACE_BLOCK_MAGIC)
		return "no block begins here";
	if (block->type == 0 || block->payload_bytes > TRACE_BLOCK_PAYLOAD_MAX)
		return "damaged block header";
	if (block->reserved != 0 && reader->header.minor <= TRACE_MINOR)
		return "damaged block header";
	return NULL;
}

/* Is there a valid block at `offset`? If so, fills *item. */
static enum status check_block(struct trace_reader *reader, uint64_t offset,
			       struct trace_item *item, const char **reason)
{
	uint64_t left = reader->length - offset;
	const unsigned char *bytes;
	struct trace_block block;

	*reason = "the file ends inside this block";
	if (left < sizeof(block)) {
		bytes = window(reader, offset, (size_t)left);
		if (bytes == NULL || is_cut_head(bytes, (size_t)left))
			return ERR_TRUNCATED;
		*reason = "no block begins here";
		return ERR_FORMAT;
	}
	bytes = window(reader, offset, sizeof(block));
	if (bytes == NULL)
		return ERR_TRUNCATED;
	memcpy(&block, bytes, sizeof(block));
	if (check_head(reader, &block) != NULL) {
		*reason = check_head(reader, &block);
		return ERR_FORMAT;
	}
	bytes = window(reader, offset, sizeof(block) + block.payload_bytes);
	if (bytes == NULL)
		return ERR_TRUNCATED;
	*item = (struct trace_item){ .found =
					     block.type > TRACE_LINKS ? TRACE_UNKNOWN : TRACE_BLOCK,
				     .offset = offset,
				     .bytes = sizeof(block) + block.payload_bytes,
				     .type = block.type,
				     .records = block.records,
				     .payload = bytes + sizeof(block),
				     .payload_bytes = block.payload_bytes };
	*reason = "block checksum mismatch";
	if (trace_block_checksum(&block, item->payload) != block.checksum)
		return ERR_FORMAT;
	*reason = trace_records_check(item);
	return *reason == NULL ? OK : ERR_FORMAT;
}

/* The next offset after `from` with a block's magic; the file's length if there is none. */
static uint64_t find_magic(struct trace_reader *reader, uint64_t from)
{
	const uint32_t magic = TRACE_BLOCK_MAGIC;

	while (reader->length - from >= sizeof(magic)) {
		uint64_t left = reader->length - from;
		size_t bytes = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
		const unsigned char *here = window(reader, from, bytes);
		const unsigned char *hit;

		if (here == NULL || reader->effort_left == 0)
			break;
		hit = memmem(here, bytes, &magic, sizeof(magic));
		if (hit != NULL)
			return from + (uint64_t)(hit - here);
		from += bytes - (sizeof(magic) - 1);
	}
	return reader->length;
}

/* The offset of the next valid block after `from`; the file's length if there is none. */
static uint64_t find_block(struct trace_reader *reader, uint64_t from)
{
	struct trace_item item = { .bytes = 0 };
	const char *reason;

	for (from = find_magic(reader, from); from < reader->length;
	     from = find_magic(reader, from + 1)) {
		item.bytes = 0;
		if (check_block(reader, from, &item, &reason) == OK)
			return from;
		spend_effort(reader, item.bytes + EFFORT_PER_CHECK);
		if (reader->effort_left == 0 || from >= reader->length)
			break;
	}
	return reader->length;
}

static enum trace_found finish_reading(struct trace_reader *reader, struct trace_item *item,
				       const char *reason)
{
	reader->is_done = true;
	*item = (struct trace_item){ .found = TRACE_CUT, .offset = reader->at, .reason = reason };
	if (reader->length > reader->at)
		item->bytes = reader->length - reader->at;
	if (reader->is_closed && reader->at == reader->length)
		item->found = TRACE_END;
	else
		reader->is_closed = false;
	return item->found;
}

/* No valid block at reader->at: damage up to the next one, or the end of a truncated file. */
static enum trace_found step_over(struct trace_reader *reader, struct trace_item *item,
				  enum status status, const char *reason)
{
	uint64_t next =
		reader->at < reader->length ? find_block(reader, reader->at + 1) : reader->length;

	/* Check the length again: it shrinks if the file does. */
	if (next >= reader->length && (status == ERR_TRUNCATED || reader->at >= reader->length))
		return finish_reading(reader, item, reason);
	*item = (struct trace_item){ .found = TRACE_DAMAGE,
				     .offset = reader->at,
				     .bytes = next - reader->at,
				     .reason = reason };
	reader->at = next;
	reader->is_closed = false;
	reader->damages++;
	return TRACE_DAMAGE;
}

enum trace_found trace_next(struct trace_reader *reader, struct trace_item *item)
{
	const char *reason = "the file ends without its closing record";
	enum status status;

	if (reader->is_done) {
		*item = (struct trace_item){ .found = TRACE_END, .offset = reader->length };
		return TRACE_END;
	}
	if (reader->is_header_damaged && reader->at == 0) {
		*item = (struct trace_item){ .found = TRACE_DAMAGE,
					     .bytes = sizeof(struct trace_header),
					     .reason = "damaged file header" };
		reader->at = sizeof(struct trace_header);
		reader->damages++;
		return TRACE_DAMAGE;
	}
	if (reader->at >= reader->length)
		return finish_reading(reader, item, reason);
	status = check_block(reader, reader->at, item, &reason);
	if (status != OK)
		return step_over(reader, item, status, reason);
	reader->at += item->bytes;
	reader->is_closed = item->type == TRACE_CLOSE;
	reader->unknown_blocks += item->found == TRACE_UNKNOWN;
	return item->found;
}

void trace_seek(struct trace_reader *reader, uint64_t offset)
{
	reader->at = offset;
	reader->is_done = false;
	reader->is_closed = false;
}

bool trace_probe(const void *bytes, size_t length)
{
	const uint64_t magic = TRACE_MAGIC;
	const uint32_t block_magic = TRACE_BLOCK_MAGIC;
	const size_t behind = sizeof(struct trace_header);

	if (length > 0 && memcmp(bytes, &magic, length < sizeof(magic) ? length : 8) == 0)
		return true;
	return length >= behind + sizeof(block_magic) &&
	       memcmp((const char *)bytes + behind, &block_magic, sizeof(block_magic)) == 0;
}

/* The first 40 bytes have the same meaning in every version. */
static enum status check_header(struct trace_reader *reader, const unsigned char *bytes,
				struct status_problem *problem)
{
	struct trace_header *header = &reader->header;

	memcpy(header, bytes, sizeof(*header));
	if (header->magic != TRACE_MAGIC ||
	    header->checksum != hash_bytes(header, offsetof(struct trace_header, checksum))) {
		*header = (struct trace_header){ .major = TRACE_MAJOR, .minor = TRACE_MINOR };
		reader->is_header_damaged = true;
		return OK;
	}
	problem->found_major = header->major;
	problem->found_minor = header->minor;
	if (header->byte_order != REGION_BYTE_ORDER)
		return status_refuse(problem, ERR_FORMAT, "written with a different byte order");
	if (header->major > TRACE_MAJOR)
		return status_refuse(problem, ERR_VERSION, "newer major version");
	if (header->major < TRACE_MAJOR)
		return status_refuse(problem, ERR_FORMAT,
				     "older major version that is no longer supported");
	if (header->header_bytes < sizeof(*header) || header->header_bytes > HEADER_BYTES_MAX)
		return status_refuse(problem, ERR_FORMAT, "invalid header");
	if (header->header_bytes > reader->length)
		return status_refuse(problem, ERR_TRUNCATED, "truncated header");
	reader->at = header->header_bytes;
	return OK;
}

static enum status open_contents(struct trace_reader *reader, struct status_problem *problem)
{
	struct status_problem unwanted;
	size_t wanted = sizeof(struct trace_header) + sizeof(uint32_t);
	size_t bytes = reader->length < wanted ? (size_t)reader->length : wanted;
	const unsigned char *start = window(reader, 0, bytes);

	if (problem == NULL)
		problem = &unwanted;
	if (start == NULL)
		return status_refuse(problem, ERR_SYSTEM, "cannot be read");
	if (!trace_probe(start, bytes))
		return status_refuse(problem, ERR_FORMAT, "not a trace file");
	if (bytes < sizeof(struct trace_header))
		return status_refuse(problem, ERR_TRUNCATED, "truncated header");
	reader->effort_left = reader->length > UINT64_MAX / (2 * EFFORT_PER_BYTE)
				      ? UINT64_MAX
				      : reader->length * EFFORT_PER_BYTE + EFFORT_LEAST;
	return check_header(reader, start, problem);
}

enum status trace_open_memory(struct trace_reader *reader, const void *bytes, size_t length,
			      struct status_problem *problem)
{
	struct trace_reader made = { .fd = -1, .memory = bytes, .length = length };
	enum status status = open_contents(&made, problem);

	if (status == OK)
		*reader = made;
	return status;
}

enum status trace_open_part(struct trace_reader *reader, int fd, uint64_t start, uint64_t length,
			    struct status_problem *problem)
{
	struct trace_reader made = { .fd = -1, .start = start, .length = length };
	enum status status = ERR_SYSTEM;

	if (problem != NULL)
		problem->what = "cannot be read";
	made.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (made.fd == -1)
		return ERR_SYSTEM;
	made.window = malloc(WINDOW_BYTES);
	status = made.window != NULL ? open_contents(&made, problem) : ERR_NO_SPACE;
	if (status == OK)
		*reader = made;
	else
		trace_close(&made);
	return status;
}

enum status trace_open_fd(struct trace_reader *reader, int fd, struct status_problem *problem)
{
	struct stat st;

	if (problem != NULL)
		problem->what = "cannot be read";
	if (fstat(fd, &st) == -1)
		return ERR_SYSTEM;
	return trace_open_part(reader, fd, 0, (uint64_t)st.st_size, problem);
}

enum status trace_open(struct trace_reader *reader, const char *path,
		       struct status_problem *problem)
{
	int fd = file_open(AT_FDCWD, path, true);
	enum status status;

	if (fd == -1) {
		if (problem != NULL)
			problem->what = "cannot be opened";
		return ERR_SYSTEM;
	}
	status = trace_open_fd(reader, fd, problem);
	close(fd);
	return status;
}

void trace_close(struct trace_reader *reader)
{
	/* A zeroed reader has descriptor 0, which is never used for a trace. */
	if (reader->fd > 0)
		close(reader->fd);
	free(reader->window);
	*reader = (struct trace_reader){ .fd = -1, .is_done = true };
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

/* The next rows of all columns. */
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
