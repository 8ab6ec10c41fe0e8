/* `ringside bench crossover`: which algorithm and protocol is fastest at which size. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench_command.h"
#include "bench/bench_job.h"
#include "bench/bench_launch.h"
#include "bench/bench_plan.h"
#include "bench/cost_model.h"
#include "bench/crossover.h"
#include "cli/cli.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

/*
 * What `ringside bench crossover` measures in turn: every algorithm with every protocol, and NCCL's own choice.
 * Names as in NCCL_ALGO and NCCL_PROTO, in any case.
 */

enum { CROSSOVER_ALGORITHMS = 8, CROSSOVER_PROTOCOLS = 4, CROSSOVER_VARIANTS = 33 };

struct crossover_variant {
	uint8_t algorithm; /* enum op_algorithm; 0 with protocol 0: NCCL chooses */
	uint8_t protocol;  /* enum op_protocol */
	uint32_t refused;  /* bit f: NCCL does not support function f here */
};

struct crossover_variants {
	uint8_t algorithms[CROSSOVER_ALGORITHMS];
	size_t algorithm_count;
	uint8_t protocols[CROSSOVER_PROTOCOLS];
	size_t protocol_count;
	struct crossover_variant list[CROSSOVER_VARIANTS];
	size_t count;
};

/*
 * The Ringside plugin, loaded during the benchmark: NCCL reports the algorithm and protocol it chose only to a
 * profiler plugin. It writes to a private directory that is removed at the end.
 */

enum { CROSSOVER_RECORDER_VARIABLES = 4 };

struct crossover_recorder {
	bool is_on;	     /* otherwise `why` says why NCCL's choice is unknown */
	bool is_in_place_of; /* replaces the plugin named in NCCL_PROFILER_PLUGIN, which is not loaded */
	char why[512];
	char plugin[4096];
	char directory[4096];
	struct bench_cleaner cleaner; /* removes the directory, whose files take up memory */
	struct bench_variable
		variables[CROSSOVER_RECORDER_VARIABLES + 1]; /* for the ranks' environment */
};

/*
 * Measures all variants in rounds on one rank of the team: one communicator per variant, all sizes on it. Drift
 * (clocks, other jobs) then affects all variants alike; each round starts with a different one.
 */

struct crossover_budget {
	unsigned int rounds;
	double seconds;	   /* total, starting at began_ns; 0: no limit */
	uint64_t began_ns; /* CLOCK_MONOTONIC */
};

/* The parsed command line of `ringside bench crossover`. */

struct crossover_request {
	struct bench_how how;
	struct bench_plan plan;
	struct crossover_variants variants;
	struct crossover_recorder recorder;
	struct crossover_budget budget;
	const char *from;      /* an earlier run; NULL: measure now */
	const char *measuring; /* a measuring option that was given; NULL: none */
	struct bench_outputs files;
	char command[1024]; /* kept in the results */
	bool is_ascii;
};

struct word {
	const char *name;
	uint8_t number;
};

/* The first spelling of each is the one that is set. */
static const struct word algorithm_words[] = {
	{ "Ring", OP_RING },
	{ "Tree", OP_TREE },
	{ "NVLS", OP_NVLS },
	{ "NVLSTree", OP_NVLS_TREE },
	{ "NVLS_TREE", OP_NVLS_TREE },
	{ "CollNetDirect", OP_COLLNET_DIRECT },
	{ "COLLNET_DIRECT", OP_COLLNET_DIRECT },
	{ "CollNetChain", OP_COLLNET_CHAIN },
	{ "COLLNET_CHAIN", OP_COLLNET_CHAIN },
	{ "collnet", OP_COLLNET_DIRECT },
	{ "collnet", OP_COLLNET_CHAIN },
	{ "PAT", OP_PAT },
};

static const struct word protocol_words[] = {
	{ "LL", OP_LL },
	{ "LL128", OP_LL128 },
	{ "Simple", OP_SIMPLE },
};

struct words {
	const struct word *list;
	size_t count;
	const char *known; /* for messages */
};

static const struct words algorithms = { algorithm_words, ARRAY_LENGTH(algorithm_words),
					 "ring, tree, nvls, nvlstree, collnet, pat or all" };
