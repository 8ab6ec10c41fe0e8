/*
 * Comparing profilers: complete ones, and ones that lose, duplicate, or lack a rank, a size or a time; their
 * overhead.
 */
#include "bench/profilers.h"

#include <math.h>

#include "import/foreign.h"
#include "tests/unit/bench/profilers_stage.h"
#include "tests/tap.h"

enum { CALLS = 20, STEPS = CALLS + 3 };

static const struct stage_faults honest = { .factor = 0.9 };

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-3 * fabs(b);
}

/* One job of one mode: two functions, two sizes. */
static void add_job(struct profilers *work, size_t plugin, uint32_t run, uint8_t mode,
		    double slower, const struct stage_faults *faults)
{
	struct profilers_trial trial = { .plugin = plugin, .run = run, .output = PROFILERS_READ };
	struct stage_job job;

	stage_init(&job);
	stage_cell(&job, mode, OP_ALL_REDUCE, 1024, CALLS, slower);
	stage_cell(&job, mode, OP_ALL_REDUCE, 1 << 20, CALLS, slower);
	stage_cell(&job, mode, OP_ALL_GATHER, 1 << 20, CALLS, slower);
	trial.bench = &job.bench;
	if (faults) {
		stage_record(&job, faults);
		trial.recording = &job.recording;
	}
	EXPECT_EQUAL(profilers_trial(work, &trial), OK);
	stage_release(&job);
}

static struct profilers_counts counts(const struct profilers_comparison *comparison, int mode,
				      int function, int rank)
{
	struct profilers_which which = PROFILERS_WHICH_ALL;

	which.plugin = 1;
	which.mode = mode;
	which.function = function;
	which.rank = rank;
	return profilers_counts(comparison, &which);
}

/* One plugin, one run, with and without. */
static void compare(struct profilers_comparison *comparison, enum profilers_kind kind, uint8_t mode,
		    const struct stage_faults *faults)
{
	struct profilers *work = profilers_new();

	EXPECT_EQUAL(profilers_plugin(work, "made-up", "made-up.so", kind), 1);
	add_job(work, 0, 0, mode, 1, NULL);
	add_job(work, 1, 0, mode, 1, faults);
	EXPECT_EQUAL(profilers_finish(work, comparison), OK);
	profilers_free(work);
}

static void test_complete(void)
{
	static const uint8_t modes[] = { BENCH_BLOCKING, BENCH_BACK_TO_BACK, BENCH_GRAPH };
	struct profilers_comparison comparison;

	for (size_t i = 0; i < 3; i++) {
		struct profilers_counts sum;
		uint64_t aligns = modes[i] == BENCH_BLOCKING ? 3 * CALLS : 0;

		printf("# %s\n", bench_mode_name(modes[i]));
		compare(&comparison, PROFILERS_RINGSIDE, modes[i], &honest);
		sum = counts(&comparison, modes[i], PROFILERS_ALL, PROFILERS_ALL);
		EXPECT_EQUAL(sum.issued, STAGE_RANKS * (3 * STEPS + aligns));
		EXPECT_THAT("captured calls do not run", sum.recorded == sum.issued);
		EXPECT(sum.missing == 0 && sum.excess == 0 && sum.untimed == 0);
		EXPECT(profilers_share(&sum) == 1);
		sum = counts(&comparison, modes[i], OP_ALL_GATHER, 1);
		EXPECT_EQUAL(sum.issued, STEPS);
		EXPECT(profilers_is_judged(&comparison, 1, modes[i]));
		EXPECT_THAT("its own report of losses is shown",
			    profilers_jobs_of(&comparison, 1, modes[i])->tells_lost &&
				    profilers_jobs_of(&comparison, 1, modes[i])->lost == 0);
		profilers_comparison_release(&comparison);
	}
}

static void test_missing_rank(void)
{
	struct stage_faults faults = { .factor = 1, .is_rank_missing = true };
	struct profilers_comparison comparison;
	struct profilers_counts sum;

	compare(&comparison, PROFILERS_RINGSIDE, BENCH_BACK_TO_BACK, &faults);
	sum = counts(&comparison, PROFILERS_ALL, PROFILERS_ALL, 1);
	EXPECT_THAT("the rank without a file has no records",
		    sum.recorded == 0 && sum.missing == 3 * STEPS);
	sum = counts(&comparison, PROFILERS_ALL, PROFILERS_ALL, PROFILERS_ALL);
	EXPECT(profilers_share(&sum) == 0.5);
	profilers_comparison_release(&comparison);
}

