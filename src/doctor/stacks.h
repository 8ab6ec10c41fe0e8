/*
 * Where the processes of this host are in their program: Python frames from py-spy, native frames from eu-stack or gdb,
 * else what /proc says. docs/STACKS.md has the rules:
 *
 * - py-spy runs with --nonblocking and does not stop the process. eu-stack and gdb do, so they run only if `may_stop`,
 *   and are killed when the process has been stopped for STACKS_STOP_NS. Then the process is made to run again.
 * - Nothing is read from processes of other users, not even by root, nor from one that has or had other rights than
 *   ours (setuid), unless `any_user`.
 * - A process in uninterruptible sleep, stopped or traced is not stopped, nor one that we could not continue.
 * - RINGSIDE_STACKS=0, here or in the environment of the process, turns all of it off. Of another user's process whose
 *   environment cannot be read, nothing is read.
 */
#ifndef STACKS_H
#define STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/stack_read.h"
#include "recording/recording.h"

/* The most that a process is stopped, less what it takes to notice and to end the tool. */
#define STACKS_STOP_NS UINT64_C(60000000)

struct stacks_options {
	bool may_stop;
	bool any_user;	    /* read processes of other users, too, as far as the system allows it */
	uint64_t budget_ns; /* no tool is started after this time; 0: no limit */
};

struct stacks_target {
	int64_t pid;
	uint64_t start_ticks; /* 0: not known: whoever has the pid now */
	struct stack stack;
	/* Why there is nothing, or less than there could be: "" none. */
	char why[160];
	/* Of /proc; private. */
	uint64_t first_ns;
	bool is_read;
	bool is_stopped_long;
};

/* Is it turned off here? */
bool stacks_are_off(void);

void stacks_target_init(struct stacks_target *target, int64_t pid, uint64_t start_ticks);
void stacks_target_release(struct stacks_target *target);

/* Reads all of them; takes about a second, and longer if tools do: at most 5 s for each tool. */
void stacks_take(struct stacks_target *targets, size_t count, const struct stacks_options *options);

/*
 * Takes the stacks of processes of a recording that run on this host and have none, at most STACKS_PROCESSES_MAX, and
 * puts them into `process->stack`. `wanted` may be NULL: all; else it decides for each. How many it found.
 */
enum { STACKS_PROCESSES_MAX = 64 };
size_t stacks_of_recording(struct recording *recording,
			   bool (*wanted)(const struct recording_process *process, void *context),
			   void *context, const struct stacks_options *options);

#endif
