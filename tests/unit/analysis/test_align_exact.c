/* From pairs of processes to one time base: every value of the result, for edges made by hand. */
#include "analysis/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

enum { HOP_NS = 100, MOST = 16 };

static struct hand_made hand;
static struct job job = { .recording = &hand.recording };
static struct align align;

static void processes(int count)
{
	for (int i = 0; i < count; i++) {
		char host[16];

		snprintf(host, sizeof(host), "h%d", i);
		hand_process(&hand, "j", i, host);
	}
}

static void anchor(int process, size_t count, uint64_t clock_ns, uint64_t wall_ns)
{
	struct recording_process *own = hand.list[process];

	own->anchors = calloc(count, sizeof(*own->anchors));
	if (own->anchors == NULL)
		abort();
	own->anchor_count = count;
	for (size_t i = 0; i < count; i++)
		own->anchors[i] =
			(struct clock_anchor){ clock_ns + i * 1000000, wall_ns + i * 1000000 };
}

static void solve(const struct match_edge *edges, size_t count)
{
	if (align_solve(&align, &job, edges, count) != OK)
		abort();
}

static void over(void)
{
	align_release(&align);
	EXPECT_THAT("nothing remains", align.processes == NULL && align.count == 0);
	hand_release(&hand);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-12;
}

static void expect_process(const char *sentence, size_t p, struct align_process wanted)
{
	const struct align_process *own = &align.processes[p];

	if (EXPECT_THAT(sentence, own->source == wanted.source && own->via == wanted.via &&
					  own->hops == wanted.hops &&
					  own->island == wanted.island &&
					  own->samples == wanted.samples &&
					  own->offset_ns == wanted.offset_ns &&
					  is_near(own->drift, wanted.drift) &&
					  own->middle_ns == wanted.middle_ns &&
					  own->uncertainty_ns == wanted.uncertainty_ns &&
					  own->is_uncertain == wanted.is_uncertain))
		return;
	printf("#   %zu: %s via %u, hops %u, island %u, samples %u, offset %lld, drift %g, middle "
	       "%llu, "
	       "uncertainty %llu, uncertain %d\n",
	       p, align_source_name(own->source), own->via, own->hops, own->island, own->samples,
	       (long long)own->offset_ns, own->drift, (unsigned long long)own->middle_ns,
	       (unsigned long long)own->uncertainty_ns, own->is_uncertain);
}

