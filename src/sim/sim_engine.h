/*
 * The simulation: computes what each rank does when, without real waiting.
 *
 *	host      executes its program, enqueues, runs a few calls ahead
 *	  |
 *	queue     what the GPU computes, and where its calls come in between
 *	  |
 *	streams   one per communicator: launched calls, one after the other
 *	  |
 *	shared    a collective, or a Send and its Recv: starts when its last rank has arrived
 *
 * Each level keeps its times as numbers; events are not processed in the order of time. When nothing can progress,
 * the job has finished or hangs.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "common/status.h"
#include "sim/host.h"
#include "sim/sim_job.h"

/*
 * How long communication takes. A link has a bandwidth and a latency per direction; a collective is as fast as the
 * slowest link of each of its channels.
 */

/* How a collective runs once its last rank has arrived. */
struct sim_plan {
	uint8_t algorithm; /* enum op_algorithm */
	uint8_t protocol;  /* enum op_protocol */
	uint8_t channels;
	bool is_towards_root;
	int32_t root;	     /* of a chain; OP_NOBODY: ring */
	uint32_t steps;	     /* transfers per channel and connection */
	uint64_t step_bytes; /* maximum */
	uint64_t link_bytes; /* per channel and connection */
	uint64_t channel_ns[SIM_CHANNELS_MAX];
	uint64_t longest_ns;		    /* of these */
	uint64_t lost_ns[SIM_CHANNELS_MAX]; /* of channel_ns: waiting for lost packets */
	int lost_by[SIM_CHANNELS_MAX];	    /* the rank that sent them */
};

/* `bytes` as nccl-tests counts them; `ns`: when it starts. */
void sim_model_collective(struct sim_plan *plan, const struct sim_job *job, struct sim_comm *comm,
			  uint8_t function, uint64_t bytes, uint64_t ns);

/* A send to another rank or to itself; `fan` transfers share the sender's or receiver's port. The
 * plan has one channel. */
void sim_model_send(struct sim_plan *plan, const struct sim_job *job, int from, int to,
		    uint64_t bytes, unsigned int fan, uint64_t ns);

enum sim_rank_end {
	SIM_GOES_ON = 0,
	SIM_FINISHED = 1,
	SIM_STOPPED = 2, /* never arrives, does not return from its call, or got SIGSTOP */
	SIM_DEAD = 3,
};

/*
 * A score: what each rank of a job has to do when, computed beforehand by the engine, so that a live job and one
 * written offline behave the same.
 */

/* How a launch comes about. */
enum sim_phase {
	SIM_EAGER = 0,
	SIM_CAPTURED = 1, /* put into a CUDA graph: nothing runs */
	SIM_REPLAYED = 2, /* by that graph */
};

/* One call. All times are the job's. */
struct sim_play {
	uint64_t launch; /* n-th launch of its rank; calls of one launch are one group */
	uint64_t number;
	uint64_t match;
	uint64_t count;
	uint64_t issue_ns;
	uint64_t start_ns;    /* 0: the GPU never starts it */
	uint64_t begin_ns;    /* all ranks have arrived; 0: never */
	uint64_t duration_ns; /* from then on */
	uint64_t end_ns;      /* 0: never */
	uint32_t steps;
	uint32_t step_bytes;
	int32_t peer, root;
	uint32_t captured; /* CAPTURED, REPLAYED: n-th launch in the graph of its communicator */
	uint8_t role, function, datatype, algorithm, protocol;
	uint8_t first_channel, channels;
	uint8_t phase;	/* enum sim_phase */
	bool is_hidden; /* NCCL does not show it to a plugin */
	uint8_t stuck;	/* enum host_stuck; not NONE: it never ends */
	uint32_t stuck_kernels;
	uint8_t edge_count;
	struct host_edge edges[HOST_EDGES];
};

struct sim_score_rank {
	struct sim_play *plays; /* in call order */
	size_t count;
	enum sim_rank_end end;
};

struct sim_score {
	int world;
	struct sim_score_rank *ranks;
	uint64_t end_ns; /* of the job, or of observing the hang */
	uint64_t still_ns;
	uint64_t iterations;
	bool is_hung;
};

/* Computes the score. ERR_NO_SPACE. */
enum status sim_score_init(struct sim_score *score, const struct sim_job *job);
void sim_score_release(struct sim_score *score);

/* The interval between an operation's steps, so that the last one is done at its end. */
uint64_t sim_score_period(uint64_t duration_ns, uint32_t steps);

/* A job that is not run: writes its trace files as if it had been. */

/*
 * On failure `failed` names the file, if it was one; ERR_SYSTEM with errno. `result` was made by sim_result_init().
 */
enum status sim_offline_run(const struct sim_job *job, const char *directory,
			    struct sim_result *result, char *failed, size_t size);

