/*
 * Shared by all commands and programs: help pages, options, exit codes, messages, text output, progress; finding and
 * running programs; output files.
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/status.h"
#include "output/sink.h"

/* Shared by all commands: help pages, options, exit codes, messages, text output, progress. */

/*
 * A command's page: one table for parsing options, printing help and generating completions, so that they always
 * agree. tests/cli/manual.t compares it with man/.
 */

struct cli_page;
struct cli_option;

/* One option or operand of a command line. */
struct cli_said {
	const struct cli_page *page;
	const struct cli_option *option; /* for an operand: the preceding option, or NULL */
	const char *value;		 /* NULL: none */
	void *target;
};

/* 0, or the exit code after an error was reported. */
typedef int cli_take_fn(const struct cli_said *said);

enum cli_kind {
	CLI_KIND_FLAG,	/* bool: true when given */
	CLI_KIND_CLEAR, /* bool: false when given */
	CLI_KIND_TEXT,	/* const char *, borrowed */
	CLI_KIND_TIME,	/* uint64_t, ns */
	CLI_KIND_SIZE,	/* uint64_t, bytes */
	CLI_KIND_INT,	/* int */
	CLI_KIND_U32,	/* uint32_t */
	CLI_KIND_U64,	/* uint64_t */
	CLI_KIND_CALL,	/* `take` handles it */
};

struct cli_option {
	char letter;	   /* 0: it has none */
	const char *name;  /* without the dashes; NULL ends the table */
	const char *value; /* name of its argument; NULL: it has none */
	const char *help;
	/* Where the value is stored: one of the macros below. */
	enum cli_kind kind;
	size_t target; /* offset into the command's request */
	cli_take_fn *take;
	int64_t least, most; /* 0, 0: no limits */
	/* Error text for a bad value, after "--hang 7x". NULL for numbers: generated from the limits. */
	const char *like;
	const char *less, *more; /* for values beyond the limits; NULL: `like` */
	bool is_view;		 /* affects only the display; see `work` below */
};

/* The offset of a field; fails to compile if the field has another type. */
#define CLI_AT(request, field, type)                                                           \
	(offsetof(request, field) +                                                            \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((request *)0)->field), type) \
				 ? 1                                                           \
				 : -1]))

#define CLI_FLAG(request, field) .kind = CLI_KIND_FLAG, .target = CLI_AT(request, field, bool)
#define CLI_CLEAR(request, field) .kind = CLI_KIND_CLEAR, .target = CLI_AT(request, field, bool)
#define CLI_TEXT(request, field) \
	.kind = CLI_KIND_TEXT, .target = CLI_AT(request, field, const char *)
#define CLI_TIME(request, field, least_ns, most_ns)                                             \
	.kind = CLI_KIND_TIME, .target = CLI_AT(request, field, uint64_t), .least = (least_ns), \
	.most = (most_ns)
#define CLI_SIZE(request, field) .kind = CLI_KIND_SIZE, .target = CLI_AT(request, field, uint64_t)
#define CLI_INT(request, field, from, to) \
	.kind = CLI_KIND_INT, .target = CLI_AT(request, field, int), .least = (from), .most = (to)
#define CLI_U32(request, field, from, to)                                                  \
	.kind = CLI_KIND_U32, .target = CLI_AT(request, field, uint32_t), .least = (from), \
	.most = (to)
#define CLI_U64(request, field, from, to)                                                  \
	.kind = CLI_KIND_U64, .target = CLI_AT(request, field, uint64_t), .least = (from), \
	.most = (to)
/* Handled by a function, which gets the field or the whole request. */
#define CLI_CALL(request, field, function) \
	.kind = CLI_KIND_CALL, .target = offsetof(request, field), .take = (function)
#define CLI_CALL_ALL(function) .kind = CLI_KIND_CALL, .take = (function)

/* For the page's operand fields, like CLI_CALL. */
#define CLI_OPERANDS(request, field, function) \
	.operand = (function), .operand_target = offsetof(request, field)

#define CLI_SECONDS(n) (INT64_C(1000000000) * (n))

/* An option of another tool that users may try here. */
struct cli_other {
	char letter;	     /* 0: it has none */
	const char *name;    /* NULL ends the table */
	const char *instead; /* what to use here */
};

struct cli_example {
	const char *command; /* NULL ends the table */
	const char *what;
};

struct cli_page {
	const char *name;
	const char *operands; /* "[PATH...]", "" */
	const char *about;    /* paragraphs, each ended by a newline */
	const struct cli_option *options;
	const struct cli_example *examples;
	const struct cli_other *elsewhere; /* may be NULL */
	cli_take_fn *operand;		   /* NULL: none is expected */
	size_t operand_target;		   /* offset into the request */
	/* Offset of a const char *: the name of the last option without is_view, "" for an operand; 0: not kept. */
	size_t work;
	bool stops_at_operand; /* everything after the first operand belongs to another program */
};

