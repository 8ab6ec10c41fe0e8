#include "analysis/timeline_report.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

static struct hand_made hand;
static struct timeline_report report;
static struct filter filter;
static struct timeline_options options;

static void made(void)
{
	enum status status = timeline_report_make(&report, &hand.recording, &filter, &options);

	if (status != OK) {
		printf("Bail out! %s\n", status_text(status));
		exit(1);
	}
}

static void over(void)
{
	timeline_report_release(&report);
	hand_release(&hand);
	memset(&filter, 0, sizeof(filter));
	memset(&options, 0, sizeof(options));
}

static const struct tally_row *row_of(const struct tally *tally, uint8_t function)
{
	for (size_t i = 0; i < tally->count; i++)
		if (tally->rows[i].key.function == function)
			return &tally->rows[i];
	return NULL;
}

static bool has_finding(enum findings_kind kind)
{
	for (size_t i = 0; i < report.findings.count; i++)
		if (report.findings.list[i].kind == kind && report.findings.list[i].title[0] &&
		    report.findings.list[i].text[0])
			return true;
	return false;
}

/* Three ranks on one communicator. */
static void three(struct recording_process *ranks[3])
{
	for (int i = 0; i < 3; i++) {
		ranks[i] = hand_process(&hand, "j", i, i < 2 ? "a" : "b");
		hand_comm(ranks[i], 0x77, "world", i, 3, 2);
	}
}

static void test_waiting(void)
{
	static const uint64_t durations[3][2] = { { 5000, 900 }, { 3000, 700 }, { 4000, 1000 } };
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++) {
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 3000, durations[i][0], 100000);
		hand_op(ranks[i], 1, OP_ALL_GATHER, 2, 600, durations[i][1], 200000);
		/* Rooted: waiting is unknown. */
		hand_op(ranks[i], 1, OP_BROADCAST, 3, 600, 1000 + (uint64_t)i, 300000);
	}
	made();
	EXPECT_EQUAL(report.total.calls, 9);
	EXPECT_EQUAL(report.total.bytes, 3 * (3000 + 600 + 600));
	EXPECT_EQUAL(report.total.sum_ns, 12000 + 2600 + 3003);
	EXPECT_EQUAL(report.total.wait_ns, 2000 + 0 + 1000 + 200 + 0 + 300);
	EXPECT_EQUAL(report.ranks[0].wait_ns, 2200);
	EXPECT_EQUAL(report.ranks[1].wait_ns, 0);
	EXPECT_EQUAL(report.ranks[2].wait_ns, 1300);
	EXPECT_EQUAL(report.hosts[0].wait_ns, 2200);
	EXPECT_EQUAL(report.comms[0].wait_ns, 3500);
	EXPECT_EQUAL(row_of(&report.by_function, OP_ALL_GATHER)->wait_ns, 500);
	EXPECT_EQUAL(row_of(&report.by_function, OP_ALL_GATHER)->joined, 3);
	EXPECT_EQUAL(row_of(&report.by_function, OP_BROADCAST)->joined, 0);
	EXPECT_THAT("bandwidth is bytes over time, not a mean of ratios",
		    tally_algbw(row_of(&report.by_function, OP_ALL_REDUCE)) == 9000 * 1e9 / 12000);
	EXPECT_THAT("busbw has the factor of three ranks",
		    (uint64_t)(tally_busbw(row_of(&report.by_function, OP_ALL_REDUCE)) + 0.5) ==
			    1000000000);
	EXPECT_THAT("both collectives are complete", report.matches.complete == 2 &&
							     report.matches.partial == 0 &&
							     report.matches.joined == 6);
	EXPECT_THAT("a rank takes part in it", report.by_comm.rows[0].ranks == 3);
	EXPECT_EQUAL(report.gpu_hours_waited * 3.6e12 + 0.5, 3500);
	over();
}

static void test_partial(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	hand_op(ranks[0], 1, OP_ALL_REDUCE, 1, 8, 5000, 100000);
	hand_op(ranks[1], 1, OP_ALL_REDUCE, 1, 8, 3000, 100000);
	hand_op(ranks[0], 1, OP_ALL_REDUCE, 2, 8, 700, 200000);
	hand_op(ranks[0], 1, OP_ALL_REDUCE, 40, 8, 900, 300000);
	hand_op(ranks[1], 1, OP_ALL_REDUCE, 40, 8, 600, 300000)->time_source = OP_TIME_NONE;
	hand_op(ranks[2], 1, OP_ALL_REDUCE, 40, 8, 800, 300000);
	made();
	EXPECT_THAT("two of three: a lower bound, and marked",
		    report.matches.partial == 2 && report.matches.alone == 1 &&
			    report.matches.complete == 0);
	EXPECT_EQUAL(report.total.wait_ns, 2000 + 100);
	EXPECT_THAT("without a duration it is not matched",
		    report.matches.untimed == 1 && report.matches.joined == 5);
	EXPECT_THAT("but counts as a call", report.total.calls == 6 && report.total.timed == 5 &&
						    report.total.by_source[OP_TIME_NONE] == 1);
	over();
}

