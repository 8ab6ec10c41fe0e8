#include "sim/sim_engine.h"
#include "sim/sim_engine_internal.h"

#include <stdlib.h>

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
		if (!outcome->is_over)
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
	};
	if (play->steps == 0)
		play->steps = 1;
	play->step_bytes = (uint32_t)(bytes / play->steps);
	/* A broadcast can end before its last rank has arrived. */
	if (outcome->is_over && play->end_ns > play->begin_ns)
		play->duration_ns = play->end_ns - play->begin_ns;
	set_edges(play, outcome);
	if (!outcome->is_over)
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
	int self = engine->job->members[launch->rank][launch->role].rank;
	uint64_t stops_ns[SIM_CHANNELS_MAX] = { 0 };
	struct sim_outcome outcome;

	/* The operations of one channel in a launch are one batch: they start and stop together. */
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
