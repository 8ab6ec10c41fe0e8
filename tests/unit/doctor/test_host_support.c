/* What hosts know beside verdicts: each verdict gets its own facts, and none of others. */
#include "doctor/doctor.h"

#include <stdarg.h>

#include "common/text.h"
#include "tests/tap.h"
#include "tests/unit/doctor/hang_stage.h"

#define START_S (WALL_NS / SECOND - 900) /* of the job */

static struct hang_stage stage;
static struct host_facts facts;

/* Four ranks on two hosts, each with a GPU of its own. */
static void begin_ranks(const char *host, int ranks)
{
	stage_begin(&stage, ranks, 2);
	for (int i = 0; i < ranks; i++) {
		struct comm_info *info = &stage_rank(&stage, i)->comms[0].info;

		stage_rank(&stage, i)->started_wall_ns = START_S * SECOND;
		text_format(info->gpu_uuid, sizeof(info->gpu_uuid), "GPU-%d", i);
		text_format(info->gpu_bus, sizeof(info->gpu_bus), "0000:%d0:00.0", i % 2 + 1);
	}
	host_facts_init(&facts);
	text_copy(facts.host, sizeof(facts.host), host);
	host_facts_take_line(&facts, "time 1699990000 1700000000", 0);
}

static void begin(const char *host)
{
	begin_ranks(host, 4);
}

static void fact(const char *format, ...) PRINTF_LIKE(1, 2);
static void fact(const char *format, ...)
{
	char line[HOST_LINE_BYTES];
	va_list values;

	va_start(values, format);
	vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	host_facts_take_line(&facts, line, 0);
}

static struct verdict *verdict_on(enum verdict_class class, int rank)
{
	struct verdict *verdict = verdicts_add(&stage.verdicts, class, VERDICT_ERROR);

	text_copy(verdict->job, sizeof(verdict->job), "job");
	text_copy(verdict->host, sizeof(verdict->host), stage_rank(&stage, rank)->host);
	verdict->rank = rank;
	verdict->pid = 4000 + rank;
	return verdict;
}

/* All lines of the first verdict's evidence. */
static const char *judge(void)
{
	static char text[8192];
	const struct verdict *verdict;

	if (job_make(&stage.job, &stage.recording) != OK)
		abort();
	poison_job(&stage.job);
	host_support(&stage.verdicts, &stage.job, &facts, false);
	/* Again, as an agent does at every scan. */
	host_support(&stage.verdicts, &stage.job, &facts, false);
	verdict = &stage.verdicts.list[0];
	text[0] = '\0';
	for (size_t i = 0; i < verdict->evidence.count; i++)
		text_append(text, sizeof(text), "%s\n", verdict->evidence.list[i]);
	return text;
}

static void end(void)
{
	host_facts_release(&facts);
	stage_end(&stage);
}

static void test_xid_of_a_hang(void)
{
	const char *text;

	begin("node0");
	fact("event xid 0000:10:00 79 -1 1699999500 1699999500 1 GPU has fallen off the bus.");
	verdict_on(VERDICT_GPU_STUCK, 0);
	text = judge();
	EXPECT(strcmp(text,
		      "Xid 79 on its GPU (0000:10:00) at 22:05:00: the GPU has fallen off the "
		      "bus; driver: GPU has fallen off the bus.\n") == 0);
	end();

	begin("node0");
	fact("event xid 0000:10:00 79 -1 1699999500 1699999500 1 x");
	verdict_on(VERDICT_GPU_STUCK, 1);
	EXPECT_THAT("the GPU of another rank is not its own", judge()[0] == '\0');
	end();

	begin("node0");
	stage_rank(&stage, 1)->comms[0].info.gpu_uuid[0] = '\0';
	fact("event xid 0000:10:00 79 -1 1699999500 1699999500 1 x");
	fact("event xid 0000:10:00 31 99 1699999500 1699999500 1 MMU Fault");
	verdict_on(VERDICT_GPU_STUCK, 1);
	text = judge();
	EXPECT_THAT("if its GPU is unknown, it may be one of the host",
		    strstr(text, "Xid 79 on a GPU of this host") != NULL);
	EXPECT_THAT("but not errors of other programs", strstr(text, "Xid 31") == NULL);
	end();

	begin("node0");
	fact("event xid 0000:10:00 45 4000 1699999500 1699999500 1 Ch 1 caused by previous Xid "
	     "149");
	fact("event xid 0000:10:00 149 -1 1699999500 1699999500 1 NETIR Fatal");
	verdict_on(VERDICT_STUCK, 0);
	text = judge();
	EXPECT(strstr(text, "Xid 149") != NULL && strstr(text, "Xid 45") == NULL);
	end();

	begin("node0");
	fact("event xid 0000:10:00 79 -1 1699990001 1699990001 1 before the job");
	verdict_on(VERDICT_GPU_STUCK, 0);
	EXPECT_THAT("an Xid from before the job explains nothing", judge()[0] == '\0');
	end();

	begin("node0");
	stage_rank(&stage, 0)->started_wall_ns = stage_rank(&stage, 1)->started_wall_ns = 0;
	fact("event xid 0000:10:00 79 -1 1699999500 1699999500 1 x");
	verdict_on(VERDICT_GPU_STUCK, 0);
	EXPECT_THAT("nor if the start of the job is unknown", judge()[0] == '\0');
	end();
}

