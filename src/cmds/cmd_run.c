/*
 * How NCCL finds the plugin. Releases treat NCCL_PROFILER_PLUGIN differently: up to 2.25 it is passed to dlopen()
 * unchanged; 2.26 also tries libnccl-profiler-<value>.so; 2.27.3 accepts only a bare lib*.so name and no paths; later
 * ones accept names and paths. The one value that works with all of them is the bare file name, with the plugin's
 * directory in LD_LIBRARY_PATH. The directory is appended, so that nothing in it hides a library of the job, and is
 * left out if the loader finds the plugin without it.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/cli.h"
#include "cmds/cli_program.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/text.h"
#include "output/json.h"
#include "output/sink.h"
#include "recording/recording.h"

/* Sets up the recorder for a job: shared by `run` and `env`. */

enum { JOB_VARIABLES_MAX = 12, JOB_PATH_BYTES = 4096 };

struct cli_variable {
	const char *name;
	char value[JOB_PATH_BYTES];
	bool is_appended; /* append to the current value, after a ':' */
};

struct cli_job {
	char plugin[JOB_PATH_BYTES]; /* "": search for it */
	bool is_by_path;
	size_t count;
	struct cli_variable variables[JOB_VARIABLES_MAX];
};

static int job_set(struct cli_job *job, const char *name, const char *value, bool is_appended)
{
	struct cli_variable *variable = NULL;

	for (size_t i = 0; i < job->count; i++)
		if (strcmp(job->variables[i].name, name) == 0)
			variable = &job->variables[i];
	if (variable == NULL)
		variable = &job->variables[job->count++];
	variable->name = name;
	variable->is_appended = is_appended;
	if (!text_copy(variable->value, sizeof(variable->value), value))
		return cli_error("the value for %s is longer than %zu bytes", name,
				 sizeof(variable->value) - 1);
	return 0;
}

/* Make paths absolute: ranks may change their working directory. */
static int set_directory(struct cli_job *job, const char *name, const char *value, bool is_pattern)
{
	char here[JOB_PATH_BYTES / 2], whole[JOB_PATH_BYTES];
	size_t out = 0;

	if (value[0] == '/')
		return job_set(job, name, value, false);
	if (getcwd(here, sizeof(here)) == NULL)
		return cli_error("cannot get the working directory: %s", strerror(errno));
	/* Escape '%', which would start a placeholder. */
	for (const char *at = here; *at != '\0'; at++) {
		if (*at == '%' && is_pattern)
			whole[out++] = '%';
		whole[out++] = *at;
	}
	if (!text_format(whole + out, sizeof(whole) - out, "/%s", value))
		return cli_error("the path '%s' is too long", value);
	return job_set(job, name, whole, false);
}

static int take_mode(const struct cli_said *said)
{
	static const char *const modes[] = { "flight", "profile", "trace", "full", "off" };
	const char *nearest;

	for (size_t i = 0; i < ARRAY_LENGTH(modes); i++)
		if (strcmp(modes[i], said->value) == 0)
			return job_set(said->target, "RINGSIDE_MODE", said->value, false);
	nearest = cli_nearest(said->value, modes, ARRAY_LENGTH(modes));
	if (nearest)
		return cli_usage(said->page, "unknown mode '%s', did you mean '%s'?", said->value,
				 nearest);
	return cli_usage(said->page,
			 "unknown mode '%s'; choose flight, profile, trace, full or off",
			 said->value);
}

/* The same limits as in the recorder, which would silently use its default. */
static int take_buffer(const struct cli_said *said)
{
	uint64_t bytes;

	if (text_size(said->value, &bytes) != OK || bytes < 64 << 10 || bytes > 1 << 30)
		return cli_usage(said->page, "'%s' is not a size from 64KiB to 1GiB, like 8MiB",
				 said->value);
	return job_set(said->target, "RINGSIDE_BUFFER", said->value, false);
}

static int take_quota(const struct cli_said *said)
{
	uint64_t bytes;

	if (strcmp(said->value, "none") != 0 &&
	    (text_size(said->value, &bytes) != OK || bytes < 1 << 20))
		return cli_usage(said->page,
				 "'%s' is neither none nor a size of at least 1MiB, like 4GiB",
				 said->value);
	return job_set(said->target, "RINGSIDE_QUOTA", said->value, false);
}

