/*
 * Which processes are alive. On the host where they run, the system knows. For recordings left behind, only
 * their ends are known; these are compared among processes that belong together, that is, share
 * communicators directly or indirectly. Two jobs in one directory are unrelated, and so are two attempts of
 * the same job.
 */
#include "doctor/doctor.h"
#include "doctor/hang_internal.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/op.h"
#include "common/union_find.h"

#define HANG_GUESS_NS UINT64_C(1)

/* A recorder asks its GPU many times a second. If the last time was longer ago, the driver does not return. */
#define GPU_SILENT_NS (5 * SECOND_NS)

/* Clocks of hosts may differ by this much. */
#define CLOCKS_NS (2 * SECOND_NS)

uint64_t hang_now_ns(const struct recording_process *process)
{
	uint64_t now_ns;

	if (process->life == RECORDING_ALIVE && recording_now(process, &now_ns))
		return now_ns;
	return recording_last_ns(process);
}

/* ---- components ------------------------------------------------------------------------------- */

/* Communicators without a hash are not matched with any other: the job's name has to suffice. */
static void join_nameless(const struct job *job, uint32_t *parents, uint32_t *first_of_group)
{
	for (size_t c = 0; c < job->comm_count; c++) {
		const struct job_comm *comm = &job->comms[c];
		uint32_t process;

		if (comm->hash != 0 || comm->seat_count == 0)
			continue;
		process = job->seats[comm->seats[0]].process;
		if (first_of_group[comm->group] == HANG_NOBODY)
			first_of_group[comm->group] = process;
		union_find_join(parents, first_of_group[comm->group], process);
	}
}

static enum status find_components(struct hang_scene *scene)
{
	const struct job *job = scene->job;
	uint32_t count = (uint32_t)job->recording->count;
	uint32_t *parents = malloc((count + job->group_count + 1) * sizeof(*parents));
	uint32_t *first_of_group;

	if (parents == NULL)
		return ERR_NO_SPACE;
	first_of_group = &parents[count];
	for (size_t g = 0; g < job->group_count; g++)
		first_of_group[g] = HANG_NOBODY;
	union_find_init(parents, count);
	for (size_t c = 0; c < job->comm_count; c++)
		for (uint32_t i = 1; i < job->comms[c].seat_count; i++)
			union_find_join(parents, job->seats[job->comms[c].seats[0]].process,
					job->seats[job->comms[c].seats[i]].process);
	join_nameless(job, parents, first_of_group);
	for (uint32_t p = 0; p < count; p++)
		scene->processes[p].component = union_find_root(parents, p);
	free(parents);
	return OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct together {
	uint64_t end_wall_ns;
	bool is_any_alive;
	bool is_any_ended;   /* cleanly */
	bool is_any_unknown; /* perhaps it runs */
	bool is_end_known;   /* of at least one */
	bool is_undated;     /* dumps: nobody knows when they were made */
};

static void note_end(struct together *together, const struct recording_process *process,
		     const struct hang_process *of)
{
	together->is_end_known |=
		process->life != RECORDING_ENDED && recording_end_is_known(process);
	together->is_undated |= process->is_undated;
	together->is_any_alive |= process->life == RECORDING_ALIVE;
	together->is_any_ended |= process->life == RECORDING_ENDED;
	together->is_any_unknown |= process->life == RECORDING_UNKNOWN;
	if (of->end_wall_ns > together->end_wall_ns)
		together->end_wall_ns = of->end_wall_ns;
}

/*
 * When it died it had been in an operation for long. It waited like the others, and its watchdog, or
 * whoever ended the job, was faster there: its death is not the cause.
 */
static bool has_died_waiting(const struct recording_process *process, const struct hang_process *of,
			     uint64_t hang_ns)
{
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];
		uint64_t since_ns = flight_since_ns(flight);

		if (flight->op.state >= OP_ISSUED && flight->op.state <= OP_RUNNING &&
		    since_ns != 0 && since_ns + hang_ns <= of->now_ns)
			return recording_end_is_known(process);
	}
	return false;
}

/* Its last file ends in the middle of a block: what follows was lost, and so was its end. */
static bool is_torn(const struct recording_process *process)
{
	const struct recording_file *last =
		process->file_count > 0 ? &process->files[process->file_count - 1] : NULL;

	return last != NULL && process->life == RECORDING_UNKNOWN && process->region == NULL &&
	       !last->is_closed && last->cut_offset < last->bytes;
}

static void judge_life(const struct recording_process *process, struct hang_process *of,
		       const struct together *together, uint64_t hang_ns)
{
	bool has_waited = has_died_waiting(process, of, hang_ns);
	bool ends_early = of->lag_ns >= hang_ns && recording_end_is_known(process) && !has_waited &&
			  !is_torn(process);

	if (process->life == RECORDING_ENDED) {
		of->life = HANG_ENDED;
	} else if (process->life == RECORDING_KILLED &&
		   (together->is_any_alive || (together->is_any_ended && !has_waited) ||
		    ends_early)) {
		of->life = HANG_DEAD;
		of->is_dead_for_sure = true;
	} else if (process->life == RECORDING_UNKNOWN && ends_early) {
		of->life = HANG_DEAD;
	} else if (process->process_state == 'T' || process->process_state == 't') {
		of->life = HANG_STOPPED;
	}
}

/* Shows the time of its snapshot, which may be earlier than that of others. */
static bool is_dated(const struct recording_process *process, const struct hang_options *options)
{
	return process->is_snapshot && process->region == NULL &&
	       !(options && options->is_one_moment);
}

static bool is_launched(const struct op_record *op)
{
	return op->state == OP_LAUNCHED || op->state == OP_RUNNING;
}

/* Are there CUDA events around its launch, of which the second was not passed? */
static bool is_timed_open(const struct op_record *op)
{
	return op->flags & OP_FLAG_CUDA_EVENT && op->gpu_stop_ns == 0 && is_launched(op);
}

/* How long ago its GPU was asked, if that is too long and it has operations that wait for the answer. */
static uint64_t gpu_silent_ns(const struct recording_process *process, uint64_t now_ns)
{
	if (process->times_read_ns == 0 || now_ns < process->times_read_ns ||
	    now_ns - process->times_read_ns < GPU_SILENT_NS)
		return 0;
	for (size_t i = 0; i < process->flight_count; i++)
		if (is_timed_open(&process->flights[i].op))
			return now_ns - process->times_read_ns;
	return 0;
}

