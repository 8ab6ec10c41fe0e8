/*
 * Seats in a Send or a Recv. The k-th Send of A to B matches the k-th Recv of B from A, so for each open
 * one the counterpart is looked up at the peer, in its live slots, which keep the last calls.
 *
 *	not called there      the peer is in something else (an edge), or it is the end
 *	called, not started   its GPU is in something else (an edge), or it is the end
 *	both run              the network between them, or the GPU that produces nothing
 */
#include "doctor/hang_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/op.h"

/* A seat with thousands of them open waits for the same few peers. */
enum { PAIRS_MAX = 256 };

static uint8_t counterpart(uint8_t function)
{
	if (function == OP_SEND)
		return OP_RECV;
	return function == OP_RECV ? OP_SEND : function;
}

/* The peer's side of it. *latest: the highest known number of that kind there. */
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
	return (flight->op.state == OP_RUNNING || flight->op.state == OP_LAUNCHED) &&
	       hang_gpu(scene, seat, flight) != HANG_GPU_NOT_REACHED;
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

/* The data has arrived, and the receiver's GPU does not consume it. */
static void receiver_stuck(struct hang_graph *graph, struct hang_end *end, uint32_t sender,
			   uint32_t receiver, const struct recording_flight *receives,
			   const struct flight_wait *wait)
{
	end->class = VERDICT_GPU_STUCK;
	end->confidence = 0.8;
	end->seat = end->witness = receiver;
	end->peer = sender;
	end->peer_comm_rank = receives->op.peer;
	end->flight = receives;
	end->is_unsure = hang_gpu(graph->scene, receiver, receives) == HANG_GPU_UNKNOWN;
	end->since_ns = wait->since_ns;
	end->steps_done = wait->steps_done;
	end->steps = wait->steps;
	memcpy(end->channels, wait->channels, sizeof(end->channels));
}

