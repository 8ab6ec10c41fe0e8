/*
 * Seats in a Send or a Recv. The k-th Send of A to B meets the k-th Recv of B from A, so of each open one
 * the counterpart is looked for at the peer: among its live slots, which keep the last calls.
 *
 *	not called there      the peer is in something else (an edge), or it is the end
 *	called, not started   its GPU is in something else (an edge), or it is the end
 *	both run              the network between them, or the GPU of one that does not produce
 */
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "doctor/hang_chain.h"

/* A seat that has thousands of them open waits for the same few peers. */
enum { PAIRS_MAX = 256 };

static uint8_t counterpart(uint8_t function)
{
	if (function == OP_SEND)
		return OP_RECV;
	return function == OP_RECV ? OP_SEND : function;
}

/* The peer's side of it. *latest: the highest number of that kind that is known there. */
static const struct recording_flight *find_counterpart(const struct hang_scene *scene,
						       uint32_t peer, const struct op_record *op,
						       int32_t me, uint64_t *latest)
{
	const struct recording_flight *flights = hang_flights(scene, peer), *found = NULL;
	uint8_t function = counterpart(op->function);

	*latest = 0;
	for (size_t i = 0; i < scene->seats[peer].flight_count; i++) {
		const struct op_record *other = &flights[i].op;

		if (other->function != function || other->peer != me ||
		    (other->flags & OP_FLAG_REPLAY) != (op->flags & OP_FLAG_REPLAY))
			continue;
		if (other->match > *latest)
			*latest = other->match;
		if (other->match == op->match)
			found = &flights[i];
	}
	return found;
}

static bool is_running(const struct hang_scene *scene, uint32_t seat,
		       const struct recording_flight *flight)
{
	bool sees_kernels = hang_sees_kernels(scene, seat, &flight->op);

	if (flight->op.state == OP_RUNNING)
		return flight->op.kernels_started > 0 || !sees_kernels;
	return flight->op.state == OP_LAUNCHED && !sees_kernels;
}

static const struct flight_wait *find_wait(const struct flight_wait *waits, size_t count,
					   enum flight_reason reason)
{
	for (size_t i = 0; i < count; i++)
		if (waits[i].reason == reason)
			return &waits[i];
	return NULL;
}

static bool is_on_the_wire(const struct recording_flight *sends)
{
	return sends->op.state == OP_DONE || hang_has_worked(sends);
}

/* Does the receiver wait for data? One that has not posted its receives is not ready, whatever the network does. */
static bool has_posted(struct hang_graph *graph, const struct recording_flight *receives)
{
	struct flight_wait *waits = NULL;
	size_t count = 0;
	bool has_any;

	if (flight_waits(receives->proxies, receives->proxy_count, &waits, &count) != OK)
		graph->status = ERR_NO_SPACE;
	has_any = find_wait(waits, count, FLIGHT_RECV_NET) != NULL;
	free(waits);
	return has_any;
}

/* Both run, and nothing comes: which side? `sender` and `sends` are the sending one. */
static void judge_running(struct hang_graph *graph, uint32_t node, uint32_t sender,
			  const struct recording_flight *sends, uint32_t receiver,
			  const struct recording_flight *receives)
{
	const struct flight_wait *wait;
	struct flight_wait *waits = NULL;
	struct hang_end *end;
	size_t count = 0;

	if (flight_waits(sends->proxies, sends->proxy_count, &waits, &count) != OK) {
		graph->status = ERR_NO_SPACE;
		return;
	}
	wait = find_wait(waits, count, FLIGHT_SEND_NET);
	if (wait == NULL && has_posted(graph, receives))
		wait = find_wait(waits, count, FLIGHT_SEND_PEER);
	end = hang_end_add(graph, VERDICT_STUCK, node, graph->scene->job->seats[sender].comm,
			   HANG_NOBODY);
	end->confidence = 0.3;
	end->peer_comm_rank = sends->op.peer;
	end->is_unsure =
		!is_on_the_wire(sends) && !hang_sees_kernels(graph->scene, sender, &sends->op);
	if (wait != NULL) {
		end->class = VERDICT_NETWORK_STUCK;
		end->note =
			wait->reason == FLIGHT_SEND_NET ? HANG_NOTE_BOTH_ENDS : HANG_NOTE_NOT_HEARD;
		end->confidence = wait->reason == FLIGHT_SEND_NET ? 0.9 : 0.6;
	} else if (find_wait(waits, count, FLIGHT_SEND_GPU) != NULL) {
		wait = find_wait(waits, count, FLIGHT_SEND_GPU);
		end->class = VERDICT_GPU_STUCK;
		end->confidence = 0.8;
	}
	if (wait != NULL) {
		end->seat = end->witness = sender;
		end->peer = receiver;
		end->flight = sends;
		end->since_ns = wait->since_ns;
		end->steps_done = wait->steps_done;
		end->steps = wait->steps;
		memcpy(end->channels, wait->channels, sizeof(end->channels));
	}
	free(waits);
}

