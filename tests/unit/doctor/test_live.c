#include "doctor/live.h"

#include <math.h>

#include "tests/unit/doctor/live_stage.h"
#include "tests/tap.h"

static struct stage stage;

static struct recording_process *process(size_t i)
{
	return stage.hand.list[i];
}

static void test_nothing(void)
{
	stage_init(&stage);
	EXPECT_THAT("no processes", stage_look(&stage, SECOND) == OK);
	EXPECT_EQUAL(stage.live.job.comm_count, 0);
	EXPECT_EQUAL(stage.live.notice_count, 0);
	EXPECT_EQUAL(stage.live.looks, 1);
	stage_release(&stage);
	live_release(&stage.live);
}

static void test_sums(void)
{
	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	stage_total(process(0), 1, OP_ALL_REDUCE, 10, 5000);
	stage_total(process(1), 1, OP_ALL_REDUCE, 10, 4000);
	/* Communicators that were forgotten, and one that is not listed and belongs to no process. */
	stage_total(process(0), 0, OP_ALL_REDUCE, 100, 1);
	stage_total(process(0), 9, OP_ALL_REDUCE, 100, 1);
	stage_look(&stage, SECOND);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->sums.operations, 10);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->sums.bytes, 10 << 20);
	EXPECT_THAT("two ranks: the links carry as much as the message",
		    stage_seat(&stage, 0, 1)->sums.bus_bytes == 10 << 20);
	EXPECT_THAT("the first scan has no rates",
		    stage_seat(&stage, 0, 1)->grown.operations == 0 && stage.live.elapsed_ns == 0);
	EXPECT_THAT("and no point in the history", stage.live.comms[0].history.count == 0);
	EXPECT_EQUAL(stage.live.comms[0].sums.operations, 20);
	stage_total(process(0), 1, OP_ALL_REDUCE, 14, 9000);
	stage_look(&stage, 2 * SECOND);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->grown.operations, 4);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->grown.time_ns, 4000);
	EXPECT_EQUAL(stage.live.comms[0].grown.operations, 4);
	EXPECT_EQUAL(stage.live.elapsed_ns, 2 * SECOND);
	stage_total(process(0), 1, OP_ALL_REDUCE, 12, 8000);
	stage_look(&stage, SECOND);
	EXPECT_THAT("totals never decrease",
		    stage_seat(&stage, 0, 1)->sums.operations == 14 &&
			    stage_seat(&stage, 0, 1)->grown.operations == 0);
	process(0)->start_ticks++;
	stage_look(&stage, SECOND);
	EXPECT_THAT("the same pid is another process",
		    stage_seat(&stage, 0, 1)->sums.operations == 12);
	stage_release(&stage);
}

/* Regions of older recorders do not have the bytes of timed operations. */
static void test_older(void)
{
	struct region_total total = { .key = TOTALS_KEY(1, OP_ALL_GATHER, 0, 0, 0, 9),
				      .count = 10,
				      .timed = 5,
				      .bytes = 8000,
				      .sum_ns = 7 };
	struct live_sums sums = { 0 };

	live_sums_add(&sums, &total, 4);
	EXPECT_EQUAL(sums.timed_bytes, 4000);
	EXPECT_THAT("AllGather over four", sums.bus_bytes == 3000);
	EXPECT_EQUAL(sums.operations, 10);
}

/* Eight operations in launches with others, two alone: only those have a bandwidth. */
static void test_shared(void)
{
	struct region_total total = { .key = TOTALS_KEY(1, OP_ALL_GATHER, 0, 0, 0, 9),
				      .count = 10,
				      .timed = 2,
				      .bytes = 10000,
				      .timed_bytes = 2000,
				      .sum_ns = 20,
				      .shared = 8,
				      .shared_ns = 320 };
	struct live_sums sums = { 0 };

	live_sums_add(&sums, &total, 4);
	EXPECT(sums.timed_bytes == 2000 && sums.bus_bytes == 1500 && sums.time_ns == 20);
	EXPECT_THAT("all are timed", sums.timed == 10 && sums.sampled == 0 && sums.not_timed == 0);
	EXPECT_THAT("and all took time", sums.all_ns == 340);
	total.count = 20;
	live_sums_add(&sums, &total, 4);
	EXPECT_THAT("of others the time is estimated from these",
		    sums.timed == 20 && sums.sampled == 1 && sums.all_ns == 340 + 680);
	total.timed = total.timed_bytes = total.sum_ns = 0;
	sums = (struct live_sums){ 0 };
	live_sums_add(&sums, &total, 4);
	EXPECT_THAT("what never ran alone is timed and has no bandwidth",
		    sums.timed == 8 && sums.not_timed == 0 && sums.bus_bytes == 0 &&
			    sums.time_ns == 0);
}

