/*
 * The score says when each call is made and when its kernel starts; the board says when the others
 * are there. A call whose others come later than the score says is late itself, and so is
 * everything after it: slip_ns on the board is by how much. Calls that the score makes after the end of others
 * are made after their real end, so that a rank never runs away from one that stands still.
 */
#include "programs/sim/sim_worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/clock.h"
#include "common/order.h"
#include "common/text.h"
#include "programs/sim/sim_identity.h"

#define NEVER_NS (UINT64_C(1) << 62)

/* How often a rank looks whether it can go on. Hundreds of them share a few processors: then each
 * looks more rarely. */
enum { NAP_NS = 500000, LOOK_NS = 1000000, LONG_LOOK_NS = 50000000, MANY_RANKS = 32 };

struct part;

/* A call that was made. */
struct turn {
	const struct sim_play *play;
	struct part *part;
	struct sim_seat *seat;
	unsigned int seats, expected;
	uint64_t planned_ns; /* wall time at which all should be there ... */
	uint64_t slip_ns;    /* ... with this slip */
	uint64_t end_ns;     /* wall time; 0: not known yet. Written by the host's threads */
};

struct part {
	const struct sim_worker *worker;
	const struct sim_score_rank *score;
	struct sim_board_rank *mine;
	struct host_comm *comms[SIM_ROLES];
	struct host_user user;
	struct turn *turns; /* one per play */
	struct host_op *ops;
	struct host_group group; /* of the launch that is being played */
	size_t done;		 /* turns before this one are known to be over */
	pthread_t caller;	 /* of a call that does not come back */
	bool has_caller;
};

static uint64_t wall_now(void)
{
	return clock_system_ns(CLOCK_REALTIME);
}

static bool is_stopped(const struct part *part)
{
	return load_relaxed(&part->worker->board->stop) != 0;
}

static uint64_t patient(const struct part *part, uint64_t ns)
{
	uint64_t world = (uint64_t)part->worker->job->world;

	return world > MANY_RANKS ? ns * world / MANY_RANKS : ns;
}

static void nap(uint64_t ns)
{
	struct timespec pause = { .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };

	nanosleep(&pause, NULL);
}

/* False: the job was stopped meanwhile. Sleeps in pieces, so that it notices. */
static bool wait_until(const struct part *part, uint64_t wall_ns)
{
	for (;;) {
		uint64_t now = wall_now();

		if (is_stopped(part))
			return false;
		if (now >= wall_ns)
			return true;
		nap(wall_ns - now < LONG_LOOK_NS ? wall_ns - now : patient(part, LONG_LOOK_NS));
	}
}

