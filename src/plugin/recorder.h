/*
 * The recorder: its state, and what the hot path (hot_*.c) shares. Handles come first.
 *
 * A handle is what NCCL gets instead of a pointer. 64 bits:
 *
 *	63..60 kind | 59..29 generation | 28..9 slot | 8..1 extra | 0 always 0
 *
 * It is XORed with a per-process salt whose lowest bit is 1. So a handle is never NULL and never an
 * aligned pointer, and a handle of another process (PXN passes them on) decodes to nonsense that
 * the generation check rejects. The handle of a captured call lives as long as its CUDA graph, so
 * it holds the operation's number (bits 59..1) instead of a slot.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/cuda_driver.h"
#include "common/nccl_interface.h"
#include "common/op_layout.h"
#include "common/order.h"
#include "common/timing.h"
#include "format/region_create.h"
#include "format/region_layout.h"

enum handle_kind {
	HANDLE_NONE = 0,
	HANDLE_CONTEXT = 1,
	HANDLE_GROUP_API = 2,  /* slot: group */
	HANDLE_LAUNCH = 3,     /* slot: group */
	HANDLE_CALL = 4,       /* slot: live operation, known from its API call */
	HANDLE_CAPTURED = 5,   /* number of the captured operation */
	HANDLE_TASK = 6,       /* slot: live operation, from its Coll, P2p or CeColl event */
	HANDLE_KERNEL = 7,     /* slot: live operation; extra: channel */
	HANDLE_PROXY = 8,      /* slot: proxy operation */
	HANDLE_STEP = 9,       /* slot: proxy operation; extra: step modulo 256 */
	HANDLE_UNTRACKED = 10, /* an operation without a live slot */
	HANDLE_IGNORED = 11,   /* an event that is not recorded */
	HANDLE_TIMED = 12,     /* slot: pair of CUDA events around a launch */
	HANDLE_IN_GRAPH = 13,  /* slot: pair of CUDA events in a CUDA graph */
};

/*
 * A struct for type safety only: it is passed in one register. Bit 0 is 0 once the salt is removed.
 */
struct handle {
	uint64_t raw;
};

enum { HANDLE_KIND_SHIFT = 60, HANDLE_GENERATION_SHIFT = 29, HANDLE_SLOT_BITS = 20 };
#define HANDLE_GENERATION_MASK UINT32_C(0x7fffffff)

static inline struct handle handle_of(enum handle_kind kind, uint32_t generation, uint32_t slot,
				      uint8_t extra)
{
	return (struct handle){ (uint64_t)kind << HANDLE_KIND_SHIFT |
				(uint64_t)(generation & HANDLE_GENERATION_MASK)
					<< HANDLE_GENERATION_SHIFT |
				(uint64_t)slot << 9 | (uint64_t)extra << 1 };
}

static inline void *handle_encode(uint64_t salt, struct handle handle)
{
	return (void *)(uintptr_t)(handle.raw ^ salt);
}

static inline struct handle handle_decode(uint64_t salt, const void *opaque)
{
	return (struct handle){ (uint64_t)(uintptr_t)opaque ^ salt };
}

static inline enum handle_kind handle_kind(struct handle handle)
{
	return handle.raw & 1 ? HANDLE_NONE : (enum handle_kind)(handle.raw >> HANDLE_KIND_SHIFT);
}

static inline bool handle_is(struct handle handle, enum handle_kind kind)
{
	return (handle.raw & (UINT64_C(15) << HANDLE_KIND_SHIFT | 1)) ==
	       (uint64_t)kind << HANDLE_KIND_SHIFT;
}

static inline uint32_t handle_generation(struct handle handle)
{
	return (uint32_t)(handle.raw >> HANDLE_GENERATION_SHIFT) & HANDLE_GENERATION_MASK;
}

static inline uint32_t handle_slot(struct handle handle)
{
	return (uint32_t)(handle.raw >> 9) & ((1u << HANDLE_SLOT_BITS) - 1);
}

