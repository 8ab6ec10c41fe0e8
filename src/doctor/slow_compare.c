/*
 * Transfers now against what they should be. The interval is that of compare.h: logarithms, Welch's t, alike
 * calls counted once. Two runs of one job never agree better than `other_run`, however many calls there are:
 * that is added to the error.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "doctor/slow_find.h"
#include "timeline/chance.h"
#include "timeline/compare.h"

/* A quantile is exact to 9 %: Sends have to differ by more. Nothing says how sure that is. */
static const double sends_that_matter = 0.25, sends_confidence = 0.85;
enum { SENDS_LEAST = 32 };
static const double level = 0.05, other_run = 0.01;
/* Large messages reach so much of a link's peak when all is well; smaller ones never do. */
static const double share_of_peak = 0.8;
enum { PEAK_SIZE_LEAST = 2 + 24 }; /* 16 MiB */

struct then {
	bool is_found;
	bool is_joined;
	bool is_other_ranks;
	double log_mean;
	double log_variance;
	double samples; /* 0: exact */
	double busbw;
	double p10_ns;
	double wire_ns;
	double consume_ns;
	char algorithm[48]; /* "RING SIMPLE" */
};

static double freedom_of(double error_now, double samples_now, double error_then,
			 double samples_then)
{
	double both = error_now + error_then, freedom = 0;

	if (samples_now > 1)
		freedom += error_now * error_now / (samples_now - 1);
	if (samples_then > 1)
		freedom += error_then * error_then / (samples_then - 1);
	return freedom > 0 ? fmax(1, both * both / freedom) : 1e6;
}

static void judge(struct slow_cell *cell, const struct then *then, double gap, double threshold,
		  double comparisons)
{
	double error_now = cell->log_variance / cell->samples;
	double error_then = then->samples > 0 ? then->log_variance / then->samples : 0;
	double error = sqrt(error_now + error_then + other_run * other_run);
	double freedom = freedom_of(error_now, cell->samples, error_then, then->samples);
	double reach = chance_student_quantile(level / 2, freedom) * error;
	double far = chance_student_quantile(level / 2 / comparisons, freedom) * error;

	if (cell->samples < COMPARE_SAMPLES_LEAST ||
	    (then->samples > 0 && then->samples < COMPARE_SAMPLES_LEAST))
		return;
	cell->is_compared = true;
	cell->is_other_ranks = then->is_other_ranks;
	cell->ratio = exp(gap);
	cell->ratio_low = exp(gap - reach);
	cell->ratio_high = exp(gap + reach);
	cell->busbw_then = then->busbw;
	cell->wire_then_ns = then->wire_ns;
	cell->consume_then_ns = then->consume_ns;
	cell->is_slow = gap > far && cell->ratio_low > 1 + threshold;
	cell->confidence = 1 - fmin(1, chance_student((gap - log(1 + threshold)) / error, freedom) *
					       comparisons);
}

/* ---- a baseline ------------------------------------------------------------------------------ */

struct wanted {
	const char *comm_name;
	const char *kind;
	const char *function;
	char size[16];
	int32_t nranks;
	int32_t nnodes;
};

static bool is_wanted(const struct baseline_row *row, const struct wanted *wanted, bool by_name,
		      bool is_joined)
{
	return row->is_joined == is_joined && strcmp(row->function, wanted->function) == 0 &&
	       strcmp(row->size, wanted->size) == 0 && strcmp(row->kind, wanted->kind) == 0 &&
	       (!by_name || strcmp(row->comm_name, wanted->comm_name) == 0);
}

