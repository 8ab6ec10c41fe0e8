/*
 * What slowness costs, how certain it is and how it reads, from reports made by hand: eight ranks on four hosts, a
 * recording of 1,000 s that begins at 22:13:20, and stragglers, iterations and counts as each test gives them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/slow_internal.h"
#include "tests/tap.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/hand_made.h"
#include "tests/support/poisoned_rest.h"

enum { RANKS = 8, ITERATIONS = 200 };
#define SECOND UINT64_C(1000000000)
#define START (1700000000 * SECOND)
#define END (START + 1000 * SECOND)

static struct hand_made hand;
static struct timeline_report report;
static struct straggler stragglers[4];
static struct straggler_judged judged;
static struct iteration iterations[ITERATIONS];
static struct verdicts verdicts;
static struct slow_options options;
static struct slow_search search;

static void begin(int ranks)
{
	hand = (struct hand_made){ .recording = { .count = 0 } };
	for (int rank = 0; rank < ranks; rank++) {
		char host[16];
		struct recording_process *process;

		snprintf(host, sizeof(host), "node%d", rank / 2);
		process = hand_process(&hand, "train", rank, host);
		hand_comm(process, 0x77, "world", rank, ranks, (ranks + 1) / 2);
		process->comms[0].counts.recorded = process->comms[0].counts.timed = 1000;
	}
	report = (struct timeline_report){
		.recording = &hand.recording,
		.start_ns = START,
		.end_ns = END,
		.has_wall = true,
		.completeness = { .keeps_all = true, .is_complete = true, .share = 1 },
		.total = { .timed = 100,
			   .calls = 100,
			   .by_source = { [OP_TIME_KERNEL_GPU] = 100 } },
		.matches = { .stride = 1 },
		.stragglers = { .list = stragglers, .jobs = &judged, .least_matches = 128 },
	};
	judged = (struct straggler_judged){ .is_judged = true, .matches = 1000, .comm = 0 };
	if (job_make(&report.job, &hand.recording) != OK)
		abort();
	poison_job(&report.job);
	verdicts_init(&verdicts);
	options = (struct slow_options){ .threshold = 0 };
	search = (struct slow_search){ .verdicts = &verdicts,
				       .report = &report,
				       .options = &options };
}

static void over(void)
{
	verdicts_release(&verdicts);
	job_release(&report.job);
	hand_release(&hand);
}

/* All verdicts. */
static struct expected_text found;

static void find_in(const char *test)
{
	if (slow_find(&verdicts, &report, &options) != OK)
		abort();
	expected_put_verdicts(&found, test, &verdicts);
}

#define find() find_in(__func__)

static bool is_near(double got, double wanted)
{
	return fabs(got - wanted) < 1e-6;
}

/* Title, evidence, caveats and next steps, one per line. */
static const char *text_of(const struct verdict *verdict)
{
	static char text[8192];

	text[0] = '\0';
	text_append(text, sizeof(text), "%s\n", verdict->title);
	for (size_t i = 0; i < verdict->evidence.count; i++)
		text_append(text, sizeof(text), "+ %s\n", verdict->evidence.list[i]);
	for (size_t i = 0; i < verdict->missing.count; i++)
		text_append(text, sizeof(text), "? %s\n", verdict->missing.list[i]);
	return text;
}

/* ---- stragglers -------------------------------------------------------------------------------- */

#define COST                                                                       \
	.channel = -1, .matches = 1000, .last_in = 900, .caused_ns = 700 * SECOND, \
	.cost_share = 0.0875, .confidence = 0.99
#define RANK COST, .class = STRAGGLER_SLOW_RANK, .rank = 3, .host = 1, .peer = UINT32_MAX
#define HOST COST, .class = STRAGGLER_SLOW_HOST, .rank = UINT32_MAX, .host = 1, .peer = UINT32_MAX
#define LINK(to) COST, .class = STRAGGLER_SLOW_LINK, .rank = 3, .host = 1, .peer = (to)
#define LATE .late_ns = SECOND / 50
#define FROM(from_s, until_s, share)                            \
	.has_times = true, .first_ns = START + (from_s)*SECOND, \
	.last_ns = START + (until_s)*SECOND, .share_of_time = (share)
#define ALWAYS FROM(0, 1000, 1)
#define LATE_LINES(when)                                                                         \
	"+ It arrives 20.0 ms later than the others at the collectives of world, " when ".\n"    \
	"+ It was last in 900 of 1000 collectives; the other ranks waited 11 min 40 s in total," \
	" 8.8% of all ranks' time.\n"

