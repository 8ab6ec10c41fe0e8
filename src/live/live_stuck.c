/*
 * Communicators that stand still.
 *
 * A hang: an operation is in flight for longer than hang_ns, and for as long no member here has issued or
 * finished anything on that communicator. A job that computes, saves or evaluates has nothing in flight;
 * one that makes slow progress still makes some. What cannot be told apart from here is a member that
 * keeps the others waiting for so long on purpose.
 *
 * One member that does not come holds up all others, and those hold up their other communicators. So a
 * member that has not come because it is itself held up elsewhere is not the one to name.
 */
#include <inttypes.h>
#include <string.h>

#include "live/live_notice.h"

enum { NAMED = 4 }; /* ranks that a sentence names */

struct standing {
	uint32_t open;	  /* members here that go on */
	uint32_t waiting; /* of these: in an operation */
	uint32_t oldest;  /* the seat that is in its for longest */
	uint64_t age_ns;  /* of that */
	bool is_still;	  /* nobody issued or finished anything for hang_ns */
	uint32_t missing; /* members that have not issued what the lead is in */
	uint32_t culprit; /* of those, the first that is not held up elsewhere; UINT32_MAX none */
	uint32_t held;	  /* else the first; UINT32_MAX none */
	uint32_t held_by; /* the seat where that one is in something else */
	uint32_t dead;	  /* the first whose process was killed; UINT32_MAX none */
	uint32_t sender;  /* the only one whose sends the network does not complete; UINT32_MAX */
};

/* Is this rank in an operation of another communicator, and for long? */
static uint32_t held_up_by(const struct live *live, uint32_t seat)
{
	const struct job_seat *of = &live->job.seats[seat];
	uint32_t found = UINT32_MAX;

	for (uint32_t s = live->job.first_seat[of->process];
	     s < live->job.first_seat[of->process + 1]; s++) {
		const struct live_seat *other = &live->seats[s];

		if (live->job.seats[s].rank != of->rank || s == seat || other->is_over ||
		    other->oldest == NULL || other->oldest_age_ns < live->limits.lag_ns)
			continue;
		if (found == UINT32_MAX || other->oldest_age_ns > live->seats[found].oldest_age_ns)
			found = s;
	}
	return found;
}

static void count_missing(const struct live *live, struct standing *standing, uint32_t s)
{
	uint32_t held_by;

	standing->missing++;
	held_by = live->seats[s].is_over ? UINT32_MAX : held_up_by(live, s);
	if (held_by == UINT32_MAX && standing->culprit == UINT32_MAX)
		standing->culprit = s;
	if (held_by != UINT32_MAX && standing->held == UINT32_MAX) {
		standing->held = s;
		standing->held_by = held_by;
	}
}

static uint32_t sends_stuck(const struct live_seat *seat)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < seat->wait_count; i++)
		count += seat->waits[i].reason == FLIGHT_SEND_NET;
	return count;
}

static bool is_killed(const struct live *live, uint32_t s)
{
	return live_notice_process(live, s)->life == RECORDING_KILLED &&
	       !(live->seats[s].comm->info.flags & COMM_FLAG_FINALIZED);
}

static struct standing survey(const struct live *live, const struct job_comm *comm)
{
	struct standing standing = { .is_still = true,
				     .oldest = UINT32_MAX,
				     .culprit = UINT32_MAX,
				     .held = UINT32_MAX,
				     .dead = UINT32_MAX,
				     .sender = UINT32_MAX };
	uint32_t senders = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];
		const struct live_seat *seat = &live->seats[s];

		if (seat->is_behind)
			count_missing(live, &standing, s);
		if (standing.dead == UINT32_MAX && is_killed(live, s))
			standing.dead = s;
		if (seat->is_over)
			continue;
		standing.open++;
		standing.is_still &= seat->still_ns >= live->limits.hang_ns;
		if (seat->oldest == NULL)
			continue;
		standing.waiting++;
		if (standing.oldest == UINT32_MAX || seat->oldest_age_ns > standing.age_ns) {
			standing.oldest = s;
			standing.age_ns = seat->oldest_age_ns;
		}
		if (sends_stuck(seat) > 0) {
			standing.sender = s;
			senders++;
		}
	}
	if (senders != 1)
		standing.sender = UINT32_MAX;
	return standing;
}

/* ---- words ----------------------------------------------------------------------------------- */

