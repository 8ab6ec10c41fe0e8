/* Rows and tables of a report. */
#include <math.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "view/report_json.h"
#include "view/report_key.h"
#include "view/report_words.h"

#define HOUR_NS 3.6e12

void report_json_put_known(struct json *json, const char *key, bool is_known, uint64_t number)
{
	if (is_known)
		json_put_unsigned(json, key, number);
	else
		json_put_null(json, key);
}

void report_json_put_ratio(struct json *json, const char *key, bool is_known, double number)
{
	if (is_known)
		json_put_double(json, key, number);
	else
		json_put_null(json, key);
}

void report_json_put_text(struct json *json, const char *key, const char *text)
{
	json_put_string(json, key, text[0] ? text : NULL);
}

static void put_sources(struct json *json, const struct tally_row *row)
{
	json_put_object(json, "sources");
	for (unsigned int i = 0; i < OP_TIME_SOURCES; i++)
		json_put_unsigned(json, op_time_source_name((uint8_t)i), row->by_source[i]);
	json_end(json);
}

static void put_times(struct json *json, const struct tally_row *row)
{
	bool is_timed = row->timed > 0;

	report_json_put_known(json, "sum_ns", is_timed, row->sum_ns);
	report_json_put_known(json, "total_ns", row->timed + row->covered > 0,
			      units_whole(tally_total_ns(row)));
	report_json_put_known(json, "min_ns", is_timed, row->min_ns);
	report_json_put_known(json, "median_ns", is_timed, tally_quantile_ns(row, 0.5));
	report_json_put_ratio(json, "mean_ns", is_timed, tally_mean_ns(row));
	report_json_put_known(json, "p90_ns", row->timed >= TALLY_P90_LEAST,
			      tally_quantile_ns(row, 0.9));
	report_json_put_known(json, "p99_ns", row->timed >= TALLY_P99_LEAST,
			      tally_quantile_ns(row, 0.99));
	report_json_put_known(json, "max_ns", is_timed, row->max_ns);
	report_json_put_ratio(json, "deviation_ns", row->timed > 1, tally_deviation_ns(row));
}

static void put_bandwidth(struct json *json, const struct tally_row *row)
{
	double algbw = tally_algbw(row), busbw = tally_busbw(row);

	report_json_put_ratio(json, "algbw_bytes_per_second", algbw > 0, round(algbw));
	report_json_put_ratio(json, "busbw_bytes_per_second", busbw > 0, round(busbw));
}

static void put_waiting(struct json *json, const struct tally_row *row, bool is_known)
{
	json_put_unsigned(json, "joined", row->joined);
	report_json_put_known(json, "joined_ns", is_known, row->joined_ns);
	report_json_put_known(json, "wait_ns", is_known, row->wait_ns);
	report_json_put_known(json, "total_wait_ns", is_known,
			      units_whole(tally_total_wait_ns(row)));
	report_json_put_ratio(json, "wait_share", is_known && row->joined_ns > 0,
			      tally_wait_share(row));
	report_json_put_ratio(json, "gpu_hours_lost", is_known, tally_total_wait_ns(row) / HOUR_NS);
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

static void put_figures(struct json *json, const struct tally_row *row, bool knows_waiting,
			bool has_histogram)
{
	json_put_unsigned(json, "calls", row->calls);
	json_put_unsigned(json, "in_flight", row->open);
	json_put_unsigned(json, "captured", row->captured);
	json_put_unsigned(json, "unknown_size", row->unknown_size);
	json_put_unsigned(json, "untrusted", row->untrusted);
	report_json_put_known(json, "bytes", row->calls > row->unknown_size || row->calls == 0,
			      row->bytes);
	json_put_unsigned(json, "timed", row->timed);
	json_put_unsigned(json, "estimated", row->covered);
	json_put_unsigned(json, "not_timed", tally_not_timed(row));
	put_sources(json, row);
	put_times(json, row);
	put_bandwidth(json, row);
	put_waiting(json, row, knows_waiting);
	if (has_histogram)
		put_histogram(json, &row->histogram);
}

void report_json_figures(struct json *json, const struct tally_row *row, bool has_histogram)
{
	put_figures(json, row, row->joined > 0, has_histogram);
}

void report_json_row(struct json *json, const struct timeline_report *report,
		     const struct tally_row *row, bool has_histogram)
{
	put_figures(json, row, report_knows_waiting(report, row), has_histogram);
}

void report_json_put_by(struct json *json, uint32_t by)
{
	json_put_array(json, "by");
	for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
		if (by & 1u << bit)
			json_string(json, tally_by_name(bit));
	json_end(json);
}

void report_json_table(struct json *json, const struct timeline_report *report,
		       const struct tally *tally, bool has_histograms)
{
	json_object(json);
	report_json_put_by(json, tally->by);
	json_put_array(json, "rows");
	for (size_t i = 0; i < tally->count; i++) {
		json_object(json);
		report_key_json(json, report, &tally->rows[i].key, tally->by);
		report_json_row(json, report, &tally->rows[i], has_histograms);
		json_end(json);
	}
	json_end(json);
	if (tally->has_other) {
		json_put_object(json, "other");
		report_json_row(json, report, &tally->other, has_histograms);
		json_end(json);
	} else {
		json_put_null(json, "other");
	}
	json_end(json);
}

void report_json_put_tables(struct json *json, const struct timeline_report *report,
			    unsigned int flags)
{
	const struct {
		const char *name;
		const struct tally *tally;
		bool is_wide;
		bool has_histograms;
	} tables[] = {
		{ "name", &report->by_comm_name, false, false },
		{ "comm", &report->by_comm, true, false },
		{ "kind", &report->by_kind, false, false },
		{ "function", &report->by_function, false, true },
		{ "size", &report->by_size, false, true },
		{ "algorithm", &report->by_algorithm, false, false },
		{ "rank", &report->by_rank, true, false },
		{ "source", &report->by_source, false, false },
	};

	json_put_object(json, "tables");
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
		if (tables[i].is_wide && !(flags & REPORT_JSON_WIDE))
			continue;
		json_key(json, tables[i].name);
		report_json_table(json, report, tables[i].tally,
				  tables[i].has_histograms || flags & REPORT_JSON_HISTOGRAMS);
	}
	json_end(json);
	json_put_array(json, "custom");
	for (size_t i = 0; i < report->custom_count; i++)
		report_json_table(json, report, &report->custom[i], true);
	json_end(json);
}
