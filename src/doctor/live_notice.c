/*
 * Notices. A notice is created at every scan at which its reason holds, and keeps the time when it first
 * appeared; when the reason is gone, so is the notice.
 */
#include "doctor/live.h"
#include "doctor/live_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/file_opener.h"
#include "common/text.h"
#include "doctor/doctor.h"

enum { NAMED = 4 }; /* ranks that a sentence lists */

#define TITLE notice->title, sizeof(notice->title)
#define TEXT notice->text, sizeof(notice->text)
#define HINT notice->hint, sizeof(notice->hint)

/* A launcher that kills a whole job does so within a moment: then no notice is needed. */
#define DEAD_NS (2 * SECOND_NS)

const char *live_notice_name(enum live_notice_kind kind)
{
	static const char *const names[LIVE_NOTICE_KINDS] = { "hang", "missing", "mismatch",
							      "dead", "behind",	 "straggler",
							      "loss", "slow" };

	return (unsigned int)kind < LIVE_NOTICE_KINDS ? names[kind] : "?";
}

/* ---- texts ----------------------------------------------------------------------------------- */

static const struct recording_process *process_of(const struct live *live, uint32_t seat)
{
	return live->job.recording->processes[live->job.seats[seat].process];
}

/* "rank 5 (node3, pid 4711)". */
static void say_whole_rank(char *text, size_t size, const struct live *live, uint32_t seat)
{
	const struct recording_process *process = process_of(live, seat);

	job_say_rank(text, size, &live->job, seat);
	if (live->job.ranks[live->job.seats[seat].rank].rank >= 0)
		text_append(text, size, " (%.40s, pid %" PRId64 ")",
			    process->host[0] ? process->host : "host unknown",
			    recording_pid(process));
}

/* "AllReduce #812", "AllReduce #812 (graph replay)", "Recv #40 from rank 3". */
static void say_operation(char *text, size_t size, const struct live *live, uint32_t seat)
{
	const struct op_record *op = &live->seats[seat].oldest->op;

	job_say_operation(text, size, &live->job, seat, op);
	if (op->peer < 0 || op->flags & OP_FLAG_REPLAY)
		return;
	if (op->function == OP_SEND)
		text_append(text, size, " to rank %d", op->peer);
	else if (op->function == OP_RECV)
		text_append(text, size, " from rank %d", op->peer);
}

/* Commands that inspect a process; "" if it is not on this host. */
static void say_process_hint(char *text, size_t size, const struct live *live, uint32_t seat)
{
	const struct recording_process *process = process_of(live, seat);

	if (process->pid_here > 0)
		text_append(text, size,
			    "ringside ps @%" PRId64 "; where it is: ringside stacks @%" PRId64,
			    process->pid_here, process->pid_here);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Whose job it is about; -1 unknown. */
static int64_t notice_owner(const struct live *live, uint32_t comm, uint32_t seat)
{
	if (seat >= live->job.seat_count && comm < live->job.comm_count &&
	    live->job.comms[comm].seat_count > 0)
		seat = live->job.comms[comm].seats[0];
	return seat < live->job.seat_count ? process_of(live, seat)->owner : -1;
}

static size_t notices_of(const struct live *live, int64_t owner, size_t *last)
{
	size_t count = 0;

	for (size_t i = 0; i < live->notice_count; i++)
		if (notice_owner(live, live->notices[i].comm, live->notices[i].seat) == owner) {
			*last = i;
			count++;
		}
	return count;
}

/* The list is full: the user with the most gives up the last one, unless that is this user. */
static void notices_share(struct live *live, int64_t owner)
{
	size_t last = 0, least = notices_of(live, owner, &last), most = 0, victim = 0;

	for (size_t i = 0; i < live->notice_count; i++) {
		const struct live_notice *notice = &live->notices[i];
		size_t count =
			notices_of(live, notice_owner(live, notice->comm, notice->seat), &last);

		if (count > most) {
			most = count;
			victim = last;
		}
	}
	if (most <= least + 1)
		return;
	live->notice_count--;
	memmove(&live->notices[victim], &live->notices[victim + 1],
		(live->notice_count - victim) * sizeof(*live->notices));
}

/* A new one with empty texts; never NULL. If there is no room it is discarded. It began `since_ns` ago. */
static struct live_notice *notice_add(struct live *live, enum live_notice_kind kind, uint32_t comm,
				      uint32_t seat, uint64_t since_ns)
{
	struct live_notice *notice;

	if (live->notice_count == LIVE_NOTICES_MAX - 1) {
		live->notices_left_out++;
		notices_share(live, notice_owner(live, comm, seat));
	}
	notice = &live->notices[live->notice_count];
	/* The last entry is never used: it takes what does not fit. */
	if (live->notice_count < LIVE_NOTICES_MAX - 1)
		live->notice_count++;
	*notice = (struct live_notice){ .kind = kind, .comm = comm, .seat = seat };
	notice->since_wall_ns = live->wall_ns > since_ns ? live->wall_ns - since_ns : 0;
	return notice;
}

/* ---- doubts ----------------------------------------------------------------------------------- */

/*
 * Operations that would be worth timing. Both rules compare a communicator only with its own past, so a job
 * that pauses for a minute between its steps, or calls something once an hour, is in no doubt while it does
 * what it always did. They blame no rank: a doubt only leads to a request for GPU times.
 */

enum {
	DOUBT_STRETCH = 30,    /* scans whose rate is compared */
	DOUBT_PAST = 3,	       /* required number of earlier windows */
	DOUBT_QUIET_PAST = 10, /* required number of scans before a pause */
	DOUBT_LONGER = 3,      /* a pause is unusual if it is this many times longer than any
				  before */
};
#define DOUBT_SLOWER 1.5

/* Scans at the end of a history at which nothing had finished. */
static uint32_t quiet_end(const struct live_history *history)
{
	uint32_t quiet = 0;

	while (quiet < history->count &&
	       !(live_point(history, history->count - 1 - quiet)->operations_per_s > 0))
		quiet++;
	return quiet;
}

/* The longest time without a finished operation in the first `count` scans. */
static uint64_t longest_pause(const struct live_history *history, uint32_t count)
{
	uint64_t longest_ns = 0, last_ns = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct live_point *point = live_point(history, i);

		if (!(point->operations_per_s > 0))
			continue;
		if (last_ns != 0 && point->wall_ns > last_ns &&
		    point->wall_ns - last_ns > longest_ns)
			longest_ns = point->wall_ns - last_ns;
		last_ns = point->wall_ns;
	}
	return longest_ns;
}

