/* NCCL's logs: files, and directories with all files below them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/doctor_case.h"

enum { DEPTH_MOST = 8, FILES_MOST = 65536, PATH_BYTES = 4096 };

struct reading {
	struct doctor_case *look;
	size_t files; /* of all directories together */
	bool is_over; /* there were more */
	bool is_deep; /* there were directories below DEPTH_MOST */
};

static int read_file(struct reading *reading, const char *path)
{
	/* Not blocking: a pipe that nobody writes to is no reason to wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum status status;

	/* What somebody still writes into a pipe is waited for. */
	if (fd == -1 || fcntl(fd, F_SETFL, 0) == -1) {
		cli_error("%s: %s", path, strerror(errno));
		if (fd != -1)
			close(fd);
		return CLI_EXIT_TROUBLE;
	}
	reading->files++;
	status = nccl_log_add_fd(&reading->look->log, path, fd);
	if (status == ERR_SYSTEM)
		cli_error("%s: %s", path, strerror(errno));
	close(fd);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	return status == OK ? 0 : CLI_EXIT_TROUBLE;
}

static int by_name(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

/* In the order of names, so that the same files give the same words. */
static char **names_in(struct reading *reading, const char *path, size_t *count)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char **names = NULL;

	*count = 0;
	if (directory == NULL) {
		cli_error("%s: %s", path, strerror(errno));
		return NULL;
	}
	while (!reading->is_over && (entry = readdir(directory)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		reading->is_over = *count == FILES_MOST;
		if (reading->is_over)
			break;
		names = cli_realloc(names, (*count + 1) * sizeof(*names));
		names[*count] = strdup(entry->d_name);
		if (names[(*count)++] == NULL)
			cli_no_memory();
	}
	closedir(directory);
	if (*count > 1)
		qsort(names, *count, sizeof(*names), by_name);
	return names;
}

/* Links are followed where somebody named them, not where they lie in a directory: there they lead to what is read
 * anyway, or round in circles. */
static int read_path(struct reading *reading, const char *path, unsigned int depth)
{
	char below[PATH_BYTES];
	char **names;
	struct stat st;
	size_t count;
	int code = 0;

	if ((depth == 0 ? stat(path, &st) : lstat(path, &st)) == -1)
		return cli_error("%s: %s", path, strerror(errno));
	if (depth > 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	reading->is_over |= reading->files == FILES_MOST;
	reading->is_deep |= S_ISDIR(st.st_mode) && depth == DEPTH_MOST;
	if (reading->is_over || (S_ISDIR(st.st_mode) && depth == DEPTH_MOST))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return read_file(reading, path);
	names = names_in(reading, path, &count);
	for (size_t i = 0; i < count; i++) {
		if (text_format(below, sizeof(below), "%s/%s", path, names[i]))
			code |= read_path(reading, below, depth + 1);
		free(names[i]);
	}
	free(names);
	return code;
}

/* Of the rest nobody knows what it would say. */
static void tell_rest(struct reading *reading)
{
	char why[120];

	if (reading->is_over)
		text_format(why, sizeof(why),
			    "there are more than %d files: name those that matter", FILES_MOST);
	else
		text_format(why, sizeof(why),
			    "directories lie more than %d deep in each other: name the lower ones",
			    DEPTH_MOST);
	doctor_note_failure(reading->look, "the rest of the logs", why, strlen(why));
}

/* A log of something else would be found healthy. A watched one may have to begin yet. */
static int check_lines(const struct doctor_case *look)
{
	if (look->log.nccl_lines > 0 || look->log.report_count > 0 || look->options->is_watch)
		return 0;
	return cli_error("%s%s: not one line is NCCL's; it writes them with NCCL_DEBUG=INFO",
			 look->options->logs[0],
			 look->options->log_count > 1 ? " and the other logs" : "");
}

int doctor_read_logs(struct doctor_case *look)
{
	struct reading reading = { .look = look };
	int code = 0;

	nccl_log_init(&look->log);
	look->has_log = true;
	/* One that is not there is as wrong as a wrong option: what was asked for is not looked at. */
	for (size_t i = 0; i < look->options->log_count; i++)
		code |= read_path(&reading, look->options->logs[i], 0);
	if (reading.is_over || reading.is_deep)
		tell_rest(&reading);
	return code == 0 ? check_lines(look) : code;
}