/* Rows of other algorithms are added up as well: what was chosen is part of the story. */
static void add_then(struct then *then, const struct baseline_row *row, double *most_calls)
{
	double weight = row->samples, before = then->samples;
	double variance = row->log_deviation * row->log_deviation;
	double mean, calls = (double)row->calls;

	if (weight <= 0)
		return;
	mean = (then->log_mean * before + row->log_mean * weight) / (before + weight);
	then->log_variance =
		(before * (then->log_variance + (then->log_mean - mean) * (then->log_mean - mean)) +
		 weight * (variance + (row->log_mean - mean) * (row->log_mean - mean))) /
		(before + weight);
	then->log_mean = mean;
	then->busbw = (then->busbw * before + row->busbw * weight) / (before + weight);
	then->p10_ns = (then->p10_ns * before + row->p10_ns * weight) / (before + weight);
	then->wire_ns = fmax(then->wire_ns, row->wire_ns);
	then->consume_ns = fmax(then->consume_ns, row->consume_ns);
	then->samples = before + weight;
	then->is_found = true;
	then->is_joined = row->is_joined;
	if (calls <= *most_calls)
		return;
	*most_calls = calls;
	text_format(then->algorithm, sizeof(then->algorithm), "%s%s%s", row->algorithm,
		    row->protocol[0] ? " " : "", row->protocol);
}

static void find_rows(struct then *then, const struct baseline *baseline,
		      const struct wanted *wanted, bool by_name, bool by_shape, bool is_joined)
{
	double most_calls = -1;

	*then = (struct then){ .is_other_ranks = !by_shape };
	for (size_t i = 0; i < baseline->count; i++) {
		const struct baseline_row *row = &baseline->rows[i];

		if (is_wanted(row, wanted, by_name, is_joined) &&
		    (!by_shape || (row->nranks == wanted->nranks && row->nnodes == wanted->nnodes)))
			add_then(then, row, &most_calls);
	}
}

/* The same name and shape; any name of that shape; the same name, any shape; any at all. */
static struct then find_then(const struct baseline *baseline, const struct wanted *wanted,
			     bool is_joined)
{
	struct then then = { .is_found = false };

	for (int way = 0; way < 4 && !then.is_found; way++)
		find_rows(&then, baseline, wanted, way == 0 || way == 2, way < 2, is_joined);
	return then;
}

static void note_choice(struct slow_cell *cell, const struct job *job, const struct then *then)
{
	char now[48];

	if (cell->algorithm == 0 || then->algorithm[0] == '\0')
		return;
	text_format(now, sizeof(now), "%s %s", job_name(job, OP_NAMES_ALGORITHM, cell->algorithm),
		    job_name(job, OP_NAMES_PROTOCOL, cell->protocol));
	if (strcmp(now, then->algorithm) != 0)
		text_copy(cell->was, sizeof(cell->was), then->algorithm);
}

static void clear(struct slow_cells *cells)
{
	for (size_t i = 0; i < cells->count; i++) {
		cells->list[i].is_compared = cells->list[i].is_slow = cells->list[i].is_send =
			false;
		cells->list[i].was[0] = '\0';
	}
}

static double transfers(const struct slow_cells *cells)
{
	size_t count = 0;

	for (size_t i = 0; i < cells->count; i++)
		count += cells->list[i].is_transfer;
	return count > 0 ? (double)count : 1;
}

/* The quicker ones of many Sends found their receiver waiting: they are transfers alone. */
static void judge_sends(struct slow_cell *cell, const struct then *then)
{
	cell->is_compared = cell->is_send = true;
	cell->is_other_ranks = then->is_other_ranks;
	cell->ratio = cell->ratio_low = cell->ratio_high = cell->p10_ns / then->p10_ns;
	cell->busbw_then = cell->busbw * cell->ratio;
	cell->is_slow = cell->ratio > 1 + sends_that_matter;
	cell->confidence = sends_confidence;
}

static void compare_cell(struct slow_cell *cell, const struct job *job,
			 const struct slow_options *options, double comparisons,
			 struct slow_rows *rows)
{
	const struct job_comm *comm = &job->comms[cell->comm];
	struct wanted wanted = { .comm_name = comm->name,
				 .kind = job_comm_kind_name(comm->kind),
				 .function = job_name(job, OP_NAMES_FUNCTION, cell->function),
				 .nranks = comm->nranks,
				 .nnodes = comm->nnodes };
	double threshold = options->threshold > 0 ? options->threshold : 0.05;
	bool is_send = !cell->is_transfer;
	struct then then;
	double gap;