/* How long has no rank of this communicator called anything, on any communicator of its process? */
static uint64_t still_ns(const struct live *live, const struct job_comm *comm)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t process = live->job.seats[comm->seats[i]].process;

		for (uint32_t s = live->job.first_seat[process];
		     s < live->job.first_seat[process + 1]; s++)
			if (live->seats[s].still_ns < least_ns)
				least_ns = live->seats[s].still_ns;
	}
	return least_ns;
}

/*
 * Its launch has CUDA events around it, and the recorder has not asked the GPU for them since: its thread does not run. So
 * no more is known of it than of an operation that is not timed.
 */
static bool is_unasked(const struct recording_flight *flight)
{
	const struct op_record *op = &flight->op;

	return op->flags & OP_FLAG_CUDA_EVENT && !(op->flags & OP_FLAG_SEEN_OPEN) &&
	       op->state == OP_LAUNCHED && flight->proxy_count == 0;
}

static bool may_hang(const struct live *live, uint32_t c, double *seconds)
{
	const struct job_comm *comm = &live->job.comms[c];
	const struct live_history *history = &live->comms[c].history;
	uint64_t quiet_ns = still_ns(live, comm), usual_ns;
	uint32_t quiet = quiet_end(history), unseen = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct live_seat *seat = &live->seats[comm->seats[i]];

		/* A process that is gone or in an open operation is judged without GPU times. */
		if (seat->is_over || (seat->oldest != NULL && !is_unasked(seat->oldest)))
			return false;
		unseen += seat->is_unseen || seat->oldest != NULL;
	}
	if (unseen == 0 || quiet_ns == UINT64_MAX || quiet_ns < live->limits.lag_ns ||
	    history->count - quiet < DOUBT_QUIET_PAST)
		return false;
	usual_ns = longest_pause(history, history->count - quiet);
	*seconds = (double)quiet_ns / 1e9;
	return quiet_ns >= DOUBT_LONGER * usual_ns;
}

static double mean_rate(const struct live_history *history, uint32_t from)
{
	double sum = 0;

	for (uint32_t i = from; i < from + DOUBT_STRETCH; i++)
		sum += (double)live_point(history, i)->operations_per_s;
	return sum / DOUBT_STRETCH;
}

/* Slower than in any earlier window: one that has slow and fast phases is not slow in a slow one. */
static bool may_be_slow(const struct live *live, uint32_t c, double *times)
{
	const struct live_history *history = &live->comms[c].history;
	double now, least = INFINITY;
	uint32_t last, untimed = 0;

	if (history->count < (DOUBT_PAST + 1) * DOUBT_STRETCH)
		return false;
	last = history->count - DOUBT_STRETCH;
	for (uint32_t i = last; i < history->count; i++)
		untimed += isnan(live_point(history, i)->busbw) != 0;
	now = mean_rate(history, last);
	for (uint32_t from = last % DOUBT_STRETCH; from < last; from += DOUBT_STRETCH)
		least = fmin(least, mean_rate(history, from));
	*times = now > 0 ? least / now : 0;
	return untimed * 4 >= DOUBT_STRETCH * 3 && *times > DOUBT_SLOWER;
}

enum live_doubt live_doubt(const struct live *live, uint32_t comm, double *figure)
{
	*figure = 0;
	if (live->job.comms[comm].nranks == 1 || live->job.comms[comm].seat_count == 0)
		return LIVE_NO_DOUBT;
	if (may_hang(live, comm, figure))
		return LIVE_DOUBT_HANG;
	return may_be_slow(live, comm, figure) ? LIVE_DOUBT_SLOW : LIVE_NO_DOUBT;
}

