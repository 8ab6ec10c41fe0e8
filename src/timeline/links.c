#include "timeline/links.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/hash.h"

static size_t place_of(const struct links *links, uint32_t comm, uint32_t from, int32_t to)
{
	size_t mask = links->room * 2 - 1;
	size_t place = (size_t)hash_word(hash_word(3, (uint64_t)comm << 32 | from), (uint32_t)to);

	for (place &= mask; links->table[place] != 0; place = (place + 1) & mask) {
		const struct link *link = &links->list[links->table[place] - 1];

		if (link->comm == comm && link->from == from && link->to == to)
			break;
	}
	return place;
}

static bool grow(struct links *links)
{
	size_t room = links->room ? links->room * 2 : 64;
	struct link *list = realloc(links->list, room * sizeof(*list));
	uint32_t *table = calloc(room * 2, sizeof(*table));

	if (list != NULL)
		links->list = list;
	if (list == NULL || table == NULL) {
		free(table);
		links->status = ERR_NO_SPACE;
		return false;
	}
	free(links->table);
	links->table = table;
	links->room = room;
	for (size_t i = 0; i < links->count; i++)
		table[place_of(links, list[i].comm, list[i].from, list[i].to)] = (uint32_t)i + 1;
	return true;
}

struct link *links_get(struct links *links, uint32_t comm, uint32_t from, int32_t to)
{
	size_t place;

	if (links->room > 0) {
		place = place_of(links, comm, from, to);
		if (links->table[place] != 0)
			return &links->list[links->table[place] - 1];
	}
	if (links->count == LINKS_MAX) {
		links->left_out++;
		return NULL;
	}
	if (links->count == links->room && !grow(links))
		return NULL;
	links->list[links->count] = (struct link){ .comm = comm, .from = from, .to = to };
	links->table[place_of(links, comm, from, to)] = (uint32_t)links->count + 1;
	return &links->list[links->count++];
}

void links_release(struct links *links)
{
	free(links->list);
	free(links->table);
	*links = (struct links){ .list = NULL };
}
