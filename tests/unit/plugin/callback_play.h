/* Calls of NCCL 2.28 by hand, straight into the plugin's v5 struct; the ring is read directly. */
#ifndef CALLBACK_PLAY_H
#define CALLBACK_PLAY_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/abi_v5.h"
#include "plugin/recorder.h"
#include "tests/support/scratch.h"

extern const struct abi_plugin_v5 ncclProfiler_v5;

static int play_mask;

static inline void *play_init(uint64_t hash, int nnodes, int nranks, int rank)
{
	void *context = NULL;

	ncclProfiler_v5.init(&context, hash, &play_mask, "test", nnodes, nranks, rank, NULL);
	return context;
}

static inline void *play_start(void *context, struct abi_descr_v5 descr)
{
	void *handle = (void *)0xdead;

	ncclProfiler_v5.start_event(context, &handle, &descr);
	return handle;
}

static inline void play_stop(void *handle)
{
	ncclProfiler_v5.stop_event(handle);
}

static inline void play_state(void *handle, int state, uint64_t argument)
{
	union abi_args_v5 args = { .kernel_ch = { argument } };

	ncclProfiler_v5.record_event_state(handle, state, &args);
}

struct play_op {
	void *group_api, *api, *task;
};

static inline void *play_coll_api(void *context, void *group, const char *function, size_t count,
				  const char *datatype, bool is_captured)
{
	struct abi_descr_v5 descr = { .type = ABI_COLL_API, .parent = group };
	void *handle;

	descr.coll_api.function = function;
	descr.coll_api.count = count;
	descr.coll_api.datatype = datatype;
	descr.coll_api.is_captured = is_captured;
	handle = play_start(context, descr);
	play_stop(handle);
	return handle;
}

static inline void *play_p2p_api(void *context, void *group, const char *function, size_t count)
{
	struct abi_descr_v5 descr = { .type = ABI_P2P_API, .parent = group };

	descr.p2p_api.function = function;
	descr.p2p_api.count = count;
	descr.p2p_api.datatype = "ncclFloat32";
	return play_start(context, descr);
}

static inline void *play_coll(void *context, void *api, const char *function, size_t count,
			      const char *datatype, uint8_t channels)
{
	struct abi_descr_v5 descr = { .type = ABI_COLL, .parent = api };

	descr.coll.function = function;
	descr.coll.count = count;
	descr.coll.datatype = datatype;
	descr.coll.channels = channels;
	descr.coll.algorithm = "RING";
	descr.coll.protocol = "SIMPLE";
	return play_start(context, descr);
}

static inline void *play_p2p(void *context, void *api, const char *function, size_t count, int peer)
{
	struct abi_descr_v5 descr = { .type = ABI_P2P, .parent = api };

	descr.p2p.function = function;
	descr.p2p.count = count;
	descr.p2p.datatype = "ncclFloat32";
	descr.p2p.peer = peer;
	descr.p2p.channels = 1;
	return play_start(context, descr);
}

/* A plain collective up to its Coll event. */
static inline struct play_op play_issue(void *context, const char *function, size_t count,
					const char *datatype, uint8_t channels)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	struct play_op op = { .group_api = play_start(context, group) };
	size_t bytes =
		strcmp(function, "AllGather") == 0 || strcmp(function, "Broadcast") == 0 ? 4 : 1;

	op.api = play_coll_api(context, op.group_api, function, count, datatype, false);
	op.task = play_coll(context, op.api, function, count * bytes,
			    bytes == 4 ? "ncclInt8" : datatype, channels);
	play_stop(op.task);
	play_stop(op.group_api);
	return op;
}

static inline void *play_kernel_start(void *context, void *task, uint8_t channel, uint64_t gpu_ns)
{
	struct abi_descr_v5 descr = { .type = ABI_KERNEL_CH, .parent = task };

	descr.kernel_ch.channel = channel;
	descr.kernel_ch.gpu_ns = gpu_ns;
	return play_start(context, descr);
}

static inline void play_kernel_stop(void *kernel, uint64_t gpu_ns)
{
	play_state(kernel, ABI_KERNEL_CH_STOP, gpu_ns);
	play_stop(kernel);
}

static inline void *play_proxy_start(void *context, void *task, int32_t pid, uint8_t channel,
				     int peer, bool is_send)
{
	struct abi_descr_v5 descr = { .type = ABI_PROXY_OP, .parent = task };

	descr.proxy_op.pid = pid;
	descr.proxy_op.channel = channel;
	descr.proxy_op.peer = peer;
	descr.proxy_op.steps = 4;
	descr.proxy_op.chunk_bytes = 1 << 19;
	descr.proxy_op.is_send = is_send;
	return play_start(context, descr);
}

static inline void *play_step_start(void *context, void *proxy, int step)
{
	struct abi_descr_v5 descr = { .type = ABI_PROXY_STEP, .parent = proxy };

	descr.proxy_step.step = step;
	return play_start(context, descr);
}

/* A GPU clock that is 5 ms ahead of the recorder's. */
static inline uint64_t play_gpu_now(void)
{
	return recorder_now() + 5000000;
}

/* The n-th record from the end of the ring, 1 the last. */
static inline const struct op_record *play_record(uint64_t from_end)
{
	uint64_t head = recorder.region.header->ring_head;

	return &recorder.region.ring[(head - from_end) & (recorder.region.ring_count - 1)];
}

/* Set up the plugin with a fresh shared memory directory for this test. */
static inline void play_setup(const char *mode)
{
	const char *dir = scratch_make();

	setenv("RINGSIDE_SHM", dir, 1);
	setenv("RINGSIDE_DIR", dir, 1);
	setenv("RINGSIDE_MODE", mode, 1);
	/* Most tests need kernel events; a test may have set something else. */
	setenv("RINGSIDE_EVENTS", "kernel", 0);
}

#endif
