/*
 * Rows are matched by their strings: both tables are sorted by them and walked together.
 *
 * Durations spread over orders of magnitude, so logarithms are compared. Waiting depends on the compute
 * between calls and hides a change of the network or of NVLink: where ranks can be matched, transfers without
 * waiting are compared, by parts of the recording (struct paces). Otherwise mean and variance come from histograms:
 * all ranks of one call are one sample, and calls of one iteration are similar, so at most one per iteration
 * counts; without known iterations, every fourth call.
 */
#include "analysis/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "analysis/timeline_report.h"
#include "common/attributes.h"
#include "common/nccl_interface.h"
#include "common/op.h"
#include "common/text.h"

enum { PARTS_MAX = 9, CALLS_ALIKE = 4, COMPARED_SOURCES = 3 };
/* Index of struct texts.transfers: what is alike is compared with what is alike. */
enum { BY_GPU, BY_TOOL, BY_WIRE };
static const double level = 0.05, other_run = 0.01;
static const double bucket_width = 0.0866; /* of a histogram: log(2) / 8 */

const char *compare_basis_name(enum compare_basis basis)
{
	static const char *const names[COMPARE_BASES] = {
		[COMPARE_NOTHING] = "nothing",	   [COMPARE_TRANSFER] = "transfer",
		[COMPARE_FASTEST] = "fastest 10%", [COMPARE_DURATION] = "duration",
		[COMPARE_BANDWIDTH] = "bandwidth", [COMPARE_WIRE] = "wire",
	};

	return names[basis];
}

/* ---- the comparison -------------------------------------------------------------------------- */

static double freedom_of(const struct compare_sample *a, const struct compare_sample *b)
{
	double square_a = a->error * a->error, square_b = b->error * b->error, freedom = 0;

	if (a->samples > 1)
		freedom += square_a * square_a / (a->samples - 1);
	if (b->samples > 1)
		freedom += square_b * square_b / (b->samples - 1);
	return freedom > 0 ? fmax(1, (square_a + square_b) * (square_a + square_b) / freedom) : 1e6;
}

struct compare_result compare_judge(const struct compare_sample *a, const struct compare_sample *b,
				    double threshold, double comparisons)
{
	double error = sqrt(a->error * a->error + b->error * b->error + other_run * other_run);
	double freedom = freedom_of(a, b), gap = b->mean - a->mean;
	double reach = stats_student_quantile(level / 2, freedom) * error;
	double far = stats_student_quantile(level / 2 / fmax(1, comparisons), freedom) * error;
	struct compare_result result = { .ratio = exp(gap),
					 .ratio_low = exp(gap - reach),
					 .ratio_high = exp(gap + reach),
					 .is_significant = fabs(gap) > far };

	result.is_slower = gap > far && result.ratio_low > 1 + threshold;
	result.is_faster = gap < -far && result.ratio_high < 1 / (1 + threshold);
	result.confidence = 1 - fmin(1, stats_student((gap - log(1 + threshold)) / error, freedom) *
						comparisons);
	return result;
}

static struct compare_sample sample_of(const struct stats_sample *from)
{
	return (struct compare_sample){ from->mean, from->error, (double)from->count };
}

/* What is typical, and the mean of everything: a network that is slow for a while changes the second only. */
struct pace_samples {
	struct compare_sample typical;
	struct compare_sample mean;
};

static struct pace_samples samples_of(const struct pace_series *series)
{
	struct stats_sample typical = pace_typical(series), mean = pace_mean(series);

	return (struct pace_samples){ sample_of(&typical), sample_of(&mean) };
}

/* By what is typical, unless the mean shows a slowdown that this does not: for part of the time. */
static struct compare_result judge_samples(const struct pace_samples *a,
					   const struct pace_samples *b, double threshold,
					   double comparisons)
{
	struct compare_result result =
		compare_judge(&a->typical, &b->typical, threshold, comparisons);

	if (result.ratio > 1 + threshold || b->mean.mean - a->mean.mean <= log(1 + threshold))
		return result;
	result = compare_judge(&a->mean, &b->mean, threshold, comparisons);
	result.is_mean = true;
	return result;
}

static double shown_time(const struct pace_samples *samples, const struct compare_result *result)
{
	return exp(result->is_mean ? samples->mean.mean : samples->typical.mean);
}

/* ---- keys as strings ------------------------------------------------------------------------- */

static void comm_text(char *to, size_t size, const struct job_comm *comm)
{
	if (comm->name[0] != '\0')
		text_copy(to, size, comm->name);
	else
		text_format(to, size, "%d ranks, %d nodes", comm->nranks, comm->nnodes);
}

/* Unnamed communicators of one shape differ by their ranks. */
static void first_rank_text(char *to, size_t size, const struct job *job,
			    const struct job_comm *comm)
{
	if (comm->name[0] == '\0' && comm->seat_count > 0)
		text_append(to, size, ", from rank %s",
			    job->ranks[job->seats[comm->seats[0]].rank].label);
}

static void part_text(char *to, size_t size, const struct timeline_report *report,
		      const struct tally_key *key, uint32_t part)
{
	const struct job *job = &report->job;

	switch (part) {
	case TALLY_BY_COMM:
		comm_text(to, size, &job->comms[key->comm]);
		first_rank_text(to, size, job, &job->comms[key->comm]);
		break;
	case TALLY_BY_COMM_NAME:
		comm_text(to, size, &job->comms[key->comm]);
		break;
	case TALLY_BY_KIND:
		text_copy(to, size, job_comm_kind_name((enum job_comm_kind)key->kind));
		break;
	case TALLY_BY_FUNCTION:
		text_copy(to, size, job_name(job, OP_NAMES_FUNCTION, key->function));
		break;
	case TALLY_BY_SIZE:
		op_size_text(to, size, key->size_class);
		break;
	case TALLY_BY_DATATYPE:
		text_copy(to, size, job_name(job, OP_NAMES_DATATYPE, key->datatype));
		break;
	case TALLY_BY_ALGORITHM:
		text_copy(to, size, job_name(job, OP_NAMES_ALGORITHM, key->algorithm));
		break;
	case TALLY_BY_PROTOCOL:
		text_copy(to, size, job_name(job, OP_NAMES_PROTOCOL, key->protocol));
		break;
	case TALLY_BY_RANK:
		text_copy(to, size, job->ranks[key->rank].label);
		break;
	case TALLY_BY_HOST:
		text_copy(to, size, job->hosts[key->host].name);
		break;
	case TALLY_BY_TAG:
		text_format(to, size, "%" PRIu64, key->tag);
		break;
	case TALLY_BY_SOURCE:
		text_copy(to, size, op_time_source_name(key->source));
		break;
	default:
		text_copy(to, size, "");
		break;
	}
}

