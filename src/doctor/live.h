/*
 * Analyses running jobs: rates, waiting, ranks that are behind, hangs, slowness. It gets one scan of the
 * processes after the other (src/recording) and compares each with the previous one. Except for live_judge()
 * and the host list of a hung job, nothing here reads a clock or opens a file; nothing writes.
 *
 * Waiting without clocks and individual operations: of the visible ranks of a communicator, the one that
 * spent the least time in the same collectives since the last scan waited least. wait(r) = time(r) - time
 * of that rank, per function and size, and only if all of them finished the same number of collectives.
 * Ranks that are late in turns cancel out between two scans, so it is a lower bound: "at least". Rooted
 * operations, Send and Recv have none. docs/STATISTICS.md explains how unequal numbers are treated, and the rest.
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
	LIVE_POINTS = 300, /* history per communicator and seat: number of scans kept */
	LIVE_HISTORIES_MAX =
		2048, /* of seats, and of communicators; half of them for one user: a full one takes 9.4 KiB */
	LIVE_NOTICES_MAX = 64,
	LIVE_WAITS_MAX = 4, /* wait reasons kept of the oldest operation */
};

/* Thresholds for notices. */
struct live_limits {
	uint64_t
		hang_ns; /* an operation in flight this long without progress of its communicator */
	bool is_hang_fixed; /* the user asked for hang_ns: RINGSIDE_HANG_AFTER of jobs does not count */
	uint64_t lag_ns; /* a rank that has not called what others have been in for this long */
	double straggler_share;	 /* others wait for one rank for this share of the time */
	uint64_t straggler_ns;	 /* for this long */
	unsigned int agent_port; /* of agents, for commands that ask them; 0: the default */
	uint32_t slow_times; /* slowness is reported once this many judgements in a row found it */
	uint64_t judge_ns;   /* CPU time of one judgement */
};
struct live_limits live_limits_default(void); /* 20 s, 5 s, 0.1, 30 s, 2, 0.5 s */

/* Totals since the process started, and their increase since the last scan. Seconds would lose digits:
 * nanoseconds. */
struct live_sums {
	uint64_t operations; /* finished */
	uint64_t bytes;
	uint64_t timed;	      /* including those that share the time of their launch with others */
	uint64_t timed_bytes; /* of those with a time of their own */
	double bus_bytes;     /* timed_bytes x factor */
	uint64_t time_ns;     /* of those with a time of their own: for bandwidths */
	/* Of all operations but those of kinds without any timed one: per kind, the mean of the timed ones
	 * times all. */
	double all_ns;
	uint64_t not_timed; /* of operations: of kinds without any timed one */
	uint32_t sampled;   /* kinds of which some are timed and some are not */
};

/* One scan in a history. */
struct live_point {
	uint64_t wall_ns;
	float operations_per_s;
	float busbw; /* bytes/s while in operations; NaN: nothing finished, or nothing was timed */
	float algbw;
	float busy_share; /* share of the time between the scans spent in operations, 0..; a
			     communicator: mean over its seats. Estimated if not all were timed;
			     NaN: operations finished, and none was timed */
	float wait_share; /* share of that time spent waiting, at least; NaN unknown */
};

struct live_history {
	struct live_point *points; /* a ring of at most LIVE_POINTS: see live_point() */
	uint32_t count;
	uint32_t next;
};

/* One rank of one communicator as this host sees it: parallel to job.seats[i]. */
struct live_seat {
	const struct recording_comm *comm; /* of the process; NULL: no longer known */
	struct live_sums sums;
	struct live_sums grown; /* since the last scan */
	uint64_t wait_ns;	/* at least, since the first scan; never decreases */
	uint64_t wait_grown_ns;
	bool has_wait;		/* it was matched with others since the last scan */
	bool knows_wait;	/* it ever was: wait_ns is meaningful */
	bool is_over;		/* the process is gone or the communicator was finalized: nothing
				   below changes */
	uint32_t in_flight;	/* 0 when it is over */
	uint64_t oldest_age_ns; /* since it was called; 0 none */
	const struct recording_flight
		*oldest; /* NULL none; valid until the next scan. Of a process that is gone: what
			    it was in */
	struct flight_wait waits[LIVE_WAITS_MAX]; /* what it waits for, longest first */
	uint32_t wait_count;
	uint64_t still_ns; /* time since anything was called or finished on it */
	bool is_unseen;	   /* NCCL does not report whether its last operation is over */
	bool is_behind;	   /* other ranks are in a collective that it has not called */
	struct live_history history;
};

