/* Files of /proc, /sys and cgroups with any contents, below a root of our own. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/cli_ask.h"
#include "common/file.h"
#include "common/text.h"
#include "fuzz/fuzz_main.h"

static const char *const paths[] = {
	"/proc/meminfo",
	"/proc/pressure/memory",
	"/proc/vmstat",
	"/proc/stat",
	"/proc/42/cgroup",
	"/sys/fs/cgroup/a/cpu.stat",
	"/sys/fs/cgroup/a/memory.events",
	"/sys/fs/cgroup/cpu/a/cpu.stat",
	"/sys/fs/cgroup/memory/a/memory.oom_control",
	"/sys/class/infiniband/mlx5_0/ports/1/state",
	"/sys/class/infiniband/mlx5_0/ports/1/rate",
	"/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error",
	"/sys/class/net/eth0/device/x",
	"/sys/class/net/eth0/speed",
};
enum { PATHS = sizeof(paths) / sizeof(paths[0]) };

static char root[PATH_MAX];

static void remove_root(void)
{
	char command[PATH_MAX + 20];

	text_format(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command) != 0)
		abort();
}

static void make_root(void)
{
	const char *temporary = getenv("TMPDIR");

	text_format(root, sizeof(root), "%s/fuzz-host-XXXXXX", temporary ? temporary : "/tmp");
	if (mkdtemp(root) == NULL)
		abort();
	atexit(remove_root);
	for (int i = 0; i < PATHS; i++) {
		char path[PATH_MAX];

		text_format(path, sizeof(path), "%s%s", root, paths[i]);
		*strrchr(path, '/') = '\0';
		file_make_directories(path, 0700, (gid_t)-1);
	}
}

/* Files are separated by a byte 0. */
static void put_files(const uint8_t *bytes, size_t length)
{
	for (int i = 0; i < PATHS; i++) {
		const uint8_t *end = length ? memchr(bytes, 0, length) : NULL;
		size_t part = end ? (size_t)(end - bytes) : length;
		char path[PATH_MAX];
		int fd;

		text_format(path, sizeof(path), "%s%s", root, paths[i]);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd == -1 || write(fd, bytes, part) != (ssize_t)part)
			abort();
		close(fd);
		bytes += end ? part + 1 : part;
		length -= end ? part + 1 : part;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static const int64_t pid = 42;
	const struct cli_host_what what = { .root = root, .pids = &pid, .pid_count = 1 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct host_facts facts;
	char text[1 << 16], *rest = text;
	ssize_t got;

	if (root[0] == '\0')
		make_root();
	put_files(bytes, length);
	if (fd == -1 || !cli_host_write(&what, fd))
		abort();
	got = pread(fd, text, sizeof(text) - 1, 0);
	text[got > 0 ? got : 0] = '\0';
	close(fd);
	host_facts_init(&facts);
	for (char *line; (line = strsep(&rest, "\n")) != NULL;)
		host_facts_take_line(&facts, line, 1);
	for (size_t i = 0; i < facts.series_count; i++) {
		const struct host_series *series = &facts.series[i];

		if (series->kind == HOST_MEMORY_AVAILABLE &&
		    (series->value < 0 || series->value > 1000))
			abort();
		if (series->kind == HOST_PROCESS_THROTTLED_US && series->value < 0)
			abort();
	}
	host_facts_release(&facts);
	return 0;
}
