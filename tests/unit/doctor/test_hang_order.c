/*
 * Sides of a disagreement and links of a deadlock: which ranks are named and counted, with two and three of everything.
 */
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

static bool is_only(enum verdict_class class)
{
	return stage.verdicts.count == 1 && first()->class == class;
}

/* ---- sides --------------------------------------------------------------------------------------- */

/* All ranks made calls 1 to `calls` - 1 and are in call `calls`. */
static void all_in(int count, uint64_t calls)
{
	stage_begin(&stage, count, 4);
	for (int i = 0; i < count; i++)
		for (uint64_t match = 1; match <= calls; match++)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, match,
				   match < calls ? OP_DONE : OP_RUNNING,
				   (60 + calls - match) * SECOND);
}

/* This rank's n-th call, and all after it, are different; `which` tells apart several that differ. */
static void differ(int rank, uint64_t from, uint64_t which)
{
	struct recording_process *process = stage_rank(&stage, rank);

	for (size_t i = 0; i < process->flight_count; i++)
		if (process->flights[i].op.match >= from) {
			process->flights[i].op.signature += which << 20;
			process->flights[i].op.count = 10 + which;
		}
	process->comms[0].counts.signature += which << 20;
}

static void test_sizes_of_sides(void)
{
	all_in(7, 2);
	differ(4, 2, 1);
	differ(5, 2, 1);
	stage_find(&stage);
	EXPECT_THAT("two ranks of seven",
		    is_only(VERDICT_MISMATCH) && first()->rank == 4 &&
			    strncmp(first()->title, "rank 4 and 1 more disagree with 5 ranks",
				    39) == 0);
	stage_end(&stage);

	all_in(7, 2);
	for (int i = 0; i < 3; i++)
		differ(i, 2, 1);
	stage_find(&stage);
	EXPECT_THAT("three of seven, the first among them",
		    is_only(VERDICT_MISMATCH) && first()->rank == 0 && first()->peer == 3);
	stage_end(&stage);

	all_in(7, 2);
	differ(1, 2, 1);
	differ(2, 2, 1);
	differ(6, 2, 2);
	stage_find(&stage);
	EXPECT_THAT("three sides: the smallest is odd", is_only(VERDICT_MISMATCH) &&
								first()->rank == 6 &&
								first()->evidence.count == 4);
	stage_end(&stage);

	all_in(2, 2);
	differ(1, 2, 1);
	stage_find(&stage);
	EXPECT_THAT("one against one", is_only(VERDICT_MISMATCH) && first()->rank == -1);
	stage_end(&stage);

	for (int count = 8; count <= 10; count++) {
		all_in(count, 2);
		for (int i = 0; i < count; i++)
			differ(i, 2, (uint64_t)i + 1);
		stage_find(&stage);
		EXPECT_THAT("at most eight sides are listed",
			    is_only(VERDICT_MISMATCH) && first()->evidence.count == 9);
		stage_end(&stage);
	}
}

static void test_which_difference(void)
{
	static const int orders[][2] = { { 1, 2 }, { 2, 1 } };

	for (int i = 0; i < 2; i++) {
		all_in(5, 4);
		differ(orders[i][0], 2, 1);
		differ(orders[i][1], 4, 2);
		stage_find(&stage);
		EXPECT_THAT("the earliest of two differences, whichever rank comes first",
			    is_only(VERDICT_MISMATCH) && first()->number == 2 &&
				    first()->rank == orders[i][0]);
		stage_end(&stage);
	}
}

/* The slot of the call is gone on the first rank of a side: what it called is known from the second. */
static void test_known_from_another_rank(void)
{
	static const int without[] = { 0, 1, 3 };

	for (int i = 0; i < 3; i++) {
		all_in(4, 1);
		differ(3, 1, 1);
		stage_rank(&stage, without[i])->flight_count = 0;
		stage_find(&stage);
		EXPECT_THAT("what a side called is known from any rank of it",
			    stage.verdicts.count > 0 && first()->class == VERDICT_MISMATCH &&
				    first()->rank == 3);
		stage_end(&stage);
	}
}

