/*
 * `ringside bench profilers`: options, comparing, output.
 *
 * Also has the settings with which each plugin records as much as it can. Sources: Inspector's README and the
 * defaults in inspector.cc (NCCL 2.30), CoMMA's README and its src/config.rs; docs/BENCH.md explains the
 * choices.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_command.h"
#include "bench/profilers.h"
#include "cli/cli.h"
#include "common/attributes.h"
#include "common/file.h"
#include "common/text.h"

/* The command line of `ringside bench profilers`. */

struct profilers_options {
	struct profilers_request request;
	const char *from;      /* show this earlier comparison; NULL: make one */
	const char *measuring; /* an option that says what or how to run; NULL: none was given */
	struct bench_outputs files;
};

/* The settings of each plugin; the first is the default. */
static const struct {
	enum profilers_kind kind;
	const char *names[5];
} variant_settings[] = {
	{ PROFILERS_RINGSIDE, { "trace", "flight", "full", "cuda-events", NULL } },
	{ PROFILERS_INSPECTOR, { "best", "readme", "default", NULL } },
	{ PROFILERS_COMMA, { "best", "default", NULL } },
};

static const char *setting_find(enum profilers_kind kind, const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(variant_settings); i++)
		for (size_t j = 0; variant_settings[i].kind == kind && variant_settings[i].names[j];
		     j++)
			if (name[0] == '\0' || strcmp(variant_settings[i].names[j], name) == 0)
				return variant_settings[i].names[j];
	return name[0] == '\0' ? "" : NULL;
}

static bool setting_is_standard(const struct profilers_variant *variant)
{
	return strcmp(variant->setting, setting_find(variant->kind, "")) == 0;
}

/* ---- which kind ------------------------------------------------------------------------------ */

/* Strings found only in this plugin's library. Ringside's library mentions Inspector, too, so it comes first. */
static const struct {
	const char *word;
	enum profilers_kind kind;
} marks[] = {
	{ "RINGSIDE_DISABLE", PROFILERS_RINGSIDE },
	{ "NCCL_INSPECTOR_DUMP_DIR", PROFILERS_INSPECTOR },
	{ "NCCL_TELEMETRY_MODE", PROFILERS_COMMA },
	{ "ncclsee", PROFILERS_NCCLSEE },
};

static enum profilers_kind kind_guess(const void *bytes, size_t length)
{
	for (size_t i = 0; i < ARRAY_LENGTH(marks); i++)
		if (memmem(bytes, length, marks[i].word, strlen(marks[i].word)))
			return marks[i].kind;
	return PROFILERS_UNKNOWN;
}

/* Checks that it is a plugin and identifies it. */
static int look_into(struct profilers_variant *variant, char *problem, size_t size)
{
	int fd = file_open(AT_FDCWD, variant->path, true);
	struct stat st = { .st_size = 0 };
	bool is_plugin = false;
	void *bytes;

	if (fd == -1 || fstat(fd, &st) == -1) {
		text_format(problem, size, "cannot read the plugin '%s': %s", variant->path,
			    strerror(errno));
		if (fd != -1)
			close(fd);
		return -1;
	}
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes != MAP_FAILED) {
		is_plugin = memmem(bytes, (size_t)st.st_size, "ncclProfiler_v", 14) != NULL;
		if (variant->kind == PROFILERS_KINDS)
			variant->kind = kind_guess(bytes, (size_t)st.st_size);
		munmap(bytes, (size_t)st.st_size);
	}
	if (is_plugin)
		return 0;
	return bench_problem(problem, size,
			     "'%s' is not a profiler plugin: it exports none of ncclProfiler_v1 to "
			     "ncclProfiler_v7",
			     variant->path);
}

/* ---- the word on the command line ------------------------------------------------------------ */

