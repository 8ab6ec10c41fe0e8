/* What a bundle says about its host: counters, the kernel's log, versions, NCCL's RAS. */
#include "cmds/bundle_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/klog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cli_ask.h"
#include "common/attributes.h"
#include "common/clock.h"
#include "common/secret.h"
#include "common/text.h"
#include "import/host_facts.h"
#include "output/json.h"

/* Counters of InfiniBand ports and network interfaces, and kernel messages about GPUs, network and memory. */

enum {
	COUNTERS_MOST = 50000, /* per tree */
	VALUE_MOST = 200,
	LOG_MOST = 256 * 1024,
};

/* ---- trees of small files --------------------------------------------------------------------- */

struct tree {
	struct sink sink;
	size_t files;
	size_t unreadable;
};

/* One line: its path and its first line. */
static void write_file(struct tree *tree, int directory, const char *name, const char *shown)
{
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char value[VALUE_MOST];
	ssize_t got = fd == -1 ? -1 : read(fd, value, sizeof(value) - 1);

	if (fd != -1)
		close(fd);
	if (got < 0) {
		tree->unreadable++;
		return;
	}
	value[got] = '\0';
	value[strcspn(value, "\n")] = '\0';
	sink_format(&tree->sink, "%s %s\n", shown, value);
	tree->files++;
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
	return strcmp((*one)->d_name, (*other)->d_name);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* All files of a directory, in order. */
static void write_directory(struct tree *tree, const char *path, const char *shown)
{
	struct dirent **list = NULL;
	int count = scandir(path, &list, is_shown, by_name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < count; i++) {
		char whole[600];

		text_format(whole, sizeof(whole), "%s/%s", shown, list[i]->d_name);
		if (fd != -1 && tree->files < COUNTERS_MOST)
			write_file(tree, fd, list[i]->d_name, whole);
		free(list[i]);
	}
	free(list);
	if (fd != -1)
		close(fd);
}

typedef void visit_entry(struct tree *tree, const char *path, const char *shown);

static int each_entry(struct tree *tree, const char *path, const char *shown, visit_entry *visit)
{
	struct dirent **list = NULL;
	int count = scandir(path, &list, is_shown, by_name);

	for (int i = 0; i < count; i++) {
		char below[600], name[600];

		text_format(below, sizeof(below), "%s/%s", path, list[i]->d_name);
		text_format(name, sizeof(name), "%s%s%s", shown, shown[0] ? "/" : "",
			    list[i]->d_name);
		visit(tree, below, name);
		free(list[i]);
	}
	free(list);
	return count;
}

static void write_some(struct tree *tree, const char *path, const char *shown,
		       const char *const *names, size_t count)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; fd != -1 && i < count; i++) {
		char whole[600];

		text_format(whole, sizeof(whole), "%s/%s", shown, names[i]);
		write_file(tree, fd, names[i], whole);
	}
	if (fd != -1)
		close(fd);
}

static void write_port(struct tree *tree, const char *path, const char *shown)
{
	static const char *const names[] = { "state", "phys_state", "rate", "link_layer" };
	char below[700], name[700];

	write_some(tree, path, shown, names, ARRAY_LENGTH(names));
	text_format(below, sizeof(below), "%s/counters", path);
	text_format(name, sizeof(name), "%s/counters", shown);
	write_directory(tree, below, name);
	text_format(below, sizeof(below), "%s/hw_counters", path);
	text_format(name, sizeof(name), "%s/hw_counters", shown);
	write_directory(tree, below, name);
}

static void write_device(struct tree *tree, const char *path, const char *shown)
{
	static const char *const names[] = { "fw_ver", "hca_type", "board_id" };
	char below[700];

	write_some(tree, path, shown, names, ARRAY_LENGTH(names));
	text_format(below, sizeof(below), "%s/ports", path);
	each_entry(tree, below, shown, write_port);
}

