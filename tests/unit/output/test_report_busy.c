/* Whole reports of the jobs in busy_jobs.h, whose figures are not round, and of one with more rows than are shown. */
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

/* ---- many ranks ------------------------------------------------------------------------------- */

enum { CROWD = 48, CROWD_ROUNDS = 6 };

/* In each round: an AllReduce of all 48 ranks, which later ranks wait less for, and one operation of another function and
 * size in the communicator of two neighbours. The last two were not timed. */
static void make_crowd(struct hand_made *hand)
{
	for (int rank = 0; rank < CROWD; rank++) {
		char host[16], name[16];
		struct recording_process *process;

		snprintf(host, sizeof(host), "n%d", rank / 8);
		snprintf(name, sizeof(name), "%s-%d", rank < 24 ? "tp" : "dp", rank / 2);
		process = hand_process(hand, "crowd", rank, host);
		hand_comm(process, 1, "world", rank, CROWD, CROWD / 8);
		hand_comm(process, (uint64_t)(2 + rank / 2), name, rank % 2, 2, 1);
		for (uint64_t i = 1; i <= CROWD_ROUNDS; i++) {
			busy_op(process, 1, OP_ALL_REDUCE, i, 1 << 20,
				2000000 + (uint64_t)(CROWD - rank) * 10000 +
					busy_noise(rank, i, 1, 999),
				i * 20000000);
			busy_op(process, 2, i % 2 ? OP_ALL_GATHER : OP_REDUCE_SCATTER, i,
				UINT64_C(1) << (8 + rank / 2 % 12),
				300000 + busy_noise(rank, i, 2, 9999), i * 20000000 + 5000000);
		}
		for (size_t i = 0; rank >= CROWD - 2 && i < process->flight_count; i++) {
			process->flights[i].op.time_source = OP_TIME_NONE;
			process->comms[i % 2].counts.timed--;
		}
	}
}

static void put_table(struct sink *sink, const struct tally *tally, bool has_all)
{
	const struct report_text_options options = { .width = 100, .has_all = has_all };

	sink_text(sink, "=== table\n");
	EXPECT_EQUAL(report_text_table(sink, &report, tally, &options), OK);
}

static void test_crowd(void)
{
	const struct report_text_options narrow = { .width = 90, .has_blocks = true };
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	static struct hand_made hand;
	static const struct tally nothing = { .by = TALLY_BY_COMM };
	struct tally others;
	struct sink sink;

	make_crowd(&hand);
	options.custom_by[options.custom_count++] =
		TALLY_BY_COMM | TALLY_BY_FUNCTION | TALLY_BY_SIZE;
	options.custom_by[options.custom_count++] = TALLY_BY_GROUP | TALLY_BY_HOST;
	options.custom_by[options.custom_count++] = TALLY_BY_HOST | TALLY_BY_COMM_NAME;
	if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
		abort();
	sink_init_memory(&sink);
	EXPECT_EQUAL(report_text(&sink, &report, &narrow), OK);
	put_table(&sink, &report.custom[0], false);
	put_table(&sink, &report.custom[1], true);
	put_table(&sink, &report.by_rank, false);
	put_table(&sink, &report.by_rank, true);
	put_table(&sink, &nothing, true);
	/* As if there were too many rows to keep. */
	others = report.custom[2];
	others.has_other = true;
	others.other = report.total;
	others.count = 3;
	put_table(&sink, &others, false);
	EXPECT(expected_text(&sink, EXPECTED "report-crowd.txt"));
	timeline_report_release(&report);
	hand_release(&hand);
}

static void test_csv(void)
{
	static const char *const tables[] = { "name", "size", "algorithm", "rank" };
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(tables); i++)
		if (EXPECT_THAT(tables[i], report_table(&report, tables[i]) != NULL))
			EXPECT_EQUAL(
				report_csv_tally(&sink, &report, report_table(&report, tables[i])),
				OK);
	EXPECT_EQUAL(report_csv_windows(&sink, &report), OK);
	EXPECT_EQUAL(report_csv_iterations(&sink, &report), OK);
	EXPECT(expected_csv(&sink, EXPECTED "report-busy.csv"));
}

/* More changes than are shown; those of the report are put back. */
static void test_many_changes(void)
{
	struct windows_change *own = report.windows.changes, many[12];
	size_t count = report.windows.change_count;
	struct sink sink;

	sink_init_memory(&sink);
	for (uint32_t i = 0; i < 12; i++) {
		many[i] = own[0];
		many[i].percent = -5 - (double)i;
		many[i].at_ns += i * UINT64_C(100000000);
		many[i].comms = i;
		many[i].comms_changed = i / 2;
		many[i].is_everywhere = i % 3 == 0;
	}
	report.windows.changes = many;
	report.windows.changes_left_out = 3;
	for (int i = 0; i < 3; i++) {
		struct report_text_options options = { .width = 120 };

		report.windows.change_count = (size_t[]){ 8, 9, 12 }[i];
		sink_format(&sink, "=== %zu\n", report.windows.change_count);
		EXPECT_EQUAL(report_text_windows(&sink, &report, &options), OK);
		report.windows.changes_left_out = i == 0;
	}
	report.windows.changes = own;
	report.windows.change_count = count;
	report.windows.changes_left_out = 0;
	EXPECT(expected_text(&sink, EXPECTED "report-changes.txt"));
}

