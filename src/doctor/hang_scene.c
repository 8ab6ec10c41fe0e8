/*
 * What each seat is in. NCCL runs the operations of a communicator in order, so a seat is in its first open
 * one, its front. That a call was made says little: hosts run ahead of their GPUs. That others are inside,
 * for long, and nothing of their communicator moves: that is standing still.
 */
#include "doctor/hang_scene.h"

#include <stdlib.h>

#include "op/op_bytes.h"

#define HANG_DEFAULT_NS (20 * HANG_SECOND_NS)

enum { LAUNCH_MAX = 4096 }; /* Sends and Recvs that may be launched together */

const struct recording_process *hang_process(const struct hang_scene *scene, uint32_t seat)
{
	return scene->job->recording->processes[scene->job->seats[seat].process];
}

const struct job_rank *hang_rank(const struct hang_scene *scene, uint32_t seat)
{
	return &scene->job->ranks[scene->job->seats[seat].rank];
}

const struct job_comm *hang_comm(const struct hang_scene *scene, uint32_t seat)
{
	return &scene->job->comms[scene->job->seats[seat].comm];
}

const struct recording_flight *hang_flights(const struct hang_scene *scene, uint32_t seat)
{
	const struct hang_seat *of = &scene->seats[seat];

	return of->flight_count > 0 ? hang_process(scene, seat)->flights + of->first_flight : NULL;
}

bool hang_is_past(const struct hang_scene *scene, const struct job_comm *comm)
{
	return scene->processes[scene->job->seats[comm->seats[0]].process].is_past;
}

uint64_t hang_ago(const struct hang_scene *scene, uint32_t process, uint64_t ns)
{
	const struct hang_process *of = &scene->processes[process];

	if (ns == 0 || of->now_ns < ns)
		return ns == 0 ? 0 : of->lag_ns;
	return of->now_ns - ns + of->lag_ns;
}

uint64_t hang_wall(const struct hang_scene *scene, uint32_t process, uint64_t ns)
{
	uint64_t wall_ns;

	if (ns == 0 || !recording_wall_ns(scene->job->recording->processes[process], ns, &wall_ns))
		return 0;
	return wall_ns;
}

uint32_t hang_member(const struct job_comm *comm, const struct job *job, int32_t comm_rank)
{
	uint32_t from = 0, to = comm->seat_count;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (job->seats[comm->seats[middle]].comm_rank < comm_rank)
			from = middle + 1;
		else
			to = middle;
	}
	if (comm_rank < 0 || from == comm->seat_count ||
	    job->seats[comm->seats[from]].comm_rank != comm_rank)
		return HANG_NOBODY;
	return comm->seats[from];
}

bool hang_has_issued(const struct hang_scene *scene, uint32_t seat,
		     const struct hang_meeting *meeting)
{
	const struct recording_comm *comm = scene->seats[seat].comm;

	if (!comm->has_counts || comm->is_unplaced)
		return true;
	return (meeting->is_replay ? comm->counts.replays : comm->counts.collectives) >=
	       meeting->match;
}

bool hang_sees_kernels(const struct hang_scene *scene, uint32_t seat)
{
	return scene->shows[scene->job->seats[seat].comm] & COMM_FLAG_SEES_KERNELS;
}

static bool is_replay(const struct recording_flight *flight)
{
	return (flight->op.flags & OP_FLAG_REPLAY) != 0;
}

bool hang_is_in_meeting(const struct hang_scene *scene, uint32_t seat,
			const struct hang_meeting *meeting)
{
	const struct hang_seat *of = &scene->seats[seat];

	return of->front != NULL && !of->is_pair && of->front->op.match == meeting->match &&
	       is_replay(of->front) == meeting->is_replay;
}

enum flight_kind hang_flight_kind(const struct hang_scene *scene, uint32_t seat, size_t i)
{
	uint32_t process = scene->job->seats[seat].process;

	return scene->kinds[scene->first_kind[process] + scene->seats[seat].first_flight + i];
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint32_t hang_last_active(const struct hang_scene *scene, uint32_t seat, uint64_t *ago_ns)
{
	const struct job *job = scene->job;
	uint32_t process = job->seats[seat].process, found = HANG_NOBODY;
	uint64_t last_ns = 0;

	for (uint32_t s = job->first_seat[process]; s < job->first_seat[process + 1]; s++) {
		const struct comm_counts *counts = &scene->seats[s].comm->counts;
		uint64_t ns = later(counts->last_issue_ns, counts->last_done_ns);

		if (job->seats[s].rank == job->seats[seat].rank && ns > last_ns) {
			last_ns = ns;
			found = s;
		}
	}
	*ago_ns = hang_ago(scene, process, last_ns);
	return found;
}

/* ---- seats ------------------------------------------------------------------------------------- */

/* Transfers that its GPU filled or took: the kernel runs, whatever became of the event that says so. */
static bool has_worked(const struct recording_flight *flight)
{
	for (size_t i = 0; i < flight->proxy_count; i++)
		if (flight->proxies[i].proxy.done > 0)
			return true;
	return false;
}

static enum hang_presence presence_of(const struct hang_seat *seat, bool sees_kernels)
{
	const struct op_record *op = &seat->front->op;

