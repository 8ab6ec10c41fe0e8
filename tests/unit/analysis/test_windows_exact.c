/* Windows and changes of transfers whose durations are exactly known. */
#include "analysis/timeline_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

enum { CALLS = 128, COMMS_MAX = 6 };
#define EVERY_NS UINT64_C(10000000)
#define BYTES (UINT64_C(1) << 20)

static struct hand_made hand;
static struct timeline_report report;

/* A communicator of two ranks, on processes of its own. */
struct player {
	int32_t nranks; /* 0: two */
	int32_t nnodes;
	int recorded; /* ranks; 0: two */
	uint8_t function;
	uint64_t bytes;
	int calls;
	int from; /* the calls that take longer, ... */
	int to;
	uint64_t usual_ns;
	uint64_t other_ns; /* ... this long */
};

static struct player usual(int from, int to, uint64_t other_ns)
{
	return (struct player){ .nnodes = 1,
				.function = OP_ALL_REDUCE,
				.bytes = BYTES,
				.calls = CALLS,
				.from = from,
				.to = to,
				.usual_ns = 100000,
				.other_ns = other_ns };
}

static void made(const struct timeline_options *options)
{
	if (timeline_report_make(&report, &hand.recording, NULL, options) != OK)
		abort();
}

static void play(const struct player *players, int count)
{
	for (int c = 0; c < count; c++)
		for (int rank = 0; rank < (players[c].recorded ? players[c].recorded : 2); rank++) {
			const struct player *of = &players[c];
			struct recording_process *process =
				hand_process(&hand, "j", c * 4 + rank, "a");
			uint32_t comm = hand_comm(process, 0x100 + (uint64_t)c, "comm", rank,
						  of->nranks ? of->nranks : 2, of->nnodes);

			for (int n = 0; n < of->calls; n++)
				hand_op(process, comm, of->function, (uint64_t)n + 1, of->bytes,
					n >= of->from && n < of->to ? of->other_ns : of->usual_ns,
					(uint64_t)(n + 1) * EVERY_NS);
		}
	made(NULL);
}

static void over(void)
{
	timeline_report_release(&report);
	hand_release(&hand);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * (fabs(a) + fabs(b));
}

/* Rounded down. */
static bool is_lost(const struct windows_change *change, uint64_t ns)
{
	return change->lost_ns == ns || change->lost_ns + 1 == ns;
}

/* Two ranks: the factor of an AllReduce is 1. */
static double rate_of(uint64_t ns)
{
	return (double)BYTES * 1e9 / (double)ns;
}

static void expect_change(const char *sentence, size_t i, struct windows_change wanted)
{
	const struct windows_change *change = &report.windows.changes[i];

	if (i >= report.windows.change_count) {
		EXPECT_THAT(sentence, 0);
		return;
	}
	wanted.percent = (wanted.after - wanted.before) / wanted.before * 100;
	wanted.window =
		(uint32_t)((wanted.at_ns - report.windows.start_ns) / report.windows.width_ns);
	if (EXPECT_THAT(sentence,
			change->kind == wanted.kind && change->function == wanted.function &&
				change->size_class == op_size_class(BYTES) &&
				change->at_ns == wanted.at_ns && change->window == wanted.window &&
				is_near(change->before, wanted.before) &&
				is_near(change->after, wanted.after) &&
				is_near(change->percent, wanted.percent) &&
				change->matches_before == wanted.matches_before &&
				change->matches_after == wanted.matches_after &&
				is_lost(change, wanted.lost_ns) && change->confidence > 0.999 &&
				change->confidence <= 1 && change->comms == wanted.comms &&
				change->comms_changed == wanted.comms_changed &&
				change->is_everywhere == wanted.is_everywhere &&
				change->ranks_changed == wanted.ranks_changed))
		return;
	printf("#   at %llu, %g to %g, %llu and %llu matches, lost %llu, %u of %u, %u ranks\n",
	       (unsigned long long)change->at_ns, change->before, change->after,
	       (unsigned long long)change->matches_before,
	       (unsigned long long)change->matches_after, (unsigned long long)change->lost_ns,
	       change->comms_changed, change->comms, change->ranks_changed);
}

