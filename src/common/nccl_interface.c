/* Tables with one row per range of interface versions. */
#include "common/nccl_interface.h"

#include "common/attributes.h"

static const struct kernel_policy policies[] = {
	{
		.first = 1,
		.last = 2,
		.by_default = KERNEL_EVENTS_ABSENT,
		.why = "NCCL before 2.26 has none",
		.risk = "",
	},
	{
		.first = 3,
		.last = 3,
		.by_default = KERNEL_EVENTS_OFF,
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
		.why = "NCCL 2.27 fails with them in all-to-all",
		.risk = "all-to-all can fail with \"Proxy append out of bounds\"",
	},
	{
		.first = 5,
		.last = 5,
		.by_default = KERNEL_EVENTS_OFF,
		.why = "CUDA events give the times; kernel events slow down small collectives",
		.risk = "slows down small and medium collectives within a node, takes 33 MiB of "
			"/dev/shm "
			"per communicator and keeps a proxy thread busy",
	},
	{
		.first = 6,
		.last = 6,
		.by_default = KERNEL_EVENTS_OFF,
		.why = "CUDA events give the times; NCCL 2.29 and 2.30 can hang with kernel events "
		       "in ncclCommDestroy after a CUDA graph with a Broadcast",
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
		.why = "CUDA events give the times; NCCL 2.31 slows down medium-size collectives "
		       "by 4 to 13% with kernel events",
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
	static const char *const names[] = { "off", "off", "on" };

	return names[events <= KERNEL_EVENTS_ON ? events : KERNEL_EVENTS_ABSENT];
}

const char *sampling_state_text(uint64_t state)
{
	static const char *const texts[] = {
		[SAMPLING_NONE] = "",
		[SAMPLING_ACTIVE] = "a share of the operations is timed",
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
		[SAMPLING_BY_CUDA] = "timing ended: the CUDA driver answered with an error",
		[SAMPLING_NO_DRIVER] = "not timed: the process has not loaded a CUDA driver with "
				       "the necessary functions",
		[SAMPLING_NO_CONTEXT] =
			"not timed: no CUDA context was current when NCCL loaded the plugin, or "
			"there are too many",
		[SAMPLING_BY_MODE] = "not timed: with NCCL_LAUNCH_MODE=GROUP or "
				     "CUDA_LAUNCH_BLOCKING=1 events would disturb the launches",
		[SAMPLING_NO_THREAD] = "not timed: no thread could be started to read the times",
	};

	_Static_assert(ARRAY_LENGTH(texts) == SAMPLING_STATES, "a state has no text");
	return state < SAMPLING_STATES ? texts[state] : "";
}

static const struct op_blind_spot spots[] = {
	{ "one_rank", 1, 7,
	  "Collectives on a communicator of one rank show nothing: NCCL runs them as plain "
	  "copies." },
	{ "empty", 1, 7, "Collectives with a count of 0 show nothing: NCCL drops them." },
	{ "graph_replays_without_kernel_events", 1, 7,
	  "Replays of CUDA graphs within one node show nothing unless kernel events were on when "
	  "the graph was captured. From 2.28 on some replays of large launches are read from CUDA "
	  "events in the graph." },
	{ "eager_beside_graphs", 1, 1,
	  "While a captured CUDA graph of a communicator exists, its other operations within one "
	  "node show nothing." },
	{ "launch_blocking", 1, 3,
	  "With CUDA_LAUNCH_BLOCKING=1 operations within one node show nothing." },
	{ "self_in_place", 1, 4,
	  "A send and receive of a rank with itself in the same buffer shows nothing." },
	{ "self_in_place_call_only", 5, 7,
	  "A send and receive of a rank with itself in the same buffer shows its calls and nothing "
	  "of its execution." },
	{ "self_untimed", 1, 6, "A send or receive of a rank with itself has no duration." },
	{ "symmetric", 4, 4, "Collectives on symmetric memory (registered windows) show nothing." },
	{ "symmetric_call_only", 5, 6,
	  "Collectives on symmetric memory (registered windows) show their calls and nothing of "
	  "their execution." },
	{ "symmetric_replays", 7, 7,
	  "Replays of CUDA graphs with collectives on symmetric memory have no duration." },
	{ "broadcast_call_only", 6, 7,
	  "Broadcast shows its call and nothing of its execution, unless NCCL_ALLGATHERV_ENABLE=0 "
	  "is set." },
	{ "copy_engine", 5, 5, "Collectives run by copy engines show nothing." },
	{ "copy_engine_untimed", 6, 7,
	  "Collectives run by copy engines show when they were enqueued, not when they ended." },
	{ "all_to_all_as_pairs", 5, 7,
	  "AlltoAll, Gather and Scatter show as the sends and receives they are made of." },
	{ "one_sided", 6, 6, "PutSignal, Signal and WaitSignal show nothing." },
	{ "one_sided_unsure", 7, 7,
	  "PutSignal, Signal and WaitSignal may show nothing (not tested)." },
	{ "collnet", 1, 7, "Collectives through CollNet show no progress of the network." },
	{ "device_api", 5, 7,
	  "Transfers by user kernels through NCCL's device interface show nothing." },
	{ "communicator_size", 1, 3,
	  "The number of ranks and nodes of a communicator is unknown, so AllGather and "
	  "ReduceScatter "
	  "have an unknown size." },
	{ "datatype_in_bytes", 1, 4,
	  "AllGather and Broadcast have an unknown datatype: NCCL reports them in bytes." },
	{ "datatype_of_replays", 5, 7,
	  "Replays of AllGather and Broadcast in CUDA graphs have an unknown datatype: NCCL "
	  "reports "
	  "them in bytes." },
	{ "inside_node", 1, 7,
	  "Transfers within a node (NVLink, PCIe, shared memory) show no peer: only network "
	  "events show which rank an operation waits for." },
};

const struct op_blind_spot *op_blind_spot(unsigned int interface, size_t index)
{
	for (size_t i = 0; i < ARRAY_LENGTH(spots); i++) {
		if (interface != 0 && (interface < spots[i].first || interface > spots[i].last))
			continue;
		if (index-- == 0)
			return &spots[i];
	}
	return NULL;
}

const char *op_interface_releases(unsigned int interface)
{
	static const char *const releases[OP_INTERFACES + 1] = {
		"?", "2.23", "2.24-2.25", "2.26", "2.27", "2.28", "2.29-2.30", "2.31 or later",
	};

	return releases[interface <= OP_INTERFACES ? interface : 0];
}

unsigned int op_interface_of_release(unsigned int version)
{
	static const unsigned int first_releases[OP_INTERFACES] = { 22300, 22400, 22600, 22700,
								    22800, 22900, 23100 };
	unsigned int interface = 0;

	while (interface < OP_INTERFACES && version >= first_releases[interface])
		interface++;
	return interface;
}

const char *op_times_missed(void)
{
	return "operations within a node have no duration, and operations over the network have "
	       "the duration of their transfers";
}