/* The transfers of a row: of one source of time. */
struct transfers {
	struct pace_series series;
	uint64_t moves;
	double least_ns;
	double bytes;
	uint64_t sized;
	int32_t nranks_least; /* of its communicators */
	int32_t nranks_most;
	int32_t nnodes_most;
	double bus_factor; /* of the largest */
	/* Transfers of a tree are not those of a ring: their times on the wire are not compared. */
	uint8_t algorithm;
	uint8_t protocol;
	bool has_choices;
};

/* One side's rows, those with equal strings merged. */
struct texts {
	char key[PARTS_MAX][96];
	struct tally_row row;			       /* its histogram is owned by us */
	struct transfers *transfers[COMPARED_SOURCES]; /* NULL: none */
};

static int by_text(const void *left, const void *right)
{
	const struct texts *a = left, *b = right;

	for (size_t i = 0; i < PARTS_MAX; i++) {
		int order = strcmp(a->key[i], b->key[i]);

		if (order != 0)
			return order;
	}
	return 0;
}

static void release_texts(struct texts *list, size_t count)
{
	for (size_t i = 0; list != NULL && i < count; i++) {
		tally_row_release(&list[i].row);
		for (unsigned int k = 0; k < COMPARED_SOURCES; k++)
			free(list[i].transfers[k]);
	}
	free(list);
}

static void key_texts(char key[PARTS_MAX][96], const struct timeline_report *report, uint32_t by,
		      const struct tally_key *from)
{
	size_t part = 0;

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
		if (by & 1u << bit && 1u << bit != TALLY_BY_GROUP)
			part_text(key[part++], sizeof(key[0]), report, from, 1u << bit);
}

static bool is_comm_shown(const struct timeline_report *report, uint32_t comm)
{
	const struct job_comm *of = &report->job.comms[comm];

	for (uint32_t i = 0; i < of->seat_count; i++)
		if (report->ranks[report->job.seats[of->seats[i]].rank].is_shown)
			return true;
	return false;
}

static void add_cell(struct transfers *to, const struct pace_cell *cell,
		     const struct job_comm *comm)
{
	if (to->moves == 0 || comm->nranks < to->nranks_least)
		to->nranks_least = comm->nranks;
	if (comm->nranks > to->nranks_most) {
		to->nranks_most = comm->nranks;
		to->bus_factor = op_bus_factor(cell->key.function, comm->nranks);
	}
	if (comm->nnodes > to->nnodes_most)
		to->nnodes_most = comm->nnodes;
	if (to->moves == 0) {
		to->algorithm = cell->key.algorithm;
		to->protocol = cell->key.protocol;
	}
	to->has_choices |=
		to->algorithm != cell->key.algorithm || to->protocol != cell->key.protocol;
	pace_add(&to->series, &cell->series);
	to->moves += cell->moves;
	to->least_ns += cell->least_ns;
	to->bytes += cell->bytes;
	to->sized += cell->sized;
}

/* A rank's or a host's row has no transfers of its own: they are those of all ranks. */
static enum status add_transfers(const struct timeline_report *report, uint32_t by,
				 struct texts *list, size_t count)
{
	static const struct texts no_texts;

	if (by & (TALLY_BY_RANK | TALLY_BY_HOST))
		return OK;
	for (size_t i = 0; i < report->paces.cell_count; i++) {
		const struct pace_cell *cell = &report->paces.cells[i];
		struct texts wanted = no_texts, *to;
		struct transfers **slot;

		if (!is_comm_shown(report, cell->key.comm))
			continue;
		key_texts(wanted.key, report, by, &cell->key);
		to = bsearch(&wanted, list, count, sizeof(*list), by_text);
		if (to == NULL)
			continue;
		slot = &to->transfers[op_source_is_gpu(cell->key.source) ? BY_GPU
				      : op_is_duration(cell->key.source) ? BY_TOOL
									 : BY_WIRE];
		if (*slot == NULL)
			*slot = calloc(1, sizeof(**slot));
		if (*slot == NULL)
			return ERR_NO_SPACE;
		add_cell(*slot, cell, &report->job.comms[cell->key.comm]);
	}
	return OK;
}

/* Sends are not matched: their links have the time on the wire. Without durations it stands for all sizes of a row. */
static enum status add_links(const struct timeline_report *report, uint32_t by, struct texts *list,
			     size_t count)
{
	if (by & (TALLY_BY_RANK | TALLY_BY_HOST) || !(by & TALLY_BY_FUNCTION))
		return OK;
	for (size_t i = 0; i < count; i++) {
		struct texts *to = &list[i];

		for (size_t s = 0; s < report->paces.sender_count && to->row.timed == 0 &&
				   to->row.key.function == OP_SEND;
		     s++) {
			const struct pace_sender *sender = &report->paces.senders[s];
			const struct job_comm *comm = &report->job.comms[sender->comm];
			struct tally_key key = to->row.key;
			struct texts wanted = { .row = { .calls = 0 } };

			if (sender->to == -1 || !is_comm_shown(report, sender->comm))
				continue;
			key.comm = sender->comm;
			key.kind = (uint8_t)comm->kind;
			key_texts(wanted.key, report, by, &key);
			if (by_text(&wanted, to) != 0)
				continue;
			if (to->transfers[BY_WIRE] == NULL)
				to->transfers[BY_WIRE] = calloc(1, sizeof(**to->transfers));
			if (to->transfers[BY_WIRE] == NULL)
				return ERR_NO_SPACE;
			pace_add(&to->transfers[BY_WIRE]->series, &sender->series);
			to->transfers[BY_WIRE]->nranks_least = to->transfers[BY_WIRE]->nranks_most =
				comm->nranks;
			to->transfers[BY_WIRE]->nnodes_most = comm->nnodes;
		}
	}
	return OK;
}

