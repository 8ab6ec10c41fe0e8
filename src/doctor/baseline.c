/*
 * Rows of the report are per communicator; here those of one name and shape are one. Moments of logarithms
 * add up, so several communicators, and several runs, are one sample.
 */
#include "doctor/doctor.h"
#include "doctor/slow_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "analysis/timeline_report.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "import/json_scan.h"

/* Calls per sample if iterations are unknown, as in compare.c. */
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

/* ---- values of a row ------------------------------------------------------------------------- */

/* As many independent calls of that spread as give the error of the mean over time. */
static double samples_over_time(const struct timeline_report *report, const struct tally_row *row,
				double log_variance)
{
	struct pace_series series;
	struct stats_sample mean;

	if (!pace_find(&report->paces, &row->key, &series))
		return 0;
	mean = pace_mean(&series);
	if (mean.count < PACE_BLOCKS_LEAST)
		return 0;
	return fmin((double)row->moves,
		    mean.error > 0 ? log_variance / (mean.error * mean.error) : (double)row->moves);
}

static double effective_samples(const struct timeline_report *report, double calls)
{
	if (!report->iterations.is_found)
		return calls / CALLS_ALIKE;
	return calls < (double)report->iterations.regular ? calls
							  : (double)report->iterations.regular;
}

/* Durations by bucket: represented by its midpoint. */
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

/* Without durations: the time on the wire of a transfer of the fastest sender, over time. */
static void wire_figures(const struct timeline_report *report, const struct tally_row *row,
			 struct baseline_figures *figures)
{
	struct pace_series series;
	struct stats_sample mean;

	if (!pace_find(&report->paces, &row->key, &series) && row->key.function != OP_SEND)
		return;
	/* Sends are not matched: all their links, of any size. */
	for (size_t i = 0; i < report->paces.sender_count && row->key.function == OP_SEND; i++)
		if (report->paces.senders[i].comm == row->key.comm &&
		    report->paces.senders[i].to != -1)
			pace_add(&series, &report->paces.senders[i].series);
	mean = pace_mean(&series);
	if (mean.count < PACE_BLOCKS_LEAST)
		return;
	for (unsigned int i = 0; i < PACE_BLOCKS; i++)
		figures->samples += series.count[i];
	figures->is_wire = true;
	figures->log_mean = mean.mean;
	figures->log_variance = mean.error * mean.error * figures->samples;
}

struct baseline_figures baseline_figures(const struct timeline_report *report,
					 const struct tally_row *row)
{
	struct baseline_figures figures = { .busbw = tally_busbw(row),
					    .mean_ns = tally_mean_ns(row) };
	double count = (double)row->moves;

	if (row->timed == 0) {
		if (row->by_source[OP_TIME_PROXY] > 0)
			wire_figures(report, row, &figures);
		return figures;
	}
	figures.is_gpu = tally_gpu_timed(row) * 10 >= row->timed * 9;
	figures.is_joined =
		row->moves > 0 && row->joined * 2 >= row->timed && row->joined_least_ns > 0;
	if (!figures.is_joined) {
		logs_of_calls(row, &figures);
		figures.samples = effective_samples(
			report, (double)row->timed / (double)(row->ranks ? row->ranks : 1));
		return figures;
	}
	figures.busbw *= (double)row->joined_ns / (double)row->joined_least_ns;
	figures.mean_ns = (double)row->joined_least_ns / (double)row->joined;
	figures.log_mean = row->move_log_sum / count;
	figures.log_variance =
		fmax(0, row->move_log_squares / count - figures.log_mean * figures.log_mean);
	figures.samples = samples_over_time(report, row, figures.log_variance);
	if (figures.samples <= 0)
		figures.samples = effective_samples(report, count);
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
				     .is_wire = figures.is_wire,
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

	return strcmp(a->comm_name, b->comm_name) ?:
	       strcmp(a->kind, b->kind) ?:
	       strcmp(a->function, b->function) ?:
	       strcmp(a->size, b->size) ?:
	       strcmp(a->algorithm, b->algorithm) ?:
	       strcmp(a->protocol, b->protocol) ?:
	       ORDER(a->nranks, b->nranks) ?:
	       ORDER(a->nnodes, b->nnodes) ?:
	       ORDER(a->is_joined, b->is_joined) ?:
	       ORDER(a->is_wire, b->is_wire);
}

static double weighted_mean(double a, double weight_a, double b, double weight_b)
{
	return weight_a + weight_b > 0 ? (a * weight_a + b * weight_b) / (weight_a + weight_b) : a;
}

