/*
 * The record of one operation: the same 256 bytes in a live slot, in the region's ring and, word by
 * word and compressed, in a trace file. Numbers are little-endian. New fields take reserved words;
 * to a reader 0 there means "unknown".
 */
#ifndef OP_LAYOUT_H
#define OP_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum op_function {
	OP_FUNCTION_UNKNOWN = 0,
	OP_ALL_REDUCE = 1,
	OP_ALL_GATHER = 2,
	OP_REDUCE_SCATTER = 3,
	OP_BROADCAST = 4,
	OP_REDUCE = 5,
	OP_SEND = 6,
	OP_RECV = 7,
	OP_SEND_RECV = 8,
	OP_ALL_TO_ALL = 9,
	OP_GATHER = 10,
	OP_SCATTER = 11,
	OP_PUT_SIGNAL = 12,
	OP_SIGNAL = 13,
	OP_WAIT_SIGNAL = 14,
	OP_FUNCTION_INVALID = 15, /* NCCL itself reports "Invalid" (for AllGatherV) */
	OP_FUNCTIONS = 16,
};

enum op_datatype {
	OP_DATATYPE_UNKNOWN = 0, /* but NCCL's "Unknown" is uint8: see hot_datatype() */
	OP_INT8 = 1,
	OP_UINT8 = 2,
	OP_INT32 = 3,
	OP_UINT32 = 4,
	OP_INT64 = 5,
	OP_UINT64 = 6,
	OP_FLOAT16 = 7,
	OP_FLOAT32 = 8,
	OP_FLOAT64 = 9,
	OP_BFLOAT16 = 10,
	OP_FLOAT8_E4M3 = 11,
	OP_FLOAT8_E5M2 = 12,
	OP_DATATYPES = 13,
};

enum op_algorithm {
	OP_ALGORITHM_UNKNOWN = 0,
	OP_TREE = 1,
	OP_RING = 2,
	OP_COLLNET_DIRECT = 3,
	OP_COLLNET_CHAIN = 4,
	OP_NVLS = 5,
	OP_NVLS_TREE = 6,
	OP_PAT = 7,
	OP_COPY_ENGINE = 8, /* ours: from a CeColl event */
	OP_SYMMETRIC = 9,   /* ours: v7 reports that a symmetric kernel ran */
	OP_ALGORITHMS = 10,
};

enum op_protocol {
	OP_PROTOCOL_UNKNOWN = 0,
	OP_LL = 1,
	OP_LL128 = 2,
	OP_SIMPLE = 3,
	OP_PROTOCOLS = 4,
};

/* Names that are in none of these tables are interned once per process, from this number on. */
enum { OP_NAME_INTERNED = 128, OP_NAMES_INTERNED_MAX = 64 };

enum op_state {
	OP_STATE_NONE = 0,
	OP_ISSUED = 1,	  /* the API call was made */
	OP_LAUNCHED = 2,  /* its kernel was enqueued; its end was not seen */
	OP_RUNNING = 3,	  /* a kernel channel or proxy operation has started */
	OP_DONE = 4,	  /* all that started has stopped */
	OP_ABANDONED = 5, /* its communicator ended while parts were open */
	OP_CAPTURED = 6,  /* put into a CUDA graph; replays have their own records */
	OP_STATES = 7,
};

/* What is known of its time. Only the first is a duration: see op_is_duration(). */
enum op_time_source {
	OP_TIME_NONE = 0, /* the end was not seen */
	/*
	 * On the GPU: last stop minus first start over all kernel channels, on the GPU's clock. With
	 * OP_FLAG_CUDA_EVENT between two CUDA events around the launch, on the recorder's clock.
	 */
	OP_TIME_KERNEL_GPU = 1,
	/* A span: first to last network activity, host clock. It begins when the host posts, often long before the GPU. */
	OP_TIME_PROXY = 2,
	OP_TIME_HOST = 3, /* issue to the first proof that it was over: an upper bound */
	OP_TIME_SOURCES = 4,
};