/* Both run, and no data arrives: which side? `sender` and `sends` are the sending one. */
static void judge_running(struct hang_graph *graph, uint32_t node, uint32_t sender,
			  const struct recording_flight *sends, uint32_t receiver,
			  const struct recording_flight *receives)
{
	const struct flight_wait *wait, *unread;
	struct flight_wait *waits = NULL, *theirs = NULL;
	struct hang_end *end;
	size_t count = 0, their_count = 0;

	if (flight_waits(sends->proxies, sends->proxy_count, &waits, &count) != OK ||
	    flight_waits(receives->proxies, receives->proxy_count, &theirs, &their_count) != OK) {
		graph->status = ERR_NO_SPACE;
		free(waits);
		return;
	}
	wait = find_wait(waits, count, FLIGHT_SEND_NET);
	/* A receiver that has not posted its receives is not ready, whatever the network does. */
	if (wait == NULL && find_wait(theirs, their_count, FLIGHT_RECV_NET) != NULL)
		wait = find_wait(waits, count, FLIGHT_SEND_PEER);
	unread = find_wait(theirs, their_count, FLIGHT_RECV_GPU);
	/* Its GPU may be in something that it called before. */
	if (wait == NULL && unread != NULL && !hang_has_worked(receives) &&
	    hang_held_before(graph, node, receiver, receives)) {
		free(waits);
		free(theirs);
		return;
	}
	end = hang_end_add(graph, VERDICT_STUCK, node, graph->scene->job->seats[sender].comm,
			   HANG_NOBODY);
	end->confidence = 0.3;
	end->peer_comm_rank = sends->op.peer;
	end->is_unsure = hang_gpu(graph->scene, sender, sends) == HANG_GPU_UNKNOWN;
	if (wait != NULL) {
		end->class = VERDICT_NETWORK_STUCK;
		end->note =
			wait->reason == FLIGHT_SEND_NET ? HANG_NOTE_BOTH_ENDS : HANG_NOTE_NOT_HEARD;
		end->confidence = wait->reason == FLIGHT_SEND_NET ? 0.9 : 0.6;
	} else if (find_wait(waits, count, FLIGHT_SEND_GPU) != NULL) {
		wait = find_wait(waits, count, FLIGHT_SEND_GPU);
		end->class = VERDICT_GPU_STUCK;
		end->confidence = 0.8;
	} else if (unread != NULL) {
		receiver_stuck(graph, end, sender, receiver, receives, unread);
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
	free(theirs);
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

/* Is the GPU in this operation, or may it be? Transfers that are open say that it is not over. */
static bool may_be_inside(const struct hang_scene *scene, uint32_t seat,
			  const struct recording_flight *flight)
{
	enum hang_gpu gpu = hang_gpu(scene, seat, flight);

	return gpu == HANG_GPU_REACHED ||
	       (gpu == HANG_GPU_UNKNOWN && flight->proxy_count > 0 && flight->open_children > 0);
}

/* Its GPU is still in an earlier launch of this communicator, so it waits for what that waits for. */
static bool is_behind_own_launch(struct hang_graph *graph, uint32_t node, uint32_t seat,
				 const struct recording_flight *flight)
{
	const struct hang_scene *scene = graph->scene;
	const struct recording_flight *flights = hang_flights(scene, seat);
	uint32_t to = hang_seat_node(scene, seat);

	for (size_t i = 0; i < scene->seats[seat].flight_count; i++) {
		if (flights[i].op.state == OP_DONE || flights[i].op.comm != flight->op.comm ||
		    !hang_is_called_before(&flights[i], flight) ||
		    !may_be_inside(scene, seat, &flights[i]))
			continue;
		if (to != node)
			hang_edge_add(graph, (struct hang_edge){ .from = node,
								 .to = to,
								 .seat = seat,
								 .held_by = seat,
								 .kind = HANG_EDGE_NOT_STARTED });
		return true;
	}
	return false;
}

static void judge_called(struct hang_graph *graph, uint32_t node, uint32_t seat,
			 const struct recording_flight *mine, uint32_t peer,
			 const struct recording_flight *theirs)
{
	struct hang_end *end;

	if (theirs->op.state == OP_DONE || is_running(graph->scene, peer, theirs)) {
		bool is_recv = mine->op.function == OP_RECV;
		const struct recording_flight *sends = is_recv ? theirs : mine;

		/* Without kernel events a side may not have started. With data on the wire the sender has. */
		if (!is_on_the_wire(sends) && is_held_before(graph, node, seat, mine, peer, theirs))
			return;
		if (sends->proxy_count > 0 ||
		    hang_gpu(graph->scene, seat, mine) != HANG_GPU_UNKNOWN)
			judge_running(graph, node, is_recv ? peer : seat, sends,
				      is_recv ? seat : peer, is_recv ? mine : theirs);
		return;
	}
	if (hang_held_elsewhere(graph, node, peer, HANG_EDGE_NOT_STARTED) ||
	    is_behind_own_launch(graph, node, peer, theirs))
		return;
	end = hang_end_add(graph,
			   theirs->op.state == OP_ISSUED ? VERDICT_NOT_LAUNCHED
							 : VERDICT_GPU_NOT_REACHED,
			   node, graph->scene->job->seats[seat].comm, peer);
	end->note = HANG_NOTE_PEER;
	end->flight = theirs;
	end->witness = peer;
	end->confidence = 0.85;
}

static void pair_unseen(struct hang_graph *graph, uint32_t node, uint32_t seat,
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

/* Transfers were completed: the peer has called its half, even if that is no longer recorded. */
static bool has_moved(const struct recording_flight *flight)
{
	for (size_t i = 0; i < flight->proxy_count; i++)
		if (flight->proxies[i].proxy.done > 0)
			return true;
	return false;
}

static bool has_finished_calls(const struct hang_scene *scene, uint32_t seat)
{
	const struct recording_flight *flights = hang_flights(scene, seat);

	for (size_t i = 0; i < scene->seats[seat].flight_count; i++)
		if (flights[i].op.state == OP_DONE)
			return true;
	return false;
}

/* Only the last few finished calls are kept, so the peer's half may have finished and been dropped: if kernels do
 * not show that this one runs, or if none of the peer's finished calls was kept. */
static bool may_be_over(const struct hang_scene *scene, uint32_t peer,
			const struct recording_flight *flight)
{
	const struct hang_seat *of = &scene->seats[peer];

	return flight->op.match > 1 && of->comm->has_counts &&
	       of->comm->counts.issued > of->flight_count &&
	       (!hang_sees_kernels(scene, peer, &flight->op) || !has_finished_calls(scene, peer));
}

static void one_pair(struct hang_graph *graph, uint32_t node, uint32_t seat,
		     const struct recording_flight *flight)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;
	uint32_t peer = job_member(job, hang_comm(scene, seat), flight->op.peer);
	const struct recording_flight *theirs;
	enum hang_life life;
	struct hang_end *end;
	uint64_t latest;

	if (peer == HANG_NOBODY && flight->op.peer >= 0) {
		pair_unseen(graph, node, seat, flight);
		return;
	}
	if (peer == HANG_NOBODY) /* the peer was never reported: hang_pair() handles what is left */
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
		/* The peer is past it, or numbers are not conclusive. */
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

/* Called, and its own GPU has not started it. */
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
	/* Before the launch NCCL connects to the peer and does not report it. */
	if (is_issued && scene->seats[seat].front->op.peer < 0) {
		end->note = HANG_NOTE_CONNECTING;
		end->confidence = 0.6;
	}
	return true;
}

/* The state of a stopped process is old: it waits for no rank. Those that wait for it are better evidence. */
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

/* Calls do not show whether it hangs, except for what was called before it. */
static void pair_not_judged(struct hang_graph *graph, uint32_t node, uint32_t seat)
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
	const struct recording_flight *flights = hang_flights(scene, seat), *first = NULL;
	uint32_t node = hang_seat_node(scene, seat);
	size_t before_edges = graph->edge_count, before_ends = graph->end_count, looked_at = 0;

	if (is_stopped(graph, node, seat) || is_waiting_gpu(graph, node, seat))
		return;
	if (scene->matches[scene->job->seats[seat].comm].unjudged != HANG_JUDGED) {
		pair_not_judged(graph, node, seat);
		return;
	}
	for (size_t i = 0; i < scene->seats[seat].flight_count && looked_at < PAIRS_MAX; i++) {
		const struct recording_flight *flight = &flights[i];

		if (flight < scene->seats[seat].front || !hang_is_open(scene, seat, i))
			continue;
		/* Whatever follows a collective waits for it. */
		if (op_is_collective(flight->op.function))
			break;
		looked_at++;
		if (flight->op.peer == scene->job->seats[seat].comm_rank ||
		    !is_running(scene, seat, flight) || is_transferred(flight))
			continue;
		/* Those of a later launch wait for the ones before them. */
		if (first != NULL && hang_is_called_before(first, flight))
			break;
		first = first ? first : flight;
		one_pair(graph, node, seat, flight);
	}
	if (graph->edge_count != before_edges || graph->end_count != before_ends)
		return;
	/* Both halves were called, and nothing is recorded of either. */
	if (scene->seats[seat].presence == HANG_UNSURE &&
	    scene->seats[seat].front->proxy_count == 0)
		pair_not_judged(graph, node, seat);
	else
		hang_end_add(graph, VERDICT_STUCK, node, scene->job->seats[seat].comm, HANG_NOBODY)
			->confidence = 0.3;
}

/*
 * Why a collective does not end, ordered so that each cause explains the ones below it:
 *
 *	ranks whose process is dead or stopped
 *	ranks that have not called it (they may be held up elsewhere)
 *	ranks that called it and are in a Send or a Recv before it
 *	ranks that called it and whose GPU has not started it (they may be held up elsewhere)
 *	all are in it: what the network and the channels show (hang_transfer.c)
 */

/* Without a hash the ranks of a communicator are unknown: a process of the same job that is gone explains
 * it best. */
static uint32_t gone_of_job(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;
	uint32_t process = job->seats[job->comms[c].seats[0]].process;
	uint32_t gone = scene->processes[scene->processes[process].component].gone;
	struct hang_end *end;

	if (gone == HANG_NOBODY || job->first_seat[gone] == job->first_seat[gone + 1])
		return 0;
	end = hang_end_of_rank(graph, c, job->first_seat[gone]);
	end->comm = c;
	end->note = HANG_NOTE_NAMELESS;
	end->confidence *= 0.8;
	return 1;
}

/* Its process exited while this call was unfinished; 0: it did not, or that is unknown. */
static double has_exited_in(const struct hang_scene *scene, uint32_t seat, uint64_t match,
			    bool is_replay)
{
	const struct recording_flight *flights = hang_flights(scene, seat);
	const struct hang_seat *of = &scene->seats[seat];

	if (scene->processes[scene->job->seats[seat].process].life != HANG_ENDED ||
	    of->comm->info.flags & COMM_FLAG_FINALIZED)
		return 0;
	for (size_t i = 0; i < of->flight_count; i++) {
		const struct op_record *op = &flights[i].op;

		if (!op_is_collective(op->function) || op->match != match ||
		    ((op->flags & OP_FLAG_REPLAY) != 0) != is_replay)
			continue;
		if (hang_flight_kind(scene, seat, i) == FLIGHT_OPEN)
			return 0.95;
		/* Its end would not show, but nothing came after it. */
		return hang_flight_kind(scene, seat, i) == FLIGHT_UNSEEN &&
				       i + 1 == of->flight_count
			       ? 0.75
			       : 0;
	}
	/* At its end a recorder counts what it leaves unfinished. */
	return !is_replay && of->comm->has_counts && of->comm->counts.abandoned > 0 &&
			       of->comm->counts.collectives >= match
		       ? 0.9
		       : 0;
}

/* Ranks whose process exited in the middle of it. Without kernel events all may have ended with it: not judged. */
static uint32_t exited_members(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	const struct hang_match *match = &scene->matches[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count && !match->is_by_calls; i++) {
		double confidence =
			has_exited_in(scene, comm->seats[i], match->match, match->is_replay);

		if (confidence == 0)
			continue;
		hang_end_add(graph, VERDICT_PROCESS_DEAD, c, c, comm->seats[i])->confidence =
			confidence;
		count++;
	}
	return count;
}

/* Ranks that are gone or stopped. */
static uint32_t gone_members(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	if (comm->hash == 0)
		return gone_of_job(graph, c);
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		enum hang_life life = scene->processes[scene->job->seats[seat].process].life;

		if (life != HANG_DEAD && life != HANG_STOPPED)
			continue;
		/* It left before it died and is not needed here. */
		if (scene->seats[seat].comm->info.flags & COMM_FLAG_FINALIZED)
			continue;
		hang_end_of_rank(graph, c, seat);
		count++;
	}
	return count;
}

