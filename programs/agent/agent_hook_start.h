/* Starting the hook's process. For agent_hook.c alone. */
#ifndef AGENT_HOOK_START_H
#define AGENT_HOOK_START_H

#include <sys/types.h>

#include "common/status.h"
#include "programs/agent/agent_hook.h"

/* On success *pid leads a process group of its own, and *output, which does not block, is the reading end of its
 * standard output and error. ERR_SYSTEM with errno. A program that is not there is a process that says so and
 * ends with 127. */
enum status agent_hook_start(char *const *words, const struct agent_hook_event *event, pid_t *pid,
			     int *output);

#endif
