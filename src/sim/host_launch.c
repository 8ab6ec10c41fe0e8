/* From tasks to plans: the order and thread in which NCCL launches the operations of a group. */
#include "sim/host.h"
#include "sim/host_internal.h"

#include <stdlib.h>
#include <string.h>

#include "common/order.h"
#include "sim/host_event.h"

void host_worker_init(struct host_worker *worker)
{
	*worker = (struct host_worker){ 0 };
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	worker->last = &worker->first;
}

static struct host_worker_job *worker_take(struct host_worker *worker)
{
	struct host_worker_job *job;

	pthread_mutex_lock(&worker->lock);
	while (worker->first == NULL && !worker->is_stopping)
		pthread_cond_wait(&worker->changed, &worker->lock);
	job = worker->first;
	if (job) {
		worker->first = job->next;
		if (worker->first == NULL)
			worker->last = &worker->first;
	}
	pthread_mutex_unlock(&worker->lock);
	return job;
}

static void *worker_main(void *arg)
{
	struct host_worker *worker = arg;
	struct host_worker_job *job;

	while ((job = worker_take(worker)) != NULL) {
		job->run(job);
		pthread_mutex_lock(&worker->lock);
		worker->unfinished--;
		pthread_cond_broadcast(&worker->changed);
		pthread_mutex_unlock(&worker->lock);
	}
	return NULL;
}

void host_worker_stop(struct host_worker *worker)
{
	bool is_running;

	pthread_mutex_lock(&worker->lock);
	is_running = worker->is_running;
	worker->is_running = false;
	worker->is_stopping = true;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	if (is_running)
		pthread_join(worker->thread, NULL);
}

void host_worker_release(struct host_worker *worker)
{
	host_worker_stop(worker);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
}

/*
 * Takes over the job. ERR_SYSTEM: could not start the thread; ERR_GONE: it was stopped. On failure the caller keeps
 * the job.
 */
