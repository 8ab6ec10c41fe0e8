/*
 * Coll, P2p and the copy engine's events, and the count of which calls were shown.
 */
#include "common/order.h"
#include "programs/sim/host_inside.h"

enum { BIT_COLL = 1, BIT_P2P = 2, BIT_CE_COLL = 12, BIT_CE_SYNC = 13, BIT_CE_BATCH = 14 };

/* AllGather and Broadcast are turned into bytes when they are queued. */
static bool is_counted_in_bytes(uint8_t function)
{
	return function == OP_ALL_GATHER || function == OP_BROADCAST;
}

/* A plugin of v1 to v3 under 2.27 or later is wrapped: neither name nor hash get through. */
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
		/* The wrapper for v4 never fills this in. */
		.channels = is_garbage ? 0xe0 : task->channels,
		.user_tag = op->user_tag,
		.comm_hash = hash_shown(plan->comm),
		.function_v1 = names.function_v1,
		.datatype_v1 = names.datatype_v1,
	};

	host_start_p2p(&plan->comm->plugin, host_call_of(plan->comm), &task->handle, &p2p);
}

/* Which calls count as shown, hidden or API only: see struct host_counts. */
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

/* Numbers of collectives: 2.23 to 2.25 count those that are shown, later ones all but captured ones
 * without kernel channels. */
static void sequence_bump(const struct host_plan *plan, const struct host_task *task,
			  bool is_started)
{
	bool is_bumped = plan->comm->plugin.release < 22600
				 ? is_started
				 : !plan->is_captured || task->mask & ABI_KERNEL_CH;

	/* Before 2.31 symmetric kernels leave no task behind to be counted. */
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

	/* Before 2.28 no handle for the group means no tasks. */
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
		/* 2.23 to 2.25 stop without looking. */
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

/* A barrier of copy engines; its mask is read when it happens, not when the API was called. */
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
