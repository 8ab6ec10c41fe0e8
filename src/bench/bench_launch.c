/*
 * Finds this rank's place in a job from the launcher's environment, and starts ranks if there is no launcher.
 *
 * The parent forks the ranks, then waits for the first of: a rank exits, a rank reports why it cannot continue, a
 * signal, the time limit. It has no threads and never opens CUDA, so it can fork.
 *
 * After the first failure the other ranks get a few seconds to exit, then SIGTERM, then SIGKILL.
 */
#include "bench/bench_launch.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench_gpu.h"
#include "bench/bench_result.h"
#include "cli/cli.h"
#include "common/attributes.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"

struct launch_rank {
	pid_t pid; /* 0: has exited */
	int status;
	bool is_ended_by_us;
};

struct launch_job {
	const struct bench_launch *launch;
	struct bench_mps mps;
	pid_t pid; /* the parent */
	struct launch_rank *ranks;
	int gpus;
	int left;	     /* ranks still running */
	int listen_fd;	     /* for rank 0 */
	int problem_ends[2]; /* ranks report failures here */
	int signal_fd;
	sigset_t signals_before;
	struct bench_place place; /* rank 0's; others differ in rank */
	uint64_t began_ns;
	uint64_t end_ns;  /* then the remaining ranks are killed; 0: not set yet */
	bool is_end_told; /* SIGTERM was sent, SIGKILL is next */
	int signal;	  /* that ended the job; 0: none */
	int code;
	bool has_failed; /* a rank failed */
	char told[512];	 /* the first reason reported by a rank */
	char death[512]; /* the first rank that was killed by a signal */
};

/* If the launcher's port, or one derived from the job id, is in use, the next ones are tried. */
enum { PORTS_TRIED = 8, SLURM_PORT_FIRST = 20000, SLURM_PORTS = 10000 };

struct finder {
	struct bench_place *place;
	bench_getenv get;
	void *context;
	char *problem;
	size_t problem_size;
};