/* Each side makes the other's call `later` calls later. */
static void test_order(void)
{
	for (uint64_t later = 1; later <= 9; later += later < 7 ? 6 : 1) {
		stage_begin(&stage, 3, 3);
		for (int i = 0; i < 3; i++)
			for (uint64_t match = 1; match <= 12; match++) {
				struct recording_flight *flight = stage_call(
					&stage, i, 1, OP_ALL_REDUCE, match,
					match == 1 ? OP_RUNNING : OP_LAUNCHED, 60 * SECOND - match);

				flight->op.count = match == 1		? (i == 2 ? 71 : 72)
						   : match == 1 + later ? (i == 2 ? 72 : 71)
									: 1000 + match;
				flight->op.signature += i == 2 ? 0x7000 : 0;
			}
		stage_rank(&stage, 2)->comms[0].counts.signature += 0x7000;
		stage_find(&stage);
		EXPECT_THAT("up to eight calls later it is another order",
			    is_only(VERDICT_MISMATCH) &&
				    strcmp(first()->rule, later <= 8 ? "order" : "count") == 0);
		stage_end(&stage);
	}
}

/* Only one side makes the other's call later: not an order. */
static void test_no_order(void)
{
	for (int side = 0; side < 2; side++) {
		all_in(3, 1);
		differ(2, 1, 1);
		for (int i = 0; i < 3; i++)
			if ((i == 2) == (side == 1))
				stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_LAUNCHED, 59 * SECOND)
					->op.count = side == 1 ? 1024 : 11;
		stage_find(&stage);
		EXPECT_THAT("one side alone",
			    is_only(VERDICT_MISMATCH) && strcmp(first()->rule, "count") == 0);
		stage_end(&stage);
	}
}

static void test_not_compared(void)
{
	all_in(3, 2);
	differ(1, 2, 1);
	flight_of(1, 1)->op.flags |= OP_FLAG_REPLAY;
	stage_rank(&stage, 1)->comms[0].counts.signature = flight_of(0, 1)->op.signature;
	stage_find(&stage);
	EXPECT_THAT("replays of graphs are not compared",
		    stage.verdicts.count == 0 || first()->class != VERDICT_MISMATCH);
	stage_end(&stage);

	all_in(3, 2);
	differ(1, 2, 1);
	flight_of(1, 1)->op.signature = 0;
	stage_rank(&stage, 1)->comms[0].counts.signature = 0;
	stage_find(&stage);
	EXPECT_THAT("nor are calls without a hash",
		    stage.verdicts.count == 0 || first()->class != VERDICT_MISMATCH);
	stage_end(&stage);

	all_in(3, 2);
	differ(1, 2, 1);
	stage_rank(&stage, 1)->comms[0].has_counts = false;
	stage_find(&stage);
	EXPECT_THAT("calls are enough without counters",
		    stage.verdicts.count == 1 && first()->class == VERDICT_MISMATCH);
	stage_end(&stage);
}

/* Two communicators: only the second disagrees. */
static void test_second_communicator(void)
{
	int tp;

	stage_begin(&stage, 4, 4);
	tp = stage_comm(&stage, 0x200, "tp", 0, 4, 1, 4);
	for (int i = 0; i < 4; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 61 * SECOND);
		stage_call(&stage, i, tp, OP_ALL_GATHER, 1, OP_RUNNING, 60 * SECOND);
	}
	stage_diverge(&stage, 3, tp, flight_of(3, 1));
	flight_of(3, 1)->op.count = 5;
	stage_find(&stage);
	EXPECT_THAT("the communicator that disagrees is named",
		    is_only(VERDICT_MISMATCH) && strcmp(first()->comm, "tp") == 0 &&
			    first()->rank == 3);
	stage_end(&stage);
}

/* How long it has lasted, if it is no hang yet; if nothing is in flight; if kernels are not recorded. */
static void test_how_long(void)
{
	static const uint64_t ago_s[] = { 3, 9, 5 };

	for (int kernels = 0; kernels < 2; kernels++) {
		stage_begin(&stage, 3, 3);
		for (int i = 0; i < 3; i++) {
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_RUNNING, ago_s[i] * SECOND);
			if (kernels == 0)
				stage_rank(&stage, i)->comms[0].info.flags = 0;
		}
		differ(2, 1, 1);
		stage_find(&stage);
		EXPECT_THAT("the oldest is shown",
			    is_only(VERDICT_MISMATCH) && first()->for_ns == 0);
		stage_end(&stage);

		stage_begin(&stage, 3, 3);
		for (int i = 0; i < 3; i++) {
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, kernels ? OP_DONE : OP_LAUNCHED,
				   (40 + ago_s[i]) * SECOND);
			if (kernels == 0)
				stage_rank(&stage, i)->comms[0].info.flags = 0;
		}
		differ(2, 1, 1);
		stage_find(&stage);
		EXPECT_THAT("nobody has called anything since", is_only(VERDICT_MISMATCH));
		stage_end(&stage);
	}
}

