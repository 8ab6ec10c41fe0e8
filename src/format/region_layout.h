/*
 * The region: one file in memory per process, written by the job, read by anyone with permission.
 *
 *	+--------------------+ 0
 *	| header             | identity, clock, location of the parts, counters
 *	+--------------------+ parts[REGION_INFO].offset ...
 *	| info               | "key=value" lines: identity and settings, written once
 *	| names              | interned names
 *	| comms              | communicators
 *	| live               | unfinished operations
 *	| proxies            | their network side: one slot per proxy operation and its open transfers
 *	| peers              | number of sends to and receives from each peer
 *	| totals             | counts and histograms, never reset
 *	| ring               | the latest finished operations
 *	| details            | mode full: the latest channels and transfers
 *	| links              | network transfers per peer: counts and times, never reset
 *	+--------------------+ total_bytes
 *
 * The writer never waits for readers. Nothing in here is a pointer. A reader copies first, then
 * checks, and trusts no number. Each 8-byte word is written as a whole; several words are
 * consistent only where a rule below says so. docs/FORMATS.md has the byte tables.
 *
 *	R1  magic is stored last, with release: a reader that sees it sees a complete header and info.
 *	R2  the words of a ring slot are visible before its sequence. While it is rewritten, its
 *	    sequence has RING_BUSY set. A reader copies the slot and checks the sequence again.
 *	R3  a slot of comms, live or proxies belongs to the generation in its word until that
 *	    generation changes.
 *	R4  a live slot that is retiring is either being filled (no number or no state yet), or its
 *	    record is being written to the ring, or, with open children, it was given up and recorded.
 *	R5  an operation is counted as issued before it is in a live slot, and as recorded before it
 *	    is in the ring; it leaves its live slot after it is in the ring.
 */
#ifndef REGION_LAYOUT_H
#define REGION_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"

#define REGION_MAGIC UINT64_C(0x314e4f4947455252) /* "RREGION1" */
/* From 1.5 on totals have only durations (op_is_duration()); before, network spans were added to them. */
enum { REGION_MAJOR = 1, REGION_MINOR = 6, REGION_MINOR_DURATIONS = 5 };
#define REGION_BYTE_ORDER UINT32_C(0x01020304)

enum region_part_index {
	REGION_INFO = 0,
	REGION_NAMES = 1,
	REGION_COMMS = 2,
	REGION_LIVE = 3,
	REGION_PROXIES = 4,
	REGION_PEERS = 5,
	REGION_TOTALS = 6,
	REGION_RING = 7,
	REGION_DETAILS = 8,
	REGION_LINKS = 9,
	REGION_PARTS = 16,
};

struct region_part {
	uint64_t offset; /* from the start of the region, a multiple of 64 */
	uint32_t count;	 /* slots */
	uint32_t stride; /* bytes from slot to slot, a multiple of 8 */
};

enum region_mode {
	REGION_MODE_OFF = 0,
	REGION_MODE_FLIGHT = 1,
	REGION_MODE_PROFILE = 2,
	REGION_MODE_TRACE = 3,
	REGION_MODE_FULL = 4,
};

/* Where the region is. The order is the order of the fallbacks. */
enum region_kind {
	REGION_KIND_SHM = 1,	   /* a file in the chosen directory, default /dev/shm */
	REGION_KIND_SHM_SMALL = 2, /* the same with a smaller ring, for lack of space */
	REGION_KIND_MEMFD =
		3, /* memory of the process, read through /proc/PID/fd; gone when it exits */
	REGION_KIND_PRIVATE =
		4, /* memory that no other process can read; only a trace file helps */
	REGION_KIND_OFFLINE = 5, /* never shared memory: written by a simulation */
};

struct region_header {
	uint64_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t byte_order;
	uint64_t header_bytes;
	uint64_t total_bytes;
	struct region_part parts[REGION_PARTS];

