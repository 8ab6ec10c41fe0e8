/*
 * Ranks that made the same calls in another order, over two communicators. Each GPU runs what was called first and
 * waits there for the others, which wait in what they called first: a deadlock in which everybody has called
 * everything. Kernels would show who is in what; without them the order of the calls does.
 *
 *	rank 0 called   AllReduce 44 of world, then AllGather 72 of ep
 *	rank 1 called   AllGather 72 of ep, then AllReduce 44 of world
 *
 * Another order alone is harmless: streams may run side by side. So it is looked for only where all that these ranks
 * called last is stuck and nothing shows whether it has ended.
 */
#include <stdlib.h>

#include "common/op.h"
#include "doctor/hang_chain.h"

enum {
	CALLS = 16,		/* the last ones of a seat: what recorders keep in any case */
	COMPARISONS_MAX = 4096, /* of two ranks: a large job that hangs is like that everywhere */
};

/* A call that both ranks made, and when. */
struct shared_call {
	const struct recording_flight *one, *other;
	bool is_second; /* of the second communicator */
};

/* Two ranks on two communicators. */
struct shared_seats {
	uint32_t one[2], other[2]; /* seats of each rank, per communicator */
};

/* All ranks called the stuck operation, and kernel events do not show which of them are in it. */
static bool is_stuck_by_calls(const struct hang_scene *scene, uint32_t c)
{
	const struct hang_meeting *meeting = &scene->meetings[c];

	if (meeting->level != HANG_HANGS || meeting->unjudged == HANG_ALL_CALLED)
		return meeting->level == HANG_HANGS;
	return meeting->unjudged == HANG_JUDGED && meeting->is_collective &&
	       !hang_sees_kernels(scene, meeting->first, &scene->seats[meeting->first].front->op);
}

/* Does nothing show that a GPU has come to this one? */
static bool is_unsure(const struct hang_scene *scene, uint32_t seat, size_t i)
{
	const struct recording_flight *flight = &hang_flights(scene, seat)[i];
	enum flight_kind kind = hang_flight_kind(scene, seat, i);

	return kind == FLIGHT_UNSEEN || (kind == FLIGHT_OPEN && !hang_has_worked(flight) &&
					 !hang_sees_kernels(scene, seat, &flight->op));
}

/* The same call on the other rank; of a Send, its Recv. */
static const struct recording_flight *same_call(const struct hang_scene *scene, uint32_t seat,
						uint32_t other, const struct op_record *op)
{
	const struct recording_flight *flights = hang_flights(scene, other);
	uint8_t function = op->function == OP_SEND ? OP_RECV : OP_SEND;

	for (size_t i = scene->seats[other].flight_count; i-- > 0;) {
		const struct op_record *found = &flights[i].op;

		if (found->match != op->match || found->flags & OP_FLAG_REPLAY)
			continue;
		if (op_is_collective(op->function)) {
			if (found->function == op->function)
				return &flights[i];
		} else if (found->function == function &&
			   op->peer == scene->job->seats[other].comm_rank &&
			   found->peer == scene->job->seats[seat].comm_rank) {
			return &flights[i];
		}
	}
	return NULL;
}

static size_t take_calls(const struct hang_scene *scene, const struct shared_seats *seats,
			 unsigned int which, struct shared_call *calls)
{
	uint32_t s = seats->one[which];
	const struct recording_flight *flights = hang_flights(scene, s);
	size_t count = scene->seats[s].flight_count, taken = 0;

	for (size_t i = count > CALLS ? count - CALLS : 0; i < count; i++) {
		const struct op_record *op = &flights[i].op;
		const struct recording_flight *other;

		if (op->match == 0 || op->flags & (OP_FLAG_REPLAY | OP_FLAG_SELF) ||
		    !is_unsure(scene, s, i))
			continue;
		other = same_call(scene, s, seats->other[which], op);
		if (other != NULL)
			calls[taken++] = (struct shared_call){ &flights[i], other, which == 1 };
	}
	return taken;
}

/* Two calls on different communicators whose order differs; false: there are none. */
static bool find_crossing(const struct shared_call *calls, size_t count,
			  const struct shared_call **first, const struct shared_call **second)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			if (!calls[i].is_second && calls[j].is_second &&
			    hang_is_called_before(calls[i].one, calls[j].one) &&
			    hang_is_called_before(calls[j].other, calls[i].other)) {
				*first = &calls[i];
				*second = &calls[j];
				return true;
			}
	return false;
}

