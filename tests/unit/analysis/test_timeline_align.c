#include "analysis/align.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

static struct hand_made hand;
static struct job job;
static struct align align;

static uint64_t base_of(int rank)
{
	return 1000000000 + (uint64_t)(rank * rank) * 777777777;
}

static struct recording_process *rank_with_anchor(int rank, const char *host)
{
	struct recording_process *process = hand_process(&hand, "j", rank, host);

	process->anchors = calloc(1, sizeof(*process->anchors));
	/* Wall clocks are off by a second each. */
	process->anchors[0] =
		(struct clock_anchor){ base_of(rank),
				       1700000000000000000 + (uint64_t)rank * 1000000000 };
	process->anchor_count = 1;
	return process;
}

static void matches(struct recording_process *process, int rank, uint64_t hash, int comm_rank)
{
	uint32_t comm = hand_comm(process, hash, "", comm_rank, 2, 2);

	for (uint64_t n = 1; n <= 100; n++)
		hand_op(process, comm, OP_ALL_REDUCE, n, 8, 1000,
			base_of(rank) + n * 1000000 + (n * 7919 + (uint64_t)rank * 31) % 200);
}

static void made(void)
{
	if (job_make(&job, &hand.recording) != OK || align_make(&align, &job, NULL, NULL) != OK)
		abort();
}

static void over(void)
{
	align_release(&align);
	job_release(&job);
	hand_release(&hand);
}

/* The distance between the same moment of two processes. */
static int64_t apart(int a, int b)
{
	return (int64_t)(align_ns(&align, (size_t)a, base_of(a) + 50000000) -
			 align_ns(&align, (size_t)b, base_of(b) + 50000000));
}

static void test_chain(void)
{
	/* 0 - 1 - 2 - 3 in pairs: 0 shares nothing with 3. 4 shares nothing with any, nor does 5, but 5 has
	 * 0's clock. */
	for (int rank = 0; rank < 6; rank++) {
		char host[16];
		struct recording_process *process;

		snprintf(host, sizeof(host), "h%d", rank == 5 ? 0 : rank);
		process = rank_with_anchor(rank, host);
		if (rank < 4 && rank > 0)
			matches(process, rank, 0x100 + (uint64_t)rank - 1, 1);
		if (rank < 3)
			matches(process, rank, 0x100 + (uint64_t)rank, 0);
		snprintf(process->boot_id, sizeof(process->boot_id), "boot-%s", host);
	}
	made();
	EXPECT_THAT("through chains to all with shared collectives",
		    llabs(apart(0, 1)) < 300 && llabs(apart(0, 2)) < 300 &&
			    llabs(apart(0, 3)) < 300);
	EXPECT_THAT("the uncertainty grows",
		    align_uncertainty_ns(&align, 3) > 0 && align_uncertainty_ns(&align, 3) < 1000);
	EXPECT_THAT("a process without shared collectives is placed by its wall clock, and marked",
		    align.processes[4].source == ALIGN_ANCHOR && align.processes[4].is_uncertain &&
			    align.unaligned == 1);
	EXPECT_EQUAL(align_ns(&align, 4, base_of(4)), 1700000000000000000 + 4000000000);
	EXPECT_THAT("processes on one host share its clock",
		    align.processes[5].source == ALIGN_SAME_CLOCK &&
			    align_ns(&align, 5, 5000) == align_ns(&align, 0, 5000));
	EXPECT_THAT("common time is the reference's wall time",
		    align_ns(&align, align.reference, base_of((int)align.reference)) ==
			    1700000000000000000 + (uint64_t)align.reference * 1000000000);
	EXPECT_EQUAL(align.island_count, 2);
	EXPECT_EQUAL(align_ns(&align, 2, 0), 0);
	for (size_t p = 0; p < 6; p++)
		if (align_clock_ns(&align, p, align_ns(&align, p, 123456789)) != 123456789)
			EXPECT_THAT("round trip", 0);
	over();
}

/* Most have the host's times, which end when it looks. */
static void test_host_times(void)
{
	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = rank_with_anchor(rank, rank ? "b" : "a");
		uint32_t comm = hand_comm(process, 0x77, "", rank, 2, 2);

		for (uint64_t n = 1; n <= 100; n++) {
			struct op_record *op = hand_op(process, comm, OP_ALL_REDUCE, n, 8, 1000,
						       base_of(rank) + n * 1000000);

			if (n % 4 == 1)
				continue;
			op->time_source = OP_TIME_HOST;
			op->done_ns += (uint64_t)rank * 500000;
		}
	}
	made();
	EXPECT_THAT("clocks are compared by the times of GPU and network only",
		    llabs(apart(0, 1)) < 10);
	over();
}