static void write_interface(struct tree *tree, const char *path, const char *shown)
{
	static const char *const names[] = { "operstate", "speed", "mtu", "carrier_changes" };
	char below[700];

	write_some(tree, path, shown, names, ARRAY_LENGTH(names));
	text_format(below, sizeof(below), "%s/statistics", path);
	write_directory(tree, below, shown);
}

static void add_tree(struct bundle_archive *archive, const char *path, const char *name,
		     const char *about, visit_entry *visit)
{
	struct tree tree = { .files = 0 };
	int count;

	sink_init_memory(&tree.sink);
	count = each_entry(&tree, path, "", visit);
	if (count <= 0) {
		bundle_gap(archive, name, "%s: %s", path, count == -1 ? strerror(errno) : "empty");
		sink_release(&tree.sink);
		return;
	}
	bundle_add_sink(archive, name, about, &tree.sink);
	if (tree.unreadable > 0)
		bundle_gap(archive, name, "%zu counters below %s cannot be read", tree.unreadable,
			   path);
	if (tree.files == COUNTERS_MOST)
		bundle_gap(archive, name, "truncated after %d counters", COUNTERS_MOST);
}

static void bundle_counters(struct bundle_archive *archive)
{
	add_tree(archive, "/sys/class/infiniband", "node/infiniband.txt",
		 "state and counters of each InfiniBand and RoCE port", write_device);
	add_tree(archive, "/sys/class/net", "node/interfaces.txt",
		 "state and counters of each network interface", write_interface);
}

/* ---- the kernel's log ------------------------------------------------------------------------- */

static bool is_worth(const char *line)
{
	static const char *const words[] = { "NVRM",	  "Xid",
					     "nvidia",	  "nvlink",
					     "mlx",	  "infiniband",
					     "ib_",	  "Link is Down",
					     "link down", "Out of memory",
					     "oom-kill",  "Killed process",
					     "hung_task", "blocked for more",
					     "AER:",	  "MCE" };

	for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
		if (strcasestr(line, words[i]))
			return true;
	return false;
}

static void keep_line(struct sink *sink, const char *line)
{
	char clean[8192]; /* the longest record of the kernel */

	if (!is_worth(line))
		return;
	text_from_field(clean, sizeof(clean), line, strlen(line));
	if (secret_is_value(clean))
		text_copy(clean, sizeof(clean), "(a line that may contain a secret was left out)");
	sink_text(sink, clean);
	sink_byte(sink, '\n');
}

static void keep_record(void *context, const char *record)
{
	keep_line(context, record);
}

static bool read_records(struct sink *sink)
{
	struct host_log log;
	enum status status;

	if (!host_log_open(&log, ""))
		return false;
	do
		status = host_log_each(&log, keep_record, sink);
	while (status == ERR_TRUNCATED);
	host_log_close(&log);
	return status == OK;
}

static bool read_ring(struct sink *sink)
{
	int size = klogctl(10, NULL, 0); /* its size */
	char *bytes, *rest = NULL;
	int got;

	if (size <= 0 || size > 64 * 1024 * 1024)
		return false;
	bytes = cli_realloc(NULL, (size_t)size + 1);
	got = klogctl(3, bytes, size);
	if (got >= 0) {
		bytes[got] = '\0';
		for (char *line = strtok_r(bytes, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			keep_line(sink, line);
	}
	free(bytes);
	return got >= 0;
}

/* Keeps the newest lines, which matter most. */
static const char *newest_lines(const struct sink *sink)
{
	const char *text = sink_string(sink), *end;

	if (sink->used <= LOG_MOST)
		return text;
	end = strchr(text + sink->used - LOG_MOST, '\n');
	return end ? end + 1 : text + sink->used;
}

static void bundle_kernel_log(struct bundle_archive *archive)
{
	static const char name[] = "node/kernel-log.txt";
	static const char about[] =
		"lines of the kernel's log about GPUs (Xid), network and memory";
	const char *text;
	struct sink sink;

	sink_init_memory(&sink);
	if (!read_records(&sink) && !read_ring(&sink)) {
		bundle_gap(archive, name, "cannot read the kernel log: %s (needs root)",
			   strerror(errno));
		sink_release(&sink);
		return;
	}
	if (sink.used == 0)
		sink_text(&sink, "No such lines in the kernel log.\n");
	text = newest_lines(&sink);
	if (sink.status == OK)
		bundle_add(archive, name, about, text, strlen(text));
	if (text != sink_string(&sink))
		bundle_gap(archive, name, "truncated: only the last %d KiB are kept",
			   LOG_MOST / 1024);
	sink_release(&sink);
}

/* This machine: versions and state. Only reads, changes nothing and queries no other hosts. */

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

/* Files of /proc do not report their size. */
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
		bundle_gap(archive, name, "%s: truncated after %d KiB", path, FILE_MOST / 1024);
	free(bytes);
	close(fd);
}

/* NCCL profiler interfaces used here, with the number of processes of each. */
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
	bundle_add_sink(archive, "node/versions.txt",
			"versions of ringside, the kernel and NCCL's interface", &sink);
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
		bundle_gap(archive, "node/nvidia-smi.txt", "truncated after %d MiB",
			   SMI_MOST / 1024 / 1024);
	free(got.bytes);
}

