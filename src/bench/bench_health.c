/* `ringside bench health`: are the GPUs and the links between them fit for a job? */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench_command.h"
#include "bench/bench_job.h"
#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "bench/health.h"
#include "cli/cli.h"
#include "cli/cli_input.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

/*
 * A job prolog must not hang: a thread on every rank ends the process when the hard limit has passed and reports
 * what the rank was doing. Ranks inside a step report it to rank 0, which names them, or those that gave no sign of
 * life.
 */

struct health_watch {
	const struct bench_place *place; /* borrowed */
	struct bench_hub *hub;		 /* borrowed; NULL: not connected yet */
	double limit_s;
	struct watch_thread thread; /* its lock also guards the hub pointer and the fields below */
	bool is_waiting;	    /* for other ranks, with no operation of its own in progress */
	char step[160];
};

/*
 * The measurements of a health check on one rank of the team: a few collectives with result checks, AllReduce over
 * all ranks, every pair of ranks in both directions with a large and a small message, AllReduce again. Rank 0 keeps
 * the time and announces the limit of each step.
 */

#define HEALTH_SECONDS 60.0 /* total */

enum {
	HEALTH_LARGE = 64 << 20,       /* for bandwidth */
	HEALTH_LARGE_SHARED = 8 << 20, /* ... where ranks share a GPU and use the loopback */
	HEALTH_SMALL = 1 << 10,	       /* for latency */
};

struct health_budget {
	double seconds;	   /* total, starting at began_ns */
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t bytes;	   /* size of the large message; 0: chosen for the GPUs */
};

/* The parsed command line of `ringside bench health`. */

struct health_request {
	struct bench_how how;
	struct health_budget budget;
	struct health_options judge;
	struct expected expected; /* judge.expected, if a file was given */
	bool has_expected;
	const char *from;      /* an earlier run; NULL: measure now */
	const char *measuring; /* a measuring option that was given; NULL: none */
	struct bench_outputs files;
	char command[1024]; /* kept in the results */
	bool is_quiet;
	bool is_strict; /* --strict: links that were not judged fail the check */
};

/* Rank 0 gives up a little later, to hear the reasons from the others first. */
static const double later_seconds = 0.5;

/* Called with the lock held. The main thread is inside CUDA or NCCL and will not return. */
static void health_give_up(struct health_watch *watch)
{
	char problem[HUB_PROBLEM_BYTES];

	text_format(problem, sizeof(problem), "not finished after %.0f s: %s %s", watch->limit_s,
		    watch->is_waiting ? "waiting for another rank after" : "still in", watch->step);
	if (watch->hub != NULL) {
		/* A rank that only waits leaves the report to those inside an operation. */
		if (!watch->is_waiting || watch->place->rank == 0)
			hub_fail(watch->hub, problem);
		bench_watch_tell(watch->place, watch->hub);
	} else {
		bench_tell(watch->place, problem);
	}
	_exit(CLI_EXIT_UNKNOWN);
}

static void *keep_watch(void *context)
{
	struct health_watch *watch = context;
	double later = watch->place->rank == 0 ? later_seconds : 0;
	double seconds = (watch->limit_s > 0 ? watch->limit_s : 0) + later;

	pthread_mutex_lock(&watch->thread.lock);
	if (!watch_thread_is_over_within(&watch->thread, seconds))
		health_give_up(watch);
	pthread_mutex_unlock(&watch->thread.lock);
	return NULL;
}

/* Limits the process to `limit_s` seconds from now. 0, or -1: could not start the thread. */
static int health_watch_start(struct health_watch *watch, const struct bench_place *place,
			      double limit_s)
{
	*watch = (struct health_watch){ .place = place, .limit_s = limit_s };
	text_copy(watch->step, sizeof(watch->step), "the start");
	if (watch_thread_begin(&watch->thread, keep_watch, watch) == 0)
		return 0;
	watch_thread_end(&watch->thread);
	return -1;
}

