#include "programs/cli/profilers_work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/cli/cli_errors.h"

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

/* Waits until the other end is closed by the end of this process and of all its ranks. */
static void sweep(struct profilers_work *work, int fd)
{
	char byte;

	setsid();
	while (read(fd, &byte, 1) == -1 && errno == EINTR)
		;
	profilers_remove_tree(work->memory);
	if (!work->is_kept)
		profilers_remove_tree(work->disk);
	_exit(0);
}

static void sweeper_start(struct profilers_work *work)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return;
	work->sweeper = fork();
	if (work->sweeper == 0) {
		close(fds[1]);
		/* Whoever reads our output waits for its end. */
		close(STDOUT_FILENO);
		for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
			signal(signals[i], SIG_IGN);
		sweep(work, fds[0]);
	}
	close(fds[0]);
	work->sweeper_fd = fds[1];
	if (work->sweeper == -1) {
		work->sweeper = 0;
		close(fds[1]);
	}
}

int profilers_work_open(struct profilers_work *work, const char *keep)
{
	const char *parent = getenv("TMPDIR");
	int failed;

	memset(work, 0, sizeof(*work));
	work->sweeper_fd = -1;
	work->is_kept = keep != NULL;
	parent = parent && parent[0] == '/' ? parent : "/tmp";
	failed = keep ? keep_open(work, keep) : temporary(work->disk, sizeof(work->disk), parent);
	if (failed)
		return failed;
	failed = temporary(work->memory, sizeof(work->memory),
			   access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : parent);
	if (failed && !keep)
		profilers_remove_tree(work->disk);
	if (!failed)
		sweeper_start(work);
	return failed;
}

void profilers_work_close(struct profilers_work *work)
{
	if (work->sweeper) {
		close(work->sweeper_fd);
		while (waitpid(work->sweeper, NULL, 0) == -1 && errno == EINTR)
			;
		work->sweeper = 0;
		return;
	}
	profilers_remove_tree(work->memory);
	if (!work->is_kept)
		profilers_remove_tree(work->disk);
}

int profilers_work_make(const char *parent, const char *name, char *path, size_t size)
{
	if (!text_format(path, size, "%s/%s", parent, name))
		return cli_error("the path '%s/%s' is too long", parent, name);
	if (mkdir(path, 0755) == -1 && errno != EEXIST)
		return cli_error("cannot make '%s': %s", path, strerror(errno));
	return 0;
}
