#include "bench/cost_model.h"

#include <math.h>
#include <string.h>

#include "common/op_layout.h"
#include "tests/tap.h"

static const uint8_t functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER,
				     OP_BROADCAST,  OP_REDUCE,	   OP_SEND_RECV,
				     OP_ALL_TO_ALL, OP_GATHER,	   OP_SCATTER };
enum { FUNCTIONS = sizeof(functions) };

static bool is_near(double got, double wanted)
{
	if (fabs(got - wanted) <= 1e-9 * fmax(1, fabs(wanted)))
		return true;
	printf("#   got %.12g, wanted %.12g\n", got, wanted);
	return false;
}

static struct cost_work work_of(uint8_t function, enum cost_algorithm algorithm, int32_t ranks,
				int32_t nodes, int32_t rails, uint64_t bytes)
{
	const struct cost_shape shape = { ranks, nodes, rails };
	struct cost_work work;

	memset(&work, 0xff, sizeof(work));
	if (!EXPECT(cost_work_of(function, algorithm, &shape, bytes, &work)))
		memset(&work, 0, sizeof(work));
	return work;
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* Maximum number of hops that leave a node, of `hops` consecutive hops, tried from every rank. */
static int leaving_at_worst(int ranks, int nodes, int hops)
{
	int local = ranks / nodes, worst = 0;

	for (int start = 0; start < ranks; start++) {
		int leaving = 0;

		for (int hop = 0; hop < hops; hop++) {
			int from = (start + hop) % ranks, to = (start + hop + 1) % ranks;

			leaving += from / local != to / local;
		}
		worst = leaving > worst ? leaving : worst;
	}
	return worst;
}

static void rings_are_counted_hop_by_hop(void)
{
	bool is_right = true;

	for (int nodes = 1; nodes <= 6; nodes++)
		for (int local = 1; local <= 5; local++) {
			const struct cost_shape shape = { nodes * local, nodes, 0 };
			int ranks = shape.ranks;
			struct cost_work once, twice;

			if (ranks < 2)
				continue;
			cost_work_of(OP_ALL_GATHER, COST_RING, &shape, 1000, &once);
			cost_work_of(OP_ALL_REDUCE, COST_RING, &shape, 1000, &twice);
			is_right = is_right &&
				   once.hops[COST_BETWEEN] ==
					   leaving_at_worst(ranks, nodes, ranks - 1) &&
				   twice.hops[COST_BETWEEN] ==
					   leaving_at_worst(ranks, nodes, 2 * (ranks - 1)) &&
				   once.hops[COST_INSIDE] + once.hops[COST_BETWEEN] == ranks - 1 &&
				   twice.steps == 2 * (ranks - 1);
		}
	EXPECT_THAT("hops between nodes are those of the worst chunk", is_right);
}

static void rings_carry_what_bus_bandwidth_says(void)
{
	struct cost_work work = work_of(OP_ALL_REDUCE, COST_RING, 16, 2, 4, 1600);

	EXPECT(is_near(work.step_bytes, 100));
	EXPECT(is_near(work.bytes[COST_INSIDE], 3000));
	EXPECT_THAT("four NICs share the data that leaves a node",
		    is_near(work.bytes[COST_BETWEEN], 750));
	EXPECT(work.fill[COST_INSIDE] == 0 && work.fill[COST_BETWEEN] == 0);
	work = work_of(OP_REDUCE_SCATTER, COST_RING, 16, 2, 100, 1600);
	EXPECT_THAT("ranks use at most as many NICs as there are ranks",
		    is_near(work.bytes[COST_BETWEEN], 1500.0 / 8));
	work = work_of(OP_ALL_REDUCE, COST_RING, 4, 4, 0, 400);
	EXPECT_THAT("one rank per node has nothing inside", work.bytes[COST_INSIDE] == 0 &&
								    work.hops[COST_INSIDE] == 0 &&
								    work.hops[COST_BETWEEN] == 6);
	work = work_of(OP_BROADCAST, COST_RING, 16, 4, 0, 1 << 30);
	EXPECT(work.hops[COST_INSIDE] == 12 && work.hops[COST_BETWEEN] == 3);
	EXPECT(work.step_bytes == COST_CHUNK_MOST);
	EXPECT(work.fill[COST_INSIDE] == 12.0 * COST_CHUNK_MOST);
	EXPECT_THAT("one chunk is already in the transfer",
		    work.fill[COST_BETWEEN] == 2.0 * COST_CHUNK_MOST / 4);
}

/* ---- trees ----------------------------------------------------------------------------------- */

enum { NODES_MAX = 40 };

/* A binary tree over 0 .. nodes-1 in which odd numbers are leaves: parent by lowest bit. */
static int parent_of(int node, int nodes)
{
	int bit = node & -node, parent;

	if (node == 0)
		return -1;
	parent = (node ^ bit) | bit << 1;
	return parent < nodes ? parent : node ^ bit;
}

/* Links of each node in this tree and in its mirrored or shifted copy; returns the height of the first. */
static int build(int nodes, int links[NODES_MAX], int both[NODES_MAX])
{
	int height = 0;

	memset(links, 0, NODES_MAX * sizeof(*links));
	memset(both, 0, NODES_MAX * sizeof(*both));
	for (int node = 1; node < nodes; node++) {
		int up = 0;

		links[node]++;
		links[parent_of(node, nodes)]++;
		for (int at = node; at != 0; at = parent_of(at, nodes))
			up++;
		height = up > height ? up : height;
	}
	for (int node = 0; node < nodes; node++)
		both[node] = links[node] + (nodes % 2 == 0 ? links[nodes - 1 - node]
							   : links[(node + nodes - 1) % nodes]);
	return height;
}

static void trees_are_counted_link_by_link(void)
{
	int links[NODES_MAX], both[NODES_MAX];
	bool is_single = true, is_double = true, is_height = true;

	for (int nodes = 2; nodes < NODES_MAX; nodes++) {
		const struct cost_shape shape = { nodes, nodes, 1 };
		int height = build(nodes, links, both), most = 0, most_both = 0;
		struct cost_work one, two;

		for (int i = 0; i < nodes; i++) {
			most = links[i] > most ? links[i] : most;
			most_both = both[i] > most_both ? both[i] : most_both;
		}
		cost_work_of(OP_ALL_REDUCE, COST_TREE, &shape, 1000, &one);
		cost_work_of(OP_ALL_REDUCE, COST_DOUBLE_TREE, &shape, 1000, &two);
		is_height = is_height && one.hops[COST_BETWEEN] == 2 * height;
		is_single = is_single &&
			    is_near(one.bytes[COST_BETWEEN] * COST_TREE_SHARE, 1000.0 * most);
		is_double = is_double &&
			    is_near(two.bytes[COST_BETWEEN] * COST_TREE_SHARE, 500.0 * most_both);
	}
	EXPECT_THAT("the height of a tree is that of a constructed one", is_height);
	EXPECT_THAT("the busiest node of one tree has this many links", is_single);
	EXPECT_THAT("two trees share the load", is_double);
}

static void trees_have_chains_inside(void)
{
	struct cost_work work = work_of(OP_ALL_REDUCE, COST_DOUBLE_TREE, 32, 4, 0, 1 << 20);

	EXPECT(work.hops[COST_INSIDE] == 14 && work.hops[COST_BETWEEN] == 4);
	EXPECT(is_near(work.bytes[COST_INSIDE], 2.0 * (1 << 20) / COST_TREE_SHARE));
	EXPECT(is_near(work.bytes[COST_BETWEEN], 2.0 * (1 << 20) / 8 / COST_TREE_SHARE));
	work = work_of(OP_ALL_REDUCE, COST_DOUBLE_TREE, 2, 1, 0, 1 << 20);
	EXPECT_THAT("two ranks exchange the message once in each direction",
		    is_near(work.bytes[COST_INSIDE], (1 << 20) / COST_TREE_SHARE) &&
			    work.bytes[COST_BETWEEN] == 0);
	work = work_of(OP_BROADCAST, COST_TREE, 8, 8, 0, 1 << 20);
	EXPECT(work.hops[COST_BETWEEN] == 3 &&
	       is_near(work.bytes[COST_BETWEEN], 2.0 * (1 << 20) / COST_TREE_SHARE));
	work = work_of(OP_REDUCE, COST_DOUBLE_TREE, 8, 8, 0, 1 << 20);
	EXPECT(is_near(work.bytes[COST_BETWEEN], (1 << 20) / COST_TREE_SHARE));
}

/* ---- direct ---------------------------------------------------------------------------------- */

static void direct_transfers(void)
{
	const struct cost_shape shape = { 16, 2, 4 };
	struct cost_work work = work_of(OP_ALL_TO_ALL, COST_DIRECT, 16, 2, 4, 1600);

	EXPECT(is_near(work.bytes[COST_INSIDE], 700));
	EXPECT_THAT("eight ranks send 8 parts each over 4 NICs",
		    is_near(work.bytes[COST_BETWEEN], 8 * 800 / 4.0));
	EXPECT(work.hops[COST_INSIDE] == 1 && work.hops[COST_BETWEEN] == 1);
	work = work_of(OP_GATHER, COST_DIRECT, 16, 2, 4, 1600);
	EXPECT_THAT("a root has one NIC", is_near(work.bytes[COST_BETWEEN], 800));
	work = work_of(OP_SEND_RECV, COST_DIRECT, 16, 2, 4, 1600);
	EXPECT(work.hops[COST_BETWEEN] == 1 && work.bytes[COST_BETWEEN] == 1600);
	work = work_of(OP_SEND_RECV, COST_DIRECT, 16, 1, 0, 1600);
	EXPECT(work.hops[COST_INSIDE] == 1 && work.bytes[COST_INSIDE] == 1600);
	EXPECT(cost_work_of_pairs(&shape, 8, 1600, &work));
	EXPECT_THAT("eight pairs share four NICs", is_near(work.bytes[COST_BETWEEN], 3200));
	EXPECT(cost_work_of_pairs(&shape, 0, 1600, &work) && work.bytes[COST_INSIDE] == 1600);
	EXPECT_THAT("no more can leave than there are",
		    !cost_work_of_pairs(&shape, 9, 1600, &work));
}

/* ---- odd ones -------------------------------------------------------------------------------- */

static bool is_sound(const struct cost_work *work)
{
	for (int link = 0; link < COST_LINKS; link++)
		if (!(work->hops[link] >= 0 && work->bytes[link] >= 0 && work->fill[link] >= 0) ||
		    !isfinite(work->bytes[link] + work->fill[link] + work->hops[link]))
			return false;
	return true;
}

static void odd_shapes(void)
{
	const struct cost_shape bad[] = {
		{ 0, 1, 0 }, { 4, 0, 0 }, { 4, 5, 0 }, { -4, 1, 0 }, { 4, 1, -1 }
	};
	const struct cost_shape fine[] = {
		{ 1, 1, 0 }, { 2, 1, 0 }, { 3, 2, 0 }, { 17, 4, 3 }, { 65536, 8192, 8 }
	};
	const uint64_t sizes[] = { 0, 1, 1 << 20, UINT64_MAX };
	struct cost_work work;
	bool is_refused = true, is_fine = true, has_nothing = true;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_refused =
			is_refused && !cost_work_of(OP_ALL_REDUCE, COST_RING, &bad[i], 100, &work);
	EXPECT_THAT("invalid shapes are rejected", is_refused);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		for (int f = 0; f < FUNCTIONS; f++)
			for (int a = COST_RING; a < COST_ALGORITHMS; a++)
				for (int s = 0; s < 4; s++) {
					if (!cost_work_of(functions[f], (enum cost_algorithm)a,
							  &fine[i], sizes[s], &work))
						continue;
					is_fine = is_fine && is_sound(&work);
					has_nothing =
						has_nothing &&
						(i > 0 || (work.steps == 0 && work.bytes[0] == 0));
				}
	EXPECT_THAT("nothing is negative or infinite", is_fine);
	EXPECT_THAT("one rank has no work", has_nothing);
	EXPECT(!cost_work_of(OP_ALL_GATHER, COST_TREE, &fine[3], 100, &work));
	EXPECT(!cost_work_of(OP_ALL_TO_ALL, COST_RING, &fine[3], 100, &work));
	EXPECT(!cost_work_of(OP_PUT_SIGNAL, COST_DIRECT, &fine[3], 100, &work));
}

static void names(void)
{
	for (int a = COST_RING; a < COST_ALGORITHMS; a++)
		EXPECT_EQUAL(cost_algorithm_find(cost_algorithm_name((enum cost_algorithm)a)), a);
	EXPECT_EQUAL(cost_algorithm_find("star"), COST_ANY);
	EXPECT_EQUAL(cost_algorithm_of(OP_TREE), COST_DOUBLE_TREE);
	EXPECT_EQUAL(cost_algorithm_of(OP_NVLS), COST_ANY);
	EXPECT(!cost_is_in_nccl(OP_ALL_REDUCE, COST_TREE));
	for (int f = 0; f < FUNCTIONS; f++)
		EXPECT(cost_is_in_nccl(functions[f], COST_RING) !=
		       cost_is_in_nccl(functions[f], COST_DIRECT));
}

int main(void)
{
	rings_are_counted_hop_by_hop();
	rings_carry_what_bus_bandwidth_says();
	trees_are_counted_link_by_link();
	trees_have_chains_inside();
	direct_transfers();
	odd_shapes();
	names();
	return tap_done();
}
