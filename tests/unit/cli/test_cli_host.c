/* What the child process reads below a root of our own, and from an NVML that may hang, crash or fail. */
#include "cli/cli_ask.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/text.h"
#include "tests/tap.h"

#define AT(seconds) ((uint64_t)(1000000 + (seconds)) * SECOND_NS)

static int64_t value_of(const struct host_facts *facts, enum host_kind kind, const char *object)
{
	const struct host_series *series = host_facts_find(facts, kind, object);

	return series ? series->value : -1;
}

/* ---- a root of our own ---------------------------------------------------------------------------- */

static char root[PATH_MAX];

static void put_file(const char *path, const char *text)
{
	char whole[PATH_MAX], directory[PATH_MAX];
	int fd;

	text_format(whole, sizeof(whole), "%s%s", root, path);
	text_copy(directory, sizeof(directory), whole);
	*strrchr(directory, '/') = '\0';
	file_make_directories(directory, 0755, (gid_t)-1);
	fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd == -1 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	close(fd);
}

static void make_root(void)
{
	const char *temporary = getenv("TMPDIR");

	text_format(root, sizeof(root), "%s/cli-host-XXXXXX", temporary ? temporary : "/tmp");
	if (mkdtemp(root) == NULL)
		abort();
	put_file("/dev/shm/x", "x");
	put_file("/tmp/x", "x");
	put_file("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable: 250 kB\n");
	put_file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\n"
					  "full avg10=0.00 avg60=0.00 avg300=0.00 total=999\n");
	put_file("/proc/vmstat", "nr_free_pages 5\noom_kill 3\n");
	put_file("/proc/stat", "cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4\ncpu1 1 2 3 4\nintr 5\n");
	put_file("/proc/42/cgroup", "0::/a/b\n");
	put_file("/proc/43/cgroup", "5:memory:/m\n4:cpu,cpuacct:/q\n1:name=systemd:/x\n");
	put_file("/proc/44/cgroup", "0::/../../etc\n");
	put_file("/sys/fs/cgroup/a/cpu.stat", "nr_throttled 3\nthrottled_usec 1000\n");
	put_file("/sys/fs/cgroup/a/b/cpu.stat", "nr_throttled 3\nthrottled_usec 500\n");
	put_file("/sys/fs/cgroup/a/b/memory.events", "low 0\nmax 9\noom 2\noom_kill 1\n");
	put_file("/sys/fs/cgroup/cpu/q/cpu.stat", "nr_throttled 3\nthrottled_time 7000000\n");
	put_file("/sys/fs/cgroup/memory/m/memory.oom_control", "oom_kill_disable 0\noom_kill 4\n");
	put_file("/sys/class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE\n");
	put_file("/sys/class/infiniband/mlx5_3/ports/1/rate", "400 Gb/sec (4X NDR)\n");
	put_file("/sys/class/infiniband/mlx5_3/ports/1/counters/symbol_error", "4211\n");
	put_file("/sys/class/infiniband/mlx5_3/ports/1/counters/link_downed", "no number\n");
	put_file("/sys/class/infiniband/mlx5_3/ports/1/hw_counters/out_of_sequence", "17\n");
	put_file("/sys/class/net/eth0/device/x", "");
	put_file("/sys/class/net/eth0/speed", "100000\n");
	put_file("/sys/class/net/eth0/statistics/rx_crc_errors", "5\n");
	put_file("/sys/class/net/docker0/speed", "10000\n");
}

static void remove_root(void)
{
	char command[PATH_MAX + 20];

	text_format(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command) != 0)
		abort();
}

static void library_path(char path[PATH_MAX], const char *name)
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (length <= 0)
		abort();
	path[length] = '\0';
	*strrchr(path, '/') = '\0';
	text_append(path, PATH_MAX, "/../fake_gpu/%s", name);
}

/* One reading; with `is_late` the deadline is over as soon as all but the GPUs was read. */
static void read_root(struct host_facts *facts, const char *library, const char *mood, bool is_late)
{
	static const int64_t pids[] = { 42, 43, 44, 45 };
	static const char *const directories[] = { "/nowhere" };
	struct cli_host host = { .taken = 0 };
	struct cli_host_what what = { .root = root,
				      .nvml = library,
				      .pids = pids,
				      .pid_count = 4,
				      .directories = directories,
				      .directory_count = 1 };
	bool is_over = false;

	if (mood)
		setenv("FAKE_NVML", mood, 1);
	host_facts_init(facts);
	host_facts_gap(facts, HOST_SOURCE_SYSTEM, "not read");
	if (!cli_host_start(&host, facts, &what, 1))
		abort();
	EXPECT_THAT("there is one child at a time", !cli_host_start(&host, facts, &what, 1));
	while (!is_over) {
		bool is_due = is_late && facts->gaps[HOST_SOURCE_SYSTEM][0] == '\0';

		is_over = cli_host_take(&host, facts, is_due ? UINT64_MAX : 1, AT(5));
		poll(NULL, 0, is_over ? 0 : 1);
	}
	EXPECT(host.child.begun_ns == 0);
	unsetenv("FAKE_NVML");
}

