/*
 * Why a collective does not end, in the order in which one thing explains the others:
 *
 *	members whose process is dead or stopped
 *	members that have not called it (they may be held up elsewhere)
 *	members that called it and are in a Send or a Recv before it
 *	members that called it and whose GPU has not come to it (they may be held up elsewhere)
 *	all are in it: what the network and the channels show (hang_transfer.c)
 */
#include "common/op.h"
#include "doctor/hang_chain.h"

/* Without a hash nobody knows the members: one of the same job that is gone explains it best. */
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

/* Members that are gone or stopped. */
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
		/* It left before it died: nobody needs it here. */
		if (scene->seats[seat].comm->info.flags & COMM_FLAG_FINALIZED)
			continue;
		hang_end_of_rank(graph, c, seat);
		count++;
	}
	return count;
}

/* Nothing of its execution is shown, and calls do not say whether it hangs. */
static void not_judged(struct hang_graph *graph, uint32_t c, enum hang_note note)
{
	struct hang_end *end = hang_end_add(graph, VERDICT_BLIND, c, c, HANG_NOBODY);

	end->note = note;
	end->confidence = 0.3;
}

static uint32_t missing_members(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	const struct hang_meeting *meeting = &scene->meetings[c];
	size_t before = graph->end_count;
	uint32_t count = 0, behind = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];

		if (hang_has_issued(scene, seat, meeting))
			continue;
		count++;
		if (hang_held_elsewhere(graph, c, seat, HANG_EDGE_NOT_CALLED))
			continue;
		hang_end_of_rank(graph, c, seat);
		behind += !scene->seats[seat].is_over;
	}
	/* One rank that does not come is the exception. That the hosts of several stopped a call before those of the
	 * others is what a GPU does that hangs in something all of them called. */
	if (meeting->is_by_calls && behind > 1) {
		graph->end_count = before;
		not_judged(graph, c, HANG_NOTE_SEVERAL);
	}
	return count;
}

/* Is this collective open on a seat, behind its front? */
static bool is_queued(const struct hang_scene *scene, uint32_t seat,
		      const struct hang_meeting *meeting)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flights = hang_flights(scene, seat);

	for (size_t i = 0; i < of->flight_count; i++)
		if (&flights[i] > of->front && op_is_collective(flights[i].op.function) &&
		    flights[i].op.match == meeting->match &&
		    ((flights[i].op.flags & OP_FLAG_REPLAY) != 0) == meeting->is_replay &&
		    hang_is_open(scene, seat, i))
			return true;
	return false;
}

/* Members that are in a Send or a Recv of the same communicator first: they run in order. */
static uint32_t members_behind(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		const struct hang_seat *of = &scene->seats[seat];

		if (of->front == NULL || !of->is_pair || of->is_over ||
		    !is_queued(scene, seat, &scene->meetings[c]))
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

/* How far the members that can be seen have come: how many of them only called it, how many are inside. */
struct arrivals {
	uint32_t issued, launched, inside;
};

static struct arrivals survey(const struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	struct arrivals arrivals = { 0, 0, 0 };

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *of = &scene->seats[comm->seats[i]];

		if (!hang_is_in_meeting(scene, comm->seats[i], &scene->meetings[c]) || of->is_over)
			continue;
		arrivals.issued += of->presence == HANG_ISSUED;
		arrivals.launched += of->presence == HANG_LAUNCHED;
		arrivals.inside += of->presence >= HANG_UNSURE;
	}
	return arrivals;
}

/* All called it and NCCL launched it nowhere: nobody is behind the others. */
static uint32_t nobody_launched(struct hang_graph *graph, uint32_t c)
{
	struct hang_end *end;

	if (graph->scene->job->comms[c].missing > 0)
		return 0;
	end = hang_end_add(graph, VERDICT_NOT_LAUNCHED, c, c, HANG_NOBODY);
	end->note = HANG_NOTE_CONNECTING;
	end->confidence = 0.6;
	return 1;
}

