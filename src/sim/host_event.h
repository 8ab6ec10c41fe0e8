/*
 * One call of the plugin, as NCCL makes it: fills the descriptor of the found version on the stack and passes it.
 * No lock, no clock, no counting, no check of the mask: see host_internal.h. Benchmarks measure these functions.
 *
 *	host_init		host_start_*		host_state_*
 *	host_finalize		host_stop
 *
 * Events and states that the found version does not have are not called.
 */
#ifndef HOST_EVENT_H
#define HOST_EVENT_H

#include <string.h>

#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"
#include "sim/host.h"

/* ---- starts ---------------------------------------------------------------------------------- */

/*
 * One function per type of event, one case per version.
 *
 * If the type is one byte (v1 to v4), the seven bytes after it are garbage, as they can be in NCCL. The handle is
 * only written by the plugin: if it does not, the old value stays, as with NCCL.
 */

#define HOST_PADDING UINT64_C(0xa5a5a5a5a5a5a500)

/* Head of a descriptor of version N. Narrow: one byte of type and the bytes after it. */
#define HOST_HEAD_NARROW(d, kind)                             \
	do {                                                  \
		uint64_t head = HOST_PADDING | (uint8_t)kind; \
		memcpy(&(d), &head, sizeof(head));            \
	} while (0)
#define HOST_HEAD_1 HOST_HEAD_NARROW
#define HOST_HEAD_2 HOST_HEAD_NARROW
#define HOST_HEAD_3 HOST_HEAD_NARROW
#define HOST_HEAD_4 HOST_HEAD_NARROW
#define HOST_HEAD_WIDE(d, kind) (d).type = (uint64_t)(kind)
#define HOST_HEAD_5 HOST_HEAD_WIDE
#define HOST_HEAD_6 HOST_HEAD_WIDE
#define HOST_HEAD_7 HOST_HEAD_WIDE

/* case N of a switch over the version: fills a descriptor `d` and calls. */
#define HOST_START(N, kind, up, who, fill)                                 \
	case N: {                                                          \
		struct abi_descr_v##N d;                                   \
		memset(&d, 0, sizeof(d));                                  \
		HOST_HEAD_##N(d, kind);                                    \
		d.parent = (up);                                           \
		d.rank = (who);                                            \
		fill;                                                      \
		(void)plugin->v##N->start_event(call.context, handle, &d); \
		break;                                                     \
	}

#define HOST_STARTS_5(kind, up, who, fill) \
	HOST_START(5, kind, up, who, fill) \
	HOST_START(6, kind, up, who, fill) \
	HOST_START(7, kind, up, who, fill)
#define HOST_STARTS_3(kind, up, who, fill) \
	HOST_START(3, kind, up, who, fill) \
	HOST_START(4, kind, up, who, fill) \
	HOST_STARTS_5(kind, up, who, fill)
#define HOST_STARTS_1(kind, up, who, fill) \
	HOST_START(1, kind, up, who, fill) \
	HOST_START(2, kind, up, who, fill) \
	HOST_STARTS_3(kind, up, who, fill)

/* The caller: the communicator's context, and its rank for events that have one. */
struct host_call {
	void *context;
	int rank;
};

/* ---- API, v5 and later ----------------------------------------------------------------------- */

static inline void host_start_group_api(const struct host_plugin *plugin, struct host_call call,
					void **handle, bool is_captured, int depth)
{
	switch (plugin->version) {
		HOST_STARTS_5(ABI_GROUP_API, NULL, 0, {
			d.group_api.is_captured = is_captured;
			d.group_api.depth = depth;
		})
	}
}

/* CollApi and P2pApi; the latter has no root, and neither has a peer. */
struct host_api {
	void *parent; /* GroupApi */
	const char *function;
	const char *datatype;
	uint64_t count;
	int root;
	bool is_captured;
	void *stream;
	uint64_t user_tag;
};

#define HOST_FILL_API(member)                            \
	do {                                             \
		d.member.function = api->function;       \
		d.member.count = api->count;             \
		d.member.datatype = api->datatype;       \
		d.member.stream = api->stream;           \
		d.member.is_captured = api->is_captured; \
	} while (0)
#define HOST_FILL_COLL_API                   \
	do {                                 \
		HOST_FILL_API(coll_api);     \
		d.coll_api.root = api->root; \
	} while (0)

