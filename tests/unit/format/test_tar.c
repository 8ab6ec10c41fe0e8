#include "format/tar.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/scratch.h"
#include "tests/tap.h"

struct archive {
	unsigned char bytes[1 << 18];
	size_t length;
};

static void put(struct archive *archive, const void *bytes, size_t length)
{
	if (archive->length + length > sizeof(archive->bytes))
		abort();
	memcpy(archive->bytes + archive->length, bytes, length);
	archive->length += length;
}

static enum status put_file(struct archive *archive, const char *name, const void *bytes,
			    size_t length)
{
	static const unsigned char zeros[TAR_BLOCK];
	unsigned char block[TAR_BLOCK];
	enum status status = tar_header(block, name, length, 1700000000);

	if (status != OK)
		return status;
	put(archive, block, sizeof(block));
	put(archive, bytes, length);
	put(archive, zeros, tar_padding(length));
	return OK;
}

static void put_end(struct archive *archive)
{
	static const unsigned char zeros[2 * TAR_BLOCK];

	put(archive, zeros, sizeof(zeros));
}

static const char *repeated(char letter, size_t count)
{
	static char text[512];

	memset(text, letter, count);
	text[count] = '\0';
	return text;
}

static void names(void)
{
	unsigned char block[TAR_BLOCK];
	char deep[600];

	EXPECT_THAT("a short name fits", tar_header(block, "host/r1-2.ringside", 5, 0) == OK);
	EXPECT_THAT("an absolute one is rejected",
		    tar_header(block, "/etc/passwd", 5, 0) == ERR_RANGE);
	EXPECT_THAT("so is one with ..", tar_header(block, "a/../../b", 5, 0) == ERR_RANGE);
	EXPECT_THAT("or in a circle", tar_header(block, "a/./b", 5, 0) == ERR_RANGE);
	EXPECT_THAT("or nowhere", tar_header(block, "", 5, 0) == ERR_RANGE);
	EXPECT_THAT("or a directory", tar_header(block, "a/", 5, 0) == ERR_RANGE);
	EXPECT_THAT("or with a control byte", tar_header(block, "a\nb", 5, 0) == ERR_RANGE);
	EXPECT_THAT("a hundred letters fit", tar_header(block, repeated('x', 100), 0, 0) == OK);
	EXPECT_THAT("a hundred and one do not, without a directory",
		    tar_header(block, repeated('x', 101), 0, 0) == ERR_RANGE);
	snprintf(deep, sizeof(deep), "%s/%s", repeated('d', 100), "file");
	EXPECT_THAT("with a directory they do", tar_header(block, deep, 0, 0) == OK);
	EXPECT_THAT("eight GiB do not", tar_header(block, "a", UINT64_C(1) << 33, 0) == ERR_RANGE);
	EXPECT_THAT("a byte less does", tar_header(block, "a", (UINT64_C(1) << 33) - 1, 0) == OK);
	EXPECT_EQUAL(tar_padding(0), 0);
	EXPECT_EQUAL(tar_padding(1), 511);
	EXPECT_EQUAL(tar_padding(512), 0);
	EXPECT_EQUAL(tar_padding(513), 511);
}

