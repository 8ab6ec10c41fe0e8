/*
 * A host that behaves like NCCL: it loads a profiler plugin as NCCL does and makes the calls that NCCL would make,
 * with NCCL's threads, NCCL's order and, if requested, NCCL's bugs. docs/HACKING.md explains it; docs/HACKING.md
 * describes how recorded calls are replayed instead.
 *
 * Three layers, each usable alone:
 *
 *	struct host_plugin, host_event.h	one call: fills the native descriptor, calls the plugin
 *	struct host, struct host_comm		loading, communicators, threads
 *	struct host_op, host_play()		whole operations
 *
 * Threads: a struct host and its communicators can be used by several threads. A communicator is used by one user
 * thread at a time, as NCCL requires; so is a struct host_user.
 */
#ifndef HOST_H
#define HOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "common/status.h"
#include "plugin/abi_common.h"

struct host;
struct host_comm;
struct host_graph;

/* ---- releases -------------------------------------------------------------------------------- */

/* NCCL's encoding of a release: major * 10000 + minor * 100 + patch. */
enum {
	HOST_NCCL_2_23 = 22304,
	HOST_NCCL_2_24 = 22403,
	HOST_NCCL_2_25 = 22501,
	HOST_NCCL_2_26 = 22602,
	HOST_NCCL_2_27 = 22707,
	HOST_NCCL_2_28 = 22809,
	HOST_NCCL_2_29 = 22907,
	HOST_NCCL_2_30 = 23007,
	HOST_NCCL_2_31 = 23102,
	HOST_NCCL_NEWEST = HOST_NCCL_2_31,
};

/* The interface version that this release asks for first, 1 to 7; 0 for releases before 2.23. */
int host_release_native(int release);

/* Parses "2.28", "2.28.9", "22809" or an interface version "v5". ERR_FORMAT, ERR_UNKNOWN. */
enum status host_release_parse(const char *text, int *release);

/*
 * The names that this release passes to dlopen, in order, for a value of NCCL_PROFILER_PLUGIN (NULL: not set). An
 * empty name means dlopen(NULL). Returns how many; 0 means "off".
 */
enum { HOST_NAMES = 2, HOST_NAME_SIZE = 4096 };
size_t host_plugin_names(int release, const char *value, char names[HOST_NAMES][HOST_NAME_SIZE]);

/* ---- one plugin ------------------------------------------------------------------------------ */

/* A plugin that is linked in: any of these can be NULL. */
struct host_linked {
	const struct abi_plugin_v1 *v1;
	const struct abi_plugin_v2 *v2;
	const struct abi_plugin_v3 *v3;
	const struct abi_plugin_v4 *v4;
	const struct abi_plugin_v5 *v5;
	const struct abi_plugin_v6 *v6;
	const struct abi_plugin_v7 *v7;
};

/* The version that was found and the NCCL release: all that host_event.h needs to make a call. */
struct host_plugin {
	int version; /* 1 to 7; 0: none, the calls of host_event.h do nothing */
	int release; /* simulated NCCL release */
	union {
		const struct abi_plugin_v1 *v1;
		const struct abi_plugin_v2 *v2;
		const struct abi_plugin_v3 *v3;
		const struct abi_plugin_v4 *v4;
		const struct abi_plugin_v5 *v5;
		const struct abi_plugin_v6 *v6;
		const struct abi_plugin_v7 *v7;
	};
};

/* Newest first, from `newest` (0: the release's own) down. ERR_UNKNOWN: none found. */
enum status host_plugin_find(struct host_plugin *plugin, int release, int newest,
			     const struct host_linked *linked);

/* ---- the library and its communicators ------------------------------------------------------- */

enum host_time {
	/*
	 * As fast as possible. A kernel's GPU timestamps still come from the clock: the start when the kernel is
	 * first polled, the stop duration_ns later.
	 */
	HOST_TIME_VIRTUAL = 0,
	/* Kernels and transfers take their given time; the proxy thread sleeps in between. */
	HOST_TIME_REAL = 1,
};

/*
 * NCCL's bugs and surprising behaviour. Set for the whole host (quirk_one_in then says how often, seeded) or for
 * one operation. A quirk that the simulated release does not have can still be requested; host_quirks_of() returns
 * the ones that a release really has.
 */