static void test_oom_kill(void)
{
	begin("node1");
	stage_rank(&stage, 2)->life = RECORDING_KILLED;
	fact("event oom - 4002 4002 1700000001 1700000001 1 memory limit of its cgroup");
	verdict_on(VERDICT_PROCESS_DEAD, 2);
	EXPECT(strcmp(judge(), "Killed by the OOM killer at 22:13:21: memory limit of its cgroup "
			       "(kernel log).\n") == 0);
	end();

	begin("node1");
	stage_rank(&stage, 2)->life = RECORDING_KILLED;
	fact("event oom - 4003 4003 1700000001 1700000001 1 memory of the host");
	fact("event oom - 4002 4002 1699999200 1699999200 1 memory of the host");
	verdict_on(VERDICT_PROCESS_DEAD, 2);
	EXPECT_THAT("not another process, and not the same PID long before its death",
		    judge()[0] == '\0');
	end();

	begin("node1");
	stage_rank(&stage, 2)->life = RECORDING_KILLED;
	fact("gap log Operation not permitted");
	fact("series oom_kills - 4 1700000020 1699990000:3 1700000020:4");
	verdict_on(VERDICT_PROCESS_DEAD, 2);
	EXPECT(strstr(judge(), "The OOM killer killed a process of this host around that time") !=
	       NULL);
	EXPECT_EQUAL(stage.verdicts.list[0].missing.count, 1);
	EXPECT(strstr(stage.verdicts.list[0].missing.list[0],
		      "Kernel log of node1 not readable (Operation not permitted)") != NULL);
	end();
}

/* Without a verdict on any rank. */
static void test_notes(void)
{
	const struct verdict *note;

	begin("node1");
	stage_rank(&stage, 2)->life = RECORDING_KILLED;
	fact("event oom - 4002 4002 1700000001 1700000001 1 memory of the host");
	if (job_make(&stage.job, &stage.recording) != OK)
		abort();
	poison_job(&stage.job);
	host_support(&stage.verdicts, &stage.job, &facts, true);
	EXPECT_EQUAL(stage.verdicts.count, 1);
	note = &stage.verdicts.list[0];
	EXPECT(note->severity == VERDICT_NOTE && strcmp(note->rule, "host-oom") == 0);
	EXPECT(strcmp(note->evidence.list[0], "Rank 2 (pid 4002) on node1 was killed at 22:13:21: "
					      "memory of the host (kernel log).") == 0);
	end();

	begin("node1");
	fact("event oom - 4002 4002 1700000001 1700000001 1 memory of the host");
	if (job_make(&stage.job, &stage.recording) != OK)
		abort();
	poison_job(&stage.job);
	host_support(&stage.verdicts, &stage.job, &facts, true);
	EXPECT_THAT("a process that lives was not killed", stage.verdicts.count == 0);
	end();
}

static void test_starved_rank(void)
{
	const char *text;

	begin("node0");
	fact("series process_throttled_us 4000 500000000 1700000000 1699999000:0 "
	     "1699999900:500000000");
	fact("series process_throttled_us 4001 900000000 1700000000 1699999000:0 "
	     "1699999900:900000000");
	fact("series processors - 8 1700000000 1699999000:8");
	fact("series steal_ms - 1440000 1700000000 1699999000:0 1699999900:1440000");
	verdict_on(VERDICT_NEVER_ISSUED, 0);
	text = judge();
	EXPECT(strstr(text, "The CPU quota of its cgroup stopped its threads for 8 min 20 s since "
			    "22:11:40.") != NULL);
	EXPECT(strstr(text, "20% of the processor time of node0 went to other virtual machines "
			    "(steal)") != NULL);
	EXPECT_THAT("lines are not repeated", stage.verdicts.list[0].evidence.count == 2);
	end();

	begin("node0");
	fact("series process_throttled_us 4000 5000 1700000000 1699999000:0 1699999900:5000");
	verdict_on(VERDICT_NEVER_ISSUED, 0);
	EXPECT_THAT("5 ms in 15 minutes explain nothing", judge()[0] == '\0');
	end();
}

