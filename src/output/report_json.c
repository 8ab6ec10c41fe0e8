/* The report as JSON. */
#include "output/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/attributes.h"
#include "common/nccl_interface.h"
#include "common/op.h"
#include "common/text.h"
#include "output/csv.h"
#include "output/recorded.h"

/* Rows of a table in the HTML report, so that the page stays small whatever the job's size. */
enum { PAGE_RANKS = 4096, PAGE_ROWS = 2000, PAGE_NAMES = 500 };

static void put_sources(struct json *json, const struct tally_row *row)
{
	json_put_object(json, "sources");
	for (unsigned int i = 0; i < OP_TIME_SHOWN_SOURCES; i++)
		json_put_unsigned(json, op_time_source_name((uint8_t)i), row->by_source[i]);
	json_end(json);
}

static void put_histogram(struct json *json, const struct tally_histogram *histogram)
{
	json_put_object(json, "histogram");
	json_put_unsigned(json, "first", histogram->first);
	json_put_array(json, "counts");
	for (unsigned int i = 0; i < histogram->used; i++)
		json_unsigned(json, histogram->counts[i]);
	json_end(json);
	json_end(json);
}

/* Waiting is null if no two ranks share a collective. */
static void put_figures(struct json *json, const struct timeline_report *report,
			const struct tally_row *row, bool has_histogram)
{
	struct report_figure figures[REPORT_FIGURES];

	report_figures(figures, row, report_knows_waiting(report, row));
	for (size_t i = 0; i < REPORT_FIGURES; i++) {
		const struct report_figure *one = &figures[i];

		if (i == REPORT_FIGURES_BEFORE_SOURCES)
			put_sources(json, row);
		if (one->is_real)
			json_put_known_double(json, one->name, one->is_known, one->real);
		else
			json_put_known(json, one->name, one->is_known, one->whole);
	}
	if (has_histogram)
		put_histogram(json, &row->histogram);
}

void report_json_put_by(struct json *json, uint32_t by)
{
	json_put_array(json, "by");
	for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
		if (by & 1u << bit)
			json_string(json, tally_by_name(bit));
	json_end(json);
}

/* The page does not have the lists that `rank_index` and `comm_index` point into, so its rows name host, kind etc. */
static void put_page_details(struct json *json, const struct timeline_report *report,
			     const struct tally_key *key, uint32_t by)
{
	const struct job *job = &report->job;

	if (by & TALLY_BY_COMM) {
		const struct job_comm *comm = &job->comms[key->comm];

		comm_json_put_kind(json, comm->kind);
		json_put_known(json, "ranks", comm->nranks > 0, (uint64_t)comm->nranks);
		json_put_known(json, "nodes", comm->nnodes > 0, (uint64_t)comm->nnodes);
		json_put_unsigned(json, "missing_ranks", comm->missing);
	} else if (by & TALLY_BY_COMM_NAME) {
		json_put_unsigned(json, "communicators", report_count_alike(job, key, by).comms);
	}
	if (by & TALLY_BY_RANK) {
		const struct job_rank *rank = &job->ranks[key->rank];
		const struct timeline_rank *of = &report->ranks[key->rank];

		json_put_text_or_null(json, "host", job->hosts[rank->host].name);
		json_put_known(json, "gpu", rank->gpu >= 0, (uint64_t)rank->gpu);
		json_put_string(json, "state", recording_life_name(rank->life));
		json_put_known_double(json, "busy_share", of->is_busy_known, of->busy_share);
	}
}

struct table {
	const char *name;
	const struct tally *tally;
	bool has_histograms;
	size_t page_rows; /* at most so many on the page */
};

static void put_row(struct json *json, const struct timeline_report *report,
		    const struct table *table, const struct tally_row *row,
		    enum report_json_form form)
{
	report_key_json(json, report, &row->key, table->tally->by);
	if (form == REPORT_JSON_PAGE)
		put_page_details(json, report, &row->key, table->tally->by);
	put_figures(json, report, row, table->has_histograms);
	json_end(json);
}

