/*
 * The user's calls: what a release shows of them, their API events, and the tasks they become (one; for AlltoAll
 * etc. one Send or Recv per peer).
 */
#include "sim/host.h"
#include "sim/host_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/order.h"
#include "sim/host_event.h"

/* ---- operations --------------------------------------------------------------------------------- */

/* NCCL's spelling, and v1's numbers. */
struct host_names {
	const char *function;
	const char *datatype;
	const char *algorithm;
	const char *protocol;
	uint8_t function_v1;
	uint8_t datatype_v1;
	uint8_t algorithm_v1;
	uint8_t protocol_v1;
};

static const uint8_t functions_v1[OP_FUNCTIONS] = {
	[OP_BROADCAST] = 0,  [OP_REDUCE] = 1,	 [OP_ALL_GATHER] = 2, [OP_REDUCE_SCATTER] = 3,
	[OP_ALL_REDUCE] = 4, [OP_SEND_RECV] = 5, [OP_SEND] = 6,	      [OP_RECV] = 7,
};

/* ncclUint8 is missing in NCCL's table and printed as "Unknown". */
static const char *host_datatype_name(uint8_t datatype)
{
	return op_name_of_nccl(OP_NAMES_DATATYPE,
			       datatype == OP_UINT8 ? OP_DATATYPE_UNKNOWN : datatype);
}

static const char *host_function_name(uint8_t function)
{
	return function == OP_FUNCTION_UNKNOWN ? "Invalid" : op_function_name(function);
}

static struct host_names host_names_of(const struct host_op *op, uint8_t function, uint8_t datatype)
{
	return (struct host_names){
		.function = host_function_name(function),
		.datatype = host_datatype_name(datatype),
		.algorithm = op_algorithm_name(op->algorithm),
		.protocol = op_protocol_name(op->protocol),
		.function_v1 = functions_v1[function],
		.datatype_v1 = (uint8_t)(datatype - OP_INT8),
		.algorithm_v1 = (uint8_t)(op->algorithm - OP_TREE),
		.protocol_v1 = (uint8_t)(op->protocol - OP_LL),
	};
}

struct host_op host_op_make(struct host_comm *comm, enum op_function function, uint64_t count,
			    enum op_datatype datatype)
{
	const struct host_comm_config *config = &comm->config;

	return (struct host_op){
		.comm = comm,
		.function = (uint8_t)function,
		.datatype = (uint8_t)datatype,
		.algorithm = OP_RING,
		.protocol = OP_LL,
		.warps = 3,
		.channels = 1,
		.count = count,
		.peer = (config->rank + (function == OP_RECV ? config->nranks - 1 : 1)) %
			config->nranks,
		.send_buffer = (const void *)(uintptr_t)0x7f0000000000,
		.recv_buffer = (const void *)(uintptr_t)0x7f4000000000,
		.stream = (void *)(uintptr_t)0x5500000010,
		.steps = 1,
		.chunk_bytes = 512 << 10,
		.duration_ns = 1000,
		.stuck_channel = -1,
		.stuck_peer = -1,
	};
}

uint64_t host_op_bytes(const struct host_op *op)
{
	unsigned int size = op_datatype_bytes(op->datatype);

	return op->count * (size ? size : 1);
}

static bool host_op_is_possible(const struct host_op *op)
{
	const struct host_comm_config *config;

	if (op->comm == NULL)
		return false;
	config = &op->comm->config;
	return op->function < OP_FUNCTIONS && op->datatype < OP_DATATYPES &&
	       op->algorithm <= OP_PAT && op->protocol <= OP_SIMPLE &&
	       op->path <= HOST_PATH_SIMULATED && op->stuck <= HOST_STUCK_EDGES &&
	       op->channels >= 1 && op->channels <= HOST_CHANNELS && op->edge_count <= HOST_EDGES &&
	       op->peer >= 0 && op->peer < config->nranks && op->root >= 0 &&
	       op->root < config->nranks && (op->steps > 0 || !op->has_network);
}

