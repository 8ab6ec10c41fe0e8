/* What no verdict explains yet: processes that are gone, and hangs that ended with an abort. */
#include "doctor/hang_internal.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/match.h"
#include "common/clock.h"
#include "common/text.h"

#define SAY text, sizeof(text)

/* ---- processes that are gone -------------------------------------------------------------------- */

/* A communicator that this process has not left and where it is still needed. */
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

/* Of this kind and component, and not reported yet. */
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
	verdict_title(tale->verdict, "%s %s %s but still needed by other ranks", text,
		      count == 1 ? "is" : "are", is_dead ? "dead" : "stopped");
	text[0] = '\0';
	hang_say_whole_rank(SAY, scene, seat);
	verdict_evidence(
		tale->verdict, "The process of %s %s.", text,
		is_dead ? "is gone and did not close its recording: it was killed or crashed"
			: "is stopped (SIGSTOP, a debugger or a frozen container)");
	verdict_evidence(
		tale->verdict,
		"It has not left %.60s. No rank has waited there long enough to count as hung.",
		hang_comm(scene, seat)->label);
	hang_tell_advice(tale);
}

/*
 * Launchers end the other ranks soon after one has died, before anything counts as hung. Heartbeats show who died first
 * if that was not within the time between two of them. The kernel's, of several hosts: their clocks differ.
 */
#define HEARTBEAT_LATE_NS SECOND_NS
#define TRACE_STAMP_NS (10 * SECOND_NS) /* a trace alone has the time this often */
#define HOST_CLOCKS_NS (2 * SECOND_NS)

/* Of a component whose processes are all over. */
struct deaths {
	uint64_t first_ns; /* last sign of life of the first, CLOCK_REALTIME */
	uint64_t last_ns;  /* of the first ones: those that died together with it */
	uint64_t next_ns;  /* the first end after these */
	uint32_t process;  /* the first */
	uint32_t first_count, rest_count;
	uint64_t margin_ns; /* ends that are closer have no order */
};

static uint64_t margin_of(const struct hang_scene *scene, uint32_t component)
{
	const struct recording *recording = scene->job->recording;
	uint64_t heartbeat_ns = SECOND_NS;
	const char *host = NULL;
	bool has_hosts = false;

	for (uint32_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];

		if (scene->processes[p].component != component)
			continue;
		if (process->heartbeat_ns > heartbeat_ns)
			heartbeat_ns = process->heartbeat_ns;
		if (process->region == NULL && !process->is_snapshot &&
		    process->life == RECORDING_KILLED && heartbeat_ns < TRACE_STAMP_NS)
			heartbeat_ns = TRACE_STAMP_NS;
		has_hosts |= host != NULL && strcmp(host, process->host) != 0;
		host = process->host;
	}
	return heartbeat_ns + HEARTBEAT_LATE_NS + (has_hosts ? HOST_CLOCKS_NS : 0);
}

/* Is it known when each of them ended, and did at least one not end by itself? */
static bool are_ends_known(const struct hang_scene *scene, uint32_t component)
{
	const struct recording *recording = scene->job->recording;
	bool is_any_killed = false;

	for (uint32_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];

		if (scene->processes[p].component != component)
			continue;
		if ((process->life != RECORDING_KILLED && process->life != RECORDING_ENDED) ||
		    !recording_end_is_known(process) || scene->processes[p].end_wall_ns == 0 ||
		    scene->processes[p].is_past)
			return false;
		is_any_killed |= process->life == RECORDING_KILLED;
	}
	return is_any_killed;
}

static bool find_first_deaths(const struct hang_scene *scene, uint32_t component,
			      struct deaths *deaths)
{
	size_t count = scene->job->recording->count;
	bool is_changed = true;

