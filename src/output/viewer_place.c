/* Where an operation lies in a timeline: clocks, times, and when all ranks were there. */
#include "output/viewer.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/match.h"
#include "analysis/stats.h"
#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"

#define VIEWER_MEET_BYTES (UINT64_C(512) << 20)

enum {
	FIRST_WIDTH_NS = 10 * 1000 * 1000,
	LEAST_FOR_DRIFT = 8, /* intervals */
};

/* No clock drifts faster: larger values are noise. */
#define MOST_DRIFT 2e-4

void viewer_clock_init(struct viewer_clock *clock)
{
	*clock = (struct viewer_clock){ .width_ns = FIRST_WIDTH_NS };
}

static void keep_better(struct viewer_clock_best *best, const struct viewer_clock_best *other)
{
	if (other->seen_ns != 0 && (best->seen_ns == 0 || other->offset_ns > best->offset_ns))
		*best = *other;
}

/* Doubles the length of intervals: merges pairs and frees the upper half. */
static void clock_widen(struct viewer_clock *clock)
{
	for (unsigned int i = 0; i < VIEWER_CLOCK_STRETCHES; i++) {
		struct viewer_clock_best best = { 0 };

		if (i < VIEWER_CLOCK_STRETCHES / 2) {
			best = clock->best[2 * i];
			keep_better(&best, &clock->best[2 * i + 1]);
		}
		clock->best[i] = best;
	}
	clock->width_ns *= 2;
}

void viewer_clock_add(struct viewer_clock *clock, uint64_t gpu_ns, uint64_t seen_ns)
{
	struct viewer_clock_best one = { seen_ns, (int64_t)(gpu_ns - seen_ns) };
	uint64_t stretch;

	if (seen_ns == 0)
		return;
	if (clock->origin_ns == 0)
		clock->origin_ns = seen_ns;
	stretch = seen_ns > clock->origin_ns ? (seen_ns - clock->origin_ns) / clock->width_ns : 0;
	while (stretch >= VIEWER_CLOCK_STRETCHES) {
		clock_widen(clock);
		stretch /= 2;
	}
	keep_better(&clock->best[stretch], &one);
}

/* Rounds, saturating out-of-range values. */
static int64_t clock_whole_ns(double value)
{
	return value > -9e18 && value < 9e18 ? (int64_t)value : 0;
}

static double difference_ns(uint64_t later, uint64_t earlier)
{
	return (double)(int64_t)(later - earlier);
}

/* Difference of the offsets of two intervals. Damaged timestamps may be anything. */
static double clock_apart(const struct viewer_clock_best *a, const struct viewer_clock_best *b)
{
	return difference_ns((uint64_t)a->offset_ns, (uint64_t)b->offset_ns);
}

/* Median slope between intervals half the time span apart. */
static double drift_of(const struct viewer_clock_best *points, unsigned int count)
{
	unsigned int half = count / 2, used = 0;
	double slopes[VIEWER_CLOCK_STRETCHES];
	double drift;

	if (count < LEAST_FOR_DRIFT)
		return 0;
	for (unsigned int i = 0; i + half < count; i++) {
		double time = difference_ns(points[i + half].seen_ns, points[i].seen_ns);

		if (time > 0)
			slopes[used++] =
				(double)(points[i + half].offset_ns - points[i].offset_ns) / time;
	}
	drift = stats_median(slopes, used);
	return drift > MOST_DRIFT || drift < -MOST_DRIFT ? 0 : drift;
}

struct viewer_clock_fit viewer_clock_fit(const struct viewer_clock *clock)
{
	struct viewer_clock_best points[VIEWER_CLOCK_STRETCHES];
	struct viewer_clock_fit fit = { .is_known = false };
	double rest[VIEWER_CLOCK_STRETCHES];
	unsigned int count = 0;

