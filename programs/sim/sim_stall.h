/* A job that hangs: what each call that is not over shows at the end of the simulation. */
#ifndef SIM_STALL_H
#define SIM_STALL_H

#include "programs/sim/sim_outcome.h"

/* Fill in what became of a call that is not over. Keeps what it worked out in the call's meeting,
 * for the other ranks. ERR_NO_SPACE. */
enum status sim_stall_outcome(struct sim_engine *engine, const struct sim_call *call,
			      struct sim_outcome *outcome);

#endif