	*deaths = (struct deaths){ .first_ns = UINT64_MAX,
				   .next_ns = UINT64_MAX,
				   .margin_ns = margin_of(scene, component) };
	if (!are_ends_known(scene, component))
		return false;
	for (uint32_t p = 0; p < count; p++)
		if (scene->processes[p].component == component &&
		    scene->processes[p].end_wall_ns < deaths->first_ns) {
			deaths->first_ns = scene->processes[p].end_wall_ns;
			deaths->process = p;
		}
	deaths->last_ns = deaths->first_ns;
	/* Whoever died soon after one of them may have died before it. */
	while (is_changed) {
		is_changed = false;
		for (uint32_t p = 0; p < count; p++) {
			uint64_t end_ns = scene->processes[p].end_wall_ns;

			if (scene->processes[p].component == component &&
			    end_ns > deaths->last_ns &&
			    end_ns - deaths->last_ns <= deaths->margin_ns) {
				deaths->last_ns = end_ns;
				is_changed = true;
			}
		}
	}
	for (uint32_t p = 0; p < count; p++) {
		uint64_t end_ns = scene->processes[p].end_wall_ns;

		if (scene->processes[p].component != component)
			continue;
		if (end_ns > deaths->last_ns) {
			deaths->rest_count++;
			deaths->next_ns = end_ns < deaths->next_ns ? end_ns : deaths->next_ns;
		} else if (scene->job->recording->processes[p]->life == RECORDING_KILLED) {
			deaths->first_count++;
		} else {
			return false; /* it ended by itself: nobody knows why the others ended after it */
		}
	}
	/* A job that is ended from outside leaves late ones behind. */
	return deaths->rest_count >= deaths->first_count && deaths->first_count > 0;
}

/* Did the others do nothing more without it? */
static bool has_stopped_with(const struct hang_scene *scene, uint32_t component,
			     const struct deaths *deaths)
{
	const struct job *job = scene->job;

	for (uint32_t s = 0; s < job->seat_count; s++) {
		const struct comm_counts *counts = &scene->seats[s].comm->counts;
		uint32_t p = job->seats[s].process;

		if (scene->processes[p].component == component &&
		    hang_wall(scene, p, counts->last_done_ns) > deaths->last_ns + deaths->margin_ns)
			return false;
	}
	return true;
}

static void tell_first_deaths(struct hang_tale *tale, const struct deaths *deaths)
{
	const struct hang_scene *scene = tale->scene;
	const struct job *job = scene->job;
	uint32_t component = scene->processes[deaths->process].component;
	uint32_t seat = open_seat(scene, deaths->process);
	bool has_stopped = has_stopped_with(scene, component, deaths);
	char text[400] = "", time[UNITS_TEXT];
	size_t count = 0;

	for (uint32_t p = 0; p < job->recording->count; p++)
		if (scene->processes[p].component == component &&
		    scene->processes[p].end_wall_ns <= deaths->last_ns)
			tale->ranks[count++] = job->process_rank[p];
	for (size_t i = 0; i < count; i++)
		tale->is_involved[tale->ranks[i]] = true;
	tale->verdict = verdicts_add(tale->verdicts, VERDICT_PROCESS_DEAD, VERDICT_ERROR);
	tale->verdict->confidence = has_stopped ? 0.9 : 0.6;
	hang_tell_who(tale, seat);
	hang_tell_where(tale, job->seats[seat].comm, HANG_NOBODY, NULL, 0);
	tale->verdict->since_wall_ns = deaths->first_ns;
	units_duration(time, deaths->next_ns - deaths->last_ns);
	text_append(SAY, count == 1 ? "rank " : "ranks ");
	hang_say_ranks(SAY, job, tale->ranks, count);
	verdict_title(tale->verdict, "%s died first; the other %u process%s ended %s later", text,
		      deaths->rest_count, deaths->rest_count == 1 ? "" : "es", time);
	text[0] = '\0';
	hang_say_whole_rank(SAY, scene, seat);
	verdict_evidence(tale->verdict,
			 "The process of %s did not close its recording: it was killed or crashed.",
			 text);
	text[0] = '\0';
	hang_say_wall(SAY, deaths->first_ns);
	verdict_evidence(tale->verdict,
			 "Its last sign of life was at %s. The others lived for %s longer%s.", text,
			 time, has_stopped ? " and finished no operation in that time" : "");
	verdict_missing(tale->verdict,
			"What ends a job from outside may not end all processes at the same time.");
	hang_tell_advice(tale);
}

/* Of each component that no verdict is about. */
static void tell_deaths(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	size_t count = scene->job->recording->count;
	struct deaths deaths;

	for (uint32_t p = 0; p < count; p++) {
		bool is_told = scene->processes[p].component != p;

		for (uint32_t r = 0; r < scene->job->rank_count && !is_told; r++)
			is_told = tale->is_involved[r] &&
				  scene->processes[scene->job->ranks[r].process].component == p;
		if (!is_told && find_first_deaths(scene, p, &deaths) &&
		    open_seat(scene, deaths.process) != HANG_NOBODY)
			tell_first_deaths(tale, &deaths);
	}
}

