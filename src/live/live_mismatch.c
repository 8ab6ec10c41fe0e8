/*
 * Members that called different things. Every collective call has its number and a hash of all calls so
 * far: where two members have the same number and another hash they have diverged, there or before. Live
 * slots keep the last calls, also those that are over, and so does the counter of calls.
 */
#include <inttypes.h>

#include "op/op_bytes.h"
#include "live/live_notice.h"
#include "timeline/meet.h"

/* Members that are asked who is odd; a node has fewer. */
enum { ASKED_MAX = 64 };

/* The calls of one seat that can still be seen, by number. */
struct calls {
	const struct recording_flight *at, *end;
	uint32_t comm_id;
	uint64_t last;	    /* number of the last call, 0 when it may just be changing */
	uint64_t signature; /* up to that one */
};

static struct calls calls_of(const struct live *live, uint32_t s)
{
	const struct recording_process *process = live_notice_process(live, s);
	const struct comm_counts *counts = &live->seats[s].comm->counts;
	uint32_t id = live->job.seats[s].comm_id;
	struct calls calls = { .comm_id = id };
	size_t from = 0, to = process->flight_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (process->flights[middle].op.comm < id)
			from = middle + 1;
		else
			to = middle;
	}
	calls.at = process->flights + from;
	calls.end = process->flights + process->flight_count;
	if (live->memory->seats[s].moved_ns != live->memory->monotonic_ns) {
		calls.last = counts->collectives;
		calls.signature = counts->signature;
	}
	return calls;
}

/* The next call: its number, 0 after the last. */
static uint64_t next_call(struct calls *calls, uint64_t *signature,
			  const struct recording_flight **flight)
{
	for (; calls->at < calls->end && calls->at->op.comm == calls->comm_id; calls->at++) {
		const struct op_record *op = &calls->at->op;

		if (!op_is_collective(op->function) || op->flags & OP_FLAG_REPLAY ||
		    op->match == 0 || op->signature == 0)
			continue;
		*signature = op->signature;
		*flight = calls->at++;
		return op->match;
	}
	*flight = NULL;
	*signature = calls->signature;
	if (calls->last != 0 && calls->signature != 0) {
		uint64_t last = calls->last;

		calls->last = 0;
		return last;
	}
	return 0;
}

/* The first number at which two seats differ, 0 none. */
static uint64_t first_difference(const struct live *live, uint32_t one, uint32_t other)
{
	struct calls a = calls_of(live, one), b = calls_of(live, other);
	const struct recording_flight *unused;
	uint64_t signature_a, signature_b;
	uint64_t at_a = next_call(&a, &signature_a, &unused);
	uint64_t at_b = next_call(&b, &signature_b, &unused);

	while (at_a != 0 && at_b != 0) {
		if (at_a == at_b && signature_a != signature_b)
			return at_a;
		if (at_a <= at_b)
			at_a = next_call(&a, &signature_a, &unused);
		else
			at_b = next_call(&b, &signature_b, &unused);
	}
	return 0;
}

/* What a seat called under this number; 0: not seen any more, or not called yet. */
static uint64_t signature_at(const struct live *live, uint32_t s, uint64_t number,
			     const struct recording_flight **flight)
{
	struct calls calls = calls_of(live, s);
	uint64_t at, signature;

	do {
		at = next_call(&calls, &signature, flight);
	} while (at != 0 && at != number);
	return at == number ? signature : 0;
}

/* Whom to name: the seat that differs from more others than anybody else. Of two nobody knows. */
struct division {
	uint64_t number;
	uint32_t odd;	   /* one that is alone or among few; UINT32_MAX: as many on either side */
	uint32_t usual;	   /* one of the others */
	uint32_t agreeing; /* with the usual one */
};

static uint32_t count_agreeing(const struct live *live, const struct job_comm *comm,
			       uint64_t number, uint64_t signature)
{
	const struct recording_flight *unused;
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count && i < ASKED_MAX; i++)
		count += signature_at(live, comm->seats[i], number, &unused) == signature;
	return count;
}

