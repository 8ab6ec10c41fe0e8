/* The report as text: first a summary that fits a screen, then tables, charts and iterations. */
#include "output/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/text.h"
#include "output/table.h"

/* With more names than this, families of names are shown instead. */
enum { REPORT_NAMES_SHOWN = 20 };

/* ---- parts ----------------------------------------------------------------------------------- */

enum { REPORT_TEXT_WIDTH = 80, REPORT_TEXT_LINES = 24 };

static double chart_largest(const double *values, size_t count)
{
	double most = 0;

	for (size_t i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	return most;
}

/* Mean of the positive values that share one character. */
static double mean_of(const double *values, size_t first, size_t after)
{
	double sum = 0;
	size_t used = 0;

	for (size_t i = first; i < after; i++) {
		if (values[i] > 0) {
			sum += values[i];
			used++;
		}
	}
	return used ? sum / (double)used : 0;
}

void report_chart(struct sink *to, const double *values, size_t count, size_t most, bool has_blocks)
{
	/* U+2581 to U+2588: a block of one to eight eighths. */
	static const char *const blocks[] = { "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
					      "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
					      "\xe2\x96\x87", "\xe2\x96\x88" };
	static const char *const digits[] = { "1", "2", "3", "4", "5", "6", "7", "8" };
	double top = chart_largest(values, count);
	size_t wide = count < most ? count : most;

	for (size_t i = 0; i < wide; i++) {
		double value = mean_of(values, i * count / wide, (i + 1) * count / wide);
		int step = top > 0 ? (int)(value / top * 8) : 0;

		if (!(value > 0))
			sink_text(to, " ");
		else
			sink_text(to, (has_blocks ? blocks : digits)[step > 7 ? 7 : step]);
	}
}

/* ---- figures of a row ----------------------------------------------------------------------- */

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

/* is_mixed: name the source of durations. */
static void report_figures_columns(struct report_grid *grid, bool is_mixed)
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

/* "-" where all calls of the report were timed: the column is then omitted. */
static void report_timed_cell(struct report_grid *grid, const struct timeline_report *report,
			      const struct tally_row *row)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid,
			 tally_is_sampled(&report->total) ? units_count(text, row->timed) : "-");
}

