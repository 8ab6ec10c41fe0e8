/* What is carried from scan to scan. */
#ifndef LIVE_INTERNAL_H
#define LIVE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/live.h"
#include "doctor/verdict.h"

/* Collectives of one function and size class on one seat: for waiting. */
struct live_row {
	uint16_t key; /* function << 8 | size class */
	bool is_based;
	bool is_exact;	     /* when the base was taken all seats had finished equally many */
	bool is_exact_timed; /* the same for the timed ones */
	uint64_t count;	     /* now */
	uint64_t timed;
	uint64_t sum_ns;
	uint64_t base_count; /* up to which they were matched */
	uint64_t base_timed;
	uint64_t base_sum_ns;
};

struct live_seat_memory {
	struct live_sums sums;
	uint64_t wait_ns;
	bool knows_wait;	 /* it was matched at least once */
	uint64_t window_wait_ns; /* since the communicator's window began */
	struct live_history history;
	struct live_row *rows; /* by key; at most one per synchronizing function and size class */
	uint32_t row_count;
	uint64_t issued;
	uint64_t finished;
	uint64_t moved_ns; /* monotonic: when one of these two last changed; 0: never scanned */
	bool is_unmoved;   /* since the first scan */
};

struct live_comm_memory {
	struct live_history history;
	uint64_t window_began_ns; /* 0: none in progress */
	uint64_t straggler_key;	  /* of the seat that the last windows agree on; 0 none */
	uint64_t straggler_since_ns;
	double straggler_share; /* of the last window */
	bool was_joined;	/* in the current window */
	uint64_t missed;	/* unreported calls, at the last scan */
	uint64_t user_tag;	/* of operations in flight; 0: none was tagged */
	uint32_t tag_looks;	/* scans that saw it */
	bool has_several_tags;
};

struct live_process_memory {
	bool was_seen;
	uint64_t counts_ns;	  /* recorder's clock as last read */
	uint64_t counted_ns;	  /* monotonic: when that was */
	uint64_t now_ns;	  /* the recorder's current clock; 0 unknown */
	uint64_t dead_ns;	  /* monotonic: first scan at which it was dead; 0 it was not */
	uint64_t lost;		  /* whole operations */
	uint64_t losing_since_ns; /* monotonic; 0: not recently */
	uint64_t lost_before;	  /* when that began */
	uint64_t lost_at_ns;	  /* monotonic: the last time that some were */
};

/* Sorted by key: the indices of the last scan. */
struct live_place {
	uint64_t key;
	uint32_t index;
	bool is_taken;
};

/* Something slow that a judgement found. */
struct live_slow {
	uint64_t key;
	struct verdicts verdict; /* one, as last found */
	uint32_t times;		 /* judgements in a row that found it */
	uint32_t missed;	 /* judgements in a row that did not */
	uint64_t found_ns;	 /* monotonic: last time */
	uint64_t found_wall_ns;
};

struct live_job_memory {
	struct live_judged speed;
	uint64_t judged_ns; /* monotonic; 0: never */
	uint64_t recorded;  /* operations finished then */
	struct live_slow *slow;
	size_t slow_count;
	bool has_hosts; /* it is known whether the host list is known */
	char *hosts;	/* of the launcher; NULL unknown */
};

struct live_given {
	uint64_t key; /* of a notice */
	uint64_t first_wall_ns;
};

struct live_memory {
	/* As job.seats, job.comms, recording.processes. */
	struct live_seat_memory *seats;
	struct live_comm_memory *comms;
	struct live_process_memory *processes;
	struct live_job_memory *jobs;
	uint64_t *seat_keys;
	uint64_t *comm_keys;
	uint64_t *process_keys;
	uint64_t *job_keys;
	size_t seat_count, comm_count, process_count, job_count;
	struct live_place *seat_places, *comm_places, *process_places, *job_places;
	uint64_t judge_ns; /* monotonic: no judgement of speed before this */
	struct live_given given[LIVE_NOTICES_MAX]; /* the notices of the last scan */
	size_t given_count;
	uint64_t monotonic_ns;			 /* of this scan */
	uint32_t seat_histories, comm_histories; /* at this scan */
	uint8_t *kinds;				 /* room for flight_kinds() of any process */
};

void live_verdicts(struct live *live);
void live_speeds(struct live *live);
void live_job_memory_release(struct live_job_memory *memory);
/* Ranks of a job that are not visible on this node. */
uint32_t live_ranks_elsewhere(const struct live *live, uint32_t job);
/* "ringside doctor --agents 'node[01-64]'", with the job's hosts if they are known. */
void live_say_agents(struct live *live, uint32_t job, char *text, size_t size);
void live_date_verdicts(struct live *live); /* job_start_wall_ns of each */
void live_notices(struct live *live);

#endif