static inline void host_start_coll_api(const struct host_plugin *plugin, struct host_call call,
				       void **handle, const struct host_api *api)
{
	switch (plugin->version) {
		HOST_START(5, ABI_COLL_API, api->parent, 0, HOST_FILL_COLL_API)
		HOST_START(6, ABI_COLL_API, api->parent, 0, HOST_FILL_COLL_API)
		HOST_START(7, ABI_COLL_API, api->parent, 0, {
			HOST_FILL_COLL_API;
			d.coll_api.user_tag = api->user_tag;
		})
	}
}

static inline void host_start_p2p_api(const struct host_plugin *plugin, struct host_call call,
				      void **handle, const struct host_api *api)
{
	switch (plugin->version) {
		HOST_START(5, ABI_P2P_API, api->parent, 0, HOST_FILL_API(p2p_api))
		HOST_START(6, ABI_P2P_API, api->parent, 0, HOST_FILL_API(p2p_api))
		HOST_START(7, ABI_P2P_API, api->parent, 0, {
			HOST_FILL_API(p2p_api);
			d.p2p_api.user_tag = api->user_tag;
		})
	}
}

static inline void host_start_kernel_launch(const struct host_plugin *plugin, struct host_call call,
					    void **handle, void *parent, void *stream)
{
	switch (plugin->version) {
		HOST_STARTS_5(ABI_KERNEL_LAUNCH, parent, 0, d.kernel_launch.stream = stream)
	}
}

/* ---- Group, Coll, P2p ------------------------------------------------------------------------ */

static inline void host_start_group(const struct host_plugin *plugin, struct host_call call,
				    void **handle)
{
	switch (plugin->version) {
		HOST_STARTS_1(ABI_GROUP, NULL, 0, (void)0)
	}
}

struct host_coll {
	void *parent_api;   /* parent in v5 and later */
	void *parent_group; /* parent before */
	uint64_t sequence;
	const char *function;
	const char *datatype;
	const char *algorithm;
	const char *protocol;
	const void *send_buffer;
	const void *recv_buffer;
	uint64_t count;
	int root;
	uint8_t channels;
	uint8_t warps;
	/* v7 */
	bool is_symmetric;
	const char *kernel_variant;
	uint64_t user_tag;
	/* v1 to v3; a wrapped plugin gets NULL and 0 here from 2.27 on */
	const char *comm_name;
	uint64_t comm_hash;
	uint64_t traffic_bytes; /* v1, v2 */
	/* v1: numbers instead of strings */
	uint8_t function_v1;
	uint8_t datatype_v1;
	uint8_t algorithm_v1;
	uint8_t protocol_v1;
	uint32_t redop;
	bool is_collnet;
	bool is_nvls;
};

#define HOST_FILL_COLL                                  \
	do {                                            \
		d.coll.sequence = coll->sequence;       \
		d.coll.send_buffer = coll->send_buffer; \
		d.coll.recv_buffer = coll->recv_buffer; \
		d.coll.count = coll->count;             \
		d.coll.root = coll->root;               \
		d.coll.warps = coll->warps;             \
	} while (0)
#define HOST_FILL_COLL_STRINGS                      \
	do {                                        \
		d.coll.function = coll->function;   \
		d.coll.datatype = coll->datatype;   \
		d.coll.algorithm = coll->algorithm; \
		d.coll.protocol = coll->protocol;   \
	} while (0)
#define HOST_FILL_COLL_COMM                           \
	do {                                          \
		d.coll.name = coll->comm_name;        \
		d.coll.comm_hash = coll->comm_hash;   \
		d.coll.max_channels = coll->channels; \
	} while (0)
#define HOST_FILL_COLL_V5                                 \
	do {                                              \
		HOST_FILL_COLL;                           \
		HOST_FILL_COLL_STRINGS;                   \
		d.coll.channels = coll->channels;         \
		d.coll.parent_group = coll->parent_group; \
	} while (0)