static inline uint8_t handle_extra(struct handle handle)
{
	return (uint8_t)(handle.raw >> 1);
}

/* Another kind of handle for the same slot and generation. */
static inline struct handle handle_as(struct handle handle, enum handle_kind kind, uint8_t extra)
{
	uint64_t kept = (uint64_t)HANDLE_GENERATION_MASK << HANDLE_GENERATION_SHIFT |
			(uint64_t)((1u << HANDLE_SLOT_BITS) - 1) << 9;

	return (struct handle){ (handle.raw & kept) | (uint64_t)kind << HANDLE_KIND_SHIFT |
				(uint64_t)extra << 1 };
}

/* Does the handle name the current owner of a slot? word: generation << 32, odd while in use. */
static inline bool handle_fits(struct handle handle, uint64_t word)
{
	uint64_t difference = word >> (32 - HANDLE_GENERATION_SHIFT) ^ handle.raw;
	uint64_t mask = (uint64_t)HANDLE_GENERATION_MASK << HANDLE_GENERATION_SHIFT;

	return (difference & mask) == 0 && (word & (UINT64_C(1) << 32));
}

static inline void *handle_encode_captured(uint64_t salt, uint64_t number)
{
	uint64_t raw = (uint64_t)HANDLE_CAPTURED << 60 | (number << 1 & ~(UINT64_C(15) << 60));

	return (void *)(uintptr_t)(raw ^ salt);
}

static inline uint64_t handle_captured_number(uint64_t salt, const void *opaque)
{
	uint64_t raw = (uint64_t)(uintptr_t)opaque ^ salt;

	return (raw & ~(UINT64_C(15) << 60)) >> 1;
}

/*
 * Files named hot_*.c run inside NCCL's callbacks: no allocation, no lock, no system call, no
 * waiting, no printing (scripts/check-hot-path checks their objects). The other files of the plugin
 * run in init, in finalize, in its threads and at exit.
 */

enum {
	GROUPS = 1024,	       /* groups whose launch time is remembered */
	LINGER = 64,	       /* finished operations a communicator holds back for late children */
	RECENT = 16,	       /* calls after which an operation without children is retired */
	CHILDLESS_AGE = 512,   /* calls without any child after which none is expected */
	STAMPED_CHANNELS = 64, /* channels whose stamps are compared with earlier ones */
	KEPT_PROXIES = 64,     /* proxy slots a communicator keeps for itself */
	NAME_GUESSES = 64,
	TAGGED_CAPTURES = 4096, /* captured calls whose user tag is kept for their replays */
	TIMED_CAPTURES = 1024,	/* captured calls whose pair of events is known by their number */
	STAMP_RING = 64,	/* stamps that NCCL keeps per channel */
};

/*
 * A KernelCh callback this late, with a full ring of work queued, may carry the stamp of later
 * work.
 */
enum { STAMP_LATE_NS = 64000, STAMP_SLACK_NS = 20000 };

/*
 * How many works the GPU can be ahead of the network. NCCL's buffers hold eight transfers, and one
 * channel may finish its kernel while another still waits; doubled for safety.
 */
enum { KERNEL_WORKS = 8, AHEAD_OF_NETWORK = 32 };

/* Odd, so that its multiples visit every slot of a table whose size is a power of two. */
#define SCATTER UINT32_C(0x9e3779b1)

/* Slots to try next to the one freed last, before searching the whole table. */
enum { HINT_TRIES = 16 };

enum { PASSED_NS = 1000 * 1000 * 1000 };

/*
 * live->notes: flags; the bits from LIVE_PLAN_SHIFT on say which kernel the operation is part of.
 */