static enum status make_texts(const struct timeline_report *report, const struct tally *tally,
			      struct texts **list, size_t *count)
{
	enum status status = OK;
	size_t kept = 0;

	*count = 0;
	*list = calloc(tally->count + 1, sizeof(**list));
	if (*list == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < tally->count && status == OK; i++) {
		struct texts *to = &(*list)[i];

		key_texts(to->key, report, tally->by, &tally->rows[i].key);
		to->row.key = tally->rows[i].key;
		status = tally_merge(&to->row, &tally->rows[i]);
		(*count)++;
	}
	qsort(*list, *count, sizeof(**list), by_text);
	for (size_t i = 0; i < *count && status == OK; i++) {
		struct texts *last = &(*list)[kept];

		if (kept < i && by_text(last, &(*list)[i]) == 0) {
			status = tally_merge(&last->row, &(*list)[i].row);
			tally_row_release(&(*list)[i].row);
		} else if (i > 0) {
			(*list)[++kept] = (*list)[i];
			if (kept != i)
				(*list)[i].row.histogram = (struct tally_histogram){ NULL, 0, 0 };
		}
	}
	if (status == OK && *count > 0)
		*count = kept + 1;
	if (status == OK)
		status = add_transfers(report, tally->by, *list, *count);
	return status == OK ? add_links(report, tally->by, *list, *count) : status;
}

/* ---- values ---------------------------------------------------------------------------------- */

static double ratio_of(double b, double a)
{
	return a > 0 && b > 0 ? b / a : 0;
}

static struct compare_side side_of(const struct tally_row *row)
{
	return (struct compare_side){
		.is_there = true,
		.calls = row->calls,
		.open = row->open,
		.timed = row->timed,
		.not_timed = tally_not_timed(row),
		.bytes = row->bytes,
		.sum_ns = row->sum_ns,
		.total_ns = tally_total_ns(row),
		.mean_ns = tally_mean_ns(row),
		.median_ns = tally_quantile_ns(row, 0.5),
		.p99_ns = row->timed >= TALLY_P99_LEAST ? tally_quantile_ns(row, 0.99) : 0,
		.algbw = tally_algbw(row),
		.busbw = tally_busbw(row),
		.wait_ns = row->wait_ns,
		.wait_share = ratio_of(tally_total_wait_ns(row), tally_total_ns(row)),
		.joined = row->joined
	};
}

static double bucket_log(const struct tally_row *row, unsigned int bucket)
{
	double upper = (double)histogram_upper_ns(bucket);
	double lower = bucket > 0 ? (double)histogram_upper_ns(bucket - 1) : 1;

	if (lower < (double)row->min_ns)
		lower = (double)row->min_ns;
	if (upper > (double)row->max_ns || bucket == HISTOGRAM_BUCKETS - 1)
		upper = (double)row->max_ns;
	return (log(lower > 1 ? lower : 1) + log(upper > 1 ? upper : 1)) / 2;
}

static double effective_samples(const struct timeline_report *report, const struct tally_row *row)
{
	const struct iterations *iterations = &report->iterations;
	double samples = (double)row->timed / (double)(row->ranks ? row->ranks : 1);

	if (!iterations->is_found)
		return samples / CALLS_ALIKE;
	return samples > (double)iterations->regular ? (double)iterations->regular : samples;
}

/* The mean of all durations, with waiting. */
static struct compare_sample duration_sample(const struct timeline_report *report,
					     const struct tally_row *row)
{
	double samples = effective_samples(report, row), mean = 0, variance = 0;

	for (unsigned int i = 0; i < row->histogram.used; i++)
		mean += (double)row->histogram.counts[i] *
			bucket_log(row, row->histogram.first + i) / (double)row->timed;
	for (unsigned int i = 0; i < row->histogram.used; i++) {
		double apart = bucket_log(row, row->histogram.first + i) - mean;

		variance += (double)row->histogram.counts[i] * apart * apart / (double)row->timed;
	}
	variance += bucket_width * bucket_width / 12;
	return (struct compare_sample){ mean, samples > 0 ? sqrt(variance / samples) : 0, samples };
}

/* The logarithm of a quantile, interpolated in its bucket. */
static double quantile_log(const struct tally_row *row, double q)
{
	double wanted = q * (double)row->timed, before = 0;

	for (unsigned int i = 0; i < row->histogram.used; i++) {
		double here = (double)row->histogram.counts[i];

		if (before + here >= wanted && here > 0)
			return bucket_log(row, row->histogram.first + i) +
			       bucket_width * ((wanted - before) / here - 0.5);
		before += here;
	}
	return log((double)(row->max_ns ? row->max_ns : 1));
}

/* Where in its bucket a quantile lies is unknown: that is most of its error. */
static struct compare_sample fastest_sample(const struct timeline_report *report,
					    const struct tally_row *row)
{
	const double q = 0.1;
	double samples = effective_samples(report, row);
	double reach = samples > 0 ? sqrt(q * (1 - q) / samples) : q;
	double spread =
		(quantile_log(row, q + fmin(reach, q)) - quantile_log(row, q - fmin(reach, q))) / 2;

	return (struct compare_sample){ quantile_log(row, q),
					sqrt(bucket_width * bucket_width / 12 + spread * spread),
					samples };
}

static bool is_send_or_recv(const struct texts *texts, uint32_t by)
{
	return by & TALLY_BY_FUNCTION &&
	       (texts->row.key.function == OP_SEND || texts->row.key.function == OP_RECV);
}

