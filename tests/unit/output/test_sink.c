#include "output/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/hash.h"
#include "tests/tap.h"

static void test_memory(void)
{
	struct sink sink;
	char *large = malloc(5001);

	sink_init_memory(&sink);
	EXPECT_THAT("empty at first", strcmp(sink_string(&sink), "") == 0);
	sink_text(&sink, "a");
	sink_repeat(&sink, '-', 130);
	sink_format(&sink, "%d", 42);
	EXPECT_EQUAL(strlen(sink_string(&sink)), 133);
	EXPECT(strcmp(sink_string(&sink) + 130, "-42") == 0);

	memset(large, 'x', 5000);
	large[5000] = '\0';
	sink_format(&sink, "%s", large);
	EXPECT_EQUAL(strlen(sink_string(&sink)), 5133);
	EXPECT(sink_flush(&sink) == OK);
	sink_release(&sink);
	free(large);
}

static void test_numbers(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	sink_unsigned(&sink, 0);
	sink_byte(&sink, ' ');
	sink_unsigned(&sink, 1090);
	sink_byte(&sink, ' ');
	sink_unsigned(&sink, UINT64_MAX);
	EXPECT(strcmp(sink_string(&sink), "0 1090 18446744073709551615") == 0);
	sink_release(&sink);
}

static void test_descriptor(void)
{
	char path[] = "/tmp/test_sink.XXXXXX";
	struct sink sink;
	int fd = mkstemp(path);
	off_t wanted = 0;

	unlink(path);
	sink_init_fd(&sink, fd);
	for (int i = 0; i < 30000; i++) {
		sink_text(&sink, "0123456789");
		wanted += 10;
	}
	EXPECT(lseek(fd, 0, SEEK_END) < wanted);
	EXPECT(sink_flush(&sink) == OK);
	EXPECT_EQUAL(lseek(fd, 0, SEEK_END), wanted);
	sink_release(&sink);
	close(fd);
}

static void test_failure_sticks(void)
{
	struct sink sink;
	int fd = open("/dev/full", O_WRONLY);
	int ends[2];

	sink_init_fd(&sink, fd);
	sink_text(&sink, "a");
	EXPECT(sink_flush(&sink) == ERR_SYSTEM);
	EXPECT_EQUAL(sink.error, ENOSPC);
	sink_text(&sink, "b");
	EXPECT_THAT("nothing is written after a failure", sink.used == 0);
	sink_release(&sink);
	close(fd);

	signal(SIGPIPE, SIG_IGN);
	EXPECT(pipe(ends) == 0);
	close(ends[0]);
	sink_init_fd(&sink, ends[1]);
	sink_text(&sink, "a");
	EXPECT(sink_flush(&sink) == ERR_SYSTEM);
	EXPECT_EQUAL(sink.error, EPIPE);
	sink_release(&sink);
	close(ends[1]);
}

/* Text of any length, whatever is in the buffer before. */
static void test_lengths(void)
{
	static const size_t lengths[] = { 0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000 };
	struct sink sink;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		sink_init_memory(&sink);
		sink_text(&sink, "<");
		sink_repeat(&sink, '-', lengths[i]);
		sink_text(&sink, ">");
		sink_format(&sink, "%.*s", (int)lengths[i], sink_string(&sink));
		EXPECT(sink.used == 2 * lengths[i] + 2 && strlen(sink_string(&sink)) == sink.used &&
		       sink.bytes[lengths[i] + 1] == '>' &&
		       memcmp(sink.bytes, sink.bytes + lengths[i] + 2, lengths[i]) == 0);
		sink_release(&sink);
	}
}

/* ---- gzip ------------------------------------------------------------------------------------- */

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

/* ---- protocol buffers ------------------------------------------------------------------------- */

static void test_wire(void)
{
	static const struct {
		uint64_t value;
		const char *bytes;
	} numbers[] = {
		{ 0, "\x08\x00" },
		{ 127, "\x08\x7f" },
		{ 128, "\x08\x80\x01" },
		{ 300, "\x08\xac\x02" },
		{ UINT64_MAX, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" },
	};
	static const struct {
		const char *text, *bytes;
	} texts[] = {
		{ "", "" },	 { "a\xc3\xa9z", "a\xc3\xa9z" }, { "a\xff\xfez", "a??z" },
		{ "\xc3", "?" }, { "ab\xe8\xa8", "ab??" },	 { "\xe8\xa8\x93", "\xe8\xa8\x93" },
	};
	struct sink sink, message;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sink_init_memory(&sink);
		wire_unsigned(&sink, 1, numbers[i].value);
		EXPECT(sink.used == (i == 0 ? 2 : strlen(numbers[i].bytes)) &&
		       memcmp(sink.bytes, numbers[i].bytes, sink.used) == 0);
		sink_release(&sink);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		sink_init_memory(&sink);
		wire_text(&sink, 2, texts[i].text);
		EXPECT_THAT(texts[i].bytes,
			    sink.used == 2 + strlen(texts[i].bytes) && sink.bytes[0] == 0x12 &&
				    (size_t)sink.bytes[1] == sink.used - 2 &&
				    memcmp(sink.bytes + 2, texts[i].bytes, sink.used - 2) == 0);
		sink_release(&sink);
	}
	sink_init_memory(&sink);
	sink_init_memory(&message);
	wire_fixed64(&message, 3, UINT64_C(0x0102030405060708));
	wire_double(&message, 4, 1);
	wire_signed(&message, 5, -1);
	wire_message(&sink, 17, &message);
	EXPECT(sink.used == 3 + 9 + 9 + 11 && message.used == 0 &&
	       memcmp(sink.bytes,
		      "\x8a\x01\x1d\x19\x08\x07\x06\x05\x04\x03\x02\x01\x21\0\0\0\0\0\0\xf0\x3f"
		      "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		      sink.used) == 0);
	message.status = ERR_NO_SPACE;
	message.error = ENOMEM;
	wire_message(&sink, 1, &message);
	EXPECT_THAT("a message that failed fails what it is part of",
		    sink.status == ERR_NO_SPACE && sink.error == ENOMEM);
	sink_release(&sink);
	sink_release(&message);
}

int main(void)
{
	test_memory();
	test_numbers();
	test_descriptor();
	test_failure_sticks();
	test_lengths();
	test_gzip();
	test_gzip_failure();
	test_wire();
	return tap_done();
}
