#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/cli/cli_commands.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_job.h"
#include "programs/cli/cli_options.h"

enum { RUN_FORCE = JOB_OPTIONS_END };

/* As shells have it. */
enum { RUN_NOT_EXECUTABLE = 126, RUN_NOT_FOUND = 127 };

static const struct cli_option options[] = {
	CLI_JOB_OPTIONS,
	{ RUN_FORCE, "force", NULL, "replace another profiler plugin that is set already" },
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside run -- torchrun --nproc-per-node 8 train.py",
	  "record the last operations of every rank; look with 'ringside ls' and 'ringside ps'" },
	{ "ringside run -m trace -o traces -- mpirun -n 16 ./job",
	  "write every operation to files below traces/" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "run",
	.operands = "[--] CMD [ARG...]",
	.about =
		"Runs CMD in an environment in which NCCL loads the recorder, in CMD itself and in "
		"every process it starts on this machine. The exit code is that of CMD.\n"
		"A launcher that starts processes on other machines must hand the environment "
		"over; 'ringside env' prints it for job scripts.\n",
	.options = options,
	.examples = examples,
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

/* The first directory of a path that is there; placeholders are not known before the job is. */
static int find_directory(const char *path, char found[JOB_PATH_BYTES])
{
	struct stat st;

	text_copy(found, JOB_PATH_BYTES, path);
	found[strcspn(found, "%")] = '\0';
	while (stat(found, &st) == -1) {
		char *slash = strrchr(found, '/');

		if (errno != ENOENT || slash == NULL)
			return errno;
		slash[slash == found] = '\0';
	}
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	return access(found, W_OK | X_OK) == -1 ? errno : 0;
}

/* Trace files that will not be there are told now, and not when the job is over. It runs all the same. */
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
		cli_error("no trace files will be in %s: mode %s writes none, -m trace does", path,
			  mode && mode[0] ? mode : "flight");
		return;
	}
	problem = find_directory(path, directory);
	if (problem != 0)
		cli_error("trace files cannot be written to %s: %s: %s", path, directory,
			  strerror(problem));
}

static int execute(char **words)
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
	bool is_forced = false;
	struct cli_args args;
	static struct cli_job job;
	int found, failed = 0;

	cli_job_init(&job);
	cli_args_init(&args, &page, argc, argv);
	while (failed == 0 && (found = cli_next(&args)) != CLI_END) {
		if (found == CLI_STOP)
			return args.exit_code;
		if (found == RUN_FORCE)
			is_forced = true;
		else
			failed = cli_job_take(&job, &page, found, args.value);
	}
	if (failed)
		return failed;
	if (args.at == argc)
		return cli_usage(&page, "which command shall be run?");
	if (plugin && plugin[0] && !cli_job_is_ours(plugin) && !is_forced)
		return cli_error("NCCL_PROFILER_PLUGIN is set to '%s' already, and NCCL loads one "
				 "profiler only; --force replaces it",
				 plugin);
	failed = cli_job_complete(&job);
	for (size_t i = 0; i < job.count && failed == 0; i++)
		failed = set_variable(&job.variables[i]);
	if (failed)
		return failed;
	tell_traces(&job);
	return execute(argv + args.at);
}
