/*
 * What NCCL does not show to a profiler plugin, release by release: nothing can be recorded there,
 * by anybody. docs/BLIND-SPOTS.md is the same list for people; a test compares them.
 */
#ifndef OP_BLIND_H
#define OP_BLIND_H

#include <stdbool.h>
#include <stddef.h>

#include "op/comm_layout.h"
#include "op/op_layout.h"

struct op_blind_spot {
	const char *name;    /* short, for programs */
	unsigned char first; /* profiler interface versions from .. to: they tell the release */
	unsigned char last;
	const char *sentence; /* for people */
};

/* The index-th spot of this interface version; NULL past the last. Version 0: of any. */
const struct op_blind_spot *op_blind_spot(unsigned int interface, size_t index);

/* "2.28", "2.29-2.30"; "?" for a version that does not exist. */
const char *op_interface_releases(unsigned int interface);

/* What is not known without kernel channel events. */
const char *op_kernel_events_missed(void);

enum { OP_INTERFACES = 7 };

#endif
