/*
 * The communicators of a process. There may be very many, in any order, and each is named again and
 * again while a trace is loaded; so they stand in a hash table until the end and are sorted then.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/list_grow.h"
#include "recording/recording_load.h"

enum { COMMS_MAX = 1 << 24 };

/* Room for twice as many, at least: a power of two. */
static size_t index_size(size_t count)
{
	size_t size = 64;

	while (size < count * 2 + 2)
		size *= 2;
	return size;
}

/* The place of this id in the index: its own, or the free one where it belongs. */
static uint32_t *index_place(const struct recording_process *process, size_t size, uint32_t id)
{
	size_t at = (size_t)hash_word(id, id) & (size - 1);

	while (process->comm_index[at] != 0 &&
	       process->comms[process->comm_index[at] - 1].info.id != id)
		at = (at + 1) & (size - 1);
	return &process->comm_index[at];
}

/* Made anew whenever the number of communicators calls for a larger one. */
static bool index_make(struct recording_process *process, size_t size)
{
	uint32_t *index = calloc(size, sizeof(*index));

	if (index == NULL)
		return false;
	free(process->comm_index);
	process->comm_index = index;
	for (size_t i = 0; i < process->comm_count; i++)
		*index_place(process, size, process->comms[i].info.id) = (uint32_t)i + 1;
	return true;
}

struct recording_comm *recording_load_comm(struct recording_process *process, uint32_t id)
{
	size_t size = index_size(process->comm_count);
	uint32_t *place;

	if (process->comm_index == NULL && !index_make(process, size))
		return NULL;
	place = index_place(process, size, id);
	if (*place != 0)
		return &process->comms[*place - 1];
	if (process->comm_count >= COMMS_MAX ||
	    !list_grow(&process->comms, process->comm_count, sizeof(*process->comms)))
		return NULL;
	process->comms[process->comm_count] =
		(struct recording_comm){ .info = { .id = id, .rank = -1, .gpu = -1 } };
	*place = (uint32_t)process->comm_count + 1;
	process->comm_count++;
	if (index_size(process->comm_count) != size &&
	    !index_make(process, index_size(process->comm_count))) {
		process->comm_count--;
		*place = 0;
		return NULL;
	}
	return &process->comms[process->comm_count - 1];
}

static int compare_comms(const void *one, const void *other)
{
	const struct recording_comm *a = one, *b = other;

	return a->info.id < b->info.id ? -1 : a->info.id > b->info.id;
}

void recording_load_comms_end(struct recording_process *process)
{
	free(process->comm_index);
	process->comm_index = NULL;
	if (process->comm_count > 1)
		qsort(process->comms, process->comm_count, sizeof(*process->comms), compare_comms);
}

const struct recording_comm *recording_comm(const struct recording_process *process, uint32_t id)
{
	const struct recording_comm wanted = { .info = { .id = id } };

	if (process->comm_count == 0)
		return NULL;
	return bsearch(&wanted, process->comms, process->comm_count, sizeof(*process->comms),
		       compare_comms);
}
