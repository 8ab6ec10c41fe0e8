/*
 * Thinking about jobs while they run: rates, waiting, who is behind, what stands still. Fed with one
 * look at the processes after the other (src/recording), it compares each look with the one before.
 * Nothing here looks at a clock or opens a file; nothing here writes.
 *
 * Waiting without clocks and without single operations: of the members of a communicator that can be
 * seen here, the one that spent least time in the same collectives since the last look waited least.
 * wait(r) = time(r) - time of that member, per function and size, and only where all of them finished
 * the same number of collectives. Who was late in turns cancels out between two looks, so it is a lower
 * bound: "at least". Rooted operations, Send and Recv have none. docs/STATISTICS.md says how unequal numbers are
 * treated, and all the rest.
 */
#ifndef LIVE_H
#define LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/flight.h"
#include "analysis/job.h"
#include "common/status.h"
#include "doctor/verdict.h"
#include "format/region_layout.h"
#include "recording/recording.h"

enum {
	LIVE_POINTS = 300,	   /* history per communicator and seat: looks that are kept */
	LIVE_HISTORIES_MAX = 2048, /* further seats have none: a full one takes 9.4 KiB */
	LIVE_NOTICES_MAX = 64,
	LIVE_WAITS_MAX = 4, /* reasons kept of what the oldest operation waits for */
};

/* When something is worth telling. */
struct live_limits {
	uint64_t
		hang_ns; /* an operation in flight for so long, its communicator without progress */
	uint64_t lag_ns; /* a member that has not issued what others are in for so long */
	double straggler_share; /* others wait for one member for this share of the time */
	uint64_t straggler_ns;	/* for so long in a row */
};
struct live_limits live_limits_default(void); /* 20 s, 5 s, 0.1, 30 s */

/* Sums since the process started, and what they grew by since the last look. Times in seconds would
 * lose digits: nanoseconds. */
struct live_sums {
	uint64_t operations; /* finished */
	uint64_t bytes;
	uint64_t timed;
	uint64_t timed_bytes;
	double bus_bytes; /* timed_bytes x factor */
	uint64_t time_ns; /* of timed */
	/* Of all operations but those of kinds with nothing timed: per kind the mean of the timed ones times
	 * all. Equal to time_ns where all are timed. */
	double all_ns;
	uint64_t not_timed; /* of operations: of kinds with nothing timed */
	uint32_t sampled;   /* kinds of which some are timed and some are not */
};

/* One look in a history. */
struct live_point {
	uint64_t wall_ns;
	float operations_per_s;
	float busbw; /* bytes/s while in operations; NaN: nothing finished, or nothing was timed */
	float algbw;
	float busy_share; /* of the time between the looks that was spent in operations, 0..; a
			     communicator: mean over its seats. Estimated where not all were timed;
			     NaN: operations finished, and none was timed */
	float wait_share; /* of that time waited at least; NaN unknown */
};

struct live_history {
	struct live_point *points; /* a ring of at most LIVE_POINTS: see live_point() */
	uint32_t count;
	uint32_t next;
};

/* One member of one communicator as this machine sees it: beside job.seats[i]. */
struct live_seat {
	const struct recording_comm *comm; /* of the process; NULL: not known any more */
	struct live_sums sums;
	struct live_sums grown; /* since the last look */
	uint64_t wait_ns;	/* at least, since it is watched; never falls */
	uint64_t wait_grown_ns;
	bool has_wait;	 /* it was joined with others since the last look */
	bool knows_wait; /* it ever was: wait_ns means something */
	bool is_over; /* the process is gone or the communicator was finalized: nothing below goes on */
	uint32_t in_flight;	/* 0 when it is over */
	uint64_t oldest_age_ns; /* since it was issued; 0 none */
	const struct recording_flight
		*oldest; /* NULL none; valid until the next look. Of a process that
						     is gone: what it was in */
	struct flight_wait waits[LIVE_WAITS_MAX]; /* what it waits for, longest first */
	uint32_t wait_count;
	uint64_t still_ns; /* for so long nothing was issued and nothing finished on it */
	bool is_unseen;	   /* NCCL does not show whether its last operation is over */
	bool is_behind;	   /* other members are in a collective which it has not issued */
	struct live_history history;
};

