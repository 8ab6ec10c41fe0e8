/*
 * Finds the regions on this host and which of their processes are alive. Opens nothing for writing
 * and follows no symbolic links.
 */
#ifndef REGION_FIND_H
#define REGION_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct region_place {
	char *path;	 /* a file, or /proc/PID/fd/N */
	uint64_t device; /* with inode: a region with two names is listed once */
	uint64_t inode;
	uint64_t holder; /* memfd: a process that has it open; 0: a file */
};

struct region_places {
	struct region_place *list; /* sorted by path */
	size_t count;
	size_t unreadable; /* directories and files we may not read */
	size_t foreign;	   /* files in a recorder's directory that are not regions */
};

/* The default directory of regions. */
#define REGION_FIND_DIRECTORY "/dev/shm"

/*
 * Regions in files: directory/ringside-* /x and directory/x.region (NULL: REGION_FIND_DIRECTORY),
 * and memfds named "ringside" of processes we may inspect. A missing directory is not an error.
 * ERR_SYSTEM (errno), ERR_NO_SPACE (memory). Release in every case.
 */
enum status region_find(struct region_places *places, const char *directory);
/*
 * The same without memfds, which are expensive to find: it takes all descriptors of all processes.
 */
enum status region_find_files(struct region_places *places, const char *directory);
void region_find_release(struct region_places *places);

/* Is the process that wrote a recording alive? Checks its identity, because pids are reused. */
enum region_alive {
	REGION_ALIVE_UNKNOWN = 0, /* another host, or a pid namespace we cannot inspect */
	REGION_ALIVE_YES = 1,
	REGION_ALIVE_NO = 2, /* gone, a zombie, or its host was rebooted */
};

struct region_identity {
	const char *host;	/* "": unknown */
	const char *boot_id;	/* "": unknown */
	uint64_t pid;		/* in its own namespace */
	uint64_t pid_namespace; /* inode; 0: unknown */
	uint64_t start_ticks;	/* 0: unknown */
};

/*
 * If it is alive, *pid_here (may be NULL) is set to its pid in our namespace. An unknown namespace
 * is assumed to be ours; with unknown start_ticks the result is never YES.
 */
enum region_alive region_alive(const struct region_identity *identity, uint64_t *pid_here);

/*
 * For a process that was alive as pid_here at the last check: the same at the cost of one small
 * file, in any namespace. *state is set as by region_process_state().
 */
enum region_alive region_alive_still(const struct region_identity *identity, uint64_t pid_here,
				     char *state);

/*
 * State of a process: R, S, D, T (stopped), t (traced) ... as in /proc/PID/stat; 0: unknown or
 * gone.
 */
char region_process_state(uint64_t pid_here);

/* Of this host; "" if /proc does not provide it. */
void region_boot_id(char boot_id[40]);

#endif
