/*
 * A connection has a window of eight transfers. Three periods add to the totals:
 *
 *	posted          arrived               all arrived              end
 *	  | own GPU has not come  | others have not  |  data moves       |
 *
 * In the first two, the window's transfers wait: sends for their GPU to fill them (it has nothing to forward before
 * its upstream neighbour sends), receives for data. One send can go out early, with the rank's own data; a whole
 * window of them can go to the rank that arrives last, where they wait for its GPU. A send whose receiver has not
 * posted yet waits for its peer. In the third period, a transfer lasts as long as a window of steps takes. Of a
 * window, as many transfers are on the wire as the model says that there are at this connection; the others wait
 * for data. More than fit there wait in the buffers of the connection before it, and keep its sender waiting.
 */
#include "sim/sim_engine.h"

#include <stdlib.h>

#include "common/hash.h"
#include "common/op.h"

enum { FLUSH_NS = 1500, CONSUME_NS = 2500, HOPS_MAX = 4 };
enum { SEND_GPU = 0, SEND_PEER = 1, SEND_NET = 2, RECV_NET = 0, RECV_FLUSH = 1, RECV_GPU = 2 };

static uint64_t least_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t ns_after(uint64_t to, uint64_t from)
{
	return to > from ? to - from : 0;
}

static struct sim_arrivals sim_waits_arrivals(const struct sim_shared *shared, int nranks)
{
	struct sim_arrivals arrivals = { 0 };