static int take_events(const struct cli_said *said)
{
	static const char *const kinds[] = { "auto", "kernel", "proxy", "steps", "launch" };

	for (const char *at = said->value; *at != '\0';) {
		size_t length = strcspn(at, ","), skip = *at == '-' || *at == '+';
		bool is_known = false;

		for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
			is_known |= strlen(kinds[i]) == length - skip &&
				    strncmp(kinds[i], at + skip, length - skip) == 0;
		if (!is_known)
			return cli_usage(
				said->page,
				"'%.*s' is not a kind of event; choose from kernel, proxy, steps, "
				"launch, with a '-' before it to switch it off",
				(int)length, at);
		at += length + (at[length] == ',');
	}
	return job_set(said->target, "RINGSIDE_EVENTS", said->value, false);
}

static bool is_label(const char *pair, size_t length)
{
	const char *equals = memchr(pair, '=', length);

	if (equals == NULL || equals == pair)
		return false;
	for (const char *at = pair; at < equals; at++)
		if (!isalnum((unsigned char)*at) && *at != '_')
			return false;
	return true;
}

static int take_labels(const struct cli_said *said)
{
	for (const char *at = said->value; *at != '\0';) {
		size_t length = strcspn(at, ",");

		if (!is_label(at, length))
			return cli_usage(said->page,
					 "'%.*s' is not a label like key=value, with a key of "
					 "letters, digits and '_'",
					 (int)length, at);
		at += length + (at[length] == ',');
	}
	return job_set(said->target, "RINGSIDE_LABELS", said->value, false);
}

static int take_plugin(const struct cli_said *said)
{
	struct cli_job *job = said->target;
	const char *value = said->value;
	const char *slash = strrchr(value, '/');
	char directory[PATH_MAX], whole[PATH_MAX];

	text_format(directory, sizeof(directory), "%.*s", slash ? (int)(slash - value + 1) : 1,
		    slash ? value : ".");
	if (access(value, R_OK) != 0 || realpath(directory, whole) == NULL)
		return cli_error("cannot read the plugin '%s': %s", value, strerror(errno));
	if (!text_format(job->plugin, sizeof(job->plugin), "%s/%s", whole,
			 slash ? slash + 1 : value))
		return cli_error("the path '%s' is too long", value);
	return 0;
}

static int take_hang_after(const struct cli_said *said)
{
	int64_t seconds;

	if (text_number(said->value, 1, RECORDING_HANG_AFTER_MOST_S, &seconds) != OK)
		return cli_usage(said->page,
				 "--hang-after '%s' is not a number of seconds up to %d",
				 said->value, RECORDING_HANG_AFTER_MOST_S);
	return job_set(said->target, "RINGSIDE_HANG_AFTER", said->value, false);
}

static int take_directory(const struct cli_said *said)
{
	bool is_traces = strcmp(said->option->name, "output") == 0;

	return set_directory(said->target, is_traces ? "RINGSIDE_DIR" : "RINGSIDE_SHM", said->value,
			     is_traces);
}

static int take_name(const struct cli_said *said)
{
	bool is_job = strcmp(said->option->name, "job") == 0;

	return job_set(said->target, is_job ? "RINGSIDE_JOB" : "RINGSIDE_GROUP", said->value,
		       false);
}

struct request {
	struct cli_job job;
	bool is_forced; /* run */
	bool is_json;	/* env */
};

/* Options of both pages. */
#define JOB_OPTIONS                                                                               \
	{ 'm', "mode", "MODE", "what to record: flight (default), profile, trace, full or off",   \
	  CLI_CALL(struct request, job, take_mode) },                                             \
		{ 'o', "output", "DIR", "directory for trace files (modes trace, full)",          \
		  CLI_CALL(struct request, job, take_directory) },                                \
		{ 0, "events", "LIST",                                                            \
		  "events to ask NCCL for: kernel, proxy, steps, launch; a - in front turns one " \
		  "off",                                                                          \
		  CLI_CALL(struct request, job, take_events) },                                   \
		{ 0, "buffer", "SIZE",                                                            \
		  "memory for finished operations, 64KiB to 1GiB (default 8MiB)",                 \
		  CLI_CALL(struct request, job, take_buffer) },                                   \
		{ 0, "quota", "SIZE", "size limit of one trace file, or none (default 2GiB)",     \
		  CLI_CALL(struct request, job, take_quota) },                                    \
		{ 0, "shm", "DIR", "directory for regions instead of /dev/shm",                   \
		  CLI_CALL(struct request, job, take_directory) },                                \
		{ 0, "job", "NAME", "the job's name instead of the scheduler's",                  \
		  CLI_CALL(struct request, job, take_name) },                                     \
		{ 0, "labels", "LIST", "labels to keep with the recording: k=v,...",              \
		  CLI_CALL(struct request, job, take_labels) },                                   \
		{ 0, "hang-after", "SECONDS",                                                     \
		  "ranks of this job may wait this long, as in a checkpoint; no hang is "         \
		  "reported before (if more than 20)",                                            \
		  CLI_CALL(struct request, job, take_hang_after) },                               \
		{ 0, "group", "GROUP", "a group that may also read the recording",                \
		  CLI_CALL(struct request, job, take_name) },                                     \
		{ 0, "plugin", "FILE", "use this plugin file",                                    \
		  CLI_CALL(struct request, job, take_plugin) },                                   \
	{                                                                                         \
		0, "by-path", NULL,                                                               \
			"set the plugin by its path and leave LD_LIBRARY_PATH alone; does not "   \
			"work with NCCL 2.27.3",                                                  \
			CLI_FLAG(struct request, job.is_by_path)                                  \
	}

