/*
 * Tables, histograms and dots, all from tallies. A table is its columns' names and one array per row:
 * thousands of rows without thousands of names.
 */
#include "output/html_report.h"

#include <math.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/sha256.h"
#include "common/text.h"
#include "output/html_assets.h"
#include "output/json.h"
#include "output/report.h"
#include "output/report_internal.h"
#include "output/sink.h"

enum {
	HTML_DATA_VERSION = 2,
	HTML_RANKS_MAX = 4096,	   /* rows of the table of ranks */
	HTML_ROWS_MAX = 2000,	   /* rows of each other table, dots of the chart of sizes */
	HTML_NAMES_MAX = 500,	   /* rows of the table of communicators' names */
	HTML_HISTOGRAMS_MAX = 500, /* of one kind */
	HTML_ITERATIONS_MAX = 2000,
};

/* Six significant digits: charts need no more, and the page stays small. */
static void html_data_rounded(struct json *json, double number)
{
	double scale;

	if (!isfinite(number) || number == 0) {
		json_unsigned(json, 0);
		return;
	}
	scale = pow(10, 5 - floor(log10(fabs(number))));
	json_double(json, isfinite(scale) && scale > 0 ? round(number * scale) / scale : number);
}

/* Common time as nanoseconds after the report's start; null when it is 0, "unknown". */
static void html_data_time(struct json *json, const struct timeline_report *report, const char *key,
			   uint64_t common_ns)
{
	json_key(json, key);
	if (common_ns == 0)
		json_null(json);
	else
		json_signed(json, (int64_t)(common_ns - report->start_ns));
}

typedef void write_key(struct json *json, const struct timeline_report *report,
		       const struct tally_row *row);

struct data_table {
	const char *name;
	const struct tally *tally;
	size_t most;		/* rows */
	const char *columns[8]; /* of the key; NULL ends them */
	write_key *key;
};

enum { HTML_MEASURES = 15 };

/* What is said of each row. What is not known is null; totals are estimates where not all were timed. */
static void html_measures(struct report_figure to[static HTML_MEASURES],
			  const struct tally_row *row)
{
	const bool is_timed = row->timed > 0, is_joined = row->joined_ns > 0;
	const double algbw = tally_algbw(row), busbw = tally_busbw(row);
	const struct report_figure measures[HTML_MEASURES] = {
		REPORT_WHOLE("calls", true, row->calls),
		REPORT_WHOLE("timed", true, row->timed),
		REPORT_WHOLE("estimated", true, row->covered),
		REPORT_WHOLE("not_timed", true, tally_not_timed(row)),
		REPORT_WHOLE("bytes", true, row->bytes),
		REPORT_WHOLE("total_ns", row->timed + row->covered > 0,
			     units_whole(tally_total_ns(row))),
		REPORT_REAL("algbw", algbw > 0, algbw),
		REPORT_REAL("busbw", busbw > 0, busbw),
		REPORT_WHOLE("min_ns", is_timed, row->min_ns),
		REPORT_WHOLE("median_ns", is_timed, tally_quantile_ns(row, 0.5)),
		REPORT_WHOLE("mean_ns", is_timed, is_timed ? (uint64_t)tally_mean_ns(row) : 0),
		REPORT_WHOLE("p99_ns", row->timed >= TALLY_P99_LEAST, tally_quantile_ns(row, 0.99)),
		REPORT_WHOLE("max_ns", is_timed, row->max_ns),
		REPORT_WHOLE("wait_ns", is_joined, units_whole(tally_total_wait_ns(row))),
		REPORT_WHOLE("joined_ns", is_joined, units_whole(tally_total_joined_ns(row))),
	};

	memcpy(to, measures, sizeof(measures));
}

static void write_measures(struct json *json, const struct tally_row *row)
{
	struct report_figure measures[HTML_MEASURES];

	html_measures(measures, row);
	for (size_t i = 0; i < HTML_MEASURES; i++) {
		if (!measures[i].is_known)
			json_null(json);
		else if (measures[i].is_real)
			html_data_rounded(json, measures[i].real);
		else
			json_unsigned(json, measures[i].whole);
	}
}