/* Sets the hub once it is connected; NULL before it is closed. */
static void health_watch_hub(struct health_watch *watch, struct bench_hub *hub)
{
	pthread_mutex_lock(&watch->thread.lock);
	watch->hub = hub;
	pthread_mutex_unlock(&watch->thread.lock);
}

/* Sets the name of the next step: "AllReduce of 64 MiB". */
static void PRINTF_LIKE(2, 3) health_watch_step(struct health_watch *watch, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	pthread_mutex_lock(&watch->thread.lock);
	watch->is_waiting = false;
	vsnprintf(watch->step, sizeof(watch->step), format, list);
	pthread_mutex_unlock(&watch->thread.lock);
	va_end(list);
}

/* This rank has finished the step and waits for the others. */
static void health_watch_wait(struct health_watch *watch)
{
	pthread_mutex_lock(&watch->thread.lock);
	watch->is_waiting = true;
	pthread_mutex_unlock(&watch->thread.lock);
}

/* Shares of the time for each step; unused time goes to later steps. */
enum { SHARE_CHECK = 20, SHARE_COLLECTIVE = 10, SHARE_PAIRS = 55, SHARE_AGAIN = 10, SHARE_END = 5 };

enum { MANY_RANKS = 64 };

struct health_steps {
	struct bench_team *team;
	struct health_watch *watch;
	const struct health_budget *budget;
	uint64_t large;
	int shares_left; /* of the remaining steps */
};

/* What rank 0 announces before a step. */
struct step_limit {
	double seconds; /* time limit; 0: skip the step */
	uint64_t large;
	int32_t rounds; /* for pairs: total number of rounds */
};

/* For bench_team_open(): buffers for the largest message. */
static void health_steps_plan(struct bench_plan *plan, const struct health_budget *budget)
{
	plan_init(plan);
	plan->sizes[0] = HEALTH_SMALL;
	plan->sizes[1] = budget->bytes > 0 ? budget->bytes : HEALTH_LARGE;
	plan->size_count = 2;
	plan->align = PLAN_ALIGN_NCCL;
	plan->is_checked = true;
	plan->patience_s = (int)(budget->seconds / 2) + 1;
}

static double seconds_left(const struct health_steps *steps)
{
	uint64_t passed = clock_system_ns(CLOCK_MONOTONIC) - steps->budget->began_ns;

	return steps->budget->seconds - (double)passed / 1e9;
}

/* 0, or -1. Distributes rank 0's *limit to all ranks. */
static int take_limit(struct health_steps *steps, struct step_limit *limit)
{
	health_watch_wait(steps->watch);
	return hub_share(steps->team->hub, limit, sizeof(*limit));
}

/* Takes a share of the remaining time; a step that would start too late gets none. */
static int begin_step(struct health_steps *steps, int share, struct step_limit *limit)
{
	double left = seconds_left(steps);

	*limit = (struct step_limit){ .large = steps->large };
	if (left > 0)
		limit->seconds = left * share / steps->shares_left;
	steps->shares_left -= share;
	return take_limit(steps, limit);
}

static void skip_note(const struct health_steps *steps, const char *what)
{
	if (steps->team->place->rank == 0)
		bench_run_note(&steps->team->run, "no time left for %s: --seconds %.0f", what,
			       steps->budget->seconds);
}

/* Limits a step to this many calls and this time. */
static void step_allow(struct bench_plan *plan, uint32_t warmups, uint32_t calls, uint32_t least,
		       double seconds)
{
	plan->warmups = warmups;
	plan->calls = calls;
	plan->least_calls = least;
	plan->seconds = seconds;
}

static int steps_measure(struct health_steps *steps, const struct bench_cell *cell)
{
	char size[UNITS_TEXT];
	int rank = steps->team->place->rank;

	if (cell->peers == NULL)
		health_watch_step(steps->watch, "%s of %s", op_function_name(cell->function),
				  units_bytes(size, cell->bytes));
	else if (cell->peers[rank] >= 0)
		health_watch_step(steps->watch, "the exchange of %s with rank %d",
				  units_bytes(size, cell->bytes), (int)cell->peers[rank]);
	return bench_job_measure(steps->team->job, cell) == 0 ? 0 : -1;
}