	uint64_t pid;		/* in its own namespace */
	uint64_t pid_namespace; /* inode of its pid namespace; 0: unknown */
	uint64_t start_ticks;	/* field 22 of /proc/PID/stat: identifies it with pid and boot id */
	char boot_id[40];
	uint32_t mode;	     /* enum region_mode */
	uint32_t kind;	     /* enum region_kind */
	uint32_t interface;  /* profiler interface version of the first communicator */
	uint32_t mask;	     /* requested events */
	uint64_t info_bytes; /* of text in REGION_INFO */
	struct clock_source clock;
	struct clock_anchor first_anchor;
	uint64_t lock_inode; /* the process holds a lock on the file with this inode; 0: none */
	uint64_t alive_ns;   /* recorder's clock: the last heartbeat; 0: there is none */

	_Alignas(CACHE_LINE) struct clock_anchor last_anchor;
	uint64_t ended_ns; /* recorder's clock: the process ended cleanly; 0: it did not */
	uint64_t drained;  /* trace modes: sequences up to here were written or counted as lost */
	uint64_t details_drained;
	uint64_t trace_bytes;
	uint64_t trace_records; /* operations in the trace file */

	_Alignas(CACHE_LINE) uint64_t lost[LOST_REASONS];
	_Alignas(CACHE_LINE) uint64_t odd[ODD_REASONS];
	_Alignas(CACHE_LINE) uint64_t ring_head;    /* sequence last taken */
	_Alignas(CACHE_LINE) uint64_t details_head; /* sequence last taken */
	_Alignas(CACHE_LINE) uint64_t comms_made;
	uint64_t live_cursor;
	uint64_t proxy_cursor;
	uint64_t totals_used;
	uint64_t names_used;

	/*
	 * Times from the GPU. The request is the only word that other processes write: serial << 32 |
	 * seconds during which to time every operation. The recorder polls it.
	 */
	_Alignas(CACHE_LINE) uint64_t kernel_request;
	uint64_t kernel_answer; /* the last request that was granted */
	uint64_t sampling;	/* enum sampling_state */
	uint64_t timing_error;	/* SAMPLING_BY_CUDA: the driver's error code */

	/* CUDA events. */
	_Alignas(CACHE_LINE) uint64_t timed_launches; /* events recorded around them */
	uint64_t untimed_launches;		      /* chosen, but no event was free */
	uint64_t recording_ns;			      /* in CUDA, on the launching threads */
	uint64_t timed_captures;   /* launches in CUDA graphs with events around them */
	uint64_t untimed_captures; /* chosen, but no event was free: recorded and never read */
	uint64_t closed_captures;  /* chosen, but events may not be allowed in their graph */
	/*
	 * Recorder's clock: when the GPU was last asked. An operation with OP_FLAG_CUDA_EVENT that was
	 * launched before and has no gpu_stop_ns was not over then; without active_ns the GPU had not
	 * even reached it.
	 */
	_Alignas(CACHE_LINE) uint64_t times_read_ns;
	uint64_t times_taken;	/* launches whose time reached their operations */
	uint64_t times_dropped; /* ... that were read too late, or were not plausible */
	uint64_t replays_read;	/* of launches in CUDA graphs: times that were read ... */
	uint64_t
		replays_dropped; /* ... for replays that NCCL showed and that were recorded before */
};

enum { REGION_HEADER_BYTES = 4096, REGION_INFO_BYTES = 8192 };
_Static_assert(sizeof(struct region_header) <= REGION_HEADER_BYTES, "header outgrew its page");
_Static_assert(offsetof(struct region_header, parts) == 32, "region_header.parts moved");
_Static_assert(offsetof(struct region_header, pid) == 288, "region_header.pid moved");

struct region_name {
	char text[32]; /* terminated; id = OP_NAME_INTERNED + index */
};

/* A slot's word: generation << 32 | what the part needs. Even generations are free. */
#define REGION_GENERATION(word) ((uint32_t)((word) >> 32))
static inline int region_slot_is_used(uint64_t word)
{
	return REGION_GENERATION(word) & 1;
}

/* A communicator that ended keeps its slot for readers until the slot is needed. */
#define COMM_ENDED UINT64_C(1)