static const char *function_name(const struct timeline_report *report, const struct tally_row *row)
{
	return job_name(&report->job, OP_NAMES_FUNCTION, row->key.function);
}

static void key_comm(struct json *json, const struct timeline_report *report,
		     const struct tally_row *row)
{
	const struct job_comm *comm = &report->job.comms[row->key.comm];

	json_string(json, comm->label);
	json_string(json, job_comm_kind_name(comm->kind));
	json_signed(json, comm->nranks);
	json_signed(json, comm->nnodes);
	json_unsigned(json, comm->missing);
}

static size_t count_alike(const struct job *job, const struct tally_row *row)
{
	const struct job_comm *first = &job->comms[row->key.comm];
	size_t count = 0;

	for (size_t i = 0; i < job->comm_count; i++) {
		const struct job_comm *comm = &job->comms[i];

		count += comm->group == row->key.group && comm->kind == row->key.kind &&
			 strcmp(comm->name, first->name) == 0;
	}
	return count;
}

static void key_comm_name(struct json *json, const struct timeline_report *report,
			  const struct tally_row *row)
{
	const struct job_comm *comm = &report->job.comms[row->key.comm];
	size_t alike = count_alike(&report->job, row);

	json_string(json, alike == 1 ? comm->label : comm->name);
	json_string(json, job_comm_kind_name(row->key.kind));
	json_unsigned(json, alike);
}

static void key_function(struct json *json, const struct timeline_report *report,
			 const struct tally_row *row)
{
	json_string(json, function_name(report, row));
}

static void key_size(struct json *json, const struct timeline_report *report,
		     const struct tally_row *row)
{
	json_string(json, function_name(report, row));
	json_unsigned(json, row->key.size_class);
}

static void key_algorithm(struct json *json, const struct timeline_report *report,
			  const struct tally_row *row)
{
	json_string(json, function_name(report, row));
	json_string(json, job_name(&report->job, OP_NAMES_ALGORITHM, row->key.algorithm));
	json_string(json, job_name(&report->job, OP_NAMES_PROTOCOL, row->key.protocol));
}

static void key_rank(struct json *json, const struct timeline_report *report,
		     const struct tally_row *row)
{
	const struct job_rank *rank = &report->job.ranks[row->key.rank];

	json_string(json, rank->label);
	json_string(json, report->job.hosts[rank->host].name);
	json_signed(json, rank->gpu);
	json_string(json, recording_life_name(rank->life));
	if (report->ranks[row->key.rank].is_busy_known)
		html_data_rounded(json, report->ranks[row->key.rank].busy_share);
	else
		json_null(json);
}

static void write_columns(struct json *json, const struct data_table *table)
{
	static const struct tally_row none;
	struct report_figure measures[HTML_MEASURES];

	json_put_array(json, "columns");
	for (size_t i = 0; i < ARRAY_LENGTH(table->columns) && table->columns[i]; i++)
		json_string(json, table->columns[i]);
	html_measures(measures, &none);
	for (size_t i = 0; i < HTML_MEASURES; i++)
		json_string(json, measures[i].name);
	json_end(json);
}

static void write_table(struct json *json, const struct timeline_report *report,
			const struct data_table *table)
{
	const struct tally *tally = table->tally;
	size_t count = tally->count < table->most ? tally->count : table->most;

	json_put_object(json, table->name);
	write_columns(json, table);
	json_put_array(json, "rows");
	for (size_t i = 0; i < count; i++) {
		json_array(json);
		table->key(json, report, &tally->rows[i]);
		write_measures(json, &tally->rows[i]);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "left_out", tally->count - count);
	json_put_bool(json, "has_other", tally->has_other);
	json_end(json);
}

