/* Telling people what went wrong: one line on stderr, with what, where and what to do. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "output/sink.h"

/*
 * What a command says about itself: one table from which its options are parsed and its help is
 * written, so that the two cannot disagree. tests/cli/manual.t compares it with man/.
 */

struct cli_option {
	int id;		   /* what cli_next() gives back: the letter, or from CLI_LONG_ONLY on */
	const char *name;  /* without the dashes; NULL ends the table */
	const char *value; /* what its argument is called; NULL: it has none */
	const char *help;
};

/* Ids from here on have no letter. */
enum { CLI_LONG_ONLY = 256 };

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
	const struct cli_option
		*elsewhere;    /* another tool's, not taken: `help` says what is; may be NULL */
	bool stops_at_operand; /* what follows the first operand is not ours */
};

/* Rows that several commands have. */
#define CLI_OPTION_END              \
	{                           \
		0, NULL, NULL, NULL \
	}
#define CLI_OPTION_JSON                                       \
	{                                                     \
		'j', "json", NULL, "write JSON, for programs" \
	}

/* The help, on stdout. Gives back an exit code. */
int cli_page_help(const struct cli_page *page);

enum cli_exit {
	CLI_EXIT_DONE = 0,
	CLI_EXIT_TROUBLE = 1,
	CLI_EXIT_USAGE = 2,
};

/* "ringside: ..." Gives back CLI_EXIT_TROUBLE. */
int cli_error(const char *format, ...) PRINTF_LIKE(1, 2);

/* "ringside ls: ... (see 'ringside ls --help')" Gives back CLI_EXIT_USAGE. */
int cli_usage(const struct cli_page *page, const char *format, ...) PRINTF_LIKE(2, 3);

/* An option that takes a list elsewhere, and one value here: 0, or CLI_EXIT_USAGE after a list was refused. */
int cli_one_value(const struct cli_page *page, const char *option, const char *value);

/* The word of the list that is meant most likely, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *list, size_t count);

/* How wide the terminal on stdout is; 0 when it is none. COLUMNS wins. */
unsigned int cli_width(void);

/* Flush stdout's sink and release it. Gives back `exit_code`, or 1 when the output did not get out:
 * said in one line, but for a reader that closed the pipe, who knows. */
int cli_finish(struct sink *sink, int exit_code);

/* Memory for commands: they end, with a line, when there is none. */

void *cli_realloc(void *before, size_t bytes);

/* Ends the program: for what failed because there was no memory. */
void cli_no_memory(void) __attribute__((noreturn));

/* Parsing a command line by its page: short and long options, `--`, suggestions for typing errors. */

/* What cli_next() gives back beside the ids of the page's options. */
enum cli_found {
	CLI_END = -1,	  /* nothing more; with stops_at_operand argv[at] begins the operands */
	CLI_OPERAND = -2, /* value is it */
	CLI_STOP = -3,	  /* help was shown or an error was told: return args.exit_code */
};

struct cli_args {
	const struct cli_page *page;
	int argc;
	char **argv;
	int at;		    /* the next word */
	const char *bundle; /* letters of the same word that are still to come, or NULL */
	bool only_operands; /* after `--` */
	int exit_code;
	const char *value; /* of the option or the operand found last */
};

void cli_args_init(struct cli_args *args, const struct cli_page *page, int argc, char **argv);
int cli_next(struct cli_args *args);

/*
 * How far long work has come: one line on stderr that rewrites itself, when that is a terminal and
 * the work takes more than a second. Nothing at all otherwise.
 *
 *	  export  43 %  12,345,678 of 28,000,000 operations, 7 s left
 *
 *	cli_progress_start(&progress, "export", "operations", total);
 *	cli_progress_at(&progress, done);     cheap: after every few hundred of them
 *	cli_progress_hide(&progress);         before something else is written to stderr
 *	cli_progress_end(&progress);          takes the line away
 */

struct cli_progress {
	const char *what; /* both borrowed */
	const char *unit;
	uint64_t total; /* 0: unknown */
	uint64_t done;
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t next_ns;  /* when to write the line again */
	int fd;
	bool is_on;    /* somebody may be looking */
	bool is_shown; /* there is a line to take away */
};

void cli_progress_start(struct cli_progress *progress, const char *what, const char *unit,
			uint64_t total);
void cli_progress_at(struct cli_progress *progress, uint64_t done);
void cli_progress_hide(struct cli_progress *progress);
void cli_progress_end(struct cli_progress *progress);

/* The same by a part of the total; `progress` is a struct cli_progress. For who is told fractions. Always true. */
bool cli_progress_fraction(double fraction, void *progress);

/* The same as cli_progress_at() at a given time: for tests. */
void cli_progress_at_time(struct cli_progress *progress, uint64_t done, uint64_t now_ns);

#endif