/* ---- collectives ----------------------------------------------------------------------------- */

static int check_results(struct health_steps *steps)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
					     OP_BROADCAST, OP_ALL_TO_ALL };
	static const uint64_t sizes[] = { 4 << 10, 1 << 20 };
	const size_t cells = ARRAY_LENGTH(functions) * ARRAY_LENGTH(sizes);
	struct step_limit limit;

	if (begin_step(steps, SHARE_CHECK, &limit) != 0)
		return -1;
	if (limit.seconds <= 0) {
		skip_note(steps, "checking the results of collectives");
		return 0;
	}
	step_allow(&steps->team->plan, 1, 5, 1, limit.seconds / (double)cells);
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
				.bytes = sizes[s] < steps->large ? sizes[s] : steps->large,
			};

			if (steps_measure(steps, &cell) != 0)
				return -1;
		}
	return 0;
}

static int measure_all_reduce(struct health_steps *steps, int share, const char *what)
{
	const struct bench_cell cell = {
		.function = OP_ALL_REDUCE,
		.datatype = OP_FLOAT32,
		.redop = BENCH_SUM,
		.mode = BENCH_BLOCKING,
		.root = -1,
		.bytes = steps->large,
	};
	struct step_limit limit;

	if (begin_step(steps, share, &limit) != 0)
		return -1;
	if (limit.seconds <= 0) {
		skip_note(steps, what);
		return 0;
	}
	step_allow(&steps->team->plan, 2, 20, 3, limit.seconds);
	return steps_measure(steps, &cell);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Large and small together: the first message sets up the connection between two ranks. */
static int measure_round(struct health_steps *steps, int32_t *peers, double seconds)
{
	bool has_many_ranks = steps->team->place->nranks > MANY_RANKS;
	struct bench_cell cell = {
		.function = OP_SEND_RECV,
		.datatype = OP_FLOAT32,
		.mode = BENCH_BLOCKING,
		.root = -1,
		.peers = peers,
		.bytes = steps->large,
	};

	/* Every call of every rank is kept, so large jobs make fewer of them. */
	step_allow(&steps->team->plan, 1, has_many_ranks ? 5 : 10, 3, seconds * 0.6);
	if (steps_measure(steps, &cell) != 0)
		return -1;
	cell.bytes = HEALTH_SMALL;
	step_allow(&steps->team->plan, 3, has_many_ranks ? 12 : 40, 10, seconds * 0.3);
	return steps_measure(steps, &cell);
}

/* How many rounds fit, estimated after two rounds: the first includes one-time setup. */
static int32_t rounds_that_fit(const struct health_steps *steps, int32_t all, double round_s,
			       double until_s)
{
	double left = seconds_left(steps) - until_s;
	double fit = round_s > 0 ? left / round_s : all;

	if (fit >= all)
		return all;
	return fit > 1 ? (int32_t)fit : 0;
}

static int play_rounds(struct health_steps *steps, struct pair_schedule *schedule, int32_t from,
		       double until_s, int32_t *peers)
{
	for (int32_t round = from; round < schedule->rounds; round++) {
		struct step_limit limit = { .seconds = seconds_left(steps) - until_s };

		if (limit.seconds > 0)
			limit.seconds /= schedule->rounds - round;
		else
			limit.seconds = 0;
		if (take_limit(steps, &limit) != 0)
			return -1;
		if (limit.seconds <= 0) {
			if (steps->team->place->rank == 0)
				bench_run_note(&steps->team->run,
					       "no time left for %d of %d rounds of pairs",
					       schedule->rounds - round, schedule->rounds_all);
			return 0;
		}
		pair_schedule_round(schedule, round, peers);
		if (measure_round(steps, peers, limit.seconds) != 0)
			return -1;
	}
	return 0;
}

/* The first rounds show how long one takes. If not all fit, the rounds to run are spread evenly. */
static int steps_run(struct health_steps *steps, struct step_limit limit, int32_t *peers)
{
	const int32_t probes = 2;
	double until_s = seconds_left(steps) - limit.seconds, before_s;
	struct pair_schedule schedule;

	pair_schedule_init(&schedule, steps->team->place->nranks, 0);
	limit.seconds /= schedule.rounds;
	for (int32_t round = 0; round < schedule.rounds && round < probes; round++) {
		before_s = seconds_left(steps);
		pair_schedule_round(&schedule, round, peers);
		if (measure_round(steps, peers, limit.seconds) != 0)
			return -1;
		limit.rounds = rounds_that_fit(steps, schedule.rounds,
					       before_s - seconds_left(steps), until_s);
	}
	if (schedule.rounds <= probes)
		return 0;
	if (take_limit(steps, &limit) != 0)
		return -1;
	if (limit.rounds >= schedule.rounds - probes)
		return play_rounds(steps, &schedule, probes, until_s, peers);
	if (limit.rounds > 0)
		pair_schedule_init(&schedule, steps->team->place->nranks, limit.rounds);
	if (steps->team->place->rank == 0)
		bench_run_note(&steps->team->run,
			       "not enough time for all pairs: ran %d of %d rounds; increase "
			       "--seconds to measure all",
			       limit.rounds > 0 ? schedule.rounds : probes, schedule.rounds_all);
	return limit.rounds > 0 ? play_rounds(steps, &schedule, 0, until_s, peers) : 0;
}

static int measure_pairs(struct health_steps *steps)
{
	int32_t *peers;
	struct step_limit limit;
	int result = 0;

	if (begin_step(steps, SHARE_PAIRS, &limit) != 0)
		return -1;
	if (steps->team->place->nranks < 2)
		return 0;
	if (limit.seconds <= 0) {
		skip_note(steps, "pairs of ranks");
		return 0;
	}
	peers = calloc((size_t)steps->team->place->nranks, sizeof(*peers));
	if (peers == NULL) {
		hub_fail(steps->team->hub, "out of memory");
		return -1;
	}
	result = steps_run(steps, limit, peers);
	free(peers);
	return result;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Only rank 0 knows whether a GPU is shared. */
static int choose_size(struct health_steps *steps)
{
	struct step_limit limit = { .large = steps->budget->bytes };

	if (limit.large == 0)
		limit.large = steps->team->run.is_gpu_shared ? HEALTH_LARGE_SHARED : HEALTH_LARGE;
	if (take_limit(steps, &limit) != 0)
		return -1;
	steps->large = limit.large;
	return 0;
}

/*
 * Call after bench_team_open(). Rank 0's run gets the cells, and a note for each step that did not fit. 0, or -1:
 * the hub has the reason.
 */
static int health_steps_measure(struct bench_team *team, const struct health_budget *budget,
				struct health_watch *watch)
{
	struct health_steps steps = {
		.team = team,
		.watch = watch,
		.budget = budget,
		.shares_left =
			SHARE_CHECK + SHARE_COLLECTIVE + SHARE_PAIRS + SHARE_AGAIN + SHARE_END,
	};

	if (choose_size(&steps) != 0 || check_results(&steps) != 0)
		return -1;
	if (measure_all_reduce(&steps, SHARE_COLLECTIVE, "AllReduce") != 0)
		return -1;
	if (measure_pairs(&steps) != 0)
		return -1;
	if (measure_all_reduce(&steps, SHARE_AGAIN, "AllReduce at the end") != 0)
		return -1;
	health_watch_wait(watch);
	return 0;
}

/* Below one megabyte, links show latency, not bandwidth. */
enum { HEALTH_SIZE_LEAST = HEALTH_LARGE_BYTES, HEALTH_SIZE_MOST = 1 << 30 };

/* ---- values ---------------------------------------------------------------------------------- */

/* Parses all of the text as a number within bounds. */
static bool take_number(const char *text, double least, double most, double *number)
{
	char *end = NULL;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= least && value <= most))
		return false;
	*number = value;
	return true;
}

