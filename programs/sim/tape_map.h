/*
 * From the ids of a recording to what the plugin gives for them. Room for all is made at the start;
 * an id that comes again takes the place of the old one. Nothing in a tape gives id 0.
 */
#ifndef TAPE_MAP_H
#define TAPE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct tape_id {
	uint64_t recorded;
	void *given;
	uint64_t type;	 /* of the event */
	bool is_unasked; /* never started: the plugin does not want it */
};

struct tape_map {
	struct tape_id *ids;
	size_t room; /* a power of two, more than twice what is kept */
};

enum status tape_map_init(struct tape_map *map, size_t count);
void tape_map_release(struct tape_map *map);
/* NULL: not there. */
struct tape_id *tape_map_find(const struct tape_map *map, uint64_t recorded);
/* There, as new. */
struct tape_id *tape_map_put(struct tape_map *map, uint64_t recorded);

#endif
