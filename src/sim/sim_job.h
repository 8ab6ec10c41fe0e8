/* A simulated job before it runs: ranks, communicators, programs, faults. Read-only once made. */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "output/sink.h"

/* What a communicator is for. A rank has at most one of each; all except the first are split from it. */

enum sim_role {
	SIM_WORLD = 0,
	SIM_TENSOR = 1,
	SIM_PIPELINE = 2,
	SIM_DATA = 3,
	SIM_EXPERT = 4,
	SIM_ROLES = 5,
};

/* Faults of a simulated job, each starting at some time. */

enum sim_fault_kind {
	SIM_FAULT_NONE = 0,
	SIM_SLOW_RANK = 1,	  /* computes slower: a straggler */
	SIM_SLOW_LINK = 2,	  /* one direction between two ranks */
	SIM_DEGRADED_NETWORK = 3, /* all links between nodes */
	SIM_SLOW_NVLINK = 4,	  /* links within a node */
	SIM_SLOW_RAIL = 5,	  /* the same NIC of all nodes */
	SIM_SLOW_UPLINK = 6,	  /* all NICs of a node */
	SIM_SLOW_RECEIVER = 7,	  /* takes what others send slowly */
	SIM_STARVED = 8,	  /* a process that rarely gets a core */
	SIM_POWER_CAP = 9,	  /* all ranks compute slower */
	SIM_NEVER_ARRIVES = 10,	  /* makes no more calls; the others wait in theirs */
	SIM_STUCK_SEND = 11,	  /* a send that the network never completes */
	SIM_MISMATCH = 12,	  /* one call differs from the other ranks' */
	SIM_DEADLOCK = 13,	  /* two communicators used in the opposite order */
	SIM_GPU_STUCK = 14,	  /* a GPU does not do its part */
	SIM_STOP = 15,		  /* SIGSTOP */
	SIM_KILL = 16,		  /* SIGKILL */
	SIM_FAULT_KINDS = 17,
};

/* The values of what= have the order in which the keys of their fault list them. */

/* SIM_SLOW_UPLINK: which way. */
enum sim_way {
	SIM_BOTH_WAYS = 0,
	SIM_SENDING = 1,
	SIM_RECEIVING = 2,
};

/* SIM_SLOW_RECEIVER: how its senders notice. */
enum sim_receiver {
	SIM_NO_CREDITS = 0, /* they wait until it is ready, as with RDMA */
	SIM_FULL_WIRE = 1,  /* what they send stays on the wire, as with sockets */
};

/* SIM_MISMATCH: what differs. */
enum sim_mismatch {
	SIM_MISMATCH_COUNT = 0,
	SIM_MISMATCH_FUNCTION = 1,
	SIM_MISMATCH_DATATYPE = 2,
	SIM_MISMATCH_ROOT = 3,
	SIM_MISMATCH_ORDER = 4, /* it swaps two calls */
};

/* SIM_GPU_STUCK: how far a call gets. */
enum sim_gpu_stuck {
	SIM_NOT_STARTED = 0,   /* its kernel is enqueued behind something that does not end */
	SIM_NOT_LAUNCHED = 1,  /* the call was made and does not return */
	SIM_NOT_PRODUCING = 2, /* its kernel runs, but neither fills nor empties a buffer */
};

struct sim_fault {
	enum sim_fault_kind kind;
	int rank;
	int from;
	int to;	     /* SIM_STUCK_SEND: -1: any */
	int peer;    /* SIM_DEADLOCK */
	int node;    /* SIM_SLOW_NVLINK: -1: all; SIM_SLOW_UPLINK */
	int rail;    /* SIM_SLOW_RAIL: GPU within the node */
	int link;    /* SIM_STUCK_SEND: n-th from 1, 0: all */
	int channel; /* SIM_STUCK_SEND: -1: all */
	uint64_t factor_permille;
	int what;	   /* enum sim_mismatch, sim_gpu_stuck, sim_way, sim_receiver */
	int role;	   /* enum sim_role of the communicator, -1: any */
	uint64_t at_ns;	   /* of the job's time */
	uint64_t until_ns; /* UINT64_MAX: forever */
	bool has_at;	   /* given explicitly, not by --at */
};