/* "64M", like message sizes elsewhere. */
static int take_size(const struct cli_said *said)
{
	struct health_request *request = said->target;
	struct bench_plan plan;
	char problem[160];

	if (cli_one_value(said->page, "sizes", said->value) != 0)
		return CLI_EXIT_USAGE;
	plan_init(&plan);
	if (plan_sizes(&plan, said->value, problem, sizeof(problem)) != 0)
		return cli_usage(said->page, "--sizes: %s", problem);
	if (plan.size_count != 1 || plan.sizes[0] < HEALTH_SIZE_LEAST ||
	    plan.sizes[0] > HEALTH_SIZE_MOST)
		return cli_usage(said->page, "--sizes '%s': expected one size from 1M to 1G",
				 said->value);
	request->budget.bytes = plan.sizes[0];
	return 0;
}

/* False if it names no kind of link. */
static bool expect_one(struct health_request *request, const char *text, size_t length)
{
	for (unsigned int link = 0; link < HEALTH_LINKS; link++) {
		const char *key = health_link_key((enum health_link)link);
		size_t key_length = strlen(key);
		char number[32];

		if (length <= key_length || strncmp(text, key, key_length) != 0 ||
		    text[key_length] != '=' || length - key_length > sizeof(number))
			continue;
		memcpy(number, text + key_length + 1, length - key_length - 1);
		number[length - key_length - 1] = '\0';
		return take_number(number, 1e-6, 1e6, &request->judge.expected_gbs[link]);
	}
	return false;
}