/* The part after the last '=' if that is a kind: file names can contain '=', too. */
static int split_kind(struct profilers_variant *variant, char *text, char **setting, char *problem,
		      size_t size)
{
	char *equals = strrchr(text, '='), *colon;

	variant->kind = PROFILERS_KINDS;
	*setting = "";
	if (equals == NULL || strchr(equals, '/'))
		return 0;
	*equals++ = '\0';
	colon = strchr(equals, ':');
	if (colon) {
		*colon = '\0';
		*setting = colon + 1;
	}
	variant->kind =
		strcmp(equals, "other") == 0 ? PROFILERS_UNKNOWN : profilers_kind_find(equals);
	if (variant->kind != PROFILERS_KINDS && variant->kind != PROFILERS_NONE)
		return 0;
	return bench_problem(
		problem, size,
		"'%s': unknown kind of plugin; use ringside, inspector, comma, ncclsee or other",
		equals);
}

static int find_own(struct profilers_variant *variant, char *problem, size_t size)
{
	char looked[VARIANT_PATH_BYTES];

	variant->kind = PROFILERS_RINGSIDE;
	if (cli_plugin_find(variant->path, sizeof(variant->path), looked, sizeof(looked)))
		return 0;
	return bench_problem(problem, size, "%s not found in: %s", CLI_PLUGIN_FILE, looked);
}

static int find_file(struct profilers_variant *variant, const char *file, char *problem,
		     size_t size)
{
	char whole[PATH_MAX];

	if (realpath(file, whole) == NULL)
		return bench_problem(problem, size, "cannot read the plugin '%s': %s", file,
				     strerror(errno));
	text_copy(variant->path, sizeof(variant->path), whole);
	return look_into(variant, problem, size);
}

/* "inspector", "inspector:readme"; the setting only if it is not the default. */
static void label_set(struct profilers_variant *variant, const char *name, size_t length)
{
	bool is_standard = setting_is_standard(variant);

	text_format(variant->label, sizeof(variant->label), "%.*s%s%s", (int)length, name,
		    is_standard ? "" : ":", is_standard ? "" : variant->setting);
}

/* Uses the file name as label, if there are several plugins of a kind. */
static void profilers_variant_name_by_file(struct profilers_variant *variant)
{
	static const char *const beginnings[] = { "lib", "nccl-profiler-" };
	const char *slash = strrchr(variant->path, '/');
	const char *name = slash ? slash + 1 : variant->path;
	size_t length;

	for (size_t i = 0; i < ARRAY_LENGTH(beginnings); i++) {
		length = strlen(beginnings[i]);
		if (strncmp(name, beginnings[i], length) == 0 && name[length] != '\0')
			name += length;
	}
	length = strlen(name);
	if (length > 3 && strcmp(name + length - 3, ".so") == 0)
		length -= 3;
	label_set(variant, name, length);
}

static void label_make(struct profilers_variant *variant)
{
	const char *kind = profilers_kind_name(variant->kind);

	if (variant->kind == PROFILERS_UNKNOWN)
		profilers_variant_name_by_file(variant);
	else
		label_set(variant, kind, strlen(kind));
}

/*
 * "FILE", "FILE=KIND", "FILE=KIND:SETTING", "ringside", "ringside:SETTING". The kind is guessed from the file's
 * content if not given. 0, or -1 and *problem.
 */
static int profilers_variant_take(struct profilers_variant *variant, const char *text,
				  char *problem, size_t problem_size)
{
	char word[VARIANT_PATH_BYTES], *setting = "";
	int failed;

	memset(variant, 0, sizeof(*variant));
	if (!text_copy(word, sizeof(word), text))
		return bench_problem(problem, problem_size, "the plugin's path is too long");
	if (strcmp(word, "ringside") == 0 || strncmp(word, "ringside:", 9) == 0) {
		setting = word[8] == ':' ? word + 9 : "";
		failed = find_own(variant, problem, problem_size);
	} else {
		failed = split_kind(variant, word, &setting, problem, problem_size) ||
			 find_file(variant, word, problem, problem_size);
	}
	if (failed)
		return -1;
	variant->setting = setting_find(variant->kind, setting);
	if (variant->setting == NULL)
		return bench_problem(problem, problem_size, "%s has no setting '%s'",
				     profilers_kind_name(variant->kind), setting);
	label_make(variant);
	return 0;
}

