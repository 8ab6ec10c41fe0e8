/* Files that a job is compared with: baselines, and expected bandwidths. */
#include "cli/cli_input.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/file.h"
#include "common/attributes.h"
#include "common/text.h"
#include "output/report.h"

/* A baseline with the maximum number of rows is smaller. */
enum { FILE_MOST = 64 << 20 };

int baseline_file_read(struct baseline *baseline, const char *path)
{
	enum status status;
	char why[400] = "", *text;
	size_t length;

	text = cli_read_file(path, FILE_MOST, &length);
	if (text == NULL)
		return CLI_EXIT_UNKNOWN;
	status = baseline_read(baseline, text, length, why, sizeof(why));
	free(text);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status == ERR_RANGE)
		return cli_error("%s cannot be used: %s", path, why);
	return status == OK ? 0 : cli_error("%s is not a baseline: %s", path, why);
}

/* Calls per sample: those of one iteration are similar. As in compare.c. */
enum { CALLS_ALIKE = 4 };

/* ---- reading --------------------------------------------------------------------------------- */

/* Old releases of nccl-tests do not print the operation; use the file name if it is that of the program. */
static uint8_t function_of_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return expected_function(name, strcspn(name, "."));
}

static enum diff_expected_found expected_refused(const struct expected *expected, const char *path,
						 enum status status)
{
	if (status == ERR_FORMAT)
		cli_error("%s: no usable expected bandwidth%s%s", path,
			  expected->problem ? ": " : "",
			  expected->problem ? expected->problem : "");
	else
		cli_error("%s: %s", path, status_reason(status));
	return DIFF_EXPECTED_BAD;
}

enum diff_expected_found diff_expected_read(struct expected *expected, const char *path)
{
	enum status status;
	struct stat st;
	int fd;

	if (!file_examine(-1, path, &st) || !S_ISREG(st.st_mode))
		return DIFF_EXPECTED_NOT;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return DIFF_EXPECTED_NOT;
	expected_init(expected);
	status = expected_add_fd(expected, fd, function_of_path(path));
	close(fd);
	if (status == OK) {
		expected_finish(expected);
		return DIFF_EXPECTED_FOUND;
	}
	if (status == ERR_UNKNOWN) {
		expected_release(expected);
		return DIFF_EXPECTED_NOT;
	}
	expected_refused(expected, path, status);
	expected_release(expected);
	return DIFF_EXPECTED_BAD;
}

void diff_expected_warn(const struct expected *expected, const char *path)
{
	if (expected->is_gpu_shared)
		cli_error("%s: its ranks shared a GPU: it shows the bandwidth of local sockets, "
			  "not of links between GPUs",
			  path);
}

