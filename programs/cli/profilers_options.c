#include "programs/cli/profilers_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/cli.h"
#include "common/text.h"
#include "programs/bench/train_read.h"
#include "programs/cli/bench_recall.h"

enum {
	OPTION_MODES = CLI_LONG_ONLY,
	OPTION_RUNS,
	OPTION_WARMUPS,
	OPTION_CELL_SECONDS,
	OPTION_LEAST_CALLS,
	OPTION_SECONDS,
	OPTION_JOB_SECONDS,
	OPTION_TRAIN,
	OPTION_TRAIN_ONLY,
	OPTION_TRAIN_RUNS,
	OPTION_TRAIN_EPOCHS,
	OPTION_TRAIN_STEPS,
	OPTION_TRAIN_BATCH,
	OPTION_TRAIN_IMAGE,
	OPTION_KEEP,
	OPTION_HTML,
	OPTION_FROM,
};

static const struct cli_option options_table[] = {
	{ 'p', "plugin", "FILE",
	  "compare this plugin, again for each: a file, 'ringside' for the one that belongs here, "
	  "or "
	  "ringside:flight, ringside:full; FILE=KIND says whose it is where its content does not: "
	  "inspector, comma, ncclsee, ringside, other; inspector:readme and inspector:default "
	  "instead of its best settings, comma:default likewise" },
	{ 'f', "functions", "LIST",
	  "what to call (default allreduce,allgather,reducescatter,broadcast,reduce)" },
	{ 's', "sizes", "LIST", "sizes of messages (default 1K,32K,1M,32M,1G)" },
	{ 't', "types", "TYPE", "datatype of the elements, one of them (default int32)" },
	{ OPTION_MODES, "modes", "LIST",
	  "how calls follow each other (default blocking,back-to-back,graph)" },
	{ 'n', "calls", "N", "measured calls of each function and size (default 200)" },
	{ OPTION_RUNS, "runs", "N", "jobs of each plugin and mode (default 5)" },
	{ OPTION_WARMUPS, "warmup", "N", "calls before those that are measured (default 5)" },
	{ OPTION_CELL_SECONDS, "seconds-per-cell", "S",
	  "make fewer calls where they take longer than this; what was cut is told" },
	{ OPTION_LEAST_CALLS, "least-calls", "N",
	  "never fewer than these because of --seconds-per-cell (default 5)" },
	{ OPTION_SECONDS, "seconds", "S",
	  "time for everything: runs that no longer fit are left out and named" },
	{ OPTION_JOB_SECONDS, "job-seconds", "S",
	  "a job that takes longer is ended, and told as one that hangs (default: ten times the "
	  "job "
	  "without a plugin, at least 60)" },
	{ OPTION_TRAIN, "train", NULL,
	  "also train DenseNet-121 on random images; needs python3 with torch" },
	{ OPTION_TRAIN_ONLY, "train-only", NULL, "nothing but the training" },
	{ OPTION_TRAIN_RUNS, "train-runs", "N",
	  "trainings of each plugin (default 3; most of their time is loading torch)" },
	{ OPTION_TRAIN_EPOCHS, "train-epochs", "N", "epochs of a training (default 5)" },
	{ OPTION_TRAIN_STEPS, "train-steps", "N", "steps of an epoch (default 20)" },
	{ OPTION_TRAIN_BATCH, "train-batch", "N", "images of a rank and step (default 16)" },
	{ OPTION_TRAIN_IMAGE, "train-image", "N",
	  "height and width of an image, 32 to 512 (default 64)" },
	{ BENCH_HOW_RANKS, "ranks", "N",
	  "start N ranks on this machine, sharing GPUs where there are fewer (default: one for "
	  "each "
	  "GPU, at least 2)" },
	{ BENCH_HOW_NCCL, "nccl", "FILE",
	  "this libnccl.so.2 instead of the one that the loader finds; not for --train" },
	{ BENCH_HOW_NO_MPS, "no-mps", NULL,
	  "ranks that share a GPU: do not start MPS; they take turns" },
	{ OPTION_KEEP, "keep", "DIR",
	  "keep recordings, results and logs of all jobs here: a new directory" },
	{ OPTION_HTML, "html", "FILE", "write a page with tables and figures, too" },
	{ 'o', "output", "FILE",
	  "write this file, too: .json is for --from and for programs, .html the page, others are "
	  "text; may be given several times" },
	CLI_OPTION_JSON,
	{ OPTION_FROM, "from", "FILE",
	  "show a comparison from its JSON once more; nothing is run" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bench profilers --plugin ringside --ranks 4",
	  "what the recorder sees and what it costs" },
	{ "ringside bench profilers --plugin ringside --plugin libnccl-profiler-inspector.so "
	  "--html profilers.html",
	  "against another plugin, with figures" },
	{ "ringside bench profilers --plugin ringside --seconds 300 --seconds-per-cell 1",
	  "in five minutes" },
	{ "ringside bench profilers --from profilers.json --html profilers.html",
	  "look again at what --output wrote" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "bench profilers",
	.operands = "",
	.about = "Compares profiler plugins of NCCL, each with its best settings, and with none: "
		 "how "
		 "many of the calls that were made each one recorded, how true the times are that "
		 "it reports, what it costs. Jobs with and without plugins take turns, in another "
		 "order in each run. A plugin that crashes or hangs its job is a result, not an "
		 "error.\n"
		 "The Ringside plugin's files, NCCL Inspector's and CoMMA's logs and ncclsee's "
		 "tables can be read; of other plugins the cost alone is known. docs/PROFILERS.md "
		 "explains every figure.\n",
	.options = options_table,
	.examples = examples,
};

/* ---- single values ---------------------------------------------------------------------------- */

static int take_number(const char *name, const char *text, int64_t least, int64_t most,
		       uint32_t *number)
{
	int64_t value;

	if (text_number(text, least, most, &value) != OK)
		return cli_usage(&page, "--%s: '%s' is no number from %lld to %lld", name, text,
				 (long long)least, (long long)most);
	*number = (uint32_t)value;
	return 0;
}

static int take_seconds(const char *name, const char *text, double *seconds)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(value) || value <= 0 || value > 1e6)
		return cli_usage(&page, "--%s: '%s' is no number of seconds", name, text);
	*seconds = value;
	return 0;
}

