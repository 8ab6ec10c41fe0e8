#include "view/health_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bench/bench_stats.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "output/table.h"

enum { NUMBER_TEXT = 32 };

/* Three digits, as many as such measurements are good for; "-" unknown. */
static const char *number(char to[static NUMBER_TEXT], double value)
{
	int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

	if (value > 0)
		text_format(to, NUMBER_TEXT, "%.*f", digits, value);
	else
		text_copy(to, NUMBER_TEXT, "-");
	return to;
}

static const char *percent(char to[static NUMBER_TEXT], double part, double of)
{
	if (part > 0 && of > 0)
		text_format(to, NUMBER_TEXT, "%.0f %%", part / of * 100);
	else
		text_copy(to, NUMBER_TEXT, "-");
	return to;
}

static const char *duration(char to[static UNITS_TEXT], double ns)
{
	return ns > 0 ? units_duration(to, (uint64_t)llround(ns)) : "-";
}

const char *health_rank_words(char to[static HEALTH_RANK_WORDS], const struct bench_run *run,
			      int32_t rank)
{
	const struct bench_rank *who;

	if (rank < 0 || rank >= run->nranks || run->ranks == NULL) {
		text_format(to, HEALTH_RANK_WORDS, "rank %d", (int)rank);
		return to;
	}
	who = &run->ranks[rank];
	text_format(to, HEALTH_RANK_WORDS, "rank %d (%s, GPU %d)", (int)rank,
		    who->host[0] != '\0' ? who->host : "host unknown", (int)who->device);
	return to;
}

/* ---- who, and what was found ----------------------------------------------------------------- */

static void write_who(struct sink *sink, const struct bench_run *run, unsigned int width)
{
	const char *gpu = run->nranks > 0 && run->ranks != NULL ? run->ranks[0].gpu_name : "";
	struct sink line;

	sink_init_memory(&line);
	sink_format(&line, "%d %s on %d %s", (int)run->nranks,
		    text_which((uint64_t)run->nranks, "rank", "ranks"), (int)run->nodes,
		    text_which((uint64_t)run->nodes, "node", "nodes"));
	if (gpu[0] != '\0')
		sink_format(&line, ", %s", gpu);
	if (run->nccl_version > 0)
		sink_format(&line, ", NCCL %d.%d.%d", run->nccl_version / 10000,
			    run->nccl_version / 100 % 100, run->nccl_version % 100);
	if (run->is_gpu_shared)
		sink_text(&line, "; ranks share GPUs: their links are sockets of this machine");
	table_wrap(sink, sink_string(&line), "", 0, width);
	sink_release(&line);
}

static void write_findings(struct sink *sink, const struct health *health, unsigned int width)
{
	if (health->finding_count == 0)
		return;
	sink_text(sink, "\nFOUND\n");
	for (size_t i = 0; i < health->finding_count; i++) {
		const struct health_finding *one = &health->findings[i];
		struct sink text;

		sink_init_memory(&text);
		sink_format(&text, "%s (%s)", one->text, health_confidence_name(one->confidence));
		table_wrap(sink, sink_string(&text), "- ", 2, width);
		sink_release(&text);
		if (one->advice[0] != '\0')
			table_wrap(sink, one->advice, "  ", 2, width);
	}
	if (health->findings_lost > 0)
		sink_format(sink, "  and %zu more\n", health->findings_lost);
}

/* ---- kinds of links, collectives ------------------------------------------------------------- */

static void pair_cell(struct report_grid *grid, const struct health *health, size_t index)
{
	if (index < health->pair_count)
		report_grid_cellf(grid, "%d-%d", (int)health->pairs[index].first,
				  (int)health->pairs[index].second);
	else
		report_grid_cell(grid, "-");
}

static void add_kind(struct report_grid *grid, const struct health *health, enum health_link link)
{
	const struct health_kind *kind = &health->kinds[link];
	char text[NUMBER_TEXT], time[UNITS_TEXT];

	report_grid_cell(grid, health_link_name(link));
	report_grid_cellf(grid, "%zu", kind->pairs);
	report_grid_cell(grid, number(text, kind->median));
	report_grid_cell(grid, number(text, kind->least));
	pair_cell(grid, health, kind->slowest);
	report_grid_cell(grid, number(text, kind->expected));
	report_grid_cell(grid, percent(text, kind->median, kind->expected));
	report_grid_cell(grid, duration(time, kind->latency_median_ns));
	report_grid_cell(grid, duration(time, kind->latest < health->pair_count
						      ? health->pairs[kind->latest].latency_ns
						      : 0));
	pair_cell(grid, health, kind->latest);
}

