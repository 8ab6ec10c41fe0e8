#include "programs/cli/model_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cmds/cli.h"
#include "common/op_layout.h"
#include "common/text.h"

enum option_id {
	MODEL_RANKS = 'R',
	MODEL_NODES = CLI_LONG_ONLY,
	MODEL_NICS,
	MODEL_FROM,
	MODEL_MODES,
	MODEL_CALL,
	MODEL_LATENCY,
	MODEL_BANDWIDTH,
	MODEL_HARDWARE,
	MODEL_ALGORITHMS,
	MODEL_PROTOCOLS,
};

static const struct cli_option page_options[] = {
	{ MODEL_RANKS, "ranks", "N", "how many ranks take part" },
	{ MODEL_NODES, "nodes", "N",
	  "on how many nodes; else as many ranks a node as were measured, or as the hardware has" },
	{ MODEL_NICS, "nics", "N", "NICs of a node; else one for each rank" },
	{ MODEL_FROM, "from", "FILE",
	  "fit the parameters to what 'ringside bench --json' measured; may be said several "
	  "times" },
	{ MODEL_MODES, "modes", "MODE",
	  "which of the measurements, one of blocking, back-to-back, graph and loop; else blocking "
	  "if there" },
	{ MODEL_LATENCY, "latency", "LIST", "of a hop: inside=3us,between=15us" },
	{ MODEL_BANDWIDTH, "bandwidth", "LIST",
	  "of a GPU's links inside a node and of a NIC, one direction: "
	  "inside=370GB/s,between=48GB/s" },
	{ MODEL_CALL, "call", "TIME", "what every call takes beside its hops: 8us" },
	{ MODEL_HARDWARE, "hardware", "NAME",
	  "a textbook's values: a100-ib, h100-ib, b200-ib or pcie4-eth" },
	{ MODEL_ALGORITHMS, "algorithms", "NAME", "only one of ring, tree, double-tree, direct" },
	{ MODEL_PROTOCOLS, "protocols", "NAME", "only one of LL, LL128, Simple" },
	CLI_OPTION_JSON,
	CLI_OPTION_END,
};

static const struct cli_example page_examples[] = {
	{ "ringside model allreduce 8G --ranks 512 --hardware h100-ib",
	  "what a textbook says of 64 nodes with 8 GPUs each" },
	{ "ringside model allreduce 8G --ranks 512 --from 2nodes.json --from 4nodes.json",
	  "what your measurements say of it" },
	{ "ringside model allgather 1K..1G*4 --ranks 16 --nodes 2 --latency "
	  "inside=3us,between=15us "
	  "--bandwidth inside=370,between=48",
	  "a table over sizes, with numbers of your own" },
	{ NULL, NULL },
};

const struct cli_page model_page = {
	.name = "model",
	.operands = "FUNCTION SIZE",
	.about =
		"Says how long an operation of NCCL should take: by a model of ring, tree, double "
		"tree and direct transfers with latency and bandwidth for each hop inside a node "
		"and between nodes. The parameters are fitted to measurements, given by hand, or a "
		"textbook's by its name; where they come from, and the error of the fit, is said "
		"with the answer. What nobody measured or gave is not made up.\n"
		"SIZE is bytes of the message as nccl-tests counts them: one, a list or a range, "
		"like 8G, 1K,1M,1G or 1K..1G*4. docs/MODEL.md derives the formulas.\n",
	.options = page_options,
	.examples = page_examples,
};

/* ---- numbers --------------------------------------------------------------------------------- */

struct unit {
	const char *name;
	double factor;
};

/* A number and a unit of the table; a unit of "" is the one without. False: it is none. */
static bool number_of(const char *text, const struct unit *units, size_t count, double *value)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || !isfinite(number) || number < 0 || text[0] == '-' || text[0] == '+')
		return false;
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < count; i++)
		if (strcasecmp(end, units[i].name) == 0) {
			*value = number * units[i].factor;
			return true;
		}
	return false;
}

