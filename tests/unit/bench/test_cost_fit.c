#include "bench/cost_model.h"

#include "tests/unit/bench/cost_play.h"
#include "tests/tap.h"

/* ---- fits ------------------------------------------------------------------------------------ */

static void all_parameters(uint8_t algorithm, enum cost_algorithm way, double noise, double within)
{
	const struct bench_run *pointers[SHAPES];
	struct bench_run runs[SHAPES];
	struct cost_model model;
	struct cost_fit fit;
	const struct cost_group *group;

	shapes_of(runs, pointers, algorithm, noise);
	cost_model_init(&model);
	EXPECT(cost_fit(&model, &fit, pointers, SHAPES, &plain) == OK);
	group = group_of(&model, OP_ALL_REDUCE, way, OP_SIMPLE);
	if (EXPECT(group != NULL))
		for (int p = 0; p < COST_PARAMETERS; p++)
			EXPECT_THAT(cost_parameter_name((enum cost_parameter)p),
				    group->source[p] == COST_FROM_FIT &&
					    is_within(group->value[p], truth[p], within));
	EXPECT(group && group->inseparable == 0 && group->faster == 0);
	EXPECT_EQUAL(fit.used, fit.cell_count);
	EXPECT_THAT("the error is that of the noise",
		    fit.median_error <= noise + 1e-3 && fit.worst_error <= 4 * noise + 1e-3);
	EXPECT_EQUAL(model.note_count, 0);
	cost_fit_release(&fit);
	shapes_release(runs);
}

static void exact_data_gives_exact_parameters(void)
{
	all_parameters(OP_RING, COST_RING, 0, 0.01);
	all_parameters(OP_TREE, COST_DOUBLE_TREE, 0, 0.01);
	all_parameters(OP_RING, COST_RING, 0.03, 0.25);
}

static void wild_cells_count_little(void)
{
	const struct bench_run *pointers[SHAPES];
	struct bench_run runs[SHAPES];
	struct cost_model model;
	struct cost_fit fit;
	const struct cost_group *group;
	struct bench_cell *wild;

	shapes_of(runs, pointers, OP_RING, 0.01);
	for (int i = 0; i < SHAPES; i++) {
		wild = &runs[i].cells[(size_t)(i * 2 + 1)];
		for (size_t c = 0; c < (size_t)wild->calls * (size_t)wild->nranks; c++)
			wild->calls_of[c].gpu_ns *= 20;
	}
	cost_model_init(&model);
	EXPECT(cost_fit(&model, &fit, pointers, SHAPES, &plain) == OK);
	group = group_of(&model, OP_ALL_REDUCE, COST_RING, OP_SIMPLE);
	EXPECT(group && is_within(group->value[COST_LATENCY_BETWEEN], 9000, 0.1));
	EXPECT(group && is_within(group->value[COST_TIME_BETWEEN], 1 / 20.0, 0.05));
	EXPECT_THAT("... and they are found", fit.worst_error > 0.9 && fit.median_error < 0.03);
	cost_fit_release(&fit);
	shapes_release(runs);
}

/* ---- what cannot be determined --------------------------------------------------------------- */

static void one_shape_does_not_tell_calls_from_hops(void)
{
	const struct cost_shape same = { 8, 1, 0 }, larger = { 64, 1, 0 }, nodes = { 16, 2, 0 };
	const struct bench_run *pointer;
	const struct cost_group *group;
	struct cost_model model;
	struct cost_answer answer;
	struct bench_run run;
	const char *why = "";
	double fixed = truth[COST_CALL] + 14 * truth[COST_LATENCY_INSIDE];

	run_of(&run, 8, 1);
	add_sizes(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1024, 1 << 28, 0.01);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	group = group_of(&model, OP_ALL_REDUCE, COST_RING, OP_SIMPLE);
	EXPECT(group && group->inseparable == 1u << COST_CALL);
	EXPECT(group && is_within(group->fixed_ns, fixed, 0.02));
	EXPECT(has_note(&model, "cannot separate call overhead"));
	EXPECT(has_note(&model, "links between nodes are unknown"));
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &same, 4096, &answer, NULL));
	EXPECT(is_within(answer.time_ns, fixed + 2 * 7 / 8.0 * 4096 / 300, 0.03));
	EXPECT(answer.flags == 0 && answer.has_interval && answer.high_ns < 1.2 * answer.low_ns);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &larger, 4096, &answer, NULL));
	EXPECT(answer.flags == (COST_BEYOND_RANKS | COST_UNSEPARATED) && answer.ranks_factor == 8);
	EXPECT_THAT("the interval contains the truth, wide as it is",
		    answer.low_ns < 8000 + 126 * 2000 && answer.high_ns > 8000 + 126 * 2000);
	EXPECT_THAT(
		"links between nodes are not guessed",
		!cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &nodes, 4096, &answer, &why));
	EXPECT(strstr(why, "between nodes") != NULL);
	EXPECT(cost_model_set(&model, COST_LATENCY_BETWEEN, 9000) == OK);
	EXPECT(cost_model_set(&model, COST_TIME_BETWEEN, 1 / 20.0) == OK);
	EXPECT_THAT("... but can be given",
		    cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &nodes, 4096, &answer, NULL));
	bench_run_release(&run);
}