enum host_quirk {
	HOST_QUIRK_LOST_START =
		1u << 0, /* 2.26-2.30: no KernelCh start, then state 22 and stop on the handle left
					  * in the recycled slot
					  */
	HOST_QUIRK_STAMP_OVERRUN = 1u << 2, /* the poll is 64 kernels late on a channel */
	HOST_QUIRK_STAMP_ZERO = 1u << 3,    /* the counter was visible before its start timestamp */
	HOST_QUIRK_STAMP_REVERSED =
		1u << 4, /* ... before its stop timestamp: an old one, 64 works back */
	HOST_QUIRK_STOP_TWICE = 1u << 5, /* every stop of the operation is called twice */
	HOST_QUIRK_STOP_NULL = 1u << 6,	 /* additional stop and state calls on a NULL handle */
	HOST_QUIRK_STEP_STOP_LOST = 1u
				    << 7, /* 2.24-2.26: recv steps without stop, except the last */
	HOST_QUIRK_FLOOD_PEER_WAIT = 1u << 8,	/* state 20 (1 before 2.27) on every poll */
	HOST_QUIRK_FLOOD_STEP_START = 1u << 9,	/* the same recv step is started on every poll */
	HOST_QUIRK_CHANNELS_GARBAGE = 1u << 10, /* nChannels is any number */
	HOST_QUIRK_CHANNELS_MISSING = 1u << 11, /* one KernelCh fewer than nChannels says */
	HOST_QUIRK_NO_COLL = 1u << 12, /* rejected after the API call: no Coll, no kernel */
	HOST_QUIRK_CTRL_EACH_PASS = 1u
				    << 13, /* 2.23-2.26: ProxyCtrl in every iteration of the loop */
};
unsigned int host_quirks_of(int release);

enum { HOST_FLOOD_CALLS = 1000 }; /* calls that a flood adds to one step */

/* Wall time in ns. Called from all of the host's threads. */
typedef uint64_t (*host_clock_fn)(void *arg);
typedef void (*host_transfer_fn)(void *arg, bool is_send);

/*
 * Whoever watches the simulated GPU: sim_cuda.c, which plays the CUDA driver. Times are the host's clock.
 *
 *	use	before init and before a launch, on its thread, like cudaSetDevice()
 *	begin	a launch, on its thread: KernelLaunch starts. capture: the number of the graph that captures it, or 0
 *	enqueue	... was enqueued: KernelLaunch stops
 *	end	... is shown. Returns it if it is watched from now on, else NULL. Captured: what the graph has of it
 *	replay	a launch that was captured runs again. Returns it as end() does
 *	forget	what the graph has of a launch; its replays can still run
 *	take	another part of it is given to an engine
 *	reach	the GPU starts a part of it
 *	leave	a part is over at `ns`; 0: the launching thread has given away all parts
 *	drop	a part never ends: its communicator was aborted
 *
 * take, reach, leave and drop can come from any thread. The launch begins with one part, the launching thread's; after the last part
 * has left nobody uses it.
 */
struct host_watcher {
	void (*use)(int gpu);
	void (*begin)(void *stream, uint64_t capture);
	void (*enqueue)(void);
	void *(*end)(void);
	void *(*replay)(const void *nodes);
	void (*forget)(void *nodes);
	void (*take)(void *launch);
	void (*reach)(void *launch, uint64_t ns);
	void (*leave)(void *launch, uint64_t ns);
	void (*drop)(void *launch);
};

struct host_config {
	int release;			  /* 0: HOST_NCCL_NEWEST */
	int newest;			  /* highest version to look up; 0: the release's own */
	const char *plugin;		  /* value of NCCL_PROFILER_PLUGIN; NULL: not set */
	const struct host_linked *linked; /* instead of `plugin`; borrowed until host_free() */
	enum host_time time;
	uint64_t seed;
	unsigned int quirks;	   /* enum host_quirk, for every operation ... */
	unsigned int quirk_one_in; /* ... or for one in this many; 0 and 1: every one */
	int64_t gpu_offset_ns;	   /* the GPU's clock minus wall time */
	host_clock_fn clock;	   /* NULL: host_clock_ns(); with HOST_TIME_REAL see host_tick() */
	void *clock_arg;
	abi_log_fn log; /* passed to init since v4; NULL: one that prints nothing */
	/*
	 * NCCL_ALLGATHERV_ENABLE=0, which can also come from the environment. 2.29 and later: Broadcast is an
	 * ordinary collective again.
	 */
	bool no_allgatherv;
	/* Called on the proxy thread when a transfer is posted or has arrived. NULL: transfers cost nothing. */
	host_transfer_fn transfer;
	void *transfer_arg;
	const struct host_watcher *watcher; /* NULL: nobody watches the GPU */
};

