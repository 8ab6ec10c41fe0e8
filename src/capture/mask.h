/* Which events to ask NCCL for, and why. Decided once; the mask never changes afterwards. */
#ifndef MASK_H
#define MASK_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/settings.h"

struct mask_choice {
	int mask;
	bool has_kernel;
	char kernel_reason[200]; /* why kernel channel events are on or off, and what they cost */
};

/* What is free in /dev/shm now; 0 when there is none. */
uint64_t mask_free_shm_bytes(void);

struct mask_choice mask_choose(unsigned int interface, const struct settings *settings,
			       uint64_t free_shm_bytes);

#endif
