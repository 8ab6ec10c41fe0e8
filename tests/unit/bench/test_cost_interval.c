/* Synthetic machines with known parameters: how often does an interval contain the next measurement? */
#include "bench/cost_model.h"

#include "tests/unit/bench/cost_play.h"
#include "tests/tap.h"

enum { REPEATS = TAP_IS_SLOW ? 12 : 120 };
#define NOISE 0.05

struct question {
	struct cost_shape shape;
	uint64_t bytes;
};

/* The measurements of one repeat: freed by the caller. */
typedef size_t (*measure_fn)(struct bench_run *runs);

static double true_time(const struct question *question)
{
	struct cost_group group = { .source = { 1, 1, 1, 1, 1 } };
	struct cost_work work;
	double time = 0;

	memcpy(group.value, truth, sizeof(truth));
	if (!cost_work_of(OP_ALL_REDUCE, COST_RING, &question->shape, question->bytes, &work) ||
	    !cost_time(&group, &work, &time, NULL))
		abort();
	return time;
}

static bool predict(measure_fn measure, const struct question *question, struct cost_answer *answer)
{
	static struct cost_model model;
	const struct bench_run *pointers[SHAPES];
	struct bench_run runs[SHAPES];
	size_t count = measure(runs);
	bool is_told;

	for (size_t i = 0; i < count; i++)
		pointers[i] = &runs[i];
	cost_model_init(&model);
	is_told = cost_fit(&model, NULL, pointers, count, &plain) == OK &&
		  cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &question->shape,
			       question->bytes, answer, NULL);
	for (size_t i = 0; i < count; i++)
		bench_run_release(&runs[i]);
	return is_told;
}

/*
 * Percentage of intervals that contain the next measurement, which is off by `drift` more: a standard deviation of
 * its logarithm. The mean width (high / low) goes to *width.
 */
static int coverage(measure_fn measure, const struct question *question, double drift,
		    double *width)
{
	int held = 0, low = 0, high = 0;
	double widths = 0;

	noise_state = 42;
	for (int i = 0; i < REPEATS; i++) {
		double next =
			true_time(question) * exp(NOISE * 0.536 * normal() + drift * normal());
		struct cost_answer answer;

		if (!predict(measure, question, &answer) || !answer.has_interval)
			abort();
		low += next < answer.low_ns;
		high += next > answer.high_ns;
		held += answer.low_ns <= next && next <= answer.high_ns;
		widths += log(answer.high_ns / answer.low_ns);
	}
	*width = exp(widths / REPEATS);
	printf("# %d ranks, %llu bytes: %d of %d held, %d below, %d above, a factor of %.2f wide\n",
	       (int)question->shape.ranks, (unsigned long long)question->bytes, held, REPEATS, low,
	       high, *width);
	return held * 100 / REPEATS;
}

/* ---- what was measured ----------------------------------------------------------------------- */

static size_t measure_shapes(struct bench_run *runs)
{
	const struct bench_run *unused[SHAPES];

	shapes_of(runs, unused, OP_RING, NOISE);
	return SHAPES;
}

/* Two small machines with one rank per node. */
static size_t measure_two(struct bench_run *runs)
{
	for (int i = 0; i < 2; i++) {
		run_of(&runs[i], 2 + 2 * i, 2 + 2 * i);
		add_sizes(&runs[i], OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1024, 1 << 24, NOISE);
	}
	return 2;
}

/* Only large messages: their scatter is larger than the time of the hops. */
static size_t measure_large(struct bench_run *runs)
{
	for (int i = 0; i < 2; i++) {
		run_of(&runs[i], 2 + 2 * i, 2 + 2 * i);
		add_sizes(&runs[i], OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 4 << 20, 1 << 30, NOISE);
	}
	return 2;
}

/*
 * A machine with its own deviation at each size (steps of channels, chunks); measuring each nine times does not
 * make it more accurate.
 */
static size_t measure_again_and_again(struct bench_run *runs)
{
	for (int i = 0; i < 2; i++) {
		run_of(&runs[i], 2 + 2 * i, 2 + 2 * i);
		for (uint64_t bytes = 1024; bytes <= 1 << 24; bytes *= 4) {
			double own = exp(NOISE * normal()), value[COST_PARAMETERS];

			for (int p = 0; p < COST_PARAMETERS; p++)
				value[p] = truth[p] * own;
			for (int again = 0; again < 9; again++)
				add_cell(&runs[i], OP_ALL_REDUCE, OP_RING, OP_SIMPLE, bytes, value,
					 NOISE / 10);
		}
	}
	return 2;
}