/* Loads nothing yet: NCCL does that with its first communicator. ERR_NO_SPACE. */
enum status host_new(struct host **host, const struct host_config *config);
/* All communicators must have been destroyed or aborted. Accepts NULL. */
void host_free(struct host *host);

/* The plugin; version 0 while nothing is loaded. Valid until host_free(). */
const struct host_plugin *host_plugin(const struct host *host);
/* Why nothing is loaded, or "". */
const char *host_load_error(const struct host *host);
/* The one mask of all communicators. Tests can write it, as a plugin or RAS would. */
int *host_mask(struct host *host);
/* The wall clock at the first call, and time since then: it never steps, nor does a GPU's clock. Children continue it. */
uint64_t host_clock_ns(void);
uint64_t host_now(const struct host *host);
/*
 * After the caller has advanced its own clock: runs what is due. host_comm_settle() then waits for that and not for
 * what is due later.
 */
void host_tick(struct host *host);

enum host_comm_flag {
	HOST_COMM_NONBLOCKING = 1u << 0,    /* launches happen on another thread, later */
	HOST_COMM_NULL_CONTEXT = 1u << 1,   /* 2.23-2.27: finalize gets NULL */
	HOST_COMM_LAST_STOP_LOST = 1u << 2, /* 2.31: the last KernelCh stop is purged at destroy */
};

struct host_comm_config {
	uint64_t hash;
	const char *name; /* borrowed, as in NCCL; usually NULL */
	int nnodes;	  /* 0: 1 */
	int nranks;	  /* 0: 2 */
	int rank;
	int gpu; /* its number, for host_watcher */
	unsigned int flags;
	struct host_comm *
		share; /* split with splitShare=1: uses this one's proxy thread; finalize does not wait
				  * for its own operations
				  */
};

/*
 * A communicator's memory lives until host_free(): late calls and counters need it.
 *
 * ncclCommInitRank: loads the plugin if necessary and calls init. Also OK without a plugin: operations then run
 * unrecorded, as in NCCL. ERR_NO_SPACE; ERR_RANGE for an invalid rank.
 */
enum status host_comm_new(struct host *host, struct host_comm **comm,
			  const struct host_comm_config *config);
/*
 * ncclCommDestroy: lets the proxy thread finish (a stuck operation is released first), then calls finalize, then
 * unloads if it was the last. Where NCCL would never return because a profiler operation waits for a timestamp that
 * never comes, this returns and counts it in host_counts.would_hang.
 */
void host_comm_destroy(struct host_comm *comm);
/* ncclCommAbort: the proxy thread exits at once, children stay open; then finalize. */
void host_comm_abort(struct host_comm *comm);
/* ncclCommRevoke (2.28.7): like abort, but finalize comes with destroy. Nothing runs on it afterwards. */
void host_comm_revoke(struct host_comm *comm);

/*
 * Waits until nothing moves: everything is done, or stuck, or (with the caller's own clock) due later. Returns how
 * many are not done. With the system's clock it waits for what is due later.
 */
size_t host_comm_settle(struct host_comm *comm);
/*
 * Waits until `limit` or fewer operations of this communicator are unfinished (the end of a stream, the bound of a
 * queue; does not wait for timestamps that never come), or until it is aborted: returns false then.
 */
bool host_comm_wait(struct host_comm *comm, size_t limit);
/* Releases all stuck operations; later ones get stuck again. */
void host_comm_release(struct host_comm *comm);

void *host_comm_context(const struct host_comm *comm);

/* ---- operations ------------------------------------------------------------------------------ */

/* How NCCL executes it. Releases differ in what they show of it (docs/BLIND-SPOTS.md). */
enum host_path {
	HOST_PATH_KERNEL = 0,
	HOST_PATH_SYMMETRIC = 1,   /* kernel on registered windows */
	HOST_PATH_COPY_ENGINE = 2, /* zero-CTA collective */
	HOST_PATH_COLLNET = 3,	   /* nChannels 0, ProxyOp starts without stops */
	HOST_PATH_RMA = 4,	   /* PutSignal etc.: never shown */
	HOST_PATH_SIMULATED = 5,   /* ncclGroupSimulateEnd: only API events */
};