static void test_gpu_errors(void)
{
	const char *text;

	begin("node0");
	fact("gpu 0000:aa:00.0 GPU-0");
	fact("series gpu_ecc_uncorrected 0000:aa:00.0 2 1700000000 1699999000:0 1699999900:2");
	fact("series gpu_ecc_corrected 0000:aa:00.0 12 1700000000 1699999000:0 1699999900:12");
	fact("series gpu_nvlink_replay 0000:aa:00.0 700 1700000000 1699999000:0 1699999900:700");
	fact("series gpu_nvlink_replay 0000:bb:00.0 690 1700000000 1699999000:0 1699999900:690");
	fact("series gpu_pcie_width 0000:aa:00.0 4 1700000000 1699999000:4");
	fact("series gpu_pcie_width_max 0000:aa:00.0 16 1700000000 1699999000:16");
	fact("series gpu_nvlinks 0000:aa:00.0 17 1700000000 1699999000:17");
	fact("series gpu_nvlinks 0000:bb:00.0 18 1700000000 1699999000:18");
	verdict_on(VERDICT_SLOW_RANK, 0);
	text = judge();
	EXPECT(strstr(text, "Its GPU (0000:aa:00.0): 2 uncorrectable memory errors (ECC) since "
			    "22:11:40.") != NULL);
	EXPECT_THAT("some corrected errors are normal", strstr(text, "12 corrected") == NULL);
	EXPECT_THAT("the other GPU has as many", strstr(text, "replay") == NULL);
	EXPECT(strstr(text, "uses 4 of 16 PCIe lanes") != NULL);
	EXPECT(strstr(text, "17 NVLinks are up, 18 on other GPUs") != NULL);
	end();

	begin("node0");
	fact("series gpu_clock 0000:10:00.0 400 1700000000 1699999000:400");
	fact("series gpu_clock_max 0000:10:00.0 1980 1700000000 1699999000:1980");
	fact("series gpu_throttle 0000:10:00.0 4 1700000000 1699999000:4");
	verdict_on(VERDICT_SLOW_RANK, 0);
	EXPECT(strcmp(judge(), "Its GPU (0000:10:00.0) runs at 400 MHz of 1,980 MHz; throttle "
			       "reason: power cap.\n") == 0);
	end();

	begin("node0");
	fact("series gpu_clock 0000:10:00.0 1700 1700000000 1699999000:1700");
	fact("series gpu_clock_max 0000:10:00.0 1980 1700000000 1699999000:1980");
	fact("series gpu_throttle 0000:10:00.0 4 1700000000 1699999000:4");
	verdict_on(VERDICT_SLOW_RANK, 0);
	EXPECT_THAT("a busy GPU at its power cap is normal", judge()[0] == '\0');
	end();
}

/* One line of facts after the other, and the lines that a verdict gets from them. The job began at 21:58:20; 1699999800
 * is 22:10:00. */
struct shown {
	enum verdict_class class;
	const char *facts[8];
	const char *text;
};

#define GREW(kind, object, by) \
	"series " kind " " object " " by " 1700000000 1699999000:0 1699999800:" by
#define LEVEL(kind, object, value) \
	"series " kind " " object " " value " 1700000000 1699999000:" value

static void expect_shown(const struct shown *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *text;

		begin("node0");
		for (size_t j = 0; j < 8 && cases[i].facts[j] != NULL; j++)
			fact("%s", cases[i].facts[j]);
		verdict_on(cases[i].class, 0);
		text = judge();
		if (!EXPECT_THAT(cases[i].facts[0], strcmp(text, cases[i].text) == 0))
			printf("# case %zu: %s", i, text);
		end();
	}
}

