/*
 * Statistics of results: every number for few and many values, times of calls by clock and combination of ranks,
 * ratios with their intervals, bins; and what a run takes. Compared with tests/unit/bench/expected/result_edges.txt.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/op_layout.h"
#include "tests/support/bench_sample.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

/* In no order, without repetitions: i * 37 mod 101 of 1 to 100. */
static void values_fill(double *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] = 10 * (double)((i + 1) * 37 % 101) + (double)(i / 100);
}

static void put(struct sink *text, const char *name, double value)
{
	if (isnan(value))
		sink_format(text, " %s -", name);
	else
		sink_format(text, " %s %.6g", name, value);
}

static void show_figures(struct sink *text, const char *title, const struct bench_figures *of)
{
	sink_format(text, "%s: %zu,", title, of->count);
	put(text, "mean", of->mean);
	put(text, "deviation", of->deviation);
	put(text, "least", of->least);
	put(text, "p05", of->p05);
	put(text, "p25", of->p25);
	put(text, "p50", of->p50);
	put(text, "p75", of->p75);
	put(text, "p90", of->p90);
	put(text, "p95", of->p95);
	put(text, "p99", of->p99);
	put(text, "most", of->most);
	sink_text(text, "\n");
}

static void figures_of_few_and_many(struct sink *text)
{
	static const size_t counts[] = {
		0, 1, 2, 3, 4, 5, 9, 10, 11, 19, 20, 21, 99, 100, 101, 200
	};
	double values[200];
	bool is_sorted = true;

	sink_text(text, "=== figures\n");
	for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
		struct bench_figures figures;

		values_fill(values, counts[i]);
		figures = bench_figures_of(values, counts[i]);
		show_figures(text, "of values", &figures);
		for (size_t j = 1; j < counts[i]; j++)
			is_sorted &= values[j - 1] <= values[j];
	}
	EXPECT_THAT("values are sorted in place", is_sorted);
}

/* Three ranks, four calls; rank 1 took no part in the second cell. */
static void times_of_calls(struct sink *text)
{
	static const char *const clocks[] = { "GPU", "issue", "done" };
	static const char *const overs[] = { "mean", "min", "max" };
	const int32_t peers[] = { 2, -1, 0 };
	struct bench_cell like = { .function = OP_ALL_REDUCE,
				   .mode = BENCH_BLOCKING,
				   .root = -1,
				   .nranks = 3,
				   .bytes = 4000,
				   .calls = 4 };
	struct bench_figures figures;
	struct bench_run run;

	bench_run_init(&run);
	if (bench_run_set_ranks(&run, 3) != OK || bench_run_add_cell(&run, &like) == NULL)
		abort();
	like.function = OP_SEND_RECV;
	like.peers = (int32_t *)(uintptr_t)peers;
	bench_run_add_cell(&run, &like);
	like.peers = NULL;
	like.mode = BENCH_LOOP;
	like.loop_ns = 777;
	bench_run_add_cell(&run, &like);
	for (size_t c = 0; c < 2; c++)
		for (size_t i = 0; i < 12; i++) {
			struct bench_call *call = &run.cells[c].calls_of[i];

			if (c == 1 && i / 4 == 1)
				continue;
			call->gpu_ns = 100 + 10 * (i / 4) + i % 4;
			call->issue_ns = 20 + 7 * (i / 4) + 3 * (i % 4);
			call->done_ns = c == 0 ? 200 + i * i : 0;
		}
	sink_text(text, "=== times of calls\n");
	for (size_t c = 0; c < 3; c++)
		for (unsigned int clock = BENCH_GPU; clock <= BENCH_DONE; clock++)
			for (unsigned int over = BENCH_OVER_MEAN; over <= BENCH_OVER_MAX; over++) {
				double times[4];
				size_t count = bench_call_times(&run.cells[c], clock, over, times);

				sink_format(text, "cell %zu, %s, %s:", c, clocks[clock],
					    overs[over]);
				for (size_t i = 0; i < count; i++)
					sink_format(text, " %.6g", times[i]);
				sink_text(text, "\n");
			}
	for (size_t c = 0; c < 3; c++) {
		EXPECT_EQUAL(bench_cell_figures(&run.cells[c], BENCH_OVER_MAX, &figures), OK);
		show_figures(text, "of a cell", &figures);
		sink_format(text, "algbw %.6g, busbw %.6g; %llu steps\n",
			    bench_algbw(&run.cells[c], figures.p50),
			    bench_busbw(&run.cells[c], figures.p50),
			    (unsigned long long)bench_cell_steps(&run.cells[c]));
	}
	sink_format(text, "of no time: %.6g %.6g\n", bench_algbw(&run.cells[0], 0),
		    bench_busbw(&run.cells[0], 0));
	bench_run_release(&run);
}