/* A job whose ranks run with the plugin loaded, in processes or threads of this host. */

struct sim_live {
	const char *plugin;	/* its path */
	const char *directory;	/* RINGSIDE_DIR; NULL: from the environment */
	const char *mode;	/* RINGSIDE_MODE; NULL: from the environment */
	const char *regions;	/* a directory per node below it for regions; NULL: default */
	bool is_threads;	/* all ranks in one process */
	bool is_node_processes; /* one process per node */
};

/*
 * Runs the job to its end, or until SIGINT or SIGTERM. No process is left afterwards in any case. On failure
 * `failed` says what could not be done; ERR_SYSTEM with errno. `result` was made by sim_result_init().
 */
enum status sim_live_run(const struct sim_job *job, const struct sim_live *live,
			 struct sim_result *result, char *failed, size_t size);

/*
 * A network connection that a call uses: the progress of its proxy operation, and where its transfers waited. All
 * times are the job's.
 */

struct sim_launch;
struct sim_shared;
struct sim_trace;

enum { SIM_EDGES_MAX = SIM_CHANNELS_MAX * 2 * SIM_TREE_EDGES };

struct sim_edge {
	uint8_t channel;
	bool is_send;
	bool is_started; /* the proxy has started it: not queued behind another */
	uint8_t state;	 /* of the open transfers: 0 to 2, as wait_ns */
	uint8_t open;	 /* transfers in progress: steps done, done + 1, ... */
	int32_t peer;	 /* rank in the communicator */
	uint32_t steps;	 /* total */
	uint32_t done;	 /* of these */
	uint64_t bytes;	 /* moved */
	uint64_t queued_ns;
	uint64_t first_ns; /* first transfer, 0: none */
	uint64_t since_ns; /* when the open transfers entered their state */
	uint64_t stop_ns;  /* 0: not over */
	/* Totals over all transfers: sending GPU, peer, network; receiving network, flush, GPU. */
	uint64_t wait_ns[3];
};

/* NCCL's maximum of concurrent transfers per connection. */
enum { SIM_WINDOW = 8 };

/* How many transfers are at each connection while this plan is executed. Valid until the next call. */
const struct sim_queues *sim_model_queues(const struct sim_plan *plan, const struct sim_job *job,
					  struct sim_comm *comm, uint64_t ns);
/* At that between two ranks of the communicator, times 1000. */
uint64_t sim_model_length(const struct sim_plan *plan, const struct sim_job *job,
			  struct sim_comm *comm, int channel, int from, int to, uint64_t ns);

enum { SIM_ENDS = 32 };

/* One call of one rank, from the API call until its record is written. */
struct sim_call {
	struct sim_launch *launch;
	struct sim_call *next; /* of the same launch */
	struct sim_shared *shared;
	uint8_t function;
	uint8_t datatype;
	uint8_t channel; /* Send and Recv */
	bool is_over;
	bool is_odd_one; /* SIM_MISMATCH: this is the call that differs */
	uint8_t odd;	 /* enum sim_mismatch: how */
	int32_t peer;	 /* or OP_NOBODY */
	int32_t root;	 /* or OP_NOBODY */
	uint64_t count;
	uint64_t number;      /* as the recorder counts; 0: NCCL does not show it */
	uint64_t match;	      /* among all that were executed */
	uint64_t shown_match; /* as the recorder counts */
	uint64_t signature;
	uint64_t nccl_sequence;
	uint64_t issue_ns;
	uint64_t begin_ns; /* Send and Recv that are over: both had arrived */
	uint64_t end_ns;
	struct sim_edge edge; /* Send and Recv that are over; bytes 0: inside the node */
};

struct sim_pair;

/* A launch in a CUDA graph. There is one graph per rank and communicator. */
struct sim_captured {
	uint32_t index;	       /* in its graph */
	uint64_t number;       /* of its call, as the recorder counts */
	bool is_shown;	       /* NCCL shows its replays */
	struct sim_pair *pair; /* the recorder's events around it; NULL: none */
};

/* Calls of one kernel: a group, or a single one. */
struct sim_launch {
	int rank;
	int role;
	struct sim_comm *comm;
	int self; /* its rank in the communicator */
	struct sim_launch *next_in_stream;
	struct sim_launch *next_of_rank, *previous_of_rank; /* all unfinished ones */
	struct sim_call *calls;
	unsigned int count;
	unsigned int open;
	uint64_t index;	    /* n-th launch of its rank, from 0 */
	bool is_unlaunched; /* SIM_NOT_LAUNCHED: the call was made, but nothing was launched */
	bool is_timed;	    /* the recorder puts CUDA events around it */
	bool is_hidden;	    /* NCCL does not show it to a plugin */
	uint8_t phase;	    /* enum sim_phase */
	struct sim_captured *captured; /* CAPTURED, REPLAYED */
	uint64_t launch_ns;
	uint64_t ready_ns; /* its stream can start it */
	uint64_t post_ns;  /* when its transfers were posted; 0: not yet */
	uint64_t start_ns; /* when its kernel started; 0: not yet */
	uint64_t end_ns;
};

