#include "timeline/windows_local.h"

#include <stdlib.h>
#include <string.h>

void windows_local_init(struct windows_local *local, uint32_t room)
{
	*local = (struct windows_local){ .room = room, .width_ns = WINDOWS_LOCAL_FIRST_NS };
}

void windows_local_release(struct windows_local *local)
{
	for (uint32_t i = 0; i < local->series_count; i++)
		free(local->stretches[i]);
	*local = (struct windows_local){ .room = 0 };
}

uint32_t windows_local_series(struct windows_local *local, uint16_t id)
{
	for (uint32_t i = 0; i < local->series_count; i++)
		if (local->series_id[i] == id)
			return i;
	if (local->series_count == WINDOWS_LOCAL_SERIES) {
		local->left_out++;
		return UINT32_MAX;
	}
	local->stretches[local->series_count] = calloc(local->room, sizeof(*local->stretches[0]));
	if (local->stretches[local->series_count] == NULL) {
		local->status = ERR_NO_SPACE;
		return UINT32_MAX;
	}
	local->series_id[local->series_count] = id;
	return local->series_count++;
}

static void add_stretch(struct windows_stretch *to, const struct windows_stretch *from)
{
	to->calls += from->calls;
	to->bytes += from->bytes;
	to->time_ns += from->time_ns;
	to->bus_bytes += from->bus_bytes;
}

void windows_local_add(struct windows_local *local, uint32_t series,
		       const struct windows_stretch *what)
{
	add_stretch(&local->stretches[series][local->current], what);
	if (local->current >= local->used)
		local->used = local->current + 1;
}

/* Two become one. */
static void halve(struct windows_local *local)
{
	for (uint32_t i = 0; i < local->series_count; i++) {
		struct windows_stretch *list = local->stretches[i];

		for (uint32_t j = 0; j < local->room / 2; j++) {
			struct windows_stretch both = list[2 * j];

			add_stretch(&both, &list[2 * j + 1]);
			list[j] = both;
		}
		memset(&list[local->room / 2], 0, (local->room - local->room / 2) * sizeof(*list));
	}
	local->width_ns *= 2;
	local->used = (local->used + 1) / 2;
}

void windows_local_move(struct windows_local *local, uint64_t end_ns)
{
	uint64_t index;

	if (local->current_end_ns == 0)
		local->origin_ns = end_ns;
	index = end_ns > local->origin_ns ? (end_ns - local->origin_ns) / local->width_ns : 0;
	while (index >= local->room) {
		halve(local);
		index = (end_ns - local->origin_ns) / local->width_ns;
	}
	local->current = (uint32_t)index;
	local->current_end_ns = local->origin_ns + (index + 1) * local->width_ns;
}

void windows_local_finish(struct windows_local *local)
{
	for (uint32_t i = 0; i < local->series_count; i++) {
		void *less = realloc(local->stretches[i], (local->used ? local->used : 1) *
								  sizeof(*local->stretches[0]));

		if (less != NULL)
			local->stretches[i] = less;
	}
	local->room = local->used;
}
