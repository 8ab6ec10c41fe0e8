/* A job whose ranks run, each with the plugin in it, in processes or threads of this machine. */
#ifndef SIM_LIVE_H
#define SIM_LIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"
#include "sim/sim_job.h"

struct sim_live {
	const char *plugin;	/* its path */
	const char *directory;	/* RINGSIDE_DIR; NULL: as the environment says */
	const char *mode;	/* RINGSIDE_MODE; NULL: as the environment says */
	const char *regions;	/* below it a directory per node for its regions; NULL: as usual */
	bool is_threads;	/* all ranks in one process */
	bool is_node_processes; /* those of a node in one process */
};

/*
 * Runs it to its end, or until SIGINT or SIGTERM. No process of it is left afterwards, whatever
 * happened. On failure `failed` says what could not be done; ERR_SYSTEM with errno. `result` was
 * made by sim_result_init().
 */
enum status sim_live_run(const struct sim_job *job, const struct sim_live *live,
			 struct sim_result *result, char *failed, size_t size);

#endif
