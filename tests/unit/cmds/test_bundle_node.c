/*
 * What a bundle has about the machine: files, counters, kernel log, GPUs and RAS of a machine that is played. The file is
 * included for that.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cmds/bundle_internal.h"
#include "cli/cli_ask.h"
#include "common/clock.h"

static int play_open(const char *path, int flags);
static int play_scandir(const char *path, struct dirent ***list,
			int (*filter)(const struct dirent *),
			int (*order)(const struct dirent **, const struct dirent **));
static ssize_t play_read(int fd, void *bytes, size_t size);
static void play_add(struct bundle_archive *archive, const char *name, const char *about,
		     const void *bytes, size_t length);
static void play_add_sink(struct bundle_archive *archive, const char *name, const char *about,
			  struct sink *sink);
static void play_gap(struct bundle_archive *archive, const char *what, const char *format, ...)
	PRINTF_LIKE(3, 4);
static bool play_log_open(struct host_log *log, const char *root);
static enum status play_log_each(struct host_log *log, host_log_visit *visit, void *context);
static void play_log_close(struct host_log *log);
static int play_klogctl(int type, char *bytes, int size);
static int play_uname(struct utsname *name);
static uint64_t play_clock(clockid_t clock);
static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes);
static void play_watch_open(struct cli_host_watch *watch);
static void play_watch_read(struct cli_host_watch *watch, const struct recording *recording,
			    bool has_traces, uint64_t now_ns);
static void play_watch_close(struct cli_host_watch *watch);
static void play_wait(struct cli_host *host, struct host_facts *facts);
static enum status play_ras(struct ras_answer *answer, const char *address,
			    enum ras_request request);
static enum status play_note(struct recording *recording, const char *path, const char *text,
			     size_t length);

#define bundle_facts node_included_facts
#define bundle_node node_included_node
#define bundle_ras node_included_ras
#define open play_open
#define scandir play_scandir
#define read play_read
#define bundle_add play_add
#define bundle_add_sink play_add_sink
#define bundle_gap play_gap
#define host_log_open play_log_open
#define host_log_each play_log_each
#define host_log_close play_log_close
#define klogctl play_klogctl
#define uname play_uname
#define clock_system_ns play_clock
#define cli_capture(capture, words, fd, timeout_s, most) \
	play_capture(capture, words, fd, timeout_s, most)
#define cli_host_watch_open play_watch_open
#define cli_host_watch_read play_watch_read
#define cli_host_watch_close play_watch_close
#define cli_host_wait play_wait
#define cli_ras_ask play_ras
#define recording_add_note play_note
#include "cmds/bundle_node.c"
#undef open
#undef scandir
#undef read
#undef host_log_open
#undef host_log_each
#undef host_log_close
#undef klogctl
#undef uname
#undef clock_system_ns
#undef cli_capture

#include "common/file.h"
#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

static struct {
	const char *machine; /* a directory below the scratch one */
	bool has_no_log, has_no_ring;
	enum status log_end;
	const char *const *log; /* records; NULL ends it */
	int log_turns;
	const char *ring;
	int ring_size, ring_got;
	bool has_no_smi, is_smi_cut;
	int smi_code;
	bool has_no_ras, is_ras_cut, has_no_json, has_no_diagnostics;
	enum status note;
	int most_read;
} play;
static struct sink happened;
static struct bundle_archive *const archive_of_test = NULL;

static const char *whole_path(const char *path)
{
	static char whole[1024];

	snprintf(whole, sizeof(whole), "%s/%s%s", scratch_dir.path, play.machine, path);
	return path[0] == '/' ? whole : path;
}

static int play_open(const char *path, int flags)
{
	/* Before the test begins, scripts/mutants opens a file. */
	return open(play.machine ? whole_path(path) : path, flags);
}

static int play_scandir(const char *path, struct dirent ***list,
			int (*filter)(const struct dirent *),
			int (*order)(const struct dirent **, const struct dirent **))
{
	return scandir(whole_path(path), list, filter, order);
}

static ssize_t play_read(int fd, void *bytes, size_t size)
{
	return read(fd, bytes, play.most_read && size > 5 ? 5 : size);
}

