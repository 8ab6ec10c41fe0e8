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
 *
 * The order of parts matters, too: live before ring, see region_read.h.
 */
#include "region/region_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { CHUNK_BYTES = 1 << 16, SLOT_TRIES = 8, APART_BYTES = 2048 };

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
		differ = ((before ^ first_word(slot)) | (before ^ after)) & rules[part].key;
		if (differ == 0 && !(before & passing))
			break;
	}
	bit_set(copy->is_stable, index, differ == 0);
	return OK;
}

/* Does anybody look behind this slot's first word? */
static bool is_in_use(unsigned int part, uint32_t index, uint64_t word)
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

/* What is needed for one chunk at a time. */
struct scratch {
	uint64_t keys[CHUNK_BYTES / sizeof(uint64_t)]; /* A */
	unsigned char bytes[CHUNK_BYTES];	       /* C */
};

/* Slots [first, first + count) of a copy. */
struct piece {
	uint32_t first, count;
	uint64_t passing; /* bits that are worth a retry */
	bool is_brief;
	const uint64_t *before;
	const unsigned char *after;
};

/* Compare the three keys of every slot; those that moved are tried again. */
static enum status settle(const struct region *region, unsigned int part, struct region_copy *copy,
			  const struct piece *piece)
{
	enum status status = OK;

	for (uint32_t i = 0; i < piece->count && status == OK; i++) {
		size_t at = (size_t)i * copy->stride;
		uint32_t index = piece->first + i;
		uint64_t word = first_word(copy->bytes + (size_t)index * copy->stride);
		uint64_t after = first_word(piece->after + at);
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
static bool next_run(const struct region_copy *copy, unsigned int part, const struct piece *piece,
		     uint32_t *at, struct piece *run)
{
	uint32_t from = piece->count, to = 0, apart = APART_BYTES / copy->stride;

	for (uint32_t i = *at; i < piece->count && (to == 0 || i <= to + apart); i++) {
		if (!is_in_use(part, copy->first + piece->first + i, piece->before[i]))
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
			    struct region_copy *copy, const struct piece *run,
			    struct scratch *scratch)
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

static enum status copy_piece(const struct region *region, unsigned int part,
			      struct region_copy *copy, struct piece piece, struct scratch *scratch)
{
	unsigned char *to = copy->bytes + (size_t)piece.first * copy->stride;
	enum status status = region_pread(region, to, (size_t)piece.count * copy->stride,
					  slot_offset(region, part, copy, piece.first));
	struct piece run;
	uint32_t at = 0;

	if (status != OK)
		return status;
	piece.before = scratch->keys;
	piece.after = scratch->bytes;
	for (uint32_t i = 0; i < piece.count; i++) {
		const unsigned char *slot = to + (size_t)i * copy->stride;

		scratch->keys[i] = first_word(slot);
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
	uint32_t per_chunk = CHUNK_BYTES / copy->stride;
	struct scratch *scratch = malloc(sizeof(*scratch));
	enum status status = scratch != NULL ? OK : ERR_NO_SPACE;

	for (uint32_t at = 0; at < copy->count && status == OK; at += per_chunk) {
		struct piece piece = { .first = at,
				       .count = copy->count - at < per_chunk ? copy->count - at
									     : per_chunk,
				       .passing = rules[part].passing };

		status = copy_piece(region, part, copy, piece, scratch);
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

/* A counter of the header, as it is now. */
static enum status read_counter(const struct region *region, size_t offset, uint64_t *value)
{
	return region_pread(region, value, sizeof(*value), offset);
}

/* How many slots, from the first on, can be in use. These are given out one after the other until all
 * have been used once, and then again from the first. */
static enum status slots_used(const struct region *region, unsigned int part, uint32_t *count)
{
	uint64_t made = UINT64_MAX;
	enum status status = OK;

	if (part == REGION_COMMS)
		status = read_counter(region, offsetof(struct region_header, comms_made), &made);
	else if (part == REGION_PROXIES)
		status = read_counter(region, offsetof(struct region_header, proxy_cursor), &made);
	*count = region->header.parts[part].count;
	if (made < *count)
		*count = (uint32_t)made;
	return status;
}

/* ---- only what is in use --------------------------------------------------------------------- */

struct gather {
	struct region_copy all; /* what was in use so far */
	uint32_t room;
	struct region_copy chunk;
	struct scratch scratch;
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

		if (slot == NULL || !is_in_use(part, chunk->first + i, first_word(slot)))
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
	uint32_t per_chunk = CHUNK_BYTES / gather->all.stride;
	struct region_copy *chunk = &gather->chunk;
	enum status status = OK;

	for (uint32_t at = 0; at < count && status == OK; at += per_chunk) {
		chunk->first = at;
		chunk->count = count - at < per_chunk ? count - at : per_chunk;
		/* Who passes by comes by again at the next look. */
		status = copy_piece(region, part, chunk,
				    (struct piece){ .count = chunk->count, .is_brief = true },
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

static enum status region_gather(const struct region *region, unsigned int part, uint32_t count,
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
	gather->chunk.bytes = malloc(CHUNK_BYTES);
	gather->chunk.is_stable = calloc(CHUNK_BYTES / sizeof(uint64_t) / 64 + 1, sizeof(uint64_t));
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

static enum status copy_brief(const struct region *region, unsigned int part,
			      struct region_copy *copy)
{
	uint32_t count;
	enum status status = slots_used(region, part, &count);

	if (status != OK)
		return status;
	if (part == REGION_LIVE || part == REGION_PROXIES || part == REGION_LINKS)
		return region_gather(region, part, count, copy);
	return region_copy_slots(region, part, 0, count, copy);
}

static enum status copy_part(struct region *region, unsigned int part, bool is_brief)
{
	struct region_copy copy = { .bytes = NULL };
	enum status status = is_brief ? copy_brief(region, part, &copy)
				      : region_copy_slots(region, part, 0,
							  region->header.parts[part].count, &copy);

	if (status != OK)
		return status;
	region_copy_release(&region->copies[part]);
	region->copies[part] = copy;
	return OK;
}

/* ---------------------------------------------------------------------------------------------- */

/* Have operations been issued or finished between two copies of the communicators? */
static bool has_moved(const struct region_copy *one, const struct region_copy *other)
{
	size_t issued = offsetof(struct region_comm, counts.issued);
	size_t recorded = offsetof(struct region_comm, counts.recorded);

	if (one->count != other->count)
		return true;
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
	bool is_brief = parts & REGION_COPY_BRIEF;
	int tries = is_brief ? 1 : REGION_COPY_TRIES;
	enum status status = OK;

	region->is_moving = true;
	for (int i = 0; i < tries && status == OK && region->is_moving; i++) {
		struct region_copy first;

		status = copy_part(region, REGION_COMMS, is_brief);
		for (unsigned int part = REGION_LIVE; part <= REGION_PROXIES; part++)
			if (status == OK && parts & 1u << part)
				status = copy_part(region, part, is_brief);
		if (status != OK)
			break;
		first = region->copies[REGION_COMMS];
		region->copies[REGION_COMMS] = (struct region_copy){ 0 };
		status = copy_part(region, REGION_COMMS, is_brief);
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
			status = copy_part(region, part, parts & REGION_COPY_BRIEF);
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

uint32_t region_copy_index(const struct region_copy *copy, uint32_t index)
{
	return copy->slots != NULL ? copy->slots[index] : copy->first + index;
}