enum { SIM_FAULTS_MAX = 16 };

/* Shown by --list: name, keys and description. NULL past the table. */
struct sim_fault_page {
	const char *name;
	const char *keys; /* "rank=R[,factor=F]" */
	const char *about;
};
const struct sim_fault_page *sim_fault_page(enum sim_fault_kind kind);

/* "KIND" or "KIND:key=value,...". On failure `why` has one line that says what is allowed. */
enum status sim_fault_parse(struct sim_fault *fault, const char *text, char *why, size_t size);

/* Whether all ranks finally hang. */
bool sim_fault_hangs(const struct sim_fault *fault);

/*
 * Noise: what happens in healthy jobs. It hits everybody alike, so nobody is to blame for it; src/sim/sim_noise.c
 * says how each kind is modelled.
 */

enum sim_noise_kind {
	SIM_NOISE_COMPUTE = 0, /* compute speed of each rank wanders */
	SIM_NOISE_TAIL = 1,    /* some computations take much longer */
	SIM_NOISE_LOADER = 2,  /* a rank waits for its data before an iteration */
	SIM_NOISE_GC = 3,      /* a rank's host pauses before a call */
	SIM_NOISE_CHECKPOINT = 4,
	SIM_NOISE_EVALUATION = 5, /* iterations without a backward pass */
	SIM_NOISE_THERMAL = 6,	  /* GPUs of a node get slower and faster together */
	SIM_NOISE_GPUS = 7,	  /* GPUs differ for good */
	SIM_NOISE_BATCHES = 8,	  /* iterations differ in size */
	SIM_NOISE_CONTENTION = 9, /* communicators share the network */
	SIM_NOISE_LOSS = 10,	  /* lost packets are sent again */
	SIM_NOISE_EXPERTS = 11,	  /* experts get unequal shares of the tokens */
	SIM_NOISES = 12,
};

/* SIM_NOISE_BATCHES: who has batches of the same size, in the order of its keys. */
enum sim_per {
	SIM_PER_JOB = 0,
	SIM_PER_RANK = 1,
};

struct sim_noise {
	bool is_on;
	int per;	      /* BATCHES: enum sim_per */
	int rank;	      /* CHECKPOINT: -1: all */
	uint64_t amount;      /* in 1/1000 */
	uint64_t every_ns;    /* on average */
	uint64_t duration_ns; /* on average */
};

/* Shown by --list, like faults. NULL past the table. */
const struct sim_fault_page *sim_noise_page(enum sim_noise_kind kind);

/* "KIND" or "KIND:key=value,..." into noises[KIND]. On failure `why` has one line that says what is allowed. */
enum status sim_noise_parse(struct sim_noise noises[SIM_NOISES], const char *text, char *why,
			    size_t size);

/* "ROLE=NUMBER,...": userTag of the operations of these communicators. On failure `why` has one line. */
enum status sim_tags_parse(uint64_t tags[SIM_ROLES], const char *text, char *why, size_t size);

/* The options of a simulated job. */

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

/* Where GPU times come from, and of which operations: the values of RINGSIDE_TIMES. */
enum sim_times {
	SIM_TIMES_AUTO = 0,   /* CUDA events around a share of the launches (2.28 and later) */
	SIM_TIMES_ALL = 1,    /* ... around every launch */
	SIM_TIMES_OFF = 2,    /* none */
	SIM_TIMES_KERNEL = 3, /* NCCL's kernel events, of every operation */
	SIM_TIMES_WORDS = 4,
};

/* Which launches in CUDA graphs get times: ",graphs" or ",no-graphs" of RINGSIDE_TIMES. */
enum sim_graph_times {
	SIM_GRAPH_TIMES_SOME = 0, /* as many as the budget allows */
	SIM_GRAPH_TIMES_ALL = 1,
	SIM_GRAPH_TIMES_NONE = 2,
};

/* Bandwidth and latency of a link. Bandwidth in bytes per microsecond: the same number as MB/s. */
struct sim_link {
	uint64_t bytes_per_us;
	uint64_t latency_ns;
};

