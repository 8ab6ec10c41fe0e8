/*
 * The simulation: times, the ranks' calls, events.
 *
 * Calls in another order than in the program:
 *
 *	SIM_MISMATCH_ORDER	two collectives of one communicator are swapped
 *	SIM_DEADLOCK		of two communicators shared by rank and peer, the rank uses the second one
 *				first and waits for it; its peer does so with the first one
 */
#include "sim/sim_engine.h"

#include <stdlib.h>

#include "common/op.h"

enum {
	KIB = 1024,
	CHANNEL_BYTES = 32 * KIB,	  /* one more channel per this many bytes of the message */
	LL_BYTES = 32 * KIB,		  /* up to this per channel */
	LL128_BYTES = 512 * KIB,	  /* up to this per channel */
	SEND_STEP_BYTES = 512 * KIB,	  /* of Send */
	LOCAL_BYTES_PER_US = 1000 * 1000, /* a copy within the GPU */
	TREE_SHARE_PERCENT = 250,	  /* up to three connections of a tree share a NIC */
};

static const struct {
	uint64_t step_bytes;
	uint64_t start_ns; /* of the kernel, until its first byte moves */
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

/* Of a link shared by `share` channels. */
static uint64_t rate_of(const struct sim_job *job, int from, int to, int share, uint64_t ns)
{
	uint64_t rate = link_of(job, from, to)->bytes_per_us * 1000 /
			sim_job_link_permille(job, from, to, ns) / (uint64_t)share;

	return rate ? rate : 1;
}

static uint64_t least_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int share_of(const struct sim_comm *comm, int from, int to)
{
	return sim_comm_is_network(comm, from, to) ? sim_comm_share(comm) : comm->channels;
}

/* Where a rate is in the list, or is to be added. */
static int stage_of(const struct sim_stages *stages, uint64_t rate)
{
	int i = 0;

	while (i < stages->count && stages->list[i].rate != rate)
		i++;
	return i < SIM_STAGES_MAX ? i : SIM_STAGES_MAX - 1;
}

static void add_stage(struct sim_stages *stages, uint64_t rate, uint64_t latency_ns)
{
	int i = stage_of(stages, rate);

	if (i == stages->count) {
		stages->list[i] = (struct sim_stage){ .rate = rate, .latency_ns = latency_ns };
		stages->count++;
	}
	stages->list[i].rate = least_ns(stages->list[i].rate, rate);
	stages->list[i].count++;
}

static uint64_t slowest_rate(const struct sim_stages *stages)
{
	uint64_t rate = UINT64_MAX;

	for (int i = 0; i < stages->count; i++)
		rate = least_ns(rate, stages->list[i].rate);
	return rate;
}

static void add_link(struct sim_stages *stages, const struct sim_job *job,
		     const struct sim_comm *comm, int from, int to, int share, uint64_t ns,
		     uint64_t percent)
{
	add_stage(stages,
		  rate_of(job, comm->ranks[from], comm->ranks[to], share, ns) * 100 / percent,
		  link_of(job, comm->ranks[from], comm->ranks[to])->latency_ns);
}

static uint64_t ring_rate(struct sim_stages *stages, const struct sim_job *job,
			  const struct sim_comm *comm, int channel, uint64_t ns)
{
	stages->count = 0;
	for (int rank = 0; rank < comm->nranks; rank++) {
		int next = sim_comm_next(comm, channel, rank);

		add_link(stages, job, comm, rank, next, share_of(comm, rank, next), ns, 100);
	}
	return slowest_rate(stages);
}

/* Both directions of every edge between nodes; inside nodes a chain at NVLink's rate. */
static uint64_t tree_rate(struct sim_stages *stages, const struct sim_job *job,
			  const struct sim_comm *comm, int channel, uint64_t ns)
{
	uint64_t nvlink = job->options.nvlink.bytes_per_us / (uint64_t)comm->channels;
	int peers[SIM_TREE_EDGES];

	stages->count = 0;
	for (int node = 0; node < comm->nnodes; node++) {
		int first = comm->node_first[node];
		int leader = sim_comm_leader(comm, channel, node);
		int count = sim_comm_tree(comm, channel, leader, peers);

		for (int i = 0; i < count; i++)
			add_link(stages, job, comm, leader, peers[i], sim_comm_share(comm), ns,
				 TREE_SHARE_PERCENT);
		if (comm->node_first[node + 1] - first > 1)
			add_link(stages, job, comm, first, first + 1, comm->channels, ns, 100);
	}
	return least_ns(nvlink, slowest_rate(stages));
}

/* Valid for all messages until the next fault begins or ends. */
static const struct sim_rates *rates_at(const struct sim_job *job, struct sim_comm *comm,
					uint64_t ns)
{
	struct sim_rates *rates = &comm->rates;
	struct sim_stages usual;
	uint64_t epoch = sim_job_epoch(job, ns);
	uint64_t network_hops = comm->nnodes > 1 ? (uint64_t)comm->nnodes : 0;
	uint64_t depth = 0;

	if (rates->epoch_plus_1 == epoch + 1)
		return rates;
	rates->epoch_plus_1 = epoch + 1;
	for (int channel = 0; channel < comm->channels; channel++) {
		rates->ring[channel] =
			ring_rate(&rates->ring_stages[channel], job, comm, channel, ns);
		rates->tree[channel] =
			tree_rate(&rates->tree_stages[channel], job, comm, channel, ns);
		rates->usual_ring[channel] = ring_rate(&usual, job, comm, channel, NO_FAULT_NS);
		rates->usual_tree[channel] = tree_rate(&usual, job, comm, channel, NO_FAULT_NS);
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

	plan->channels = (uint8_t)least_ns(wanted, (uint64_t)channels);
	bytes /= plan->channels;
	plan->protocol = bytes <= LL_BYTES ? OP_LL : bytes <= LL128_BYTES ? OP_LL128 : OP_SIMPLE;
}

/* Splits the data of a connection into at least `least_steps` steps. */
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

/* NCCL chooses by the nominal speed of links; it does not know that one is slow. */
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

/*
 * Where transfers queue. Around a ring, each rank forwards what it got and adds its own data, so that as many steps
 * are under way as there are ranks, or twice as many with protocol Simple, which halves its chunks. They queue where a connection is slow: mean value analysis of a closed queueing network
 * (Reiser and Lavenberg) adds one step after the other. Each finds those before it, of which the first has on
 * average half of its time left:
 *
 *	time at a connection = its transfer time x (1 + length of its queue - busy share / 2) + latency
 *	length of its queue  = time there / time around the ring x steps under way
 *
 * A connection that is as fast as the others has a queue as long as theirs; the slower one is, the more of all
 * steps are there. Nothing here decides which connection is the slow one.
 */
static void set_lengths(uint64_t lengths[SIM_STAGES_MAX], const struct sim_stages *stages,
			const struct sim_plan *plan, uint64_t under_way)
{
	uint64_t busy[SIM_STAGES_MAX] = { 0 }, step_ns[SIM_STAGES_MAX], stay_ns[SIM_STAGES_MAX];

	for (int i = 0; i < stages->count; i++) {
		step_ns[i] = transfer_ns(plan, plan->step_bytes, stages->list[i].rate);
		lengths[i] = 0;
	}
	for (uint64_t n = 1; n <= under_way; n++) {
		uint64_t around_ns = 1;

		for (int i = 0; i < stages->count; i++) {
			stay_ns[i] = step_ns[i] * (1000 + lengths[i] - busy[i] / 2) / 1000 +
				     stages->list[i].latency_ns;
			around_ns += stages->list[i].count * stay_ns[i];
		}
		for (int i = 0; i < stages->count; i++) {
			lengths[i] = stay_ns[i] * 1000 * n / around_ns;
			busy[i] = least_ns(1000, step_ns[i] * 1000 * n / around_ns);
		}
	}
}

static const struct sim_stages *stages_at(const struct sim_plan *plan, const struct sim_job *job,
					  struct sim_comm *comm, int channel, uint64_t ns)
{
	const struct sim_rates *rates = rates_at(job, comm, ns);

	return plan->algorithm == OP_TREE ? &rates->tree_stages[channel]
					  : &rates->ring_stages[channel];
}

/* Those of this kind of message; if they are new, epoch_plus_1 is 0. */
static struct sim_queues *queues_for(const struct sim_plan *plan, struct sim_comm *comm)
{
	bool is_chain = plan->root != OP_NOBODY;
	struct sim_queues *queues;

	for (int i = 0; i < SIM_QUEUES_MAX; i++) {
		queues = &comm->queues[i];
		if (queues->epoch_plus_1 == comm->rates.epoch_plus_1 &&
		    queues->step_bytes == plan->step_bytes &&
		    queues->algorithm == plan->algorithm && queues->protocol == plan->protocol &&
		    queues->channels == plan->channels && queues->is_chain == is_chain)
			return queues;
	}
	queues = &comm->queues[comm->queues_next++ % SIM_QUEUES_MAX];
	*queues = (struct sim_queues){ .step_bytes = plan->step_bytes,
				       .algorithm = plan->algorithm,
				       .protocol = plan->protocol,
				       .channels = plan->channels,
				       .is_chain = is_chain };
	return queues;
}

const struct sim_queues *sim_model_queues(const struct sim_plan *plan, const struct sim_job *job,
					  struct sim_comm *comm, uint64_t ns)
{
	uint64_t epoch_plus_1 = rates_at(job, comm, ns)->epoch_plus_1;
	struct sim_queues *queues = queues_for(plan, comm);

	if (queues->epoch_plus_1 == epoch_plus_1)
		return queues;
	queues->epoch_plus_1 = epoch_plus_1;
	for (int channel = 0; channel < plan->channels; channel++) {
		const struct sim_stages *stages = stages_at(plan, job, comm, channel, ns);
		uint64_t under_way = 0;

		/* Without a ring, buffers limit it: half of them are in use on average. */
		for (int i = 0; i < stages->count; i++)
			under_way += stages->list[i].count * SIM_WINDOW / 2;
		if (plan->algorithm == OP_RING && !queues->is_chain)
			under_way = (uint64_t)comm->nranks * (plan->protocol == OP_SIMPLE ? 2 : 1);
		set_lengths(queues->lengths[channel], stages, plan, under_way);
		for (int i = 0; i < stages->count; i++)
			queues->has_more |= queues->lengths[channel][i] > SIM_WINDOW * 1000;
	}
	return queues;
}

uint64_t sim_model_length(const struct sim_plan *plan, const struct sim_job *job,
			  struct sim_comm *comm, int channel, int from, int to, uint64_t ns)
{
	const struct sim_queues *queues = sim_model_queues(plan, job, comm, ns);
	const struct sim_stages *stages = stages_at(plan, job, comm, channel, ns);
	uint64_t rate =
		rate_of(job, comm->ranks[from], comm->ranks[to], share_of(comm, from, to), ns);

	if (plan->algorithm == OP_TREE && sim_comm_is_network(comm, from, to))
		rate = rate * 100 / TREE_SHARE_PERCENT;
	return queues->lengths[channel][stage_of(stages, rate)];
}

static bool is_collective(const struct sim_step *step)
{
	return step->kind == SIM_CALL && step->function != OP_SEND && step->function != OP_RECV;
}

/* Whether the other ranks would notice, and this rank would finish before them, if at all. */
static bool may_swap(const struct sim_step *earlier, const struct sim_step *later)
{
	if (!is_collective(later) || later->role != earlier->role)
		return false;
	return later->function != earlier->function ||
	       later->count * op_datatype_bytes(later->datatype) <
		       earlier->count * op_datatype_bytes(earlier->datatype);
}

static size_t find_swap(const struct sim_program *program, size_t at)
{
	size_t later = at + 1;

	while (later < program->count && !may_swap(&program->steps[at], &program->steps[later]))
		later++;
	return later;
}

static bool is_shared(const struct sim_job *job, int rank, int peer, int role)
{
	return job->members[rank][role].comm != -1 &&
	       job->members[rank][role].comm == job->members[peer][role].comm;
}

/* A later call on another communicator of both, which needs the call at `at` to complete first. */
static size_t find_crossing(const struct sim_job *job, const struct sim_program *program, size_t at,
			    const struct sim_fault *fault)
{
	const struct sim_step *first = &program->steps[at];
	bool is_waited_for = false;
	uint32_t newer = 0;
	size_t later = at + 1;

	for (; later < program->count; later++) {
		const struct sim_step *step = &program->steps[later];

		if (step->kind == SIM_WAIT && step->role == first->role && step->behind <= newer)
			is_waited_for = true;
		if ((step->kind == SIM_CALL || step->kind == SIM_ALL_TO_ALL) &&
		    step->role == first->role)
			newer++;
		if (is_waited_for && is_collective(step) && step->role != first->role &&
		    is_shared(job, fault->rank, fault->peer, step->role))
			break;
	}
	return later;
}

static void plan_detour(struct sim_engine *engine, int number, const struct sim_program *program)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_step *step = &program->steps[rank->step];
	const struct sim_fault *order =
		sim_job_fault(engine->job, SIM_MISMATCH, number, rank->host_ns);
	const struct sim_fault *deadlock =
		sim_job_fault(engine->job, SIM_DEADLOCK, number, rank->host_ns);
	size_t later = program->count;
	bool is_deadlock = false;

	if (!is_collective(step))
		return;
	if (order && order->what == SIM_MISMATCH_ORDER && !rank->has_mismatched &&
	    step->count > 1 && (order->role == -1 || order->role == step->role)) {
		later = find_swap(program, rank->step);
	} else if (deadlock && is_shared(engine->job, number, deadlock->peer, step->role)) {
		later = find_crossing(engine->job, program, rank->step, deadlock);
		is_deadlock = true;
	}
	if (later >= program->count)
		return;
	rank->has_mismatched |= !is_deadlock;
	rank->detour = (struct sim_detour){ .is_planned = true,
					    .is_deadlock = is_deadlock,
					    .iteration = rank->iteration,
					    .earlier = rank->step,
					    .later = later };
}

static bool is_on_detour(const struct sim_rank *rank)
{
	return rank->detour.is_planned && rank->detour.iteration == rank->iteration;
}

/*
 * The call that this rank makes at its step: the program's, unless a fault changes the order. NULL: already made.
 */
static const struct sim_step *sim_detour_step(struct sim_engine *engine, int number,
					      const struct sim_program *program)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_detour *detour = &rank->detour;

	if (!detour->is_planned)
		plan_detour(engine, number, program);
	if (is_on_detour(rank) && rank->step == detour->earlier && !detour->has_begun)
		return &program->steps[detour->later];
	if (is_on_detour(rank) && rank->step == detour->later)
		return detour->is_deadlock ? NULL : &program->steps[detour->earlier];
	return &program->steps[rank->step];
}

