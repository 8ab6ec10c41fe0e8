/*
 * Slow Sends given by hand, and what they have in common: eight ranks on four hosts, two GPUs each. Every rank sends to
 * every other one, 99 times, and a transfer is on the wire for 10 us unless its link is slow.
 */
#include "analysis/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline_report.h"
#include "tests/support/hand_made.h"
#include "tests/tap.h"
#include "tests/unit/analysis/straggler_show.h"

enum { RANKS = 8, SLOW_MAX = 8, STEPS = 4 };
#define US UINT64_C(1000)

static struct hand_made hand;
static struct timeline_report report;
static struct links links;
static struct stragglers found;

static void begin(void)
{
	hand_pairs(&hand, RANKS);
	report = (struct timeline_report){ .windows = { .start_ns = 1000, .end_ns = 2000 } };
	if (job_make(&report.job, &hand.recording) != OK)
		abort();
	report.ranks = calloc(RANKS, sizeof(*report.ranks));
	links = (struct links){ .list = calloc(RANKS * RANKS, sizeof(*links.list)) };
	if (report.ranks == NULL || links.list == NULL)
		abort();
	for (uint32_t from = 0; from < RANKS; from++)
		for (int32_t to = 0; to < RANKS; to++)
			if ((int32_t)from != to)
				links.list[links.count++] =
					(struct link){ .from = from,
						       .to = to,
						       .sends = 99,
						       .send_steps = 99 * STEPS,
						       .send_net_ns = 99 * STEPS * 10 * US,
						       .bytes = 99 << 20 };
}

static struct link *link_of(int from, int to)
{
	for (size_t i = 0; i < links.count; i++)
		if ((int)links.list[i].from == from && links.list[i].to == to)
			return &links.list[i];
	abort();
}

static void find(void)
{
	struct match_comm comm = { .kind_count = 0 };
	struct matches matches = { .comms = &comm };

	stragglers_release(&found);
	if (straggler_find(&found, &report, &matches, &links) != OK)
		abort();
}

static void over(void)
{
	stragglers_release(&found);
	free(links.list);
	free(report.ranks);
	job_release(&report.job);
	hand_release(&hand);
}

static void set_wire(int from, int to, uint64_t each_ns)
{
	link_of(from, to)->send_net_ns = 99 * STEPS * each_ns;
}

/* ---- one link ------------------------------------------------------------------------------------ */

