/* The small parts of src/analysis: busy, filter, statistics, align_fit, windows_local, links. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/align_fit.h"
#include "analysis/collect.h"
#include "analysis/filter.h"
#include "analysis/stats.h"
#include "common/text.h"
#include "tests/tap.h"

static void test_busy(void)
{
	struct busy busy = BUSY_INIT;
	uint64_t wanted = 0;

	EXPECT_EQUAL(busy_total_ns(&busy), 0);
	busy_add(&busy, 10, 20);
	busy_add(&busy, 15, 25);
	EXPECT_EQUAL(busy_total_ns(&busy), 15);
	busy_add(&busy, 40, 50);
	EXPECT_EQUAL(busy_total_ns(&busy), 25);
	busy_add(&busy, 5, 12);
	EXPECT_THAT("an interval that is late and reaches back", busy_total_ns(&busy) == 30);
	busy_add(&busy, 24, 42);
	EXPECT_THAT("an interval that closes a gap", busy_total_ns(&busy) == 45 && busy.count == 1);
	busy_add(&busy, 60, 61);
	busy_add(&busy, 55, 56);
	EXPECT_THAT("an interval in between", busy_total_ns(&busy) == 47 && busy.count == 3);
	EXPECT_THAT("span", busy.first_ns == 5 && busy_last_ns(&busy) == 61 && busy.cut == 0);

	busy = BUSY_INIT;
	for (uint64_t i = 0; i < 1000; i++) {
		busy_add(&busy, 100 * i, 100 * i + 30);
		wanted += 30;
	}
	EXPECT_THAT("thousands of pieces in bounded memory", busy_total_ns(&busy) == wanted);
	busy_add(&busy, 99900 - 1000, 99930);
	EXPECT_THAT("an interval that reaches back over ten of them",
		    busy_total_ns(&busy) == wanted + 10 * 70 && busy.cut == 0);
	busy_add(&busy, 0, 99930);
	EXPECT_THAT("too far back is cut and counted", busy.cut == 1);
}

static void test_busy_at_random(void)
{
	static unsigned char covered[20000];
	struct busy busy = BUSY_INIT;
	uint64_t seed = 3, wanted = 0;

	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t end = 300 + i * 6, length, from;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		length = 1 + (seed >> 40) % 40;
		from = end - (seed >> 50) % 30 - length;
		busy_add(&busy, from, from + length);
		memset(covered + from, 1, length);
	}
	for (size_t i = 0; i < sizeof(covered); i++)
		wanted += covered[i];
	EXPECT_EQUAL(busy_total_ns(&busy), wanted);
}

static void test_filter_ranks(void)
{
	struct filter filter = { .comm_count = 0 };

	EXPECT_THAT("without a list all ranks pass", filter_has_rank(&filter, 77));
	EXPECT(filter_add_ranks(&filter, "0-3,8") == OK);
	EXPECT(filter_has_rank(&filter, 0) && filter_has_rank(&filter, 3) &&
	       filter_has_rank(&filter, 8) && !filter_has_rank(&filter, 4) &&
	       !filter_has_rank(&filter, -1));
	EXPECT(filter_add_ranks(&filter, "12") == OK && filter_has_rank(&filter, 12));
	EXPECT(filter_add_ranks(&filter, "") == ERR_FORMAT);
	EXPECT(filter_add_ranks(&filter, "3-1") == ERR_FORMAT);
	EXPECT(filter_add_ranks(&filter, "1,") == ERR_FORMAT);
	EXPECT(filter_add_ranks(&filter, "1 2") == ERR_FORMAT);
	EXPECT(filter_add_ranks(&filter, "99999999999") == ERR_FORMAT);
	filter.range_count = 0;
	EXPECT(filter_add_ranks(&filter, "2147483648") == ERR_FORMAT);
	EXPECT(filter_add_ranks(&filter, "5-5,2147483647") == OK && filter.range_count == 2 &&
	       filter_has_rank(&filter, INT32_MAX) && filter_has_rank(&filter, 5) &&
	       !filter_has_rank(&filter, 6));
	for (filter.range_count = 0; filter.range_count < FILTER_RANGES_MAX;)
		EXPECT_EQUAL(filter_add_ranks(&filter, "1"), OK);
	EXPECT_EQUAL(filter_add_ranks(&filter, "1"), ERR_NO_SPACE);
}

static void test_filter_comms(void)
{
	struct job_comm comm = { .hash = UINT64_C(0x0123456789abcdef), .name = "world" };
	struct filter filter = { .comms = { "world" }, .comm_count = 1 };

	text_copy(comm.label, sizeof(comm.label), "world 0x0123456789abcdef");
	EXPECT(filter_has_comm(&filter, &comm));
	filter.comms[0] = "wor";
	EXPECT_THAT("a name must match completely", !filter_has_comm(&filter, &comm));
	filter.comms[0] = "0x0123";
	EXPECT_THAT("a hash may be a prefix", filter_has_comm(&filter, &comm));
	filter.comms[0] = "0123456789ABCDEF";
	EXPECT(filter_has_comm(&filter, &comm));
	filter.comms[0] = "0x123";
	EXPECT(!filter_has_comm(&filter, &comm));
	filter.comms[0] = "0x";
	EXPECT(!filter_has_comm(&filter, &comm));
	filter.comms[0] = comm.label;
	EXPECT_THAT("a label as a report prints it", filter_has_comm(&filter, &comm));
}

static uint64_t parsed(const char *text, enum filter_time_base base)
{
	struct filter_time time;

	if (filter_parse_time(&time, text) != OK || time.base != base)
		return UINT64_MAX;
	return time.ns;
}

static void test_filter_times(void)
{
	static const char *const wrong[] = { "",
					     "s",
					     "1x",
					     "25:00",
					     "12:61",
					     "@",
					     "--5s",
					     "1.2.3s",
					     "2026-13-01",
					     "5 s",
					     "14:03:99",
					     "@1.5x",
					     "12:00:00x",
					     "2026-01-01T9x",
					     "1969-12-31",
					     "2026-00-01",
					     "2026-01-00",
					     "2026-01-32",
					     "24:00",
					     "23:60",
					     "14:03:60.1",
					     "2026-01-01TZ",
					     "2026-01-01ZZ",
					     "14:03ZZ",
					     "2026-02-29",
					     "2026-04-31",
					     "@-1" };
	struct filter_time time;

	EXPECT_EQUAL(parsed("30s", FILTER_FROM_START), 30000000000);
	EXPECT_EQUAL(parsed("1.5h", FILTER_FROM_START), 5400000000000);
	EXPECT_EQUAL(parsed("250ms", FILTER_FROM_START), 250000000);
	EXPECT_EQUAL(parsed("7", FILTER_FROM_START), 7000000000);
	EXPECT_EQUAL(parsed("-30s", FILTER_FROM_END), 30000000000);
	EXPECT_EQUAL(parsed("14:03:10.5", FILTER_TIME_OF_DAY), 50590500000000);
	EXPECT_EQUAL(parsed("14:03", FILTER_TIME_OF_DAY), 50580000000000);
	EXPECT_EQUAL(parsed("@1700000000.25", FILTER_WALL), 1700000000250000000);
	EXPECT_EQUAL(parsed("2023-11-14T22:13:20Z", FILTER_WALL), 1700000000000000000);
	EXPECT_EQUAL(parsed("2023-11-14 22:13:20", FILTER_WALL), 1700000000000000000);
	EXPECT_EQUAL(parsed("2023-11-14", FILTER_WALL), 1699920000000000000);
	EXPECT_EQUAL(parsed("1970-01-01", FILTER_WALL), 0);
	EXPECT_EQUAL(parsed("2024-02-29", FILTER_WALL), 1709164800000000000);
	EXPECT_EQUAL(parsed("1970-12-31T23:59:60", FILTER_WALL), 31536000000000000);
	EXPECT_EQUAL(parsed("00:00", FILTER_TIME_OF_DAY), 0);
	EXPECT_EQUAL(parsed("23:59:00Z", FILTER_TIME_OF_DAY), 86340000000000);
	EXPECT_EQUAL(parsed("+5us", FILTER_FROM_START), 5000);
	EXPECT_EQUAL(parsed("-2min", FILTER_FROM_END), 120000000000);
	EXPECT_EQUAL(parsed("2m", FILTER_FROM_START), 120000000000);
	EXPECT_EQUAL(parsed("3d", FILTER_FROM_START), 259200000000000);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (!EXPECT_THAT("not a time", filter_parse_time(&time, wrong[i]) == ERR_FORMAT))
			printf("# %s\n", wrong[i]);
}

static void test_chance(void)
{
	double values[] = { 1, 2, 3, 4, 5 }, alike[] = { 1, 1, 1, 5, 5, 5 },
	       mixed[] = { 9, 2, 5, 1 };
	struct stats_sample sample = stats_series(values, 5), flat = stats_series(alike, 6);

	EXPECT_THAT("Student's t, 1 degree: 0.25 beyond 1",
		    fabs(stats_student(1, 1) - 0.25) < 1e-9);
	EXPECT_THAT("10 degrees: 0.025 beyond 2.228",
		    fabs(stats_student(2.2281388520, 10) - 0.025) < 1e-9);
	EXPECT_THAT("30 degrees: 0.001 beyond 3.385",
		    fabs(stats_student(3.3851848668, 30) - 0.001) < 1e-8);
	EXPECT_THAT("the other side", fabs(stats_student(-1, 1) - 0.75) < 1e-9);
	EXPECT_THAT("far out it is small, but not 0",
		    stats_student(50, 8) > 0 && stats_student(50, 8) < 1e-9);
	EXPECT_THAT("and the inverse",
		    fabs(stats_student_quantile(0.025, 10) - 2.2281388520) < 1e-6);
	EXPECT_THAT("mean and deviation",
		    sample.mean == 3 && fabs(sample.deviation - sqrt(2.5)) < 1e-12);
	EXPECT_THAT("similar neighbours make the mean less certain",
		    flat.error > flat.deviation / sqrt(6) * 1.2);
	EXPECT(stats_median(values, 5) == 3 && stats_median(values, 0) == 0);
	stats_sort(mixed, 4);
	EXPECT_THAT("sorted", mixed[0] == 1 && mixed[1] == 2 && mixed[2] == 5 && mixed[3] == 9);
	EXPECT_THAT("the median of four is between the two in the middle, of three the second",
		    stats_sorted_median(mixed, 4) == 3.5 && stats_sorted_median(mixed, 3) == 2 &&
			    stats_sorted_median(mixed, 1) == 1);
}

/* Series whose values resemble their neighbours, around 0: how often is 0 outside of the 95% interval? */
static unsigned int misses(double alike, bool is_naive)
{
	enum { SERIES = 400, VALUES = 32 };
	unsigned int missed = 0;
	uint64_t seed = 11;

	for (unsigned int i = 0; i < SERIES; i++) {
		double values[VALUES], last = 0, error, reach;
		struct stats_sample sample;

		for (int j = -50; j < VALUES; j++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			last = alike * last + (double)(seed >> 40) / (1 << 24) - 0.5;
			if (j >= 0)
				values[j] = last;
		}
		sample = stats_batches(values, VALUES);
		error = is_naive ? sample.deviation / sqrt(VALUES) : sample.error;
		reach = stats_student_quantile(0.025, (double)sample.count - 1) * error;
		missed += fabs(sample.mean) > reach;
	}
	return missed * 100 / SERIES;
}