static const struct words protocols = { protocol_words, ARRAY_LENGTH(protocol_words),
					"ll, ll128, simple or all" };

static const char *nccl_setting(const struct words *words, uint8_t number)
{
	for (size_t i = 0; i < words->count; i++)
		if (words->list[i].number == number)
			return words->list[i].name;
	return NULL;
}

/* "Ring", as NCCL_ALGO takes it; NULL for 0. */
static const char *crossover_algorithm_setting(uint8_t algorithm)
{
	return nccl_setting(&algorithms, algorithm);
}

static const char *crossover_protocol_setting(uint8_t protocol)
{
	return nccl_setting(&protocols, protocol);
}

/* Ignores duplicates. */
static void variant_add_number(uint8_t *list, size_t room, size_t *count, uint8_t number)
{
	if (*count < room && memchr(list, number, *count) == NULL)
		list[(*count)++] = number;
}

static bool is_word(const char *word, const char *text, size_t length)
{
	return strlen(word) == length && strncasecmp(word, text, length) == 0;
}

/* Adds everything the word stands for; false if it is unknown. */
static bool variant_add_word(const struct words *words, const char *text, size_t length,
			     uint8_t *list, size_t room, size_t *count)
{
	bool is_all = is_word("all", text, length), is_found = false;

	for (size_t i = 0; i < words->count; i++) {
		if (!is_all && !is_word(words->list[i].name, text, length))
			continue;
		variant_add_number(list, room, count, words->list[i].number);
		is_found = true;
	}
	return is_found;
}

/* Parses a comma-separated list; *count is only written on success. */
static int variant_take_list(const struct words *words, const char *text, uint8_t *list,
			     size_t room, size_t *count, char *problem, size_t size)
{
	size_t found = 0;

	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		if (!variant_add_word(words, at, length, list, room, &found)) {
			text_format(problem, size, "'%.*s': expected %s", (int)length, at,
				    words->known);
			return -1;
		}
		at += length;
		if (*at == '\0')
			break;
	}
	*count = found;
	return 0;
}

/* "ring,tree,nvls", "all". 0, or -1 and *problem has one line. */
static int crossover_algorithms(struct crossover_variants *variants, const char *text,
				char *problem, size_t size)
{
	return variant_take_list(&algorithms, text, variants->algorithms,
				 ARRAY_LENGTH(variants->algorithms), &variants->algorithm_count,
				 problem, size);
}

/* "ll,simple", "all". */
static int crossover_protocols(struct crossover_variants *variants, const char *text, char *problem,
			       size_t size)
{
	return variant_take_list(&protocols, text, variants->protocols,
				 ARRAY_LENGTH(variants->protocols), &variants->protocol_count,
				 problem, size);
}

/* Only Ring and Tree support LL and LL128. */
static bool is_pair(uint8_t algorithm, uint8_t protocol)
{
	return protocol == OP_SIMPLE || algorithm == OP_RING || algorithm == OP_TREE;
}

/* Whether NCCL supports the combination at all. Tree only does AllReduce, PAT only AllGather and ReduceScatter. */
static bool crossover_is_known(uint8_t function, const struct crossover_variant *variant)
{
	bool is_half = function == OP_ALL_GATHER || function == OP_REDUCE_SCATTER;

	switch (variant->algorithm) {
	case OP_ALGORITHM_UNKNOWN:
		return true;
	case OP_RING:
		return is_half || function == OP_ALL_REDUCE || function == OP_BROADCAST ||
		       function == OP_REDUCE;
	case OP_NVLS:
	case OP_COLLNET_DIRECT:
		return is_half || function == OP_ALL_REDUCE;
	case OP_PAT:
		return is_half;
	default:
		return function == OP_ALL_REDUCE;
	}
}

/* Fills the list: NCCL's choice first, then every supported pair. NVLS, CollNet and PAT only have Simple. */
static void crossover_variants_list(struct crossover_variants *variants)
{
	variants->count = 0;
	variants->list[variants->count++] = (struct crossover_variant){ 0 };
	for (size_t a = 0; a < variants->algorithm_count; a++)
		for (size_t p = 0; p < variants->protocol_count; p++)
			if (is_pair(variants->algorithms[a], variants->protocols[p]) &&
			    variants->count < ARRAY_LENGTH(variants->list))
				variants->list[variants->count++] = (struct crossover_variant){
					.algorithm = variants->algorithms[a],
					.protocol = variants->protocols[p],
				};
}