/* Parallel to job.comms[i]. */
struct live_comm {
	struct live_sums sums; /* over its seats */
	struct live_sums grown;
	uint64_t wait_ns;
	uint32_t straggler;	/* the seat that others waited for in the last window; UINT32_MAX
				   none */
	double straggler_share; /* share of that window they waited, on average */
	uint32_t lead; /* the seat that is in the latest collective; UINT32_MAX: none is in one */
	uint64_t last_issued; /* highest number of a collective that a seat called */
	uint64_t last_done;   /* highest number over all its finished operations */
	/* NCCL's userTag if all tagged operations that scans saw had the same one; 0: none, or several, as of
	 * programs that tag their iterations. */
	uint64_t user_tag;
	struct live_history history;
};

enum live_notice_kind {
	LIVE_HANG = 0,	    /* operations in flight beyond the limit, without progress */
	LIVE_MISSING = 1,   /* a hang, and a rank that never called the operation */
	LIVE_MISMATCH = 2,  /* ranks disagree on what was called */
	LIVE_DEAD = 3,	    /* a process died without closing its recording, others continue or
			       wait */
	LIVE_BEHIND = 4,    /* a rank has been behind for longer than lag_ns, not yet a hang */
	LIVE_STRAGGLER = 5, /* others wait for one rank repeatedly */
	LIVE_LOSS = 6,	    /* operations were lost since the last scan */
	LIVE_SLOW = 7,	    /* the doctor's slowness rules found something: see live_judge() */
	LIVE_NOTICE_KINDS = 8,
};
const char *live_notice_name(enum live_notice_kind kind); /* "hang", ... */

struct live_notice {
	enum live_notice_kind kind;
	uint32_t comm; /* index into job.comms, UINT32_MAX none */
	uint32_t seat; /* the culprit: index into job.seats, UINT32_MAX unknown */
	uint64_t since_wall_ns;
	uint64_t first_wall_ns; /* when this notice first appeared: kept while it persists */
	char title[120];	/* "rank 5 has not called AllReduce #812 of dp; 7 ranks wait" */
	char text[400];
	char hint[1000]; /* a command to run next; "" none */
};

/* What is known about hangs, or about the speed of a job, and what is not. */
struct live_judged {
	bool is_judged;
	uint32_t found;	  /* active verdicts */
	uint64_t wall_ns; /* when it was judged; 0: not yet */
	uint64_t span_ns; /* speed: time that the compared operations cover; 0 unknown */
	char once[200];	  /* speed: found by the last judgement, not confirmed yet; hangs: a dead or
			     stopped process that others need; "" nothing */
	char why[240];	  /* what was not judged, or why nothing was; "" everything was */
	char how[1000];	  /* a command that tells, or settings that would; "" none */
};

/* Parallel to job.groups[i]. */
struct live_job {
	bool is_alive; /* at least one of its processes is; else nothing below is known */
	struct live_judged hangs;
	struct live_judged speed;
};

/* What a rank does on a communicator, the same words in top and on the page. */
enum live_state {
	LIVE_RUNNING = 0,
	LIVE_IDLE = 1,	      /* called nothing for 5 s, and is in nothing */
	LIVE_NO_PROGRESS = 2, /* the same, and is in an operation */
	LIVE_LAST = 3,	      /* the straggler: others wait for it */
	LIVE_STUCK = 4,	      /* in an operation for longer than the hang limit */
	LIVE_NOT_ARRIVED =
		5, /* others have been in a collective for a while that it has not called */
	LIVE_FINALIZED = 6,
	LIVE_ENDED = 7,
	LIVE_KILLED = 8,
	LIVE_UNKNOWN = 9, /* whether the process runs */
	LIVE_STATES = 10,
};
const char *live_state_name(enum live_state state); /* "running", "not arrived", ... */

