/*
 * How far the data got before it stopped. Around a ring, edge i goes from the rank at position i to the next one,
 * and its steps e[i] are the maximum that these rules allow:
 *
 *	a kernel that does not run sends nothing; one that stopped, no more than by then
 *	e[i] <= e[i - 1] + 1	what a rank forwards must have been received, except its own data
 *	e[i] <= e[i + 1] + 15	what a rank cannot forward fills its send and receive buffers
 *	e[i] <= 8		to a rank that has posted its receives and whose kernel does not run
 *	e[i] <= 0		to a rank that has not posted any
 *	e[i] <= where it stuck	for a stuck send
 *
 * The rule that limits an edge determines its state: the sender waits for its GPU, for its peer or for the network;
 * the receiver for data or for its GPU.
 */
#include "sim/sim_engine.h"

#include <stdlib.h>

/* How far the data of a hung shared operation got, by connection. */

/* How far a rank got with a call. */
enum sim_presence {
	SIM_ABSENT = 0,	 /* has not made the call, or is dead */
	SIM_QUEUED = 1,	 /* its transfers wait behind those of an earlier call */
	SIM_POSTED = 2,	 /* transfers are posted; the kernel does not run */
	SIM_RUNNING = 3, /* the kernel runs */
	SIM_LEFT = 4,	 /* took part up to a point */
};

/* `arrived` steps came over the edge, `consumed` of them were taken by the receiver's kernel. */
struct sim_flow {
	uint32_t steps;
	uint32_t arrived;
	uint32_t consumed;
	enum sim_presence sender, receiver;
	bool is_stuck;
	bool is_starved; /* the sender has nothing more to send */
};

/* A hung operation. */
struct hang {
	const struct sim_engine *engine;
	struct sim_shared *shared;
	const struct sim_plan *plan;
};