#define TITLE notice->title, sizeof(notice->title)
#define TEXT notice->text, sizeof(notice->text)
#define HINT notice->hint, sizeof(notice->hint)

/* "rank 5 has", "ranks 5, 6 and 2 more have": those that are behind. */
static void name_missing(const struct live *live, const struct job_comm *comm,
			 const struct standing *standing, uint32_t first, char *text, size_t size)
{
	uint32_t named = 1;

	live_notice_rank(text, size, live, first);
	for (uint32_t i = 0; i < comm->seat_count && named < NAMED; i++) {
		uint32_t s = comm->seats[i];

		if (!live->seats[s].is_behind || s == first)
			continue;
		live_notice_say(text, size, ", %.24s",
				live->job.ranks[live->job.seats[s].rank].label);
		named++;
	}
	if (standing->missing > named)
		live_notice_say(text, size, " and %u more", standing->missing - named);
	live_notice_say(text, size, standing->missing == 1 ? " has" : " have");
}

static void say_elsewhere(struct live_notice *notice, const struct job_comm *comm)
{
	if (comm->missing > 0)
		live_notice_say(TEXT, " %u member%s on other nodes cannot be seen here.",
				comm->missing, comm->missing == 1 ? "" : "s");
}

static void say_who_waits(const struct live *live, struct live_notice *notice,
			  const struct job_comm *comm, const struct standing *standing,
			  uint32_t seat)
{
	live_notice_say(TEXT,
			"%u of %u ranks of %.60s seen here %s in an operation, the longest in ",
			standing->waiting, standing->open, comm->label,
			standing->waiting == 1 ? "is" : "are");
	live_notice_operation(TEXT, live, seat);
	live_notice_say(TEXT, " for %" PRIu64 " s.", standing->age_ns / LIVE_SECOND_NS);
}

/* " Rank 5 (node3, pid 4711)": the beginning of one more sentence. */
static void say_rank(const struct live *live, struct live_notice *notice, uint32_t seat)
{
	size_t at = strlen(notice->text) + 1;

	live_notice_say(TEXT, " ");
	live_notice_whole_rank(TEXT, live, seat);
	if (at < sizeof(notice->text))
		live_notice_capital(notice->text, at);
}

static void say_missing(const struct live *live, struct live_notice *notice, uint32_t seat)
{
	const struct live_seat *of = &live->seats[seat];

	say_rank(live, notice, seat);
	if (of->is_over && live_notice_process(live, seat)->life == RECORDING_KILLED)
		live_notice_say(TEXT, " died at collective %" PRIu64 ".",
				of->comm->counts.collectives);
	else if (of->is_over)
		live_notice_say(TEXT, " ended after collective %" PRIu64 ".",
				of->comm->counts.collectives);
	else
		live_notice_say(TEXT,
				" is at collective %" PRIu64
				" and has done nothing on it for %" PRIu64 " s.",
				of->comm->counts.collectives, of->still_ns / LIVE_SECOND_NS);
}

/* "rank 3 waits for data from rank 4." */
static void say_wait(const struct live *live, struct live_notice *notice, uint32_t seat)
{
	const struct live_seat *of = &live->seats[seat];
	const struct flight_wait *wait = of->wait_count > 0 ? &of->waits[0] : NULL;
	const char *sentence, *peer;

	for (uint32_t i = 0; i < of->wait_count; i++)
		if (of->waits[i].reason == FLIGHT_SEND_NET)
			wait = &of->waits[i];
	if (wait == NULL)
		return;
	/* The sentence has one %d, for the peer; its rank within the communicator. */
	sentence = flight_reason_text(wait->reason);
	peer = strstr(sentence, "%d");
	say_rank(live, notice, seat);
	if (peer == NULL)
		live_notice_say(TEXT, " %s.", sentence);
	else
		live_notice_say(TEXT, " %.*s%d%s of the communicator.", (int)(peer - sentence),
				sentence, wait->peer, peer + strlen("%d"));
}

/* ---- the notices ----------------------------------------------------------------------------- */