static void test_batches(void)
{
	double flat[40] = { 0 };

	EXPECT_THAT("independent values: about one interval in twenty misses",
		    misses(0, false) <= 6);
	EXPECT_THAT("similar values, as if they were independent: many miss",
		    misses(0.7, true) >= 30);
	EXPECT_THAT("counted as similar: few", misses(0.7, false) <= 12);
	EXPECT(stats_batches(flat, 40).error == 0 && stats_batches(flat, 40).count == 40);
	EXPECT(stats_batches(flat, 1).count == 1 && stats_batches(flat, 0).count == 0);
}

static void test_typical(void)
{
	double values[32], flat[3] = { 1, 1, 1 };
	struct stats_sample typical, mean;

	/* Small differences, and five values that are far off. */
	for (int i = 0; i < 32; i++)
		values[i] = (i % 5 - 2) * 0.001 + (i >= 20 && i < 25 ? 0.3 : 0);
	typical = stats_typical(values, 32);
	mean = stats_batches(values, 32);
	EXPECT_THAT("a few values that are far off move the mean",
		    mean.mean > 0.04 && mean.error > 0.02);
	EXPECT_THAT("but not what is typical", fabs(typical.mean) < 0.002 && typical.error < 0.002);
	EXPECT(stats_typical(flat, 3).mean == 1 && stats_typical(flat, 3).error == 0);
	EXPECT(stats_typical(flat, 0).count == 0);
}

