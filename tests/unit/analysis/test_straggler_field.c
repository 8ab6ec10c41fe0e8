/* Is a rank late beyond chance? Noise with heavy tails, noise that lasts, and GPUs that differ name nobody. */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <string.h>

#include "analysis/stats.h"
#include "common/hash.h"
#include "tests/tap.h"

enum { SEATS = 16, BLOCKS = 32, TRIALS = 200 };

static double values[SEATS * BLOCKS];
static uint64_t drawn;

/* 0..1 */
static double draw(void)
{
	drawn = hash_word(drawn, 1);
	return (double)(drawn >> 11) / (double)(UINT64_C(1) << 53);
}

static double draw_normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += draw();
	return sum;
}

static uint32_t count_named(uint32_t seats, double least)
{
	struct straggler_field field;
	uint32_t named = 0;

	if (straggler_field_make(&field, values, seats, BLOCKS, least) != OK)
		return seats;
	for (uint32_t seat = 0; seat < seats; seat++)
		named += straggler_field_stretch(&field, seat).is_found;
	straggler_field_release(&field);
	return named;
}

/* Small differences, and 5% of the blocks have a long pause. */
static void fill_tails(uint32_t seats)
{
	for (size_t i = 0; i < (size_t)seats * BLOCKS; i++)
		values[i] = draw_normal() * 100 + (draw() < 0.05 ? 20000 * draw() : 0);
}

/* Each wanders, over about eight blocks. */
static void fill_wandering(uint32_t seats)
{
	for (uint32_t seat = 0; seat < seats; seat++) {
		double at = draw_normal();

		for (uint32_t b = 0; b < BLOCKS; b++) {
			at = 0.9 * at + 0.44 * draw_normal();
			values[seat * BLOCKS + b] = 300 * at + 30 * draw_normal();
		}
	}
}

static void test_healthy(void)
{
	uint32_t tails = 0, wandering = 0, unequal = 0;

	drawn = 1;
	for (int i = 0; i < TRIALS; i++) {
		fill_tails(SEATS);
		tails += count_named(SEATS, 1000) > 0;
		fill_wandering(SEATS);
		wandering += count_named(SEATS, 100) > 0;
		for (uint32_t seat = 0; seat < SEATS; seat++) {
			double speed = 400 * (draw() - 0.5);

			for (uint32_t b = 0; b < BLOCKS; b++)
				values[seat * BLOCKS + b] = speed + 20 * draw_normal();
		}
		unequal += count_named(SEATS, 50) > 0;
	}
	EXPECT_THAT("long pauses of all ranks name nobody", tails == 0);
	EXPECT_THAT("noise that lasts names hardly anybody", wandering <= TRIALS / 50);
	EXPECT_THAT("nor do GPUs that differ", unequal <= TRIALS / 100);
}

static void add_late(uint32_t seat, uint32_t from, uint32_t to, double by)
{
	for (uint32_t b = from; b < to; b++)
		values[seat * BLOCKS + b] += by;
}

static void test_slow(void)
{
	struct straggler_field field;
	struct straggler_stretch stretch = { .chance = 1 };

	drawn = 2;
	fill_tails(SEATS);
	add_late(5, 13, 29, 2000);
	EXPECT_THAT("a rank that is late for a while", count_named(SEATS, 1000) == 1);
	if (straggler_field_make(&field, values, SEATS, BLOCKS, 1000) == OK)
		stretch = straggler_field_stretch(&field, 5);
	EXPECT_THAT("it is this one, then", stretch.is_found && stretch.from >= 12 &&
						    stretch.from <= 15 && stretch.to >= 27 &&
						    stretch.to <= 30);
	straggler_field_release(&field);

	memset(values, 0, sizeof(values));
	add_late(1, 17, 20, 11000);
	EXPECT_THAT("three blocks suffice if nobody else is ever late", count_named(8, 200) == 1);
	fill_wandering(SEATS);
	add_late(3, 10, BLOCKS, 6000);
	EXPECT_THAT("a late rank among wandering ones", count_named(SEATS, 100) == 1);
	fill_wandering(SEATS);
	for (uint32_t seat = 0; seat < SEATS / 2; seat++)
		add_late(seat, 10, BLOCKS, 6000);
	EXPECT_THAT("half of the ranks, as a host of two", count_named(SEATS, 100) == SEATS / 2);
}

