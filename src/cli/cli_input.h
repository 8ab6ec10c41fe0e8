/* Input of commands: the PATHs of a command line, filters, reports; files that a job is compared with. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/compare.h"
#include "analysis/filter.h"
#include "analysis/timeline_report.h"
#include "cli/cli.h"
#include "common/status.h"
#include "doctor/doctor.h"
#include "import/expected.h"
#include "recording/recording.h"

/* Input of commands: the PATHs of a command line, filters, reports. */

/*
 * Unpacks an archive compressed with gzip or zstd, in one or several concatenated streams; the caller frees *bytes.
 * ERR_UNKNOWN: not compressed, or not an archive: read it like any other file. ERR_RANGE: more than `most` bytes.
 * ERR_FORMAT, ERR_TRUNCATED: damaged. ERR_NO_SPACE (memory), ERR_SYSTEM.
 */
enum status cli_unpack(const char *path, uint64_t most, unsigned char **bytes, size_t *length);

/* Reads the PATHs of a command line. */

/* For the help of commands that read recordings. */
#define CLI_INPUT_ABOUT                                                                     \
	"PATH is a trace file, a region (a process's shared-memory buffer), a log of NCCL " \
	"Inspector or CoMMA, a dump of PyTorch's Flight Recorder, a bundle, a directory "   \
	"of these, or @PID for a process on this host."
#define CLI_INPUT_NONE " Without one, the regions of this host are read."

#define CLI_INPUT_NOTHING                                                                     \
	"no recordings found on this host. Start a job with 'ringside run -- CMD' or pass a " \
	"trace directory"

struct cli_input {
	struct recording recording;
	const char **paths;
	size_t path_count;
	bool has_logs; /* the command reads NCCL_DEBUG output with --log */
	bool has_last_run; /* of a job that was started several times only the last, unless another is requested */
	size_t hidden; /* processes past recording.count, removed by a filter */
};

void cli_input_init(struct cli_input *input);
void cli_input_release(struct cli_input *input);

/* Adds a PATH, borrowed. */
void cli_input_path(struct cli_input *input, const char *path);

/* For pages whose operands are PATHs: `input` is a struct cli_input. */
int cli_input_take(const struct cli_said *said);

/*
 * Reads all PATHs; without one, this machine's regions. Returns 0, or the exit code after an error was reported.
 * Problems with single files are in input->recording.troubles.
 */
int cli_input_read(struct cli_input *input, unsigned int flags);

/*
 * Runs a command that reads PATHs: parses its arguments, checks them (`check` may be NULL), reads its operands, runs.
 * Both callbacks get the request, which contains the struct cli_input of the page's operands. `check` returns
 * CLI_GO_ON or the exit code, `run` the exit code.
 */
int cli_input_command(const struct cli_page *page, void *request, unsigned int flags,
		      int (*check)(void *request), int (*run)(void *request), int argc,
		      char **argv);

/*
 * Reports on stderr what could not be read, one line each, the first few of each kind, and if nothing is recorded.
 * Returns CLI_EXIT_UNKNOWN if anything was reported, else CLI_EXIT_DONE. has_cuts false: truncated files are not
 * reported, for commands that show for each process whether it ended.
 */
int cli_input_complain(const struct cli_input *input, bool has_cuts);

/* Does it affect the exit code? An unknown file in a directory does not. */
bool cli_input_is_trouble(const struct cli_input *input, const struct recording_trouble *trouble);

/* Expected number of operations, for progress. */
uint64_t cli_input_operations(const struct recording *recording);

/*
 * Filters. Every command that reads recordings has these rows, with the same words and the same errors:
 *
 *	CLI_OPTIONS_READING(struct request),    --job, --comm, --rank, --since, --until
 *	CLI_OPTIONS_PROCESSES(struct request),  the same without times
 *
 * They go into the field `chosen` of the request, a struct report_filter. Then cli_input_choose() or
 * cli_input_choose_processes() applies them. docs/COMMANDS.md describes their effect on each command.
 */