struct live {
	struct live_limits limits;
	struct job job;		     /* of the last scan */
	struct live_seat *seats;     /* [job.seat_count] */
	struct live_comm *comms;     /* [job.comm_count] */
	struct live_job *jobs;	     /* [job.group_count] */
	struct live_notice *notices; /* most serious first */
	size_t notice_count;
	size_t notices_left_out;
	/* The doctor's verdicts, most serious first: hung ranks and their cause as of the last scan
	 * (hang_find()), and what live_judge() found slow repeatedly. What other nodes would add is missing
	 * here: hangs that only they can explain are one verdict per job, VERDICT_ELSEWHERE. Valid until the
	 * next scan. */
	struct verdicts verdicts;
	uint64_t looks;
	uint64_t wall_ns;	    /* of the last scan */
	uint64_t elapsed_ns;	    /* between the last two; 0 at the first */
	struct live_memory *memory; /* what is carried from scan to scan, by identity */
};

void live_init(struct live *live, const struct live_limits *limits);
void live_release(struct live *live);

/*
 * One scan. `recording` (with totals) must stay unchanged until the next scan or the release. monotonic_ns
 * only increases; wall_ns is for display. On ERR_NO_SPACE (out of memory) the results of the last scan
 * stay, and they point into the last scan's recording: release before going on.
 */
enum status live_look(struct live *live, const struct recording *recording, uint64_t monotonic_ns,
		      uint64_t wall_ns);

/*
 * Judges the speed of one job with the doctor's rules (slow_find()): all operations that the buffers of its
 * processes still hold. At most one job per call, each at most once in LIVE_JUDGE_NS, and so rarely that
 * judging takes 0.5% of a core. Call after live_look(), at the same time; what it found is part of the next
 * scan. False: none was due.
 */
#define LIVE_JUDGE_NS UINT64_C(10000000000)
bool live_judge(struct live *live, uint64_t monotonic_ns);

/*
 * The same in three steps. The one in the middle takes the time and changes nothing but the judgement, so a fork of the
 * caller can do it while scans go on; the last one needs nothing else of it. False: none is due.
 */
struct live_judgement {
	uint64_t key; /* of the job */
	uint64_t monotonic_ns, wall_ns;
	enum status status;
	bool is_judged; /* stragglers were */
	bool has_wall;
	uint64_t start_ns, end_ns; /* of the operations that were compared */
	struct verdicts found;
};
bool live_judge_begin(struct live *live, uint64_t monotonic_ns, struct live_judgement *judgement);
void live_judge_compare(const struct live *live, struct live_judgement *judgement);
/* Releases the judgement. A job that is gone by now has none. */
void live_judge_end(struct live *live, struct live_judgement *judgement, uint64_t cpu_ns);

/* "Speed: judged over the last 2 min, nothing slow": one sentence for both, without what should be typed. */
void live_say_hangs(char *text, size_t size, const struct live_job *job);
void live_say_speed(char *text, size_t size, const struct live_job *job);
/* Judged, all of it, and nothing was found. */
bool live_is_fine(const struct live_judged *judged);

/* How long ranks of a job may wait: index into job.groups. */
uint64_t live_hang_ns(const struct live *live, uint32_t group);

enum live_state live_state(const struct live *live, uint32_t seat);

/* Appends "rank 5, which has not called it": a rank that died or has not called the collective that this seat
 * is in. That is why it waits, whatever the network shows. False: none. */
bool live_say_absent(char *text, size_t size, const struct live *live, uint32_t seat);

/* The communicator that a verdict is about, of its job: index into job.comms; UINT32_MAX none. */
uint32_t live_verdict_comm(const struct live *live, const struct verdict *verdict);

/* What cannot be judged without GPU times, and should be. */
enum live_doubt {
	LIVE_NO_DOUBT = 0,
	LIVE_DOUBT_HANG =
		1, /* no rank calls anything, and nothing shows whether the last calls are over */
	LIVE_DOUBT_SLOW = 2, /* operations come at a lower rate than ever, and are not timed */
};
/* Of a communicator: index into job.comms. *figure: seconds without a call, or the slowdown. */
enum live_doubt live_doubt(const struct live *live, uint32_t comm, double *figure);

/* The sums of one total; factor by the communicator's size. */
void live_sums_add(struct live_sums *sums, const struct region_total *total, int nranks);

/* The i-th point of a history, 0 the oldest. */
const struct live_point *live_point(const struct live_history *history, uint32_t i);

#endif