/* After that call: whether the step is done. Otherwise the other communicator must complete first. */
static bool sim_detour_is_done(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];
	struct sim_detour *detour = &rank->detour;

	if (!is_on_detour(rank) || !detour->is_deadlock || rank->step != detour->earlier ||
	    detour->has_begun)
		return true;
	detour->has_begun = true;
	return false;
}

/* Whether the call at this step is one of the two that were swapped. */
static bool sim_detour_is_swapped(const struct sim_rank *rank)
{
	return is_on_detour(rank) && !rank->detour.is_deadlock &&
	       (rank->step == rank->detour.earlier || rank->step == rank->detour.later);
}

/* A rank makes a call: NCCL's numbering and ours, mismatches, and the launch. */

enum {
	CALL_NS = 9000,
	GROUPED_CALL_NS = 1500,
	LAUNCH_NS = 7000,
	AFTER_LAUNCH_NS = 6000,
	REPLAY_NS = 4000, /* of a host node */
	GRAPH_NS = 20000, /* to launch a graph */
};

/* What of the Sends and Recvs with a peer is counted. */
enum peer_count {
	PEERS_EXECUTED = 0,
	PEERS_CALLED = 1,   /* as the recorder counts them ... */
	PEERS_REPLAYED = 2, /* ... and replays that NCCL shows as such */
	PEER_COUNTS = 3,
};

