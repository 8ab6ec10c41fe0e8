/* The comparison of two runs as text, HTML and JSON; baselines as text and JSON. */
#include "output/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "output/table.h"

enum { DIFF_ROWS = 30, DIFF_SENDERS = 10, DIFF_KEY_LEAST = 13, DIFF_NAME = 240 };
/* Columns that are omitted first; a page leaves them out. */
enum { DIFF_DETAIL = 7 };

/* ---- words: the same in text, JSON and HTML -------------------------------------------------- */

static bool is_beyond(double ratio, double threshold, bool is_slower)
{
	return is_slower ? ratio > 1 + threshold : ratio < 1 / (1 + threshold);
}

/* "slower": past the threshold. "maybe slower": past it by the best estimate. "slower, below threshold": more than
 * noise. */
static const char *result_words(const struct compare_result *result, double threshold)
{
	if (result->is_slower)
		return "slower";
	if (result->is_faster)
		return "faster";
	if (is_beyond(result->ratio, threshold, true))
		return "maybe slower";
	if (is_beyond(result->ratio, threshold, false))
		return "maybe faster";
	if (!result->is_significant)
		return "same within noise";
	return result->ratio > 1 ? "slower, below threshold" : "faster, below threshold";
}

static const char *diff_verdict(const struct compare_row *row, double threshold)
{
	const struct compare_result result = { .ratio = row->ratio,
					       .is_significant = row->is_significant,
					       .is_slower = row->is_slower,
					       .is_faster = row->is_faster };

	if (!row->a.is_there)
		return "only in B";
	if (!row->b.is_there)
		return "only in A";
	if (row->basis != COMPARE_WIRE && (row->a.timed == 0 || row->b.timed == 0))
		return "not timed";
	if (row->basis == COMPARE_BANDWIDTH)
		return "other number of ranks";
	if (!row->has_interval)
		return "too few calls";
	return result_words(&result, threshold);
}

static const char *value_verdict(const struct compare_value *value, double threshold)
{
	return value->has_interval ? result_words(&value->result, threshold) : "too few samples";
}

/* "AllGather of 256 MiB in world"; the parts that --by has. */
static void row_name(const struct compare *compare, const struct compare_row *row,
		     char to[static DIFF_NAME])
{
	size_t part = 0;

	to[0] = '\0';
	for (unsigned int bit = 0; bit < TALLY_BYS && part < ARRAY_LENGTH(row->key); bit++)
		if (compare->by & 1u << bit && 1u << bit != TALLY_BY_GROUP)
			text_append(to, DIFF_NAME, "%s%s", to[0] ? ", " : "", row->key[part++]);
}

static double percent(double ratio)
{
	return (ratio - 1) * 100;
}

static bool is_judged(const struct compare_row *row)
{
	return row->has_interval && row->basis != COMPARE_BANDWIDTH;
}

/* Of the rows that matter (of all, if none does), the one for which the largest slowdown cannot be excluded; NULL if
 * none was judged. */
static const struct compare_row *least_certain(const struct compare *compare)
{
	const struct compare_row *found = NULL;

	for (size_t i = 0; i < compare->count; i++) {
		const struct compare_row *row = &compare->rows[i];
		bool is_small = row->share < COMPARE_SHARE_LEAST;

		if (!is_judged(row) ||
		    (found != NULL && is_small && found->share >= COMPARE_SHARE_LEAST))
			continue;
		if (found == NULL || row->ratio_high > found->ratio_high ||
		    (!is_small && found->share < COMPARE_SHARE_LEAST))
			found = row;
	}
	return found;
}

static const struct compare_row *first_undecided(const struct compare *compare)
{
	for (size_t i = 0; i < compare->count; i++)
		if (compare->rows[i].is_undecided)
			return &compare->rows[i];
	return NULL;
}

static void words_rows(const struct compare *compare, char to[static REPORT_WORDS])
{
	const struct compare_row *row = least_certain(compare);
	const char *s = compare->judged == 1 ? "" : "s";
	char name[DIFF_NAME];

	if (compare->slower + compare->faster > 0) {
		text_format(to, REPORT_WORDS,
			    "%zu kind%s of operations compared: %zu slower, %zu faster by more "
			    "than %g%%.",
			    compare->judged, s, compare->slower, compare->faster,
			    compare->threshold * 100);
	} else if (row != NULL && !is_beyond(row->ratio_high, compare->threshold, true)) {
		text_format(to, REPORT_WORDS,
			    "%zu kind%s of operations compared: none is slower by more than %g%%.",
			    compare->judged, s, compare->threshold * 100);
	} else if (row != NULL && compare->undecided == 0) {
		row_name(compare, row, name);
		text_format(to, REPORT_WORDS,
			    "%zu kind%s of operations compared: none looks slower by more than "
			    "%g%%, but up to %.0f%% cannot be excluded (%s).",
			    compare->judged, s, compare->threshold * 100, percent(row->ratio_high),
			    name);
	} else if (row != NULL) {
		text_format(to, REPORT_WORDS,
			    "%zu kind%s of operations compared: none is certainly slower or faster "
			    "by more than %g%%.",
			    compare->judged, s, compare->threshold * 100);
	} else if (compare->not_timed > 0) {
		text_copy(to, REPORT_WORDS,
			  "Nothing to compare: no operation was timed on both sides.");
	} else if (compare->only_a + compare->only_b == compare->count) {
		text_copy(to, REPORT_WORDS,
			  "Nothing to compare: A and B have no operations in common. Try another "
			  "--by, such as --by function,size.");
	} else {
		text_copy(to, REPORT_WORDS,
			  "Nothing could be compared: too few calls, or different numbers of "
			  "ranks.");
	}
}

