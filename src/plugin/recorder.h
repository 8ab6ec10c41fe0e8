/*
 * The recorder's state, and the hot path's functions on it; first the handles.
 *
 * What NCCL gets instead of pointers. 64 bits:
 *
 *	63..60 kind | 59..29 generation | 28..9 slot | 8..1 extra | 0 always 0
 *
 * XORed with a salt of this process whose lowest bit is 1: so a handle is never NULL, never an
 * aligned pointer, and another process's handle (PXN hands them over) decodes to nonsense that the
 * generation check refuses. A captured call is named for as long as its graph lives, so its handle
 * holds the operation's number itself (59..1) and no slot.
 */
#ifndef RECORDER_H
#define RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/nccl_interface.h"
#include "common/op_layout.h"
#include "common/order.h"
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
	HANDLE_IGNORED = 11,   /* an event that nothing is kept of */
};

/* One word, so that it travels in one register; 0 in bit 0 once the salt is off. */
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

/* The same slot and generation as something of another kind. */
static inline struct handle handle_as(struct handle handle, enum handle_kind kind, uint8_t extra)
{
	uint64_t kept = (uint64_t)HANDLE_GENERATION_MASK << HANDLE_GENERATION_SHIFT |
			(uint64_t)((1u << HANDLE_SLOT_BITS) - 1) << 9;

	return (struct handle){ (handle.raw & kept) | (uint64_t)kind << HANDLE_KIND_SHIFT |
				(uint64_t)extra << 1 };
}

/* Is this the handle of a slot with this word (generation << 32, odd when it is used)? */
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
 * waiting, no printing (scripts/check-hot-path looks at their objects). The others run in init,
 * finalize, the trace thread and at exit.
 */

enum {
	GROUPS = 1024,	     /* groups whose launch time is remembered */
	LINGER = 64,	     /* finished operations a communicator holds back for late children */
	RECENT = 16,	     /* after so many more calls an operation without children is let go */
	CHILDLESS_AGE = 512, /* calls without any child: none is expected any more */
	STAMPED_CHANNELS = 64, /* channels whose stamps are compared with those before */
	KEPT_PROXIES = 64,     /* proxy slots a communicator keeps for itself */
	NAME_GUESSES = 64,
	TAGGED_CAPTURES = 4096, /* captured calls whose user tag their replays can have */
	STAMP_RING = 64,	/* NCCL keeps so many stamps per channel */
};

/* A KernelCh callback this late, with a full ring of work outstanding, may carry another's stamp. */
enum { STAMP_LATE_NS = 64000, STAMP_SLACK_NS = 20000 };

/* So many works the GPU may be ahead of the network: NCCL's buffers take eight transfers, and on one channel
 * it may do the rest of its kernel while another channel waits. Twice as many. */
enum { KERNEL_WORKS = 8, AHEAD_OF_NETWORK = 32 };

/* Odd, so that its multiples visit every slot of a table whose size is a power of two. */
#define SCATTER UINT32_C(0x9e3779b1)

/* Slots looked at from where one was freed last, before looking anywhere. */
enum { HINT_TRIES = 16 };

enum { PASSED_NS = 1000 * 1000 * 1000 };

/* live->notes; from LIVE_PLAN_SHIFT on: which kernel it is part of */
enum { LIVE_PLAN_SHIFT = 32 };
enum live_note {
	LIVE_LINGERS = 1u << 0,	   /* waits in its communicator's linger queue */
	LIVE_HAS_TASK = 1u << 1,   /* its Coll, P2p or CeColl event came */
	LIVE_FROM_TASK = 1u << 3,  /* no API event: issued by its Coll or P2p event */
	LIVE_HAS_OTHERS = 1u << 4, /* there is something in its struct live_others */
};

/* The last work that was reported on a channel. */
struct channel_stamps {
	uint64_t start_ns, stop_ns; /* GPU's clock */
	uint64_t plan;		    /* the kernel it was part of */
};

/* The collectives of one function, as NCCL numbers them: hot_call.c. */
struct comm_sequence {
	uint64_t next;	       /* number of the next task, if none is missed */
	uint64_t tasks;	       /* Coll events so far */
	uint64_t calls;	       /* API events so far ... */
	uint64_t calls_before; /* ... before those of the current group */
	uint64_t group;
};