/* Its parts, each a key and its value. */
static void html_data_tables(struct json *json, const struct timeline_report *report)
{
	const struct data_table tables[] = {
		{ "comm_name",
		  &report->by_comm_name,
		  HTML_NAMES_MAX,
		  { "name", "kind", "alike" },
		  key_comm_name },
		{ "comm",
		  &report->by_comm,
		  HTML_ROWS_MAX,
		  { "comm", "kind", "nranks", "nnodes", "missing" },
		  key_comm },
		{ "function", &report->by_function, HTML_ROWS_MAX, { "function" }, key_function },
		{ "size", &report->by_size, HTML_ROWS_MAX, { "function", "size" }, key_size },
		{ "algorithm",
		  &report->by_algorithm,
		  HTML_ROWS_MAX,
		  { "function", "algorithm", "protocol" },
		  key_algorithm },
		{ "rank",
		  &report->by_rank,
		  HTML_RANKS_MAX,
		  { "rank", "host", "gpu", "state", "busy_share" },
		  key_rank },
	};

	json_put_object(json, "tables");
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++)
		write_table(json, report, &tables[i]);
	json_end(json);
}

static void write_histogram(struct json *json, const struct tally_row *row)
{
	json_put_unsigned(json, "calls", tally_over(row));
	json_put_unsigned(json, "timed", row->timed);
	json_put_unsigned(json, "median_ns", tally_quantile_ns(row, 0.5));
	json_put_known(json, "p99_ns", row->timed >= TALLY_P99_LEAST, tally_quantile_ns(row, 0.99));
	json_put_unsigned(json, "first", row->histogram.first);
	json_put_array(json, "counts");
	for (unsigned int i = 0; i < row->histogram.used; i++)
		json_unsigned(json, row->histogram.counts[i]);
	json_end(json);
}

static void write_histograms(struct json *json, const struct timeline_report *report,
			     const struct tally *tally)
{
	for (size_t i = 0; i < tally->count && i < HTML_HISTOGRAMS_MAX; i++) {
		const struct tally_row *row = &tally->rows[i];

		if (row->timed == 0)
			continue;
		json_object(json);
		json_put_string(json, "function", function_name(report, row));
		if (tally->by & TALLY_BY_SIZE)
			json_put_unsigned(json, "size", row->key.size_class);
		if (tally->by & TALLY_BY_KIND)
			json_put_string(json, "kind", job_comm_kind_name(row->key.kind));
		write_histogram(json, row);
		json_end(json);
	}
}

static void html_data_histograms(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "histograms");
	if (report->total.timed > 0) {
		json_object(json);
		write_histogram(json, &report->total);
		json_end(json);
	}
	write_histograms(json, report, &report->by_function);
	write_histograms(json, report, &report->by_kind);
	write_histograms(json, report, &report->by_size);
	json_end(json);
}

/* The finer table when it was asked for, else the one by function and size. */
static const struct tally *points_of(const struct timeline_report *report)
{
	for (size_t i = 0; i < report->custom_count; i++)
		if (report->custom[i].by == HTML_POINTS_BY)
			return &report->custom[i];
	return &report->by_size;
}

static void write_point(struct json *json, const struct timeline_report *report,
			const struct tally_row *row, uint32_t by)
{
	const struct job *job = &report->job;
	uint64_t sized = row->calls - row->unknown_size;
	bool is_bus = tally_busbw(row) > 0;

	json_array(json);
	json_unsigned(json, row->bytes / sized);
	html_data_rounded(json, is_bus ? tally_busbw(row) : tally_algbw(row));
	json_unsigned(json, is_bus);
	json_unsigned(json, row->calls);
	json_unsigned(json, units_whole(tally_total_ns(row)));
	json_unsigned(json, row->timed);
	json_string(json, function_name(report, row));
	if (by & TALLY_BY_KIND) {
		json_string(json, job_comm_kind_name(row->key.kind));
		json_string(json, job->comms[row->key.comm].name);
		json_string(json, job_name(job, OP_NAMES_ALGORITHM, row->key.algorithm));
		json_string(json, job_name(job, OP_NAMES_PROTOCOL, row->key.protocol));
	}
	json_end(json);
}