static void test_sources(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++) {
		struct op_record *op = hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 8,
					       5000 + 1000 * (uint64_t)i, 100000);

		if (i > 0) {
			op->time_source = OP_TIME_PROXY;
			op->flags |= OP_FLAG_TOOL_TIME;
		}
	}
	made();
	EXPECT_THAT("ranks are compared within one source of time",
		    report.total.wait_ns == 1000 && report.ranks[0].wait_ns == 0);
	EXPECT_THAT("rows have their sources", report.total.by_source[OP_TIME_KERNEL_GPU] == 1 &&
						       report.total.by_source[OP_TIME_TOOL] == 2 &&
						       report.by_source.count == 2);
	EXPECT(has_finding(FINDINGS_MIXED_SOURCES));
	over();
}

/* A span of the network's side and a bound by the host's clock are in no total, whatever they say. */
static void test_no_durations(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++) {
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 1 << 20, 5000 + 1000 * (uint64_t)i, 100000)
			->time_source = OP_TIME_PROXY;
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 2, 1 << 20, 90000, 200000)->time_source =
			OP_TIME_HOST;
	}
	made();
	EXPECT_THAT("they are counted as what they are",
		    report.total.calls == 6 && report.total.bytes == 6 << 20 &&
			    report.total.by_source[OP_TIME_PROXY] == 3 &&
			    report.total.by_source[OP_TIME_HOST] == 3);
	EXPECT_THAT("but not as time", report.total.timed == 0 && report.total.sum_ns == 0 &&
					       report.total.bus_ns == 0 &&
					       report.total.histogram.used == 0 &&
					       tally_not_timed(&report.total) == 6);
	EXPECT_THAT("nor as waiting", report.total.joined == 0 && report.total.wait_ns == 0 &&
					      report.matches.complete == 0 &&
					      report.matches.wait_ns == 0);
	EXPECT_THAT("nor as communication", report.busy_ranks == 0 &&
						    report.ranks[0].busy_ns == 0 &&
						    report.ranks[0].span_ns > 0);
	over();
}

static void test_mismatch(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++)
		for (uint64_t match = 1; match <= 4; match++) {
			struct op_record *op = hand_op(ranks[i], 1, OP_ALL_REDUCE, match, 8,
						       1000 + 100 * (uint64_t)i, match * 100000);

			/* The first rank read differs, from the third call on. */
			if (i == 0 && match >= 3)
				op->signature += 999;
		}
	made();
	EXPECT_THAT("ranks that disagree are not matched with the others",
		    report.ranks[0].wait_ns == 0 && report.ranks[1].wait_ns == 2 * 100 &&
			    report.ranks[2].wait_ns == 2 * 200 + 2 * 100);
	EXPECT_THAT("the smaller group is the one that differs",
		    report.comms[0].mismatches == 2 && report.comms[0].first_mismatch == 3);
	EXPECT(has_finding(FINDINGS_MISMATCH));
	over();
}

static void test_repeated(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	hand_op(ranks[0], 1, OP_ALL_REDUCE, 1, 8, 500, 100000);
	hand_op(ranks[0], 1, OP_ALL_REDUCE, 1, 8, 400, 200000);
	hand_op(ranks[1], 1, OP_ALL_REDUCE, 0, 8, 400, 200000);
	hand_op(ranks[2], 1, OP_ALL_REDUCE, 1, 8, 300, 200000)->flags = OP_FLAG_REPLAY;
	made();
	EXPECT_THAT("a duplicate number is not matched", report.matches.repeated == 1);
	EXPECT_THAT("nor is one without a number", report.matches.unmatched == 1);
	EXPECT_THAT("replays have their own numbers", report.total.wait_ns == 0);
	over();
}

static void test_limit(void)
{
	struct recording_process *ranks[3];
	uint64_t expected = 0;

	three(ranks);
	for (int i = 0; i < 3; i++)
		for (uint64_t match = 1; match <= 640; match++)
			hand_op(ranks[i], 1, OP_ALL_REDUCE, match, 8, 1000 + 100 * (uint64_t)i,
				match * 100000);
	options.match_limit = 320;
	made();
	expected = report.matches.joined / 3 * 300;
	EXPECT_THAT("calls beyond the limit are left out and counted",
		    report.matches.left_out > 0 &&
			    report.matches.joined + report.matches.left_out == 3 * 640);
	EXPECT_THAT("matched collectives have all ranks", report.matches.partial == 0);
	EXPECT_EQUAL(report.total.wait_ns, expected);
	EXPECT(has_finding(FINDINGS_SAMPLED));
	over();

	three(ranks);
	for (int i = 0; i < 3; i++) {
		for (uint64_t match = 1; match <= 640; match++)
			hand_op(ranks[i], 1, OP_ALL_REDUCE, match, 8, 1000 + 100 * (uint64_t)i,
				match * 100000);
		ranks[i]->comms[0].counts.collectives = 640;
	}
	options.match_limit = 320;
	made();
	EXPECT_THAT("counters known beforehand: a sample over the whole time",
		    report.matches.stride > 1 && report.matches.joined > 3 * 100 &&
			    report.matches.partial == 0);
	EXPECT_EQUAL(report.total.wait_ns, report.matches.joined / 3 * 300);
	over();
}

