/* Reports and comparisons without enough memory: each allocation fails once, and is noticed. */
#include "tests/support/short_memory.h"

#include "analysis/compare.h"
#include "analysis/timeline_report.h"
#include "tests/support/busy_jobs.h"
#include "tests/tap.h"

enum { ROUNDS = 136 };

static struct busy_jobs jobs;
static struct timeline_report report;

static enum status make_report(void)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	struct filter filter = { 0 };
	enum status status;

	options.windows = 8;
	options.custom_by[options.custom_count++] = TALLY_BY_COMM | TALLY_BY_HOST | TALLY_BY_SOURCE;
	status = timeline_report_make(&report, &jobs.hand.recording, &filter, &options);
	if (status == OK)
		timeline_report_release(&report);
	return status;
}

static enum status make_comparison(void)
{
	struct compare compare;
	enum status status = compare_make(&compare, &report, &report, 0.05);

	if (status == OK)
		compare_release(&compare);
	return status;
}

int main(void)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;

	options.custom_by[options.custom_count++] = TALLY_BY_FUNCTION | TALLY_BY_SIZE;
	busy_jobs_make(&jobs, ROUNDS);
	/* What is only made smaller stays as it is. */
	short_memory_each("a report", make_report, false);
	if (timeline_report_make(&report, &jobs.hand.recording, NULL, &options) != OK)
		abort();
	/* Channels of operations that cannot be read are not compared. */
	short_memory_each("a comparison", make_comparison, false);
	timeline_report_release(&report);
	busy_jobs_release(&jobs);
	return tap_done();
}