	if (op->state == OP_RUNNING &&
	    (op->kernels_started > 0 || !sees_kernels || has_worked(seat->front)))
		return HANG_INSIDE;
	if (op->state == OP_ISSUED)
		return HANG_ISSUED;
	return sees_kernels ? HANG_LAUNCHED : HANG_UNSURE;
}

static void take_front(struct hang_scene *scene, uint32_t s, const struct recording_flight *flight)
{
	struct hang_seat *seat = &scene->seats[s];
	uint32_t process = scene->job->seats[s].process;
	uint64_t since_ns = flight_since_ns(flight);

	seat->front = flight;
	seat->presence = presence_of(seat, hang_sees_kernels(scene, s));
	seat->is_pair = !op_is_collective(flight->op.function) || flight->op.match == 0;
	seat->age_ns = hang_ago(scene, process, since_ns);
	/* From the call to the launch it takes a moment, unless NCCL has to connect first. */
	if (seat->presence == HANG_ISSUED)
		seat->in_ns = seat->age_ns;
	if (seat->presence >= HANG_UNSURE)
		seat->in_ns = hang_ago(scene, process,
				       flight->op.active_ns ? flight->op.active_ns : since_ns);
}

/* Transfers are progress, too. */
static uint64_t last_transfer(const struct recording_flight *flight)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < flight->proxy_count; i++)
		last_ns = later(last_ns, flight->proxies[i].proxy.since_ns);
	return last_ns;
}

/* The latest launch of which something is over. */
static uint64_t last_launch_over(const struct hang_scene *scene, uint32_t s)
{
	const struct hang_seat *seat = &scene->seats[s];
	const struct recording_flight *flights = hang_flights(scene, s);
	uint64_t launch_ns = 0;

	for (size_t i = 0; i < seat->flight_count; i++)
		if (flights[i].op.state == OP_DONE)
			launch_ns = later(launch_ns, flights[i].op.launch_ns);
	return launch_ns;
}

/* What is older than one that is done is over, whatever became of its parts. Sends and Recvs of one launch
 * end in any order. */
static bool is_passed(const struct hang_seat *seat, const struct op_record *op,
		      uint64_t launch_over_ns)
{
	uint64_t last = seat->comm->has_counts ? seat->comm->counts.last_done_number : 0;

	if (op_is_collective(op->function))
		return op->number < last;
	return op->number + LAUNCH_MAX < last ||
	       (op->launch_ns != 0 && op->launch_ns < launch_over_ns);
}

static void take_seat(struct hang_scene *scene, uint32_t s)
{
	struct hang_seat *seat = &scene->seats[s];
	uint32_t p = scene->job->seats[s].process;
	const struct recording_process *process = scene->job->recording->processes[p];
	const struct comm_counts *counts = &seat->comm->counts;
	uint64_t last_ns = seat->comm->info.init_ns, over_ns = last_launch_over(scene, s);

	last_ns = later(last_ns, later(counts->last_issue_ns, counts->last_done_ns));
	for (size_t i = 0; i < seat->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[seat->first_flight + i];
		enum flight_kind kind = hang_flight_kind(scene, s, i);

		seat->is_blind = kind == FLIGHT_UNSEEN;
		if (kind != FLIGHT_OPEN || is_passed(seat, &flight->op, over_ns))
			continue;
		last_ns = later(last_ns, last_transfer(flight));
		if (seat->front == NULL)
			take_front(scene, s, flight);
	}
	/* One that never did anything does not go on, either. */
	seat->still_ns = last_ns ? hang_ago(scene, p, last_ns) : UINT64_MAX;
	if (scene->options && scene->options->still_ns &&
	    scene->options->still_ns[s] < seat->still_ns)
		seat->still_ns = scene->options->still_ns[s];
	seat->is_over = scene->processes[p].life == HANG_DEAD ||
			scene->processes[p].life == HANG_ENDED ||
			(seat->comm->info.flags & COMM_FLAG_FINALIZED);
}