enum host_stuck {
	HOST_STUCK_NONE = 0,
	HOST_STUCK_BEFORE_LAUNCH =
		1,		   /* host_play() does not return: release it from another thread */
	HOST_STUCK_KERNEL = 2,	   /* launched, the GPU never starts it */
	HOST_STUCK_KERNEL_END = 3, /* the kernel never ends; transfers, if any, do */
	HOST_STUCK_SEND_GPU = 4,   /* state 8: the local GPU does not produce */
	HOST_STUCK_SEND_PEER = 5,  /* state 20 (1): the peer has not posted */
	HOST_STUCK_SEND_NET = 6,   /* state 9: the network does not complete */
	HOST_STUCK_RECV_NET = 7,   /* state 10: nothing arrives */
	HOST_STUCK_RECV_FLUSH = 8, /* state 11 */
	HOST_STUCK_RECV_GPU = 9,   /* state 12: the local GPU does not consume */
	HOST_STUCK_EDGES = 10,	   /* each connection according to its own `stuck` */
};

/* A network connection that every channel of the operation uses. */
struct host_edge {
	int32_t peer;
	bool is_send;
	/*
	 * HOST_TIME_REAL, per step, in the order of the states: sending GPU, peer, net; receiving net, flush, GPU.
	 * All 0: the operation's duration is divided evenly.
	 */
	uint64_t wait_ns[3];
	uint64_t stagger_ns; /* channels begin one after the other during this time */
	/* Thousandths of the operation's duration after which its steps are over; 0: all of it. */
	uint16_t permille;
	uint16_t channel_plus_1; /* only this channel, counted from 1 for first_channel; 0: all */
	/* With HOST_STUCK_EDGES: SEND_GPU to RECV_GPU, or NONE: not stuck. */
	uint8_t stuck;
	uint32_t stuck_step; /* the first step that does not progress */
};
enum { HOST_EDGES = 8 };

/*
 * HOST_TIME_REAL: an operation that waits for other ranks. Called by the engine's threads once the kernel has
 * started, until it returns true: then the data moves from begin_ns on for duration_ns, one step every period_ns
 * (0: duration divided by steps). Until then sends wait for their GPU and receives for the network, and it is
 * called again at poll_ns or soon after.
 */
struct host_gate {
	uint64_t begin_ns; /* the host's clock */
	uint64_t duration_ns;
	uint64_t period_ns;
	uint64_t poll_ns;
};
typedef bool (*host_gate_fn)(void *arg, uint64_t now_ns, struct host_gate *gate);

/*
 * One call of the user. host_op_make() fills in the defaults. AlltoAll, Gather and Scatter become Sends and Recvs
 * as in NCCL.
 */
struct host_op {
	struct host_comm *comm;
	uint8_t function;  /* enum op_function */
	uint8_t datatype;  /* enum op_datatype; NCCL prints "Unknown" for OP_UINT8 */
	uint8_t algorithm; /* enum op_algorithm, NCCL's seven */
	uint8_t protocol;  /* enum op_protocol */
	uint8_t path;	   /* enum host_path */
	uint8_t warps;
	uint8_t first_channel;
	uint16_t channels; /* 1 to 256 */
	uint64_t count;	   /* of the call: elements per rank */
	int32_t root;
	int32_t peer; /* of Send and Recv; its own rank: self */
	const void *send_buffer;
	const void *recv_buffer; /* equal to send_buffer: in place */
	void *stream;
	uint64_t user_tag; /* 2.31 */

	/* Network. Without edges: the ring's neighbours, or the peer of Send and Recv. */
	bool has_network;    /* false: inside a node, no proxy operations */
	bool has_net_events; /* NetPlugin events from the transport (never in stock builds) */
	uint8_t edge_count;
	uint32_t steps;	      /* per channel and edge */
	uint32_t chunk_bytes; /* of a step */
	uint32_t
		step_bytes; /* that a step moves; 0: its share of the message, but no more than a chunk */
	struct host_edge edges[HOST_EDGES];