static void test_loss_and_doubles(void)
{
	struct stage_faults faults = {
		.factor = 1, .lose_every = 10, .double_every = 23, .lost = 7
	};
	struct profilers_comparison comparison;
	struct profilers_counts sum;

	compare(&comparison, PROFILERS_RINGSIDE, BENCH_BACK_TO_BACK, &faults);
	sum = counts(&comparison, PROFILERS_ALL, PROFILERS_ALL, PROFILERS_ALL);
	/* 69 calls per rank: 6 lost, none of them duplicated; 3 duplicated, one in each cell. */
	EXPECT_EQUAL(sum.recorded, STAGE_RANKS * (3 * STEPS - 6 + 3));
	EXPECT_THAT("duplicates hide losses within a cell, but not between cells",
		    sum.missing == STAGE_RANKS * 3 && sum.excess == 0);
	EXPECT_EQUAL(profilers_jobs_of(&comparison, 1, BENCH_BACK_TO_BACK)->lost, 14);
	profilers_comparison_release(&comparison);

	faults = (struct stage_faults){ .factor = 1, .double_every = 1 };
	compare(&comparison, PROFILERS_RINGSIDE, BENCH_BLOCKING, &faults);
	sum = counts(&comparison, PROFILERS_ALL, OP_ALL_GATHER, PROFILERS_ALL);
	EXPECT_THAT("more recorded than issued is a problem, too",
		    sum.excess == STAGE_RANKS * STEPS && sum.missing == 0);
	EXPECT_THAT("and never more than 100%", profilers_share(&sum) == 1);
	profilers_comparison_release(&comparison);
}

static const struct profilers_accuracy *accuracy_of(const struct profilers_comparison *comparison,
						    uint8_t function, uint64_t bytes)
{
	for (size_t i = 0; i < comparison->accuracy_count; i++)
		if (comparison->accuracy[i].function == function &&
		    comparison->accuracy[i].bytes == bytes)
			return &comparison->accuracy[i];
	return NULL;
}

static void test_accuracy(void)
{
	static const uint8_t modes[] = { BENCH_BLOCKING, BENCH_GRAPH };
	struct profilers_comparison comparison;
	const struct profilers_accuracy *row;

	for (size_t i = 0; i < 2; i++) {
		compare(&comparison, PROFILERS_RINGSIDE, modes[i], &honest);
		row = accuracy_of(&comparison, OP_ALL_REDUCE, 1024);
		EXPECT(row && row->calls == STAGE_RANKS * CALLS && row->in_order == row->calls &&
		       row->by_time == 0);
		EXPECT_THAT("warm-ups and checks are not matched to measured calls",
			    row && is_near(row->ratio.p05, 0.9) && is_near(row->ratio.p95, 0.9));
		EXPECT(row && row->source == OP_TIME_KERNEL_GPU);
		row = accuracy_of(&comparison, 0, 1 << 20);
		EXPECT_THAT("also over all functions",
			    row && row->calls == 2 * STAGE_RANKS * CALLS &&
				    row->in_order == row->calls);
		EXPECT(accuracy_of(&comparison, OP_ALL_REDUCE, STAGE_ALIGN_BYTES) == NULL);
		profilers_comparison_release(&comparison);
	}
}

static void test_accuracy_with_loss(void)
{
	struct stage_faults faults = { .factor = 1.25, .lose_every = 4, .is_without_pid = true };
	struct profilers_comparison comparison;
	const struct profilers_accuracy *row;
	struct profilers_counts sum;

	compare(&comparison, PROFILERS_RINGSIDE, BENCH_BACK_TO_BACK, &faults);
	row = accuracy_of(&comparison, OP_ALL_GATHER, 1 << 20);
	sum = counts(&comparison, BENCH_BACK_TO_BACK, OP_ALL_GATHER, PROFILERS_ALL);
	EXPECT(row && row->in_order == 0 && row->by_time > 20 && row->by_time < row->calls);
	EXPECT_THAT("matched by time, each record belongs to its call",
		    row && is_near(row->ratio.p05, 1.25) && is_near(row->ratio.p95, 1.25));
	EXPECT_THAT("the rank identifies them if the pid does not",
		    sum.recorded == 2 * 17 || sum.recorded == 2 * 18);
	profilers_comparison_release(&comparison);

	compare(&comparison, PROFILERS_RINGSIDE, BENCH_GRAPH, &faults);
	row = accuracy_of(&comparison, OP_ALL_GATHER, 1 << 20);
	EXPECT_THAT("in a graph, times are ambiguous: nothing is matched",
		    row && row->in_order + row->by_time == 0 && row->source == OP_TIME_NONE &&
			    row->calls == STAGE_RANKS * CALLS);
	profilers_comparison_release(&comparison);
}

