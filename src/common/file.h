/*
 * Opening and reading files: those that somebody else chose (regular files only, nothing else is even
 * touched), small ones of /proc, and new ones that must not become a standard stream.
 */
#ifndef FILE_H
#define FILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/status.h"

/*
 * Opening a device can do things and opening a pipe can wait, so what it is gets asked first.
 * Gives back a descriptor for reading or -1 with errno: EISDIR a directory, ELOOP a link where none
 * is allowed, EINVAL something else that is no regular file.
 */
int file_open(int directory, const char *path, bool may_follow);

/* The very file that was seen before; with another one under its name -1, and errno is ESTALE. */
int file_open_same(const char *path, uint64_t device, uint64_t inode);

/* pread() until all of it is there. ERR_TRUNCATED when the file ends before, ERR_SYSTEM. */
enum status file_pread(int fd, void *to, size_t length, uint64_t offset);

/* The same, but the end of the file is fine: *got says how much there was. */
enum status file_pread_some(int fd, void *to, size_t length, uint64_t offset, size_t *got);

/* The start of a small file, of /proc or /sys, terminated. False (errno) when it cannot be read or is empty: "" then. */
bool file_read_text(const char *path, char *text, size_t size);

/*
 * What /proc says of a task: a pid, "self", "self/task/TID". Its state as in /proc/PID/stat (R, S, D, T, Z ...) and
 * when it was started; 0 where it does not tell. False (errno): there is nothing to read.
 */
bool file_proc_stat(const char *task, char *state, uint64_t *start_ticks);
/* The inode of its pid namespace, 0 unknown. */
uint64_t file_proc_namespace(const char *task);

/* Make a path absolute: readers may stand elsewhere. False: it cannot be done, or does not fit, and stays as it is. */
bool file_make_absolute(char *path, size_t size);

/* mkdir -p. What exists is left as it is; what is new gets `mode`, or, unless `group` is (gid_t)-1, is for the user and
 * for this group. Whether it went well shows when a file is made. May wait for the disk. */
void file_make_directories(const char *path, mode_t mode, gid_t group);

/* In a process that closed its standard streams a new file becomes one of them, and whatever anybody
 * prints then goes into it. Give back the same file under a higher number; -1 (errno) when there is
 * none, with `fd` closed. */
static inline int fd_high(int fd)
{
	int high;

	if (fd == -1 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(fd);
	return high;
}

/*
 * Where another thread may print at any moment, moving a file up comes too late. While a guard is held, free
 * numbers among the first three are taken by descriptors that answer as closed ones do (EBADF), so that
 * whatever is opened gets a higher one. Keeps errno.
 */
struct fd_guard {
	int held[STDERR_FILENO + 1];
	int count;
};

static inline struct fd_guard fd_guard_begin(void)
{
	struct fd_guard guard = { .count = 0 };
	int error = errno;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int taken;

		if (fcntl(fd, F_GETFD) != -1)
			continue;
		taken = open("/", O_PATH | O_CLOEXEC);
		if (taken > STDERR_FILENO)
			close(taken);
		else if (taken != -1)
			guard.held[guard.count++] = taken;
	}
	errno = error;
	return guard;
}

static inline void fd_guard_end(const struct fd_guard *guard)
{
	int error = errno;

	for (int i = 0; i < guard->count; i++) {
		int flags = fcntl(guard->held[i], F_GETFL);

		/* Unless somebody put a real stream there meanwhile. */
		if (flags != -1 && flags & O_PATH)
			close(guard->held[i]);
	}
	errno = error;
}

/* openat(2), never as a standard stream. */
static inline int fd_open_high(int dir, const char *path, int flags, mode_t mode)
{
	struct fd_guard guard = fd_guard_begin();
	int fd = fd_high(openat(dir, path, flags, mode));

	fd_guard_end(&guard);
	return fd;
}

#endif
