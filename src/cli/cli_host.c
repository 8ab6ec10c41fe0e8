/*
 * Reads /proc, /sys, file systems and NVML in a child process (common/child.c), which writes lines (host_facts.c). Whatever
 * blocks or crashes there costs only what had not been written yet: cheap and safe sources come first, NVML last.
 */
#include "cli/cli_ask.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"

enum {
	DEADLINE_S = 5,
	WAIT_MS = 100,
	OUTPUT_BYTES = 4 << 20,
	DEVICES_MOST = 512,
	PATH_BYTES = 1024,
	FILE_BYTES = 64 * 1024,
};
#define LAST_LINE "done"

/* ---- in the child: output ---------------------------------------------------------------------- */

struct out {
	int fd;
	const char *root;
	char text[FILE_BYTES]; /* of the file being read */
};

static void put(const struct out *out, const char *format, ...) PRINTF_LIKE(2, 3);
static void put(const struct out *out, const char *format, ...)
{
	char line[HOST_LINE_BYTES];
	va_list values;
	size_t length, done = 0;

	va_start(values, format);
	vsnprintf(line, sizeof(line) - 1, format, values);
	va_end(values);
	length = strlen(line);
	line[length++] = '\n';
	while (done < length) {
		ssize_t written = write(out->fd, line + done, length - done);

		if (written == -1 && errno != EINTR)
			_exit(1);
		done += written > 0 ? (size_t)written : 0;
	}
}

static void put_value(const struct out *out, enum host_kind kind, const char *object, int64_t value)
{
	char name[HOST_OBJECT_BYTES];
	size_t length = 0;

	for (; object[length] != '\0' && length < sizeof(name) - 1; length++)
		name[length] = object[length] > ' ' && object[length] < 0x7f ? object[length] : '_';
	name[length] = '\0';
	put(out, "value %s %s %" PRId64, host_kinds[kind].name, name, value);
}

/* ---- /proc and /sys ------------------------------------------------------------------------------ */

static bool read_text(struct out *out, const char *format, ...) PRINTF_LIKE(2, 3);
static bool read_text(struct out *out, const char *format, ...)
{
	char path[PATH_BYTES];
	va_list values;
	size_t length;
	int written;

	text_copy(path, sizeof(path), out->root);
	length = strlen(path);
	va_start(values, format);
	written = vsnprintf(path + length, sizeof(path) - length, format, values);
	va_end(values);
	return written > 0 && (size_t)written < sizeof(path) - length &&
	       file_read_text(path, out->text, sizeof(out->text));
}

/* The number at the start of a text: "200 Gb/sec (4X HDR)", "4: ACTIVE", "4211". */
static bool first_number(const char *text, int64_t *number)
{
	char *end = NULL;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	*number = value;
	return end != text && errno == 0;
}

