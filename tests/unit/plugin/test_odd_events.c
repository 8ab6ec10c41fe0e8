/*
 * What NCCL should not send, comes too late or finds no room: it is counted, the handle is safe to
 * use, and what is recorded of others does not change.
 */
#include <stdio.h>

#include "plugin/abi_v4.h"
#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

extern const struct abi_plugin_v4 ncclProfiler_v4;

static void *context;

static uint64_t odd(enum odd_reason reason)
{
	return load_relaxed(&recorder.region.header->odd[reason]);
}

static uint64_t lost(enum lost_reason reason)
{
	return load_relaxed(&recorder.region.header->lost[reason]);
}

static enum handle_kind kind_of(const void *handle)
{
	return handle_kind(handle_decode(recorder.salt, handle));
}

static struct region_live *live_of_task(const void *task)
{
	return &recorder.region.live[handle_slot(handle_decode(recorder.salt, task))];
}

static uint32_t generation_of(const struct region_live *live)
{
	return REGION_GENERATION(load_relaxed(&live->word)) & HANDLE_GENERATION_MASK;
}

/* ---- events and states ------------------------------------------------------------------------ */

static void events_that_nobody_knows(void)
{
	static const struct {
		uint64_t type;
		unsigned int is_odd;
	} events[] = {
		{ 0, 1 },
		{ ABI_COLL | ABI_P2P, 1 },
		{ ABI_GROUP | ABI_GROUP_API, 1 },
		{ ABI_CE_COLL, 1 }, /* not before v6 */
		{ UINT64_C(1) << 40, 1 },
		{ UINT64_C(1) << 63, 1 },
		{ ABI_PROXY_CTRL, 0 },
		{ ABI_NET_PLUGIN, 0 },
		{ ABI_KERNEL_PHASE, 0 },
	};
	uint64_t before, descriptors = odd(ODD_NULL_DESCRIPTOR);
	void *handle = (void *)0xdead;

	for (size_t i = 0; i < ARRAY_LENGTH(events); i++) {
		struct abi_descr_v5 descr = { .type = events[i].type };

		before = odd(ODD_UNKNOWN_EVENT);
		EXPECT_EQUAL(kind_of(play_start(context, descr)), HANDLE_IGNORED);
		EXPECT_EQUAL(odd(ODD_UNKNOWN_EVENT) - before, events[i].is_odd);
	}
	EXPECT(ncclProfiler_v5.start_event(context, &handle, NULL) == 0 && handle == NULL);
	EXPECT_EQUAL(odd(ODD_NULL_DESCRIPTOR), descriptors + 1);
}

static void states_that_nobody_knows(void)
{
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	void *kernel = play_kernel_start(context, op.task, 0, play_gpu_now());
	void *proxy = play_proxy_start(context, op.task, getpid(), 0, 1, true);
	static const struct {
		int state;
		unsigned int unknown, repeated;
	} of_proxies[] = {
		{ ABI_OP_IN_PROGRESS, 0, 0 },	     { ABI_OP_SEND_POSTED, 0, 0 },
		{ ABI_OP_SEND_REM_FIFO_WAIT, 0, 1 }, { ABI_OP_RECV_DONE, 0, 0 },
		{ ABI_STEP_SEND_GPU_WAIT, 1, 0 },    { -1, 1, 0 },
	};
	uint64_t unknown = odd(ODD_UNKNOWN_STATE), repeated;

	play_state(kernel, ABI_KERNEL_CH_STOP + 1, 7);
	EXPECT_EQUAL(odd(ODD_UNKNOWN_STATE), unknown + 1);
	ncclProfiler_v5.record_event_state(kernel, ABI_KERNEL_CH_STOP, NULL);
	EXPECT_EQUAL(odd(ODD_UNKNOWN_STATE), unknown + 2);
	EXPECT_EQUAL(live_of_task(op.task)->op.gpu_stop_ns, 0);
	for (size_t i = 0; i < ARRAY_LENGTH(of_proxies); i++) {
		unknown = odd(ODD_UNKNOWN_STATE);
		repeated = odd(ODD_REPEATED_STATE);
		play_state(proxy, of_proxies[i].state, 0);
		EXPECT_EQUAL(odd(ODD_UNKNOWN_STATE) - unknown, of_proxies[i].unknown);
		EXPECT_EQUAL(odd(ODD_REPEATED_STATE) - repeated, of_proxies[i].repeated);
	}
	play_stop(proxy);
	play_stop(kernel);
}

