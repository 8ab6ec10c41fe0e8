/* Whole reports of the jobs in busy_jobs.h, whose figures are not round. */
#include "output/report.h"

#include <string.h>

#include "output/json.h"
#include "tests/support/busy_jobs.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

#define EXPECTED "tests/unit/output/expected/"

static struct busy_jobs jobs;
static struct timeline_report report;

static void expect_report_text(const char *path, unsigned int width, bool has_all)
{
	const struct report_text_options options = { .width = width, .has_all = has_all };
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(report_text(&sink, &report, &options), OK);
	EXPECT_THAT(path, expected_text(&sink, path));
}

int main(void)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	struct sink sink;
	struct json json;

	html_report_options(&options);
	options.windows = 12;
	busy_jobs_make(&jobs, 288);
	if (timeline_report_make(&report, &jobs.hand.recording, NULL, &options) != OK)
		abort();
	expect_report_text(EXPECTED "report-busy.txt", 0, true);
	expect_report_text(EXPECTED "report-busy-narrow.txt", 79, false);
	sink_init_memory(&sink);
	json_init(&json, &sink);
	report_json(&json, &report, REPORT_JSON_WHOLE);
	EXPECT(expected_json(&sink, EXPECTED "report-busy.json.lines"));
	timeline_report_release(&report);
	busy_jobs_release(&jobs);
	return tap_done();
}
