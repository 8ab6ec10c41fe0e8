/* Opening and reading files that somebody else chose. */
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* What kind of thing it is, as an errno; 0 for a regular file. */
static int refuse_kind(int fd)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return errno;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return 0;
	case S_IFDIR:
		return EISDIR;
	case S_IFLNK:
		return ELOOP;
	default:
		return EINVAL;
	}
}

int file_open(int directory, const char *path, bool may_follow)
{
	char again[64];
	int place, refused, fd = -1;

	/* O_PATH names the thing without opening it; the second open is of that very thing. */
	place = openat(directory, path, O_PATH | O_CLOEXEC | (may_follow ? 0 : O_NOFOLLOW));
	if (place == -1)
		return -1;
	refused = refuse_kind(place);
	if (refused == 0) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		refused = errno;
	}
	close(place);
	if (fd == -1)
		errno = refused;
	return fd;
}

enum status file_pread_some(int fd, void *to, size_t length, uint64_t offset, size_t *got)
{
	size_t done = 0;

	if (offset > INT64_MAX || length > INT64_MAX - offset)
		return ERR_TRUNCATED;
	while (done < length) {
		ssize_t now = pread(fd, (char *)to + done, length - done, (off_t)(offset + done));

		if (now == -1 && errno == EINTR)
			continue;
		if (now == -1)
			return ERR_SYSTEM;
		if (now == 0)
			break;
		done += (size_t)now;
	}
	*got = done;
	return OK;
}

enum status file_pread(int fd, void *to, size_t length, uint64_t offset)
{
	size_t got = 0;
	enum status status = file_pread_some(fd, to, length, offset, &got);

	if (status != OK)
		return status;
	return got == length ? OK : ERR_TRUNCATED;
}