static void round_trip(struct archive *archive)
{
	struct tar_reader reader;
	struct tar_entry entry;
	char deep[600];

	snprintf(deep, sizeof(deep), "%s/%s", repeated('d', 150), "file");
	archive->length = 0;
	EXPECT_EQUAL(put_file(archive, "one", "1234567", 7), OK);
	EXPECT_EQUAL(put_file(archive, deep, archive->bytes, 1000), OK);
	EXPECT_EQUAL(put_file(archive, "empty", "", 0), OK);
	put_end(archive);
	EXPECT_THAT("it is recognized as an archive", tar_is(archive->bytes, archive->length));
	EXPECT_THAT("half a block is not", !tar_is(archive->bytes, 300));
	tar_reader_init(&reader, archive->bytes, archive->length);
	EXPECT_EQUAL(tar_next(&reader, &entry), OK);
	EXPECT(strcmp(entry.name, "one") == 0 && entry.length == 7 &&
	       memcmp(entry.bytes, "1234567", 7) == 0 && entry.modified_s == 1700000000);
	EXPECT_EQUAL(tar_next(&reader, &entry), OK);
	EXPECT(strcmp(entry.name, deep) == 0 && entry.length == 1000 &&
	       entry.bytes == archive->bytes + entry.offset);
	EXPECT_EQUAL(tar_next(&reader, &entry), OK);
	EXPECT(strcmp(entry.name, "empty") == 0 && entry.length == 0);
	EXPECT_EQUAL(tar_next(&reader, &entry), ERR_GONE);
	EXPECT_THAT("and stays so", tar_next(&reader, &entry) == ERR_GONE);
	EXPECT_EQUAL(reader.passed_over, 0);
}

/* Truncated to every possible length. */
static void cuts(const struct archive *archive)
{
	size_t wrong = 0, whole = 0;

	for (size_t length = 0; length < archive->length; length++) {
		struct tar_reader reader;
		struct tar_entry entry;
		enum status status;

		tar_reader_init(&reader, archive->bytes, length);
		while ((status = tar_next(&reader, &entry)) == OK)
			wrong += entry.length > length ||
				 entry.bytes + entry.length > archive->bytes + length;
		wrong += status != ERR_TRUNCATED && status != ERR_GONE;
		whole += status == ERR_GONE;
	}
	EXPECT_EQUAL(wrong, 0);
	EXPECT_THAT("only cuts inside the final blocks leave it complete", whole == TAR_BLOCK);
}

static void changed_bits(struct archive *archive)
{
	size_t unseen = 0;

	for (size_t bit = 0; bit < (size_t)TAR_BLOCK * 8; bit++) {
		struct tar_reader reader;
		struct tar_entry entry;

		archive->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		tar_reader_init(&reader, archive->bytes, archive->length);
		unseen += tar_next(&reader, &entry) == OK && strcmp(entry.name, "one") == 0;
		archive->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	/* In the checksum field itself, blanks after its digits may be anything. */
	EXPECT_THAT("a flipped bit in a header is detected", unseen <= 16);
}

static void from_file(const struct archive *archive)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);
	struct tar_reader reader;
	struct tar_entry entry;
	char seven[7];

	if (fd == -1 || write(fd, "before", 6) != 6 ||
	    write(fd, archive->bytes, archive->length) != (ssize_t)archive->length)
		abort();
	tar_reader_init_fd(&reader, fd, 6, archive->length);
	EXPECT_EQUAL(tar_next(&reader, &entry), OK);
	EXPECT(entry.bytes == NULL && entry.length == 7 && strcmp(entry.name, "one") == 0);
	EXPECT(pread(fd, seven, sizeof(seven), (off_t)entry.offset) == 7 &&
	       memcmp(seven, "1234567", 7) == 0);
	EXPECT_EQUAL(tar_next(&reader, &entry), OK);
	EXPECT_EQUAL(tar_next(&reader, &entry), OK);
	EXPECT_EQUAL(tar_next(&reader, &entry), ERR_GONE);
	close(fd);
}

