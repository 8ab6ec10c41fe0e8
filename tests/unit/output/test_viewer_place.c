#include "output/viewer.h"

#include <stdlib.h>

#include "common/hash.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

enum { OFFSET_NS = 1000000 }; /* common time - recorder's clock */

static struct recording_comm comms[] = {
	{ .info = { .id = 1, .gpu = 0, .finalize_ns = 9000000 } },
	{ .info = { .id = 2, .gpu = 1 } },
};
static struct recording_process process = { .comms = comms, .comm_count = 2 };
static struct align_process aligned = { .source = ALIGN_REFERENCE, .offset_ns = OFFSET_NS };
static struct align align = { .processes = &aligned, .count = 1 };
static struct viewer_clock_fit gpus[] = {
	{ .is_known = true, .offset_ns = 5000000 },
	{ .is_known = false },
};
static const int32_t gpu_numbers[] = { 0, 1 };
static const uint64_t last_done_ns[] = { 7000000, 0 };
static const struct viewer_times times = {
	.process = &process,
	.align = &align,
	.gpus = gpus,
	.gpu_numbers = gpu_numbers,
	.gpu_count = 2,
	.last_done_ns = last_done_ns,
};

static int is_placed(const struct op_record *op, bool is_open, enum viewer_place_kind kind,
		     uint64_t start_ns, uint64_t end_ns)
{
	struct viewer_place place = viewer_place(&times, op, is_open);
	int is_right = place.kind == kind && place.start_ns == start_ns && place.end_ns == end_ns;

	if (!is_right)
		printf("# got %s %llu %llu\n", viewer_place_name(place.kind),
		       (unsigned long long)place.start_ns, (unsigned long long)place.end_ns);
	return is_right;
}

static void test_timed(void)
{
	struct op_record op = {
		.comm = 1,
		.state = OP_DONE,
		.time_source = OP_TIME_KERNEL_GPU,
		.issue_ns = 2000000,
		.active_ns = 2100000,
		.done_ns = 3000000,
		.gpu_start_ns = 7400000,
		.gpu_stop_ns = 7900000,
	};

	EXPECT_THAT("from the GPU stop time on the recorder's clock, minus its duration",
		    is_placed(&op, false, VIEWER_TIMED, 3400000, 3900000));
	op.comm = 2;
	EXPECT_THAT("from the time of the callback if the clock offset is unknown",
		    is_placed(&op, false, VIEWER_TIMED, 3500000, 4000000));
	op.time_source = OP_TIME_PROXY;
	EXPECT_THAT("from network activity, which is no duration",
		    is_placed(&op, false, VIEWER_SEEN, 3100000, 4000000));
	op.flags |= OP_FLAG_TOOL_TIME;
	EXPECT_THAT("from another tool's", is_placed(&op, false, VIEWER_TIMED, 3100000, 4000000));
	op.flags = 0;
	op.time_source = OP_TIME_HOST;
	EXPECT_THAT("of a bound only the call",
		    is_placed(&op, false, VIEWER_CALLED, 3000000, 3000000));
}

static void test_untimed(void)
{
	struct op_record op = {
		.comm = 1,
		.state = OP_DONE,
		.issue_ns = 2000000,
		.task_ns = 2050000,
		.active_ns = 2100000,
		.done_ns = 3000000,
	};

	EXPECT_THAT("without a duration: from the first to the last event",
		    is_placed(&op, false, VIEWER_SEEN, 3100000, 4000000));
	op.done_ns = 0;
	op.active_ns = 0;
	op.state = OP_LAUNCHED;
	EXPECT_THAT("of a call only: until the launch",
		    is_placed(&op, false, VIEWER_CALLED, 3000000, 3050000));
	op.state = OP_CAPTURED;
	op.task_ns = 0;
	EXPECT_THAT("a call without launch has no duration",
		    is_placed(&op, false, VIEWER_CALLED, 3000000, 3000000));
	op.state = OP_ABANDONED;
	EXPECT_THAT("an abandoned operation lasts until its communicator ended",
		    is_placed(&op, false, VIEWER_SEEN, 3000000, 10000000));
	op = (struct op_record){ .comm = 1, .state = OP_DONE };
	EXPECT_THAT("without any time: nowhere", is_placed(&op, false, VIEWER_NOWHERE, 0, 0));
	EXPECT(viewer_first_sign_ns(&op) == 0);
	op.done_ns = 5;
	EXPECT(viewer_first_sign_ns(&op) == 5);
}

