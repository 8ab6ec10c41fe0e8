/*
 * Which bits of the mask make NCCL send which event: a child's bit enables its parents. Releases differ, so there
 * is one row per generation.
 */
#ifndef HOST_INTERNAL_H
#define HOST_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "plugin/abi_common.h"
#include "sim/host.h"
#include "sim/host_event.h"

static inline bool host_is_asked(const struct host_asks *asks, int mask, enum abi_event event)
{
	return (mask & asks->bits[__builtin_ctz((unsigned int)event)]) != 0;
}

/* The first interface version that has it. */
static inline bool host_version_has(int version, enum abi_event event)
{
	static const int since[HOST_EVENTS] = { 1, 1, 1, 1, 1, 1, 3, 3, 5, 5, 5, 5, 6, 6, 6, 7 };

	return version >= since[__builtin_ctz((unsigned int)event)];
}

/*
 * Shared by the host's own files and the tape player.
 *
 *	user thread --host_play()--> API events, plans --post--> engine's queue --> engine thread
 *	                                  |                                         (proxy, or the
 *	graph replay --> callback thread -+                                          profiler thread)
 *	nonblocking --> group thread -----+
 *
 * A *task* is one Coll or P2p; a *plan* is one kernel of one communicator with its tasks; a *work* is what a plan
 * posts for a task to an engine. An engine owns everything it was given: it copies works out of its queue, and no
 * other thread accesses them.
 */

void host_worker_init(struct host_worker *worker);
void host_worker_release(struct host_worker *worker);
/* Runs the queued jobs first; accepts no more. */
void host_worker_stop(struct host_worker *worker);
void host_worker_wait(struct host_worker *worker);

static inline struct host_counts *host_lane_counts(struct host_comm *comm, enum host_lane lane)
{
	return &comm->counts[lane];
}

/* splitmix64: small, and identical on all platforms. */
static inline uint64_t host_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* host.c: takes and releases one reference; the caller holds host->lock. */
void host_load(struct host *host);
void host_unload(struct host *host);

/* ---- operations (host_call.c) ------------------------------------------------------------------- */

uint64_t host_op_bytes(const struct host_op *op);
/* The operation's own edges, or the ring's, or the peer's. */
uint8_t host_op_edges(const struct host_op *op, uint8_t function, int32_t peer,
		      struct host_edge edges[HOST_EDGES]);

/* ---- plans (host_launch.c), tasks (host_call.c), works (host_launch.c) ---------------------------- */

struct host_task {
	const struct host_op *op;
	int mask; /* when the API was called */
	unsigned int quirks;
	void *group_api;
	void *api;
	void *handle;	   /* Coll or P2p */
	uint32_t releases; /* of the communicator, when the API was called */
	int32_t peer;
	uint8_t function; /* Send or Recv if the user called AlltoAll */
	uint8_t channels; /* as NCCL shows them */
	bool is_p2p;
	bool is_shown;	/* by its API event */
	bool is_self;	/* to or from this rank itself: no proxy, no kernel channel */
	bool is_hidden; /* executes, but only its API event is shown */
	bool is_fused;	/* Recv that shares the device work of the preceding Send */
	bool is_gathered; /* one of a group's Broadcasts with several roots, which become one AllGatherV */
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
	void *watched;	  /* by host_watcher */
	uint64_t capture; /* the number of its graph */
	void *nodes;	  /* what host_watcher put there */
};

/* Coll or P2p; also updates counts->shown etc. */
void host_task_start(struct host_plan *plan, struct host_task *task, struct host_counts *counts,
		     bool is_replay);
void host_task_stop(struct host_plan *plan, struct host_task *task, struct host_counts *counts);
/* CeColl and its children, instead of a plan. */
void host_task_copy_engine(struct host_task *task, enum host_lane lane);

static inline struct host_call host_call_of(const struct host_comm *comm)
{
	return (struct host_call){ comm->context, comm->config.rank };
}

/* Whether the mask requests the event and the plugin's version has it. */
bool host_comm_is_asked(const struct host_comm *comm, int mask, enum abi_event event);

/* ---- works and engines ----------------------------------------------------------------------- */