struct region_comm {
	uint64_t word; /* generation << 32 | COMM_ENDED */
	uint64_t reserved[7];
	struct comm_info info;
	struct comm_counts counts; /* two cache lines */
	/* Bit c: GPU stamps of channel c drifted; the last 256 bits are for receives. */
	uint64_t untrusted_channels[8];
};

_Static_assert(offsetof(struct region_comm, counts) % 64 == 0, "region_comm.counts moved");
_Static_assert(sizeof(struct region_comm) == 512, "region_comm changed its size");

/*
 * word: generation << 32 | retiring << 31 | open children (kernel channels and proxy operations).
 */
#define LIVE_RETIRING UINT64_C(0x80000000)
#define LIVE_OPEN(word) ((uint32_t)((word)&0x7fffffff))

struct region_live {
	uint64_t word;
	uint64_t group;		/* private to the recorder: the group it was issued in */
	uint64_t started[4];	/* bit c: kernel channel c started */
	uint64_t stopped[4];	/* bit c: kernel channel c stopped */
	uint64_t last_start_ns; /* GPU's clock: the last channel to start */
	uint64_t first_stop_ns; /* GPU's clock: the first channel to stop */
	uint64_t task_index;	/* private to the recorder: tasks of its communicator before */
	uint64_t notes;		/* private to the recorder: enum live_note */
	uint64_t comm_slot;	/* index in REGION_COMMS */
	uint64_t group_first;	/* number of the first operation of its group on its communicator */
	struct op_record op;
};

_Static_assert(sizeof(struct region_live) == 384, "region_live changed its size");

enum proxy_flag {
	PROXY_IS_SEND = 1u << 0,
	PROXY_IS_FOREIGN = 1u << 1,  /* for another process: op_* have no meaning here */
	PROXY_IN_PROGRESS = 1u << 2, /* the proxy thread works on it; no longer queued */
	PROXY_IS_CHILD = 1u << 3, /* private to the recorder: its operation waits for it to stop */
	PROXY_IS_OTHERS =
		1u << 4, /* private to the recorder: reported by another rank's proxy thread */
};

/* NCCL has at most eight open transfers per proxy operation: slot = step % 8. */
enum { WINDOW_STEPS = 8 };

struct region_step {
	union {
		struct {
			uint32_t step_plus_1; /* 0: free */
			uint8_t state; /* enum abi_state: 8, 20, 9 sending; 10, 11, 12 receiving */
			uint8_t polls; /* how often a state was repeated, up to 255 */
			uint16_t reserved;
		};
		uint64_t head; /* all four */
	};
	uint64_t time_ns[3]; /* when each of the three states came; 0: not yet */
	uint64_t bytes;
};

struct region_proxy {
	uint64_t word; /* generation << 32 */
	union {
		struct {
			uint32_t live;		  /* index of its operation's live slot */
			uint32_t live_generation; /* 0: none */
			uint32_t comm;		  /* communicator's number; 0: unknown */
			int32_t peer;
			int32_t origin_pid;
			uint8_t channel;
			uint8_t flags; /* enum proxy_flag */
			uint16_t reserved;
			uint64_t number; /* of the operation on that communicator; 0: unknown */
			int32_t steps;	 /* expected; may be an upper bound */
			int32_t chunk_bytes;
			uint32_t posted; /* transfers posted */
			/*
			 * Filled in by readers: transfers done, plus open ones that were sent or
			 * have arrived.
			 */
			uint32_t transmitted;
			uint32_t done;
			uint32_t link; /* index of what it sends on; 0: not looked up yet */
		};
		uint64_t words[7]; /* the same as words, for the writer */
	};
	uint64_t start_ns;  /* queued */
	uint64_t active_ns; /* first transfer; 0: none */
	uint64_t since_ns;  /* last change */
	uint64_t bytes;
	uint64_t wait_ns[3];	      /* SEND_GPU, SEND_PEER, SEND_NET, or the three of RECV */
	uint64_t moved_before_plus_1; /* NCCL's total at its beginning, up to 2.26; 0: not seen */
	struct region_step open[WINDOW_STEPS]; /* transfers in flight */
};