	/* Times. Timestamps of channel i: start + i * start_skew_ns, stop + i * stop_skew_ns. */
	uint64_t start_ns; /* HOST_TIME_REAL: wall time, not earlier than this; 0: at launch */
	uint64_t duration_ns;
	uint32_t start_skew_ns;
	uint32_t stop_skew_ns;
	host_gate_fn
		gate; /* NULL: it does not wait for other ranks. Must be valid until the operation is over. */
	void *gate_arg;

	/* Faults. */
	uint8_t stuck;		/* enum host_stuck */
	int16_t stuck_channel;	/* counted from first_channel; -1: all */
	int32_t stuck_peer;	/* only edges to this peer; -1: all */
	uint32_t stuck_step;	/* the first step that does not progress */
	uint32_t stuck_kernels; /* HOST_STUCK_EDGES: bit c: the kernel of channel c does not end */
	unsigned int quirks;	/* enum host_quirk */
};

/* 1 channel, ring, LL, 3 warps, in one node, 1 step of 512 KiB, 1 us; peers are the neighbours. */
struct host_op host_op_make(struct host_comm *comm, enum op_function function, uint64_t count,
			    enum op_datatype datatype);

/* NCCL's state per user thread. Zero-initialized; owned by the caller, one per thread. */
struct host_user {
	void *group_api;
	void *coll_api;
	void *p2p_api;
	int mask; /* read when the outermost group began */
};

enum host_group_flag {
	HOST_GROUP_SPLIT_API =
		1u << 0, /* a nested group after the first operation: GroupApi stops early and a
					 * second one starts
					 */
};

/* Called before each call of a group, for what happens in between, in the user's thread or another. */
typedef void (*host_between_fn)(void *arg, size_t call);

struct host_group {
	const struct host_op *ops;
	size_t count;
	int depth;	       /* 0: 1 for one operation, 2 for more */
	size_t tasks_per_plan; /* kernels per communicator; 0: one kernel for all */
	unsigned int flags;
	struct host_graph *capture; /* captured into this graph instead of running; NULL: eager */
	host_between_fn between;    /* NULL: nothing */
	void *between_arg;
};

/*
 * ncclGroupStart, the calls, ncclGroupEnd. Returns when NCCL would: with the work enqueued. Blocks while the
 * proxy's queue is full (as NCCL does) and in HOST_STUCK_BEFORE_LAUNCH. ERR_GONE: a communicator was aborted
 * meanwhile; ERR_RANGE: an invalid operation, nothing was called.
 */
enum status host_play_group(struct host_user *user, const struct host_group *group);
/* One operation outside a group. */
enum status host_play(struct host_user *user, const struct host_op *op);

/*
 * A CUDA graph: captured operations only run when replayed. The communicators must live until host_graph_free(),
 * which waits for replays in progress.
 */
enum status host_graph_new(struct host *host, struct host_graph **graph);
void host_graph_free(struct host_graph *graph);
/* Launches it: the callbacks come from the CUDA callback thread. Returns at once. */
enum status host_graph_replay(struct host_graph *graph);
/*
 * Only its n-th launch, from 0, of a single operation. `op` has what differs between replays: times, steps, connections
 * and faults. ERR_RANGE: there is no such launch.
 */
enum status host_graph_replay_one(struct host_graph *graph, size_t launch,
				  const struct host_op *op);

/*
 * A proxy operation on behalf of another process (PXN): foreign pid, parent and context. Steps as in `op`;
 * `context` and `parent` are the other process's ids.
 */
struct host_foreign {
	int32_t pid;
	void *context;
	void *parent;
};
enum status host_play_foreign(const struct host_op *op, const struct host_foreign *foreign);

/* ---- what was issued ------------------------------------------------------------------------- */

enum { HOST_EVENTS = 16, HOST_STATES = 32 };

struct host_counts {
	/* Calls of the plugin by event bit (0 Group ... 15 KernelPhase) and state number. */
	uint64_t starts[HOST_EVENTS];
	uint64_t stops[HOST_EVENTS];
	uint64_t states[HOST_STATES];
	uint64_t null_calls;	 /* stops and states on a NULL handle */
	uint64_t extra_stops;	 /* second stops, and stops of a handle left by another operation */
	uint64_t foreign_starts; /* ProxyOp of another process; not in starts[] */

	/*
	 * Profiler operations (one per operation and channel) that still waited for a timestamp when their
	 * communicator was destroyed. Up to 2.30 ncclCommDestroy would never return; 2.31 purges them.
	 */
	uint64_t would_hang;
	uint64_t purged;