/* "" counts as not set. */
static const char *finder_variable(const struct finder *finder, const char *name)
{
	const char *value = finder->get(finder->context, name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *first_variable(const struct finder *finder, const char *const *names)
{
	for (; *names != NULL; names++)
		if (finder_variable(finder, *names) != NULL)
			return *names;
	return NULL;
}

/* 1: found; 0: not set; -1: invalid. `names` ends with NULL; *name is the one that was set. */
static int take_number(const struct finder *finder, const char *const *names, int least, int most,
		       int *number, const char **name)
{
	int64_t value;

	*name = first_variable(finder, names);
	if (*name == NULL)
		return 0;
	if (text_number(finder_variable(finder, *name), least, most, &value) != OK)
		return bench_problem(finder->problem, finder->problem_size,
				     "%s=%.40s: expected a number from %d to %d", *name,
				     finder_variable(finder, *name), least, most);
	*number = (int)value;
	return 1;
}

/* ---- rank and size ------------------------------------------------------------------------------ */

struct launcher {
	const char *name;
	const char *ranks[4];
	const char *sizes[4];
	const char *local_ranks[5];
	const char *local_sizes[5];
};

static const struct launcher torchrun = {
	"torchrun", { "RANK" }, { "WORLD_SIZE" }, { "LOCAL_RANK" }, { "LOCAL_WORLD_SIZE" }
};
static const struct launcher open_mpi = { "mpirun",
					  { "OMPI_COMM_WORLD_RANK" },
					  { "OMPI_COMM_WORLD_SIZE" },
					  { "OMPI_COMM_WORLD_LOCAL_RANK" },
					  { "OMPI_COMM_WORLD_LOCAL_SIZE" } };
static const struct launcher hydra = { "mpirun",
				       { "PMI_RANK" },
				       { "PMI_SIZE" },
				       { "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID" },
				       { "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE" } };
static const struct launcher srun = { "srun",
				      { "SLURM_PROCID" },
				      { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
				      { "SLURM_LOCALID" },
				      { 0 } };
/* PMIx does not provide the size. */
static const struct launcher pmix = { "mpirun",
				      { "PMIX_RANK" },
				      { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE" },
				      { "PMIX_LOCAL_RANK" },
				      { "LOCAL_WORLD_SIZE" } };

/*
 * Variables that only exist inside steps of this launcher. A batch script or a `srun --pty` shell is not one
 * process per rank.
 */
static bool is_slurm_step(const struct finder *finder)
{
	static const char *const steps[] = { "SLURM_STEP_ID", "SLURM_STEPID", NULL };

	return finder_variable(finder, "SLURM_PROCID") && first_variable(finder, steps) &&
	       !finder_variable(finder, "SLURM_PTY_PORT");
}

static bool is_same(const struct finder *finder, const char *a, const char *b)
{
	const char *left = finder_variable(finder, a), *right = finder_variable(finder, b);

	return left != NULL && right != NULL && strcmp(left, right) == 0;
}

/*
 * The innermost launcher counts: torchrun in a Slurm step, mpirun in an allocation. srun sets PMI_RANK, too, with
 * the same number.
 */
static const struct launcher *find_launcher(const struct finder *finder)
{
	if (finder_variable(finder, "RANK"))
		return &torchrun;
	if (finder_variable(finder, "OMPI_COMM_WORLD_RANK"))
		return &open_mpi;
	if (finder_variable(finder, "PMI_RANK") &&
	    !(is_slurm_step(finder) && is_same(finder, "PMI_RANK", "SLURM_PROCID")))
		return &hydra;
	if (is_slurm_step(finder))
		return &srun;
	return finder_variable(finder, "PMIX_RANK") ? &pmix : NULL;
}

static int take_rank(const struct finder *finder, const struct launcher *launcher)
{
	struct bench_place *place = finder->place;
	const char *rank_name, *size_name;

	if (take_number(finder, launcher->ranks, 0, BENCH_RANKS_MAX - 1, &place->rank,
			&rank_name) == -1)
		return -1;
	switch (take_number(finder, launcher->sizes, 1, BENCH_RANKS_MAX, &place->nranks,
			    &size_name)) {
	case -1:
		return -1;
	case 0:
		return bench_problem(finder->problem, finder->problem_size,
				     "%s is set but %s is not: the number of ranks is unknown",
				     rank_name, launcher->sizes[0]);
	}
	if (place->rank >= place->nranks)
		return bench_problem(finder->problem, finder->problem_size,
				     "%s=%d but %s=%d: ranks are 0 to %d", rank_name, place->rank,
				     size_name, place->nranks, place->nranks - 1);
	return 0;
}

static int take_local(const struct finder *finder, const struct launcher *launcher)
{
	struct bench_place *place = finder->place;
	const char *rank_name = NULL, *size_name = NULL;

	if (take_number(finder, launcher->local_ranks, 0, BENCH_RANKS_MAX - 1, &place->local_rank,
			&rank_name) == -1 ||
	    take_number(finder, launcher->local_sizes, 1, BENCH_RANKS_MAX, &place->local_ranks,
			&size_name) == -1)
		return -1;
	if (place->local_ranks > place->nranks || place->local_rank >= place->nranks ||
	    (place->local_ranks != -1 && place->local_rank >= place->local_ranks))
		return bench_problem(finder->problem, finder->problem_size,
				     "%s=%d and %s=%d are inconsistent with %d ranks",
				     rank_name ? rank_name : "local rank", place->local_rank,
				     size_name ? size_name : "local ranks", place->local_ranks,
				     place->nranks);
	return 0;
}

/* ---- Slurm -------------------------------------------------------------------------------------- */

bool bench_place_first_host(const char *list, char *host, size_t size)
{
	size_t at = 0;

	for (; *list != '\0' && *list != ','; list++) {
		if (*list != '[') {
			if (at + 1 >= size || (unsigned char)*list <= ' ')
				return false;
			host[at++] = *list;
			continue;
		}
		for (list++; *list >= '0' && *list <= '9'; list++) {
			if (at + 1 >= size)
				return false;
			host[at++] = *list;
		}
		list = strchr(list, ']');
		if (list == NULL)
			return false;
	}
	host[at] = '\0';
	return at > 0;
}

int bench_place_tasks(const char *list, int node)
{
	while (*list >= '0' && *list <= '9') {
		int tasks = 0, times = 1, used = 0;

		if (sscanf(list, "%6d%n", &tasks, &used) != 1)
			return -1;
		list += used;
		used = 0;
		if (*list == '(' && sscanf(list, "(x%6d)%n", &times, &used) == 1 && used > 0)
			list += used;
		if (node < times)
			return tasks;
		node -= times;
		if (*list != ',')
			return -1;
		list++;
	}
	return -1;
}

static int take_slurm(const struct finder *finder)
{
	static const char *const lists[] = { "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST",
					     "SLURM_NODELIST", NULL };
	static const char *const tasks[] = { "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE",
					     NULL };
	static const char *const nodes[] = { "SLURM_NODEID", NULL };
	struct bench_place *place = finder->place;
	const char *list = first_variable(finder, lists);
	const char *counts = first_variable(finder, tasks);
	char host[sizeof(place->address)];
	const char *name;
	int node = -1;

	if (take_number(finder, nodes, 0, BENCH_RANKS_MAX, &node, &name) == -1)
		return -1;
	if (counts != NULL && node >= 0)
		place->local_ranks = bench_place_tasks(finder_variable(finder, counts), node);
	if (place->local_ranks < 1 || place->local_ranks > place->nranks ||
	    place->local_rank >= place->local_ranks)
		place->local_ranks = -1;
	if (list != NULL &&
	    bench_place_first_host(finder_variable(finder, list), host, sizeof(host))) {
		text_copy(place->address, sizeof(place->address), host);
		place->port = SLURM_PORT_FIRST + (int)(place->token % SLURM_PORTS);
		place->ports = PORTS_TRIED;
	}
	return 0;
}

/* ---- where rank 0 is ------------------------------------------------------------------------------ */

/* Identical on all ranks of a job, different in other jobs. */
static uint64_t token_of(const struct finder *finder, const char *meet)
{
	static const char *const names[] = {
		"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
		"MASTER_ADDR",	       "MASTER_PORT",
		"SLURM_JOB_ID",	       "SLURM_STEP_ID",
		"SLURM_STEPID",	       "PMIX_NAMESPACE",
		"PBS_JOBID",	       "LSB_JOBID",
	};
	uint64_t token = hash_word(0x72696e6773696465u, (uint64_t)finder->place->nranks);

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		const char *value = finder_variable(finder, names[i]);

		if (value != NULL)
			token = hash_word(token, hash_bytes(value, strlen(value)) + i);
	}
	return meet ? hash_word(token, hash_bytes(meet, strlen(meet))) : token;
}

static int take_master(const struct finder *finder)
{
	static const char *const ports[] = { "MASTER_PORT", NULL };
	struct bench_place *place = finder->place;
	const char *address = finder_variable(finder, "MASTER_ADDR");
	const char *name;

	if (address == NULL)
		return 0;
	if (!text_copy(place->address, sizeof(place->address), address))
		return bench_problem(finder->problem, finder->problem_size,
				     "MASTER_ADDR=%.40s... is too long", address);
	place->port = 29500;
	if (take_number(finder, ports, 1, 65535, &place->port, &name) == -1)
		return -1;
	/* MASTER_PORT itself belongs to the launcher. */
	place->port += place->port + PORTS_TRIED <= 65535 ? 1 : -PORTS_TRIED;
	place->ports = PORTS_TRIED;
	return 0;
}

/* For ranks on one host: a file name that all of them derive. */
static int take_own_file(const struct finder *finder)
{
	static const char *const names[] = { "PMIX_NAMESPACE",
					     "OMPI_MCA_ess_base_jobid",
					     "OMPI_MCA_orte_ess_jobid",
					     "OMPI_MCA_orte_hnp_uri",
					     "PMI_JOBID",
					     NULL };
	struct bench_place *place = finder->place;
	const char *directory = finder_variable(finder, "TMPDIR");
	const char *name = first_variable(finder, names);
	const char *job = name ? finder_variable(finder, name) : "";
	uint64_t key = hash_word(hash_bytes(job, strlen(job)), name ? 1 : (uint64_t)getppid());

	place->is_own_file = true;
	if (text_format(place->file, sizeof(place->file), "%s/ringside-bench-%ld/%016" PRIx64,
			directory ? directory : "/tmp", (long)geteuid(), key))
		return 0;
	return bench_problem(finder->problem, finder->problem_size, "TMPDIR=%.40s... is too long",
			     directory);
}

static int take_meet(const struct finder *finder, const char *meet)
{
	struct bench_place *place = finder->place;
	int port;

	if (strchr(meet, '/') == NULL && strchr(meet, ':') != NULL) {
		if (hub_card_address(meet, strlen(meet), place->address, &port) == OK) {
			place->port = port;
			return 0;
		}
		return bench_problem(finder->problem, finder->problem_size,
				     "--meet %.80s: expected HOST:PORT or a file", meet);
	}
	if (meet[0] != '\0' && text_copy(place->file, sizeof(place->file), meet))
		return 0;
	return bench_problem(finder->problem, finder->problem_size, "--meet: file name is %s",
			     meet[0] == '\0' ? "empty" : "too long");
}

static int find_rendezvous(const struct finder *finder, const struct launcher *launcher,
			   const char *meet)
{
	struct bench_place *place = finder->place;

	place->token = token_of(finder, meet);
	if (launcher == &srun && take_slurm(finder) != 0)
		return -1;
	if (meet != NULL) {
		place->address[0] = '\0';
		place->ports = 0;
		return take_meet(finder, meet);
	}
	if (launcher == &torchrun && take_master(finder) != 0)
		return -1;
	if (place->address[0] != '\0' || place->nranks == 1)
		return 0;
	if (place->local_ranks == place->nranks)
		return take_own_file(finder);
	return bench_problem(
		finder->problem, finder->problem_size,
		"%s does not provide the address of rank 0: use --meet HOST:PORT with its host "
		"and a free port, or --meet FILE with a file that all hosts can access",
		place->launcher);
}

void bench_place_init(struct bench_place *place)
{
	memset(place, 0, sizeof(*place));
	place->local_rank = -1;
	place->local_ranks = -1;
	place->listen_fd = -1;
	place->results_fd = -1;
	place->problem_fd = -1;
}

int bench_place_find(struct bench_place *place, bench_getenv get, void *context, const char *meet,
		     char *problem, size_t problem_size)
{
	struct finder finder = { place, get, context, problem, problem_size };
	const struct launcher *launcher = find_launcher(&finder);
	const char *name = launcher ? launcher->name : "";

	bench_place_init(place);
	if (launcher == NULL)
		return 0;
	if (launcher == &torchrun && !finder_variable(&finder, "TORCHELASTIC_RUN_ID"))
		name = "env";
	text_copy(place->launcher, sizeof(place->launcher), name);
	if (take_rank(&finder, launcher) != 0 || take_local(&finder, launcher) != 0 ||
	    find_rendezvous(&finder, launcher, meet) != 0)
		return -1;
	return 1;
}

static void directory_of(const struct bench_place *place, char *directory, size_t size)
{
	char *slash;

	text_copy(directory, size, place->file);
	slash = strrchr(directory, '/');
	if (slash != NULL)
		*slash = '\0';
}

void bench_place_clean(const struct bench_place *place)
{
	char directory[sizeof(place->file)];

	if (!place->is_own_file || place->rank != 0)
		return;
	directory_of(place, directory, sizeof(directory));
	rmdir(directory);
}

int bench_place_prepare(const struct bench_place *place, char *problem, size_t problem_size)
{
	char directory[sizeof(place->file)];
	struct stat st;

	if (!place->is_own_file || place->rank != 0)
		return 0;
	directory_of(place, directory, sizeof(directory));
	if (mkdir(directory, 0700) == -1 && errno != EEXIST)
		return bench_problem(problem, problem_size,
				     "cannot create %.200s for the rendezvous: %s", directory,
				     strerror(errno));
	if (lstat(directory, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	    (st.st_mode & 022) == 0)
		return 0;
	return bench_problem(problem, problem_size,
			     "%.200s is not a private directory of this user; use --meet FILE",
			     directory);
}

enum { NAP_MS = 5 };

/*
 * Waits for a child and kills it after the limit. Returns waitpid()'s status; -1: it was killed, or is not our
 * child.
 */
static int bench_wait_child(pid_t child, int limit_s)
{
	uint64_t deadline_ns = clock_system_ns(CLOCK_MONOTONIC) + (uint64_t)limit_s * 1000000000u;
	bool is_killed = false;
	int status = -1;

	for (;;) {
		pid_t got = waitpid(child, &status, is_killed ? 0 : WNOHANG);

		if (got == child)
			return is_killed ? -1 : status;
		if (got == -1 && errno != EINTR)
			return -1;
		if (!is_killed && clock_system_ns(CLOCK_MONOTONIC) >= deadline_ns) {
			kill(child, SIGKILL);
			is_killed = true;
		} else {
			poll(NULL, 0, NAP_MS);
		}
	}
}

static void move_fd(int from, int to)
{
	if (from == -1)
		return;
	dup2(from, to);
	if (from != to)
		close(from);
}

/* In the child; does not return. */
static void spawn_become(const char *const *words, int input, const char *log)
{
	sigset_t none;
	int out =
		open(log ? log : "/dev/null", log ? O_WRONLY | O_CREAT | O_TRUNC : O_WRONLY, 0600);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	move_fd(input, STDIN_FILENO);
	move_fd(out, STDOUT_FILENO);
	dup2(STDOUT_FILENO, STDERR_FILENO);
	execv(words[0], (char *const *)(uintptr_t)words);
	_exit(127);
}

int bench_spawn(const char *const *words, const char *input, const char *log, int limit_s)
{
	int ends[2] = { -1, -1 };
	int status;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) == -1)
		return -1;
	/* Fits into a pipe, so the write does not block. */
	if (input != NULL && write(ends[1], input, strlen(input)) == -1) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	close(ends[1]);
	child = fork();
	if (child == 0)
		spawn_become(words, ends[0], log);
	close(ends[0]);
	if (child == -1)
		return -1;
	status = bench_wait_child(child, limit_s);
	return status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Searches PATH and the usual directories of NVIDIA's tools. False: not found. */
static bool bench_find_program(const char *name, char *path, size_t size)
{
	static const char places[] =
		"/usr/local/nvidia/bin:/usr/bin:/usr/local/bin:/opt/nvidia/bin";
	const char *lists[] = { getenv("PATH"), places };

	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
		const char *at = lists[i] ? lists[i] : "";

		while (*at != '\0') {
			size_t length = strcspn(at, ":");

			if (length > 0 && length < PATH_MAX &&
			    text_format(path, size, "%.*s/%s", (int)length, at, name) &&
			    access(path, X_OK) == 0)
				return true;
			at += length + (at[length] == ':');
		}
	}
	return false;
}

static void cleaner_wait(bench_cleaner_fn clean, const void *context, int fd)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	char byte;

	setsid();
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++)
		signal(signals[i], SIG_IGN);
	/* Readers of our output wait until every copy of its descriptor is closed. */
	for (int standard = STDIN_FILENO; standard <= STDERR_FILENO && nothing != -1; standard++)
		dup2(nothing, standard);
	while (read(fd, &byte, 1) == -1 && errno == EINTR)
		;
	clean(context);
	_exit(0);
}

