#include "programs/cli/profilers_work.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "common/text.h"

static bool is_empty(const char *path)
{
	DIR *list = opendir(path);
	struct dirent *entry;
	bool is_any = false;

	while (list && !is_any && (entry = readdir(list)) != NULL)
		is_any = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	if (list)
		closedir(list);
	return list && !is_any;
}

static int keep_open(struct profilers_work *work, const char *keep)
{
	char whole[4096];

	if (mkdir(keep, 0777) == -1 && errno != EEXIST)
		return cli_error("cannot make '%s': %s", keep, strerror(errno));
	if (!is_empty(keep))
		return cli_error("'%s' is no empty directory; --keep wants a new one", keep);
	/* Jobs have working directories of their own. */
	if (realpath(keep, whole) == NULL || !text_copy(work->disk, sizeof(work->disk), whole))
		return cli_error("cannot use '%s': %s", keep, strerror(errno));
	return 0;
}

static int temporary(char *path, size_t size, const char *parent)
{
	if (!text_format(path, size, "%s/ringside-profilers-XXXXXX", parent) ||
	    mkdtemp(path) == NULL)
		return cli_error("cannot make a directory in '%s': %s", parent, strerror(errno));
	return 0;
}

static void sweep(const void *context)
{
	const struct profilers_work *work = context;

	bench_remove_tree(work->memory);
	if (!work->is_kept)
		bench_remove_tree(work->disk);
}

int profilers_work_open(struct profilers_work *work, const char *keep)
{
	const char *parent = getenv("TMPDIR");
	int failed;

	memset(work, 0, sizeof(*work));
	work->is_kept = keep != NULL;
	parent = parent && parent[0] == '/' ? parent : "/tmp";
	failed = keep ? keep_open(work, keep) : temporary(work->disk, sizeof(work->disk), parent);
	if (failed)
		return failed;
	failed = temporary(work->memory, sizeof(work->memory),
			   access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : parent);
	if (failed && !keep)
		bench_remove_tree(work->disk);
	/* Without a keeper it is cleaned at an end of the usual kind. */
	if (!failed)
		(void)bench_keeper_start(&work->keeper, sweep, work);
	return failed;
}

void profilers_work_close(struct profilers_work *work)
{
	if (!bench_keeper_end(&work->keeper))
		sweep(work);
}

int profilers_work_make(const char *parent, const char *name, char *path, size_t size)
{
	if (!text_format(path, size, "%s/%s", parent, name))
		return cli_error("the path '%s/%s' is too long", parent, name);
	if (mkdir(path, 0755) == -1 && errno != EEXIST)
		return cli_error("cannot make '%s': %s", path, strerror(errno));
	return 0;
}
