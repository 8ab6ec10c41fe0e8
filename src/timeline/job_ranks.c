/* Whose seats are whose: the ranks of a job. */
#include "timeline/job_make.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

static bool are_alive_together(const struct comm_info *a, const struct comm_info *b)
{
	bool a_ended_before = a->finalize_ns != 0 && a->finalize_ns <= b->init_ns;
	bool b_ended_before = b->finalize_ns != 0 && b->finalize_ns <= a->init_ns;

	return !a_ended_before && !b_ended_before;
}

static int by_hash_then_id(const void *left, const void *right)
{
	const struct comm_info *a = *(const struct comm_info *const *)left;
	const struct comm_info *b = *(const struct comm_info *const *)right;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* Is the process several ranks: twice in one communicator at the same time? */
static enum status is_process_several(const struct job *job, size_t p, bool *is_several,
				      bool *by_gpu)
{
	const struct recording_process *process = job->recording->processes[p];
	const struct comm_info **sorted = calloc(process->comm_count + 1, sizeof(*sorted));

	if (sorted == NULL)
		return ERR_NO_SPACE;
	*is_several = false;
	*by_gpu = true;
	for (size_t i = 0; i < process->comm_count; i++)
		sorted[i] = &process->comms[i].info;
	qsort(sorted, process->comm_count, sizeof(*sorted), by_hash_then_id);
	for (size_t i = 1; i < process->comm_count; i++) {
		const struct comm_info *a = sorted[i - 1], *b = sorted[i];

		if (a->hash != b->hash || a->hash == 0 || a->rank == b->rank ||
		    !are_alive_together(a, b))
			continue;
		*is_several = true;
		if (a->gpu < 0 || b->gpu < 0 || a->gpu == b->gpu)
			*by_gpu = false;
	}
	free(sorted);
	return OK;
}

/* Before ranks have indices a seat's `rank` is its place within the process: a GPU, or how often its
 * communicator came before. */
static enum status place_seats(struct job *job, size_t p)
{
	const struct recording_process *process = job->recording->processes[p];
	uint32_t first = job->first_seat[p];
	bool is_several, by_gpu;
	enum status status = is_process_several(job, p, &is_several, &by_gpu);

	if (status != OK || !is_several)
		return status;
	for (uint32_t i = 0; i < process->comm_count; i++) {
		const struct comm_info *info = &process->comms[i].info;
		uint32_t place = 0;

		for (uint32_t j = 0; !by_gpu && j < i; j++)
			place += process->comms[j].info.hash == info->hash &&
				 process->comms[j].info.rank != info->rank;
		job->seats[first + i].rank = !by_gpu	     ? place
					     : info->gpu < 0 ? 0
							     : (uint32_t)info->gpu;
	}
	return OK;
}

/* The rank in a communicator of everybody, where the launcher said nothing. */
static void derive_rank(const struct job *job, struct job_rank *rank, uint32_t place,
			bool is_several, int32_t world)
{
	const struct recording_process *process = job->recording->processes[rank->process];
	uint32_t first = job->first_seat[rank->process];

	rank->rank = is_several ? -1 : process->rank;
	for (uint32_t i = 0; i < process->comm_count; i++) {
		const struct comm_info *info = &process->comms[i].info;

		if (job->seats[first + i].rank != place)
			continue;
		if (rank->gpu < 0)
			rank->gpu = info->gpu;
		if (rank->gpu_uuid[0] == '\0')
			text_from_field(rank->gpu_uuid, sizeof(rank->gpu_uuid), info->gpu_uuid,
					sizeof(info->gpu_uuid));
		if (rank->rank < 0 && info->nranks == world && world > 0 && info->rank >= 0) {
			rank->rank = info->rank;
			rank->is_derived = true;
		}
	}
}

static uint32_t places_of(const struct job *job, size_t p, uint32_t *places, uint32_t room)
{
	uint32_t count = 0;

	for (uint32_t s = job->first_seat[p]; s < job->first_seat[p + 1]; s++) {
		uint32_t place = job->seats[s].rank, i = 0;

		while (i < count && places[i] != place)
			i++;
		if (i == count && count < room)
			places[count++] = place;
	}
	if (count == 0)
		places[count++] = 0;
	return count;
}

static int32_t largest_comm(const struct job *job, const uint32_t *group_of, uint32_t group)
{
	int32_t most = 0;

	for (size_t s = 0; s < job->seat_count; s++) {
		const struct comm_info *info = job_seat_info(job, (uint32_t)s);

		if (group_of[job->seats[s].process] == group && info->nranks > most)
			most = info->nranks;
	}
	return most;
}

enum { PLACES_MAX = 256 }; /* ranks of one process */

static uint32_t find_host(struct job *job, const char *name)
{
	/* Processes of one host come together: the last one found is nearly always it. */
	for (size_t i = job->host_count; i-- > 0;)
		if (strcmp(job->hosts[i].name, name) == 0)
			return (uint32_t)i;
	text_copy(job->hosts[job->host_count].name, sizeof(job->hosts[0].name), name);
	return (uint32_t)job->host_count++;
}

static enum status add_ranks(struct job *job, size_t p, uint32_t group, int32_t world)
{
	const struct recording_process *process = job->recording->processes[p];
	uint32_t places[PLACES_MAX];
	enum status status = place_seats(job, p);
	uint32_t count;
	void *grown;

	if (status != OK)
		return status;
	count = places_of(job, p, places, PLACES_MAX);
	grown = realloc(job->ranks, (job->rank_count + count) * sizeof(*job->ranks));
	if (grown == NULL)
		return ERR_NO_SPACE;
	job->ranks = grown;
	for (uint32_t i = 0; i < count; i++) {
		struct job_rank *rank = &job->ranks[job->rank_count];

		*rank = (struct job_rank){ .process = (uint32_t)p,
					   .group = group,
					   .gpu = -1,
					   .pid = process->pid,
					   .life = process->life,
					   .attempt = places[i] };
		derive_rank(job, rank, places[i], count > 1, world);
		job->rank_count++;
	}
	return OK;
}

static int by_group_and_rank(const void *left, const void *right)
{
	const struct job_rank *a = left, *b = right;
	uint64_t rank_a = (uint64_t)a->rank, rank_b = (uint64_t)b->rank; /* -1 comes last */

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (rank_a != rank_b)
		return rank_a < rank_b ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return a->attempt < b->attempt ? -1 : a->attempt > b->attempt;
}

/* Seats still hold places; `attempt` of a rank holds its place until here. */
static void link_seats_to_ranks(struct job *job)
{
	for (size_t r = job->rank_count; r-- > 0;)
		job->process_rank[job->ranks[r].process] = (uint32_t)r;
	for (size_t r = 0; r < job->rank_count; r++) {
		const struct job_rank *rank = &job->ranks[r];

		for (uint32_t s = job->first_seat[rank->process];
		     s < job->first_seat[rank->process + 1]; s++)
			if (job->seats[s].comm == 0 && job->seats[s].rank == rank->attempt) {
				job->seats[s].rank = (uint32_t)r;
				job->seats[s].comm = 1; /* done */
			}
	}
}

static void label_ranks(struct job *job)
{
	for (size_t r = 0; r < job->rank_count; r++) {
		struct job_rank *rank = &job->ranks[r];
		const struct job_rank *before = r > 0 ? rank - 1 : NULL;

		rank->attempt = 0;
		if (before && rank->rank >= 0 && before->group == rank->group &&
		    before->rank == rank->rank)
			rank->attempt = before->attempt + 1;
		if (rank->rank < 0)
			text_format(rank->label, sizeof(rank->label), "%.40s:%" PRId64,
				    job->recording->processes[rank->process]->host, rank->pid);
		else if (rank->attempt > 0)
			text_format(rank->label, sizeof(rank->label), "%" PRId64 " (start %u)",
				    rank->rank, rank->attempt + 1);
		else
			text_format(rank->label, sizeof(rank->label), "%" PRId64, rank->rank);
	}
}

static enum status make_hosts(struct job *job)
{
	uint32_t *last_group;

	job->hosts = calloc(job->rank_count + 1, sizeof(*job->hosts));
	last_group = calloc(job->rank_count + 1, sizeof(*last_group));
	if (job->hosts == NULL || last_group == NULL) {
		free(last_group);
		return ERR_NO_SPACE;
	}
	for (size_t r = 0; r < job->rank_count; r++) {
		struct job_rank *rank = &job->ranks[r];
		struct job_group *group = &job->groups[rank->group];

		rank->host = find_host(job, job->recording->processes[rank->process]->host);
		job->hosts[rank->host].rank_count++;
		if (group->rank_count++ == 0)
			group->first_rank = (uint32_t)r;
		if (last_group[rank->host] != rank->group + 1)
			group->host_count++;
		last_group[rank->host] = rank->group + 1;
	}
	free(last_group);
	return OK;
}

enum status job_make_ranks(struct job *job, const uint32_t *group_of)
{
	uint32_t group = UINT32_MAX;
	enum status status = OK;
	int32_t world = 0;

	for (size_t p = 0; p < job->recording->count && status == OK; p++) {
		if (group_of[p] != group) {
			group = group_of[p];
			world = largest_comm(job, group_of, group);
			if (job->groups[group].world_size <= 0)
				job->groups[group].world_size = world;
		}
		status = add_ranks(job, p, group, world);
	}
	if (status != OK)
		return status;
	if (job->rank_count > 0)
		qsort(job->ranks, job->rank_count, sizeof(*job->ranks), by_group_and_rank);
	link_seats_to_ranks(job);
	label_ranks(job);
	return make_hosts(job);
}
