/*
 * Origins of lateness by the time outside of all operations. Everything is made by hand: each second has a window of
 * its own, and an operation that covers a known part of it. What a rank spends outside is the rest, so every share,
 * excess and cost below follows from the lengths that a test gives.
 */
#include "analysis/straggler_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline_report.h"
#include "tests/support/hand_made.h"
#include "tests/tap.h"
#include "tests/unit/analysis/straggler_show.h"

enum { RANKS_MAX = 20, COMMS_MAX = 16, SECONDS = 16 };
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define BEGIN (100 * SECOND)

static struct hand_made hand;
static struct job job;
static struct align align;
static struct align_process aligned[RANKS_MAX];
static struct timeline_rank times[RANKS_MAX];
static bool is_chain[COMMS_MAX], is_exchange[COMMS_MAX], is_staggered[COMMS_MAX];
static struct straggler_search search;
static bool is_judged;

/* Ranks of one host follow each other. */
static void begin(int ranks, int on_host)
{
	char host[16];

	memset(aligned, 0, sizeof(aligned));
	memset(is_chain, 0, sizeof(is_chain));
	memset(is_exchange, 0, sizeof(is_exchange));
	memset(is_staggered, 0, sizeof(is_staggered));
	search = (struct straggler_search){ .job = &job, .align = &align };
	for (int rank = 0; rank < ranks; rank++) {
		snprintf(host, sizeof(host), "h%d", rank / on_host);
		hand_process(&hand, "j", rank, host);
		times[rank] = (struct timeline_rank){ .first_ns = BEGIN,
						      .last_ns = BEGIN + SECONDS * SECOND };
	}
}

/* A communicator of every `step`-th rank. Called by number of ranks downwards, as a job sorts them. */
static void add_comm(uint64_t hash, int first, int step, int count)
{
	char name[16];

	snprintf(name, sizeof(name), "c%02llu", (unsigned long long)hash);
	for (int i = 0; i < count; i++)
		hand_comm(hand.list[first + i * step], hash, name, i, count, count);
}

static struct op_record *add_op(int rank, uint8_t function, uint64_t from_ms, uint64_t until_ms)
{
	struct recording_process *process = hand.list[rank];
	struct op_record *op = hand_op(process, 1, function, 1, 1 << 20, (until_ms - from_ms) * MS,
				       BEGIN + until_ms * MS);

	op->launch_ns = BEGIN + from_ms * MS;
	return op;
}

/* One operation a second: outside of it so many ms, from second `first` on and before `end`. */
static void be_outside(int rank, uint64_t ms, int first, int end)
{
	for (int second = first; second < end; second++)
		add_op(rank, OP_SEND, (uint64_t)second * 1000 + ms, (uint64_t)second * 1000 + 1000);
}

static void judge(void)
{
	if (job_make(&job, &hand.recording) != OK)
		abort();
	align = (struct align){ .processes = aligned, .count = hand.recording.count };
	search.is_chain = is_chain;
	search.is_exchange = is_exchange;
	search.is_staggered = is_staggered;
	is_judged = straggler_origins(&search, 0, times);
}

static void over(void)
{
	free(search.found);
	job_release(&job);
	hand_release(&hand);
}

static bool is_near(double got, double wanted)
{
	return fabs(got - wanted) < 1e-9;
}

static bool is_found(const struct straggler *origin, enum straggler_class class, uint32_t which,
		     double excess)
{
	return search.count == 1 && origin->class == class &&
	       (class == STRAGGLER_SLOW_HOST ? origin->host : origin->rank) == which &&
	       is_near(origin->own_excess, excess);
}

/* ---- ranks ------------------------------------------------------------------------------------- */

static void test_slow_rank(void)
{
	const struct straggler *origin;

	begin(8, 1);
	add_comm(1, 0, 1, 8);
	for (int rank = 0; rank < 8; rank++)
		be_outside(rank, rank == 2 ? 600 : 400, 0, SECONDS);
	judge();
	origin = search.found;
	EXPECT(is_judged && search.status == OK && search.count == 1);
	EXPECT_THAT("it is outside for 60% of the time, the others for 40%",
		    is_found(origin, STRAGGLER_SLOW_RANK, 2, 0.2));
	EXPECT(origin->host == 2 && origin->comm == 0 && origin->peer == UINT32_MAX &&
	       origin->channel == -1);
	EXPECT(origin->is_origin && !origin->is_by_network && !origin->is_each &&
	       !origin->is_stage && origin->late_ns == 0 && origin->matches == 0);
	EXPECT(origin->pattern == STRAGGLER_ALWAYS && origin->has_times &&
	       origin->first_ns == BEGIN && origin->last_ns == BEGIN + SECONDS * SECOND);
	EXPECT(is_near(origin->cost_share, 0.2) && is_near(origin->share_of_time, 1));
	EXPECT_THAT("seven others lose a fifth of 16 s each",
		    llabs((long long)origin->caused_ns - 22400000000LL) < 10);
	EXPECT(is_near(origin->share_of_ns * 8 * 16e9, 1));
	EXPECT(origin->confidence > 0.95 && origin->confidence <= 1);
	over();
}

