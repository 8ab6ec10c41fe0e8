/* How far the data of a meeting got that hangs, connection by connection. */
#ifndef SIM_FLOW_H
#define SIM_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "programs/sim/sim_engine.h"

/* How far a rank came with a call. */
enum sim_presence {
	SIM_ABSENT = 0,	 /* has not made the call, or is dead */
	SIM_QUEUED = 1,	 /* its transfers wait behind those of an earlier call */
	SIM_POSTED = 2,	 /* transfers are posted; the kernel does not run */
	SIM_RUNNING = 3, /* the kernel runs */
	SIM_LEFT = 4,	 /* took part up to a point */
};

/* `arrived` steps came over the edge, `consumed` of them were taken by the receiver's kernel. */
struct sim_flow {
	uint32_t steps;
	uint32_t arrived;
	uint32_t consumed;
	enum sim_presence sender, receiver;
	bool is_stuck;
	bool is_starved; /* the sender has nothing more to send */
};

/* `seat` as in meeting->calls. */
enum sim_presence sim_flow_presence(const struct sim_engine *engine,
				    const struct sim_meeting *meeting, int seat);

/* Is this the oldest of its rank's launches on that communicator that are not over? */
bool sim_flow_is_oldest(const struct sim_engine *engine, const struct sim_launch *launch);

/* A collective's connections in all channels; keeps it in meeting->progress. ERR_NO_SPACE. */
enum status sim_flow_work_out(const struct sim_engine *engine, struct sim_meeting *meeting,
			      const struct sim_plan *plan);

/* After that: one connection of a collective, `from` and `to` are the communicator's ranks. */
struct sim_flow sim_flow_edge(const struct sim_engine *engine, const struct sim_meeting *meeting,
			      const struct sim_plan *plan, int channel, int from, int to);
/* Is a channel of a collective through for this rank? */
bool sim_flow_is_channel_over(const struct sim_engine *engine, const struct sim_meeting *meeting,
			      const struct sim_plan *plan, int channel, int rank);

/* The connection of a Send and its Recv. */
struct sim_flow sim_flow_pair(const struct sim_engine *engine, const struct sim_meeting *meeting,
			      const struct sim_plan *plan);

#endif