	for (unsigned int i = 0; i < VIEWER_CLOCK_STRETCHES; i++)
		if (clock->best[i].seen_ns != 0)
			points[count++] = clock->best[i];
	if (count == 0)
		return fit;
	fit.is_known = true;
	fit.middle_ns = points[count / 2].seen_ns;
	fit.drift = drift_of(points, count);
	/* Relative to one of the points, so that doubles stay small. */
	for (unsigned int i = 0; i < count; i++)
		rest[i] = clock_apart(&points[i], &points[0]) -
			  fit.drift * difference_ns(points[i].seen_ns, fit.middle_ns);
	stats_sort(rest, count);
	/* Callbacks can be late, never early, so the offset is near the maximum. */
	fit.offset_ns = (int64_t)((uint64_t)points[0].offset_ns +
				  (uint64_t)clock_whole_ns(rest[count - 1 - count / 10]));
	return fit;
}

uint64_t viewer_clock_ns(const struct viewer_clock_fit *fit, uint64_t gpu_ns, uint64_t near_ns)
{
	double drifted = fit->drift * difference_ns(near_ns, fit->middle_ns);

	return gpu_ns - ((uint64_t)fit->offset_ns + (uint64_t)clock_whole_ns(drifted));
}

/* The year 2116: later times are damage. */
#define LAST_NS (UINT64_C(1) << 62)

const char *viewer_place_name(enum viewer_place_kind kind)
{
	static const char *const names[] = { "nowhere", "timed", "seen", "called", "in_flight" };

	return names[kind];
}

uint64_t viewer_common_ns(const struct viewer_times *times, uint64_t clock_ns)
{
	return align_ns(times->align, times->index, clock_ns);
}

static const struct viewer_clock_fit *gpu_of(const struct viewer_times *times, uint32_t comm)
{
	const struct recording_comm *of = recording_comm(times->process, comm);
	int32_t number = of ? of->info.gpu : -1;

	for (size_t i = 0; i < times->gpu_count; i++)
		if (times->gpu_numbers[i] == number)
			return &times->gpus[i];
	return NULL;
}

uint64_t viewer_gpu_ns(const struct viewer_times *times, uint32_t comm, uint64_t gpu_ns,
		       uint64_t near_ns)
{
	const struct viewer_clock_fit *fit = gpu_of(times, comm);

	return fit && fit->is_known ? viewer_clock_ns(fit, gpu_ns, near_ns) : 0;
}

static uint64_t first_of(const uint64_t *times, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (times[i] != 0)
			return times[i];
	return 0;
}

uint64_t viewer_first_sign_ns(const struct op_record *op)
{
	const uint64_t times[] = { op->issue_ns, op->launch_ns, op->task_ns, op->active_ns,
				   op->done_ns };

	return first_of(times, ARRAY_LENGTH(times));
}

/* First sign of execution, or else the call. */
static uint64_t first_activity_ns(const struct op_record *op)
{
	const uint64_t times[] = { op->active_ns, op->task_ns, op->launch_ns, op->issue_ns };

	return first_of(times, ARRAY_LENGTH(times));
}

/* Span on the recorder's clock. */
static struct viewer_place place_between(const struct viewer_times *times,
					 enum viewer_place_kind kind, uint64_t from_ns,
					 uint64_t to_ns)
{
	struct viewer_place place = { .kind = kind };

	place.start_ns = viewer_common_ns(times, from_ns);
	place.end_ns = place.start_ns + (to_ns > from_ns ? to_ns - from_ns : 0);
	return place;
}

/*
 * Ranks are aligned by the end; the start follows from the GPU's own duration. CUDA events are on the recorder's clock
 * already, with an error that is among the arguments.
 */
static struct viewer_place by_duration(const struct viewer_times *times, const struct op_record *op)
{
	struct viewer_place place = { .kind = VIEWER_TIMED };
	uint64_t duration_ns = op_duration_ns(op);
	uint64_t end_ns = op->done_ns;

