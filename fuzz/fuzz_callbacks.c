/*
 * NCCL calls anything, in any order, with anything: the bytes of an input are a program of init,
 * start, stop, state and finalize calls over all seven versions. Handles are valid, stale, NULL,
 * garbage, of another kind or forged with the right salt; contexts too. An odd first byte runs the
 * input in four threads that share their handles.
 *
 * The tables are tiny, so that each input fills them. Afterwards everything is finalized, and the
 * counts must be right: issued == recorded + live for every communicator, no slot in use that can
 * never be freed, and bytes that a reader of the region accepts.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/op.h"
#include "format/region_read.h"
#include "fuzz/fuzz_main.h"
#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"
#include "plugin/recorder.h"

enum { HANDLES = 32, CONTEXTS = 10, THREADS = 4, SHARED = 64, TASK_CHILDREN = 4 };
/* Powers of two, far below the usual sizes. */
enum { FEW_COMMS = 8, FEW_LIVE = 64, FEW_PROXIES = 64, FEW_OTHERS = 16 };

struct player {
	const uint8_t *data;
	size_t size, at;
	uint64_t noise;
	unsigned int noise_kind;
	void *handles[HANDLES];
	unsigned int handle_count;
	void *contexts[CONTEXTS];
	unsigned int context_count, context_most;
	bool is_alone;
};

/* Positions of the rings before an input. */
struct heads {
	uint64_t ring, details;
};

static char long_name[301];

/*
 * Replaces libc's: there is no CUDA here, and a sanitizer would search all libraries at each init
 * to find that out.
 */
void *dlopen(const char *path, int flags)
{
	(void)path;
	(void)flags;
	return NULL;
}

/* Handles that threads pass to each other. */
static void *shared_handles[SHARED];

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "fuzz_callbacks:%d: %s\n", __LINE__, #condition); \
			abort();                                                          \
		}                                                                         \
	} while (0)

/* ---- what the bytes say ---------------------------------------------------------------------- */

static uint64_t take(struct player *player, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes && player->at < player->size; i++)
		value |= (uint64_t)player->data[player->at++] << 8 * i;
	return value;
}

/* Fields that are not set: zeros, ones, or anything. */
static void take_noise(struct player *player, void *to, size_t bytes)
{
	uint64_t *words = to;

	for (size_t i = 0; i < bytes / sizeof(*words); i++) {
		player->noise = hash_word(player->noise, i + 1);
		words[i] = player->noise_kind == 0   ? 0
			   : player->noise_kind == 1 ? UINT64_MAX
						     : player->noise;
	}
}

static const char *take_string(struct player *player)
{
	static const char *const strings[] = {
		"AllReduce",	"AllGather",   "Broadcast",    "ReduceScatter", "Reduce",
		"Send",		"Recv",	       "Recv",	       "SendRecv",	"AlltoAll",
		"Gather",	"Scatter",     "PutSignal",    "Invalid",	"Unknown",
		"ncclInt8",	"ncclFloat32", "ncclBfloat16", "ncclFloat64",	"RING",
		"TREE",		"NVLS",	       "LL",	       "SIMPLE",	"",
		"\n\x01\xff\"", "Quantum",     "ncclInt128",   "another",	"of these",
	};
	uint64_t which = take(player, 1);

	if (which < ARRAY_LENGTH(strings))
		return strings[which];
	if (which == 255)
		return NULL;
	if (which == 254)
		return long_name;
	return strings[which % 8];
}

#define ABI_VERSION 1
#include "fuzz/fuzz_version.inc"
#define ABI_VERSION 2
#include "fuzz/fuzz_version.inc"
#define ABI_VERSION 3
#include "fuzz/fuzz_version.inc"
#define ABI_VERSION 4
#include "fuzz/fuzz_version.inc"
#define ABI_VERSION 5
#include "fuzz/fuzz_version.inc"
#define ABI_VERSION 6
#include "fuzz/fuzz_version.inc"
#define ABI_VERSION 7
#include "fuzz/fuzz_version.inc"

enum { VERSIONS = 7 };