struct sim_stream {
	struct sim_launch *head, *tail;
	uint64_t pushed, finished; /* launches */
	uint64_t free_ns;
	uint64_t ends_ns[SIM_ENDS];
	uint64_t executed; /* collectives */
	/* What the recorder counts: all operations, called and replayed collectives, replays that it found. */
	uint64_t numbers;
	uint64_t collectives;
	uint64_t replays;
	uint64_t found;
	uint64_t hidden;   /* calls that NCCL does not show to it */
	uint32_t captured; /* launches in its graph */
	uint64_t signature;
	uint64_t sequences[OP_FUNCTIONS];
	uint32_t *peers;	/* [(which * nranks + peer) * 2 + is_send]: count so far */
	bool will_drift;	/* a call to itself was recorded: after this launch ... */
	bool has_drifted;	/* ... GPU timestamps of channel 0 are old ones */
	bool is_drift_known;	/* the recorder has noticed */
	uint64_t old_stamps[2]; /* of channel 0's last kernel: job's time */
};

/* A task in the GPU's queue. */
struct sim_task {
	uint8_t kind; /* enum sim_step_kind */
	uint8_t role;
	uint32_t behind;
	uint64_t ns; /* COMPUTE */
	uint32_t layer;
	uint64_t enqueued_ns;
	struct sim_launch *launch;
};

/* SIM_DEADLOCK and SIM_MISMATCH_ORDER: the call of step `later` is made before that of `earlier`. */
struct sim_detour {
	bool is_planned;
	bool has_begun;	  /* the later call was made instead of, or before, the earlier one */
	bool is_deadlock; /* and the earlier one waits until that is over */
	uint64_t iteration;
	size_t earlier, later;
};

struct sim_rank {
	uint64_t host_ns;
	uint64_t compute_ns;
	uint64_t computations;
	uint64_t iteration; /* 0: the start program */
	size_t step;
	enum sim_rank_end end;
	bool is_waiting_for_iteration;
	bool has_mismatched;
	uint8_t phase;		       /* of its iteration: enum sim_phase */
	bool is_launched;	       /* REPLAYED: its graphs */
	struct sim_captured *captured; /* by step; NULL: nothing was captured yet */
	uint64_t iteration_ns;	       /* when its iteration began */
	uint64_t call_ns;	       /* when its last call was made */
	struct sim_detour detour;
	bool is_listed; /* in the list of ranks that can progress */
	struct sim_task *tasks;
	size_t task_first, task_count, task_room;
	uint64_t launches;
	uint64_t launch_ends_ns[SIM_ENDS]; /* [launch % SIM_ENDS], UINT64_MAX: not over */
	struct sim_launch *first_open, *last_open;
	struct sim_stream streams[SIM_ROLES];
};

/* The ranks of a collective, or a Send [0] and its Recv [1]. */
struct sim_shared {
	struct sim_shared *next; /* in its bucket, or free */
	struct sim_comm *comm;
	bool is_pair;
	bool is_broken; /* all have arrived and it will never end */
	int odd;	/* the rank that used another root and has left; -1: none */
	int odd_root;	/* the root it used */
	int from, to;	/* of a pair: ranks in the communicator */
	uint64_t match;
	int expected;
	int issued;
	int posted;
	bool has_still;
	uint64_t still_ns;  /* since when it hangs, once computed */
	uint32_t *progress; /* and its progress */
	struct sim_call *calls[];
};

/* When a communicator last used the network of a node. */
struct sim_busy {
	uint64_t from_ns, to_ns;
};

struct sim_engine {
	const struct sim_job *job;
	struct sim_trace *trace; /* NULL: nothing is written */
	struct sim_score *score; /* NULL: not a live job */
	struct sim_rank *ranks;
	struct sim_shared **buckets;
	struct sim_shared **free_shared; /* by communicator; [comm_count]: pairs */
	struct sim_call *free_calls;
	struct sim_launch *free_launches;
	struct sim_busy (*busy)[SIM_ROLES]; /* by node; NULL: no contention */
	int *list;			    /* ranks that can progress */
	int listed;
	uint64_t iterations_decided; /* all ranks run the iterations before this one */
	uint64_t iterations_end;     /* UINT64_MAX: not known yet */
	uint64_t latest_ns;	     /* time of the last event */
	uint64_t end_ns;	     /* of the job, or of observing the hang */
	bool is_hung;
	enum status status; /* the first failure: memory, disk */
};