static bool duration_of(const char *text, double *ns)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }
	};

	return number_of(text, units, sizeof(units) / sizeof(units[0]), ns);
}

/* Bits have a small b: "Gb/s" and "GB/s" differ, so case counts here. */
static bool bandwidth_of(const char *text, double *gbs)
{
	static const struct unit units[] = {
		{ "", 1 },	 { "GB/s", 1 },	    { "MB/s", 1e-3 },
		{ "TB/s", 1e3 }, { "Gb/s", 0.125 }, { "Gbit/s", 0.125 }
	};
	char *end;

	(void)strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].name) == 0)
			return number_of(text, &units[i], 1, gbs) && *gbs > 0;
	return false;
}

/* ---- values by hand -------------------------------------------------------------------------- */

static void put(struct model_options *options, enum cost_parameter parameter, double value)
{
	options->value[parameter] = value;
	options->has_value[parameter] = true;
}

/* One "inside=3us" of a list. */
static bool take_link(struct model_options *options, const char *item, bool is_latency)
{
	const char *equals = strchr(item, '=');
	enum cost_link link;
	double value;

	if (equals == NULL)
		return false;
	if (strncmp(item, "inside=", 7) == 0)
		link = COST_INSIDE;
	else if (strncmp(item, "between=", 8) == 0)
		link = COST_BETWEEN;
	else
		return false;
	if (is_latency ? !duration_of(equals + 1, &value) : !bandwidth_of(equals + 1, &value))
		return false;
	put(options,
	    (enum cost_parameter)((is_latency ? COST_LATENCY_INSIDE : COST_TIME_INSIDE) + link),
	    is_latency ? value : 1 / value);
	return true;
}

