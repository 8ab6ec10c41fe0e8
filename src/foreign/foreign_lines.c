/*
 * One buffer: what is there and not yet given, then room. A line that is not whole moves to the
 * front before more is read; the buffer grows only for a line that is longer than it.
 *
 *	buffer | given | from ... to: lines | room
 */
#include "foreign/foreign_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/file.h"

enum { BUFFER_BYTES = 256 << 10, PACKED_BYTES = 64 << 10 };

static bool is_gzip(int fd)
{
	unsigned char start[2];

	return file_pread(fd, start, sizeof(start), 0) == OK && start[0] == 0x1f &&
	       start[1] == 0x8b;
}

enum status foreign_lines_init(struct foreign_lines *lines, int fd, uint64_t limit)
{
	z_stream *stream;

	*lines = (struct foreign_lines){ .fd = fd, .limit = limit, .is_gzip = is_gzip(fd) };
	lines->room = BUFFER_BYTES;
	lines->buffer = malloc(lines->room);
	if (lines->buffer == NULL)
		return ERR_NO_SPACE;
	if (!lines->is_gzip)
		return OK;
	lines->packed = malloc(PACKED_BYTES);
	stream = calloc(1, sizeof(*stream));
	/* 16: gzip's header, nothing else. */
	if (stream == NULL || lines->packed == NULL ||
	    inflateInit2(stream, MAX_WBITS + 16) != Z_OK) {
		free(stream);
		return ERR_NO_SPACE;
	}
	lines->inflate = stream;
	return OK;
}

void foreign_lines_release(struct foreign_lines *lines)
{
	if (lines->inflate != NULL)
		inflateEnd(lines->inflate);
	free(lines->inflate);
	free(lines->packed);
	free(lines->buffer);
	*lines = (struct foreign_lines){ .fd = -1, .is_over = true };
}

/* Some bytes of the file; 0 at its end, or where it cannot be read. */
static size_t read_file(struct foreign_lines *lines, void *to, size_t size)
{
	uint64_t left = lines->limit > lines->read_at ? lines->limit - lines->read_at : 0;
	ssize_t got;

	if (size > left)
		size = (size_t)left;
	do {
		got = pread(lines->fd, to, size, (off_t)lines->read_at);
	} while (got == -1 && errno == EINTR);
	if (got == -1)
		lines->status = ERR_SYSTEM;
	if (got <= 0)
		return 0;
	lines->read_at += (uint64_t)got;
	return (size_t)got;
}

/* A file may be several, one behind the other: `cat a.gz b.gz`. Zeros behind the last are padding. */
static bool next_member(struct foreign_lines *lines, z_stream *stream)
{
	for (;;) {
		while (stream->avail_in > 0 && *stream->next_in == 0) {
			stream->next_in++;
			stream->avail_in--;
		}
		if (stream->avail_in > 0)
			return inflateReset(stream) == Z_OK;
		stream->next_in = lines->packed;
		stream->avail_in = (uInt)read_file(lines, lines->packed, PACKED_BYTES);
		if (stream->avail_in == 0)
			return false;
	}
}

static size_t read_packed(struct foreign_lines *lines, char *to, size_t size)
{
	z_stream *stream = lines->inflate;
	int result = Z_OK;

	stream->next_out = (unsigned char *)to;
	stream->avail_out = (uInt)size;
	while (stream->avail_out == size) {
		if (stream->avail_in == 0) {
			stream->next_in = lines->packed;
			stream->avail_in = (uInt)read_file(lines, lines->packed, PACKED_BYTES);
		}
		if (stream->avail_in == 0) {
			if (lines->status == OK)
				lines->status = ERR_TRUNCATED;
			break;
		}
		result = inflate(stream, Z_NO_FLUSH);
		if (result == Z_STREAM_END) {
			if (!next_member(lines, stream)) {
				lines->is_over = true;
				break;
			}
		} else if (result != Z_OK && result != Z_BUF_ERROR) {
			lines->status = result == Z_MEM_ERROR ? ERR_NO_SPACE : ERR_FORMAT;
			break;
		}
	}
	return size - stream->avail_out;
}

static void fill(struct foreign_lines *lines)
{
	size_t room = lines->room - lines->to, got;

	got = lines->is_gzip ? read_packed(lines, lines->buffer + lines->to, room)
			     : read_file(lines, lines->buffer + lines->to, room);
	lines->to += got;
	if (got == 0 || lines->status != OK)
		lines->is_over = true;
}

/* Make room behind what is there. False: no memory. */
static bool make_room(struct foreign_lines *lines)
{
	size_t room = lines->room;
	char *more;

	if (lines->from > 0) {
		memmove(lines->buffer, lines->buffer + lines->from, lines->to - lines->from);
		lines->to -= lines->from;
		lines->seen -= lines->from;
		lines->from = 0;
	}
	if (lines->to < room)
		return true;
	more = realloc(lines->buffer, room * 2);
	if (more == NULL)
		return false;
	lines->buffer = more;
	lines->room = room * 2;
	return true;
}

static void give(struct foreign_lines *lines, struct foreign_line *line, size_t length,
		 bool is_ended)
{
	*line = (struct foreign_line){ .text = lines->buffer + lines->from,
				       .length = length,
				       .number = ++lines->number,
				       .offset = lines->offset,
				       .is_ended = is_ended };
	lines->from += length + is_ended;
	lines->offset += length + is_ended;
	lines->seen = lines->from;
}

/* The rest of a line that is too long, from where it is known to go on. */
static void pass_over(struct foreign_lines *lines, struct foreign_line *line)
{
	const char *newline = NULL;

	give(lines, line, lines->to - lines->from, false);
	line->text = "";
	line->is_too_long = true;
	while (newline == NULL && !lines->is_over) {
		lines->from = lines->to = lines->seen = 0;
		fill(lines);
		newline = memchr(lines->buffer, '\n', lines->to);
		lines->from = newline != NULL ? (size_t)(newline - lines->buffer) + 1 : lines->to;
		lines->offset += lines->from;
		lines->seen = lines->from;
	}
	line->is_ended = newline != NULL;
	line->length = (size_t)(lines->offset - line->offset) - line->is_ended;
}

enum status foreign_lines_next(struct foreign_lines *lines, struct foreign_line *line)
{
	for (;;) {
		const char *start = lines->buffer + lines->from;
		const char *newline =
			memchr(lines->buffer + lines->seen, '\n', lines->to - lines->seen);

		if (newline != NULL) {
			give(lines, line, (size_t)(newline - start), true);
			return OK;
		}
		lines->seen = lines->to;
		if (lines->is_over) {
			if (lines->from == lines->to)
				return lines->status == ERR_NO_SPACE ? ERR_NO_SPACE : ERR_GONE;
			give(lines, line, lines->to - lines->from, false);
			return OK;
		}
		if (lines->to - lines->from >= FOREIGN_LINE_MAX) {
			pass_over(lines, line);
			return OK;
		}
		if (!make_room(lines))
			return ERR_NO_SPACE;
		fill(lines);
	}
}

enum status foreign_lines_peek(int fd, char *to, size_t size, size_t *got)
{
	struct foreign_lines lines;
	enum status status = foreign_lines_init(&lines, fd, UINT64_MAX);

	*got = 0;
	while (status == OK && *got < size && !lines.is_over) {
		size_t some;

		lines.from = lines.to = 0;
		fill(&lines);
		some = lines.to < size - *got ? lines.to : size - *got;
		memcpy(to + *got, lines.buffer, some);
		*got += some;
	}
	foreign_lines_release(&lines);
	return status;
}
