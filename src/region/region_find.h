/* Which regions are there on this machine? Looks, opens nothing for writing, follows no links. */
#ifndef REGION_FIND_H
#define REGION_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

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

#endif
