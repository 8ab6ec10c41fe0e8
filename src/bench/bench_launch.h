/*
 * Starts the ranks of a job on this host: forked from a process that never used CUDA, each with its place; they die
 * with it. Ranks that share a GPU get different NCCL_HOSTIDs, sockets over loopback, fewer channels, and MPS if
 * available.
 */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A rank's place in the job: rank and size from the launcher's environment, and the address of rank 0.
 *
 *	torchrun	RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT (used by the
 *			launcher itself: we take one of the next eight)
 *	mpirun		OMPI_COMM_WORLD_*, PMI_RANK/PMI_SIZE (MPICH, Intel), MPI_LOCALRANKID ...; no address: ranks of
 *			one host use a file, several hosts need --meet
 *	srun		SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID of a step; rank 0's host is the first in the step's
 *			node list, the port is derived from job id and step id
 *	env		RANK and WORLD_SIZE, set by whoever started the ranks
 *	self		the ranks were started by bench_launch(), which gives each its place
 */

struct bench_place {
	char launcher[16]; /* as in bench_result.h */
	int rank;
	int nranks;
	int local_rank;	   /* on this host; -1: unknown */
	int local_ranks;   /* -1: unknown */
	char address[256]; /* where rank 0 listens; "": see file */
	int port;
	int ports;	    /* number of ports to try, starting at `port`; 0 means 1 */
	int listen_fd;	    /* rank 0: a socket already listening at address and port; or -1 */
	char file[4096];    /* rank 0 writes its address here; "": address and port are known */
	bool is_own_file;   /* named by us, in our own directory */
	uint64_t token;	    /* known to all ranks: connections from other jobs are rejected */
	bool is_gpu_shared; /* more ranks than GPUs on this host; set by the parent */
	bool is_mps;	    /* ... and MPS was started for them */
	int results_fd;	    /* rank 0: the original standard output; or -1 */
	int problem_fd;	    /* where the parent reads why a rank failed; -1: print it on stderr */
};

typedef const char *(*bench_getenv)(void *context, const char *name);

/* Empty: no rank, descriptors -1. */
void bench_place_init(struct bench_place *place);

/*
 * Reads the environment through `get`. 1: found; 0: no launcher; -1: contradictory or incomplete (*problem). --meet
 * HOST:PORT or FILE (`meet`, can be NULL) overrides the address of rank 0.
 */
int bench_place_find(struct bench_place *place, bench_getenv get, void *context, const char *meet,
		     char *problem, size_t problem_size);

/*
 * Call before opening the hub: creates the private directory of our own rendezvous file (not for --meet). 0, or -1
 * and *problem.
 */
int bench_place_prepare(const struct bench_place *place, char *problem, size_t problem_size);
/* Removes that directory at the end, unless another job uses it. */
void bench_place_clean(const struct bench_place *place);

/* The first host of a Slurm node list: "gpu[007-010,12],login1" is "gpu007". False: none. */
bool bench_place_first_host(const char *list, char *host, size_t size);
/* From Slurm's "4(x2),3": the number of tasks of the n-th node; -1: unknown. */
int bench_place_tasks(const char *list, int node);

/* Helper programs and child processes, with a time limit. */

/*
 * Runs a program with `input` as its standard input (NULL: none) and its output in the file `log` (NULL:
 * discarded). Returns its exit code; -1: not started, or killed by a signal or by us.
 */
int bench_spawn(const char *const *words, const char *input, const char *log, int limit_s);

/*
 * Cleans up when a process ends, even by SIGKILL: a child that only waits for that. Signals from a terminal or
 * batch system do not end it early.
 */

struct bench_cleaner {
	pid_t pid; /* 0: none */
	int fd;	   /* closed when our process ends */
};

typedef void (*bench_cleaner_fn)(const void *context);

/*
 * clean(a copy of context as it is now) runs in the child once this process and everything it forks from now on has
 * ended (processes that call exec do not count). False: could not fork.
 */
