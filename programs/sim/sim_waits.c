/*
 * A connection has a window of eight transfers. Three stretches of time add to the sums:
 *
 *	posted          arrived               all there                end
 *	  |  own GPU is not there |  others are not  |  data moves       |
 *
 * In the first two, the window's transfers wait: sends for their GPU to fill them (it has nothing
 * to pass on before its upstream neighbour sends), receives for data. One send can go out early, the
 * rank's own data; into the rank that comes last a whole window of them, and there they wait for a
 * GPU that is not there. A send whose receiver has not even posted waits for its peer. In the third, a
 * transfer lives as long as a window of steps takes; where its own link is the slow one it spends that
 * time on the wire, elsewhere waiting for data.
 */
#include "programs/sim/sim_waits.h"

enum { FLUSH_NS = 1500, CONSUME_NS = 2500 };
enum { SEND_GPU = 0, SEND_PEER = 1, SEND_NET = 2, RECV_NET = 0, RECV_FLUSH = 1, RECV_GPU = 2 };

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t after(uint64_t to, uint64_t from)
{
	return to > from ? to - from : 0;
}

struct sim_arrivals sim_waits_arrivals(const struct sim_meeting *meeting, int nranks)
{
	struct sim_arrivals arrivals = { 0 };

	for (int rank = 0; rank < nranks; rank++) {
		uint64_t ns = meeting->calls[rank]->launch->start_ns;

		if (ns >= arrivals.last_ns) {
			arrivals.second_last_ns = arrivals.last_ns;
			arrivals.last_ns = ns;
			arrivals.last = rank;
		} else if (ns > arrivals.second_last_ns) {
			arrivals.second_last_ns = ns;
		}
	}
	return arrivals;
}

static struct sim_edge edge_make(const struct sim_plan *plan, int channel, int peer, bool is_send)
{
	return (struct sim_edge){
		.channel = (uint8_t)channel, .peer = peer, .is_send = is_send, .steps = plan->steps
	};
}

static int add_tree_edges(struct sim_edge *edges, const struct sim_comm *comm,
			  const struct sim_plan *plan, int channel, int rank)
{
	int peers[SIM_TREE_EDGES];
	int found = sim_comm_tree(comm, channel, rank, peers);

	for (int i = 0; i < found; i++) {
		edges[2 * i] = edge_make(plan, channel, peers[i], true);
		edges[2 * i + 1] = edge_make(plan, channel, peers[i], false);
	}
	return 2 * found;
}

/* A chain does not close to a ring: nothing is sent into its first rank or out of its last. */
bool sim_waits_has_hop(const struct sim_plan *plan, int from, int to)
{
	return plan->root == OP_NOBODY || plan->root != (plan->is_towards_root ? from : to);
}

int sim_waits_edges(struct sim_edge edges[SIM_EDGES_MAX], const struct sim_comm *comm,
		    const struct sim_plan *plan, int rank)
{
	int count = 0;

	if (comm->nnodes == 1)
		return 0;
	for (int channel = 0; channel < plan->channels; channel++) {
		int next = sim_comm_next(comm, channel, rank);
		int previous = sim_comm_previous(comm, channel, rank);

		if (plan->algorithm == OP_TREE) {
			count += add_tree_edges(edges + count, comm, plan, channel, rank);
			continue;
		}
		if (sim_comm_is_network(comm, rank, next) && sim_waits_has_hop(plan, rank, next))
			edges[count++] = edge_make(plan, channel, next, true);
		if (sim_comm_is_network(comm, previous, rank) &&
		    sim_waits_has_hop(plan, previous, rank))
			edges[count++] = edge_make(plan, channel, previous, false);
	}
	return count;
}

/* What one edge needs to know of the collective. */
struct setting {
	const struct sim_job *job;
	const struct sim_comm *comm;
	const struct sim_meeting *meeting;
	const struct sim_plan *plan;
	const struct sim_arrivals *arrivals;
};

