#include "programs/cli/health_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cli.h"
#include "cmds/cli_expected.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "programs/bench/bench_plan.h"
#include "programs/cli/bench_recall.h"

enum {
	HEALTH_OPTION_SECONDS = CLI_LONG_ONLY,
	HEALTH_OPTION_EXPECTED,
	HEALTH_OPTION_EXPECT,
	HEALTH_OPTION_TOLERANCE,
	HEALTH_OPTION_STRICT,
	HEALTH_OPTION_FROM,
};

/* Links carry at least a megabyte, or they tell latency and not bandwidth. */
enum { HEALTH_SIZE_LEAST = HEALTH_LARGE_BYTES, HEALTH_SIZE_MOST = 1 << 30 };

static const struct cli_option options[] = {
	{ HEALTH_OPTION_SECONDS, "seconds", "S",
	  "how long all of it may take (default 60); it gives up after twice that" },
	{ HEALTH_OPTION_EXPECTED, "expected", "FILE",
	  "what collectives should reach: output of nccl-tests, or 'ringside bench --json'" },
	{ HEALTH_OPTION_EXPECT, "expect", "LIST",
	  "what links should carry in GB/s each way, like inside=300,between=45" },
	{ HEALTH_OPTION_TOLERANCE, "tolerance", "SHARE",
	  "how much of that, or of the links of its kind, is still healthy (default 0.8)" },
	{ 's', "sizes", "SIZE",
	  "the large message, that tells bandwidth (default 64M; 8M where ranks share a GPU)" },
	BENCH_HOW_OPTIONS,
	{ HEALTH_OPTION_FROM, "from", "FILE",
	  "judge a former measurement, a .json file, instead of measuring" },
	CLI_OPTION_JSON,
	BENCH_OUTPUTS_OPTION(".json"),
	{ 'q', "quiet", NULL, "the verdict's line alone" },
	{ HEALTH_OPTION_STRICT, "strict", NULL, "exit code 1 also when links could not be judged" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bench health", "is this machine fit for a job? A minute, all GPUs" },
	{ "srun --ntasks-per-node 8 ringside bench health --expect inside=300,between=45 -q",
	  "over the nodes of a job: one line, exit code 1 when something is slow" },
	{ "ringside bench health --ranks 4 --seconds 20 -o health.json",
	  "four ranks; everything that was measured into a file" },
	{ NULL, NULL },
};

const struct cli_page health_page = {
	.name = "bench health",
	.operands = "",
	.about = "Measures for a minute whether GPUs and the links between them are fit for a job: "
		 "whether collectives compute what they should, how fast AllReduce is over all "
		 "ranks, and every pair of ranks both ways, with large and small messages. Each "
		 "link is compared with the others of its kind, and with what you expect. The "
		 "first line is the verdict. The exit code is 0 when all is healthy, 1 when "
		 "something is slow, wrong or failed.\n"
		 "Made for prologs of jobs: it never hangs. docs/BENCH-HEALTH.md has scripts, and "
		 "says how it is judged.\n",
	.options = options,
	.examples = examples,
};

/* ---- values ---------------------------------------------------------------------------------- */

/* A number between bounds, all of the text. */
static bool take_number(const char *text, double least, double most, double *number)
{
	char *end = NULL;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !(value >= least && value <= most))
		return false;
	*number = value;
	return true;
}

/* "64M", as sizes of messages are written. */
static int take_size(struct health_request *request, const char *value)
{
	struct bench_plan plan;
	char problem[160];

	if (cli_one_value(&health_page, "sizes", value) != 0)
		return CLI_EXIT_USAGE;
	plan_init(&plan);
	if (plan_sizes(&plan, value, problem, sizeof(problem)) != 0)
		return cli_usage(&health_page, "--sizes: %s", problem);
	if (plan.size_count != 1 || plan.sizes[0] < HEALTH_SIZE_LEAST ||
	    plan.sizes[0] > HEALTH_SIZE_MOST)
		return cli_usage(&health_page, "--sizes '%s': one size from 1M to 1G", value);
	request->budget.bytes = plan.sizes[0];
	return 0;
}

/* 0 for one that is no kind of link. */
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

