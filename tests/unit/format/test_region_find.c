#include "format/region_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
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

/* ---- containers ------------------------------------------------------------------------------- */

struct container {
	pid_t pid;
};

/* A process with mounts of its own: a tmpfs, or another directory, in place of ours, with such a file. */
static bool begin_container(struct container *container, const struct sample *sample,
			    const char *name, bool is_tmpfs)
{
	int ready[2];
	char byte = 0;

	if (pipe(ready) == -1 || (container->pid = fork()) == -1)
		abort();
	if (container->pid == 0) {
		if (unshare(CLONE_NEWNS) == -1 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
		    (is_tmpfs ? mount("none", directory, "tmpfs", 0, NULL)
			      : mount("/var", directory, NULL, MS_BIND, NULL)) == -1)
			_exit(write(ready[1], "n", 1) != 1);
		if (is_tmpfs) {
			mkdir(path_of("ringside-1000"), 0700);
			write_file(name, sample->bytes, sample->size);
		}
		if (write(ready[1], "y", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		byte = 'n';
	close(ready[0]);
	return byte == 'y';
}

static void end_container(const struct container *container)
{
	kill(container->pid, SIGKILL);
	waitpid(container->pid, NULL, 0);
}

static const struct region_place *place_in(const struct region_places *places,
					   const struct container *container, const char *name)
{
	char path[512];

	text_format(path, sizeof(path), "/proc/%d/root%s", (int)container->pid, path_of(name));
	for (size_t i = 0; i < places->count; i++)
		if (strcmp(places->list[i].path, path) == 0)
			return &places->list[i];
	return NULL;
}

static size_t count_containers(const struct region_places *places)
{
	size_t count = 0;

	for (size_t i = 0; i < places->count; i++)
		count += places->list[i].kind == REGION_PLACE_CONTAINER &&
			 strstr(places->list[i].path, directory) != NULL;
	return count;
}

/* Only root can have mounts of its own without a user namespace. */
static void test_containers(void)
{
	struct sample sample = sample_region();
	struct container one, other, none;
	const struct region_place *found;
	struct region_places places;
	struct stat st;
	int fd;

	if (!begin_container(&one, &sample, "ringside-1000/1-1.region", true)) {
		end_container(&one);
		free(sample.bytes);
		return;
	}
	EXPECT(begin_container(&other, &sample, "ringside-1000/2-2.region", true));
	EXPECT(begin_container(&none, &sample, "", false));
	EXPECT_EQUAL(region_find(&places, directory), OK);
	found = place_in(&places, &one, "ringside-1000/1-1.region");
	EXPECT_THAT("one container", found != NULL && found->kind == REGION_PLACE_CONTAINER);
	EXPECT_THAT("and another", place_in(&places, &other, "ringside-1000/2-2.region") != NULL);
	EXPECT_THAT("each once, and no directory that is not a tmpfs",
		    count_containers(&places) == 2);
	fd = found != NULL ? region_place_open(found) : -1;
	EXPECT_THAT("the file that was found is opened",
		    fd != -1 && fstat(fd, &st) == 0 && st.st_ino == found->st.st_ino &&
			    st.st_dev == found->st.st_dev && st.st_size == (off_t)sample.size);
	close(fd);
	end_container(&one);
	EXPECT_THAT("not when the container is gone",
		    found != NULL && region_place_open(found) == -1);
	region_find_release(&places);
	EXPECT_EQUAL(region_find(&places, directory), OK);
	EXPECT_EQUAL(count_containers(&places), 1);
	region_find_release(&places);
	end_container(&other);
	end_container(&none);
	free(sample.bytes);
}

enum { USER = 4242, STACKED = 600 };

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written = fd != -1 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd != -1)
		close(fd);
	return is_written;
}

/* In a user namespace of its own, with many mounts on one place, and with files in /proc that belong to root. */
static bool enter_stacked_container(const struct sample *sample, int mounts)
{
	char users[32], groups[32];
	uid_t user = getuid() == 0 ? USER : getuid();

	text_format(users, sizeof(users), "0 %u 1", (unsigned int)user);
	text_format(groups, sizeof(groups), "0 %u 1", (unsigned int)getgid());
	if (setresuid(user, user, user) == -1 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == -1 ||
	    prctl(PR_SET_DUMPABLE, 1) == -1 || !write_text("/proc/self/uid_map", users) ||
	    !write_text("/proc/self/setgroups", "deny") ||
	    !write_text("/proc/self/gid_map", groups) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		return false;
	for (int i = 0; i < mounts; i++)
		if (mount("none", "/tmp", "tmpfs", 0, NULL) == -1)
			return false;
	if (mkdir(directory, 0700) == -1 || mount("none", directory, "tmpfs", 0, NULL) == -1)
		return false;
	mkdir(path_of("ringside-1000"), 0700);
	write_file("ringside-1000/3-3.region", sample->bytes, sample->size);
	return prctl(PR_SET_DUMPABLE, 0) == 0;
}

static bool begin_stacked_container(struct container *container, const struct sample *sample,
				    int mounts)
{
	int ready[2];
	char byte = 0;

	if (pipe(ready) == -1 || (container->pid = fork()) == -1)
		abort();
	if (container->pid == 0) {
		bool is_in = enter_stacked_container(sample, mounts);

		if (write(ready[1], is_in ? "y" : "n", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		byte = 'n';
	close(ready[0]);
	return byte == 'y';
}

/* Searches with this limit, in steps; the longest, as effort beyond what it may take. */
static struct region_search *search_with(uint64_t owner_mounts, uint64_t step, uint64_t *beyond)
{
	const struct region_search_limits limits = { .owner_mounts = owner_mounts };
	struct region_search *search;
	bool is_over = false;

	EXPECT_EQUAL(region_search_new(&search, directory, true, &limits), OK);
	*beyond = 0;
	while (!is_over) {
		uint64_t before = region_search_effort(search), after;

		if (region_search_step(search, step, &is_over) != OK)
			abort();
		after = region_search_effort(search);
		if (after - before > step + *beyond)
			*beyond = after - before - step;
	}
	return search;
}

static uint32_t left_out_of(const struct region_search *search, uint32_t uid)
{
	const struct region_places *places = region_search_places(search);

	for (size_t i = 0; i < places->owner_count; i++)
		if (places->owners[i].uid == uid)
			return places->owners[i].directories_left_out;
	return 0;
}

/*
 * A long list of mounts is read in steps, and only so much of one user's lists. The user is who runs the process, though
 * its files in /proc are root's.
 */
static void test_mounts(void)
{
	struct sample sample = sample_region();
	struct container many, few;
	struct region_search *search;
	uint64_t beyond;
	uid_t user = getuid() == 0 ? USER : getuid();

	if (!begin_stacked_container(&many, &sample, STACKED)) {
		end_container(&many);
		free(sample.bytes);
		return;
	}
	EXPECT(begin_stacked_container(&few, &sample, 1));
	search = search_with(0, 50, &beyond);
	EXPECT_EQUAL(count_containers(region_search_places(search)), getuid() == 0 ? 2 : 0);
	EXPECT_EQUAL(left_out_of(search, user), 0);
	/* A read is of a few lines of some steps each. */
	EXPECT_THAT("in steps", beyond < 200);
	region_search_free(search);
	if (getuid() == 0) {
		search = search_with(STACKED, 50, &beyond);
		EXPECT_EQUAL(left_out_of(search, user) > 0, true);
		EXPECT_EQUAL(count_containers(region_search_places(search)) < 2, true);
		region_search_free(search);
		end_container(&many);
		search = search_with(STACKED, UINT64_MAX, &beyond);
		EXPECT_EQUAL(left_out_of(search, user), 0);
		EXPECT_EQUAL(count_containers(region_search_places(search)), 1);
		region_search_free(search);
	} else {
		end_container(&many);
	}
	end_container(&few);
	free(sample.bytes);
}

/* Whoever may mount a file system there (fusermount) serves it. */
static void test_mounted_inside(void)
{
	struct sample sample = sample_region();
	struct region_places places;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		bool is_found;

		mkdir(path_of("ringside-7"), 0700);
		if (unshare(CLONE_NEWNS) == -1 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
		    mount("none", path_of("ringside-7"), "tmpfs", 0, NULL) == -1)
			_exit(2);
		write_file("ringside-7/7-7.region", sample.bytes, sample.size);
		if (region_find(&places, directory) != OK)
			_exit(1);
		is_found = has_path(&places, path_of("ringside-7/7-7.region"));
		_exit(is_found || places.unreadable == 0 ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	EXPECT_THAT("a directory that is a mount is not entered, and counts as unreadable",
		    WIFEXITED(status) && WEXITSTATUS(status) != 1);
	rmdir(path_of("ringside-7"));
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
	test_containers();
	test_mounts();
	test_mounted_inside();
	clean_up();
	return tap_done();
}