/* A rooted operation's ring is open: it starts after or at the root. */
static bool is_ring_cut(const struct host_op *op, bool is_send)
{
	int nranks = op->comm->config.nranks, rank = op->comm->config.rank;
	int before_root = (op->root + nranks - 1) % nranks;

	if (op->function == OP_BROADCAST)
		return is_send ? rank == before_root : rank == op->root;
	if (op->function == OP_REDUCE)
		return is_send ? rank == op->root : rank == (op->root + 1) % nranks;
	return false;
}

static uint8_t ring_edges(const struct host_op *op, struct host_edge edges[HOST_EDGES])
{
	int nranks = op->comm->config.nranks, rank = op->comm->config.rank;
	uint8_t count = 0;

	if (!is_ring_cut(op, false))
		edges[count++] = (struct host_edge){ .peer = (rank + nranks - 1) % nranks };
	if (!is_ring_cut(op, true))
		edges[count++] = (struct host_edge){ .peer = (rank + 1) % nranks, .is_send = true };
	return count;
}

/* Send or Recv: the edge given by the user, which can have its own times. */
static struct host_edge peer_edge(const struct host_op *op, bool is_send, int32_t peer)
{
	for (unsigned int i = 0; i < op->edge_count; i++)
		if (op->edges[i].peer == peer && op->edges[i].is_send == is_send)
			return op->edges[i];
	return (struct host_edge){ .peer = peer, .is_send = is_send };
}

uint8_t host_op_edges(const struct host_op *op, uint8_t function, int32_t peer,
		      struct host_edge edges[HOST_EDGES])
{
	if (!op->has_network)
		return 0;
	if (function == OP_SEND || function == OP_RECV) {
		edges[0] = peer_edge(op, function == OP_SEND, peer);
		return 1;
	}
	if (op->edge_count == 0)
		return ring_edges(op, edges);
	memcpy(edges, op->edges, op->edge_count * sizeof(edges[0]));
	return op->edge_count;
}

/* Coll, P2p and copy-engine events, and counting which calls were shown. */

enum { BIT_COLL = 1, BIT_P2P = 2, BIT_CE_COLL = 12, BIT_CE_SYNC = 13, BIT_CE_BATCH = 14 };

/* AllGather and Broadcast are converted to bytes when they are enqueued. */
static bool is_counted_in_bytes(uint8_t function)
{
	return function == OP_ALL_GATHER || function == OP_BROADCAST;
}

/* A plugin of v1 to v3 under 2.27 or later is wrapped: it gets neither name nor hash. */
static uint64_t hash_shown(const struct host_comm *comm)
{
	return comm->plugin.release >= 22700 ? 0 : comm->config.hash;
}

static uint64_t traffic_bytes(const struct host_op *op)
{
	uint64_t nranks = (uint64_t)op->comm->config.nranks, bytes = host_op_bytes(op);

	if (op->function == OP_ALL_REDUCE)
		return 2 * bytes;
	if (op->function == OP_ALL_GATHER || op->function == OP_REDUCE_SCATTER)
		return nranks * bytes;
	return bytes;
}

static void coll_start(struct host_plan *plan, struct host_task *task)
{
	const struct host_op *op = task->op;
	bool is_bytes = is_counted_in_bytes(op->function);
	bool is_symmetric = op->path == HOST_PATH_SYMMETRIC;
	struct host_names names =
		host_names_of(op, op->function, is_bytes ? OP_INT8 : op->datatype);
	struct host_coll coll = {
		.parent_api = task->api,
		.parent_group = plan->group,
		.sequence = load_relaxed(&plan->comm->sequence[op->function]),
		.function = names.function,
		.datatype = names.datatype,
		.algorithm = names.algorithm,
		.protocol = is_symmetric ? "" : names.protocol,
		.send_buffer = op->send_buffer,
		.recv_buffer = op->recv_buffer,
		.count = is_bytes ? host_op_bytes(op) : op->count,
		.root = op->root,
		.channels = task->channels,
		.warps = op->warps,
		.is_symmetric = is_symmetric,
		.kernel_variant = is_symmetric ? "AllReduce_RSxLD_AGxST" : NULL,
		.user_tag = op->user_tag,
		.comm_hash = hash_shown(plan->comm),
		.traffic_bytes = plan->comm->plugin.release >= 22700 ? 0 : traffic_bytes(op),
		.function_v1 = names.function_v1,
		.datatype_v1 = names.datatype_v1,
		.algorithm_v1 = names.algorithm_v1,
		.protocol_v1 = names.protocol_v1,
		.is_collnet = op->path == HOST_PATH_COLLNET,
		.is_nvls = op->algorithm == OP_NVLS || op->algorithm == OP_NVLS_TREE,
	};

	host_start_coll(&plan->comm->plugin, host_call_of(plan->comm), &task->handle, &coll);
}