/* The variant without a plugin. */
static void profilers_variant_none(struct profilers_variant *variant)
{
	memset(variant, 0, sizeof(*variant));
	variant->kind = PROFILERS_NONE;
	variant->setting = "";
	text_copy(variant->label, sizeof(variant->label), "none");
}

/* %o the job's directory, %r the directory for regions. */
static const struct {
	enum profilers_kind kind;
	const char *setting; /* NULL: all */
	const char *name;
	const char *value;
} plugin_variables[] = {
	{ PROFILERS_RINGSIDE, "trace", "RINGSIDE_MODE", "trace" },
	{ PROFILERS_RINGSIDE, "flight", "RINGSIDE_MODE", "flight" },
	{ PROFILERS_RINGSIDE, "full", "RINGSIDE_MODE", "full" },
	{ PROFILERS_RINGSIDE, "cuda-events", "RINGSIDE_MODE", "trace" },
	{ PROFILERS_RINGSIDE, NULL, "RINGSIDE_DIR", "%o" },
	{ PROFILERS_RINGSIDE, NULL, "RINGSIDE_SHM", "%r" },
	/* As the other plugins do by default. They also time all replays of graphs, CUDA events some. */
	{ PROFILERS_RINGSIDE, "trace", "RINGSIDE_TIMES", "kernel" },
	{ PROFILERS_RINGSIDE, "flight", "RINGSIDE_TIMES", "kernel" },
	{ PROFILERS_RINGSIDE, "full", "RINGSIDE_TIMES", "kernel" },
	{ PROFILERS_RINGSIDE, "cuda-events", "RINGSIDE_TIMES", "all" },
	{ PROFILERS_INSPECTOR, NULL, "NCCL_INSPECTOR_ENABLE", "1" },
	{ PROFILERS_INSPECTOR, NULL, "NCCL_INSPECTOR_DUMP_DIR", "%o" },
	/* By default it writes nothing. */
	{ PROFILERS_INSPECTOR, "readme", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS",
	  "500" },
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "500" },
	/* By default it skips operations below 8 KiB and those without GPU timestamps. */
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", "0" },
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", "0" },
	/* A larger ring is overwritten later. */
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_DUMP_COLL_RING_SIZE", "65536" },
	{ PROFILERS_INSPECTOR, "best", "NCCL_INSPECTOR_DUMP_P2P_RING_SIZE", "65536" },
	{ PROFILERS_COMMA, NULL, "NCCL_PROFILER_LATENCY_FILE", "%o/latency-%%p.txt" },
	/* Google's own service, which is not available. */
	{ PROFILERS_COMMA, NULL, "NCCL_PROFILER_USE_GPUVIZ", "false" },
	/* By default it skips small collectives, those of NVLS, and nine of ten receives. */
	{ PROFILERS_COMMA, "best", "NCCL_PROFILER_SKIP_SMALL_COLLECTIVE", "false" },
	{ PROFILERS_COMMA, "best", "NCCL_PROFILER_SKIP_NVLS", "false" },
	{ PROFILERS_COMMA, "best", "NCCL_PROFILER_P2P_RECV_SAMPLE_RATE", "1.0" },
};

static bool is_set_for(const struct profilers_variant *variant, size_t i)
{
	return plugin_variables[i].kind == variant->kind &&
	       (plugin_variables[i].setting == NULL ||
		strcmp(plugin_variables[i].setting, variant->setting) == 0);
}

