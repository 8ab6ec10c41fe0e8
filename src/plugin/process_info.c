/*
 * Collects what is known about this process from /proc, the environment and CUDA, and writes it to
 * the region as info text.
 */
#include "plugin/process_info.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/op.h"
#include "common/secret.h"
#include "common/text.h"
#include "plugin/abi_common.h"

enum { PAGE_LEAST = 4096 }; /* no machine has smaller pages */

/* The first of these variables that is set. torchrun sets "none" if it was given no id. */
static void read_first(const char *const *names, const char *standard, char *to, size_t size)
{
	for (; *names != NULL; names++) {
		const char *value = getenv(*names);

		if (value != NULL && value[0] != '\0' && strcmp(value, "none") != 0) {
			text_from_field(to, size, value, strlen(value));
			return;
		}
	}
	text_copy(to, size, standard);
}

/*
 * Kubeflow names a pod after its job: NAME-worker-3, or NAME-node-0-3 (Trainer). Returns the length
 * of NAME; 0: another name.
 */
static size_t job_in_pod(const char *pod)
{
	static const char *const roles[] = { "-master-", "-worker-", "-launcher-", "-node-0-" };

	for (size_t i = 0; i < ARRAY_LENGTH(roles); i++) {
		const char *role = NULL, *next = strstr(pod, roles[i]), *index;

		for (; next != NULL; next = strstr(next + 1, roles[i]))
			role = next;
		index = role != NULL ? role + strlen(roles[i]) : "";
		if (role != pod && index[0] != '\0' && index[strspn(index, "0123456789")] == '\0')
			return (size_t)(role - pod);
	}
	return 0;
}

/*
 * In Kubernetes the pod is known from variables that its manifest sets. The namespace is also in a
 * file of the service account, which is not read: nothing here may wait for a file system. A job
 * without any other name gets that of its Kubeflow job.
 */
static void read_pod(struct identity *identity)
{
	static const char *const namespaces[] = { "POD_NAMESPACE", NULL };
	static const char *const pods[] = { "POD_NAME", NULL };
	char pod[256];
	size_t length;

	read_first(namespaces, "", identity->pod_namespace, sizeof(identity->pod_namespace));
	if (getenv("KUBERNETES_SERVICE_HOST") == NULL)
		return;
	read_first(pods, identity->host, pod, sizeof(pod));
	length = job_in_pod(pod);
	if (strcmp(identity->job, "local") == 0 && length > 0)
		text_format(identity->job, sizeof(identity->job), "%s%s%.*s",
			    identity->pod_namespace, identity->pod_namespace[0] != '\0' ? "/" : "",
			    (int)length, pod);
}

void identity_read(struct identity *identity, const char *job)
{
	static const char *const jobs[] = {
		"SLURM_JOB_ID", "SLURM_JOBID", "TORCHELASTIC_RUN_ID", "PBS_JOBID", "LSB_JOBID",
		"JOB_ID",	NULL
	};
	static const char *const ranks[] = { "RANK",	 "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					     "PMI_RANK", "PMIX_RANK",	 NULL };
	static const char *const locals[] = { "LOCAL_RANK", "SLURM_LOCALID",
					      "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
					      NULL };
	static const char *const sizes[] = { "WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
					     "PMI_SIZE", NULL };
	ssize_t got;
	char state;

	*identity = (struct identity){ .pid = (uint64_t)getpid() };
	if (gethostname(identity->host, sizeof(identity->host) - 1) == -1)
		text_copy(identity->host, sizeof(identity->host), "unknown");
	file_read_text("/proc/sys/kernel/random/boot_id", identity->boot_id,
		       sizeof(identity->boot_id));
	identity->boot_id[strcspn(identity->boot_id, "\n")] = '\0';
	got = readlink("/proc/self/exe", identity->exe, sizeof(identity->exe) - 1);
	identity->exe[got > 0 ? got : 0] = '\0';
	identity->pid_namespace = file_proc_namespace("self");
	file_proc_stat("self", &state, &identity->start_ticks);
	read_first(jobs, "local", identity->job, sizeof(identity->job));
	read_pod(identity);
	if (job[0] != '\0')
		text_from_field(identity->job, sizeof(identity->job), job, strlen(job));
	read_first(ranks, "x", identity->rank, sizeof(identity->rank));
	read_first(locals, "", identity->local_rank, sizeof(identity->local_rank));
	read_first(sizes, "", identity->world_size, sizeof(identity->world_size));
}

/*
 * Copy a string from our own memory that may not be mapped: the kernel returns EFAULT where we
 * would crash. The string may end right before unmapped memory, so no read crosses a page boundary.
 * Returns the number of readable bytes including the terminator; -1: a sandbox forbids the call.
 */
static ssize_t read_by_vm(char *to, size_t size, const char *from)
{
	size_t done = 0;

	while (done < size) {
		size_t piece = PAGE_LEAST - (uintptr_t)(from + done) % PAGE_LEAST;
		struct iovec ours, theirs;
		const char *end;

		piece = piece < size - done ? piece : size - done;
		ours = (struct iovec){ to + done, piece };
		theirs = (struct iovec){ (void *)(uintptr_t)(from + done), piece };
		if (process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) != (ssize_t)piece)
			return done > 0 || errno == EFAULT ? (ssize_t)done : -1;
		end = memchr(to + done, '\0', piece);
		if (end != NULL)
			return end - to + 1;
		done += piece;
	}
	return (ssize_t)done;
}

