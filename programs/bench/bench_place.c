#include "programs/bench/bench_place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench_result.h"
#include "common/attributes.h"
#include "common/hash.h"
#include "common/text.h"
#include "programs/bench/hub_card.h"

/* Where the launcher's own port, or a number made of the job's, is taken, the next ones are tried. */
enum { PORTS_TRIED = 8, SLURM_PORT_FIRST = 20000, SLURM_PORTS = 10000 };

struct finder {
	struct bench_place *place;
	bench_getenv get;
	void *context;
	char *problem;
	size_t problem_size;
};

/* "" counts as not set. */
static const char *variable(const struct finder *finder, const char *name)
{
	const char *value = finder->get(finder->context, name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *first_variable(const struct finder *finder, const char *const *names)
{
	for (; *names != NULL; names++)
		if (variable(finder, *names) != NULL)
			return *names;
	return NULL;
}

/* 1: taken; 0: not set; -1: set to something else. `names` ends with NULL; *name is the one that was set. */
static int take_number(const struct finder *finder, const char *const *names, int least, int most,
		       int *number, const char **name)
{
	int64_t value;

	*name = first_variable(finder, names);
	if (*name == NULL)
		return 0;
	if (text_number(variable(finder, *name), least, most, &value) != OK) {
		snprintf(finder->problem, finder->problem_size,
			 "%s=%.40s is not a number from %d to %d", *name, variable(finder, *name),
			 least, most);
		return -1;
	}
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
/* PMIx itself names no size. */
static const struct launcher pmix = { "mpirun",
				      { "PMIX_RANK" },
				      { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE" },
				      { "PMIX_LOCAL_RANK" },
				      { "LOCAL_WORLD_SIZE" } };

/* Values that only this launcher's steps have. In a batch script, or a shell of `srun --pty`, nobody started
 * one of these per rank. */
static bool is_slurm_step(const struct finder *finder)
{
	static const char *const steps[] = { "SLURM_STEP_ID", "SLURM_STEPID", NULL };

	return variable(finder, "SLURM_PROCID") && first_variable(finder, steps) &&
	       !variable(finder, "SLURM_PTY_PORT");
}

static bool is_same(const struct finder *finder, const char *a, const char *b)
{
	const char *left = variable(finder, a), *right = variable(finder, b);

	return left != NULL && right != NULL && strcmp(left, right) == 0;
}

/* The innermost one counts: torchrun in a Slurm step, mpirun in an allocation. srun sets PMI_RANK, too,
 * with the same number. */
static const struct launcher *find_launcher(const struct finder *finder)
{
	if (variable(finder, "RANK"))
		return &torchrun;
	if (variable(finder, "OMPI_COMM_WORLD_RANK"))
		return &open_mpi;
	if (variable(finder, "PMI_RANK") &&
	    !(is_slurm_step(finder) && is_same(finder, "PMI_RANK", "SLURM_PROCID")))
		return &hydra;
	if (is_slurm_step(finder))
		return &srun;
	return variable(finder, "PMIX_RANK") ? &pmix : NULL;
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
		snprintf(finder->problem, finder->problem_size,
			 "%s is set but %s is not: how many ranks are there?", rank_name,
			 launcher->sizes[0]);
		return -1;
	}
	if (place->rank >= place->nranks) {
		snprintf(finder->problem, finder->problem_size,
			 "%s=%d but %s=%d: ranks are from 0 to %d", rank_name, place->rank,
			 size_name, place->nranks, place->nranks - 1);
		return -1;
	}
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
	    (place->local_ranks != -1 && place->local_rank >= place->local_ranks)) {
		snprintf(finder->problem, finder->problem_size,
			 "%s=%d and %s=%d do not fit into %d ranks",
			 rank_name ? rank_name : "local rank", place->local_rank,
			 size_name ? size_name : "local ranks", place->local_ranks, place->nranks);
		return -1;
	}
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
		place->local_ranks = bench_place_tasks(variable(finder, counts), node);
	if (place->local_ranks < 1 || place->local_ranks > place->nranks ||
	    place->local_rank >= place->local_ranks)
		place->local_ranks = -1;
	if (list != NULL && bench_place_first_host(variable(finder, list), host, sizeof(host))) {
		text_copy(place->address, sizeof(place->address), host);
		place->port = SLURM_PORT_FIRST + (int)(place->token % SLURM_PORTS);
		place->ports = PORTS_TRIED;
	}
	return 0;
}

/* ---- where rank 0 is ------------------------------------------------------------------------------ */

/* What all ranks of a job have alike and another job has not. */
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
		const char *value = variable(finder, names[i]);

		if (value != NULL)
			token = hash_word(token, hash_bytes(value, strlen(value)) + i);
	}
	return meet ? hash_word(token, hash_bytes(meet, strlen(meet))) : token;
}

