#include "bench/cost_model.h"

#include "tests/unit/bench/cost_play.h"
#include "tests/tap.h"

/* ---- predictions ----------------------------------------------------------------------------- */

static void by_hand(struct cost_model *model)
{
	cost_model_init(model);
	for (int p = 0; p < COST_PARAMETERS; p++)
		EXPECT(cost_model_set(model, (enum cost_parameter)p, truth[p]) == OK);
}

static void more_takes_longer(void)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_BROADCAST,
					     OP_ALL_TO_ALL, OP_SEND_RECV,  OP_GATHER };
	struct cost_model model;
	bool is_monotone = true;

	by_hand(&model);
	for (size_t f = 0; f < sizeof(functions); f++)
		for (int a = COST_RING; a < COST_ALGORITHMS; a++)
			for (int32_t nodes = 1; nodes <= 64; nodes *= 2) {
				const struct cost_shape shape = { nodes * 8, nodes, 0 };
				double last = 0;

				for (uint64_t bytes = 1; bytes < UINT64_C(1) << 40; bytes *= 2) {
					struct cost_answer answer;

					if (!cost_predict(&model, functions[f],
							  (enum cost_algorithm)a, 0, &shape, bytes,
							  &answer, NULL))
						break;
					is_monotone = is_monotone && answer.time_ns >= last;
					last = answer.time_ns;
				}
			}
	EXPECT_THAT("a larger message never takes less time", is_monotone);
}

static void trees_for_small_rings_for_large(void)
{
	const struct cost_shape many = { 512, 64, 0 };
	struct cost_answer answers[COST_ALGORITHMS];
	struct cost_model model;
	const char *why;

	by_hand(&model);
	EXPECT_EQUAL(cost_predict_all(&model, OP_ALL_REDUCE, &many, 1024, answers, NULL), 3);
	EXPECT_EQUAL(answers[0].algorithm, COST_DOUBLE_TREE);
	EXPECT_EQUAL(answers[1].algorithm, COST_RING);
	EXPECT_THAT("algorithms that NCCL does not have come last",
		    answers[2].algorithm == COST_TREE && answers[2].flags & COST_NOT_IN_NCCL);
	EXPECT(cost_predict_all(&model, OP_ALL_REDUCE, &many, UINT64_C(1) << 36, answers, NULL) ==
	       3);
	EXPECT_EQUAL(answers[0].algorithm, COST_RING);
	EXPECT_THAT("large messages use all NICs of a node",
		    is_within(answers[0].busbw, 8 * 20, 0.05));
	EXPECT(is_within(answers[0].call_ns + answers[0].latency_ns + answers[0].transfer_ns,
			 answers[0].time_ns, 1e-9));
	EXPECT(answers[0].low_ns == answers[0].time_ns && !answers[0].has_interval);
	EXPECT_EQUAL(cost_predict_all(&model, OP_ALL_TO_ALL, &many, 1 << 20, answers, NULL), 1);
	EXPECT_EQUAL(cost_predict_all(&model, OP_PUT_SIGNAL, &many, 1 << 20, answers, &why), 0);
	EXPECT(strcmp(why, "this function is not modeled") == 0);
}

static void measured_protocols_are_preferred(void)
{
	static const double fast[COST_PARAMETERS] = { 4000, 500, 2000, 1 / 100.0, 1 / 15.0 };
	const struct cost_shape shape = { 8, 1, 0 };
	const struct bench_run *pointer;
	struct cost_model model;
	struct cost_answer answer;
	struct bench_run run;

	run_of(&run, 8, 1);
	for (uint64_t bytes = 1024; bytes <= 1 << 16; bytes *= 2)
		add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_LL, bytes, fast, 0.02);
	add_sizes(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1 << 18, 1 << 30, 0.02);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 4096, &answer, NULL));
	EXPECT_EQUAL(answer.protocol, OP_LL);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, UINT64_C(1) << 33, &answer,
			    NULL));
	EXPECT_EQUAL(answer.protocol, OP_SIMPLE);
	EXPECT(answer.flags == COST_BEYOND_BYTES && answer.bytes_factor == 8);
	EXPECT(is_within(answer.busbw, 300, 0.03));
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, OP_LL, &shape, 1 << 20, &answer,
			    NULL));
	EXPECT(answer.protocol == OP_LL && answer.bytes_factor == 16);
	EXPECT(!cost_predict(&model, OP_ALL_REDUCE, COST_RING, OP_LL128, &shape, 1024, &answer,
			     NULL));
	EXPECT(cost_predict_cell(&model, &run, &run.cells[0], &answer) &&
	       is_within(answer.time_ns, (double)run.cells[0].calls_of[0].gpu_ns, 0.1));
	bench_run_release(&run);
}