	for (int rank = 0; rank < nranks; rank++) {
		uint64_t ns = shared->calls[rank]->launch->start_ns;

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

/* A chain is not closed: nothing is sent to its first rank or from its last. */
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

/* What an edge needs to know about the collective. */
struct setting {
	const struct sim_job *job;
	struct sim_comm *comm;
	const struct sim_shared *shared;
	const struct sim_plan *plan;
	const struct sim_arrivals *arrivals;
};

static const struct sim_launch *launch_of(const struct setting *set, int rank)
{
	return set->shared->calls[rank]->launch;
}

/* Transfers that rank `to` gets from `from` before all ranks have arrived. */
static uint64_t early_transfers(const struct setting *set, int from, int to, uint64_t window)
{
	if (set->plan->algorithm != OP_RING)
		return 0;
	if (to == set->arrivals->last)
		return least_ns(window, (uint64_t)set->comm->nranks - 1);
	return launch_of(set, from)->start_ns < launch_of(set, to)->start_ns ? 1 : 0;
}

/* Transfers at the connection from -> to, times 1000. */
static uint64_t queue_length(const struct setting *set, int channel, int from, int to)
{
	return sim_model_length(set->plan, set->job, set->comm, channel, from, to,
				set->arrivals->last_ns);
}

/*
 * Transfers that have arrived at this rank and wait in the buffers of the connection to it, times 1000. A kernel
 * forwards within the node directly from there; to another node it fills buffers first. What is too much for a
 * connection further ahead is here when all buffers in between are full.
 */
static uint64_t backlog(const struct setting *set, int channel, int rank)
{
	bool has_more =
		sim_model_queues(set->plan, set->job, set->comm, set->arrivals->last_ns)->has_more;
	uint64_t most = 0, room = 0;

	for (int hops = 0; set->plan->algorithm == OP_RING && hops < (has_more ? HOPS_MAX : 1);
	     hops++) {
		int next = sim_comm_next(set->comm, channel, rank);
		uint64_t length = queue_length(set, channel, rank, next);

		if (sim_comm_is_network(set->comm, rank, next))
			room += SIM_WINDOW * 1000;
		if (length > room && length - room > most)
			most = length - room;
		room += SIM_WINDOW * 1000;
		rank = next;
	}
	return most;
}

static void wait_sending(const struct setting *set, struct sim_edge *edge, int rank)
{
	const struct sim_launch *own = launch_of(set, rank), *peer = launch_of(set, edge->peer);
	uint64_t window = least_ns(SIM_WINDOW, edge->steps);
	uint64_t early = early_transfers(set, rank, edge->peer, window);
	uint64_t lost_ns = set->plan->lost_ns[edge->channel];
	uint64_t life_ns =
		window * ((set->plan->channel_ns[edge->channel] - lost_ns) / edge->steps);
	uint64_t length =
		least_ns(window * 1000, queue_length(set, edge->channel, rank, edge->peer));
	uint64_t more = backlog(set, edge->channel, edge->peer);
	const struct sim_delays delays =
		sim_job_delays(set->job, set->comm->ranks[rank], set->comm->ranks[edge->peer],
			       set->arrivals->last_ns);
	uint64_t net_ns = life_ns / window * length / 1000;
	uint64_t peer_ns = net_ns * delays.credits / 1000;
	uint64_t late_ns = net_ns * delays.sender / 2000;

	if (early > 0) {
		uint64_t ready_ns = set->arrivals->second_last_ns;

		edge->wait_ns[SEND_GPU] += ns_after(own->start_ns, own->post_ns) +
					   (early - 1) * ns_after(ready_ns, own->post_ns);
		edge->wait_ns[SEND_PEER] += ns_after(peer->post_ns, own->start_ns) +
					    (early - 1) * ns_after(peer->post_ns, ready_ns);
	}
	edge->wait_ns[SEND_GPU] +=
		(window - early) * ns_after(set->arrivals->last_ns, own->post_ns);
	net_ns -= peer_ns + late_ns;
	/* What the receiver cannot forward fills its buffers first, then keeps its sender waiting. */
	if (more > window * 1000)
		peer_ns += least_ns(life_ns / window * (more - window * 1000) / 1000,
				    life_ns - peer_ns - late_ns - net_ns);
	edge->wait_ns[SEND_NET] += edge->steps * net_ns;
	edge->wait_ns[SEND_PEER] += edge->steps * peer_ns;
	edge->wait_ns[SEND_GPU] += edge->steps * (life_ns - peer_ns - net_ns);
	edge->wait_ns[set->plan->lost_by[edge->channel] == rank ? SEND_NET : SEND_GPU] +=
		window * lost_ns;
}

static void wait_receiving(const struct setting *set, struct sim_edge *edge, int rank)
{
	const struct sim_launch *own = launch_of(set, rank), *peer = launch_of(set, edge->peer);
	uint64_t window = least_ns(SIM_WINDOW, edge->steps);
	uint64_t early = early_transfers(set, edge->peer, rank, window);
	uint64_t lost_ns = set->plan->lost_ns[edge->channel];
	uint64_t life_ns =
		window * ((set->plan->channel_ns[edge->channel] - lost_ns) / edge->steps);
	uint64_t flush_ns = least_ns(FLUSH_NS, life_ns / 4),
		 gpu_ns = least_ns(CONSUME_NS, life_ns / 4), length;
	struct sim_delays delays;

	if (early > 0) {
		uint64_t from_ns = rank == set->arrivals->last ? set->arrivals->second_last_ns
							       : peer->start_ns;
		uint64_t came_ns = from_ns > own->post_ns ? from_ns : own->post_ns;

		edge->wait_ns[RECV_NET] += early * ns_after(came_ns, own->post_ns);
		edge->wait_ns[RECV_GPU] += early * ns_after(own->start_ns, came_ns);
	}
	edge->wait_ns[RECV_NET] +=
		(window - early) * ns_after(set->arrivals->last_ns, own->post_ns);
	length = least_ns(window * 1000, queue_length(set, edge->channel, edge->peer, rank));
	delays = sim_job_delays(set->job, set->comm->ranks[edge->peer], set->comm->ranks[rank],
				set->arrivals->last_ns);
	gpu_ns += least_ns(life_ns / window *
				   (least_ns(window * 1000, backlog(set, edge->channel, rank)) +
				    length * delays.receiver / 1000) /
				   1000,
			   life_ns - flush_ns - gpu_ns);
	edge->wait_ns[RECV_FLUSH] += edge->steps * flush_ns;
	edge->wait_ns[RECV_GPU] += edge->steps * gpu_ns;
	edge->wait_ns[RECV_NET] += edge->steps * (life_ns - flush_ns - gpu_ns) + window * lost_ns;
}

int sim_waits_collective(struct sim_edge edges[SIM_EDGES_MAX], const struct sim_job *job,
			 const struct sim_shared *shared, const struct sim_plan *plan,
			 const struct sim_arrivals *arrivals, int rank)
{
	const struct setting set = { .job = job,
				     .comm = shared->comm,
				     .shared = shared,
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

/* For a Send or Recv over the network that is over. */
static void sim_waits_pair(struct sim_edge *edge, const struct sim_plan *plan,
			   const struct sim_delays *delays, const struct sim_call *send,
			   const struct sim_call *recv, bool is_send)
{
	const struct sim_launch *sender = send->launch, *receiver = recv->launch;
	const struct sim_launch *own = is_send ? sender : receiver;
	uint64_t window = least_ns(SIM_WINDOW, plan->steps);
	uint64_t life_ns = window * ((plan->longest_ns - plan->lost_ns[0]) / plan->steps);
	uint64_t net_ns = life_ns - life_ns / 8;
	uint64_t credits_ns = net_ns * delays->credits / 1000;
	uint64_t late_ns = net_ns * delays->sender / 2000;
	uint64_t taken_ns = net_ns * delays->receiver / 1000;
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
		edge->wait_ns[SEND_GPU] = window * ns_after(sender->start_ns, sender->post_ns) +
					  plan->steps * (life_ns / 8);
		/* The first window goes into the receiver's buffers once it has posted them. */
		edge->wait_ns[SEND_PEER] = window * ns_after(receiver->post_ns, sender->start_ns);
		if (plan->steps > window)
			edge->wait_ns[SEND_PEER] +=
				window *
				ns_after(receiver->start_ns, receiver->post_ns > sender->start_ns
								     ? receiver->post_ns
								     : sender->start_ns);
		edge->wait_ns[SEND_NET] =
			plan->steps * (net_ns - credits_ns - late_ns) + window * plan->lost_ns[0];
		edge->wait_ns[SEND_PEER] += plan->steps * credits_ns;
		edge->wait_ns[SEND_GPU] += plan->steps * late_ns;
	} else {
		uint64_t came_ns =
			sender->start_ns > receiver->post_ns ? sender->start_ns : receiver->post_ns;

		edge->wait_ns[RECV_NET] =
			window * (ns_after(came_ns, receiver->post_ns) + plan->lost_ns[0]) +
			plan->steps * (net_ns - taken_ns);
		edge->wait_ns[RECV_FLUSH] = plan->steps * least_ns(FLUSH_NS, life_ns / 8);
		edge->wait_ns[RECV_GPU] =
			window * ns_after(receiver->start_ns, came_ns) + plan->steps * taken_ns;
	}
}

/* Matches calls of several ranks, and computes when they end. */

enum { BUCKET_MASK = (1 << 14) - 1, SKEW_NS = 1500, MODEL_JITTER_PERMILLE = 30 };

/* ---- memory ---------------------------------------------------------------------------------- */

struct sim_call *sim_shared_call_new(struct sim_engine *engine)
{
	struct sim_call *call = engine->free_calls;

	if (call)
		engine->free_calls = call->next;
	else
		call = malloc(sizeof(*call));
	if (call == NULL) {
		engine->status = ERR_NO_SPACE;
		return NULL;
	}
	*call = (struct sim_call){ 0 };
	return call;
}

struct sim_launch *sim_shared_launch_new(struct sim_engine *engine)
{
	struct sim_launch *launch = engine->free_launches;

	if (launch)
		engine->free_launches = launch->next_of_rank;
	else
		launch = malloc(sizeof(*launch));
	if (launch == NULL) {
		engine->status = ERR_NO_SPACE;
		return NULL;
	}
	*launch = (struct sim_launch){ 0 };
	return launch;
}

void sim_shared_launch_free(struct sim_engine *engine, struct sim_launch *launch)
{
	while (launch->calls) {
		struct sim_call *call = launch->calls;

		launch->calls = call->next;
		call->next = engine->free_calls;
		engine->free_calls = call;
	}
	launch->next_of_rank = engine->free_launches;
	engine->free_launches = launch;
}

static struct sim_shared *shared_new(struct sim_engine *engine, struct sim_comm *comm, bool is_pair)
{
	int expected = is_pair ? 2 : comm->nranks;
	struct sim_shared **free_list =
		&engine->free_shared[is_pair ? engine->job->comm_count : comm->index];
	size_t size = sizeof(struct sim_shared) + (size_t)expected * sizeof(struct sim_call *);
	struct sim_shared *shared = *free_list;

	if (shared)
		*free_list = shared->next;
	else
		shared = malloc(size);
	if (shared == NULL) {
		engine->status = ERR_NO_SPACE;
		return NULL;
	}
	*shared = (struct sim_shared){
		.comm = comm, .is_pair = is_pair, .expected = expected, .odd = -1
	};
	for (int i = 0; i < expected; i++)
		shared->calls[i] = NULL;
	return shared;
}

static void shared_free(struct sim_engine *engine, struct sim_shared **place)
{
	struct sim_shared *shared = *place;
	struct sim_shared **free_list =
		&engine->free_shared[shared->is_pair ? engine->job->comm_count
						     : shared->comm->index];

	*place = shared->next;
	shared->next = *free_list;
	*free_list = shared;
}

/* ---- finding each other ---------------------------------------------------------------------- */

static struct sim_shared **bucket_of(struct sim_engine *engine, const struct sim_shared *key)
{
	uint64_t hash = hash_word(hash_word((uint64_t)key->comm->index, key->match),
				  (uint64_t)key->from << 32 | (uint64_t)key->to);

	return &engine->buckets[(hash ^ hash >> 32) & BUCKET_MASK];
}

static struct sim_shared **shared_find(struct sim_engine *engine, const struct sim_shared *key)
{
	struct sim_shared **at = bucket_of(engine, key);

	while (*at &&
	       ((*at)->comm != key->comm || (*at)->match != key->match ||
		(*at)->is_pair != key->is_pair || (*at)->from != key->from || (*at)->to != key->to))
		at = &(*at)->next;
	return at;
}

static struct sim_shared key_of(const struct sim_call *call)
{
	const struct sim_launch *launch = call->launch;
	struct sim_shared key = { .comm = launch->comm, .match = call->match };

	key.is_pair = call->function == OP_SEND || call->function == OP_RECV;
	if (key.is_pair) {
		key.from = call->function == OP_SEND ? launch->self : call->peer;
		key.to = call->function == OP_SEND ? call->peer : launch->self;
	}
	return key;
}

void sim_shared_issue(struct sim_engine *engine, struct sim_call *call)
{
	const struct sim_shared key = key_of(call);
	struct sim_shared **place = shared_find(engine, &key);
	int seat = key.is_pair ? call->function == OP_RECV : call->launch->self;

	if (*place == NULL) {
		struct sim_shared *made = shared_new(engine, key.comm, key.is_pair);

		if (made == NULL)
			return;
		made->match = key.match;
		made->from = key.from;
		made->to = key.to;
		*place = made;
	}
	call->shared = *place;
	(*place)->calls[seat] = call;
	(*place)->issued++;
}

/* ---- will it ever end? ----------------------------------------------------------------------- */

/*
 * Whether it sends something in this channel that never completes. Down a tree every rank forwards what it got;
 * only the top can be stuck there.
 */
static bool is_stuck_in_channel(const struct sim_engine *engine, const struct sim_comm *comm,
				const struct sim_plan *plan, int channel, int rank, uint64_t ns)
{
	int next = sim_comm_next(comm, channel, rank);
	int peers[SIM_TREE_EDGES];
	int count;

	if (plan->algorithm == OP_RING)
		return sim_waits_has_hop(plan, rank, next) &&
		       sim_job_is_stuck(engine->job, comm, channel, rank, next, ns);
	count = sim_comm_tree(comm, channel, rank, peers);
	if (count > 1 && comm->nodes[rank] > 0)
		count = 1;
	for (int i = 0; i < count; i++)
		if (sim_job_is_stuck(engine->job, comm, channel, rank, peers[i], ns))
			return true;
	return false;
}

/* A rank that dies before the end, whose sends are stuck, or whose GPU does nothing. */
static bool transfer_breaks(const struct sim_engine *engine, const struct sim_shared *shared,
			    int rank, const struct sim_plan *plan, uint64_t start_ns,
			    bool is_sender)
{
	const struct sim_job *job = engine->job;
	const struct sim_comm *comm = shared->comm;
	int number = comm->ranks[rank];

	if (start_ns + plan->longest_ns > sim_job_gone_ns(job, number) ||
	    sim_job_gpu_is_stuck(job, number, (int)comm->role, SIM_NOT_PRODUCING, start_ns))
		return true;
	if (!is_sender || !sim_job_fault(job, SIM_STUCK_SEND, number, start_ns))
		return false;
	if (shared->is_pair)
		return sim_job_is_stuck(job, comm, shared->calls[0]->channel, shared->from,
					shared->to, start_ns);
	for (int channel = 0; channel < plan->channels; channel++)
		if (is_stuck_in_channel(engine, comm, plan, channel, rank, start_ns))
			return true;
	return false;
}

static const struct sim_call *odd_call(const struct sim_shared *shared)
{
	for (int i = 0; i < shared->expected; i++)
		if (shared->calls[i]->is_odd_one)
			return shared->calls[i];
	return NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void call_over(struct sim_engine *engine, struct sim_call *call, uint64_t end_ns)
{
	struct sim_launch *launch = call->launch;

	call->is_over = true;
	call->end_ns = end_ns;
	if (end_ns > launch->end_ns)
		launch->end_ns = end_ns;
	if (--launch->open == 0) {
		if (call->function == OP_SEND || call->function == OP_RECV)
			sim_outcome_pairs(engine, launch);
		sim_engine_launch_over(engine, launch);
	}
}

/*
 * A chain from the root: a rank is done when all ranks between the root and itself have arrived, unless the message
 * is so large that every rank delays those before it.
 */
static uint64_t rooted_start(const struct sim_shared *shared, const struct sim_plan *plan,
			     const struct sim_arrivals *arrivals, int rank)
{
	const struct sim_comm *comm = shared->comm;
	int root = shared->calls[rank]->root;
	uint64_t start_ns = shared->calls[rank]->launch->start_ns;

	if (plan->steps > SIM_WINDOW || shared->calls[rank]->function == OP_REDUCE)
		return arrivals->last_ns;
	for (; rank != root; rank = sim_comm_previous(comm, 0, rank)) {
		int before = sim_comm_previous(comm, 0, rank);

		if (shared->calls[before]->launch->start_ns > start_ns)
			start_ns = shared->calls[before]->launch->start_ns;
	}
	return start_ns;
}

/* When the collective is over for this rank. */
static uint64_t rank_end_ns(const struct sim_engine *engine, const struct sim_shared *shared,
			    const struct sim_plan *plan, const struct sim_arrivals *arrivals,
			    int rank)
{
	uint64_t start_ns = arrivals->last_ns;

	if (shared->calls[rank]->root != OP_NOBODY)
		start_ns = rooted_start(shared, plan, arrivals, rank);
	return start_ns + plan->longest_ns +
	       sim_random_below(SKEW_NS, engine->job->options.seed,
				hash_word((uint64_t)shared->comm->index, 4),
				shared->match << 16 | (uint64_t)rank);
}

/* The rank that sends to another node in a channel, and whose packets are lost this time. */
static int lossy_rank(const struct sim_engine *engine, const struct sim_shared *shared, int channel)
{
	const struct sim_comm *comm = shared->comm;
	int node = (int)sim_random_below((uint64_t)comm->nnodes, engine->job->options.seed,
					 hash_word(comm->hash, (uint64_t)channel), shared->match);

	if (shared->is_pair)
		return shared->from;
	for (int rank = comm->node_first[node]; rank < comm->node_first[node + 1]; rank++)
		if (sim_comm_is_network(comm, rank, sim_comm_next(comm, channel, rank)))
			return rank;
	return comm->node_first[node];
}

static void lose_packets(const struct sim_engine *engine, const struct sim_shared *shared,
			 struct sim_plan *plan)
{
	const struct sim_comm *comm = shared->comm;
	bool is_network = shared->is_pair ? sim_comm_is_network(comm, shared->from, shared->to)
					  : comm->nnodes > 1;

	for (int i = 0; i < plan->channels && is_network; i++) {
		uint64_t hash = shared->is_pair
					? hash_word(comm->hash, (uint64_t)shared->from << 32 |
									(uint64_t)shared->to)
					: comm->hash;

		plan->lost_ns[i] = sim_noise_loss(engine->job, hash, shared->match, i);
		plan->lost_by[i] = plan->lost_ns[i] ? lossy_rank(engine, shared, i) : 0;
		plan->channel_ns[i] += plan->lost_ns[i];
		if (plan->channel_ns[i] > plan->longest_ns)
			plan->longest_ns = plan->channel_ns[i];
	}
}

/* Each execution of a collective is a little faster or slower. */
static void vary_plan(const struct sim_engine *engine, const struct sim_shared *shared,
		      struct sim_plan *plan)
{
	uint64_t longest_ns = 0;

	for (int i = 0; i < plan->channels; i++) {
		plan->channel_ns[i] = sim_random_spread(plan->channel_ns[i], MODEL_JITTER_PERMILLE,
							engine->job->options.seed,
							hash_word((uint64_t)shared->comm->index, 5),
							shared->match << 8 | (uint64_t)i);
		if (plan->channel_ns[i] > longest_ns)
			longest_ns = plan->channel_ns[i];
	}
	plan->longest_ns = longest_ns;
	lose_packets(engine, shared, plan);
}

/* For how much of its time another communicator uses the network of one of its nodes. */
static uint64_t overlap_ns(const struct sim_engine *engine, int node, int role, uint64_t from_ns,
			   uint64_t to_ns)
{
	uint64_t most_ns = 0;

	for (int other = 0; other < SIM_ROLES; other++) {
		const struct sim_busy *busy = &engine->busy[node][other];
		uint64_t begin_ns = busy->from_ns > from_ns ? busy->from_ns : from_ns;
		uint64_t end_ns = least_ns(busy->to_ns, to_ns);

		if (other != role && ns_after(end_ns, begin_ns) > most_ns)
			most_ns = end_ns - begin_ns;
	}
	return most_ns;
}

/* Noise: an operation loses time to those of other communicators on the same nodes. */
static void contend(struct sim_engine *engine, const struct sim_shared *shared,
		    struct sim_plan *plan, uint64_t start_ns)
{
	const struct sim_comm *comm = shared->comm;
	int first = shared->is_pair ? comm->nodes[shared->from] : 0;
	int last = shared->is_pair ? comm->nodes[shared->to] : comm->nnodes - 1;
	int stride = shared->is_pair && last != first ? last - first : 1;
	uint64_t extra_ns = 0;

	if (engine->busy == NULL || first == last)
		return;
	for (int i = first; i != last + stride; i += stride) {
		uint64_t ns = overlap_ns(
			engine, sim_job_node(engine->job, comm->ranks[comm->node_first[i]]),
			(int)comm->role, start_ns, start_ns + plan->longest_ns);

		extra_ns = ns > extra_ns ? ns : extra_ns;
	}
	extra_ns = extra_ns * engine->job->options.noises[SIM_NOISE_CONTENTION].amount / 1000;
	for (int i = 0; i < plan->channels; i++)
		plan->channel_ns[i] += extra_ns;
	plan->longest_ns += extra_ns;
	for (int i = first; i != last + stride; i += stride)
		engine->busy[sim_job_node(engine->job, comm->ranks[comm->node_first[i]])]
			    [comm->role] =
			(struct sim_busy){ start_ns, start_ns + plan->longest_ns };
}

void sim_shared_plan(const struct sim_engine *engine, const struct sim_shared *shared,
		     const struct sim_call *call, uint64_t start_ns, struct sim_plan *plan)
{
	struct sim_comm *comm = shared->comm;
	uint64_t bytes = op_message_bytes(call->function, call->count,
					  op_datatype_bytes(call->datatype), comm->nranks);

	sim_model_collective(plan, engine->job, comm, call->function, bytes, start_ns);
	plan->root = call->root;
	plan->is_towards_root = call->function == OP_REDUCE;
	vary_plan(engine, shared, plan);
}

static void rank_leave(struct sim_engine *engine, struct sim_shared *shared, int rank,
		       uint64_t end_ns)
{
	call_over(engine, shared->calls[rank], end_ns);
	shared->calls[rank] = NULL;
}

/* Distance from the root along the chain, in one channel. */
static int chain_distance(const struct sim_comm *comm, int channel, int root, int rank)
{
	size_t row = (size_t)channel * (size_t)comm->nranks;

	return (comm->position[row + (size_t)rank] - comm->position[row + (size_t)root] +
		comm->nranks) %
	       comm->nranks;
}

/* Whether in every channel it is no farther from the root than the rank that forwards nothing. */
static bool is_upstream(const struct sim_comm *comm, const struct sim_plan *plan, int rank, int odd)
{
	for (int channel = 0; channel < plan->channels; channel++)
		if (chain_distance(comm, channel, plan->root, rank) >
		    chain_distance(comm, channel, plan->root, odd))
			return false;
	return true;
}

/* It uses another root and forwards nothing: the ranks before it finish. */
static void leave_rooted(struct sim_engine *engine, struct sim_shared *shared,
			 const struct sim_plan *plan, const struct sim_arrivals *arrivals, int odd)
{
	const struct sim_comm *comm = shared->comm;

	if (odd == plan->root)
		return; /* all ranks wait for its data */
	shared->odd = odd;
	shared->odd_root = shared->calls[odd]->root;
	for (int rank = 0; rank < comm->nranks; rank++)
		if (rank == odd || (shared->odd_root != odd && is_upstream(comm, plan, rank, odd)))
			sim_outcome_collective(engine, shared, plan, arrivals, rank,
					       arrivals->last_ns + plan->longest_ns);
	for (int rank = 0; rank < comm->nranks; rank++)
		if (rank == odd || (shared->odd_root != odd && is_upstream(comm, plan, rank, odd)))
			rank_leave(engine, shared, rank, arrivals->last_ns + plan->longest_ns);
}

/* One rank's call differs. If it needs no more than the others send, it leaves and hangs later. */
static void end_mismatch(struct sim_engine *engine, struct sim_shared *shared,
			 const struct sim_plan *plan, const struct sim_arrivals *arrivals,
			 const struct sim_call *odd)
{
	int rank = odd->launch->self;
	struct sim_plan own;

	shared->is_broken = true;
	if (odd->function != shared->calls[odd == shared->calls[0]]->function)
		return;
	if (odd->odd == SIM_MISMATCH_ROOT) {
		leave_rooted(engine, shared, plan, arrivals, rank);
	} else if (odd->odd == SIM_MISMATCH_ORDER) {
		sim_shared_plan(engine, shared, odd, arrivals->last_ns, &own);
		sim_outcome_collective(engine, shared, &own, arrivals, rank,
				       arrivals->last_ns + own.longest_ns);
		rank_leave(engine, shared, rank, arrivals->last_ns + own.longest_ns);
	} else {
		sim_outcome_odd(engine, shared, plan, arrivals, rank);
		rank_leave(engine, shared, rank, arrivals->last_ns + plan->longest_ns / 2);
	}
}

/* All ranks have arrived. */
static void end_collective(struct sim_engine *engine, struct sim_shared *shared)
{
	const struct sim_comm *comm = shared->comm;
	struct sim_arrivals arrivals = sim_waits_arrivals(shared, comm->nranks);
	const struct sim_call *odd = odd_call(shared);
	struct sim_plan plan;

	sim_shared_plan(engine, shared, shared->calls[odd == shared->calls[0]], arrivals.last_ns,
			&plan);
	contend(engine, shared, &plan, arrivals.last_ns);
	for (int i = 0; i < comm->nranks && !shared->is_broken; i++)
		shared->is_broken =
			transfer_breaks(engine, shared, i, &plan, arrivals.last_ns, true);
	if (odd)
		end_mismatch(engine, shared, &plan, &arrivals, odd);
	if (shared->is_broken)
		return;
	for (int i = 0; i < comm->nranks; i++)
		sim_outcome_collective(engine, shared, &plan, &arrivals, i,
				       rank_end_ns(engine, shared, &plan, &arrivals, i));
	for (int i = 0; i < comm->nranks; i++)
		call_over(engine, shared->calls[i],
			  rank_end_ns(engine, shared, &plan, &arrivals, i));
}

/* Calls of the launch that share the port of this one. */
static unsigned int fan_of(const struct sim_call *call)
{
	const struct sim_launch *launch = call->launch;
	bool is_network = sim_comm_is_network(launch->comm, launch->self, call->peer);
	unsigned int fan = 0;

	for (const struct sim_call *other = launch->calls; other; other = other->next)
		if (other->function == call->function && other->peer != launch->self &&
		    sim_comm_is_network(launch->comm, launch->self, other->peer) == is_network)
			fan++;
	return fan ? fan : 1;
}

void sim_shared_plan_pair(const struct sim_engine *engine, const struct sim_shared *shared,
			  const struct sim_call *call, uint64_t start_ns, struct sim_plan *plan)
{
	const struct sim_comm *comm = shared->comm;
	unsigned int fan = 1;

	for (int i = 0; i < 2; i++)
		if (shared->calls[i] && fan_of(shared->calls[i]) > fan)
			fan = fan_of(shared->calls[i]);
	sim_model_send(plan, engine->job, comm->ranks[shared->from], comm->ranks[shared->to],
		       call->count * op_datatype_bytes(call->datatype), fan, start_ns);
}

/* A Send and its Recv have both arrived. */
static void end_pair(struct sim_engine *engine, struct sim_shared *shared)
{
	const struct sim_comm *comm = shared->comm;
	struct sim_call *send = shared->calls[0], *recv = shared->calls[1];
	uint64_t start_ns = send->launch->start_ns > recv->launch->start_ns
				    ? send->launch->start_ns
				    : recv->launch->start_ns;
	struct sim_plan plan;

	sim_shared_plan_pair(engine, shared, send, start_ns, &plan);
	vary_plan(engine, shared, &plan);
	contend(engine, shared, &plan, start_ns);
	shared->is_broken = transfer_breaks(engine, shared, shared->from, &plan, start_ns, true) ||
			    transfer_breaks(engine, shared, shared->to, &plan, start_ns, false);
	if (shared->is_broken)
		return;
	if (sim_comm_is_network(comm, shared->from, shared->to)) {
		const struct sim_delays delays = sim_job_delays(
			engine->job, comm->ranks[shared->from], comm->ranks[shared->to], start_ns);

		sim_waits_pair(&send->edge, &plan, &delays, send, recv, true);
		sim_waits_pair(&recv->edge, &plan, &delays, send, recv, false);
	}
	send->shared = recv->shared = NULL;
	send->begin_ns = recv->begin_ns = start_ns;
	call_over(engine, send, start_ns + plan.longest_ns);
	call_over(engine, recv, start_ns + plan.longest_ns);
}

void sim_shared_post(struct sim_engine *engine, struct sim_launch *launch)
{
	struct sim_call *next;

	/* The last call of the launch ends it, and with it this list. */
	for (struct sim_call *call = launch->calls; call; call = next) {
		struct sim_shared *shared = call->shared;

		next = call->next;
		if (++shared->posted != shared->expected || engine->status != OK)
			continue;
		if (shared->is_pair)
			end_pair(engine, shared);
		else
			end_collective(engine, shared);
		if (!shared->is_broken)
			shared_free(engine, shared_find(engine, shared));
	}
}