static bool is_enough(const struct transfers *transfers)
{
	return transfers != NULL && pace_mean(&transfers->series).count >= PACE_BLOCKS_LEAST;
}

static bool is_same_choice(const struct transfers *a, const struct transfers *b)
{
	return !a->has_choices && !b->has_choices && a->algorithm == b->algorithm &&
	       a->protocol == b->protocol;
}

/* Times of one kind, that both sides have: the GPU's if possible. -1: none. Time on the wire only where neither is timed. */
static int common_source(const struct texts *a, const struct texts *b)
{
	bool is_timed = a->row.timed > 0 || b->row.timed > 0;

	for (int i = is_timed ? BY_GPU : BY_WIRE; i < (is_timed ? BY_WIRE : COMPARED_SOURCES); i++)
		if (is_enough(a->transfers[i]) && is_enough(b->transfers[i]) &&
		    (i != BY_WIRE || is_same_choice(a->transfers[i], b->transfers[i])))
			return i;
	return -1;
}

static bool is_same_shape(const struct transfers *a, const struct transfers *b)
{
	return a->nranks_least == b->nranks_least && a->nranks_most == b->nranks_most &&
	       a->nnodes_most == b->nnodes_most;
}

static double transfer_busbw(const struct transfers *transfers)
{
	if (transfers->sized == 0 || transfers->least_ns <= 0)
		return 0;
	return transfers->bytes / (double)transfers->sized * transfers->bus_factor /
	       (transfers->least_ns / (double)transfers->moves) * 1e9;
}

/* What another tool measured on the host has waiting in it. */
static void fill_transfers(struct compare_row *row, const struct transfers *a,
			   const struct transfers *b, int source, struct pace_samples samples[2])
{
	bool is_gpu = source == BY_GPU;

	samples[0] = samples_of(&a->series);
	samples[1] = samples_of(&b->series);
	row->basis = is_gpu		 ? COMPARE_TRANSFER
		     : source == BY_WIRE ? COMPARE_WIRE
					 : COMPARE_DURATION;
	row->a.transfer_ns = exp(samples[0].typical.mean);
	row->b.transfer_ns = exp(samples[1].typical.mean);
	if (is_gpu && a->nranks_least == a->nranks_most)
		row->a.transfer_busbw = transfer_busbw(a);
	if (is_gpu && b->nranks_least == b->nranks_most)
		row->b.transfer_busbw = transfer_busbw(b);
	if (is_same_shape(a, b))
		return;
	/* With more ranks the same message takes longer; per byte on the bus it should not. */
	row->basis = COMPARE_BANDWIDTH;
	if (row->a.transfer_busbw > 0 && row->b.transfer_busbw > 0)
		samples[1].typical.mean = samples[0].typical.mean +
					  log(row->a.transfer_busbw / row->b.transfer_busbw);
	else
		samples[0].typical.samples = 0;
	samples[0].mean = samples[0].typical;
	samples[1].mean = samples[1].typical;
}

static void fill_samples(struct compare_row *row, const struct timeline_report *report_a,
			 const struct texts *a, const struct timeline_report *report_b,
			 const struct texts *b, uint32_t by, struct pace_samples samples[2])
{
	int source = common_source(a, b);

	if (source >= 0) {
		fill_transfers(row, a->transfers[source], b->transfers[source], source, samples);
		return;
	}
	if (a->row.timed == 0 || b->row.timed == 0)
		return;
	if (is_send_or_recv(a, by)) {
		row->basis = COMPARE_FASTEST;
		samples[0].typical = fastest_sample(report_a, &a->row);
		samples[1].typical = fastest_sample(report_b, &b->row);
	} else {
		row->basis = COMPARE_DURATION;
		samples[0].typical = duration_sample(report_a, &a->row);
		samples[1].typical = duration_sample(report_b, &b->row);
	}
	samples[0].mean = samples[0].typical;
	samples[1].mean = samples[1].typical;
	row->a.transfer_ns = exp(samples[0].typical.mean);
	row->b.transfer_ns = exp(samples[1].typical.mean);
}

static void judge_row(struct compare_row *row, const struct pace_samples samples[2], double rows,
		      double threshold)
{
	struct compare_result result;

	row->samples_a = samples[0].typical.samples;
	row->samples_b = samples[1].typical.samples;
	if (row->samples_a < COMPARE_SAMPLES_LEAST || row->samples_b < COMPARE_SAMPLES_LEAST)
		return;
	result = judge_samples(&samples[0], &samples[1], threshold, rows);
	row->has_interval = true;
	row->ratio = result.ratio;
	row->ratio_low = result.ratio_low;
	row->ratio_high = result.ratio_high;
	if (row->basis == COMPARE_BANDWIDTH)
		return;
	row->a.transfer_ns = shown_time(&samples[0], &result);
	row->b.transfer_ns = shown_time(&samples[1], &result);
	row->is_significant = result.is_significant;
	row->is_slower = result.is_slower;
	row->is_faster = result.is_faster;
	row->is_undecided = !row->is_slower && row->ratio > 1 + threshold &&
			    row->basis != COMPARE_DURATION && row->share >= COMPARE_SHARE_LEAST;
}

static double moving_ns(const struct tally_row *row)
{
	return fmax(0, tally_total_ns(row) - tally_total_wait_ns(row));
}

static double share_of(const struct tally_row *row, const struct timeline_report *report)
{
	double all = moving_ns(&report->total);

	return row != NULL && all > 0 ? fmin(1, moving_ns(row) / all) : 0;
}

/* Time is unknown of what was not timed, bytes are not. */
static double bytes_share(const struct tally_row *row, const struct timeline_report *report)
{
	return report->total.bytes > 0 ? (double)row->bytes / (double)report->total.bytes : 0;
}

static void fill_ratios(struct compare_row *row)
{
	row->median_ratio = ratio_of((double)row->b.median_ns, (double)row->a.median_ns);
	row->mean_ratio = ratio_of(row->b.mean_ns, row->a.mean_ns);
	row->busbw_ratio = ratio_of(row->b.busbw, row->a.busbw);
}