static uint32_t least_steps(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Whether this is the oldest unfinished launch of its rank on that communicator. */
static bool sim_flow_is_oldest(const struct sim_engine *engine, const struct sim_launch *launch)
{
	const struct sim_launch *at = engine->ranks[launch->rank].first_open;

	while (at != launch && at->role != launch->role)
		at = at->next_of_rank;
	return at == launch;
}

/* `rank` is the job's. */
static enum sim_presence presence_of(const struct sim_engine *engine, const struct sim_call *call,
				     int rank)
{
	uint64_t gone_ns = sim_job_gone_ns(engine->job, rank);

	if (call == NULL || call->launch->is_unlaunched ||
	    (gone_ns <= engine->end_ns &&
	     (call->launch->start_ns == 0 || call->launch->start_ns > gone_ns)))
		return SIM_ABSENT;
	if (gone_ns <= engine->end_ns)
		return SIM_LEFT;
	/* A kernel that does nothing is like one that does not run. */
	if (call->launch->start_ns != 0 && call->shared->is_broken &&
	    sim_job_gpu_is_stuck(engine->job, rank, call->launch->role, SIM_NOT_PRODUCING,
				 engine->end_ns))
		return SIM_POSTED;
	if (call->launch->start_ns != 0)
		return call->is_odd_one ? SIM_LEFT : SIM_RUNNING;
	return sim_flow_is_oldest(engine, call->launch) ? SIM_POSTED : SIM_QUEUED;
}

/* `seat` is an index of shared->calls. A rank whose call is gone from a broken operation left it early. */
static enum sim_presence sim_flow_presence(const struct hang *hang, int seat)
{
	const struct sim_comm *comm = hang->shared->comm;
	int rank = hang->shared->is_pair ? (seat ? hang->shared->to : hang->shared->from) : seat;

	if (hang->shared->is_broken && hang->shared->calls[seat] == NULL)
		return SIM_LEFT;
	return presence_of(hang->engine, hang->shared->calls[seat], comm->ranks[rank]);
}

static bool is_stuck(const struct hang *hang, int channel, int from, int to)
{
	return hang->shared->is_broken && sim_job_is_stuck(hang->engine->job, hang->shared->comm,
							   channel, from, to, hang->engine->end_ns);
}

/*
 * The last step at which a ring can break so that no rank finishes: each rank gets one step further than the
 * previous one.
 */
static uint32_t last_break(const struct hang *hang)
{
	uint32_t hops = (uint32_t)hang->shared->comm->nranks - 1;

	return hang->plan->steps > hops ? hang->plan->steps - hops : 0;
}

/* Steps to or from a rank that has finished its part. */
static uint32_t left_steps(const struct hang *hang, int rank, bool is_out)
{
	if (hang->shared->odd == -1) /* half a count, or a datatype of half the size */
		return least_steps(hang->plan->steps / 2, last_break(hang));
	if (rank != hang->shared->odd)
		return hang->plan->steps;
	return is_out || hang->shared->odd_root == rank ? 0 : hang->plan->steps;
}

/* Number of steps done if something stops in the middle: the same for all callers. */
static uint32_t stop_step(const struct hang *hang, int rank)
{
	const struct sim_call *call = hang->shared->calls[rank];

	if (call && call->is_odd_one)
		return hang->plan->steps > 1;
	return (uint32_t)sim_random_below(last_break(hang) + UINT64_C(1),
					  hang->engine->job->options.seed, 6, hang->shared->match);
}

/* The maximum that edge `from` -> `to` allows by itself. */
static uint32_t edge_limit(const struct hang *hang, int channel, int from, int to)
{
	enum sim_presence sender = sim_flow_presence(hang, from);
	enum sim_presence receiver = sim_flow_presence(hang, to);
	uint32_t limit = hang->plan->steps;

	if (!sim_waits_has_hop(hang->plan, from, to))
		return limit;
	if (sender < SIM_RUNNING || receiver < SIM_POSTED)
		return 0;
	if (receiver == SIM_POSTED)
		limit = least_steps(limit, SIM_WINDOW);
	if (sender == SIM_LEFT)
		limit = least_steps(limit, hang->shared->calls[from]
						   ? stop_step(hang, from)
						   : left_steps(hang, from, true));
	if (receiver == SIM_LEFT)
		limit = least_steps(limit, hang->shared->calls[to] ? stop_step(hang, to)
								   : left_steps(hang, to, false));
	if (is_stuck(hang, channel, from, to))
		limit = least_steps(limit, stop_step(hang, from));
	return limit;
}

/* Applies one rule of the ring in both directions; true if something changed. */
static bool flow_sweep(const struct hang *hang, int channel, uint32_t *e)
{
	const struct sim_comm *comm = hang->shared->comm;
	const int *ring = comm->ring + (size_t)channel * (size_t)comm->nranks;
	int n = comm->nranks;
	bool has_changed = false;

	for (int i = 0; i < 2 * n; i++) {
		int at = i % n, before = (at + n - 1) % n;
		uint32_t limit = e[before] + 1;

		if (sim_waits_has_hop(hang->plan, ring[before], ring[at]) && e[at] > limit) {
			e[at] = limit;
			has_changed = true;
		}
	}
	for (int i = 2 * n; i-- > 0;) {
		int at = i % n, behind = (at + 1) % n;
		uint32_t limit = e[behind] == hang->plan->steps ? hang->plan->steps
								: e[behind] + 2 * SIM_WINDOW - 1;

		if (sim_waits_has_hop(hang->plan, ring[behind], ring[(behind + 1) % n]) &&
		    e[at] > limit) {
			e[at] = limit;
			has_changed = true;
		}
	}
	return has_changed;
}

/* Steps done on every edge of a channel's ring. */
static void work_out_ring(const struct hang *hang, int channel, uint32_t *e)
{
	const struct sim_comm *comm = hang->shared->comm;
	size_t n = (size_t)comm->nranks;
	const int *ring = comm->ring + (size_t)channel * n;

	for (size_t i = 0; i < n; i++)
		e[i] = edge_limit(hang, channel, ring[i], ring[(i + 1) % n]);
	while (flow_sweep(hang, channel, e))
		;
}

/* Whether data sent by a node's leader towards the top gets there. */
static bool is_sum_stuck(const struct hang *hang, int channel, int node)
{
	const struct sim_comm *comm = hang->shared->comm;

	return node > 0 && is_stuck(hang, channel, sim_comm_leader(comm, channel, node),
				    sim_comm_leader(comm, channel, (node - 1) / 2));
}

/*
 * In a channel's tree: ready[node] is 1 if the node's sum can go up, that is, if all its ranks run and all sums
 * from below have arrived. ready[nnodes] is 1 if everything went up and down again.
 */
static void work_out_tree(const struct hang *hang, int channel, uint32_t *ready)
{
	const struct sim_comm *comm = hang->shared->comm;
	int top = sim_comm_leader(comm, channel, 0);

	for (int node = comm->nnodes; node-- > 0;) {
		ready[node] = 1;
		for (int rank = comm->node_first[node]; rank < comm->node_first[node + 1]; rank++)
			if (sim_flow_presence(hang, rank) != SIM_RUNNING)
				ready[node] = 0;
		for (int child = 2 * node + 1; child <= 2 * node + 2; child++)
			if (child < comm->nnodes &&
			    (!ready[child] || is_sum_stuck(hang, channel, child)))
				ready[node] = 0;
	}
	ready[comm->nnodes] = ready[0];
	for (int child = 1; child <= 2 && child < comm->nnodes; child++)
		if (is_stuck(hang, channel, top, sim_comm_leader(comm, channel, child)))
			ready[comm->nnodes] = 0;
}

/* One row per channel. */
static size_t row_of(const struct sim_comm *comm, int channel)
{
	return (size_t)channel * ((size_t)comm->nranks + 1);
}

/* Computes a collective's connections in all channels and caches them in shared->progress. ERR_NO_SPACE. */
static enum status sim_flow_work_out(const struct hang *hang)
{
	const struct sim_comm *comm = hang->shared->comm;

	hang->shared->progress = malloc(row_of(comm, SIM_CHANNELS_MAX) * sizeof(uint32_t));
	if (hang->shared->progress == NULL)
		return ERR_NO_SPACE;
	for (int channel = 0; channel < hang->plan->channels; channel++) {
		uint32_t *row = hang->shared->progress + row_of(comm, channel);

		if (hang->plan->algorithm == OP_RING)
			work_out_ring(hang, channel, row);
		else
			work_out_tree(hang, channel, row);
	}
	return OK;
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct sim_flow ring_flow(const struct hang *hang, int channel, int from, int to)
{
	const struct sim_comm *comm = hang->shared->comm;
	size_t n = (size_t)comm->nranks, row = (size_t)channel * n;
	size_t at = (size_t)comm->position[row + (size_t)from];
	const uint32_t *e = hang->shared->progress + row_of(comm, channel);
	uint32_t before = e[(at + n - 1) % n], behind = e[(at + 1) % n];
	struct sim_flow flow = { .steps = hang->plan->steps,
				 .arrived = e[at],
				 .sender = sim_flow_presence(hang, from),
				 .receiver = sim_flow_presence(hang, to),
				 .is_stuck = is_stuck(hang, channel, from, to) };

	flow.is_starved = sim_waits_has_hop(hang->plan, comm->ring[row + (at + n - 1) % n], from) &&
			  e[at] == before + 1;
	flow.consumed = e[at];
	if (flow.receiver < SIM_RUNNING)
		flow.consumed = 0;
	else if (behind < hang->plan->steps &&
		 sim_waits_has_hop(hang->plan, to, comm->ring[row + (at + 2) % n]))
		flow.consumed = least_steps(e[at], behind + SIM_WINDOW - 1);
	return flow;
}

static struct sim_flow tree_flow(const struct hang *hang, int channel, int from, int to)
{
	const struct sim_comm *comm = hang->shared->comm;
	const uint32_t *ready = hang->shared->progress + row_of(comm, channel);
	struct sim_flow flow = { .steps = hang->plan->steps,
				 .sender = sim_flow_presence(hang, from),
				 .receiver = sim_flow_presence(hang, to) };
	int node = comm->nodes[from];
	bool is_up = node > 0 && (node - 1) / 2 == comm->nodes[to];

	/* Only what the top has comes down. */
	flow.is_starved = !ready[node] || (!is_up && node > 0);
	flow.is_stuck = !flow.is_starved && is_stuck(hang, channel, from, to);
	if (ready[comm->nnodes])
		flow.arrived = hang->plan->steps;
	else if (flow.is_stuck)
		flow.arrived = stop_step(hang, from);
	else if (!flow.is_starved && flow.receiver >= SIM_POSTED)
		flow.arrived = least_steps(hang->plan->steps, SIM_WINDOW);
	/* A kernel takes what comes from all below at once, from its own host's GPUs as well: unless all of it
	 * is there, it takes nothing. */
	if (flow.receiver >= SIM_RUNNING && (!is_up || ready[comm->nodes[to]]))
		flow.consumed = flow.arrived;
	return flow;
}

/* The connection of a Send and its Recv. */
static struct sim_flow sim_flow_pair(const struct hang *hang)
{
	const struct sim_call *call = hang->shared->calls[hang->shared->calls[0] == NULL];
	struct sim_flow flow = { .steps = hang->plan->steps,
				 .sender = sim_flow_presence(hang, 0),
				 .receiver = sim_flow_presence(hang, 1),
				 .is_stuck = is_stuck(hang, call->channel, hang->shared->from,
						      hang->shared->to) };

	/* The last step stays open: a Send ends when its Recv does. */
	if (flow.sender == SIM_RUNNING && flow.receiver >= SIM_POSTED)
		flow.arrived = least_steps(hang->plan->steps - 1, SIM_WINDOW);
	if (flow.is_stuck || flow.sender == SIM_LEFT)
		flow.arrived = 0;
	flow.consumed = flow.receiver >= SIM_RUNNING ? flow.arrived : 0;
	return flow;
}

/* After sim_flow_work_out(): one connection of a collective; `from` and `to` are ranks in the communicator. */
static struct sim_flow sim_flow_edge(const struct hang *hang, int channel, int from, int to)
{
	return hang->plan->algorithm == OP_RING ? ring_flow(hang, channel, from, to)
						: tree_flow(hang, channel, from, to);
}

/* Whether a channel of a collective is done for this rank. */
static bool sim_flow_is_channel_over(const struct hang *hang, int channel, int rank)
{
	const struct sim_comm *comm = hang->shared->comm;
	const uint32_t *row = hang->shared->progress + row_of(comm, channel);
	size_t n = (size_t)comm->nranks;
	size_t at = (size_t)comm->position[(size_t)channel * n + (size_t)rank];

	if (hang->plan->algorithm == OP_TREE)
		return row[comm->nnodes] == 1;
	return row[at] == hang->plan->steps && row[(at + n - 1) % n] == hang->plan->steps;
}

/*
 * From the progress of the data to what the recorder sees of it: the rule that limits a connection determines the
 * state of its transfers.
 */

enum { SEND_GPU = 0, SEND_PEER = 1, SEND_NET = 2, RECV_NET = 0, RECV_FLUSH = 1, RECV_GPU = 2 };

static void set_send_state(struct sim_edge *edge, const struct sim_flow *flow)
{
	edge->done = flow->arrived;
	edge->open = (uint8_t)least_steps(SIM_WINDOW, flow->steps - flow->arrived);
	if (flow->is_stuck)
		edge->state = SEND_NET;
	else if (flow->sender < SIM_RUNNING || flow->is_starved)
		edge->state = SEND_GPU;
	else
		edge->state = SEND_PEER;
}

static void set_recv_state(struct sim_edge *edge, const struct sim_flow *flow)
{
	edge->done = flow->consumed;
	if (flow->arrived > flow->consumed) {
		edge->state = RECV_GPU;
		edge->open = (uint8_t)least_steps(SIM_WINDOW, flow->arrived - flow->consumed);
	} else {
		edge->state = RECV_NET;
		edge->open = (uint8_t)least_steps(SIM_WINDOW, flow->steps - flow->consumed);
	}
}

/* When it got stuck: when the last of the running ranks had arrived. */
static uint64_t still_since(const struct hang *hang)
{
	struct sim_shared *shared = hang->shared;
	uint64_t ns = 0;

	if (shared->has_still)
		return shared->still_ns;
	for (int i = 0; i < shared->expected; i++)
		if (sim_flow_presence(hang, i) >= SIM_RUNNING && shared->calls[i] &&
		    shared->calls[i]->launch->start_ns > ns)
			ns = shared->calls[i]->launch->start_ns;
	shared->has_still = true;
	shared->still_ns = ns;
	return ns;
}

/* The call with the message that most ranks have. */
static const struct sim_call *usual_call(const struct sim_shared *shared)
{
	const struct sim_call *odd = NULL;

	for (int i = 0; i < shared->expected; i++) {
		if (shared->calls[i] && !shared->calls[i]->is_odd_one)
			return shared->calls[i];
		if (shared->calls[i])
			odd = shared->calls[i];
	}
	return odd;
}

/* Whether its kernel would have started after its process was stopped. Then nobody could see it. */
static bool is_late(const struct sim_engine *engine, const struct sim_launch *launch)
{
	return launch->start_ns > sim_job_gone_ns(engine->job, launch->rank);
}

static void fill_edge(const struct hang *hang, const struct sim_call *call,
		      const struct sim_flow *flow, struct sim_edge *edge)
{
	const struct sim_engine *engine = hang->engine;
	const struct sim_launch *launch = call->launch;
	const struct sim_stream *stream = &engine->ranks[launch->rank].streams[launch->role];
	uint64_t post_ns =
		launch->launch_ns > stream->free_ns ? launch->launch_ns : stream->free_ns;
	uint64_t since_ns = still_since(hang) + 20000;
	uint64_t gone_ns = sim_job_gone_ns(engine->job, launch->rank);

	edge->queued_ns = launch->launch_ns;
	if (!sim_flow_is_oldest(engine, launch) || is_late(engine, launch))
		return;
	if (since_ns > gone_ns)
		since_ns = gone_ns;
	edge->is_started = true;
	if (edge->is_send)
		set_send_state(edge, flow);
	else
		set_recv_state(edge, flow);
	edge->first_ns = post_ns;
	edge->since_ns = since_ns > post_ns ? since_ns : post_ns;
	edge->bytes = edge->done * hang->plan->step_bytes;
	if (edge->done == edge->steps) {
		edge->open = 0;
		edge->bytes = hang->plan->link_bytes;
		edge->stop_ns = edge->since_ns + hang->plan->longest_ns;
	} else if (engine->end_ns > edge->since_ns) {
		edge->wait_ns[edge->state] += edge->open * (engine->end_ns - edge->since_ns);
	}
}

static enum status stall_collective(struct sim_engine *engine, const struct sim_call *call,
				    struct sim_outcome *outcome)
{
	struct sim_shared *shared = call->shared;
	struct sim_plan plan;
	const struct hang hang = { engine, shared, &plan };
	uint64_t start_ns = call->launch->start_ns, since_ns = still_since(&hang);
	int rank = call->launch->self;

	sim_shared_plan(engine, shared, usual_call(shared), since_ns ? since_ns : engine->end_ns,
			&plan);
	if (shared->progress == NULL && sim_flow_work_out(&hang) != OK)
		return ERR_NO_SPACE;
	outcome->algorithm = plan.algorithm;
	outcome->protocol = plan.protocol;
	outcome->channels = plan.channels;
	outcome->begin_ns = since_ns;
	outcome->steps = plan.steps;
	outcome->step_bytes = plan.step_bytes;
	outcome->edge_count = sim_waits_edges(outcome->edges, shared->comm, &plan, rank);
	for (int i = 0; i < outcome->edge_count; i++) {
		struct sim_edge *edge = &outcome->edges[i];
		struct sim_flow flow =
			sim_flow_edge(&hang, edge->channel, edge->is_send ? rank : edge->peer,
				      edge->is_send ? edge->peer : rank);

		fill_edge(&hang, call, &flow, edge);
	}
	outcome->kernel_count = start_ns && !is_late(engine, call->launch) ? plan.channels : 0;
	for (int i = 0; i < outcome->kernel_count; i++) {
		bool is_over = !call->is_odd_one && sim_flow_is_channel_over(&hang, i, rank);

		outcome->kernels[i] = (struct sim_kernel){
			.channel = (uint8_t)i,
			.start_ns = sim_outcome_kernel_start(start_ns, i),
			.stop_ns = is_over ? since_ns + plan.channel_ns[i] : 0,
		};
	}
	return OK;
}

/* A Send or Recv whose launch is not over; it can be over itself. */
static void stall_pair(struct sim_engine *engine, const struct sim_call *call,
		       struct sim_outcome *outcome)
{
	const struct sim_launch *launch = call->launch;
	bool is_channel_done = true;
	uint64_t stop_ns = 0;

	for (const struct sim_call *other = launch->calls; other; other = other->next) {
		if (other->channel != call->channel || other->peer == launch->self)
			continue;
		is_channel_done = is_channel_done && other->is_over;
		if (other->end_ns > stop_ns)
			stop_ns = other->end_ns;
	}
	outcome->channels = 1;
	outcome->begin_ns = call->begin_ns;
	outcome->steps = call->edge.bytes ? call->edge.steps : 1;
	outcome->is_self = call->peer == launch->self;
	/* What is timed ends with its launch. */
	outcome->is_over =
		call->is_over && !launch->is_timed && (outcome->is_self || is_channel_done);
	outcome->end_ns = outcome->is_self ? call->end_ns : stop_ns;
	outcome->kernel_count =
		launch->start_ns && !outcome->is_self && !is_late(engine, launch) ? 1 : 0;
	outcome->kernels[0] = (struct sim_kernel){
		.channel = call->channel,
		.start_ns = sim_outcome_kernel_start(launch->start_ns, call->channel),
		.stop_ns = is_channel_done ? stop_ns : 0,
	};
	if (call->is_over) {
		outcome->edge_count = call->edge.bytes != 0 ? 1 : 0;
		outcome->edges[0] = call->edge;
	} else if (sim_comm_is_network(launch->comm, launch->self, call->peer)) {
		struct sim_plan plan;
		const struct hang hang = { engine, call->shared, &plan };
		struct sim_flow flow;

		sim_shared_plan_pair(engine, call->shared, call, engine->end_ns, &plan);
		flow = sim_flow_pair(&hang);
		outcome->steps = plan.steps;
		outcome->step_bytes = plan.step_bytes;
		outcome->edge_count = 1;
		outcome->edges[0] = (struct sim_edge){ .channel = call->channel,
						       .peer = call->peer,
						       .is_send = call->function == OP_SEND,
						       .steps = plan.steps };
		fill_edge(&hang, call, &flow, &outcome->edges[0]);
	}
}

enum status sim_stall_outcome(struct sim_engine *engine, const struct sim_call *call,
			      struct sim_outcome *outcome)
{
	*outcome = (struct sim_outcome){ .call = call };
	if (call->launch->is_unlaunched)
		return OK;
	if (call->function != OP_SEND && call->function != OP_RECV)
		return stall_collective(engine, call, outcome);
	stall_pair(engine, call, outcome);
	return OK;
}