#define REPORT_OPTION_BY(request)                                                            \
	{                                                                                    \
		0, "by", "LIST",                                                             \
			"group by these, like function,size: comm, name (or group), kind, "  \
			"function, "                                                         \
			"size, datatype, algorithm, protocol, rank, host, tag, source, job", \
			CLI_CALL(request, chosen, report_take_by)                            \
	}

#define CLI_OPTIONS_PROCESSES(request)                                                        \
	{ 0, "job", "NAME", "only this job", CLI_TEXT(request, chosen.job) },                 \
		{ 0, "run", "N",                                                              \
		  "of a job that was started several times, only this run, by its number in " \
		  "ringside ls, or all",                                                      \
		  CLI_CALL(request, chosen, report_take_run) },                               \
		{ 0, "comm", "COMM",                                                          \
		  "only this communicator (process group), by name or hash; can be repeated", \
		  CLI_CALL(request, chosen.filter, report_take_comm) },                       \
		{ 0, "any-owner", NULL,                                                       \
		  "take processes of different users for one job if it has the same name",    \
		  CLI_CALL(request, chosen, report_take_any_owner) },                         \
	{                                                                                     \
		0, "rank", "RANKS", "only these ranks, like 0-7,12",                          \
			CLI_CALL(request, chosen.filter, report_take_ranks)                   \
	}

#define CLI_OPTIONS_TIMES(request)                                                            \
	{ 0, "since", "TIME",                                                                 \
	  "start here: 30s after the beginning, -30s before the end, a time of day (UTC) or " \
	  "2026-01-31T14:03:10Z",                                                             \
	  CLI_CALL(request, chosen.filter.since, report_take_time) },                         \
	{                                                                                     \
		0, "until", "TIME", "end here; times as with --since",                        \
			CLI_CALL(request, chosen.filter.until, report_take_time)              \
	}

#define CLI_OPTIONS_READING(request) CLI_OPTIONS_PROCESSES(request), CLI_OPTIONS_TIMES(request)

#define REPORT_FILTER_OPTIONS(request)                                                  \
	CLI_OPTIONS_READING(request),                                                   \
		{ 0, "op", "NAME", "only these operations, like AllReduce,AllGather",   \
		  CLI_CALL(request, chosen, report_take_functions) },                   \
	{                                                                               \
		0, "tag", "NUMBER", "only operations marked with this tag by the user", \
			CLI_CALL(request, chosen.filter, report_take_tag)               \
	}

/* Sets the fields `path` and `is_strict`. */
#define REPORT_OPTION_OUTPUT(request)                                                   \
	{                                                                               \
		'o', "output", "FILE", "write to this file instead of standard output", \
			CLI_TEXT(request, path)                                         \
	}
#define REPORT_OPTION_STRICT(request)                                                            \
	{                                                                                        \
		0, "strict", NULL,                                                               \
			"reject damaged, truncated or unrecognized files: report them and stop", \
			CLI_FLAG(request, is_strict)                                             \
	}

/* Used by these rows: `chosen` is a struct report_filter, `filter` a struct filter, `time` a struct filter_time. */
int report_take_by(const struct cli_said *said);
int report_take_functions(const struct cli_said *said);
int report_take_comm(const struct cli_said *said);
int report_take_ranks(const struct cli_said *said);
int report_take_tag(const struct cli_said *said);
int report_take_run(const struct cli_said *said);
int report_take_any_owner(const struct cli_said *said);
int report_take_time(const struct cli_said *said);

/* All zero: everything. */
enum { REPORT_RUN_ALL = INT32_MAX };

struct report_filter {
	struct filter filter;
	const char *job;		       /* NULL: all */
	uint32_t run;			       /* REPORT_RUN_...: 0: not given */
	uint32_t by;			       /* enum tally_by bits; 0: not given */
	char *functions[FILTER_FUNCTIONS_MAX]; /* owned copies; the filter borrows them */
};