static void fill_row(struct compare_row *row, const struct timeline_report *report_a,
		     const struct texts *a, const struct timeline_report *report_b,
		     const struct texts *b, const struct compare *compare, double rows)
{
	struct pace_samples samples[2] = { 0 };

	if (a != NULL)
		row->a = side_of(&a->row);
	if (b != NULL)
		row->b = side_of(&b->row);
	fill_ratios(row);
	if (a == NULL || b == NULL)
		return;
	if (a->row.timed > 0 && b->row.timed > 0)
		row->share = fmax(share_of(&a->row, report_a), share_of(&b->row, report_b));
	fill_samples(row, report_a, a, report_b, b, compare->by, samples);
	if (row->basis == COMPARE_WIRE)
		row->share = fmax(bytes_share(&a->row, report_a), bytes_share(&b->row, report_b));
	judge_row(row, samples, rows, compare->threshold);
}

/* Everything in one row, with waiting: shown, not judged. */
static void fill_total(struct compare_row *row, const struct timeline_report *a,
		       const struct timeline_report *b)
{
	struct compare_sample samples[2];
	struct compare_result result;

	row->a = side_of(&a->total);
	row->b = side_of(&b->total);
	fill_ratios(row);
	if (a->total.timed == 0 || b->total.timed == 0)
		return;
	row->basis = COMPARE_DURATION;
	row->share = 1;
	samples[0] = duration_sample(a, &a->total);
	samples[1] = duration_sample(b, &b->total);
	row->samples_a = samples[0].samples;
	row->samples_b = samples[1].samples;
	if (row->samples_a < COMPARE_SAMPLES_LEAST || row->samples_b < COMPARE_SAMPLES_LEAST)
		return;
	result = compare_judge(&samples[0], &samples[1], 0, 1);
	row->has_interval = true;
	row->ratio = result.ratio;
	row->ratio_low = result.ratio_low;
	row->ratio_high = result.ratio_high;
	row->is_significant = result.is_significant;
}

static int most_important_first(const void *left, const void *right)
{
	const struct compare_row *a = left, *b = right;
	double weight_a = a->share * (a->has_interval ? fabs(log(a->ratio)) : 0);
	double weight_b = b->share * (b->has_interval ? fabs(log(b->ratio)) : 0);

	return ORDER(b->is_slower, a->is_slower) ?:
	       ORDER(b->is_undecided, a->is_undecided) ?:
	       ORDER(b->is_significant, a->is_significant) ?:
	       ORDER(weight_b, weight_a) ?:
	       ORDER(b->a.total_ns + b->b.total_ns, a->a.total_ns + a->b.total_ns) ?:
	       memcmp(a->key, b->key, sizeof(a->key));
}

/* ---------------------------------------------------------------------------------------------- */

static void count_row(struct compare *compare, const struct compare_row *row)
{
	compare->only_a += !row->b.is_there;
	compare->only_b += !row->a.is_there;
	compare->not_timed += row->a.is_there && row->b.is_there && row->basis != COMPARE_WIRE &&
			      (row->a.timed == 0 || row->b.timed == 0);
	compare->slower += row->is_slower;
	compare->faster += row->is_faster;
	compare->undecided += row->is_undecided;
	compare->judged += row->has_interval && row->basis != COMPARE_BANDWIDTH;
}

static void walk_together(struct compare *compare, const struct timeline_report *report_a,
			  const struct texts *a, size_t count_a,
			  const struct timeline_report *report_b, const struct texts *b,
			  size_t count_b)
{
	double rows = (double)(count_a > count_b ? count_a : count_b);
	size_t i = 0, j = 0;

	while (i < count_a || j < count_b) {
		struct compare_row *row = &compare->rows[compare->count++];
		int order = i == count_a ? 1 : j == count_b ? -1 : by_text(&a[i], &b[j]);

		memcpy(row->key, order <= 0 ? a[i].key : b[j].key, sizeof(row->key));
		fill_row(row, report_a, order <= 0 ? &a[i] : NULL, report_b,
			 order >= 0 ? &b[j] : NULL, compare, rows);
		count_row(compare, row);
		if (row->has_interval && row->basis != COMPARE_BANDWIDTH)
			compare->judged_share += bytes_share(&b[j].row, report_b);
		i += order <= 0;
		j += order >= 0;
	}
	qsort(compare->rows, compare->count, sizeof(*compare->rows), most_important_first);
}

/* ---- senders --------------------------------------------------------------------------------- */

/* One side's sender. */
struct sender_text {
	char comm[96];
	char from[64];
	char to[64];
	char host[64];
	int32_t nranks;
	int32_t nnodes;
	uint8_t size_class;
	struct pace_series series;
};

static int by_sender(const void *left, const void *right)
{
	const struct sender_text *a = left, *b = right;

	return strcmp(a->comm, b->comm) ?:
	       strcmp(a->from, b->from) ?:
	       strcmp(a->to, b->to) ?:
	       ORDER(a->nranks, b->nranks) ?:
	       ORDER(a->nnodes, b->nnodes) ?:
	       ORDER(a->size_class, b->size_class);
}

static void sender_text(struct sender_text *to, const struct timeline_report *report,
			const struct pace_sender *from)
{
	const struct job *job = &report->job;
	const struct job_comm *comm = &job->comms[from->comm];
	const struct job_rank *rank = &job->ranks[job->seats[from->seat].rank];
	uint32_t receiver = from->to >= 0 ? job_member(job, comm, from->to) : UINT32_MAX;

	*to = (struct sender_text){ .nranks = comm->nranks,
				    .nnodes = comm->nnodes,
				    .size_class = from->size_class,
				    .series = from->series };
	comm_text(to->comm, sizeof(to->comm), comm);
	text_copy(to->from, sizeof(to->from), rank->label);
	text_copy(to->host, sizeof(to->host), job->hosts[rank->host].name);
	if (receiver != UINT32_MAX)
		text_copy(to->to, sizeof(to->to), job->ranks[job->seats[receiver].rank].label);
	else if (from->to >= 0)
		text_format(to->to, sizeof(to->to), "#%" PRId32, from->to);
}

