/* From what was collected job by job to the rows that are shown. */
#include <stdlib.h>
#include <string.h>

#include "bench/profilers_parts.h"

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_grain(const void *left, const void *right)
{
	const struct profilers_complete *a = left, *b = right;
	int sign = order(a->plugin, b->plugin);

	sign = sign ? sign : order(a->mode, b->mode);
	sign = sign ? sign : order((uint64_t)(a->rank + 1), (uint64_t)(b->rank + 1));
	sign = sign ? sign : order(a->function, b->function);
	sign = sign ? sign : order(!a->is_align, !b->is_align);
	sign = sign ? sign : order(a->bytes, b->bytes);
	return sign ? sign : order(a->bytes_to, b->bytes_to);
}

static void add_counts(struct profilers_counts *to, const struct profilers_counts *counts)
{
	to->issued += counts->issued;
	to->recorded += counts->recorded;
	to->untimed += counts->untimed;
	to->missing += counts->missing;
	to->excess += counts->excess;
}

/* Rows of several runs become one. */
static void make_complete(struct profilers *work)
{
	struct profilers_complete *list = work->complete.items;
	size_t kept = 0;

	if (work->complete.count > 1)
		qsort(list, work->complete.count, sizeof(*list), by_grain);
	for (size_t i = 0; i < work->complete.count; i++)
		if (kept > 0 && by_grain(&list[kept - 1], &list[i]) == 0)
			add_counts(&list[kept - 1].counts, &list[i].counts);
		else
			list[kept++] = list[i];
	work->out.complete = list;
	work->out.complete_count = kept;
	work->complete = (struct profilers_list){ .size = sizeof(*list) };
}

static int by_row(const void *left, const void *right)
{
	const struct profilers_accuracy *a = left, *b = right;
	int sign = order(a->plugin, b->plugin);

	sign = sign ? sign : order(a->mode, b->mode);
	sign = sign ? sign : order(a->function, b->function);
	sign = sign ? sign : order(a->bytes, b->bytes);
	sign = sign ? sign : order(a->bytes_to, b->bytes_to);
	return sign ? sign : order(a->source, b->source);
}

/* The same over all functions. */
static enum status add_over_functions(struct profilers *work)
{
	size_t single = work->ratios.count;

	for (size_t i = 0; i < single; i++) {
		struct profilers_ratios one = ((struct profilers_ratios *)work->ratios.items)[i];
		struct profilers_ratios like = { .plugin = one.plugin,
						 .mode = one.mode,
						 .source = one.source,
						 .is_mean_only = one.is_mean_only,
						 .bytes = one.bytes,
						 .bytes_to = one.bytes_to };
		struct profilers_ratios *all =
			one.function ? profilers_ratios_of(work, &like) : NULL;

		if (one.function == 0)
			continue;
		if (all == NULL)
			return ERR_NO_SPACE;
		all->calls += one.calls;
		all->in_order += one.in_order;
		all->by_time += one.by_time;
		for (size_t j = 0; j < one.count; j++)
			if (!profilers_ratios_add(all, one.values[j]))
				return ERR_NO_SPACE;
	}
	return OK;
}

static bool is_same_calls(const struct profilers_ratios *a, const struct profilers_ratios *b)
{
	return a->plugin == b->plugin && a->mode == b->mode && a->function == b->function &&
	       a->bytes == b->bytes && a->bytes_to == b->bytes_to;
}

/* A row for each source; for calls that have none at all, a row that says so. */
static enum status add_accuracy(struct profilers *work, const struct profilers_ratios *calls,
				struct profilers_list *rows)
{
	struct profilers_ratios *list = work->ratios.items;
	bool is_any = false;

	for (size_t i = 0; i <= work->ratios.count; i++) {
		struct profilers_ratios *ratios = i < work->ratios.count ? &list[i] : NULL;
		struct profilers_accuracy *row;

		if (ratios && (ratios->count == 0 || !is_same_calls(ratios, calls)))
			continue;
		if (ratios == NULL && is_any)
			continue;
		row = profilers_list_add(rows, PROFILERS_ROWS_MAX);
		if (row == NULL)
			return ERR_NO_SPACE;
		is_any = true;
		row->plugin = calls->plugin;
		row->mode = calls->mode;
		row->function = calls->function;
		row->is_mean_only = calls->is_mean_only;
		row->bytes = calls->bytes;
		row->bytes_to = calls->bytes_to;
		row->calls = calls->calls;
		if (ratios == NULL)
			continue;
		row->source = ratios->source;
		row->in_order = ratios->in_order;
		row->by_time = ratios->by_time;
		row->ratio = profilers_quantiles_of(ratios->values, ratios->count);
	}
	return OK;
}

static enum status make_accuracy(struct profilers *work)
{
	struct profilers_list rows = { .size = sizeof(struct profilers_accuracy) };
	enum status status = add_over_functions(work);

	for (size_t i = 0; i < work->ratios.count && status == OK; i++) {
		const struct profilers_ratios *ratios =
			(struct profilers_ratios *)work->ratios.items + i;

		if (ratios->source == OP_TIME_SOURCES)
			status = add_accuracy(work, ratios, &rows);
	}
	if (rows.count > 1)
		qsort(rows.items, rows.count, rows.size, by_row);
	work->out.accuracy = rows.items;
	work->out.accuracy_count = rows.count;
	return status;
}

static int by_plugin(const void *left, const void *right)
{
	const struct profilers_jobs *a = left, *b = right;
	int sign = order(a->plugin, b->plugin);

	return sign ? sign : order(a->mode, b->mode);
}

static void make_jobs(struct profilers *work)
{
	struct profilers_jobs *list = work->jobs.items;

	if (work->jobs.count > 1)
		qsort(list, work->jobs.count, sizeof(*list), by_plugin);
	for (size_t i = 0; i < work->jobs.count; i++) {
		uint32_t runs = list[i].read + list[i].silent + list[i].unreadable;

		work->out.runs = runs > work->out.runs ? runs : work->out.runs;
	}
	work->out.jobs = list;
	work->out.job_count = work->jobs.count;
	work->jobs = (struct profilers_list){ .size = sizeof(*list) };
}

enum status profilers_finish(struct profilers *work, struct profilers_comparison *comparison)
{
	enum status status;

	make_jobs(work);
	make_complete(work);
	status = make_accuracy(work);
	if (status == OK)
		status = profilers_make_overhead(work);
	if (status == OK)
		status = profilers_make_training(work);
	*comparison = work->out;
	profilers_comparison_init(&work->out);
	return status;
}
