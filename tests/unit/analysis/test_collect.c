/* What is collected while operations are read: covered time, links, time slots, and parts of estimates. */
#include "analysis/collect.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

/* ---- covered time ---------------------------------------------------------------------------- */

/* The same, nanosecond by nanosecond. */
enum { SPAN = 400 };

static uint64_t covered(const bool *is_covered)
{
	uint64_t count = 0;

	for (int i = 0; i < SPAN; i++)
		count += is_covered[i];
	return count;
}

static void test_busy_against_the_plain_way(void)
{
	uint32_t random = 1, wrong = 0;

	for (int round = 0; round < 300; round++) {
		struct busy busy = BUSY_INIT;
		bool is_covered[SPAN] = { false };
		uint64_t first = UINT64_MAX, last = 0;

		for (int i = 0; i < 40; i++) {
			uint64_t start, end;

			random = random * 1664525 + 1013904223;
			start = random >> 16 & 0xff;
			end = start + 1 + (random >> 8 & 7);
			busy_add(&busy, start, end);
			for (uint64_t j = start; j < end; j++)
				is_covered[j] = true;
			first = start < first ? start : first;
			last = end > last ? end : last;
			wrong += busy_total_ns(&busy) != covered(is_covered) ||
				 busy.first_ns != first || busy_last_ns(&busy) != last;
			for (uint32_t p = 1; p < busy.count; p++)
				wrong += busy.pieces[p - 1].end_ns >= busy.pieces[p].start_ns;
		}
		wrong += busy.cut != 0;
	}
	EXPECT_EQUAL(wrong, 0);
}

/* Pieces [10 i, 10 i + 5): when the list is full, the oldest half is closed. */
static void test_busy_closes_the_oldest(void)
{
	struct busy busy = BUSY_INIT;

	for (uint64_t i = 1; i <= BUSY_PIECES; i++) {
		busy_add(&busy, 10 * i, 10 * i + 5);
		EXPECT_EQUAL(busy_total_ns(&busy), 5 * i);
	}
	busy_add(&busy, 10 * (BUSY_PIECES + 1), 10 * (BUSY_PIECES + 1) + 5);
	EXPECT_EQUAL(busy_total_ns(&busy), 5 * (BUSY_PIECES + 1));
	EXPECT_EQUAL(busy.count, BUSY_PIECES / 2 + 1);
	EXPECT_EQUAL(busy.floor_ns, 10 * (BUSY_PIECES / 2) + 5);
	EXPECT_EQUAL(busy_last_ns(&busy), 10 * (BUSY_PIECES + 1) + 5);
	busy_add(&busy, busy.floor_ns - 1, busy.floor_ns);
	EXPECT_THAT("what ends there counts as covered",
		    busy.cut == 1 && busy_total_ns(&busy) == 5 * (BUSY_PIECES + 1));
	busy_add(&busy, busy.floor_ns - 1, busy.floor_ns + 1);
	EXPECT_THAT("what goes on counts from there",
		    busy.cut == 2 && busy_total_ns(&busy) == 5 * (BUSY_PIECES + 1) + 1);
	busy_add(&busy, busy.floor_ns, busy.floor_ns + 2);
	EXPECT_THAT("what begins there was not cut",
		    busy.cut == 2 && busy_total_ns(&busy) == 5 * (BUSY_PIECES + 1) + 2);
	EXPECT_EQUAL(busy.first_ns, 10);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void test_links(void)
{
	enum { COMMS = 3, SEATS = 20, PEERS = 5 };
	struct links links = { .list = NULL };
	struct link *link;
	uint64_t wrong = 0;

	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t c = 0; c < COMMS; c++)
			for (uint32_t s = 0; s < SEATS; s++)
				for (int32_t p = -1; p < PEERS - 1; p++) {
					link = links_get(&links, c, s, p);
					if (link == NULL)
						abort();
					wrong += link->comm != c || link->from != s ||
						 link->to != p || link->sends != round;
					link_add(link, 2, 300, 4000);
				}
	EXPECT_EQUAL(wrong, 0);
	EXPECT_EQUAL(links.count, COMMS * SEATS * PEERS);
	EXPECT_EQUAL(links.left_out, 0);
	link = links_get(&links, 2, 19, 3);
	EXPECT(link == &links.list[links.count - 1] && link->sends == 2 && link->send_steps == 4 &&
	       link->send_net_ns == 600 && link->bytes == 8000);
	links_release(&links);
	EXPECT(links.list == NULL && links.table == NULL && links.room == 0);
}

