/*
 * Findings of reports made by hand: eight ranks on four hosts, a recording of 1,000 s that begins at 22:13:20. What a
 * test does not give is complete and healthy.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/scan.h"
#include "analysis/timeline_report.h"
#include "common/text.h"
#include "tests/tap.h"
#include "tests/support/hand_made.h"

enum { RANKS = 8 };
#define SECOND UINT64_C(1000000000)
#define START (1700000000 * SECOND)

static struct hand_made hand;
static struct timeline_report report;
static struct timeline_comm comms[2];
static struct straggler straggler;
static struct windows_change changes[8];
static struct findings findings;
static struct scan scan;

static void begin(void)
{
	for (int rank = 0; rank < RANKS; rank++) {
		char host[16];

		snprintf(host, sizeof(host), "node%d", rank / 2);
		hand_comm(hand_process(&hand, "train", rank, host), 0x77, "world", rank, RANKS, 4);
	}
	report = (struct timeline_report){
		.recording = &hand.recording,
		.start_ns = START,
		.end_ns = START + 1000 * SECOND,
		.has_wall = true,
		.comms = comms,
		.completeness = { .read = 100,
				  .looked_at = 100,
				  .issued = 100,
				  .processes = RANKS },
		.total = { .calls = 1000,
			   .timed = 1000,
			   .by_source = { [OP_TIME_KERNEL_GPU] = 1000 } },
		.stragglers = { .list = &straggler },
		.windows = { .changes = changes },
	};
	memset(comms, 0, sizeof(comms));
	comms[0].scale = 1;
	memset(changes, 0, sizeof(changes));
	if (job_make(&report.job, &hand.recording) != OK)
		abort();
	scan = (struct scan){ .job = &report.job };
}

static void over(void)
{
	findings_release(&findings);
	job_release(&report.job);
	hand_release(&hand);
}

/* All findings, "severity kind: title / text" each. */
static const char *found(void)
{
	static char text[8192];

	if (findings_make(&findings, &report, &scan) != OK)
		abort();
	text[0] = '\0';
	for (size_t i = 0; i < findings.count; i++)
		text_append(text, sizeof(text), "%s %s: %s / %s\n",
			    findings_severity_name(findings.list[i].severity),
			    findings_kind_name(findings.list[i].kind), findings.list[i].title,
			    findings.list[i].text);
	return text;
}

static void expect(const char *wanted)
{
	const char *text = found();

	if (!EXPECT(strcmp(text, wanted) == 0))
		printf("# %s", text);
}

/* ---- the recording ----------------------------------------------------------------------------- */

static void test_recording(void)
{
	begin();
	expect("");
	over();

	begin();
	report.completeness.looked_at = 0;
	expect("error nothing_recorded: nothing to report / 100 operations were read; none of them "
	       "matches the filter.\n");
	over();

	begin();
	report.completeness.looked_at = report.completeness.read = 0;
	expect("error nothing_recorded: nothing to report / No operations were read (0).\n");
	over();

	begin();
	report.completeness.killed = 2;
	report.completeness.unknown_life = 3;
	report.completeness.without_end_mark = 3;
	expect("warning killed: 2 of 8 recordings are truncated (process killed, crashed or still "
	       "running) / The last operations of these processes may be missing.\n");
	EXPECT(findings.list[0].count == 2 && findings.list[0].of == 8);
	over();
}

static void test_reasons(void)
{
	for (unsigned int reason = 0; reason < LOST_REASONS; reason++) {
		if (!op_lost_is_whole(reason))
			continue;
		begin();
		report.completeness.lost_operations = 25;
		for (unsigned int i = 0; i < LOST_REASONS; i++)
			report.completeness.lost[i] = op_lost_is_whole(i) ? 3 : 100;
		report.completeness.lost[reason] = 10;
		found();
		EXPECT(findings.count == 1 && findings.list[0].kind == FINDINGS_LOST &&
		       findings.list[0].percent == 25 &&
		       strstr(findings.list[0].text, op_lost_words(reason)) != NULL);
		over();
	}
}

