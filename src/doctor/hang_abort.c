/*
 * Hangs that are over: somebody gave up. A framework's watchdog aborts communicators after its timeout, and
 * what was in flight is abandoned then; nothing of it is in flight any more. What is left are the counters.
 *
 * Members that abandoned operations after standing still for long were in something. One that abandoned
 * nothing and had made fewer calls than any of those was not: it never came. Only that is told; why else an
 * operation did not end cannot be seen any more.
 */
#include <inttypes.h>

#include "common/text.h"
#include "doctor/hang_tell.h"
#include "doctor/hang_words.h"

#define SAY text, sizeof(text)

struct aborted {
	uint32_t count; /* members that gave up */
	uint32_t first; /* of these, the one that stood still for longest */
	uint64_t for_ns;
	uint64_t least; /* collectives that each of them had issued */
	uint32_t missing;
	uint32_t culprit; /* the first that is missing; HANG_NOBODY none */
};

/* For how long it stood still before it gave up; 0: it did not. */
static uint64_t gave_up_after(const struct recording_comm *comm)
{
	const struct comm_counts *counts = &comm->counts;
	uint64_t last_ns = counts->last_issue_ns > counts->last_done_ns ? counts->last_issue_ns
									: counts->last_done_ns;

	if (!comm->has_counts || !(comm->info.flags & COMM_FLAG_FINALIZED) ||
	    counts->abandoned == 0 || last_ns == 0 || comm->info.finalize_ns <= last_ns)
		return 0;
	return comm->info.finalize_ns - last_ns;
}

static struct aborted survey(const struct hang_scene *scene, const struct job_comm *comm)
{
	struct aborted aborted = { .first = HANG_NOBODY,
				   .least = UINT64_MAX,
				   .culprit = HANG_NOBODY };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct recording_comm *of = scene->seats[comm->seats[i]].comm;
		uint64_t after_ns = gave_up_after(of);

		if (after_ns < scene->hang_ns)
			continue;
		aborted.count++;
		if (of->counts.collectives < aborted.least)
			aborted.least = of->counts.collectives;
		if (after_ns > aborted.for_ns) {
			aborted.for_ns = after_ns;
			aborted.first = comm->seats[i];
		}
	}
	for (uint32_t i = 0; i < comm->seat_count && aborted.count > 0; i++) {
		const struct recording_comm *of = scene->seats[comm->seats[i]].comm;

		if (!of->has_counts || of->is_unplaced || of->counts.abandoned > 0 ||
		    of->counts.collectives >= aborted.least)
			continue;
		if (aborted.missing++ == 0)
			aborted.culprit = comm->seats[i];
	}
	return aborted;
}

static void tell_evidence(struct hang_tale *tale, const struct job_comm *comm,
			  const struct aborted *aborted)
{
	const struct hang_scene *scene = tale->scene;
	const struct comm_counts *counts = &scene->seats[aborted->culprit].comm->counts;
	char text[400] = "", time[UNITS_TEXT];

	verdict_evidence(tale->verdict,
			 "%u of %u ranks of %.60s gave up operations when they closed it, after "
			 "%s without a call or an end; each of them had issued at least %" PRIu64
			 " collectives.",
			 aborted->count, comm->seat_count, comm->label,
			 units_duration(time, aborted->for_ns), aborted->least);
	hang_say_whole_rank(SAY, scene, aborted->culprit);
	hang_capital(text);
	verdict_evidence(tale->verdict, "%s had issued %" PRIu64 " and was in nothing.%s", text,
			 counts->collectives,
			 aborted->missing > 1 ? " So it was with others." : "");
	verdict_missing(tale->verdict, "What was in flight was given up: only counters are left.");
}

static void tell(struct hang_tale *tale, uint32_t c, const struct aborted *aborted)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t process = scene->job->seats[aborted->culprit].process;
	bool is_dead = scene->processes[process].life == HANG_DEAD;
	char text[300] = "";

	tale->verdict =
		verdicts_add(tale->verdicts, is_dead ? VERDICT_PROCESS_DEAD : VERDICT_NEVER_ISSUED,
			     VERDICT_ERROR);
	tale->verdict->confidence = 0.8;
	tale->verdict->victims = aborted->count;
	hang_tell_who(tale, aborted->culprit);
	hang_tell_where(tale, c, HANG_NOBODY, NULL, 0);
	tale->verdict->number = scene->seats[aborted->culprit].comm->counts.collectives + 1;
	tale->verdict->for_ns = aborted->for_ns;
	tale->verdict->since_wall_ns =
		hang_wall(scene, scene->job->seats[aborted->first].process,
			  scene->seats[aborted->first].comm->info.finalize_ns - aborted->for_ns);
	hang_say_rank(SAY, scene, aborted->culprit);
	if (aborted->missing > 1)
		text_append(SAY, " and %u more", aborted->missing - 1);
	text_append(SAY, "%s had not called collective %" PRIu64 " of %.40s when %u rank%s gave up",
		    is_dead ? " died and" : "", tale->verdict->number, comm->label, aborted->count,
		    aborted->count == 1 ? "" : "s");
	verdict_title(tale->verdict, "%s", text);
	tell_evidence(tale, comm, aborted);
	hang_tell_advice(tale);
}

void hang_tell_aborted(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job *job = scene->job;

	if (scene->options && scene->options->only_living)
		return;
	tale->lead = NULL;
	for (uint32_t c = 0; c < job->comm_count; c++) {
		const struct job_comm *comm = &job->comms[c];
		struct aborted aborted;

		if (comm->hash == 0 || tale->graph->is_split[c] ||
		    scene->meetings[c].level == HANG_HANGS)
			continue;
		aborted = survey(scene, comm);
		if (aborted.culprit != HANG_NOBODY)
			tell(tale, c, &aborted);
	}
}
