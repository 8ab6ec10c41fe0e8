#include "format/region_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text.h"
#include "tests/support/sample_region.h"
#include "tests/tap.h"

static char directory[] = "/tmp/test_region_find.XXXXXX";
static const char *const hostile = "ringside-$(reboot);\n'\"\033[2J";

static const char *path_of(const char *name)
{
	static char path[512];

	text_format(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(path_of(name), "wb");

	if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
		abort();
}

static int has_path(const struct region_places *places, const char *path)
{
	for (size_t i = 0; i < places->count; i++)
		if (strcmp(places->list[i].path, path) == 0)
			return 1;
	return 0;
}

/* Ignore memfds of other tests that are running. */
static size_t count_files(const struct region_places *places)
{
	size_t count = 0;

	for (size_t i = 0; i < places->count; i++)
		count += places->list[i].kind == REGION_PLACE_FILE;
	return count;
}

static void make_place(const struct sample *sample)
{
	char inside[256];

	mkdir(path_of("ringside-1000"), 0700);
	mkdir(path_of(hostile), 0700);
	mkdir(path_of("other"), 0700);
	write_file("ringside-1000/12-34.region", sample->bytes, sample->size);
	write_file("ringside-1000/notes.txt", "no region", 9);
	write_file("ringside-1000/empty", "", 0);
	write_file("other/56-78.region", sample->bytes, sample->size);
	write_file("copy.region", sample->bytes, sample->size);
	text_format(inside, sizeof(inside), "%s/\t", hostile);
	write_file(inside, sample->bytes, sample->size);
	text_format(inside, sizeof(inside), "%s", path_of("ringside-link"));
	if (symlink(path_of("other"), inside) == -1)
		abort();
	text_format(inside, sizeof(inside), "%s", path_of("ringside-1000/link.region"));
	if (symlink(path_of("copy.region"), inside) == -1)
		abort();
	text_format(inside, sizeof(inside), "%s", path_of("ringside-1000/hard.region"));
	if (link(path_of("copy.region"), inside) == -1 ||
	    mkfifo(path_of("ringside-1000/pipe.region"), 0600) == -1)
		abort();
}

static void test_files(void)
{
	struct sample sample = sample_region();
	struct region_places places;
	char inside[256];

	make_place(&sample);
	EXPECT_EQUAL(region_find(&places, directory), OK);
	EXPECT(has_path(&places, path_of("ringside-1000/12-34.region")));
	text_format(inside, sizeof(inside), "%s/\t", hostile);
	EXPECT_THAT("names may contain anything", has_path(&places, path_of(inside)));
	EXPECT_THAT("one file with two names is listed once",
		    has_path(&places, path_of("copy.region")) !=
			    has_path(&places, path_of("ringside-1000/hard.region")));
	EXPECT_THAT("links, pipes and other directories are left alone", count_files(&places) == 3);
	EXPECT(places.foreign >= 2);
	region_find_release(&places);
	EXPECT_EQUAL(region_find(&places, path_of("nowhere")), OK);
	EXPECT_EQUAL(count_files(&places), 0);
	region_find_release(&places);
	free(sample.bytes);
}

static void test_open(void)
{
	const char *path = path_of("ringside-1000/12-34.region");
	const struct region_place *place = NULL;
	struct region_places places;
	char other[256], name[256];
	struct stat st;
	int fd;

	text_format(name, sizeof(name), "%s", path);
	EXPECT_EQUAL(region_find(&places, directory), OK);
	for (size_t i = 0; i < places.count; i++)
		if (strcmp(places.list[i].path, name) == 0)
			place = &places.list[i];
	if (place == NULL)
		abort();
	fd = region_place_open(place);
	EXPECT_THAT("the file that was found is opened",
		    fd != -1 && fstat(fd, &st) == 0 && st.st_ino == place->st.st_ino);
	close(fd);
	text_format(other, sizeof(other), "%s", path_of("other/56-78.region"));
	if (rename(other, name) == -1)
		abort();
	errno = 0;
	EXPECT_THAT("another file with its name is not",
		    region_place_open(place) == -1 && errno == ESTALE);
	unlink(name);
	EXPECT_THAT("nor is there anything to open without one",
		    region_place_open(place) == -1 && errno == ENOENT);
	region_find_release(&places);
}

static void test_memfd(void)
{
	struct sample sample = sample_region();
	struct region_places places;
	int fd = memfd_create("ringside", MFD_CLOEXEC);
	int other = memfd_create("ringsid", MFD_CLOEXEC);
	char path[64];
	int again = dup(fd);

	if (fd == -1 || write(fd, sample.bytes, sample.size) != (ssize_t)sample.size ||
	    write(other, sample.bytes, sample.size) != (ssize_t)sample.size)
		abort();
	EXPECT_EQUAL(region_find(&places, directory), OK);
	text_format(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	EXPECT_THAT("a memfd with the right name is found", has_path(&places, path));
	text_format(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), again);
	EXPECT_THAT("once", !has_path(&places, path));
	text_format(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), other);
	EXPECT_THAT("others are not", !has_path(&places, path));
	region_find_release(&places);
	close(fd);
	close(again);
	close(other);
	free(sample.bytes);
}

static void clean_up(void)
{
	char inside[256];

	unlink(path_of("ringside-1000/12-34.region"));
	unlink(path_of("ringside-1000/notes.txt"));
	unlink(path_of("ringside-1000/empty"));
	unlink(path_of("ringside-1000/link.region"));
	unlink(path_of("ringside-1000/hard.region"));
	unlink(path_of("ringside-1000/pipe.region"));
	unlink(path_of("other/56-78.region"));
	unlink(path_of("copy.region"));
	unlink(path_of("ringside-link"));
	text_format(inside, sizeof(inside), "%s/\t", hostile);
	unlink(path_of(inside));
	rmdir(path_of(hostile));
	rmdir(path_of("other"));
	rmdir(path_of("ringside-1000"));
	rmdir(directory);
}

int main(void)
{
	if (mkdtemp(directory) == NULL)
		return tap_skip_all("no temporary directory");
	test_files();
	test_open();
	test_memfd();
	clean_up();
	return tap_done();
}
