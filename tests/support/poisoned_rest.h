/*
 * With AddressSanitizer, what lies behind the last element of a list is not readable: neither what a test allocated for
 * more elements, nor the one that src/ allocates so that nothing is ever empty. A loop that goes one too far fails then
 * instead of finding zeros.
 */
#ifndef POISONED_REST_H
#define POISONED_REST_H

#include <malloc.h>
#include <stddef.h>

#include "analysis/job.h"
#include "recording/recording.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

/* A list that malloc() and its like have given, of which `used` bytes are in use. */
static inline void poison_rest(void *list, size_t used)
{
	size_t room = list != NULL ? malloc_usable_size(list) : 0;

	if (room > used)
		ASAN_POISON_MEMORY_REGION((char *)list + used, room - used);
}

static inline void unpoison_all(void *list)
{
	if (list != NULL)
		ASAN_UNPOISON_MEMORY_REGION(list, malloc_usable_size(list));
}

/* For as long as the job lasts. */
static inline void poison_job(const struct job *job)
{
	const size_t processes = job->recording->count;

	poison_rest(job->groups, job->group_count * sizeof(*job->groups));
	poison_rest(job->hosts, job->host_count * sizeof(*job->hosts));
	poison_rest(job->ranks, job->rank_count * sizeof(*job->ranks));
	poison_rest(job->comms, job->comm_count * sizeof(*job->comms));
	poison_rest(job->seats, job->seat_count * sizeof(*job->seats));
	poison_rest(job->process_rank, processes * sizeof(*job->process_rank));
	poison_rest(job->name_map, processes * sizeof(*job->name_map));
	for (size_t i = 0; i < job->comm_count; i++)
		poison_rest(job->comms[i].seats,
			    job->comms[i].seat_count * sizeof(*job->comms[i].seats));
}

/* Until unpoison_processes(): tests add to the lists. */
static inline void poison_processes(const struct recording *recording)
{
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		poison_rest(process->comms, process->comm_count * sizeof(*process->comms));
		poison_rest(process->flights, process->flight_count * sizeof(*process->flights));
	}
}

static inline void unpoison_processes(const struct recording *recording)
{
	for (size_t i = 0; i < recording->count; i++) {
		unpoison_all(recording->processes[i]->comms);
		unpoison_all(recording->processes[i]->flights);
	}
}

#endif
