/* Over time: series, waiting by rank, changes, iterations. */
#include "view/html_data.h"

#include <math.h>

#include "common/op.h"
#include "view/report_json.h"
#include "view/report_words.h"

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

void html_data_iterations(struct json *json, const struct timeline_report *report)
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
		report_json_put_known(json, "median_busy_ns", iterations->timed > 0,
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