/* `trace` is borrowed and can be NULL. ERR_NO_SPACE. */
enum status sim_engine_init(struct sim_engine *engine, const struct sim_job *job,
			    struct sim_trace *trace);
/* Runs to the end. Unfinished calls are then in each rank's list first_open. */
enum status sim_engine_run(struct sim_engine *engine);
void sim_engine_release(struct sim_engine *engine);

void sim_engine_launch_over(struct sim_engine *engine, struct sim_launch *launch);

void sim_shared_issue(struct sim_engine *engine, struct sim_call *call);
void sim_shared_post(struct sim_engine *engine, struct sim_launch *launch);
/* How the shared operation would proceed from then on; `call` is one of its regular calls. */
void sim_shared_plan(const struct sim_engine *engine, const struct sim_shared *shared,
		     const struct sim_call *call, uint64_t start_ns, struct sim_plan *plan);
void sim_shared_plan_pair(const struct sim_engine *engine, const struct sim_shared *shared,
			  const struct sim_call *call, uint64_t start_ns, struct sim_plan *plan);
struct sim_call *sim_shared_call_new(struct sim_engine *engine);
struct sim_launch *sim_shared_launch_new(struct sim_engine *engine);
void sim_shared_launch_free(struct sim_engine *engine, struct sim_launch *launch);

/*
 * Where the transfers of a call waited, by connection: what NCCL's proxy would have reported. Consistent with
 * arrival times and slow links, not measured.
 */

/* When the ranks of a collective arrived. */
struct sim_arrivals {
	uint64_t last_ns;
	uint64_t second_last_ns;
	int last; /* rank in the communicator */
};

/* For a collective that is over. Returns the number of connections of `rank`. */
int sim_waits_collective(struct sim_edge edges[SIM_EDGES_MAX], const struct sim_job *job,
			 const struct sim_shared *shared, const struct sim_plan *plan,
			 const struct sim_arrivals *arrivals, int rank);

/* Only the connections, without their progress. */
int sim_waits_edges(struct sim_edge edges[SIM_EDGES_MAX], const struct sim_comm *comm,
		    const struct sim_plan *plan, int rank);

bool sim_waits_has_hop(const struct sim_plan *plan, int from, int to);

/* The outcome of a call, passed on to be recorded. All times are the job's. */

struct sim_kernel {
	uint8_t channel;
	uint64_t start_ns;
	uint64_t stop_ns; /* 0: running */
};

struct sim_outcome {
	const struct sim_call *call;
	uint8_t algorithm; /* enum op_algorithm */
	uint8_t protocol;
	uint8_t channels;
	bool is_over;
	bool is_self;	   /* from the rank to itself: no kernel or proxy events */
	uint64_t begin_ns; /* when all that came had arrived; 0: unknown */
	uint64_t end_ns;
	uint32_t steps;	     /* per connection */
	uint64_t step_bytes; /* of one */
	int kernel_count;    /* 0: the GPU has not started it */
	struct sim_kernel kernels[SIM_CHANNELS_MAX];
	int edge_count;
	struct sim_edge edges[SIM_EDGES_MAX];
};

/* A collective is over for this rank of its communicator. */
void sim_outcome_collective(struct sim_engine *engine, const struct sim_shared *shared,
			    const struct sim_plan *plan, const struct sim_arrivals *arrivals,
			    int rank, uint64_t end_ns);
/* The rank whose count was half of the others' has finished its half. */
void sim_outcome_odd(struct sim_engine *engine, const struct sim_shared *shared,
		     const struct sim_plan *plan, const struct sim_arrivals *arrivals, int rank);
/* All Sends and Recvs of a launch are over. */
void sim_outcome_pairs(struct sim_engine *engine, const struct sim_launch *launch);
/* At the end: this rank's calls in flight, in call order. ERR_NO_SPACE, and errors of the trace or the score. */
enum status sim_outcome_open_calls(struct sim_engine *engine, int rank);

/* When the kernel of a channel starts, for a launch that starts at start_ns. */
static inline uint64_t sim_outcome_kernel_start(uint64_t start_ns, int channel)
{
	return start_ns + (uint64_t)channel * 96;
}

/* A hung job: the state of each unfinished call at the end of the simulation. */

/*
 * Fills in the outcome of an unfinished call. Caches results in the shared operation, for the other ranks.
 * ERR_NO_SPACE.
 */
enum status sim_stall_outcome(struct sim_engine *engine, const struct sim_call *call,
			      struct sim_outcome *outcome);

/* The calls of a launch were made: will the recorder time it? */
void sim_trace_choose(struct sim_trace *trace, struct sim_launch *launch);
/* Records the outcome of a call. */
enum status sim_trace_add(struct sim_trace *trace, struct sim_engine *engine,
			  const struct sim_outcome *outcome);

#endif