static uint64_t next_of_peer(struct sim_engine *engine, const struct sim_call *call,
			     enum peer_count which)
{
	const struct sim_launch *launch = call->launch;
	struct sim_stream *stream = &engine->ranks[launch->rank].streams[launch->role];
	size_t nranks = (size_t)launch->comm->nranks;

	if (stream->peers == NULL) {
		stream->peers = calloc(2 * PEER_COUNTS * nranks, sizeof(*stream->peers));
		if (stream->peers == NULL) {
			engine->status = ERR_NO_SPACE;
			return 1;
		}
	}
	return ++stream->peers[2 * ((size_t)which * nranks + (size_t)call->peer) +
			       (call->function == OP_SEND)];
}

/* NCCL's own number. Those in graphs have one each only with kernel events, and before 2.26 if they are shown. */
static void number_nccl(const struct sim_engine *engine, struct sim_stream *stream,
			struct sim_call *call)
{
	uint8_t phase = call->launch->phase;

	call->nccl_sequence = stream->sequences[call->function];
	if (phase == SIM_EAGER ||
	    (phase == SIM_REPLAYED && (engine->job->times == SIM_TIMES_KERNEL ||
				       (engine->job->interface < 3 && !call->launch->is_hidden))))
		stream->sequences[call->function]++;
}

/* Before 2.28 the recorder sees messages in bytes where NCCL counts in bytes. */
static void sign_call(const struct sim_job *job, struct sim_stream *stream,
		      const struct sim_call *call)
{
	bool is_bytes = job->interface <= 4 &&
			(call->function == OP_ALL_GATHER || call->function == OP_BROADCAST);

	stream->signature = op_signature(
		stream->signature, op_signature_name(OP_NAMES_FUNCTION, call->function),
		op_signature_name(OP_NAMES_DATATYPE,
				  is_bytes ? OP_DATATYPE_UNKNOWN : call->datatype),
		call->root == OP_NOBODY ? 0 : call->root,
		is_bytes ? call->count * op_datatype_bytes(call->datatype) : call->count);
}

/* As the recorder decides it: otherwise ranks number different replays. */
static bool all_ranks_show_replays(const struct sim_job *job, const struct sim_comm *comm)
{
	return comm->nnodes == comm->nranks || job->times == SIM_TIMES_KERNEL;
}

/* Numbers and signature follow the recorder's rules. */
static void number_call(struct sim_engine *engine, struct sim_call *call)
{
	struct sim_launch *launch = call->launch;
	struct sim_stream *stream = &engine->ranks[launch->rank].streams[launch->role];
	bool is_pair = call->function == OP_SEND || call->function == OP_RECV;
	bool is_captured = launch->phase == SIM_CAPTURED;
	/* Before 2.28 replays look like calls. */
	bool is_replay = launch->phase == SIM_REPLAYED && engine->job->interface >= 5;

	if (!is_captured)
		call->match =
			is_pair ? next_of_peer(engine, call, PEERS_EXECUTED) : ++stream->executed;
	if (!is_pair)
		number_nccl(engine, stream, call);
	if (launch->is_hidden)
		return;
	call->number = ++stream->numbers;
	if (is_pair && !is_captured)
		call->shown_match =
			next_of_peer(engine, call, is_replay ? PEERS_REPLAYED : PEERS_CALLED);
	if (is_pair)
		return;
	if (is_replay) {
		stream->replays++;
		call->shown_match =
			all_ranks_show_replays(engine->job, launch->comm) ? stream->replays : 0;
		return;
	}
	call->shown_match = ++stream->collectives;
	sign_call(engine->job, stream, call);
	call->signature = stream->signature;
}

/* Of half the size. */
static uint8_t other_datatype(uint8_t datatype)
{
	switch (op_datatype_bytes(datatype)) {
	case 8:
		return OP_FLOAT32;
	case 4:
		return OP_BFLOAT16;
	default:
		return OP_FLOAT8_E4M3;
	}
}

/* The next one in the first ring, so that nothing is forwarded to it. */
static int other_root(const struct sim_launch *launch, int root)
{
	int next = sim_comm_next(launch->comm, 0, launch->self);

	return next == root ? launch->self : next;
}

static void change_call(struct sim_call *call, enum sim_mismatch what)
{
	call->is_odd_one = true;
	call->odd = (uint8_t)what;
	if (what == SIM_MISMATCH_COUNT)
		call->count /= 2;
	else if (what == SIM_MISMATCH_DATATYPE)
		call->datatype = other_datatype(call->datatype);
	else if (what == SIM_MISMATCH_FUNCTION)
		call->function =
			call->function == OP_ALL_REDUCE ? OP_REDUCE_SCATTER : OP_ALL_REDUCE;
}

static bool is_rooted(const struct sim_call *call)
{
	return call->function == OP_BROADCAST || call->function == OP_REDUCE;
}

/* Applies a mismatch if this is the rank's call that differs. */
static void make_mismatch(struct sim_engine *engine, struct sim_call *call)
{
	const struct sim_launch *launch = call->launch;
	const struct sim_fault *fault =
		sim_job_fault(engine->job, SIM_MISMATCH, launch->rank, call->issue_ns);
	struct sim_rank *rank = &engine->ranks[launch->rank];

	if (sim_detour_is_swapped(rank)) {
		change_call(call, SIM_MISMATCH_ORDER);
		return;
	}
	if (fault == NULL || fault->what == SIM_MISMATCH_ORDER || call->count < 2 ||
	    rank->has_mismatched || (fault->role != -1 && fault->role != launch->role) ||
	    (fault->what == SIM_MISMATCH_ROOT && !is_rooted(call)))
		return;
	rank->has_mismatched = true;
	change_call(call, (enum sim_mismatch)fault->what);
}

static struct sim_call *add_call(struct sim_engine *engine, struct sim_launch *launch,
				 const struct sim_step *step, uint8_t function, int peer)
{
	const struct sim_comm *comm = launch->comm;
	struct sim_call *call = sim_shared_call_new(engine);
	struct sim_call **end = &launch->calls;

	if (call == NULL)
		return NULL;
	while (*end)
		end = &(*end)->next;
	*end = call;
	launch->count++;
	launch->open++;
	call->launch = launch;
	call->function = function;
	call->datatype = step->datatype;
	call->count = step->count;
	call->issue_ns = engine->ranks[launch->rank].host_ns;
	call->peer = call->root = OP_NOBODY;
	if (function == OP_SEND || function == OP_RECV) {
		int distance = function == OP_SEND ? peer - launch->self : launch->self - peer;

		call->peer = peer;
		call->channel =
			(uint8_t)((distance + comm->nranks) % comm->nranks % comm->channels);
	} else {
		make_mismatch(engine, call);
		if (is_rooted(call))
			call->root = step->peer;
		if (call->is_odd_one && call->odd == SIM_MISMATCH_ROOT)
			call->root = other_root(launch, call->root);
	}
	number_call(engine, call);
	if (launch->phase != SIM_CAPTURED)
		sim_shared_issue(engine, call);
	return call;
}

/* To an expert and back, a message is as large as that expert's share of the tokens. */
static struct sim_call *add_expert_call(struct sim_engine *engine, struct sim_launch *launch,
					const struct sim_step *step, uint8_t function, int peer)
{
	int expert = (function == OP_SEND) == !step->is_back ? peer : launch->self;
	struct sim_step own = *step;

	own.count = step->count *
		    sim_noise_expert_permille(engine->job, launch->comm->hash, expert,
					      engine->ranks[launch->rank].iteration, step->layer) /
		    1000;
	if (own.count == 0)
		own.count = 1;
	return add_call(engine, launch, &own, function, peer);
}

/* As frameworks do it: one Send and one Recv per peer. */
static void add_all_to_all(struct sim_engine *engine, struct sim_launch *launch,
			   const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[launch->rank];

	for (int peer = 0; peer < launch->comm->nranks; peer++) {
		if (add_expert_call(engine, launch, step, OP_SEND, peer) == NULL)
			return;
		rank->host_ns += GROUPED_CALL_NS;
		if (add_expert_call(engine, launch, step, OP_RECV, peer) == NULL)
			return;
		rank->host_ns += GROUPED_CALL_NS;
	}
}

