/* Proxy operations and their transfers: the table's bounds, and the time of each state. */
#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

enum { PROXY_TRIES = 256, STATES = 32 };

static const struct call all_reduce = { .function = OP_ALL_REDUCE,
					.datatype = OP_INT8,
					.root = OP_NOBODY,
					.peer = OP_NOBODY,
					.count = 1 };

static uint64_t *words;
static uint8_t *flags;

static uint32_t mask(void)
{
	return recorder.region.proxy_count - 1;
}

static struct handle handle_from(const void *opaque)
{
	return handle_decode(recorder.salt, opaque);
}

static struct region_proxy *proxy_from(const void *opaque)
{
	return &recorder.region.proxies[handle_slot(handle_from(opaque))];
}

static struct region_live *live_from(const void *opaque)
{
	return live_find(handle_from(opaque));
}

static void *issue(void *context)
{
	return hot_task(context, hot_api_call(context, NULL, &all_reduce), &all_reduce);
}

static void *start(void *context, void *task, bool is_send)
{
	return play_proxy_start(context, task, getpid(), 0, 1, is_send);
}

/* All slots but one are in use and in progress. */
static void take_all_but(uint32_t slot)
{
	for (uint32_t i = 0; i <= mask(); i++) {
		words[i] = recorder.region.proxies[i].word;
		flags[i] = recorder.region.proxies[i].flags;
		if (i == slot)
			continue;
		recorder.region.proxies[i].word = UINT64_C(1) << 32;
		recorder.region.proxies[i].flags = PROXY_IN_PROGRESS;
	}
}

static void give_all_but(uint32_t slot)
{
	for (uint32_t i = 0; i <= mask(); i++)
		if (i != slot) {
			recorder.region.proxies[i].word = words[i];
			recorder.region.proxies[i].flags = flags[i];
		}
}

/* Let the cursor arrive at this slot at the n-th try, from 0. */
static void aim_at(uint32_t slot, uint32_t nth)
{
	uint32_t cursor = slot;

	if (nth >= HINT_TRIES)
		for (cursor = 0; (cursor * SCATTER & mask()) != slot;)
			cursor++;
	recorder.region.header->proxy_cursor = cursor + recorder.region.proxy_count - nth;
}

/* Does a new proxy operation get this slot, the only one it could get? */
static bool is_taken(void *context, void *task, uint32_t wanted, uint32_t nth)
{
	const uint64_t *lost = &recorder.region.header->lost[LOST_PROXY_SLOT];
	uint64_t before = *lost, word = recorder.region.proxies[wanted].word;
	void *proxy;

	take_all_but(wanted);
	aim_at(wanted, nth);
	hot_comm(context)->kept_proxies = 0;
	proxy = start(context, task, true);
	give_all_but(wanted);
	if (handle_kind(handle_from(proxy)) != HANDLE_PROXY) {
		EXPECT_EQUAL(*lost, before + 1);
		return false;
	}
	EXPECT_EQUAL(handle_slot(handle_from(proxy)), wanted);
	EXPECT_EQUAL(proxy_from(proxy)->word, (uint64_t)((REGION_GENERATION(word) + 1) | 1) << 32);
	play_stop(proxy);
	hot_comm(context)->kept_proxies = 0;
	recorder.region.proxies[wanted].word &= ~UINT64_C(1);
	return true;
}

static void a_free_slot_is_found_in_so_many_tries(void)
{
	void *context = play_init(1, 2, 2, 0), *task = issue(context);

	EXPECT(mask() > 2 * PROXY_TRIES);
	for (uint32_t nth = 0; nth <= PROXY_TRIES; nth = nth < 18 ? nth + 1 : nth + 17)
		EXPECT_EQUAL(is_taken(context, task, mask() - 7, nth), nth < PROXY_TRIES);
	EXPECT(is_taken(context, task, mask() - 7, PROXY_TRIES - 1));
	EXPECT(!is_taken(context, task, mask() - 7, PROXY_TRIES));
	ncclProfiler_v5.finalize(context);
}