/*
 * The same through a non-blocking pipe, byte by byte. Its ends must never be standard streams, not
 * even for a moment: another thread that prints would block on it or die of SIGPIPE.
 */
static size_t read_by_pipe(char *to, size_t size, const char *from)
{
	struct fd_guard guard = fd_guard_begin();
	size_t done = 0;
	int ends[2];
	bool is_open = pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0;

	fd_guard_end(&guard);
	if (!is_open)
		return 0;
	while (ends[0] > STDERR_FILENO && ends[1] > STDERR_FILENO && done < size &&
	       write(ends[1], from + done, 1) == 1 && read(ends[0], to + done, 1) == 1)
		if (to[done++] == '\0')
			break;
	close(ends[0]);
	close(ends[1]);
	return done;
}

static size_t read_own_memory(char *to, size_t size, const char *from)
{
	ssize_t got = read_by_vm(to, size, from);

	return got >= 0 ? (size_t)got : read_by_pipe(to, size, from);
}

void identity_comm_name(struct comm_info *info, const char *name)
{
	char copy[sizeof(info->name)];
	size_t got;

	if (name == NULL)
		return;
	got = read_own_memory(copy, sizeof(copy), name);
	if (got == sizeof(copy) && copy[got - 1] != '\0')
		info->flags |= COMM_FLAG_NAME_CUT;
	else if (got == 0 || copy[got - 1] != '\0')
		info->flags |= COMM_FLAG_NAME_LOST;
	if (!(info->flags & COMM_FLAG_NAME_LOST))
		text_from_field(info->name, sizeof(info->name), copy, got);
}

struct cuda_uuid {
	unsigned char bytes[16];
};

struct cuda {
	int (*ctx_get_device)(int *device);
	int (*device_get_uuid)(struct cuda_uuid *uuid, int device);
	int (*device_get_bus)(char *text, int size, int device);
};

static bool load_cuda(struct cuda *cuda)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		return false;
	/*
	 * dlsym returns an object pointer; POSIX requires the detour. The handle stays open: the
	 * job uses the library anyway.
	 */
	*(void **)&cuda->ctx_get_device = dlsym(library, "cuCtxGetDevice");
	*(void **)&cuda->device_get_uuid = dlsym(library, "cuDeviceGetUuid");
	*(void **)&cuda->device_get_bus = dlsym(library, "cuDeviceGetPCIBusId");
	return cuda->ctx_get_device && cuda->device_get_uuid && cuda->device_get_bus;
}

void identity_gpu(struct comm_info *info)
{
	struct cuda_uuid uuid;
	struct cuda cuda;
	int device;
	size_t at;

	info->gpu = -1;
	if (!load_cuda(&cuda) || cuda.ctx_get_device(&device) != 0)
		return;
	info->gpu = device;
	if (cuda.device_get_bus(info->gpu_bus, (int)sizeof(info->gpu_bus), device) != 0)
		info->gpu_bus[0] = '\0';
	info->gpu_bus[sizeof(info->gpu_bus) - 1] = '\0';
	if (cuda.device_get_uuid(&uuid, device) != 0)
		return;
	text_copy(info->gpu_uuid, sizeof(info->gpu_uuid), "GPU-");
	at = 4;
	for (int i = 0; i < 16; i++) {
		const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

		text_format(info->gpu_uuid + at, sizeof(info->gpu_uuid) - at, "%s%02x", dash,
			    uuid.bytes[i]);
		at += 2 + strlen(dash);
	}
}

