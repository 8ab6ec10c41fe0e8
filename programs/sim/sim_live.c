/*
 * Starting, watching and ending the ranks of a job.
 *
 * Nothing may be left behind: children die with their parent (PR_SET_PDEATHSIG), leave by themselves
 * when the board says so, and are killed when they do not. Signals that would end the job reach the
 * parent alone and become a word on the board.
 */
#include "programs/sim/sim_live.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/order.h"
#include "common/text.h"
#include "programs/sim/sim_board.h"
#include "programs/sim/sim_worker.h"

enum { LOOK_NS = 20000000, MANY_PROCESSES = 32 };
#define GRACE_NS UINT64_C(3000000000)
#define KILL_SLACK_NS UINT64_C(1000000000)

struct troupe {
	const struct sim_job *job;
	const struct sim_live *live;
	struct sim_score score;
	struct sim_board *board;
	sigset_t signals; /* that the parent waits for */
	sigset_t before;
	pid_t parent;
	int ranks_each; /* of a process */
	int processes;
	pid_t *pids;	      /* by process, as the next four */
	pid_t *children;      /* the same, 0 once gone */
	int *exits;	      /* what waitpid() said */
	bool *is_killed;      /* by a fault */
	bool *is_stopped;     /* by a fault */
	int left;	      /* children that are not gone */
	uint64_t lost_ns;     /* when a child went that should not have; 0: none did */
	uint64_t deadline_ns; /* a child is gone: so long the others are watched; 0: none is */
	bool was_stopped;     /* by a signal */
	char *failed;
	size_t failed_size;
};

static enum status fail(struct troupe *troupe, enum status status, const char *what)
{
	text_copy(troupe->failed, troupe->failed_size, what);
	return status;
}

/* ---- environment ----------------------------------------------------------------------------- */

static bool set_number(const char *name, long long number)
{
	char text[24];

	text_format(text, sizeof(text), "%lld", number);
	return setenv(name, text, 1) == 0;
}

static const char *events_of(enum kernel_events kernel)
{
	switch (kernel) {
	case KERNEL_EVENTS_ON:
		return "kernel";
	case KERNEL_EVENTS_SAMPLED:
		return "sample";
	default:
		return "-kernel";
	}
}

/* What all ranks have in common. */
static bool set_job_environment(const struct troupe *troupe)
{
	const struct sim_options *options = &troupe->job->options;
	bool is_set = set_number("WORLD_SIZE", troupe->job->world) &&
		      set_number("LOCAL_WORLD_SIZE", options->gpus);
	char job[40];

	text_format(job, sizeof(job), "sim-%llu", (unsigned long long)options->seed);
	is_set = is_set && setenv("RINGSIDE_JOB", job, 0) == 0;
	if (troupe->live->directory)
		is_set = is_set && setenv("RINGSIDE_DIR", troupe->live->directory, 1) == 0;
	if (troupe->live->mode)
		is_set = is_set && setenv("RINGSIDE_MODE", troupe->live->mode, 1) == 0;
	/* Many regions have to fit into memory, and none of them is filled. */
	if (troupe->processes > MANY_PROCESSES)
		is_set = is_set && setenv("RINGSIDE_BUFFER", "256KiB", 0) == 0;
	if (options->is_kernel_said)
		is_set = is_set && setenv("RINGSIDE_EVENTS", events_of(options->kernel), 1) == 0;
	/* A played job is over before the recorder would begin. */
	if (options->is_kernel_said && options->kernel == KERNEL_EVENTS_SAMPLED)
		is_set = is_set && setenv("RINGSIDE_SAMPLE_AFTER", "0", 0) == 0;
	return is_set;
}

/* A directory for regions of this node alone. */
static bool set_node_regions(const char *regions, int node)
{
	char path[4096];

	return text_format(path, sizeof(path), "%s/node%04d", regions, node) &&
	       (mkdir(path, 0700) == 0 || errno == EEXIST) && setenv("RINGSIDE_SHM", path, 1) == 0;
}

static bool set_rank_environment(const struct troupe *troupe, int rank)
{
	const struct sim_job *job = troupe->job;
	const char *regions = troupe->live->regions;

	return set_number("RANK", rank) && set_number("LOCAL_RANK", rank % job->options.gpus) &&
	       set_number("GROUP_RANK", sim_job_node(job, rank)) &&
	       (regions == NULL || set_node_regions(regions, sim_job_node(job, rank)));
}