bool bench_cleaner_start(struct bench_cleaner *cleaner, bench_cleaner_fn clean, const void *context)
{
	int ends[2];

	cleaner->pid = 0;
	if (pipe2(ends, O_CLOEXEC) == -1)
		return false;
	cleaner->pid = fork();
	if (cleaner->pid == 0) {
		close(ends[1]);
		cleaner_wait(clean, context, ends[0]);
	}
	close(ends[0]);
	cleaner->fd = ends[1];
	if (cleaner->pid > 0)
		return true;
	close(ends[1]);
	cleaner->pid = 0;
	return false;
}

bool bench_cleaner_end(struct bench_cleaner *cleaner)
{
	if (cleaner->pid == 0)
		return false;
	close(cleaner->fd);
	while (waitpid(cleaner->pid, NULL, 0) == -1 && errno == EINTR)
		;
	cleaner->pid = 0;
	return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	(void)remove(path);
	return 0;
}

void bench_remove_tree(const char *path)
{
	if (path[0] != '\0')
		(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

enum { START_SECONDS = 20, QUIT_SECONDS = 15, LEFT_TRIES = 30, MPS_NAP_MS = 100, PIDS_MAX = 16 };

/* Reads a small file of /proc or MPS; returns the number of bytes. */
static size_t read_small(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t total = 0;
	ssize_t got;

	if (fd == -1)
		return 0;
	while (total < size && (got = read(fd, to + total, size - total)) > 0)
		total += (size_t)got;
	close(fd);
	return total;
}

/* ---- is there one already? ------------------------------------------------------------------------ */

static bool is_running(const char *directory)
{
	char path[4200], text[32] = "";
	int64_t pid;

	text_format(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", directory);
	if (read_small(path, text, sizeof(text) - 1) == 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return text_number(text, 2, INT32_MAX, &pid) == OK && (kill((pid_t)pid, 0) == 0);
}

/* ---- starting ------------------------------------------------------------------------------------- */

void bench_mps_environment(const struct bench_mps *mps)
{
	if (!mps->is_ours)
		return;
	setenv("CUDA_MPS_PIPE_DIRECTORY", mps->pipe, 1);
	setenv("CUDA_MPS_LOG_DIRECTORY", mps->log, 1);
}

/* The daemon gets its directories from the environment, without the variables meant for NCCL. */
static int run_control(const struct bench_mps *mps, const char *option, const char *input,
		       int limit_s)
{
	char pipe[200], log[200], output[200];
	const char *const words[] = { "/usr/bin/env", pipe, log, mps->control, option, NULL };

	text_format(pipe, sizeof(pipe), "CUDA_MPS_PIPE_DIRECTORY=%s", mps->pipe);
	text_format(log, sizeof(log), "CUDA_MPS_LOG_DIRECTORY=%s", mps->log);
	text_format(output, sizeof(output), "%s/output", mps->directory);
	return bench_spawn(words, input, output, limit_s);
}

static bool make_directories(struct bench_mps *mps)
{
	/* Short, and not below TMPDIR: the pipe's path must fit into a socket address. */
	text_copy(mps->directory, sizeof(mps->directory), "/tmp/ringside-mps-XXXXXX");
	if (mkdtemp(mps->directory) == NULL) {
		mps->directory[0] = '\0';
		return false;
	}
	text_format(mps->pipe, sizeof(mps->pipe), "%s/pipe", mps->directory);
	text_format(mps->log, sizeof(mps->log), "%s/log", mps->directory);
	return mkdir(mps->pipe, 0700) == 0 && mkdir(mps->log, 0700) == 0;
}

/* ---- stopping ------------------------------------------------------------------------------------- */

static bool has_variable(const char *text, size_t length, const char *wanted)
{
	for (const char *at = text; at < text + length; at += strlen(at) + 1)
		if (strcmp(at, wanted) == 0)
			return true;
	return false;
}

static bool is_of(const struct bench_mps *mps, const char *pid)
{
	static const char beginning[] = "nvidia-cuda-mps";
	char path[64], comm[32] = "", wanted[200];
	bool is_its = false;
	size_t length;
	char *environment;

	text_format(path, sizeof(path), "/proc/%.16s/comm", pid);
	read_small(path, comm, sizeof(comm) - 1);
	if (strncmp(comm, beginning, sizeof(beginning) - 1) != 0)
		return false;
	environment = calloc(1, (1 << 20) + 1);
	if (environment == NULL)
		return false;
	text_format(path, sizeof(path), "/proc/%.16s/environ", pid);
	length = read_small(path, environment, 1 << 20);
	text_format(wanted, sizeof(wanted), "CUDA_MPS_PIPE_DIRECTORY=%s", mps->pipe);
	is_its = has_variable(environment, length, wanted);
	free(environment);
	return is_its;
}

/* Finds the daemon and its servers by the pipe directory in their environment. */
static size_t find_left(const struct bench_mps *mps, pid_t *pids)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;
	int64_t pid;

	if (proc == NULL)
		return 0;
	while (count < PIDS_MAX && (entry = readdir(proc)) != NULL)
		if (text_number(entry->d_name, 2, INT32_MAX, &pid) == OK &&
		    is_of(mps, entry->d_name))
			pids[count++] = (pid_t)pid;
	closedir(proc);
	return count;
}

static void stop_all(const void *context)
{
	const struct bench_mps *mps = context;
	pid_t left[PIDS_MAX];
	size_t count = 0;

	run_control(mps, NULL, "quit\n", QUIT_SECONDS);
	for (int i = 0; i < LEFT_TRIES; i++) {
		count = find_left(mps, left);
		if (count == 0)
			break;
		poll(NULL, 0, MPS_NAP_MS);
	}
	for (size_t i = 0; i < count; i++)
		kill(left[i], SIGKILL);
	bench_remove_tree(mps->directory);
}

/* ---- both ----------------------------------------------------------------------------------------- */

void bench_mps_start(struct bench_mps *mps)
{
	const char *set = getenv("CUDA_MPS_PIPE_DIRECTORY");

	memset(mps, 0, sizeof(*mps));
	if (is_running(set && set[0] ? set : "/tmp/nvidia-mps")) {
		mps->is_on = true;
		return;
	}
	if (!bench_find_program("nvidia-cuda-mps-control", mps->control, sizeof(mps->control)))
		return;
	mps->is_ours = true;
	if (!make_directories(mps) || !bench_cleaner_start(&mps->cleaner, stop_all, mps) ||
	    run_control(mps, "-d", NULL, START_SECONDS) != 0) {
		bench_mps_stop(mps);
		return;
	}
	mps->is_on = true;
}

void bench_mps_stop(struct bench_mps *mps)
{
	if (!mps->is_ours)
		return;
	if (!bench_cleaner_end(&mps->cleaner))
		bench_remove_tree(mps->directory);
	memset(mps, 0, sizeof(*mps));
}

/* A driver that has not been used for a while takes many seconds to initialize. */
enum { LOOK_SECONDS = 60 };

struct answer {
	int gpus;
	char problem[512];
};

static void look_at_gpus(bool with_nccl, const char *nccl_path, struct answer *answer)
{
	struct cuda cuda = { 0 };
	struct nccl nccl = { 0 };
	cuda_result result;

	answer->gpus = -1;
	if (cuda_open(&cuda, answer->problem, sizeof(answer->problem)) != 0)
		return;
	if (with_nccl && nccl_open(&nccl, nccl_path, answer->problem, sizeof(answer->problem)) != 0)
		return;
	result = cuda.device_count(&answer->gpus);
	if (result == 0)
		return;
	answer->gpus = -1;
	cuda_explain(&cuda, result, "cuDeviceGetCount", answer->problem, sizeof(answer->problem));
}

struct look {
	bool with_nccl;
	const char *nccl;
};

static int look_work(const char *input, void *context)
{
	const struct look *look = context;
	struct answer answer = { 0 };
	int output = child_keep_output();

	(void)input;
	look_at_gpus(look->with_nccl, look->nccl, &answer);
	return write(output, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1;
}

int bench_look(bool with_nccl, const char *nccl, char *problem, size_t problem_size)
{
	struct look look = { with_nccl, nccl };
	const struct child_task task = { .work = look_work,
					 .context = &look,
					 .timeout_ns = LOOK_SECONDS * SECOND_NS,
					 .limit_bytes = sizeof(struct answer) };
	struct answer answer = { .gpus = -1 };
	struct child child = { .pid = 0 };

	child_run(&child, &task);
	if (child.used == sizeof(answer)) {
		memcpy(&answer, child.bytes, sizeof(answer));
		answer.problem[sizeof(answer.problem) - 1] = '\0';
		text_copy(problem, problem_size, answer.problem);
		if (answer.gpus == 0)
			text_copy(problem, problem_size,
				  "CUDA works, but found no GPU: check nvidia-smi and "
				  "CUDA_VISIBLE_DEVICES");
	} else if (child.killed_ns != 0) {
		text_format(problem, problem_size,
			    "CUDA did not initialize within %d s: check dmesg", LOOK_SECONDS);
	} else if (child.code == -1 && child.signal == 0) {
		text_copy(problem, problem_size, child.why);
	} else {
		text_format(problem, problem_size,
			    "the process that opened CUDA ended (%s %d): check dmesg",
			    child.signal != 0 ? "signal" : "exit code",
			    child.signal != 0 ? child.signal : child.code);
	}
	child_release(&child);
	return answer.gpus > 0 ? answer.gpus : -1;
}

int bench_launch_gpus(char *problem, size_t problem_size)
{
	return bench_look(false, NULL, problem, problem_size);
}

enum { FEW_CHANNELS_FROM = 4 };

void bench_share_environment(int rank, int ranks_per_gpu)
{
	char host[128], name[64] = "";

	/* NCCL treats ranks with the same name as one host, so this is needed for several hosts, too. */
	if (gethostname(name, sizeof(name) - 1) == -1)
		name[0] = '\0';
	text_format(host, sizeof(host), "ringside-bench-%s-%d", name, rank);
	setenv("NCCL_HOSTID", host, 1);
	setenv("NCCL_SOCKET_IFNAME", "lo", 0);
	setenv("NCCL_IB_DISABLE", "1", 0);
	if (ranks_per_gpu >= FEW_CHANNELS_FROM)
		setenv("NCCL_MAX_CTAS", "8", 0);
}

/* A rank's first steps: from a copy of the parent to an independent process. */

/* If the parent is killed, its ranks die too: none stays on a GPU. */
static void die_with(pid_t launcher)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(CLI_EXIT_UNKNOWN);
}

static void set_number(const char *name, int number)
{
	char text[16];

	text_format(text, sizeof(text), "%d", number);
	setenv(name, text, 1);
}

/* As torchrun does: a profiler in this process gets its rank from these. */
static void set_environment(const struct launch_job *job, int rank)
{
	const struct bench_launch *launch = job->launch;
	const struct bench_variable *variable = launch->variables;

	set_number("RANK", rank);
	set_number("WORLD_SIZE", launch->ranks);
	set_number("LOCAL_RANK", rank);
	set_number("LOCAL_WORLD_SIZE", launch->ranks);
	if (job->place.is_gpu_shared)
		bench_share_environment(rank, (launch->ranks + job->gpus - 1) / job->gpus);
	bench_mps_environment(&job->mps);
	for (; variable != NULL && variable->name != NULL; variable++) {
		if (variable->value != NULL)
			setenv(variable->name, variable->value, 1);
		else
			unsetenv(variable->name);
	}
}

static int open_log(const char *pattern, int rank, char *problem, size_t size)
{
	char path[4096], digits[16];
	struct text_names names = { .host = "", .job = "", .rank = digits, .pid = getpid() };
	int fd;

	text_format(digits, sizeof(digits), "%d", rank);
	if (text_expand(path, sizeof(path), pattern, &names) != OK)
		return bench_problem(
			problem, size,
			"invalid name of the log file: %.100s (%%r stands for the rank)", pattern);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd == -1)
		snprintf(problem, size, "cannot write %.300s: %s", path, strerror(errno));
	return fd;
}

/* Sends stdout to stderr; rank 0 keeps the original for results. */
static int arrange_output(const struct launch_job *job, struct bench_place *place)
{
	const struct bench_launch *launch = job->launch;
	char problem[512];
	int log;

	if (place->rank == 0)
		place->results_fd =
			fcntl(launch->results_fd == -1 ? STDOUT_FILENO : launch->results_fd,
			      F_DUPFD_CLOEXEC, 3);
	if (launch->log != NULL) {
		log = open_log(launch->log, place->rank, problem, sizeof(problem));
		if (log == -1) {
			bench_tell(place, problem);
			return -1;
		}
		dup2(log, STDERR_FILENO);
		close(log);
	}
	dup2(STDERR_FILENO, STDOUT_FILENO);
	return 0;
}

/* In the child: becomes rank `rank`; does not return. */
static void launch_become_rank(const struct launch_job *job, int rank, bench_rank_fn body,
			       void *context)
{
	struct bench_place place = job->place;
	int code = CLI_EXIT_UNKNOWN;

	die_with(job->pid);
	place.rank = place.local_rank = rank;
	place.problem_fd = job->problem_ends[1];
	close(job->problem_ends[0]);
	close(job->signal_fd);
	if (rank == 0)
		place.listen_fd = job->listen_fd;
	else
		close(job->listen_fd);
	sigprocmask(SIG_SETMASK, &job->signals_before, NULL);
	set_environment(job, rank);
	if (arrange_output(job, &place) == 0)
		code = body(&place, context);
	exit(code);
}

enum { GRACE_SECONDS = 3, TERM_SECONDS = 2, LAST_SECONDS = 60 };

void bench_tell(const struct bench_place *place, const char *problem)
{
	char line[512];

	text_format(line, sizeof(line), "%s\n", problem);
	/* Short enough for an atomic write. If the parent is gone, nobody needs the reason. */
	if (place->problem_fd == -1)
		cli_error("%s", problem);
	else if (write(place->problem_fd, line, strlen(line)) == -1)
		return;
}

/* ---- before --------------------------------------------------------------------------------------- */

static int fail_to_begin(struct launch_job *job, const char *what)
{
	text_format(job->told, sizeof(job->told), "%s: %s", what, strerror(errno));
	return -1;
}

/* Listens before any rank runs, so that connections queue until rank 0 accepts them. */
static int open_socket(struct launch_job *job)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);

	job->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (job->listen_fd == -1 ||
	    bind(job->listen_fd, (struct sockaddr *)&address, length) == -1 ||
	    listen(job->listen_fd, 1024) == -1 ||
	    getsockname(job->listen_fd, (struct sockaddr *)&address, &length) == -1)
		return fail_to_begin(job, "cannot open a socket for the rendezvous");
	job->place.port = ntohs(address.sin_port);
	return 0;
}

