/* Where calls of several ranks meet, and when what they do together is over. */
#include <stdlib.h>

#include "common/hash.h"
#include "common/op.h"
#include "programs/sim/sim_engine.h"
#include "programs/sim/sim_outcome.h"
#include "programs/sim/sim_random.h"
#include "programs/sim/sim_waits.h"

enum { BUCKET_MASK = (1 << 14) - 1, SKEW_NS = 1500, MODEL_JITTER_PERMILLE = 30 };

/* ---- memory ---------------------------------------------------------------------------------- */

struct sim_call *sim_meet_call_new(struct sim_engine *engine)
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

struct sim_launch *sim_meet_launch_new(struct sim_engine *engine)
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

void sim_meet_launch_free(struct sim_engine *engine, struct sim_launch *launch)
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

static struct sim_meeting *meeting_new(struct sim_engine *engine, int comm, bool is_pair)
{
	int expected = is_pair ? 2 : engine->job->comms[comm].nranks;
	struct sim_meeting **free_list =
		&engine->free_meetings[is_pair ? engine->job->comm_count : comm];
	size_t size = sizeof(struct sim_meeting) + (size_t)expected * sizeof(struct sim_call *);
	struct sim_meeting *meeting = *free_list;

	if (meeting)
		*free_list = meeting->next;
	else
		meeting = malloc(size);
	if (meeting == NULL) {
		engine->status = ERR_NO_SPACE;
		return NULL;
	}
	*meeting = (struct sim_meeting){
		.comm = comm, .is_pair = is_pair, .expected = expected, .odd = -1
	};
	for (int i = 0; i < expected; i++)
		meeting->calls[i] = NULL;
	return meeting;
}

static void meeting_free(struct sim_engine *engine, struct sim_meeting **place)
{
	struct sim_meeting *meeting = *place;
	struct sim_meeting **free_list =
		&engine->free_meetings[meeting->is_pair ? engine->job->comm_count : meeting->comm];

	*place = meeting->next;
	meeting->next = *free_list;
	*free_list = meeting;
}

/* ---- finding each other ---------------------------------------------------------------------- */

static struct sim_meeting **bucket_of(struct sim_engine *engine, const struct sim_meeting *key)
{
	uint64_t hash = hash_word(hash_word((uint64_t)key->comm, key->match),
				  (uint64_t)key->from << 32 | (uint64_t)key->to);

	return &engine->buckets[(hash ^ hash >> 32) & BUCKET_MASK];
}

static struct sim_meeting **meeting_find(struct sim_engine *engine, const struct sim_meeting *key)
{
	struct sim_meeting **at = bucket_of(engine, key);

	while (*at &&
	       ((*at)->comm != key->comm || (*at)->match != key->match ||
		(*at)->is_pair != key->is_pair || (*at)->from != key->from || (*at)->to != key->to))
		at = &(*at)->next;
	return at;
}

static struct sim_meeting key_of(const struct sim_engine *engine, const struct sim_call *call)
{
	const struct sim_launch *launch = call->launch;
	const struct sim_member *member = &engine->job->members[launch->rank][launch->role];
	struct sim_meeting key = { .comm = member->comm, .match = call->match };

	key.is_pair = call->function == OP_SEND || call->function == OP_RECV;
	if (key.is_pair) {
		key.from = call->function == OP_SEND ? member->rank : call->peer;
		key.to = call->function == OP_SEND ? call->peer : member->rank;
	}
	return key;
}

void sim_meet_issue(struct sim_engine *engine, struct sim_call *call)
{
	const struct sim_meeting key = key_of(engine, call);
	struct sim_meeting **place = meeting_find(engine, &key);
	int seat = key.is_pair ? call->function == OP_RECV
			       : engine->job->members[call->launch->rank][call->launch->role].rank;

	if (*place == NULL) {
		struct sim_meeting *made = meeting_new(engine, key.comm, key.is_pair);

		if (made == NULL)
			return;
		made->match = key.match;
		made->from = key.from;
		made->to = key.to;
		*place = made;
	}
	call->meeting = *place;
	(*place)->calls[seat] = call;
	(*place)->issued++;
}

