/* A simulated job before it runs: ranks, communicators, programs, faults. Read only once made. */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/nccl_interface.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "output/sink.h"

/* What a communicator is for. A rank has at most one of each; all but the first are split from it. */

enum sim_role {
	SIM_WORLD = 0,
	SIM_TENSOR = 1,
	SIM_PIPELINE = 2,
	SIM_DATA = 3,
	SIM_EXPERT = 4,
	SIM_ROLES = 5,
};

/* What can go wrong in a simulated job, from a time on. */

enum sim_fault_kind {
	SIM_FAULT_NONE = 0,
	SIM_SLOW_RANK = 1,	  /* computes slower: arrives late */
	SIM_SLOW_LINK = 2,	  /* one direction between two ranks */
	SIM_DEGRADED_NETWORK = 3, /* all links between nodes */
	SIM_SLOW_NVLINK = 4,	  /* links within a node */
	SIM_NEVER_ARRIVES = 5,	  /* makes no more calls; the others wait inside theirs */
	SIM_STUCK_SEND = 6,	  /* a send that the network never completes */
	SIM_MISMATCH = 7,	  /* one call differs from what the other ranks call */
	SIM_DEADLOCK = 8,	  /* two communicators used in the opposite order */
	SIM_GPU_STUCK = 9,	  /* a GPU does not do its part */
	SIM_STOP = 10,		  /* SIGSTOP */
	SIM_KILL = 11,		  /* SIGKILL */
	SIM_FAULT_KINDS = 12,
};

/* SIM_MISMATCH: what differs. */
enum sim_mismatch {
	SIM_MISMATCH_COUNT = 0,
	SIM_MISMATCH_FUNCTION = 1,
	SIM_MISMATCH_DATATYPE = 2,
	SIM_MISMATCH_ROOT = 3,
	SIM_MISMATCH_ORDER = 4, /* it makes two calls the other way round */
	SIM_MISMATCHES = 5,
};

/* SIM_GPU_STUCK: how far a call gets. */
enum sim_gpu_stuck {
	SIM_NOT_STARTED = 0,   /* its kernel is enqueued behind something that does not end */
	SIM_NOT_LAUNCHED = 1,  /* the call was made, and does not come back */
	SIM_NOT_PRODUCING = 2, /* its kernel runs, and neither fills nor empties a buffer */
	SIM_GPU_STUCKS = 3,
};

struct sim_fault {
	enum sim_fault_kind kind;
	int rank;
	int from;
	int to;	     /* SIM_STUCK_SEND: -1 any */
	int peer;    /* SIM_DEADLOCK */
	int node;    /* SIM_SLOW_NVLINK: -1 all */
	int link;    /* SIM_STUCK_SEND: n-th from 1, 0 all */
	int channel; /* SIM_STUCK_SEND: -1 all */
	uint64_t factor_permille;
	int what;	   /* enum sim_mismatch, enum sim_gpu_stuck */
	int role;	   /* enum sim_role of the communicator, -1: any */
	uint64_t at_ns;	   /* of the job's time */
	uint64_t until_ns; /* UINT64_MAX: for good */
	bool has_at;	   /* said, not taken from --at */
};

enum { SIM_FAULTS_MAX = 16 };

/* What --list says: name, keys and what happens. NULL past the table. */
struct sim_fault_page {
	const char *name;
	const char *keys; /* "rank=R[,factor=F]" */
	const char *about;
};
const struct sim_fault_page *sim_fault_page(enum sim_fault_kind kind);

/* "KIND" or "KIND:key=value,...". On failure `why` has one line that says what is allowed. */
enum status sim_fault_parse(struct sim_fault *fault, const char *text, char *why, size_t size);

/* Does it end the job: does everybody wait for ever in the end? */
bool sim_fault_hangs(const struct sim_fault *fault);

/* Everything that can be chosen for a simulated job. */

enum sim_workload {
	SIM_DDP = 0,
	SIM_FSDP = 1,
	SIM_TP_PP = 2,
	SIM_MOE = 3,
	SIM_LOOP = 4,
	SIM_WORKLOADS = 5,
};

enum {
	SIM_NODES_MAX = 4096,
	SIM_GPUS_MAX = 16,
	SIM_RANKS_MAX = 16384,
	SIM_LIVE_RANKS_MAX = 512,
	SIM_SIZES_MAX = 16,
};

