/* Facts about a host: their history, their lines, the kernel log. */
#include "import/host_facts.h"

#include <fcntl.h>
#include <stdio.h>
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

/* ---- history ---------------------------------------------------------------------------------- */

static void test_counters_remember_when_they_grew(void)
{
	struct host_facts facts;
	const struct host_series *series;
	uint64_t since_ns = 0;

	host_facts_init(&facts);
	host_facts_value(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1", 7000, AT(0));
	for (int i = 1; i < 100; i++)
		host_facts_value(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1", 7000, AT(i * 30));
	series = host_facts_find(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1");
	EXPECT_EQUAL(series->count, 1);
	EXPECT_EQUAL(host_series_increase(series, AT(0), AT(9999), &since_ns), 0);
	host_facts_value(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1", 7011, AT(3000));
	host_facts_value(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1", 11211, AT(3030));
	EXPECT_EQUAL(host_series_increase(series, AT(0), AT(9999), &since_ns), 4211);
	EXPECT_EQUAL(since_ns, AT(3000));
	EXPECT_THAT("only what a job can have felt counts",
		    host_series_increase(series, AT(3000), AT(9999), &since_ns) == 4200);
	EXPECT_EQUAL(host_series_increase(series, AT(3030), AT(9999), &since_ns), 0);
	EXPECT_EQUAL(host_series_increase(series, AT(0), AT(3000), &since_ns), 11);
	host_facts_value(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1", 3, AT(3060));
	EXPECT_THAT("a counter that was reset did not grow",
		    host_series_increase(series, AT(3030), AT(9999), &since_ns) == 0);
	host_facts_release(&facts);
}

static void test_history_is_bounded(void)
{
	struct host_facts facts;
	const struct host_series *series;
	uint64_t since_ns = 0;

	host_facts_init(&facts);
	for (int i = 0; i < 10000; i++)
		host_facts_value(&facts, HOST_OOM_KILLS, "-", i, AT(i * 30));
	series = host_facts_find(&facts, HOST_OOM_KILLS, "-");
	EXPECT_EQUAL(series->count, HOST_POINTS);
	EXPECT_EQUAL(series->points[0].value, 0);
	EXPECT_EQUAL(host_series_increase(series, AT(0), AT(1000000), &since_ns), 9999);
	EXPECT_THAT("recent points are close together",
		    series->points[HOST_POINTS - 1].wall_ns -
				    series->points[HOST_POINTS - 2].wall_ns <
			    600 * SECOND_NS);
	for (int i = 0; i < HOST_SERIES_MAX + 10; i++) {
		char name[32];

		text_format(name, sizeof(name), "port%d/1", i);
		host_facts_value(&facts, HOST_PORT_STATE, name, 4, AT(400000));
	}
	EXPECT_EQUAL(facts.series_count, HOST_SERIES_MAX);
	EXPECT_THAT("what is left out is counted", facts.left_out == 11);
	host_facts_release(&facts);
}

static void test_levels_ignore_small_changes(void)
{
	struct host_facts facts;
	const struct host_series *series;

	host_facts_init(&facts);
	host_facts_value(&facts, HOST_GPU_CLOCK, "0000:3b:00.0", 1980, AT(0));
	host_facts_value(&facts, HOST_GPU_CLOCK, "0000:3b:00.0", 1965, AT(30));
	series = host_facts_find(&facts, HOST_GPU_CLOCK, "0000:3b:00.0");
	EXPECT_EQUAL(series->count, 1);
	EXPECT_EQUAL(series->value, 1965);
	host_facts_value(&facts, HOST_GPU_CLOCK, "0000:3b:00.0", 1230, AT(60));
	EXPECT_EQUAL(series->count, 2);
	EXPECT_EQUAL(series->points[1].wall_ns, AT(60));
	host_facts_release(&facts);
}

static void test_processes_are_forgotten(void)
{
	static const int64_t pids[] = { 42 };
	struct host_facts facts;

	host_facts_init(&facts);
	host_facts_value(&facts, HOST_PROCESS_THROTTLED_US, "42", 1, AT(0));
	host_facts_value(&facts, HOST_PROCESS_THROTTLED_US, "43", 1, AT(0));
	host_facts_value(&facts, HOST_OOM_KILLS, "-", 0, AT(0));
	host_facts_keep_processes(&facts, pids, 1);
	EXPECT_EQUAL(facts.series_count, 2);
	EXPECT_EQUAL(value_of(&facts, HOST_PROCESS_THROTTLED_US, "43"), -1);
	EXPECT_EQUAL(value_of(&facts, HOST_PROCESS_THROTTLED_US, "42"), 1);
	host_facts_release(&facts);
}

/* ---- lines ------------------------------------------------------------------------------------- */

static void copy_through_lines(const struct host_facts *from, struct host_facts *to)
{
	char line[HOST_LINE_BYTES];

	host_facts_init(to);
	for (size_t at = 0; host_facts_next_line(from, &at, line);)
		host_facts_take_line(to, line, 0);
}

static void test_lines_keep_everything(void)
{
	struct host_event event = { .kind = HOST_EVENT_XID,
				    .first_ns = AT(10),
				    .last_ns = AT(20),
				    .count = 3,
				    .object = "0000:3b:00",
				    .number = 79,
				    .pid = -1,
				    .text = "GPU has fallen off the bus." };
	struct host_facts facts, copy;
	const struct host_series *series;
	uint64_t since_ns = 0;

	host_facts_init(&facts);
	host_facts_value(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1", 7000, AT(0));
	host_facts_value(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1", 11211, AT(30));
	host_facts_value(&facts, HOST_PORT_SYMBOL_ERROR, "mlx5_4/1", 99, AT(30));
	host_facts_value(&facts, HOST_PORT_RATE, "mlx5_3/1", 400000, AT(30));
	host_facts_event(&facts, &event);
	host_facts_take_line(&facts, "gpu 0000:3b:00.0 GPU-1", 0);
	host_facts_gap(&facts, HOST_SOURCE_LOG, "Operation not permitted");
	facts.left_out = 7;
	copy_through_lines(&facts, &copy);
	EXPECT_EQUAL(copy.begin_ns, AT(0));
	EXPECT_EQUAL(copy.last_ns, AT(30));
	series = host_facts_find(&copy, HOST_PORT_SYMBOL_ERROR, "mlx5_3/1");
	EXPECT(series != NULL);
	EXPECT_EQUAL(host_series_increase(series, AT(0), AT(99), &since_ns), 4211);
	EXPECT_EQUAL(since_ns, AT(30));
	EXPECT_THAT("a counter that did not move is not sent",
		    host_facts_find(&copy, HOST_PORT_SYMBOL_ERROR, "mlx5_4/1") == NULL);
	EXPECT_EQUAL(value_of(&copy, HOST_PORT_RATE, "mlx5_3/1"), 400000);
	EXPECT_EQUAL(copy.event_count, 1);
	EXPECT_EQUAL(copy.events[0].count, 3);
	EXPECT(strcmp(copy.events[0].text, event.text) == 0);
	EXPECT(strcmp(copy.gpus[0].uuid, "GPU-1") == 0);
	EXPECT(strcmp(copy.gaps[HOST_SOURCE_LOG], "Operation not permitted") == 0);
	EXPECT_EQUAL(copy.left_out, 7);
	host_facts_release(&facts);
	host_facts_release(&copy);
}

static void test_strange_lines_are_ignored(void)
{
	static const char *const lines[] = {
		"",
		"series",
		"series port_rate",
		"series port_rate mlx5_0/1 1 x 1:1",
		"series port_rate mlx5_0/1 1 5 6:1",
		"series port_rate mlx5_0/1 1 9 6:1 5:1",
		"series port_rate mlx5_0/1 1 9",
		"series no_such_kind x 1 9 1:1",
		"series port_rate mlx5_0/1 1 99999999999999999 1:1",
		"value port_rate mlx5_0/1 99999999999999999999",
		"event xid 0000:3b:00 79 -1 1 1 0 text",
		"event other 0000:3b:00 79 -1 1 1 1 text",
		"gap other text",
		"gpu",
		"time 0 0",
		"future words",
	};
	struct host_facts facts;

	host_facts_init(&facts);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		host_facts_take_line(&facts, lines[i], AT(0));
	EXPECT_EQUAL(facts.series_count + facts.event_count + facts.gpu_count, 0);
	EXPECT_EQUAL(facts.begin_ns, 0);
	host_facts_release(&facts);
}

/* ---- the kernel log ------------------------------------------------------------------------------ */

/* As kernels and drivers write them; times in microseconds since boot. */
static const char kernel_log[] =
	"6,100,1000000,-;usb 1-1: new high-speed USB device number 2 using xhci_hcd\n"
	"4,101,5000000,-;NVRM: GPU at PCI:0000:3b:00: GPU-efbdfde9-5798-a6e7-4c46-12518fa15375\n"
	"4,102,5000001,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has "
	"fallen off the bus.\n"
	" SUBSYSTEM=pci\n"
	"4,103,6000000,-;NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 "
	"caused by previous Xid 149\n"
	"4,104,6000001,-;NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000002 "
	"caused by previous Xid 149\n"
	"4,105,7000000,-;NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 "
	"(0x0409a0c2 0x00000008)\n"
	"3,106,8000000,-;nvidia-nvswitch1: SXid (PCI:0000:84:00.0): 12028, Non-fatal, Link 32 "
	"egress nonposted PRIV error\n"
	"3,107,9000000,-;Out of memory: Killed process 4711 (python3) total-vm:1024kB, "
	"anon-rss:512kB, UID:1000\n"
	"3,108,9500000,-;Memory cgroup out of memory: Killed process 4712 (pt_main_thread) "
	"total-vm:1kB\n"
	"12,109,9600000,-;NVRM: Xid (PCI:0000:3b:00): 48, a program that writes to the log\n"
	"4,110,9700000,-;foo NVRM: Xid (PCI:0000:3b:00): 48, quoted\n"
	"4,111,9800000,-;NVRM: Xid (PCI:0000:3b:00): , no number\n"
	"4,112,9900000,-;NVRM: Xid (PCI:0000:00:06): 31, pid=1764, name=python3, channel "
	"0x0000000c, "
	"intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x0_00000000. "
	"Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE\n";

static void test_kernel_log(void)
{
	struct host_facts facts;
	char copy[sizeof(kernel_log)], *rest = copy;

	host_facts_init(&facts);
	memcpy(copy, kernel_log, sizeof(copy));
	for (char *line; (line = strsep(&rest, "\n")) != NULL;)
		if (line[0] != ' ')
			host_log_line(&facts, line, (int64_t)AT(0), 0, UINT64_MAX);
	EXPECT_EQUAL(facts.event_count, 7);
	EXPECT_EQUAL(facts.events[0].number, 79);
	EXPECT_EQUAL(facts.events[0].first_ns, AT(5) + 1000);
	EXPECT_EQUAL(facts.events[0].pid, -1);
	EXPECT(strcmp(facts.events[0].object, "0000:3b:00") == 0);
	EXPECT(strcmp(facts.events[0].text, "GPU has fallen off the bus.") == 0);
	EXPECT_EQUAL(facts.events[1].number, 45);
	EXPECT_EQUAL(facts.events[1].pid, 1818990);
	EXPECT_THAT("repeated ones are counted", facts.events[1].count == 2);
	EXPECT_EQUAL(facts.events[2].number, 145);
	EXPECT_EQUAL(facts.events[3].kind, HOST_EVENT_SXID);
	EXPECT_EQUAL(facts.events[3].number, 12028);
	EXPECT(strcmp(facts.events[3].object, "0000:84:00.0") == 0);
	EXPECT_EQUAL(facts.events[4].kind, HOST_EVENT_OOM);
	EXPECT_EQUAL(facts.events[4].number, 4711);
	EXPECT_THAT("names of processes are not kept", strcmp(facts.events[4].object, "-") == 0);
	EXPECT_EQUAL(facts.events[5].number, 4712);
	EXPECT(strstr(facts.events[5].text, "cgroup") != NULL);
	EXPECT_EQUAL(facts.events[6].number, 31);
	EXPECT_EQUAL(facts.events[6].pid, 1764);
	EXPECT(strncmp(facts.events[6].text, "channel 0x0000000c, intr", 24) == 0);
	EXPECT_THAT("long words end in an ellipsis",
		    strcmp(facts.events[6].text + sizeof(facts.events[6].text) - 4, "...") == 0);
	EXPECT_EQUAL(facts.gpu_count, 1);
	EXPECT(strcmp(facts.gpus[0].bus, "0000:3b:00.0") == 0);
	EXPECT(strcmp(facts.gpus[0].uuid, "GPU-efbdfde9-5798-a6e7-4c46-12518fa15375") == 0);
	host_facts_release(&facts);
}

static void test_meanings(void)
{
	char text[200] = "";

	EXPECT(strstr(host_xid_meaning(79), "fallen off the bus") != NULL);
	EXPECT(host_xid_meaning(77777) == NULL);
	EXPECT(host_xid_is_software(31) && !host_xid_is_software(79) && !host_xid_is_software(5));
	EXPECT(!host_throttle_say(text, sizeof(text), HOST_THROTTLE_IDLE));
	EXPECT(host_throttle_say(text, sizeof(text),
				 HOST_THROTTLE_HARD_THERMAL | HOST_THROTTLE_POWER_CAP));
	EXPECT(strcmp(text, "hardware thermal slowdown, power cap") == 0);
}

static void test_log_file(void)
{
	char root[] = "/tmp/host-log-XXXXXX", path[64];
	struct host_facts facts;
	struct host_log log;
	int fd;

	host_facts_init(&facts);
	if (mkdtemp(root) == NULL)
		abort();
	text_format(path, sizeof(path), "%s/dev", root);
	file_make_directories(path, 0755, (gid_t)-1);
	text_append(path, sizeof(path), "/kmsg");
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	if (write(fd, kernel_log, sizeof(kernel_log) - 1) != (ssize_t)sizeof(kernel_log) - 1)
		abort();
	EXPECT(host_log_open(&log, root));
	host_log_read(&log, &facts, AT(0));
	EXPECT_EQUAL(facts.event_count, 7);
	EXPECT_THAT("records of the first reading have the times of the log",
		    facts.events[0].first_ns < AT(0));
	host_log_read(&log, &facts, AT(30));
	EXPECT_THAT("nothing is read twice", facts.events[0].count == 1);
	if (dprintf(fd, "4,120,1,-;NVRM: Xid (PCI:0000:3b:00): 95, later\n") <= 0)
		abort();
	host_log_read(&log, &facts, AT(60));
	EXPECT_EQUAL(facts.events[7].number, 95);
	EXPECT_THAT("what is new happened since the last reading, whatever its clock says",
		    facts.events[7].first_ns == AT(30));
	host_log_close(&log);
	EXPECT(!host_log_open(&log, "/nowhere"));
	close(fd);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(root);
	host_facts_release(&facts);
}

static void test_limits_of_lines(void)
{
	struct host_facts facts;
	const struct host_series *series;
	char line[200], object[80];

	host_facts_init(&facts);
	host_facts_take_line(&facts, "time 0 5", 0);
	EXPECT_THAT("a time from 1970 is none", facts.begin_ns == 0);
	host_facts_take_line(&facts, "series gpu_clock a 5 100 90:4 90:5", 0);
	series = host_facts_find(&facts, HOST_GPU_CLOCK, "a");
	EXPECT_THAT("two points at one time are two points", series != NULL && series->count == 2 &&
								     series->value == 5 &&
								     series->points[1].value == 5);
	host_facts_take_line(&facts, "series gpu_clock b 5 100 100:5", 0);
	EXPECT(host_facts_find(&facts, HOST_GPU_CLOCK, "b") != NULL);
	host_facts_take_line(&facts, "series gpu_clock c 5 100 101:5", 0);
	host_facts_take_line(&facts, "series gpu_clock d 5 100 90:5 89:6", 0);
	host_facts_take_line(&facts, "series gpu_clock e 5 100", 0);
	host_facts_take_line(&facts, "series gpu_clock f 5 100 90", 0);
	EXPECT_THAT("points after the last reading or out of order are refused",
		    host_facts_find(&facts, HOST_GPU_CLOCK, "c") == NULL &&
			    host_facts_find(&facts, HOST_GPU_CLOCK, "d") == NULL &&
			    host_facts_find(&facts, HOST_GPU_CLOCK, "e") == NULL &&
			    host_facts_find(&facts, HOST_GPU_CLOCK, "f") == NULL);
	host_facts_take_line(&facts, "value gpu_clock g 7", AT(1));
	host_facts_take_line(&facts, "value gpu_clock", AT(1));
	host_facts_take_line(&facts, "value what h 7", AT(1));
	EXPECT(value_of(&facts, HOST_GPU_CLOCK, "g") == 7 && facts.series_count == 3);
	/* 63 bytes of an object are kept. */
	memset(object, 'x', sizeof(object));
	object[64] = '\0';
	snprintf(line, sizeof(line), "value gpu_power %s 9", object);
	host_facts_take_line(&facts, line, AT(1));
	EXPECT_EQUAL(strlen(facts.series[3].object), 63);
	EXPECT_EQUAL(value_of(&facts, HOST_GPU_POWER, object), 9);
	host_facts_release(&facts);
}

/* The same event again: counted, from its first time to its last. Of more than 64 the oldest is dropped. */
static void test_events_are_bounded(void)
{
	struct host_facts facts;
	struct host_event event = { .kind = HOST_EVENT_XID,
				    .number = 79,
				    .pid = -1,
				    .count = 2,
				    .first_ns = AT(5),
				    .last_ns = AT(6),
				    .object = "a" };

	host_facts_init(&facts);
	host_facts_event(&facts, &event);
	event.first_ns = AT(4);
	event.last_ns = AT(5);
	event.count = 3;
	host_facts_event(&facts, &event);
	EXPECT(facts.event_count == 1 && facts.events[0].count == 5 &&
	       facts.events[0].first_ns == AT(4) && facts.events[0].last_ns == AT(6));
	event.last_ns = AT(9);
	host_facts_event(&facts, &event);
	EXPECT_EQUAL(facts.events[0].last_ns, AT(9));
	event.pid = 7;
	host_facts_event(&facts, &event);
	event.object[0] = 'b';
	host_facts_event(&facts, &event);
	event.kind = HOST_EVENT_SXID;
	host_facts_event(&facts, &event);
	EXPECT_EQUAL(facts.event_count, 4);
	for (int i = 0; i < HOST_EVENTS_MAX - 4; i++) {
		event.number = 1000 + i;
		host_facts_event(&facts, &event);
	}
	EXPECT(facts.event_count == HOST_EVENTS_MAX && facts.left_out == 0);
	event.number = 5000;
	host_facts_event(&facts, &event);
	EXPECT(facts.event_count == HOST_EVENTS_MAX && facts.left_out == 1 &&
	       facts.events[0].pid == 7 && facts.events[HOST_EVENTS_MAX - 1].number == 5000);
	host_facts_release(&facts);
	for (int i = 0; i <= HOST_GPUS_MAX; i++) {
		char line[64];

		snprintf(line, sizeof(line), "gpu 0000:%02x:00.0 GPU-%d", i, i);
		host_facts_take_line(&facts, line, 0);
	}
	EXPECT(facts.gpu_count == HOST_GPUS_MAX && facts.left_out == 1);
	host_facts_take_line(&facts, "gpu 0000:05:00.0 GPU-new", 0);
	EXPECT(facts.gpu_count == HOST_GPUS_MAX && strcmp(facts.gpus[5].uuid, "GPU-new") == 0);
	host_facts_release(&facts);
}

/* Times of the kernel log become wall time, between two limits. */
static void test_times_of_records(void)
{
	static const struct {
		int64_t offset_ns;
		uint64_t us, least_ns, most_ns, first_ns;
	} cases[] = {
		{ 0, 5, 0, UINT64_MAX, 5000 },	   { 100, 5, 0, UINT64_MAX, 5100 },
		{ -4000, 5, 0, UINT64_MAX, 1000 }, { -5000, 5, 0, UINT64_MAX, 0 },
		{ -6000, 5, 0, UINT64_MAX, 0 },	   { 0, 5, 5001, UINT64_MAX, 5001 },
		{ 0, 5, 4999, UINT64_MAX, 5000 },  { 0, 5, 0, 4999, 4999 },
		{ 0, 5, 0, 5001, 5000 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct host_facts facts;
		char line[128];

		host_facts_init(&facts);
		snprintf(line, sizeof(line), "4,7,%llu,-;NVRM: Xid (PCI:0000:3b:00): 79, x",
			 (unsigned long long)cases[i].us);
		host_log_line(&facts, line, cases[i].offset_ns, cases[i].least_ns,
			      cases[i].most_ns);
		EXPECT(facts.event_count == 1 && facts.events[0].first_ns == cases[i].first_ns &&
		       facts.events[0].last_ns == cases[i].first_ns);
		host_facts_release(&facts);
	}
}

/* Who writes such a record, and how its parts look. */
static void test_records(void)
{
	static const struct {
		const char *line;
		size_t events;
	} cases[] = {
		{ "0,1,5,-;NVRM: Xid (PCI:0000:3b:00): 79, x", 1 },
		{ "7,1,5,-;NVRM: Xid (PCI:0000:3b:00): 79, x", 1 },
		{ "8,1,5,-;NVRM: Xid (PCI:0000:3b:00): 79, x", 0 },
		{ "4;NVRM: Xid (PCI:0000:3b:00): 79, x", 0 },
		{ "4,1;NVRM: Xid (PCI:0000:3b:00): 79, x,y", 0 },
		{ "4,1,x,-;NVRM: Xid (PCI:0000:3b:00): 79, x", 0 },
		{ "4,1,5,-NVRM: Xid (PCI:0000:3b:00): 79, x", 0 },
		{ "4,1,5,-;x NVRM: Xid (PCI:0000:3b:00): 79, x", 0 },
		{ "4,1,5,-;NVRM: Xid (PCI:0000:3): 79, x", 0 },
		{ "4,1,5,-;NVRM: Xid (PCI:0000:3b): 79, x", 1 },
		{ "4,1,5,-;NVRM: Xid (0000:3b:00): 79", 1 },
		{ "4,1,5,-;NVRM: Xid (PCI:0000:3b:00) 79, x", 0 },
		{ "4,1,5,-;NVRM: Xid (PCI:0000:3b:00): x", 0 },
		{ "4,1,5,-;nvidia-nvswitch3: SXid (PCI:0000:84:00.0): 12028, x", 1 },
		{ "4,1,5,-;NVRM: SXid (PCI:0000:84:00.0): 12028, x", 0 },
		{ "4,1,5,-;Out of memory: Killed process 7 (a)", 1 },
		{ "4,1,5,-;Memory cgroup out of memory: Killed process 7 (a)", 1 },
		{ "4,1,5,-;It says: Killed process 7 (a)", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct host_facts facts;

		host_facts_init(&facts);
		host_log_line(&facts, cases[i].line, 0, 0, UINT64_MAX);
		EXPECT_THAT(cases[i].line, facts.event_count == cases[i].events);
		host_facts_release(&facts);
	}
}

int main(void)
{
	test_limits_of_lines();
	test_events_are_bounded();
	test_times_of_records();
	test_records();
	test_counters_remember_when_they_grew();
	test_history_is_bounded();
	test_levels_ignore_small_changes();
	test_processes_are_forgotten();
	test_lines_keep_everything();
	test_strange_lines_are_ignored();
	test_kernel_log();
	test_meanings();
	test_log_file();
	return tap_done();
}