static const struct sim_launch *launch_of(const struct setting *set, int rank)
{
	return set->meeting->calls[rank]->launch;
}

/* Transfers that rank `to` gets from `from` before everybody is there. */
static uint64_t early_transfers(const struct setting *set, int from, int to, uint64_t window)
{
	if (set->plan->algorithm != OP_RING)
		return 0;
	if (to == set->arrivals->last)
		return least(window, (uint64_t)set->comm->nranks - 1);
	return launch_of(set, from)->start_ns < launch_of(set, to)->start_ns ? 1 : 0;
}

/* Does the step on the connection a -> b take about as long as its channel's steps do? */
static bool is_slowest(const struct setting *set, int channel, int a, int b)
{
	uint64_t period_ns = set->plan->channel_ns[channel] / set->plan->steps;
	uint64_t step_ns =
		sim_model_step_ns(set->plan, set->job, set->comm, a, b, set->arrivals->last_ns);

	return step_ns * 10 >= period_ns * 8;
}

static void wait_sending(const struct setting *set, struct sim_edge *edge, int rank)
{
	const struct sim_launch *own = launch_of(set, rank), *peer = launch_of(set, edge->peer);
	uint64_t window = least(SIM_WINDOW, edge->steps);
	uint64_t early = early_transfers(set, rank, edge->peer, window);
	uint64_t life_ns = window * (set->plan->channel_ns[edge->channel] / edge->steps);
	uint64_t net_ns = sim_model_step_ns(set->plan, set->job, set->comm, rank, edge->peer,
					    set->arrivals->last_ns);
	uint64_t peer_ns = 0;

	if (early > 0) {
		uint64_t ready_ns = set->arrivals->second_last_ns;

		edge->wait_ns[SEND_GPU] += after(own->start_ns, own->post_ns) +
					   (early - 1) * after(ready_ns, own->post_ns);
		edge->wait_ns[SEND_PEER] += after(peer->post_ns, own->start_ns) +
					    (early - 1) * after(peer->post_ns, ready_ns);
	}
	edge->wait_ns[SEND_GPU] += (window - early) * after(set->arrivals->last_ns, own->post_ns);
	if (is_slowest(set, edge->channel, rank, edge->peer))
		net_ns = life_ns - life_ns / 8;
	else if (set->plan->algorithm == OP_RING &&
		 is_slowest(set, edge->channel, edge->peer,
			    sim_comm_next(set->comm, edge->channel, edge->peer)))
		/* The receiver cannot pass on what it gets: its buffers are full. */
		peer_ns = life_ns / 2;
	net_ns = least(net_ns, life_ns - peer_ns);
	edge->wait_ns[SEND_NET] += edge->steps * net_ns;
	edge->wait_ns[SEND_PEER] += edge->steps * peer_ns;
	edge->wait_ns[SEND_GPU] += edge->steps * (life_ns - peer_ns - net_ns);
}

static void wait_receiving(const struct setting *set, struct sim_edge *edge, int rank)
{
	const struct sim_launch *own = launch_of(set, rank), *peer = launch_of(set, edge->peer);
	uint64_t window = least(SIM_WINDOW, edge->steps);
	uint64_t early = early_transfers(set, edge->peer, rank, window);
	uint64_t life_ns = window * (set->plan->channel_ns[edge->channel] / edge->steps);
	uint64_t flush_ns = least(FLUSH_NS, life_ns / 4), gpu_ns = least(CONSUME_NS, life_ns / 4);

	if (early > 0) {
		uint64_t from_ns = rank == set->arrivals->last ? set->arrivals->second_last_ns
							       : peer->start_ns;
		uint64_t came_ns = from_ns > own->post_ns ? from_ns : own->post_ns;

		edge->wait_ns[RECV_NET] += early * after(came_ns, own->post_ns);
		edge->wait_ns[RECV_GPU] += early * after(own->start_ns, came_ns);
	}
	edge->wait_ns[RECV_NET] += (window - early) * after(set->arrivals->last_ns, own->post_ns);
	if (set->plan->algorithm == OP_RING && !is_slowest(set, edge->channel, edge->peer, rank) &&
	    is_slowest(set, edge->channel, rank, sim_comm_next(set->comm, edge->channel, rank)))
		gpu_ns = life_ns / 2;
	edge->wait_ns[RECV_FLUSH] += edge->steps * flush_ns;
	edge->wait_ns[RECV_GPU] += edge->steps * gpu_ns;
	edge->wait_ns[RECV_NET] += edge->steps * (life_ns - flush_ns - gpu_ns);
}

