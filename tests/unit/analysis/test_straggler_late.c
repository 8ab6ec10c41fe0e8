/*
 * Ranks and hosts that arrive late, and a network that became slower. In every AllReduce the ranks that are late take
 * 10 ms, and the others 10 ms and their lateness: so late_ns and what it costs follow from the lateness alone.
 */
#include "analysis/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/straggler_internal.h"
#include "analysis/timeline_report.h"
#include "tests/support/hand_made.h"
#include "tests/tap.h"
#include "tests/unit/analysis/straggler_show.h"

enum { MATCHES = 1024, RANKS_MAX = 12 };
#define MS UINT64_C(1000000)

static struct hand_made hand;
static struct timeline_report report;
/* Of the scenes with noise: ranks also differ from match to match, and are late up to this one; how many there are, and the
 * first one's number. */
static bool has_noise;
static uint64_t noise_ns = 3 * MS;
static int late_end = MATCHES, match_count = MATCHES, match_first = MATCH_CHUNK;
/* The last so many ranks were not recorded; this one takes part in two matches of three. */
static int unrecorded, seldom = -1;
static uint32_t flags; /* of all operations */

struct scene {
	int ranks;
	const char *hosts; /* a letter for each rank */
	int comms;	   /* rank r is in communicator r % comms */
	uint32_t late_ms[RANKS_MAX];
	int first; /* match from which on they are late */
};

static uint32_t latest_of(const struct scene *scene, int comm)
{
	uint32_t latest = 0;

	for (int rank = comm; rank < scene->ranks; rank += scene->comms)
		if (scene->late_ms[rank] > latest)
			latest = scene->late_ms[rank];
	return latest;
}

static void play(const struct scene *scene)
{
	struct timeline_options options = { 0 };

	for (int rank = 0; rank < scene->ranks - unrecorded; rank++) {
		char host[2] = { scene->hosts[rank], '\0' }, name[16];
		struct recording_process *process = hand_process(&hand, "j", rank, host);
		int comm = rank % scene->comms, members = scene->ranks / scene->comms;

		snprintf(name, sizeof(name), "c%d", comm);
		hand_comm(process, 0x70 + (uint64_t)comm, name, rank / scene->comms, members,
			  members);
		for (int i = 0; i < match_count; i++) {
			bool is_late = i >= scene->first && i < late_end;
			uint32_t waits =
				is_late ? latest_of(scene, comm) - scene->late_ms[rank] : 0;
			uint64_t more_ns = has_noise ? noisy(noise_ns, rank, i) : 0;

			if (rank == seldom && i % 3 == 0)
				continue;
			hand_op(process, 1, OP_ALL_REDUCE, (uint64_t)(i + match_first), 32 << 20,
				(10 + waits) * MS + more_ns, (uint64_t)(i + 1) * 100 * MS)
				->flags |= flags;
		}
	}
	if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
		abort();
}

static void over(void)
{
	timeline_report_release(&report);
	hand_release(&hand);
}

static bool is_near(double got, double wanted)
{
	return fabs(got - wanted) <= 0.001 * fabs(wanted);
}

/* Of two that are often late, one is a little more so. */
static void test_both_late(void)
{
	static const struct scene both = { 2, "ab", 1, { [1] = 6 }, 0 };
	const struct straggler *late;

	noise_ns = 30 * MS;
	has_noise = true;
	play(&both);
	late = report.stragglers.list;
	EXPECT_THAT("a rank is named that is the last one in most matches",
		    report.stragglers.count == 1 && late->rank == 1 &&
			    late->last_in > MATCHES / 2 && late->last_in < MATCHES * 9 / 10);
	EXPECT_THAT("it costs what it adds, not all the waiting for it",
		    report.stragglers.count == 1 &&
			    fabs((double)late->caused_ns - 6. * MS * MATCHES) <
				    0.2 * 6 * MS * MATCHES);
	if (report.stragglers.count == 1)
		printf("# %.3f ms per match, last in %llu\n",
		       (double)late->caused_ns / MATCHES / MS, (unsigned long long)late->last_in);
	over();
	has_noise = false;
	noise_ns = 3 * MS;
}

/* The time of all ranks from the first block's start to the last one's end, as the cost's share counts it. */
static const double all_ns = 1023.0 * 100e6;

