#include "programs/cli/health_steps.h"

#include <stdlib.h>
#include <time.h>

#include "bench/pair_schedule.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

/* Shares of the time for each step; what one leaves over is the next ones'. */
enum { SHARE_CHECK = 20, SHARE_COLLECTIVE = 10, SHARE_PAIRS = 55, SHARE_AGAIN = 10, SHARE_END = 5 };

enum { CROWD = 64 };

struct course {
	struct bench_team *team;
	struct health_watch *watch;
	const struct health_budget *budget;
	uint64_t large;
	int shares_left; /* of the steps to come */
};

/* What rank 0 says before a step. */
struct leave {
	double seconds; /* it may take so long; 0: leave it out */
	uint64_t large;
	int32_t rounds; /* pairs: how many in all */
};

void health_steps_plan(struct bench_plan *plan, const struct health_budget *budget)
{
	plan_init(plan);
	plan->sizes[0] = HEALTH_SMALL;
	plan->sizes[1] = budget->bytes > 0 ? budget->bytes : HEALTH_LARGE;
	plan->size_count = 2;
	plan->align = PLAN_ALIGN_NCCL;
	plan->is_checked = true;
	plan->patience_s = (int)(budget->seconds / 2) + 1;
}

static double seconds_left(const struct course *course)
{
	uint64_t passed = clock_system_ns(CLOCK_MONOTONIC) - course->budget->began_ns;

	return course->budget->seconds - (double)passed / 1e9;
}

/* 0, or -1. *leave is rank 0's on all ranks. */
static int take_leave(struct course *course, struct leave *leave)
{
	health_watch_wait(course->watch);
	return hub_share(course->team->hub, leave, sizeof(*leave));
}

/* Of what is left; a step that begins too late gets nothing. */
static int begin_step(struct course *course, int share, struct leave *leave)
{
	double left = seconds_left(course);

	*leave = (struct leave){ .large = course->large };
	if (left > 0)
		leave->seconds = left * share / course->shares_left;
	course->shares_left -= share;
	return take_leave(course, leave);
}

static void skip_note(const struct course *course, const char *what)
{
	if (course->team->place->rank == 0)
		bench_run_note(&course->team->run, "no time was left for %s: --seconds %.0f", what,
			       course->budget->seconds);
}

/* So many calls, and no longer than that. */
static void allow(struct bench_plan *plan, uint32_t warmups, uint32_t calls, uint32_t least,
		  double seconds)
{
	plan->warmups = warmups;
	plan->calls = calls;
	plan->least_calls = least;
	plan->seconds = seconds;
}

static int measure(struct course *course, const struct bench_cell *cell)
{
	char size[UNITS_TEXT];
	int rank = course->team->place->rank;

	if (cell->peers == NULL)
		health_watch_step(course->watch, "%s of %s", op_function_name(cell->function),
				  units_bytes(size, cell->bytes));
	else if (cell->peers[rank] >= 0)
		health_watch_step(course->watch, "the exchange of %s with rank %d",
				  units_bytes(size, cell->bytes), (int)cell->peers[rank]);
	return bench_job_measure(course->team->job, cell) == 0 ? 0 : -1;
}

/* ---- collectives ----------------------------------------------------------------------------- */

static int check_results(struct course *course)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
					     OP_BROADCAST, OP_ALL_TO_ALL };
	static const uint64_t sizes[] = { 4 << 10, 1 << 20 };
	const size_t cells = ARRAY_LENGTH(functions) * ARRAY_LENGTH(sizes);
	struct leave leave;

	if (begin_step(course, SHARE_CHECK, &leave) != 0)
		return -1;
	if (leave.seconds <= 0) {
		skip_note(course, "checking the results of collectives");
		return 0;
	}
	allow(&course->team->plan, 1, 5, 1, leave.seconds / (double)cells);
	for (size_t f = 0; f < ARRAY_LENGTH(functions); f++)
		for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
			bool is_reducing =
				functions[f] == OP_ALL_REDUCE || functions[f] == OP_REDUCE_SCATTER;
			struct bench_cell cell = {
				.function = functions[f],
				.datatype = OP_FLOAT32,
				.redop = is_reducing ? BENCH_SUM : BENCH_NO_REDOP,
				.mode = BENCH_BLOCKING,
				.root = functions[f] == OP_BROADCAST ? 0 : -1,
				.bytes = sizes[s] < course->large ? sizes[s] : course->large,
			};

			if (measure(course, &cell) != 0)
				return -1;
		}
	return 0;
}