static void test_ports(void)
{
#define STATE(port) LEVEL("port_state", port, "4")
	static const struct shown cases[] = {
		{ VERDICT_SLOW_LINK,
		  { GREW("port_link_downed", "mlx5_0/1", "1") },
		  "Host node0, mlx5_0 port 1: 1 link failures since 22:10:00.\n" },
		{ VERDICT_NETWORK_STUCK,
		  { GREW("interface_crc_errors", "eth0", "2") },
		  "Host node0, eth0: 2 CRC errors since 22:10:00.\n" },
		{ VERDICT_SLOW_HOST,
		  { GREW("port_integrity_errors", "mlx5_0", "3") },
		  "Host node0, mlx5_0: 3 link integrity errors since 22:10:00.\n" },
		{ VERDICT_SLOW_RANK, { GREW("port_link_downed", "mlx5_0/1", "1") }, "" },
		/* Of other ports it is known that they did not move, or by how much. */
		{ VERDICT_SLOW_LINK,
		  { GREW("port_link_downed", "mlx5_0/1", "1"), STATE("mlx5_0/1"), STATE("mlx5_1/1"),
		    STATE("mlx5_2/1"), LEVEL("interface_speed", "eth0", "1000") },
		  "Host node0, mlx5_0 port 1: 1 link failures since 22:10:00 (the other 2: "
		  "none).\n" },
		{ VERDICT_SLOW_LINK,
		  { GREW("port_link_downed", "mlx5_0/1", "9"), STATE("mlx5_0/1"), STATE("mlx5_1/1"),
		    STATE("mlx5_2/1"), GREW("port_link_downed", "mlx5_1/1", "0") },
		  "Host node0, mlx5_0 port 1: 9 link failures since 22:10:00 (the other 2: "
		  "none).\n" },
		/* One of two others: shown for both. Both of two others: for neither, unless ten times as many. */
		{ VERDICT_SLOW_LINK,
		  { GREW("port_link_downed", "mlx5_0/1", "9"), STATE("mlx5_0/1"), STATE("mlx5_1/1"),
		    STATE("mlx5_2/1"), GREW("port_link_downed", "mlx5_1/1", "4") },
		  "Host node0, mlx5_0 port 1: 9 link failures since 22:10:00 (at most 4 on the "
		  "other "
		  "2).\n"
		  "Host node0, mlx5_1 port 1: 4 link failures since 22:10:00 (at most 9 on the "
		  "other "
		  "2).\n" },
		{ VERDICT_SLOW_LINK,
		  { GREW("port_link_downed", "mlx5_0/1", "9"), STATE("mlx5_0/1"), STATE("mlx5_1/1"),
		    STATE("mlx5_2/1"), GREW("port_link_downed", "mlx5_1/1", "1"),
		    GREW("port_link_downed", "mlx5_2/1", "1") },
		  "" },
		{ VERDICT_SLOW_LINK,
		  { GREW("port_link_downed", "mlx5_0/1", "10"), STATE("mlx5_0/1"),
		    STATE("mlx5_1/1"), STATE("mlx5_2/1"), GREW("port_link_downed", "mlx5_1/1", "1"),
		    GREW("port_link_downed", "mlx5_2/1", "1") },
		  "Host node0, mlx5_0 port 1: 10 link failures since 22:10:00 (at most 1 on the "
		  "other "
		  "2).\n" },
		/* Ten symbol errors, and a thousand of what healthy networks count. */
		{ VERDICT_SLOW_LINK, { GREW("port_symbol_error", "mlx5_0/1", "9") }, "" },
		{ VERDICT_SLOW_LINK,
		  { GREW("port_symbol_error", "mlx5_0/1", "10") },
		  "Host node0, mlx5_0 port 1: 10 symbol errors since 22:10:00.\n" },
		{ VERDICT_SLOW_LINK,
		  { GREW("port_out_of_sequence", "a/1", "999"),
		    GREW("port_sequence_errors", "a/1", "999"), GREW("port_discards", "a/1", "999"),
		    GREW("port_not_ready_retries", "a/1", "999"),
		    GREW("port_overruns", "a/1", "999"), GREW("interface_missed", "a", "999"),
		    GREW("port_remote_errors", "a/1", "999"),
		    GREW("port_ack_timeouts", "a/1", "999") },
		  "" },
		{ VERDICT_SLOW_LINK,
		  { GREW("port_out_of_sequence", "a/1", "1000"),
		    GREW("port_ack_timeouts", "a/1", "1000") },
		  "Host node0, a port 1: 1,000 packets out of sequence since 22:10:00.\n"
		  "Host node0, a port 1: 1,000 acknowledgement timeouts since 22:10:00.\n" },
		{ VERDICT_SLOW_LINK,
		  { GREW("port_discards", "a/1", "9999"), GREW("port_discards", "b/1", "1000"),
		    STATE("a/1"), STATE("b/1"), STATE("c/1"), STATE("d/1") },
		  "" },
		{ VERDICT_SLOW_LINK,
		  { GREW("port_discards", "a/1", "10000"), GREW("port_discards", "b/1", "1000"),
		    STATE("a/1"), STATE("b/1"), STATE("c/1"), STATE("d/1") },
		  "Host node0, a port 1: 10,000 discarded packets since 22:10:00 (at most 1,000 on "
		  "the other 3).\n" },
		/* Levels: slower than before, or down. */
		{ VERDICT_SLOW_LINK,
		  { "series port_rate a/1 200000 1700000000 1699999000:400000 1699999800:200000",
		    "series interface_speed eth0 10000 1700000000 1699999000:25000 "
		    "1699999500:10000",
		    "series interface_speed eth1 0 1700000000 1699999000:25000 1699999500:0",
		    LEVEL("port_rate", "b/1", "100000") },
		  "Host node0, a port 1 runs at 200 Gb/s since 22:10:00, before at 400 Gb/s.\n"
		  "Host node0, eth0 runs at 10 Gb/s since 22:05:00, before at 25 Gb/s.\n" },
		{ VERDICT_SLOW_LINK,
		  { "series port_state a/1 1 1700000000 1699999000:4 1699999800:1",
		    "series port_state b/1 1 1700000000 1699999000:1",
		    "series port_state c/1 4 1700000000 1699999000:1 1699999800:4" },
		  "Host node0, a port 1 is down since 22:10:00.\n" },
		/* A level of five minutes ago counts, an older one does not. */
		{ VERDICT_SLOW_LINK,
		  { "series port_state a/1 1 1699999700 1699999000:4 1699999600:1",
		    "series port_state b/1 1 1699999699 1699999000:4 1699999600:1" },
		  "Host node0, a port 1 is down since 22:06:40.\n" },
	};

	expect_shown(cases, sizeof(cases) / sizeof(cases[0]));

	begin("node1");
	fact(GREW("port_link_downed", "mlx5_0/1", "1"));
	text_copy(verdict_on(VERDICT_SLOW_LINK, 0)->peer_host, 256, "node1");
	EXPECT_THAT("the port at the other end counts, too",
		    strcmp(judge(),
			   "Host node1, mlx5_0 port 1: 1 link failures since 22:10:00.\n") == 0);
	end();
	begin("node1");
	fact(GREW("port_link_downed", "mlx5_0/1", "1"));
	verdict_on(VERDICT_SLOW_LINK, 0);
	EXPECT_THAT("that of a third host does not", judge()[0] == '\0');
	end();
}