int sim_waits_collective(struct sim_edge edges[SIM_EDGES_MAX], const struct sim_job *job,
			 const struct sim_meeting *meeting, const struct sim_plan *plan,
			 const struct sim_arrivals *arrivals, int rank)
{
	const struct setting set = { .job = job,
				     .comm = &job->comms[meeting->comm],
				     .meeting = meeting,
				     .plan = plan,
				     .arrivals = arrivals };
	const struct sim_launch *own = launch_of(&set, rank);
	int count = sim_waits_edges(edges, set.comm, plan, rank);

	for (int i = 0; i < count; i++) {
		struct sim_edge *edge = &edges[i];

		if (edge->is_send)
			wait_sending(&set, edge, rank);
		else
			wait_receiving(&set, edge, rank);
		edge->is_started = true;
		edge->done = edge->steps;
		edge->bytes = plan->link_bytes;
		edge->queued_ns = own->launch_ns;
		edge->first_ns = own->post_ns;
		edge->stop_ns = arrivals->last_ns + plan->channel_ns[edge->channel];
	}
	return count;
}

void sim_waits_pair(struct sim_edge *edge, const struct sim_plan *plan, const struct sim_call *send,
		    const struct sim_call *recv, bool is_send)
{
	const struct sim_launch *sender = send->launch, *receiver = recv->launch;
	const struct sim_launch *own = is_send ? sender : receiver;
	uint64_t window = least(SIM_WINDOW, plan->steps);
	uint64_t life_ns = window * (plan->longest_ns / plan->steps);
	uint64_t start_ns =
		sender->start_ns > receiver->start_ns ? sender->start_ns : receiver->start_ns;

	*edge = (struct sim_edge){ .channel = is_send ? send->channel : recv->channel,
				   .is_send = is_send,
				   .is_started = true,
				   .peer = is_send ? send->peer : recv->peer,
				   .steps = plan->steps,
				   .done = plan->steps,
				   .bytes = plan->link_bytes,
				   .queued_ns = own->launch_ns,
				   .first_ns = own->post_ns,
				   .stop_ns = start_ns + plan->longest_ns };
	if (is_send) {
		edge->wait_ns[SEND_GPU] = window * after(sender->start_ns, sender->post_ns) +
					  plan->steps * (life_ns / 8);
		/* The first window goes into the receiver's buffers once it has posted them. */
		edge->wait_ns[SEND_PEER] = window * after(receiver->post_ns, sender->start_ns);
		if (plan->steps > window)
			edge->wait_ns[SEND_PEER] +=
				window *
				after(receiver->start_ns, receiver->post_ns > sender->start_ns
								  ? receiver->post_ns
								  : sender->start_ns);
		edge->wait_ns[SEND_NET] = plan->steps * (life_ns - life_ns / 8);
	} else {
		uint64_t came_ns =
			sender->start_ns > receiver->post_ns ? sender->start_ns : receiver->post_ns;

		edge->wait_ns[RECV_NET] = window * after(came_ns, receiver->post_ns) +
					  plan->steps * (life_ns - life_ns / 8);
		edge->wait_ns[RECV_FLUSH] = plan->steps * least(FLUSH_NS, life_ns / 8);
		edge->wait_ns[RECV_GPU] = window * after(receiver->start_ns, came_ns);
	}
}
