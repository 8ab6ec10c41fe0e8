/*
 * Why nothing is recorded of a command: what its processes on this host have loaded, from /proc. NCCL loads a profiler
 * plugin when a process creates its first communicator, which may be minutes after it was started.
 */
#ifndef RUN_PROCESSES_H
#define RUN_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What is known, the least first. From RUN_UNCONFIGURED on it is certain that the process is not recorded. */
enum run_state {
	RUN_NO_NCCL = 0, /* no process has loaded NCCL */
	RUN_NO_COMM = 1, /* NCCL is loaded, the plugin is not: no communicator was created so far */
	RUN_UNCONFIGURED = 2, /* NCCL_PROFILER_PLUGIN did not reach the process */
	RUN_OTHER_PLUGIN = 3, /* it names another one */
	RUN_OTHER_CPU = 4,    /* the plugin is for another architecture */
	RUN_TOO_OLD = 5,      /* this NCCL has no profiler plugins */
	RUN_STATIC =
		6, /* communicators, of an NCCL that is linked into the program, did not load it */
	RUN_NOT_LOADED = 7, /* nor did those of a library */
	RUN_NO_REGION = 8,  /* it was loaded, and nothing is recorded */
};

struct run_processes {
	enum run_state state;
	size_t count;	   /* processes of the command, itself included */
	bool is_elsewhere; /* one of them starts processes that are not below it: srun, docker, ssh */
	int64_t pid;	   /* of the process with this state; 0: none */
	char program[32];
	char value[160];  /* NCCL, or the other plugin */
	uint32_t version; /* of NCCL, 21805; 0: unknown */
};

/* `command`: the PID that the processes are below. */
void run_processes_look(struct run_processes *processes, pid_t command);
/* Is `pid` the command or below it? */
bool run_is_below(pid_t command, int64_t pid);
/* Appends a clause without a full stop: "pid 12 (python) uses NCCL 2.18.5, which has no profiler plugins (...)". */
void run_processes_text(char *text, size_t size, const struct run_processes *processes);

#endif