static void link_launch(struct sim_rank *rank, struct sim_launch *launch)
{
	launch->index = rank->launches++;
	rank->launch_ends_ns[launch->index % SIM_ENDS] = UINT64_MAX;
	launch->previous_of_rank = rank->last_open;
	if (rank->last_open)
		rank->last_open->next_of_rank = launch;
	else
		rank->first_open = launch;
	rank->last_open = launch;
}

static struct sim_launch *new_launch(struct sim_engine *engine, int rank_number,
				     const struct sim_step *step)
{
	const struct sim_member *member = &engine->job->members[rank_number][step->role];
	struct sim_launch *launch = sim_shared_launch_new(engine);

	if (launch == NULL)
		return NULL;
	launch->rank = rank_number;
	launch->role = step->role;
	launch->comm = &engine->job->comms[member->comm];
	launch->self = member->rank;
	return launch;
}

static void add_calls(struct sim_engine *engine, struct sim_launch *launch,
		      const struct sim_step *step)
{
	int nranks = launch->comm->nranks;

	if (step->kind == SIM_ALL_TO_ALL)
		add_all_to_all(engine, launch, step);
	else if (step->function == OP_SEND || step->function == OP_RECV)
		add_call(engine, launch, step, step->function,
			 (launch->self + step->peer + nranks) % nranks);
	else
		add_call(engine, launch, step, step->function, OP_NOBODY);
	if (engine->trace)
		sim_trace_choose(engine->trace, launch);
}

static struct sim_launch *sim_issue(struct sim_engine *engine, int rank_number,
				    const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[rank_number];
	struct sim_launch *launch = new_launch(engine, rank_number, step);

	if (launch == NULL)
		return NULL;
	link_launch(rank, launch);
	add_calls(engine, launch, step);
	rank->host_ns += sim_random_spread(CALL_NS, 500, engine->job->options.seed,
					   (uint64_t)rank_number << 8 | 1, launch->index);
	if (sim_job_gpu_is_stuck(engine->job, rank_number, step->role, SIM_NOT_LAUNCHED,
				 rank->host_ns)) {
		launch->is_unlaunched = true;
		return engine->status == OK ? launch : NULL;
	}
	launch->launch_ns = rank->host_ns + LAUNCH_NS;
	rank->host_ns = launch->launch_ns + AFTER_LAUNCH_NS;
	return engine->status == OK ? launch : NULL;
}

/*
 * CUDA graphs: one iteration is captured, and later ones are replays of that graph. NCCL's host nodes depend on
 * nothing but each other, so a replay shows all of its operations when the graph is launched, before the first kernel
 * runs. Only those have host nodes that use the network or have kernel events.
 */

/* What NCCL would decide now. A capture decides it for good. */
static void plan_call(const struct sim_engine *engine, const struct sim_call *call,
		      struct sim_plan *plan)
{
	const struct sim_launch *launch = call->launch;
	struct sim_comm *comm = launch->comm;

	sim_model_collective(plan, engine->job, comm, call->function,
			     op_message_bytes(call->function, call->count,
					      op_datatype_bytes(call->datatype), comm->nranks),
			     call->issue_ns);
	plan->root = call->root;
	plan->is_towards_root = call->function == OP_REDUCE;
}

/* Does this rank send or receive anything over the network? */
static bool uses_network(const struct sim_launch *launch, const struct sim_call *call,
			 const struct sim_plan *plan)
{
	struct sim_edge edges[SIM_EDGES_MAX];

	if (call->peer != OP_NOBODY)
		return sim_comm_is_network(launch->comm, launch->self, call->peer);
	return sim_waits_edges(edges, launch->comm, plan, launch->self) > 0;
}

/* The capture itself is shown by API events; without them 2.27 shows it if it will not show replays. */
static bool shows_capture(const struct sim_job *job, bool shows_replays)
{
	return job->interface >= 5 || (job->interface == 4 && !shows_replays);
}

/* A call was captured; nothing of it was executed. ERR_NO_SPACE, and errors of the trace or the score. */
static enum status outcome_captured(struct sim_engine *engine, const struct sim_launch *launch,
				    const struct sim_plan *plan);

static bool capture_call(struct sim_engine *engine, int number, const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[number];
	struct sim_stream *stream = &rank->streams[step->role];
	struct sim_launch *launch = new_launch(engine, number, step);
	struct sim_plan plan = { .channels = 1 };
	struct sim_call probe = { .function = step->function,
				  .datatype = step->datatype,
				  .count = step->count,
				  .issue_ns = rank->host_ns,
				  .launch = launch,
				  .peer = OP_NOBODY,
				  .root = OP_NOBODY };
	enum status status = OK;

	if (launch == NULL)
		return false;
	launch->phase = SIM_CAPTURED;
	launch->index = rank->launches++;
	rank->launch_ends_ns[launch->index % SIM_ENDS] = 0;
	launch->captured = &rank->captured[rank->step];
	launch->captured->index = stream->captured++;
	if (step->function == OP_SEND || step->function == OP_RECV)
		probe.peer =
			(launch->self + step->peer + launch->comm->nranks) % launch->comm->nranks;
	else
		plan_call(engine, &probe, &plan);
	launch->captured->is_shown =
		engine->job->times == SIM_TIMES_KERNEL || uses_network(launch, &probe, &plan);
	launch->is_hidden = !shows_capture(engine->job, launch->captured->is_shown);
	stream->hidden += launch->is_hidden;
	rank->host_ns += CALL_NS;
	add_calls(engine, launch, step);
	if (engine->status == OK) {
		launch->captured->number = launch->calls->number;
		launch->launch_ns = rank->host_ns + LAUNCH_NS;
		rank->host_ns = launch->launch_ns + AFTER_LAUNCH_NS;
		status = outcome_captured(engine, launch, &plan);
	}
	sim_shared_launch_free(engine, launch);
	if (engine->status == OK)
		engine->status = status;
	return engine->status == OK;
}

/* On CUDA's callback thread. */
static struct sim_launch *replay_call(struct sim_engine *engine, int number,
				      const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[number];
	struct sim_launch *launch = new_launch(engine, number, step);

	if (launch == NULL)
		return NULL;
	launch->phase = SIM_REPLAYED;
	launch->captured = &rank->captured[rank->step];
	launch->is_hidden = !launch->captured->is_shown;
	link_launch(rank, launch);
	add_calls(engine, launch, step);
	if (!launch->is_hidden)
		rank->host_ns += REPLAY_NS;
	launch->launch_ns = rank->host_ns;
	return engine->status == OK ? launch : NULL;
}

enum { ENQUEUE_NS = 60000, BUCKETS = 1 << 14 };

/* ---- the GPU's queue ------------------------------------------------------------------------- */

static void push_task(struct sim_engine *engine, struct sim_rank *rank, struct sim_task task)
{
	if (rank->task_count == rank->task_room) {
		size_t room = rank->task_room ? 2 * rank->task_room : 16;
		struct sim_task *grown = malloc(room * sizeof(*grown));

		if (grown == NULL) {
			engine->status = ERR_NO_SPACE;
			return;
		}
		for (size_t i = 0; i < rank->task_count; i++)
			grown[i] = rank->tasks[(rank->task_first + i) % rank->task_room];
		free(rank->tasks);
		rank->tasks = grown;
		rank->task_first = 0;
		rank->task_room = room;
	}
	rank->tasks[(rank->task_first + rank->task_count++) % rank->task_room] = task;
}

