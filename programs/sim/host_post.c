/*
 * What a plan gives to the engines: for each task a work with its channels, connections, times and
 * troubles; and how host and device count the plan's works.
 *
 * Per communicator and channel NCCL has a counter in the device's memory that every work moves, kernel events
 * or not, and one of its own. A profiler operation, posted for a work whose kernel events are requested, waits
 * until the device has stamped the work whose number is the host's counter. The counters agree only as long as
 * everything that moves one moves the other:
 *
 *	release		the host's counter moves		what moves the device's counter alone
 *	2.26.2		when enqueued or captured;		sends to oneself
 *			replays add to what they expect
 *	2.26.3 - 2.30	eager: when enqueued			sends to oneself, AllGatherV (2.29), replays
 *			captured: once at capture when not	of works captured without kernel events,
 *			requested, else with each replay,	replays after an eager operation
 *			until the communicator runs
 *			something eagerly
 *	2.31		when requested				everything that is not requested
 *
 * The device stamps only works that were captured or enqueued with kernel events. So a host that has fallen
 * behind waits for the stamp of an older work: an old time if that one was requested, for ever if not.
 */
#include <stdlib.h>

#include "common/order.h"
#include "programs/sim/host_inside.h"

static bool task_has_network(const struct host_task *task)
{
	return task->op->has_network && !task->is_self;
}

/* ---- counters -------------------------------------------------------------------------------- */

/* Kernel events were requested for it; 2.31: of symmetric kernels only outside graphs. */
static bool task_is_requested(const struct host_plan *plan, const struct host_task *task)
{
	if (task->is_hidden || (plan->is_captured && task->op->path == HOST_PATH_SYMMETRIC))
		return false;
	return host_comm_is_asked(plan->comm, task->mask, ABI_KERNEL_CH);
}

/* ... and a profiler operation is posted for it. */
static bool task_has_kernel(const struct host_plan *plan, const struct host_task *task)
{
	return !task->is_self && task_is_requested(plan, task);
}

/* One work of the device: a task, or a Send and the Recv that shares its work. NCCL looks at the Recv first. */
struct unit {
	const struct host_task
		*tasks[2]; /* in the order of their events; the second is NULL or a Recv */
	const struct host_task *leader; /* whose mask is the device's, and who moves the counter */
};

static struct unit unit_of(const struct host_plan *plan, size_t i)
{
	const struct host_task *first = &plan->tasks[i], *second = NULL;

	if (i + 1 < plan->count && plan->tasks[i + 1].is_fused &&
	    plan->tasks[i + 1].op->first_channel == first->op->first_channel)
		second = &plan->tasks[i + 1];
	return (struct unit){ { first, second }, second != NULL ? second : first };
}

static size_t unit_tasks(const struct unit *unit)
{
	return unit->tasks[1] != NULL ? 2 : 1;
}

/* Symmetric kernels count since 2.31, outside graphs. */
static bool device_counts(const struct host_plan *plan, const struct unit *unit)
{
	return unit->leader->op->path != HOST_PATH_SYMMETRIC ||
	       (plan->comm->host->config.release >= 23100 && !plan->is_captured);
}

/* 2.26.2 stamps everything. */
static bool device_stamps(const struct host_plan *plan, const struct unit *unit)
{
	int release = plan->comm->host->config.release;

	return device_counts(plan, unit) && release >= 22600 &&
	       (release < 22603 || task_is_requested(plan, unit->leader));
}

/* Does the host's counter move when this is enqueued or captured (`is_replay` false), or replayed? */
static bool host_counts_unit(const struct host_plan *plan, const struct unit *unit, bool is_replay)
{
	int release = plan->comm->host->config.release;
	bool is_captured_now = plan->is_captured && !is_replay;
	bool is_requested = task_is_requested(plan, unit->leader);

	if (release >= 23100)
		return !is_captured_now &&
		       (is_requested || task_is_requested(plan, unit->tasks[0]));
	if (unit->leader->is_self || unit->leader->is_gathered ||
	    unit->leader->op->path == HOST_PATH_SYMMETRIC)
		return false;
	if (!plan->is_captured)
		return true;
	if (release < 22603)
		return is_captured_now;
	return is_captured_now ? !is_requested : is_requested && plan->comm->is_persistent;
}

