/*
 * Matches the ranks of one shared collective, without clocks.
 *
 * In a collective that synchronizes its ranks all end at the same moment, so the last to arrive has the
 * shortest duration:
 *
 *	wait(r) = duration(r) - shortest duration of that collective
 *
 * What matches: operations with the same (communicator, match, call or replay, source of time) that agree
 * on rolling signature, function, datatype, algorithm, protocol, size class (and user tag, if tags are part
 * of a key). Ranks that disagree make a separate match, a variant; those in the smaller one are counted as
 * differing. Synchronizing: AllReduce, AllGather, ReduceScatter, AlltoAll. Sources of time: kernel_gpu and
 * proxy, never mixed.
 *
 * A match may lack ranks (not recorded, no duration, still in flight). Then wait(r) is computed from the
 * others: a lower bound, as a missing rank may have arrived last. Such matches are counted in `partial`;
 * stragglers are named only from those with at least 3/4 of their ranks.
 *
 * Storage: operations are read once, process by process. A collective has 48 bytes (struct meet_slot), in
 * chunks of MEET_CHUNK consecutive match numbers; per rank and chunk there is one bit per collective and
 * three sums (struct meet_part). The sums of durations are known after the pass, the sums of the shortest
 * durations follow from slots and bits. So memory is
 *
 *	48 bytes per distinct collective + 1 byte per operation
 *
 * and the results are exact to the nanosecond. At most `limit` collectives are kept; if counters show
 * beforehand that there are more, one in `stride` chunks is kept (the same for all ranks), else later ones
 * are left out; `left_out` counts operations.
 */
#ifndef MEET_H
#define MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/job.h"
#include "common/status.h"

/* Where a seat's operations of one source go, while its process is read: see meet_cursor.h. */
struct meet_cursor;

enum {
	MEET_CHUNK = 32,
	MEET_STORE = 8192, /* chunks that are allocated together: 12 MiB, as far as they are used */
	MEET_LIMIT = 4 << 20,
	MEET_VARIANTS = 4,
	MEET_KINDS_MAX = 65535,
};

struct meet_slot {
	uint64_t sum_ns;    /* of the matched durations */
	uint64_t least_ns;  /* shortest duration */
	uint64_t second_ns; /* the next shortest; UINT64_MAX with only one rank */
	uint64_t end_ns;    /* done_ns of the first matched rank, on that process's recorder
			       clock */
	uint32_t signature; /* lower half of it; 0 unknown */
	uint16_t kind;	    /* index into meet_comm.kinds; 0: no match here */
	uint16_t owner;	    /* index in job_comm.seats: the owner of end_ns */
	uint16_t count;	    /* ranks matched; 0: no match here */
	uint16_t last;	    /* index in job_comm.seats: shortest duration */
	float bytes;	    /* of the message, from the first rank; 0 unknown */
};
_Static_assert(sizeof(struct meet_slot) == 48, "meet.h says 48 bytes per collective");

/* What many collectives of a communicator have in common. */
struct meet_kind {
	uint64_t tag;	/* 0 unless tags are part of a key */
	uint32_t names; /* function, datatype, algorithm, protocol as in op_kind_names(), with
			   job-wide numbers */
	uint8_t size_class;
};

struct meet_chunk {
	struct meet_slot slots[MEET_CHUNK];
};

/* Frequently used data of a chunk, separate from its slots: many of these share a cache line. All but the
 * number are set by meet_finish(). */
struct meet_brief {
	uint64_t number;   /* match / MEET_CHUNK */
	uint64_t least_ns; /* sum of the shortest durations of all its matches */
	double mean_ns;	   /* sum of mean durations */
	uint32_t occupied; /* bit i: slots[i].count > 0 */
	uint32_t fewest;   /* ranks in the smallest of its matches; 0 if there is none */
};

/* What one seat did in one chunk. */
struct meet_part {
	uint32_t chunk;	 /* index into meet_lane.chunks */
	uint32_t bits;	 /* bit i: it is in slots[i] */
	uint64_t sum_ns; /* its durations */
	/* Its transfers, only of the largest messages of rings: those use all channels of all ranks
	 * equally. */
	uint64_t send_net_ns; /* total time on the wire */
	uint32_t send_steps;  /* how many */
	uint32_t wire_class;  /* size class of these messages */
};
_Static_assert(sizeof(struct meet_part) == MEET_CHUNK, "meet.h says 1 byte per operation");

/* A seat's part of a lane. */
struct meet_seat {
	struct meet_part *parts; /* in the order in which chunks were reached */
	uint32_t count;
	uint32_t room;
	uint32_t next_chunk; /* none of its parts is in this chunk, or in a later one */
};

/* What a seat has in a lane, by kind. */
struct meet_sum {
	uint64_t joined;
	uint64_t least_ns; /* sum of the shortest durations of its matches */
	uint64_t alone;	   /* of joined: no other rank */
	uint64_t alone_ns; /* durations of these */
	/* For a whole lane only: matches of at least two ranks, and the logarithms of their shortest
	 * durations in ns. */
	uint64_t moves;
	double move_log_sum;
	double move_log_squares;
};