static void take_process(struct hang_scene *scene, uint32_t p)
{
	const struct recording_process *process = scene->job->recording->processes[p];
	struct hang_process *of = &scene->processes[p];
	const struct hang_options *options = scene->options;

	of->now_ns = options && options->now_ns ? options->now_ns[p] : hang_now_ns(process);
	of->gpu_silent_ns = gpu_silent_ns(process, of->now_ns);
	if (of->now_ns == 0 || !recording_wall_ns(process, of->now_ns, &of->end_wall_ns))
		of->end_wall_ns = 0;
}

/* Life, ends, components: the first part of a scene. */
static enum status hang_lives(struct hang_scene *scene)
{
	const struct recording *recording = scene->job->recording;
	struct together *together = calloc(recording->count + 1, sizeof(*together));
	enum status status;

	if (together == NULL)
		return ERR_NO_SPACE;
	status = find_components(scene);
	for (uint32_t p = 0; p < recording->count && status == OK; p++) {
		take_process(scene, p);
		note_end(&together[scene->processes[p].component], recording->processes[p],
			 &scene->processes[p]);
	}
	for (uint32_t p = 0; p < recording->count && status == OK; p++) {
		struct hang_process *of = &scene->processes[p];
		const struct together *with = &together[of->component];

		if (of->end_wall_ns != 0 &&
		    (recording->processes[p]->life != RECORDING_ALIVE ||
		     is_dated(recording->processes[p], scene->options)) &&
		    with->end_wall_ns - of->end_wall_ns > CLOCKS_NS)
			of->lag_ns = with->end_wall_ns - of->end_wall_ns;
		judge_life(recording->processes[p], of, with, scene->hang_ns);
		of->is_past = scene->options && scene->options->only_living && !with->is_any_alive;
		if (!with->is_any_alive && !with->is_any_unknown)
			of->dead_wall_ns = with->end_wall_ns;
		if (scene->is_guess) {
			of->is_past =
				!with->is_undated &&
				(with->is_any_alive || with->is_any_ended || with->is_end_known);
			of->lag_ns += HANG_GUESS_NS;
		}
		of->is_undated = with->is_undated;
		/* What shows no moment is judged by its calls alone. */
		of->is_past |= with->is_undated && !scene->is_guess;
		of->gone = HANG_NOBODY;
	}
	free(together);
	return status;
}

/*
 * What each seat is in. NCCL runs the operations of a communicator in order, so a seat is in its first open
 * one, its front. A call alone proves little: hosts run ahead of their GPUs. A communicator is stuck if
 * ranks have been inside for long and nothing of it makes progress.
 */

#define HANG_DEFAULT_NS (20 * SECOND_NS)

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

bool hang_has_issued(const struct hang_scene *scene, uint32_t seat, const struct hang_match *match)
{
	const struct recording_comm *comm = scene->seats[seat].comm;

	if (!comm->has_counts || comm->is_unplaced)
		return true;
	return (match->is_replay ? comm->counts.replays : comm->counts.collectives) >= match->match;
}

bool hang_sees_kernels(const struct hang_scene *scene, uint32_t seat, const struct op_record *op)
{
	const struct comm_info *info = &scene->seats[seat].comm->info;

	return scene->shows[scene->job->seats[seat].comm] & COMM_FLAG_SEES_KERNELS &&
	       (info->mask == 0 || op->kernels_started > 0 || op_kernels_were_asked(info, op));
}

static bool is_replay(const struct recording_flight *flight)
{
	return (flight->op.flags & OP_FLAG_REPLAY) != 0;
}

bool hang_is_in_match(const struct hang_scene *scene, uint32_t seat, const struct hang_match *match)
{
	const struct hang_seat *of = &scene->seats[seat];

	return of->front != NULL && !of->is_pair && of->front->op.match == match->match &&
	       is_replay(of->front) == match->is_replay;
}

enum flight_kind hang_flight_kind(const struct hang_scene *scene, uint32_t seat, size_t i)
{
	uint32_t process = scene->job->seats[seat].process;
	const struct recording_flight *flight = &hang_flights(scene, seat)[i];
	enum flight_kind kind =
		scene->kinds[scene->first_kind[process] + scene->seats[seat].first_flight + i];

	/* Some operations of a communicator go over the network, on some ranks: if nothing was reported for
	 * this one, nothing will be. */
	if (kind == FLIGHT_OPEN && flight->op.state == OP_LAUNCHED && flight->proxy_count == 0 &&
	    flight->open_children == 0 && hang_gpu(scene, seat, flight) != HANG_GPU_NOT_REACHED &&
	    !op_kernels_were_asked(&scene->seats[seat].comm->info, &flight->op))
		return FLIGHT_UNSEEN;
	return kind;
}