static void expect_system(const struct host_facts *facts)
{
	EXPECT_EQUAL(value_of(facts, HOST_MEMORY_AVAILABLE, "-"), 250);
	EXPECT_EQUAL(value_of(facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1"), 4211);
	EXPECT_EQUAL(facts->gaps[HOST_SOURCE_SYSTEM][0], '\0');
}

static void test_proc_and_sys(void)
{
	struct host_facts facts;
	char library[PATH_MAX];

	library_path(library, "libnvidia-ml.so.1");
	read_root(&facts, library, NULL, false);
	expect_system(&facts);
	EXPECT_EQUAL(value_of(&facts, HOST_MEMORY_STALL_US, "-"), 1234);
	EXPECT_EQUAL(value_of(&facts, HOST_OOM_KILLS, "-"), 3);
	EXPECT_EQUAL(value_of(&facts, HOST_PROCESSORS, "-"), 2);
	EXPECT_EQUAL(value_of(&facts, HOST_STEAL_MS, "-"), 800 * 1000 / sysconf(_SC_CLK_TCK));
	EXPECT_EQUAL(value_of(&facts, HOST_PROCESS_THROTTLED_US, "42"), 1500);
	EXPECT_EQUAL(value_of(&facts, HOST_PROCESS_THROTTLED_US, "43"), 7000);
	EXPECT_EQUAL(value_of(&facts, HOST_PROCESS_THROTTLED_US, "44"), -1);
	EXPECT_EQUAL(value_of(&facts, HOST_PROCESS_OOM_KILLS, "42"), 1);
	EXPECT_EQUAL(value_of(&facts, HOST_PROCESS_OOM_KILLS, "43"), 4);
	EXPECT_EQUAL(value_of(&facts, HOST_PORT_STATE, "mlx5_3/1"), 4);
	EXPECT_EQUAL(value_of(&facts, HOST_PORT_RATE, "mlx5_3/1"), 400000);
	EXPECT_EQUAL(value_of(&facts, HOST_PORT_LINK_DOWNED, "mlx5_3/1"), -1);
	EXPECT_EQUAL(value_of(&facts, HOST_PORT_OUT_OF_SEQUENCE, "mlx5_3/1"), 17);
	EXPECT_EQUAL(value_of(&facts, HOST_INTERFACE_SPEED, "eth0"), 100000);
	EXPECT_EQUAL(value_of(&facts, HOST_INTERFACE_CRC_ERRORS, "eth0"), 5);
	EXPECT_THAT("interfaces without hardware are left out",
		    value_of(&facts, HOST_INTERFACE_SPEED, "docker0") == -1);
	EXPECT(value_of(&facts, HOST_DISK_FREE, "/dev/shm") >= 0);
	EXPECT_EQUAL(value_of(&facts, HOST_DISK_FREE, "/nowhere"), -1);

	EXPECT_EQUAL(facts.gpu_count, 2);
	EXPECT(strcmp(facts.gpus[1].bus, "0000:ab:00.0") == 0);
	EXPECT(strcmp(facts.gpus[1].uuid, "GPU-22222222-0000-0000-0000-000000000000") == 0);
	EXPECT_EQUAL(value_of(&facts, HOST_GPU_CLOCK, "0000:3b:00.0"), 1980);
	EXPECT_EQUAL(value_of(&facts, HOST_GPU_CLOCK, "0000:ab:00.0"), 1230);
	EXPECT_EQUAL(value_of(&facts, HOST_GPU_THROTTLE, "0000:ab:00.0"), 0x48);
	EXPECT_EQUAL(value_of(&facts, HOST_GPU_ECC_UNCORRECTED, "0000:ab:00.0"), 2);
	EXPECT_EQUAL(value_of(&facts, HOST_GPU_NVLINKS, "0000:ab:00.0"), 3);
	EXPECT_EQUAL(value_of(&facts, HOST_GPU_NVLINK_REPLAY, "0000:ab:00.0"), 15);
	EXPECT_EQUAL(facts.gaps[HOST_SOURCE_GPU][0], '\0');
	host_facts_release(&facts);
}

static void test_bad_drivers(void)
{
	static const struct {
		const char *mood, *gap;
		int gpus;
	} cases[] = {
		{ "hang", "did not answer", 1 },
		{ "crash", "ended the process", 1 },
		{ "exit", "ended the process", 1 },
		{ "error", "Unknown Error (999)", 0 },
		{ "old", "", 2 },
	};
	struct host_facts facts;
	char library[PATH_MAX];

	library_path(library, "libnvidia-ml.so.1");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* Of a driver that hangs, the first GPU may or may not have arrived at the deadline. */
		bool is_late = strcmp(cases[i].mood, "hang") == 0;

		read_root(&facts, library, cases[i].mood, is_late);
		expect_system(&facts);
		EXPECT(strstr(facts.gaps[HOST_SOURCE_GPU], cases[i].gap) != NULL);
		EXPECT(is_late || facts.gpu_count == (size_t)cases[i].gpus);
		host_facts_release(&facts);
	}
	read_root(&facts, "/nowhere/libnvidia-ml.so.1", NULL, false);
	expect_system(&facts);
	EXPECT(strstr(facts.gaps[HOST_SOURCE_GPU], "cannot be loaded") != NULL);
	host_facts_release(&facts);
	read_root(&facts, "libm.so.6", NULL, false);
	EXPECT(strstr(facts.gaps[HOST_SOURCE_GPU], "lacks functions") != NULL);
	host_facts_release(&facts);
}

/* The driver's library runs with the rights of the agent: what is open there is not for it. */
static void test_descriptors(void)
{
	struct host_facts facts;
	char library[PATH_MAX];
	int fds[2];

	if (pipe(fds) == -1 || dup2(fds[0], 1000) == -1)
		abort();
	library_path(library, "libnvidia-ml.so.1");
	read_root(&facts, library, "descriptors", false);
	EXPECT_THAT("the child has its pipe and no other descriptor",
		    value_of(&facts, HOST_GPU_CLOCK, "0000:3b:00.0") == 1);
	host_facts_release(&facts);
	close(fds[0]);
	close(fds[1]);
	close(1000);
}

int main(void)
{
	make_root();
	test_proc_and_sys();
	test_descriptors();
	test_bad_drivers();
	remove_root();
	return tap_done();
}