enum op_flag {
	OP_FLAG_REPLAY =
		1u << 0, /* replay of a CUDA graph; captured_number says of which operation */
	OP_FLAG_API_ONLY = 1u << 1,	  /* NCCL showed the call but not its execution */
	OP_FLAG_COPY_ENGINE = 1u << 2,	  /* executed by copy engines: end not visible */
	OP_FLAG_SELF = 1u << 3,		  /* send to or receive from this rank itself */
	OP_FLAG_UNTRACKED = 1u << 4,	  /* no live slot was free: recorded but not tracked */
	OP_FLAG_KERNELS_ASKED = 1u << 5,  /* before 0.3: one of a share with kernel events */
	OP_FLAG_AFTER_GAP = 1u << 6,	  /* NCCL did not show the calls right before this one */
	OP_FLAG_NOT_SAMPLED = 1u << 7,	  /* a share of the operations is timed, not this one */
	OP_FLAG_STAMP_ZERO = 1u << 8,	  /* a GPU stamp was 0 */
	OP_FLAG_STAMP_REVERSED = 1u << 9, /* a channel stopped before it started */
	OP_FLAG_STAMP_STALE = 1u << 10,	  /* a start from before the launch: counters drifted */
	OP_FLAG_STAMP_OVERRUN = 1u << 11, /* NCCL's ring of 64 stamps may have been overwritten */
	OP_FLAG_STAMP_CHANNEL = 1u << 12, /* on a channel that drifted earlier */
	OP_FLAG_CHANNELS_MISSING = 1u << 13, /* fewer kernel channels than announced: lost start */
	OP_FLAG_FOREIGN_STOP =
		1u << 14,	       /* a channel stopped twice: the stop belongs to other work */
	OP_FLAG_CUDA_EVENT = 1u << 15, /* CUDA events were recorded around its launch */
	OP_FLAG_SHARED_TIME =
		1u << 16, /* its launch executed other operations, too: one time for all */
	/*
	 * Set by readers and in snapshots, of operations in flight with OP_FLAG_CUDA_EVENT: the GPU was asked
	 * a second or more after the launch and had not passed the event after it. Without active_ns it had
	 * not reached the event before it, either.
	 */
	OP_FLAG_SEEN_OPEN = 1u << 17,
	/*
	 * A replay that NCCL did not show: read from events in the CUDA graph. More replays may have
	 * happened between two readings, so their number is a lower bound.
	 */
	OP_FLAG_REPLAY_READ = 1u << 18,
	/* CUDA events: its place in time may be off by more than a millisecond. */
	OP_FLAG_PLACE_ROUGH = 1u << 19,
	/* Set by readers, of records made from another tool's log: its time is what that tool measured. */
	OP_FLAG_TOOL_TIME = 1u << 20,
};

/* If any of these is set, the GPU stamps of the operation are not used as a time. */
enum {
	OP_STAMPS_UNTRUSTED = OP_FLAG_STAMP_ZERO | OP_FLAG_STAMP_REVERSED | OP_FLAG_STAMP_STALE |
			      OP_FLAG_STAMP_OVERRUN | OP_FLAG_STAMP_CHANNEL,
};

/* What a transfer waits for: the first three while sending, the others while receiving. */
enum op_wait {
	OP_WAIT_SEND_GPU = 0,	/* for the local GPU to produce */
	OP_WAIT_SEND_PEER = 1,	/* for the peer to be ready */
	OP_WAIT_SEND_NET = 2,	/* for the network to complete */
	OP_WAIT_RECV_NET = 3,	/* for data to arrive */
	OP_WAIT_RECV_FLUSH = 4, /* for the flush to GPU memory */
	OP_WAIT_RECV_GPU = 5,	/* for the local GPU to consume */
	OP_WAITS = 6,
};

#define OP_BYTES_UNKNOWN UINT64_MAX
enum { OP_NOBODY = -1 };

struct op_record {
	uint64_t sequence;  /* from 1, in the order in which this process finished its records */
	uint32_t comm;	    /* the communicator's number in this process, from 1 */
	uint8_t function;   /* enum op_function, or interned */
	uint8_t datatype;   /* enum op_datatype, or interned */
	uint8_t algorithm;  /* enum op_algorithm, or interned */
	uint8_t protocol;   /* enum op_protocol, or interned */
	uint64_t number;    /* from 1: this rank's n-th operation on it, including replays */
	uint64_t match;	    /* from 1, 0: unknown; see "Joining ranks" in docs/ARCHITECTURE.md */
	uint64_t signature; /* over all collectives on this communicator up to this one */
	uint64_t count;	    /* elements as the user gave them, else as NCCL reports them */
	uint64_t bytes;	    /* of the message as nccl-tests counts it, or OP_BYTES_UNKNOWN */
	uint64_t nccl_sequence;
	uint64_t user_tag;
	uint64_t stream;
	int32_t root;	     /* or OP_NOBODY */
	int32_t peer;	     /* or OP_NOBODY */
	uint32_t flags;	     /* enum op_flag */
	uint8_t state;	     /* enum op_state */
	uint8_t time_source; /* enum op_time_source */
	uint8_t channels;    /* as NCCL announced: may be garbage */
	uint8_t warps;
	uint64_t issue_ns;	  /* recorder's clock, like the next four; 0: unknown */
	uint64_t launch_ns;	  /* kernel launch returned */
	uint64_t task_ns;	  /* Coll or P2p event */
	uint64_t active_ns;	  /* first kernel channel or proxy activity seen */
	uint64_t done_ns;	  /* last stop seen */
	uint64_t gpu_start_ns;	  /* GPU's clock: first start over all channels; 0: unknown */
	uint64_t gpu_stop_ns;	  /* GPU's clock: last stop over all channels; 0: unknown */
	uint32_t start_spread_ns; /* between the first and the last channel to start */
	uint32_t stop_spread_ns;  /* between the first and the last channel to stop */
	uint16_t kernels_started;
	uint16_t kernels_stopped;
	uint16_t proxies_started;
	uint16_t proxies_stopped;
	uint64_t captured_number; /* replays: number of the captured operation */
	uint64_t send_bytes;	  /* what the proxy saw being sent */
	uint64_t recv_bytes;
	uint64_t wait_ns[OP_WAITS]; /* total over all transfers */
	uint32_t send_steps;
	uint32_t recv_steps;
	uint64_t reserved;
};

