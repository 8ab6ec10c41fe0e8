/*
 * Several threads on one communicator. In NCCL these can be proxy threads of other ranks of the
 * same process (PXN sends through another GPU's network card) and, briefly, two threads that both
 * call a new peer for the first time.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

enum { ROUNDS = TAP_IS_SLOW ? 200 : 1000, PROXIES = 24, STEP_BYTES = 1000 };

static struct {
	void *context, *task, *group;
	uint32_t arrived; /* at the start of each round; 3: the main thread, too */
	uint32_t left;
} play;

/* All three begin a round at once. */
static void meet(uint32_t *count, uint32_t wanted)
{
	add_release(count, 1);
	while (load_acquire(count) < wanted)
		sched_yield();
}

static void play_proxy(uint8_t channel, bool is_send)
{
	void *proxy = play_proxy_start(play.context, play.task, getpid(), channel, 1, is_send);
	void *step = play_step_start(play.context, proxy, 0);

	play_state(step, is_send ? ABI_STEP_SEND_GPU_WAIT : ABI_STEP_RECV_WAIT, 0);
	play_state(step, is_send ? ABI_STEP_SEND_WAIT : ABI_STEP_RECV_FLUSH_WAIT, STEP_BYTES);
	play_stop(step);
	play_stop(proxy);
}

static void *be_proxy_thread(void *unused)
{
	(void)unused;
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		meet(&play.arrived, round * 3);
		for (int i = 0; i < PROXIES; i++)
			play_proxy((uint8_t)i, i % 2 == 0);
		meet(&play.left, round * 3);
	}
	return NULL;
}

static void two_proxy_threads_share_an_operation(void)
{
	uint64_t wrong_counts = 0, wrong_bytes = 0, wrong_states = 0;
	pthread_t threads[2];
	const struct region_comm *comm;

	play.context = play_init(1, 2, 4, 0);
	comm = hot_comm(play.context)->shared;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, be_proxy_thread, NULL) != 0)
			exit(1);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		play.task = play_issue(play.context, "AllReduce", 8, "ncclFloat32", 8).task;
		meet(&play.arrived, round * 3);
		meet(&play.left, round * 3);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ncclProfiler_v5.finalize(play.context);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		const struct op_record *op = play_record(i);

		wrong_counts += op->proxies_started != 2 * PROXIES ||
				op->proxies_stopped != 2 * PROXIES || op->send_steps != PROXIES ||
				op->recv_steps != PROXIES;
		wrong_bytes += op->send_bytes != PROXIES * STEP_BYTES ||
			       op->recv_bytes != PROXIES * STEP_BYTES;
		wrong_states += op->state != OP_DONE;
	}
	EXPECT_EQUAL(comm->counts.recorded, ROUNDS);
	EXPECT_EQUAL(wrong_counts, 0);
	EXPECT_EQUAL(wrong_bytes, 0);
	EXPECT_EQUAL(wrong_states, 0);
	EXPECT_EQUAL(recorder.region.header->odd[ODD_STALE_HANDLE], 0);
	EXPECT_EQUAL(recorder.region.header->lost[LOST_LATE_CHILD], 0);
}

static uint64_t count_links(void)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < recorder.region.link_count; i++)
		bytes += recorder.region.links[i].bytes;
	return bytes;
}

static void proxy_slots_all_come_back(void)
{
	unsigned int used = 0, claimed = 0;

	for (uint32_t i = 0; i < recorder.region.proxy_count; i++) {
		used += (unsigned int)region_slot_is_used(recorder.region.proxies[i].word);
		claimed += recorder.region.proxies[i].word & 1;
	}
	EXPECT_EQUAL(used, 0);
	EXPECT_EQUAL(claimed, 0);
	EXPECT_EQUAL(count_links(), (uint64_t)ROUNDS * PROXIES * 2 * STEP_BYTES);
}

/* ---- peers ------------------------------------------------------------------------------------ */

static void *call_new_peers(void *unused)
{
	(void)unused;
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		void *api = play_p2p_api(play.context, play.group, "Send", 4);

		meet(&play.arrived, round * 2);
		play_stop(play_p2p(play.context, api, "Send", 4, (int)round));
	}
	return NULL;
}

/* The count of sends to a peer matches both ends: none may be missing. */
static void two_threads_meet_at_a_new_peer(void)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	uint64_t sends = 0, wrong = 0;
	pthread_t threads[2];
	uint32_t id;

	play.context = play_init(2, 1, ROUNDS + 1, 0);
	id = hot_comm(play.context)->shared->info.id;
	play.group = play_start(play.context, group);
	store_relaxed(&play.arrived, 0);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, call_new_peers, NULL) != 0)
			exit(1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < recorder.region.peer_count; i++)
		if (recorder.region.peers[i].key >> 34 == id) {
			sends += recorder.region.peers[i].count;
			wrong += recorder.region.peers[i].count != 2;
		}
	EXPECT_EQUAL(sends, 2 * ROUNDS);
	EXPECT_EQUAL(wrong, 0);
}

int main(void)
{
	play_setup("flight");
	two_proxy_threads_share_an_operation();
	proxy_slots_all_come_back();
	two_threads_meet_at_a_new_peer();
	return tap_done();
}