static uint64_t later_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void gpu_compute(struct sim_engine *engine, int number, const struct sim_task *task)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_options *options = &engine->job->options;
	uint64_t start_ns = later_ns(rank->compute_ns, task->enqueued_ns);
	uint64_t ns = sim_random_spread(task->ns, options->jitter_permille, options->seed,
					(uint64_t)number << 8 | 2, start_ns);

	if (task->layer != 0) {
		const struct sim_member *expert = &engine->job->members[number][SIM_EXPERT];

		ns = ns *
		     sim_noise_expert_permille(engine->job, engine->job->comms[expert->comm].hash,
					       expert->rank, rank->iteration, task->layer) /
		     1000;
	}
	ns = sim_noise_compute(engine->job, number, rank->iteration, rank->computations++, start_ns,
			       ns);
	rank->compute_ns =
		start_ns + ns * sim_job_compute_permille(engine->job, number, start_ns) / 1000;
}

/* The head of a stream starts as soon as possible. */
static void start_head(struct sim_engine *engine, struct sim_stream *stream)
{
	struct sim_launch *launch = stream->head;

	if (launch == NULL || launch->start_ns != 0)
		return;
	launch->post_ns = later_ns(launch->launch_ns, stream->free_ns);
	if (sim_job_gpu_is_stuck(engine->job, launch->rank, launch->role, SIM_NOT_STARTED,
				 later_ns(launch->ready_ns, stream->free_ns)))
		return;
	launch->start_ns = later_ns(launch->ready_ns, stream->free_ns);
	engine->latest_ns = later_ns(engine->latest_ns, launch->start_ns);
	sim_shared_post(engine, launch);
}

static void push_launch(struct sim_engine *engine, struct sim_rank *rank, struct sim_launch *launch)
{
	struct sim_stream *stream = &rank->streams[launch->role];

	launch->ready_ns = later_ns(rank->compute_ns, launch->launch_ns);
	if (stream->tail)
		stream->tail->next_in_stream = launch;
	else
		stream->head = launch;
	stream->tail = launch;
	stream->pushed++;
	start_head(engine, stream);
}

/* One task; false if it has to wait. */
static bool do_task(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];
	struct sim_task task;

	if (rank->task_count == 0)
		return false;
	task = rank->tasks[rank->task_first];
	if (task.kind == SIM_WAIT) {
		struct sim_stream *stream = &rank->streams[task.role];
		uint64_t target = stream->pushed > task.behind ? stream->pushed - task.behind : 0;

		if (stream->finished < target)
			return false;
		if (target > 0)
			rank->compute_ns = later_ns(rank->compute_ns,
						    stream->ends_ns[(target - 1) % SIM_ENDS]);
	}
	rank->task_first = (rank->task_first + 1) % rank->task_room;
	rank->task_count--;
	if (task.kind == SIM_COMPUTE)
		gpu_compute(engine, number, &task);
	else if (task.kind != SIM_WAIT)
		push_launch(engine, rank, task.launch);
	return true;
}

/* ---- the host -------------------------------------------------------------------------------- */

static void sim_engine_list(struct sim_engine *engine, int rank)
{
	if (engine->ranks[rank].is_listed)
		return;
	engine->ranks[rank].is_listed = true;
	engine->list[engine->listed++] = rank;
}

/* Whether this iteration runs. The first rank decides; false if it has not decided yet. */
static bool decide_iteration(struct sim_engine *engine, int number, uint64_t iteration)
{
	const struct sim_options *options = &engine->job->options;
	struct sim_rank *rank = &engine->ranks[number];

	if (iteration <= engine->iterations_decided || engine->iterations_end != UINT64_MAX)
		return true;
	if (number != 0) {
		rank->is_waiting_for_iteration = true;
		return false;
	}
	if (rank->host_ns >= options->seconds_ns)
		engine->iterations_end = iteration;
	else
		engine->iterations_decided = iteration;
	for (int i = 1; i < engine->job->world; i++)
		if (engine->ranks[i].is_waiting_for_iteration)
			sim_engine_list(engine, i);
	return true;
}

/* What it does in its iteration. */
static const struct sim_program *program_of(const struct sim_engine *engine, int number)
{
	const struct sim_programs *programs = sim_job_programs(engine->job, number);
	uint64_t iteration = engine->ranks[number].iteration;

	if (iteration == 0)
		return &programs->start;
	return sim_noise_is_evaluation(engine->job, iteration) ? &programs->evaluation
							       : &programs->iteration;
}

/* The first iteration after the warm-up is captured; an evaluation is neither captured nor replayed. */
static void choose_phase(struct sim_engine *engine, int number)
{
	const struct sim_options *options = &engine->job->options;
	struct sim_rank *rank = &engine->ranks[number];

	rank->phase = SIM_EAGER;
	rank->is_launched = false;
	if (!options->has_graphs || rank->iteration <= (uint64_t)options->warm_up ||
	    sim_noise_is_evaluation(engine->job, rank->iteration))
		return;
	rank->phase = rank->captured != NULL ? SIM_REPLAYED : SIM_CAPTURED;
	if (rank->captured == NULL)
		rank->captured =
			calloc(program_of(engine, number)->count + 1, sizeof(*rank->captured));
	if (rank->captured == NULL)
		engine->status = ERR_NO_SPACE;
}

/* At the end of the program: the next iteration, or the end of the job. */
static bool next_iteration(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];

	if (!decide_iteration(engine, number, rank->iteration + 1))
		return false;
	rank->is_waiting_for_iteration = false;
	if (rank->iteration + 1 == engine->iterations_end) {
		rank->end = SIM_FINISHED;
		return false;
	}
	rank->iteration++;
	rank->step = 0;
	choose_phase(engine, number);
	rank->host_ns += sim_noise_iteration_pause(engine->job, number, rank->iteration,
						   rank->iteration_ns, rank->host_ns);
	rank->iteration_ns = rank->host_ns;
	return true;
}

enum { ANY_ROLE = -1 };

/* Faults that keep the host from making a call on this communicator, or from launching a graph with any. */
static bool may_call(struct sim_engine *engine, int number, int role)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_fault *fault =
		sim_job_fault(engine->job, SIM_NEVER_ARRIVES, number, rank->host_ns);
	bool is_met = fault && (fault->role == -1 || role == ANY_ROLE || fault->role == role);

	if (rank->host_ns >= sim_job_gone_ns(engine->job, number))
		rank->end = rank->host_ns >= sim_job_killed_ns(engine->job, number) ? SIM_DEAD
										    : SIM_STOPPED;
	else if (is_met && fault->until_ns == UINT64_MAX)
		rank->end = SIM_STOPPED;
	else if (is_met)
		rank->host_ns = fault->until_ns;
	return rank->end == SIM_GOES_ON;
}

static bool make_call(struct sim_engine *engine, int number, const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[number];
	unsigned int depth = sim_job_programs(engine->job, number)->depth;
	struct sim_launch *launch;

	if (rank->launches >= depth) {
		uint64_t end_ns = rank->launch_ends_ns[(rank->launches - depth) % SIM_ENDS];

		if (end_ns == UINT64_MAX)
			return false;
		rank->host_ns = later_ns(rank->host_ns, end_ns);
	}
	rank->host_ns += sim_noise_call_pause(engine->job, number, rank->call_ns, rank->host_ns);
	rank->call_ns = rank->host_ns;
	if (!may_call(engine, number, step->role))
		return false;
	launch = sim_issue(engine, number, step);
	if (launch == NULL)
		return false;
	engine->latest_ns = later_ns(engine->latest_ns, rank->host_ns);
	if (launch->is_unlaunched) {
		rank->end = SIM_STOPPED;
		return false;
	}
	push_task(engine, rank, (struct sim_task){ .kind = step->kind, .launch = launch });
	return true;
}

/* All graphs of an iteration at once. False: the rank does not get that far, or does not return from it. */
static bool launch_graphs(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];

	if (rank->is_launched)
		return true;
	rank->host_ns += sim_noise_call_pause(engine->job, number, rank->call_ns, rank->host_ns);
	rank->call_ns = rank->host_ns;
	if (!may_call(engine, number, ANY_ROLE))
		return false;
	rank->host_ns += GRAPH_NS;
	for (int role = 0; role < SIM_ROLES; role++)
		if (rank->streams[role].captured > 0 &&
		    sim_job_gpu_is_stuck(engine->job, number, role, SIM_NOT_LAUNCHED,
					 rank->host_ns))
			rank->end = SIM_STOPPED;
	rank->is_launched = true;
	return rank->end == SIM_GOES_ON;
}