enum { LIVE_PLAN_SHIFT = 32 };
enum live_note {
	LIVE_LINGERS = 1u << 0,	   /* in its communicator's linger queue */
	LIVE_HAS_TASK = 1u << 1,   /* its Coll, P2p or CeColl event has come */
	LIVE_FROM_TASK = 1u << 3,  /* no API event: issued by its Coll or P2p event */
	LIVE_HAS_OTHERS = 1u << 4, /* its struct live_others is in use */
};

/* The last work reported on a channel. */
struct channel_stamps {
	uint64_t start_ns, stop_ns; /* GPU's clock */
	uint64_t plan;		    /* the kernel it was part of */
};

/* The collectives of one function, as NCCL numbers them; see hot_call.c. */
struct comm_sequence {
	uint64_t next;	       /* number of the next task if none is missed */
	uint64_t tasks;	       /* Coll events so far */
	uint64_t calls;	       /* API events so far ... */
	uint64_t calls_before; /* ... before the current group */
	uint64_t group;
};

/* May events be put into CUDA graphs that contain launches of a communicator? Decided once. */
enum graph_verdict { GRAPH_UNDECIDED = 0, GRAPH_TIMED = 1, GRAPH_LEFT_ALONE = 2 };

/* What a communicator is capturing. */
struct comm_graph {
	uint64_t verdict; /* enum graph_verdict */
	uint64_t capture; /* CUDA's number of the capture */
	uint64_t is_open; /* the graph contains events already, so they are allowed there */
	uint64_t credit_ns;
	/* The group that is being captured: */
	uint64_t calls; /* so far; 0: none, or it was launched */
	uint64_t bytes; /* of all of them */
	struct op_record first;
};

/*
 * A communicator's state that only the recorder needs. The calling thread writes the first part at
 * every call while the proxy thread works on the second, so they must not share cache lines.
 */
struct comm_state {
	/* Used by the calling thread. */
	struct region_comm *shared; /* written once */
	bool expects_kernels;
	bool expects_proxies;	  /* it uses the network */
	struct times_pool *times; /* its context's CUDA events; NULL: not timed */
	uint64_t chosen_group;	  /* handle of the latest group whose launches are timed */
	uint64_t
		timed_launch; /* the launch whose tasks come now: handle of its pair, decoded; 0: not timed */
	struct timing_kinds kinds;
	struct timing_pace pace;
	struct comm_graph graph;
	uint64_t tasks;	     /* Coll and P2p events so far */
	uint64_t last_plan;  /* the kernel of the last one ... */
	uint32_t plan_tasks; /* ... and its tasks so far */
	/*
	 * Where to search for a free slot first. The slot freed last is warm in the cache, and each
	 * communicator searches elsewhere so that their threads do not compete.
	 */
	uint32_t live_hint;
	struct {
		uint64_t group;
		uint64_t first; /* number of its first operation on this communicator */
	} current[2];		/* [1]: of replays, which come from another thread */
	uint64_t recent[RECENT];
	struct {
		uint64_t number, group;
		uint64_t slot_and_generation;
	} latest;		/* the call that is not in recent[] yet; no slot: none */
	uint64_t capture_group; /* handle of the group that captured last ... */
	uint64_t capture_first; /* ... the number of the first call in it ... */
	uint64_t capture_calls, capture_tasks;	       /* ... and its calls and tasks so far */
	struct comm_sequence sequences[OP_REDUCE + 1]; /* by function */
	uint64_t
		gap_issued; /* operations issued up to here may have numbers from before a gap ... */
	uint64_t gap_shift; /* ... and these must be shifted by this much */

	/* Used by the proxy thread and by the thread that reports kernels. */
	uint64_t proxy_thread ON_OWN_LINE; /* thread_self() of its first proxy thread, or 0 */
	uint32_t kept_proxies;		   /* number of proxy slots that were freed last and kept */
	uint32_t kept[KEPT_PROXIES];
	uint64_t overrun_until; /* tasks before this one were queued when stamps were overrun */
	uint64_t network_at;	/* number of tasks up to the latest one with a transfer */
	uint32_t is_loose; /* not every kernel waits for the network: see is_held_by_network() */
	uint64_t linger_cursor;
	uint64_t linger[LINGER]; /* live slot | generation << 32; 0: empty */
	struct channel_stamps stamps[2][STAMPED_CHANNELS]; /* [1]: receives */
};

