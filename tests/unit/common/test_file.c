/* Opening files that another file names. */
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static char directory[PATH_MAX];

static const char *path_of(const char *name)
{
	static char path[PATH_MAX + 512];

	text_format(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void make(const char *name, off_t size, size_t stored)
{
	int fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
	static char bytes[1 << 16];

	memset(bytes, 'x', sizeof(bytes));
	if (fd == -1 || ftruncate(fd, size) == -1)
		abort();
	for (size_t at = 0; at < stored; at += sizeof(bytes))
		if (pwrite(fd, bytes, sizeof(bytes), (off_t)at) == -1)
			abort();
	close(fd);
}

/* NULL: it is opened. */
static const char *refused(uid_t owner, const char *path)
{
	const char *why;
	int fd = file_open_for(owner, path, &why);

	if (fd != -1)
		close(fd);
	return fd != -1 ? NULL : why != NULL ? why : "system";
}

static bool is_refused(uid_t owner, const char *path, const char *what)
{
	const char *why = refused(owner, path);

	return why != NULL && strstr(why, what) != NULL;
}

static void test_links(void)
{
	uid_t other = geteuid() + 1;
	struct stat st;

	make("plain", 100, 100);
	if (symlink("plain", path_of("link")) == -1 || mkdir(path_of("below"), 0700) == -1)
		abort();
	make("below/plain", 100, 100);
	if (symlink("below", path_of("way")) == -1)
		abort();
	EXPECT_THAT("a plain file of the same user", refused(geteuid(), path_of("plain")) == NULL);
	EXPECT_THAT("what one's own file names counts as named by oneself",
		    refused(geteuid(), path_of("link")) == NULL);
	EXPECT_THAT("a file of another user", is_refused(other, path_of("plain"), "another user"));
	EXPECT_THAT("a link", is_refused(other, path_of("link"), "symbolic link"));
	EXPECT_THAT("a link on the way", is_refused(other, path_of("way/plain"), "symbolic link"));
	EXPECT_THAT("a file that is not there", is_refused(other, path_of("none"), "system"));
	EXPECT_THAT("a relative path", is_refused(geteuid(), "plain", "system"));
	EXPECT_THAT("a directory", is_refused(geteuid(), directory, "regular"));
	if (mkfifo(path_of("pipe"), 0600) == 0)
		EXPECT_THAT("a pipe is not waited for",
			    is_refused(geteuid(), path_of("pipe"), "regular"));
	EXPECT_THAT("a file of the kernel", is_refused(geteuid(), "/proc/self/status", "kernel"));
	EXPECT_THAT("the owner of root's files is root",
		    stat("/etc/passwd", &st) == -1 || st.st_uid == other ||
			    is_refused(other, "/etc/passwd", "another user"));
}

/* As on a kernel before 5.6, or in a container that does not know it. */
static bool deny_openat2(int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 437, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Of NAME_MAX bytes, and one more. */
static const char *longest_name(void)
{
	static char name[NAME_MAX + 1];

	memset(name, 'n', NAME_MAX);
	return name;
}

static const char *too_long_name(void)
{
	static char name[NAME_MAX + 2];

	memset(name, 'n', NAME_MAX + 1);
	return name;
}

static int refuses_without_openat2(int error)
{
	uid_t other = geteuid() + 1;

	if (!deny_openat2(error))
		return 2;
	return is_refused(other, path_of("plain"), "another user") &&
			       is_refused(other, path_of("link"), "symbolic link") &&
			       is_refused(other, path_of("way/plain"), "symbolic link") &&
			       is_refused(other, path_of("none"), "system") &&
			       is_refused(other, "/proc/self/status", "symbolic link") &&
			       is_refused(other, path_of(longest_name()), "another user") &&
			       is_refused(other, path_of(too_long_name()), "system") &&
			       refused(geteuid(), path_of("plain")) == NULL
		       ? 0
		       : 1;
}

static void test_old_kernel(int error)
{
	pid_t child;
	int status = 0;

	make(longest_name(), 10, 10);
	child = fork();
	if (child == 0)
		_exit(refuses_without_openat2(error));
	if (child == -1 || waitpid(child, &status, 0) == -1 || !WIFEXITED(status))
		abort();
	if (WEXITSTATUS(status) != 2)
		EXPECT_THAT("the same without openat2()", WEXITSTATUS(status) == 0);
}

static void test_memfd(void)
{
	int region = memfd_create("ringside", MFD_CLOEXEC), stranger = memfd_create("x", 0);
	char path[64];

	if (region == -1 || stranger == -1)
		return;
	text_format(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), region);
	EXPECT_THAT("a region in memory", refused(geteuid(), path) == NULL);
	EXPECT_THAT("one of another user", is_refused(geteuid() + 1, path, "another user"));
	text_format(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), stranger);
	EXPECT_THAT("another descriptor", is_refused(geteuid() + 1, path, "symbolic link"));
	close(region);
	close(stranger);
}

static void test_holes(void)
{
	int fd;

	make("small", 64 << 20, 0);
	EXPECT_THAT("a small sparse file is fine", refused(geteuid(), path_of("small")) == NULL);
	make("hollow", (off_t)1 << 40, 1 << 16);
	EXPECT_THAT("a sparse file of 1 TiB", is_refused(geteuid(), path_of("hollow"), "holes"));
	make("full", 80 << 20, 80 << 20);
	fd = open(path_of("full"), O_RDONLY);
	EXPECT_THAT("a large file without holes", fd != -1 && !file_is_hollow(fd));
	close(fd);
}

/* By default file systems store whole pages, so the limit follows from what is stored. */
static void test_hollow_limit(void)
{
	struct stat st;
	int fd;

	make("edge", 1 << 20, 1 << 20);
	fd = open(path_of("edge"), O_RDWR);
	if (fd == -1 || fstat(fd, &st) == -1)
		abort();
	if (ftruncate(fd, (64 << 20) + (off_t)st.st_blocks * 512 * 4) == -1)
		abort();
	EXPECT_THAT("64 MiB and four times what is stored", !file_is_hollow(fd));
	if (ftruncate(fd, (64 << 20) + (off_t)st.st_blocks * 512 * 4 + 1) == -1)
		abort();
	EXPECT_THAT("and a byte more", file_is_hollow(fd));
	close(fd);
	fd = open(directory, O_RDONLY | O_DIRECTORY);
	EXPECT_THAT("a directory is no file with holes", !file_is_hollow(fd));
	close(fd);
	EXPECT(!file_is_hollow(-1));
}

/* Only root can give a file away. */
static void test_owners(void)
{
	const uid_t user = 12345;

	make("given", 100, 100);
	if (geteuid() != 0 || chown(path_of("given"), user, (gid_t)-1) == -1)
		return;
	EXPECT_THAT("root's own file may name any", refused(0, path_of("given")) == NULL);
	EXPECT_THAT("a user's file may name the user's", refused(user, path_of("given")) == NULL);
	EXPECT_THAT("but nobody else's", is_refused(user + 1, path_of("given"), "another user"));
}

static void test_kernel(void)
{
	static const char *const paths[] = { "/proc/version", "/sys/devices/system/cpu/possible",
					     "/sys/fs/cgroup/cgroup.controllers" };

	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++)
		if (access(paths[i], R_OK) == 0)
			EXPECT_THAT(paths[i], is_refused(geteuid(), paths[i], "kernel"));
}

