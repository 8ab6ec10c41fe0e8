/*
 * Rows of the report are per communicator; here those of one name and shape are one. Moments of logarithms
 * add up, so several communicators, and several runs, are one sample.
 */
#include "doctor/baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "doctor/slow_find.h"

/* Calls that stand for one sample where iterations are not known, as in compare.c. */
enum { CALLS_ALIKE = 4 };

void baseline_release(struct baseline *baseline)
{
	free(baseline->rows);
	*baseline = (struct baseline){ .rows = NULL };
}

const struct tally *baseline_table(const struct timeline_report *report)
{
	for (size_t i = 0; i < report->custom_count; i++)
		if (report->custom[i].by == BASELINE_BY)
			return &report->custom[i];
	return NULL;
}

/* ---- figures of a row ------------------------------------------------------------------------ */

static double effective(const struct timeline_report *report, double calls)
{
	if (!report->iterations.is_found)
		return calls / CALLS_ALIKE;
	return calls < (double)report->iterations.regular ? calls
							  : (double)report->iterations.regular;
}

/* Durations by bucket: the middle of each stands for it. */
static void logs_of_calls(const struct tally_row *row, struct baseline_figures *figures)
{
	const double width = log(2) / 8;
	double sum = 0, squares = 0;

	for (unsigned int i = 0; i < row->histogram.used; i++) {
		unsigned int bucket = row->histogram.first + i;
		double upper = (double)histogram_upper_ns(bucket);
		double middle =
			log(upper < (double)row->max_ns ? upper : (double)row->max_ns) - width / 2;

		sum += (double)row->histogram.counts[i] * middle;
		squares += (double)row->histogram.counts[i] * middle * middle;
	}
	figures->log_mean = sum / (double)row->timed;
	figures->log_variance =
		fmax(0, squares / (double)row->timed - figures->log_mean * figures->log_mean) +
		width * width / 12;
}

