/*
 * Asking for GPU times when they are missed (--kernel-on-demand). Where live_doubt() has a doubt about a
 * communicator, the processes of its ranks on this machine are asked to time every operation for a while, as
 * `ringside record --kernel` does; each recorder decides whether that is safe. What was asked and answered is in the
 * log and counted.
 *
 * A job is asked at most once in AGENT_KERNEL_PAUSE_NS, and not again before the last request was answered: it
 * stands in the region until the process goes on.
 */
#ifndef AGENT_KERNEL_H
#define AGENT_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor/live.h"
#include "output/metrics.h"
#include "recording/recording.h"
#include "recording/watch.h"

#define AGENT_KERNEL_PAUSE_NS UINT64_C(600000000000)
enum { AGENT_KERNEL_JOBS_MAX = 64 }; /* in one pause; others are not asked */

struct agent_kernel_asked {
	uint64_t device, inode; /* of its region */
	struct recording_ask ask;
	bool is_open; /* its answer was not told yet */
};

struct agent_kernel_job {
	char name[128];
	uint32_t user;
	uint64_t asked_ns; /* monotonic */
	struct agent_kernel_asked *asked;
	size_t count, open;
};

struct agent_kernel {
	uint32_t seconds; /* 0: never ask */
	struct agent_kernel_job jobs[AGENT_KERNEL_JOBS_MAX];
	size_t count;
	uint64_t totals[METRICS_KERNEL_EVENTS];
};

void agent_kernel_release(struct agent_kernel *kernel);

/* After a look. */
void agent_kernel_look(struct agent_kernel *kernel, const struct live *live,
		       const struct watch *watch, uint64_t now_ns);

#endif