static void starts_that_are_repeated(void)
{
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	void *kernel = play_kernel_start(context, op.task, 65, play_gpu_now());
	uint64_t before = odd(ODD_REPEATED_START);
	struct region_live *live = live_of_task(op.task);

	EXPECT_THAT("the same handle again",
		    play_kernel_start(context, op.task, 65, play_gpu_now()) == kernel);
	EXPECT_EQUAL(odd(ODD_REPEATED_START), before + 1);
	EXPECT(LIVE_OPEN(live->word) == 1 && live->op.kernels_started == 1);
	EXPECT_THAT("another channel is another kernel",
		    play_kernel_start(context, op.task, 1, play_gpu_now()) != kernel);
	EXPECT_EQUAL(odd(ODD_REPEATED_START), before + 1);
	EXPECT(live->op.kernels_started == 2 && live->started[0] == 2 && live->started[1] == 2);
	EXPECT(play_coll(context, op.api, "AllReduce", 8, "ncclFloat32", 1) == op.task);
	EXPECT_EQUAL(odd(ODD_REPEATED_START), before + 2);
}

/* ---- too late --------------------------------------------------------------------------------- */

static void children_of_what_is_gone(void)
{
	void *other = play_init(2, 2, 4, 0);
	struct play_op op = play_issue(other, "AllReduce", 8, "ncclFloat32", 1);
	void *kernel = play_kernel_start(other, op.task, 0, play_gpu_now());
	uint64_t late = lost(LOST_LATE_CHILD), stale = odd(ODD_STALE_HANDLE);

	ncclProfiler_v5.finalize(other);
	EXPECT_EQUAL(kind_of(play_kernel_start(other, op.task, 1, 0)), HANDLE_IGNORED);
	EXPECT_EQUAL(lost(LOST_LATE_CHILD), late + 1);
	EXPECT_EQUAL(kind_of(play_coll(other, op.api, "AllReduce", 8, "ncclFloat32", 1)),
		     HANDLE_UNTRACKED);
	EXPECT_EQUAL(lost(LOST_LATE_CHILD), late + 2);
	EXPECT_EQUAL(kind_of(play_proxy_start(other, op.task, getpid(), 0, 1, true)), HANDLE_PROXY);
	EXPECT_EQUAL(lost(LOST_LATE_CHILD), late + 3);
	play_kernel_stop(kernel, play_gpu_now());
	EXPECT_EQUAL(odd(ODD_STALE_HANDLE), stale + 2);
	EXPECT_EQUAL(kind_of(play_kernel_start(context, NULL, 0, 0)), HANDLE_IGNORED);
	EXPECT_THAT("without a task it is not a child", lost(LOST_LATE_CHILD) == late + 3);
}

/* A reference is taken and dropped only while the operation is there and the counter has room. */
static void references(void)
{
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	struct region_live *live = live_of_task(op.task);
	uint32_t generation = generation_of(live);
	uint64_t word = live->word;
	const struct {
		uint64_t word;
		uint32_t generation;
		int begins, ends; /* by how much the word changes */
	} cases[] = {
		{ word, generation, 1, 0 },
		{ word + 1, generation, 1, -1 },
		{ word, generation + 2, 0, 0 },
		{ word + 1, generation - 2, 0, 0 },
		{ word | LIVE_RETIRING, generation, 0, 0 },
		{ word | LIVE_RETIRING | 1, generation, 0, 0 },
		{ word | LIVE_OPEN(~UINT64_C(0)), generation, 0, -1 },
		{ (word | LIVE_OPEN(~UINT64_C(0))) - 1, generation, 1, -1 },
	};

	EXPECT(LIVE_OPEN(word) == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		live->word = cases[i].word;
		EXPECT_EQUAL(live_child_begin(live, cases[i].generation), cases[i].begins == 1);
		EXPECT_EQUAL(live->word - cases[i].word, cases[i].begins);
		live->word = cases[i].word;
		live_child_end(live, cases[i].generation);
		EXPECT_EQUAL(live->word - cases[i].word, cases[i].ends);
		live->word = cases[i].word;
		if (i > 0 && i != 5)
			EXPECT_THAT("nor can it be retired",
				    !live_retire(live, cases[i].generation, false));
	}
	live->word = word;
	live->op.state = OP_DONE;
	EXPECT(live_child_begin(live, generation));
	EXPECT_THAT("a new child makes it run again", live->op.state == OP_RUNNING);
	live_child_end(live, generation);
	EXPECT(live->op.state == OP_DONE && live->op.done_ns != 0);
	EXPECT(live_retire(live, generation, false));
	EXPECT_THAT("the slot has its next generation",
		    live->word == (uint64_t)(REGION_GENERATION(word) + 1) << 32);
	EXPECT_THAT("once", !live_retire(live, generation, false));
}