/* "KEY NUMBER", "KEY: NUMBER" or "KEY=NUMBER" at the start of a line. */
static bool named_number(const char *text, const char *key, int64_t *number)
{
	size_t length = strlen(key);

	for (const char *line = text; line != NULL && *line != '\0';) {
		if (strncmp(line, key, length) == 0 && strchr(" :=", line[length]) != NULL &&
		    line[length] != '\0')
			return first_number(line + length + strspn(line + length, " :="), number);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

/* Entries of a directory, in the order of their names. */
static int list_entries(const struct out *out, const char *directory, struct dirent ***list)
{
	char path[PATH_BYTES];

	*list = NULL;
	text_format(path, sizeof(path), "%s%s", out->root, directory);
	return scandir(path, list, NULL, alphasort);
}

static void free_entries(struct dirent **list, int count)
{
	for (int i = 0; i < count; i++)
		free(list[i]);
	free(list);
}

/* All kinds of one object that are files of its directory. */
static void read_kinds(struct out *out, enum host_object object, const char *directory,
		       const char *name)
{
	int64_t value;

	for (int kind = 0; kind < HOST_KINDS; kind++) {
		if (host_kinds[kind].object != object || host_kinds[kind].file == NULL ||
		    !read_text(out, "%s/%s", directory, host_kinds[kind].file) ||
		    !first_number(out->text, &value))
			continue;
		/* -1: unknown, as of virtual interfaces. */
		if (kind == HOST_INTERFACE_SPEED && value <= 0)
			continue;
		/* "2.5 Gb/sec" is the only rate with a fraction, of a port that is down. */
		if (kind == HOST_PORT_RATE)
			value = value > INT64_MAX / 1000 ? 0 : value * 1000;
		put_value(out, (enum host_kind)kind, name, value);
	}
}

static void read_ports(struct out *out, const char *device)
{
	char directory[PATH_BYTES], port[PATH_BYTES + 300], name[600];
	struct dirent **list;
	int count;

	text_format(directory, sizeof(directory), "/sys/class/infiniband/%s/ports", device);
	count = list_entries(out, directory, &list);
	for (int i = 0; i < count && i < DEVICES_MOST; i++) {
		if (list[i]->d_name[0] == '.')
			continue;
		text_format(port, sizeof(port), "%s/%s", directory, list[i]->d_name);
		text_format(name, sizeof(name), "%s/%s", device, list[i]->d_name);
		read_kinds(out, HOST_OBJECT_PORT, port, name);
	}
	free_entries(list, count);
}

static void read_infiniband(struct out *out)
{
	struct dirent **list;
	int count = list_entries(out, "/sys/class/infiniband", &list);

	for (int i = 0; i < count && i < DEVICES_MOST; i++)
		if (list[i]->d_name[0] != '.')
			read_ports(out, list[i]->d_name);
	free_entries(list, count);
}

/* Only those of hardware: not bridges, tunnels and ends in containers. */
static void read_interfaces(struct out *out)
{
	struct dirent **list;
	int count = list_entries(out, "/sys/class/net", &list);
	char directory[PATH_BYTES], device[PATH_BYTES * 2];

	for (int i = 0; i < count && i < DEVICES_MOST; i++) {
		text_format(directory, sizeof(directory), "/sys/class/net/%s", list[i]->d_name);
		text_format(device, sizeof(device), "%s%s/device", out->root, directory);
		if (list[i]->d_name[0] != '.' && access(device, F_OK) == 0)
			read_kinds(out, HOST_OBJECT_INTERFACE, directory, list[i]->d_name);
	}
	free_entries(list, count);
}

static void read_memory(struct out *out)
{
	int64_t total, available, value;

	if (read_text(out, "/proc/meminfo") && named_number(out->text, "MemTotal", &total) &&
	    named_number(out->text, "MemAvailable", &available) && total > 0 && available >= 0 &&
	    available <= total)
		put_value(out, HOST_MEMORY_AVAILABLE, "-",
			  (int64_t)((double)available / (double)total * 1000));
	/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" */
	if (read_text(out, "/proc/pressure/memory")) {
		const char *some = strstr(out->text, "some "), *sum = some;

		sum = sum ? strstr(sum, "total=") : NULL;
		if (sum != NULL && sum < some + strcspn(some, "\n") &&
		    first_number(sum + 6, &value))
			put_value(out, HOST_MEMORY_STALL_US, "-", value);
	}
	if (read_text(out, "/proc/vmstat") && named_number(out->text, "oom_kill", &value))
		put_value(out, HOST_OOM_KILLS, "-", value);
}

/* "cpu  user nice system idle iowait irq softirq steal ...", in ticks, then a line per processor. */
static void read_processors(struct out *out)
{
	int64_t value = 0, ticks = sysconf(_SC_CLK_TCK), count = 0;
	const char *at;

	if (!read_text(out, "/proc/stat") || strncmp(out->text, "cpu ", 4) != 0)
		return;
	at = out->text + 4;
	for (int i = 0; i < 8; i++) {
		at += strspn(at, " ");
		if (!first_number(at, &value))
			return;
		at += strcspn(at, " \n");
	}
	for (const char *line = out->text; (line = strstr(line, "\ncpu")) != NULL; line++)
		count++;
	if (ticks > 0 && value >= 0 && value < INT64_MAX / 1000)
		put_value(out, HOST_STEAL_MS, "-", value * 1000 / ticks);
	put_value(out, HOST_PROCESSORS, "-", count);
}

/* ---- cgroups of processes ------------------------------------------------------------------------ */

/* Adds up over the cgroup and all above it: a quota anywhere stops the process. */
static bool add_up(struct out *out, const char *mount, const char *group, const char *file,
		   const char *key, int64_t *sum)
{
	char path[PATH_BYTES];
	bool has_one = false;
	int64_t value;

	text_copy(path, sizeof(path), group);
	while (path[0] == '/' && path[1] != '\0') {
		if (read_text(out, "%s%s/%s", mount, path, file) &&
		    named_number(out->text, key, &value) && value >= 0 &&
		    value < INT64_MAX / 1024) {
			*sum += value;
			has_one = true;
		}
		*strrchr(path, '/') = '\0';
	}
	return has_one;
}

/* "0::/path" of version 2, "4:cpu,cpuacct:/path" of version 1. The path behind `controller`; false: none. */
static bool group_of(const char *list, const char *controller, char path[PATH_BYTES])
{
	for (const char *line = list; line != NULL && *line != '\0';) {
		const char *names = strchr(line, ':'), *end = line + strcspn(line, "\n"), *colon;
		size_t length = strlen(controller);

		names = names && names < end ? names + 1 : end;
		colon = memchr(names, ':', (size_t)(end - names));
		for (const char *at = names; colon != NULL && at <= colon; at++) {
			size_t word = strcspn(at, ",:");

			if (word == length && memcmp(at, controller, length) == 0) {
				text_format(path, PATH_BYTES, "%.*s", (int)(end - colon - 1),
					    colon + 1);
				return path[0] == '/' && strstr(path, "..") == NULL;
			}
			at += word;
		}
		line = *end ? end + 1 : end;
	}
	return false;
}

static void read_process(struct out *out, int64_t pid)
{
	char groups[4096], path[PATH_BYTES], name[24];
	int64_t sum = 0;

	if (!read_text(out, "/proc/%" PRId64 "/cgroup", pid))
		return;
	text_copy(groups, sizeof(groups), out->text);
	text_format(name, sizeof(name), "%" PRId64, pid);
	if (group_of(groups, "", path) &&
	    add_up(out, "/sys/fs/cgroup", path, "cpu.stat", "throttled_usec", &sum))
		put_value(out, HOST_PROCESS_THROTTLED_US, name, sum);
	else if (group_of(groups, "cpu", path) &&
		 (add_up(out, "/sys/fs/cgroup/cpu", path, "cpu.stat", "throttled_time", &sum) ||
		  add_up(out, "/sys/fs/cgroup/cpu,cpuacct", path, "cpu.stat", "throttled_time",
			 &sum)))
		put_value(out, HOST_PROCESS_THROTTLED_US, name, sum / 1000);
	if (group_of(groups, "", path) && read_text(out, "/sys/fs/cgroup%s/memory.events", path) &&
	    named_number(out->text, "oom_kill", &sum))
		put_value(out, HOST_PROCESS_OOM_KILLS, name, sum);
	else if (group_of(groups, "memory", path) &&
		 read_text(out, "/sys/fs/cgroup/memory%s/memory.oom_control", path) &&
		 named_number(out->text, "oom_kill", &sum))
		put_value(out, HOST_PROCESS_OOM_KILLS, name, sum);
}

/* ---- disks --------------------------------------------------------------------------------------- */

/* A file system of the network may block for ever: these come after everything else but the GPUs. */
static void read_disk(const struct out *out, const char *directory)
{
	char path[PATH_BYTES];
	struct statvfs disk;

	text_format(path, sizeof(path), "%s%s", out->root, directory);
	if (statvfs(path, &disk) == 0 && disk.f_blocks > 0)
		put_value(out, HOST_DISK_FREE, directory,
			  (int64_t)((double)disk.f_bavail / (double)disk.f_blocks * 1000));
}

/* ---- NVML ---------------------------------------------------------------------------------------- */

/* The part of nvmlPciInfo_t that matters. */
struct nvml_pci {
	char legacy_bus[16];
	unsigned int numbers[5]; /* domain, bus, device, device and subsystem id */
	char bus[32];
	char room[64];
};

enum { NVML_LINKS = 36, NVML_NAME = 96 };

struct nvml {
	void *library;
	int (*init)(void);
	const char *(*error_text)(int code);
	int (*count)(unsigned int *count);
	int (*handle)(unsigned int index, void **device);
	int (*uuid)(void *device, char *text, unsigned int size);
	int (*pci)(void *device, struct nvml_pci *pci);
	int (*clock)(void *device, int type, unsigned int *mhz);
	int (*clock_max)(void *device, int type, unsigned int *mhz);
	int (*throttle)(void *device, unsigned long long *bits);
	int (*temperature)(void *device, int sensor, unsigned int *degrees);
	int (*power)(void *device, unsigned int *mw);
	int (*power_limit)(void *device, unsigned int *mw);
	int (*ecc)(void *device, int type, int counter, unsigned long long *count);
	int (*remapped)(void *device, unsigned int *corrected, unsigned int *uncorrected,
			unsigned int *is_pending, unsigned int *has_failed);
	int (*link_state)(void *device, unsigned int link, unsigned int *is_active);
	int (*link_errors)(void *device, unsigned int link, int counter, unsigned long long *count);
	int (*width)(void *device, unsigned int *lanes);
	int (*width_max)(void *device, unsigned int *lanes);
};

/* Older drivers lack some of these: what they would tell is not known then. */
static void nvml_find(struct nvml *nvml)
{
	*(void **)&nvml->init = dlsym(nvml->library, "nvmlInit_v2");
	*(void **)&nvml->error_text = dlsym(nvml->library, "nvmlErrorString");
	*(void **)&nvml->count = dlsym(nvml->library, "nvmlDeviceGetCount_v2");
	*(void **)&nvml->handle = dlsym(nvml->library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&nvml->uuid = dlsym(nvml->library, "nvmlDeviceGetUUID");
	*(void **)&nvml->pci = dlsym(nvml->library, "nvmlDeviceGetPciInfo_v3");
	*(void **)&nvml->clock = dlsym(nvml->library, "nvmlDeviceGetClockInfo");
	*(void **)&nvml->clock_max = dlsym(nvml->library, "nvmlDeviceGetMaxClockInfo");
	*(void **)&nvml->throttle =
		dlsym(nvml->library, "nvmlDeviceGetCurrentClocksThrottleReasons");
	if (nvml->throttle == NULL)
		*(void **)&nvml->throttle =
			dlsym(nvml->library, "nvmlDeviceGetCurrentClocksEventReasons");
	*(void **)&nvml->temperature = dlsym(nvml->library, "nvmlDeviceGetTemperature");
	*(void **)&nvml->power = dlsym(nvml->library, "nvmlDeviceGetPowerUsage");
	*(void **)&nvml->power_limit = dlsym(nvml->library, "nvmlDeviceGetEnforcedPowerLimit");
	*(void **)&nvml->ecc = dlsym(nvml->library, "nvmlDeviceGetTotalEccErrors");
	*(void **)&nvml->remapped = dlsym(nvml->library, "nvmlDeviceGetRemappedRows");
	*(void **)&nvml->link_state = dlsym(nvml->library, "nvmlDeviceGetNvLinkState");
	*(void **)&nvml->link_errors = dlsym(nvml->library, "nvmlDeviceGetNvLinkErrorCounter");
	*(void **)&nvml->width = dlsym(nvml->library, "nvmlDeviceGetCurrPcieLinkWidth");
	*(void **)&nvml->width_max = dlsym(nvml->library, "nvmlDeviceGetMaxPcieLinkWidth");
}

static void put_counter(const struct out *out, enum host_kind kind, const char *bus,
			unsigned long long count)
{
	if (count <= INT64_MAX)
		put_value(out, kind, bus, (int64_t)count);
}

static void read_gpu_clocks(const struct out *out, const struct nvml *nvml, void *device,
			    const char *bus)
{
	enum { SM = 1 };
	unsigned long long bits;
	unsigned int value;

	if (nvml->clock && nvml->clock(device, SM, &value) == 0)
		put_value(out, HOST_GPU_CLOCK, bus, value);
	if (nvml->clock_max && nvml->clock_max(device, SM, &value) == 0)
		put_value(out, HOST_GPU_CLOCK_MAX, bus, value);
	if (nvml->throttle && nvml->throttle(device, &bits) == 0)
		put_counter(out, HOST_GPU_THROTTLE, bus, bits);
	if (nvml->temperature && nvml->temperature(device, 0, &value) == 0)
		put_value(out, HOST_GPU_TEMPERATURE, bus, value);
	if (nvml->power && nvml->power(device, &value) == 0)
		put_value(out, HOST_GPU_POWER, bus, value / 1000);
	if (nvml->power_limit && nvml->power_limit(device, &value) == 0)
		put_value(out, HOST_GPU_POWER_LIMIT, bus, value / 1000);
}

static void read_gpu_errors(const struct out *out, const struct nvml *nvml, void *device,
			    const char *bus)
{
	enum { CORRECTED = 0, UNCORRECTED = 1, SINCE_BOOT = 0 };
	unsigned int ignored[2], is_pending, has_failed, value;
	unsigned long long count;

	if (nvml->ecc && nvml->ecc(device, CORRECTED, SINCE_BOOT, &count) == 0)
		put_counter(out, HOST_GPU_ECC_CORRECTED, bus, count);
	if (nvml->ecc && nvml->ecc(device, UNCORRECTED, SINCE_BOOT, &count) == 0)
		put_counter(out, HOST_GPU_ECC_UNCORRECTED, bus, count);
	if (nvml->remapped &&
	    nvml->remapped(device, &ignored[0], &ignored[1], &is_pending, &has_failed) == 0)
		put_value(out, HOST_GPU_REMAP_PENDING, bus, has_failed ? 2 : is_pending != 0);
	if (nvml->width && nvml->width(device, &value) == 0)
		put_value(out, HOST_GPU_PCIE_WIDTH, bus, value);
	if (nvml->width_max && nvml->width_max(device, &value) == 0)
		put_value(out, HOST_GPU_PCIE_WIDTH_MAX, bus, value);
}

/* Sums over the links of a GPU. */
static void read_gpu_links(const struct out *out, const struct nvml *nvml, void *device,
			   const char *bus)
{
	enum { REPLAY = 0, RECOVERY = 1, CRC_FLIT = 2, CRC_DATA = 3, COUNTERS = 4 };
	unsigned long long sums[COUNTERS] = { 0 }, count;
	bool has[COUNTERS] = { false };
	unsigned int is_active, active = 0, links = 0;

	for (unsigned int link = 0; nvml->link_state && link < NVML_LINKS; link++) {
		if (nvml->link_state(device, link, &is_active) != 0)
			continue;
		links++;
		active += is_active == 1;
		for (int i = 0; is_active == 1 && nvml->link_errors && i < COUNTERS; i++)
			if (nvml->link_errors(device, link, i, &count) == 0) {
				sums[i] += count;
				has[i] = true;
			}
	}
	if (links > 0)
		put_value(out, HOST_GPU_NVLINKS, bus, active);
	if (has[REPLAY])
		put_counter(out, HOST_GPU_NVLINK_REPLAY, bus, sums[REPLAY]);
	if (has[RECOVERY])
		put_counter(out, HOST_GPU_NVLINK_RECOVERY, bus, sums[RECOVERY]);
	if (has[CRC_FLIT] || has[CRC_DATA])
		put_counter(out, HOST_GPU_NVLINK_CRC, bus, sums[CRC_FLIT] + sums[CRC_DATA]);
}

/* NVML writes a domain of eight digits, everybody else of four. */
static void shorten_bus(char bus[static 32])
{
	size_t length = strlen(bus);

	for (size_t i = 0; i < length; i++)
		if (bus[i] >= 'A' && bus[i] <= 'F')
			bus[i] = (char)(bus[i] - 'A' + 'a');
	if (length > 12 && strncmp(bus, "0000", 4) == 0 && bus[8] == ':')
		memmove(bus, bus + 4, length - 3);
}

/* False: it does not answer as it should. */
static bool read_gpu(const struct out *out, const struct nvml *nvml, unsigned int index)
{
	char uuid[NVML_NAME] = "";
	struct nvml_pci pci;
	void *device;

	memset(&pci, 0, sizeof(pci));
	if (nvml->handle(index, &device) != 0 || nvml->pci(device, &pci) != 0)
		return false;
	pci.bus[sizeof(pci.bus) - 1] = '\0';
	shorten_bus(pci.bus);
	if (nvml->uuid(device, uuid, sizeof(uuid) - 1) == 0)
		put(out, "gpu %s %s", pci.bus, uuid);
	read_gpu_clocks(out, nvml, device, pci.bus);
	read_gpu_errors(out, nvml, device, pci.bus);
	read_gpu_links(out, nvml, device, pci.bus);
	return true;
}

static void read_gpus(const struct out *out, const char *name)
{
	struct nvml nvml = { .library = dlopen(name, RTLD_NOW | RTLD_LOCAL) };
	unsigned int count = 0, silent = 0;
	int code;

	if (nvml.library == NULL) {
		put(out, "gap gpu %s cannot be loaded", name);
		return;
	}
	nvml_find(&nvml);
	if (!nvml.init || !nvml.count || !nvml.handle || !nvml.uuid || !nvml.pci) {
		put(out, "gap gpu %s lacks functions", name);
		return;
	}
	code = nvml.init();
	if (code == 0)
		code = nvml.count(&count);
	if (code != 0) {
		const char *why = nvml.error_text ? nvml.error_text(code) : NULL;

		put(out, "gap gpu NVML: %s (%d)", why ? why : "error", code);
		return;
	}
	for (unsigned int i = 0; i < count && i < HOST_GPUS_MAX; i++)
		silent += !read_gpu(out, &nvml, i);
	if (silent > 0)
		put(out, "gap gpu %u of %u GPUs cannot be read through NVML", silent, count);
	else
		put(out, "gap gpu");
}

/* ---- the child ----------------------------------------------------------------------------------- */

bool cli_host_write(const struct cli_host_what *what, int fd)
{
	struct out *out = malloc(sizeof(*out));

	if (out == NULL)
		return false;
	*out = (struct out){ .fd = fd, .root = what->root };
	read_memory(out);
	read_processors(out);
	for (size_t i = 0; i < what->pid_count; i++)
		read_process(out, what->pids[i]);
	read_interfaces(out);
	read_infiniband(out);
	read_disk(out, "/dev/shm");
	read_disk(out, "/tmp");
	for (size_t i = 0; i < what->directory_count; i++)
		read_disk(out, what->directories[i]);
	put(out, "gap system");
	free(out);
	return true;
}

static int child_work(const char *input, void *context)
{
	const struct cli_host_what *what = context;
	struct out out = { .fd = child_keep_output(), .root = what->root };

	(void)input;
	if (out.fd == -1 || !cli_host_write(what, out.fd))
		return 1;
	read_gpus(&out, what->nvml ? what->nvml : "libnvidia-ml.so.1");
	put(&out, LAST_LINE);
	return 0;
}

/* ---- the parent ---------------------------------------------------------------------------------- */

bool cli_host_start(struct cli_host *host, struct host_facts *facts,
		    const struct cli_host_what *what, uint64_t now_ns)
{
	const struct child_task task = { .work = child_work,
					 .context = (void *)(uintptr_t)what,
					 .timeout_ns = DEADLINE_S * SECOND_NS,
					 .limit_bytes = OUTPUT_BYTES };

	if (host->child.begun_ns != 0)
		return false;
	host->taken = 0;
	host->is_done = false;
	child_start(&host->child, &task, -1, now_ns);
	if (host->child.pid != 0)
		return true;
	host_facts_gap(facts, HOST_SOURCE_SYSTEM, host->child.why);
	child_release(&host->child);
	return false;
}

static void take_line(struct cli_host *host, struct host_facts *facts, const char *text,
		      size_t length, uint64_t wall_ns)
{
	char line[HOST_LINE_BYTES];

	if (length > sizeof(line) - 1)
		length = sizeof(line) - 1;
	memcpy(line, text, length);
	line[length] = '\0';
	if (strcmp(line, LAST_LINE) == 0)
		host->is_done = true;
	else
		host_facts_take_line(facts, line, wall_ns);
}

static void take_lines(struct cli_host *host, struct host_facts *facts, uint64_t wall_ns)
{
	const struct child *child = &host->child;
	const char *end;

	while (host->taken < child->used && (end = memchr(child->bytes + host->taken, '\n',
							  child->used - host->taken)) != NULL) {
		const char *line = child->bytes + host->taken;

		take_line(host, facts, line, (size_t)(end - line), wall_ns);
		host->taken = (size_t)(end - child->bytes) + 1;
	}
}

bool cli_host_take(struct cli_host *host, struct host_facts *facts, uint64_t now_ns,
		   uint64_t wall_ns)
{
	struct child *child = &host->child;
	bool has_ended;

	if (child->begun_ns == 0)
		return true;
	has_ended = child_has_ended(child, now_ns);
	take_lines(host, facts, wall_ns);
	if (!has_ended)
		return false;
	if (child->killed_ns != 0)
		host_facts_gap(facts, HOST_SOURCE_GPU,
			       "NVML or a file system did not answer within 5 s");
	else if (!host->is_done)
		host_facts_gap(facts, HOST_SOURCE_GPU, "NVML ended the process that asked it");
	child_release(child);
	return true;
}

void cli_host_wait(struct cli_host *host, struct host_facts *facts)
{
	while (!cli_host_take(host, facts, clock_system_ns(CLOCK_MONOTONIC),
			      clock_system_ns(CLOCK_REALTIME)))
		child_wait(&host->child, WAIT_MS);
}

/* ---- repeatedly --------------------------------------------------------------------------------- */

enum { DIRECTORIES_MOST = 8 };

void cli_host_watch_open(struct cli_host_watch *watch)
{
	*watch = (struct cli_host_watch){ .reading = { .taken = 0 } };
	host_facts_init(&watch->facts);
	if (gethostname(watch->facts.host, sizeof(watch->facts.host) - 1) == -1)
		watch->facts.host[0] = '\0';
	if (!host_log_open(&watch->log, ""))
		host_facts_gap(&watch->facts, HOST_SOURCE_LOG, strerror(errno));
}

void cli_host_watch_close(struct cli_host_watch *watch)
{
	child_release(&watch->reading.child);
	host_log_close(&watch->log);
	host_facts_release(&watch->facts);
}

/* The directory of its trace file, unless it is in the list already. */
static void add_directory(const struct recording_process *process, char (*list)[PATH_BYTES],
			  size_t *count)
{
	char path[PATH_BYTES], *slash;

	if (*count == DIRECTORIES_MOST ||
	    !recording_info_path(process, "trace", path, sizeof(path)))
		return;
	slash = strrchr(path, '/');
	if (path[0] != '/' || slash == NULL || slash == path)
		return;
	*slash = '\0';
	for (size_t i = 0; i < *count; i++)
		if (strcmp(list[i], path) == 0)
			return;
	text_copy(list[(*count)++], PATH_BYTES, path);
}

void cli_host_watch_read(struct cli_host_watch *watch, const struct recording *recording,
			 bool has_traces, uint64_t now_ns)
{
	char directories[DIRECTORIES_MOST][PATH_BYTES];
	const char *paths[DIRECTORIES_MOST];
	struct cli_host_what what = { .root = "", .directories = paths };
	int64_t *pids = calloc(recording->count + 1, sizeof(*pids));

	host_log_read(&watch->log, &watch->facts, clock_system_ns(CLOCK_REALTIME));
	if (pids == NULL)
		return;
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		/* Of a dead one, what is known is kept: it may explain its death. */
		pids[i] = recording_pid(process);
		if (has_traces && process->life == RECORDING_ALIVE)
			add_directory(process, directories, &what.directory_count);
	}
	for (size_t i = 0; i < what.directory_count; i++)
		paths[i] = directories[i];
	host_facts_keep_processes(&watch->facts, pids, recording->count);
	what.pids = pids;
	what.pid_count = recording->count;
	cli_host_start(&watch->reading, &watch->facts, &what, now_ns);
	free(pids);
}
