/*
 * What slow operation types have in common, and what follows from it: changes, operation types that did not change and
 * times on the wire are given by hand.
 */
#include "common/attributes.h"
#include "common/text.h"
#include "doctor/slow_internal.h"
#include "tests/tap.h"
#include "tests/unit/doctor/slow_stage.h"

static struct stage stage;
static struct expected_text found;

enum { CHANGES = 4, CELLS = 4 };

struct slowness {
	const char *what;
	struct stage_change changes[CHANGES];
	struct stage_cell fine[CELLS];
	uint64_t (*wire_ns)(int rank, bool is_after);
	uint32_t wire_comm; /* the rank's first, unless given */
};

/* Half of world's recording is slower: 40 GB/s instead of 50. */
#define SLOWER(of, all)                                                              \
	{                                                                            \
		.comm = (of), .at_s = 500, .before = 50, .after = 40, .comms = (all) \
	}
#define SLOWER_SIZE(of, all, size)                                                    \
	{                                                                             \
		.comm = (of), .at_s = 500, .before = 50, .after = 40, .comms = (all), \
		.bytes = (size)                                                       \
	}

static void play(const struct slowness *scene)
{
	stage_begin(&stage);
	if (scene->wire_ns != NULL)
		stage_wire(&stage, scene->wire_comm > 0 ? scene->wire_comm : 1, scene->wire_ns);
	stage_made(&stage);
	for (size_t i = 0; i < CHANGES && scene->changes[i].comm != 0; i++) {
		const struct stage_change *change = &scene->changes[i];

		stage_change(&stage, change);
		stage_cell(&stage, &(struct stage_cell){ change->comm, .bytes = change->bytes,
							 .function = change->function });
	}
	for (size_t i = 0; i < CELLS && scene->fine[i].comm != 0; i++)
		stage_cell(&stage, &scene->fine[i]);
	stage_cell(&stage, &(struct stage_cell){ .comm = STAGE_STRANGERS });
}

static void find(const struct slowness *scene)
{
	stage_find(&stage, &found, scene->what);
}

/* The same if the other job is the first. */
static void find_second(const struct slowness *scene, const char *alone)
{
	struct expected_text second = { .text = NULL };

	stage_strangers = "alpha";
	play(scene);
	if (slow_find(&stage.verdicts, &stage.report, &stage.options) != OK)
		abort();
	stage_put_train(&second, &stage.verdicts);
	if (strcmp(alone, second.text) != 0 && !EXPECT_THAT(scene->what, false))
		printf("# alone: %s\n# as the second job: %s\n", alone, second.text);
	free(second.text);
	stage_over(&stage);
	stage_strangers = "zoo";
}

static void find_all(const struct slowness *scenes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct expected_text alone = { .text = NULL };

		play(&scenes[i]);
		find(&scenes[i]);
		stage_put_train(&alone, &stage.verdicts);
		stage_over(&stage);
		find_second(&scenes[i], alone.text);
		free(alone.text);
	}
}

/* 10 us before; after it, what the name says takes 12.5 us. */
static uint64_t wire_of_nobody(int rank, bool is_after)
{
	(void)rank;
	(void)is_after;
	return 10000;
}

static uint64_t wire_of_all(int rank, bool is_after)
{
	(void)rank;
	return is_after ? 12500 : 10000;
}

static uint64_t wire_of_rank(int rank, bool is_after)
{
	return is_after && rank == 5 ? 12500 : 10000;
}

static uint64_t wire_of_two(int rank, bool is_after)
{
	return is_after && (rank == 3 || rank == 4) ? 12500 : 10000;
}

static uint64_t wire_of_host(int rank, bool is_after)
{
	return is_after && rank / 2 == 2 ? 12500 : 10000;
}

static uint64_t wire_of_rail(int rank, bool is_after)
{
	return is_after && rank % 2 == 1 ? 12500 : 10000;
}

static uint64_t wire_of_host_before(int rank, bool is_after)
{
	return !is_after && rank / 2 == 2 ? 12500 : 10000;
}

/* Of three hosts. */
static uint64_t wire_of_some(int rank, bool is_after)
{
	return is_after && (rank == 0 || rank == 3 || rank == 4) ? 12500 : 10000;
}

static uint64_t wire_of_most(int rank, bool is_after)
{
	return is_after && rank != 3 && rank != 6 ? 12500 : 10000;
}

/* ---- where ---------------------------------------------------------------------------------------- */

