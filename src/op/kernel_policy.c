#include "op/kernel_policy.h"

#include <stddef.h>

#include "base/attributes.h"

static const struct kernel_policy policies[] = {
	{
		.first = 1,
		.last = 2,
		.by_default = KERNEL_EVENTS_ABSENT,
		.no_allgatherv = KERNEL_EVENTS_ABSENT,
		.why = "NCCL before 2.26 has none",
		.risk = "",
	},
	{
		.first = 3,
		.last = 3,
		.by_default = KERNEL_EVENTS_OFF,
		.no_allgatherv = KERNEL_EVENTS_OFF,
		.why = "NCCL 2.26 fails with them in all-to-all, hangs with them in CUDA graphs "
		       "(2.26.2), "
		       "and gives no GPU times",
		.risk = "all-to-all can fail with \"Proxy append out of bounds\"; 2.26.2 hangs in "
			"ncclCommDestroy after CUDA graphs",
	},
	{
		.first = 4,
		.last = 4,
		.by_default = KERNEL_EVENTS_OFF,
		.no_allgatherv = KERNEL_EVENTS_OFF,
		.why = "NCCL 2.27 fails with them in all-to-all",
		.risk = "all-to-all can fail with \"Proxy append out of bounds\"",
	},
	{
		.first = 5,
		.last = 5,
		.by_default = KERNEL_EVENTS_SAMPLED,
		.no_allgatherv = KERNEL_EVENTS_SAMPLED,
		.can_sample = true,
		.why = "safe to sample in processes without CUDA graphs and without Send and Recv",
		.risk = "slows down small and medium collectives within a node, takes 33 MiB of "
			"/dev/shm "
			"per communicator and keeps a proxy thread busy",
	},
	{
		.first = 6,
		.last = 6,
		.by_default = KERNEL_EVENTS_OFF,
		.no_allgatherv = KERNEL_EVENTS_SAMPLED,
		.can_sample = true,
		.why = "NCCL 2.29 and 2.30 can hang with them in ncclCommDestroy after a CUDA "
		       "graph "
		       "with a Broadcast; with NCCL_ALLGATHERV_ENABLE=0 they are sampled",
		.risk = "can hang in ncclCommDestroy after a CUDA graph with a Broadcast unless "
			"NCCL_ALLGATHERV_ENABLE=0 is set; slows down small and medium collectives "
			"within a "
			"node, takes 33 MiB of /dev/shm per communicator and keeps a proxy thread "
			"busy",
	},
	{
		.first = 7,
		.last = 7,
		.by_default = KERNEL_EVENTS_OFF,
		.no_allgatherv = KERNEL_EVENTS_OFF,
		.why = "NCCL 2.31 slows down medium-size collectives by 4 to 13% with them, and "
		       "its "
		       "counters drift when they are switched at run time",
		.risk = "slows down medium-size collectives by 4 to 13%",
	},
};

const struct kernel_policy *kernel_policy_of(unsigned int interface)
{
	for (size_t i = 0; i < ARRAY_LENGTH(policies); i++)
		if (interface >= policies[i].first && interface <= policies[i].last)
			return &policies[i];
	return NULL;
}

const char *kernel_events_name(enum kernel_events events)
{
	static const char *const names[] = { "none", "off", "sampled", "on" };

	return names[events <= KERNEL_EVENTS_ON ? events : KERNEL_EVENTS_ABSENT];
}
