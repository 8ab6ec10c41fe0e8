/* How long an operation took, by the source its record names. */
#ifndef OP_TIME_H
#define OP_TIME_H

#include <stdint.h>

#include "op/op_layout.h"

/* 0 when the record has no duration (time source none). */
static inline uint64_t op_duration_ns(const struct op_record *op)
{
	switch (op->time_source) {
	case OP_TIME_KERNEL_GPU:
		return op->gpu_stop_ns - op->gpu_start_ns;
	case OP_TIME_PROXY:
		return op->done_ns - op->active_ns;
	case OP_TIME_HOST:
		return op->done_ns - op->issue_ns;
	default:
		return 0;
	}
}

#endif