	/*
	 * Operations. `shown` is what a complete recorder has: calls with an API event (v5 and later) or with a
	 * Coll or P2p event (before), and every replayed Coll or P2p.
	 */
	uint64_t calls; /* by the user, AlltoAll as its parts; without replays */
	uint64_t shown;
	uint64_t captured; /* of shown: captured into a graph */
	uint64_t replayed; /* of shown: by a graph */
	uint64_t hidden;   /* calls that the plugin did not see at all */
	uint64_t api_only; /* of shown: API event without Coll, P2p or CeColl, not captured */
	uint64_t shown_of[OP_FUNCTIONS]; /* shown by function; AlltoAll as Send and Recv */
};

/* Exact once host_comm_settle() returned or the communicator was aborted or destroyed. */
void host_comm_counts(const struct host_comm *comm, struct host_counts *counts);
/* All communicators of this host, the destroyed ones too. */
void host_counts(struct host *host, struct host_counts *counts);

/* For each event, by bit: it is sent if any of these is set. */
struct host_asks {
	int bits[HOST_EVENTS];
};

enum {
	HOST_CHANNELS = 256,
	HOST_STAMPS = 64,   /* NCCL's ring of timestamps per channel */
	HOST_IN_FLIGHT = 8, /* concurrent steps of a proxy operation */
	HOST_COUNTERS_FEW = 8,
};

/* Which thread counts. Each lane of a communicator is one thread at a time. */
enum host_lane {
	LANE_USER = 0,
	LANE_GROUP = 1,	   /* launches of nonblocking communicators */
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

/* A thread that runs jobs in order: the group thread, the callback thread. */
struct host_worker {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool is_running;
	bool is_stopping;
	size_t unfinished; /* jobs queued and running */
	struct host_worker_job *first;
	struct host_worker_job **last;
};

struct host {
	struct host_config config;
	struct host_plugin plugin;
	const struct host_asks *asks;
	int mask;
	int32_t pid;

	pthread_mutex_t lock; /* guards everything below */
	void *library;
	bool has_failed; /* failed to load: final */
	unsigned int references;
	char error[256];
	struct host_comm *comms;
	struct host_engine *engines;
	uint64_t graphs; /* made so far */

	struct host_worker callback;
};

/* NCCL's two work counters of a channel. They should be equal. */
struct host_counter {
	uint64_t host;
	uint64_t device;
};

/* What one engine knows about one communicator's stream of kernels. Only used by the engine's thread. */
struct host_stream {
	uint64_t plan; /* whose timestamps these are; GPU's clock */
	uint64_t start_ns;
	uint64_t stop_ns;
	uint64_t busy_pass; /* in this pass of the engine a kernel was found ... */
	uint64_t busy_plan; /* ... that those of other plans must wait for */
	struct host_device *device;
};

struct host_comm {
	struct host_comm *next;
	struct host *host;
	struct host_comm_config config;
	struct host_plugin plugin; /* as loaded when this communicator was created */
	void *context;
	struct host_worker group; /* for a nonblocking one */
	struct host_engine *proxy;
	struct host_engine *profiler;  /* the same as proxy before 2.31 */
	struct host_stream streams[2]; /* by engine: proxy, profiler */
	uint64_t sequence[OP_FUNCTIONS];
	uint32_t ce_sequence;
	bool ce_is_complete;
	uint64_t plans; /* kernels launched */
	uint64_t random;
	uint64_t unfinished[2]; /* works posted and not done, by engine */
	uint32_t releases;	/* how often host_comm_release() was called */
	int is_purged;		/* it is ending: polls without an answer are dropped */

	/* Changed under `lock`, which waiters hold. */
	pthread_mutex_t lock;
	struct host_counter counters[HOST_CHANNELS]; /* of the last work */
	bool is_persistent;			     /* the last group was captured */
	pthread_cond_t changed;
	int is_dead;	/* for its user: revoked, aborted or destroyed */
	int is_aborted; /* for its engines: drop the remaining works */
	bool is_finalized;