/*
 * The doctor's part of a scan: hung ranks and their cause. The rules are the doctor's own (hang_find()),
 * so that the agent reports the same as `ringside doctor` at the same moment.
 *
 * Repeated scans know more than one moment: how long a seat has been without progress by our own clock, so
 * that counters which may be changing are not compared.
 */

static void take_times(const struct live *live, uint64_t *now_ns, uint64_t *still_ns)
{
	const struct live_memory *memory = live->memory;

	for (size_t p = 0; p < memory->process_count; p++) {
		now_ns[p] = memory->processes[p].now_ns;
		if (now_ns[p] == 0)
			now_ns[p] = hang_now_ns(live->job.recording->processes[p]);
	}
	for (size_t s = 0; s < live->job.seat_count; s++)
		still_ns[s] = live->seats[s].still_ns;
}

static uint32_t job_named(const struct live *live, const char *name)
{
	for (uint32_t j = (uint32_t)live->job.group_count; j-- > 0;)
		if (strcmp(live->job.groups[j].name, name) == 0)
			return j;
	return UINT32_MAX;
}

/*
 * Hangs whose cause is not visible here. An agent sees one node: if the ranks of this node wait for ranks of
 * others, it cannot know which of them is the cause, and names none. All such verdicts of a job become one.
 */

uint32_t live_ranks_elsewhere(const struct live *live, uint32_t job)
{
	const struct job_group *group = &live->job.groups[job];
	uint32_t elsewhere = group->world_size > (int64_t)group->rank_count
				     ? (uint32_t)(group->world_size - group->rank_count)
				     : 0;

	for (size_t c = 0; c < live->job.comm_count; c++)
		if (live->job.comms[c].group == job && live->job.comms[c].nnodes != 1 &&
		    live->job.comms[c].missing > elsewhere)
			elsewhere = live->job.comms[c].missing;
	return elsewhere;
}

/* "node[1-4],login:9800" with the port of this agent for those without one. False: too long. */
static bool put_hosts(char *text, size_t size, const char *hosts, unsigned int port)
{
	bool is_inside = false, has_port = false, is_whole = true;

	for (const char *at = hosts; is_whole; at++) {
		is_inside = *at == '[' || (is_inside && *at != ']');
		has_port |= *at == ':';
		if (*at == '\0' || (*at == ',' && !is_inside)) {
			if (port != 0 && !has_port)
				is_whole = text_append(text, size, ":%u", port);
			has_port = false;
		}
		if (*at == '\0')
			break;
		is_whole = is_whole && text_append(text, size, "%c", *at);
	}
	return is_whole;
}

void live_say_agents(struct live *live, uint32_t job, char *text, size_t size)
{
	struct live_job_memory *memory = &live->memory->jobs[job];
	char hosts[900], ported[900] = "";
	bool is_avoided = false;

	for (size_t p = 0; p < live->memory->process_count && !memory->has_hosts; p++) {
		const struct recording_process *process = live->job.recording->processes[p];

		if (live->job.ranks[live->job.process_rank[p]].group != job ||
		    process->life != RECORDING_ALIVE)
			continue;
		if (recording_hosts(process, hosts, sizeof(hosts)) &&
		    put_hosts(ported, sizeof(ported), hosts, live->limits.agent_port))
			memory->hosts = strdup(ported);
		memory->has_hosts = memory->hosts != NULL;
		is_avoided |= process->owner >= 0 && file_opener_avoids((uint32_t)process->owner);
	}
	/* Who did not answer is asked again later. */
	memory->has_hosts |= !is_avoided;
	if (memory->hosts != NULL)
		text_append(text, size, "ringside doctor --agents '%s'", memory->hosts);
	else
		text_append(text, size, "ringside doctor --agents HOSTS");
	if (memory->hosts == NULL && live->limits.agent_port != 0)
		text_append(text, size, ":%u", live->limits.agent_port);
}

uint32_t live_verdict_comm(const struct live *live, const struct verdict *verdict)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t c = 0; c < live->job.comm_count && verdict->comm[0] != '\0'; c++) {
		const struct job_comm *comm = &live->job.comms[c];
		bool is_named = strcmp(comm->label, verdict->comm) == 0;

		if (strcmp(live->job.groups[comm->group].name, verdict->job) != 0)
			continue;
		if (verdict->comm_hash != 0 ? comm->hash == verdict->comm_hash : is_named)
			found = c;
		if (found == c && is_named)
			break;
	}
	return found;
}

/* If all ranks of a communicator are on this node, so is the one that is not recorded. Without a visible cause
 * the cause is elsewhere, if there are ranks elsewhere. */
static bool is_elsewhere(const struct live *live, const struct verdict *verdict)
{
	uint32_t comm = live_verdict_comm(live, verdict);

	if (comm == UINT32_MAX || live->job.comms[comm].nnodes == 1)
		return false;
	return verdict->class == VERDICT_UNSEEN || verdict->class == VERDICT_AGENT_DEAD ||
	       (verdict->class == VERDICT_STUCK &&
		live_ranks_elsewhere(live, live->job.comms[comm].group) > 0);
}