static void test_flags(void)
{
	int fd;

	make("flags", 10, 10);
	fd = file_open(AT_FDCWD, path_of("flags"), false);
	EXPECT_THAT("no program that is started gets it",
		    fd != -1 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_EQUAL(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDONLY | O_NONBLOCK);
	close(fd);
	if (symlink("flags", path_of("to flags")) == -1)
		abort();
	EXPECT_THAT("a link is not followed",
		    file_open(AT_FDCWD, path_of("to flags"), false) == -1 && errno == ELOOP);
	fd = file_open(AT_FDCWD, path_of("to flags"), true);
	EXPECT_THAT("unless it may be", fd != -1);
	close(fd);
	EXPECT(file_open(AT_FDCWD, path_of("nothing"), true) == -1 && errno == ENOENT);
	EXPECT(file_open(AT_FDCWD, directory, true) == -1 && errno == EISDIR);
}

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0)
		abort();
}

static void test_pread(void)
{
	char to[8] = "#######";
	size_t got = 77;
	int fd;

	write_text("digits", "0123456789");
	fd = open(path_of("digits"), O_RDONLY);
	errno = EINTR;
	EXPECT(file_pread(fd, to, 4, 3) == OK && memcmp(to, "3456###", 8) == 0);
	EXPECT(file_pread(fd, to, 4, 6) == OK && memcmp(to, "6789###", 8) == 0);
	EXPECT_EQUAL(file_pread(fd, to, 4, 7), ERR_TRUNCATED);
	EXPECT(file_pread_some(fd, to, 4, 7, &got) == OK && got == 3);
	EXPECT(file_pread_some(fd, to, 4, 10, &got) == OK && got == 0);
	EXPECT_EQUAL(file_pread(fd, to, 4, INT64_MAX - 3), ERR_TRUNCATED);
	EXPECT_EQUAL(file_pread(fd, to, 4, UINT64_MAX), ERR_TRUNCATED);
	EXPECT_EQUAL(file_pread_some(fd, to, 4, (uint64_t)INT64_MAX + 1, &got), ERR_TRUNCATED);
	EXPECT_EQUAL(file_pread_some(fd, to, SIZE_MAX, 1, &got), ERR_TRUNCATED);
	EXPECT_THAT("the last offset that there is",
		    file_pread_some(fd, to, 4, INT64_MAX - 4, &got) == OK && got == 0);
	EXPECT_THAT("nothing is read from nowhere",
		    file_pread_some(-1, to, 0, 0, &got) == OK && got == 0);
	EXPECT_EQUAL(file_pread(-1, to, 1, 0), ERR_SYSTEM);
	EXPECT_EQUAL(file_pread_some(-1, to, 1, 0, &got), ERR_SYSTEM);
	close(fd);
}