static void test_where(void)
{
	static const struct slowness scenes[] = {
		{ .what = "all between nodes: the network, or NVLink of which nothing is known",
		  .changes = { SLOWER(STAGE_WORLD, 1), SLOWER(STAGE_DP0, 2) } },
		{ .what = "all between nodes, and not within nodes: the network",
		  .changes = { SLOWER(STAGE_WORLD, 1), SLOWER(STAGE_DP0, 2) },
		  .fine = { { STAGE_TP1 } } },
		{ .what = "the same, the largest loss comes second",
		  .changes = { SLOWER(STAGE_WORLD, 1),
			       { .comm = STAGE_DP0,
				 .at_s = 300,
				 .before = 30,
				 .after = 20,
				 .comms = 2,
				 .lost_s = 401,
				 .confidence = 0.98 } },
		  .fine = { { STAGE_TP1 } } },
		{ .what = "four of five inter-node communicators: everywhere",
		  .changes = { { .comm = STAGE_DP0,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 5,
				 .changed = 4 } } },
		{ .what = "three of four inter-node communicators: not everywhere",
		  .changes = { { .comm = STAGE_DP0,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 4,
				 .changed = 3 } } },
		{ .what = "fine on one inter-node communicator of two types: not everywhere",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .fine = { { STAGE_DP0 }, { STAGE_DP1 } } },
		{ .what = "within all nodes: NVLink",
		  .changes = { SLOWER(STAGE_TP0, 4) },
		  .fine = { { STAGE_WORLD } } },
		{ .what = "within one node: NVLink there",
		  .changes = { { .comm = STAGE_TP2,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 4,
				 .changed = 1 } },
		  .fine = { { STAGE_WORLD } } },
		{ .what = "within two nodes and between nodes: no single cause",
		  .changes = { { .comm = STAGE_TP2,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 4,
				 .changed = 2 },
			       SLOWER(STAGE_WORLD, 1) } },
		{ .what = "within two nodes and between nodes, where another type is fine: NVLink",
		  .changes = { { .comm = STAGE_TP2,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 4,
				 .changed = 2 },
			       SLOWER(STAGE_WORLD, 1) },
		  .fine = { { STAGE_DP0 } } },
		{ .what = "within one node, and between nodes in another size: NVLink there",
		  .changes = { SLOWER_SIZE(STAGE_WORLD, 1, 64 * STAGE_MIB),
			       { .comm = STAGE_TP2,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 4,
				 .changed = 1 } } },
		{ .what = "one communicator, and another one in another size: no single one",
		  .changes = { { .comm = STAGE_DP1,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 2,
				 .changed = 1 },
			       SLOWER_SIZE(STAGE_WORLD, 1, 64 * STAGE_MIB) },
		  .fine = { { STAGE_DP1, .bytes = 64 * STAGE_MIB } } },
		{ .what = "one communicator of two",
		  .changes = { { .comm = STAGE_DP1,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 2,
				 .changed = 1 } } },
		{ .what = "one communicator, two sizes",
		  .changes = { { .comm = STAGE_DP1,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 2,
				 .changed = 1 },
			       { .comm = STAGE_DP1,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 2,
				 .changed = 1,
				 .bytes = STAGE_MIB } } },
		{ .what = "everything",
		  .changes = { SLOWER(STAGE_WORLD, 1), SLOWER(STAGE_DP0, 2),
			       SLOWER(STAGE_TP0, 4) } },
	};

	find_all(scenes, ARRAY_LENGTH(scenes));
}

/*
 * Not found slow is not found fine: it must be large enough, and certain. Between nodes transfers take a little longer, also
 * on the wire; if something within nodes is known to be fine, it is the network, else it may be NVLink.
 */
#define LITTLE(size)                                                                           \
	{                                                                                      \
		.comm = STAGE_WORLD, .at_s = 500, .before = 49.6, .after = 40, .bytes = (size) \
	}

static void test_what_would_show(void)
{
	static const struct slowness scenes[] = {
		{ .what = "a quarter of the slow size would show",
		  .changes = { LITTLE(16 * STAGE_MIB) },
		  .fine = { { STAGE_TP0, .bytes = 4 * STAGE_MIB } },
		  .wire_ns = wire_of_all },
		{ .what = "an eighth does not",
		  .changes = { LITTLE(16 * STAGE_MIB) },
		  .fine = { { STAGE_TP0, .bytes = 2 * STAGE_MIB } },
		  .wire_ns = wire_of_all },
		{ .what = "256 KiB would show, with two slow sizes",
		  .changes = { LITTLE(16 * STAGE_MIB), LITTLE(STAGE_MIB) },
		  .fine = { { STAGE_TP0, .bytes = STAGE_MIB / 4 } },
		  .wire_ns = wire_of_all },
		{ .what = "less than 256 KiB does not",
		  .changes = { LITTLE(16 * STAGE_MIB), LITTLE(STAGE_MIB / 8) },
		  .fine = { { STAGE_TP0, .bytes = STAGE_MIB / 8 } },
		  .wire_ns = wire_of_all },
		{ .what = "what varies a lot says nothing: 4 x 0.15 / sqrt(25) is 13%",
		  .changes = { LITTLE(16 * STAGE_MIB) },
		  .fine = { { STAGE_TP0, .spread = 0.15 } },
		  .wire_ns = wire_of_all },
		{ .what = "4 x 0.13 / sqrt(25) is 11%, and half of the slowdown 12%",
		  .changes = { LITTLE(16 * STAGE_MIB) },
		  .fine = { { STAGE_TP0, .spread = 0.13 } },
		  .wire_ns = wire_of_all },
		{ .what = "of two communicators within nodes one varies a lot",
		  .changes = { LITTLE(16 * STAGE_MIB) },
		  .fine = { { STAGE_TP0, .spread = 0.15 }, { STAGE_TP1 } },
		  .wire_ns = wire_of_all },
		{ .what = "of two operation types within nodes one varies a lot",
		  .changes = { LITTLE(16 * STAGE_MIB) },
		  .fine = { { STAGE_TP0, .spread = 0.15 },
			    { STAGE_TP0, .function = OP_ALL_GATHER } },
		  .wire_ns = wire_of_all },
		{ .what = "sixteen collectives are enough",
		  .changes = { LITTLE(16 * STAGE_MIB) },
		  .fine = { { STAGE_TP0, .calls = 16 } },
		  .wire_ns = wire_of_all },
		{ .what = "fifteen are not",
		  .changes = { LITTLE(16 * STAGE_MIB) },
		  .fine = { { STAGE_TP0, .calls = 15 } },
		  .wire_ns = wire_of_all },
		{ .what = "what is fine between nodes says nothing about NVLink",
		  .changes = { LITTLE(16 * STAGE_MIB),
			       { .comm = STAGE_DP0,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 2,
				 .lost_s = 10 } },
		  .fine = { { STAGE_DP1, .function = OP_ALL_GATHER } },
		  .wire_ns = wire_of_all },
	};

	find_all(scenes, ARRAY_LENGTH(scenes));
}

