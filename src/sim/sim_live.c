/*
 * Starts, observes and ends the ranks of a job.
 *
 * Nothing may be left behind: children die with their parent (PR_SET_PDEATHSIG), exit when the board says so, and
 * are killed if they do not. Signals that would end the job only reach the parent and are passed on through the
 * board.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/order.h"
#include "common/text.h"
#include "sim/host.h"
#include "sim/sim_cuda.h"
#include "sim/sim_engine.h"
#include "sim/sim_job.h"

/*
 * Memory shared by the ranks of a live job. A collective has a seat where each rank counts its arrival; so does a
 * Send with its Recv. Seats are reused:
 *
 *	arrived	total arrivals: the n-th use is complete at n * expected
 *	last_ns	the latest arrival: times only grow, so it is never cleared
 *
 * No rank reaches the next use of a seat before the previous one is complete, because none is ahead by as many
 * calls as there are seats.
 */

enum { SIM_SEATS = 64, SIM_PAIR_SEATS = 64 };

enum sim_board_stop {
	SIM_STOP_INTERRUPTED = 1, /* interrupted: tear down and exit */
	SIM_STOP_HUNG = 2,	  /* it hangs and was observed long enough: exit without teardown */
};

struct sim_seat {
	uint64_t arrived;
	uint64_t last_ns;
};

/* Written by a rank, read by the first process. */
struct sim_board_rank {
	uint64_t slip_ns; /* how far it is behind the score */
	uint64_t issued[SIM_ROLES];
	uint64_t in_flight[SIM_ROLES]; /* at its end */
	uint64_t hidden[SIM_ROLES];    /* at its end */
	uint32_t is_ready;
	uint32_t is_over; /* it has reported how it ended */
	uint32_t end;	  /* enum sim_result_end */
	char trouble[256];
};

struct sim_board {
	size_t bytes;
	uint64_t start_ns; /* wall time of the job's time 0; 0: wait */
	uint32_t stop;	   /* enum sim_board_stop: all ranks exit; 0: continue */
	size_t ranks_offset;
	size_t seats_offset;
};

/* One rank of a live job: executes its part of the score on a host that behaves like NCCL. */

struct sim_worker {
	const struct sim_job *job;
	const struct sim_score *score;
	struct sim_board *board;
	struct host *host; /* of this process: shared by its ranks */
	int rank;
	bool may_abort; /* in a hung job whose process stays alive: tear its communicators down */
	bool is_over;	/* result of sim_worker_run(), if that ran on another thread */
};

/* Only these roles have point-to-point sends. */
static bool has_pairs(const struct sim_comm *comm)
{
	return comm->role == SIM_PIPELINE || comm->role == SIM_EXPERT;
}

static size_t seats_of(const struct sim_comm *comm)
{
	size_t nranks = (size_t)comm->nranks;

	return SIM_SEATS + (has_pairs(comm) ? nranks * nranks * SIM_PAIR_SEATS : 0);
}

/* Index of a communicator's first seat. */
static size_t first_seat(const struct sim_job *job, int comm)
{
	size_t seats = 0;

	for (int i = 0; i < comm; i++)
		seats += seats_of(&job->comms[i]);
	return seats;
}

/* Shared with all processes forked later. ERR_NO_SPACE, ERR_SYSTEM. */
static enum status sim_board_new(struct sim_board **board, const struct sim_job *job)
{
	size_t ranks = (size_t)job->world * sizeof(struct sim_board_rank);
	size_t seats = first_seat(job, job->comm_count) * sizeof(struct sim_seat);
	size_t bytes = sizeof(struct sim_board) + ranks + seats;
	struct sim_board *made =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		return ERR_SYSTEM;
	made->bytes = bytes;
	made->ranks_offset = sizeof(struct sim_board);
	made->seats_offset = made->ranks_offset + ranks;
	*board = made;
	return OK;
}

static void sim_board_free(struct sim_board *board)
{
	if (board)
		munmap(board, board->bytes);
}

static struct sim_board_rank *sim_board_rank(struct sim_board *board, int rank)
{
	return (struct sim_board_rank *)(void *)((char *)board + board->ranks_offset) + rank;
}

static struct sim_seat *seat_at(struct sim_board *board, size_t index)
{
	return (struct sim_seat *)(void *)((char *)board + board->seats_offset) + index;
}