/* ---- will it ever end? ----------------------------------------------------------------------- */

/* Does it send something in this channel that is never completed? Down a tree everybody passes on
 * what it got; only the top can be stuck there. */
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
static bool breaks(const struct sim_engine *engine, const struct sim_meeting *meeting, int rank,
		   const struct sim_plan *plan, uint64_t start_ns, bool is_sender)
{
	const struct sim_job *job = engine->job;
	const struct sim_comm *comm = &job->comms[meeting->comm];
	int number = comm->ranks[rank];

	if (start_ns + plan->longest_ns > sim_job_gone_ns(job, number) ||
	    sim_job_gpu_is_stuck(job, number, (int)comm->role, SIM_NOT_PRODUCING, start_ns))
		return true;
	if (!is_sender || !sim_job_fault(job, SIM_STUCK_SEND, number, start_ns))
		return false;
	if (meeting->is_pair)
		return sim_job_is_stuck(job, comm, meeting->calls[0]->channel, meeting->from,
					meeting->to, start_ns);
	for (int channel = 0; channel < plan->channels; channel++)
		if (is_stuck_in_channel(engine, comm, plan, channel, rank, start_ns))
			return true;
	return false;
}

static const struct sim_call *odd_call(const struct sim_meeting *meeting)
{
	for (int i = 0; i < meeting->expected; i++)
		if (meeting->calls[i]->is_odd_one)
			return meeting->calls[i];
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

/* A chain from the root: a rank is through when all between the root and it have arrived, unless so
 * much is sent that every rank holds up those before it. */
static uint64_t rooted_start(const struct sim_job *job, const struct sim_meeting *meeting,
			     const struct sim_plan *plan, const struct sim_arrivals *arrivals,
			     int rank)
{
	const struct sim_comm *comm = &job->comms[meeting->comm];
	int root = meeting->calls[rank]->root;
	uint64_t start_ns = meeting->calls[rank]->launch->start_ns;

	if (plan->steps > SIM_WINDOW || meeting->calls[rank]->function == OP_REDUCE)
		return arrivals->last_ns;
	for (; rank != root; rank = sim_comm_previous(comm, 0, rank)) {
		int before = sim_comm_previous(comm, 0, rank);

		if (meeting->calls[before]->launch->start_ns > start_ns)
			start_ns = meeting->calls[before]->launch->start_ns;
	}
	return start_ns;
}

/* When the collective is over for this rank. */
static uint64_t end_of(const struct sim_engine *engine, const struct sim_meeting *meeting,
		       const struct sim_plan *plan, const struct sim_arrivals *arrivals, int rank)
{
	uint64_t start_ns = arrivals->last_ns;

	if (meeting->calls[rank]->root != OP_NOBODY)
		start_ns = rooted_start(engine->job, meeting, plan, arrivals, rank);
	return start_ns + plan->longest_ns +
	       sim_random_below(SKEW_NS, engine->job->options.seed,
				hash_word((uint64_t)meeting->comm, 4),
				meeting->match << 16 | (uint64_t)rank);
}

/* Each run of a collective is a little faster or slower. */
static void vary_plan(const struct sim_engine *engine, const struct sim_meeting *meeting,
		      struct sim_plan *plan)
{
	uint64_t longest_ns = 0;

	for (int i = 0; i < plan->channels; i++) {
		plan->channel_ns[i] = sim_random_spread(
			plan->channel_ns[i], MODEL_JITTER_PERMILLE, engine->job->options.seed,
			hash_word((uint64_t)meeting->comm, 5), meeting->match << 8 | (uint64_t)i);
		if (plan->channel_ns[i] > longest_ns)
			longest_ns = plan->channel_ns[i];
	}
	plan->longest_ns = longest_ns;
}

void sim_meet_plan(const struct sim_engine *engine, const struct sim_meeting *meeting,
		   const struct sim_call *call, uint64_t start_ns, struct sim_plan *plan)
{
	struct sim_comm *comm = &engine->job->comms[meeting->comm];
	uint64_t bytes = op_message_bytes(call->function, call->count,
					  op_datatype_bytes(call->datatype), comm->nranks);

	sim_model_collective(plan, engine->job, comm, call->function, bytes, start_ns);
	plan->root = call->root;
	plan->is_towards_root = call->function == OP_REDUCE;
	vary_plan(engine, meeting, plan);
}

static void leave(struct sim_engine *engine, struct sim_meeting *meeting, int rank, uint64_t end_ns)
{
	call_over(engine, meeting->calls[rank], end_ns);
	meeting->calls[rank] = NULL;
}

/* How far down the chain from the root, in one channel. */
static int distance(const struct sim_comm *comm, int channel, int root, int rank)
{
	size_t row = (size_t)channel * (size_t)comm->nranks;

	return (comm->position[row + (size_t)rank] - comm->position[row + (size_t)root] +
		comm->nranks) %
	       comm->nranks;
}

/* Is it in every channel no further from the root than the one that passes nothing on? */
static bool is_upstream(const struct sim_comm *comm, const struct sim_plan *plan, int rank, int odd)
{
	for (int channel = 0; channel < plan->channels; channel++)
		if (distance(comm, channel, plan->root, rank) >
		    distance(comm, channel, plan->root, odd))
			return false;
	return true;
}

/* It takes another rank for the root, and passes nothing on: who is before it gets through. */
static void leave_rooted(struct sim_engine *engine, struct sim_meeting *meeting,
			 const struct sim_plan *plan, const struct sim_arrivals *arrivals, int odd)
{
	const struct sim_comm *comm = &engine->job->comms[meeting->comm];

	if (odd == plan->root)
		return; /* everybody waits for its data */
	meeting->odd = odd;
	meeting->odd_root = meeting->calls[odd]->root;
	for (int rank = 0; rank < comm->nranks; rank++)
		if (rank == odd || (meeting->odd_root != odd && is_upstream(comm, plan, rank, odd)))
			sim_outcome_collective(engine, meeting, plan, arrivals, rank,
					       arrivals->last_ns + plan->longest_ns);
	for (int rank = 0; rank < comm->nranks; rank++)
		if (rank == odd || (meeting->odd_root != odd && is_upstream(comm, plan, rank, odd)))
			leave(engine, meeting, rank, arrivals->last_ns + plan->longest_ns);
}

/* One rank's call differs. If it needs no more than the others send, it leaves and comes to grief later. */
static void end_mismatch(struct sim_engine *engine, struct sim_meeting *meeting,
			 const struct sim_plan *plan, const struct sim_arrivals *arrivals,
			 const struct sim_call *odd)
{
	int rank = engine->job->members[odd->launch->rank][odd->launch->role].rank;
	struct sim_plan own;

	meeting->is_broken = true;
	if (odd->function != meeting->calls[odd == meeting->calls[0]]->function)
		return;
	if (odd->odd == SIM_MISMATCH_ROOT) {
		leave_rooted(engine, meeting, plan, arrivals, rank);
	} else if (odd->odd == SIM_MISMATCH_ORDER) {
		sim_meet_plan(engine, meeting, odd, arrivals->last_ns, &own);
		sim_outcome_collective(engine, meeting, &own, arrivals, rank,
				       arrivals->last_ns + own.longest_ns);
		leave(engine, meeting, rank, arrivals->last_ns + own.longest_ns);
	} else {
		sim_outcome_odd(engine, meeting, plan, arrivals, rank);
		leave(engine, meeting, rank, arrivals->last_ns + plan->longest_ns / 2);
	}
}

/* All ranks are there. */
static void end_collective(struct sim_engine *engine, struct sim_meeting *meeting)
{
	const struct sim_comm *comm = &engine->job->comms[meeting->comm];
	struct sim_arrivals arrivals = sim_waits_arrivals(meeting, comm->nranks);
	const struct sim_call *odd = odd_call(meeting);
	struct sim_plan plan;

	sim_meet_plan(engine, meeting, meeting->calls[odd == meeting->calls[0]], arrivals.last_ns,
		      &plan);
	for (int i = 0; i < comm->nranks && !meeting->is_broken; i++)
		meeting->is_broken = breaks(engine, meeting, i, &plan, arrivals.last_ns, true);
	if (odd)
		end_mismatch(engine, meeting, &plan, &arrivals, odd);
	if (meeting->is_broken)
		return;
	for (int i = 0; i < comm->nranks; i++)
		sim_outcome_collective(engine, meeting, &plan, &arrivals, i,
				       end_of(engine, meeting, &plan, &arrivals, i));
	for (int i = 0; i < comm->nranks; i++)
		call_over(engine, meeting->calls[i], end_of(engine, meeting, &plan, &arrivals, i));
}

/* Calls of the launch that share the port which this one uses. */
static unsigned int fan_of(const struct sim_job *job, const struct sim_call *call)
{
	const struct sim_launch *launch = call->launch;
	const struct sim_member *member = &job->members[launch->rank][launch->role];
	const struct sim_comm *comm = &job->comms[member->comm];
	bool is_network = sim_comm_is_network(comm, member->rank, call->peer);
	unsigned int fan = 0;

	for (const struct sim_call *other = launch->calls; other; other = other->next)
		if (other->function == call->function && other->peer != member->rank &&
		    sim_comm_is_network(comm, member->rank, other->peer) == is_network)
			fan++;
	return fan ? fan : 1;
}

void sim_meet_plan_pair(const struct sim_engine *engine, const struct sim_meeting *meeting,
			const struct sim_call *call, uint64_t start_ns, struct sim_plan *plan)
{
	const struct sim_comm *comm = &engine->job->comms[meeting->comm];
	unsigned int fan = 1;

	for (int i = 0; i < 2; i++)
		if (meeting->calls[i] && fan_of(engine->job, meeting->calls[i]) > fan)
			fan = fan_of(engine->job, meeting->calls[i]);
	sim_model_send(plan, engine->job, comm->ranks[meeting->from], comm->ranks[meeting->to],
		       call->count * op_datatype_bytes(call->datatype), fan, start_ns);
}

/* A Send and its Recv are both there. */
static void end_pair(struct sim_engine *engine, struct sim_meeting *meeting)
{
	const struct sim_comm *comm = &engine->job->comms[meeting->comm];
	struct sim_call *send = meeting->calls[0], *recv = meeting->calls[1];
	uint64_t start_ns = send->launch->start_ns > recv->launch->start_ns
				    ? send->launch->start_ns
				    : recv->launch->start_ns;
	struct sim_plan plan;

	sim_meet_plan_pair(engine, meeting, send, start_ns, &plan);
	vary_plan(engine, meeting, &plan);
	meeting->is_broken = breaks(engine, meeting, meeting->from, &plan, start_ns, true) ||
			     breaks(engine, meeting, meeting->to, &plan, start_ns, false);
	if (meeting->is_broken)
		return;
	if (sim_comm_is_network(comm, meeting->from, meeting->to)) {
		sim_waits_pair(&send->edge, &plan, send, recv, true);
		sim_waits_pair(&recv->edge, &plan, send, recv, false);
	}
	send->meeting = recv->meeting = NULL;
	send->begin_ns = recv->begin_ns = start_ns;
	call_over(engine, send, start_ns + plan.longest_ns);
	call_over(engine, recv, start_ns + plan.longest_ns);
}

void sim_meet_post(struct sim_engine *engine, struct sim_launch *launch)
{
	struct sim_call *next;

	/* The last call of the launch ends it, and with it this list. */
	for (struct sim_call *call = launch->calls; call; call = next) {
		struct sim_meeting *meeting = call->meeting;

		next = call->next;
		if (++meeting->posted != meeting->expected || engine->status != OK)
			continue;
		if (meeting->is_pair)
			end_pair(engine, meeting);
		else
			end_collective(engine, meeting);
		if (!meeting->is_broken)
			meeting_free(engine, meeting_find(engine, meeting));
	}
}
