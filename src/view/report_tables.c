/* Tables by key, as text. */
#include <inttypes.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "view/report_family.h"
#include "view/report_key.h"
#include "view/report_text.h"
#include "view/report_words.h"
#include "view/table.h"

enum {
	ROWS_SHOWN = 20,
	KEY_LEAST = 13,		 /* keys may be cut down to so many characters */
	COMMS_COUNTED = 1 << 26, /* comparisons; beyond that nobody counts alike communicators */
};

/* ---- alike communicators --------------------------------------------------------------------- */

/* How many communicators stand behind a name, and how large they are. */
struct alike {
	size_t comms;
	int32_t least;
	int32_t most;
};

static bool is_alike(const struct job_comm *a, const struct job_comm *b)
{
	if (a->group != b->group || strcmp(a->name, b->name) != 0)
		return false;
	return a->name[0] != '\0' || (a->nranks == b->nranks && a->nnodes == b->nnodes);
}

static struct alike count_alike(const struct job *job, const struct tally_key *key, uint32_t by)
{
	struct alike found = { 0, INT32_MAX, 0 };

	for (size_t i = 0; i < job->comm_count; i++) {
		const struct job_comm *comm = &job->comms[i];

		if (!is_alike(comm, &job->comms[key->comm]) ||
		    (by & TALLY_BY_KIND && comm->kind != (enum job_comm_kind)key->kind))
			continue;
		found.comms++;
		found.least = comm->nranks < found.least ? comm->nranks : found.least;
		found.most = comm->nranks > found.most ? comm->nranks : found.most;
	}
	return found;
}

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
	struct alike alike = { 0, 0, 0 };
	char text[UNITS_TEXT];

	if (by & TALLY_BY_COMM_NAME) {
		if (is_counted && key->comm < job->comm_count)
			alike = count_alike(job, key, by);
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

/* Kinds and sizes are short and say nothing when cut. */
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

static void add_columns(struct report_grid *grid, uint32_t by, bool is_mixed)
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

static void say_more(struct sink *sink, size_t shown, size_t count)
{
	char more[UNITS_TEXT], all[UNITS_TEXT];

	if (shown < count)
		sink_format(sink, "(%s more of %s rows: --all shows them)\n",
			    units_count(more, count - shown), units_count(all, count));
}

/* One job needs no column for it. */
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
	add_columns(&grid, by, is_mixed);
	for (size_t i = 0; i < shown; i++)
		add_row(&grid, report, by, &tally->rows[i], is_counted, is_mixed);
	if (tally->has_other && shown == tally->count && by == tally->by)
		add_other(&grid, report, tally, is_mixed);
	status = report_grid_write(&grid, sink, options->width, left_out);
	report_grid_release(&grid);
	say_more(sink, shown, tally->count);
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
		sink_text(sink, "\nNo operation to show.\n");
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
	add_columns(&grid, by, is_mixed);
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
		table_wrap(
			sink,
			"Those whose names differ in numbers only are one row; --all shows each.",
			"", 0, report_text_width(options));
	status = write_families(sink, report, &families, shown, options->width, left_out);
	say_more(sink, shown, families.count);
	report_families_release(&families);
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void explain(struct sink *sink, const struct timeline_report *report,
		    const struct report_text_options *options)
{
	table_wrap(
		sink,
		"Times are summed over ranks. Bandwidths are GB/s (10^9 bytes), message sizes as "
		"nccl-tests counts them. Medians and P99 are good to 9 %. WAITING is the share of "
		"the time of those collectives that could be compared between ranks that went by "
		"until the last rank arrived.",
		"", 0, report_text_width(options));
	if (tally_is_sampled(&report->total) && report->total.timed > 0)
		table_wrap(
			sink,
			"TIMED calls have a duration: medians, P99 and bandwidths come from these. "
			"~ is an estimate: kind by kind, the mean of the timed calls times all "
			"calls. > lacks calls of kinds that were never timed.",
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
	explain(sink, report, options);
	status = write_tables(sink, report, options);
	if (status == OK && report->windows.count > 0 && report->windows.series_count > 0) {
		sink_text(sink, "\nOver time\n");
		status = report_text_windows(sink, report, options);
	}
	if (status == OK && report->iterations.is_found) {
		sink_text(sink, "\nIterations\n");
		status = report_text_iterations(sink, report, options);
	}
	return status == OK ? sink->status : status;
}