void bundle_facts(struct bundle_archive *archive, struct recording *recording)
{
	struct cli_host_watch host;
	char line[HOST_LINE_BYTES];
	struct sink sink;
	struct json json;

	cli_host_watch_open(&host);
	cli_host_watch_read(&host, recording, true, clock_system_ns(CLOCK_MONOTONIC));
	cli_host_wait(&host.reading, &host.facts);
	sink_init_memory(&sink);
	json_begin(&json, &sink);
	json_put_string(&json, "host", host.facts.host);
	json_put_array(&json, "host_facts");
	for (size_t at = 0; host_facts_next_line(&host.facts, &at, line);)
		json_string(&json, line);
	json_end(&json);
	json_finish(&json);
	if (sink.status != OK ||
	    recording_add_note(recording, BUNDLE_FACTS, sink_string(&sink), sink.used) != OK)
		bundle_gap(archive, BUNDLE_FACTS, "out of memory");
	for (int i = 0; i < HOST_SOURCES; i++)
		if (host.facts.gaps[i][0] != '\0')
			bundle_gap(archive, BUNDLE_FACTS, "%s", host.facts.gaps[i]);
	sink_release(&sink);
	cli_host_watch_close(&host);
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

static void add_ras_diagnostics(struct bundle_archive *archive, const char *address)
{
	struct ras_answer answer;

	if (cli_ras_ask(&answer, address, RAS_DIAGNOSTICS) == OK)
		bundle_add(archive, "ras/diagnostics.txt", "NCCL's diagnostics", answer.text,
			   answer.length);
	else
		bundle_gap(archive, "ras/diagnostics.txt", "%s", answer.why);
	free(answer.text);
}

void bundle_ras(struct bundle_archive *archive, const char *address, bool has_diagnostics)
{
	struct ras_answer answer;

	if (address && address[0] == '\0') {
		bundle_gap(archive, "ras", "--no-ras was given");
		return;
	}
	if (cli_ras_ask(&answer, address, RAS_TEXT) != OK) {
		bundle_gap(archive, "ras/status.txt", "%s", answer.why);
		return;
	}
	bundle_add(archive, "ras/status.txt", "status of the job from NCCL's RAS (verbose)",
		   answer.text, answer.length);
	if (answer.is_cut)
		bundle_gap(archive, "ras/status.txt", "truncated: too long");
	free(answer.text);
	/* The same as JSON, from NCCL 2.28.7 on. */
	if (cli_ras_ask(&answer, address, RAS_JSON) == OK && answer.is_json)
		bundle_add(archive, "ras/status.json", "the same as JSON", answer.text,
			   answer.length);
	else
		bundle_gap(archive, "ras/status.json", "%s",
			   answer.why[0] ? answer.why : "this NCCL release provides text only");
	free(answer.text);
	if (has_diagnostics)
		add_ras_diagnostics(archive, address);
}
