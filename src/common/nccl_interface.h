/*
 * What differs between the versions of NCCL's profiler interface: kernel events, sampling, blind
 * spots.
 *
 * Kernel events (KernelCh) give GPU times and cost a job more than everything else in the
 * interface. This is the one table of what is requested by default, release by release, and why:
 * the plugin follows it, `ringside verify` prints it, the simulator simulates it.
 * docs/SETTINGS.md explains it; a test compares the two.
 */
#ifndef NCCL_INTERFACE_H
#define NCCL_INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"

enum kernel_events {
	KERNEL_EVENTS_ABSENT = 0,  /* the release has none */
	KERNEL_EVENTS_OFF = 1,	   /* never requested */
	KERNEL_EVENTS_SAMPLED = 2, /* requested for a share of the collectives */
	KERNEL_EVENTS_ON = 3,	   /* requested for every operation */
};

struct kernel_policy {
	unsigned char first, last;   /* profiler interface versions, which imply the release */
	unsigned char by_default;    /* enum kernel_events */
	unsigned char no_allgatherv; /* the default where NCCL_ALLGATHERV_ENABLE=0 is set */
	bool can_sample;	     /* switching at run time keeps NCCL's counters right */
	const char *why;	     /* the reason for the default */
	const char *risk;	     /* what requesting all of them can do to a job */
};

/* NULL if there is no such interface version. */
const struct kernel_policy *kernel_policy_of(unsigned int interface);
/* "off", "sampled", "on" */
const char *kernel_events_name(enum kernel_events events);

/*
 * The state of sampling in a process, as stored in its region. The numbers are part of the format.
 */
enum sampling_state {
	SAMPLING_NONE = 0,     /* not sampled: off, always on, or an older recorder */
	SAMPLING_ACTIVE = 1,   /* windows open and close, or will */
	SAMPLING_ENDING = 2,   /* a Send or Recv came in an open window: closes with its group */
	SAMPLING_STUCK = 3,    /* a CUDA graph was captured in an open window: always on */
	SAMPLING_BY_GRAPH = 4, /* ended: a CUDA graph was captured */
	SAMPLING_BY_P2P = 5,   /* ended: Send or Recv was called */
	SAMPLING_BY_NVLS = 6,  /* ended: grouped collectives with NVLS */
	SAMPLING_BY_BROADCAST = 7, /* ended: NCCL 2.29 and later run Broadcast as AllGatherV */
	SAMPLING_BY_SHM = 8,	   /* ended: too little room in /dev/shm */
	/* CUDA events (0.3 and later), which use NONE, ACTIVE and these: why there are none. */
	SAMPLING_BY_CUDA = 9,	  /* ended: the driver answered with an error */
	SAMPLING_NO_DRIVER = 10,  /* no driver is loaded, or it lacks functions */
	SAMPLING_NO_CONTEXT = 11, /* no CUDA context was current in init, or too many are */
	SAMPLING_BY_MODE = 12,	  /* NCCL_LAUNCH_MODE=GROUP or CUDA_LAUNCH_BLOCKING=1 */
	SAMPLING_NO_THREAD = 13,  /* no thread could be started to read them */
	SAMPLING_STATES = 14,
};

/* A sentence for the user; "" for SAMPLING_NONE and unknown numbers. */
const char *sampling_state_text(uint64_t state);

/*
 * Which collectives are timed when sampling. The collectives of a communicator form blocks of
 * SAMPLE_BLOCK by number, which is the same on all ranks. The level of a block is derived from the
 * communicator's hash and the block's number: half of the blocks have level 0, a quarter level 1,
 * and so on. A rank that samples at level k times all blocks of level k and above. So a rank with a
 * smaller k times everything that the others time, and ranks need not agree on k to be comparable.
 */
enum { SAMPLE_BLOCK = 8, SAMPLE_LEVEL_MOST = 12 };

static inline uint64_t sample_block(uint64_t collective)
{
	return collective / SAMPLE_BLOCK;
}

static inline unsigned int sample_level(uint64_t comm_hash, uint64_t collective)
{
	uint64_t drawn = hash_word(comm_hash, sample_block(collective));

	return (unsigned int)__builtin_ctzll(drawn | UINT64_C(1) << SAMPLE_LEVEL_MOST);
}

/*
 * What NCCL does not show to any profiler plugin, release by release, so that nothing can be
 * recorded. docs/BLIND-SPOTS.md has the same list; a test compares them.
 */
struct op_blind_spot {
	const char *name; /* short identifier, for JSON */
	unsigned char
		first; /* first and last profiler interface version, which imply the release */
	unsigned char last;
	const char *sentence; /* for text output */
};

/* The index-th blind spot of this interface version; NULL past the last. Version 0: of any. */
const struct op_blind_spot *op_blind_spot(unsigned int interface, size_t index);

/* "2.28", "2.29-2.30"; "?" if there is no such version. */
const char *op_interface_releases(unsigned int interface);

/*
 * The newest interface that this release of NCCL asks for; `version` as ncclGetVersion() gives it: 22809 for 2.28.9. 0:
 * it has none.
 */
unsigned int op_interface_of_release(unsigned int version);

/* What is unknown without times from the GPU. */
const char *op_times_missed(void);

enum { OP_INTERFACES = 7 };

#endif