struct sim_options {
	int nodes;
	int gpus; /* per node */
	enum sim_workload workload;
	int tensor, pipeline, expert; /* sizes of these groups; 0: the workload's default */
	int channels;		      /* of communicators between nodes; 0: automatic */
	uint64_t iterations;	      /* 0: by time */
	uint64_t seconds_ns;	      /* 0: by iterations, or 10 s after the last fault begins */
	uint64_t sizes[SIM_SIZES_MAX];
	size_t size_count;  /* 0: the workload's default */
	uint64_t period_ns; /* compute time of an iteration; 0: the workload's default */
	struct sim_fault faults[SIM_FAULTS_MAX];
	size_t fault_count;
	uint64_t at_ns; /* of faults without their own at= */
	struct sim_noise noises[SIM_NOISES];
	uint64_t seed;
	uint64_t tags[SIM_ROLES]; /* userTag of operations, by communicator; 0 none */
	int release;		  /* 22809 */
	enum sim_times times;
	enum sim_graph_times graph_times;
	bool is_times_said; /* otherwise the recorder's own default */
	bool has_graphs;    /* iterations are replays of CUDA graphs ... */
	int warm_up;	    /* ... after so many, and one that is captured */
	bool is_full;	    /* mode full: details of every operation */
	uint64_t clock_shift_ns;
	uint64_t hang_ns;     /* how long a hung job is observed */
	uint64_t watchdog_ns; /* how long a job hangs until it is aborted; 0: nobody does */
	int attempt;	      /* 2: restarted once, on other nodes */
	uint64_t begin_ns;    /* when it starts, since the first attempt did */
	unsigned int jitter_permille;
	struct sim_link nvlink, network;
	bool is_offline;
	bool is_threads;	/* all ranks in one process */
	bool is_node_processes; /* one process per node */
	const char *plugin;
	const char *directory;
	const char *regions; /* a directory per node below it for regions; NULL: one for all */
};

void sim_options_init(struct sim_options *options);

/* Fills in what depends on other options and checks that they are consistent. On failure `why` has one line. */
enum status sim_options_finish(struct sim_options *options, char *why, size_t size);

/* The profiler interface version of the release. */
int sim_options_interface(const struct sim_options *options);

/* "auto", "all", "off", "kernel". */
const char *sim_times_name(enum sim_times times);
/* "graphs", "no-graphs"; "" by default. */
const char *sim_graph_times_name(enum sim_graph_times times);
/* "auto", "all,graphs": a value of RINGSIDE_TIMES. ERR_UNKNOWN. */
enum status sim_times_parse(const char *text, enum sim_times *times,
			    enum sim_graph_times *graph_times);
/* What is in effect with this release: before 2.28 there are no CUDA events, before 2.26 no kernel events. */
enum sim_times sim_options_times(const struct sim_options *options);

static inline int sim_options_world(const struct sim_options *options)
{
	return options->nodes * options->gpus;
}

/* Shown by --list. NULL past the table. */
struct sim_workload_page {
	const char *name;
	const char *about;
	const char *sizes; /* what --sizes means */
};
const struct sim_workload_page *sim_workload_page(enum sim_workload workload);
/* SIM_WORKLOADS: unknown. */
enum sim_workload sim_workload_find(const char *name);

/*
 * What a rank does: steps that its host executes in order. The host runs ahead of the GPU: a COMPUTE or CALL is
 * enqueued and executed later; a WAIT holds the GPU's compute until calls are over; a SYNC holds the host until its
 * GPU has nothing left to compute.
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
	int32_t peer;	  /* Send and Recv: distance to the peer; otherwise the root */
	uint64_t count;	  /* elements, as in NCCL's call */
	uint64_t ns;	  /* COMPUTE */
	uint32_t behind;  /* WAIT: this many of the newest calls need not be over */
	uint32_t layer;	  /* of experts, from 1: ALL_TO_ALL and the COMPUTE of what came */
	bool is_back;	  /* ALL_TO_ALL: from the experts */
};

struct sim_program {
	struct sim_step *steps;
	size_t count;
	uint32_t calls[SIM_ROLES];
	uint32_t is_broken; /* adding a step ran out of memory */
};

