#include "doctor/scene.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/hang.h"
#include "recording/recording.h"
#include "timeline/flight.h"

static uint64_t since(uint64_t now_ns, uint64_t then_ns)
{
	if (then_ns == 0)
		return UINT64_MAX;
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool goes_on(const struct recording_process *process, const struct recording_comm *comm)
{
	return (process->life == RECORDING_ALIVE || process->life == RECORDING_UNKNOWN) &&
	       !(comm->info.flags & COMM_FLAG_FINALIZED);
}

/* ---- one member ------------------------------------------------------------------------------ */

static void add_counts(struct scene_comm *to, const struct recording_comm *comm, uint64_t now_ns)
{
	const struct comm_counts *counts = &comm->counts;

	to->open++;
	if (!comm->has_counts)
		return;
	to->still_ns = least(to->still_ns, since(now_ns, counts->last_issue_ns));
	to->still_ns = least(to->still_ns, since(now_ns, counts->last_done_ns));
	if (counts->collectives > to->most_issued)
		to->most_issued = counts->collectives;
	to->least_issued = least(to->least_issued, counts->collectives);
}

/* Flights are sorted by communicator: the first one that is open is the oldest. */
static void add_flights(struct scene_comm *to, const struct recording_process *process,
			const uint8_t *kinds, uint32_t id, uint64_t now_ns)
{
	const struct recording_flight *oldest = NULL;
	uint64_t age;

	for (size_t i = 0; i < process->flight_count && oldest == NULL; i++)
		if (process->flights[i].op.comm == id && kinds[i] == FLIGHT_OPEN)
			oldest = &process->flights[i];
	if (oldest == NULL)
		return;
	to->inside++;
	age = since(now_ns, flight_since_ns(oldest));
	if (age == UINT64_MAX || (age <= to->age_ns && to->function[0] != '\0'))
		return;
	to->age_ns = age > 0 ? age : 1;
	to->number = oldest->op.match;
	text_copy(to->function, sizeof(to->function),
		  recording_name(process, OP_NAMES_FUNCTION, oldest->op.function));
}

static enum status add_process(struct scene *scene, const struct job *job, uint32_t p,
			       uint64_t now_ns)
{
	const struct recording_process *process = job->recording->processes[p];
	uint8_t *kinds = calloc(process->flight_count + 1, sizeof(*kinds));

	if (kinds == NULL)
		return ERR_NO_SPACE;
	flight_kinds(process, kinds);
	for (uint32_t s = job->first_seat[p]; s < job->first_seat[p + 1]; s++) {
		const struct recording_comm *comm = recording_comm(process, job->seats[s].comm_id);
		struct scene_comm *to = &scene->comms[job->seats[s].comm];

		if (comm == NULL)
			continue;
		if (comm->has_counts)
			scene->operations += comm->counts.issued;
		if (!goes_on(process, comm))
			continue;
		add_counts(to, comm, now_ns);
		add_flights(to, process, kinds, comm->info.id, now_ns);
	}
	free(kinds);
	return OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void count_ranks(struct scene *scene, const struct job *job)
{
	scene->processes = job->recording->count;
	scene->hosts = job->host_count;
	for (size_t i = 0; i < job->rank_count; i++)
		scene->ranks += job->ranks[i].attempt == 0;
	for (size_t i = 0; i < job->group_count; i++) {
		const struct job_group *group = &job->groups[i];
		size_t seen = 0;

		for (uint32_t r = 0; r < group->rank_count; r++)
			seen += job->ranks[group->first_rank + r].attempt == 0;
		if (group->rank_count == 0)
			continue;
		if (scene->jobs++ == 0)
			text_copy(scene->job, sizeof(scene->job), group->name);
		if (group->world_size > 0 && (uint64_t)group->world_size > seen)
			scene->missing += (size_t)group->world_size - seen;
	}
	if (scene->jobs > 1)
		scene->job[0] = '\0';
	for (size_t i = 0; i < job->recording->count; i++) {
		enum recording_life life = job->recording->processes[i]->life;

		scene->alive += life == RECORDING_ALIVE;
		scene->ended += life == RECORDING_ENDED;
		scene->killed += life == RECORDING_KILLED;
	}
}

static int by_age(const void *one, const void *other)
{
	const struct scene_comm *a = one, *b = other;

	if ((a->inside > 0) != (b->inside > 0))
		return a->inside > 0 ? -1 : 1;
	if (a->age_ns != b->age_ns)
		return a->age_ns > b->age_ns ? -1 : 1;
	return (a->comm > b->comm) - (a->comm < b->comm);
}

/* Leaves out what does not go on. */
static void sum_up(struct scene *scene, const struct job *job, uint64_t hang_ns)
{
	size_t kept = 0;

	scene->last_ns = UINT64_MAX;
	for (size_t i = 0; i < job->comm_count; i++) {
		const struct scene_comm *comm = &scene->comms[i];

		if (comm->open == 0)
			continue;
		scene->last_ns = least(scene->last_ns, comm->still_ns);
		if (comm->age_ns > scene->age_ns)
			scene->age_ns = comm->age_ns;
		scene->standing +=
			comm->inside > 0 && comm->age_ns >= hang_ns && comm->still_ns >= hang_ns;
		scene->comms[kept++] = *comm;
	}
	scene->comm_count = kept;
	scene->communicators = kept > 0 ? kept : job->comm_count;
	if (kept > 1)
		qsort(scene->comms, kept, sizeof(*scene->comms), by_age);
}

enum status scene_make(struct scene *scene, const struct job *job, const uint64_t *now_ns,
		       uint64_t hang_ns)
{
	enum status status = OK;

	*scene = (struct scene){ .comms = calloc(job->comm_count + 1, sizeof(*scene->comms)) };
	if (scene->comms == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < job->comm_count; i++) {
		scene->comms[i].comm = (uint32_t)i;
		scene->comms[i].still_ns = scene->comms[i].least_issued = UINT64_MAX;
	}
	for (uint32_t p = 0; p < job->recording->count && status == OK; p++)
		status =
			add_process(scene, job, p,
				    now_ns ? now_ns[p] : hang_now_ns(job->recording->processes[p]));
	if (status != OK) {
		scene_release(scene);
		return status;
	}
	count_ranks(scene, job);
	sum_up(scene, job, hang_ns);
	return OK;
}

void scene_release(struct scene *scene)
{
	free(scene->comms);
	scene->comms = NULL;
	scene->comm_count = 0;
}

bool scene_is_dead(const struct scene *scene)
{
	return scene->killed > 0 && scene->killed + scene->ended == scene->processes;
}

bool scene_has_trouble(const struct scene *scene, const struct verdicts *verdicts)
{
	return verdicts_has_trouble(verdicts) || (scene && scene_is_dead(scene));
}

bool scene_is_healthy(const struct scene *scene, const struct verdicts *verdicts)
{
	return !scene_has_trouble(scene, verdicts) && !verdicts_has_unjudged(verdicts);
}
