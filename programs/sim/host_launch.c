/*
 * From tasks to plans: in which order NCCL launches what one group holds, and in which thread.
 */
#include <stdlib.h>

#include "common/order.h"
#include "programs/sim/host_play.h"

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

/* A non-blocking communicator: another thread launches, when the user's call has returned. */
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
	/* Those of the same size in the order of their calls. */
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

/* 2.29 and later: Broadcasts of several roots in one group become one AllGatherV. */
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

/* Communicators in the order of their first call; blocking ones or the others. */
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