static void test_filters(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++) {
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 3000, 5000 - 1000 * (uint64_t)i, 100000);
		hand_op(ranks[i], 1, OP_ALL_GATHER, 2, 600, 1000, 200000)->user_tag = 5;
	}
	filter_add_ranks(&filter, "0");
	filter.functions[0] = "allreduce";
	filter.function_count = 1;
	made();
	EXPECT_THAT("one rank, one function", report.total.calls == 1 && report.by_rank.count == 1);
	EXPECT_THAT("it is matched with ranks that are not shown", report.total.wait_ns == 2000);
	over();

	three(ranks);
	for (int i = 0; i < 3; i++) {
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 8, 5000, 100000);
		hand_op(ranks[i], 1, OP_ALL_GATHER, 2, 8, 1000, 200000)->user_tag = 5;
		ranks[i]->anchors = calloc(1, sizeof(struct clock_anchor));
		ranks[i]->anchors[0] = (struct clock_anchor){ 50000, 1700000000000050000 };
		ranks[i]->anchor_count = 1;
	}
	filter.has_tag = true;
	filter.tag = 5;
	options.custom_by[0] = TALLY_BY_TAG;
	options.custom_count = 1;
	made();
	EXPECT_THAT("one tag", report.total.calls == 3 && report.custom[0].count == 1 &&
				       report.custom[0].rows[0].key.tag == 5);
	timeline_report_release(&report);
	memset(&filter, 0, sizeof(filter));
	filter_parse_time(&filter.since, "0.0001s");
	made();
	EXPECT_THAT("since 100 us after the first anchor", report.total.calls == 3);
	EXPECT_EQUAL(report.since_ns, 1700000000000150000);
	timeline_report_release(&report);
	memset(&filter, 0, sizeof(filter));
	filter_parse_time(&filter.until, "@1700000000.00015");
	made();
	EXPECT_THAT("until a wall time",
		    report.total.calls == 3 &&
			    report.by_function.rows[0].key.function == OP_ALL_REDUCE);
	timeline_report_release(&report);
	memset(&filter, 0, sizeof(filter));
	filter.comms[0] = "nobody";
	filter.comm_count = 1;
	made();
	EXPECT_THAT("nothing passes", report.total.calls == 0);
	EXPECT(has_finding(FINDINGS_NOTHING_RECORDED));
	over();
}

static void test_unfinished(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++) {
		struct op_record *op;

		ranks[i]->life = RECORDING_KILLED;
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 8, 1000, 100000);
		ranks[i]->comms[0].counts.last_done_number = 1;
		if (i == 1)
			continue;
		op = hand_op(ranks[i], 1, OP_ALL_REDUCE, 2, 8, 0, 0);
		op->state = OP_RUNNING;
		op->time_source = OP_TIME_NONE;
		op->issue_ns = 150000;
	}
	made();
	EXPECT_THAT("two are in flight",
		    report.total.open == 2 && report.completeness.in_flight == 2);
	EXPECT(has_finding(FINDINGS_HUNG) && has_finding(FINDINGS_KILLED));
	EXPECT_THAT("the missing rank is named",
		    strstr(report.findings.list[0].text, "Not in it: 1.") != NULL);
	EXPECT_THAT("the most serious comes first",
		    report.findings.list[0].severity == FINDINGS_ERROR);
	over();

	three(ranks);
	hand_op(ranks[0], 1, OP_ALL_REDUCE, 1, OP_BYTES_UNKNOWN, 1000, 100000)->state = OP_CAPTURED;
	hand_op(ranks[1], 1, OP_ALL_REDUCE, 1, OP_BYTES_UNKNOWN, 1000, 100000);
	made();
	EXPECT_THAT("a captured operation is not a call",
		    report.total.calls == 1 && report.total.captured == 1);
	EXPECT_THAT("an unknown size is not a number", report.total.unknown_size == 1 &&
							       report.total.bytes == 0 &&
							       tally_algbw(&report.total) == 0);
	over();
}

static void test_time_and_share(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++) {
		/* Clocks are seconds apart. */
		uint64_t base = 1000000 + 5000000000 * (uint64_t)i;

		for (uint64_t n = 1; n <= 200; n++)
			hand_op(ranks[i], 1, OP_ALL_REDUCE, n, 1 << 20, 20000 + (uint64_t)i,
				base + n * 100000);
	}
	made();
	EXPECT_THAT("a fifth of the time is communication",
		    report.ranks[0].busy_ns == 200 * 20000 &&
			    report.ranks[0].span_ns == 199 * 100000 + 20000 &&
			    report.busy_share > 0.19 && report.busy_share < 0.21);
	EXPECT_THAT("all are aligned, whatever their clocks",
		    report.align.island_count == 1 && report.align.unaligned == 0 &&
			    report.ranks[0].last_ns == report.ranks[2].last_ns);
	EXPECT_THAT("the recording spans its operations, not the clocks",
		    report.end_ns - report.start_ns < 21000000);
	EXPECT_THAT("windows have all calls", report.windows.series_count == 1);
	if (report.windows.series_count == 1) {
		double calls = 0, waiting = 0;

		for (uint32_t w = 0; w < report.windows.count; w++)
			calls += report.windows.series[0].calls[w];
		for (uint32_t i = 0; i < report.windows.waiting.rows * report.windows.count; i++)
			waiting += report.windows.waiting.wait_ns[i];
		EXPECT_THAT("all calls", calls > 599.9 && calls < 600.1);
		EXPECT_THAT("and all waiting",
			    waiting > 599.9 && waiting < 600.1 && report.total.wait_ns == 600);
	}
	EXPECT_THAT("no straggler by two nanoseconds", report.stragglers.count == 0);
	over();
}