static void test_clocks(void)
{
#define OWN "0000:10:00.0"
#define NEXT "0000:20:00.0"
	static const struct shown cases[] = {
		/* Below 90% of the others. */
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_clock", OWN, "1619"), LEVEL("gpu_clock", NEXT, "1800") },
		  "Its GPU (0000:10:00.0) runs at 1,619 MHz, the other 1 GPU of its host at 1,800 "
		  "MHz.\n" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_clock", OWN, "1620"), LEVEL("gpu_clock", NEXT, "1800") },
		  "" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_clock", OWN, "1000"), LEVEL("gpu_clock", NEXT, "1200"),
		    LEVEL("gpu_clock", "0000:30:00.0", "1900"),
		    LEVEL("gpu_clock", "0000:40:00.0", "1800") },
		  "Its GPU (0000:10:00.0) runs at 1,000 MHz, the other 3 GPUs of its host at 1,800 "
		  "MHz.\n" },
		/* An idle one is no comparison, and is not judged. */
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_clock", OWN, "1800"), LEVEL("gpu_clock", NEXT, "3000"),
		    LEVEL("gpu_throttle", NEXT, "1") },
		  "" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_clock", OWN, "200"), LEVEL("gpu_clock", NEXT, "1800"),
		    LEVEL("gpu_throttle", OWN, "1") },
		  "" },
		/* Alone: below 90% of what it was since the job began, else half of what it can do. */
		{ VERDICT_SLOW_RANK,
		  { "series gpu_clock " OWN " 1700 1700000000 1699999200:1900 1699999800:1700" },
		  "Its GPU (0000:10:00.0) runs at 1,700 MHz since 22:10:00, before at 1,900 "
		  "MHz.\n" },
		{ VERDICT_SLOW_RANK,
		  { "series gpu_clock " OWN " 1710 1700000000 1699999200:1900 1699999800:1710" },
		  "" },
		{ VERDICT_SLOW_RANK,
		  { "series gpu_clock " OWN " 1000 1700000000 1699999000:1900 1699999800:1000",
		    LEVEL("gpu_clock_max", OWN, "2000") },
		  "" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_clock", OWN, "999"), LEVEL("gpu_clock_max", OWN, "2000") },
		  "Its GPU (0000:10:00.0) runs at 999 MHz of 2,000 MHz.\n" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_clock", OWN, "1000"), LEVEL("gpu_clock_max", OWN, "2000") },
		  "" },
		/* Thermal throttling counts at any clock. */
		{ VERDICT_GPU_STUCK,
		  { LEVEL("gpu_clock", OWN, "1800"),
		    "series gpu_throttle " OWN " 32 1700000000 1699999000:0 1699999800:32" },
		  "Its GPU (0000:10:00.0) runs at 1,800 MHz since 22:10:00; throttle reason: "
		  "thermal "
		  "slowdown.\n" },
		{ VERDICT_SLOW_HOST,
		  { "gpu " NEXT " GPU-1", LEVEL("gpu_clock", NEXT, "1800"),
		    LEVEL("gpu_throttle", NEXT, "64"), LEVEL("gpu_throttle", OWN, "64"),
		    LEVEL("gpu_clock", OWN, "1800") },
		  "A GPU (0000:20:00.0) runs at 1,800 MHz; throttle reason: hardware thermal "
		  "slowdown.\n" },
		/* Other classes have other causes. */
		{ VERDICT_SLOW_LINK,
		  { LEVEL("gpu_clock", OWN, "1000"), LEVEL("gpu_clock", NEXT, "1800") },
		  "" },
	};

	expect_shown(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_gpu_facts(void)
{
	static const struct shown cases[] = {
		{ VERDICT_SLOW_RANK,
		  { GREW("gpu_ecc_corrected", OWN, "1000") },
		  "Its GPU (0000:10:00.0): 1,000 corrected memory errors (ECC) since 22:10:00.\n" },
		{ VERDICT_SLOW_RANK, { GREW("gpu_ecc_corrected", OWN, "999") }, "" },
		/* Ten times as many as the others. */
		{ VERDICT_SLOW_RANK,
		  { GREW("gpu_nvlink_crc", OWN, "50"), GREW("gpu_nvlink_crc", NEXT, "5") },
		  "Its GPU (0000:10:00.0): 50 NVLink CRC errors since 22:10:00.\n" },
		{ VERDICT_SLOW_RANK,
		  { GREW("gpu_nvlink_crc", OWN, "49"), GREW("gpu_nvlink_crc", NEXT, "5") },
		  "" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_remap_pending", OWN, "1") },
		  "Its GPU (0000:10:00.0) has memory rows that are replaced at the next reset.\n" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_remap_pending", OWN, "2") },
		  "Its GPU (0000:10:00.0) has memory rows that could not be replaced.\n" },
		{ VERDICT_SLOW_RANK, { LEVEL("gpu_remap_pending", OWN, "0") }, "" },
		/* The others use as few lanes: so the host is built. */
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_pcie_width", OWN, "8"), LEVEL("gpu_pcie_width_max", OWN, "16"),
		    LEVEL("gpu_pcie_width", NEXT, "8") },
		  "" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_pcie_width", OWN, "8"), LEVEL("gpu_pcie_width_max", OWN, "16"),
		    LEVEL("gpu_pcie_width", NEXT, "16") },
		  "Its GPU (0000:10:00.0) uses 8 of 16 PCIe lanes.\n" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_pcie_width", OWN, "16"), LEVEL("gpu_pcie_width_max", OWN, "16") },
		  "" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("gpu_nvlinks", OWN, "18"), LEVEL("gpu_nvlinks", NEXT, "18") },
		  "" },
		{ VERDICT_SLOW_RANK, { LEVEL("gpu_nvlinks", OWN, "0") }, "" },
	};

	expect_shown(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_events(void)
{
	static const struct shown cases[] = {
		{ VERDICT_STUCK,
		  { "event sxid 0000:05:00.0 12028 -1 1699999800 1699999800 1 egress" },
		  "NVSwitch error (SXid 12028, 0000:05:00.0) at 22:10:00: egress.\n" },
		{ VERDICT_SLOW_RANK,
		  { "event sxid 0000:05:00.0 12028 -1 1699999800 1699999800 1 egress" },
		  "" },
		{ VERDICT_GPU_STUCK,
		  { "event xid 0000:10:00 74 -1 1699999500 1699999800 3 link 2" },
		  "Xid 74 on its GPU (0000:10:00) at 22:05:00, 3 times until 22:10:00: NVLink "
		  "error; "
		  "driver: link 2.\n" },
		{ VERDICT_GPU_STUCK,
		  { "event xid 0000:10:00 9999 -1 1699999500 1699999500 1 new" },
		  "Xid 9999 on its GPU (0000:10:00) at 22:05:00: new.\n" },
		{ VERDICT_GPU_STUCK,
		  { "event xid 0000:20:00 79 4000 1699999500 1699999500 1 x" },
		  "Xid 79 on a GPU that it uses (0000:20:00) at 22:05:00: the GPU has fallen off "
		  "the "
		  "bus; driver: x.\n" },
		{ VERDICT_GPU_STUCK,
		  { "event xid 0000:10:00 31 4000 1699999500 1699999500 1 x" },
		  "Xid 31 on its GPU (0000:10:00) at 22:05:00: invalid memory access, most often a "
		  "fault of the program; driver: x.\n" },
		/* Another program on the same GPU, or the server of MPS. */
		{ VERDICT_GPU_STUCK,
		  { "event xid 0000:10:00 31 99 1699999500 1699999500 1 x" },
		  "Xid 31 on its GPU (0000:10:00) at 22:05:00 in process 99: invalid memory "
		  "access, "
		  "most often a fault of the program; driver: x.\n" },
		/* It began before the job and went on. */
		{ VERDICT_GPU_STUCK,
		  { "event xid 0000:10:00 79 -1 1699990001 1699999100 2 x" },
		  "Xid 79 on its GPU (0000:10:00) at 19:26:41, 2 times until 21:58:20: the GPU has "
		  "fallen off the bus; driver: x.\n" },
		{ VERDICT_GPU_STUCK,
		  { "event xid 0000:10:00 79 -1 1699990001 1699999099 2 x" },
		  "" },
		/* What follows from another error of the same GPU, and what does not. */
		{ VERDICT_STUCK,
		  { "event xid 0000:10:00 45 4000 1699999500 1699999500 1 removed" },
		  "Xid 45 on its GPU (0000:10:00) at 22:05:00: the channels of an ended process "
		  "were "
		  "removed; driver: removed.\n" },
		{ VERDICT_STUCK,
		  { "event xid 0000:10:00 45 4000 1699999500 1699999500 1 removed",
		    "event xid 0000:20:00 79 -1 1699999500 1699999500 1 x" },
		  "Xid 45 on its GPU (0000:10:00) at 22:05:00: the channels of an ended process "
		  "were "
		  "removed; driver: removed.\n" },
		{ VERDICT_PROCESS_DEAD,
		  { "event xid 0000:10:00 45 4000 1699999500 1699999500 1 removed" },
		  "" },
		{ VERDICT_SLOW_LINK,
		  { "event xid 0000:10:00 79 -1 1699999500 1699999500 1 x" },
		  "" },
	};

	expect_shown(cases, sizeof(cases) / sizeof(cases[0]));
}

/* 2% of the 900 s since the job began are 18 s. */
static void test_starving(void)
{
	static const struct shown cases[] = {
		{ VERDICT_NEVER_ISSUED,
		  { GREW("process_throttled_us", "4000", "18000000") },
		  "The CPU quota of its cgroup stopped its threads for 18.0 s since 22:10:00.\n" },
		{ VERDICT_NEVER_ISSUED, { GREW("process_throttled_us", "4000", "17999999") }, "" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("processors", "-", "4"), GREW("steal_ms", "-", "72000") },
		  "2% of the processor time of node0 went to other virtual machines (steal) since "
		  "22:10:00.\n" },
		{ VERDICT_SLOW_RANK,
		  { LEVEL("processors", "-", "4"), GREW("steal_ms", "-", "71999") },
		  "" },
		{ VERDICT_SLOW_RANK, { GREW("steal_ms", "-", "72000") }, "" },
		{ VERDICT_SLOW_HOST,
		  { GREW("memory_stall_us", "-", "450000000") },
		  "Tasks of node0 waited for memory 50% of the time since 22:10:00.\n" },
		{ VERDICT_SLOW_HOST, { GREW("memory_stall_us", "-", "17999999") }, "" },
		{ VERDICT_SLOW_LINK, { GREW("memory_stall_us", "-", "450000000") }, "" },
	};

	expect_shown(cases, sizeof(cases) / sizeof(cases[0]));
}

