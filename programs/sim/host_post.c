/*
 * What a plan gives to the engines: for each task a work with its channels, connections, times and
 * troubles.
 */
#include "base/order.h"
#include "programs/sim/host_inside.h"

static bool task_has_network(const struct host_task *task)
{
	return task->op->has_network && !task->is_self;
}

/* 2.31: stamps of symmetric kernels only outside graphs. */
static bool task_has_kernel(const struct host_plan *plan, const struct host_task *task)
{
	if (task->is_self || task->is_hidden ||
	    (plan->is_captured && task->op->path == HOST_PATH_SYMMETRIC))
		return false;
	return host_comm_is_asked(plan->comm, task->mask, ABI_KERNEL_CH);
}

/* The device counts what no poll was posted for. */
static bool task_is_counted(const struct host_plan *plan, const struct host_task *task)
{
	return (task->is_self || task->is_hidden) && task->quirks & HOST_QUIRK_SELF_DRIFT &&
	       host_comm_is_asked(plan->comm, task->mask, ABI_KERNEL_CH);
}

static void work_fill(const struct host_plan *plan, const struct host_task *task,
		      struct host_work *work)
{
	const struct host_op *op = task->op;
	unsigned int missing = task->quirks & HOST_QUIRK_CHANNELS_MISSING ? 1 : 0;

	*work = (struct host_work){
		.comm = plan->comm,
		.context = plan->comm->context,
		.parent = task->handle,
		.mask = task->mask,
		.quirks = task->quirks,
		.pid = plan->comm->host->pid,
		.release = plan->is_captured ? load_relaxed(&plan->comm->releases) : task->releases,
		.is_collnet = op->path == HOST_PATH_COLLNET,
		.is_fused = task->is_fused,
		.is_recv = task->function == OP_RECV,
		.has_kernel_events = task_has_kernel(plan, task),
		.is_counted = task_is_counted(plan, task),
		.has_net_events = op->has_net_events,
		.first_channel = op->first_channel,
		.channels = op->channels,
		.steps = op->steps,
		.chunk_bytes = op->chunk_bytes,
		.start_ns = op->start_ns,
		.duration_ns = op->duration_ns,
		.start_skew_ns = op->start_skew_ns,
		.stop_skew_ns = op->stop_skew_ns,
		.gate = op->gate,
		.gate_arg = op->gate_arg,
		/* It was let go where it hung, or it would not be here. */
		.stuck = op->stuck == HOST_STUCK_BEFORE_LAUNCH ? HOST_STUCK_NONE : op->stuck,
		.stuck_channel = op->stuck_channel,
		.stuck_peer = op->stuck_peer,
		.stuck_step = op->stuck_step,
		.stuck_kernels = op->stuck_kernels,
	};
	if (task_has_network(task))
		work->edge_count = host_op_edges(op, task->function, task->peer, work->edges);
	if (work->has_kernel_events)
		work->kernel_channels = (uint16_t)(op->channels - missing);
	work->step_bytes =
		host_op_bytes(op) / ((uint64_t)op->channels * (op->steps ? op->steps : 1));
	if (work->step_bytes > work->chunk_bytes)
		work->step_bytes = work->chunk_bytes;
}

static enum status work_post(struct host_engine *engine, const struct host_work *work)
{
	const struct host_comm *comm = work->comm;
	bool has_events =
		work->has_kernel_events || work->is_counted ||
		(work->edge_count > 0 && host_comm_is_asked(comm, work->mask, ABI_PROXY_OP));

	/* Nobody would see it; but it may hang, or take its time. */
	if (!has_events && work->stuck == HOST_STUCK_NONE &&
	    comm->host->config.time == HOST_TIME_VIRTUAL)
		return OK;
	return host_engine_post(engine, work);
}

/* 2.31 polls kernels in a thread of its own: what the proxy gets then has no kernel channels. */
static enum status task_post(const struct host_plan *plan, const struct host_task *task,
			     uint64_t number, uint64_t launch_ns)
{
	struct host_comm *comm = plan->comm;
	struct host_work work;
	enum status status;

	work_fill(plan, task, &work);
	work.plan = number;
	work.launch_ns = launch_ns;
	if (comm->profiler == comm->proxy)
		return work_post(comm->proxy, &work);
	if (work.edge_count > 0 || comm->host->config.time == HOST_TIME_REAL) {
		struct host_work proxy = work;

		proxy.has_kernel_events = proxy.is_counted = false;
		proxy.kernel_channels = 0;
		status = work_post(comm->proxy, &proxy);
		if (status != OK)
			return status;
	}
	work.edge_count = 0;
	return work_post(comm->profiler, &work);
}

enum status host_post_plan(const struct host_plan *plan)
{
	struct host *host = plan->comm->host;
	bool is_real = host->config.time == HOST_TIME_REAL;
	uint64_t number = add_relaxed(&plan->comm->plans, 1) + 1;
	uint64_t launch_ns = is_real ? host_now(host) : 0;
	enum status status = OK;

	for (size_t i = 0; i < plan->count && status == OK; i++)
		status = task_post(plan, &plan->tasks[i], number, launch_ns);
	return status;
}

bool host_post_is_needed(const struct host_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (task_has_network(&plan->tasks[i]) || task_has_kernel(plan, &plan->tasks[i]))
			return true;
	return false;
}
