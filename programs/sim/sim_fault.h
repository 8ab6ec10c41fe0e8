/* What can go wrong in a simulated job, from a time on. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum sim_fault_kind {
	SIM_FAULT_NONE = 0,
	SIM_SLOW_RANK = 1,	  /* computes slower: arrives late */
	SIM_SLOW_LINK = 2,	  /* one direction between two ranks */
	SIM_DEGRADED_NETWORK = 3, /* all links between nodes */
	SIM_SLOW_NVLINK = 4,	  /* links within a node */
	SIM_NEVER_ARRIVES = 5,	  /* makes no more calls; the others wait inside theirs */
	SIM_STUCK_SEND = 6,	  /* a send that the network never completes */
	SIM_MISMATCH = 7,	  /* one call differs from what the other ranks call */
	SIM_DEADLOCK = 8,	  /* two communicators used in the opposite order */
	SIM_GPU_STUCK = 9,	  /* a GPU does not do its part */
	SIM_STOP = 10,		  /* SIGSTOP */
	SIM_KILL = 11,		  /* SIGKILL */
	SIM_FAULT_KINDS = 12,
};

/* SIM_MISMATCH: what differs. */
enum sim_mismatch {
	SIM_MISMATCH_COUNT = 0,
	SIM_MISMATCH_FUNCTION = 1,
	SIM_MISMATCH_DATATYPE = 2,
	SIM_MISMATCH_ROOT = 3,
	SIM_MISMATCH_ORDER = 4, /* it makes two calls the other way round */
	SIM_MISMATCHES = 5,
};

/* SIM_GPU_STUCK: how far a call gets. */
enum sim_gpu_stuck {
	SIM_NOT_STARTED = 0,   /* its kernel is enqueued behind something that does not end */
	SIM_NOT_LAUNCHED = 1,  /* the call was made, and does not come back */
	SIM_NOT_PRODUCING = 2, /* its kernel runs, and neither fills nor empties a buffer */
	SIM_GPU_STUCKS = 3,
};

struct sim_fault {
	enum sim_fault_kind kind;
	int rank;
	int from;
	int to;	     /* SIM_STUCK_SEND: -1 any */
	int peer;    /* SIM_DEADLOCK */
	int node;    /* SIM_SLOW_NVLINK: -1 all */
	int link;    /* SIM_STUCK_SEND: n-th from 1, 0 all */
	int channel; /* SIM_STUCK_SEND: -1 all */
	uint64_t factor_permille;
	int what;	   /* enum sim_mismatch, enum sim_gpu_stuck */
	int role;	   /* enum sim_role of the communicator, -1: any */
	uint64_t at_ns;	   /* of the job's time */
	uint64_t until_ns; /* UINT64_MAX: for good */
	bool has_at;	   /* said, not taken from --at */
};

enum { SIM_FAULTS_MAX = 16 };

/* What --list says: name, keys and what happens. NULL past the table. */
struct sim_fault_page {
	const char *name;
	const char *keys; /* "rank=R[,factor=F]" */
	const char *about;
};
const struct sim_fault_page *sim_fault_page(enum sim_fault_kind kind);

/* "KIND" or "KIND:key=value,...". On failure `why` has one line that says what is allowed. */
enum status sim_fault_parse(struct sim_fault *fault, const char *text, char *why, size_t size);

/* Does it end the job: does everybody wait for ever in the end? */
bool sim_fault_hangs(const struct sim_fault *fault);

static inline bool sim_fault_is_on(const struct sim_fault *fault, uint64_t ns)
{
	return ns >= fault->at_ns && ns < fault->until_ns;
}

#endif