static void test_stragglers(void)
{
	static const struct {
		struct straggler straggler;
		enum verdict_class class;
		double confidence, cost_percent;
		uint32_t victims;
		uint64_t for_s;
		const char *text;
	} cases[] = {
		/* 700 s of the 8,000 s that eight ranks have. */
		{ { RANK, LATE, ALWAYS },
		  VERDICT_SLOW_RANK,
		  0.99,
		  8.75,
		  7,
		  1000,
		  "straggler: rank 3 on node1 (costs up to 9% of the job's time)\n" LATE_LINES(
			  "always") },
		/* The same in the second half: of 4,000 s. */
		{ { RANK, LATE, FROM(500, 1000, 1), .pattern = STRAGGLER_SINCE },
		  VERDICT_SLOW_RANK,
		  0.99,
		  17.5,
		  7,
		  500,
		  "straggler: rank 3 on node1 (costs up to 18% of the job's time)\n" LATE_LINES(
			  "since 22:21:40") },
		{ { RANK, LATE, FROM(0, 500, 1), .pattern = STRAGGLER_UNTIL },
		  VERDICT_SLOW_RANK,
		  0.99,
		  17.5,
		  7,
		  500,
		  "straggler: rank 3 on node1 (costs up to 18% of the job's time)\n" LATE_LINES(
			  "until 22:21:40") },
		/* A tenth of the recording, in bursts that span a half: a fifth of that time. */
		{ { RANK, LATE, FROM(250, 750, 0.1), .pattern = STRAGGLER_BURSTS },
		  VERDICT_SLOW_RANK,
		  0.99,
		  17.5,
		  7,
		  500,
		  "straggler: rank 3 on node1 (costs up to 18% of the job's time)\n" LATE_LINES(
			  "in bursts between 22:17:30 and 22:25:50 (20% of the time)") },
		{ { HOST, LATE, ALWAYS },
		  VERDICT_SLOW_HOST,
		  0.99,
		  8.75,
		  6,
		  1000,
		  "straggler: all ranks of node1 (costs up to 9% of the job's time)\n" LATE_LINES(
			  "always") },
		{ { HOST, LATE, ALWAYS, .is_any = true },
		  VERDICT_SLOW_HOST,
		  0.792,
		  8.75,
		  6,
		  1000,
		  "straggler: one or all ranks of node1 (costs up to 9% of the job's "
		  "time)\n" LATE_LINES("always") "? Each is late in another communicator: it may "
						 "be one of them, all "
						 "of them, or NVLink.\n" },
		{ { RANK, ALWAYS, .is_origin = true, .own_excess = 0.125 },
		  VERDICT_SLOW_RANK,
		  0.99,
		  0,
		  7,
		  1000,
		  "straggler: rank 3 on node1\n"
		  "+ It spends 12.5% more of the time outside of communication than the other "
		  "ranks of "
		  "world, always.\n"
		  "+ Other ranks wait for it in Sends, Recvs and collectives.\n"
		  "? What it costs is not known: no iterations could be compared.\n" },
		{ { HOST, ALWAYS, .is_origin = true, .own_excess = 0.125, .is_by_network = true },
		  VERDICT_SLOW_HOST,
		  0.792,
		  8.75,
		  6,
		  1000,
		  "straggler: one or all ranks of node1 (costs at least 9% of the job's time)\n"
		  "+ Its ranks spend 12.5% more of the time outside of communication than the "
		  "others of "
		  "world, always.\n"
		  "+ There are no GPU times: this is how long its Sends to other nodes wait for "
		  "their "
		  "GPU while it is in no Send or Recv.\n"
		  "+ Other ranks wait for it in Sends, Recvs and collectives.\n"
		  "? Operations inside the node have no GPU times: it may be one of its ranks, all "
		  "of "
		  "them, or NVLink.\n" },
		{ { RANK, ALWAYS, .is_starved = true, .slowdown = 4, .own_slowdown = 8 },
		  VERDICT_SLOW_RANK,
		  0.99,
		  8.75,
		  7,
		  1000,
		  "straggler: rank 3 on node1 (NCCL proxy thread short of CPU) (costs up to 9% of "
		  "the "
		  "job's time)\n"
		  "+ Its transfers take 4.0x longer on the wire than the median, but work that "
		  "needs no "
		  "network also takes 8.0x longer: its process is late, not the link.\n" },
		{ { LINK(5), LATE, ALWAYS, .slowdown = 2.5 },
		  VERDICT_SLOW_LINK,
		  0.9,
		  8.75,
		  7,
		  1000,
		  "slow link: rank 3 on node1 -> rank 5 on node2 (costs up to 9% of the job's "
		  "time)\n"
		  "+ Sends from rank 3 in world take 2.5x longer on the wire than the median, "
		  "always.\n"
		  "+ The rank itself is not late: its transfers are, and every rank in the "
		  "collective "
		  "waits for them.\n"
		  "? The channel is unknown: only RINGSIDE_MODE=full records individual "
		  "transfers.\n"
		  "? A receiver that takes data slowly would look the same as a slow link.\n" },
		{ { LINK(UINT32_MAX), .slowdown = 2.5, .is_bursty = true, .slow_share = 0.25 },
		  VERDICT_SLOW_LINK,
		  0.9,
		  8.75,
		  7,
		  1000,
		  "slow link: from rank 3 on node1 (costs up to 9% of the job's time)\n"
		  "+ Sends from rank 3 in world take 2.5x longer on the wire than the median, on "
		  "average.\n"
		  "+ It is intermittent: 25% of its sends there are slow, the rest are not.\n"
		  "? The channel and the peer are unknown: only RINGSIDE_MODE=full records "
		  "individual "
		  "transfers.\n" },
		/* Nobody is to blame: without iterations the cost is unknown, and it is a note. */
		{ { COST, LATE, ALWAYS, .class = STRAGGLER_HELD_UP, .rank = 3, .host = 1,
		    .peer = UINT32_MAX },
		  VERDICT_SLOW_COMM,
		  0.495,
		  0,
		  7,
		  1000,
		  "ranks of world wait for each other: cause unknown\n"
		  "+ Some arrive 20.0 ms later than others at its collectives, always, and no rank "
		  "spends more time outside of communication than the others: they are held up in "
		  "other "
		  "operations.\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool has_cost = !cases[i].straggler.is_origin || cases[i].straggler.is_by_network;
		const struct verdict *verdict;

		begin(RANKS);
		stragglers[0] = cases[i].straggler;
		report.stragglers.count = 1;
		options.gpu_hour_price = 3.6;
		find();
		verdict = verdicts.list;
		EXPECT(verdicts.count == 1 && verdict->class == cases[i].class);
		if (!EXPECT(strcmp(text_of(verdict), cases[i].text) == 0))
			printf("# case %zu: %s", i, text_of(verdict));
		EXPECT(is_near(verdict->confidence, cases[i].confidence) &&
		       is_near(verdict->cost_percent, cases[i].cost_percent) &&
		       verdict->victims == cases[i].victims);
		EXPECT(verdict->for_ns == cases[i].for_s * SECOND);
		EXPECT(is_near(verdict->gpu_hours, has_cost ? 700 / 3600.0 : 0) &&
		       is_near(verdict->money, has_cost ? 0.7 : 0));
		EXPECT_EQUAL(verdict->severity, cases[i].straggler.class == STRAGGLER_HELD_UP
							? VERDICT_NOTE
							: VERDICT_WARNING);
		over();
	}
}

/* Several links of one sender, and what a hang or a slow link explains. */
static void test_together(void)
{
	static const struct straggler link = { LINK(5), LATE, ALWAYS, .slowdown = 2.5 };
	struct verdict *hang;

	begin(RANKS);
	stragglers[0] = stragglers[1] = stragglers[2] = link;
	stragglers[2].peer = 6;
	stragglers[2].slowdown = 3.5;
	report.stragglers.count = 2;
	find();
	EXPECT(verdicts.count == 1 && verdicts.list[0].peer == 5 &&
	       strstr(text_of(verdicts.list), "+ The same in world: 2.5x longer.\n") != NULL);
	over();

	begin(RANKS);
	stragglers[1] = stragglers[2];
	report.stragglers.count = 2;
	find();
	EXPECT(verdicts.count == 1 && verdicts.list[0].peer == -1 &&
	       strcmp(verdicts.list[0].title,
		      "slow links: from rank 3 on node1 to several ranks") == 0 &&
	       strstr(text_of(verdicts.list),
		      "+ Sends to rank 6 also take 3.5x longer on the wire.\n") != NULL);
	over();

	begin(RANKS);
	stragglers[0] = link;
	stragglers[1] = (struct straggler){ RANK, LATE, ALWAYS };
	stragglers[1].rank = 5;
	stragglers[1].host = 2;
	report.stragglers.count = 2;
	find();
	EXPECT_THAT("a link of a collective makes no rank late for the next one of it",
		    verdicts.count == 2);
	over();

	begin(RANKS);
	stragglers[0].is_of_sends = true;
	report.stragglers.count = 2;
	find();
	EXPECT_THAT(
		"a link of Sends does",
		verdicts.count == 1 && verdicts.list[0].class == VERDICT_SLOW_LINK &&
			strstr(text_of(verdicts.list),
			       "+ As a result rank 5 arrives 20.0 ms late at the collectives of "
			       "world; the other ranks there waited 11 min 40 s in total.\n") !=
				NULL);
	over();

	for (int what = 0; what < 4; what++) {
		begin(RANKS);
		stragglers[0] = link;
		report.stragglers.count = 1;
		hang = verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR);
		text_copy(hang->job, sizeof(hang->job), what == 3 ? "another" : "train");
		hang->rank = what == 0 ? 3 : what == 1 ? 5 : what == 2 ? 4 : 3;
		find();
		EXPECT_THAT("a stuck rank at either end is reported as a hang, not as a slow link",
			    verdicts.count == (what < 2 ? 1 : 2));
		over();
	}
}