/* ---- sizes, algorithms ---------------------------------------------------------------------------- */

static void test_what(void)
{
	static const struct slowness scenes[] = {
		{ .what = "one size, and larger ones are fine",
		  .changes = { SLOWER_SIZE(STAGE_WORLD, 1, STAGE_MIB) },
		  .fine = { { STAGE_WORLD } } },
		{ .what = "one size, and smaller ones are fine",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .fine = { { STAGE_WORLD, .bytes = 8 * STAGE_MIB } } },
		{ .what = "the other size runs as a tree: another algorithm",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .fine = { { STAGE_WORLD, .bytes = 8 * STAGE_MIB, .algorithm = OP_TREE },
			    { STAGE_DP0, .bytes = 8 * STAGE_MIB, .algorithm = OP_TREE } } },
		{ .what = "two sizes, and larger ones are fine",
		  .changes = { SLOWER_SIZE(STAGE_WORLD, 1, STAGE_MIB),
			       SLOWER_SIZE(STAGE_WORLD, 1, 4 * STAGE_MIB) },
		  .fine = { { STAGE_WORLD } } },
		{ .what = "two sizes in the other order",
		  .changes = { SLOWER_SIZE(STAGE_WORLD, 1, 4 * STAGE_MIB),
			       SLOWER_SIZE(STAGE_WORLD, 1, STAGE_MIB) },
		  .fine = { { STAGE_WORLD } } },
		{ .what = "larger ones are fine, but of another function",
		  .changes = { SLOWER_SIZE(STAGE_WORLD, 1, STAGE_MIB),
			       SLOWER_SIZE(STAGE_WORLD, 1, 4 * STAGE_MIB) },
		  .fine = { { STAGE_WORLD, .function = OP_ALL_GATHER } } },
		{ .what = "larger ones are fine, but on a communicator without the slow ones",
		  .changes = { SLOWER_SIZE(STAGE_DP0, 2, STAGE_MIB),
			       SLOWER_SIZE(STAGE_DP0, 2, 4 * STAGE_MIB) },
		  .fine = { { STAGE_DP1 } } },
		{ .what = "another protocol is fine",
		  .changes = { SLOWER(STAGE_WORLD, 1), SLOWER_SIZE(STAGE_WORLD, 1, 4 * STAGE_MIB) },
		  .fine = { { STAGE_WORLD }, /* what chose the slow ones */
			    { STAGE_WORLD, .bytes = 4 * STAGE_MIB },
			    { STAGE_WORLD, .bytes = 32 * STAGE_MIB, .function = OP_ALL_GATHER,
			      .protocol = OP_LL128 } } },
		{ .what = "another algorithm is fine, and so is the same one elsewhere",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .fine = { { STAGE_WORLD },
			    { STAGE_WORLD, .function = OP_ALL_GATHER, .algorithm = OP_TREE },
			    { STAGE_WORLD, .function = OP_REDUCE_SCATTER } } },
		{ .what = "less than 1 KiB is only latency",
		  .changes = { SLOWER_SIZE(STAGE_WORLD, 1, 512) } },
		{ .what = "1 KiB is not", .changes = { SLOWER_SIZE(STAGE_WORLD, 1, 1024) } },
	};

	find_all(scenes, ARRAY_LENGTH(scenes));
}

/* ---- when ----------------------------------------------------------------------------------------- */

