/*
 * Playing a group of operations, and proxy operations of other processes.
 */
#include "programs/sim/host_play.h"

#include <stdlib.h>

#include "common/order.h"

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
		.comm = op->comm,
		.context = foreign->context,
		.parent = foreign->parent,
		.pid = foreign->pid,
		.is_foreign = true,
		.mask = load_relaxed(&op->comm->host->mask),
		.release = load_relaxed(&op->comm->releases),
		.quirks = op->quirks,
		.has_net_events = op->has_net_events,
		.first_channel = op->first_channel,
		.channels = op->channels,
		.steps = op->steps,
		.chunk_bytes = op->chunk_bytes,
		.step_bytes = op->chunk_bytes,
		.launch_ns = host_now(op->comm->host),
		.duration_ns = op->duration_ns,
		.stuck = op->stuck,
		.stuck_channel = op->stuck_channel,
		.stuck_peer = op->stuck_peer,
		.stuck_step = op->stuck_step,
	};

	if (!host_op_is_possible(op) || !op->has_network)
		return ERR_RANGE;
	if (load_relaxed(&op->comm->is_dead))
		return ERR_GONE;
	work.edge_count = host_op_edges(op, op->function, op->peer, work.edges);
	return host_engine_post(op->comm->proxy, &work);
}
