#include "programs/cli/baseline_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"

/* As many rows as a baseline may have take less. */
enum { FILE_MOST = 64 << 20, PIECE = 1 << 16 };

static char *read_all(const char *path, int fd, size_t *length)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t got;

	*length = 0;
	do {
		if (room - *length < PIECE) {
			room += room < PIECE ? PIECE : room;
			text = cli_realloc(text, room);
		}
		got = read(fd, text + *length, room - *length);
		if (got > 0)
			*length += (size_t)got;
	} while ((got > 0 && *length <= FILE_MOST) || (got == -1 && errno == EINTR));
	if (got == 0)
		return text;
	if (got == -1)
		cli_error("%s: %s", path, strerror(errno));
	else
		cli_error("%s: larger than a baseline can be (%d MiB)", path, FILE_MOST >> 20);
	free(text);
	return NULL;
}

int baseline_file_read(struct baseline *baseline, const char *path)
{
	bool is_input = strcmp(path, "-") == 0;
	int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	enum status status;
	char why[400] = "", *text;
	size_t length;

	if (fd == -1)
		return cli_error("%s: %s", path, strerror(errno));
	text = read_all(path, fd, &length);
	if (!is_input)
		close(fd);
	if (text == NULL)
		return CLI_EXIT_TROUBLE;
	status = baseline_read(baseline, text, length, why, sizeof(why));
	free(text);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return status == OK
		       ? 0
		       : cli_error("%s is no baseline: %s; 'ringside baseline save' writes one",
				   path, why);
}