static const struct {
	void *(*init)(struct player *player, int *mask);
	void *(*start)(struct player *player, void *context, uint64_t type, void *parent);
	void (*state)(struct player *player, void *handle, int state);
	void (*stop)(void *handle);
	void (*finalize)(void *context);
} versions[VERSIONS] = {
	{ init_v1, start_v1, state_v1, stop_v1, finalize_v1 },
	{ init_v2, start_v2, state_v2, stop_v2, finalize_v2 },
	{ init_v3, start_v3, state_v3, stop_v3, finalize_v3 },
	{ init_v4, start_v4, state_v4, stop_v4, finalize_v4 },
	{ init_v5, start_v5, state_v5, stop_v5, finalize_v5 },
	{ init_v6, start_v6, state_v6, stop_v6, finalize_v6 },
	{ init_v7, start_v7, state_v7, stop_v7, finalize_v7 },
};

static unsigned int take_version(struct player *player)
{
	return (unsigned int)take(player, 1) % VERSIONS;
}

static void keep(struct player *player, void *handle)
{
	player->handles[player->handle_count++ % HANDLES] = handle;
	/* Pairs with the acquire in take_handle(): NCCL passes them on with ordering, too. */
	if (!player->is_alone)
		store_release(&shared_handles[player->handle_count % SHARED], handle);
}

/* A handle with our salt that we never issued, or issued for something else. */
static void *forge(struct player *player)
{
	uint64_t bits = take(player, 3);

	return handle_make((enum handle_kind)(bits & 15), (uint32_t)(bits >> 4 & 31),
			   (uint32_t)(bits >> 9 & 127), (uint8_t)(bits >> 16));
}

static void *take_handle(struct player *player)
{
	uint64_t which = take(player, 1);

	if (which < 128)
		return player->handles[(player->handle_count - 1 - which % 8) % HANDLES];
	if (which < 160)
		return player->handles[which % HANDLES];
	if (which < 208)
		return player->is_alone ? player->handles[which % 4]
					: load_acquire(&shared_handles[which % SHARED]);
	if (which < 216)
		return NULL;
	if (which < 232)
		return forge(player);
	if (which < 240)
		return player->contexts[which % CONTEXTS];
	if (which < 248) {
		void *near = player->handles[which % HANDLES];

		return (void *)((uintptr_t)near ^ UINT64_C(1) << (take(player, 1) % 64));
	}
	return (void *)(uintptr_t)take(player, 8);
}

static void *take_context(struct player *player)
{
	uint64_t which = take(player, 1);

	if (which >= 240 || player->context_count == 0)
		return take_handle(player);
	return player->contexts[which % player->context_count];
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void check_ended(const struct region_comm *comm)
{
	CHECK(comm->counts.issued == comm->counts.recorded);
	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		const struct region_live *live = &recorder.region.live[i];

		CHECK(!region_slot_is_used(live->word) || live->word & LIVE_RETIRING ||
		      live->op.comm != comm->info.id);
	}
}

static const struct region_comm *comm_of_context(const void *context)
{
	struct handle handle = handle_decode(recorder.salt, context);
	const struct region_comm *comm = &recorder.region.comms[handle_slot(handle)];

	if (handle_kind(handle) != HANDLE_CONTEXT ||
	    handle_slot(handle) >= recorder.region.comm_count ||
	    (REGION_GENERATION(comm->word) & HANDLE_GENERATION_MASK) != handle_generation(handle) ||
	    comm->word & COMM_ENDED)
		return NULL;
	return comm;
}

static void play_init(struct player *player)
{
	unsigned int version = take_version(player);
	int mask = 0;

	if (player->context_count >= player->context_most)
		return;
	player->contexts[player->context_count] = versions[version].init(player, &mask);
	CHECK(player->contexts[player->context_count] != NULL);
	CHECK(mask != 0);
	player->context_count++;
}

static void play_finalize(struct player *player, void *context)
{
	const struct region_comm *comm = player->is_alone ? comm_of_context(context) : NULL;

	versions[take_version(player)].finalize(context);
	if (comm != NULL)
		check_ended(comm);
}

