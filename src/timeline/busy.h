/*
 * How much of a time span is covered by intervals that overlap: for the share of time in communication.
 * Fed roughly in the order of ends; exact as long as an interval reaches back over fewer than
 * BUSY_PIECES / 2 separate ones (beyond that the older part is taken as covered: `cut` counts it).
 */
#ifndef BUSY_H
#define BUSY_H

#include <stdbool.h>
#include <stdint.h>

enum { BUSY_PIECES = 64 };

struct busy {
	struct busy_piece {
		uint64_t start_ns;
		uint64_t end_ns;
	} pieces[BUSY_PIECES]; /* disjoint, rising */
	uint32_t count;
	uint64_t closed_ns; /* of pieces that left the list */
	uint64_t floor_ns;  /* end of the last of these */
	uint64_t cut;	    /* intervals that began before floor_ns */
	uint64_t first_ns;  /* earliest start, UINT64_MAX none */
};

#define BUSY_INIT ((struct busy){ .first_ns = UINT64_MAX })

void busy_add_slowly(struct busy *busy, uint64_t start_ns, uint64_t end_ns);

/* Most begin after all others ended, or while the last one ran. Which of the two is a toss-up where calls
 * follow each other closely, so it is not branched on. */
static inline void busy_add(struct busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	const struct busy_piece last = busy->pieces[busy->count ? busy->count - 1 : 0];
	bool is_apart = start_ns > last.end_ns;

	if (__builtin_expect(busy->count == 0 || start_ns < last.start_ns ||
				     busy->count == BUSY_PIECES,
			     0)) {
		busy_add_slowly(busy, start_ns, end_ns);
		return;
	}
	busy->count += is_apart;
	busy->pieces[busy->count - 1] = (struct busy_piece){
		.start_ns = is_apart ? start_ns : last.start_ns,
		.end_ns = end_ns > last.end_ns ? end_ns : last.end_ns,
	};
}

uint64_t busy_total_ns(const struct busy *busy);
uint64_t busy_last_ns(const struct busy *busy); /* latest end, 0 none */

#endif
