/* Telling people what went wrong: one line on stderr, with what, where and what to do. */
#ifndef CLI_ERRORS_H
#define CLI_ERRORS_H

#include <stddef.h>

#include "common/attributes.h"
#include "programs/cli/cli_page.h"
#include "view/sink.h"

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

#endif
