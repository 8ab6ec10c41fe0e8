/*
 * What the host's own files and the tapes' player share. Nobody else includes this.
 *
 *	user thread --host_play()--> API events, plans --post--> engine's queue --> engine thread
 *	                                  |                                         (proxy, or the
 *	graph replay --> callback thread -+                                          profiler thread)
 *	non-blocking --> group thread ----+
 *
 * A *task* is one Coll or P2p; a *plan* is one kernel of one communicator with its tasks; a *work* is
 * what a plan posts for a task to an engine. An engine owns all that it was given: it copies works
 * out of its queue, and no other thread looks at them.
 */
#ifndef HOST_INSIDE_H
#define HOST_INSIDE_H

#include <pthread.h>

#include "programs/sim/host_event.h"
#include "programs/sim/host_mask.h"

enum {
	HOST_CHANNELS = 256,
	HOST_STAMPS = 64,   /* NCCL's ring of stamps per channel */
	HOST_IN_FLIGHT = 8, /* steps of a proxy operation at once */
	HOST_COUNTERS_FEW = 8,
};

/* Who counts what it calls. Each lane of a communicator is one thread at a time. */
enum host_lane {
	LANE_USER = 0,
	LANE_GROUP = 1,	   /* launches of non-blocking communicators */
	LANE_CALLBACK = 2, /* graph replays */
	LANE_PROXY = 3,
	LANE_PROFILER = 4, /* 2.31 */
	LANE_FOREIGN = 5,  /* proxy operations of other processes */
	HOST_LANES = 6,
};

struct host_worker_job {
	struct host_worker_job *next;
	void (*run)(struct host_worker_job *job); /* frees the job */
};

/* A thread that does jobs in order: the group thread, the callback thread. */
struct host_worker {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool is_running;
	bool is_stopping;
	size_t unfinished; /* jobs queued and under way */
	struct host_worker_job *first;
	struct host_worker_job **last;
};

void host_worker_init(struct host_worker *worker);
void host_worker_release(struct host_worker *worker);
/* After the jobs that it has; it takes no more. */
void host_worker_stop(struct host_worker *worker);
/* Takes over the job. ERR_SYSTEM: no thread could be made; ERR_GONE: it was stopped. Then the job is
 * still the caller's. */
enum status host_worker_give(struct host_worker *worker, struct host_worker_job *job,
			     const char *thread_name);
void host_worker_wait(struct host_worker *worker);

struct host {
	struct host_config config;
	struct host_plugin plugin;
	const struct host_asks *asks;
	int mask;
	int32_t pid;

	pthread_mutex_t lock; /* all of the following */
	void *library;
	bool has_failed; /* to load: remembered for life */
	unsigned int references;
	char error[256];
	struct host_comm *comms;
	struct host_engine *engines;

	struct host_worker callback;
};

/* NCCL's two counters of works of a channel. They should be equal. */
struct host_counter {
	uint64_t host;
	uint64_t device;
};

/* What one engine knows about one communicator's stream of kernels. The engine's thread alone. */
struct host_stream {
	uint64_t plan; /* whose stamps these are; GPU's clock */
	uint64_t start_ns;
	uint64_t stop_ns;
	uint64_t busy_pass; /* in this turn of the engine a kernel was met ... */
	uint64_t busy_plan; /* ... that those of other plans have to wait for */
	struct host_device *device;
};

struct host_comm {
	struct host_comm *next;
	struct host *host;
	struct host_comm_config config;
	struct host_plugin plugin; /* as loaded when this communicator was made */
	void *context;
	struct host_worker group; /* for a non-blocking one */
	struct host_engine *proxy;
	struct host_engine *profiler;  /* the same as proxy before 2.31 */
	struct host_stream streams[2]; /* by engine: proxy, profiler */
	uint64_t sequence[OP_FUNCTIONS];
	uint32_t ce_sequence;
	bool ce_is_complete;
	uint64_t plans; /* kernels launched */
	uint64_t random;
	uint64_t unfinished[2]; /* works posted and not yet done, by engine */
	uint32_t releases;	/* how often host_comm_release() was called */
	int is_purged;		/* it ends: polls that nothing answers are dropped */