static enum status host_worker_give(struct host_worker *worker, struct host_worker_job *job,
				    const char *thread_name)
{
	enum status status = OK;

	pthread_mutex_lock(&worker->lock);
	if (worker->is_stopping) {
		status = ERR_GONE;
	} else if (!worker->is_running) {
		if (pthread_create(&worker->thread, NULL, worker_main, worker) == 0) {
			pthread_setname_np(worker->thread, thread_name);
			worker->is_running = true;
		} else {
			status = ERR_SYSTEM;
		}
	}
	if (status == OK) {
		job->next = NULL;
		*worker->last = job;
		worker->last = &job->next;
		worker->unfinished++;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return status;
}

void host_worker_wait(struct host_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	while (worker->unfinished)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

/*
 * What a plan passes to the engines: for each task a work with its channels, connections, times and faults; and how
 * host and device count the plan's works.
 *
 * Per communicator and channel, NCCL has a counter in device memory that every work increments, with or without
 * kernel events, and one of its own. A profiler operation, posted for a work with requested kernel events, waits
 * until the device has stamped the work whose number is the host's counter. The counters only agree as long as
 * everything that increments one increments the other:
 *
 *	release		the host's counter is incremented	what only increments the device's counter
 *	2.26.2		when enqueued or captured;		sends to itself
 *			replays add to what they expect
 *	2.26.3 - 2.30	eager: when enqueued			sends to itself, AllGatherV (2.29), replays
 *			captured: once at capture if not	of works captured without kernel events,
 *			requested, otherwise with each		replays after an eager operation
 *			replay, until the communicator
 *			runs something eagerly
 *	2.31		when requested				everything that is not requested
 *
 * The device only stamps works that were captured or enqueued with kernel events. So a host that has fallen behind
 * waits for the timestamp of an older work: an old time if that one was requested, forever if not.
 */

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

/* One work of the device: a task, or a Send and the Recv that shares its work. NCCL checks the Recv first. */
struct unit {
	const struct host_task
		*tasks[2]; /* in the order of their events; the second is NULL or a Recv */
	const struct host_task *leader; /* provides the device's mask and increments the counter */
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

/* Whether the host's counter is incremented when this is enqueued or captured (`is_replay` false), or replayed. */
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

/* What this task's profiler operation waits for; `host` is the counter after incrementing. */
static uint64_t expected_choose(const struct host_plan *plan, const struct host_task *task,
				unsigned int i, uint64_t host, bool is_replay)
{
	int release = plan->comm->host->config.release;
	uint64_t expected = host;

	if (!plan->is_captured || release >= 23100)
		return host;
	if (release < 22603) {
		/* Increased after the profiler operation was posted, so it applies to the next replay. */
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

/* What this task's profiler operations wait for, and what the device writes; `work` can be NULL. */
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

/* Counts a work on all its channels, for host and device; fills the works' own copies if there are works. */
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

/* What host and device count when the plan is captured, or replayed with nothing to post. */
static void host_post_count(const struct host_plan *plan, bool is_replay)
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
		.op = *op,
		.context = plan->comm->context,
		.parent = task->handle,
		/* A Broadcast that became an AllGatherV and perhaps a collective again has lost its mask. */
		.mask = task->is_hidden ? 0 : task->mask,
		.pid = plan->comm->host->pid,
		.release = plan->is_captured ? load_relaxed(&plan->comm->releases) : task->releases,
		.is_collnet = op->path == HOST_PATH_COLLNET,
		.is_recv = task->function == OP_RECV,
		.has_kernel_events = task_has_kernel(plan, task),
		.is_stamped = is_stamped,
	};
	work->op.quirks = task->quirks;
	/* It was released before the launch, otherwise it would not get here. */
	if (op->stuck == HOST_STUCK_BEFORE_LAUNCH)
		work->op.stuck = HOST_STUCK_NONE;
	work->op.edge_count = 0;
	if (task_has_network(task))
		work->op.edge_count = host_op_edges(op, task->function, task->peer, work->op.edges);
	if (work->has_kernel_events)
		work->kernel_channels = (uint16_t)(op->channels - missing);
	work->step_bytes =
		host_op_bytes(op) / ((uint64_t)op->channels * (op->steps ? op->steps : 1));
	if (work->step_bytes > work->op.chunk_bytes)
		work->step_bytes = work->op.chunk_bytes;
	if (op->step_bytes != 0)
		work->step_bytes = op->step_bytes;
	work->watched = plan->watched;
	if (work->op.channels <= HOST_COUNTERS_FEW || !(work->has_kernel_events || is_stamped))
		return OK;
	work->many = malloc(work->op.channels * sizeof(*work->many));
	return work->many != NULL ? OK : ERR_NO_SPACE;
}

/* Takes over the work's counters. */
static enum status work_post(struct host_engine *engine, struct host_work *work)
{
	const struct host_comm *comm = work->op.comm;
	enum status status = OK;
	bool has_events =
		work->has_kernel_events || work->is_stamped || work->watched != NULL ||
		(work->op.edge_count > 0 && host_comm_is_asked(comm, work->mask, ABI_PROXY_OP));

	/* Not shown to the plugin, but it can hang or take time. */
	if (has_events || work->op.stuck != HOST_STUCK_NONE ||
	    comm->host->config.time != HOST_TIME_VIRTUAL) {
		if (work->watched != NULL)
			comm->host->config.watcher->take(work->watched);
		status = host_engine_post(engine, work);
		if (status == OK)
			return OK;
		host_work_drop(work);
	}
	free(work->many);
	return status;
}

/* 2.31 polls kernels in a separate thread: the proxy's part has no kernel channels then. */
static enum status work_share_out(struct host_work *work)
{
	struct host_comm *comm = work->op.comm;

	if (comm->profiler == comm->proxy)
		return work_post(comm->proxy, work);
	if (work->op.edge_count > 0 || comm->host->config.time == HOST_TIME_REAL) {
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
	work->op.edge_count = 0;
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

/* Posts works for all tasks of the plan. ERR_GONE: aborted meanwhile. */
static enum status host_post_plan(const struct host_plan *plan, bool is_replay)
{
	struct host *host = plan->comm->host;
	bool is_real = host->config.time == HOST_TIME_REAL;
	uint64_t number = add_relaxed(&plan->comm->plans, 1) + 1;
	uint64_t launch_ns = is_real ? host_now(host) : 0;
	enum status status = OK;

	/* A capture runs nothing. */
	if (plan->is_captured && !is_replay)
		return OK;
	for (size_t i = 0; i < plan->count && status == OK;) {
		struct unit unit = unit_of(plan, i);

		status = unit_post(plan, &unit, is_replay, number, launch_ns);
		i += unit_tasks(&unit);
	}
	if (plan->watched != NULL)
		host->config.watcher->leave(plan->watched, 0);
	return status;
}

/* Whether there is something for an engine, requested or not. */
static bool host_post_is_needed(const struct host_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (task_has_network(&plan->tasks[i]) || task_has_kernel(plan, &plan->tasks[i]))
			return true;
	return false;
}

/*
 * A plan is one kernel: what NCCL does inside ncclGroupEnd. Order of calls:
 *
 *	KernelLaunch start, stop	(v5 and later)
 *	Group start
 *	Coll or P2p start, for every task
 *	works go to the engine: from here on, calls of the proxy can come in between
 *	Coll or P2p stop, for every task
 *	Group stop
 */

enum { BIT_GROUP = 0, BIT_LAUNCH = 11 };

bool host_comm_is_asked(const struct host_comm *comm, int mask, enum abi_event event)
{
	return host_version_has(comm->plugin.version, event) &&
	       host_is_asked(comm->host->asks, mask, event);
}

/* The first task with a mask determines that of the plan. */
static const struct host_task *plan_speaker(const struct host_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->tasks[i].mask && !plan->tasks[i].is_hidden)
			return &plan->tasks[i];
	return NULL;
}

static enum status plan_run(struct host_plan *plan, enum host_lane lane, bool is_replay)
{
	const struct host_plugin *plugin = &plan->comm->plugin;
	struct host_counts *counts = host_lane_counts(plan->comm, lane);
	const struct host_task *speaker = plan_speaker(plan);
	enum status status;

	if (speaker && host_comm_is_asked(plan->comm, speaker->mask, ABI_GROUP)) {
		host_start_group(plugin, host_call_of(plan->comm), &plan->group);
		bump_relaxed(&counts->starts[BIT_GROUP], 1);
	} else {
		plan->group = NULL;
	}
	for (size_t i = 0; i < plan->count; i++)
		host_task_start(plan, &plan->tasks[i], counts, is_replay);
	status = host_post_plan(plan, is_replay);
	for (size_t i = 0; i < plan->count; i++)
		host_task_stop(plan, &plan->tasks[i], counts);
	if (plan->group) {
		(void)host_stop(plugin, plan->group);
		bump_relaxed(&counts->stops[BIT_GROUP], 1);
	}
	return status;
}

static void plan_show_launch(struct host_plan *plan, struct host_counts *counts)
{
	const struct host_watcher *watcher = plan->comm->host->config.watcher;
	const struct host_task *speaker = plan_speaker(plan);

	if (speaker == NULL || !host_comm_is_asked(plan->comm, speaker->mask, ABI_KERNEL_LAUNCH))
		return;
	if (watcher != NULL) {
		watcher->use(plan->comm->config.gpu);
		watcher->begin(speaker->op->stream, plan->capture);
	}
	host_start_kernel_launch(&plan->comm->plugin, host_call_of(plan->comm), &plan->launch,
				 speaker->group_api, speaker->op->stream);
	bump_relaxed(&counts->starts[BIT_LAUNCH], 1);
	if (watcher != NULL)
		watcher->enqueue();
	if (plan->launch != NULL) {
		(void)host_stop(&plan->comm->plugin, plan->launch);
		bump_relaxed(&counts->stops[BIT_LAUNCH], 1);
	}
	if (watcher != NULL && plan->is_captured)
		plan->nodes = watcher->end();
	else if (watcher != NULL)
		plan->watched = watcher->end();
}

/*
 * KernelLaunch, then Group, Coll and P2p and the works; a captured plan ends with the launch if its replays are
 * shown. ERR_GONE: aborted meanwhile.
 */
static enum status host_plan_launch(struct host_plan *plan, enum host_lane lane)
{
	struct host_counts *counts = host_lane_counts(plan->comm, lane);

	plan_show_launch(plan, counts);
	if (plan->is_captured)
		host_post_count(plan, false);
	if (!plan->is_captured ||
	    (!host_post_is_needed(plan) && plan->comm->plugin.release >= 22700))
		return plan_run(plan, lane, false);
	/* Before v5 the capture shows nothing. */
	if (plan->comm->plugin.version < 5)
		bump_relaxed(&counts->hidden, plan->count);
	return OK;
}

/*
 * Group, Coll, P2p and the works again, from the callback thread. Without a host node in the graph nothing is shown; that
 * it takes its time matters only in real time.
 */
static void host_plan_replay(struct host_plan *plan)
{
	const struct host_config *config = &plan->comm->host->config;

	if (load_relaxed(&plan->comm->is_dead))
		return;
	plan->watched = plan->nodes != NULL ? config->watcher->replay(plan->nodes) : NULL;
	if (host_post_is_needed(plan))
		(void)plan_run(plan, LANE_CALLBACK, true);
	else if (config->time == HOST_TIME_REAL || plan->watched != NULL)
		(void)host_post_plan(plan, true);
	else
		host_post_count(plan, true);
}

/* A copy that owns its tasks and their operations. NULL: out of memory. */
static struct host_plan *host_plan_copy(const struct host_plan *plan)
{
	size_t tasks = plan->count * sizeof(struct host_task);
	size_t ops_size = plan->count * sizeof(struct host_op), channels = 0;
	struct host_plan *copy;
	struct host_op *ops;
	uint64_t *expected;

	for (size_t i = 0; i < plan->count; i++)
		channels += plan->tasks[i].op->channels;
	copy = malloc(sizeof(*copy) + tasks + ops_size + channels * sizeof(*expected));
	if (copy == NULL)
		return NULL;
	*copy = *plan;
	copy->next = NULL;
	copy->tasks = (struct host_task *)(copy + 1);
	ops = (struct host_op *)((char *)copy->tasks + tasks);
	expected = (uint64_t *)((char *)ops + ops_size);
	memset(expected, 0, channels * sizeof(*expected));
	for (size_t i = 0; i < plan->count; i++) {
		copy->tasks[i] = plan->tasks[i];
		ops[i] = *plan->tasks[i].op;
		copy->tasks[i].op = &ops[i];
		copy->tasks[i].expected = expected;
		expected += ops[i].channels;
	}
	return copy;
}

static void host_plan_free(struct host_plan *plan)
{
	if (plan != NULL && plan->nodes != NULL)
		plan->comm->host->config.watcher->forget(plan->nodes);
	free(plan);
}

/*
 * CUDA graphs. A captured plan keeps its tasks: their masks and API handles are those of the capture, as long as
 * the graph lives. A replay runs on CUDA's callback thread.
 */

struct host_graph {
	struct host *host;
	uint64_t number;
	struct host_plan *first;
	struct host_plan **last;
};

struct replay_job {
	struct host_worker_job job;
	struct host_graph *graph;
	struct host_plan *only; /* NULL: all of it */
	struct host_op op;	/* of the only one */
};

enum status host_graph_new(struct host *host, struct host_graph **graph)
{
	struct host_graph *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return ERR_NO_SPACE;
	made->host = host;
	made->number = add_relaxed(&host->graphs, 1) + 1;
	made->last = &made->first;
	*graph = made;
	return OK;
}

/* Takes over the plan. */
static void host_graph_add(struct host_graph *graph, struct host_plan *plan)
{
	*graph->last = plan;
	graph->last = &plan->next;
}

void host_graph_free(struct host_graph *graph)
{
	if (graph == NULL)
		return;
	host_worker_wait(&graph->host->callback);
	while (graph->first) {
		struct host_plan *next = graph->first->next;

		host_plan_free(graph->first);
		graph->first = next;
	}
	free(graph);
}

static void replay_run(struct host_worker_job *job)
{
	struct replay_job *replay = (struct replay_job *)job;
	struct host_plan *only = replay->only;
	const struct host_op *captured;

	if (only != NULL) {
		captured = only->tasks[0].op;
		only->tasks[0].op = &replay->op;
		host_plan_replay(only);
		only->tasks[0].op = captured;
	}
	for (struct host_plan *plan = only ? NULL : replay->graph->first; plan; plan = plan->next)
		host_plan_replay(plan);
	free(job);
}

static enum status graph_launch(struct host_graph *graph, struct host_plan *only,
				const struct host_op *op)
{
	struct replay_job *job = malloc(sizeof(*job));
	enum status status;

	if (job == NULL)
		return ERR_NO_SPACE;
	*job = (struct replay_job){ .job.run = replay_run, .graph = graph, .only = only };
	if (op != NULL) {
		job->op = *op;
		/* Decided at the capture. */
		job->op.channels = only->tasks[0].op->channels;
		job->op.first_channel = only->tasks[0].op->first_channel;
	}
	status = host_worker_give(&graph->host->callback, &job->job, "cuda-EvtHandlr");
	if (status != OK)
		free(job);
	return status;
}

enum status host_graph_replay(struct host_graph *graph)
{
	return graph_launch(graph, NULL, NULL);
}

enum status host_graph_replay_one(struct host_graph *graph, size_t launch, const struct host_op *op)
{
	struct host_plan *plan = graph->first;

	while (plan != NULL && launch-- > 0)
		plan = plan->next;
	if (plan == NULL || plan->count != 1)
		return ERR_RANGE;
	return graph_launch(graph, plan, op);
}

/* Waits while the operation is stuck before its launch. ERR_GONE: aborted. */
static enum status task_wait(const struct host_task *task)
{
	struct host_comm *comm = task->op->comm;

	pthread_mutex_lock(&comm->lock);
	while (task->op->stuck == HOST_STUCK_BEFORE_LAUNCH && comm->releases == task->releases &&
	       !comm->is_dead)
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
	return load_relaxed(&comm->is_dead) ? ERR_GONE : OK;
}

struct group_job {
	struct host_worker_job job;
	struct host_plan *plan;
};

static void group_job_run(struct host_worker_job *job)
{
	struct host_plan *plan = ((struct group_job *)job)->plan;
	enum status status = OK;

	for (size_t i = 0; i < plan->count && status == OK; i++)
		status = task_wait(&plan->tasks[i]);
	if (status == OK)
		(void)host_plan_launch(plan, LANE_GROUP);
	host_plan_free(plan);
	free(job);
}

/* A nonblocking communicator: another thread launches after the user's call has returned. */
static enum status plan_launch_later(const struct host_plan *plan)
{
	struct group_job *job = malloc(sizeof(*job));
	enum status status = ERR_NO_SPACE;

	if (job == NULL)
		return ERR_NO_SPACE;
	*job = (struct group_job){ .job.run = group_job_run, .plan = host_plan_copy(plan) };
	if (job->plan)
		status = host_worker_give(&plan->comm->group, &job->job, "NCCL Group");
	if (status != OK) {
		host_plan_free(job->plan);
		free(job);
	}
	return status;
}

static enum status plan_launch(const struct play *play, struct host_plan *plan)
{
	struct host_graph *graph = play->group->capture;
	struct host_plan *copy;
	enum status status;

	if (graph == NULL && plan->comm->config.flags & HOST_COMM_NONBLOCKING)
		return plan_launch_later(plan);
	if (graph == NULL)
		return host_plan_launch(plan, LANE_USER);
	plan->is_captured = true;
	plan->capture = graph->number;
	copy = host_plan_copy(plan);
	if (copy == NULL)
		return ERR_NO_SPACE;
	status = host_plan_launch(copy, LANE_USER);
	if (status == OK)
		host_graph_add(graph, copy);
	else
		host_plan_free(copy);
	return status;
}

static int by_traffic(const void *a, const void *b)
{
	const struct host_task *left = a, *right = b;
	uint64_t left_bytes = host_op_bytes(left->op), right_bytes = host_op_bytes(right->op);

	if (left_bytes != right_bytes)
		return left_bytes < right_bytes ? 1 : -1;
	/* In call order if the sizes are equal. */
	return left->op < right->op ? -1 : left->op > right->op;
}

/* The k-th Send and the k-th Recv are one round and share one device work. */
static size_t rounds_fill(const struct play *play, const struct host_comm *comm,
			  struct host_task *sorted)
{
	size_t send = 0, recv = 0, count = 0;

	while (send < play->count || recv < play->count) {
		bool has_send = false;

		for (; send < play->count && !has_send; send++) {
			const struct host_task *task = &play->tasks[send];

			if (task->op->comm == comm && task->function == OP_SEND) {
				sorted[count++] = *task;
				has_send = true;
			}
		}
		for (; recv < play->count; recv++) {
			const struct host_task *task = &play->tasks[recv];

			if (task->op->comm != comm || task->function != OP_RECV)
				continue;
			sorted[count] = *task;
			sorted[count].is_fused =
				has_send && task->is_self == sorted[count - 1].is_self;
			count++;
			recv++;
			break;
		}
	}
	return count;
}

/* Collectives by size, then Send and Recv in rounds. Copy engines are not part of a kernel. */
static size_t tasks_sort(const struct play *play, const struct host_comm *comm,
			 struct host_task *sorted)
{
	size_t count = 0;

	for (size_t i = 0; i < play->count; i++) {
		const struct host_task *task = &play->tasks[i];

		if (task->op->comm == comm && !task->is_p2p &&
		    task->op->path != HOST_PATH_COPY_ENGINE)
			sorted[count++] = *task;
	}
	if (count > 1)
		qsort(sorted, count, sizeof(*sorted), by_traffic);
	return count + rounds_fill(play, comm, sorted + count);
}

static enum status plans_launch(const struct play *play, struct host_comm *comm,
				struct host_task *sorted, size_t count)
{
	size_t limit = play->group->tasks_per_plan ? play->group->tasks_per_plan : count;
	enum status status = OK;

	for (size_t i = 0; i < count && status == OK; i += limit) {
		struct host_plan plan = {
			.comm = comm,
			.tasks = sorted + i,
			.count = count - i < limit ? count - i : limit,
		};

		status = plan_launch(play, &plan);
	}
	return status;
}

/* 2.29 and later: Broadcasts with several roots in one group become one AllGatherV. */
static void broadcasts_gather(struct host_task *tasks, size_t count)
{
	const struct host_task *first = NULL;
	bool is_gathered = false;

	for (size_t i = 0; i < count; i++) {
		if (!tasks[i].is_hidden || tasks[i].function != OP_BROADCAST)
			continue;
		if (first == NULL)
			first = &tasks[i];
		is_gathered |= tasks[i].op->root != first->op->root;
	}
	for (size_t i = 0; i < count; i++)
		tasks[i].is_gathered =
			is_gathered && tasks[i].is_hidden && tasks[i].function == OP_BROADCAST;
}

static enum status comm_launch(const struct play *play, struct host_comm *comm)
{
	struct host_task few[PLAY_FEW], *sorted = few;
	enum status status;
	size_t count;

	if (play->count > PLAY_FEW)
		sorted = malloc(play->count * sizeof(*sorted));
	if (sorted == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < play->count; i++)
		if (play->tasks[i].op->comm == comm &&
		    play->tasks[i].op->path == HOST_PATH_COPY_ENGINE)
			host_task_copy_engine(&play->tasks[i], LANE_USER);
	pthread_mutex_lock(&comm->lock);
	comm->is_persistent = play->group->capture != NULL;
	pthread_mutex_unlock(&comm->lock);
	count = tasks_sort(play, comm, sorted);
	broadcasts_gather(sorted, count);
	status = plans_launch(play, comm, sorted, count);
	if (sorted != few)
		free(sorted);
	return status;
}

/* Communicators in the order of their first call; only blocking ones, or only the others. */
enum status host_launch(const struct play *play, bool is_blocking)
{
	enum status status = OK, first = OK;

	for (size_t i = 0; i < play->count; i++) {
		struct host_comm *comm = play->tasks[i].op->comm;
		bool is_later =
			comm->config.flags & HOST_COMM_NONBLOCKING && play->group->capture == NULL;
		size_t earlier = 0;

		while (play->tasks[earlier].op->comm != comm)
			earlier++;
		if (earlier < i || is_later == is_blocking)
			continue;
		status = comm_launch(play, comm);
		if (first == OK)
			first = status;
	}
	return first;
}

enum status host_launch_wait(const struct play *play)
{
	for (size_t i = 0; i < play->count; i++) {
		const struct host_op *op = play->tasks[i].op;
		enum status status = OK;

		if (op->stuck == HOST_STUCK_BEFORE_LAUNCH &&
		    !(op->comm->config.flags & HOST_COMM_NONBLOCKING))
			status = task_wait(&play->tasks[i]);
		if (status != OK)
			return status;
	}
	return OK;
}