static void test_rank(void)
{
	static const struct scene always = { 8, "abcdefgh", 1, { [3] = 20 }, 0 };
	static const struct scene since = { 8, "abcdefgh", 1, { [3] = 20 }, MATCHES / 2 };
	static const struct scene little = { 8, "abcdefgh", 1, { [3] = 1 }, 0 };
	const struct straggler *late;

	play(&always);
	late = report.stragglers.list;
	EXPECT(report.stragglers.count == 1 && late->class == STRAGGLER_SLOW_RANK &&
	       late->rank == 3 && late->host == 3 && late->pattern == STRAGGLER_ALWAYS);
	EXPECT(report.stragglers.count == 1 && late->late_ns == 20 * MS &&
	       late->matches == MATCHES && late->last_in == MATCHES);
	EXPECT_THAT("seven others wait 20 ms, a thousand times",
		    report.stragglers.count == 1 &&
			    is_near((double)late->caused_ns, 7 * 20e6 * MATCHES));
	EXPECT(report.stragglers.count == 1 &&
	       fabs(late->cost_share - 7 * 20e6 * MATCHES / (8 * all_ns)) < 0.01 &&
	       late->confidence > 0.99);
	EXPECT(report.stragglers.has_enough && report.stragglers.matches == MATCHES &&
	       report.stragglers.jobs[0].is_judged && report.stragglers.jobs[0].comm == 0 &&
	       report.stragglers.jobs[0].matches == MATCHES);
	over();

	play(&since);
	late = report.stragglers.list;
	EXPECT(report.stragglers.count == 1 && late->rank == 3 &&
	       late->pattern == STRAGGLER_SINCE && late->last_in >= MATCHES / 2);
	EXPECT(report.stragglers.count == 1 &&
	       is_near((double)late->caused_ns, 7 * 20e6 * MATCHES / 2) &&
	       fabs(late->share_of_time - 0.5) < 0.02);
	over();

	play(&little);
	EXPECT_THAT("a tenth of a collective's duration matters, less does not",
		    report.stragglers.count == 0);
	over();
}

/* Who is last shows in the durations, and those of CUDA events are exact where their place in time is not. */
static void test_rough_places(void)
{
	static const struct scene since = { 6, "aabbcc", 1, { [4] = 15 }, MATCHES / 4 };
	const struct straggler *late;

	flags = OP_FLAG_CUDA_EVENT | OP_FLAG_PLACE_ROUGH;
	play(&since);
	late = report.stragglers.list;
	EXPECT_THAT("a late rank is named",
		    report.stragglers.count == 1 && late->class == STRAGGLER_SLOW_RANK &&
			    late->rank == 4 && late->pattern == STRAGGLER_SINCE);
	EXPECT_THAT("with its cost and since when",
		    report.stragglers.count == 1 &&
			    is_near((double)late->caused_ns, 5 * 15e6 * (MATCHES - since.first)) &&
			    fabs(late->cost_share -
				 5 * 15e6 * (MATCHES - since.first) / (6 * all_ns)) < 0.01 &&
			    late->has_times && fabs(late->share_of_time - 0.75) < 0.02);
	EXPECT_THAT("clocks are not compared by them",
		    report.align.processes[1].source != ALIGN_DIRECT);
	over();
	flags = 0;
}

/* Others that are found are hidden by it. */
static bool has_one_ahead(void)
{
	return report.stragglers.count > 0 && !report.stragglers.list[0].is_behind &&
	       (report.stragglers.count == 1 || report.stragglers.list[1].is_behind);
}