/* Columns TIME and SHARE: totals, marked where they are estimates. */
static void report_total_cells(struct report_grid *grid, const struct timeline_report *report,
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

/* "kernel_gpu", "cuda_event", "tool", or several of them. */
static void source_cell(struct report_grid *grid, const struct tally_row *row)
{
	uint8_t found = OP_TIME_NONE;

	if (report_has_mixed_sources(row)) {
		report_grid_cell(grid, "mixed");
		return;
	}
	for (uint8_t i = OP_TIME_NONE + 1; i < OP_TIME_SHOWN_SOURCES; i++)
		if (op_is_duration(i) && row->by_source[i] > 0)
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

static void report_figures_cells(struct report_grid *grid, const struct timeline_report *report,
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

/* ---- summary --------------------------------------------------------------------------------- */

enum { COST_MOST = 3, NAME_LEAST = 8, FINDINGS_SHOWN = 12 };

unsigned int report_text_width(const struct report_text_options *options)
{
	return options->width > 0 ? options->width : REPORT_TEXT_WIDTH;
}

/* What --since and --until came to. */
static void write_window(struct sink *sink, const struct timeline_report *report,
			 unsigned int width)
{
	char from[UNITS_TEXT], to[UNITS_TEXT], words[REPORT_WORDS] = "";

	if (report->since_ns != 0)
		text_append(words, sizeof(words), "from %s UTC%s",
			    units_date(from, report->since_ns), report->until_ns ? " " : "");
	if (report->until_ns != 0)
		text_append(words, sizeof(words), "until %s UTC", units_date(to, report->until_ns));
	if (words[0] != '\0')
		table_wrap(sink, words, "time range: ", 2, width);
}

void report_text_head(struct sink *sink, const struct timeline_report *report,
		      const struct report_text_options *options)
{
	char job[REPORT_WORDS], nccl[REPORT_WORDS], span[REPORT_WORDS];
	unsigned int width = report_text_width(options);
	struct sink text;

	report_words_job(report, job);
	report_words_nccl(report->recording, nccl);
	report_words_span(report, span);
	sink_init_memory(&text);
	sink_format(&text, "%s, %s%s%s", job, nccl, span[0] ? "; " : "", span);
	table_wrap(sink, sink_string(&text), "", 2, width);
	sink_release(&text);
	write_window(sink, report, width);
	sink_init_memory(&text);
	report_words_completeness(report, &text);
	table_wrap(sink, sink_string(&text), "", 2, width);
	sink_release(&text);
}

/* Shares of the least and the most busy rank. */
static void busy_range(const struct timeline_report *report, double *least, double *most)
{
	*least = 2;
	*most = -1;
	for (size_t i = 0; i < report->job.rank_count; i++) {
		const struct timeline_rank *rank = &report->ranks[i];

		if (!rank->is_shown || !rank->is_busy_known)
			continue;
		*least = rank->busy_share < *least ? rank->busy_share : *least;
		*most = rank->busy_share > *most ? rank->busy_share : *most;
	}
}

static void write_busy(struct sink *text, const struct timeline_report *report)
{
	char share[REPORT_SHARE], low[REPORT_SHARE], high[REPORT_SHARE], bytes[UNITS_TEXT];
	double least, most;

	busy_range(report, &least, &most);
	if (most < 0) {
		sink_format(text, "communication: unknown share of run time%s, %s in messages",
			    report->total.timed == 0 ? " (no call was timed)"
			    : report->job.known_ranks < report->job.rank_count
				    ? " (ranks of a process cannot be distinguished)"
				    : "",
			    units_bytes(bytes, report->total.bytes));
		return;
	}
	report_share(share, report->busy_share, 1);
	report_share(low, least, 1);
	report_share(high, most, 1);
	sink_format(text, "communication: %s%s of run time", report_estimate_mark(&report->total),
		    share);
	if (strcmp(low, high) != 0)
		sink_format(text, " (%s to %s by rank)", low, high);
	sink_format(text, ", %s in messages", units_bytes(bytes, report->total.bytes));
}

static void write_waiting(struct sink *text, const struct timeline_report *report)
{
	char share[REPORT_SHARE], lost[REPORT_WORDS];

	if (!report_knows_waiting(report, &report->total)) {
		sink_text(text,
			  "waiting: unknown, no timed collective of several ranks to compare");
		return;
	}
	report_share(share, tally_total_wait_ns(&report->total),
		     tally_total_joined_ns(&report->total));
	report_words_lost(report->gpu_hours_waited, report->gpu_hours, lost);
	sink_format(text, "waiting: %s of collective time, %s%s lost", share,
		    report_estimate_mark(&report->total), lost);
}

static void write_hung(struct sink *sink, const struct timeline_report *report, unsigned int width)
{
	char lost[REPORT_WORDS];

	if (report->gpu_hours_hung <= 0)
		return;
	report_words_lost(report->gpu_hours_hung, report->gpu_hours + report->gpu_hours_hung, lost);
	text_append(lost, sizeof(lost), " lost at the end");
	table_wrap(sink, lost, "hang: ", 2, width);
}

static void write_shares(struct sink *sink, const struct timeline_report *report,
			 unsigned int width)
{
	char words[REPORT_WORDS];
	struct sink text;

	sink_init_memory(&text);
	write_busy(&text, report);
	table_wrap(sink, sink_string(&text), "", 2, width);
	sink_release(&text);
	sink_init_memory(&text);
	write_waiting(&text, report);
	table_wrap(sink, sink_string(&text), "", 2, width);
	sink_release(&text);
	write_hung(sink, report, width);
	report_words_sources(&report->total, words);
	table_wrap(sink, words, report->total.timed > 0 ? "durations: from " : "durations: ", 2,
		   width);
	report_words_timed(&report->total, words);
	if (words[0] != '\0' && report->total.covered > 0)
		text_format(words + strlen(words), sizeof(words) - strlen(words),
			    "; totals (~) are estimated from these");
	if (words[0] != '\0')
		table_wrap(sink, words, "timed: ", 2, width);
	report_words_not_timed(report, words);
	if (words[0] != '\0' && report->total.timed > 0)
		table_wrap(sink, words, "not timed, excluded from totals: ", 2, width);
	report_words_links(report, words);
	if (words[0] != '\0' && report->gpu_hours_hung <= 0)
		table_wrap(sink, words, "network: ", 2, width);
	report_words_rates(report, words);
	if (words[0] != '\0')
		table_wrap(sink, words, "per rank: ", 2, width);
	report_words_spans(&report->total, words);
	if (words[0] != '\0')
		table_wrap(sink, words, "not durations: ", 2, width);
}

static void cost_cells(struct report_grid *grid, const struct timeline_report *report,
		       const struct tally_row *row)
{
	char text[UNITS_TEXT], share[REPORT_SHARE], bandwidth[REPORT_BANDWIDTH];
	bool is_timed = row->timed > 0;

	report_grid_cell(grid, units_count(text, row->calls));
	report_timed_cell(grid, report, row);
	report_total_cells(grid, report, row);
	report_grid_cell(grid, report_bandwidth(bandwidth, tally_busbw(row)));
	report_grid_cell(grid, is_timed ? units_duration(text, tally_quantile_ns(row, 0.5)) : "-");
	report_grid_cell(grid, report_knows_waiting(report, row)
				       ? report_share(share, tally_total_wait_ns(row),
						      tally_total_joined_ns(row))
				       : "-");
}

static void cost_columns(struct report_grid *grid)
{
	report_grid_column(grid, "CALLS", TABLE_RIGHT, 0, 4);
	report_grid_column(grid, "TIMED", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "TIME", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "SHARE", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "BUSBW", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "MEDIAN", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "WAITING", TABLE_RIGHT, 0, 2);
}

static enum status write_answer_comms(struct sink *sink, const struct timeline_report *report,
				      unsigned int width)
{
	const unsigned int job_bit = (unsigned int)__builtin_ctz(TALLY_BY_GROUP);
	bool has_jobs = report->job.group_count > 1;
	struct report_grid_left_out ignored = { .count = 0 };
	struct report_families families;
	char text[REPORT_KEY_TEXT];
	struct report_grid grid;
	enum status status;

	status = report_families_make(&families, report,
				      report->by_comm_name.count <= REPORT_NAMES_SHOWN);
	if (status != OK)
		return status;
	report_grid_init(&grid);
	report_grid_column(&grid, "COMMUNICATORS", TABLE_LEFT, NAME_LEAST, 0);
	if (has_jobs)
		report_grid_column(&grid, "JOB", TABLE_LEFT, NAME_LEAST, 0);
	report_grid_column(&grid, "KIND", TABLE_LEFT, 0, 5);
	cost_columns(&grid);
	for (size_t i = 0; i < families.count && i < COST_MOST; i++) {
		const struct report_family *family = &families.list[i];

		report_grid_cell(&grid, family->name);
		if (has_jobs)
			report_grid_cell(&grid,
					 report_key_text(report, &family->row.key, job_bit, text));
		report_grid_cell(&grid, job_comm_kind_name(family->kind));
		cost_cells(&grid, report, &family->row);
	}
	status = report_grid_write(&grid, sink, width, &ignored);
	report_grid_release(&grid);
	report_families_release(&families);
	return status;
}

static enum status write_functions(struct sink *sink, const struct timeline_report *report,
				   unsigned int width)
{
	const unsigned int bit = (unsigned int)__builtin_ctz(TALLY_BY_FUNCTION);
	const struct tally *tally = &report->by_function;
	struct report_grid_left_out ignored = { .count = 0 };
	char text[REPORT_KEY_TEXT];
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	report_grid_column(&grid, "OPERATIONS", TABLE_LEFT, NAME_LEAST, 0);
	cost_columns(&grid);
	for (size_t i = 0; i < tally->count && i < COST_MOST; i++) {
		report_grid_cell(&grid, report_key_text(report, &tally->rows[i].key, bit, text));
		cost_cells(&grid, report, &tally->rows[i]);
	}
	status = report_grid_write(&grid, sink, width, &ignored);
	report_grid_release(&grid);
	return status;
}

/* ---- stragglers and findings ----------------------------------------------------------------- */

static void write_stragglers(struct sink *sink, const struct timeline_report *report,
			     unsigned int width)
{
	const struct stragglers *from = &report->stragglers;
	char words[REPORT_WORDS];
	struct sink text;

	sink_init_memory(&text);
	/* One cause can make several ranks late; the others are among the findings. */
	if (from->count > 0) {
		report_words_straggler(report, &from->list[0], words);
		sink_text(&text, words);
	}
	if (from->count > 1)
		sink_format(&text, " and %zu more", from->count - 1);
	if (from->count == 0 && from->has_enough && from->late_matches == 0)
		sink_format(&text,
			    "not judged, no call was timed; slow links: none (%" PRIu64
			    " %s compared)",
			    from->matches, text_which(from->matches, "collective", "collectives"));
	else if (from->count == 0 && from->has_enough)
		sink_format(&text, "none (%" PRIu64 " %s compared)", from->matches,
			    text_which(from->matches, "collective", "collectives"));
	else if (from->count == 0)
		sink_format(&text,
			    "not judged, too few collectives to compare (%" PRIu64 " of %" PRIu32
			    ")",
			    from->matches, from->least_matches);
	table_wrap(sink, sink_string(&text), "stragglers: ", 2, width);
	sink_release(&text);
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

static void write_finding(struct sink *sink, const struct finding *finding, unsigned int width,
			  bool has_text)
{
	char first[32];

	text_format(first, sizeof(first), "- %s: ", findings_severity_name(finding->severity));
	if (finding->severity == FINDINGS_NOTE)
		text_copy(first, sizeof(first), "- ");
	table_wrap(sink, finding->title, first, 2, width);
	if (has_text && finding->text[0] != '\0')
		table_wrap(sink, finding->text, "  ", 2, width);
	if (finding->hint[0] != '\0')
		table_wrap(sink, finding->hint, "  -> ", 5, width);
}

static size_t lines_of_all(const struct findings *findings, unsigned int width)
{
	struct sink all;
	size_t lines;

	sink_init_memory(&all);
	for (size_t i = 0; i < findings->count && i < FINDINGS_SHOWN; i++)
		write_finding(&all, &findings->list[i], width, true);
	lines = count_lines(sink_string(&all));
	sink_release(&all);
	return lines;
}

/* In full if all of them fit. Otherwise as many as fit without their texts, at least one; the last line counts the
 * rest. Returns whether all were written in full. */
static bool write_findings(struct sink *sink, const struct findings *findings, size_t lines,
			   unsigned int width)
{
	bool is_full = findings->count <= FINDINGS_SHOWN && findings->left_out == 0 &&
		       lines_of_all(findings, width) <= lines;
	bool is_fitting;
	size_t i, next;
	struct sink one;

	for (i = 0; i < findings->count && i < FINDINGS_SHOWN; i++) {
		sink_init_memory(&one);
		write_finding(&one, &findings->list[i], width, is_full);
		next = count_lines(sink_string(&one));
		is_fitting = next + (i + 1 < findings->count) <= lines;
		if (is_fitting || i == 0)
			sink_text(sink, sink_string(&one));
		sink_release(&one);
		if (!is_fitting && i > 0)
			break;
		lines -= next < lines ? next : lines;
	}
	if (i < findings->count)
		sink_format(sink, "- %zu more below\n", findings->count - i + findings->left_out);
	return is_full;
}

static void report_text_findings(struct sink *sink, const struct timeline_report *report,
				 const struct report_text_options *options)
{
	const struct findings *from = &report->findings;

	sink_text(sink, "\nAll findings\n");
	for (size_t i = 0; i < from->count; i++)
		write_finding(sink, &from->list[i], report_text_width(options), true);
	if (from->left_out > 0)
		sink_format(sink, "(%zu more omitted)\n", from->left_out);
}

/* ---------------------------------------------------------------------------------------------- */

static void write_summary_findings(struct sink *text, const struct timeline_report *report,
				   unsigned int width, bool *has_all)
{
	size_t lines = count_lines(sink_string(text)) + 1;

	*has_all = true;
	if (report->findings.count == 0) {
		sink_text(text, "Findings: none\n");
		return;
	}
	sink_text(text,
		  report->findings.list[0].severity > FINDINGS_NOTE ? "Findings:\n" : "Notes:\n");
	*has_all = write_findings(text, &report->findings,
				  lines < REPORT_TEXT_LINES ? REPORT_TEXT_LINES - lines : 1, width);
}

/* *has_all_findings: all findings were written in full, so they need no section of their own. */
static enum status report_text_first(struct sink *sink, const struct timeline_report *report,
				     const struct report_text_options *options,
				     bool *has_all_findings)
{
	unsigned int width = report_text_width(options);
	enum status status = OK;
	struct sink text;

	sink_init_memory(&text);
	report_text_head(&text, report, options);
	if (report->total.calls > 0) {
		write_shares(&text, report, width);
		sink_text(&text, "\n");
		status = write_answer_comms(&text, report, width);
		if (status == OK)
			status = write_functions(&text, report, width);
		sink_text(&text, "\n");
		write_stragglers(&text, report, width);
	}
	write_summary_findings(&text, report, width, has_all_findings);
	if (status == OK)
		status = text.status;
	sink_text(sink, sink_string(&text));
	sink_release(&text);
	return status == OK ? sink->status : status;
}

enum status report_text_answer(struct sink *sink, const struct timeline_report *report,
			       const struct report_text_options *options)
{
	bool has_all;

	return report_text_first(sink, report, options, &has_all);
}

/* ---- ranks: a straggler is the one that waits least ------------------------------------------ */

enum { RANKS_ALL = 20, RANKS_EACH = 8, HOST_LEAST = 8 };

static double wait_share(const struct tally_row *row)
{
	return row->joined_ns ? tally_wait_share(row) : -1;
}

/* By share of waiting, unknown ones last; ties by rank. */
static int by_waiting(const void *left, const void *right)
{
	const struct tally_row *a = *(const struct tally_row *const *)left;
	const struct tally_row *b = *(const struct tally_row *const *)right;
	bool is_known_a = a->joined_ns > 0, is_known_b = b->joined_ns > 0;

	if (is_known_a != is_known_b)
		return is_known_a ? -1 : 1;
	if (wait_share(a) != wait_share(b))
		return wait_share(a) < wait_share(b) ? -1 : 1;
	return ORDER(a->key.rank, b->key.rank);
}

static void add_rank_columns(struct report_grid *grid, const struct timeline_report *report)
{
	report_grid_column(grid, "RANK", TABLE_RIGHT, 0, 0);
	if (report->job.group_count > 1)
		report_grid_column(grid, "JOB", TABLE_LEFT, HOST_LEAST, 7);
	report_grid_column(grid, "HOST", TABLE_LEFT, HOST_LEAST, 5);
	report_grid_column(grid, "GPU", TABLE_RIGHT, 0, 9);
	report_grid_column(grid, "STATE", TABLE_LEFT, 0, 8);
	report_grid_column(grid, "BUSY", TABLE_RIGHT, 0, 4);
	report_figures_columns(grid, report_has_mixed_sources(&report->total));
}

static void add_rank(struct report_grid *grid, const struct timeline_report *report,
		     const struct tally_row *row)
{
	const struct job_rank *rank = &report->job.ranks[row->key.rank];
	const struct timeline_rank *figures = &report->ranks[row->key.rank];
	char share[REPORT_SHARE];

	report_grid_cell(grid, rank->label);
	if (report->job.group_count > 1)
		report_grid_cell(grid, report->job.groups[rank->group].name[0]
					       ? report->job.groups[rank->group].name
					       : "-");
	report_grid_cell(grid, report->job.hosts[rank->host].name[0]
				       ? report->job.hosts[rank->host].name
				       : "-");
	if (rank->gpu >= 0)
		report_grid_cellf(grid, "%d", rank->gpu);
	else
		report_grid_cell(grid, "-");
	report_grid_cell(grid, recording_life_name(rank->life));
	if (figures->is_busy_known)
		report_grid_cellf(grid, "%s%s", report_estimate_mark(row),
				  report_share(share, figures->busy_share, 1));
	else
		report_grid_cell(grid, "-");
	report_figures_cells(grid, report, row, report_has_mixed_sources(&report->total));
}

/* The first `head` rows and the last `tail` of the first `known` ones. */
static enum status write_ranks(struct sink *sink, const struct timeline_report *report,
			       const struct tally_row **rows, size_t head, size_t tail,
			       size_t known, unsigned int width,
			       struct report_grid_left_out *left_out)
{
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	add_rank_columns(&grid, report);
	for (size_t i = 0; i < head; i++)
		add_rank(&grid, report, rows[i]);
	if (tail > 0)
		report_grid_note(&grid, "... %zu more %s (--all shows them) ...",
				 known - head - tail,
				 text_which(known - head - tail, "rank", "ranks"));
	for (size_t i = known - tail; i < known; i++)
		add_rank(&grid, report, rows[i]);
	status = report_grid_write(&grid, sink, width, left_out);
	report_grid_release(&grid);
	return status;
}

/* If there are many, only those that waited least and most. left_out: see table.h. */
static enum status report_text_ranks(struct sink *sink, const struct timeline_report *report,
				     const struct report_text_options *options,
				     struct report_grid_left_out *left_out)
{
	size_t count = report->by_rank.count, known = 0;
	const struct tally_row **rows = calloc(count + 1, sizeof(*rows));
	char text[UNITS_TEXT];
	enum status status;

	if (rows == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < count; i++) {
		rows[i] = &report->by_rank.rows[i];
		known += rows[i]->joined_ns > 0;
	}
	if (options->has_all || count <= RANKS_ALL) {
		status = write_ranks(sink, report, rows, count, 0, count, options->width, left_out);
	} else if (known >= 2 * (size_t)RANKS_EACH) {
		qsort(rows, count, sizeof(*rows), by_waiting);
		sink_format(
			sink,
			"The %d ranks that waited least (the others waited for them) and the %d "
			"that waited most.\n",
			RANKS_EACH, RANKS_EACH);
		status = write_ranks(sink, report, rows, RANKS_EACH, RANKS_EACH, known,
				     options->width, left_out);
	} else {
		status = write_ranks(sink, report, rows, RANKS_ALL, 0, RANKS_ALL, options->width,
				     left_out);
		sink_format(sink, "(%s ranks in total; --all shows them)\n",
			    units_count(text, count));
	}
	free(rows);
	return status;
}

/* ---- over time ------------------------------------------------------------------------------- */

enum { SERIES_SHOWN = 8, CHANGES_SHOWN = 8, CHART_NARROW = 24, CHART_WIDE = 60, WIDE_FROM = 120 };

static size_t chart_width(const struct report_text_options *options)
{
	return options->width == 0 || options->width >= WIDE_FROM ? CHART_WIDE : CHART_NARROW;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* The values of one chart; 0 where there is none. */
struct line {
	double *values; /* [count] */
	double *sorted; /* those above 0 */
	size_t count;
	size_t used;
};

static void sort_line(struct line *line)
{
	line->used = 0;
	for (size_t i = 0; i < line->count; i++)
		if (line->values[i] > 0)
			line->sorted[line->used++] = line->values[i];
	stats_sort(line->sorted, line->used);
}

/* busbw without waiting where ranks could be compared, else with it. Returns whether it is without. */
static bool fill_bandwidth(struct line *line, const struct windows_series *series)
{
	bool has_moves = false;

	for (size_t i = 0; i < line->count; i++)
		has_moves |= series->move_ns[i] > 0;
	for (size_t i = 0; i < line->count; i++) {
		double bytes = has_moves ? series->move_bus_bytes[i] : series->bus_bytes[i];
		double ns = has_moves ? series->move_ns[i] : series->time_ns[i];

		line->values[i] = ns > 0 ? bytes / ns * 1e9 : 0;
	}
	sort_line(line);
	return has_moves;
}

static double series_time(const struct windows_series *series, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += series->time_ns[i];
	return sum;
}

static void chart_cell(struct report_grid *grid, const struct line *line,
		       const struct report_text_options *options)
{
	struct sink chart;

	sink_init_memory(&chart);
	report_chart(&chart, line->values, line->count, chart_width(options), options->has_blocks);
	report_grid_cell(grid, sink_string(&chart));
	sink_release(&chart);
}

static void add_series(struct report_grid *grid, const struct timeline_report *report,
		       const struct windows_series *series, struct line *line,
		       const struct report_text_options *options)
{
	bool is_move = fill_bandwidth(line, series);
	char text[REPORT_BANDWIDTH];

	if (line->used == 0)
		return;
	report_grid_cell(grid, job_name(&report->job, OP_NAMES_FUNCTION, series->function));
	report_grid_cell(grid, job_comm_kind_name(series->kind));
	chart_cell(grid, line, options);
	report_grid_cell(grid, report_bandwidth(text, line->sorted[0]));
	report_grid_cell(grid, report_bandwidth(text, line->sorted[line->used / 2]));
	report_grid_cell(grid, report_bandwidth(text, line->sorted[line->used - 1]));
	report_grid_cell(grid, is_move ? "busbw without waiting" : "busbw with waiting");
}

/* Waiting of all ranks as a share of the time of matched collectives. */
static void add_waiting(struct report_grid *grid, const struct windows *windows, struct line *line,
			const struct report_text_options *options)
{
	const struct windows_matrix *matrix = &windows->waiting;
	char text[REPORT_SHARE];

	for (size_t w = 0; w < line->count; w++) {
		double wait = 0, joined = 0;

		for (size_t r = 0; r < matrix->rows; r++) {
			wait += matrix->wait_ns[r * windows->count + w];
			joined += matrix->joined_ns[r * windows->count + w];
		}
		line->values[w] = joined > 0 ? wait / joined : 0;
	}
	sort_line(line);
	if (line->used == 0)
		return;
	report_grid_cell(grid, "waiting");
	report_grid_cell(grid, "all");
	chart_cell(grid, line, options);
	report_grid_cell(grid, report_share(text, line->sorted[0], 1));
	report_grid_cell(grid, report_share(text, line->sorted[line->used / 2], 1));
	report_grid_cell(grid, report_share(text, line->sorted[line->used - 1], 1));
	report_grid_cell(grid, "share of collective time");
}

/* Indices of the series, the longest time first. */
static void order_series(const struct windows *windows, size_t *order)
{
	for (size_t i = 0; i < windows->series_count; i++) {
		double time = series_time(&windows->series[i], windows->count);
		size_t at = i;

		for (;
		     at > 0 && series_time(&windows->series[order[at - 1]], windows->count) < time;
		     at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static void write_charts(struct report_grid *grid, const struct timeline_report *report,
			 struct line *line, const struct report_text_options *options)
{
	const struct windows *windows = &report->windows;
	size_t order[WINDOWS_SERIES_MAX];
	size_t shown = windows->series_count;

	if (shown > WINDOWS_SERIES_MAX)
		return;
	order_series(windows, order);
	if (!options->has_all && shown > SERIES_SHOWN)
		shown = SERIES_SHOWN;
	report_grid_column(grid, "OPERATION", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "KIND", TABLE_LEFT, 0, 4);
	report_grid_column(grid, "OVER TIME", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "MIN", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "MEDIAN", TABLE_RIGHT, 0, 1);
	report_grid_column(grid, "MAX", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "VALUE", TABLE_LEFT, 0, 5);
	for (size_t i = 0; i < shown; i++)
		add_series(grid, report, &windows->series[order[i]], line, options);
	add_waiting(grid, windows, line, options);
}

static void write_changes(struct sink *sink, const struct timeline_report *report,
			  const struct report_text_options *options)
{
	const struct windows *windows = &report->windows;
	size_t shown = windows->change_count;
	char words[REPORT_WORDS];

	if (!options->has_all && shown > CHANGES_SHOWN)
		shown = CHANGES_SHOWN;
	for (size_t i = 0; i < shown; i++) {
		report_words_change(report, &windows->changes[i], words);
		table_wrap(sink, words, "- ", 2, report_text_width(options));
	}
	if (shown < windows->change_count)
		sink_format(sink, "(%zu more %s; --all shows them)\n",
			    windows->change_count - shown,
			    text_which(windows->change_count - shown, "change", "changes"));
	if (windows->changes_left_out > 0)
		sink_format(sink, "(%zu smaller %s omitted)\n", windows->changes_left_out,
			    text_which(windows->changes_left_out, "change", "changes"));
	if (windows->change_count == 0)
		sink_text(sink, "No lasting change in transfer speed.\n");
}

enum status report_text_windows(struct sink *sink, const struct timeline_report *report,
				const struct report_text_options *options)
{
	const struct windows *windows = &report->windows;
	struct line line = { calloc(windows->count + 1, sizeof(double)),
			     calloc(windows->count + 1, sizeof(double)), windows->count, 0 };
	char width[UNITS_TEXT], start[REPORT_WORDS], end[REPORT_WORDS], words[REPORT_WORDS];
	struct report_grid_left_out ignored = { .count = 0 };
	enum status status = ERR_NO_SPACE;
	struct report_grid grid;

	report_grid_init(&grid);
	if (line.values != NULL && line.sorted != NULL) {
		report_words_moment(report, windows->start_ns, start);
		report_words_moment(report, windows->end_ns, end);
		text_format(words, sizeof(words),
			    "%.40s to %.40s in %" PRIu32 " window%s of %s; GB/s.", start, end,
			    windows->count, windows->count == 1 ? "" : "s",
			    units_duration(width, windows->width_ns));
		table_wrap(sink, words, "", 0, report_text_width(options));
		write_charts(&grid, report, &line, options);
		status = report_grid_write(&grid, sink, options->width, &ignored);
	}
	report_grid_release(&grid);
	free(line.values);
	free(line.sorted);
	if (status == OK)
		write_changes(sink, report, options);
	return status;
}

/* ---- iterations ------------------------------------------------------------------------------ */

/* "rank 0", with its job if there are several. */
static void rank_words(const struct timeline_report *report, uint32_t index,
		       char to[static REPORT_WORDS])
{
	const struct job *job = &report->job;

	if (index >= job->rank_count)
		text_copy(to, REPORT_WORDS, "a rank");
	else if (job->group_count > 1)
		text_format(to, REPORT_WORDS, "rank %s of job %s", job->ranks[index].label,
			    job->groups[job->ranks[index].group].name);
	else
		text_format(to, REPORT_WORDS, "rank %s", job->ranks[index].label);
}

/* Exposed communication of the median iteration: measured, or as far as it is known. */
static void add_exposed_text(struct sink *text, const struct iterations *from)
{
	char low[UNITS_TEXT], high[UNITS_TEXT];

	if (from->exposed == 0)
		return;
	units_duration(low, from->exposed_low_ns);
	units_duration(high, from->exposed_high_ns);
	if (from->exposed_measured > 0)
		sink_format(text,
			    " Exposed communication: %s of the median iteration, measured in %zu "
			    "of %zu.",
			    low, from->exposed_measured, from->regular);
	else if (from->exposed_low_ns > 0)
		sink_format(text,
			    " Exposed communication: %s to %s of the median iteration; --merge "
			    "measures it.",
			    low, high);
	else
		sink_format(text,
			    " Exposed communication: at most %s of the median iteration; --merge "
			    "measures it.",
			    high);
}

/* What is as long as an iteration and in none of them: set-up, an evaluation at the end. */
static void add_outside_text(struct sink *text, const struct iterations *from)
{
	if (from->warm_up_ops >= from->period_ops)
		sink_format(text, " %" PRIu64 " operations before the first iteration.",
			    (uint64_t)from->warm_up_ops);
	if (from->tail_ops >= from->period_ops)
		sink_format(text,
			    " %" PRIu64 " operations after the last iteration do not repeat it.",
			    (uint64_t)from->tail_ops);
}

static void write_iterations_text(struct sink *sink, const struct timeline_report *report,
				  const struct report_text_options *options)
{
	const struct iterations *from = &report->iterations;
	const struct iteration *slowest =
		from->slowest < from->count ? &from->list[from->slowest] : NULL;
	char times[3][UNITS_TEXT], share[REPORT_SHARE], when[REPORT_WORDS], rank[REPORT_WORDS];
	struct sink text;

	rank_words(report, from->rank, rank);
	report_words_moment(report, slowest ? slowest->start_ns : report->start_ns, when);
	sink_init_memory(&text);
	sink_format(&text, "%zu %s of %" PRIu32 " %s, found from %s of %s: ", from->regular,
		    text_which(from->regular, "iteration", "iterations"), from->period_ops,
		    text_which(from->period_ops, "operation", "operations"),
		    from->is_by_tag ? "the tags" : "the repeating sequence", rank);
	sink_format(&text, "median %s, p99 %s, slowest %s (#%zu, at %s); ",
		    units_duration(times[0], from->median_ns),
		    units_duration(times[1], from->p99_ns),
		    units_duration(times[2], from->slowest_ns), from->slowest + 1, when);
	if (from->timed == 0)
		sink_text(&text, "share of communication unknown: no iteration has all its "
				 "operations timed.");
	else
		sink_format(
			&text, "%s of the median iteration is communication",
			report_share(share, (double)from->median_busy_ns, (double)from->median_ns));
	if (from->timed > 0 && from->timed < from->regular)
		sink_format(&text, " (timed: %zu of %zu iterations)", from->timed, from->regular);
	sink_text(&text, from->timed > 0 ? "." : "");
	add_exposed_text(&text, from);
	if (from->is_by_end)
		sink_text(&text, " The host runs ahead of the GPU: durations are between the ends "
				 "of iterations.");
	if (from->count > from->regular)
		sink_format(&text, " %zu more irregular (checkpoints, evaluations, ...).",
			    from->count - from->regular);
	add_outside_text(&text, from);
	if (from->is_cut)
		sink_format(&text, " Only the first %" PRIu64 " operations were searched.",
			    from->ops);
	table_wrap(sink, sink_string(&text), "", 0, report_text_width(options));
	sink_release(&text);
}

enum status report_text_iterations(struct sink *sink, const struct timeline_report *report,
				   const struct report_text_options *options)
{
	const struct iterations *from = &report->iterations;
	double *values = calloc(from->count + 1, sizeof(*values));

	if (values == NULL)
		return ERR_NO_SPACE;
	write_iterations_text(sink, report, options);
	for (size_t i = 0; i < from->count; i++)
		if (from->list[i].end_ns > from->list[i].start_ns)
			values[i] = (double)(from->list[i].end_ns - from->list[i].start_ns);
	sink_text(sink, "durations ");
	report_chart(sink, values, from->count, CHART_WIDE, options->has_blocks);
	sink_text(sink, "\n");
	free(values);
	return sink->status;
}

/* ---- tables by key --------------------------------------------------------------------------- */

enum {
	ROWS_SHOWN = 20,
	KEY_LEAST = 13, /* keys may be cut down to this many characters */
	COMMS_COUNTED =
		1
		<< 26, /* comparisons; beyond that communicators of the same name are not counted */
};

static void ranks_cell(struct report_grid *grid, int32_t least, int32_t most)
{
	if (most <= 0)
		report_grid_cell(grid, "-");
	else if (least == most)
		report_grid_cellf(grid, "%" PRId32, most);
	else
		report_grid_cellf(grid, "%" PRId32 "-%" PRId32, least, most);
}

static void comm_cells(struct report_grid *grid, const struct job *job, const struct tally_key *key,
		       uint32_t by, bool is_counted)
{
	struct report_alike alike = { 0, 0, 0 };
	char text[UNITS_TEXT];

	if (by & TALLY_BY_COMM_NAME) {
		if (is_counted && key->comm < job->comm_count)
			alike = report_count_alike(job, key, by);
		report_grid_cell(grid, alike.comms ? units_count(text, alike.comms) : "-");
	} else if (key->comm < job->comm_count) {
		alike.least = alike.most = job->comms[key->comm].nranks;
	}
	ranks_cell(grid, alike.least, alike.most);
}

/* ---- any table ------------------------------------------------------------------------------- */

static enum table_align key_align(unsigned int bit)
{
	return 1u << bit == TALLY_BY_TAG || 1u << bit == TALLY_BY_RANK ? TABLE_RIGHT : TABLE_LEFT;
}

/* Kinds and sizes are short and make no sense when cut. */
static unsigned int key_least(unsigned int bit)
{
	switch (1u << bit) {
	case TALLY_BY_COMM:
	case TALLY_BY_COMM_NAME:
	case TALLY_BY_HOST:
	case TALLY_BY_GROUP:
		return KEY_LEAST;
	default:
		return 0;
	}
}

static bool has_comms(uint32_t by)
{
	return by & (TALLY_BY_COMM | TALLY_BY_COMM_NAME);
}

static void add_table_columns(struct report_grid *grid, uint32_t by, bool is_mixed)
{
	for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
		if (by & 1u << bit)
			report_grid_column(grid, report_key_title(bit), key_align(bit),
					   key_least(bit), 0);
	if (by & TALLY_BY_COMM_NAME)
		report_grid_column(grid, "COMMS", TABLE_RIGHT, 0, 6);
	if (has_comms(by))
		report_grid_column(grid, "RANKS", TABLE_RIGHT, 0, 6);
	report_figures_columns(grid, is_mixed);
}

static void note_sources(struct report_grid *grid, const struct tally_row *row)
{
	char words[REPORT_WORDS];

	if (!report_has_mixed_sources(row))
		return;
	report_words_sources(row, words);
	report_grid_note(grid, "durations from %s", words);
}

static void add_row(struct report_grid *grid, const struct timeline_report *report, uint32_t by,
		    const struct tally_row *row, bool is_counted, bool is_mixed)
{
	char text[REPORT_KEY_TEXT];

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
		if (by & 1u << bit)
			report_grid_cell(grid, report_key_text(report, &row->key, bit, text));
	if (has_comms(by))
		comm_cells(grid, &report->job, &row->key, by, is_counted);
	report_figures_cells(grid, report, row, is_mixed);
	note_sources(grid, row);
}

static void add_other(struct report_grid *grid, const struct timeline_report *report,
		      const struct tally *tally, bool is_mixed)
{
	const char *text = "(others)";

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++) {
		if (!(tally->by & 1u << bit))
			continue;
		report_grid_cell(grid, text);
		text = "-";
	}
	if (tally->by & TALLY_BY_COMM_NAME)
		report_grid_cell(grid, "-");
	if (has_comms(tally->by))
		report_grid_cell(grid, "-");
	report_figures_cells(grid, report, &tally->other, is_mixed);
}

static void write_omitted(struct sink *sink, size_t shown, size_t count)
{
	char more[UNITS_TEXT], all[UNITS_TEXT];

	if (shown < count)
		sink_format(sink, "(%s of %s rows omitted; --all shows them)\n",
			    units_count(more, count - shown), units_count(all, count));
}

/* A single job needs no column. */
static uint32_t shown_parts(const struct timeline_report *report, const struct tally *tally)
{
	uint32_t by = tally->by;

	if (report->job.group_count <= 1 && by != TALLY_BY_GROUP)
		by &= ~(uint32_t)TALLY_BY_GROUP;
	return by;
}

static enum status write_rows(struct sink *sink, const struct timeline_report *report,
			      const struct tally *tally, const struct report_text_options *options,
			      struct report_grid_left_out *left_out)
{
	size_t shown = options->has_all || tally->count <= ROWS_SHOWN ? tally->count : ROWS_SHOWN;
	bool is_mixed = report_has_mixed_sources(&report->total);
	uint32_t by = shown_parts(report, tally);
	bool is_counted = shown <= COMMS_COUNTED / (report->job.comm_count + 1);
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	add_table_columns(&grid, by, is_mixed);
	for (size_t i = 0; i < shown; i++)
		add_row(&grid, report, by, &tally->rows[i], is_counted, is_mixed);
	if (tally->has_other && shown == tally->count && by == tally->by)
		add_other(&grid, report, tally, is_mixed);
	status = report_grid_write(&grid, sink, options->width, left_out);
	report_grid_release(&grid);
	write_omitted(sink, shown, tally->count);
	return status;
}

static enum status write_titled(struct sink *sink, const struct timeline_report *report,
				const char *title, const struct tally *tally,
				const struct report_text_options *options,
				struct report_grid_left_out *left_out)
{
	if (tally->count == 0)
		return OK;
	sink_format(sink, "\n%s\n", title);
	return write_rows(sink, report, tally, options, left_out);
}

enum status report_text_table(struct sink *sink, const struct timeline_report *report,
			      const struct tally *tally, const struct report_text_options *options)
{
	report_text_head(sink, report, options);
	if (tally->count == 0) {
		sink_text(sink, "\nNo operations to show.\n");
		return sink->status;
	}
	sink_text(sink, "\n");
	if (tally->by == TALLY_BY_RANK)
		return report_text_ranks(sink, report, options, NULL);
	return write_rows(sink, report, tally, options, NULL);
}

/* ---- communicators --------------------------------------------------------------------------- */

static enum status write_families(struct sink *sink, const struct timeline_report *report,
				  const struct report_families *families, size_t shown,
				  unsigned int width, struct report_grid_left_out *left_out)
{
	const unsigned int job_bit = (unsigned int)__builtin_ctz(TALLY_BY_GROUP);
	bool is_mixed = report_has_mixed_sources(&report->total);
	uint32_t by = TALLY_BY_COMM_NAME | TALLY_BY_KIND;
	char text[UNITS_TEXT], job[REPORT_KEY_TEXT];
	struct report_grid grid;
	enum status status;

	if (report->job.group_count > 1)
		by |= TALLY_BY_GROUP;
	report_grid_init(&grid);
	add_table_columns(&grid, by, is_mixed);
	for (size_t i = 0; i < shown; i++) {
		const struct report_family *family = &families->list[i];

		report_grid_cell(&grid, family->name);
		report_grid_cell(&grid, job_comm_kind_name(family->kind));
		if (by & TALLY_BY_GROUP)
			report_grid_cell(&grid,
					 report_key_text(report, &family->row.key, job_bit, job));
		report_grid_cell(&grid, units_count(text, family->comms));
		ranks_cell(&grid, family->least_ranks, family->most_ranks);
		report_figures_cells(&grid, report, &family->row, is_mixed);
		note_sources(&grid, &family->row);
	}
	status = report_grid_write(&grid, sink, width, left_out);
	report_grid_release(&grid);
	return status;
}

static enum status write_comms(struct sink *sink, const struct timeline_report *report,
			       const struct report_text_options *options,
			       struct report_grid_left_out *left_out)
{
	bool is_each = options->has_all || report->by_comm_name.count <= REPORT_NAMES_SHOWN;
	struct report_families families;
	enum status status;
	size_t shown;

	if (report->by_comm_name.count == 0)
		return OK;
	status = report_families_make(&families, report, is_each);
	if (status != OK)
		return status;
	shown = options->has_all || families.count <= ROWS_SHOWN ? families.count : ROWS_SHOWN;
	sink_text(sink, "\nCommunicators\n");
	if (!is_each)
		table_wrap(sink,
			   "Communicators whose names differ only in numbers share a row; --all "
			   "shows each.",
			   "", 0, report_text_width(options));
	status = write_families(sink, report, &families, shown, options->width, left_out);
	write_omitted(sink, shown, families.count);
	report_families_release(&families);
	return status;
}

/* ---- all parts ------------------------------------------------------------------------------- */

static void explain_tables(struct sink *sink, const struct timeline_report *report,
			   const struct report_text_options *options)
{
	table_wrap(
		sink,
		"Times are totals over all ranks. BUSBW and ALGBW are in GB/s (10^9 bytes), with "
		"message sizes as in nccl-tests. Medians and P99 are accurate to 9%. WAITING "
		"(arrival skew): share of collective time spent waiting for the last rank to "
		"arrive.",
		"", 0, report_text_width(options));
	if (tally_is_sampled(&report->total) && report->total.timed > 0)
		table_wrap(
			sink,
			"TIMED: calls with a duration, from which medians, P99 and bandwidths are "
			"computed. ~ marks an estimate: for each kind of call, the mean of the "
			"timed calls times all calls. > marks a total without the kinds of calls "
			"that were never timed.",
			"", 0, report_text_width(options));
}

static enum status write_tables(struct sink *sink, const struct timeline_report *report,
				const struct report_text_options *options)
{
	const struct {
		const char *title;
		const struct tally *tally;
		bool is_wanted;
	} tables[] = {
		{ "Single communicators", &report->by_comm,
		  options->has_all && report->by_comm.count > report->by_comm_name.count },
		{ "Operations by size", &report->by_size, true },
		{ "Algorithms and protocols", &report->by_algorithm, true },
	};
	struct report_grid_left_out left_out = { .count = 0 };
	enum status status = write_comms(sink, report, options, &left_out);

	for (size_t i = 0; i < ARRAY_LENGTH(tables) && status == OK; i++)
		if (tables[i].is_wanted)
			status = write_titled(sink, report, tables[i].title, tables[i].tally,
					      options, &left_out);
	if (status == OK && report->by_rank.count > 0) {
		sink_text(sink, "\nRanks\n");
		status = report_text_ranks(sink, report, options, &left_out);
	}
	report_grid_say_left_out(&left_out, sink, options->width);
	return status;
}

enum status report_text(struct sink *sink, const struct timeline_report *report,
			const struct report_text_options *options)
{
	bool has_all_findings;
	enum status status = report_text_first(sink, report, options, &has_all_findings);

	if (status == OK && !has_all_findings)
		report_text_findings(sink, report, options);
	if (status != OK || report->total.calls == 0)
		return status == OK ? sink->status : status;
	sink_text(sink, "\n");
	explain_tables(sink, report, options);
	status = write_tables(sink, report, options);
	if (status == OK && report->windows.count > 0 && report->windows.series_count > 0) {
		sink_text(sink, "\nOver time\n");
		status = report_text_windows(sink, report, options);
	}
	if (status == OK && report->iterations.is_found) {
		sink_text(sink, "\nIterations\n");
		status = report_text_iterations(sink, report, options);
	}
	if (status == OK && report->wires.count > 0) {
		sink_text(sink, "\nLinks: what ranks sent over the network\n");
		status = report_text_links(sink, report, options);
	}
	return status == OK ? sink->status : status;
}