/* Its GPU has not come to it, and no other operation holds it, as far as that is shown. */
static void add_waiting(struct hang_graph *graph, uint32_t c, uint32_t seat, bool is_any_inside)
{
	const struct hang_seat *of = &graph->scene->seats[seat];
	bool is_issued = of->presence == HANG_ISSUED;
	struct hang_end *end = hang_end_add(
		graph, is_issued ? VERDICT_NOT_LAUNCHED : VERDICT_GPU_NOT_REACHED, c, c, seat);

	end->confidence = is_any_inside ? 0.9 : 0.7;
	if (!is_issued && !hang_sees_kernels(graph->scene, seat, &of->front->op)) {
		end->note = HANG_NOTE_TRANSFERS;
		end->confidence = 0.8;
	}
}

/* Where kernels are not shown its GPU may also be in something called before of which nothing is shown. */
static bool is_held(struct hang_graph *graph, uint32_t c, uint32_t seat)
{
	return hang_held_elsewhere(graph, c, seat, HANG_EDGE_NOT_STARTED) ||
	       hang_held_before(graph, c, seat, graph->scene->seats[seat].front);
}

/* Called, and others are inside. Only where kernels are shown, or transfers show the same, does that mean something. Where nobody is
 * inside, GPUs compute, and only who waits in the call itself is behind. */
static uint32_t waiting_gpus(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	struct arrivals arrivals = survey(scene, c);
	uint32_t count = 0, held = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];
		const struct hang_seat *of = &scene->seats[seat];
		bool is_issued = of->presence == HANG_ISSUED;

		if (!hang_is_in_meeting(scene, seat, &scene->meetings[c]) || of->is_over ||
		    (!is_issued && (of->presence != HANG_LAUNCHED || arrivals.inside == 0)))
			continue;
		count++;
		if (is_held(graph, c, seat))
			held++;
		else if (arrivals.inside + arrivals.launched > 0)
			add_waiting(graph, c, seat, arrivals.inside > 0);
	}
	if (count > 0 && held == 0 && arrivals.inside + arrivals.launched == 0)
		return nobody_launched(graph, c);
	return count;
}

/* Others are in a later one, which this one has finished its part for, and are waited for there. */
static uint32_t missing_later(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	struct hang_meeting last = scene->meetings[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->presence == HANG_INSIDE && !seat->is_pair && !seat->is_over &&
		    ((seat->front->op.flags & OP_FLAG_REPLAY) != 0) == last.is_replay &&
		    seat->front->op.match > last.match && seat->in_ns >= scene->pause_ns)
			last.match = seat->front->op.match;
	}
	for (uint32_t i = 0; i < comm->seat_count && last.match > scene->meetings[c].match; i++) {
		uint32_t seat = comm->seats[i];

		if (scene->seats[seat].front != NULL || hang_has_issued(scene, seat, &last))
			continue;
		count++;
		if (!hang_held_elsewhere(graph, c, seat, HANG_EDGE_NOT_CALLED))
			hang_end_of_rank(graph, c, seat)->confidence = 0.6;
	}
	return count;
}

/* All called it, and of some nothing shows that their GPU has come to it: they may be in what they called before. */
static uint32_t held_before(struct hang_graph *graph, uint32_t c)
{
	const struct hang_scene *scene = graph->scene;
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (hang_is_in_meeting(scene, comm->seats[i], &scene->meetings[c]) &&
		    !scene->seats[comm->seats[i]].is_over)
			count += hang_held_before(graph, c, comm->seats[i],
						  scene->seats[comm->seats[i]].front);
	return count;
}

void hang_collective(struct hang_graph *graph, uint32_t c)
{
	if (graph->scene->meetings[c].unjudged != HANG_JUDGED && !graph->is_split[c]) {
		not_judged(graph, c, HANG_NOTE_NOT_JUDGED);
		held_before(graph, c);
		return;
	}
	if (gone_members(graph, c) > 0 || graph->is_split[c] || missing_members(graph, c) > 0)
		return;
	if (graph->scene->job->comms[c].hash != 0 &&
	    (members_behind(graph, c) + waiting_gpus(graph, c) > 0 || missing_later(graph, c) > 0))
		return;
	if (hang_links(graph, c) > 0 || held_before(graph, c) > 0)
		return;
	hang_transfer(graph, c);
}
