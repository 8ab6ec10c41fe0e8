/*
 * Sequence s lies in slot (s - 1) % slots, so the slots from the oldest on are the records by
 * sequence. They are copied PIECE slots at a time; a piece ends where the ring wraps.
 */
#include "region/region_ring.h"

#include <string.h>

#include "op/op_check.h"

enum { PIECE = 2048 };

static uint64_t head_of(const struct region_header *header, enum region_part_index part)
{
	return part == REGION_RING ? header->ring_head : header->details_head;
}

enum status region_ring_open(struct region_ring *ring, const struct region *region,
			     enum region_part_index part, uint64_t after)
{
	uint64_t slots = region->header.parts[part].count;
	struct region_header now;
	enum status status;
	uint64_t oldest;

	memset(ring, 0, sizeof(*ring));
	ring->region = region;
	ring->part = part;
	status = region_pread(region, &now, sizeof(now), 0);
	if (status != OK || slots == 0)
		return status;
	ring->head = head_of(&now, part);
	/* A head this large is a lie: no process finishes so many. It only must not overflow. */
	if (ring->head & RING_BUSY)
		ring->head = 0;
	oldest = ring->head > slots ? ring->head - slots + 1 : 1;
	ring->next = after >= oldest ? after + 1 : oldest;
	return OK;
}

/* Have the slot of ring->next at hand: copy the piece that begins there when it is not. */
static enum status fetch(struct region_ring *ring, const unsigned char **slot)
{
	uint32_t slots = ring->region->header.parts[ring->part].count;
	uint32_t index = (uint32_t)((ring->next - 1) % slots);
	uint64_t count = ring->head - ring->next + 1;
	enum status status;

	if (ring->copy.bytes == NULL || index < ring->copy.first ||
	    index - ring->copy.first >= ring->copy.count) {
		if (count > PIECE)
			count = PIECE;
		if (count > slots - index)
			count = slots - index;
		region_copy_release(&ring->copy);
		status = region_copy_slots(ring->region, ring->part, index, (uint32_t)count,
					   &ring->copy);
		if (status != OK)
			return status;
	}
	*slot = region_copy_slot(&ring->copy, index - ring->copy.first);
	return OK;
}

static void refuse(struct region_ring *ring, const char *problem)
{
	ring->refused++;
	ring->problem = problem;
}

/* Why the slot of `wanted` does not hold it. */
static void explain(struct region_ring *ring, uint64_t wanted, uint64_t found)
{
	uint32_t slots = ring->region->header.parts[ring->part].count;
	uint64_t sequence = found & ~RING_BUSY;

	if (sequence != 0 && (sequence - 1) % slots != (wanted - 1) % slots)
		refuse(ring, "its sequence belongs into another slot");
	else if (sequence > wanted)
		ring->overwritten++;
	else
		ring->torn++;
}

/* The next whole record with the sequence that belongs there, whatever else it holds. */
static enum status next_slot(struct region_ring *ring, const unsigned char **slot)
{
	while (ring->next != 0 && ring->next <= ring->head) {
		enum status status = fetch(ring, slot);
		uint64_t found;

		if (status != OK)
			return status;
		ring->next++;
		if (*slot == NULL) {
			ring->overwritten++;
			continue;
		}
		memcpy(&found, *slot, sizeof(found));
		if (found == ring->next - 1)
			return OK;
		explain(ring, ring->next - 1, found);
	}
	return ERR_GONE;
}

enum status region_ring_next_op(struct region_ring *ring, struct op_record *op)
{
	const unsigned char *slot;
	struct op_record found;
	const char *problem;
	enum status status;

	while ((status = next_slot(ring, &slot)) == OK) {
		memcpy(&found, slot, sizeof(found));
		problem = op_check(&found);
		if (problem == NULL) {
			*op = found;
			return OK;
		}
		refuse(ring, problem);
	}
	return status;
}

enum status region_ring_next_detail(struct region_ring *ring, struct op_detail *detail)
{
	const unsigned char *slot;
	struct op_detail found;
	const char *problem;
	enum status status;

	while ((status = next_slot(ring, &slot)) == OK) {
		memcpy(&found, slot, sizeof(found));
		problem = op_check_detail(&found);
		if (problem == NULL) {
			*detail = found;
			return OK;
		}
		refuse(ring, problem);
	}
	return status;
}

void region_ring_close(struct region_ring *ring)
{
	region_copy_release(&ring->copy);
	ring->next = 0;
	ring->head = 0;
}
