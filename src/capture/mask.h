/* Which events to ask NCCL for, and why. Decided once; the mask never changes afterwards. */
#ifndef MASK_H
#define MASK_H

#include <stdbool.h>

#include "capture/settings.h"

struct mask_choice {
	int mask;
	bool has_kernel;
	char kernel_reason[200]; /* why kernel channel events are on or off, and what they cost */
};

struct mask_choice mask_choose(unsigned int interface, const struct settings *settings);

#endif