static bool is_held_before(struct hang_graph *graph, uint32_t node, uint32_t seat,
			   const struct recording_flight *mine, uint32_t peer,
			   const struct recording_flight *theirs)
{
	bool is_held = hang_held_before(graph, node, seat, mine);

	if (theirs->op.state != OP_DONE)
		is_held |= hang_held_before(graph, node, peer, theirs);
	return is_held;
}

static void judge_called(struct hang_graph *graph, uint32_t node, uint32_t seat,
			 const struct recording_flight *mine, uint32_t peer,
			 const struct recording_flight *theirs)
{
	struct hang_end *end;

	if (theirs->op.state == OP_DONE || is_running(graph->scene, peer, theirs)) {
		bool is_recv = mine->op.function == OP_RECV;
		const struct recording_flight *sends = is_recv ? theirs : mine;

		/* Who shows no kernels may not have come to it. With data on the wire the sender has. */
		if (!is_on_the_wire(sends) && is_held_before(graph, node, seat, mine, peer, theirs))
			return;
		if (sends->proxy_count > 0 || hang_sees_kernels(graph->scene, seat, &mine->op))
			judge_running(graph, node, is_recv ? peer : seat, sends,
				      is_recv ? seat : peer, is_recv ? mine : theirs);
		return;
	}
	if (hang_held_elsewhere(graph, node, peer, HANG_EDGE_NOT_STARTED))
		return;
	end = hang_end_add(graph,
			   theirs->op.state == OP_ISSUED ? VERDICT_NOT_LAUNCHED
							 : VERDICT_GPU_NOT_REACHED,
			   node, graph->scene->job->seats[seat].comm, peer);
	end->note = HANG_NOTE_PEER;
	end->flight = mine;
	end->confidence = 0.85;
}

static void add_unseen(struct hang_graph *graph, uint32_t node, uint32_t seat,
		       const struct recording_flight *flight)
{
	const struct hang_scene *scene = graph->scene;
	bool is_silent = false;
	struct hang_end *end;

	for (size_t i = 0; scene->options && i < scene->options->source_count; i++)
		is_silent |= scene->options->sources[i].is_silent;
	end = hang_end_add(graph, is_silent ? VERDICT_AGENT_DEAD : VERDICT_UNSEEN, node,
			   scene->job->seats[seat].comm, HANG_NOBODY);
	end->peer_comm_rank = flight->op.peer;
	end->flight = flight;
	end->confidence = is_silent ? 0.7 : 0.6;
	if (hang_comm(scene, seat)->hash == 0) {
		end->class = VERDICT_STUCK;
		end->note = HANG_NOTE_NAMELESS;
		end->confidence = 0.3;
	}
}

/* Transfers were completed: the peer has called its half, whatever is left of that to be seen. */
static bool has_moved(const struct recording_flight *flight)
{
	for (size_t i = 0; i < flight->proxy_count; i++)
		if (flight->proxies[i].proxy.done > 0)
			return true;
	return false;
}

/* Of calls that are done the last few are kept. Where kernels do not show that this one runs, the peer's half may be
 * done and gone. */
static bool may_be_over(const struct hang_scene *scene, uint32_t peer,
			const struct recording_flight *flight)
{
	const struct hang_seat *of = &scene->seats[peer];

	return flight->op.match > 1 && !hang_sees_kernels(scene, peer, &flight->op) &&
	       of->comm->has_counts && of->comm->counts.issued > of->flight_count;
}

static void one_pair(struct hang_graph *graph, uint32_t node, uint32_t seat,
		     const struct recording_flight *flight)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;
	uint32_t peer = hang_member(hang_comm(scene, seat), job, flight->op.peer);
	const struct recording_flight *theirs;
	enum hang_life life;
	struct hang_end *end;
	uint64_t latest;

	if (peer == HANG_NOBODY && flight->op.peer >= 0) {
		add_unseen(graph, node, seat, flight);
		return;
	}
	if (peer == HANG_NOBODY) /* the peer never showed: hang_pair() says what is left */
		return;
	life = scene->processes[job->seats[peer].process].life;
	theirs = find_counterpart(scene, peer, &flight->op, job->seats[seat].comm_rank, &latest);
	if (life != HANG_RUNS) {
		end = hang_end_of_rank(graph, node, peer);
	} else if (theirs != NULL) {
		judge_called(graph, node, seat, flight, peer, theirs);
		return;
	} else if (latest > flight->op.match || flight->op.match == 0 || has_moved(flight) ||
		   (latest == 0 && may_be_over(scene, peer, flight))) {
		/* The peer is past it, or numbers say nothing. */
		end = hang_end_add(graph, VERDICT_STUCK, node, job->seats[seat].comm, HANG_NOBODY);
		end->peer_comm_rank = flight->op.peer;
		end->confidence = 0.3;
	} else if (hang_held_elsewhere(graph, node, peer, HANG_EDGE_NOT_CALLED)) {
		return;
	} else {
		end = hang_end_of_rank(graph, node, peer);
		end->confidence = latest > 0 ? 0.9 : 0.75;
	}
	end->note = end->note == HANG_NOTE_NONE ? HANG_NOTE_PEER : end->note;
	end->flight = flight;
}

