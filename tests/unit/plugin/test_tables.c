/*
 * The tables that are searched from a hash on: of peers, links and totals. A search ends after 16
 * slots, goes around the end, reuses what was forgotten, and skips "other" at index 0.
 */
#include "common/hash.h"
#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

enum { TRIES = 16, PEER_MOST = 100000 };

/* Not a key of any communicator of the test. */
#define STRANGER(i) ((UINT64_C(0xfffff) << 40) + (i))

static uint32_t home_of(uint64_t key, uint32_t count)
{
	return (uint32_t)hash_word(key, key) & (count - 1);
}

/* A peer whose slots go around the end of the table, 3 of them before the end. */
static int peer_near_the_end(uint32_t comm, bool is_receive, uint64_t more, uint32_t count)
{
	for (int peer = 0; peer < PEER_MOST; peer++)
		if (home_of(REGION_LINK_KEY(comm, is_receive, peer) | more, count) == count - 3)
			return peer;
	return 0;
}

static uint64_t send_number(void *context, const char *function, int peer)
{
	void *api = play_p2p_api(context, NULL, function, 1);
	void *task = play_p2p(context, api, function, 1, peer);
	uint64_t number = live_find(handle_decode(recorder.salt, task))->op.match;

	play_stop(task);
	play_stop(api);
	return number;
}

static struct region_peer *peer_at(uint32_t home, uint32_t i)
{
	return &recorder.region.peers[(home + i) & (recorder.region.peer_count - 1)];
}

static void clear_peers(uint32_t home, uint32_t strangers)
{
	memset(recorder.region.peers, 0, recorder.region.peer_count * sizeof(struct region_peer));
	for (uint32_t i = 0; i < strangers; i++)
		*peer_at(home, i) = (struct region_peer){ STRANGER(i), 70 };
}

static void a_peer_is_found_in_16_slots(void)
{
	void *context = play_init(1, 2, PEER_MOST, 0);
	uint32_t comm = hot_comm(context)->shared->info.id, count = recorder.region.peer_count;
	int peer = peer_near_the_end(comm, false, 0, count);
	uint64_t key = REGION_LINK_KEY(comm, false, peer);
	uint32_t home = home_of(key, count);

	EXPECT_EQUAL(home, count - 3);
	for (uint32_t strangers = 0; strangers <= TRIES + 1; strangers++) {
		bool has_room = strangers < TRIES;

		clear_peers(home, strangers);
		EXPECT_EQUAL(send_number(context, "Send", peer), has_room ? 1 : 0);
		EXPECT_EQUAL(send_number(context, "Send", peer), has_room ? 2 : 0);
		EXPECT_EQUAL(peer_at(home, strangers)->key, has_room ? key : 0);
		EXPECT_EQUAL(peer_at(home, strangers)->count, has_room ? 2 : 0);
	}
	clear_peers(home, 6);
	peer_at(home, 2)->key = SLOT_FORGOTTEN;
	peer_at(home, 2)->count = 0;
	peer_at(home, 4)->key = SLOT_FORGOTTEN;
	EXPECT_EQUAL(send_number(context, "Send", peer), 1);
	EXPECT_THAT("the first that was forgotten is reused", peer_at(home, 2)->key == key);
	peer_at(home, 1)->key = SLOT_FORGOTTEN;
	EXPECT_THAT("a forgotten one before it is not", send_number(context, "Send", peer) == 2);
	clear_peers(home, 0);
	ncclProfiler_v5.finalize(context);
}

static void replays_and_receives_have_numbers_of_their_own(void)
{
	void *context = play_init(2, 2, 8, 0), *captured;
	struct abi_descr_v5 descr = { .type = ABI_P2P_API };
	uint64_t replayed = 0;

	for (uint64_t i = 1; i <= 3; i++) {
		EXPECT_EQUAL(send_number(context, "Send", 5), i);
		EXPECT_EQUAL(send_number(context, "Recv", 5), i);
		EXPECT_EQUAL(send_number(context, "Send", 0), i);
	}
	descr.p2p_api.function = "Send";
	descr.p2p_api.count = 1;
	descr.p2p_api.datatype = "ncclInt8";
	descr.p2p_api.is_captured = true;
	captured = play_start(context, descr);
	for (int i = 0; i < 2; i++) {
		void *task = play_p2p(context, captured, "Send", 1, 5);

		replayed = live_find(handle_decode(recorder.salt, task))->op.match;
		play_stop(task);
	}
	EXPECT_EQUAL(replayed, 2);
	EXPECT_EQUAL(send_number(context, "Send", 5), 4);
	ncclProfiler_v5.finalize(context);
}

static struct region_link *link_at(uint32_t home, uint32_t i)
{
	return &recorder.region.links[(home + i) & (recorder.region.link_count - 1)];
}

static void clear_links(uint32_t home, uint32_t strangers)
{
	memset(recorder.region.links, 0, recorder.region.link_count * sizeof(struct region_link));
	for (uint32_t i = 0; i < strangers; i++)
		if (link_at(home, i) != recorder.region.links)
			link_at(home, i)->key = STRANGER(i);
}

