/*
 * Every line that the child writes about a host, from files of our own and a played NVML, and how its parent deals with
 * the child. The file is included for that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_ask.h"
#include "common/clock.h"

static void *play_dlopen(const char *name, int flags);
static void *play_dlsym(void *library, const char *name);
static int play_statvfs(const char *path, struct statvfs *disk);
static ssize_t play_write(int fd, const void *bytes, size_t length);
static bool play_log_open(struct host_log *log, const char *root);
static void play_log_read(struct host_log *log, struct host_facts *facts, uint64_t wall_ns);

#define cli_host_write lines_included_write
#define cli_host_start lines_included_start
#define cli_host_take lines_included_take
#define cli_host_wait lines_included_wait
#define cli_host_watch_open lines_included_watch_open
#define cli_host_watch_close lines_included_watch_close
#define cli_host_watch_read lines_included_watch_read
#define dlopen play_dlopen
#define dlsym play_dlsym
#define statvfs(path, disk) play_statvfs(path, disk)
#define write play_write
#define host_log_open play_log_open
#define host_log_read play_log_read
#define sysconf(name) (100L)
#include "cli/cli_host.c"
#undef dlopen
#undef dlsym
#undef statvfs
#undef write
#undef host_log_open
#undef host_log_read
#undef sysconf

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

static struct {
	const char *missing; /* functions that NVML lacks, each with a blank behind it */
	const char *failing; /* functions that fail */
	bool has_no_library;
	unsigned int gpus;
	int write_error; /* of the next write */
	size_t write_most;
	bool has_no_log;
	int log_reads;
} play;

/* What the child saw: shared with it. */
static struct {
	bool is_noted;
	struct rlimit core, cpu;
	int end_signal;
	bool has_mask, has_input;
	char library[64];
} * child_saw;

static struct sink happened;

static void *play_dlopen(const char *name, int flags)
{
	sigset_t mask;

	if (flags != (RTLD_NOW | RTLD_LOCAL))
		abort();
	text_copy(child_saw->library, sizeof(child_saw->library), name);
	getrlimit(RLIMIT_CORE, &child_saw->core);
	getrlimit(RLIMIT_CPU, &child_saw->cpu);
	prctl(PR_GET_PDEATHSIG, &child_saw->end_signal);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	child_saw->has_mask = sigismember(&mask, SIGUSR1);
	child_saw->has_input = lseek(STDIN_FILENO, 0, SEEK_CUR) != 0;
	child_saw->is_noted = true;
	return play.has_no_library ? NULL : &play;
}

static bool is_listed(const char *names, const char *name)
{
	const char *at = names ? strstr(names, name) : NULL;

	return at != NULL && at[strlen(name)] == ' ';
}

static int result_of(const char *name)
{
	return is_listed(play.failing, name) ? 3 : 0;
}

static unsigned int gpu_of(const void *device)
{
	return (unsigned int)((const char *)device - (const char *)&play);
}

static int nvml_init(void)
{
	return is_listed(play.failing, "nvmlInit_v2") ? 9 : 0;
}

static const char *nvml_error(int code)
{
	return code == 9 ? "Driver Not Loaded" : NULL;
}

static int nvml_count(unsigned int *count)
{
	*count = play.gpus;
	return result_of("nvmlDeviceGetCount_v2");
}

static int nvml_handle(unsigned int index, void **device)
{
	*device = (char *)&play + index;
	return index == 2 ? 15 : 0;
}

static int nvml_uuid(void *device, char *text, unsigned int size)
{
	snprintf(text, size, "GPU-%u-%u", gpu_of(device), size);
	return result_of("nvmlDeviceGetUUID");
}

static int nvml_pci(void *device, struct nvml_pci *pci)
{
	static const char *const buses[] = { "00000000:3B:00.0", "0000ABCF:AF:1@.G",
					     "00000000:00:00.0", "0000:4A:00.0" };

	memset(pci->bus, 'x', sizeof(pci->bus));
	if (gpu_of(device) != 4)
		text_copy(pci->bus, sizeof(pci->bus), buses[gpu_of(device) % 4]);
	return result_of("nvmlDeviceGetPciInfo_v3");
}

/* Values that tell which function they come from and what it was asked for. */
#define NVML_ONE(function, name, arguments, value)         \
	static int function arguments                      \
	{                                                  \
		*result = gpu_of(device) * 1000 + (value); \
		return result_of(name);                    \
	}