	if (op->time_source == OP_TIME_KERNEL_GPU && op->flags & OP_FLAG_CUDA_EVENT) {
		end_ns = op->gpu_stop_ns;
	} else if (op->time_source == OP_TIME_KERNEL_GPU) {
		uint64_t gpu_ns = viewer_gpu_ns(times, op->comm, op->gpu_stop_ns,
						op->done_ns ? op->done_ns : op->active_ns);

		if (gpu_ns != 0)
			end_ns = gpu_ns;
	}
	if (end_ns < duration_ns || end_ns == 0)
		return (struct viewer_place){ .kind = VIEWER_NOWHERE };
	place.end_ns = viewer_common_ns(times, end_ns);
	place.start_ns = place.end_ns - duration_ns;
	return place;
}

/* Latest possible end of an operation whose end was not seen. */
static uint64_t abandoned_ns(const struct viewer_times *times, const struct op_record *op)
{
	const struct recording_comm *comm = recording_comm(times->process, op->comm);

	if (op->done_ns != 0)
		return op->done_ns;
	if (comm && comm->info.finalize_ns != 0)
		return comm->info.finalize_ns;
	return times->process->ended_ns;
}

/* Operations of a communicator run one after another: until the previous one ended, it was queued. */
static struct viewer_place in_flight(const struct viewer_times *times, const struct op_record *op,
				     uint64_t from_ns)
{
	const struct recording_comm *comm = recording_comm(times->process, op->comm);
	uint64_t free_ns = comm ? times->last_done_ns[comm - times->process->comms] : 0;
	struct viewer_place place;

	if (free_ns > from_ns)
		from_ns = free_ns;
	place = place_between(times, VIEWER_IN_FLIGHT, from_ns, from_ns);
	place.end_ns = VIEWER_OPEN;
	return place;
}

static struct viewer_place find_place(const struct viewer_times *times, const struct op_record *op,
				      bool is_open)
{
	uint64_t from_ns = first_activity_ns(op);
	uint64_t to_ns = op->done_ns;
	struct viewer_place place;

	if (op_has_duration(op) && !is_open) {
		place = by_duration(times, op);
		if (place.kind != VIEWER_NOWHERE)
			return place;
	}
	if (from_ns == 0)
		from_ns = op->done_ns;
	if (from_ns == 0)
		return (struct viewer_place){ .kind = VIEWER_NOWHERE };
	if (is_open)
		return in_flight(times, op, from_ns);
	if (op->state == OP_ABANDONED)
		to_ns = abandoned_ns(times, op);
	/* The host's clock bounds the end only: it may be seconds later. */
	if (to_ns >= from_ns && op->time_source != OP_TIME_HOST)
		return place_between(times, VIEWER_SEEN, from_ns, to_ns);
	from_ns = viewer_first_sign_ns(op);
	to_ns = op->task_ns > op->launch_ns ? op->task_ns : op->launch_ns;
	return place_between(times, VIEWER_CALLED, from_ns, to_ns);
}

bool viewer_place_is_sane(const struct viewer_place *place)
{
	uint64_t end_ns = place->end_ns == VIEWER_OPEN ? place->start_ns : place->end_ns;

	return place->start_ns != 0 && place->start_ns <= end_ns && end_ns < LAST_NS;
}

struct viewer_place viewer_place(const struct viewer_times *times, const struct op_record *op,
				 bool is_open)
{
	struct viewer_place place = find_place(times, op, is_open);

	if (!viewer_place_is_sane(&place))
		return (struct viewer_place){ .kind = VIEWER_NOWHERE };
	return place;
}

struct viewer_place viewer_place_call(const struct viewer_times *times, const struct op_record *op)
{
	struct viewer_place place =
		place_between(times, VIEWER_CALLED, op->issue_ns, op->launch_ns);

	if (op->issue_ns == 0 || !viewer_place_is_sane(&place))
		place.kind = VIEWER_NOWHERE;
	return place;
}

enum meeting_kind { MEET_CALL = 1, MEET_REPLAY = 2, MEET_TRANSFER = 3 };

struct meeting_key {
	uint64_t what; /* communicator, kind, source of time */
	uint64_t match;
	uint64_t ends; /* of a transfer: from, to */
};