/* Called, and its own GPU has not come to it. */
static bool is_waiting_gpu(struct hang_graph *graph, uint32_t node, uint32_t seat)
{
	const struct hang_scene *scene = graph->scene;
	bool is_issued = scene->seats[seat].presence == HANG_ISSUED;
	struct hang_end *end;

	if (!is_issued && scene->seats[seat].presence != HANG_LAUNCHED)
		return false;
	if (hang_held_elsewhere(graph, node, seat, HANG_EDGE_NOT_STARTED))
		return true;
	end = hang_end_add(graph, is_issued ? VERDICT_NOT_LAUNCHED : VERDICT_GPU_NOT_REACHED, node,
			   scene->job->seats[seat].comm, seat);
	end->confidence = 0.8;
	/* Before the launch NCCL connects to the peer and does not tell who that is. */
	if (is_issued && scene->seats[seat].front->op.peer < 0) {
		end->note = HANG_NOTE_CONNECTING;
		end->confidence = 0.6;
	}
	return true;
}

/* What a process shows that is stopped is old: it waits for nobody. Those that wait for it tell more. */
static bool is_stopped(struct hang_graph *graph, uint32_t node, uint32_t seat)
{
	const struct hang_scene *scene = graph->scene;

	if (scene->processes[scene->job->seats[seat].process].life == HANG_RUNS)
		return false;
	hang_end_of_rank(graph, node, seat)->confidence -= 0.01;
	return true;
}

/* The network has done its part: nothing is outstanding between the two. */
static bool is_transferred(const struct recording_flight *flight)
{
	for (size_t i = 0; i < flight->proxy_count; i++) {
		const struct recording_proxy *of = &flight->proxies[i];

		if (of->step_count > 0 || of->proxy.steps <= 0 ||
		    of->proxy.done < (uint32_t)of->proxy.steps)
			return false;
	}
	return flight->proxy_count > 0 && flight->op.kernels_started == 0;
}

/* Calls do not say whether it hangs; but for what was called before it. */
static void not_judged(struct hang_graph *graph, uint32_t node, uint32_t seat)
{
	struct hang_end *end = hang_end_add(graph, VERDICT_BLIND, node,
					    graph->scene->job->seats[seat].comm, HANG_NOBODY);

	end->note = HANG_NOTE_NOT_JUDGED;
	end->confidence = 0.3;
	hang_held_before(graph, node, seat, graph->scene->seats[seat].front);
}

void hang_pair(struct hang_graph *graph, uint32_t seat)
{
	const struct hang_scene *scene = graph->scene;
	const struct recording_flight *flights = hang_flights(scene, seat);
	uint32_t node = hang_seat_node(scene, seat);
	size_t before_edges = graph->edge_count, before_ends = graph->end_count, looked_at = 0;

	if (is_stopped(graph, node, seat) || is_waiting_gpu(graph, node, seat))
		return;
	if (scene->meetings[scene->job->seats[seat].comm].unjudged != HANG_JUDGED) {
		not_judged(graph, node, seat);
		return;
	}
	for (size_t i = 0; i < scene->seats[seat].flight_count && looked_at < PAIRS_MAX; i++) {
		const struct recording_flight *flight = &flights[i];

		if (flight < scene->seats[seat].front || !hang_is_open(scene, seat, i))
			continue;
		/* What comes behind a collective waits for that. */
		if (op_is_collective(flight->op.function))
			break;
		looked_at++;
		if (flight->op.peer != scene->job->seats[seat].comm_rank &&
		    is_running(scene, seat, flight) && !is_transferred(flight))
			one_pair(graph, node, seat, flight);
	}
	if (graph->edge_count != before_edges || graph->end_count != before_ends)
		return;
	/* Both halves were called, and nothing is shown of either. */
	if (scene->seats[seat].presence == HANG_UNSURE &&
	    scene->seats[seat].front->proxy_count == 0)
		not_judged(graph, node, seat);
	else
		hang_end_add(graph, VERDICT_STUCK, node, scene->job->seats[seat].comm, HANG_NOBODY)
			->confidence = 0.3;
}