/*
 * Values are read with getenv, one name at a time: environ itself is never walked, because other
 * threads may grow it. Names come from a list of the most important ones, and then from the
 * environment at process start (/proc/self/environ) for the many that begin with one of a few
 * prefixes.
 */

enum {
	NAME_MOST = 64,
	FOUND_MOST = 256, /* of prefixes: each costs a getenv */
};

/* Looked up by name, so they are found even if the program itself set them. */
static const char *const listed_names[] = {
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
	"SLURM_JOB_NAME",
	"SLURM_JOB_USER",
	"SLURM_JOB_ACCOUNT",
	"SLURM_JOB_PARTITION",
	"USER",
	"POD_NAME",
	"POD_NAMESPACE",
	"POD_UID",
	"CONTAINER_NAME",
	"NODE_NAME",
};

static const char *const prefixes[] = {
	"NCCL_", "TORCH_NCCL_",	 "RINGSIDE_",	 "OFI_NCCL_",		"UCX_",
	"FI_",	 "OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_oob_tcp_if",
};

static bool is_listed(const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(listed_names); i++)
		if (strcmp(name, listed_names[i]) == 0)
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

/*
 * Another thread may be changing the value, so every step is bounded by itself. A value too long to
 * be checked to its end could contain a password, so nothing of it is kept.
 */
static void copy_value(char *to, size_t size, const char *from)
{
	size_t length = 0;

	for (; length < size - 1 && from[length] != '\0'; length++) {
		unsigned char byte = (unsigned char)from[length];

		to[length] = byte < 0x20 || byte == 0x7f ? '?' : (char)byte;
	}
	to[length] = '\0';
	if (length == size - 1)
		text_copy(to, size, "(too long to record)");
}

/* A name can occur twice: getenv returns the first. */
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

static void add_variable(struct environment *environment, const char *name)
{
	char value[1024], line[NAME_MOST + 16 + ENVIRONMENT_VALUE_BYTES];
	const char *found = getenv(name);
	size_t length;

	if (found == NULL)
		return;
	copy_value(value, sizeof(value), found);
	if (secret_is_pair(name, value))
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
	bool is_name; /* not past the '=' yet */
	unsigned int found;
};

static void take_name(struct reader *reader)
{
	reader->name[reader->length] = '\0';
	if (!environment_has(reader->name) || is_listed(reader->name))
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
		add_variable(reader->environment, reader->name);
	else
		reader->environment->left_out++;
}

/* "NAME=VALUE\0NAME=VALUE\0", cut anywhere; a process title may have overwritten it. */
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
	for (size_t i = 0; i < ARRAY_LENGTH(listed_names); i++)
		add_variable(environment, listed_names[i]);
	fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return;
	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		take_bytes(&reader, bytes, (size_t)got);
	close(fd);
}