/* ---- parts of it ------------------------------------------------------------------------------ */

/* The same jobs with filters, and with parts of the analysis left out. */
static void test_variants(void)
{
	static const struct {
		const char *name;
		struct filter filter;
		struct timeline_options options;
	} variants[] = {
		{ .name = "one collective of several", .options = { .match_limit = 1000 } },
		{ .name = "one job's ranks",
		  .filter = { .ranks = { { 6, 7 } }, .range_count = 1 } },
		{ .name = "some communicators",
		  .filter = { .comms = { "tp-1", "mix" }, .comm_count = 2 } },
		{ .name = "a function",
		  .filter = { .functions = { "Send" }, .function_count = 1 } },
		{ .name = "from 14:03:15 to 14:03:18",
		  .filter = { .since = { FILTER_TIME_OF_DAY, UINT64_C(50595000000000) },
			      .until = { FILTER_TIME_OF_DAY, UINT64_C(50598000000000) } } },
		{ .name = "without windows", .options = { .without_windows = true } },
		{ .name = "without iterations", .options = { .without_iterations = true } },
		{ .name = "without joins", .options = { .without_joins = true } },
	};
	const struct report_text_options text = { .width = 100 };
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(variants); i++) {
		struct timeline_options options = variants[i].options;

		options.windows = 6;
		if (timeline_report_make(&report, &jobs.hand.recording, &variants[i].filter,
					 &options) != OK)
			abort();
		sink_format(&sink, "=== %s\n", variants[i].name);
		EXPECT_EQUAL(report_text(&sink, &report, &text), OK);
		timeline_report_release(&report);
	}
	EXPECT(expected_text(&sink, EXPECTED "report-busy-variants.txt"));
}

/* ---- two runs --------------------------------------------------------------------------------- */

/* Other durations than in the first run: AllReduces are 12% longer, Sends shorter, and the slow link of rank 3 is one of
 * rank 5. Algorithms and channels differ, too. */
static void change_run(struct busy_jobs *run)
{
	for (size_t p = 0; p < run->hand.recording.count; p++) {
		struct recording_process *process = run->hand.list[p];

		for (size_t i = 0; i < process->flight_count; i++) {
			struct op_record *op = &process->flights[i].op;
			uint64_t ns = op->gpu_stop_ns - op->gpu_start_ns;

			ns += busy_noise((int)p, i, 9, ns / 50);
			if (op->function == OP_ALL_REDUCE) {
				ns += ns * 12 / 100;
				op->channels = 8;
			} else if (op->function == OP_SEND) {
				ns -= ns / 10;
			} else if (op->function == OP_ALL_GATHER) {
				op->protocol = OP_SIMPLE;
			}
			if (op->time_source != OP_TIME_NONE)
				op->gpu_start_ns = op->gpu_stop_ns - ns;
			if (p == 3)
				op->wait_ns[OP_WAIT_SEND_NET] /= 6;
			else if (p == 5)
				op->wait_ns[OP_WAIT_SEND_NET] *= 5;
		}
	}
}

static void test_comparison(void)
{
	const struct report_text_options wide = { .has_all = true }, narrow = { .width = 79 };
	struct timeline_options options = TIMELINE_OPTIONS_INIT;
	struct timeline_report before, after;
	static struct busy_jobs runs[2];
	struct diff_side a = { "before", &before }, b = { "after", &after };
	struct compare compare;
	struct sink sink;
	struct json json;

	options.custom_by[options.custom_count++] = TALLY_BY_FUNCTION | TALLY_BY_SIZE;
	busy_jobs_make(&runs[0], 288);
	busy_jobs_make(&runs[1], 300);
	change_run(&runs[1]);
	if (timeline_report_make(&before, &runs[0].hand.recording, NULL, &options) != OK ||
	    timeline_report_make(&after, &runs[1].hand.recording, NULL, &options) != OK ||
	    compare_make(&compare, &before, &after, 0.05) != OK)
		abort();
	sink_init_memory(&sink);
	EXPECT_EQUAL(diff_text(&sink, &a, &b, &compare, &wide), OK);
	sink_text(&sink, "=== narrow\n");
	EXPECT_EQUAL(diff_text(&sink, &a, &b, &compare, &narrow), OK);
	EXPECT(expected_text(&sink, EXPECTED "diff-busy.txt"));
	sink_init_memory(&sink);
	json_init(&json, &sink);
	diff_json(&json, &a, &b, &compare);
	EXPECT(expected_json(&sink, EXPECTED "diff-busy.json.lines"));
	compare_release(&compare);
	for (int i = 0; i < 2; i++)
		busy_jobs_release(&runs[i]);
	timeline_report_release(&before);
	timeline_report_release(&after);
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
	test_csv();
	test_many_changes();
	timeline_report_release(&report);
	test_variants();
	busy_jobs_release(&jobs);
	test_crowd();
	test_comparison();
	return tap_done();
}