static void test_incomplete(void)
{
	struct recording_trouble troubles[3] = { { .kind = RECORDING_CUT },
						 { .kind = RECORDING_DAMAGE },
						 { .kind = RECORDING_DAMAGE } };

	begin();
	report.completeness.damages = 1;
	report.completeness.refused = 2;
	hand.recording.troubles = troubles;
	hand.recording.trouble_count = 3;
	hand.recording.troubles_left_out = 4;
	expect("warning incomplete: parts of the recording could not be read / 1 damaged block, 2 "
	       "invalid records, 6 files with errors. The rest was read.\n");
	EXPECT_EQUAL(findings.list[0].count, 9);
	hand.recording.troubles = NULL;
	hand.recording.trouble_count = hand.recording.troubles_left_out = 0;
	over();

	for (size_t snapshots = 0; snapshots < 2; snapshots++) {
		begin();
		report.completeness.overwritten = 5;
		report.completeness.snapshots = snapshots;
		expect(snapshots > 0
			       ? "note incomplete: only the most recent operations are recorded / "
				 "100 "
				 "of 100 operations: a snapshot holds the most recent ones of each "
				 "process.\n"
			       : "note incomplete: only the most recent operations are recorded / "
				 "100 "
				 "of 100 operations: this mode keeps the most recent ones of each "
				 "process.\n");
		EXPECT((strstr(findings.list[0].hint, "snapshot") != NULL) == (snapshots > 0));
		over();
	}

	begin();
	report.job.comms[0].missing = 3;
	report.job.comms[0].seat_count = 5;
	expect("warning ranks_missing: 1 communicator is missing recordings of some ranks / world "
	       "has "
	       "8 ranks; 5 of them are recorded. Waiting is a lower bound: a missing rank may have "
	       "arrived last.\n");
	report.job.comms[0].seat_count = 8;
	over();
}