/* The seat of a communicator's n-th collective. */
static struct sim_seat *sim_board_seat(struct sim_board *board, const struct sim_job *job, int comm,
				       uint64_t match)
{
	return seat_at(board, first_seat(job, comm) + (match - 1) % SIM_SEATS);
}

/* The seat of the n-th Send from one rank to another of a communicator, and its Recv. */
static struct sim_seat *sim_board_pair(struct sim_board *board, const struct sim_job *job, int comm,
				       int from, int to, uint64_t match)
{
	size_t pair = (size_t)from * (size_t)job->comms[comm].nranks + (size_t)to;

	return seat_at(board, first_seat(job, comm) + SIM_SEATS + pair * SIM_PAIR_SEATS +
				      (match - 1) % SIM_PAIR_SEATS);
}

static void sim_board_arrive(struct sim_seat *seat, uint64_t ns)
{
	uint64_t last = load_relaxed(&seat->last_ns);

	while (last < ns && !swap_if_acquire(&seat->last_ns, &last, ns))
		;
	/* The time is written before the count. Pairs with sim_board_is_full(). */
	add_release(&seat->arrived, 1);
}

/* Whether all ranks have arrived for this use of the seat; then *last_ns is the last arrival. */
static bool sim_board_is_full(const struct sim_seat *seat, uint64_t match, unsigned int seats,
			      unsigned int expected, uint64_t *last_ns)
{
	uint64_t uses = (match - 1) / seats + 1;

	/* Pairs with sim_board_arrive(). */
	if (load_acquire(&seat->arrived) < uses * expected)
		return false;
	*last_ns = load_relaxed(&seat->last_ns);
	return true;
}

/*
 * The score says when each call is made and when its kernel starts; the board says when the other ranks have
 * arrived. If they arrive later than in the score, the call is late, and so is everything after it: slip_ns on the
 * board says by how much. Calls that follow the end of others in the score are made after their real end, so that a
 * rank never runs ahead of one that is stuck.
 */

#define NEVER_NS (UINT64_C(1) << 62)

/* How often a rank polls. Hundreds of ranks share a few CPUs, so each polls less often then. */
enum {
	NAP_NS = 500000,
	PART_POLL_NS = 1000000,
	LONG_POLL_NS = 50000000,
	MANY_RANKS = 32,
	PATIENCE = 64,
};

struct part;

/* A call that was made. */
struct turn {
	const struct sim_play *play;
	struct part *part;
	struct sim_seat *seat;
	unsigned int seats, expected;
	uint64_t planned_ns; /* wall time at which all should have arrived ... */
	uint64_t slip_ns;    /* ... with this slip */
	uint64_t end_ns;     /* wall time; 0: not known yet. Written by the host's threads */
};

struct part {
	const struct sim_worker *worker;
	const struct sim_score_rank *score;
	struct sim_board_rank *mine;
	struct host_comm *comms[SIM_ROLES];
	struct host_graph *graphs[SIM_ROLES]; /* of its iteration; NULL: none yet */
	struct host_user user;
	struct turn *turns; /* one per play */
	struct host_op *ops;
	struct host_group group; /* of the current launch */
	size_t done;		 /* all turns before this one are over */
	pthread_t caller;	 /* of a call that does not return */
	bool has_caller;
};

static bool is_stopped(const struct part *part)
{
	return load_relaxed(&part->worker->board->stop) != 0;
}

static uint64_t poll_interval(const struct part *part, uint64_t ns)
{
	uint64_t world = (uint64_t)part->worker->job->world;

	return world > MANY_RANKS ? ns * world / MANY_RANKS : ns;
}

static void nap_ns(uint64_t ns)
{
	struct timespec pause = { .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };

	nanosleep(&pause, NULL);
}

/* False: the job was stopped meanwhile. Sleeps in intervals to notice that. */
static bool wait_until(const struct part *part, uint64_t wall_ns)
{
	for (;;) {
		uint64_t now = host_clock_ns();

		if (is_stopped(part))
			return false;
		if (now >= wall_ns)
			return true;
		nap_ns(wall_ns - now < LONG_POLL_NS ? wall_ns - now
						    : poll_interval(part, LONG_POLL_NS));
	}
}

/* When to poll a call again: nothing happens before its planned time, and one that is late already may never happen.
 * Progress is noticed within a PATIENCE-th of the delay. */