/* A step of an iteration that is captured. */
static bool capture_step(struct sim_engine *engine, int number, const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[number];

	if (step->kind == SIM_COMPUTE)
		rank->host_ns += ENQUEUE_NS;
	if (step->kind == SIM_CALL &&
	    (!may_call(engine, number, step->role) || !capture_call(engine, number, step)))
		return false;
	engine->latest_ns = later_ns(engine->latest_ns, rank->host_ns);
	rank->step++;
	return true;
}

/* A step of an iteration whose graphs are replayed: what it waits for is known to the GPU. */
static bool replay_step(struct sim_engine *engine, int number, const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[number];
	struct sim_task task = { .kind = step->kind,
				 .role = step->role,
				 .behind = step->behind,
				 .ns = step->ns,
				 .layer = step->layer };

	if (!launch_graphs(engine, number))
		return false;
	if (step->kind == SIM_CALL) {
		task.launch = replay_call(engine, number, step);
		if (task.launch == NULL)
			return false;
		engine->latest_ns = later_ns(engine->latest_ns, rank->host_ns);
	}
	task.enqueued_ns = rank->host_ns;
	push_task(engine, rank, task);
	rank->step++;
	return true;
}

/* The call at the rank's step, or the one that replaces it; false if the host has to wait or ends here. */
static bool do_call(struct sim_engine *engine, int number, const struct sim_program *program)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_step *step = sim_detour_step(engine, number, program);

	if (step && !make_call(engine, number, step))
		return false;
	if (step && !sim_detour_is_done(engine, number)) {
		push_task(engine, rank, (struct sim_task){ .kind = SIM_WAIT, .role = step->role });
		return true;
	}
	rank->step++;
	return true;
}

/* One step; false if the host has to wait. */
static bool do_step(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_program *program = program_of(engine, number);
	const struct sim_step *step = &program->steps[rank->step];

	if (rank->end != SIM_GOES_ON || engine->status != OK)
		return false;
	if (rank->step == program->count)
		return next_iteration(engine, number);
	if (rank->phase == SIM_CAPTURED)
		return capture_step(engine, number, step);
	if (rank->phase == SIM_REPLAYED && step->kind != SIM_SYNC)
		return replay_step(engine, number, step);
	switch (step->kind) {
	case SIM_CALL:
	case SIM_ALL_TO_ALL:
		return do_call(engine, number, program);
	case SIM_SYNC:
		if (rank->task_count != 0)
			return false;
		rank->host_ns = later_ns(rank->host_ns, rank->compute_ns);
		break;
	default:
		push_task(engine, rank,
			  (struct sim_task){ .kind = step->kind,
					     .role = step->role,
					     .behind = step->behind,
					     .ns = step->ns,
					     .layer = step->layer,
					     .enqueued_ns = rank->host_ns });
		rank->host_ns += step->kind == SIM_COMPUTE ? ENQUEUE_NS : 0;
		break;
	}
	rank->step++;
	return true;
}

/* ---- going on -------------------------------------------------------------------------------- */

void sim_engine_launch_over(struct sim_engine *engine, struct sim_launch *launch)
{
	struct sim_rank *rank = &engine->ranks[launch->rank];
	struct sim_stream *stream = &rank->streams[launch->role];

	stream->head = launch->next_in_stream;
	if (stream->head == NULL)
		stream->tail = NULL;
	stream->ends_ns[stream->finished++ % SIM_ENDS] = launch->end_ns;
	stream->free_ns = launch->end_ns;
	stream->has_drifted = stream->will_drift;
	rank->launch_ends_ns[launch->index % SIM_ENDS] = launch->end_ns;
	engine->latest_ns = later_ns(engine->latest_ns, launch->end_ns);
	if (launch->previous_of_rank)
		launch->previous_of_rank->next_of_rank = launch->next_of_rank;
	else
		rank->first_open = launch->next_of_rank;
	if (launch->next_of_rank)
		launch->next_of_rank->previous_of_rank = launch->previous_of_rank;
	else
		rank->last_open = launch->previous_of_rank;
	sim_engine_list(engine, launch->rank);
	sim_shared_launch_free(engine, launch);
	start_head(engine, stream);
}

static void go_on(struct sim_engine *engine)
{
	while (engine->listed > 0 && engine->status == OK) {
		int number = engine->list[--engine->listed];

		engine->ranks[number].is_listed = false;
		while (do_step(engine, number) || do_task(engine, number))
			;
	}
}

/* Ranks wait for the decision of the first rank, which hangs: let them continue. */
static bool release_waiting(struct sim_engine *engine)
{
	bool has_some = false;

	for (int i = 0; i < engine->job->world; i++) {
		if (!engine->ranks[i].is_waiting_for_iteration)
			continue;
		if (engine->ranks[i].iteration + 1 > engine->iterations_decided)
			engine->iterations_decided = engine->ranks[i].iteration + 1;
		sim_engine_list(engine, i);
		has_some = true;
	}
	return has_some;
}

static void set_end(struct sim_engine *engine)
{
	const struct sim_options *options = &engine->job->options;

	for (int i = 0; i < engine->job->world; i++) {
		engine->latest_ns = later_ns(engine->latest_ns, engine->ranks[i].host_ns);
		if (engine->ranks[i].end != SIM_FINISHED)
			engine->is_hung = true;
	}
	engine->end_ns = engine->latest_ns;
	if (!engine->is_hung)
		return;
	if (options->watchdog_ns) {
		engine->end_ns = engine->latest_ns + options->watchdog_ns;
		return;
	}
	engine->end_ns = options->seconds_ns ? later_ns(options->seconds_ns, engine->latest_ns)
					     : engine->latest_ns + options->hang_ns;
}

enum status sim_engine_run(struct sim_engine *engine)
{
	for (int i = engine->job->world; i-- > 0;)
		sim_engine_list(engine, i);
	do
		go_on(engine);
	while (engine->status == OK && release_waiting(engine));
	set_end(engine);
	return engine->status;
}

enum status sim_engine_init(struct sim_engine *engine, const struct sim_job *job,
			    struct sim_trace *trace)
{
	size_t world = (size_t)job->world;

	*engine = (struct sim_engine){ .job = job, .trace = trace, .iterations_end = UINT64_MAX };
	if (job->options.iterations)
		engine->iterations_end = job->options.iterations + 1;
	engine->ranks = calloc(world, sizeof(*engine->ranks));
	engine->list = malloc(world * sizeof(*engine->list));
	engine->buckets = calloc(BUCKETS, sizeof(*engine->buckets));
	engine->free_shared = calloc((size_t)job->comm_count + 1, sizeof(*engine->free_shared));
	if (job->options.noises[SIM_NOISE_CONTENTION].is_on)
		engine->busy = calloc((size_t)job->options.nodes, sizeof(*engine->busy));
	if (!engine->ranks || !engine->list || !engine->buckets || !engine->free_shared ||
	    (job->options.noises[SIM_NOISE_CONTENTION].is_on && !engine->busy)) {
		sim_engine_release(engine);
		return ERR_NO_SPACE;
	}
	for (int i = 0; i < job->world; i++)
		/* Processes do not start at the same time. */
		engine->ranks[i].host_ns =
			200000000 + sim_random_below(50000000, job->options.seed, 3, (uint64_t)i);
	return OK;
}

static void free_shared(struct sim_shared *shared)
{
	while (shared) {
		struct sim_shared *next = shared->next;

		free(shared->progress);
		free(shared);
		shared = next;
	}
}

static void release_rank(struct sim_engine *engine, struct sim_rank *rank)
{
	while (rank->first_open) {
		struct sim_launch *launch = rank->first_open;

		rank->first_open = launch->next_of_rank;
		sim_shared_launch_free(engine, launch);
	}
	for (int role = 0; role < SIM_ROLES; role++)
		free(rank->streams[role].peers);
	free(rank->captured);
	free(rank->tasks);
}