static void test_when(void)
{
	static const struct slowness scenes[] = {
		{ .what = "slow until it became faster",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 40, .after = 50 } } },
		{ .what = "slow for a while",
		  .changes = { { STAGE_WORLD, .at_s = 200, .before = 50, .after = 40 },
			       { STAGE_WORLD, .at_s = 600, .before = 40, .after = 50 },
			       { STAGE_WORLD, .at_s = 700, .before = 50, .after = 60 } } },
		{ .what = "faster before it was slow: until then, and again later",
		  .changes = { { STAGE_WORLD, .at_s = 100, .before = 40, .after = 50 },
			       { STAGE_WORLD, .at_s = 300, .before = 50, .after = 40,
				 .lost_s = 500 } } },
		{ .what = "until nearly the end: it is not over",
		  .changes = { { STAGE_WORLD, .at_s = 200, .before = 50, .after = 40 },
			       { STAGE_WORLD, .at_s = 950, .before = 40, .after = 50 } } },
		{ .what = "until a moment before: it is over",
		  .changes = { { STAGE_WORLD, .at_s = 200, .before = 50, .after = 40 },
			       { STAGE_WORLD, .at_s = 949, .before = 40, .after = 50 } } },
		{ .what = "for 5 s: not brief",
		  .changes = { { STAGE_WORLD, .at_s = 995, .before = 50, .after = 40 } } },
		{ .what = "for 4 s: brief",
		  .changes = { { STAGE_WORLD, .at_s = 996, .before = 50, .after = 40 } } },
		{ .what = "too few collectives before",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 50, .after = 40,
				 .matches_before = 7, .matches_after = 8 } } },
		{ .what = "too few collectives after",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 50, .after = 40,
				 .matches_before = 8, .matches_after = 7 } } },
		{ .what = "just enough",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 50, .after = 40,
				 .matches_before = 8, .matches_after = 8 } } },
		{ .what = "4.9% are too little",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 41.96, .after = 40 } } },
		{ .what = "5.1% are not",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 42.04, .after = 40 } } },
	};

	find_all(scenes, ARRAY_LENGTH(scenes));
	for (int is_alive = 0; is_alive < 2; is_alive++) {
		play(&scenes[0]);
		stage.hand.list[3]->life = is_alive ? RECORDING_ALIVE : RECORDING_KILLED;
		stage_find(&stage, &found,
			   is_alive ? "the same in a job that still runs" : "and in a killed one");
		stage_over(&stage);
	}
}

/* ---- time on the wire ----------------------------------------------------------------------------- */

/* Rank 3 sends to rank 4, and so on: a ring. */
static struct region_link links[STAGE_RANKS];

static void add_links(bool is_mutual)
{
	for (int rank = 0; rank < STAGE_RANKS; rank++) {
		int to = is_mutual && rank == 4 ? 3 : (rank + 1) % STAGE_RANKS;

		links[rank] = (struct region_link){ .key = UINT64_C(1) << 34 | (uint64_t)(to + 1),
						    .bytes = 1 << 30,
						    .steps = 8192,
						    .wait_ns = { 0, 0, 100 * STAGE_SECOND } };
		stage.hand.list[rank]->links = &links[rank];
		stage.hand.list[rank]->link_count = 1;
	}
}

static void test_wire(void)
{
	static const struct slowness scenes[] = {
		{ .what = "as long on the wire as before: NVLink",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_nobody },
		{ .what = "as long on the wire as before, one rank per node: the network all the "
			  "same",
		  .changes = { SLOWER(STAGE_DP0, 2) },
		  .wire_ns = wire_of_nobody,
		  .wire_comm = 2 },
		{ .what = "longer on the wire, one rank per node: the network",
		  .changes = { SLOWER(STAGE_DP1, 2) },
		  .wire_ns = wire_of_all,
		  .wire_comm = 2 },
		{ .what = "most is lost within nodes, but the time on the wire is that between "
			  "them",
		  .changes = { SLOWER(STAGE_WORLD, 1),
			       { .comm = STAGE_TP0,
				 .at_s = 500,
				 .before = 50,
				 .after = 40,
				 .comms = 4,
				 .lost_s = 500 } },
		  .wire_ns = wire_of_nobody },
		{ .what = "longer on the wire: the network",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 50, .after = 40 } },
		  .wire_ns = wire_of_all },
		{ .what = "by less than a quarter: NVLink cannot be excluded",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 49.9, .after = 40 } },
		  .wire_ns = wire_of_all },
		{ .what = "by less than a quarter, and fine within nodes",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 49.9, .after = 40 } },
		  .fine = { { STAGE_TP0 } },
		  .wire_ns = wire_of_all },
		{ .what = "sends of one rank: a link",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_rank },
		{ .what = "sends of a host",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_host },
		{ .what = "sends of a host, until it became faster",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 40, .after = 50 } },
		  .wire_ns = wire_of_host_before },
		{ .what = "sends of a rail",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_rail },
		{ .what = "sends of some ranks of three hosts",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_some },
		{ .what = "sends of most ranks",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_most },
		{ .what = "within nodes as well",
		  .changes = { SLOWER(STAGE_WORLD, 1), SLOWER(STAGE_TP0, 4) },
		  .wire_ns = wire_of_nobody },
		{ .what = "within nodes as well, and longer on the wire",
		  .changes = { SLOWER(STAGE_WORLD, 1), SLOWER(STAGE_TP0, 4) },
		  .wire_ns = wire_of_all },
	};

	find_all(scenes, ARRAY_LENGTH(scenes));
	for (int is_mutual = 0; is_mutual < 2; is_mutual++) {
		static const struct slowness both = { .what = "sends of two ranks",
						      .changes = { SLOWER(STAGE_WORLD, 1) },
						      .wire_ns = wire_of_two };

		play(&both);
		add_links(is_mutual);
		stage_find(&stage, &found,
			   is_mutual ? "two ranks that send to each other"
				     : "sends of a rank and of the one that sends to it");
		stage_over(&stage);
	}
}