/* A header of another type, with a valid checksum. */
static void set_type(unsigned char *header, char type)
{
	unsigned int sum = 0;
	char digits[8];

	header[156] = (unsigned char)type;
	memset(header + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += header[i];
	snprintf(digits, sizeof(digits), "%06o", sum);
	memcpy(header + 148, digits, 7);
}

static void put_pax(struct archive *archive, const char *key, const char *value)
{
	size_t at = archive->length;
	char line[400];
	int length = snprintf(line, sizeof(line), "%03d %s=%s\n",
			      (int)(strlen(key) + strlen(value)) + 6, key, value);

	put_file(archive, "pax", line, (size_t)length);
	set_type(archive->bytes + at, 'x');
}

/* Unsafe names, which our writer rejects. */
static void hostile_names(void)
{
	static const char *const bad[] = { "/etc/passwd", "../up", "a/../../b",
					   "a\x1b[2Jb",	  "..",	   "." };
	static struct archive archive;
	struct tar_reader reader;
	struct tar_entry entry;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_pax(&archive, "path", bad[i]);
		put_file(&archive, "innocent", "x", 1);
	}
	put_pax(&archive, "path", repeated('x', 300));
	put_file(&archive, "innocent", "x", 1);
	put_pax(&archive, "mtime", "17");
	put_pax(&archive, "path", ".//two//words/");
	put_file(&archive, "innocent", "x", 1);
	put_end(&archive);
	tar_reader_init(&reader, archive.bytes, archive.length);
	EXPECT_EQUAL(tar_next(&reader, &entry), OK);
	EXPECT_THAT("unsafe names are skipped", strcmp(entry.name, "two/words") == 0);
	EXPECT_EQUAL(reader.passed_over, sizeof(bad) / sizeof(bad[0]) + 1);
}

/* Sizes that reach past the end. */
static void hostile_sizes(void)
{
	static const char *const bad[] = { "999999999999", "9223372036854775807",
					   "18446744073709551615", "1000" };
	static struct archive archive;
	struct tar_reader reader;
	struct tar_entry entry;
	size_t accepted = 0;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		archive.length = 0;
		put_pax(&archive, "size", bad[i]);
		put_file(&archive, "a", "x", 1);
		tar_reader_init(&reader, archive.bytes, archive.length);
		accepted += tar_next(&reader, &entry) == OK && entry.length > 1;
	}
	EXPECT_EQUAL(accepted, 0);
}