static void a_link_is_found_in_16_slots(void)
{
	void *context = play_init(3, 2, PEER_MOST, 0);
	struct play_op op = play_issue(context, "AllReduce", 1, "ncclInt8", 1);
	uint32_t comm = hot_comm(context)->shared->info.id, count = recorder.region.link_count;
	int peer = peer_near_the_end(comm, true, 0, count);
	uint64_t key = REGION_LINK_KEY(comm, true, peer);
	uint32_t home = home_of(key, count);
	struct region_link *other = recorder.region.links;

	EXPECT_EQUAL(home, count - 3);
	for (uint32_t strangers = 0; strangers <= TRIES + 1; strangers++) {
		/* "other" is the slot after three of these. */
		uint32_t place = strangers == 3 ? 4 : strangers;
		bool has_room = place < TRIES;

		clear_links(home, strangers);
		for (int i = 0; i < 2; i++)
			play_stop(play_proxy_start(context, op.task, getpid(), 0, peer, false));
		EXPECT_EQUAL(other->proxies, has_room ? 0 : 2);
		EXPECT_EQUAL(other->key, 0);
		EXPECT_EQUAL(link_at(home, place)->key, has_room ? key : 0);
		EXPECT_EQUAL(link_at(home, place)->proxies, has_room ? 2 : 0);
	}
	clear_links(home, 8);
	link_at(home, 5)->key = SLOT_FORGOTTEN;
	link_at(home, 6)->key = SLOT_FORGOTTEN;
	play_stop(play_proxy_start(context, op.task, getpid(), 0, peer, false));
	EXPECT_THAT("the first that was forgotten is reused", link_at(home, 5)->key == key);
	link_at(home, 1)->key = SLOT_FORGOTTEN;
	play_stop(play_proxy_start(context, op.task, getpid(), 0, peer, false));
	EXPECT_THAT("a forgotten one before it is not", link_at(home, 5)->proxies == 2);
	clear_links(home, 0);
	ncclProfiler_v5.finalize(context);
}

static struct region_total *total_at(uint32_t home, uint32_t i)
{
	return &recorder.region.totals[(home + i) & (recorder.region.total_count - 1)];
}

static void clear_totals(uint32_t home, uint32_t strangers)
{
	for (uint32_t i = 0; i < recorder.region.total_count; i++)
		recorder.region.totals[i].key = 0;
	for (uint32_t i = 0; i < strangers; i++)
		if (total_at(home, i) != recorder.region.totals)
			total_at(home, i)->key = STRANGER(i);
}

static void a_total_is_found_in_16_slots(void)
{
	uint32_t count = recorder.region.total_count, home;
	uint64_t key = TOTALS_KEY(9, 1, 1, 1, 1, 0);
	const uint64_t *used = &recorder.region.header->totals_used;
	uint64_t before;

	while (home_of(key, count) != count - 3)
		key += UINT64_C(1) << 40;
	home = home_of(key, count);
	for (uint32_t strangers = 0; strangers <= TRIES + 1; strangers++) {
		uint32_t place = strangers == 3 ? 4 : strangers;
		struct region_total *wanted = place < TRIES ? total_at(home, place) : NULL;

		clear_totals(home, strangers);
		before = *used;
		EXPECT(record_total_find(key) == wanted);
		EXPECT(record_total_find(key) == wanted);
		EXPECT_EQUAL(*used, before + (wanted != NULL));
		EXPECT_EQUAL(total_at(home, place)->key, wanted != NULL ? key : 0);
	}
	clear_totals(home, 8);
	total_at(home, 5)->key = SLOT_FORGOTTEN;
	total_at(home, 6)->key = SLOT_FORGOTTEN;
	EXPECT_THAT("the first that was forgotten is reused",
		    record_total_find(key) == total_at(home, 5));
	total_at(home, 1)->key = SLOT_FORGOTTEN;
	EXPECT_THAT("a forgotten one before it is not",
		    record_total_find(key) == total_at(home, 5));
	clear_totals(home, 0);
}

/* Waits count in the totals once a proxy operation has stopped. */
static void waits_are_added_to_the_totals(void)
{
	for (uint16_t stopped = 0; stopped <= 1; stopped++) {
		struct op_record op = { .comm = 77, .function = OP_ALL_REDUCE, .bytes = 8 };
		struct region_total *total;

		op.proxies_stopped = stopped;
		op.send_bytes = 100;
		op.recv_bytes = 200;
		for (uint64_t i = 0; i < OP_WAITS; i++)
			op.wait_ns[i] = 1000 + i;
		clear_totals(0, 0);
		total = record_total_find(TOTALS_KEY(77, OP_ALL_REDUCE, 0, 0, 0, 5));
		memset(&total->count, 0, sizeof(*total) - sizeof(total->key));
		record_push(NULL, &op);
		record_push(NULL, &op);
		EXPECT_EQUAL(total->count, 2);
		EXPECT_EQUAL(total->bytes, 16);
		EXPECT_EQUAL(total->send_bytes, stopped ? 200 : 0);
		EXPECT_EQUAL(total->recv_bytes, stopped ? 400 : 0);
		for (uint64_t i = 0; i < OP_WAITS; i++)
			EXPECT_EQUAL(total->wait_ns[i], stopped ? 2000 + 2 * i : 0);
		EXPECT_EQUAL(total->timed_bytes, 0);
	}
}

int main(void)
{
	play_setup("flight");
	a_peer_is_found_in_16_slots();
	replays_and_receives_have_numbers_of_their_own();
	a_link_is_found_in_16_slots();
	a_total_is_found_in_16_slots();
	waits_are_added_to_the_totals();
	return tap_done();
}
