#include "programs/sim/sim_outcome.h"

#include "programs/sim/sim_score.h"
#include "programs/sim/sim_stall.h"
#include "programs/sim/sim_trace.h"

static void hand_on(struct sim_engine *engine, const struct sim_outcome *outcome)
{
	enum status status = OK;

	if (engine->trace)
		status = sim_trace_add(engine->trace, engine, outcome);
	if (engine->score && status == OK)
		status = sim_score_add(engine->score, outcome);
	if (status != OK && engine->status == OK)
		engine->status = status;
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

void sim_outcome_collective(struct sim_engine *engine, const struct sim_meeting *meeting,
			    const struct sim_plan *plan, const struct sim_arrivals *arrivals,
			    int rank, uint64_t end_ns)
{
	struct sim_outcome outcome;

	outcome.call = meeting->calls[rank];
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
		sim_waits_collective(outcome.edges, engine->job, meeting, plan, arrivals, rank);
	hand_on(engine, &outcome);
}

void sim_outcome_odd(struct sim_engine *engine, const struct sim_meeting *meeting,
		     const struct sim_plan *plan, const struct sim_arrivals *arrivals, int rank)
{
	struct sim_plan half = *plan;

	half.steps = (plan->steps + 1) / 2;
	half.link_bytes = plan->link_bytes / 2;
	half.longest_ns = plan->longest_ns / 2;
	for (int i = 0; i < half.channels; i++)
		half.channel_ns[i] = plan->channel_ns[i] / 2;
	sim_outcome_collective(engine, meeting, &half, arrivals, rank,
			       arrivals->last_ns + half.longest_ns);
}

void sim_outcome_pairs(struct sim_engine *engine, const struct sim_launch *launch)
{
	int self = engine->job->members[launch->rank][launch->role].rank;
	uint64_t stops_ns[SIM_CHANNELS_MAX] = { 0 };
	struct sim_outcome outcome;

	/* What one channel does in a launch is one batch: it starts and stops together. */
	for (const struct sim_call *call = launch->calls; call; call = call->next)
		if (call->peer != self && call->end_ns > stops_ns[call->channel])
			stops_ns[call->channel] = call->end_ns;
	for (const struct sim_call *call = launch->calls; call; call = call->next) {
		outcome.call = call;
		outcome.algorithm = OP_ALGORITHM_UNKNOWN;
		outcome.protocol = OP_PROTOCOL_UNKNOWN;
		outcome.channels = 1;
		outcome.is_over = true;
		outcome.is_self = call->peer == self;
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
		hand_on(engine, &outcome);
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
			hand_on(engine, &outcome);
			if (engine->status != OK)
				return engine->status;
		}
	return OK;
}
