/*
 * A slot is consistent when its key (its first word) was the same before and after its content was
 * copied. So a part is gone through three times:
 *
 *	keys A     read all, keep the first words
 *	content B  read all, keep all
 *	keys C     read all, compare
 *
 * A == B == C: the content is the owner's of that key (R2, R3). Two passes would not do: a word
 *that was 3 before, 5 in between and 3 after looks equal in two copies and belongs to neither.
 *Slots that fail are read again one by one, a few times; who still fails is left out and said to be
 *unstable.
 *
 * The order of parts matters, too: live before ring, see region_read.h.
 */
#include "region/region_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { CHUNK_BYTES = 1 << 16, SLOT_TRIES = 8 };

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

static uint64_t first_word(const unsigned char *slot)
{
	uint64_t word;

	memcpy(&word, slot, sizeof(word));
	return word;
}

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

/* Go through the slots for their keys alone. */
static enum status read_keys(const struct region *region, unsigned int part, uint64_t *keys,
			     const struct region_copy *copy)
{
	uint32_t per_chunk = CHUNK_BYTES / copy->stride;
	unsigned char *chunk = malloc(CHUNK_BYTES);
	enum status status = chunk != NULL ? OK : ERR_NO_SPACE;

	for (uint32_t at = 0; at < copy->count && status == OK; at += per_chunk) {
		uint32_t count = copy->count - at < per_chunk ? copy->count - at : per_chunk;

		status = region_pread(region, chunk, (size_t)count * copy->stride,
				      slot_offset(region, part, copy, at));
		for (uint32_t i = 0; i < count && status == OK; i++)
			keys[at + i] = first_word(chunk + (size_t)i * copy->stride);
	}
	free(chunk);
	return status;
}

/* One slot again: key, content, key. */
static enum status retry_slot(const struct region *region, unsigned int part,
			      struct region_copy *copy, uint32_t index)
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
		differ = ((before ^ first_word(slot)) | (before ^ after)) & rules[part].key;
		if (differ == 0 && !(before & rules[part].passing))
			break;
	}
	bit_set(copy->is_stable, index, differ == 0);
	return OK;
}

/* Compare the three keys of every slot; those that moved are tried again. */
static enum status settle(const struct region *region, unsigned int part, struct region_copy *copy,
			  const uint64_t *before, const uint64_t *after)
{
	enum status status = OK;

	for (uint32_t i = 0; i < copy->count && status == OK; i++) {
		uint64_t word = first_word(copy->bytes + (size_t)i * copy->stride);
		uint64_t differ = ((before[i] ^ word) | (word ^ after[i])) & rules[part].key;

		bit_set(copy->is_stable, i, differ == 0);
		if (differ != 0 || word & rules[part].passing)
			status = retry_slot(region, part, copy, i);
	}
	return status;
}

static enum status copy_content(const struct region *region, unsigned int part,
				struct region_copy *copy)
{
	size_t keys_bytes = sizeof(uint64_t) * copy->count;
	uint64_t *before = malloc(keys_bytes), *after = malloc(keys_bytes);
	enum status status = before != NULL && after != NULL ? OK : ERR_NO_SPACE;

	if (status == OK)
		status = read_keys(region, part, before, copy);
	/* R2, R3: pair with the releases of whoever fills a slot. */
	fence_acquire();
	if (status == OK)
		status = region_pread(region, copy->bytes, (size_t)copy->count * copy->stride,
				      slot_offset(region, part, copy, 0));
	fence_acquire();
	if (status == OK)
		status = read_keys(region, part, after, copy);
	if (status == OK)
		status = settle(region, part, copy, before, after);
	free(before);
	free(after);
	return status;
}

void region_copy_release(struct region_copy *copy)
{
	free(copy->bytes);
	free(copy->is_stable);
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

static enum status copy_part(struct region *region, unsigned int part)
{
	struct region_copy copy;
	enum status status =
		region_copy_slots(region, part, 0, region->header.parts[part].count, &copy);

	if (status != OK)
		return status;
	region_copy_release(&region->copies[part]);
	region->copies[part] = copy;
	return OK;
}

/* Have operations been issued or finished between two copies of the communicators? */
static bool has_moved(const struct region_copy *one, const struct region_copy *other)
{
	size_t issued = offsetof(struct region_comm, counts.issued);
	size_t recorded = offsetof(struct region_comm, counts.recorded);

	for (uint32_t i = 0; i < one->count; i++) {
		const unsigned char *a = one->bytes + (size_t)i * one->stride;
		const unsigned char *b = other->bytes + (size_t)i * other->stride;

		if (first_word(a) != first_word(b) ||
		    first_word(a + issued) != first_word(b + issued) ||
		    first_word(a + recorded) != first_word(b + recorded))
			return true;
	}
	return false;
}

/* Communicators, what is in flight, communicators again: until both agree. The first copy stays:
 * what it counts as issued is in the live table that was copied after it, or in the ring. */
static enum status copy_flights(struct region *region, unsigned int parts)
{
	enum status status = OK;

	region->is_moving = true;
	for (int i = 0; i < REGION_COPY_TRIES && status == OK && region->is_moving; i++) {
		struct region_copy first;

		status = copy_part(region, REGION_COMMS);
		for (unsigned int part = REGION_LIVE; part <= REGION_PROXIES; part++)
			if (status == OK && parts & 1u << part)
				status = copy_part(region, part);
		if (status != OK)
			break;
		first = region->copies[REGION_COMMS];
		region->copies[REGION_COMMS] = (struct region_copy){ 0 };
		status = copy_part(region, REGION_COMMS);
		if (status == OK)
			region->is_moving = has_moved(&first, &region->copies[REGION_COMMS]);
		region_copy_release(&region->copies[REGION_COMMS]);
		region->copies[REGION_COMMS] = first;
	}
	return status;
}

/* The header from its second cache line of counters on; what was checked at opening stays. */
static enum status refresh_counters(struct region *region)
{
	size_t from = offsetof(struct region_header, last_anchor);

	return region_pread(region, (char *)&region->header + from, sizeof(region->header) - from,
			    from);
}

enum status region_copy(struct region *region, unsigned int parts)
{
	const unsigned int flights = REGION_COPY_COMMS | REGION_COPY_LIVE | REGION_COPY_PROXIES;
	enum status status = OK;

	if (parts & flights)
		status = copy_flights(region, parts);
	for (unsigned int part = 0; part < REGION_PARTS && status == OK; part++)
		if (parts & ~flights & 1u << part)
			status = copy_part(region, part);
	return status == OK ? refresh_counters(region) : status;
}

void region_copy_drop(struct region *region, unsigned int parts)
{
	for (unsigned int part = 0; part < REGION_PARTS; part++)
		if (parts & 1u << part)
			region_copy_release(&region->copies[part]);
}

const unsigned char *region_copy_slot(const struct region_copy *copy, uint32_t index)
{
	if (index >= copy->count || !bit_get(copy->is_stable, index))
		return NULL;
	return copy->bytes + (size_t)index * copy->stride;
}
