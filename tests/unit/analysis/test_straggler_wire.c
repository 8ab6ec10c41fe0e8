/* Slow links, and what looks like one. */
#include "analysis/straggler.h"

#include <math.h>

#include "tests/support/hand_ring.h"
#include "tests/tap.h"
#include "tests/unit/analysis/straggler_show.h"

static struct hand_ring ring;

static const struct straggler *found(enum straggler_class class, uint32_t rank)
{
	for (size_t i = 0; i < ring.report.stragglers.count; i++)
		if (ring.report.stragglers.list[i].class == class &&
		    ring.report.stragglers.list[i].rank == rank)
			return &ring.report.stragglers.list[i];
	return NULL;
}

/* ---- nobody's link -------------------------------------------------------------------------------- */

/* As recorded on a GPU: transfers wait for the GPU that comes late, and then queue behind each other. */
static struct part late_gpu(int rank, int match)
{
	struct part part = calm();

	(void)match;
	part.is_untimed = true;
	part.duration_ns = 50 * MS;
	part.wire_ns = (rank == SENDER ? 500 : 100) * US;
	part.consume_ns = (rank == SENDER ? 5080 : 80) * US;
	return part;
}

/* Transfers are 400 us longer on the wire, and as many wait for their GPU, each 800 us longer. */
static struct part queued(int rank, int match)
{
	struct part part = late_gpu(rank, match);

	part.consume_ns = (rank == SENDER ? 880 : 80) * US;
	return part;
}

static void test_late_gpu(void)
{
	const struct straggler *late;

	hand_ring_play(&ring, late_gpu);
	EXPECT_THAT("a rank whose GPU comes late and sends everything at once has no slow link",
		    found(STRAGGLER_SLOW_LINK, SENDER) == NULL);
	late = found(STRAGGLER_SLOW_RANK, SENDER);
	EXPECT_THAT(
		"without GPU times it is late by what its data waits: 48 transfers, 16 at a time",
		ring.report.stragglers.count == 1 && late != NULL && late->is_by_network &&
			late->late_ns == 15 * MS && late->last_in == 0);
	EXPECT_THAT("three others wait for it, beyond what data of any rank waits",
		    late != NULL &&
			    late->caused_ns == (uint64_t)3 * 48 * 5000 * US / 16 * MEETINGS);
	hand_ring_over(&ring);
	hand_ring_play(&ring, queued);
	EXPECT_THAT("one that is held up by its sends, no longer than twice their time, has one",
		    found(STRAGGLER_SLOW_LINK, SENDER) != NULL);
	hand_ring_over(&ring);
}

/*
 * As recorded on a GPU: for a while, transfers queue up at one rank, because it is a little behind the others. Unless that
 * makes collectives slower, it holds up nobody.
 */
static uint64_t queued_duration_ns;

static bool is_queue(int match)
{
	return match >= MEETINGS / 4 && match < MEETINGS / 2;
}

static struct part queue_of_sends(int rank, int match)
{
	struct part part = calm();

	part.duration_ns = is_queue(match) ? queued_duration_ns : 50 * MS;
	part.wire_ns = (rank == SENDER && is_queue(match) ? 2000 : 100) * US;
	return part;
}

static struct part queue_at_gpu(int rank, int match)
{
	struct part part = calm();

	part.is_untimed = true;
	part.duration_ns = is_queue(match) ? queued_duration_ns : 50 * MS;
	part.wire_ns = 100 * US;
	part.consume_ns = (rank == SENDER && is_queue(match) ? 5080 : 80) * US;
	return part;
}

static void expect_queue(struct part (*play)(int rank, int match), enum straggler_class class,
			 const char *what)
{
	const struct straggler *one;

	queued_duration_ns = 51 * MS;
	hand_ring_play(&ring, play);
	EXPECT_THAT(what, ring.report.stragglers.count == 0);
	hand_ring_over(&ring);
	queued_duration_ns = 60 * MS;
	hand_ring_play(&ring, play);
	one = found(class, SENDER);
	EXPECT_THAT("if collectives are slower meanwhile, it is reported",
		    ring.report.stragglers.count == 1 && one != NULL &&
			    one->pattern == STRAGGLER_BURSTS);
	EXPECT_THAT("with what they are longer by",
		    one != NULL && fabs((double)one->caused_ns - 10. * MS * RANKS * MEETINGS / 4) <
					   1. * MS * RANKS * MEETINGS / 4);
	hand_ring_over(&ring);
}