/* What the recorder alone needs of a communicator. The calling thread writes the first part at every
 * call while the proxy thread works with the second: they must not share cache lines. */
struct comm_state {
	/* Whoever calls. */
	struct region_comm *shared; /* written once */
	bool expects_kernels;	    /* of every operation, not of samples alone */
	bool expects_proxies;	    /* there is a network */
	uint32_t wants_kernels;	    /* sampled: of its next collective */
	int32_t credit;		    /* sampled: blocks it may be timed in for the sake of others */
	uint64_t sample_at;	    /* from this collective on hot_sample() is to decide */
	uint64_t first_ns;	    /* its first collective */
	uint64_t estimated_ns;	    /* how long all of them took to move their bytes, at least */
	uint64_t new_until;	    /* up to this collective more are timed, to catch a new kind */
	uint8_t kinds[8][20];	    /* calls of each kind (by function, two size classes), a few */
	uint64_t tasks;		    /* Coll and P2p events so far */
	uint64_t last_plan;	    /* the kernel of the last one ... */
	uint32_t plan_tasks;	    /* ... and how many it has so far */
	/* Where to look for a free slot first: what was freed last is warm in the cache, and each
	 * communicator looks elsewhere so that their threads do not meet. */
	uint32_t live_hint;
	struct {
		uint64_t group;
		uint64_t first; /* number of its first operation here */
	} current[2];		/* [1]: of replays, which another thread shows */
	uint64_t recent[RECENT];
	struct {
		uint64_t number, group;
		uint64_t slot_and_generation;
	} latest;		/* the call that is not in recent[] yet; no slot: it is */
	uint64_t capture_group; /* handle of the group that captured last ... */
	uint64_t capture_first; /* ... the number of the first call in it ... */
	uint64_t capture_calls, capture_tasks; /* ... and how many calls and tasks it had so far */
	struct comm_sequence sequences[OP_REDUCE + 1]; /* by function */
	uint64_t
		gap_issued; /* operations issued up to here may be numbered as before the last gap ... */
	uint64_t gap_shift; /* ... and are so many further on */

	/* The proxy thread, and who reports kernels. */
	uint64_t proxy_thread ON_OWN_LINE; /* thread_self() of the first proxy thread, 0 none yet */
	uint32_t kept_proxies;		   /* how many of these: proxy slots freed last, kept */
	uint32_t kept[KEPT_PROXIES];
	uint64_t overrun_until; /* tasks before this one were queued when stamps were overrun */
	uint64_t network_at;	/* how many tasks there were up to the latest with a transfer */
	uint32_t is_loose;	/* not everything waits for the network: see is_held_by_network() */
	uint64_t linger_cursor;
	uint64_t linger[LINGER]; /* live slot | generation << 32; 0 none */
	struct channel_stamps stamps[2][STAMPED_CHANNELS]; /* [1]: receives */
};

/*
 * What other proxy threads than the communicator's own did for an operation: added up atomically, and added to the
 * record when the operation leaves its slot. One per live slot.
 *
 * There are such threads where several GPUs share a process: with PXN a rank's sends go through the network
 * card of another GPU, and the proxy thread of that GPU's rank shows them with the handles of the first.
 */
struct live_others {
	uint64_t started, stopped;
	uint64_t send_bytes, recv_bytes, send_steps, recv_steps;
	uint64_t wait_ns[OP_WAITS];
};

struct group_state {
	uint64_t generation;
	uint64_t launch_ns;
	uint64_t is_open; /* its GroupApi event has not stopped */
};

/* Kernel events are requested for some collectives: see hot_sample.c. Read at every call, written
 * rarely. */
struct sampling {
	uint32_t state;	     /* enum sampling_state */
	uint32_t is_open;    /* NCCL's mask has kernel events now */
	uint32_t wanting;    /* communicators whose next collective is to be timed */
	uint32_t broadcasts; /* Broadcast does not harm NCCL's counters */
	int *mask;	     /* NCCL's, which it reads anew for every call */
	int mask_closed;
	uint64_t begin_ns;   /* no window before */
	uint64_t request;    /* the last one seen */
	uint64_t until_ns;   /* everything is timed until then: somebody asked for it */
	uint64_t last_group; /* with state ENDING: closes when this group's call returns */
};

/* The user tag of a captured call. Its replays have none in what may be read of their events. */
struct capture_tag {
	uint64_t key;
	uint64_t tag;
};