static void p2p_start(struct host_plan *plan, struct host_task *task)
{
	const struct host_op *op = task->op;
	struct host_names names = host_names_of(op, task->function, op->datatype);
	bool is_garbage = plan->comm->plugin.version == 4 && plan->comm->plugin.release >= 22800;
	struct host_p2p p2p = {
		.parent_api = task->api,
		.parent_group = plan->group,
		.function = names.function,
		.datatype = names.datatype,
		.buffer = task->function == OP_SEND ? op->send_buffer : op->recv_buffer,
		.count = op->count,
		.peer = task->peer,
		/* The wrapper for v4 never sets this. */
		.channels = is_garbage ? 0xe0 : task->channels,
		.user_tag = op->user_tag,
		.comm_hash = hash_shown(plan->comm),
		.function_v1 = names.function_v1,
		.datatype_v1 = names.datatype_v1,
	};

	host_start_p2p(&plan->comm->plugin, host_call_of(plan->comm), &task->handle, &p2p);
}

/* Counts calls as shown, hidden or API only: see struct host_counts. */
static void task_count(const struct host_plan *plan, const struct host_task *task,
		       struct host_counts *counts, bool is_started, bool is_replay)
{
	bool is_call_event = plan->comm->plugin.version < 5;

	if (is_started)
		bump_relaxed(&counts->starts[task->is_p2p ? BIT_P2P : BIT_COLL], 1);
	if (is_replay && is_started) {
		bump_relaxed(&counts->shown, 1);
		bump_relaxed(&counts->replayed, 1);
		bump_relaxed(&counts->shown_of[task->function], 1);
	} else if (!is_replay && is_call_event && is_started) {
		bump_relaxed(&counts->shown, 1);
		bump_relaxed(&counts->captured, plan->is_captured ? 1 : 0);
		bump_relaxed(&counts->shown_of[task->function], 1);
	} else if (!is_replay && is_call_event) {
		bump_relaxed(&counts->hidden, 1);
	} else if (!is_replay && !is_started && !plan->is_captured && task->is_shown) {
		bump_relaxed(&counts->api_only, 1);
	}
}

/*
 * Sequence numbers of collectives: 2.23 to 2.25 count those that are shown, later releases all except captured ones
 * without kernel channels.
 */
static void sequence_bump(const struct host_plan *plan, const struct host_task *task,
			  bool is_started)
{
	bool is_bumped = plan->comm->plugin.release < 22600
				 ? is_started
				 : !plan->is_captured || task->mask & ABI_KERNEL_CH;

	/* Before 2.31 symmetric kernels have no task to be counted. */
	if (task->is_hidden && task->op->path == HOST_PATH_SYMMETRIC)
		return;
	if (is_bumped && !task->is_p2p)
		add_relaxed(&plan->comm->sequence[task->op->function], 1);
}

void host_task_start(struct host_plan *plan, struct host_task *task, struct host_counts *counts,
		     bool is_replay)
{
	enum abi_event event = task->is_p2p ? ABI_P2P : ABI_COLL;
	bool is_started = !task->is_hidden && host_comm_is_asked(plan->comm, task->mask, event);

	/* Before 2.28 there are no tasks without a handle of the group. */
	if (plan->comm->plugin.release < 22800 && plan->group == NULL)
		is_started = false;
	if (is_started && task->is_p2p)
		p2p_start(plan, task);
	else if (is_started)
		coll_start(plan, task);
	else
		task->handle = NULL;
	task_count(plan, task, counts, is_started, is_replay);
	sequence_bump(plan, task, is_started);
}