/* What this task's profiler operation waits for; `host` is the counter after it was moved. */
static uint64_t expected_choose(const struct host_plan *plan, const struct host_task *task,
				unsigned int i, uint64_t host, bool is_replay)
{
	int release = plan->comm->host->config.release;
	uint64_t expected = host;

	if (!plan->is_captured || release >= 23100)
		return host;
	if (release < 22603) {
		/* Added to after the profiler operation was posted, so the next replay has it. */
		expected = is_replay ? task->expected[i] : host;
		task->expected[i] = is_replay ? expected + host : expected;
	} else if (is_replay && plan->comm->is_persistent) {
		task->expected[i] = expected;
	} else {
		expected = task->expected[i];
	}
	return expected;
}

static struct host_counter *counter_of(const struct host_plan *plan, const struct unit *unit,
				       unsigned int channel)
{
	return &plan->comm->counters[(unit->leader->op->first_channel + channel) % HOST_CHANNELS];
}

/* What this task's profiler operations wait for, and what the device writes; `work` may be NULL. */
static void task_note(const struct host_plan *plan, const struct unit *unit,
		      const struct host_task *task, bool is_replay, struct host_work *work)
{
	bool has_kernel = task_has_kernel(plan, task);

	if (work != NULL && !work->has_kernel_events && !work->is_stamped)
		work = NULL;
	if (work == NULL && !has_kernel)
		return;
	for (unsigned int i = 0; i < task->op->channels; i++) {
		struct host_counter found = *counter_of(plan, unit, i);

		if (has_kernel)
			found.host = expected_choose(plan, task, i, found.host, is_replay);
		if (work != NULL)
			host_work_counters(work)[i] = found;
	}
}

/* A work by both counters, on all its channels; the works' own copies are filled where there are works. */
static void unit_count(const struct host_plan *plan, const struct unit *unit, bool is_replay,
		       struct host_work works[2])
{
	bool is_run = !plan->is_captured || is_replay, is_host, is_device;
	unsigned int channels = unit->leader->op->channels;

	if (unit->tasks[0]->op->channels > channels)
		channels = unit->tasks[0]->op->channels;
	pthread_mutex_lock(&plan->comm->lock);
	is_host = host_counts_unit(plan, unit, is_replay);
	is_device = is_run && device_counts(plan, unit);
	for (unsigned int i = 0; i < channels; i++) {
		struct host_counter *counter = counter_of(plan, unit, i);

		counter->host += is_host;
		counter->device += is_device;
	}
	for (size_t t = 0; t < unit_tasks(unit); t++)
		task_note(plan, unit, unit->tasks[t], is_replay, works ? &works[t] : NULL);
	pthread_mutex_unlock(&plan->comm->lock);
}

void host_post_count(const struct host_plan *plan, bool is_replay)
{
	for (size_t i = 0; i < plan->count;) {
		struct unit unit = unit_of(plan, i);

		unit_count(plan, &unit, is_replay, NULL);
		i += unit_tasks(&unit);
	}
}

/* ---- works ----------------------------------------------------------------------------------- */