static void html_data_points(struct json *json, const struct timeline_report *report)
{
	const struct tally *tally = points_of(report);
	size_t count = 0;

	/* Rows of the finer table come sorted by time spent: what is left out matters least. */
	json_put_array(json, "points");
	for (size_t i = 0; i < tally->count && count < HTML_ROWS_MAX; i++) {
		const struct tally_row *row = &tally->rows[i];

		if (row->calls == row->unknown_size || row->bytes == 0 || row->sized_ns == 0)
			continue;
		write_point(json, report, row, tally->by);
		count++;
	}
	json_end(json);
}

/* Over time: series, waiting by rank, changes, iterations. */

/* Bytes per second; null where either is not known. */
static void write_ratio(struct json *json, const char *key, uint32_t count, const double *over,
			const double *under_ns)
{
	json_put_array(json, key);
	for (uint32_t i = 0; i < count; i++) {
		if (over[i] > 0 && under_ns[i] > 0)
			html_data_rounded(json, over[i] / under_ns[i] * 1e9);
		else
			json_null(json);
	}
	json_end(json);
}

static void write_whole(struct json *json, const char *key, uint32_t count, const double *values,
			double unit)
{
	json_put_array(json, key);
	for (uint32_t i = 0; i < count; i++)
		json_unsigned(json, values[i] > 0 ? (uint64_t)round(values[i] / unit) : 0);
	json_end(json);
}

static void write_series(struct json *json, const struct timeline_report *report)
{
	const struct windows *windows = &report->windows;

	json_put_array(json, "series");
	for (size_t i = 0; i < windows->series_count; i++) {
		const struct windows_series *series = &windows->series[i];

		json_object(json);
		json_put_string(json, "kind", job_comm_kind_name(series->kind));
		json_put_string(json, "function",
				job_name(&report->job, OP_NAMES_FUNCTION, series->function));
		write_ratio(json, "busbw", windows->count, series->bus_bytes, series->time_ns);
		write_ratio(json, "move", windows->count, series->move_bus_bytes, series->move_ns);
		write_whole(json, "calls", windows->count, series->calls, 1);
		write_whole(json, "time_us", windows->count, series->time_ns, 1000);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "series_left_out", windows->series_left_out);
}

static void write_change(struct json *json, const struct timeline_report *report,
			 const struct windows_change *change)
{
	char words[REPORT_WORDS];

	json_object(json);
	report_words_change(report, change, words);
	json_put_string(json, "words", words);
	json_put_string(json, "kind", job_comm_kind_name(change->kind));
	json_put_string(json, "function",
			job_name(&report->job, OP_NAMES_FUNCTION, change->function));
	json_put_unsigned(json, "size", change->size_class);
	html_data_time(json, report, "at_ns", change->at_ns);
	json_put_double(json, "before", change->before);
	json_put_double(json, "after", change->after);
	json_put_double(json, "percent", change->percent);
	json_put_double(json, "confidence", change->confidence);
	json_put_bool(json, "is_everywhere", change->is_everywhere);
	json_put_unsigned(json, "ranks", change->ranks_changed);
	json_put_unsigned(json, "comms", change->comms);
	json_put_unsigned(json, "comms_changed", change->comms_changed);
	json_end(json);
}

static void write_row(struct json *json, const struct timeline_report *report,
		      const struct windows_matrix *matrix, uint32_t row)
{
	const struct job_rank *first = &report->job.ranks[matrix->first_rank[row]];
	const struct job_rank *last = &report->job.ranks[matrix->last_rank[row]];
	uint32_t count = report->windows.count;
	size_t at = (size_t)row * count;

	json_object(json);
	json_put_string(json, "rank", first->label);
	json_put_string(json, "last", last == first ? NULL : last->label);
	json_put_string(json, "host", report->job.hosts[first->host].name);
	json_put_string(json, "last_host",
			last->host == first->host ? NULL : report->job.hosts[last->host].name);
	json_put_unsigned(json, "first_index", matrix->first_rank[row]);
	json_put_unsigned(json, "last_index", matrix->last_rank[row]);
	write_whole(json, "wait_us", count, matrix->wait_ns + at, 1000);
	write_whole(json, "joined_us", count, matrix->joined_ns + at, 1000);
	json_end(json);
}

