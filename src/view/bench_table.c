/*
 * nccl-tests prints one test: comments, a head, rows, a foot. Here a run has many, so cells are sorted into
 * blocks, and those that differ in nothing but "in place" share a row:
 *
 *	# Collective test starting: all_reduce_perf
 *	# ...
 *	#       size         count      type   redop    root     time   algbw   busbw  #wrong     time ...
 *	     1048576        262144     float     sum      -1    71.20   14.73   22.09       0    70.91 ...
 *	# Out of bounds values : 0 OK
 *	# Avg bus bandwidth    : 22.1311
 *
 * What was not measured is "N/A": every row has all its columns.
 */
#include "view/bench_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "view/bench_table_parts.h"

/* ---- order ----------------------------------------------------------------------------------- */

struct sorted_cell {
	const struct bench_cell *cell;
	uint32_t turn; /* of its function: as the run had them */
	uint32_t index;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_peers(const struct bench_cell *a, const struct bench_cell *b)
{
	if (a->peers == NULL || b->peers == NULL)
		return compare_numbers(a->peers != NULL, b->peers != NULL);
	if (a->nranks != b->nranks)
		return compare_numbers((uint32_t)a->nranks, (uint32_t)b->nranks);
	return memcmp(a->peers, b->peers, (size_t)a->nranks * sizeof(*a->peers));
}

static int compare_blocks(const struct sorted_cell *a, const struct sorted_cell *b)
{
	int order = compare_numbers(a->turn, b->turn);

	if (order == 0)
		order = compare_numbers(a->cell->mode, b->cell->mode);
	if (order == 0)
		order = compare_numbers(a->cell->algorithm, b->cell->algorithm);
	if (order == 0)
		order = compare_numbers(a->cell->protocol, b->cell->protocol);
	if (order == 0)
		order = compare_numbers(a->cell->is_grouped_sends, b->cell->is_grouped_sends);
	return order != 0 ? order : compare_peers(a->cell, b->cell);
}

static int compare_rows(const struct sorted_cell *a, const struct sorted_cell *b)
{
	int order = compare_blocks(a, b);

	if (order == 0)
		order = compare_numbers(a->cell->datatype, b->cell->datatype);
	if (order == 0)
		order = compare_numbers(a->cell->redop, b->cell->redop);
	if (order == 0)
		order = compare_numbers((uint32_t)a->cell->root, (uint32_t)b->cell->root);
	if (order == 0)
		order = compare_numbers(a->cell->bytes, b->cell->bytes);
	return order != 0 ? order : compare_numbers(a->cell->count, b->cell->count);
}

static int compare_cells(const void *left, const void *right)
{
	const struct sorted_cell *a = left, *b = right;
	int order = compare_rows(a, b);

	return order != 0 ? order : compare_numbers(a->index, b->index);
}

static void sort_cells(const struct bench_run *run, struct sorted_cell *sorted)
{
	uint32_t turns[UINT8_MAX + 1] = { 0 }, last = 0;

	for (size_t i = 0; i < run->cell_count; i++) {
		uint32_t *turn = &turns[run->cells[i].function];

		if (*turn == 0)
			*turn = ++last;
		sorted[i] = (struct sorted_cell){ &run->cells[i], *turn, (uint32_t)i };
	}
	qsort(sorted, run->cell_count, sizeof(*sorted), compare_cells);
}

/* The next row from here on: the first cell of its kind of either place that is still to come. */
static size_t pair_cells(const struct sorted_cell *sorted, size_t count, struct bench_row *rows)
{
	size_t row_count = 0, end;

	for (size_t from = 0; from < count; from = end) {
		size_t outs = 0, ins = 0;

		for (end = from; end < count && compare_rows(&sorted[from], &sorted[end]) == 0;
		     end++) {
			bool is_in = sorted[end].cell->is_in_place;
			struct bench_row *row = &rows[row_count + (is_in ? ins++ : outs++)];

			*(is_in ? &row->in : &row->out) = sorted[end].cell;
		}
		row_count += outs > ins ? outs : ins;
	}
	return row_count;
}

static bool is_same_block(const struct bench_row *a, const struct bench_row *b)
{
	struct sorted_cell one = { .cell = bench_row_cell(a), .turn = bench_row_cell(a)->function };
	struct sorted_cell two = { .cell = bench_row_cell(b), .turn = bench_row_cell(b)->function };

	return compare_blocks(&one, &two) == 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* As many digits as fit, as nccl-tests does. */
static void put_number(struct sink *sink, double value, int width)
{
	char text[32];

	for (int digits = 2; digits >= 0; digits--)
		if (text_format(text, (size_t)width + 1, "%*.*f", width, digits, value)) {
			sink_format(sink, "  %s", text);
			return;
		}
	sink_format(sink, "  %*.*e", width, width >= 7 ? 1 : 0, value);
}

static void put_percentiles(struct bench_block *block, const struct bench_cell *cell,
			    const struct bench_figures *figures)
{
	const double values[] = { figures->p50, figures->p90, figures->p99, figures->least,
				  figures->most };

	for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
		/* One time around all calls has no percentiles. */
		bool has_calls = cell != NULL && cell->mode != BENCH_LOOP && figures->count > 0;

		if (has_calls && !isnan(values[i]))
			put_number(block->sink, values[i] / 1000, 7);
		else
			sink_format(block->sink, "  %7s", "N/A");
		block->unsupported += has_calls && isnan(values[i]);
	}
}

static void put_model(struct bench_block *block, const struct bench_cell *cell, double time_ns)
{
	double model_ns = cell != NULL ? block->options->model_ns[cell - block->run->cells] : 0;

	if (model_ns > 0 && isfinite(model_ns))
		put_number(block->sink, model_ns / 1000, 7);
	else
		sink_format(block->sink, "  %7s", "N/A");
	if (model_ns > 0 && isfinite(model_ns) && time_ns > 0)
		put_number(block->sink, (model_ns / time_ns - 1) * 100, 6);
	else
		sink_format(block->sink, "  %6s", "N/A");
}

/* NULL: this place was not measured. */
static enum status put_measure(struct bench_block *block, const struct bench_cell *cell)
{
	struct sink *sink = block->sink;
	struct bench_figures figures = { 0 };
	enum status status = OK;
	double time_ns = 0;

