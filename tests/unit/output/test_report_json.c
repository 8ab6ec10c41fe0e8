/* Whole reports of the jobs in whole_job.h: as JSON, as text and as tables of CSV. */
#include "output/report.h"

#include <string.h>

#include "output/json.h"
#include "tests/support/expected_output.h"
#include "tests/support/hand_made.h"
#include "tests/tap.h"
#include "tests/unit/output/whole_job.h"

#define EXPECTED "tests/unit/output/expected/"

static struct recording recording;
static struct timeline_report report;

static void make(uint64_t rounds, const struct filter *filter, uint32_t windows)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;

	html_report_options(&options);
	options.custom_by[options.custom_count++] =
		TALLY_BY_COMM | TALLY_BY_HOST | TALLY_BY_SOURCE | TALLY_BY_TAG | TALLY_BY_DATATYPE;
	options.windows = windows;
	whole_make(&recording, rounds);
	if (timeline_report_make(&report, &recording, filter, &options) != OK)
		abort();
}

static void end(void)
{
	timeline_report_release(&report);
	recording_release(&recording);
}

static void expect_json(const char *name, enum report_json_form form)
{
	char path[128];
	struct sink sink;
	struct json json;

	snprintf(path, sizeof(path), EXPECTED "report-%s.json.lines", name);
	sink_init_memory(&sink);
	json_init(&json, &sink);
	report_json(&json, &report, form);
	EXPECT_THAT(path, expected_json(&sink, path));
}

static void expect_report_text(const char *name, unsigned int width, bool has_all)
{
	const struct report_text_options options = { .width = width, .has_all = has_all };
	char path[128];
	struct sink sink;

	snprintf(path, sizeof(path), EXPECTED "report-%s.txt", name);
	sink_init_memory(&sink);
	EXPECT_EQUAL(report_text(&sink, &report, &options), OK);
	EXPECT_THAT(path, expected_text(&sink, path));
}

static void expect_tables(const char *name)
{
	char path[128];
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; report_table_name(i) != NULL; i++) {
		const char *table = report_table_name(i);

		sink_format(&sink, "%s:\r\n", table);
		if (report_table(&report, table) != NULL)
			EXPECT_EQUAL(report_csv_tally(&sink, &report, report_table(&report, table)),
				     OK);
		else if (strcmp(table, "windows") == 0)
			EXPECT_EQUAL(report_csv_windows(&sink, &report), OK);
		else
			EXPECT_EQUAL(report_csv_iterations(&sink, &report), OK);
	}
	snprintf(path, sizeof(path), EXPECTED "report-%s.csv", name);
	EXPECT_THAT(path, expected_csv(&sink, path));
}

/* 8 ranks in pairs tp-0 to tp-3, with iterations of two operations; the last one begins late. */
static void make_iterations(struct hand_made *hand, bool is_timed)
{
	memset(hand, 0, sizeof(*hand));
	for (int rank = 0; rank < 8; rank++) {
		struct recording_process *process =
			hand_process(hand, "train", rank, rank < 4 ? "node-a" : "node-b");
		uint32_t world = hand_comm(process, 1, "world", rank, 8, 2);
		char name[16];
		uint32_t pair;

		snprintf(name, sizeof(name), "tp-%d", rank / 2);
		pair = hand_comm(process, (uint64_t)(2 + rank / 2), name, rank % 2, 2, 1);
		for (uint64_t i = 1; i <= 200; i++) {
			uint64_t at_ns = i * 20000000 + (i == 200 ? 5000000 : 0);

			hand_op(process, world, OP_ALL_REDUCE, i, 1 << 20, 1000000, at_ns);
			hand_op(process, pair, OP_ALL_GATHER, i, 1 << 16, 500000, at_ns + 5000000);
		}
		for (size_t i = 0; i < process->flight_count && !is_timed; i += 2)
			process->flights[i].op.time_source = OP_TIME_NONE;
	}
}

static void test_iterations(bool is_timed, const char *name)
{
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	struct hand_made hand;

	options.windows = 4;
	make_iterations(&hand, is_timed);
	if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
		abort();
	expect_report_text(name, 0, true);
	expect_json(name, REPORT_JSON_PAGE);
	timeline_report_release(&report);
	hand_release(&hand);
}

static void expect_page_title(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT_EQUAL(html_report_write(&sink, &report), html_report_has_charts() ? OK : ERR_GONE);
	EXPECT_THAT("the page names the first job and counts the others",
		    !html_report_has_charts() ||
			    strstr(sink_string(&sink),
				   "<title>eval and 1 more - Ringside report</title>") != NULL);
	sink_release(&sink);
}

int main(void)
{
	static const struct filter pair = {
		.comms = { "tp-0" }, .comm_count = 1, .ranks = { { 0, 1 } }, .range_count = 1
	};

	make(40, NULL, 8);
	expect_json("whole", REPORT_JSON_WHOLE);
	expect_json("page", REPORT_JSON_PAGE);
	expect_report_text("wide", 0, true);
	expect_report_text("narrow", 60, false);
	expect_tables("tables");
	expect_page_title();
	end();

	make(130, NULL, 8);
	expect_report_text("straggler", 0, false);
	end();

	make(2, &pair, 2);
	expect_json("pair", REPORT_JSON_WHOLE);
	expect_report_text("pair", 100, true);
	end();
	test_iterations(true, "iterations");
	test_iterations(false, "iterations-untimed");
	return tap_done();
}