	/* Changed under `lock`, which those who wait for a change hold. */
	pthread_mutex_t lock;
	struct host_counter counters[HOST_CHANNELS]; /* of the last work */
	bool is_persistent;			     /* the last group was captured */
	pthread_cond_t changed;
	int is_dead;	/* for its user: revoked, aborted or destroyed */
	int is_aborted; /* for its engines: drop what is left */
	bool is_finalized;

	struct host_counts counts[HOST_LANES];
};

static inline struct host_counts *host_lane_counts(struct host_comm *comm, enum host_lane lane)
{
	return &comm->counts[lane];
}

/* splitmix64: small, and the same everywhere. */
static inline uint64_t host_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

void host_comm_free(struct host_comm *comm);

/* host_load.c: takes and gives back one reference; host->lock is held by the caller. */
void host_load(struct host *host);
void host_unload(struct host *host);

/* ---- operations (host_op.c) ------------------------------------------------------------------- */

/* NCCL's spelling, and v1's numbers. */
struct host_names {
	const char *function;
	const char *datatype;
	const char *algorithm;
	const char *protocol;
	uint8_t function_v1;
	uint8_t datatype_v1;
	uint8_t algorithm_v1;
	uint8_t protocol_v1;
};
struct host_names host_names_of(const struct host_op *op, uint8_t function, uint8_t datatype);
const char *host_datatype_name(uint8_t datatype);
const char *host_function_name(uint8_t function);

bool host_op_is_possible(const struct host_op *op);
uint64_t host_op_bytes(const struct host_op *op);
/* The op's own edges, or the ring's, or the peer's. */
uint8_t host_op_edges(const struct host_op *op, uint8_t function, int32_t peer,
		      struct host_edge edges[HOST_EDGES]);

/* ---- plans (host_plan.c), tasks (host_task.c), works (host_post.c) ---------------------------- */

struct host_task {
	const struct host_op *op;
	int mask; /* when the API was called */
	unsigned int quirks;
	void *group_api;
	void *api;
	void *handle;	   /* Coll or P2p */
	uint32_t releases; /* of the communicator, when the API was called */
	int32_t peer;
	uint8_t function; /* Send or Recv where the user said AlltoAll */
	uint8_t channels; /* as NCCL shows them */
	bool is_p2p;
	bool is_shown;	  /* by its API event */
	bool is_self;	  /* send to or from this rank: no proxy, no kernel channel */
	bool is_hidden;	  /* executes, but shows no more than its API event */
	bool is_fused;	  /* Recv that shares the device work of the Send before it */
	bool is_gathered; /* one of a group's Broadcasts of several roots, which are one AllGatherV */
	uint64_t *expected; /* captured: by channel, what a replay that does not count waits for */
};

struct host_plan {
	struct host_plan *next;
	struct host_comm *comm;
	struct host_task *tasks;
	size_t count;
	bool is_captured;
	void *launch;
	void *group;
};

/* KernelLaunch, then Group, Coll and P2p and the works; a captured plan ends with the launch where
 * its replays will be seen. ERR_GONE: aborted meanwhile. */
enum status host_plan_launch(struct host_plan *plan, enum host_lane lane);
/* Group, Coll, P2p and the works once more, from the callback thread. */
void host_plan_replay(struct host_plan *plan);
/* A copy that owns its tasks and their operations. NULL: out of memory. */
struct host_plan *host_plan_copy(const struct host_plan *plan);
void host_plan_free(struct host_plan *plan);

/* Coll or P2p; counts->shown and its like are kept here. */
void host_task_start(struct host_plan *plan, struct host_task *task, struct host_counts *counts,
		     bool is_replay);
