/*
 * How slots are copied, each of them consistent. For the use of region_copy.c, region_slots.c and
 * region_gather.c.
 */
#ifndef REGION_SLOTS_H
#define REGION_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "region/region_copy.h"

enum { REGION_CHUNK_BYTES = 1 << 16 };

/* What is needed for one chunk at a time. */
struct region_scratch {
	uint64_t keys[REGION_CHUNK_BYTES / sizeof(uint64_t)]; /* A */
	unsigned char bytes[REGION_CHUNK_BYTES];	      /* C */
};

/* Slots [first, first + count) of a copy. */
struct region_piece {
	uint32_t first, count;
	uint64_t passing; /* bits that are worth a retry */
	bool is_brief;
	const uint64_t *before;
	const unsigned char *after;
};

static inline uint64_t region_slot_word(const unsigned char *slot)
{
	uint64_t word;

	memcpy(&word, slot, sizeof(word));
	return word;
}

/* Does anybody look behind this slot's first word? */
bool region_slot_has_owner(unsigned int part, uint32_t index, uint64_t word);

/* Copy a piece, of REGION_CHUNK_BYTES at most, to its place in `copy`. */
enum status region_slots_copy(const struct region *region, unsigned int part,
			      struct region_copy *copy, struct region_piece piece,
			      struct region_scratch *scratch);

/* Slots [0, count) of a part, but those alone that are in use and held still. */
enum status region_gather(const struct region *region, unsigned int part, uint32_t count,
			  struct region_copy *to);

#endif