/* What ranks of one kind do: once at the start, then in each iteration. */
struct sim_programs {
	struct sim_program start;
	struct sim_program iteration;
	struct sim_program evaluation; /* an iteration without its backward pass */
	unsigned int depth;	       /* calls that the host can be ahead of its GPU */
	uint64_t period_ns;	       /* compute time of an iteration */
};

/*
 * A communicator: its ranks and the routes of its channels. Each channel has a ring
 *
 *	node 0: a -> b -> c -> d  --net-->  node 1: a -> b -> c -> d  --net--> ...
 *
 * whose first GPU on each node rotates with the channel, so that every GPU's NIC is used, and a binary tree of
 * nodes, whose GPU on each node rotates in the same way.
 */

enum { SIM_CHANNELS_MAX = 16, SIM_TREE_EDGES = 3, SIM_STAGES_MAX = 8, SIM_QUEUES_MAX = 8 };

/* Connections of a channel that are equally fast. */
struct sim_stage {
	uint64_t rate; /* bytes per us */
	uint64_t latency_ns;
	uint32_t count;
};

/* Those of a channel; of more than SIM_STAGES_MAX kinds, the last ones are counted as one. */
struct sim_stages {
	struct sim_stage list[SIM_STAGES_MAX];
	int count;
};

/* Bandwidth of a communicator's links, with the faults of one period. */
struct sim_rates {
	uint64_t epoch_plus_1;		 /* 0: not computed yet */
	uint64_t ring[SIM_CHANNELS_MAX]; /* bytes per us through the slowest link */
	uint64_t tree[SIM_CHANNELS_MAX];
	uint64_t ring_latency_ns;	       /* once around the ring */
	uint64_t tree_latency_ns;	       /* to the top and back */
	uint64_t usual_ring[SIM_CHANNELS_MAX]; /* without faults: the basis of NCCL's choice */
	uint64_t usual_tree[SIM_CHANNELS_MAX];
	struct sim_stages ring_stages[SIM_CHANNELS_MAX];
	struct sim_stages tree_stages[SIM_CHANNELS_MAX];
};

/* How many transfers are at a connection on average, times 1000, by its stage: for one kind of message. */
struct sim_queues {
	uint64_t epoch_plus_1; /* 0: not computed yet */
	uint64_t step_bytes;
	uint8_t algorithm, protocol, channels;
	bool is_chain;
	bool has_more; /* somewhere there are more than fit into the buffers of the connection */
	uint64_t lengths[SIM_CHANNELS_MAX][SIM_STAGES_MAX];
};

struct sim_comm {
	int index; /* in the job's list */
	uint64_t hash;
	char name[32];
	enum sim_role role;
	int nranks;
	int nnodes;
	int locals; /* ranks per node, at most */
	int channels;
	int *ranks;	 /* the job's rank of each of its ranks */
	int *nodes;	 /* its own number of each rank's node */
	int *node_first; /* nnodes + 1: its first rank on each node */
	int *ring;	 /* [channel * nranks + position]: its rank there */
	int *position;	 /* [channel * nranks + rank] */
	struct sim_rates rates;
	struct sim_queues queues[SIM_QUEUES_MAX]; /* of recent kinds of messages */
	unsigned int queues_next;		  /* which of them is replaced next */
};

int sim_comm_next(const struct sim_comm *comm, int channel, int rank);
int sim_comm_previous(const struct sim_comm *comm, int channel, int rank);

static inline bool sim_comm_is_network(const struct sim_comm *comm, int a, int b)
{
	return comm->nodes[a] != comm->nodes[b];
}

/* The rank that represents its node in this channel's tree. */
int sim_comm_leader(const struct sim_comm *comm, int channel, int node);
/*
 * A rank's neighbours in the tree of nodes: first towards the top. None if the rank does not represent its node.
 * Returns how many.
 */
int sim_comm_tree(const struct sim_comm *comm, int channel, int rank, int peers[SIM_TREE_EDGES]);

/* Channels that share one NIC. */
static inline int sim_comm_share(const struct sim_comm *comm)
{
	return (comm->channels + comm->locals - 1) / comm->locals;
}

