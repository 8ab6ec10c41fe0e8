#include "programs/sim/sim_links.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

enum { ROOM_LEAST = 16, STATES = 3 };

static struct region_link *place_of(const struct sim_links *links, uint64_t key)
{
	uint32_t mask = links->room - 1, at = (uint32_t)hash_word(key, key) & mask;

	while (links->slots[at].key != 0 && links->slots[at].key != key)
		at = (at + 1) & mask;
	return &links->slots[at];
}

static bool grow(struct sim_links *links)
{
	struct sim_links more = { .room = links->room ? links->room * 2 : ROOM_LEAST,
				  .count = links->count };

	if (links->slots != NULL && links->count < links->room / 2)
		return true;
	more.slots = calloc(more.room, sizeof(*more.slots));
	if (more.slots == NULL)
		return false;
	for (uint32_t i = 0; i < links->room; i++)
		if (links->slots[i].key != 0)
			*place_of(&more, links->slots[i].key) = links->slots[i];
	free(links->slots);
	*links = more;
	return true;
}

enum status sim_links_add(struct sim_links *links, uint32_t comm_id,
			  const struct sim_outcome *outcome)
{
	for (int i = 0; i < outcome->edge_count; i++) {
		const struct sim_edge *edge = &outcome->edges[i];
		struct region_link *link;

		if (edge->stop_ns == 0)
			continue;
		if (!grow(links))
			return ERR_NO_SPACE;
		link = place_of(links, REGION_LINK_KEY(comm_id, !edge->is_send, edge->peer));
		links->count += link->key == 0;
		link->key = REGION_LINK_KEY(comm_id, !edge->is_send, edge->peer);
		link->proxies++;
		link->steps += edge->done;
		link->bytes += edge->bytes;
		for (int state = 0; state < STATES; state++)
			link->wait_ns[state] += edge->wait_ns[state];
	}
	return OK;
}

enum status sim_links_write(const struct sim_links *links, struct trace_writer *writer)
{
	struct region_link *list;
	enum status status;
	uint32_t count = 1; /* "other", in which nothing is */

	if (links->count == 0)
		return OK;
	list = calloc((size_t)links->count + 1, sizeof(*list));
	if (list == NULL)
		return ERR_NO_SPACE;
	for (uint32_t i = 0; i < links->room; i++)
		if (links->slots[i].key != 0)
			list[count++] = links->slots[i];
	if (count > TRACE_LINKS_MAX)
		count = TRACE_LINKS_MAX;
	status = trace_write_records(writer, TRACE_LINKS, list, sizeof(*list), count);
	free(list);
	return status;
}

void sim_links_release(struct sim_links *links)
{
	free(links->slots);
	*links = (struct sim_links){ .slots = NULL };
}
