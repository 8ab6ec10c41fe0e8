/*
 * Who is who between two looks. Indices into a job change whenever a process comes or goes; identities
 * do not: a process is its host, boot, pid, pid namespace and start time, a seat is a process and its
 * number of the communicator, a communicator is its hash, number of ranks and generation in its job.
 */
#include "live/live_memory.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_word(hash, hash_bytes(text, strlen(text)));
}

static uint64_t process_key(const struct recording_process *process)
{
	uint64_t hash = hash_text(0, process->host);

	hash = hash_text(hash, process->boot_id);
	hash = hash_text(hash, process->job);
	hash = hash_word(hash, (uint64_t)process->pid);
	hash = hash_word(hash, process->pid_namespace);
	hash = hash_word(hash, process->start_ticks);
	return hash_word(hash, (uint64_t)process->rank);
}

static uint64_t comm_key(const struct job *job, const struct job_comm *comm,
			 const uint64_t *seat_keys)
{
	uint64_t hash = hash_text(1, job->groups[comm->group].name);

	/* Without a hash it is its only seat's. */
	if (comm->hash == 0)
		return hash_word(hash, seat_keys[comm->seats[0]]);
	hash = hash_word(hash, comm->hash);
	hash = hash_word(hash, (uint64_t)comm->nranks);
	return hash_word(hash, comm->generation);
}

static int by_key(const void *one, const void *other)
{
	const struct live_place *a = one, *b = other;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static void make_places(struct live_place *places, const uint64_t *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		places[i] = (struct live_place){ .key = keys[i], .index = (uint32_t)i };
	if (count > 1)
		qsort(places, count, sizeof(*places), by_key);
}

/* The place of a key that nobody took yet; NULL none. */
static struct live_place *find_place(struct live_place *places, size_t count, uint64_t key)
{
	size_t from = 0, to = count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (places[middle].key < key)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < count && places[from].key == key; from++)
		if (!places[from].is_taken) {
			places[from].is_taken = true;
			return &places[from];
		}
	return NULL;
}

static bool allocate(struct live_memory *memory, const struct job *job)
{
	size_t most = 0;

	memory->seat_count = job->seat_count;
	memory->comm_count = job->comm_count;
	memory->process_count = job->recording->count;
	for (size_t i = 0; i < job->recording->count; i++)
		if (job->recording->processes[i]->flight_count > most)
			most = job->recording->processes[i]->flight_count;
	memory->seats = calloc(memory->seat_count + 1, sizeof(*memory->seats));
	memory->comms = calloc(memory->comm_count + 1, sizeof(*memory->comms));
	memory->processes = calloc(memory->process_count + 1, sizeof(*memory->processes));
	memory->seat_keys = calloc(memory->seat_count + 1, sizeof(uint64_t));
	memory->comm_keys = calloc(memory->comm_count + 1, sizeof(uint64_t));
	memory->process_keys = calloc(memory->process_count + 1, sizeof(uint64_t));
	memory->seat_places = calloc(memory->seat_count + 1, sizeof(struct live_place));
	memory->comm_places = calloc(memory->comm_count + 1, sizeof(struct live_place));
	memory->process_places = calloc(memory->process_count + 1, sizeof(struct live_place));
	memory->kinds = calloc(most + 1, 1);
	return memory->seats && memory->comms && memory->processes && memory->seat_keys &&
	       memory->comm_keys && memory->process_keys && memory->seat_places &&
	       memory->comm_places && memory->process_places && memory->kinds;
}

static void make_keys(struct live_memory *memory, const struct job *job)
{
	for (size_t p = 0; p < memory->process_count; p++)
		memory->process_keys[p] = process_key(job->recording->processes[p]);
	for (size_t s = 0; s < memory->seat_count; s++)
		memory->seat_keys[s] = hash_word(memory->process_keys[job->seats[s].process],
						 job->seats[s].comm_id);
	for (size_t c = 0; c < memory->comm_count; c++)
		memory->comm_keys[c] = comm_key(job, &job->comms[c], memory->seat_keys);
	make_places(memory->seat_places, memory->seat_keys, memory->seat_count);
	make_places(memory->comm_places, memory->comm_keys, memory->comm_count);
	make_places(memory->process_places, memory->process_keys, memory->process_count);
}

static void adopt(struct live_memory *memory, struct live_memory *before)
{
	const struct live_place *place;

	for (size_t i = 0; i < memory->process_count; i++) {
		place = find_place(before->process_places, before->process_count,
				   memory->process_keys[i]);
		if (place != NULL)
			memory->processes[i] = before->processes[place->index];
	}
	for (size_t i = 0; i < memory->seat_count; i++) {
		place = find_place(before->seat_places, before->seat_count, memory->seat_keys[i]);
		if (place == NULL)
			continue;
		memory->seats[i] = before->seats[place->index];
		before->seats[place->index] = (struct live_seat_memory){ 0 };
	}
	for (size_t i = 0; i < memory->comm_count; i++) {
		place = find_place(before->comm_places, before->comm_count, memory->comm_keys[i]);
		if (place == NULL)
			continue;
		memory->comms[i] = before->comms[place->index];
		before->comms[place->index] = (struct live_comm_memory){ .window_began_ns = 0 };
	}
	memcpy(memory->given, before->given, sizeof(memory->given));
	memory->given_count = before->given_count;
}

struct live_memory *live_memory_next(struct live_memory *before, const struct job *job)
{
	struct live_memory *memory = calloc(1, sizeof(*memory));

	if (memory == NULL || !allocate(memory, job)) {
		live_memory_free(memory);
		return NULL;
	}
	make_keys(memory, job);
	if (before != NULL)
		adopt(memory, before);
	return memory;
}

void live_memory_free(struct live_memory *memory)
{
	if (memory == NULL)
		return;
	for (size_t i = 0; memory->seats != NULL && i < memory->seat_count; i++) {
		free(memory->seats[i].history.points);
		free(memory->seats[i].rows);
	}
	for (size_t i = 0; memory->comms != NULL && i < memory->comm_count; i++)
		free(memory->comms[i].history.points);
	free(memory->seats);
	free(memory->comms);
	free(memory->processes);
	free(memory->seat_keys);
	free(memory->comm_keys);
	free(memory->process_keys);
	free(memory->seat_places);
	free(memory->comm_places);
	free(memory->process_places);
	free(memory->kinds);
	free(memory);
}