/* An API call on a living communicator is issued once, whatever else is wrong with it. */
static void *play_api(struct player *player, unsigned int version, void *context, uint64_t type,
		      void *parent)
{
	const struct region_comm *comm = player->is_alone ? comm_of_context(context) : NULL;
	uint64_t before = comm != NULL ? comm->counts.issued : 0;
	uint64_t refused = recorder.region.header->odd[ODD_NULL_DESCRIPTOR];
	void *handle = versions[version].start(player, context, type, parent);

	if (comm != NULL)
		CHECK(comm->counts.issued ==
		      before + (recorder.region.header->odd[ODD_NULL_DESCRIPTOR] == refused));
	return handle;
}

static void *start_any(struct player *player, unsigned int version, uint64_t type, void *context,
		       void *parent)
{
	void *handle;

	if (version >= 4 && (type == ABI_COLL_API || type == ABI_P2P_API))
		handle = play_api(player, version, context, type, parent);
	else
		handle = versions[version].start(player, context, type, parent);
	CHECK(handle != (void *)UINT64_C(0xdead));
	keep(player, handle);
	return handle;
}

static void play_start(struct player *player)
{
	unsigned int version = take_version(player);
	uint64_t bits = take(player, 1);
	uint64_t type = bits < 224 ? UINT64_C(1) << bits % 18 : take(player, 8);
	void *context = take_context(player);

	start_any(player, version, type, context, take_handle(player));
}

static void play_state(struct player *player)
{
	unsigned int version = take_version(player);
	uint64_t which = take(player, 1);
	int state = which < 240 ? (int)(which % 34) - 1 : (int)(int32_t)take(player, 4);

	versions[version].state(player, take_handle(player), state);
}

static void play_stop(struct player *player)
{
	versions[take_version(player)].stop(take_handle(player));
}

/* The same call repeatedly, as NCCL does while it polls. */
static void play_flood(struct player *player)
{
	unsigned int version = take_version(player);
	uint64_t kind = take(player, 1), times = take(player, 1);
	void *handle = take_handle(player), *context = take_context(player);

	for (uint64_t i = 0; i < times; i++) {
		if (kind % 3 == 0)
			versions[version].state(player, handle, ABI_STEP_SEND_PEER_WAIT);
		else if (kind % 3 == 1)
			versions[version].start(player, context, ABI_PROXY_STEP, handle);
		else
			versions[version].stop(handle);
	}
}

/* Children: channels and transfers that start, move and stop. */
static void play_children(struct player *player, unsigned int version, void *context, void *task)
{
	uint64_t what = take(player, 1);

	for (unsigned int i = 0; i < (what & 3); i++) {
		void *kernel = start_any(player, version, ABI_KERNEL_CH, context, task);

		if (what & 4)
			versions[version].state(player, kernel, ABI_KERNEL_CH_STOP);
		if (what & 8)
			versions[version].stop(kernel);
	}
	for (unsigned int i = 0; i < (what >> 4 & 3); i++) {
		void *proxy = start_any(player, version, ABI_PROXY_OP, context, task);
		void *step = start_any(player, version, ABI_PROXY_STEP, context, proxy);

		versions[version].state(player, step, ABI_STEP_SEND_GPU_WAIT + (int)(what & 4));
		if (what & 64)
			versions[version].stop(step);
		if (what & 128)
			versions[version].stop(proxy);
	}
}

/* Many whole operations: tables fill, slots are reused. */
static void play_operations(struct player *player)
{
	unsigned int version = take_version(player);
	void *context = take_context(player);
	uint64_t times = take(player, 1) % 32 + 1;
	bool is_p2p = take(player, 1) & 1;

	for (uint64_t i = 0; i < times; i++) {
		void *api = NULL, *task;

		if (version >= 4) {
			void *group = start_any(player, version, ABI_GROUP_API, context, NULL);

			api = start_any(player, version, is_p2p ? ABI_P2P_API : ABI_COLL_API,
					context, group);
			versions[version].stop(api);
		}
		task = start_any(player, version, is_p2p ? ABI_P2P : ABI_COLL, context, api);
		play_children(player, version, context, task);
		versions[version].stop(task);
	}
}

