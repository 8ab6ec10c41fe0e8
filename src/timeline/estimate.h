/*
 * Totals of calls of which only some were timed. Kernel events may be off or sampled, so of m recorded calls
 * only n have a duration. Which ones is decided by the collective's number, not by what it is: within a kind
 * (rank and communicator, function, datatype, algorithm, protocol, size class) the timed calls are a fair
 * sample. A total is then the sum over kinds of (mean of the timed calls x calls); kinds of which nothing was
 * timed have no estimate and are listed.
 *
 * For the room's own use: the figures are in tally.h and report.h.
 */
#ifndef ESTIMATE_H
#define ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

/* One kind of one seat, and one tag where tags are part of a table's key. */
struct estimate_part {
	uint32_t seat;
	uint32_t names;
	uint64_t tag;
	uint8_t size_class;
	uint64_t timed;
	uint64_t sum_ns;
	uint64_t untimed;   /* over, without a duration */
	uint64_t joined_ns; /* see tally.h */
	uint64_t least_ns;
};

struct estimate {
	struct estimate_part *parts; /* of finished processes: sorted by seat, names, size, tag */
	size_t count;
	size_t room;
	size_t first; /* of the process that is being walked: parts from here on are not sorted */
	size_t next_sort;
};

void estimate_release(struct estimate *estimate);
/* A part of the process that is being walked; parts with equal keys are put together. ERR_NO_SPACE. */
enum status estimate_add(struct estimate *estimate, const struct estimate_part *part);
/* The process was walked. Where all its calls have a duration there is nothing to estimate: forgotten. */
void estimate_end_process(struct estimate *estimate);
/* The first part of a kind; NULL: its process needs no estimate. Tags are not looked at. */
struct estimate_part *estimate_find(struct estimate *estimate, const struct estimate_part *like);

/* A kind with all its tags: parts [first, next). */
struct estimate_kind {
	size_t first;
	size_t next;
	uint64_t timed;
	uint64_t sum_ns;
	uint64_t untimed;
	uint64_t joined_ns;
	uint64_t least_ns;
};
struct estimate_kind estimate_kind(const struct estimate *estimate, size_t first);

#endif
