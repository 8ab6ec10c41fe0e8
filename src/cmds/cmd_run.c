/*
 * `ringside run` and `ringside env`: the variables with which a command records itself, and a reporter, a process beside the
 * command, that says whether anything was recorded and, when ranks die or hang, which was the first and why.
 *
 * How NCCL finds the plugin: releases treat NCCL_PROFILER_PLUGIN differently: up to 2.25 it is passed to dlopen()
 * unchanged; 2.26 also tries libnccl-profiler-<value>.so; 2.27.3 accepts only a bare lib*.so name and no paths; later
 * ones accept names and paths. The one value that works with all of them is the bare file name, with the plugin's
 * directory in LD_LIBRARY_PATH. The directory is appended, so that nothing in it hides a library of the job, and is
 * left out if the loader finds the plugin without it.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cmds/commands.h"
#include "cmds/run_processes.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"
#include "format/region_read.h"
#include "output/json.h"
#include "output/sink.h"
#include "recording/recording.h"
#include "recording/watch.h"

/* Sets up the recorder for a job: shared by `run` and `env`. */

enum { JOB_VARIABLES_MAX = 13, JOB_PATH_BYTES = 4096 };

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

static int take_times(const struct cli_said *said)
{
	static const char *const choices[] = {
		"auto", "all", "off", "kernel", "graphs", "no-graphs"
	};
	char list[64], *at = list, *word;
	unsigned int times = 0;

	text_copy(list, sizeof(list), said->value);
	while ((word = strsep(&at, ",")) != NULL) {
		const char *nearest = cli_nearest(word, choices, ARRAY_LENGTH(choices));
		size_t found = 0;

		while (found < ARRAY_LENGTH(choices) && strcmp(choices[found], word) != 0)
			found++;
		if (found == ARRAY_LENGTH(choices))
			return cli_usage(
				said->page,
				"unknown choice '%s' for --times%s%s; choose auto, all, off or "
				"kernel, and perhaps ,graphs or ,no-graphs",
				word, nearest ? ", nearest is " : "", nearest ? nearest : "");
		times += found < 4;
	}
	if (times > 1)
		return cli_usage(
			said->page,
			"--times=%s contradicts itself; choose one of auto, all, off or kernel",
			said->value);
	return job_set(said->target, "RINGSIDE_TIMES", said->value, false);
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
	struct stat st;

	text_format(directory, sizeof(directory), "%.*s", slash ? (int)(slash - value + 1) : 1,
		    slash ? value : ".");
	if (stat(value, &st) == 0 && S_ISDIR(st.st_mode))
		return cli_error("cannot read the plugin '%s': %s", value, strerror(EISDIR));
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
	bool is_forced;	    /* run */
	bool has_no_report; /* run */
	bool is_json;	    /* env */
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
		{ 0, "times", "WHICH",                                                            \
		  "which launches to time: auto (default: a share, for 0.5% of the time), all, "  \
		  "off, or kernel (kernel events instead); with ,graphs also every launch in a "  \
		  "CUDA graph, with ,no-graphs none",                                             \
		  CLI_CALL(struct request, job, take_times) },                                    \
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
		return cli_error("cannot find " CLI_PLUGIN_FILE
				 " in %s; install the package nccl-profiler-ringside (apt install "
				 "./nccl-profiler-ringside_*.deb, dnf install "
				 "./nccl-profiler-ringside-*.rpm), or name the file with --plugin",
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
	{ 0, "no-report", NULL,
	  "do not print what is recorded, nor the doctor's verdict if the job hangs or dies",
	  CLI_FLAG(struct request, has_no_report) },
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
		 "A process beside CMD prints on standard error what is recorded, and the doctor's "
		 "verdict if the job hangs or its processes are killed, once per node. "
		 "RINGSIDE_REPORT=0 or --no-report turns it off.\n"
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

/* ---- the report ------------------------------------------------------------------------------ */

/*
 * A process beside the job reports what becomes of it, so that the job itself is the command and nothing else: the
 * same PID, parent, children, signals and exit code as without `ringside run`.
 *
 *	ringside run --fork--> (child, ends at once) --fork--> reporter: a session of its own, no child of the job
 *	     |                                                    |
 *	     exec CMD                                             waits for the end of CMD; scans its regions
 *
 * It looks for regions of processes that CMD started. Several may run for one job on one node, one for each rank: the
 * one that locks a file named after the job reports. The file also holds what was reported. Nothing that goes wrong
 * here is worth a message: the job runs without a report.
 */
#define REPORT_SEARCH_NS SECOND_NS	    /* between scans, until the job has started */
#define REPORT_SCAN_NS (5 * SECOND_NS)	    /* then */
#define REPORT_SETTLE_NS (3 * SECOND_NS)    /* without a new rank: all have begun */
#define REPORT_CHECK_NS (60 * SECOND_NS)    /* ask the doctor even if the job moves */
#define REPORT_STILL_NS (10 * SECOND_NS)    /* or if it has not moved for this long */
#define REPORT_PROCESSES_NS (5 * SECOND_NS) /* between looks at what processes have loaded */
#define REPORT_NO_NCCL_NS (30 * SECOND_NS)  /* programs may take this long to load NCCL */
enum {
	REPORT_BYTES = 16384,
	REPORT_DOCTOR_SECONDS = 30,
	REPORT_LAST_SECONDS = 60, /* after the end of CMD */
	REPORT_WRITE_SECONDS = 10,
	REPORT_RANKS_MAX = 64, /* of which the end is seen when it happens */
};
#define REPORT_TOGETHER_NS \
	(20 * MS_NS) /* ends that are closer have no order: this process may run late */

/* In the lock file. */
#define SAID_START 's'
#define SAID_VERDICT 'v'

/* The end of a process of the job, as the kernel tells it. */
struct rank_end {
	int pidfd; /* -1: it has ended */
	int64_t pid, rank;
	uint64_t ended_ns; /* 0: it has not */
};

struct reporter {
	pid_t pid; /* of CMD */
	uint64_t start_ticks;
	int pidfd; /* -1: poll */
	struct watch watch;
	bool has_job;
	char job[128];
	int lock;		   /* -1: not open */
	char path[JOB_PATH_BYTES]; /* of the lock; "": it has none */
	bool is_elected;
	uint64_t moved;	   /* calls so far */
	size_t dead;	   /* processes of the job that were killed */
	size_t seen;	   /* processes of the job */
	size_t alive;	   /* of these, that run; until the start is printed */
	uint64_t alive_ns; /* when this number changed */
	bool is_started;
	uint64_t moved_ns;
	uint64_t checked_ns;
	/* Until the job is found: why nothing is recorded. */
	uint64_t begun_ns, looked_ns;
	struct run_processes processes; /* the most that was known */
	int64_t last_pid;		/* what the look before found, and how often */
	enum run_state last_state;
	bool is_reason_said, is_missing_said;
	struct rank_end ends[REPORT_RANKS_MAX];
	size_t end_count;
	pid_t parent;	/* of CMD: ranks of a launcher have the same one */
	int quiet_lock; /* of those, the one that says why nothing is recorded; -1: not open */
	char quiet_path[JOB_PATH_BYTES]; /* "": none */
};

static bool is_off(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && strcmp(value, "0") == 0;
}

static bool is_on(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

static uint64_t start_of(pid_t pid)
{
	uint64_t start_ticks = 0;
	char task[24], state;

	text_format(task, sizeof(task), "%d", (int)pid);
	file_proc_stat(task, &state, &start_ticks);
	return state == 'Z' ? 0 : start_ticks;
}

/* Of those whose end poll() has shown. */
static size_t note_ends(struct reporter *reporter, const struct pollfd *polled)
{
	uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);
	size_t count = 0;

	for (size_t i = 0; i < reporter->end_count; i++) {
		if (polled[i].revents == 0 || reporter->ends[i].pidfd == -1)
			continue;
		close(reporter->ends[i].pidfd);
		reporter->ends[i].pidfd = -1;
		reporter->ends[i].ended_ns = now_ns;
		count++;
	}
	return count;
}

/* False: CMD has ended. */
static bool wait_for_command(struct reporter *reporter, uint64_t wait_ns)
{
	uint64_t until_ns = clock_system_ns(CLOCK_MONOTONIC) + wait_ns;
	struct pollfd polled[1 + REPORT_RANKS_MAX];
	int got;

	do {
		uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);
		size_t ended;

		polled[0] = (struct pollfd){ reporter->pidfd, POLLIN, 0 };
		for (size_t i = 0; i < reporter->end_count; i++)
			polled[1 + i] = (struct pollfd){ reporter->ends[i].pidfd, POLLIN, 0 };
		got = poll(polled, 1 + reporter->end_count,
			   until_ns > now_ns ? (int)((until_ns - now_ns) / MS_NS) : 0);
		ended = got > 0 ? note_ends(reporter, polled + 1) : 0;
		if (got > 0 && (polled[0].revents != 0 || ended == 0))
			return false;
	} while (got > 0);
	return start_of(reporter->pid) == reporter->start_ticks;
}

/*
 * Standard error is the job's, and may be full: the job must not notice, so its flags stay, and whoever blocks is this
 * process, which then ends.
 */
static void say(const char *text, size_t length)
{
	alarm(REPORT_WRITE_SECONDS);
	while (length > 0) {
		size_t piece = length < 512 ? length : 512;
		ssize_t wrote = write(STDERR_FILENO, text, piece);

		if (wrote == -1 && errno != EINTR)
			break;
		text += wrote > 0 ? wrote : 0;
		length -= wrote > 0 ? (size_t)wrote : 0;
	}
	alarm(0);
}

/* Processes that CMD did not start may have the same name, so it is taken from one that it did. */
static void find_job(struct reporter *reporter)
{
	const struct recording *recording = &reporter->watch.recording;

	for (size_t i = 0; i < recording->count && !reporter->has_job; i++) {
		const struct recording_process *process = recording->processes[i];

		if (process->life != RECORDING_ALIVE || process->pid_here <= 0 ||
		    !run_is_below(reporter->pid, process->pid_here))
			continue;
		text_copy(reporter->job, sizeof(reporter->job), process->job);
		reporter->has_job = true;
	}
}

static bool is_of_job(const struct reporter *reporter, const struct recording_process *process)
{
	return strcmp(process->job, reporter->job) == 0 && !process->is_earlier_run;
}

/* What an earlier run of the job left in the file does not count: it was written before this run began. */
static void clear_earlier(const struct reporter *reporter, const struct stat *st)
{
	const struct recording *recording = &reporter->watch.recording;
	uint64_t first_ns = UINT64_MAX;

	for (size_t i = 0; i < recording->count; i++)
		if (is_of_job(reporter, recording->processes[i]) &&
		    recording->processes[i]->started_wall_ns < first_ns)
			first_ns = recording->processes[i]->started_wall_ns;
	if ((uint64_t)st->st_mtim.tv_sec * SECOND_NS + (uint64_t)st->st_mtim.tv_nsec < first_ns)
		(void)!ftruncate(reporter->lock, 0);
}

/* In a directory where everybody can create files: one that is not ours does not count, and then there is no choice. */
static void elect(struct reporter *reporter)
{
	const char *directory = reporter->watch.settings.directory;
	struct stat st;

	if (reporter->is_elected || !reporter->has_job)
		return;
	if (reporter->lock == -1) {
		text_format(reporter->path, sizeof(reporter->path),
			    "%s/.ringside-report-%u-%016" PRIx64,
			    directory ? directory : REGION_FIND_DIRECTORY, (unsigned int)geteuid(),
			    hash_bytes(reporter->job, strlen(reporter->job)));
		reporter->lock =
			open(reporter->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (reporter->lock == -1 || fstat(reporter->lock, &st) == -1 || st.st_uid != geteuid() ||
	    !S_ISREG(st.st_mode)) {
		reporter->path[0] = '\0';
		reporter->is_elected = true;
	} else if (flock(reporter->lock, LOCK_EX | LOCK_NB) == 0) {
		reporter->is_elected = true;
		if (fstat(reporter->lock, &st) == 0)
			clear_earlier(reporter, &st);
	}
}

/* Was this said already, by this process or one before it? */
static bool was_said(const struct reporter *reporter, char what)
{
	char bytes[64];
	ssize_t length = reporter->lock != -1 ? pread(reporter->lock, bytes, sizeof(bytes), 0) : 0;

	return length > 0 && memchr(bytes, what, (size_t)length) != NULL;
}

static void note_said(const struct reporter *reporter, char what)
{
	struct stat st;

	if (reporter->lock != -1 && fstat(reporter->lock, &st) == 0)
		(void)!pwrite(reporter->lock, &what, 1, st.st_size);
}

static void count(struct reporter *reporter, uint64_t now_ns)
{
	const struct recording *recording = &reporter->watch.recording;
	uint64_t moved = 0;
	size_t dead = 0, seen = 0;

	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		if (!is_of_job(reporter, process))
			continue;
		seen++;
		dead += process->life == RECORDING_KILLED;
		for (size_t c = 0; c < process->comm_count; c++)
			moved +=
				process->comms[c].counts.issued + process->comms[c].counts.recorded;
	}
	/* A job that was just found may be starting: give it the time of one that was just checked. */
	if (reporter->seen == 0)
		reporter->moved_ns = reporter->checked_ns = now_ns;
	if (moved != reporter->moved)
		reporter->moved_ns = now_ns;
	/* Whoever ended one rank may be ending the others: look a little later. */
	if (dead > reporter->dead)
		reporter->checked_ns = now_ns - REPORT_CHECK_NS + REPORT_SCAN_NS;
	reporter->moved = moved;
	reporter->dead = dead;
	reporter->seen = seen;
}

/* ---- nothing is recorded ---- */

/* Of several reporters that a launcher started, and of one within another, one says it. */
static bool is_first_to_say(struct reporter *reporter)
{
	const char *directory = reporter->watch.settings.directory;
	struct stat st;

	if (reporter->quiet_lock == -1) {
		text_format(reporter->quiet_path, sizeof(reporter->quiet_path),
			    "%s/.ringside-report-%u-p%d",
			    directory ? directory : REGION_FIND_DIRECTORY, (unsigned int)geteuid(),
			    (int)reporter->parent);
		reporter->quiet_lock =
			open(reporter->quiet_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (reporter->quiet_lock == -1 || fstat(reporter->quiet_lock, &st) == -1 ||
	    st.st_uid != geteuid() || !S_ISREG(st.st_mode) ||
	    flock(reporter->quiet_lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	reporter->quiet_path[0] = '\0';
	return false;
}

static void say_nothing(struct reporter *reporter, const char *words)
{
	char text[700] = "";

	if (!is_first_to_say(reporter))
		return;
	text_format(text, sizeof(text), "ringside run: %s: ", words);
	run_processes_text(text, sizeof(text), &reporter->processes);
	text_append(text, sizeof(text), "\n");
	say(text, strlen(text));
}

/*
 * A process that cannot be recorded is reported when it was found twice, so that one that is just beginning is not. One
 * without NCCL may load it later.
 */
static void look_for_reasons(struct reporter *reporter, uint64_t now_ns)
{
	struct run_processes now;
	bool is_again, is_certain, is_missing;

	if (reporter->has_job || now_ns - reporter->looked_ns < REPORT_PROCESSES_NS)
		return;
	reporter->looked_ns = now_ns;
	run_processes_look(&now, reporter->pid);
	now.is_elsewhere |= reporter->processes.is_elsewhere;
	is_again = now.pid == reporter->last_pid && now.state == reporter->last_state;
	reporter->last_pid = now.pid;
	reporter->last_state = now.state;
	if (now.state >= reporter->processes.state)
		reporter->processes = now;
	else
		reporter->processes.is_elsewhere = now.is_elsewhere;
	is_certain = now.state >= RUN_UNCONFIGURED && is_again;
	is_missing = reporter->processes.state == RUN_NO_NCCL && !now.is_elsewhere &&
		     now_ns - reporter->begun_ns >= REPORT_NO_NCCL_NS;
	if ((is_certain && !reporter->is_reason_said) ||
	    (is_missing && !reporter->is_missing_said)) {
		reporter->is_reason_said |= is_certain;
		reporter->is_missing_said = true;
		say_nothing(reporter, "nothing is recorded so far");
	}
}

/*
 * A job can come and go between two scans. Which processes it had cannot be seen then, so any recording that began since
 * the command did may be its own.
 */
static bool was_recorded_since(struct reporter *reporter, uint64_t now_ns)
{
	const struct recording *recording = &reporter->watch.recording;
	uint64_t begun_wall_ns =
		clock_system_ns(CLOCK_REALTIME) - (now_ns - reporter->begun_ns) - SECOND_NS;

	if (watch_look(&reporter->watch, 0) != OK)
		return true;
	for (size_t i = 0; i < recording->count; i++)
		if (recording->processes[i]->started_wall_ns >= begun_wall_ns)
			return true;
	return false;
}

/* A command that was short, or whose processes are elsewhere, is none of a job that should have been recorded. */
static void say_nothing_was(struct reporter *reporter, uint64_t now_ns)
{
	bool is_certain = reporter->processes.state >= RUN_UNCONFIGURED;
	bool is_long = now_ns - reporter->begun_ns >= 2 * REPORT_PROCESSES_NS;

	if (!reporter->has_job && reporter->looked_ns != reporter->begun_ns &&
	    (is_certain || (is_long && !reporter->processes.is_elsewhere &&
			    !was_recorded_since(reporter, now_ns))))
		say_nothing(reporter, "nothing was recorded");
	if (reporter->quiet_lock != -1 && reporter->quiet_path[0] != '\0')
		unlink(reporter->quiet_path);
}

/* ", calls timed by CUDA events (a share of the launches)". */
static void say_times(char *text, size_t size, const struct recording_process *process)
{
	struct recording_times times;

	recording_times(process, &times);
	if (strcmp(times.in_effect, "auto") == 0)
		text_append(text, size, ", a share of the calls timed by CUDA events");
	else if (strcmp(times.in_effect, "all") == 0)
		text_append(text, size, ", calls timed by CUDA events");
	else if (strcmp(times.in_effect, "kernel") == 0)
		text_append(text, size, ", calls timed by kernel events");
	else if (strcmp(times.in_effect, "sampled") == 0)
		text_append(text, size, ", a share of the calls timed by kernel events");
	else if (strcmp(times.in_effect, "off") == 0)
		text_append(text, size, ", calls not timed%s%.120s", times.reason[0] ? ": " : "",
			    times.reason);
}

/* ---- who ended first ---- */

static void watch_ranks(struct reporter *reporter)
{
#ifdef SYS_pidfd_open
	const struct recording *recording = &reporter->watch.recording;

	for (size_t i = 0; i < recording->count && reporter->end_count < REPORT_RANKS_MAX; i++) {
		const struct recording_process *process = recording->processes[i];
		bool is_known = !is_of_job(reporter, process) || process->life != RECORDING_ALIVE ||
				process->pid_here <= 0;
		int pidfd;

		for (size_t j = 0; j < reporter->end_count && !is_known; j++)
			is_known = reporter->ends[j].pid == process->pid_here;
		if (is_known)
			continue;
		pidfd = (int)syscall(SYS_pidfd_open, (pid_t)process->pid_here, 0);
		if (pidfd == -1)
			return;
		fcntl(pidfd, F_SETFD, FD_CLOEXEC);
		reporter->ends[reporter->end_count++] = (struct rank_end){ .pidfd = pidfd,
									   .pid = process->pid_here,
									   .rank = process->rank };
	}
#else
	(void)reporter;
#endif
}

/*
 * "; rank 2 (pid 77) ended first, 210 ms before the others": of the processes on this host. Launchers end the others as
 * soon as one has ended, faster than heartbeats can show.
 */
static void say_first_end(const struct reporter *reporter, uint64_t over_ns, char *text,
			  size_t size)
{
	const struct rank_end *first = NULL;
	uint64_t next_ns = UINT64_MAX;
	char time[UNITS_TEXT];

	for (size_t i = 0; i < reporter->end_count; i++)
		if (reporter->ends[i].ended_ns != 0 &&
		    (first == NULL || reporter->ends[i].ended_ns < first->ended_ns))
			first = &reporter->ends[i];
	for (size_t i = 0; i < reporter->end_count && first != NULL; i++) {
		uint64_t ended_ns = reporter->ends[i].ended_ns;

		/* Those that have not ended do so after CMD. */
		if (&reporter->ends[i] != first && (ended_ns != 0 ? ended_ns : over_ns) < next_ns)
			next_ns = ended_ns != 0 ? ended_ns : over_ns;
	}
	if (first == NULL || next_ns == UINT64_MAX || reporter->end_count < reporter->seen ||
	    next_ns - first->ended_ns < REPORT_TOGETHER_NS)
		return;
	if (first->rank >= 0)
		text_append(text, size, "; rank %" PRId64 " (pid %" PRId64 ")", first->rank,
			    first->pid);
	else
		text_append(text, size, "; pid %" PRId64, first->pid);
	text_append(text, size, " ended first, %s before the others",
		    units_duration(time, next_ns - first->ended_ns));
}

static void say_start(struct reporter *reporter, uint64_t now_ns)
{
	const struct recording *recording = &reporter->watch.recording;
	const struct recording_process *first = NULL;
	char text[800] = "", where[256] = "", timed[200] = "";
	size_t alive = 0;

	if (reporter->is_started)
		return;
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		if (!is_of_job(reporter, process) || process->life != RECORDING_ALIVE)
			continue;
		first = first == NULL ? process : first;
		alive++;
	}
	if (alive != reporter->alive)
		reporter->alive_ns = now_ns;
	reporter->alive = alive;
	/* Ranks do not begin at the same moment: a line that misses some would look as if they were not recorded. */
	if (first == NULL || first->interface == 0 ||
	    (now_ns - reporter->alive_ns < REPORT_SETTLE_NS && (int64_t)alive != first->world_size))
		return;
	reporter->is_started = true;
	if (was_said(reporter, SAID_START))
		return;
	recording_info(first, "trace", where, sizeof(where));
	if (where[0] == '\0' && first->region_path != NULL)
		text_copy(where, sizeof(where), first->region_path);
	/* Of all ranks: the directory. */
	if (strrchr(where, '/') != NULL)
		*strrchr(where, '/') = '\0';
	say_times(timed, sizeof(timed), first);
	text_format(text, sizeof(text),
		    "ringside run: recording %zu %s of job %s (mode %s, NCCL profiler interface "
		    "v%u%s) in %s\n",
		    alive, text_which(alive, "process", "processes"), reporter->job, first->mode,
		    first->interface, timed, where);
	if (first->world_size > 0)
		text_format(
			text, sizeof(text),
			"ringside run: recording %zu of %" PRId64
			" ranks of job %s here (mode %s, NCCL profiler interface v%u%s) in %s\n",
			alive, first->world_size, reporter->job, first->mode, first->interface,
			timed, where);
	note_said(reporter, SAID_START);
	say(text, strlen(text));
}

/* Says what the doctor says if the job hangs or is dead; misconfiguration and slowness are not for this place. */
static void ask_doctor(struct reporter *reporter, const char *event)
{
	const char *words[] = {
		"/proc/self/exe", "doctor", "--quiet", "--job", reporter->job, NULL
	};
	struct cli_capture got;
	struct sink sink;

	if (was_said(reporter, SAID_VERDICT))
		return;
	if (cli_capture(&got, words, -1, REPORT_DOCTOR_SECONDS, REPORT_BYTES) == OK &&
	    got.exit_code == CLI_EXIT_TROUBLE &&
	    (strstr(got.bytes, "\nerror ") != NULL || strstr(got.bytes, "\ndead ") != NULL)) {
		note_said(reporter, SAID_VERDICT);
		sink_init_memory(&sink);
		sink_format(&sink, "ringside run: %s:\n%s%s", event, got.bytes,
			    got.is_cut ? "...\n" : "");
		say(sink_string(&sink), sink.used);
		sink_release(&sink);
	}
	free(got.bytes);
}

static void check(struct reporter *reporter, uint64_t now_ns)
{
	bool is_still = now_ns - reporter->moved_ns >= REPORT_STILL_NS &&
			now_ns - reporter->checked_ns >= REPORT_STILL_NS;

	if (!is_still && now_ns - reporter->checked_ns < REPORT_CHECK_NS)
		return;
	reporter->checked_ns = now_ns;
	ask_doctor(reporter, "the job may hang");
}

/* Removes the file if nothing of the job is left. */
static void clean_up(const struct reporter *reporter)
{
	const struct recording *recording = &reporter->watch.recording;

	for (size_t i = 0; i < recording->count; i++)
		if (is_of_job(reporter, recording->processes[i]) &&
		    recording->processes[i]->life == RECORDING_ALIVE)
			return;
	if (reporter->path[0] != '\0')
		unlink(reporter->path);
}

/* Of a job that another reporter scans for, there is nothing to find. */
static uint64_t scan_interval(const struct reporter *reporter)
{
	bool is_known = reporter->is_started || (reporter->has_job && !reporter->is_elected);

	return is_known ? REPORT_SCAN_NS : REPORT_SEARCH_NS;
}

static void report(struct reporter *reporter)
{
	char event[256] = "";
	uint64_t over_ns;

	reporter->begun_ns = reporter->looked_ns = clock_system_ns(CLOCK_MONOTONIC);
	while (wait_for_command(reporter, scan_interval(reporter))) {
		uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);

		/* Others scan for this job. */
		if (reporter->has_job && !reporter->is_elected) {
			elect(reporter);
			continue;
		}
		if (watch_look(&reporter->watch, 0) != OK)
			return;
		find_job(reporter);
		look_for_reasons(reporter, now_ns);
		elect(reporter);
		if (!reporter->is_elected)
			continue;
		watch_ranks(reporter);
		count(reporter, now_ns);
		say_start(reporter, now_ns);
		check(reporter, now_ns);
	}
	over_ns = clock_system_ns(CLOCK_MONOTONIC);
	alarm(REPORT_LAST_SECONDS);
	say_nothing_was(reporter, over_ns);
	/* Once more: whatever was printed has ended it. */
	alarm(REPORT_LAST_SECONDS);
	elect(reporter);
	if (!reporter->is_elected || watch_look(&reporter->watch, 0) != OK)
		return;
	count(reporter, clock_system_ns(CLOCK_MONOTONIC));
	if (reporter->dead > 0) {
		text_copy(event, sizeof(event),
			  "the command has ended, and processes of the job did not end by "
			  "themselves");
		say_first_end(reporter, over_ns, event, sizeof(event));
		ask_doctor(reporter, event);
	}
	clean_up(reporter);
}

/* No child of the job, no holder of its files but standard error, and the first to go if memory is short. */
static _Noreturn void become_reporter(struct reporter *reporter)
{
	static const int ignored[] = { SIGHUP,	SIGINT,	 SIGQUIT, SIGTERM, SIGPIPE,
				       SIGTSTP, SIGTTOU, SIGUSR1, SIGUSR2 };
	const struct watch_settings settings = { .directory = getenv("RINGSIDE_SHM"),
						 .keep_ns = 3600 * SECOND_NS };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), score;
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	if (null == -1 || dup2(null, STDIN_FILENO) == -1 || dup2(null, STDOUT_FILENO) == -1)
		_exit(0);
	for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
		if (fd != reporter->pidfd)
			close(fd);
	score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (score != -1) {
		(void)!write(score, "1000", 4);
		close(score);
	}
	(void)!nice(10);
	prctl(PR_SET_NAME, "ringside-report", 0, 0, 0);
	/* Our own programs must not report about themselves, nor wait for a terminal. */
	setenv("RINGSIDE_PAGER", "", 1);
	if (watch_init(&reporter->watch, &settings) == OK)
		report(reporter);
	_exit(0);
}

/* As PID 1 of a container the command would inherit the reporter as a child that it does not know. */
static void start_reporter(void)
{
	static struct reporter reporter; /* too large for the stack */
	const char *mode = getenv("RINGSIDE_MODE");
	pid_t child;

	if (is_off("RINGSIDE_REPORT") || is_on("RINGSIDE_DISABLE") || getpid() == 1 ||
	    (mode && strcmp(mode, "off") == 0) || fcntl(STDERR_FILENO, F_GETFD) == -1)
		return;
	reporter = (struct reporter){ .pid = getpid(),
				      .parent = getppid(),
				      .start_ticks = start_of(getpid()),
				      .lock = -1,
				      .quiet_lock = -1,
				      .pidfd = -1 };
	if (reporter.start_ticks == 0)
		return;
#ifdef SYS_pidfd_open
	reporter.pidfd = fd_high((int)syscall(SYS_pidfd_open, getpid(), 0));
	if (reporter.pidfd != -1)
		fcntl(reporter.pidfd, F_SETFD, FD_CLOEXEC);
#endif
	child = fork();
	if (child == 0) {
		if (fork() == 0)
			become_reporter(&reporter);
		_exit(0);
	}
	while (child != -1 && waitpid(child, NULL, 0) == -1 && errno == EINTR)
		;
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
	if (!request.has_no_report)
		start_reporter();
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

	json_begin(&json, sink);
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
	json_finish(&json);
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
