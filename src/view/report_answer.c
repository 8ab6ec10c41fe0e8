/* The first screenful. */
#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "view/report_family.h"
#include "view/report_key.h"
#include "view/report_text.h"
#include "view/report_words.h"
#include "view/table.h"

enum { COST_MOST = 3, NAME_LEAST = 8, FINDINGS_SHOWN = 12 };

unsigned int report_text_width(const struct report_text_options *options)
{
	return options->width > 0 ? options->width : REPORT_TEXT_WIDTH;
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
	sink_init_memory(&text);
	report_words_completeness(report, &text);
	table_wrap(sink, sink_string(&text), "", 2, width);
	sink_release(&text);
}

/* ---- how much ------------------------------------------------------------------------------- */

/* The rank that is least and most busy. */
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

static void say_busy(struct sink *text, const struct timeline_report *report)
{
	char share[REPORT_SHARE], low[REPORT_SHARE], high[REPORT_SHARE], bytes[UNITS_TEXT];
	double least, most;

	busy_range(report, &least, &most);
	if (most < 0) {
		sink_format(text, "communication: share of the time not known%s, %s in messages",
			    report->total.timed == 0 ? " (no call was timed)" : "",
			    units_bytes(bytes, report->total.bytes));
		return;
	}
	report_share(share, report->busy_share, 1);
	report_share(low, least, 1);
	report_share(high, most, 1);
	sink_format(text, "communication: %s%s of the time", report_estimate_mark(&report->total),
		    share);
	if (strcmp(low, high) != 0)
		sink_format(text, " (%s to %s by rank)", low, high);
	sink_format(text, ", %s in messages", units_bytes(bytes, report->total.bytes));
}

static void say_waiting(struct sink *text, const struct timeline_report *report)
{
	char share[REPORT_SHARE], lost[REPORT_WORDS];

	if (!report_knows_waiting(report, &report->total)) {
		sink_text(text, "waiting: not known, no timed collective of several ranks to "
				"compare");
		return;
	}
	report_share(share, tally_total_wait_ns(&report->total),
		     tally_total_joined_ns(&report->total));
	report_words_lost(report->gpu_hours_waited, report->gpu_hours, lost);
	sink_format(text, "waiting: %s of the time in collectives, %s%s lost", share,
		    report_estimate_mark(&report->total), lost);
}

static void say_much(struct sink *sink, const struct timeline_report *report, unsigned int width)
{
	char words[REPORT_WORDS];
	struct sink text;

	sink_init_memory(&text);
	say_busy(&text, report);
	table_wrap(sink, sink_string(&text), "", 2, width);
	sink_release(&text);
	sink_init_memory(&text);
	say_waiting(&text, report);
	table_wrap(sink, sink_string(&text), "", 2, width);
	sink_release(&text);
	report_words_sources(&report->total, words);
	table_wrap(sink, words, "durations: from ", 2, width);
	report_words_timed(&report->total, words);
	if (words[0] != '\0' && report->total.covered > 0)
		text_format(words + strlen(words), sizeof(words) - strlen(words),
			    "; totals (~) are estimated from these");
	if (words[0] != '\0')
		table_wrap(sink, words, "timed: ", 2, width);
	report_words_not_timed(report, words);
	if (words[0] != '\0' && report->total.timed > 0)
		table_wrap(sink, words, "not timed, in no total: ", 2, width);
}

/* ---- what costs most ------------------------------------------------------------------------- */

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
	report_grid_column(grid, "GB/s BUS", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "MEDIAN", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "WAITING", TABLE_RIGHT, 0, 2);
}

static enum status write_comms(struct sink *sink, const struct timeline_report *report,
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

/* ---- who, and what looks wrong --------------------------------------------------------------- */

static void say_stragglers(struct sink *sink, const struct timeline_report *report,
			   unsigned int width)
{
	const struct stragglers *from = &report->stragglers;
	char words[REPORT_WORDS];
	struct sink text;

	sink_init_memory(&text);
	/* With one cause several may come late; the others are among the findings. */
	if (from->count > 0) {
		report_words_straggler(report, &from->list[0], words);
		sink_text(&text, words);
	}
	if (from->count > 1)
		sink_format(&text, " and %zu more", from->count - 1);
	if (from->count == 0 && from->has_enough)
		sink_format(&text, "none, %" PRIu64 " collectives were compared", from->meetings);
	else if (from->count == 0)
		sink_format(&text,
			    "cannot say, too few collectives to compare (%" PRIu64
			    ", needed are %" PRIu32 ")",
			    from->meetings, from->least_meetings);
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

/* In full where all fit. Else the first, and as many more as fit without their texts; one line is kept
 * for saying that there are more. True: in full. */
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

void report_text_findings(struct sink *sink, const struct timeline_report *report,
			  const struct report_text_options *options)
{
	const struct findings *from = &report->findings;

	sink_text(sink, "\nFindings\n");
	for (size_t i = 0; i < from->count; i++)
		write_finding(sink, &from->list[i], report_text_width(options), true);
	if (from->left_out > 0)
		sink_format(sink, "(%zu more were left out)\n", from->left_out);
}

/* ---------------------------------------------------------------------------------------------- */

static void write_wrong(struct sink *text, const struct timeline_report *report, unsigned int width,
			bool *has_all)
{
	size_t lines = count_lines(sink_string(text)) + 1;

	*has_all = true;
	if (report->findings.count == 0) {
		sink_text(text, "Nothing looks wrong.\n");
		return;
	}
	sink_text(text, "What looks wrong:\n");
	*has_all = write_findings(text, &report->findings,
				  lines < REPORT_TEXT_LINES ? REPORT_TEXT_LINES - lines : 1, width);
}

enum status report_text_first(struct sink *sink, const struct timeline_report *report,
			      const struct report_text_options *options, bool *has_all_findings)
{
	unsigned int width = report_text_width(options);
	enum status status = OK;
	struct sink text;

	sink_init_memory(&text);
	report_text_head(&text, report, options);
	if (report->total.calls > 0) {
		say_much(&text, report, width);
		sink_text(&text, "\n");
		status = write_comms(&text, report, width);
		if (status == OK)
			status = write_functions(&text, report, width);
		sink_text(&text, "\n");
		say_stragglers(&text, report, width);
	}
	write_wrong(&text, report, width, has_all_findings);
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