	struct host_counts counts[HOST_LANES];
};

/*
 * Tapes: callbacks made by a real NCCL (or this host), as text, one per line; docs/HACKING.md has the format. Read
 * here and replayed into any plugin.
 */

enum tape_what {
	TAPE_INIT = 0,
	TAPE_START = 1,
	TAPE_STATE = 2,
	TAPE_STOP = 3,
	TAPE_FINI = 4,
};

/* One callback. Words point into the tape's own copy of the text; a missing word is NULL, a missing number 0. */
struct tape_line {
	uint64_t time_ns; /* CLOCK_REALTIME when NCCL called */
	uint32_t thread;  /* numbered from 0 in the order of appearance */
	uint8_t what;	  /* enum tape_what */
	uint8_t version;  /* of the interface */
	bool has_args;	  /* STATE: the argument was not NULL */
	uint64_t handle;
	uint64_t context;
	uint64_t parent;
	uint64_t type;
	int64_t rank;
	int64_t state;
	uint64_t arg;
	const char *name; /* of the communicator (INIT), of a phase */
	const char *function;
	const char *datatype;
	const char *algorithm;
	const char *protocol;
	const char *variant;
	const char *sync;
	uint64_t hash; /* of the communicator */
	int64_t nnodes, nranks;
	uint64_t sequence, count, root, channels, warps, group;
	uint64_t send_buffer, recv_buffer, stream, tag, traffic;
	int64_t peer, channel, pid, steps, chunk, is_send, step;
	int64_t is_captured, depth, is_symmetric, is_collnet, is_nvls, redop;
	uint64_t gpu_ns, net_id;
	int64_t is_complete, ops, bytes, intra, batch, batches, ce_sequence, phase;
};

struct tape {
	struct tape_line *lines;
	size_t count;
	uint32_t threads;
	char *text;
};

/* Which line is wrong, and why. */
struct tape_error {
	size_t line; /* from 1; 0: the file as a whole */
	char text[160];
};

/*
 * All lines, or none and *error filled in: ERR_FORMAT, ERR_NO_SPACE, ERR_SYSTEM. An incomplete last line (the
 * process was killed) is skipped. `version` is for tapes that do not name theirs.
 */
enum { TAPE_VERSION_UNNAMED = 5 };
enum status tape_parse(struct tape *tape, const char *text, size_t length, int version,
		       struct tape_error *error);
enum status tape_read(struct tape *tape, const char *path, int version, struct tape_error *error);
void tape_release(struct tape *tape);

struct tape_config {
	const char *plugin;		  /* value of NCCL_PROFILER_PLUGIN ... */
	const struct host_linked *linked; /* ... or a plugin that is linked in */
	int release;			  /* 0: derived from the tape's version */
	bool is_timed;			  /* with the recorded pauses; otherwise at once */
	bool keeps_stamps; /* keep GPU timestamps; otherwise shifted to now by a constant */
	abi_log_fn log;
};

struct tape_counts {
	uint64_t inits, starts, states, stops, finalizes; /* calls made */
	uint64_t unasked; /* lines skipped: the plugin's mask does not include that event */
	int version;	  /* found in the plugin; 0: nothing was replayed */
};

/*
 * Replays it: one thread per recorded thread, lines in the recorded order. Handles and contexts are those that the
 * plugin returns; ones that were never started in the tape (another process's) are passed unchanged. ERR_UNKNOWN:
 * the plugin could not be loaded, see *error; ERR_NO_SPACE, ERR_SYSTEM.
 */
enum status tape_play(const struct tape *tape, const struct tape_config *config,
		      struct tape_counts *counts, struct tape_error *error);

/*
 * Maps recorded ids to what the plugin returned for them. Allocated at the start; a repeated id replaces the old
 * one. Id 0 never occurs.
 */

struct tape_id {
	uint64_t recorded;
	void *given;
	bool is_unasked; /* never started: the plugin does not want it */
};

struct tape_map {
	struct tape_id *ids;
	size_t room; /* a power of two, more than twice the number of entries */
};

/* A tape while it is replayed. */

struct player {
	const struct tape *tape;
	const struct tape_config *config;
	struct tape_counts *counts;
	struct host *host;
	struct host_plugin plugin; /* as found by the last INIT */
	struct tape_map contexts;
	struct tape_map handles;
	uint64_t shift_ns;	/* added to GPU timestamps */
	uint64_t start_mono_ns; /* when the first line was replayed */

	pthread_mutex_t lock;
	size_t next; /* the line that holds the ticket */
	bool is_cancelled;
	pthread_cond_t *turns; /* by thread */
};

#endif
