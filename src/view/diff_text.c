#include "view/diff_text.h"

#include <inttypes.h>

#include "common/text.h"
#include "view/report_key.h"
#include "view/report_words.h"
#include "view/table.h"

enum { DIFF_ROWS = 30, DIFF_KEY_LEAST = 13 };

const char *diff_verdict(const struct compare_row *row)
{
	if (!row->a.is_there)
		return "only in B";
	if (!row->b.is_there)
		return "only in A";
	if (row->a.timed == 0 || row->b.timed == 0)
		return "not timed";
	if (!row->has_interval)
		return "too few calls";
	if (row->is_slower)
		return "slower";
	if (row->is_faster)
		return "faster";
	if (!row->is_significant)
		return "same within noise";
	if (row->ratio_low > 1)
		return "a bit slower";
	return "a bit faster";
}

static void add_columns(struct report_grid *grid, uint32_t by)
{
	for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
		if (by & 1u << bit)
			report_grid_column(grid, report_key_title(bit), TABLE_LEFT,
					   1u << bit == TALLY_BY_COMM_NAME ? DIFF_KEY_LEAST : 0, 0);
	report_grid_column(grid, "CALLS A", TABLE_RIGHT, 0, 7);
	report_grid_column(grid, "CALLS B", TABLE_RIGHT, 0, 7);
	report_grid_column(grid, "TIMED A", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "TIMED B", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "MEDIAN A", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "MEDIAN B", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "P99 A", TABLE_RIGHT, 0, 8);
	report_grid_column(grid, "P99 B", TABLE_RIGHT, 0, 8);
	report_grid_column(grid, "BUSBW A", TABLE_RIGHT, 0, 4);
	report_grid_column(grid, "BUSBW B", TABLE_RIGHT, 0, 4);
	report_grid_column(grid, "WAITING A", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "WAITING B", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "B/A", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "95 %", TABLE_LEFT, 0, 1);
	report_grid_column(grid, "B IS", TABLE_LEFT, 0, 0);
}

static void count_cell(struct report_grid *grid, const struct compare_side *side)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid,
			 side->is_there && side->calls > 0 ? units_count(text, side->calls) : "-");
}

static bool is_sampled(const struct compare_side *side)
{
	return side->is_there && side->timed < side->calls - side->open;
}

/* No column where all calls were timed. */
static void timed_cell(struct report_grid *grid, const struct compare_side *side,
		       const struct compare_side *total)
{
	char text[UNITS_TEXT];

	report_grid_cell(grid, side->is_there && is_sampled(total) ? units_count(text, side->timed)
								   : "-");
}

static void duration_cell(struct report_grid *grid, const struct compare_side *side, uint64_t ns)
{
	char text[UNITS_TEXT];

	report_grid_cell(
		grid, side->is_there && side->timed > 0 && ns > 0 ? units_duration(text, ns) : "-");
}

/* Of all durations: those that were not joined show no waiting. */
static void waiting_cell(struct report_grid *grid, const struct compare_side *side)
{
	char text[REPORT_SHARE];

	report_grid_cell(grid, side->joined > 0 ? report_share(text, side->wait_share, 1) : "-");
}

static void add_row(struct report_grid *grid, const struct compare *compare,
		    const struct compare_row *row, const char *title)
{
	const struct compare_side *a = &row->a, *b = &row->b;
	char text[REPORT_BANDWIDTH];
	size_t part = 0;

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++) {
		if (!(compare->by & 1u << bit))
			continue;
		if (title != NULL)
			report_grid_cell(grid, part == 0 ? title : "");
		else
			report_grid_cell(grid, part < ARRAY_LENGTH(row->key) ? row->key[part] : "");
		part++;
	}
	count_cell(grid, a);
	count_cell(grid, b);
	timed_cell(grid, a, &compare->total.a);
	timed_cell(grid, b, &compare->total.b);
	duration_cell(grid, a, a->median_ns);
	duration_cell(grid, b, b->median_ns);
	duration_cell(grid, a, a->p99_ns);
	duration_cell(grid, b, b->p99_ns);
	report_grid_cell(grid, report_bandwidth(text, a->busbw));
	report_grid_cell(grid, report_bandwidth(text, b->busbw));
	waiting_cell(grid, a);
	waiting_cell(grid, b);
	if (row->has_interval) {
		report_grid_cellf(grid, "%.3f", row->ratio);
		report_grid_cellf(grid, "%.3f-%.3f", row->ratio_low, row->ratio_high);
	} else {
		report_grid_cell(grid, "-");
		report_grid_cell(grid, "-");
	}
	report_grid_cell(grid, title != NULL ? "-" : diff_verdict(row));
}