static void test_hosts(void)
{
	static const struct {
		const char *what;
		struct scene scene;
		enum straggler_class class;
		uint32_t which;
		uint32_t late_ms;
		double caused_ms; /* per match */
		bool is_any;
	} cases[] = {
		{ "both ranks of a host",
		  { 8, "aabbccdd", 1, { [2] = 20, [3] = 20 }, 0 },
		  STRAGGLER_SLOW_HOST,
		  1,
		  20,
		  6 * 20,
		  false },
		{ "in the middle of three",
		  { 12, "aaabbbcccddd", 1, { [3] = 20, [4] = 20, [5] = 20 }, 0 },
		  STRAGGLER_SLOW_HOST,
		  1,
		  20,
		  9 * 20,
		  false },
		{ "the only host with two ranks",
		  { 8, "abbcdefg", 1, { [1] = 20, [2] = 20 }, 0 },
		  STRAGGLER_SLOW_HOST,
		  1,
		  20,
		  6 * 20,
		  false },
		{ "one much later than the other is a rank",
		  { 8, "aabbccdd", 1, { [2] = 50, [3] = 5 }, 0 },
		  STRAGGLER_SLOW_RANK,
		  2,
		  50,
		  6 * 45 + 45,
		  false },
		{ "half of all ranks, which hide each other",
		  { 8, "aaaabbbb", 1, { [4] = 20, [5] = 20, [6] = 20, [7] = 20 }, 0 },
		  STRAGGLER_SLOW_HOST,
		  1,
		  20,
		  4 * 20,
		  false },
		{ "half of all ranks, differently late",
		  { 8, "aaaabbbb", 1, { [4] = 20, [5] = 24, [6] = 28, [7] = 32 }, 0 },
		  STRAGGLER_SLOW_HOST,
		  1,
		  24,
		  4 * 24,
		  false },
		{ "each in a communicator of its own",
		  { 12, "aabbccddeeff", 2, { [2] = 20, [3] = 20 }, 0 },
		  STRAGGLER_SLOW_HOST,
		  1,
		  20,
		  2 * 5 * 20,
		  true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct straggler *late;

		play(&cases[i].scene);
		late = report.stragglers.list;
		if (!EXPECT_THAT(cases[i].what, has_one_ahead() && late->class == cases[i].class &&
							(late->class == STRAGGLER_SLOW_HOST
								 ? late->host
								 : late->rank) == cases[i].which))
			printf("# %zu found, class %d\n", report.stragglers.count,
			       report.stragglers.count ? (int)late->class : 0);
		if (report.stragglers.count == 1) {
			EXPECT(is_near((double)late->late_ns, cases[i].late_ms * 1e6));
			EXPECT(is_near((double)late->caused_ns,
				       cases[i].caused_ms * 1e6 * MATCHES));
			EXPECT(late->is_any == cases[i].is_any && late->confidence > 0.9);
			EXPECT(late->rank ==
			       (late->class == STRAGGLER_SLOW_HOST ? UINT32_MAX : cases[i].which));
		}
		over();
	}
}

/* Ranks differ from match to match; every field of what is found. */
static void test_noisy(void)
{
	static const struct {
		const char *name;
		struct scene scene;
		int end;
	} cases[] = {
		{ "nobody", { 8, "abcdefgh", 1, { 0 }, 0 }, MATCHES },
		{ "a rank", { 8, "abcdefgh", 1, { [3] = 20 }, 0 }, MATCHES },
		{ "a rank, little", { 8, "abcdefgh", 1, { [3] = 3 }, 0 }, MATCHES },
		{ "since", { 8, "abcdefgh", 1, { [3] = 20 }, MATCHES / 2 }, MATCHES },
		{ "until", { 8, "abcdefgh", 1, { [3] = 20 }, 0 }, MATCHES / 3 },
		{ "for a while", { 8, "aabbccdd", 1, { [3] = 20 }, 300 }, 500 },
		{ "two ranks", { 8, "abcdefgh", 1, { [3] = 20, [6] = 12 }, 0 }, MATCHES },
		{ "a host", { 8, "aabbccdd", 1, { [2] = 20, [3] = 20 }, 0 }, MATCHES },
		{ "half of all",
		  { 8, "aaaabbbb", 1, { [4] = 20, [5] = 24, [6] = 28, [7] = 32 }, 0 },
		  MATCHES },
		{ "most of a host",
		  { 8, "aaaabbbb", 1, { [4] = 20, [5] = 21, [6] = 22 }, 0 },
		  MATCHES },
		{ "a rank of a host", { 8, "aabbccdd", 1, { [2] = 50, [3] = 5 }, 0 }, MATCHES },
		{ "two hosts",
		  { 12, "aabbccddeeff", 1, { [2] = 20, [3] = 20, [6] = 18, [7] = 17 }, 0 },
		  MATCHES },
		{ "in communicators of its own",
		  { 12, "aabbccddeeff", 2, { [2] = 20, [3] = 20 }, 0 },
		  MATCHES },
		{ "in one of three", { 12, "abcdefghijkl", 3, { [4] = 20 }, 0 }, MATCHES },
		{ "of four", { 4, "abcd", 1, { [1] = 20 }, 0 }, MATCHES },
		{ "of three", { 3, "abc", 1, { [1] = 20 }, 0 }, MATCHES },
		{ "of two", { 2, "ab", 1, { [1] = 20 }, 0 }, MATCHES },
	};
	struct sink sink;

	sink_init_memory(&sink);
	has_noise = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		late_end = cases[i].end;
		play(&cases[i].scene);
		straggler_show(&sink, cases[i].name, report.stragglers.list,
			       report.stragglers.count, report.windows.start_ns);
		sink_format(&sink, "%zu explained, %llu matches\n", report.stragglers.explained,
			    (unsigned long long)report.stragglers.matches);
		over();
	}
	/* Up to a quarter of the ranks may be missing: nobody knows whether they were last. */
	late_end = MATCHES;
	for (unrecorded = 1; unrecorded <= 3; unrecorded++) {
		static const struct scene scene = { 8, "abcdefgh", 1, { [3] = 20 }, 0 };

		play(&scene);
		straggler_show(&sink, unrecorded == 1 ? "a rank is missing" : "ranks are missing",
			       report.stragglers.list, report.stragglers.count,
			       report.windows.start_ns);
		sink_format(&sink, "%llu matches, %s\n",
			    (unsigned long long)report.stragglers.matches,
			    report.stragglers.has_enough ? "enough" : "too few");
		over();
	}
	unrecorded = 0;
	for (seldom = 3; seldom <= 5; seldom += 2) {
		static const struct scene scene = { 8, "abcdefgh", 1, { [3] = 20 }, 0 };

		play(&scene);
		straggler_show(
			&sink, seldom == 3 ? "takes part seldom" : "another takes part seldom",
			report.stragglers.list, report.stragglers.count, report.windows.start_ns);
		over();
	}
	seldom = -1;
	/* Few matches, whose first and last blocks are thin: what happens only there is left out. */
	match_count = 200;
	match_first = MATCH_CHUNK + 20;
	for (int from = 0; from <= 188; from += 188) {
		struct scene scene = { 8, "abcdefgh", 1, { [3] = 20 }, from };

		late_end = from == 0 ? match_count : from + 12;
		play(&scene);
		straggler_show(&sink, from == 0 ? "few matches" : "only in the end",
			       report.stragglers.list, report.stragglers.count,
			       report.windows.start_ns);
		over();
	}
	has_noise = false;
	match_count = late_end = MATCHES;
	match_first = MATCH_CHUNK;
	EXPECT(expected_text(&sink, "tests/unit/analysis/expected/straggler-late.txt"));
}

