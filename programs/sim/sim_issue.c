/* A rank makes a call: NCCL's numbers and ours, what a mismatch changes, and what is launched. */
#include <stdlib.h>

#include "common/op.h"
#include "programs/sim/sim_engine.h"
#include "programs/sim/sim_random.h"

enum { CALL_NS = 9000, GROUPED_CALL_NS = 1500, LAUNCH_NS = 7000, AFTER_LAUNCH_NS = 6000 };

static uint64_t next_of_peer(struct sim_engine *engine, struct sim_stream *stream, int comm,
			     int peer, bool is_send)
{
	if (stream->peers == NULL) {
		size_t nranks = (size_t)engine->job->comms[comm].nranks;

		stream->peers = calloc(2 * nranks, sizeof(*stream->peers));
		if (stream->peers == NULL) {
			engine->status = ERR_NO_SPACE;
			return 1;
		}
	}
	return ++stream->peers[2 * peer + is_send];
}

/* Numbers and signature are given by the recorder's rules. */
static void number_call(struct sim_engine *engine, struct sim_call *call, int comm)
{
	struct sim_launch *launch = call->launch;
	struct sim_stream *stream = &engine->ranks[launch->rank].streams[launch->role];
	bool is_send = call->function == OP_SEND;

	call->number = ++stream->numbers;
	if (is_send || call->function == OP_RECV) {
		call->match = next_of_peer(engine, stream, comm, call->peer, is_send);
		return;
	}
	call->match = ++stream->collectives;
	call->nccl_sequence = stream->sequences[call->function]++;
	stream->signature = op_signature(stream->signature,
					 op_signature_name(OP_NAMES_FUNCTION, call->function),
					 op_signature_name(OP_NAMES_DATATYPE, call->datatype),
					 call->root == OP_NOBODY ? 0 : call->root, call->count);
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

/* The next in the first ring, so that nothing is passed on to it. */
static int other_root(const struct sim_engine *engine, const struct sim_launch *launch, int root)
{
	const struct sim_member *member = &engine->job->members[launch->rank][launch->role];
	int next = sim_comm_next(&engine->job->comms[member->comm], 0, member->rank);

	return next == root ? member->rank : next;
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

/* Does this rank make the one call that differs? */
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
	const struct sim_member *member = &engine->job->members[launch->rank][launch->role];
	struct sim_call *call = sim_meet_call_new(engine);
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
		const struct sim_comm *comm = &engine->job->comms[member->comm];
		int distance = function == OP_SEND ? peer - member->rank : member->rank - peer;

		call->peer = peer;
		call->channel =
			(uint8_t)((distance + comm->nranks) % comm->nranks % comm->channels);
	} else {
		make_mismatch(engine, call);
		if (is_rooted(call))
			call->root = step->peer;
		if (call->is_odd_one && call->odd == SIM_MISMATCH_ROOT)
			call->root = other_root(engine, launch, call->root);
	}
	number_call(engine, call, member->comm);
	sim_meet_issue(engine, call);
	return call;
}

/* As frameworks do it: for each peer a Send and a Recv. */
static void add_all_to_all(struct sim_engine *engine, struct sim_launch *launch,
			   const struct sim_step *step)
{
	struct sim_rank *rank = &engine->ranks[launch->rank];
	int comm = engine->job->members[launch->rank][launch->role].comm;

	for (int peer = 0; peer < engine->job->comms[comm].nranks; peer++) {
		if (add_call(engine, launch, step, OP_SEND, peer) == NULL)
			return;
		rank->host_ns += GROUPED_CALL_NS;
		if (add_call(engine, launch, step, OP_RECV, peer) == NULL)
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

struct sim_launch *sim_issue(struct sim_engine *engine, int rank_number,
			     const struct sim_step *step)
{
	const struct sim_member *member = &engine->job->members[rank_number][step->role];
	const struct sim_comm *comm = &engine->job->comms[member->comm];
	struct sim_rank *rank = &engine->ranks[rank_number];
	struct sim_launch *launch = sim_meet_launch_new(engine);

	if (launch == NULL)
		return NULL;
	launch->rank = rank_number;
	launch->role = step->role;
	link_launch(rank, launch);
	if (step->kind == SIM_ALL_TO_ALL)
		add_all_to_all(engine, launch, step);
	else if (step->function == OP_SEND || step->function == OP_RECV)
		add_call(engine, launch, step, step->function,
			 (member->rank + step->peer + comm->nranks) % comm->nranks);
	else
		add_call(engine, launch, step, step->function, OP_NOBODY);
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