static enum status make_senders(const struct timeline_report *report, struct sender_text **list,
				size_t *count)
{
	size_t kept = 0;

	*count = 0;
	*list = calloc(report->paces.sender_count + 1, sizeof(**list));
	if (*list == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < report->paces.sender_count; i++) {
		const struct pace_sender *from = &report->paces.senders[i];

		if (report->ranks[report->job.seats[from->seat].rank].is_shown)
			sender_text(&(*list)[(*count)++], report, from);
	}
	qsort(*list, *count, sizeof(**list), by_sender);
	for (size_t i = 1; i < *count; i++) {
		if (by_sender(&(*list)[kept], &(*list)[i]) == 0)
			pace_add(&(*list)[kept].series, &(*list)[i].series);
		else
			(*list)[++kept] = (*list)[i];
	}
	*count = *count > 0 ? kept + 1 : 0;
	return OK;
}

static void add_sender(struct compare *compare, const struct sender_text *a,
		       const struct sender_text *b, double comparisons)
{
	struct compare_sender *to = &compare->senders[compare->sender_count];
	struct pace_samples sample_a = samples_of(&a->series), sample_b = samples_of(&b->series);

	if (sample_a.typical.samples < PACE_BLOCKS_LEAST ||
	    sample_b.typical.samples < PACE_BLOCKS_LEAST)
		return;
	*to = (struct compare_sender){ .result = judge_samples(&sample_a, &sample_b,
							       compare->threshold, comparisons) };
	to->wire_a_ns = shown_time(&sample_a, &to->result);
	to->wire_b_ns = shown_time(&sample_b, &to->result);
	text_copy(to->comm, sizeof(to->comm), a->comm);
	text_copy(to->from, sizeof(to->from), a->from);
	text_copy(to->to, sizeof(to->to), a->to);
	text_copy(to->host_a, sizeof(to->host_a), a->host);
	text_copy(to->host_b, sizeof(to->host_b), b->host);
	compare->senders_slower += to->result.is_slower;
	compare->senders_faster += to->result.is_faster;
	to->is_undecided = !to->result.is_slower && to->result.is_significant &&
			   to->result.ratio > 1 + compare->threshold;
	compare->senders_undecided += to->is_undecided;
	compare->sender_count++;
}

static int slowest_first(const void *left, const void *right)
{
	const struct compare_sender *a = left, *b = right;

	return ORDER(b->result.is_slower, a->result.is_slower) ?:
	       ORDER(b->result.ratio, a->result.ratio) ?:
	       strcmp(a->comm, b->comm) ?:
	       strcmp(a->from, b->from) ?:
	       strcmp(a->to, b->to);
}

static enum status compare_senders(struct compare *compare, const struct timeline_report *a,
				   const struct timeline_report *b)
{
	struct sender_text *list_a = NULL, *list_b = NULL;
	size_t count_a = 0, count_b = 0, i = 0, j = 0;
	enum status status = make_senders(a, &list_a, &count_a);

	if (status == OK)
		status = make_senders(b, &list_b, &count_b);
	if (status == OK) {
		compare->senders = calloc(count_a + 1, sizeof(*compare->senders));
		status = compare->senders ? OK : ERR_NO_SPACE;
	}
	while (status == OK && i < count_a && j < count_b) {
		int order = by_sender(&list_a[i], &list_b[j]);

		if (order == 0)
			add_sender(compare, &list_a[i], &list_b[j], (double)count_a);
		i += order <= 0;
		j += order >= 0;
	}
	if (status == OK)
		qsort(compare->senders, compare->sender_count, sizeof(*compare->senders),
		      slowest_first);
	free(list_a);
	free(list_b);
	return status;
}

/* ---- the job --------------------------------------------------------------------------------- */

/* Regular iterations, in parts of equally many. */
static struct pace_samples iteration_samples(const struct iterations *iterations, bool is_busy)
{
	struct pace_series series = { .count = { 0 } };
	size_t regular = 0, count = is_busy ? iterations->timed : iterations->regular;

	for (size_t i = 0; i < iterations->count && regular < count; i++) {
		const struct iteration *iteration = &iterations->list[i];
		uint64_t ns =
			is_busy ? iteration->busy_ns : iteration->end_ns - iteration->start_ns;
		size_t block = regular * PACE_BLOCKS / count;

		if (iteration->is_odd || (is_busy && iteration->timed < iteration->ops))
			continue;
		regular++;
		if (ns == 0)
			continue;
		series.count[block]++;
		series.log_sum[block] += log((double)ns);
	}
	return samples_of(&series);
}

static void compare_iterations(struct compare_value *value, const struct timeline_report *a,
			       const struct timeline_report *b, bool is_busy, double threshold)
{
	struct pace_samples sample_a, sample_b;

	/* Of another pattern, iterations are something else. */
	if (!a->iterations.is_found || !b->iterations.is_found ||
	    a->iterations.period_ops != b->iterations.period_ops)
		return;
	sample_a = iteration_samples(&a->iterations, is_busy);
	sample_b = iteration_samples(&b->iterations, is_busy);
	if (sample_a.typical.samples < 1 || sample_b.typical.samples < 1)
		return;
	value->is_known = true;
	value->result = judge_samples(&sample_a, &sample_b, threshold, 1);
	value->a = shown_time(&sample_a, &value->result);
	value->b = shown_time(&sample_b, &value->result);
	value->has_interval = sample_a.typical.samples >= PACE_BLOCKS_LEAST &&
			      sample_b.typical.samples >= PACE_BLOCKS_LEAST;
}

