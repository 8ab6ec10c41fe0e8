#include "output/report.h"
#include "output/report_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "output/sink.h"

static const char *const table_names[] = {
	"name",	     "comm", "kind",   "function", "size",
	"algorithm", "rank", "source", "windows",  "iterations",
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
		for (unsigned int n = 0; i == REPORT_FIGURES_BEFORE_SOURCES && n < OP_TIME_SOURCES;
		     n++)
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

		for (unsigned int n = 0; i == REPORT_FIGURES_BEFORE_SOURCES && n < OP_TIME_SOURCES;
		     n++)
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
			"timed");
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
		csv_line(sink);
	}
	return sink->status;
}