static void what_is_left_over_makes_room_at_last(void)
{
	static const struct {
		const char *what;
		uint8_t flags;
		bool is_passed, is_childless, is_orphan;
		bool goes;
	} cases[] = {
		{ "queued", 0, false, false, false, false },
		{ "passed", 0, true, false, false, true },
		{ "without children", 0, false, true, false, true },
		{ "without an operation", 0, false, false, true, true },
		{ "passed, but in progress", PROXY_IN_PROGRESS, true, false, false, false },
		{ "of another process", PROXY_IS_FOREIGN, false, false, true, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(2, 2, 2, 0), *task = issue(context);
		void *others = play_init(3, 2, 2, 0), *other = issue(others);
		struct comm_state *comm = hot_comm(context);
		struct region_proxy *proxy = proxy_from(start(context, task, true));
		uint32_t slot = (uint32_t)(proxy - recorder.region.proxies);

		proxy->flags |= cases[i].flags;
		if (cases[i].is_passed) {
			comm->shared->counts.last_done_number = 2;
			comm->shared->counts.last_done_ns =
				live_from(task)->op.issue_ns + PASSED_NS + 1;
		}
		if (cases[i].is_childless) {
			comm->expects_kernels = comm->expects_proxies = 0;
			comm->shared->info.flags &= ~(uint32_t)COMM_FLAG_SEES_PROXIES;
		}
		if (cases[i].is_orphan)
			proxy->live_generation = 0;
		EXPECT(!is_taken(others, other, slot, PROXY_TRIES / 2 - 1));
		EXPECT_THAT(cases[i].what,
			    is_taken(others, other, slot, PROXY_TRIES / 2) == cases[i].goes);
		ncclProfiler_v5.finalize(context);
		ncclProfiler_v5.finalize(others);
	}
}

static void the_last_slots_are_kept(void)
{
	void *context = play_init(4, 2, 2, 0), *task = issue(context);
	struct comm_state *comm = hot_comm(context);
	void *proxies[KEPT_PROXIES + 1], *again;
	uint64_t before[KEPT_PROXIES + 1];

	for (int i = 0; i <= KEPT_PROXIES; i++) {
		proxies[i] = start(context, task, true);
		before[i] = proxy_from(proxies[i])->word;
	}
	EXPECT_EQUAL(comm->proxy_thread, thread_self());
	EXPECT(comm->shared->info.flags & COMM_FLAG_SEES_PROXIES);
	for (uint32_t i = 0; i <= KEPT_PROXIES; i++) {
		bool is_kept = i < KEPT_PROXIES;

		play_stop(proxies[i]);
		EXPECT_EQUAL(comm->kept_proxies, is_kept ? i + 1 : KEPT_PROXIES);
		EXPECT_EQUAL(proxy_from(proxies[i])->word,
			     before[i] + (UINT64_C(1) << 32) + is_kept);
	}
	again = start(context, task, true);
	EXPECT_EQUAL(comm->kept_proxies, KEPT_PROXIES - 1);
	EXPECT(proxy_from(again) == proxy_from(proxies[KEPT_PROXIES - 1]));
	EXPECT_EQUAL(proxy_from(again)->word, before[KEPT_PROXIES - 1] + (UINT64_C(2) << 32));
	EXPECT_EQUAL(proxy_from(again)->flags, PROXY_IS_SEND | PROXY_IS_CHILD);
	play_stop(again);
	/* What it kept is free for all afterwards, and only that. */
	comm->kept_proxies = 2;
	ncclProfiler_v5.finalize(context);
	for (int i = 0; i < KEPT_PROXIES; i++)
		EXPECT_EQUAL(proxy_from(proxies[i])->word & 1, i < 2 ? 0 : 1);
	for (int i = 0; i < KEPT_PROXIES; i++)
		proxy_from(proxies[i])->word &= ~UINT64_C(1);
}

static void other_threads_keep_nothing(void)
{
	void *context = play_init(5, 2, 2, 0), *task = issue(context), *proxy;
	struct comm_state *comm = hot_comm(context);

	comm->proxy_thread = thread_self() + 64;
	proxy = start(context, task, false);
	EXPECT_EQUAL(proxy_from(proxy)->flags, PROXY_IS_OTHERS | PROXY_IS_CHILD);
	EXPECT_EQUAL(LIVE_OPEN(live_from(task)->word), 1);
	play_stop(proxy);
	EXPECT_EQUAL(comm->kept_proxies, 0);
	EXPECT_EQUAL(LIVE_OPEN(live_from(task)->word), 0);
	EXPECT_EQUAL(recorder.others[handle_slot(handle_from(task))].stopped, 1);
	EXPECT_EQUAL(proxy_from(proxy)->word & 1, 0);
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(play_record(1)->proxies_stopped, 1);
}

static void open_ones_are_freed_with_their_communicator(void)
{
	void *context = play_init(6, 2, 2, 0), *others = play_init(7, 2, 2, 0);
	void *here = start(context, issue(context), true), *task = issue(others);
	void *there = start(others, task, true), *step = play_step_start(context, here, 0);
	struct region_proxy *behind = &recorder.region.proxies[recorder.region.proxy_count];
	struct region_proxy saved = *behind;
	uint64_t word = proxy_from(here)->word;
	uint32_t comm = hot_comm(context)->shared->info.id;

	play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
	behind->word = UINT64_C(5) << 32;
	behind->comm = comm;
	ncclProfiler_v5.finalize(context);
	EXPECT_EQUAL(proxy_from(here)->word, word + (UINT64_C(1) << 32));
	EXPECT_EQUAL(proxy_from(here)->open[0].head, 0);
	EXPECT_THAT("those of others are not", proxy_from(there)->word & UINT64_C(1) << 32);
	EXPECT_THAT("nor what lies behind the table", behind->word == UINT64_C(5) << 32);
	EXPECT_EQUAL(recorder.region.header->odd[ODD_UNKNOWN_STATE], 0);
	hot_proxy_state(handle_of(HANDLE_PROXY, 5, recorder.region.proxy_count, 0),
			ABI_OP_RECV_DONE + 1, 0);
	EXPECT_EQUAL(recorder.region.header->odd[ODD_UNKNOWN_STATE], 0);
	*behind = saved;
	ncclProfiler_v5.finalize(others);
}

/* Only a task of this process is a parent. */
static void a_parent_is_a_task_of_ours(void)
{
	void *context = play_init(8, 2, 2, 0);
	void *api = hot_api_call(context, NULL, &all_reduce), *proxy;
	void *task = hot_task(context, api, &all_reduce);

	proxy = play_proxy_start(context, api, getpid(), 0, 1, true);
	EXPECT_EQUAL(proxy_from(proxy)->flags, PROXY_IS_SEND);
	EXPECT_EQUAL(proxy_from(proxy)->live_generation, 0);
	play_stop(proxy);
	proxy = play_proxy_start(context, task, getpid() + 1, 0, 1, true);
	EXPECT_EQUAL(proxy_from(proxy)->flags, PROXY_IS_SEND | PROXY_IS_FOREIGN);
	play_stop(proxy);
	proxy = play_proxy_start(context, task, getpid() + 1, 0, 1, false);
	EXPECT_EQUAL(proxy_from(proxy)->flags, PROXY_IS_FOREIGN);
	play_stop(proxy);
	EXPECT_EQUAL(live_from(task)->op.proxies_started, 0);
	ncclProfiler_v5.finalize(context);
}

static void a_slot_begins_clean(void)
{
	void *context = play_init(9, 2, 2, 0), *task = issue(context);
	void *proxy = start(context, task, true);
	struct region_proxy *at = proxy_from(proxy);

	at->wait_ns[0] = at->wait_ns[1] = at->wait_ns[2] = 7;
	at->moved_before_plus_1 = 12345;
	play_stop(proxy);
	EXPECT_EQUAL(live_from(task)->op.wait_ns[OP_WAIT_SEND_NET], 7);
	EXPECT_EQUAL(live_from(task)->op.wait_ns[OP_WAIT_RECV_NET], 0);
	for (uint32_t i = 0; i < recorder.region.link_count; i++)
		if (recorder.region.links[i].wire_ns & ~LINK_WIRE_PARTIAL)
			EXPECT_EQUAL(recorder.region.links[i].wire_ns, 0);
	proxy = start(context, task, false);
	EXPECT(proxy_from(proxy) == at);
	EXPECT(at->wait_ns[0] == 0 && at->wait_ns[1] == 0 && at->wait_ns[2] == 0);
	EXPECT_EQUAL(at->moved_before_plus_1, 0);
	at->wait_ns[2] = 9;
	play_stop(proxy);
	EXPECT_EQUAL(live_from(task)->op.wait_ns[OP_WAIT_RECV_GPU], 9);
	EXPECT_EQUAL(live_from(task)->op.send_bytes, 0);
	/* The same for the proxy thread of another rank. */
	hot_comm(context)->proxy_thread = thread_self() + 64;
	proxy = start(context, task, true);
	proxy_from(proxy)->wait_ns[2] = 11;
	play_stop(proxy);
	EXPECT_EQUAL(recorder.others[handle_slot(handle_from(task))].wait_ns[OP_WAIT_SEND_NET], 11);
	EXPECT_EQUAL(recorder.others[handle_slot(handle_from(task))].wait_ns[OP_WAIT_RECV_NET], 0);
	ncclProfiler_v5.finalize(context);
}

static void a_state_is_noted_with_its_time(void)
{
	static const struct {
		bool is_send;
		unsigned int peer_waits; /* how often "peer not ready" is reported */
		uint64_t waits[3];
	} cases[] = {
		{ true, 0, { 200, 0, 400 } }, /* it never came */
		{ true, 1, { 100, 0, 500 } }, /* the send left in the same poll */
		{ true, 2, { 100, 100, 400 } },
		{ false, 0, { 100, 100, 400 } },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(10, 2, 2, 0), *task = issue(context);
		void *proxy = start(context, task, cases[i].is_send);
		void *step = play_step_start(context, proxy, 3);
		struct region_proxy *at = proxy_from(proxy);
		struct region_step *open = &at->open[3];

		play_state(step, cases[i].is_send ? ABI_STEP_SEND_GPU_WAIT : ABI_STEP_RECV_WAIT,
			   77);
		EXPECT_EQUAL(at->posted, 1);
		EXPECT_EQUAL(open->state,
			     cases[i].is_send ? ABI_STEP_SEND_GPU_WAIT : ABI_STEP_RECV_WAIT);
		EXPECT_EQUAL(open->step_plus_1, 4);
		stamp_move(100);
		for (unsigned int j = 0; j < cases[i].peer_waits; j++) {
			play_state(step, ABI_STEP_SEND_PEER_WAIT, 78);
			EXPECT_EQUAL(open->state, ABI_STEP_SEND_PEER_WAIT);
			EXPECT_EQUAL(open->polls, j);
		}
		if (!cases[i].is_send)
			play_state(step, ABI_STEP_RECV_FLUSH_WAIT, 1000);
		EXPECT_EQUAL(open->bytes, cases[i].is_send ? 0 : 1000);
		stamp_move(100);
		play_state(step, cases[i].is_send ? ABI_STEP_SEND_WAIT : ABI_STEP_RECV_GPU_WAIT,
			   cases[i].is_send ? 1000 : 79);
		EXPECT_EQUAL(open->state,
			     cases[i].is_send ? ABI_STEP_SEND_WAIT : ABI_STEP_RECV_GPU_WAIT);
		EXPECT_EQUAL(open->step_plus_1, 4);
		stamp_move(400);
		/* Some releases do not stop it: it ends with its proxy operation. */
		if (i % 2 == 0)
			play_stop(step);
		play_stop(proxy);
		EXPECT_EQUAL(open->head, 0);
		for (int j = 0; j < 3; j++)
			EXPECT_EQUAL(at->wait_ns[j], cases[i].waits[j]);
		EXPECT_EQUAL(at->bytes, 1000);
		EXPECT_EQUAL(live_from(task)->op.wait_ns[cases[i].is_send ? 0 : 3],
			     cases[i].waits[0]);
		ncclProfiler_v5.finalize(context);
	}
}

static void repeated_states_are_counted_up_to_255(void)
{
	void *context = play_init(11, 2, 2, 0), *proxy = start(context, issue(context), true);
	void *step = play_step_start(context, proxy, 0);
	const struct region_step *open = &proxy_from(proxy)->open[0];

	play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
	for (int i = 1; i <= 300; i++) {
		play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
		if (i >= 254 && i <= 257)
			EXPECT_EQUAL(open->polls, i < 255 ? i : 255);
	}
	EXPECT_EQUAL(open->reserved, 0);
	ncclProfiler_v5.finalize(context);
}

static void unknown_states_and_old_handles_are_told_apart(void)
{
	const uint64_t *odd = recorder.region.header->odd;
	void *context = play_init(12, 2, 2, 0), *proxy = start(context, issue(context), true);
	void *step = play_step_start(context, proxy, 0);
	uint64_t unknown = odd[ODD_UNKNOWN_STATE], stale = odd[ODD_STALE_HANDLE];

	hot_step_state(handle_from(step), STATES, 0);
	hot_step_state(handle_from(step), -1, 0);
	hot_step_state(handle_from(step), 0, 0);
	EXPECT_EQUAL(odd[ODD_UNKNOWN_STATE], unknown + 3);
	EXPECT_EQUAL(odd[ODD_STALE_HANDLE], stale);
	play_stop(proxy);
	hot_step_state(handle_from(step), ABI_STEP_SEND_GPU_WAIT, 0);
	hot_step_state(handle_from(step), STATES, 0);
	EXPECT_EQUAL(odd[ODD_UNKNOWN_STATE], unknown + 3);
	EXPECT_EQUAL(odd[ODD_STALE_HANDLE], stale + 2);
	ncclProfiler_v5.finalize(context);
}

/* What was only queued, or outlives its operation, is no child of it. */
static void only_a_child_counts(void)
{
	void *context = play_init(13, 2, 2, 0), *task, *proxy;
	struct call call = all_reduce;
	struct region_live *live;

	call.algorithm = OP_NVLS;
	task = hot_task(context, hot_api_call(context, NULL, &call), &call);
	live = live_from(task);
	proxy = start(context, task, true);
	EXPECT_EQUAL(live->op.proxies_started, 0);
	play_stop(proxy);
	EXPECT_EQUAL(live->op.proxies_stopped, 0);
	EXPECT_EQUAL(live->op.state, OP_LAUNCHED);
	task = issue(context);
	live = live_from(task);
	proxy = start(context, task, true);
	EXPECT(live_retire(live, REGION_GENERATION(live->word), true));
	EXPECT_EQUAL(play_record(1)->state, OP_ABANDONED);
	play_stop(proxy);
	EXPECT_EQUAL(live->op.proxies_stopped, 0);
	ncclProfiler_v5.finalize(context);
}

static const struct region_link *link_to(void *context, int32_t peer)
{
	uint64_t key = REGION_LINK_KEY(hot_comm(context)->shared->info.id, false, peer);

	for (uint32_t i = 1; i < recorder.region.link_count; i++)
		if (recorder.region.links[i].key == key)
			return &recorder.region.links[i];
	return NULL;
}

/* A transfer that is on the wire `at_ns` after the last moment. */
static void *send_at(void *context, void *proxy, int number, uint64_t at_ns)
{
	void *step = play_step_start(context, proxy, number);

	play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
	stamp_move(at_ns);
	play_state(step, ABI_STEP_SEND_WAIT, 1000);
	return step;
}

static void a_link_is_in_use_while_a_transfer_is_on_the_wire(void)
{
	void *context = play_init(14, 2, 2, 0), *task = issue(context), *one, *other;
	void *first = start(context, task, true), *second = start(context, task, true);
	void *back = start(context, task, false), *step;
	const struct region_link *link;

	one = send_at(context, first, 0, 100); /* at 100 */
	link = link_to(context, 1);
	EXPECT(link != NULL && link->wire_ns == 0);
	other = send_at(context, second, 0, 50); /* 150 */
	stamp_move(150);
	play_stop(one); /* 300 */
	EXPECT_THAT("another one is still under way", link->wire_ns == 0);
	stamp_move(100);
	play_stop(other); /* 400 */
	EXPECT_THAT("what overlaps counts once", link->wire_ns == 300);
	step = play_step_start(context, back, 0);
	play_state(step, ABI_STEP_RECV_WAIT, 0);
	stamp_move(70);
	play_state(step, ABI_STEP_RECV_FLUSH_WAIT, 1000);
	play_state(step, ABI_STEP_RECV_GPU_WAIT, 0);
	stamp_move(30);
	play_stop(step);
	EXPECT_THAT("what is received is the peer's link", link->wire_ns == 300);
	(void)send_at(context, first, 1, 10);
	stamp_move(40);
	play_stop(first);
	EXPECT_THAT("one that was never stopped ends with its proxy operation",
		    link->wire_ns == 340);
	(void)send_at(context, second, 1, 10);
	stamp_move(5);
	ncclProfiler_v5.finalize(context);
	EXPECT_THAT("or with its communicator", link->wire_ns == 345);
	EXPECT(recorder.wires[link - recorder.region.links].transfers == 0);
}

/* What NCCL never does, and what others may have written into the region. */
static void a_wrong_state_or_index_leaves_no_link_in_use(void)
{
	void *context = play_init(17, 2, 2, 0), *task = issue(context);
	void *send = start(context, task, true), *receive = start(context, task, false), *step;
	const struct region_link *link;

	play_stop(send_at(context, send, 0, 100));
	link = link_to(context, 1);
	play_stop(send_at(context, receive, 0, 100));
	EXPECT_THAT("a receive in a send's state",
		    recorder.wires[link - recorder.region.links].transfers == 0);
	step = play_step_start(context, send, 1);
	play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
	play_state(step, ABI_STEP_RECV_GPU_WAIT, 0);
	stamp_move(20);
	play_stop(step);
	EXPECT_THAT("a send in a receive's state",
		    recorder.wires[link - recorder.region.links].transfers == 0 &&
			    link->wire_ns == 20);
	proxy_from(send)->link = recorder.region.link_count;
	play_stop(send_at(context, send, 2, 100));
	proxy_from(send)->link = recorder.region.link_count + 12345678;
	play_stop(send_at(context, send, 3, 100));
	play_stop(send);
	EXPECT_THAT("an index out of bounds is not used, and nothing is lost",
		    link->wire_ns == 20 && link->bytes == 3000);
	ncclProfiler_v5.finalize(context);
}

/* Proxy threads of other ranks share no counter. */
static void transfers_of_other_threads_are_not_in_it(void)
{
	void *context = play_init(15, 2, 2, 0), *task = issue(context), *proxy;

	hot_comm(context)->proxy_thread = thread_self() + 64;
	proxy = start(context, task, true);
	play_stop(send_at(context, proxy, 0, 100));
	stamp_move(50);
	play_stop(proxy);
	EXPECT(link_to(context, 1) != NULL && link_to(context, 1)->bytes == 1000 &&
	       link_to(context, 1)->wire_ns == LINK_WIRE_PARTIAL);
	ncclProfiler_v5.finalize(context);
}

/* Up to 2.26 NCCL counts on from whatever used its memory before. */
static void bytes_of_a_running_total_are_those_of_the_operation(void)
{
	static const struct {
		bool is_send, has_begin;
		uint64_t before, wanted;
	} cases[] = { { true, true, 0, 3000 },
		      { true, true, 5000000, 3000 },
		      { false, true, 77, 3000 },
		      { true, false, 5000000, 0 } };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		void *context = play_init(16, 2, 2, 0);
		void *proxy = start(context, issue(context), cases[i].is_send);
		int posted = cases[i].is_send ? ABI_OP_SEND_POSTED : ABI_OP_RECV_POSTED;
		int moved = cases[i].is_send ? ABI_OP_SEND_TRANSMITTED : ABI_OP_RECV_RECEIVED;

		for (uint64_t n = 0; n < 3; n++) {
			if (cases[i].has_begin)
				hot_proxy_state(handle_from(proxy), posted,
						cases[i].before + n * 1000);
			hot_proxy_state(handle_from(proxy), moved,
					cases[i].before + (n + 1) * 1000);
		}
		EXPECT_EQUAL(proxy_from(proxy)->bytes, cases[i].wanted);
		play_stop(proxy);
		ncclProfiler_v5.finalize(context);
	}
}

int main(void)
{
	play_setup("flight");
	play_init(0, 1, 2, 0);
	stamp_move(0);
	words = calloc(recorder.region.proxy_count, sizeof(*words));
	flags = calloc(recorder.region.proxy_count, 1);
	open_ones_are_freed_with_their_communicator();
	a_free_slot_is_found_in_so_many_tries();
	what_is_left_over_makes_room_at_last();
	the_last_slots_are_kept();
	other_threads_keep_nothing();
	a_parent_is_a_task_of_ours();
	a_slot_begins_clean();
	a_state_is_noted_with_its_time();
	repeated_states_are_counted_up_to_255();
	unknown_states_and_old_handles_are_told_apart();
	only_a_child_counts();
	a_link_is_in_use_while_a_transfer_is_on_the_wire();
	a_wrong_state_or_index_leaves_no_link_in_use();
	transfers_of_other_threads_are_not_in_it();
	bytes_of_a_running_total_are_those_of_the_operation();
	free(words);
	free(flags);
	return tap_done();
}
