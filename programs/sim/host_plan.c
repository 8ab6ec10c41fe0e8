/*
 * A plan is one kernel: what NCCL does between ncclGroupEnd and its return. Order of calls:
 *
 *	KernelLaunch start, stop	(v5 and later)
 *	Group start
 *	Coll or P2p start, for every task
 *	works go to the engine: from here on the proxy's calls may come in between
 *	Coll or P2p stop, for every task
 *	Group stop
 */
#include <stdlib.h>
#include <string.h>

#include "common/order.h"
#include "programs/sim/host_inside.h"

enum { BIT_GROUP = 0, BIT_LAUNCH = 11 };

bool host_comm_is_asked(const struct host_comm *comm, int mask, enum abi_event event)
{
	return host_version_has(comm->plugin.version, event) &&
	       host_is_asked(comm->host->asks, mask, event);
}

/* The first task that has asked for anything speaks for the plan. */
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
	const struct host_task *speaker = plan_speaker(plan);

	if (speaker == NULL || !host_comm_is_asked(plan->comm, speaker->mask, ABI_KERNEL_LAUNCH))
		return;
	host_start_kernel_launch(&plan->comm->plugin, host_call_of(plan->comm), &plan->launch,
				 speaker->group_api, speaker->op->stream);
	bump_relaxed(&counts->starts[BIT_LAUNCH], 1);
	if (plan->launch == NULL)
		return;
	(void)host_stop(&plan->comm->plugin, plan->launch);
	bump_relaxed(&counts->stops[BIT_LAUNCH], 1);
}

enum status host_plan_launch(struct host_plan *plan, enum host_lane lane)
{
	struct host_counts *counts = host_lane_counts(plan->comm, lane);

	plan_show_launch(plan, counts);
	if (plan->is_captured)
		host_post_count(plan, false);
	if (!plan->is_captured ||
	    (!host_post_is_needed(plan) && plan->comm->plugin.release >= 22700))
		return plan_run(plan, lane, false);
	/* Before v5 the capture shows nothing at all. */
	if (plan->comm->plugin.version < 5)
		bump_relaxed(&counts->hidden, plan->count);
	return OK;
}

void host_plan_replay(struct host_plan *plan)
{
	if (load_relaxed(&plan->comm->is_dead))
		return;
	if (host_post_is_needed(plan))
		(void)plan_run(plan, LANE_CALLBACK, true);
	else
		host_post_count(plan, true);
}

struct host_plan *host_plan_copy(const struct host_plan *plan)
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

void host_plan_free(struct host_plan *plan)
{
	free(plan);
}
