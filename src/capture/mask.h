/* Which events to ask NCCL for, and why: decided once, in the first init. Kernel events alone may be
 * switched while the job runs: hot_sample.c. */
#ifndef MASK_H
#define MASK_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/settings.h"
#include "op/kernel_policy.h"

struct mask_choice {
	int mask;		   /* without kernel events, unless they are on for good */
	enum kernel_events kernel; /* on, sampled, off or absent */
	char kernel_reason[320];   /* why, and what it costs */
};

/* What is free in /dev/shm now; 0 when there is none. */
uint64_t mask_free_shm_bytes(void);

/* Is there room for what NCCL takes in /dev/shm for kernel events of one more communicator of this
 * process, and of as many in the other processes of a node? */
bool mask_has_shm(uint64_t free_shm_bytes, uint32_t communicators);

struct mask_choice mask_choose(unsigned int interface, const struct settings *settings,
			       uint64_t free_shm_bytes);

#endif