/* Versions 1 and 2, rarely used, kept out of the way. */
static inline void host_start_coll_old(const struct host_plugin *plugin, struct host_call call,
				       void **handle, const struct host_coll *coll)
{
	switch (plugin->version) {
		HOST_START(1, ABI_COLL, coll->parent_group, call.rank, {
			HOST_FILL_COLL;
			HOST_FILL_COLL_COMM;
			d.coll.function = coll->function_v1;
			d.coll.datatype = coll->datatype_v1;
			d.coll.algorithm = coll->algorithm_v1;
			d.coll.protocol = coll->protocol_v1;
			d.coll.redop = coll->redop;
			d.coll.traffic_bytes = coll->traffic_bytes;
			d.coll.is_collnet = coll->is_collnet;
			d.coll.is_nvls = coll->is_nvls;
		})
		HOST_START(2, ABI_COLL, coll->parent_group, call.rank, {
			HOST_FILL_COLL;
			HOST_FILL_COLL_COMM;
			HOST_FILL_COLL_STRINGS;
			d.coll.traffic_bytes = coll->traffic_bytes;
		})
	}
}

static inline void host_start_coll(const struct host_plugin *plugin, struct host_call call,
				   void **handle, const struct host_coll *coll)
{
	switch (plugin->version) {
	default:
		host_start_coll_old(plugin, call, handle, coll);
		break;
		HOST_START(3, ABI_COLL, coll->parent_group, call.rank, {
			HOST_FILL_COLL;
			HOST_FILL_COLL_COMM;
			HOST_FILL_COLL_STRINGS;
		})
		HOST_START(4, ABI_COLL, coll->parent_group, call.rank, {
			HOST_FILL_COLL;
			HOST_FILL_COLL_STRINGS;
			d.coll.channels = coll->channels;
		})
		HOST_START(5, ABI_COLL, coll->parent_api, call.rank, HOST_FILL_COLL_V5)
		HOST_START(6, ABI_COLL, coll->parent_api, call.rank, HOST_FILL_COLL_V5)
		HOST_START(7, ABI_COLL, coll->parent_api, call.rank, {
			HOST_FILL_COLL_V5;
			d.coll.kernel_variant = coll->kernel_variant;
			d.coll.is_symmetric = coll->is_symmetric;
			d.coll.user_tag = coll->user_tag;
		})
	}
}

struct host_p2p {
	void *parent_api;
	void *parent_group;
	const char *function;
	const char *datatype;
	const void *buffer;
	uint64_t count;
	int peer;
	uint8_t channels;      /* v4 and later */
	uint64_t user_tag;     /* v7 */
	const char *comm_name; /* v1 to v3 */
	uint64_t comm_hash;
	uint8_t function_v1;
	uint8_t datatype_v1;
};

#define HOST_FILL_P2P                       \
	do {                                \
		d.p2p.buffer = p2p->buffer; \
		d.p2p.count = p2p->count;   \
		d.p2p.peer = p2p->peer;     \
	} while (0)
#define HOST_FILL_P2P_STRINGS                   \
	do {                                    \
		d.p2p.function = p2p->function; \
		d.p2p.datatype = p2p->datatype; \
	} while (0)
#define HOST_FILL_P2P_COMM                        \
	do {                                      \
		d.p2p.name = p2p->comm_name;      \
		d.p2p.comm_hash = p2p->comm_hash; \
	} while (0)
#define HOST_FILL_P2P_V5                                \
	do {                                            \
		HOST_FILL_P2P;                          \
		HOST_FILL_P2P_STRINGS;                  \
		d.p2p.channels = p2p->channels;         \
		d.p2p.parent_group = p2p->parent_group; \
	} while (0)

static inline void host_start_p2p_old(const struct host_plugin *plugin, struct host_call call,
				      void **handle, const struct host_p2p *p2p)
{
	switch (plugin->version) {
		HOST_START(1, ABI_P2P, p2p->parent_group, call.rank, {
			HOST_FILL_P2P;
			HOST_FILL_P2P_COMM;
			d.p2p.function = p2p->function_v1;
			d.p2p.datatype = p2p->datatype_v1;
		})
		HOST_START(2, ABI_P2P, p2p->parent_group, call.rank, {
			HOST_FILL_P2P;
			HOST_FILL_P2P_COMM;
			HOST_FILL_P2P_STRINGS;
		})
		HOST_START(3, ABI_P2P, p2p->parent_group, call.rank, {
			HOST_FILL_P2P;
			HOST_FILL_P2P_COMM;
			HOST_FILL_P2P_STRINGS;
		})
	}
}