void report_filter_release(struct report_filter *chosen);

/*
 * Is this process of the run asked for? By default the last run of its job, and runs that overlap it.
 */
bool cli_run_has(uint32_t run, const struct recording_process *process);

/* Appends "without 2 earlier runs of the same name (--run 1-2 or all)", if the default leaves any out. */
void cli_run_say_earlier(char *text, size_t size, const struct recording *recording);

/*
 * Removes other jobs, and checks that communicators, ranks and operations exist. Returns 0, or the exit code after an
 * error was reported.
 */
int cli_input_choose(struct cli_input *input, const struct report_filter *chosen,
		     const struct cli_page *page);

/* The same, and removes whole processes: for commands that list processes. */
int cli_input_choose_processes(struct cli_input *input, const struct report_filter *chosen,
			       const struct cli_page *page);

/* --job: 0, or the exit code after an error that lists the jobs was reported. */
int cli_job_check(const struct recording *recording, const char *name);

/* Makes a report of the PATHs, with progress and error messages. For report, diff and baseline. */

/*
 * Reports on stderr what could not be read. is_strict: also foreign and truncated files, and all of these affect the
 * exit code. Returns CLI_EXIT_UNKNOWN if there were problems or no recordings were found.
 */
int report_read_troubles(const struct cli_input *input, bool is_strict);

/* Reports a failed reading and returns the exit code. */
int cli_cannot_read(enum status status);

/*
 * Reports what could not be read of a process; other problems were reported when its files were opened. Returns 0 if
 * there is nothing to report.
 */
int cli_walk_complain(const struct recording_process *process, enum status status,
		      const struct recording_walk *walk);

/*
 * Makes the report, with a progress line. Returns 0, or the exit code after an error was reported; then there is
 * nothing to release.
 */
int report_read(struct timeline_report *report, struct cli_input *input,
		const struct report_filter *chosen, const struct timeline_options *options,
		const struct cli_page *page);

/* --strict: reports damaged records. CLI_EXIT_UNKNOWN if there are any. */
int report_read_strictly(const struct timeline_report *report);

/* Files that a job is compared with: a baseline, expected bandwidths. */

/*
 * Reads a baseline; "-" is standard input. Returns 0, or CLI_EXIT_UNKNOWN after an error was reported; then there is
 * nothing to release.
 */
int baseline_file_read(struct baseline *baseline, const char *path);

/*
 * Compares a run with expected bandwidths (src/import/expected.h), measured by nccl-tests.
 *
 * In nccl-tests all ranks call at the same time, so there is no waiting. Therefore transfers of the run are compared:
 * durations without waiting, if ranks could be matched.
 */

enum diff_expected_found {
	DIFF_EXPECTED_NOT = 0, /* not a file of expected bandwidths */
	DIFF_EXPECTED_FOUND = 1,
	DIFF_EXPECTED_BAD = 2, /* unusable; the error was reported */
};

/* Is it a file of expected bandwidths? If found, the caller releases *expected. */
enum diff_expected_found diff_expected_read(struct expected *expected, const char *path);

/* Prints a line on stderr if ranks shared a GPU: a job with one GPU per rank is always faster. */
void diff_expected_warn(const struct expected *expected, const char *path);

/* Fields that the run must be grouped by: at least function, size and communicator. */
uint32_t diff_expected_by(uint32_t by);

/*
 * Like compare_make(). custom[0] of the run was made with diff_expected_by(). is_run_first: the run is A and the
 * expectation B. Rows that were not measured are left out and counted in *left_out. ERR_NO_SPACE.
 */
enum status diff_expected_make(struct compare *compare, const struct timeline_report *run,
			       const struct expected *expected, double threshold, bool is_run_first,
			       size_t *left_out);

#endif