static int take_expect(const struct cli_said *said)
{
	struct health_request *request = said->target;

	for (const char *at = said->value;; at++) {
		size_t length = strcspn(at, ",");

		if (!expect_one(request, at, length))
			return cli_usage(
				said->page,
				"--expect '%.*s': expected inside, between or shared with GB/s, "
				"e.g. inside=300,between=45",
				(int)length, at);
		at += length;
		if (*at == '\0')
			return 0;
	}
}

static int take_expected(const struct cli_said *said)
{
	struct health_request *request = said->target;

	if (request->has_expected)
		return cli_usage(said->page, "--expected can be given only once");
	switch (diff_expected_read(&request->expected, said->value)) {
	case DIFF_EXPECTED_FOUND:
		request->has_expected = true;
		request->judge.expected = &request->expected;
		return 0;
	case DIFF_EXPECTED_BAD:
		return CLI_EXIT_UNKNOWN;
	default:
		return cli_error("%s: not found, or neither nccl-tests output nor a JSON result of "
				 "'ringside bench'",
				 said->value);
	}
}

static int take_seconds(const struct cli_said *said)
{
	if (take_number(said->value, 1, 86400, said->target))
		return 0;
	return cli_usage(said->page, "--seconds '%s': expected 1 to 86400", said->value);
}

static int take_tolerance(const struct cli_said *said)
{
	if (take_number(said->value, 0.01, 1, said->target))
		return 0;
	return cli_usage(said->page,
			 "--tolerance '%s': expected a fraction from 0.01 to 1, e.g. "
			 "0.8",
			 said->value);
}

static int take_operand(const struct cli_said *said)
{
	return cli_usage(said->page, "unrecognized option '%s'", said->value);
}

