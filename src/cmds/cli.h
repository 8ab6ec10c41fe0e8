/* Shared by all commands: help pages, options, exit codes, messages, text output, progress. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "output/sink.h"

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

#endif