static bool stop(double fraction, void *context)
{
	*(double *)context = fraction;
	return false;
}

static void test_cancel(void)
{
	struct recording_process *ranks[3];
	double fraction = -1;

	three(ranks);
	hand_op(ranks[0], 1, OP_ALL_REDUCE, 1, 8, 1000, 100000);
	options.progress = stop;
	options.progress_context = &fraction;
	EXPECT(timeline_report_make(&report, &hand.recording, &filter, &options) == ERR_GONE);
	EXPECT(fraction >= 0);
	over();
	made();
	EXPECT_THAT("an empty recording has a report, too",
		    report.total.calls == 0 && has_finding(FINDINGS_NOTHING_RECORDED));
	over();
}

/* NCCL reported the call and nothing of its end. */
static void untimed_op(struct recording_process *rank, uint8_t function, uint64_t match,
		       uint64_t bytes, uint64_t issue_ns)
{
	struct op_record *op = hand_op(rank, 1, function, match, bytes, 0, issue_ns);

	op->time_source = OP_TIME_NONE;
	op->gpu_start_ns = op->gpu_stop_ns = op->active_ns = op->done_ns = 0;
	op->issue_ns = issue_ns;
	op->state = OP_LAUNCHED;
}

/* Three ranks; per rank 2 of 4 small AllReduce are timed, 1 of 10 large ones, and no Broadcast. */
static void sampled(struct recording_process *ranks[3])
{
	static const uint64_t small[3] = { 500, 300, 400 }, large[3] = { 7000, 9000, 5000 };

	three(ranks);
	for (int i = 0; i < 3; i++) {
		untimed_op(ranks[i], OP_BROADCAST, 1, 64, 50000);
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 2, 8, small[i], 100000);
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 3, 8, small[i], 110000);
		untimed_op(ranks[i], OP_ALL_REDUCE, 4, 8, 120000);
		untimed_op(ranks[i], OP_ALL_REDUCE, 5, 8, 130000);
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 6, 4096, large[i], 200000);
		for (uint64_t n = 0; n < 9; n++)
			untimed_op(ranks[i], OP_ALL_REDUCE, 7 + n, 4096, 300000 + 1000 * n);
	}
}

static void test_sampled(void)
{
	struct recording_process *ranks[3];
	const struct tally_row *row;

	sampled(ranks);
	made();
	EXPECT_EQUAL(report.total.calls, 3 * 15);
	EXPECT_EQUAL(report.total.timed, 3 * 3);
	EXPECT_EQUAL(report.total.covered, 3 * 11);
	EXPECT_EQUAL(tally_not_timed(&report.total), 3);
	EXPECT_THAT("the sum has only the timed calls", report.total.sum_ns == 2400 + 21000);
	EXPECT_THAT("a total is scaled kind by kind",
		    tally_total_ns(&report.total) == 2 * 2400 + 10 * 21000);
	EXPECT_THAT("and so is waiting",
		    report.total.wait_ns == 600 + 6000 &&
			    tally_total_wait_ns(&report.total) == 2 * 600 + 10 * 6000 &&
			    (uint64_t)(report.gpu_hours_waited * 3.6e12 + 0.5) == 61200);
	EXPECT_THAT("its share, too", tally_wait_share(&report.total) == 61200.0 / 214800.0);
	EXPECT_THAT("by rank", report.ranks[1].wait_ns == 4000 &&
				       report.ranks[1].covered_wait_ns == 9 * 4000.0 &&
				       report.ranks[1].covered_ns == 600 + 9 * 9000.0);
	row = row_of(&report.by_function, OP_ALL_REDUCE);
	EXPECT_THAT("bandwidth is that of the timed calls",
		    tally_algbw(row) == (6 * 8 + 3 * 4096) * 1e9 / 23400);
	row = row_of(&report.by_function, OP_BROADCAST);
	EXPECT_THAT("a kind without timed calls has no estimate",
		    row->timed == 0 && row->covered == 0 && tally_total_ns(row) == 0 &&
			    tally_not_timed(row) == 3);
	EXPECT_THAT("and is listed once for all ranks",
		    report.untimed_count == 1 && report.untimed[0].calls == 3 &&
			    report.untimed[0].comm == 0 &&
			    (uint8_t)report.untimed[0].names == OP_BROADCAST);
	EXPECT_THAT("tables by source have no estimates",
		    report.by_source.count == 2 && report.by_source.rows[0].covered == 0 &&
			    report.by_source.rows[1].covered == 0);
	EXPECT_THAT("a rank's span includes untimed calls",
		    report.ranks[0].span_ns == 308000 - 50000);
	EXPECT_THAT("its share of time is scaled like its durations",
		    report.ranks[0].is_busy_known &&
			    (uint64_t)(report.ranks[0].busy_share * 258000 + 0.5) ==
				    2 * 1000 + 10 * 7000);
	EXPECT_THAT("a communicator's scale is that of its collectives' time",
		    report.comms[0].scale == 214800.0 / 23400.0);
	over();
}

