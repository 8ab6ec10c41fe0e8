#include "programs/cli/cli_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "common/file.h"
#include "format/tar.h"

enum { PIECE = 256 * 1024 };

struct unpack {
	int fd;
	bool is_gzip;
	z_stream gzip;
	ZSTD_DStream *zstd;
	unsigned char *bytes;
	size_t used;
	size_t room;
	uint64_t most;
	bool is_over; /* one packed stream has ended; another may follow */
};

static enum status make_room(struct unpack *unpack)
{
	uint64_t room = unpack->room ? (uint64_t)unpack->room * 2 : 4 * PIECE;
	unsigned char *more;

	if (unpack->room - unpack->used >= PIECE)
		return OK;
	if (room > unpack->most + PIECE)
		room = unpack->most + PIECE;
	more = realloc(unpack->bytes, room);
	if (more == NULL)
		return ERR_NO_SPACE;
	unpack->bytes = more;
	unpack->room = room;
	return OK;
}

/* Behind a member stands another, as bgzip and `cat a.gz b.gz` have it, or zeros that fill a tape's block. */
static bool begins_member(struct unpack *unpack, const unsigned char **in, size_t *left)
{
	for (; *left > 0 && **in == 0; (*left)--)
		(*in)++;
	if (*left == 0)
		return false;
	unpack->is_over = false;
	inflateReset(&unpack->gzip);
	return true;
}

/* One step: as much of the input as goes into the room there is. */
static enum status step_gzip(struct unpack *unpack, const unsigned char *in, size_t *left)
{
	int code;

	if (unpack->is_over && !begins_member(unpack, &in, left))
		return OK;
	unpack->gzip.next_in = (unsigned char *)in;
	unpack->gzip.avail_in = (unsigned int)*left;
	unpack->gzip.next_out = unpack->bytes + unpack->used;
	unpack->gzip.avail_out = PIECE;
	code = inflate(&unpack->gzip, Z_NO_FLUSH);
	unpack->used += PIECE - unpack->gzip.avail_out;
	*left = unpack->gzip.avail_in;
	unpack->is_over = code == Z_STREAM_END;
	return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR ? OK : ERR_FORMAT;
}

/* It goes on with the next frame by itself, and passes over those that hold no data. */
static enum status step_zstd(struct unpack *unpack, const unsigned char *in, size_t *left)
{
	ZSTD_inBuffer from = { in, *left, 0 };
	ZSTD_outBuffer to = { unpack->bytes + unpack->used, PIECE, 0 };
	size_t code = ZSTD_decompressStream(unpack->zstd, &to, &from);

	unpack->used += to.pos;
	*left -= from.pos;
	unpack->is_over = code == 0;
	return ZSTD_isError(code) ? ERR_FORMAT : OK;
}

/* What is no archive is not unpacked further. */
static enum status unpack_piece(struct unpack *unpack, const unsigned char *in, size_t length)
{
	size_t left = length, before;
	enum status status;
	bool is_at_end;

	do {
		status = make_room(unpack);
		before = unpack->used + (length - left);
		if (status == OK)
			status = unpack->is_gzip ? step_gzip(unpack, in + length - left, &left)
						 : step_zstd(unpack, in + length - left, &left);
		if (status == OK && unpack->used > unpack->most)
			status = ERR_RANGE;
		if (status == OK && unpack->used >= TAR_BLOCK &&
		    !tar_is(unpack->bytes, unpack->used))
			status = ERR_UNKNOWN;
		is_at_end = unpack->is_over && left == 0;
	} while (status == OK && !is_at_end && unpack->used + (length - left) != before);
	return status;
}

static enum status unpack_all(struct unpack *unpack)
{
	unsigned char *in = malloc(PIECE);
	enum status status = in ? OK : ERR_NO_SPACE;
	uint64_t at = 0;
	size_t got = 1;

	while (status == OK && got > 0) {
		status = file_pread_some(unpack->fd, in, PIECE, at, &got);
		at += got;
		if (status == OK && got > 0)
			status = unpack_piece(unpack, in, got);
	}
	free(in);
	/* Other packed files may be cut, too: that is for who reads those. */
	if (status != ERR_NO_SPACE && !tar_is(unpack->bytes, unpack->used))
		return ERR_UNKNOWN;
	return status == OK && !unpack->is_over ? ERR_TRUNCATED : status;
}

static enum status begin(struct unpack *unpack)
{
	unsigned char magic[4] = { 0 };
	size_t got = 0;

	if (file_pread_some(unpack->fd, magic, sizeof(magic), 0, &got) != OK)
		return ERR_SYSTEM;
	if (got == 4 && magic[0] == 0x1f && magic[1] == 0x8b) {
		unpack->is_gzip = true;
		/* 16: gzip's own frame. */
		return inflateInit2(&unpack->gzip, 15 + 16) == Z_OK ? OK : ERR_NO_SPACE;
	}
	/* The second begins what pzstd writes: a frame that says how long the next one is. */
	if (got < 4 || (memcmp(magic, "\x28\xb5\x2f\xfd", 4) != 0 &&
			((magic[0] & 0xf0) != 0x50 || memcmp(magic + 1, "\x2a\x4d\x18", 3) != 0)))
		return ERR_UNKNOWN;
	unpack->zstd = ZSTD_createDStream();
	return unpack->zstd ? OK : ERR_NO_SPACE;
}

enum status cli_unpack(const char *path, uint64_t most, unsigned char **bytes, size_t *length)
{
	struct unpack unpack = { .fd = file_open(AT_FDCWD, path, true), .most = most };
	enum status status;

	/* Whoever reads it next says what is wrong with it. */
	if (unpack.fd == -1)
		return ERR_UNKNOWN;
	status = begin(&unpack);
	if (status == OK)
		status = unpack_all(&unpack);
	if (unpack.is_gzip)
		inflateEnd(&unpack.gzip);
	ZSTD_freeDStream(unpack.zstd);
	close(unpack.fd);
	if (status != OK) {
		free(unpack.bytes);
		return status;
	}
	*bytes = unpack.bytes;
	*length = unpack.used;
	return OK;
}
