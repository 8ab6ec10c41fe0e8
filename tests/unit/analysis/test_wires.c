/* Links by their bytes and their time on the wire. */
#include "analysis/wires.h"

#include <math.h>
#include <stdlib.h>

#include "format/region_layout.h"
#include "tests/support/hand_made.h"
#include "tests/tap.h"

enum { RANKS = 4, LINKS = 3 };
#define MB UINT64_C(1000000)

static struct hand_made hand;
static struct region_link table[RANKS][LINKS];

/* Around a ring 4, 5, 6 GB/s and one unknown; a barrier's links, and what was received. */
static void play(void)
{
	static const uint64_t wire_ms[RANKS] = { 250, 200, 0, 1000000 };

	for (int rank = 0; rank < RANKS; rank++) {
		struct recording_process *process = hand_process(&hand, "j", rank, "a");
		uint32_t next = (uint32_t)(rank + 1) % RANKS;

		hand_comm(process, 0x70, "world", rank, RANKS, 2);
		table[rank][0] = (struct region_link){ .key = REGION_LINK_KEY(1, false, next),
						       .proxies = 1,
						       .steps = 10,
						       .bytes = 1000 * MB - (uint64_t)rank,
						       .wire_ns = wire_ms[rank] * MB };
		table[rank][1] = (struct region_link){ .key = REGION_LINK_KEY(1, true, next),
						       .proxies = 1,
						       .steps = 10,
						       .bytes = 5000 * MB };
		table[rank][2] =
			(struct region_link){ .key = REGION_LINK_KEY(1, false, (next + 1) % RANKS),
					      .proxies = 1,
					      .steps = 10,
					      .bytes = 1000,
					      .wire_ns = MB };
		process->links = table[rank];
		process->link_count = LINKS;
	}
	table[3][0].wire_ns = 500 * MB;
}

static void test_rates(void)
{
	static const struct filter everything;
	struct wires wires;
	struct job job;

	play();
	if (job_make(&job, &hand.recording) != OK || wires_make(&wires, &job, &everything) != OK)
		abort();
	EXPECT_THAT("every link that something was sent on", wires.count == 8);
	EXPECT_THAT("those with next to nothing, or without a time, are not compared",
		    wires.known == 3 && wires.list[3].is_main && !wires.list[4].is_main);
	EXPECT(fabs(wires.median - 4e9) < 1e3 && fabs(wires.most - 5e9) < 1e3 &&
	       fabs(wires.least - 2e9) < 1e3);
	EXPECT_EQUAL(job.ranks[job.seats[wires.list[wires.slowest].from].rank].rank, 3);
	EXPECT_EQUAL(job.ranks[job.seats[wires.list[wires.slowest].to].rank].rank, 0);
	EXPECT_THAT("an unknown time is no speed", wire_rate(&wires.list[2]) == 0);
	wires_release(&wires);

	table[0][0].wire_ns |= LINK_WIRE_PARTIAL;
	if (wires_make(&wires, &job, &everything) != OK)
		abort();
	EXPECT_THAT("nor is one that lacks transfers", wires.known == 2);
	wires_release(&wires);
	job_release(&job);
	hand_release(&hand);
}

static void test_filter(void)
{
	struct filter one = { .range_count = 1, .ranks = { { 3, 3 } } };
	struct filter late = { .since = { FILTER_FROM_START, 5 } };
	struct filter kind = { .function_count = 1, .functions = { "AllReduce" } };
	struct wires wires;
	struct job job;

	play();
	if (job_make(&job, &hand.recording) != OK || wires_make(&wires, &job, &one) != OK)
		abort();
	EXPECT_THAT("of a rank", wires.count == 2 && wires.known == 1);
	wires_release(&wires);
	if (wires_make(&wires, &job, &late) != OK)
		abort();
	EXPECT_THAT("sums have no part in time", wires.count == 0);
	if (wires_make(&wires, &job, &kind) != OK)
		abort();
	EXPECT_THAT("nor by operation", wires.count == 0);
	job_release(&job);
	hand_release(&hand);
}

int main(void)
{
	test_rates();
	test_filter();
	return tap_done();
}