/* No rank is at fault, as far as can be seen. */
static void end_without_rank(struct hang_graph *graph, uint32_t c, enum verdict_class class,
			     enum hang_note note, double confidence)
{
	struct hang_end *end = hang_end_add(graph, class, c, c, HANG_NOBODY);

	end->note = note;
	end->confidence = confidence;
}

static uint32_t missing_members(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	const struct hang_match *match = &scene->matches[c];
	size_t before = graph->end_count;
	uint32_t count = 0, behind = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];

		if (hang_has_issued(scene, seat, match))
			continue;
		count++;
		if (hang_held_elsewhere(graph, c, seat, HANG_EDGE_NOT_CALLED))
			continue;
		hang_end_of_rank(graph, c, seat);
		behind += !scene->seats[seat].is_over;
	}
	/* One missing rank is the exception. If several hosts stopped one call earlier than the others, a
	 * GPU may hang in something all of them called. */
	if (match->is_by_calls && behind > 1) {
		graph->end_count = before;
		end_without_rank(graph, c, VERDICT_BLIND, HANG_NOTE_SEVERAL, 0.3);
	}
	return count;
}

/* Is this collective open on a seat, after its front? */
static bool is_queued(const struct hang_scene *scene, uint32_t seat, const struct hang_match *match)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flights = hang_flights(scene, seat);

	for (size_t i = 0; i < of->flight_count; i++)
		if (&flights[i] > of->front && op_is_collective(flights[i].op.function) &&
		    flights[i].op.match == match->match &&
		    ((flights[i].op.flags & OP_FLAG_REPLAY) != 0) == match->is_replay &&
		    hang_is_open(scene, seat, i))
			return true;
	return false;
}

