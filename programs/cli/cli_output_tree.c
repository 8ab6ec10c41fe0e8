/* Directories of files: see cli_output.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_output.h"
#include "programs/cli/cli_pending.h"

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* -1 with errno when it is not there, no directory or not to be read. */
static int is_empty(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int empty = 1;

	if (directory == NULL)
		return -1;
	while (empty && (entry = readdir(directory)) != NULL)
		empty = is_dots(entry->d_name);
	closedir(directory);
	return empty;
}

static void release(struct cli_tree *tree)
{
	free(tree->path);
	free(tree->temporary);
	*tree = (struct cli_tree){ 0 };
}

static int give_up(struct cli_tree *tree, int error)
{
	cli_error("cannot write %s: %s", tree->path, strerror(error));
	cli_tree_discard(tree);
	return CLI_EXIT_TROUBLE;
}

/* All directories above `path` that are not there yet. */
static int make_parents(const char *path)
{
	char *copy = cli_path_join("", 0, "", path);
	int failed = 0;

	for (char *at = strchr(copy + 1, '/'); at != NULL && !failed; at = strchr(at + 1, '/')) {
		*at = '\0';
		failed = mkdir(copy, 0777) == -1 && errno != EEXIST;
		*at = '/';
	}
	free(copy);
	return failed ? -1 : 0;
}

/* Beside the directory, or in it when it stays: where rename() stays within the file system. */
static char *temporary_of(const struct cli_tree *tree)
{
	char *inside, *name;

	if (!tree->is_merged)
		return cli_pending_name(tree->path);
	inside = cli_path_join(tree->path, (int)strlen(tree->path), "/", "");
	name = cli_pending_name(inside);
	free(inside);
	return name;
}

int cli_tree_open(struct cli_tree *tree, const char *path, unsigned int flags)
{
	size_t length = strlen(path);
	int empty;

	while (length > 1 && path[length - 1] == '/')
		length--;
	*tree = (struct cli_tree){ .path = cli_path_join(path, (int)length, "", "") };
	empty = is_empty(tree->path);
	if (empty == -1 && errno != ENOENT)
		return give_up(tree, errno);
	if (empty == 0 && !(flags & CLI_OUTPUT_FORCE)) {
		cli_error("%s is not empty: choose another directory, or add --force", tree->path);
		release(tree);
		return CLI_EXIT_TROUBLE;
	}
	tree->is_merged = empty == 0;
	tree->temporary = temporary_of(tree);
	if (make_parents(tree->temporary) == -1)
		return give_up(tree, errno);
	tree->pending = cli_pending_add(tree->temporary, true, NULL);
	if (mkdir(tree->temporary, 0777) == -1)
		return give_up(tree, errno);
	return 0;
}

char *cli_tree_path(struct cli_tree *tree, const char *name)
{
	size_t root = strlen(tree->temporary);
	char *path = cli_path_join(tree->temporary, (int)root, "/", name);

	for (char *at = strchr(path + root + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
		*at = '\0';
		/* What is there was made by an earlier call: nobody else knows this directory. */
		if (access(path, F_OK) == -1) {
			cli_pending_add(path, true, tree->pending);
			if (mkdir(path, 0777) == -1) {
				cli_error("cannot make the directory %s%s: %s", tree->path,
					  path + root, strerror(errno));
				free(path);
				return NULL;
			}
		}
		*at = '/';
	}
	cli_pending_add(path, false, tree->pending);
	return path;
}

/* Where it will be. The caller frees it. */
static char *place_of(const struct cli_tree *tree, const struct cli_pending *pending)
{
	return cli_path_join(tree->path, (int)strlen(tree->path), "",
			     pending->path + strlen(tree->temporary));
}

/* Into the directory that was there. Directories are made as they are needed. */
static int move_file(const struct cli_tree *tree, const struct cli_pending *pending)
{
	char *place = place_of(tree, pending);
	int failed = make_parents(place) == -1 || rename(pending->path, place) == -1;
	int error = errno;

	free(place);
	return failed ? error : 0;
}

static bool is_moved(const struct cli_tree *tree, const char *path)
{
	for (const struct cli_pending *at = cli_pending_first(); at != NULL; at = at->next) {
		size_t root = strlen(tree->temporary);

		if (at->tree == tree->pending && !at->is_directory &&
		    strcmp(at->path + root, path + strlen(tree->path)) == 0)
			return true;
	}
	return false;
}

/* What an earlier run left in a directory that has new files now. */
static void remove_replaced(const struct cli_tree *tree, const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		char *file;

		if (strncmp(entry->d_name, tree->replaces, strlen(tree->replaces)) != 0)
			continue;
		file = cli_path_join(path, (int)strlen(path), "/", entry->d_name);
		if (!is_moved(tree, file))
			unlink(file);
		free(file);
	}
	if (directory != NULL)
		closedir(directory);
}

static int merge(const struct cli_tree *tree)
{
	const struct cli_pending *at;
	int error = 0;

	for (at = cli_pending_first(); at != NULL && error == 0; at = at->next)
		if (at->tree == tree->pending && !at->is_directory)
			error = move_file(tree, at);
	if (error != 0 || tree->replaces == NULL)
		return error;
	for (at = cli_pending_first(); at != NULL; at = at->next) {
		char *place;

		if (at->tree != tree->pending || !at->is_directory)
			continue;
		place = place_of(tree, at);
		remove_replaced(tree, place);
		free(place);
	}
	return 0;
}

int cli_tree_commit(struct cli_tree *tree, int exit_code)
{
	int error = 0;

	if (tree->path == NULL)
		return CLI_EXIT_TROUBLE;
	if (tree->is_merged)
		error = merge(tree);
	else if (rename(tree->temporary, tree->path) == -1)
		error = errno;
	if (error != 0)
		return give_up(tree, error);
	/* Merged: the files are gone from the temporary directories, which go now. */
	cli_pending_drop(tree->pending, tree->is_merged);
	release(tree);
	return exit_code;
}

void cli_tree_discard(struct cli_tree *tree)
{
	if (tree->path == NULL)
		return;
	cli_pending_drop(tree->pending, true);
	release(tree);
}
