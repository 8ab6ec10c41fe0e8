/*
 * What all versions of NCCL's profiler interface share: the shape of the plugin, event bits and
 * state numbers. These are our own declarations. Static asserts here and in abi_vN.h pin every
 * number, and `make check` compares them with NCCL's own headers where NCCL_HOME points to some.
 */
#ifndef ABI_COMMON_H
#define ABI_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#error "NCCL's profiler interface exists on 64-bit machines only"
#endif

/* ncclResult_t is passed as an int. The plugin never returns anything else. */
enum { NCCL_SUCCESS = 0 };

enum abi_event {
	ABI_GROUP = 1 << 0,
	ABI_COLL = 1 << 1,
	ABI_P2P = 1 << 2,
	ABI_PROXY_OP = 1 << 3,
	ABI_PROXY_STEP = 1 << 4,
	ABI_PROXY_CTRL = 1 << 5,
	ABI_KERNEL_CH = 1 << 6,	     /* v3 */
	ABI_NET_PLUGIN = 1 << 7,     /* v3 */
	ABI_GROUP_API = 1 << 8,	     /* v5 */
	ABI_COLL_API = 1 << 9,	     /* v5 */
	ABI_P2P_API = 1 << 10,	     /* v5 */
	ABI_KERNEL_LAUNCH = 1 << 11, /* v5 */
	ABI_CE_COLL = 1 << 12,	     /* v6 */
	ABI_CE_SYNC = 1 << 13,	     /* v6 */
	ABI_CE_BATCH = 1 << 14,	     /* v6 */
	ABI_KERNEL_PHASE = 1 << 15,  /* v7 */
};

enum abi_state {
	ABI_OP_SEND_POSTED = 0, /* 0..7: NCCL 2.23 to 2.26 only */
	ABI_OP_SEND_REM_FIFO_WAIT = 1,
	ABI_OP_SEND_TRANSMITTED = 2,
	ABI_OP_SEND_DONE = 3,
	ABI_OP_RECV_POSTED = 4,
	ABI_OP_RECV_RECEIVED = 5,
	ABI_OP_RECV_TRANSMITTED = 6,
	ABI_OP_RECV_DONE = 7,
	ABI_STEP_SEND_GPU_WAIT = 8,
	ABI_STEP_SEND_WAIT = 9,
	ABI_STEP_RECV_WAIT = 10,
	ABI_STEP_RECV_FLUSH_WAIT = 11,
	ABI_STEP_RECV_GPU_WAIT = 12,
	ABI_CTRL_IDLE = 13,
	ABI_CTRL_ACTIVE = 14,
	ABI_CTRL_SLEEP = 15,
	ABI_CTRL_WAKEUP = 16,
	ABI_CTRL_APPEND = 17,
	ABI_CTRL_APPEND_END = 18,
	ABI_OP_IN_PROGRESS = 19,       /* v4 */
	ABI_STEP_SEND_PEER_WAIT = 20,  /* v4 */
	ABI_NET_PLUGIN_UPDATE = 21,    /* v4 */
	ABI_KERNEL_CH_STOP = 22,       /* v4 */
	ABI_GROUP_START_API_STOP = 23, /* v5 */
	ABI_GROUP_END_API_START = 24,  /* v5 */
	ABI_CE_COLL_START = 25,	       /* v6; NCCL declares 25..30 but never sends them */
	ABI_CE_COLL_COMPLETE = 26,
	ABI_CE_SYNC_START = 27,
	ABI_CE_SYNC_COMPLETE = 28,
	ABI_CE_BATCH_START = 29,
	ABI_CE_BATCH_COMPLETE = 30,
	ABI_KERNEL_PHASE_STOP = 31, /* v7 */
};

/*
 * NCCL's logger, passed to init since v4. Levels: 2 WARN, 3 INFO. It takes a lock: not for
 * callbacks.
 */
typedef void (*abi_log_fn)(int level, unsigned long flags, const char *file, int line,
			   const char *fmt, ...);