/* The n-th Send takes n ns and n + 1 steps: parts keep their order and their sums. */
static void test_link_parts(void)
{
	static const struct {
		uint64_t sends, part_sends;
	} cases[] = {
		{ 1, 1 },
		{ LINK_PARTS, 1 },
		{ LINK_PARTS + 1, 2 },
		{ 2 * LINK_PARTS, 2 },
		{ 2 * LINK_PARTS + 1, 4 },
		{ 5 * LINK_PARTS, 8 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct link link = { .comm = 0 };
		float net_ns[LINK_PARTS] = { 0 }, steps[LINK_PARTS] = { 0 };

		for (uint64_t n = 0; n < cases[i].sends; n++) {
			link_add(&link, (uint32_t)n + 1, n, 10);
			net_ns[n / cases[i].part_sends] += (float)n;
			steps[n / cases[i].part_sends] += (float)n + 1;
		}
		EXPECT_EQUAL(link.part_sends, cases[i].part_sends);
		EXPECT(memcmp(link.part_net_ns, net_ns, sizeof(net_ns)) == 0 &&
		       memcmp(link.part_steps, steps, sizeof(steps)) == 0);
		EXPECT_EQUAL(link.send_net_ns, cases[i].sends * (cases[i].sends - 1) / 2);
		EXPECT_EQUAL(link.bytes, cases[i].sends * 10);
	}
}

/* ---- time slots ------------------------------------------------------------------------------ */

static void test_slots(void)
{
	static const uint64_t width = WINDOWS_LOCAL_FIRST_NS, origin = 1000;
	static const struct windows_stretch one = { 1, 10, 100, 1000 };
	static const struct {
		uint64_t at, width;
		uint32_t current, used;
	} cases[] = {
		{ 0, 1, 0, 1 }, { 1, 1, 1, 2 }, { 3, 1, 3, 4 },	 { 4, 2, 2, 3 },
		{ 7, 2, 3, 4 }, { 8, 4, 2, 3 }, { 16, 8, 2, 3 }, { 127, 32, 3, 4 },
	};
	struct windows_local local;
	uint32_t series;
	float calls = 0;

	windows_local_init(&local, 4);
	series = windows_local_series(&local, 77);
	EXPECT(series == 0 && windows_local_series(&local, 78) == 1 &&
	       windows_local_series(&local, 77) == 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		windows_local_move(&local, origin + cases[i].at * width);
		windows_local_add(&local, series, &one);
		EXPECT_EQUAL(local.origin_ns, origin);
		EXPECT_EQUAL(local.width_ns, cases[i].width * width);
		EXPECT_EQUAL(local.current, cases[i].current);
		EXPECT_EQUAL(local.used, cases[i].used);
		EXPECT_EQUAL(local.current_end_ns,
			     origin + (cases[i].current + 1) * cases[i].width * width);
		calls = 0;
		for (uint32_t j = 0; j < local.room; j++) {
			const struct windows_stretch *slot = &local.stretches[series][j];

			calls += slot->calls;
			EXPECT(slot->bytes == 10 * slot->calls &&
			       slot->time_ns == 100 * slot->calls &&
			       slot->bus_bytes == 1000 * slot->calls);
		}
		EXPECT_EQUAL(calls, i + 1);
	}
	EXPECT_THAT("seven in the first slot, the last one alone",
		    local.stretches[series][0].calls == 7 && local.stretches[series][3].calls == 1);
	windows_local_finish(&local);
	EXPECT_EQUAL(local.room, 4);
	windows_local_release(&local);
	windows_local_init(&local, 4);
	for (uint16_t i = 0; i < WINDOWS_LOCAL_SERIES; i++)
		EXPECT_EQUAL(windows_local_series(&local, (uint16_t)(i * 3)), i);
	EXPECT(windows_local_series(&local, 5000) == UINT32_MAX && local.left_out == 1);
	EXPECT_EQUAL(windows_local_series(&local, 3), 1);
	windows_local_finish(&local);
	EXPECT_EQUAL(local.room, 0);
	windows_local_release(&local);
}

/* ---- parts of estimates ---------------------------------------------------------------------- */

static struct estimate_part part_of(uint32_t seat, uint32_t names, uint8_t size, uint64_t tag)
{
	return (struct estimate_part){ .seat = seat,
				       .names = names,
				       .size_class = size,
				       .tag = tag,
				       .timed = 1,
				       .sum_ns = 10,
				       .untimed = 2,
				       .joined_ns = 3,
				       .least_ns = 4 };
}

static void test_parts(void)
{
	enum { TIMES = 3000 };
	struct estimate estimate = { .parts = NULL };
	struct estimate_part like, *found;
	struct estimate_kind kind;

	/* Two kinds, one of them with two tags, in no order, and more often than there is room. */
	for (int i = 0; i < TIMES; i++) {
		struct estimate_part parts[] = { part_of(1, 5, 2, 9), part_of(1, 5, 1, 0),
						 part_of(1, 5, 2, 8) };

		for (int j = 0; j < 3; j++)
			if (estimate_add(&estimate, &parts[j]) != OK)
				abort();
	}
	estimate_end_process(&estimate);
	EXPECT_EQUAL(estimate.count, 3);
	/* All of the next one were timed: nothing to estimate. */
	like = part_of(2, 5, 2, 0);
	like.untimed = 0;
	estimate_add(&estimate, &like);
	estimate_end_process(&estimate);
	EXPECT_EQUAL(estimate.count, 3);
	like = part_of(3, 4, 0, 0);
	estimate_add(&estimate, &like);
	estimate_end_process(&estimate);
	EXPECT_EQUAL(estimate.count, 4);

	like = part_of(1, 5, 2, 77);
	found = estimate_find(&estimate, &like);
	EXPECT(found == &estimate.parts[1] && found->tag == 8 && found->timed == TIMES);
	kind = estimate_kind(&estimate, 1);
	EXPECT(kind.first == 1 && kind.next == 3);
	EXPECT(kind.timed == 2 * TIMES && kind.sum_ns == 20 * TIMES && kind.untimed == 4 * TIMES &&
	       kind.joined_ns == 6 * TIMES && kind.least_ns == 8 * TIMES);
	like = part_of(1, 5, 1, 0);
	EXPECT(estimate_find(&estimate, &like) == &estimate.parts[0]);
	like = part_of(3, 4, 0, 0);
	EXPECT(estimate_find(&estimate, &like) == &estimate.parts[3]);
	kind = estimate_kind(&estimate, 3);
	EXPECT(kind.next == 4 && kind.timed == 1);
	like = part_of(2, 5, 2, 0);
	EXPECT(estimate_find(&estimate, &like) == NULL);
	like = part_of(1, 4, 2, 0);
	EXPECT(estimate_find(&estimate, &like) == NULL);
	like = part_of(9, 0, 0, 0);
	EXPECT(estimate_find(&estimate, &like) == NULL);
	estimate_release(&estimate);
}

int main(void)
{
	test_busy_against_the_plain_way();
	test_busy_closes_the_oldest();
	test_links();
	test_link_parts();
	test_slots();
	test_parts();
	return tap_done();
}
