#include "programs/bench/bench_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"

static void keep(bench_keeper_fn clean, const void *context, int fd)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	char byte;

	setsid();
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++)
		signal(signals[i], SIG_IGN);
	/* Whoever reads our output waits for its end. */
	for (int standard = STDIN_FILENO; standard <= STDERR_FILENO && nothing != -1; standard++)
		dup2(nothing, standard);
	while (read(fd, &byte, 1) == -1 && errno == EINTR)
		;
	clean(context);
	_exit(0);
}

bool bench_keeper_start(struct bench_keeper *keeper, bench_keeper_fn clean, const void *context)
{
	int ends[2];

	keeper->pid = 0;
	if (pipe2(ends, O_CLOEXEC) == -1)
		return false;
	keeper->pid = fork();
	if (keeper->pid == 0) {
		close(ends[1]);
		keep(clean, context, ends[0]);
	}
	close(ends[0]);
	keeper->fd = ends[1];
	if (keeper->pid > 0)
		return true;
	close(ends[1]);
	keeper->pid = 0;
	return false;
}

bool bench_keeper_end(struct bench_keeper *keeper)
{
	if (keeper->pid == 0)
		return false;
	close(keeper->fd);
	while (waitpid(keeper->pid, NULL, 0) == -1 && errno == EINTR)
		;
	keeper->pid = 0;
	return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	(void)remove(path);
	return 0;
}

void bench_remove_tree(const char *path)
{
	if (path[0] != '\0')
		(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