/*
 * Signals ignored by nohup or the shell stay ignored: a blocked signal would be delivered through the signalfd
 * anyway.
 */
void bench_launch_signals(sigset_t *ending)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction before;

	sigemptyset(ending);
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaddset(ending, numbers[i]);
}

static sigset_t watched_signals(void)
{
	sigset_t wanted;

	bench_launch_signals(&wanted);
	sigaddset(&wanted, SIGCHLD);
	return wanted;
}

static int launch_prepare(struct launch_job *job)
{
	struct bench_place *place = &job->place;
	sigset_t wanted = watched_signals();

	bench_place_init(place);
	text_copy(place->launcher, sizeof(place->launcher), "self");
	text_copy(place->address, sizeof(place->address), "127.0.0.1");
	place->nranks = place->local_ranks = job->launch->ranks;
	place->is_gpu_shared = job->launch->ranks > job->gpus;
	place->is_mps = job->mps.is_on;
	if (getrandom(&place->token, sizeof(place->token), 0) != (ssize_t)sizeof(place->token))
		return fail_to_begin(job, "cannot get random numbers");
	if (open_socket(job) != 0)
		return -1;
	if (pipe2(job->problem_ends, O_CLOEXEC) == -1)
		return fail_to_begin(job, "cannot create a pipe");
	fcntl(job->problem_ends[0], F_SETFL, O_NONBLOCK);
	job->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	job->ranks = calloc((size_t)job->launch->ranks, sizeof(*job->ranks));
	if (job->signal_fd == -1 || job->ranks == NULL)
		return fail_to_begin(job, "cannot watch the ranks");
	return 0;
}

