#include "analysis/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

static const uint32_t by = TALLY_BY_FUNCTION | TALLY_BY_SIZE;

/* `count` calls of two ranks, with durations around `typical_ns`. */
static void make(struct timeline_report *report, struct hand_made *hand, unsigned int calls,
		 uint64_t typical_ns, uint64_t seed, bool with_gather)
{
	struct timeline_options options = { .custom_by = { by }, .custom_count = 1 };

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(hand, "j", rank, "a");
		uint32_t comm = hand_comm(process, 0x77 + seed, "world", rank, 2, 1);

		for (uint64_t n = 1; n <= calls; n++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			hand_op(process, comm, OP_ALL_REDUCE, 2 * n, 1 << 20,
				typical_ns * (80 + (seed >> 40) % 41) / 100, n * 10000000);
			if (with_gather)
				hand_op(process, comm, OP_ALL_GATHER, 2 * n + 1, 1 << 16, 30000,
					n * 10000000 + 5000000);
		}
	}
	if (timeline_report_make(report, &hand->recording, NULL, &options) != OK)
		abort();
}

static const struct compare_row *row_of(const struct compare *compare, const char *function)
{
	for (size_t i = 0; i < compare->count; i++)
		if (strcmp(compare->rows[i].key[0], function) == 0)
			return &compare->rows[i];
	abort();
}

static void compared(unsigned int calls_a, uint64_t a_ns, unsigned int calls_b, uint64_t b_ns,
		     double threshold, bool b_has_gather,
		     void (*look)(const struct compare *compare))
{
	struct timeline_report a, b;
	struct hand_made hand_a = { .list = { NULL } }, hand_b = { .list = { NULL } };
	struct compare compare;

	make(&a, &hand_a, calls_a, a_ns, 1, true);
	make(&b, &hand_b, calls_b, b_ns, 2, b_has_gather);
	if (compare_make(&compare, &a, &b, threshold) != OK)
		abort();
	look(&compare);
	compare_release(&compare);
	timeline_report_release(&a);
	timeline_report_release(&b);
	hand_release(&hand_a);
	hand_release(&hand_b);
}

static void look_equal(const struct compare *compare)
{
	const struct compare_row *row = row_of(compare, "AllReduce");

	EXPECT_EQUAL(compare->count, 2);
	EXPECT_THAT("keys are what is displayed", strcmp(row->key[1], "1 MiB") == 0);
	EXPECT_THAT("equal runs are equal",
		    row->has_interval && !row->is_significant && !row->is_slower);
	EXPECT_THAT("the interval contains 1", row->ratio_low < 1 && row->ratio_high > 1);
	EXPECT_THAT("both sides are present", row->a.calls == 400 && row->b.calls == 400);
	EXPECT_EQUAL(compare->slower + compare->faster, 0);
}

static void look_slower(const struct compare *compare)
{
	const struct compare_row *row = row_of(compare, "AllReduce");

	EXPECT_THAT("30% longer is slower", row->is_slower && row->is_significant);
	EXPECT_THAT("the true value is in the interval",
		    row->ratio_low < 1.3 && row->ratio_high > 1.3 &&
			    row->ratio_high - row->ratio_low < 0.2);
	EXPECT_THAT("changed rows come first", row == &compare->rows[0]);
	EXPECT_THAT("the other row did not change", !row_of(compare, "AllGather")->is_slower);
	EXPECT_EQUAL(compare->slower, 1);
}

static void look_few(const struct compare *compare)
{
	const struct compare_row *row = row_of(compare, "AllReduce");

	EXPECT_THAT("three calls prove nothing", !row->has_interval && !row->is_slower);
	EXPECT_THAT("but have a ratio", row->mean_ratio > 1.1);
}

static void look_one_sided(const struct compare *compare)
{
	const struct compare_row *row = row_of(compare, "AllGather");

	EXPECT_THAT("a key of one side only", row->a.is_there && !row->b.is_there &&
						      compare->only_a == 1 && compare->only_b == 0);
	EXPECT_THAT("has no ratio", row->median_ratio == 0 && !row->has_interval);
}

static void look_tolerant(const struct compare *compare)
{
	EXPECT_THAT("below the threshold it is significant, but not slower",
		    row_of(compare, "AllReduce")->is_significant && compare->slower == 0);
}

/* ---- transfers without waiting --------------------------------------------------------------- */

