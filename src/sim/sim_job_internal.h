/* Shared by the files of sim_job. */
#ifndef SIM_JOB_INTERNAL_H
#define SIM_JOB_INTERNAL_H

#include "common/status.h"
#include "sim/sim_job.h"

/* "world", "tp", "pp", "dp", "ep"; also prefixes of communicator names. */
const char *sim_role_name(int role);

/* `stage` is in [0, stages) for a pipeline, otherwise 0 of 1. ERR_NO_SPACE. */
enum status sim_workload_program(struct sim_programs *programs, const struct sim_options *options,
				 int stage, int stages);
void sim_programs_release(struct sim_programs *programs);

#endif
