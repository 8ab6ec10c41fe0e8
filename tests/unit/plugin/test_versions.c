/*
 * All seven interface versions, driven by the simulated host with the releases that use them: every
 * operation that NCCL shows is recorded, with what that version can know about it.
 */
#include <sys/mman.h>

#include "common/op.h"
#include "tests/support/plugin_host.h"
#include "tests/tap.h"

static const int releases[] = {
	HOST_NCCL_2_23, HOST_NCCL_2_24, HOST_NCCL_2_25, HOST_NCCL_2_26, HOST_NCCL_2_27,
	HOST_NCCL_2_28, HOST_NCCL_2_29, HOST_NCCL_2_30, HOST_NCCL_2_31,
};

/* EXPECT with the release in front. */
#define EXPECT_OF(release, condition)                                                \
	do {                                                                         \
		char sentence[200];                                                  \
		snprintf(sentence, sizeof(sentence), "%d.%d: %s", (release) / 10000, \
			 (release) / 100 % 100, #condition);                         \
		tap_line(!!(condition), sentence, __FILE__, __LINE__);               \
	} while (0)

enum { ALL_REDUCE = 1, ALL_GATHER, BROADCAST, REDUCE_SCATTER, REDUCE, BYTE_REDUCE, PLAIN_OPS };

static void play_plain(struct plugin_host *made, bool has_network)
{
	static const struct {
		enum op_function function;
		enum op_datatype datatype;
		uint64_t count;
	} ops[PLAIN_OPS] = {
		[ALL_REDUCE] = { OP_ALL_REDUCE, OP_FLOAT32, 1024 },
		[ALL_GATHER] = { OP_ALL_GATHER, OP_FLOAT32, 100 },
		[BROADCAST] = { OP_BROADCAST, OP_FLOAT32, 100 },
		[REDUCE_SCATTER] = { OP_REDUCE_SCATTER, OP_BFLOAT16, 100 },
		[REDUCE] = { OP_REDUCE, OP_FLOAT64, 100 },
		[BYTE_REDUCE] = { OP_ALL_REDUCE, OP_UINT8, 100 },
	};

	for (int i = ALL_REDUCE; i < PLAIN_OPS; i++) {
		struct host_op op =
			host_op_make(made->comm, ops[i].function, ops[i].count, ops[i].datatype);

		op.channels = 3;
		op.has_network = has_network;
		op.steps = 4;
		op.user_tag = 77;
		op.root = 2;
		plugin_host_play(made, &op);
		host_comm_settle(made->comm);
	}
}

static void play_pairs(struct plugin_host *made)
{
	struct host_op ops[3] = {
		host_op_make(made->comm, OP_SEND, 64, OP_FLOAT32),
		host_op_make(made->comm, OP_RECV, 64, OP_FLOAT32),
		host_op_make(made->comm, OP_ALL_TO_ALL, 64, OP_FLOAT32),
	};
	struct host_group group = { .ops = ops, .count = 2 };

	if (host_play_group(&made->user, &group) != OK)
		abort();
	plugin_host_play(made, &ops[2]);
	host_comm_settle(made->comm);
}

static void everything_shown_is_recorded(int release, bool has_kernel_events, bool has_network)
{
	struct plugin_host made = plugin_host_new(release, has_kernel_events, 2);
	uint64_t lost = plugin_host_lost();
	struct host_counts counts;
	const struct region_comm *comm;

	for (int i = 0; i < 3; i++) {
		play_plain(&made, has_network);
		play_pairs(&made);
	}
	host_comm_counts(made.comm, &counts);
	comm = plugin_host_comm(made.id);
	EXPECT_OF(release, comm->counts.issued == counts.shown);
	plugin_host_end(&made);
	EXPECT_OF(release, comm->counts.recorded == counts.shown);
	EXPECT_OF(release, plugin_host_records(made.id, OP_FUNCTIONS) == counts.shown);
	for (unsigned int i = 0; i < OP_FUNCTIONS; i++)
		if (plugin_host_records(made.id, i) != counts.shown_of[i])
			EXPECT_OF(release, plugin_host_records(made.id, i) == counts.shown_of[i]);
	EXPECT_OF(release, plugin_host_lost() == lost);
	/* NCCL's counters drift: up to 2.30 by the send to itself, since 2.31 by the Broadcast. */
	EXPECT_OF(release, (comm->counts.untrusted > 0) ==
				   (has_kernel_events && host_release_native(release) >= 4));
	EXPECT_OF(release, comm->counts.untracked == 0);
	EXPECT_OF(release, comm->counts.missed == 0);
}

static void fields_of_a_call(int release, uint32_t id)
{
	int version = host_release_native(release);
	const struct op_record *reduce = plugin_host_record(id, ALL_REDUCE);
	const struct op_record *gather = plugin_host_record(id, ALL_GATHER);
	const struct op_record *broadcast = plugin_host_record(id, BROADCAST);
	const struct op_record *bytes = plugin_host_record(id, BYTE_REDUCE);
	bool is_api_only = release >= 22900;

	EXPECT_OF(release, reduce->function == OP_ALL_REDUCE && reduce->datatype == OP_FLOAT32);
	EXPECT_OF(release, reduce->bytes == 4096 && reduce->count == 1024);
	EXPECT_OF(release, reduce->algorithm == OP_RING && reduce->protocol == OP_LL);
	EXPECT_OF(release, reduce->warps == 3 && reduce->channels == (version >= 4 ? 3 : 0));
	EXPECT_OF(release, reduce->issue_ns != 0 && reduce->task_ns >= reduce->issue_ns);
	EXPECT_OF(release, (reduce->launch_ns != 0) == (version >= 5));
	EXPECT_OF(release, (reduce->stream != 0) == (version >= 5));
	EXPECT_OF(release, reduce->user_tag == (version >= 7 ? 77 : 0));
	EXPECT_OF(release, plugin_host_record(id, REDUCE)->root == 2);
	EXPECT_OF(release, gather->bytes == (version >= 4 ? 1600 : OP_BYTES_UNKNOWN));
	EXPECT_OF(release, gather->count == (version >= 5 ? 100 : 400));
	EXPECT_OF(release, broadcast->bytes == 400);
	EXPECT_OF(release,
		  broadcast->datatype == (version >= 5 ? OP_FLOAT32 : OP_DATATYPE_UNKNOWN));
	EXPECT_OF(release, !!(broadcast->flags & OP_FLAG_API_ONLY) == is_api_only);
	EXPECT_OF(release, gather->datatype == broadcast->datatype);
	EXPECT_OF(release, bytes->bytes == 100 && bytes->datatype == OP_UINT8);
}

static void fields_of_the_execution(int release, uint32_t id)
{
	int version = host_release_native(release);
	const struct op_record *reduce = plugin_host_record(id, ALL_REDUCE);
	const struct comm_info *info = &plugin_host_comm(id)->info;

	EXPECT_OF(release, info->interface == (uint32_t)version && info->hash == 0xabcdef);
	EXPECT_OF(release, info->rank == 1);
	EXPECT_OF(release, info->nranks == (version >= 4 ? 4 : 0));
	EXPECT_OF(release, info->nnodes == (version >= 4 ? 2 : 0));
	EXPECT_OF(release, reduce->kernels_started == (version >= 3 ? 3 : 0));
	EXPECT_OF(release, reduce->kernels_stopped == reduce->kernels_started);
	EXPECT_OF(release, (reduce->gpu_start_ns != 0) == (version >= 4));
	EXPECT_OF(release,
		  reduce->time_source == (version >= 4 ? OP_TIME_KERNEL_GPU : OP_TIME_PROXY));
	EXPECT_OF(release, version < 4 || op_duration_ns(reduce) == 1000);
	EXPECT_OF(release, reduce->proxies_started == 6 && reduce->proxies_stopped == 6);
	EXPECT_OF(release, reduce->send_steps == 12 && reduce->recv_steps == 12);
	EXPECT_OF(release, reduce->send_bytes > 0 && reduce->recv_bytes > 0);
	EXPECT_OF(release, !(reduce->flags & OP_FLAG_CHANNELS_MISSING));
}

static void a_version_knows_what_it_can(int release)
{
	struct plugin_host made = plugin_host_new(release, true, 2);

	play_plain(&made, true);
	plugin_host_end(&made);
	fields_of_a_call(release, made.id);
	fields_of_the_execution(release, made.id);
}

/* For every function and datatype, calls and replays: the recorded bytes are those issued. */
static void sizes_are_right(int release)
{
	static const enum op_function functions[] = {
		OP_ALL_REDUCE, OP_ALL_GATHER, OP_REDUCE_SCATTER, OP_BROADCAST,
		OP_REDUCE,     OP_SEND,	      OP_RECV,
	};
	struct plugin_host made = plugin_host_new(release, true, 1);
	uint64_t wrong = 0, wrong_types = 0;

	for (size_t f = 0; f < ARRAY_LENGTH(functions); f++)
		for (enum op_datatype type = OP_INT8; type < OP_DATATYPES; type++) {
			struct host_op op = host_op_make(made.comm, functions[f], 100, type);
			struct host_group group = { .ops = &op, .count = 1 };

			plugin_host_play(&made, &op);
			if (host_graph_new(made.host, &group.capture) != OK ||
			    host_play_group(&made.user, &group) != OK)
				abort();
			host_graph_replay(group.capture);
			host_graph_free(group.capture);
			host_comm_settle(made.comm);
		}
	plugin_host_end(&made);
	for (uint32_t i = 0; i < recorder.region.ring_count; i++) {
		const struct op_record *op = &recorder.region.ring[i];
		bool is_in_bytes = op->function == OP_ALL_GATHER || op->function == OP_BROADCAST;
		bool is_sized =
			host_release_native(release) >= 4 ||
			(op->function != OP_ALL_GATHER && op->function != OP_REDUCE_SCATTER);
		unsigned int size = op_datatype_bytes(op->datatype);

		if (op->comm != made.id || op->sequence == 0)
			continue;
		/* Converted to bytes: the number of elements is unknown, too. */
		if (op->datatype == OP_DATATYPE_UNKNOWN && is_in_bytes)
			size = 1;
		wrong_types +=
			size == 0 || (op->datatype != OP_DATATYPE_UNKNOWN && op->count != 100);
		wrong += op->bytes != (is_sized ? op_message_bytes(op->function, op->count, size, 4)
						: OP_BYTES_UNKNOWN);
	}
	EXPECT_OF(release, wrong == 0);
	EXPECT_OF(release, wrong_types == 0);
}

static void graphs_are_captures_and_replays(int release, bool is_seen, enum host_path path)
{
	struct plugin_host made = plugin_host_new(release, is_seen, 1);
	struct host_op op = host_op_make(made.comm, OP_ALL_GATHER, 1024, OP_FLOAT32);
	struct host_group group = { .ops = &op, .count = 1 };
	struct host_counts counts;
	const struct region_comm *comm = plugin_host_comm(made.id);

	op.path = path;
	if (host_graph_new(made.host, &group.capture) != OK ||
	    host_play_group(&made.user, &group) != OK)
		abort();
	for (int i = 0; i < 5; i++)
		host_graph_replay(group.capture);
	plugin_host_play(&made, &op);
	host_graph_free(group.capture);
	host_comm_settle(made.comm);
	host_comm_counts(made.comm, &counts);
	plugin_host_end(&made);
	EXPECT_OF(release, comm->counts.issued == counts.shown);
	EXPECT_OF(release, comm->counts.recorded == counts.shown);
	EXPECT_OF(release,
		  comm->counts.captured == counts.captured || host_release_native(release) < 5);
	EXPECT_OF(release,
		  comm->counts.replayed == counts.replayed || host_release_native(release) < 5);
	EXPECT_OF(release, comm->counts.replays == comm->counts.replayed);
	EXPECT_OF(release, comm->counts.missed == 0);
	if (host_release_native(release) < 5 || path != HOST_PATH_KERNEL)
		return;
	EXPECT_OF(release, comm->counts.captured == 1);
	EXPECT_OF(release, comm->counts.replayed == (is_seen ? 5 : 0));
	EXPECT_OF(release, plugin_host_record(made.id, 1)->state == OP_CAPTURED);
	EXPECT_OF(release, plugin_host_record(made.id, 4)->captured_number == (is_seen ? 1 : 0));
}

/* In a group all calls come before the first task, however many there are. */
static void a_large_group_is_not_let_go_too_soon(int release, bool has_kernel_events)
{
	enum { CALLS = 144, ROUNDS = 40 };
	struct plugin_host made = plugin_host_new(release, has_kernel_events, 1);
	uint64_t late = recorder.region.header->lost[LOST_LATE_CHILD], used = 0, good = 0;
	struct host_op ops[CALLS];
	struct host_group group = { .ops = ops, .count = CALLS };
	bool is_surprised;

	for (int i = 0; i < CALLS; i++) {
		ops[i] = host_op_make(made.comm, i % 2 ? OP_RECV : OP_SEND, 64, OP_FLOAT32);
		ops[i].peer = 2 + i / 2 % 2;
	}
	for (int i = 0; i < ROUNDS; i++) {
		if (host_play_group(&made.user, &group) != OK)
			abort();
		host_comm_settle(made.comm);
	}
	for (uint32_t i = 0; i < recorder.region.live_count; i++)
		used += region_slot_is_used(recorder.region.live[i].word);
	/*
	 * Without kernel events nothing marks the end of one: only after 512 calls it is clear that
	 * none comes.
	 */
	EXPECT_OF(release, used < 800);
	plugin_host_end(&made);
	EXPECT_OF(release, plugin_host_comm(made.id)->counts.recorded == CALLS * ROUNDS);
	/* Unrequested kernel events surprise it once. */
	is_surprised = has_kernel_events && !(plugin_host_comm(made.id)->info.mask & ABI_KERNEL_CH);
	EXPECT_OF(release, recorder.region.header->lost[LOST_LATE_CHILD] == late || is_surprised);
	for (uint64_t i = 0; i < CALLS; i++) {
		const struct op_record *op =
			plugin_host_record(made.id, CALLS * (ROUNDS - 1) + i + 1);

		good += op->peer == ops[i].peer && op->match != 0 &&
			!(op->flags & OP_FLAG_API_ONLY);
	}
	EXPECT_OF(release, good == CALLS);
}

static void paths_without_kernels(int release)
{
	int version = host_release_native(release);
	struct plugin_host made = plugin_host_new(release, true, 1);
	struct host_op op = host_op_make(made.comm, OP_ALL_GATHER, 100, OP_FLOAT32);
	bool is_api_only = release < 23100;
	const struct op_record *record;
	struct host_counts counts;

	op.path = HOST_PATH_SYMMETRIC;
	plugin_host_play(&made, &op);
	op.path = HOST_PATH_COPY_ENGINE;
	plugin_host_play(&made, &op);
	op.path = HOST_PATH_RMA;
	plugin_host_play(&made, &op);
	op.path = HOST_PATH_SIMULATED;
	plugin_host_play(&made, &op);
	host_comm_counts(made.comm, &counts);
	plugin_host_end(&made);
	EXPECT_OF(release, plugin_host_comm(made.id)->counts.recorded == counts.shown);
	EXPECT_OF(release, plugin_host_comm(made.id)->counts.missed == 0);
	if (version < 5)
		return;
	record = plugin_host_record(made.id, 1);
	EXPECT_OF(release, !!(record->flags & OP_FLAG_API_ONLY) == is_api_only);
	EXPECT_OF(release, record->algorithm == (is_api_only ? 0 : OP_SYMMETRIC));
	EXPECT_OF(release, record->bytes == 1600);
	record = plugin_host_record(made.id, 2);
	if (version < 6)
		return;
	EXPECT_OF(release, record->flags & OP_FLAG_COPY_ENGINE);
	EXPECT_OF(release, record->algorithm == OP_COPY_ENGINE && record->bytes == 1600);
	EXPECT_OF(release, record->time_source != OP_TIME_KERNEL_GPU);
	EXPECT_OF(release, plugin_host_record(made.id, 3)->flags & OP_FLAG_API_ONLY);
}

/* SHARP: no channel number, kernel channels come nevertheless, proxy operations never stop. */
static void collnet_operations_come_to_an_end(int release, bool has_kernel_events)
{
	enum { OPS = TAP_IS_SLOW ? 700 : 6000 };
	struct plugin_host made = plugin_host_new(release, has_kernel_events, 2);
	struct host_op op = host_op_make(made.comm, OP_ALL_REDUCE, 1024, OP_FLOAT32);
	const struct region_comm *comm = plugin_host_comm(made.id);
	uint64_t lost = recorder.region.header->lost[LOST_PROXY_SLOT];

	op.path = HOST_PATH_COLLNET;
	op.algorithm = OP_COLLNET_DIRECT;
	op.has_network = true;
	op.channels = 4;
	/*
	 * Less than the host takes for one, otherwise the GPU's clock would run ahead of
	 * everything.
	 */
	op.duration_ns = 100;
	for (int i = 0; i < OPS; i++) {
		plugin_host_play(&made, &op);
		if (i % 64 == 0)
			host_comm_settle(made.comm);
	}
	host_comm_settle(made.comm);
	plugin_host_end(&made);
	EXPECT_OF(release, comm->counts.recorded == OPS);
	EXPECT_OF(release, comm->counts.untracked == 0);
	EXPECT_OF(release, comm->counts.timed == (has_kernel_events ? OPS : 0));
	EXPECT_OF(release, recorder.region.header->lost[LOST_PROXY_SLOT] == lost);
}

static void another_process_is_not_followed(int release)
{
	struct plugin_host made = plugin_host_new(release, false, 2);
	struct host_op op = host_op_make(made.comm, OP_ALL_REDUCE, 1024, OP_FLOAT32);
	struct host_foreign foreign = { .pid = 1,
					.context = (void *)UINT64_C(0x7f0012345678),
					.parent = (void *)UINT64_C(0x7f00deadbeef) };
	uint64_t before = recorder.region.header->odd[ODD_FOREIGN_PROCESS];
	uint32_t used = 0;

	op.has_network = true;
	op.steps = 4;
	if (host_play_foreign(&op, &foreign) != OK)
		abort();
	plugin_host_play(&made, &op);
	host_comm_settle(made.comm);
	plugin_host_end(&made);
	EXPECT_OF(release, recorder.region.header->odd[ODD_FOREIGN_PROCESS] > before);
	EXPECT_OF(release, plugin_host_comm(made.id)->counts.recorded == 1);
	EXPECT_OF(release, plugin_host_record(made.id, 1)->send_steps == 4);
	for (uint32_t i = 0; i < recorder.region.proxy_count; i++)
		used += region_slot_is_used(recorder.region.proxies[i].word);
	EXPECT_OF(release, used == 0);
}

/* ---- the early version 7 ------------------------------------------------------------------------ */

/* The last 128 bytes before unreadable memory. */
static struct abi_descr_v7 *early_descriptor(void)
{
	static unsigned char *end;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (end == NULL) {
		end = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
		if (end == MAP_FAILED || mprotect(end + page, page, PROT_NONE) != 0)
			abort();
		end += page;
	}
	memset(end - ABI_DESCR_V7_SURE, 0, ABI_DESCR_V7_SURE);
	return (struct abi_descr_v7 *)(void *)(end - ABI_DESCR_V7_SURE);
}

static void *early_start(void *context, struct abi_descr_v7 *descr, uint64_t type, void *parent)
{
	void *handle = NULL;

	descr->type = type;
	descr->parent = parent;
	ncclProfiler_v7.plugin.start_event(context, &handle, descr);
	ncclProfiler_v7.plugin.stop_event(handle);
	return handle;
}

static void *early_coll(void *context, void *api)
{
	struct abi_descr_v7 *descr = early_descriptor();

	descr->coll.function = "AllReduce";
	descr->coll.count = 8;
	descr->coll.datatype = "ncclFloat32";
	descr->coll.algorithm = "RING";
	descr->coll.protocol = "LL";
	return early_start(context, descr, ABI_COLL, api);
}

static void *early_coll_api(void *context, void *group, bool is_captured)
{
	struct abi_descr_v7 *descr = early_descriptor();

	descr->coll_api.function = "AllReduce";
	descr->coll_api.count = 8;
	descr->coll_api.datatype = "ncclFloat32";
	descr->coll_api.is_captured = is_captured;
	return early_start(context, descr, ABI_COLL_API, group);
}

static void early_pair(void *context)
{
	struct abi_descr_v7 *descr = early_descriptor();
	void *api;

	descr->p2p_api.function = "Send";
	descr->p2p_api.count = 8;
	descr->p2p_api.datatype = "ncclFloat32";
	/*
	 * The tag's location: four bytes of Coll's root, which are cleared, and four bytes of
	 * padding.
	 */
	memset((unsigned char *)descr + 68, 0xa5, 4);
	api = early_start(context, descr, ABI_P2P_API, NULL);
	descr = early_descriptor();
	descr->p2p.function = "Send";
	descr->p2p.count = 8;
	descr->p2p.datatype = "ncclFloat32";
	descr->p2p.peer = 1;
	early_start(context, descr, ABI_P2P, api);
}

static void an_early_version_7_is_not_read_past_its_end(void)
{
	static const uint64_t others[] = {
		ABI_GROUP,     ABI_PROXY_OP,	  ABI_PROXY_STEP, ABI_PROXY_CTRL,
		ABI_KERNEL_CH, ABI_NET_PLUGIN,	  ABI_GROUP_API,  ABI_KERNEL_LAUNCH,
		ABI_CE_COLL,   ABI_CE_SYNC,	  ABI_CE_BATCH,	  ABI_KERNEL_PHASE,
		1 << 16,       UINT64_C(1) << 63,
	};
	void *context = NULL, *captured;
	uint32_t id;
	int mask;

	ncclProfiler_v7.plugin.init(&context, 7, &mask, NULL, 1, 2, 0, NULL);
	id = hot_comm(context)->shared->info.id;
	early_coll(context, early_coll_api(context, NULL, false));
	early_coll(context, NULL);
	captured = early_coll_api(context, NULL, true);
	early_coll(context, captured);
	early_pair(context);
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
		early_start(context, early_descriptor(), others[i], NULL);
	ncclProfiler_v7.plugin.finalize(context);
	for (uint64_t number = 1; number <= 5; number++)
		EXPECT_THAT("early v7: there is no tag",
			    plugin_host_record(id, number) != NULL &&
				    plugin_host_record(id, number)->user_tag == 0);
	EXPECT_EQUAL(plugin_host_record(id, 4)->captured_number, 3);
	EXPECT_EQUAL(plugin_host_record(id, 5)->function, OP_SEND);
}

static void tags_reach_every_record(void)
{
	struct plugin_host made = plugin_host_new(HOST_NCCL_2_31, true, 1);
	struct host_op ops[2] = {
		host_op_make(made.comm, OP_ALL_REDUCE, 1024, OP_FLOAT32),
		host_op_make(made.comm, OP_SEND, 1024, OP_FLOAT32),
	};
	struct host_group group = { .ops = &ops[0], .count = 1 };

	ops[0].user_tag = UINT64_C(0xfeedface00000001);
	ops[1].user_tag = UINT64_C(0xfeedface00000002);
	plugin_host_play(&made, &ops[0]);
	plugin_host_play(&made, &ops[1]);
	if (host_graph_new(made.host, &group.capture) != OK ||
	    host_play_group(&made.user, &group) != OK)
		abort();
	host_graph_replay(group.capture);
	host_graph_replay(group.capture);
	host_graph_free(group.capture);
	host_comm_settle(made.comm);
	plugin_host_end(&made);
	for (uint64_t number = 1; number <= 5; number++)
		EXPECT_EQUAL(plugin_host_record(made.id, number)->user_tag,
			     ops[number == 2].user_tag);
	EXPECT(plugin_host_record(made.id, 5)->flags & OP_FLAG_REPLAY);
}

int main(void)
{
	plugin_host_setup("flight");
	/* Small, because it is searched all the time. */
	setenv("RINGSIDE_BUFFER", "1MiB", 1);
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		everything_shown_is_recorded(releases[i], false, false);
		everything_shown_is_recorded(releases[i], true, false);
		everything_shown_is_recorded(releases[i], true, true);
		a_version_knows_what_it_can(releases[i]);
		graphs_are_captures_and_replays(releases[i], true, HOST_PATH_KERNEL);
		graphs_are_captures_and_replays(releases[i], false, HOST_PATH_KERNEL);
		graphs_are_captures_and_replays(releases[i], true, HOST_PATH_COPY_ENGINE);
		graphs_are_captures_and_replays(releases[i], true, HOST_PATH_SYMMETRIC);
		paths_without_kernels(releases[i]);
		another_process_is_not_followed(releases[i]);
		a_large_group_is_not_let_go_too_soon(releases[i], false);
		a_large_group_is_not_let_go_too_soon(releases[i], true);
	}
	for (size_t i = 4; i < ARRAY_LENGTH(releases); i++) {
		collnet_operations_come_to_an_end(releases[i], true);
		collnet_operations_come_to_an_end(releases[i], false);
	}
	/* Last, because so many kinds of operations fill the table of totals. */
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++)
		sizes_are_right(releases[i]);
	an_early_version_7_is_not_read_past_its_end();
	tags_reach_every_record();
	return tap_done();
}