/*
 * What proxy threads other than the communicator's own did for an operation. Added up atomically,
 * and added to the record when the operation leaves its slot. One per live slot.
 *
 * Such threads exist where several GPUs share a process: with PXN a rank sends through the network
 * card of another GPU, and the proxy thread of that GPU's rank reports the transfers with the
 * handles of the first rank.
 */
struct live_others {
	uint64_t started, stopped;
	uint64_t send_bytes, recv_bytes, send_steps, recv_steps;
	uint64_t wait_ns[OP_WAITS];
};

/* Transfers of a link that are on the wire; see region_link.wire_ns. One per link. */
struct link_wire {
	uint64_t transfers;
	uint64_t since_ns; /* when there were none before */
};

struct group_state {
	uint64_t generation;
	uint64_t launch_ns;
	uint64_t is_open; /* its GroupApi event has not stopped */
};

/*
 * CUDA events around launches: see hot_times.c. Events belong to a context, so each context has a pool
 * of pairs. Pools are never freed: a late call may name one of their pairs.
 */
enum {
	TIMES_POOLS = 16,
	TIMES_PAIRS = 64, /* launches that wait for the GPU; any more are not timed */
	TIMES_REQUEST_MOST_S = 3600,
	GRAPH_PAIRS = 128, /* launches in graphs; in any more, events are recorded and never read */
	GRAPH_SINKS = 4,   /* ... these: the graph looks as it would with a pair of its own */
};

enum pair_state {
	PAIR_FREE = 0,
	PAIR_RECORDING = 1, /* the first event is recorded; the launching thread's */
	PAIR_LAUNCHED = 2,  /* both are; whoever takes it first closes its list */
	PAIR_TAKEN = 3,
};
#define PAIR_WORD(generation, state) ((uint64_t)(uint32_t)(generation) << 32 | (state))
#define PAIR_STATE(word) ((enum pair_state)((word)&3))
#define PAIR_GENERATION(word) ((uint32_t)((word) >> 32))
#define PAIR_CLOSED UINT64_MAX

struct time_pair {
	uint64_t word; /* generation << 32 | enum pair_state */
	struct CUevent_st *before, *after;
	struct CUstream_st *stream;
	uint64_t group; /* the launch's */
	uint64_t comm_slot;
	uint64_t began_ns;    /* recorder's clock: the first event cannot fire earlier */
	uint64_t recorded_ns; /* it was recorded */
	uint64_t open_ns;     /* system's clock: the second was asked in vain; 0: never */
	uint64_t gap_ns;      /* between recording the two, on the launching thread */
	uint64_t ops;	      /* list: live slot + 1 | generation << 32, or PAIR_CLOSED */
	uint64_t op_count;
	uint64_t start_ns, stop_ns; /* the result, for operations that join later; 0: none */
	uint64_t is_rough;	    /* its place in time */
};

/*
 * CUDA events around a launch in a CUDA graph. They belong to the graph, which records them at each replay, so they are
 * free again only when the communicator ends: NCCL waits for its graphs before.
 */
struct graph_pair {
	uint64_t
		word; /* generation << 32 | enum pair_state; PAIR_TAKEN: the reader makes a record */
	struct CUevent_st *before, *after;
	struct CUstream_st *stream;
	uint64_t group;
	uint64_t comm_slot;
	uint64_t gap_ns;
	uint64_t calls;	       /* that the launch executes */
	uint64_t is_rough;     /* the place of the replay that is being recorded */
	struct op_record call; /* the first of them */
	/* If NCCL shows replays: the last two of the first call, live slot + 1 | generation << 32. */
	uint64_t replays[2];
};