static void test_queues(void)
{
	expect_queue(queue_of_sends, STRAGGLER_SLOW_LINK,
		     "a link on which transfers queue up for a while is not slow");
	expect_queue(queue_at_gpu, STRAGGLER_SLOW_RANK,
		     "a rank at whose GPU data queues up for a while is not late");
}

/* ---- it is the link ---------------------------------------------------------------------------- */

static struct part slow_link(int rank, int match)
{
	struct part part = calm();

	(void)match;
	part.duration_ns = 80 * MS;
	part.wire_ns *= rank == SENDER ? 47 : 1;
	/* The sender's GPU cannot forward what it receives. */
	part.consume_ns *= rank == SENDER ? 30 : 1;
	return part;
}

/* Before its GPU came, transfers had waited three times as long as they are on the wire then. */
static struct part posted_early(int rank, int match)
{
	struct part part = slow_link(rank, match);

	part.is_untimed = true;
	part.send_gpu_ns = 3 * part.wire_ns;
	return part;
}

static void test_cost_without_gpu_times(void)
{
	const struct straggler *link;
	double all;

	hand_ring_play(&ring, slow_link);
	link = found(STRAGGLER_SLOW_LINK, SENDER);
	all = link != NULL ? link->cost_share : 0;
	hand_ring_over(&ring);
	hand_ring_play(&ring, posted_early);
	link = found(STRAGGLER_SLOW_LINK, SENDER);
	EXPECT_THAT("of the time since posting, only that on the wire is lost",
		    all > 0 && link != NULL && fabs(link->cost_share - all / 4) < all / 1000);
	hand_ring_over(&ring);
}

static void test_slow_link(void)
{
	const struct straggler *link;

	hand_ring_play(&ring, slow_link);
	link = found(STRAGGLER_SLOW_LINK, SENDER);
	EXPECT_THAT("a slow link is reported", ring.report.stragglers.count == 1 && link != NULL);
	EXPECT_THAT("with both ends", link != NULL && link->peer == RECEIVER);
	EXPECT_THAT("in everything sent over it, which is certain",
		    link != NULL && link->slow_share == 1 && link->confidence > 0.99);
	hand_ring_over(&ring);
}

/* One block of eight without any time on the wire: no section of eight is without one. */
static struct part with_pauses(int rank, int match)
{
	struct part part = slow_link(rank, match);
	bool is_pause = match / MATCH_CHUNK % 8 == 3;

	if (rank == SENDER)
		part.wire_ns = is_pause ? 0 : 40 * MS;
	part.duration_ns = (is_pause ? 40 : 80) * MS;
	return part;
}

static void test_nothing_on_the_wire(void)
{
	hand_ring_play(&ring, with_pauses);
	EXPECT_THAT("a slow link is reported even if it has nothing on the wire occasionally",
		    found(STRAGGLER_SLOW_LINK, SENDER) != NULL &&
			    ring.report.stragglers.count == 1);
	hand_ring_over(&ring);
}

/* Every third collective has little on the wire by nature, and the others vary. */
static struct part two_kinds(int rank, int match)
{
	struct part part = slow_link(rank, match);

	part.duration_ns = 5 * MS;
	part.consume_ns = calm().consume_ns;
	part.wire_ns = (rank == SENDER ? 160 : match % 2 ? 18 : 28) * US;
	if (match % 3 == 2)
		part.wire_ns = (rank == SENDER ? 8 : 4) * US;
	return part;
}

static void test_two_kinds(void)
{
	const struct straggler *link;

	hand_ring_play(&ring, two_kinds);
	link = found(STRAGGLER_SLOW_LINK, SENDER);
	EXPECT_THAT("a slow link is certain even if collectives of one kind hardly show it",
		    link != NULL && link->confidence > 0.95);
	hand_ring_over(&ring);
}