_Static_assert(sizeof(struct region_step) == 40, "region_step changed its size");
_Static_assert(offsetof(struct region_proxy, open) == 128, "region_proxy.open moved");
_Static_assert(sizeof(struct region_proxy) == 448, "region_proxy changed its size");

/*
 * key: comm << 34 | is replay << 33 | is receive << 32 | peer + 1; 0: free, 1: was used and is
 * free.
 */
struct region_peer {
	uint64_t key;
	uint64_t count;
};

/*
 * key: comm (24 bits) | function | datatype | algorithm | protocol | size class (8 bits each). Size
 * class: 0: unknown, 1: 0 bytes, else 2 + floor(log2(bytes)).
 */
#define TOTALS_KEY(comm, function, datatype, algorithm, protocol, size_class)                   \
	((uint64_t)((comm)&0xffffff) << 40 | (uint64_t)(function) << 32 |                       \
	 (uint64_t)(datatype) << 24 | (uint64_t)(algorithm) << 16 | (uint64_t)(protocol) << 8 | \
	 (uint64_t)(size_class))

/*
 * Index 0 is "other": everything that found no room elsewhere; its key stays 0. In other slots key
 * 0 is free, and key 1 was used and is free. comm 0 has the totals of forgotten communicators.
 */
#define SLOT_FORGOTTEN UINT64_C(1)

struct region_total {
	uint64_t key;
	uint64_t count; /* finished operations, timed or not */
	uint64_t bytes; /* as far as known */
	/* With a duration of their own; these are in the histogram. Before 1.5 also network spans. */
	uint64_t timed;
	uint64_t sum_ns; /* of timed */
	uint64_t max_ns;
	uint64_t send_bytes;
	uint64_t recv_bytes;
	uint64_t wait_ns[OP_WAITS];
	uint64_t timed_bytes; /* of bytes: of timed */
	/*
	 * With OP_FLAG_SHARED_TIME: each has the time of a launch that executed others, too. Not in
	 * timed and what belongs to it: bytes of one operation by the time of several are no bandwidth.
	 */
	uint64_t shared;
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t shared_ns; /* sum of those times. Slots end before it up to minor version 4 */
	uint64_t reserved[7];
};

/* The slots of minor versions 0 to 4. */
enum { REGION_TOTAL_BYTES_LEAST = 2176 };
_Static_assert(offsetof(struct region_total, shared_ns) == REGION_TOTAL_BYTES_LEAST,
	       "region_total.shared_ns moved");
_Static_assert(sizeof(struct region_total) == 2240, "region_total changed its size");

/*
 * What proxy operations that have stopped moved to or from one peer over the network. The key is
 * that of a peer. Index 0 is "other": everything that found no room elsewhere, and forgotten
 * communicators; its key stays 0.
 */
#define REGION_LINK_KEY(comm, is_receive, peer) \
	((uint64_t)(comm) << 34 | (uint64_t)(is_receive) << 32 | ((uint32_t)(peer) + 1))

struct region_link {
	uint64_t key;
	uint64_t proxies;    /* proxy operations */
	uint64_t steps;	     /* transfers done */
	uint64_t bytes;	     /* of those transfers */
	uint64_t wait_ns[3]; /* SEND_GPU, SEND_PEER, SEND_NET, or the three of RECV */
	/*
	 * Of sends: how long at least one of its transfers was on the wire. 0: unknown, as before minor version 6 and of
	 * receives. Of index 0 it says nothing.
	 */
	uint64_t wire_ns;
};

/* Top bit of region_link.wire_ns: threads whose transfers are not in it have added bytes. */
#define LINK_WIRE_PARTIAL (UINT64_C(1) << 63)

_Static_assert(sizeof(struct region_link) == 64, "region_link changed its size");

/* Top bit of op_record.sequence and op_detail.sequence in a ring: the slot is being written. */
#define RING_BUSY (UINT64_C(1) << 63)

#endif