NVML_ONE(nvml_clock, "nvmlDeviceGetClockInfo", (void *device, int type, unsigned int *result),
	 (unsigned int)type * 100)
NVML_ONE(nvml_clock_max, "nvmlDeviceGetMaxClockInfo",
	 (void *device, int type, unsigned int *result), (unsigned int)type * 100 + 1)
NVML_ONE(nvml_throttle, "nvmlDeviceGetCurrentClocksThrottleReasons",
	 (void *device, unsigned long long *result), 0x48)
NVML_ONE(nvml_event, "nvmlDeviceGetCurrentClocksEventReasons",
	 (void *device, unsigned long long *result), gpu_of(device) == 1 ? 1ULL << 63 : 0x80)
NVML_ONE(nvml_temperature, "nvmlDeviceGetTemperature",
	 (void *device, int sensor, unsigned int *result), 61 + (unsigned int)sensor)
NVML_ONE(nvml_power, "nvmlDeviceGetPowerUsage", (void *device, unsigned int *result), 699000)
NVML_ONE(nvml_power_limit, "nvmlDeviceGetEnforcedPowerLimit", (void *device, unsigned int *result),
	 700999)
NVML_ONE(nvml_ecc, "nvmlDeviceGetTotalEccErrors",
	 (void *device, int type, int counter, unsigned long long *result),
	 (unsigned long long)(10 * type + counter + 5))
NVML_ONE(nvml_width, "nvmlDeviceGetCurrPcieLinkWidth", (void *device, unsigned int *result), 8)
NVML_ONE(nvml_width_max, "nvmlDeviceGetMaxPcieLinkWidth", (void *device, unsigned int *result), 16)

/* Pending on the second GPU; failed on the fourth, too. */
static int nvml_remapped(void *device, unsigned int *corrected, unsigned int *uncorrected,
			 unsigned int *is_pending, unsigned int *has_failed)
{
	*corrected = *uncorrected = 7;
	*is_pending = gpu_of(device) == 1 ? 5 : 0;
	*has_failed = gpu_of(device) == 3;
	return result_of("nvmlDeviceGetRemappedRows");
}

/* Six links, of which every third is down. */
static int nvml_link_state(void *device, unsigned int link, unsigned int *is_active)
{
	(void)device;
	*is_active = link % 3 != 0;
	return link < 7 && link != 1 ? result_of("nvmlDeviceGetNvLinkState") : 2;
}

/* The second GPU has one kind of CRC errors only. */
static int nvml_link_errors(void *device, unsigned int link, int counter, unsigned long long *count)
{
	static const unsigned long long scale[] = { 1, 100, 10000, 1000000 };

	*count = scale[counter] * link;
	if (gpu_of(device) == 1 && counter == 2)
		return 3;
	return result_of("nvmlDeviceGetNvLinkErrorCounter");
}

static void *play_dlsym(void *library, const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{ "nvmlInit_v2", nvml_init },
		{ "nvmlErrorString", nvml_error },
		{ "nvmlDeviceGetCount_v2", nvml_count },
		{ "nvmlDeviceGetHandleByIndex_v2", nvml_handle },
		{ "nvmlDeviceGetUUID", nvml_uuid },
		{ "nvmlDeviceGetPciInfo_v3", nvml_pci },
		{ "nvmlDeviceGetClockInfo", nvml_clock },
		{ "nvmlDeviceGetMaxClockInfo", nvml_clock_max },
		{ "nvmlDeviceGetCurrentClocksThrottleReasons", nvml_throttle },
		{ "nvmlDeviceGetCurrentClocksEventReasons", nvml_event },
		{ "nvmlDeviceGetTemperature", nvml_temperature },
		{ "nvmlDeviceGetPowerUsage", nvml_power },
		{ "nvmlDeviceGetEnforcedPowerLimit", nvml_power_limit },
		{ "nvmlDeviceGetTotalEccErrors", nvml_ecc },
		{ "nvmlDeviceGetRemappedRows", nvml_remapped },
		{ "nvmlDeviceGetNvLinkState", nvml_link_state },
		{ "nvmlDeviceGetNvLinkErrorCounter", nvml_link_errors },
		{ "nvmlDeviceGetCurrPcieLinkWidth", nvml_width },
		{ "nvmlDeviceGetMaxPcieLinkWidth", nvml_width_max },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(functions); i++)
		if (library == &play && strcmp(name, functions[i].name) == 0)
			return is_listed(play.missing, name) ? NULL : functions[i].function;
	return NULL;
}