static int measure_all_reduce(struct course *course, int share, const char *what)
{
	const struct bench_cell cell = {
		.function = OP_ALL_REDUCE,
		.datatype = OP_FLOAT32,
		.redop = BENCH_SUM,
		.mode = BENCH_BLOCKING,
		.root = -1,
		.bytes = course->large,
	};
	struct leave leave;

	if (begin_step(course, share, &leave) != 0)
		return -1;
	if (leave.seconds <= 0) {
		skip_note(course, what);
		return 0;
	}
	allow(&course->team->plan, 2, 20, 3, leave.seconds);
	return measure(course, &cell);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Large and small at once: the connection between two ranks is made with the first message. */
static int measure_round(struct course *course, int32_t *peers, double seconds)
{
	bool is_crowd = course->team->place->nranks > CROWD;
	struct bench_cell cell = {
		.function = OP_SEND_RECV,
		.datatype = OP_FLOAT32,
		.mode = BENCH_BLOCKING,
		.root = -1,
		.peers = peers,
		.bytes = course->large,
	};

	/* Every call of every rank is kept: fewer of them where there are many ranks. */
	allow(&course->team->plan, 1, is_crowd ? 5 : 10, 3, seconds * 0.6);
	if (measure(course, &cell) != 0)
		return -1;
	cell.bytes = HEALTH_SMALL;
	allow(&course->team->plan, 3, is_crowd ? 12 : 40, 10, seconds * 0.3);
	return measure(course, &cell);
}

/* How many rounds fit, after two of them: the first one also made what all of them need. */
static int32_t rounds_that_fit(const struct course *course, int32_t all, double round_s,
			       double until_s)
{
	double left = seconds_left(course) - until_s;
	double fit = round_s > 0 ? left / round_s : all;

	if (fit >= all)
		return all;
	return fit > 1 ? (int32_t)fit : 0;
}

static int play_rounds(struct course *course, struct pair_schedule *schedule, int32_t from,
		       double until_s, int32_t *peers)
{
	for (int32_t round = from; round < schedule->rounds; round++) {
		struct leave leave = { .seconds = seconds_left(course) - until_s };

		if (leave.seconds > 0)
			leave.seconds /= schedule->rounds - round;
		else
			leave.seconds = 0;
		if (take_leave(course, &leave) != 0)
			return -1;
		if (leave.seconds <= 0) {
			if (course->team->place->rank == 0)
				bench_run_note(&course->team->run,
					       "no time was left for %d of %d rounds of pairs",
					       schedule->rounds - round, schedule->rounds_all);
			return 0;
		}
		pair_schedule_round(schedule, round, peers);
		if (measure_round(course, peers, leave.seconds) != 0)
			return -1;
	}
	return 0;
}

/* The first rounds tell what one takes; where not all fit, those that are played are spread over all. */
static int play(struct course *course, struct leave leave, int32_t *peers)
{
	const int32_t probes = 2;
	double until_s = seconds_left(course) - leave.seconds, before_s;
	struct pair_schedule schedule;

	pair_schedule_init(&schedule, course->team->place->nranks, 0);
	leave.seconds /= schedule.rounds;
	for (int32_t round = 0; round < schedule.rounds && round < probes; round++) {
		before_s = seconds_left(course);
		pair_schedule_round(&schedule, round, peers);
		if (measure_round(course, peers, leave.seconds) != 0)
			return -1;
		leave.rounds = rounds_that_fit(course, schedule.rounds,
					       before_s - seconds_left(course), until_s);
	}
	if (schedule.rounds <= probes)
		return 0;
	if (take_leave(course, &leave) != 0)
		return -1;
	if (leave.rounds >= schedule.rounds - probes)
		return play_rounds(course, &schedule, probes, until_s, peers);
	if (leave.rounds > 0)
		pair_schedule_init(&schedule, course->team->place->nranks, leave.rounds);
	if (course->team->place->rank == 0)
		bench_run_note(&course->team->run,
			       "no time for all pairs: %d of %d rounds were played; give more "
			       "--seconds for all",
			       leave.rounds > 0 ? schedule.rounds : probes, schedule.rounds_all);
	return leave.rounds > 0 ? play_rounds(course, &schedule, 0, until_s, peers) : 0;
}

static int measure_pairs(struct course *course)
{
	int32_t *peers;
	struct leave leave;
	int result = 0;

	if (begin_step(course, SHARE_PAIRS, &leave) != 0)
		return -1;
	if (course->team->place->nranks < 2)
		return 0;
	if (leave.seconds <= 0) {
		skip_note(course, "pairs of ranks");
		return 0;
	}
	peers = calloc((size_t)course->team->place->nranks, sizeof(*peers));
	if (peers == NULL) {
		hub_fail(course->team->hub, "not enough memory");
		return -1;
	}
	result = play(course, leave, peers);
	free(peers);
	return result;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Rank 0 alone knows whether a GPU is shared. */
static int choose_size(struct course *course)
{
	struct leave leave = { .large = course->budget->bytes };

	if (leave.large == 0)
		leave.large = course->team->run.is_gpu_shared ? HEALTH_LARGE_SHARED : HEALTH_LARGE;
	if (take_leave(course, &leave) != 0)
		return -1;
	course->large = leave.large;
	return 0;
}

int health_steps_measure(struct bench_team *team, const struct health_budget *budget,
			 struct health_watch *watch)
{
	struct course course = {
		.team = team,
		.watch = watch,
		.budget = budget,
		.shares_left =
			SHARE_CHECK + SHARE_COLLECTIVE + SHARE_PAIRS + SHARE_AGAIN + SHARE_END,
	};

	if (choose_size(&course) != 0 || check_results(&course) != 0)
		return -1;
	if (measure_all_reduce(&course, SHARE_COLLECTIVE, "AllReduce") != 0)
		return -1;
	if (measure_pairs(&course) != 0)
		return -1;
	if (measure_all_reduce(&course, SHARE_AGAIN, "AllReduce at the end") != 0)
		return -1;
	health_watch_wait(watch);
	return 0;
}
