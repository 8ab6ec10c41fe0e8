/*
 * A communicator's slot goes to another one: what it left in shared tables makes room, its totals
 * stay, and nothing of others is touched.
 */
#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

static struct comm_info *info_of(void *context)
{
	return &hot_comm(context)->shared->info;
}

/* Until the slot of the communicator that ended first has another owner. */
static void take_slot_of(const struct region_comm *slot)
{
	uint32_t id = slot->info.id, generation = REGION_GENERATION(slot->word);

	for (uint32_t i = 0; i <= recorder.region.comm_count && slot->info.id == id; i++)
		ncclProfiler_v5.finalize(play_init(1, 2, 2, 0));
	EXPECT(slot->info.id != id);
	EXPECT_EQUAL(REGION_GENERATION(slot->word), generation + 2);
}

static void peers_are_forgotten(void)
{
	void *context = play_init(2, 2, 2, 0);
	const struct region_comm *slot = hot_comm(context)->shared;
	struct region_peer *peers = recorder.region.peers;
	struct region_peer *behind = &peers[recorder.region.peer_count], saved = *behind;
	uint64_t key = REGION_LINK_KEY(info_of(context)->id, true, 7);

	memset(peers, 0, recorder.region.peer_count * sizeof(*peers));
	peers[0] = (struct region_peer){ key, 5 };
	peers[1] = (struct region_peer){ REGION_LINK_KEY(info_of(context)->id + 4000, true, 7), 6 };
	peers[recorder.region.peer_count - 1] = (struct region_peer){ key | UINT64_C(1) << 33, 7 };
	*behind = (struct region_peer){ key, 8 };
	ncclProfiler_v5.finalize(context);
	take_slot_of(slot);
	EXPECT(peers[0].key == SLOT_FORGOTTEN && peers[0].count == 0);
	EXPECT_EQUAL(peers[1].count, 6);
	EXPECT(peers[recorder.region.peer_count - 1].key == SLOT_FORGOTTEN);
	EXPECT_THAT("nothing behind the table", behind->key == key && behind->count == 8);
	*behind = saved;
	memset(peers, 0, recorder.region.peer_count * sizeof(*peers));
}

static struct region_link link_with(uint64_t key, uint64_t value)
{
	return (struct region_link){ .key = key,
				     .proxies = value,
				     .steps = value + 1,
				     .bytes = value + 2,
				     .wait_ns = { value + 3, value + 4, value + 5 },
				     .wire_ns = value + 6 };
}

static void links_are_added_to_other(void)
{
	void *context = play_init(3, 2, 2, 0);
	const struct region_comm *slot = hot_comm(context)->shared;
	uint32_t last = recorder.region.link_count - 1;
	struct region_link *links = recorder.region.links, *behind = &links[last + 1];
	struct region_link saved = *behind, sum;
	uint64_t key = REGION_LINK_KEY(info_of(context)->id, true, 7);
	uint64_t other = REGION_LINK_KEY(info_of(context)->id + 4000, true, 7);

	memset(links, 0, (last + 1) * sizeof(*links));
	links[0] = link_with(0, 1000);
	links[1] = link_with(key, 20);
	links[2] = link_with(other, 500);
	links[last] = link_with(key, 300);
	*behind = link_with(key, 7000);
	ncclProfiler_v5.finalize(context);
	take_slot_of(slot);
	sum = link_with(0, 1320);
	EXPECT_EQUAL(links[0].key, 0);
	EXPECT_EQUAL(links[0].proxies, sum.proxies);
	EXPECT_EQUAL(links[0].wait_ns[2], 1000 + 20 + 300 + 3 * 5);
	EXPECT_THAT("the time of one link is none of several", links[0].wire_ns == 1006);
	for (int i = 0; i < 2; i++) {
		const struct region_link *link = &links[i == 0 ? 1 : last];

		EXPECT(link->key == SLOT_FORGOTTEN && link->proxies == 0 && link->wire_ns == 0);
	}
	EXPECT_THAT("those of others stay",
		    links[2].key == other && links[2].proxies == 500 && links[2].wire_ns == 506);
	EXPECT_THAT("nothing behind the table", behind->key == key && behind->proxies == 7000);
	*behind = saved;
	memset(links, 0, (last + 1) * sizeof(*links));
}