/* "/empty" has no size. */
static int play_statvfs(const char *path, struct statvfs *disk)
{
	const char *name = path + (strncmp(path, scratch_dir.path, strlen(scratch_dir.path)) == 0
					   ? strlen(scratch_dir.path)
					   : 0);

	*disk = (struct statvfs){ .f_blocks = strcmp(name, "/empty") == 0 ? 0 : 4000,
				  .f_bfree = 3000,
				  .f_bavail = strlen(name) * 100 };
	return strcmp(name, "/nowhere") == 0 ? -1 : 0;
}

static ssize_t play_write(int fd, const void *bytes, size_t length)
{
	if (play.write_error != 0) {
		errno = play.write_error;
		play.write_error = 0;
		return -1;
	}
	return write(fd, bytes,
		     play.write_most != 0 && length > play.write_most ? play.write_most : length);
}

static bool play_log_open(struct host_log *log, const char *root)
{
	log->fd = -1;
	if (root[0] != '\0')
		abort();
	errno = EPERM;
	return !play.has_no_log;
}

static void play_log_read(struct host_log *log, struct host_facts *facts, uint64_t wall_ns)
{
	(void)log, (void)facts;
	play.log_reads++;
	if (wall_ns == 0)
		abort();
}

/* ---- what is read ----------------------------------------------------------------------------- */

static void put_file(const char *name, const char *text)
{
	char directory[512];

	snprintf(directory, sizeof(directory), "%s", command_path(name));
	*strrchr(directory, '/') = '\0';
	file_make_directories(directory, 0755, (gid_t)-1);
	command_write_text(name, text);
}

