/* Writes blocks to a trace file or to memory. */
#include "format/trace_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/file.h"
#include "common/hash.h"
#include "format/region_layout.h"
#include "format/trace_code.h"

/*
 * Appends blocks, each whole or not at all.
 *
 *	| blocks written ...            | room kept for CLOSE |
 *	0                           bytes        bytes + TAIL_BYTES
 *
 * Disk space is reserved before a block is written, plus TAIL_BYTES, so that a full disk shows
 * between blocks and the closing record still fits. The quota keeps the same tail.
 */

enum { TAIL_BYTES = 80 * 1024, MEMORY_BYTES = 16 * 1024 };

_Static_assert(sizeof(struct region_link) * TRACE_LINKS_MAX == TRACE_BLOCK_PAYLOAD_MAX,
	       "TRACE_LINKS_MAX is wrong");
_Static_assert(TRACE_ENCODED_MAX(OP_RECORD_WORDS, TRACE_OPS_PER_BLOCK) <= TRACE_BLOCK_PAYLOAD_MAX,
	       "a block of operations may not fit");

static enum status status_of_write_error(void)
{
	return errno == ENOSPC || errno == EDQUOT ? ERR_NO_SPACE : ERR_SYSTEM;
}

static enum status append_memory(struct trace_writer *writer, const unsigned char *from,
				 size_t size)
{
	size_t wanted = (size_t)writer->bytes + size, room = writer->memory_room;
	unsigned char *more;

	while (room < wanted)
		room *= 2;
	if (room != writer->memory_room) {
		more = realloc(writer->memory, room);
		if (more == NULL)
			return ERR_NO_SPACE;
		writer->memory = more;
		writer->memory_room = room;
	}
	memcpy(writer->memory + writer->bytes, from, size);
	writer->bytes = wanted;
	return OK;
}

/* Append all of it, or remove what was written. */
static enum status append_bytes(struct trace_writer *writer, const unsigned char *from, size_t size)
{
	size_t done = 0;

	if (writer->memory != NULL)
		return append_memory(writer, from, size);
	while (done < size) {
		ssize_t wrote =
			pwrite(writer->fd, from + done, size - done, (off_t)(writer->bytes + done));

		if (wrote == -1 && errno == EINTR)
			continue;
		if (wrote <= 0) {
			enum status status = status_of_write_error();

			/* If this fails as well, a reader finds and reports a truncated block. */
			if (ftruncate(writer->fd, (off_t)writer->bytes) == -1)
				return ERR_SYSTEM;
			return status;
		}
		done += (size_t)wrote;
	}
	writer->bytes += size;
	return OK;
}

/* Reserve space for `size` bytes and the tail. File systems that cannot do this are accepted. */
static enum status reserve_room(struct trace_writer *writer, size_t size)
{
	if (writer->quota != 0 && writer->bytes + size + TAIL_BYTES > writer->quota)
		return ERR_RANGE;
	if (fallocate(writer->fd, FALLOC_FL_KEEP_SIZE, (off_t)writer->bytes,
		      (off_t)(size + TAIL_BYTES)) == -1 &&
	    (errno == ENOSPC || errno == EDQUOT))
		return ERR_NO_SPACE;
	return OK;
}

/* The payload is in the buffer, after room for the block's head. */
static enum status finish_block(struct trace_writer *writer, enum trace_block_type type,
				size_t payload_bytes, uint32_t records)
{
	struct trace_block block = { .magic = TRACE_BLOCK_MAGIC,
				     .type = (uint16_t)type,
				     .payload_bytes = (uint32_t)payload_bytes,
				     .records = records };
	size_t size = sizeof(block) + payload_bytes;
	enum status status = OK;

	block.checksum = trace_block_checksum(&block, writer->buffer + sizeof(block));
	memcpy(writer->buffer, &block, sizeof(block));
	if (type != TRACE_CLOSE && writer->memory == NULL)
		status = reserve_room(writer, size);
	return status == OK ? append_bytes(writer, writer->buffer, size) : status;
}

enum status trace_writer_open(struct trace_writer *writer, const char *path, unsigned int mode,
			      uint64_t quota)
{
	return trace_writer_open_at(writer, path, mode, quota, clock_system_ns(CLOCK_REALTIME));
}

static struct trace_header header_of(uint64_t created_wall_ns)
{
	struct trace_header header = { .magic = TRACE_MAGIC,
				       .major = TRACE_MAJOR,
				       .minor = TRACE_MINOR,
				       .byte_order = REGION_BYTE_ORDER,
				       .header_bytes = sizeof(header),
				       .created_wall_ns = created_wall_ns };

	header.checksum = hash_bytes(&header, offsetof(struct trace_header, checksum));
	return header;
}

