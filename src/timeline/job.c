/*
 * How it is put together:
 *
 *	seats      one per (process, communicator of the process), in the order of the recording
 *	ranks      the seats of a process belong to one rank, unless it is seen to be several (threads):
 *	           then to one rank per GPU, or per place in a communicator that it is in several times
 *	comms      seats sorted by (group, hash, ranks, generation): a run of equal ones is a communicator
 *
 * Everything is sorted arrays: no order depends on addresses or hash values' chance.
 */
#include "timeline/job.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "timeline/job_gaps.h"
#include "timeline/job_make.h"

const char *job_comm_kind_name(enum job_comm_kind kind)
{
	static const char *const names[JOB_COMM_KINDS] = { "unknown", "single-rank", "nvlink-only",
							   "net-only", "mixed" };

	return (unsigned int)kind < JOB_COMM_KINDS ? names[kind] : "unknown";
}

const struct comm_info *job_seat_info(const struct job *job, uint32_t seat)
{
	const struct job_seat *of = &job->seats[seat];
	const struct recording_process *process = job->recording->processes[of->process];

	return &process->comms[seat - job->first_seat[of->process]].info;
}

/* ---- seats and groups ------------------------------------------------------------------------ */

static enum status make_seats(struct job *job)
{
	const struct recording *recording = job->recording;
	size_t count = 0;

	for (size_t p = 0; p < recording->count; p++)
		count += recording->processes[p]->comm_count;
	job->seats = calloc(count + 1, sizeof(*job->seats));
	job->first_seat = calloc(recording->count + 1, sizeof(*job->first_seat));
	job->process_rank = calloc(recording->count + 1, sizeof(*job->process_rank));
	if (job->seats == NULL || job->first_seat == NULL || job->process_rank == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];

		job->first_seat[p] = (uint32_t)job->seat_count;
		for (size_t i = 0; i < process->comm_count; i++)
			job->seats[job->seat_count++] =
				(struct job_seat){ .process = (uint32_t)p,
						   .comm_id = process->comms[i].info.id,
						   .comm_rank = process->comms[i].info.rank };
	}
	job->first_seat[recording->count] = (uint32_t)job->seat_count;
	return OK;
}

/* Processes come sorted by job, so a group is a run of them. */
static enum status make_groups(struct job *job, uint32_t *group_of)
{
	const struct recording *recording = job->recording;

	job->groups = calloc(recording->count + 1, sizeof(*job->groups));
	if (job->groups == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];
		struct job_group *group = &job->groups[job->group_count];
		bool is_first = p == 0 || strcmp(process->job, recording->processes[p - 1]->job);

		if (is_first) {
			text_copy(group->name, sizeof(group->name), process->job);
			job->group_count++;
		}
		group = &job->groups[job->group_count - 1];
		group->process_count++;
		if (process->world_size > group->world_size)
			group->world_size = process->world_size;
		group_of[p] = (uint32_t)job->group_count - 1;
	}
	return OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint8_t intern(struct job *job, const char *text)
{
	for (uint32_t i = 0; i < job->name_count; i++)
		if (strcmp(job->names[i], text) == 0)
			return (uint8_t)(OP_NAME_INTERNED + i);
	if (job->name_count == JOB_NAMES_MAX)
		return JOB_NAME_OTHER;
	text_copy(job->names[job->name_count], sizeof(job->names[0]), text);
	return (uint8_t)(OP_NAME_INTERNED + job->name_count++);
}

static enum status make_names(struct job *job)
{
	const struct recording *recording = job->recording;

	job->names = calloc(JOB_NAMES_MAX, sizeof(*job->names));
	job->name_map = calloc(recording->count + 1, sizeof(*job->name_map));
	if (job->names == NULL || job->name_map == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < recording->count; p++)
		for (size_t i = 0; i < OP_NAMES_INTERNED_MAX; i++) {
			const char *text = recording->processes[p]->names[i];

			job->name_map[p][i] = text[0] ? intern(job, text) : JOB_NAME_OTHER;
		}
	return OK;
}

uint8_t job_name_number(const struct job *job, size_t process, uint8_t number)
{
	if (number < OP_NAME_INTERNED)
		return number;
	if (number >= OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX)
		return JOB_NAME_OTHER;
	return job->name_map[process][number - OP_NAME_INTERNED];
}

const char *job_name(const struct job *job, enum op_name_table table, uint8_t number)
{
	const char *name = NULL;

	if (number < OP_NAME_INTERNED)
		name = op_name(table, number);
	else if ((uint32_t)(number - OP_NAME_INTERNED) < job->name_count)
		name = job->names[number - OP_NAME_INTERNED];
	return name ? name : "?";
}

/* ---------------------------------------------------------------------------------------------- */

const struct job_seat *job_seat(const struct job *job, size_t process, uint32_t comm_id)
{
	uint32_t from = job->first_seat[process], to = job->first_seat[process + 1];

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (job->seats[middle].comm_id == comm_id)
			return &job->seats[middle];
		if (job->seats[middle].comm_id < comm_id)
			from = middle + 1;
		else
			to = middle;
	}
	return NULL;
}

enum status job_make(struct job *job, const struct recording *recording)
{
	uint32_t *group_of = calloc(recording->count + 1, sizeof(*group_of));
	enum status status = group_of ? OK : ERR_NO_SPACE;

	*job = (struct job){ .recording = recording };
	if (status == OK)
		status = make_seats(job);
	if (status == OK)
		status = make_groups(job, group_of);
	if (status == OK)
		status = job_make_ranks(job, group_of);
	if (status == OK)
		status = job_make_comms(job, group_of);
	if (status == OK)
		status = make_names(job);
	if (status == OK)
		job_align_flights(job);
	free(group_of);
	if (status != OK)
		job_release(job);
	return status;
}

void job_release(struct job *job)
{
	for (size_t i = 0; job->comms != NULL && i < job->comm_count; i++)
		free(job->comms[i].seats);
	free(job->groups);
	free(job->hosts);
	free(job->ranks);
	free(job->comms);
	free(job->seats);
	free(job->first_seat);
	free(job->process_rank);
	free(job->names);
	free(job->name_map);
	*job = (struct job){ .recording = NULL };
}
