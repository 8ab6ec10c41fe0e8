#include "programs/sim/sim_model.h"

#include "common/op_layout.h"

enum {
	KIB = 1024,
	CHANNEL_BYTES = 32 * KIB,	  /* a channel more for so many bytes of the message */
	LL_BYTES = 32 * KIB,		  /* up to this per channel */
	LL128_BYTES = 512 * KIB,	  /* up to this per channel */
	SEND_STEP_BYTES = 512 * KIB,	  /* of Send */
	LOCAL_BYTES_PER_US = 1000 * 1000, /* a copy within the GPU */
	TREE_SHARE_PERCENT = 250,	  /* up to three connections of a tree share a card */
};

static const struct {
	uint64_t step_bytes;
	uint64_t start_ns; /* of the kernel, and until its first byte moves */
	unsigned int percent;
} protocols[OP_PROTOCOLS] = {
	[OP_LL] = { 16 * KIB, 6000, 50 },
	[OP_LL128] = { 240 * KIB, 10000, 92 },
	[OP_SIMPLE] = { 1024 * KIB, 20000, 100 },
};

#define NO_FAULT_NS UINT64_MAX

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

static const struct sim_link *link_of(const struct sim_job *job, int from, int to)
{
	return sim_job_node(job, from) == sim_job_node(job, to) ? &job->options.nvlink
								: &job->options.network;
}

