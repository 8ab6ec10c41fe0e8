/* A rank that did not come, and a process that is gone or stopped. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

#define SAY text, sizeof(text)

/* The last operation of a seat that is known. */
static const struct recording_flight *last_flight(const struct hang_scene *scene, uint32_t seat)
{
	const struct hang_seat *of = &scene->seats[seat];

	if (of->flight_count == 0)
		return NULL;
	return &hang_process(scene, seat)->flights[of->first_flight + of->flight_count - 1];
}

/* What it did last, on this communicator and anywhere. */
static void tell_last_deed(struct hang_tale *tale, uint32_t seat)
{
	const struct hang_scene *scene = tale->scene;
	const struct comm_counts *counts = &scene->seats[seat].comm->counts;
	const struct recording_flight *flight;
	uint64_t ago_ns;
	uint32_t last = hang_last_active(scene, seat, &ago_ns);
	char text[600] = "";

	hang_say_whole_rank(SAY, scene, seat);
	hang_capital(text);
	if (tale->lead->note == HANG_NOTE_PEER)
		text_append(SAY, " has made %" PRIu64 " calls on %.60s", counts->issued,
			    hang_comm(scene, seat)->label);
	else
		text_append(SAY, " has issued %" PRIu64 " collectives on %.60s",
			    counts->collectives, hang_comm(scene, seat)->label);
	if (counts->last_issue_ns != 0)
		hang_say_for(
			SAY, scene, ", the last one ",
			hang_ago(scene, scene->job->seats[seat].process, counts->last_issue_ns),
			" ago");
	verdict_evidence(tale->verdict, "%s.", text);
	if (last == HANG_NOBODY) {
		verdict_evidence(tale->verdict, "It has done nothing on any communicator.");
		return;
	}
	flight = last_flight(scene, last);
	text[0] = '\0';
	if (flight != NULL)
		hang_say_operation(SAY, scene, last, &flight->op);
	else
		text_append(SAY, "collective %" PRIu64,
			    scene->seats[last].comm->counts.collectives);
	text_append(SAY, " of %.60s", hang_comm(scene, last)->label);
	hang_say_for(SAY, scene, ", ", ago_ns, " ago");
	verdict_evidence(tale->verdict, "The last thing that is known of it: %s.%s", text,
			 scene->seats[seat].is_over ? "" : " It is in no operation since.");
}

/* What it has not called: of a Send or Recv, the other half. */
static void say_missing_call(const struct hang_tale *tale, char *text, size_t size)
{
	const struct hang_end *lead = tale->lead;

	text_append(text, size, " not called ");
	if (lead->note == HANG_NOTE_PEER) {
		text_append(text, size, "the %s for ",
			    lead->flight->op.function == OP_SEND ? "Recv" : "Send");
		hang_say_rank(text, size, tale->scene, lead->witness);
		text_append(text, size, "'s ");
	}
	hang_say_lead(tale, text, size);
}

void hang_tell_never_issued(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	uint32_t process = scene->job->seats[lead->seat].process;
	const char *rest = "";
	char text[300] = "";

	if (scene->processes[process].life == HANG_ENDED)
		rest = " and has ended";
	else if (scene->seats[lead->seat].comm->info.flags & COMM_FLAG_FINALIZED)
		rest = " and has closed the communicator";
	hang_say_culprits(tale, SAY, "has", "have");
	say_missing_call(tale, SAY);
	text_append(SAY, "%s", rest);
	hang_say_victims(SAY, tale->victims);
	verdict_title(tale->verdict, "%s", text);
	hang_tell_waiting(tale);
	hang_tell_culprits(tale);
	tell_last_deed(tale, lead->seat);
	if (rest[0] != '\0')
		verdict_evidence(tale->verdict, "It ended%s after collective %" PRIu64 ".",
				 scene->processes[process].life == HANG_ENDED ? " cleanly"
									      : " its part",
				 scene->seats[lead->seat].comm->counts.collectives);
}

