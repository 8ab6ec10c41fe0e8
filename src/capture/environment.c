/*
 * Values are taken with getenv, one name at a time: environ itself is never walked, as other threads may grow it.
 * Names come from a list of those that matter most, and then from what the process was started with
 * (/proc/self/environ), for the many that begin with one of a few prefixes.
 */
#include "capture/environment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/secret.h"
#include "base/text.h"

enum {
	NAME_MOST = 64,
	FOUND_MOST = 256, /* of prefixes: each costs a getenv */
};

/* These are asked for by name, so they are found when the program set them itself, too. */
static const char *const names[] = {
	"NCCL_DEBUG",
	"NCCL_DEBUG_SUBSYS",
	"NCCL_DEBUG_FILE",
	"NCCL_SOCKET_IFNAME",
	"NCCL_IB_DISABLE",
	"NCCL_IB_HCA",
	"NCCL_NET",
	"NCCL_NET_PLUGIN",
	"NCCL_NET_GDR_LEVEL",
	"NCCL_NET_GDR_READ",
	"NCCL_NET_GDR_C2C",
	"NCCL_DMABUF_ENABLE",
	"NCCL_P2P_DISABLE",
	"NCCL_P2P_LEVEL",
	"NCCL_SHM_DISABLE",
	"NCCL_ALGO",
	"NCCL_PROTO",
	"NCCL_MIN_NCHANNELS",
	"NCCL_MAX_NCHANNELS",
	"NCCL_MIN_CTAS",
	"NCCL_MAX_CTAS",
	"NCCL_NTHREADS",
	"NCCL_BUFFSIZE",
	"NCCL_P2P_NET_CHUNKSIZE",
	"NCCL_MIN_P2P_NCHANNELS",
	"NCCL_MAX_P2P_NCHANNELS",
	"NCCL_NVLS_ENABLE",
	"NCCL_MNNVL_ENABLE",
	"NCCL_CUMEM_ENABLE",
	"NCCL_CUMEM_HOST_ENABLE",
	"NCCL_PXN_DISABLE",
	"NCCL_P2P_PXN_LEVEL",
	"NCCL_CROSS_NIC",
	"NCCL_COLLNET_ENABLE",
	"NCCL_IB_TIMEOUT",
	"NCCL_IB_RETRY_CNT",
	"NCCL_IB_GID_INDEX",
	"NCCL_IB_TC",
	"NCCL_IB_SL",
	"NCCL_IB_QPS_PER_CONNECTION",
	"NCCL_IB_SPLIT_DATA_ON_QPS",
	"NCCL_IB_ADAPTIVE_ROUTING",
	"NCCL_IB_AR_THRESHOLD",
	"NCCL_IB_PCI_RELAXED_ORDERING",
	"NCCL_IB_MERGE_NICS",
	"NCCL_NET_MERGE_LEVEL",
	"NCCL_NET_SHARED_BUFFERS",
	"NCCL_NET_SHARED_COMMS",
	"NCCL_OOB_NET_IFNAME",
	"NCCL_OOB_NET_ENABLE",
	"NCCL_SOCKET_NTHREADS",
	"NCCL_NSOCKS_PERTHREAD",
	"NCCL_SOCKET_FAMILY",
	"NCCL_COMM_ID",
	"NCCL_HOSTID",
	"NCCL_TOPO_FILE",
	"NCCL_TOPO_DUMP_FILE",
	"NCCL_GRAPH_FILE",
	"NCCL_GRAPH_MIXING_SUPPORT",
	"NCCL_LAUNCH_MODE",
	"NCCL_LAUNCH_ORDER_IMPLICIT",
	"NCCL_CHECKS_DISABLE",
	"NCCL_CHECK_POINTERS",
	"NCCL_IGNORE_CPU_AFFINITY",
	"NCCL_IGNORE_DISABLED_P2P",
	"NCCL_SET_STACK_SIZE",
	"NCCL_WORK_FIFO_BYTES",
	"NCCL_PROFILER_PLUGIN",
	"NCCL_TUNER_PLUGIN",
	"NCCL_TUNER_CONFIG_PATH",
	"NCCL_ENV_PLUGIN",
	"NCCL_CONF_FILE",
	"NCCL_RAS_ENABLE",
	"NCCL_RAS_ADDR",
	"NCCL_BLOCKING_WAIT",
	"NCCL_ASYNC_ERROR_HANDLING",
	"NCCL_TIMEOUT",
	"TORCH_NCCL_BLOCKING_WAIT",
	"TORCH_NCCL_ASYNC_ERROR_HANDLING",
	"TORCH_NCCL_ENABLE_MONITORING",
	"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
	"TORCH_NCCL_DUMP_ON_TIMEOUT",
	"TORCH_NCCL_TRACE_BUFFER_SIZE",
	"TORCH_NCCL_DESYNC_DEBUG",
	"TORCH_NCCL_ENABLE_TIMING",
	"TORCH_NCCL_HIGH_PRIORITY",
	"TORCH_NCCL_AVOID_RECORD_STREAMS",
	"TORCH_NCCL_USE_COMM_NONBLOCKING",
	"TORCH_NCCL_NAN_CHECK",
	"TORCH_NCCL_CUDA_EVENT_CACHE",
	"TORCH_DISTRIBUTED_DEBUG",
	"CUDA_VISIBLE_DEVICES",
	"CUDA_DEVICE_MAX_CONNECTIONS",
	"CUDA_LAUNCH_BLOCKING",
	"CUDA_DEVICE_ORDER",
	"CUDA_MODULE_LOADING",
	"CUDA_MPS_PIPE_DIRECTORY",
	"NVIDIA_VISIBLE_DEVICES",
	"MASTER_ADDR",
	"MASTER_PORT",
	"GLOO_SOCKET_IFNAME",
	"TP_SOCKET_IFNAME",
	"OMP_NUM_THREADS",
	"FI_PROVIDER",
	"FI_EFA_USE_DEVICE_RDMA",
	"FI_EFA_FORK_SAFE",
	"FI_EFA_SET_CUDA_SYNC_MEMOPS",
	"OFI_NCCL_PROTOCOL",
	"UCX_TLS",
	"UCX_NET_DEVICES",
	"SLURM_JOB_NUM_NODES",
	"SLURM_NNODES",
	"SLURM_NTASKS",
	"SLURM_NTASKS_PER_NODE",
	"SLURM_CPUS_PER_TASK",
	"SLURM_GPUS_ON_NODE",
	"SLURM_CPU_BIND",
	"SLURM_STEP_ID",
	"SLURM_RESTART_COUNT",
};