static void test_open(void)
{
	struct op_record op = {
		.comm = 2, .state = OP_LAUNCHED, .issue_ns = 2000000, .launch_ns = 2500000
	};

	EXPECT_THAT("in flight: from the launch, without end",
		    is_placed(&op, true, VIEWER_IN_FLIGHT, 3500000, VIEWER_OPEN));
	op.comm = 1;
	EXPECT_THAT("or since the end of the previous one",
		    is_placed(&op, true, VIEWER_IN_FLIGHT, 8000000, VIEWER_OPEN));
	op.comm = 77;
	EXPECT_THAT("an unknown communicator is accepted",
		    is_placed(&op, true, VIEWER_IN_FLIGHT, 3500000, VIEWER_OPEN));
}

/* Stops reported with a delay that is never negative, on a drifting clock. */
static void test_clock(void)
{
	static struct viewer_clock clock;
	const int64_t offset_ns = INT64_C(1767000000000000000);
	const double drift = 2e-5;
	const uint64_t second = 1000000000;
	struct viewer_clock_fit fit;
	uint64_t random = 3, seen_ns, worst = 0;

	viewer_clock_init(&clock);
	EXPECT_THAT("no samples, no offset", !viewer_clock_fit(&clock).is_known);
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t true_ns = 5 * second + i * 3000000;

		random = random * 6364136223846793005u + 1442695040888963407u;
		seen_ns = true_ns + 2000 + (random >> 40) % 50000;
		viewer_clock_add(&clock,
				 true_ns +
					 (uint64_t)(offset_ns + (int64_t)(drift * (double)true_ns)),
				 seen_ns);
	}
	fit = viewer_clock_fit(&clock);
	EXPECT(fit.is_known);
	for (uint64_t at = 5 * second; at < 305 * second; at += second) {
		uint64_t gpu_ns = at + (uint64_t)(offset_ns + (int64_t)(drift * (double)at));
		uint64_t back = viewer_clock_ns(&fit, gpu_ns, at);
		uint64_t off = back > at ? back - at : at - back;

		if (off > worst)
			worst = off;
	}
	EXPECT_THAT("five minutes of a drifting clock, to ten microseconds", worst < 10000);
	if (worst >= 10000)
		printf("# off by %llu ns\n", (unsigned long long)worst);
}

/* What is found of clocks that drift, from as many callbacks as there are, up to 20 us late; gaps and an early start included. */
static void test_clocks(void)
{
	static const struct {
		const char *name;
		uint64_t count, step_us;
		double ppm;
	} cases[] = {
		{ "one", 1, 1, 0 },
		{ "seven intervals", 8, 100000, 30 },
		{ "eight intervals", 10, 100000, 30 },
		{ "all in one interval", 300, 20, 50 },
		{ "a second", 1000, 1000, -45 },
		{ "as many intervals as fit", 128, 10000, 12 },
		{ "one more", 129, 10000, 12 },
		{ "minutes", 3000, 100000, 150 },
		{ "a drift that no clock has", 1000, 1000, 400 },
		{ "nor this", 1000, 1000, -400 },
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct viewer_clock clock;
		struct viewer_clock_fit fit;

		viewer_clock_init(&clock);
		viewer_clock_add(&clock, 77, 0);
		for (uint64_t n = 0; n < cases[i].count; n++) {
			/* Every fifth comes before the one before it. */
			uint64_t at_ns =
				1000000000 + (n % 5 == 4 ? n - 2 : n) * cases[i].step_us * 1000;
			uint64_t late_ns = hash_word(n + 1, i + 1) % 20000;

			viewer_clock_add(
				&clock,
				at_ns + 7000000000 +
					(uint64_t)(int64_t)(cases[i].ppm * 1e-6 * (double)at_ns),
				at_ns + late_ns);
		}
		fit = viewer_clock_fit(&clock);
		sink_format(&sink,
			    "%s: %s, %.3f ppm, offset %.3f us, middle %.3f us, back %.3f us\n",
			    cases[i].name, fit.is_known ? "known" : "unknown", fit.drift * 1e6,
			    (double)(fit.offset_ns - 7000000000) / 1e3, (double)fit.middle_ns / 1e3,
			    (double)viewer_clock_ns(&fit, 8500000000, 1500000000) / 1e3);
	}
	EXPECT(expected_text(&sink, "tests/unit/output/expected/viewer-clocks.txt"));
}

int main(void)
{
	test_timed();
	test_untimed();
	test_open();
	test_clock();
	test_clocks();
	return tap_done();
}
