/* What commands share: help pages, options, exit codes, messages, text output, progress. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "output/sink.h"

/*
 * A command's page: one table from which its options are parsed, its help is printed and its completions are
 * generated, so that they cannot disagree. tests/cli/manual.t compares it with man/.
 */

struct cli_page;
struct cli_option;

/* One option or operand of a command line. */
struct cli_said {
	const struct cli_page *page;
	const struct cli_option *option; /* of an operand: the option before it, or NULL */
	const char *value;		 /* NULL: the option has none */
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
	/* Where it goes: one of the macros below. */
	enum cli_kind kind;
	size_t target; /* offset into the command's request */
	cli_take_fn *take;
	int64_t least, most; /* 0, 0: no limits */
	/* The error for a bad value: "--hang 7x" and this. NULL, for numbers: made from the limits. */
	const char *like;
	const char *less, *more; /* the same for values beyond the limits; NULL: `like` */
	bool is_view; /* changes how output is shown, not what is done; see `work` below */
};

/* The offset of a field; does not compile for a field of another type. */
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

/* The page's fields for operands, as CLI_CALL. */
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
	/* Offset of a const char *: the name of the last option that is no is_view, "" for an operand; 0: not kept. */
	size_t work;
	bool stops_at_operand; /* what follows the first operand is not ours */
};

/* Rows that several commands have. */
#define CLI_OPTION_END       \
	{                    \
		.name = NULL \
	}
/*
 * How output is shown. Every command that prints text has CLI_OPTIONS_SHOWING, every one that shows progress or
 * remarks at least CLI_OPTION_QUIET. They have no field in the request: see cli_text(), cli_has_color(), cli_is_quiet().
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

/* Of a request with the field is_json. */
#define CLI_OPTION_JSON(request)                                            \
	{                                                                   \
		'j', "json", NULL, "write JSON", CLI_FLAG(request, is_json) \
	}

/* What the rows above call. */
int cli_take_quiet(const struct cli_said *said);
int cli_take_color(const struct cli_said *said);
int cli_take_no_pager(const struct cli_said *said);

bool cli_is_quiet(void);

/* On stdout: --color decides, else a terminal without NO_COLOR. */
bool cli_has_color(void);

/*
 * Text on stdout that somebody reads; cli_finish() ends it. On a terminal it is held back until then, to be colored (headings,
 * and words like error and warning; not where the text has colors already) and, when it is longer than the screen, to
 * go through a pager: RINGSIDE_PAGER, PAGER or `less -FRX`. An empty one or `cat`, or one that cannot be run, is none.
 */
void cli_text(struct sink *sink);

/* Print the help on stdout. Returns an exit code. */
int cli_page_help(const struct cli_page *page);

/* An option that every page has and no help shows: print the table of options, for shell completions.
 * One line each: letter or "-", name, argument or "-", help; tabs between them. The first is "operands" and theirs. */
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

/* The exit code of two parts of a command. Trouble that was found stands, whatever else could not be read. */
int cli_exit_join(int a, int b);

/* "ringside ls: ...", one line on stderr. Returns CLI_EXIT_UNKNOWN. */
int cli_error(const char *format, ...) PRINTF_LIKE(1, 2);

/* The same for a remark that is no error. Nothing with --quiet. */
void cli_note(const char *format, ...) PRINTF_LIKE(1, 2);

/* "ringside ls: ... (see 'ringside ls --help')" Returns CLI_EXIT_USAGE. */
int cli_usage(const struct cli_page *page, const char *format, ...) PRINTF_LIKE(2, 3);

/* An option that takes a list elsewhere, and one value here: 0, or CLI_EXIT_USAGE after a list was refused. */
int cli_one_value(const struct cli_page *page, const char *option, const char *value);

/* The word of the list that was probably meant, or NULL. */
const char *cli_nearest(const char *word, const char *const *list, size_t count);

/* Width of the terminal on stdout; 0 when it is none. COLUMNS wins. */
unsigned int cli_width(void);

/* Flush stdout's sink and release it. Returns `exit_code`, or CLI_EXIT_UNKNOWN when the output could not be
 * written; that is reported in one line, unless the reader closed the pipe. */
int cli_finish(struct sink *sink, int exit_code);

/* Memory for commands, which end with an error when there is none. */

void *cli_realloc(void *before, size_t bytes);

/* Ends the program with that error. */
void cli_no_memory(void) __attribute__((noreturn));

/* Returned by cli_parse() when the command should go on: not an exit code. */
enum { CLI_GO_ON = -1 };

/* Parse a command line by its page into `request`: short and long options, `--`, suggestions for typing
 * errors. CLI_GO_ON, or the exit code after help was shown or an error was reported. */
int cli_parse(const struct cli_page *page, void *request, int argc, char **argv);

/* The same for pages with stops_at_operand: *operands is where in argv they begin. */
int cli_parse_until(const struct cli_page *page, void *request, int argc, char **argv,
		    int *operands);

/*
 * Progress of long work: one line on stderr that rewrites itself, when that is a terminal and the work takes
 * more than a second. Nothing otherwise, and nothing with --quiet.
 *
 *	  export  43 %  12,345,678 of 28,000,000 operations, 7 s left
 *
 *	cli_progress_start(&progress, "export", "operations", total);
 *	cli_progress_at(&progress, done);     cheap: after every few hundred of them
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
	bool is_shown; /* there is a line to remove */
};

void cli_progress_start(struct cli_progress *progress, const char *what, const char *unit,
			uint64_t total);
void cli_progress_at(struct cli_progress *progress, uint64_t done);
void cli_progress_hide(struct cli_progress *progress);
void cli_progress_end(struct cli_progress *progress);

/* The same by a part of the total; `progress` is a struct cli_progress. For callbacks that get fractions. Always true. */
bool cli_progress_fraction(double fraction, void *progress);

/* The same as cli_progress_at() at a given time: for tests. */
void cli_progress_at_time(struct cli_progress *progress, uint64_t done, uint64_t now_ns);

#endif