/* Rank 1 arrives 80 us late; of each 128 collectives 32 are timed. The cost is that of all of them. */
static void test_straggler_sampled(void)
{
	enum { CALLS = 2048 };
	struct recording_process *ranks[3];
	uint64_t caused_ns[2] = { 0, 0 };
	size_t named = 0;

	for (int sampled = 0; sampled < 2; sampled++) {
		three(ranks);
		for (uint64_t n = 1; n <= CALLS; n++)
			for (int i = 0; i < 3; i++) {
				uint64_t jitter_ns = (n * 7 + (uint64_t)i * 3) % 5;

				if (sampled && n % 128 >= 32)
					untimed_op(ranks[i], OP_ALL_REDUCE, n, 4096, n * 1000000);
				else
					hand_op(ranks[i], 1, OP_ALL_REDUCE, n, 4096,
						(i == 1 ? 20000 : 100000) + jitter_ns, n * 1000000);
			}
		made();
		if (report.stragglers.count == 1 &&
		    report.stragglers.list[0].class == STRAGGLER_SLOW_RANK &&
		    report.stragglers.list[0].rank == 1)
			named++;
		if (report.stragglers.count > 0)
			caused_ns[sampled] = report.stragglers.list[0].caused_ns;
		over();
	}
	EXPECT_THAT("the same rank is named if a quarter is timed", named == 2);
	EXPECT_THAT("its cost is that of all collectives",
		    caused_ns[0] > 0 && caused_ns[1] > caused_ns[0] / 100 * 97 &&
			    caused_ns[1] < caused_ns[0] / 100 * 103);
}

static void test_not_timed(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++)
		for (uint64_t n = 1; n <= 4; n++)
			untimed_op(ranks[i], OP_ALL_REDUCE, n, 8, 1000 * n);
	made();
	EXPECT_THAT("if nothing is timed nothing is estimated",
		    report.total.calls == 12 && report.total.timed == 0 &&
			    report.total.covered == 0 && tally_total_ns(&report.total) == 0 &&
			    tally_not_timed(&report.total) == 12);
	EXPECT_THAT("the share of time is unknown, the span is not",
		    report.busy_ranks == 0 && !report.ranks[0].is_busy_known &&
			    report.ranks[0].span_ns == 3000 && report.gpu_hours > 0);
	over();
}

static void test_in_flight_is_not_untimed(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++) {
		ranks[i]->life = RECORDING_KILLED;
		ranks[i]->comms[0].info.flags |= COMM_FLAG_SEES_KERNELS;
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 8, 500, 1000);
		untimed_op(ranks[i], OP_ALL_REDUCE, 2, 8, 2000);
	}
	made();
	EXPECT_THAT("a call in flight has no time yet: all that could be timed were",
		    report.total.open == 3 && !tally_is_sampled(&report.total) &&
			    report.total.covered == 0 && report.comms[0].scale == 1);
	over();
}

/* Tags split rows, not kinds: a tag's calls take as long as those of its kind. */
static void test_sampled_by_tag(void)
{
	struct recording_process *ranks[3];

	options.custom_by[0] = TALLY_BY_TAG;
	options.custom_count = 1;
	three(ranks);
	for (int i = 0; i < 3; i++) {
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 8, 500, 1000)->user_tag = 1;
		untimed_op(ranks[i], OP_ALL_REDUCE, 2, 8, 2000);
		ranks[i]->flights[ranks[i]->flight_count - 1].op.user_tag = 2;
	}
	made();
	EXPECT_THAT("a tag without a timed call has its kind's mean",
		    report.custom[0].count == 2 && report.custom[0].rows[1].key.tag == 2 &&
			    report.custom[0].rows[1].timed == 0 &&
			    tally_total_ns(&report.custom[0].rows[1]) == 1500 &&
			    tally_total_ns(&report.total) == 3000);
	over();
}

/* ---- completeness ------------------------------------------------------------------------------ */

/* Two processes with four operations each, all of which were recorded. */
static void begin_complete(struct recording_process *ranks[2])
{
	for (int i = 0; i < 2; i++) {
		ranks[i] = hand_process(&hand, "j", i, "a");
		hand_comm(ranks[i], 0x77, "world", i, 2, 1);
		for (uint64_t n = 1; n <= 4; n++)
			hand_op(ranks[i], 1, OP_ALL_REDUCE, n, 8, 100, n * 1000);
	}
}

