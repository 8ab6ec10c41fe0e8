/* Where a lane and its chunks are found. For meet.h's own use. */
#ifndef MEET_LANE_H
#define MEET_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"
#include "timeline/meet.h"

static inline unsigned int meet_lane_index(uint8_t source, bool is_replay, unsigned int variant)
{
	return (source == OP_TIME_PROXY ? 1u : 0u) | (is_replay ? 2u : 0u) | variant << 2;
}

/* Where in lane->table this chunk is, or would be; the table is not empty. */
static inline uint32_t meet_lane_place(const struct meet_lane *lane, uint64_t number)
{
	uint32_t place = (uint32_t)hash_word(7, number) & (lane->table_size - 1);

	while (lane->table[place] != 0 && lane->briefs[lane->table[place] - 1].number != number)
		place = (place + 1) & (lane->table_size - 1);
	return place;
}

static inline void meet_fail(struct meet *meet)
{
	if (meet->status == OK)
		meet->status = ERR_NO_SPACE;
}

#endif