struct run {
	uint64_t transfer_ns;
	unsigned int spread; /* of transfers, percent */
	uint64_t waiting_ns; /* at most: rank 0 is early by a random time */
	int32_t nranks;
	unsigned int calls;
	const char *name;
	unsigned int busy; /* so many calls in the middle take twice as long */
};

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return below ? (seed >> 33) % below : 0;
}

static void play(struct timeline_report *report, struct hand_made *hand, const struct run *run,
		 uint64_t hash)
{
	struct timeline_options options = { .custom_by = { TALLY_BY_COMM_NAME | TALLY_BY_FUNCTION },
					    .custom_count = 1 };
	uint64_t transfer_ns[1000], waiting_ns[1000];

	for (unsigned int n = 0; n < run->calls; n++) {
		transfer_ns[n] = run->transfer_ns *
				 (1000 - run->spread * 5 + draw(run->spread * 10 + 1)) / 1000;
		waiting_ns[n] = draw(run->waiting_ns);
		if (n >= run->calls / 2 && n < run->calls / 2 + run->busy)
			transfer_ns[n] *= 2;
	}
	for (int rank = 0; rank < run->nranks; rank++) {
		struct recording_process *process = hand_process(hand, "j", rank, "a");
		uint32_t comm = hand_comm(process, hash, run->name, rank, run->nranks, 1);

		for (uint64_t n = 1; n <= run->calls; n++)
			hand_op(process, comm, OP_ALL_REDUCE, n, 1 << 20,
				transfer_ns[n - 1] + (rank == 0 ? waiting_ns[n - 1] : 0),
				n * 10000000);
	}
	if (timeline_report_make(report, &hand->recording, NULL, &options) != OK)
		abort();
}

static void against(const struct run *run_a, const struct run *run_b,
		    void (*look)(const struct compare *compare))
{
	struct timeline_report a, b;
	struct hand_made hand_a = { .list = { NULL } }, hand_b = { .list = { NULL } };
	struct compare compare;

	seed = 3;
	play(&a, &hand_a, run_a, 0x11);
	play(&b, &hand_b, run_b, 0x22);
	if (compare_make(&compare, &a, &b, 0.05) != OK)
		abort();
	look(&compare);
	compare_release(&compare);
	timeline_report_release(&a);
	timeline_report_release(&b);
	hand_release(&hand_a);
	hand_release(&hand_b);
}

static void look_tenth(const struct compare *compare)
{
	const struct compare_row *row = &compare->rows[0];

	EXPECT_THAT("waiting does not hide a transfer that is 10% slower",
		    row->basis == COMPARE_TRANSFER && row->is_slower &&
			    fabs(row->ratio - 1.1) < 0.02);
	EXPECT_THAT("the time shown is that of the transfer",
		    fabs(row->a.transfer_ns - 100000) < 2000 &&
			    fabs(row->b.transfer_ns - 110000) < 2000);
	EXPECT(compare_answer(compare) == COMPARE_SLOWER);
}

static void look_waiting(const struct compare *compare)
{
	EXPECT_THAT("more waiting makes no transfer slower",
		    !compare->rows[0].is_slower && !compare->rows[0].is_undecided);
	EXPECT_THAT("but the job's waiting has a row of its own",
		    compare->waiting.has_interval && compare->waiting.result.is_slower &&
			    compare->waiting.b > compare->waiting.a + 0.05);
	EXPECT_THAT("and decides about a job without known iterations",
		    !compare->iteration.is_known && compare->is_job_slower &&
			    compare_answer(compare) == COMPARE_SLOWER);
}

static void look_undecided(const struct compare *compare)
{
	const struct compare_row *row = &compare->rows[0];

	EXPECT_THAT("slower by the best estimate, not by the whole interval",
		    row->ratio > 1.05 && row->ratio_low < 1.05 && !row->is_slower);
	EXPECT_THAT("is no pass", row->is_undecided && compare->undecided == 1 &&
					  compare_answer(compare) == COMPARE_UNKNOWN);
}

static void look_comes_and_goes(const struct compare *compare)
{
	const struct compare_row *row = &compare->rows[0];

	EXPECT_THAT("slow for a third of the time is no pass: the mean says so",
		    row->ratio > 1.2 && row->is_undecided &&
			    compare_answer(compare) == COMPARE_UNKNOWN);
}

static void look_same(const struct compare *compare)
{
	EXPECT_THAT("nothing differs", compare->difference_count == 0 && compare->judged == 1);
	EXPECT(compare_answer(compare) == COMPARE_SAME);
}

