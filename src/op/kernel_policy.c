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
	static const char *const names[] = { "off", "off", "sampled", "on" };

	return names[events <= KERNEL_EVENTS_ON ? events : KERNEL_EVENTS_ABSENT];
}

const char *sampling_state_text(uint64_t state)
{
	static const char *const texts[] = {
		[SAMPLING_NONE] = "",
		[SAMPLING_ACTIVE] = "a share of the collectives is timed",
		[SAMPLING_ENDING] = "sampling is ending: the process calls Send or Recv",
		[SAMPLING_STUCK] =
			"every operation is timed: a CUDA graph was captured while events "
			"were requested, and switching them off again could hang NCCL",
		[SAMPLING_BY_GRAPH] =
			"sampling ended: the process captured a CUDA graph, and NCCL can "
			"hang when events are switched after that",
		[SAMPLING_BY_P2P] =
			"sampling ended: the process calls Send or Recv, and NCCL can hang "
			"when events are switched between the two",
		[SAMPLING_BY_NVLS] = "sampling ended: the process groups collectives that use NVLS",
		[SAMPLING_BY_BROADCAST] =
			"sampling ended: the process calls Broadcast, which NCCL 2.29 "
			"and later does not count; NCCL_ALLGATHERV_ENABLE=0 helps",
		[SAMPLING_BY_SHM] = "sampling ended: too little room in /dev/shm for another "
				    "communicator",
	};

	_Static_assert(ARRAY_LENGTH(texts) == SAMPLING_STATES, "a state has no text");
	return state < SAMPLING_STATES ? texts[state] : "";
}