static void test_fit(void)
{
	struct align_sample samples[512];
	struct align_line line;
	uint64_t seed = 5;

	for (size_t i = 0; i < 512; i++) {
		uint64_t own = UINT64_C(2500000000000000) + i * 100000000;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		/* Off by up to 5 us, one in eight by a millisecond. */
		samples[i].own_ns = own;
		samples[i].other_ns = own + UINT64_C(1700000000000000000) + (seed >> 40) % 10000 +
				      (i % 8 == 0 ? 1000000 : 0);
	}
	EXPECT(align_fit(samples, 512, &line));
	EXPECT_THAT("the median of the differences, to a microsecond",
		    llabs(line.offset_ns - 1700000000000005000) < 1500);
	EXPECT_THAT("no drift if there is none", line.drift == 0);
	for (size_t i = 0; i < 512; i++)
		samples[i].other_ns += i * 100000000 / 50000; /* 20 ppm */
	EXPECT(align_fit(samples, 512, &line));
	if (!EXPECT_THAT("20 ppm of drift", fabs(line.drift - 2e-5) < 1e-6))
		printf("# %g, spread %g\n", line.drift, line.spread_ns);
	EXPECT_THAT("90% are close", line.spread_ns < 1100000);
	EXPECT(!align_fit(samples, 0, &line));
	EXPECT_THAT("one sample is an offset",
		    align_fit(samples, 1, &line) &&
			    line.offset_ns == (int64_t)(samples[0].other_ns - samples[0].own_ns));
}

