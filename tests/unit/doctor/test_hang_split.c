/* Ranks that called different operations. */

#include "tests/unit/doctor/hang_stage.h"
#include "tests/tap.h"

static struct hang_stage stage;

static const struct verdict *first(void)
{
	return &stage.verdicts.list[0];
}

static struct recording_flight *flight_of(int rank, int nth)
{
	return &stage_rank(&stage, rank)->flights[nth];
}

/* All ranks made one call and are in their second. */
static void all_in(int count)
{
	stage_begin(&stage, count, 4);
	for (int i = 0; i < count; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 61 * SECOND);
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 60 * SECOND);
	}
}

static bool is_rule(int64_t rank, const char *rule)
{
	return stage_only(&stage, VERDICT_MISMATCH, rank) && strcmp(first()->rule, rule) == 0;
}

static void test_rules(void)
{
	all_in(8);
	stage_diverge(&stage, 5, 1, flight_of(5, 1));
	flight_of(5, 1)->op.function = OP_ALL_GATHER;
	EXPECT_THAT("different function", is_rule(5, "function"));
	EXPECT_THAT("both sides are listed",
		    stage_has_line(&first()->evidence, "Rank 5 called AllGather of 1024 float32") &&
			    stage_has_line(&first()->evidence,
					   "Rank 0 and 6 others called AllReduce of 1024 float32"));
	EXPECT_EQUAL(first()->number, 2);
	EXPECT_EQUAL(first()->peer, 0);
	EXPECT_EQUAL(first()->victims, 7);
	flight_of(5, 1)->op.function = OP_ALL_REDUCE;
	flight_of(5, 1)->op.count = 512;
	EXPECT_THAT("different count", is_rule(5, "count"));
	flight_of(5, 1)->op.count = 1024;
	flight_of(5, 1)->op.datatype = OP_BFLOAT16;
	EXPECT_THAT("different datatype", is_rule(5, "datatype"));
	flight_of(5, 1)->op.datatype = OP_FLOAT32;
	for (int i = 0; i < 8; i++) {
		flight_of(i, 1)->op.function = OP_BROADCAST;
		flight_of(i, 1)->op.root = i == 5 ? 1 : 0;
	}
	EXPECT_THAT("different root", is_rule(5, "root"));
	EXPECT_THAT("with the roots", stage_has_line(&first()->evidence, "with root 1"));
	stage_end(&stage);
}

/* X then Y, and Y then X; hosts ran ahead. */
static void test_order(void)
{
	all_in(4);
	for (int i = 0; i < 4; i++) {
		struct recording_flight *second = flight_of(i, 1), *third;

		third = stage_call(&stage, i, 1, OP_ALL_REDUCE, 3, OP_LAUNCHED, 59 * SECOND);
		second->op.count = i == 2 ? 77 : 1024;
		third->op.count = i == 2 ? 1024 : 77;
	}
	flight_of(2, 1)->op.signature ^= 5;
	stage_diverge(&stage, 2, 1, flight_of(2, 2));
	EXPECT_THAT("same calls, different order", is_rule(2, "order"));
	EXPECT_EQUAL(first()->number, 2);
	stage_end(&stage);
}

/* With half the count a rank finishes and is in its next call: the others are not missing there. */
static void test_ahead(void)
{
	all_in(4);
	stage_diverge(&stage, 1, 1, flight_of(1, 1));
	flight_of(1, 1)->op.count = 512;
	flight_of(1, 1)->op.state = OP_DONE;
	stage_rank(&stage, 1)->comms[0].counts.last_done_number = 2;
	stage_call(&stage, 1, 1, OP_ALL_REDUCE, 3, OP_RUNNING, 60 * SECOND);
	EXPECT_THAT("half the count", is_rule(1, "count"));
	EXPECT_EQUAL(first()->number, 2);
	stage_end(&stage);
}