/* Ranks of a job that are stuck here, as words, and their number. */
static uint32_t say_stuck(const struct live *live, uint32_t job, char *text, size_t size)
{
	uint32_t count = 0, last = UINT32_MAX;

	for (uint32_t r = 0; r < live->job.rank_count; r++) {
		const struct job_rank *rank = &live->job.ranks[r];

		for (uint32_t s = live->job.first_seat[rank->process];
		     rank->group == job && s < live->job.first_seat[rank->process + 1]; s++) {
			const struct live_seat *seat = &live->seats[s];

			if (live->job.seats[s].rank != r || r == last || seat->is_over ||
			    seat->oldest == NULL || seat->oldest_age_ns < live_hang_ns(live, job))
				continue;
			last = r;
			if (count++ < NAMED)
				text_append(text, size, "%s%.24s", count > 1 ? ", " : "",
					    rank->label);
		}
	}
	if (count > NAMED)
		text_append(text, size, " and %u more", count - NAMED);
	return count;
}

/* The longest transfer of a stuck rank of the job that the network does not complete, though both ends are in it. */
static const struct flight_wait *stuck_send(const struct live *live, uint32_t job, uint32_t *seat)
{
	const struct flight_wait *longest = NULL;

	for (uint32_t s = 0; s < live->job.seat_count; s++) {
		const struct live_seat *of = &live->seats[s];

		if (live->job.ranks[live->job.seats[s].rank].group != job || of->is_over ||
		    of->oldest == NULL || of->oldest_age_ns < live_hang_ns(live, job))
			continue;
		for (uint32_t w = 0; w < of->wait_count; w++)
			if (of->waits[w].reason == FLIGHT_SEND_NET && of->waits[w].since_ns != 0 &&
			    (longest == NULL || of->waits[w].since_ns < longest->since_ns)) {
				longest = &of->waits[w];
				*seat = s;
			}
	}
	return longest;
}

/* What is known here of the cause: a transfer that does not end, or nothing. */
static void tell_own_part(const struct live *live, uint32_t job, struct verdict *verdict)
{
	uint32_t elsewhere = live_ranks_elsewhere(live, job), seat = 0;
	const struct flight_wait *send = stuck_send(live, job, &seat);
	char rank[60] = "";

	if (send != NULL) {
		job_say_rank(rank, sizeof(rank), &live->job, seat);
		text_capital(rank);
		verdict->confidence = 0.7;
		verdict_evidence(
			verdict,
			"%s waits for the network to complete sends to rank %d of %.60s (%" PRIu64
			" done): that may be the cause.",
			rank, send->peer, live->job.comms[live->job.seats[seat].comm].label,
			send->steps_done);
	}
	verdict_evidence(
		verdict,
		"%s; %u of the job's ranks %s on other nodes, which this agent does not see.",
		send != NULL ? "Its other end is on another node"
			     : "Nothing on this node explains it",
		elsewhere, elsewhere == 1 ? "is" : "are");
}

static void tell_elsewhere(struct live *live, struct verdicts *told, const struct verdict *from)
{
	uint32_t job = job_named(live, from->job);
	struct verdict *verdict = verdicts_add(told, VERDICT_ELSEWHERE, from->severity);
	char ranks[200] = "", command[1000] = "$ ", time[UNITS_TEXT];
	uint32_t count = say_stuck(live, job, ranks, sizeof(ranks));

	text_copy(verdict->job, sizeof(verdict->job), from->job);
	text_copy(verdict->comm, sizeof(verdict->comm), from->comm);
	text_copy(verdict->function, sizeof(verdict->function), from->function);
	verdict_set_page(verdict);
	verdict->comm_hash = from->comm_hash;
	verdict->number = from->number;
	verdict->since_wall_ns = from->since_wall_ns;
	verdict->for_ns = from->for_ns;
	verdict->victims = count > 0 ? count : from->victims;
	verdict_title(verdict, "%u local %s for ranks on other nodes", verdict->victims,
		      text_which(verdict->victims, "rank waits", "ranks wait"));
	verdict_evidence(verdict, "%s %s been in %.24s #%" PRIu64 " of %.60s for %s.",
			 count > 0 ? ranks : "Local ranks", count == 1 ? "has" : "have",
			 from->function, from->number, from->comm,
			 units_duration(time, from->for_ns));
	tell_own_part(live, job, verdict);
	live_say_agents(live, job, command, sizeof(command));
	verdict_advice(verdict, "Ask all nodes of the job:");
	verdict_advice(verdict, "%s", command);
	if (live->memory->jobs[job].hosts == NULL)
		verdict_advice(verdict, "HOSTS are the job's nodes, such as node[001-064]. To have "
					"them filled in here, set RINGSIDE_HOSTS in the job's "
					"environment.");
}