static void look_larger(const struct compare *compare)
{
	const struct compare_row *row = &compare->rows[0];

	EXPECT_THAT("another number of ranks is compared by bandwidth, and not judged",
		    row->basis == COMPARE_BANDWIDTH && row->has_interval && !row->is_slower &&
			    compare->judged == 0);
	EXPECT_THAT("bandwidth: 1.5 of 1 against 1.75", fabs(row->ratio - 1.5 / 1.75 * 1.2) < 0.03);
	EXPECT_THAT("the difference is stated",
		    compare->difference_count == 1 &&
			    strcmp(compare->differences[0].what, "ranks") == 0 &&
			    strcmp(compare->differences[0].b, "8") == 0);
	EXPECT(compare_answer(compare) == COMPARE_UNKNOWN);
}

static void look_nothing(const struct compare *compare)
{
	EXPECT_THAT("nothing in common: unknown, not the same",
		    compare->judged == 0 && compare_answer(compare) == COMPARE_UNKNOWN);
}

static void test_transfers(void)
{
	const struct run plain = { 100000, 2, 900000, 2, 400, "world", 0 };
	const struct run slower = { 110000, 2, 900000, 2, 400, "world", 0 };
	const struct run waiting = { 100000, 2, 4000000, 2, 400, "world", 0 };
	const struct run noisy = { 107500, 60, 0, 2, 400, "world", 0 };
	const struct run four = { 100000, 2, 0, 4, 200, "world", 0 };
	const struct run eight = { 120000, 2, 0, 8, 200, "world", 0 };
	const struct run other = { 100000, 2, 0, 2, 200, "else", 0 };

	const struct run busy = { 100000, 2, 900000, 2, 400, "world", .busy = 20 };
	const struct run slower_busy = { 110000, 2, 900000, 2, 400, "world", .busy = 20 };
	const struct run often = { 100000, 2, 900000, 2, 400, "world", .busy = 150 };

	against(&plain, &plain, look_same);
	against(&plain, &busy, look_same);
	against(&busy, &slower_busy, look_tenth);
	against(&plain, &often, look_comes_and_goes);
	against(&plain, &slower, look_tenth);
	against(&plain, &waiting, look_waiting);
	against(&plain, &noisy, look_undecided);
	against(&four, &eight, look_larger);
	against(&plain, &other, look_nothing);
}

/* ---- senders and settings --------------------------------------------------------------------- */

/* Two ranks on two hosts, 512 AllReduces; per transfer so long on the wire. */
static void make_ring(struct timeline_report *report, struct hand_made *hand, uint64_t wire_0_ns,
		      uint64_t wire_1_ns, uint8_t protocol, uint8_t channels, const char *host)
{
	struct timeline_options options = { .custom_by = { by }, .custom_count = 1 };

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process =
			hand_process(hand, "j", rank, rank == 0 ? "a" : host);
		uint32_t comm = hand_comm(process, 0x77, "world", rank, 2, 2);

		for (uint64_t n = 1; n <= 512; n++) {
			struct op_record *op = hand_op(process, comm, OP_ALL_REDUCE, n, 32 << 20,
						       1000000, n * 10000000);

			op->protocol = protocol;
			op->channels = channels;
			op->send_steps = op->recv_steps = 16;
			op->proxies_started = op->proxies_stopped = 2;
			op->wait_ns[OP_WAIT_SEND_NET] = 16 * (rank == 0 ? wire_0_ns : wire_1_ns);
		}
	}
	if (timeline_report_make(report, &hand->recording, NULL, &options) != OK)
		abort();
}

static const struct compare_difference *difference_in(const struct compare *compare,
						      const char *what)
{
	for (size_t i = 0; i < compare->difference_count; i++)
		if (strcmp(compare->differences[i].what, what) == 0)
			return &compare->differences[i];
	return NULL;
}

static bool is_near(double got, double wanted)
{
	return fabs(got - wanted) < 1e-3 * wanted;
}

