#include "programs/cli/crossover_options.h"

#include "cmds/cli.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "programs/cli/bench_recall.h"

enum {
	CROSSOVER_OPTION_ALGORITHMS = CLI_LONG_ONLY,
	CROSSOVER_OPTION_PROTOCOLS,
	CROSSOVER_OPTION_WARMUPS,
	CROSSOVER_OPTION_ROUNDS,
	CROSSOVER_OPTION_SECONDS,
	CROSSOVER_OPTION_MODES,
	CROSSOVER_OPTION_FROM,
	CROSSOVER_OPTION_HTML,
	CROSSOVER_OPTION_ASCII,
};

enum {
	STUCK_SECONDS = 300,
	ROUNDS_USUAL = 3,
	SECONDS_USUAL = 60,
	ROUNDS_MOST = 100,
	CALLS_MOST = 100000
};
#define SIZES_USUAL "1K..64M*4"

static const struct cli_option options[] = {
	{ 'f', "functions", "LIST",
	  "what to measure, like allreduce,allgather (default allreduce)" },
	{ CROSSOVER_OPTION_ALGORITHMS, "algorithms", "LIST",
	  "of ring, tree, nvls, nvlstree, collnet, pat; or all (default ring,tree)" },
	{ CROSSOVER_OPTION_PROTOCOLS, "protocols", "LIST", "of ll, ll128, simple (default all)" },
	{ 's', "sizes", "LIST", "bytes of the message, like 1K..64M*4 (the default) or 4K,1M,32M" },
	{ 't', "types", "TYPE", "datatype of the elements, one of them (default float32)" },
	{ CROSSOVER_OPTION_MODES, "modes", "MODE",
	  "how calls follow each other, one of blocking (default), back-to-back and graph" },
	{ 'n', "calls", "N", "calls of each size in a round (default 20)" },
	{ CROSSOVER_OPTION_WARMUPS, "warmup", "N", "calls before these (default 5)" },
	{ CROSSOVER_OPTION_ROUNDS, "rounds", "N",
	  "how often each algorithm has its turn (default 3)" },
	{ CROSSOVER_OPTION_SECONDS, "seconds", "S",
	  "how long all of it should take: fewer calls of what is slow, fewer rounds (default 60; "
	  "0: as "
	  "long as it takes)" },
	BENCH_HOW_OPTIONS,
	{ CROSSOVER_OPTION_FROM, "from", "FILE",
	  "show a former measurement again, a .json file, instead of measuring" },
	{ CROSSOVER_OPTION_HTML, "html", "FILE",
	  "write a page with charts, too, whatever its name" },
	CLI_OPTION_JSON,
	BENCH_OUTPUTS_OPTION(".json, .html (a page with charts)"),
	{ CROSSOVER_OPTION_ASCII, "ascii", NULL, "plot with plain letters instead of dots" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bench crossover --ranks 8 -o crossover.html",
	  "rings against trees on this machine, as text and as a page" },
	{ "srun --ntasks-per-node 8 ringside bench crossover -o crossover.json",
	  "over the nodes of a job" },
	{ "ringside bench crossover --from crossover.json", "what was measured then, shown again" },
	{ NULL, NULL },
};

const struct cli_page crossover_page = {
	.name = "bench crossover",
	.operands = "",
	.about = "Measures every algorithm of NCCL with every protocol over message sizes, each on "
		 "a "
		 "communicator of its own, and NCCL's own choice beside them: which is the fastest "
		 "at which size, where the curves cross, what NCCL took (as Ringside's plugin sees "
		 "it) and what that costs against the best, and what to do about it. A model of "
		 "rings and trees is fitted to the times and shown beside them.\n"
		 "Everything is measured in rounds, in turns, so that what changes meanwhile hits "
		 "all "
		 "alike. docs/CROSSOVER.md explains how it is judged.\n",
	.options = options,
	.examples = examples,
};

/* ---- values ---------------------------------------------------------------------------------- */

enum { PROBLEM_TEXT = 200 };

static int take_count(const char *name, const char *value, int64_t least, int64_t most,
		      uint32_t *count)
{
	int64_t number;

	if (text_number(value, least, most, &number) != OK)
		return cli_usage(&crossover_page, "--%s '%s' is no number from %d to %d", name,
				 value, (int)least, (int)most);
	*count = (uint32_t)number;
	return 0;
}

static int take_seconds(struct crossover_request *request, const char *value)
{
	uint32_t seconds = 0;
	int exit_code = take_count("seconds", value, 0, 86400, &seconds);

	request->budget.seconds = seconds;
	return exit_code;
}

/* Point to point has neither ring nor tree. */
static int take_functions(struct crossover_request *request, const char *value)
{
	const struct crossover_variant ring = { .algorithm = OP_RING, .protocol = OP_SIMPLE };
	struct bench_plan *plan = &request->plan;
	char problem[PROBLEM_TEXT];

	if (plan_functions(plan, value, problem, sizeof(problem)) != 0)
		return cli_usage(&crossover_page, "--functions: %s", problem);
	for (size_t i = 0; i < plan->function_count; i++)
		if (!crossover_is_known(plan->functions[i], &ring))
			return cli_usage(&crossover_page,
					 "--functions: NCCL has one way only to do %s",
					 op_function_name(plan->functions[i]));
	return 0;
}