bool bench_cleaner_start(struct bench_cleaner *cleaner, bench_cleaner_fn clean,
			 const void *context);
/* Cleans up now and waits for it. False: there is none, nothing was cleaned. */
bool bench_cleaner_end(struct bench_cleaner *cleaner);

/* Removes a directory tree; ignores errors. "": does nothing. */
void bench_remove_tree(const char *path);

/*
 * NVIDIA MPS for ranks that share a GPU: their kernels run concurrently instead of in time slices of about 2 ms.
 * Started with private directories, so that no other job uses it, and stopped at the end.
 */

struct bench_mps {
	bool is_on;	     /* ranks will run under MPS, ours or an existing one */
	bool is_ours;	     /* we started it and must stop it */
	char control[4096];  /* the program */
	char directory[128]; /* "" if not ours */
	char pipe[160];	     /* for CUDA_MPS_PIPE_DIRECTORY; "" if not ours */
	char log[160];
	struct bench_cleaner cleaner; /* stops it even if we are killed */
};

/* Leaves is_on false if MPS is not available or does not start. */
void bench_mps_start(struct bench_mps *mps);
/* Removes daemon, servers and directory. Also happens if this process and its children end in any other way. */
void bench_mps_stop(struct bench_mps *mps);
/* In a rank, before CUDA is opened. */
void bench_mps_environment(const struct bench_mps *mps);

/* Queries this host in a child process: a process that opened CUDA must not fork. */

/*
 * Number of GPUs; -1: *problem says in one line what is missing. If `with_nccl`, NCCL must be present, too: the
 * library `nccl`, or the default one if it is NULL.
 */
int bench_look(bool with_nccl, const char *nccl, char *problem, size_t problem_size);

/* NCCL settings for several ranks on one GPU. See docs/REAL-NCCL.md. */

/*
 * Sets the rank's environment before NCCL is opened: a host id per rank, sockets over loopback, and few channels if
 * four or more ranks share a GPU, because kernels that wait for each other must fit on it together. Variables set
 * by the user are kept, except NCCL_HOSTID.
 */
void bench_share_environment(int rank, int ranks_per_gpu);

struct bench_variable {
	const char *name;
	const char *value; /* NULL: unset */
};

struct bench_launch {
	int ranks;
	int gpus; /* on this host; 0: query */
	bool is_mps_wanted;
	int results_fd; /* where rank 0 writes results; -1: the caller's stdout */
	const struct bench_variable
		*variables; /* set in every rank, ends with a NULL name; can be NULL */
	const char
		*log;  /* file for the ranks' stderr, "%r" is the rank; NULL: the caller's stderr */
	char *problem; /* gets the error line instead of stderr; can be NULL */
	size_t problem_size;
	int limit_s; /* time limit, after which the job is reported as hung and killed; 0: none */
};

/* The main function of a rank; returns the rank's exit code. */
typedef int (*bench_rank_fn)(const struct bench_place *place, void *context);

/*
 * Returns 0 if all ranks did, else 1 (2 if all failed ranks returned 2) after one line for the first failure; a
 * rank that exits with 1 or 2 has reported it, with bench_tell() or itself. 128 + n if signal n ended the job:
 * Ctrl-C, SIGTERM and SIGHUP are passed to the ranks.
 */
int bench_launch(const struct bench_launch *launch, bench_rank_fn body, void *context);

/* The signals that end a job: Ctrl-C, SIGTERM and SIGHUP, except those that are ignored. */
void bench_launch_signals(sigset_t *ending);

/*
 * Reports why a rank cannot continue: to the parent, which prints the first such line, or on stderr if there is
 * none. One line without "ringside: ".
 */
void bench_tell(const struct bench_place *place, const char *problem);

/* GPUs on this host, queried in a forked child; -1 and *problem if CUDA cannot be opened. */
int bench_launch_gpus(char *problem, size_t problem_size);

#endif