/* Rank 3 is late for its partner in a pair, and both are late for everybody else. */
static void test_explained(void)
{
	struct timeline_options options = { 0 };
	struct sink sink;

	for (int rank = 0; rank < 8; rank++) {
		char host[2] = { (char)('a' + rank), '\0' }, name[16];
		struct recording_process *process = hand_process(&hand, "j", rank, host);

		snprintf(name, sizeof(name), "pair%d", rank / 2);
		hand_comm(process, 0x70, "world", rank, 8, 8);
		hand_comm(process, 0x71 + (uint64_t)rank / 2, name, rank % 2, 2, 2);
		for (int i = 0; i < MATCHES; i++) {
			uint64_t at_ns = (uint64_t)(i + 1) * 100 * MS;

			hand_op(process, 2, OP_ALL_GATHER, (uint64_t)i + MATCH_CHUNK, 32 << 20,
				(rank == 2 ? 30 : 10) * MS + noisy(MS, rank, i), at_ns - 50 * MS);
			hand_op(process, 1, OP_ALL_REDUCE, (uint64_t)i + MATCH_CHUNK, 32 << 20,
				(rank / 2 == 1 ? 10 : 30) * MS + noisy(MS, i, rank), at_ns);
		}
	}
	if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
		abort();
	sink_init_memory(&sink);
	straggler_show(&sink, "a pair", report.stragglers.list, report.stragglers.count,
		       report.windows.start_ns);
	EXPECT_EQUAL(report.stragglers.explained, 1);
	EXPECT(expected_text(&sink, "tests/unit/analysis/expected/straggler-explained.txt"));
	over();
}

