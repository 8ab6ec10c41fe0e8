#include "capture/inspector_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd_high.h"
#include "base/text.h"
#include "capture/inspector_place.h"
#include "inspector/inspector_line.h"

enum { RETRY_NS = 200 * 1000 * 1000 }; /* a disk that refused is not asked at every line */

bool inspector_log_init(struct inspector_log *log, const char *dir, const char *host, int64_t pid,
			uint64_t quota)
{
	char name[INSPECTOR_NAME_BYTES];

	*log = (struct inspector_log){ .fd = -1, .quota = quota };
	inspector_file_name(name, host, pid);
	log->text = malloc(INSPECTOR_LOG_BYTES);
	return log->text != NULL && text_copy(log->dir, sizeof(log->dir), dir) &&
	       text_format(log->path, sizeof(log->path), "%s/%s", dir, name);
}

char *inspector_log_place(struct inspector_log *log, size_t *room)
{
	*room = INSPECTOR_LOG_BYTES - log->used;
	return log->text + log->used;
}

void inspector_log_add(struct inspector_log *log, size_t length)
{
	log->used += length;
	log->held++;
}

/* A process of the same name, killed in the middle of a line, leaves no newline. */
static enum status begin_on_a_new_line(int fd, off_t size)
{
	char last = '\n';

	if (size > 0 && pread(fd, &last, 1, size - 1) != 1)
		return ERR_SYSTEM;
	return last == '\n' || pwrite(fd, "\n", 1, size) == 1 ? OK : ERR_SYSTEM;
}

/* Nothing but a plain file of the user's own is written to, whoever put it there. */
static enum status open_log(struct inspector_log *log)
{
	struct stat st = { .st_size = 0 };
	int fd;

	inspector_make_directories(log->dir);
	fd = fd_open_high(AT_FDCWD, log->path,
			  O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	if (fd == -1)
		return ERR_SYSTEM;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    begin_on_a_new_line(fd, st.st_size) == OK) {
		/* Inspector's logs can be read by everybody, whatever the umask. */
		if (st.st_size == 0)
			fchmod(fd, 0644);
		log->fd = fd;
		return OK;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		errno = EPERM;
	close(fd);
	return ERR_SYSTEM;
}

/* Drop what was written; gives back how many lines that were. */
static uint64_t let_go(struct inspector_log *log, size_t bytes)
{
	uint64_t lines = 0;

	for (const char *at = log->text; (at = memchr(at, '\n', bytes - (size_t)(at - log->text)));
	     at++)
		lines++;
	memmove(log->text, log->text + bytes, log->used - bytes);
	log->used -= bytes;
	log->held -= lines;
	log->bytes += bytes;
	return lines;
}

/* The disk took a part: what it has of a line begun is taken back, so that the file ends with a whole
 * one. Gives back the bytes of the whole ones. */
static size_t cut_last_line(struct inspector_log *log, size_t written)
{
	const char *newline = written > 0 ? memrchr(log->text, '\n', written) : NULL;
	size_t whole = newline != NULL ? (size_t)(newline + 1 - log->text) : 0;
	struct stat st;

	if (whole == written)
		return whole;
	/* Where that fails a reader finds half a line and says so. */
	log->is_torn = fstat(log->fd, &st) == -1 ||
		       ftruncate(log->fd, st.st_size - (off_t)(written - whole)) == -1;
	return whole;
}

static enum status status_of_errno(void)
{
	return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? ERR_NO_SPACE : ERR_SYSTEM;
}

static size_t write_some(struct inspector_log *log, enum status *status)
{
	size_t written = 0;

	if (log->is_torn && pwrite(log->fd, "\n", 1, (off_t)log->bytes) != 1) {
		*status = status_of_errno();
		return 0;
	}
	log->is_torn = false;
	while (written < log->used && *status == OK) {
		ssize_t got = pwrite(log->fd, log->text + written, log->used - written,
				     (off_t)(log->bytes + written));

		if (got > 0)
			written += (size_t)got;
		else if (got == 0 || errno != EINTR)
			*status = got == 0 ? ERR_NO_SPACE : status_of_errno();
	}
	return written;
}

uint64_t inspector_log_write(struct inspector_log *log, uint64_t now_ns, enum status *status)
{
	size_t written, whole;
	int error;

	*status = OK;
	if (log->used == 0)
		return 0;
	if (log->quota != 0 && log->bytes + log->used > log->quota) {
		*status = ERR_RANGE;
		return 0;
	}
	if (log->fd == -1)
		*status = open_log(log);
	log->retry_ns = *status != OK ? now_ns + RETRY_NS : 0;
	if (*status != OK)
		return 0;
	written = write_some(log, status);
	error = errno;
	whole = *status == OK ? written : cut_last_line(log, written);
	log->retry_ns = *status != OK ? now_ns + RETRY_NS : 0;
	errno = error;
	return let_go(log, whole);
}

uint64_t inspector_log_drop(struct inspector_log *log)
{
	uint64_t held = log->held;

	log->held = 0;
	log->used = 0;
	return held;
}

void inspector_log_close(struct inspector_log *log)
{
	if (log->fd != -1)
		close(log->fd);
	log->fd = -1;
	free(log->text);
	log->text = NULL;
	log->used = 0;
}