/* ---- ranks that came when the job was being ended ----------------------------------------------- */

/*
 * What ends a job may first let a stuck rank go on: Slurm continues stopped processes before it ends them. Then all ranks
 * are in the same collective, which moved a moment before the end, and only the times of the calls show the hang.
 */
struct late {
	uint64_t match;
	uint32_t first; /* the seat that called it first */
	const struct recording_flight *flight;
	uint64_t age_ns;   /* since its call */
	uint64_t least_ns; /* of all that waited for long */
	uint64_t late_ns;  /* since the first call of those that did not */
	uint32_t waited;
	uint32_t came_late;
	uint32_t culprit; /* of these, the last */
	uint64_t last_ns; /* since its call */
};

static const struct recording_flight *flight_of(const struct hang_scene *scene, uint32_t seat,
						uint64_t match)
{
	const struct recording_flight *flights = hang_flights(scene, seat);

	for (size_t i = 0; i < scene->seats[seat].flight_count; i++)
		if (match_is_synchronising(flights[i].op.function) &&
		    flights[i].op.match == match && flights[i].op.issue_ns != 0 &&
		    !(flights[i].op.flags & OP_FLAG_REPLAY) &&
		    hang_flight_kind(scene, seat, i) != FLIGHT_OVER)
			return &flights[i];
	return NULL;
}

/* The collective that a rank has been in for longest; else the last one that all have called. */
static uint64_t last_match(const struct hang_scene *scene, const struct job_comm *comm)
{
	uint64_t longest_ns = 0, match = 0, least = UINT64_MAX;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->front != NULL && !seat->is_pair && seat->age_ns > longest_ns) {
			longest_ns = seat->age_ns;
			match = seat->front->op.match;
		}
		if (seat->comm->has_counts && seat->comm->counts.collectives < least)
			least = seat->comm->counts.collectives;
	}
	return match != 0 ? match : least;
}

static struct late survey_late(const struct hang_scene *scene, const struct job_comm *comm)
{
	struct late late = { .match = last_match(scene, comm),
			     .least_ns = UINT64_MAX,
			     .last_ns = UINT64_MAX,
			     .culprit = HANG_NOBODY };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i], process = scene->job->seats[seat].process;
		const struct recording_flight *flight = flight_of(scene, seat, late.match);
		uint64_t age_ns;

		if (flight == NULL)
			return (struct late){ .culprit = HANG_NOBODY };
		age_ns = hang_ago(scene, process, flight->op.issue_ns);
		if (age_ns > late.age_ns) {
			late.age_ns = age_ns;
			late.first = seat;
			late.flight = flight;
		}
		if (age_ns >= scene->hang_ns) {
			late.waited++;
			late.least_ns = age_ns < late.least_ns ? age_ns : late.least_ns;
			continue;
		}
		late.came_late++;
		late.late_ns = age_ns > late.late_ns ? age_ns : late.late_ns;
		if (age_ns < late.last_ns) {
			late.last_ns = age_ns;
			late.culprit = seat;
		}
	}
	/* Two groups that are far apart. */
	if (late.waited == 0 || late.came_late == 0 ||
	    late.least_ns - late.late_ns < scene->hang_ns)
		late.culprit = HANG_NOBODY;
	return late;
}