/* In the user's region directory, otherwise in memory; /tmp if there is no /dev/shm. */
static bool make_directory(char *path, size_t size)
{
	const char *const places[] = { getenv("RINGSIDE_SHM"), "/dev/shm", "/tmp" };

	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		if (places[i] == NULL || places[i][0] != '/')
			continue;
		if (text_format(path, size, "%s/ringside-crossover-XXXXXX", places[i]) &&
		    mkdtemp(path) != NULL)
			return true;
	}
	path[0] = '\0';
	return false;
}

static void set_variables(struct crossover_recorder *recorder)
{
	const struct bench_variable variables[] = {
		{ "NCCL_PROFILER_PLUGIN", recorder->plugin },
		{ "RINGSIDE_MODE", "flight" },
		{ "RINGSIDE_SHM", recorder->directory },
		{ "RINGSIDE_DISABLE", NULL },
		{ NULL, NULL },
	};

	_Static_assert(ARRAY_LENGTH(variables) == CROSSOVER_RECORDER_VARIABLES + 1, "all of them");
	memcpy(recorder->variables, variables, sizeof(variables));
}

static void recorder_sweep(const void *context)
{
	const struct crossover_recorder *recorder = context;

	bench_remove_tree(recorder->directory);
}

/* Finds the plugin and makes the directory. If either fails, is_on is false. */
static void crossover_recorder_open(struct crossover_recorder *recorder)
{
	const char *other = getenv("NCCL_PROFILER_PLUGIN");
	char looked[sizeof(recorder->why) / 2];

	memset(recorder, 0, sizeof(*recorder));
	if (!cli_plugin_find(recorder->plugin, sizeof(recorder->plugin), looked, sizeof(looked))) {
		text_format(recorder->why, sizeof(recorder->why), "plugin %s not found in %s",
			    CLI_PLUGIN_FILE, looked);
		return;
	}
	if (!make_directory(recorder->directory, sizeof(recorder->directory))) {
		text_format(recorder->why, sizeof(recorder->why),
			    "cannot create a directory for the plugin in /dev/shm or /tmp: %s",
			    strerror(errno));
		return;
	}
	(void)bench_cleaner_start(&recorder->cleaner, recorder_sweep, recorder);
	recorder->is_in_place_of = other != NULL && other[0] != '\0' &&
				   strcmp(other, "none") != 0 && strstr(other, "ringside") == NULL;
	recorder->is_on = true;
	set_variables(recorder);
}

/* For a rank started by a launcher: sets its environment before NCCL is loaded. */
static void crossover_recorder_set(const struct crossover_recorder *recorder)
{
	for (const struct bench_variable *at = recorder->variables; at->name != NULL; at++) {
		if (at->value != NULL)
			setenv(at->name, at->value, 1);
		else
			unsetenv(at->name);
	}
}

/* Removes the directory with the recordings. The keeper does this if the process is killed. */
static void crossover_recorder_close(struct crossover_recorder *recorder)
{
	if (!bench_cleaner_end(&recorder->cleaner))
		recorder_sweep(recorder);
	recorder->directory[0] = '\0';
}

enum {
	STUCK_SECONDS = 300,
	ROUNDS_USUAL = 3,
	SECONDS_USUAL = 60,
	ROUNDS_MOST = 100,
	CALLS_MOST = 100000
};
#define SIZES_USUAL "1K..64M*4"

/* ---- values ---------------------------------------------------------------------------------- */

enum { PROBLEM_TEXT = 200 };

/* Point-to-point operations have no algorithm. */
static int take_functions(const struct cli_said *said)
{
	struct crossover_request *request = said->target;
	const struct crossover_variant ring = { .algorithm = OP_RING, .protocol = OP_SIMPLE };
	struct bench_plan *plan = &request->plan;
	char problem[PROBLEM_TEXT];

	if (plan_functions(plan, said->value, problem, sizeof(problem)) != 0)
		return cli_usage(said->page, "--functions: %s", problem);
	for (size_t i = 0; i < plan->function_count; i++)
		if (!crossover_is_known(plan->functions[i], &ring))
			return cli_usage(said->page,
					 "--functions: NCCL has only one algorithm for "
					 "%s",
					 op_function_name(plan->functions[i]));
	return 0;
}

