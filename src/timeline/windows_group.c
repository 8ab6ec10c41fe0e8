/* Changes of several communicators at about the same time are one. */
#include <math.h>
#include <stdlib.h>

#include "common/status.h"
#include "common/text.h"
#include "timeline/chance.h"
#include "timeline/windows_changes.h"

static int by_key_and_time(const void *left, const void *right)
{
	const struct change_raw *a = left, *b = right;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->size_class != b->size_class)
		return a->size_class < b->size_class ? -1 : 1;
	return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

/* The median over the changes put together, of before or after. */
static double median_side(const struct change_raw *const *list, size_t count, bool is_after)
{
	double values[64];
	size_t used = count < 64 ? count : 64;

	for (size_t i = 0; i < used; i++)
		values[i] =
			is_after ? list[i * count / used]->after : list[i * count / used]->before;
	return chance_median(values, used);
}

static uint32_t comms_tested(const struct change_search *search,
			     const struct windows_change *change)
{
	for (size_t i = 0; i < search->tested_count; i++)
		if (search->tested[i].kind == (uint8_t)change->kind &&
		    search->tested[i].function == change->function &&
		    search->tested[i].size_class == change->size_class)
			return search->tested[i].comms;
	return 0;
}

/* What is put together, while that is done. */
struct grouping {
	struct windows *windows;
	struct change_search *search;
	const struct change_raw **list; /* of the group at hand */
	bool *is_taken;			/* per raw */
	size_t *group_of;		/* per communicator: the last group that has it, from 1 */
	size_t groups;
};

static void add_change(const struct grouping *of, size_t count)
{
	const struct change_raw *const *list = of->list;
	const struct change_search *search = of->search;
	const struct job *job = &search->report->job;
	struct windows *windows = of->windows;
	struct windows_change change = { .kind = job->comms[list[0]->comm].kind,
					 .function = list[0]->function,
					 .size_class = list[0]->size_class,
					 .at_ns = list[count / 2]->at_ns,
					 .example_comm = list[0]->comm,
					 .confidence = 1 };
	double lost_ns = 0, chance = 1;

	change.before = median_side(list, count, false);
	change.after = median_side(list, count, true);
	change.percent = (change.after - change.before) / change.before * 100;
	change.window = (uint32_t)((change.at_ns - windows->start_ns) / windows->width_ns);
	for (size_t i = 0; i < count; i++) {
		change.meetings_before += list[i]->meetings_before;
		change.meetings_after += list[i]->meetings_after;
		change.ranks_changed += job->comms[list[i]->comm].seat_count;
		lost_ns += list[i]->lost_ns * search->report->comms[list[i]->comm].scale;
		chance = list[i]->chance < chance ? list[i]->chance : chance;
	}
	change.lost_ns = units_whole(lost_ns);
	change.comms_changed = (uint32_t)count;
	change.comms = comms_tested(search, &change);
	change.is_everywhere = change.comms_changed * 5 >= change.comms * 4;
	change.confidence = 1 - fmin(1, chance * (double)search->series);
	if (change.confidence <= 1 - CHANGE_CHANCE)
		return;
	if (list_grow(&windows->changes, windows->change_count, sizeof(change)))
		windows->changes[windows->change_count++] = change;
	else
		of->search->status = ERR_NO_SPACE;
}

/* raws of one function and size class, by time: groups of one kind and direction at about one time. */
static void group(struct grouping *of, size_t from, size_t to)
{
	const struct job *job = &of->search->report->job;

	for (size_t i = from; i < to; i++) {
		const struct change_raw *first = &of->search->raws[i];
		size_t count = 0;

		if (of->is_taken[i])
			continue;
		of->groups++;
		for (size_t j = i; j < to; j++) {
			const struct change_raw *raw = &of->search->raws[j];

			if (raw->at_ns - first->at_ns > 3 * of->windows->width_ns)
				break;
			if (of->is_taken[j] || of->group_of[raw->comm] == of->groups ||
			    job->comms[raw->comm].kind != job->comms[first->comm].kind ||
			    (raw->after < raw->before) != (first->after < first->before))
				continue;
			of->is_taken[j] = true;
			of->group_of[raw->comm] = of->groups;
			of->list[count++] = raw;
		}
		add_change(of, count);
	}
}

static int most_important_first(const void *left, const void *right)
{
	const struct windows_change *a = left, *b = right;
	double weight_a = fabs(a->percent) * (double)(a->meetings_before + a->meetings_after);
	double weight_b = fabs(b->percent) * (double)(b->meetings_before + b->meetings_after);

	if (a->lost_ns != b->lost_ns)
		return a->lost_ns > b->lost_ns ? -1 : 1;
	return weight_a > weight_b ? -1 : weight_a < weight_b;
}

static void keep_most_important(struct windows *windows)
{
	if (windows->change_count > 1)
		qsort(windows->changes, windows->change_count, sizeof(*windows->changes),
		      most_important_first);
	if (windows->change_count <= WINDOWS_CHANGES_MAX)
		return;
	windows->changes_left_out = windows->change_count - WINDOWS_CHANGES_MAX;
	windows->change_count = WINDOWS_CHANGES_MAX;
}

static void group_all(struct grouping *of)
{
	struct change_search *search = of->search;
	size_t next;

	for (size_t i = 0; i < search->raw_count; i = next) {
		for (next = i; next < search->raw_count &&
			       search->raws[next].function == search->raws[i].function &&
			       search->raws[next].size_class == search->raws[i].size_class;)
			next++;
		group(of, i, next);
	}
	keep_most_important(of->windows);
}

enum status windows_group_changes(struct windows *windows, struct change_search *search)
{
	struct grouping of = { .windows = windows, .search = search };

	if (search->raw_count == 0)
		return OK;
	of.list = calloc(search->raw_count, sizeof(*of.list));
	of.is_taken = calloc(search->raw_count, sizeof(*of.is_taken));
	of.group_of = calloc(search->report->job.comm_count, sizeof(*of.group_of));
	if (of.list != NULL && of.is_taken != NULL && of.group_of != NULL) {
		qsort(search->raws, search->raw_count, sizeof(*search->raws), by_key_and_time);
		group_all(&of);
	} else {
		search->status = ERR_NO_SPACE;
	}
	free(of.list);
	free(of.is_taken);
	free(of.group_of);
	return search->status;
}