enum hang_gpu hang_gpu(const struct hang_scene *scene, uint32_t seat,
		       const struct recording_flight *flight)
{
	uint32_t process = scene->job->seats[seat].process;
	size_t i = (size_t)(flight - scene->job->recording->processes[process]->flights);

	return (enum hang_gpu)scene->gpus[scene->first_kind[process] + i];
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The seat of this rank with the last call or completion; HANG_NOBODY none. */
static uint32_t latest_seat(const struct hang_scene *scene, uint32_t seat, bool by_calls_alone,
			    uint64_t *last_ns)
{
	const struct job *job = scene->job;
	uint32_t process = job->seats[seat].process, found = HANG_NOBODY;

	*last_ns = 0;
	for (uint32_t s = job->first_seat[process]; s < job->first_seat[process + 1]; s++) {
		const struct comm_counts *counts = &scene->seats[s].comm->counts;
		uint64_t ns =
			later(counts->last_issue_ns, by_calls_alone ? 0 : counts->last_done_ns);

		if (job->seats[s].rank == job->seats[seat].rank && ns > *last_ns) {
			*last_ns = ns;
			found = s;
		}
	}
	return found;
}

uint32_t hang_last_active(const struct hang_scene *scene, uint32_t seat, uint64_t *ago_ns)
{
	uint64_t last_ns;
	uint32_t found = latest_seat(scene, seat, false, &last_ns);

	*ago_ns = hang_ago(scene, scene->job->seats[seat].process, last_ns);
	return found;
}

/* ---- seats ------------------------------------------------------------------------------------- */

/* Has its GPU passed the CUDA event before its launch? Transfers begin without the GPU, and set active_ns, too. */
static bool has_passed_event(const struct op_record *op)
{
	return op->flags & OP_FLAG_CUDA_EVENT &&
	       (op->gpu_start_ns != 0 || (op->active_ns != 0 && op->proxies_started == 0));
}

/* Its GPU has filled or consumed transfers: the kernel runs, even if its event is missing. */
bool hang_has_worked(const struct recording_flight *flight)
{
	enum { STEP_ON_THE_WIRE = 9 }; /* NCCL's number: the GPU has filled it */

	if (flight->op.kernels_started > 0 || has_passed_event(&flight->op))
		return true;
	for (size_t i = 0; i < flight->proxy_count; i++) {
		const struct recording_proxy *of = &flight->proxies[i];

		if (of->proxy.done > 0)
			return true;
		for (size_t step = 0; step < of->step_count; step++)
			if (of->steps[step].state == STEP_ON_THE_WIRE)
				return true;
	}
	return false;
}

/* The other direction of a connection on a channel, if there is one. */
static const struct recording_proxy *other_way(const struct recording_flight *flight,
					       const struct recording_proxy *proxy)
{
	for (size_t i = 0; i < flight->proxy_count; i++) {
		const struct recording_proxy *of = &flight->proxies[i];

		if (of->proxy.channel == proxy->proxy.channel &&
		    (of->proxy.flags ^ proxy->proxy.flags) & PROXY_IS_SEND)
			return of;
	}
	return NULL;
}

static bool are_all_in(const struct recording_proxy *proxy, uint8_t state)
{
	for (size_t i = 0; i < proxy->step_count; i++)
		if (proxy->steps[i].state != state)
			return false;
	return proxy->step_count > 0;
}

bool hang_is_ring(const struct op_record *op)
{
	return op->algorithm == OP_RING &&
	       (op->function == OP_ALL_REDUCE || op->function == OP_ALL_GATHER ||
		op->function == OP_REDUCE_SCATTER);
}

/*
 * Has its kernel not started? Inferred from its transfers alone; false: it has, or they are not conclusive.
 *
 * In these functions, by ring, a kernel sends its own rank's data first and needs no other rank for that:
 * the buffers are free. So a kernel that has produced nothing for any connection, while received data is
 * not consumed, has not started. This holds only for a rank whose neighbours in the ring are both reached
 * over the network, in every visible channel: otherwise its first sends went another way. It does not hold
 * for trees, Broadcast and Reduce, where a running kernel may have to wait for others first.
 */
static bool hang_gives_nothing(const struct recording_flight *flight)
{
	enum { FOR_ITS_GPU_TO_FILL = 8, FOR_ITS_GPU_TO_TAKE = 12 }; /* NCCL's numbers */
	bool has_data = false;

	if (!hang_is_ring(&flight->op) || flight->op.state != OP_RUNNING || hang_has_worked(flight))
		return false;
	for (size_t i = 0; i < flight->proxy_count; i++) {
		const struct recording_proxy *of = &flight->proxies[i];

		if (other_way(flight, of) == NULL)
			return false;
		if (of->proxy.flags & PROXY_IS_SEND && !are_all_in(of, FOR_ITS_GPU_TO_FILL))
			return false;
		for (size_t s = 0; s < of->step_count; s++)
			has_data |= of->steps[s].state == FOR_ITS_GPU_TO_TAKE;
	}
	return has_data;
}

/* ---- what GPUs have reached --------------------------------------------------------------------- */

/* Was it not over at this moment? Only asking the GPU shows that. */
static bool is_seen_open(const struct hang_process *process, const struct op_record *op)
{
	return is_timed_open(op) && process->gpu_silent_ns == 0 &&
	       (op->flags & OP_FLAG_SEEN_OPEN || has_passed_event(op));
}

/* From its own events and transfers. The network side begins with the launch: it does not show that the kernel has
 * started. */
static enum hang_gpu own_evidence(const struct hang_scene *scene, uint32_t s,
				  const struct recording_flight *flight)
{
	const struct hang_process *process = &scene->processes[scene->job->seats[s].process];
	const struct op_record *op = &flight->op;

	if (op->state == OP_DONE)
		return HANG_GPU_OVER;
	if (!is_launched(op))
		return HANG_GPU_UNKNOWN;
	if (hang_has_worked(flight) && (op->state == OP_RUNNING || has_passed_event(op)))
		return HANG_GPU_REACHED;
	/* With transfers under way the time of the first activity is theirs: whether the event was passed is unknown. */
	return (is_seen_open(process, op) && op->active_ns == 0) ||
			       hang_sees_kernels(scene, s, op) || hang_gives_nothing(flight)
		       ? HANG_GPU_NOT_REACHED
		       : HANG_GPU_UNKNOWN;
}

/* Launches of one communicator on one stream, by their time. */
struct stream_order {
	uint64_t stream;
	uint64_t
		reached_ns; /* the last one whose first event was passed: those before it are over */
	uint64_t
		open_ns; /* the first one that is not over: those after it were not reached; 0 none */
};

enum { STREAMS_MAX = 8 };

/* NULL: its launch is not known, or there are too many streams. */
static struct stream_order *stream_of(struct stream_order *streams, const struct op_record *op)
{
	/* One of which nothing is known yet serves for any stream. */
	if (op->launch_ns == 0 || !(is_launched(op) || op->state == OP_DONE))
		return NULL;
	for (size_t i = 0; i < STREAMS_MAX; i++) {
		if (streams[i].reached_ns == 0 && streams[i].open_ns == 0)
			streams[i].stream = op->stream;
		if (streams[i].stream == op->stream)
			return &streams[i];
	}
	return NULL;
}

static void survey_streams(const struct hang_process *process,
			   const struct recording_flight *flights, size_t count,
			   struct stream_order *streams)
{
	for (size_t i = 0; i < count; i++) {
		const struct op_record *op = &flights[i].op;
		struct stream_order *of = stream_of(streams, op);

		if (of != NULL && has_passed_event(op))
			of->reached_ns = later(of->reached_ns, op->launch_ns);
	}
	for (size_t i = 0; i < count; i++) {
		const struct op_record *op = &flights[i].op;
		struct stream_order *of = stream_of(streams, op);

		if (of != NULL && is_seen_open(process, op) && op->launch_ns >= of->reached_ns &&
		    (of->open_ns == 0 || op->launch_ns < of->open_ns))
			of->open_ns = op->launch_ns;
	}
}

/* What its own events show, then what the order of its stream shows of it. */
static void take_evidence(struct hang_scene *scene, uint32_t s)
{
	const struct hang_seat *seat = &scene->seats[s];
	uint32_t p = scene->job->seats[s].process;
	const struct recording_flight *flights = hang_flights(scene, s);
	size_t first = scene->first_kind[p] + seat->first_flight;
	struct stream_order streams[STREAMS_MAX] = { { 0, 0, 0 } };

	survey_streams(&scene->processes[p], flights, seat->flight_count, streams);
	for (size_t i = 0; i < seat->flight_count; i++) {
		const struct op_record *op = &flights[i].op;
		const struct stream_order *of = stream_of(streams, op);
		uint8_t *gpu = &scene->gpus[first + i], *kind = &scene->kinds[first + i];

		*gpu = (uint8_t)own_evidence(scene, s, &flights[i]);
		/* A question that was not answered is no part of the operation. */
		if (is_timed_open(op) && !is_seen_open(&scene->processes[p], op) &&
		    flights[i].open_children <= 1 && flights[i].proxy_count == 0 &&
		    !op_kernels_were_asked(&seat->comm->info, op) && *kind == FLIGHT_OPEN)
			*kind = FLIGHT_UNSEEN;
		if (of == NULL || !is_launched(op))
			continue;
		if (op->launch_ns < of->reached_ns) {
			*gpu = HANG_GPU_OVER;
			*kind = FLIGHT_OVER;
		} else if (of->open_ns != 0 && op->launch_ns > of->open_ns &&
			   *gpu != HANG_GPU_REACHED) {
			*gpu = HANG_GPU_NOT_REACHED;
			*kind = FLIGHT_OPEN;
		}
	}
}

static enum hang_presence presence_of(const struct hang_seat *seat, enum hang_gpu gpu)
{
	if (gpu == HANG_GPU_REACHED)
		return HANG_INSIDE;
	if (seat->front->op.state == OP_ISSUED)
		return HANG_ISSUED;
	return gpu == HANG_GPU_NOT_REACHED ? HANG_LAUNCHED : HANG_UNSURE;
}

static void take_front(struct hang_scene *scene, uint32_t s, const struct recording_flight *flight)
{
	struct hang_seat *seat = &scene->seats[s];
	uint32_t process = scene->job->seats[s].process;
	uint64_t since_ns = flight_since_ns(flight);

	seat->front = flight;
	seat->presence = presence_of(seat, hang_gpu(scene, s, flight));
	seat->is_pair = !op_is_collective(flight->op.function) || flight->op.match == 0;
	seat->age_ns = hang_ago(scene, process, since_ns);
	/* The launch follows the call within a moment, unless NCCL has to connect first. */
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

/* The latest launch with a finished operation. */
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

/* Operations older than a finished one are over, even if parts of them are missing. Sends and Recvs of one
 * launch end in any order. */
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
		/* That its GPU has come so far is progress, too. */
		if (hang_gpu(scene, s, flight) == HANG_GPU_REACHED)
			last_ns = later(last_ns, flight->op.active_ns);
		if (seat->front == NULL)
			take_front(scene, s, flight);
	}
	/* A seat that never did anything makes no progress either. */
	seat->still_ns = last_ns ? hang_ago(scene, p, last_ns) : UINT64_MAX;
	if (scene->options && scene->options->still_ns &&
	    scene->options->still_ns[s] < seat->still_ns)
		seat->still_ns = scene->options->still_ns[s];
	seat->is_over = scene->processes[p].life == HANG_DEAD ||
			scene->processes[p].life == HANG_ENDED ||
			(seat->comm->info.flags & COMM_FLAG_FINALIZED);
}