static void test_untimed_and_sizeless(void)
{
	struct stage_faults faults = { .factor = 1, .untimed_every = 2 };
	struct profilers_comparison comparison;
	const struct profilers_accuracy *row;
	struct profilers_counts sum;
	struct profilers_which which = PROFILERS_WHICH_ALL;

	compare(&comparison, PROFILERS_RINGSIDE, BENCH_BACK_TO_BACK, &faults);
	sum = counts(&comparison, PROFILERS_ALL, PROFILERS_ALL, 0);
	EXPECT_THAT("records without a time are counted separately",
		    sum.recorded == 3 * STEPS && sum.untimed == 34 && sum.missing == 0);
	row = accuracy_of(&comparison, 0, 1024);
	EXPECT(row && row->in_order > 0 && row->in_order < row->calls);
	profilers_comparison_release(&comparison);

	faults = (struct stage_faults){ .factor = 1, .is_size_unknown = true };
	compare(&comparison, PROFILERS_COMMA, BENCH_BACK_TO_BACK, &faults);
	sum = counts(&comparison, PROFILERS_ALL, OP_ALL_REDUCE, PROFILERS_ALL);
	EXPECT_THAT("calls without a size count for their function",
		    sum.missing == 0 && sum.excess == 0 && sum.recorded == 4 * STEPS);
	which.is_any_size = false;
	which.bytes = PROFILERS_BYTES_UNKNOWN;
	EXPECT(profilers_counts(&comparison, &which).issued == 6 * STEPS);
	profilers_comparison_release(&comparison);
}

static void test_wrong_results(void)
{
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_SILENT };
	struct stage_job job;

	profilers_plugin(work, "breaker", "breaker.so", PROFILERS_UNKNOWN);
	stage_init(&job);
	stage_cell(&job, BENCH_BLOCKING, OP_REDUCE, 4096, CALLS, 1)->wrong = 3;
	trial.bench = &job.bench;
	EXPECT_EQUAL(profilers_trial(work, &trial), OK);
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	stage_release(&job);
	EXPECT_THAT("wrong results are reported", comparison.note_count == 1 &&
							  strstr(comparison.notes[0], "breaker") &&
							  strstr(comparison.notes[0], "Reduce"));
	EXPECT(!profilers_is_judged(&comparison, 1, BENCH_BLOCKING));
	profilers_comparison_release(&comparison);
}

static void test_outputs(void)
{
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();
	struct profilers_trial trial = { .plugin = 1,
					 .output = PROFILERS_FAILED,
					 .mode = BENCH_GRAPH,
					 .problem = "rank 1: NCCL: unhandled cuda error" };
	struct stage_job job;
	struct profilers_counts sum;

	profilers_plugin(work, "p", "p.so", PROFILERS_INSPECTOR);
	stage_init(&job);
	stage_cell(&job, BENCH_BLOCKING, OP_REDUCE, 4096, CALLS, 1);
	EXPECT_EQUAL(profilers_trial(work, &trial), OK);
	trial.bench = &job.bench;
	trial.problem = NULL;
	trial.output = PROFILERS_SILENT;
	EXPECT_EQUAL(profilers_trial(work, &trial), OK);
	trial.run = 1;
	trial.output = PROFILERS_UNREADABLE;
	EXPECT_EQUAL(profilers_trial(work, &trial), OK);
	trial.plugin = 2;
	EXPECT_EQUAL(profilers_trial(work, &trial), ERR_RANGE);
	trial.plugin = 1;
	stage_cell(&job, BENCH_GRAPH, OP_REDUCE, 4096, CALLS, 1);
	EXPECT_THAT("a job has one mode", profilers_trial(work, &trial) == ERR_RANGE);
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	stage_release(&job);
	sum = counts(&comparison, PROFILERS_ALL, OP_REDUCE, PROFILERS_ALL);
	EXPECT_THAT("no output counts as nothing recorded; unreadable output is not counted",
		    sum.issued == STAGE_RANKS * STEPS && sum.recorded == 0);
	EXPECT(!profilers_is_judged(&comparison, 1, BENCH_GRAPH));
	EXPECT(profilers_is_judged(&comparison, 1, BENCH_BLOCKING));
	EXPECT(profilers_jobs_of(&comparison, 1, BENCH_GRAPH)->failed == 1);
	EXPECT(profilers_jobs_of(&comparison, 1, BENCH_BLOCKING)->unreadable == 1);
	EXPECT(strstr(profilers_jobs_of(&comparison, 1, BENCH_GRAPH)->problem, "unhandled"));
	profilers_comparison_release(&comparison);
}