/* Processes that come and go change indices; history follows the identity. */
static void test_identity(void)
{
	struct recording_process *last;

	stage_init(&stage);
	stage_world(&stage, 3, 3, "dp");
	for (size_t i = 0; i < 3; i++)
		stage_total(process(i), 1, OP_ALL_REDUCE, 10 * (i + 1), 100);
	stage_looks(&stage, 2);
	stage_total(process(2), 1, OP_ALL_REDUCE, 37, 100);
	/* The first one is forgotten. */
	last = process(0);
	stage.hand.list[0] = process(1);
	stage.hand.list[1] = process(2);
	stage.hand.recording.count = 2;
	stage_looks(&stage, 1);
	EXPECT_EQUAL(stage_seat(&stage, 1, 1)->grown.operations, 7);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->grown.operations, 0);
	EXPECT_EQUAL(stage_seat(&stage, 1, 1)->history.count, 1);
	stage.hand.list[2] = last;
	stage.hand.recording.count = 3;
	stage_release(&stage);
}

static void test_history(void)
{
	const struct live_history *history;
	const struct live_point *point;
	bool is_ordered = true;

	stage_init(&stage);
	stage_world(&stage, 1, 2, "dp");
	stage_looks(&stage, 3);
	EXPECT_THAT("a history begins with the first operation",
		    stage_seat(&stage, 0, 1)->history.count == 0);
	for (uint64_t i = 1; i <= LIVE_POINTS + 50; i++) {
		stage_total(process(0), 1, OP_ALL_REDUCE, i, i * SECOND / 4);
		stage_look(&stage, SECOND / 2);
	}
	stage_look(&stage, SECOND);
	history = &stage_seat(&stage, 0, 1)->history;
	EXPECT_EQUAL(history->count, LIVE_POINTS);
	for (uint32_t i = 1; i < history->count; i++)
		is_ordered &= live_point(history, i)->wall_ns > live_point(history, i - 1)->wall_ns;
	EXPECT_THAT("from the oldest to the newest", is_ordered);
	EXPECT_EQUAL(live_point(history, LIVE_POINTS - 1)->wall_ns, stage.live.wall_ns);
	point = live_point(history, LIVE_POINTS - 2);
	EXPECT_THAT("two per second", fabsf(point->operations_per_s - 2) < 1e-6f);
	EXPECT_THAT("a MiB per quarter second", fabsf(point->algbw - 4 * 1048576.0f) < 1);
	EXPECT_THAT("half of the time", fabsf(point->busy_share - 0.5f) < 1e-6f);
	EXPECT_THAT("no rank to wait for", isnan(point->wait_share));
	point = live_point(history, LIVE_POINTS - 1);
	EXPECT_THAT("nothing finished: no bandwidth",
		    isnan(point->busbw) && point->operations_per_s == 0);
	EXPECT_EQUAL(stage.live.comms[0].history.count, LIVE_POINTS);
	stage_release(&stage);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void finish(uint64_t count, uint64_t first_ns, uint64_t second_ns)
{
	stage_total(process(0), 1, OP_ALL_REDUCE, count, first_ns);
	stage_total(process(1), 1, OP_ALL_REDUCE, count, second_ns);
	stage_look(&stage, SECOND);
}

static void test_wait(void)
{
	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	finish(10, 1000, 1000);
	EXPECT_THAT("earlier time is not waiting", stage_seat(&stage, 0, 1)->wait_ns == 0);
	finish(12, 1500, 1100);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->wait_grown_ns, 400);
	EXPECT_EQUAL(stage_seat(&stage, 1, 1)->wait_grown_ns, 0);
	EXPECT_THAT("both were matched",
		    stage_seat(&stage, 0, 1)->has_wait && stage_seat(&stage, 1, 1)->has_wait);
	EXPECT_THAT("its share is in the history",
		    live_point(&stage_seat(&stage, 0, 1)->history, 0)->wait_share > 3e-7f);
	/* One rank is ahead at the scan: nothing is matched, and nothing is lost. */
	stage_total(process(0), 1, OP_ALL_REDUCE, 13, 1700);
	stage_look(&stage, SECOND);
	EXPECT_THAT("unequal numbers are left for later",
		    !stage_seat(&stage, 0, 1)->has_wait &&
			    stage_seat(&stage, 0, 1)->wait_ns == 400);
	finish(13, 1700, 1350);
	EXPECT_THAT("once they are equal, all of it counts",
		    stage_seat(&stage, 1, 1)->wait_grown_ns == 50 &&
			    stage_seat(&stage, 0, 1)->wait_ns == 400);
	finish(13, 1700, 1350);
	EXPECT_THAT("once",
		    !stage_seat(&stage, 0, 1)->has_wait && stage_seat(&stage, 1, 1)->wait_ns == 50);
	EXPECT_EQUAL(stage.live.comms[0].wait_ns, 450);
	stage_release(&stage);
}