static struct part bursts(int rank, int match)
{
	struct part part = calm();

	part.wire_ns *= rank == SENDER && match % 4 == 0 ? 100 : 1;
	return part;
}

static void test_bursts(void)
{
	const struct straggler *link;

	hand_ring_play(&ring, bursts);
	link = found(STRAGGLER_SLOW_LINK, SENDER);
	EXPECT_THAT("a link on which some sends stall is reported, with less confidence",
		    link != NULL && link->slow_share > 0.2 && link->slow_share < 0.3 &&
			    link->confidence < 0.8);
	hand_ring_over(&ring);
}

/* Replays count separately from calls, with the same numbers. */
static struct part slow_replays(int rank, int match)
{
	struct part part = match % 4 ? calm() : slow_link(rank, match);

	part.is_replay = match % 4 == 0;
	return part;
}

static void test_slow_replays(void)
{
	const struct straggler *link;

	hand_ring_play(&ring, slow_replays);
	link = found(STRAGGLER_SLOW_LINK, SENDER);
	EXPECT_THAT("a link that is slow in all replays is certain, whatever calls do",
		    link != NULL && link->slow_share == 1 && link->confidence > 0.95);
	hand_ring_over(&ring);
}

/* ---- it is a process --------------------------------------------------------------------------- */

static struct part starved_sender(int rank, int match)
{
	struct part part = calm();

	(void)match;
	part.wire_ns *= rank == SENDER ? 4 : 1;
	part.flush_ns *= rank == SENDER ? 8 : 1;
	return part;
}

static void test_starved_sender(void)
{
	const struct straggler *rank;

	hand_ring_play(&ring, starved_sender);
	rank = found(STRAGGLER_SLOW_RANK, SENDER);
	EXPECT_THAT("a sender whose flushes are also late is short of CPU: no slow link",
		    ring.report.stragglers.count == 1 && rank != NULL && rank->is_starved);
	EXPECT_THAT("both slowdowns are given",
		    rank != NULL && rank->slowdown > 3.9 && rank->own_slowdown > 7.9);
	EXPECT_THAT("it does not arrive late", rank != NULL && rank->late_ns == 0);
	hand_ring_over(&ring);
}

static struct part starved_receiver(int rank, int match)
{
	struct part part = calm();

	(void)match;
	part.wire_ns *= rank == SENDER ? 4 : 1;
	part.flush_ns *= rank == RECEIVER ? 8 : 1;
	return part;
}

static void test_starved_receiver(void)
{
	const struct straggler *rank;

	hand_ring_play(&ring, starved_receiver);
	rank = found(STRAGGLER_SLOW_RANK, RECEIVER);
	EXPECT_THAT("a receiver that is short of CPU reads late: it is named, not the link",
		    ring.report.stragglers.count == 1 && rank != NULL && rank->is_starved);
	hand_ring_over(&ring);
}

static struct part stopped_now_and_then(int rank, int match)
{
	struct part part = bursts(rank, match);

	part.consume_ns *= rank == SENDER && match % 4 == 0 ? 100 : 1;
	return part;
}

static void test_stopped_now_and_then(void)
{
	hand_ring_play(&ring, stopped_now_and_then);
	EXPECT_THAT("a process that stops occasionally, in everything it does: no slow link",
		    ring.report.stragglers.count == 1 &&
			    found(STRAGGLER_SLOW_RANK, SENDER) != NULL);
	hand_ring_over(&ring);
}

/* ---- it is lateness ---------------------------------------------------------------------------- */

enum { LATE_MS = 20 };

/* What was sent to a missing rank fills a window of each connection, and waits. */
static struct part late_receiver(int rank, int match)
{
	struct part part = calm();

	(void)match;
	if (rank != RECEIVER)
		part.duration_ns += LATE_MS * MS;
	if (rank == SENDER)
		part.wire_ns += LATE_MS * MS * WINDOW * CONNECTIONS / STEPS;
	return part;
}

static void test_late_receiver(void)
{
	const struct straggler *rank;

	hand_ring_play(&ring, late_receiver);
	rank = found(STRAGGLER_SLOW_RANK, RECEIVER);
	EXPECT_THAT("what waits for a straggler is not a slow link",
		    ring.report.stragglers.count == 1 && rank != NULL &&
			    rank->late_ns >= LATE_MS * MS);
	hand_ring_over(&ring);
}