struct viewer_meeting {
	struct meeting_key key;
	union {
		struct {
			uint64_t signature;
			uint64_t least_ns;
			uint64_t last_start_ns; /* common time */
			uint32_t last;		/* index into job.seats */
			uint32_t count;		/* ranks that took part */
			uint32_t first_waiter;
			uint16_t waiter_count;
			uint16_t waiter_room;
			bool is_last_shown;
		};
		struct {
			uint64_t send_start_ns;
			uint64_t recv_end_ns;
			bool has_send;
			bool has_recv;
		};
	};
};

/* One of the ranks that waited longest. */
struct viewer_waiter {
	uint64_t duration_ns;
	uint64_t start_ns; /* common time */
	uint32_t seat;
	uint32_t reserved;
};

enum { FIRST_ROOM = 256, ARROW_OF_TRANSFER = 0xff, ARROW_BITS = 8 };

void viewer_meet_init(struct viewer_meet *meet, const struct job *job, uint64_t limit_bytes)
{
	*meet = (struct viewer_meet){
		.job = job,
		.limit_bytes = limit_bytes ? limit_bytes : VIEWER_MEET_BYTES,
	};
}

void viewer_meet_release(struct viewer_meet *meet)
{
	free(meet->meetings);
	free(meet->slots);
	free(meet->waiters);
	viewer_meet_init(meet, NULL, 0);
}

static bool is_transfer(const struct op_record *op)
{
	return op->function == OP_SEND || op->function == OP_RECV;
}

/* False if it cannot be matched: in flight, of an unmatched kind, or without duration. */
static bool key_of(const struct viewer_meet *meet, const struct viewer_meet_op *of,
		   struct meeting_key *key)
{
	const struct op_record *op = of->op;
	int64_t own = of->seat->comm_rank;
	bool is_send = op->function == OP_SEND;
	enum meeting_kind kind;

	uint64_t match = op->match;

	/* If NCCL did not report some calls, the n-th one differs between ranks. */
	if (meet->job->comms[of->seat->comm].missed > 0 && !is_transfer(op))
		match = job_gap_key(meet->job, (uint32_t)(of->seat - meet->job->seats), op);
	if (match == 0 || own < 0 || meet->job->comms[of->seat->comm].hash == 0 ||
	    of->place->kind != VIEWER_TIMED)
		return false;
	*key = (struct meeting_key){ .match = match };
	if (is_transfer(op)) {
		if (op->peer < 0)
			return false;
		kind = MEET_TRANSFER;
		key->ends = is_send ? (uint64_t)own << 32 | (uint32_t)op->peer
				    : (uint64_t)op->peer << 32 | (uint32_t)own;
	} else {
		if (!match_is_synchronising(op->function) || op->time_source == OP_TIME_HOST)
			return false;
		kind = op->flags & OP_FLAG_REPLAY ? MEET_REPLAY : MEET_CALL;
	}
	key->what = (uint64_t)of->seat->comm | (uint64_t)kind << 32;
	if (kind != MEET_TRANSFER)
		key->what |= (uint64_t)op_shown_source(op->time_source, op->flags) << 40;
	return true;
}

static uint32_t *slot_of(const struct viewer_meet *meet, const struct meeting_key *key)
{
	size_t mask = meet->slot_count - 1;
	size_t at = (size_t)hash_word(hash_word(key->what, key->match), key->ends) & mask;

	while (meet->slots[at] != 0 &&
	       memcmp(&meet->meetings[meet->slots[at] - 1].key, key, sizeof(*key)) != 0)
		at = (at + 1) & mask;
	return &meet->slots[at];
}

static bool has_memory_for(struct viewer_meet *meet, size_t meetings, size_t waiters)
{
	uint64_t bytes = (uint64_t)meetings * (sizeof(*meet->meetings) + 2 * sizeof(*meet->slots)) +
			 (uint64_t)waiters * sizeof(*meet->waiters);

	return bytes <= meet->limit_bytes;
}