/* ---- jobs with Sends ----------------------------------------------------------------------------- */

/* Four ranks that also send to each other; rank 2 comes 20 ms late. Without times of Sends, it may itself wait for
 * another one. */
static void add_job(const char *name, bool has_times)
{
	for (int rank = 0; rank < 4; rank++) {
		char host[32];
		struct recording_process *process;

		snprintf(host, sizeof(host), "%s%d", name, rank);
		process = hand_process(&hand, name, rank, host);
		hand_comm(process, (uint64_t)name[0], name, rank, 4, 4);
		for (int i = 0; i < MATCHES; i++) {
			uint64_t end_ns = (uint64_t)(i + 1) * 100 * MS;
			struct op_record *op =
				hand_op(process, 1, OP_SEND, 0, 1024, MS / 10, end_ns - 50 * MS);

			op->peer = (rank + 1 + i % 3) % 4;
			if (!has_times)
				op->time_source = OP_TIME_NONE;
			hand_op(process, 1, OP_ALL_REDUCE, (uint64_t)i + MATCH_CHUNK, 32 << 20,
				(rank == 2 ? 10 : 30) * MS, end_ns);
		}
	}
}

static const struct straggler *found_in(const char *name)
{
	for (size_t i = 0; i < report.stragglers.count; i++) {
		const struct straggler *late = &report.stragglers.list[i];
		const struct job_group *group =
			&report.job.groups[report.job.comms[late->comm].group];

		if (strcmp(group->name, name) == 0)
			return late;
	}
	return NULL;
}

static void test_jobs_with_sends(void)
{
	struct timeline_options options = { 0 };
	const struct straggler *origin, *held;

	add_job("a", true);
	add_job("b", false);
	if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
		abort();
	origin = found_in("a");
	held = found_in("b");
	EXPECT_EQUAL(report.stragglers.count, 2);
	EXPECT_THAT("the origin spends 20 ms of 100 more outside of operations",
		    origin != NULL && origin->class == STRAGGLER_SLOW_RANK && origin->is_origin &&
			    report.job.ranks[origin->rank].rank == 2 &&
			    fabs(origin->own_excess - 0.2) < 0.001);
	EXPECT_THAT("another job's origin does not explain who is held up in this one",
		    held != NULL && held->class == STRAGGLER_HELD_UP && !held->is_origin &&
			    held->late_ns == 20 * MS);
	over();
}

/* ---- the network, from changes that are given ---------------------------------------------------- */