void html_data_windows(struct json *json, const struct timeline_report *report)
{
	const struct windows *windows = &report->windows;

	json_put_object(json, "windows");
	json_put_unsigned(json, "count", windows->count);
	html_data_time(json, report, "start_ns", windows->start_ns);
	json_put_unsigned(json, "width_ns", windows->width_ns);
	write_series(json, report);
	json_put_array(json, "changes");
	for (size_t i = 0; i < windows->change_count; i++)
		write_change(json, report, &windows->changes[i]);
	json_end(json);
	json_put_unsigned(json, "changes_left_out", windows->changes_left_out);
	json_put_unsigned(json, "ranks_per_row", windows->waiting.ranks_per_row);
	json_put_array(json, "waiting");
	for (uint32_t row = 0; row < windows->waiting.rows && windows->count > 0; row++)
		write_row(json, report, &windows->waiting, row);
	json_end(json);
	json_end(json);
}

/* Some neighbours together: mean times, sums of the rest, odd when one of them is. */
static void write_some_iterations(struct json *json, const struct timeline_report *report,
				  const struct iteration *list, size_t count)
{
	uint64_t time_ns = 0, busy_ns = 0, bytes = 0, longest_ns = 0;
	bool is_odd = false;
	size_t timed = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t duration_ns = list[i].end_ns - list[i].start_ns;

		time_ns += duration_ns;
		/* Where some of its operations were not timed, its communication is not known. */
		if (list[i].timed == list[i].ops) {
			busy_ns += list[i].busy_ns;
			timed++;
		}
		bytes += list[i].bytes;
		longest_ns = duration_ns > longest_ns ? duration_ns : longest_ns;
		is_odd |= list[i].is_odd;
	}
	json_array(json);
	json_signed(json, (int64_t)(list[0].start_ns - report->start_ns));
	json_unsigned(json, time_ns / count);
	json_unsigned(json, longest_ns);
	if (timed > 0)
		json_unsigned(json, busy_ns / timed);
	else
		json_null(json);
	json_unsigned(json, bytes / count);
	json_unsigned(json, is_odd);
	json_end(json);
}

static void html_data_iterations(struct json *json, const struct timeline_report *report)
{
	const struct iterations *iterations = &report->iterations;
	size_t together = (iterations->count + HTML_ITERATIONS_MAX - 1) / HTML_ITERATIONS_MAX;

	json_put_object(json, "iterations");
	json_put_bool(json, "is_found", iterations->is_found);
	if (iterations->is_found && iterations->count > 0) {
		json_put_bool(json, "is_by_tag", iterations->is_by_tag);
		json_put_string(json, "rank", report->job.ranks[iterations->rank].label);
		json_put_unsigned(json, "period_ops", iterations->period_ops);
		json_put_unsigned(json, "count", iterations->count);
		json_put_unsigned(json, "regular", iterations->regular);
		json_put_unsigned(json, "median_ns", iterations->median_ns);
		json_put_unsigned(json, "timed", iterations->timed);
		json_put_known(json, "median_busy_ns", iterations->timed > 0,
			       iterations->median_busy_ns);
		json_put_unsigned(json, "p99_ns", iterations->p99_ns);
		json_put_unsigned(json, "slowest_ns", iterations->slowest_ns);
		json_put_unsigned(json, "slowest", iterations->slowest);
		json_put_unsigned(json, "together", together);
		json_put_array(json, "list");
		for (size_t i = 0; i < iterations->count; i += together)
			write_some_iterations(json, report, &iterations->list[i],
					      iterations->count - i < together
						      ? iterations->count - i
						      : together);
		json_end(json);
	}
	json_end(json);
}

static const char *rank_label(const struct timeline_report *report, uint32_t rank)
{
	return rank < report->job.rank_count ? report->job.ranks[rank].label : NULL;
}

static const char *host_name(const struct timeline_report *report, uint32_t host)
{
	return host < report->job.host_count ? report->job.hosts[host].name : NULL;
}

/* The host that is named, else the one of the rank that is. */
static const char *host_of(const struct timeline_report *report, uint32_t rank, uint32_t host)
{
	if (rank < report->job.rank_count)
		host = report->job.ranks[rank].host;
	return host_name(report, host);
}