/* Everything that it writes for these files, up to NVML, or only what is about the host itself. */
static void write_lines(const char *heading, bool is_all)
{
	static const int64_t pids[] = { 42, 43, 44, 45, 46, 47, 48, 49, 50, 51 };
	static const char *const directories[] = { "/traces of a job", "/nowhere", "/empty",
						   "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/"
						   "x/y/z/0/1/2/3/4/5" };
	const struct cli_host_what what = { .root = scratch_dir.path,
					    .pids = pids,
					    .pid_count = ARRAY_LENGTH(pids),
					    .directories = directories,
					    .directory_count = ARRAY_LENGTH(directories) };
	int fd = open(command_path("lines"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t length;
	char *text;

	EXPECT(lines_included_write(&what, fd));
	close(fd);
	text = command_read(command_path("lines"), &length);
	if (!is_all)
		*strstr(text, "value process_") = '\0';
	sink_format(&happened, "=== %s\n%s", heading, text);
	free(text);
}

static void files_of_a_host(void)
{
	static const char port[] = "/sys/class/infiniband/mlx5_0/ports/1/";
	char name[200];

	put_file("/proc/meminfo", "MemTotalX: 5 kB\nMemTotal:  1000 kB\nMemAvailable:1000 kB\n");
	put_file("/proc/pressure/memory", "full avg10=0.00 total=999\nsome avg10=0.00 total=0\n");
	put_file("/proc/vmstat", "oom_killed 7\noom_kill");
	put_file("/proc/stat", "cpu 1 2 3 4 5 6 7 9223372036854774 9\ncpu0 1\nctxt 4\ncpufreq\n");
	/* Version 2, whose root counts nothing; version 1; both; and paths that lead elsewhere. */
	put_file("/proc/42/cgroup", "12:cpuset:/x\n0::/a/b");
	put_file("/proc/43/cgroup", "5:memory:/m\n4:cpu,cpuacct:/q/r\n");
	put_file("/proc/44/cgroup", "4:cpuacct,cpu:/both\n3:memory:/both\n0::/none\n");
	put_file("/proc/45/cgroup", "0::/../etc\n");
	put_file("/proc/46/cgroup", "0\nnonsense\n0:cpu\n4:xcpu,cpux:/q\n");
	put_file("/proc/47/cgroup", "0::\n4:cpu:relative\n3:memory:/m\n");
	put_file("/proc/48/cgroup", "0::/large\n");
	put_file("/proc/49/cgroup", "0::/almost\n");
	put_file("/proc/50/cgroup", "0::/zero\n");
	put_file("/sys/fs/cgroup/zero/cpu.stat", "throttled_usec 0\n");
	put_file("/proc/51/cgroup", "0::/negative\n");
	put_file("/sys/fs/cgroup/negative/cpu.stat", "throttled_usec -1\n");
	put_file("/sys/fs/cgroup/almost/cpu.stat", "throttled_usec 9007199254740990\n");
	put_file("/sys/fs/cgroup/cpu.stat", "throttled_usec 100000\n");
	put_file("/sys/fs/cgroup/a/cpu.stat", "nr_throttled 3\nthrottled_usec 1000\n");
	put_file("/sys/fs/cgroup/a/b/cpu.stat", "throttled_usec 9\n");
	put_file("/sys/fs/cgroup/a/b/memory.events", "oom 2\noom_kill 0\n");
	put_file("/sys/fs/cgroup/cpu/q/cpu.stat", "throttled_time 7000999\n");
	put_file("/sys/fs/cgroup/cpu/q/r/cpu.stat", "throttled_time 1000000\n");
	put_file("/sys/fs/cgroup/memory/m/memory.oom_control", "under_oom 0\noom_kill=4\n");
	put_file("/sys/fs/cgroup/cpu,cpuacct/both/cpu.stat", "throttled_time 5000\n");
	put_file("/sys/fs/cgroup/memory/both/memory.oom_control", "oom_kill: 6\n");
	put_file("/sys/fs/cgroup/large/cpu.stat", "throttled_usec 9007199254740991\n");
	put_file("/sys/fs/cgroup/large/memory.events", "oom_kill 99999999999999999999\n");
	/* Every file of a port and an interface has its own number. */
	for (int kind = 0; kind < HOST_KINDS; kind++) {
		char number[16];

		snprintf(number, sizeof(number), "%d\n", 100 + kind);
		if (host_kinds[kind].file == NULL)
			continue;
		snprintf(name, sizeof(name), "%s%s",
			 host_kinds[kind].object == HOST_OBJECT_PORT ? port
								     : "/sys/class/net/eth0/",
			 host_kinds[kind].file);
		put_file(name, number);
	}
	put_file("/sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
	put_file("/sys/class/infiniband/mlx5_0/ports/2/rate", "2.5 Gb/sec (1X SDR)\n");
	put_file("/sys/class/infiniband/mlx5_1/ports/1/rate", "9223372036854775 Gb/sec\n");
	put_file("/sys/class/infiniband/mlx5_2/ports/1/rate", "9223372036854776 Gb/sec\n");
	put_file("/sys/class/infiniband/mlx5_2/ports/1/state", "unknown\n");
	put_file("/sys/class/infiniband/.hidden/ports/1/state", "4\n");
	put_file("/sys/class/net/eth0/device/x", "");
	put_file("/sys/class/net/eth1/device/x", "");
	put_file("/sys/class/net/eth1/speed", "-1\n");
	put_file("/sys/class/net/eth1/statistics/rx_errors", "-1\n");
	put_file("/sys/class/net/eth2/device/x", "");
	put_file("/sys/class/net/eth2/speed", "0\n");
	put_file("/sys/class/net/eth3/device/x", "");
	put_file("/sys/class/net/eth3/speed", "1\n");
	put_file("/sys/class/net/veth4/speed", "10000\n");
	put_file("/sys/class/net/a\x7f\x1f\xc3z/device/x", "");
	put_file("/sys/class/net/a\x7f\x1f\xc3z/speed", "10\n");
	write_lines("a host", true);
	put_file("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 1001 kB\n");
	put_file("/proc/pressure/memory", "some avg10=0.00\nfull avg10=0.00 total=5\n");
	put_file("/proc/vmstat", "oom_kill 0\n");
	put_file("/proc/stat", "cpu 1 2 3 4 5 6 7 9223372036854775\ncpu0 1\n");
	play.write_most = 7;
	play.write_error = EINTR;
	write_lines("another host, through a slow pipe", false);
	play.write_most = 0;
	put_file("/proc/meminfo", "MemTotal: 3 kB\nMemAvailable: -1 kB\n");
	put_file("/proc/stat", "cpu 1 2 3 4 5 6 7 x\n");
	write_lines("less is known", false);
	put_file("/proc/meminfo", "MemTotal: 0 kB\nMemAvailable: 0 kB\n");
	put_file("/proc/stat", "cpus 1 2 3 4 5 6 7 8\n");
	put_file("/proc/vmstat", "");
	write_lines("nothing is known", false);
	put_file("/proc/meminfo", "MemTotal: 3000 kB\nMemAvailable: 0 kB\n");
	put_file("/proc/stat", "cpu  1 2 3 4 5 6 7 0\n");
	write_lines("no memory, no steal time", false);
}

static void read_nvml(const char *heading)
{
	struct out out = { .root = scratch_dir.path };
	size_t length;
	char *text;

	out.fd = open(command_path("lines"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	read_gpus(&out, "libnvidia-ml.so.9");
	close(out.fd);
	text = command_read(command_path("lines"), &length);
	sink_format(&happened, "=== %s\n%s", heading, text);
	free(text);
}

static void buses(void)
{
	static const char *const cases[][2] = {
		{ "00000000:3B:00.0", "0000:3b:00.0" },
		{ "00010000:3B:00.0", "00010000:3b:00.0" },
		{ "0000000a3B:00.00", "0000000a3b:00.00" },
		{ "0000:3B:00.0", "0000:3b:00.0" },
		{ "00000000:3B:0", "0000:3b:0" },
		{ "00000000:3B:", "00000000:3b:" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char bus[32];

		memset(bus, 'X', sizeof(bus));
		text_copy(bus, sizeof(bus), cases[i][0]);
		shorten_bus(bus);
		EXPECT_THAT("a domain has four digits if that is enough",
			    strcmp(bus, cases[i][1]) == 0);
	}
}

static void drivers(void)
{
	static const char *const needed[] = { "nvmlInit_v2", "nvmlDeviceGetCount_v2",
					      "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID",
					      "nvmlDeviceGetPciInfo_v3" };
	static const char optional[] =
		"nvmlErrorString nvmlDeviceGetClockInfo nvmlDeviceGetMaxClockInfo "
		"nvmlDeviceGetCurrentClocksThrottleReasons nvmlDeviceGetCurrentClocksEventReasons "
		"nvmlDeviceGetTemperature nvmlDeviceGetPowerUsage nvmlDeviceGetEnforcedPowerLimit "
		"nvmlDeviceGetTotalEccErrors nvmlDeviceGetRemappedRows nvmlDeviceGetNvLinkState "
		"nvmlDeviceGetNvLinkErrorCounter nvmlDeviceGetCurrPcieLinkWidth "
		"nvmlDeviceGetMaxPcieLinkWidth ";

	play.gpus = 5;
	read_nvml("five GPUs, of which one does not answer");
	play.gpus = 2;
	play.missing = "nvmlDeviceGetCurrentClocksThrottleReasons ";
	read_nvml("two GPUs, a newer driver");
	play.gpus = 1;
	play.missing = optional;
	read_nvml("a driver without what it may lack");
	play.failing = "nvmlInit_v2 ";
	read_nvml("which does not start");
	play.missing = NULL;
	read_nvml("and says why");
	play.failing = "nvmlDeviceGetCount_v2 ";
	read_nvml("an error without a text");
	play.failing = optional;
	read_nvml("nothing works");
	play.failing = "nvmlDeviceGetUUID nvmlDeviceGetNvLinkErrorCounter ";
	read_nvml("no UUID, no errors of links");
	play.failing = "nvmlDeviceGetPciInfo_v3 ";
	read_nvml("no bus");
	play.failing = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(needed); i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s ", needed[i]);
		play.missing = name;
		read_nvml(needed[i]);
	}
	play.missing = NULL;
	play.has_no_library = true;
	read_nvml("no library");
	play.gpus = 0;
	play.has_no_library = false;
	read_nvml("no GPU");
}

/* ---- the parent ------------------------------------------------------------------------------- */

static void show(const char *heading, const struct cli_host *host, const struct host_facts *facts)
{
	const struct host_series *series = host_facts_find(facts, HOST_OOM_KILLS, "-");

	sink_format(&happened, "%s: %s%s, oom %lld, gaps '%s' '%s'\n", heading,
		    host->child.begun_ns ? "child" : "no child", host->is_done ? ", done" : "",
		    series ? (long long)series->value : -1LL, facts->gaps[HOST_SOURCE_SYSTEM],
		    facts->gaps[HOST_SOURCE_GPU]);
}

/* A child that only waits to be killed, and the end of a pipe that it would write into. */
static struct cli_host begin_child(int *to)
{
	struct cli_host host = { .child = { .errors = -1,
					    .begun_ns = 4995 * SECOND_NS,
					    .until_ns = 5000 * SECOND_NS,
					    .limit = 4096,
					    .code = -1 } };
	int fds[2];

	fflush(NULL);
	host.child.pid = fork();
	if (host.child.pid == 0)
		for (;;)
			pause();
	setpgid(host.child.pid, host.child.pid);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
		abort();
	host.child.output = fds[0];
	*to = fds[1];
	return host;
}

static void send_text(int to, const char *text)
{
	if (write(to, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
}

static void until_over(struct cli_host *host, struct host_facts *facts, uint64_t now_ns)
{
	while (!lines_included_take(host, facts, now_ns, 5))
		poll(NULL, 0, 1);
}

static void children(void)
{
	static char text[1500];
	struct host_facts facts;
	struct cli_host host;
	int to;

	sink_text(&happened, "=== a child that does as it should\n");
	host_facts_init(&facts);
	host = begin_child(&to);
	send_text(to, "value oom_kills - 3\nvalue oom_k");
	EXPECT(!lines_included_take(&host, &facts, 0, 1));
	show("a line and a half", &host, &facts);
	send_text(to, "ills - 4\ndone\n");
	EXPECT(!lines_included_take(&host, &facts, 0, 2));
	show("the rest", &host, &facts);
	close(to);
	EXPECT(!lines_included_take(&host, &facts, 0, 3));
	show("its end", &host, &facts);
	kill(host.child.pid, SIGKILL);
	until_over(&host, &facts, 0);
	show("it is gone", &host, &facts);
	EXPECT_THAT("of no child there is no more", lines_included_take(&host, &facts, 0, 4));
	host_facts_release(&facts);

	sink_text(&happened, "=== a line that is too long, and no last one\n");
	host_facts_init(&facts);
	host = begin_child(&to);
	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, "value oom_kills - 9", 19);
	send_text(to, text);
	send_text(to, "\nvalue oom_kills - 5\n");
	close(to);
	kill(host.child.pid, SIGKILL);
	until_over(&host, &facts, 0);
	show("over", &host, &facts);
	host_facts_release(&facts);

	sink_text(&happened, "=== one that does not answer\n");
	host_facts_init(&facts);
	host = begin_child(&to);
	EXPECT(!lines_included_take(&host, &facts, host.child.until_ns - 1, 5));
	show("in time", &host, &facts);
	until_over(&host, &facts, 5000 * SECOND_NS);
	show("gone", &host, &facts);
	host_facts_release(&facts);
	close(to);

	sink_text(&happened, "=== stopped early\n");
	host_facts_init(&facts);
	host = begin_child(&to);
	child_release(&host.child);
	EXPECT_THAT("its pipe is closed",
		    signal(SIGPIPE, SIG_IGN) != SIG_ERR && write(to, "x", 1) == -1);
	lines_included_wait(&host, &facts);
	host_facts_release(&facts);
	close(to);
	while (wait(NULL) > 0)
		;
}

/* ---- repeatedly ------------------------------------------------------------------------------- */

static void disks_of(const struct host_facts *facts)
{
	for (size_t i = 0; i < facts->series_count; i++)
		if (facts->series[i].kind == HOST_DISK_FREE)
			sink_format(&happened, " %s", facts->series[i].object);
	sink_text(&happened, "\n");
}

static void watching(void)
{
	static const char *const traces[] = {
		"/t/gone/a.rst", "/t/one/b.rst", "/t/two/a.rst", "/t/two/b.rst", "relative/a.rst",
		"/top.rst",	 NULL,		 "/t/3/a",	 "/t/4/a",	 "/t/5/a",
		"/t/6/a",	 "/t/7/a",	 "/t/8/a",	 "/t/9/a",	 "/t/dead/a"
	};
	struct recording_process processes[ARRAY_LENGTH(traces)] = { 0 },
				 *list[ARRAY_LENGTH(traces)];
	struct recording recording = { .processes = list, .count = ARRAY_LENGTH(traces) };
	char infos[ARRAY_LENGTH(traces)][64], host[256] = "";
	struct cli_host_watch watch;
	struct rlimit files;
	int ends[2], streams[2] = { dup(STDIN_FILENO), dup(STDERR_FILENO) };
	sigset_t mask;

	if (pipe2(ends, O_CLOEXEC) != 0 || dup2(ends[0], STDIN_FILENO) == -1 ||
	    dup2(ends[1], STDERR_FILENO) == -1)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(traces); i++) {
		snprintf(infos[i], sizeof(infos[i]), traces[i] ? "trace=%s\n" : "x=%s\n",
			 traces[i] ? traces[i] : "");
		processes[i] = (struct recording_process){ .info = infos[i],
							   .info_bytes = strlen(infos[i]),
							   .life = RECORDING_ALIVE,
							   .pid_here = -1,
							   .pid = 999999000 + (int64_t)i };
		list[i] = &processes[i];
	}
	processes[0].life = processes[ARRAY_LENGTH(traces) - 1].life = RECORDING_KILLED;
	processes[ARRAY_LENGTH(traces) - 1].pid_here = getpid();
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	play.has_no_library = true;
	for (int turn = 0; turn < 2; turn++) {
		play.has_no_log = turn == 1;
		memset(child_saw, 0, sizeof(*child_saw));
		lines_included_watch_open(&watch);
		EXPECT_THAT("that it has no log is noted",
			    (watch.facts.gaps[HOST_SOURCE_LOG][0] != '\0') == (turn == 1));
		host_facts_value(&watch.facts, HOST_PROCESS_OOM_KILLS, "1", 1, 1);
		host_facts_value(&watch.facts, HOST_PROCESS_OOM_KILLS, "999999012", 1, 1);
		lines_included_watch_read(&watch, &recording, turn == 1, 10 * SECOND_NS);
		EXPECT(watch.reading.child.until_ns == 15 * SECOND_NS &&
		       play.log_reads == turn + 1);
		EXPECT_THAT("of processes that are no more, what is known is forgotten",
			    host_facts_find(&watch.facts, HOST_PROCESS_OOM_KILLS, "1") == NULL &&
				    host_facts_find(&watch.facts, HOST_PROCESS_OOM_KILLS,
						    "999999012") != NULL);
		/* Until it has written everything: the pipe ends. */
		while (watch.reading.child.pid != 0 &&
		       !lines_included_take(&watch.reading, &watch.facts, 0, SECOND_NS))
			child_wait(&watch.reading.child, 1000);
		sink_format(&happened, "=== %s traces\ndisks:", turn ? "with" : "without");
		disks_of(&watch.facts);
		sink_format(&happened, "gaps: '%s' '%s'\n", watch.facts.gaps[HOST_SOURCE_SYSTEM],
			    watch.facts.gaps[HOST_SOURCE_GPU]);
		gethostname(host, sizeof(host) - 1);
		EXPECT(strcmp(watch.facts.host, host) == 0);
		EXPECT_THAT("a child has limits, and nothing of the parent's",
			    child_saw->is_noted && child_saw->core.rlim_cur == 0 &&
				    child_saw->core.rlim_max == 0 && child_saw->cpu.rlim_cur == 6 &&
				    child_saw->cpu.rlim_max == 6 &&
				    child_saw->end_signal == SIGKILL && !child_saw->has_mask &&
				    !child_saw->has_input);
		EXPECT(strcmp(child_saw->library, "libnvidia-ml.so.1") == 0);
		lines_included_watch_close(&watch);
	}
	lines_included_watch_open(&watch);
	getrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, files.rlim_max });
	lines_included_watch_read(&watch, &recording, true, 10 * SECOND_NS);
	setrlimit(RLIMIT_NOFILE, &files);
	EXPECT_THAT("that there is no pipe is noted",
		    watch.reading.child.pid == 0 &&
			    strcmp(watch.facts.gaps[HOST_SOURCE_SYSTEM],
				   "cannot start a process: Too many open files") == 0);
	lines_included_watch_close(&watch);
	if (dup2(streams[0], STDIN_FILENO) == -1 || dup2(streams[1], STDERR_FILENO) == -1)
		abort();
}

int main(void)
{
	command_begin();
	child_saw = mmap(NULL, sizeof(*child_saw), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (child_saw == MAP_FAILED)
		abort();
	sink_init_memory(&happened);
	files_of_a_host();
	buses();
	drivers();
	children();
	watching();
	EXPECT_THAT("what is read and reported",
		    expected_text(&happened, "tests/unit/cli/expected/host-lines"));
	return tap_done();
}
