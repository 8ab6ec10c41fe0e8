/*
 * For tests of stamps: a host clock that moves only when the test moves it, and a separate GPU
 * clock. Nothing here takes time, so hours pass in a moment.
 */
#ifndef STAMP_PLAY_H
#define STAMP_PLAY_H

#include "tests/unit/plugin/callback_play.h"

#define STAMP_MS UINT64_C(1000000)
#define STAMP_S UINT64_C(1000000000)

static uint64_t stamp_now_ns = 1000 * STAMP_S;
static int64_t stamp_offset_ns = 123456789;
static double stamp_rate = 1.0; /* of the GPU's clock */

static inline void stamp_move(uint64_t ns)
{
	stamp_now_ns += ns;
	/* A counter without a rate: the base is the time. */
	recorder.clock =
		(struct clock_source){ .kind = CLOCK_KIND_COUNTER, .base_ns = stamp_now_ns };
}

/* The GPU's clock at that moment of the host's clock. */
static inline uint64_t stamp_gpu(uint64_t host_ns)
{
	double passed = (double)(int64_t)(host_ns - 1000 * STAMP_S);

	return host_ns + (uint64_t)stamp_offset_ns + (uint64_t)(int64_t)(passed * (stamp_rate - 1));
}

struct stamp_op {
	struct play_op op;
	uint64_t start_ns, stop_ns; /* host's clock: when the GPU did it */
	void *kernels[4];
};

/* NCCL's Group event: the tasks of one kernel. */
static inline void *stamp_plan(void *context)
{
	return play_start(context, (struct abi_descr_v5){ .type = ABI_GROUP });
}

/* A collective in its own group, in this kernel, up to its Coll event. */
static inline struct play_op stamp_call(void *context, uint8_t channels, void *plan)
{
	struct abi_descr_v5 descr = { .type = ABI_GROUP_API };
	struct play_op op = { .group_api = play_start(context, descr) };

	op.api = play_coll_api(context, op.group_api, "AllReduce", 1024, "ncclFloat32", false);
	descr = (struct abi_descr_v5){
		.type = ABI_COLL,
		.parent = op.api,
		.coll = { .function = "AllReduce",
			  .count = 1024,
			  .datatype = "ncclFloat32",
			  .channels = channels,
			  .algorithm = "RING",
			  .protocol = "SIMPLE",
			  .parent_group = plan },
	};
	op.task = play_start(context, descr);
	play_stop(op.task);
	play_stop(op.group_api);
	return op;
}

/* Issued now, on the GPU after a delay, for a duration; nothing of it is reported yet. */
static inline struct stamp_op stamp_issue(void *context, uint8_t channels, uint64_t until_start_ns,
					  uint64_t duration_ns)
{
	struct stamp_op made = { .op = stamp_call(context, channels, stamp_plan(context)) };

	made.start_ns = stamp_now_ns + until_start_ns;
	made.stop_ns = made.start_ns + duration_ns;
	return made;
}

/* The proxy thread polls `late_ns` after start and stop, and reports true stamps. */
static inline void stamp_report(void *context, struct stamp_op *made, uint8_t channels,
				uint64_t late_ns)
{
	stamp_move(made->start_ns + late_ns - stamp_now_ns);
	for (uint8_t i = 0; i < channels; i++)
		made->kernels[i] =
			play_kernel_start(context, made->op.task, i, stamp_gpu(made->start_ns));
	if (made->stop_ns + late_ns > stamp_now_ns)
		stamp_move(made->stop_ns + late_ns - stamp_now_ns);
	for (uint8_t i = 0; i < channels; i++)
		play_kernel_stop(made->kernels[i], stamp_gpu(made->stop_ns));
}

/* A normal operation on one channel: reported 2 us after it happened. */
static inline struct stamp_op stamp_good(void *context)
{
	struct stamp_op made = stamp_issue(context, 1, 10000, 20000);

	stamp_report(context, &made, 1, 2000);
	stamp_move(5000);
	return made;
}

/* The record of the communicator's n-th operation after its finalize; NULL: not there. */
static inline const struct op_record *stamp_record(uint32_t comm, uint64_t number)
{
	for (uint32_t i = 0; i < recorder.region.ring_count; i++)
		if (recorder.region.ring[i].comm == comm &&
		    recorder.region.ring[i].number == number)
			return &recorder.region.ring[i];
	return NULL;
}

#endif
