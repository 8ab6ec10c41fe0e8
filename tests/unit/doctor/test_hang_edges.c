/* Hangs at the edges of the rules: just long enough, one rank more, one step less. */
#include "doctor/doctor.h"

#include "common/attributes.h"
#include "tests/tap.h"
#include "tests/unit/doctor/hang_stage.h"

static struct hang_stage stage;

static struct recording_flight *front(int rank)
{
	struct recording_process *process = stage_rank(&stage, rank);

	return &process->flights[process->flight_count - 1];
}

/* All ranks of world finished AllReduce #1; all but `missing` have been in AllReduce #2 for `ago_ns`. */
static void all_but(int count, int per_host, int missing, uint64_t ago_ns)
{
	stage_begin(&stage, count, per_host);
	for (int i = 0; i < count; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, ago_ns + SECOND);
		if (i != missing)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_RUNNING, ago_ns);
	}
}

static void find(const char *what)
{
	stage_find_in(&stage, what);
	stage_end(&stage);
}

/* Its kernel was enqueued and has not started. */
static void launched(int rank)
{
	front(rank)->op.state = OP_LAUNCHED;
	front(rank)->op.active_ns = 0;
	front(rank)->op.kernels_started = 0;
	front(rank)->open_children = 0;
	front(rank)->started[0] = 0;
}

/* ---- how long ---------------------------------------------------------------------------------------- */

static void test_how_long(void)
{
	all_but(3, 1, 1, 20 * SECOND);
	find("20 s are a hang");
	all_but(3, 1, 1, 20 * SECOND - 1);
	find("a moment less is none");

	all_but(3, 1, 1, 60 * SECOND);
	stage_rank(&stage, 2)->comms[0].counts.last_done_ns = NOW_NS - 20 * SECOND;
	find("something ended 20 s ago");
	all_but(3, 1, 1, 60 * SECOND);
	stage_rank(&stage, 2)->comms[0].counts.last_done_ns = NOW_NS - 20 * SECOND + 1;
	find("something ended a moment later");

	/* A rank that has been in something else for a quarter of the limit is not blamed. */
	for (int less = 0; less < 2; less++) {
		int tp;

		all_but(4, 4, 2, 60 * SECOND);
		tp = stage_comm(&stage, 0x200, "tp", 2, 2, 1, 2);
		stage_call(&stage, 2, tp, OP_ALL_GATHER, 1, OP_RUNNING,
			   5 * SECOND - (uint64_t)less);
		stage_rank(&stage, 3)->flight_count = 1;
		stage_rank(&stage, 3)->comms[0].counts.collectives = 1;
		stage.is_numbered = less; /* the first of both is the example */
		find(less ? "in something else for a moment less than 5 s"
			  : "in something else for 5 s");
	}
}