/* `seats` of one rank called the first before the second, of the other the other way round. */
static void add_crossing(struct hang_graph *graph, const struct shared_seats *seats,
			 const struct shared_call *first, const struct shared_call *second)
{
	const struct hang_scene *scene = graph->scene;
	uint32_t comm = scene->job->seats[seats->one[0]].comm;
	uint32_t there = hang_node_of_front(scene, seats->other[1]);

	hang_edge_add(graph, (struct hang_edge){ .from = comm,
						 .to = there,
						 .seat = seats->other[0],
						 .held_by = seats->other[1],
						 .kind = HANG_EDGE_CALLED_BEFORE,
						 .before = second->other,
						 .after = first->other });
	hang_edge_add(graph, (struct hang_edge){ .from = there,
						 .to = comm,
						 .seat = seats->one[1],
						 .held_by = seats->one[0],
						 .kind = HANG_EDGE_CALLED_BEFORE,
						 .before = first->one,
						 .after = second->one });
}

static void compare_orders(struct hang_graph *graph, const struct shared_seats *seats)
{
	struct shared_seats turned = { { seats->other[0], seats->other[1] },
				       { seats->one[0], seats->one[1] } };
	const struct shared_call *first, *second;
	struct shared_call calls[2 * CALLS];
	size_t count;

	for (int turn = 0; turn < 2; turn++) {
		const struct shared_seats *now = turn ? &turned : seats;

		count = take_calls(graph->scene, now, 0, calls);
		count += take_calls(graph->scene, now, 1, calls + count);
		if (find_crossing(calls, count, &first, &second)) {
			add_crossing(graph, now, first, second);
			return;
		}
	}
}

/* The seat of the same rank on another communicator; HANG_NOBODY: it is not there. */
static uint32_t seat_on(const struct job *job, uint32_t seat, uint32_t comm)
{
	const struct job_seat *of = &job->seats[seat];

	for (uint32_t s = job->first_seat[of->process]; s < job->first_seat[of->process + 1]; s++)
		if (job->seats[s].rank == of->rank && job->seats[s].comm == comm)
			return s;
	return HANG_NOBODY;
}

/* All ranks that are on both against the first of them. */
static void compare_comms(struct hang_graph *graph, uint32_t c, uint32_t d, uint32_t *budget)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;
	const struct job_comm *comm = &job->comms[d];
	struct shared_seats seats = { { HANG_NOBODY, HANG_NOBODY }, { 0, 0 } };

	for (uint32_t i = 0; i<comm->seat_count && * budget> 0; i++) {
		uint32_t there = seat_on(job, comm->seats[i], c);

		if (there == HANG_NOBODY || scene->seats[there].front == NULL ||
		    scene->seats[comm->seats[i]].front == NULL)
			continue;
		seats.other[0] = there;
		seats.other[1] = comm->seats[i];
		if (seats.one[0] == HANG_NOBODY) {
			seats.one[0] = seats.other[0];
			seats.one[1] = seats.other[1];
			continue;
		}
		(*budget)--;
		compare_orders(graph, &seats);
	}
}

void hang_orders(struct hang_graph *graph)
{
	const struct hang_scene *scene = graph->scene;
	const struct job *job = scene->job;
	uint32_t budget = COMPARISONS_MAX;

	for (uint32_t d = 0; d < job->comm_count && budget > 0; d++) {
		uint32_t seat;

		if (!is_stuck_by_calls(scene, d) || job->comms[d].seat_count < 2)
			continue;
		seat = job->comms[d].seats[0];
		for (uint32_t s = job->first_seat[job->seats[seat].process];
		     s < job->first_seat[job->seats[seat].process + 1]; s++) {
			uint32_t c = job->seats[s].comm;

			/* Where neither is all called, who has not called is the reason. */
			if (c >= d || !is_stuck_by_calls(scene, c) ||
			    (scene->meetings[c].unjudged != HANG_ALL_CALLED &&
			     scene->meetings[d].unjudged != HANG_ALL_CALLED))
				continue;
			/* The first one needs a node of its own. */
			if (scene->meetings[c].is_collective)
				compare_comms(graph, c, d, &budget);
			else if (scene->meetings[d].is_collective)
				compare_comms(graph, d, c, &budget);
		}
	}
}