/* ---- deadlocks ----------------------------------------------------------------------------------- */

/* Rank i of `count` is in a communicator that it shares with the next one, and has not called that of the one before. */
static void test_ring_of_communicators(void)
{
	static const char *const titles[] = {
		[3] = "deadlock across c0, c1, c2: ranks wait for each other; 3 ranks stuck",
		[4] = "deadlock across c0, c1, c2, c3: ranks wait for each other; 4 ranks stuck",
		[5] = "deadlock across c0, c1, c2, c3 and 1 more: ranks wait for each other; "
		      "5 ranks stuck",
		[6] = "deadlock across c0, c1, c2, c3 and 2 more: ranks wait for each other; "
		      "6 ranks stuck",
	};

	for (int count = 3; count <= 6; count++) {
		int ids[6][2];

		stage_begin(&stage, count, 1);
		for (int i = 0; i < count; i++) {
			int next = (i + 1) % count, from = i < next ? i : next;
			char name[3] = { 'c', (char)('0' + i), '\0' };

			stage_comm(&stage, 0x200 + (uint64_t)i, name, from, 2,
				   i < next ? 1 : count - 1, 2);
			ids[i][0] = (int)stage_rank(&stage, i)->comm_count;
			ids[i][1] = (int)stage_rank(&stage, next)->comm_count;
		}
		for (int i = 0; i < count; i++)
			stage_call(&stage, i, ids[i][0], OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
		stage_find(&stage);
		EXPECT_THAT(titles[count], is_only(VERDICT_DEADLOCK) &&
						   strcmp(first()->title, titles[count]) == 0);
		EXPECT_EQUAL(first()->evidence.count, count);
		stage_end(&stage);
	}
}

/* The same, but the communicator of rank `wide` has the next `reach` ranks: there are shorter cycles, and the shortest one
 * is shown. */
static void chords(int count, int wide, int reach)
{
	int ids[8];
	char what[80];

	stage_begin(&stage, count, 1);
	for (int i = 0; i < count; i++) {
		int next = (i + 1) % count;
		char name[3] = { 'c', (char)('0' + i), '\0' };

		if (i == wide)
			stage_comm(&stage, 0x200 + (uint64_t)i, name, i, 1 + reach, 1, 1 + reach);
		else
			stage_comm(&stage, 0x200 + (uint64_t)i, name, i < next ? i : next, 2,
				   i < next ? 1 : count - 1, 2);
		ids[i] = (int)stage_rank(&stage, i)->comm_count;
	}
	for (int i = 0; i < count; i++)
		stage_call(&stage, i, ids[i], OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage.is_numbered = true;
	stage_find(&stage);
	snprintf(what, sizeof(what), "%d communicators, a shortcut from %d over %d", count, wide,
		 reach);
	EXPECT_THAT(what, is_only(VERDICT_DEADLOCK) &&
				  (int)first()->evidence.count == count - reach + 1 &&
				  (int)first()->victims == count);
	stage_end(&stage);
}

static void test_shortest_cycle(void)
{
	for (int count = 4; count <= 7; count++)
		for (int wide = 0; wide < count - 2; wide += 2)
			for (int reach = 2; wide + reach < count; reach++)
				chords(count, wide, reach);
}

/* Ranks `from` to `until` of five are in tp, the others in world. */
static void two_groups(int from, int until, int visible)
{
	int tp;

	stage_begin(&stage, 5, 1);
	tp = stage_comm(&stage, 0x200, "tp", 0, 5, 1, visible);
	for (int i = 0; i < 5; i++)
		stage_call(&stage, i, i >= from && i <= until ? tp : 1,
			   i >= from && i <= until ? OP_ALL_GATHER : OP_ALL_REDUCE, 1, OP_RUNNING,
			   60 * SECOND);
	stage_find(&stage);
}

static void test_groups(void)
{
	two_groups(1, 1, 5);
	EXPECT_THAT("the one that differs is named",
		    is_only(VERDICT_DEADLOCK) && first()->rank == 1);
	stage_end(&stage);
	two_groups(0, 0, 5);
	EXPECT_THAT("also if it is the first", is_only(VERDICT_DEADLOCK) && first()->rank == 0);
	stage_end(&stage);
	two_groups(1, 2, 5);
	EXPECT_THAT("two of five", is_only(VERDICT_DEADLOCK) && first()->rank == 1);
	stage_end(&stage);
	two_groups(1, 3, 5);
	EXPECT_THAT("three of five: the other two are odd",
		    is_only(VERDICT_DEADLOCK) && (first()->rank == 0 || first()->rank == 4));
	stage_end(&stage);
	two_groups(1, 1, 6);
	EXPECT_THAT("a rank of one communicator is not visible: it may be the cause",
		    stage.verdicts.count > 0);
	stage_end(&stage);
}

/* Without kernel events: `odd` ranks call the second communicator first. When calls were launched may be unknown. */
static void two_orders(const bool *is_odd, int count, uint64_t more, bool has_launches)
{
	int second;

	stage_begin(&stage, count, 2);
	second = stage_comm(&stage, 0x200, "second", 0, count, 1, count);
	for (int i = 0; i < count; i++) {
		stage_rank(&stage, i)->comms[0].info.flags = 0;
		stage_rank(&stage, i)->comms[second - 1].info.flags = 0;
		for (uint64_t match = 1; match <= 1 + more; match++) {
			uint64_t ago_ns = (80 - match) * SECOND;

			stage_call(&stage, i, 1, OP_ALL_REDUCE, match, OP_LAUNCHED,
				   is_odd[i] ? ago_ns : ago_ns + SECOND / 2);
			stage_call(&stage, i, second, OP_ALL_GATHER, match, OP_LAUNCHED,
				   is_odd[i] ? ago_ns + SECOND / 2 : ago_ns);
		}
		for (size_t f = 0; !has_launches && f < stage_rank(&stage, i)->flight_count; f++)
			flight_of(i, (int)f)->op.launch_ns = 0;
	}
	stage.options.has_unjudged = true;
	stage_find(&stage);
}

static void test_orders(void)
{
	static const struct {
		bool is_odd[5];
		int64_t rank; /* that is named; -1: there is no deadlock */
	} cases[] = {
		{ { false, false, false, false, true }, 4 },
		{ { false, true, false, false, false }, 1 },
		{ { true, false, false, false, false }, 0 },
		{ { false, true, false, true, false }, 1 },
		{ { false, false, false, false, false }, -1 },
		{ { true, true, true, true, true }, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint64_t more = 0; more < 31; more += 10) {
			two_orders(cases[i].is_odd, 5, more % 30, more < 30);
			if (cases[i].rank < 0)
				EXPECT_THAT("the same order everywhere: not judged",
					    is_only(VERDICT_BLIND));
			else
				EXPECT_THAT("ranks that called in another order",
					    stage.verdicts.count > 0 &&
						    first()->class == VERDICT_DEADLOCK &&
						    first()->rank == cases[i].rank);
			stage_end(&stage);
		}
}

/* A Send and its Recv against a collective, called in another order. */
static void test_send_against_collective(void)
{
	for (int later = 0; later < 2; later++) {
		int second;

		stage_begin(&stage, 3, 1);
		second = stage_comm(&stage, 0x200, "pp", 0, 3, 1, 3);
		for (int i = 0; i < 3; i++) {
			stage_rank(&stage, i)->comms[0].info.flags = 0;
			stage_rank(&stage, i)->comms[second - 1].info.flags = 0;
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_LAUNCHED,
				   (i == 1 ? 39 : 40) * SECOND);
		}
		stage_call(&stage, 0, second, OP_SEND, 1, OP_LAUNCHED, (later ? 41 : 39) * SECOND)
			->op.peer = 1;
		stage_call(&stage, 1, second, OP_RECV, 1, OP_LAUNCHED, 40 * SECOND)->op.peer = 0;
		stage.options.has_unjudged = true;
		stage_find(&stage);
		EXPECT_THAT(later ? "both called the pair first" : "one called the pair first",
			    stage.verdicts.count > 0);
		stage_end(&stage);
	}
}

int main(void)
{
	test_sizes_of_sides();
	test_which_difference();
	test_known_from_another_rank();
	test_order();
	test_no_order();
	test_not_compared();
	test_second_communicator();
	test_how_long();
	test_ring_of_communicators();
	test_shortest_cycle();
	test_groups();
	test_orders();
	test_send_against_collective();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_order.txt");
	return tap_done();
}