static inline void host_start_p2p(const struct host_plugin *plugin, struct host_call call,
				  void **handle, const struct host_p2p *p2p)
{
	switch (plugin->version) {
	default:
		host_start_p2p_old(plugin, call, handle, p2p);
		break;
		HOST_START(4, ABI_P2P, p2p->parent_group, call.rank, {
			HOST_FILL_P2P;
			HOST_FILL_P2P_STRINGS;
			d.p2p.channels = p2p->channels;
		})
		HOST_START(5, ABI_P2P, p2p->parent_api, call.rank, HOST_FILL_P2P_V5)
		HOST_START(6, ABI_P2P, p2p->parent_api, call.rank, HOST_FILL_P2P_V5)
		HOST_START(7, ABI_P2P, p2p->parent_api, call.rank, {
			HOST_FILL_P2P_V5;
			d.p2p.user_tag = p2p->user_tag;
		})
	}
}

/* ---- proxy ----------------------------------------------------------------------------------- */

struct host_proxy_op {
	void *parent;
	int32_t pid;
	uint8_t channel;
	int peer;
	int steps;
	int chunk_bytes;
	bool is_send;
};

static inline void host_start_proxy_op(const struct host_plugin *plugin, struct host_call call,
				       void **handle, const struct host_proxy_op *op)
{
	switch (plugin->version) {
		HOST_STARTS_1(ABI_PROXY_OP, op->parent, call.rank, {
			d.proxy_op.pid = op->pid;
			d.proxy_op.channel = op->channel;
			d.proxy_op.peer = op->peer;
			d.proxy_op.steps = op->steps;
			d.proxy_op.chunk_bytes = op->chunk_bytes;
			d.proxy_op.is_send = op->is_send;
		})
	}
}

static inline void host_start_proxy_step(const struct host_plugin *plugin, struct host_call call,
					 void **handle, void *parent, int step)
{
	switch (plugin->version) {
		HOST_STARTS_1(ABI_PROXY_STEP, parent, call.rank, d.proxy_step.step = step)
	}
}

static inline void host_start_proxy_ctrl(const struct host_plugin *plugin, struct host_call call,
					 void **handle)
{
	switch (plugin->version) {
		HOST_STARTS_1(ABI_PROXY_CTRL, NULL, 0, (void)0)
	}
}

/* v3 and later. The plugin reads `data` only during the call. */
static inline void host_start_net_plugin(const struct host_plugin *plugin, struct host_call call,
					 void **handle, void *parent, int64_t id, void *data)
{
	switch (plugin->version) {
		HOST_STARTS_3(ABI_NET_PLUGIN, parent, call.rank, {
			d.net_plugin.id = id;
			d.net_plugin.data = data;
		})
	}
}

/* ---- kernel ---------------------------------------------------------------------------------- */

/* v3 and later; the stamp since v4. */
static inline void host_start_kernel_ch(const struct host_plugin *plugin, struct host_call call,
					void **handle, void *parent, uint8_t ch, uint64_t gpu_ns)
{
	switch (plugin->version) {
		HOST_START(3, ABI_KERNEL_CH, parent, 0, d.kernel_ch.channel = ch)
		HOST_START(4, ABI_KERNEL_CH, parent, 0, {
			d.kernel_ch.channel = ch;
			d.kernel_ch.gpu_ns = gpu_ns;
		})
		HOST_STARTS_5(ABI_KERNEL_CH, parent, 0, {
			d.kernel_ch.channel = ch;
			d.kernel_ch.gpu_ns = gpu_ns;
		})
	}
}

struct host_phase {
	void *parent; /* KernelCh */
	uint8_t channel;
	uint8_t phase;
	const char *name;
	uint64_t gpu_ns;
};

static inline void host_start_kernel_phase(const struct host_plugin *plugin, struct host_call call,
					   void **handle, const struct host_phase *phase)
{
	switch (plugin->version) {
		HOST_START(7, ABI_KERNEL_PHASE, phase->parent, 0, {
			d.kernel_phase.channel = phase->channel;
			d.kernel_phase.phase = phase->phase;
			d.kernel_phase.name = phase->name;
			d.kernel_phase.gpu_ns = phase->gpu_ns;
		})
	}
}

/* ---- copy engines, v6 and later -------------------------------------------------------------- */

struct host_ce_coll {
	void *parent; /* CollApi */
	uint64_t sequence;
	const char *function;
	const char *datatype;
	const char *sync_strategy;
	const void *send_buffer;
	const void *recv_buffer;
	uint64_t count;
	int root;
	bool has_intra_batch_sync;
	uint32_t batch_size;
	uint32_t batches;
	uint32_t ce_sequence;
	void *stream;
	uint64_t user_tag; /* v7 */
};