/* ---- captured calls --------------------------------------------------------------------------- */

static uint64_t sum_of_generations(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < recorder.region.live_count; i++)
		sum += REGION_GENERATION(recorder.region.live[i].word);
	return sum;
}

/* A captured call is in a slot only while it is recorded, and leaves it used up. */
static void captured_calls_leave_their_slot(void)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *api = play_start(context, group);
	uint64_t before = sum_of_generations(), head = recorder.region.header->ring_head;

	for (int i = 0; i < 5; i++)
		EXPECT_EQUAL(
			kind_of(play_coll_api(context, api, "AllReduce", 8, "ncclFloat32", true)),
			HANDLE_CAPTURED);
	play_stop(api);
	EXPECT_EQUAL(sum_of_generations() - before, 10);
	EXPECT_EQUAL(recorder.region.header->ring_head - head, 5);
	EXPECT(play_record(1)->state == OP_CAPTURED && play_record(1)->bytes == 32);
	EXPECT_EQUAL(play_record(1)->number, play_record(5)->number + 4);
}

/* ---- names ------------------------------------------------------------------------------------ */

static void names_that_nobody_knows(void)
{
	uint64_t *used = &recorder.region.header->names_used;
	uint64_t before = *used;
	char longest[41] = "0123456789012345678901234567890123456789";
	uint8_t id = hot_name(OP_NAMES_ALGORITHM, "SPIRAL");
	char text[16];

	EXPECT_EQUAL(id, OP_NAME_INTERNED + before);
	EXPECT_EQUAL(hot_name(OP_NAMES_PROTOCOL, "SPIRAL"), id);
	EXPECT_EQUAL(hot_name(OP_NAMES_ALGORITHM, "SPIRA"), id + 1);
	EXPECT_EQUAL(hot_name(OP_NAMES_ALGORITHM, longest), id + 2);
	longest[31] = 'x';
	EXPECT_THAT("31 bytes of a name count", hot_name(OP_NAMES_ALGORITHM, longest) == id + 2);
	longest[30] = 'x';
	EXPECT_EQUAL(hot_name(OP_NAMES_ALGORITHM, longest), id + 3);
	EXPECT_EQUAL(hot_name(OP_NAMES_ALGORITHM, NULL), 0);
	EXPECT_EQUAL(*used, before + 4);
	for (unsigned int i = (unsigned int)*used; i < OP_NAMES_INTERNED_MAX; i++) {
		snprintf(text, sizeof(text), "NAME-%u", i);
		if (hot_name(OP_NAMES_ALGORITHM, text) != OP_NAME_INTERNED + i)
			EXPECT_THAT(text, false);
	}
	EXPECT_EQUAL(*used, OP_NAMES_INTERNED_MAX);
	EXPECT_EQUAL(hot_name(OP_NAMES_ALGORITHM, "ONE TOO MANY"), 0);
	EXPECT_EQUAL(*used, OP_NAMES_INTERNED_MAX);
	EXPECT_THAT("the others are still found",
		    hot_name(OP_NAMES_ALGORITHM, "SPIRAL") == id &&
			    hot_name(OP_NAMES_ALGORITHM, text) ==
				    OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX - 1);
}

static struct region_total sum_of_totals(void)
{
	struct region_total sum = { .count = 0 };

	for (uint32_t i = 0; i < recorder.region.total_count; i++) {
		const struct region_total *total = &recorder.region.totals[i];

		sum.count += total->count;
		sum.bytes += total->bytes;
		sum.timed += total->timed;
		sum.timed_bytes += total->timed_bytes;
		sum.sum_ns += total->sum_ns;
	}
	return sum;
}

