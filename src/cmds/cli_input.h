/* Input of commands: the PATHs of a command line, filters, reports. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/filter.h"
#include "analysis/timeline_report.h"
#include "cmds/cli.h"
#include "common/status.h"
#include "recording/recording.h"

/*
 * The archive in a file that is packed with gzip or zstd, in one stream or in many one after the other: *bytes is the
 * caller's to free(). ERR_UNKNOWN: it is not packed, or what is packed is no archive: read it as any other. ERR_RANGE:
 * more than `most` bytes. ERR_FORMAT, ERR_TRUNCATED: it is damaged. ERR_NO_SPACE (memory), ERR_SYSTEM.
 */
enum status cli_unpack(const char *path, uint64_t most, unsigned char **bytes, size_t *length);

/* Reading what the PATHs of a command line lead to. */

/* For the help of every command that reads. */
#define CLI_INPUT_ABOUT                                                                     \
	"PATH is a trace file, a region (a process's shared-memory buffer), a log of NCCL " \
	"Inspector or CoMMA, a bundle, a directory "                                        \
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
	size_t hidden; /* processes behind recording.count that a filter left out */
};

void cli_input_init(struct cli_input *input);
void cli_input_release(struct cli_input *input);

/* One more PATH, borrowed. */
void cli_input_path(struct cli_input *input, const char *path);

/* The same for the pages of commands whose operands are PATHs: `input` is a struct cli_input. */
int cli_input_take(const struct cli_said *said);

/* Read all of it; without a path, this machine's regions. 0, or the exit code after an error was
 * reported. Trouble with single files is in input->recording.troubles. */
int cli_input_read(struct cli_input *input, unsigned int flags);

/*
 * A whole command that reads PATHs: parse its words, look at them (`check` may be NULL), read what its operands
 * lead to, run. Both get the request, whose struct cli_input is where the page's operands go. `check` returns
 * CLI_GO_ON or the exit code, `run` the exit code.
 */
int cli_input_command(const struct cli_page *page, void *request, unsigned int flags,
		      int (*check)(void *request), int (*run)(void *request), int argc,
		      char **argv);

/* Report on stderr what could not be read: a line each, the first few of each kind; and that nothing is recorded.
 * CLI_EXIT_UNKNOWN when there was anything to report, else CLI_EXIT_DONE. Truncated files are not reported where
 * has_cuts is false: commands that show for each process whether it ended need no extra line. */
int cli_input_complain(const struct cli_input *input, bool has_cuts);

/* Should the exit code show it? Not for an unknown file in a directory. */
bool cli_input_is_trouble(const struct cli_input *input, const struct recording_trouble *trouble);

/* How many operations are to be expected: for progress. */
uint64_t cli_input_operations(const struct recording *recording);

/*
 * Filters. Every command that reads recordings has these rows, with the same words and the same errors:
 *
 *	CLI_OPTIONS_READING(struct request),    --job, --comm, --rank, --since, --until
 *	CLI_OPTIONS_PROCESSES(struct request),  the same without times, for what has none
 *
 * They go into the field `chosen` of the request, a struct report_filter. Then cli_input_choose() or
 * cli_input_choose_processes() applies them. docs/COMMANDS.md says what each command makes of them.
 */
#define REPORT_OPTION_BY(request)                                                                \
	{                                                                                        \
		0, "by", "LIST",                                                                 \
			"group by these, like function,size: comm, name, kind, function, size, " \
			"datatype, algorithm, protocol, rank, host, tag, source, job",           \
			CLI_CALL(request, chosen, report_take_by)                                \
	}

#define CLI_OPTIONS_PROCESSES(request)                                                        \
	{ 0, "job", "NAME", "only this job", CLI_TEXT(request, chosen.job) },                 \
		{ 0, "comm", "COMM",                                                          \
		  "only this communicator (process group), by name or hash; can be repeated", \
		  CLI_CALL(request, chosen.filter, report_take_comm) },                       \
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

/* Into its fields `path` and `is_strict`. */
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

/* What these rows call: `chosen` is a struct report_filter, `filter` a struct filter, `time` a struct filter_time. */
int report_take_by(const struct cli_said *said);
int report_take_functions(const struct cli_said *said);
int report_take_comm(const struct cli_said *said);
int report_take_ranks(const struct cli_said *said);
int report_take_tag(const struct cli_said *said);
int report_take_time(const struct cli_said *said);

/* All zero: everything. */
struct report_filter {
	struct filter filter;
	const char *job;		       /* NULL: all */
	uint32_t by;			       /* enum tally_by bits, 0: none was asked for */
	char *functions[FILTER_FUNCTIONS_MAX]; /* own copies, that the filter borrows */
};

void report_filter_release(struct report_filter *chosen);

/* Leave the other jobs out, and check that the communicators, ranks and operations exist. 0, or the exit code after an
 * error was reported. */
int cli_input_choose(struct cli_input *input, const struct report_filter *chosen,
		     const struct cli_page *page);

/* The same, and leave out whole processes: for commands that list processes. */
int cli_input_choose_processes(struct cli_input *input, const struct report_filter *chosen,
			       const struct cli_page *page);

/* --job: 0, or the exit code after it was reported that there is no such job, and which there are. */
int cli_job_check(const struct recording *recording, const char *name);

/* Make a report of what the PATHs lead to, with progress and error messages. For report, diff and baseline. */

/*
 * What could not be read is reported on stderr. is_strict: everything that is not as it should be is, files of
 * others and files that end early too, and any of it is an exit code. Returns
 * CLI_EXIT_UNKNOWN when there was some, and when no recordings found.
 */
int report_read_troubles(const struct cli_input *input, bool is_strict);

/* Make the report, with a line of progress. 0, or the exit code after an error was reported; then there is
 * nothing to release. */
int report_read(struct timeline_report *report, struct cli_input *input,
		const struct report_filter *chosen, const struct timeline_options *options,
		const struct cli_page *page);

/* --strict: records that turned out to be damaged are reported. CLI_EXIT_UNKNOWN then. */
int report_read_strictly(const struct timeline_report *report);

#endif
