/* The agent's one loop: everything that can happen to it is a descriptor or a moment. */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include "programs/agent/agent_options.h"

/* Runs until it is told to end. Gives back the exit code. */
int agent_loop(const struct agent_options *options);

#endif