/* One table as a value: {"by":[...],"rows":[...],"other":...}. On the page rows are arrays, named by "columns". */
static void put_table(struct json *json, const struct timeline_report *report,
		      const struct table *table, enum report_json_form form)
{
	const struct tally *tally = table->tally;
	bool is_page = form == REPORT_JSON_PAGE;
	size_t count = is_page && tally->count > table->page_rows ? table->page_rows : tally->count;

	json_object(json);
	report_json_put_by(json, tally->by);
	if (is_page && count > 0) {
		json_key(json, "columns");
		json_row_names(json);
		put_row(json, report, table, &tally->rows[0], form);
	}
	json_put_array(json, "rows");
	for (size_t i = 0; i < count; i++) {
		is_page ? json_row(json) : json_object(json);
		put_row(json, report, table, &tally->rows[i], form);
	}
	json_end(json);
	if (is_page)
		json_put_unsigned(json, "left_out", tally->count - count);
	if (tally->has_other) {
		json_put_object(json, "other");
		put_figures(json, report, &tally->other, table->has_histograms);
		json_end(json);
	} else {
		json_put_null(json, "other");
	}
	json_end(json);
}

static void put_tables(struct json *json, const struct timeline_report *report,
		       enum report_json_form form)
{
	const bool is_whole = form == REPORT_JSON_WHOLE;
	const struct table tables[] = {
		{ "name", &report->by_comm_name, is_whole, PAGE_NAMES },
		{ "comm", &report->by_comm, is_whole, PAGE_ROWS },
		{ "kind", &report->by_kind, true, PAGE_ROWS },
		{ "function", &report->by_function, true, PAGE_ROWS },
		{ "size", &report->by_size, true, PAGE_ROWS },
		{ "algorithm", &report->by_algorithm, is_whole, PAGE_ROWS },
		{ "rank", &report->by_rank, is_whole, PAGE_RANKS },
		{ "source", &report->by_source, is_whole, PAGE_ROWS },
	};

	json_put_object(json, "tables");
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
		json_key(json, tables[i].name);
		put_table(json, report, &tables[i], form);
	}
	json_end(json);
	json_put_array(json, "custom");
	for (size_t i = 0; i < report->custom_count; i++)
		put_table(json, report,
			  &(struct table){ NULL, &report->custom[i], is_whole, PAGE_ROWS }, form);
	json_end(json);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* An index into one of the report's lists, or null. */
static void put_index(struct json *json, const char *key, uint32_t index)
{
	json_put_known(json, key, index != UINT32_MAX, index);
}

static void put_waiting(struct json *json, const struct timeline_report *report)
{
	const struct matches *matches = &report->matches;

	json_put_object(json, "waiting");
	json_put_known(json, "wait_ns", matches->complete + matches->partial > 0, matches->wait_ns);
	json_put_unsigned(json, "joined", matches->joined);
	json_put_unsigned(json, "untimed", matches->untimed);
	json_put_unsigned(json, "unmatched", matches->unmatched);
	json_put_unsigned(json, "repeated", matches->repeated);
	json_put_unsigned(json, "left_out", matches->left_out);
	json_put_unsigned(json, "differing", matches->differing);
	json_put_unsigned(json, "complete", matches->complete);
	json_put_unsigned(json, "partial", matches->partial);
	json_put_unsigned(json, "alone", matches->alone);
	json_put_unsigned(json, "stride", matches->stride);
	json_end(json);
}

/* ---- stragglers ------------------------------------------------------------------------------ */

static void put_straggler(struct json *json, const struct timeline_report *report,
			  const struct straggler *one)
{
	char words[REPORT_WORDS];

	report_words_straggler(report, one, words);
	json_object(json);
	json_put_string(json, "text", words);
	json_put_string(json, "class", straggler_class_name(one->class));
	json_put_string(json, "pattern", straggler_pattern_name(one->pattern));
	put_index(json, "rank_index", one->rank);
	put_index(json, "host_index", one->host);
	put_index(json, "peer_index", one->peer);
	json_put_known(json, "channel", one->channel >= 0, (uint64_t)one->channel);
	put_index(json, "comm_index", one->comm);
	json_put_unsigned(json, "meetings", one->matches);
	json_put_bool(json, "is_hidden", one->is_behind);
	json_put_known(json, "last_in", !one->is_by_network && !one->is_behind, one->last_in);
	json_put_double(json, "share_of_time", one->share_of_time);
	json_put_unsigned(json, "late_ns", one->late_ns);
	json_put_unsigned(json, "caused_ns", one->caused_ns);
	json_put_known_double(json, "slowdown", one->slowdown > 0, one->slowdown);
	json_put_known_double(json, "slow_share", one->slow_share > 0, one->slow_share);
	json_put_known_double(json, "own_slowdown", one->is_starved, one->own_slowdown);
	json_put_double(json, "confidence", one->confidence);
	json_put_known(json, "first_ns", one->has_times, one->first_ns);
	json_put_known(json, "last_ns", one->has_times, one->last_ns);
	json_end(json);
}

