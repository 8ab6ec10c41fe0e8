/*
 * Whoever cleans up when a process ends, however it ends: SIGKILL, too. A child that does nothing but wait for
 * that; signals of a terminal or a batch system do not end it before its time.
 */
#ifndef BENCH_KEEPER_H
#define BENCH_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

struct bench_keeper {
	pid_t pid; /* 0: there is none */
	int fd;	   /* closed by our end, whatever it is */
};

typedef void (*bench_keeper_fn)(const void *context);

/* clean(context as it is now) is called in the child when this process is over, and all that it forks from now on (not
 * those that execute something else). False: no child could be made. */
bool bench_keeper_start(struct bench_keeper *keeper, bench_keeper_fn clean, const void *context);
/* Now, and wait for it. False: there is none, so nothing was cleaned. */
bool bench_keeper_end(struct bench_keeper *keeper);

/* A directory and all below it, quietly: what cannot be removed stays. "": nothing. */
void bench_remove_tree(const char *path);

#endif
