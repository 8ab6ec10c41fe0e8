/*
 * One group while it is played: host_call.c makes the API events and the tasks, host_launch.c turns
 * the tasks into plans. Nobody else includes this.
 */
#ifndef HOST_PLAY_H
#define HOST_PLAY_H

#include "programs/sim/host_inside.h"

enum { PLAY_FEW = 8 }; /* tasks that need no memory from the heap */

struct play {
	struct host_user *user;
	const struct host_group *group;
	struct host_comm *api_comm; /* whose context GroupApi has; NULL: not started */
	struct host_task *tasks;
	size_t count;
	struct host_task few[PLAY_FEW];
};

/* How many tasks this call may become. */
size_t host_call_tasks(const struct host_op *op);
/* The call itself: GroupApi if it is the first, CollApi or P2pApi, and the tasks. */
void host_call(struct play *play, const struct host_op *op);
/* GroupApi: ncclGroupEnd begins; returns. */
void host_call_group_end(struct play *play);
void host_call_group_stop(struct play *play);

/* Everything of the blocking communicators, or of the others. */
enum status host_launch(const struct play *play, bool is_blocking);
/* Before that: waits for what is stuck there. */
enum status host_launch_wait(const struct play *play);

#endif
