/* Parsing a command line by its page: short and long options, `--`, suggestions for typing errors. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>

#include "programs/cli/cli_page.h"

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

#endif
