/*
 * What is worth telling, in words. A notice is given anew at every look at which its reason holds, and
 * keeps the time when it was first given; when the reason is gone, so is the notice.
 */
#include "live/live_notice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"

/* A launcher that kills a whole job does so within a moment: nobody is left to be told. */
#define DEAD_NS (2 * LIVE_SECOND_NS)

const char *live_notice_name(enum live_notice_kind kind)
{
	static const char *const names[LIVE_NOTICE_KINDS] = { "hang", "missing", "mismatch",
							      "dead", "behind",	 "straggler",
							      "loss" };

	return (unsigned int)kind < LIVE_NOTICE_KINDS ? names[kind] : "?";
}

/* ---- words ----------------------------------------------------------------------------------- */

void live_notice_capital(char *text, size_t at)
{
	if (text[at] >= 'a' && text[at] <= 'z')
		text[at] = (char)(text[at] - 'a' + 'A');
}

const struct recording_process *live_notice_process(const struct live *live, uint32_t seat)
{
	return live->job.recording->processes[live->job.seats[seat].process];
}

static const struct job_rank *rank_of(const struct live *live, uint32_t seat)
{
	return &live->job.ranks[live->job.seats[seat].rank];
}

void live_notice_rank(char *text, size_t size, const struct live *live, uint32_t seat)
{
	const struct job_rank *rank = rank_of(live, seat);

	text_append(text, size, rank->rank < 0 ? "process %.48s" : "rank %.48s", rank->label);
}

void live_notice_whole_rank(char *text, size_t size, const struct live *live, uint32_t seat)
{
	const struct recording_process *process = live_notice_process(live, seat);

	live_notice_rank(text, size, live, seat);
	if (rank_of(live, seat)->rank >= 0)
		text_append(text, size, " (%.40s, pid %" PRId64 ")",
			    process->host[0] ? process->host : "host unknown",
			    process->pid_here > 0 ? process->pid_here : process->pid);
}

void live_notice_operation(char *text, size_t size, const struct live *live, uint32_t seat)
{
	const struct op_record *op = &live->seats[seat].oldest->op;
	const struct recording_process *process = live_notice_process(live, seat);

	text_append(text, size, "%.24s %" PRIu64,
		    recording_name(process, OP_NAMES_FUNCTION, op->function),
		    op->match != 0 ? op->match : op->number);
	if (op->flags & OP_FLAG_REPLAY)
		text_append(text, size, " (a graph's replay)");
	else if (op->peer >= 0 && op->function == OP_SEND)
		text_append(text, size, " to rank %d", op->peer);
	else if (op->peer >= 0 && op->function == OP_RECV)
		text_append(text, size, " from rank %d", op->peer);
}

void live_notice_hint(char *text, size_t size, const struct live *live, uint32_t seat)
{
	const struct recording_process *process = live_notice_process(live, seat);

	if (process->pid_here > 0)
		text_append(text, size,
			    "ringside ps @%" PRId64 "; where it is: py-spy dump --pid %" PRId64
			    " or gdb -p %" PRId64,
			    process->pid_here, process->pid_here, process->pid_here);
}

/* ---- the list -------------------------------------------------------------------------------- */

struct live_notice *live_notice_add(struct live *live, enum live_notice_kind kind, uint32_t comm,
				    uint32_t seat, uint64_t since_ns)
{
	struct live_notice *notice = &live->notices[live->notice_count];

	/* The last place is never used: it takes what is too much. */
	if (live->notice_count < LIVE_NOTICES_MAX - 1)
		live->notice_count++;
	else
		live->notices_left_out++;
	*notice = (struct live_notice){ .kind = kind, .comm = comm, .seat = seat };
	notice->since_wall_ns = live->wall_ns > since_ns ? live->wall_ns - since_ns : 0;
	return notice;
}

static uint64_t key_of(const struct live *live, const struct live_notice *notice)
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

		given[i] = (struct live_given){ key_of(live, notice), live->wall_ns };
		for (size_t j = 0; j < memory->given_count; j++)
			if (memory->given[j].key == given[i].key)
				given[i].first_wall_ns = memory->given[j].first_wall_ns;
		notice->first_wall_ns = given[i].first_wall_ns;
	}
	memcpy(memory->given, given, live->notice_count * sizeof(given[0]));
	memory->given_count = live->notice_count;
}

/* Causes before what follows from them. */
static int seriousness(const struct live_notice *notice)
{
	static const int order[LIVE_NOTICE_KINDS] = {
		[LIVE_MISMATCH] = 0, [LIVE_DEAD] = 1,	   [LIVE_MISSING] = 2, [LIVE_HANG] = 3,
		[LIVE_BEHIND] = 4,   [LIVE_STRAGGLER] = 5, [LIVE_LOSS] = 6
	};

	return order[notice->kind];
}