/* Who sends is known without GPUs' numbers, and one slow sender of eight, which hardly changes the mean, is no NVLink. */
static void test_unknown_gpus(void)
{
	static const struct slowness scenes[] = {
		{ .what = "unknown GPUs, sends of one rank",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_rank },
		{ .what = "unknown GPUs, sends of a host",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_host },
		{ .what = "unknown GPUs, sends of a rail",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_rail },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(scenes); i++) {
		play(&scenes[i]);
		for (size_t r = 0; r < stage.report.job.rank_count; r++)
			stage.report.job.ranks[r].gpu = -1;
		find(&scenes[i]);
		stage_over(&stage);
	}
}

/* Data received by node1 waits longer for the GPU than it did. */
static void test_consume(void)
{
	static const struct slowness scene = { .what = "received data waits for the GPUs of a host",
					       .changes = { SLOWER(STAGE_WORLD, 1) },
					       .wire_ns = wire_of_nobody };

	play(&scene);
	for (int rank = 2; rank < 4; rank++)
		for (int i = STAGE_WIRE_OPS; i < 2 * STAGE_WIRE_OPS; i++)
			stage.hand.list[rank]->flights[i].op.wait_ns[OP_WAIT_RECV_GPU] = 80000;
	find(&scene);
	stage_over(&stage);
}

/* Two ranks send to other nodes: the network and one of them look the same. */
static void test_few_senders(void)
{
	static const struct slowness scene = { .what = "two senders",
					       .changes = { { STAGE_WORLD, .at_s = 500,
							      .before = 60, .after = 40 } },
					       .wire_ns = wire_of_all };

	for (int senders = 3; senders < 5; senders++) {
		play(&scene);
		for (int rank = senders; rank < STAGE_RANKS; rank++)
			for (int i = 0; i < 2 * STAGE_WIRE_OPS; i++)
				stage.hand.list[rank]->flights[i].op.send_steps = 0;
		stage_find(&stage, &found, senders == 3 ? "three senders" : "four senders");
		stage_over(&stage);
	}
}

static void test_channels(void)
{
	static const struct {
		const char *what;
		uint8_t before, after;
	} cases[] = {
		{ "nine of ten channels", 10, 9 },
		{ "eight of ten channels", 10, 8 },
		{ "more channels than before", 8, 10 },
	};
	static const struct slowness scene = { .what = "channels",
					       .changes = { SLOWER(STAGE_WORLD, 1) },
					       .wire_ns = wire_of_all };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		play(&scene);
		for (int rank = 0; rank < STAGE_RANKS; rank++)
			for (int op = 0; op < 2 * STAGE_WIRE_OPS; op++)
				stage.hand.list[rank]->flights[op].op.channels =
					op < STAGE_WIRE_OPS ? cases[i].before : cases[i].after;
		stage_find(&stage, &found, cases[i].what);
		stage_over(&stage);
	}
}

/* Without GPU timestamps, waiting for a straggler is part of the durations. */
static void test_network_side(void)
{
	static const struct slowness scenes[] = {
		{ .what = "network-side times, longer on the wire: the network",
		  .changes = { SLOWER(STAGE_WORLD, 1) },
		  .wire_ns = wire_of_all },
		{ .what = "network-side times, not longer on the wire: not judged",
		  .changes = { SLOWER(STAGE_WORLD, 1), SLOWER(STAGE_DP0, 2) },
		  .wire_ns = wire_of_nobody },
		{ .what = "network-side times, sends of a rank: a link",
		  .changes = { { STAGE_WORLD, .at_s = 500, .before = 40.8, .after = 38.8 } },
		  .wire_ns = wire_of_rank },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(scenes); i++)
		for (uint64_t by_gpu = 49; by_gpu < 51; by_gpu++) {
			play(&scenes[i]);
			stage.report.total.by_source[OP_TIME_KERNEL_GPU] = by_gpu;
			stage.report.total.by_source[OP_TIME_PROXY] = 100 - by_gpu;
			stage_find(&stage, &found,
				   by_gpu == 49 ? scenes[i].what : "the same with 50% GPU times");
			stage_over(&stage);
		}
}

/* ---- compared with a baseline ----------------------------------------------------------------------- */

