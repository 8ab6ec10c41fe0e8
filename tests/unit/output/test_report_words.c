#include "output/report.h"

#include <string.h>

#include "common/nccl_interface.h"
#include "common/op_layout.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
/* 2026-01-01T14:03:10Z */
#define MOMENT (UINT64_C(1767276190) * SECOND)

static int is_same(const char *got, const char *wanted)
{
	if (strcmp(got, wanted) != 0)
		printf("# got    '%s'\n# wanted '%s'\n", got, wanted);
	return strcmp(got, wanted) == 0;
}

static void test_numbers(void)
{
	char share[REPORT_SHARE], bandwidth[REPORT_BANDWIDTH], words[REPORT_WORDS];

	EXPECT(is_same(report_share(share, 1, 0), "-"));
	EXPECT(is_same(report_share(share, 0, 10), "0%"));
	EXPECT(is_same(report_share(share, 1, 10000), "<0.1%"));
	EXPECT(is_same(report_share(share, 5, 1000), "0.5%"));
	EXPECT(is_same(report_share(share, 9.96, 100), "10%"));
	EXPECT(is_same(report_share(share, 100, 100), "100%"));
	EXPECT(is_same(report_hours(share, 0), "0"));
	EXPECT(is_same(report_hours(share, 0.0001), "<0.001"));
	EXPECT(is_same(report_hours(share, 1.5), "1.500"));
	EXPECT(is_same(report_hours(share, 12.34), "12.3"));
	EXPECT(is_same(report_hours(share, 1234.5), "1234"));
	EXPECT(is_same(report_bandwidth(bandwidth, 0), "-"));
	EXPECT(is_same(report_bandwidth(bandwidth, 1e6), "<0.01"));
	EXPECT(is_same(report_bandwidth(bandwidth, 1.234e9), "1.23"));
	EXPECT(is_same(report_bandwidth(bandwidth, 3.702e11), "370.2"));
	report_words_lost(0.001, 0.01, words);
	EXPECT(is_same(words, "3.60 of 36.0 GPU-seconds"));
	report_words_lost(12.34, 456, words);
	EXPECT(is_same(words, "12.3 of 456 GPU-hours"));
}

/* Both sides of what decides how many digits there are. */
static void test_limits(void)
{
	static const struct {
		double percent;
		const char *text;
	} shares[] = { { 9.95, "10%" },
		       { 9.949, "9.9%" },
		       { 0.1, "0.1%" },
		       { 0.0999, "<0.1%" },
		       { 100.4, "100%" } };
	static const struct {
		double hours;
		const char *text;
	} lengths[] = {
		{ 0.00099, "<0.001" }, { 0.001, "0.001" }, { 9.9994, "9.999" }, { 10, "10.0" },
		{ 99.94, "99.9" },     { 100, "100" },	   { -1, "0" }
	};
	static const struct {
		double lost, hours;
		const char *text;
	} losses[] = { { 0.5, 1, "0.50 of 1.00 GPU-hours" },
		       { 0.0999, 0.999, "360 of 3596 GPU-seconds" },
		       { 9.99, 10, "9.99 of 10.0 GPU-hours" },
		       { 10, 100, "10.0 of 100 GPU-hours" } };
	char share[REPORT_SHARE], words[REPORT_WORDS];

	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		EXPECT(is_same(report_share(share, shares[i].percent, 100), shares[i].text));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		EXPECT(is_same(report_hours(share, lengths[i].hours), lengths[i].text));
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		report_words_lost(losses[i].lost, losses[i].hours, words);
		EXPECT(is_same(words, losses[i].text));
	}
}

