/*
 * Parts are appended while a process is walked, several times for one key when cells were flushed early, and
 * sorted and put together when it is done (before, when there are many). Seats rise from process to process,
 * so the whole array is sorted then, and a kind is found by bisection.
 */
#include "timeline/estimate.h"

#include <stdlib.h>

enum { SORT_LEAST = 4096 };

void estimate_release(struct estimate *estimate)
{
	free(estimate->parts);
	*estimate = (struct estimate){ .parts = NULL };
}

static int by_kind(const struct estimate_part *a, const struct estimate_part *b)
{
	if (a->seat != b->seat)
		return a->seat < b->seat ? -1 : 1;
	if (a->names != b->names)
		return a->names < b->names ? -1 : 1;
	return (a->size_class > b->size_class) - (a->size_class < b->size_class);
}

static int by_kind_and_tag(const void *left, const void *right)
{
	const struct estimate_part *a = left, *b = right;
	int order = by_kind(a, b);

	return order != 0 ? order : (a->tag > b->tag) - (a->tag < b->tag);
}

/* Sort the current process's parts and put equal ones together. */
static void settle(struct estimate *estimate)
{
	struct estimate_part *parts = estimate->parts + estimate->first;
	size_t count = estimate->count - estimate->first, kept = 0;

	if (count == 0)
		return;
	qsort(parts, count, sizeof(*parts), by_kind_and_tag);
	for (size_t i = 1; i < count; i++) {
		if (by_kind_and_tag(&parts[kept], &parts[i]) != 0) {
			parts[++kept] = parts[i];
			continue;
		}
		parts[kept].timed += parts[i].timed;
		parts[kept].sum_ns += parts[i].sum_ns;
		parts[kept].untimed += parts[i].untimed;
		parts[kept].joined_ns += parts[i].joined_ns;
		parts[kept].least_ns += parts[i].least_ns;
	}
	estimate->count = estimate->first + kept + 1;
}

enum status estimate_add(struct estimate *estimate, const struct estimate_part *part)
{
	if (estimate->count - estimate->first > SORT_LEAST &&
	    estimate->count >= estimate->next_sort) {
		settle(estimate);
		estimate->next_sort = estimate->first + 2 * (estimate->count - estimate->first);
	}
	if (estimate->count == estimate->room) {
		size_t room = estimate->room ? estimate->room * 2 : 256;
		void *grown = realloc(estimate->parts, room * sizeof(*estimate->parts));

		if (grown == NULL)
			return ERR_NO_SPACE;
		estimate->parts = grown;
		estimate->room = room;
	}
	estimate->parts[estimate->count++] = *part;
	return OK;
}

void estimate_end_process(struct estimate *estimate)
{
	uint64_t untimed = 0;

	for (size_t i = estimate->first; i < estimate->count; i++)
		untimed += estimate->parts[i].untimed;
	if (untimed == 0)
		estimate->count = estimate->first;
	else
		settle(estimate);
	estimate->first = estimate->count;
	estimate->next_sort = 0;
}

struct estimate_part *estimate_find(struct estimate *estimate, const struct estimate_part *like)
{
	size_t low = 0, high = estimate->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_kind(&estimate->parts[middle], like) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < estimate->count && by_kind(&estimate->parts[low], like) == 0
		       ? &estimate->parts[low]
		       : NULL;
}

struct estimate_kind estimate_kind(const struct estimate *estimate, size_t first)
{
	struct estimate_kind kind = { .first = first, .next = first };

	for (; kind.next < estimate->count &&
	       by_kind(&estimate->parts[first], &estimate->parts[kind.next]) == 0;
	     kind.next++) {
		const struct estimate_part *part = &estimate->parts[kind.next];

		kind.timed += part->timed;
		kind.sum_ns += part->sum_ns;
		kind.untimed += part->untimed;
		kind.joined_ns += part->joined_ns;
		kind.least_ns += part->least_ns;
	}
	return kind;
}