static void compare_exposed(struct compare_exposed *exposed, const struct timeline_report *a,
			    const struct timeline_report *b, double threshold)
{
	const struct iterations *from = &a->iterations, *to = &b->iterations;

	if (!from->is_found || !to->is_found || from->period_ops != to->period_ops ||
	    from->exposed == 0 || to->exposed == 0)
		return;
	*exposed = (struct compare_exposed){
		.is_known = true,
		.a_low_ns = from->exposed_low_ns,
		.a_high_ns = from->exposed_high_ns,
		.b_low_ns = to->exposed_low_ns,
		.b_high_ns = to->exposed_high_ns,
		.is_more = (double)to->exposed_low_ns >
			   (double)from->exposed_high_ns * (1 + threshold),
		.is_less = (double)from->exposed_low_ns >
			   (double)to->exposed_high_ns * (1 + threshold),
	};
}

/* Waiting as a share of all ranks' time, and how it varies over the recording. False: unknown. */
static bool waiting_sample(const struct timeline_report *report, struct compare_sample *sample)
{
	double values[PACE_BLOCKS], all = 0;
	struct stats_sample mean;
	size_t count = 0;

	if (report->gpu_hours <= 0 || report->matches.complete + report->matches.partial == 0)
		return false;
	for (unsigned int i = 0; i < PACE_BLOCKS; i++)
		if (report->paces.wait_calls[i] > 0) {
			values[count] = report->paces.wait_ns[i] / report->paces.wait_calls[i];
			all += values[count++];
		}
	mean = stats_batches(values, count);
	sample->mean = report->gpu_hours_waited / report->gpu_hours;
	sample->error = all > 0 ? mean.error * (double)count / all * sample->mean : 0;
	sample->samples = (double)mean.count;
	return count > 0;
}

static void compare_waiting(struct compare_value *value, const struct timeline_report *a,
			    const struct timeline_report *b, double threshold)
{
	struct compare_sample sample_a, sample_b;

	if (!waiting_sample(a, &sample_a) || !waiting_sample(b, &sample_b))
		return;
	value->is_known = true;
	value->a = sample_a.mean;
	value->b = sample_b.mean;
	value->has_interval =
		sample_a.samples >= PACE_BLOCKS_LEAST && sample_b.samples >= PACE_BLOCKS_LEAST;
	value->result = compare_judge(&sample_a, &sample_b, threshold, 1);
}

static void compare_job(struct compare *compare, const struct timeline_report *a,
			const struct timeline_report *b)
{
	compare_iterations(&compare->iteration, a, b, false, compare->threshold);
	compare_iterations(&compare->communication, a, b, true, compare->threshold);
	compare_exposed(&compare->exposed, a, b, compare->threshold);
	compare_waiting(&compare->waiting, a, b, compare->threshold);
	/* Waiting may hide behind compute: where iterations are known, they decide. */
	compare->is_job_slower =
		compare->iteration.has_interval
			? compare->iteration.result.is_slower
			: compare->waiting.has_interval && compare->waiting.result.is_slower;
}

/* ---- differences ----------------------------------------------------------------------------- */

static enum status add_difference(struct compare *compare, const char *what, const char *a,
				  const char *b)
{
	struct compare_difference *to;

	if (strcmp(a, b) == 0)
		return OK;
	if (!list_grow(&compare->differences, compare->difference_count,
		       sizeof(*compare->differences)))
		return ERR_NO_SPACE;
	to = &compare->differences[compare->difference_count++];
	text_copy(to->what, sizeof(to->what), what);
	text_copy(to->a, sizeof(to->a), a[0] ? a : "unknown");
	text_copy(to->b, sizeof(to->b), b[0] ? b : "unknown");
	return OK;
}

static enum status add_counts(struct compare *compare, const char *what, size_t a, size_t b)
{
	char text_a[24], text_b[24];

	text_format(text_a, sizeof(text_a), "%zu", a);
	text_format(text_b, sizeof(text_b), "%zu", b);
	return add_difference(compare, what, text_a, text_b);
}

static void releases(const struct recording *recording, char *to, size_t size)
{
	uint32_t found = 0;

	to[0] = '\0';
	for (size_t p = 0; p < recording->count; p++)
		if (recording->processes[p]->interface <= OP_INTERFACES)
			found |= 1u << recording->processes[p]->interface;
	for (unsigned int i = 1; i <= OP_INTERFACES; i++)
		if (found & 1u << i)
			text_append(to, size, "%s%s", to[0] ? ", " : "", op_interface_releases(i));
}

/* Algorithms and protocols of a function: those of at least one call in twenty. */
static void choices(const struct timeline_report *report, const char *function, char *to,
		    size_t size)
{
	const struct tally *table = &report->by_algorithm;
	uint64_t calls = 0;

	to[0] = '\0';
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(job_name(&report->job, OP_NAMES_FUNCTION, table->rows[i].key.function),
			   function) == 0)
			calls += table->rows[i].calls;
	for (size_t i = 0; i < table->count; i++) {
		const struct tally_row *row = &table->rows[i];

		if (strcmp(job_name(&report->job, OP_NAMES_FUNCTION, row->key.function),
			   function) != 0 ||
		    row->calls * 20 < calls || row->key.algorithm == 0)
			continue;
		text_append(to, size, "%s%s %s", to[0] ? ", " : "",
			    job_name(&report->job, OP_NAMES_ALGORITHM, row->key.algorithm),
			    job_name(&report->job, OP_NAMES_PROTOCOL, row->key.protocol));
	}
}

/* The channels that most collectives of the first process used, by function. */
struct channels {
	uint64_t calls[256][256]; /* [function][channels] */
	const struct job *job;
};

static bool count_channels(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct channels *channels = context;

	(void)place;
	for (uint32_t i = 0; i < batch->rows; i++) {
		uint8_t function = job_name_number(
			channels->job, 0, (uint8_t)op_kind_names(batch->column[OP_WORD_KIND][i]));

		channels->calls[function][(uint8_t)(batch->column[OP_WORD_STATE][i] >> 48)]++;
	}
	return true;
}

static struct channels *channels_new(const struct timeline_report *report)
{
	struct channels *channels = calloc(1, sizeof(*channels));

