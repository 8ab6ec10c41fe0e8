/* Iterations of short sequences: every value of each, and sequences that are just long or regular enough. */
#include "analysis/timeline_report.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum { ROOM = 70000, ENDS_NS = 20000 };

#define ABC_8 "abcabcabcabcabcabcabcabc"

static struct iterations_op ops[ROOM];
static size_t count;
static uint64_t now_ns;
static struct iterations iterations;

static struct iterations_op *op(uint32_t symbol)
{
	now_ns += 1000;
	ops[count] = (struct iterations_op){ .symbol = symbol,
					     .issue_ns = now_ns,
					     .done_ns = now_ns + 700,
					     .duration_ns = 500,
					     .bytes = 10,
					     .is_timed = true };
	return &ops[count++];
}

/* One operation per character. */
static void sequence(const char *text)
{
	for (; *text != '\0'; text++)
		op((uint32_t)(unsigned char)*text);
}

static void find(void)
{
	if (iterations_find(&iterations, ops, count) != OK)
		abort();
}

static void over(void)
{
	iterations_release(&iterations);
	count = 0;
	now_ns = 0;
}

static void expect_iteration(const char *sentence, size_t i, struct iteration wanted)
{
	const struct iteration *one = &iterations.list[i];

	if (EXPECT_THAT(sentence,
			one->first_op == wanted.first_op && one->ops == wanted.ops &&
				one->start_ns == wanted.start_ns && one->end_ns == wanted.end_ns &&
				one->called_ns == wanted.called_ns &&
				one->next_called_ns == wanted.next_called_ns &&
				one->timed == wanted.timed && one->busy_ns == wanted.busy_ns &&
				one->sum_ns == wanted.sum_ns && one->bytes == wanted.bytes &&
				one->is_odd == wanted.is_odd &&
				one->is_exposed_known == wanted.is_exposed_known &&
				one->is_exposed_measured == wanted.is_exposed_measured &&
				one->exposed_low_ns == wanted.exposed_low_ns &&
				one->exposed_high_ns == wanted.exposed_high_ns))
		return;
	printf("#   %zu: first %llu, ops %u, %llu to %llu, called %llu, next %llu, timed %u, busy "
	       "%llu, "
	       "sum %llu, bytes %llu, odd %d, known %d, exposed %llu to %llu\n",
	       i, (unsigned long long)one->first_op, one->ops, (unsigned long long)one->start_ns,
	       (unsigned long long)one->end_ns, (unsigned long long)one->called_ns,
	       (unsigned long long)one->next_called_ns, one->timed,
	       (unsigned long long)one->busy_ns, (unsigned long long)one->sum_ns,
	       (unsigned long long)one->bytes, one->is_odd, one->is_exposed_known,
	       (unsigned long long)one->exposed_low_ns, (unsigned long long)one->exposed_high_ns);
}