static void test_senders(void)
{
	struct timeline_report a, b;
	struct hand_made hand_a = { .list = { NULL } }, hand_b = { .list = { NULL } };
	const struct compare_difference *difference;
	struct compare compare;

	make_ring(&a, &hand_a, 2000, 3000, OP_SIMPLE, 8, "b");
	make_ring(&b, &hand_b, 2000, 6000, OP_LL128, 4, "c");
	if (compare_make(&compare, &a, &b, 0.05) != OK)
		abort();
	EXPECT(compare.sender_count == 2 && compare.senders_slower == 1 &&
	       compare.senders_faster == 0 && compare.senders_undecided == 0);
	EXPECT_THAT("the slower one comes first: 6 us instead of 3",
		    strcmp(compare.senders[0].from, "1") == 0 &&
			    strcmp(compare.senders[0].comm, "world") == 0 &&
			    compare.senders[0].to[0] == '\0' &&
			    strcmp(compare.senders[0].host_a, "b") == 0 &&
			    strcmp(compare.senders[0].host_b, "c") == 0);
	EXPECT(is_near(compare.senders[0].wire_a_ns, 3000) &&
	       is_near(compare.senders[0].wire_b_ns, 6000) &&
	       is_near(compare.senders[0].result.ratio, 2) && compare.senders[0].result.is_slower);
	EXPECT(strcmp(compare.senders[1].from, "0") == 0 &&
	       is_near(compare.senders[1].result.ratio, 1) && !compare.senders[1].result.is_slower);
	EXPECT_EQUAL(compare_answer(&compare), COMPARE_SLOWER);
	EXPECT_EQUAL(compare.difference_count, 2);
	difference = difference_in(&compare, "algorithm and protocol of AllReduce");
	EXPECT(difference != NULL && strcmp(difference->a, "RING SIMPLE") == 0 &&
	       strcmp(difference->b, "RING LL128") == 0);
	difference = difference_in(&compare, "channels of AllReduce");
	EXPECT(difference != NULL && strcmp(difference->a, "8") == 0 &&
	       strcmp(difference->b, "4") == 0);
	compare_release(&compare);
	if (compare_make(&compare, &b, &a, 0.05) != OK)
		abort();
	EXPECT_THAT("the other way round it is faster",
		    compare.senders_faster == 1 && compare.senders_slower == 0 &&
			    is_near(compare.senders[1].result.ratio, 0.5));
	compare_release(&compare);
	timeline_report_release(&a);
	timeline_report_release(&b);
	hand_release(&hand_a);
	hand_release(&hand_b);
}

static void test_answers(void)
{
	static const struct {
		size_t slower, senders_slower, judged, undecided, senders_undecided;
		bool is_job_slower, has_interval, is_significant;
		double ratio, ratio_high, judged_share;
		enum compare_answer answer;
	} cases[] = {
		{ 0, 0, 1, 0, 0, false, false, false, 0, 0, 0.5, COMPARE_SAME },
		{ 0, 0, 1, 0, 0, false, false, false, 0, 0, 0.49, COMPARE_UNKNOWN },
		{ 0, 0, 0, 0, 0, false, false, false, 0, 0, 1, COMPARE_UNKNOWN },
		{ 1, 0, 1, 0, 0, false, false, false, 0, 0, 1, COMPARE_SLOWER },
		{ 0, 1, 1, 0, 0, false, false, false, 0, 0, 1, COMPARE_SLOWER },
		{ 0, 0, 0, 0, 0, true, false, false, 0, 0, 1, COMPARE_SLOWER },
		{ 0, 0, 1, 1, 0, false, false, false, 0, 0, 1, COMPARE_UNKNOWN },
		{ 0, 0, 1, 0, 1, false, false, false, 0, 0, 1, COMPARE_UNKNOWN },
		/* An iteration includes what was not timed. */
		{ 0, 0, 1, 0, 0, false, true, false, 1, 1.05, 0.1, COMPARE_SAME },
		{ 0, 0, 1, 0, 0, false, true, false, 1, 1.06, 0.1, COMPARE_UNKNOWN },
		{ 0, 0, 1, 0, 0, false, true, false, 1, 1.06, 0.9, COMPARE_SAME },
		{ 0, 0, 1, 0, 0, false, true, true, 1.06, 1.2, 0.9, COMPARE_UNKNOWN },
		{ 0, 0, 1, 0, 0, false, true, true, 1.05, 1.2, 0.9, COMPARE_SAME },
		{ 0, 0, 1, 0, 0, false, true, false, 1.06, 1.2, 0.9, COMPARE_SAME },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct compare compare = {
			.threshold = 0.05,
			.slower = cases[i].slower,
			.senders_slower = cases[i].senders_slower,
			.judged = cases[i].judged,
			.undecided = cases[i].undecided,
			.senders_undecided = cases[i].senders_undecided,
			.is_job_slower = cases[i].is_job_slower,
			.judged_share = cases[i].judged_share,
			.iteration = { .has_interval = cases[i].has_interval,
				       .result = { .is_significant = cases[i].is_significant,
						   .ratio = cases[i].ratio,
						   .ratio_high = cases[i].ratio_high } },
		};

		EXPECT_EQUAL(compare_answer(&compare), cases[i].answer);
	}
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Two ranks on two hosts in two communicators without names, with `calls` calls each. */
static void make_keyed(struct timeline_report *report, struct hand_made *hand, uint32_t by_this,
		       unsigned int calls, uint64_t each_ns)
{
	struct timeline_options options = { .custom_by = { by_this }, .custom_count = 1 };

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process =
			hand_process(hand, "j", rank, rank == 0 ? "a" : "b");

		for (uint64_t c = 0; c < 2; c++) {
			uint32_t comm = hand_comm(process, 0x77 + c, "", rank, 2, 2);

			for (uint64_t n = 1; n <= calls; n++)
				hand_op(process, comm, OP_ALL_REDUCE, n, 1 << 20, each_ns + n % 3,
					(2 * n + c) * 10000000)
					->user_tag = 7;
		}
	}
	if (timeline_report_make(report, &hand->recording, NULL, &options) != OK)
		abort();
}

