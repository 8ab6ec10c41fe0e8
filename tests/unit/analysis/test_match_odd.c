/*
 * Collectives that do not match as they should: ranks that are missing, calls twice, other calls, replays and calls beside each
 * other, times of another kind. Six ranks on three hosts in one communicator, 100 rounds, noise; what was counted, per rank.
 */
#include "analysis/timeline_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tests/support/hand_made.h"
#include "tests/tap.h"
#include "tests/unit/analysis/straggler_show.h"

enum { RANKS = 6, ROUNDS = 100 };

enum odd {
	NOTHING_ODD,
	MISSING_RANK,	    /* rank 5 was not recorded */
	SELDOM,		    /* rank 2 takes part in every other round */
	ALONE,		    /* in every tenth round, rank 0 is alone */
	TWICE,		    /* rank 1 has the same number twice */
	OTHER_CALL,	    /* from round 61 on, ranks 3 and 4 call something else */
	OTHER_CALL_OF_MOST, /* the others do */
	NO_NUMBER,	    /* rank 4 has none in every fourth round */
	OTHER_SOURCE,	    /* times of rank 2 are the proxy's */
	HOST_TIMES,	    /* those of rank 2 are the host's */
	REPLAYS,	    /* every third round is replayed, with numbers of its own */
	OUT_OF_ORDER,	    /* rank 3 recorded in blocks of ten, the later one first */
	FAR_APART,	    /* numbers have a gap of thousands */
	NO_HASH,	    /* the communicator is unknown */
	ROOTED,		    /* Broadcasts, which do not synchronize */
	ODDS,
};

static const char *const names[ODDS] = {
	[NOTHING_ODD] = "nothing odd",
	[MISSING_RANK] = "a rank is missing",
	[SELDOM] = "seldom",
	[ALONE] = "alone",
	[TWICE] = "twice",
	[OTHER_CALL] = "another call",
	[OTHER_CALL_OF_MOST] = "another call of most",
	[NO_NUMBER] = "no number",
	[OTHER_SOURCE] = "another source",
	[HOST_TIMES] = "times of the host",
	[REPLAYS] = "replays",
	[OUT_OF_ORDER] = "out of order",
	[FAR_APART] = "far apart",
	[NO_HASH] = "unknown",
	[ROOTED] = "Broadcasts",
};

static struct op_record *add_round(struct recording_process *process, enum odd odd, int rank,
				   int round)
{
	bool is_odd_rank = rank == 3 || rank == 4;
	bool is_other = (odd == OTHER_CALL && is_odd_rank && round > 60) ||
			(odd == OTHER_CALL_OF_MOST && !is_odd_rank && round > 60);
	uint64_t match = odd == REPLAYS ? (uint64_t)(round % 3 == 0 ? round / 3 : round - round / 3)
			 : odd == FAR_APART && round > 50 ? (uint64_t)round + 50000
							  : (uint64_t)round;
	struct op_record *op = hand_op(process, 1, odd == ROOTED ? OP_BROADCAST : OP_ALL_REDUCE,
				       match, is_other ? 2 << 20 : 1 << 20,
				       noisy(2000000, rank, round), (uint64_t)round * 10000000);

	/* Each sees the end a bit later. */
	op->done_ns += noisy(5000, round, rank);
	op->signature = 0x5000 + match + is_other;
	if (odd == NO_NUMBER && rank == 4 && round % 4 == 0)
		op->match = 0;
	if (odd == OTHER_SOURCE && rank == 2)
		op->time_source = OP_TIME_PROXY;
	if (odd == HOST_TIMES && rank == 2)
		op->time_source = OP_TIME_HOST;
	if (odd == REPLAYS && round % 3 == 0)
		op->flags |= OP_FLAG_REPLAY;
	return op;
}

static void add_rank(struct hand_made *hand, enum odd odd, int rank)
{
	char host[16];
	struct recording_process *process;

	snprintf(host, sizeof(host), "h%d", rank / 2);
	process = hand_process(hand, "j", rank, host);
	hand_comm(process, odd == NO_HASH ? 0 : 0x77, "world", rank, RANKS, RANKS / 2);
	for (int i = 1; i <= ROUNDS; i++) {
		int round = odd == OUT_OF_ORDER && rank == 3
				    ? (i - 1 + 10 - (i - 1) / 10 % 2 * 20) + 1
				    : i;

		if ((odd == SELDOM && rank == 2 && i % 2 == 0) ||
		    (odd == ALONE && rank != 0 && i % 10 == 0))
			continue;
		add_round(process, odd, rank, round);
		if (odd == TWICE && rank == 1 && i % 5 == 0)
			add_round(process, odd, rank, round)->gpu_stop_ns += 500000;
	}
	process->comms[0].counts.collectives = ROUNDS;
}

static void put_report(struct sink *to, const struct timeline_report *report)
{
	const struct matches *matches = &report->matches;

	sink_format(to,
		    "joined %" PRIu64 ", untimed %" PRIu64 ", unmatched %" PRIu64
		    ", repeated %" PRIu64 ", left out %" PRIu64 ", differing %" PRIu64 "\n",
		    matches->joined, matches->untimed, matches->unmatched, matches->repeated,
		    matches->left_out, matches->differing);
	sink_format(to,
		    "complete %" PRIu64 ", partial %" PRIu64 ", alone %" PRIu64
		    ", waited %.3f ms\n",
		    matches->complete, matches->partial, matches->alone,
		    (double)matches->wait_ns / 1e6);
	for (size_t r = 0; r < report->job.rank_count; r++) {
		const struct timeline_rank *rank = &report->ranks[r];

		sink_format(to,
			    "  rank %zu: %" PRIu64 " calls, joined %" PRIu64
			    " in %.3f ms, least %.3f, waited %.3f\n",
			    r, rank->calls, rank->joined, (double)rank->joined_ns / 1e6,
			    (double)rank->least_ns / 1e6, (double)rank->wait_ns / 1e6);
	}
	for (size_t i = 0; i < report->align.count; i++)
		sink_format(to, "%s%.3f", i ? ", " : "  clocks, us: ",
			    (double)report->align.processes[i].offset_ns / 1e3);
	for (size_t i = 0; i < report->align.count; i++)
		sink_format(to, "%s%.3f", i ? ", " : "; within ",
			    (double)report->align.processes[i].uncertainty_ns / 1e3);
	sink_text(to, "\n");
}

int main(void)
{
	struct sink sink;

	sink_init_memory(&sink);
	for (enum odd odd = NOTHING_ODD; odd < ODDS; odd++) {
		struct timeline_options options = TIMELINE_OPTIONS_INIT;
		static struct hand_made hand;
		struct timeline_report report;

		for (int rank = 0; rank < RANKS - (odd == MISSING_RANK); rank++)
			add_rank(&hand, odd, rank);
		if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
			abort();
		sink_format(&sink, "=== %s\n", names[odd]);
		put_report(&sink, &report);
		timeline_report_release(&report);
		hand_release(&hand);
	}
	EXPECT(expected_text(&sink, "tests/unit/analysis/expected/match-odd.txt"));
	return tap_done();
}