/* The length, or -errno. */
static long read_whole_of(const char *name, size_t most)
{
	int fd = open(path_of(name), O_RDONLY);
	size_t length = 0;
	char *text = file_read_whole(fd, most, &length);
	long result = text != NULL && text[length] == '\0' ? (long)length : -errno;

	free(text);
	close(fd);
	return result;
}

static void test_read_whole(void)
{
	static const size_t sizes[] = { 1, 4095, 4096, 4097, 8191, 8192, 8193, 65536 };
	size_t length = 77;
	char *text;
	int ends[2], fd;

	write_text("whole", "0123456789");
	fd = open(path_of("whole"), O_RDONLY);
	text = file_read_whole(fd, 10, &length);
	EXPECT_THAT("as many bytes as are allowed",
		    text != NULL && length == 10 && memcmp(text, "0123456789", 11) == 0);
	free(text);
	text = file_read_whole(fd, 10, &length);
	EXPECT_THAT("at its end there are none", text != NULL && length == 0 && text[0] == '\0');
	free(text);
	lseek(fd, 7, SEEK_SET);
	text = file_read_whole(fd, 3, &length);
	EXPECT_THAT("the rest of it", text != NULL && length == 3 && memcmp(text, "789", 4) == 0);
	free(text);
	close(fd);
	length = 77;
	EXPECT(file_read_whole(-1, 10, &length) == NULL && errno == EBADF && length == 77);
	EXPECT_EQUAL(read_whole_of("whole", 9), -EFBIG);
	EXPECT_EQUAL(read_whole_of("whole", 0), -EFBIG);
	write_text("nothing in it", "");
	EXPECT_EQUAL(read_whole_of("nothing in it", 0), 0);
	EXPECT_EQUAL(read_whole_of(".", 10), -EISDIR);
	for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
		make("sized", (off_t)sizes[i], 0);
		EXPECT_EQUAL(read_whole_of("sized", sizes[i]), (long)sizes[i]);
		EXPECT_EQUAL(read_whole_of("sized", sizes[i] + 1), (long)sizes[i]);
		EXPECT_EQUAL(read_whole_of("sized", 1 << 20), (long)sizes[i]);
		EXPECT_EQUAL(read_whole_of("sized", sizes[i] - 1), -EFBIG);
	}

	fd = open("/proc/self/status", O_RDONLY);
	text = file_read_whole(fd, 1 << 20, &length);
	EXPECT_THAT("a file of /proc, which claims to be empty",
		    text != NULL && strncmp(text, "Name:", 5) == 0 && strlen(text) == length);
	free(text);
	close(fd);

	if (pipe(ends) == -1 || write(ends[1], "a\0b", 3) != 3 || close(ends[1]) == -1)
		abort();
	text = file_read_whole(ends[0], 1 << 20, &length);
	EXPECT_THAT("a pipe, with any bytes",
		    text != NULL && length == 3 && memcmp(text, "a\0b", 4) == 0);
	free(text);
	close(ends[0]);
}