static struct part late_and_slow(int rank, int match)
{
	struct part part = late_receiver(rank, match);

	part.wire_ns += rank == SENDER ? 5 * MS : 0;
	return part;
}

static void test_late_and_slow(void)
{
	hand_ring_play(&ring, late_and_slow);
	EXPECT_THAT("more than can wait for it: both are reported",
		    ring.report.stragglers.count == 2 &&
			    found(STRAGGLER_SLOW_RANK, RECEIVER) != NULL &&
			    found(STRAGGLER_SLOW_LINK, SENDER) != NULL);
	hand_ring_over(&ring);
}

/* ---- with noise, and every field of what is found ---------------------------------------------- */

static part_of quiet_part;

static struct part noisy_part(int rank, int match)
{
	struct part part = quiet_part(rank, match);

	part.wire_ns = noisy(part.wire_ns, rank, match);
	part.flush_ns = noisy(part.flush_ns, rank, match);
	part.consume_ns = noisy(part.consume_ns, rank, match);
	part.duration_ns += noisy(1 * MS, rank, match);
	part.send_gpu_ns = noisy(part.send_gpu_ns, rank, match);
	return part;
}

/* Only in the last quarter. */
static struct part slow_since(int rank, int match)
{
	return match < 3 * MEETINGS / 4 ? calm() : slow_link(rank, match);
}

/* In the second half all ranks take twice as long: on the wire, or only inside of their hosts. */
static struct part slower_network(int rank, int match)
{
	struct part part = calm();
	uint64_t times = match < MEETINGS / 2 ? 1 : 2;

	(void)rank;
	part.duration_ns *= times;
	part.wire_ns *= times;
	return part;
}

static struct part slower_hosts(int rank, int match)
{
	struct part part = slower_network(rank, match);

	part.wire_ns = calm().wire_ns;
	return part;
}

/* Small messages between large ones, on which nothing is slow; and large ones only in the second half. */
static struct part two_sizes(int rank, int match)
{
	struct part part = match % 3 == 0 ? calm() : slow_link(rank, match);

	part.bytes = match % 3 == 0 ? 4096 : 32 << 20;
	return part;
}

static struct part large_later(int rank, int match)
{
	struct part part = slow_link(rank, match);

	part.bytes = match < MEETINGS / 2 ? 4096 : 32 << 20;
	return part;
}

static void test_noisy(void)
{
	static const struct {
		const char *name;
		part_of of;
	} scenes[] = {
		{ "late GPU", late_gpu },
		{ "slow link", slow_link },
		{ "slow since", slow_since },
		{ "posted early", posted_early },
		{ "with pauses", with_pauses },
		{ "two kinds", two_kinds },
		{ "bursts", bursts },
		{ "slow replays", slow_replays },
		{ "starved sender", starved_sender },
		{ "starved receiver", starved_receiver },
		{ "stopped now and then", stopped_now_and_then },
		{ "late receiver", late_receiver },
		{ "late and slow", late_and_slow },
		{ "slower network", slower_network },
		{ "slower hosts", slower_hosts },
		{ "two sizes", two_sizes },
		{ "large ones later", large_later },
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		quiet_part = scenes[i].of;
		hand_ring_play(&ring, noisy_part);
		straggler_show(&sink, scenes[i].name, ring.report.stragglers.list,
			       ring.report.stragglers.count, ring.report.windows.start_ns);
		hand_ring_over(&ring);
	}
	EXPECT(expected_text(&sink, "tests/unit/analysis/expected/straggler-ring.txt"));
}

int main(void)
{
	test_late_gpu();
	test_queues();
	test_slow_link();
	test_cost_without_gpu_times();
	test_nothing_on_the_wire();
	test_two_kinds();
	test_bursts();
	test_slow_replays();
	test_starved_sender();
	test_starved_receiver();
	test_stopped_now_and_then();
	test_late_receiver();
	test_late_and_slow();
	test_noisy();
	return tap_done();
}
