/* Small things with files and trees of files, which belong to jobs that are over. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text.h"
#include "programs/cli/profilers_work.h"

enum { TAIL_BYTES = 4096, COPY_BYTES = 1 << 16 };

static FTS *walk_open(const char *path)
{
	char *const paths[] = { (char *)path, NULL };

	return path[0] == '\0' ? NULL : fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
}

void profilers_count_files(const char *path, size_t *files, uint64_t *bytes)
{
	FTS *walk = walk_open(path);
	FTSENT *at;

	*files = 0;
	*bytes = 0;
	while (walk && (at = fts_read(walk)) != NULL) {
		if (at->fts_info != FTS_F)
			continue;
		*files += 1;
		*bytes += (uint64_t)at->fts_statp->st_size;
	}
	if (walk)
		fts_close(walk);
}

static bool copy_bytes(int from, int to)
{
	char bytes[COPY_BYTES];
	ssize_t got;

	while ((got = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)got) != got)
			return false;
	return got == 0;
}

static bool copy_file(const char *path, const char *target)
{
	int from = file_open(AT_FDCWD, path, false);
	int to = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	bool is_whole = from != -1 && to != -1 && copy_bytes(from, to);

	if (from != -1)
		close(from);
	if (to != -1 && close(to) == -1)
		is_whole = false;
	return is_whole;
}

bool profilers_copy_files(const char *from, const char *to)
{
	FTS *walk = walk_open(from);
	bool is_whole = walk != NULL;
	char target[4096];
	FTSENT *at;

	while (walk && (at = fts_read(walk)) != NULL) {
		if (at->fts_info != FTS_F)
			continue;
		text_format(target, sizeof(target), "%s/%s", to, at->fts_name);
		is_whole &= copy_file(at->fts_path, target);
	}
	if (walk)
		fts_close(walk);
	return is_whole;
}

char *profilers_read_file(const char *path, size_t most, size_t *length)
{
	int fd = file_open(AT_FDCWD, path, true);
	struct stat st;
	char *text = NULL;

	if (fd == -1)
		return NULL;
	if (fstat(fd, &st) == 0 && (uint64_t)st.st_size > most) {
		errno = EFBIG;
	} else {
		text = malloc((size_t)st.st_size + 1);
		if (text && file_pread_some(fd, text, (size_t)st.st_size, 0, length) != OK) {
			free(text);
			text = NULL;
		}
		if (text)
			text[*length] = '\0';
	}
	close(fd);
	return text;
}

/* Where the last lines begin. */
static char *last_lines(char *text, size_t length, unsigned int wanted)
{
	unsigned int lines = 0;
	char *at = text + length;

	while (at > text && lines < wanted) {
		at--;
		lines += *at == '\n' && at + 1 < text + length;
	}
	return *at == '\n' ? at + 1 : at;
}

/* The end of a file, fit for a terminal; its length. */
static size_t read_tail(const char *path, char *text, size_t size)
{
	int fd = file_open(AT_FDCWD, path, false);
	size_t length = 0;
	struct stat st;
	uint64_t from;

	if (fd != -1 && fstat(fd, &st) == 0) {
		from = (uint64_t)st.st_size >= size ? (uint64_t)st.st_size - size + 1 : 0;
		if (file_pread_some(fd, text, size - 1, from, &length) != OK)
			length = 0;
	}
	if (fd != -1)
		close(fd);
	while (length > 0 && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	for (char *at = text; at < text + length; at++)
		if (((unsigned char)*at < ' ' && *at != '\n') || *at == 0x7f)
			*at = '?';
	return length;
}

bool profilers_last_line(const char *path, char *line, size_t size)
{
	char text[TAIL_BYTES];
	size_t length = read_tail(path, text, sizeof(text));

	if (length > 0)
		text_copy(line, size, last_lines(text, length, 1));
	return length > 0;
}

void profilers_tell_tail(const char *path, const char *indent)
{
	char text[TAIL_BYTES], *line;
	size_t length = read_tail(path, text, sizeof(text));

	for (line = last_lines(text, length, WORK_TAIL_LINES); *line != '\0';) {
		char *end = strchrnul(line, '\n');

		fprintf(stderr, "%s%.*s\n", indent, (int)(end - line), line);
		line = *end ? end + 1 : end;
	}
}