static const struct cli_option options[] = {
	{ 0, "seconds", "S", "time for the whole check (default 60); gives up after twice that",
	  CLI_CALL(struct health_request, budget.seconds, take_seconds) },
	{ 0, "expected", "FILE",
	  "expected bandwidth of collectives: nccl-tests output or a 'ringside bench --json' "
	  "result",
	  CLI_CALL_ALL(take_expected), .is_view = true },
	{ 0, "expect", "LIST",
	  "expected bandwidth of links in GB/s per direction, e.g. inside=300,between=45",
	  CLI_CALL_ALL(take_expect), .is_view = true },
	{ 0, "tolerance", "SHARE",
	  "a link is healthy above this fraction of the expected or median bandwidth (default 0.8)",
	  CLI_CALL(struct health_request, judge.slow, take_tolerance), .is_view = true },
	{ 's', "sizes", "SIZE",
	  "size of the large message, for bandwidth (default 64M; 8M if ranks share a GPU)",
	  CLI_CALL_ALL(take_size) },
	BENCH_HOW_OPTIONS(struct health_request),
	{ 0, "from", "FILE", "judge an earlier measurement (a .json file) instead of measuring",
	  CLI_TEXT(struct health_request, from), .is_view = true },
	BENCH_OPTION_JSON(struct health_request),
	BENCH_OUTPUTS_OPTION(struct health_request, ".json", bench_outputs_take),
	{ 'q', "quiet", NULL, "print only the verdict line",
	  CLI_FLAG(struct health_request, is_quiet), .is_view = true },
	{ 0, "strict", NULL, "exit with 3 instead of 0 if links could not be judged",
	  CLI_FLAG(struct health_request, is_strict), .is_view = true },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bench health", "check all GPUs of this host in one minute" },
	{ "srun --ntasks-per-node 8 ringside bench health --expect inside=300,between=45 -q",
	  "across the nodes of a job: one line, exit code 1 if something is slow" },
	{ "ringside bench health --ranks 4 --seconds 20 -o health.json",
	  "four ranks; write all measurements to a file" },
	{ NULL, NULL },
};

static const struct cli_page health_page = {
	.name = "bench health",
	.operands = "",
	.about = "Checks in one minute whether the GPUs and the links between them are fit for a "
		 "job: correct results of collectives, AllReduce bandwidth over all ranks, and "
		 "bandwidth and latency of every pair of ranks in both directions. Each link is "
		 "compared with the others of its kind and with the values you expect. The first "
		 "line is the verdict. Exits with 0 if everything is healthy, 1 if something is "
		 "slow, wrong or failed.\n"
		 "Made for job prologs: it never hangs. docs/BENCH.md has scripts and "
		 "explains the thresholds.\n",
	.options = options,
	.operand = take_operand,
	.work = offsetof(struct health_request, measuring),
	.examples = examples,
};

static int health_check_options(struct health_request *request)
{
	if (request->files.is_json && request->is_quiet)
		return cli_usage(&health_page, "use only one of --json and --quiet");
	/* Missing ranks must be named before the time is over. */
	if (request->how.patience_s <= 0 || request->how.patience_s > request->budget.seconds)
		request->how.patience_s = (int)ceil(request->budget.seconds);
	/* In case the watching threads are stopped, too. Reporting takes a few seconds. */
	request->how.limit_s =
		(int)fmax(2 * request->budget.seconds, 1.5 * request->budget.seconds + 8);
	request->judge.is_unjudged_fine = !request->is_strict;
	return -1;
}

/* Parses the command line. -1: continue; otherwise the exit code. The caller releases in every case. */
static int health_request_read(struct health_request *request, int argc, char **argv)
{
	int exit_code;

	*request = (struct health_request){
		.budget = { .seconds = HEALTH_SECONDS,
			    .began_ns = clock_system_ns(CLOCK_MONOTONIC) },
	};
	bench_how_init(&request->how);
	bench_outputs_command(request->command, sizeof(request->command), argc, argv);
	exit_code = cli_parse(&health_page, request, argc, argv);
	if (exit_code != CLI_GO_ON)
		return exit_code;
	exit_code = bench_recall_check(&health_page, request->from, request->measuring);
	return exit_code != 0 ? exit_code : health_check_options(request);
}

static void health_request_release(struct health_request *request)
{
	if (request->has_expected)
		expected_release(&request->expected);
	request->has_expected = false;
}

struct shown {
	const struct health_request *request;
	const struct health *health;
	const struct bench_run *run;
};

static enum status write_shown(const void *context, enum bench_output_kind kind, unsigned int width,
			       struct sink *sink)
{
	const struct shown *shown = context;
	const struct health_text_options style = {
		.width = width,
		.is_quiet = shown->request->is_quiet,
	};