/* 0 is the reference: 1 and 2 share collectives with it, 3 with 2, and 4 with nobody. */
static void test_values_along_a_chain(void)
{
	const uint64_t wall = 1700000000000000000, s = 1000000000;
	const struct match_edge edges[] = {
		{ .process = 1,
		  .other = 0,
		  .samples = 7,
		  .offset_ns = 500,
		  .drift = 2e-4,
		  .spread_ns = 300,
		  .middle_ns = 5 * s },
		{ .process = 0,
		  .other = 2,
		  .samples = 8,
		  .offset_ns = -1000,
		  .drift = 1e-3,
		  .spread_ns = 400,
		  .middle_ns = 6 * s },
		{ .process = 3,
		  .other = 2,
		  .samples = 9,
		  .offset_ns = 2 * (int64_t)s,
		  .spread_ns = 50,
		  .middle_ns = 4 * s },
	};
	/* From its first anchor on, 10 s, the wall clock gained 1 ms. */
	const int64_t offset = (int64_t)(wall - 1 * s) + 1000000;

	processes(5);
	anchor(0, 1, 1 * s, wall);
	hand.list[0]->fresh_anchor = (struct clock_anchor){ 11 * s, wall + 10 * s + 1000000 };
	anchor(4, 1, 3 * s, wall + 77 * s);
	solve(edges, 3);
	EXPECT_EQUAL(align.count, 5);
	EXPECT_EQUAL(align.reference, 0);
	EXPECT_EQUAL(align.island_count, 2);
	EXPECT_EQUAL(align.unaligned, 1);
	EXPECT_THAT("the worst of those that are aligned", align.worst_uncertainty_ns == 450);
	expect_process("the reference has its own wall clock", 0,
		       (struct align_process){ .source = ALIGN_REFERENCE,
					       .samples = 2,
					       .offset_ns = offset,
					       .drift = 1e-4,
					       .middle_ns = 11 * s });
	/* At its middle the reference is 6 s before its own, which is 600 us of drift. */
	expect_process("forward along an edge", 1,
		       (struct align_process){ .source = ALIGN_DIRECT,
					       .hops = 1,
					       .samples = 7,
					       .offset_ns = 500 + offset - 599999,
					       .drift = 2e-4 + 1e-4 + 2e-8,
					       .middle_ns = 5 * s,
					       .uncertainty_ns = 300 });
	expect_process("back along an edge", 2,
		       (struct align_process){ .source = ALIGN_DIRECT,
					       .hops = 1,
					       .samples = 8,
					       .offset_ns = 1000 + offset - 500000,
					       .drift = -1e-3 / 1.001 + 1e-4 - 1e-7 / 1.001,
					       .middle_ns = 6 * s - 1000,
					       .uncertainty_ns = 400 });
	EXPECT_EQUAL(align.processes[3].source, ALIGN_CHAIN);
	EXPECT_EQUAL(align.processes[3].via, 2);
	EXPECT_EQUAL(align.processes[3].hops, 2);
	EXPECT_EQUAL(align.processes[3].samples, 9);
	EXPECT_EQUAL(align.processes[3].uncertainty_ns, 450);
	EXPECT_EQUAL(align.processes[3].middle_ns, 4 * s);
	EXPECT_THAT("two processes agree on the moment that they share",
		    align_ns(&align, 3, 4 * s) == align_ns(&align, 2, 6 * s));
	EXPECT(is_near(align.processes[3].drift, align.processes[2].drift));
	expect_process("an island of its own", 4,
		       (struct align_process){ .source = ALIGN_ANCHOR,
					       .via = 4,
					       .island = 1,
					       .samples = 1,
					       .offset_ns = (int64_t)(wall + 74 * s),
					       .middle_ns = 3 * s,
					       .is_uncertain = true });
	EXPECT_EQUAL(align_uncertainty_ns(&align, 3), 450);
	EXPECT_THAT("0 is unknown on both clocks",
		    align_clock_ns(&align, 1, 0) == 0 && align_ns(&align, 1, 0) == 0);
	for (size_t p = 0; p < 5; p++)
		for (uint64_t at = s; at < 12 * s; at += 3 * s + 1)
			if (llabs((int64_t)(align_clock_ns(&align, p, align_ns(&align, p, at)) -
					    at)) > 1)
				EXPECT_THAT("there and back", 0);
	over();
}

/* Shortest paths without a heap: over all edges until nothing changes. */
static void shortest(const struct match_edge *edges, size_t count, uint32_t start, double *length)
{
	bool is_changed = true;

	for (size_t p = 0; p < MOST; p++)
		length[p] = p == start ? 0 : INFINITY;
	while (is_changed) {
		is_changed = false;
		for (size_t i = 0; i < count; i++) {
			double *a = &length[edges[i].process], *b = &length[edges[i].other];
			double own = edges[i].spread_ns + HOP_NS;

			if (*a + own < *b) {
				*b = *a + own;
				is_changed = true;
			}
			if (*b + own < *a) {
				*a = *b + own;
				is_changed = true;
			}
		}
	}
}