static int take_type(const struct cli_said *said)
{
	struct crossover_request *request = said->target;
	char problem[PROBLEM_TEXT];

	if (cli_one_value(said->page, "types", said->value) != 0)
		return CLI_EXIT_USAGE;
	if (plan_datatypes(&request->plan, said->value, problem, sizeof(problem)) != 0)
		return cli_usage(said->page, "--types: %s", problem);
	return 0;
}

static int take_mode(const struct cli_said *said)
{
	struct crossover_request *request = said->target;
	char problem[PROBLEM_TEXT];

	if (cli_one_value(said->page, "modes", said->value) != 0)
		return CLI_EXIT_USAGE;
	if (plan_modes(&request->plan, said->value, problem, sizeof(problem)) != 0)
		return cli_usage(said->page, "--modes: %s", problem);
	if (request->plan.modes[0] == BENCH_LOOP)
		return cli_usage(said->page, "--modes: loop does not time single calls");
	return 0;
}

static int take_list(const struct cli_said *said)
{
	struct crossover_request *request = said->target;
	char problem[PROBLEM_TEXT];
	int failed;

	switch (said->option->name[0]) {
	case 'a':
		failed = crossover_algorithms(&request->variants, said->value, problem,
					      sizeof(problem));
		break;
	case 'p':
		failed = crossover_protocols(&request->variants, said->value, problem,
					     sizeof(problem));
		break;
	default:
		failed = plan_sizes(&request->plan, said->value, problem, sizeof(problem));
	}
	return failed ? cli_usage(said->page, "--%s: %s", said->option->name, problem) : 0;
}

static int bad_count(const struct cli_said *said)
{
	return cli_usage(said->page, "--%s '%s': expected a number from %d to %d",
			 said->option->name, said->value, (int)said->option->least,
			 (int)said->option->most);
}

static int take_count(const struct cli_said *said)
{
	int64_t number;

	if (text_number(said->value, said->option->least, said->option->most, &number) != OK)
		return bad_count(said);
	*(uint32_t *)said->target = (uint32_t)number;
	return 0;
}

static int take_seconds(const struct cli_said *said)
{
	int64_t number;

	if (text_number(said->value, said->option->least, said->option->most, &number) != OK)
		return bad_count(said);
	*(double *)said->target = (double)number;
	return 0;
}

static int take_operand(const struct cli_said *said)
{
	return cli_usage(said->page, "'%s': use --functions to name operations", said->value);
}

#define CROSSOVER_COUNT(field, from, to)           \
	.kind = CLI_KIND_CALL, .take = take_count, \
	.target = CLI_AT(struct crossover_request, field, uint32_t), .least = (from), .most = (to)