/* Rows shared by several commands. */
#define CLI_OPTION_END       \
	{                    \
		.name = NULL \
	}
/*
 * Display options. Every command that prints text has CLI_OPTIONS_SHOWING; every one that shows progress or remarks
 * has at least CLI_OPTION_QUIET. They have no field in the request: see cli_text(), cli_has_color(), cli_is_quiet().
 */
#define CLI_OPTION_QUIET                                                \
	{                                                               \
		'q', "quiet", NULL, "print no progress and no remarks", \
			CLI_CALL_ALL(cli_take_quiet), .is_view = true   \
	}
#define CLI_OPTIONS_SHOWING                                    \
	{ 0,                                                   \
	  "color",                                             \
	  "WHEN",                                              \
	  "color the output: auto (default), always or never", \
	  CLI_CALL_ALL(cli_take_color),                        \
	  .is_view = true },                                   \
		{ 0,                                           \
		  "no-pager",                                  \
		  NULL,                                        \
		  "print long output without a pager",         \
		  CLI_CALL_ALL(cli_take_no_pager),             \
		  .is_view = true },                           \
		CLI_OPTION_QUIET

/* For requests with a field is_json. */
#define CLI_OPTION_JSON(request)                                            \
	{                                                                   \
		'j', "json", NULL, "write JSON", CLI_FLAG(request, is_json) \
	}

/* Used by the rows above. */
int cli_take_quiet(const struct cli_said *said);
int cli_take_color(const struct cli_said *said);
int cli_take_no_pager(const struct cli_said *said);

/* --gpu-hour-price, into a double. */
int cli_take_price(const struct cli_said *said);

bool cli_is_quiet(void);

/* For stdout: --color decides, else whether it is a terminal and NO_COLOR is not set. */
bool cli_has_color(void);

/*
 * Text output on stdout, ended by cli_finish(). On a terminal it is buffered until then, to color it (headings and
 * words like error and warning, unless the text has colors already) and to page it if it is longer than the screen.
 * The pager is RINGSIDE_PAGER, PAGER or `less -FRX`; none if empty, `cat`, or it cannot be run.
 */
void cli_text(struct sink *sink);

/* cli_text(), or for JSON stdout as it is. */
void cli_begin(struct sink *sink, bool is_json);

/* Print the help on stdout. Returns an exit code. */
int cli_page_help(const struct cli_page *page);

/*
 * A hidden option of every page: prints the table of options, for shell completions. One line each: letter or "-",
 * name, argument or "-", help, separated by tabs. The first line is "operands" and their text.
 */
#define CLI_LIST_OPTIONS "--list-options"
int cli_page_list(const struct cli_page *page);

/*
 * Exit codes of every command and program, except `ringside run`, which ends with the code of its job.
 * docs/COMMANDS.md and ringside(1) have the same table; tests/cli/exit_codes.t checks every command.
 */
enum cli_exit {
	CLI_EXIT_DONE = 0, /* done; nothing is wrong */
	CLI_EXIT_TROUBLE =
		1, /* trouble was found: hang, straggler, missing records, slower, wrong results */
	CLI_EXIT_USAGE = 2, /* wrong usage */
	/* Could not tell: nothing recorded, input missing or unreadable, no GPU, no agent answered, output not
	 * written. */
	CLI_EXIT_UNKNOWN = 3,
};

/*
 * Combines the exit codes of two parts of a command. Trouble that was found takes precedence over input that could
 * not be read.
 */
int cli_exit_join(int a, int b);

/* "ringside ls: ...", one line on stderr. Returns CLI_EXIT_UNKNOWN. */
int cli_error(const char *format, ...) PRINTF_LIKE(1, 2);

/* Like cli_error(), for remarks. Silent with --quiet. */
void cli_note(const char *format, ...) PRINTF_LIKE(1, 2);