/* Connected graphs of 16 processes: a line of long edges and 24 others of any length. */
static void test_shortest_paths(void)
{
	uint32_t seed = 12345;
	int wrong_lengths = 0, wrong_offsets = 0, wrong_worst = 0, wrong_sources = 0;

	processes(MOST);
	for (int round = 0; round < 20; round++) {
		struct match_edge edges[MOST - 1 + 24];
		size_t count = 0;
		double length[MOST];
		uint64_t worst = 0;
		uint32_t ways[MOST] = { 0 }, most = 0;

		for (; count < MOST - 1; count++)
			edges[count] = (struct match_edge){ .process = (uint32_t)count,
							    .other = (uint32_t)count + 1,
							    .spread_ns = 5000 };
		while (count < MOST - 1 + 24) {
			uint32_t a, b;

			seed = seed * 1664525 + 1013904223;
			a = seed >> 28;
			seed = seed * 1664525 + 1013904223;
			b = seed >> 28;
			seed = seed * 1664525 + 1013904223;
			if (a != b)
				edges[count++] = (struct match_edge){ .process = a,
								      .other = b,
								      .spread_ns = seed >> 19 };
		}
		for (size_t i = 0; i < count; i++) {
			/* Process p started its clock p x 1,000,000 later than process 0. */
			edges[i].offset_ns =
				1000000 * ((int64_t)edges[i].process - (int64_t)edges[i].other);
			edges[i].middle_ns = 1000000000 - 1000000 * edges[i].process;
			ways[edges[i].process]++;
			ways[edges[i].other]++;
		}
		for (uint32_t p = 1; p < MOST; p++)
			most = ways[p] > ways[most] ? p : most;
		solve(edges, count);
		EXPECT_THAT("most edges: the reference, the first of several",
			    align.reference == most && align.island_count == 1);
		shortest(edges, count, align.reference, length);
		for (uint32_t p = 0; p < MOST; p++) {
			const struct align_process *own = &align.processes[p];
			int64_t apart = 1000000 * ((int64_t)p - (int64_t)align.reference);

			wrong_lengths +=
				(double)(own->uncertainty_ns + own->hops * HOP_NS) != length[p];
			wrong_offsets += own->offset_ns != apart;
			wrong_sources += own->source != (p == align.reference ? ALIGN_NOTHING
							 : own->hops == 1     ? ALIGN_DIRECT
									      : ALIGN_CHAIN);
			wrong_sources += p != align.reference &&
					 own->hops != align.processes[own->via].hops + 1;
			worst = own->uncertainty_ns > worst ? own->uncertainty_ns : worst;
		}
		wrong_worst += align.worst_uncertainty_ns != worst || align.unaligned != 0;
		align_release(&align);
	}
	EXPECT_THAT("each process along the path of the smallest uncertainty", wrong_lengths == 0);
	EXPECT_THAT("by the offsets along it", wrong_offsets == 0);
	EXPECT_THAT("and it says how", wrong_sources == 0);
	EXPECT_THAT("the largest uncertainty of all", wrong_worst == 0);
	over();
}

/* Of two equally long paths the first one stays. */
static void test_equal_paths(void)
{
	const struct match_edge edges[] = {
		{ .process = 0, .other = 1, .spread_ns = 10 },
		{ .process = 0, .other = 2, .spread_ns = 10 },
		{ .process = 0, .other = 4, .spread_ns = 500 },
		{ .process = 1, .other = 3, .spread_ns = 10 },
		{ .process = 2, .other = 3, .spread_ns = 10 },
	};

	processes(5);
	solve(edges, 5);
	EXPECT_EQUAL(align.processes[3].via, 1);
	EXPECT_EQUAL(align.processes[3].hops, 2);
	EXPECT_EQUAL(align.processes[4].uncertainty_ns, 500);
	EXPECT_EQUAL(align.worst_uncertainty_ns, 500);
	over();
}

/* 0 and 1 share collectives, the others none. */
static void test_same_clock(void)
{
	static const struct match_edge edge = { .process = 0,
						.other = 1,
						.samples = 5,
						.offset_ns = 40,
						.spread_ns = 30,
						.middle_ns = 1000 };
	static const char *const hosts[] = { "a", "b", "b", "b", "c", "a", "a" };
	static const char *const boots[] = { "A", "B", "B", "C", "B", "", "A" };

	for (int i = 0; i < 7; i++) {
		struct recording_process *process = hand_process(&hand, "j", i, hosts[i]);

		snprintf(process->boot_id, sizeof(process->boot_id), "%s", boots[i]);
		anchor(i, 1, 1000, 5000 + (uint64_t)i);
	}
	solve(&edge, 1);
	EXPECT_THAT("same host and boot: the values of its neighbour",
		    align.processes[2].source == ALIGN_SAME_CLOCK && align.processes[2].via == 1 &&
			    align.processes[2].hops == 2 &&
			    align.processes[2].uncertainty_ns == 30 + HOP_NS &&
			    align.processes[2].offset_ns == align.processes[1].offset_ns &&
			    align.processes[2].middle_ns == align.processes[1].middle_ns &&
			    align.processes[2].island == 0 && !align.processes[2].is_uncertain);
	EXPECT_THAT("of the reference itself",
		    align.processes[6].source == ALIGN_SAME_CLOCK && align.processes[6].via == 0 &&
			    align.processes[6].hops == 1 &&
			    align.processes[6].uncertainty_ns == HOP_NS &&
			    align.processes[6].offset_ns == 4000);
	EXPECT_THAT("another boot has another clock", align.processes[3].source == ALIGN_ANCHOR &&
							      align.processes[3].island == 1 &&
							      align.processes[3].offset_ns == 4003);
	EXPECT_THAT("so has another host", align.processes[4].source == ALIGN_ANCHOR &&
						   align.processes[4].island == 2 &&
						   align.processes[4].offset_ns == 4004);
	EXPECT_THAT("an unknown boot is no one's",
		    align.processes[5].source == ALIGN_ANCHOR && align.processes[5].island == 3);
	EXPECT_EQUAL(align.island_count, 4);
	EXPECT_EQUAL(align.unaligned, 3);
	EXPECT_EQUAL(align.worst_uncertainty_ns, 130);
	over();

	/* Without any shared collective. */
	for (int i = 0; i < 3; i++) {
		struct recording_process *process = hand_process(&hand, "j", i, "a");

		snprintf(process->boot_id, sizeof(process->boot_id), i == 1 ? "" : "A");
		if (i == 0)
			anchor(i, 1, 1000, 5000);
	}
	solve(NULL, 0);
	EXPECT_THAT("the first is the reference",
		    align.reference == 0 && align.processes[0].source == ALIGN_REFERENCE &&
			    !align.processes[0].is_uncertain);
	EXPECT_THAT("no anchor, no boot", align.processes[1].source == ALIGN_NOTHING &&
						  align.processes[1].is_uncertain &&
						  align.processes[1].via == 1);
	EXPECT_THAT("an anchor of the same clock", align.processes[2].source == ALIGN_SAME_CLOCK &&
							   align.processes[2].offset_ns == 4000);
	EXPECT_THAT("two islands, one of them uncertain",
		    align.island_count == 2 && align.unaligned == 1);
	over();
}