static void write_side(struct sink *sink, const char *name, const struct diff_side *side,
		       const struct report_text_options *options)
{
	char job[REPORT_WORDS], nccl[REPORT_WORDS], span[REPORT_WORDS];
	unsigned int width = report_text_width(options);
	struct sink text;

	sink_init_memory(&text);
	if (side->report != NULL) {
		report_words_job(side->report, job);
		report_words_nccl(side->report->recording, nccl);
		report_words_span(side->report, span);
		sink_format(&text, "%s, %s%s%s; ", job, nccl, span[0] ? "; " : "", span);
		report_words_completeness(side->report, &text);
	} else {
		sink_format(&text, "%s: expected bandwidths", side->path);
	}
	table_wrap(sink, sink_string(&text), name, 3, width);
	sink_release(&text);
}

static enum status write_rows(struct sink *sink, const struct compare *compare,
			      const struct report_text_options *options)
{
	size_t shown = options->has_all || compare->count <= DIFF_ROWS ? compare->count : DIFF_ROWS;
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	add_columns(&grid, compare->by);
	for (size_t i = 0; i < shown; i++)
		add_row(&grid, compare, &compare->rows[i], NULL);
	if (compare->total.a.is_there && compare->total.b.is_there)
		add_row(&grid, compare, &compare->total, "all");
	status = report_grid_write(&grid, sink, options->width, NULL);
	report_grid_release(&grid);
	if (shown < compare->count)
		sink_format(sink, "(%zu more rows: --all shows them)\n", compare->count - shown);
	return status;
}

static void write_verdict(struct sink *sink, const struct compare *compare,
			  const struct report_text_options *options)
{
	size_t both = compare->count - compare->only_a - compare->only_b - compare->not_timed;
	char words[REPORT_WORDS];

	if (both == 0 && compare->not_timed > 0)
		text_format(words, sizeof(words),
			    "Nothing to compare: of what is in both, no side or one side only was "
			    "timed.");
	else if (both == 0)
		text_copy(words, sizeof(words),
			  "Nothing is in both: there is nothing to compare. Another --by may help, "
			  "like --by function,size.");
	else if (compare->slower + compare->faster == 0)
		text_format(words, sizeof(words),
			    "Of %zu compared none is slower or faster by more than %g %%.", both,
			    compare->threshold * 100);
	else
		text_format(words, sizeof(words),
			    "Of %zu compared, by more than %g %%: %zu slower, %zu faster.", both,
			    compare->threshold * 100, compare->slower, compare->faster);
	table_wrap(sink, words, "", 0, report_text_width(options));
	if (compare->not_timed > 0)
		sink_format(sink, "Not timed on both sides, not compared: %zu.\n",
			    compare->not_timed);
	if (both > 0 && compare->only_a + compare->only_b > 0)
		sink_format(sink, "Only in A: %zu, only in B: %zu.\n", compare->only_a,
			    compare->only_b);
}

enum status diff_text(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
		      const struct compare *compare, const struct report_text_options *options)
{
	enum status status;

	write_side(sink, "A: ", a, options);
	write_side(sink, "B: ", b, options);
	sink_text(sink, "\n");
	status = write_rows(sink, compare, options);
	if (status != OK)
		return status;
	sink_text(sink, "\n");
	write_verdict(sink, compare, options);
	return sink->status;
}