enum { ABI_LOG_INFO = 3 };
enum { ABI_LOG_SUBSYSTEM_INIT = 0x1, ABI_LOG_SUBSYSTEM_PROFILE = 0x4000 };

/* The head that all descriptors share; from byte 24 on they differ by type and version. */
enum { ABI_DESCR_PARENT = 8, ABI_DESCR_RANK = 16, ABI_DESCR_UNION = 24 };

#define ABI_AT(type, field, offset)                       \
	_Static_assert(offsetof(type, field) == (offset), \
		       #type "." #field " is at a different offset in NCCL")
#define ABI_SIZE(type, size) \
	_Static_assert(sizeof(type) == (size), #type " differs in size from NCCL's")

/*
 * A part of a descriptor that is a named struct, which pins its own fields. Parts that no version
 * has changed are here; others are in the header of the version that brought them.
 */
#define ABI_PART(type, part) ABI_AT(type, part, ABI_DESCR_UNION)

struct abi_proxy_op {
	int32_t pid;
	uint8_t channel;
	int peer;
	int steps;
	int chunk_bytes;
	int is_send;
};

ABI_AT(struct abi_proxy_op, pid, 0);
ABI_AT(struct abi_proxy_op, channel, 4);
ABI_AT(struct abi_proxy_op, peer, 8);
ABI_AT(struct abi_proxy_op, steps, 12);
ABI_AT(struct abi_proxy_op, chunk_bytes, 16);
ABI_AT(struct abi_proxy_op, is_send, 20);

struct abi_proxy_step {
	int step;
};

ABI_AT(struct abi_proxy_step, step, 0);

struct abi_kernel_ch {
	uint8_t channel;
	uint64_t gpu_ns;
};

ABI_AT(struct abi_kernel_ch, channel, 0);
ABI_AT(struct abi_kernel_ch, gpu_ns, 8);

struct abi_net_plugin {
	int64_t id;
	void *data;
};

ABI_AT(struct abi_net_plugin, id, 0);
ABI_AT(struct abi_net_plugin, data, 8);

struct abi_group_api {
	bool is_captured;
	int depth;
};

ABI_AT(struct abi_group_api, is_captured, 0);
ABI_AT(struct abi_group_api, depth, 4);

struct abi_kernel_launch {
	void *stream;
};

ABI_AT(struct abi_kernel_launch, stream, 0);

struct abi_ce_sync {
	bool is_complete;
	int nranks;
};

ABI_AT(struct abi_ce_sync, is_complete, 0);
ABI_AT(struct abi_ce_sync, nranks, 4);

struct abi_ce_batch {
	int ops;
	size_t total_bytes;
	bool use_intra_sync;
};

ABI_AT(struct abi_ce_batch, ops, 0);
ABI_AT(struct abi_ce_batch, total_bytes, 8);
ABI_AT(struct abi_ce_batch, use_intra_sync, 16);

/* The five functions and the struct that NCCL looks up by name: 48 bytes in every version. */
#define ABI_PLUGIN(N, INIT_PARAMETERS)                                                      \
	struct abi_plugin_v##N {                                                            \
		const char *name;                                                           \
		int(*init) INIT_PARAMETERS;                                                 \
		int (*start_event)(void *context, void **handle, struct abi_descr_v##N *d); \
		int (*stop_event)(void *handle);                                            \
		int (*record_event_state)(void *handle, int state, union abi_args_v##N *a); \
		int (*finalize)(void *context);                                             \
	};                                                                                  \
	ABI_AT(struct abi_plugin_v##N, init, 8);                                            \
	ABI_AT(struct abi_plugin_v##N, start_event, 16);                                    \
	ABI_AT(struct abi_plugin_v##N, stop_event, 24);                                     \
	ABI_AT(struct abi_plugin_v##N, record_event_state, 32);                             \
	ABI_AT(struct abi_plugin_v##N, finalize, 40);                                       \
	ABI_SIZE(struct abi_plugin_v##N, 48)

#endif
