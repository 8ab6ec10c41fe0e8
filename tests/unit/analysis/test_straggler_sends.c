/* Slow Sends, and what looks like them: four ranks on four hosts, each sends to each, synthetic. */
#include "analysis/straggler.h"

#include <stdlib.h>

#include "analysis/timeline_report.h"
#include "doctor/doctor.h"
#include "tests/support/hand_made.h"
#include "tests/tap.h"
#include "tests/unit/analysis/straggler_show.h"

enum { RANKS = 4, ROUNDS = 64, STEPS = 4, SENDER = 1, RECEIVER = 2 };
#define US UINT64_C(1000)
#define ROUND (10000 * US)
#define WALL UINT64_C(1700000000000000000)

static struct hand_made hand;
static struct timeline_report report;
static struct clock_anchor anchors[] = { { .clock_ns = 1, .wall_ns = WALL + 1 } };

/* Per transfer of one round: on the wire, and at the receiver until its GPU has it. */
typedef uint64_t (*time_of)(int from, int to, int round);

static uint64_t usual_wire(int from, int to, int round)
{
	(void)from;
	(void)to;
	(void)round;
	return 30 * US;
}

static uint64_t usual_consume(int from, int to, int round)
{
	return usual_wire(from, to, round) / 10;
}

static void add(struct recording_process *process, uint8_t function, int peer, int round,
		const uint64_t wait_ns[OP_WAITS])
{
	struct op_record *op = hand_op(process, 1, function, (uint64_t)round + 1, 2 << 20, 500 * US,
				       (uint64_t)(round + 1) * ROUND);

	op->peer = peer;
	op->send_steps = function == OP_SEND ? STEPS : 0;
	op->recv_steps = function == OP_RECV ? STEPS : 0;
	op->proxies_started = op->proxies_stopped = 1;
	for (int i = 0; i < OP_WAITS; i++)
		op->wait_ns[i] = wait_ns[i] * STEPS;
}

static void play_since(time_of wire, time_of consume, int first_round)
{
	struct timeline_options options = { 0 };
	struct filter filter = { 0 };
	char host[16];

	if (first_round > 0)
		filter.since = (struct filter_time){ FILTER_WALL,
						     WALL + (uint64_t)(first_round + 1) * ROUND };

	for (int rank = 0; rank < RANKS; rank++) {
		struct recording_process *process;

		snprintf(host, sizeof(host), "h%d", rank);
		process = hand_process(&hand, "j", rank, host);
		process->anchors = anchors;
		process->anchor_count = 1;
		hand_comm(process, 0x77, "experts", rank, RANKS, RANKS);
		for (int i = 0; i < ROUNDS * RANKS; i++) {
			int peer = i % RANKS, round = i / RANKS;
			uint64_t sends[OP_WAITS] = { [OP_WAIT_SEND_NET] = wire(rank, peer, round) };
			uint64_t receives[OP_WAITS] = { [OP_WAIT_RECV_GPU] =
								consume(peer, rank, round) };

			if (peer == rank)
				continue;
			add(process, OP_SEND, peer, round, sends);
			add(process, OP_RECV, peer, round, receives);
		}
	}
	if (timeline_report_make(&report, &hand.recording, &filter, &options) != OK) {
		printf("Bail out! no report\n");
		exit(1);
	}
}

static void play(time_of wire, time_of consume)
{
	play_since(wire, consume, 0);
}

static void over(void)
{
	for (size_t i = 0; i < hand.recording.count; i++)
		hand.list[i]->anchors = NULL;
	timeline_report_release(&report);
	hand_release(&hand);
}

static uint64_t slow_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) * (from == SENDER && to == RECEIVER ? 8 : 1);
}

/* What it receives waits for its GPU, which sends. */
static uint64_t slow_consume(int from, int to, int round)
{
	return usual_consume(from, to, round) * (to == SENDER ? 8 : 1);
}

static void test_slow_link(void)
{
	play(slow_wire, slow_consume);
	EXPECT_THAT(
		"a link on which all Sends are slow is reported, whatever the sender's GPU does",
		report.stragglers.count == 1 &&
			report.stragglers.list[0].class == STRAGGLER_SLOW_LINK &&
			report.stragglers.list[0].rank == SENDER &&
			report.stragglers.list[0].peer == RECEIVER &&
			report.stragglers.list[0].slow_share == 1);
	over();
}

