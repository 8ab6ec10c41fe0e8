/*
 * A slot is consistent when its key (its first word) was the same before and after its content was
 * copied. So a part is gone through in chunks that stay in the cache, each of them up to three times:
 *
 *	keys A     read all, keep the first words
 *	content B  read slots in use, keep all; those that stand together at once
 *	keys C     read the same, compare the first words
 *
 * A == B == C: the content is the owner's of that key (R2, R3). Two passes would not do: a word that was
 * 3 before, 5 in between and 3 after looks equal in two copies and belongs to neither. Slots that fail are
 * read again one by one, a few times; who still fails is left out and said to be unstable. A slot that A
 * shows to be free was free then, and nobody looks at the rest of it: most slots are.
 */
#include "region/region_slots.h"

#include <stdlib.h>

#include "base/order.h"

enum { SLOT_TRIES = 8, APART_BYTES = 2048 };

/* Which bits of a slot's first word tell its owner, and which of them pass by: worth a retry. */
static const struct {
	uint64_t key;
	uint64_t passing;
} rules[REGION_PARTS] = {
	[REGION_COMMS] = { UINT64_C(0xffffffff) << 32, 0 },
	[REGION_LIVE] = { UINT64_C(0xffffffff) << 32 | LIVE_RETIRING, LIVE_RETIRING },
	[REGION_PROXIES] = { UINT64_C(0xffffffff) << 32, 0 },
	[REGION_TOTALS] = { ~UINT64_C(0), 0 },
	[REGION_LINKS] = { ~UINT64_C(0), 0 },
	[REGION_RING] = { ~UINT64_C(0), RING_BUSY },
	[REGION_DETAILS] = { ~UINT64_C(0), RING_BUSY },
};

static void bit_set(uint64_t *bits, uint32_t index, bool is_set)
{
	uint64_t bit = UINT64_C(1) << (index % 64);

	bits[index / 64] = is_set ? bits[index / 64] | bit : bits[index / 64] & ~bit;
}

static bool bit_get(const uint64_t *bits, uint32_t index)
{
	return bits[index / 64] >> (index % 64) & 1;
}

/* Where slot `index` of a copy that begins at slot copy->first lies in the region. */
static uint64_t slot_offset(const struct region *region, unsigned int part,
			    const struct region_copy *copy, uint32_t index)
{
	return region->header.parts[part].offset + (uint64_t)(copy->first + index) * copy->stride;
}

/* One slot again: key, content, key; and again while it is just passing by. */
static enum status retry_slot(const struct region *region, unsigned int part,
			      struct region_copy *copy, uint32_t index, uint64_t passing)
{
	uint64_t offset = slot_offset(region, part, copy, index);
	unsigned char *slot = copy->bytes + (size_t)index * copy->stride;
	enum status status = OK;
	uint64_t before, after, differ = 0;

	for (int i = 0; i < SLOT_TRIES; i++) {
		status = region_pread(region, &before, sizeof(before), offset);
		fence_acquire();
		if (status == OK)
			status = region_pread(region, slot, copy->stride, offset);
		fence_acquire();
		if (status == OK)
			status = region_pread(region, &after, sizeof(after), offset);
		if (status != OK)
			return status;
		differ = ((before ^ region_slot_word(slot)) | (before ^ after)) & rules[part].key;
		if (differ == 0 && !(before & passing))
			break;
	}
	bit_set(copy->is_stable, index, differ == 0);
	return OK;
}

bool region_slot_has_owner(unsigned int part, uint32_t index, uint64_t word)
{
	switch (part) {
	case REGION_COMMS:
		return word != 0;
	case REGION_LIVE:
		return region_slot_is_used(word) || word & LIVE_RETIRING;
	case REGION_PROXIES:
		return region_slot_is_used(word);
	case REGION_TOTALS:
	case REGION_LINKS:
		return index == 0 || word > SLOT_FORGOTTEN;
	default:
		return rules[part].key != 0;
	}
}

/* A key that stands for a slot that is left out. Free, as generations go. */
#define PASSED_OVER UINT64_C(2)

/* Compare the three keys of every slot; those that moved are tried again. */
static enum status settle(const struct region *region, unsigned int part, struct region_copy *copy,
			  const struct region_piece *piece)
{
	enum status status = OK;

	for (uint32_t i = 0; i < piece->count && status == OK; i++) {
		size_t at = (size_t)i * copy->stride;
		uint32_t index = piece->first + i;
		uint64_t word = region_slot_word(copy->bytes + (size_t)index * copy->stride);
		uint64_t after = region_slot_word(piece->after + at);
		uint64_t differ = ((piece->before[i] ^ word) | (word ^ after)) & rules[part].key;

		if (piece->is_brief && piece->before[i] == PASSED_OVER)
			continue;
		bit_set(copy->is_stable, index, differ == 0);
		if (differ != 0 || word & piece->passing)
			status = retry_slot(region, part, copy, index, piece->passing);
	}
	return status;
}

/* Is it of a communicator that finishes so many that this one need not be looked at? By what a first,
 * unsettled reading of the slot says: if that is wrong the slot is just changing hands. */
static bool is_hasty(const struct region *region, const unsigned char *slot)
{
	uint32_t from = 0, to = region->hasty_count, comm;

	if (slot[offsetof(struct region_live, op.state)] != OP_DONE)
		return false;
	memcpy(&comm, slot + offsetof(struct region_live, op.comm), sizeof(comm));
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (region->hasty[middle] < comm)
			from = middle + 1;
		else
			to = middle;
	}
	return from < region->hasty_count && region->hasty[from] == comm;
}