/* One sequence of matches: calls or replays of one communicator, one source of time, one variant. */
struct meet_lane {
	uint32_t comm;	/* index into job.comms */
	uint8_t source; /* enum op_time_source */
	uint8_t variant;
	bool is_replay;
	bool has_owner;
	uint16_t owner;		    /* first matched seat */
	struct meet_chunk **chunks; /* parts of meet.stores */
	struct meet_brief *briefs;  /* as chunks */
	uint32_t chunk_count;
	uint32_t chunk_room;
	uint32_t *table; /* hash of chunk numbers: index + 1 */
	uint32_t table_size;
	struct meet_seat *seats; /* as job_comm.seats */
	struct meet_sum *sums;	 /* of all matches, by kind; set by meet_finish() */
};

enum { MEET_LANES = 2 * 2 * MEET_VARIANTS }; /* source, replay, variant */

struct meet_comm {
	struct meet_lane *lanes[MEET_LANES]; /* NULL: nothing there */
	struct meet_kind *kinds;	     /* from 1 on: the first entry means none */
	uint32_t kind_count;
	uint32_t kind_hint;
	uint64_t complete; /* after meet_finish(), as below */
	uint64_t partial;
	uint64_t wait_ns;
	uint64_t differing;
	uint64_t first_difference; /* match number, 0 none */
};

/* Two processes with shared collectives: clock of `process` + offset = clock of `other`. For align.h. */
struct meet_edge {
	uint32_t process;
	uint32_t other;
	uint32_t samples;
	int64_t offset_ns; /* at middle_ns of process */
	double drift;
	double spread_ns; /* 90% of samples are within it */
	uint64_t middle_ns;
};

struct meet {
	const struct job *job;
	struct meet_comm *comms; /* as job.comms */
	size_t limit;		 /* maximum number of collectives kept */
	uint32_t stride;	 /* one in this many chunks is kept */
	size_t slot_count;
	size_t part_count;
	struct meet_chunk **stores; /* each has MEET_STORE chunks, in the order they were needed */
	size_t store_count;
	uint32_t store_left; /* unused chunks of the last one */
	enum status status;  /* first failure */
	struct meet_edge *edges;
	size_t edge_count;
	/* What happened to the operations of synchronizing collectives: */
	uint64_t joined;    /* matched (also with one rank only) */
	uint64_t untimed;   /* no duration, or one from the host's clock: cannot be compared */
	uint64_t unmatched; /* no match number, or a communicator without a hash */
	uint64_t repeated;  /* duplicate number */
	uint64_t left_out;  /* beyond the limit */
	uint64_t differing; /* of joined: in the smaller of two variants; after meet_finish() */
	/* And the matches, after meet_finish(): */
	uint64_t complete; /* all ranks of the communicator */
	uint64_t partial;  /* at least two, not all */
	uint64_t alone;	   /* one rank: says nothing about waiting */
	uint64_t wait_ns;  /* total waiting, over all ranks */
};

bool meet_is_synchronising(uint8_t function);

/* job is borrowed until meet_release(). limit 0: MEET_LIMIT. */
enum status meet_init(struct meet *meet, const struct job *job, size_t limit);
void meet_release(struct meet *meet);

/* The number of a kind within a communicator, from 1; MEET_KINDS_MAX: too many, or out of memory. */
uint32_t meet_kind(struct meet *meet, uint32_t comm, const struct meet_kind *kind);

/* NULL: out of memory, or the source cannot be compared, or ranks are unknown. */
struct meet_cursor *meet_cursor_new(struct meet *meet, const struct job_seat *seat, uint8_t source,
				    bool is_replay);
/* Also uses the clock samples. NULL is allowed. */
void meet_cursor_free(struct meet_cursor *cursor);

struct meet_op {
	uint64_t match;
	uint64_t signature;
	uint64_t duration_ns;
	uint64_t end_ns; /* done_ns */
	uint64_t send_net_ns;
	uint32_t send_steps;
	uint32_t kind; /* meet_kind() */
	float bytes;   /* 0 unknown */
	/* Size class if time on the wire can be compared between ranks (all of a ring send equally), else
	 * 0. */
	uint32_t wire_class;
};

/* What many operations of one cursor have in common. */
struct meet_what {
	struct meet_cursor *cursor; /* NULL: not matched */
	uint32_t kind;
	uint32_t wire_class;
};

/* Operations as columns. */
struct meet_columns {
	const uint64_t *match;
	const uint64_t *signature;
	const uint64_t *duration_ns;
	const uint64_t *end_ns;
	const uint64_t *send_net_ns;
	const uint64_t *steps; /* OP_WORD_STEPS */
	const uint64_t *bytes; /* OP_BYTES_UNKNOWN unknown */
};

/* All operations are added: compare variants, count. */
enum status meet_finish(struct meet *meet);

/* Adds what a seat has to sums[kind], kind_count of them. After meet_finish(). */
void meet_sums(const struct meet_lane *lane, uint32_t kind_count, uint32_t seat,
	       struct meet_sum *sums);

/* Lower half of the signature of a call's match, of the first variant; 0 if there is none. */
uint32_t meet_signature(const struct meet *meet, uint32_t comm, uint64_t match);

/* The sums over the slots of one chunk that are set in `bits`. */
struct meet_slice {
	uint32_t meetings;
	uint64_t least_ns;
	double mean_ns; /* sum of the mean durations */
};
struct meet_slice meet_slice(const struct meet_lane *lane, uint32_t chunk, uint32_t bits);

/* Chunks in the order of their numbers, which is that of time. */
struct meet_order {
	uint64_t number;
	uint32_t chunk; /* index into meet_lane.chunks */
};
void meet_order_sort(struct meet_order *order, uint32_t count);

#endif