static uint64_t next_poll(const struct turn *turn, uint64_t now_ns, uint64_t interval_ns)
{
	uint64_t late_ns = now_ns > turn->planned_ns ? (now_ns - turn->planned_ns) / PATIENCE : 0;
	uint64_t poll_ns = now_ns + poll_interval(turn->part, interval_ns);

	poll_ns += late_ns < LONG_POLL_NS ? late_ns : LONG_POLL_NS;
	return turn->planned_ns > poll_ns ? turn->planned_ns : poll_ns;
}

/* Called by the host's threads: have the other ranks arrived? */
static bool gate(void *arg, uint64_t now_ns, struct host_gate *answer)
{
	struct turn *turn = arg;
	const struct sim_play *play = turn->play;
	uint64_t slip_ns = load_relaxed(&turn->part->mine->slip_ns), last_ns;

	answer->poll_ns = next_poll(turn, now_ns, PART_POLL_NS);
	if (!sim_board_is_full(turn->seat, play->match, turn->seats, turn->expected, &last_ns))
		return false;
	/* It can be in the future: arrivals are announced when a call is made. */
	if (last_ns > now_ns) {
		answer->poll_ns = last_ns;
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

/* Waits until all calls are over that are over by then in the score. False: stopped. */
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
			uint64_t now_ns = host_clock_ns();

			if (!wait_until(part, next_poll(turn, now_ns, NAP_NS)))
				return false;
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

/* Each communicator of a rank has its own, as their kernels run at the same time. */
static void *stream_of(int rank, int role)
{
	uintptr_t number = (uintptr_t)rank * SIM_ROLES + (uintptr_t)role;

	return (void *)((uintptr_t)0x5500000000 + number * 0x1000);
}

static struct host_op make_op(struct part *part, struct turn *turn)
{
	const struct sim_play *play = turn->play;
	struct host_op op = host_op_make(part->comms[play->role], (enum op_function)play->function,
					 play->count, (enum op_datatype)play->datatype);

	op.algorithm = play->algorithm;
	op.protocol = play->protocol;
	op.user_tag = part->worker->job->options.tags[play->role];
	op.stream = stream_of(part->worker->rank, play->role);
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
	op.chunk_bytes = op.step_bytes = play->step_bytes ? play->step_bytes : 1;
	op.start_skew_ns = 100;
	op.duration_ns = play->duration_ns;
	/* A stuck call does not wait for others: where it stops has been computed. */
	op.gate = play->stuck == HOST_STUCK_NONE ? gate : NULL;
	op.gate_arg = turn;
	op.stuck = play->stuck;
	op.stuck_kernels = play->stuck_kernels;
	return op;
}

/* The calls from `first` on that are one launch; returns how many. */
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

/* The rank's last call, on a separate thread: this one must notice the end of the job. */
static void *call_for_ever(void *arg)
{
	(void)play_group(arg);
	return NULL;
}

/* It does not run now, so no other rank waits for it. */
static enum status play_capture(struct part *part, size_t at)
{
	const struct sim_play *play = &part->score->plays[at];
	struct host_graph **graph = &part->graphs[play->role];
	struct turn *turn = &part->turns[at];
	enum status status = OK;

	*turn = (struct turn){ .play = play, .part = part, .end_ns = host_clock_ns() };
	part->mine->issued[play->role]++;
	part->ops[0] = make_op(part, turn);
	part->ops[0].gate = NULL;
	if (*graph == NULL)
		status = host_graph_new(part->worker->host, graph);
	if (status != OK)
		return status;
	part->group = (struct host_group){ .ops = part->ops, .count = 1, .capture = *graph };
	return host_play_group(&part->user, &part->group);
}

static enum status play_launch(struct part *part, size_t first, size_t count)
{
	const struct sim_worker *worker = part->worker;
	uint64_t start = worker->board->start_ns, slip_ns = load_relaxed(&part->mine->slip_ns);

	for (size_t i = 0; i < count; i++) {
		const struct sim_play *play = &part->score->plays[first + i];
		struct turn *turn = &part->turns[first + i];
		uint64_t arrive_ns = start + play->start_ns + slip_ns, now = host_clock_ns();

		*turn = (struct turn){ .play = play, .part = part, .slip_ns = slip_ns };
		turn->planned_ns = start + play->begin_ns + slip_ns;
		find_seat(turn, worker);
		part->ops[i] = make_op(part, turn);
		part->ops[i].start_ns = play->start_ns ? arrive_ns : NEVER_NS;
		part->mine->issued[play->role] += !play->is_hidden;
		if (play->start_ns)
			sim_board_arrive(turn->seat, arrive_ns > now ? arrive_ns : now);
	}
	if (part->score->plays[first].phase == SIM_REPLAYED)
		return host_graph_replay_one(part->graphs[part->score->plays[first].role],
					     part->score->plays[first].captured, part->ops);
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
		if ((play->phase == SIM_CAPTURED ? play_capture(part, first)
						 : play_launch(part, first, count)) != OK)
			return;
	}
}

/* ---- begin and end --------------------------------------------------------------------------- */

/* The host of this rank's process. ERR_NO_SPACE. */
static enum status sim_worker_host(struct host **host, const struct sim_job *job, int rank,
				   const char *plugin)
{
	struct sim_identity identity;
	struct host_config config = {
		.release = job->options.release,
		.plugin = plugin,
		.time = HOST_TIME_REAL,
		.seed = job->options.seed + (uint64_t)rank,
		.watcher = &sim_cuda_watcher,
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
						    .rank = member->rank,
						    .gpu = worker->rank %
							   worker->job->options.gpus };
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

/* Reports on the board how it ended. */
static void part_report(struct part *part)
{
	const struct sim_score_rank *score = part->score;
	enum sim_result_end end = SIM_RESULT_FINISHED;
	uint64_t now = host_clock_ns();

	for (size_t i = 0; i < score->count; i++)
		if (part->turns[i].play && !score->plays[i].is_hidden &&
		    !is_over(&part->turns[i], now))
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
	/* Pairs with readers of the board after the rank's end. */
	store_release(&part->mine->is_over, 1);
}

/*
 * A hung job is killed without teardown, as schedulers do: what is in flight remains visible. An interrupted one is
 * torn down as far as possible.
 */
static bool is_torn_down(const struct part *part)
{
	return part->worker->may_abort ||
	       load_relaxed(&part->worker->board->stop) == SIM_STOP_INTERRUPTED;
}

static void end_comms(struct part *part, bool is_finished)
{
	for (int role = 0; role < SIM_ROLES && (is_finished || is_torn_down(part)); role++)
		host_graph_free(part->graphs[role]);
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

static bool part_begin(struct part *part)
{
	const struct sim_worker *worker = part->worker;
	enum status status = has_room(part) ? make_comms(part) : ERR_NO_SPACE;

	if (status != OK)
		text_copy(part->mine->trouble, sizeof(part->mine->trouble), status_text(status));
	else if (host_plugin(worker->host)->version == 0)
		text_copy(part->mine->trouble, sizeof(part->mine->trouble),
			  host_load_error(worker->host));
	/* Pairs with the first process, which reads the failure. */
	store_release(&part->mine->is_ready, 1);
	while (load_acquire(&worker->board->start_ns) == 0) {
		if (is_stopped(part))
			return false;
		nap_ns(poll_interval(part, NAP_NS));
	}
	return status == OK;
}

/* Runs to the end; true if everything that began has ended. */
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

/*
 * Runs until the end of the rank, of the job, or until the board says stop. The result is on the board. False: its
 * communicators still exist, and so does what they use.
 */
static bool sim_worker_run(const struct sim_worker *worker)
{
	struct part *part = calloc(1, sizeof(*part));
	bool is_finished = false;

	if (part == NULL)
		return true;
	part->worker = worker;
	part->score = &worker->score->ranks[worker->rank];
	part->mine = sim_board_rank(worker->board, worker->rank);
	if (part_begin(part)) {
		is_finished = play_to_end(part);
		part_report(part);
	}
	end_comms(part, is_finished);
	/* The host's threads still use a stuck call: it stays. */
	if (!is_finished && !is_torn_down(part))
		return false;
	if (part->has_caller)
		pthread_join(part->caller, NULL);
	free(part->turns);
	free(part->ops);
	free(part);
	return true;
}

enum { POLL_NS = 20000000, MANY_PROCESSES = 32 };
#define GRACE_NS UINT64_C(3000000000)
#define KILL_SLACK_NS UINT64_C(1000000000)

struct live_run {
	const struct sim_job *job;
	const struct sim_live *live;
	struct sim_score score;
	struct sim_board *board;
	sigset_t signals; /* that the parent waits for */
	sigset_t before;
	pid_t parent;
	int ranks_each; /* per process */
	int processes;
	pid_t *pids;	  /* by process, like the next four */
	pid_t *children;  /* the same, 0 once gone */
	int *exits;	  /* status from waitpid() */
	bool *is_killed;  /* by a fault */
	bool *is_stopped; /* by a fault */
	int left;	  /* children still running */
	uint64_t lost_ns; /* when a child exited unexpectedly; 0: none did */
	uint64_t
		deadline_ns; /* after a child has gone: until when the others are observed; 0: none has */
	bool was_stopped; /* by a signal */
	bool has_hosts;	  /* processes have the host name of their node */
	char *failed;
	size_t failed_size;
};

static enum status run_fail(struct live_run *run, enum status status, const char *what)
{
	text_copy(run->failed, run->failed_size, what);
	return status;
}

/* ---- environment ----------------------------------------------------------------------------- */

static bool set_number(const char *name, long long number)
{
	char text[24];

	text_format(text, sizeof(text), "%lld", number);
	return setenv(name, text, 1) == 0;
}

/* Common to all ranks. */
static bool set_job_environment(const struct live_run *run)
{
	const struct sim_options *options = &run->job->options;
	bool is_set = set_number("WORLD_SIZE", run->job->world) &&
		      set_number("LOCAL_WORLD_SIZE", options->gpus);
	char job[40];

	text_format(job, sizeof(job), "sim-%llu", (unsigned long long)options->seed);
	is_set = is_set && setenv("RINGSIDE_JOB", job, 0) == 0;
	if (run->live->directory)
		is_set = is_set && setenv("RINGSIDE_DIR", run->live->directory, 1) == 0;
	if (run->live->mode)
		is_set = is_set && setenv("RINGSIDE_MODE", run->live->mode, 1) == 0;
	/* Many regions must fit into memory, and none of them gets full. */
	if (run->processes > MANY_PROCESSES)
		is_set = is_set && setenv("RINGSIDE_BUFFER", "256KiB", 0) == 0;
	if (options->is_times_said) {
		const char *graphs = sim_graph_times_name(options->graph_times);

		text_format(job, sizeof(job), "%s%s%s", sim_times_name(options->times),
			    graphs[0] != '\0' ? "," : "", graphs);
		is_set = is_set && setenv("RINGSIDE_TIMES", job, 1) == 0;
	}
	return is_set;
}

/* A separate region directory for this node. */
static bool set_node_regions(const char *regions, int node)
{
	char path[4096];

	return text_format(path, sizeof(path), "%s/node%04d", regions, node) &&
	       (mkdir(path, 0700) == 0 || errno == EEXIST) && setenv("RINGSIDE_SHM", path, 1) == 0;
}

static bool set_rank_environment(const struct live_run *run, int rank)
{
	const struct sim_job *job = run->job;
	const char *regions = run->live->regions;

	return set_number("RANK", rank) && set_number("LOCAL_RANK", rank % job->options.gpus) &&
	       set_number("GROUP_RANK", sim_job_node(job, rank)) &&
	       (regions == NULL || set_node_regions(regions, sim_job_node(job, rank)));
}

/* ---- host names ------------------------------------------------------------------------------- */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_written = fd != -1 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd != -1)
		close(fd);
	return is_written;
}

static void say_host(int node, char *name, size_t size)
{
	text_format(name, size, "node%04d", node);
}

/* A host name of its own for this process, as on a node. Whoever is not root has that in a user namespace, as the same user. */
static bool set_host(int node)
{
	char name[16], users[48], groups[48];

	text_format(users, sizeof(users), "%u %u 1", getuid(), getuid());
	text_format(groups, sizeof(groups), "%u %u 1", getgid(), getgid());
	if (unshare(CLONE_NEWUTS) == -1 &&
	    (unshare(CLONE_NEWUSER | CLONE_NEWUTS) == -1 ||
	     !write_text("/proc/self/setgroups", "deny") ||
	     !write_text("/proc/self/uid_map", users) || !write_text("/proc/self/gid_map", groups)))
		return false;
	say_host(node, name, sizeof(name));
	return sethostname(name, strlen(name)) == 0;
}

/* Half of it is worse than nothing, so a child tries. */
static bool can_set_host(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(set_host(0) ? 0 : 1);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* ---- ranks as processes ---------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	struct sim_worker *worker = arg;

	worker->is_over = sim_worker_run(worker);
	return NULL;
}

/* The ranks of this process; true if nothing of them is left. */
static bool run_ranks(struct live_run *run, struct host *host, int first)
{
	struct sim_worker workers[SIM_GPUS_MAX];
	pthread_t threads[SIM_GPUS_MAX];
	bool is_over = true;

	for (int i = 0; i < run->ranks_each; i++) {
		workers[i] = (struct sim_worker){ .job = run->job,
						  .score = &run->score,
						  .board = run->board,
						  .host = host,
						  .rank = first + i };
		if (i > 0 && pthread_create(&threads[i], NULL, thread_main, &workers[i]) != 0)
			_exit(1);
	}
	(void)thread_main(&workers[0]);
	for (int i = 0; i < run->ranks_each; i++) {
		if (i > 0)
			pthread_join(threads[i], NULL);
		is_over = is_over && workers[i].is_over;
	}
	return is_over;
}

static void child_main(struct live_run *run, int process)
{
	int rank = process * run->ranks_each;
	struct sim_board_rank *mine = sim_board_rank(run->board, rank);
	struct host *host;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
	if (getppid() != run->parent)
		_exit(1);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigprocmask(SIG_SETMASK, &run->before, NULL);
	if ((run->has_hosts && !set_host(sim_job_node(run->job, rank))) ||
	    !set_rank_environment(run, rank) ||
	    sim_worker_host(&host, run->job, rank, run->live->plugin) != OK) {
		text_copy(mine->trouble, sizeof(mine->trouble),
			  "out of memory, no host name, or no directory for its region");
		store_release(&mine->is_ready, 1);
		_exit(1);
	}
	if (!run_ranks(run, host, rank))
		_exit(0);
	host_free(host);
	exit(0);
}

static enum status start_children(struct live_run *run)
{
	fflush(NULL);
	/* Asked here for the first time, it is the same clock in all children. */
	(void)host_clock_ns();
	for (int process = 0; process < run->processes; process++) {
		pid_t child = fork();

		if (child == -1)
			return run_fail(run, ERR_SYSTEM, "cannot start a process");
		if (child == 0)
			child_main(run, process);
		run->children[process] = run->pids[process] = child;
		run->left++;
	}
	return OK;
}

static bool should_die(const struct live_run *run, int process)
{
	return run->is_killed[process] || load_acquire(&run->board->stop);
}

/* Whether all its ranks have reported how they ended. Pairs with their reports. */
static bool is_reported(const struct live_run *run, int process)
{
	for (int i = 0; i < run->ranks_each; i++)
		if (!load_acquire(
			    &sim_board_rank(run->board, process * run->ranks_each + i)->is_over))
			return false;
	return true;
}

static void note_loss(struct live_run *run)
{
	run->lost_ns = host_clock_ns();
	run->deadline_ns = run->lost_ns + run->job->options.hang_ns;
}

/* Reaps children that have exited. */
static void run_reap(struct live_run *run)
{
	for (int process = 0; process < run->processes; process++) {
		pid_t child = run->children[process];
		int status;

		if (child == 0 || waitpid(child, &status, WNOHANG) != child)
			continue;
		run->children[process] = 0;
		run->exits[process] = status;
		run->left--;
		if (!is_reported(run, process) && !should_die(run, process) && run->lost_ns == 0)
			note_loss(run);
	}
}

/* Sleeps briefly, or until something happens. */
static void run_watch(struct live_run *run)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	int signal_number = sigtimedwait(&run->signals, NULL, &pause);

	if (signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP) {
		run->was_stopped = true;
		store_release(&run->board->stop, SIM_STOP_INTERRUPTED);
	}
	run_reap(run);
}