static void report_json_put_stragglers(struct json *json, const struct timeline_report *report)
{
	const struct stragglers *from = &report->stragglers;

	json_put_object(json, "stragglers");
	json_put_bool(json, "has_enough", from->has_enough);
	json_put_unsigned(json, "meetings", from->matches);
	json_put_unsigned(json, "least_meetings", from->least_matches);
	json_put_unsigned(json, "meetings_for_lateness", from->late_matches);
	json_put_unsigned(json, "explained", from->explained);
	json_put_array(json, "list");
	for (size_t i = 0; i < from->count; i++)
		put_straggler(json, report, &from->list[i]);
	json_end(json);
	json_end(json);
}

static void put_alignment(struct json *json, const struct timeline_report *report)
{
	const struct align *align = &report->align;

	json_put_object(json, "alignment");
	json_put_unsigned(json, "islands", align->island_count);
	json_put_unsigned(json, "unaligned", align->unaligned);
	json_put_known(json, "worst_uncertainty_ns", align->count > 0, align->worst_uncertainty_ns);
	json_end(json);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Rounded: fractions of a nanosecond or byte only come from splitting operations at window borders. */
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

static void put_matrix(struct json *json, const struct timeline_report *report)
{
	const struct windows *windows = &report->windows;
	const struct windows_matrix *matrix = &windows->waiting;
	const struct job *job = &report->job;

	json_put_object(json, "matrix");
	json_put_unsigned(json, "ranks_per_row", matrix->ranks_per_row);
	json_put_array(json, "rows");
	for (size_t i = 0; i < matrix->rows; i++) {
		const struct job_rank *first = &job->ranks[matrix->first_rank[i]];
		const struct job_rank *last = &job->ranks[matrix->last_rank[i]];

		json_object(json);
		json_put_string(json, "first_rank", first->label);
		json_put_string(json, "last_rank", last->label);
		json_put_text_or_null(json, "first_host", job->hosts[first->host].name);
		json_put_text_or_null(json, "last_host", job->hosts[last->host].name);
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
	json_put_bool(json, "is_wire", change->is_wire);
	json_put_known_double(json, "before_bytes_per_second", !change->is_wire,
			      round(change->before));
	json_put_known_double(json, "after_bytes_per_second", !change->is_wire,
			      round(change->after));
	json_put_known(json, "wire_before_ns", change->is_wire, units_whole(1e9 / change->before));
	json_put_known(json, "wire_after_ns", change->is_wire, units_whole(1e9 / change->after));
	json_put_double(json, "percent", change->percent);
	json_put_unsigned(json, "meetings_before", change->matches_before);
	json_put_unsigned(json, "meetings_after", change->matches_after);
	json_put_double(json, "confidence", change->confidence);
	json_put_unsigned(json, "comms", change->comms);
	json_put_unsigned(json, "comms_changed", change->comms_changed);
	json_put_unsigned(json, "ranks_changed", change->ranks_changed);
	json_put_bool(json, "is_everywhere", change->is_everywhere);
	put_index(json, "example_comm_index", change->example_comm);
	json_end(json);
}

void report_json_put_windows(struct json *json, const struct timeline_report *report)
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
	put_matrix(json, report);
	json_end(json);
}

/* ---- iterations ------------------------------------------------------------------------------ */

static void put_iteration(struct json *json, const struct iteration *one)
{
	json_object(json);
	json_put_unsigned(json, "first_op", one->first_op);
	json_put_unsigned(json, "ops", one->ops);
	json_put_unsigned(json, "start_ns", one->start_ns);
	json_put_known(json, "duration_ns", one->end_ns > one->start_ns,
		       one->end_ns - one->start_ns);
	json_put_unsigned(json, "timed", one->timed);
	json_put_known(json, "busy_ns", one->timed == one->ops, one->busy_ns);
	json_put_known(json, "sum_ns", one->timed == one->ops, one->sum_ns);
	json_put_unsigned(json, "bytes", one->bytes);
	json_put_bool(json, "is_odd", one->is_odd);
	json_put_known(json, "exposed_low_ns", one->is_exposed_known, one->exposed_low_ns);
	json_put_known(json, "exposed_high_ns", one->is_exposed_known, one->exposed_high_ns);
	json_put_bool(json, "is_exposed_measured", one->is_exposed_measured);
	json_end(json);
}

static void put_iterations(struct json *json, const struct timeline_report *report,
			   enum report_json_form form)
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
	json_put_known(json, "median_busy_ns", from->timed > 0, from->median_busy_ns);
	json_put_unsigned(json, "p99_ns", from->p99_ns);
	json_put_unsigned(json, "slowest_ns", from->slowest_ns);
	json_put_unsigned(json, "slowest", from->slowest);
	json_put_bool(json, "is_by_end", from->is_by_end);
	json_put_unsigned(json, "exposed", from->exposed);
	json_put_unsigned(json, "exposed_measured", from->exposed_measured);
	json_put_known(json, "exposed_low_ns", from->exposed > 0, from->exposed_low_ns);
	json_put_known(json, "exposed_high_ns", from->exposed > 0, from->exposed_high_ns);
	json_put_unsigned(json, "count", from->count);
	/* The page has its own list, with neighbours merged. */
	if (form == REPORT_JSON_WHOLE) {
		json_put_array(json, "list");
		for (size_t i = 0; i < from->count; i++)
			put_iteration(json, &from->list[i]);
		json_end(json);
	}
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
	json_put_text_or_null(json, "hint", finding->hint);
	put_index(json, "rank_index", finding->rank);
	put_index(json, "host_index", finding->host);
	put_index(json, "comm_index", finding->comm);
	put_index(json, "peer_index", finding->peer);
	json_put_unsigned(json, "count", finding->count);
	json_put_known(json, "of", finding->of != 0, finding->of);
	json_put_known(json, "cost_ns", finding->cost_ns != 0, finding->cost_ns);
	json_put_double(json, "percent", finding->percent);
	json_put_known(json, "at_ns", finding->at_ns != 0, finding->at_ns);
	json_end(json);
}

