/* How long communication takes in a simulated job. */
#include "tests/tap.h"

#include "common/op_layout.h"
#include "sim/sim_engine.h"

#define MIB (UINT64_C(1) << 20)

static struct sim_job job;

/* A job with this many nodes and GPUs, with a fault or NULL. */
static void start(int nodes, int gpus, const char *fault)
{
	struct sim_options options;
	char why[256];

	sim_options_init(&options);
	options.nodes = nodes;
	options.gpus = gpus;
	if (fault)
		sim_fault_parse(&options.faults[options.fault_count++], fault, why, sizeof(why));
	sim_options_finish(&options, why, sizeof(why));
	sim_job_init(&job, &options);
}

static struct sim_plan plan_of(uint8_t function, uint64_t bytes)
{
	struct sim_plan plan;

	sim_model_collective(&plan, &job, &job.comms[0], function, bytes, 0);
	return plan;
}

/* Bus bandwidth in bytes per us, as nccl-tests has it. */
static uint64_t bus_rate(const struct sim_plan *plan, uint64_t bytes, uint64_t permille)
{
	return bytes * 1000 / plan->longest_ns * permille / 1000;
}

static void test_bandwidth(void)
{
	struct sim_plan plan;
	uint64_t rate;

	start(1, 8, NULL);
	plan = plan_of(OP_ALL_REDUCE, 1024 * MIB);
	rate = bus_rate(&plan, 1024 * MIB, 2 * 7 * 1000 / 8);
	EXPECT_THAT("AllReduce in a node reaches NVLink's bandwidth",
		    rate > 360000 * 95 / 100 && rate <= 360000);
	sim_job_release(&job);

	start(16, 1, NULL);
	plan = plan_of(OP_ALL_GATHER, 1024 * MIB);
	rate = bus_rate(&plan, 1024 * MIB, 15 * 1000 / 16);
	EXPECT_THAT("one GPU per node reaches its NIC's bandwidth",
		    rate > 48000 * 95 / 100 && rate <= 48000);
	sim_job_release(&job);

	start(4, 8, NULL);
	plan = plan_of(OP_ALL_REDUCE, 4);
	EXPECT_EQUAL(plan.algorithm, OP_TREE);
	EXPECT_EQUAL(plan.protocol, OP_LL);
	EXPECT_EQUAL(plan.channels, 1);
	plan = plan_of(OP_ALL_REDUCE, 4096 * MIB);
	EXPECT_EQUAL(plan.algorithm, OP_RING);
	EXPECT_EQUAL(plan.protocol, OP_SIMPLE);
	EXPECT_EQUAL(plan.channels, 8);
	EXPECT_THAT("steps carry all data of a connection",
		    plan.steps * plan.step_bytes >= plan.link_bytes &&
			    (plan.steps - 1) * plan.step_bytes < plan.link_bytes);
	sim_job_release(&job);
}

static void test_slow_link(void)
{
	struct sim_plan good, bad;

	start(2, 4, NULL);
	good = plan_of(OP_REDUCE_SCATTER, 1024 * MIB);
	sim_job_release(&job);
	start(2, 4, "slow-link:from=3,to=4,factor=4");
	bad = plan_of(OP_REDUCE_SCATTER, 1024 * MIB);
	for (int channel = 0; channel < bad.channels; channel++) {
		bool is_on_it = sim_comm_next(&job.comms[0], channel, 3) == 4;

		if (is_on_it ? bad.channel_ns[channel] < 3 * good.channel_ns[channel]
			     : bad.channel_ns[channel] != good.channel_ns[channel])
			EXPECT_THAT("only channels over the slow link are slow", false);
	}
	EXPECT_THAT("the operation is as slow as its slowest channel",
		    bad.longest_ns > 3 * good.longest_ns);
	EXPECT(sim_job_uses_link(&job, 3, 4));
	EXPECT(!sim_job_uses_link(&job, 4, 3));
	sim_job_release(&job);

	start(2, 4, "slow-link:from=3,to=4,factor=4,at=10s,until=20s");
	bad = plan_of(OP_REDUCE_SCATTER, 1024 * MIB);
	EXPECT_EQUAL(bad.longest_ns, good.longest_ns);
	sim_model_collective(&bad, &job, &job.comms[0], OP_REDUCE_SCATTER, 1024 * MIB,
			     UINT64_C(15000000000));
	EXPECT(bad.longest_ns > 3 * good.longest_ns);
	sim_model_collective(&bad, &job, &job.comms[0], OP_REDUCE_SCATTER, 1024 * MIB,
			     UINT64_C(20000000000));
	EXPECT_EQUAL(bad.longest_ns, good.longest_ns);
	sim_job_release(&job);
}

/* Of all links between two ranks, those that a fault slows down: how many, and whether they are the right ones. */
static int slow_links(const char *fault, bool (*is_right)(int from, int to))
{
	int count = 0;

	start(4, 4, fault);
	for (int from = 0; from < job.world; from++)
		for (int to = 0; to < job.world; to++) {
			bool is_slow = sim_job_link_permille(&job, from, to, 0) > 1000;

			if (is_slow != is_right(from, to))
				EXPECT_THAT(fault, false);
			count += is_slow;
		}
	sim_job_release(&job);
	return count;
}

static bool is_far(int from, int to)
{
	return from / 4 != to / 4;
}

static bool is_rail_1(int from, int to)
{
	return is_far(from, to) && (from % 4 == 1 || to % 4 == 1);
}

static bool is_node_2(int from, int to)
{
	return is_far(from, to) && (from / 4 == 2 || to / 4 == 2);
}

static bool is_from_node_2(int from, int to)
{
	return is_far(from, to) && from / 4 == 2;
}