/* Every fifth round a process gets no CPU for a while. */
static uint64_t stopped_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) * (from == SENDER && round % 5 == 0 ? 1000 : 1);
}

static uint64_t stopped_consume(int from, int to, int round)
{
	return usual_consume(from, to, round) * (to == SENDER && round % 5 == 0 ? 1000 : 1);
}

static void test_stopped_now_and_then(void)
{
	play(stopped_wire, stopped_consume);
	EXPECT_THAT("a process that stops occasionally, sending and receiving, is not a slow link",
		    report.stragglers.count == 1 &&
			    report.stragglers.list[0].class == STRAGGLER_SLOW_RANK &&
			    report.stragglers.list[0].rank == SENDER &&
			    report.stragglers.list[0].is_starved);
	over();
}

static uint64_t stalled_wire(int from, int to, int round)
{
	return to == RECEIVER ? stopped_wire(from, to, round) : usual_wire(from, to, round);
}

static void test_stalls(void)
{
	play(stalled_wire, usual_consume);
	EXPECT_THAT("a link on which some Sends stall is reported, with less confidence",
		    report.stragglers.count == 1 &&
			    report.stragglers.list[0].class == STRAGGLER_SLOW_LINK &&
			    report.stragglers.list[0].slow_share < 0.25 &&
			    report.stragglers.list[0].confidence < 0.8);
	over();
}

static uint64_t since_wire(int from, int to, int round)
{
	return round < ROUNDS * 3 / 4 ? usual_wire(from, to, round) : slow_wire(from, to, round);
}

static uint64_t since_consume(int from, int to, int round)
{
	return round < ROUNDS * 3 / 4 ? usual_consume(from, to, round)
				      : slow_consume(from, to, round);
}

static void test_slow_since(void)
{
	play(since_wire, since_consume);
	EXPECT_THAT("a link that has been slow since some time is not intermittent",
		    report.stragglers.count == 1 &&
			    report.stragglers.list[0].class == STRAGGLER_SLOW_LINK &&
			    report.stragglers.list[0].peer == RECEIVER &&
			    report.stragglers.list[0].confidence > 0.9);
	over();
}

/* The same in every second round from then on. */
static uint64_t often_since_wire(int from, int to, int round)
{
	return round % 2 ? usual_wire(from, to, round) : 4 * since_wire(from, to, round);
}

static void test_part_of_the_time(void)
{
	play_since(often_since_wire, usual_consume, ROUNDS * 3 / 4);
	EXPECT_THAT("only the selected time counts: half of the Sends, not an eighth",
		    report.stragglers.count == 1 &&
			    report.stragglers.list[0].class == STRAGGLER_SLOW_LINK &&
			    report.stragglers.list[0].slow_share == 0.5 &&
			    report.stragglers.list[0].confidence > 0.9);
	over();
}

/* Some Sends of all ranks stall, and those of one link slightly more. */
static uint64_t noisy_wire(int from, int to, int round)
{
	bool is_more = from == SENDER && to == RECEIVER && round % 8 == 0;

	return usual_wire(from, to, round) * (round % 16 == (from + to) % 16 ? is_more ? 1000 : 200
					      : is_more			     ? 1000
									     : 1);
}

static void test_noise(void)
{
	play(noisy_wire, usual_consume);
	EXPECT_THAT("if everything stalls occasionally, no link is named",
		    report.stragglers.count == 0);
	over();
}

static uint64_t slow_port_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) * (from == SENDER && to != 0 ? 8 : 1);
}

static void test_slow_port(void)
{
	struct slow_options options = { 0 };
	struct verdicts verdicts;

	play(slow_port_wire, usual_consume);
	verdicts_init(&verdicts);
	EXPECT_THAT("two links of one sender are one verdict, and waiting is not counted twice",
		    slow_find(&verdicts, &report, &options) == OK && verdicts.count == 1 &&
			    verdicts.list[0].class == VERDICT_SLOW_LINK &&
			    verdicts.list[0].peer == -1 && verdicts.list[0].victims == RANKS - 1);
	verdicts_release(&verdicts);
	over();
}

/* What it sends is slow, and what is sent to it. */
static uint64_t both_ways_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) * (from == SENDER && to == RECEIVER ? 6
					      : from == 0 && to == SENDER      ? 8
									       : 1);
}