/* Two functions and two communicators, in which the ranks wait in turns: each of them is compared by itself. */
static void test_wait_kinds(void)
{
	static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER };

	stage_init(&stage);
	stage_world(&stage, 3, 3, "dp");
	stage_world(&stage, 3, 3, "tp");
	for (uint64_t round = 0; round < 3; round++) {
		for (size_t rank = 0; rank < 3; rank++)
			for (uint32_t comm = 1; comm <= 2; comm++)
				for (size_t f = 0; f < 3; f++)
					stage_total(process(rank), comm, functions[f],
						    10 * (round + 1),
						    1000 * (round + 1) +
							    (rank == f ? 100 * comm * round : 0) +
							    10 * rank * round);
		stage_look(&stage, SECOND);
	}
	/* In each round, what is longest waits for the shortest of its function: rank 0 in the AllReduce and so on. */
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->wait_ns, 2 * (100 - 10));
	EXPECT_EQUAL(stage_seat(&stage, 0, 2)->wait_ns, 2 * (200 - 10));
	EXPECT_EQUAL(stage_seat(&stage, 1, 1)->wait_ns, 2 * (0 + 110 + 10));
	EXPECT_EQUAL(stage_seat(&stage, 2, 1)->wait_ns, 2 * (10 + 20 + 120));
	stage_release(&stage);
}

/* Thousands per second: the numbers are never equal. */
static void test_wait_many(void)
{
	uint64_t wait_ns;

	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	for (uint64_t i = 0; i <= 100; i++) {
		stage_total(process(0), 1, OP_ALL_REDUCE, 1000 * i, 1000 * i * 300);
		stage_total(process(1), 1, OP_ALL_REDUCE, 1000 * i + 20, (1000 * i + 20) * 100);
		stage_look(&stage, SECOND);
	}
	wait_ns = stage_seat(&stage, 0, 1)->wait_ns;
	EXPECT_THAT("shares add up",
		    wait_ns > 100000 * UINT64_C(198) && wait_ns < 100000 * UINT64_C(202));
	EXPECT_EQUAL(stage_seat(&stage, 1, 1)->wait_ns, 0);
	/* Far apart: not even by shares. */
	stage_total(process(0), 1, OP_ALL_REDUCE, 200000, 60000000);
	stage_total(process(1), 1, OP_ALL_REDUCE, 150000, 15000000);
	stage_look(&stage, SECOND);
	EXPECT_THAT("numbers far apart are left for later", !stage_seat(&stage, 0, 1)->has_wait);
	stage_release(&stage);
}

