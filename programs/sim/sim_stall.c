/*
 * From how far the data got to what the recorder sees of it: which of the rules in sim_flow.c holds a
 * connection back tells the state its transfers are in.
 */
#include "programs/sim/sim_stall.h"

#include "common/op_layout.h"
#include "programs/sim/sim_flow.h"

enum { SEND_GPU = 0, SEND_PEER = 1, SEND_NET = 2, RECV_NET = 0, RECV_FLUSH = 1, RECV_GPU = 2 };

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void set_send_state(struct sim_edge *edge, const struct sim_flow *flow)
{
	edge->done = flow->arrived;
	edge->open = (uint8_t)least(SIM_WINDOW, flow->steps - flow->arrived);
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
		edge->open = (uint8_t)least(SIM_WINDOW, flow->arrived - flow->consumed);
	} else {
		edge->state = RECV_NET;
		edge->open = (uint8_t)least(SIM_WINDOW, flow->steps - flow->consumed);
	}
}

/* When it came to stand still: when the last of those who run had arrived. */
static uint64_t still_since(const struct sim_engine *engine, struct sim_meeting *meeting)
{
	uint64_t ns = 0;

	if (meeting->has_still)
		return meeting->still_ns;
	for (int i = 0; i < meeting->expected; i++)
		if (sim_flow_presence(engine, meeting, i) >= SIM_RUNNING && meeting->calls[i] &&
		    meeting->calls[i]->launch->start_ns > ns)
			ns = meeting->calls[i]->launch->start_ns;
	meeting->has_still = true;
	meeting->still_ns = ns;
	return ns;
}

/* The call whose message is the one that most ranks are in. */
static const struct sim_call *usual_call(const struct sim_meeting *meeting)
{
	const struct sim_call *odd = NULL;

	for (int i = 0; i < meeting->expected; i++) {
		if (meeting->calls[i] && !meeting->calls[i]->is_odd_one)
			return meeting->calls[i];
		if (meeting->calls[i])
			odd = meeting->calls[i];
	}
	return odd;
}

/* Would its kernel have started after its process stopped? Then nobody was there to see it. */
static bool is_late(const struct sim_engine *engine, const struct sim_launch *launch)
{
	return launch->start_ns > sim_job_gone_ns(engine->job, launch->rank);
}

static void fill_edge(const struct sim_engine *engine, const struct sim_call *call,
		      const struct sim_plan *plan, const struct sim_flow *flow,
		      struct sim_edge *edge)
{
	const struct sim_launch *launch = call->launch;
	const struct sim_stream *stream = &engine->ranks[launch->rank].streams[launch->role];
	uint64_t post_ns =
		launch->launch_ns > stream->free_ns ? launch->launch_ns : stream->free_ns;
	uint64_t since_ns = still_since(engine, call->meeting) + 20000;
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
	edge->bytes = edge->done * plan->step_bytes;
	if (edge->done == edge->steps) {
		edge->open = 0;
		edge->bytes = plan->link_bytes;
		edge->stop_ns = edge->since_ns + plan->longest_ns;
	} else if (engine->end_ns > edge->since_ns) {
		edge->wait_ns[edge->state] += edge->open * (engine->end_ns - edge->since_ns);
	}
}

static enum status stall_collective(struct sim_engine *engine, const struct sim_call *call,
				    struct sim_outcome *outcome)
{
	struct sim_meeting *meeting = call->meeting;
	const struct sim_comm *comm = &engine->job->comms[meeting->comm];
	uint64_t start_ns = call->launch->start_ns, since_ns = still_since(engine, meeting);
	int rank = engine->job->members[call->launch->rank][call->launch->role].rank;
	struct sim_plan plan;

	sim_meet_plan(engine, meeting, usual_call(meeting), since_ns ? since_ns : engine->end_ns,
		      &plan);
	if (meeting->progress == NULL && sim_flow_work_out(engine, meeting, &plan) != OK)
		return ERR_NO_SPACE;
	outcome->algorithm = plan.algorithm;
	outcome->protocol = plan.protocol;
	outcome->channels = plan.channels;
	outcome->begin_ns = since_ns;
	outcome->steps = plan.steps;
	outcome->step_bytes = plan.step_bytes;
	outcome->edge_count = sim_waits_edges(outcome->edges, comm, &plan, rank);
	for (int i = 0; i < outcome->edge_count; i++) {
		struct sim_edge *edge = &outcome->edges[i];
		struct sim_flow flow = sim_flow_edge(engine, meeting, &plan, edge->channel,
						     edge->is_send ? rank : edge->peer,
						     edge->is_send ? edge->peer : rank);

		fill_edge(engine, call, &plan, &flow, edge);
	}
	outcome->kernel_count = start_ns && !is_late(engine, call->launch) ? plan.channels : 0;
	for (int i = 0; i < outcome->kernel_count; i++) {
		bool is_over = !call->is_odd_one &&
			       sim_flow_is_channel_over(engine, meeting, &plan, i, rank);

		outcome->kernels[i] = (struct sim_kernel){
			.channel = (uint8_t)i,
			.start_ns = sim_outcome_kernel_start(start_ns, i),
			.stop_ns = is_over ? since_ns + plan.channel_ns[i] : 0,
		};
	}
	return OK;
}

/* A Send or Recv whose launch is not over; it may be over itself. */
static void stall_pair(struct sim_engine *engine, const struct sim_call *call,
		       struct sim_outcome *outcome)
{
	const struct sim_launch *launch = call->launch;
	const struct sim_member *member = &engine->job->members[launch->rank][launch->role];
	const struct sim_comm *comm = &engine->job->comms[member->comm];
	bool is_channel_done = true;
	uint64_t stop_ns = 0;

	for (const struct sim_call *other = launch->calls; other; other = other->next) {
		if (other->channel != call->channel || other->peer == member->rank)
			continue;
		is_channel_done = is_channel_done && other->is_over;
		if (other->end_ns > stop_ns)
			stop_ns = other->end_ns;
	}
	outcome->channels = 1;
	outcome->begin_ns = call->begin_ns;
	outcome->steps = call->edge.bytes ? call->edge.steps : 1;
	outcome->is_self = call->peer == member->rank;
	outcome->is_over = call->is_over && (outcome->is_self || is_channel_done);
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
	} else if (sim_comm_is_network(comm, member->rank, call->peer)) {
		struct sim_plan plan;
		struct sim_flow flow;

		sim_meet_plan_pair(engine, call->meeting, call, engine->end_ns, &plan);
		flow = sim_flow_pair(engine, call->meeting, &plan);
		outcome->steps = plan.steps;
		outcome->step_bytes = plan.step_bytes;
		outcome->edge_count = 1;
		outcome->edges[0] = (struct sim_edge){ .channel = call->channel,
						       .peer = call->peer,
						       .is_send = call->function == OP_SEND,
						       .steps = plan.steps };
		fill_edge(engine, call, &plan, &flow, &outcome->edges[0]);
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