struct baseline_figures baseline_figures(const struct timeline_report *report,
					 const struct tally_row *row)
{
	struct baseline_figures figures = { .busbw = tally_busbw(row),
					    .mean_ns = tally_mean_ns(row) };
	double count = (double)row->moves;

	if (row->timed == 0)
		return figures;
	figures.is_gpu = row->by_source[OP_TIME_KERNEL_GPU] * 10 >= row->timed * 9;
	figures.is_joined =
		row->moves > 0 && row->joined * 2 >= row->timed && row->joined_least_ns > 0;
	if (!figures.is_joined) {
		logs_of_calls(row, &figures);
		figures.samples = effective(report, (double)row->timed /
							    (double)(row->ranks ? row->ranks : 1));
		return figures;
	}
	figures.busbw *= (double)row->joined_ns / (double)row->joined_least_ns;
	figures.mean_ns = (double)row->joined_least_ns / (double)row->joined;
	figures.log_mean = row->move_log_sum / count;
	figures.log_variance =
		fmax(0, row->move_log_squares / count - figures.log_mean * figures.log_mean);
	figures.samples = effective(report, count);
	return figures;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void name_text(char *to, size_t size, const struct job *job, enum op_name_table table,
		      uint8_t number)
{
	text_copy(to, size, number ? job_name(job, table, number) : "");
}

static void fill_row(struct baseline_row *to, const struct timeline_report *report,
		     const struct tally_row *from)
{
	const struct job *job = &report->job;
	const struct job_comm *comm = &job->comms[from->key.comm];
	struct baseline_figures figures = baseline_figures(report, from);

	*to = (struct baseline_row){ .nranks = comm->nranks,
				     .nnodes = comm->nnodes,
				     .calls = from->calls,
				     .comms = 1,
				     .is_joined = figures.is_joined,
				     .busbw = figures.busbw,
				     .mean_ns = figures.mean_ns,
				     .median_ns = (double)tally_quantile_ns(from, 0.5),
				     .p99_ns = (double)tally_quantile_ns(from, 0.99),
				     .p10_ns = (double)tally_quantile_ns(from, 0.1),
				     .log_mean = figures.log_mean,
				     .log_deviation = sqrt(figures.log_variance),
				     .samples = figures.samples };
	text_copy(to->comm_name, sizeof(to->comm_name), comm->name);
	text_copy(to->kind, sizeof(to->kind), job_comm_kind_name(comm->kind));
	text_copy(to->function, sizeof(to->function),
		  job_name(job, OP_NAMES_FUNCTION, from->key.function));
	op_size_text(to->size, sizeof(to->size), from->key.size_class);
	name_text(to->algorithm, sizeof(to->algorithm), job, OP_NAMES_ALGORITHM,
		  from->key.algorithm);
	name_text(to->protocol, sizeof(to->protocol), job, OP_NAMES_PROTOCOL, from->key.protocol);
}

static int by_texts(const void *left, const void *right)
{
	const struct baseline_row *a = left, *b = right;
	int order = strcmp(a->comm_name, b->comm_name);

	if (order == 0)
		order = strcmp(a->kind, b->kind);
	if (order == 0)
		order = strcmp(a->function, b->function);
	if (order == 0)
		order = strcmp(a->size, b->size);
	if (order == 0)
		order = strcmp(a->algorithm, b->algorithm);
	if (order == 0)
		order = strcmp(a->protocol, b->protocol);
	if (order == 0 && a->nranks != b->nranks)
		order = a->nranks < b->nranks ? -1 : 1;
	if (order == 0 && a->nnodes != b->nnodes)
		order = a->nnodes < b->nnodes ? -1 : 1;
	return order == 0 ? (int)a->is_joined - (int)b->is_joined : order;
}

static double middle(double a, double weight_a, double b, double weight_b)
{
	return weight_a + weight_b > 0 ? (a * weight_a + b * weight_b) / (weight_a + weight_b) : a;
}

/* Two samples become one: what lies between their means is part of the spread. */
static void add_row(struct baseline_row *to, const struct baseline_row *from)
{
	double a = to->samples, b = from->samples;
	double calls_a = (double)to->calls, calls_b = (double)from->calls;
	double mean = middle(to->log_mean, a, from->log_mean, b);
	double variance_a = to->log_deviation * to->log_deviation +
			    (to->log_mean - mean) * (to->log_mean - mean);
	double variance_b = from->log_deviation * from->log_deviation +
			    (from->log_mean - mean) * (from->log_mean - mean);

	to->log_deviation = sqrt(middle(variance_a, a, variance_b, b));
	to->log_mean = mean;
	to->busbw = middle(to->busbw, calls_a, from->busbw, calls_b);
	to->mean_ns = middle(to->mean_ns, calls_a, from->mean_ns, calls_b);
	to->median_ns = middle(to->median_ns, calls_a, from->median_ns, calls_b);
	to->p10_ns = middle(to->p10_ns, calls_a, from->p10_ns, calls_b);
	to->wire_ns = middle(to->wire_ns, calls_a, from->wire_ns, calls_b);
	to->consume_ns = middle(to->consume_ns, calls_a, from->consume_ns, calls_b);
	to->p99_ns = to->p99_ns > from->p99_ns ? to->p99_ns : from->p99_ns;
	/* Members of alike communicators do the same at the same time: they are no further samples. */
	to->samples = a > b ? a : b;
	to->calls += from->calls;
	to->comms += from->comms;
}

static void merge_rows(struct baseline *baseline)
{
	size_t kept = 0;

	qsort(baseline->rows, baseline->count, sizeof(*baseline->rows), by_texts);
	for (size_t i = 0; i < baseline->count; i++) {
		if (kept > 0 && by_texts(&baseline->rows[kept - 1], &baseline->rows[i]) == 0)
			add_row(&baseline->rows[kept - 1], &baseline->rows[i]);
		else
			baseline->rows[kept++] = baseline->rows[i];
	}
	if (kept > BASELINE_ROWS_MAX) {
		baseline->left_out = kept - BASELINE_ROWS_MAX;
		kept = BASELINE_ROWS_MAX;
	}
	baseline->count = kept;
}

static void fill_head(struct baseline *baseline, const struct timeline_report *report)
{
	const struct tally_row *total = &report->total;

	baseline->jobs = (uint32_t)report->job.group_count;
	baseline->ranks = (uint32_t)report->job.rank_count;
	if (report->job.group_count == 1)
		text_copy(baseline->job, sizeof(baseline->job), report->job.groups[0].name);
	if (report->has_wall)
		baseline->saved_wall_ns = report->end_ns;
	if (total->joined_ns > 0)
		baseline->wait_share = (double)total->wait_ns / (double)total->joined_ns;
	if (!report->iterations.is_found)
		return;
	baseline->iterations = report->iterations.regular;
	baseline->iteration_ops = report->iterations.period_ops;
	baseline->iteration_ns = (double)report->iterations.median_ns;
	baseline->iteration_busy_ns = (double)report->iterations.median_busy_ns;
}

/* Cells are sorted by communicator, function, size. */
static const struct slow_cell *cell_of(const struct slow_cells *cells, const struct tally_key *key)
{
	for (size_t low = 0, high = cells->count; low < high;) {
		size_t middle = (low + high) / 2;
		const struct slow_cell *cell = &cells->list[middle];

		if (cell->comm == key->comm && cell->function == key->function &&
		    cell->size_class == key->size_class)
			return cell;
		if (cell->comm != key->comm	      ? cell->comm < key->comm
		    : cell->function != key->function ? cell->function < key->function
						      : cell->size_class < key->size_class)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void fill_rows(struct baseline *baseline, const struct timeline_report *report,
		      const struct slow_cells *cells)
{
	const struct tally *table = baseline_table(report);

	for (size_t i = 0; i < table->count; i++) {
		const struct slow_cell *cell = cell_of(cells, &table->rows[i].key);
		struct baseline_row *row = &baseline->rows[baseline->count];

		if (table->rows[i].timed == 0)
			continue;
		fill_row(row, report, &table->rows[i]);
		row->wire_ns = cell ? cell->wire_ns : 0;
		row->consume_ns = cell ? cell->consume_ns : 0;
		baseline->count++;
	}
}

enum status baseline_make(struct baseline *baseline, const struct timeline_report *report)
{
	const struct tally *table = baseline_table(report);
	struct slow_cells cells;
	enum status status;

	*baseline = (struct baseline){ .rows = NULL };
	if (table == NULL)
		return ERR_RANGE;
	status = slow_cells_make(&cells, report);
	if (status == OK)
		status = slow_cells_wire(&cells, report);
	baseline->rows = calloc(table->count + 1, sizeof(*baseline->rows));
	if (status == OK && baseline->rows == NULL)
		status = ERR_NO_SPACE;
	if (status == OK) {
		fill_rows(baseline, report, &cells);
		merge_rows(baseline);
		fill_head(baseline, report);
	} else {
		baseline_release(baseline);
	}
	slow_cells_release(&cells);
	return status;
}