/* An unknown size is not a size, and what was not timed has no time. */
static void totals_have_what_is_known(void)
{
	static const struct {
		const char *datatype;
		uint64_t bytes;
		bool is_timed;
	} cases[] = {
		{ "ncclFloat32", 4096, false }, { "ncclQuaternion", 0, false },
		{ "ncclInt8", 1024, false },	{ "ncclFloat32", 4096, true },
		{ "ncclQuaternion", 0, true },	{ "ncclInt8", 1024, true },
	};
	void *own = play_init(3, 1, 4, 0);

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct region_total before = sum_of_totals(), after;
		struct play_op op = play_issue(own, "AllReduce", 1024, cases[i].datatype, 1);
		struct region_live *live = live_of_task(op.task);
		uint64_t gpu = play_gpu_now();

		if (cases[i].is_timed) {
			void *kernel = play_kernel_start(own, op.task, 0, gpu);

			while (play_gpu_now() <= gpu + 1000)
				;
			play_kernel_stop(kernel, gpu + 1000);
		}
		live_retire(live, generation_of(live), false);
		after = sum_of_totals();
		EXPECT_EQUAL(play_record(1)->bytes == OP_BYTES_UNKNOWN, cases[i].bytes == 0);
		EXPECT_EQUAL(after.count - before.count, 1);
		EXPECT_EQUAL(after.bytes - before.bytes, cases[i].bytes);
		EXPECT_EQUAL(after.timed - before.timed, cases[i].is_timed);
		EXPECT_EQUAL(after.timed_bytes - before.timed_bytes,
			     cases[i].is_timed ? cases[i].bytes : 0);
		EXPECT_EQUAL(after.sum_ns - before.sum_ns, cases[i].is_timed ? 1000 : 0);
	}
	ncclProfiler_v5.finalize(own);
}

/* ---- proxy operations ------------------------------------------------------------------------- */

static void *play_collnet(void)
{
	struct abi_descr_v5 group = { .type = ABI_GROUP_API }, descr = { .type = ABI_COLL };
	void *api = play_start(context, group);

	descr.parent = play_coll_api(context, api, "AllReduce", 1024, "ncclFloat32", false);
	descr.coll.function = "AllReduce";
	descr.coll.count = 1024;
	descr.coll.datatype = "ncclFloat32";
	descr.coll.channels = 1;
	descr.coll.algorithm = "COLLNET_DIRECT";
	descr.coll.protocol = "SIMPLE";
	play_stop(api);
	return play_start(context, descr);
}

static struct region_proxy *proxy_of(const void *handle)
{
	return &recorder.region.proxies[handle_slot(handle_decode(recorder.salt, handle))];
}

/* What CollNet queues holds its operation open only from its first transfer on. */
static void collnet_counts_when_it_moves(void)
{
	void *task = play_collnet();
	struct region_live *live = live_of_task(task);
	void *proxy = play_proxy_start(context, task, getpid(), 0, 1, true), *step;

	EXPECT(!live_has_proxies(live) && live->op.proxies_started == 0);
	EXPECT(!(proxy_of(proxy)->flags & PROXY_IS_CHILD));
	step = play_step_start(context, proxy, 0);
	play_state(step, ABI_STEP_SEND_GPU_WAIT, 0);
	EXPECT(live_has_proxies(live) && live->op.proxies_started == 1);
	EXPECT(proxy_of(proxy)->flags & PROXY_IS_CHILD);
	EXPECT_EQUAL(live->op.state, OP_RUNNING);
	play_state(step, ABI_STEP_SEND_WAIT, 77);
	play_stop(step);
	play_stop(proxy);
	EXPECT(live->op.proxies_stopped == 1 && live->op.send_bytes == 77);
	EXPECT_EQUAL(live->op.state, OP_DONE);
}

static uint64_t proxy_generations(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < recorder.region.proxy_count; i++)
		sum += REGION_GENERATION(recorder.region.proxies[i].word);
	return sum;
}

