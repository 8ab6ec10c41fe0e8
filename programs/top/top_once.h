/* Two looks as plain text on stdout: for scripts, pipes, and terminals that can do no more. */
#ifndef TOP_ONCE_H
#define TOP_ONCE_H

#include <stdbool.h>

#include "programs/top/top_options.h"

/* Gives back the exit code. */
int top_once(const struct top_options *options, bool is_utf8);

#endif