/* The one that has lasted longest stands for all of its job. */
static const struct verdict *longest_elsewhere(const struct live *live,
					       const struct verdicts *found, const char *job)
{
	const struct verdict *longest = NULL;

	for (size_t i = 0; i < found->count; i++) {
		const struct verdict *verdict = &found->list[i];

		if (strcmp(verdict->job, job) != 0 || verdict->is_allowed ||
		    !is_elsewhere(live, verdict))
			continue;
		if (longest == NULL || verdict->severity > longest->severity ||
		    (verdict->severity == longest->severity && verdict->for_ns > longest->for_ns))
			longest = verdict;
	}
	return longest;
}

/* Dead and stopped processes are reported as soon as others hang because of them; deaths have notices. What the
 * job allows is no hang yet. */
static bool is_only_doubt(const struct verdict *verdict)
{
	return verdict->class == VERDICT_BLIND || verdict->is_allowed ||
	       (verdict->severity < VERDICT_ERROR && (verdict->class == VERDICT_PROCESS_DEAD ||
						      verdict->class == VERDICT_PROCESS_STOPPED));
}

static void take_doubt(struct live *live, const struct verdict *verdict)
{
	static const char prefix[] = "not judged: ";
	uint32_t job = job_named(live, verdict->job);
	const char *title = verdict->title;
	struct live_judged *hangs;

	if (job == UINT32_MAX)
		return;
	hangs = &live->jobs[job].hangs;
	if (verdict->class != VERDICT_BLIND) {
		text_copy(hangs->once, sizeof(hangs->once), title);
		return;
	}
	if (hangs->why[0] != '\0')
		return;
	hangs->is_judged = false;
	if (strncmp(title, prefix, strlen(prefix)) == 0)
		title += strlen(prefix);
	text_copy(hangs->why, sizeof(hangs->why), title);
	for (size_t i = 0; i < verdict->advice.count && hangs->how[0] == '\0'; i++)
		if (strncmp(verdict->advice.list[i], "$ ", 2) == 0)
			text_copy(hangs->how, sizeof(hangs->how), verdict->advice.list[i] + 2);
}

static void take_hangs(struct live *live, const struct verdicts *found)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct verdict *verdict = &found->list[i];

		if (is_only_doubt(verdict))
			take_doubt(live, verdict);
		else if (!is_elsewhere(live, verdict))
			verdicts_add_copy(&live->verdicts, verdict);
	}
	for (uint32_t j = 0; j < live->job.group_count; j++) {
		const struct verdict *verdict =
			longest_elsewhere(live, found, live->job.groups[j].name);

		if (verdict != NULL)
			tell_elsewhere(live, &live->verdicts, verdict);
	}
	for (size_t i = 0; i < live->verdicts.count; i++) {
		uint32_t job = job_named(live, live->verdicts.list[i].job);

		if (job != UINT32_MAX)
			live->jobs[job].hangs.found++;
	}
}

static void live_jobs(struct live *live)
{
	for (size_t p = 0; p < live->memory->process_count && live->job.rank_count > 0; p++)
		live->jobs[live->job.ranks[live->job.process_rank[p]].group].is_alive |=
			live->job.recording->processes[p]->life == RECORDING_ALIVE;
	for (uint32_t j = 0; j < live->job.group_count; j++)
		live->jobs[j].hangs = (struct live_judged){ .is_judged = live->jobs[j].is_alive,
							    .wall_ns = live->wall_ns };
}

/* Without memory this scan has no verdicts; the next one tries again. */
void live_verdicts(struct live *live)
{
	uint64_t *now_ns = calloc(live->memory->process_count + 1, sizeof(*now_ns));
	uint64_t *still_ns = calloc(live->job.seat_count + 1, sizeof(*still_ns));
	struct hang_options options = { .hang_ns = live->limits.hang_ns,
					.has_job_limits = !live->limits.is_hang_fixed,
					.now_ns = now_ns,
					.still_ns = still_ns,
					.only_living = true,
					.is_quick = true,
					.has_unjudged = true };
	struct verdicts found;

	verdicts_init(&found);
	live_jobs(live);
	if (now_ns != NULL && still_ns != NULL) {
		take_times(live, now_ns, still_ns);
		if (hang_find(&found, &live->job, &options) == OK)
			take_hangs(live, &found);
	}
	verdicts_release(&found);
	free(now_ns);
	free(still_ns);
}

void live_date_verdicts(struct live *live)
{
	for (size_t i = 0; i < live->verdicts.count; i++) {
		uint32_t job = job_named(live, live->verdicts.list[i].job);

		if (job != UINT32_MAX)
			live->verdicts.list[i].job_start_wall_ns =
				live->job.groups[job].started_wall_ns;
	}
}

/*
 * Stuck communicators, as notices. The cause comes from the doctor; here a verdict becomes one notice about
 * its cause: victims have no notice of their own.
 *
 * Before a hang there is lag: a rank that has not called what others have been in for lag_ns is behind.
 */

/* ---- verdicts ------------------------------------------------------------------------------------ */