enum status trace_writer_open_at(struct trace_writer *writer, const char *path, unsigned int mode,
				 uint64_t quota, uint64_t created_wall_ns)
{
	struct trace_header header = header_of(created_wall_ns);
	struct trace_writer made = { .fd = -1, .quota = quota };
	enum status status;

	made.buffer = malloc(sizeof(struct trace_block) + TRACE_BLOCK_PAYLOAD_MAX);
	made.encoder = trace_encoder_new();
	if (made.buffer == NULL || made.encoder == NULL) {
		trace_writer_close(&made);
		return ERR_NO_SPACE;
	}
	made.fd = fd_open_high(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			       mode);
	if (made.fd == -1) {
		int error = errno;

		trace_writer_close(&made);
		errno = error;
		return ERR_SYSTEM;
	}
	status = append_bytes(&made, (const unsigned char *)&header, sizeof(header));
	if (status != OK) {
		trace_writer_close(&made);
		unlink(path);
		return status;
	}
	*writer = made;
	return OK;
}

enum status trace_writer_open_memory(struct trace_writer *writer, uint64_t created_wall_ns)
{
	struct trace_header header = header_of(created_wall_ns);
	struct trace_writer made = { .fd = -1, .memory_room = MEMORY_BYTES };

	made.buffer = malloc(sizeof(struct trace_block) + TRACE_BLOCK_PAYLOAD_MAX);
	made.encoder = trace_encoder_new();
	made.memory = malloc(made.memory_room);
	if (made.buffer == NULL || made.encoder == NULL || made.memory == NULL) {
		trace_writer_close(&made);
		return ERR_NO_SPACE;
	}
	append_memory(&made, (const unsigned char *)&header, sizeof(header));
	*writer = made;
	return OK;
}

enum status trace_write_text(struct trace_writer *writer, enum trace_block_type type,
			     const char *text, size_t length)
{
	if (length > TRACE_BLOCK_PAYLOAD_MAX)
		return ERR_RANGE;
	memcpy(writer->buffer + sizeof(struct trace_block), text, length);
	return finish_block(writer, type, length, 1);
}

enum status trace_write_records(struct trace_writer *writer, enum trace_block_type type,
				const void *records, size_t record_bytes, uint32_t count)
{
	size_t length = record_bytes * count;

	if (length > TRACE_BLOCK_PAYLOAD_MAX)
		return ERR_RANGE;
	memcpy(writer->buffer + sizeof(struct trace_block), records, length);
	return finish_block(writer, type, length, count);
}

static enum status write_coded(struct trace_writer *writer, enum trace_block_type type,
			       const void *records, unsigned int words, uint32_t count)
{
	size_t size;

	if (count > TRACE_OPS_PER_BLOCK)
		return ERR_RANGE;
	if (count == 0)
		return OK;
	size = trace_encode(writer->encoder, records, words, count,
			    writer->buffer + sizeof(struct trace_block));
	return finish_block(writer, type, size, count);
}

enum status trace_write_ops(struct trace_writer *writer, const struct op_record *ops,
			    uint32_t count)
{
	return write_coded(writer, TRACE_OPS, ops, OP_RECORD_WORDS, count);
}

enum status trace_write_details(struct trace_writer *writer, const struct op_detail *details,
				uint32_t count)
{
	return write_coded(writer, TRACE_DETAILS, details, OP_DETAIL_WORDS, count);
}

enum status trace_write_counts(struct trace_writer *writer, enum trace_block_type type,
			       const struct trace_counts *counts,
			       const struct trace_comm_counts *comms)
{
	unsigned char *payload = writer->buffer + sizeof(struct trace_block);
	size_t tail = sizeof(*comms) * counts->comms;

	if (counts->comms > (TRACE_BLOCK_PAYLOAD_MAX - sizeof(*counts)) / sizeof(*comms))
		return ERR_RANGE;
	memcpy(payload, counts, sizeof(*counts));
	if (tail > 0)
		memcpy(payload + sizeof(*counts), comms, tail);
	return finish_block(writer, type, sizeof(*counts) + tail, 1);
}

unsigned char *trace_writer_take(struct trace_writer *writer, size_t *length)
{
	unsigned char *memory = writer->memory;

	*length = (size_t)writer->bytes;
	writer->memory = NULL;
	trace_writer_close(writer);
	return memory;
}

void trace_writer_close(struct trace_writer *writer)
{
	if (writer->fd != -1) {
		/*
		 * Release the reserved tail. On failure the file takes more disk space, but its
		 * content is right.
		 */
		if (ftruncate(writer->fd, (off_t)writer->bytes) == -1)
			errno = 0;
		close(writer->fd);
	}
	free(writer->buffer);
	free(writer->encoder);
	free(writer->memory);
	*writer = (struct trace_writer){ .fd = -1 };
}