#define HOST_FILL_CE_COLL                                                  \
	do {                                                               \
		d.ce_coll.sequence = ce->sequence;                         \
		d.ce_coll.function = ce->function;                         \
		d.ce_coll.send_buffer = ce->send_buffer;                   \
		d.ce_coll.recv_buffer = ce->recv_buffer;                   \
		d.ce_coll.count = ce->count;                               \
		d.ce_coll.root = ce->root;                                 \
		d.ce_coll.datatype = ce->datatype;                         \
		d.ce_coll.sync_strategy = ce->sync_strategy;               \
		d.ce_coll.has_intra_batch_sync = ce->has_intra_batch_sync; \
		d.ce_coll.batch_size = ce->batch_size;                     \
		d.ce_coll.batches = ce->batches;                           \
		d.ce_coll.ce_sequence = ce->ce_sequence;                   \
		d.ce_coll.stream = ce->stream;                             \
	} while (0)

static inline void host_start_ce_coll(const struct host_plugin *plugin, struct host_call call,
				      void **handle, const struct host_ce_coll *ce)
{
	switch (plugin->version) {
		HOST_START(6, ABI_CE_COLL, ce->parent, call.rank, HOST_FILL_CE_COLL)
		HOST_START(7, ABI_CE_COLL, ce->parent, call.rank, {
			HOST_FILL_CE_COLL;
			d.ce_coll.user_tag = ce->user_tag;
		})
	}
}

static inline void host_start_ce_sync(const struct host_plugin *plugin, struct host_call call,
				      void **handle, void *parent, bool is_complete, int nranks)
{
	switch (plugin->version) {
		HOST_START(6, ABI_CE_SYNC, parent, call.rank, {
			d.ce_sync.is_complete = is_complete;
			d.ce_sync.nranks = nranks;
		})
		HOST_START(7, ABI_CE_SYNC, parent, call.rank, {
			d.ce_sync.is_complete = is_complete;
			d.ce_sync.nranks = nranks;
		})
	}
}

struct host_ce_batch {
	void *parent; /* CeColl */
	int ops;
	uint64_t total_bytes;
	bool use_intra_sync;
};

#define HOST_FILL_CE_BATCH                                         \
	do {                                                       \
		d.ce_batch.ops = batch->ops;                       \
		d.ce_batch.total_bytes = batch->total_bytes;       \
		d.ce_batch.use_intra_sync = batch->use_intra_sync; \
	} while (0)

static inline void host_start_ce_batch(const struct host_plugin *plugin, struct host_call call,
				       void **handle, const struct host_ce_batch *batch)
{
	switch (plugin->version) {
		HOST_START(6, ABI_CE_BATCH, batch->parent, call.rank, HOST_FILL_CE_BATCH)
		HOST_START(7, ABI_CE_BATCH, batch->parent, call.rank, HOST_FILL_CE_BATCH)
	}
}

/* ---- states ---------------------------------------------------------------------------------- */

#define HOST_RECORD(N, fill)                                                    \
	case N: {                                                               \
		union abi_args_v##N a;                                          \
		memset(&a, 0, sizeof(a));                                       \
		fill;                                                           \
		(void)plugin->v##N->record_event_state(handle, (int)state, &a); \
		break;                                                          \
	}
#define HOST_RECORD_NULL(N)                                                       \
	case N:                                                                   \
		(void)plugin->v##N->record_event_state(handle, (int)state, NULL); \
		break;

#define HOST_RECORDS_1(fill) HOST_RECORD(1, fill) HOST_RECORD(2, fill) HOST_RECORD(3, fill)
#define HOST_RECORDS_4(fill) \
	HOST_RECORD(4, fill) HOST_RECORD(5, fill) HOST_RECORD(6, fill) HOST_RECORD(7, fill)
#define HOST_RECORDS_NULL_1 HOST_RECORD_NULL(1) HOST_RECORD_NULL(2) HOST_RECORD_NULL(3)

/* Without argument: GroupApi's states. */
static inline void host_state_null(const struct host_plugin *plugin, void *handle,
				   enum abi_state state)
{
	switch (plugin->version) {
		HOST_RECORDS_NULL_1
		HOST_RECORD_NULL(4)
		HOST_RECORD_NULL(5)
		HOST_RECORD_NULL(6)
		HOST_RECORD_NULL(7)
	}
}