static bool grow_meetings(struct viewer_meet *meet)
{
	size_t room = meet->room ? meet->room * 2 : FIRST_ROOM;
	struct viewer_meeting *meetings;
	uint32_t *slots;

	if (!has_memory_for(meet, room, meet->waiter_room))
		return false;
	meetings = realloc(meet->meetings, room * sizeof(*meetings));
	if (meetings == NULL)
		goto no_memory;
	meet->meetings = meetings;
	slots = calloc(room * 2, sizeof(*slots));
	if (slots == NULL)
		goto no_memory;
	free(meet->slots);
	meet->slots = slots;
	meet->slot_count = room * 2;
	meet->room = room;
	for (size_t i = 0; i < meet->count; i++)
		*slot_of(meet, &meetings[i].key) = (uint32_t)i + 1;
	return true;
no_memory:
	meet->status = ERR_NO_SPACE;
	return false;
}

static bool grow_waiters(struct viewer_meet *meet, size_t more)
{
	size_t room = meet->waiter_room ? meet->waiter_room : FIRST_ROOM;
	struct viewer_waiter *waiters;

	while (room < meet->waiter_count + more)
		room *= 2;
	if (room == meet->waiter_room)
		return true;
	if (room > UINT32_MAX || !has_memory_for(meet, meet->room, room))
		return false;
	waiters = realloc(meet->waiters, room * sizeof(*waiters));
	if (waiters == NULL) {
		meet->status = ERR_NO_SPACE;
		return false;
	}
	meet->waiters = waiters;
	meet->waiter_room = room;
	return true;
}

static struct viewer_meeting *add_meeting(struct viewer_meet *meet, const struct meeting_key *key,
					  const struct viewer_meet_op *of)
{
	size_t waiters = meet->job->comms[of->seat->comm].seat_count;
	struct viewer_meeting *meeting;

	if (waiters > VIEWER_ARROWS_MAX)
		waiters = VIEWER_ARROWS_MAX;
	if (is_transfer(of->op))
		waiters = 0;
	if (meet->count == meet->room && !grow_meetings(meet))
		return NULL;
	if (!grow_waiters(meet, waiters))
		return NULL;
	*slot_of(meet, key) = (uint32_t)meet->count + 1;
	meeting = &meet->meetings[meet->count++];
	*meeting = (struct viewer_meeting){ .key = *key };
	if (!is_transfer(of->op)) {
		meeting->signature = of->op->signature;
		meeting->least_ns = UINT64_MAX;
		meeting->first_waiter = (uint32_t)meet->waiter_count;
		meeting->waiter_room = (uint16_t)waiters;
		meet->waiter_count += waiters;
	}
	return meeting;
}

/* Keep it if it is among the longest; replaces the shortest of these. */
static void add_waiter(struct viewer_meet *meet, struct viewer_meeting *meeting,
		       const struct viewer_waiter *one)
{
	struct viewer_waiter *list = &meet->waiters[meeting->first_waiter];
	unsigned int least = 0;

	if (meeting->waiter_count < meeting->waiter_room) {
		list[meeting->waiter_count++] = *one;
		return;
	}
	for (unsigned int i = 1; i < meeting->waiter_count; i++)
		if (list[i].duration_ns < list[least].duration_ns)
			least = i;
	if (meeting->waiter_count > 0 && list[least].duration_ns < one->duration_ns)
		list[least] = *one;
}

static void add_rank(struct viewer_meet *meet, struct viewer_meeting *meeting,
		     const struct viewer_meet_op *of)
{
	struct viewer_waiter one = {
		.duration_ns = op_duration_ns(of->op),
		.start_ns = of->place->start_ns,
		.seat = (uint32_t)(of->seat - meet->job->seats),
	};

	if (meeting->signature != of->op->signature)
		return;
	meeting->count++;
	if (one.duration_ns < meeting->least_ns) {
		meeting->least_ns = one.duration_ns;
		meeting->last = one.seat;
		meeting->last_start_ns = one.start_ns;
		meeting->is_last_shown = of->is_shown;
	}
	if (of->is_shown)
		add_waiter(meet, meeting, &one);
}

static void add_end(struct viewer_meeting *meeting, const struct viewer_meet_op *of)
{
	if (of->op->function == OP_SEND) {
		meeting->has_send = of->is_shown;
		meeting->send_start_ns = of->place->start_ns;
	} else {
		meeting->has_recv = of->is_shown;
		meeting->recv_end_ns = of->place->end_ns;
	}
}

