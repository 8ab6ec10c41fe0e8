/*
 * Starting the ranks of a job on this machine: forked from a process that never touched CUDA, each
 * with its place; they die with it. With fewer GPUs than ranks they share them: every rank gets an
 * NCCL_HOSTID of its own, sockets over the loopback, fewer channels, and MPS where it can be had.
 */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Who am I: rank and size from the launcher's environment, and where rank 0 can be met.
 *
 *	torchrun	RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (that port is the
 *			launcher's own: ours is one of the eight above it)
 *	mpirun		OMPI_COMM_WORLD_*, PMI_RANK/PMI_SIZE (MPICH, Intel), MPI_LOCALRANKID ...; no address: ranks of
 *			one machine meet by a file, for several machines --meet is needed
 *	srun		SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID of a step; rank 0's machine is the first of the step's
 *			node list, the port comes from the numbers of job and step
 *	env		RANK and WORLD_SIZE, set by whoever started the ranks
 *	self		we started the ranks: bench_launch() hands each its place
 */

struct bench_place {
	char launcher[16]; /* as in bench_result.h */
	int rank;
	int nranks;
	int local_rank;	   /* on this machine; -1: unknown */
	int local_ranks;   /* -1: unknown */
	char address[256]; /* where rank 0 listens; "": by file */
	int port;
	int ports;	 /* so many from `port` on may be tried, when the first are taken; 0 is 1 */
	int listen_fd;	 /* rank 0: a socket that listens at address and port already; or -1 */
	char file[4096]; /* rank 0 writes here where it listens; "": address and port are known */
	bool is_own_file;   /* made up here, in a directory of our own */
	uint64_t token;	    /* both sides know it: a stranger on that port is turned away */
	bool is_gpu_shared; /* more ranks than GPUs here, known by who started them */
	bool is_mps;	    /* ... and MPS was started for them */
	int results_fd; /* rank 0: what was standard output before it became standard error; or -1 */
	int problem_fd; /* where the launcher hears why a rank failed; -1: tell it on stderr */
};

typedef const char *(*bench_getenv)(void *context, const char *name);

/* No rank, nothing known: all empty, descriptors -1. */
void bench_place_init(struct bench_place *place);

/* Reads the environment through `get`. 1: found; 0: no launcher here; -1: contradictory or incomplete
 * (*problem). --meet HOST:PORT or FILE (`meet`, may be NULL) overrides where rank 0 is met. */
int bench_place_find(struct bench_place *place, bench_getenv get, void *context, const char *meet,
		     char *problem, size_t problem_size);

/* Before the hub: the private directory of a file that was made up here (not of --meet). 0, or -1 and
 * *problem. */
int bench_place_prepare(const struct bench_place *place, char *problem, size_t problem_size);
/* At the end: that directory goes, unless another job meets there. */
void bench_place_clean(const struct bench_place *place);

/* The first host of a Slurm node list: "gpu[007-010,12],login1" is "gpu007". False: none. */
bool bench_place_first_host(const char *list, char *host, size_t size);
/* Of Slurm's "4(x2),3": the tasks of the n-th node; -1: not said. */
int bench_place_tasks(const char *list, int node);

/* Helper programs and children of the launcher, with a limit on how long they may take. */

/* Run a program, its standard input from `input` (NULL: nothing), its output to the file `log` (NULL:
 * nowhere). Its exit code; -1: not started, or ended by a signal or by us. */
int bench_spawn(const char *const *words, const char *input, const char *log, int limit_s);

/*
 * Whoever cleans up when a process ends, however it ends: SIGKILL, too. A child that does nothing but wait for
 * that; signals of a terminal or a batch system do not end it before its time.
 */

struct bench_keeper {
	pid_t pid; /* 0: there is none */
	int fd;	   /* closed by our end, whatever it is */
};

typedef void (*bench_keeper_fn)(const void *context);

/* clean(context as it is now) is called in the child when this process is over, and all that it forks from now on (not
 * those that execute something else). False: no child could be made. */
bool bench_keeper_start(struct bench_keeper *keeper, bench_keeper_fn clean, const void *context);
/* Now, and wait for it. False: there is none, so nothing was cleaned. */
bool bench_keeper_end(struct bench_keeper *keeper);

/* A directory and all below it, quietly: what cannot be removed stays. "": nothing. */
void bench_remove_tree(const char *path);

/*
 * NVIDIA's MPS for ranks that share a GPU: their kernels run together instead of taking turns of some
 * 2 ms. Started with directories of its own, so that it is nobody else's, and stopped at the end.
 */

struct bench_mps {
	bool is_on;	     /* ranks will run under it, ours or one that was there */
	bool is_ours;	     /* to be stopped */
	char control[4096];  /* the program */
	char directory[128]; /* "" unless it is ours */
	char pipe[160];	     /* for CUDA_MPS_PIPE_DIRECTORY; "" unless it is ours */
	char log[160];
	struct bench_keeper keeper; /* stops it, also when we are killed */
};

/* Quietly off where there is no MPS, or it does not start. */
void bench_mps_start(struct bench_mps *mps);
/* Nothing of it stays: neither daemon, server nor directory. It happens by itself when this process and those
 * that it forked end otherwise. */
void bench_mps_stop(struct bench_mps *mps);
/* In a rank, before CUDA is opened. */
void bench_mps_environment(const struct bench_mps *mps);

/* What this machine has, asked in a child of its own: a process that opened CUDA must not fork. */

/* How many GPUs there are; -1: *problem says in one line what is missing. With `with_nccl`, NCCL must be
 * there, too: the library `nccl`, or where it is NULL the one that would be found. */
int bench_look(bool with_nccl, const char *nccl, char *problem, size_t problem_size);

/* Several ranks on one GPU: what NCCL must be told so that it takes them. docs/REAL-NCCL.md explains. */

/* In the rank's own environment, before NCCL is opened: a machine of its own for each rank, sockets over
 * the loopback, and from four ranks of a GPU on few channels, because kernels that wait for each other
 * must fit on it together. What the user set stays, but for NCCL_HOSTID. */
void bench_share_environment(int rank, int ranks_per_gpu);

struct bench_variable {
	const char *name;
	const char *value; /* NULL: unset */
};

struct bench_launch {
	int ranks;
	int gpus; /* on this machine; 0: asked */
	bool is_mps_wanted;
	int results_fd; /* rank 0's standard output for results; -1: the caller's */
	const struct bench_variable
		*variables; /* set in every rank, ends with a NULL name; may be NULL */
	const char *log; /* ranks' stderr goes to this file, "%r" is the rank; NULL: the caller's */
	char *problem;	 /* the line goes here instead of to stderr; may be NULL */
	size_t problem_size;
	int limit_s; /* not over after so long: a hang, told and ended; 0: no limit */
};

/* What a rank does; its return value is the rank's exit code. */
typedef int (*bench_rank_fn)(const struct bench_place *place, void *context);

/* Give back 0 when all ranks did, else 1 (2 when all that failed gave 2) after one line for the first that
 * failed; a rank that exits with 1 or 2 told it, to the launcher by bench_tell() or by itself. 128 + n when
 * signal n ended it: Ctrl-C, SIGTERM and SIGHUP reach the ranks. */
int bench_launch(const struct bench_launch *launch, bench_rank_fn body, void *context);

/* The signals that end a job: Ctrl-C, SIGTERM and SIGHUP, less those that are ignored. */
void bench_launch_signals(sigset_t *ending);

/* A rank says why it cannot go on: to the launcher, who tells the first one, or on stderr where there
 * is none. One line without "ringside: ". */
void bench_tell(const struct bench_place *place, const char *problem);

/* GPUs on this machine, asked in a forked child; -1 and *problem when CUDA cannot be opened. */
int bench_launch_gpus(char *problem, size_t problem_size);

#endif
