/*
 * Communicators that stand still, as notices. Who is stuck and why is the doctor's to say (live_verdicts.c);
 * here a verdict becomes one notice, named by its cause: who waits because of it has none of its own.
 *
 * Before a hang there is lag: a member that has not issued what others are in for lag_ns is behind.
 */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "live/live_notice.h"

enum { NAMED = 4 }; /* ranks that a sentence names */

#define TITLE notice->title, sizeof(notice->title)
#define TEXT notice->text, sizeof(notice->text)
#define HINT notice->hint, sizeof(notice->hint)

/* ---- verdicts ------------------------------------------------------------------------------------ */

static uint32_t find_comm(const struct live *live, const struct verdict *verdict)
{
	for (uint32_t c = 0; c < live->job.comm_count; c++)
		if (strcmp(live->job.comms[c].label, verdict->comm) == 0)
			return c;
	return UINT32_MAX;
}

static uint32_t find_seat(const struct live *live, const struct verdict *verdict, uint32_t c)
{
	const struct job_comm *comm;

	if (c == UINT32_MAX || verdict->rank_label[0] == '\0')
		return UINT32_MAX;
	comm = &live->job.comms[c];
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t rank = live->job.seats[comm->seats[i]].rank;

		if (strcmp(live->job.ranks[rank].label, verdict->rank_label) == 0)
			return comm->seats[i];
	}
	return UINT32_MAX;
}

/* A warning says that it may go on yet: no hang. */
static enum live_notice_kind kind_of(const struct verdict *verdict)
{
	if (verdict->class == VERDICT_MISMATCH)
		return LIVE_MISMATCH;
	if (verdict->severity < VERDICT_ERROR)
		return LIVE_BEHIND;
	return verdict->class == VERDICT_NEVER_ISSUED ? LIVE_MISSING : LIVE_HANG;
}

/* Whole sentences, as many as fit. */
static void say_lines(struct live_notice *notice, const struct verdict_lines *lines)
{
	for (size_t i = 0; i < lines->count; i++) {
		size_t used = strlen(notice->text);

		if (used + strlen(lines->list[i]) + 2 > sizeof(notice->text))
			return;
		text_append(TEXT, "%s%s", used > 0 ? " " : "", lines->list[i]);
	}
}

static void say_hint(const struct live *live, struct live_notice *notice,
		     const struct verdict *verdict)
{
	if (notice->seat != UINT32_MAX && verdict->class != VERDICT_NETWORK_STUCK)
		live_notice_hint(HINT, live, notice->seat);
	for (size_t i = 0; i < verdict->advice.count && notice->hint[0] == '\0'; i++)
		if (strncmp(verdict->advice.list[i], "$ ", 2) == 0)
			text_append(HINT, "%s", verdict->advice.list[i] + 2);
}

/* On one node it is usual that others are not seen: what is news is that those here stand still. */
static void say_title(struct live_notice *notice, const struct verdict *verdict)
{
	if (verdict->class != VERDICT_UNSEEN && verdict->class != VERDICT_AGENT_DEAD)
		text_append(TITLE, "%s", verdict->title);
	else
		text_append(TITLE, "%u rank%s of %.40s stand%s still in %.24s %" PRIu64,
			    verdict->victims, verdict->victims == 1 ? "" : "s", verdict->comm,
			    verdict->victims == 1 ? "s" : "", verdict->function, verdict->number);
}

static void give_verdict(struct live *live, const struct verdict *verdict)
{
	uint32_t comm = find_comm(live, verdict);
	struct live_notice *notice = live_notice_add(
		live, kind_of(verdict), comm, find_seat(live, verdict, comm), verdict->for_ns);

	say_title(notice, verdict);
	say_lines(notice, &verdict->evidence);
	say_lines(notice, &verdict->missing);
	say_hint(live, notice, verdict);
}

static bool is_told(const struct live *live, uint32_t comm)
{
	for (size_t i = 0; i < live->notice_count; i++)
		if (live->notices[i].comm == comm && live->notices[i].kind != LIVE_DEAD)
			return true;
	return false;
}

/* ---- lag ----------------------------------------------------------------------------------------- */

struct lag {
	uint32_t missing; /* members that have not issued what the lead is in */
	uint32_t culprit; /* of those, the first that is not held up elsewhere; UINT32_MAX none */
};