/* Merges two samples: the difference of their means is part of the spread. */
static void add_row(struct baseline_row *to, const struct baseline_row *from)
{
	double a = to->samples, b = from->samples;
	double calls_a = (double)to->calls, calls_b = (double)from->calls;
	double mean = weighted_mean(to->log_mean, a, from->log_mean, b);
	double variance_a = to->log_deviation * to->log_deviation +
			    (to->log_mean - mean) * (to->log_mean - mean);
	double variance_b = from->log_deviation * from->log_deviation +
			    (from->log_mean - mean) * (from->log_mean - mean);

	to->log_deviation = sqrt(weighted_mean(variance_a, a, variance_b, b));
	to->log_mean = mean;
	to->busbw = weighted_mean(to->busbw, calls_a, from->busbw, calls_b);
	to->mean_ns = weighted_mean(to->mean_ns, calls_a, from->mean_ns, calls_b);
	to->median_ns = weighted_mean(to->median_ns, calls_a, from->median_ns, calls_b);
	to->p10_ns = weighted_mean(to->p10_ns, calls_a, from->p10_ns, calls_b);
	to->wire_ns = weighted_mean(to->wire_ns, calls_a, from->wire_ns, calls_b);
	to->consume_ns = weighted_mean(to->consume_ns, calls_a, from->consume_ns, calls_b);
	to->channels = weighted_mean(to->channels, calls_a, from->channels, calls_b);
	to->p99_ns = to->p99_ns > from->p99_ns ? to->p99_ns : from->p99_ns;
	/* Ranks of similar communicators do the same at the same time: they are not further samples. */
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

/* The value of "durations": without it a file may have network spans among them. */
static const char durations_of_now[] = "gpu";

static void fill_head(struct baseline *baseline, const struct timeline_report *report)
{
	const struct tally_row *total = &report->total;

	text_copy(baseline->durations, sizeof(baseline->durations), durations_of_now);
	baseline->jobs = (uint32_t)report->job.group_count;
	baseline->ranks = (uint32_t)report->job.known_ranks;
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

static void fill_rows(struct baseline *baseline, const struct timeline_report *report,
		      const struct slow_cells *cells)
{
	const struct tally *table = baseline_table(report);

	for (size_t i = 0; i < table->count; i++) {
		const struct tally_key *key = &table->rows[i].key;
		const struct slow_cell *cell =
			slow_cells_find(cells, key->comm, key->function, key->size_class);
		struct baseline_row *row = &baseline->rows[baseline->count];

		fill_row(row, report, &table->rows[i]);
		if (table->rows[i].timed == 0 && !row->is_wire)
			continue;
		row->wire_ns = cell ? cell->wire_ns : 0;
		row->consume_ns = cell ? cell->consume_ns : 0;
		row->channels = cell ? cell->channels : 0;
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

/*
 * Reads a baseline file. Strict: a known key has the right type and range, or the file is rejected with
 * what and where. Unknown keys are skipped, so that a later version may add some.
 */

struct reading {
	struct json_scan scan;
	const char *text;
	struct baseline *baseline;
	bool has_format;
	bool has_version;
	bool has_rows;
	enum status status;
	char *why;
	size_t why_size;
};

static size_t line_of(const struct reading *reading)
{
	size_t line = 1, end = json_scan_offset(&reading->scan);

	for (size_t i = 0; i < end; i++)
		line += reading->text[i] == '\n';
	return line;
}

/* Only the first failure is reported. */
static bool baseline_refuse(struct reading *reading, enum status status, const char *what,
			    const char *key)
{
	if (reading->status != OK)
		return false;
	reading->status = status;
	text_format(reading->why, reading->why_size, "line %zu, byte %zu: %s%s%s%s",
		    line_of(reading), json_scan_offset(&reading->scan), key, *key ? ": " : "", what,
		    status == ERR_VERSION ? ""
		    : status == ERR_RANGE ? "; save it again with 'ringside baseline save'"
					  : "; recreate it with 'ringside baseline save'");
	return false;
}

static bool refuse_scan(struct reading *reading)
{
	return baseline_refuse(reading, ERR_FORMAT,
			       reading->scan.problem ? reading->scan.problem : "not a JSON object",
			       "");
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Wrong type, unless it is not JSON at all. */
static bool refuse_kind(struct reading *reading, const char *what, const char *key)
{
	return reading->scan.problem ? refuse_scan(reading)
				     : baseline_refuse(reading, ERR_FORMAT, what, key);
}

static bool take_text(struct reading *reading, const char *key, char *to, size_t size)
{
	if (json_scan_next(&reading->scan) != JSON_SCAN_STRING)
		return refuse_kind(reading, "is not a string", key);
	if (!json_scan_text(&reading->scan, to, size))
		return baseline_refuse(reading, ERR_FORMAT, "is too long", key);
	for (char *at = to; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return baseline_refuse(reading, ERR_FORMAT, "has control characters", key);
	return true;
}

static bool take_count(struct reading *reading, const char *key, uint64_t most, uint64_t *to)
{
	uint64_t value;

	if (json_scan_next(&reading->scan) != JSON_SCAN_NUMBER ||
	    !json_scan_unsigned(&reading->scan, &value))
		return refuse_kind(reading, "is not a non-negative integer", key);
	if (value > most)
		return baseline_refuse(reading, ERR_FORMAT, "is too large", key);
	*to = value;
	return true;
}

static bool take_figure(struct reading *reading, const char *key, double most, double *to)
{
	double value;

	if (json_scan_next(&reading->scan) != JSON_SCAN_NUMBER ||
	    !json_scan_double(&reading->scan, &value))
		return refuse_kind(reading, "is not a number", key);
	if (!(value >= 0) || value > most)
		return baseline_refuse(reading, ERR_FORMAT, "is out of range", key);
	*to = value;
	return true;
}

static bool take_bool(struct reading *reading, const char *key, bool *to)
{
	enum json_scan_token token = json_scan_next(&reading->scan);

	if (token != JSON_SCAN_TRUE && token != JSON_SCAN_FALSE)
		return refuse_kind(reading, "is not true or false", key);
	*to = token == JSON_SCAN_TRUE;
	return true;
}

/* ---- a table of fields ----------------------------------------------------------------------- */

enum field_type { FIELD_TEXT, FIELD_COUNT, FIELD_COUNT32, FIELD_FIGURE, FIELD_BOOL };

struct field {
	const char *key;
	enum field_type type;
	size_t offset;
	size_t size; /* of a string */
	double most; /* of a number */
	bool is_needed;
};

enum { FIELDS_MAX = 32 };
static const double time_most = 1e18, rate_most = 1e18, log_most = 100, calls_most = 1e18;

static bool take_field(struct reading *reading, const struct field *field, void *object)
{
	void *to = (char *)object + field->offset;
	uint64_t count = 0;
	double figure = 0;

	switch (field->type) {
	case FIELD_TEXT:
		return take_text(reading, field->key, to, field->size);
	case FIELD_COUNT:
		return take_count(reading, field->key, (uint64_t)field->most, to);
	case FIELD_COUNT32:
		if (!take_count(reading, field->key, (uint64_t)field->most, &count))
			return false;
		memcpy(to, &(uint32_t){ (uint32_t)count }, sizeof(uint32_t));
		return true;
	case FIELD_FIGURE:
		if (!take_figure(reading, field->key, field->most, &figure))
			return false;
		memcpy(to, &figure, sizeof(figure));
		return true;
	case FIELD_BOOL:
		return take_bool(reading, field->key, to);
	}
	return false;
}

static const struct field *find_field(const struct json_scan *scan, const struct field *fields,
				      size_t count, size_t *place)
{
	for (size_t i = 0; i < count; i++)
		if (json_scan_is(scan, fields[i].key)) {
			*place = i;
			return &fields[i];
		}
	return NULL;
}

/* The rest of an object whose '{' was read. */
static bool take_object(struct reading *reading, const struct field *fields, size_t count,
			void *object)
{
	bool has[FIELDS_MAX] = { false };
	enum json_scan_token token;
	size_t place = 0;

	while ((token = json_scan_next(&reading->scan)) == JSON_SCAN_KEY) {
		const struct field *field = find_field(&reading->scan, fields, count, &place);

		if (field == NULL) {
			if (!json_scan_skip(&reading->scan))
				return refuse_scan(reading);
			continue;
		}
		if (has[place])
			return baseline_refuse(reading, ERR_FORMAT, "is given twice", field->key);
		has[place] = true;
		if (!take_field(reading, field, object))
			return false;
	}
	if (token != JSON_SCAN_OBJECT_END)
		return refuse_scan(reading);
	for (size_t i = 0; i < count; i++)
		if (fields[i].is_needed && !has[i])
			return baseline_refuse(reading, ERR_FORMAT, "is missing", fields[i].key);
	return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define ROW(member) offsetof(struct baseline_row, member)
#define ROW_TEXT(member) ROW(member), sizeof(((struct baseline_row *)NULL)->member)

static const struct field row_fields[] = {
	{ "comm_name", FIELD_TEXT, ROW_TEXT(comm_name), 0, true },
	{ "kind", FIELD_TEXT, ROW_TEXT(kind), 0, true },
	{ "function", FIELD_TEXT, ROW_TEXT(function), 0, true },
	{ "size", FIELD_TEXT, ROW_TEXT(size), 0, true },
	{ "algorithm", FIELD_TEXT, ROW_TEXT(algorithm), 0, true },
	{ "protocol", FIELD_TEXT, ROW_TEXT(protocol), 0, true },
	{ "nranks", FIELD_COUNT32, ROW(nranks), 0, INT32_MAX, true },
	{ "nnodes", FIELD_COUNT32, ROW(nnodes), 0, INT32_MAX, true },
	{ "calls", FIELD_COUNT, ROW(calls), 0, calls_most, true },
	{ "communicators", FIELD_COUNT, ROW(comms), 0, calls_most, false },
	{ "is_joined", FIELD_BOOL, ROW(is_joined), 0, 0, true },
	{ "busbw_bytes_per_second", FIELD_FIGURE, ROW(busbw), 0, rate_most, true },
	{ "mean_ns", FIELD_FIGURE, ROW(mean_ns), 0, time_most, true },
	{ "median_ns", FIELD_FIGURE, ROW(median_ns), 0, time_most, true },
	{ "p10_ns", FIELD_FIGURE, ROW(p10_ns), 0, time_most, true },
	{ "p99_ns", FIELD_FIGURE, ROW(p99_ns), 0, time_most, true },
	{ "wire_ns", FIELD_FIGURE, ROW(wire_ns), 0, time_most, false },
	{ "consume_ns", FIELD_FIGURE, ROW(consume_ns), 0, time_most, false },
	{ "channels", FIELD_FIGURE, ROW(channels), 0, 255, false },
	{ "log_mean", FIELD_FIGURE, ROW(log_mean), 0, log_most, true },
	{ "log_deviation", FIELD_FIGURE, ROW(log_deviation), 0, log_most, true },
	{ "samples", FIELD_FIGURE, ROW(samples), 0, calls_most, true },
	/* Of rows without durations; they come after those above and take their place. */
	{ "wire_log_mean", FIELD_FIGURE, ROW(log_mean), 0, log_most, false },
	{ "wire_log_deviation", FIELD_FIGURE, ROW(log_deviation), 0, log_most, false },
	{ "wire_samples", FIELD_FIGURE, ROW(samples), 0, calls_most, false },
};
_Static_assert(ARRAY_LENGTH(row_fields) <= FIELDS_MAX, "more fields than take_object() knows");

static struct baseline_row *new_row(struct reading *reading)
{
	struct baseline *baseline = reading->baseline;

	if (baseline->count == BASELINE_ROWS_MAX) {
		baseline_refuse(reading, ERR_FORMAT, "more rows than a baseline can have", "rows");
		return NULL;
	}
	if (!list_grow(&baseline->rows, baseline->count, sizeof(*baseline->rows))) {
		reading->status = ERR_NO_SPACE;
		return NULL;
	}
	baseline->rows[baseline->count] = (struct baseline_row){ .comms = 1 };
	return &baseline->rows[baseline->count];
}

static bool take_rows(struct reading *reading)
{
	enum json_scan_token token = json_scan_next(&reading->scan);

	if (token != JSON_SCAN_ARRAY)
		return refuse_kind(reading, "is not a list", "rows");
	while ((token = json_scan_next(&reading->scan)) == JSON_SCAN_OBJECT) {
		struct baseline_row *row = new_row(reading);

		if (row == NULL || !take_object(reading, row_fields, ARRAY_LENGTH(row_fields), row))
			return false;
		row->is_wire = row->mean_ns <= 0;
		reading->baseline->count++;
	}
	if (token != JSON_SCAN_ARRAY_END)
		return refuse_kind(reading, "contains something other than objects", "rows");
	reading->has_rows = true;
	return true;
}

/* ---- the file -------------------------------------------------------------------------------- */

#define HEAD(member) offsetof(struct baseline, member)

static const struct field head_fields[] = {
	{ "job", FIELD_TEXT, HEAD(job), sizeof(((struct baseline *)NULL)->job), 0, false },
	{ "durations", FIELD_TEXT, HEAD(durations), sizeof(((struct baseline *)NULL)->durations), 0,
	  false },
	{ "jobs", FIELD_COUNT32, HEAD(jobs), 0, UINT32_MAX, false },
	{ "ranks", FIELD_COUNT32, HEAD(ranks), 0, UINT32_MAX, false },
	{ "recorded_until_wall_ns", FIELD_COUNT, HEAD(saved_wall_ns), 0, 18e18, false },
	{ "wait_share", FIELD_FIGURE, HEAD(wait_share), 0, 1, false },
	{ "iterations", FIELD_COUNT, HEAD(iterations), 0, calls_most, false },
	{ "iteration_operations", FIELD_COUNT32, HEAD(iteration_ops), 0, UINT32_MAX, false },
	{ "iteration_median_ns", FIELD_FIGURE, HEAD(iteration_ns), 0, time_most, false },
	{ "iteration_busy_median_ns", FIELD_FIGURE, HEAD(iteration_busy_ns), 0, time_most, false },
};

static bool take_format(struct reading *reading)
{
	char format[32];

	if (!take_text(reading, "format", format, sizeof(format)))
		return false;
	if (strcmp(format, "ringside-baseline") != 0)
		return baseline_refuse(reading, ERR_FORMAT, "is not \"ringside-baseline\"",
				       "format");
	reading->has_format = true;
	return true;
}

static bool take_version(struct reading *reading)
{
	uint64_t version;

	if (!take_count(reading, "version", UINT64_MAX, &version))
		return false;
	if (version == 0)
		return baseline_refuse(reading, ERR_FORMAT, "0 is not a valid version", "version");
	if (version > BASELINE_VERSION)
		return baseline_refuse(reading, ERR_VERSION,
				       "written by a newer ringside: use that version", "version");
	reading->has_version = true;
	return true;
}

static bool take_key(struct reading *reading)
{
	size_t place;
	const struct field *field =
		find_field(&reading->scan, head_fields, ARRAY_LENGTH(head_fields), &place);

	if (json_scan_is(&reading->scan, "format"))
		return take_format(reading);
	if (!reading->has_format)
		return baseline_refuse(reading, ERR_FORMAT, "does not begin with \"format\"",
				       "not a baseline");
	if (json_scan_is(&reading->scan, "version"))
		return take_version(reading);
	if (!reading->has_version)
		return baseline_refuse(reading, ERR_FORMAT, "is not the second key", "version");
	if (json_scan_is(&reading->scan, "rows"))
		return reading->has_rows
			       ? baseline_refuse(reading, ERR_FORMAT, "is given twice", "rows")
			       : take_rows(reading);
	if (field != NULL)
		return take_field(reading, field, reading->baseline);
	return json_scan_skip(&reading->scan) || refuse_scan(reading);
}

/* Written before spans were separated from durations, with operations that went over the network. */
static bool may_have_spans(const struct baseline *baseline)
{
	bool has_network = false;

	for (size_t i = 0; i < baseline->count; i++)
		has_network |= baseline->rows[i].wire_ns > 0;
	return has_network && baseline->durations[0] == '\0';
}

static bool take_file(struct reading *reading)
{
	enum json_scan_token token = json_scan_next(&reading->scan);

	if (token != JSON_SCAN_OBJECT)
		return refuse_scan(reading);
	while ((token = json_scan_next(&reading->scan)) == JSON_SCAN_KEY)
		if (!take_key(reading))
			return false;
	if (token != JSON_SCAN_OBJECT_END || json_scan_next(&reading->scan) != JSON_SCAN_END)
		return refuse_scan(reading);
	if (!reading->has_rows)
		return baseline_refuse(reading, ERR_FORMAT, "is missing", "rows");
	if (may_have_spans(reading->baseline))
		return baseline_refuse(reading, ERR_RANGE,
				       "its durations may be network spans, which are none",
				       "rows");
	return true;
}

enum status baseline_read(struct baseline *baseline, const char *text, size_t length, char *why,
			  size_t why_size)
{
	struct reading reading = {
		.text = text, .baseline = baseline, .why = why, .why_size = why_size
	};

	*baseline = (struct baseline){ .rows = NULL };
	why[0] = '\0';
	json_scan_init(&reading.scan, text, length);
	if (!take_file(&reading)) {
		baseline_release(baseline);
		return reading.status;
	}
	return OK;
}