static void ratios_of_runs(struct sink *text)
{
	static const struct {
		const char *title;
		size_t runs, count;
		double factor, spread;
	} cases[] = {
		{ "one run of one value", 1, 1, 2, 0 }, { "one run", 1, 20, 1.5, 0.1 },
		{ "two runs, the same", 2, 20, 1, 0 },	{ "three runs", 3, 15, 1.1, 0.2 },
		{ "runs that differ", 5, 9, 0.9, 0.5 }, { "many values", 4, 60, 1.25, 0.05 },
	};
	double with[5][60], without[5][60];

	sink_text(text, "=== ratios\n");
	for (size_t c = 0; c < ARRAY_LENGTH(cases); c++) {
		struct bench_sample left[5], right[5];
		struct bench_ratio ratio;

		for (size_t run = 0; run < cases[c].runs; run++) {
			for (size_t i = 0; i < cases[c].count; i++) {
				double noise = cases[c].spread * (double)((i * 7 + run * 5) % 11);

				without[run][i] = 1000 + 10 * (double)(i % 7) + 30 * (double)run;
				with[run][i] = without[run][i] * cases[c].factor * (1 + noise / 10);
			}
			left[run] = (struct bench_sample){ with[run], cases[c].count };
			right[run] = (struct bench_sample){ without[run], cases[c].count };
		}
		EXPECT_EQUAL(bench_ratio_of(left, right, cases[c].runs, 42, &ratio), OK);
		sink_format(text, "%s: %.5f, %.5f to %.5f\n", cases[c].title, ratio.ratio,
			    ratio.low, ratio.high);
	}
}

static void bins_of_values(struct sink *text)
{
	static const double few[] = { 0, 0, 1, 2.5, 4.5, 8 }, same[] = { 5, 5, 5 },
			    none[] = { 0, 0 };
	double many[200];
	const struct {
		const double *values;
		size_t count, bins;
	} cases[] = { { few, 6, 3 },	 { few, 6, 1 },	   { same, 3, 4 },
		      { none, 2, 4 },	 { few, 0, 4 },	   { few, 6, 0 },
		      { few + 2, 4, 3 }, { many, 200, 5 }, { many, 200, 100 } };

	values_fill(many, 200);
	stats_sort(many, 200);
	sink_text(text, "=== bins\n");
	for (size_t c = 0; c < ARRAY_LENGTH(cases); c++) {
		struct bench_bins bins;
		uint64_t sum = 0;

		bench_bins_of(cases[c].values, cases[c].count, cases[c].bins, &bins);
		sink_format(text, "%zu values, %zu of %zu bins:", cases[c].count, bins.bins,
			    cases[c].bins);
		for (size_t i = 0; i < bins.bins && i < 8; i++)
			sink_format(text, " %.4g: %llu", bins.edges[i],
				    (unsigned long long)bins.counts[i]);
		for (size_t i = 0; i < bins.bins; i++)
			sum += bins.counts[i];
		sink_format(text, "; up to %.4g, in total %llu\n", bins.edges[bins.bins],
			    (unsigned long long)sum);
	}
}

static void notes_of_a_run(struct sink *text)
{
	struct bench_run run;

	bench_run_init(&run);
	EXPECT_EQUAL(bench_run_set_ranks(&run, 0), ERR_RANGE);
	EXPECT_EQUAL(bench_run_set_ranks(&run, BENCH_RANKS_MAX + 1), ERR_RANGE);
	EXPECT_EQUAL(bench_run_set_ranks(&run, BENCH_RANKS_MAX), OK);
	EXPECT_EQUAL(run.ranks[BENCH_RANKS_MAX - 1].pid, 0);
	bench_run_note(&run, "a note");
	bench_run_note(&run, "a %s", "note");
	EXPECT_EQUAL(run.note_count, 1);
	for (int i = 0; i < BENCH_NOTES_MAX + 2; i++)
		bench_run_note(&run, "note %d", i);
	sink_format(text, "=== notes\n%zu, %zu lost, last %s\n", run.note_count, run.notes_lost,
		    run.notes[run.note_count - 1]);
	bench_run_release(&run);
}

static void cells_have_words(struct sink *text)
{
	char words[BENCH_CELL_TEXT];
	struct bench_run run;

	sample_everything(&run);
	sink_text(text, "=== words\n");
	for (size_t i = 0; i < run.cell_count; i++)
		sink_format(text, "%s\n", bench_cell_words(words, &run.cells[i]));
	bench_run_release(&run);
}

int main(void)
{
	struct sink text;

	sink_init_memory(&text);
	figures_of_few_and_many(&text);
	times_of_calls(&text);
	ratios_of_runs(&text);
	bins_of_values(&text);
	notes_of_a_run(&text);
	cells_have_words(&text);
	EXPECT_THAT("numbers as in result_edges.txt",
		    expected_text(&text, "tests/unit/bench/expected/result_edges.txt"));
	return tap_done();
}