static bool is_known(const struct region *region, uint32_t slot, uint64_t word)
{
	uint32_t from = 0, to = region->known_count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (region->known[middle].slot < slot)
			from = middle + 1;
		else
			to = middle;
	}
	if (from == region->known_count || region->known[from].slot != slot ||
	    region->known[from].word != word)
		return false;
	region->known[from].is_there = 1;
	return true;
}

/* The next run of slots in use in a piece, from slot *at on; what is free between them is less to read
 * than to leave out. False: no more. */
static bool next_run(const struct region_copy *copy, unsigned int part,
		     const struct region_piece *piece, uint32_t *at, struct region_piece *run)
{
	uint32_t from = piece->count, to = 0, apart = APART_BYTES / copy->stride;

	for (uint32_t i = *at; i < piece->count && (to == 0 || i <= to + apart); i++) {
		if (!region_slot_has_owner(part, copy->first + piece->first + i, piece->before[i]))
			continue;
		if (from > i)
			from = i;
		to = i + 1;
	}
	*at = to;
	*run = *piece;
	run->first += from;
	run->count = to - from;
	run->before += from;
	return to != 0;
}

/* B and C. */
static enum status copy_run(const struct region *region, unsigned int part,
			    struct region_copy *copy, const struct region_piece *run,
			    struct region_scratch *scratch)
{
	uint64_t offset = slot_offset(region, part, copy, run->first);
	size_t bytes = (size_t)run->count * copy->stride;
	enum status status;

	/* R2, R3: pair with the releases of whoever fills a slot. */
	fence_acquire();
	status = region_pread(region, copy->bytes + (size_t)run->first * copy->stride, bytes,
			      offset);
	fence_acquire();
	if (status == OK)
		status = region_pread(region, scratch->bytes, bytes, offset);
	return status == OK ? settle(region, part, copy, run) : status;
}

enum status region_slots_copy(const struct region *region, unsigned int part,
			      struct region_copy *copy, struct region_piece piece,
			      struct region_scratch *scratch)
{
	unsigned char *to = copy->bytes + (size_t)piece.first * copy->stride;
	enum status status = region_pread(region, to, (size_t)piece.count * copy->stride,
					  slot_offset(region, part, copy, piece.first));
	struct region_piece run;
	uint32_t at = 0;

	if (status != OK)
		return status;
	piece.before = scratch->keys;
	piece.after = scratch->bytes;
	for (uint32_t i = 0; i < piece.count; i++) {
		const unsigned char *slot = to + (size_t)i * copy->stride;

		scratch->keys[i] = region_slot_word(slot);
		bit_set(copy->is_stable, piece.first + i, true);
		if (piece.is_brief && part == REGION_LIVE &&
		    region_slot_is_used(scratch->keys[i]) &&
		    (is_hasty(region, slot) ||
		     is_known(region, copy->first + piece.first + i, scratch->keys[i]))) {
			scratch->keys[i] = PASSED_OVER;
			bit_set(copy->is_stable, piece.first + i, false);
		}
	}
	while (status == OK && next_run(copy, part, &piece, &at, &run))
		status = copy_run(region, part, copy, &run, scratch);
	return status;
}

static enum status copy_content(const struct region *region, unsigned int part,
				struct region_copy *copy)
{
	uint32_t per_chunk = REGION_CHUNK_BYTES / copy->stride;
	struct region_scratch *scratch = malloc(sizeof(*scratch));
	enum status status = scratch != NULL ? OK : ERR_NO_SPACE;

	for (uint32_t at = 0; at < copy->count && status == OK; at += per_chunk) {
		struct region_piece piece = { .first = at,
					      .count = copy->count - at < per_chunk
							       ? copy->count - at
							       : per_chunk,
					      .passing = rules[part].passing };

		status = region_slots_copy(region, part, copy, piece, scratch);
	}
	free(scratch);
	return status;
}

void region_copy_release(struct region_copy *copy)
{
	free(copy->bytes);
	free(copy->is_stable);
	free(copy->slots);
	*copy = (struct region_copy){ 0 };
}

enum status region_copy_slots(const struct region *region, enum region_part_index part,
			      uint32_t first, uint32_t count, struct region_copy *to)
{
	struct region_copy copy = { .first = first, .count = count };
	enum status status;

	if (first > region->header.parts[part].count ||
	    count > region->header.parts[part].count - first)
		return ERR_RANGE;
	copy.stride = region->header.parts[part].stride;
	if (count > 0) {
		copy.bytes = malloc((size_t)count * copy.stride);
		copy.is_stable = calloc(count / 64 + 1, sizeof(uint64_t));
		status = copy.bytes != NULL && copy.is_stable != NULL
				 ? copy_content(region, part, &copy)
				 : ERR_NO_SPACE;
		if (status != OK) {
			region_copy_release(&copy);
			return status;
		}
	}
	*to = copy;
	return OK;
}

const unsigned char *region_copy_slot(const struct region_copy *copy, uint32_t index)
{
	if (index >= copy->count || !bit_get(copy->is_stable, index))
		return NULL;
	return copy->bytes + (size_t)index * copy->stride;
}

uint32_t region_copy_index(const struct region_copy *copy, uint32_t index)
{
	return copy->slots != NULL ? copy->slots[index] : copy->first + index;
}