/* An AllReduce of 16 MiB on world took 0.81 ms then and takes 1 ms now. */
static struct baseline_row as_then(void)
{
	return (struct baseline_row){ .comm_name = "world",
				      .kind = "mixed",
				      .function = "AllReduce",
				      .size = "16 MiB",
				      .algorithm = "RING",
				      .protocol = "SIMPLE",
				      .nranks = STAGE_RANKS,
				      .nnodes = STAGE_HOSTS,
				      .calls = 800,
				      .is_joined = true,
				      .busbw = 49.4e9,
				      .log_mean = log(0.81e6),
				      .log_deviation = 0.01,
				      .samples = 25 };
}

static void begin_then(struct baseline *baseline, struct baseline_row *row,
		       uint64_t (*wire_ns)(int rank, bool is_after))
{
	*row = as_then();
	*baseline = (struct baseline){ .rows = row, .count = 1 };
	stage_begin(&stage);
	/* The other job has nothing to compare: it would only be a note. */
	stage_leave_strangers(&stage);
	if (wire_ns != NULL)
		stage_wire(&stage, 1, wire_ns);
	stage_made(&stage);
	/* 0.19 ms of 3.84 million calls, and eight ranks have 8,000 s: 9.1%. */
	stage_cell(&stage, &(struct stage_cell){ .comm = STAGE_WORLD, .calls = 480000 });
	stage.options.baseline = baseline;
}

static uint64_t wire_of_rank_always(int rank, bool is_after)
{
	(void)is_after;
	return rank == 5 ? 14000 : 10000;
}

static uint64_t wire_of_rank_hardly(int rank, bool is_after)
{
	(void)is_after;
	return rank == 5 ? 13000 : 10000;
}

