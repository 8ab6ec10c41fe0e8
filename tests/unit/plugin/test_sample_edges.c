/* Which collectives are timed: the decision of hot_sample.c at its exact bounds. */
#include "common/op.h"
#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

enum { LEAST_NS = 8000, LEAST_LEVEL = 3, KIND_IS_NEW = 64, NEW_KIND = 8192, MOST_DEBT = 4 };

static void *context;
static struct comm_state *comm;

/* A collective, from 1000 on, whose successor is drawn at exactly this level. */
static uint64_t before_level(unsigned int level)
{
	uint64_t collective = 1000;

	while (sample_level(comm->shared->info.hash, collective + 1) != level)
		collective++;
	return collective;
}

struct decision {
	uint64_t interval_ns, mean_ns, new_until;
	int32_t credit;
	bool is_open;
};

/* Is the collective after this one to be timed? */
static bool decide(uint64_t collective, struct decision given)
{
	uint64_t now = stamp_now_ns;

	comm->first_ns = now - given.interval_ns * collective;
	comm->estimated_ns = (given.mean_ns - LEAST_NS) * collective;
	comm->new_until = given.new_until;
	comm->credit = given.credit;
	comm->wants_kernels = 0;
	recorder.sampling.wanting = 0;
	recorder.sampling.begin_ns = now;
	recorder.sampling.until_ns = now;
	recorder.sampling.is_open = given.is_open;
	hot_sample(comm, collective, now);
	return comm->wants_kernels;
}

/* A window costs as many credits as there are collectives to one that is timed. */
static void the_budget_follows_the_mean_time(void)
{
	static const struct {
		uint64_t mean_ns;
		unsigned int level;
	} cases[] = {
		{ 8000, 7 },   { 12307, 7 },  { 12500, 6 },  { 24242, 6 },
		{ 25000, 5 },  { 47058, 5 },  { 50000, 4 },  { 88888, 4 },
		{ 100000, 3 }, { 500000, 3 }, { 900000, 3 },
	};
	uint64_t collective = before_level(0);

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		decide(collective,
		       (struct decision){ .mean_ns = cases[i].mean_ns, .is_open = true });
		EXPECT_EQUAL(comm->credit, 1 - (1 << cases[i].level));
	}
}