static void functions_together_tell_more(void)
{
	const struct cost_shape larger = { 64, 1, 0 };
	const struct bench_run *pointer;
	const struct cost_group *group;
	struct cost_model model;
	struct cost_answer answer;
	struct bench_run run;

	run_of(&run, 8, 1);
	add_sizes(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1024, 1 << 28, 0.005);
	add_sizes(&run, OP_ALL_GATHER, OP_RING, OP_SIMPLE, 1024, 1 << 28, 0.005);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	group = group_of(&model, 0, COST_RING, OP_SIMPLE);
	EXPECT(group && group->inseparable == 0);
	EXPECT(group && is_within(group->value[COST_CALL], 8000, 0.15));
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &larger, 1024, &answer, NULL));
	EXPECT_THAT("parameters of other functions are used if the function's own cannot separate "
		    "them",
		    answer.group == group && is_within(answer.time_ns, 8000 + 126 * 2000, 0.05));
	EXPECT(cost_predict(&model, OP_REDUCE_SCATTER, COST_RING, 0, &larger, 1024, &answer, NULL));
	EXPECT(answer.flags & COST_OTHER_FUNCTION);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_DOUBLE_TREE, 0, &larger, 1024, &answer,
			    NULL));
	EXPECT(answer.flags & COST_OTHER_ALGORITHM);
	bench_run_release(&run);
}

/* NICs that in total are faster than the links inside a node. */
static void links_that_never_decide(void)
{
	static const double nics[COST_PARAMETERS] = { 8000, 2000, 9000, 1 / 300.0, 1 / 80.0 };
	const struct cost_shape same = { 16, 2, 0 }, single = { 4, 4, 0 };
	const struct bench_run *pointer;
	struct cost_model model;
	struct cost_answer answer;
	struct bench_run run;

	run_of(&run, 16, 2);
	for (uint64_t bytes = 1024; bytes <= 1 << 30; bytes *= 4)
		add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, bytes, nics, 0);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	EXPECT_THAT("with one shape, one kind of link is determined and the other is not needed",
		    model.groups[0].faster != 0);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &same, 1 << 30, &answer, NULL) &&
	       is_within(answer.busbw, 300, 0.03));
	EXPECT_THAT("... but if it is the bottleneck, it is not guessed",
		    cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &single, 1 << 30, &answer,
				 NULL) == (model.groups[0].source[COST_TIME_BETWEEN] != 0));
	bench_run_release(&run);
}

/* NCCL silently switches from LL to Simple: times bend. */
static void protocols_that_are_unknown(void)
{
	static const double fast[COST_PARAMETERS] = { 4000, 500, 2000, 1 / 20.0, 1 / 5.0 };
	const struct cost_shape shape = { 8, 1, 0 };
	const struct bench_run *pointer;
	struct cost_model model;
	struct cost_answer answer;
	struct cost_fit fit;
	struct bench_run run;

	run_of(&run, 8, 1);
	for (uint64_t bytes = 1024; bytes <= 1 << 28; bytes *= 2)
		add_cell(&run, OP_ALL_REDUCE, 0, 0, bytes, bytes < 1 << 19 ? fast : truth, 0.01);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, &fit, &pointer, 1, &plain) == OK);
	printf("# %zu ranges, median error %.4f, worst %.4f\n", model.group_count, fit.median_error,
	       fit.worst_error);
	EXPECT_THAT("a bend makes two ranges", model.group_count == 2);
	EXPECT_THAT("... that fit the times", fit.median_error < 0.02 && fit.worst_error < 0.06);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 1 << 28, &answer, NULL) &&
	       is_within(answer.busbw, 300, 0.03) && answer.flags == 0);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 3 << 17, &answer, NULL) &&
	       answer.flags == 0);
	EXPECT(cost_predict_cell(&model, &run, &run.cells[0], &answer) &&
	       is_within(answer.time_ns, (double)run.cells[0].calls_of[0].gpu_ns, 0.1));
	cost_fit_release(&fit);
	bench_run_release(&run);
	run_of(&run, 8, 1);
	add_sizes(&run, OP_ALL_REDUCE, 0, 0, 1024, 1 << 28, 0.03);
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	EXPECT_THAT("no bend, no split", model.group_count == 1);
	bench_run_release(&run);
}

