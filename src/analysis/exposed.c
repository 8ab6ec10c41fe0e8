/* Merges the spans of kernels, and measures communication that no computation hides. */
#include "analysis/timeline_report.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/search.h"

bool exposed_add_compute(struct exposed_activity *activity, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns <= start_ns)
		return true;
	if (!list_grow(&activity->compute, activity->compute_count, sizeof(*activity->compute)))
		return false;
	activity->compute[activity->compute_count++] = (struct exposed_span){ start_ns, end_ns };
	return true;
}

bool exposed_add_comm(struct exposed_activity *activity, uint64_t called_ns, uint64_t start_ns,
		      uint64_t end_ns)
{
	if (!list_grow(&activity->comms, activity->comm_count, sizeof(*activity->comms)))
		return false;
	activity->comms[activity->comm_count++] =
		(struct exposed_kernel){ called_ns,
					 { start_ns, end_ns > start_ns ? end_ns : start_ns } };
	return true;
}

static int by_start(const void *left, const void *right)
{
	const struct exposed_span *a = left, *b = right;

	return ORDER(a->start_ns, b->start_ns) ?: ORDER(a->end_ns, b->end_ns);
}

static int by_call(const void *left, const void *right)
{
	const struct exposed_kernel *a = left, *b = right;

	return ORDER(a->called_ns, b->called_ns) ?: by_start(&a->span, &b->span);
}

/* Sorts spans and merges those that touch. Returns how many are left. */
static size_t unite(struct exposed_span *spans, size_t count)
{
	size_t used = 0;

	if (count > 1)
		qsort(spans, count, sizeof(*spans), by_start);
	for (size_t i = 0; i < count; i++) {
		if (used == 0 || spans[i].start_ns > spans[used - 1].end_ns)
			spans[used++] = spans[i];
		else if (spans[i].end_ns > spans[used - 1].end_ns)
			spans[used - 1].end_ns = spans[i].end_ns;
	}
	return used;
}

void exposed_finish(struct exposed_activity *activity)
{
	activity->compute_count = unite(activity->compute, activity->compute_count);
	if (activity->comm_count > 1)
		qsort(activity->comms, activity->comm_count, sizeof(*activity->comms), by_call);
}

void exposed_release(struct exposed_activity *activity)
{
	free(activity->compute);
	free(activity->comms);
	*activity = (struct exposed_activity){ .compute = NULL };
}

/* The first kernel of NCCL that was launched at `ns` or later. */
static size_t first_called(const struct exposed_activity *activity, uint64_t ns)
{
	return SEARCH_FIRST(i, activity->comm_count, activity->comms[i].called_ns >= ns);
}

/* The first computation that ends after `ns`. */
static size_t first_behind(const struct exposed_activity *activity, uint64_t ns)
{
	return SEARCH_FIRST(i, activity->compute_count, activity->compute[i].end_ns > ns);
}

static uint64_t hidden_ns(const struct exposed_activity *activity, const struct exposed_span *span)
{
	uint64_t hidden = 0;

	for (size_t i = first_behind(activity, span->start_ns);
	     i < activity->compute_count && activity->compute[i].start_ns < span->end_ns; i++) {
		const struct exposed_span *over = &activity->compute[i];
		uint64_t from = over->start_ns > span->start_ns ? over->start_ns : span->start_ns;
		uint64_t to = over->end_ns < span->end_ns ? over->end_ns : span->end_ns;

		hidden += to - from;
	}
	return hidden;
}

enum status exposed_measure(const struct exposed_activity *activity, uint64_t from_ns,
			    uint64_t to_ns, struct exposed_time *time)
{
	size_t first = first_called(activity, from_ns), next = first_called(activity, to_ns);
	size_t count = next > first ? next - first : 0;
	struct exposed_span *spans = malloc((count + 1) * sizeof(*spans));

	if (spans == NULL)
		return ERR_NO_SPACE;
	*time = (struct exposed_time){ .kernels = count };
	for (size_t i = 0; i < count; i++)
		spans[i] = activity->comms[first + i].span;
	count = unite(spans, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t length = spans[i].end_ns - spans[i].start_ns;

		time->comm_ns += length;
		time->exposed_ns += length - hidden_ns(activity, &spans[i]);
	}
	free(spans);
	return OK;
}
