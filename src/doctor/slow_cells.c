/* Transfers by communicator, function and size: rows of the table by BASELINE_BY, put together. */
#include <math.h>
#include <stdlib.h>

#include "doctor/slow_find.h"
#include "timeline/meet.h"

static int by_cell(const void *left, const void *right)
{
	const struct tally_row *a = *(const struct tally_row *const *)left;
	const struct tally_row *b = *(const struct tally_row *const *)right;

	if (a->key.comm != b->key.comm)
		return a->key.comm < b->key.comm ? -1 : 1;
	if (a->key.function != b->key.function)
		return a->key.function < b->key.function ? -1 : 1;
	if (a->key.size_class != b->key.size_class)
		return a->key.size_class < b->key.size_class ? -1 : 1;
	/* The first one of a cell is the one most calls are of. */
	return a->calls > b->calls ? -1 : a->calls < b->calls;
}

static bool is_same_cell(const struct tally_row *a, const struct tally_row *b)
{
	return a->key.comm == b->key.comm && a->key.function == b->key.function &&
	       a->key.size_class == b->key.size_class;
}

static struct slow_cell start_cell(const struct tally_row *row)
{
	return (struct slow_cell){ .comm = row->key.comm,
				   .function = row->key.function,
				   .size_class = row->key.size_class,
				   .algorithm = row->key.algorithm,
				   .protocol = row->key.protocol,
				   .is_transfer = true };
}

/* While it is added up, busbw has bus bytes, and mean_ns the sum of durations. */
static void add_to_cell(struct slow_cell *cell, const struct timeline_report *report,
			const struct tally_row *row)
{
	struct baseline_figures figures = baseline_figures(report, row);
	double weight = figures.samples, before = cell->samples;
	double mean, spread;

	if (row->timed == 0 || weight <= 0)
		return;
	mean = (cell->log_mean * before + figures.log_mean * weight) / (before + weight);
	spread = before * (cell->log_variance + (cell->log_mean - mean) * (cell->log_mean - mean)) +
		 weight * (figures.log_variance +
			   (figures.log_mean - mean) * (figures.log_mean - mean));
	cell->log_variance = spread / (before + weight);
	cell->log_mean = mean;
	cell->samples += weight;
	cell->choices++;
	cell->is_transfer &= figures.is_joined && figures.is_gpu;
	cell->ranks = row->ranks > cell->ranks ? row->ranks : cell->ranks;
	cell->bytes += row->bytes;
	cell->calls += row->calls;
	cell->moves += row->moves;
	cell->p10_ns += (double)tally_quantile_ns(row, 0.1) * (double)row->calls;
	cell->busbw += figures.busbw * figures.mean_ns * (double)row->calls;
	cell->mean_ns += figures.mean_ns * (double)row->calls;
}

static void finish_cell(struct slow_cell *cell)
{
	cell->spent_ns = cell->mean_ns;
	cell->p10_ns = cell->calls > 0 ? cell->p10_ns / (double)cell->calls : 0;
	cell->busbw = cell->mean_ns > 0 ? cell->busbw / cell->mean_ns : 0;
	cell->mean_ns = cell->calls > 0 ? cell->mean_ns / (double)cell->calls : 0;
	cell->bytes = cell->calls > 0 ? cell->bytes / cell->calls : 0;
}

enum status slow_cells_make(struct slow_cells *cells, const struct timeline_report *report)
{
	const struct tally *table = baseline_table(report);
	const struct tally_row **sorted;
	size_t next;

	*cells = (struct slow_cells){ .list = NULL };
	if (table == NULL || table->count == 0)
		return OK;
	sorted = calloc(table->count, sizeof(*sorted));
	cells->list = calloc(table->count, sizeof(*cells->list));
	if (sorted == NULL || cells->list == NULL) {
		free(sorted);
		slow_cells_release(cells);
		return ERR_NO_SPACE;
	}
	for (size_t i = 0; i < table->count; i++)
		sorted[i] = &table->rows[i];
	qsort(sorted, table->count, sizeof(*sorted), by_cell);
	for (size_t i = 0; i < table->count; i = next) {
		struct slow_cell *cell = &cells->list[cells->count];

		*cell = start_cell(sorted[i]);
		for (next = i; next < table->count && is_same_cell(sorted[i], sorted[next]); next++)
			add_to_cell(cell, report, sorted[next]);
		finish_cell(cell);
		cells->count += cell->calls > 0 && cell->samples > 0;
	}
	free(sorted);
	return OK;
}

void slow_cells_release(struct slow_cells *cells)
{
	free(cells->list);
	*cells = (struct slow_cells){ .list = NULL };
}