void sim_engine_release(struct sim_engine *engine)
{
	for (int i = 0; engine->ranks && i < engine->job->world; i++)
		release_rank(engine, &engine->ranks[i]);
	for (int i = 0; engine->buckets && i < BUCKETS; i++)
		free_shared(engine->buckets[i]);
	for (int i = 0; engine->free_shared && i <= engine->job->comm_count; i++)
		free_shared(engine->free_shared[i]);
	while (engine->free_calls) {
		struct sim_call *call = engine->free_calls;

		engine->free_calls = call->next;
		free(call);
	}
	while (engine->free_launches) {
		struct sim_launch *launch = engine->free_launches;

		engine->free_launches = launch->next_of_rank;
		free(launch);
	}
	free(engine->busy);
	free(engine->ranks);
	free(engine->list);
	free(engine->buckets);
	free(engine->free_shared);
	*engine = (struct sim_engine){ 0 };
}

enum {
	STEPS_MAX = 8,	    /* simulated per connection: a thread has to wake up for each */
	STUCK_NS = 1000000, /* from the start of a call that hangs to its last transfer */
	SEND_NET = 2,	    /* index of the network among a send's waits */
	SMALL_SHARE = 32,   /* share of a step's duration for states that take no noticeable time */
	SMALL_NS = 10000,   /* upper limit: a slow link does not slow down other transfers */
};

uint64_t sim_score_period(uint64_t duration_ns, uint32_t steps)
{
	uint32_t window = steps < SIM_WINDOW ? steps : SIM_WINDOW;

	return duration_ns / (steps + window - 1);
}

/* From posting a step to its end, if the connection were busy for the whole call. */
static uint64_t step_life_ns(uint64_t duration_ns, uint32_t steps)
{
	uint32_t window = steps < SIM_WINDOW ? steps : SIM_WINDOW;

	return window * sim_score_period(duration_ns, steps);
}

/*
 * A step's time on the wire. The host plays fewer and larger steps. Not a share of the waits of its connection: that of
 * a fast channel is over early, while the call lasts as long as its slowest channel.
 */
static uint64_t net_ns(const struct sim_play *play, const struct sim_edge *edge, uint64_t life_ns)
{
	uint32_t steps = edge->steps > 0 ? edge->steps : 1;
	uint64_t whole_ns = step_life_ns(play->duration_ns, steps);
	uint64_t own_ns = edge->wait_ns[SEND_NET] / steps;

	return own_ns < whole_ns ? (uint64_t)((double)life_ns * (double)own_ns / (double)whole_ns)
				 : life_ns;
}

/* When its steps are made: a fast channel is over early, and channels do not all send in the same moments. */
static void set_place(struct host_edge *to, const struct sim_play *play,
		      const struct sim_edge *edge)
{
	uint64_t whole_ns = play->duration_ns, life_ns, step_ns = to->wait_ns[0] + to->wait_ns[2];
	uint64_t own_ns =
		edge->stop_ns > play->begin_ns ? edge->stop_ns - play->begin_ns : whole_ns;

	if (play->begin_ns == 0 || own_ns > whole_ns || whole_ns == 0)
		own_ns = whole_ns;
	life_ns = step_life_ns(own_ns, play->steps);
	if (step_ns >= life_ns)
		return;
	to->permille = whole_ns > 0 ? (uint16_t)(own_ns * 1000 / whole_ns) : 1000;
	to->stagger_ns = life_ns - step_ns;
}

/* How long a step of this connection stays in each state, in real time. */
static void set_waits(struct host_edge *to, const struct sim_play *play,
		      const struct sim_edge *edge)
{
	uint64_t life_ns = step_life_ns(play->duration_ns, play->steps);
	uint64_t small_ns = life_ns / SMALL_SHARE + 1;

	if (small_ns > SMALL_NS)
		small_ns = SMALL_NS;
	if (edge->is_send) {
		/* Time not on the wire is spent waiting before the step is ready. */
		to->wait_ns[2] = net_ns(play, edge, life_ns) + small_ns;
		to->wait_ns[1] = 0;
		to->wait_ns[0] = small_ns;
		set_place(to, play, edge);
	} else {
		to->wait_ns[0] = life_ns - 2 * (life_ns / SMALL_SHARE);
		to->wait_ns[1] = life_ns / SMALL_SHARE;
		to->wait_ns[2] = life_ns / SMALL_SHARE;
	}
}

/* Where a connection of a stuck call stops. */
static void set_stop(struct host_edge *to, const struct sim_play *play, const struct sim_edge *edge)
{
	unsigned int first = edge->is_send ? HOST_STUCK_SEND_GPU : HOST_STUCK_RECV_NET;

	if (edge->is_started && edge->done == edge->steps)
		return;
	to->stuck = (uint8_t)(first + (edge->is_started ? edge->state : 0u));
	to->stuck_step = (uint32_t)((uint64_t)edge->done * play->steps / edge->steps);
}

/*
 * The host has room for a few connections per call; a tree of many channels has more, and then every channel gets
 * the same ones.
 */
static void set_edges(struct sim_play *play, const struct sim_outcome *outcome)
{
	bool is_each = outcome->edge_count <= HOST_EDGES;

	for (int i = 0; i < outcome->edge_count && play->edge_count < HOST_EDGES; i++) {
		const struct sim_edge *edge = &outcome->edges[i];
		struct host_edge *to = &play->edges[play->edge_count];

		if (!is_each && edge->channel != outcome->edges[0].channel)
			break;
		*to = (struct host_edge){ .peer = edge->peer, .is_send = edge->is_send };
		if (is_each)
			to->channel_plus_1 = (uint16_t)(edge->channel - play->first_channel + 1);
		set_waits(to, play, edge);
		if (!outcome->is_over && play->phase != SIM_CAPTURED)
			set_stop(to, play, edge);
		play->edge_count++;
	}
}

static void set_stuck(struct sim_play *play, const struct sim_outcome *outcome)
{
	bool is_unlaunched = outcome->call->launch->is_unlaunched;

	play->stuck = is_unlaunched ? HOST_STUCK_BEFORE_LAUNCH : HOST_STUCK_EDGES;
	play->duration_ns = STUCK_NS;
	if (play->channels == 0)
		play->channels = 1;
	play->stuck_kernels = outcome->kernel_count ? 0 : UINT32_MAX;
	for (int i = 0; i < outcome->kernel_count; i++)
		if (outcome->kernels[i].stop_ns == 0)
			play->stuck_kernels |=
				UINT32_C(1) << (outcome->kernels[i].channel - play->first_channel);
}

static void fill_play(struct sim_play *play, const struct sim_outcome *outcome)
{
	const struct sim_call *call = outcome->call;
	const struct sim_launch *launch = call->launch;
	bool is_pair = call->peer != OP_NOBODY;
	uint64_t bytes = outcome->step_bytes * outcome->steps;

	*play = (struct sim_play){
		.launch = launch->index,
		.number = call->number,
		.match = call->match,
		.count = call->count,
		.issue_ns = call->issue_ns,
		.start_ns = launch->start_ns,
		.begin_ns = outcome->is_over ? outcome->begin_ns : 0,
		.end_ns = outcome->is_over ? outcome->end_ns : 0,
		.steps = outcome->steps < STEPS_MAX ? outcome->steps : STEPS_MAX,
		.peer = call->peer,
		.root = call->root,
		.role = (uint8_t)launch->role,
		.function = call->function,
		.datatype = call->datatype,
		.algorithm = outcome->algorithm ? outcome->algorithm : OP_RING,
		.protocol = outcome->protocol ? outcome->protocol : OP_SIMPLE,
		.first_channel = is_pair ? call->channel : 0,
		.channels = outcome->channels,
		.captured = launch->captured != NULL ? launch->captured->index : 0,
		.phase = launch->phase,
		.is_hidden = launch->is_hidden,
	};
	if (play->steps == 0)
		play->steps = 1;
	play->step_bytes = (uint32_t)(bytes / play->steps);
	/* A broadcast can end before its last rank has arrived. */
	if (outcome->is_over && play->end_ns > play->begin_ns)
		play->duration_ns = play->end_ns - play->begin_ns;
	set_edges(play, outcome);
	if (!outcome->is_over && launch->phase != SIM_CAPTURED)
		set_stuck(play, outcome);
}