static void totals_move_to_those_of_nobody(void)
{
	void *context = play_init(4, 2, 2, 0);
	const struct region_comm *slot = hot_comm(context)->shared;
	uint32_t id = info_of(context)->id, last = recorder.region.total_count - 1;
	struct region_total *totals = recorder.region.totals, *nobody;
	struct region_total *at = &totals[last - 1], *behind = &totals[last + 1];
	uint64_t key = TOTALS_KEY(id, OP_ALL_REDUCE, 1, 2, 3, 4), saved = behind->key;

	memset(totals, 0, (last + 1) * sizeof(*totals));
	nobody = record_total_find(TOTALS_KEY(0, OP_ALL_REDUCE, 1, 2, 3, 4));
	nobody->count = 5;
	nobody->max_ns = 90;
	at->key = key;
	at->count = 7;
	at->max_ns = 100;
	at->buckets[HISTOGRAM_BUCKETS - 1] = 3;
	totals[last].key = TOTALS_KEY(id + 4000, OP_ALL_REDUCE, 1, 2, 3, 4);
	totals[last].count = 11;
	/* Of none: a slot that was forgotten looks like one of communicator 0. */
	totals[1].key = SLOT_FORGOTTEN;
	totals[1].count = 13;
	behind->key = key;
	ncclProfiler_v5.finalize(context);
	take_slot_of(slot);
	EXPECT(at->key == SLOT_FORGOTTEN && at->count == 0 && at->max_ns == 0);
	EXPECT_EQUAL(nobody->count, 12);
	EXPECT_EQUAL(nobody->max_ns, 100);
	EXPECT_EQUAL(nobody->buckets[HISTOGRAM_BUCKETS - 1], 3);
	EXPECT(totals[last].key >> 40 == id + 4000 && totals[last].count == 11);
	EXPECT_EQUAL(totals[1].count, 13);
	EXPECT_THAT("nothing behind the table", behind->key == key);
	behind->key = saved;
	memset(totals, 0, (last + 1) * sizeof(*totals));
}

/* With no room for that, they are "other"; the longest time is not lost. */
static void totals_without_room_are_other(void)
{
	void *context = play_init(5, 2, 2, 0);
	const struct region_comm *slot = hot_comm(context)->shared;
	uint32_t id = info_of(context)->id, count = recorder.region.total_count;
	struct region_total *totals = recorder.region.totals;

	for (uint32_t i = 1; i < count; i++)
		totals[i].key = TOTALS_KEY(id + 4000, 1, 1, 1, 1, 1);
	totals[0].max_ns = 50;
	totals[5].key = TOTALS_KEY(id, OP_REDUCE, 1, 1, 1, 1);
	totals[5].count = 9;
	totals[5].max_ns = 40;
	ncclProfiler_v5.finalize(context);
	take_slot_of(slot);
	EXPECT_EQUAL(totals[0].key, 0);
	EXPECT_EQUAL(totals[0].count, 9);
	EXPECT_EQUAL(totals[0].max_ns, 50);
	memset(totals, 0, count * sizeof(*totals));
}

static void a_communicator_begins_clean(void)
{
	for (int nnodes = -1; nnodes <= 2; nnodes++) {
		void *context = play_init(6, nnodes, nnodes * 8, 0);
		const struct comm_state *comm = hot_comm(context);

		EXPECT_EQUAL(comm->expects_kernels, true);
		EXPECT_EQUAL(comm->expects_proxies, nnodes != 1);
		EXPECT_EQUAL(comm->live_hint, (comm - recorder.comms) * 16);
		EXPECT(comm->times == NULL && comm->timed_launch == 0);
		EXPECT_EQUAL(comm->shared->info.nnodes, nnodes < 0 ? 0 : nnodes);
		EXPECT_EQUAL(comm->shared->info.nranks, nnodes < 0 ? 0 : nnodes * 8);
		ncclProfiler_v5.finalize(context);
	}
	EXPECT_EQUAL(recorder.salt & 1, 1);
}

int main(void)
{
	play_setup("flight");
	play_init(0, 1, 2, 0);
	peers_are_forgotten();
	links_are_added_to_other();
	totals_move_to_those_of_nobody();
	totals_without_room_are_other();
	a_communicator_begins_clean();
	return tap_done();
}