struct times_pool {
	struct CUctx_st *context;
	unsigned long long context_id; /* 0: the driver does not tell */
	int device;
	uint32_t is_off; /* for good: the driver answered with an error, or the context is gone */
	uint32_t comms;	 /* living communicators; without one nothing is asked */
	uint32_t has_recorded; /* two events around an ordinary launch, without an error */
	uint64_t cursor ON_OWN_LINE;
	struct time_pair pairs[TIMES_PAIRS];
	struct graph_pair graphs[GRAPH_PAIRS + GRAPH_SINKS];
};

struct timing {
	struct times_pool pools[TIMES_POOLS];
	uint32_t pools_used, pools_on;
	uint32_t is_all;     /* time every launch */
	uint32_t graphs;     /* enum settings_graphs */
	uint32_t has_graphs; /* a launch in a graph is timed */
	uint64_t request;    /* the last one seen */
	uint64_t until_ns;   /* time everything until then, on request */
	struct timing_launches launches ON_OWN_LINE;
	uint64_t asked_ns; /* for a request */
};

/* What launching threads call, and nothing else: hot_times.c only. Filled in before any pool is used. */
struct cuda_launching {
	int (*stream_is_capturing)(struct CUstream_st *stream, int *state);
	int (*stream_get_ctx)(struct CUstream_st *stream, struct CUctx_st **context);
	int (*ctx_get_current)(struct CUctx_st **context);
	int (*event_record)(struct CUevent_st *event, struct CUstream_st *stream);
	/* Into a graph; NULL: not by this driver. */
	int (*event_record_with_flags)(struct CUevent_st *event, struct CUstream_st *stream,
				       unsigned int flags);
	int (*stream_get_capture_info)(struct CUstream_st *stream, int *state, uint64_t *id,
				       struct CUgraph_st **graph,
				       struct CUgraphNode_st *const **nodes, size_t *count);
	int (*graph_node_get_type)(struct CUgraphNode_st *node, int *type);
};
extern HIDDEN struct cuda_launching cuda_launching;

/* The user tag of a captured call. The events of its replays do not carry it. */
struct capture_tag {
	uint64_t key;
	uint64_t tag;
};

/* The pair of events around a captured call. */
struct timed_capture {
	uint64_t key;  /* 0: free */
	uint64_t pair; /* pool * (GRAPH_PAIRS + GRAPH_SINKS) + index | generation << 32 */
};

struct recorder {
	uint32_t is_on;	  /* the main switch: every callback reads it first */
	uint32_t is_full; /* mode full: record details */
	uint32_t is_over; /* switched off at exit: later events are only counted */
	uint32_t has_capture_tags;
	uint64_t salt;
	int32_t pid;
	struct clock_source clock;
	struct region_writer region;
	struct comm_state *comms;   /* as many as region.comms */
	struct live_others *others; /* as many as region.live */
	struct link_wire *wires;    /* as many as region.links */
	struct group_state *groups;
	uint64_t *timed_next; /* by live slot: the next operation of its launch */
	struct timing timing ON_OWN_LINE;
	/* Written at every call, unlike everything above, which every callback reads. */
	uint64_t group_cursor ON_OWN_LINE;
	uint8_t guesses[4][NAME_GUESSES]; /* by string address: the number found last time */
	struct capture_tag capture_tags[TAGGED_CAPTURES];    /* by communicator and number */
	struct timed_capture timed_captures[TIMED_CAPTURES]; /* the same */
};

extern HIDDEN struct recorder recorder;

/* A call as described by an API, Coll, P2p or CeColl event. */
struct call {
	uint8_t function, datatype, algorithm, protocol;
	uint8_t channels, warps;
	bool is_captured;
	bool is_bytes;	   /* count is in bytes, whatever the datatype */
	bool has_sequence; /* Coll event with NCCL's number among the collectives of its function */
	int32_t root, peer; /* or OP_NOBODY */
	uint64_t count;
	uint64_t sequence;
	uint64_t user_tag;
	uint64_t stream;
	const void *group; /* tasks: the Group event */
};