/* A rank's place in the communicator of a role. */
struct sim_member {
	int comm; /* -1: none */
	int rank;
};

struct sim_job {
	struct sim_options options;
	int world;
	int interface;	      /* profiler interface version */
	enum sim_times times; /* in effect */
	struct sim_comm *comms;
	int comm_count;
	struct sim_member (*members)[SIM_ROLES]; /* by rank */
	struct sim_programs *programs;		 /* one per stage */
	int stages;
	uint64_t boundaries_ns[2 * SIM_FAULTS_MAX]; /* when faults begin or end, sorted */
	size_t boundary_count;
};

/* `options` finished by sim_options_finish(). ERR_NO_SPACE. */
enum status sim_job_init(struct sim_job *job, const struct sim_options *options);
void sim_job_release(struct sim_job *job);

/* Does the recorder put CUDA events around launches? */
static inline bool sim_job_has_cuda_events(const struct sim_job *job)
{
	return job->times == SIM_TIMES_AUTO || job->times == SIM_TIMES_ALL;
}

const struct sim_programs *sim_job_programs(const struct sim_job *job, int rank);
static inline int sim_job_node(const struct sim_job *job, int rank)
{
	return rank / job->options.gpus;
}

/* Number of faults that began or ended before: within one epoch, rates are computed once. */
uint64_t sim_job_epoch(const struct sim_job *job, uint64_t ns);

/* The first fault of this kind that affects the rank (-1: any) and has begun by then. */
const struct sim_fault *sim_job_fault(const struct sim_job *job, enum sim_fault_kind kind, int rank,
				      uint64_t ns);

/* Slowdown at that time, times 1000. */
uint64_t sim_job_compute_permille(const struct sim_job *job, int rank, uint64_t ns);
uint64_t sim_job_link_permille(const struct sim_job *job, int from, int to, uint64_t ns);

/* Who delays transfers of a link, as shares of their time on it, times 1000. The rest is the network's. */
struct sim_delays {
	uint64_t sender;   /* its process notices late what it could send, and what was sent */
	uint64_t credits;  /* the receiver is not ready */
	uint64_t receiver; /* has what came, but does not take it */
};
struct sim_delays sim_job_delays(const struct sim_job *job, int from, int to, uint64_t ns);

/*
 * How long a computation of `ns` takes with the noise of its rank, iteration and time. `which` of the rank's it is: a job with and
 * without a fault has the same rare long ones, or the cost of the fault could not be separated from theirs.
 */
uint64_t sim_noise_compute(const struct sim_job *job, int rank, uint64_t iteration, uint64_t which,
			   uint64_t at_ns, uint64_t ns);
/* How long a rank pauses before an iteration, or before a call of its host, for what happened since `since_ns`. */
uint64_t sim_noise_iteration_pause(const struct sim_job *job, int rank, uint64_t iteration,
				   uint64_t since_ns, uint64_t ns);
uint64_t sim_noise_call_pause(const struct sim_job *job, int rank, uint64_t since_ns, uint64_t ns);
bool sim_noise_is_evaluation(const struct sim_job *job, uint64_t iteration);
/* The share of a layer's tokens that a rank of an expert group gets, times 1000. */
uint64_t sim_noise_expert_permille(const struct sim_job *job, uint64_t comm_hash, int rank,
				   uint64_t iteration, uint32_t layer);
/* How long a channel of the n-th operation of a communicator waits for lost packets; 0: nothing was lost. */
uint64_t sim_noise_loss(const struct sim_job *job, uint64_t comm_hash, uint64_t match, int channel);

/* Whether rank `from` sends anything directly to `to`. */
bool sim_job_uses_link(const struct sim_job *job, int from, int to);
/* The ranks that it sends to, as text: "4, 12". */
void sim_job_neighbours(const struct sim_job *job, int rank, char *text, size_t size);

/* When it gets SIGKILL; UINT64_MAX: never. */
uint64_t sim_job_killed_ns(const struct sim_job *job, int rank);
/* Whether a rank is stopped. That is only visible from outside: its files are like snapshots. */
bool sim_job_is_snapshot(const struct sim_job *job);
/* When it stops doing anything, killed or stopped; UINT64_MAX: never. */
uint64_t sim_job_gone_ns(const struct sim_job *job, int rank);

