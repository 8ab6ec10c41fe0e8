/*
 * Changes of transfer speed under noise, with every field of what is found. Eight ranks, two on each of four hosts: AllReduces
 * and AllGathers in "dp-0" and "dp-1", which have a rank of every host each, and ReduceScatters in the pair of each host.
 */
#include "analysis/timeline_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tests/support/hand_made.h"
#include "tests/tap.h"
#include "tests/unit/analysis/straggler_show.h"

enum { RANKS = 8, CALLS = 400 };
#define US UINT64_C(1000)

/* How long a call takes, relative to the usual. */
struct step {
	int from; /* call */
	double times;
};

struct scene {
	const char *name;
	struct step dp[2][4];  /* of dp-0 and dp-1, until the first 0 */
	struct step gather[4]; /* of AllGathers in both, beside the above */
	struct step tp[4];
};

static double times_of(const struct step *steps, int call)
{
	double times = 1;

	for (int i = 0; i < 4 && steps[i].times > 0; i++)
		if (call >= steps[i].from)
			times = steps[i].times;
	return times;
}

static uint64_t lasting(uint64_t usual_ns, double times, int rank, int call)
{
	/* Ranks wait for each other: the shortest is the transfer. */
	return (uint64_t)((double)noisy(usual_ns, call, 99) * times) +
	       noisy(usual_ns / 20, rank, call) * (uint64_t)(rank % 3);
}

static void add_rank(struct hand_made *hand, const struct scene *scene, int rank)
{
	char host[16], pair[16];
	struct recording_process *process;

	snprintf(host, sizeof(host), "h%d", rank / 2);
	snprintf(pair, sizeof(pair), "tp-%d", rank / 2);
	process = hand_process(hand, "j", rank, host);
	hand_comm(process, 0x10 + (uint64_t)rank % 2, rank % 2 ? "dp-1" : "dp-0", rank / 2,
		  RANKS / 2, RANKS / 2);
	hand_comm(process, 0x20 + (uint64_t)rank / 2, pair, rank % 2, 2, 1);
	for (int i = 0; i < CALLS; i++) {
		uint64_t at_ns = (uint64_t)(i + 1) * 20000 * US;
		double times = times_of(scene->dp[rank % 2], i);

		hand_op(process, 1, OP_ALL_REDUCE, 2 * (uint64_t)i + 1, 4 << 20,
			lasting(4000 * US, times, rank, i), at_ns);
		hand_op(process, 1, OP_ALL_GATHER, 2 * (uint64_t)i + 2, 64 << 10,
			lasting(500 * US, times * times_of(scene->gather, i), rank, i),
			at_ns + 7000 * US);
		hand_op(process, 2, OP_REDUCE_SCATTER, (uint64_t)i + 1, 1 << 20,
			lasting(300 * US, times_of(scene->tp, i), rank, i), at_ns + 9000 * US);
	}
}

static void put_change(struct sink *to, const struct timeline_report *report,
		       const struct windows_change *change)
{
	sink_format(to, "%s on %s, size class %u, at %.3f s in window %" PRIu32 "\n",
		    job_name(&report->job, OP_NAMES_FUNCTION, change->function),
		    job_comm_kind_name(change->kind), change->size_class,
		    (double)(change->at_ns - report->windows.start_ns) / 1e9, change->window);
	sink_format(to, "  %.4f to %.4f GB/s, %.3f%%, %" PRIu64 " before, %" PRIu64 " after\n",
		    change->before / 1e9, change->after / 1e9, change->percent,
		    change->matches_before, change->matches_after);
	sink_format(to,
		    "  %.3f ms lost, doubt 10^%.2f; %" PRIu32 " of %" PRIu32 " comms, %" PRIu32
		    " ranks%s, such as %s\n",
		    (double)change->lost_ns / 1e6, log10(1 - change->confidence + 1e-9),
		    change->comms_changed, change->comms, change->ranks_changed,
		    change->is_everywhere ? ", everywhere" : "",
		    report->job.comms[change->example_comm].name);
}

int main(void)
{
	static const struct scene scenes[] = {
		{ .name = "nothing" },
		{ .name = "slower everywhere", .dp = { { { 240, 1.5 } }, { { 240, 1.5 } } } },
		{ .name = "slower on one", .dp = { { { 160, 1.3 } } } },
		{ .name = "for a while",
		  .dp = { { { 120, 2 }, { 240, 1 } }, { { 120, 2 }, { 240, 1 } } } },
		{ .name = "faster inside of hosts", .tp = { { 200, 0.7 } } },
		{ .name = "in two steps",
		  .dp = { { { 130, 1.3 }, { 270, 1.8 } }, { { 130, 1.3 }, { 270, 1.8 } } } },
		{ .name = "at different times", .dp = { { { 100, 1.4 } }, { { 300, 1.6 } } } },
		{ .name = "of one function", .gather = { { 200, 1.7 } } },
		{ .name = "of all",
		  .dp = { { { 150, 1.2 } }, { { 150, 1.25 } } },
		  .gather = { { 150, 1.3 } },
		  .tp = { { 150, 2 } } },
		{ .name = "too little", .dp = { { { 200, 1.01 } }, { { 200, 1.01 } } } },
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		struct timeline_options options = { .windows = 16 };
		static struct hand_made hand;
		struct timeline_report report;

		for (int rank = 0; rank < RANKS; rank++)
			add_rank(&hand, &scenes[i], rank);
		if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
			abort();
		sink_format(&sink, "=== %s\n", scenes[i].name);
		for (size_t c = 0; c < report.windows.change_count; c++)
			put_change(&sink, &report, &report.windows.changes[c]);
		timeline_report_release(&report);
		hand_release(&hand);
	}
	EXPECT(expected_text(&sink, "tests/unit/analysis/expected/windows-noise.txt"));
	return tap_done();
}