/* ---- what it costs ----------------------------------------------------------------------------- */

/* 100 iterations of 5 s, then some that take longer; the job's median is 5 s. */
static void add_iterations(double later_s)
{
	uint64_t at = START;

	for (int i = 0; i < ITERATIONS; i++) {
		uint64_t took = i < 100 ? 5 * SECOND : (uint64_t)(later_s * 1e9);

		iterations[i] = (struct iteration){ .start_ns = at, .end_ns = at + took };
		at += took;
	}
	report.iterations = (struct iterations){ .is_found = true,
						 .list = iterations,
						 .count = ITERATIONS,
						 .regular = ITERATIONS,
						 .period_ops = 10,
						 .median_ns = 5 * SECOND };
	report.end_ns = at;
}

static void test_cost(void)
{
	static const struct {
		const char *what;
		int ranks;
		double later_s; /* of iterations after the first 500 s; 0: none are known */
		uint64_t from_s, until_s, for_s;
		double lost_s; /* in operations, over all ranks */
		enum verdict_class class;
		bool is_least;
		double cost_percent;
		bool is_bound;
		enum verdict_severity severity;
		const char *tail; /* of the title */
	} cases[] = {
		/* Iterations of 6.25 s instead of 5: a fifth. The operations lost far more. */
		{ "measured", 8, 6.25, 500, 0, 625, 4000, VERDICT_SLOW_RANK, false, 20, false,
		  VERDICT_WARNING, " (costs 20% of the job's time)" },
		/* 5,000 s are 8 x 625 s, of which 6.67% were lost where it was seen: three times as much may be. */
		{ "more than was seen", 8, 6.25, 500, 0, 625, 334, VERDICT_SLOW_RANK, false, 20,
		  false, VERDICT_WARNING, " (costs 20% of the job's time)" },
		{ "bounded", 8, 6.25, 500, 0, 625, 333, VERDICT_SLOW_RANK, false, 6.66, false,
		  VERDICT_WARNING, " (costs 7% of the job's time)" },
		{ "only a part is known", 8, 6.25, 500, 0, 625, 500, VERDICT_SLOW_RANK, true, 20,
		  false, VERDICT_WARNING, " (costs 20% of the job's time)" },
		{ "not longer", 8, 5, 500, 0, 500, 4000, VERDICT_SLOW_RANK, false, 0, false,
		  VERDICT_NOTE, " (costs less than 1% of the job's time)" },
		{ "no iterations", 8, 0, 0, 0, 1000, 4000, VERDICT_SLOW_RANK, false, 50, true,
		  VERDICT_WARNING, " (costs up to 50% of the job's time)" },
		{ "no iterations, only a part", 8, 0, 0, 0, 1000, 4000, VERDICT_SLOW_RANK, true, 50,
		  true, VERDICT_WARNING, " (costs at least 50% of the job's time)" },
		{ "no less than 2%", 8, 0, 0, 0, 1000, 160, VERDICT_SLOW_RANK, false, 2, true,
		  VERDICT_WARNING, " (costs up to 2% of the job's time)" },
		{ "less than 2%", 8, 0, 0, 0, 1000, 159, VERDICT_SLOW_RANK, false, 1.9875, true,
		  VERDICT_NOTE, " (costs up to 2% of the job's time)" },
		{ "less than 1%", 8, 0, 0, 0, 1000, 79, VERDICT_SLOW_RANK, false, 0.9875, true,
		  VERDICT_NOTE, " (costs less than 1% of the job's time)" },
		/* Of three ranks, one is always the slowest. */
		{ "few ranks", 3, 0, 0, 0, 1000, 299, VERDICT_SLOW_RANK, false, 9.966666666, true,
		  VERDICT_NOTE, " (costs up to 10% of the job's time)" },
		{ "few ranks, more", 3, 0, 0, 0, 1000, 300, VERDICT_SLOW_HOST, false, 10, true,
		  VERDICT_WARNING, " (costs up to 10% of the job's time)" },
		{ "four ranks", 4, 0, 0, 0, 1000, 300, VERDICT_SLOW_RANK, false, 7.5, true,
		  VERDICT_WARNING, " (costs up to 8% of the job's time)" },
		/* The same of three hosts, which have two ranks each; not of four. */
		{ "three hosts", 6, 0, 0, 0, 1000, 300, VERDICT_SLOW_HOST, false, 5, true,
		  VERDICT_NOTE, " (costs up to 5% of the job's time)" },
		{ "three hosts, more", 6, 0, 0, 0, 1000, 600, VERDICT_SLOW_HOST, false, 10, true,
		  VERDICT_WARNING, " (costs up to 10% of the job's time)" },
		{ "three hosts, a rank", 6, 0, 0, 0, 1000, 300, VERDICT_SLOW_RANK, false, 5, true,
		  VERDICT_WARNING, " (costs up to 5% of the job's time)" },
		{ "four hosts", 8, 0, 0, 0, 1000, 400, VERDICT_SLOW_HOST, false, 5, true,
		  VERDICT_WARNING, " (costs up to 5% of the job's time)" },
		/* Of a link only those lost it who are named as victims, and the sender: four. */
		{ "of those who lost it", 8, 0, 0, 0, 1000, 400, VERDICT_SLOW_LINK, false, 10, true,
		  VERDICT_WARNING, " (costs up to 10% of the job's time)" },
		{ "everything", 8, 0, 0, 0, 1000, 9000, VERDICT_SLOW_RANK, false, 100, true,
		  VERDICT_WARNING, " (costs up to 100% of the job's time)" },
		{ "nothing", 8, 0, 0, 0, 1000, 0, VERDICT_SLOW_RANK, false, 0, true,
		  VERDICT_WARNING, "" },
		/* Over: 10% of 50 s are half a percent of the recording, of 49 s less. */
		{ "over", 8, 0, 0, 50, 50, 40, VERDICT_SLOW_RANK, false, 10, true, VERDICT_WARNING,
		  " (costs up to 10% of the job's time)" },
		{ "over, too short", 8, 0, 0, 49, 49, 39.2, VERDICT_SLOW_RANK, false, 10, true,
		  VERDICT_NOTE, " (costs up to 10% of the job's time)" },
		{ "not over for long", 8, 0, 900, 950, 49, 39.2, VERDICT_SLOW_RANK, false, 10, true,
		  VERDICT_WARNING, " (costs up to 10% of the job's time)" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slow_span span = { .is_least = cases[i].is_least };
		struct verdict *verdict;
		double lost_s;

		begin(cases[i].ranks);
		if (cases[i].later_s > 0)
			add_iterations(cases[i].later_s);
		span.from_ns = cases[i].from_s > 0 ? START + cases[i].from_s * SECOND : 0;
		span.until_ns = cases[i].until_s > 0 ? START + cases[i].until_s * SECOND : 0;
		verdict = slow_verdict(&search, cases[i].class, SLOW_PAST);
		EXPECT(strcmp(verdict->job, "train") == 0 && strcmp(verdict->rule, "past") == 0);
		verdict->for_ns = cases[i].for_s * SECOND;
		verdict->victims = 3;
		slow_fill_cost(&search, verdict, cases[i].lost_s * 1e9);
		slow_fill_severity(&search, verdict, &span);
		/* Measured in iterations, all ranks lose it; else what is known is the time in operations. */
		lost_s = cases[i].is_bound || cases[i].tail[0] == '\0'
				 ? cases[i].lost_s
				 : verdict->cost_percent / 100 * (double)cases[i].for_s *
					   cases[i].ranks;
		if (!EXPECT_THAT(cases[i].what,
				 fabs(verdict->cost_percent - cases[i].cost_percent) < 1e-4 &&
					 fabs(verdict->gpu_hours * 3600 - lost_s) < 1e-6 &&
					 verdict->is_cost_bound == cases[i].is_bound &&
					 verdict->is_cost_least ==
						 (cases[i].is_bound && cases[i].is_least) &&
					 verdict->severity == cases[i].severity &&
					 strcmp(verdict->title, cases[i].tail) == 0))
			printf("# %g %d %d '%s' %g\n", verdict->cost_percent,
			       verdict->is_cost_bound, verdict->severity, verdict->title,
			       verdict->gpu_hours * 3600);
		over();
	}
}

/* ---- what iterations show -------------------------------------------------------------------------- */

/* Iterations of three durations, one after the other; the second ones may take turns with shorter ones. */
struct course {
	int counts[3];
	double seconds[3];
	double other_s; /* every other one of the second kind, beginning with the second; 0: none */
	int odd;	/* so many at the beginning are no iterations */
};

static uint64_t play_course(const struct course *course)
{
	uint64_t at = START;
	size_t count = 0;

	for (int part = 0; part < 3; part++)
		for (int i = 0; i < course->counts[part]; i++) {
			double seconds = part == 1 && course->other_s > 0 && i % 2 == 1
						 ? course->other_s
						 : course->seconds[part];
			uint64_t took = (uint64_t)(seconds * 1e9);

			if (count == ITERATIONS)
				abort();
			iterations[count] =
				(struct iteration){ .start_ns = at,
						    .end_ns = at + took,
						    .is_odd = (int)count < course->odd };
			count++;
			at += took;
		}
	report.iterations = (struct iterations){ .is_found = true,
						 .list = iterations,
						 .count = count,
						 .regular = count,
						 .period_ops = 10,
						 .median_ns = 10 * SECOND };
	report.end_ns = at;
	return at;
}

static bool is_range(const struct verdict *verdict)
{
	return verdict->is_cost_bound && verdict->cost_least_percent > 0;
}

/*
 * The median is 10 s, so what is within 20 s of a border is left out. Five iterations are needed while it was slow, and
 * five before or after.
 */
static void test_measured(void)
{
	static const struct {
		const char *what;
		struct course course;
		uint64_t from_s, until_s; /* 0: none */
		double share;
		double percent; /* -1: not known from iterations */
	} cases[] = {
		{ "before, while, after",
		  { { 20, 20, 20 }, { 10, 20, 10 }, 0, 0 },
		  200,
		  600,
		  0,
		  50 },
		{ "faster after it", { { 20, 20, 20 }, { 12, 20, 10 }, 0, 0 }, 240, 640, 0, 50 },
		{ "slower after it", { { 20, 20, 20 }, { 10, 20, 12 }, 0, 0 }, 200, 600, 0, 50 },
		{ "five before it", { { 7, 20, 0 }, { 10, 20, 0 }, 0, 0 }, 70, 0, 0, 50 },
		{ "four before it", { { 6, 20, 0 }, { 10, 20, 0 }, 0, 0 }, 60, 0, 0, -1 },
		{ "four before it, but many after",
		  { { 6, 20, 20 }, { 10, 20, 16 }, 0, 0 },
		  60,
		  460,
		  0,
		  20 },
		{ "five after it", { { 0, 20, 7 }, { 0, 20, 10 }, 0, 0 }, 0, 400, 0, 50 },
		{ "four after it", { { 0, 20, 6 }, { 0, 20, 10 }, 0, 0 }, 0, 400, 0, -1 },
		{ "five while it lasted",
		  { { 20, 7, 20 }, { 10, 20, 10 }, 0, 0 },
		  200,
		  340,
		  0,
		  50 },
		{ "four while it lasted",
		  { { 20, 6, 20 }, { 10, 20, 10 }, 0, 0 },
		  200,
		  320,
		  0,
		  -1 },
		{ "from the beginning on", { { 0, 7, 20 }, { 0, 20, 10 }, 0, 0 }, 0, 140, 0, 50 },
		{ "those that are none do not count",
		  { { 20, 20, 0 }, { 10, 20, 0 }, 0, 14 },
		  200,
		  0,
		  0,
		  -1 },
		{ "five that do are left", { { 20, 20, 0 }, { 10, 20, 0 }, 0, 13 }, 200, 0, 0, 50 },
		/* 40, 5, 40 ... of which the first is left out: ten of 5 s and nine of 40 s. */
		{ "in turns, the median", { { 20, 20, 0 }, { 10, 40, 0 }, 5, 0 }, 200, 0, 0, 0 },
		/* With an end, the last two are left out, too: nine of 5 s and eight of 40 s, and their mean. */
		{ "in turns, in bursts",
		  { { 20, 20, 20 }, { 10, 40, 10 }, 5, 0 },
		  200,
		  650,
		  0.5,
		  100 - 1000 / (365 / 17.0) },
		{ "bursts of nearly all the time are none",
		  { { 20, 21, 20 }, { 10, 40, 10 }, 35, 0 },
		  200,
		  990,
		  0.95,
		  100 - 1000 / 35.0 },
		{ "bursts of a little less are",
		  { { 20, 21, 20 }, { 10, 40, 10 }, 5, 0 },
		  200,
		  690,
		  0.94,
		  100 - 1000 / (410 / 19.0) },
		{ "no time is given", { { 20, 20, 20 }, { 10, 20, 10 }, 0, 0 }, 0, 0, 0, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slow_span span = { .share = cases[i].share };
		struct verdict *verdict;

		begin(RANKS);
		play_course(&cases[i].course);
		span.from_ns = cases[i].from_s > 0 ? START + cases[i].from_s * SECOND : 0;
		span.until_ns = cases[i].until_s > 0 ? START + cases[i].until_s * SECOND : 0;
		verdict = slow_verdict(&search, VERDICT_SLOW_RANK, SLOW_PAST);
		slow_fill_span(verdict, &report, &span);
		slow_fill_cost(&search, verdict, 1e18);
		slow_fill_severity(&search, verdict, &span);
		if (!EXPECT_THAT(cases[i].what,
				 is_range(verdict)
					 ? cases[i].share > 0 &&
						   verdict->cost_least_percent < cases[i].percent &&
						   verdict->cost_percent > cases[i].percent
					 : verdict->is_cost_bound == (cases[i].percent < 0) &&
						   (cases[i].percent < 0 ||
						    fabs(verdict->cost_percent - cases[i].percent) <
							    1e-6)))
			printf("# %g to %g\n", verdict->cost_least_percent, verdict->cost_percent);
		over();
	}
}

/* Repetitions that take less than half of the time are none of the job's iterations, nor are those of another job. */
static void test_has_iterations(void)
{
	static const struct course course = { { 20, 20, 20 }, { 10, 20, 10 }, 0, 0 };

	for (int what = 0; what < 4; what++) {
		struct slow_span span = { .from_ns = START + 200 * SECOND,
					  .until_ns = START + 600 * SECOND };
		struct job_group groups[2], *own;
		struct verdict *verdict;

		begin(RANKS);
		play_course(&course);
		own = report.job.groups;
		groups[0] = groups[1] = *own;
		report.job.groups = groups;
		/* 60 x 10 s are half of 1,200 s. */
		report.end_ns = START + 1200 * SECOND + (what == 1);
		search.group = what == 2;
		report.iterations.is_found = what != 3;
		verdict = verdicts_add(&verdicts, VERDICT_SLOW_RANK, VERDICT_WARNING);
		slow_fill_span(verdict, &report, &span);
		slow_fill_cost(&search, verdict, 1e15);
		slow_fill_severity(&search, verdict, &span);
		EXPECT_EQUAL(verdict->is_cost_bound, what != 0);
		report.job.groups = own;
		over();
	}
}

/* Without a time before or after it, iterations are compared with those of the baseline. */
static void test_like_baseline(void)
{
	static const struct {
		const char *what;
		uint64_t regular, then_iterations;
		uint32_t then_ops, then_ranks;
		double then_s;
		double percent; /* -1: not compared */
	} cases[] = {
		{ "alike", 10, 10, 10, RANKS, 4, 60 },
		{ "few iterations", 9, 10, 10, RANKS, 4, -1 },
		{ "few iterations then", 10, 9, 10, RANKS, 4, -1 },
		{ "other operations", 10, 10, 11, RANKS, 4, -1 },
		{ "other ranks", 10, 10, 10, RANKS + 1, 4, -1 },
		{ "no iterations then", 10, 10, 10, RANKS, 0, -1 },
		{ "slower then", 10, 10, 10, RANKS, 12, 0 },
	};
	static const struct course course = { { 20, 20, 20 }, { 10, 10, 10 }, 0, 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct baseline baseline = { .ranks = cases[i].then_ranks,
						   .iterations = cases[i].then_iterations,
						   .iteration_ops = cases[i].then_ops,
						   .iteration_ns = cases[i].then_s * 1e9 };
		struct slow_span span = { .from_ns = 0 };
		struct verdict *verdict;

		begin(RANKS);
		play_course(&course);
		report.iterations.regular = cases[i].regular;
		options.baseline = &baseline;
		verdict = slow_verdict(&search, VERDICT_SLOW_NETWORK, SLOW_BASELINE);
		slow_fill_span(verdict, &report, &span);
		slow_fill_cost(&search, verdict, 1e18);
		slow_fill_severity(&search, verdict, &span);
		if (!EXPECT_THAT(cases[i].what,
				 verdict->is_cost_bound == (cases[i].percent < 0) &&
					 (cases[i].percent < 0 ||
					  fabs(verdict->cost_percent - cases[i].percent) < 1e-6)))
			printf("# %g\n", verdict->cost_percent);
		over();
	}
}

/* Caveats, and what they take from the confidence. */
static void test_caveats(void)
{
	static const struct {
		bool keeps_all, is_complete;
		double share;
		uint32_t missing, stride;
		uint64_t by_gpu;
		double confidence;
		const char *text;
	} cases[] = {
		{ true, true, 1, 0, 1, 100, 1, "" },
		{ true, true, 1, 0, 1, 50, 1, "" },
		{ true, true, 1, 0, 1, 49, 0.8,
		  "? Most calls have no GPU timestamps, so which rank was late is less "
		  "certain.\n" },
		{ true, false, 0.99, 0, 1, 100, 1, "" },
		{ true, false, 0.6, 0, 1, 100, 0.8,
		  "? Only 60% of the operations NCCL reported were read; the rest is unknown.\n" },
		{ true, true, 1, 3, 1, 100, 0.8,
		  "? 3 ranks of one communicator are not recorded; the straggler may be one of "
		  "them.\n" },
		{ true, true, 1, 0, 4, 100, 1,
		  "? Waiting was estimated from 1 in 4 groups of collectives because there are so "
		  "many.\n" },
		{ false, false, 0.6, 0, 1, 100, 1,
		  "? Flight mode keeps only the most recent operations; this covers the last 16 "
		  "min 40 "
		  "s.\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct verdict *verdict;

		begin(RANKS);
		report.completeness.keeps_all = cases[i].keeps_all;
		report.completeness.is_complete = cases[i].is_complete;
		report.completeness.share = cases[i].share;
		report.job.comms[0].missing = cases[i].missing;
		report.matches.stride = cases[i].stride;
		report.total.by_source[OP_TIME_KERNEL_GPU] = cases[i].by_gpu;
		report.total.by_source[OP_TIME_PROXY] = 100 - cases[i].by_gpu;
		verdict = slow_verdict(&search, VERDICT_SLOW_RANK, SLOW_PAST);
		slow_fill_missing(&search, verdict);
		if (!EXPECT(is_near(verdict->confidence, cases[i].confidence) &&
			    strcmp(text_of(verdict) + 1, cases[i].text) == 0))
			printf("# %g %s", verdict->confidence, text_of(verdict));
		over();
	}
}

/* Over, in a job that still runs? After its end everything is over. */
static void test_is_over(void)
{
	begin(RANKS);
	EXPECT(!slow_is_over(&search, true));
	hand.list[6]->life = RECORDING_ALIVE;
	EXPECT(slow_is_over(&search, true) && !slow_is_over(&search, false));
	hand.list[6]->life = RECORDING_ENDED;
	hand.list[7]->is_snapshot = true;
	EXPECT(slow_is_over(&search, true));
	search.group = 1;
	EXPECT(!slow_is_over(&search, true));
	over();
}

static void test_sampled(void)
{
	begin(RANKS);
	EXPECT(slow_sampled(&report.job, 0) == 1);
	for (int rank = 0; rank < RANKS; rank++)
		hand.list[rank]->comms[0].counts.timed = 250;
	EXPECT(slow_sampled(&report.job, 0) == 4);
	for (int rank = 0; rank < RANKS; rank++)
		hand.list[rank]->comms[0].has_counts = rank == 0;
	EXPECT(slow_sampled(&report.job, 0) == 4);
	hand.list[0]->comms[0].counts.timed = 0;
	EXPECT(slow_sampled(&report.job, 0) == 1);
	over();
}

static void test_when(void)
{
	static const struct {
		uint64_t from_s, until_s;
		double share;
		const char *text;
	} cases[] = {
		{ 0, 0, 0, "always" },
		{ 500, 0, 0, "since 22:21:40" },
		{ 0, 500, 0, "until 22:21:40" },
		{ 100, 500, 0, "between 22:15:00 and 22:21:40" },
		{ 100, 500, 0.95, "between 22:15:00 and 22:21:40" },
		{ 100, 500, 0.94, "in bursts between 22:15:00 and 22:21:40 (94% of the time)" },
		{ 500, 0, 0.5, "since 22:21:40" },
	};

	begin(RANKS);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slow_span span = {
			.from_ns = cases[i].from_s > 0 ? START + cases[i].from_s * SECOND : 0,
			.until_ns = cases[i].until_s > 0 ? START + cases[i].until_s * SECOND : 0,
			.share = cases[i].share
		};

		EXPECT_THAT(cases[i].text,
			    strcmp(slow_when(&report, &span).text, cases[i].text) == 0);
	}
	over();
}

/* ---- what was not judged ----------------------------------------------------------------------- */

static void test_unjudged(void)
{
	static const struct {
		bool is_judged;
		uint64_t matches;
		uint64_t recorded, timed; /* of each rank */
		uint64_t by_gpu;
		const char *title; /* "": no note */
	} cases[] = {
		{ true, 1000, 1000, 1000, 100, "" },
		{ true, 1000, 1000, 1000, 50, "" },
		{ true, 1000, 1000, 1000, 49,
		  "not judged: stragglers (49 of 100 calls have GPU timestamps)" },
		/* Enough calls to name a straggler, and none of them has a time. */
		{ true, 1000, 128, 0, 100,
		  "not judged: stragglers on 1 communicator (0 of 1024 calls there are timed)" },
		{ true, 1000, 127, 0, 100, "" },
		{ true, 1000, 128, 1, 100, "" },
		{ false, 0, 1000, 0, 100, "not judged: speed (0 of 8000 calls are timed)" },
		{ false, 0, 1000, 1000, 100,
		  "not judged: speed (no collectives could be compared between ranks)" },
		{ false, 1, 1000, 1000, 100,
		  "not judged: speed (1 collective of world could be compared, 128 needed)" },
		{ false, 127, 1000, 500, 100,
		  "not judged: speed (127 collectives of world could be compared, 128 needed)" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct verdict *note;

		begin(RANKS);
		judged.is_judged = cases[i].is_judged;
		judged.matches = cases[i].matches;
		report.total.by_source[OP_TIME_KERNEL_GPU] = cases[i].by_gpu;
		report.total.by_source[OP_TIME_PROXY] = 100 - cases[i].by_gpu;
		for (int rank = 0; rank < RANKS; rank++) {
			hand.list[rank]->comms[0].counts.recorded = cases[i].recorded;
			hand.list[rank]->comms[0].counts.timed = cases[i].timed;
		}
		find();
		note = verdicts.list;
		EXPECT_EQUAL(verdicts.count, cases[i].title[0] != '\0');
		if (verdicts.count == 1 &&
		    !EXPECT_THAT(cases[i].title, strcmp(note->title, cases[i].title) == 0 &&
							 note->is_unjudged &&
							 note->class == VERDICT_BLIND &&
							 note->severity == VERDICT_NOTE &&
							 strcmp(note->rule, "speed") == 0))
			printf("# %s\n", note->title);
		over();
	}
	begin(1);
	judged.is_judged = false;
	find();
	EXPECT_THAT("a rank alone has nobody to be compared with", verdicts.count == 0);
	over();
}

/* ---- iterations that became longer -------------------------------------------------------------- */

static void test_longer(void)
{
	static const struct {
		double before_s, after_s;
		int cut;       /* how many are before */
		double busy_s; /* more than before, in communication */
		bool is_judged;
		double percent; /* 0: nothing is reported */
		const char *title;
		double confidence;
		enum verdict_severity severity;
	} cases[] = {
		{ 5, 6, 100, 0, true, 20,
		  "iterations take 20% longer than before; time in communication did not grow "
		  "(costs 17% of the job's time)",
		  0.9, VERDICT_WARNING },
		{ 5, 6, 8, 0, true, 20,
		  "iterations take 20% longer than before; time in communication did not grow "
		  "(costs 17% of the job's time)",
		  0.9, VERDICT_WARNING },
		{ 5, 6, 4, 0, true, 20,
		  "iterations take 20% longer than before; time in communication did not grow "
		  "(costs 17% of the job's time)",
		  0.9, VERDICT_WARNING },
		{ 5, 6, 3, 0, true, 0, "", 0, 0 },
		/* A fifth of the additional time explains it. */
		{ 5, 6, 100, 0.3, true, 20,
		  "iterations take 20% longer than before: cause not visible (costs 17% of the "
		  "job's time)",
		  0.95, VERDICT_WARNING },
		{ 5, 6, 100, 0.1, true, 20,
		  "iterations take 20% longer than before; time in communication did not grow "
		  "(costs 17% of the job's time)",
		  0.9, VERDICT_WARNING },
		/* Four fifths are all of it. */
		{ 5, 6, 100, 0.7, true, 20,
		  "iterations take 20% longer than before: cause not visible (costs 17% of the "
		  "job's time)",
		  0.95, VERDICT_WARNING },
		{ 5, 6, 100, 0.85, true, 20,
		  "iterations take 20% longer than before: communication takes longer (costs 17% "
		  "of the job's time)",
		  0.95, VERDICT_WARNING },
		{ 5, 6, 100, 0.85, false, 20,
		  "iterations take 20% longer than before: cause not visible (costs 17% of the "
		  "job's time)",
		  0.95, VERDICT_WARNING },
		{ 5, 6, 100, 0, false, 20,
		  "iterations take 20% longer than before: cause not visible (costs 17% of the "
		  "job's time)",
		  0.95, VERDICT_WARNING },
		/* A tenth of the time is a warning, less a note. */
		{ 4.5, 5, 100, 0, false, 11.111111,
		  "iterations take 11% longer than before: cause not visible (costs 10% of the "
		  "job's time)",
		  0.95, VERDICT_WARNING },
		{ 4.51, 5, 100, 0, false, 10.864745,
		  "iterations take 11% longer than before: cause not visible (costs 10% of the "
		  "job's time)",
		  0.4, VERDICT_NOTE },
		{ 5, 5.24, 100, 0, true, 0, "", 0, 0 },
		{ 5, 5.26, 100, 0, true, 5.2,
		  "iterations take 5% longer than before; time in communication did not grow "
		  "(costs 5% of the job's time)",
		  0.9, VERDICT_NOTE },
		{ 5, 4, 100, 0, true, 0, "", 0, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t at = START;
		const struct verdict *verdict = NULL;

		begin(RANKS);
		for (int j = 0; j < ITERATIONS; j++) {
			bool is_after = j >= cases[i].cut;
			uint64_t took =
				(uint64_t)((is_after ? cases[i].after_s : cases[i].before_s) * 1e9);

			/* Half of its operations are timed, so communication takes twice as long. */
			iterations[j] = (struct iteration){
				.start_ns = at,
				.end_ns = at + took,
				.ops = 10,
				.timed = 5,
				.busy_ns = SECOND +
					   (uint64_t)(is_after ? cases[i].busy_s * 1e9 / 2 : 0)
			};
			at += took;
		}
		report.end_ns = at;
		report.iterations = (struct iterations){ .is_found = true,
							 .list = iterations,
							 .count = ITERATIONS,
							 .regular = ITERATIONS,
							 .median_ns = 5 * SECOND };
		/* Nothing is judged by stragglers, but by the rest. */
		report.stragglers.least_matches = 128;
		judged.is_judged = true;
		report.stragglers.late_matches = 1;
		if (!cases[i].is_judged) {
			report.total.by_source[OP_TIME_KERNEL_GPU] = 49;
			report.total.by_source[OP_TIME_PROXY] = 51;
		}
		find();
		for (size_t v = 0; v < verdicts.count; v++)
			if (verdicts.list[v].class == VERDICT_BELOW_EXPECTED)
				verdict = &verdicts.list[v];
		EXPECT_EQUAL(verdict != NULL, cases[i].percent > 0);
		if (verdict != NULL && cases[i].percent > 0) {
			char line[200];

			snprintf(line, sizeof(line),
				 "+ %d iterations are compared with the %d before, since",
				 ITERATIONS - cases[i].cut, cases[i].cut);
			if (!EXPECT(strcmp(verdict->title, cases[i].title) == 0 &&
				    fabs(verdict->percent - cases[i].percent) < 1e-3 &&
				    verdict->severity == cases[i].severity &&
				    verdict->victims == RANKS))
				printf("# %s %g\n", verdict->title, verdict->percent);
			EXPECT(strstr(text_of(verdict), line) != NULL &&
			       is_near(verdict->confidence, cases[i].confidence));
			EXPECT_EQUAL(verdict->since_wall_ns,
				     START + (uint64_t)(cases[i].cut * cases[i].before_s * 1e9));
		}
		over();
	}
}

/* Iterations as they may be in a healthy job, and the same with a rise in it. */
static void test_rise(void)
{
	enum { SLOW_FROM = 80, MANY = 4000 };
	static struct iteration many[MANY];
	static const struct {
		const char *what;
		int count;
		int until;     /* SLOW_FROM / ITERATIONS of the count until this / ITERATIONS */
		double spread; /* of durations, as a share, in turns of some iterations */
		double ratio;  /* in the rise */
		double bytes;  /* there, relative to the others */
		bool is_found, is_clear, is_over;
	} cases[] = {
		{ "alike", 200, 200, 0, 1, 1, false, false, false },
		{ "with a spread", 200, 200, 0.3, 1, 1, false, false, false },
		{ "longer from then on", 200, 200, 0.05, 1.5, 1, true, true, false },
		{ "longer for a while", 200, 160, 0.05, 1.5, 1, true, true, true },
		{ "all longer, though no longer than single ones before", 200, 200, 0.3, 1.3, 1,
		  true, true, false },
		{ "longer by something of which a tenth is not sure", 200, 200, 0.3, 1.22, 1, true,
		  false, false },
		{ "not surely longer", 200, 200, 0.3, 1.14, 1, false, false, false },
		{ "a few, for a while", 200, 86, 0.05, 1.5, 1, true, true, true },
		{ "fewer", 200, 83, 0.05, 1.5, 1, false, false, false },
		{ "another phase, with more data", 200, 200, 0.05, 1.5, 1.1, true, false, false },
		{ "with about as much", 200, 200, 0.05, 1.5, 1.04, true, true, false },
		{ "many", MANY, 200, 0.05, 1.5, 1, true, true, false },
		{ "many, for a while", MANY, 160, 0.05, 1.5, 1, true, true, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int scale = cases[i].count / ITERATIONS;
		uint64_t at = START;
		struct slow_rise rise;

		begin(RANKS);
		for (int j = 0; j < cases[i].count; j++) {
			bool is_inside = j >= SLOW_FROM * scale && j < cases[i].until * scale;
			/* Not in step with the division into points. */
			double noise = 1 + cases[i].spread * ((j * 37 % 11) / 5.0 - 1);
			uint64_t took = (uint64_t)(5e9 * noise * (is_inside ? cases[i].ratio : 1));

			many[j] = (struct iteration){
				.start_ns = at,
				.end_ns = at + took,
				.bytes = (uint64_t)(1e9 * (is_inside ? cases[i].bytes : 1))
			};
			at += took;
		}
		report.end_ns = at;
		report.iterations = (struct iterations){ .is_found = true,
							 .list = many,
							 .count = (size_t)cases[i].count,
							 .regular = (size_t)cases[i].count,
							 .median_ns = 5 * SECOND };
		slow_find_rise(&search, &rise);
		if (!EXPECT_THAT(cases[i].what,
				 rise.is_found == cases[i].is_found &&
					 rise.is_clear == cases[i].is_clear &&
					 (rise.span.until_ns > 0) == cases[i].is_over))
			printf("# %d %d %g %zu-%zu\n", rise.is_found, rise.is_clear, rise.gap,
			       rise.first, rise.end);
		if (rise.is_found)
			EXPECT(rise.first / (size_t)scale >= SLOW_FROM - 1 &&
			       rise.first / (size_t)scale <= SLOW_FROM + 1 &&
			       rise.end / (size_t)scale + 1 >= (size_t)cases[i].until &&
			       rise.end / (size_t)scale <= (size_t)cases[i].until + 1);
		over();
	}
}

int main(void)
{
	test_stragglers();
	test_together();
	test_cost();
	test_measured();
	test_has_iterations();
	test_like_baseline();
	test_caveats();
	test_is_over();
	test_sampled();
	test_when();
	test_unjudged();
	test_longer();
	test_rise();
	expected_compare(&found, "tests/unit/doctor/expected/slow_cost.txt");
	return tap_done();
}