static void test_periods(void)
{
	static const struct {
		int first, end;
		enum straggler_pattern pattern;
	} cases[] = {
		{ 8, 16, STRAGGLER_SINCE },
		{ 0, 8, STRAGGLER_UNTIL },
		{ 4, 12, STRAGGLER_BURSTS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct straggler *origin;

		begin(8, 1);
		add_comm(1, 0, 1, 8);
		for (int rank = 0; rank < 8; rank++)
			for (int s = 0; s < SECONDS; s++)
				be_outside(rank,
					   rank == 5 && s >= cases[i].first && s < cases[i].end
						   ? 700
						   : 400,
					   s, s + 1);
		judge();
		origin = search.found;
		EXPECT(is_found(origin, STRAGGLER_SLOW_RANK, 5, 0.3) &&
		       origin->pattern == cases[i].pattern);
		EXPECT(search.count == 1 && is_near(origin->cost_share, 0.15) &&
		       is_near(origin->share_of_time, 0.5) &&
		       origin->first_ns == BEGIN + (uint64_t)cases[i].first * SECOND &&
		       origin->last_ns == BEGIN + (uint64_t)cases[i].end * SECOND);
		EXPECT_THAT("seven others lose 30% of 8 s each",
			    search.count == 1 &&
				    llabs((long long)origin->caused_ns - 16800000000LL) < 10);
		over();
	}
}

/* The excess is the smallest over its communicators; the smallest of these is named. */
static void test_all_peers_count(void)
{
	begin(8, 1);
	add_comm(1, 0, 1, 8);
	add_comm(2, 2, 1, 3);
	for (int rank = 0; rank < 8; rank++)
		be_outside(rank, rank == 2 ? 600 : rank == 3 || rank == 4 ? 500 : 400, 0, SECONDS);
	judge();
	EXPECT_THAT("against ranks 3 and 4, not against all",
		    is_found(search.found, STRAGGLER_SLOW_RANK, 2, 0.1) &&
			    search.found[0].comm == 1);
	over();

	begin(8, 1);
	add_comm(1, 0, 1, 8);
	add_comm(2, 2, 1, 3);
	is_staggered[1] = true;
	for (int rank = 0; rank < 8; rank++)
		be_outside(rank, rank == 2 ? 600 : rank == 3 ? 500 : 400, 0, SECONDS);
	judge();
	EXPECT_THAT("ranks of a pipeline are no peers",
		    search.count > 0 && search.found[0].rank == 2 &&
			    is_near(search.found[0].own_excess, 0.2) && search.found[0].comm == 0);
	over();
}

/* In more than 16, a rank is part of the median that it is compared with. */
static void test_many(void)
{
	begin(20, 1);
	add_comm(1, 0, 1, 20);
	for (int rank = 0; rank < 20; rank++)
		be_outside(rank, rank == 19 ? 650 : 400, 0, SECONDS);
	judge();
	EXPECT(is_found(search.found, STRAGGLER_SLOW_RANK, 19, 0.25));
	EXPECT_THAT("19 others lose a quarter of 16 s each",
		    search.count == 1 &&
			    llabs((long long)search.found[0].caused_ns - 76000000000LL) < 10);
	over();
}

static void test_little(void)
{
	static const struct {
		uint64_t ms;
		size_t found;
	} cases[] = { { 408, 0 }, { 412, 1 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(8, 1);
		add_comm(1, 0, 1, 8);
		for (int rank = 0; rank < 8; rank++)
			be_outside(rank, rank == 2 ? cases[i].ms : 400, 0, SECONDS);
		judge();
		EXPECT_THAT("1% of the time matters, less does not",
			    is_judged && search.count == cases[i].found);
		over();
	}
}

/* A chain's members all stand out a little: the origin most. */
static void test_chain(void)
{
	for (int chained = 0; chained < 2; chained++) {
		begin(12, 1);
		add_comm(1, 0, 1, 12);
		add_comm(2, 2, 1, 2);
		is_chain[1] = chained;
		is_staggered[1] = true;
		for (int rank = 0; rank < 12; rank++)
			be_outside(rank, rank == 2 ? 500 : rank == 3 ? 700 : 400, 0, SECONDS);
		judge();
		EXPECT(search.count == (chained ? 1 : 2));
		EXPECT(search.count > 0 && search.found[search.count - 1].rank == 3 &&
		       is_near(search.found[search.count - 1].own_excess, 0.3));
		over();
	}
}

/* Experts: who has more tokens now and then is no straggler. */
static void test_experts(void)
{
	static const struct {
		bool is_exchange;
		uint32_t off; /* every so many seconds it is like the others; 0 never */
		size_t found;
	} cases[] = { { false, 2, 1 }, { true, 2, 0 }, { true, 0, 1 }, { true, 8, 1 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(8, 1);
		add_comm(1, 0, 1, 8);
		is_exchange[0] = cases[i].is_exchange;
		for (int rank = 0; rank < 8; rank++)
			for (int s = 0; s < SECONDS; s++)
				be_outside(rank,
					   rank == 3 && (cases[i].off == 0 ||
							 (uint32_t)s % cases[i].off != 1)
						   ? 700
						   : 400,
					   s, s + 1);
		judge();
		EXPECT_EQUAL(search.count, cases[i].found);
		over();
	}
}

/* ---- hosts ------------------------------------------------------------------------------------- */

/* Four hosts of four ranks; so many ranks of the second one are slow. */
static void test_host_of_ranks(void)
{
	static const struct {
		int slow;
		uint64_t second_ms; /* of the last of them */
		bool is_host;
	} cases[] = { { 4, 600, true }, { 3, 600, true }, { 3, 495, false }, { 2, 600, false } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(16, 4);
		for (int rank = 0; rank < 4; rank++)
			add_comm((uint64_t)rank + 1, rank, 4, 4);
		for (int rank = 0; rank < 16; rank++) {
			bool is_slow = rank >= 4 && rank < 4 + cases[i].slow;

			be_outside(rank,
				   is_slow && rank == 3 + cases[i].slow ? cases[i].second_ms
				   : is_slow				? 600
									: 400,
				   0, SECONDS);
		}
		judge();
		EXPECT(is_judged && search.count == (cases[i].is_host ? 1 : (size_t)cases[i].slow));
		EXPECT(search.count > 0 &&
		       search.found[0].class ==
			       (cases[i].is_host ? STRAGGLER_SLOW_HOST : STRAGGLER_SLOW_RANK) &&
		       search.found[0].is_each == cases[i].is_host && search.found[0].host == 1 &&
		       search.found[0].rank == (cases[i].is_host ? UINT32_MAX : 4));
		over();
	}
}

/* Four hosts of two ranks, each host a stage: its own communicator is the only one that is compared. */
static void test_stages(void)
{
	static const struct {
		uint64_t ms, second_ms;
		int first;
		size_t found;
		bool is_stage, is_sure;
	} cases[] = {
		{ 600, 400, 0, 1, true, false }, /* by design? */
		{ 600, 400, 8, 1, false, true },
		{ 600, 580, 8, 1, false, true },
		{ 400, 400, 8, 0, false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct straggler *origin;

		begin(16, 2);
		for (int host = 0; host < 8; host++)
			add_comm((uint64_t)host + 1, 2 * host, 1, 2);
		for (int rank = 0; rank < 16; rank++)
			for (int s = 0; s < SECONDS; s++)
				be_outside(rank,
					   rank / 2 == 5 && s >= cases[i].first ? cases[i].ms
					   : rank / 2 == 6 && s >= cases[i].first
						   ? cases[i].second_ms
						   : 400,
					   s, s + 1);
		judge();
		origin = search.found;
		EXPECT(is_judged && search.count == cases[i].found);
		if (search.count == 1) {
			double over_next = (double)(cases[i].ms - cases[i].second_ms) / 1000;

			EXPECT_THAT("a stage is compared with the highest of the others",
				    is_found(origin, STRAGGLER_SLOW_HOST, 5, over_next));
			EXPECT(origin->rank == UINT32_MAX && !origin->is_each &&
			       origin->comm == 5 && origin->is_stage == cases[i].is_stage);
			EXPECT(cases[i].is_sure ? origin->confidence > 0.9
						: origin->confidence <= 0.6);
			EXPECT_THAT("14 ranks on other hosts lose it",
				    llabs((long long)origin->caused_ns -
					  (long long)(over_next * (SECONDS - cases[i].first) * 1e9 *
						      14)) < 10);
		}
		over();
	}
}

/* ---- what counts as inside --------------------------------------------------------------------- */

enum change {
	AS_IT_IS,
	TWO_IN_ONE,	  /* a second one inside of the first */
	TWO_THAT_OVERLAP, /* together as long */
	IN_DISORDER,	  /* recorded in another order than they end */
	OVER_THE_BORDER,  /* begins in the second before */
	TO_ITSELF,	  /* a long Send to itself, which is no operation */
	UNFINISHED,	  /* a long one without an end */
	CHANGES,
};

static void add_changed(enum change change, int rank, uint64_t at, uint64_t ms)
{
	switch (change) {
	case TWO_IN_ONE:
		add_op(rank, OP_RECV, at + ms + 10, at + 900);
		add_op(rank, OP_SEND, at + ms, at + 1000);
		break;
	case TWO_THAT_OVERLAP:
		add_op(rank, OP_RECV, at + ms, at + 900);
		add_op(rank, OP_SEND, at + 850, at + 1000);
		break;
	case IN_DISORDER:
		add_op(rank, OP_SEND, at + 850, at + 1000);
		add_op(rank, OP_RECV, at + ms, at + 900);
		break;
	case OVER_THE_BORDER:
		add_op(rank, OP_SEND, at + ms / 2, at + 500);
		add_op(rank, OP_SEND, at + 500 + ms / 2, at + 1000);
		break;
	case TO_ITSELF:
		add_op(rank, OP_SEND, at, at + 1000)->flags |= OP_FLAG_SELF;
		add_op(rank, OP_SEND, at + ms, at + 1000);
		break;
	case UNFINISHED:
		add_op(rank, OP_SEND, at, at + 1000)->done_ns = 0;
		add_op(rank, OP_SEND, at + ms, at + 1000);
		break;
	default:
		add_op(rank, OP_SEND, at + ms, at + 1000);
		break;
	}
}

static void test_union(void)
{
	for (int change = AS_IT_IS; change < CHANGES; change++) {
		begin(8, 1);
		add_comm(1, 0, 1, 8);
		for (int rank = 0; rank < 8; rank++)
			for (uint64_t s = 0; s < SECONDS; s++)
				add_changed((enum change)change, rank, s * 1000,
					    rank == 6 ? 600 : 400);
		judge();
		EXPECT(is_judged && is_found(search.found, STRAGGLER_SLOW_RANK, 6, 0.2));
		over();
	}
	/* An operation from the middle of each second to the middle of the next, but for 200 ms. */
	begin(8, 1);
	add_comm(1, 0, 1, 8);
	for (int rank = 0; rank < 8; rank++)
		for (uint64_t s = 0; s <= SECONDS; s++)
			add_op(rank, OP_SEND, s * 1000 - 500 + (rank == 6 ? 200 : 0),
			       s * 1000 + 400);
	judge();
	EXPECT_THAT("operations across a border count on both sides, at the ends only inside",
		    is_judged && is_found(search.found, STRAGGLER_SLOW_RANK, 6, 0.2) &&
			    is_near(search.found[0].cost_share, 0.2));
	over();
}

/* Collectives without GPU times: the first kernel channel, unless the network side was seen earlier. */
static void test_seen(void)
{
	static const struct {
		bool has_kernel, has_proxy;
		uint64_t active_ms; /* of the second; 2000: after its end */
		bool is_judged;
		double excess;
	} cases[] = {
		{ true, false, 0, true, 0.2 },
		/* Vague: everything between two such collectives may be inside, and only the 200 ms
		 * that end with a GPU time tell. */
		{ true, true, 0, true, 0 },
		{ false, false, 0, false, 0 },
		{ true, false, 2000, false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(8, 1);
		add_comm(1, 0, 1, 8);
		for (int rank = 0; rank < 8; rank++)
			for (uint64_t s = 0; s < SECONDS; s++) {
				struct op_record *op =
					add_op(rank, OP_ALL_REDUCE,
					       s * 1000 + (rank == 6 ? 600 : 400), s * 1000 + 1000);

				op->time_source = OP_TIME_HOST;
				op->kernels_started = op->kernels_stopped = cases[i].has_kernel;
				op->proxies_started = op->proxies_stopped = cases[i].has_proxy;
				op->active_ns += cases[i].active_ms * MS;
			}
		judge();
		EXPECT(is_judged == cases[i].is_judged);
		EXPECT(cases[i].excess > 0
			       ? is_found(search.found, STRAGGLER_SLOW_RANK, 6, cases[i].excess)
			       : search.count == 0);
		over();
	}
}

/* Sends that are launched together begin together: one GPU time is enough. */
static void test_launched_together(void)
{
	for (int is_together = 0; is_together < 2; is_together++) {
		begin(8, 1);
		add_comm(1, 0, 1, 8);
		for (int rank = 0; rank < 8; rank++)
			for (uint64_t s = 0; s < SECONDS; s++) {
				uint64_t from = s * 1000 + (rank == 6 ? 600 : 400);
				struct op_record *op;

				add_op(rank, OP_SEND, from, s * 1000 + 900);
				op = add_op(rank, OP_RECV, from, s * 1000 + 1000);
				op->time_source = OP_TIME_NONE;
				op->launch_ns += is_together ? 0 : 1;
			}
		judge();
		EXPECT_EQUAL(is_judged, is_together);
		EXPECT(is_together ? is_found(search.found, STRAGGLER_SLOW_RANK, 6, 0.2)
				   : search.count == 0);
		over();
	}
}

/* ---- whether it can be judged ------------------------------------------------------------------ */

static void test_judged(void)
{
	static const struct {
		uint64_t span_ms;
		int untimed; /* of 100 operations of one rank */
		int ranks;
		bool is_judged;
	} cases[] = {
		{ 16000, 0, 8, true },	{ 4000, 0, 8, true },	{ 3999, 0, 8, false },
		{ 16000, 2, 2, true },	{ 16000, 3, 2, false }, { 16000, 3, 19, false },
		{ 16000, 3, 20, true }, { 16000, 0, 1, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(cases[i].ranks, 1);
		add_comm(1, 0, 1, cases[i].ranks);
		for (int rank = 0; rank < cases[i].ranks; rank++) {
			times[rank].last_ns = BEGIN + cases[i].span_ms * MS;
			for (int n = 0; n < 100; n++)
				if (rank == 0 && n < cases[i].untimed)
					add_op(rank, OP_SEND, (uint64_t)n * 160,
					       (uint64_t)n * 160 + 100)
						->time_source = OP_TIME_NONE;
				else
					add_op(rank, OP_SEND, (uint64_t)n * 160,
					       (uint64_t)n * 160 + 100);
		}
		/* Each is a launch of its own. */
		judge();
		EXPECT_EQUAL(is_judged, cases[i].is_judged);
		EXPECT_EQUAL(search.count, 0);
		over();
	}
	begin(8, 1);
	add_comm(1, 0, 1, 8);
	for (int rank = 0; rank < 8; rank++)
		be_outside(rank, 400, 0, SECONDS);
	times[3].last_ns = 0;
	judge();
	EXPECT_THAT("the time of each rank must be known", !is_judged);
	over();
	begin(8, 1);
	add_comm(1, 0, 1, 8);
	for (int rank = 0; rank < 8; rank++)
		be_outside(rank, rank == 2 ? 600 : 400, 0, SECONDS);
	times[3].first_ns += 2 * SECOND;
	times[4].last_ns -= 6 * SECOND;
	judge();
	EXPECT_THAT("only the time that all have is examined",
		    is_judged && is_found(search.found, STRAGGLER_SLOW_RANK, 2, 0.2) &&
			    search.found[0].first_ns == BEGIN + 2 * SECOND &&
			    search.found[0].last_ns == BEGIN + 10 * SECOND);
	over();
	begin(8, 1);
	add_comm(1, 0, 1, 8);
	judge();
	EXPECT_THAT("no operations, no verdict", !is_judged);
	over();
}

/* Windows are whole iterations, if there are at least eight. */
static void test_windows(void)
{
	static const struct {
		uint64_t iteration_ms;
		uint64_t seconds;
		uint64_t end_ms; /* of the last window */
	} cases[] = {
		{ 0, 16, 16000 },    { 500, 16, 16000 },  { 1500, 16, 15000 },
		{ 2000, 16, 16000 }, { 2001, 16, 16000 }, { 700, 16, 15400 },
		{ 0, 64, 64000 },    { 3000, 64, 63000 }, { 50000, 64, 64000 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(8, 1);
		add_comm(1, 0, 1, 8);
		search.iteration_ns = cases[i].iteration_ms * MS;
		for (int rank = 0; rank < 8; rank++) {
			be_outside(rank, rank == 2 ? 600 : 400, 0, (int)cases[i].seconds);
			times[rank].last_ns = BEGIN + cases[i].seconds * SECOND;
		}
		judge();
		EXPECT_EQUAL(search.count, 1);
		EXPECT(search.count == 1 && search.found[0].first_ns == BEGIN);
		EXPECT_EQUAL(search.count == 1 ? (search.found[0].last_ns - BEGIN) / MS : 0,
			     cases[i].end_ms);
		over();
	}
}

/* Clocks differ between processes. */
static void test_clocks(void)
{
	begin(8, 1);
	add_comm(1, 0, 1, 8);
	for (int rank = 0; rank < 8; rank++) {
		be_outside(rank, rank == 2 ? 600 : 400, 0, SECONDS);
		aligned[rank].offset_ns = (int64_t)(50 * SECOND);
		times[rank].first_ns += 50 * SECOND;
		times[rank].last_ns += 50 * SECOND;
	}
	judge();
	EXPECT(is_found(search.found, STRAGGLER_SLOW_RANK, 2, 0.2) &&
	       search.found[0].first_ns == BEGIN + 50 * SECOND);
	over();
}

/* ---- by the network side ------------------------------------------------------------------------ */

enum { STEPS = 16 };

/* Posted at the beginning of a part of a second; the GPU comes after so many ms. */
static struct op_record *add_net(int rank, uint8_t function, uint64_t at, uint64_t wait_ms,
				 uint64_t until)
{
	struct op_record *op = add_op(rank, function, at, until);

	op->time_source = OP_TIME_HOST;
	op->launch_ns = op->active_ns = BEGIN + at * MS;
	op->kernels_started = op->kernels_stopped = 0;
	op->proxies_started = op->proxies_stopped = 1;
	if (function == OP_SEND) {
		op->send_steps = STEPS;
		/* Eight transfers are posted at a time; each of them waits. */
		op->wait_ns[OP_WAIT_SEND_GPU] = wait_ms * MS * 8;
	} else {
		op->recv_steps = STEPS;
		op->wait_ns[OP_WAIT_RECV_NET] = wait_ms * MS * 8;
	}
	return op;
}

static void test_network(void)
{
	/* In each half second: a Send whose GPU comes after so many ms. What else goes on: */
	enum { NOTHING, RECV_BESIDE, RECV_TOGETHER, RECV_ALONE, FEW_STEPS, TWO_CONNECTIONS, CASES };

	for (int what = NOTHING; what < CASES; what++) {
		const struct straggler *origin;

		begin(8, 1);
		add_comm(1, 0, 1, 8);
		for (int rank = 0; rank < 8; rank++)
			for (uint64_t at = 0; at < SECONDS * 1000; at += 500) {
				uint64_t wait = rank == 6 ? 300 : 200;
				struct op_record *op = add_net(rank, OP_SEND, at, wait, at + 450);

				if (what == RECV_BESIDE) {
					/* Of the first 100 ms, nobody knows: its data has not come. */
					op = add_net(rank, OP_RECV, at, 100, at + 450);
					op->launch_ns += 1;
				} else if (what == RECV_TOGETHER) {
					add_net(rank, OP_RECV, at, 100, at + 450);
				} else if (what == RECV_ALONE) {
					/* Then data waits for its GPU for 20 ms, after the Send. */
					op = add_net(rank, OP_RECV, at + 460, 10, at + 490);
					op->wait_ns[OP_WAIT_RECV_GPU] = 20 * MS * 8;
				} else if (what == FEW_STEPS) {
					op->send_steps = 4;
					op->wait_ns[OP_WAIT_SEND_GPU] = wait * MS * 4;
				} else if (what == TWO_CONNECTIONS) {
					op->proxies_started = op->proxies_stopped = 2;
					op->wait_ns[OP_WAIT_SEND_GPU] = wait * MS * 16;
				}
			}
		judge();
		origin = search.found;
		EXPECT(is_judged && is_found(origin, STRAGGLER_SLOW_RANK, 6, 0.2) &&
		       origin->is_by_network);
		over();
	}
	/* The Recv covers what would be the rank's own time, or is not over when the Send's GPU comes. */
	for (int is_covered = 0; is_covered < 2; is_covered++) {
		begin(8, 1);
		add_comm(1, 0, 1, 8);
		for (int rank = 0; rank < 8; rank++)
			for (uint64_t at = 0; at < SECONDS * 1000; at += 500) {
				add_net(rank, OP_SEND, at, rank == 6 ? 300 : 200, at + 450);
				add_net(rank, OP_RECV, at, is_covered && rank == 6 ? 100 : 1,
					at + 450)
					->launch_ns += 1;
			}
		judge();
		EXPECT(is_judged && search.count == (is_covered ? 0 : 1));
		over();
	}
}

static void test_few_sends(void)
{
	static const int sends[] = { 31, 32 };

	for (int i = 0; i < 2; i++) {
		begin(8, 1);
		add_comm(1, 0, 1, 8);
		for (int rank = 0; rank < 8; rank++)
			for (int n = 0; n < sends[i]; n++)
				add_net(rank, OP_SEND, (uint64_t)n * 500, 200,
					(uint64_t)n * 500 + 450);
		judge();
		EXPECT_EQUAL(is_judged, sends[i] == 32);
		over();
	}
}

/* Stages by the network side: each against its own past. */
static void test_network_stages(void)
{
	for (int first = 0; first <= 8; first += 8) {
		begin(16, 2);
		for (int host = 0; host < 8; host++)
			add_comm((uint64_t)host + 1, 2 * host, 1, 2);
		for (int rank = 0; rank < 16; rank++)
			for (uint64_t at = 0; at < SECONDS * 1000; at += 500)
				add_net(rank, OP_SEND, at,
					(uint64_t)(100 + 10 * (rank / 2)) +
						(rank / 2 == 5 && at >= (uint64_t)first * 1000 ? 150
											       : 0),
					at + 450);
		judge();
		EXPECT(is_judged);
		if (first == 0)
			EXPECT_THAT("from the beginning it is how the stages are",
				    search.count == 0);
		else
			EXPECT_THAT("150 of 500 ms more than before",
				    is_found(search.found, STRAGGLER_SLOW_HOST, 5, 0.3) &&
					    search.found[0].is_by_network &&
					    search.found[0].pattern == STRAGGLER_SINCE);
		over();
	}
}

/* ---- with noise, and every field of what is found ---------------------------------------------- */

enum kind { EVEN, RANKS_OF_HOSTS, STAGES, EXPERTS, PIPELINE };

struct noisy_scene {
	const char *name;
	enum kind kind;
	bool is_network;      /* no GPU times */
	int slow[4];	      /* ranks, until the first 0 */
	uint64_t ms;	      /* outside for longer, each second */
	int first, end;	      /* seconds */
	uint64_t second_ms;   /* of the third and fourth slow rank, if it differs */
	uint64_t bytes_times; /* slow ranks send so much more, if it differs */
	int silent;	      /* rank without operations in seconds 3 to 5; 0 none */
};

static void noisy_comms(enum kind kind)
{
	if (kind == RANKS_OF_HOSTS)
		for (int rank = 0; rank < 4; rank++)
			add_comm((uint64_t)rank + 1, rank, 4, 4);
	else if (kind == STAGES)
		for (int host = 0; host < 8; host++)
			add_comm((uint64_t)host + 1, 2 * host, 1, 2);
	else
		add_comm(1, 0, 1, 16);
	is_exchange[0] = kind == EXPERTS;
	if (kind != PIPELINE)
		return;
	add_comm(2, 4, 1, 4);
	is_chain[1] = is_staggered[1] = true;
}

static void noisy_rank(const struct noisy_scene *scene, int rank)
{
	uint64_t more_ms = 0, bytes = 1 << 20;

	for (int i = 0; i < 4 && scene->slow[i] != 0; i++) {
		if (scene->slow[i] != rank)
			continue;
		more_ms = i >= 2 && scene->second_ms ? scene->second_ms : scene->ms;
		bytes *= scene->bytes_times ? scene->bytes_times : 1;
	}
	for (int s = 0; s < SECONDS; s++) {
		uint64_t at = (uint64_t)s * 1000;
		uint64_t ms =
			noisy(200, rank, s) + (s >= scene->first && s < scene->end ? more_ms : 0);

		if (scene->silent == rank && rank != 0 && s >= 3 && s <= 5)
			continue;
		for (int half = 0; scene->is_network && half < 2; half++, at += 500)
			add_net(rank, OP_SEND, at, ms / 2, at + 450)->bytes = bytes;
		if (!scene->is_network)
			add_op(rank, OP_SEND, at + ms, at + 1000)->bytes = bytes;
	}
}

static void test_noisy(void)
{
	static const struct noisy_scene scenes[] = {
		{ "nobody", EVEN, false, { 0 }, 0, 0, 0, 0, 0, 0 },
		{ "a rank", EVEN, false, { 5 }, 300, 0, SECONDS, 0, 0, 0 },
		{ "a rank since", EVEN, false, { 5 }, 300, 9, SECONDS, 0, 0, 0 },
		{ "a rank until", EVEN, false, { 5 }, 300, 0, 6, 0, 0, 0 },
		{ "two ranks", EVEN, false, { 5, 9 }, 250, 0, SECONDS, 0, 0, 0 },
		{ "a host", RANKS_OF_HOSTS, false, { 4, 5, 6, 7 }, 300, 0, SECONDS, 0, 0, 0 },
		{ "most of a host", RANKS_OF_HOSTS, false, { 4, 5, 7 }, 300, 5, SECONDS, 0, 0, 0 },
		{ "a stage", STAGES, false, { 10, 11 }, 300, 0, SECONDS, 0, 0, 0 },
		{ "a stage since", STAGES, false, { 10, 11 }, 300, 8, SECONDS, 0, 0, 0 },
		{ "an expert", EXPERTS, false, { 3 }, 400, 0, SECONDS, 0, 0, 0 },
		{ "an expert for a while", EXPERTS, false, { 3 }, 400, 4, 9, 0, 0, 0 },
		{ "in a pipeline", PIPELINE, false, { 6, 7 }, 300, 0, SECONDS, 0, 0, 0 },
		{ "a rank, by network", EVEN, true, { 5 }, 300, 0, SECONDS, 0, 0, 0 },
		{ "a rank since, by network", EVEN, true, { 5 }, 300, 8, SECONDS, 0, 0, 0 },
		{ "a host, by network",
		  RANKS_OF_HOSTS,
		  true,
		  { 4, 5, 6, 7 },
		  300,
		  0,
		  SECONDS,
		  0,
		  0,
		  0 },
		{ "a stage since, by network", STAGES, true, { 10, 11 }, 300, 8, SECONDS, 0, 0, 0 },
		{ "two stages since", STAGES, false, { 4, 5, 10, 11 }, 200, 8, SECONDS, 350, 0, 0 },
		{ "two stages as much", STAGES, false, { 4, 5, 10, 11 }, 300, 8, SECONDS, 0, 0, 0 },
		{ "one rank of a stage", STAGES, false, { 10 }, 300, 8, SECONDS, 0, 0, 0 },
		{ "a stage for a while", STAGES, false, { 10, 11 }, 300, 5, 11, 0, 0, 0 },
		{ "a stage until", STAGES, false, { 10, 11 }, 300, 0, 7, 0, 0, 0 },
		{ "two stages, by network",
		  STAGES,
		  true,
		  { 4, 5, 10, 11 },
		  200,
		  8,
		  SECONDS,
		  350,
		  0,
		  0 },
		{ "an expert with more tokens", EXPERTS, false, { 3 }, 200, 0, SECONDS, 0, 2, 0 },
		{ "an expert with a few more", EXPERTS, false, { 3 }, 400, 0, SECONDS, 0, 2, 0 },
		{ "two experts", EXPERTS, false, { 3, 9, 5 }, 300, 0, SECONDS, 100, 0, 0 },
		{ "a pipeline's second", PIPELINE, false, { 6, 9, 7 }, 300, 0, SECONDS, 150, 0, 0 },
		{ "outside of the pipeline", PIPELINE, false, { 12 }, 300, 3, 12, 0, 0, 0 },
		{ "a silent rank", EVEN, false, { 5 }, 300, 0, SECONDS, 0, 0, 8 },
		{ "it is silent itself", EVEN, false, { 5 }, 300, 0, SECONDS, 0, 0, 5 },
		{ "silent in a stage", STAGES, false, { 10, 11 }, 300, 8, SECONDS, 0, 0, 4 },
		{ "two of a host", RANKS_OF_HOSTS, false, { 4, 5, 9 }, 300, 0, SECONDS, 200, 0, 0 },
		{ "little of a host",
		  RANKS_OF_HOSTS,
		  false,
		  { 4, 5, 6, 7 },
		  30,
		  0,
		  SECONDS,
		  0,
		  0,
		  0 },
		{ "by turns", RANKS_OF_HOSTS, true, { 4, 5, 6, 7 }, 300, 0, SECONDS, 120, 0, 0 },
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		begin(16, scenes[i].kind == STAGES ? 2 : 4);
		noisy_comms(scenes[i].kind);
		for (int rank = 0; rank < 16; rank++)
			noisy_rank(&scenes[i], rank);
		judge();
		straggler_show(&sink, scenes[i].name, search.found, search.count, BEGIN);
		over();
	}
	EXPECT(expected_text(&sink, "tests/unit/analysis/expected/straggler-origin.txt"));
}

int main(void)
{
	test_slow_rank();
	test_periods();
	test_all_peers_count();
	test_many();
	test_little();
	test_chain();
	test_experts();
	test_host_of_ranks();
	test_stages();
	test_union();
	test_seen();
	test_launched_together();
	test_judged();
	test_windows();
	test_clocks();
	test_network();
	test_few_sends();
	test_network_stages();
	test_noisy();
	return tap_done();
}
