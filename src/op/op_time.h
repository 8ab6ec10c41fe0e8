/* How long an operation took, by the source its record names. */
#ifndef OP_TIME_H
#define OP_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "op/comm_layout.h"
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

/*
 * Could kernel events of this operation come at all? Only then does their absence mean anything. They
 * were requested for all operations of its communicator, or for this one because it was sampled.
 */
static inline bool op_kernels_were_asked(const struct comm_info *comm, const struct op_record *op)
{
	enum { KERNEL_CH = 0x40, FIRST_WITH_KERNELS = 3 }; /* NCCL's number; interface version */

	/* Who does not know what was requested knows what came. */
	if (comm->mask == 0)
		return comm->flags & COMM_FLAG_SEES_KERNELS;
	if (op->flags & OP_FLAG_KERNELS_ASKED)
		return true;
	return comm->mask & KERNEL_CH &&
	       (comm->interface == 0 || comm->interface >= FIRST_WITH_KERNELS);
}

/*
 * Which time of a finished operation can be believed? For the recorder, and for readers that find it
 * before its record is complete.
 */
static inline uint8_t op_choose_time_source(const struct op_record *op)
{
	int has_stamps = op->kernels_stopped > 0 && op->kernels_stopped == op->kernels_started &&
			 op->gpu_start_ns != 0 && op->gpu_stop_ns >= op->gpu_start_ns;

	if (has_stamps && !(op->flags & OP_STAMPS_UNTRUSTED))
		return OP_TIME_KERNEL_GPU;
	/* Samples are timed by the GPU: what the network shows of the others is another quantity, and the two
	 * must not be mixed in one figure. */
	if (op->flags & OP_FLAG_NOT_SAMPLED)
		return OP_TIME_NONE;
	if (op->state == OP_DONE && op->proxies_stopped > 0 &&
	    op->proxies_stopped == op->proxies_started && op->active_ns != 0)
		return OP_TIME_PROXY;
	return OP_TIME_NONE;
}

#endif