enum { OP_RECORD_BYTES = 256, OP_RECORD_WORDS = OP_RECORD_BYTES / 8 };

#define OP_AT(field, offset)                                                                      \
	_Static_assert(offsetof(struct op_record, field) == (offset), "op_record." #field " move" \
								      "d")
OP_AT(comm, 8);
OP_AT(function, 12);
OP_AT(number, 16);
OP_AT(match, 24);
OP_AT(signature, 32);
OP_AT(count, 40);
OP_AT(bytes, 48);
OP_AT(nccl_sequence, 56);
OP_AT(user_tag, 64);
OP_AT(stream, 72);
OP_AT(root, 80);
OP_AT(peer, 84);
OP_AT(flags, 88);
OP_AT(state, 92);
OP_AT(warps, 95);
OP_AT(issue_ns, 96);
OP_AT(done_ns, 128);
OP_AT(gpu_start_ns, 136);
OP_AT(gpu_stop_ns, 144);
OP_AT(start_spread_ns, 152);
OP_AT(kernels_started, 160);
OP_AT(captured_number, 168);
OP_AT(send_bytes, 176);
OP_AT(wait_ns, 192);
OP_AT(send_steps, 240);
OP_AT(reserved, 248);
_Static_assert(sizeof(struct op_record) == OP_RECORD_BYTES, "op_record changed its size");

/* Mode `full`: what one channel, proxy operation or transfer did. */
enum op_detail_kind {
	OP_DETAIL_KERNEL = 1, /* time: GPU start, GPU stop, seen start, seen stop */
	OP_DETAIL_PROXY = 2,  /* time: queued, first transfer, 0, stopped */
	OP_DETAIL_STEP = 3,   /* time: posted, ready or arrived, sent or flushed, done */
};

enum op_detail_flag {
	OP_DETAIL_IS_SEND = 1u << 0,
	OP_DETAIL_IS_FOREIGN = 1u << 1, /* on behalf of another process */
	/* In snapshots. KERNEL: stopped, times unknown; STEP: it and all before it are done. */
	OP_DETAIL_IS_OVER = 1u << 2,
	/* In snapshots, STEP: NCCL's number of its state; 0: the last stamp gives it. */
	OP_DETAIL_STATE = 0xff00,
};

struct op_detail {
	uint64_t sequence;
	uint32_t comm; /* 0: of another process */
	uint8_t kind;
	uint8_t channel;
	uint16_t flags;
	uint64_t number; /* of the operation on that communicator; 0: unknown */
	int32_t peer;
	int32_t step; /* KERNEL: 0; PROXY: steps expected; STEP: which */
	uint64_t time_ns[4];
	uint64_t bytes;
	uint64_t origin_pid;
};

enum { OP_DETAIL_BYTES = 80, OP_DETAIL_WORDS = OP_DETAIL_BYTES / 8 };
_Static_assert(sizeof(struct op_detail) == OP_DETAIL_BYTES, "op_detail changed its size");

/* A communicator as the recorder knows it: the same bytes in the region and in trace files. */

enum comm_flag {
	COMM_FLAG_NAME_CUT = 1u << 0,  /* the name was longer than the field */
	COMM_FLAG_NAME_LOST = 1u << 1, /* NCCL's pointer to the name was not readable */
	COMM_FLAG_FINALIZED = 1u << 2,
	COMM_FLAG_SEES_KERNELS = 1u << 3, /* at least one kernel channel event came */
	COMM_FLAG_SEES_PROXIES = 1u << 4, /* at least one proxy event came */
};