/* Kills or stops it if a fault says so and the time has come. */
static void hit_faulty(struct live_run *run, int rank, uint64_t now)
{
	uint64_t slip_ns = load_relaxed(&sim_board_rank(run->board, rank)->slip_ns);
	uint64_t at_ns = sim_job_gone_ns(run->job, rank);
	bool is_kill = sim_job_killed_ns(run->job, rank) == at_ns;
	int process = rank / run->ranks_each;
	bool *is_hit = is_kill ? &run->is_killed[process] : &run->is_stopped[process];

	if (at_ns == UINT64_MAX || *is_hit || run->children[process] == 0 ||
	    now < run->board->start_ns + at_ns + slip_ns)
		return;
	*is_hit = true;
	kill(run->children[process], is_kill ? SIGKILL : SIGSTOP);
	if (run->score.end_ns > at_ns)
		run->deadline_ns = now + run->score.end_ns - at_ns + KILL_SLACK_NS;
}

static void hit_all_faulty(struct live_run *run)
{
	uint64_t now = host_clock_ns();

	for (size_t i = 0; i < run->job->options.fault_count; i++)
		hit_faulty(run, run->job->options.faults[i].rank, now);
}

/* Waits until every rank has its plugin; otherwise one line says what is wrong. */
static enum status wait_ready(struct live_run *run)
{
	for (int rank = 0; rank < run->job->world; rank++) {
		struct sim_board_rank *one = sim_board_rank(run->board, rank);

		while (!load_acquire(&one->is_ready) && !load_relaxed(&run->board->stop)) {
			run_watch(run);
			if (run->lost_ns != 0)
				return run_fail(run, ERR_GONE, "a rank exited before it started");
		}
		if (one->trouble[0] != '\0')
			return run_fail(run, ERR_UNKNOWN, one->trouble);
	}
	return OK;
}

