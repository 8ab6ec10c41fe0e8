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
 *	self		we started the ranks: bench_launch.h hands each its place
 */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