/* Of processes and of their communicators; a number that is not known yet is none. */
static void test_interfaces(void)
{
	struct recording_comm comms[3] = { { .info = { .interface = 5 } },
					   { .info = { .interface = OP_INTERFACES + 1 } },
					   { .info = { .interface = OP_INTERFACES } } };
	struct recording_process known = { .interface = 2 },
				 later = { .interface = OP_INTERFACES + 1 };
	struct recording_process several = { .interface = 0, .comms = comms, .comm_count = 3 };
	struct recording_process *list[] = { &later, &several, &known };
	struct recording recording = { .processes = list, .count = 1 };
	char words[REPORT_WORDS], wanted[REPORT_WORDS];

	EXPECT_EQUAL(report_interfaces(&recording), 0);
	report_words_nccl(&recording, words);
	EXPECT(is_same(words, "NCCL (unknown release)"));
	recording.count = 3;
	EXPECT_EQUAL(report_interfaces(&recording), 1u << 2 | 1u << 5 | 1u << OP_INTERFACES);
	report_words_nccl(&recording, words);
	snprintf(wanted, sizeof(wanted), "NCCL %s and %s and %s", op_interface_releases(2),
		 op_interface_releases(5), op_interface_releases(OP_INTERFACES));
	EXPECT(is_same(words, wanted));
}

static void test_chart(void)
{
	const double values[] = { 8, 4, 0, 1, -1, 8 };
	struct sink sink;

	sink_init_memory(&sink);
	report_chart(&sink, values, 6, 10, false);
	EXPECT_THAT("the largest value is 8, a missing one is blank",
		    is_same(sink_string(&sink), "85 2 8"));
	sink_release(&sink);
	sink_init_memory(&sink);
	report_chart(&sink, values, 6, 3, false);
	EXPECT_THAT("neighbours that have a value are averaged",
		    is_same(sink_string(&sink), "728"));
	sink_release(&sink);
	sink_init_memory(&sink);
	report_chart(&sink, values, 2, 10, true);
	EXPECT_THAT("blocks instead of digits",
		    is_same(sink_string(&sink), "\xe2\x96\x88\xe2\x96\x85"));
	report_chart(&sink, values, 0, 10, true);
	sink_release(&sink);
}

static void test_moments(void)
{
	struct timeline_report report = { .start_ns = MOMENT,
					  .end_ns = MOMENT + 90 * SECOND,
					  .has_wall = true };
	char words[REPORT_WORDS];

	report_words_moment(&report, MOMENT + SECOND / 2, words);
	EXPECT(is_same(words, "14:03:10"));
	report_words_span(&report, words);
	EXPECT(is_same(words, "1 min 30 s from 2026-01-01 14:03:10 UTC"));
	report.end_ns = MOMENT + 5 * SECOND;
	report_words_moment(&report, MOMENT + SECOND / 2, words);
	EXPECT_THAT("short runs have milliseconds", is_same(words, "14:03:10.500"));
	report.end_ns = MOMENT + 100000 * SECOND;
	report_words_moment(&report, MOMENT, words);
	EXPECT_THAT("runs of more than a day have a date", is_same(words, "2026-01-01 14:03:10"));
	report.has_wall = false;
	report_words_moment(&report, MOMENT + 2 * SECOND, words);
	EXPECT_THAT("without wall time, moments are relative to the start",
		    is_same(words, "2.00 s after the start"));
	report.start_ns = 0;
	report_words_span(&report, words);
	EXPECT_THAT("no span without times", is_same(words, ""));
}

static void test_sources(void)
{
	struct tally_row row = { .calls = 10, .timed = 0 };
	char words[REPORT_WORDS];

	report_words_sources(&row, words);
	EXPECT(is_same(words, "none (no call was timed)"));
	row.timed = row.by_source[OP_TIME_KERNEL_GPU] = 8;
	row.by_source[OP_TIME_NONE] = 2;
	EXPECT(!report_has_mixed_sources(&row));
	report_words_sources(&row, words);
	EXPECT(is_same(words, "the GPU clock"));
	row.timed = 10;
	row.by_source[OP_TIME_HOST] = row.by_source[OP_TIME_PROXY] = 2;
	EXPECT(!report_has_mixed_sources(&row));
	row.by_source[OP_TIME_TOOL] = 2;
	EXPECT(report_has_mixed_sources(&row));
	report_words_sources(&row, words);
	EXPECT(is_same(words, "the GPU clock 80%, another tool, as it measured 20%"));
	report_words_spans(&row, words);
	EXPECT(is_same(words, "2 network spans, 2 "
			      "upper bounds of the host clock"));
}

