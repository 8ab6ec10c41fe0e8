/* Is the process that wrote a recording alive? By identity: a pid alone is given again. */
#ifndef REGION_ALIVE_H
#define REGION_ALIVE_H

#include <stdint.h>

enum region_alive {
	REGION_ALIVE_UNKNOWN = 0, /* another machine, or a pid namespace we cannot look into */
	REGION_ALIVE_YES = 1,
	REGION_ALIVE_NO = 2, /* gone, a zombie, or its machine was started anew */
};

struct region_identity {
	const char *host;	/* "": unknown */
	const char *boot_id;	/* "": unknown */
	uint64_t pid;		/* as the process sees itself */
	uint64_t pid_namespace; /* inode, 0 unknown */
	uint64_t start_ticks;	/* 0 unknown */
};

/*
 * *pid_here (may be NULL) becomes the pid under which this machine's tools see it, when alive.
 * With an unknown namespace our own is assumed; with unknown start_ticks the answer is never YES.
 */
enum region_alive region_alive(const struct region_identity *identity, uint64_t *pid_here);

/* Of a process that was alive as pid_here when it was last asked for: the same, for the price of one
 * small file, in whatever namespace it is. *state becomes its state as region_process_state() says. */
enum region_alive region_alive_still(const struct region_identity *identity, uint64_t pid_here,
				     char *state);

/* How a process is: R, S, D, T (stopped), t (in a debugger) ... as in /proc/PID/stat; 0 unknown or gone. */
char region_process_state(uint64_t pid_here);

/* Of this machine and this process; "" and 0 where /proc does not tell. */
void region_boot_id(char boot_id[40]);
uint64_t region_own_pid_namespace(void);

#endif
