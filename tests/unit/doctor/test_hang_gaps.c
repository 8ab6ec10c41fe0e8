/* No rank is blamed for calls that NCCL did not report. */

#include "tests/unit/doctor/hang_stage.h"
#include "tests/tap.h"

enum { RANKS = 8, ODD = 5 };

static struct hang_stage stage;

/* NCCL's number of an AllReduce is its match number minus the calls of other functions. */
static void call(int rank, uint64_t match, uint64_t sequence, uint8_t state, uint64_t ago_ns)
{
	struct recording_flight *flight =
		stage_call(&stage, rank, 1, OP_ALL_REDUCE, match, state, ago_ns);

	flight->op.nccl_sequence = sequence;
	flight->op.task_ns = flight->op.issue_ns;
}

/* One rank has missed calls, and its numbers are `behind` those of the others: some of the calls were of a
 * function that NCCL does not number. All ranks have made AllReduce #6, by NCCL's number. */
static void one_with_a_gap(uint64_t behind)
{
	struct recording_comm *comm;

	stage_begin(&stage, RANKS, 4);
	for (int i = 0; i < RANKS; i++)
		call(i, i == ODD ? 10 - behind : 10, 6, OP_DONE, 61 * SECOND);
	comm = &stage_rank(&stage, ODD)->comms[0];
	comm->counts.missed = 2;
	comm->counts.signature = 0;
	stage_rank(&stage, ODD)->flights[0].op.signature = 0;
	stage_rank(&stage, ODD)->lost[LOST_NOT_SHOWN] = 2;
}

static void next_call(int rank, uint64_t match)
{
	call(rank, match, 7, OP_RUNNING, 60 * SECOND);
	if (rank == ODD) {
		struct recording_process *process = stage_rank(&stage, ODD);

		process->flights[process->flight_count - 1].op.signature = 0;
		process->comms[0].counts.signature = 0;
	}
}

static enum verdict_class class_of_first(void)
{
	return stage_find(&stage) > 0 ? stage.verdicts.list[0].class : VERDICT_CLASSES;
}

static void test_all_are_in_it(void)
{
	enum verdict_class usual;

	one_with_a_gap(0);
	for (int i = 0; i < RANKS; i++)
		next_call(i, 11);
	usual = class_of_first();
	stage_end(&stage);
	one_with_a_gap(3);
	for (int i = 0; i < RANKS; i++)
		next_call(i, i == ODD ? 8 : 11);
	EXPECT_THAT("by NCCL's number all ranks are in the same collective",
		    class_of_first() == usual);
	EXPECT_THAT("no rank is named", stage.verdicts.list[0].rank == -1);
	EXPECT_EQUAL(stage.verdicts.list[0].number, 11);
	stage_end(&stage);
}

static void test_it_has_not_called(void)
{
	one_with_a_gap(3);
	for (int i = 0; i < RANKS; i++)
		if (i != ODD)
			next_call(i, 11);
	EXPECT_THAT("the rank that has not called is found by NCCL's numbers",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, ODD));
	EXPECT_EQUAL(stage.verdicts.list[0].number, 11);
	EXPECT_THAT("with less confidence", stage.verdicts.list[0].confidence < 0.65);
	EXPECT_THAT("because", stage_has_line(&stage.verdicts.list[0].missing,
					      "2 calls that were not recorded"));
	stage_end(&stage);
}

static void test_nothing_in_common(void)
{
	one_with_a_gap(3);
	stage_rank(&stage, ODD)->flights[0].op.nccl_sequence = 2;
	for (int i = 0; i < RANKS; i++)
		if (i != ODD)
			next_call(i, 11);
	stage_find(&stage);
	for (size_t i = 0; i < stage.verdicts.count; i++)
		EXPECT_THAT("a rank whose position is unknown is not blamed",
			    stage.verdicts.list[i].rank != ODD &&
				    stage.verdicts.list[i].class != VERDICT_NEVER_ISSUED);
	EXPECT(stage_rank(&stage, ODD)->comms[0].is_unplaced);
	stage_end(&stage);
}

/* Its events are off: it must have called whatever the others finished. */
static void test_events_are_off(bool are_finished)
{
	stage_begin(&stage, RANKS, 4);
	for (int i = 0; i < RANKS; i++)
		call(i, 10, 6, OP_DONE, 70 * SECOND);
	for (uint64_t match = 11; match < 15; match++)
		for (int i = 0; i < RANKS; i++)
			if (i != ODD && are_finished)
				call(i, match, match - 4, OP_DONE, (80 - match) * SECOND);
	for (int i = 0; i < RANKS; i++)
		if (i != ODD)
			call(i, are_finished ? 15 : 11, are_finished ? 11 : 7, OP_RUNNING,
			     60 * SECOND);
	stage_find(&stage);
	if (!are_finished)
		EXPECT_THAT("it has not called the next one",
			    stage_only(&stage, VERDICT_NEVER_ISSUED, ODD));
	for (size_t i = 0; are_finished && i < stage.verdicts.count; i++)
		EXPECT_THAT("a rank that must have made unrecorded calls is not blamed",
			    stage.verdicts.list[i].rank != ODD &&
				    stage.verdicts.list[i].class != VERDICT_NEVER_ISSUED);
	EXPECT_EQUAL(stage_rank(&stage, ODD)->comms[0].is_unplaced, are_finished);
	stage_end(&stage);
}

/* They were switched on again: its first call hangs before NCCL reports that calls were missed. */
static void test_first_call_after_a_gap(void)
{
	stage_begin(&stage, RANKS, 4);
	for (int i = 0; i < RANKS; i++)
		call(i, 10, 6, OP_DONE, 70 * SECOND);
	for (uint64_t match = 11; match < 15; match++)
		for (int i = 0; i < RANKS; i++)
			if (i != ODD)
				call(i, match, match - 4, OP_DONE, (80 - match) * SECOND);
	for (int i = 0; i < RANKS; i++)
		if (i != ODD)
			call(i, 15, 11, OP_RUNNING, 60 * SECOND);
	stage_diverge(&stage, ODD, 1,
		      stage_call(&stage, ODD, 1, OP_ALL_REDUCE, 11, OP_ISSUED, 60 * SECOND));
	stage_find(&stage);
	for (size_t i = 0; i < stage.verdicts.count; i++)
		EXPECT_THAT("its call is not mistaken for another one",
			    stage.verdicts.list[i].class != VERDICT_MISMATCH &&
				    stage.verdicts.list[i].class != VERDICT_NEVER_ISSUED);
	stage_print(&stage);
	stage_end(&stage);
}

int main(void)
{
	test_all_are_in_it();
	test_it_has_not_called();
	test_nothing_in_common();
	test_events_are_off(false);
	test_events_are_off(true);
	test_first_call_after_a_gap();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_gaps.txt");
	return tap_done();
}