/* ---- ranks as processes ---------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	struct sim_worker *worker = arg;

	worker->is_over = sim_worker_run(worker);
	return NULL;
}

/* The ranks of this process; true when nothing of them is left. */
static bool run_ranks(struct troupe *troupe, struct host *host, int first)
{
	struct sim_worker workers[SIM_GPUS_MAX];
	pthread_t threads[SIM_GPUS_MAX];
	bool is_over = true;

	for (int i = 0; i < troupe->ranks_each; i++) {
		workers[i] = (struct sim_worker){ .job = troupe->job,
						  .score = &troupe->score,
						  .board = troupe->board,
						  .host = host,
						  .rank = first + i };
		if (i > 0 && pthread_create(&threads[i], NULL, thread_main, &workers[i]) != 0)
			_exit(1);
	}
	(void)thread_main(&workers[0]);
	for (int i = 0; i < troupe->ranks_each; i++) {
		if (i > 0)
			pthread_join(threads[i], NULL);
		is_over = is_over && workers[i].is_over;
	}
	return is_over;
}

static void child_main(struct troupe *troupe, int process)
{
	int rank = process * troupe->ranks_each;
	struct sim_board_rank *mine = sim_board_rank(troupe->board, rank);
	struct host *host;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
	if (getppid() != troupe->parent)
		_exit(1);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigprocmask(SIG_SETMASK, &troupe->before, NULL);
	if (!set_rank_environment(troupe, rank) ||
	    sim_worker_host(&host, troupe->job, rank, troupe->live->plugin) != OK) {
		text_copy(mine->trouble, sizeof(mine->trouble),
			  "no memory, or no directory for its region");
		store_release(&mine->is_ready, 1);
		_exit(1);
	}
	if (!run_ranks(troupe, host, rank))
		_exit(0);
	host_free(host);
	exit(0);
}

static enum status start_children(struct troupe *troupe)
{
	fflush(NULL);
	for (int process = 0; process < troupe->processes; process++) {
		pid_t child = fork();

		if (child == -1)
			return fail(troupe, ERR_SYSTEM, "cannot start a process");
		if (child == 0)
			child_main(troupe, process);
		troupe->children[process] = troupe->pids[process] = child;
		troupe->left++;
	}
	return OK;
}

static bool should_die(const struct troupe *troupe, int process)
{
	return troupe->is_killed[process] || load_acquire(&troupe->board->stop);
}

/* Did all its ranks say how they ended? Pairs with their reports. */
static bool is_reported(const struct troupe *troupe, int process)
{
	for (int i = 0; i < troupe->ranks_each; i++)
		if (!load_acquire(&sim_board_rank(troupe->board, process * troupe->ranks_each + i)
					   ->is_over))
			return false;
	return true;
}

static void note_loss(struct troupe *troupe)
{
	troupe->lost_ns = clock_system_ns(CLOCK_REALTIME);
	troupe->deadline_ns = troupe->lost_ns + troupe->job->options.hang_ns;
}

/* Collect those that have ended. */
static void reap(struct troupe *troupe)
{
	for (int process = 0; process < troupe->processes; process++) {
		pid_t child = troupe->children[process];
		int status;

		if (child == 0 || waitpid(child, &status, WNOHANG) != child)
			continue;
		troupe->children[process] = 0;
		troupe->exits[process] = status;
		troupe->left--;
		if (!is_reported(troupe, process) && !should_die(troupe, process) &&
		    troupe->lost_ns == 0)
			note_loss(troupe);
	}
}

/* Sleep until something happens, a little while at most. */
static void watch(struct troupe *troupe)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	int signal_number = sigtimedwait(&troupe->signals, NULL, &pause);

	if (signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP) {
		troupe->was_stopped = true;
		store_release(&troupe->board->stop, SIM_STOP_INTERRUPTED);
	}
	reap(troupe);
}

/* Kill or stop it if a fault says so and the time has come. */
static void hit_faulty(struct troupe *troupe, int rank, uint64_t now)
{
	uint64_t slip_ns = load_relaxed(&sim_board_rank(troupe->board, rank)->slip_ns);
	uint64_t at_ns = sim_job_gone_ns(troupe->job, rank);
	bool is_kill = sim_job_killed_ns(troupe->job, rank) == at_ns;
	int process = rank / troupe->ranks_each;
	bool *is_hit = is_kill ? &troupe->is_killed[process] : &troupe->is_stopped[process];

	if (at_ns == UINT64_MAX || *is_hit || troupe->children[process] == 0 ||
	    now < troupe->board->start_ns + at_ns + slip_ns)
		return;
	*is_hit = true;
	kill(troupe->children[process], is_kill ? SIGKILL : SIGSTOP);
	if (troupe->score.end_ns > at_ns)
		troupe->deadline_ns = now + troupe->score.end_ns - at_ns + KILL_SLACK_NS;
}