static struct profilers_variant *find_label(struct profilers_request *request, const char *label)
{
	for (size_t i = 0; i < request->variant_count; i++)
		if (strcmp(request->variants[i].label, label) == 0)
			return &request->variants[i];
	return NULL;
}

/* Two of a kind are called by their files; one file twice has a number. */
static void make_label_unique(struct profilers_request *request, struct profilers_variant *variant)
{
	struct profilers_variant *same = find_label(request, variant->label);
	char label[sizeof(variant->label)];

	if (same) {
		profilers_variant_name_by_file(same);
		profilers_variant_name_by_file(variant);
	}
	text_copy(label, sizeof(label), variant->label);
	for (unsigned int i = 2; find_label(request, variant->label); i++)
		text_format(variant->label, sizeof(variant->label), "%.58s-%u", label, i);
}

static int take_plugin(struct profilers_request *request, const char *text)
{
	struct profilers_variant *variant = &request->variants[request->variant_count];
	char problem[VARIANT_PATH_BYTES + 200];

	if (request->variant_count == PROFILERS_PLUGINS_MAX)
		return cli_usage(&page, "--plugin: %d of them at the most",
				 PROFILERS_PLUGINS_MAX - 1);
	if (profilers_variant_take(variant, text, problem, sizeof(problem)) != 0)
		return cli_usage(&page, "--plugin: %s", problem);
	make_label_unique(request, variant);
	request->variant_count++;
	return 0;
}

/* ---- options ---------------------------------------------------------------------------------- */

typedef int (*plan_list_fn)(struct bench_plan *plan, const char *text, char *problem, size_t size);

static int take_list(struct profilers_request *request, const char *name, plan_list_fn take,
		     const char *text)
{
	char problem[512];

	if (take(&request->plan, text, problem, sizeof(problem)) != 0)
		return cli_usage(&page, "--%s: %s", name, problem);
	return 0;
}

/* -1: it is none of these. */
static int take_measuring(struct profilers_request *request, int found, const char *value)
{
	double seconds = 0;
	int failed;

	switch (found) {
	case 'p':
		return take_plugin(request, value);
	case 'f':
		return take_list(request, "functions", plan_functions, value);
	case 's':
		return take_list(request, "sizes", plan_sizes, value);
	case 't':
		/* Tables have no column for it. */
		return cli_one_value(&page, "types", value) != 0
			       ? CLI_EXIT_USAGE
			       : take_list(request, "types", plan_datatypes, value);
	case OPTION_MODES:
		return take_list(request, "modes", plan_modes, value);
	case 'n':
		return take_number("calls", value, 1, 1000000, &request->plan.calls);
	case OPTION_RUNS:
		return take_number("runs", value, 1, PROFILERS_RUNS_MAX, &request->runs);
	case OPTION_WARMUPS:
		return take_number("warmup", value, 0, 1000000, &request->plan.warmups);
	case OPTION_CELL_SECONDS:
		return take_seconds("seconds-per-cell", value, &request->plan.seconds);
	case OPTION_LEAST_CALLS:
		return take_number("least-calls", value, 1, 1000000, &request->plan.least_calls);
	case OPTION_SECONDS:
		return take_seconds("seconds", value, &request->seconds);
	case OPTION_JOB_SECONDS:
		failed = take_seconds("job-seconds", value, &seconds);
		request->job_seconds = (int)ceil(seconds);
		return failed;
	default:
		return -1;
	}
}