/* All notes of a host as "rule: line" lines. */
static const char *notes_of(void)
{
	static char text[8192];

	if (job_make(&stage.job, &stage.recording) != OK)
		abort();
	poison_job(&stage.job);
	host_support(&stage.verdicts, &stage.job, &facts, true);
	text[0] = '\0';
	for (size_t i = 0; i < stage.verdicts.count; i++)
		for (size_t j = 0; j < stage.verdicts.list[i].evidence.count; j++)
			text_append(text, sizeof(text), "%s: %s\n", stage.verdicts.list[i].rule,
				    stage.verdicts.list[i].evidence.list[j]);
	return text;
}

static void test_all_notes(void)
{
	begin("node0");
	fact("event xid 0000:10:00 79 -1 1699999500 1699999500 1 x");
	fact("event xid 0000:10:00 31 -1 1699999500 1699999500 1 a fault of a program");
	fact("event xid 0000:50:00 79 -1 1699999500 1699999500 1 a GPU of nobody");
	fact(LEVEL("gpu_clock", NEXT, "1800"));
	fact(LEVEL("gpu_throttle", NEXT, "32"));
	fact(GREW("port_link_downed", "mlx5_0/1", "1"));
	fact(LEVEL("disk_free", "/dev/shm", "4"));
	fact(LEVEL("disk_free", "/", "5"));
	EXPECT(strcmp(notes_of(),
		      "host-xid: Host node0: Xid 79 on a GPU of the job (0000:10:00) at 22:05:00: "
		      "the "
		      "GPU has fallen off the bus; driver: x.\n"
		      "host-gpu: Host node0: GPU (0000:20:00.0) runs at 1,800 MHz; throttle "
		      "reason: "
		      "thermal slowdown.\n"
		      "host-port: Host node0, mlx5_0 port 1: 1 link failures since 22:10:00.\n"
		      "host-disk: Host node0: /dev/shm is full (0.4% free).\n") == 0);
	EXPECT(stage.verdicts.count == 4 &&
	       strcmp(stage.verdicts.list[3].title, "full file systems on hosts of the job") == 0 &&
	       stage.verdicts.list[3].advice.count == 1);
	end();

	begin("node0");
	fact(LEVEL("disk_free", "/", "0"));
	verdict_on(VERDICT_SLOW_RANK, 0);
	EXPECT_THAT("a host that a verdict names gets no notes", notes_of()[0] == '\0');
	end();
	begin("node0");
	fact(LEVEL("disk_free", "/", "0"));
	text_copy(verdict_on(VERDICT_SLOW_LINK, 2)->peer_host, 256, "node0");
	EXPECT_THAT("nor one at the other end of a link", notes_of()[0] == '\0');
	end();
	begin("node0");
	fact(LEVEL("disk_free", "/", "0"));
	verdict_on(VERDICT_SETUP, 0);
	EXPECT_THAT("a verdict about the set-up does not name it",
		    strcmp(notes_of(), "host-disk: Host node0: / is full (0.0% free).\n") == 0);
	end();
	begin("node7");
	fact(LEVEL("disk_free", "/", "0"));
	EXPECT_THAT("a host of another job is no concern", notes_of()[0] == '\0');
	end();
}