/* `count` have finished on both, `timed` of them were timed. */
static void finish_sampled(uint64_t count, uint64_t timed, uint64_t sum_0, uint64_t sum_1)
{
	for (size_t i = 0; i < 2; i++) {
		struct region_total *total =
			stage_total(process(i), 1, OP_ALL_REDUCE, count, i == 0 ? sum_0 : sum_1);

		total->timed = timed;
		total->timed_bytes = timed << 20;
	}
	stage_look(&stage, SECOND);
}

static void test_wait_sampled(void)
{
	const struct live_point *point;

	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	finish_sampled(1000, 10, 10000, 9000);
	finish_sampled(2000, 20, 20000, 18500);
	EXPECT_THAT("waiting of timed operations is scaled up to all",
		    stage_seat(&stage, 0, 1)->wait_grown_ns == 500 * 100 &&
			    stage_seat(&stage, 1, 1)->wait_grown_ns == 0 &&
			    stage_seat(&stage, 0, 1)->knows_wait);
	point = live_point(&stage_seat(&stage, 0, 1)->history, 0);
	EXPECT_THAT("and so is the time in operations",
		    point->busy_share > 0.99e-3f && point->busy_share < 1.01e-3f);
	EXPECT_THAT("bandwidth is that of timed operations",
		    point->algbw > 1e9f &&
			    point->algbw < 10.0f * (1 << 20) * 1e9f / 10000 * 1.001f);
	finish_sampled(3000, 20, 20000, 18500);
	point = live_point(&stage_seat(&stage, 0, 1)->history, 1);
	EXPECT_THAT("unknown if none was timed",
		    !stage_seat(&stage, 0, 1)->has_wait && isnan(point->busy_share) &&
			    isnan(point->busbw) && isnan(point->wait_share));
	finish_sampled(4000, 30, 30000, 28000);
	EXPECT_THAT("made up for by the next timed ones",
		    stage_seat(&stage, 0, 1)->wait_grown_ns == 500 * 200);
	finish_sampled(4000, 30, 30000, 28000);
	point = live_point(&stage_seat(&stage, 0, 1)->history, 3);
	EXPECT_THAT("when nothing finishes no time is spent", point->busy_share == 0);
	stage_release(&stage);
}

static void test_no_bytes(void)
{
	const struct live_point *point;

	stage_init(&stage);
	stage_world(&stage, 1, 2, "dp");
	for (uint64_t i = 1; i <= 2; i++) {
		struct region_total *total =
			stage_total(process(0), 1, OP_ALL_REDUCE, 10 * i, 1000 * i);

		total->bytes = total->timed_bytes = 0;
		/* As current recorders do: older ones do not report timed bytes. */
		total->timed = 10 * i;
		stage_look(&stage, SECOND);
	}
	point = live_point(&stage_seat(&stage, 0, 1)->history, 0);
	EXPECT_THAT("without bytes there is no bandwidth, rather than 0",
		    isnan(point->busbw) && isnan(point->algbw) && point->busy_share > 0);
	stage_release(&stage);
}

static void test_not_timed(void)
{
	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	finish_sampled(10, 0, 0, 0);
	finish_sampled(20, 0, 0, 0);
	EXPECT_THAT("waiting is unknown if nothing is timed",
		    !stage_seat(&stage, 0, 1)->has_wait && !stage_seat(&stage, 0, 1)->knows_wait &&
			    stage_seat(&stage, 0, 1)->sums.not_timed == 20);
	EXPECT(isnan(live_point(&stage_seat(&stage, 0, 1)->history, 0)->busy_share));
	stage_release(&stage);
}