static void test_one_link(void)
{
	static const struct {
		const char *what;
		uint64_t usual_ns, slow_ns, sends;
		bool is_found;
	} cases[] = {
		{ "more than twice as long", 10 * US, 20 * US + 1, 99, true },
		{ "twice as long", 10 * US, 20 * US, 99, false },
		{ "of short ones, more than 5 us longer", 3 * US, 8 * US + 1, 99, true },
		{ "5 us longer", 3 * US, 8 * US, 99, false },
		{ "eight Sends are enough", 10 * US, 21 * US, 8, true },
		{ "seven are not", 10 * US, 21 * US, 7, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		for (size_t l = 0; l < links.count; l++)
			links.list[l].send_net_ns = 99 * STEPS * cases[i].usual_ns;
		*link_of(1, 4) =
			(struct link){ .from = 1,
				       .to = 4,
				       .sends = cases[i].sends,
				       .send_steps = cases[i].sends * STEPS,
				       .send_net_ns = cases[i].sends * STEPS * cases[i].slow_ns,
				       .bytes = cases[i].sends << 20 };
		find();
		EXPECT_THAT(cases[i].what, found.count == cases[i].is_found);
		if (found.count == 1)
			EXPECT(found.list[0].class == STRAGGLER_SLOW_LINK &&
			       found.list[0].rank == 1 && found.list[0].host == 0 &&
			       found.list[0].peer == 4 && found.list[0].peer_confidence == 1 &&
			       found.list[0].channel == -1 && found.list[0].comm == 0 &&
			       found.list[0].matches == cases[i].sends &&
			       found.list[0].is_of_sends && found.list[0].share_of_time == 1 &&
			       fabs(found.list[0].confidence -
				    (1 - 1 / (double)(cases[i].sends + 1))) < 1e-9 &&
			       fabs(found.list[0].slowdown -
				    (double)cases[i].slow_ns / (double)cases[i].usual_ns) < 1e-9);
		over();
	}

	/* Only links with messages of one size are compared, and at least four of them. */
	for (size_t alike = 3; alike < 5; alike++) {
		begin();
		for (size_t l = 0; l < alike; l++)
			links.list[l].bytes = 99 << 10;
		links.list[0].send_net_ns *= 5;
		find();
		EXPECT_EQUAL(found.count, alike == 4);
		over();
	}
}

/* ---- several --------------------------------------------------------------------------------------- */

static void test_several(void)
{
	static const struct {
		const char *what;
		int slow[SLOW_MAX][2];
		size_t count; /* found */
		enum straggler_class class;
		uint32_t rank, peer; /* of the first */
		bool is_either, is_uplink, is_rail, is_starved;
	} cases[] = {
		{ "two links of different ranks",
		  { { 1, 4 }, { 2, 7 } },
		  2,
		  STRAGGLER_SLOW_LINK,
		  1,
		  4,
		  false,
		  false,
		  false,
		  false },
		{ "from a rank and to it: the rank",
		  { { 2, 5 }, { 7, 2 } },
		  1,
		  STRAGGLER_SLOW_RANK,
		  2,
		  UINT32_MAX,
		  false,
		  false,
		  false,
		  true },
		{ "the one with most of them",
		  { { 2, 5 }, { 5, 2 }, { 5, 7 } },
		  1,
		  STRAGGLER_SLOW_RANK,
		  5,
		  UINT32_MAX,
		  false,
		  false,
		  false,
		  true },
		{ "there and back: either of the two",
		  { { 2, 5 }, { 5, 2 } },
		  2,
		  STRAGGLER_SLOW_LINK,
		  2,
		  5,
		  true,
		  false,
		  false,
		  false },
		{ "one sender to several: each of its links",
		  { { 2, 5 }, { 2, 6 }, { 2, 1 } },
		  3,
		  STRAGGLER_SLOW_LINK,
		  2,
		  1,
		  false,
		  false,
		  false,
		  false },
		{ "both ranks of a host to different hosts: its uplink",
		  { { 2, 5 }, { 3, 6 } },
		  1,
		  STRAGGLER_SLOW_LINK,
		  2,
		  UINT32_MAX,
		  false,
		  true,
		  false,
		  false },
		{ "between two hosts: one of them",
		  { { 2, 6 }, { 3, 7 } },
		  1,
		  STRAGGLER_SLOW_LINK,
		  2,
		  6,
		  false,
		  true,
		  false,
		  false },
		{ "to both ranks of a host: its uplink",
		  { { 5, 2 }, { 6, 3 } },
		  1,
		  STRAGGLER_SLOW_LINK,
		  2,
		  UINT32_MAX,
		  false,
		  true,
		  false,
		  false },
		{ "the first GPU of each host: a rail",
		  { { 0, 3 }, { 2, 5 }, { 4, 7 }, { 6, 1 } },
		  1,
		  STRAGGLER_SLOW_LINK,
		  0,
		  UINT32_MAX,
		  false,
		  false,
		  true,
		  false },
		{ "of three hosts in four: still a rail",
		  { { 0, 3 }, { 2, 5 }, { 4, 7 } },
		  1,
		  STRAGGLER_SLOW_LINK,
		  0,
		  UINT32_MAX,
		  false,
		  false,
		  true,
		  false },
		{ "of two hosts in four: two links",
		  { { 0, 3 }, { 2, 5 } },
		  2,
		  STRAGGLER_SLOW_LINK,
		  0,
		  3,
		  false,
		  false,
		  false,
		  false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct straggler *first;

		begin();
		for (int s = 0; s < SLOW_MAX && cases[i].slow[s][0] != cases[i].slow[s][1]; s++)
			set_wire(cases[i].slow[s][0], cases[i].slow[s][1], 60 * US);
		find();
		first = found.list;
		if (!EXPECT_THAT(cases[i].what, found.count == cases[i].count &&
							first->class == cases[i].class &&
							first->rank == cases[i].rank &&
							first->host == cases[i].rank / 2))
			printf("# %zu found, class %d, rank %u, peer %u\n", found.count,
			       found.count ? (int)first->class : 0, found.count ? first->rank : 0,
			       found.count ? first->peer : 0);
		if (found.count == cases[i].count && found.count > 0) {
			if (strstr(cases[i].what, "each of its links") == NULL)
				EXPECT_EQUAL(first->peer, cases[i].peer);
			EXPECT(first->is_either == cases[i].is_either &&
			       first->is_uplink == cases[i].is_uplink &&
			       first->is_rail == cases[i].is_rail &&
			       first->is_starved == cases[i].is_starved);
			EXPECT_THAT("what follows from several is less certain",
				    fabs(first->confidence - (found.count == 1 ? 0.85 : 0.99)) <
					    1e-9);
			EXPECT(fabs(first->slowdown - 6) < 1e-9 && first->channel == -1);
		}
		over();
	}
}

/* A pair of which one is in collectives that became slower: it is that one. */
static void test_slower_of_pair(void)
{
	static const struct {
		double percent;
		uint32_t comms_changed;
		enum job_comm_kind kind;
		bool is_named;
	} cases[] = {
		{ -20, 1, JOB_COMM_NET, true },
		{ 20, 1, JOB_COMM_NET, false },
		{ -20, 2, JOB_COMM_NET, false },
		{ -20, 1, JOB_COMM_NVLINK, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct windows_change change = { .kind = cases[i].kind,
						 .percent = cases[i].percent,
						 .comms_changed = cases[i].comms_changed,
						 .example_comm = 1 };
		struct match_comm comms[2] = { { .kind_count = 0 } };
		struct matches matches = { .comms = comms };

		begin();
		/* A second communicator, of ranks 5 and 6. */
		hand_comm(hand.list[5], 0x88, "pair", 0, 2, 2);
		hand_comm(hand.list[6], 0x88, "pair", 1, 2, 2);
		job_release(&report.job);
		if (job_make(&report.job, &hand.recording) != OK)
			abort();
		for (size_t l = 0; l < links.count; l++)
			links.list[l].from = report.job.first_seat[links.list[l].from];
		for (size_t l = 0; l < links.count; l++)
			if ((report.job.seats[links.list[l].from].process == 2 &&
			     links.list[l].to == 5) ||
			    (report.job.seats[links.list[l].from].process == 5 &&
			     links.list[l].to == 2))
				links.list[l].send_net_ns *= 6;
		report.windows.changes = &change;
		report.windows.change_count = 1;
		if (straggler_find(&found, &report, &matches, &links) != OK)
			abort();
		EXPECT(found.count == (cases[i].is_named ? 1 : 2) &&
		       found.list[0].rank == (cases[i].is_named ? 5 : 2) &&
		       found.list[0].is_starved == cases[i].is_named &&
		       found.list[0].is_either == !cases[i].is_named);
		over();
	}
}

/* ---- two jobs --------------------------------------------------------------------------------- */

static void begin_two(void)
{
	hand_pairs(&hand, RANKS);
	for (int rank = 0; rank < RANKS; rank++) {
		char host[2] = { (char)('e' + rank / 2), '\0' };
		struct recording_process *process = hand_process(&hand, "k", rank, host);

		hand_comm(process, 0x78, "other", rank, RANKS, RANKS / 2);
		process->comms[0].info.gpu = rank % 2;
	}
	report = (struct timeline_report){ .windows = { .start_ns = 1000, .end_ns = 2000 } };
	if (job_make(&report.job, &hand.recording) != OK)
		abort();
	report.ranks = calloc(2 * RANKS, sizeof(*report.ranks));
	links = (struct links){ .list = calloc(2 * RANKS * RANKS, sizeof(*links.list)) };
	if (report.ranks == NULL || links.list == NULL)
		abort();
	for (uint32_t seat = 0; seat < report.job.seat_count; seat++)
		for (int32_t to = 0; to < RANKS; to++)
			if (report.job.seats[seat].comm_rank != to)
				links.list[links.count++] =
					(struct link){ .comm = report.job.seats[seat].comm,
						       .from = seat,
						       .to = to,
						       .sends = 99,
						       .send_steps = 99 * STEPS,
						       .send_net_ns = noisy(99 * STEPS * 10 * US,
									    (int)seat, to),
						       .bytes = 99 << 20 };
}

/* Ranks of the first job are 0 to 7, of the second 8 to 15. What the links of one job have in common does not depend on the
 * other job. */
static void test_two_jobs(void)
{
	static const struct {
		const char *what;
		int slow[SLOW_MAX][3]; /* from, to, times as long */
	} cases[] = {
		{ "an uplink and a rail",
		  { { 2, 5, 6 }, { 3, 6, 7 }, { 8, 11, 6 }, { 10, 13, 5 }, { 12, 15, 6 } } },
		{ "a rail and an uplink",
		  { { 0, 3, 6 }, { 2, 5, 5 }, { 4, 7, 6 }, { 10, 13, 6 }, { 11, 14, 8 } } },
		{ "a rank and a link", { { 2, 5, 6 }, { 7, 2, 7 }, { 9, 12, 9 } } },
		{ "a link each", { { 2, 5, 6 }, { 9, 12, 9 } } },
		{ "a pair and a rank", { { 2, 5, 6 }, { 5, 2, 6 }, { 12, 9, 5 }, { 9, 15, 6 } } },
		{ "two uplinks",
		  { { 2, 6, 6 }, { 3, 7, 6 }, { 8, 12, 5 }, { 9, 13, 9 }, { 9, 14, 9 } } },
	};
	struct match_comm comms[2] = { { .kind_count = 0 } };
	struct matches matches = { .comms = comms };
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_two();
		for (size_t l = 0; l < links.count; l++) {
			struct link *link = &links.list[l];
			int from = (int)report.job.seats[link->from].rank;

			for (int s = 0; s < SLOW_MAX && cases[i].slow[s][2] != 0; s++)
				if (from == cases[i].slow[s][0] &&
				    from / RANKS * RANKS + link->to == cases[i].slow[s][1])
					link->send_net_ns *= (uint64_t)cases[i].slow[s][2];
		}
		if (straggler_find(&found, &report, &matches, &links) != OK)
			abort();
		straggler_show(&sink, cases[i].what, found.list, found.count,
			       report.windows.start_ns);
		over();
	}
	EXPECT(expected_text(&sink, "tests/unit/analysis/expected/straggler-links.txt"));
}

int main(void)
{
	test_one_link();
	test_several();
	test_slower_of_pair();
	test_two_jobs();
	return tap_done();
}
