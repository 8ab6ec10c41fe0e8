/*
 * Writing can raise a signal that ends the job: SIGPIPE when stderr is a pipe that nobody reads any
 * more, SIGXFSZ when a file would pass the process's limit. Between these two the calling thread
 * holds such signals back; those that our own writing raised never arrive. In init and at exit only.
 */
#ifndef QUIET_H
#define QUIET_H

#include <signal.h>

struct quiet {
	sigset_t before;  /* the thread's mask */
	sigset_t pending; /* what waited before us is not ours to take away */
};

void quiet_begin(struct quiet *quiet);
void quiet_end(const struct quiet *quiet);

#endif