/* Sequences, and what is found in them. */
static void test_sequences(void)
{
	static const struct {
		const char *sentence;
		const char *text;
		uint32_t period; /* 0: nothing is found */
		size_t warm_up;
		size_t regular;
		size_t irregular;
		size_t tail;
	} cases[] = {
		{ "three times two", "ababab", 2, 0, 3, 0, 0 },
		{ "one operation less", "ababa", 0, 0, 0, 0, 0 },
		{ "three times three", "abcabcabc", 3, 0, 3, 0, 0 },
		{ "two and two thirds", "abcabcab", 0, 0, 0, 0, 0 },
		{ "twice is not often enough", "abcabc", 0, 0, 0, 0, 0 },
		{ "one symbol only", "aaaaaaaaaaaa", 0, 0, 0, 0, 0 },
		{ "the last one is not complete", "abcabcabcab", 3, 0, 3, 0, 2 },
		{ "a warm-up of one", "xabcabcabcabc", 3, 1, 4, 0, 0 },
		{ "a warm-up that begins like it", "abxabcabcabcabcabcabcabc", 3, 3, 7, 0, 0 },
		{ "something in between", ABC_8 "xy" ABC_8, 3, 0, 16, 1, 0 },
		{ "twice something in between", ABC_8 "x" ABC_8 "yyyy" ABC_8, 3, 0, 24, 2, 0 },
		{ "another end", "abcdabcdabcdabcdabcdabcdxx", 4, 0, 6, 0, 2 },
		{ "a symbol that comes twice", "aabaabaabaab", 3, 0, 4, 0, 0 },
		{ "a layer within an iteration", "ababababzababababzababababzababababz", 9, 0, 4, 0,
		  0 },
		{ "nothing repeats", "abcdefghijklmnopqrstuvwxyz", 0, 0, 0, 0, 0 },
		{ "symbols repeat, their order does not", "abcacbbacbcacabcbaabccab", 0, 0, 0, 0,
		  0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sequence(cases[i].text);
		iterations.rank = 5;
		find();
		if (!EXPECT_THAT(cases[i].sentence,
				 iterations.is_found == (cases[i].period != 0) &&
					 iterations.rank == 5 && iterations.ops == count &&
					 iterations.period_ops == cases[i].period &&
					 iterations.warm_up_ops == cases[i].warm_up &&
					 iterations.regular == cases[i].regular &&
					 iterations.count ==
						 cases[i].regular + cases[i].irregular &&
					 iterations.tail_ops == cases[i].tail &&
					 !iterations.is_by_tag && !iterations.is_by_end))
			printf("#   period %u, warm-up %zu, regular %zu of %zu, tail %zu\n",
			       iterations.period_ops, (size_t)iterations.warm_up_ops,
			       iterations.regular, iterations.count, (size_t)iterations.tail_ops);
		over();
	}
}

/* Warm-up, eight steps of three, something else, eight more, and one operation. */
static void test_all_values(void)
{
	static const char text[] = "w" ABC_8 "xx" ABC_8 "a";

	for (size_t i = 0; text[i] != '\0'; i++) {
		struct iterations_op *own = op((uint32_t)text[i]);

		own->duration_ns = 10 * (i + 1);
		own->done_ns = own->issue_ns + own->duration_ns + 50;
		own->bytes = 1 + i;
	}
	ops[8].is_timed = false;
	/* The first of what is in between is longer than the second. */
	ops[25].duration_ns = 1500;
	ops[25].done_ns = 26000 + 1550;
	ops[26].is_timed = false;
	find();
	EXPECT_EQUAL(iterations.count, 17);
	expect_iteration("the first step", 0,
			 (struct iteration){ .first_op = 1,
					     .ops = 3,
					     .start_ns = 2000,
					     .end_ns = 5000,
					     .called_ns = 2000,
					     .next_called_ns = 5000,
					     .timed = 3,
					     .busy_ns = 90,
					     .sum_ns = 90,
					     .bytes = 2 + 3 + 4,
					     .is_exposed_known = true,
					     .exposed_high_ns = 90 + 3 * 50 + 3 * ENDS_NS });
	expect_iteration("a step with an operation that is not timed", 2,
			 (struct iteration){ .first_op = 7,
					     .ops = 3,
					     .start_ns = 8000,
					     .end_ns = 11000,
					     .called_ns = 8000,
					     .next_called_ns = 11000,
					     .timed = 2,
					     .busy_ns = 270,
					     .sum_ns = 270,
					     .bytes = 8 + 9 + 10 });
	expect_iteration("what is not a step", 8,
			 (struct iteration){ .first_op = 25,
					     .ops = 2,
					     .start_ns = 26000,
					     .end_ns = 28000,
					     .called_ns = 26000,
					     .next_called_ns = 28000,
					     .timed = 1,
					     .busy_ns = 1500,
					     .sum_ns = 1500 + 270,
					     .bytes = 26 + 27,
					     .is_odd = true });
	expect_iteration("the last step ends with its last operation", 16,
			 (struct iteration){ .first_op = 48,
					     .ops = 3,
					     .start_ns = 49000,
					     .end_ns = 51560,
					     .called_ns = 49000,
					     .next_called_ns = 51560,
					     .timed = 3,
					     .busy_ns = 1500,
					     .sum_ns = 1500,
					     .bytes = 49 + 50 + 51,
					     .is_exposed_known = true,
					     .exposed_high_ns = 1500 + 150 + 3 * ENDS_NS });
	EXPECT_EQUAL(iterations.regular, 16);
	EXPECT_EQUAL(iterations.median_ns, 3000);
	EXPECT_EQUAL(iterations.p99_ns, 3000);
	EXPECT_EQUAL(iterations.timed, 15);
	EXPECT_EQUAL(iterations.median_busy_ns, 870);
	EXPECT_EQUAL(iterations.exposed, 15);
	EXPECT_EQUAL(iterations.exposed_measured, 0);
	EXPECT_EQUAL(iterations.exposed_low_ns, 0);
	EXPECT_EQUAL(iterations.exposed_high_ns, 870 + 150 + 3 * ENDS_NS);
	EXPECT_EQUAL(iterations.warm_up_ops, 1);
	EXPECT_EQUAL(iterations.tail_ops, 1);
	over();
}

/* Steps of 21 operations, of which two may differ. */
static void test_a_tenth_may_differ(void)
{
	static const struct {
		const char *sentence;
		uint32_t from; /* of the sixth step, these operations are others */
		uint32_t to;
		bool is_regular;
	} cases[] = {
		{ "one is another", 20, 21, true },
		{ "two are others", 1, 3, true },
		{ "three are others", 1, 4, false },
		{ "the first one is another", 0, 1, false },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		for (uint32_t step = 0; step < 10; step++)
			for (uint32_t i = 0; i < 21; i++)
				op(step == 5 && i >= cases[c].from && i < cases[c].to ? 900 + i
										      : i);
		find();
		EXPECT_THAT(cases[c].sentence,
			    iterations.is_found && iterations.period_ops == 21 &&
				    iterations.count == 10 &&
				    iterations.regular == (cases[c].is_regular ? 10 : 9) &&
				    iterations.list[5].is_odd == !cases[c].is_regular);
		over();
	}
}

static void test_tags(void)
{
	static const struct {
		const char *sentence;
		uint64_t tags[8]; /* of eight operations that do not repeat */
		size_t steps;	  /* 0: nothing is found */
		uint32_t period;
	} cases[] = {
		{ "three tags", { 1, 1, 2, 2, 2, 3, 3, 3 }, 3, 2 },
		{ "two tags are not enough", { 1, 1, 1, 1, 2, 2, 2, 2 }, 0, 0 },
		{ "four of two each", { 4, 4, 5, 5, 7, 7, 9, 9 }, 4, 2 },
		{ "a new one with every second operation", { 1, 2, 2, 3, 3, 4, 4, 5 }, 0, 0 },
		{ "nearly with every second", { 1, 2, 2, 3, 3, 4, 4, 4 }, 4, 2 },
		{ "one without a tag", { 0, 0, 1, 1, 2, 2, 3, 3 }, 0, 0 },
		{ "one that counts down", { 1, 1, 3, 3, 2, 2, 4, 4 }, 0, 0 },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		sequence("abcdefgh");
		for (size_t i = 0; i < 8; i++)
			ops[i].tag = cases[c].tags[i];
		find();
		EXPECT_THAT(cases[c].sentence,
			    iterations.is_found == (cases[c].steps > 0) &&
				    iterations.is_by_tag == iterations.is_found &&
				    iterations.count == cases[c].steps &&
				    iterations.regular == cases[c].steps &&
				    iterations.period_ops == cases[c].period &&
				    iterations.warm_up_ops == 0 && iterations.tail_ops == 0);
		if (c == 0)
			EXPECT_THAT("each has the operations of its tag",
				    iterations.list[0].first_op == 0 &&
					    iterations.list[0].ops == 2 &&
					    iterations.list[1].first_op == 2 &&
					    iterations.list[1].ops == 3 &&
					    iterations.list[2].first_op == 5 &&
					    iterations.list[2].ops == 3);
		over();
	}
}

/* Steps of two operations, of which step i takes this long. */
static void steps(size_t number, uint64_t (*length_ns)(size_t i))
{
	for (size_t i = 0; i < number; i++) {
		uint64_t start_ns = now_ns;

		op(1);
		op(2);
		now_ns = start_ns + length_ns(i);
	}
}

static uint64_t longer_each_time(size_t i)
{
	return 10000 + i;
}

static uint64_t longest_first(size_t i)
{
	return 20000 - i;
}

static uint64_t two_longest(size_t i)
{
	return i == 3 || i == 5 ? 30000 : 10000;
}

static void test_order_statistics(void)
{
	static const struct {
		size_t number;
		uint64_t
			median_ns; /* of what is above 10000: the last ends with its last operation */
		uint64_t p99_ns;
	} cases[] = {
		/* The last one takes 1700: the smallest. */
		{ 3, 10000, 10001 },   { 4, 10001, 10002 },   { 5, 10001, 10003 },
		{ 99, 10048, 10097 },  { 100, 10049, 10097 }, { 101, 10049, 10098 },
		{ 200, 10099, 10196 }, { 201, 10099, 10197 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		steps(cases[i].number, longer_each_time);
		find();
		EXPECT_EQUAL(iterations.regular, cases[i].number);
		EXPECT_EQUAL(iterations.median_ns, cases[i].median_ns);
		EXPECT_EQUAL(iterations.p99_ns, cases[i].p99_ns);
		EXPECT_EQUAL(iterations.slowest, cases[i].number - 2);
		over();
	}
	steps(10, longest_first);
	find();
	EXPECT_THAT("the slowest is the first", iterations.slowest == 0 &&
							iterations.slowest_ns == 20000 &&
							iterations.median_ns == 19996);
	over();
	steps(10, two_longest);
	find();
	EXPECT_THAT("the first of two that are equally slow", iterations.slowest == 3);
	over();
}

/* Ends of steps: `ahead` of them after the call of the next step, by this much. */
static void ahead_steps(size_t number, size_t ahead, uint64_t by_ns)
{
	for (size_t i = 0; i < number; i++) {
		struct iterations_op *last;

		op(1);
		last = op(2);
		last->done_ns = now_ns + (i >= 5 && i < 5 + ahead ? 1000 + by_ns : 900);
	}
}

static void test_ahead(void)
{
	static const struct {
		const char *sentence;
		size_t number;
		size_t ahead;
		uint64_t by_ns;
		bool is_by_end;
	} cases[] = {
		/* The first of them ends 2100 + by after the one before, the others 2000. */
		{ "two of 39 end a quarter after the next call", 39, 2, 900, true },
		{ "two of 40 are not enough", 40, 2, 900, false },
		{ "three of 40 are", 40, 3, 900, true },
		{ "one is not enough", 10, 1, 900, false },
		{ "two are", 10, 2, 900, true },
		{ "a quarter of the time is not enough", 10, 3, 500, false },
		{ "more than a quarter is", 10, 3, 501, true },
		{ "none of them", 10, 0, 0, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ahead_steps(cases[i].number, cases[i].ahead, cases[i].by_ns);
		find();
		EXPECT_THAT(cases[i].sentence,
			    iterations.is_found && iterations.is_by_end == cases[i].is_by_end);
		over();
	}
	ahead_steps(10, 3, 900);
	find();
	EXPECT_THAT("a step begins where the one before ended",
		    iterations.list[5].start_ns == 11000 && iterations.list[5].end_ns == 13900 &&
			    iterations.list[6].start_ns == 13900 &&
			    iterations.list[6].end_ns == 15900 &&
			    iterations.list[7].start_ns == 15900);
	EXPECT_THAT("or with its call",
		    iterations.list[9].start_ns == 19000 && iterations.list[9].end_ns == 20900);
	EXPECT_THAT("calls are still known", iterations.list[6].called_ns == 13000 &&
						     iterations.list[6].next_called_ns == 15000 &&
						     iterations.list[9].next_called_ns == 20900);
	over();
	ahead_steps(10, 3, 900);
	ops[2].done_ns = ops[3].done_ns = 0;
	find();
	EXPECT_THAT("all ends must be known", !iterations.is_by_end);
	over();
}

/* Four equal steps of two operations; the second operation of each is changed. */
static void test_exposed_edges(void)
{
	static const struct {
		const char *sentence;
		uint64_t issue_ns; /* since the step's start, like the others */
		uint64_t floor_ns;
		uint64_t done_ns;
		uint64_t gpu_stop_ns; /* its duration is 500 */
		uint64_t low_ns;
		uint64_t high_ns; /* without the ends of kernels and the first one's 700 */
		bool has_issue;
		bool has_floor;
		bool is_default;
		bool is_known;
	} cases[] = {
		{ "from the call to the end", 1000, 0, 1700, 0, 0, 700, true, false, false, true },
		{ "from when its communicator was free", 1000, 1100, 1700, 0, 0, 600, true, true,
		  false, true },
		{ "free before the call", 1000, 900, 1700, 0, 0, 700, true, true, false, true },
		{ "free only at its end", 1000, 1700, 1700, 0, 0, 0, true, true, false, true },
		{ "free after its end", 1000, 1800, 1700, 0, 0, 0, true, true, false, true },
		{ "the call is not known", 0, 1200, 1700, 0, 0, 500, false, true, false, true },
		{ "nothing is known of its start", 0, 0, 1700, 0, 0, 0, false, false, false,
		  false },
		{ "a GPU time that is as short as its duration", 1000, 0, 1700, 500, 0, 700, true,
		  false, true, true },
		{ "a GPU time", 1000, 0, 1700, 501, 0, 500, true, false, false, true },
		{ "a GPU time on the default stream", 1000, 0, 1700, 501, 500, 500, true, false,
		  true, true },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		for (int step = 0; step < 4; step++) {
			uint64_t start_ns = op(1)->issue_ns;
			struct iterations_op *own = op(2);

			own->issue_ns = cases[c].has_issue ? start_ns + cases[c].issue_ns : 0;
			own->floor_ns = cases[c].has_floor ? start_ns + cases[c].floor_ns : 0;
			own->done_ns = start_ns + cases[c].done_ns;
			own->gpu_stop_ns = cases[c].gpu_stop_ns;
			own->is_default_stream = cases[c].is_default;
		}
		find();
		EXPECT_EQUAL(iterations.exposed, cases[c].is_known ? 4 : 0);
		if (!EXPECT_THAT(cases[c].sentence,
				 iterations.exposed_low_ns == cases[c].low_ns &&
					 iterations.exposed_high_ns ==
						 (cases[c].is_known
							  ? 700 + cases[c].high_ns + 2 * ENDS_NS
							  : 0)))
			printf("#   %llu to %llu\n", (unsigned long long)iterations.exposed_low_ns,
			       (unsigned long long)iterations.exposed_high_ns);
		over();
	}
}

/* Kernels of a profile, one per step. */
static void test_measured_edges(void)
{
	struct exposed_activity activity = { .compute = NULL };

	for (int i = 0; i < 6; i++)
		sequence("ab");
	sequence("xx");
	for (int i = 0; i < 12; i++)
		sequence("ab");
	find();
	EXPECT_EQUAL(iterations.count, 19);
	for (size_t i = 0; i < 19; i++)
		if (i != 4)
			exposed_add_comm(&activity, iterations.list[i].called_ns,
					 iterations.list[i].called_ns + 100,
					 iterations.list[i].called_ns + 200 + 10 * i);
	exposed_finish(&activity);
	activity.first_ns = iterations.list[1].called_ns;
	activity.last_ns = iterations.list[7].next_called_ns;
	EXPECT_EQUAL(iterations_measure(&iterations, &activity), OK);
	for (size_t i = 0; i < 19; i++)
		EXPECT_EQUAL(iterations.list[i].is_exposed_measured, i >= 1 && i <= 7 && i != 4);
	EXPECT_EQUAL(iterations.list[1].exposed_low_ns, 110);
	EXPECT_EQUAL(iterations.list[7].exposed_high_ns, 170);
	EXPECT_THAT("one of them is not a step", iterations.list[6].is_odd &&
							 iterations.exposed_measured == 5 &&
							 iterations.exposed == 18);
	EXPECT_THAT("the median of 110, 120, 130, 150, 170",
		    iterations.exposed_low_ns == 130 && iterations.exposed_high_ns == 130);
	activity.first_ns++;
	activity.last_ns--;
	iterations.list[1].is_exposed_measured = iterations.list[7].is_exposed_measured = false;
	EXPECT_EQUAL(iterations_measure(&iterations, &activity), OK);
	EXPECT_THAT("a nanosecond of them is not in the profile",
		    iterations.exposed_measured == 3 && iterations.exposed_low_ns == 130);
	exposed_release(&activity);
	over();
}

/* Times that are not known. */
static void test_without_times(void)
{
	for (int i = 0; i < 4; i++)
		sequence("abc");
	for (size_t i = 0; i < count; i++)
		ops[i].issue_ns = 0;
	ops[3].duration_ns = ops[3].done_ns;
	ops[6].duration_ns = ops[6].done_ns + 1;
	ops[7].duration_ns = 0;
	find();
	EXPECT_THAT("without its call it begins with its duration before its end",
		    iterations.list[0].start_ns == 1200 && iterations.list[0].end_ns == 3700);
	EXPECT_THAT("a duration that is as long as its end begins at 0",
		    iterations.list[1].start_ns == 0 && iterations.list[1].busy_ns == 1000 &&
			    iterations.list[1].sum_ns == 4700 + 1000);
	EXPECT_THAT("a longer one is not possible: it begins with its end",
		    iterations.list[2].start_ns == 7700 && iterations.list[2].busy_ns == 500);
	EXPECT_EQUAL(iterations.list[2].end_ns, 10200);
	EXPECT_EQUAL(iterations.exposed, 0);
	over();
}

/* The period is searched in the first 32,768 operations; if they have none, in all of them. */
static void test_late_start(void)
{
	for (uint32_t i = 0; i < 14000; i++)
		op(1000 + i);
	for (int i = 0; i < 14000; i++)
		sequence("abc");
	op(7);
	find();
	EXPECT_THAT("found after a long start", iterations.is_found && iterations.period_ops == 3 &&
							iterations.warm_up_ops == 14000 &&
							iterations.regular == 14000 &&
							iterations.tail_ops == 1);
	over();
	for (int i = 0; i < 8000; i++)
		sequence("abcd");
	for (uint32_t i = 0; i < 38000; i++)
		op(1000 + i);
	find();
	EXPECT_THAT("found at the start, whatever follows",
		    iterations.is_found && iterations.period_ops == 4 &&
			    iterations.regular == 8000 && iterations.tail_ops == 38000);
	over();
}

int main(void)
{
	test_sequences();
	test_all_values();
	test_a_tenth_may_differ();
	test_tags();
	test_order_statistics();
	test_ahead();
	test_exposed_edges();
	test_measured_edges();
	test_without_times();
	test_late_start();
	return tap_done();
}