static int start_ranks(struct launch_job *job, bench_rank_fn body, void *context)
{
	/* Otherwise every rank would write the buffered output again. */
	fflush(NULL);
	for (int rank = 0; rank < job->launch->ranks; rank++) {
		pid_t pid = fork();

		if (pid == 0)
			launch_become_rank(job, rank, body, context);
		if (pid == -1)
			return fail_to_begin(job, "cannot start a rank");
		job->ranks[rank].pid = pid;
		job->left++;
	}
	close(job->listen_fd);
	job->listen_fd = -1;
	return 0;
}

/* ---- while ---------------------------------------------------------------------------------------- */

static void end_soon(struct launch_job *job, int seconds)
{
	uint64_t end_ns = clock_now_system() + (uint64_t)seconds * 1000000000;

	if (job->end_ns == 0 || end_ns < job->end_ns)
		job->end_ns = end_ns;
}

static void signal_ranks(struct launch_job *job, int number)
{
	for (int rank = 0; rank < job->launch->ranks; rank++) {
		if (job->ranks[rank].pid == 0)
			continue;
		job->ranks[rank].is_ended_by_us = true;
		kill(job->ranks[rank].pid, number);
	}
}

static void note_end(struct launch_job *job, int rank)
{
	const struct launch_rank *ended = &job->ranks[rank];
	bool is_signal = WIFSIGNALED(ended->status);
	int code = is_signal ? WTERMSIG(ended->status) : WEXITSTATUS(ended->status);

	if (!is_signal && code == 0) {
		/* Rank 0 writes the results and exits last; the others have nothing left to do. */
		if (rank == 0)
			end_soon(job, LAST_SECONDS);
		return;
	}
	/* The reader of the results has closed the pipe: no message, as with any command. */
	if (rank == 0 && is_signal && code == SIGPIPE && job->signal == 0)
		job->signal = SIGPIPE;
	/* Return wrong usage if all ranks that failed say so; ranks that we ended do not count. */
	if (!ended->is_ended_by_us)
		job->code = is_signal || code > CLI_EXIT_UNKNOWN ||
					    (job->has_failed && job->code != code)
				    ? CLI_EXIT_UNKNOWN
				    : code;
	job->has_failed = true;
	end_soon(job, GRACE_SECONDS);
	if (ended->is_ended_by_us || (!is_signal && code <= CLI_EXIT_UNKNOWN) ||
	    job->death[0] != '\0')
		return;
	if (is_signal)
		text_format(job->death, sizeof(job->death),
			    "rank %d was killed by signal %d (%s)%s", rank, code, strsignal(code),
			    code == SIGKILL ? ": out of memory? Check dmesg" : "");
	else
		text_format(job->death, sizeof(job->death), "rank %d exited with code %d", rank,
			    code);
}