static struct viewer_meeting *find_meeting(const struct viewer_meet *meet,
					   const struct meeting_key *key)
{
	uint32_t found = meet->slot_count > 0 ? *slot_of(meet, key) : 0;

	return found != 0 ? &meet->meetings[found - 1] : NULL;
}

void viewer_meet_add(struct viewer_meet *meet, const struct viewer_meet_op *op)
{
	struct viewer_meeting *meeting;
	struct meeting_key key;

	if (!key_of(meet, op, &key))
		return;
	meeting = find_meeting(meet, &key);
	if (meeting == NULL)
		meeting = add_meeting(meet, &key, op);
	if (meeting == NULL)
		meet->left_out++;
	else if (is_transfer(op->op))
		add_end(meeting, op);
	else
		add_rank(meet, meeting, op);
}

static void add_arrow(struct viewer_met *met, uint64_t meeting, unsigned int index, bool is_head,
		      uint64_t not_before_ns)
{
	met->arrows[met->arrow_count++] = (struct viewer_met_arrow){
		.number = (meeting + 1) << ARROW_BITS | index,
		.is_head = is_head,
		.not_before_ns = not_before_ns,
	};
}

/* From the ranks that waited to the one that arrived last, by more than slices may be moved. */
static bool has_arrow(const struct viewer_meeting *meeting, const struct viewer_waiter *waiter)
{
	return meeting->is_last_shown && waiter->seat != meeting->last &&
	       waiter->start_ns + VIEWER_SLIDE_NS < meeting->last_start_ns;
}

static void find_rank(const struct viewer_meet *meet, const struct viewer_meeting *meeting,
		      const struct viewer_meet_op *of, struct viewer_met *met)
{
	const struct viewer_waiter *list = meet->waiters + meeting->first_waiter;
	uint32_t own = (uint32_t)(of->seat - meet->job->seats);
	int32_t nranks = meet->job->comms[of->seat->comm].nranks;

	met->is_differing = meeting->signature != of->op->signature;
	if (met->is_differing || meeting->count < 2)
		return;
	met->is_met = true;
	met->is_partial = nranks > 0 && meeting->count < (uint32_t)nranks;
	/* A live process may have recorded more since the last walk. */
	if (op_duration_ns(of->op) < meeting->least_ns)
		return;
	met->has_wait = true;
	met->wait_ns = op_duration_ns(of->op) - meeting->least_ns;
	met->last = &meet->job->seats[meeting->last];
	for (unsigned int i = 0; i < meeting->waiter_count; i++)
		if (has_arrow(meeting, &list[i]) && (own == meeting->last || own == list[i].seat))
			add_arrow(met, (uint64_t)(meeting - meet->meetings), i,
				  own == meeting->last, 0);
}

/* The head must lie in the Recv and not before the start of the Send. */
static void find_end(const struct viewer_meet *meet, const struct viewer_meeting *meeting,
		     const struct viewer_meet_op *of, struct viewer_met *met)
{
	uint64_t moment_ns = meeting->send_start_ns + VIEWER_SLIDE_NS;

	if (!meeting->has_send || !meeting->has_recv)
		return;
	met->is_met = true;
	if (moment_ns < meeting->recv_end_ns)
		add_arrow(met, (uint64_t)(meeting - meet->meetings), ARROW_OF_TRANSFER,
			  of->op->function == OP_RECV, moment_ns);
}

void viewer_meet_find(const struct viewer_meet *meet, const struct viewer_meet_op *op,
		      struct viewer_met *met)
{
	const struct viewer_meeting *meeting;
	struct meeting_key key;

	*met = (struct viewer_met){ .is_met = false };
	if (!key_of(meet, op, &key))
		return;
	meeting = find_meeting(meet, &key);
	if (meeting == NULL)
		return;
	if (is_transfer(op->op))
		find_end(meet, meeting, op, met);
	else
		find_rank(meet, meeting, op, met);
}