static int take_type(struct crossover_request *request, const char *value)
{
	char problem[PROBLEM_TEXT];

	if (cli_one_value(&crossover_page, "types", value) != 0)
		return CLI_EXIT_USAGE;
	if (plan_datatypes(&request->plan, value, problem, sizeof(problem)) != 0)
		return cli_usage(&crossover_page, "--types: %s", problem);
	return 0;
}

static int take_mode(struct crossover_request *request, const char *value)
{
	char problem[PROBLEM_TEXT];

	if (cli_one_value(&crossover_page, "modes", value) != 0)
		return CLI_EXIT_USAGE;
	if (plan_modes(&request->plan, value, problem, sizeof(problem)) != 0)
		return cli_usage(&crossover_page, "--modes: %s", problem);
	if (request->plan.modes[0] == BENCH_LOOP)
		return cli_usage(&crossover_page, "--modes: loop has no single calls to compare");
	return 0;
}

static int take_list(struct crossover_request *request, int found, const char *value)
{
	char problem[PROBLEM_TEXT];

	switch (found) {
	case CROSSOVER_OPTION_ALGORITHMS:
		if (crossover_algorithms(&request->variants, value, problem, sizeof(problem)) == 0)
			return 0;
		return cli_usage(&crossover_page, "--algorithms: %s", problem);
	case CROSSOVER_OPTION_PROTOCOLS:
		if (crossover_protocols(&request->variants, value, problem, sizeof(problem)) == 0)
			return 0;
		return cli_usage(&crossover_page, "--protocols: %s", problem);
	default:
		if (plan_sizes(&request->plan, value, problem, sizeof(problem)) == 0)
			return 0;
		return cli_usage(&crossover_page, "--sizes: %s", problem);
	}
}

static int take_output(struct crossover_request *request, int found, const char *value)
{
	switch (found) {
	case CROSSOVER_OPTION_FROM:
		request->from = value;
		return 0;
	case CROSSOVER_OPTION_HTML:
		return bench_outputs_add(&request->files, &crossover_page, value,
					 BENCH_OUTPUT_HTML);
	case CROSSOVER_OPTION_ASCII:
		request->is_ascii = true;
		return 0;
	case 'j':
		request->files.is_json = true;
		return 0;
	default:
		return bench_outputs_take(&request->files, &crossover_page, value, true);
	}
}

/* 0, or the exit code after an error was told. */
static bool is_for_showing(int found)
{
	return found == CROSSOVER_OPTION_FROM || found == CROSSOVER_OPTION_HTML ||
	       found == CROSSOVER_OPTION_ASCII || found == 'j' || found == 'o';
}

static int take(struct crossover_request *request, int found, const char *value)
{
	if (!is_for_showing(found))
		request->measuring = found;
	switch (found) {
	case 'f':
		return take_functions(request, value);
	case CROSSOVER_OPTION_ALGORITHMS:
	case CROSSOVER_OPTION_PROTOCOLS:
	case 's':
		return take_list(request, found, value);
	case 't':
		return take_type(request, value);
	case CROSSOVER_OPTION_MODES:
		return take_mode(request, value);
	case 'n':
		return take_count("calls", value, 1, CALLS_MOST, &request->plan.calls);
	case CROSSOVER_OPTION_WARMUPS:
		return take_count("warmup", value, 0, CALLS_MOST, &request->plan.warmups);
	case CROSSOVER_OPTION_ROUNDS:
		return take_count("rounds", value, 1, ROUNDS_MOST, &request->budget.rounds);
	case CROSSOVER_OPTION_SECONDS:
		return take_seconds(request, value);
	case CROSSOVER_OPTION_FROM:
	case CROSSOVER_OPTION_HTML:
	case CROSSOVER_OPTION_ASCII:
	case 'j':
	case 'o':
		return take_output(request, found, value);
	case CLI_OPERAND:
		return cli_usage(&crossover_page, "'%s': functions are named with --functions",
				 value);
	default:
		return bench_how_take(&request->how, &crossover_page, found, value);
	}
}

static void set_defaults(struct crossover_request *request)
{
	char problem[PROBLEM_TEXT];

	*request = (struct crossover_request){
		.budget = { .rounds = ROUNDS_USUAL,
			    .seconds = SECONDS_USUAL,
			    .began_ns = clock_system_ns(CLOCK_MONOTONIC) },
	};
	bench_how_init(&request->how);
	crossover_variants_init(&request->variants);
	plan_init(&request->plan);
	plan_sizes(&request->plan, SIZES_USUAL, problem, sizeof(problem));
	request->plan.functions[0] = OP_ALL_REDUCE;
	request->plan.function_count = 1;
	request->plan.align = PLAN_ALIGN_NCCL;
	request->plan.is_checked = true;
	request->plan.patience_s = STUCK_SECONDS;
}

int crossover_request_read(struct crossover_request *request, int argc, char **argv)
{
	struct cli_args args;
	int found, exit_code = 0;

	set_defaults(request);
	bench_outputs_command(request->command, sizeof(request->command), argc, argv);
	cli_args_init(&args, &crossover_page, argc, argv);
	while (exit_code == 0 && (found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP)
			return args.exit_code;
		exit_code = take(request, found, args.value);
	}
	if (exit_code == 0)
		exit_code = bench_recall_check(&crossover_page, request->from, request->measuring);
	if (exit_code != 0)
		return exit_code;
	crossover_variants_list(&request->variants);
	return -1;
}
