/*
 * The ranks of a job: the place of each, what it takes to start them on this host, and a hub through which they talk
 * besides NCCL.
 */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/status.h"

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

/*
 * Starts the ranks of a job on this host: forked from a process that never used CUDA, each with its place; they die
 * with it. Ranks that share a GPU get different NCCL_HOSTIDs, sockets over loopback, fewer channels, and MPS if
 * available.
 */

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

struct bench_hub;

/*
 * Communication between ranks besides NCCL: a star around rank 0 over TCP. Used for the unique id, for aligning
 * ranks and for results; never inside a timed region. All ranks make the same calls in the same order, as with MPI.
 * A rank that fails sends the reason, and every other rank's next call fails with it; a rank that dies is noticed
 * by its closed connection.
 *
 * Functions return 0, or -1 with one line in hub_problem(): what happened, on which rank. All ranks know it then;
 * hub_is_teller() is true on the one that reports it to the user.
 */

enum { HUB_PROBLEM_BYTES = 512, HUB_MESSAGE_MAX = 1 << 30 };

/*
 * Joins all ranks. `patience_s`: how long to wait for the last one (missing ranks are named). A single rank needs
 * no network. Even after -1 there is a hub to query and close; NULL: out of memory.
 */
int hub_open(struct bench_hub **hub, const struct bench_place *place, int patience_s);
void hub_close(struct bench_hub *hub);

/*
 * From now on, a call that waits longer for the others fails and names those that did not answer; 0, the default:
 * no limit.
 */
void hub_set_patience(struct bench_hub *hub, int seconds);

/* Barrier. If all ranks are on one host with enough CPUs, they leave it within a few microseconds of each other. */
int hub_meet(struct bench_hub *hub);
/* Sends rank 0's bytes to all ranks. */
int hub_share(struct bench_hub *hub, void *bytes, size_t length);
/*
 * Rank 0 gets `length` bytes of every rank, in order, its own first: into[rank * length]. On other ranks `into` can
 * be NULL.
 */
int hub_gather(struct bench_hub *hub, const void *bytes, size_t length, void *into);
/*
 * Checks without waiting whether another rank failed or died, e.g. while waiting for a GPU: -1 and the reason in
 * hub_problem(), otherwise 0. Costs a system call.
 */
int hub_poll(struct bench_hub *hub);
/*
 * Informs all ranks that this one cannot continue; the first reason wins. Can be called from another thread while
 * this rank is in one of the calls above, which then ends at the next event.
 */
void hub_fail(struct bench_hub *hub, const char *reason);
const char *hub_problem(const struct bench_hub *hub);
/*
 * After a call failed: closes this rank's side of all connections and waits until the others have closed theirs, as
 * all do whose call fails. Returns how many did not within `wait_ms`, with their numbers in `ranks`: they are
 * stopped, or their host is down. Rank 0 checks all, others rank 0. Nothing can be sent afterwards.
 */
size_t hub_silent(struct bench_hub *hub, int wait_ms, int *ranks, size_t most);
/* Rank 0; if rank 0 is gone, rank 1. Every rank that has no hub. */
bool hub_is_teller(const struct bench_hub *hub);

/*
 * Frames between rank 0 and another rank.
 *
 *	header (32 bytes) | payload (header.length bytes)
 *
 * Sockets are nonblocking; waiting happens in poll(), with a deadline. A frame that arrives early, because its
 * sender is a step ahead, stays in the socket after its header until its step is reached.
 */

#define HUB_MAGIC UINT32_C(0x52534832) /* also detects another byte order */

enum { HUB_HOST_BYTES = 64, HUB_VERSION = 1 };

enum hub_kind {
	HUB_HELLO = 1,	 /* to rank 0: struct hub_hello */
	HUB_WELCOME = 2, /* the answer: struct hub_hello of rank 0 */
	HUB_MEET = 3,	 /* arrived at a barrier */
	HUB_GO = 4, /* all have arrived; value: when to continue, CLOCK_MONOTONIC ns, 0: at once */
	HUB_SHARE = 5,
	HUB_GATHER = 6,
	HUB_FAIL = 7, /* at any time: the payload is the reason */
	HUB_BYE = 8,
};

struct hub_header {
	uint32_t magic;
	uint32_t kind; /* enum hub_kind */
	uint64_t step; /* calls on the hub so far: must be equal on both sides */
	uint64_t value;
	uint64_t length; /* of the payload */
};
_Static_assert(sizeof(struct hub_header) == 32, "as it travels");

struct hub_hello {
	uint32_t version;
	int32_t rank;
	int32_t nranks;
	int32_t reserved;
	uint64_t token;
	uint64_t machine; /* hash of the boot id: equal on the same host, which has one clock */
	char host[HUB_HOST_BYTES];
};
_Static_assert(sizeof(struct hub_hello) == 96, "as it travels");

struct hub_peer {
	int fd; /* -1: none */
	int rank;
	char host[HUB_HOST_BYTES];
	struct hub_header header; /* of the frame being read */
	size_t header_got;
	size_t payload_got;
	bool is_done;	  /* its frame of this step has been received */
	bool is_mid_send; /* a frame was only partly sent: nothing can follow */
};

struct bench_hub {
	int rank;
	int nranks;
	char host[HUB_HOST_BYTES];
	uint64_t machine;
	struct hub_peer *peers; /* rank 0: all others, [rank - 1]; others: rank 0 */
	struct pollfd *polls;	/* one per peer, plus the listening ones */
	size_t peer_count;
	uint64_t step;
	uint64_t patience_ns; /* 0: no limit */
	bool may_spin;	      /* enough CPUs for all ranks on this host */
	bool is_one_machine;
	pthread_mutex_t lock;  /* one frame at a time, and one reason: a watchdog can fail, too */
	atomic_bool is_broken; /* problem has the reason; every further call fails */
	atomic_bool is_rank_0_lost; /* so it cannot report the reason */
	bool is_refused;	    /* and rank 0 continues without this one */
	char problem[HUB_PROBLEM_BYTES];
};

/*
 * Receives a frame of this kind and length from every peer; the payload of rank r goes to into + r * length (on
 * ranks other than 0 to into), *value is that of the last one. 0, -1: broken.
 */
int hub_collect(struct bench_hub *hub, enum hub_kind kind, void *into, size_t length,
		uint64_t *value, uint64_t deadline_ns);

/* Reads what is available without waiting. 0, -1: broken. */
int hub_peek(struct bench_hub *hub);

/* Reads or writes everything before the deadline, outside the steps. 0; -1: errno, 0 for end of file. */
int hub_read_whole(int fd, void *bytes, size_t length, uint64_t deadline_ns);

/*
 * The file with rank 0's addresses. One line per address, all with the same token: HOST:PORT TOKEN, an IPv6 address
 * in brackets.
 *
 *	127.0.0.1:40123 9f86d081884c7d65
 */

enum { HUB_CARD_ADDRESSES = 16, HUB_CARD_HOST = 256, HUB_CARD_BYTES = 8192 };

struct hub_card {
	size_t count;
	char hosts[HUB_CARD_ADDRESSES][HUB_CARD_HOST];
	int port;
	uint64_t token;
};

/* Parses "host:port" and "[::1]:port"; ERR_FORMAT. */
enum status hub_card_address(const char *text, size_t length, char host[static HUB_CARD_HOST],
			     int *port);

enum status hub_card_parse(struct hub_card *card, const char *text, size_t length);

/* Written atomically, mode 0600. ERR_SYSTEM: errno. */
enum status hub_card_write(const struct hub_card *card, const char *path);

#endif
