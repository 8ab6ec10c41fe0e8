#include "programs/cli/cli_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_pending.h"

bool cli_output_is_terminal(const char *path)
{
	return strcmp(path, "-") == 0 && isatty(STDOUT_FILENO);
}

static int cannot_write(const char *path, int error)
{
	return cli_error("cannot write %s: %s", path, strerror(error));
}

static void begin(struct cli_output *output, int fd, bool is_own_fd)
{
	output->fd = fd;
	output->is_own_fd = is_own_fd;
	sink_init_fd(&output->sink, fd);
}

static int open_failed(struct cli_output *output, int error)
{
	cannot_write(output->path, error);
	if (!output->is_in_tree)
		cli_pending_drop(output->pending, false);
	free(output->path);
	*output = (struct cli_output){ .fd = -1 };
	return CLI_EXIT_TROUBLE;
}

/* A device or a pipe: nothing to rename. */
static int open_directly(struct cli_output *output)
{
	int fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd == -1)
		return open_failed(output, errno);
	begin(output, fd, true);
	return 0;
}

/* What a link leads to takes its place in output->path. */
static int follow(struct cli_output *output)
{
	struct stat st;
	char *real;

	if (lstat(output->path, &st) == -1 || !S_ISLNK(st.st_mode))
		return 0;
	real = realpath(output->path, NULL);
	if (real == NULL)
		return open_failed(output, errno);
	free(output->path);
	output->path = real;
	return 0;
}

static int open_pending(struct cli_output *output, const struct stat *before)
{
	int fd = open(output->pending->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd == -1)
		return open_failed(output, errno);
	/* Who could read what was there can read what comes. Where that cannot be had, what the
	 * umask gave is good enough. */
	if (before != NULL && fchmod(fd, before->st_mode & 0777) == -1)
		errno = 0;
	begin(output, fd, true);
	return 0;
}

static int open_beside(struct cli_output *output, const struct stat *before)
{
	char *temporary = cli_pending_name(output->path);

	output->pending = cli_pending_add(temporary, false, NULL);
	free(temporary);
	return open_pending(output, before);
}

int cli_output_open(struct cli_output *output, const char *path)
{
	struct stat st;

	*output = (struct cli_output){ .path = cli_path_join("", 0, "", path), .fd = -1 };
	if (strcmp(path, "-") == 0) {
		begin(output, STDOUT_FILENO, false);
		return 0;
	}
	if (follow(output) != 0)
		return CLI_EXIT_TROUBLE;
	if (stat(output->path, &st) == -1)
		return errno == ENOENT ? open_beside(output, NULL) : open_failed(output, errno);
	if (S_ISDIR(st.st_mode))
		return open_failed(output, EISDIR);
	if (!S_ISREG(st.st_mode))
		return open_directly(output);
	if (access(output->path, W_OK) == -1)
		return open_failed(output, errno);
	return open_beside(output, &st);
}

int cli_tree_file(struct cli_tree *tree, struct cli_output *output, const char *name)
{
	char *temporary = cli_tree_path(tree, name);

	*output = (struct cli_output){ .fd = -1 };
	if (temporary == NULL)
		return CLI_EXIT_TROUBLE;
	free(temporary);
	output->path = cli_path_join(tree->path, (int)strlen(tree->path), "/", name);
	output->is_in_tree = true;
	/* It is the newest of all. */
	output->pending = cli_pending_first();
	return open_pending(output, NULL);
}

static void release(struct cli_output *output)
{
	sink_release(&output->sink);
	if (output->is_own_fd)
		close(output->fd);
	free(output->path);
	*output = (struct cli_output){ .fd = -1 };
}

/* 0 or an errno. Network file systems tell of a full disk when a file is closed. */
static int finish_writing(struct cli_output *output)
{
	if (sink_flush(&output->sink) != OK)
		return output->sink.error;
	output->is_own_fd = false;
	return close(output->fd) == -1 ? errno : 0;
}

int cli_output_commit(struct cli_output *output, int exit_code)
{
	bool is_moved = output->pending != NULL && !output->is_in_tree;
	int error;

	if (output->path == NULL)
		return CLI_EXIT_TROUBLE;
	if (output->fd == STDOUT_FILENO) {
		free(output->path);
		output->path = NULL;
		return cli_finish(&output->sink, exit_code);
	}
	error = finish_writing(output);
	if (error == 0 && is_moved && rename(output->pending->path, output->path) == -1)
		error = errno;
	if (error != 0)
		exit_code = cannot_write(output->path, error);
	if (is_moved)
		cli_pending_drop(output->pending, error != 0);
	release(output);
	return exit_code;
}

void cli_output_discard(struct cli_output *output)
{
	if (output->path == NULL)
		return;
	cli_pending_drop(output->pending, true);
	release(output);
}
