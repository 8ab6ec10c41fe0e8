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

		if (i > 0)
			op->time_source = OP_TIME_PROXY;
	}
	made();
	EXPECT_THAT("ranks are compared within one source of time",
		    report.total.wait_ns == 1000 && report.ranks[0].wait_ns == 0);
	EXPECT_THAT("rows have their sources", report.total.by_source[OP_TIME_KERNEL_GPU] == 1 &&
						       report.total.by_source[OP_TIME_PROXY] == 2 &&
						       report.by_source.count == 2);
	EXPECT(has_finding(FINDINGS_MIXED_SOURCES));
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

int main(void)
{
	test_waiting();
	test_partial();
	test_sources();
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
	return tap_done();
}
