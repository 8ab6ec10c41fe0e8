/* This machine: what runs here, and how it is. Everything is read; nothing is set, and nothing is asked of others. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "programs/cli/bundle_parts.h"
#include "programs/cli/cli_capture.h"
#include "programs/cli/cli_memory.h"
#include "programs/cli/cli_process.h"
#include "programs/cli/ras_client.h"

enum { FILE_MOST = 1024 * 1024, SMI_MOST = 4 * 1024 * 1024, SMI_SECONDS = 10 };

static const struct {
	const char *path;
	const char *name;
	const char *about;
} files[] = {
	{ "/etc/os-release", "node/os-release.txt", "the operating system" },
	{ "/proc/driver/nvidia/version", "node/nvidia-driver.txt", "the GPU driver" },
	{ "/proc/loadavg", "node/loadavg.txt", "load of the machine" },
	{ "/proc/meminfo", "node/meminfo.txt", "memory of the machine" },
	{ "/proc/pressure/cpu", "node/pressure-cpu.txt", "time that tasks waited for a processor" },
	{ "/proc/pressure/memory", "node/pressure-memory.txt",
	  "time that tasks waited for memory" },
	{ "/proc/pressure/io", "node/pressure-io.txt", "time that tasks waited for disks" },
	{ "/proc/net/dev", "node/net-dev.txt",
	  "packets, errors and drops of each network interface" },
	{ "/proc/net/snmp", "node/net-snmp.txt", "counters of IP, TCP and UDP; TCP: RetransSegs" },
	{ "/proc/net/netstat", "node/net-netstat.txt", "more counters of TCP and IP" },
};

/* Files of /proc do not say how long they are. */
static void add_file(struct bundle_archive *archive, const char *path, const char *name,
		     const char *about)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *bytes;
	size_t used = 0;
	ssize_t got = 0;

	if (fd == -1) {
		bundle_gap(archive, name, "%s: %s", path, strerror(errno));
		return;
	}
	bytes = cli_realloc(NULL, FILE_MOST);
	while (used < FILE_MOST && (got = read(fd, bytes + used, FILE_MOST - used)) > 0)
		used += (size_t)got;
	if (got == -1 && used == 0)
		bundle_gap(archive, name, "%s: %s", path, strerror(errno));
	else
		bundle_add(archive, name, about, bytes, used);
	if (used == FILE_MOST)
		bundle_gap(archive, name, "%s: what comes after %d KiB", path, FILE_MOST / 1024);
	free(bytes);
	close(fd);
}

/* Which interfaces NCCL spoke to recorders here, each with its number of processes. */
static void write_interfaces(struct sink *sink, const struct recording *recording)
{
	for (uint32_t version = 1; version < 64; version++) {
		size_t count = 0;

		for (size_t i = 0; i < recording->count; i++)
			count += recording->processes[i]->interface == version;
		if (count > 0)
			sink_format(sink, "NCCL profiler interface  %" PRIu32 " (%zu %s)\n",
				    version, count, text_which(count, "process", "processes"));
	}
}

static void add_versions(struct bundle_archive *archive, const struct recording *recording)
{
	char time[UNITS_TEXT];
	struct utsname name;
	struct sink sink;

	sink_init_memory(&sink);
	sink_text(&sink, "ringside                 " RINGSIDE_VERSION "\n");
	sink_format(&sink, "when                     %s\n",
		    units_wall_time(time, clock_system_ns(CLOCK_REALTIME)));
	if (uname(&name) == 0)
		sink_format(&sink,
			    "host                     %s\nkernel                   %s %s %s %s\n",
			    name.nodename, name.sysname, name.release, name.version, name.machine);
	write_interfaces(&sink, recording);
	bundle_add_sink(archive, "node/versions.txt", "of ringside, the kernel, NCCL's interface",
			&sink);
}

static void add_gpus(struct bundle_archive *archive)
{
	static const char *const words[] = { "nvidia-smi", "-q", NULL };
	struct cli_capture got;

	if (cli_capture(&got, words, -1, SMI_SECONDS, SMI_MOST) == OK && got.exit_code == 0)
		bundle_add(archive, "node/nvidia-smi.txt", "nvidia-smi -q", got.bytes, got.length);
	else
		bundle_gap(archive, "node/nvidia-smi.txt", "%s", got.why);
	if (got.is_cut)
		bundle_gap(archive, "node/nvidia-smi.txt", "what comes after %d MiB",
			   SMI_MOST / 1024 / 1024);
	free(got.bytes);
}

void bundle_node(struct bundle_archive *archive, const struct recording *recording)
{
	add_versions(archive, recording);
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
		add_file(archive, files[i].path, files[i].name, files[i].about);
	bundle_counters(archive);
	bundle_kernel_log(archive);
	add_gpus(archive);
}

void bundle_ras(struct bundle_archive *archive, const char *address)
{
	struct ras_answer answer;

	if (address && address[0] == '\0') {
		bundle_gap(archive, "ras", "--no-ras was said");
		return;
	}
	if (ras_client_ask(&answer, address, false) != OK) {
		bundle_gap(archive, "ras/status.txt", "%s", answer.why);
		return;
	}
	bundle_add(archive, "ras/status.txt", "what NCCL's RAS says of the job (verbose status)",
		   answer.text, answer.length);
	if (answer.is_cut)
		bundle_gap(archive, "ras/status.txt", "the end of it: it was too long");
	free(answer.text);
	/* The same for programs, from NCCL 2.28.7 on. */
	if (ras_client_ask(&answer, address, true) == OK && answer.is_json)
		bundle_add(archive, "ras/status.json", "the same as JSON", answer.text,
			   answer.length);
	else
		bundle_gap(archive, "ras/status.json", "%s",
			   answer.why[0] ? answer.why
					 : "this release of NCCL has it as text alone");
	free(answer.text);
}
