#include "import/foreign.h"

#include "tests/support/foreign_play.h"
#include "tests/tap.h"

/* All lines: their number, a checksum, and how it ended. */
struct read {
	uint64_t lines;
	uint64_t bytes;
	uint64_t too_long;
	uint64_t sum;
	bool is_ended; /* the last line, by a newline */
	enum status status;
	uint64_t read_at;
};

static struct read read_all(int fd, uint64_t limit)
{
	struct foreign_lines lines;
	struct foreign_line line;
	struct read read = { .is_ended = true };

	if (foreign_lines_init(&lines, fd, limit) != OK)
		abort();
	while (foreign_lines_next(&lines, &line) == OK) {
		read.lines++;
		if (line.number != read.lines || line.offset != read.bytes)
			abort();
		read.bytes += line.length + line.is_ended;
		read.too_long += line.is_too_long;
		read.is_ended = line.is_ended;
		for (size_t i = 0; i < line.length && !line.is_too_long; i++)
			read.sum = read.sum * 31 + (unsigned char)line.text[i];
	}
	read.status = lines.status;
	read.read_at = lines.read_at;
	foreign_lines_release(&lines);
	return read;
}

static struct read read_text(const char *text, size_t length)
{
	int fd = play_file(text, length);
	struct read read = read_all(fd, UINT64_MAX);

	close(fd);
	return read;
}

static void test_ends(void)
{
	struct read read = read_text("", 0);

	EXPECT_EQUAL(read.lines, 0);
	read = read_text("a\n\nbc\n", 6);
	EXPECT_EQUAL(read.lines, 3);
	EXPECT(read.is_ended);
	read = read_text("a\nbc", 4);
	EXPECT_EQUAL(read.lines, 2);
	EXPECT_THAT("the last line has no newline", !read.is_ended);
	EXPECT_EQUAL(read.bytes, 4);
}

/* Lines around the size of the buffer, and larger. */
static char *many_lines(size_t *length)
{
	const size_t sizes[] = { 0, 1, 7, 262143, 262144, 262145, 3, 700000, 100 };
	char *text = malloc(4 << 20);
	size_t at = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t j = 0; j < sizes[i]; j++)
			text[at++] = (char)('a' + (i + j) % 26);
		text[at++] = '\n';
	}
	for (int i = 0; i < 20000; i++)
		at += (size_t)snprintf(text + at, 64, "line %d of many\n", i);
	*length = at;
	return text;
}

static void test_buffers(void)
{
	size_t length, packed;
	char *text = many_lines(&length);
	struct read plain = read_text(text, length), other;
	unsigned char *gzip;
	uint64_t sum = 0;

	for (size_t i = 0; i < length; i++)
		if (text[i] != '\n')
			sum = sum * 31 + (unsigned char)text[i];
	EXPECT_EQUAL(plain.lines, 20009);
	EXPECT_EQUAL(plain.bytes, length);
	EXPECT_THAT("every byte is returned once", plain.sum == sum);
	gzip = play_gzip(text, length, length, &packed);
	other = read_text((char *)gzip, packed);
	EXPECT_THAT("gzip gives the same", other.sum == sum && other.lines == plain.lines);
	free(gzip);
	gzip = play_gzip(text, length, 10007, &packed);
	other = read_text((char *)gzip, packed);
	EXPECT_THAT("so does gzip in many members", other.sum == sum && other.lines == plain.lines);
	EXPECT_EQUAL(other.status, OK);
	free(gzip);
	free(text);
}

static void test_damaged_gzip(void)
{
	size_t length, packed;
	char *text = many_lines(&length);
	unsigned char *gzip = play_gzip(text, length, length, &packed);
	struct read read = read_text((char *)gzip, packed - 9);

	EXPECT_THAT("a truncated file gives everything before the cut",
		    read.status == ERR_TRUNCATED && read.lines > 19000);
	EXPECT_EQUAL(read.read_at, packed - 9);
	gzip[packed / 2] ^= 0xff;
	gzip[packed / 2 + 1] ^= 0xff;
	read = read_text((char *)gzip, packed);
	EXPECT_THAT("so does a damaged one, with an error",
		    read.status == ERR_FORMAT && read.lines > 1);
	memset(gzip + 2, 0xff, 8);
	read = read_text((char *)gzip, packed);
	EXPECT(read.status == ERR_FORMAT && read.lines == 0);
	free(gzip);
	free(text);
}

static void test_padding(void)
{
	size_t packed;
	unsigned char *gzip = play_gzip("a\nb\n", 4, 4, &packed);
	struct read read;

	memset(gzip + packed, 0, 100);
	read = read_text((char *)gzip, packed + 100);
	EXPECT_THAT("zeros after gzip data are padding", read.status == OK && read.lines == 2);
	free(gzip);
}

static void test_limit(void)
{
	int fd = play_file("one\ntwo\nthree\n", 14);
	struct read read = read_all(fd, 6);

	EXPECT_THAT("what was appended later is not read",
		    read.lines == 2 && read.bytes == 6 && !read.is_ended);
	close(fd);
}

static void test_too_long(void)
{
	size_t length = FOREIGN_LINE_MAX + 300000;
	char *text = malloc(length + 6);
	struct read read;

	memset(text, 'x', length);
	memcpy(text, "a\n", 2);
	memcpy(text + length, "\nend\n", 5);
	read = read_text(text, length + 5);
	EXPECT_EQUAL(read.lines, 3);
	EXPECT_EQUAL(read.too_long, 1);
	EXPECT_EQUAL(read.bytes, length + 5);
	free(text);
}

static void test_peek(void)
{
	char start[4];
	size_t got, packed;
	unsigned char *gzip = play_gzip("hello\n", 6, 6, &packed);
	int fd = play_file(gzip, packed);

	EXPECT(foreign_lines_peek(fd, start, sizeof(start), &got) == OK && got == 4 &&
	       memcmp(start, "hell", 4) == 0);
	close(fd);
	fd = play_file("he", 2);
	EXPECT(foreign_lines_peek(fd, start, sizeof(start), &got) == OK && got == 2);
	close(fd);
	free(gzip);
}

static void test_unreadable(void)
{
	int fd = open("tests", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct read read = read_all(fd, UINT64_MAX);

	EXPECT_THAT("what cannot be read ends at once, with the reason",
		    fd != -1 && read.status == ERR_SYSTEM && read.lines == 0);
	close(fd);
}

int main(void)
{
	test_unreadable();
	test_ends();
	test_buffers();
	test_damaged_gzip();
	test_padding();
	test_limit();
	test_too_long();
	test_peek();
	return tap_done();
}
