#include "output/diff_show.h"

#include <inttypes.h>
#include <math.h>

#include "common/attributes.h"
#include "common/text.h"
#include "output/report.h"
#include "output/table.h"

enum { DIFF_ROWS = 30, DIFF_KEY_LEAST = 13 };

/* "slower": past the threshold. "slower, below threshold": more than noise, but not certainly past the threshold. */
static const char *diff_verdict(const struct compare_row *row)
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
		return "slower, below threshold";
	return "faster, below threshold";
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
	report_grid_column(grid, "95% INTERVAL", TABLE_LEFT, 0, 1);
	report_grid_column(grid, "RESULT", TABLE_LEFT, 0, 0);
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

/* "-" if all calls were timed: the column is then omitted. */
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

/* A share of all durations; unmatched calls count as not waiting. */
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
		sink_format(sink, "(%zu more rows; --all shows them)\n", compare->count - shown);
	return status;
}

static void write_verdict(struct sink *sink, const struct compare *compare,
			  const struct report_text_options *options)
{
	size_t both = compare->count - compare->only_a - compare->only_b - compare->not_timed;
	char words[REPORT_WORDS];

	if (both == 0 && compare->not_timed > 0)
		text_format(words, sizeof(words),
			    "Nothing to compare: no operation was timed on both sides.");
	else if (both == 0)
		text_copy(words, sizeof(words),
			  "Nothing to compare: A and B have no operations in common. Try another "
			  "--by, such as --by function,size.");
	else if (compare->slower + compare->faster == 0)
		text_format(words, sizeof(words),
			    "%zu compared: none slower or faster by more than %g%%.", both,
			    compare->threshold * 100);
	else
		text_format(words, sizeof(words),
			    "%zu compared: %zu slower, %zu faster by more than %g%%.", both,
			    compare->slower, compare->faster, compare->threshold * 100);
	table_wrap(sink, words, "", 0, report_text_width(options));
	if (compare->not_timed > 0)
		sink_format(sink, "Not compared, because not timed on both sides: %zu.\n",
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

static void put_figures(struct json *json, const char *key, const struct compare_side *side)
{
	bool is_timed = side->timed > 0;

	if (!side->is_there) {
		json_put_null(json, key);
		return;
	}
	json_put_object(json, key);
	json_put_known(json, "calls", side->calls > 0, side->calls);
	json_put_known(json, "in_flight", side->calls > 0, side->open);
	json_put_unsigned(json, "timed", side->timed);
	json_put_known(json, "not_timed", side->calls > 0, side->not_timed);
	json_put_known(json, "bytes", side->calls > 0, side->bytes);
	json_put_known(json, "sum_ns", is_timed && side->calls > 0, side->sum_ns);
	json_put_known(json, "total_ns", is_timed && side->calls > 0, units_whole(side->total_ns));
	json_put_known_double(json, "mean_ns", is_timed, side->mean_ns);
	json_put_known(json, "median_ns", is_timed, side->median_ns);
	json_put_known(json, "p99_ns", side->p99_ns > 0, side->p99_ns);
	json_put_known_double(json, "algbw_bytes_per_second", side->algbw > 0, round(side->algbw));
	json_put_known_double(json, "busbw_bytes_per_second", side->busbw > 0, round(side->busbw));
	json_put_unsigned(json, "joined", side->joined);
	json_put_known(json, "wait_ns", side->joined > 0, side->wait_ns);
	json_end(json);
}

static void put_key(struct json *json, uint32_t by, const struct compare_row *row)
{
	size_t part = 0;

	for (unsigned int bit = 0; bit < TALLY_BYS && part < ARRAY_LENGTH(row->key); bit++)
		if (by & 1u << bit)
			json_put_string(json, tally_by_name(bit), row->key[part++]);
}

static void put_row(struct json *json, const struct compare_row *row)
{
	put_figures(json, "a", &row->a);
	put_figures(json, "b", &row->b);
	json_put_known_double(json, "median_ratio", row->median_ratio > 0, row->median_ratio);
	json_put_known_double(json, "mean_ratio", row->mean_ratio > 0, row->mean_ratio);
	json_put_known_double(json, "busbw_ratio", row->busbw_ratio > 0, row->busbw_ratio);
	json_put_known_double(json, "ratio", row->has_interval, row->ratio);
	json_put_known_double(json, "ratio_low", row->has_interval, row->ratio_low);
	json_put_known_double(json, "ratio_high", row->has_interval, row->ratio_high);
	json_put_known_double(json, "samples_a", row->has_interval, row->samples_a);
	json_put_known_double(json, "samples_b", row->has_interval, row->samples_b);
	json_put_bool(json, "is_significant", row->is_significant);
	json_put_bool(json, "is_slower", row->is_slower);
	json_put_bool(json, "is_faster", row->is_faster);
	json_put_string(json, "verdict", diff_verdict(row));
}

static void put_side(struct json *json, const char *key, const struct diff_side *side)
{
	json_put_object(json, key);
	json_put_string(json, "path", side->path);
	if (side->report != NULL) {
		report_json_put_head(json, side->report);
		report_json_put_jobs(json, side->report);
		report_json_put_completeness(json, side->report);
		report_json_put_troubles(json, side->report->recording);
	} else {
		json_put_string(json, "format", "expected-bandwidth");
	}
	json_end(json);
}

void diff_json(struct json *json, const struct diff_side *a, const struct diff_side *b,
	       const struct compare *compare)
{
	json_object(json);
	json_put_string(json, "format", "ringside-diff");
	json_put_unsigned(json, "version", 1);
	json_put_string(json, "ringside", RINGSIDE_VERSION);
	put_side(json, "a", a);
	put_side(json, "b", b);
	report_json_put_by(json, compare->by);
	json_put_double(json, "threshold", compare->threshold);
	json_put_unsigned(json, "slower", compare->slower);
	json_put_unsigned(json, "faster", compare->faster);
	json_put_unsigned(json, "only_a", compare->only_a);
	json_put_unsigned(json, "only_b", compare->only_b);
	json_put_unsigned(json, "not_timed", compare->not_timed);
	json_put_array(json, "rows");
	for (size_t i = 0; i < compare->count; i++) {
		json_object(json);
		put_key(json, compare->by, &compare->rows[i]);
		put_row(json, &compare->rows[i]);
		json_end(json);
	}
	json_end(json);
	json_put_object(json, "total");
	put_row(json, &compare->total);
	json_end(json);
	json_end(json);
}