static void set_sum(unsigned char *header)
{
	uint32_t sum = 0;

	memset(header + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += header[i];
	snprintf((char *)header + 148, 8, "%06o", sum);
}

/* Sizes as other programs write them: of an archive that has 1,000 bytes of data, which ones are read. */
static void kinds_of_sizes(void)
{
#define FIELD(text) text, sizeof(text) - 1
	static const struct {
		const char *sentence, *field;
		size_t length;
		bool is_good;
		uint64_t size;
	} cases[] = {
		{ "octal", FIELD("00000001750"), true, 1000 },
		{ "blanks before and behind", FIELD("      1750 "), true, 1000 },
		{ "without an end", FIELD("000000001750"), true, 1000 },
		{ "nothing", FIELD("           "), true, 0 },
		{ "the largest digit", FIELD("00000000777"), true, 511 },
		{ "no digit", FIELD("00000000778"), false, 0 },
		{ "a sign", FIELD("-0000000001"), false, 0 },
		{ "binary", FIELD("\x80\0\0\0\0\0\0\0\0\0\x03\xe8"), true, 1000 },
		{ "binary, one byte", FIELD("\x80\0\0\0\0\0\0\0\0\0\0\x07"), true, 7 },
		{ "binary, past the end", FIELD("\x80\0\0\0\0\0\0\0\0\x01\0\0"), false, 0 },
		{ "binary, more than 63 bits", FIELD("\x80\0\0\0\x80\0\0\0\0\0\0\0"), false, 0 },
		{ "binary, more than 64 bits", FIELD("\x80\1\0\0\0\0\0\0\0\0\0\1"), false, 0 },
		{ "binary, negative", FIELD("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
		  false, 0 },
	};
	static struct archive archive;
	static const char data[1000];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tar_reader reader;
		struct tar_entry entry;
		bool is_good;

		archive.length = 0;
		put_file(&archive, "a", data, sizeof(data));
		put_end(&archive);
		memset(archive.bytes + 124, 0, 12);
		memcpy(archive.bytes + 124, cases[i].field, cases[i].length);
		set_sum(archive.bytes);
		tar_reader_init(&reader, archive.bytes, archive.length);
		is_good = tar_next(&reader, &entry) == OK;
		EXPECT_THAT(cases[i].sentence, is_good == cases[i].is_good &&
						       (!is_good || entry.length == cases[i].size));
	}
}

static size_t read_whole(const char *path, struct archive *archive)
{
	FILE *file = fopen(path, "rb");

	if (file == NULL)
		return archive->length = 0;
	archive->length = fread(archive->bytes, 1, sizeof(archive->bytes), file);
	fclose(file);
	return archive->length;
}

/* What the installed tar writes in each of its formats. */
static void of_others(const char *format, bool has_long_names)
{
	static struct archive archive;
	size_t files = 0, longest = 0, bytes = 0;
	struct tar_reader reader;
	struct tar_entry entry;
	enum status status;
	char command[1024];

	snprintf(command, sizeof(command),
		 "cd %s && rm -rf in && mkdir -p in/d && printf hello > in/a && printf world > "
		 "in/d/b && "
		 "ln -s a in/link && %s tar --format=%s -cf %s.tar in 2>/dev/null",
		 scratch_dir.path,
		 has_long_names ? "n=$(printf %0180d 7) && mkdir in/$n && printf long > in/$n/$n &&"
				: "",
		 format, format);
	if (system(command) != 0)
		abort();
	snprintf(command, sizeof(command), "%s/%s.tar", scratch_dir.path, format);
	EXPECT_THAT(format, read_whole(command, &archive) > 0);
	EXPECT_THAT("it is recognized, except for the oldest format",
		    tar_is(archive.bytes, archive.length) == (strcmp(format, "v7") != 0));
	tar_reader_init(&reader, archive.bytes, archive.length);
	while ((status = tar_next(&reader, &entry)) == OK) {
		files++;
		bytes += entry.length;
		longest = strlen(entry.name) > longest ? strlen(entry.name) : longest;
		if (strcmp(entry.name, "in/a") == 0)
			EXPECT(memcmp(entry.bytes, "hello", 5) == 0);
	}
	EXPECT_EQUAL(status, ERR_GONE);
	EXPECT_EQUAL(files, 2);
	EXPECT_EQUAL(bytes, 10);
	EXPECT_THAT("the link and the name that is too long are skipped",
		    reader.passed_over == (has_long_names ? 2u : 1u));
}

static void by_others(const struct archive *archive)
{
	char path[300], command[1024], line[400] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/ours.tar", scratch_dir.path);
	file = fopen(path, "wb");
	if (file == NULL || fwrite(archive->bytes, 1, archive->length, file) != archive->length ||
	    fclose(file) != 0)
		abort();
	snprintf(command, sizeof(command), "tar tf %s 2>&1 | wc -l", path);
	file = popen(command, "r");
	EXPECT(file != NULL && fgets(line, sizeof(line), file) != NULL && atoi(line) == 3);
	EXPECT_THAT("tar reads it without complaint", file != NULL && pclose(file) == 0);
	snprintf(command, sizeof(command), "tar xOf %s one", path);
	file = popen(command, "r");
	EXPECT(file != NULL && fgets(line, sizeof(line), file) != NULL &&
	       strcmp(line, "1234567") == 0);
	EXPECT(file != NULL && pclose(file) == 0);
}

int main(void)
{
	static struct archive archive;

	names();
	round_trip(&archive);
	cuts(&archive);
	changed_bits(&archive);
	from_file(&archive);
	hostile_names();
	hostile_sizes();
	kinds_of_sizes();
	if (system("tar --version >/dev/null 2>&1") != 0)
		return tap_done();
	scratch_make();
	by_others(&archive);
	of_others("ustar", false);
	of_others("gnu", true);
	of_others("pax", true);
	of_others("v7", false);
	return tap_done();
}
