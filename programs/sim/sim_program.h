/*
 * What a rank does: steps that its host goes through, in order. The host runs ahead of the GPU: a
 * COMPUTE or CALL is enqueued and done later; a WAIT holds the GPU's compute until calls are over;
 * a SYNC holds the host until its GPU has nothing left to compute.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"
#include "programs/sim/sim_options.h"
#include "programs/sim/sim_role.h"

enum sim_step_kind {
	SIM_COMPUTE = 1,
	SIM_CALL = 2,
	SIM_ALL_TO_ALL = 3, /* a group: Send to and Recv from every rank of the communicator */
	SIM_WAIT = 4,
	SIM_SYNC = 5,
};

struct sim_step {
	uint8_t kind;
	uint8_t role;
	uint8_t function; /* enum op_function */
	uint8_t datatype; /* enum op_datatype */
	int32_t peer;	  /* Send and Recv: how many ranks further on; else the root */
	uint64_t count;	  /* elements, as NCCL's call has them */
	uint64_t ns;	  /* COMPUTE */
	uint32_t behind;  /* WAIT: so many of the newest calls need not be over */
};

struct sim_program {
	struct sim_step *steps;
	size_t count;
	size_t room;
	uint32_t calls[SIM_ROLES];
	uint32_t is_broken; /* a step found no memory */
};

void sim_program_release(struct sim_program *program);

/* Each appends; a failure shows in is_broken. */
void sim_program_compute(struct sim_program *program, uint64_t ns);
/* Gives back the call's number, for sim_program_wait(). */
uint32_t sim_program_call(struct sim_program *program, enum sim_role role, uint8_t function,
			  uint8_t datatype, uint64_t count, int peer);
uint32_t sim_program_all_to_all(struct sim_program *program, enum sim_role role, uint8_t datatype,
				uint64_t count);
/* Until that call of the role is over. */
void sim_program_wait(struct sim_program *program, enum sim_role role, uint32_t call);
void sim_program_wait_all(struct sim_program *program, enum sim_role role);
void sim_program_sync(struct sim_program *program);

/* What ranks of one kind do: once at the start, then in each iteration. */
struct sim_programs {
	struct sim_program start;
	struct sim_program iteration;
	unsigned int depth; /* calls that the host may be ahead of its GPU */
};

/* `stage` counts in [0, stages) for a pipeline, else 0 of 1. ERR_NO_SPACE. */
enum status sim_workload_program(struct sim_programs *programs, const struct sim_options *options,
				 int stage, int stages);
void sim_programs_release(struct sim_programs *programs);

#endif
