/* Which seats are of one communicator. */
#include "timeline/job_make.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum job_comm_kind job_comm_kind_of(int32_t nranks, int32_t nnodes)
{
	if (nranks == 1)
		return JOB_COMM_SINGLE;
	if (nranks <= 0 || nnodes <= 0)
		return JOB_COMM_UNKNOWN;
	if (nnodes == 1)
		return JOB_COMM_NVLINK;
	return nnodes >= nranks ? JOB_COMM_NET : JOB_COMM_MIXED;
}

/* A seat with all that decides which communicator it belongs to. */
struct claim {
	uint32_t seat;
	uint32_t group;
	uint64_t hash;
	int32_t nranks;
	int32_t comm_rank;
	uint32_t process;
	uint32_t id;
	uint32_t generation;
	uint32_t layer; /* above 0: the seat was taken */
};

#define COMPARE(field)                                       \
	do {                                                 \
		if (a->field != b->field)                    \
			return a->field < b->field ? -1 : 1; \
	} while (0)

static int by_owner(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	COMPARE(process);
	COMPARE(hash);
	COMPARE(nranks);
	COMPARE(comm_rank);
	COMPARE(id);
	return 0;
}

static int by_place(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	COMPARE(group);
	COMPARE(hash);
	COMPARE(nranks);
	COMPARE(generation);
	COMPARE(comm_rank);
	COMPARE(process);
	COMPARE(id);
	return 0;
}

static int by_comm(const void *left, const void *right)
{
	const struct claim *a = left, *b = right;

	COMPARE(group);
	COMPARE(hash);
	COMPARE(nranks);
	COMPARE(generation);
	COMPARE(layer);
	COMPARE(comm_rank);
	return 0;
}

/* A communicator without hash is its process's own: the seat makes it unlike any other. */
static bool is_same_comm(const struct claim *a, const struct claim *b)
{
	if (a->hash == 0)
		return false;
	return a->group == b->group && a->hash == b->hash && a->nranks == b->nranks &&
	       a->generation == b->generation && a->layer == b->layer;
}

static void count_generations(struct claim *claims, size_t count)
{
	qsort(claims, count, sizeof(*claims), by_owner);
	for (size_t i = 1; i < count; i++) {
		const struct claim *a = &claims[i - 1], *b = &claims[i];

		if (a->hash != 0 && a->process == b->process && a->hash == b->hash &&
		    a->nranks == b->nranks && a->comm_rank == b->comm_rank)
			claims[i].generation = a->generation + 1;
	}
}

static uint32_t count_layers(struct claim *claims, size_t count)
{
	uint32_t conflicts = 0;

	qsort(claims, count, sizeof(*claims), by_place);
	for (size_t i = 1; i < count; i++) {
		const struct claim *a = &claims[i - 1], *b = &claims[i];

		if (a->hash == 0 || a->group != b->group || a->hash != b->hash ||
		    a->nranks != b->nranks || a->generation != b->generation ||
		    a->comm_rank != b->comm_rank || a->comm_rank < 0)
			continue;
		claims[i].layer = a->layer + 1;
		conflicts++;
	}
	return conflicts;
}

static enum status start_comm(struct job *job, const struct claim *first, size_t members)
{
	const struct comm_info *info = job_seat_info(job, first->seat);
	struct job_comm *comm = &job->comms[job->comm_count];

	comm->seats = calloc(members, sizeof(*comm->seats));
	if (comm->seats == NULL)
		return ERR_NO_SPACE;
	comm->hash = first->hash;
	comm->group = first->group;
	comm->generation = first->generation;
	comm->nranks = info->nranks;
	comm->nnodes = info->nnodes;
	comm->kind = job_comm_kind_of(info->nranks, info->nnodes);
	text_from_field(comm->name, sizeof(comm->name), info->name, sizeof(info->name));
	job->comm_count++;
	return OK;
}

static enum status fill_comms(struct job *job, const struct claim *claims, size_t count)
{
	enum status status = OK;
	size_t next;