static bool is_to_node_2(int from, int to)
{
	return is_far(from, to) && to / 4 == 2;
}

static bool is_to_rank_6(int from, int to)
{
	return is_far(from, to) && to == 6;
}

static bool is_of_rank_6(int from, int to)
{
	return is_far(from, to) && (from == 6 || to == 6);
}

static void test_shapes(void)
{
	EXPECT(slow_links("slow-rail:rail=1", is_rail_1) > 0);
	EXPECT(slow_links("slow-uplink:node=2", is_node_2) > 0);
	EXPECT(slow_links("slow-uplink:node=2,what=sending", is_from_node_2) > 0);
	EXPECT(slow_links("slow-uplink:node=2,what=receiving", is_to_node_2) > 0);
	EXPECT(slow_links("slow-receiver:rank=6", is_to_rank_6) > 0);
	EXPECT(slow_links("starved:rank=6", is_of_rank_6) > 0);

	start(4, 4, "power-cap:factor=1.4,at=10s,until=20s");
	for (int rank = 0; rank < job.world; rank++) {
		EXPECT_EQUAL(sim_job_compute_permille(&job, rank, 0), 1000);
		EXPECT_EQUAL(sim_job_compute_permille(&job, rank, UINT64_C(15000000000)), 1400);
		EXPECT_EQUAL(sim_job_compute_permille(&job, rank, UINT64_C(20000000000)), 1000);
	}
	sim_job_release(&job);
}

/* Transfers at a connection of the first channel, times 1000. */
static uint64_t length_of(int from, int to, uint64_t bytes)
{
	struct sim_plan plan = plan_of(OP_ALL_GATHER, bytes);

	return sim_model_length(&plan, &job, &job.comms[0], 0, from, to, 0);
}

static void test_queues(void)
{
	uint64_t usual, slow[3], nvlink;

	/* The first ring goes from 3 to 4, 7 to 8, 11 to 12 and 15 to 0 over the network. */
	start(4, 4, NULL);
	usual = length_of(3, 4, 1024 * MIB);
	nvlink = length_of(1, 2, 1024 * MIB);
	EXPECT_EQUAL(length_of(7, 8, 1024 * MIB), usual);
	EXPECT_THAT("most of what is under way waits for the network",
		    4 * usual + 12 * nvlink > 31000 && 4 * usual + 12 * nvlink <= 32000 &&
			    usual > 5 * nvlink);
	EXPECT_THAT("small messages are mostly latency: no queues", length_of(3, 4, 1024) < 3000);
	sim_job_release(&job);

	for (int i = 0; i < 3; i++) {
		static const char *const faults[] = { "slow-link:from=3,to=4,factor=1.1",
						      "slow-link:from=3,to=4,factor=1.3",
						      "slow-link:from=3,to=4,factor=3" };

		start(4, 4, faults[i]);
		slow[i] = length_of(3, 4, 1024 * MIB);
		EXPECT_THAT("the others have less", length_of(7, 8, 1024 * MIB) < usual);
		sim_job_release(&job);
	}
	EXPECT_THAT("the slower a link, the more waits for it",
		    usual < slow[0] && slow[0] < slow[1] && slow[1] < slow[2]);

	start(4, 4, "slow-nvlink:node=1,factor=8");
	EXPECT_THAT("it waits at a slow NVLink as well",
		    length_of(5, 6, 1024 * MIB) > 3 * length_of(3, 4, 1024 * MIB) &&
			    length_of(5, 6, 1024 * MIB) > 3 * length_of(1, 2, 1024 * MIB));
	sim_job_release(&job);
}

/* Every rank is in every ring once, and every GPU's NIC is used. */
static void test_rings(void)
{
	const struct sim_comm *comm;
	bool is_ring = true, has_card = true;

	start(3, 4, NULL);
	comm = &job.comms[0];
	for (int channel = 0; channel < comm->channels; channel++) {
		int rank = 0, length = 0, hops = 0;

		do {
			int next = sim_comm_next(comm, channel, rank);

			is_ring = is_ring && sim_comm_previous(comm, channel, next) == rank;
			hops += sim_comm_is_network(comm, rank, next);
			rank = next;
			length++;
		} while (rank != 0 && length < 100);
		is_ring = is_ring && length == 12 && hops == 3;
	}
	for (int rank = 0; rank < 12; rank++) {
		int sends = 0;

		for (int channel = 0; channel < comm->channels; channel++)
			sends +=
				sim_comm_is_network(comm, rank, sim_comm_next(comm, channel, rank));
		has_card = has_card && sends == sim_comm_share(comm);
	}
	EXPECT_THAT("rings go through all ranks once and cross each pair of nodes once", is_ring);
	EXPECT_THAT("all NICs are used equally", has_card);
	sim_job_release(&job);
}

static void test_sends(void)
{
	struct sim_plan near, far, crowded;

	start(2, 4, NULL);
	sim_model_send(&near, &job, 0, 1, 64 * MIB, 1, 0);
	sim_model_send(&far, &job, 0, 4, 64 * MIB, 1, 0);
	sim_model_send(&crowded, &job, 0, 4, 64 * MIB, 4, 0);
	EXPECT_THAT("sends inside a node are faster", near.longest_ns * 3 < far.longest_ns);
	EXPECT_THAT("those that share a port are slower", far.longest_ns * 3 < crowded.longest_ns);
	EXPECT_EQUAL(far.steps, 128);
	sim_job_release(&job);
}

int main(void)
{
	test_bandwidth();
	test_slow_link();
	test_shapes();
	test_queues();
	test_rings();
	test_sends();
	return tap_done();
}