/* "ringside ls: ... (see 'ringside ls --help')" Returns CLI_EXIT_USAGE. */
int cli_usage(const struct cli_page *page, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * For an option that takes a list in other commands but one value here: 0, or CLI_EXIT_USAGE after a list was
 * rejected.
 */
int cli_one_value(const struct cli_page *page, const char *option, const char *value);

/* The entry of the list that was probably meant, or NULL. */
const char *cli_nearest(const char *word, const char *const *list, size_t count);

/* Width of the terminal on stdout; 0 if it is not a terminal. COLUMNS takes precedence. */
unsigned int cli_width(void);

/*
 * Flushes and releases the sink of stdout. Returns `exit_code`, or CLI_EXIT_UNKNOWN if the output could not be
 * written; that is reported in one line, unless the reader closed the pipe.
 */
int cli_finish(struct sink *sink, int exit_code);

/* Allocation for commands: out of memory ends the program with an error. */

void *cli_realloc(void *before, size_t bytes);

/* A whole file, or stdin for "-"; free() it. NULL after an error message, also for one of more than `most` bytes. */
char *cli_read_file(const char *path, size_t most, size_t *length);

/* Reports out of memory and exits. */
void cli_no_memory(void) __attribute__((noreturn));

/* Returned by cli_parse() to continue: not an exit code. */
enum { CLI_GO_ON = -1 };

/*
 * Parses a command line into `request` as described by its page: short and long options, `--`, suggestions for typos.
 * Returns CLI_GO_ON, or the exit code after help or an error was printed.
 */
int cli_parse(const struct cli_page *page, void *request, int argc, char **argv);

/* The same for pages with stops_at_operand: *operands is the index of the first operand in argv. */
int cli_parse_until(const struct cli_page *page, void *request, int argc, char **argv,
		    int *operands);

/*
 * Progress of long work: one line on stderr that rewrites itself, when that is a terminal and the work takes
 * more than a second. Nothing otherwise, and nothing with --quiet.
 *
 *	  export  43 %  12,345,678 of 28,000,000 operations, 7 s left
 *
 *	cli_progress_start(&progress, "export", "operations", total);
 *	cli_progress_at(&progress, done);     cheap: call it every few hundred operations
 *	cli_progress_hide(&progress);         before something else is written to stderr
 *	cli_progress_end(&progress);          removes the line
 */

struct cli_progress {
	const char *what; /* both borrowed */
	const char *unit;
	uint64_t total; /* 0: unknown */
	uint64_t done;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t next_ns;  /* when to write the line again */
	int fd;
	bool is_on;    /* stderr is a terminal */
	bool is_shown; /* a line is on the screen */
};

void cli_progress_start(struct cli_progress *progress, const char *what, const char *unit,
			uint64_t total);
void cli_progress_at(struct cli_progress *progress, uint64_t done);
void cli_progress_hide(struct cli_progress *progress);
void cli_progress_end(struct cli_progress *progress);

/* The same by fraction of the total, for callbacks; `progress` is a struct cli_progress. Always true. */
bool cli_progress_fraction(double fraction, void *progress);

/* Like cli_progress_at() at a given time: for tests. */
void cli_progress_at_time(struct cli_progress *progress, uint64_t done, uint64_t now_ns);

/* Finds the plugin and the other programs of ringside; runs programs. */

#define CLI_PLUGIN_FILE "libnccl-profiler-ringside.so"

/*
 * Finds it next to this program, or where `make install` and packages put it. If it is in none of these, returns
 * false and `looked` lists them. Both are absolute paths.
 */
bool cli_plugin_find(char *path, size_t size, char *looked, size_t looked_size);

/* Would the loader find this file by its bare name? */
bool cli_plugin_is_on_path(const char *path);

/* Is there another file of that name in LD_LIBRARY_PATH, which the loader would load instead? */
bool cli_plugin_is_hidden(const char *path);

/* Does a value of NCCL_PROFILER_PLUGIN mean this plugin? */
bool cli_plugin_is_ours(const char *value);

/*
 * The deepest directory of RINGSIDE_DIR that exists; placeholders are not known yet. 0: trace files can be written there;
 * else errno.
 */
int cli_traces_find(const char *pattern, char *found, size_t size);

/* Commands that are separate programs, because they need extra libraries or are not wanted on every node. */

/*
 * Finds a program next to this one, or where packages put it. If there is none, returns false and *path is the
 * directory of this program.
 */
bool cli_become_find(const char *program, char *path, size_t size);

/* Executes that program; argv[0] is replaced. Returns only on failure, with the exit code after one line. */
int cli_become(const char *program, char **argv);

/* A program is in no place of cli_become_find(): what is missing, and the commands that install it. */
enum { CLI_MISSING_BYTES = 4600 };
void cli_missing(char text[CLI_MISSING_BYTES], const char *program, const char *directory);

/* Runs a program and captures its output, with limits on time and size. */

struct cli_capture {
	char *bytes; /* standard output, terminated; the caller frees it. NULL: it did not run */
	size_t length;
	bool is_cut;   /* output was longer */
	int exit_code; /* -1: killed by a signal or by us */
	char why[300]; /* error message if it did not run or failed */
};

/*
 * words[0] is looked up in PATH. Standard input is /dev/null; `fd` becomes its descriptor 3 unless -1, and it
 * inherits no others. The first line of standard error goes to `why`. OK: it ran and exited by itself, with any code.
 * ERR_SYSTEM: it could not be started, or timed out and was killed; if it cannot be killed it is abandoned after a
 * second. Prints nothing.
 */
enum status cli_capture(struct cli_capture *capture, const char *const *words, int fd,
			unsigned int timeout_s, size_t most_bytes);

/*
 * Output files are complete or absent.
 *
 * Until it is complete and on disk, a file has no name (O_TMPFILE), so nothing is left behind even after SIGKILL or a
 * power cut; then it replaces the old file in one step. If the file system does not support that (NFS) or fails to
 * name the file, and in directories of files, it has a temporary name in the same directory (".ringside-PID-N.part"),
 * which is removed on Ctrl-C, SIGTERM, SIGHUP, SIGQUIT, exit() or an error, but not after SIGKILL or a power cut.
 * Single-threaded.
 *
 *	if (cli_output_open(&output, path) != 0)
 *		return CLI_EXIT_UNKNOWN;
 *	sink_text(&output.sink, ...);
 *	return cli_output_commit(&output, exit_code);
 *
 * These functions report each failure once, in one line.
 */

struct cli_pending; /* a path to remove if the command ends early */

struct cli_output {
	struct sink sink; /* write here */
	char *path;	  /* final name; "-": standard output */
	const struct cli_pending *pending;
	int fd;
	bool is_own_fd;
	bool is_in_tree;  /* moved with its tree */
	bool is_nameless; /* no name until it is complete */
};

/*
 * Begins a file. "-" is standard output, which is only flushed at the end; pipes, the terminal, /dev/null and /dev/full
 * are written directly, too. A symbolic link is followed and its target replaced. A read-only file is rejected even if
 * its directory is writable. Refused are files and pipes of another user, links that another user can change, and
 * devices. Returns 0, or after an error was reported CLI_EXIT_USAGE (refused) or CLI_EXIT_UNKNOWN; then *output needs no
 * release.
 */
int cli_output_open(struct cli_output *output, const char *path);

/* The same for text: "-" is cli_text(). */
int cli_output_open_text(struct cli_output *output, const char *path);

/*
 * Checks that it can be written, for commands that work long before they write. Leaves nothing behind. Returns as
 * cli_output_open().
 */
int cli_output_check(const char *path);

/*
 * Moves the complete file into place. Returns exit_code, or CLI_EXIT_UNKNOWN after an error was reported. Always
 * releases *output.
 */
int cli_output_commit(struct cli_output *output, int exit_code);

/* Discards the file silently. Allowed after a failed open or a commit. */
void cli_output_discard(struct cli_output *output);

/* Is this standard output on a terminal? Then binary formats are rejected and no progress is shown. */
bool cli_output_is_terminal(const char *path);

/*
 * A directory of files. They are written into a temporary directory next to it, which replaces it at the end. It may
 * exist if it is empty. If it is not and CLI_OUTPUT_FORCE is given, the new files are moved into it one by one: files
 * of the same name are replaced, others stay. It never contains a partial file, but briefly a mix of old and new
 * ones.
 */
enum cli_output_flag { CLI_OUTPUT_FORCE = 1u << 0 };

struct cli_tree {
	char *path;	 /* as given, without trailing '/' */
	char *temporary; /* the directory to write to */
	const struct cli_pending *pending;
	bool is_merged; /* at the end, move files one by one */
	/*
	 * Set by the caller, borrowed; NULL: none. When files are moved one by one, older files with this prefix are
	 * removed from directories that get new files.
	 */
	const char *replaces;
};

/*
 * Returns 0, or after an error was reported CLI_EXIT_USAGE (a directory of another user) or CLI_EXIT_UNKNOWN (not empty,
 * not a directory, cannot be created).
 */
int cli_tree_open(struct cli_tree *tree, const char *path, unsigned int flags);

/*
 * The path to write a file to, such as "job=7/rank=0/part-0.parquet": its directories are created, and it is moved or
 * removed with the tree. Flushing it to disk is up to the caller. NULL after an error was reported. The caller frees
 * it.
 */
char *cli_tree_path(struct cli_tree *tree, const char *name);

/* The same, opened; ended by cli_output_commit(). Errors show its final name. */
int cli_tree_file(struct cli_tree *tree, struct cli_output *output, const char *name);

/* As for files. */
int cli_tree_commit(struct cli_tree *tree, int exit_code);
void cli_tree_discard(struct cli_tree *tree);

#endif