/* Slowness of a rank may concern all its communicators: then any of them. */
static uint32_t find_seat(const struct live *live, const struct verdict *verdict, uint32_t c)
{
	const struct job_comm *comm;

	if (verdict->rank_label[0] == '\0')
		return UINT32_MAX;
	for (uint32_t s = 0; c == UINT32_MAX && s < live->job.seat_count; s++) {
		const struct job_rank *rank = &live->job.ranks[live->job.seats[s].rank];

		if (strcmp(rank->label, verdict->rank_label) == 0 &&
		    strcmp(live->job.groups[rank->group].name, verdict->job) == 0)
			return s;
	}
	if (c == UINT32_MAX)
		return UINT32_MAX;
	comm = &live->job.comms[c];
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t rank = live->job.seats[comm->seats[i]].rank;

		if (strcmp(live->job.ranks[rank].label, verdict->rank_label) == 0)
			return comm->seats[i];
	}
	return UINT32_MAX;
}

/* A warning may still make progress: not a hang. */
static enum live_notice_kind notice_kind_of(const struct verdict *verdict)
{
	if (verdict->class == VERDICT_MISMATCH)
		return LIVE_MISMATCH;
	if (verdict_is_slow(verdict->class))
		return LIVE_SLOW;
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
	if (notice->seat != UINT32_MAX && verdict->class != VERDICT_NETWORK_STUCK &&
	    !verdict_is_slow(verdict->class))
		say_process_hint(HINT, live, notice->seat);
	for (size_t i = 0; i < verdict->advice.count && notice->hint[0] == '\0'; i++)
		if (strncmp(verdict->advice.list[i], "$ ", 2) == 0)
			text_append(HINT, "%s", verdict->advice.list[i] + 2);
}

static void give_verdict(struct live *live, const struct verdict *verdict)
{
	uint32_t comm = live_verdict_comm(live, verdict);
	struct live_notice *notice = notice_add(live, notice_kind_of(verdict), comm,
						find_seat(live, verdict, comm), verdict->for_ns);

	text_append(TITLE, "%s", verdict->title);
	say_lines(notice, &verdict->evidence);
	say_lines(notice, &verdict->missing);
	say_hint(live, notice, verdict);
}

static bool is_told(const struct live *live, uint32_t comm)
{
	for (size_t i = 0; i < live->notice_count; i++)
		if (live->notices[i].comm == comm && live->notices[i].kind != LIVE_DEAD &&
		    live->notices[i].kind != LIVE_SLOW)
			return true;
	return false;
}

/* ---- lag ----------------------------------------------------------------------------------------- */

struct lag {
	uint32_t missing; /* ranks that have not called what the lead is in */
	uint32_t culprit; /* of those, the first that is not held up elsewhere; UINT32_MAX none */
};

/* Has this rank been in an operation of another communicator for long? */
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

static struct lag survey_lag(const struct live *live, const struct job_comm *comm)
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
	const struct job_rank *first = &live->job.ranks[live->job.seats[lag->culprit].rank];
	uint32_t named = 1;

	if (lag->missing == 1)
		job_say_rank(text, size, &live->job, lag->culprit);
	else
		text_append(text, size, first->rank < 0 ? "processes %.48s" : "ranks %.48s",
			    first->label);
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

/* " Rank 5 (node3, pid 4711) is at collective #811 ...": how far the rank behind is. */
static void say_missing(const struct live *live, struct live_notice *notice, uint32_t seat)
{
	const struct live_seat *of = &live->seats[seat];
	size_t at = strlen(notice->text) + 1;

	text_append(TEXT, " ");
	say_whole_rank(TEXT, live, seat);
	if (at < sizeof(notice->text))
		text_capital(notice->text + at);
	if (of->is_over && process_of(live, seat)->life == RECORDING_KILLED)
		text_append(TEXT, " died at collective #%" PRIu64 ".",
			    of->comm->counts.collectives);
	else if (of->is_over)
		text_append(TEXT, " ended after collective #%" PRIu64 ".",
			    of->comm->counts.collectives);
	else
		text_append(TEXT,
			    " is at collective #%" PRIu64 " and has done nothing there for %" PRIu64
			    " s.",
			    of->comm->counts.collectives, of->still_ns / SECOND_NS);
}

/* How long has the lead been in what the others have not called? Since it is known to run, if it is. */
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
	notice = notice_add(live, LIVE_BEHIND, c, lag->culprit, in_ns);
	name_missing(live, comm, lag, TITLE);
	text_append(TITLE, " not called ");
	say_operation(TITLE, live, lead);
	text_append(TITLE, " of %.40s", comm->label);
	job_say_rank(TEXT, &live->job, lead);
	text_capital(notice->text);
	text_append(TEXT, " has been in it for %" PRIu64 " s.", in_ns / SECOND_NS);
	say_missing(live, notice, lag->culprit);
	if (comm->missing > 0)
		text_append(TEXT, " %u rank%s on other nodes %s not visible here.", comm->missing,
			    comm->missing == 1 ? "" : "s", comm->missing == 1 ? "is" : "are");
	say_process_hint(HINT, live, lag->culprit);
}

