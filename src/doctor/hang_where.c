/*
 * Where in the program: a rank that has not called what the others are in was last seen at its last
 * call, and the others wait in theirs. Known if the program's own recorder wrote a dump.
 */
#include "doctor/hang_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "recording/recording.h"

/* Ranks wait in a few places; what differs from rank to rank would fill the page. */
enum { PLACES_SHOWN = 3 };

static const struct recording_process *process_of(const struct job *job, uint32_t rank)
{
	return job->recording->processes[job->ranks[rank].process];
}

static bool is_culprit(const struct verdict *verdict, const struct job_rank *rank)
{
	return strcmp(rank->label, verdict->rank_label) == 0;
}

/* The first call in flight on the verdict's communicator; of any if it names none. NULL: none. */
static const struct recording_where *waits_at(const struct verdict *verdict,
					      const struct recording_process *process)
{
	const struct recording_where *first = NULL;

	for (size_t i = 0; i < process->where_count; i++) {
		const struct recording_where *where = &process->wheres[i];
		const struct recording_comm *comm;

		if (!where->is_open || where->text == NULL)
			continue;
		comm = recording_comm(process, where->comm);
		if (verdict->comm_hash != 0 && verdict->class != VERDICT_DEADLOCK &&
		    (comm == NULL || comm->info.hash != verdict->comm_hash))
			continue;
		if (first == NULL || where->issue_ns < first->issue_ns)
			first = where;
	}
	return first;
}

static void say_culprit(struct verdict *verdict, const struct job *job)
{
	for (uint32_t r = 0; r < job->rank_count; r++) {
		const struct recording_process *process = process_of(job, r);
		const struct recording_where *last;

		if (!is_culprit(verdict, &job->ranks[r]))
			continue;
		last = recording_where(process, 0, 0);
		if (last != NULL)
			verdict_evidence(verdict, "Rank %s made its %s call at %s.",
					 job->ranks[r].label, last->is_open ? "current" : "last",
					 last->text);
	}
}

/* Those that wait at the same place as rank `first`, except the ones that were named before. */
static void say_waiting(struct verdict *verdict, const struct job *job, uint32_t first,
			const char *place, bool *is_named, uint32_t *ranks)
{
	char text[160] = "";
	size_t count = 0;

	for (uint32_t r = first; r < job->rank_count; r++) {
		const struct recording_where *at = waits_at(verdict, process_of(job, r));

		if (is_named[r] || is_culprit(verdict, &job->ranks[r]) || at == NULL ||
		    strcmp(at->text, place) != 0)
			continue;
		is_named[r] = true;
		ranks[count++] = r;
	}
	hang_say_ranks(text, sizeof(text), job, ranks, count);
	verdict_evidence(verdict, "Rank%s %s wait%s at %s.", count == 1 ? "" : "s", text,
			 count == 1 ? "s" : "", place);
}

static void say_places(struct verdict *verdict, const struct job *job)
{
	bool *is_named = calloc(job->rank_count + 1, sizeof(*is_named));
	uint32_t *ranks = calloc(job->rank_count + 1, sizeof(*ranks));
	unsigned int shown = 0;

	for (uint32_t r = 0; is_named != NULL && ranks != NULL && r < job->rank_count; r++) {
		const struct recording_where *at = waits_at(verdict, process_of(job, r));

		if (at == NULL || is_named[r] || is_culprit(verdict, &job->ranks[r]))
			continue;
		if (shown++ == PLACES_SHOWN) {
			verdict_evidence(verdict, "Others wait elsewhere in the program.");
			break;
		}
		say_waiting(verdict, job, r, at->text, is_named, ranks);
	}
	free(is_named);
	free(ranks);
}

void hang_say_where(struct verdicts *verdicts, size_t first, const struct job *job)
{
	bool has_any = false;

	for (size_t p = 0; p < job->recording->count; p++)
		has_any |= job->recording->processes[p]->where_count > 0;
	for (size_t i = first; has_any && i < verdicts->count; i++) {
		say_culprit(&verdicts->list[i], job);
		say_places(&verdicts->list[i], job);
	}
}