static void give_missing(struct live *live, uint32_t c, const struct standing *standing)
{
	const struct job_comm *comm = &live->job.comms[c];
	uint32_t lead = live->comms[c].lead;
	struct live_notice *notice =
		live_notice_add(live, LIVE_MISSING, c, standing->culprit, standing->age_ns);

	name_missing(live, comm, standing, standing->culprit, TITLE);
	live_notice_say(TITLE, " not issued ");
	live_notice_operation(TITLE, live, lead);
	live_notice_say(TITLE, " of %.40s; %u rank%s wait%s", comm->label, standing->waiting,
			standing->waiting == 1 ? "" : "s", standing->waiting == 1 ? "s" : "");
	say_who_waits(live, notice, comm, standing, standing->oldest);
	say_missing(live, notice, standing->culprit);
	say_elsewhere(notice, comm);
	live_notice_hint(HINT, live, standing->culprit);
}

static void give_hang(struct live *live, uint32_t c, const struct standing *standing,
		      bool is_mismatch)
{
	const struct job_comm *comm = &live->job.comms[c];
	uint32_t named = standing->dead != UINT32_MAX ? standing->dead : standing->sender;
	struct live_notice *notice = live_notice_add(
		live, LIVE_HANG, c, is_mismatch ? UINT32_MAX : named, standing->age_ns);

	live_notice_say(TITLE, "%u rank%s of %.40s stand%s still in ", standing->waiting,
			standing->waiting == 1 ? "" : "s", comm->label,
			standing->waiting == 1 ? "s" : "");
	live_notice_operation(TITLE, live, standing->oldest);
	say_who_waits(live, notice, comm, standing, standing->oldest);
	if (is_mismatch) {
		live_notice_say(TEXT, " They disagree on what is called: see there.");
	} else if (standing->dead != UINT32_MAX) {
		say_rank(live, notice, standing->dead);
		live_notice_say(TEXT, " died.");
	} else if (standing->held != UINT32_MAX) {
		say_rank(live, notice, standing->held);
		live_notice_say(TEXT, " has not come: it is itself in ");
		live_notice_operation(TEXT, live, standing->held_by);
		live_notice_say(TEXT, " of %.60s.",
				live->job.comms[live->job.seats[standing->held_by].comm].label);
	} else {
		say_wait(live, notice,
			 standing->sender != UINT32_MAX ? standing->sender : standing->oldest);
	}
	say_elsewhere(notice, comm);
	live_notice_hint(HINT, live,
			 standing->sender != UINT32_MAX ? standing->sender : standing->oldest);
}

/* How long is the lead in what the others have not issued? Since it is known to run, where it is. */
static uint64_t in_it_ns(const struct live *live, uint32_t lead)
{
	uint64_t now_ns = live->memory->processes[live->job.seats[lead].process].now_ns;
	uint64_t active_ns = live->seats[lead].oldest->op.active_ns;

	if (active_ns == 0 || now_ns <= active_ns)
		return live->seats[lead].oldest_age_ns;
	return now_ns - active_ns;
}

static void give_behind(struct live *live, uint32_t c, const struct standing *standing)
{
	const struct job_comm *comm = &live->job.comms[c];
	uint32_t lead = live->comms[c].lead;
	uint64_t in_ns = in_it_ns(live, lead);
	struct live_notice *notice;

	if (in_ns < live->limits.lag_ns)
		return;
	notice = live_notice_add(live, LIVE_BEHIND, c, standing->culprit, in_ns);
	name_missing(live, comm, standing, standing->culprit, TITLE);
	live_notice_say(TITLE, " not issued ");
	live_notice_operation(TITLE, live, lead);
	live_notice_say(TITLE, " of %.40s yet", comm->label);
	live_notice_rank(TEXT, live, lead);
	live_notice_capital(notice->text, 0);
	live_notice_say(TEXT, " is in it for %" PRIu64 " s.", in_ns / LIVE_SECOND_NS);
	say_missing(live, notice, standing->culprit);
	say_elsewhere(notice, comm);
	live_notice_hint(HINT, live, standing->culprit);
}

void live_stuck(struct live *live, uint32_t c)
{
	const struct job_comm *comm = &live->job.comms[c];
	bool is_mismatch = live_mismatch(live, c);
	struct standing standing = survey(live, comm);

	if (standing.waiting == 0)
		return;
	if (standing.is_still && standing.age_ns >= live->limits.hang_ns) {
		if (standing.culprit != UINT32_MAX && !is_mismatch)
			give_missing(live, c, &standing);
		else
			give_hang(live, c, &standing, is_mismatch);
	} else if (standing.culprit != UINT32_MAX && !is_mismatch) {
		give_behind(live, c, &standing);
	}
}
