/*
 * Every row of comparisons of hand-made jobs: completeness, accuracy, overhead and training, with one run to four,
 * cells that share a size, and plugins of every kind. Compared with tests/unit/bench/expected/profilers_rows.txt.
 */
#include "bench/profilers.h"

#include <math.h>

#include "common/attributes.h"
#include "common/op.h"
#include "import/foreign.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"
#include "tests/unit/bench/profilers_stage.h"

static void put(struct sink *text, const char *name, double value)
{
	if (isnan(value))
		sink_format(text, " %s -", name);
	else
		sink_format(text, " %s %.5g", name, value);
}

static void put_quantiles(struct sink *text, const struct profilers_quantiles *of)
{
	put(text, "p05", of->p05);
	put(text, "p25", of->p25);
	put(text, "p50", of->p50);
	put(text, "p75", of->p75);
	put(text, "p95", of->p95);
}

static const char *function_of(uint8_t function)
{
	return function ? op_function_name(function) : "all";
}

static void show(struct sink *text, const struct profilers_comparison *comparison)
{
	char size[PROFILERS_SHORT_TEXT], sentence[PROFILERS_SHORT_SENTENCE];

	for (size_t i = 0; i < comparison->complete_count; i++) {
		const struct profilers_complete *row = &comparison->complete[i];

		sink_format(text, "complete: %d %s %s rank %d %s%s: %llu, %llu, %llu, %llu, %llu\n",
			    row->plugin, bench_mode_name(row->mode), function_of(row->function),
			    (int)row->rank, profilers_size_text(size, row->bytes, row->bytes_to),
			    row->is_align ? " align" : "", (unsigned long long)row->counts.issued,
			    (unsigned long long)row->counts.recorded,
			    (unsigned long long)row->counts.untimed,
			    (unsigned long long)row->counts.missing,
			    (unsigned long long)row->counts.excess);
	}
	for (size_t i = 0; i < comparison->accuracy_count; i++) {
		const struct profilers_accuracy *row = &comparison->accuracy[i];

		sink_format(text, "accuracy: %d %s %s %s source %d%s: %llu calls, %llu %llu:",
			    row->plugin, bench_mode_name(row->mode), function_of(row->function),
			    profilers_size_text(size, row->bytes, row->bytes_to), row->source,
			    row->is_mean_only ? " means" : "", (unsigned long long)row->calls,
			    (unsigned long long)row->in_order, (unsigned long long)row->by_time);
		put_quantiles(text, &row->ratio);
		sink_text(text, "\n");
	}
	for (size_t i = 0; i < comparison->overhead_count; i++) {
		const struct profilers_overhead *row = &comparison->overhead[i];

		sink_format(text, "overhead: %d %s %s %llu %s: %u runs, %u cells, %llu calls, %d:",
			    row->plugin, row->mode ? bench_mode_name(row->mode) : "all modes",
			    function_of(row->function), (unsigned long long)row->bytes,
			    row->clock == BENCH_GPU ? "GPU" : "host", row->runs, row->cells,
			    (unsigned long long)row->calls, (int)profilers_verdict(row));
		put(text, "ratio", row->ratio.ratio);
		if (row->has_interval) {
			put(text, "low", row->ratio.low);
			put(text, "high", row->ratio.high);
		}
		put(text, "with", row->with_ns.p50);
		put(text, "without", row->without_ns.p50);
		sink_text(text, "\n");
	}
	for (size_t i = 0; i < comparison->training_count; i++) {
		const struct profilers_train *row = &comparison->training[i];

		sink_format(text,
			    "training: %d: %u runs, %u silent, %u unreadable, %u failed, %u x %d;",
			    row->plugin, row->runs, row->silent, row->unreadable, row->failed,
			    row->epochs, (int)row->ranks);
		sink_format(text, " issued %llu, recorded %llu, %llu untimed%s%s%s:",
			    (unsigned long long)row->issued[OP_ALL_REDUCE],
			    (unsigned long long)row->recorded[OP_ALL_REDUCE],
			    (unsigned long long)row->untimed, row->is_counted ? ", counted" : "",
			    row->is_read ? ", read" : "", row->is_comm_by_time ? ", by time" : "");
		put(text, "epoch", row->epoch_ns);
		if (row->has_comm) {
			put(text, "comm", row->comm_ns);
			put(text, "share", row->comm_share);
		}
		put(text, "slowdown", row->slowdown.ratio);
		if (row->has_interval) {
			put(text, "low", row->slowdown.low);
			put(text, "high", row->slowdown.high);
		}
		sink_format(text, " %s\n", row->problem);
	}
	for (size_t i = 1; i < comparison->plugin_count; i++)
		sink_format(text, "in short: %s\n", profilers_short(sentence, comparison, i));
}

/* Two cells of one size, in order of function and size or reversed. */
static void fill(struct stage_job *job, uint8_t mode, double slower, bool is_reversed)
{
	static const struct {
		uint8_t function;
		uint64_t bytes;
		uint32_t calls;
	} cells[] = { { OP_ALL_REDUCE, 1024, 8 },
		      { OP_ALL_REDUCE, 1024, 4 },
		      { OP_ALL_REDUCE, 1 << 20, 6 },
		      { OP_ALL_GATHER, 1024, 5 } };

	for (size_t i = 0; i < ARRAY_LENGTH(cells); i++) {
		size_t at = is_reversed ? ARRAY_LENGTH(cells) - 1 - i : i;

		stage_cell(job, mode, cells[at].function, cells[at].bytes, cells[at].calls,
			   slower * (1 + 0.1 * (double)at));
	}
}