static const struct profilers_overhead *overhead_of(const struct profilers_comparison *comparison,
						    uint8_t clock, uint8_t mode, uint8_t function,
						    uint64_t bytes)
{
	for (size_t i = 0; i < comparison->overhead_count; i++) {
		const struct profilers_overhead *row = &comparison->overhead[i];

		if (row->clock == clock && row->mode == mode && row->function == function &&
		    row->bytes == bytes)
			return row;
	}
	return NULL;
}

static void test_overhead(void)
{
	/* The machine's speed varies; the plugin costs 10%. */
	static const double machine[] = { 1, 1.02, 0.98, 1.01, 0.99 };
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();
	const struct profilers_overhead *row;

	profilers_plugin(work, "slow", "slow.so", PROFILERS_UNKNOWN);
	for (uint32_t run = 0; run < 5; run++) {
		add_job(work, 0, run, BENCH_BLOCKING, machine[run], NULL);
		add_job(work, 1, run, BENCH_BLOCKING, 1.1 * machine[run], NULL);
	}
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	row = overhead_of(&comparison, BENCH_GPU, BENCH_BLOCKING, OP_ALL_REDUCE, 1024);
	EXPECT(row && row->runs == 5 && row->calls == 5 * CALLS && row->has_interval);
	EXPECT(row && is_near(row->ratio.ratio, 1.1) && row->ratio.low > 1.04 &&
	       row->ratio.high < 1.16);
	EXPECT(row && profilers_verdict(row) == PROFILERS_SLOWER);
	EXPECT(row && is_near(row->with_ns.p50 / row->without_ns.p50, 1.1));
	row = overhead_of(&comparison, BENCH_ISSUE, 0, 0, 0);
	EXPECT_THAT("combined, pairs of runs cancel the machine's variation",
		    row && row->cells == 3 && row->runs == 5 && is_near(row->ratio.ratio, 1.1) &&
			    row->ratio.high - row->ratio.low < 0.01);
	EXPECT(overhead_of(&comparison, BENCH_GPU, BENCH_BLOCKING, 0, 1 << 20)->cells == 2);
	EXPECT(overhead_of(&comparison, BENCH_GPU, BENCH_BLOCKING, OP_ALL_REDUCE, 0)->cells == 2);
	EXPECT_THAT("of an unknown format only the overhead is compared",
		    comparison.complete_count == 0);
	profilers_comparison_release(&comparison);
}

static void test_no_difference(void)
{
	static const double machine[] = { 1, 1.2, 0.9, 1.1, 0.95 };
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();
	const struct profilers_overhead *row;

	profilers_plugin(work, "same", "same.so", PROFILERS_UNKNOWN);
	for (uint32_t run = 0; run < 5; run++) {
		add_job(work, 0, run, BENCH_BLOCKING, machine[run], NULL);
		add_job(work, 1, run, BENCH_BLOCKING, machine[(run + 2) % 5], NULL);
	}
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	row = overhead_of(&comparison, BENCH_GPU, 0, 0, 0);
	EXPECT(row && row->ratio.low < 1 && row->ratio.high > 1);
	EXPECT(row && profilers_verdict(row) == PROFILERS_NO_DIFFERENCE);
	profilers_comparison_release(&comparison);

	compare(&comparison, PROFILERS_UNKNOWN, BENCH_BLOCKING, NULL);
	row = overhead_of(&comparison, BENCH_GPU, BENCH_BLOCKING, OP_ALL_REDUCE, 1024);
	EXPECT_THAT("one run has no interval and no verdict",
		    row && !row->has_interval && profilers_verdict(row) == PROFILERS_NOT_KNOWN);
	profilers_comparison_release(&comparison);
}

