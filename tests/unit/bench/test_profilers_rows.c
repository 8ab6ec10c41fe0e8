/*
 * Every row of comparisons of hand-made jobs: completeness, accuracy, overhead and training, with one run to four,
 * cells that share a size, and plugins of every kind. Compared with tests/unit/bench/expected/profilers_rows.txt.
 */
#include "bench/profilers.h"

#include "common/attributes.h"
#include "common/op.h"
#include "import/foreign.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"
#include "tests/unit/bench/profilers_show.h"
#include "tests/unit/bench/profilers_stage.h"

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
	show_comparison(text, &comparison, runs == 3 ? 72 : 0);
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
	show_comparison(text, &comparison, runs == 3 ? 72 : 0);
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
