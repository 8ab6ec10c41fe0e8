/*
 * Which bits of the mask make NCCL send which event: a child's bit brings its parents. Releases
 * differ in that, so there is a row per generation.
 */
#ifndef HOST_MASK_H
#define HOST_MASK_H

#include "programs/sim/host.h"

enum {
	HOST_MASK_PROXY = ABI_PROXY_OP | ABI_PROXY_STEP,
	HOST_MASK_PROXY_NET = HOST_MASK_PROXY | ABI_NET_PLUGIN,
	HOST_MASK_CHILDREN = HOST_MASK_PROXY_NET | ABI_KERNEL_CH,
	HOST_MASK_CE = ABI_CE_COLL | ABI_CE_SYNC | ABI_CE_BATCH,
	HOST_MASK_TASKS = ABI_COLL | ABI_P2P | HOST_MASK_CHILDREN,
};

/* For each event, by bit: any of these asks for it. */
struct host_asks {
	int bits[HOST_EVENTS];
};

const struct host_asks *host_asks_of(int release);

static inline bool host_is_asked(const struct host_asks *asks, int mask, enum abi_event event)
{
	return (mask & asks->bits[__builtin_ctz((unsigned int)event)]) != 0;
}

/* Since when the interface has it. */
static inline bool host_version_has(int version, enum abi_event event)
{
	static const int since[HOST_EVENTS] = { 1, 1, 1, 1, 1, 1, 3, 3, 5, 5, 5, 5, 6, 6, 6, 7 };

	return version >= since[__builtin_ctz((unsigned int)event)];
}

#endif