/*
 * Waits until all have exited. After an unexpected exit of a rank the others are observed as long as any hung job;
 * after a fault that killed one, as long as the score says, and a little longer: it may have died earlier in its
 * work than planned.
 */
static void watch_children(struct live_run *run)
{
	while (run->left > 0) {
		run_watch(run);
		hit_all_faulty(run);
		if (load_relaxed(&run->board->stop))
			return;
		if (run->deadline_ns != 0 && host_clock_ns() > run->deadline_ns)
			store_release(&run->board->stop, SIM_STOP_HUNG);
	}
}

static void signal_all(const struct live_run *run, int signal_number)
{
	for (int process = 0; process < run->processes; process++)
		if (run->children[process])
			kill(run->children[process], signal_number);
}

/* They were asked to exit; some may have to be killed. */
static void end_children(struct live_run *run)
{
	uint64_t start = host_clock_ns();
	bool has_killed = false;

	if (!load_relaxed(&run->board->stop))
		store_release(&run->board->stop, SIM_STOP_INTERRUPTED);
	signal_all(run, SIGCONT);
	while (run->left > 0) {
		run_watch(run);
		if (has_killed || host_clock_ns() < start + GRACE_NS)
			continue;
		signal_all(run, SIGKILL);
		has_killed = true;
	}
}

