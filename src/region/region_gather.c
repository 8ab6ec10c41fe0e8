/* Most slots are free: of those in use a copy is made that has no gaps, and knows where each was. */
#include <stdlib.h>
#include <string.h>

#include "region/region_slots.h"

struct gather {
	struct region_copy all; /* what was in use so far */
	uint32_t room;
	struct region_copy chunk;
	struct region_scratch scratch;
};

static bool gather_grow(struct gather *gather)
{
	uint32_t room = gather->room == 0 ? 64 : gather->room * 2;
	unsigned char *bytes;
	uint32_t *slots;

	if (gather->all.count < gather->room)
		return true;
	bytes = reallocarray(gather->all.bytes, room, gather->all.stride);
	if (bytes != NULL)
		gather->all.bytes = bytes;
	slots = reallocarray(gather->all.slots, room, sizeof(*slots));
	if (slots != NULL)
		gather->all.slots = slots;
	if (bytes == NULL || slots == NULL)
		return false;
	gather->room = room;
	return true;
}

/* Take over the slots of a chunk that are in use and held still. */
static enum status gather_chunk(struct gather *gather, unsigned int part)
{
	const struct region_copy *chunk = &gather->chunk;
	struct region_copy *all = &gather->all;

	for (uint32_t i = 0; i < chunk->count; i++) {
		const unsigned char *slot = region_copy_slot(chunk, i);

		if (slot == NULL ||
		    !region_slot_has_owner(part, chunk->first + i, region_slot_word(slot)))
			continue;
		if (!gather_grow(gather))
			return ERR_NO_SPACE;
		memcpy(all->bytes + (size_t)all->count * all->stride, slot, all->stride);
		all->slots[all->count++] = chunk->first + i;
	}
	return OK;
}

static enum status gather_all(const struct region *region, unsigned int part, uint32_t count,
			      struct gather *gather)
{
	uint32_t per_chunk = REGION_CHUNK_BYTES / gather->all.stride;
	struct region_copy *chunk = &gather->chunk;
	enum status status = OK;

	for (uint32_t at = 0; at < count && status == OK; at += per_chunk) {
		chunk->first = at;
		chunk->count = count - at < per_chunk ? count - at : per_chunk;
		/* Who passes by comes by again at the next look. */
		status = region_slots_copy(
			region, part, chunk,
			(struct region_piece){ .count = chunk->count, .is_brief = true },
			&gather->scratch);
		if (status == OK)
			status = gather_chunk(gather, part);
	}
	/* All that is there held still. */
	gather->all.is_stable = malloc((gather->all.count / 64 + 1) * sizeof(uint64_t));
	if (gather->all.is_stable == NULL)
		return ERR_NO_SPACE;
	memset(gather->all.is_stable, 0xff, (gather->all.count / 64 + 1) * sizeof(uint64_t));
	return status;
}

enum status region_gather(const struct region *region, unsigned int part, uint32_t count,
			  struct region_copy *to)
{
	struct gather *gather = malloc(sizeof(*gather));
	enum status status = ERR_NO_SPACE;

	if (gather == NULL)
		return status;
	/* The scratch is large and needs no beginning. */
	gather->room = 0;
	gather->all = gather->chunk = (struct region_copy){ 0 };
	gather->all.stride = gather->chunk.stride = region->header.parts[part].stride;
	gather->chunk.bytes = malloc(REGION_CHUNK_BYTES);
	gather->chunk.is_stable =
		calloc(REGION_CHUNK_BYTES / sizeof(uint64_t) / 64 + 1, sizeof(uint64_t));
	if (gather->chunk.bytes != NULL && gather->chunk.is_stable != NULL && count > 0)
		status = gather_all(region, part, count, gather);
	else if (count == 0)
		status = OK;
	region_copy_release(&gather->chunk);
	if (status == OK)
		*to = gather->all;
	else
		region_copy_release(&gather->all);
	free(gather);
	return status;
}