struct recorder {
	uint32_t is_on;	  /* the switch: read first by every callback */
	uint32_t is_full; /* mode full: details wanted */
	uint32_t is_over; /* switched off at exit: what still comes is counted */
	uint32_t has_capture_tags;
	uint64_t salt;
	int32_t pid;
	struct clock_source clock;
	struct region_writer region;
	struct comm_state *comms;   /* as many as region.comms */
	struct live_others *others; /* as many as region.live */
	struct group_state *groups;
	struct sampling sampling ON_OWN_LINE;
	/* Written at every call, while all of the above is read in every callback. */
	uint64_t group_cursor ON_OWN_LINE;
	uint8_t guesses[4][NAME_GUESSES]; /* by a string's address: what it said last time */
	struct capture_tag capture_tags[TAGGED_CAPTURES]; /* by communicator and number */
};

extern HIDDEN struct recorder recorder;

/* A call as an API, Coll, P2p or CeColl event describes it. */
struct call {
	uint8_t function, datatype, algorithm, protocol;
	uint8_t channels, warps;
	bool is_captured;
	bool is_bytes;	    /* count is in bytes whatever the datatype says */
	bool has_sequence;  /* of a Coll event: NCCL's number among those of its function */
	int32_t root, peer; /* or OP_NOBODY */
	uint64_t count;
	uint64_t sequence;
	uint64_t user_tag;
	uint64_t stream;
	const void *group; /* of a task: its Group event */
};

/* The calling thread: a number that no other living thread has. */
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

/* Losses are exact: an atomic add. They are rare. */
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

/* NCCL may start the same transfer at every poll until it can be posted. So a start costs next to
 * nothing and leaves no trace: the transfer is open from its first state on. */
static inline void *hot_step_start(const void *parent, int step)
{
	struct handle handle = handle_decode(recorder.salt, parent);

	if (LIKELY(handle_is(handle, HANDLE_PROXY)))
		return handle_encode(recorder.salt, handle_as(handle, HANDLE_STEP, (uint8_t)step));
	if (!handle_is(handle, HANDLE_IGNORED))
		count_odd(ODD_FOREIGN_HANDLE);
	return handle_ignored();
}

/* A slot was freed: the next search begins there, if it lies before where it would have begun. */
static inline void hint_lower(uint32_t *hint, uint32_t slot)
{
	if (slot < load_relaxed(hint))
		store_relaxed(hint, slot);
}

/*
 * Is an operation of which no child came over, because one of a later group is done? NCCL's proxy
 * thread reports channel by channel and may lag behind on some: so only after a good while.
 */
static inline bool is_passed(const struct comm_state *comm, const struct op_record *op)
{
	const struct comm_counts *counts = &comm->shared->counts;

	return load_relaxed(&counts->last_done_number) > load_relaxed(&op->number) &&
	       load_relaxed(&counts->last_done_ns) > load_relaxed(&op->issue_ns) + PASSED_NS;
}

/*
 * May children of this operation still come? What was ever seen of a communicator is expected of its
 * later operations, too; what never came is expected of young ones: of a communicator's first
 * operations, or of the last ones, as the caller likes. With sampling, kernels come of operations that
 * were sampled alone.
 */
static inline bool may_have_children(const struct comm_state *comm, const struct op_record *op,
				     bool is_young)
{
	const struct region_comm *shared = comm->shared;
	uint32_t seen = load_relaxed(&shared->info.flags);

	if (seen & COMM_FLAG_SEES_PROXIES || (load_relaxed(&comm->expects_proxies) && is_young))
		return true;
	if (load_relaxed(&op->flags) & OP_FLAG_KERNELS_ASKED)
		return seen & COMM_FLAG_SEES_KERNELS ||
		       load_relaxed(&shared->counts.issued) - load_relaxed(&op->number) <
			       CHILDLESS_AGE;
	/* Others may have asked for kernel events, for all operations. */
	if (seen & COMM_FLAG_SEES_KERNELS)
		return recorder.sampling.mask == NULL;
	return load_relaxed(&comm->expects_kernels) && is_young;
}

/* Or because its communicator made so many calls since, and no child of any ever came? */
static inline bool is_childless(const struct comm_state *comm, const struct op_record *op)
{
	uint64_t age = load_relaxed(&comm->shared->counts.issued) - load_relaxed(&op->number);

	return !may_have_children(comm, op, age < CHILDLESS_AGE);
}