/* A link's two figures. Bandwidth in bytes per microsecond: the same number as MB/s. */
struct sim_link {
	uint64_t bytes_per_us;
	uint64_t latency_ns;
};

struct sim_options {
	int nodes;
	int gpus; /* of a node */
	enum sim_workload workload;
	int tensor, pipeline, expert; /* sizes of these groups; 0: the workload's own choice */
	int channels;		      /* of communicators between nodes; 0: as many as suit */
	uint64_t iterations;	      /* 0: by time */
	uint64_t seconds_ns;	      /* 0: by iterations, or 10 s past the last fault's begin */
	uint64_t sizes[SIM_SIZES_MAX];
	size_t size_count;  /* 0: the workload's own */
	uint64_t period_ns; /* compute time of an iteration; 0: the workload's own */
	struct sim_fault faults[SIM_FAULTS_MAX];
	size_t fault_count;
	uint64_t at_ns; /* of faults that do not say it themselves */
	uint64_t seed;
	int release; /* 22809 */
	enum kernel_events kernel;
	bool is_kernel_said;	   /* else: the recorder's default for the release */
	unsigned int sample_level; /* sampled: one block of collectives in 2^level is timed */
	bool is_full;		   /* mode full: details of every operation */
	uint64_t clock_shift_ns;
	uint64_t hang_ns; /* how long a hung job is watched */
	unsigned int jitter_permille;
	struct sim_link nvlink, network;
	bool is_offline;
	bool is_threads;	/* all ranks in one process */
	bool is_node_processes; /* those of a node in one process */
	const char *plugin;
	const char *directory;
	const char *regions; /* below it a directory per node for its regions; NULL: one for all */
};

void sim_options_init(struct sim_options *options);

/* Fill in what depends on other options and check that they fit each other. On failure `why` has
 * one line. */
enum status sim_options_finish(struct sim_options *options, char *why, size_t size);

/* The profiler interface version of the release. */
int sim_options_interface(const struct sim_options *options);

static inline int sim_options_world(const struct sim_options *options)
{
	return options->nodes * options->gpus;
}

/* What --list says. NULL past the table. */
struct sim_workload_page {
	const char *name;
	const char *about;
	const char *sizes; /* what --sizes means */
};
const struct sim_workload_page *sim_workload_page(enum sim_workload workload);
/* SIM_WORKLOADS: no such. */
enum sim_workload sim_workload_find(const char *name);

/*
 * What a rank does: steps that its host goes through, in order. The host runs ahead of the GPU: a
 * COMPUTE or CALL is enqueued and done later; a WAIT holds the GPU's compute until calls are over;
 * a SYNC holds the host until its GPU has nothing left to compute.
 */

enum sim_step_kind {
	SIM_COMPUTE = 1,
	SIM_CALL = 2,
	SIM_ALL_TO_ALL = 3, /* a group: Send to and Recv from every rank of the communicator */
	SIM_WAIT = 4,
	SIM_SYNC = 5,
};

struct sim_step {
	uint8_t kind;
	uint8_t role;
	uint8_t function; /* enum op_function */
	uint8_t datatype; /* enum op_datatype */
	int32_t peer;	  /* Send and Recv: how many ranks further on; else the root */
	uint64_t count;	  /* elements, as NCCL's call has them */
	uint64_t ns;	  /* COMPUTE */
	uint32_t behind;  /* WAIT: so many of the newest calls need not be over */
};

struct sim_program {
	struct sim_step *steps;
	size_t count;
	uint32_t calls[SIM_ROLES];
	uint32_t is_broken; /* a step found no memory */
};

/* What ranks of one kind do: once at the start, then in each iteration. */
struct sim_programs {
	struct sim_program start;
	struct sim_program iteration;
	unsigned int depth; /* calls that the host may be ahead of its GPU */
};

/*
 * A communicator: its ranks and the ways its channels take. Per channel a ring
 *
 *	node 0: a -> b -> c -> d  --net-->  node 1: a -> b -> c -> d  --net--> ...
 *
 * whose first GPU of each node moves on with the channel, so that every GPU's network card is used,
 * and a binary tree of nodes, whose GPU on each node moves on in the same way.
 */