static void test_complete(void)
{
	static const struct {
		const char *what;
		uint64_t more_issued; /* by the first process */
		unsigned int reason;  /* of what it lost */
		uint64_t lost;
		bool has_counts, is_final;
		const char *mode;
		bool is_snapshot;
		size_t troubles;
		struct {
			bool is_complete, keeps_all;
			uint64_t issued, lost, overwritten;
			double share;
		} wanted;
	} cases[] = {
		{ "all was read",
		  0,
		  0,
		  0,
		  true,
		  true,
		  "trace",
		  false,
		  0,
		  { true, true, 8, 0, 0, 1 } },
		{ "mode full keeps all, too",
		  0,
		  0,
		  0,
		  true,
		  true,
		  "full",
		  false,
		  0,
		  { true, true, 8, 0, 0, 1 } },
		{ "mode flight does not, even if nothing is missing",
		  0,
		  0,
		  0,
		  true,
		  true,
		  "flight",
		  false,
		  0,
		  { true, false, 8, 0, 0, 1 } },
		{ "nor does a snapshot",
		  0,
		  0,
		  0,
		  true,
		  true,
		  "trace",
		  true,
		  0,
		  { true, false, 8, 0, 0, 1 } },
		{ "a file lacks two",
		  2,
		  0,
		  0,
		  true,
		  true,
		  "trace",
		  false,
		  0,
		  { false, true, 10, 0, 0, 0.8 } },
		{ "a ring has overwritten two",
		  2,
		  0,
		  0,
		  true,
		  true,
		  "flight",
		  false,
		  0,
		  { false, false, 10, 0, 2, 0.8 } },
		{ "of two, one was lost and one overwritten",
		  2,
		  LOST_RING_BUSY,
		  1,
		  true,
		  true,
		  "flight",
		  false,
		  0,
		  { false, false, 10, 1, 1, 0.8 } },
		{ "both were lost",
		  2,
		  LOST_RING_BUSY,
		  2,
		  true,
		  true,
		  "flight",
		  false,
		  0,
		  { false, false, 10, 2, 0, 0.8 } },
		{ "what no communicator counted adds to what was called",
		  0,
		  LOST_OFF,
		  2,
		  true,
		  true,
		  "trace",
		  false,
		  0,
		  { false, true, 10, 2, 0, 0.8 } },
		{ "a lost detail is no lost operation",
		  0,
		  LOST_DETAIL_QUOTA,
		  2,
		  true,
		  true,
		  "trace",
		  false,
		  0,
		  { true, true, 8, 0, 0, 1 } },
		{ "counters are not final",
		  0,
		  0,
		  0,
		  true,
		  false,
		  "trace",
		  false,
		  0,
		  { false, true, 8, 0, 0, 1 } },
		{ "there are no counters",
		  0,
		  0,
		  0,
		  false,
		  true,
		  "trace",
		  false,
		  0,
		  { false, true, 8, 0, 0, 1 } },
		{ "a file could not be read",
		  0,
		  0,
		  0,
		  true,
		  true,
		  "trace",
		  false,
		  1,
		  { false, true, 8, 0, 0, 1 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct timeline_completeness *got = &report.completeness;
		struct recording_process *ranks[2];

		begin_complete(ranks);
		ranks[0]->comms[0].counts.issued += cases[i].more_issued;
		ranks[0]->lost[cases[i].reason] = cases[i].lost;
		ranks[0]->has_counts = cases[i].has_counts;
		ranks[0]->is_final = cases[i].is_final;
		ranks[0]->is_snapshot = cases[i].is_snapshot;
		snprintf(ranks[0]->mode, sizeof(ranks[0]->mode), "%s", cases[i].mode);
		hand.recording.troubles_left_out = cases[i].troubles;
		made();
		EXPECT_THAT(cases[i].what, got->is_complete == cases[i].wanted.is_complete &&
						   got->keeps_all == cases[i].wanted.keeps_all &&
						   got->share == cases[i].wanted.share);
		EXPECT_EQUAL(got->issued, cases[i].wanted.issued);
		EXPECT_EQUAL(got->lost_operations, cases[i].wanted.lost);
		EXPECT_EQUAL(got->lost[cases[i].reason], cases[i].lost);
		EXPECT_EQUAL(got->overwritten, cases[i].wanted.overwritten);
		EXPECT(got->read == 8 && got->processes == 2 && got->troubles == cases[i].troubles);
		EXPECT(got->snapshots == cases[i].is_snapshot &&
		       got->with_counts == (cases[i].has_counts && cases[i].is_final ? 2 : 1));
		over();
	}
	made();
	EXPECT_THAT("of nothing, nothing is complete", !report.completeness.is_complete &&
							       report.completeness.share == 0 &&
							       !report.completeness.keeps_all);
	over();
}

static void test_lives(void)
{
	static const enum recording_life lives[] = {
		RECORDING_ENDED,   RECORDING_ENDED,   RECORDING_ENDED,	 RECORDING_ALIVE,
		RECORDING_ALIVE,   RECORDING_KILLED,  RECORDING_UNKNOWN, RECORDING_UNKNOWN,
		RECORDING_UNKNOWN, RECORDING_UNKNOWN,
	};
	const struct timeline_completeness *got = &report.completeness;

	for (int i = 0; i < 10; i++)
		hand_process(&hand, "j", i, "a")->life = lives[i];
	made();
	EXPECT(got->ended == 3 && got->alive == 2 && got->killed == 1 && got->unknown_life == 4);
	EXPECT_THAT("our own recordings mark their end", got->without_end_mark == 0);
	over();
}

/* ---- hosts ------------------------------------------------------------------------------------- */

/* Two ranks of host a and one of host b, 400, 200 and 300 ns in each of ten AllReduces, one per microsecond. */
static void test_hosts(void)
{
	static const uint64_t durations[3] = { 400, 200, 300 };
	struct recording_process *ranks[3];

	for (int is_filtered = 0; is_filtered < 2; is_filtered++) {
		const struct timeline_host *a = NULL, *b = NULL;

		three(ranks);
		for (int i = 0; i < 3; i++)
			for (uint64_t n = 1; n <= 10; n++)
				hand_op(ranks[i], 1, OP_ALL_REDUCE, n, 8, durations[i], n * 1000);
		if (is_filtered && filter_add_ranks(&filter, "1,2") != OK)
			abort();
		made();
		a = &report.hosts[0];
		b = &report.hosts[1];
		if (is_filtered) {
			EXPECT_THAT("a rank that is not shown adds nothing to its host",
				    a->ranks == 1 && a->timed == 10 && a->wait_ns == 0 &&
					    a->sum_ns == 2000 && a->busy_ranks == 1 &&
					    report.busy_ranks == 2);
		} else {
			EXPECT(a->ranks == 2 && a->busy_ranks == 2 && a->timed == 20 &&
			       a->wait_ns == 2000 && a->joined_ns == 6000 && a->sum_ns == 6000);
			EXPECT(a->covered_ns == 0 && a->covered_wait_ns == 0);
			EXPECT_THAT("a host's share of time is the mean of its ranks'",
				    a->busy_share == (report.ranks[0].busy_share +
						      report.ranks[1].busy_share) /
							     2);
			EXPECT(report.ranks[0].busy_share == 4000. / 9400 &&
			       report.ranks[1].busy_share == 2000. / 9200 &&
			       report.ranks[2].busy_share == 3000. / 9300);
		}
		EXPECT(b->ranks == 1 && b->busy_ranks == 1 && b->timed == 10 &&
		       b->wait_ns == 1000 && b->joined_ns == 3000 && b->sum_ns == 3000 &&
		       b->busy_share == report.ranks[2].busy_share);
		over();
	}

	/* One operation of no length: it says nothing about a share of time. */
	three(ranks);
	hand_op(ranks[0], 1, OP_ALL_REDUCE, 1, 8, 0, 1000)->issue_ns = 1000;
	made();
	EXPECT(!report.ranks[0].is_busy_known && report.hosts[0].busy_ranks == 0 &&
	       report.hosts[0].busy_share == 0 && report.busy_share == 0);
	over();
}

/* Host "b" is half as often timed: what it did not time is estimated. */
static void test_covered_hosts(void)
{
	struct recording_process *ranks[3];

	three(ranks);
	for (int i = 0; i < 3; i++)
		for (uint64_t n = 1; n <= 4; n++) {
			if (n % 2 == 1 || i < 2)
				hand_op(ranks[i], 1, OP_ALL_REDUCE, n, 8, 100 + (i == 2) * 50,
					n * 1000);
			else
				untimed_op(ranks[i], OP_ALL_REDUCE, n, 8, n * 1000);
		}
	made();
	EXPECT_THAT("two calls of 150 ns, each 50 ns of waiting",
		    report.hosts[1].covered_ns == 300 && report.hosts[1].covered_wait_ns == 100 &&
			    report.hosts[0].covered_ns == 0);
	EXPECT_EQUAL(report.gpu_hours_waited * 3.6e12 + 0.5, 200);
	over();
}

/* ---- tables ------------------------------------------------------------------------------------ */

static void test_tables(void)
{
	struct recording_process *ranks[3];
	uint32_t second;

	options.custom_by[0] = TALLY_BY_FUNCTION | TALLY_BY_SIZE;
	options.custom_by[1] = TALLY_BY_FUNCTION;
	options.custom_count = 2;
	three(ranks);
	second = hand_comm(ranks[0], 0x88, "pair", 0, 2, 1);
	hand_comm(ranks[1], 0x88, "pair", 1, 2, 1);
	for (int i = 0; i < 3; i++) {
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 8, 100, 1000);
		hand_op(ranks[i], 1, OP_ALL_REDUCE, 2, 1 << 20, 200, 2000)->protocol = OP_LL;
		if (i < 2) {
			hand_op(ranks[i], second, OP_ALL_REDUCE, 1, 8, 100, 3000);
			hand_op(ranks[i], second, OP_BROADCAST, 2, 8, 900, 4000);
		}
	}
	made();
	EXPECT(report.by_comm.count == 2 && report.by_comm_name.count == 2 &&
	       report.by_function.count == 2 && report.by_size.count == 3 &&
	       report.by_algorithm.count == 3 && report.by_rank.count == 3 &&
	       report.by_kind.count == 3 && report.by_source.count == 1);
	EXPECT(report.by_comm_name.by == (TALLY_BY_GROUP | TALLY_BY_COMM_NAME | TALLY_BY_KIND) &&
	       report.by_size.by == (TALLY_BY_FUNCTION | TALLY_BY_SIZE) &&
	       report.by_kind.by == (TALLY_BY_KIND | TALLY_BY_FUNCTION));
	EXPECT_EQUAL(report.custom_count, 2);
	EXPECT_THAT("sizes come in their order",
		    report.custom[0].count == 3 && report.custom[0].rows[0].key.size_class <
							   report.custom[0].rows[1].key.size_class);
	EXPECT_THAT("anything else by time",
		    report.custom[1].count == 2 &&
			    report.custom[1].rows[0].key.function == OP_BROADCAST);
	EXPECT_THAT("collectives of each communicator are counted there",
		    report.comms[0].complete == 2 && report.comms[1].complete == 1);
	EXPECT(report.memory_bytes > 3 * sizeof(struct match_part));
	over();

	for (size_t i = 0; i < TIMELINE_CUSTOM_MAX; i++)
		options.custom_by[i] = TALLY_BY_FUNCTION;
	options.custom_count = TIMELINE_CUSTOM_MAX + 1;
	made();
	EXPECT_EQUAL(report.custom_count, TIMELINE_CUSTOM_MAX);
	over();
}

/* ---- time -------------------------------------------------------------------------------------- */

static void test_time_text(void)
{
	const struct timeline_report wall = { .has_wall = true,
					      .start_ns = UINT64_C(1700000000000000000) };
	const struct timeline_report bare = { .start_ns = 5000000000 };

	EXPECT(strcmp(timeline_time(&wall, UINT64_C(1700000060000000000), " UTC").text,
		      "22:14:20 UTC") == 0);
	EXPECT(strcmp(timeline_time(&bare, 8000000000, " UTC").text, "3.00 s after the start") ==
	       0);
	EXPECT_THAT("nothing is before the start",
		    strcmp(timeline_time(&bare, 4000000000, " UTC").text,
			   timeline_time(&bare, 5000000000, " UTC").text) == 0);
}

/* A report spans the ranks that are shown and have operations. */
static void test_span(void)
{
	static struct clock_anchor anchor = { .clock_ns = 1, .wall_ns = 1000001 };
	struct recording_process *ranks[3];

	for (int is_filtered = 0; is_filtered < 2; is_filtered++) {
		three(ranks);
		for (int i = 0; i < 2; i++)
			hand_op(ranks[i], 1, OP_ALL_REDUCE, 1, 8, 100, 5000);
		hand_op(ranks[1], 1, OP_BROADCAST, 2, 8, 100, 9000);
		hand_op(ranks[0], 1, OP_BROADCAST, 2, 8, 100, 2000);
		if (is_filtered && filter_add_ranks(&filter, "0") != OK)
			abort();
		ranks[1]->anchors = calloc(1, sizeof(anchor));
		if (ranks[1]->anchors == NULL)
			abort();
		*ranks[1]->anchors = anchor;
		ranks[1]->anchor_count = 1;
		made();
		EXPECT_EQUAL(report.end_ns - report.start_ns, is_filtered ? 3100 : 7100);
		EXPECT_THAT("one process that knows the time of day is enough", report.has_wall);
		over();
	}
	three(ranks);
	made();
	EXPECT(!report.has_wall);
	over();
}

static bool stop_at_the_end(double fraction, void *context)
{
	(void)context;
	return fraction < 1;
}

static void test_cancel_at_the_end(void)
{
	options.progress = stop_at_the_end;
	EXPECT_EQUAL(timeline_report_make(&report, &hand.recording, &filter, &options), ERR_GONE);
	over();
}

/* Calls in order, whatever the order in which they ended: an operation that was called first and ended last. */
static void test_order_of_calls(void)
{
	enum { STEPS = 50, OPS = 12 };
	struct recording_process *process;

	for (int is_far = 0; is_far < 2; is_far++) {
		process = hand_process(&hand, "j", 0, "a");
		hand_comm(process, 0x77, "world", 0, 1, 1);
		for (uint64_t step = 0; step < STEPS * (is_far ? 4 : 1); step++)
			for (uint64_t n = 1; n <= OPS; n++) {
				uint64_t called_ns = (step * OPS + n) * 1000;

				if (step == 0 && n == 1)
					continue;
				hand_op(process, 1, n == 1 ? OP_BROADCAST : OP_ALL_REDUCE, 0, 8,
					100, called_ns + 100);
				/* Pairs end in the opposite order. */
				if (n == 3)
					process->flights[process->flight_count - 1].op.issue_ns -=
						1500;
			}
		/* The very first call ends last, after half a thousand or more than two thousand others. */
		hand_op(process, 1, OP_BROADCAST, 0, 8, 100, 10000000)->issue_ns = 1000;
		made();
		EXPECT(report.iterations.is_found && report.iterations.period_ops == OPS &&
		       report.iterations.warm_up_ops == 0 && report.iterations.tail_ops == 0 &&
		       report.iterations.regular == (is_far ? 4 * STEPS : STEPS));
		over();
	}
}

int main(void)
{
	test_waiting();
	test_partial();
	test_sources();
	test_no_durations();
	test_mismatch();
	test_repeated();
	test_limit();
	test_filters();
	test_unfinished();
	test_time_and_share();
	test_cancel();
	test_sampled();
	test_straggler_sampled();
	test_not_timed();
	test_in_flight_is_not_untimed();
	test_sampled_by_tag();
	test_complete();
	test_lives();
	test_hosts();
	test_covered_hosts();
	test_tables();
	test_time_text();
	test_span();
	test_cancel_at_the_end();
	test_order_of_calls();
	return tap_done();
}