/* The operation in flight that a handle names, NULL when it is gone. */
static inline struct region_live *live_find(struct handle handle)
{
	struct region_live *live = &recorder.region.live[handle_slot(handle)];
	uint64_t word;

	if (UNLIKELY(handle_slot(handle) >= recorder.region.live_count))
		return NULL;
	/* Relaxed: whoever has the handle got it after live_publish(), through NCCL's own ordering. */
	word = load_relaxed(&live->word);
	return LIKELY(handle_fits(handle, word) && !(word & LIVE_RETIRING)) ? live : NULL;
}

/* NULL where a slot number makes no sense. */
static inline struct comm_state *comm_of_live(const struct region_live *live)
{
	uint64_t slot = load_relaxed(&live->comm_slot);

	return LIKELY(slot < recorder.region.comm_count) ? &recorder.comms[slot] : NULL;
}

/* hot_call.c: the number of a name NCCL sent. */
uint8_t hot_name(unsigned int table, const char *text);
uint8_t hot_datatype(const char *text);

/* hot_call.c: operations are issued. Each gives back the handle for NCCL. */
struct comm_state *hot_comm(const void *context);
void *hot_group_start(void);
void hot_group_stop(struct handle handle);
void *hot_plan_start(const void *context);
void *hot_launch_start(const void *parent);
void hot_launch_stop(struct handle handle);
void *hot_api_call(const void *context, const void *parent, const struct call *call);
void *hot_task(const void *context, const void *parent, const struct call *call);
void *hot_copy_engine(const void *context, const void *parent, const struct call *call);

/* hot_sample.c: kernel events for some of the collectives. */
void hot_sample(struct comm_state *comm, uint64_t collective, uint64_t now);
void hot_sample_call(struct comm_state *comm, const struct op_record *op, uint64_t now);
void hot_sample_captured(void);
void hot_sample_p2p(const void *group);
void hot_sample_end(enum sampling_state why);
void hot_sample_group_end(uint64_t group);
void hot_sample_forget(struct comm_state *comm);

static inline bool is_sampling(void)
{
	return UNLIKELY(load_relaxed(&recorder.sampling.state) == SAMPLING_ACTIVE);
}

/* hot_live.c: the table of operations in flight. */
struct region_live *live_claim(struct comm_state *comm, uint32_t *slot);
void live_publish(struct region_live *live);
bool live_child_begin(struct region_live *live, uint32_t generation);
void live_child_end(struct region_live *live, uint32_t generation);
bool live_retire(struct region_live *live, uint32_t generation, bool by_force);

static inline void live_mark_running(struct region_live *live, uint64_t now)
{
	if (load_relaxed(&live->op.active_ns) == 0)
		store_relaxed(&live->op.active_ns, now);
	store_relaxed(&live->op.state, OP_RUNNING);
}

/*
 * The kernel channels of an operation are reported by one thread, and its proxy operations by one thread but for
 * struct live_others. So each side counts without atomics and holds one reference while any of its is open.
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

/* Of the communicator's own proxy thread, or of others? */
static inline bool live_has_proxies(const struct region_live *live)
{
	return load_relaxed(&live->op.proxies_started) != 0 ||
	       load_relaxed(&live->notes) & LIVE_HAS_OTHERS;
}

/* hot_kernel.c: kernel channels. gpu_ns is ignored where has_stamp is false (v3). */
void *hot_kernel_start(const void *parent, uint8_t channel, uint64_t gpu_ns, bool has_stamp);
void hot_kernel_state(struct handle handle, uint64_t gpu_ns);
void hot_kernel_stop(struct handle handle);

/* hot_proxy.c: the network's side. */
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

/* hot_record.c: what is finished. */
void record_push(struct comm_state *comm, struct op_record *op);
struct region_total *record_total_find(uint64_t key);
void record_detail(struct op_detail *detail);

/* plugin_setup.c */
struct comm_start {
	unsigned int interface;
	uint64_t hash;
	const char *name; /* may dangle: read with care */
	int nnodes, nranks, rank;
	void (*log)(int level, unsigned long flags, const char *file, int line, const char *fmt,
		    ...);
};
void setup_comm(void **context, int *mask, const struct comm_start *start);
void setup_comm_end(void *context);

#endif
