#include "programs/cli/crossover_measure.h"

#include <time.h>

#include "cmds/cli.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"

#define CALLS_SHARE 0.6 /* of the time; the rest is for communicators, warm-up and checks */
enum { CALLS_LEAST = 3 };

struct turn {
	struct bench_team *team;
	struct crossover_variants *variants;
	const struct crossover_budget *budget;
	double until_s;	   /* rank 0's: when the variant that is measured should be done */
	size_t cells_left; /* ... and what is left of it */
	enum plan_align align;
	struct cli_progress progress; /* rank 0's */
	uint64_t done;
};

/* Since the beginning. */
static double passed_s(const struct turn *turn)
{
	return (double)(clock_system_ns(CLOCK_MONOTONIC) - turn->budget->began_ns) / 1e9;
}

/* What is left for the next size, the same on all ranks. Small ones leave most of it to the large ones. */
static int allow(struct turn *turn)
{
	struct bench_plan *plan = &turn->team->plan;
	double seconds = (turn->until_s - passed_s(turn)) * CALLS_SHARE /
			 (double)(turn->cells_left > 0 ? turn->cells_left : 1);

	if (turn->budget->seconds <= 0)
		return 0;
	if (seconds < 1e-3)
		seconds = 1e-3;
	if (hub_share(turn->team->hub, &seconds, sizeof(seconds)) != 0)
		return -1;
	plan->seconds = seconds;
	plan->least_calls = plan->calls < CALLS_LEAST ? plan->calls : CALLS_LEAST;
	turn->cells_left--;
	return 0;
}

/* NCCL does not do this so, on this machine: all ranks were told alike. */
static void refuse(struct turn *turn, struct crossover_variant *variant, uint8_t function)
{
	variant->refused |= 1u << function;
	if (turn->team->place->rank == 0)
		bench_run_note(&turn->team->run, "not available here: %s with %s and %s",
			       op_function_name(function),
			       crossover_algorithm_setting(variant->algorithm),
			       crossover_protocol_setting(variant->protocol));
}

static struct bench_cell cell_of(const struct bench_plan *plan,
				 const struct crossover_variant *variant, uint8_t function,
				 uint64_t bytes)
{
	bool is_rooted = function == OP_BROADCAST || function == OP_REDUCE;
	bool is_reducing =
		function == OP_ALL_REDUCE || function == OP_REDUCE_SCATTER || function == OP_REDUCE;

	return (struct bench_cell){
		.function = function,
		.datatype = plan->datatypes[0],
		.redop = is_reducing ? plan->redops[0] : BENCH_NO_REDOP,
		.mode = plan->modes[0],
		.algorithm = variant->algorithm,
		.protocol = variant->protocol,
		.root = is_rooted ? plan->root : -1,
		.bytes = bytes,
	};
}

/* 0, 1 when NCCL refused it, -1. */
static int measure_function(struct turn *turn, struct crossover_variant *variant, uint8_t function)
{
	const struct bench_plan *plan = &turn->team->plan;
	int result;

	for (size_t i = 0; i < plan->size_count; i++) {
		const struct bench_cell cell = cell_of(plan, variant, function, plan->sizes[i]);

		result = allow(turn);
		if (result == 0)
			result = bench_job_measure(turn->team->job, &cell);
		if (result != 0)
			return result;
		cli_progress_at(&turn->progress, ++turn->done);
	}
	return 0;
}

static bool is_wanted(const struct crossover_variant *variant, uint8_t function)
{
	return crossover_is_known(function, variant) && !(variant->refused & 1u << function);
}

/* What keeps ranks together is an AllReduce, which PAT cannot do. */
static int connect_as(struct turn *turn, const struct crossover_variant *variant)
{
	turn->team->plan.align = variant->algorithm == OP_PAT ? PLAN_ALIGN_HUB : turn->align;
	return bench_job_connect(turn->team->job, crossover_algorithm_setting(variant->algorithm),
				 crossover_protocol_setting(variant->protocol));
}