/* One "key=value" line; line breaks in a value become blanks. */
static void add_line(const char *key, const char *value)
{
	uint64_t *used = &recorder.region.header->info_bytes;
	char line[1024];
	size_t length;

	text_format(line, sizeof(line) - 1, "%s=%s", key, value);
	for (char *at = line; *at != '\0'; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	length = strlen(line);
	line[length++] = '\n';
	if (*used + length > REGION_INFO_BYTES)
		return;
	memcpy(recorder.region.info + *used, line, length);
	/*
	 * Readers may be reading already (process_info_add_message()): a line appears as a whole.
	 */
	store_release(used, *used + length);
}

static void add_number(const char *key, uint64_t value)
{
	char text[24];

	text_format(text, sizeof(text), "%llu", (unsigned long long)value);
	add_line(key, text);
}

static void add_labels(const char *labels)
{
	char list[sizeof(((struct settings *)NULL)->labels)], key[128], *at = list, *pair;

	text_copy(list, sizeof(list), labels);
	while ((pair = strsep(&at, ",")) != NULL) {
		char *equals = strchr(pair, '=');

		if (equals == NULL)
			continue;
		*equals = '\0';
		text_format(key, sizeof(key), "label.%s", pair);
		add_line(key, secret_is_pair(pair, equals + 1) ? "***" : equals + 1);
	}
}

static unsigned int messages;

void process_info_add_message(const char *line)
{
	char key[24], text[1000];

	text_format(key, sizeof(key), "message.%u", ++messages);
	text_format(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
	add_line(key, text);
}

static void add_messages(const char *lines)
{
	messages = 0;
	for (const char *at = lines, *stop; (stop = strchr(at, '\n')) != NULL; at = stop + 1)
		process_info_add_message(at);
}

/* Whole lines only, with room left for the last one, which gives the number of missing lines. */
static void add_environment(const struct environment *environment)
{
	uint64_t *used = &recorder.region.header->info_bytes;
	const char *at = environment->text, *end = at + environment->bytes, *stop;
	unsigned int left_out = environment->left_out;

	while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		size_t length = (size_t)(stop + 1 - at);

		if (*used + length + sizeof("env_left_out=4294967295") > REGION_INFO_BYTES)
			left_out++;
		else {
			memcpy(recorder.region.info + *used, at, length);
			*used += length;
		}
		at += length;
	}
	if (left_out > 0)
		add_number("env_left_out", left_out);
}

static const char *region_kind_name(enum region_kind kind)
{
	switch (kind) {
	case REGION_KIND_SHM:
		return "shm";
	case REGION_KIND_SHM_SMALL:
		return "shm-small";
	case REGION_KIND_MEMFD:
		return "memfd";
	default:
		return "private";
	}
}

void process_info_write(const struct process_info *process)
{
	const struct identity *identity = &process->identity;
	const struct settings *settings = &process->settings;
	const struct mask_choice *choice = &process->choice;

	recorder.region.header->info_bytes = 0;
	add_line("host", identity->host);
	add_line("boot_id", identity->boot_id);
	add_number("pid", identity->pid);
	add_number("pid_namespace", identity->pid_namespace);
	add_number("start_ticks", identity->start_ticks);
	add_number("uid", geteuid());
	add_line("exe", identity->exe);
	add_line("job", identity->job);
	add_line("rank", identity->rank);
	add_line("local_rank", identity->local_rank);
	add_line("world_size", identity->world_size);
	if (identity->pod_namespace[0] != '\0')
		add_line("pod_namespace", identity->pod_namespace);
	add_line("version", RINGSIDE_VERSION);
	add_line("mode", op_mode_name(settings->mode));
	add_number("interface", process->interface);
	add_line("region", recorder.region.path);
	add_line("region_kind", region_kind_name(recorder.region.kind));
	add_line("region_reason", recorder.region.reason);
	add_line("trace", process->trace);
	if (settings->inspector.is_on)
		add_line("inspector", settings->inspector.dir);
	add_number("buffer", settings->buffer);
	add_number("quota", settings->quota);
	add_number("heartbeat_ns", settings->heartbeat_ns);
	add_line("kernel_events", kernel_events_name(choice->kernel));
	add_line("kernel_events_reason", choice->kernel_reason);
	add_line("times", times_name(choice->times));
	if (choice->graphs != GRAPHS_SOME)
		add_line("times_graphs", graphs_name(choice->graphs));
	add_line("times_reason", choice->times_reason);
	add_number("events", (uint64_t)choice->mask);
	add_number("started_wall_ns", recorder.region.header->first_anchor.wall_ns);
	if (settings->hang_after_s > 0)
		add_number("hang_after_s", (uint64_t)settings->hang_after_s);
	add_labels(settings->labels);
	add_messages(process->messages);
	add_environment(&process->environment);
}

void process_info_log(const struct process_info *process, const struct comm_start *start)
{
	const struct settings *settings = &process->settings;
	const struct mask_choice *choice = &process->choice;

	start->log(
		ABI_LOG_INFO, ABI_LOG_SUBSYSTEM_INIT | ABI_LOG_SUBSYSTEM_PROFILE, "ringside", 0,
		"Ringside %s: mode %s, region %s (%s%s%s), trace %s, buffer %llu KiB, quota %llu "
		"MiB, times %s (%s), kernel events %s (%s), events 0x%x, job %s, Inspector files "
		"in %s",
		RINGSIDE_VERSION, op_mode_name(recorder.region.header->mode),
		recorder.region.path[0] != '\0' ? recorder.region.path : "none",
		region_kind_name(recorder.region.kind),
		recorder.region.reason[0] != '\0' ? ": " : "", recorder.region.reason,
		process->trace[0] != '\0' ? process->trace : "none",
		(unsigned long long)settings->buffer >> 10,
		(unsigned long long)settings->quota >> 20, times_name(choice->times),
		choice->times_reason, kernel_events_name(choice->kernel), choice->kernel_reason,
		(unsigned int)choice->mask, process->identity.job,
		settings->inspector.is_on ? settings->inspector.dir : "none");
}