/* A number that identifies the calling thread among all living threads. */
static inline uint64_t thread_self(void)
{
	uint64_t self;

#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(self));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(self));
#else
	self = (uint64_t)(uintptr_t)__builtin_thread_pointer();
#endif
	return self;
}

static inline uint64_t recorder_now(void)
{
	return clock_now(&recorder.clock);
}

static inline void count_odd(enum odd_reason reason)
{
	bump_relaxed(&recorder.region.header->odd[reason], 1);
}

/* Losses are rare and must be exact, hence the atomic add. */
static inline void count_lost(enum lost_reason reason, uint64_t how_many)
{
	add_relaxed(&recorder.region.header->lost[reason], how_many);
}

static inline void *handle_make(enum handle_kind kind, uint32_t generation, uint32_t slot,
				uint8_t extra)
{
	return handle_encode(recorder.salt, handle_of(kind, generation, slot, extra));
}

static inline void *handle_ignored(void)
{
	return handle_make(HANDLE_IGNORED, 0, 0, 0);
}

/*
 * NCCL may repeat the start of a transfer at every poll until it can be posted. So a start costs
 * almost nothing and leaves no trace: the transfer is open from its first state on.
 */
static inline void *hot_step_start(const void *parent, int step)
{
	struct handle handle = handle_decode(recorder.salt, parent);

	if (LIKELY(handle_is(handle, HANDLE_PROXY)))
		return handle_encode(recorder.salt, handle_as(handle, HANDLE_STEP, (uint8_t)step));
	if (!handle_is(handle, HANDLE_IGNORED))
		count_odd(ODD_FOREIGN_HANDLE);
	return handle_ignored();
}

/* A slot was freed: start the next search there if that is earlier. */
static inline void hint_lower(uint32_t *hint, uint32_t slot)
{
	if (slot < load_relaxed(hint))
		store_relaxed(hint, slot);
}

/*
 * Is an operation without children over because one of a later group is done? NCCL's proxy thread
 * reports channel by channel and can be late on some, so only a much later operation counts.
 */
static inline bool is_passed(const struct comm_state *comm, const struct op_record *op)
{
	const struct comm_counts *counts = &comm->shared->counts;

	return load_relaxed(&counts->last_done_number) > load_relaxed(&op->number) &&
	       load_relaxed(&counts->last_done_ns) > load_relaxed(&op->issue_ns) + PASSED_NS;
}

/*
 * Can children of this operation still come? What a communicator has ever shown is expected of its
 * later operations, too. What has never come is expected only of young operations: the
 * communicator's first ones or its latest ones, as the caller chooses.
 */
static inline bool may_have_children(const struct comm_state *comm, bool is_young)
{
	const struct region_comm *shared = comm->shared;
	uint32_t seen = load_relaxed(&shared->info.flags);

	if (seen & COMM_FLAG_SEES_PROXIES || (load_relaxed(&comm->expects_proxies) && is_young))
		return true;
	/* Not of what somebody else asked for: that can end at any call. */
	if (load_relaxed(&comm->expects_kernels))
		return seen & COMM_FLAG_SEES_KERNELS || is_young;
	return false;
}

/* Is an operation over because no child ever came in the many calls since? */
static inline bool is_childless(const struct comm_state *comm, const struct op_record *op)
{
	uint64_t age = load_relaxed(&comm->shared->counts.issued) - load_relaxed(&op->number);

	return !may_have_children(comm, age < CHILDLESS_AGE);
}