	for (size_t i = 0; i < count && status == OK; i = next) {
		next = i + 1;
		while (next < count && is_same_comm(&claims[i], &claims[next]))
			next++;
		status = start_comm(job, &claims[i], next - i);
		for (size_t j = i; j < next && status == OK; j++) {
			struct job_comm *comm = &job->comms[job->comm_count - 1];

			comm->seats[comm->seat_count++] = claims[j].seat;
			job->seats[claims[j].seat].comm = (uint32_t)job->comm_count - 1;
			if (comm->name[0] == '\0')
				text_from_field(comm->name, sizeof(comm->name),
						job_seat_info(job, claims[j].seat)->name,
						sizeof(comm->name));
			if (comm->nranks > 0 && (uint32_t)comm->nranks > comm->seat_count)
				comm->missing = (uint32_t)comm->nranks - comm->seat_count;
			else
				comm->missing = 0;
		}
	}
	return status;
}

static int by_size_and_name(const void *left, const void *right)
{
	const struct job_comm *a = left, *b = right;
	int names = strcmp(a->name, b->name);

	COMPARE(group);
	if (a->nranks != b->nranks)
		return a->nranks > b->nranks ? -1 : 1;
	if (names != 0)
		return names;
	COMPARE(hash);
	COMPARE(generation);
	COMPARE(seats[0]);
	return 0;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static bool is_name_shared(const char *const *sorted, size_t count, const char *name)
{
	size_t from = 0, to = count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strcmp(sorted[middle], name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from + 1 < count && strcmp(sorted[from + 1], name) == 0;
}

static void label_comm(struct job_comm *comm, size_t number, bool is_shared)
{
	char again[24] = "", which[40];

	if (comm->generation > 0)
		text_format(again, sizeof(again), " (%u)", comm->generation + 1);
	if (comm->hash == 0)
		text_format(which, sizeof(which), "#%zu", number);
	else
		text_format(which, sizeof(which), "0x%016" PRIx64, comm->hash);
	if (comm->name[0] == '\0')
		text_format(comm->label, sizeof(comm->label), "%s%s", which, again);
	else if (is_shared)
		text_format(comm->label, sizeof(comm->label), "%.60s %s%s", comm->name, which,
			    again);
	else
		text_format(comm->label, sizeof(comm->label), "%s%s", comm->name, again);
}

static enum status label_comms(struct job *job)
{
	const char **sorted = calloc(job->comm_count + 1, sizeof(*sorted));

	if (sorted == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < job->comm_count; i++)
		sorted[i] = job->comms[i].name;
	qsort(sorted, job->comm_count, sizeof(*sorted), by_text);
	for (size_t i = 0; i < job->comm_count; i++) {
		struct job_comm *comm = &job->comms[i];

		label_comm(comm, i + 1, is_name_shared(sorted, job->comm_count, comm->name));
		for (uint32_t j = 0; j < comm->seat_count; j++)
			job->seats[comm->seats[j]].comm = (uint32_t)i;
	}
	free(sorted);
	return OK;
}

enum status job_make_comms(struct job *job, const uint32_t *group_of)
{
	struct claim *claims = calloc(job->seat_count + 1, sizeof(*claims));
	enum status status = ERR_NO_SPACE;

	job->comms = calloc(job->seat_count + 1, sizeof(*job->comms));
	if (claims == NULL || job->comms == NULL)
		goto out;
	for (uint32_t s = 0; s < job->seat_count; s++) {
		const struct comm_info *info = job_seat_info(job, s);

		claims[s] = (struct claim){ .seat = s,
					    .group = group_of[job->seats[s].process],
					    .hash = info->hash,
					    .nranks = info->nranks,
					    .comm_rank = info->rank,
					    .process = job->seats[s].process,
					    .id = info->id };
	}
	count_generations(claims, job->seat_count);
	job->conflicts = count_layers(claims, job->seat_count);
	qsort(claims, job->seat_count, sizeof(*claims), by_comm);
	status = fill_comms(job, claims, job->seat_count);
	if (status == OK && job->comm_count > 0) {
		qsort(job->comms, job->comm_count, sizeof(*job->comms), by_size_and_name);
		status = label_comms(job);
	}
out:
	free(claims);
	return status;
}
