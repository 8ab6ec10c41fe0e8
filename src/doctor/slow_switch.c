/*
 * Did NCCL choose another algorithm or protocol from some time on, and a slower one? Sums tell that there are two
 * choices for one kind of call, and how fast each is; one member's operations tell whether one came after the
 * other. Sizes of one class may well be done in different ways all the time: those take turns.
 */
#include <math.h>
#include <stdlib.h>

#include "common/op.h"
#include "common/text.h"
#include "doctor/slow_find.h"

enum { SWITCHES_MAX = 16, MOVES_LEAST = 16 };
static const double errors_apart = 4, other_time = 0.01;

/* What one member did, of two choices. */
struct watching {
	const struct job *job;
	const struct job_seat *seat;
	const struct tally_key *fast;
	const struct tally_key *slow;
	uint64_t last_fast_ns;
	uint64_t first_slow_ns;
};

static bool is_choice(const struct watching *watching, const struct op_record *op,
		      const struct tally_key *key)
{
	size_t process = watching->seat->process;

	return job_name_number(watching->job, process, op->algorithm) == key->algorithm &&
	       job_name_number(watching->job, process, op->protocol) == key->protocol;
}

static bool watch_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct watching *watching = context;

	(void)place;
	if (op->comm != watching->seat->comm_id || op->done_ns == 0 ||
	    job_name_number(watching->job, watching->seat->process, op->function) !=
		    watching->fast->function ||
	    op_size_class(op->bytes) != watching->fast->size_class)
		return true;
	if (is_choice(watching, op, watching->fast) && op->done_ns > watching->last_fast_ns)
		watching->last_fast_ns = op->done_ns;
	if (is_choice(watching, op, watching->slow) &&
	    (watching->first_slow_ns == 0 || op->done_ns < watching->first_slow_ns))
		watching->first_slow_ns = op->done_ns;
	return true;
}

/* When the slow choice took over, in common time; 0: they take turns. */
static uint64_t switched_at(const struct timeline_report *report, const struct tally_row *fast,
			    const struct tally_row *slow)
{
	const struct job *job = &report->job;
	const struct job_comm *comm = &job->comms[fast->key.comm];
	struct watching watching = { .job = job, .fast = &fast->key, .slow = &slow->key };

	if (comm->seat_count == 0)
		return 0;
	watching.seat = &job->seats[comm->seats[0]];
	if (recording_each_op(job->recording->processes[watching.seat->process], watch_op,
			      &watching, NULL) != OK ||
	    watching.last_fast_ns == 0 || watching.first_slow_ns <= watching.last_fast_ns)
		return 0;
	return align_ns(&report->align, watching.seat->process, watching.first_slow_ns);
}

/* ---- two choices of one cell ------------------------------------------------------------------ */

struct pair {
	const struct tally_row *fast;
	const struct tally_row *slow;
	struct baseline_figures fast_is;
	struct baseline_figures slow_is;
};

static struct pair pair_of(const struct timeline_report *report, const struct slow_cell *cell)
{
	const struct tally *table = baseline_table(report);
	struct pair pair = { .fast = NULL };

	for (size_t i = 0; i < table->count; i++) {
		const struct tally_row *row = &table->rows[i];
		struct baseline_figures figures;

		if (row->key.comm != cell->comm || row->key.function != cell->function ||
		    row->key.size_class != cell->size_class || row->moves < MOVES_LEAST)
			continue;
		figures = baseline_figures(report, row);
		if (pair.fast == NULL || figures.log_mean < pair.fast_is.log_mean) {
			pair.fast = row;
			pair.fast_is = figures;
		}
		if (pair.slow == NULL || figures.log_mean > pair.slow_is.log_mean) {
			pair.slow = row;
			pair.slow_is = figures;
		}
	}
	return pair;
}

static bool is_slower(const struct pair *pair, double threshold)
{
	double gap, error;

	if (pair->fast == NULL || pair->fast == pair->slow)
		return false;
	gap = pair->slow_is.log_mean - pair->fast_is.log_mean;
	error = sqrt(pair->slow_is.log_variance / pair->slow_is.samples +
		     pair->fast_is.log_variance / pair->fast_is.samples + other_time * other_time);
	return gap > log(1 + threshold) + errors_apart * error;
}

static struct slow_row row_of(const struct timeline_report *report, const struct slow_cell *cell,
			      const struct pair *pair, uint64_t at_ns)
{
	const struct job *job = &report->job;
	double ratio = exp(pair->slow_is.log_mean - pair->fast_is.log_mean);
	struct slow_row row = { .kind = job->comms[cell->comm].kind,
				.function = cell->function,
				.size_class = cell->size_class,
				.algorithm = pair->slow->key.algorithm,
				.protocol = pair->slow->key.protocol,
				.is_slow = true,
				.comms = 1,
				.comms_slow = 1,
				.comm = cell->comm,
				.is_one_name = true,
				.host = UINT32_MAX,
				.ranks = job->comms[cell->comm].seat_count,
				.before = pair->fast_is.busbw,
				.after = pair->slow_is.busbw,
				.ratio = ratio,
				.ratio_low = ratio,
				.ratio_high = ratio,
				.confidence = 0.99,
				.span = { .from_ns = at_ns } };

	row.lost_ns = pair->slow_is.mean_ns * (double)pair->slow->calls * (1 - 1 / ratio);
	text_format(row.was, sizeof(row.was), "%s %s",
		    job_name(job, OP_NAMES_ALGORITHM, pair->fast->key.algorithm),
		    job_name(job, OP_NAMES_PROTOCOL, pair->fast->key.protocol));
	return row;
}

/* Alike on another communicator: one row for all. */
static bool merge(struct slow_rows *rows, const struct slow_row *row)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct slow_row *before = &rows->list[i];

		if (before->kind != row->kind || before->function != row->function ||
		    before->size_class != row->size_class || before->algorithm != row->algorithm ||
		    before->protocol != row->protocol)
			continue;
		before->comms++;
		before->comms_slow++;
		before->is_one_name = false;
		before->ranks += row->ranks;
		before->lost_ns += row->lost_ns;
		return true;
	}
	return false;
}

void slow_rows_switched(struct slow_rows *rows, const struct timeline_report *report,
			const struct slow_cells *cells, uint32_t group, double threshold)
{
	size_t looked_at = 0;

	for (size_t i = 0; i < cells->count && looked_at < SWITCHES_MAX; i++) {
		const struct slow_cell *cell = &cells->list[i];
		struct slow_row row;
		struct pair pair;
		uint64_t at_ns;

		if (cell->choices < 2 || !cell->is_transfer || rows->count == SLOW_ROWS_MAX ||
		    report->job.comms[cell->comm].group != group)
			continue;
		pair = pair_of(report, cell);
		if (!is_slower(&pair, threshold))
			continue;
		looked_at++;
		at_ns = switched_at(report, pair.fast, pair.slow);
		if (at_ns == 0)
			continue;
		row = row_of(report, cell, &pair, at_ns);
		if (!merge(rows, &row))
			rows->list[rows->count++] = row;
	}
}