/* MISMATCH, HANG, MISSING from verdicts; BEHIND. A communicator that a verdict covers, or that waits for
 * one, is not reported as behind again. */
static void live_stuck(struct live *live)
{
	for (size_t i = 0; i < live->verdicts.count; i++)
		give_verdict(live, &live->verdicts.list[i]);
	for (uint32_t c = 0; c < live->job.comm_count; c++) {
		struct lag lag;

		if (live->comms[c].lead == UINT32_MAX || is_told(live, c))
			continue;
		lag = survey_lag(live, &live->job.comms[c]);
		if (lag.culprit != UINT32_MAX)
			give_behind(live, c, &lag);
	}
}

static uint64_t notice_key(const struct live *live, const struct live_notice *notice)
{
	uint64_t key = hash_word(2, notice->kind);

	if (notice->comm != UINT32_MAX)
		key = hash_word(key, live->memory->comm_keys[notice->comm]);
	if (notice->seat != UINT32_MAX)
		key = hash_word(key, live->memory->seat_keys[notice->seat]);
	return key;
}

static void keep_times(struct live *live)
{
	struct live_given given[LIVE_NOTICES_MAX];
	struct live_memory *memory = live->memory;

	for (size_t i = 0; i < live->notice_count; i++) {
		struct live_notice *notice = &live->notices[i];

		given[i] = (struct live_given){ notice_key(live, notice), live->wall_ns };
		for (size_t j = 0; j < memory->given_count; j++)
			if (memory->given[j].key == given[i].key)
				given[i].first_wall_ns = memory->given[j].first_wall_ns;
		notice->first_wall_ns = given[i].first_wall_ns;
	}
	memcpy(memory->given, given, live->notice_count * sizeof(given[0]));
	memory->given_count = live->notice_count;
}

/* Causes before consequences. */
static int seriousness(const struct live_notice *notice)
{
	static const int order[LIVE_NOTICE_KINDS] = {
		[LIVE_MISMATCH] = 0, [LIVE_DEAD] = 1, [LIVE_MISSING] = 2,   [LIVE_HANG] = 3,
		[LIVE_BEHIND] = 4,   [LIVE_SLOW] = 5, [LIVE_STRAGGLER] = 6, [LIVE_LOSS] = 7
	};

	return order[notice->kind];
}

static int most_serious_first(const void *one, const void *other)
{
	const struct live_notice *a = one, *b = other;

	return ORDER(seriousness(a), seriousness(b)) ?:
	       ORDER(a->since_wall_ns / SECOND_NS, b->since_wall_ns / SECOND_NS) ?:
	       ORDER(a->comm, b->comm) ?:
	       ORDER(a->seat, b->seat);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Live ranks of its communicators; *comm is one of those. */
static uint32_t survivors_of(const struct live *live, uint32_t p, uint32_t *comm)
{
	uint32_t most = 0;

	for (uint32_t s = live->job.first_seat[p]; s < live->job.first_seat[p + 1]; s++) {
		const struct job_comm *of = &live->job.comms[live->job.seats[s].comm];
		uint32_t count = 0;

		if (live->seats[s].comm->info.flags & COMM_FLAG_FINALIZED)
			continue;
		for (uint32_t i = 0; i < of->seat_count; i++)
			count += !live->seats[of->seats[i]].is_over;
		if (count > most) {
			most = count;
			*comm = live->job.seats[s].comm;
		}
	}
	return most;
}

static void dead_process(struct live *live, uint32_t p)
{
	const struct recording_process *process = live->job.recording->processes[p];
	uint64_t since_ns = live->memory->monotonic_ns - live->memory->processes[p].dead_ns;
	struct live_notice *notice;
	uint32_t comm = UINT32_MAX, seat, survivors;

	if (process->life != RECORDING_KILLED || since_ns < DEAD_NS)
		return;
	survivors = survivors_of(live, p, &comm);
	if (survivors == 0)
		return;
	for (seat = live->job.first_seat[p]; live->job.seats[seat].comm != comm; seat++)
		;
	notice = notice_add(live, LIVE_DEAD, comm, seat, since_ns);
	job_say_rank(TITLE, &live->job, seat);
	text_append(TITLE, " died; %u rank%s of %.40s %s left", survivors,
		    survivors == 1 ? "" : "s", live->job.comms[comm].label,
		    survivors == 1 ? "is" : "are");
	text_append(TEXT, "The process of ");
	say_whole_rank(TEXT, live, seat);
	text_append(TEXT, " is gone and did not close its recording: it was killed or crashed.");
	if (live->seats[seat].oldest != NULL) {
		text_append(TEXT, " It was in ");
		say_operation(TEXT, live, seat);
		text_append(TEXT, " of %.60s.", live->job.comms[comm].label);
	}
	/* Names from recordings must not appear in commands. */
	text_append(HINT,
		    "on its host: dmesg | grep -iE 'xid|killed process'; also check the job's log");
}

static void losing_process(struct live *live, uint32_t p)
{
	const struct recording_process *process = live->job.recording->processes[p];
	const struct live_process_memory *memory = &live->memory->processes[p];
	uint32_t seat = live->job.first_seat[p];
	struct live_notice *notice;
	bool is_first = true;

	if (memory->losing_since_ns == 0 || process->life == RECORDING_ENDED ||
	    process->life == RECORDING_KILLED || seat == live->job.first_seat[p + 1])
		return;
	notice = notice_add(live, LIVE_LOSS, UINT32_MAX, seat,
			    live->memory->monotonic_ns - memory->losing_since_ns);
	job_say_rank(TITLE, &live->job, seat);
	text_append(TITLE, ": %" PRIu64 " operations not recorded",
		    memory->lost - memory->lost_before);
	say_whole_rank(TEXT, live, seat);
	text_capital(notice->text);
	text_append(TEXT, " lost operation records. Since it started, by reason: ");
	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		if (process->lost[i] == 0 || !op_lost_is_whole(i))
			continue;
		text_append(TEXT, "%s%s %" PRIu64, is_first ? "" : ", ", op_lost_name(i),
			    process->lost[i]);
		is_first = false;
	}
	text_append(TEXT, ".");
	text_append(HINT, "see docs/BLIND-SPOTS.md for the reasons; a larger RINGSIDE_BUFFER or "
			  "RINGSIDE_QUOTA may help");
}

