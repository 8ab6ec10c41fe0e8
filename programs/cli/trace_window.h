/* Which stretch of time `ringside trace` shows. */
#ifndef TRACE_WINDOW_H
#define TRACE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/filter.h"
#include "programs/cli/cli_page.h"
#include "view/viewer_plan.h"

struct trace_window {
	const char *around; /* NULL: not asked for */
	uint64_t width_ns;  /* 0: not asked for */
	struct filter_time since;
	struct filter_time until;
};

/* "2s" and such. 0, or the exit code after an error was told. */
int trace_window_width(struct trace_window *window, const struct cli_page *page, const char *text);

/* Set what the plan shows; its survey was made. 0, or the exit code after an error was told. */
int trace_window_apply(const struct trace_window *window, struct viewer_plan *plan);

#endif
