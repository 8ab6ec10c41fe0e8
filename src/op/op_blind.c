#include "op/op_blind.h"

#include "base/attributes.h"

static const struct op_blind_spot spots[] = {
	{ "one_rank", 1, 7,
	  "Collectives on a communicator of one rank show nothing: NCCL runs them as plain "
	  "copies." },
	{ "empty", 1, 7, "Collectives with a count of 0 show nothing: NCCL drops them." },
	{ "graph_replays_without_kernel_events", 1, 7,
	  "Replays of CUDA graphs within one node show nothing unless kernel events were on when "
	  "the graph was captured." },
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
	  "PutSignal, Signal and WaitSignal may show nothing: this was not tried." },
	{ "collnet", 1, 7, "Collectives through CollNet show no progress of the network." },
	{ "device_api", 5, 7,
	  "What kernels of the user send with NCCL's device interface shows nothing." },
	{ "communicator_size", 1, 3,
	  "A communicator's number of ranks and nodes is not told, so AllGather and ReduceScatter "
	  "have an unknown size." },
	{ "datatype_in_bytes", 1, 4,
	  "AllGather and Broadcast have an unknown datatype: NCCL reports them in bytes." },
	{ "datatype_of_replays", 5, 7,
	  "Replays of AllGather and Broadcast in CUDA graphs have an unknown datatype: NCCL "
	  "reports "
	  "them in bytes." },
	{ "inside_node", 1, 7,
	  "Transfers within a node (NVLink, PCIe, shared memory) show no peer: only the network's "
	  "side tells whom an operation waits for." },
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

const char *op_kernel_events_missed(void)
{
	return "operations within a node have no duration, and those over the network have the "
	       "network's";
}