static int take_master(const struct finder *finder)
{
	static const char *const ports[] = { "MASTER_PORT", NULL };
	struct bench_place *place = finder->place;
	const char *address = variable(finder, "MASTER_ADDR");
	const char *name;

	if (address == NULL)
		return 0;
	if (!text_copy(place->address, sizeof(place->address), address)) {
		snprintf(finder->problem, finder->problem_size, "MASTER_ADDR=%.40s... is too long",
			 address);
		return -1;
	}
	place->port = 29500;
	if (take_number(finder, ports, 1, 65535, &place->port, &name) == -1)
		return -1;
	/* That one belongs to the launcher. */
	place->port += place->port + PORTS_TRIED <= 65535 ? 1 : -PORTS_TRIED;
	place->ports = PORTS_TRIED;
	return 0;
}

/* Ranks of one machine: a name that they all come to by themselves. */
static int take_own_file(const struct finder *finder)
{
	static const char *const names[] = { "PMIX_NAMESPACE",
					     "OMPI_MCA_ess_base_jobid",
					     "OMPI_MCA_orte_ess_jobid",
					     "OMPI_MCA_orte_hnp_uri",
					     "PMI_JOBID",
					     NULL };
	struct bench_place *place = finder->place;
	const char *directory = variable(finder, "TMPDIR");
	const char *name = first_variable(finder, names);
	const char *job = name ? variable(finder, name) : "";
	uint64_t key = hash_word(hash_bytes(job, strlen(job)), name ? 1 : (uint64_t)getppid());

	place->is_own_file = true;
	if (text_format(place->file, sizeof(place->file), "%s/ringside-bench-%ld/%016" PRIx64,
			directory ? directory : "/tmp", (long)geteuid(), key))
		return 0;
	snprintf(finder->problem, finder->problem_size, "TMPDIR=%.40s... is too long", directory);
	return -1;
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
		snprintf(finder->problem, finder->problem_size,
			 "--meet %.80s is neither HOST:PORT nor a file", meet);
		return -1;
	}
	if (meet[0] != '\0' && text_copy(place->file, sizeof(place->file), meet))
		return 0;
	snprintf(finder->problem, finder->problem_size, "--meet: the file's name is %s",
		 meet[0] == '\0' ? "empty" : "too long");
	return -1;
}

static int find_meeting(const struct finder *finder, const struct launcher *launcher,
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
	snprintf(finder->problem, finder->problem_size,
		 "%s does not say where rank 0 is: --meet HOST:PORT names its machine and a free "
		 "port, or --meet FILE a file that all machines see",
		 place->launcher);
	return -1;
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
	if (launcher == &torchrun && !variable(&finder, "TORCHELASTIC_RUN_ID"))
		name = "env";
	text_copy(place->launcher, sizeof(place->launcher), name);
	if (take_rank(&finder, launcher) != 0 || take_local(&finder, launcher) != 0 ||
	    find_meeting(&finder, launcher, meet) != 0)
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
	if (mkdir(directory, 0700) == -1 && errno != EEXIST) {
		snprintf(problem, problem_size, "cannot make %.200s for ranks to meet: %s",
			 directory, strerror(errno));
		return -1;
	}
	if (lstat(directory, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	    (st.st_mode & 022) == 0)
		return 0;
	snprintf(problem, problem_size,
		 "%.200s is not a directory of this user alone; --meet FILE names another place",
		 directory);
	return -1;
}