	if (channels == NULL)
		return NULL;
	channels->job = &report->job;
	/* What cannot be read was reported when the report was made. */
	if (report->recording->count > 0)
		recording_each_batch(report->recording->processes[0],
				     OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_STATE),
				     count_channels, channels, NULL);
	return channels;
}

static void channels_text(const struct channels *channels, uint8_t function, char *to, size_t size)
{
	unsigned int most = 0;

	for (unsigned int i = 1; i < 256; i++)
		if (channels->calls[function][i] > channels->calls[function][most] || most == 0)
			most = i;
	to[0] = '\0';
	if (channels->calls[function][most] > 0)
		text_format(to, size, "%u", most);
}

static enum status compare_functions(struct compare *compare, const struct timeline_report *a,
				     const struct timeline_report *b)
{
	struct channels *channels_a = channels_new(a), *channels_b = channels_new(b);
	enum status status = channels_a && channels_b ? OK : ERR_NO_SPACE;

	for (size_t i = 0; i < a->by_function.count && status == OK; i++)
		for (size_t j = 0; j < b->by_function.count && status == OK; j++) {
			uint8_t number_a = a->by_function.rows[i].key.function;
			uint8_t number_b = b->by_function.rows[j].key.function;
			const char *name = job_name(&a->job, OP_NAMES_FUNCTION, number_a);
			char what[64], text_a[96], text_b[96];

			if (strcmp(name, job_name(&b->job, OP_NAMES_FUNCTION, number_b)) != 0)
				continue;
			choices(a, name, text_a, sizeof(text_a));
			choices(b, name, text_b, sizeof(text_b));
			text_format(what, sizeof(what), "algorithm and protocol of %s", name);
			status = add_difference(compare, what, text_a, text_b);
			channels_text(channels_a, number_a, text_a, sizeof(text_a));
			channels_text(channels_b, number_b, text_b, sizeof(text_b));
			text_format(what, sizeof(what), "channels of %s", name);
			if (status == OK && text_a[0] && text_b[0])
				status = add_difference(compare, what, text_a, text_b);
		}
	free(channels_a);
	free(channels_b);
	return status;
}

static enum status find_differences(struct compare *compare, const struct timeline_report *a,
				    const struct timeline_report *b)
{
	char text_a[96], text_b[96];
	enum status status;

	releases(a->recording, text_a, sizeof(text_a));
	releases(b->recording, text_b, sizeof(text_b));
	status = add_difference(compare, "NCCL release", text_a, text_b);
	if (status == OK)
		status = add_counts(compare, "ranks", a->job.known_ranks, b->job.known_ranks);
	if (status == OK)
		status = add_counts(compare, "hosts", a->job.host_count, b->job.host_count);
	if (status == OK)
		status = add_counts(compare, "communicators", a->job.comm_count, b->job.comm_count);
	if (status == OK && a->iterations.is_found && b->iterations.is_found)
		status = add_counts(compare, "operations per iteration", a->iterations.period_ops,
				    b->iterations.period_ops);
	return status == OK ? compare_functions(compare, a, b) : status;
}

/* ---------------------------------------------------------------------------------------------- */

enum compare_answer compare_answer(const struct compare *compare)
{
	const struct compare_value *iteration = &compare->iteration;

	if (compare->slower + compare->senders_slower > 0 || compare->is_job_slower)
		return COMPARE_SLOWER;
	if (compare->judged == 0 || compare->undecided + compare->senders_undecided > 0)
		return COMPARE_UNKNOWN;
	if (iteration->has_interval && iteration->result.is_significant &&
	    iteration->result.ratio > 1 + compare->threshold)
		return COMPARE_UNKNOWN;
	/* An iteration includes what was not timed. */
	if (iteration->has_interval && iteration->result.ratio_high <= 1 + compare->threshold)
		return COMPARE_SAME;
	return compare->judged_share >= 0.5 ? COMPARE_SAME : COMPARE_UNKNOWN;
}

/* The sides have different kinds of calls timed: totals cannot be compared. */
static void drop_ratios(struct compare_row *row)
{
	row->median_ratio = row->mean_ratio = row->busbw_ratio = 0;
	row->has_interval = row->is_significant = row->is_slower = row->is_faster = false;
	row->ratio = row->ratio_low = row->ratio_high = 0;
}

enum status compare_make(struct compare *compare, const struct timeline_report *a,
			 const struct timeline_report *b, double threshold)
{
	struct texts *texts_a = NULL, *texts_b = NULL;
	size_t count_a = 0, count_b = 0;
	enum status status;

	*compare = (struct compare){ .threshold = threshold };
	if (a->custom_count == 0 || b->custom_count == 0 || a->custom[0].by != b->custom[0].by ||
	    __builtin_popcount(a->custom[0].by & ~(unsigned int)TALLY_BY_GROUP) > PARTS_MAX)
		return ERR_RANGE;
	compare->by = a->custom[0].by;
	status = make_texts(a, &a->custom[0], &texts_a, &count_a);
	if (status == OK)
		status = make_texts(b, &b->custom[0], &texts_b, &count_b);
	if (status == OK) {
		compare->rows = calloc(count_a + count_b + 1, sizeof(*compare->rows));
		status = compare->rows ? OK : ERR_NO_SPACE;
	}
	if (status == OK) {
		walk_together(compare, a, texts_a, count_a, b, texts_b, count_b);
		fill_total(&compare->total, a, b);
		if (compare->not_timed > 0)
			drop_ratios(&compare->total);
		compare_job(compare, a, b);
		status = compare_senders(compare, a, b);
	}
	if (status == OK)
		status = find_differences(compare, a, b);
	release_texts(texts_a, count_a);
	release_texts(texts_b, count_b);
	if (status != OK)
		compare_release(compare);
	return status;
}

void compare_release(struct compare *compare)
{
	free(compare->rows);
	free(compare->senders);
	free(compare->differences);
	*compare = (struct compare){ .rows = NULL };
}
