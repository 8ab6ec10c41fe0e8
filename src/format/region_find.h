/*
 * Which regions are there on this machine, and who of their processes is alive? Looks, opens nothing for writing,
 * follows no links.
 */
#ifndef REGION_FIND_H
#define REGION_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct region_place {
	char *path;	 /* a file, or /proc/PID/fd/N */
	uint64_t device; /* with inode: the same region under two names is listed once */
	uint64_t inode;
	uint64_t holder; /* memfd: a process that has it open; 0: a file */
};

struct region_places {
	struct region_place *list; /* sorted by path */
	size_t count;
	size_t unreadable; /* directories and files we may not read */
	size_t foreign;	   /* files in a recorder's directory that are no regions */
};

/* Where regions are when nothing was said. */
#define REGION_FIND_DIRECTORY "/dev/shm"

/*
 * Regions in files: directory/ringside-* /x and directory/x.region (NULL: REGION_FIND_DIRECTORY),
 * and memfds named "ringside" of processes that we may look into. A directory that does not exist
 * is no error: nothing is there. ERR_SYSTEM (errno), ERR_NO_SPACE (memory). Release in every case.
 */
enum status region_find(struct region_places *places, const char *directory);
/* The same without memfds: to find those, all descriptors of all processes are gone through. */
enum status region_find_files(struct region_places *places, const char *directory);
void region_find_release(struct region_places *places);

/* Is the process that wrote a recording alive? By identity: a pid alone is given again. */
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

/* Of this machine; "" where /proc does not tell. */
void region_boot_id(char boot_id[40]);

#endif