static struct windows_change change_at(int call, uint64_t before_ns, uint64_t after_ns)
{
	return (struct windows_change){ .kind = JOB_COMM_NVLINK,
					.function = OP_ALL_REDUCE,
					.at_ns = (uint64_t)(call + 1) * EVERY_NS,
					.before = rate_of(before_ns),
					.after = rate_of(after_ns),
					.comms = 1,
					.comms_changed = 1,
					.is_everywhere = true,
					.ranks_changed = 2 };
}

static void test_lasting(void)
{
	static const struct {
		const char *sentence;
		int calls;
		int from;
		uint64_t other_ns;
		bool is_found;
	} cases[] = {
		{ "in the middle", CALLS, 64, 200000, true },
		{ "a faster transfer", CALLS, 50, 60000, true },
		{ "five at the start", CALLS, 5, 150000, true },
		{ "five at the end", CALLS, CALLS - 5, 150000, true },
		{ "5.006% less", CALLS, 64, 105270, true },
		{ "4.94% less", CALLS, 64, 105200, false },
		{ "5.01% more", CALLS, 64, 95229, true },
		{ "4.99% more", CALLS, 64, 95247, false },
		{ "sixteen collectives", 16, 8, 200000, true },
		{ "sixteen collectives, five at the end", 16, 11, 200000, true },
		{ "fifteen are too few", 15, 8, 200000, false },
		{ "nothing", CALLS, CALLS, 200000, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct player player = usual(cases[i].from, cases[i].calls, cases[i].other_ns);
		struct windows_change wanted = change_at(cases[i].from, 100000, cases[i].other_ns);

		player.calls = cases[i].calls;
		wanted.matches_before = (uint64_t)cases[i].from;
		wanted.matches_after = (uint64_t)(cases[i].calls - cases[i].from);
		if (cases[i].other_ns > 100000)
			wanted.lost_ns = 2 * wanted.matches_after * (cases[i].other_ns - 100000);
		play(&player, 1);
		EXPECT_EQUAL(report.windows.change_count, cases[i].is_found);
		if (cases[i].is_found)
			expect_change(cases[i].sentence, 0, wanted);
		over();
	}
}

/* It changes, and changes back. */
static void test_temporary(void)
{
	struct player player = usual(60, 70, 130000);
	struct windows_change there = change_at(60, 100000, 130000);
	struct windows_change back = change_at(70, 130000, 100000);

	there.matches_before = 60;
	there.matches_after = back.matches_before = 10;
	there.lost_ns = 2 * 10 * UINT64_C(30000);
	back.matches_after = 58;
	play(&player, 1);
	EXPECT_EQUAL(report.windows.change_count, 2);
	expect_change("there", 0, there);
	expect_change("and back", 1, back);
	over();

	player = usual(5, 10, 130000);
	play(&player, 1);
	EXPECT_EQUAL(report.windows.change_count, 2);
	EXPECT(report.windows.changes[0].matches_before == 5 &&
	       report.windows.changes[0].matches_after == 5);
	over();
	player = usual(CALLS - 10, CALLS - 5, 130000);
	play(&player, 1);
	EXPECT_EQUAL(report.windows.change_count, 2);
	EXPECT(report.windows.changes[0].matches_before == CALLS - 10 &&
	       report.windows.changes[1].matches_after == 5);
	over();
	player = usual(60, 70, 105200);
	play(&player, 1);
	EXPECT_THAT("less than five percent", report.windows.change_count == 0);
	over();
	player = usual(60, 62, 900000);
	play(&player, 1);
	EXPECT_THAT("two collectives are no change", report.windows.change_count == 0);
	over();
}

/* Each level lasts equally long: halves, and halves of halves. */
static void test_levels(void)
{
	for (int levels = 2; levels <= 4; levels *= 2) {
		for (int rank = 0; rank < 2; rank++) {
			struct recording_process *process = hand_process(&hand, "j", rank, "a");
			uint32_t comm = hand_comm(process, 0x100, "comm", rank, 2, 1);
			double ns = 100000;

			for (int n = 0; n < CALLS; n++) {
				if (n > 0 && n % (CALLS / levels) == 0)
					ns *= 1.3;
				hand_op(process, comm, OP_ALL_REDUCE, (uint64_t)n + 1, BYTES,
					(uint64_t)ns, (uint64_t)(n + 1) * EVERY_NS);
			}
		}
		made(NULL);
		EXPECT_EQUAL(report.windows.change_count, levels - 1);
		for (size_t i = 0; i < report.windows.change_count; i++)
			if (!EXPECT((report.windows.changes[i].at_ns / EVERY_NS - 1) %
					    (CALLS / (uint64_t)levels) ==
				    0))
				break;
		over();
	}
}

/* Changes of several communicators. */
static void test_together(void)
{
	struct player players[5];
	struct windows_change wanted = change_at(64, 100000, 200000);
	int apart = 0;

	for (int changed = 3; changed <= 5; changed++) {
		for (int c = 0; c < 5; c++)
			players[c] = usual(64, c < changed ? CALLS : 64, 200000);
		wanted.matches_before = wanted.matches_after = 64 * (uint64_t)changed;
		wanted.lost_ns = 2 * 64 * (uint64_t)changed * 100000;
		wanted.comms = 5;
		wanted.comms_changed = (uint32_t)changed;
		wanted.is_everywhere = changed >= 4;
		wanted.ranks_changed = 2 * (uint32_t)changed;
		play(players, 5);
		EXPECT_EQUAL(report.windows.change_count, 1);
		expect_change("several at one time are one change", 0, wanted);
		apart = (int)(3 * report.windows.width_ns / EVERY_NS);
		over();
	}

	for (int i = 0; i < 2; i++) {
		players[0] = usual(40, CALLS, 200000);
		players[1] = usual(40 + apart + i, CALLS, 200000);
		play(players, 2);
		EXPECT_EQUAL(3 * report.windows.width_ns / EVERY_NS, (uint64_t)apart);
		EXPECT_THAT(i == 0 ? "three windows apart is one time" : "further is not",
			    report.windows.change_count == (i == 0 ? 1 : 2) &&
				    report.windows.changes[0].comms_changed == (i == 0 ? 2 : 1));
		over();
	}

	players[0] = usual(64, CALLS, 200000);
	players[1] = usual(64, CALLS, 50000);
	play(players, 2);
	EXPECT_THAT("slower and faster are two changes, the costly one first",
		    report.windows.change_count == 2 && report.windows.changes[0].percent < 0 &&
			    report.windows.changes[1].percent > 0 &&
			    report.windows.changes[0].comms_changed == 1 &&
			    report.windows.changes[0].comms == 2 &&
			    !report.windows.changes[0].is_everywhere);
	over();

	players[0] = usual(64, CALLS, 200000);
	players[1] = usual(64, CALLS, 300000);
	players[1].nnodes = 2;
	players[2] = usual(64, CALLS, 400000);
	players[2].function = OP_ALL_GATHER;
	players[3] = usual(64, CALLS, 500000);
	players[3].bytes = 2 * BYTES;
	play(players, 4);
	EXPECT_EQUAL(report.windows.change_count, 4);
	for (size_t i = 0; i < report.windows.change_count; i++)
		EXPECT_THAT("other kinds, functions and sizes are changes of their own",
			    report.windows.changes[i].comms == 1 &&
				    report.windows.changes[i].comms_changed == 1 &&
				    is_lost(&report.windows.changes[i],
					    2 * 64 * (400000 - 100000 * (uint64_t)i)));
	over();

	/* 200, 300 and 400 us: in the middle. */
	for (int c = 0; c < 3; c++)
		players[c] = usual(64 + c, CALLS, 200000 + 100000 * (uint64_t)c);
	play(players, 3);
	EXPECT_EQUAL(report.windows.change_count, 1);
	EXPECT_THAT("the median of them",
		    is_near(report.windows.changes[0].after, rate_of(300000)) &&
			    is_near(report.windows.changes[0].before, rate_of(100000)) &&
			    report.windows.changes[0].at_ns == 66 * EVERY_NS &&
			    report.windows.changes[0].matches_before == 64 + 65 + 66 &&
			    report.windows.changes[0].matches_after == 64 + 63 + 62 &&
			    is_lost(&report.windows.changes[0],
				    2 * (64 * 100000 + 63 * 200000 + 62 * 300000)));
	over();
}

/* Which collectives say something about a transfer. */
static void test_counted(void)
{
	static const struct {
		const char *sentence;
		int32_t nranks;
		int recorded;
		uint64_t bytes;
		bool is_found;
	} cases[] = {
		{ "three of four ranks are recorded", 4, 3, BYTES, true },
		{ "two of four are too few", 4, 2, BYTES, false },
		{ "one of one has no one to compare with", 1, 1, BYTES, false },
		{ "one byte", 2, 2, 1, true },
		{ "no bytes", 2, 2, 0, false },
		{ "an unknown number of bytes", 2, 2, OP_BYTES_UNKNOWN, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct player player = usual(64, CALLS, 200000);

		player.nranks = cases[i].nranks;
		player.recorded = cases[i].recorded;
		player.bytes = cases[i].bytes;
		play(&player, 1);
		EXPECT_THAT(cases[i].sentence,
			    report.windows.change_count == (cases[i].is_found ? 1 : 0));
		if (cases[i].is_found)
			EXPECT(is_lost(&report.windows.changes[0],
				       64 * 100000 * (uint64_t)cases[i].recorded));
		over();
	}
}

static void test_number_of_windows(void)
{
	static const struct {
		int calls;
		uint64_t every_ns;
		uint32_t most;
		uint32_t windows;
	} cases[] = {
		{ 1, 1000000, 0, 1 },	     { 7, 1000000, 0, 1 },	{ 8, 1000000, 0, 2 },
		{ 40, 1000000, 0, 10 },	     { 40, 1000000, 10, 10 },	{ 40, 1000000, 9, 9 },
		{ 40, 1000000, 1, 1 },	     { 2000, 1000000, 0, 120 }, { 2000, 1000000, 200, 200 },
		{ 2000, 1000000, 500, 240 }, { 40, 100, 0, 4 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct timeline_options options = { .windows = cases[i].most };
		const struct windows *windows = &report.windows;
		struct recording_process *process = hand_process(&hand, "j", 0, "a");
		uint32_t comm = hand_comm(process, 0x100, "comm", 0, 1, 1);

		for (uint64_t n = 1; n <= (uint64_t)cases[i].calls; n++)
			hand_op(process, comm, OP_ALL_REDUCE, n, 8, 50,
				1000000 + n * cases[i].every_ns);
		made(&options);
		EXPECT_EQUAL(windows->count, cases[i].windows);
		EXPECT(windows->start_ns == 1000000 + cases[i].every_ns - 50 &&
		       windows->end_ns == 1000000 + (uint64_t)cases[i].calls * cases[i].every_ns);
		EXPECT_THAT("the last window has the end",
			    windows->start_ns + windows->count * windows->width_ns >
					    windows->end_ns &&
				    windows->start_ns + (windows->count - 1) * windows->width_ns <=
					    windows->end_ns);
		over();
	}
	hand_process(&hand, "j", 0, "a");
	made(NULL);
	EXPECT_THAT("without operations there are none", report.windows.count == 0);
	over();
}

int main(void)
{
	test_lasting();
	test_temporary();
	test_levels();
	test_together();
	test_counted();
	test_number_of_windows();
	return tap_done();
}