/* All were measured up to the same size, and the first of them is the slowest there. */
static void beyond_all_sizes_the_fastest_wins(void)
{
	static const double slow[COST_PARAMETERS] = { 4000, 500, 2000, 1 / 20.0, 1 / 3.0 };
	const struct cost_shape shape = { 8, 1, 0 };
	const struct bench_run *pointer;
	struct cost_model model;
	struct cost_answer answer;
	struct bench_run run;

	run_of(&run, 8, 1);
	for (uint64_t bytes = 1024; bytes <= 1 << 26; bytes *= 4)
		add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_LL, bytes, slow, 0);
	add_sizes(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1024, 1 << 26, 0);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, UINT64_C(1) << 33, &answer,
			    NULL));
	EXPECT(answer.protocol == OP_SIMPLE && answer.bytes_factor == 128);
	bench_run_release(&run);
}

static struct cost_group stretch_of(uint8_t protocol, uint64_t from, uint64_t to, double call_ns)
{
	struct cost_group group = { .function = OP_ALL_REDUCE,
				    .algorithm = COST_RING,
				    .protocol = protocol,
				    .bytes_from = from,
				    .bytes_to = to,
				    .cells = 9,
				    .points = 3,
				    .value = { call_ns, 1, 1, 1, 1 },
				    .source = { 1, 1, 1, 1, 1 } };

	group.range = (struct cost_range){ from, to, 4, 4, 4, 4 };
	return group;
}

/* A range fitted to larger messages has no latency and would seem to win just below them. */
static void a_stretch_is_for_its_own_sizes(void)
{
	const struct cost_shape shape = { 4, 4, 0 };
	struct cost_answer answer;
	struct cost_model model;

	cost_model_init(&model);
	model.groups[0] = stretch_of(OP_LL, 1024, 1 << 20, 2e6);
	model.groups[1] = stretch_of(OP_LL128, 1024, 1 << 20, 3e6);
	model.groups[2] = stretch_of(OP_LL128, 2 << 20, 64 << 20, 0);
	model.group_count = 3;
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 1 << 20, &answer, NULL));
	EXPECT_THAT("parameters measured at this size are used, even if others seem faster",
		    answer.group == &model.groups[0]);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 4 << 20, &answer, NULL));
	EXPECT(answer.group == &model.groups[2]);
}

/* The median of five, as in cells. */
static double median_noise(double noise)
{
	double five[5];

	for (int i = 0; i < 5; i++) {
		int at = i;

		five[i] = noise * normal();
		for (double value = five[i]; at > 0 && five[at - 1] > value; at--) {
			five[at] = five[at - 1];
			five[at - 1] = value;
		}
	}
	return five[2];
}

/* How often a prediction's interval contains a new measurement: should be 95%. */
static void intervals_hold_what_they_say(void)
{
	const int repeats = TAP_IS_SLOW ? 12 : 300;
	const struct cost_shape shape = { 64, 8, 0 };
	struct cost_group true_group = { .source = { 1, 1, 1, 1, 1 } };
	struct cost_work work;
	double true_time = 0;
	int held = 0;

	memcpy(true_group.value, truth, sizeof(truth));
	cost_work_of(OP_ALL_REDUCE, COST_RING, &shape, 1 << 26, &work);
	cost_time(&true_group, &work, &true_time, NULL);
	for (int i = 0; i < repeats; i++) {
		const struct bench_run *pointers[SHAPES];
		struct bench_run runs[SHAPES];
		struct cost_model model;
		struct cost_answer answer;

		shapes_of(runs, pointers, OP_RING, 0.05);
		cost_model_init(&model);
		if (cost_fit(&model, NULL, pointers, SHAPES, &plain) == OK &&
		    cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 1 << 26, &answer,
				 NULL)) {
			double next = true_time * exp(median_noise(0.05));

			held += answer.low_ns <= next && next <= answer.high_ns;
		}
		shapes_release(runs);
	}
	printf("# %d of %d intervals contain the next measurement\n", held, repeats);
	EXPECT_THAT("the interval of a prediction contains the next measurement: about 95%",
		    held >= repeats * (TAP_IS_SLOW ? 75 : 90) / 100);
}