static const char *comm_label(const struct timeline_report *report, uint32_t comm)
{
	return comm < report->job.comm_count ? report->job.comms[comm].label : NULL;
}

static void write_groups(struct json *json, const struct job *job)
{
	json_put_array(json, "groups");
	for (size_t i = 0; i < job->group_count && i < HTML_NAMES_MAX; i++) {
		const struct job_group *group = &job->groups[i];

		json_object(json);
		json_put_string(json, "name", group->name);
		json_put_unsigned(json, "ranks", group->rank_count);
		json_put_unsigned(json, "hosts", group->host_count);
		json_put_signed(json, "world_size", group->world_size);
		json_end(json);
	}
	json_end(json);
}

static void write_job(struct json *json, const struct timeline_report *report)
{
	json_put_object(json, "job");
	write_groups(json, &report->job);
	json_put_unsigned(json, "group_count", report->job.group_count);
	json_put_unsigned(json, "hosts", report->job.host_count);
	json_put_unsigned(json, "ranks", report->job.rank_count);
	json_put_unsigned(json, "comms", report->job.comm_count);
	json_key(json, "start_ms");
	if (report->has_wall)
		json_double(json, (double)report->start_ns / 1e6);
	else
		json_null(json);
	json_end(json);
}

static void write_straggler(struct json *json, const struct timeline_report *report,
			    const struct straggler *straggler)
{
	char words[REPORT_WORDS];

	json_object(json);
	report_words_straggler(report, straggler, words);
	json_put_string(json, "words", words);
	json_put_string(json, "class", straggler_class_name(straggler->class));
	json_put_string(json, "pattern", straggler_pattern_name(straggler->pattern));
	json_key(json, "rank_index");
	if (straggler->rank < report->job.rank_count)
		json_unsigned(json, straggler->rank);
	else
		json_null(json);
	json_put_string(json, "rank", rank_label(report, straggler->rank));
	json_put_string(json, "host", host_of(report, straggler->rank, straggler->host));
	json_put_string(json, "peer", rank_label(report, straggler->peer));
	json_put_signed(json, "channel", straggler->channel);
	json_put_string(json, "comm", comm_label(report, straggler->comm));
	json_put_unsigned(json, "meetings", straggler->meetings);
	json_put_unsigned(json, "last_in", straggler->last_in);
	json_put_double(json, "share_of_time", straggler->share_of_time);
	json_put_unsigned(json, "late_ns", straggler->late_ns);
	json_put_unsigned(json, "caused_ns", straggler->caused_ns);
	json_put_double(json, "slowdown", straggler->slowdown);
	json_put_double(json, "confidence", straggler->confidence);
	html_data_time(json, report, "first_ns", straggler->has_times ? straggler->first_ns : 0);
	html_data_time(json, report, "last_ns", straggler->has_times ? straggler->last_ns : 0);
	json_end(json);
}

static void write_stragglers(struct json *json, const struct timeline_report *report)
{
	const struct stragglers *stragglers = &report->stragglers;

	json_put_object(json, "stragglers");
	json_put_bool(json, "has_enough", stragglers->has_enough);
	json_put_unsigned(json, "meetings", stragglers->meetings);
	json_put_unsigned(json, "least_meetings", stragglers->least_meetings);
	json_put_unsigned(json, "explained", stragglers->explained);
	json_put_array(json, "list");
	for (size_t i = 0; i < stragglers->count; i++)
		write_straggler(json, report, &stragglers->list[i]);
	json_end(json);
	json_end(json);
}

/* What `ringside report` says, to the letter. */
static void write_words(struct json *json, const struct timeline_report *report)
{
	char words[REPORT_WORDS];
	struct sink text;

	json_put_object(json, "words");
	report_words_nccl(report->recording, words);
	json_put_string(json, "nccl", words);
	report_words_sources(&report->total, words);
	json_put_string(json, "sources", words);
	report_words_timed(&report->total, words);
	json_put_string(json, "timed", words);
	report_words_not_timed(report, words);
	json_put_string(json, "not_timed", words);
	report_words_lost(report->gpu_hours_waited, report->gpu_hours, words);
	json_put_string(json, "lost", words);
	sink_init_memory(&text);
	report_words_completeness(report, &text);
	json_put_string(json, "completeness", sink_string(&text));
	if (text.status != OK)
		json->sink->status = text.status;
	sink_release(&text);
	json_end(json);
}

