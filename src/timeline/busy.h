/*
 * How much of a time span is covered by intervals that overlap: for the share of time in communication.
 * Fed roughly in the order of ends; exact as long as an interval reaches back over fewer than
 * BUSY_PIECES / 2 separate ones (beyond that the older part is taken as covered: `cut` counts it).
 */
#ifndef BUSY_H
#define BUSY_H

#include <stdbool.h>
#include <stddef.h>
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

/*
 * Many, one after the other: the newest piece stays in registers. Nothing else may be added between start and
 * end.
 */
struct busy_run {
	struct busy *busy; /* NULL: none yet */
	struct busy_piece last;
	uint32_t count;
};

static inline void busy_run_start(struct busy_run *run, struct busy *busy)
{
	run->busy = busy;
	run->count = busy->count;
	run->last = busy->pieces[busy->count ? busy->count - 1 : 0];
}

static inline void busy_run_end(struct busy_run *run)
{
	if (run->busy == NULL || run->count == 0)
		return;
	run->busy->count = run->count;
	run->busy->pieces[run->count - 1] = run->last;
}

/* Most begin after all others ended, or while the last one ran. Which of the two is a toss-up where calls
 * follow each other closely, so it is not branched on: the newest piece is written each time. */
static inline void busy_run_add(struct busy_run *run, uint64_t start_ns, uint64_t end_ns)
{
	bool is_apart = start_ns > run->last.end_ns;

	/* None yet, or as many as there is room for; or it begins before the last one. */
	if (__builtin_expect(run->count - 1 >= BUSY_PIECES - 1 || start_ns < run->last.start_ns,
			     0)) {
		struct busy *busy = run->busy;

		busy_run_end(run);
		busy_add_slowly(busy, start_ns, end_ns);
		busy_run_start(run, busy);
		return;
	}
	run->busy->pieces[run->count - 1] = run->last;
	run->count += is_apart;
	run->last.start_ns = is_apart ? start_ns : run->last.start_ns;
	run->last.end_ns = end_ns > run->last.end_ns ? end_ns : run->last.end_ns;
}

static inline void busy_add(struct busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	struct busy_run run;

	busy_run_start(&run, busy);
	busy_run_add(&run, start_ns, end_ns);
	busy_run_end(&run);
}

uint64_t busy_total_ns(const struct busy *busy);
uint64_t busy_last_ns(const struct busy *busy); /* latest end, 0 none */

#endif