static void test_anchors(void)
{
	const uint64_t wall = 1700000000000000000, s = 1000000000;
	static const struct {
		const char *sentence;
		size_t anchors;
		bool is_fresh;	   /* a fresh anchor, 20 s of recorder's time later */
		int64_t gained_s;  /* by the wall clock until then */
		uint64_t ended_ms; /* last activity, since the first anchor */
		int64_t offset_s;  /* expected, at its middle */
		uint32_t samples;
	} cases[] = {
		{ "no fresh anchor", 1, false, 0, 0, 0, 1 },
		{ "the wall clock was set after its last activity", 1, true, 60, 9999, 0, 1 },
		{ "the wall clock was set, last activity in the middle", 1, true, 60, 10000, 60,
		  2 },
		{ "the wall clock was set before its last activity", 2, true, 60, 10001, 60, 3 },
		{ "a steady clock, whenever it ended", 2, true, 0, 1, 0, 3 },
		{ "three anchors were taken continuously", 3, true, 60, 10001, 0, 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		processes(1);
		anchor(0, cases[i].anchors, 1 * s, wall + 1 * s);
		if (cases[i].is_fresh)
			hand.list[0]->fresh_anchor = (struct clock_anchor){
				21 * s, wall + 21 * s + (uint64_t)cases[i].gained_s * s
			};
		hand.list[0]->ended_ns = 1 * s + cases[i].ended_ms * 1000000;
		solve(NULL, 0);
		EXPECT_THAT(cases[i].sentence,
			    align.processes[0].source == ALIGN_REFERENCE &&
				    align.processes[0].offset_ns ==
					    (int64_t)wall + cases[i].offset_s * (int64_t)s &&
				    align.processes[0].samples == cases[i].samples &&
				    align.processes[0].drift == 0);
		over();
	}

	/* Twice as many as are examined: every second one, and the others are wrong. */
	processes(1);
	anchor(0, 512, 1 * s, wall + 1 * s);
	for (size_t i = 1; i < 512; i += 2)
		hand.list[0]->anchors[i].wall_ns += 3 * s;
	solve(NULL, 0);
	EXPECT_THAT("of many anchors 256, over all of the time",
		    align.processes[0].samples == 256 &&
			    align.processes[0].offset_ns == (int64_t)wall &&
			    align.processes[0].middle_ns > 1 * s + 200 * UINT64_C(1000000) &&
			    align.processes[0].middle_ns < 1 * s + 300 * UINT64_C(1000000));
	over();
}

static bool keep_fraction(double fraction, void *context)
{
	double *fractions = context;

	fractions[fractions[0] == 0 ? 0 : 1] = fraction;
	return true;
}

static void matched(struct recording_process *process, uint32_t comm, uint8_t source,
		    uint32_t flags, uint64_t apart_ns)
{
	for (uint64_t n = 1; n <= 40; n++) {
		struct op_record *op = hand_op(process, comm, OP_ALL_REDUCE, n, 8, 1000,
					       1000000000 + n * 1000000 + apart_ns);

		op->time_source = source;
		op->flags = flags;
	}
}

/* Two ranks that share nothing that says something about their clocks. */
static void test_what_counts(void)
{
	static const struct {
		const char *sentence;
		uint8_t function;
		bool has_number;
		bool is_over;
	} cases[] = {
		{ "a Broadcast does not end at one time", OP_BROADCAST, true, true },
		{ "an operation without a number is not shared", OP_ALL_REDUCE, false, true },
		{ "one without an end has no time", OP_ALL_REDUCE, true, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int rank = 0; rank < 2; rank++) {
			struct recording_process *process =
				hand_process(&hand, "j", rank, rank ? "b" : "a");
			uint32_t comm = hand_comm(process, 0x77, "", rank, 2, 2);

			for (uint64_t n = 1; n <= 40; n++) {
				struct op_record *op = hand_op(process, comm, cases[i].function,
							       cases[i].has_number ? n : 0, 8, 1000,
							       1000000000 + n * 1000000);

				if (!cases[i].is_over)
					op->done_ns = 0;
			}
		}
		if (job_make(&job, &hand.recording) != OK ||
		    align_make(&align, &job, NULL, NULL) != OK)
			abort();
		EXPECT_THAT(cases[i].sentence, align.island_count == 2 && align.unaligned == 1);
		job_release(&job);
		job = (struct job){ .recording = &hand.recording };
		over();
	}
}

/* A communicator has four sequences of numbers. Rank 0 has all of them, and a second communicator; the others one
 * each. */
static void test_sequences(void)
{
	double fractions[2] = { 0, 0 };

	for (int rank = 0; rank < 6; rank++) {
		struct recording_process *process = hand_process(&hand, "j", rank, "");
		uint32_t one = hand_comm(process, 0x77, "", rank, 6, 6);
		uint32_t two = hand_comm(process, 0x78, "", rank, 6, 6);
		uint64_t apart_ns = (uint64_t)rank * 7000000;

		snprintf(process->host, sizeof(process->host), "h%d", rank);
		if (rank == 0 || rank == 1)
			matched(process, two, OP_TIME_KERNEL_GPU, 0, apart_ns + 500000000);
		if (rank == 0 || rank == 2)
			matched(process, one, OP_TIME_KERNEL_GPU, 0, apart_ns);
		if (rank == 0 || rank == 3)
			matched(process, one, OP_TIME_PROXY, 0, apart_ns + 100000000);
		if (rank == 0 || rank == 4)
			matched(process, one, OP_TIME_KERNEL_GPU, OP_FLAG_REPLAY,
				apart_ns + 200000000);
		if (rank == 0 || rank == 5)
			matched(process, one, OP_TIME_PROXY, OP_FLAG_REPLAY, apart_ns + 300000000);
	}
	if (job_make(&job, &hand.recording) != OK)
		abort();
	EXPECT_EQUAL(align_make(&align, &job, keep_fraction, fractions), OK);
	EXPECT_THAT("without files nobody knows how much is left",
		    fractions[0] == 0.5 && fractions[1] == 0.5);
	EXPECT_THAT("all are aligned, exactly", align.island_count == 1 && align.unaligned == 0 &&
							align.worst_uncertainty_ns == 0);
	for (size_t p = 1; p < 6; p++) {
		EXPECT_EQUAL(align_ns(&align, p, 2000000000 + p * 7000000),
			     align_ns(&align, 0, 2000000000));
		EXPECT_EQUAL(align.processes[p].samples, 40);
	}
	job_release(&job);
	job = (struct job){ .recording = &hand.recording };
	over();
}

static void test_names(void)
{
	static const char *const names[] = { "nothing", "anchor",     "reference", "direct",
					     "chain",	"same_clock", "nothing" };

	for (int i = 0; i < 7; i++)
		EXPECT_THAT(names[i],
			    strcmp(align_source_name((enum align_source)i), names[i]) == 0);
}

int main(void)
{
	test_values_along_a_chain();
	test_shortest_paths();
	test_equal_paths();
	test_same_clock();
	test_anchors();
	test_what_counts();
	test_sequences();
	test_names();
	return tap_done();
}
