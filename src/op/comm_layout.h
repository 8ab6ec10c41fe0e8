/* A communicator as the recorder knows it: the same bytes in the region and in trace files. */
#ifndef COMM_LAYOUT_H
#define COMM_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum comm_flag {
	COMM_FLAG_NAME_CUT = 1u << 0,  /* the name was longer than we keep */
	COMM_FLAG_NAME_LOST = 1u << 1, /* NCCL's pointer to the name was not readable */
	COMM_FLAG_FINALIZED = 1u << 2,
	COMM_FLAG_SEES_KERNELS = 1u << 3, /* at least one kernel channel event came */
	COMM_FLAG_SEES_PROXIES = 1u << 4, /* at least one proxy event came */
};

struct comm_info {
	uint32_t id;		   /* the process's own number, from 1, never used again */
	uint32_t interface;	   /* profiler interface version, 1..7: tells NCCL's release */
	uint64_t hash;		   /* NCCL's: equal on all ranks; 0 until known (v1..v3) */
	int32_t rank;		   /* -1 until known (v1..v3) */
	int32_t nranks;		   /* 0 unknown (v1..v3) */
	int32_t nnodes;		   /* 0 unknown (v1..v3) */
	uint32_t flags;		   /* enum comm_flag */
	uint64_t init_ns;	   /* recorder's clock */
	uint64_t finalize_ns;	   /* 0 while it lives */
	int32_t gpu;		   /* CUDA device number in the process, -1 unknown */
	uint32_t mask;		   /* events asked for */
	int64_t gpu_offset_ns;	   /* GPU's clock minus recorder's: the best lower bound seen */
	uint64_t gpu_offset_at_ns; /* when it was seen; 0: never */
	char name[96];
	char gpu_uuid[48]; /* "GPU-...", "" unknown */
	char gpu_bus[24];  /* "0000:1b:00.0", "" unknown */
	uint64_t reserved[2];
};

_Static_assert(sizeof(struct comm_info) == 256, "comm_info changed its size");

/* Who calls writes the first eight words, who sees operations end the others: a cache line each. */
struct comm_counts {
	uint64_t issued;      /* operations NCCL showed, captures and replays included */
	uint64_t collectives; /* last match number given to a collective */
	uint64_t replays;     /* last match number given to a replayed collective */
	uint64_t signature;   /* rolling, over collectives */
	uint64_t last_issue_ns;
	uint64_t captured; /* of recorded: state captured */
	uint64_t missed;   /* collectives that NCCL made and did not show: see LOST_NOT_SHOWN */
	uint64_t reserved;
	uint64_t recorded;  /* records finished */
	uint64_t timed;	    /* of these, with a duration from kernel_gpu or proxy */
	uint64_t replayed;  /* of recorded: replays */
	uint64_t abandoned; /* of recorded: state abandoned */
	uint64_t untracked; /* of recorded: no live slot was free */
	uint64_t untrusted; /* of recorded: GPU stamps not believed */
	uint64_t last_done_ns;
	uint64_t last_done_number; /* operations with a lower number are over */
};

_Static_assert(offsetof(struct comm_counts, recorded) == 64, "comm_counts.recorded moved");
_Static_assert(sizeof(struct comm_counts) == 128, "comm_counts changed its size");

/* Why an operation has no record, or a record has less than it could: see op_lost_is_whole(). */
enum lost_reason {
	LOST_NO_COMM = 0,	 /* more communicators alive than the region holds */
	LOST_RING_BUSY = 1,	 /* a writer was overtaken by a whole lap of the ring */
	LOST_RING_OVERRUN = 2,	 /* overwritten before the trace thread came by */
	LOST_QUOTA = 3,		 /* the trace file reached its quota */
	LOST_NO_SPACE = 4,	 /* the disk was full */
	LOST_WRITE_ERROR = 5,	 /* the trace file could not be written */
	LOST_OFF = 6,		 /* shown while recording was switched off */
	LOST_DETAIL_OVERRUN = 7, /* details (mode full) overwritten before the thread came by */
	LOST_DETAIL_QUOTA = 8,	 /* details not written: quota, disk full or write error */
	LOST_PROXY_SLOT = 9,	 /* progress of a proxy operation not followed: table full */
	LOST_TOTALS = 10,	 /* counted under "other": table of totals full */
	LOST_LATE_CHILD = 11,	 /* a kernel or proxy event came after its operation was retired */
	LOST_INSPECTOR = 12, /* recorded, and not in NCCL Inspector's file: see docs/INSPECTOR.md */
	LOST_NOT_SHOWN = 13, /* collectives that NCCL counted and did not show: events were off */
	LOST_REASONS = 16,
};

/* What NCCL (or a tester) handed us that we do not follow. Counted, ignored. */
enum odd_reason {
	ODD_NULL_HANDLE = 0,
	ODD_STALE_HANDLE = 1,	/* ours, but its slot has a new owner */
	ODD_FOREIGN_HANDLE = 2, /* never ours */
	ODD_UNKNOWN_CONTEXT = 3,
	ODD_NULL_DESCRIPTOR = 4,
	ODD_UNKNOWN_EVENT = 5,
	ODD_UNKNOWN_STATE = 6,
	ODD_REPEATED_STOP = 7,
	ODD_REPEATED_START = 8,	  /* the flood of receive steps */
	ODD_REPEATED_STATE = 9,	  /* the flood of peer waits */
	ODD_FOREIGN_PROCESS = 10, /* a proxy operation of another process (PXN) */
	ODD_CHANNEL = 11,	  /* channel stamps not believed: (communicator, channel) pairs */
	ODD_REASONS = 16,
};

#endif