/* What `ringside report --json` says, to the letter. */
static void write_answer(struct json *json, const struct timeline_report *report)
{
	json_put_object(json, "report");
	report_json_put_head(json, report);
	report_json_put_completeness(json, report);
	report_json_put_findings(json, report);
	report_json_put_waiting(json, report);
	report_json_put_alignment(json, report);
	json_put_object(json, "total");
	report_json_figures(json, &report->total, false);
	json_end(json);
	json_end(json);
}

static void html_data_write(struct json *json, const struct timeline_report *report)
{
	json_object(json);
	json_put_unsigned(json, "version", HTML_DATA_VERSION);
	write_answer(json, report);
	write_words(json, report);
	write_job(json, report);
	write_stragglers(json, report);
	html_data_windows(json, report);
	html_data_points(json, report);
	html_data_histograms(json, report);
	html_data_iterations(json, report);
	html_data_tables(json, report);
	json_end(json);
}

/*
 * The template (src/output/html/report.html) has marks like @STYLE@, which are replaced in one walk: what
 * is put in is not looked at again. The data is JSON in a script element of another type than script,
 * which a browser does not run; '<' in it is written as an escape, so nothing in it can end that element.
 */

bool html_report_has_charts(void)
{
	return html_assets_have_charts();
}

const char *html_report_missing(void)
{
	if (html_report_has_charts())
		return NULL;
	return "this program was built without charts: run scripts/install-npm build, then make";
}

void html_report_options(struct timeline_options *options)
{
	if (options->custom_count < TIMELINE_CUSTOM_MAX)
		options->custom_by[options->custom_count++] = HTML_POINTS_BY;
}

static void write_asset(struct sink *sink, enum html_asset_name name)
{
	struct html_asset asset = html_asset(name);

	sink_write(sink, asset.text, asset.length);
}

/* `text` is terminated behind its end. Bytes that are not UTF-8 become U+FFFD. */
static void write_escaped(struct sink *sink, const char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t sequence = json_utf8_length((const unsigned char *)text + i);

		if (sequence > 0)
			sink_write(sink, text + i, sequence);
		else if ((unsigned char)text[i] >= 0x80)
			sink_text(sink, "&#xfffd;");
		else if (html_escape(text[i]))
			sink_text(sink, html_escape(text[i]));
		else
			sink_byte(sink, text[i]);
		i += sequence ? sequence : 1;
	}
}

static void write_title(struct sink *sink, const struct job *job)
{
	const char *name = job->group_count > 0 ? job->groups[0].name : "";

	if (name[0] != '\0')
		write_escaped(sink, name, strlen(name));
	else
		sink_text(sink, "NCCL job");
	if (job->group_count > 1)
		sink_format(sink, " and %zu more", job->group_count - 1);
	sink_text(sink, " - Ringside report");
}

/* One that lets exactly our own styles and scripts through, by their hashes, and nothing else. */
static void write_policy(struct sink *sink)
{
	static const struct {
		const char *before;
		enum html_asset_name name;
	} parts[] = {
		{ "default-src 'none'; img-src data:; style-src 'sha256-",
		  HTML_ASSET_CHARTS_STYLE },
		{ "' 'sha256-", HTML_ASSET_STYLE },
		{ "'; script-src 'sha256-", HTML_ASSET_CHARTS },
		{ "' 'sha256-", HTML_ASSET_SCRIPT },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
		struct html_asset asset = html_asset(parts[i].name);
		char digest[SHA256_TEXT];

		sink_text(sink, parts[i].before);
		sink_text(sink, sha256_base64(asset.text, asset.length, digest));
	}
	sink_text(sink, "'; base-uri 'none'; form-action 'none'; "
			"require-trusted-types-for 'script'; trusted-types 'none'");
}