static void variable_expand(char *to, size_t size, const char *value,
			    const struct profilers_place *place)
{
	to[0] = '\0';
	for (; *value != '\0'; value++) {
		char letter = value[0] == '%' && value[1] != '\0' ? *++value : '\0';
		const char *part = letter == 'o'   ? place->output
				   : letter == 'r' ? place->regions
						   : NULL;

		if (part)
			text_append(to, size, "%s", part);
		else
			text_append(to, size, "%c", *value);
	}
}

/* "NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=DIR ...", for display; "" for none. */
static void profilers_variant_words(const struct profilers_variant *variant, char *words,
				    size_t size)
{
	static const struct profilers_place place = { "DIR", "SHM" };
	char value[VARIANT_PATH_BYTES];

	words[0] = '\0';
	for (size_t i = 0; i < ARRAY_LENGTH(plugin_variables); i++) {
		if (!is_set_for(variant, i))
			continue;
		variable_expand(value, sizeof(value), plugin_variables[i].value, &place);
		text_append(words, size, "%s%s=%s", words[0] ? " " : "", plugin_variables[i].name,
			    value);
	}
}

/* ---- the list -------------------------------------------------------------------------------- */

static const char *variable_keep(struct profilers_variables *variables, const char *text)
{
	char *at = variables->text + variables->used;
	size_t bytes = strlen(text) + 1;

	if (bytes > sizeof(variables->text) - variables->used)
		return NULL;
	memcpy(at, text, bytes);
	variables->used += bytes;
	return at;
}

void profilers_variables_add(struct profilers_variables *variables, const char *name,
			     const char *value)
{
	struct bench_variable variable = { variable_keep(variables, name), NULL };

	if (value)
		variable.value = variable_keep(variables, value);
	if (variable.name == NULL || (value && variable.value == NULL) ||
	    variables->count + 1 >= VARIANT_VARIABLES) {
		variables->is_full = true;
		return;
	}
	variables->list[variables->count++] = variable;
	variables->list[variables->count] = (struct bench_variable){ NULL, NULL };
}