/* ProxyOp: state 19, argument all zero. Not before v4. */
static inline void host_state_proxy_op(const struct host_plugin *plugin, void *handle,
				       enum abi_state state)
{
	switch (plugin->version) {
		HOST_RECORDS_4((void)0)
	}
}

/* ProxyOp: states 0 to 7 of v1 to v3. */
static inline void host_state_proxy_op_old(const struct host_plugin *plugin, void *handle,
					   enum abi_state state, uint64_t bytes, int steps)
{
	switch (plugin->version) {
		HOST_RECORDS_1({
			a.proxy_op.trans_bytes = bytes;
			a.proxy_op.steps = steps;
		})
	}
}

/* ProxyStep: no argument before v4. */
static inline void host_state_proxy_step(const struct host_plugin *plugin, void *handle,
					 enum abi_state state, uint64_t bytes)
{
	switch (plugin->version) {
		HOST_RECORDS_NULL_1
		HOST_RECORDS_4(a.proxy_step.trans_bytes = bytes)
	}
}

static inline void host_state_proxy_ctrl(const struct host_plugin *plugin, void *handle,
					 enum abi_state state, int appended)
{
	switch (plugin->version) {
		HOST_RECORDS_1(a.proxy_ctrl.appended = appended)
		HOST_RECORDS_4(a.proxy_ctrl.appended = appended)
	}
}

/* KernelCh: state 22, since v4. */
static inline void host_state_kernel_ch(const struct host_plugin *plugin, void *handle,
					uint64_t gpu_ns)
{
	const enum abi_state state = ABI_KERNEL_CH_STOP;

	switch (plugin->version) {
		HOST_RECORDS_4(a.kernel_ch.gpu_ns = gpu_ns)
	}
}

/* NetPlugin: state 21, since v4. */
static inline void host_state_net_plugin(const struct host_plugin *plugin, void *handle, void *data)
{
	const enum abi_state state = ABI_NET_PLUGIN_UPDATE;

	switch (plugin->version) {
		HOST_RECORDS_4(a.net_plugin.data = data)
	}
}

/* KernelPhase: state 31, v7. */
static inline void host_state_kernel_phase(const struct host_plugin *plugin, void *handle,
					   uint64_t gpu_ns)
{
	const enum abi_state state = ABI_KERNEL_PHASE_STOP;

	switch (plugin->version) {
		HOST_RECORD(7, a.kernel_phase.gpu_ns = gpu_ns)
	}
}

/* ---- the rest -------------------------------------------------------------------------------- */

#define HOST_EACH_VERSION(call_of)          \
	switch (plugin->version) {          \
	case 1:                             \
		return plugin->v1->call_of; \
	case 2:                             \
		return plugin->v2->call_of; \
	case 3:                             \
		return plugin->v3->call_of; \
	case 4:                             \
		return plugin->v4->call_of; \
	case 5:                             \
		return plugin->v5->call_of; \
	case 6:                             \
		return plugin->v6->call_of; \
	case 7:                             \
		return plugin->v7->call_of; \
	default:                            \
		return NCCL_SUCCESS;        \
	}

static inline int host_stop(const struct host_plugin *plugin, void *handle)
{
	HOST_EACH_VERSION(stop_event(handle))
}

static inline int host_finalize(const struct host_plugin *plugin, void *context)
{
	HOST_EACH_VERSION(finalize(context))
}

struct host_identity {
	const char *name;
	uint64_t hash;
	int nnodes;
	int nranks;
	int rank;
	abi_log_fn log;
};

static inline int host_init(const struct host_plugin *plugin, void **context, int *mask,
			    const struct host_identity *who)
{
	switch (plugin->version) {
	case 1:
		return plugin->v1->init(context, mask);
	case 2:
		return plugin->v2->init(context, mask);
	case 3:
		return plugin->v3->init(context, mask);
	case 4:
		return plugin->v4->init(context, mask, who->name, who->hash, who->nnodes,
					who->nranks, who->rank, who->log);
	case 5:
		return plugin->v5->init(context, who->hash, mask, who->name, who->nnodes,
					who->nranks, who->rank, who->log);
	case 6:
		return plugin->v6->init(context, who->hash, mask, who->name, who->nnodes,
					who->nranks, who->rank, who->log);
	case 7:
		return plugin->v7->init(context, who->hash, mask, who->name, who->nnodes,
					who->nranks, who->rank, who->log);
	default:
		return NCCL_SUCCESS;
	}
}

#endif