/* Whether sends from rank `from` of the communicator to `to` on that channel never complete. */
bool sim_job_is_stuck(const struct sim_job *job, const struct sim_comm *comm, int channel, int from,
		      int to, uint64_t ns);

/* Whether the GPU of this rank is stuck in this way in calls of this role. */
bool sim_job_gpu_is_stuck(const struct sim_job *job, int rank, int role, enum sim_gpu_stuck what,
			  uint64_t ns);

/* Checks that its faults can happen. On failure `why` has one line. */
enum status sim_job_check(const struct sim_job *job, char *why, size_t size);

/* Identity of a simulated rank: host, process, GPU, clocks. Determined by the seed. */

/* Clocks at the job's time 0. The recorder's clocks are per host; wall clocks are not synchronized. */
struct sim_clocks {
	uint64_t clock_ns; /* recorder's */
	uint64_t wall_ns;
	uint64_t gpu_ns;
	int64_t gpu_drift_ppm;
	uint64_t place_ns; /* CUDA events seem to fire so much later than they did */
};

enum { SIM_PLACE_ERROR_NS = 20000 }; /* what the recorder says about that */

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

/* The GPU's clock has a resolution of 32 ns. */
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

/* The result of a simulated job, as text and JSON. */

enum sim_result_end {
	SIM_RESULT_FINISHED = 0,
	SIM_RESULT_HUNG = 1,	    /* in an operation that does not end */
	SIM_RESULT_STOPPED = 2,	    /* it never made its next call */
	SIM_RESULT_KILLED = 3,	    /* by SIGKILL */
	SIM_RESULT_INTERRUPTED = 4, /* the simulation was interrupted */
	SIM_RESULT_FAILED = 5,	    /* its process ended unexpectedly */
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
	uint64_t still_ns;   /* hung: time of the last event */
	uint64_t iterations; /* started by the first rank */
	uint64_t bytes;	     /* of trace files, 0: unknown */
	bool has_hosts;	     /* processes ran with the host name of their node */
	struct sim_result_rank *ranks;
};

enum status sim_result_init(struct sim_result *result, const struct sim_job *job);
void sim_result_release(struct sim_result *result);

/* `directory` is NULL if no files were written. */
void sim_result_text(struct sink *sink, const struct sim_job *job, const struct sim_result *result,
		     const char *directory);
void sim_result_json(struct sink *sink, const struct sim_job *job, const struct sim_result *result,
		     const char *directory);

/* The output of --list. */
void sim_result_list(struct sink *sink, unsigned int width);

/* "world", "tp", "pp", "dp", "ep"; also prefixes of communicator names. */
const char *sim_role_name(int role);

/*
 * Pseudorandom numbers that depend only on their arguments: no state, so that the order of computation does not
 * affect the result. Whole numbers only: the same bytes on every platform.
 */

static inline uint64_t sim_random(uint64_t seed, uint64_t what, uint64_t which)
{
	uint64_t hash = hash_word(hash_word(hash_word(seed, what), which), UINT64_C(0x52494e47));

	hash ^= hash >> 29;
	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ hash >> 32;
}

/* In [0, range); 0 for range 0. */
static inline uint64_t sim_random_below(uint64_t range, uint64_t seed, uint64_t what,
					uint64_t which)
{
	return range == 0 ? 0 : sim_random(seed, what, which) % range;
}

/* `value` (below 2^53) changed by up to +- permille / 1000; small changes are more likely. */
static inline uint64_t sim_random_spread(uint64_t value, unsigned int permille, uint64_t seed,
					 uint64_t what, uint64_t which)
{
	uint64_t random = sim_random(seed, what, which);
	/* The sum of two 1024-sided dice, minus its mean. */
	int64_t dice = (int64_t)(random & 1023) + (int64_t)(random >> 32 & 1023) - 1023;
	int64_t change = (int64_t)value * dice / 1024 * (int64_t)permille / 1000;

	return (uint64_t)((int64_t)value + change);
}

#endif