void hang_tell_process(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct hang_process *process =
		&scene->processes[scene->job->seats[lead->seat].process];
	bool is_dead = lead->class == VERDICT_PROCESS_DEAD;
	char text[600] = "", end[60] = "";

	if (is_dead)
		hang_say_culprits(tale, SAY,
				  process->is_dead_for_sure ? "is dead" : "is probably dead",
				  process->is_dead_for_sure ? "are dead" : "are probably dead");
	else
		hang_say_culprits(tale, SAY, "is stopped", "are stopped");
	hang_say_victims(SAY, tale->victims);
	text_append(SAY, " in ");
	hang_say_lead(tale, SAY);
	verdict_title(tale->verdict, "%s", text);
	text[0] = '\0';
	hang_say_whole_rank(SAY, scene, lead->seat);
	hang_say_wall(end, sizeof(end), process->end_wall_ns);
	if (!is_dead)
		verdict_evidence(tale->verdict,
				 "The process of %s is stopped: a signal (SIGSTOP), a debugger, or "
				 "a frozen container.",
				 text);
	else if (process->is_dead_for_sure)
		verdict_evidence(tale->verdict,
				 "The process of %s is gone and did not end its recording: it was "
				 "killed or crashed.",
				 text);
	else
		verdict_evidence(tale->verdict,
				 "The recording of %s ends %" PRIu64
				 " s before that of the others%s%s, without having been closed.",
				 text, process->lag_ns / HANG_SECOND_NS, end[0] ? ", at " : "",
				 end);
	hang_tell_waiting(tale);
	hang_tell_culprits(tale);
	if (scene->seats[lead->seat].front != NULL) {
		text[0] = '\0';
		hang_say_operation(SAY, scene, lead->seat, &scene->seats[lead->seat].front->op);
		verdict_evidence(tale->verdict, "It was in %s of %.60s.", text,
				 hang_comm(scene, lead->seat)->label);
	} else {
		tell_last_deed(tale, lead->seat);
	}
}

/* A communicator that this process has not left: others need it there. */
static uint32_t open_seat(const struct hang_scene *scene, uint32_t process)
{
	const struct job *job = scene->job;

	for (uint32_t s = job->first_seat[process]; s < job->first_seat[process + 1]; s++)
		if (!(scene->seats[s].comm->info.flags & COMM_FLAG_FINALIZED) &&
		    job->comms[job->seats[s].comm].nranks != 1)
			return s;
	return HANG_NOBODY;
}

static bool is_any_alive(const struct hang_scene *scene, uint32_t component)
{
	for (uint32_t p = 0; p < scene->job->recording->count; p++)
		if (scene->processes[p].component == component &&
		    scene->processes[p].life == HANG_RUNS &&
		    scene->job->recording->processes[p]->life == RECORDING_ALIVE)
			return true;
	return false;
}

/* Of its kind, in its set of processes, and nobody was told of it. */
static bool is_gone_untold(const struct hang_tale *tale, uint32_t p, enum hang_life life,
			   uint32_t component)
{
	const struct hang_process *of = &tale->scene->processes[p];

	return of->life == life && of->component == component && !of->is_past &&
	       (life == HANG_STOPPED || of->is_dead_for_sure) &&
	       !tale->is_involved[tale->scene->job->process_rank[p]] &&
	       open_seat(tale->scene, p) != HANG_NOBODY;
}

static void tell_gone(struct hang_tale *tale, uint32_t first, enum hang_life life)
{
	const struct hang_scene *scene = tale->scene;
	const struct job *job = scene->job;
	uint32_t component = scene->processes[first].component, seat = open_seat(scene, first);
	bool is_dead = life == HANG_DEAD;
	size_t count = 0;
	char text[400] = "";

	for (uint32_t p = first; p < job->recording->count; p++)
		if (is_gone_untold(tale, p, life, component))
			tale->ranks[count++] = job->process_rank[p];
	for (size_t i = 0; i < count; i++)
		tale->is_involved[tale->ranks[i]] = true;
	tale->verdict = verdicts_add(tale->verdicts,
				     is_dead ? VERDICT_PROCESS_DEAD : VERDICT_PROCESS_STOPPED,
				     VERDICT_WARNING);
	tale->verdict->confidence = 0.99;
	hang_tell_who(tale, seat);
	hang_tell_where(tale, job->seats[seat].comm, HANG_NOBODY, NULL, 0);
	text_append(SAY, count == 1 ? "rank " : "ranks ");
	hang_say_ranks(SAY, job, tale->ranks, count);
	verdict_title(tale->verdict, "%s %s %s, and the others still need it", text,
		      count == 1 ? "is" : "are", is_dead ? "dead" : "stopped");
	text[0] = '\0';
	hang_say_whole_rank(SAY, scene, seat);
	verdict_evidence(
		tale->verdict, "The process of %s %s.", text,
		is_dead ? "is gone and did not end its recording: it was killed or crashed"
			: "is stopped: a signal (SIGSTOP), a debugger, or a frozen container");
	verdict_evidence(
		tale->verdict,
		"It has not left %.60s; no rank has waited there long enough yet to be called "
		"hung.",
		hang_comm(scene, seat)->label);
	hang_tell_advice(tale);
}

void hang_tell_gone(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;

	if (!(scene->options && scene->options->has_unjudged))
		return;
	tale->lead = NULL;
	for (uint32_t p = 0; p < scene->job->recording->count; p++) {
		const struct hang_process *of = &scene->processes[p];

		if ((of->life == HANG_DEAD || of->life == HANG_STOPPED) &&
		    is_gone_untold(tale, p, of->life, of->component) &&
		    is_any_alive(scene, of->component))
			tell_gone(tale, p, of->life);
	}
}