static const char *const prefixes[] = {
	"NCCL_", "TORCH_NCCL_",	 "RINGSIDE_",	 "OFI_NCCL_",		"UCX_",
	"FI_",	 "OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_oob_tcp_if",
};

static bool is_listed(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool has_prefix(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool environment_has(const char *name)
{
	return name[0] != '\0' && !secret_is_name(name) && (is_listed(name) || has_prefix(name));
}

/* Another thread may be changing it: every step is bounded by itself. One whose end is out of sight could hide a
 * password there, so nothing of it is kept. */
static void copy_value(char *to, size_t size, const char *from)
{
	size_t length = 0;

	for (; length < size - 1 && from[length] != '\0'; length++) {
		unsigned char byte = (unsigned char)from[length];

		to[length] = byte < 0x20 || byte == 0x7f ? '?' : (char)byte;
	}
	to[length] = '\0';
	if (length == size - 1)
		text_copy(to, size, "(too long to be kept)");
}

/* A name may be there twice: getenv gives the first. */
static bool is_there(const struct environment *environment, const char *start)
{
	size_t length = strlen(start);
	const char *at = environment->text, *end = at + environment->bytes;

	while ((at = memmem(at, (size_t)(end - at), start, length)) != NULL) {
		if (at == environment->text || at[-1] == '\n')
			return true;
		at++;
	}
	return false;
}

static void add(struct environment *environment, const char *name)
{
	char value[1024], line[NAME_MOST + 16 + ENVIRONMENT_VALUE_BYTES];
	const char *found = getenv(name);
	size_t length;

	if (found == NULL)
		return;
	copy_value(value, sizeof(value), found);
	if (secret_is_value(value))
		text_copy(value, sizeof(value), "***");
	if (strlen(value) > ENVIRONMENT_VALUE_BYTES)
		memcpy(value + ENVIRONMENT_VALUE_BYTES - 3, "...", 4);
	text_format(line, sizeof(line), "env.%s=", name);
	if (is_there(environment, line))
		return;
	text_format(line, sizeof(line), "env.%s=%s\n", name, value);
	length = strlen(line);
	if (length > sizeof(environment->text) - environment->bytes) {
		environment->left_out++;
		return;
	}
	memcpy(environment->text + environment->bytes, line, length);
	environment->bytes += length;
}

struct reader {
	struct environment *environment;
	char name[NAME_MOST + 1];
	size_t length;
	bool is_name; /* not yet behind '=' */
	unsigned int found;
};

static void take_name(struct reader *reader)
{
	reader->name[reader->length] = '\0';
	if (!has_prefix(reader->name) || secret_is_name(reader->name) || is_listed(reader->name))
		return;
	if (reader->length == NAME_MOST) {
		reader->environment->left_out++;
		return;
	}
	for (const char *at = reader->name; *at != '\0'; at++)
		if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_",
			   *at) == NULL)
			return;
	if (reader->found++ < FOUND_MOST)
		add(reader->environment, reader->name);
	else
		reader->environment->left_out++;
}

/* "NAME=VALUE\0NAME=VALUE\0", cut anywhere; a title may have been written over it. */
static void take_bytes(struct reader *reader, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\0') {
			reader->is_name = true;
			reader->length = 0;
		} else if (reader->is_name && bytes[i] == '=') {
			take_name(reader);
			reader->is_name = false;
		} else if (reader->is_name && reader->length < NAME_MOST)
			reader->name[reader->length++] = bytes[i];
	}
}

void environment_read(struct environment *environment)
{
	struct reader reader = { .environment = environment, .is_name = true };
	char bytes[4096];
	ssize_t got;
	int fd;

	environment->bytes = 0;
	environment->left_out = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		add(environment, names[i]);
	fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return;
	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		take_bytes(&reader, bytes, (size_t)got);
	close(fd);
}