static void add_job(struct profilers *work, size_t plugin, uint32_t run, uint8_t mode,
		    double slower, const struct stage_faults *faults)
{
	struct profilers_trial trial = { .plugin = plugin, .run = run, .output = PROFILERS_READ };
	struct stage_job job;

	stage_init(&job);
	fill(&job, mode, slower * (1 + 0.01 * run), run % 2 == 1);
	trial.bench = &job.bench;
	if (faults != NULL) {
		stage_record(&job, faults);
		trial.recording = &job.recording;
	}
	EXPECT_EQUAL(profilers_trial(work, &trial), OK);
	stage_release(&job);
}

static void runs_are_compared(struct sink *text, uint32_t runs)
{
	static const struct stage_faults good = { .factor = 0.9 };
	static const struct stage_faults bad = {
		.factor = 1.25, .lose_every = 5, .untimed_every = 4, .double_every = 7
	};
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();

	profilers_plugin(work, "good", "good.so", PROFILERS_RINGSIDE);
	profilers_plugin(work, "bad", "bad.so", PROFILERS_INSPECTOR);
	for (uint32_t run = 0; run < runs; run++) {
		add_job(work, 0, run, BENCH_BLOCKING, 1, NULL);
		add_job(work, 1, run, BENCH_BLOCKING, 1.02, &good);
		if (run < 2)
			add_job(work, 2, run, BENCH_BLOCKING, 0.8, &bad);
	}
	if (runs == 3)
		for (uint32_t run = 0; run < runs; run++) {
			add_job(work, 0, run, BENCH_GRAPH, 1, NULL);
			add_job(work, 1, run, BENCH_GRAPH, 1.5, &good);
		}
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	sink_format(text, "=== %u runs\n", runs);
	show(text, &comparison);
	profilers_comparison_release(&comparison);
}

/* ---- training ----------------------------------------------------------------------------------------- */

static enum status add_training(struct profilers *work, size_t plugin, uint32_t run,
				uint32_t epochs, uint8_t output)
{
	struct profilers_training training = { .plugin = plugin,
					       .run = run,
					       .output = output,
					       .ranks = STAGE_RANKS,
					       .epochs = epochs,
					       .is_counted = plugin != 2,
					       .problem = output == PROFILERS_READ ? NULL
										   : "trouble" };

	for (uint32_t i = 0; i < epochs && i < PROFILERS_EPOCHS_MAX; i++)
		training.epoch_ns[i] =
			UINT64_C(1000000000) + 1000000 * (i * 7 % 5 + run) + 20000000 * plugin;
	training.issued[OP_ALL_REDUCE] = 100;
	if (plugin > 0 && output == PROFILERS_READ) {
		training.recorded[OP_ALL_REDUCE] = 100 - plugin;
		training.untimed = plugin;
		training.comm_ns = UINT64_C(500000000) * (run + 1);
		training.comm_ops = 90;
		training.has_comm = true;
		training.is_comm_by_time = plugin == 1;
	}
	return profilers_training(work, &training);
}

static void trainings_are_compared(struct sink *text, uint32_t runs, uint32_t epochs)
{
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();

	profilers_plugin(work, "one", "one.so", PROFILERS_RINGSIDE);
	profilers_plugin(work, "two", "two.so", PROFILERS_NCCLSEE);
	profilers_plugin(work, "three", "three.so", PROFILERS_UNKNOWN);
	for (uint32_t run = 0; run < runs; run++) {
		EXPECT_EQUAL(add_training(work, 0, run, epochs, PROFILERS_READ), OK);
		EXPECT_EQUAL(add_training(work, 1, run, epochs, PROFILERS_READ), OK);
		EXPECT_EQUAL(add_training(work, 2, run, epochs,
					  run == 1 ? PROFILERS_FAILED : PROFILERS_READ),
			     OK);
		EXPECT_EQUAL(add_training(work, 3, run, epochs,
					  run == 0 ? PROFILERS_SILENT : PROFILERS_UNREADABLE),
			     OK);
	}
	EXPECT_EQUAL(add_training(work, 4, 0, epochs, PROFILERS_READ), ERR_RANGE);
	EXPECT_EQUAL(add_training(work, 0, PROFILERS_RUNS_MAX, epochs, PROFILERS_READ), ERR_RANGE);
	EXPECT_EQUAL(add_training(work, 0, 0, 0, PROFILERS_READ), ERR_RANGE);
	EXPECT_EQUAL(add_training(work, 0, 0, PROFILERS_EPOCHS_MAX + 1, PROFILERS_READ), ERR_RANGE);
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	sink_format(text, "=== %u trainings of %u epochs\n", runs, epochs);
	show(text, &comparison);
	profilers_comparison_release(&comparison);
}

int main(void)
{
	struct sink text;

	sink_init_memory(&text);
	runs_are_compared(&text, 1);
	runs_are_compared(&text, 3);
	runs_are_compared(&text, 5);
	trainings_are_compared(&text, 1, 1);
	trainings_are_compared(&text, 2, 2);
	trainings_are_compared(&text, 4, PROFILERS_EPOCHS_MAX);
	EXPECT_THAT("rows as in profilers_rows.txt",
		    expected_text(&text, "tests/unit/bench/expected/profilers_rows.txt"));
	return tap_done();
}