static void test_keys(void)
{
	static const struct {
		uint32_t by;
		const char *texts[2]; /* in any order; NULL: one row */
		uint64_t calls;	      /* of a row */
	} cases[] = {
		{ TALLY_BY_COMM, { "2 ranks, 2 nodes, from rank 0", NULL }, 160 },
		{ TALLY_BY_COMM_NAME, { "2 ranks, 2 nodes", NULL }, 160 },
		{ TALLY_BY_KIND, { "net-only", NULL }, 160 },
		{ TALLY_BY_FUNCTION, { "AllReduce", NULL }, 160 },
		{ TALLY_BY_SIZE, { "1 MiB", NULL }, 160 },
		{ TALLY_BY_DATATYPE, { "float32", NULL }, 160 },
		{ TALLY_BY_ALGORITHM, { "RING", NULL }, 160 },
		{ TALLY_BY_PROTOCOL, { "SIMPLE", NULL }, 160 },
		{ TALLY_BY_RANK, { "0", "1" }, 80 },
		{ TALLY_BY_HOST, { "a", "b" }, 80 },
		{ TALLY_BY_TAG, { "7", NULL }, 160 },
		{ TALLY_BY_SOURCE, { "kernel_gpu", NULL }, 160 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct timeline_report a, b;
		struct hand_made hand_a = { .list = { NULL } }, hand_b = { .list = { NULL } };
		struct compare compare;
		uint64_t found = 0, wanted = cases[i].texts[1] != NULL ? 2 : 1;

		make_keyed(&a, &hand_a, cases[i].by, 40, 50000);
		make_keyed(&b, &hand_b, cases[i].by, 40, 50000);
		if (compare_make(&compare, &a, &b, 0.05) != OK)
			abort();
		for (size_t r = 0; r < compare.count; r++)
			for (uint64_t t = 0; t < wanted; t++)
				found += strcmp(compare.rows[r].key[0], cases[i].texts[t]) == 0 &&
					 compare.rows[r].a.calls == cases[i].calls &&
					 compare.rows[r].b.calls == cases[i].calls;
		if (!EXPECT(found == wanted && compare.count == wanted))
			printf("# by 0x%x: %zu rows, \"%s\" with %llu calls\n", cases[i].by,
			       compare.count, compare.rows[0].key[0],
			       (unsigned long long)compare.rows[0].a.calls);
		EXPECT(compare.only_a + compare.only_b + compare.not_timed == 0);
		compare_release(&compare);
		timeline_report_release(&a);
		timeline_report_release(&b);
		hand_release(&hand_a);
		hand_release(&hand_b);
	}
}

static void test_what_cannot_be_compared(void)
{
	struct timeline_report a, b, none;
	struct hand_made hands[3] = { { .list = { NULL } } };
	struct timeline_options nothing = { .custom_count = 0 };
	struct compare compare;

	make_keyed(&a, &hands[0], TALLY_BY_FUNCTION, 3, 50000);
	make_keyed(&b, &hands[1], TALLY_BY_SIZE, 3, 50000);
	if (timeline_report_make(&none, &hands[2].recording, NULL, &nothing) != OK)
		abort();
	EXPECT_EQUAL(compare_make(&compare, &a, &b, 0.05), ERR_RANGE);
	EXPECT_EQUAL(compare_make(&compare, &a, &none, 0.05), ERR_RANGE);
	EXPECT_EQUAL(compare_make(&compare, &none, &b, 0.05), ERR_RANGE);
	timeline_report_release(&a);
	timeline_report_release(&b);
	timeline_report_release(&none);
	for (int i = 0; i < 3; i++)
		hand_release(&hands[i]);
}

/* ---- Sends ----------------------------------------------------------------------------------- */

/* Most Sends wait for the receiver; one in five is as fast as the link. */
static void make_sends(struct timeline_report *report, struct hand_made *hand, unsigned int calls,
		       uint64_t fast_ns, uint64_t slow_ns)
{
	struct timeline_options options = { .custom_by = { TALLY_BY_FUNCTION }, .custom_count = 1 };

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(hand, "j", rank, "a");
		uint32_t comm = hand_comm(process, 0x77, "world", rank, 2, 1);

		for (uint64_t n = 1; n <= calls; n++)
			hand_op(process, comm, rank == 0 ? OP_SEND : OP_RECV, n, 1 << 20,
				(n % 5 == 0 ? fast_ns : slow_ns) * (95 + n * 7 % 11) / 100,
				n * 10000000)
				->peer = 1 - rank;
	}
	if (timeline_report_make(report, &hand->recording, NULL, &options) != OK)
		abort();
}