static void test_read_text(void)
{
	char text[12] = "###########";

	write_text("text", "0123456789");
	EXPECT(file_read_text(path_of("text"), text, sizeof(text)) &&
	       strcmp(text, "0123456789") == 0);
	memset(text, '#', sizeof(text));
	EXPECT_THAT("no more than fits",
		    file_read_text(path_of("text"), text, 5) && memcmp(text, "0123\0#", 6) == 0);
	errno = 0;
	EXPECT(!file_read_text(path_of("no text"), text, sizeof(text)) && errno == ENOENT &&
	       text[0] == '\0');
	write_text("empty", "");
	text[0] = '#';
	EXPECT(!file_read_text(path_of("empty"), text, sizeof(text)) && errno == ENODATA &&
	       text[0] == '\0');
}

/* Whatever the process calls itself: fields are counted from the last parenthesis. */
static void test_proc(void)
{
	uint64_t ticks = 0, again = 0;
	struct stat st;
	char state = 0;

	EXPECT(file_proc_stat("self", &state, &ticks) && state == 'R');
	EXPECT_THAT("it began before now and after boot",
		    ticks > 0 && ticks <= (uint64_t)(sysconf(_SC_CLK_TCK) * 100000000));
	prctl(PR_SET_NAME, "a) S 1 2 (b c");
	EXPECT_THAT("a name with anything in it",
		    file_proc_stat("self", &state, &again) && state == 'R' && again == ticks);
	EXPECT_THAT("what is not there has nothing",
		    !file_proc_stat("none", &state, &again) && state == 0 && again == 0);
	EXPECT(stat("/proc/self/ns/pid", &st) == 0 && file_proc_namespace("self") == st.st_ino);
	EXPECT(stat("/proc/self/ns/mnt", &st) == 0 && file_proc_mounts("self") == st.st_ino);
	EXPECT(file_proc_own_pid("self") == (uint64_t)getpid());
	EXPECT(file_proc_own_pid("thread-self") == (uint64_t)syscall(SYS_gettid));
	EXPECT(file_proc_own_pid("none") == 0);
	EXPECT(file_proc_namespace("none") == 0 && file_proc_mounts("none") == 0);
}

