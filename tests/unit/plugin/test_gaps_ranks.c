/*
 * Ranks of one communicator whose events are switched off and on at different calls, as NCCL's RAS
 * does: afterwards the right collectives are matched, missing ones are counted, and no rank is
 * blamed.
 */
#include "analysis/timeline_report.h"
#include "doctor/doctor.h"
#include "tests/support/plugin_host.h"
#include "tests/tap.h"

enum { RANKS = 4, STEPS = 60 };

static const char *directory;
static struct plugin_host hosts[RANKS];
static uint64_t hash = 0x1000;

static void begin(int release)
{
	hash++;
	for (int i = 0; i < RANKS; i++) {
		struct host_config config = { .release = release,
					      .linked = &plugin_linked,
					      .seed = 7 };
		struct host_comm_config comm = {
			.hash = hash, .nnodes = 1, .nranks = RANKS, .rank = i
		};

		if (host_new(&hosts[i].host, &config) != OK ||
		    host_comm_new(hosts[i].host, &hosts[i].comm, &comm) != OK)
			abort();
		*host_mask(hosts[i].host) |= ABI_KERNEL_CH;
		hosts[i].user = (struct host_user){ 0 };
		hosts[i].id = plugin_host_id(hosts[i].comm);
	}
}

/* One training step on all ranks. Sizes distinguish collectives of the same function. */
static const struct {
	enum op_function function;
	uint64_t count;
} calls[] = {
	{ OP_ALL_REDUCE, 1 << 10 },	{ OP_BROADCAST, 1 << 8 },   { OP_ALL_GATHER, 1 << 12 },
	{ OP_REDUCE_SCATTER, 1 << 14 }, { OP_ALL_REDUCE, 1 << 18 },
};
enum { CALLS = ARRAY_LENGTH(calls) };

/* Rank i is off from call off[i] to call on[i]. */
static void play(const int off[RANKS], const int on[RANKS])
{
	int mask = *host_mask(hosts[0].host);

	for (int n = 0; n < STEPS * CALLS; n++)
		for (int i = 0; i < RANKS; i++) {
			struct host_op op = host_op_make(hosts[i].comm, calls[n % CALLS].function,
							 calls[n % CALLS].count, OP_FLOAT32);

			*host_mask(hosts[i].host) = n >= off[i] && n < on[i] ? 0 : mask;
			plugin_host_play(&hosts[i], &op);
			host_comm_settle(hosts[i].comm);
		}
}

static uint64_t missed(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < RANKS; i++)
		sum += plugin_host_comm(hosts[i].id)->counts.missed;
	return sum;
}

static const struct timeline_comm *comm_of(const struct timeline_report *report)
{
	for (size_t c = 0; c < report->job.comm_count; c++)
		if (report->job.comms[c].hash == hash)
			return &report->comms[c];
	abort();
}

/* Synchronizing collectives that were shown on all ranks. */
static uint64_t expected_meetings(const int off[RANKS], const int on[RANKS])
{
	uint64_t count = 0;

	for (int n = 0; n < STEPS * CALLS; n++) {
		bool is_shown = calls[n % CALLS].function != OP_BROADCAST;

		for (int i = 0; i < RANKS; i++)
			is_shown &= n < off[i] || n >= on[i];
		count += is_shown;
	}
	return count;
}

static void read_it(struct recording *recording)
{
	recording_init(recording);
	if (recording_add_machine(recording, directory, 0) != OK ||
	    recording_finish(recording) != OK)
		abort();
}

static void expect_nobody(const struct timeline_report *report, const char *what)
{
	const struct hang_options options = { .hang_ns = 1 };
	struct verdicts verdicts = { .count = 0 };

	printf("# %s\n", what);
	for (size_t i = 0; i < report->findings.count; i++) {
		enum findings_kind kind = report->findings.list[i].kind;

		EXPECT_THAT("no finding names a rank",
			    kind > FINDINGS_CHANGE && kind != FINDINGS_CONFLICT);
	}
	if (hang_find(&verdicts, &report->job, &options) != OK)
		abort();
	for (size_t i = 0; i < verdicts.count; i++)
		printf("# %s\n", verdicts.list[i].title);
	EXPECT_THAT("no rank is reported hung", verdicts.count == 0);
	verdicts_release(&verdicts);
}

static void expect_together(const struct recording *recording, const char *what, int release,
			    const int off[RANKS], const int on[RANKS])
{
	struct timeline_report report;

	if (timeline_report_make(&report, recording, NULL, NULL) != OK)
		abort();
	/*
	 * Only timed collectives are matched. Since 2.31 GPU times are wrong after events were off,
	 * and are rejected.
	 */
	if (release < HOST_NCCL_2_31)
		EXPECT_EQUAL(comm_of(&report)->complete, expected_meetings(off, on));
	EXPECT_EQUAL(comm_of(&report)->mismatches, 0);
	EXPECT(report.completeness.lost[LOST_NOT_SHOWN] >= missed());
	EXPECT(!report.completeness.is_complete && report.completeness.share < 1);
	expect_nobody(&report, what);
	timeline_report_release(&report);
}

/* What is sent to other hosts: written like a trace file. */
static void snapshot_of(const struct recording *recording, struct recording *snapshot,
			unsigned char **bytes)
{
	size_t length;

	recording_init(snapshot);
	if (recording->count != 1 ||
	    recording_snapshot(recording->processes[0], 1 << 20, 0, bytes, &length) != OK ||
	    recording_add_memory(snapshot, "snapshot", *bytes, length, 0) != OK ||
	    recording_finish(snapshot) != OK)
		abort();
}

static void ranks_stay_together(int release, const char *what, const int off[RANKS],
				const int on[RANKS])
{
	struct recording recording, snapshot;
	unsigned char *bytes;

	begin(release);
	play(off, on);
	EXPECT_THAT("calls are missed, and counted", missed() > 0);
	read_it(&recording);
	snapshot_of(&recording, &snapshot, &bytes);
	expect_together(&recording, what, release, off, on);
	expect_together(&snapshot, "the same from a snapshot", release, off, on);
	recording_release(&snapshot);
	recording_release(&recording);
	free(bytes);
	for (int i = 0; i < RANKS; i++)
		plugin_host_end(&hosts[i]);
}

int main(void)
{
	static const int releases[] = { HOST_NCCL_2_28, HOST_NCCL_2_30, HOST_NCCL_2_31 };
	static const int never[RANKS] = { 1 << 20, 1 << 20, 1 << 20, 1 << 20 };
	int one_off[RANKS] = { never[0], never[0], 102, never[0] };
	int one_on[RANKS] = { never[0], never[0], 183, never[0] };
	int all_off[RANKS] = { 100, 103, 101, 109 }, all_on[RANKS] = { 200, 199, 206, 203 };

	directory = plugin_host_setup("flight");
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		ranks_stay_together(releases[i], "one rank misses calls", one_off, one_on);
		ranks_stay_together(releases[i], "all ranks miss other calls", all_off, all_on);
	}
	return tap_done();
}