	if (cell != NULL)
		status = bench_cell_figures(cell, block->options->over, &figures);
	if (status != OK)
		return status;
	if (cell != NULL)
		time_ns = block->options->is_median ? figures.p50 : figures.mean;
	if (time_ns > 0) {
		put_number(sink, time_ns / 1000, 7);
		put_number(sink, bench_algbw(cell, time_ns), 6);
		put_number(sink, bench_busbw(cell, time_ns), 6);
		block->busbw_sum += bench_busbw(cell, time_ns);
		block->measures++;
	} else {
		sink_format(sink, "  %7s  %6s  %6s", "N/A", "N/A", "N/A");
		block->untimed += cell != NULL;
	}
	if (cell == NULL || cell->wrong == BENCH_UNCHECKED)
		sink_format(sink, "  %6s", "N/A");
	else
		sink_format(sink, "  %6" PRIu64, cell->wrong);
	block->wrong += cell != NULL && cell->wrong != BENCH_UNCHECKED && cell->wrong > 0;
	block->unchecked += cell != NULL && cell->wrong == BENCH_UNCHECKED;
	if (block->options->has_percentiles)
		put_percentiles(block, cell, &figures);
	if (block->options->model_ns != NULL)
		put_model(block, cell, time_ns);
	return OK;
}

static enum status put_row(struct bench_block *block, const struct bench_row *row)
{
	const struct bench_cell *cell = bench_row_cell(row);
	enum status status;

	sink_format(block->sink, "%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6" PRId32, cell->bytes,
		    cell->count, bench_table_type(cell->datatype), bench_redop_name(cell->redop),
		    cell->root);
	status = put_measure(block, row->out);
	if (status == OK)
		status = put_measure(block, row->in);
	sink_byte(block->sink, '\n');
	return status;
}

static enum status put_block(struct bench_block *block)
{
	enum status status = OK;

	bench_table_head(block);
	for (size_t i = 0; i < block->count && status == OK; i++)
		status = put_row(block, &block->rows[i]);
	bench_table_foot(block);
	return status;
}

enum status bench_table_write(struct sink *sink, const struct bench_run *run,
			      const struct bench_table_options *options)
{
	struct sorted_cell *sorted = calloc(run->cell_count + 1, sizeof(*sorted));
	struct bench_row *rows = calloc(run->cell_count + 1, sizeof(*rows));
	enum status status = sorted != NULL && rows != NULL ? OK : ERR_NO_SPACE;
	size_t count = 0, to;

	if (status == OK) {
		sort_cells(run, sorted);
		count = pair_cells(sorted, run->cell_count, rows);
		bench_table_start(sink, run);
	}
	for (size_t from = 0; from < count && status == OK; from = to) {
		struct bench_block block = { .sink = sink, .run = run, .options = options };

		for (to = from + 1; to < count && is_same_block(&rows[from], &rows[to]);)
			to++;
		block.rows = &rows[from];
		block.count = to - from;
		block.is_first = from == 0;
		status = put_block(&block);
	}
	free(sorted);
	free(rows);
	return status != OK ? status : sink->status;
}
