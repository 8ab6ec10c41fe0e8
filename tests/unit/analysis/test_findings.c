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
static struct timeline_comm comms[4];
static struct straggler straggler, stragglers[2];
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
		uint64_t untrusted, timed, by_event, by_tool;
		const char *text;
	} cases[] = {
		{ 10, 1000, 0, 0, "" },
		{ 11, 1000, 0, 0,
		  "note untrusted_stamps: GPU timestamps of 1.1% of calls were rejected / NCCL "
		  "2.26 to "
		  "2.30 can report the timestamps of another operation. These calls have "
		  "no duration.\n" },
		{ 0, 1000, 10, 10, "" },
		{ 0, 1000, 11, 10,
		  "note mixed_sources: durations come from several sources / kernel_gpu 1000, "
		  "cuda_event 11, "
		  "tool 10 calls. They measure different things; each row shows its source.\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		report.total.untrusted = cases[i].untrusted;
		report.total.timed = cases[i].timed;
		report.total.by_source[OP_TIME_CUDA_EVENT] = cases[i].by_event;
		report.total.by_source[OP_TIME_TOOL] = cases[i].by_tool;
		/* No durations: no mixture. */
		report.total.by_source[OP_TIME_PROXY] = report.total.by_source[OP_TIME_HOST] = 500;
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

/* ---- ranks that are stuck or disagree ---------------------------------------------------------- */

static struct scan_open opens[RANKS];

/* All ranks were killed in AllReduce #6. */
static void begin_stuck(void)
{
	begin();
	comms[0].is_shown = true;
	scan.opens = opens;
	scan.matches.comms = calloc(2, sizeof(*scan.matches.comms));
	for (int rank = 0; rank < RANKS; rank++) {
		hand.list[rank]->life = RECORDING_KILLED;
		opens[rank] = (struct scan_open){
			.count = 1, .match = 6, .signature = 60, .function = OP_ALL_REDUCE
		};
	}
}

static void over_stuck(void)
{
	free(scan.matches.comms);
	over();
}

#define NOT_ALL "When the recording ended, 7 of 8 recorded ranks of world were in this collective. "

static void test_stuck(void)
{
	static const struct {
		const char *what;
		struct scan_open last; /* of rank 7 */
		enum recording_life life;
		uint64_t missed;
		uint64_t inside; /* 0: nothing to report */
		const char *text;
	} cases[] = {
		{ "all of them",
		  { 1, 6, 60, 0, OP_ALL_REDUCE, 0 },
		  RECORDING_KILLED,
		  0,
		  8,
		  "When the recording ended, all 8 recorded ranks of world were in this "
		  "collective." },
		{ "one has nothing open",
		  { 0, 6, 60, 0, OP_ALL_REDUCE, 0 },
		  RECORDING_KILLED,
		  0,
		  7,
		  NOT_ALL "Not in it: 7." },
		{ "one is in the next",
		  { 1, 7, 70, 0, OP_ALL_REDUCE, 0 },
		  RECORDING_KILLED,
		  0,
		  7,
		  NOT_ALL "Not in it: 7." },
		{ "one is in the one before, where the others are not",
		  { 1, 5, 50, 0, OP_BROADCAST, 0 },
		  RECORDING_KILLED,
		  0,
		  1,
		  "When the recording ended, 1 of 8 recorded ranks of world was in this "
		  "collective. Not in it: 0, 1, 2, 3, 4, 5, 6." },
		{ "a Send is no collective",
		  { 1, 5, 50, 0, OP_SEND, 0 },
		  RECORDING_KILLED,
		  0,
		  7,
		  NOT_ALL "Not in it: 7." },
		{ "one without a number",
		  { 1, 0, 50, 0, OP_ALL_REDUCE, 0 },
		  RECORDING_KILLED,
		  0,
		  7,
		  NOT_ALL "Not in it: 7." },
		{ "a running process has operations in flight",
		  { 1, 5, 50, 0, OP_ALL_REDUCE, 0 },
		  RECORDING_ALIVE,
		  0,
		  7,
		  NOT_ALL "Not in it: 7." },
		{ "so has one that ended",
		  { 1, 5, 50, 0, OP_ALL_REDUCE, 0 },
		  RECORDING_ENDED,
		  0,
		  7,
		  NOT_ALL "Not in it: 7." },
		{ "with gaps, the others are unknown",
		  { 0, 6, 60, 0, OP_ALL_REDUCE, 0 },
		  RECORDING_KILLED,
		  1,
		  7,
		  "When the recording ended, at least 7 of 8 recorded ranks of world were in this "
		  "collective. NCCL did not report all calls of this communicator, so the others "
		  "are unknown." },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin_stuck();
		opens[7] = cases[i].last;
		hand.list[7]->life = cases[i].life;
		report.job.comms[0].missed = cases[i].missed;
		found();
		EXPECT_THAT(cases[i].what,
			    findings.count == 1 && findings.list[0].kind == FINDINGS_HUNG &&
				    findings.list[0].count == cases[i].inside &&
				    findings.list[0].of == 8 && findings.list[0].comm == 0 &&
				    strcmp(findings.list[0].text, cases[i].text) == 0);
		over_stuck();
	}

	begin_stuck();
	for (int rank = 0; rank < RANKS; rank++)
		opens[rank].count = 0;
	expect("");
	findings_release(&findings);
	opens[3] = (struct scan_open){ 1, 6, 60, 0, OP_ALL_REDUCE, 0 };
	comms[0].is_shown = false;
	expect("");
	findings_release(&findings);
	comms[0].is_shown = true;
	report.job.comms[0].seats += 3;
	report.job.comms[0].seat_count = 1;
	expect("error hung: 1 rank stuck in AllReduce #6 of world at the end / When the recording "
	       "ended, the recorded rank of world was in this collective.\n");
	report.job.comms[0].seats -= 3;
	report.job.comms[0].seat_count = 8;
	over_stuck();
}

/* A sentence lists eight ranks at most. */
static void test_many_outside(void)
{
	enum { MANY = 10 };
	static struct scan_open open[MANY];

	for (int outside = 8; outside < MANY; outside++) {
		for (int rank = 0; rank <= outside; rank++) {
			struct recording_process *process = hand_process(&hand, "train", rank, "n");

			hand_comm(process, 0x77, "world", rank, outside + 1, 1);
			process->life = RECORDING_KILLED;
			open[rank] = (struct scan_open){ 0 };
		}
		open[0] = (struct scan_open){ 1, 6, 60, 0, OP_ALL_REDUCE, 0 };
		report = (struct timeline_report){ .recording = &hand.recording,
						   .comms = comms,
						   .completeness = { .looked_at = 1 } };
		comms[0].is_shown = true;
		if (job_make(&report.job, &hand.recording) != OK)
			abort();
		scan = (struct scan){ .job = &report.job, .opens = open };
		scan.matches.comms = calloc(2, sizeof(*scan.matches.comms));
		found();
		EXPECT(findings.count == 1 &&
		       strstr(findings.list[0].text, outside == 8
							     ? "Not in it: 1, 2, 3, 4, 5, 6, 7, 8."
							     : "Not in it: 1, 2, 3, 4, 5, 6, 7, 8, "
							       "....") != NULL);
		over_stuck();
	}
}

static uint64_t mismatches(uint64_t *number)
{
	uint64_t count = 0;

	found();
	for (size_t i = 0; i < findings.count; i++) {
		const char *at = strstr(findings.list[i].hint, "(match ");

		if (findings.list[i].kind != FINDINGS_MISMATCH || at == NULL)
			continue;
		count = findings.list[i].count;
		*number = strtoull(at + strlen("(match "), NULL, 10);
	}
	findings_release(&findings);
	return count;
}

static void test_disagreement(void)
{
	uint64_t number = 0;

	begin_stuck();
	EXPECT_THAT("all agree", mismatches(&number) == 0);
	opens[2].signature = opens[4].signature = 61;
	EXPECT_THAT("two of those inside called something else",
		    mismatches(&number) == 2 && number == 6);
	opens[4].match = 7;
	EXPECT_THAT("one that is elsewhere is not compared",
		    mismatches(&number) == 1 && number == 6);
	report.job.comms[0].missed = 1;
	EXPECT_THAT("with gaps, hashes of calls say nothing", mismatches(&number) == 0);
	report.comms[0].mismatches = 5;
	report.comms[0].first_mismatch = 3;
	EXPECT_THAT("what was seen in finished collectives comes first",
		    mismatches(&number) == 5 && number == 3);
	over_stuck();

	begin();
	comms[0].is_shown = true;
	scan.opens = opens;
	memset(opens, 0, sizeof(opens));
	for (int rank = 0; rank < RANKS; rank++) {
		hand.list[rank]->comms[0].counts.collectives = 12;
		hand.list[rank]->comms[0].counts.signature = rank < 3 ? 0x33 : 0x44;
	}
	EXPECT_THAT("ranks made as many calls, but others",
		    mismatches(&number) == 5 && number == 12);
	hand.list[7]->comms[0].counts.collectives = 11;
	EXPECT_THAT("one that made fewer is not compared", mismatches(&number) == 4);
	hand.list[6]->comms[0].counts.signature = 0;
	EXPECT_THAT("nor one without a hash", mismatches(&number) == 3);
	hand.list[5]->comms[0].has_counts = false;
	EXPECT_THAT("nor one without counters", mismatches(&number) == 2);
	report.job.comms[0].hash = 0;
	EXPECT_THAT("an unknown communicator has no other ranks", mismatches(&number) == 0);
	over();
}

/* ---- time that is not of one rank -------------------------------------------------------------- */

static bool has(enum findings_kind kind)
{
	bool is_there = false;

	found();
	for (size_t i = 0; i < findings.count; i++)
		is_there |= findings.list[i].kind == kind;
	findings_release(&findings);
	return is_there;
}

static void test_waiting(void)
{
	static const struct {
		const char *what;
		uint64_t wait_s;
		double hours_waited;
		size_t stragglers;
		bool is_found;
	} cases[] = {
		{ "30% of collective time and 2% of the run", 300, 2, 0, true },
		{ "less than 30% of collective time", 299, 2, 0, false },
		{ "less than 2% of the run", 300, 1.99, 0, false },
		{ "a straggler is why", 300, 2, 1, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		report.total.joined_ns = 1000 * SECOND;
		report.total.wait_ns = cases[i].wait_s * SECOND;
		report.gpu_hours = 100;
		report.gpu_hours_waited = cases[i].hours_waited;
		straggler = (struct straggler){ .class = STRAGGLER_HELD_UP };
		report.stragglers.count = cases[i].stragglers;
		EXPECT_THAT(cases[i].what, has(FINDINGS_WAITING) == cases[i].is_found);
		over();
	}

	begin();
	report.total.joined_ns = 500 * SECOND;
	report.total.wait_ns = 100 * SECOND;
	report.total.covered_joined_ns = 500e9;
	report.total.covered_wait_ns = 300e9;
	report.gpu_hours = 50;
	report.gpu_hours_waited = 5;
	expect("note waiting: ranks wait for each other 10% of run time "
	       "/ Arrival skew is 40% of collective time, 6 min 40 s in total over all ranks.\n");
	findings_release(&findings);
	report.stragglers.has_enough = true;
	expect("note waiting: ranks wait for each other 10% of run time, with no single straggler "
	       "/ Arrival skew is 40% of collective time, 6 min 40 s in total over all ranks; the "
	       "last rank varies.\n");
	EXPECT(fabs(findings.list[0].percent - 40) < 1e-9 &&
	       findings.list[0].cost_ns == 400 * SECOND);
	findings_release(&findings);
	report.total.covered = 1;
	found();
	EXPECT(strstr(findings.list[0].text, "Arrival skew is about 40%") != NULL);
	findings_release(&findings);
	report.gpu_hours = 0;
	EXPECT_THAT("a run of no known length", !has(FINDINGS_WAITING));
	over();
}

/* Sizes of 32 KiB are the last small class; the others of the 2,000 calls are of the next. */
static void test_small_messages(void)
{
	static const struct {
		const char *what;
		uint8_t size_class;
		uint64_t small, all;
		uint64_t small_ns; /* of 1000 ns */
		bool is_found;
	} cases[] = {
		{ "a thousand, half of all calls, a fifth of the time", 17, 1000, 2000, 200, true },
		{ "too few of them", 17, 999, 1998, 200, false },
		{ "less than half of the calls", 17, 1000, 2001, 200, false },
		{ "less than a fifth of the time", 17, 1000, 2000, 199, false },
		{ "64 KiB is not small", 18, 1000, 2000, 200, false },
		{ "the smallest", 1, 1000, 2000, 200, true },
		{ "of unknown size", 0, 1000, 2000, 200, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_row rows[2] = { { .key = { .size_class = cases[i].size_class },
					       .timed = cases[i].small,
					       .sum_ns = cases[i].small_ns + 50,
					       .wait_ns = 50 },
					     { .key = { .size_class = 18 },
					       .timed = cases[i].all - cases[i].small,
					       .sum_ns = 1000 - cases[i].small_ns } };

		begin();
		report.total.calls = report.total.timed = cases[i].all;
		report.total.sum_ns = 1050;
		report.total.wait_ns = 50;
		report.by_size.rows = rows;
		report.by_size.count = 2;
		EXPECT_THAT(cases[i].what, has(FINDINGS_SMALL_MESSAGES) == cases[i].is_found);
		if (cases[i].is_found) {
			found();
			EXPECT(findings.list[0].count == 1000 && findings.list[0].of == 2000 &&
			       fabs(findings.list[0].percent - 20) < 1e-9 &&
			       findings.list[0].cost_ns == 200);
			findings_release(&findings);
			rows[0].timed = 900;
			rows[0].covered = 100;
			report.total.timed = 1900;
			report.total.covered = 100;
			found();
			EXPECT_THAT("estimated calls count like timed ones",
				    findings.count == 1 && findings.list[0].count == 1000 &&
					    strcmp(findings.list[0].text,
						   "1000 of 2000 calls move less than 64 KiB; "
						   "excluding waiting, they take about 200 ns: "
						   "limited by latency, not bandwidth.") == 0);
		}
		over();
	}
}

/* A change that another finding explains is not reported again. */
static void test_explained_changes(void)
{
	static const struct {
		const char *what;
		enum straggler_class class;
		enum job_comm_kind kind;
		uint32_t comm; /* of the change; the straggler is in 0 */
		bool is_shown;
	} cases[] = {
		{ "a slow network and net-only", STRAGGLER_NETWORK, JOB_COMM_NET, 1, false },
		{ "a slow network and mixed", STRAGGLER_NETWORK, JOB_COMM_MIXED, 1, false },
		{ "a slow network and NVLink", STRAGGLER_NETWORK, JOB_COMM_NVLINK, 0, true },
		{ "a slow link there", STRAGGLER_SLOW_LINK, JOB_COMM_NET, 0, false },
		{ "a slow link elsewhere", STRAGGLER_SLOW_LINK, JOB_COMM_NET, 1, true },
		{ "a straggler there", STRAGGLER_SLOW_RANK, JOB_COMM_NET, 0, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		straggler = (struct straggler){ COST, .class = cases[i].class, .peer = UINT32_MAX,
						.slowdown = 2 };
		report.stragglers.count = 1;
		changes[0] = (struct windows_change){ .kind = cases[i].kind,
						      .function = OP_ALL_REDUCE,
						      .percent = -50,
						      .example_comm = cases[i].comm };
		report.windows.change_count = 1;
		EXPECT_THAT(cases[i].what, has(FINDINGS_CHANGE) == cases[i].is_shown);
		over();
	}
}

/* ---- what depends on the recording ------------------------------------------------------------- */

static void test_straggler_words(void)
{
	begin();
	straggler = (struct straggler){ COST, .class = STRAGGLER_SLOW_RANK, .rank = 3, .host = 1,
					.late_ns = SECOND / 50 };
	straggler.has_times = false;
	report.stragglers.count = 1;
	comms[0].scale = 4;
	expect("warning slow_rank: straggler: rank 3 on node1 / In world it arrives 20.0 ms later "
	       "than the others and was last in 900 of 1000 collectives. The other ranks waited "
	       "about 11 min 40 s in total (estimated: not all were timed).\n");
	EXPECT(findings.list[0].at_ns == 0 && findings.list[0].rank == 3 &&
	       findings.list[0].host == 1 && findings.list[0].peer == UINT32_MAX);
	over();

	/* Hosts that are late for the same collectives may be held up by one rank. */
	for (int i = 0; i < 3; i++) {
		begin();
		stragglers[0] = stragglers[1] =
			(struct straggler){ COST, .class = STRAGGLER_SLOW_HOST, .rank = UINT32_MAX,
					    .late_ns = SECOND / 50 };
		stragglers[1].host = 1;
		stragglers[1].comm = i == 1;
		report.stragglers.list = stragglers;
		report.stragglers.count = i == 2 ? 1 : 2;
		report.job.comm_count = 1;
		found();
		EXPECT((strstr(findings.list[0].hint, "Other hosts are late, too") != NULL) ==
		       (i == 0));
		over();
	}

	for (int i = 0; i < 3; i++) {
		static const char *const titles[] = { "slow link: rank 3 -> rank 5 on node2",
						      "slow link: rank 3 and others of node1",
						      "slow link: rank 3 and others of its rail" };

		begin();
		straggler = (struct straggler){ COST,
						.class = STRAGGLER_SLOW_LINK,
						.rank = 3,
						.host = 1,
						.peer = i == 0 ? 5 : UINT32_MAX,
						.is_uplink = i == 1,
						.is_rail = i == 2 };
		report.stragglers.count = 1;
		found();
		EXPECT(strcmp(findings.list[0].title, titles[i]) == 0 &&
		       findings.list[0].peer == straggler.peer);
		EXPECT((strstr(findings.list[0].hint, "full mode shows the receiver") != NULL) ==
		       (i > 0));
		over();
	}

	/* Only where links within nodes could be meant is the doctor needed. */
	for (int i = 0; i < 4; i++) {
		begin();
		straggler = (struct straggler){ COST, .class = STRAGGLER_NETWORK, .slowdown = 2,
						.has_wire = i & 1 };
		report.stragglers.count = 1;
		report.job.comms[0].kind = i & 2 ? JOB_COMM_NET : JOB_COMM_MIXED;
		found();
		EXPECT((strstr(findings.list[0].hint, "Slow NVLink") != NULL) == (i == 0));
		over();
	}
}

static void test_recording_words(void)
{
	begin();
	report.completeness.lost_operations = report.completeness.lost[LOST_QUOTA] = 1;
	report.completeness.issued = 0;
	found();
	EXPECT(findings.count == 1 && findings.list[0].count == 1 && findings.list[0].of == 0 &&
	       findings.list[0].percent == 0 &&
	       strcmp(findings.list[0].title, "1 operation was lost") == 0 &&
	       strstr(findings.list[0].text, "The recorder counted it but") != NULL);
	over();

	for (uint64_t untimed = 50; untimed < 52; untimed++) {
		begin();
		report.total.timed = 900 - untimed;
		report.total.covered = 80;
		report.total.open = 20;
		EXPECT_THAT("more than 5% of calls have no time, nor an estimate",
			    has(FINDINGS_UNTIMED) == (untimed == 51));
		if (untimed == 51) {
			found();
			EXPECT(findings.list[0].count == 51 && findings.list[0].of == 1000 &&
			       fabs(findings.list[0].percent - 5.1) < 1e-9 &&
			       strcmp(findings.list[0].title, "5.1% of calls are in no total") ==
				       0);
		}
		over();
	}

	begin();
	report.total.calls = report.total.timed = 0;
	report.total.by_source[OP_TIME_KERNEL_GPU] = 0;
	expect("");
	over();

	begin();
	report.total.untrusted = 20;
	found();
	EXPECT(findings.list[0].count == 20 && findings.list[0].of == 1000 &&
	       fabs(findings.list[0].percent - 2) < 1e-9);
	over();

	for (uint64_t read = 0; read < 2; read++) {
		begin();
		report.completeness.read = read;
		report.align.unaligned = 2;
		report.align.count = 8;
		EXPECT_THAT("what was not read needs no common time",
			    has(FINDINGS_UNALIGNED) == (read > 0));
		over();
	}

	begin();
	report.job.group_count = 2;
	expect("note several_jobs: 2 jobs in this recording / Totals cover all of them; "
	       "communicators are matched only within a job.\n");
	EXPECT_EQUAL(findings.list[0].count, 2);
	over();

	/* The communicator that lacks most is named. */
	begin();
	hand_comm(hand.list[0], 0x78, "pair", 0, 2, 1);
	hand_comm(hand.list[1], 0x79, "four", 0, 4, 1);
	hand_comm(hand.list[2], 0x7a, "three", 0, 3, 1);
	job_release(&report.job);
	if (job_make(&report.job, &hand.recording) != OK)
		abort();
	found();
	EXPECT(findings.count == 1 && findings.list[0].count == 3 && findings.list[0].of == 4 &&
	       strcmp(findings.list[0].text,
		      "four has 4 ranks; 1 of them is recorded. Waiting can be measured only with "
		      "several recorded ranks.") == 0 &&
	       strcmp(report.job.comms[findings.list[0].comm].label, "four") == 0);
	over();
}

/* Beyond a hundred they are counted, not listed. */
static void test_too_many(void)
{
	begin();
	found();
	for (int i = 0; i < 99; i++)
		findings_add_first(&findings, FINDINGS_HUNG, FINDINGS_NOTE, "x");
	EXPECT(findings.count == 99 && findings.left_out == 0);
	findings_add_first(&findings, FINDINGS_LOST, FINDINGS_NOTE, "the hundredth");
	EXPECT(findings.count == 100 && findings.left_out == 0);
	findings_add_first(&findings, FINDINGS_LOST, FINDINGS_NOTE, "one more");
	EXPECT(findings.count == 100 && findings.left_out == 1);
	EXPECT(strcmp(findings.list[0].title, "one more") == 0 &&
	       strcmp(findings.list[1].title, "the hundredth") == 0);
	over();
}

static void test_names(void)
{
	EXPECT(strcmp(findings_severity_name(FINDINGS_ERROR), "error") == 0 &&
	       strcmp(findings_severity_name((enum findings_severity)(FINDINGS_ERROR + 1)),
		      "note") == 0);
	EXPECT(strcmp(findings_kind_name((enum findings_kind)(FINDINGS_KINDS - 1)), "slower") ==
		       0 &&
	       strcmp(findings_kind_name(FINDINGS_KINDS), "unknown") == 0);
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
	test_stuck();
	test_many_outside();
	test_disagreement();
	test_waiting();
	test_small_messages();
	test_explained_changes();
	test_straggler_words();
	test_recording_words();
	test_too_many();
	test_names();
	return tap_done();
}