static int take_training(struct profilers_request *request, int found, const char *value)
{
	switch (found) {
	case OPTION_TRAIN:
		request->is_trained = true;
		return 0;
	case OPTION_TRAIN_ONLY:
		request->is_trained = true;
		request->is_measured = false;
		return 0;
	case OPTION_TRAIN_RUNS:
		return take_number("train-runs", value, 1, PROFILERS_RUNS_MAX,
				   &request->train_runs);
	case OPTION_TRAIN_EPOCHS:
		return take_number("train-epochs", value, 1, TRAIN_EPOCHS_MAX,
				   &request->train_epochs);
	case OPTION_TRAIN_STEPS:
		return take_number("train-steps", value, 1, 1000000, &request->train_steps);
	case OPTION_TRAIN_BATCH:
		return take_number("train-batch", value, 2, 65536, &request->train_batch);
	case OPTION_TRAIN_IMAGE:
		return take_number("train-image", value, 32, 512, &request->train_image);
	default:
		return bench_how_take(&request->how, &page, found, value);
	}
}

static int take(struct profilers_options *options, int found, const char *value)
{
	int failed;

	switch (found) {
	case CLI_OPERAND:
		return cli_usage(&page, "'%s': plugins are named with --plugin", value);
	case 'j':
		options->is_json = true;
		return 0;
	case 'o':
		if (options->file_count == PROFILERS_FILES_MAX)
			return cli_usage(&page, "--output: %d files at the most",
					 PROFILERS_FILES_MAX);
		options->files[options->file_count++] = value;
		return 0;
	case OPTION_HTML:
		options->html = value;
		return 0;
	case OPTION_FROM:
		options->from = value;
		return 0;
	case OPTION_KEEP:
		options->request.keep = value;
		return 0;
	default:
		options->measuring = found;
		failed = take_measuring(&options->request, found, value);
		return failed == -1 ? take_training(&options->request, found, value) : failed;
	}
}

static int check(const struct profilers_options *options)
{
	const struct profilers_request *request = &options->request;

	for (size_t i = 0; i < options->file_count; i++)
		if (options->files[i][0] == '\0' || strcmp(options->files[i], "-") == 0)
			return cli_usage(&page, "'%s' is no name of a file", options->files[i]);
	if ((options->html && (options->html[0] == '\0' || strcmp(options->html, "-") == 0)) ||
	    (request->keep && request->keep[0] == '\0'))
		return cli_usage(&page, "'%s' is no name of a file",
				 options->html ? options->html : "");
	if (options->from && (request->variant_count > 1 || request->keep || request->is_trained))
		return cli_usage(&page, "--from runs nothing: leave --plugin, --train and --keep "
					"out");
	if (bench_recall_check(&page, options->from, options->measuring) != 0)
		return CLI_EXIT_USAGE;
	if (options->from == NULL && request->variant_count == 1)
		return cli_usage(&page,
				 "which plugins shall be compared? --plugin ringside is one");
	for (size_t i = 0; i < request->plan.mode_count; i++)
		if (request->plan.modes[i] == BENCH_LOOP)
			return cli_usage(&page, "--modes: loop has no single calls to compare");
	return 0;
}

/* What the paper did, and the two modes that it left out. */
static void standard(struct profilers_request *request)
{
	struct bench_plan *plan = &request->plan;
	char problem[200];

	bench_how_init(&request->how);
	plan_init(plan);
	(void)plan_functions(plan, "allreduce,allgather,reducescatter,broadcast,reduce", problem,
			     sizeof(problem));
	(void)plan_sizes(plan, "1K,32K,1M,32M,1G", problem, sizeof(problem));
	(void)plan_datatypes(plan, "int32", problem, sizeof(problem));
	(void)plan_modes(plan, "blocking,back-to-back,graph", problem, sizeof(problem));
	plan->calls = 200;
	plan->seconds = 0;
	plan->least_calls = 5;
	plan->warmups = 5;
	plan->places = PLAN_OUT_OF_PLACE;
	/* Nothing that a plugin would have to record beside what is compared. */
	plan->align = PLAN_ALIGN_HUB;
	plan->is_checked = false;
	request->runs = 5;
	request->is_measured = true;
	request->train_runs = 3;
	request->train_epochs = 5;
	request->train_steps = 20;
	request->train_batch = 16;
	request->train_image = 64;
	profilers_variant_none(&request->variants[0]);
	request->variant_count = 1;
}

bool profilers_options_take(struct profilers_options *options, int argc, char **argv,
			    int *exit_code)
{
	struct cli_args args;
	int found;

	memset(options, 0, sizeof(*options));
	standard(&options->request);
	cli_args_init(&args, &page, argc, argv);
	*exit_code = 0;
	while (*exit_code == 0 && (found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP) {
			*exit_code = args.exit_code;
			return false;
		}
		*exit_code = take(options, found, args.value);
	}
	if (*exit_code == 0)
		*exit_code = check(options);
	return *exit_code == 0;
}
