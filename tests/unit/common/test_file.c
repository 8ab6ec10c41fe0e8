/* Opening files that another file names. */
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static char directory[PATH_MAX];

static const char *path_of(const char *name)
{
	static char path[PATH_MAX + 64];

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
			       refused(geteuid(), path_of("plain")) == NULL
		       ? 0
		       : 1;
}

static void test_old_kernel(int error)
{
	pid_t child = fork();
	int status = 0;

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
	make("two", 10, 10);
	if (rename(path_of("two"), path_of("moved")) == -1 || unlink(path_of("one")) == -1 ||
	    symlink("/proc/self/status", path_of("one")) == -1)
		abort();
	fd = file_open_same(path_of("one"), st.st_dev, st.st_ino);
	EXPECT_THAT("not what its name leads to by now", fd == -1 && errno == ESTALE);
}

int main(void)
{
	if (realpath(scratch_make(), directory) == NULL)
		return 1;
	test_links();
	test_old_kernel(ENOSYS);
	test_old_kernel(EPERM);
	test_memfd();
	test_holes();
	test_same();
	return tap_done();
}