/* Ranks that are in a Send or a Recv of the same communicator first: they run in order. */
static uint32_t members_behind(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		const struct hang_seat *of = &scene->seats[seat];

		if (of->front == NULL || !of->is_pair || of->is_over ||
		    !is_queued(scene, seat, &scene->matches[c]))
			continue;
		count++;
		hang_edge_add(graph, (struct hang_edge){ .from = c,
							 .to = hang_seat_node(scene, seat),
							 .seat = seat,
							 .held_by = seat,
							 .kind = HANG_EDGE_NOT_STARTED });
	}
	return count;
}

/* How far the visible ranks are: how many of them only called it, how many are inside; of how many GPUs this is
 * unknown. */
struct arrivals {
	uint32_t issued, launched, inside, unknown;
};

static struct arrivals survey_arrivals(const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	struct arrivals arrivals = { 0, 0, 0, 0 };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *of = &scene->seats[comm->seats[i]];

		if (!hang_is_in_match(scene, comm->seats[i], &scene->matches[c]) || of->is_over)
			continue;
		arrivals.issued += of->presence == HANG_ISSUED;
		arrivals.launched += of->presence == HANG_LAUNCHED;
		arrivals.inside += of->presence >= HANG_UNSURE && !of->is_by_calls;
		arrivals.unknown += of->is_by_calls;
	}
	return arrivals;
}

