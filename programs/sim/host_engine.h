/*
 * Inside an engine: what the proxy's progress thread (and the profiler thread of 2.31) works on.
 * Only host_engine.c, host_engine_thread.c, host_proxy.c and host_device.c include this.
 *
 * The thread makes turns. In a turn it takes new works from the queue, starts their proxy
 * operations, and then looks once at every active work: each connection and each channel moves on
 * by what is due. When a turn moved nothing it sleeps.
 */
#ifndef HOST_ENGINE_H
#define HOST_ENGINE_H

#include "common/order.h"
#include "programs/sim/host_event.h"
#include "programs/sim/host_inside.h"

enum {
	ENGINE_QUEUE = 256,	  /* works posted and not yet taken; a power of two */
	ENGINE_ACTIVE_MAX = 4096, /* beyond this nothing is taken from the queue */
	ENGINE_AT_ONCE = 2,	  /* virtual time: works that move at the same time */
	ENGINE_CONNECTIONS = 8192,
};

#define ENGINE_NEVER UINT64_MAX

enum engine_stop {
	ENGINE_RUN = 0,
	ENGINE_DRAIN = 1, /* finish what there is, then leave */
	ENGINE_ABORT = 2, /* leave */
};

/* One proxy operation: a channel, a peer, a direction. */
struct host_sub {
	void *handle;
	void *steps[HOST_IN_FLIGHT];
	uint64_t trans_bytes; /* not cleared between operations: NCCL recycles it too */
	uint64_t step_ns[3];  /* real time: when a step is due for its three moves */
	uint32_t connection;
	uint32_t ticket; /* its turn on that connection */
	/* Steps that have been posted; made ready or arrived; sent or flushed; completed. */
	uint32_t moved[4];
	int32_t peer;
	uint8_t channel; /* counted from the work's first */
	uint8_t stuck;	 /* as its edge says */
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
	uint64_t queued[2]; /* polls posted, by direction (Recv has a connection of its own) */
	uint64_t polled[2]; /* polls finished */
	struct host_stamp start[HOST_STAMPS];
	struct host_stamp stop[HOST_STAMPS];
};

struct host_device {
	struct host_channel *channels[HOST_CHANNELS];
};

/* One profiler operation: the poll for a channel's kernel. */
struct host_kernel {
	struct host_channel *channel;
	void *handle;	/* not cleared between operations: that is the lost start's handle */
	uint64_t base;	/* the counter that is waited for */
	uint64_t turn;	/* its turn on the channel's connection */
	uint64_t start; /* stamp that was shown */
	bool is_started;
	bool is_done;
};

/* What of a work's events the mask asks for and the version has. */
struct host_wishes {
	bool op;
	bool step;
	bool net;
	bool kernel;
	bool phase;
};

struct host_active {
	struct host_active *next;
	struct host_work work;
	struct host_plugin plugin;
	struct host_call call;
	struct host_counts *counts;
	struct host_wishes wants;
	bool is_old;		   /* before 2.27 */
	host_transfer_fn transfer; /* as configured, NULL none */
	void *transfer_arg;

	struct host_sub *subs;
	size_t sub_count, sub_room, subs_open;
	struct host_kernel *kernels;
	size_t kernel_count, kernel_room, kernels_open;

	bool is_gpu_started;
	bool is_gpu_done;
	bool is_open;		    /* waits for nobody any more */
	uint64_t begin_ns;	    /* host's clock: when it opened; 0: it was never shut */
	bool is_lagging;	    /* polls are late by a whole ring of stamps */
	uint64_t start_ns, stop_ns; /* GPU's clock, first channel */
	uint64_t period_ns;	    /* real time: between two steps */
	uint16_t channels_running;
	uint16_t lost_channel;		      /* whose start is lost, by quirk; or none */
	uint16_t channel_open[HOST_CHANNELS]; /* proxy operations not done */
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

	pthread_mutex_t lock; /* producers, and everybody who sleeps */
	pthread_cond_t arrived;
	pthread_cond_t room;
	pthread_cond_t quiet;
	pthread_t thread;
	unsigned int references;
	bool has_thread;
	bool is_sleeping;
	bool is_kicked;	 /* look again, though nothing was posted */
	bool is_starved; /* while sleeping: works are left, and all of them wait for stamps alone */
	uint64_t wakes_at_ns; /* while sleeping; ENGINE_NEVER: only when woken */
	int stop;	      /* enum engine_stop */
	int waits_for_room;
	int watchers;
	int hurries; /* real time is over: what is left happens at once */

	struct host_work *queue;
	uint64_t tail; /* written by producers under the lock */
	uint64_t head; /* written by the thread */

	/* The thread's own. */
	struct host_active *first;
	struct host_active **last;
	struct host_active *spare;
	size_t active_count;
	size_t moved_count; /* works that moved in the last turn */
	uint64_t pass;
	uint64_t now_ns;
	uint64_t next_due_ns;
	bool is_real;
	bool has_stuck;	   /* there was one in the last turn */
	bool is_lag_over;  /* nothing else moves: late polls happen now */
	bool was_lag_over; /* and that did not help */
	bool was_idle;
	bool is_purging; /* the last one is leaving: polls that nothing answers are dropped */
	uint64_t random;
	struct host_connection *connections;
};

static inline bool active_is_quirky(const struct host_active *active, enum host_quirk quirk)
{
	return (active->work.quirks & quirk) != 0;
}

/* Is it stuck still? It was posted before the last release otherwise. */
static inline bool active_is_held(const struct host_active *active)
{
	return active->work.stuck != HOST_STUCK_NONE &&
	       load_relaxed(&active->work.comm->releases) == active->work.release;
}

static inline bool active_is_stuck_channel(const struct host_active *active, unsigned int channel)
{
	return active->work.stuck_channel < 0 ||
	       (unsigned int)active->work.stuck_channel == channel;
}

/* Real time: false, and the engine wakes up for it. Virtual time: everything is due. */
static inline bool engine_is_due(struct host_engine *engine, uint64_t ns)
{
	if (!engine->is_real || ns <= engine->now_ns)
		return true;
	if (ns < engine->next_due_ns)
		engine->next_due_ns = ns;
	return false;
}

static inline void active_count_start(struct host_active *active, unsigned int bit)
{
	bump_relaxed(&active->counts->starts[bit], 1);
}

static inline void active_count_state(struct host_active *active, enum abi_state state)
{
	bump_relaxed(&active->counts->states[state], 1);
}

/* Stop, and stop again where that quirk is on. */
static inline void active_stop(struct host_active *active, unsigned int bit, void *handle)
{
	(void)host_stop(&active->plugin, handle);
	bump_relaxed(&active->counts->stops[bit], 1);
	if (__builtin_expect(active_is_quirky(active, HOST_QUIRK_STOP_TWICE), 0)) {
		(void)host_stop(&active->plugin, handle);
		bump_relaxed(&active->counts->extra_stops, 1);
	}
}

/* host_engine_thread.c: what the thread does; the engine is its argument. */
void *host_engine_main(void *arg);

/* host_proxy.c: fill active->subs and start them; move them on, true when something moved. */
enum status host_proxy_append(struct host_engine *engine, struct host_active *active);
bool host_proxy_progress(struct host_engine *engine, struct host_active *active);

/* host_device.c: the same for the kernel's channels. */
enum status host_device_append(struct host_engine *engine, struct host_active *active);
bool host_device_progress(struct host_engine *engine, struct host_active *active);

#endif