static int most_serious_first(const void *one, const void *other)
{
	const struct live_notice *a = one, *b = other;

	if (seriousness(a) != seriousness(b))
		return seriousness(a) - seriousness(b);
	if (a->since_wall_ns / LIVE_SECOND_NS != b->since_wall_ns / LIVE_SECOND_NS)
		return a->since_wall_ns < b->since_wall_ns ? -1 : 1;
	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	return a->seat < b->seat ? -1 : a->seat > b->seat;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Members of its communicators that go on without it; *comm is one of those. */
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
	notice = live_notice_add(live, LIVE_DEAD, comm, seat, since_ns);
	live_notice_rank(notice->title, sizeof(notice->title), live, seat);
	text_append(notice->title, sizeof(notice->title), " died; %u rank%s of %.40s %s left",
		    survivors, survivors == 1 ? "" : "s", live->job.comms[comm].label,
		    survivors == 1 ? "is" : "are");
	text_append(notice->text, sizeof(notice->text), "The process of ");
	live_notice_whole_rank(notice->text, sizeof(notice->text), live, seat);
	text_append(notice->text, sizeof(notice->text),
		    " is gone and did not end its recording: it was killed or crashed.");
	if (live->seats[seat].oldest != NULL) {
		text_append(notice->text, sizeof(notice->text), " It was in ");
		live_notice_operation(notice->text, sizeof(notice->text), live, seat);
		text_append(notice->text, sizeof(notice->text), " of %.60s.",
			    live->job.comms[comm].label);
	}
	/* Texts of others do not belong into what is to be typed. */
	text_append(notice->hint, sizeof(notice->hint),
		    "on its host: dmesg | grep -iE 'xid|killed process'; and the job's own log");
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
	notice = live_notice_add(live, LIVE_LOSS, UINT32_MAX, seat,
				 live->memory->monotonic_ns - memory->losing_since_ns);
	live_notice_rank(notice->title, sizeof(notice->title), live, seat);
	text_append(notice->title, sizeof(notice->title), ": %" PRIu64 " operations not recorded",
		    memory->lost - memory->lost_before);
	text_append(notice->text, sizeof(notice->text), "Of ");
	live_notice_whole_rank(notice->text, sizeof(notice->text), live, seat);
	text_append(notice->text, sizeof(notice->text),
		    " operations are not in its recording. Since it started, by reason: ");
	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		if (process->lost[i] == 0 || !op_lost_is_whole(i))
			continue;
		text_append(notice->text, sizeof(notice->text), "%s%s %" PRIu64,
			    is_first ? "" : ", ", op_lost_name(i), process->lost[i]);
		is_first = false;
	}
	text_append(notice->text, sizeof(notice->text), ".");
	text_append(notice->hint, sizeof(notice->hint),
		    "docs/COMPLETENESS.md says what each reason means; a larger RINGSIDE_BUFFER or "
		    "RINGSIDE_QUOTA may help");
}

/* ---- stragglers ------------------------------------------------------------------------------ */

/* Somebody may type this. */
static bool is_plain_uuid(const char *uuid)
{
	return strncmp(uuid, "GPU-", 4) == 0 &&
	       uuid[4 + strspn(uuid + 4, "0123456789abcdef-")] == '\0';
}

static void straggler_of(struct live *live, uint32_t c)
{
	const struct live_comm_memory *memory = &live->memory->comms[c];
	uint32_t seat = live->comms[c].straggler, others = 0;
	const struct job_comm *comm = &live->job.comms[c];
	struct live_notice *notice;
	const struct comm_info *info;
	uint64_t since_ns;

	if (seat == UINT32_MAX || live->seats[seat].is_over)
		return;
	since_ns = live->memory->monotonic_ns - memory->straggler_since_ns;
	if (since_ns < live->limits.straggler_ns)
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		others += comm->seats[i] != seat && !live->seats[comm->seats[i]].is_over;
	notice = live_notice_add(live, LIVE_STRAGGLER, c, seat, since_ns);
	info = &live->seats[seat].comm->info;
	text_append(notice->title, sizeof(notice->title), "%u rank%s of %.40s wait%s for ", others,
		    others == 1 ? "" : "s", comm->label, others == 1 ? "s" : "");
	live_notice_rank(notice->title, sizeof(notice->title), live, seat);
	text_append(notice->title, sizeof(notice->title), ": %.0f %% of the time",
		    100 * memory->straggler_share);
	text_append(notice->text, sizeof(notice->text), "For %" PRIu64 " s ",
		    since_ns / LIVE_SECOND_NS);
	live_notice_whole_rank(notice->text, sizeof(notice->text), live, seat);
	text_append(
		notice->text, sizeof(notice->text),
		" has come last to the collectives of %.60s. The others waited at least %.0f %% "
		"of that time in them.",
		comm->label, 100 * memory->straggler_share);
	if (comm->missing > 0)
		text_append(notice->text, sizeof(notice->text),
			    " %u members are on other nodes and not seen here.", comm->missing);
	if (is_plain_uuid(info->gpu_uuid))
		text_append(notice->hint, sizeof(notice->hint),
			    "is it throttled? nvidia-smi -q -d PERFORMANCE,CLOCK -i %s",
			    info->gpu_uuid);
	else
		text_append(notice->hint, sizeof(notice->hint),
			    "is its GPU throttled? nvidia-smi -q -d PERFORMANCE,CLOCK");
}

/* When there are too many of them, the first are kept. */
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