static void test_both_ways(void)
{
	const struct straggler *rank;

	play(both_ways_wire, usual_consume);
	rank = report.stragglers.list;
	EXPECT_THAT("slow both ways is one rank, not two links",
		    report.stragglers.count == 1 && rank->class == STRAGGLER_SLOW_RANK &&
			    rank->rank == SENDER && rank->is_starved && rank->own_slowdown == 0);
	EXPECT_THAT("and not certain: its port may be slow both ways",
		    report.stragglers.count == 1 && rank->confidence <= 0.85 &&
			    rank->confidence > 0.5 && rank->peer == UINT32_MAX &&
			    rank->channel == -1 && rank->slowdown > 5 && rank->slowdown < 9);
	over();
}

/* ---- with noise, and every field of what is found ---------------------------------------------- */

/* Everything to one rank is slow, and it is slow in what it receives, or not. */
static uint64_t to_one_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) * (to == RECEIVER ? 7 : 1);
}

static uint64_t at_one_consume(int from, int to, int round)
{
	return usual_consume(from, to, round) * (to == RECEIVER ? 9 : 1);
}

/* Both directions of one pair, and two links that have nothing in common. */
static uint64_t pair_wire(int from, int to, int round)
{
	bool is_pair = (from == SENDER && to == RECEIVER) || (from == RECEIVER && to == SENDER);

	return usual_wire(from, to, round) * (is_pair ? 6 : 1);
}

static uint64_t apart_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) * (from == 0 && to == 3		 ? 5
					      : from == SENDER && to == RECEIVER ? 9
										 : 1);
}

/* In stretches of eight rounds, and in every third one: of one link, and of everything that one rank sends. */
static uint64_t stretches_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) *
	       (from == SENDER && to == RECEIVER && round / 8 % 2 ? 20 : 1);
}

static uint64_t thirds_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) * (from == SENDER && round % 3 == 0 ? 30 : 1);
}

static uint64_t a_bit_wire(int from, int to, int round)
{
	return usual_wire(from, to, round) * (from == SENDER && to == RECEIVER ? 19 : 10) / 10;
}

static time_of quiet_wire, quiet_consume;

static uint64_t noisy_send(int from, int to, int round)
{
	return noisy(quiet_wire(from, to, round), from * RANKS + to, round);
}

static uint64_t noisy_receive(int from, int to, int round)
{
	return noisy(quiet_consume(from, to, round), from * RANKS + to, ROUNDS + round);
}

static void test_noisy(void)
{
	static const struct {
		const char *name;
		time_of wire, consume;
		int first_round;
	} scenes[] = {
		{ "slow link", slow_wire, slow_consume, 0 },
		{ "stopped now and then", stopped_wire, stopped_consume, 0 },
		{ "stalls", stalled_wire, usual_consume, 0 },
		{ "slow since", since_wire, since_consume, 0 },
		{ "often since, in the end", often_since_wire, usual_consume, ROUNDS * 3 / 4 },
		{ "often since", often_since_wire, usual_consume, 0 },
		{ "slow port", slow_port_wire, usual_consume, 0 },
		{ "both ways", both_ways_wire, usual_consume, 0 },
		{ "to one", to_one_wire, usual_consume, 0 },
		{ "to one that is slow", to_one_wire, at_one_consume, 0 },
		{ "one that is slow for itself", usual_wire, at_one_consume, 0 },
		{ "a pair", pair_wire, usual_consume, 0 },
		{ "two links", apart_wire, usual_consume, 0 },
		{ "in stretches", stretches_wire, usual_consume, 0 },
		{ "in stretches, in the end", stretches_wire, usual_consume, ROUNDS / 2 },
		{ "in thirds", thirds_wire, usual_consume, 0 },
		{ "in thirds, with what it receives", thirds_wire, slow_consume, 0 },
		{ "a bit", a_bit_wire, usual_consume, 0 },
		{ "noise", noisy_wire, usual_consume, 0 },
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		quiet_wire = scenes[i].wire;
		quiet_consume = scenes[i].consume;
		play_since(noisy_send, noisy_receive, scenes[i].first_round);
		straggler_show(&sink, scenes[i].name, report.stragglers.list,
			       report.stragglers.count, report.windows.start_ns);
		over();
	}
	EXPECT(expected_text(&sink, "tests/unit/analysis/expected/straggler-sends.txt"));
}

int main(void)
{
	test_both_ways();
	test_slow_link();
	test_stopped_now_and_then();
	test_stalls();
	test_slow_since();
	test_part_of_the_time();
	test_noise();
	test_slow_port();
	test_noisy();
	return tap_done();
}
