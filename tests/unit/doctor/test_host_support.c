/* What hosts know beside verdicts: each verdict gets its own facts, and none of others. */
#include "doctor/host_support.h"

#include <stdarg.h>

#include "common/text.h"
#include "tests/tap.h"
#include "tests/unit/doctor/hang_stage.h"

#define START_S (WALL_NS / SECOND - 900) /* of the job */

static struct hang_stage stage;
static struct host_facts facts;

/* Four ranks on two hosts, each with a GPU of its own. */
static void begin(const char *host)
{
	stage_begin(&stage, 4, 2);
	for (int i = 0; i < 4; i++) {
		struct comm_info *info = &stage_rank(&stage, i)->comms[0].info;

		stage_rank(&stage, i)->started_wall_ns = START_S * SECOND;
		text_format(info->gpu_uuid, sizeof(info->gpu_uuid), "GPU-%d", i);
		text_format(info->gpu_bus, sizeof(info->gpu_bus), "0000:%d0:00.0", i % 2 + 1);
	}
	host_facts_init(&facts);
	text_copy(facts.host, sizeof(facts.host), host);
	host_facts_take_line(&facts, "time 1699990000 1700000000", 0);
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

int main(void)
{
	test_xid_of_a_hang();
	test_oom_kill();
	test_notes();
	test_starved_rank();
	test_gpu_errors();
	return tap_done();
}