static size_t measure_one(struct bench_run *runs)
{
	run_of(&runs[0], 4, 4);
	add_sizes(&runs[0], OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1024, 1 << 24, NOISE);
	return 1;
}

/* ---- sentences ------------------------------------------------------------------------------- */

#define AT_LEAST (TAP_IS_SLOW ? 75 : 90)

static void inside_of_what_was_measured(void)
{
	const struct question middle = { { 16, 2, 0 }, 1 << 20 }, large = { { 32, 4, 0 }, 1 << 28 };
	double width;

	EXPECT_THAT("inside the measured range: about 95%",
		    coverage(measure_shapes, &middle, 0, &width) >= AT_LEAST);
	EXPECT_THAT("and not because it is wide", width < 1.35);
	EXPECT_THAT("large messages, too", coverage(measure_shapes, &large, 0, &width) >= AT_LEAST);
	EXPECT(width < 1.35);
}

static void far_away(void)
{
	struct question ranks = { { 256, 256, 0 }, 1024 },
			bytes = { { 4, 4, 0 }, UINT64_C(1) << 34 };
	double width, drift = NOISE * 0.536;

	EXPECT_THAT("many more ranks", coverage(measure_two, &ranks, 0, &width) >= AT_LEAST);
	EXPECT_THAT("many more bytes", coverage(measure_two, &bytes, 0, &width) >= AT_LEAST);
	EXPECT_THAT("also if the machine changes with each doubling",
		    coverage(measure_two, &ranks, drift * sqrt(6), &width) >= AT_LEAST);
	EXPECT(coverage(measure_two, &bytes, drift * sqrt(10), &width) >= AT_LEAST);
}

static void what_could_not_be_seen(void)
{
	const struct question question = { { 1024, 1024, 0 }, 1 << 22 };
	double width;

	EXPECT_THAT("latencies hidden by large messages",
		    coverage(measure_large, &question, 0, &width) >= AT_LEAST);
	EXPECT_THAT("are treated as unknown", width > 2);
}

static void repeating_is_not_knowing(void)
{
	const struct question question = { { 64, 64, 0 }, 1024 };
	double width;

	EXPECT_THAT("repeated cells have the same misfit",
		    coverage(measure_again_and_again, &question, NOISE, &width) >= AT_LEAST);
}

static double width_of(int32_t ranks, uint64_t bytes)
{
	const struct question question = { { ranks, ranks, 0 }, bytes };
	struct cost_answer answer;

	noise_state = 7;
	if (!predict(measure_two, &question, &answer) || !answer.has_interval)
		abort();
	return answer.high_ns / answer.low_ns;
}

static void it_widens_with_the_distance(void)
{
	bool is_wider = true;

	for (int32_t ranks = 4; ranks <= 8192; ranks *= 2)
		is_wider = is_wider && width_of(2 * ranks, 1 << 20) > width_of(ranks, 1 << 20);
	EXPECT_THAT("twice the ranks, a wider interval", is_wider);
	for (uint64_t bytes = 1 << 24; bytes < UINT64_C(1) << 40; bytes *= 2)
		is_wider = is_wider && width_of(4, 2 * bytes) > width_of(4, bytes);
	EXPECT_THAT("twice the bytes, a wider interval", is_wider);
	for (uint64_t bytes = 1024; bytes > 1; bytes /= 2)
		is_wider = is_wider && width_of(4, bytes / 2) > width_of(4, bytes);
	EXPECT_THAT("half the bytes likewise", is_wider);
}

static void none_where_nothing_was_measured(void)
{
	const struct question question = { { 4, 4, 0 }, 1 << 20 };
	const struct bench_run *pointer;
	struct cost_answer answer;
	struct cost_model model;
	struct bench_run run;

	EXPECT(predict(measure_one, &question, &answer) && answer.has_interval);
	measure_one(&run);
	pointer = &run;
	cost_model_init(&model);
	EXPECT(cost_fit(&model, NULL, &pointer, 1, &plain) == OK);
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_DOUBLE_TREE, 0, &question.shape, 1 << 20,
			    &answer, NULL));
	EXPECT_THAT("parameters of another algorithm have no interval here",
		    !answer.has_interval && answer.low_ns == answer.time_ns);
	EXPECT(cost_predict(&model, OP_ALL_GATHER, COST_RING, 0, &question.shape, 1 << 20, &answer,
			    NULL));
	EXPECT_THAT("nor have those of another function", !answer.has_interval);
	EXPECT(cost_model_hardware(&model, "h100-ib"));
	EXPECT(cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &(struct cost_shape){ 8, 4, 0 },
			    1 << 20, &answer, NULL));
	EXPECT_THAT("nor have textbook values", !answer.has_interval);
	bench_run_release(&run);
}

