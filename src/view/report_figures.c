/* The columns that every table of a report has. */
#include <inttypes.h>

#include "common/op.h"
#include "common/text.h"
#include "view/report_text.h"
#include "view/report_words.h"

#define HOUR_NS 3.6e12

const char *report_bandwidth(char to[static REPORT_BANDWIDTH], double bytes_per_second)
{
	double gigabytes = bytes_per_second / 1e9;

	if (!(bytes_per_second > 0))
		text_copy(to, REPORT_BANDWIDTH, "-");
	else if (gigabytes < 0.01)
		text_copy(to, REPORT_BANDWIDTH, "<0.01");
	else if (gigabytes < 100)
		text_format(to, REPORT_BANDWIDTH, "%.2f", gigabytes);
	else
		text_format(to, REPORT_BANDWIDTH, "%.1f", gigabytes);
	return to;
}

void report_figures_columns(struct report_grid *grid, bool is_mixed)
{
	report_grid_column(grid, "CALLS", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "IN FLIGHT", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "TIMED", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "BYTES", TABLE_RIGHT, 0, 8);
	report_grid_column(grid, "TIME", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "SHARE", TABLE_RIGHT, 0, 5);
	if (is_mixed)
		report_grid_column(grid, "TIME FROM", TABLE_LEFT, 0, 4);
	report_grid_column(grid, "ALGBW", TABLE_RIGHT, 0, 9);
	report_grid_column(grid, "BUSBW", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "MIN", TABLE_RIGHT, 0, 11);
	report_grid_column(grid, "MEDIAN", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "MEAN", TABLE_RIGHT, 0, 10);
	report_grid_column(grid, "P99", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "MAX", TABLE_RIGHT, 0, 7);
	report_grid_column(grid, "WAITING", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "GPU-H LOST", TABLE_RIGHT, 0, 12);
}

void report_timed_cell(struct report_grid *grid, const struct timeline_report *report,
		       const struct tally_row *row)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid,
			 tally_is_sampled(&report->total) ? units_count(text, row->timed) : "-");
}

void report_total_cells(struct report_grid *grid, const struct timeline_report *report,
			const struct tally_row *row)
{
	const char *mark = report_estimate_mark(row);
	char time[UNITS_TEXT], share[REPORT_SHARE];

	if (row->timed + row->covered == 0) {
		report_grid_cell(grid, "-");
		report_grid_cell(grid, "-");
		return;
	}
	report_grid_cellf(grid, "%s%s", mark,
			  units_duration(time, units_whole(tally_total_ns(row))));
	report_grid_cellf(grid, "%s%s", row->covered > 0 ? "~" : "",
			  report_share(share, tally_total_ns(row), tally_total_ns(&report->total)));
}

static void duration_cell(struct report_grid *grid, bool is_known, double ns)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, is_known ? units_duration(text, (uint64_t)(ns + 0.5)) : "-");
}

/* "gpu", "proxy", "host", or several of them. */
static void source_cell(struct report_grid *grid, const struct tally_row *row)
{
	uint8_t found = OP_TIME_NONE;

	if (report_has_mixed_sources(row)) {
		report_grid_cell(grid, "mixed");
		return;
	}
	for (uint8_t i = OP_TIME_NONE + 1; i < OP_TIME_SOURCES; i++)
		if (row->by_source[i] > 0)
			found = i;
	report_grid_cell(grid, found == OP_TIME_NONE ? "-" : op_time_source_name(found));
}

static void count_cell(struct report_grid *grid, bool is_shown, uint64_t count)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, is_shown ? units_count(text, count) : "-");
}

static void bytes_cell(struct report_grid *grid, const struct tally_row *row)
{
	char text[UNITS_TEXT];

	if (row->calls > 0 && row->calls == row->unknown_size)
		report_grid_cell(grid, "-");
	else
		report_grid_cellf(grid, "%s%s", row->unknown_size ? ">" : "",
				  units_bytes(text, row->bytes));
}

static void waiting_cells(struct report_grid *grid, const struct tally_row *row, bool is_known)
{
	char share[REPORT_SHARE], hours[REPORT_SHARE];
	bool is_tiny;

	if (!is_known) {
		report_grid_cell(grid, "-");
		report_grid_cell(grid, "-");
		return;
	}
	report_grid_cell(grid,
			 report_share(share, tally_total_wait_ns(row), tally_total_joined_ns(row)));
	/* "<0.001" needs no mark. */
	is_tiny = report_hours(hours, tally_total_wait_ns(row) / HOUR_NS)[0] == '<';
	report_grid_cellf(grid, "%s%s", is_tiny ? "" : report_estimate_mark(row), hours);
}

void report_figures_cells(struct report_grid *grid, const struct timeline_report *report,
			  const struct tally_row *row, bool is_mixed)
{
	char bandwidth[REPORT_BANDWIDTH];
	bool is_timed = row->timed > 0;

	count_cell(grid, true, row->calls);
	count_cell(grid, row->open > 0, row->open);
	report_timed_cell(grid, report, row);
	bytes_cell(grid, row);
	report_total_cells(grid, report, row);
	if (is_mixed)
		source_cell(grid, row);
	report_grid_cell(grid, report_bandwidth(bandwidth, tally_algbw(row)));
	report_grid_cell(grid, report_bandwidth(bandwidth, tally_busbw(row)));
	duration_cell(grid, is_timed, (double)row->min_ns);
	duration_cell(grid, is_timed, (double)tally_quantile_ns(row, 0.5));
	duration_cell(grid, is_timed, tally_mean_ns(row));
	duration_cell(grid, row->timed >= TALLY_P99_LEAST, (double)tally_quantile_ns(row, 0.99));
	duration_cell(grid, is_timed, (double)row->max_ns);
	waiting_cells(grid, row, report_knows_waiting(report, row));
}