static int completeness_is(const struct timeline_report *report, const char *wanted)
{
	struct sink sink;
	int same;

	sink_init_memory(&sink);
	report_words_completeness(report, &sink);
	same = is_same(sink_string(&sink), wanted);
	sink_release(&sink);
	return same;
}

static void test_timed(void)
{
	struct tally_row row = { .calls = 1000, .open = 10, .timed = 990 };
	struct job_comm comm = { .label = "world" };
	struct timeline_untimed kinds[] = {
		{ .names = OP_BROADCAST, .size_class = 12, .calls = 500 },
		{ .names = OP_SEND, .size_class = 0, .calls = 40 },
		{ .names = OP_BROADCAST | OP_TREE << 16, .size_class = 12, .calls = 100 },
		{ .names = OP_RECV, .size_class = 1, .calls = 1 },
		{ .names = OP_REDUCE, .size_class = 12, .calls = 1 },
	};
	struct timeline_report report = { .job = { .comms = &comm, .comm_count = 1 },
					  .untimed = kinds,
					  .untimed_count = 5 };
	char words[REPORT_WORDS];

	report_words_timed(&row, words);
	EXPECT_THAT("operations in flight do not count as not timed", is_same(words, ""));
	EXPECT(is_same(report_estimate_mark(&row), ""));
	row.timed = 90;
	row.covered = 900;
	report_words_timed(&row, words);
	EXPECT(is_same(words, "90 of 990 calls (9.1%)"));
	EXPECT(is_same(report_estimate_mark(&row), "~"));
	row.covered = 800;
	EXPECT(is_same(report_estimate_mark(&row), ">~"));
	row.covered = 0;
	EXPECT(is_same(report_estimate_mark(&row), ">"));
	row.timed = 0;
	report_words_timed(&row, words);
	EXPECT(is_same(words, "0 of 990 calls (0%)"));
	EXPECT_THAT("no mark without timed calls", is_same(report_estimate_mark(&row), ""));
	report_words_not_timed(&report, words);
	EXPECT_THAT("kinds that read the same are merged",
		    is_same(words,
			    "Broadcast of 1 KiB - 2 KiB in world (600 calls), Send of unknown "
			    "size in world (40 calls), Recv of 0 B in world (1 call) and 1 more "
			    "kind"));
	report.untimed_count = 0;
	report_words_not_timed(&report, words);
	EXPECT(is_same(words, ""));
}