/* Of a link that `share` channels have between them. */
static uint64_t rate_of(const struct sim_job *job, int from, int to, int share, uint64_t ns)
{
	uint64_t rate = link_of(job, from, to)->bytes_per_us * 1000 /
			sim_job_link_permille(job, from, to, ns) / (uint64_t)share;

	return rate ? rate : 1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int share_of(const struct sim_comm *comm, int from, int to)
{
	return sim_comm_is_network(comm, from, to) ? sim_comm_share(comm) : comm->channels;
}

static uint64_t ring_rate(const struct sim_job *job, const struct sim_comm *comm, int channel,
			  uint64_t ns)
{
	uint64_t rate = UINT64_MAX;

	for (int rank = 0; rank < comm->nranks; rank++) {
		int next = sim_comm_next(comm, channel, rank);

		rate = least(rate, rate_of(job, comm->ranks[rank], comm->ranks[next],
					   share_of(comm, rank, next), ns));
	}
	return rate;
}

/* Both directions of every edge between nodes; within nodes a chain at NVLink's rate. */
static uint64_t tree_rate(const struct sim_job *job, const struct sim_comm *comm, int channel,
			  uint64_t ns)
{
	uint64_t rate = job->options.nvlink.bytes_per_us / (uint64_t)comm->channels;
	int peers[SIM_TREE_EDGES];

	for (int node = 0; node < comm->nnodes; node++) {
		int first = comm->node_first[node];
		int leader = sim_comm_leader(comm, channel, node);
		int count = sim_comm_tree(comm, channel, leader, peers);

		for (int i = 0; i < count; i++)
			rate = least(rate, rate_of(job, comm->ranks[leader], comm->ranks[peers[i]],
						   sim_comm_share(comm), ns) *
						   100 / TREE_SHARE_PERCENT);
		if (comm->node_first[node + 1] - first > 1)
			rate = least(rate, rate_of(job, comm->ranks[first], comm->ranks[first + 1],
						   comm->channels, ns));
	}
	return rate;
}

/* What holds for all messages until the next fault begins or ends. */
static const struct sim_rates *rates_at(const struct sim_job *job, struct sim_comm *comm,
					uint64_t ns)
{
	struct sim_rates *rates = &comm->rates;
	uint64_t epoch = sim_job_epoch(job, ns);
	uint64_t network_hops = comm->nnodes > 1 ? (uint64_t)comm->nnodes : 0;
	uint64_t depth = 0;

	if (rates->epoch_plus_1 == epoch + 1)
		return rates;
	rates->epoch_plus_1 = epoch + 1;
	for (int channel = 0; channel < comm->channels; channel++) {
		rates->ring[channel] = ring_rate(job, comm, channel, ns);
		rates->tree[channel] = tree_rate(job, comm, channel, ns);
		rates->usual_ring[channel] = ring_rate(job, comm, channel, NO_FAULT_NS);
		rates->usual_tree[channel] = tree_rate(job, comm, channel, NO_FAULT_NS);
	}
	rates->ring_latency_ns =
		network_hops * job->options.network.latency_ns +
		((uint64_t)comm->nranks - network_hops) * job->options.nvlink.latency_ns;
	while (comm->nnodes >> (depth + 1))
		depth++;
	rates->tree_latency_ns = 2 * (depth * job->options.network.latency_ns +
				      (uint64_t)comm->locals * job->options.nvlink.latency_ns);
	return rates;
}

static void set_protocol(struct sim_plan *plan, uint64_t bytes, int channels)
{
	uint64_t wanted = divide_up(bytes ? bytes : 1, CHANNEL_BYTES);

	plan->channels = (uint8_t)least(wanted, (uint64_t)channels);
	bytes /= plan->channels;
	plan->protocol = bytes <= LL_BYTES ? OP_LL : bytes <= LL128_BYTES ? OP_LL128 : OP_SIMPLE;
}

/* Cut what goes over a connection into steps, at least `least_steps` of them. */
static void set_steps(struct sim_plan *plan, uint64_t link_bytes, uint64_t least_steps)
{
	uint64_t steps = divide_up(link_bytes, protocols[plan->protocol].step_bytes);

	if (steps < least_steps)
		steps = least_steps;
	plan->link_bytes = link_bytes ? link_bytes : 1;
	plan->steps = (uint32_t)(steps ? steps : 1);
	plan->step_bytes = divide_up(plan->link_bytes, plan->steps);
}

static uint64_t transfer_ns(const struct sim_plan *plan, uint64_t bytes, uint64_t rate)
{
	return bytes * 1000 / rate * 100 / protocols[plan->protocol].percent;
}

static void set_times(struct sim_plan *plan, const uint64_t *rates, uint64_t latency_ns)
{
	plan->longest_ns = 0;
	for (int channel = 0; channel < plan->channels; channel++) {
		plan->channel_ns[channel] = protocols[plan->protocol].start_ns + latency_ns +
					    transfer_ns(plan, plan->link_bytes, rates[channel]);
		if (plan->channel_ns[channel] > plan->longest_ns)
			plan->longest_ns = plan->channel_ns[channel];
	}
}

/* NCCL chooses by what links of that kind can do; that one of them is slow it does not know. */
static bool is_tree_better(const struct sim_plan *ring, const struct sim_plan *tree,
			   const struct sim_rates *rates)
{
	struct sim_plan usual_ring = *ring, usual_tree = *tree;

	set_times(&usual_ring, rates->usual_ring, 2 * rates->ring_latency_ns);
	set_times(&usual_tree, rates->usual_tree, rates->tree_latency_ns);
	return usual_tree.longest_ns < usual_ring.longest_ns;
}

void sim_model_collective(struct sim_plan *plan, const struct sim_job *job, struct sim_comm *comm,
			  uint8_t function, uint64_t bytes, uint64_t ns)
{
	const struct sim_rates *rates = rates_at(job, comm, ns);
	uint64_t hops = (uint64_t)comm->nranks - 1;
	uint64_t rounds = function == OP_ALL_REDUCE ? 2 : 1;
	struct sim_plan tree;

	*plan = (struct sim_plan){ .algorithm = OP_RING, .root = OP_NOBODY };
	set_protocol(plan, bytes, comm->channels);
	tree = *plan;
	if (function == OP_BROADCAST || function == OP_REDUCE)
		set_steps(plan, divide_up(bytes, plan->channels), 1);
	else
		set_steps(plan,
			  divide_up(bytes * rounds / (uint64_t)comm->nranks * hops, plan->channels),
			  rounds * hops);
	set_times(plan, rates->ring, rounds * rates->ring_latency_ns);
	if (function != OP_ALL_REDUCE || comm->nnodes == 1)
		return;
	tree.algorithm = OP_TREE;
	set_steps(&tree, divide_up(bytes, tree.channels), 1);
	if (!is_tree_better(plan, &tree, rates))
		return;
	*plan = tree;
	set_times(plan, rates->tree, rates->tree_latency_ns);
}

void sim_model_send(struct sim_plan *plan, const struct sim_job *job, int from, int to,
		    uint64_t bytes, unsigned int fan, uint64_t ns)
{
	uint64_t latency_ns = from == to ? 0 : link_of(job, from, to)->latency_ns;
	uint64_t rate = from == to ? LOCAL_BYTES_PER_US : rate_of(job, from, to, (int)fan, ns);

	*plan = (struct sim_plan){ .channels = 1, .root = OP_NOBODY };
	plan->protocol = bytes <= LL_BYTES ? OP_LL : OP_SIMPLE;
	plan->steps = (uint32_t)divide_up(bytes ? bytes : 1, SEND_STEP_BYTES);
	plan->link_bytes = bytes;
	plan->step_bytes = divide_up(bytes ? bytes : 1, plan->steps);
	set_times(plan, &rate, latency_ns);
}

uint64_t sim_model_step_ns(const struct sim_plan *plan, const struct sim_job *job,
			   const struct sim_comm *comm, int from, int to, uint64_t ns)
{
	uint64_t rate =
		rate_of(job, comm->ranks[from], comm->ranks[to], share_of(comm, from, to), ns);
	uint64_t step_ns = transfer_ns(plan, plan->step_bytes, rate);

	return plan->algorithm == OP_TREE ? step_ns * TREE_SHARE_PERCENT / 100 : step_ns;
}