/* ---- stragglers ------------------------------------------------------------------------------ */

/* It appears in a command. */
static bool is_plain_uuid(const char *uuid)
{
	return strncmp(uuid, "GPU-", 4) == 0 &&
	       uuid[4 + strspn(uuid + 4, "0123456789abcdef-")] == '\0';
}

/* The doctor's verdict on the same rank says more. */
static bool is_found_slow(const struct live *live, uint32_t seat)
{
	const struct job_rank *rank = &live->job.ranks[live->job.seats[seat].rank];

	for (size_t i = 0; i < live->verdicts.count; i++) {
		const struct verdict *verdict = &live->verdicts.list[i];

		if (verdict_is_slow(verdict->class) &&
		    strcmp(verdict->job, live->job.groups[rank->group].name) == 0 &&
		    (strcmp(verdict->rank_label, rank->label) == 0 ||
		     (verdict->class == VERDICT_SLOW_HOST &&
		      strcmp(verdict->host, live->job.hosts[rank->host].name) == 0)))
			return true;
	}
	return false;
}

static void straggler_of(struct live *live, uint32_t c)
{
	const struct live_comm_memory *memory = &live->memory->comms[c];
	uint32_t seat = live->comms[c].straggler, others = 0;
	const struct job_comm *comm = &live->job.comms[c];
	struct live_notice *notice;
	const struct comm_info *info;
	uint64_t since_ns;

	if (seat == UINT32_MAX || live->seats[seat].is_over || is_found_slow(live, seat))
		return;
	since_ns = live->memory->monotonic_ns - memory->straggler_since_ns;
	if (since_ns < live->limits.straggler_ns)
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		others += comm->seats[i] != seat && !live->seats[comm->seats[i]].is_over;
	notice = notice_add(live, LIVE_STRAGGLER, c, seat, since_ns);
	info = &live->seats[seat].comm->info;
	text_append(TITLE, "%u rank%s of %.40s wait%s for ", others, others == 1 ? "" : "s",
		    comm->label, others == 1 ? "s" : "");
	job_say_rank(TITLE, &live->job, seat);
	text_append(TITLE, ": %.0f%% of the time", 100 * memory->straggler_share);
	text_append(TEXT, "For %" PRIu64 " s ", since_ns / SECOND_NS);
	say_whole_rank(TEXT, live, seat);
	text_append(TEXT,
		    " has been last to arrive at the collectives of %.60s. Those of the others "
		    "waited at least %.0f%% of that time, part of it perhaps during compute.",
		    comm->label, 100 * memory->straggler_share);
	if (comm->missing > 0)
		text_append(TEXT, " %u %s on other nodes and not visible here.", comm->missing,
			    text_which(comm->missing, "rank is", "ranks are"));
	if (is_plain_uuid(info->gpu_uuid))
		text_append(HINT, "is it throttled? nvidia-smi -q -d PERFORMANCE,CLOCK -i %s",
			    info->gpu_uuid);
	else
		text_append(HINT, "is its GPU throttled? nvidia-smi -q -d PERFORMANCE,CLOCK");
}

/* If there are too many of them, the first are kept. */
void live_notices(struct live *live)
{
	for (uint32_t p = 0; p < live->memory->process_count; p++)
		dead_process(live, p);
	live_stuck(live);
	for (uint32_t c = 0; c < live->job.comm_count; c++)
		straggler_of(live, c);
	for (uint32_t p = 0; p < live->memory->process_count; p++)
		losing_process(live, p);
	if (live->notice_count > 1)
		qsort(live->notices, live->notice_count, sizeof(*live->notices),
		      most_serious_first);
	keep_times(live);
}
