/*
 * Rows are matched by their strings: both tables are sorted by them and walked together.
 *
 * The interval: durations spread over orders of magnitude, so logarithms are compared. Their mean and
 * variance come from the histograms (a duration counts as the midpoint of its bucket; the bucket's width is
 * added to the variance). The number of samples matters: all ranks of one collective are one sample, and
 * calls of one iteration are similar, so at most one per iteration counts; without known iterations, every
 * fourth call.
 */
#include "analysis/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"

enum { PARTS_MAX = 9, CALLS_ALIKE = 4 };
static const double level = 0.05;

/* ---- keys as strings ------------------------------------------------------------------------- */

static void comm_text(char *to, size_t size, const struct job_comm *comm)
{
	if (comm->name[0] != '\0')
		text_copy(to, size, comm->name);
	else
		text_format(to, size, "%d ranks, %d nodes", comm->nranks, comm->nnodes);
}

static void part_text(char *to, size_t size, const struct timeline_report *report,
		      const struct tally_key *key, uint32_t part)
{
	const struct job *job = &report->job;

	switch (part) {
	case TALLY_BY_COMM:
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

/* One side's rows, those with equal strings merged. */
struct texts {
	char key[PARTS_MAX][96];
	struct tally_row row; /* its histogram is owned by us */
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
	for (size_t i = 0; list != NULL && i < count; i++)
		tally_row_release(&list[i].row);
	free(list);
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
		size_t part = 0;

		for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
			if (tally->by & 1u << bit && 1u << bit != TALLY_BY_GROUP)
				part_text(to->key[part++], sizeof(to->key[0]), report,
					  &tally->rows[i].key, 1u << bit);
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
	return status;
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

struct logs {
	double samples; /* effective */
	double mean;
	double variance;
};

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

static struct logs logs_of(const struct timeline_report *report, const struct tally_row *row)
{
	const double width = log(2) / 8;
	const struct iterations *iterations = &report->iterations;
	struct logs logs = { 0 };

	if (row->timed == 0)
		return logs;
	for (unsigned int i = 0; i < row->histogram.used; i++)
		logs.mean += (double)row->histogram.counts[i] *
			     bucket_log(row, row->histogram.first + i) / (double)row->timed;
	for (unsigned int i = 0; i < row->histogram.used; i++) {
		double apart = bucket_log(row, row->histogram.first + i) - logs.mean;

		logs.variance +=
			(double)row->histogram.counts[i] * apart * apart / (double)row->timed;
	}
	logs.variance += width * width / 12;
	logs.samples = (double)row->timed / (double)(row->ranks ? row->ranks : 1);
	if (!iterations->is_found)
		logs.samples /= CALLS_ALIKE;
	else if (logs.samples > (double)iterations->regular)
		logs.samples = (double)iterations->regular;
	return logs;
}

/* Welch's interval of the difference of two means, as ratios; t for probability p on each side. */
static void interval(const struct logs *a, const struct logs *b, double p, double *low,
		     double *high)
{
	double error_a = a->variance / a->samples, error_b = b->variance / b->samples;
	double error = error_a + error_b;
	double freedom =
		error * error /
		(error_a * error_a / (a->samples - 1) + error_b * error_b / (b->samples - 1));
	double reach = stats_student_quantile(p, freedom) * sqrt(error);

	*low = exp(b->mean - a->mean - reach);
	*high = exp(b->mean - a->mean + reach);
}

static void judge_row(struct compare_row *row, const struct logs *a, const struct logs *b,
		      double rows, double threshold)
{
	double low, high;

	row->samples_a = a->samples;
	row->samples_b = b->samples;
	if (a->samples < COMPARE_SAMPLES_LEAST || b->samples < COMPARE_SAMPLES_LEAST)
		return;
	row->has_interval = true;
	row->ratio = exp(b->mean - a->mean);
	interval(a, b, level / 2, &row->ratio_low, &row->ratio_high);
	interval(a, b, level / 2 / rows, &low, &high);
	row->is_significant = low > 1 || high < 1;
	row->is_slower = row->is_significant && row->ratio_low > 1 + threshold;
	row->is_faster = row->is_significant && row->ratio_high < 1 / (1 + threshold);
}

static void fill_row(struct compare_row *row, const struct timeline_report *report_a,
		     const struct tally_row *a, const struct timeline_report *report_b,
		     const struct tally_row *b, double rows, double threshold)
{
	struct logs logs_a, logs_b;

	if (a != NULL)
		row->a = side_of(a);
	if (b != NULL)
		row->b = side_of(b);
	row->median_ratio = ratio_of((double)row->b.median_ns, (double)row->a.median_ns);
	row->mean_ratio = ratio_of(row->b.mean_ns, row->a.mean_ns);
	row->busbw_ratio = ratio_of(row->b.busbw, row->a.busbw);
	if (a == NULL || b == NULL || a->timed == 0 || b->timed == 0)
		return;
	logs_a = logs_of(report_a, a);
	logs_b = logs_of(report_b, b);
	judge_row(row, &logs_a, &logs_b, rows, threshold);
}

static int most_important_first(const void *left, const void *right)
{
	const struct compare_row *a = left, *b = right;
	double weight_a = fabs(a->b.total_ns - a->a.total_ns);
	double weight_b = fabs(b->b.total_ns - b->a.total_ns);

	return ORDER(b->is_significant, a->is_significant) ?:
	       ORDER(weight_b, weight_a) ?:
	       memcmp(a->key, b->key, sizeof(a->key));
}

/* ---------------------------------------------------------------------------------------------- */

static void count_row(struct compare *compare, const struct compare_row *row)
{
	compare->only_a += !row->b.is_there;
	compare->only_b += !row->a.is_there;
	compare->not_timed +=
		row->a.is_there && row->b.is_there && (row->a.timed == 0 || row->b.timed == 0);
	compare->slower += row->is_slower;
	compare->faster += row->is_faster;
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
		fill_row(row, report_a, order <= 0 ? &a[i].row : NULL, report_b,
			 order >= 0 ? &b[j].row : NULL, rows, compare->threshold);
		count_row(compare, row);
		i += order <= 0;
		j += order >= 0;
	}
	qsort(compare->rows, compare->count, sizeof(*compare->rows), most_important_first);
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
		fill_row(&compare->total, a, &a->total, b, &b->total, 1, threshold);
		if (compare->not_timed > 0)
			drop_ratios(&compare->total);
	}
	release_texts(texts_a, count_a);
	release_texts(texts_b, count_b);
	if (status != OK)
		compare_release(compare);
	return status;
}

void compare_release(struct compare *compare)
{
	free(compare->rows);
	*compare = (struct compare){ .rows = NULL };
}