static int take_expect(struct health_request *request, const char *value)
{
	for (const char *at = value;; at++) {
		size_t length = strcspn(at, ",");

		if (!expect_one(request, at, length))
			return cli_usage(
				&health_page,
				"--expect '%.*s': say inside, between or shared, and GB/s, "
				"like inside=300,between=45",
				(int)length, at);
		at += length;
		if (*at == '\0')
			return 0;
	}
}

static int take_expected(struct health_request *request, const char *path)
{
	if (request->has_expected)
		return cli_usage(&health_page, "--expected: one file");
	switch (diff_expected_read(&request->expected, path)) {
	case DIFF_EXPECTED_FOUND:
		request->has_expected = true;
		request->judge.expected = &request->expected;
		return 0;
	case DIFF_EXPECTED_BAD:
		return CLI_EXIT_TROUBLE;
	default:
		return cli_error("%s: not there, or neither output of nccl-tests nor "
				 "'ringside bench --json'",
				 path);
	}
}

/* 0, or the exit code after an error was told. */
/* Options of the measurement, not of the verdict. */
static bool is_for_measuring(int found)
{
	return found == HEALTH_OPTION_SECONDS || found == 's' || found == BENCH_HOW_RANKS ||
	       found == BENCH_HOW_MEET || found == BENCH_HOW_NCCL || found == BENCH_HOW_NO_MPS ||
	       found == BENCH_HOW_PATIENCE;
}

static int take(struct health_request *request, int found, const char *value)
{
	if (is_for_measuring(found))
		request->measuring = found;
	switch (found) {
	case HEALTH_OPTION_SECONDS:
		if (!take_number(value, 1, 86400, &request->budget.seconds))
			return cli_usage(&health_page, "--seconds '%s' is not 1 to 86400", value);
		return 0;
	case 's':
		return take_size(request, value);
	case HEALTH_OPTION_EXPECTED:
		return take_expected(request, value);
	case HEALTH_OPTION_EXPECT:
		return take_expect(request, value);
	case HEALTH_OPTION_TOLERANCE:
		if (!take_number(value, 0.01, 1, &request->judge.slow))
			return cli_usage(&health_page,
					 "--tolerance '%s' is no share from 0.01 to 1, like 0.8",
					 value);
		return 0;
	case HEALTH_OPTION_FROM:
		request->from = value;
		return 0;
	case HEALTH_OPTION_STRICT:
		request->is_strict = true;
		return 0;
	case 'j':
		request->files.is_json = true;
		return 0;
	case 'o':
		return bench_outputs_take(&request->files, &health_page, value, false);
	case 'q':
		request->is_quiet = true;
		return 0;
	case CLI_OPERAND:
		return cli_usage(&health_page, "'%s' is no option", value);
	default:
		return bench_how_take(&request->how, &health_page, found, value);
	}
}

static int check(struct health_request *request)
{
	if (request->files.is_json && request->is_quiet)
		return cli_usage(&health_page, "--json and --quiet: one of them");
	/* Whoever is missing has to be named before the time is over. */
	if (request->how.patience_s <= 0 || request->how.patience_s > request->budget.seconds)
		request->how.patience_s = (int)ceil(request->budget.seconds);
	/* If even those who keep the time are stopped. A few seconds are needed to tell it. */
	request->how.limit_s =
		(int)fmax(2 * request->budget.seconds, 1.5 * request->budget.seconds + 8);
	request->judge.is_unjudged_fine = !request->is_strict;
	return -1;
}

int health_request_read(struct health_request *request, int argc, char **argv)
{
	struct cli_args args;
	int found, exit_code = 0;

	*request = (struct health_request){
		.budget = { .seconds = HEALTH_SECONDS,
			    .began_ns = clock_system_ns(CLOCK_MONOTONIC) },
	};
	bench_how_init(&request->how);
	bench_outputs_command(request->command, sizeof(request->command), argc, argv);
	cli_args_init(&args, &health_page, argc, argv);
	while (exit_code == 0 && (found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP)
			return args.exit_code;
		exit_code = take(request, found, args.value);
	}
	if (exit_code == 0)
		exit_code = bench_recall_check(&health_page, request->from, request->measuring);
	return exit_code != 0 ? exit_code : check(request);
}

void health_request_release(struct health_request *request)
{
	if (request->has_expected)
		expected_release(&request->expected);
	request->has_expected = false;
}