void host_task_stop(struct host_plan *plan, struct host_task *task, struct host_counts *counts)
{
	const struct host_plugin *plugin = &plan->comm->plugin;
	bool is_asked = host_comm_is_asked(plan->comm, task->mask, ABI_COLL);

	if (task->is_hidden)
		return;
	if (task->handle == NULL) {
		/* 2.23 to 2.25 stop without checking. */
		if (plugin->release < 22600 && plan->group && is_asked) {
			(void)host_stop(plugin, NULL);
			bump_relaxed(&counts->null_calls, 1);
		}
		return;
	}
	(void)host_stop(plugin, task->handle);
	bump_relaxed(&counts->stops[task->is_p2p ? BIT_P2P : BIT_COLL], 1);
	if (task->quirks & HOST_QUIRK_STOP_TWICE) {
		(void)host_stop(plugin, task->handle);
		bump_relaxed(&counts->extra_stops, 1);
	}
}

/* ---- copy engines ---------------------------------------------------------------------------- */

/* A copy-engine barrier; the mask is read when it runs, not when the API was called. */
static void ce_sync(struct host_comm *comm, struct host_counts *counts, void *parent)
{
	void *handle = NULL;

	if (host_comm_is_asked(comm, load_relaxed(&comm->host->mask), ABI_CE_SYNC)) {
		host_start_ce_sync(&comm->plugin, host_call_of(comm), &handle, parent,
				   comm->ce_is_complete, comm->config.nranks);
		bump_relaxed(&counts->starts[BIT_CE_SYNC], 1);
	}
	comm->ce_sequence++;
	comm->ce_is_complete = !comm->ce_is_complete;
	if (handle == NULL)
		return;
	(void)host_stop(&comm->plugin, handle);
	bump_relaxed(&counts->stops[BIT_CE_SYNC], 1);
}

static void ce_batch(const struct host_op *op, struct host_counts *counts, void *parent)
{
	struct host_comm *comm = op->comm;
	struct host_ce_batch batch = {
		.parent = parent,
		.ops = comm->config.nranks,
		.total_bytes = host_op_bytes(op) * (uint64_t)comm->config.nranks,
	};
	void *handle = NULL;

	if (!host_comm_is_asked(comm, load_relaxed(&comm->host->mask), ABI_CE_BATCH))
		return;
	host_start_ce_batch(&comm->plugin, host_call_of(comm), &handle, &batch);
	bump_relaxed(&counts->starts[BIT_CE_BATCH], 1);
	if (handle == NULL)
		return;
	(void)host_stop(&comm->plugin, handle);
	bump_relaxed(&counts->stops[BIT_CE_BATCH], 1);
}

static void ce_coll_start(struct host_task *task)
{
	const struct host_op *op = task->op;
	const struct host_comm *comm = op->comm;
	bool is_bytes = is_counted_in_bytes(op->function);
	struct host_ce_coll ce = {
		.parent = task->api,
		.sequence = comm->ce_sequence,
		.function = host_function_name(op->function),
		.datatype = host_datatype_name(is_bytes ? OP_INT8 : op->datatype),
		.sync_strategy = "MC",
		.send_buffer = op->send_buffer,
		.recv_buffer = op->recv_buffer,
		.count = is_bytes ? host_op_bytes(op) : op->count,
		.root = op->root,
		.ce_sequence = comm->ce_sequence,
		.stream = op->stream,
		.user_tag = op->user_tag,
	};

	host_start_ce_coll(&comm->plugin, host_call_of(comm), &task->handle, &ce);
}

void host_task_copy_engine(struct host_task *task, enum host_lane lane)
{
	struct host_comm *comm = task->op->comm;
	struct host_counts *counts = host_lane_counts(comm, lane);

	if (!host_comm_is_asked(comm, load_relaxed(&comm->host->mask), ABI_CE_COLL)) {
		if (task->is_shown)
			bump_relaxed(&counts->api_only, 1);
		return;
	}
	ce_coll_start(task);
	bump_relaxed(&counts->starts[BIT_CE_COLL], 1);
	if (task->handle == NULL)
		return;
	ce_sync(comm, counts, task->handle);
	ce_batch(task->op, counts, task->handle);
	ce_sync(comm, counts, task->handle);
	(void)host_stop(&comm->plugin, task->handle);
	bump_relaxed(&counts->stops[BIT_CE_COLL], 1);
}