static void put_findings(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "findings");
	for (size_t i = 0; i < report->findings.count; i++)
		put_finding(json, &report->findings.list[i]);
	json_end(json);
	json_put_unsigned(json, "findings_left_out", report->findings.left_out);
}

/* At most this many kinds of calls that were never timed, most calls first. */
enum { NOT_TIMED_SHOWN = 64 };

/* ---- head ------------------------------------------------------------------------------------ */

static void put_time(struct json *json, const char *key, const char *text_key,
		     const struct timeline_report *report, uint64_t ns)
{
	char text[UNITS_TEXT];

	json_put_known(json, key, ns != 0, ns);
	json_put_string(json, text_key,
			ns != 0 && report->has_wall ? units_wall_time(text, ns) : NULL);
}

static void put_nccl(struct json *json, const struct recording *recording)
{
	unsigned int found = report_interfaces(recording);

	json_put_array(json, "nccl");
	for (unsigned int version = 1; version <= OP_INTERFACES; version++) {
		if (!(found & 1u << version))
			continue;
		json_object(json);
		json_put_unsigned(json, "interface", version);
		json_put_string(json, "release", op_interface_releases(version));
		json_end(json);
	}
	json_end(json);
}

void report_json_put_head(struct json *json, const struct timeline_report *report)
{
	bool is_known = report->start_ns != 0 && report->end_ns >= report->start_ns;
	double seconds;

	json_put_string(json, "format", "ringside-report");
	json_put_unsigned(json, "version", 1);
	json_put_string(json, "ringside", RINGSIDE_VERSION);
	put_nccl(json, report->recording);
	put_time(json, "start_ns", "start", report, report->start_ns);
	put_time(json, "end_ns", "end", report, report->end_ns);
	json_put_known(json, "duration_ns", is_known, report->end_ns - report->start_ns);
	json_put_bool(json, "is_wall_time", report->has_wall);
	put_time(json, "since_ns", "since", report, report->since_ns);
	put_time(json, "until_ns", "until", report, report->until_ns);
	json_put_known_double(json, "busy_share", report->busy_ranks > 0, report->busy_share);
	json_put_known_double(json, "gpu_hours", report->gpu_hours > 0, report->gpu_hours);
	json_put_known_double(json, "gpu_hours_lost", report_knows_waiting(report, &report->total),
			      report->gpu_hours_waited);
	json_put_double(json, "gpu_hours_hung", report->gpu_hours_hung);
	seconds = report_rank_seconds(report);
	json_put_known_double(json, "bytes_per_rank_second", seconds > 0,
			      (double)report->total.bytes / seconds);
	json_put_known_double(json, "calls_per_rank_second", seconds > 0,
			      (double)report->total.calls / seconds);
	json_put_double(json, "quantile_error", TALLY_QUANTILE_ERROR);
}

/* ---- completeness ---------------------------------------------------------------------------- */

