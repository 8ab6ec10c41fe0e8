#include "output/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int main(void)
{
	test_memory();
	test_numbers();
	test_descriptor();
	test_failure_sticks();
	test_lengths();
	return tap_done();
}
