/* Setting the recorder up for a job: what `run` and `env` share. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include <stdbool.h>
#include <stddef.h>

#include "programs/cli/cli_page.h"

enum cli_job_option {
	JOB_MODE = 'm',
	JOB_DIRECTORY = 'o',
	JOB_EVENTS = CLI_LONG_ONLY,
	JOB_BUFFER,
	JOB_QUOTA,
	JOB_SHM,
	JOB_NAME,
	JOB_LABELS,
	JOB_GROUP,
	JOB_PLUGIN,
	JOB_BY_PATH,
	JOB_OPTIONS_END, /* a command's own ids from here on */
};

/* The rows of a page's table. */
#define CLI_JOB_OPTIONS                                                                         \
	{ JOB_MODE, "mode", "MODE",                                                             \
	  "what to record: flight (default), profile, trace, full or off" },                    \
		{ JOB_DIRECTORY, "output", "DIR",                                               \
		  "directory for trace files (modes trace, full)" },                            \
		{ JOB_EVENTS, "events", "LIST",                                                 \
		  "events to ask NCCL for: kernel, proxy, steps, launch; with a - before it, "  \
		  "not" },                                                                      \
		{ JOB_BUFFER, "buffer", "SIZE",                                                 \
		  "memory for finished operations, 64KiB to 1GiB (default 8MiB)" },             \
		{ JOB_QUOTA, "quota", "SIZE",                                                   \
		  "the most one trace file may take, or none (default 2GiB)" },                 \
		{ JOB_SHM, "shm", "DIR", "directory for regions instead of /dev/shm" },         \
		{ JOB_NAME, "job", "NAME", "the job's name instead of the scheduler's" },       \
		{ JOB_LABELS, "labels", "LIST", "labels to keep with the recording: k=v,..." }, \
		{ JOB_GROUP, "group", "GROUP", "a group that may read the recording, too" },    \
		{ JOB_PLUGIN, "plugin", "FILE", "this plugin instead of the one found" },       \
	{                                                                                       \
		JOB_BY_PATH, "by-path", NULL,                                                   \
			"name the plugin by its path and leave LD_LIBRARY_PATH alone; NCCL "    \
			"2.27.3 does not find it that way"                                      \
	}

enum { JOB_VARIABLES_MAX = 12, JOB_PATH_BYTES = 4096 };

struct cli_variable {
	const char *name;
	char value[JOB_PATH_BYTES];
	bool is_appended; /* to what the variable has, with a ':' between */
};

struct cli_job {
	char plugin[JOB_PATH_BYTES]; /* "": to be found */
	bool is_by_path;
	size_t count;
	struct cli_variable variables[JOB_VARIABLES_MAX];
};

void cli_job_init(struct cli_job *job);

/* Take one of CLI_JOB_OPTIONS. 0, or the exit code after an error was told. */
int cli_job_take(struct cli_job *job, const struct cli_page *page, int id, const char *value);

/* Find the plugin and add what names it. 0, or the exit code after an error was told. */
int cli_job_complete(struct cli_job *job);

/* Does a value of NCCL_PROFILER_PLUGIN mean this plugin? */
bool cli_job_is_ours(const char *value);

#endif