static void rare_collectives_are_timed_more_often(void)
{
	static const struct {
		uint64_t interval_ns;
		unsigned int level;
	} cases[] = {
		{ 100 * STAMP_MS, 0 },
		{ 100 * STAMP_MS - 1, 1 },
		{ 10 * STAMP_MS, 1 },
		{ 10 * STAMP_MS - 1, 7 },
		{ 0, 7 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		for (unsigned int level = 0; level <= 7; level++) {
			uint64_t collective = before_level(level);
			bool is_wanted = decide(
				collective, (struct decision){ .interval_ns = cases[i].interval_ns,
							       .mean_ns = LEAST_NS });

			EXPECT_EQUAL(is_wanted, level >= cases[i].level);
			EXPECT_EQUAL(comm->sample_at,
				     cases[i].interval_ns >= 10 * STAMP_MS
					     ? collective + 1
					     : (sample_block(collective + 1) + 1) * SAMPLE_BLOCK -
						       1);
		}
}

static void a_new_kind_is_timed_more_often(void)
{
	static const struct {
		uint64_t mean_ns;
		unsigned int budget, when_new;
	} cases[] = {
		{ 8000, 7, 5 }, { 12500, 6, 4 }, { 25000, 5, 3 }, { 50000, 4, 3 }, { 100000, 3, 3 }
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		for (unsigned int level = 0; level <= 7; level++) {
			uint64_t collective = before_level(level);
			struct decision given = { .mean_ns = cases[i].mean_ns,
						  .new_until = collective + 1 };

			EXPECT_EQUAL(decide(collective, given), level >= cases[i].when_new);
			given.new_until = collective;
			EXPECT_EQUAL(decide(collective, given), level >= cases[i].budget);
		}
}

static void a_block_begins_with_a_decision(void)
{
	decide(1, (struct decision){ .mean_ns = LEAST_NS });
	EXPECT_EQUAL(comm->sample_at, 2);
	for (uint64_t collective = SAMPLE_BLOCK - 3; collective < SAMPLE_BLOCK + 3; collective++) {
		decide(collective, (struct decision){ .mean_ns = LEAST_NS });
		EXPECT_EQUAL(comm->sample_at,
			     (collective + 1 < SAMPLE_BLOCK ? 1 : 2) * SAMPLE_BLOCK - 1);
	}
}

static void windows_of_others_are_paid_for(void)
{
	static const struct {
		int32_t before;
		bool is_open, is_wanted;
		int32_t after;
		bool stays_open;
	} cases[] = {
		{ 0, false, false, 1, false },
		{ 127, false, false, 128, false },
		{ 128, false, false, 128, false },
		{ 128, true, false, 1, true },
		{ -MOST_DEBT * 128 + 127, true, false, -MOST_DEBT * 128, true },
		{ -MOST_DEBT * 128 + 126, true, false, -MOST_DEBT * 128, false },
		{ -MOST_DEBT * 128 + 126, true, true, -MOST_DEBT * 128, true },
		{ -MOST_DEBT * 128, false, false, -MOST_DEBT * 128 + 1, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		decide(before_level(cases[i].is_wanted ? 7 : 0),
		       (struct decision){ .mean_ns = LEAST_NS,
					  .credit = cases[i].before,
					  .is_open = cases[i].is_open });
		EXPECT_EQUAL(comm->credit, cases[i].after);
		EXPECT_EQUAL(recorder.sampling.is_open, cases[i].stays_open);
	}
}

static void a_request_ends_on_time(void)
{
	static const struct {
		int64_t until_after_ns, begin_after_ns;
		unsigned int level;
		bool is_wanted, is_paid;
	} cases[] = {
		{ 1, 0, 0, true, false }, { 0, 0, 0, false, true }, { 0, 0, 7, true, true },
		{ 0, 1, 7, false, true }, { 1, 1, 0, true, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		uint64_t collective = before_level(cases[i].level);

		decide(collective, (struct decision){ .mean_ns = LEAST_NS });
		comm->credit = 0;
		comm->wants_kernels = 0;
		recorder.sampling.wanting = 0;
		recorder.sampling.is_open = 0;
		recorder.sampling.until_ns = stamp_now_ns + (uint64_t)cases[i].until_after_ns;
		recorder.sampling.begin_ns = stamp_now_ns + (uint64_t)cases[i].begin_after_ns;
		hot_sample(comm, collective, stamp_now_ns);
		EXPECT_EQUAL(comm->wants_kernels, cases[i].is_wanted);
		EXPECT_EQUAL(comm->credit != 0, cases[i].is_paid);
	}
}

static void kinds_are_counted_apart(void)
{
	static const struct {
		uint8_t function;
		uint64_t bytes;
		unsigned int row, column;
	} cases[] = {
		{ OP_ALL_REDUCE, 0, 1, 0 },
		{ OP_ALL_REDUCE, 4, 1, 2 },
		{ OP_REDUCE, 1 << 20, 5, 11 },
		{ OP_ALL_TO_ALL, 1 << 10, 1, 6 },
		{ OP_GATHER, UINT64_C(1) << 40, 2, 1 },
		{ OP_ALL_GATHER, OP_BYTES_UNKNOWN, 2, 0 },
	};
	const uint64_t begin = recorder.sampling.begin_ns = stamp_now_ns;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct op_record op = { .function = cases[i].function,
					.bytes = cases[i].bytes,
					.match = 5000 };
		const uint8_t *calls = &comm->kinds[cases[i].row][cases[i].column];

		memset(comm->kinds, 0, sizeof(comm->kinds));
		comm->new_until = comm->estimated_ns = 0;
		hot_sample_call(comm, &op, begin - 1);
		EXPECT(*calls == 0 && comm->new_until == 0);
		for (unsigned int j = 1; j <= KIND_IS_NEW + 2; j++) {
			op.match = 5000 + j;
			hot_sample_call(comm, &op, begin);
		}
		EXPECT_EQUAL(*calls, KIND_IS_NEW);
		EXPECT_EQUAL(comm->new_until, 5000 + KIND_IS_NEW + NEW_KIND);
		EXPECT_EQUAL(comm->estimated_ns,
			     cases[i].bytes == OP_BYTES_UNKNOWN
				     ? 0
				     : (KIND_IS_NEW + 3) * (cases[i].bytes >> 8));
	}
}

int main(void)
{
	play_setup("flight");
	setenv("RINGSIDE_EVENTS", "sample", 1);
	setenv("RINGSIDE_SAMPLE_AFTER", "0", 1);
	context = play_init(0x5eed, 1, 8, 0);
	comm = hot_comm(context);
	stamp_now_ns = recorder_now() + 4000000 * STAMP_S;
	stamp_move(0);
	EXPECT_EQUAL(recorder.region.header->sampling, SAMPLING_ACTIVE);
	the_budget_follows_the_mean_time();
	rare_collectives_are_timed_more_often();
	a_new_kind_is_timed_more_often();
	a_block_begins_with_a_decision();
	windows_of_others_are_paid_for();
	a_request_ends_on_time();
	kinds_are_counted_apart();
	return tap_done();
}