static void collect_ranks(struct launch_job *job)
{
	for (int rank = 0; rank < job->launch->ranks; rank++) {
		struct launch_rank *at = &job->ranks[rank];

		if (at->pid == 0 || waitpid(at->pid, &at->status, WNOHANG) != at->pid)
			continue;
		at->pid = 0;
		job->left--;
		note_end(job, rank);
	}
}

static void hear_problem(struct launch_job *job)
{
	char text[sizeof(job->told)];
	ssize_t got = read(job->problem_ends[0], text, sizeof(text) - 1);

	if (got <= 0 || job->told[0] != '\0')
		return;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	text_copy(job->told, sizeof(job->told), text);
	end_soon(job, 2 * GRACE_SECONDS);
}

static void take_signals(struct launch_job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		job->signal = (int)info.ssi_signo;
		signal_ranks(job, job->signal);
		end_soon(job, TERM_SECONDS);
	}
}

/* The time limit has passed. */
static void end_ranks(struct launch_job *job)
{
	if (!job->has_failed && job->signal == 0 && job->told[0] == '\0') {
		int seconds = (int)((clock_now_system() - job->began_ns) / 1000000000);
		int rank = 0;

		while (rank < job->launch->ranks - 1 && job->ranks[rank].pid == 0)
			rank++;
		text_format(job->told, sizeof(job->told),
			    "not finished after %d s: %d of %d ranks are still running, the first "
			    "is rank %d",
			    seconds, job->left, job->launch->ranks, rank);
		job->has_failed = true;
	}
	signal_ranks(job, job->is_end_told ? SIGKILL : SIGTERM);
	job->end_ns = clock_now_system() + (uint64_t)TERM_SECONDS * 1000000000;
	job->is_end_told = true;
}