/* ---- by calls alone ----------------------------------------------------------------------------- */

/*
 * Inside a node and without kernel events, a call is made and launched, and nothing more is recorded of it.
 * Calls alone prove this: a collective that one rank has not called, or that NCCL has not launched there,
 * is unfinished on those that called it, however far their hosts have run ahead since. The same holds for a
 * Send whose Recv was not called.
 *
 * If all ranks made the same calls, nothing is known: they may be done, or their GPUs hang.
 */

/* The progress of the rank that is least far: no rank has finished anything beyond this collective. */
static uint64_t least_called(const struct hang_scene *scene, const struct job_comm *comm)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];
		const struct op_record *op = seat->front ? &seat->front->op : NULL;

		if (seat->comm->has_counts && seat->comm->counts.collectives < least)
			least = seat->comm->counts.collectives;
		if (op && !seat->is_pair && !is_replay(seat->front) && op->match - 1 < least)
			least = op->match - 1;
	}
	return least;
}

/* The peer's last known call of the other half; NULL none. */
static const struct op_record *last_half(const struct hang_scene *scene, uint32_t peer,
					 uint8_t function, int32_t me)
{
	const struct recording_flight *flights = hang_flights(scene, peer);
	const struct op_record *last = NULL;

	for (size_t i = 0; i < scene->seats[peer].flight_count; i++) {
		const struct op_record *op = &flights[i].op;

		if (op->function == function && op->peer == me && !(op->flags & OP_FLAG_REPLAY) &&
		    (last == NULL || op->match > last->match))
			last = op;
	}
	return last;
}

/* Has the peer not made its half of this Send or Recv, or has NCCL not launched it there? */
static bool is_half_missing(const struct hang_scene *scene, uint32_t s, const struct op_record *op)
{
	const struct job *job = scene->job;
	uint32_t peer = job_member(job, &job->comms[job->seats[s].comm], op->peer);
	const struct op_record *half;

	if ((op->function != OP_SEND && op->function != OP_RECV) || op->match == 0 ||
	    peer == HANG_NOBODY || peer == s)
		return false;
	half = last_half(scene, peer, op->function == OP_SEND ? OP_RECV : OP_SEND,
			 job->seats[s].comm_rank);
	if (half == NULL)
		return op->match == 1 && scene->seats[peer].comm->has_counts;
	return half->match < op->match || (half->match == op->match && half->state == OP_ISSUED);
}

static bool is_open_by_calls(const struct hang_scene *scene, uint32_t s, const struct op_record *op,
			     uint64_t least)
{
	if (op->flags & (OP_FLAG_REPLAY | OP_FLAG_SELF | OP_FLAG_UNTRACKED) || op->match == 0)
		return false;
	return op_is_collective(op->function) ? op->match > least : is_half_missing(scene, s, op);
}

bool hang_is_open(const struct hang_scene *scene, uint32_t seat, size_t i)
{
	enum flight_kind kind = hang_flight_kind(scene, seat, i);

	if (kind != FLIGHT_UNSEEN)
		return kind == FLIGHT_OPEN;
	return is_open_by_calls(scene, seat, &hang_flights(scene, seat)[i].op,
				scene->least[scene->job->seats[seat].comm]);
}

