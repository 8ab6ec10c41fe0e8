/* Compressed archives: concatenated streams, limits, truncation. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "cli/cli_input.h"
#include "format/tar.h"
#include "tests/tap.h"

enum { CONTENT = 3000, ALL = TAR_BLOCK + 3072 + 2 * TAR_BLOCK };
static unsigned char archive[ALL];
static unsigned char packed[2 * ALL + 4096];
static size_t packed_length;
static char path[] = "/tmp/ringside-unpack-XXXXXX";

static void make_archive(void)
{
	if (tar_header(archive, "node/a", CONTENT, 0) != OK)
		abort();
	for (size_t i = 0; i < CONTENT; i++)
		archive[TAR_BLOCK + i] = (unsigned char)(i * 7 ^ i >> 5);
}

static void add_gzip(size_t from, size_t to)
{
	z_stream stream = { .next_in = archive + from, .avail_in = (unsigned int)(to - from) };

	stream.next_out = packed + packed_length;
	stream.avail_out = (unsigned int)(sizeof(packed) - packed_length);
	if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
	    deflate(&stream, Z_FINISH) != Z_STREAM_END)
		abort();
	packed_length += stream.total_out;
	deflateEnd(&stream);
}

static void add_zstd(size_t from, size_t to)
{
	packed_length += ZSTD_compress(packed + packed_length, sizeof(packed) - packed_length,
				       archive + from, to - from, 3);
}

static void add_bytes(const char *bytes, size_t length)
{
	memcpy(packed + packed_length, bytes, length);
	packed_length += length;
}

static enum status unpack(size_t length, uint64_t most, bool *is_whole)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	unsigned char *bytes = NULL;
	size_t got = 0;
	enum status status;

	if (fd == -1 || write(fd, packed, length) != (ssize_t)length || close(fd) == -1)
		abort();
	status = cli_unpack(path, most, &bytes, &got);
	*is_whole = status == OK && got == ALL && memcmp(bytes, archive, ALL) == 0;
	if (status == OK)
		free(bytes);
	return status;
}

/* A complete archive is read; one truncated inside the last stream is never accepted as complete. */
static void expect_unpacked(const char *what, size_t begin_of_last)
{
	size_t silent = 0;
	bool is_whole;

	EXPECT_THAT(what, unpack(packed_length, 1 << 20, &is_whole) == OK && is_whole);
	for (size_t length = begin_of_last + 1; length < packed_length; length++)
		silent += unpack(length, 1 << 20, &is_whole) == OK;
	EXPECT_EQUAL(silent, 0);
}

static void test_many(void)
{
	static const char frame[] = "\x50\x2a\x4d\x18\x04\0\0\0abcd";
	bool is_whole;
	size_t first;

	packed_length = 0;
	add_gzip(0, 700);
	first = packed_length;
	add_gzip(700, ALL);
	expect_unpacked("two members of gzip", first);
	add_bytes("\0\0\0\0", 4);
	EXPECT_THAT("zeros behind them",
		    unpack(packed_length, 1 << 20, &is_whole) == OK && is_whole);
	add_bytes("no gzip at all", 14);
	EXPECT_EQUAL(unpack(packed_length, 1 << 20, &is_whole), ERR_FORMAT);

	packed_length = 0;
	add_bytes(frame, 12);
	add_zstd(0, 700);
	add_bytes(frame, 12);
	first = packed_length;
	add_zstd(700, ALL);
	expect_unpacked("two frames of zstd, as pzstd writes them", first);
	add_bytes("no frame at all", 15);
	EXPECT_EQUAL(unpack(packed_length, 1 << 20, &is_whole), ERR_FORMAT);
}

static void test_most(void)
{
	bool is_whole;

	packed_length = 0;
	add_gzip(0, ALL);
	EXPECT(unpack(packed_length, ALL, &is_whole) == OK && is_whole);
	EXPECT_EQUAL(unpack(packed_length, ALL - 1, &is_whole), ERR_RANGE);
	packed_length = 0;
	add_zstd(0, ALL);
	EXPECT(unpack(packed_length, ALL, &is_whole) == OK && is_whole);
	EXPECT_EQUAL(unpack(packed_length, ALL - 1, &is_whole), ERR_RANGE);
}

int main(void)
{
	int fd = mkstemp(path);

	if (fd == -1)
		abort();
	close(fd);
	make_archive();
	test_many();
	test_most();
	unlink(path);
	return tap_done();
}