static void test_weak_times(void)
{
	static const struct {
		uint64_t untrusted, timed, by_proxy, by_host;
		const char *text;
	} cases[] = {
		{ 10, 1000, 0, 0, "" },
		{ 11, 1000, 0, 0,
		  "note untrusted_stamps: GPU timestamps of 1.1% of calls were rejected / NCCL "
		  "2.26 to "
		  "2.30 can report the timestamps of another operation. These calls have "
		  "network-side "
		  "times, or none.\n" },
		{ 0, 1000, 10, 10, "" },
		{ 0, 1000, 11, 10,
		  "note mixed_sources: durations come from several sources / kernel_gpu 1000, "
		  "proxy 11, "
		  "host 10 calls. They measure different things; each row shows its source.\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		report.total.untrusted = cases[i].untrusted;
		report.total.timed = cases[i].timed;
		report.total.by_source[OP_TIME_PROXY] = cases[i].by_proxy;
		report.total.by_source[OP_TIME_HOST] = cases[i].by_host;
		expect(cases[i].text);
		over();
	}
}

static void test_unjoined(void)
{
	begin();
	report.job.conflicts = 2;
	report.matches.left_out = 300;
	report.matches.joined = 700;
	report.align.unaligned = 1;
	report.align.count = 8;
	expect("warning conflict: 2 times two processes have the same rank in a communicator / "
	       "Files of "
	       "different runs, or copies, may be mixed. They are kept separate.\n"
	       "note sampled: waiting is based on a sample of the collectives / To limit memory, "
	       "700 of "
	       "1000 calls were matched with other ranks. Total waiting covers only those.\n"
	       "note unaligned: 1 of 8 processes could not be aligned in time / It shares no "
	       "collective "
	       "with the others; its own wall clock is used. Only values over time are "
	       "affected.\n");
	EXPECT(findings.list[1].count == 700 && findings.list[1].of == 1000);
	over();
}

/* ---- lost time --------------------------------------------------------------------------------- */

#define COST                                                                       \
	.channel = -1, .matches = 1000, .last_in = 900, .caused_ns = 700 * SECOND, \
	.cost_share = 0.0875, .confidence = 0.99, .has_times = true,               \
	.first_ns = START + 100 * SECOND, .last_ns = START + 500 * SECOND, .share_of_time = 0.25

static void test_stragglers(void)
{
	static const struct {
		struct straggler straggler;
		double percent;
		uint64_t count, of;
		const char *text;
	} cases[] = {
		{ { COST, .class = STRAGGLER_SLOW_RANK, .rank = 3, .host = 1,
		    .late_ns = SECOND / 50 },
		  8.75,
		  900,
		  1000,
		  "warning slow_rank: straggler: rank 3 on node1 / In world it arrives 20.0 ms "
		  "later "
		  "than the others, all the time and was last in 900 of 1000 collectives. The "
		  "other "
		  "ranks waited 11 min 40 s in total.\n" },
		{ { COST, .class = STRAGGLER_SLOW_HOST, .rank = UINT32_MAX, .host = 1,
		    .late_ns = SECOND / 50, .pattern = STRAGGLER_SINCE },
		  8.75,
		  900,
		  1000,
		  "warning slow_host: straggler: all ranks of node1 / In world it arrives 20.0 ms "
		  "later "
		  "than the others, since 22:15:00 UTC and was last in 900 of 1000 collectives. "
		  "The "
		  "other ranks waited 11 min 40 s in total.\n" },
		{ { COST, .class = STRAGGLER_SLOW_RANK, .rank = 3, .host = 1, .slowdown = 4,
		    .own_slowdown = 8, .pattern = STRAGGLER_UNTIL },
		  300,
		  1000,
		  0,
		  "warning slow_rank: straggler: rank 3 on node1 (late in its transfers) / In "
		  "world its "
		  "transfers take 4.0x longer than the median, until 22:21:40 UTC; work that needs "
		  "no "
		  "network also takes 8.0x longer there: its process is slow, not the link.\n" },
		{ { COST, .class = STRAGGLER_SLOW_RANK, .rank = 3, .host = 1, .slowdown = 4 },
		  300,
		  1000,
		  0,
		  "warning slow_rank: straggler: rank 3 on node1 (late in its transfers) / In "
		  "world "
		  "transfers from it and to it take 4.0x longer than the median, all the time: its "
		  "process or its port is slow, not a link.\n" },
		{ { COST, .class = STRAGGLER_SLOW_RANK, .rank = 3, .host = 1, .is_origin = true,
		    .own_excess = 0.125, .pattern = STRAGGLER_BURSTS },
		  8.75,
		  0,
		  0,
		  "warning slow_rank: straggler: rank 3 on node1 / It spends 12.5% more of the "
		  "time "
		  "outside of communication than its peers, between 22:15:00 UTC and 22:21:40 UTC "
		  "(25% "
		  "of the time): ranks that are late elsewhere wait for it.\n" },
		{ { COST, .class = STRAGGLER_SLOW_HOST, .rank = UINT32_MAX, .host = 1,
		    .is_origin = true, .own_excess = 0.125 },
		  8.75,
		  0,
		  0,
		  "warning slow_host: straggler: all ranks of node1 / It spends 12.5% more of the "
		  "time "
		  "outside of communication than its peers, all the time: ranks that are late "
		  "elsewhere "
		  "wait for it.\n" },
		{ { COST, .class = STRAGGLER_SLOW_LINK, .rank = 3, .host = 1, .peer = 5,
		    .slowdown = 2.5 },
		  150,
		  1000,
		  0,
		  "warning slow_link: slow link: rank 3 -> rank 5 on node2 / Sends from rank 3 on "
		  "node1 "
		  "in world take 2.5x longer on the wire than the median, all the time. All ranks "
		  "in "
		  "the collective wait for them.\n" },
		{ { COST, .class = STRAGGLER_SLOW_LINK, .rank = 3, .host = 1, .peer = UINT32_MAX,
		    .slowdown = 2.5 },
		  150,
		  1000,
		  0,
		  "warning slow_link: slow link: rank 3 / Sends from rank 3 on node1 in world take "
		  "2.5x "
		  "longer on the wire than the median, all the time. All ranks in the collective "
		  "wait "
		  "for them.\n" },
		{ { COST, .class = STRAGGLER_NETWORK, .rank = UINT32_MAX, .slowdown = 1.5 },
		  50,
		  1000,
		  0,
		  "warning network: slow network: inter-node traffic is slower than before "
		  "everywhere / "
		  "Inter-node transfers take 1.50x longer, all the time, equally on all ranks; no "
		  "rank "
		  "arrives later than before. Total cost: 11 min 40 s.\n" },
		{ { COST, .class = STRAGGLER_HELD_UP, .rank = 3, .host = 1 }, 0, 0, 0, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		straggler = cases[i].straggler;
		report.stragglers.count = 1;
		expect(cases[i].text);
		if (findings.count == 1)
			EXPECT(fabs(findings.list[0].percent - cases[i].percent) < 1e-9 &&
			       findings.list[0].count == cases[i].count &&
			       findings.list[0].of == cases[i].of &&
			       findings.list[0].cost_ns == 700 * SECOND &&
			       findings.list[0].comm == 0 &&
			       findings.list[0].at_ns == START + 100 * SECOND);
		over();
	}
}

static void test_changes(void)
{
	begin();
	for (int i = 0; i < 7; i++)
		changes[i] = (struct windows_change){ .kind = JOB_COMM_NET,
						      .function = OP_ALL_REDUCE,
						      .at_ns = START + 100 * SECOND,
						      .before = 10e9,
						      .after = 5e9,
						      .percent = i == 1 ? 25 : -50,
						      .matches_before = 30,
						      .matches_after = 20,
						      .is_everywhere = i == 0,
						      .comms = 4,
						      .comms_changed = 1,
						      .ranks_changed = 2 };
	report.windows.change_count = 2;
	expect("warning change: AllReduce busbw on net-only communicators dropped 50% at 22:15:00 "
	       "UTC / "
	       "Excluding waiting, busbw went from 10.00 to 5.00 GB/s on all ranks, over 30 "
	       "collectives "
	       "before and 20 after.\n"
	       "note change: AllReduce busbw on net-only communicators increased 25% at 22:15:00 "
	       "UTC / "
	       "Excluding waiting, busbw went from 10.00 to 5.00 GB/s in 1 of 4 communicators (2 "
	       "ranks), "
	       "over 30 collectives before and 20 after.\n");
	findings_release(&findings);
	report.windows.change_count = 7;
	found();
	EXPECT_THAT("five changes are shown", findings.count == 5);
	findings_release(&findings);
	straggler = (struct straggler){ COST, .class = STRAGGLER_NETWORK, .slowdown = 1.5 };
	report.stragglers.count = 1;
	found();
	EXPECT_THAT("a slow network explains those between nodes",
		    findings.count == 1 && findings.list[0].kind == FINDINGS_NETWORK);
	over();
}

/* ---- the list ---------------------------------------------------------------------------------- */

static void test_list(void)
{
	begin();
	report.job.conflicts = 1;
	report.completeness.killed = 1;
	report.total.untrusted = 100;
	found();
	EXPECT(findings.count == 3 && findings.list[0].kind == FINDINGS_KILLED &&
	       findings.list[1].kind == FINDINGS_CONFLICT &&
	       findings.list[2].kind == FINDINGS_UNTRUSTED);
	findings_add_first(&findings, FINDINGS_HUNG, FINDINGS_ERROR, "first");
	EXPECT(findings.count == 4 && findings.list[0].kind == FINDINGS_HUNG &&
	       strcmp(findings.list[0].title, "first") == 0 &&
	       findings.list[1].kind == FINDINGS_KILLED &&
	       findings.list[3].kind == FINDINGS_UNTRUSTED);
	findings_drop(&findings, FINDINGS_CONFLICT);
	EXPECT(findings.count == 3 && findings.list[1].kind == FINDINGS_KILLED &&
	       findings.list[2].kind == FINDINGS_UNTRUSTED);
	findings.list[0].severity = FINDINGS_NOTE;
	findings_sort(&findings);
	EXPECT_THAT("the most serious first, otherwise in their order",
		    findings.list[0].kind == FINDINGS_KILLED &&
			    findings.list[1].kind == FINDINGS_HUNG &&
			    findings.list[2].kind == FINDINGS_UNTRUSTED);
	over();
}

int main(void)
{
	test_recording();
	test_reasons();
	test_incomplete();
	test_weak_times();
	test_unjoined();
	test_stragglers();
	test_changes();
	test_list();
	return tap_done();
}