static void play_all(struct player *player)
{
	player->noise = take(player, 2);
	player->noise_kind = (unsigned int)take(player, 1) % 3;
	play_init(player);
	while (player->at < player->size) {
		switch (take(player, 1) % 16) {
		case 0:
			play_init(player);
			break;
		case 1:
			play_finalize(player, take_context(player));
			break;
		case 2:
			play_flood(player);
			break;
		case 3:
		case 4:
			play_operations(player);
			break;
		case 5:
		case 6:
		case 7:
			play_stop(player);
			break;
		case 8:
		case 9:
		case 10:
			play_state(player);
			break;
		default:
			play_start(player);
		}
	}
	for (unsigned int i = 0; i < player->context_count; i++)
		play_finalize(player, player->contexts[i]);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static uint64_t live_of_comm(uint32_t id)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		const struct region_live *live = &recorder.region.live[i];

		count += region_slot_is_used(live->word) && !(live->word & LIVE_RETIRING) &&
			 live->op.comm == id;
	}
	return count;
}

static void check_comms(void)
{
	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		const struct region_comm *comm = &recorder.region.comms[i];

		if (!region_slot_is_used(comm->word))
			continue;
		CHECK(comm->word & COMM_ENDED);
		CHECK(comm->counts.issued == comm->counts.recorded + live_of_comm(comm->info.id));
		CHECK(comm->counts.timed <= comm->counts.recorded);
		CHECK(comm->counts.captured + comm->counts.replayed <= comm->counts.recorded);
		CHECK(comm->counts.last_done_number <= comm->counts.issued);
	}
}

/*
 * What was never stopped can still be stopped, which frees its slot. A communicator has one proxy
 * thread, which keeps slots that it freed; several threads may lose one of these between them. Such
 * a slot is unknown to everyone, and is freed here.
 */
static void check_proxies(bool is_alone)
{
	for (uint32_t i = 0; i < recorder.region.proxy_count; i++) {
		struct region_proxy *proxy = &recorder.region.proxies[i];

		if (region_slot_is_used(proxy->word))
			stop_v5(handle_make(HANDLE_PROXY, REGION_GENERATION(proxy->word), i, 0));
		CHECK(!region_slot_is_used(proxy->word));
		CHECK((proxy->word & 1) == 0 || !is_alone);
		proxy->word &= ~UINT64_C(1);
	}
	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		CHECK(recorder.comms[i].kept_proxies == 0 || !is_alone);
		recorder.comms[i].kept_proxies = 0;
	}
}

static void check_slots(struct region *region)
{
	const char *problem;
	union {
		struct region_comm comm;
		struct region_live live;
		struct region_proxy proxy;
	} slot;

	for (uint32_t i = 0; i < region_slots(region, REGION_COMMS); i++)
		CHECK(region_comm_at(region, i, &slot.comm, &problem) || problem == NULL);
	for (uint32_t i = 0; i < region_slots(region, REGION_LIVE); i++) {
		CHECK(region_live_at(region, i, &slot.live, &problem) || problem == NULL);
		CHECK(!region_live_is_filling(region, i));
	}
	for (uint32_t i = 0; i < region_slots(region, REGION_PROXIES); i++)
		CHECK(region_proxy_at(region, i, &slot.proxy, &problem) || problem == NULL);
}

/*
 * Records of this input. A writer that is overtaken by a whole lap, 16 slots here, drops its own
 * record; a single thread is never overtaken.
 */
