/*
 * Tracks of a process whose slices do not overlap.
 *
 * What belongs together (the operations of a communicator, the transfers of a channel) is a group. A
 * group has one lane, and gets another one whenever a slice finds all of its lanes taken:
 *
 *	group  world   lane 1   [AllGather][AllGather]   [ReduceScatter]
 *	               lane 2        [Send]                   [Send]
 *
 * Given in the order of their begins, slices take as few lanes as there can be. In any other order
 * they still never overlap.
 */
#ifndef VIEWER_LANES_H
#define VIEWER_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum {
	VIEWER_LANES_MAX = 4096, /* of a group: no recorder follows more at a time */
	VIEWER_GROUPS_MAX = 65536,
	VIEWER_LANE_STACK = 32, /* slices without end inside each other */
	/* A slice may move by so much to stand behind its forerunner: clocks are not better. */
	VIEWER_SLIDE_NS = 1000,
};

struct viewer_lane {
	uint64_t end_ns;  /* UINT64_MAX: has slices without end */
	uint64_t open_ns; /* begin of the last one of these */
	uint32_t track;
	uint32_t open;
};

struct viewer_group {
	uint64_t key;
	uint32_t above; /* track of the group it belongs to, 0 none */
	int32_t order;
	char name[160];
	struct viewer_lane *lanes;
	size_t count;
};

struct viewer_lanes {
	struct viewer_group **groups;
	size_t count;
	size_t room;
	uint32_t *slots; /* hash table of indices + 1 */
	size_t slot_count;
	uint32_t tracks; /* given so far */
	enum status status;
};

void viewer_lanes_init(struct viewer_lanes *lanes);
void viewer_lanes_release(struct viewer_lanes *lanes);

/* The group of that key; made, and *is_new, when there is none. NULL: no memory, or too many. */
struct viewer_group *viewer_lanes_group(struct viewer_lanes *lanes, uint64_t key, bool *is_new);

/*
 * A lane for a slice; end_ns UINT64_MAX: without end. *start_ns and *end_ns may be moved by up to
 * VIEWER_SLIDE_NS. *is_new: its track has to be made known. NULL: no memory, or too many.
 */
const struct viewer_lane *viewer_lanes_take(struct viewer_lanes *lanes, struct viewer_group *group,
					    uint64_t *start_ns, uint64_t *end_ns, bool *is_new);

/* A number for a track that has no lanes. */
uint32_t viewer_lanes_track(struct viewer_lanes *lanes);

#endif
