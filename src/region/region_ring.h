/*
 * Finished operations out of the ring, and details (mode full), by sequence, each once, none torn.
 * Read in pieces: memory does not grow with the ring.
 *
 *	region_ring_open(&ring, &region, REGION_RING, 0);
 *	while ((status = region_ring_next_op(&ring, &op)) == OK) ...
 *	region_ring_close(&ring);
 */
#ifndef REGION_RING_H
#define REGION_RING_H

#include <stdint.h>

#include "base/status.h"
#include "op/op_layout.h"
#include "region/region_copy.h"
#include "region/region_layout.h"
#include "region/region_open.h"

struct region_ring {
	const struct region *region; /* borrowed until the close */
	enum region_part_index part;
	uint64_t head; /* the last sequence when it was opened: later ones are not given */
	uint64_t next; /* the sequence to look for next */
	struct region_copy copy; /* the piece at hand */
	/* What was not given, so far. */
	uint64_t overwritten; /* by later ones while it was read */
	uint64_t torn;	      /* not or half written: by a writer at work, or one that was killed */
	uint64_t refused;     /* whole, but not acceptable */
	const char *problem;  /* of the last one refused */
};

/*
 * REGION_RING or REGION_DETAILS. Records with a sequence up to `after` are passed over (0: none is).
 * A region without that part has no records. ERR_TRUNCATED, ERR_SYSTEM. Close in every case.
 */
enum status region_ring_open(struct region_ring *ring, const struct region *region,
			     enum region_part_index part, uint64_t after);
/* OK; ERR_GONE after the last one; ERR_TRUNCATED, ERR_SYSTEM, ERR_NO_SPACE. */
enum status region_ring_next_op(struct region_ring *ring, struct op_record *op);
enum status region_ring_next_detail(struct region_ring *ring, struct op_detail *detail);
void region_ring_close(struct region_ring *ring);

#endif