static void watch_ranks(struct launch_job *job)
{
	struct pollfd polls[2] = { { .fd = job->signal_fd, .events = POLLIN },
				   { .fd = job->problem_ends[0], .events = POLLIN } };

	if (job->launch->limit_s > 0)
		end_soon(job, job->launch->limit_s);
	for (;;) {
		uint64_t now = clock_now_system();

		hear_problem(job);
		collect_ranks(job);
		if (job->left == 0)
			break;
		if (job->end_ns != 0 && now >= job->end_ns) {
			end_ranks(job);
			continue;
		}
		poll(polls, 2, job->end_ns == 0 ? -1 : (int)((job->end_ns - now) / 1000000 + 1));
		take_signals(job);
	}
	hear_problem(job);
}

/* ---- after ---------------------------------------------------------------------------------------- */

static void launch_release(struct launch_job *job)
{
	if (job->listen_fd != -1)
		close(job->listen_fd);
	if (job->signal_fd != -1)
		close(job->signal_fd);
	for (int i = 0; i < 2; i++)
		if (job->problem_ends[i] != -1)
			close(job->problem_ends[i]);
	free(job->ranks);
	bench_mps_stop(&job->mps);
	/* Signals that arrived meanwhile have been handled or are too late. */
	sigprocmask(SIG_SETMASK, &job->signals_before, NULL);
}