struct host_work {
	/* As called, with the edges of this work (none: no proxy operations) and the quirks of its task. */
	struct host_op op;
	void *context;
	void *parent; /* Coll or P2p */
	uint64_t plan;
	int mask;
	int32_t pid;
	uint32_t release; /* comm->releases when it was posted */
	bool is_foreign;
	bool is_collnet;
	bool is_recv;
	bool has_kernel_events;	  /* KernelCh for its channels: they are polled */
	bool is_stamped;	  /* by the device, whether polled or not */
	uint16_t kernel_channels; /* with KernelCh: one fewer by quirk */
	uint64_t step_bytes;
	uint64_t launch_ns;
	void *watched; /* its plan, until its part is over */
	/* By channel, if polled or stamped: host_work_counters(). */
	struct host_counter few[HOST_COUNTERS_FEW];
	struct host_counter *many; /* on the heap if there are more */
};

/* A work that is not executed to its end. */
void host_work_drop(struct host_work *work);

static inline struct host_counter *host_work_counters(struct host_work *work)
{
	return work->many != NULL ? work->many : work->few;
}

enum host_engine_kind {
	ENGINE_PROXY = 0,
	ENGINE_PROFILER = 1,
};

/*
 * The thread starts with the first work. ERR_NO_SPACE. Lives until host_free(): a user thread may wait for room in
 * the queue while another one aborts the communicator.
 */
enum status host_engine_new(struct host_engine **engine, struct host_comm *owner,
			    enum host_engine_kind kind);
/* Adds a user communicator. */
void host_engine_share(struct host_engine *engine);
/* Removes one; with the last one the thread ends, after what is queued or at once. */
void host_engine_leave(struct host_engine *engine, bool is_abort);
void host_engine_free(struct host_engine *engine);
void host_device_free(struct host_device *device);

/* Waits while the queue is full. ERR_GONE: the communicator died; ERR_SYSTEM: no thread. */
enum status host_engine_post(struct host_engine *engine, const struct host_work *work);
void host_engine_wake(struct host_engine *engine);
/* Makes everything due: nobody advances the clock anymore. */
void host_engine_hurry(struct host_engine *engine);
/*
 * Waits until at most `limit` works of the communicator are unfinished, or it is dead, or only polls without an
 * answer are left.
 */
void host_engine_wait(struct host_engine *engine, struct host_comm *comm, uint64_t limit);
/* Waits until it is idle. */
void host_engine_settle(struct host_engine *engine);

/*
 * Inside an engine: what the proxy's progress thread (and the profiler thread of 2.31) works on. Only included by
 * host_engine.c.
 *
 * The thread makes passes. In each pass it takes new works from the queue, starts their proxy operations, and then
 * polls every active work once: each connection and channel advances by what is due. If nothing moved, it sleeps.
 */

/* One proxy operation: a channel, a peer, a direction. */
struct host_sub {
	void *handle;
	void *steps[HOST_IN_FLIGHT];
	uint64_t trans_bytes; /* not cleared between operations: NCCL recycles it, too */
	uint64_t step_ns[3];  /* real time: when a step is due for its three moves */
	uint64_t later_ns;    /* than the first channel */
	uint16_t permille;    /* of the work's period, between two of its steps */
	uint32_t connection;
	uint32_t ticket; /* its turn on that connection */
	/* Steps that are posted; ready or arrived; sent or flushed; completed. */
	uint32_t moved[4];
	int32_t peer;
	uint8_t channel; /* relative to the work's first */
	uint8_t stuck;	 /* from its edge */
	uint32_t stuck_step;
	bool is_send;
	bool is_begun;
	bool is_done;
};

struct host_stamp {
	uint64_t gpu_ns;
	uint64_t counter;
};

/* The GPU's side of one channel, in memory that the host polls. */
struct host_channel {
	uint64_t device;    /* the last work that was stamped */
	uint64_t queued[2]; /* polls posted, by direction (Recv has its own connection) */
	uint64_t polled[2]; /* polls finished */
	struct host_stamp start[HOST_STAMPS];
	struct host_stamp stop[HOST_STAMPS];
};