/* ERR_NO_SPACE: for the counters of its channels. */
static enum status work_fill(const struct host_plan *plan, const struct host_task *task,
			     bool is_stamped, struct host_work *work)
{
	const struct host_op *op = task->op;
	unsigned int missing = task->quirks & HOST_QUIRK_CHANNELS_MISSING ? 1 : 0;

	*work = (struct host_work){
		.comm = plan->comm,
		.context = plan->comm->context,
		.parent = task->handle,
		/* A Broadcast that became an AllGatherV and perhaps a collective again lost its mask. */
		.mask = task->is_hidden ? 0 : task->mask,
		.quirks = task->quirks,
		.pid = plan->comm->host->pid,
		.release = plan->is_captured ? load_relaxed(&plan->comm->releases) : task->releases,
		.is_collnet = op->path == HOST_PATH_COLLNET,
		.is_recv = task->function == OP_RECV,
		.has_kernel_events = task_has_kernel(plan, task),
		.is_stamped = is_stamped,
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
	if (work->channels <= HOST_COUNTERS_FEW || !(work->has_kernel_events || is_stamped))
		return OK;
	work->many = malloc(work->channels * sizeof(*work->many));
	return work->many != NULL ? OK : ERR_NO_SPACE;
}

/* Takes over the work's counters. */
static enum status work_post(struct host_engine *engine, const struct host_work *work)
{
	const struct host_comm *comm = work->comm;
	enum status status = OK;
	bool has_events =
		work->has_kernel_events || work->is_stamped ||
		(work->edge_count > 0 && host_comm_is_asked(comm, work->mask, ABI_PROXY_OP));

	/* Nobody would see it; but it may hang, or take its time. */
	if (has_events || work->stuck != HOST_STUCK_NONE ||
	    comm->host->config.time != HOST_TIME_VIRTUAL) {
		status = host_engine_post(engine, work);
		if (status == OK)
			return OK;
	}
	free(work->many);
	return status;
}

/* 2.31 polls kernels in a thread of its own: what the proxy gets then has no kernel channels. */
static enum status work_share_out(struct host_work *work)
{
	struct host_comm *comm = work->comm;

	if (comm->profiler == comm->proxy)
		return work_post(comm->proxy, work);
	if (work->edge_count > 0 || comm->host->config.time == HOST_TIME_REAL) {
		struct host_work proxy = *work;
		enum status status;

		proxy.has_kernel_events = proxy.is_stamped = false;
		proxy.kernel_channels = 0;
		proxy.many = NULL;
		status = work_post(comm->proxy, &proxy);
		if (status != OK) {
			free(work->many);
			return status;
		}
	}
	work->edge_count = 0;
	return work_post(comm->profiler, work);
}

static enum status unit_post(const struct host_plan *plan, const struct unit *unit, bool is_replay,
			     uint64_t number, uint64_t launch_ns)
{
	bool is_run = !plan->is_captured || is_replay;
	bool is_stamped = is_run && device_stamps(plan, unit);
	struct host_work works[2];
	size_t count = unit_tasks(unit), filled = 0;
	enum status status = OK;

	for (; filled < count && status == OK; filled++) {
		status = work_fill(plan, unit->tasks[filled], is_stamped, &works[filled]);
		works[filled].plan = number;
		works[filled].launch_ns = launch_ns;
	}
	if (status == OK && is_run)
		unit_count(plan, unit, is_replay, works);
	for (size_t t = 0; t < filled; t++) {
		if (status == OK)
			status = work_share_out(&works[t]);
		else
			free(works[t].many);
	}
	return status;
}

enum status host_post_plan(const struct host_plan *plan, bool is_replay)
{
	struct host *host = plan->comm->host;
	bool is_real = host->config.time == HOST_TIME_REAL;
	uint64_t number = add_relaxed(&plan->comm->plans, 1) + 1;
	uint64_t launch_ns = is_real ? host_now(host) : 0;
	enum status status = OK;

	for (size_t i = 0; i < plan->count && status == OK;) {
		struct unit unit = unit_of(plan, i);

		status = unit_post(plan, &unit, is_replay, number, launch_ns);
		i += unit_tasks(&unit);
	}
	return status;
}

bool host_post_is_needed(const struct host_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (task_has_network(&plan->tasks[i]) || task_has_kernel(plan, &plan->tasks[i]))
			return true;
	return false;
}