/* A tenth of one rank's calls, the long ones, were not reported. */
static void test_wait_gap(void)
{
	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	finish(1000, 100000, 100000);
	stage_total(process(0), 1, OP_ALL_REDUCE, 2000, 300000);
	stage_total(process(1), 1, OP_ALL_REDUCE, 1900, 190000);
	process(1)->comms[0].counts.missed = 100;
	stage_look(&stage, SECOND);
	EXPECT_THAT("unreported calls are not waiting", stage.live.comms[0].wait_ns == 0);
	stage_total(process(0), 1, OP_ALL_REDUCE, 3000, 500000);
	stage_total(process(1), 1, OP_ALL_REDUCE, 2900, 290000);
	stage_look(&stage, SECOND);
	EXPECT_THAT("afterwards ranks are compared again",
		    stage_seat(&stage, 0, 1)->wait_ns == 100000);
	stage_release(&stage);
}

static void test_no_wait(void)
{
	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	for (uint64_t i = 1; i < 4; i++)
		for (size_t p = 0; p < 2; p++) {
			stage_total(process(p), 1, OP_BROADCAST, 10 * i, 100 * i * (p + 1));
			stage_total(process(p), 1, OP_RECV, 10 * i, 100 * i * (p + 1));
			/* Half of one rank's operations are untimed. */
			stage_total(process(p), 1, OP_ALL_GATHER, 10 * i, 100 * i * (p + 1))
				->timed = p == 0 ? 5 * i : 10 * i;
			stage_look(&stage, SECOND);
		}
	EXPECT_THAT("operations with a root, a peer or no times have no waiting",
		    !stage_seat(&stage, 0, 1)->has_wait && !stage_seat(&stage, 1, 1)->has_wait &&
			    stage.live.comms[0].wait_ns == 0);
	stage_release(&stage);
}

/* ---- in flight ------------------------------------------------------------------------------- */

static void test_flights(void)
{
	const struct live_seat *seat;
	struct recording_flight *leaked;

	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	leaked = stage_enter(&stage, process(0), 1, OP_ALL_REDUCE, 1);
	stage_look(&stage, 3 * SECOND);
	seat = stage_seat(&stage, 0, 1);
	EXPECT_THAT("in flight, with its age", seat->in_flight == 1 && seat->oldest == leaked &&
						       seat->oldest_age_ns == 3 * SECOND);
	EXPECT_EQUAL(stage_seat(&stage, 1, 1)->in_flight, 0);
	/* Its file cannot be read: our own clock continues. */
	stage.now_ns += 2 * SECOND;
	live_look(&stage.live, &stage.hand.recording, stage.now_ns, STAGE_WALL_NS);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->oldest_age_ns, 5 * SECOND);
	/* A later operation is done: this one is over, whatever its parts say. */
	process(0)->comms[0].counts.last_done_number = 2;
	stage_look(&stage, SECOND);
	EXPECT_THAT("an overtaken operation is not in flight",
		    stage_seat(&stage, 0, 1)->in_flight == 0 &&
			    stage_seat(&stage, 0, 1)->oldest == NULL);
	process(0)->comms[0].counts.last_done_number = 0;
	process(0)->life = RECORDING_KILLED;
	stage_look(&stage, SECOND);
	seat = stage_seat(&stage, 0, 1);
	EXPECT_THAT("the operation of a dead process is kept and does not age",
		    seat->is_over && seat->in_flight == 0 && seat->oldest == leaked &&
			    seat->oldest_age_ns == 0);
	stage_release(&stage);
}

static void test_tags(void)
{
	struct recording_flight *flight;

	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	flight = stage_enter(&stage, process(0), 1, OP_ALL_REDUCE, 1);
	flight->op.user_tag = 7;
	stage_looks(&stage, 2);
	EXPECT_EQUAL(stage.live.comms[0].user_tag, 0);
	stage_looks(&stage, 1);
	EXPECT_EQUAL(stage.live.comms[0].user_tag, 7);
	flight->op.user_tag = 0;
	stage_looks(&stage, 1);
	EXPECT_EQUAL(stage.live.comms[0].user_tag, 7);
	flight->op.user_tag = 8;
	stage_looks(&stage, 5);
	EXPECT_EQUAL(stage.live.comms[0].user_tag, 0);
	stage_release(&stage);
}