/* NCCL truncates longer names. */
enum { NCCL_NAME_MAX = 254 };

static int set_plugin_path(struct cli_job *job)
{
	if (strlen(job->plugin) > NCCL_NAME_MAX)
		return cli_error(
			"NCCL truncates names after %d characters: move the plugin from '%s' to a "
			"shorter path",
			NCCL_NAME_MAX, job->plugin);
	return job_set(job, "NCCL_PROFILER_PLUGIN", job->plugin, false);
}

/* Can the plugin be set by its bare name, with its directory in LD_LIBRARY_PATH? */
static bool can_be_listed(const char *directory, const char *name)
{
	return strncmp(name, "lib", 3) == 0 && strpbrk(directory, ":;$") == NULL;
}

/* Finds the plugin and sets the variables for it. Returns 0, or the exit code after an error was reported. */
static int cli_job_complete(struct cli_job *job)
{
	char looked[8192], directory[JOB_PATH_BYTES];
	const char *name;
	int failed;

	if (job->plugin[0] == '\0' &&
	    !cli_plugin_find(job->plugin, sizeof(job->plugin), looked, sizeof(looked)))
		return cli_error("cannot find " CLI_PLUGIN_FILE " in %s; name it with --plugin",
				 looked);
	text_copy(directory, sizeof(directory), job->plugin);
	name = strrchr(job->plugin, '/') + 1;
	directory[name - job->plugin - 1] = '\0';
	if (job->is_by_path || !can_be_listed(directory, name) || cli_plugin_is_hidden(job->plugin))
		return set_plugin_path(job);
	failed = job_set(job, "NCCL_PROFILER_PLUGIN", name, false);
	if (failed || (strcmp(name, CLI_PLUGIN_FILE) == 0 && cli_plugin_is_on_path(job->plugin)))
		return failed;
	return job_set(job, "LD_LIBRARY_PATH", directory, true);
}

/* Exit codes as in shells. */
enum { RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 };

static const struct cli_option run_options[] = {
	JOB_OPTIONS,
	{ 0, "force", NULL, "replace a profiler plugin that is already set",
	  CLI_FLAG(struct request, is_forced) },
	CLI_OPTION_END,
};

static const struct cli_example run_examples[] = {
	{ "ringside run -- torchrun --nproc-per-node 8 train.py",
	  "record the last operations of every rank; look with 'ringside ls' and 'ringside ps'" },
	{ "ringside run -m trace -o traces -- mpirun -n 16 ./job",
	  "write every operation to files below traces/" },
	{ NULL, NULL },
};

static const struct cli_page run_page = {
	.name = "run",
	.operands = "[--] CMD [ARG...]",
	.about = "Runs CMD with the recorder enabled: NCCL loads it in CMD and in every process "
		 "that CMD starts on this host. The exit code is that of CMD.\n"
		 "A launcher that starts processes on other hosts must pass the environment on; "
		 "'ringside env' prints it for job scripts.\n",
	.options = run_options,
	.examples = run_examples,
	.stops_at_operand = true,
};

static int set_variable(const struct cli_variable *variable)
{
	const char *before = getenv(variable->name);
	char *joined = NULL;
	int failed;

	if (!variable->is_appended || before == NULL || before[0] == '\0') {
		failed = setenv(variable->name, variable->value, 1);
	} else {
		failed = asprintf(&joined, "%s:%s", before, variable->value) == -1 ||
			 setenv(variable->name, joined, 1);
		free(joined);
	}
	return failed ? cli_error("cannot set %s: %s", variable->name, strerror(errno)) : 0;
}

