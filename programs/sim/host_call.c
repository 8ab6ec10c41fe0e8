/*
 * The user's calls: what of them a release shows, their API events, and the tasks that they become
 * (one; for AlltoAll and its like one Send or Recv per peer).
 */
#include "common/order.h"
#include "programs/sim/host_play.h"

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

/* API events, and then none of a kernel. */
static bool task_is_hidden(const struct host_op *op)
{
	int release = op->comm->host->config.release;

	if (op->path == HOST_PATH_SYMMETRIC)
		return release < 23100;
	return op->function == OP_BROADCAST && release >= 22900 &&
	       !op->comm->host->config.no_allgatherv;
}

/* ... because it never gets as far as a kernel. */
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

void host_call_group_end(struct play *play)
{
	struct host_comm *comm = play->api_comm;

	if (comm == NULL || play->user->group_api == NULL)
		return;
	host_state_null(&comm->plugin, play->user->group_api, ABI_GROUP_END_API_START);
	bump_relaxed(&host_lane_counts(comm, LANE_USER)->states[ABI_GROUP_END_API_START], 1);
}

void host_call_group_stop(struct play *play)
{
	struct host_comm *comm = play->api_comm;

	if (comm == NULL || play->user->group_api == NULL)
		return;
	(void)host_stop(&comm->plugin, play->user->group_api);
	bump_relaxed(&host_lane_counts(comm, LANE_USER)->stops[BIT_GROUP_API], 1);
	play->user->group_api = NULL;
	play->api_comm = NULL;
}

/* NCCL clears the P2pApi handle and forgets to clear that of CollApi: once events are no longer
 * asked for, the old one is stopped again with every collective. */
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

/* AlltoAll, Gather and Scatter are sends and receives, this rank's own included. */
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

void host_call(struct play *play, const struct host_op *op)
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

size_t host_call_tasks(const struct host_op *op)
{
	return is_expanded(op) ? 2 * (size_t)op->comm->config.nranks : 1;
}