static void take_front_by_calls(struct hang_scene *scene, uint32_t s,
				const struct recording_flight *flight)
{
	take_front(scene, s, flight);
	scene->seats[s].is_by_calls = true;
	scene->seats[s].presence = HANG_UNSURE;
	scene->seats[s].in_ns = scene->seats[s].age_ns;
}

static bool is_any_gone(const struct hang_scene *scene, const struct job_comm *comm)
{
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct job_seat *seat = &scene->job->seats[comm->seats[i]];
		enum hang_life life = scene->processes[seat->process].life;

		if ((life == HANG_DEAD || life == HANG_STOPPED) &&
		    !(scene->seats[comm->seats[i]].comm->info.flags & COMM_FLAG_FINALIZED))
			return true;
	}
	return false;
}

/* Its GPU has not started its front, which another rank has not called: it may be in an earlier call whose
 * execution is not recorded. */
static bool is_front_uncalled(const struct hang_seat *seat, uint64_t called_by_all)
{
	return seat->presence == HANG_LAUNCHED && !seat->is_pair && !is_replay(seat->front) &&
	       seat->front->op.match > called_by_all;
}

static uint64_t fewest_calls(const struct hang_scene *scene, const struct job_comm *comm)
{
	uint64_t fewest = UINT64_MAX;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct recording_comm *of = scene->seats[comm->seats[i]].comm;

		if (of->has_counts && !of->is_unplaced && of->counts.collectives < fewest)
			fewest = of->counts.collectives;
	}
	return fewest;
}

/* Its GPU has not reached its front, and other ranks are in something before that: so may this one be, in a call
 * whose execution is not recorded. NULL: there is none. */
static const struct recording_flight *unseen_before_front(const struct hang_scene *scene,
							  uint32_t s)
{
	const struct hang_seat *seat = &scene->seats[s];
	const struct recording_flight *flights = hang_flights(scene, s);

	if (seat->presence != HANG_LAUNCHED || seat->is_pair || is_replay(seat->front))
		return NULL;
	for (size_t f = 0; f < seat->flight_count && &flights[f] < seat->front; f++)
		if (hang_flight_kind(scene, s, f) == FLIGHT_UNSEEN && hang_is_open(scene, s, f))
			return &flights[f];
	return NULL;
}

static void take_fronts_by_calls(struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	/* A rank that is gone runs nothing, whatever it has called. */
	uint64_t called_by_all = is_any_gone(scene, comm) ? 0 : fewest_calls(scene, comm);

	scene->least[c] = comm->seat_count > 1 ? least_called(scene, comm) : UINT64_MAX;
	for (uint32_t i = 0; i < comm->seat_count && scene->least[c] != UINT64_MAX; i++) {
		uint32_t s = comm->seats[i];
		const struct hang_seat *seat = &scene->seats[s];
		const struct recording_flight *flights = hang_flights(scene, s);
		const struct recording_flight *before;

		if (seat->is_over)
			continue;
		if (seat->front != NULL && !is_front_uncalled(seat, called_by_all)) {
			before = unseen_before_front(scene, s);
			if (before != NULL)
				take_front_by_calls(scene, s, before);
			continue;
		}
		for (size_t f = 0; f < seat->flight_count; f++)
			if ((seat->front == NULL || &flights[f] == seat->front ||
			     hang_flight_kind(scene, s, f) == FLIGHT_UNSEEN) &&
			    hang_is_open(scene, s, f)) {
				take_front_by_calls(scene, s, &flights[f]);
				break;
			}
	}
}

/* The last call of a seat, if its end is not recorded; NULL: it is, or there is no call. */
static const struct recording_flight *last_unseen(const struct hang_scene *scene, uint32_t s)
{
	const struct hang_seat *seat = &scene->seats[s];

	if (!seat->is_blind || seat->flight_count == 0)
		return NULL;
	return &hang_flights(scene, s)[seat->flight_count - 1];
}

/* How long has the rank of this seat called nothing, on any communicator? *last: the seat of its last call;
 * HANG_NOBODY and UINT64_MAX: it never called. */
static uint64_t rank_still(const struct hang_scene *scene, uint32_t s, uint32_t *last)
{
	uint64_t last_ns;

	*last = latest_seat(scene, s, true, &last_ns);
	return *last == HANG_NOBODY ? UINT64_MAX
				    : hang_ago(scene, scene->job->seats[s].process, last_ns);
}

bool hang_is_still(const struct hang_scene *scene, uint32_t comm)
{
	const struct job_comm *of = &scene->job->comms[comm];
	uint32_t open = 0, last;

	for (uint32_t i = 0; i < of->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[of->seats[i]];

		if (seat->is_over)
			continue;
		open += seat->front != NULL || seat->is_blind;
		if (seat->still_ns < scene->hang_ns ||
		    rank_still(scene, of->seats[i], &last) < scene->hang_ns || last == HANG_NOBODY)
			return false;
	}
	return open > 0;
}

bool hang_has_passed(const struct hang_scene *scene, uint32_t seat,
		     const struct recording_flight *flight)
{
	const struct job *job = scene->job;
	uint32_t process = job->seats[seat].process;
	uint64_t then_ns = flight_since_ns(flight);

	for (uint32_t s = job->first_seat[process]; s < job->first_seat[process + 1]; s++) {
		const struct recording_flight *flights = hang_flights(scene, s);

		if (job->seats[s].rank != job->seats[seat].rank || s == seat)
			continue;
		for (size_t i = 0; i < scene->seats[s].flight_count; i++)
			if (flight_since_ns(&flights[i]) > then_ns &&
			    (flights[i].op.state == OP_DONE || hang_has_worked(&flights[i])))
				return true;
	}
	return false;
}

/*
 * All ranks made the same calls, and none of them has called anything since, anywhere. If the last calls
 * are unfinished, that is why there is no progress; if they are finished, the ranks are busy with something
 * else. A dead or stopped process is the cause in either case. *is_resting: these were the last calls of
 * all of them.
 */