/* Flights are sorted by communicator: each seat gets its stretch of them. */
static void share_out_flights(struct hang_scene *scene, uint32_t p)
{
	const struct job *job = scene->job;
	const struct recording_process *process = job->recording->processes[p];
	size_t at = 0;

	flight_kinds(process, scene->kinds + scene->first_kind[p]);
	for (uint32_t s = job->first_seat[p]; s < job->first_seat[p + 1]; s++) {
		struct hang_seat *seat = &scene->seats[s];

		seat->comm = &process->comms[s - job->first_seat[p]];
		while (at < process->flight_count &&
		       process->flights[at].op.comm < job->seats[s].comm_id)
			at++;
		seat->first_flight = at;
		while (at < process->flight_count &&
		       process->flights[at].op.comm == job->seats[s].comm_id)
			at++;
		seat->flight_count = at - seat->first_flight;
	}
}

/* What a seat shows of its operations: as its communicator says, or as an operation does. */
static uint32_t shown_by(const struct hang_scene *scene, uint32_t s)
{
	const struct hang_seat *seat = &scene->seats[s];
	const struct recording_flight *flights = hang_flights(scene, s);
	uint32_t shown = seat->comm->info.flags;

	for (size_t i = 0; i < seat->flight_count; i++) {
		shown |= flights[i].op.kernels_started > 0 ? COMM_FLAG_SEES_KERNELS : 0;
		shown |= flights[i].proxy_count > 0 ? COMM_FLAG_SEES_PROXIES : 0;
	}
	return shown;
}

/* A communicator on which nothing has run yet would show what others of the same process show, where the
 * same was asked for. */
static void share_shown(struct hang_scene *scene, uint32_t p)
{
	const struct job *job = scene->job;
	const struct comm_info *seen = NULL;

	for (uint32_t s = job->first_seat[p]; s < job->first_seat[p + 1]; s++)
		if (scene->shows[job->seats[s].comm] & COMM_FLAG_SEES_KERNELS)
			seen = &scene->seats[s].comm->info;
	for (uint32_t s = job->first_seat[p]; seen && s < job->first_seat[p + 1]; s++) {
		const struct comm_info *info = &scene->seats[s].comm->info;

		if (info->mask == seen->mask && info->interface == seen->interface)
			scene->shows[job->seats[s].comm] |= COMM_FLAG_SEES_KERNELS;
	}
}

/* ---- communicators ----------------------------------------------------------------------------- */

/* Who is asked what the members are in. */
enum asked {
	ASK_USUAL = 0,
	ASK_STOPPED = 1, /* these too */
	ASK_CALLED =
		2, /* and those whose call NCCL has not launched: it waits for others to connect */
};

/* Does this one show that the collective runs? Where nothing is ever shown, a call has to do. */
static bool is_inside(const struct hang_seat *seat, uint32_t shows, enum asked asked)
{
	const uint32_t shown = COMM_FLAG_SEES_KERNELS | COMM_FLAG_SEES_PROXIES;

	if (seat->is_over || seat->front == NULL)
		return false;
	return seat->presence == HANG_INSIDE || !(shows & shown) ||
	       (asked == ASK_CALLED && seat->presence == HANG_ISSUED);
}

static void choose_collective(struct hang_meeting *meeting, const struct hang_seat *seat)
{
	bool replay = is_replay(seat->front);

	if (seat->is_pair || (meeting->is_collective && replay && !meeting->is_replay))
		return;
	if (!meeting->is_collective || meeting->is_replay != replay ||
	    seat->front->op.match < meeting->match) {
		meeting->match = seat->front->op.match;
		meeting->is_replay = replay;
	}
	meeting->is_collective = true;
}

/* Who is inside for longest: of a collective, and of anything. */
static void note_inside(struct hang_meeting *meeting, const struct hang_seat *seat, uint32_t s,
			uint64_t *longest_ns)
{
	*longest_ns = later(*longest_ns, seat->in_ns);
	if (seat->is_pair)
		return;
	meeting->inside++;
	if (meeting->first == HANG_NOBODY || seat->in_ns > meeting->in_ns) {
		meeting->first = s;
		meeting->in_ns = seat->in_ns;
	}
}

