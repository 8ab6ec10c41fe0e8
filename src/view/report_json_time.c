/* Waiting, who is waited for, and how everything went over time. */
#include <math.h>

#include "view/comm_json.h"
#include "view/report_json.h"
#include "view/report_key.h"
#include "view/report_words.h"

/* An index into one of the report's lists; null where it says nobody. */
static void put_index(struct json *json, const char *key, uint32_t index)
{
	report_json_put_known(json, key, index != UINT32_MAX, index);
}

void report_json_put_waiting(struct json *json, const struct timeline_report *report)
{
	const struct meet *meet = &report->meet;

	json_put_object(json, "waiting");
	report_json_put_known(json, "wait_ns", meet->complete + meet->partial > 0, meet->wait_ns);
	json_put_unsigned(json, "joined", meet->joined);
	json_put_unsigned(json, "untimed", meet->untimed);
	json_put_unsigned(json, "unmatched", meet->unmatched);
	json_put_unsigned(json, "repeated", meet->repeated);
	json_put_unsigned(json, "left_out", meet->left_out);
	json_put_unsigned(json, "differing", meet->differing);
	json_put_unsigned(json, "complete", meet->complete);
	json_put_unsigned(json, "partial", meet->partial);
	json_put_unsigned(json, "alone", meet->alone);
	json_put_unsigned(json, "stride", meet->stride);
	json_end(json);
}

/* ---- stragglers ------------------------------------------------------------------------------ */

static void put_straggler(struct json *json, const struct straggler *one)
{
	json_object(json);
	json_put_string(json, "class", straggler_class_name(one->class));
	json_put_string(json, "pattern", straggler_pattern_name(one->pattern));
	put_index(json, "rank_index", one->rank);
	put_index(json, "host_index", one->host);
	put_index(json, "peer_index", one->peer);
	report_json_put_known(json, "channel", one->channel >= 0, (uint64_t)one->channel);
	put_index(json, "comm_index", one->comm);
	json_put_unsigned(json, "meetings", one->meetings);
	json_put_unsigned(json, "last_in", one->last_in);
	json_put_double(json, "share_of_time", one->share_of_time);
	json_put_unsigned(json, "late_ns", one->late_ns);
	json_put_unsigned(json, "caused_ns", one->caused_ns);
	report_json_put_ratio(json, "slowdown", one->slowdown > 0, one->slowdown);
	report_json_put_ratio(json, "slow_share", one->slow_share > 0, one->slow_share);
	report_json_put_ratio(json, "own_slowdown", one->is_starved, one->own_slowdown);
	json_put_double(json, "confidence", one->confidence);
	report_json_put_known(json, "first_ns", one->has_times, one->first_ns);
	report_json_put_known(json, "last_ns", one->has_times, one->last_ns);
	json_end(json);
}

void report_json_put_stragglers(struct json *json, const struct timeline_report *report)
{
	const struct stragglers *from = &report->stragglers;

	json_put_object(json, "stragglers");
	json_put_bool(json, "has_enough", from->has_enough);
	json_put_unsigned(json, "meetings", from->meetings);
	json_put_unsigned(json, "least_meetings", from->least_meetings);
	json_put_unsigned(json, "explained", from->explained);
	json_put_array(json, "list");
	for (size_t i = 0; i < from->count; i++)
		put_straggler(json, &from->list[i]);
	json_end(json);
	json_end(json);
}