static bool take_last_calls(struct hang_scene *scene, uint32_t c, bool *is_resting)
{
	const struct job_comm *comm = &scene->job->comms[c];
	uint32_t unseen = 0, resting = 0, gone = 0, living = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];
		const struct hang_seat *seat = &scene->seats[s];
		enum hang_life life = scene->processes[scene->job->seats[s].process].life;
		const struct recording_flight *last = last_unseen(scene, s);
		uint32_t last_called;

		if (seat->front != NULL)
			return false;
		gone += life == HANG_DEAD || life == HANG_STOPPED;
		if (seat->is_over || life != HANG_RUNS)
			continue;
		if (rank_still(scene, s, &last_called) < scene->pause_ns ||
		    (last && hang_has_passed(scene, s, last)))
			return false;
		living++;
		unseen += last != NULL;
		resting += last != NULL && last_called == s;
	}
	*is_resting = resting == living || gone > 0;
	for (uint32_t i = 0; i < comm->seat_count && unseen > 0; i++) {
		uint32_t s = comm->seats[i];

		if (!scene->seats[s].is_over && last_unseen(scene, s) != NULL)
			take_front_by_calls(scene, s, last_unseen(scene, s));
	}
	return unseen > 0;
}

/* The longest known pause between calls of a seat. */
static uint64_t usual_pause(const struct hang_scene *scene, uint32_t s)
{
	const struct hang_seat *seat = &scene->seats[s];
	const struct recording_flight *flights = hang_flights(scene, s);
	uint64_t longest_ns = 0, before_ns = 0;

	for (size_t i = 0; i < seat->flight_count; i++) {
		uint64_t ns = flight_since_ns(&flights[i]);

		if (before_ns != 0 && ns > before_ns && ns - before_ns > longest_ns)
			longest_ns = ns - before_ns;
		before_ns = ns;
	}
	return longest_ns;
}

/*
 * Some ranks are ahead of others in their calls. Hosts run ahead of their GPUs, so this alone blames no
 * rank: a rank that computes for a minute before each collective is not late. Only if no rank calls
 * anything for much longer than the longest known pause, the ranks behind are certainly not just in their
 * usual pause.
 */
static bool is_usual_pause(const struct hang_scene *scene, const struct job_comm *comm,
			   uint64_t still_ns)
{
	enum { MUCH_LONGER = 3 };

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (usual_pause(scene, comm->seats[i]) >= still_ns / MUCH_LONGER)
			return true;
	return false;
}

/* Are enough calls known on each rank to say how long its pauses are? */
static bool are_pauses_known(const struct hang_scene *scene, const struct job_comm *comm)
{
	enum { CALLS_LEAST = 4 };

	for (uint32_t i = 0; i < comm->seat_count; i++)
		if (scene->seats[comm->seats[i]].flight_count < CALLS_LEAST)
			return false;
	return true;
}

/* Flights are sorted by communicator: each seat gets its range of them. */
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

/* Where a rank was in a collective when another one in it died, ago_ns ago. */
enum hung_before {
	HUNG_NOT = 0,
	HUNG_IN_IT = 1,	 /* for long */
	HUNG_ABSENT = 2, /* it still has not called it */
};

static enum hung_before has_hung_before(const struct hang_scene *scene, uint32_t s,
					const struct recording_flight *with, uint64_t ago_ns)
{
	const struct recording_flight *flights = hang_flights(scene, s);
	const struct recording_comm *comm = scene->seats[s].comm;
	uint32_t process = scene->job->seats[s].process;
	uint64_t called = is_replay(with) ? comm->counts.replays : comm->counts.collectives;

	for (size_t i = 0; i < scene->seats[s].flight_count; i++)
		if (op_is_collective(flights[i].op.function) &&
		    flights[i].op.match == with->op.match &&
		    is_replay(&flights[i]) == is_replay(with))
			return flights[i].op.state != OP_DONE &&
					       hang_ago(scene, process,
							flight_since_ns(&flights[i])) >=
						       scene->hang_ns + ago_ns
				       ? HUNG_IN_IT
				       : HUNG_NOT;
	return comm->has_counts && !comm->is_unplaced && called < with->op.match ? HUNG_ABSENT
										 : HUNG_NOT;
}

/* Did all living ranks hang with this one, whose process is dead, before its death? ABSENT: because of one of them. */
static enum hung_before has_hung_together(const struct hang_scene *scene, uint32_t seat)
{
	const struct job *job = scene->job;
	const struct job_comm *comm = &job->comms[job->seats[seat].comm];
	const struct recording_flight *flights = hang_flights(scene, seat);
	uint64_t end_ns = recording_last_ns(hang_process(scene, seat));
	uint64_t ago_ns = hang_ago(scene, job->seats[seat].process, end_ns);

	for (size_t f = 0; f < scene->seats[seat].flight_count; f++) {
		const struct op_record *op = &flights[f].op;
		uint64_t since_ns = flight_since_ns(&flights[f]);
		enum hung_before all = HUNG_NOT;

		if (!op_is_collective(op->function) || op->match == 0 || op->state < OP_ISSUED ||
		    op->state > OP_RUNNING || since_ns == 0 || since_ns + scene->hang_ns > end_ns)
			continue;
		for (uint32_t i = 0; i < comm->seat_count; i++) {
			enum hung_before one;

			if (hang_process(scene, comm->seats[i])->life != RECORDING_ALIVE)
				continue;
			one = has_hung_before(scene, comm->seats[i], &flights[f], ago_ns);
			all = one == HUNG_NOT || one > all ? one : all;
			if (one == HUNG_NOT)
				break;
		}
		/* Called by all: if its end would not be recorded, they may have left it long ago. */
		if (all == HUNG_ABSENT ||
		    (all == HUNG_IN_IT && hang_flight_kind(scene, seat, f) == FLIGHT_OPEN))
			return all;
	}
	return HUNG_NOT;
}

/* A watchdog, or a launcher, does not end all ranks of a hung job at once: find those that only waited. */
static void forgive_victims(struct hang_scene *scene)
{
	const struct job *job = scene->job;

	for (uint32_t p = 0; p < job->recording->count; p++) {
		struct hang_process *of = &scene->processes[p];
		bool is_known = recording_end_is_known(job->recording->processes[p]);

		for (uint32_t s = job->first_seat[p];
		     s < job->first_seat[p + 1] && of->is_dead_for_sure && is_known; s++) {
			enum hung_before hung = has_hung_together(scene, s);

			of->has_died_waiting |= hung != HUNG_NOT;
			if (hung == HUNG_ABSENT) {
				of->life = HANG_RUNS;
				of->is_dead_for_sure = false;
			}
		}
		if ((of->life == HANG_DEAD || of->life == HANG_STOPPED) &&
		    scene->processes[of->component].gone == HANG_NOBODY)
			scene->processes[of->component].gone = p;
	}
}

