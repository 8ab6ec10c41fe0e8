#include "programs/sim/sim_program.h"

#include <stdlib.h>

static struct sim_step *append(struct sim_program *program, enum sim_step_kind kind,
			       enum sim_role role)
{
	static struct sim_step dropped;
	struct sim_step *step;

	if (program->count == program->room) {
		size_t room = program->room ? 2 * program->room : 64;
		struct sim_step *grown = realloc(program->steps, room * sizeof(*grown));

		if (grown == NULL) {
			program->is_broken = 1;
			return &dropped;
		}
		program->steps = grown;
		program->room = room;
	}
	step = &program->steps[program->count++];
	*step = (struct sim_step){ .kind = (uint8_t)kind, .role = (uint8_t)role };
	return step;
}

void sim_program_release(struct sim_program *program)
{
	free(program->steps);
	*program = (struct sim_program){ 0 };
}

void sim_program_compute(struct sim_program *program, uint64_t ns)
{
	append(program, SIM_COMPUTE, SIM_WORLD)->ns = ns;
}

uint32_t sim_program_call(struct sim_program *program, enum sim_role role, uint8_t function,
			  uint8_t datatype, uint64_t count, int peer)
{
	struct sim_step *step = append(program, SIM_CALL, role);

	step->function = function;
	step->datatype = datatype;
	step->count = count;
	step->peer = peer;
	return program->calls[role]++;
}

uint32_t sim_program_all_to_all(struct sim_program *program, enum sim_role role, uint8_t datatype,
				uint64_t count)
{
	struct sim_step *step = append(program, SIM_ALL_TO_ALL, role);

	step->datatype = datatype;
	step->count = count;
	return program->calls[role]++;
}

void sim_program_wait(struct sim_program *program, enum sim_role role, uint32_t call)
{
	append(program, SIM_WAIT, role)->behind = program->calls[role] - 1 - call;
}

void sim_program_wait_all(struct sim_program *program, enum sim_role role)
{
	append(program, SIM_WAIT, role)->behind = 0;
}

void sim_program_sync(struct sim_program *program)
{
	append(program, SIM_SYNC, SIM_WORLD);
}

void sim_programs_release(struct sim_programs *programs)
{
	sim_program_release(&programs->start);
	sim_program_release(&programs->iteration);
}