static void test_network(void)
{
	static const struct windows_change slower = { .kind = JOB_COMM_NET,
						      .function = OP_ALL_REDUCE,
						      .size_class = 20,
						      .at_ns = 600,
						      .window = 6,
						      .before = 100,
						      .after = 50,
						      .percent = -50,
						      .matches_before = 30,
						      .matches_after = 20,
						      .lost_ns = 77,
						      .confidence = 0.9,
						      .is_everywhere = true };
	static const struct {
		const char *what;
		struct {
			enum job_comm_kind kind;
			double percent;
			bool is_everywhere;
			uint32_t window;
			uint64_t at_ns, matches_after;
		} other; /* a second change; percent 0: none */
		bool is_everywhere;
		bool is_found;
		enum straggler_pattern pattern;
		uint64_t first_ns, last_ns, matches;
	} cases[] = {
		{ "slower everywhere",
		  { .percent = 0 },
		  true,
		  true,
		  STRAGGLER_SINCE,
		  600,
		  1000,
		  50 },
		{ "slower in places", { .percent = 0 }, false, false, 0, 0, 0, 0 },
		{ "NVLink as well",
		  { JOB_COMM_NVLINK, -50, true, 8, 800, 1 },
		  true,
		  false,
		  0,
		  0,
		  0,
		  0 },
		{ "NVLink before",
		  { JOB_COMM_NVLINK, -50, true, 4, 400, 1 },
		  true,
		  false,
		  0,
		  0,
		  0,
		  0 },
		{ "NVLink later",
		  { JOB_COMM_NVLINK, -50, true, 9, 900, 1 },
		  true,
		  true,
		  STRAGGLER_SINCE,
		  600,
		  1000,
		  50 },
		{ "NVLink earlier",
		  { JOB_COMM_NVLINK, -50, true, 3, 300, 1 },
		  true,
		  true,
		  STRAGGLER_SINCE,
		  600,
		  1000,
		  50 },
		{ "NVLink faster",
		  { JOB_COMM_NVLINK, 50, true, 6, 600, 1 },
		  true,
		  true,
		  STRAGGLER_SINCE,
		  600,
		  1000,
		  50 },
		{ "it recovered",
		  { JOB_COMM_NET, 50, true, 8, 800, 1 },
		  true,
		  true,
		  STRAGGLER_BURSTS,
		  600,
		  800,
		  50 },
		{ "it was worse before",
		  { JOB_COMM_NET, 50, true, 5, 500, 1 },
		  true,
		  true,
		  STRAGGLER_SINCE,
		  600,
		  1000,
		  50 },
		{ "more after another",
		  { JOB_COMM_MIXED, -20, true, 2, 200, 21 },
		  true,
		  true,
		  STRAGGLER_SINCE,
		  200,
		  1000,
		  51 },
		{ "fewer after another",
		  { JOB_COMM_MIXED, -20, true, 2, 200, 20 },
		  true,
		  true,
		  STRAGGLER_SINCE,
		  600,
		  1000,
		  50 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct windows_change changes[2] = { slower, slower };
		struct timeline_report given = {
			.windows = { .start_ns = 200,
				     .end_ns = 1000,
				     .changes = changes,
				     .change_count = cases[i].other.percent != 0 ? 2 : 1 }
		};
		struct match_comm none = { .kind_count = 0 };
		struct matches matches = { .comms = &none };
		struct links links = { .count = 0 };
		struct stragglers found;
		const struct straggler *network;

		changes[0].is_everywhere = cases[i].is_everywhere;
		changes[1].kind = cases[i].other.kind;
		changes[1].percent = cases[i].other.percent;
		changes[1].is_everywhere = cases[i].other.is_everywhere;
		changes[1].window = cases[i].other.window;
		changes[1].at_ns = cases[i].other.at_ns;
		changes[1].matches_after = cases[i].other.matches_after;
		hand_comm(hand_process(&hand, "j", 0, "a"), 0x77, "world", 0, 2, 2);
		hand_comm(hand_process(&hand, "j", 1, "b"), 0x77, "world", 1, 2, 2);
		if (job_make(&given.job, &hand.recording) != OK ||
		    straggler_find(&found, &given, &matches, &links) != OK)
			abort();
		network = found.list;
		EXPECT_THAT(cases[i].what, found.count == cases[i].is_found);
		if (found.count == 1 && cases[i].is_found) {
			EXPECT(network->class == STRAGGLER_NETWORK &&
			       network->pattern == cases[i].pattern &&
			       network->first_ns == cases[i].first_ns &&
			       network->last_ns == cases[i].last_ns &&
			       network->matches == cases[i].matches);
			EXPECT(network->slowdown == 2 && network->confidence == 0.9 &&
			       network->caused_ns == 77 && network->rank == UINT32_MAX &&
			       network->host == UINT32_MAX && !network->has_wire &&
			       network->has_times && network->channel == -1);
			EXPECT(network->share_of_time ==
			       (double)(cases[i].last_ns - cases[i].first_ns) / 800);
		}
		stragglers_release(&found);
		job_release(&given.job);
		hand_release(&hand);
	}
}

static void test_words(void)
{
	static const char *const classes[] = { "none",	  "slow_rank", "slow_host", "slow_link",
					       "network", "held_up",   "none" };
	static const char *const patterns[] = { "always", "since", "until", "bursts", "always" };

	for (int i = 0; i < 7; i++)
		EXPECT(strcmp(straggler_class_name((enum straggler_class)i), classes[i]) == 0);
	for (int i = 0; i < 5; i++)
		EXPECT(strcmp(straggler_pattern_name((enum straggler_pattern)i), patterns[i]) == 0);
}

int main(void)
{
	test_rank();
	test_rough_places();
	test_both_late();
	test_hosts();
	test_noisy();
	test_explained();
	test_jobs_with_sends();
	test_network();
	test_words();
	return tap_done();
}