/* What a seat reports of its operations: from its communicator's flags, or from an operation. */
static uint32_t shown_by(const struct hang_scene *scene, uint32_t s)
{
	const struct hang_seat *seat = &scene->seats[s];
	const struct recording_flight *flights = hang_flights(scene, s);
	uint32_t shown = seat->comm->info.flags & ~HANG_SHOWS_LAUNCHES;

	for (size_t i = 0; i < seat->flight_count; i++) {
		shown |= flights[i].op.kernels_started > 0 ? COMM_FLAG_SEES_KERNELS : 0;
		shown |= flights[i].proxy_count > 0 ? COMM_FLAG_SEES_PROXIES : 0;
		shown |= flights[i].op.flags & OP_FLAG_CUDA_EVENT ? HANG_SHOWS_LAUNCHES : 0;
	}
	return shown;
}

/* A communicator on which nothing has run yet would report what others of the same process report, if the
 * same events are on. */
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

/* Which seats count for what the ranks are in. */
enum asked {
	ASK_USUAL = 0,
	ASK_STOPPED = 1, /* these too */
	ASK_CALLED =
		2, /* and those whose call NCCL has not launched: it waits for others to connect */
};

/* Is its GPU or its network side known to be in its front, not only its calls? */
static bool is_surely_inside(const struct hang_seat *seat)
{
	return seat->front != NULL && !seat->is_over &&
	       (seat->presence == HANG_INSIDE ||
		(seat->presence == HANG_UNSURE && !seat->is_by_calls &&
		 seat->front->op.state == OP_RUNNING));
}

/*
 * Calls show that ranks are in a collective if another one has not made the call. But if all have, and some GPUs are known
 * not to have reached it, those of the others need not have, either.
 */
static bool do_calls_suffice(const struct hang_scene *scene, const struct job_comm *comm)
{
	uint64_t called_by_all = is_any_gone(scene, comm) ? 0 : fewest_calls(scene, comm);
	bool is_any_launched = false;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->front == NULL || seat->is_over)
			continue;
		if (is_surely_inside(seat) || seat->presence == HANG_ISSUED || seat->is_pair ||
		    is_replay(seat->front) || seat->front->op.match > called_by_all)
			return true;
		is_any_launched |= seat->presence == HANG_LAUNCHED;
	}
	return !is_any_launched;
}

/* Does this one show that the collective runs? If execution is never recorded, a call has to suffice. */
static bool is_inside(const struct hang_seat *seat, uint32_t shows, enum asked asked,
		      bool calls_suffice)
{
	const uint32_t shown =
		COMM_FLAG_SEES_KERNELS | COMM_FLAG_SEES_PROXIES | HANG_SHOWS_LAUNCHES;

	if (seat->is_over || seat->front == NULL)
		return false;
	return is_surely_inside(seat) || (seat->is_by_calls && calls_suffice) || !(shows & shown) ||
	       (asked == ASK_CALLED && seat->presence == HANG_ISSUED);
}

static void choose_collective(struct hang_match *match, const struct hang_seat *seat)
{
	bool replay = is_replay(seat->front);

	if (seat->is_pair || (match->is_collective && replay && !match->is_replay))
		return;
	if (!match->is_collective || match->is_replay != replay ||
	    seat->front->op.match < match->match) {
		match->match = seat->front->op.match;
		match->is_replay = replay;
	}
	match->is_collective = true;
}

/* The seat that has been inside for longest: of a collective, and of anything. */
static void note_inside(struct hang_match *match, const struct hang_seat *seat, uint32_t s,
			uint64_t *longest_ns)
{
	*longest_ns = later(*longest_ns, seat->in_ns);
	if (seat->is_pair)
		return;
	match->inside++;
	if (match->first == HANG_NOBODY || seat->in_ns > match->in_ns) {
		match->first = s;
		match->in_ns = seat->in_ns;
	}
}

/* What the ranks that take part are in. Returns how long the longest has been inside. */
static uint64_t survey_members(struct hang_scene *scene, uint32_t c, enum asked asked)
{
	const struct job_comm *comm = &scene->job->comms[c];
	struct hang_match *match = &scene->matches[c];
	bool calls_suffice = do_calls_suffice(scene, comm);
	uint64_t longest_ns = 0;

	*match = (struct hang_match){ .still_ns = UINT64_MAX, .first = HANG_NOBODY };
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t s = comm->seats[i];
		const struct hang_seat *seat = &scene->seats[s];
		enum hang_life life = scene->processes[scene->job->seats[s].process].life;

		if (seat->is_over || (life == HANG_STOPPED && asked == ASK_USUAL))
			continue;
		if (seat->still_ns < match->still_ns)
			match->still_ns = seat->still_ns;
		if (seat->front == NULL)
			continue;
		choose_collective(match, seat);
		if (is_inside(seat, scene->shows[c], asked, calls_suffice))
			note_inside(match, seat, s, &longest_ns);
	}
	match->is_collective &= match->first != HANG_NOBODY;
	return longest_ns;
}

static bool is_known_by_calls(const struct hang_scene *scene, const struct job_comm *comm)
{
	bool is_any = false;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->front == NULL || seat->is_over)
			continue;
		if (!seat->is_by_calls)
			return false;
		is_any = true;
	}
	return is_any;
}

/* How long all ranks have been in the same collective, launched by NCCL, and no GPU is known to have reached it. 0: not
 * the case, or it is not known of any GPU that it has not. */
static uint64_t none_started(struct hang_scene *scene, uint32_t c)
{
	const struct job_comm *comm = &scene->job->comms[c];
	struct hang_match *match = &scene->matches[c];
	uint64_t least_ns = UINT64_MAX, number = 0;
	uint32_t launched = 0;

	if (comm->missing > 0)
		return 0;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct hang_seat *seat = &scene->seats[comm->seats[i]];

		if (seat->front == NULL || seat->is_pair || seat->is_over ||
		    (seat->presence != HANG_LAUNCHED && !seat->is_by_calls) ||
		    (i > 0 && seat->front->op.match != number))
			return 0;
		number = seat->front->op.match;
		launched += seat->presence == HANG_LAUNCHED;
		if (seat->age_ns < least_ns) {
			least_ns = seat->age_ns;
			match->first = comm->seats[i];
		}
	}
	if (launched == 0) {
		match->first = HANG_NOBODY;
		return 0;
	}
	match->is_collective = true;
	match->in_ns = least_ns;
	return least_ns;
}

/* The next level counts if the previous one has no seat. Kernels are launched at most seconds before their GPU
 * reaches them: hosts cannot run further ahead. */
