/* A job whose ranks run with the plugin loaded, in processes or threads of this host. */
#ifndef SIM_LIVE_H
#define SIM_LIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"
#include "sim/sim_job.h"

struct sim_live {
	const char *plugin;	/* its path */
	const char *directory;	/* RINGSIDE_DIR; NULL: from the environment */
	const char *mode;	/* RINGSIDE_MODE; NULL: from the environment */
	const char *regions;	/* a directory per node below it for regions; NULL: default */
	bool is_threads;	/* all ranks in one process */
	bool is_node_processes; /* one process per node */
};

/*
 * Runs the job to its end, or until SIGINT or SIGTERM. No process is left afterwards in any case. On failure
 * `failed` says what could not be done; ERR_SYSTEM with errno. `result` was made by sim_result_init().
 */
enum status sim_live_run(const struct sim_job *job, const struct sim_live *live,
			 struct sim_result *result, char *failed, size_t size);

#endif