static enum status run_processes(struct live_run *run)
{
	enum status status = start_children(run);

	if (status == OK)
		status = wait_ready(run);
	if (status == OK) {
		/* Pairs with the ranks that wait for it. */
		store_release(&run->board->start_ns, host_clock_ns());
		watch_children(run);
	}
	end_children(run);
	return status;
}

/* ---- ranks as threads ------------------------------------------------------------------------ */

static enum status run_threads(struct live_run *run)
{
	size_t world = (size_t)run->job->world;
	struct sim_worker *workers = calloc(world, sizeof(*workers));
	pthread_t *threads = calloc(world, sizeof(*threads));
	enum status status = workers && threads ? OK : ERR_NO_SPACE;
	struct host *host = NULL;
	size_t started = 0, over = 0;

	set_rank_environment(run, 0);
	if (status == OK)
		status = sim_worker_host(&host, run->job, 0, run->live->plugin);
	for (; started < world && status == OK; started++) {
		workers[started] = (struct sim_worker){ .job = run->job,
							.score = &run->score,
							.board = run->board,
							.host = host,
							.rank = (int)started,
							.may_abort = true };
		if (pthread_create(&threads[started], NULL, thread_main, &workers[started]) != 0) {
			status = run_fail(run, ERR_SYSTEM, "cannot start a thread");
			break;
		}
	}
	if (status == OK)
		status = wait_ready(run);
	if (status == OK)
		store_release(&run->board->start_ns, host_clock_ns());
	while (status == OK && over < started && !run->board->stop) {
		run_watch(run);
		while (over < started &&
		       load_acquire(&sim_board_rank(run->board, (int)over)->is_over))
			over++;
	}
	if (over < started)
		store_release(&run->board->stop, SIM_STOP_INTERRUPTED);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	host_free(host);
	free(workers);
	free(threads);
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum sim_result_end live_end_of(const struct live_run *run, int rank)
{
	const struct sim_board_rank *one = sim_board_rank(run->board, rank);
	int status = run->exits[rank / run->ranks_each];

	/* It went on when all were asked to exit. */
	if (run->is_stopped[rank / run->ranks_each] && one->end == SIM_RESULT_FINISHED)
		return SIM_RESULT_STOPPED;
	if (load_acquire(&one->is_over))
		return (enum sim_result_end)one->end;
	if (!run->live->is_threads && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return SIM_RESULT_KILLED;
	return run->was_stopped ? SIM_RESULT_INTERRUPTED : SIM_RESULT_FAILED;
}

static void fill_result(const struct live_run *run, struct sim_result *result)
{
	uint64_t now = host_clock_ns();

	result->has_hosts = run->has_hosts;
	result->ns = now - run->board->start_ns;
	result->still_ns = run->lost_ns ? run->lost_ns - run->board->start_ns : run->score.still_ns;
	result->iterations = run->score.iterations;
	result->end = run->score.is_hung ? SIM_RESULT_HUNG : SIM_RESULT_FINISHED;
	for (int rank = 0; rank < run->job->world; rank++) {
		const struct sim_board_rank *one = sim_board_rank(run->board, rank);
		struct sim_result_rank *to = &result->ranks[rank];

		to->end = live_end_of(run, rank);
		to->pid = run->pids[rank / run->ranks_each];
		if (to->pid == 0)
			to->pid = run->parent;
		if (run->has_hosts)
			say_host(sim_job_node(run->job, rank), to->host, sizeof(to->host));
		else if (gethostname(to->host, sizeof(to->host) - 1) == -1)
			text_copy(to->host, sizeof(to->host), "unknown");
		for (int role = 0; role < SIM_ROLES; role++) {
			to->issued[role] = one->issued[role];
			to->in_flight[role] = one->in_flight[role];
			to->hidden[role] = one->hidden[role];
		}
		if (to->end == SIM_RESULT_FAILED)
			result->end = SIM_RESULT_FAILED;
		else if (to->end == SIM_RESULT_HUNG && result->end == SIM_RESULT_FINISHED)
			result->end = SIM_RESULT_HUNG;
	}
	if (run->was_stopped && result->end != SIM_RESULT_FAILED)
		result->end = SIM_RESULT_INTERRUPTED;
}

static enum status run_init(struct live_run *run)
{
	size_t processes;
	enum status status;

	run->parent = getpid();
	run->ranks_each = run->live->is_node_processes ? run->job->options.gpus : 1;
	run->processes = run->job->world / run->ranks_each;
	processes = (size_t)run->processes;
	sigemptyset(&run->signals);
	sigaddset(&run->signals, SIGINT);
	sigaddset(&run->signals, SIGTERM);
	sigaddset(&run->signals, SIGHUP);
	sigaddset(&run->signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &run->signals, &run->before);
	run->pids = calloc(processes, sizeof(*run->pids));
	run->children = calloc(processes, sizeof(*run->children));
	run->exits = calloc(processes, sizeof(*run->exits));
	run->is_killed = calloc(processes, sizeof(*run->is_killed));
	run->is_stopped = calloc(processes, sizeof(*run->is_stopped));
	if (!run->pids || !run->children || !run->exits || !run->is_killed || !run->is_stopped)
		return run_fail(run, ERR_NO_SPACE, "cannot prepare the job");
	if (run->live->regions && mkdir(run->live->regions, 0700) == -1 && errno != EEXIST)
		return run_fail(run, ERR_SYSTEM, run->live->regions);
	run->has_hosts = run->live->regions != NULL && can_set_host();
	status = sim_score_init(&run->score, run->job);
	if (status == OK)
		status = sim_board_new(&run->board, run->job);
	if (status == OK && !set_job_environment(run))
		status = ERR_NO_SPACE;
	return status == OK ? OK : run_fail(run, status, "cannot prepare the job");
}

static void run_release(struct live_run *run)
{
	int error = errno;

	sim_score_release(&run->score);
	sim_board_free(run->board);
	free(run->pids);
	free(run->children);
	free(run->exits);
	free(run->is_killed);
	free(run->is_stopped);
	sigprocmask(SIG_SETMASK, &run->before, NULL);
	errno = error;
}

enum status sim_live_run(const struct sim_job *job, const struct sim_live *live,
			 struct sim_result *result, char *failed, size_t size)
{
	struct live_run run = { .job = job, .live = live, .failed = failed, .failed_size = size };
	enum status status;

	text_copy(failed, size, "");
	status = run_init(&run);
	if (status == OK)
		status = live->is_threads ? run_threads(&run) : run_processes(&run);
	if (status == OK)
		fill_result(&run, result);
	run_release(&run);
	return status;
}