/* One profiler operation: the poll for a channel's kernel. */
struct host_kernel {
	struct host_channel *channel;
	void *handle;	/* not cleared between operations: the handle used after a lost start */
	uint64_t base;	/* the counter it waits for */
	uint64_t turn;	/* its turn on the channel's connection */
	uint64_t start; /* timestamp that was shown */
	bool is_started;
	bool is_done;
};

/* Which of a work's events the mask requests and the version has. */
struct host_requested {
	bool op;
	bool step;
	bool net;
	bool phase;
};

struct host_active {
	struct host_active *next;
	struct host_work work;
	struct host_plugin plugin;
	struct host_call call;
	struct host_counts *counts;
	struct host_requested wants;
	bool is_old;		   /* before 2.27 */
	host_transfer_fn transfer; /* as configured, NULL none */
	void *transfer_arg;

	struct host_sub *subs;
	size_t sub_count, sub_room, subs_open;
	struct host_kernel *kernels;
	size_t kernel_count, kernel_room, kernels_open;

	bool is_gpu_started;
	bool is_gpu_done;
	bool is_open;		    /* no longer waits for other ranks */
	uint64_t begin_ns;	    /* host's clock: when it opened; 0: it had no gate */
	bool is_lagging;	    /* polls are late by a whole ring of timestamps */
	uint64_t start_ns, stop_ns; /* GPU's clock, first channel */
	uint64_t over_ns;	    /* GPU's clock: the last channel stopped */
	uint64_t period_ns;	    /* real time: between two steps */
	uint16_t channels_running;
	uint16_t lost_channel;		      /* whose start is lost, by quirk; or none */
	uint16_t channel_open[HOST_CHANNELS]; /* unfinished proxy operations */
	bool channel_stopped[HOST_CHANNELS];
};

struct host_connection {
	uint32_t issued;
	uint32_t served;
};

struct host_engine {
	struct host_engine *next; /* all of the host */
	struct host *host;
	struct host_comm *owner;
	enum host_engine_kind kind;
	enum host_lane lane;

	pthread_mutex_t lock; /* for producers and all that sleep */
	pthread_cond_t arrived;
	pthread_cond_t room;
	pthread_cond_t quiet;
	pthread_t thread;
	unsigned int references;
	bool has_thread;
	bool is_sleeping;
	bool is_kicked;	      /* make another pass although nothing was posted */
	bool is_starved;      /* while asleep: all remaining works only wait for timestamps */
	uint64_t wakes_at_ns; /* while asleep; ENGINE_NEVER: only when woken */
	int stop;	      /* enum engine_stop */
	int waits_for_room;
	int watchers;
	int hurries; /* end of real time: the rest happens at once */

	struct host_work *queue;
	uint64_t tail; /* written by producers under the lock */
	uint64_t head; /* written by the thread */

	/* Only used by the thread. */
	struct host_active *first;
	struct host_active **last;
	struct host_active *spare;
	size_t active_count;
	size_t moved_count; /* works that advanced in the last pass */
	uint64_t pass;
	uint64_t now_ns;
	uint64_t next_due_ns;
	bool is_real;
	bool has_stuck;	   /* there was one in the last pass */
	bool is_lag_over;  /* nothing else moves: late polls happen now */
	bool was_lag_over; /* and that did not help */
	bool was_idle;
	bool is_purging; /* the last user is leaving: polls without an answer are dropped */
	uint64_t random;
	struct host_connection *connections;
};

/*
 * One group while it runs: host_call.c makes the API events and the tasks, host_launch.c turns the tasks into
 * plans.
 */

enum { PLAY_FEW = 8 }; /* tasks that need no memory from the heap */

struct play {
	struct host_user *user;
	const struct host_group *group;
	struct host_comm *api_comm; /* whose context GroupApi has; NULL: not started */
	struct host_task *tasks;
	size_t count;
	struct host_task few[PLAY_FEW];
};

/* Launches everything of the blocking communicators, or of the others. */
enum status host_launch(const struct play *play, bool is_blocking);
/* Call first: waits for operations that are stuck before launch. */
enum status host_launch_wait(const struct play *play);

#endif