static void test_nothing(void)
{
	hand_process(&hand, "j", 0, "a");
	made();
	EXPECT_THAT("without an anchor the clock is used as it is",
		    align.processes[0].source == ALIGN_NOTHING &&
			    align_ns(&align, 0, 4711) == 4711);
	over();
	made();
	EXPECT_EQUAL(align.count, 0);
	over();
}

static bool stop(double fraction, void *context)
{
	(void)fraction, (void)context;
	return false;
}

static void test_cancel(void)
{
	matches(rank_with_anchor(0, "a"), 0, 0x77, 0);
	if (job_make(&job, &hand.recording) != OK)
		abort();
	EXPECT(align_make(&align, &job, stop, NULL) == ERR_GONE);
	EXPECT_THAT("nothing remains", align.processes == NULL);
	over();
}

/* Read a day after its start, when the wall clock had advanced 20 s less than the recorder's. */
static void test_fresh_anchor(void)
{
	const uint64_t day = UINT64_C(86400) * 1000000000, start = 1700000000000000000;
	struct recording_process *process = rank_with_anchor(0, "a");

	matches(process, 0, 0x77, 0);
	process->fresh_anchor.clock_ns = base_of(0) + day;
	process->fresh_anchor.wall_ns = start + day - 20 * UINT64_C(1000000000);
	made();
	EXPECT(llabs((int64_t)(align_ns(&align, 0, base_of(0)) - start)) < 1000000);
	EXPECT(llabs((int64_t)(align_ns(&align, 0, base_of(0) + day) -
			       process->fresh_anchor.wall_ns)) < 1000000);
	over();
	process = rank_with_anchor(0, "a");
	matches(process, 0, 0x77, 0);
	process->fresh_anchor.clock_ns = base_of(0) + 1000000000;
	process->fresh_anchor.wall_ns = start + day;
	process->comms[0].counts.last_issue_ns = base_of(0) + 900000000;
	made();
	EXPECT_THAT("the wall clock was set: its current value counts",
		    align_ns(&align, 0, base_of(0) + 1000000000) == start + day);
	over();
}

/* CUDA events of one rank have a place that may be off by so much, or are marked to be off by more. */
static enum align_source aligned_by(int vague_rank, uint64_t error_ns, uint32_t flags)
{
	enum align_source source;

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = rank_with_anchor(rank, rank ? "b" : "a");

		matches(process, rank, 0x77, rank);
		if (rank == vague_rank)
			process->comms[0].info.place_error_ns = error_ns;
		for (size_t i = 0; i < process->flight_count; i++)
			process->flights[i].op.flags |=
				OP_FLAG_CUDA_EVENT | (rank == vague_rank ? flags : 0);
	}
	made();
	source = align.processes[align.reference == 0 ? 1 : 0].source;
	over();
	return source;
}

static void test_vague_places(void)
{
	EXPECT_THAT("CUDA events align ranks", aligned_by(0, 0, 0) == ALIGN_DIRECT);
	EXPECT_THAT("also with an error of a millisecond",
		    aligned_by(0, 1000000, 0) == ALIGN_DIRECT &&
			    aligned_by(1, 1000000, 0) == ALIGN_DIRECT);
	EXPECT_THAT("with a larger one on either side the wall clock is used",
		    aligned_by(0, 1000001, 0) == ALIGN_ANCHOR &&
			    aligned_by(1, 1000001, 0) == ALIGN_ANCHOR);
	EXPECT_THAT("and for calls that are marked",
		    aligned_by(0, 1000, OP_FLAG_PLACE_ROUGH) == ALIGN_ANCHOR &&
			    aligned_by(1, 1000, OP_FLAG_PLACE_ROUGH) == ALIGN_ANCHOR);
}

int main(void)
{
	test_vague_places();
	test_chain();
	test_host_times();
	test_nothing();
	test_cancel();
	test_fresh_anchor();
	EXPECT(strcmp(align_source_name(ALIGN_CHAIN), "chain") == 0);
	return tap_done();
}
