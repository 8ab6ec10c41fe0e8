#include "output/gzip_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/hash.h"
#include "tests/tap.h"

/* Noise does not become shorter, letters do. */
static char *make_plain(size_t length, bool is_noise)
{
	char *bytes = malloc(length + 1);

	if (bytes == NULL)
		abort();
	for (size_t i = 0; i < length; i++)
		bytes[i] = is_noise ? (char)hash_word(i, 5) : (char)('a' + i / 7 % 26);
	return bytes;
}

static bool is_inflated(const struct sink *packed, const char *plain, size_t length)
{
	z_stream stream = { .next_in = (unsigned char *)packed->bytes,
			    .avail_in = (unsigned int)packed->used };
	char *out = malloc(length + 1);
	bool is_same;

	if (out == NULL || inflateInit2(&stream, 15 + 16) != Z_OK)
		abort();
	stream.next_out = (unsigned char *)out;
	stream.avail_out = (unsigned int)length + 1;
	is_same = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == length &&
		  stream.avail_in == 0 && memcmp(out, plain, length) == 0;
	inflateEnd(&stream);
	free(out);
	return is_same;
}

static void test_gzip(void)
{
	static const struct {
		size_t length;
		bool is_noise;
	} cases[] = { { 0, false },	{ 10, false },	    { 262143, false },
		      { 262144, true }, { 1000000, false }, { 1000000, true } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t length = cases[i].length;
		char *plain = make_plain(length, cases[i].is_noise);
		struct gzip_sink gzip;
		struct sink to;

		sink_init_memory(&to);
		EXPECT_EQUAL(gzip_sink_open(&gzip, &to), OK);
		for (size_t at = 0; at < length; at += 50000) {
			sink_write(&gzip.plain, plain + at,
				   length - at < 50000 ? length - at : 50000);
			gzip_sink_pass(&gzip, false);
			EXPECT_THAT("little is collected first",
				    gzip.plain.used < 262144 && (at >= 250000 || to.used == 0));
		}
		gzip_sink_pass(&gzip, true);
		EXPECT(gzip.plain.status == OK && gzip.plain.used == 0);
		EXPECT(is_inflated(&to, plain, length));
		EXPECT(cases[i].is_noise || to.used < length / 20 + 64);
		gzip_sink_close(&gzip);
		gzip_sink_close(&gzip);
		sink_release(&to);
		free(plain);
	}
}

static void test_gzip_failure(void)
{
	char *plain = make_plain(600000, true);
	int fd = open("/dev/full", O_WRONLY);
	struct gzip_sink gzip;
	struct sink to;

	sink_init_fd(&to, fd);
	EXPECT_EQUAL(gzip_sink_open(&gzip, &to), OK);
	sink_write(&gzip.plain, plain, 600000);
	gzip_sink_pass(&gzip, false);
	EXPECT_THAT("a full disk is noticed where it is written to",
		    gzip.plain.status == ERR_SYSTEM && gzip.plain.error == ENOSPC);
	gzip_sink_pass(&gzip, true);
	EXPECT_EQUAL(gzip.plain.status, ERR_SYSTEM);
	gzip_sink_close(&gzip);
	sink_release(&to);
	close(fd);
	free(plain);
}

int main(void)
{
	test_gzip();
	test_gzip_failure();
	return tap_done();
}