static void take_match(struct hang_scene *scene, uint32_t c)
{
	enum { OVERDUE = 3 };
	const struct job_comm *comm = &scene->job->comms[c];
	struct hang_match *match = &scene->matches[c];
	bool is_resting = false;
	bool has_all_called = comm->nranks != 1 && comm->seat_count > 0 &&
			      !hang_is_past(scene, comm) && take_last_calls(scene, c, &is_resting);
	uint64_t longest_ns = 0;

	for (enum asked asked = ASK_USUAL; asked <= ASK_CALLED && longest_ns == 0; asked++)
		longest_ns = survey_members(scene, c, asked);
	if (comm->nranks == 1 || comm->seat_count == 0 || hang_is_past(scene, comm))
		return;
	if (longest_ns == 0) {
		longest_ns = none_started(scene, c);
		match->unjudged = longest_ns > 0 ? HANG_NONE_STARTED : HANG_JUDGED;
		match->is_overdue = longest_ns / OVERDUE >= scene->hang_ns &&
				    are_pauses_known(scene, comm) &&
				    !is_usual_pause(scene, comm, longest_ns);
	}
	if (longest_ns >= scene->hang_ns && match->still_ns >= scene->hang_ns)
		match->level = HANG_HANGS;
	else if (longest_ns >= scene->pause_ns && match->still_ns >= scene->pause_ns)
		match->level = HANG_PAUSES;
	match->is_by_calls = is_known_by_calls(scene, comm);
	match->is_resting = is_resting;
	if (!match->is_by_calls || is_any_gone(scene, comm))
		return;
	if (has_all_called)
		match->unjudged = HANG_ALL_CALLED;
	else if (match->level == HANG_HANGS && is_usual_pause(scene, comm, match->still_ns))
		match->unjudged = HANG_NOT_BUSY;
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

/* ---- entry points ---------------------------------------------------------------------------- */

static enum status scene_allocate(struct hang_scene *scene)
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
	scene->gpus = calloc(flights + 1, sizeof(*scene->gpus));
	scene->processes = calloc(job->recording->count + 1, sizeof(*scene->processes));
	scene->seats = calloc(job->seat_count + 1, sizeof(*scene->seats));
	scene->matches = calloc(job->comm_count + 1, sizeof(*scene->matches));
	scene->shows = calloc(job->comm_count + 1, sizeof(*scene->shows));
	scene->least = calloc(job->comm_count + 1, sizeof(*scene->least));
	if (!scene->kinds || !scene->gpus || !scene->processes || !scene->seats ||
	    !scene->matches || !scene->shows || !scene->least)
		return ERR_NO_SPACE;
	return OK;
}

enum status hang_scene_make(struct hang_scene *scene, const struct job *job,
			    const struct hang_options *options, bool is_guess)
{
	uint64_t hang_ns = options && options->hang_ns ? options->hang_ns : HANG_DEFAULT_NS;
	enum status status;

	/* If the duration is unknown, the shortest one is used. */
	if (is_guess)
		hang_ns = HANG_GUESS_NS;
	*scene = (struct hang_scene){ .job = job,
				      .hang_ns = hang_ns,
				      .pause_ns = is_guess ? hang_ns : hang_ns / 4,
				      .is_guess = is_guess,
				      .options = options };
	status = scene_allocate(scene);
	if (status == OK)
		status = hang_lives(scene);
	for (uint32_t p = 0; p < job->recording->count && status == OK; p++)
		share_out_flights(scene, p);
	if (status == OK)
		forgive_victims(scene);
	for (uint32_t s = 0; s < job->seat_count && status == OK; s++)
		scene->shows[job->seats[s].comm] |= shown_by(scene, s);
	for (uint32_t p = 0; p < job->recording->count && status == OK; p++)
		share_shown(scene, p);
	for (uint32_t s = 0; s < job->seat_count && status == OK; s++)
		take_evidence(scene, s);
	for (uint32_t s = 0; s < job->seat_count && status == OK; s++)
		take_seat(scene, s);
	for (uint32_t c = 0; c < job->comm_count && status == OK; c++)
		take_fronts_by_calls(scene, c);
	for (uint32_t c = 0; c < job->comm_count && status == OK; c++) {
		take_match(scene, c);
		if (scene->matches[c].level != HANG_MOVES)
			status = take_waits(scene, c);
	}
	if (status != OK)
		hang_scene_release(scene);
	return status;
}

/* Was it active shortly before its snapshot, or others of its communicators after it? */
static bool is_outdated(const struct hang_scene *scene, uint32_t p)
{
	const struct job *job = scene->job;
	uint64_t lag_ns = scene->processes[p].lag_ns;

	for (uint32_t s = job->first_seat[p]; s < job->first_seat[p + 1]; s++) {
		const struct job_comm *comm = &job->comms[job->seats[s].comm];

		if (scene->seats[s].is_over)
			continue;
		if (scene->seats[s].still_ns < lag_ns + scene->pause_ns)
			return true;
		for (uint32_t i = 0; i < comm->seat_count; i++)
			if (!scene->seats[comm->seats[i]].is_over &&
			    scene->seats[comm->seats[i]].still_ns < lag_ns)
				return true;
	}
	return false;
}

size_t hang_count_torn(const struct job *job)
{
	size_t count = 0;

	for (size_t p = 0; p < job->recording->count; p++)
		count += is_torn(job->recording->processes[p]);
	return count;
}

enum status hang_find_outdated(const struct job *job, const struct hang_options *options,
			       bool *is_old, size_t *count, size_t *torn)
{
	struct hang_scene scene;
	enum status status = hang_scene_make(&scene, job, options, false);

	*count = *torn = 0;
	if (status != OK)
		return status;
	for (uint32_t p = 0; p < job->recording->count; p++) {
		const struct recording_process *process = job->recording->processes[p];

		is_old[p] = ((scene.processes[p].lag_ns > 0 && process->life == RECORDING_ALIVE) ||
			     is_torn(process)) &&
			    is_outdated(&scene, p);
		*count += is_old[p];
		*torn += is_old[p] && is_torn(process);
	}
	hang_scene_release(&scene);
	return OK;
}

void hang_scene_release(struct hang_scene *scene)
{
	for (size_t s = 0; scene->seats != NULL && s < scene->job->seat_count; s++)
		free(scene->seats[s].waits);
	free(scene->processes);
	free(scene->seats);
	free(scene->matches);
	free(scene->shows);
	free(scene->least);
	free(scene->kinds);
	free(scene->gpus);
	free(scene->first_kind);
	*scene = (struct hang_scene){ .job = NULL };
}