static void test_sends(void)
{
	static const struct {
		uint64_t a_ns, b_ns, slow_a_ns, slow_b_ns;
		bool is_slower, is_faster;
	} cases[] = {
		{ 100000, 100000, 1000000, 1000000, false, false },
		/* Waiting is not the link. */
		{ 100000, 100000, 500000, 2000000, false, false },
		{ 100000, 200000, 1000000, 1000000, true, false },
		{ 200000, 100000, 1000000, 1000000, false, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct timeline_report a, b;
		struct hand_made hand_a = { .list = { NULL } }, hand_b = { .list = { NULL } };
		struct compare compare;
		double ratio = (double)cases[i].b_ns / (double)cases[i].a_ns;

		make_sends(&a, &hand_a, 2000, cases[i].a_ns, cases[i].slow_a_ns);
		make_sends(&b, &hand_b, 2000, cases[i].b_ns, cases[i].slow_b_ns);
		if (compare_make(&compare, &a, &b, 0.1) != OK)
			abort();
		for (int j = 0; j < 2; j++) {
			const struct compare_row *row = row_of(&compare, j == 0 ? "Send" : "Recv");

			EXPECT_EQUAL(row->basis, COMPARE_FASTEST);
			EXPECT(row->is_slower == cases[i].is_slower &&
			       row->is_faster == cases[i].is_faster);
			if (!EXPECT(row->has_interval && row->ratio_low <= ratio &&
				    row->ratio_high >= ratio))
				printf("# %g to %g\n", row->ratio_low, row->ratio_high);
			EXPECT_THAT("the time of the fastest tenth, to a bucket",
				    row->a.transfer_ns > 0.85 * (double)cases[i].a_ns &&
					    row->a.transfer_ns < 1.15 * (double)cases[i].a_ns &&
					    row->b.transfer_ns > 0.85 * (double)cases[i].b_ns &&
					    row->b.transfer_ns < 1.15 * (double)cases[i].b_ns);
		}
		EXPECT_THAT("senders and receivers are judged",
			    compare.judged == 2 && compare.judged_share > 0.99);
		compare_release(&compare);
		timeline_report_release(&a);
		timeline_report_release(&b);
		hand_release(&hand_a);
		hand_release(&hand_b);
	}
}

static void test_names(void)
{
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			EXPECT(strcmp(compare_basis_name((enum compare_basis)i),
				      compare_basis_name((enum compare_basis)j)) != 0);
}

int main(void)
{
	test_keys();
	test_what_cannot_be_compared();
	test_sends();
	test_names();

	struct timeline_report empty = { .custom_count = 0 };
	struct compare compare;

	compared(200, 100000, 200, 100000, 0.05, true, look_equal);
	compared(200, 100000, 200, 130000, 0.05, true, look_slower);
	compared(200, 100000, 200, 130000, 0.5, true, look_tolerant);
	compared(3, 100000, 3, 130000, 0.05, true, look_few);
	compared(50, 100000, 50, 100000, 0.05, false, look_one_sided);
	test_transfers();
	test_senders();
	test_answers();
	EXPECT(compare_make(&compare, &empty, &empty, 0.05) == ERR_RANGE);
	return tap_done();
}