void report_json_put_alignment(struct json *json, const struct timeline_report *report)
{
	const struct align *align = &report->align;

	json_put_object(json, "alignment");
	json_put_unsigned(json, "islands", align->island_count);
	json_put_unsigned(json, "unaligned", align->unaligned);
	report_json_put_known(json, "worst_uncertainty_ns", align->count > 0,
			      align->worst_uncertainty_ns);
	json_end(json);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Whole numbers: parts of a nanosecond or byte only come from dividing at the borders of windows. */
static void put_values(struct json *json, const char *key, const double *values, size_t count)
{
	json_put_array(json, key);
	for (size_t i = 0; i < count; i++)
		json_double(json, round(values[i]));
	json_end(json);
}

static void put_calls(struct json *json, const double *values, size_t count)
{
	json_put_array(json, "calls");
	for (size_t i = 0; i < count; i++)
		json_double(json, round(values[i] * 100) / 100);
	json_end(json);
}

static void put_series(struct json *json, const struct timeline_report *report,
		       const struct windows_series *series)
{
	size_t count = report->windows.count;

	json_object(json);
	comm_json_put_kind(json, series->kind);
	json_put_string(json, "function",
			job_name(&report->job, OP_NAMES_FUNCTION, series->function));
	put_calls(json, series->calls, count);
	put_values(json, "bytes", series->bytes, count);
	put_values(json, "time_ns", series->time_ns, count);
	put_values(json, "bus_bytes", series->bus_bytes, count);
	put_values(json, "move_bus_bytes", series->move_bus_bytes, count);
	put_values(json, "move_ns", series->move_ns, count);
	json_end(json);
}

static void put_matrix(struct json *json, const struct windows *windows)
{
	const struct windows_matrix *matrix = &windows->waiting;

	json_put_object(json, "matrix");
	json_put_unsigned(json, "ranks_per_row", matrix->ranks_per_row);
	json_put_array(json, "rows");
	for (size_t i = 0; i < matrix->rows; i++) {
		json_object(json);
		json_put_unsigned(json, "first_rank_index", matrix->first_rank[i]);
		json_put_unsigned(json, "last_rank_index", matrix->last_rank[i]);
		put_values(json, "wait_ns", matrix->wait_ns + i * windows->count, windows->count);
		put_values(json, "joined_ns", matrix->joined_ns + i * windows->count,
			   windows->count);
		json_end(json);
	}
	json_end(json);
	json_end(json);
}

static void put_change(struct json *json, const struct timeline_report *report,
		       const struct windows_change *change)
{
	char text[REPORT_KEY_TEXT], words[REPORT_WORDS];

	report_words_change(report, change, words);
	json_object(json);
	json_put_string(json, "text", words);
	comm_json_put_kind(json, change->kind);
	json_put_string(json, "function",
			job_name(&report->job, OP_NAMES_FUNCTION, change->function));
	json_put_string(json, "size", report_size_text(change->size_class, text));
	json_put_unsigned(json, "at_ns", change->at_ns);
	json_put_unsigned(json, "window", change->window);
	json_put_double(json, "before_bytes_per_second", round(change->before));
	json_put_double(json, "after_bytes_per_second", round(change->after));
	json_put_double(json, "percent", change->percent);
	json_put_unsigned(json, "meetings_before", change->meetings_before);
	json_put_unsigned(json, "meetings_after", change->meetings_after);
	json_put_double(json, "confidence", change->confidence);
	json_put_unsigned(json, "comms", change->comms);
	json_put_unsigned(json, "comms_changed", change->comms_changed);
	json_put_unsigned(json, "ranks_changed", change->ranks_changed);
	json_put_bool(json, "is_everywhere", change->is_everywhere);
	put_index(json, "example_comm_index", change->example_comm);
	json_end(json);
}

void report_json_put_windows(struct json *json, const struct timeline_report *report,
			     unsigned int flags)
{
	const struct windows *windows = &report->windows;

	if (windows->count == 0) {
		json_put_null(json, "windows");
		return;
	}
	json_put_object(json, "windows");
	json_put_unsigned(json, "start_ns", windows->start_ns);
	json_put_unsigned(json, "end_ns", windows->end_ns);
	json_put_unsigned(json, "width_ns", windows->width_ns);
	json_put_unsigned(json, "count", windows->count);
	json_put_unsigned(json, "series_left_out", windows->series_left_out);
	json_put_array(json, "series");
	for (size_t i = 0; i < windows->series_count; i++)
		put_series(json, report, &windows->series[i]);
	json_end(json);
	json_put_array(json, "changes");
	for (size_t i = 0; i < windows->change_count; i++)
		put_change(json, report, &windows->changes[i]);
	json_end(json);
	json_put_unsigned(json, "changes_left_out", windows->changes_left_out);
	if (flags & REPORT_JSON_MATRIX)
		put_matrix(json, windows);
	json_end(json);
}

/* ---- iterations ------------------------------------------------------------------------------ */

static void put_iteration(struct json *json, const struct iteration *one)
{
	json_object(json);
	json_put_unsigned(json, "first_op", one->first_op);
	json_put_unsigned(json, "ops", one->ops);
	json_put_unsigned(json, "start_ns", one->start_ns);
	report_json_put_known(json, "duration_ns", one->end_ns >= one->start_ns,
			      one->end_ns - one->start_ns);
	json_put_unsigned(json, "timed", one->timed);
	report_json_put_known(json, "busy_ns", one->timed == one->ops, one->busy_ns);
	report_json_put_known(json, "sum_ns", one->timed == one->ops, one->sum_ns);
	json_put_unsigned(json, "bytes", one->bytes);
	json_put_bool(json, "is_odd", one->is_odd);
	json_end(json);
}

void report_json_put_iterations(struct json *json, const struct timeline_report *report)
{
	const struct iterations *from = &report->iterations;

	if (!from->is_found) {
		json_put_null(json, "iterations");
		return;
	}
	json_put_object(json, "iterations");
	json_put_bool(json, "is_by_tag", from->is_by_tag);
	put_index(json, "rank_index", from->rank);
	json_put_unsigned(json, "period_ops", from->period_ops);
	json_put_unsigned(json, "regular", from->regular);
	json_put_unsigned(json, "warm_up_ops", from->warm_up_ops);
	json_put_unsigned(json, "tail_ops", from->tail_ops);
	json_put_unsigned(json, "ops", from->ops);
	json_put_bool(json, "is_cut", from->is_cut);
	json_put_unsigned(json, "median_ns", from->median_ns);
	json_put_unsigned(json, "timed", from->timed);
	report_json_put_known(json, "median_busy_ns", from->timed > 0, from->median_busy_ns);
	json_put_unsigned(json, "p99_ns", from->p99_ns);
	json_put_unsigned(json, "slowest_ns", from->slowest_ns);
	json_put_unsigned(json, "slowest", from->slowest);
	json_put_array(json, "list");
	for (size_t i = 0; i < from->count; i++)
		put_iteration(json, &from->list[i]);
	json_end(json);
	json_end(json);
}

/* ---- findings -------------------------------------------------------------------------------- */

static void put_finding(struct json *json, const struct finding *finding)
{
	json_object(json);
	json_put_string(json, "kind", findings_kind_name(finding->kind));
	json_put_string(json, "severity", findings_severity_name(finding->severity));
	json_put_string(json, "title", finding->title);
	json_put_string(json, "text", finding->text);
	report_json_put_text(json, "hint", finding->hint);
	put_index(json, "rank_index", finding->rank);
	put_index(json, "host_index", finding->host);
	put_index(json, "comm_index", finding->comm);
	put_index(json, "peer_index", finding->peer);
	json_put_unsigned(json, "count", finding->count);
	report_json_put_known(json, "of", finding->of != 0, finding->of);
	report_json_put_known(json, "cost_ns", finding->cost_ns != 0, finding->cost_ns);
	json_put_double(json, "percent", finding->percent);
	report_json_put_known(json, "at_ns", finding->at_ns != 0, finding->at_ns);
	json_end(json);
}

void report_json_put_findings(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "findings");
	for (size_t i = 0; i < report->findings.count; i++)
		put_finding(json, &report->findings.list[i]);
	json_end(json);
	json_put_unsigned(json, "findings_left_out", report->findings.left_out);
}