static const struct cli_option options[] = {
	{ 'f', "functions", "LIST",
	  "operations to measure, e.g. allreduce,allgather (default "
	  "allreduce)",
	  CLI_CALL_ALL(take_functions) },
	{ 0, "algorithms", "LIST",
	  "ring, tree, nvls, nvlstree, collnet, pat or all (default ring,tree)",
	  CLI_CALL_ALL(take_list) },
	{ 0, "protocols", "LIST", "ll, ll128, simple or all (default all)",
	  CLI_CALL_ALL(take_list) },
	{ 's', "sizes", "LIST", "message sizes in bytes, e.g. 4K,1M,32M (default 1K..64M*4)",
	  CLI_CALL_ALL(take_list) },
	{ 't', "types", "TYPE", "datatype of the elements (default float32)",
	  CLI_CALL_ALL(take_type) },
	{ 0, "modes", "MODE", "call mode: blocking, back-to-back or graph (default blocking)",
	  CLI_CALL_ALL(take_mode) },
	{ 'n', "calls", "N", "calls per size and round (default 20)",
	  CROSSOVER_COUNT(plan.calls, 1, CALLS_MOST) },
	{ 0, "warmup", "N", "warm-up calls before them (default 5)",
	  CROSSOVER_COUNT(plan.warmups, 0, CALLS_MOST) },
	{ 0, "rounds", "N", "number of rounds in which every algorithm is measured (default 3)",
	  CROSSOVER_COUNT(budget.rounds, 1, ROUNDS_MOST) },
	{ 0, "seconds", "S",
	  "total time; slow cells get fewer calls and rounds are skipped to stay within it "
	  "(default 60; 0: no limit)",
	  CLI_CALL(struct crossover_request, budget.seconds, take_seconds), .least = 0,
	  .most = 86400 },
	BENCH_HOW_OPTIONS(struct crossover_request),
	{ 0, "from", "FILE", "show an earlier measurement (a .json file) instead of measuring",
	  CLI_TEXT(struct crossover_request, from), .is_view = true },
	{ 0, "html", "FILE", "also write a page with charts, whatever the file's extension",
	  CLI_CALL(struct crossover_request, files, bench_outputs_take_html), .is_view = true },
	BENCH_OPTION_JSON(struct crossover_request),
	BENCH_OUTPUTS_OPTION(struct crossover_request, ".json, .html (a page with charts)",
			     bench_outputs_take_page),
	{ 0, "ascii", NULL, "use ASCII characters in the plot",
	  CLI_FLAG(struct crossover_request, is_ascii), .is_view = true },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bench crossover --ranks 8 -o crossover.html",
	  "compare ring and tree on this host, as text and as a page" },
	{ "srun --ntasks-per-node 8 ringside bench crossover -o crossover.json",
	  "across the nodes of a job" },
	{ "ringside bench crossover --from crossover.json", "show an earlier measurement" },
	{ NULL, NULL },
};

static const struct cli_page crossover_page = {
	.name = "bench crossover",
	.operands = "",
	.about = "Measures every combination of NCCL algorithm and protocol over a range of "
		 "message sizes, and compares them with NCCL's own choice: which is fastest at "
		 "which size, where the curves cross, what NCCL chose (as recorded by the Ringside "
		 "plugin), how far that is from the best, and which settings to use. Also fits a "
		 "cost model of rings and trees and shows its predictions.\n"
		 "Variants are measured in turn over several rounds, so that drift affects all of "
		 "them alike. See docs/BENCH.md.\n",
	.options = options,
	.operand = take_operand,
	.work = offsetof(struct crossover_request, measuring),
	.examples = examples,
};

static void set_defaults(struct crossover_request *request)
{
	char problem[PROBLEM_TEXT];

	*request = (struct crossover_request){
		.budget = { .rounds = ROUNDS_USUAL,
			    .seconds = SECONDS_USUAL,
			    .began_ns = clock_system_ns(CLOCK_MONOTONIC) },
		.variants = { .algorithms = { OP_RING, OP_TREE },
			      .algorithm_count = 2,
			      .protocols = { OP_LL, OP_LL128, OP_SIMPLE },
			      .protocol_count = 3 },
	};
	bench_how_init(&request->how);
	plan_init(&request->plan);
	plan_sizes(&request->plan, SIZES_USUAL, problem, sizeof(problem));
	request->plan.functions[0] = OP_ALL_REDUCE;
	request->plan.function_count = 1;
	request->plan.align = PLAN_ALIGN_NCCL;
	request->plan.is_checked = true;
	request->plan.patience_s = STUCK_SECONDS;
}

/* Parses the command line. -1: continue; otherwise the exit code. */
static int crossover_request_read(struct crossover_request *request, int argc, char **argv)
{
	int exit_code;

	set_defaults(request);
	bench_outputs_command(request->command, sizeof(request->command), argc, argv);
	exit_code = cli_parse(&crossover_page, request, argc, argv);
	if (exit_code != CLI_GO_ON)
		return exit_code;
	exit_code = bench_recall_check(&crossover_page, request->from, request->measuring);
	if (exit_code != 0)
		return exit_code;
	crossover_variants_list(&request->variants);
	return -1;
}

#define CALLS_SHARE 0.6 /* the rest is for communicators, warm-up and checks */
enum { CALLS_LEAST = 3 };

struct turn {
	struct bench_team *team;
	struct crossover_variants *variants;
	const struct crossover_budget *budget;
	double until_s;	   /* rank 0: when the current variant should be done */
	size_t cells_left; /* ... and how many of its cells are left */
	enum plan_align align;
	struct cli_progress progress; /* rank 0 only */
	uint64_t done;
};