static void put_lost(struct json *json, const struct timeline_completeness *from)
{
	json_put_object(json, "lost");
	for (unsigned int i = 0; i < LOST_REASONS; i++)
		if (from->lost[i] > 0 && op_lost_name(i) != NULL)
			json_put_unsigned(json, op_lost_name(i), from->lost[i]);
	json_end(json);
}

void report_json_put_completeness(struct json *json, const struct timeline_report *report)
{
	const struct timeline_completeness *from = &report->completeness;

	json_put_object(json, "completeness");
	json_put_bool(json, "is_complete", from->is_complete);
	json_put_known_double(json, "share", from->issued > 0, from->share);
	json_put_known(json, "issued", from->with_counts > 0, from->issued);
	json_put_unsigned(json, "read", from->read);
	json_put_unsigned(json, "looked_at", from->looked_at);
	json_put_unsigned(json, "in_flight", from->in_flight);
	json_put_unsigned(json, "lost_operations", from->lost_operations);
	put_lost(json, from);
	json_put_unsigned(json, "overwritten", from->overwritten);
	json_put_unsigned(json, "refused", from->refused);
	json_put_unsigned(json, "damaged_blocks", from->damages);
	json_put_unsigned(json, "untimed", from->untimed);
	json_put_unsigned(json, "processes", from->processes);
	json_put_unsigned(json, "with_final_counts", from->with_counts);
	json_put_unsigned(json, "ended", from->ended);
	json_put_unsigned(json, "alive", from->alive);
	json_put_unsigned(json, "killed", from->killed);
	json_put_unsigned(json, "unknown_end", from->unknown_life);
	json_put_bool(json, "keeps_all", from->keeps_all);
	json_put_unsigned(json, "troubles", from->troubles);
	json_end(json);
}

void report_json_put_troubles(struct json *json, const struct recording *recording)
{
	json_put_array(json, "troubles");
	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		json_object(json);
		json_put_string(json, "kind", recording_trouble_name(trouble->kind));
		json_put_string(json, "path", trouble->path);
		json_put_unsigned(json, "offset", trouble->offset);
		json_put_unsigned(json, "bytes", trouble->bytes);
		json_put_string(json, "what", trouble->what);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "troubles_left_out", recording->troubles_left_out);
}

/* ---- jobs, hosts, ranks, communicators ------------------------------------------------------- */

void report_json_put_jobs(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "jobs");
	for (size_t i = 0; i < report->job.group_count; i++) {
		const struct job_group *group = &report->job.groups[i];

		json_object(json);
		json_put_text_or_null(json, "name", group->name);
		json_put_known(json, "world_size", group->world_size > 0,
			       (uint64_t)group->world_size);
		json_put_unsigned(json, "ranks", group->known_ranks);
		json_put_unsigned(json, "processes", group->process_count);
		json_put_unsigned(json, "hosts", group->host_count);
		json_end(json);
	}
	json_end(json);
}

static void report_json_put_hosts(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "hosts");
	for (size_t i = 0; i < report->job.host_count; i++) {
		const struct timeline_host *host = &report->hosts[i];

		json_object(json);
		json_put_text_or_null(json, "name", report->job.hosts[i].name);
		json_put_unsigned(json, "ranks", report->job.hosts[i].known_ranks);
		json_put_unsigned(json, "timed", host->timed);
		json_put_known(json, "sum_ns", host->timed > 0, host->sum_ns);
		json_put_known(json, "total_ns", host->timed > 0,
			       units_whole((double)host->sum_ns + host->covered_ns));
		json_put_known(json, "wait_ns", host->joined_ns > 0, host->wait_ns);
		json_put_known(json, "joined_ns", host->joined_ns > 0, host->joined_ns);
		json_put_known(json, "total_wait_ns", host->joined_ns > 0,
			       units_whole((double)host->wait_ns + host->covered_wait_ns));
		json_put_known_double(json, "busy_share", host->busy_ranks > 0, host->busy_share);
		json_end(json);
	}
	json_end(json);
}

static void put_rank_identity(struct json *json, const struct job_rank *rank)
{
	json_put_string(json, "label", rank->label);
	json_put_natural_or_null(json, "rank", rank->rank);
	json_put_bool(json, "is_derived", rank->is_derived);
	json_put_unsigned(json, "attempt", rank->attempt);
	json_put_unsigned(json, "job_index", rank->group);
	json_put_unsigned(json, "host_index", rank->host);
	json_put_known(json, "gpu", rank->gpu >= 0, (uint64_t)rank->gpu);
	json_put_text_or_null(json, "gpu_uuid", rank->gpu_uuid);
	json_put_known(json, "pid", rank->pid >= 0, (uint64_t)rank->pid);
	json_put_string(json, "state", recording_life_name(rank->life));
}