enum { SIM_CHANNELS_MAX = 16, SIM_TREE_EDGES = 3 };

/* What the links of a communicator carry, with the faults of one stretch of time. */
struct sim_rates {
	uint64_t epoch_plus_1;		 /* 0: not worked out yet */
	uint64_t ring[SIM_CHANNELS_MAX]; /* bytes per us through the slowest link */
	uint64_t tree[SIM_CHANNELS_MAX];
	uint64_t ring_latency_ns;	       /* once around */
	uint64_t tree_latency_ns;	       /* to the top and back */
	uint64_t usual_ring[SIM_CHANNELS_MAX]; /* without any fault: what NCCL goes by */
	uint64_t usual_tree[SIM_CHANNELS_MAX];
};

struct sim_comm {
	uint64_t hash;
	char name[32];
	enum sim_role role;
	int nranks;
	int nnodes;
	int locals; /* ranks on a node, at most */
	int channels;
	int *ranks;	 /* the job's rank of each of its own */
	int *nodes;	 /* its own number of the node of each rank */
	int *node_first; /* nnodes + 1: its first rank on each node */
	int *ring;	 /* [channel * nranks + position]: its rank there */
	int *position;	 /* [channel * nranks + rank] */
	struct sim_rates rates;
};

int sim_comm_next(const struct sim_comm *comm, int channel, int rank);
int sim_comm_previous(const struct sim_comm *comm, int channel, int rank);

static inline bool sim_comm_is_network(const struct sim_comm *comm, int a, int b)
{
	return comm->nodes[a] != comm->nodes[b];
}

/* The rank that stands for its node in this channel's tree. */
int sim_comm_leader(const struct sim_comm *comm, int channel, int node);
/* A rank's neighbours in the tree of nodes: first towards the top. None for a rank that does not
 * stand for its node. Gives back how many. */
int sim_comm_tree(const struct sim_comm *comm, int channel, int rank, int peers[SIM_TREE_EDGES]);

/* Channels that share one network card. */
static inline int sim_comm_share(const struct sim_comm *comm)
{
	return (comm->channels + comm->locals - 1) / comm->locals;
}

/* A rank's place in the communicator of a role. */
struct sim_member {
	int comm; /* -1: it has none */
	int rank;
};

struct sim_job {
	struct sim_options options;
	int world;
	int interface; /* profiler interface version */
	struct sim_comm *comms;
	int comm_count;
	struct sim_member (*members)[SIM_ROLES]; /* by rank */
	struct sim_programs *programs;		 /* one per stage */
	int stages;
	uint64_t boundaries_ns[2 * SIM_FAULTS_MAX]; /* when a fault begins or ends, sorted */
	size_t boundary_count;
};

/* `options` finished by sim_options_finish(). ERR_NO_SPACE. */
enum status sim_job_init(struct sim_job *job, const struct sim_options *options);
void sim_job_release(struct sim_job *job);

const struct sim_programs *sim_job_programs(const struct sim_job *job, int rank);
static inline int sim_job_node(const struct sim_job *job, int rank)
{
	return rank / job->options.gpus;
}

/* How many faults began or ended before: what is the same within one is worked out once. */
uint64_t sim_job_epoch(const struct sim_job *job, uint64_t ns);

/* The first fault of this kind that concerns the rank (any, for -1) and has begun by then. */
const struct sim_fault *sim_job_fault(const struct sim_job *job, enum sim_fault_kind kind, int rank,
				      uint64_t ns);

/* How much longer this takes at that time, times 1000. */
uint64_t sim_job_compute_permille(const struct sim_job *job, int rank, uint64_t ns);
uint64_t sim_job_link_permille(const struct sim_job *job, int from, int to, uint64_t ns);

/* Does anything that rank `from` sends go to `to` directly? */
bool sim_job_uses_link(const struct sim_job *job, int from, int to);
/* The ranks to which it sends, as text: "4, 12". */
void sim_job_neighbours(const struct sim_job *job, int rank, char *text, size_t size);

/* When it gets SIGKILL; UINT64_MAX: never. */
uint64_t sim_job_killed_ns(const struct sim_job *job, int rank);
/* Has it a rank that is stopped? That is seen from outside alone: its files are as snapshots are. */
bool sim_job_is_snapshot(const struct sim_job *job);
/* When it does nothing any more, killed or stopped; UINT64_MAX: never. */
uint64_t sim_job_gone_ns(const struct sim_job *job, int rank);

