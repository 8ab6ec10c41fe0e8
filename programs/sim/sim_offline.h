/* A job that is not run: its trace files are written as if it had been. */
#ifndef SIM_OFFLINE_H
#define SIM_OFFLINE_H

#include <stddef.h>

#include "common/status.h"
#include "programs/sim/sim_job.h"
#include "programs/sim/sim_result.h"

/* On failure `failed` names the file, where it was one; ERR_SYSTEM with errno. `result` was made by
 * sim_result_init(). */
enum status sim_offline_run(const struct sim_job *job, const char *directory,
			    struct sim_result *result, char *failed, size_t size);

#endif
