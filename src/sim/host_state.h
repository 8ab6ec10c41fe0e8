/*
 * How an event goes on and ends, and a plugin's first and last call: see host_event.h.
 */
#ifndef HOST_STATE_H
#define HOST_STATE_H

#include <string.h>

#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"
#include "sim/host.h"

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

/* Without argument: GroupApi's states. */
static inline void host_state_null(const struct host_plugin *plugin, void *handle,
				   enum abi_state state)
{
	switch (plugin->version) {
		HOST_RECORD_NULL(1)
		HOST_RECORD_NULL(2)
		HOST_RECORD_NULL(3)
		HOST_RECORD_NULL(4)
		HOST_RECORD_NULL(5)
		HOST_RECORD_NULL(6)
		HOST_RECORD_NULL(7)
	}
}

/* ProxyOp: state 19, argument all zero. Before v4 there is none. */
static inline void host_state_proxy_op(const struct host_plugin *plugin, void *handle,
				       enum abi_state state)
{
	switch (plugin->version) {
		HOST_RECORD(4, (void)0)
		HOST_RECORD(5, (void)0)
		HOST_RECORD(6, (void)0)
		HOST_RECORD(7, (void)0)
	}
}

/* ProxyOp: states 0 to 7 of v1 to v3. */
static inline void host_state_proxy_op_old(const struct host_plugin *plugin, void *handle,
					   enum abi_state state, uint64_t bytes, int steps)
{
#define HOST_FILL_OP_OLD                        \
	do {                                    \
		a.proxy_op.trans_bytes = bytes; \
		a.proxy_op.steps = steps;       \
	} while (0)
	switch (plugin->version) {
		HOST_RECORD(1, HOST_FILL_OP_OLD)
		HOST_RECORD(2, HOST_FILL_OP_OLD)
		HOST_RECORD(3, HOST_FILL_OP_OLD)
	}
#undef HOST_FILL_OP_OLD
}

/* ProxyStep: no argument before v4. */
static inline void host_state_proxy_step(const struct host_plugin *plugin, void *handle,
					 enum abi_state state, uint64_t bytes)
{
	switch (plugin->version) {
		HOST_RECORD_NULL(1)
		HOST_RECORD_NULL(2)
		HOST_RECORD_NULL(3)
		HOST_RECORD(4, a.proxy_step.trans_bytes = bytes)
		HOST_RECORD(5, a.proxy_step.trans_bytes = bytes)
		HOST_RECORD(6, a.proxy_step.trans_bytes = bytes)
		HOST_RECORD(7, a.proxy_step.trans_bytes = bytes)
	}
}

static inline void host_state_proxy_ctrl(const struct host_plugin *plugin, void *handle,
					 enum abi_state state, int appended)
{
	switch (plugin->version) {
		HOST_RECORD(1, a.proxy_ctrl.appended = appended)
		HOST_RECORD(2, a.proxy_ctrl.appended = appended)
		HOST_RECORD(3, a.proxy_ctrl.appended = appended)
		HOST_RECORD(4, a.proxy_ctrl.appended = appended)
		HOST_RECORD(5, a.proxy_ctrl.appended = appended)
		HOST_RECORD(6, a.proxy_ctrl.appended = appended)
		HOST_RECORD(7, a.proxy_ctrl.appended = appended)
	}
}

/* KernelCh: state 22, since v4. */
static inline void host_state_kernel_ch(const struct host_plugin *plugin, void *handle,
					uint64_t gpu_ns)
{
	const enum abi_state state = ABI_KERNEL_CH_STOP;

	switch (plugin->version) {
		HOST_RECORD(4, a.kernel_ch.gpu_ns = gpu_ns)
		HOST_RECORD(5, a.kernel_ch.gpu_ns = gpu_ns)
		HOST_RECORD(6, a.kernel_ch.gpu_ns = gpu_ns)
		HOST_RECORD(7, a.kernel_ch.gpu_ns = gpu_ns)
	}
}

/* NetPlugin: state 21, since v4. */
static inline void host_state_net_plugin(const struct host_plugin *plugin, void *handle, void *data)
{
	const enum abi_state state = ABI_NET_PLUGIN_UPDATE;

	switch (plugin->version) {
		HOST_RECORD(4, a.net_plugin.data = data)
		HOST_RECORD(5, a.net_plugin.data = data)
		HOST_RECORD(6, a.net_plugin.data = data)
		HOST_RECORD(7, a.net_plugin.data = data)
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
