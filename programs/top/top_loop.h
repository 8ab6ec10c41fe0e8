/* The live screen: looks, keys and signals until somebody quits. */
#ifndef TOP_LOOP_H
#define TOP_LOOP_H

#include <stdbool.h>

#include "programs/top/top_options.h"

/* The screen is open; it is closed afterwards. Gives back the exit code, or does not where a signal
 * ended it. */
int top_loop(const struct top_options *options, bool is_utf8);

#endif
