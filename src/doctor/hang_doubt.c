/* What could not be seen, and how much weaker that makes a verdict. */
#include <inttypes.h>

#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

#define SAY text, sizeof(text)

static void doubt(struct hang_tale *tale, double factor)
{
	tale->verdict->confidence *= factor;
}

/* Members of which nothing is recorded. That a rank has not called something is true all the same. */
static void doubt_unseen(struct hang_tale *tale, const struct job_comm *comm)
{
	if (comm->missing == 0 || tale->verdict->class == VERDICT_UNSEEN ||
	    tale->verdict->class == VERDICT_AGENT_DEAD)
		return;
	verdict_missing(tale->verdict,
			"%u of %d ranks of %.60s cannot be seen: one of them may have "
			"a part in it.",
			comm->missing, comm->nranks, comm->label);
	doubt(tale,
	      tale->verdict->class == VERDICT_STUCK || tale->verdict->class == VERDICT_GPU_STUCK
		      ? 0.8
		      : 0.92);
}

/* Operations that the culprit's recorder lost. */
static void doubt_losses(struct hang_tale *tale, uint32_t seat)
{
	const struct recording_process *process = hang_process(tale->scene, seat);
	uint64_t never_seen = op_lost_unseen(process->lost);
	uint64_t lost = op_lost_operations(process->lost);
	char text[100] = "";

	hang_say_rank(SAY, tale->scene, seat);
	hang_capital(text);
	if (never_seen > 0) {
		verdict_missing(tale->verdict,
				"%s made %" PRIu64 " calls that were not recorded at "
				"all: it may have called more than is known.",
				text, never_seen);
		doubt(tale, 0.6);
	} else if (lost > 0) {
		verdict_missing(tale->verdict, "%s has lost %" PRIu64 " records of operations.",
				text, lost);
		doubt(tale, 0.9);
	}
	if (tale->scene->seats[seat].comm->counts.untracked > 0) {
		verdict_missing(tale->verdict,
				"%s had operations that could not be followed, for want "
				"of room: it may be in one of them.",
				text);
		doubt(tale, 0.85);
	}
}

/* The rank may be in something of whose end NCCL shows nothing, or busy elsewhere. */
static void doubt_idle(struct hang_tale *tale, uint32_t seat)
{
	const struct job *job = tale->scene->job;
	const struct job_seat *of = &job->seats[seat];
	uint64_t ago_ns;
	char text[100] = "";

	hang_say_rank(SAY, tale->scene, seat);
	for (uint32_t s = job->first_seat[of->process]; s < job->first_seat[of->process + 1]; s++)
		if (job->seats[s].rank == of->rank && tale->scene->seats[s].is_blind) {
			verdict_missing(tale->verdict,
					"NCCL shows nothing of the end of what %s "
					"called last on %.60s: it may be in that.",
					text, job->comms[job->seats[s].comm].label);
			/* Where all others have gone on from there it is not likely. */
			doubt(tale,
			      tale->scene->meetings[job->seats[s].comm].is_by_calls ? 0.85 : 0.7);
			break;
		}
	if (hang_last_active(tale->scene, seat, &ago_ns) != HANG_NOBODY &&
	    ago_ns < tale->scene->pause_ns && !tale->scene->seats[seat].is_over) {
		hang_capital(text);
		verdict_missing(tale->verdict,
				"%s is active on another communicator: it may come yet, or keep "
				"the others waiting on purpose.",
				text);
		tale->verdict->severity = VERDICT_WARNING;
		doubt(tale, 0.6);
	} else if (!tale->scene->seats[seat].is_over) {
		verdict_missing(tale->verdict,
				"What %s does outside NCCL is not recorded: a checkpoint "
				"or an evaluation that takes long looks the same.",
				text);
	}
}

/* Few came, many did not: perhaps the few are wrong. */
static void doubt_majority(struct hang_tale *tale)
{
	const struct job_comm *comm = &tale->scene->job->comms[tale->lead->comm];
	const struct hang_meeting *meeting = &tale->scene->meetings[tale->lead->comm];
	uint32_t missing = 0;
	char text[100] = "";

	if (tale->lead->note == HANG_NOTE_PEER)
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++)
		missing += !hang_has_issued(tale->scene, comm->seats[i], meeting);
	if (comm->seat_count < 4 || missing * 2 <= comm->seat_count)
		return;
	hang_say_rank(SAY, tale->scene, tale->lead->witness);
	verdict_missing(tale->verdict,
			"Only %u of %u ranks came: perhaps %s and those with it made one "
			"call too many.",
			comm->seat_count - missing, comm->seat_count, text);
	doubt(tale, 0.65);
}

static void doubt_dead(struct hang_tale *tale, uint32_t seat)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t component = scene->processes[scene->job->seats[seat].process].component;

	for (uint32_t p = 0; p < scene->job->recording->count; p++) {
		const struct hang_process *process = &scene->processes[p];

		if (process->component != component ||
		    (process->life != HANG_DEAD && process->life != HANG_STOPPED))
			continue;
		verdict_missing(tale->verdict,
				"%s %.48s of the same job is %s: this may follow from "
				"that.",
				"Rank", scene->job->ranks[scene->job->process_rank[p]].label,
				process->life == HANG_DEAD ? "dead" : "stopped");
		doubt(tale, 0.6);
		return;
	}
}

/* That others are in it is known from calls alone. */
static void doubt_calls(struct hang_tale *tale)
{
	if (!tale->scene->meetings[tale->lead->comm].is_by_calls)
		return;
	verdict_missing(tale->verdict,
			"Kernel events were not recorded: that the others wait in it follows from "
			"their calls alone.");
	doubt(tale, 0.93);
}

void hang_tell_doubts(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;

	if (lead == NULL)
		return;
	doubt_unseen(tale, &tale->scene->job->comms[lead->comm]);
	if (lead->seat == HANG_NOBODY)
		return;
	if (lead->class == VERDICT_NEVER_ISSUED || lead->class == VERDICT_NOT_LAUNCHED ||
	    lead->class == VERDICT_GPU_NOT_REACHED)
		doubt_losses(tale, lead->seat);
	if (lead->class == VERDICT_NEVER_ISSUED) {
		doubt_calls(tale);
		doubt_idle(tale, lead->seat);
		doubt_majority(tale);
		doubt_dead(tale, lead->seat);
	}
	if (lead->class == VERDICT_GPU_NOT_REACHED &&
	    hang_process(tale->scene, lead->seat)->odd[ODD_CHANNEL] > 0) {
		verdict_missing(tale->verdict,
				"GPU stamps of some channels of that process are not "
				"believed: whether a kernel started may be told wrongly.");
		doubt(tale, 0.8);
	}
}