static enum status write_kinds(struct sink *sink, const struct health *health, unsigned int width)
{
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	report_grid_column(&grid, "LINKS", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "PAIRS", TABLE_RIGHT, 0, 5);
	report_grid_column(&grid, "MEDIAN GB/s", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "LEAST GB/s", TABLE_RIGHT, 0, 2);
	report_grid_column(&grid, "SLOWEST", TABLE_LEFT, 0, 3);
	report_grid_column(&grid, "EXPECTED GB/s", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "OF THAT", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "LATENCY", TABLE_RIGHT, 0, 4);
	report_grid_column(&grid, "WORST", TABLE_RIGHT, 0, 6);
	report_grid_column(&grid, "LATEST", TABLE_LEFT, 0, 7);
	for (unsigned int link = 0; link < HEALTH_LINKS; link++)
		if (health->kinds[link].pairs > 0 || health->kinds[link].latency_pairs > 0)
			add_kind(&grid, health, (enum health_link)link);
	if (grid.used > 0)
		sink_byte(sink, '\n');
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	return status;
}

static enum status write_collectives(struct sink *sink, const struct health *health,
				     unsigned int width)
{
	struct report_grid grid;
	enum status status;

	if (health->collective_count == 0)
		return OK;
	report_grid_init(&grid);
	report_grid_column(&grid, "COLLECTIVE", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "SIZE", TABLE_RIGHT, 0, 2);
	report_grid_column(&grid, "TIME", TABLE_RIGHT, 0, 3);
	report_grid_column(&grid, "BUSBW GB/s", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "EXPECTED GB/s", TABLE_RIGHT, 0, 1);
	report_grid_column(&grid, "OF THAT", TABLE_RIGHT, 0, 1);
	for (size_t i = 0; i < health->collective_count; i++) {
		const struct health_collective *one = &health->collectives[i];
		char text[NUMBER_TEXT], units[UNITS_TEXT];

		report_grid_cell(&grid, op_function_name(one->function));
		report_grid_cell(&grid, units_bytes(units, one->bytes));
		report_grid_cell(&grid, duration(units, one->time_ns));
		report_grid_cell(&grid, number(text, one->busbw));
		report_grid_cell(&grid, number(text, one->expected));
		report_grid_cell(&grid, percent(text, one->busbw, one->expected));
	}
	sink_byte(sink, '\n');
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	return status;
}

/* The largest AllReduce was measured before the pairs and behind them: did the machine get slower? */
static enum status write_before_and_after(struct sink *sink, const struct bench_run *run)
{
	const struct bench_cell *first = NULL, *last = NULL;
	struct bench_figures before, after;
	char a[NUMBER_TEXT], b[NUMBER_TEXT], size[UNITS_TEXT];
	enum status status;