static void test_halves(void)
{
	all_in(4);
	for (int i = 0; i < 2; i++) {
		stage_diverge(&stage, i, 1, flight_of(i, 1));
		flight_of(i, 1)->op.count = 512;
	}
	EXPECT_THAT("an even split: no rank is blamed", is_rule(-1, "count"));
	EXPECT_THAT("the title says so", strstr(first()->title, "evenly split") != NULL);
	EXPECT_THAT("both sides are listed anyway",
		    stage_has_line(&first()->evidence, "512") &&
			    stage_has_line(&first()->evidence, "1024"));
	stage_end(&stage);
}

/* Only the counters are left. */
static void test_counters(void)
{
	all_in(4);
	for (int i = 0; i < 4; i++) {
		stage_rank(&stage, i)->flight_count = 0;
		stage_rank(&stage, i)->comms[0].counts.signature = i == 3 ? 8 : 9;
	}
	EXPECT_THAT("hashes alone show which rank differs", is_rule(3, ""));
	EXPECT_THAT("but not how", stage_has_line(&first()->missing, "or earlier"));
	EXPECT_THAT("no hang, reported anyway",
		    stage_has_line(&first()->evidence, "data may be corrupted"));
	stage_rank(&stage, 3)->is_moving = true;
	EXPECT_THAT("counters that may be changing prove nothing", stage_nobody(&stage));
	stage_rank(&stage, 3)->is_moving = false;
	stage_rank(&stage, 3)->comms[0].info.interface = 4;
	EXPECT_THAT("releases that hash different fields are not compared", stage_nobody(&stage));
	stage_end(&stage);
}

/* It began before what the counters and the last slots show, and the operations are still recorded. */
static void test_older(void)
{
	all_in(4);
	for (int i = 0; i < 4; i++) {
		stage_diverge(&stage, i, 1, flight_of(i, 1));
		if (i == 2) {
			stage_diverge(&stage, i, 1, flight_of(i, 0));
			flight_of(i, 0)->op.count = 9;
			flight_of(i, 1)->op.signature ^= 0x700;
		}
	}
	EXPECT_THAT("the first difference counts", is_rule(2, "count"));
	EXPECT_EQUAL(first()->number, 1);
	EXPECT_THAT("without a caveat", first()->missing.count == 0);
	stage_end(&stage);
}

/* Whether it began there is known only if both sides agreed at the number before. */
static void test_gap(void)
{
	static const struct {
		int with_second; /* so many ranks still have their second call */
		bool is_first;
	} cases[] = { { 0, false }, { 2, false }, { 3, true }, { 4, true } };

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		stage_begin(&stage, 4, 4);
		stage.is_numbered = true; /* the first rank of each side is compared */
		for (int i = 0; i < 4; i++) {
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 62 * SECOND);
			if (i < cases[c].with_second)
				stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_DONE, 61 * SECOND);
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 3, OP_RUNNING, 60 * SECOND);
		}
		stage_diverge(&stage, 2, 1, flight_of(2, cases[c].with_second > 2 ? 2 : 1));
		flight_of(2, cases[c].with_second > 2 ? 2 : 1)->op.count = 512;
		EXPECT(is_rule(2, "count"));
		EXPECT_EQUAL(first()->number, 3);
		EXPECT_EQUAL(stage_has_line(&first()->missing, "or earlier"), !cases[c].is_first);
		EXPECT_THAT("both sides are listed",
			    stage_has_line(&first()->evidence, "512") &&
				    stage_has_line(&first()->evidence, "Rank 0 and 2 others"));
		stage_end(&stage);
	}
}

/* Rank 1 of four calls something else than rank 0; rank 2 has not arrived yet; rank 3 did the same as rank
 * 0, or has not arrived either. A repeated scan waits for ranks that were active a moment ago. */