/* ---- what the fit knows ---------------------------------------------------------------------- */

/* A fit to rings of 4 ranks with `again` equal cells of each size: one group, because repeated noise is no bend. */
static struct cost_group fitted(const double *value, uint64_t least, uint64_t step, int sizes,
				int again)
{
	static struct cost_model model;
	const struct bench_run *pointer;
	struct bench_run run;

	run_of(&run, 4, 4);
	for (int size = 0; size < sizes; size++, least *= step) {
		uint64_t state = noise_state;

		for (int i = 0; i < again; i++) {
			noise_state = state;
			add_cell(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, least, value, NOISE);
		}
	}
	pointer = &run;
	cost_model_init(&model);
	if (cost_fit(&model, NULL, &pointer, 1, &plain) != OK || model.group_count != 1)
		abort();
	bench_run_release(&run);
	return model.groups[0];
}

static void nothing_is_known_to_be_nothing(void)
{
	static const double no_latency[COST_PARAMETERS] = { 0, 0, 0, 1 / 300.0, 1 / 20.0 };
	int zeros = 0, sure = 0;

	for (int i = 0; i < 20; i++) {
		struct cost_group group = fitted(no_latency, 4 << 20, 4, 5, 1);

		if (group.value[COST_LATENCY_BETWEEN] > 0)
			continue;
		zeros++;
		sure += group.covariance[COST_LATENCY_BETWEEN][COST_LATENCY_BETWEEN] <= 0;
	}
	EXPECT(zeros > 0);
	EXPECT_THAT("a fitted latency of 0 is uncertain", sure == 0);
}

static void again_is_not_more(void)
{
	struct cost_group once, nine;

	noise_state = 11;
	once = fitted(truth, 1024, 4, 8, 1);
	noise_state = 11;
	nine = fitted(truth, 1024, 4, 8, 9);
	EXPECT(once.points == 8 && nine.points == 8 && nine.cells == 72);
	EXPECT_THAT("repetition does not make parameters more certain",
		    is_within(sqrt(nine.covariance[COST_TIME_BETWEEN][COST_TIME_BETWEEN]),
			      sqrt(once.covariance[COST_TIME_BETWEEN][COST_TIME_BETWEEN]), 0.3));
}

/* Half of an interval that only depends on the scatter, in standard deviations. */
static double deviations(const struct cost_group *like)
{
	const struct cost_shape shape = { 4, 4, 0 };
	static struct cost_model model;
	struct cost_answer answer;

	cost_model_init(&model);
	model.groups[0] = *like;
	memset(model.groups[0].covariance, 0, sizeof(model.groups[0].covariance));
	model.group_count = 1;
	if (!cost_predict(&model, OP_ALL_REDUCE, COST_RING, 0, &shape, 4096, &answer, NULL))
		abort();
	return log(answer.high_ns / answer.time_ns) / like->scatter;
}

static void few_cells_say_little(void)
{
	struct cost_group group = fitted(truth, 1024, 4, 4, 1);

	/* Student's 2.5%: 12.7 with one degree of freedom, 3.18 with three, 2.03 with 36. */
	EXPECT(is_within(deviations(&group), 12.71, 0.01));
	group.cells = 100;
	EXPECT_THAT("many cells of few sizes show the noise",
		    is_within(deviations(&group), 3.18, 0.01));
	group.points = 50;
	EXPECT_THAT("many different ones show the scatter",
		    is_within(deviations(&group), 2.03, 0.01));
}

int main(void)
{
	nothing_is_known_to_be_nothing();
	again_is_not_more();
	few_cells_say_little();
	inside_of_what_was_measured();
	far_away();
	what_could_not_be_seen();
	repeating_is_not_knowing();
	it_widens_with_the_distance();
	none_where_nothing_was_measured();
	return tap_done();
}
