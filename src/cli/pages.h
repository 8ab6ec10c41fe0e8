/*
 * Pages of programs that may not be installed: the tool explains them all the same. Each lives with its program.
 */
#ifndef PAGES_H
#define PAGES_H

#include "cli/cli.h"

extern const struct cli_page agent_page;
extern const struct cli_page hub_page;
extern const struct cli_page top_page;

#endif