/* A rank that died explains more than what the others noticed. */
static int tell_result(const struct launch_job *job)
{
	const struct bench_launch *launch = job->launch;
	const char *problem = job->death[0] != '\0' ? job->death : job->told;

	if (job->signal != 0)
		return 128 + job->signal;
	if (!job->has_failed && problem[0] == '\0')
		return 0;
	if (launch->problem != NULL)
		text_copy(launch->problem, launch->problem_size, problem);
	else if (problem[0] != '\0')
		cli_error("%s", problem);
	return job->code != 0 ? job->code : CLI_EXIT_UNKNOWN;
}

int bench_launch(const struct bench_launch *launch, bench_rank_fn body, void *context)
{
	struct launch_job job = { .launch = launch,
				  .pid = getpid(),
				  .gpus = launch->gpus,
				  .listen_fd = -1,
				  .problem_ends = { -1, -1 },
				  .signal_fd = -1,
				  .began_ns = clock_now_system() };
	sigset_t wanted = watched_signals();

	if (launch->problem != NULL && launch->problem_size > 0)
		launch->problem[0] = '\0';
	if (job.gpus == 0)
		job.gpus = bench_launch_gpus(job.told, sizeof(job.told));
	if (job.gpus < 1) {
		job.has_failed = true;
		return tell_result(&job);
	}
	sigprocmask(SIG_BLOCK, &wanted, &job.signals_before);
	if (launch->ranks > job.gpus && launch->is_mps_wanted)
		bench_mps_start(&job.mps);
	if (launch_prepare(&job) != 0 || start_ranks(&job, body, context) != 0) {
		job.has_failed = true;
		end_soon(&job, 0);
	}
	if (job.left > 0)
		watch_ranks(&job);
	launch_release(&job);
	return tell_result(&job);
}
