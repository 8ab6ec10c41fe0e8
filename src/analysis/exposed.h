/*
 * Exposed communication: time in which a rank's GPU ran a kernel of NCCL and no other kernel, so the job waited for it.
 * docs/STATISTICS.md has the definition and its bounds.
 *
 * What ran on the GPU is known only from a profiler of the program (torch.profiler, through CUPTI). It is kept here per
 * rank, on the common time of all ranks:
 *
 *	exposed_add_compute(&activity, start_ns, end_ns);           every kernel that is not NCCL's
 *	exposed_add_comm(&activity, called_ns, start_ns, end_ns);   NCCL's, and when the host launched it
 *	exposed_finish(&activity);
 *	time = exposed_measure(&activity, from_ns, to_ns);
 *
 * Adding returns false if there is no memory. Nothing may be added after exposed_finish().
 */
#ifndef EXPOSED_H
#define EXPOSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

struct exposed_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

struct exposed_kernel {
	uint64_t called_ns;
	struct exposed_span span;
};

struct exposed_activity {
	struct exposed_span *compute; /* after exposed_finish(): disjoint, ascending */
	size_t compute_count;
	struct exposed_kernel *comms; /* after exposed_finish(): by called_ns */
	size_t comm_count;
	/* Complete between these: what the host called outside of them is not in the profile. 0: nothing. */
	uint64_t first_ns;
	uint64_t last_ns;
};

bool exposed_add_compute(struct exposed_activity *activity, uint64_t start_ns, uint64_t end_ns);
bool exposed_add_comm(struct exposed_activity *activity, uint64_t called_ns, uint64_t start_ns,
		      uint64_t end_ns);
void exposed_finish(struct exposed_activity *activity);
void exposed_release(struct exposed_activity *activity);

struct exposed_time {
	uint64_t kernels;
	uint64_t comm_ns;    /* union of the kernels */
	uint64_t exposed_ns; /* of it: no other kernel ran */
};

/* The kernels of NCCL that were launched in [from, to), whenever they ran. ERR_NO_SPACE. */
enum status exposed_measure(const struct exposed_activity *activity, uint64_t from_ns,
			    uint64_t to_ns, struct exposed_time *time);

#endif