enum { BIT_GROUP_API = 8, BIT_COLL_API = 9, BIT_P2P_API = 10 };

/* ---- what a release shows -------------------------------------------------------------------- */

static bool is_p2p(uint8_t function)
{
	return function == OP_SEND || function == OP_RECV;
}

/* Dropped before NCCL makes any event. */
static bool call_is_unseen(const struct host_op *op)
{
	int release = op->comm->host->config.release;

	if (!is_p2p(op->function) && (op->comm->config.nranks == 1 || op->count == 0))
		return true;
	return op->path == HOST_PATH_RMA || (op->path == HOST_PATH_SYMMETRIC && release < 22800) ||
	       (op->path == HOST_PATH_COPY_ENGINE && release < 22900);
}

/* API events, but no kernel events. */
static bool task_is_hidden(const struct host_op *op)
{
	int release = op->comm->host->config.release;

	if (op->path == HOST_PATH_SYMMETRIC)
		return release < 23100;
	return op->function == OP_BROADCAST && release >= 22900 &&
	       !op->comm->host->config.no_allgatherv;
}

/* ... because it never gets a kernel. */
static bool task_is_dropped(const struct host_op *op, bool is_self, unsigned int quirks)
{
	return op->path == HOST_PATH_SIMULATED || quirks & HOST_QUIRK_NO_COLL ||
	       (is_self && op->send_buffer == op->recv_buffer);
}

/* ---- API events ------------------------------------------------------------------------------ */

static void group_api_start(struct play *play, struct host_comm *comm)
{
	struct host_counts *counts = host_lane_counts(comm, LANE_USER);
	int depth = play->group->depth;

	if (play->api_comm || !host_comm_is_asked(comm, play->user->mask, ABI_GROUP_API))
		return;
	if (depth == 0)
		depth = play->group->count > 1 ? 2 : 1;
	host_start_group_api(&comm->plugin, host_call_of(comm), &play->user->group_api,
			     play->group->capture != NULL, depth);
	bump_relaxed(&counts->starts[BIT_GROUP_API], 1);
	play->api_comm = comm;
	if (play->user->group_api == NULL)
		return;
	host_state_null(&comm->plugin, play->user->group_api, ABI_GROUP_START_API_STOP);
	bump_relaxed(&counts->states[ABI_GROUP_START_API_STOP], 1);
}

/* GroupApi: ncclGroupEnd starts or returns. */
static void host_call_group_end(struct play *play)
{
	struct host_comm *comm = play->api_comm;

	if (comm == NULL || play->user->group_api == NULL)
		return;
	host_state_null(&comm->plugin, play->user->group_api, ABI_GROUP_END_API_START);
	bump_relaxed(&host_lane_counts(comm, LANE_USER)->states[ABI_GROUP_END_API_START], 1);
}

static void host_call_group_stop(struct play *play)
{
	struct host_comm *comm = play->api_comm;

	if (comm == NULL || play->user->group_api == NULL)
		return;
	(void)host_stop(&comm->plugin, play->user->group_api);
	bump_relaxed(&host_lane_counts(comm, LANE_USER)->stops[BIT_GROUP_API], 1);
	play->user->group_api = NULL;
	play->api_comm = NULL;
}

/*
 * NCCL clears the P2pApi handle but not that of CollApi: once events are no longer requested, the old one is
 * stopped again with every collective.
 */
static void api_stop(struct host_comm *comm, void **handle, unsigned int bit, bool is_started)
{
	struct host_counts *counts = host_lane_counts(comm, LANE_USER);

	if (*handle == NULL || comm->plugin.version < 5)
		return;
	(void)host_stop(&comm->plugin, *handle);
	if (is_started)
		bump_relaxed(&counts->stops[bit], 1);
	else
		bump_relaxed(&counts->extra_stops, 1);
	if (bit == BIT_P2P_API)
		*handle = NULL;
}