static void test_behind(void)
{
	stage_init(&stage);
	stage_world(&stage, 3, 3, "dp");
	for (size_t i = 0; i < 3; i++)
		stage_enter(&stage, process(i), 1, OP_ALL_REDUCE, 1);
	/* Its host is three calls ahead, its GPU is not. */
	for (uint64_t match = 2; match < 5; match++)
		stage_enter(&stage, process(0), 1, OP_ALL_REDUCE, match)->op.state = OP_LAUNCHED;
	stage_looks(&stage, 1);
	EXPECT_THAT("fewer calls alone is not behind",
		    !stage_seat(&stage, 1, 1)->is_behind && !stage_seat(&stage, 2, 1)->is_behind);
	EXPECT_EQUAL(stage.live.comms[0].last_issued, 4);
	for (size_t i = 0; i < 3; i++) {
		process(i)->flights[0].op.state = OP_DONE;
		process(i)->comms[0].counts.last_done_number = 1;
	}
	process(0)->flights[1].op.state = OP_RUNNING;
	stage_looks(&stage, 1);
	EXPECT_THAT("not having called the operation another rank is in is",
		    stage_seat(&stage, 1, 1)->is_behind && stage_seat(&stage, 2, 1)->is_behind &&
			    !stage_seat(&stage, 0, 1)->is_behind);
	EXPECT_EQUAL(stage.live.comms[0].lead, 0);
	EXPECT_EQUAL(stage.live.comms[0].last_done, 1);
	stage_enter(&stage, process(1), 1, OP_ALL_REDUCE, 2);
	stage_looks(&stage, 1);
	EXPECT_THAT("until it does",
		    !stage_seat(&stage, 1, 1)->is_behind && stage_seat(&stage, 2, 1)->is_behind);
	stage_release(&stage);
}

/* Only the CUDA event before its launch shows that a GPU is in it. */
static void test_behind_by_launch(void)
{
	struct recording_flight *flight;

	stage_init(&stage);
	stage_world(&stage, 3, 3, "dp");
	for (size_t i = 0; i < 3; i++)
		process(i)->comms[0].info.flags = 0;
	flight = stage_enter(&stage, process(0), 1, OP_ALL_REDUCE, 1);
	flight->op.flags = OP_FLAG_CUDA_EVENT;
	flight->op.state = OP_LAUNCHED;
	flight->open_children = 1;
	stage_looks(&stage, 1);
	EXPECT_THAT("a launch that its GPU has not reached leaves nobody behind",
		    !stage_seat(&stage, 1, 1)->is_behind && !stage_seat(&stage, 2, 1)->is_behind);
	flight->op.state = OP_RUNNING;
	stage_looks(&stage, 1);
	EXPECT_THAT("one that it has reached does",
		    stage_seat(&stage, 1, 1)->is_behind && stage_seat(&stage, 2, 1)->is_behind);
	stage_release(&stage);
}

static void test_still(void)
{
	stage_init(&stage);
	stage_world(&stage, 1, 2, "dp");
	process(0)->comms[0].counts.last_issue_ns = stage_clock(&stage) - 40 * SECOND;
	process(0)->comms[0].counts.last_done_ns = stage_clock(&stage) - 30 * SECOND;
	stage_look(&stage, SECOND);
	EXPECT_THAT("it was stuck before the first scan",
		    stage_seat(&stage, 0, 1)->still_ns == 31 * SECOND);
	stage_total(process(0), 1, OP_ALL_REDUCE, 1, 1);
	stage_look(&stage, SECOND);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->still_ns, 0);
	stage_look(&stage, 7 * SECOND);
	EXPECT_EQUAL(stage_seat(&stage, 0, 1)->still_ns, 7 * SECOND);
	stage_release(&stage);
}

int main(void)
{
	test_nothing();
	test_sums();
	test_older();
	test_shared();
	test_identity();
	test_history();
	test_wait();
	test_wait_kinds();
	test_wait_many();
	test_wait_sampled();
	test_not_timed();
	test_wait_gap();
	test_no_bytes();
	test_no_wait();
	test_flights();
	test_tags();
	test_behind();
	test_behind_by_launch();
	test_still();
	expected_compare(&stage_text, "tests/unit/doctor/expected/live.txt");
	return tap_done();
}
