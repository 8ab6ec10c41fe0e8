#include "programs/sim/host_mask.h"

/* 2.23 to 2.25: a Group bit or a P2p bit alone brings no Coll and no P2p. */
static const struct host_asks asks_2_23 = { {
	[0] = ABI_COLL | ABI_P2P | HOST_MASK_PROXY,
	[1] = ABI_COLL | HOST_MASK_PROXY,
	[2] = ABI_COLL | HOST_MASK_PROXY,
	[3] = HOST_MASK_PROXY,
	[4] = ABI_PROXY_STEP,
	[5] = ABI_PROXY_CTRL,
} };

#define ASKS_SINCE_2_26                                                         \
	[0] = ABI_GROUP | HOST_MASK_TASKS, [1] = ABI_COLL | HOST_MASK_CHILDREN, \
	[2] = ABI_P2P | HOST_MASK_CHILDREN, [3] = HOST_MASK_PROXY_NET,          \
	[4] = ABI_PROXY_STEP | ABI_NET_PLUGIN, [5] = ABI_PROXY_CTRL, [7] = ABI_NET_PLUGIN

static const struct host_asks asks_2_26 = { { ASKS_SINCE_2_26, [6] = ABI_KERNEL_CH } };

#define ASKS_SINCE_2_28                                                                            \
	ASKS_SINCE_2_26,                                                                           \
		[8] = ABI_GROUP_API | ABI_COLL_API | ABI_P2P_API | ABI_KERNEL_LAUNCH | ABI_GROUP | \
		      HOST_MASK_TASKS | HOST_MASK_CE,                                              \
		[9] = ABI_COLL_API | ABI_COLL | HOST_MASK_CHILDREN | HOST_MASK_CE,                 \
		[10] = ABI_P2P_API | ABI_P2P | HOST_MASK_CHILDREN, [11] = ABI_KERNEL_LAUNCH,       \
		[12] = HOST_MASK_CE, [13] = ABI_CE_SYNC, [14] = ABI_CE_BATCH

static const struct host_asks asks_2_28 = { { ASKS_SINCE_2_28, [6] = ABI_KERNEL_CH } };

/* 2.31: phases force their kernel channel, and with it all that a kernel channel brings. */
static const struct host_asks asks_2_31 = { {
	[0] = ABI_GROUP | HOST_MASK_TASKS | ABI_KERNEL_PHASE,
	[1] = ABI_COLL | HOST_MASK_CHILDREN | ABI_KERNEL_PHASE,
	[2] = ABI_P2P | HOST_MASK_CHILDREN | ABI_KERNEL_PHASE,
	[3] = HOST_MASK_PROXY_NET,
	[4] = ABI_PROXY_STEP | ABI_NET_PLUGIN,
	[5] = ABI_PROXY_CTRL,
	[6] = ABI_KERNEL_CH | ABI_KERNEL_PHASE,
	[7] = ABI_NET_PLUGIN,
	[8] = ABI_GROUP_API | ABI_COLL_API | ABI_P2P_API | ABI_KERNEL_LAUNCH | ABI_GROUP |
	      HOST_MASK_TASKS | HOST_MASK_CE | ABI_KERNEL_PHASE,
	[9] = ABI_COLL_API | ABI_COLL | HOST_MASK_CHILDREN | HOST_MASK_CE | ABI_KERNEL_PHASE,
	[10] = ABI_P2P_API | ABI_P2P | HOST_MASK_CHILDREN | ABI_KERNEL_PHASE,
	[11] = ABI_KERNEL_LAUNCH,
	[12] = HOST_MASK_CE,
	[13] = ABI_CE_SYNC,
	[14] = ABI_CE_BATCH,
	[15] = ABI_KERNEL_PHASE,
} };

const struct host_asks *host_asks_of(int release)
{
	if (release >= 23100)
		return &asks_2_31;
	if (release >= 22800)
		return &asks_2_28;
	return release >= 22600 ? &asks_2_26 : &asks_2_23;
}