/* Asked by the host's threads: are the others there? */
static bool gate(void *arg, uint64_t now_ns, struct host_gate *answer)
{
	struct turn *turn = arg;
	const struct sim_play *play = turn->play;
	uint64_t slip_ns = load_relaxed(&turn->part->mine->slip_ns), last_ns;
	uint64_t look_ns = now_ns + patient(turn->part, LOOK_NS);

	answer->look_ns = turn->planned_ns > look_ns ? turn->planned_ns : look_ns;
	if (!sim_board_is_full(turn->seat, play->match, turn->seats, turn->expected, &last_ns))
		return false;
	/* It may still be to come: arrivals are announced when a call is made. */
	if (last_ns > now_ns) {
		answer->look_ns = last_ns;
		return false;
	}
	answer->begin_ns = last_ns;
	answer->duration_ns = play->duration_ns;
	answer->period_ns = sim_score_period(play->duration_ns, play->steps);
	if (last_ns > turn->planned_ns && last_ns - turn->planned_ns + turn->slip_ns > slip_ns)
		store_relaxed(&turn->part->mine->slip_ns,
			      last_ns - turn->planned_ns + turn->slip_ns);
	if (play->end_ns != 0)
		store_relaxed(&turn->end_ns, last_ns + play->duration_ns);
	return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Until all calls are over that the score says are over by then. False: stopped. */
static bool wait_for_earlier(struct part *part, size_t next, uint64_t issue_ns)
{
	size_t at = part->done;

	while (at < next) {
		struct turn *turn = &part->turns[at];
		uint64_t end_ns = load_relaxed(&turn->end_ns);

		if (turn->play->end_ns == 0 || turn->play->end_ns > issue_ns) {
			at++;
			continue;
		}
		if (end_ns == 0) {
			if (is_stopped(part))
				return false;
			nap(patient(part, NAP_NS));
			continue;
		}
		if (!wait_until(part, end_ns))
			return false;
		if (at == part->done)
			part->done++;
		at++;
	}
	return true;
}

static void find_seat(struct turn *turn, const struct sim_worker *worker)
{
	const struct sim_play *play = turn->play;
	const struct sim_member *member = &worker->job->members[worker->rank][play->role];

	if (play->function == OP_SEND || play->function == OP_RECV) {
		int from = play->function == OP_SEND ? member->rank : play->peer;
		int to = play->function == OP_SEND ? play->peer : member->rank;

		turn->seat = sim_board_pair(worker->board, worker->job, member->comm, from, to,
					    play->match);
		turn->seats = SIM_PAIR_SEATS;
		turn->expected = 2;
		return;
	}
	turn->seat = sim_board_seat(worker->board, worker->job, member->comm, play->match);
	turn->seats = SIM_SEATS;
	turn->expected = (unsigned int)worker->job->comms[member->comm].nranks;
}

static struct host_op make_op(struct part *part, struct turn *turn)
{
	const struct sim_play *play = turn->play;
	struct host_op op = host_op_make(part->comms[play->role], (enum op_function)play->function,
					 play->count, (enum op_datatype)play->datatype);

	op.algorithm = play->algorithm;
	op.protocol = play->protocol;
	op.warps = 16;
	op.first_channel = play->first_channel;
	op.channels = play->channels ? play->channels : 1;
	op.peer = play->peer != OP_NOBODY ? play->peer : 0;
	op.root = play->root != OP_NOBODY ? play->root : 0;
	op.has_network = play->edge_count > 0;
	op.edge_count = play->edge_count;
	for (unsigned int i = 0; i < play->edge_count; i++)
		op.edges[i] = play->edges[i];
	op.steps = play->steps;
	op.chunk_bytes = play->step_bytes ? play->step_bytes : 1;
	op.start_skew_ns = 100;
	op.duration_ns = play->duration_ns;
	/* What hangs waits for nobody: where its parts stand still was worked out. */
	op.gate = play->stuck == HOST_STUCK_NONE ? gate : NULL;
	op.gate_arg = turn;
	op.stuck = play->stuck;
	op.stuck_kernels = play->stuck_kernels;
	return op;
}

/* The calls from `first` on that are one launch; gives back how many. */
static size_t launch_size(const struct sim_score_rank *score, size_t first)
{
	size_t count = 1;

	while (first + count < score->count &&
	       score->plays[first + count].launch == score->plays[first].launch)
		count++;
	return count;
}

static enum status play_group(struct part *part)
{
	return part->group.count == 1 ? host_play(&part->user, part->ops)
				      : host_play_group(&part->user, &part->group);
}

/* The rank's last call, on a thread of its own: this one has to notice the job's end. */
static void *call_for_ever(void *arg)
{
	(void)play_group(arg);
	return NULL;
}

static enum status play_launch(struct part *part, size_t first, size_t count)
{
	const struct sim_worker *worker = part->worker;
	uint64_t start = worker->board->start_ns, slip_ns = load_relaxed(&part->mine->slip_ns);

	for (size_t i = 0; i < count; i++) {
		const struct sim_play *play = &part->score->plays[first + i];
		struct turn *turn = &part->turns[first + i];
		uint64_t arrive_ns = start + play->start_ns + slip_ns, now = wall_now();

		*turn = (struct turn){ .play = play, .part = part, .slip_ns = slip_ns };
		turn->planned_ns = start + play->begin_ns + slip_ns;
		find_seat(turn, worker);
		part->ops[i] = make_op(part, turn);
		part->ops[i].start_ns = play->start_ns ? arrive_ns : NEVER_NS;
		part->mine->issued[play->role]++;
		if (play->start_ns)
			sim_board_arrive(turn->seat, arrive_ns > now ? arrive_ns : now);
	}
	part->group = (struct host_group){ .ops = part->ops, .count = count };
	if (part->ops[0].stuck == HOST_STUCK_BEFORE_LAUNCH) {
		part->has_caller = pthread_create(&part->caller, NULL, call_for_ever, part) == 0;
		return part->has_caller ? OK : ERR_SYSTEM;
	}
	return play_group(part);
}

/* All calls of the score. */
static void play_all(struct part *part)
{
	const struct sim_score_rank *score = part->score;

	for (size_t first = 0, count; first < score->count; first += count) {
		const struct sim_play *play = &score->plays[first];
		uint64_t slip_ns = load_relaxed(&part->mine->slip_ns);

		count = launch_size(score, first);
		if (!wait_for_earlier(part, first, play->issue_ns) ||
		    !wait_until(part, part->worker->board->start_ns + play->issue_ns + slip_ns))
			return;
		if (play_launch(part, first, count) != OK)
			return;
	}
}

/* ---- begin and end --------------------------------------------------------------------------- */

enum status sim_worker_host(struct host **host, const struct sim_job *job, int rank,
			    const char *plugin)
{
	struct sim_identity identity;
	struct host_config config = {
		.release = job->options.release,
		.plugin = plugin,
		.time = HOST_TIME_REAL,
		.seed = job->options.seed + (uint64_t)rank,
	};

	sim_identity_make(&identity, job, rank);
	config.gpu_offset_ns = (int64_t)(identity.clocks.gpu_ns - identity.clocks.wall_ns);
	return host_new(host, &config);
}

static enum status make_comms(struct part *part)
{
	const struct sim_worker *worker = part->worker;

	for (int role = 0; role < SIM_ROLES; role++) {
		const struct sim_member *member = &worker->job->members[worker->rank][role];
		const struct sim_comm *comm;
		struct host_comm_config config;
		enum status status;

		if (member->comm == -1)
			continue;
		comm = &worker->job->comms[member->comm];
		config = (struct host_comm_config){ .hash = comm->hash,
						    .name = comm->name,
						    .nnodes = comm->nnodes,
						    .nranks = comm->nranks,
						    .rank = member->rank };
		status = host_comm_new(worker->host, &part->comms[role], &config);
		if (status != OK)
			return status;
	}
	return OK;
}

static bool is_over(const struct turn *turn, uint64_t now)
{
	uint64_t end_ns = load_relaxed(&turn->end_ns);

	return end_ns != 0 && end_ns <= now;
}

/* Say on the board how it ended. */
static void report(struct part *part)
{
	const struct sim_score_rank *score = part->score;
	enum sim_result_end end = SIM_RESULT_FINISHED;
	uint64_t now = wall_now();

	for (size_t i = 0; i < score->count; i++)
		if (part->turns[i].play && !is_over(&part->turns[i], now))
			part->mine->in_flight[score->plays[i].role]++;
	for (int role = 0; role < SIM_ROLES; role++)
		if (part->mine->in_flight[role])
			end = SIM_RESULT_HUNG;
	if (score->end == SIM_STOPPED)
		end = SIM_RESULT_STOPPED;
	else if (score->end == SIM_FINISHED &&
		 load_relaxed(&part->worker->board->stop) == SIM_STOP_INTERRUPTED)
		end = SIM_RESULT_INTERRUPTED;
	part->mine->end = (uint32_t)end;
	/* Pairs with whoever reads the board after the rank's end. */
	store_release(&part->mine->is_over, 1);
}

/* A job that hangs is killed where it stands, as schedulers do it: what is in flight can be seen
 * afterwards. One that was interrupted ends as well as it can. */
static bool is_torn_down(const struct part *part)
{
	return part->worker->may_abort ||
	       load_relaxed(&part->worker->board->stop) == SIM_STOP_INTERRUPTED;
}

static void end_comms(struct part *part, bool is_finished)
{
	for (int role = SIM_ROLES; role-- > 0;) {
		struct host_comm *comm = part->comms[role];
		struct host_counts counts;

		if (comm == NULL)
			continue;
		if (is_finished) {
			host_comm_wait(comm, 0);
			host_comm_settle(comm);
		}
		host_comm_counts(comm, &counts);
		part->mine->hidden[role] = counts.hidden;
		if (is_finished)
			host_comm_destroy(comm);
		else if (is_torn_down(part))
			host_comm_abort(comm);
	}
}

static bool has_room(struct part *part)
{
	size_t most = 1;

	for (size_t first = 0, count; first < part->score->count; first += count) {
		count = launch_size(part->score, first);
		most = count > most ? count : most;
	}
	part->turns = calloc(part->score->count + 1, sizeof(*part->turns));
	part->ops = malloc(most * sizeof(*part->ops));
	return part->turns && part->ops;
}

static bool begin(struct part *part)
{
	const struct sim_worker *worker = part->worker;
	enum status status = has_room(part) ? make_comms(part) : ERR_NO_SPACE;

	if (status != OK)
		text_copy(part->mine->trouble, sizeof(part->mine->trouble), status_text(status));
	else if (host_plugin(worker->host)->version == 0)
		text_copy(part->mine->trouble, sizeof(part->mine->trouble),
			  host_load_error(worker->host));
	/* Pairs with the first process, which reads the trouble. */
	store_release(&part->mine->is_ready, 1);
	while (load_acquire(&worker->board->start_ns) == 0) {
		if (is_stopped(part))
			return false;
		nap(patient(part, NAP_NS));
	}
	return status == OK;
}

/* Play to the end; true when everything that was begun has ended. */
static bool play_to_end(struct part *part)
{
	const struct sim_worker *worker = part->worker;

	play_all(part);
	if (part->score->end == SIM_FINISHED && !is_stopped(part))
		return wait_for_earlier(part, part->score->count, UINT64_MAX - 1);
	wait_until(part, worker->board->start_ns + worker->score->end_ns +
				 load_relaxed(&part->mine->slip_ns));
	return false;
}

bool sim_worker_run(const struct sim_worker *worker)
{
	struct part *part = calloc(1, sizeof(*part));
	bool is_finished = false;

	if (part == NULL)
		return true;
	part->worker = worker;
	part->score = &worker->score->ranks[worker->rank];
	part->mine = sim_board_rank(worker->board, worker->rank);
	if (begin(part)) {
		is_finished = play_to_end(part);
		report(part);
	}
	end_comms(part, is_finished);
	/* What hangs is still asked for by the host's threads: it stays. */
	if (!is_finished && !is_torn_down(part))
		return false;
	if (part->has_caller)
		pthread_join(part->caller, NULL);
	free(part->turns);
	free(part->ops);
	free(part);
	return true;
}
