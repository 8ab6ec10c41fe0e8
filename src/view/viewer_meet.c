#include "view/viewer_meet.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/job.h"
#include "analysis/meet.h"
#include "common/hash.h"
#include "common/op.h"
#include "view/viewer_lanes.h"

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

/* One of those who waited longest. */
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

/* False when nobody can be met: in flight, not to be joined, or without duration. */
static bool key_of(const struct viewer_meet *meet, const struct viewer_meet_op *of,
		   struct meeting_key *key)
{
	const struct op_record *op = of->op;
	int64_t own = of->seat->comm_rank;
	bool is_send = op->function == OP_SEND;
	enum meeting_kind kind;

	uint64_t match = op->match;

	/* Where calls were not shown, the n-th is not the same on all ranks. */
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
		if (!meet_is_synchronising(op->function) || op->time_source == OP_TIME_HOST)
			return false;
		kind = op->flags & OP_FLAG_REPLAY ? MEET_REPLAY : MEET_CALL;
	}
	key->what = (uint64_t)of->seat->comm | (uint64_t)kind << 32;
	if (kind != MEET_TRANSFER)
		key->what |= (uint64_t)op->time_source << 40;
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

/* Among the longest? The shortest of these makes room. */
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

/* From those who waited to the one they waited for: it began last, by more than slices move. */
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
	/* Of a live process, more may be there than a walk ago. */
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

/* An arrow needs a moment in the Recv that is not before the Send's begin. */
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
