/* Where the trace file goes. */
#ifndef TRACE_PLACE_H
#define TRACE_PLACE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"
#include "capture/identity.h"
#include "capture/settings.h"

struct trace_place {
	char dir[700];
	char name[400]; /* of the file, without its ending */
	gid_t group;	/* may read, too; (gid_t)-1: none */
};

/* In RINGSIDE_DIR, by its text alone: no file system is asked. ERR_FORMAT: the setting is no usable path. */
enum status trace_place_choose(struct trace_place *place, const struct settings *settings,
			       const struct identity *identity);

/* The file's path; with another `attempt` than 0 another one, for when that name is taken: a program that replaced
 * itself (exec) has still the same pid and start. */
void trace_place_path(char *path, size_t size, const struct trace_place *place, int attempt);

/* mkdir -p. Whether it went well shows when the file is made. May wait for the disk: in a thread of our own only. */
void trace_place_make(const struct trace_place *place);

/* Make a path absolute where it fits: readers may stand elsewhere. */
void trace_place_absolute(char *path, size_t size);

#endif