static int take_links(struct model_options *options, const char *text, bool is_latency)
{
	char item[64];

	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		snprintf(item, sizeof(item), "%.*s", (int)(length < 63 ? length : 63), at);
		if (!take_link(options, item, is_latency))
			return cli_usage(&model_page, "'%s' is no %s: say %s", item,
					 is_latency ? "latency" : "bandwidth",
					 is_latency ? "inside=3us or between=15us"
						    : "inside=370GB/s or between=400Gb/s");
		at += length;
		if (*at == '\0')
			return 0;
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static int take_count(const char *name, const char *text, int32_t *count)
{
	int64_t number;

	if (text_number(text, 1, BENCH_RANKS_MAX, &number) != OK)
		return cli_usage(&model_page, "--%s: '%s' is no number from 1 to %d", name, text,
				 BENCH_RANKS_MAX);
	*count = (int32_t)number;
	return 0;
}

static int take_protocol(struct model_options *options, const char *text)
{
	static const char *const names[OP_PROTOCOLS] = { "", "LL", "LL128", "Simple" };

	if (cli_one_value(&model_page, "protocols", text) != 0)
		return CLI_EXIT_USAGE;
	for (uint8_t protocol = 1; protocol < OP_PROTOCOLS; protocol++)
		if (strcasecmp(text, names[protocol]) == 0) {
			options->protocol = protocol;
			return 0;
		}
	return cli_usage(&model_page, "--protocols: '%s' is none of LL, LL128, Simple", text);
}

static int take_algorithm(struct model_options *options, const char *text)
{
	if (cli_one_value(&model_page, "algorithms", text) != 0)
		return CLI_EXIT_USAGE;
	options->algorithm = cost_algorithm_find(text);
	if (options->algorithm != COST_ANY)
		return 0;
	return cli_usage(&model_page,
			 "--algorithms: '%s' is none of ring, tree, double-tree, direct", text);
}

static int take_file(struct model_options *options, const char *path)
{
	if (options->file_count == MODEL_FILES_MAX)
		return cli_usage(&model_page, "--from: more than %d files", MODEL_FILES_MAX);
	options->files[options->file_count++] = path;
	return 0;
}

static int take_operand(struct model_options *options, const char *text)
{
	char problem[256];

	if (options->function == 0) {
		struct bench_plan plan;

		plan_init(&plan);
		if (plan_functions(&plan, text, problem, sizeof(problem)) != 0) {
			/* "all" is for those who measure. */
			char *all = strstr(problem, " and all");

			if (all != NULL)
				*all = '\0';
			return cli_usage(&model_page, "%s", problem);
		}
		if (plan.function_count != 1)
			return cli_usage(&model_page, "'%s' is more than one function", text);
		options->function = plan.functions[0];
		return 0;
	}
	if (options->has_sizes)
		return cli_usage(&model_page, "'%s' is one operand too many", text);
	if (plan_sizes(&options->plan, text, problem, sizeof(problem)) != 0)
		return cli_usage(&model_page, "%s", problem);
	options->has_sizes = true;
	return 0;
}

static int take_mode(struct model_options *options, const char *text)
{
	if (cli_one_value(&model_page, "modes", text) != 0)
		return CLI_EXIT_USAGE;
	options->mode = (uint8_t)bench_mode_find(text);
	if (options->mode != 0)
		return 0;
	return cli_usage(&model_page,
			 "--modes: '%s' is none of blocking, back-to-back, graph, loop", text);
}

static int take_call(struct model_options *options, const char *text)
{
	double value;

	if (!duration_of(text, &value))
		return cli_usage(&model_page, "--call: '%s' is no time: say 8us", text);
	put(options, COST_CALL, value);
	return 0;
}

static int take(struct model_options *options, int found, const char *value)
{
	switch (found) {
	case CLI_OPERAND:
		return take_operand(options, value);
	case MODEL_RANKS:
		return take_count("ranks", value, &options->ranks);
	case MODEL_NODES:
		return take_count("nodes", value, &options->nodes);
	case MODEL_NICS:
		return take_count("nics", value, &options->nics);
	case MODEL_FROM:
		return take_file(options, value);
	case MODEL_MODES:
		return take_mode(options, value);
	case MODEL_LATENCY:
	case MODEL_BANDWIDTH:
		return take_links(options, value, found == MODEL_LATENCY);
	case MODEL_CALL:
		return take_call(options, value);
	case MODEL_HARDWARE:
		options->hardware = value;
		return 0;
	case MODEL_ALGORITHMS:
		return take_algorithm(options, value);
	case MODEL_PROTOCOLS:
		return take_protocol(options, value);
	default:
		options->is_json = true;
		return 0;
	}
}

static int check(const struct model_options *options)
{
	bool has_value = false;

	for (int p = COST_LATENCY_INSIDE; p < COST_PARAMETERS; p++)
		has_value = has_value || options->has_value[p];
	if (options->function == 0 || !options->has_sizes)
		return cli_usage(&model_page, "say a function and a size, like: allreduce 8G");
	if (options->ranks == 0)
		return cli_usage(&model_page, "over how many ranks? Say --ranks N");
	if (options->nodes > options->ranks)
		return cli_usage(&model_page, "%d nodes are more than %d ranks",
				 (int)options->nodes, (int)options->ranks);
	if (options->file_count == 0 && options->hardware == NULL && !has_value)
		return cli_usage(&model_page,
				 "on which machine? Say --from FILE (measured by 'ringside bench "
				 "--json'), --latency and --bandwidth, or --hardware NAME");
	return 0;
}

int model_options_read(struct model_options *options, int argc, char **argv, bool *is_over)
{
	struct cli_args args;
	int found, exit_code = 0;

	memset(options, 0, sizeof(*options));
	plan_init(&options->plan);
	cli_args_init(&args, &model_page, argc, argv);
	*is_over = false;
	while (exit_code == 0 && (found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP) {
			*is_over = true;
			return args.exit_code;
		}
		exit_code = take(options, found, args.value);
	}
	if (exit_code == 0)
		exit_code = check(options);
	*is_over = exit_code != 0;
	return exit_code;
}