static void put_rank_clock(struct json *json, const struct align *align, uint32_t process)
{
	if (process >= align->count) {
		json_put_null(json, "clock");
		return;
	}
	json_put_object(json, "clock");
	json_put_string(json, "source", align_source_name(align->processes[process].source));
	json_put_unsigned(json, "island", align->processes[process].island);
	json_put_unsigned(json, "samples", align->processes[process].samples);
	json_put_unsigned(json, "uncertainty_ns", align->processes[process].uncertainty_ns);
	json_end(json);
}

static void report_json_put_ranks(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "ranks");
	for (size_t i = 0; i < report->job.rank_count; i++) {
		const struct timeline_rank *rank = &report->ranks[i];
		bool is_joined =
			rank->joined > 0 && report->matches.complete + report->matches.partial > 0;

		json_object(json);
		put_rank_identity(json, &report->job.ranks[i]);
		json_put_bool(json, "is_shown", rank->is_shown);
		json_put_unsigned(json, "calls", rank->calls);
		json_put_unsigned(json, "in_flight", rank->open);
		json_put_unsigned(json, "timed", rank->timed);
		json_put_unsigned(json, "bytes", rank->bytes);
		json_put_known(json, "sum_ns", rank->timed > 0, rank->sum_ns);
		json_put_known(json, "total_ns", rank->timed > 0,
			       units_whole((double)rank->sum_ns + rank->covered_ns));
		json_put_known(json, "busy_ns", rank->is_busy_known, rank->busy_ns);
		json_put_known(json, "span_ns", rank->span_ns > 0, rank->span_ns);
		json_put_known_double(json, "busy_share", rank->is_busy_known, rank->busy_share);
		json_put_unsigned(json, "joined", rank->joined);
		json_put_known(json, "joined_ns", is_joined, rank->joined_ns);
		json_put_known(json, "wait_ns", is_joined, rank->wait_ns);
		json_put_known(json, "total_wait_ns", is_joined,
			       units_whole((double)rank->wait_ns + rank->covered_wait_ns));
		json_put_known(json, "first_ns", rank->first_ns != 0, rank->first_ns);
		json_put_known(json, "last_ns", rank->last_ns != 0, rank->last_ns);
		put_rank_clock(json, &report->align, report->job.ranks[i].process);
		json_end(json);
	}
	json_end(json);
}

void report_json_put_communicators(struct json *json, const struct timeline_report *report)
{
	json_put_array(json, "communicators");
	for (size_t i = 0; i < report->job.comm_count; i++) {
		const struct timeline_comm *comm = &report->comms[i];
		const struct job_comm *of = &report->job.comms[i];

		json_object(json);
		comm_json_put_identity(json, of);
		json_put_known(json, "missing_ranks", of->nranks > 0, of->missing);
		json_put_bool(json, "is_shown", comm->is_shown);
		json_put_unsigned(json, "complete", comm->complete);
		json_put_unsigned(json, "partial", comm->partial);
		json_put_known(json, "wait_ns", comm->complete + comm->partial > 0, comm->wait_ns);
		json_put_known(json, "total_wait_ns", comm->complete + comm->partial > 0,
			       units_whole((double)comm->wait_ns * comm->scale));
		json_put_unsigned(json, "mismatches", comm->mismatches);
		json_put_known(json, "first_mismatch", comm->first_mismatch != 0,
			       comm->first_mismatch);
		json_end(json);
	}
	json_end(json);
}

/* ---------------------------------------------------------------------------------------------- */

/* Kinds of calls that were never timed. */
static void report_json_put_not_timed(struct json *json, const struct timeline_report *report)
{
	size_t shown =
		report->untimed_count < NOT_TIMED_SHOWN ? report->untimed_count : NOT_TIMED_SHOWN;

	json_put_array(json, "not_timed");
	for (size_t i = 0; i < shown; i++) {
		const struct timeline_untimed *kind = &report->untimed[i];
		const struct tally_key key = { .comm = kind->comm,
					       .function = (uint8_t)kind->names,
					       .datatype = (uint8_t)(kind->names >> 8),
					       .algorithm = (uint8_t)(kind->names >> 16),
					       .protocol = (uint8_t)(kind->names >> 24),
					       .size_class = kind->size_class };

		json_object(json);
		report_key_json(json, report, &key,
				TALLY_BY_COMM | TALLY_BY_FUNCTION | TALLY_BY_SIZE |
					TALLY_BY_DATATYPE | TALLY_BY_ALGORITHM | TALLY_BY_PROTOCOL);
		json_put_unsigned(json, "calls", kind->calls);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "not_timed_left_out", report->untimed_count - shown);
}