/* The operation in flight that a handle names; NULL if it is gone. */
static inline struct region_live *live_find(struct handle handle)
{
	struct region_live *live = &recorder.region.live[handle_slot(handle)];
	uint64_t word;

	if (UNLIKELY(handle_slot(handle) >= recorder.region.live_count))
		return NULL;
	/* Relaxed: the caller got the handle after live_publish(), ordered by NCCL itself. */
	word = load_relaxed(&live->word);
	return LIKELY(handle_fits(handle, word) && !(word & LIVE_RETIRING)) ? live : NULL;
}

/* NULL for a slot number out of range. */
static inline struct comm_state *comm_of_live(const struct region_live *live)
{
	uint64_t slot = load_relaxed(&live->comm_slot);

	return LIKELY(slot < recorder.region.comm_count) ? &recorder.comms[slot] : NULL;
}

/* hot_call.c: the number of a name from NCCL. */
uint8_t hot_name(unsigned int table, const char *text);
uint8_t hot_datatype(const char *text);

/* hot_call.c: operations are issued. These return the handle for NCCL. */
struct comm_state *hot_comm(const void *context);
void *hot_group_start(void);
void hot_group_stop(struct handle handle);
void *hot_plan_start(const void *context);
void *hot_launch_start(const void *context, const void *parent, void *stream);
void hot_launch_stop(struct handle handle);
void *hot_api_call(const void *context, const void *parent, const struct call *call);
void *hot_task(const void *context, const void *parent, const struct call *call);
void *hot_copy_engine(const void *context, const void *parent, const struct call *call);

/* hot_times.c: CUDA events around some launches. */
bool hot_times_are_on(const struct comm_state *comm);
void hot_times_choose(struct comm_state *comm, const struct op_record *op, uint64_t group,
		      bool is_first);
/* The handle of the launch; NULL: not timed. */
void *hot_times_begin(struct comm_state *comm, void *stream, const void *parent);
void *hot_times_end(struct handle handle);
/* A call was captured into a CUDA graph; a call of it is replayed. */
void hot_times_capture(struct comm_state *comm, const struct op_record *op, bool is_first);
void hot_times_replay(const struct comm_state *comm, uint64_t captured_number,
		      uint64_t slot_and_generation);
void hot_times_join(struct comm_state *comm, struct region_live *live, struct handle op,
		    uint8_t algorithm);
/*
 * Take a launched pair and give its operations this time, or none (0); then free it. False: somebody
 * else was faster. `word` is that of the pair as it was read before.
 */
bool times_take(struct time_pair *pair, uint64_t word, uint64_t start_ns, uint64_t stop_ns);
void times_free(struct time_pair *pair, uint64_t word);
/* A launch in a graph was replayed: the time reaches its record. False: too late, or not plausible. */
bool times_replayed(struct graph_pair *pair, uint64_t word, uint64_t start_ns, uint64_t stop_ns,
		    uint64_t error_ns);
/* End timing for a context because of this answer of the driver. */
void times_fail(struct times_pool *pool, int result);

/* hot_live.c: the table of operations in flight. */
struct region_live *live_claim(struct comm_state *comm, uint32_t *slot);
void live_publish(struct region_live *live);
bool live_child_begin(struct region_live *live, uint32_t generation);
void live_child_end(struct region_live *live, uint32_t generation);
/* The GPU has reached the launch of this operation. */
void live_reached(struct region_live *live, uint32_t generation, uint64_t now);
/* A replay ran from start to stop, if it is still in its slot. */
bool live_time_replay(struct region_live *live, uint32_t generation, uint32_t flags,
		      uint64_t start_ns, uint64_t stop_ns);
/*
 * The reference of a timed launch ends, with the time in recorder's clock or without one (0).
 */
void live_time_end(struct region_live *live, uint32_t generation, uint32_t flags, uint64_t start_ns,
		   uint64_t stop_ns);
bool live_retire(struct region_live *live, uint32_t generation, bool by_force);
/* Record one that was never published, and free its slot. Returns its number. */
uint64_t live_record(struct region_live *live, struct comm_state *comm);