static void task_api(struct play *play, struct host_task *task)
{
	struct host_comm *comm = task->op->comm;
	struct host_user *user = play->user;
	struct host_counts *counts = host_lane_counts(comm, LANE_USER);
	void **handle = task->is_p2p ? &user->p2p_api : &user->coll_api;
	unsigned int bit = task->is_p2p ? BIT_P2P_API : BIT_COLL_API;
	struct host_api api = {
		.parent = user->group_api,
		.function = host_function_name(task->function),
		.datatype = host_datatype_name(task->op->datatype),
		.count = task->op->count,
		.root = task->op->root,
		.is_captured = play->group->capture != NULL,
		.stream = task->op->stream,
		.user_tag = task->op->user_tag,
	};

	task->is_shown =
		host_comm_is_asked(comm, task->mask, task->is_p2p ? ABI_P2P_API : ABI_COLL_API);
	if (task->is_shown) {
		if (task->is_p2p)
			host_start_p2p_api(&comm->plugin, host_call_of(comm), handle, &api);
		else
			host_start_coll_api(&comm->plugin, host_call_of(comm), handle, &api);
		bump_relaxed(&counts->starts[bit], 1);
		task->api = *handle;
	}
	task->group_api = user->group_api;
	api_stop(comm, handle, bit, task->is_shown);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static unsigned int quirks_choose(const struct host_op *op)
{
	const struct host_config *config = &op->comm->host->config;
	bool is_chosen = config->quirk_one_in <= 1 ||
			 host_random(&op->comm->random) % config->quirk_one_in == 0;

	return op->quirks | (config->quirks && is_chosen ? config->quirks : 0);
}

static void call_count(const struct play *play, const struct host_task *task)
{
	struct host_counts *counts = host_lane_counts(task->op->comm, LANE_USER);
	bool has_api = task->op->comm->plugin.version >= 5;

	bump_relaxed(&counts->calls, 1);
	if (has_api && task->is_shown) {
		bump_relaxed(&counts->shown, 1);
		bump_relaxed(&counts->shown_of[task->function], 1);
		bump_relaxed(&counts->captured, play->group->capture ? 1 : 0);
	} else if (has_api) {
		bump_relaxed(&counts->hidden, 1);
	}
}

static void task_drop(const struct play *play, const struct host_task *task)
{
	struct host_counts *counts = host_lane_counts(task->op->comm, LANE_USER);

	if (task->op->comm->plugin.version < 5)
		bump_relaxed(&counts->hidden, 1);
	else if (task->is_shown && play->group->capture == NULL)
		bump_relaxed(&counts->api_only, 1);
}

static void task_add(struct play *play, const struct host_op *op, uint8_t function, int32_t peer)
{
	struct host_task *task = &play->tasks[play->count];
	unsigned int quirks = quirks_choose(op);

	*task = (struct host_task){
		.op = op,
		.mask = play->user->mask,
		.quirks = quirks,
		.releases = load_relaxed(&op->comm->releases),
		.peer = peer,
		.function = function,
		.channels = (uint8_t)op->channels,
		.is_p2p = is_p2p(function),
		.is_self = is_p2p(function) && peer == op->comm->config.rank,
		.is_hidden = task_is_hidden(op),
	};
	if (op->path == HOST_PATH_COLLNET)
		task->channels = 0;
	if (quirks & HOST_QUIRK_CHANNELS_GARBAGE)
		task->channels = (uint8_t)host_random(&op->comm->random);
	task_api(play, task);
	call_count(play, task);
	if (task_is_dropped(op, task->is_self, quirks))
		task_drop(play, task);
	else
		play->count++;
}

/* AlltoAll, Gather and Scatter are sends and receives, including those to its own rank. */
static bool has_part(const struct host_op *op, uint8_t function, int32_t peer)
{
	int rank = op->comm->config.rank;
	bool is_to_root = function == OP_SEND ? peer == op->root : rank == op->root;
	bool is_from_root = function == OP_SEND ? rank == op->root : peer == op->root;

	return op->function == OP_ALL_TO_ALL || (op->function == OP_GATHER && is_to_root) ||
	       (op->function == OP_SCATTER && is_from_root);
}

static bool is_expanded(const struct host_op *op)
{
	return op->path == HOST_PATH_KERNEL &&
	       (op->function == OP_ALL_TO_ALL || op->function == OP_GATHER ||
		op->function == OP_SCATTER);
}

/* The call itself: GroupApi if it is the first, CollApi or P2pApi, and the tasks. */
static void host_call(struct play *play, const struct host_op *op)
{
	struct host_comm *comm = op->comm;

	if (call_is_unseen(op)) {
		struct host_counts *counts = host_lane_counts(comm, LANE_USER);

		bump_relaxed(&counts->calls, 1);
		bump_relaxed(&counts->hidden, 1);
		return;
	}
	play->user->mask = load_relaxed(&comm->host->mask);
	group_api_start(play, comm);
	if (!is_expanded(op)) {
		task_add(play, op, op->function, op->peer);
		return;
	}
	for (int32_t peer = 0; peer < comm->config.nranks; peer++) {
		if (has_part(op, OP_SEND, peer))
			task_add(play, op, OP_SEND, peer);
		if (has_part(op, OP_RECV, peer))
			task_add(play, op, OP_RECV, peer);
	}
}

/* Maximum number of tasks of this call. */
static size_t host_call_tasks(const struct host_op *op)
{
	return is_expanded(op) ? 2 * (size_t)op->comm->config.nranks : 1;
}

/* Runs a group of operations, and proxy operations of other processes. */

static enum status group_check(const struct host_group *group, size_t *tasks)
{
	*tasks = 0;
	for (size_t i = 0; i < group->count; i++) {
		const struct host_op *op = &group->ops[i];

		if (!host_op_is_possible(op))
			return ERR_RANGE;
		if (load_relaxed(&op->comm->is_dead))
			return ERR_GONE;
		*tasks += host_call_tasks(op);
	}
	return OK;
}

static enum status play_run(struct play *play)
{
	enum status status, later = OK;

	for (size_t i = 0; i < play->group->count; i++) {
		if (play->group->between != NULL)
			play->group->between(play->group->between_arg, i);
		host_call(play, &play->group->ops[i]);
		if (i == 0 && play->group->flags & HOST_GROUP_SPLIT_API)
			host_call_group_stop(play);
	}
	host_call_group_end(play);
	status = host_launch_wait(play);
	if (status == OK)
		status = host_launch(play, true);
	host_call_group_stop(play);
	if (status == OK)
		later = host_launch(play, false);
	return status == OK ? later : status;
}

enum status host_play_group(struct host_user *user, const struct host_group *group)
{
	struct play play = { .user = user, .group = group };
	enum status status;
	size_t tasks;

	status = group_check(group, &tasks);
	if (status != OK || tasks == 0)
		return status;
	play.tasks = play.few;
	if (tasks > PLAY_FEW)
		play.tasks = malloc(tasks * sizeof(*play.tasks));
	if (play.tasks == NULL)
		return ERR_NO_SPACE;
	status = play_run(&play);
	if (play.tasks != play.few)
		free(play.tasks);
	return status;
}

enum status host_play(struct host_user *user, const struct host_op *op)
{
	struct host_group group = { .ops = op, .count = 1 };

	return host_play_group(user, &group);
}

enum status host_play_foreign(const struct host_op *op, const struct host_foreign *foreign)
{
	struct host_work work = {
		.op = *op,
		.context = foreign->context,
		.parent = foreign->parent,
		.pid = foreign->pid,
		.is_foreign = true,
		.mask = load_relaxed(&op->comm->host->mask),
		.release = load_relaxed(&op->comm->releases),
		.step_bytes = op->chunk_bytes,
		.launch_ns = host_now(op->comm->host),
	};

	if (!host_op_is_possible(op) || !op->has_network)
		return ERR_RANGE;
	if (load_relaxed(&op->comm->is_dead))
		return ERR_GONE;
	work.op.edge_count = host_op_edges(op, op->function, op->peer, work.op.edges);
	return host_engine_post(op->comm->proxy, &work);
}