static void put_total(struct json *json, const struct timeline_report *report)
{
	json_put_object(json, "total");
	put_figures(json, report, &report->total, true);
	json_end(json);
}

/* The bucket bounds of all histograms, written once. */
static void put_bounds(struct json *json)
{
	json_put_array(json, "histogram_upper_ns");
	for (unsigned int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++)
		json_unsigned(json, histogram_upper_ns(i));
	json_null(json);
	json_end(json);
}

void report_json(struct json *json, const struct timeline_report *report,
		 enum report_json_form form)
{
	json_object(json);
	report_json_put_head(json, report);
	report_json_put_completeness(json, report);
	put_findings(json, report);
	report_json_put_stragglers(json, report);
	put_total(json, report);
	report_json_put_not_timed(json, report);
	put_waiting(json, report);
	put_tables(json, report, form);
	put_bounds(json);
	report_json_put_windows(json, report);
	put_iterations(json, report, form);
	put_alignment(json, report);
	report_json_put_jobs(json, report);
	if (form == REPORT_JSON_WHOLE) {
		report_json_put_hosts(json, report);
		report_json_put_ranks(json, report);
		report_json_put_communicators(json, report);
		report_json_put_links(json, report);
		report_json_put_troubles(json, report->recording);
	}
	json_end(json);
}

static const char *const table_names[] = {
	"name", "comm",	  "kind",    "function",   "size",  "algorithm",
	"rank", "source", "windows", "iterations", "links",
};

const char *report_table_name(size_t index)
{
	return index < ARRAY_LENGTH(table_names) ? table_names[index] : NULL;
}

const struct tally *report_table(const struct timeline_report *report, const char *name)
{
	const struct tally *const tables[] = { &report->by_comm_name, &report->by_comm,
					       &report->by_kind,      &report->by_function,
					       &report->by_size,      &report->by_algorithm,
					       &report->by_rank,      &report->by_source };

	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++)
		if (strcmp(table_names[i], name) == 0)
			return tables[i];
	return NULL;
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* These write the comma before the cell, so the caller writes the first cell of a line. */
static void put_number(struct sink *sink, bool is_known, uint64_t number)
{
	sink_byte(sink, ',');
	if (is_known)
		sink_format(sink, "%" PRIu64, number);
}

static void put_double(struct sink *sink, bool is_known, double number)
{
	sink_byte(sink, ',');
	if (is_known && isfinite(number))
		sink_format(sink, "%.17g", number);
}

/* NULL: unknown. */
static void put_part(struct sink *sink, bool *is_first, const char *text)
{
	if (!*is_first)
		sink_byte(sink, ',');
	*is_first = false;
	if (text != NULL)
		csv_text(sink, text);
}

/* ---- tables by key ----------------------------------------------------------------------------- */

static void write_names(struct sink *sink, uint32_t by)
{
	static const struct tally_row none;
	struct report_figure figures[REPORT_FIGURES];
	bool is_first = true;

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++) {
		if (!(by & 1u << bit))
			continue;
		put_part(sink, &is_first, tally_by_name(bit));
		if (1u << bit == TALLY_BY_SIZE)
			sink_text(sink, ",size_least,size_most");
	}
	report_figures(figures, &none, false);
	for (size_t i = 0; i < REPORT_FIGURES; i++) {
		for (unsigned int n = 0;
		     i == REPORT_FIGURES_BEFORE_SOURCES && n < OP_TIME_SHOWN_SOURCES; n++)
			sink_format(sink, ",from_%s", op_time_source_name((uint8_t)n));
		if (!figures[i].is_json)
			sink_format(sink, ",%s", figures[i].name);
	}
	csv_line(sink);
}

static void write_key(struct sink *sink, const struct timeline_report *report,
		      const struct tally_key *key, uint32_t by)
{
	char text[REPORT_KEY_TEXT];
	bool is_first = true;

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++) {
		uint64_t least = 0, most = 0;
		bool is_known;

		if (!(by & 1u << bit))
			continue;
		put_part(sink, &is_first,
			 report_key_is_known(key, bit) ? report_key_text(report, key, bit, text)
						       : NULL);
		if (1u << bit != TALLY_BY_SIZE)
			continue;
		is_known = op_size_range(key->size_class, &least, &most);
		put_number(sink, is_known, least);
		put_number(sink, is_known, most);
	}
}