static void test_few(void)
{
	uint32_t wandering = 0;

	drawn = 3;
	for (int i = 0; i < TRIALS; i++) {
		/* Of two, one is 0 and the other above it. */
		for (uint32_t b = 0; b < BLOCKS; b++)
			values[b] = values[BLOCKS + b] = 0;
		for (uint32_t b = 0, seat = 0; b < BLOCKS; b++) {
			seat = draw() < 0.2 ? 1 - seat : seat;
			values[seat * BLOCKS + b] = 1000 * draw();
		}
		wandering += count_named(2, 100) > 0;
	}
	EXPECT_THAT("of two that take turns, hardly ever one", wandering <= TRIALS / 25);
	for (uint32_t b = 0; b < BLOCKS; b++) {
		values[b] = 0;
		values[BLOCKS + b] = b < 12 ? 50 * draw() : 2000 + 100 * draw();
	}
	EXPECT_THAT("but one that is late from some time on", count_named(2, 100) == 1);
}

/* A letter per block: late, not late, or too few collectives to tell, as the last blocks of a running job often are. */
static void test_times(void)
{
	static const struct {
		const char *blocks;
		enum straggler_pattern pattern;
		uint64_t first_ns, last_ns;
		double share;
	} cases[] = {
		{ "LLLLLLLL", STRAGGLER_ALWAYS, 1000, 1800, 1 },
		{ "LLLLL???", STRAGGLER_ALWAYS, 1000, 1500, 1 },
		{ "???LLLLL", STRAGGLER_ALWAYS, 1300, 1800, 1 },
		{ "LL???LLL", STRAGGLER_ALWAYS, 1000, 1800, 1 },
		{ ".LLLLLL.", STRAGGLER_ALWAYS, 1100, 1700, 0.75 },
		{ "....LLLL", STRAGGLER_SINCE, 1400, 1800, 0.5 },
		{ "....LL??", STRAGGLER_SINCE, 1400, 1600, 2. / 6 },
		{ "LLLL....", STRAGGLER_UNTIL, 1000, 1400, 0.5 },
		{ "LLLL..??", STRAGGLER_UNTIL, 1000, 1400, 4. / 6 },
		{ "..LLL...", STRAGGLER_BURSTS, 1200, 1500, 3. / 8 },
		{ "L...L..L", STRAGGLER_BURSTS, 1000, 1800, 3. / 8 },
		/* One block of a section may be missing, of more than five blocks two. */
		{ "LL.LL...", STRAGGLER_UNTIL, 1000, 1500, 4. / 8 },
		{ "L..LL...", STRAGGLER_BURSTS, 1000, 1500, 3. / 8 },
		{ "L..LLL..", STRAGGLER_UNTIL, 1000, 1600, 4. / 8 },
		{ "L...LL..", STRAGGLER_BURSTS, 1000, 1600, 3. / 8 },
		/* Blocks at the edges are mixed. */
		{ ".LLL....", STRAGGLER_UNTIL, 1100, 1400, 3. / 8 },
		{ "....LLL.", STRAGGLER_SINCE, 1400, 1700, 3. / 8 },
		{ "....LL..", STRAGGLER_BURSTS, 1400, 1600, 2. / 8 },
		{ "..LLLLL.", STRAGGLER_SINCE, 1200, 1700, 5. / 8 },
	};
	const struct straggler_stretch stretch = { .typical = 10 };
	uint64_t start_ns[8], end_ns[8];
	const struct straggler_table table = { .blocks = 8,
					       .start_ns = start_ns,
					       .end_ns = end_ns };

	for (uint64_t b = 0; b < 8; b++) {
		start_ns[b] = 1000 + b * 100;
		end_ns[b] = start_ns[b] + 100;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct straggler straggler = { .rank = 0 };

		for (uint32_t b = 0; b < 8; b++)
			values[b] = cases[i].blocks[b] == '?'	? NAN
				    : cases[i].blocks[b] == 'L' ? 6
								: 5;
		straggler_times(&straggler, &table, values, &stretch);
		EXPECT_THAT(cases[i].blocks,
			    straggler.has_times && straggler.pattern == cases[i].pattern &&
				    straggler.first_ns == cases[i].first_ns &&
				    straggler.last_ns == cases[i].last_ns &&
				    fabs(straggler.share_of_time - cases[i].share) < 1e-9);
	}
}