/* What a dead job left behind: rank 2's recording ends earlier than the others. */
static void test_ends_earlier(void)
{
	static const struct {
		const char *what;
		uint64_t earlier_ns;
		bool was_waiting;
	} cases[] = {
		{ "20 s earlier: it is dead", 20 * SECOND, false },
		{ "a moment less: it is not", 20 * SECOND - 1, false },
		{ "20 s earlier, after 20 s in the operation", 20 * SECOND, true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		all_but(4, 2, cases[i].was_waiting ? -1 : 2, 90 * SECOND);
		for (int rank = 0; rank < 4; rank++)
			stage_rank(&stage, rank)->life = RECORDING_UNKNOWN;
		stage_rank(&stage, 2)->counts_ns = NOW_NS - cases[i].earlier_ns;
		find(cases[i].what);
	}
}

static void test_allowed(void)
{
	static char info[] = "uid=1000\nhang_after_s=60\n";

	for (int less = 0; less < 2; less++) {
		all_but(4, 2, 2, 60 * SECOND - (uint64_t)less);
		stage_rank(&stage, 1)->info = info;
		stage_rank(&stage, 1)->info_bytes = sizeof(info) - 1;
		stage.options.has_job_limits = true;
		stage_find_in(&stage, less ? "a moment less than RINGSIDE_HANG_AFTER"
					   : "as long as RINGSIDE_HANG_AFTER");
		stage_rank(&stage, 1)->info = NULL;
		stage_end(&stage);
	}
}

/* ---- a second cause ------------------------------------------------------------------------------------ */

static void test_second(void)
{
	static const struct {
		const char *what;
		int ranks, launched; /* ranks 1, 2 ... */
		bool is_elsewhere;   /* rank 1 is also in something else */
	} cases[] = {
		{ "a GPU that has not started it either", 8, 1, false },
		{ "it is in something else", 8, 1, true },
		{ "two GPUs have not: what they are in is not recorded", 8, 2, false },
		{ "one of three GPUs has not", 4, 1, false },
		{ "one of two: it may wait as well as the other one", 3, 1, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		all_but(cases[i].ranks, 4, 0, 60 * SECOND);
		for (int rank = 1; rank <= cases[i].launched; rank++)
			launched(rank);
		if (cases[i].is_elsewhere) {
			int tp = stage_comm(&stage, 0x200, "tp", 1, 2, 1, 2);

			stage_call(&stage, 1, tp, OP_ALL_GATHER, 1, OP_RUNNING, 2 * SECOND);
			stage_call(&stage, 2, tp, OP_ALL_GATHER, 1, OP_RUNNING, 2 * SECOND);
		}
		find(cases[i].what);
	}
}

/* ---- rings through hosts ------------------------------------------------------------------------------- */

/*
 * Three hosts of four ranks, one ring on each of two channels: it enters host h at rank 4h and leaves it at 4h + 3; on the
 * second channel it enters at 4h + 1 and leaves at 4h. descending: the other way round within each host.
 */
static void rings(const unsigned int sent[2][3], uint8_t function, unsigned int steps,
		  bool is_descending)
{
	stage_begin(&stage, 12, 4);
	for (int i = 0; i < 12; i++) {
		stage_call(&stage, i, 1, function, 1, OP_RUNNING, 60 * SECOND);
		front(i)->op.algorithm = OP_RING;
	}
	for (int c = 0; c < 2; c++)
		for (int h = 0; h < 3; h++) {
			int in = c == 0 ? 0 : 1, out = c == 0 ? 3 : 0;
			int from = 4 * h + (is_descending ? in : out);
			int to = 4 * ((h + 1) % 3) + (is_descending ? out : in);
			struct recording_proxy *proxy;

			proxy = stage_proxy(front(from), true, to, c, STEP_SEND_GPU, 59 * SECOND);
			proxy->proxy.done = sent[c][h];
			proxy->proxy.steps = (int32_t)steps;
			proxy = stage_proxy(front(to), false, from, c, STEP_RECV_NET, 59 * SECOND);
			proxy->proxy.done = sent[c][h];
			proxy->proxy.steps = (int32_t)steps;
		}
	stage.is_numbered = true;
}

static void test_hops(void)
{
	static const struct {
		const char *what;
		unsigned int sent[2][3];
		uint8_t function;
		unsigned int steps;
		bool is_descending;
	} cases[] = {
		{ "two hops before the exit, and three: rank 5",
		  { { 6, 2, 10 }, { 7, 3, 11 } },
		  OP_ALL_REDUCE,
		  22,
		  false },
		{ "one hop before the exit, and two: rank 10",
		  { { 9, 5, 1 }, { 10, 6, 2 } },
		  OP_ALL_REDUCE,
		  22,
		  false },
		{ "the channels do not agree",
		  { { 6, 2, 10 }, { 6, 2, 10 } },
		  OP_ALL_REDUCE,
		  22,
		  false },
		{ "as many hops as the host has ranks",
		  { { 8, 4, 12 }, { 8, 4, 12 } },
		  OP_ALL_REDUCE,
		  22,
		  false },
		{ "descending, two hops and one: rank 6",
		  { { 6, 2, 10 }, { 6, 1, 10 } },
		  OP_ALL_REDUCE,
		  22,
		  true },
		{ "descending, and the channels do not agree",
		  { { 6, 1, 10 }, { 6, 1, 10 } },
		  OP_ALL_REDUCE,
		  22,
		  true },
		{ "an AllGather has half as many steps",
		  { { 6, 2, 10 }, { 7, 3, 11 } },
		  OP_ALL_GATHER,
		  11,
		  false },
		{ "an AllGather with as many steps as an AllReduce",
		  { { 6, 2, 10 }, { 7, 3, 11 } },
		  OP_ALL_GATHER,
		  22,
		  false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		rings(cases[i].sent, cases[i].function, cases[i].steps, cases[i].is_descending);
		find(cases[i].what);
	}
}

/* ---- links --------------------------------------------------------------------------------------------- */

/* So many sends are stuck, each between other hosts. */
static void test_many_links(void)
{
	for (int links = 7; links < 11; links++) {
		char what[64];

		stage_begin(&stage, 20, 1);
		for (int i = 0; i < 20; i++)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
		for (int i = 0; i < links; i++) {
			stage_proxy(front(2 * i), true, 2 * i + 1, i, STEP_SEND_NET,
				    (uint64_t)(59 - i) * SECOND);
			stage_proxy(front(2 * i + 1), false, 2 * i, i, STEP_RECV_NET, 59 * SECOND);
		}
		stage.is_numbered = true; /* the first one is named */
		snprintf(what, sizeof(what), "%d stuck links", links);
		find(what);
	}
}

/* ---- channels ------------------------------------------------------------------------------------------ */

/* Within a node, by the channels that kernels have not finished. One of two may be ahead or behind: nobody is named. */
static void test_channels(void)
{
	static const struct {
		const char *what;
		int ranks;
		uint64_t started[4], stopped[4];
	} cases[] = {
		{ "one rank of three is behind", 3, { 15, 15, 15 }, { 7, 3, 7 } },
		{ "all are equally far", 3, { 15, 15, 15 }, { 3, 3, 3 } },
		{ "one rank has not started all", 3, { 15, 3, 15 }, { 7, 3, 7 } },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		stage_begin(&stage, cases[i].ranks, cases[i].ranks);
		for (int rank = 0; rank < cases[i].ranks; rank++) {
			struct recording_flight *flight = stage_call(&stage, rank, 1, OP_ALL_REDUCE,
								     1, OP_RUNNING, 60 * SECOND);

			flight->started[0] = cases[i].started[rank];
			flight->stopped[0] = cases[i].stopped[rank];
			flight->started[3] = flight->stopped[3] = 1;
		}
		find(cases[i].what);
	}
	for (int ranks = 2; ranks < 5; ranks += 2) {
		size_t used = stage_text.used;

		stage_begin(&stage, ranks, ranks);
		for (int rank = 0; rank < ranks; rank++) {
			stage_call(&stage, rank, 1, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
			front(rank)->stopped[0] = (uint64_t)(rank % 2);
		}
		EXPECT_THAT("a half is behind the other one: no rank is named",
			    stage_only(&stage, VERDICT_STUCK, -1));
		stage_text.used = used;
		stage_end(&stage);
	}
}

/* ---- cycles -------------------------------------------------------------------------------------------- */

static void test_cycles(void)
{
	for (int count = 2; count < 6; count += 3) {
		char what[64];

		stage_begin(&stage, count, 1);
		for (int i = 0; i < count; i++)
			stage_call(&stage, i, 1, OP_SEND, 1, OP_RUNNING, 60 * SECOND)->op.peer =
				(i + 1) % count;
		stage.is_numbered = true; /* the cycle begins at the first */
		snprintf(what, sizeof(what), "a cycle of %d Sends", count);
		find(what);
	}
	/* Ranks 0-2 wait for each other over three communicators of two. */
	stage_begin(&stage, 3, 1);
	for (int i = 0; i < 3; i++)
		stage_comm(&stage, 0x200 + (uint64_t)i,
			   i == 0   ? "ab"
			   : i == 1 ? "bc"
				    : "ca",
			   i == 2 ? 0 : i, 2, i == 2 ? 2 : 1, 2);
	stage_call(&stage, 0, 2, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 1, 3, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 2, 3, OP_ALL_REDUCE, 1, OP_RUNNING, 60 * SECOND);
	stage.is_numbered = true;
	find("three communicators");
}

/* ---- truncated files ----------------------------------------------------------------------------------- */

/* Rank 1's file ends in the middle of a block; it was active shortly before its end, or not. */
static void test_torn(void)
{
	for (int was_active = 0; was_active < 2; was_active++) {
		struct recording_file file = { .bytes = 1000, .cut_offset = 900 };
		struct recording_process *torn;

		all_but(4, 2, -1, 90 * SECOND);
		torn = stage_rank(&stage, 1);
		for (int rank = 0; rank < 4; rank++)
			stage_rank(&stage, rank)->life = RECORDING_UNKNOWN;
		launched(3);
		torn->files = &file;
		torn->file_count = 1;
		if (was_active) {
			torn->flight_count = 1;
			torn->comms[0].counts.collectives = 1;
			torn->counts_ns = torn->comms[0].counts.last_done_ns + SECOND;
		}
		stage.options.is_quick = true;
		stage.is_alone = true; /* all processes are counted */
		stage_find_in(&stage, was_active ? "a truncated file of a rank that was active"
						 : "a truncated file of a rank that was not");
		torn->files = NULL;
		torn->file_count = 0;
		stage_end(&stage);
	}
}

int main(void)
{
	test_how_long();
	test_ends_earlier();
	test_allowed();
	test_second();
	test_hops();
	test_many_links();
	test_channels();
	test_cycles();
	test_torn();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_edges.txt");
	return tap_done();
}