static void test_baseline(void)
{
	static const struct {
		const char *what;
		const char *algorithm;
		double log_mean_s, wire_then_ns, channels_then, consume_then_ns;
		int32_t nranks;
		uint64_t (*wire_ns)(int rank, bool is_after);
		uint32_t others; /* operation types without a counterpart */
	} cases[] = {
		{ .what = "as fast as in the baseline", .log_mean_s = 0.96e-3 },
		{ .what = "slower than in the baseline" },
		{ .what = "slower, and as long on the wire as then",
		  .wire_then_ns = 10000,
		  .wire_ns = wire_of_nobody },
		{ .what = "slower, and longer on the wire than then",
		  .wire_then_ns = 8000,
		  .wire_ns = wire_of_nobody },
		{ .what = "slower, and received data waits for the GPU", /* of all hosts */
		  .wire_then_ns = 10000,
		  .consume_then_ns = 100,
		  .wire_ns = wire_of_nobody },
		{ .what = "slower, and sends of a rank take longer than others",
		  .wire_then_ns = 10000,
		  .wire_ns = wire_of_rank_always },
		{ .what = "but not by more than 30%",
		  .wire_then_ns = 10000,
		  .wire_ns = wire_of_rank_hardly },
		{ .what = "another algorithm was chosen then", .algorithm = "TREE" },
		{ .what = "more channels were used then",
		  .channels_then = 10,
		  .wire_then_ns = 10000,
		  .wire_ns = wire_of_nobody },
		{ .what = "more ranks then", .nranks = 16 },
		{ .what = "an operation type has no counterpart", .others = 1 },
		{ .what = "two operation types have none", .others = 2 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct baseline baseline;
		struct baseline_row row;

		begin_then(&baseline, &row, cases[i].wire_ns);
		row.log_mean =
			cases[i].log_mean_s > 0 ? log(1e9 * cases[i].log_mean_s) : row.log_mean;
		row.wire_ns = cases[i].wire_then_ns;
		row.consume_ns = cases[i].consume_then_ns;
		row.channels = cases[i].channels_then;
		row.nranks = cases[i].nranks > 0 ? cases[i].nranks : row.nranks;
		if (cases[i].algorithm != NULL)
			text_copy(row.algorithm, sizeof(row.algorithm), cases[i].algorithm);
		for (uint32_t other = 0; other < cases[i].others; other++)
			stage_cell(&stage,
				   &(struct stage_cell){ STAGE_DP0, .bytes = STAGE_MIB << other });
		stage_find(&stage, &found, cases[i].what);
		stage_over(&stage);
	}
}

/* Slower than before, and than in the baseline: one verdict, with evidence of both. */
static void test_past_and_baseline(void)
{
	for (int what = 0; what < 4; what++) {
		struct baseline baseline;
		struct baseline_row row;

		begin_then(&baseline, &row, NULL);
		if (what == 3) {
			text_copy(row.size, sizeof(row.size), "128 KiB");
			stage.report.custom[0].count = 0;
			stage_cell(&stage,
				   &(struct stage_cell){ STAGE_WORLD, .bytes = STAGE_MIB / 8,
							 .calls = 480000 });
		}
		stage_change(&stage, &(struct stage_change){ what == 2 ? STAGE_TP1 : STAGE_WORLD,
							     .at_s = 500, .before = 50, .after = 40,
							     .bytes = what == 1 ? STAGE_MIB : 0 });
		stage_find(&stage, &found,
			   what == 0   ? "slower than before and than in the baseline"
			   : what == 1 ? "other sizes are slower than before"
			   : what == 2 ? "slower than before within a node"
				       : "small messages are slower than in the baseline");
		stage_over(&stage);
	}
}

/* 100 iterations of so many milliseconds, which fill the recording; 10 s in the baseline. */
static struct iteration iterations[120];

static void add_iterations(double seconds)
{
	size_t count = (size_t)(STAGE_LENGTH_S / seconds);

	for (size_t i = 0; i < count; i++)
		iterations[i] = (struct iteration){
			.start_ns = STAGE_START + (uint64_t)((double)i * seconds * 1e9),
			.end_ns = STAGE_START + (uint64_t)(((double)i + 1) * seconds * 1e9),
		};
	stage.report.iterations = (struct iterations){ .is_found = true,
						       .list = iterations,
						       .count = count,
						       .regular = count,
						       .period_ops = 10,
						       .median_ns = (uint64_t)(seconds * 1e9) };
	stage.report.gpu_hours = 2;
}

static void test_iterations(void)
{
	static const struct {
		const char *what;
		double seconds;
		bool is_slow;	   /* its transfers are slower than in the baseline, too */
		uint64_t wait_ns;  /* of 1,000 in collectives; 200 in the baseline */
		bool has_enough;   /* collectives to name a straggler */
		bool is_straggler; /* there is one */
	} cases[] = {
		{ .what = "longer iterations, the rest is equal", .seconds = 12, .wait_ns = 300 },
		{ .what = "longer iterations, and ranks wait more",
		  .seconds = 12,
		  .wait_ns = 301,
		  .has_enough = true },
		{ .what = "longer iterations, ranks wait more, and little is known",
		  .seconds = 12,
		  .wait_ns = 301 },
		{ .what = "iterations that are 5% longer", .seconds = 10.5, .wait_ns = 200 },
		{ .what = "iterations that are 5.1% longer", .seconds = 10.51, .wait_ns = 200 },
		{ .what = "longer iterations and slower transfers",
		  .seconds = 12,
		  .is_slow = true },
		{ .what = "equal iterations and slower transfers", .seconds = 10, .is_slow = true },
		{ .what = "slightly longer iterations and slower transfers",
		  .seconds = 10.21,
		  .is_slow = true },
		{ .what = "longer iterations and a straggler",
		  .seconds = 12,
		  .is_straggler = true },
		{ .what = "iterations that are not longer, and a straggler",
		  .seconds = 10.1,
		  .is_straggler = true },
		{ .what = "shorter iterations and a straggler",
		  .seconds = 9,
		  .is_straggler = true },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct baseline baseline;
		struct baseline_row row;

		begin_then(&baseline, &row, NULL);
		baseline.ranks = (uint32_t)stage.report.job.rank_count;
		baseline.iterations = 70;
		baseline.iteration_ops = 10;
		baseline.iteration_ns = 10e9;
		baseline.wait_share = 0.2;
		if (!cases[i].is_slow)
			row.log_mean = log(1e6);
		add_iterations(cases[i].seconds);
		stage.report.total.joined_ns = 1000;
		stage.report.total.wait_ns = cases[i].wait_ns;
		stage.report.stragglers.matches = 77;
		stage.report.stragglers.has_enough = cases[i].has_enough;
		stage.report.stragglers.count = cases[i].is_straggler;
		stage.stragglers[0] = (struct straggler){ .class = STRAGGLER_SLOW_RANK,
							  .rank = 3,
							  .host = 1,
							  .peer = UINT32_MAX,
							  .comm = stage_index(&stage, STAGE_WORLD),
							  .matches = 1000,
							  .last_in = 900,
							  .late_ns = STAGE_SECOND / 50,
							  .caused_ns = 700 * STAGE_SECOND,
							  .cost_share = 0.0875,
							  .confidence = 0.99 };
		stage_find(&stage, &found, cases[i].what);
		stage_over(&stage);
	}
}

/* Slow algorithms are named after what was chosen before: from one moment on, not in turns. */
static void test_switched(void)
{
	static const struct {
		const char *what;
		double ms; /* as a tree; 1 as a ring */
		uint64_t calls;
		int first_tree; /* of 32 calls; -1: in turns */
		int comms;
	} cases[] = {
		{ "a tree since the middle", 1.3, 100, 16, 1 },
		{ "on two communicators", 1.3, 100, 16, 2 },
		{ "in turns", 1.3, 100, -1, 1 },
		{ "a tree at first", 1.3, 100, 0, 1 },
		{ "sixteen calls", 1.3, 16, 16, 1 },
		{ "fifteen calls", 1.3, 15, 16, 1 },
		/* 5% and four errors of 1%. */
		{ "9% longer", 1.09, 100, 16, 1 },
		{ "11% longer", 1.11, 100, 16, 1 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		stage_begin(&stage);
		for (int rank = 0; rank < STAGE_RANKS; rank++)
			for (uint32_t comm = 1; comm <= (uint32_t)cases[i].comms; comm++)
				for (int n = 0; n < 32; n++) {
					bool is_tree =
						cases[i].first_tree < 0
							? n % 2 == 1
							: (n >= 16) == (cases[i].first_tree > 0);
					struct op_record *op = hand_op(
						stage.hand.list[rank], comm, OP_ALL_REDUCE,
						(uint64_t)n + 1, 16 * STAGE_MIB, 1000,
						STAGE_START + (uint64_t)(n * 30) * STAGE_SECOND);

					op->algorithm = is_tree ? OP_TREE : OP_RING;
				}
		stage_made(&stage);
		for (int comm = 0; comm < cases[i].comms; comm++)
			for (int is_tree = 0; is_tree < 2; is_tree++)
				stage_cell(&stage, &(struct stage_cell){
							   comm == 0 ? STAGE_WORLD : STAGE_DP1,
							   .algorithm = is_tree ? OP_TREE : OP_RING,
							   .calls = cases[i].calls,
							   .busbw = is_tree ? 40 / cases[i].ms : 40,
							   .ms = is_tree ? cases[i].ms : 1 });
		stage_find(&stage, &found, cases[i].what);
		stage_over(&stage);
	}
}

/* ---- how much is printed ------------------------------------------------------------------------------ */

/* Eight operation types have a line each; then there is a line for the rest. */
static void test_many(void)
{
	static const struct slowness none = { .what = "many" };

	for (int count = 8; count < 11; count++) {
		char what[64];

		play(&none);
		for (int i = 0; i < count; i++)
			stage_change(&stage, &(struct stage_change){ STAGE_WORLD, .at_s = 500,
								     .before = 50, .after = 40 - i,
								     .lost_s = 1000 - 10 * i,
								     .bytes = STAGE_MIB << i });
		snprintf(what, sizeof(what), "%d operation types", count);
		stage_find(&stage, &found, what);
		stage_over(&stage);
	}
}

static void test_left_out(void)
{
	static const struct slowness none = { .what = "left out" };

	for (int what = 0; what < 4; what++) {
		play(&none);
		stage.report.windows.changes_left_out = what == 0 ? 1 : what == 1 ? 2 : 0;
		for (size_t i = 0; what >= 2 && i < SLOW_ROWS_MAX + (size_t)what - 2; i++)
			stage_cell(&stage, &(struct stage_cell){
						   i % 2 ? STAGE_WORLD : STAGE_DP0,
						   .bytes = UINT64_C(1024) << i % 64 / 2,
						   .function = (uint8_t)(1 + i / 64),
					   });
		stage_find(&stage, &found,
			   what == 0   ? "a change was left out"
			   : what == 1 ? "two changes were left out"
			   : what == 2 ? "as many operation types as are compared"
				       : "one more");
		stage_over(&stage);
	}
}

/* ---- together with other verdicts --------------------------------------------------------------------- */

static void test_mismatch(void)
{
	static const struct slowness scene = { .what = "mismatch",
					       .changes = { SLOWER(STAGE_WORLD, 1) } };

	for (int what = 0; what < 3; what++) {
		struct verdict *verdict;

		play(&scene);
		verdict = verdicts_add(&stage.verdicts,
				       what == 2 ? VERDICT_STUCK : VERDICT_MISMATCH, VERDICT_ERROR);
		snprintf(verdict->job, sizeof(verdict->job), what == 1 ? "other" : "train");
		snprintf(verdict->comm, sizeof(verdict->comm), "world");
		verdict->number = 40;
		stage_find(&stage, &found,
			   what == 0   ? "ranks called different operations"
			   : what == 1 ? "those of another job did"
				       : "a hang that is no mismatch");
		stage_over(&stage);
	}
}

/* Two ranks of a host share a GPU: there is no NVLink between them. */
static void test_shared_gpu(void)
{
	static const struct slowness scene = { .what = "shared",
					       .changes = { { .comm = STAGE_TP2,
							      .at_s = 500,
							      .before = 50,
							      .after = 40,
							      .comms = 4,
							      .changed = 1 } } };

	for (int what = 0; what < 3; what++) {
		play(&scene);
		for (size_t r = 0; r < stage.report.job.rank_count; r++) {
			struct job_rank *rank = &stage.report.job.ranks[r];

			snprintf(rank->gpu_uuid, sizeof(rank->gpu_uuid), "GPU-%zu", r);
			if (what == 1)
				snprintf(rank->gpu_uuid, sizeof(rank->gpu_uuid), "GPU-%u",
					 rank->host);
			if (what == 2)
				rank->gpu_uuid[0] = '\0';
		}
		stage_find(&stage, &found,
			   what == 0   ? "ranks of a host with GPUs of their own"
			   : what == 1 ? "ranks of a host that share a GPU"
				       : "ranks of a host with unknown GPUs");
		stage_over(&stage);
	}
}

int main(void)
{
	test_where();
	test_what_would_show();
	test_what();
	test_when();
	test_wire();
	test_unknown_gpus();
	test_consume();
	test_few_senders();
	test_channels();
	test_network_side();
	test_baseline();
	test_past_and_baseline();
	test_iterations();
	test_switched();
	test_many();
	test_left_out();
	test_mismatch();
	test_shared_gpu();
	expected_compare(&found, "tests/unit/doctor/expected/slow_rows.txt");
	return tap_done();
}
