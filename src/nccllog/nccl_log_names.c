/* Words for the numbers of this room. */
#include "common/attributes.h"
#include "nccllog/nccl_log.h"

const char *nccl_log_phase_name(enum nccl_log_phase phase)
{
	static const char *const names[NCCL_LOG_PHASES] = {
		[NCCL_LOG_KERNELS] = "kernels",
		[NCCL_LOG_ALLOC] = "alloc",
		[NCCL_LOG_BOOTSTRAP] = "bootstrap",
		[NCCL_LOG_ALLGATHERS] = "allgathers",
		[NCCL_LOG_TOPO] = "topo",
		[NCCL_LOG_GRAPHS] = "graphs",
		[NCCL_LOG_CONNECTIONS] = "connections",
		[NCCL_LOG_REST] = "rest",
	};

	return (size_t)phase < NCCL_LOG_PHASES ? names[phase] : "?";
}

const char *nccl_log_transport_name(enum nccl_log_transport transport)
{
	static const char *const names[NCCL_LOG_TRANSPORTS] = {
		[NCCL_LOG_P2P_DIRECT] = "P2P/direct pointer",
		[NCCL_LOG_P2P_IPC] = "P2P/IPC",
		[NCCL_LOG_P2P_CUMEM] = "P2P/CUMEM",
		[NCCL_LOG_P2P_INDIRECT] = "P2P/indirect",
		[NCCL_LOG_P2P_OTHER] = "P2P",
		[NCCL_LOG_SHM] = "SHM",
		[NCCL_LOG_NET] = "NET",
		[NCCL_LOG_COLLNET] = "COLLNET",
	};

	return (size_t)transport < NCCL_LOG_TRANSPORTS ? names[transport] : "?";
}

const char *nccl_log_kind_name(enum nccl_log_kind kind)
{
	static const char *const names[NCCL_LOG_KINDS] = {
		[NCCL_LOG_KIND_OTHER] = "other",
		[NCCL_LOG_KIND_VERSION] = "version",
		[NCCL_LOG_KIND_INIT] = "init",
		[NCCL_LOG_KIND_TIMING] = "timing",
		[NCCL_LOG_KIND_VARIABLE] = "variable",
		[NCCL_LOG_KIND_PLUGIN] = "plugin",
		[NCCL_LOG_KIND_NETWORK] = "network",
		[NCCL_LOG_KIND_NET_DEVICE] = "net_device",
		[NCCL_LOG_KIND_IB] = "ib",
		[NCCL_LOG_KIND_OFI] = "ofi",
		[NCCL_LOG_KIND_GDR] = "gdr",
		[NCCL_LOG_KIND_DMABUF] = "dmabuf",
		[NCCL_LOG_KIND_LINK] = "link",
		[NCCL_LOG_KIND_RING] = "ring",
		[NCCL_LOG_KIND_TREE] = "tree",
		[NCCL_LOG_KIND_CHANNELS] = "channels",
		[NCCL_LOG_KIND_NVLS] = "nvls",
		[NCCL_LOG_KIND_COLLNET] = "collnet",
		[NCCL_LOG_KIND_MNNVL] = "mnnvl",
		[NCCL_LOG_KIND_C2C] = "c2c",
		[NCCL_LOG_KIND_P2P] = "p2p",
		[NCCL_LOG_KIND_TOPOLOGY] = "topology",
		[NCCL_LOG_KIND_GRAPH] = "graph",
		[NCCL_LOG_KIND_TUNING] = "tuning",
		[NCCL_LOG_KIND_CHOICE] = "choice",
		[NCCL_LOG_KIND_OPERATION] = "operation",
		[NCCL_LOG_KIND_CALL] = "call",
		[NCCL_LOG_KIND_WARNING] = "warning",
		[NCCL_LOG_KIND_RETURN] = "return",
		[NCCL_LOG_KIND_BOOTSTRAP] = "bootstrap",
		[NCCL_LOG_KIND_RETRY] = "retry",
		[NCCL_LOG_KIND_PROXY] = "proxy",
		[NCCL_LOG_KIND_MEMORY] = "memory",
		[NCCL_LOG_KIND_REGISTRATION] = "registration",
		[NCCL_LOG_KIND_SHM] = "shm",
		[NCCL_LOG_KIND_AFFINITY] = "affinity",
		[NCCL_LOG_KIND_CONFIG] = "config",
		[NCCL_LOG_KIND_PROFILER] = "profiler",
		[NCCL_LOG_KIND_RAS] = "ras",
		[NCCL_LOG_KIND_TRACE] = "trace",
	};

	return (size_t)kind < NCCL_LOG_KINDS ? names[kind] : "?";
}