/* All slots are taken: by what moves, which stays, or by what is left over, which goes. */
static void a_table_full_of_proxies(void)
{
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	uint32_t count = recorder.region.proxy_count;
	void **handles = calloc(2 * (size_t)count, sizeof(*handles));
	uint64_t before = lost(LOST_PROXY_SLOT), stale, generations;
	uint32_t made = 0, ignored = 0, gone = 0;

	for (uint32_t i = 0; i < 2 * count; i++) {
		handles[i] =
			play_proxy_start(context, op.task, getpid(), (uint8_t)(i % 32), 1, i & 1);
		made += kind_of(handles[i]) == HANDLE_PROXY;
		ignored += kind_of(handles[i]) == HANDLE_IGNORED;
		/* Moving ones are never given up. */
		play_state(play_step_start(context, handles[i], 0),
			   i & 1 ? ABI_STEP_SEND_GPU_WAIT : ABI_STEP_RECV_WAIT, 0);
	}
	EXPECT_THAT("most of the table is used, and no slot twice",
		    made <= count && made > count / 2);
	EXPECT_EQUAL(made + ignored, 2 * count);
	EXPECT_EQUAL(lost(LOST_PROXY_SLOT) - before, ignored);
	stale = odd(ODD_STALE_HANDLE);
	for (uint32_t i = 0; i < 2 * count; i++)
		play_stop(handles[i]);
	EXPECT_THAT("each of them can be stopped", odd(ODD_STALE_HANDLE) == stale);

	before = lost(LOST_PROXY_SLOT);
	generations = proxy_generations();
	for (uint32_t i = 0; i < 2 * count; i++) {
		void *task = play_collnet();

		handles[i] = play_proxy_start(context, task, getpid(), 0, 1, true);
		live_retire(live_of_task(task), generation_of(live_of_task(task)), false);
	}
	EXPECT_THAT("those left over make room", lost(LOST_PROXY_SLOT) == before);
	EXPECT_THAT("each in a generation of its own",
		    proxy_generations() >= generations + 3 * (uint64_t)count);
	for (uint32_t i = 0; i < 2 * count; i++) {
		stale = odd(ODD_STALE_HANDLE);
		play_stop(handles[i]);
		gone += odd(ODD_STALE_HANDLE) != stale;
	}
	EXPECT_THAT("and their handles are not those of the new ones", gone >= count / 2);
	free(handles);
}

/* ---- off -------------------------------------------------------------------------------------- */

static void start_v4(uint64_t type, void **handle)
{
	struct abi_descr_v4 descr = { .type = (uint8_t)type };

	ncclProfiler_v4.start_event(context, handle, &descr);
}

static void start_v5(uint64_t type, void **handle)
{
	*handle = play_start(context, (struct abi_descr_v5){ .type = type });
}

/* At the end of a process, calls are counted; before it, who switched off knows. */
static void what_comes_after_the_end(void)
{
	static const struct {
		uint64_t type;
		unsigned int v4, v5;
	} events[] = {
		{ ABI_COLL, 1, 0 },	  { ABI_P2P, 1, 0 },	   { ABI_PROXY_OP, 0, 0 },
		{ ABI_PROXY_STEP, 0, 0 }, { ABI_KERNEL_CH, 0, 0 }, { ABI_GROUP, 0, 0 },
	};
	static const struct {
		uint64_t type;
		unsigned int v5;
	} apis[] = { { ABI_COLL_API, 1 }, { ABI_P2P_API, 1 }, { ABI_GROUP_API, 0 } };
	uint64_t head = recorder.region.header->ring_head, before;
	void *handle;

	store_relaxed(&recorder.is_on, 0);
	for (uint32_t is_over = 0; is_over < 2; is_over++) {
		store_relaxed(&recorder.is_over, is_over);
		for (size_t i = 0; i < ARRAY_LENGTH(events); i++) {
			before = lost(LOST_OFF);
			start_v4(events[i].type, &handle);
			EXPECT_EQUAL(lost(LOST_OFF) - before, is_over * events[i].v4);
			EXPECT_EQUAL(kind_of(handle), HANDLE_IGNORED);
			before = lost(LOST_OFF);
			start_v5(events[i].type, &handle);
			EXPECT_EQUAL(lost(LOST_OFF) - before, is_over * events[i].v5);
			EXPECT_EQUAL(kind_of(handle), HANDLE_IGNORED);
		}
		for (size_t i = 0; i < ARRAY_LENGTH(apis); i++) {
			before = lost(LOST_OFF);
			start_v5(apis[i].type, &handle);
			EXPECT_EQUAL(lost(LOST_OFF) - before, is_over * apis[i].v5);
		}
	}
	before = lost(LOST_OFF);
	ncclProfiler_v5.start_event(context, &handle, NULL);
	EXPECT_EQUAL(lost(LOST_OFF), before);
	EXPECT_EQUAL(recorder.region.header->ring_head, head);
	store_relaxed(&recorder.is_over, 0);
	store_relaxed(&recorder.is_on, 1);
}

int main(void)
{
	play_setup("flight");
	context = play_init(1, 2, 4, 0);
	events_that_nobody_knows();
	states_that_nobody_knows();
	starts_that_are_repeated();
	children_of_what_is_gone();
	references();
	captured_calls_leave_their_slot();
	totals_have_what_is_known();
	collnet_counts_when_it_moves();
	a_table_full_of_proxies();
	what_comes_after_the_end();
	names_that_nobody_knows();
	return tap_done();
}
