#include "programs/cli/cli_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_nameless.h"
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

static int take_fd(struct cli_output *output, int fd, const struct stat *before)
{
	if (fd == -1)
		return open_failed(output, errno);
	/* Who could read what was there can read what comes. Where that cannot be had, what the
	 * umask gave is good enough. */
	if (before != NULL && fchmod(fd, before->st_mode & 0777) == -1)
		errno = 0;
	begin(output, fd, true);
	return 0;
}

static void add_pending(struct cli_output *output)
{
	char *temporary = cli_pending_name(output->path);

	output->pending = cli_pending_add(temporary, false, NULL);
	free(temporary);
}

static int open_beside(struct cli_output *output, const struct stat *before)
{
	int fd = cli_nameless_open(output->path);

	cli_pending_guard();
	output->is_nameless = fd != -1;
	if (fd == -1) {
		add_pending(output);
		fd = open(output->pending->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	}
	return take_fd(output, fd, before);
}

static int start(struct cli_output *output, const char *path, bool is_trial)
{
	struct stat st;
	bool is_there;

	*output = (struct cli_output){ .path = cli_path_join("", 0, "", path), .fd = -1 };
	if (strcmp(path, "-") == 0) {
		begin(output, STDOUT_FILENO, false);
		return 0;
	}
	is_there = stat(output->path, &st) == 0;
	if (!is_there && errno != ENOENT)
		return open_failed(output, errno);
	/* A pipe may have no other path than such a link: /dev/stdout, and >(command) of the shell. */
	if ((!is_there || S_ISREG(st.st_mode)) && follow(output) != 0)
		return CLI_EXIT_TROUBLE;
	if (!is_there)
		return open_beside(output, NULL);
	if (S_ISDIR(st.st_mode))
		return open_failed(output, EISDIR);
	if (access(output->path, W_OK) == -1)
		return open_failed(output, errno);
	if (S_ISREG(st.st_mode))
		return open_beside(output, &st);
	/* Whoever reads a pipe would take a trial for its end. */
	return is_trial ? 0 : open_directly(output);
}

int cli_output_open(struct cli_output *output, const char *path)
{
	return start(output, path, false);
}

int cli_output_check(const char *path)
{
	struct cli_output output;
	int exit_code = start(&output, path, true);

	cli_output_discard(&output);
	return exit_code;
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
	return take_fd(output,
		       open(output->pending->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666),
		       NULL);
}

static void release(struct cli_output *output)
{
	sink_release(&output->sink);
	if (output->is_own_fd)
		close(output->fd);
	free(output->path);
	*output = (struct cli_output){ .fd = -1 };
}

/* 0 or an errno. Network file systems tell of a full disk when a file is closed; a descriptor more can be
 * closed and the file still be given a name. What has its name is on the disk: a power cut leaves no half file. */
static int finish_writing(struct cli_output *output)
{
	int fd;

	if (sink_flush(&output->sink) != OK)
		return output->sink.error;
	fd = dup(output->fd);
	if (fd == -1 || close(fd) == -1)
		return errno;
	return output->is_nameless || output->pending ? cli_nameless_settle(output->fd) : 0;
}

/* 0 or an errno: the name that it has until it takes its place. */
static int give_name(struct cli_output *output, int why_not)
{
	int error;

	add_pending(output);
	if (why_not == EEXIST)
		why_not = cli_nameless_link(output->fd, output->pending->path);
	if (why_not == 0)
		return 0;
	error = cli_nameless_copy(output->fd, output->pending->path);
	if (error == 0)
		cli_error("note: %s is a copy, the file system gave the file itself no name: %s",
			  output->path, strerror(why_not));
	return error;
}

/* 0 or an errno. What is there already can be replaced by a name only, which a nameless one has for this moment. */
static int put_in_place(struct cli_output *output)
{
	int error;

	if (output->is_nameless) {
		error = cli_nameless_link(output->fd, output->path);
		if (error != 0)
			error = give_name(output, error);
		if (error != 0 || output->pending == NULL)
			return error;
	}
	return rename(output->pending->path, output->path) == -1 ? errno : 0;
}

int cli_output_commit(struct cli_output *output, int exit_code)
{
	bool is_moved = output->is_nameless || (output->pending && !output->is_in_tree);
	int error;

	if (output->path == NULL)
		return CLI_EXIT_TROUBLE;
	if (output->fd == STDOUT_FILENO) {
		free(output->path);
		output->path = NULL;
		return cli_finish(&output->sink, exit_code);
	}
	error = finish_writing(output);
	if (error == 0 && is_moved)
		error = put_in_place(output);
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