static void test_completeness(void)
{
	struct recording_trouble troubles[] = {
		{ .kind = RECORDING_CUT, .path = "a" },
		{ .kind = RECORDING_DAMAGE, .path = "b" },
		{ .kind = RECORDING_DAMAGE, .path = "b" },
	};
	struct recording recording = { .troubles = troubles, .trouble_count = 0 };
	struct timeline_report report = { .recording = &recording };
	struct timeline_completeness *it = &report.completeness;

	*it = (struct timeline_completeness){
		.issued = 1000, .read = 1000, .with_counts = 2, .is_complete = true
	};
	report.total.calls = 990;
	report.total.captured = 10;
	EXPECT(completeness_is(&report, "recording complete (1,000 operations)"));
	report.total.calls = 90;
	EXPECT(completeness_is(&report,
			       "recording complete (1,000 operations); 100 match the filter"));
	report.total.calls = report.total.captured = 0;
	EXPECT(completeness_is(&report,
			       "recording complete (1,000 operations); none match the filter"));
	report.total.calls = 500;
	*it = (struct timeline_completeness){
		.issued = 1000, .read = 500, .with_counts = 2, .overwritten = 500, .alive = 1
	};
	EXPECT(completeness_is(&report,
			       "recording incomplete: 500 of 1,000 operations (50%); 500 older "
			       "operations overwritten (flight mode keeps the most recent); 1 "
			       "process still running"));
	*it = (struct timeline_completeness){ .issued = 510,
					      .read = 500,
					      .with_counts = 2,
					      .lost_operations = 10,
					      .killed = 2,
					      .in_flight = 1 };
	it->lost[LOST_QUOTA] = 10;
	EXPECT(completeness_is(&report,
			       "recording incomplete: 500 of 510 operations (98%); 10 operations "
			       "lost while recording (file size limit reached: 10); 2 processes "
			       "killed; 1 operation "
			       "in flight"));
	*it = (struct timeline_completeness){ .read = 500, .unknown_life = 1, .damages = 1 };
	recording.trouble_count = 3;
	EXPECT_THAT(
		"a file is counted once, a truncated one not at all",
		completeness_is(&report,
				"500 operations; the total is unknown; 1 recording is truncated; "
				"1 damaged block or line; 1 file could not be read completely"));
	*it = (struct timeline_completeness){ .read = 1, .unknown_life = 2, .without_end_mark = 2 };
	recording.trouble_count = 0;
	report.total.calls = 1;
	EXPECT_THAT("formats without an end mark are never called truncated",
		    completeness_is(&report, "1 operation; the total is unknown"));
}

static void test_changes(void)
{
	struct job_comm comms[] = { { .label = "dp-3" } };
	struct straggler slow = { .class = STRAGGLER_NETWORK };
	struct timeline_report report = { .start_ns = MOMENT - 600 * SECOND,
					  .end_ns = MOMENT,
					  .has_wall = true,
					  .job = { .comms = comms, .comm_count = 1 } };
	struct windows_change change = { .kind = JOB_COMM_NET,
					 .function = OP_REDUCE_SCATTER,
					 .size_class = 28,
					 .at_ns = MOMENT,
					 .before = 112.3e9,
					 .after = 97.7e9,
					 .percent = -13,
					 .comms = 8,
					 .comms_changed = 8,
					 .is_everywhere = true,
					 .ranks_changed = 64 };
	char words[REPORT_WORDS];

	report_words_change(&report, &change, words);
	EXPECT(is_same(words,
		       "ReduceScatter of 64 MiB - 128 MiB on net-only communicators: busbw "
		       "without waiting fell 13% at 14:03:10, from 112.3 to 97.7 GB/s, on all "
		       "ranks: network, not a single rank"));
	change.is_everywhere = false;
	change.comms_changed = 1;
	change.ranks_changed = 8;
	change.percent = 20;
	report_words_change(&report, &change, words);
	EXPECT(is_same(words,
		       "ReduceScatter of 64 MiB - 128 MiB on net-only communicators: busbw "
		       "without waiting rose 20% at 14:03:10, from 112.3 to 97.7 GB/s, on 1 of 8 "
		       "communicators (8 ranks, for example dp-3)"));
	change.comms = 1;
	change.is_everywhere = true;
	report_words_change(&report, &change, words);
	EXPECT_THAT("a single communicator does not prove a slow network",
		    strstr(words, "on dp-3, the only communicator with this operation") != NULL);
	report.stragglers = (struct stragglers){ .list = &slow, .count = 1 };
	report_words_change(&report, &change, words);
	EXPECT_THAT("unless the network was found slow for all ranks",
		    strstr(words, "on all ranks: network, not a single rank") != NULL);
	change.kind = JOB_COMM_NVLINK;
	change.comms = 4;
	report_words_change(&report, &change, words);
	EXPECT_THAT("NVLink communicators do not prove a slow network",
		    strstr(words, "on all nodes, not a single one") != NULL);
}

int main(void)
{
	test_numbers();
	test_limits();
	test_interfaces();
	test_chart();
	test_moments();
	test_sources();
	test_timed();
	test_completeness();
	test_changes();
	return tap_done();
}