/* After a refusal the communicator is not to be trusted: the next function gets a new one. */
static int measure_variant(struct turn *turn, struct crossover_variant *variant)
{
	const struct bench_plan *plan = &turn->team->plan;
	bool is_connected = false;
	int result = 0;

	for (size_t i = 0; i < plan->function_count; i++) {
		if (!is_wanted(variant, plan->functions[i]))
			continue;
		if (!is_connected)
			result = connect_as(turn, variant);
		if (result == 0)
			result = measure_function(turn, variant, plan->functions[i]);
		if (result < 0)
			return -1;
		is_connected = result == 0;
		if (result > 0)
			refuse(turn, variant, plan->functions[i]);
		result = 0;
	}
	if (is_connected && variant->algorithm == 0)
		bench_job_choices(turn->team->job);
	return 0;
}

static size_t cells_of(const struct turn *turn, const struct crossover_variant *variant)
{
	const struct bench_plan *plan = &turn->team->plan;
	size_t cells = 0;

	for (size_t f = 0; f < plan->function_count; f++)
		if (is_wanted(variant, plan->functions[f]))
			cells += plan->size_count;
	return cells;
}

static uint64_t all_cells(const struct turn *turn)
{
	uint64_t cells = 0;

	for (size_t v = 0; v < turn->variants->count; v++)
		cells += cells_of(turn, &turn->variants->list[v]);
	return cells * turn->budget->rounds;
}

/* All variants once, beginning with another one each time; until when, shared among those that are left. */
static int play_round(struct turn *turn, unsigned int round, double until_s)
{
	struct crossover_variants *variants = turn->variants;
	int result = 0;

	/* Once is enough: the same calls with the same data come again. */
	turn->team->plan.is_checked = turn->team->plan.is_checked && round == 0;
	for (size_t i = 0; i < variants->count && result == 0; i++) {
		struct crossover_variant *variant = &variants->list[(i + round) % variants->count];
		double now_s = passed_s(turn);

		turn->cells_left = cells_of(turn, variant);
		turn->until_s = now_s + (until_s - now_s) / (double)(variants->count - i);
		result = measure_variant(turn, variant);
	}
	return result;
}

/* Rank 0 decides whether another round fits: half as long as the last one it could be, hardly less. */
static int decide(struct turn *turn, double last_s, int *is_on)
{
	*is_on = turn->budget->seconds <= 0 || turn->budget->seconds - passed_s(turn) > last_s / 2;
	return hub_share(turn->team->hub, is_on, sizeof(*is_on));
}

static int play(struct turn *turn)
{
	const struct crossover_budget *budget = turn->budget;
	double last_s = 0;

	for (unsigned int round = 0; round < budget->rounds; round++) {
		double now_s = passed_s(turn);
		int is_on = 1;

		if (round > 0 && decide(turn, last_s, &is_on) != 0)
			return -1;
		if (!is_on) {
			if (turn->team->place->rank == 0)
				bench_run_note(&turn->team->run,
					       "time for %u of %u rounds only: --seconds %.0f",
					       round, budget->rounds, budget->seconds);
			return 0;
		}
		if (play_round(turn, round,
			       now_s + (budget->seconds - now_s) / (budget->rounds - round)) != 0)
			return -1;
		last_s = passed_s(turn) - now_s;
	}
	return 0;
}

int crossover_measure(struct bench_team *team, struct crossover_variants *variants,
		      const struct crossover_budget *budget)
{
	struct turn turn = {
		.team = team, .variants = variants, .budget = budget, .align = team->plan.align
	};
	int result;

	if (team->place->rank == 0)
		cli_progress_start(&turn.progress, "crossover", "measurements", all_cells(&turn));
	result = play(&turn);
	cli_progress_end(&turn.progress);
	return result;
}