uint32_t diff_expected_by(uint32_t by)
{
	by |= TALLY_BY_FUNCTION | TALLY_BY_SIZE;
	return by & TALLY_BY_COMM ? by : by | TALLY_BY_COMM_NAME;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Mean duration, without waiting if that is known. */
static double transfer_ns(const struct timeline_report *run, const struct tally_row *row)
{
	if (row->joined > 0 && row->joined_least_ns > 0 &&
	    run->matches.complete + run->matches.partial > 0)
		return (double)row->joined_least_ns / (double)row->joined;
	return tally_mean_ns(row);
}

static struct compare_side side_of_run(const struct timeline_report *run,
				       const struct tally_row *row)
{
	double faster = tally_mean_ns(row) / transfer_ns(run, row);

	return (struct compare_side){
		.is_there = true,
		.calls = row->calls,
		.open = row->open,
		.timed = row->timed,
		.not_timed = tally_not_timed(row),
		.bytes = row->bytes,
		.sum_ns = row->sum_ns,
		.total_ns = tally_total_ns(row),
		.mean_ns = transfer_ns(run, row),
		.median_ns = tally_quantile_ns(row, 0.5),
		.p99_ns = row->timed >= TALLY_P99_LEAST ? tally_quantile_ns(row, 0.99) : 0,
		.algbw = tally_algbw(row) * faster,
		.busbw = tally_busbw(row) * faster,
		.wait_ns = row->wait_ns,
		.wait_share = tally_total_ns(row) > 0
				      ? tally_total_wait_ns(row) / tally_total_ns(row)
				      : 0,
		.joined = row->joined,
	};
}

static struct compare_side side_of_value(const struct expected_value *value)
{
	return (struct compare_side){
		.is_there = true,
		.timed = 1,
		.mean_ns = value->time_ns,
		.median_ns = (uint64_t)value->time_ns,
		.algbw = value->algbw * 1e9,
		.busbw = value->busbw * 1e9,
	};
}

/*
 * The interval follows from the spread of the run alone; the expectation counts as exact. The spread includes waiting
 * and is wider than that of transfers, so the interval is conservative.
 */
static void judge_row(struct compare_row *row, const struct tally_row *from, int32_t nranks,
		      double threshold)
{
	double samples = (double)from->timed / (nranks > 0 ? nranks : 1) / CALLS_ALIKE;
	double ratio = row->b.mean_ns / row->a.mean_ns;
	double relative = tally_deviation_ns(from) / tally_mean_ns(from) / sqrt(samples);
	/* Student's t at 95%, accurate enough from five samples on. */
	double factor = 1 + (2 + 3 / samples) * relative;

	row->mean_ratio = ratio;
	row->median_ratio = (double)row->b.median_ns / (double)row->a.median_ns;
	row->busbw_ratio = row->a.busbw > 0 ? row->b.busbw / row->a.busbw : 0;
	row->has_interval = samples >= COMPARE_SAMPLES_LEAST && isfinite(factor);
	if (!row->has_interval)
		return;
	row->ratio = ratio;
	row->ratio_low = ratio / factor;
	row->ratio_high = ratio * factor;
	row->samples_a = row->samples_b = samples;
	row->is_significant = row->ratio_low > 1 || row->ratio_high < 1;
	row->is_slower = row->ratio_low > 1 + threshold;
	row->is_faster = row->ratio_high < 1 / (1 + threshold);
}

static bool make_row(struct compare_row *row, const struct timeline_report *run,
		     const struct tally_row *from, const struct expected *expected,
		     double threshold, bool is_run_first)
{
	const struct job_comm *comm = &run->job.comms[from->key.comm];
	struct expected_value value;
	char text[REPORT_KEY_TEXT];
	size_t part = 0;

	if (from->timed == 0 || from->calls == from->unknown_size ||
	    !expected_find(expected, from->key.function,
			   from->bytes / (from->calls - from->unknown_size), comm->nranks, &value))
		return false;
	*row = (struct compare_row){ .a = side_of_value(&value), .b = side_of_run(run, from) };
	for (unsigned int bit = 0; bit < TALLY_BYS && part < ARRAY_LENGTH(row->key); bit++)
		if (run->custom[0].by & 1u << bit)
			text_copy(row->key[part++], sizeof(row->key[0]),
				  report_key_text(run, &from->key, bit, text));
	if (is_run_first) {
		struct compare_side side = row->a;

		row->a = row->b;
		row->b = side;
	}
	row->basis = from->joined > 0 ? COMPARE_TRANSFER : COMPARE_DURATION;
	judge_row(row, from, comm->nranks, threshold);
	return true;
}

static int by_importance(const void *left, const void *right)
{
	const struct compare_row *a = left, *b = right;
	double a_ns = fabs(log(a->mean_ratio)) * (a->a.total_ns + a->b.total_ns);
	double b_ns = fabs(log(b->mean_ratio)) * (b->a.total_ns + b->b.total_ns);

	if (a->has_interval != b->has_interval)
		return a->has_interval ? -1 : 1;
	return ORDER(b_ns, a_ns);
}

enum status diff_expected_make(struct compare *compare, const struct timeline_report *run,
			       const struct expected *expected, double threshold, bool is_run_first,
			       size_t *left_out)
{
	const struct tally *tally = &run->custom[0];

	*compare = (struct compare){ .by = tally->by, .threshold = threshold };
	*left_out = 0;
	compare->rows = calloc(tally->count + 1, sizeof(*compare->rows));
	if (compare->rows == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < tally->count; i++) {
		struct compare_row *row = &compare->rows[compare->count];

		if (!make_row(row, run, &tally->rows[i], expected, threshold, is_run_first)) {
			++*left_out;
			continue;
		}
		compare->count++;
		compare->slower += row->is_slower;
		compare->faster += row->is_faster;
		compare->judged += row->has_interval;
	}
	compare->judged_share = 1; /* of what was measured */
	qsort(compare->rows, compare->count, sizeof(*compare->rows), by_importance);
	return OK;
}
