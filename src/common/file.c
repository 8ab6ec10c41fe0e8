/* Opening and reading files that someone else named. */
#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/text.h"

/* The type of a file as an errno; 0 for a regular file. */
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

	/* O_PATH refers to the file without opening it; the second open is of the same file. */
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

int file_open_same(const char *path, uint64_t device, uint64_t inode)
{
	int fd = file_open(AT_FDCWD, path, true);
	struct stat st;

	if (fd == -1 || (fstat(fd, &st) == 0 && st.st_dev == device && st.st_ino == inode))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
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

bool file_read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd == -1 ? -1 : read(fd, text, size - 1);

	text[got > 0 ? got : 0] = '\0';
	if (got == 0)
		errno = ENODATA;
	if (fd != -1)
		close(fd);
	return got > 0;
}

/* The name in field 2 can contain anything, so count fields after its last parenthesis. */
bool file_proc_stat(const char *task, char *state, uint64_t *start_ticks)
{
	char path[64], text[1024];
	const char *at;

	*state = 0;
	*start_ticks = 0;
	snprintf(path, sizeof(path), "/proc/%s/stat", task);
	if (!file_read_text(path, text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	if (at != NULL && at[1] == ' ')
		*state = at[2];
	for (int field = 2; field < 22 && at != NULL; field++)
		at = strchr(at + 1, ' ');
	*start_ticks = at != NULL ? strtoull(at + 1, NULL, 10) : 0;
	return true;
}

/* The link's text is "pid:[4026531836]". */
static uint64_t namespace_of(const char *task, const char *kind)
{
	char path[64], link[64];
	unsigned long long inode = 0;
	const char *number;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%s/ns/%s", task, kind);
	length = readlink(path, link, sizeof(link) - 1);
	link[length > 0 ? length : 0] = '\0';
	number = strchr(link, '[');
	return number != NULL && sscanf(number, "[%llu]", &inode) == 1 ? inode : 0;
}

uint64_t file_proc_namespace(const char *task)
{
	return namespace_of(task, "pid");
}

uint64_t file_proc_mounts(const char *task)
{
	return namespace_of(task, "mnt");
}

bool file_make_absolute(char *path, size_t size)
{
	char here[512], whole[1024];

	if (path[0] == '\0' || path[0] == '/')
		return true;
	return getcwd(here, sizeof(here)) != NULL &&
	       text_format(whole, sizeof(whole), "%s/%s", here, path) && strlen(whole) < size &&
	       text_copy(path, size, whole);
}

static void make_directory(const char *path, mode_t mode, gid_t group)
{
	int fd;

	if (mkdir(path, mode) == -1 || group == (gid_t)-1)
		return;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return;
	if (fchown(fd, (uid_t)-1, group) == 0)
		fchmod(fd, 0750);
	close(fd);
}

void file_make_directories(const char *path, mode_t mode, gid_t group)
{
	char copy[1024];

	if (path[0] == '\0' || !text_copy(copy, sizeof(copy), path))
		return;
	for (char *at = copy + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		make_directory(copy, mode, group);
		*at = '/';
	}
	make_directory(copy, mode, group);
	/* Errors show when a file is created; errno must not be mistaken for the reason then. */
	errno = 0;
}