/* Its GPU has not started it, and no other recorded operation holds it up. */
static void add_waiting(struct hang_graph *graph, uint32_t c, uint32_t seat,
			const struct arrivals *arrivals)
{
	const struct hang_seat *of = &graph->scene->seats[seat];
	bool is_issued = of->presence == HANG_ISSUED;
	struct hang_end *end = hang_end_add(
		graph, is_issued ? VERDICT_NOT_LAUNCHED : VERDICT_GPU_NOT_REACHED, c, c, seat);

	end->confidence = arrivals->inside > 0 || (is_issued && arrivals->unknown > 0) ? 0.9 : 0.7;
	if (is_issued || hang_sees_kernels(graph->scene, seat, &of->front->op))
		return;
	end->note =
		of->front->op.flags & OP_FLAG_SEEN_OPEN ? HANG_NOTE_LAUNCH : HANG_NOTE_TRANSFERS;
	if (end->note == HANG_NOTE_TRANSFERS)
		end->confidence = 0.8;
	/* A GPU of which nothing is known may be behind, too. */
	else if (arrivals->unknown > 0)
		end->confidence = 0.75;
}

/* Without kernel events its GPU may also be in an earlier call that is not recorded. */
static bool is_held(struct hang_graph *graph, uint32_t c, uint32_t seat)
{
	return hang_held_elsewhere(graph, c, seat, HANG_EDGE_NOT_STARTED) ||
	       hang_held_before(graph, c, seat, graph->scene->seats[seat].front);
}