	for (size_t i = 0; i < run->cell_count; i++) {
		const struct bench_cell *cell = &run->cells[i];

		if (cell->function != OP_ALL_REDUCE || cell->calls == 0)
			continue;
		if (first == NULL || cell->bytes > first->bytes)
			first = cell;
		if (first->bytes == cell->bytes)
			last = cell;
	}
	if (first == NULL || last == first)
		return OK;
	status = bench_cell_figures(first, BENCH_OVER_MEAN, &before);
	if (status == OK)
		status = bench_cell_figures(last, BENCH_OVER_MEAN, &after);
	if (status == OK && bench_busbw(first, before.p50) > 0 && bench_busbw(last, after.p50) > 0)
		sink_format(
			sink, "\nAllReduce of %s: %s GB/s at the beginning, %s GB/s at the end\n",
			units_bytes(size, first->bytes), number(a, bench_busbw(first, before.p50)),
			number(b, bench_busbw(last, after.p50)));
	return status;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Against the median of their kind: a link between nodes is no slow link inside one. */
static double pair_share(const struct health *health, const struct health_pair *pair)
{
	double median = health->kinds[pair->link].median;

	return pair->bandwidth > 0 && median > 0 ? pair->bandwidth / median : INFINITY;
}

static void add_pair(struct report_grid *grid, const struct health *health,
		     const struct bench_run *run, const struct health_pair *pair)
{
	char text[NUMBER_TEXT], time[UNITS_TEXT], who[HEALTH_RANK_WORDS];

	report_grid_cell(grid, health_rank_words(who, run, pair->first));
	report_grid_cell(grid, health_rank_words(who, run, pair->second));
	report_grid_cell(grid, health_link_name(pair->link));
	report_grid_cellf(grid, "%s%s", number(text, pair->bandwidth), pair->is_slow ? "*" : "");
	report_grid_cell(grid, percent(text, pair->bandwidth, health->kinds[pair->link].median));
	report_grid_cellf(grid, "%s%s", duration(time, pair->latency_ns), pair->is_late ? "*" : "");
}

/* A few of thousands: the slowest that has not been shown, again and again. */
static enum status write_slowest(struct sink *sink, const struct health *health,
				 const struct bench_run *run, unsigned int width)
{
	size_t shown[HEALTH_SLOWEST], count = 0;
	struct report_grid grid;
	enum status status;

	report_grid_init(&grid);
	report_grid_column(&grid, "SLOWEST PAIRS", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "AND", TABLE_LEFT, 0, 0);
	report_grid_column(&grid, "LINK", TABLE_LEFT, 0, 4);
	report_grid_column(&grid, "GB/s", TABLE_RIGHT, 0, 0);
	report_grid_column(&grid, "OF MEDIAN", TABLE_RIGHT, 0, 2);
	report_grid_column(&grid, "LATENCY", TABLE_RIGHT, 0, 3);
	while (count < HEALTH_SLOWEST) {
		size_t slowest = SIZE_MAX;

		for (size_t i = 0; i < health->pair_count; i++) {
			bool is_shown = false;

			for (size_t s = 0; s < count; s++)
				is_shown |= shown[s] == i;
			if (is_shown || isinf(pair_share(health, &health->pairs[i])))
				continue;
			if (slowest == SIZE_MAX ||
			    pair_share(health, &health->pairs[i]) <
				    pair_share(health, &health->pairs[slowest]))
				slowest = i;
		}
		if (slowest == SIZE_MAX)
			break;
		shown[count++] = slowest;
		add_pair(&grid, health, run, &health->pairs[slowest]);
	}
	if (count > 0)
		sink_byte(sink, '\n');
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	return status;
}

static void fill_matrix(struct report_grid *grid, const struct health *health, int32_t nranks)
{
	const struct health_pair *at[HEALTH_MATRIX_RANKS][HEALTH_MATRIX_RANKS] = { 0 };

	for (size_t i = 0; i < health->pair_count; i++) {
		const struct health_pair *pair = &health->pairs[i];

		if (pair->first >= 0 && pair->first < nranks && pair->second >= 0 &&
		    pair->second < nranks)
			at[pair->first][pair->second] = at[pair->second][pair->first] = pair;
	}
	for (int32_t row = 0; row < nranks; row++) {
		report_grid_cellf(grid, "%d", (int)row);
		for (int32_t column = 0; column < nranks; column++) {
			const struct health_pair *pair = at[row][column];
			char text[NUMBER_TEXT];

			if (row == column || pair == NULL)
				report_grid_cell(grid, row == column ? "." : "?");
			else
				report_grid_cellf(grid, "%s%s", number(text, pair->bandwidth),
						  pair->is_slow ? "*" : "");
		}
	}
}

static enum status write_matrix(struct sink *sink, const struct health *health, int32_t nranks,
				unsigned int width)
{
	char titles[HEALTH_MATRIX_RANKS][NUMBER_TEXT];
	struct report_grid grid;
	enum status status;

	if (nranks < 2 || health->pair_count == 0)
		return OK;
	if (nranks > HEALTH_MATRIX_RANKS) {
		sink_format(sink,
			    "\n(all %zu pairs are in the JSON: a matrix is shown up to %d ranks)\n",
			    health->pair_count, HEALTH_MATRIX_RANKS);
		return OK;
	}
	report_grid_init(&grid);
	report_grid_column(&grid, "RANK", TABLE_RIGHT, 0, 0);
	for (int32_t i = 0; i < nranks; i++) {
		text_format(titles[i], sizeof(titles[i]), "%d", (int)i);
		report_grid_column(&grid, titles[i], TABLE_RIGHT, 0, (unsigned int)i);
	}
	fill_matrix(&grid, health, nranks);
	sink_text(sink, "\nGB/s of each pair, each way, both ways at once (* slow, ? not "
			"measured)\n");
	status = report_grid_write(&grid, sink, width, NULL);
	report_grid_release(&grid);
	return status;
}

/* ---- what is not known ----------------------------------------------------------------------- */

static void write_unknown(struct sink *sink, const struct health *health,
			  const struct bench_run *run, unsigned int width)
{
	if (health->reason_count > 0)
		sink_text(sink, "\nNOT JUDGED\n");
	for (size_t i = 0; i < health->reason_count; i++)
		table_wrap(sink, health->reasons[i], "- ", 2, width);
	if (run->note_count > 0)
		sink_text(sink, "\nNOTES\n");
	for (size_t i = 0; i < run->note_count; i++)
		table_wrap(sink, run->notes[i], "- ", 2, width);
	if (run->notes_lost > 0)
		sink_format(sink, "- and %zu more notes\n", run->notes_lost);
}

enum status health_text(struct sink *sink, const struct health *health, const struct bench_run *run,
			const struct health_text_options *options)
{
	unsigned int width = options->width;
	enum status status;

	sink_format(sink, "%s\n", health->sentence);
	if (options->is_quiet)
		return sink->status;
	write_who(sink, run, width);
	write_findings(sink, health, width);
	status = write_kinds(sink, health, width);
	if (status == OK)
		status = write_collectives(sink, health, width);
	if (status == OK)
		status = write_before_and_after(sink, run);
	if (status == OK)
		status = write_slowest(sink, health, run, width);
	if (status == OK)
		status = write_matrix(sink, health, run->nranks, width);
	write_unknown(sink, health, run, width);
	return status == OK ? sink->status : status;
}
