/* Writing the file of `ringside trace`, and saying what is in it. */
#ifndef TRACE_TIMELINE_H
#define TRACE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "programs/cli/cli_progress.h"
#include "view/viewer_plan.h"

struct trace_target {
	const char *path; /* "-": standard output */
	enum viewer_format format;
	bool is_gzip;
	bool is_json; /* the summary, on stdout */
};

/* By the path's suffix; false when it says nothing. "x.json.gz" is gzip around JSON. */
bool trace_timeline_guess(struct trace_target *target);

/* Tell when the file will be larger than viewers like, with what makes it smaller. */
void trace_timeline_warn(const struct viewer_plan *plan, const struct trace_target *target);

/* The plan is joined. Gives back exit_code, or 1 after it was told what failed. */
int trace_timeline_write(struct viewer_plan *plan, const struct trace_target *target, int exit_code,
			 struct cli_progress *progress);

#endif