static void hit_all_faulty(struct troupe *troupe)
{
	uint64_t now = clock_system_ns(CLOCK_REALTIME);

	for (size_t i = 0; i < troupe->job->options.fault_count; i++)
		hit_faulty(troupe, troupe->job->options.faults[i].rank, now);
}

/* Everybody has a plugin; or one line of what is wrong. */
static enum status wait_ready(struct troupe *troupe)
{
	for (int rank = 0; rank < troupe->job->world; rank++) {
		struct sim_board_rank *one = sim_board_rank(troupe->board, rank);

		while (!load_acquire(&one->is_ready) && !load_relaxed(&troupe->board->stop)) {
			watch(troupe);
			if (troupe->lost_ns != 0)
				return fail(troupe, ERR_GONE, "a rank ended before it began");
		}
		if (one->trouble[0] != '\0')
			return fail(troupe, ERR_UNKNOWN, one->trouble);
	}
	return OK;
}

/* Until all are gone. When a rank went that should not have, the others are watched as long as any
 * hung job is; after a fault that killed one, as long as the score says, and a little longer: it may
 * have died earlier in its work than planned. */
static void watch_children(struct troupe *troupe)
{
	while (troupe->left > 0) {
		watch(troupe);
		hit_all_faulty(troupe);
		if (load_relaxed(&troupe->board->stop))
			return;
		if (troupe->deadline_ns != 0 &&
		    clock_system_ns(CLOCK_REALTIME) > troupe->deadline_ns)
			store_release(&troupe->board->stop, SIM_STOP_HUNG);
	}
}

static void signal_all(const struct troupe *troupe, int signal_number)
{
	for (int process = 0; process < troupe->processes; process++)
		if (troupe->children[process])
			kill(troupe->children[process], signal_number);
}

/* They were told; some may need help. */
static void end_children(struct troupe *troupe)
{
	uint64_t start = clock_system_ns(CLOCK_REALTIME);
	bool has_killed = false;

	if (!load_relaxed(&troupe->board->stop))
		store_release(&troupe->board->stop, SIM_STOP_INTERRUPTED);
	signal_all(troupe, SIGCONT);
	while (troupe->left > 0) {
		watch(troupe);
		if (has_killed || clock_system_ns(CLOCK_REALTIME) < start + GRACE_NS)
			continue;
		signal_all(troupe, SIGKILL);
		has_killed = true;
	}
}

static enum status run_processes(struct troupe *troupe)
{
	enum status status = start_children(troupe);

	if (status == OK)
		status = wait_ready(troupe);
	if (status == OK) {
		/* Pairs with the ranks that wait for it. */
		store_release(&troupe->board->start_ns, clock_system_ns(CLOCK_REALTIME));
		watch_children(troupe);
	}
	end_children(troupe);
	return status;
}

/* ---- ranks as threads ------------------------------------------------------------------------ */

static enum status run_threads(struct troupe *troupe)
{
	size_t world = (size_t)troupe->job->world;
	struct sim_worker *workers = calloc(world, sizeof(*workers));
	pthread_t *threads = calloc(world, sizeof(*threads));
	enum status status = workers && threads ? OK : ERR_NO_SPACE;
	struct host *host = NULL;
	size_t started = 0, over = 0;

