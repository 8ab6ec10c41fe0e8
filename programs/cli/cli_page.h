/*
 * What a command says about itself: one table from which its options are parsed and its help is
 * written, so that the two cannot disagree. tests/cli/manual.t compares it with man/.
 */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <stdbool.h>

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

#endif