/* The profilers' variables; the benchmark's own are kept. */
static bool is_profilers(const char *name)
{
	static const char *const prefixes[] = { "RINGSIDE_", "NCCL_INSPECTOR_", "NCCL_PROFILER_",
						"NCCL_TELEMETRY_", "NCCL_PROFILE_" };
	static const char *const ours[] = { "RINGSIDE_CUDA", "RINGSIDE_NCCL", "RINGSIDE_BENCH_" };

	for (size_t i = 0; i < ARRAY_LENGTH(ours); i++)
		if (strncmp(name, ours[i], strlen(ours[i])) == 0)
			return false;
	for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

void profilers_variant_variables(const struct profilers_variant *variant,
				 const struct profilers_place *place,
				 struct profilers_variables *variables)
{
	char name[256], value[VARIANT_PATH_BYTES];

	variables->count = variables->used = 0;
	variables->is_full = false;
	variables->list[0] = (struct bench_variable){ NULL, NULL };
	for (char **at = environ; *at; at++) {
		text_format(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
		if (is_profilers(name))
			profilers_variables_add(variables, name, NULL);
	}
	profilers_variables_add(variables, "NCCL_PROFILER_PLUGIN",
				variant->path[0] ? variant->path : "none");
	for (size_t i = 0; i < ARRAY_LENGTH(plugin_variables); i++) {
		if (!is_set_for(variant, i))
			continue;
		variable_expand(value, sizeof(value), plugin_variables[i].value, place);
		profilers_variables_add(variables, plugin_variables[i].name, value);
	}
}

/* ---- single values ---------------------------------------------------------------------------- */

static int take_number(const struct cli_said *said)
{
	int64_t value;

	if (text_number(said->value, said->option->least, said->option->most, &value) != OK)
		return cli_usage(said->page, "--%s '%s': expected a number from %lld to %lld",
				 said->option->name, said->value, (long long)said->option->least,
				 (long long)said->option->most);
	*(uint32_t *)said->target = (uint32_t)value;
	return 0;
}

static int take_seconds(const struct cli_said *said)
{
	char *end;
	double value = strtod(said->value, &end);

	if (end == said->value || *end != '\0' || !isfinite(value) || value <= 0 || value > 1e6)
		return cli_usage(said->page, "--%s '%s': expected a number of seconds",
				 said->option->name, said->value);
	*(double *)said->target = value;
	return 0;
}

static struct profilers_variant *find_label(struct profilers_request *request, const char *label)
{
	for (size_t i = 0; i < request->variant_count; i++)
		if (strcmp(request->variants[i].label, label) == 0)
			return &request->variants[i];
	return NULL;
}

/* Two plugins of a kind are labelled by their files; the same file twice gets a number. */
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

static int take_plugin(const struct cli_said *said)
{
	struct profilers_request *request = said->target;
	struct profilers_variant *variant = &request->variants[request->variant_count];
	char problem[VARIANT_PATH_BYTES + 200];

	if (request->variant_count == PROFILERS_PLUGINS_MAX)
		return cli_usage(said->page, "--plugin: at most %d plugins",
				 PROFILERS_PLUGINS_MAX - 1);
	if (profilers_variant_take(variant, said->value, problem, sizeof(problem)) != 0)
		return cli_usage(said->page, "--plugin: %s", problem);
	make_label_unique(request, variant);
	request->variant_count++;
	return 0;
}

/* ---- options ---------------------------------------------------------------------------------- */

static int take_list(const struct cli_said *said)
{
	struct profilers_request *request = said->target;
	int (*take)(struct bench_plan *, const char *, char *, size_t) = plan_modes;
	char problem[512];

	if (said->option->letter == 'f')
		take = plan_functions;
	else if (said->option->letter == 's')
		take = plan_sizes;
	else if (said->option->letter == 't')
		take = plan_datatypes;
	/* Tables have no column for the type. */
	if (take == plan_datatypes && cli_one_value(said->page, "types", said->value) != 0)
		return CLI_EXIT_USAGE;
	if (take(&request->plan, said->value, problem, sizeof(problem)) != 0)
		return cli_usage(said->page, "--%s: %s", said->option->name, problem);
	return 0;
}

static int take_job_seconds(const struct cli_said *said)
{
	struct cli_said whole = *said;
	double seconds = 0;
	int failed;

	whole.target = &seconds;
	failed = take_seconds(&whole);
	*(int *)said->target = (int)ceil(seconds);
	return failed;
}

static int take_train_only(const struct cli_said *said)
{
	struct profilers_request *request = said->target;

	request->is_trained = true;
	request->is_measured = false;
	return 0;
}

static int take_operand(const struct cli_said *said)
{
	return cli_usage(said->page, "'%s': use --plugin to name plugins", said->value);
}

#define PROFILERS_NUMBER(field, from, to)                                                     \
	.kind = CLI_KIND_CALL, .take = take_number,                                           \
	.target = CLI_AT(struct profilers_options, request.field, uint32_t), .least = (from), \
	.most = (to)

static const struct cli_option options_table[] = {
	{ 'p', "plugin", "FILE",
	  "compare this plugin; can be repeated. A file, 'ringside' for the one installed with "
	  "this program, or ringside:flight, ringside:full, ringside:cuda-events; FILE=KIND if "
	  "the kind is not recognized: inspector, comma, ncclsee, ringside, other; "
	  "inspector:readme, "
	  "inspector:default or comma:default instead of the best settings",
	  CLI_CALL(struct profilers_options, request, take_plugin) },
	{ 'f', "functions", "LIST",
	  "operations to run (default allreduce,allgather,reducescatter,broadcast,reduce)",
	  CLI_CALL(struct profilers_options, request, take_list) },
	{ 's', "sizes", "LIST", "message sizes (default 1K,32K,1M,32M,1G)",
	  CLI_CALL(struct profilers_options, request, take_list) },
	{ 't', "types", "TYPE", "datatype of the elements (default int32)",
	  CLI_CALL(struct profilers_options, request, take_list) },
	{ 0, "modes", "LIST", "call modes (default blocking,back-to-back,graph)",
	  CLI_CALL(struct profilers_options, request, take_list) },
	{ 'n', "calls", "N", "measured calls per operation and size (default 200)",
	  PROFILERS_NUMBER(plan.calls, 1, 1000000) },
	{ 0, "runs", "N", "jobs per plugin and mode (default 5)",
	  PROFILERS_NUMBER(runs, 1, PROFILERS_RUNS_MAX) },
	{ 0, "warmup", "N", "warm-up calls before the measured ones (default 5)",
	  PROFILERS_NUMBER(plan.warmups, 0, 1000000) },
	{ 0, "seconds-per-cell", "S",
	  "make fewer calls if they take longer than this; reductions are reported",
	  CLI_CALL(struct profilers_options, request.plan.seconds, take_seconds) },
	{ 0, "least-calls", "N", "minimum number of calls with --seconds-per-cell (default 5)",
	  PROFILERS_NUMBER(plan.least_calls, 1, 1000000) },
	{ 0, "seconds", "S", "total time; runs that do not fit are skipped and listed",
	  CLI_CALL(struct profilers_options, request.seconds, take_seconds) },
	{ 0, "job-seconds", "S",
	  "kill a job that takes longer and report it as hung (default: 10x the job without a "
	  "plugin, at least 60)",
	  CLI_CALL(struct profilers_options, request.job_seconds, take_job_seconds) },
	{ 0, "train", NULL, "also train DenseNet-121 on random images; needs python3 with torch",
	  CLI_FLAG(struct profilers_options, request.is_trained) },
	{ 0, "train-only", NULL, "only run the training",
	  CLI_CALL(struct profilers_options, request, take_train_only) },
	{ 0, "train-runs", "N",
	  "training runs per plugin (default 3; most of their time is loading torch)",
	  PROFILERS_NUMBER(train_runs, 1, PROFILERS_RUNS_MAX) },
	{ 0, "train-epochs", "N", "epochs per training (default 5)",
	  PROFILERS_NUMBER(train_epochs, 1, TRAIN_EPOCHS_MAX) },
	{ 0, "train-steps", "N", "steps per epoch (default 20)",
	  PROFILERS_NUMBER(train_steps, 1, 1000000) },
	{ 0, "train-batch", "N", "images per rank and step (default 16)",
	  PROFILERS_NUMBER(train_batch, 2, 65536) },
	{ 0, "train-image", "N", "height and width of an image, 32 to 512 (default 64)",
	  PROFILERS_NUMBER(train_image, 32, 512) },
	{ 'R', "ranks", "N",
	  "start N ranks on this host, sharing GPUs if there are fewer (default: one per GPU, at "
	  "least 2)",
	  CLI_INT(struct profilers_options, request.how.ranks, 1, BENCH_HOW_RANKS_MAX) },
	{ 0, "nccl", "FILE",
	  "load this libnccl.so.2 instead of the default one; not used for --train",
	  CLI_TEXT(struct profilers_options, request.how.nccl) },
	{ 0, "no-mps", NULL, "do not start MPS for ranks that share a GPU",
	  CLI_CLEAR(struct profilers_options, request.how.is_mps_wanted) },
	{ 0, "keep", "DIR", "keep recordings, results and logs of all jobs in this new directory",
	  CLI_TEXT(struct profilers_options, request.keep), .is_view = true },
	{ 0, "html", "FILE", "also write a page with tables and charts",
	  CLI_CALL(struct profilers_options, files, bench_outputs_take_html), .is_view = true },
	BENCH_OUTPUTS_OPTION(struct profilers_options, ".json (for --from), .html (a page)",
			     bench_outputs_take_page),
	BENCH_OPTION_JSON(struct profilers_options),
	{ 0, "from", "FILE", "show an earlier comparison from its JSON; nothing is run",
	  CLI_TEXT(struct profilers_options, from), .is_view = true },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside bench profilers --plugin ringside --ranks 4",
	  "completeness and overhead of the Ringside plugin" },
	{ "ringside bench profilers --plugin ringside --plugin libnccl-profiler-inspector.so "
	  "--html profilers.html",
	  "compared with another plugin, with charts" },
	{ "ringside bench profilers --plugin ringside --seconds 300 --seconds-per-cell 1",
	  "limited to five minutes" },
	{ "ringside bench profilers --from profilers.json --html profilers.html",
	  "show an earlier comparison" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "bench profilers",
	.operands = "",
	.about = "Compares NCCL profiler plugins, each with its best settings, with each other and "
		 "with no plugin: the share of calls that each one recorded, the accuracy of the "
		 "times it reports, and its overhead. Jobs with and without plugins alternate, in "
		 "a different order in each run. A plugin that crashes or hangs its job is a "
		 "result, not an error.\n"
		 "Reads recordings of the Ringside plugin, logs of NCCL Inspector and CoMMA, and "
		 "ncclsee's tables; of other plugins only the overhead is measured. "
		 "docs/BENCH.md explains every figure.\n",
	.options = options_table,
	.operand = take_operand,
	.work = offsetof(struct profilers_options, measuring),
	.examples = examples,
};

static int profilers_check_options(const struct profilers_options *options)
{
	const struct profilers_request *request = &options->request;

	if (request->keep && request->keep[0] == '\0')
		return cli_usage(&page, "--keep '': empty directory name");
	if (options->from && (request->variant_count > 1 || request->keep || request->is_trained))
		return cli_usage(&page, "--from runs nothing: omit --plugin, --train and --keep");
	if (bench_recall_check(&page, options->from, options->measuring) != 0)
		return CLI_EXIT_USAGE;
	if (options->from == NULL && request->variant_count == 1)
		return cli_usage(&page, "no plugin given: use e.g. --plugin ringside");
	for (size_t i = 0; i < request->plan.mode_count; i++)
		if (request->plan.modes[i] == BENCH_LOOP)
			return cli_usage(&page, "--modes: loop does not time single calls");
	return 0;
}

/* As in the paper, plus the two modes it does not have. */
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
	/* No extra operations that a plugin would record in addition to the compared ones. */
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

/* False: return *exit_code after help or an error message. */
static bool profilers_options_take(struct profilers_options *options, int argc, char **argv,
				   int *exit_code)
{
	memset(options, 0, sizeof(*options));
	standard(&options->request);
	*exit_code = cli_parse(&page, options, argc, argv);
	if (*exit_code != CLI_GO_ON)
		return false;
	*exit_code = profilers_check_options(options);
	return *exit_code == 0;
}

enum { FROM_BYTES_MAX = 1 << 30, SETTINGS_BYTES = 1024, NOTE_WORDS_BYTES = 160 };

/* ---- showing ---------------------------------------------------------------------------------- */

static enum status profilers_write(const void *context, enum bench_output_kind kind,
				   unsigned int width, struct sink *sink)
{
	if (kind == BENCH_OUTPUT_JSON)
		return profilers_json_write(sink, context);
	if (kind == BENCH_OUTPUT_HTML)
		return profilers_html_write(sink, context);
	return profilers_text_write(sink, context, width);
}

/* The results took long to get: write every output that can be written. */
static int show_all(const struct profilers_options *options,
		    const struct profilers_comparison *comparison)
{
	return bench_outputs_write(&options->files, profilers_write, comparison, CLI_EXIT_DONE);
}

/* ---- comparing -------------------------------------------------------------------------------- */

/* A note has room for a few variables: split the list into several notes. */
static void tell_settings(struct profilers *profilers, const struct profilers_variant *variant)
{
	char settings[SETTINGS_BYTES], *at = settings;

	profilers_variant_words(variant, settings, sizeof(settings));
	while (*at != '\0') {
		size_t length = strlen(at);
		const char *space;

		while (length > NOTE_WORDS_BYTES && (space = memrchr(at, ' ', length)) != NULL)
			length = (size_t)(space - at);
		profilers_note(profilers, "settings of %s: %s%.*s", variant->label,
			       at == settings ? "" : "also ", (int)length, at);
		at += length + (at[length] == ' ');
	}
}

static int tell_plugins(struct profilers *profilers, struct profilers_request *request)
{
	for (size_t i = 1; i < request->variant_count; i++) {
		struct profilers_variant *variant = &request->variants[i];

		variant->number =
			profilers_plugin(profilers, variant->label, variant->path, variant->kind);
		if (variant->number == 0)
			return cli_error("too many plugins");
		tell_settings(profilers, variant);
	}
	return 0;
}

static int profilers_compare(struct profilers_options *options, struct profilers_session *session,
			     struct profilers_comparison *comparison)
{
	struct profilers_request *request = &options->request;
	/* Do not measure for minutes and then fail to write a file. */
	int failed = bench_outputs_check(&options->files);

	if (!failed)
		failed = tell_plugins(session->profilers, request);
	if (failed)
		return failed;
	failed = profilers_work_open(&session->work, request->keep);
	if (failed)
		return failed;
	failed = profilers_session_run(session);
	profilers_work_close(&session->work);
	if (failed)
		return failed;
	if (profilers_finish(session->profilers, comparison) != OK)
		cli_no_memory();
	return 0;
}

static int compare_and_show(struct profilers_options *options, int argc, char **argv)
{
	struct profilers_session *session = cli_realloc(NULL, sizeof(*session));
	struct profilers_comparison comparison;
	char command[PROFILERS_COMMAND_BYTES];
	int failed;

	memset(session, 0, sizeof(*session));
	session->request = &options->request;
	session->profilers = profilers_new();
	if (session->profilers == NULL)
		cli_no_memory();
	bench_outputs_command(command, sizeof(command), argc, argv);
	profilers_command(session->profilers, command);
	profilers_comparison_init(&comparison);
	failed = profilers_compare(options, session, &comparison);
	if (!failed)
		failed = show_all(options, &comparison);
	profilers_comparison_release(&comparison);
	profilers_free(session->profilers);
	free(session);
	return failed;
}

/* ---- once more -------------------------------------------------------------------------------- */

static int recall_and_show(const struct profilers_options *options)
{
	struct profilers_comparison comparison;
	struct bench_read_problem problem;
	size_t length = 0;
	char *text = profilers_read_file(options->from, FROM_BYTES_MAX, &length);
	enum status status;
	int failed;

	if (text == NULL)
		return cli_error("cannot read '%s': %s", options->from, strerror(errno));
	profilers_comparison_init(&comparison);
	status = profilers_read(&comparison, text, length, &problem);
	free(text);
	if (status == ERR_FORMAT || status == ERR_UNKNOWN)
		failed = cli_error("'%s' is not a comparison of profilers: line %llu: %s",
				   options->from, (unsigned long long)problem.line, problem.text);
	else if (status != OK)
		failed = cli_error("cannot read '%s': %s", options->from, status_text(status));
	else
		failed = show_all(options, &comparison);
	profilers_comparison_release(&comparison);
	return failed;
}

int bench_profilers(int argc, char **argv)
{
	struct profilers_options *options = cli_realloc(NULL, sizeof(*options));
	int exit_code;

	if (profilers_options_take(options, argc, argv, &exit_code))
		exit_code = options->from ? recall_and_show(options)
					  : compare_and_show(options, argc, argv);
	free(options);
	return exit_code;
}