/* Called by the engine with the outcome of a call. */
static enum status sim_score_add(struct sim_score *score, const struct sim_outcome *outcome)
{
	struct sim_score_rank *rank = &score->ranks[outcome->call->launch->rank];

	if (!list_grow(&rank->plays, rank->count, sizeof(*rank->plays)))
		return ERR_NO_SPACE;
	fill_play(&rank->plays[rank->count++], outcome);
	return OK;
}

static int compare_plays(const void *a, const void *b)
{
	const struct sim_play *first = a, *second = b;

	if (first->launch != second->launch)
		return first->launch < second->launch ? -1 : 1;
	return first->number < second->number ? -1 : first->number > second->number;
}

static void score_finish(struct sim_score *score, const struct sim_engine *engine)
{
	score->end_ns = engine->end_ns;
	score->still_ns = engine->latest_ns;
	score->iterations = engine->ranks[0].iteration;
	score->is_hung = engine->is_hung;
	for (int i = 0; i < score->world; i++) {
		struct sim_score_rank *rank = &score->ranks[i];

		rank->end = engine->ranks[i].end;
		if (rank->count > 1)
			qsort(rank->plays, rank->count, sizeof(*rank->plays), compare_plays);
	}
}

enum status sim_score_init(struct sim_score *score, const struct sim_job *job)
{
	struct sim_engine engine;
	enum status status;

	*score = (struct sim_score){ .world = job->world };
	score->ranks = calloc((size_t)job->world, sizeof(*score->ranks));
	if (score->ranks == NULL)
		return ERR_NO_SPACE;
	status = sim_engine_init(&engine, job, NULL);
	engine.score = score;
	if (status == OK)
		status = sim_engine_run(&engine);
	for (int rank = 0; rank < job->world && status == OK; rank++)
		if (engine.ranks[rank].end != SIM_FINISHED)
			status = sim_outcome_open_calls(&engine, rank);
	if (status == OK)
		score_finish(score, &engine);
	sim_engine_release(&engine);
	if (status != OK)
		sim_score_release(score);
	return status;
}

void sim_score_release(struct sim_score *score)
{
	for (int i = 0; score->ranks && i < score->world; i++)
		free(score->ranks[i].plays);
	free(score->ranks);
	*score = (struct sim_score){ 0 };
}

static void outcome_hand_on(struct sim_engine *engine, const struct sim_outcome *outcome)
{
	enum status status = OK;

	if (engine->trace)
		status = sim_trace_add(engine->trace, engine, outcome);
	if (engine->score && status == OK)
		status = sim_score_add(engine->score, outcome);
	if (status != OK && engine->status == OK)
		engine->status = status;
}

static enum status outcome_captured(struct sim_engine *engine, const struct sim_launch *launch,
				    const struct sim_plan *plan)
{
	struct sim_outcome outcome;

	for (const struct sim_call *call = launch->calls; call; call = call->next) {
		outcome = (struct sim_outcome){ .call = call,
						.algorithm = plan->algorithm,
						.protocol = plan->protocol,
						.channels = plan->channels,
						.steps = plan->steps ? plan->steps : 1,
						.step_bytes = plan->step_bytes };
		if (call->peer == OP_NOBODY)
			outcome.edge_count =
				sim_waits_edges(outcome.edges, launch->comm, plan, launch->self);
		else if (sim_comm_is_network(launch->comm, launch->self, call->peer))
			outcome.edges[outcome.edge_count++] =
				(struct sim_edge){ .channel = call->channel,
						   .peer = call->peer,
						   .is_send = call->function == OP_SEND };
		outcome_hand_on(engine, &outcome);
	}
	return engine->status;
}

static void set_kernels(struct sim_outcome *outcome, const struct sim_plan *plan, uint64_t start_ns,
			uint64_t end_ns)
{
	outcome->kernel_count = plan->channels;
	for (int i = 0; i < plan->channels; i++) {
		uint64_t stop_ns = end_ns - (plan->longest_ns - plan->channel_ns[i]);

		outcome->kernels[i] = (struct sim_kernel){
			.channel = (uint8_t)i,
			.start_ns = sim_outcome_kernel_start(start_ns, i),
			.stop_ns = stop_ns > start_ns ? stop_ns : start_ns + 1,
		};
	}
}

void sim_outcome_collective(struct sim_engine *engine, const struct sim_shared *shared,
			    const struct sim_plan *plan, const struct sim_arrivals *arrivals,
			    int rank, uint64_t end_ns)
{
	struct sim_outcome outcome;

	outcome.call = shared->calls[rank];
	outcome.algorithm = plan->algorithm;
	outcome.protocol = plan->protocol;
	outcome.channels = plan->channels;
	outcome.is_over = true;
	outcome.is_self = false;
	outcome.begin_ns = arrivals->last_ns;
	outcome.end_ns = end_ns;
	outcome.steps = plan->steps;
	outcome.step_bytes = plan->step_bytes;
	set_kernels(&outcome, plan, outcome.call->launch->start_ns, end_ns);
	outcome.edge_count =
		sim_waits_collective(outcome.edges, engine->job, shared, plan, arrivals, rank);
	outcome_hand_on(engine, &outcome);
}

void sim_outcome_odd(struct sim_engine *engine, const struct sim_shared *shared,
		     const struct sim_plan *plan, const struct sim_arrivals *arrivals, int rank)
{
	struct sim_plan half = *plan;

	half.steps = (plan->steps + 1) / 2;
	half.link_bytes = plan->link_bytes / 2;
	half.longest_ns = plan->longest_ns / 2;
	for (int i = 0; i < half.channels; i++) {
		half.channel_ns[i] = plan->channel_ns[i] / 2;
		half.lost_ns[i] = plan->lost_ns[i] / 2;
	}
	sim_outcome_collective(engine, shared, &half, arrivals, rank,
			       arrivals->last_ns + half.longest_ns);
}

void sim_outcome_pairs(struct sim_engine *engine, const struct sim_launch *launch)
{
	uint64_t stops_ns[SIM_CHANNELS_MAX] = { 0 };
	struct sim_outcome outcome;

	/* The operations of one channel in a launch are one batch: they start and stop together. */
	for (const struct sim_call *call = launch->calls; call; call = call->next)
		if (call->peer != launch->self && call->end_ns > stops_ns[call->channel])
			stops_ns[call->channel] = call->end_ns;
	for (const struct sim_call *call = launch->calls; call; call = call->next) {
		outcome.call = call;
		outcome.algorithm = OP_ALGORITHM_UNKNOWN;
		outcome.protocol = OP_PROTOCOL_UNKNOWN;
		outcome.channels = 1;
		outcome.is_over = true;
		outcome.is_self = call->peer == launch->self;
		outcome.begin_ns = call->begin_ns;
		outcome.end_ns = outcome.is_self ? call->end_ns : stops_ns[call->channel];
		outcome.steps = call->edge.bytes ? call->edge.steps : 1;
		outcome.step_bytes = call->edge.bytes / outcome.steps;
		outcome.kernel_count = outcome.is_self ? 0 : 1;
		outcome.kernels[0] = (struct sim_kernel){
			.channel = call->channel,
			.start_ns = sim_outcome_kernel_start(launch->start_ns, call->channel),
			.stop_ns = outcome.end_ns,
		};
		outcome.edge_count = call->edge.bytes != 0 ? 1 : 0;
		outcome.edges[0] = call->edge;
		outcome_hand_on(engine, &outcome);
	}
}

enum status sim_outcome_open_calls(struct sim_engine *engine, int rank)
{
	for (const struct sim_launch *launch = engine->ranks[rank].first_open; launch;
	     launch = launch->next_of_rank)
		for (const struct sim_call *call = launch->calls; call; call = call->next) {
			struct sim_outcome outcome;
			enum status status = sim_stall_outcome(engine, call, &outcome);

			if (status != OK)
				return status;
			outcome_hand_on(engine, &outcome);
			if (engine->status != OK)
				return engine->status;
		}
	return OK;
}