/* Beside job.comms[i]. */
struct live_comm {
	struct live_sums sums; /* over its seats */
	struct live_sums grown;
	uint64_t wait_ns;
	uint32_t straggler; /* the seat that others wait for in the last stretch; UINT32_MAX none */
	double straggler_share; /* of that stretch which they waited, in the mean */
	uint32_t lead; /* the seat that is in the latest collective; UINT32_MAX: none is in one */
	uint64_t last_issued; /* highest number of a collective that a seat issued */
	uint64_t last_done;   /* highest number over all its operations that are over */
	struct live_history history;
};

enum live_notice_kind {
	LIVE_HANG = 0,	    /* operations in flight beyond the limit, nothing moves */
	LIVE_MISSING = 1,   /* a hang, and a member that never issued the operation */
	LIVE_MISMATCH = 2,  /* members disagree on what was called */
	LIVE_DEAD = 3,	    /* a process died without ending its recording, others go on or wait */
	LIVE_BEHIND = 4,    /* a member is behind for longer than lag_ns, not yet a hang */
	LIVE_STRAGGLER = 5, /* others wait for one member, again and again */
	LIVE_LOSS = 6,	    /* operations were lost since the last look */
	LIVE_NOTICE_KINDS = 7,
};
const char *live_notice_name(enum live_notice_kind kind); /* "hang", ... */

struct live_notice {
	enum live_notice_kind kind;
	uint32_t comm; /* index into job.comms, UINT32_MAX none */
	uint32_t seat; /* the culprit: index into job.seats, UINT32_MAX not known */
	uint64_t since_wall_ns;
	uint64_t first_wall_ns; /* when this notice was first given: the same one keeps it */
	char title[120];	/* "rank 5 has not issued AllReduce 812 of dp; 7 ranks wait" */
	char text[400];
	char hint[240]; /* what to type next; "" none */
};

struct live {
	struct live_limits limits;
	struct job job;		     /* of the last look */
	struct live_seat *seats;     /* [job.seat_count] */
	struct live_comm *comms;     /* [job.comm_count] */
	struct live_notice *notices; /* most serious first */
	size_t notice_count;
	size_t notices_left_out;
	/* Who is stuck, and why: the doctor's part of the last look (doctor/hang.h), most serious first. What
	 * other nodes would have to say is missing here, and said so. Valid until the next look. */
	struct verdicts verdicts;
	uint64_t looks;
	uint64_t wall_ns;	    /* of the last look */
	uint64_t elapsed_ns;	    /* between the last two; 0 at the first */
	struct live_memory *memory; /* what is carried from look to look, by identity */
};

void live_init(struct live *live, const struct live_limits *limits);
void live_release(struct live *live);

/*
 * One look. `recording` (with totals) must stay as it is until the next look or the release.
 * monotonic_ns only goes forward; wall_ns is for people. ERR_NO_SPACE (memory): the last look's answers
 * stay, and they point into the last look's recording: release before going on.
 */
enum status live_look(struct live *live, const struct recording *recording, uint64_t monotonic_ns,
		      uint64_t wall_ns);

/* What cannot be judged without GPU times, and should be. */
enum live_doubt {
	LIVE_NO_DOUBT = 0,
	LIVE_DOUBT_HANG =
		1, /* nobody calls anything, and nothing shows whether the last calls are over */
	LIVE_DOUBT_SLOW = 2, /* operations come at a lower rate than ever, and are not timed */
};
/* Of a communicator: index into job.comms. *figure: seconds without a call; how many times slower. */
enum live_doubt live_doubt(const struct live *live, uint32_t comm, double *figure);

/* The sums of one total; factor by the communicator's size. */
void live_sums_add(struct live_sums *sums, const struct region_total *total, int nranks);

/* The i-th point of a history, 0 the oldest. */
const struct live_point *live_point(const struct live_history *history, uint32_t i);

#endif