static void write_other(struct sink *sink, uint32_t by)
{
	bool is_first = true;

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++) {
		if (!(by & 1u << bit))
			continue;
		put_part(sink, &is_first, "(others)");
		if (1u << bit == TALLY_BY_SIZE)
			sink_text(sink, ",,");
	}
}

static void write_figures(struct sink *sink, const struct timeline_report *report,
			  const struct tally_row *row)
{
	struct report_figure figures[REPORT_FIGURES];

	report_figures(figures, row, report_knows_waiting(report, row));
	for (size_t i = 0; i < REPORT_FIGURES; i++) {
		const struct report_figure *one = &figures[i];

		for (unsigned int n = 0;
		     i == REPORT_FIGURES_BEFORE_SOURCES && n < OP_TIME_SHOWN_SOURCES; n++)
			put_number(sink, true, row->by_source[n]);
		if (one->is_real && !one->is_json)
			put_double(sink, one->is_known, one->real);
		else if (!one->is_json)
			put_number(sink, one->is_known, one->whole);
	}
	csv_line(sink);
}

enum status report_csv_tally(struct sink *sink, const struct timeline_report *report,
			     const struct tally *tally)
{
	write_names(sink, tally->by);
	for (size_t i = 0; i < tally->count; i++) {
		write_key(sink, report, &tally->rows[i].key, tally->by);
		write_figures(sink, report, &tally->rows[i]);
	}
	if (tally->has_other) {
		write_other(sink, tally->by);
		write_figures(sink, report, &tally->other);
	}
	return sink->status;
}

/* ---- over time ------------------------------------------------------------------------------- */

enum status report_csv_windows(struct sink *sink, const struct timeline_report *report)
{
	const struct windows *windows = &report->windows;

	sink_text(sink, "start_ns,width_ns,kind,function,calls,bytes,time_ns,bus_bytes,"
			"move_bus_bytes,move_ns");
	csv_line(sink);
	for (size_t s = 0; s < windows->series_count; s++) {
		const struct windows_series *series = &windows->series[s];

		for (size_t w = 0; w < windows->count; w++) {
			sink_format(sink, "%" PRIu64 ",%" PRIu64 ",",
				    windows->start_ns + w * windows->width_ns, windows->width_ns);
			csv_text(sink, job_comm_kind_name(series->kind));
			sink_byte(sink, ',');
			csv_text(sink, job_name(&report->job, OP_NAMES_FUNCTION, series->function));
			put_double(sink, true, round(series->calls[w] * 100) / 100);
			put_double(sink, true, round(series->bytes[w]));
			put_double(sink, series->time_ns[w] > 0, round(series->time_ns[w]));
			put_double(sink, series->time_ns[w] > 0, round(series->bus_bytes[w]));
			put_double(sink, series->move_ns[w] > 0, round(series->move_bus_bytes[w]));
			put_double(sink, series->move_ns[w] > 0, round(series->move_ns[w]));
			csv_line(sink);
		}
	}
	return sink->status;
}

enum status report_csv_iterations(struct sink *sink, const struct timeline_report *report)
{
	sink_text(sink, "number,first_op,ops,start_ns,duration_ns,busy_ns,sum_ns,bytes,is_odd,"
			"timed,exposed_low_ns,exposed_high_ns,is_exposed_measured");
	csv_line(sink);
	for (size_t i = 0; i < report->iterations.count; i++) {
		const struct iteration *one = &report->iterations.list[i];

		sink_format(sink, "%zu", i + 1);
		put_number(sink, true, one->first_op);
		put_number(sink, true, one->ops);
		put_number(sink, one->start_ns != 0, one->start_ns);
		put_number(sink, one->end_ns >= one->start_ns, one->end_ns - one->start_ns);
		put_number(sink, one->timed == one->ops, one->busy_ns);
		put_number(sink, one->timed == one->ops, one->sum_ns);
		put_number(sink, true, one->bytes);
		put_number(sink, true, one->is_odd);
		put_number(sink, true, one->timed);
		put_number(sink, one->is_exposed_known, one->exposed_low_ns);
		put_number(sink, one->is_exposed_known, one->exposed_high_ns);
		put_number(sink, true, one->is_exposed_measured);
		csv_line(sink);
	}
	return sink->status;
}