static void test_unknown_times(void)
{
	static const uint64_t none[4] = { 0 };
	const struct straggler_table table = {
		.blocks = 4, .seats = 2, .start_ns = (uint64_t *)none, .end_ns = (uint64_t *)none
	};
	const struct straggler_stretch stretch = { .typical = 10 };
	struct straggler straggler = { .rank = 0 };

	values[0] = values[2] = 6;
	values[1] = values[3] = 5;
	straggler_times(&straggler, &table, values, &stretch);
	EXPECT_THAT("without times, blocks are counted",
		    !straggler.has_times && straggler.share_of_time == 0.5);
	EXPECT_THAT("and there is no share of time", straggler_cost_share(&table, 1000) == 0);
	straggler = (struct straggler){ .rank = 0 };
	values[0] = values[2] = NAN;
	straggler_times(&straggler, &table, values, &stretch);
	EXPECT_THAT("nothing stands out", straggler.share_of_time == 0 && straggler.last_ns == 0);
}

static void test_cost_share(void)
{
	uint64_t start_ns[3] = { 1000, 1200, 1400 }, end_ns[3] = { 1100, 1300, 1500 };
	const struct straggler_table table = {
		.blocks = 3, .seats = 4, .start_ns = start_ns, .end_ns = end_ns
	};

	EXPECT_THAT("of the time of all four ranks, from first to last",
		    straggler_cost_share(&table, 200) == 200. / (4 * 500));
}

/* Two consecutive blocks may stand out, if the seat's own spread says so: four blocks are needed for that. */
static void test_sections(void)
{
	static const struct {
		const char *blocks; /* of 10 each; . is 0, ? is none */
		uint32_t from, to;  /* 0, 0: nothing found */
	} cases[] = {
		{ "LLLLLLLL", 0, 8 }, { "..LLLL..", 2, 6 }, { "....LLLL", 4, 8 },
		{ "LLLL....", 0, 4 }, { "??LLLL??", 2, 6 }, { "..LLL...", 0, 0 },
		{ "........", 0, 0 }, { "????????", 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct straggler_stretch found;

		for (uint32_t b = 0; b < 8; b++)
			values[b] = cases[i].blocks[b] == '?'	? NAN
				    : cases[i].blocks[b] == 'L' ? 10
								: 0;
		found = straggler_stretch(values, 8, 10);
		EXPECT_THAT(cases[i].blocks, found.is_found == (cases[i].to > 0) &&
						     found.from == cases[i].from &&
						     found.to == cases[i].to &&
						     found.typical == (cases[i].to > 0 ? 10 : 0));
		EXPECT(!straggler_stretch(values, 8, 10.001).is_found);
		/* 2% at least are not known; 36 sections of eight blocks were examined. */
		if (found.is_found)
			EXPECT(fabs(found.chance / stats_student(50, found.to - found.from - 1) /
					    36 -
				    1) < 1e-9);
	}
}

int main(void)
{
	test_unknown_times();
	test_cost_share();
	test_sections();
	test_times();
	test_healthy();
	test_slow();
	test_few();
	return tap_done();
}