/* U+2028 and U+2029 end a line for some readers of JavaScript: the last digit, 0 when it is neither. */
static char line_separator(const char *at)
{
	if (at[0] != '\xe2' || at[1] != '\x80')
		return 0;
	return at[2] == '\xa8' ? '8' : at[2] == '\xa9' ? '9' : 0;
}

/* In JSON all these stand inside strings only, where an escape means the same. */
static void write_data(struct sink *sink, const char *json)
{
	for (const char *at = json; *at != '\0';) {
		size_t plain = strcspn(at, "<>&\xe2");

		sink_write(sink, at, plain);
		at += plain;
		if (*at == '\0')
			break;
		if (line_separator(at)) {
			sink_format(sink, "\\u202%c", line_separator(at));
			at += 3;
		} else if (*at == '\xe2') {
			sink_byte(sink, *at++);
		} else {
			sink_format(sink, "\\u%04x", (unsigned int)*at++);
		}
	}
}

enum mark { TITLE, POLICY, CHARTS_STYLE, STYLE, CHARTS, SCRIPT, LICENCE, DATA, MARKS };

static const char *const marks[MARKS] = {
	[TITLE] = "@TITLE@",
	[POLICY] = "@POLICY@",
	[CHARTS_STYLE] = "@CHARTS_STYLE@",
	[STYLE] = "@STYLE@",
	[CHARTS] = "@CHARTS@",
	[SCRIPT] = "@SCRIPT@",
	[LICENCE] = "@CHARTS_LICENCE@",
	[DATA] = "@DATA@",
};

static void write_licence(struct sink *sink)
{
	struct html_asset licence = html_asset(HTML_ASSET_CHARTS_LICENCE);

	write_escaped(sink, licence.text, licence.length);
}

static void write_mark(struct sink *sink, enum mark mark, const struct timeline_report *report,
		       const char *data)
{
	switch (mark) {
	case TITLE:
		write_title(sink, &report->job);
		break;
	case POLICY:
		write_policy(sink);
		break;
	case CHARTS_STYLE:
		write_asset(sink, HTML_ASSET_CHARTS_STYLE);
		break;
	case STYLE:
		write_asset(sink, HTML_ASSET_STYLE);
		break;
	case CHARTS:
		write_asset(sink, HTML_ASSET_CHARTS);
		break;
	case SCRIPT:
		write_asset(sink, HTML_ASSET_SCRIPT);
		break;
	case LICENCE:
		write_licence(sink);
		break;
	case DATA:
		write_data(sink, data);
		break;
	case MARKS:
		break;
	}
}

/* The mark that begins at `at`, MARKS when none does. */
static enum mark find_mark(const char *at, size_t left)
{
	enum mark mark = TITLE;

	while (mark < MARKS &&
	       (strlen(marks[mark]) > left || memcmp(at, marks[mark], strlen(marks[mark])) != 0))
		mark++;
	return mark;
}

static void write_page(struct sink *sink, const struct timeline_report *report, const char *data)
{
	struct html_asset page = html_asset(HTML_ASSET_PAGE);
	const char *end = page.text + page.length;

	for (const char *at = page.text; at < end;) {
		const char *next = memchr(at, '@', (size_t)(end - at));
		enum mark mark;

		next = next ? next : end;
		sink_write(sink, at, (size_t)(next - at));
		mark = find_mark(next, (size_t)(end - next));
		if (mark < MARKS) {
			write_mark(sink, mark, report, data);
			next += strlen(marks[mark]);
		} else if (next < end) {
			sink_byte(sink, *next++);
		}
		at = next;
	}
}

enum status html_report_write(struct sink *sink, const struct timeline_report *report)
{
	struct sink data;
	struct json json;
	enum status status;

	if (!html_report_has_charts())
		return ERR_GONE;
	sink_init_memory(&data);
	json_init(&json, &data);
	html_data_write(&json, report);
	status = json_status(&json);
	if (status == OK) {
		write_page(sink, report, sink_string(&data));
		status = sink->status;
	}
	sink_release(&data);
	return status;
}
