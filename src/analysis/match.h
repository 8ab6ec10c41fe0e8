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
 * differing. Synchronizing: AllReduce, AllGather, ReduceScatter, AlltoAll. Sources of time are never mixed.
 *
 * Network spans are no durations (op_is_duration()): nothing above follows from them. They are matched for what they
 * have, the time on the wire of a transfer. There least_ns is that of the fastest sender, 0 if no rank sends, and
 * sum_ns has the spans, which bound durations from above: see match_has_spans().
 *
 * A match may lack ranks (not recorded, no duration, still in flight). Then wait(r) is computed from the
 * others: a lower bound, as a missing rank may have arrived last. Such matches are counted in `partial`;
 * stragglers are named only from those with at least 3/4 of their ranks.
 *
 * Storage: operations are read once, process by process. A collective has 48 bytes (struct match_slot), in
 * chunks of MATCH_CHUNK consecutive match numbers; per rank and chunk there is one bit per collective and
 * three sums (struct match_part). The sums of durations are known after the pass, the sums of the shortest
 * durations follow from slots and bits. So memory is
 *
 *	48 bytes per distinct collective + 1 byte per operation
 *
 * and the results are exact to the nanosecond. At most `limit` collectives are kept; if counters show
 * beforehand that there are more, one in `stride` chunks is kept (the same for all ranks), else later ones
 * are left out; `left_out` counts operations.
 */
#ifndef MATCH_H
#define MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/align_fit.h"
#include "analysis/job.h"
#include "common/attributes.h"
#include "common/status.h"

/* Where a seat's operations of one source go, while its process is read: see struct match_cursor. */
struct match_cursor;

enum {
	MATCH_CHUNK = 32,
	MATCH_STORE =
		8192, /* chunks that are allocated together: 12 MiB, as far as they are used */
	MATCH_LIMIT = 4 << 20,
	MATCH_VARIANTS = 4,
	MATCH_KINDS_MAX = 65535,
};

/* Of the end of an operation: it is not known well enough to compare clocks. */
#define MATCH_END_ROUGH (UINT64_C(1) << 63)

struct match_slot {
	uint64_t sum_ns;    /* of the matched durations, or spans */
	uint64_t least_ns;  /* shortest duration; of spans the shortest time on the wire */
	uint64_t second_ns; /* the next shortest; UINT64_MAX with only one rank */
	uint64_t end_ns;    /* done_ns of the first matched rank, on that process's recorder
			       clock; perhaps with MATCH_END_ROUGH */
	uint32_t signature; /* lower half of it; 0 unknown */
	uint16_t kind;	    /* index into match_comm.kinds; 0: no match here */
	uint16_t owner;	    /* index in job_comm.seats: the owner of end_ns */
	uint16_t count;	    /* ranks matched; 0: no match here */
	uint16_t last;	    /* index in job_comm.seats: shortest duration */
	float bytes;	    /* of the message, from the first rank; 0 unknown */
};
_Static_assert(sizeof(struct match_slot) == 48, "match.h says 48 bytes per collective");

/* What many collectives of a communicator have in common. */
struct match_kind {
	uint64_t tag;	/* 0 unless tags are part of a key */
	uint32_t names; /* function, datatype, algorithm, protocol as in op_kind_names(), with
			   job-wide numbers */
	uint8_t size_class;
};

struct match_chunk {
	struct match_slot slots[MATCH_CHUNK];
};

/* Frequently used data of a chunk, separate from its slots: many of these share a cache line. All but the
 * number are set by match_finish(). */
struct match_brief {
	uint64_t number;   /* match / MATCH_CHUNK */
	uint64_t least_ns; /* sum of the shortest durations of all its matches */
	double mean_ns;	   /* sum of mean durations */
	uint32_t occupied; /* bit i: slots[i].count > 0 */
	uint32_t
		fewest; /* ranks in the smallest of its matches (of spans: those of rings); 0 if there is none */
};

/* What one seat did in one chunk. */
struct match_part {
	uint32_t chunk;	 /* index into match_lane.chunks */
	uint32_t bits;	 /* bit i: it is in slots[i] */
	uint64_t sum_ns; /* its durations */
	/* Its transfers, only of the largest messages of rings: those use all channels of all ranks
	 * equally. */
	uint64_t send_net_ns; /* total time on the wire */
	uint32_t send_steps;  /* how many */
	uint32_t wire_class;  /* size class of these messages */
};
_Static_assert(sizeof(struct match_part) == MATCH_CHUNK, "match.h says 1 byte per operation");