struct comm_info {
	uint32_t id;		   /* its number in this process, from 1, never reused */
	uint32_t interface;	   /* profiler interface version, 1..7: implies NCCL's release */
	uint64_t hash;		   /* NCCL's: the same on all ranks; 0 until known (v1..v3) */
	int32_t rank;		   /* -1 until known (v1..v3) */
	int32_t nranks;		   /* 0: unknown (v1..v3) */
	int32_t nnodes;		   /* 0: unknown (v1..v3) */
	uint32_t flags;		   /* enum comm_flag */
	uint64_t init_ns;	   /* recorder's clock */
	uint64_t finalize_ns;	   /* 0 while it is alive */
	int32_t gpu;		   /* CUDA device number in the process; -1: unknown */
	uint32_t mask;		   /* requested events */
	int64_t gpu_offset_ns;	   /* GPU's clock minus recorder's: the best lower bound seen */
	uint64_t gpu_offset_at_ns; /* when it was seen; 0: never */
	char name[96];
	char gpu_uuid[48]; /* "GPU-..."; "": unknown */
	char gpu_bus[24];  /* "0000:1b:00.0"; "": unknown */
	uint64_t
		place_error_ns; /* CUDA events: how far their place in time may be off, without OP_FLAG_PLACE_ROUGH */
	uint64_t reserved;
};

_Static_assert(sizeof(struct comm_info) == 256, "comm_info changed its size");

/*
 * The thread that calls writes the first eight words, the thread that sees operations end the
 * others: each has its own cache line.
 */
struct comm_counts {
	uint64_t issued;      /* operations NCCL showed, captures and replays included */
	uint64_t collectives; /* last match number given to a collective */
	uint64_t replays;     /* last match number given to a replayed collective */
	uint64_t signature;   /* rolling, over collectives */
	uint64_t last_issue_ns;
	uint64_t captured; /* of recorded: state captured */
	uint64_t missed;   /* collectives that NCCL ran but did not show: see LOST_NOT_SHOWN */
	uint64_t reserved;
	uint64_t recorded; /* finished records */
	uint64_t
		timed; /* of recorded: with a duration; before region 1.5 also with a network span */
	uint64_t replayed;  /* of recorded: replays */
	uint64_t abandoned; /* of recorded: state abandoned */
	uint64_t untracked; /* of recorded: no live slot was free */
	uint64_t untrusted; /* of recorded: GPU stamps rejected */
	uint64_t last_done_ns;
	uint64_t last_done_number; /* operations with a lower number are over */
};

_Static_assert(offsetof(struct comm_counts, recorded) == 64, "comm_counts.recorded moved");
_Static_assert(sizeof(struct comm_counts) == 128, "comm_counts changed its size");

/* Why an operation has no record, or a record lacks something: see op_lost_is_whole(). */
enum lost_reason {
	LOST_NO_COMM = 0,	 /* more communicators alive than the region has slots */
	LOST_RING_BUSY = 1,	 /* a writer was overtaken by a whole lap of the ring */
	LOST_RING_OVERRUN = 2,	 /* overwritten before the trace thread read it */
	LOST_QUOTA = 3,		 /* the trace file reached its quota */
	LOST_NO_SPACE = 4,	 /* the disk was full */
	LOST_WRITE_ERROR = 5,	 /* the trace file could not be written */
	LOST_OFF = 6,		 /* reported by NCCL while recording was off */
	LOST_DETAIL_OVERRUN = 7, /* details (mode full) overwritten before the thread read them */
	LOST_DETAIL_QUOTA = 8,	 /* details not written: quota, disk full or write error */
	LOST_PROXY_SLOT = 9,	 /* a proxy operation not tracked: table full */
	LOST_TOTALS = 10,	 /* counted under "other": table of totals full */
	LOST_LATE_CHILD = 11,	 /* a kernel or proxy event came after its operation was retired */
	LOST_INSPECTOR = 12, /* recorded, but not in NCCL Inspector's file: see docs/IMPORT.md */
	LOST_NOT_SHOWN = 13, /* collectives that NCCL counted but did not show: events were off */
	LOST_REASONS = 16,
};

/* Input from NCCL (or a test) that is not expected. Counted and otherwise ignored. */
enum odd_reason {
	ODD_NULL_HANDLE = 0,
	ODD_STALE_HANDLE = 1,	/* ours, but its slot has a new owner */
	ODD_FOREIGN_HANDLE = 2, /* never ours */
	ODD_UNKNOWN_CONTEXT = 3,
	ODD_NULL_DESCRIPTOR = 4,
	ODD_UNKNOWN_EVENT = 5,
	ODD_UNKNOWN_STATE = 6,
	ODD_REPEATED_STOP = 7,
	ODD_REPEATED_START = 8,	  /* repeated receive steps, a flood */
	ODD_REPEATED_STATE = 9,	  /* repeated peer waits, a flood */
	ODD_FOREIGN_PROCESS = 10, /* a proxy operation of another process (PXN) */
	ODD_CHANNEL = 11,	  /* channel stamps rejected: (communicator, channel) pairs */
	ODD_REASONS = 16,
};

#endif
