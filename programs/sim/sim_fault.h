/* What can go wrong in a simulated job, from a time on. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum sim_fault_kind {
	SIM_FAULT_NONE = 0,
	SIM_SLOW_RANK = 1,	  /* computes slower: arrives late */
	SIM_SLOW_LINK = 2,	  /* one direction between two ranks */
	SIM_DEGRADED_NETWORK = 3, /* all links between nodes */
	SIM_NEVER_ARRIVES = 4,	  /* makes no more calls; the others wait inside theirs */
	SIM_STUCK_SEND = 5,	  /* a send that the network never completes */
	SIM_MISMATCH = 6,	  /* one call differs from what the other ranks call */
	SIM_KILL = 7,		  /* SIGKILL */
	SIM_FAULT_KINDS = 8,
};

/* SIM_MISMATCH: what differs. */
enum sim_mismatch { SIM_MISMATCH_COUNT = 0, SIM_MISMATCH_FUNCTION = 1 };

struct sim_fault {
	enum sim_fault_kind kind;
	int rank;
	int from, to;
	uint64_t factor_permille;
	enum sim_mismatch what;
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