	set_rank_environment(troupe, 0);
	if (status == OK)
		status = sim_worker_host(&host, troupe->job, 0, troupe->live->plugin);
	for (; started < world && status == OK; started++) {
		workers[started] = (struct sim_worker){ .job = troupe->job,
							.score = &troupe->score,
							.board = troupe->board,
							.host = host,
							.rank = (int)started,
							.may_abort = true };
		if (pthread_create(&threads[started], NULL, thread_main, &workers[started]) != 0) {
			status = fail(troupe, ERR_SYSTEM, "cannot start a thread");
			break;
		}
	}
	if (status == OK)
		status = wait_ready(troupe);
	if (status == OK)
		store_release(&troupe->board->start_ns, clock_system_ns(CLOCK_REALTIME));
	while (status == OK && over < started && !troupe->board->stop) {
		watch(troupe);
		while (over < started &&
		       load_acquire(&sim_board_rank(troupe->board, (int)over)->is_over))
			over++;
	}
	if (over < started)
		store_release(&troupe->board->stop, SIM_STOP_INTERRUPTED);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	host_free(host);
	free(workers);
	free(threads);
	return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum sim_result_end end_of(const struct troupe *troupe, int rank)
{
	const struct sim_board_rank *one = sim_board_rank(troupe->board, rank);
	int status = troupe->exits[rank / troupe->ranks_each];

	if (load_acquire(&one->is_over))
		return (enum sim_result_end)one->end;
	if (!troupe->live->is_threads && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return SIM_RESULT_KILLED;
	return troupe->was_stopped ? SIM_RESULT_INTERRUPTED : SIM_RESULT_FAILED;
}

static void fill_result(const struct troupe *troupe, struct sim_result *result)
{
	uint64_t now = clock_system_ns(CLOCK_REALTIME);

	result->ns = now - troupe->board->start_ns;
	result->still_ns = troupe->lost_ns ? troupe->lost_ns - troupe->board->start_ns
					   : troupe->score.still_ns;
	result->iterations = troupe->score.iterations;
	result->end = troupe->score.is_hung ? SIM_RESULT_HUNG : SIM_RESULT_FINISHED;
	for (int rank = 0; rank < troupe->job->world; rank++) {
		const struct sim_board_rank *one = sim_board_rank(troupe->board, rank);
		struct sim_result_rank *to = &result->ranks[rank];

		to->end = end_of(troupe, rank);
		to->pid = troupe->pids[rank / troupe->ranks_each];
		if (to->pid == 0)
			to->pid = troupe->parent;
		if (gethostname(to->host, sizeof(to->host) - 1) == -1)
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
	if (troupe->was_stopped && result->end != SIM_RESULT_FAILED)
		result->end = SIM_RESULT_INTERRUPTED;
}

static enum status troupe_init(struct troupe *troupe)
{
	size_t processes;
	enum status status;

	troupe->parent = getpid();
	troupe->ranks_each = troupe->live->is_node_processes ? troupe->job->options.gpus : 1;
	troupe->processes = troupe->job->world / troupe->ranks_each;
	processes = (size_t)troupe->processes;
	sigemptyset(&troupe->signals);
	sigaddset(&troupe->signals, SIGINT);
	sigaddset(&troupe->signals, SIGTERM);
	sigaddset(&troupe->signals, SIGHUP);
	sigaddset(&troupe->signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &troupe->signals, &troupe->before);
	troupe->pids = calloc(processes, sizeof(*troupe->pids));
	troupe->children = calloc(processes, sizeof(*troupe->children));
	troupe->exits = calloc(processes, sizeof(*troupe->exits));
	troupe->is_killed = calloc(processes, sizeof(*troupe->is_killed));
	troupe->is_stopped = calloc(processes, sizeof(*troupe->is_stopped));
	if (!troupe->pids || !troupe->children || !troupe->exits || !troupe->is_killed ||
	    !troupe->is_stopped)
		return fail(troupe, ERR_NO_SPACE, "cannot prepare the job");
	if (troupe->live->regions && mkdir(troupe->live->regions, 0700) == -1 && errno != EEXIST)
		return fail(troupe, ERR_SYSTEM, troupe->live->regions);
	status = sim_score_init(&troupe->score, troupe->job);
	if (status == OK)
		status = sim_board_new(&troupe->board, troupe->job);
	if (status == OK && !set_job_environment(troupe))
		status = ERR_NO_SPACE;
	return status == OK ? OK : fail(troupe, status, "cannot prepare the job");
}

static void troupe_release(struct troupe *troupe)
{
	int error = errno;

	sim_score_release(&troupe->score);
	sim_board_free(troupe->board);
	free(troupe->pids);
	free(troupe->children);
	free(troupe->exits);
	free(troupe->is_killed);
	free(troupe->is_stopped);
	sigprocmask(SIG_SETMASK, &troupe->before, NULL);
	errno = error;
}

enum status sim_live_run(const struct sim_job *job, const struct sim_live *live,
			 struct sim_result *result, char *failed, size_t size)
{
	struct troupe troupe = { .job = job, .live = live, .failed = failed, .failed_size = size };
	enum status status;

	text_copy(failed, size, "");
	status = troupe_init(&troupe);
	if (status == OK)
		status = live->is_threads ? run_threads(&troupe) : run_processes(&troupe);
	if (status == OK)
		fill_result(&troupe, result);
	troupe_release(&troupe);
	return status;
}