static struct division divide(const struct live *live, const struct job_comm *comm, uint64_t number)
{
	struct division division = { .number = number, .odd = UINT32_MAX, .usual = UINT32_MAX };
	uint32_t fewest = UINT32_MAX, most = 0;
	const struct recording_flight *unused;

	for (uint32_t i = 0; i < comm->seat_count && i < ASKED_MAX; i++) {
		uint64_t signature = signature_at(live, comm->seats[i], number, &unused);
		uint32_t count;

		if (signature == 0)
			continue;
		count = count_agreeing(live, comm, number, signature);
		if (count > most) {
			most = count;
			division.usual = comm->seats[i];
		}
		if (count < fewest) {
			fewest = count;
			division.odd = comm->seats[i];
		}
	}
	division.agreeing = most;
	if (fewest == most)
		division.odd = UINT32_MAX;
	return division;
}

static void say_call(const struct live *live, char *text, size_t size, uint32_t seat,
		     const struct op_record *op)
{
	const struct recording_process *process = live_notice_process(live, seat);

	live_notice_say(text, size, "%.24s of %" PRIu64 " %.24s",
			recording_name(process, OP_NAMES_FUNCTION, op->function), op->count,
			recording_name(process, OP_NAMES_DATATYPE, op->datatype));
	if (op->root >= 0 && !meet_is_synchronising(op->function))
		live_notice_say(text, size, " with root %d", op->root);
}

static bool is_same_call(const struct op_record *a, const struct op_record *b)
{
	return a->function == b->function && a->count == b->count && a->datatype == b->datatype &&
	       a->root == b->root;
}

static void give(struct live *live, uint32_t c, const struct division *division)
{
	const struct job_comm *comm = &live->job.comms[c];
	const struct recording_flight *theirs = NULL, *usual = NULL;
	uint32_t odd = division->odd;
	struct live_notice *notice = live_notice_add(live, LIVE_MISMATCH, c, odd, 0);
	char *text = notice->text;
	size_t size = sizeof(notice->text);

	if (odd == UINT32_MAX) {
		live_notice_say(notice->title, sizeof(notice->title),
				"ranks of %.40s disagree on collective %" PRIu64, comm->label,
				division->number);
	} else {
		live_notice_rank(notice->title, sizeof(notice->title), live, odd);
		live_notice_say(notice->title, sizeof(notice->title),
				" disagrees with %u rank%s on collective %" PRIu64 " of %.40s",
				division->agreeing, division->agreeing == 1 ? "" : "s",
				division->number, comm->label);
		signature_at(live, odd, division->number, &theirs);
		signature_at(live, division->usual, division->number, &usual);
	}
	if (theirs != NULL && usual != NULL && !is_same_call(&theirs->op, &usual->op)) {
		live_notice_whole_rank(text, size, live, odd);
		live_notice_capital(text, 0);
		live_notice_say(text, size, " called ");
		say_call(live, text, size, odd, &theirs->op);
		live_notice_say(text, size, "; ");
		live_notice_rank(text, size, live, division->usual);
		live_notice_say(text, size, " called ");
		say_call(live, text, size, division->usual, &usual->op);
		live_notice_say(text, size, ".");
	} else {
		live_notice_say(text, size,
				"Up to collective %" PRIu64
				" of %.60s ranks called different functions, "
				"counts, datatypes or roots.",
				division->number, comm->label);
	}
	live_notice_say(text, size, " NCCL then hangs or mixes data up.");
	if (odd != UINT32_MAX)
		live_notice_hint(notice->hint, sizeof(notice->hint), live, odd);
}

bool live_mismatch(struct live *live, uint32_t c)
{
	const struct job_comm *comm = &live->job.comms[c];
	struct division division;
	uint64_t first = 0;

	for (uint32_t i = 1; i < comm->seat_count && comm->hash != 0; i++) {
		uint64_t number = first_difference(live, comm->seats[0], comm->seats[i]);

		if (number != 0 && (first == 0 || number < first))
			first = number;
	}
	if (first == 0)
		return false;
	division = divide(live, comm, first);
	give(live, c, &division);
	return true;
}
