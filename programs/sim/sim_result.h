/* What came of a simulated job, and telling it: text for people, JSON for programs. */
#ifndef SIM_RESULT_H
#define SIM_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "output/sink.h"
#include "programs/sim/sim_job.h"

enum sim_result_end {
	SIM_RESULT_FINISHED = 0,
	SIM_RESULT_HUNG = 1,	    /* in an operation that does not end */
	SIM_RESULT_STOPPED = 2,	    /* it never made its next call */
	SIM_RESULT_KILLED = 3,	    /* by SIGKILL */
	SIM_RESULT_INTERRUPTED = 4, /* somebody ended the simulation */
	SIM_RESULT_FAILED = 5,	    /* its process ended by itself, and should not have */
};

struct sim_result_rank {
	enum sim_result_end end;
	int64_t pid;
	char host[72];
	uint64_t issued[SIM_ROLES]; /* calls that were made */
	uint64_t in_flight[SIM_ROLES];
	uint64_t hidden[SIM_ROLES]; /* of issued: calls that this release does not show */
};

struct sim_result {
	enum sim_result_end end;
	uint64_t ns;	     /* job's time at the end */
	uint64_t still_ns;   /* hung: when the last thing happened */
	uint64_t iterations; /* begun by the first rank */
	uint64_t bytes;	     /* of trace files, 0 unknown */
	struct sim_result_rank *ranks;
};

enum status sim_result_init(struct sim_result *result, const struct sim_job *job);
void sim_result_release(struct sim_result *result);

const char *sim_result_end_name(enum sim_result_end end);

/* `directory` is NULL when no files were written. */
void sim_result_text(struct sink *sink, const struct sim_job *job, const struct sim_result *result,
		     const char *directory);
void sim_result_json(struct sink *sink, const struct sim_job *job, const struct sim_result *result,
		     const char *directory);

/* What --list says. */
void sim_result_list(struct sink *sink, unsigned int width);

#endif