static inline void live_mark_running(struct region_live *live, uint64_t now)
{
	if (load_relaxed(&live->op.active_ns) == 0)
		store_relaxed(&live->op.active_ns, now);
	store_relaxed(&live->op.state, OP_RUNNING);
}

/*
 * One thread reports the kernel channels of an operation, and one thread its proxy operations (the
 * exceptions are in struct live_others). So each side counts without atomics, and holds a single
 * reference while it has any child open.
 */
static inline bool live_side_begin(struct region_live *live, uint32_t generation, uint16_t *started,
				   const uint16_t *stopped)
{
	uint16_t before = load_relaxed(started);

	if (before == load_relaxed(stopped) && !live_child_begin(live, generation))
		return false;
	store_relaxed(started, (uint16_t)(before + 1));
	return true;
}

static inline void live_side_end(struct region_live *live, uint32_t generation,
				 const uint16_t *started, uint16_t *stopped)
{
	uint16_t after = (uint16_t)(load_relaxed(stopped) + 1);

	store_relaxed(stopped, after);
	if (after == load_relaxed(started))
		live_child_end(live, generation);
}

static inline bool live_kernel_begin(struct region_live *live, uint32_t generation)
{
	return live_side_begin(live, generation, &live->op.kernels_started,
			       &live->op.kernels_stopped);
}

static inline void live_kernel_end(struct region_live *live, uint32_t generation)
{
	live_side_end(live, generation, &live->op.kernels_started, &live->op.kernels_stopped);
}

static inline bool live_proxy_begin(struct region_live *live, uint32_t generation)
{
	return live_side_begin(live, generation, &live->op.proxies_started,
			       &live->op.proxies_stopped);
}

static inline void live_proxy_end(struct region_live *live, uint32_t generation)
{
	live_side_end(live, generation, &live->op.proxies_started, &live->op.proxies_stopped);
}

/* Reported by the communicator's own proxy thread or by any other? */
static inline bool live_has_proxies(const struct region_live *live)
{
	return load_relaxed(&live->op.proxies_started) != 0 ||
	       load_relaxed(&live->notes) & LIVE_HAS_OTHERS;
}

/* hot_kernel.c: kernel channels. gpu_ns is ignored where has_stamp is false (v3). */
void *hot_kernel_start(const void *parent, uint8_t channel, uint64_t gpu_ns, bool has_stamp);
void hot_kernel_state(struct handle handle, uint64_t gpu_ns);
void hot_kernel_stop(struct handle handle);

/* hot_proxy.c: the network side. */
struct proxy_start {
	int32_t pid, peer, steps, chunk_bytes;
	uint8_t channel;
	bool is_send;
};
void *hot_proxy_start(const void *parent, const struct proxy_start *start);
void hot_proxy_state(struct handle handle, int state, uint64_t bytes);
void hot_proxy_stop(struct handle handle);
void hot_proxy_forget(struct comm_state *comm);
void hot_step_state(struct handle handle, int state, uint64_t bytes);
void hot_step_stop(struct handle handle);

/* hot_record.c: finished operations. */
void record_push(struct comm_state *comm, struct op_record *op);
struct region_total *record_total_find(uint64_t key);
void record_detail(struct op_detail *detail);

/* times_thread.c; in init and finalize. */
void times_comm_begin(struct comm_state *comm, bool is_all, uint32_t graphs);
void times_comm_end(struct comm_state *comm);

/* plugin_setup.c */
struct comm_start {
	unsigned int interface;
	uint64_t hash;
	const char *name; /* may dangle; read with care */
	int nnodes, nranks, rank;
	void (*log)(int level, unsigned long flags, const char *file, int line, const char *fmt,
		    ...);
};
void setup_comm(void **context, int *mask, const struct comm_start *start);
void setup_comm_end(void *context);

#endif
