/*
 * What differs between the versions of NCCL's profiler interface: kernel events and blind spots; and
 * why a process is not timed.
 *
 * Kernel events (KernelCh) give GPU times and cost a job more than everything else in the
 * interface. This is the one table of what is requested by default, release by release, and why:
 * the plugin follows it, `ringside verify` prints it, the simulator simulates it.
 * docs/SETTINGS.md explains it; a test compares the two.
 */
#ifndef NCCL_INTERFACE_H
#define NCCL_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

enum kernel_events {
	KERNEL_EVENTS_ABSENT = 0, /* the release has none */
	KERNEL_EVENTS_OFF = 1,	  /* never requested */
	KERNEL_EVENTS_ON = 2,	  /* requested for every operation */
};

struct kernel_policy {
	unsigned char first, last; /* profiler interface versions, which imply the release */
	unsigned char by_default;  /* enum kernel_events */
	const char *why;	   /* the reason for the default */
	const char *risk;	   /* what requesting all of them can do to a job */
};

/* NULL if there is no such interface version. */
const struct kernel_policy *kernel_policy_of(unsigned int interface);
/* "off", "on" */
const char *kernel_events_name(enum kernel_events events);

/*
 * Whether and how a process is timed, as stored in its region. The numbers are part of the format.
 * Recorders before 0.3 asked NCCL for kernel events in windows; 2 to 8 are theirs.
 */
enum sampling_state {
	SAMPLING_NONE = 0,     /* not sampled: off, kernel events for all, or an older recorder */
	SAMPLING_ACTIVE = 1,   /* launches are timed, or windows open and close */
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