/* Since the start. */
static double passed_s(const struct turn *turn)
{
	return (double)(clock_system_ns(CLOCK_MONOTONIC) - turn->budget->began_ns) / 1e9;
}

/* The time for the next size, agreed by all ranks. Small sizes leave most of it to the large ones. */
static int turn_allow(struct turn *turn)
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

/* NCCL does not support this here; all ranks got the same answer. */
static void turn_refuse(struct turn *turn, struct crossover_variant *variant, uint8_t function)
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

/* 0, 1 if NCCL refused it, -1 on failure. */
static int measure_function(struct turn *turn, struct crossover_variant *variant, uint8_t function)
{
	const struct bench_plan *plan = &turn->team->plan;
	int result;

	for (size_t i = 0; i < plan->size_count; i++) {
		const struct bench_cell cell = cell_of(plan, variant, function, plan->sizes[i]);

		result = turn_allow(turn);
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

/* Ranks are aligned with an AllReduce, which PAT does not support. */
static int connect_as(struct turn *turn, const struct crossover_variant *variant)
{
	turn->team->plan.align = variant->algorithm == OP_PAT ? PLAN_ALIGN_HUB : turn->align;
	return bench_job_connect(turn->team->job, crossover_algorithm_setting(variant->algorithm),
				 crossover_protocol_setting(variant->protocol));
}

/* After a refusal the communicator cannot be trusted: the next function gets a new one. */
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
			turn_refuse(turn, variant, plan->functions[i]);
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

/*
 * Measures every variant once, starting with a different one each round; divides the time until until_s among them.
 */
static int play_round(struct turn *turn, unsigned int round, double until_s)
{
	struct crossover_variants *variants = turn->variants;
	int result = 0;

	/* Later rounds repeat the same calls on the same data. */
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

/* Rank 0 decides whether another round fits. A round can shrink to about half of the last one, not less. */
static int turn_decide(struct turn *turn, double last_s, int *is_on)
{
	*is_on = turn->budget->seconds <= 0 || turn->budget->seconds - passed_s(turn) > last_s / 2;
	return hub_share(turn->team->hub, is_on, sizeof(*is_on));
}

static int turn_play(struct turn *turn)
{
	const struct crossover_budget *budget = turn->budget;
	double last_s = 0;

	for (unsigned int round = 0; round < budget->rounds; round++) {
		double now_s = passed_s(turn);
		int is_on = 1;

		if (round > 0 && turn_decide(turn, last_s, &is_on) != 0)
			return -1;
		if (!is_on) {
			if (turn->team->place->rank == 0)
				bench_run_note(&turn->team->run,
					       "only %u of %u rounds fit into --seconds %.0f",
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

/*
 * Call after bench_team_open(). Rank 0 keeps the time: it divides what is left among the sizes (at least three
 * calls each) and skips rounds that no longer fit, except the first. Rank 0's run gets one cell per round,
 * function, variant and size, with NCCL's choice if nothing was forced and the plugin is loaded. Combinations that
 * NCCL refuses or that did not fit become notes, not failures. 0, or -1: the hub has the reason.
 */
static int crossover_measure(struct bench_team *team, struct crossover_variants *variants,
			     const struct crossover_budget *budget)
{
	struct turn turn = {
		.team = team, .variants = variants, .budget = budget, .align = team->plan.align
	};
	int result;

	if (team->place->rank == 0)
		cli_progress_start(&turn.progress, "crossover", "measurements", all_cells(&turn));
	result = turn_play(&turn);
	cli_progress_end(&turn.progress);
	return result;
}

/* ---- what was measured, shown ---------------------------------------------------------------- */

struct shown {
	const struct crossover_request *request;
	const struct crossover_view *view;
};

static enum status write_shown(const void *context, enum bench_output_kind kind, unsigned int width,
			       struct sink *sink)
{
	const struct shown *shown = context;
	const struct crossover_text_options style = {
		.width = width,
		.is_ascii = shown->request->is_ascii,
		.has_plot = true,
	};

	switch (kind) {
	case BENCH_OUTPUT_JSON:
		return crossover_json(sink, shown->view);
	case BENCH_OUTPUT_HTML:
		return crossover_html(sink, shown->view);
	default:
		return crossover_text(sink, shown->view, &style);
	}
}

/* Wrong elements of all cells. */
static uint64_t wrong_elements(const struct bench_run *run)
{
	uint64_t wrong = 0;

	for (size_t i = 0; i < run->cell_count; i++)
		if (run->cells[i].wrong != BENCH_UNCHECKED)
			wrong += run->cells[i].wrong;
	return wrong;
}

static int crossover_show(const struct crossover_request *request, const struct bench_run *run)
{
	const struct cost_fit_options fitting = { .over = BENCH_OVER_MEAN };
	struct crossover_view view = { .run = run };
	const struct shown shown = { request, &view };
	struct crossover_set set;
	static struct cost_model model; /* tens of kilobytes: not for the stack */
	enum status status;
	uint64_t wrong = wrong_elements(run);
	int exit_code;

	crossover_set_init(&set);
	status = crossover_find(&set, run, BENCH_OVER_MEAN);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	if (status != OK) {
		crossover_set_release(&set);
		return cli_error("no comparable measurements");
	}
	cost_model_init(&model);
	status = cost_fit(&model, NULL, &run, 1, &fitting);
	if (status == ERR_NO_SPACE)
		cli_no_memory();
	view.set = &set;
	view.model = status == OK ? &model : NULL;
	view.why_no_model = model.note_count > 0 ? model.notes[0] : NULL;
	if (wrong > 0)
		cli_error("%" PRIu64 " result elements are wrong", wrong);
	exit_code = bench_outputs_write(&request->files, write_shown, &shown,
					wrong > 0 ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE);
	crossover_set_release(&set);
	return exit_code;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void add_notes(const struct crossover_request *request, struct bench_run *run)
{
	const struct crossover_recorder *recorder = &request->recorder;
	bool is_any_known = false;

	text_copy(run->command, sizeof(run->command), request->command);
	if (!recorder->is_on)
		bench_run_note(run, "NCCL's choice is unknown: %s", recorder->why);
	if (recorder->is_in_place_of)
		bench_run_note(run, "the plugin named in NCCL_PROFILER_PLUGIN was not loaded: "
				    "Ringside's plugin replaced it");
	for (size_t i = 0; i < run->cell_count; i++)
		is_any_known |= run->cells[i].chosen_algorithm != 0;
	if (recorder->is_on && !is_any_known)
		bench_run_note(run, "NCCL's choice is unknown: this NCCL did not load the plugin "
				    "or did not report it");
}

/* The body run on each rank. */
static int crossover_rank(const struct bench_place *place, void *context)
{
	struct crossover_request *request = context;
	struct bench_team team;
	int result = CLI_EXIT_DONE;

	if (request->recorder.is_on)
		crossover_recorder_set(&request->recorder);
	if (bench_team_open(&team, place, &request->how, &request->plan) != 0)
		return CLI_EXIT_UNKNOWN;
	if (place->rank == 0 && bench_outputs_check(&request->files) != 0)
		return bench_team_quit(&team);
	if (crossover_measure(&team, &request->variants, &request->budget) != 0)
		return bench_team_fail(&team);
	if (bench_team_finish(&team) != 0)
		return CLI_EXIT_UNKNOWN;
	if (place->rank == 0) {
		add_notes(request, &team.run);
		result = crossover_show(request, &team.run);
	}
	bench_team_release(&team);
	return result;
}

static int crossover_start(struct crossover_request *request)
{
	int exit_code;

	crossover_recorder_open(&request->recorder);
	if (request->recorder.is_on)
		request->how.variables = request->recorder.variables;
	exit_code = bench_everywhere(&request->how, crossover_rank, request);
	crossover_recorder_close(&request->recorder);
	return exit_code;
}

static int show_former(const struct crossover_request *request)
{
	struct bench_run run;
	int exit_code = bench_recall(&run, request->from);

	if (exit_code == 0)
		exit_code = crossover_show(request, &run);
	bench_run_release(&run);
	return exit_code;
}

int bench_crossover(int argc, char **argv)
{
	struct crossover_request request;
	int exit_code = crossover_request_read(&request, argc, argv);

	if (exit_code != -1)
		return exit_code;
	return request.from != NULL ? show_former(&request) : crossover_start(&request);
}