/* What the members are in that take part in it. Gives back for how long the longest is inside. */
static uint64_t survey_members(struct hang_scene *scene, uint32_t c, enum asked asked)
{
	const struct job_comm *comm = &scene->job->comms[c];
	struct hang_meeting *meeting = &scene->meetings[c];
	uint64_t longest_ns = 0;

	*meeting = (struct hang_meeting){ .still_ns = UINT64_MAX, .first = HANG_NOBODY };
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];
		const struct hang_seat *seat = &scene->seats[s];
		enum hang_life life = scene->processes[scene->job->seats[s].process].life;

		if (seat->is_over || (life == HANG_STOPPED && asked == ASK_USUAL))
			continue;
		if (seat->still_ns < meeting->still_ns)
			meeting->still_ns = seat->still_ns;
		if (seat->front == NULL)
			continue;
		choose_collective(meeting, seat);
		if (is_inside(seat, scene->shows[c], asked))
			note_inside(meeting, seat, s, &longest_ns);
	}
	meeting->is_collective &= meeting->first != HANG_NOBODY;
	return longest_ns;
}

/* The next are asked where the first are in nothing. */
static void take_meeting(struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	struct hang_meeting *meeting = &scene->meetings[c];
	uint64_t longest_ns = 0;

	for (enum asked asked = ASK_USUAL; asked <= ASK_CALLED && longest_ns == 0; asked++)
		longest_ns = survey_members(scene, c, asked);
	if (comm->nranks == 1 || comm->seat_count == 0 || hang_is_past(scene, comm))
		return;
	if (longest_ns >= scene->hang_ns && meeting->still_ns >= scene->hang_ns)
		meeting->level = HANG_HANGS;
	else if (longest_ns >= scene->pause_ns && meeting->still_ns >= scene->pause_ns)
		meeting->level = HANG_PAUSES;
}

static enum status take_waits(struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		struct hang_seat *seat = &scene->seats[comm->seats[i]];
		enum status status = OK;

		if (seat->front != NULL)
			status = flight_waits(seat->front->proxies, seat->front->proxy_count,
					      &seat->waits, &seat->wait_count);
		if (status != OK)
			return status;
	}
	return OK;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static enum status make_room(struct hang_scene *scene)
{
	const struct job *job = scene->job;
	size_t flights = 0;

	scene->first_kind = calloc(job->recording->count + 1, sizeof(*scene->first_kind));
	if (scene->first_kind == NULL)
		return ERR_NO_SPACE;
	for (size_t p = 0; p < job->recording->count; p++) {
		scene->first_kind[p] = flights;
		flights += job->recording->processes[p]->flight_count;
	}
	scene->kinds = malloc(flights + 1);
	scene->processes = calloc(job->recording->count + 1, sizeof(*scene->processes));
	scene->seats = calloc(job->seat_count + 1, sizeof(*scene->seats));
	scene->meetings = calloc(job->comm_count + 1, sizeof(*scene->meetings));
	scene->shows = calloc(job->comm_count + 1, sizeof(*scene->shows));
	if (!scene->kinds || !scene->processes || !scene->seats || !scene->meetings ||
	    !scene->shows)
		return ERR_NO_SPACE;
	return OK;
}

enum status hang_scene_make(struct hang_scene *scene, const struct job *job,
			    const struct hang_options *options, bool is_guess)
{
	uint64_t hang_ns = options && options->hang_ns ? options->hang_ns : HANG_DEFAULT_NS;
	enum status status;

	/* Where nobody knows for how long, the shortest time has to do. */
	if (is_guess)
		hang_ns = HANG_GUESS_NS;
	*scene = (struct hang_scene){ .job = job,
				      .hang_ns = hang_ns,
				      .pause_ns = is_guess ? hang_ns : hang_ns / 4,
				      .is_guess = is_guess,
				      .options = options };
	status = make_room(scene);
	if (status == OK)
		status = hang_lives(scene);
	for (uint32_t p = 0; p < job->recording->count && status == OK; p++)
		share_out_flights(scene, p);
	for (uint32_t s = 0; s < job->seat_count && status == OK; s++)
		scene->shows[job->seats[s].comm] |= shown_by(scene, s);
	for (uint32_t p = 0; p < job->recording->count && status == OK; p++)
		share_shown(scene, p);
	for (uint32_t s = 0; s < job->seat_count && status == OK; s++)
		take_seat(scene, s);
	for (uint32_t c = 0; c < job->comm_count && status == OK; c++) {
		take_meeting(scene, c);
		if (scene->meetings[c].level != HANG_MOVES)
			status = take_waits(scene, c);
	}
	if (status != OK)
		hang_scene_release(scene);
	return status;
}

void hang_scene_release(struct hang_scene *scene)
{
	for (size_t s = 0; scene->seats != NULL && s < scene->job->seat_count; s++)
		free(scene->seats[s].waits);
	free(scene->processes);
	free(scene->seats);
	free(scene->meetings);
	free(scene->shows);
	free(scene->kinds);
	free(scene->first_kind);
	*scene = (struct hang_scene){ .job = NULL };
}