static void tell_late(struct hang_tale *tale, uint32_t c, const struct late *late)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	char text[400] = "", time[UNITS_TEXT], waited[UNITS_TEXT], left[UNITS_TEXT];
	size_t count = 0;

	units_duration(time, late->least_ns - late->late_ns);
	units_duration(waited, late->least_ns);
	units_duration(left, late->late_ns);
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i], process = scene->job->seats[seat].process;
		const struct recording_flight *flight = flight_of(scene, seat, late->match);

		if (hang_ago(scene, process, flight->op.issue_ns) < scene->hang_ns)
			tale->ranks[count++] = scene->job->seats[seat].rank;
		tale->is_involved[scene->job->seats[seat].rank] = true;
	}
	tale->verdict = verdicts_add(tale->verdicts, VERDICT_NEVER_ISSUED, VERDICT_ERROR);
	tale->verdict->confidence = (int32_t)comm->seat_count == comm->nranks ? 0.9 : 0.7;
	tale->verdict->victims = late->waited;
	hang_tell_who(tale, late->culprit);
	hang_tell_where(tale, c, late->first, late->flight, late->flight->op.issue_ns);
	text_append(SAY, count == 1 ? "rank " : "ranks ");
	hang_say_ranks(SAY, scene->job, tale->ranks, count);
	text_append(SAY, " called ");
	hang_say_operation(SAY, scene, late->first, &late->flight->op);
	verdict_title(tale->verdict, "%s of %.40s only at the end; %u rank%s waited %s", text,
		      comm->label, late->waited, late->waited == 1 ? "" : "s", time);
	text[0] = '\0';
	hang_say_operation(SAY, scene, late->first, &late->flight->op);
	verdict_evidence(tale->verdict,
			 "%u of %u ranks of %.60s had been in %s for %s at the end of the job.",
			 late->waited, comm->seat_count, comm->label, text, waited);
	text[0] = '\0';
	hang_say_whole_rank(SAY, scene, late->culprit);
	text_capital(text);
	verdict_evidence(tale->verdict,
			 "%s called it %s before the end.%s What ends a job may continue a stopped "
			 "process first.",
			 text, left, count > 1 ? " The same is true of other ranks." : "");
	hang_tell_advice(tale);
}

static void tell_late_ones(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job *job = scene->job;

	for (uint32_t c = 0; c < job->comm_count; c++) {
		const struct job_comm *comm = &job->comms[c];
		struct late late;

		if (comm->hash == 0 || comm->seat_count == 0 || tale->graph->is_split[c] ||
		    scene->matches[c].level == HANG_HANGS || hang_is_past(scene, comm) ||
		    scene->processes[job->seats[comm->seats[0]].process].dead_wall_ns == 0 ||
		    tale->is_involved[job->seats[comm->seats[0]].rank])
			continue;
		late = survey_late(scene, comm);
		if (late.culprit != HANG_NOBODY)
			tell_late(tale, c, &late);
	}
}

/* ---- all of these ------------------------------------------------------------------------------ */

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
	tell_late_ones(tale);
	tell_deaths(tale);
}

/* ---- hangs that were aborted -------------------------------------------------------------------- */

/*
 * Past hangs that ended with an abort. A framework's watchdog aborts communicators after its timeout, which
 * abandons the operations in flight. Only the counters are left.
 *
 * Ranks that abandoned operations after a long time without progress were in something. A rank that
 * abandoned nothing and had made fewer calls than any of those was not: it was missing. Only that is
 * reported; other causes can no longer be seen.
 */

struct aborted {
	uint32_t count; /* ranks that aborted */
	uint32_t first; /* of these, the one stuck for longest */
	uint64_t for_ns;
	uint64_t least; /* collectives that each of them had called */
	uint32_t missing;
	uint32_t culprit; /* the first missing rank; HANG_NOBODY none */
};

/* How long it was stuck before it aborted; 0: it did not. */
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

static struct aborted survey_aborted(const struct hang_scene *scene, const struct job_comm *comm)
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
			 "%u of %u ranks of %.60s aborted operations when they closed it, after %s "
			 "without a call or a completion; each of them had called at least %" PRIu64
			 " %s.",
			 aborted->count, comm->seat_count, comm->label,
			 units_duration(time, aborted->for_ns), aborted->least,
			 text_which(aborted->least, "collective", "collectives"));
	hang_say_whole_rank(SAY, scene, aborted->culprit);
	text_capital(text);
	verdict_evidence(tale->verdict, "%s had called %" PRIu64 " and was in no operation.%s",
			 text, counts->collectives,
			 aborted->missing > 1 ? " The same is true of other ranks." : "");
	verdict_missing(tale->verdict,
			"The operations in flight were aborted; only counters are left.");
}

static void tell_aborted(struct hang_tale *tale, uint32_t c, const struct aborted *aborted)
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
	job_say_rank(SAY, scene->job, aborted->culprit);
	if (aborted->missing > 1)
		text_append(SAY, " and %u more", aborted->missing - 1);
	text_append(SAY,
		    "%s had not called collective #%" PRIu64 " of %.40s when %u rank%s aborted",
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
		    scene->matches[c].level == HANG_HANGS)
			continue;
		aborted = survey_aborted(scene, comm);
		if (aborted.culprit != HANG_NOBODY)
			tell_aborted(tale, c, &aborted);
	}
}