	if (kind == BENCH_OUTPUT_JSON)
		return health_json(sink, shown->health, shown->run);
	return health_text(sink, shown->health, shown->run, &style);
}

/* Writes the verdict. Returns the exit code. */
static int health_write_verdict(const struct health_request *request, const struct bench_run *run)
{
	struct health health;
	struct shown shown = { request, &health, run };
	enum status status = health_find(&health, run, &request->judge);
	int exit_code;

	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status != OK)
		return cli_error("nothing was measured that could be judged");
	exit_code = bench_outputs_write(&request->files, write_shown, &shown, health.exit_code);
	health_release(&health);
	return exit_code;
}

/*
 * A rank ends early enough for the hard limit, twice the budget: finding out which ranks do not answer takes a few
 * seconds.
 */
static double limit_s(const struct health_budget *budget)
{
	double passed = (double)(clock_system_ns(CLOCK_MONOTONIC) - budget->began_ns) / 1e9;

	return 1.5 * budget->seconds - passed;
}

/*
 * As bench_team_fail(), and names the ranks that did not answer. GPU work can be stuck forever, so nothing is
 * freed: the driver does that at process exit.
 */
static void health_fail(struct bench_team *team, struct health_watch *watch)
{
	/* From here on, every wait has its own limit. */
	watch_thread_end(&watch->thread);
	bench_watch_tell(team->place, team->hub);
	hub_close(team->hub);
	_exit(CLI_EXIT_UNKNOWN);
}

/* 0, or CLI_EXIT_UNKNOWN after a message. On success the caller releases the team. */
static int health_measure_rank(const struct health_request *request,
			       const struct bench_place *place, struct bench_team *team,
			       struct health_watch *watch)
{
	struct bench_plan plan;
	int result;

	health_steps_plan(&plan, &request->budget);
	health_watch_step(watch, "joining the other ranks");
	if (bench_team_meet(team, place, &request->how, &plan) != 0)
		return CLI_EXIT_UNKNOWN;
	if (place->rank == 0 && bench_outputs_check(&request->files) != 0)
		return bench_team_quit(team);
	hub_set_patience(team->hub, (int)ceil(request->budget.seconds));
	health_watch_hub(watch, team->hub);
	health_watch_step(watch, "opening the GPU");
	if (bench_job_open(&team->job, place, team->hub, &team->plan, &team->run) != 0)
		health_fail(team, watch);
	health_watch_step(watch, "creating the communicator");
	result = bench_job_connect(team->job, NULL, NULL);
	if (result == 0)
		result = health_steps_measure(team, &request->budget, watch);
	if (result != 0)
		health_fail(team, watch);
	health_watch_hub(watch, NULL);
	return bench_team_finish(team);
}

/* The body run on each rank. */
static int health_rank(const struct bench_place *place, void *context)
{
	const struct health_request *request = context;
	struct health_watch watch;
	struct bench_team team;
	int result;

	if (health_watch_start(&watch, place, limit_s(&request->budget)) != 0) {
		bench_tell(place, "cannot start the thread that keeps the time limit");
		return CLI_EXIT_UNKNOWN;
	}
	result = health_measure_rank(request, place, &team, &watch);
	watch_thread_end(&watch.thread);
	if (result != 0)
		return CLI_EXIT_UNKNOWN;
	if (place->rank == 0) {
		text_copy(team.run.command, sizeof(team.run.command), request->command);
		result = health_write_verdict(request, &team.run);
	}
	bench_team_release(&team);
	return result;
}

static int judge_former(const struct health_request *request)
{
	struct bench_run run;
	int exit_code = bench_recall(&run, request->from);

	if (exit_code == 0)
		exit_code = health_write_verdict(request, &run);
	bench_run_release(&run);
	return exit_code;
}

int bench_health(int argc, char **argv)
{
	struct health_request request;
	int exit_code = health_request_read(&request, argc, argv);

	if (exit_code == -1)
		exit_code = request.from != NULL
				    ? judge_former(&request)
				    : bench_everywhere(&request.how, health_rank, &request);
	health_request_release(&request);
	return exit_code;
}