static void fill_profile(struct ncclsee_profile *profile, int32_t rank)
{
	/* Reduce of 4 KiB and ReduceScatter of 1 MiB (512 KiB per rank), with swapped names. */
	struct ncclsee_row rows[] = {
		{ .function = OP_REDUCE_SCATTER,
		  .size_class = 2,
		  .calls = STEPS,
		  .has_time = true,
		  .total_ns = STEPS * 40600.0 },
		{ .function = OP_REDUCE,
		  .size_class = 5,
		  .calls = STEPS - 5,
		  .has_time = true,
		  .total_ns = (STEPS - 5) * 20300.0 },
		{ .function = OP_ALL_REDUCE, .size_class = 0, .calls = 2 * CALLS },
	};

	memset(profile, 0, sizeof(*profile));
	profile->pid = STAGE_PID + rank;
	memcpy(profile->rows, rows, sizeof(rows));
	profile->row_count = 3;
}

static void test_ncclsee(void)
{
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();
	struct ncclsee_profile profiles[STAGE_RANKS];
	struct profilers_trial trial = { .plugin = 1, .output = PROFILERS_READ };
	const struct profilers_accuracy *row;
	struct profilers_counts sum;
	struct stage_job job;

	profilers_plugin(work, "ncclsee", "ncclsee.so", PROFILERS_NCCLSEE);
	stage_init(&job);
	stage_cell(&job, BENCH_BLOCKING, OP_REDUCE, 4096, CALLS, 1);
	stage_cell(&job, BENCH_BLOCKING, OP_REDUCE_SCATTER, 1 << 20, CALLS, 1);
	for (int32_t rank = 0; rank < STAGE_RANKS; rank++)
		fill_profile(&profiles[rank], rank);
	trial.bench = &job.bench;
	trial.profiles = profiles;
	trial.profile_count = STAGE_RANKS;
	EXPECT_EQUAL(profilers_trial(work, &trial), OK);
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	stage_release(&job);
	sum = counts(&comparison, BENCH_BLOCKING, OP_REDUCE, PROFILERS_ALL);
	EXPECT_THAT("swapped names are corrected", sum.recorded == 2 * STEPS && sum.missing == 0);
	EXPECT(comparison.note_count == 1 && strstr(comparison.notes[0], "ReduceScatter"));
	sum = counts(&comparison, BENCH_BLOCKING, OP_REDUCE_SCATTER, 1);
	EXPECT(sum.issued == STEPS && sum.missing == 5);
	sum = counts(&comparison, BENCH_BLOCKING, OP_ALL_REDUCE, PROFILERS_ALL);
	EXPECT(sum.issued == sum.recorded && sum.untimed == sum.recorded);
	row = accuracy_of(&comparison, OP_REDUCE, 1024);
	EXPECT_THAT("a class's mean is compared with that of its calls",
		    row && row->is_mean_only && row->bytes_to == 8192 && row->ratio.p50 > 1.9 &&
			    row->ratio.p50 < 2.1);
	row = accuracy_of(&comparison, OP_REDUCE_SCATTER, 262144);
	EXPECT_THAT("a single size can be compared in spite of losses",
		    row && row->ratio.p50 > 0.95 && row->ratio.p50 < 1.05);
	profilers_comparison_release(&comparison);
}

static void fill_training(struct profilers_training *training, size_t plugin, uint32_t run,
			  uint64_t epoch_ns)
{
	*training = (struct profilers_training){ .plugin = plugin,
						 .run = run,
						 .output = PROFILERS_READ,
						 .ranks = STAGE_RANKS,
						 .epochs = 3,
						 .is_counted = true };
	for (uint32_t i = 0; i < 3; i++) {
		training->epoch_ns[i] = epoch_ns + (i == 0 ? epoch_ns : 1000 * i);
		training->epoch_begin_ns[i] = SAMPLE_CREATED_NS + 1000000 + i * 1000000;
	}
	training->issued[OP_ALL_REDUCE] = 2 * STAGE_RANKS * STEPS;
	training->issued[OP_ALL_GATHER] = STAGE_RANKS * STEPS;
}