void host_task_stop(struct host_plan *plan, struct host_task *task, struct host_counts *counts);
/* CeColl and its children, instead of a plan. */
void host_task_copy_engine(struct host_task *task, enum host_lane lane);

/* Is there something for an engine, whether or not anybody asks for it? */
bool host_post_is_needed(const struct host_plan *plan);
/* Works for all tasks of the plan. ERR_GONE: aborted meanwhile. */
enum status host_post_plan(const struct host_plan *plan, bool is_replay);
/* What host and device count when the plan is captured, or replayed with nothing to post. */
void host_post_count(const struct host_plan *plan, bool is_replay);

static inline struct host_call host_call_of(const struct host_comm *comm)
{
	return (struct host_call){ comm->context, comm->config.rank };
}

/* Does the mask ask for it, and does the plugin's version have it? */
bool host_comm_is_asked(const struct host_comm *comm, int mask, enum abi_event event);
/* Takes over the plan. */
void host_graph_add(struct host_graph *graph, struct host_plan *plan);

/* ---- works and engines ----------------------------------------------------------------------- */

struct host_work {
	struct host_comm *comm;
	void *context;
	void *parent; /* Coll or P2p */
	uint64_t plan;
	int mask;
	unsigned int quirks;
	int32_t pid;
	uint32_t release; /* comm->releases when it was posted */
	bool is_foreign;
	bool is_collnet;
	bool is_recv;
	bool has_kernel_events; /* KernelCh for its channels: somebody polls */
	bool is_stamped;	/* by the device, whether or not somebody polls */
	bool has_net_events;
	uint8_t first_channel;
	uint16_t channels;
	uint16_t kernel_channels; /* with KernelCh: one fewer by quirk */
	uint8_t edge_count;	  /* 0: no proxy operations */
	uint32_t steps;
	uint32_t chunk_bytes;
	uint64_t step_bytes;
	struct host_edge edges[HOST_EDGES];
	uint64_t launch_ns;
	uint64_t start_ns;
	uint64_t duration_ns;
	uint32_t start_skew_ns;
	uint32_t stop_skew_ns;
	host_gate_fn gate;
	void *gate_arg;
	uint8_t stuck;
	int16_t stuck_channel;
	int32_t stuck_peer;
	uint32_t stuck_step;
	uint32_t stuck_kernels;
	/* By channel, where it is polled or stamped: host_work_counters(). */
	struct host_counter few[HOST_COUNTERS_FEW];
	struct host_counter *many; /* on the heap when there are more */
};

static inline struct host_counter *host_work_counters(struct host_work *work)
{
	return work->many != NULL ? work->many : work->few;
}

enum host_engine_kind {
	ENGINE_PROXY = 0,
	ENGINE_PROFILER = 1,
};

/*
 * The thread comes with the first work. ERR_NO_SPACE. Lives until host_free(): a user thread may
 * wait for room in the queue while another one aborts the communicator.
 */
enum status host_engine_new(struct host_engine **engine, struct host_comm *owner,
			    enum host_engine_kind kind);
/* One more communicator uses it. */
void host_engine_share(struct host_engine *engine);
/* One fewer; with the last one the thread ends, after what is queued or at once. */
void host_engine_leave(struct host_engine *engine, bool is_abort);
void host_engine_free(struct host_engine *engine);
void host_device_free(struct host_device *device);

/* Waits while the queue is full. ERR_GONE: the communicator died; ERR_SYSTEM: no thread. */
enum status host_engine_post(struct host_engine *engine, const struct host_work *work);
void host_engine_wake(struct host_engine *engine);
/* From now on everything is due: nobody moves the clock any more. */
void host_engine_hurry(struct host_engine *engine);
/* Until no more than `limit` works of the communicator are unfinished, or it is dead, or all that is left
 * are polls that nothing will answer. */
void host_engine_wait(struct host_engine *engine, struct host_comm *comm, uint64_t limit);
/* Until it has nothing to do. */
void host_engine_settle(struct host_engine *engine);

#endif
