/* Private copies of a region's parts, each slot consistent although somebody may be writing it. */
#ifndef REGION_COPY_H
#define REGION_COPY_H

#include <stdint.h>

#include "base/status.h"
#include "region/region_layout.h"
#include "region/region_open.h"

/* Ring and details are not among them: they are read as a stream, see region_ring.h. */
enum region_copy_flag {
	REGION_COPY_NAMES = 1u << REGION_NAMES,
	REGION_COPY_COMMS = 1u << REGION_COMMS,
	REGION_COPY_LIVE = 1u << REGION_LIVE,
	REGION_COPY_PROXIES = 1u << REGION_PROXIES,
	REGION_COPY_TOTALS = 1u << REGION_TOTALS,
	REGION_COPY_LINKS = 1u << REGION_LINKS,
	REGION_COPY_STATE = REGION_COPY_NAMES | REGION_COPY_COMMS | REGION_COPY_LIVE |
			    REGION_COPY_PROXIES | REGION_COPY_TOTALS | REGION_COPY_LINKS,
	/* For who comes every second: once, whether anything moved meanwhile or not; of
	 * communicators and proxies as many slots as the recorder says it ever used; and of live
	 * operations, proxies and links a copy of those slots alone that are in use. */
	REGION_COPY_BRIEF = 1u << 31,
};

/*
 * Copy these parts (again) and the header's counters. Communicators, live operations and proxies
 * are copied until nothing moved meanwhile, at most REGION_COPY_TRIES times; region->is_moving says
 * whether it did to the end. ERR_TRUNCATED, ERR_NO_SPACE (memory), ERR_SYSTEM: each part is then as
 * before or new, never half.
 */
enum { REGION_COPY_TRIES = 8 };
enum status region_copy(struct region *region, unsigned int parts);

/* Give back the memory of these parts. */
void region_copy_drop(struct region *region, unsigned int parts);

/* Slots [first, first + count) of one part into *to. ERR_RANGE when the part has not so many. */
enum status region_copy_slots(const struct region *region, enum region_part_index part,
			      uint32_t first, uint32_t count, struct region_copy *to);
void region_copy_release(struct region_copy *copy);

/* A slot's bytes, at least as many as this version's layout has; NULL when the copy has no such slot
 * (counted from its first) or the slot did not hold still. */
const unsigned char *region_copy_slot(const struct region_copy *copy, uint32_t index);

/* Which slot of the part that is. */
uint32_t region_copy_index(const struct region_copy *copy, uint32_t index);

#endif