	op_size_text(wanted.size, sizeof(wanted.size), cell->size_class);
	then = find_then(options->baseline, &wanted, !is_send);
	if (!then.is_found || (is_send && then.p10_ns <= 0) ||
	    (then.is_other_ranks && (then.busbw <= 0 || cell->busbw <= 0))) {
		rows->unmatched++;
		return;
	}
	rows->is_other_ranks |= then.is_other_ranks;
	if (is_send) {
		judge_sends(cell, &then);
		return;
	}
	note_choice(cell, job, &then);
	gap = then.is_other_ranks ? log(then.busbw / cell->busbw) : cell->log_mean - then.log_mean;
	judge(cell, &then, gap, threshold, comparisons);
}

void slow_compare_baseline(struct slow_cells *cells, const struct timeline_report *report,
			   const struct slow_options *options, struct slow_rows *rows)
{
	double comparisons = transfers(cells);

	clear(cells);
	for (size_t i = 0; i < cells->count; i++) {
		struct slow_cell *cell = &cells->list[i];

		if (cell->is_transfer || (cell->function == OP_SEND && cell->size_class > 1 &&
					  cell->calls >= SENDS_LEAST))
			compare_cell(cell, &report->job, options, comparisons, rows);
	}
}

/* ---- measured, or by the data sheet ----------------------------------------------------------- */

void slow_compare_expected(struct slow_cells *cells, const struct timeline_report *report,
			   const struct slow_options *options, struct slow_rows *rows)
{
	double threshold = options->threshold > 0 ? options->threshold : 0.05;

	clear(cells);
	for (size_t i = 0; i < cells->count; i++) {
		struct slow_cell *cell = &cells->list[i];
		int32_t nranks = report->job.comms[cell->comm].nranks;
		struct expected_value value;
		struct then then = { .is_found = true };

		if (!cell->is_transfer || cell->size_class < 2)
			continue;
		if (!expected_find(options->expected, cell->function, cell->bytes, nranks,
				   &value) ||
		    value.busbw <= 0 || cell->busbw <= 0) {
			rows->unmatched++;
			continue;
		}
		then.busbw = value.busbw * 1e9;
		then.is_other_ranks = value.how & EXPECTED_OTHER_RANKS;
		judge(cell, &then, log(then.busbw / cell->busbw), threshold, transfers(cells));
		rows->is_other_ranks |= then.is_other_ranks;
	}
}

/* Of a communicator over nodes: each of a node's ranks has its own way out, and the rings use all of them,
 * until NVLink is what limits. */
static double peak_of(const struct job_comm *comm, const struct slow_options *options)
{
	double peak;

	if (comm->kind == JOB_COMM_NVLINK)
		return options->peak_nvlink;
	if (comm->kind != JOB_COMM_NET && comm->kind != JOB_COMM_MIXED)
		return 0;
	peak = options->peak_network * comm->nranks / (comm->nnodes > 0 ? comm->nnodes : 1);
	if (comm->kind == JOB_COMM_MIXED && options->peak_nvlink > 0)
		peak = fmin(peak, options->peak_nvlink);
	return peak;
}

void slow_compare_peak(struct slow_cells *cells, const struct timeline_report *report,
		       const struct slow_options *options, struct slow_rows *rows)
{
	double threshold = options->threshold > 0 ? options->threshold : 0.05;

	clear(cells);
	for (size_t i = 0; i < cells->count; i++) {
		struct slow_cell *cell = &cells->list[i];
		struct then then = { .busbw = peak_of(&report->job.comms[cell->comm], options) };

		if (!cell->is_transfer || cell->size_class < PEAK_SIZE_LEAST || then.busbw <= 0 ||
		    cell->busbw <= 0) {
			rows->unmatched++;
			continue;
		}
		then.busbw *= share_of_peak;
		judge(cell, &then, log(then.busbw / cell->busbw), threshold, transfers(cells));
	}
}