/* A time of day is the last one within the recording. */
static void test_time_of_day(void)
{
	const uint64_t hour = UINT64_C(3600) * 1000000000, day = 24 * hour;
	struct clock_anchor anchors[] = { { 0, 10 * day + 23 * hour },
					  { 0, 13 * day + 15 * hour } };
	struct recording_process process = { .anchors = anchors, .anchor_count = 2 };
	struct recording_process *processes[] = { &process };
	struct recording recording = { .processes = processes, .count = 1 };
	struct filter filter = { .since = { FILTER_TIME_OF_DAY, 14 * hour } };
	uint64_t since, until;

	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("of several days, the last", since == 13 * day + 14 * hour && until == 0);
	filter.since.ns = 16 * hour;
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("not after the end", since == 12 * day + 16 * hour);
	anchors[1].wall_ns = 11 * day + hour;
	filter.since.ns = 5 * hour / 60;
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("after midnight", since == 11 * day + 5 * hour / 60);
	filter.since.ns = 23 * hour + hour / 2;
	filter.until = (struct filter_time){ FILTER_TIME_OF_DAY, hour / 2 };
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("across midnight",
		    since == 10 * day + 23 * hour + hour / 2 && until == 11 * day + hour / 2);
	filter.since.ns = 12 * hour;
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("none within it: that of the first day", since == 10 * day + 12 * hour);
	anchors[1].wall_ns = 13 * day + 15 * hour;
	filter.since.ns = 11 * hour;
	filter.until.ns = 10 * hour;
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("from 11:00 until 10:00 begins the day before",
		    since == 12 * day + 11 * hour && until == 13 * day + 10 * hour);
	filter.until.base = FILTER_WALL;
	filter.until.ns = 13 * day + 10 * hour;
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("but only if both are times of day",
		    since == 13 * day + 11 * hour && until == 13 * day + 10 * hour);
	filter.since = (struct filter_time){ FILTER_FROM_END, 2 * hour };
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_EQUAL(since, 13 * day + 13 * hour);
	filter.since.ns = 20 * day;
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("longer before the end than there was time: from the beginning", since == 1);
	filter.since = (struct filter_time){ FILTER_FROM_START, 2 * hour };
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_EQUAL(since, 11 * day + hour);
	process.anchor_count = 0;
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_THAT("without wall times there is no limit", since == 0);
	filter.since.base = FILTER_TIME_OF_DAY;
	filter_wall_limits(&filter, &recording, &since, &until);
	EXPECT_EQUAL(since, 0);
}

int main(void)
{
	test_time_of_day();
	test_busy();
	test_busy_at_random();
	test_filter_ranks();
	test_filter_comms();
	test_filter_times();
	test_chance();
	test_batches();
	test_typical();
	test_fit();
	return tap_done();
}
