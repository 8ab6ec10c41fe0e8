/*
 * How much of a time span is covered by overlapping intervals: for the share of time in communication.
 * Added roughly in the order of ends; exact if an interval reaches back over fewer than BUSY_PIECES / 2
 * separate ones (beyond that the older part counts as covered: `cut` counts it).
 */
#ifndef COLLECT_H
#define COLLECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { BUSY_PIECES = 64 };

struct busy {
	struct busy_piece {
		uint64_t start_ns;
		uint64_t end_ns;
	} pieces[BUSY_PIECES]; /* disjoint, ascending */
	uint32_t count;
	uint64_t closed_ns; /* of pieces that left the list */
	uint64_t floor_ns;  /* end of the last of these */
	uint64_t cut;	    /* intervals that began before floor_ns */
	uint64_t first_ns;  /* earliest start, UINT64_MAX none */
};

#define BUSY_INIT ((struct busy){ .first_ns = UINT64_MAX })

void busy_add_slowly(struct busy *busy, uint64_t start_ns, uint64_t end_ns);

/*
 * Adds many in sequence: the newest piece stays in registers. Nothing else may be added between start and
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

/* Most begin after all others ended, or while the last one ran. Which of the two is unpredictable if calls
 * follow each other closely, so there is no branch: the newest piece is written each time. */
static inline void busy_run_add(struct busy_run *run, uint64_t start_ns, uint64_t end_ns)
{
	bool is_apart = start_ns > run->last.end_ns;

	/* None yet, or no more room; or it begins before the last one. */
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

/* Sends by sender and receiver: how long their transfers are on the wire. Bounded. */

enum { LINK_PARTS = 16 };

struct link {
	uint32_t comm; /* index into job.comms */
	uint32_t from; /* index into job.seats */
	int32_t to;    /* rank within the communicator */
	uint32_t reserved;
	uint64_t sends;
	uint64_t send_net_ns;
	uint64_t send_steps;
	uint64_t bytes;
	/* The same over time: each part has part_sends Sends, the last one maybe fewer. */
	uint64_t part_sends;
	float part_net_ns[LINK_PARTS];
	float part_steps[LINK_PARTS];
};

struct links {
	struct link *list;
	size_t count;
	size_t room;
	uint32_t *table; /* index + 1 */
	uint64_t left_out;
	enum status status;
};

/* The link's entry; NULL if there are too many or out of memory. Valid until the next call. */
struct link *links_get(struct links *links, uint32_t comm, uint32_t from, int32_t to);
/* Adds a Send, in the order of time. */
void link_add(struct link *link, uint32_t steps, uint64_t net_ns, uint64_t bytes);
void links_release(struct links *links);

/*
 * One process's operations over its own time, in a bounded number of time slots: when they run out, slots
 * become twice as long. Mapped to the common windows when clocks are aligned.
 */

enum { WINDOWS_LOCAL_SERIES = 24, WINDOWS_LOCAL_FIRST_NS = 1 << 17 };

struct windows_stretch {
	float calls;
	float bytes;
	float time_ns;
	float bus_bytes;
};

struct windows_local {
	uint64_t origin_ns; /* recorder's clock at the start of slot 0; 0: nothing yet */
	uint64_t width_ns;
	uint32_t room; /* maximum number of slots */
	uint32_t used; /* the last one with data, + 1 */
	uint32_t series_count;
	uint16_t series_id[WINDOWS_LOCAL_SERIES]; /* private to the caller */
	struct windows_stretch *stretches[WINDOWS_LOCAL_SERIES];
	uint32_t current;
	uint64_t current_end_ns; /* 0: nothing yet */
	uint64_t left_out;	 /* series that did not fit */
	enum status status;
};

void windows_local_init(struct windows_local *local, uint32_t room);
void windows_local_release(struct windows_local *local);

/* The index of a series; UINT32_MAX: too many, or out of memory. */
uint32_t windows_local_series(struct windows_local *local, uint16_t id);

/*
 * The slot that contains end_ns becomes the current one. Only forward: records come in the order in which
 * they were finished, and slightly late ones count for the current slot.
 */
void windows_local_move(struct windows_local *local, uint64_t end_ns);

/* Adds to the current slot of a series. */
void windows_local_add(struct windows_local *local, uint32_t series,
		       const struct windows_stretch *what);

/* Frees what is not needed. */
void windows_local_finish(struct windows_local *local);

/*
 * Totals of calls of which only some were timed. Kernel events may be off or sampled, so of m recorded
 * calls only n have a duration. Which ones depends on the collective's number, not on its kind: within a
 * kind (rank and communicator, function, datatype, algorithm, protocol, size class) the timed calls are a
 * fair sample. A total is the sum over kinds of (mean of the timed calls x calls); kinds without any timed
 * call have no estimate and are listed.
 */

/* One kind of one seat, and one tag if tags are part of a table's key. */
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
	size_t first; /* of the current process: parts from here on are not sorted */
	size_t next_sort;
};

void estimate_release(struct estimate *estimate);
/* Adds a part of the current process; parts with equal keys are merged. ERR_NO_SPACE. */
enum status estimate_add(struct estimate *estimate, const struct estimate_part *part);
/* The process was read. If all its calls have a duration there is nothing to estimate: dropped. */
void estimate_end_process(struct estimate *estimate);
/* The first part of a kind; NULL: its process needs no estimate. Tags are ignored. */
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
