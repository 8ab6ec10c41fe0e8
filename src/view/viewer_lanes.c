#include "view/viewer_lanes.h"

#include <stdlib.h>

#include "common/hash.h"

enum { FIRST_SLOTS = 64, SEED = 1 };

void viewer_lanes_init(struct viewer_lanes *lanes)
{
	*lanes = (struct viewer_lanes){ .groups = NULL };
}

void viewer_lanes_release(struct viewer_lanes *lanes)
{
	for (size_t i = 0; i < lanes->count; i++) {
		free(lanes->groups[i]->lanes);
		free(lanes->groups[i]);
	}
	free(lanes->groups);
	free(lanes->slots);
	viewer_lanes_init(lanes);
}

uint32_t viewer_lanes_track(struct viewer_lanes *lanes)
{
	return ++lanes->tracks;
}

/* The slot that has the key, or the free one where it would be. */
static uint32_t *slot_of(const struct viewer_lanes *lanes, uint64_t key)
{
	size_t mask = lanes->slot_count - 1;
	size_t at = (size_t)hash_word(SEED, key) & mask;

	while (lanes->slots[at] != 0 && lanes->groups[lanes->slots[at] - 1]->key != key)
		at = (at + 1) & mask;
	return &lanes->slots[at];
}

static bool grow_slots(struct viewer_lanes *lanes)
{
	size_t count = lanes->slot_count ? lanes->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (slots == NULL)
		return false;
	free(lanes->slots);
	lanes->slots = slots;
	lanes->slot_count = count;
	for (size_t i = 0; i < lanes->count; i++)
		*slot_of(lanes, lanes->groups[i]->key) = (uint32_t)i + 1;
	return true;
}

static struct viewer_group *add_group(struct viewer_lanes *lanes, uint64_t key)
{
	struct viewer_group *group;

	if (lanes->count * 2 >= lanes->slot_count && !grow_slots(lanes))
		return NULL;
	if (lanes->count == lanes->room) {
		size_t room = lanes->room ? lanes->room * 2 : FIRST_SLOTS;
		struct viewer_group **groups =
			realloc(lanes->groups, room * sizeof(struct viewer_group *));

		if (groups == NULL)
			return NULL;
		lanes->groups = groups;
		lanes->room = room;
	}
	group = calloc(1, sizeof(*group));
	if (group == NULL)
		return NULL;
	group->key = key;
	*slot_of(lanes, key) = (uint32_t)lanes->count + 1;
	lanes->groups[lanes->count++] = group;
	return group;
}

struct viewer_group *viewer_lanes_group(struct viewer_lanes *lanes, uint64_t key, bool *is_new)
{
	struct viewer_group *group;

	*is_new = false;
	if (lanes->slot_count > 0) {
		uint32_t found = *slot_of(lanes, key);

		if (found != 0)
			return lanes->groups[found - 1];
	}
	if (lanes->count == VIEWER_GROUPS_MAX)
		return NULL;
	group = add_group(lanes, key);
	*is_new = group != NULL;
	if (group == NULL)
		lanes->status = ERR_NO_SPACE;
	return group;
}

static struct viewer_lane *add_lane(struct viewer_lanes *lanes, struct viewer_group *group)
{
	struct viewer_lane *list;

	if (group->count == VIEWER_LANES_MAX)
		return NULL;
	/* One more each time: few groups ever need more than two. */
	list = realloc(group->lanes, (group->count + 1) * sizeof(*list));
	if (list == NULL) {
		lanes->status = ERR_NO_SPACE;
		return NULL;
	}
	group->lanes = list;
	list[group->count] = (struct viewer_lane){ .track = viewer_lanes_track(lanes) };
	return &list[group->count++];
}

/* What has no end may stand inside another one without end that began before it. */
static bool has_room(const struct viewer_lane *lane, uint64_t start_ns, bool is_open)
{
	if (lane->end_ns != UINT64_MAX)
		return start_ns + VIEWER_SLIDE_NS > lane->end_ns;
	return is_open && lane->open < VIEWER_LANE_STACK && start_ns >= lane->open_ns;
}

const struct viewer_lane *viewer_lanes_take(struct viewer_lanes *lanes, struct viewer_group *group,
					    uint64_t *start_ns, uint64_t *end_ns, bool *is_new)
{
	bool is_open = *end_ns == UINT64_MAX;
	struct viewer_lane *lane = NULL;

	*is_new = false;
	for (size_t i = 0; i < group->count && lane == NULL; i++)
		if (has_room(&group->lanes[i], *start_ns, is_open))
			lane = &group->lanes[i];
	if (lane == NULL) {
		lane = add_lane(lanes, group);
		if (lane == NULL)
			return NULL;
		*is_new = true;
	}
	/* Not even touching: readers add begin and duration as doubles, and get a little more. */
	if (!*is_new && lane->end_ns != UINT64_MAX && lane->end_ns >= *start_ns) {
		if (!is_open)
			*end_ns += lane->end_ns + 1 - *start_ns;
		*start_ns = lane->end_ns + 1;
	}
	lane->end_ns = *end_ns;
	if (is_open) {
		lane->open++;
		lane->open_ns = *start_ns;
	}
	return lane;
}