/* The 22nd field of a child that sleeps, as the kernel's documentation counts them. */
static void test_child_ticks(void)
{
	char task[32], text[1024] = "", state, *at;
	uint64_t ticks = 0;
	pid_t child = fork();
	FILE *file;

	if (child == -1)
		abort();
	if (child == 0) {
		pause();
		_exit(0);
	}
	text_format(task, sizeof(task), "/proc/%d/stat", (int)child);
	file = fopen(task, "r");
	if (file == NULL || fgets(text, sizeof(text), file) == NULL)
		abort();
	fclose(file);
	at = text;
	for (int field = 1; field < 22; field++)
		at = strchr(at, ' ') + 1; /* the name of this program has no blanks */
	text_format(task, sizeof(task), "%d", (int)child);
	EXPECT(file_proc_stat(task, &state, &ticks) && ticks == strtoull(at, NULL, 10));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void test_absolute(void)
{
	char path[PATH_MAX + 64], wanted[PATH_MAX + 64], before[PATH_MAX];

	if (getcwd(before, sizeof(before)) == NULL || chdir(directory) == -1)
		abort();
	text_format(path, sizeof(path), "/a/b");
	EXPECT(file_make_absolute(path, sizeof(path)) && strcmp(path, "/a/b") == 0);
	path[0] = '\0';
	EXPECT(file_make_absolute(path, sizeof(path)) && path[0] == '\0');
	text_format(path, sizeof(path), "a/b");
	text_format(wanted, sizeof(wanted), "%s/a/b", directory);
	EXPECT(!file_make_absolute(path, strlen(wanted)) && strcmp(path, "a/b") == 0);
	EXPECT(file_make_absolute(path, strlen(wanted) + 1) && strcmp(path, wanted) == 0);
	if (chdir(before) == -1)
		abort();
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	return stat(path_of(name), &st) == 0 && S_ISDIR(st.st_mode) ? st.st_mode & 0777 : 0;
}

static void test_directories(void)
{
	char path[PATH_MAX + 64];
	struct stat st;

	text_format(path, sizeof(path), "%s", path_of("x/y/z"));
	errno = EPERM;
	file_make_directories(path, 0700, (gid_t)-1);
	EXPECT(mode_of("x") == 0700 && mode_of("x/y") == 0700 && mode_of("x/y/z") == 0700);
	EXPECT_EQUAL(errno, 0);
	text_format(path, sizeof(path), "%s", path_of("x/y/group/own"));
	file_make_directories(path, 0700, getegid());
	EXPECT_THAT("for a group: what is new", mode_of("x/y/group") == 0750 &&
							mode_of("x/y/group/own") == 0750 &&
							mode_of("x/y") == 0700);
	if (geteuid() == 0) {
		text_format(path, sizeof(path), "%s", path_of("x/others"));
		file_make_directories(path, 0700, 54321);
		EXPECT(stat(path, &st) == 0 && st.st_gid == 54321 && mode_of("x/others") == 0750);
	}
	file_make_directories("", 0700, (gid_t)-1);
}

static void test_same(void)
{
	struct stat st;
	int fd;

	make("one", 10, 10);
	if (stat(path_of("one"), &st) == -1)
		abort();
	fd = file_open_same(path_of("one"), st.st_dev, st.st_ino);
	EXPECT_THAT("the same file again", fd != -1);
	close(fd);
	EXPECT_THAT("another number, or the same on another device",
		    file_open_same(path_of("one"), st.st_dev, st.st_ino + 1) == -1 &&
			    errno == ESTALE &&
			    file_open_same(path_of("one"), st.st_dev + 1, st.st_ino) == -1 &&
			    errno == ESTALE);
	EXPECT(file_open_same(path_of("not there"), st.st_dev, st.st_ino) == -1 && errno == ENOENT);
	EXPECT(file_open_same(directory, st.st_dev, st.st_ino) == -1 && errno == EISDIR);
	make("two", 10, 10);
	if (rename(path_of("two"), path_of("moved")) == -1 || unlink(path_of("one")) == -1 ||
	    symlink("/proc/self/status", path_of("one")) == -1)
		abort();
	fd = file_open_same(path_of("one"), st.st_dev, st.st_ino);
	EXPECT_THAT("not what its name leads to by now", fd == -1 && errno == ESTALE);
}

/* A file that only has the name of memory may be on a file system that never answers. */
static void test_memory(void)
{
	int memory = memfd_create("ringside-test", MFD_CLOEXEC),
	    file = open("/proc/self/exe", O_RDONLY);
	int other = open("/dev/null", O_RDONLY), fd;
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), memory);
	fd = file_open_memfd(path);
	EXPECT_THAT("memory of a process is opened", fd != -1 && fstat(fd, &st) == 0);
	close(fd);
	fd = file_open_same(path, st.st_dev, st.st_ino);
	EXPECT(fd != -1);
	close(fd);
	EXPECT(file_open_same(path, st.st_dev, st.st_ino + 1) == -1 && errno == ESTALE);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), file);
	EXPECT_THAT("a file is not, nor asked anything",
		    file_open_memfd(path) == -1 && errno == EXDEV);
	EXPECT_THAT("in place of memory that was there before, too",
		    file_open_same(path, st.st_dev, st.st_ino) == -1 && errno == EXDEV);
	EXPECT(fstat(file, &st) == 0 && (fd = file_open_same(path, st.st_dev, st.st_ino)) != -1);
	close(fd);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), other);
	EXPECT(file_open_memfd(path) == -1 && errno == EXDEV);
	EXPECT(file_open_memfd("/proc/1/fd/none") == -1 && errno == ENOENT);
	close(memory);
	close(file);
	close(other);
}

int main(void)
{
	if (realpath(scratch_make(), directory) == NULL)
		return 1;
	test_links();
	test_old_kernel(ENOSYS);
	test_old_kernel(EPERM);
	test_old_kernel(EINVAL);
	test_memfd();
	test_holes();
	test_hollow_limit();
	test_owners();
	test_kernel();
	test_flags();
	test_pread();
	test_read_whole();
	test_read_text();
	test_child_ticks();
	test_proc();
	test_absolute();
	test_directories();
	test_same();
	test_memory();
	return tap_done();
}