static void test_watched(void)
{
	uint64_t still_ns[] = { 30 * SECOND, 30 * SECOND, SECOND / 2, SECOND / 2 };

	stage_begin(&stage, 4, 4);
	stage.options.hang_ns = 60 * SECOND;
	for (int i = 0; i < 4; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE,
			   i < 2 ? 31 * SECOND : 2 * SECOND);
	for (int i = 0; i < 2; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 30 * SECOND);
	stage_diverge(&stage, 1, 1, flight_of(1, 1));
	flight_of(1, 1)->op.count = 512;
	EXPECT_THAT("a single scan reports what it sees", is_rule(-1, "count"));
	stage.options.only_living = true;
	stage.options.still_ns = still_ns;
	EXPECT_THAT("a repeated scan waits for two active ranks", stage_nobody(&stage));
	stage_call(&stage, 3, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 0);
	still_ns[3] = 0;
	EXPECT_THAT("and for the last of them", stage_nobody(&stage));
	still_ns[2] = SECOND;
	EXPECT_THAT("not for a rank that makes no progress", is_rule(1, "count"));
	EXPECT_THAT("only the arrived ranks are counted",
		    strstr(first()->title, "rank 1 disagrees with 2 ranks") != NULL);
	still_ns[2] = SECOND / 2;
	stage.options.hang_ns = 30 * SECOND;
	EXPECT_THAT("nor for longer than the hang limit", is_rule(1, "count"));
	stage.options.hang_ns = 60 * SECOND;
	stage_rank(&stage, 2)->comms[0].info.interface = 4;
	EXPECT_THAT("nor for a rank that is not compared", is_rule(1, "count"));
	stage_rank(&stage, 2)->comms[0].info.interface = 5;
	stage_rank(&stage, 2)->comms[0].counts.collectives = 3;
	EXPECT_THAT("nor for a rank whose call is no longer recorded", is_rule(1, "count"));
	stage_rank(&stage, 2)->comms[0].counts.collectives = 2;
	still_ns[2] = SECOND / 20;
	EXPECT_THAT("counters that differ before the call is visible delay the report",
		    stage_nobody(&stage));
	stage_rank(&stage, 2)->comms[0].counts.collectives = 1;
	stage_rank(&stage, 2)->life = RECORDING_KILLED;
	EXPECT_THAT("dead ranks are not waited for", is_rule(1, "count"));
	stage_end(&stage);
}

/* The calls of a finished job are reported from its files, not by a scan of live jobs. */
static void test_past(void)
{
	all_in(4);
	stage_diverge(&stage, 1, 1, flight_of(1, 1));
	flight_of(1, 1)->op.count = 512;
	for (int i = 0; i < 3; i++)
		stage_rank(&stage, i)->life = RECORDING_KILLED;
	stage.options.only_living = true;
	stage_find(&stage);
	EXPECT_THAT("a scan of live jobs reports it while one rank lives",
		    stage.verdicts.count == 2 && first()->class == VERDICT_MISMATCH &&
			    stage.verdicts.list[1].class == VERDICT_PROCESS_DEAD);
	stage_rank(&stage, 3)->life = RECORDING_KILLED;
	EXPECT_THAT("and not when none does", stage_nobody(&stage));
	stage.options.only_living = false;
	EXPECT_THAT("a scan of recordings reports it", is_rule(1, "count"));
	stage_end(&stage);
}

static void test_nobody(void)
{
	all_in(4);
	stage_call(&stage, 1, 1, OP_ALL_REDUCE, 3, OP_LAUNCHED, SECOND);
	EXPECT_THAT("a rank that ran ahead agrees as far as the others are", stage_nobody(&stage));
	stage_end(&stage);
	all_in(4);
	for (int i = 0; i < 4; i++)
		stage_rank(&stage, i)->comms[0].info.hash = 0;
	stage.is_alone = true; /* they are numbered, and others count */
	stage_diverge(&stage, 1, 1, flight_of(1, 1));
	stage_find(&stage);
	EXPECT_THAT("without a hash ranks are not compared",
		    stage.verdicts.count == 1 && first()->class == VERDICT_STUCK);
	EXPECT_THAT("which is a caveat", stage_has_line(&first()->missing, "before 2.27"));
	stage_rank(&stage, 2)->process_state = 'T';
	EXPECT_THAT("a stopped process of that job is still the cause",
		    stage_only(&stage, VERDICT_PROCESS_STOPPED, 2));
	EXPECT_THAT("with less confidence", first()->confidence < 0.95);
	stage_end(&stage);
}

int main(void)
{
	test_rules();
	test_order();
	test_ahead();
	test_halves();
	test_counters();
	test_older();
	test_gap();
	test_watched();
	test_past();
	test_nobody();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_split.txt");
	return tap_done();
}