static void play_add(struct bundle_archive *archive, const char *name, const char *about,
		     const void *bytes, size_t length)
{
	const char *text = bytes;

	if (archive != archive_of_test)
		abort();
	sink_format(&happened, "+ %s (%s)\n", name, about);
	if (length < 2000)
		sink_write(&happened, text, length);
	else
		sink_format(&happened, "%zu bytes: %.20s ... %.*s", length, text, 20,
			    text + length - 20);
	if (length > 0 && text[length - 1] != '\n')
		sink_byte(&happened, '\n');
}

static void play_add_sink(struct bundle_archive *archive, const char *name, const char *about,
			  struct sink *sink)
{
	play_add(archive, name, about, sink_string(sink), sink->used);
	sink_release(sink);
}

static void play_gap(struct bundle_archive *archive, const char *what, const char *format, ...)
{
	char why[600];
	va_list values;

	(void)archive;
	va_start(values, format);
	vsnprintf(why, sizeof(why), format, values);
	va_end(values);
	sink_format(&happened, "- %s: %s\n", what, why);
}

static bool play_log_open(struct host_log *log, const char *root)
{
	log->fd = -1;
	errno = EPERM;
	return root[0] == '\0' && !play.has_no_log;
}

/* One record at a time. */
static enum status play_log_each(struct host_log *log, host_log_visit *visit, void *context)
{
	(void)log;
	if (play.log[play.log_turns] == NULL)
		return play.log_end;
	visit(context, play.log[play.log_turns++]);
	return ERR_TRUNCATED;
}

static void play_log_close(struct host_log *log)
{
	log->fd = -1;
}

static int play_klogctl(int type, char *bytes, int size)
{
	errno = EPERM;
	if (type == 10)
		return play.has_no_ring ? -1 : play.ring_size;
	if (type != 3 || size != play.ring_size)
		abort();
	if (play.ring_got > 0)
		memcpy(bytes, play.ring, (size_t)play.ring_got);
	return play.ring_got;
}

static int play_uname(struct utsname *name)
{
	text_copy(name->nodename, sizeof(name->nodename), "gpu-node-07");
	text_copy(name->sysname, sizeof(name->sysname), "Linux");
	text_copy(name->release, sizeof(name->release), "6.8.0");
	text_copy(name->version, sizeof(name->version), "#1 SMP");
	text_copy(name->machine, sizeof(name->machine), "x86_64");
	return 0;
}

static uint64_t play_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME ? COMMAND_WALL : 5;
}

static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes)
{
	*capture = (struct cli_capture){ .exit_code = play.smi_code, .is_cut = play.is_smi_cut };
	if (strcmp(words[0], "nvidia-smi") != 0 || strcmp(words[1], "-q") != 0 ||
	    words[2] != NULL || fd != -1 || timeout_s != 10 || most_bytes != 4 << 20)
		abort();
	if (play.has_no_smi || play.smi_code != 0)
		text_copy(capture->why, sizeof(capture->why), "nvidia-smi: not found");
	if (play.has_no_smi)
		return ERR_SYSTEM;
	capture->bytes = strdup("GPU 0\nGPU 1\n");
	capture->length = strlen(capture->bytes);
	return OK;
}

static void play_watch_open(struct cli_host_watch *watch)
{
	*watch = (struct cli_host_watch){ .reading = { .taken = 0 } };
	host_facts_init(&watch->facts);
	text_copy(watch->facts.host, sizeof(watch->facts.host), "gpu-node-07");
}

static void play_watch_read(struct cli_host_watch *watch, const struct recording *recording,
			    bool has_traces, uint64_t now_ns)
{
	if (!has_traces || now_ns != 5 || recording == NULL)
		abort();
	host_facts_value(&watch->facts, HOST_OOM_KILLS, "-", 3, 2 * SECOND_NS);
	host_facts_gap(&watch->facts, HOST_SOURCE_GPU, "no GPU");
}

static void play_wait(struct cli_host *host, struct host_facts *facts)
{
	(void)host;
	host_facts_gap(facts, HOST_SOURCE_LOG, "no log");
}

static void play_watch_close(struct cli_host_watch *watch)
{
	host_facts_release(&watch->facts);
}

static enum status play_ras(struct ras_answer *answer, const char *address,
			    enum ras_request request)
{
	bool is_refused = play.has_no_ras || (request == RAS_JSON && play.has_no_json) ||
			  (request == RAS_DIAGNOSTICS && play.has_no_diagnostics);

