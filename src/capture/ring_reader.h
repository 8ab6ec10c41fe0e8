/*
 * The region's ring of finished records, read in order by a thread of the recorder's own while callbacks
 * write it. Several may read, each with a reader of its own; writers never wait for one.
 */
#ifndef RING_READER_H
#define RING_READER_H

#include <stdbool.h>
#include <stdint.h>

struct ring_reader {
	uint64_t *slots;
	uint32_t count; /* a power of two */
	uint32_t words; /* of a slot; the first is its sequence */
	const uint64_t *head;
	uint64_t tail;	   /* sequence last taken or missed */
	uint64_t stuck_ns; /* since when the next one is waited for; 0 not */
};

/* Of the sequences that one call went over, those that it did not get. */
struct ring_missed {
	uint64_t overrun; /* overwritten before we came by */
	uint64_t busy;	  /* their writer was overtaken by a whole lap, or never finished */
};

/*
 * Copy up to `most` records that follow, in order; gives back how many. tail goes forward by these and by
 * the missed ones. A record whose writer is still at it is waited for, over several calls; with is_last
 * it is not. now_ns: any clock that goes forward.
 */
uint32_t ring_reader_take(struct ring_reader *reader, uint64_t now_ns, bool is_last,
			  uint64_t *batch, uint32_t most, struct ring_missed *missed);

#endif