static void words_undecided(const struct compare *compare, char to[static REPORT_WORDS])
{
	const struct compare_row *row = first_undecided(compare);
	char name[DIFF_NAME];

	to[0] = '\0';
	if (row == NULL)
		return;
	row_name(compare, row, name);
	text_format(to, REPORT_WORDS,
		    "%zu look%s slower (%s: %+.1f%%), but the 95%% interval, %.1f%% to %.1f%%, "
		    "includes the threshold of %g%%.",
		    compare->undecided, compare->undecided == 1 ? "s" : "", name,
		    percent(row->ratio), percent(row->ratio_low), percent(row->ratio_high),
		    compare->threshold * 100);
}

static void words_senders(const struct compare *compare, char to[static REPORT_WORDS])
{
	const struct compare_sender *sender = compare->senders;

	to[0] = '\0';
	if (compare->sender_count > 0)
		text_format(to, REPORT_WORDS,
			    "%zu senders compared by their time on the wire: %zu slower, %zu "
			    "faster by more than %g%%.",
			    compare->sender_count, compare->senders_slower, compare->senders_faster,
			    compare->threshold * 100);
	if (compare->senders_undecided == 0)
		return;
	while (!sender->is_undecided)
		sender++;
	text_append(to, REPORT_WORDS,
		    " %zu more may be slower (rank %s: %+.1f%%), but the 95%% interval, %.1f%% to "
		    "%.1f%%, includes the threshold.",
		    compare->senders_undecided, sender->from, percent(sender->result.ratio),
		    percent(sender->result.ratio_low), percent(sender->result.ratio_high));
}

static void words_left_out(const struct compare *compare, char to[static REPORT_WORDS])
{
	size_t other = 0;

	to[0] = '\0';
	for (size_t i = 0; i < compare->count; i++)
		other += compare->rows[i].basis == COMPARE_BANDWIDTH;
	if (compare->only_a + compare->only_b > 0)
		text_append(to, REPORT_WORDS, "Only in A: %zu, only in B: %zu.", compare->only_a,
			    compare->only_b);
	if (compare->not_timed > 0)
		text_append(to, REPORT_WORDS,
			    "%sNot compared, because not timed on both sides: %zu.",
			    to[0] ? " " : "", compare->not_timed);
	if (other > 0)
		text_append(to, REPORT_WORDS,
			    "%sNot judged, because of different numbers of ranks: %zu.",
			    to[0] ? " " : "", other);
}

static void words_answer(const struct compare *compare, char to[static REPORT_WORDS])
{
	switch (compare_answer(compare)) {
	case COMPARE_SLOWER:
		text_format(to, REPORT_WORDS, "Result: B is slower than A by more than %g%%.",
			    compare->threshold * 100);
		if (compare->is_job_slower && compare->slower + compare->senders_slower == 0)
			text_append(to, REPORT_WORDS, " Transfers are not.");
		break;
	case COMPARE_SAME:
		text_format(to, REPORT_WORDS, "Result: no slowdown above %g%%%s.",
			    compare->threshold * 100,
			    compare->judged < compare->count ? " in what could be compared" : "");
		break;
	case COMPARE_UNKNOWN:
		text_format(to, REPORT_WORDS,
			    "Result: could not tell whether B is slower than A by more than %g%%.",
			    compare->threshold * 100);
		break;
	}
}