/* Is what rank `from` of the communicator sends to `to` on that channel never completed? */
bool sim_job_is_stuck(const struct sim_job *job, const struct sim_comm *comm, int channel, int from,
		      int to, uint64_t ns);

/* Does the GPU of this rank not do its part of calls of this role, in this way? */
bool sim_job_gpu_is_stuck(const struct sim_job *job, int rank, int role, enum sim_gpu_stuck what,
			  uint64_t ns);

/* Can its faults happen at all? On failure `why` has one line. */
enum status sim_job_check(const struct sim_job *job, char *why, size_t size);

/* Who a simulated rank is: host, process, GPU, clocks. The same for the same seed. */

/* Clocks at the job's time 0. Recorder's clocks are those of hosts, wall clocks are set by hand. */
struct sim_clocks {
	uint64_t clock_ns; /* recorder's */
	uint64_t wall_ns;
	uint64_t gpu_ns;
	int64_t gpu_drift_ppm;
};

struct sim_identity {
	int rank;
	int local_rank;
	int64_t pid;
	uint64_t start_ticks;
	char host[32];
	char boot_id[40];
	struct sim_clocks clocks;
};

void sim_identity_make(struct sim_identity *identity, const struct sim_job *job, int rank);

static inline uint64_t sim_clock(const struct sim_clocks *clocks, uint64_t ns)
{
	return clocks->clock_ns + ns;
}

static inline uint64_t sim_wall(const struct sim_clocks *clocks, uint64_t ns)
{
	return clocks->wall_ns + ns;
}

/* The GPU's clock moves in steps of 32 ns. */
static inline uint64_t sim_gpu_clock(const struct sim_clocks *clocks, uint64_t ns)
{
	int64_t drift = (int64_t)(ns / 1000) * clocks->gpu_drift_ppm / 1000;

	return (clocks->gpu_ns + ns + (uint64_t)drift) & ~UINT64_C(31);
}

/* The "key=value" lines of its trace file. False: they do not fit. */
bool sim_identity_text(const struct sim_identity *identity, const struct sim_job *job, char *text,
		       size_t size);

/* The rank's communicator of a role as the recorder would describe it; `id` from 1. */
void sim_identity_comm(const struct sim_identity *identity, const struct sim_job *job, int role,
		       uint32_t id, struct comm_info *info);

/* "r12-node0001-4711-123456.ringside" */
void sim_identity_file(const struct sim_identity *identity, char *name, size_t size);

/* What came of a simulated job, and telling it: text for people, JSON for programs. */

enum sim_result_end {
	SIM_RESULT_FINISHED = 0,
	SIM_RESULT_HUNG = 1,	    /* in an operation that does not end */
	SIM_RESULT_STOPPED = 2,	    /* it never made its next call */
	SIM_RESULT_KILLED = 3,	    /* by SIGKILL */
	SIM_RESULT_INTERRUPTED = 4, /* somebody ended the simulation */
	SIM_RESULT_FAILED = 5,	    /* its process ended by itself, and should not have */
};

struct sim_result_rank {
	enum sim_result_end end;
	int64_t pid;
	char host[72];
	uint64_t issued[SIM_ROLES]; /* calls that were made */
	uint64_t in_flight[SIM_ROLES];
	uint64_t hidden[SIM_ROLES]; /* of issued: calls that this release does not show */
};

struct sim_result {
	enum sim_result_end end;
	uint64_t ns;	     /* job's time at the end */
	uint64_t still_ns;   /* hung: when the last thing happened */
	uint64_t iterations; /* begun by the first rank */
	uint64_t bytes;	     /* of trace files, 0 unknown */
	struct sim_result_rank *ranks;
};

enum status sim_result_init(struct sim_result *result, const struct sim_job *job);
void sim_result_release(struct sim_result *result);

/* `directory` is NULL when no files were written. */
void sim_result_text(struct sink *sink, const struct sim_job *job, const struct sim_result *result,
		     const char *directory);
void sim_result_json(struct sink *sink, const struct sim_job *job, const struct sim_result *result,
		     const char *directory);

/* What --list says. */
void sim_result_list(struct sink *sink, unsigned int width);

#endif
