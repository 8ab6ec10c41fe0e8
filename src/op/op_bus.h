/* From bytes over time to what the links carry: nccl-tests' bus bandwidth. */
#ifndef OP_BUS_H
#define OP_BUS_H

#include <stdint.h>

#include "op/op_layout.h"

/* Times bytes over time is the bus bandwidth; 0 when nranks is needed and unknown (0). A function that has
 * no factor of its own, or that we do not know, has 1. */
static inline double op_bus_factor(uint8_t function, int32_t nranks)
{
	double ranks = nranks;

	switch (function) {
	case OP_ALL_REDUCE:
		return nranks > 0 ? 2 * (ranks - 1) / ranks : 0;
	case OP_ALL_GATHER:
	case OP_REDUCE_SCATTER:
	case OP_ALL_TO_ALL:
	case OP_GATHER:
	case OP_SCATTER:
		return nranks > 0 ? (ranks - 1) / ranks : 0;
	default:
		return 1;
	}
}

#endif