/* Every second call has no time: the others determine the total. */
static void test_training_sampled(void)
{
	struct stage_faults half = { .factor = 1, .untimed_every = 2 };
	struct profilers_training all, some;
	struct stage_job job;

	for (int sampled = 0; sampled < 2; sampled++) {
		struct profilers_training *training = sampled ? &some : &all;

		stage_init(&job);
		stage_cell(&job, BENCH_BACK_TO_BACK, OP_ALL_REDUCE, 1024, CALLS, 1);
		stage_cell(&job, BENCH_BACK_TO_BACK, OP_ALL_GATHER, 1 << 20, CALLS, 1);
		stage_record(&job, sampled ? &half : &honest);
		fill_training(training, 2, 0, 1200000);
		memset(training->epoch_begin_ns, 0, sizeof(training->epoch_begin_ns));
		EXPECT_EQUAL(profilers_training_take(training, &job.recording), OK);
		stage_release(&job);
	}
	EXPECT_THAT("half of them are not timed",
		    all.untimed == 0 && some.untimed > 0 && some.comm_ops < all.comm_ops);
	EXPECT_THAT("communication time includes all of them",
		    (double)some.comm_ns > 0.9 * (double)all.comm_ns &&
			    (double)some.comm_ns < 1.1 * (double)all.comm_ns);
}

static void test_training(void)
{
	struct profilers_comparison comparison;
	struct profilers *work = profilers_new();
	struct profilers_training training, timeless;
	const struct profilers_train *row;
	struct stage_job job;

	profilers_plugin(work, "untrained", "u.so", PROFILERS_UNKNOWN);
	profilers_plugin(work, "p", "p.so", PROFILERS_RINGSIDE);
	for (uint32_t run = 0; run < 3; run++) {
		fill_training(&training, 0, run, 1000000);
		EXPECT_EQUAL(profilers_training(work, &training), OK);
		stage_init(&job);
		stage_cell(&job, BENCH_BACK_TO_BACK, OP_ALL_REDUCE, 1024, CALLS, 1);
		stage_cell(&job, BENCH_BACK_TO_BACK, OP_ALL_REDUCE, 1 << 20, CALLS, 1);
		stage_cell(&job, BENCH_BACK_TO_BACK, OP_ALL_GATHER, 1 << 20, CALLS, 1);
		stage_record(&job, &honest);
		fill_training(&training, 2, run, 1200000);
		EXPECT_EQUAL(profilers_training_take(&training, &job.recording), OK);
		EXPECT(training.has_comm && training.is_comm_by_time);
		fill_training(&timeless, 2, run, 1200000);
		memset(timeless.epoch_begin_ns, 0, sizeof(timeless.epoch_begin_ns));
		EXPECT_EQUAL(profilers_training_take(&timeless, &job.recording), OK);
		EXPECT(timeless.has_comm && !timeless.is_comm_by_time);
		EXPECT_THAT("only operations within the compared epochs count",
			    training.comm_ns < timeless.comm_ns && training.comm_ns > 0);
		EXPECT_EQUAL(profilers_training(work, &training), OK);
		stage_release(&job);
	}
	training.output = PROFILERS_FAILED;
	training.problem = "killed";
	EXPECT_EQUAL(profilers_training(work, &training), OK);
	training.epochs = 1000;
	training.output = PROFILERS_READ;
	EXPECT_EQUAL(profilers_training(work, &training), ERR_RANGE);
	EXPECT_EQUAL(profilers_finish(work, &comparison), OK);
	profilers_free(work);
	EXPECT_EQUAL(comparison.training_count, 2);
	row = &comparison.training[1];
	EXPECT(row->plugin == 2 && row->runs == 3 && row->failed == 1 && row->is_counted);
	EXPECT_EQUAL(row->issued[OP_ALL_REDUCE], 3 * 2 * STAGE_RANKS * STEPS);
	EXPECT_EQUAL(row->recorded[OP_ALL_REDUCE], row->issued[OP_ALL_REDUCE]);
	EXPECT(is_near(row->slowdown.ratio, 1.2) && row->has_interval);
	EXPECT_THAT("the first epoch warms up", row->epoch_ns < 1300000);
	EXPECT(row->comm_share > 0 && row->comm_share < 1 && row->comm_ns > 0);
	EXPECT(strcmp(row->problem, "killed") == 0);
	profilers_comparison_release(&comparison);
}

int main(void)
{
	test_complete();
	test_missing_rank();
	test_loss_and_doubles();
	test_accuracy();
	test_accuracy_with_loss();
	test_untimed_and_sizeless();
	test_wrong_results();
	test_outputs();
	test_overhead();
	test_no_difference();
	test_ncclsee();
	test_training_sampled();
	test_training();
	return tap_done();
}