/* A seat's part of a lane. */
struct match_seat {
	struct match_part *parts; /* in the order in which chunks were reached */
	uint32_t count;
	uint32_t room;
	uint32_t next_chunk; /* none of its parts is in this chunk, or in a later one */
};

/* What a seat has in a lane, by kind. */
struct match_sum {
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
struct match_lane {
	uint32_t comm;	/* index into job.comms */
	uint8_t source; /* op_shown_source() */
	uint8_t variant;
	bool is_replay;
	bool has_owner;
	uint16_t owner;		     /* first matched seat */
	struct match_chunk **chunks; /* parts of matches.stores */
	struct match_brief *briefs;  /* as chunks */
	uint32_t chunk_count;
	uint32_t chunk_room;
	uint32_t *table; /* hash of chunk numbers: index + 1 */
	uint32_t table_size;
	struct match_seat *seats; /* as job_comm.seats */
	struct match_sum *sums;	  /* of all matches, by kind; set by match_finish() */
};

/* Calls and replays with times of one source: operations of different sequences are not compared. */
enum { MATCH_SEQUENCES = 2 * 4, MATCH_LANES = MATCH_SEQUENCES * MATCH_VARIANTS };

/* Only of these times something follows from a comparison of ranks. */
static inline bool match_can_compare(uint8_t source)
{
	return op_is_duration(source) || source == OP_TIME_PROXY;
}

static inline unsigned int match_sequence(uint8_t source, bool is_replay)
{
	unsigned int of_source = source == OP_TIME_PROXY	? 1
				 : source == OP_TIME_CUDA_EVENT ? 2
				 : source == OP_TIME_TOOL	? 3
								: 0;

	return of_source + (is_replay ? MATCH_SEQUENCES / 2 : 0);
}

/* Of operations without a duration: only their time on the wire is compared. */
static inline bool match_has_spans(const struct match_lane *lane)
{
	return !op_is_duration(lane->source);
}

struct match_comm {
	struct match_lane *lanes[MATCH_LANES]; /* NULL: nothing there */
	struct match_kind *kinds;	       /* from 1 on: the first entry means none */
	uint32_t kind_count;
	uint32_t kind_hint;
	uint64_t complete; /* after match_finish(), as below */
	uint64_t partial;
	uint64_t wait_ns;
	uint64_t differing;
	uint64_t first_difference; /* match number, 0 none */
};

/* Two processes with shared collectives: clock of `process` + offset = clock of `other`. For align.h. */
struct match_edge {
	uint32_t process;
	uint32_t other;
	uint32_t samples;
	int64_t offset_ns; /* at middle_ns of process */
	double drift;
	double spread_ns; /* 90% of samples are within it */
	uint64_t middle_ns;
};

struct matches {
	const struct job *job;
	struct match_comm *comms; /* as job.comms */
	size_t limit;		  /* maximum number of collectives kept */
	uint32_t stride;	  /* one in this many chunks is kept */
	size_t slot_count;
	size_t part_count;
	struct match_chunk *
		*stores; /* each has MATCH_STORE chunks, in the order they were needed */
	size_t store_count;
	uint32_t store_left; /* unused chunks of the last one */
	enum status status;  /* first failure */
	struct match_edge *edges;
	size_t edge_count;
	/* What happened to the operations of synchronizing collectives: */
	uint64_t joined;    /* matched (also with one rank only) */
	uint64_t untimed;   /* no duration, or one from the host's clock: cannot be compared */
	uint64_t unmatched; /* no match number, or a communicator without a hash */
	uint64_t repeated;  /* duplicate number */
	uint64_t left_out;  /* beyond the limit */
	uint64_t differing; /* of joined: in the smaller of two variants; after match_finish() */
	/* And the matches, after match_finish(), as far as they have durations: */
	uint64_t complete; /* all ranks of the communicator */
	uint64_t partial;  /* at least two, not all */
	uint64_t alone;	   /* one rank: says nothing about waiting */
	uint64_t wait_ns;  /* total waiting, over all ranks */
};

bool match_is_synchronising(uint8_t function);

/* job is borrowed until match_release(). limit 0: MATCH_LIMIT. */
enum status match_init(struct matches *matches, const struct job *job, size_t limit);
void match_release(struct matches *matches);

/* The number of a kind within a communicator, from 1; MATCH_KINDS_MAX: too many, or out of memory. */
uint32_t match_kind(struct matches *matches, uint32_t comm, const struct match_kind *kind);

/* NULL: out of memory, or the source cannot be compared, or ranks are unknown. */
struct match_cursor *match_cursor_new(struct matches *matches, const struct job_seat *seat,
				      uint8_t source, bool is_replay);
/* Also uses the clock samples. NULL is allowed. */
void match_cursor_free(struct match_cursor *cursor);

struct match_op {
	uint64_t match;
	uint64_t signature;
	uint64_t duration_ns;
	uint64_t
		ranked_ns; /* the same, or of spans the time on the wire of a transfer; 0: it sent nothing */
	uint64_t end_ns; /* done_ns, perhaps with MATCH_END_ROUGH; 0 unknown */
	uint64_t send_net_ns;
	uint32_t send_steps;
	uint32_t kind; /* match_kind() */
	float bytes;   /* 0 unknown */
	/* Size class if time on the wire can be compared between ranks (all of a ring send equally), else
	 * 0. */
	uint32_t wire_class;
};

/* What many operations of one cursor have in common. */
struct match_what {
	struct match_cursor *cursor; /* NULL: not matched */
	uint32_t kind;
	uint32_t wire_class;
	bool has_shared; /* OP_FLAG_SHARED_TIME: its bytes and its time say nothing of each other */
	bool is_rough;	 /* OP_FLAG_PLACE_ROUGH: their ends have MATCH_END_ROUGH */
};

/* Operations as columns. */
struct match_columns {
	const uint64_t *match;
	const uint64_t *signature;
	const uint64_t *duration_ns;
	const uint64_t *ranked_ns;
	const uint64_t *end_ns;
	const uint64_t *send_net_ns;
	const uint64_t *steps; /* OP_WORD_STEPS */
	const uint64_t *bytes; /* OP_BYTES_UNKNOWN unknown */
};

/* All operations are added: compare variants, count. */
enum status match_finish(struct matches *matches);

/* Adds what a seat has to sums[kind], kind_count of them. After match_finish(). */
void match_sums(const struct match_lane *lane, uint32_t kind_count, uint32_t seat,
		struct match_sum *sums);

/* Of the messages over the network, of that many seats: the class of the largest. 0: there are none. */
uint32_t match_largest_class(const struct match_lane *lane, uint32_t seats);

/* Lower half of the signature of a call's match, of the first variant; 0 if there is none. */
uint32_t match_signature(const struct matches *matches, uint32_t comm, uint64_t match);

/* The sums over the slots of one chunk that are set in `bits`. */
struct match_slice {
	uint32_t matches;
	uint64_t least_ns;
	double mean_ns; /* sum of the mean durations */
};
struct match_slice match_slice(const struct match_lane *lane, uint32_t chunk, uint32_t bits);

/* Chunks in the order of their numbers, which is that of time. */
struct match_order {
	uint64_t number;
	uint32_t chunk; /* index into match_lane.chunks */
};
void match_order_sort(struct match_order *order, uint32_t count);

/*
 * Where a seat's operations of one source go, while its process is read. The path of nearly all operations
 * is in this header, because it is taken millions of times.
 */

enum { MATCH_SAMPLES = 256 };

struct match_cursor {
	struct matches *matches;
	struct match_comm *comm;
	struct match_lane *lane;
	struct match_chunk *chunk;
	struct match_part *part;
	uint64_t number; /* of chunk */
	uint32_t hint;	 /* index of the previous chunk */
	uint32_t seat;	 /* index in job_comm.seats */
	uint32_t comm_index;
	uint32_t process;
	uint8_t source;
	bool is_replay;
	/* Moments that the lane's owner also has: every `step`-th, thinned out when full. */
	uint32_t sample_count;
	uint32_t sample_step;
	uint32_t sample_skip;
	struct align_sample samples[MATCH_SAMPLES];
};

void match_cursor_move(struct match_cursor *cursor, uint64_t number);
/* match_add(), out of line; without a match number it is counted as such. */
bool match_cursor_add(struct match_cursor *cursor, const struct match_op *op);
bool match_cursor_turn(struct match_cursor *cursor, const struct match_op *op);
void match_slot_start(struct match_cursor *cursor, struct match_slot *slot,
		      const struct match_op *op);
void match_take_sample(struct match_cursor *cursor, const struct match_slot *slot, uint64_t end_ns);

static inline bool match_is_agreed(const struct match_slot *slot, const struct match_op *op)
{
	return slot->kind == op->kind && slot->signature == (uint32_t)op->signature;
}

static inline void match_slot_join(struct match_cursor *cursor, struct match_slot *slot,
				   const struct match_op *op)
{
	uint64_t ns = op->ranked_ns;
	/* 0 is no value: below it, as an unsigned number, is the largest. */
	bool is_least = ns - 1 < slot->least_ns - 1;
	uint64_t other = is_least ? slot->least_ns : ns;

	slot->sum_ns += op->duration_ns;
	slot->count++;
	slot->second_ns = other - 1 < slot->second_ns - 1 ? other : slot->second_ns;
	slot->least_ns = is_least ? ns : slot->least_ns;
	slot->last = is_least ? (uint16_t)cursor->seat : slot->last;
	if (slot->owner == cursor->lane->owner && ++cursor->sample_skip >= cursor->sample_step)
		match_take_sample(cursor, slot, op->end_ns);
}

/* Only the largest messages count. */
static inline void match_add_wire(struct match_part *part, uint32_t wire_class,
				  uint64_t send_net_ns, uint32_t send_steps)
{
	if (wire_class < part->wire_class)
		return;
	if (wire_class > part->wire_class) {
		part->wire_class = wire_class;
		part->send_net_ns = 0;
		part->send_steps = 0;
	}
	part->send_net_ns += send_net_ns;
	part->send_steps += send_steps;
}

/* Fast for ascending match numbers. True if it was matched. */
static inline bool match_add(struct match_cursor *cursor, const struct match_op *op)
{
	uint64_t number = op->match / MATCH_CHUNK;
	unsigned int place = op->match % MATCH_CHUNK;
	struct match_slot *slot;

	if (UNLIKELY(number != cursor->number))
		match_cursor_move(cursor, number);
	if (UNLIKELY(cursor->chunk == NULL || op->kind >= MATCH_KINDS_MAX)) {
		cursor->matches->left_out++;
		return false;
	}
	slot = &cursor->chunk->slots[place];
	/* Prefetches some collectives ahead; beyond the end of the chunk it is harmless. */
	__builtin_prefetch(slot + 12, 1);
	/* In a variant with only this rank, it may have returned to the others. */
	if (UNLIKELY((slot->count > 0 && !match_is_agreed(slot, op)) ||
		     (slot->count == 0 && cursor->lane->variant > 0))) {
		if (!match_cursor_turn(cursor, op)) {
			cursor->matches->left_out++;
			return false;
		}
		slot = &cursor->chunk->slots[place];
	}
	if (UNLIKELY(cursor->part->bits >> place & 1)) {
		cursor->matches->repeated++;
		return false;
	}
	cursor->part->bits |= UINT32_C(1) << place;
	cursor->part->sum_ns += op->duration_ns;
	match_add_wire(cursor->part, op->wire_class, op->send_net_ns, op->send_steps);
	if (slot->count == 0)
		match_slot_start(cursor, slot, op);
	else
		match_slot_join(cursor, slot, op);
	cursor->matches->joined++;
	return true;
}

/*
 * Many of one cursor, in sequence: what does not change from one to the next, and the sums, stay in
 * registers. Nothing else may be added to this cursor between start and end.
 *
 *	match_run_start(&run, cursor);
 *	for (...)
 *		is_joined = match_run_add(&run, columns, row, what);
 *	match_run_end(&run);
 */
struct match_run {
	struct match_cursor *cursor; /* NULL: none yet */
	struct match_slot *slots;
	uint64_t number; /* of the chunk; UINT64_MAX: there is none */
	struct match_part part;
	uint32_t joined;
	uint32_t samples_left; /* to skip before the next is taken */
	uint16_t owner;
	uint16_t seat;
};

static inline void match_run_start(struct match_run *run, struct match_cursor *cursor)
{
	run->cursor = cursor;
	run->number = UINT64_MAX;
	run->joined = 0;
	run->samples_left = cursor->sample_step - cursor->sample_skip;
	run->owner = cursor->lane->owner;
	run->seat = (uint16_t)cursor->seat;
	if (cursor->chunk == NULL)
		return;
	run->number = cursor->number;
	run->slots = cursor->chunk->slots;
	run->part = *cursor->part;
}

static inline void match_run_end(struct match_run *run)
{
	struct match_cursor *cursor = run->cursor;

	if (cursor == NULL)
		return;
	cursor->sample_skip = cursor->sample_step - run->samples_left;
	cursor->matches->joined += run->joined;
	if (run->number != UINT64_MAX)
		*cursor->part = run->part;
}

static inline uint64_t match_end_ns(uint64_t end_ns, const struct match_what *what)
{
	return what->is_rough ? end_ns | MATCH_END_ROUGH : end_ns;
}

/* The first of its match, another chunk, or something that does not fit. */
static inline bool match_run_add_alone(struct match_run *run, const struct match_columns *columns,
				       uint32_t row, const struct match_what *what)
{
	struct match_cursor *cursor = run->cursor;
	uint64_t bytes = columns->bytes[row];
	const struct match_op op = {
		.match = columns->match[row],
		.signature = columns->signature[row],
		.duration_ns = columns->duration_ns[row],
		.ranked_ns = columns->ranked_ns[row],
		.end_ns = match_end_ns(columns->end_ns[row], what),
		.send_net_ns = columns->send_net_ns[row],
		.send_steps = (uint32_t)columns->steps[row],
		.kind = what->kind,
		.bytes = bytes == OP_BYTES_UNKNOWN || what->has_shared ? 0 : (float)bytes,
		.wire_class = what->wire_class,
	};
	bool is_joined;

	match_run_end(run);
	is_joined = match_cursor_add(cursor, &op);
	match_run_start(run, cursor);
	return is_joined;
}

static inline void match_run_sample(struct match_run *run, const struct match_slot *slot,
				    uint64_t end_ns)
{
	match_take_sample(run->cursor, slot, end_ns);
	run->samples_left = run->cursor->sample_step;
}

static inline bool match_run_add(struct match_run *run, const struct match_columns *columns,
				 uint32_t row, const struct match_what *what)
{
	uint64_t match = columns->match[row], ns = columns->ranked_ns[row], other;
	uint32_t place = match % MATCH_CHUNK;
	struct match_slot *slot;
	bool is_least;

	if (UNLIKELY(match / MATCH_CHUNK != run->number))
		return match_run_add_alone(run, columns, row, what);
	slot = &run->slots[place];
	/* Prefetches some collectives ahead, also in the next chunk: they are contiguous. */
	__builtin_prefetch(slot + 32, 1);
	/* All that must agree, at once. Free slots have kind 0. */
	if (UNLIKELY((slot->signature ^ (uint32_t)columns->signature[row]) |
		     (slot->kind ^ what->kind) | (uint32_t)(slot->owner ^ run->owner) |
		     (run->part.bits >> place & 1)))
		return match_run_add_alone(run, columns, row, what);
	run->part.bits |= UINT32_C(1) << place;
	run->part.sum_ns += columns->duration_ns[row];
	if (what->wire_class >= run->part.wire_class)
		match_add_wire(&run->part, what->wire_class, columns->send_net_ns[row],
			       (uint32_t)columns->steps[row]);
	is_least = ns - 1 < slot->least_ns - 1;
	other = is_least ? slot->least_ns : ns;
	slot->sum_ns += columns->duration_ns[row];
	slot->count++;
	slot->second_ns = other - 1 < slot->second_ns - 1 ? other : slot->second_ns;
	slot->least_ns = is_least ? ns : slot->least_ns;
	slot->last = is_least ? run->seat : slot->last;
	run->joined++;
	if (UNLIKELY(--run->samples_left == 0))
		match_run_sample(run, slot, match_end_ns(columns->end_ns[row], what));
	return true;
}

#endif