static void cells_that_are_no_good(void)
{
	const struct bench_run *pointer;
	struct cost_model model;
	struct cost_fit fit;
	struct bench_run run;

	run_of(&run, 8, 1);
	add_sizes(&run, OP_ALL_REDUCE, OP_NVLS, OP_SIMPLE, 1024, 1 << 20, 0);
	add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1024, truth, 0)->wrong = 3;
	add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 4096, truth, 0)->mode = BENCH_GRAPH;
	add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 4096, truth, 0)->nranks = 1;
	add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 4096, truth, 0);
	add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 8192, truth, 0);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, &fit, &pointer, 1, &plain) == ERR_UNKNOWN);
	EXPECT(has_note(&model, "nothing to fit"));
	EXPECT(fit.used == 0 && fit.cell_count == run.cell_count);
	EXPECT(strcmp(fit.cells[0].why, "an algorithm that is not modeled") == 0);
	EXPECT(strcmp(fit.cells[run.cell_count - 5].why, "wrong results") == 0);
	EXPECT(strcmp(fit.cells[run.cell_count - 4].why, "another mode") == 0);
	EXPECT(strcmp(fit.cells[run.cell_count - 3].why, "a single rank") == 0);
	EXPECT(strcmp(fit.cells[run.cell_count - 1].why, "too few sizes") == 0);
	cost_fit_release(&fit);
	bench_run_release(&run);
	EXPECT(cost_fit(&model, &fit, NULL, 0, &plain) == ERR_UNKNOWN);
	cost_fit_release(&fit);
}

static void small_sizes_say_nothing_of_large_ones(void)
{
	const double flat[COST_PARAMETERS] = { 8000, 2000, 9000, 1e-12, 1e-12 };
	const struct cost_shape shape = { 8, 1, 0 };
	const struct bench_run *pointer;
	struct cost_model model;
	struct cost_answer answer;
	struct bench_run run;
	const char *why;

	run_of(&run, 8, 1);
	for (uint64_t bytes = 8; bytes <= 2048; bytes *= 4)
		add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_LL, bytes, flat, 0);
	/* Larger sizes are slightly faster due to noise: the bandwidth would be negative. */
	run.cells[4].calls_of[0].gpu_ns -= 100;
	for (size_t i = 0; i < 40; i++)
		run.cells[4].calls_of[i].gpu_ns = 35000;
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	EXPECT(has_note(&model, "too small to determine a bandwidth"));
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 512, &answer, NULL));
	EXPECT(!cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 1 << 30, &answer, &why));
	bench_run_release(&run);
}

static void ranks_on_one_gpu_are_nodes(void)
{
	const struct bench_run *pointer;
	struct cost_model model;
	struct cost_shape shape;
	struct bench_run run;

	run_of(&run, 4, 1);
	run.is_gpu_shared = true;
	add_sizes(&run, OP_ALL_REDUCE, 0, 0, 1024, 1 << 24, 0);
	shape = cost_shape_of(&run, &run.cells[0], 0);
	EXPECT(shape.ranks == 4 && shape.nodes == 4);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	EXPECT(has_note(&model, "loopback"));
	EXPECT(has_note(&model, "assuming ring"));
	EXPECT(has_note(&model, "inside a node"));
	bench_run_release(&run);
}

static void pairs_are_fitted_by_kind(void)
{
	int32_t far[4] = { 2, 3, 0, 1 }, mixed[4] = { 1, 0, -1, -1 };
	const struct bench_run *pointer;
	struct cost_model model;
	struct cost_fit fit;
	struct bench_run run;

	run_of(&run, 4, 2);
	for (uint64_t bytes = 1024; bytes <= 1 << 24; bytes *= 4) {
		struct bench_cell *cell = add_cell(&run, OP_SEND_RECV, 0, 0, bytes, truth, 0);

		cell->peers = malloc(sizeof(far));
		memcpy(cell->peers, far, sizeof(far));
	}
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, &fit, &pointer, 1, &plain) == OK);
	EXPECT(is_within(model.groups[0].value[COST_TIME_BETWEEN], 1 / 20.0, 0.01));
	cost_fit_release(&fit);
	memcpy(run.cells[0].peers, mixed, sizeof(mixed));
	run.cells[0].peers[2] = 0;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, &fit, &pointer, 1, &plain) == OK);
	EXPECT(fit.cells[0].why && strstr(fit.cells[0].why, "different kinds"));
	cost_fit_release(&fit);
	bench_run_release(&run);
}

int main(void)
{
	exact_data_gives_exact_parameters();
	wild_cells_count_little();
	one_shape_does_not_tell_calls_from_hops();
	functions_together_tell_more();
	links_that_never_decide();
	protocols_that_are_unknown();
	cells_that_are_no_good();
	small_sizes_say_nothing_of_large_ones();
	ranks_on_one_gpu_are_nodes();
	pairs_are_fitted_by_kind();
	return tap_done();
}