	sink_format(&happened, "ask %s for %s\n", address ? address : "the default",
		    request == RAS_TEXT	  ? "text"
		    : request == RAS_JSON ? "JSON"
					  : "diagnostics");
	*answer = (struct ras_answer){ .is_json = request == RAS_JSON && address == NULL,
				       .is_cut = play.is_ras_cut };
	if (is_refused) {
		text_copy(answer->why, sizeof(answer->why), "connection refused");
		return ERR_SYSTEM;
	}
	answer->text = strdup("status\n");
	answer->length = 7;
	return OK;
}

static enum status play_note(struct recording *recording, const char *path, const char *text,
			     size_t length)
{
	(void)recording;
	sink_format(&happened, "note %s: %.*s", path, (int)length, text);
	return play.note;
}

/* ---- machines --------------------------------------------------------------------------------- */

static void begin(const char *heading, const char *machine)
{
	static const char *const none[] = { NULL };

	memset(&play, 0, sizeof(play));
	play.machine = machine;
	play.log = none;
	play.ring = "";
	play.ring_size = 100;
	sink_format(&happened, "=== %s\n", heading);
}

static void put(const char *name, const char *text)
{
	char directory[512];

	snprintf(directory, sizeof(directory), "%s", command_path(name));
	*strrchr(directory, '/') = '\0';
	file_make_directories(directory, 0755, (gid_t)-1);
	command_write_text(name, text);
}

#define PORT "m/sys/class/infiniband/mlx5_1/ports/1/"

static void make_machine(void)
{
	static const char *const names[] = { "os-release",   "driver/nvidia/version",
					     "loadavg",	     "meminfo",
					     "pressure/cpu", "pressure/memory",
					     "net/dev",	     "net/snmp",
					     "net/netstat" };
	char path[200], text[200];

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		snprintf(path, sizeof(path), "m/%s/%s", i ? "proc" : "etc", names[i]);
		snprintf(text, sizeof(text), "text of %s\n", names[i]);
		put(path, text);
	}
	put("m/sys/class/infiniband/mlx5_1/fw_ver", "28.39\nmore\n");
	put("m/sys/class/infiniband/mlx5_1/hca_type", "MT4129");
	put(PORT "state", "4: ACTIVE\n");
	put(PORT "rate", "400 Gb/sec (4X NDR)\n");
	put(PORT "counters/symbol_error", "12\n");
	put(PORT "counters/.hidden", "1\n");
	put(PORT "counters/link_downed", "");
	put(PORT "hw_counters/out_of_sequence", "17\n");
	put("m/sys/class/infiniband/mlx5_1/ports/2/state", "1: DOWN\n");
	put("m/sys/class/infiniband/mlx5_0/board_id", "MT_0000000838\n");
	put("m/sys/class/net/eth0/operstate", "up\n");
	put("m/sys/class/net/eth0/mtu", "9000\n");
	put("m/sys/class/net/eth0/statistics/rx_errors", "3\n");
	put("m/sys/class/net/eth0/statistics/tx_errors", "4\n");
	put("m/sys/class/net/.hidden/mtu", "4\n");
	/* A value has at most 199 bytes. */
	memset(text, 'v', sizeof(text) - 1);
	text[199] = '\0';
	put("m/sys/class/net/eth1/speed", text);
	put("m/sys/class/net/eth1/mtu", "1500");
	command_directory("m/sys/class/net/eth1/statistics");
	command_directory("m/sys/class/net/eth1/statistics/directory");
	command_directory("empty");
	command_directory("empty/sys");
	command_directory("empty/sys/class");
	command_directory("empty/sys/class/net");
	command_directory("empty/proc");
	command_directory("empty/proc/loadavg");
}

static void nodes(void)
{
	static const char *const records[] = {
		"6,1,100,-;usb 1-1: new device",
		"4,2,200,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus",
		"3,3,300,-;eth0: LINK IS DOWN",
		"3,4,300,-;mce: Machine check",
		"3,5,300,-;nvidia token=ghp_0123456789abcdefghijABCDEFGHIJ012345",
		"3,6,300,-;Killed process 42 (py\033[0mthon)",
		NULL,
	};
	struct recording_process processes[4] = { { .interface = 5 },
						  { .interface = 2 },
						  { .interface = 5 },
						  { .interface = 64 } },
				 *list[] = { &processes[0], &processes[1], &processes[2],
					     &processes[3] };
	struct recording recording = { .processes = list, .count = 4 };

	make_machine();
	begin("a machine", "m");
	play.log = records;
	node_included_node(archive_of_test, &recording);
	begin("a machine without much", "empty");
	play.has_no_smi = true;
	play.has_no_log = play.has_no_ring = true;
	recording.count = 0;
	node_included_node(archive_of_test, &recording);
}