/* Warns now, not after the job, if no trace files will be written. The job runs anyway. */
static void tell_traces(const struct cli_job *job)
{
	const char *mode = getenv("RINGSIDE_MODE"), *path = NULL;
	char directory[JOB_PATH_BYTES];
	int problem;

	for (size_t i = 0; i < job->count; i++)
		if (strcmp(job->variables[i].name, "RINGSIDE_DIR") == 0)
			path = job->variables[i].value;
	if (path == NULL)
		return;
	if (mode == NULL || (strcmp(mode, "trace") != 0 && strcmp(mode, "full") != 0)) {
		cli_error("no trace files will be written to %s in mode %s: use -m trace", path,
			  mode && mode[0] ? mode : "flight");
		return;
	}
	problem = cli_traces_find(path, directory, sizeof(directory));
	if (problem != 0)
		cli_error("trace files cannot be written to %s: %s: %s", path, directory,
			  strerror(problem));
}

static int run_execute(char **words)
{
	int code;

	execvp(words[0], words);
	code = errno == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTABLE;
	cli_error("cannot run '%s': %s", words[0], strerror(errno));
	return code;
}

int cmd_run(int argc, char **argv)
{
	const char *plugin = getenv("NCCL_PROFILER_PLUGIN");
	static struct request request; /* too large for the stack */
	int failed, words;

	failed = cli_parse_until(&run_page, &request, argc, argv, &words);
	if (failed != CLI_GO_ON)
		return failed;
	if (words == argc)
		return cli_usage(&run_page, "no command given: use ringside run -- CMD");
	if (plugin && plugin[0] && !cli_plugin_is_ours(plugin) && !request.is_forced)
		return cli_error("NCCL_PROFILER_PLUGIN is already set to '%s', and NCCL loads one "
				 "profiler only; --force replaces it",
				 plugin);
	failed = cli_job_complete(&request.job);
	for (size_t i = 0; i < request.job.count && failed == 0; i++)
		failed = set_variable(&request.job.variables[i]);
	if (failed)
		return failed;
	tell_traces(&request.job);
	return run_execute(argv + words);
}

static const struct cli_option env_options[] = {
	JOB_OPTIONS,
	CLI_OPTION_JSON(struct request),
	CLI_OPTION_END,
};

static const struct cli_example env_examples[] = {
	{ "eval \"$(ringside env -m trace -o traces)\"",
	  "in a job script, before the line that starts the ranks" },
	{ "ringside env --json", "the same variables for a program" },
	{ NULL, NULL },
};

static const struct cli_page env_page = {
	.name = "env",
	.operands = "",
	.about = "Prints one 'export' line per variable that 'ringside run' would set, for sh, "
		 "bash and zsh. Nothing is changed.\n",
	.options = env_options,
	.examples = env_examples,
};

/* Within single quotes only the quote itself is special. */
static void write_quoted(struct sink *sink, const char *text)
{
	sink_text(sink, "'");
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			sink_text(sink, "'\\''");
		else
			sink_write(sink, text, 1);
	}
	sink_text(sink, "'");
}

static void write_export(struct sink *sink, const struct cli_variable *variable)
{
	sink_format(sink, "export %s=", variable->name);
	if (variable->is_appended)
		sink_format(sink, "\"${%s:+$%s:}\"", variable->name, variable->name);
	write_quoted(sink, variable->value);
	sink_text(sink, "\n");
}

static void write_json(struct sink *sink, const struct cli_job *job)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	for (size_t i = 0; i < job->count; i++) {
		const struct cli_variable *variable = &job->variables[i];
		const char *before = variable->is_appended ? getenv(variable->name) : NULL;
		struct sink joined;

		sink_init_memory(&joined);
		if (before && before[0])
			sink_format(&joined, "%s:", before);
		sink_text(&joined, variable->value);
		json_put_string(&json, variable->name, sink_string(&joined));
		sink_release(&joined);
	}
	json_end(&json);
	json_line(&json);
}

int cmd_env(int argc, char **argv)
{
	static struct request request;
	struct sink sink;
	int failed;

	failed = cli_parse(&env_page, &request, argc, argv);
	if (failed != CLI_GO_ON)
		return failed;
	failed = cli_job_complete(&request.job);
	if (failed)
		return failed;
	sink_init_fd(&sink, STDOUT_FILENO);
	if (request.is_json)
		write_json(&sink, &request.job);
	for (size_t i = 0; i < request.job.count && !request.is_json; i++)
		write_export(&sink, &request.job.variables[i]);
	return cli_finish(&sink, CLI_EXIT_DONE);
}