static void check_rings(const struct region *region, const struct heads *before, bool is_alone)
{
	struct op_detail detail;
	struct region_ring ring;
	struct op_record op;

	CHECK(region_ring_open(&ring, region, REGION_RING, before->ring) == OK);
	while (region_ring_next_op(&ring, &op) == OK)
		CHECK(op_check_time(&op));
	CHECK(ring.refused == 0 && ring.overwritten == 0);
	CHECK(ring.torn == 0 || !is_alone);
	region_ring_close(&ring);
	CHECK(region_ring_open(&ring, region, REGION_DETAILS, before->details) == OK);
	while (region_ring_next_detail(&ring, &detail) == OK)
		;
	CHECK(ring.refused == 0 && ring.overwritten == 0 && (ring.torn == 0 || !is_alone));
	region_ring_close(&ring);
}

static void check_region(const struct heads *before, bool is_alone)
{
	struct region region;

	CHECK(region_open_memory(&region, recorder.region.header, recorder.region.bytes, NULL) ==
	      OK);
	CHECK(region_copy(&region, REGION_COPY_STATE) == OK);
	CHECK(!region.is_moving);
	check_slots(&region);
	check_rings(&region, before, is_alone);
	region_close(&region);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* The threads persist: sanitizers do not release everything that a thread costs. */
static struct player players[THREADS];
static pthread_barrier_t at_start, at_end;

static void *player_thread(void *player)
{
	for (;;) {
		pthread_barrier_wait(&at_start);
		play_all(player);
		pthread_barrier_wait(&at_end);
	}
	return NULL;
}

static void start_threads(void)
{
	pthread_t thread;

	pthread_barrier_init(&at_start, NULL, THREADS + 1);
	pthread_barrier_init(&at_end, NULL, THREADS + 1);
	for (unsigned int i = 0; i < THREADS; i++) {
		CHECK(pthread_create(&thread, NULL, player_thread, &players[i]) == 0);
		pthread_detach(thread);
	}
}

static void play_together(const uint8_t *data, size_t size)
{
	for (unsigned int i = 0; i < THREADS; i++)
		players[i] = (struct player){ .data = data + size * i / THREADS,
					      .size = size * (i + 1) / THREADS - size * i / THREADS,
					      .context_most = FEW_COMMS / THREADS };
	pthread_barrier_wait(&at_start);
	pthread_barrier_wait(&at_end);
}

static void shrink(enum region_part_index part, uint32_t *count, uint32_t few)
{
	*count = recorder.region.header->parts[part].count = few;
}

static void set_up(void)
{
	struct player nobody = { .is_alone = true };
	int mask;

	/* No directory: the region is a memfd. No file either; mode full for its details. */
	setenv("RINGSIDE_SHM", "/proc/nowhere", 1);
	setenv("RINGSIDE_DIR", "/proc/nowhere", 1);
	setenv("RINGSIDE_MODE", "full", 1);
	finalize_v5(init_v5(&nobody, &mask));
	CHECK(load_relaxed(&recorder.is_on));
	memset(long_name, 'x', sizeof(long_name) - 1);
	start_threads();
	shrink(REGION_COMMS, &recorder.region.comm_count, FEW_COMMS);
	shrink(REGION_LIVE, &recorder.region.live_count, FEW_LIVE);
	shrink(REGION_PROXIES, &recorder.region.proxy_count, FEW_PROXIES);
	shrink(REGION_PEERS, &recorder.region.peer_count, FEW_OTHERS);
	shrink(REGION_TOTALS, &recorder.region.total_count, FEW_OTHERS);
	shrink(REGION_RING, &recorder.region.ring_count, FEW_OTHERS);
	shrink(REGION_DETAILS, &recorder.region.detail_count, FEW_OTHERS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool is_set_up;
	struct heads before;

	if (!is_set_up)
		set_up();
	is_set_up = true;
	if (size < 8)
		return 0;
	before = (struct heads){ recorder.region.header->ring_head,
				 recorder.region.header->details_head };
	recorder.is_full = data[0] >> 1 & 1;
	if (data[0] & 1) {
		play_together(data + 1, size - 1);
	} else {
		struct player player = { .data = data + 1,
					 .size = size - 1,
					 .context_most = CONTEXTS,
					 .is_alone = true };

		play_all(&player);
	}
	check_comms();
	check_proxies(!(data[0] & 1));
	check_region(&before, !(data[0] & 1));
	return 0;
}