/* Is this rank in an operation of another communicator, and for long? */
static bool is_held_up(const struct live *live, uint32_t seat)
{
	const struct job_seat *of = &live->job.seats[seat];

	for (uint32_t s = live->job.first_seat[of->process];
	     s < live->job.first_seat[of->process + 1]; s++) {
		const struct live_seat *other = &live->seats[s];

		if (live->job.seats[s].rank == of->rank && s != seat && !other->is_over &&
		    other->oldest != NULL && other->oldest_age_ns >= live->limits.lag_ns)
			return true;
	}
	return false;
}

static struct lag survey(const struct live *live, const struct job_comm *comm)
{
	struct lag lag = { 0, UINT32_MAX };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];

		if (!live->seats[s].is_behind)
			continue;
		lag.missing++;
		if (lag.culprit == UINT32_MAX && (live->seats[s].is_over || !is_held_up(live, s)))
			lag.culprit = s;
	}
	return lag;
}

/* "rank 5 has", "ranks 5, 6 and 2 more have": those that are behind. */
static void name_missing(const struct live *live, const struct job_comm *comm,
			 const struct lag *lag, char *text, size_t size)
{
	uint32_t named = 1;

	live_notice_rank(text, size, live, lag->culprit);
	for (uint32_t i = 0; i < comm->seat_count && named < NAMED; i++) {
		uint32_t s = comm->seats[i];

		if (!live->seats[s].is_behind || s == lag->culprit)
			continue;
		text_append(text, size, ", %.24s", live->job.ranks[live->job.seats[s].rank].label);
		named++;
	}
	if (lag->missing > named)
		text_append(text, size, " and %u more", lag->missing - named);
	text_append(text, size, lag->missing == 1 ? " has" : " have");
}

/* " Rank 5 (node3, pid 4711) is at collective 811 ...": where the one that is behind stands. */
static void say_missing(const struct live *live, struct live_notice *notice, uint32_t seat)
{
	const struct live_seat *of = &live->seats[seat];
	size_t at = strlen(notice->text) + 1;

	text_append(TEXT, " ");
	live_notice_whole_rank(TEXT, live, seat);
	if (at < sizeof(notice->text))
		live_notice_capital(notice->text, at);
	if (of->is_over && live_notice_process(live, seat)->life == RECORDING_KILLED)
		text_append(TEXT, " died at collective %" PRIu64 ".", of->comm->counts.collectives);
	else if (of->is_over)
		text_append(TEXT, " ended after collective %" PRIu64 ".",
			    of->comm->counts.collectives);
	else
		text_append(TEXT,
			    " is at collective %" PRIu64 " and has done nothing on it for %" PRIu64
			    " s.",
			    of->comm->counts.collectives, of->still_ns / LIVE_SECOND_NS);
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

static void give_behind(struct live *live, uint32_t c, const struct lag *lag)
{
	const struct job_comm *comm = &live->job.comms[c];
	uint32_t lead = live->comms[c].lead;
	uint64_t in_ns = in_it_ns(live, lead);
	struct live_notice *notice;

	if (in_ns < live->limits.lag_ns)
		return;
	notice = live_notice_add(live, LIVE_BEHIND, c, lag->culprit, in_ns);
	name_missing(live, comm, lag, TITLE);
	text_append(TITLE, " not issued ");
	live_notice_operation(TITLE, live, lead);
	text_append(TITLE, " of %.40s yet", comm->label);
	live_notice_rank(TEXT, live, lead);
	live_notice_capital(notice->text, 0);
	text_append(TEXT, " is in it for %" PRIu64 " s.", in_ns / LIVE_SECOND_NS);
	say_missing(live, notice, lag->culprit);
	if (comm->missing > 0)
		text_append(TEXT, " %u member%s on other nodes cannot be seen here.", comm->missing,
			    comm->missing == 1 ? "" : "s");
	live_notice_hint(HINT, live, lag->culprit);
}

/* A communicator of which a verdict speaks, or that waits for one, is not behind once more. */
void live_stuck(struct live *live)
{
	for (size_t i = 0; i < live->verdicts.count; i++)
		give_verdict(live, &live->verdicts.list[i]);
	for (uint32_t c = 0; c < live->job.comm_count; c++) {
		struct lag lag;

		if (live->comms[c].lead == UINT32_MAX || is_told(live, c))
			continue;
		lag = survey(live, &live->job.comms[c]);
		if (lag.culprit != UINT32_MAX)
			give_behind(live, c, &lag);
	}
}