/* The sentences below the tables, the answer last; "": it does not apply. */
static void (*const sentences[])(const struct compare *compare, char to[static REPORT_WORDS]) = {
	words_rows, words_undecided, words_senders, words_left_out, words_answer,
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* The interval of a row; `is_known` false: it has none. */
struct drawn {
	bool is_known;
	struct compare_result result;
};

static void add_columns(struct report_grid *grid, const struct compare *compare)
{
	for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
		if (compare->by & 1u << bit)
			report_grid_column(grid, report_key_title(bit), TABLE_LEFT,
					   1u << bit == TALLY_BY_COMM_NAME ? DIFF_KEY_LEAST : 0, 0);
	report_grid_column(grid, "CALLS A", TABLE_RIGHT, 0, 8);
	report_grid_column(grid, "CALLS B", TABLE_RIGHT, 0, 8);
	report_grid_column(grid, "TIMED A", TABLE_RIGHT, 0, 7);
	report_grid_column(grid, "TIMED B", TABLE_RIGHT, 0, 7);
	report_grid_column(grid, "SHARE", TABLE_RIGHT, 0, 5);
	report_grid_column(grid, "WAITING A", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "WAITING B", TABLE_RIGHT, 0, 6);
	report_grid_column(grid, "BUSBW A", TABLE_RIGHT, 0, 4);
	report_grid_column(grid, "BUSBW B", TABLE_RIGHT, 0, 4);
	report_grid_column(grid, "COMPARED", TABLE_LEFT, 0, 5);
	report_grid_column(grid, "TIME A", TABLE_RIGHT, 0, 3);
	report_grid_column(grid, "TIME B", TABLE_RIGHT, 0, 3);
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

/* What is compared; a mean where nothing is. */
static double shown_ns(const struct compare_side *side)
{
	if (!side->is_there || (side->timed == 0 && side->transfer_ns <= 0))
		return 0;
	return side->transfer_ns > 0 ? side->transfer_ns : side->mean_ns;
}

static void duration_cell(struct report_grid *grid, double ns)
{
	report_grid_cell(grid, ns > 0 ? units_of_ns(ns).text : "-");
}

/* A share of all durations; unmatched calls count as not waiting. */
static void waiting_cell(struct report_grid *grid, const struct compare_side *side)
{
	char text[REPORT_SHARE];

	report_grid_cell(grid, side->joined > 0 ? report_share(text, side->wait_share, 1) : "-");
}

static double shown_busbw(const struct compare_side *side)
{
	return side->transfer_busbw > 0 ? side->transfer_busbw : side->busbw;
}

static void add_row(struct report_grid *grid, const struct compare *compare, size_t index,
		    struct drawn *drawn)
{
	const struct compare_row *row = &compare->rows[index];
	const struct compare_side *a = &row->a, *b = &row->b;
	char text[REPORT_BANDWIDTH];
	size_t part = 0;

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++)
		if (compare->by & 1u << bit) {
			report_grid_cell(grid, part < ARRAY_LENGTH(row->key) ? row->key[part] : "");
			part++;
		}
	count_cell(grid, a);
	count_cell(grid, b);
	timed_cell(grid, a, &compare->total.a);
	timed_cell(grid, b, &compare->total.b);
	report_grid_cell(grid, row->share > 0 ? report_share(text, row->share, 1) : "-");
	waiting_cell(grid, a);
	waiting_cell(grid, b);
	report_grid_cell(grid, report_bandwidth(text, shown_busbw(a)));
	report_grid_cell(grid, report_bandwidth(text, shown_busbw(b)));
	report_grid_cell(grid, row->basis ? compare_basis_name(row->basis) : "-");
	duration_cell(grid, shown_ns(a));
	duration_cell(grid, shown_ns(b));
	if (row->has_interval) {
		report_grid_cellf(grid, "%.3f", row->ratio);
		report_grid_cellf(grid, "%.3f-%.3f", row->ratio_low, row->ratio_high);
	} else {
		report_grid_cell(grid, "-");
		report_grid_cell(grid, "-");
	}
	report_grid_cell(grid, diff_verdict(row, compare->threshold));
	*drawn = (struct drawn){
		row->has_interval,
		{ .ratio = row->ratio, .ratio_low = row->ratio_low, .ratio_high = row->ratio_high }
	};
}

static size_t rows_shown(const struct compare *compare, bool has_all)
{
	return has_all || compare->count <= DIFF_ROWS ? compare->count : DIFF_ROWS;
}

/* ---- the job and its senders ----------------------------------------------------------------- */

static void add_value(struct report_grid *grid, const char *title,
		      const struct compare_value *value, bool is_share, double threshold,
		      struct drawn *drawn)
{
	const struct compare_result *result = &value->result;

	if (!value->is_known)
		return;
	report_grid_cell(grid, title);
	if (is_share) {
		report_grid_cellf(grid, "%.1f%%", value->a * 100);
		report_grid_cellf(grid, "%.1f%%", value->b * 100);
		report_grid_cellf(grid, "%+.1f points", (value->b - value->a) * 100);
	} else {
		report_grid_cell(grid, units_of_ns(value->a).text);
		report_grid_cell(grid, units_of_ns(value->b).text);
		report_grid_cellf(grid, "%+.1f%%", percent(result->ratio));
	}
	if (!value->has_interval)
		report_grid_cell(grid, "-");
	else if (is_share)
		report_grid_cellf(grid, "%+.1f to %+.1f points", log(result->ratio_low) * 100,
				  log(result->ratio_high) * 100);
	else
		report_grid_cellf(grid, "%+.1f%% to %+.1f%%", percent(result->ratio_low),
				  percent(result->ratio_high));
	report_grid_cell(grid, value_verdict(value, threshold));
	*drawn = (struct drawn){ value->has_interval, *result };
}

static void add_job_columns(struct report_grid *grid, const struct compare *compare)
{
	(void)compare;
	report_grid_column(grid, "JOB", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "A", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "B", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "CHANGE", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "95% INTERVAL", TABLE_LEFT, 0, 1);
	report_grid_column(grid, "RESULT", TABLE_LEFT, 0, 0);
}

/* "12.1 ms to 12.3 ms", "at most 12.3 ms", "12.2 ms". */
static void bounds_text(char *text, size_t size, uint64_t low_ns, uint64_t high_ns)
{
	char low[UNITS_TEXT], high[UNITS_TEXT];

	units_duration(low, low_ns);
	units_duration(high, high_ns);
	if (low_ns == high_ns)
		text_copy(text, size, low);
	else if (low_ns == 0)
		text_format(text, size, "at most %s", high);
	else
		text_format(text, size, "%s to %s", low, high);
}

static void add_exposed(struct report_grid *grid, const struct compare_exposed *exposed)
{
	char text[2 * UNITS_TEXT + 8];

	/* Two upper bounds say nothing: communication is at most that anyway. */
	if (!exposed->is_known || (exposed->a_low_ns == 0 && exposed->b_low_ns == 0))
		return;
	report_grid_cell(grid, "exposed communication");
	bounds_text(text, sizeof(text), exposed->a_low_ns, exposed->a_high_ns);
	report_grid_cell(grid, text);
	bounds_text(text, sizeof(text), exposed->b_low_ns, exposed->b_high_ns);
	report_grid_cell(grid, text);
	report_grid_cell(grid, "-");
	report_grid_cell(grid, "-");
	report_grid_cell(grid, exposed->is_more	  ? "more"
			       : exposed->is_less ? "less"
						  : "not judged: bounds overlap");
}

enum job_row { JOB_ITERATION, JOB_COMMUNICATION, JOB_EXPOSED, JOB_WAITING, JOB_ROWS };

/* Nothing if it is unknown. */
static void add_job(struct report_grid *grid, const struct compare *compare, size_t index,
		    struct drawn *drawn)
{
	switch (index) {
	case JOB_ITERATION:
		add_value(grid, "iteration", &compare->iteration, false, compare->threshold, drawn);
		break;
	case JOB_COMMUNICATION:
		add_value(grid, "communication per iteration", &compare->communication, false,
			  compare->threshold, drawn);
		break;
	case JOB_EXPOSED:
		add_exposed(grid, &compare->exposed);
		break;
	case JOB_WAITING:
		add_value(grid, "waiting, share of run time", &compare->waiting, true,
			  compare->threshold, drawn);
		break;
	}
}

static size_t job_shown(const struct compare *compare, bool has_all)
{
	(void)has_all;
	return compare->iteration.is_known || compare->waiting.is_known ? JOB_ROWS : 0;
}

static void add_sender_columns(struct report_grid *grid, const struct compare *compare)
{
	(void)compare;
	report_grid_column(grid, "SENDER", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "TO", TABLE_LEFT, 0, 0);
	report_grid_column(grid, "COMMUNICATOR", TABLE_LEFT, DIFF_KEY_LEAST, 3);
	report_grid_column(grid, "HOST A", TABLE_LEFT, 0, 5);
	report_grid_column(grid, "HOST B", TABLE_LEFT, 0, 4);
	report_grid_column(grid, "WIRE A", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "WIRE B", TABLE_RIGHT, 0, 2);
	report_grid_column(grid, "B/A", TABLE_RIGHT, 0, 0);
	report_grid_column(grid, "95% INTERVAL", TABLE_LEFT, 0, 1);
	report_grid_column(grid, "RESULT", TABLE_LEFT, 0, 0);
}

static void add_sender(struct report_grid *grid, const struct compare *compare, size_t index,
		       struct drawn *drawn)
{
	const struct compare_sender *sender = &compare->senders[index];

	report_grid_cellf(grid, "rank %s", sender->from);
	report_grid_cellf(grid, "%s%s", sender->to[0] ? "rank " : "ring", sender->to);
	report_grid_cell(grid, sender->comm);
	report_grid_cell(grid, sender->host_a);
	report_grid_cell(grid, sender->host_b);
	duration_cell(grid, sender->wire_a_ns);
	duration_cell(grid, sender->wire_b_ns);
	report_grid_cellf(grid, "%.3f", sender->result.ratio);
	report_grid_cellf(grid, "%.3f-%.3f", sender->result.ratio_low, sender->result.ratio_high);
	report_grid_cell(grid, result_words(&sender->result, compare->threshold));
	*drawn = (struct drawn){ true, sender->result };
}

/* Those that stand out; all of them with --all. */
static size_t senders_shown(const struct compare *compare, bool has_all)
{
	size_t count = 0;

	if (has_all)
		return compare->sender_count;
	while (count < compare->sender_count && count < DIFF_SENDERS &&
	       is_beyond(compare->senders[count].result.ratio, compare->threshold, true))
		count++;
	return count;
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct diff_table {
	const char *id; /* in HTML */
	const char *title;
	const char *one; /* row */
	const char *many;
	bool is_first; /* of the text; written even if it has no rows */
	void (*columns)(struct report_grid *grid, const struct compare *compare);
	size_t (*shown)(const struct compare *compare, bool has_all);
	void (*add)(struct report_grid *grid, const struct compare *compare, size_t index,
		    struct drawn *drawn);
};

static const struct diff_table operations_table = {
	.id = "operations",
	.title = "Operations, without waiting where possible",
	.one = "row",
	.many = "rows",
	.is_first = true,
	.columns = add_columns,
	.shown = rows_shown,
	.add = add_row,
};

static const struct diff_table job_table = {
	.id = "job",
	.title = "The job",
	.columns = add_job_columns,
	.shown = job_shown,
	.add = add_job,
};

static const struct diff_table senders_table = {
	.id = "senders",
	.title = "Senders: time on the wire per transfer",
	.one = "sender",
	.many = "senders",
	.columns = add_sender_columns,
	.shown = senders_shown,
	.add = add_sender,
};

/* ---- text ------------------------------------------------------------------------------------ */

static void side_words(const struct diff_side *side, struct sink *to)
{
	char job[REPORT_WORDS], nccl[REPORT_WORDS], span[REPORT_WORDS];

	if (side->report == NULL) {
		sink_format(to, "%s: expected bandwidths", side->path);
		return;
	}
	report_words_job(side->report, job);
	report_words_nccl(side->report->recording, nccl);
	report_words_span(side->report, span);
	sink_format(to, "%s, %s%s%s; ", job, nccl, span[0] ? "; " : "", span);
	report_words_completeness(side->report, to);
}

static void write_side(struct sink *sink, const char *name, const struct diff_side *side,
		       const struct report_text_options *options)
{
	struct sink text;

	sink_init_memory(&text);
	side_words(side, &text);
	table_wrap(sink, sink_string(&text), name, 3, report_text_width(options));
	sink_release(&text);
}

static void write_differences(struct sink *sink, const struct compare *compare,
			      const struct report_text_options *options)
{
	unsigned int width = report_text_width(options);

	for (size_t i = 0; i < compare->difference_count; i++) {
		const struct compare_difference *one = &compare->differences[i];
		char words[REPORT_WORDS];

		text_format(words, sizeof(words), "%s: A %s, B %s", one->what, one->a, one->b);
		table_wrap(sink, words, "different ", 3, width);
	}
}

static void write_words(struct sink *sink, const struct compare *compare,
			const struct report_text_options *options)
{
	char words[REPORT_WORDS];

	sink_text(sink, "\n");
	for (size_t i = 0; i < ARRAY_LENGTH(sentences); i++) {
		sentences[i](compare, words);
		if (words[0] != '\0')
			table_wrap(sink, words, "", 0, report_text_width(options));
	}
}

/* ---- HTML: the same tables, with each interval drawn ------------------------------------------ */

/* An interval on a scale from CHART_LOW to CHART_HIGH; what lies beyond ends at its border. */
static const double chart_low = 0.75, chart_high = 1.5, chart_width = 160;

static double chart_x(double ratio)
{
	double at = ratio < chart_low ? chart_low : ratio > chart_high ? chart_high : ratio;

	return (at - chart_low) / (chart_high - chart_low) * chart_width;
}

static void write_interval(struct sink *sink, const struct compare_result *result, double threshold)
{
	double low = chart_x(result->ratio_low), high = chart_x(result->ratio_high);

	sink_format(sink,
		    "<svg width=\"%.0f\" height=\"16\" viewBox=\"0 0 %.0f 16\" role=\"img\">"
		    "<title>%+.1f%%, 95%% interval %+.1f%% to %+.1f%%</title>",
		    chart_width, chart_width, percent(result->ratio), percent(result->ratio_low),
		    percent(result->ratio_high));
	sink_format(sink,
		    "<path d=\"M%.1f 0V16\" stroke=\"currentColor\" opacity=\"0.5\"></path>"
		    "<path d=\"M%.1f 0V16\" stroke=\"currentColor\" opacity=\"0.5\" "
		    "stroke-dasharray=\"2 2\"></path>",
		    chart_x(1), chart_x(1 + threshold));
	sink_format(sink,
		    "<rect x=\"%.1f\" y=\"5\" width=\"%.1f\" height=\"6\" rx=\"2\" "
		    "fill=\"currentColor\" opacity=\"0.45\"></rect>"
		    "<circle cx=\"%.1f\" cy=\"8\" r=\"4\" fill=\"currentColor\"></circle></svg>",
		    low, high - low > 2 ? high - low : 2, chart_x(result->ratio));
}

static bool is_alarm(const char *verdict)
{
	return strcmp(verdict, "slower") == 0 || strcmp(verdict, "maybe slower") == 0;
}

static void write_head_row(struct sink *sink, const struct report_grid *grid, uint32_t filled)
{
	sink_text(sink, "<thead><tr>");
	for (size_t i = 0; i < grid->table.count; i++) {
		if (!(filled & 1u << i))
			continue;
		if (i + 1 == grid->table.count)
			sink_text(sink, "<th class=\"plain\">CHANGE (THRESHOLD DASHED)</th>");
		sink_text(sink, grid->columns[i].align == TABLE_RIGHT ? "<th class=\"plain right\">"
								      : "<th class=\"plain\">");
		html_write_text(sink, grid->columns[i].title);
		sink_text(sink, "</th>");
	}
	sink_text(sink, "</tr></thead>\n");
}

static void write_cell(struct sink *sink, const struct report_grid *grid, size_t column,
		       const char *text)
{
	bool is_last = column + 1 == grid->table.count;

	sink_text(sink,
		  grid->columns[column].align == TABLE_RIGHT ? "<td class=\"right\">" : "<td>");
	if (is_last)
		sink_format(sink, "<span class=\"%s\"><span class=\"badge\">",
			    is_alarm(text) ? "error" : "note");
	html_write_text(sink, text);
	sink_text(sink, is_last ? "</span></span></td>" : "</td>");
}

static enum status write_grid(struct sink *sink, const struct report_grid *grid, const char *id,
			      const char *title, const struct drawn *drawn, double threshold)
{
	uint32_t filled = report_grid_filled(grid);
	size_t columns = grid->table.count;

	/* Cells after a missing one would be in the wrong columns. */
	if (grid->table.is_broken)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < columns; i++)
		if (grid->ranks[i] >= DIFF_DETAIL)
			filled &= ~(1u << i);

	sink_format(sink,
		    "<section id=\"%s\"><h2>%s</h2>\n<div class=\"card scroll\" tabindex=\"0\">"
		    "<table>",
		    id, title);
	write_head_row(sink, grid, filled);
	sink_text(sink, "<tbody>\n");
	for (size_t i = 0; i < grid->table.used; i++) {
		size_t column = i % columns;

		if (column == 0)
			sink_text(sink, "<tr>");
		if (column + 1 == columns) {
			sink_text(sink, "<td>");
			if (drawn[i / columns].is_known)
				write_interval(sink, &drawn[i / columns].result, threshold);
			sink_text(sink, "</td>");
		}
		if (filled & 1u << column)
			write_cell(sink, grid, column, grid->table.items[i].text);
		if (column + 1 == columns)
			sink_text(sink, "</tr>\n");
	}
	sink_text(sink, "</tbody></table></div></section>\n");
	return OK;
}

/* As text, or without text options as HTML. */
static enum status show_table(struct sink *sink, const struct compare *compare,
			      const struct diff_table *of, bool has_all,
			      const struct report_text_options *text)
{
	size_t shown = of->shown(compare, has_all), more = of->shown(compare, true) - shown;
	struct report_grid grid;
	struct drawn *drawn;
	enum status status;

	if (shown == 0 && !of->is_first)
		return OK;
	drawn = calloc(shown + 1, sizeof(*drawn));
	if (drawn == NULL)
		return ERR_NO_SPACE;
	report_grid_init(&grid);
	of->columns(&grid, compare);
	for (size_t i = 0; i < shown; i++)
		of->add(&grid, compare, i, &drawn[grid.table.used / grid.table.count]);
	if (text == NULL) {
		status = write_grid(sink, &grid, of->id, of->title, drawn, compare->threshold);
	} else {
		sink_text(sink, of->is_first ? "" : "\n");
		status = report_grid_write(&grid, sink, text->width, NULL);
	}
	if (more > 0)
		sink_format(sink,
			    text ? "(%zu more %s; --all shows them)\n"
				 : "<p class=\"dim\">%zu more %s: --all includes them.</p>\n",
			    more, text_which(more, of->one, of->many));
	free(drawn);
	report_grid_release(&grid);
	return status;
}

enum status diff_text(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
		      const struct compare *compare, const struct report_text_options *options)
{
	enum status status;

	write_side(sink, "A: ", a, options);
	write_side(sink, "B: ", b, options);
	write_differences(sink, compare, options);
	sink_text(sink, "\n");
	status = show_table(sink, compare, &operations_table, options->has_all, options);
	if (status == OK)
		status = show_table(sink, compare, &job_table, options->has_all, options);
	if (status == OK)
		status = show_table(sink, compare, &senders_table, options->has_all, options);
	if (status != OK)
		return status;
	write_words(sink, compare, options);
	return sink->status;
}

static void html_side(struct sink *sink, const char *name, const struct diff_side *side)
{
	struct sink text;

	sink_init_memory(&text);
	side_words(side, &text);
	sink_format(sink, "<div><dt>%s</dt><dd>", name);
	html_write_text(sink, sink_string(&text));
	sink_text(sink, "</dd></div>\n");
	sink_release(&text);
}

static void html_summary(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
			 const struct compare *compare)
{
	bool is_calm = compare_answer(compare) == COMPARE_SAME;
	char words[REPORT_WORDS];

	sink_text(sink, "<section id=\"answer\"><h1>Comparison of two runs</h1>\n"
			"<dl class=\"facts\">\n");
	html_side(sink, "A", a);
	html_side(sink, "B", b);
	sink_text(sink, "</dl>\n");
	words_answer(compare, words);
	sink_format(sink, "<div class=\"%s\"><p id=\"verdict\"><b>",
		    is_calm ? "calm" : "finding error");
	html_write_text(sink, words);
	sink_text(sink, "</b></p>\n");
	for (size_t i = 0; i + 1 < ARRAY_LENGTH(sentences); i++) {
		sentences[i](compare, words);
		if (words[0] == '\0')
			continue;
		sink_text(sink, "<p class=\"sentence\">");
		html_write_text(sink, words);
		sink_text(sink, "</p>\n");
	}
	sink_text(sink, "</div></section>\n");
}

static void html_differences(struct sink *sink, const struct compare *compare)
{
	if (compare->difference_count == 0)
		return;
	sink_text(sink,
		  "<section id=\"differences\"><h2>The runs differ in</h2>\n"
		  "<div class=\"card scroll\" tabindex=\"0\"><table><thead><tr><th "
		  "class=\"plain\">WHAT</th>"
		  "<th class=\"plain\">A</th><th class=\"plain\">B</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < compare->difference_count; i++) {
		const struct compare_difference *one = &compare->differences[i];

		sink_text(sink, "<tr><td>");
		html_write_text(sink, one->what);
		sink_text(sink, "</td><td>");
		html_write_text(sink, one->a);
		sink_text(sink, "</td><td>");
		html_write_text(sink, one->b);
		sink_text(sink, "</td></tr>\n");
	}
	sink_text(sink, "</tbody></table></div></section>\n");
}

enum status diff_html(struct sink *sink, const struct diff_side *a, const struct diff_side *b,
		      const struct compare *compare, bool has_all)
{
	enum status status;

	html_write_start(sink, "Comparison of two runs - Ringside");
	html_summary(sink, a, b, compare);
	html_differences(sink, compare);
	status = show_table(sink, compare, &job_table, has_all, NULL);
	if (status == OK)
		status = show_table(sink, compare, &operations_table, has_all, NULL);
	if (status == OK)
		status = show_table(sink, compare, &senders_table, has_all, NULL);
	if (status != OK)
		return status;
	html_write_end(sink);
	return sink->status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *diff_answer(const struct compare *compare)
{
	static const char *const words[] = {
		[COMPARE_SAME] = "same", [COMPARE_SLOWER] = "slower", [COMPARE_UNKNOWN] = "unknown"
	};

	return words[compare_answer(compare)];
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
	json_put_known_double(json, "transfer_ns", side->transfer_ns > 0, side->transfer_ns);
	json_put_known_double(json, "transfer_busbw_bytes_per_second", side->transfer_busbw > 0,
			      round(side->transfer_busbw));
	json_end(json);
}

static void put_key(struct json *json, uint32_t by, const struct compare_row *row)
{
	size_t part = 0;

	for (unsigned int bit = 0; bit < TALLY_BYS && part < ARRAY_LENGTH(row->key); bit++)
		if (by & 1u << bit)
			json_put_string(json, tally_by_name(bit), row->key[part++]);
}

static void put_row(struct json *json, const struct compare_row *row, double threshold)
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
	json_put_bool(json, "is_undecided", row->is_undecided);
	json_put_string(json, "basis", compare_basis_name(row->basis));
	json_put_double(json, "share", row->share);
	json_put_string(json, "verdict", diff_verdict(row, threshold));
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

static void put_result(struct json *json, const struct compare_result *result, bool has_interval)
{
	json_put_known_double(json, "ratio", has_interval, result->ratio);
	json_put_known_double(json, "ratio_low", has_interval, result->ratio_low);
	json_put_known_double(json, "ratio_high", has_interval, result->ratio_high);
	json_put_bool(json, "is_significant", has_interval && result->is_significant);
	json_put_bool(json, "is_slower", has_interval && result->is_slower);
	json_put_bool(json, "is_faster", has_interval && result->is_faster);
}

static void put_senders(struct json *json, const struct compare *compare)
{
	json_put_array(json, "senders");
	for (size_t i = 0; i < compare->sender_count; i++) {
		const struct compare_sender *sender = &compare->senders[i];

		json_object(json);
		json_put_string(json, "name", sender->comm);
		json_put_string(json, "rank", sender->from);
		if (sender->to[0] != '\0')
			json_put_string(json, "to", sender->to);
		else
			json_put_null(json, "to");
		json_put_string(json, "host_a", sender->host_a);
		json_put_string(json, "host_b", sender->host_b);
		json_put_double(json, "wire_a_ns", sender->wire_a_ns);
		json_put_double(json, "wire_b_ns", sender->wire_b_ns);
		put_result(json, &sender->result, true);
		json_put_bool(json, "is_undecided", sender->is_undecided);
		json_end(json);
	}
	json_end(json);
}

static void put_value(struct json *json, const char *key, const struct compare_value *value,
		      bool is_share)
{
	const struct compare_result *result = &value->result;

	if (!value->is_known) {
		json_put_null(json, key);
		return;
	}
	json_put_object(json, key);
	json_put_double(json, is_share ? "share_a" : "a_ns", value->a);
	json_put_double(json, is_share ? "share_b" : "b_ns", value->b);
	if (is_share) {
		json_put_double(json, "change", value->b - value->a);
		json_put_known_double(json, "change_low", value->has_interval,
				      log(result->ratio_low));
		json_put_known_double(json, "change_high", value->has_interval,
				      log(result->ratio_high));
		json_put_bool(json, "is_significant",
			      value->has_interval && result->is_significant);
		json_put_bool(json, "is_slower", value->has_interval && result->is_slower);
		json_put_bool(json, "is_faster", value->has_interval && result->is_faster);
	} else {
		put_result(json, result, value->has_interval);
	}
	json_end(json);
}

static void put_exposed(struct json *json, const struct compare_exposed *exposed)
{
	if (!exposed->is_known) {
		json_put_null(json, "exposed");
		return;
	}
	json_put_object(json, "exposed");
	json_put_unsigned(json, "a_low_ns", exposed->a_low_ns);
	json_put_unsigned(json, "a_high_ns", exposed->a_high_ns);
	json_put_unsigned(json, "b_low_ns", exposed->b_low_ns);
	json_put_unsigned(json, "b_high_ns", exposed->b_high_ns);
	json_put_bool(json, "is_more", exposed->is_more);
	json_put_bool(json, "is_less", exposed->is_less);
	json_end(json);
}

static void put_job(struct json *json, const struct compare *compare)
{
	json_put_object(json, "job");
	put_value(json, "iteration", &compare->iteration, false);
	put_value(json, "communication", &compare->communication, false);
	put_exposed(json, &compare->exposed);
	put_value(json, "waiting", &compare->waiting, true);
	json_put_bool(json, "is_slower", compare->is_job_slower);
	json_end(json);
}

static void put_sentences(struct json *json, const struct compare *compare)
{
	char words[REPORT_WORDS];

	json_put_array(json, "sentences");
	for (size_t i = 0; i < ARRAY_LENGTH(sentences); i++) {
		sentences[i](compare, words);
		if (words[0] != '\0')
			json_string(json, words);
	}
	json_end(json);
}

static void put_differences(struct json *json, const struct compare *compare)
{
	json_put_array(json, "differences");
	for (size_t i = 0; i < compare->difference_count; i++) {
		json_object(json);
		json_put_string(json, "what", compare->differences[i].what);
		json_put_string(json, "a", compare->differences[i].a);
		json_put_string(json, "b", compare->differences[i].b);
		json_end(json);
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
	json_put_unsigned(json, "undecided", compare->undecided);
	json_put_unsigned(json, "judged", compare->judged);
	json_put_double(json, "judged_share", compare->judged_share);
	json_put_unsigned(json, "senders_slower", compare->senders_slower);
	json_put_unsigned(json, "senders_faster", compare->senders_faster);
	json_put_unsigned(json, "senders_undecided", compare->senders_undecided);
	json_put_string(json, "answer", diff_answer(compare));
	json_put_array(json, "rows");
	for (size_t i = 0; i < compare->count; i++) {
		json_object(json);
		put_key(json, compare->by, &compare->rows[i]);
		put_row(json, &compare->rows[i], compare->threshold);
		json_end(json);
	}
	json_end(json);
	json_put_object(json, "total");
	put_row(json, &compare->total, compare->threshold);
	json_end(json);
	put_sentences(json, compare);
	put_senders(json, compare);
	put_job(json, compare);
	put_differences(json, compare);
	json_end(json);
}

static const struct table_column baseline_columns[] = {
	{ "COMMUNICATOR", TABLE_LEFT, 12 }, { "KIND", TABLE_LEFT, 0 },
	{ "RANKS", TABLE_RIGHT, 0 },	    { "OPERATION", TABLE_LEFT, 0 },
	{ "SIZE", TABLE_RIGHT, 0 },	    { "ALGORITHM", TABLE_LEFT, 4 },
	{ "CALLS", TABLE_RIGHT, 0 },	    { "TRANSFER", TABLE_RIGHT, 0 },
	{ "BUSBW", TABLE_RIGHT, 0 },
};

static void baseline_add_row(struct table *table, const struct baseline_row *row)
{
	char text[UNITS_TEXT];

	table_cell(table, row->comm_name[0] ? row->comm_name : "(no name)");
	table_cell(table, row->kind);
	table_cellf(table, "%d", row->nranks);
	table_cell(table, row->function);
	table_cell(table, row->size);
	table_cellf(table, "%s%s%s", row->algorithm, row->protocol[0] ? " " : "", row->protocol);
	table_cell(table, units_count(text, row->calls));
	/* Times of unmatched calls include waiting, so they are upper bounds. */
	table_cellf(table, "%s%s",
		    row->is_joined ? "" : "<= ", units_duration(text, (uint64_t)row->mean_ns));
	if (row->busbw > 0)
		table_cellf(table, "%s%.2f", row->is_joined ? "" : ">= ", row->busbw / 1e9);
	else
		table_cell(table, "-");
}

static void write_head(struct sink *sink, const struct baseline *baseline)
{
	char text[UNITS_TEXT];

	if (baseline->jobs > 1)
		sink_format(sink, "%" PRIu32 " jobs", baseline->jobs);
	else
		sink_format(sink, "job %s", baseline->job[0] ? baseline->job : "(no name)");
	sink_format(sink, ": %" PRIu32 " %s", baseline->ranks,
		    text_which(baseline->ranks, "rank", "ranks"));
	if (baseline->saved_wall_ns > 0)
		sink_format(sink, ", recorded until %s",
			    units_wall_time(text, baseline->saved_wall_ns));
	sink_format(sink, "; waiting was %.0f%% of collective time\n", 100 * baseline->wait_share);
	if (baseline->iterations > 0)
		sink_format(sink, "%" PRIu64 " %s of %" PRIu32 " %s, median %s\n",
			    baseline->iterations,
			    text_which(baseline->iterations, "iteration", "iterations"),
			    baseline->iteration_ops,
			    text_which(baseline->iteration_ops, "operation", "operations"),
			    units_duration(text, (uint64_t)baseline->iteration_ns));
	sink_text(sink, "\n");
}

enum status baseline_text(struct sink *sink, const struct baseline *baseline, unsigned int width)
{
	struct table *table = table_new(baseline_columns, ARRAY_LENGTH(baseline_columns));
	enum status status;

	if (table == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < baseline->count; i++)
		baseline_add_row(table, &baseline->rows[i]);
	write_head(sink, baseline);
	status = table_write(table, sink, width);
	table_free(table);
	return status;
}

static void baseline_put_row(struct json *json, const struct baseline_row *row)
{
	json_object(json);
	json_put_string(json, "comm_name", row->comm_name);
	json_put_string(json, "kind", row->kind);
	json_put_string(json, "function", row->function);
	json_put_string(json, "size", row->size);
	json_put_string(json, "algorithm", row->algorithm);
	json_put_string(json, "protocol", row->protocol);
	json_put_signed(json, "nranks", row->nranks > 0 ? row->nranks : 0);
	json_put_signed(json, "nnodes", row->nnodes > 0 ? row->nnodes : 0);
	json_put_unsigned(json, "calls", row->calls);
	json_put_unsigned(json, "communicators", row->comms);
	json_put_bool(json, "is_joined", row->is_joined);
	json_put_double(json, "busbw_bytes_per_second", row->busbw);
	json_put_double(json, "mean_ns", row->mean_ns);
	json_put_double(json, "median_ns", row->median_ns);
	json_put_double(json, "p10_ns", row->p10_ns);
	json_put_double(json, "p99_ns", row->p99_ns);
	json_put_double(json, "wire_ns", row->wire_ns);
	json_put_double(json, "consume_ns", row->consume_ns);
	json_put_double(json, "channels", row->channels);
	/* Earlier versions take the first three for those of durations, and a row without samples for nothing. */
	json_put_double(json, "log_mean", row->is_wire ? 0 : row->log_mean);
	json_put_double(json, "log_deviation", row->is_wire ? 0 : row->log_deviation);
	json_put_double(json, "samples", row->is_wire ? 0 : row->samples);
	if (row->is_wire) {
		json_put_double(json, "wire_log_mean", row->log_mean);
		json_put_double(json, "wire_log_deviation", row->log_deviation);
		json_put_double(json, "wire_samples", row->samples);
	}
	json_end(json);
}

void baseline_json(struct json *json, const struct baseline *baseline)
{
	json_object(json);
	json_put_string(json, "format", "ringside-baseline");
	json_put_unsigned(json, "version", BASELINE_VERSION);
	json_put_string(json, "ringside", RINGSIDE_VERSION);
	json_put_string(json, "job", baseline->job);
	json_put_string(json, "durations", baseline->durations);
	json_put_unsigned(json, "jobs", baseline->jobs);
	json_put_unsigned(json, "ranks", baseline->ranks);
	json_put_unsigned(json, "recorded_until_wall_ns", baseline->saved_wall_ns);
	json_put_double(json, "wait_share", baseline->wait_share);
	json_put_unsigned(json, "iterations", baseline->iterations);
	json_put_unsigned(json, "iteration_operations", baseline->iteration_ops);
	json_put_double(json, "iteration_median_ns", baseline->iteration_ns);
	json_put_double(json, "iteration_busy_median_ns", baseline->iteration_busy_ns);
	json_put_array(json, "rows");
	for (size_t i = 0; i < baseline->count; i++)
		baseline_put_row(json, &baseline->rows[i]);
	json_end(json);
	json_end(json);
}