/* Called, and others are inside. This is conclusive only if kernels or launches are recorded, or transfers show the
 * same. If no rank is inside, GPUs compute, and only a rank that waits in the call itself is behind. */
static uint32_t waiting_gpus(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	struct arrivals arrivals = survey_arrivals(scene, c);
	uint32_t count = 0, held = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		const struct hang_seat *of = &scene->seats[seat];
		bool is_issued = of->presence == HANG_ISSUED;

		if (!hang_is_in_match(scene, seat, &scene->matches[c]) || of->is_over ||
		    (!is_issued && (of->presence != HANG_LAUNCHED || arrivals.inside == 0)))
			continue;
		count++;
		if (is_held(graph, c, seat))
			held++;
		else if (arrivals.inside + arrivals.unknown + arrivals.launched > 0)
			add_waiting(graph, c, seat, &arrivals);
	}
	if (count == 0 || held > 0 || arrivals.inside + arrivals.unknown + arrivals.launched > 0)
		return count;
	/* All ranks called it and NCCL launched it on none: no rank is behind the others. */
	if (comm->missing > 0)
		return 0;
	end_without_rank(graph, c, VERDICT_NOT_LAUNCHED, HANG_NOTE_CONNECTING, 0.6);
	return 1;
}

/* Others are in a later one, after this one has finished its part, and wait there. */
static uint32_t missing_later(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	struct hang_match last = scene->matches[c];
	uint32_t count = 0, witness = HANG_NOBODY;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->presence == HANG_INSIDE && !seat->is_pair && !seat->is_over &&
		    ((seat->front->op.flags & OP_FLAG_REPLAY) != 0) == last.is_replay &&
		    seat->front->op.match > last.match && seat->in_ns >= scene->pause_ns) {
			last.match = seat->front->op.match;
			witness = comm->seats[i];
		}
	}
	for (uint32_t i = 0; i < comm->seat_count && witness != HANG_NOBODY; i++) {
		uint32_t seat = comm->seats[i];
		struct hang_end *end;

		if (scene->seats[seat].front != NULL || hang_has_issued(scene, seat, &last))
			continue;
		count++;
		if (hang_held_elsewhere(graph, c, seat, HANG_EDGE_NOT_CALLED))
			continue;
		end = hang_end_of_rank(graph, c, seat);
		end->witness = witness;
		end->flight = scene->seats[witness].front;
		end->confidence = 0.6;
	}
	return count;
}

/* All ranks called it, and for some nothing shows that their GPU has started it: they may be in an earlier
 * call. */
static uint32_t held_before(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (hang_is_in_match(scene, comm->seats[i], &scene->matches[c]) &&
		    !scene->seats[comm->seats[i]].is_over)
			count += hang_held_before(graph, c, comm->seats[i],
						  scene->seats[comm->seats[i]].front);
	return count;
}

void hang_collective(struct hang_graph *graph, uint32_t c)
{
	/* Its execution is not recorded, and calls do not show whether it hangs. */
	if (graph->scene->matches[c].unjudged != HANG_JUDGED && !graph->is_split[c]) {
		if (graph->scene->matches[c].is_overdue)
			end_without_rank(graph, c, VERDICT_STUCK, HANG_NOTE_NONE_STARTED, 0.5);
		else
			end_without_rank(graph, c, VERDICT_BLIND, HANG_NOTE_NOT_JUDGED, 0.3);
		held_before(graph, c);
		return;
	}
	if (gone_members(graph, c) + exited_members(graph, c) > 0 || graph->is_split[c] ||
	    missing_members(graph, c) > 0)
		return;
	if (graph->scene->job->comms[c].hash != 0 &&
	    (members_behind(graph, c) + waiting_gpus(graph, c) > 0 || missing_later(graph, c) > 0))
		return;
	if (hang_links(graph, c) > 0 || held_before(graph, c) > 0)
		return;
	hang_transfer(graph, c);
}
