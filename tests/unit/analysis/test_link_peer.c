#include "analysis/straggler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

/* Four ranks, each on its own node. Communicator 1 of each is examined. */
enum { RANKS = 4, MIB = 1 << 20, US = 1000 };

static struct hand_made hand;
static struct job job;

static void begin(void)
{
	char host[16];

	for (int rank = 0; rank < RANKS; rank++) {
		snprintf(host, sizeof(host), "node%d", rank);
		hand_comm(hand_process(&hand, "a", rank, host), 0x77, "world", rank, RANKS, RANKS);
	}
}

static void over(void)
{
	for (size_t i = 0; i < hand.recording.count; i++)
		free(hand.recording.processes[i]->links);
	job_release(&job);
	hand_release(&hand);
}

static void add(int rank, uint64_t key, uint64_t steps, uint64_t bytes, uint64_t wire_ns)
{
	struct recording_process *process = hand.recording.processes[rank];
	struct region_link *more =
		reallocarray(process->links, process->link_count + 2, sizeof(*process->links));

	if (more == NULL)
		abort();
	process->links = more;
	if (process->link_count == 0)
		more[process->link_count++] = (struct region_link){ .key = 0 };
	more[process->link_count++] = (struct region_link){ .key = key,
							    .proxies = 1,
							    .steps = steps,
							    .bytes = bytes,
							    .wait_ns = { 1, 2, wire_ns } };
}

/* `count` transfers of a MiB, each `ns` on the wire. */
static void sends(int from, int to, uint64_t steps, uint64_t us)
{
	add(from, REGION_LINK_KEY(1, false, to), steps, steps * MIB, steps * us * US);
}

static struct link_peer found_for(int rank)
{
	struct link_peer found = { .peer = 99 };

	if (job_make(&job, &hand.recording) != OK ||
	    link_peer_find(&found, &job, job.first_seat[rank]) != OK)
		abort();
	return found;
}

static void test_one_peer(void)
{
	struct link_peer found;

	begin();
	sends(0, 1, 100, 400);
	sends(1, 2, 100, 100);
	sends(2, 3, 100, 110);
	sends(3, 0, 100, 90);
	/* Another communicator's, and what it receives. */
	add(0, REGION_LINK_KEY(2, false, 3), 100, 100 * MIB, 900 * US);
	add(0, REGION_LINK_KEY(1, true, 2), 100, 100 * MIB, 900 * US);
	found = found_for(0);
	EXPECT_THAT("the only peer is named with certainty",
		    found.peer == 1 && found.peers == 1 && found.confidence == 1);
	EXPECT(found.transfers == 100 && found.bytes == 100 * MIB && found.ns_per_mib == 400 * US);
	EXPECT(found.slowdown == 4 && found.middle_ns_per_mib == 100 * US);
	EXPECT(link_peer_rank(&job, 0, 1) == 1 && link_peer_rank(&job, 0, 7) == UINT32_MAX);
	over();
}

static void all_to_all(uint64_t slow_us)
{
	begin();
	for (int from = 0; from < RANKS; from++)
		for (int to = 0; to < RANKS; to++)
			if (from != to)
				sends(from, to, 100,
				      from == 1 && to == 3 ? slow_us
							   : 100 + (uint64_t)(from + to) % 5);
}

static void test_several(void)
{
	struct link_peer found;

	all_to_all(400);
	found = found_for(1);
	EXPECT_THAT("of several the slow one",
		    found.peer == 3 && found.peers == 3 && found.peers_weighed == 3);
	EXPECT(found.confidence >= 0.9 && found.confidence < 1 && found.slowdown > 3.5);
	over();
	all_to_all(125);
	found = found_for(1);
	EXPECT_THAT("a slightly slower one is named with less confidence",
		    found.peer == 3 && found.confidence > 0.5 && found.confidence < 0.9);
	over();
	all_to_all(104);
	found = found_for(1);
	EXPECT_THAT("if none stands out none is named",
		    found.peer == -1 && found.confidence == 0 && found.peers == 3);
	over();
	begin();
	sends(1, 2, 100, 400);
	sends(1, 3, 100, 400);
	for (int rank = 0; rank < RANKS; rank++)
		if (rank != 1)
			sends(rank, 1, 100, 100);
	found = found_for(1);
	EXPECT_THAT("if all are equally slow none is named", found.peer == -1 && found.peers == 2);
	over();
}

/* A barrier's tree: four bytes each, and correspondingly short on the wire. */
static void test_tiny(void)
{
	struct link_peer found;

	begin();
	for (int rank = 0; rank < RANKS; rank++)
		sends(rank, (rank + 1) % RANKS, 100, rank == 2 ? 400 : 100);
	add(2, REGION_LINK_KEY(1, false, 0), 1000, 4000, 1000 * 30 * US);
	add(1, REGION_LINK_KEY(1, false, 0), 1000, 4000, 1000 * 30 * US);
	found = found_for(2);
	EXPECT_THAT("many tiny transfers decide nothing", found.peer == 3 && found.peers == 2 &&
								  found.peers_weighed == 1 &&
								  found.confidence > 0.95);
	over();
	/* Messages of 64 KiB, a twelfth of the bytes, have their own pace: by transfer. */
	begin();
	for (int rank = 0; rank < RANKS; rank++) {
		sends(rank, (rank + 1) % RANKS, 100, rank == 2 ? 300 : 100);
		add(rank, REGION_LINK_KEY(1, false, (rank + 2) % RANKS), 128, 8 * MIB,
		    128 * 25 * US);
	}
	found = found_for(2);
	EXPECT_THAT("small ones are slow by nature, on every rank",
		    found.peer == 3 && found.peers_weighed == 2);
	over();
}

static void test_nothing(void)
{
	struct link_peer found;

	begin();
	found = found_for(0);
	EXPECT_THAT("without links none is named",
		    found.peer == -1 && found.peers == 0 && found.confidence == 0);
	over();
	begin();
	add(0, REGION_LINK_KEY(1, false, 1), 0, 0, 0);
	found = found_for(0);
	EXPECT_THAT("a link that moved nothing is ignored", found.peer == -1 && found.peers == 0);
	over();
	begin();
	add(0, REGION_LINK_KEY(1, false, 1), UINT64_MAX, UINT64_MAX, UINT64_MAX);
	add(0, REGION_LINK_KEY(1, false, -1), 1, 1, UINT64_MAX);
	found = found_for(0);
	EXPECT_THAT("values of a damaged file are harmless", found.peers == 2);
	over();
}

int main(void)
{
	test_one_peer();
	test_several();
	test_tiny();
	test_nothing();
	return tap_done();
}