static void kernel_logs(void)
{
	static const char *no_lines[] = { "6,1,100,-;usb 1-1: new device", NULL };
	static const char *many[3001];
	static char line[120];
	char *ring;

	begin("nothing of interest in the log", "m");
	play.log = no_lines;
	bundle_kernel_log(archive_of_test);
	begin("a log that ends with an error, and a ring", "m");
	play.log_end = ERR_SYSTEM;
	play.ring = "<6>usb\n<3>Out of memory: Killed process 7\n\n<4>AER: error";
	play.ring_got = (int)strlen(play.ring);
	bundle_kernel_log(archive_of_test);
	begin("a ring that cannot be read", "m");
	play.has_no_log = true;
	play.ring_got = -1;
	bundle_kernel_log(archive_of_test);
	begin("an empty ring", "m");
	play.has_no_log = true;
	bundle_kernel_log(archive_of_test);
	begin("a ring without a size", "m");
	play.has_no_log = true;
	play.ring_size = 0;
	bundle_kernel_log(archive_of_test);
	begin("a ring of 64 MiB and a byte", "m");
	play.has_no_log = true;
	play.ring_size = 64 * 1024 * 1024 + 1;
	bundle_kernel_log(archive_of_test);
	begin("a full ring", "m");
	ring = strdup("Xid");
	play.has_no_log = true;
	play.ring = ring;
	play.ring_size = play.ring_got = 3;
	bundle_kernel_log(archive_of_test);
	free(ring);
	/* 100 bytes each with the end of its line. */
	snprintf(line, sizeof(line), "mlx5_core %089d", 1);
	for (size_t i = 0; i < 3000; i++)
		many[i] = line;
	begin("a long log", "m");
	play.log = many;
	bundle_kernel_log(archive_of_test);
	many[2621] = NULL;
	begin("one that just fits", "m");
	play.log = many;
	bundle_kernel_log(archive_of_test);
}

static void others(void)
{
	struct recording recording = { .count = 0 };

	begin("facts", "m");
	node_included_facts(archive_of_test, &recording);
	begin("facts without memory", "m");
	play.note = ERR_NO_SPACE;
	node_included_facts(archive_of_test, &recording);

	begin("nvidia-smi fails", "m");
	play.smi_code = 9;
	add_gpus(archive_of_test);
	begin("and prints much", "m");
	play.is_smi_cut = true;
	add_gpus(archive_of_test);

	begin("a file of 1 MiB and more, and one that arrives in pieces", "m");
	put("m/large", "x");
	if (truncate(command_path("m/large"), (1 << 20) + 1) != 0)
		abort();
	add_file(archive_of_test, "/large", "node/large", "large");
	if (truncate(command_path("m/large"), (1 << 20) - 1) != 0)
		abort();
	add_file(archive_of_test, "/large", "node/large", "almost");
	put("m/pieces", "one two three four\n");
	play.most_read = 5;
	add_file(archive_of_test, "/pieces", "node/pieces", "pieces");

	begin("RAS is not wanted", "m");
	node_included_ras(archive_of_test, "", true);
	begin("RAS", "m");
	node_included_ras(archive_of_test, NULL, true);
	begin("RAS of an older NCCL", "m");
	play.is_ras_cut = true;
	node_included_ras(archive_of_test, "node1:28028", false);
	begin("RAS that answers once", "m");
	play.has_no_json = play.has_no_diagnostics = true;
	node_included_ras(archive_of_test, NULL, true);
	begin("no RAS", "m");
	play.has_no_ras = true;
	node_included_ras(archive_of_test, NULL, true);
}

int main(void)
{
	command_begin();
	sink_init_memory(&happened);
	nodes();
	kernel_logs();
	others();
	EXPECT_THAT("what is reported about machines",
		    expected_text(&happened, "tests/unit/cmds/expected/bundle-node"));
	return tap_done();
}