static void textbooks_only_by_name(void)
{
	const struct cost_shape shape = { 512, 64, 0 };
	struct cost_answer answer;
	struct cost_model model;
	double small;

	cost_model_init(&model);
	EXPECT(!cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 1024, &answer, NULL));
	EXPECT(!cost_model_hardware(&model, "h100"));
	EXPECT(cost_model_hardware(&model, "h100-ib"));
	EXPECT_EQUAL(model.rails, 8);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_DOUBLE_TREE, 0, &shape, 1024, &answer,
			    NULL));
	EXPECT_EQUAL(answer.protocol, OP_LL);
	small = answer.time_ns;
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, UINT64_C(8) << 30, &answer,
			    NULL));
	EXPECT_EQUAL(answer.protocol, OP_SIMPLE);
	EXPECT(is_within(answer.busbw, 8 * 48, 0.2));
	EXPECT(cost_model_set(&model, COST_LATENCY_BETWEEN, 28000) == OK);
	EXPECT_THAT("a value given by hand keeps the ratios of protocols",
		    cost_predict(&model, OP_ALL_REDUCE, COST_DOUBLE_TREE, 0, &shape, 1024, &answer,
				 NULL) &&
			    answer.protocol == OP_LL &&
			    is_within(answer.time_ns, small + 12 * 4000, 0.01));
	for (size_t i = 0; cost_hardware(i) != NULL; i++)
		EXPECT(cost_hardware(i)->inside > cost_hardware(i)->between);
}

/* A tree that NCCL does not have uses the parameters of the one it has, not of the ring. */
static void trees_stand_for_each_other(void)
{
	const struct cost_shape shape = { 16, 2, 0 };
	const struct bench_run *pointers[SHAPES];
	struct bench_run runs[SHAPES];
	struct cost_model model;
	struct cost_answer answer;

	shapes_of(runs, pointers, OP_RING, 0);
	for (int i = 0; i < SHAPES; i++)
		add_sizes(&runs[i], OP_ALL_REDUCE, OP_TREE, OP_SIMPLE, 1024, 1 << 30, 0);
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, pointers, SHAPES, &plain) == OK);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_TREE, 0, &shape, 1 << 20, &answer, NULL));
	EXPECT(answer.group->algorithm == COST_DOUBLE_TREE && answer.flags & COST_OTHER_ALGORITHM);
	shapes_release(runs);
}

static void numbers_that_make_no_sense(void)
{
	struct cost_model model;

	cost_model_init(&model);
	EXPECT(cost_model_set(&model, COST_CALL, -1) == ERR_RANGE);
	EXPECT(cost_model_set(&model, COST_TIME_INSIDE, 0) == ERR_RANGE);
	EXPECT(cost_model_set(&model, COST_TIME_BETWEEN, NAN) == ERR_RANGE);
	EXPECT(cost_model_set(&model, COST_PARAMETERS, 1) == ERR_RANGE);
	EXPECT(cost_model_set(&model, COST_CALL, INFINITY) == ERR_RANGE);
	EXPECT_EQUAL(model.group_count, 0);
	for (int i = 0; i < COST_NOTES_MAX + 3; i++)
		cost_model_note(&model, "note %d", i / 2 * 2);
	EXPECT_EQUAL(model.note_count, (COST_NOTES_MAX + 3 + 1) / 2);
}

int main(void)
{
	more_takes_longer();
	trees_for_small_rings_for_large();
	measured_protocols_are_preferred();
	beyond_all_sizes_the_fastest_wins();
	a_stretch_is_for_its_own_sizes();
	intervals_hold_what_they_say();
	textbooks_only_by_name();
	trees_stand_for_each_other();
	numbers_that_make_no_sense();
	return tap_done();
}
