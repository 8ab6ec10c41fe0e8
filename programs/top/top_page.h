/* The options of `ringside top`, for who parses them and for who explains them: the tool does so
 * alone. */
#ifndef TOP_PAGE_H
#define TOP_PAGE_H

#include "cmds/cli.h"

enum top_option {
	TOP_OPTION_INTERVAL = CLI_LONG_ONLY,
	TOP_OPTION_DIRECTORY,
	TOP_OPTION_ONCE,
};

extern const struct cli_page top_page;

#endif