/* The same facts in an agent's note. */
static void test_from_notes(void)
{
	static const struct {
		const char *text;
		size_t lines;
	} cases[] = {
		{ "{\"other\":[1],\"host\":\"node0\",\"host_facts\":[\"time 1699990000 "
		  "1700000000\",7,[1],"
		  "{\"a\":1},\"series disk_free / 0 1700000000 1699999000:0\"]}",
		  1 },
		{ "{\"host\":\"node0\",\"host_facts\":[\"series disk_free / 0 1700000000 "
		  "1699999000:0\"]}",
		  0 },
		{ "{\"host\":\"node0\"}", 0 },
		{ "{\"host\":\"node0\",\"host_facts\":7}", 0 },
		{ "{\"host\":\"node0\",\"host_facts\":[\"time 1699990000 1700000000\","
		  "\"series disk_free / 0 1700000000 1699999000:0\"],",
		  0 },
		{ "[]", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct recording_note note = { .text = (char *)(uintptr_t)cases[i].text,
					       .length = strlen(cases[i].text) };
		size_t lines;

		begin("node1");
		facts.begin_ns = 0;
		stage.recording.notes = &note;
		stage.recording.note_count = 1;
		lines = notes_of()[0] != '\0';
		EXPECT_THAT(cases[i].text, lines == cases[i].lines);
		stage.recording.notes = NULL;
		stage.recording.note_count = 0;
		end();
	}
}

/* What the agent of another host sent. */
static void other_host(int node, int rate, int clock)
{
	char text[1024], path[32];

	text_format(path, sizeof(path), "n%d/agent.json", node);
	text_format(text, sizeof(text),
		    "{\"host\": \"node%d\", \"host_facts\": [\"time 1699990000 1700000000\", "
		    "\"series port_state mlx5_0/1 4 1700000000 1699999000:4\", "
		    "\"series port_rate mlx5_0/1 %d 1700000000 1699999000:%d\", "
		    "\"series gpu_clock 0000:10:00.0 %d 1700000000 1699999000:%d\"]}",
		    node, rate, rate, clock, clock);
	if (recording_add_note(&stage.recording, path, text, strlen(text)) != OK)
		abort();
}

/* A port of node0 at 100 Gb/s, and node1 to node3. */
static const char *judge_port(int first, int second, int third)
{
	begin_ranks("node0", 8);
	fact("series port_state mlx5_0/1 4 1700000000 1699999000:4");
	fact("series port_rate mlx5_0/1 100000 1700000000 1699999000:100000");
	fact("series gpu_clock 0000:10:00.0 1200 1700000000 1699999000:1200");
	fact("series gpu_clock_max 0000:10:00.0 1980 1700000000 1699999000:1980");
	other_host(1, first, 1900);
	other_host(2, second, 1850);
	if (third > 0)
		other_host(3, third, 1900);
	verdict_on(VERDICT_NETWORK_STUCK, 0);
	return judge();
}

static void test_other_hosts(void)
{
	const char *text = judge_port(400000, 400000, 400000);

	EXPECT_THAT("a port slower than the same port of all other hosts",
		    strcmp(text, "Host node0, mlx5_0 port 1 runs at 100 Gb/s, on the other 3 "
				 "hosts at 400 Gb/s.\n") == 0);
	end();
	EXPECT_THAT("hosts that are not alike: silent",
		    judge_port(400000, 200000, 400000)[0] == '\0');
	end();
	EXPECT_THAT("another host has the same: silent",
		    judge_port(100000, 400000, 400000)[0] == '\0');
	end();
	EXPECT_THAT("two others are enough", judge_port(400000, 400000, 0)[0] != '\0');
	end();
	judge_port(400000, 400000, 400000);
	stage.verdicts.list[0].class = VERDICT_SLOW_RANK;
	host_support(&stage.verdicts, &stage.job, &facts, false);
	text = stage.verdicts.list[0].evidence.list[stage.verdicts.list[0].evidence.count - 1];
	EXPECT_THAT("a clock below that of the same GPU of all other hosts",
		    strcmp(text, "Its GPU (0000:10:00.0) runs at 1,200 MHz, that of the other 3 "
				 "hosts at 1,850 MHz or more.") == 0);
	end();
}

int main(void)
{
	test_ports();
	test_clocks();
	test_gpu_facts();
	test_events();
	test_starving();
	test_all_notes();
	test_from_notes();
	test_xid_of_a_hang();
	test_oom_kill();
	test_notes();
	test_starved_rank();
	test_gpu_errors();
	test_other_hosts();
	return tap_done();
}
