/*
 * Calls in another order than the program says.
 *
 *	SIM_MISMATCH_ORDER	two collectives of one communicator change places
 *	SIM_DEADLOCK		of two communicators that rank and peer share, the rank uses the second
 *				one first and waits for it; its peer does so with the first one
 */
#include "programs/sim/sim_engine.h"

#include "common/op.h"

static bool is_collective(const struct sim_step *step)
{
	return step->kind == SIM_CALL && step->function != OP_SEND && step->function != OP_RECV;
}

/* Would others notice, and would this rank be through with it before them, if at all? */
static bool may_swap(const struct sim_step *earlier, const struct sim_step *later)
{
	if (!is_collective(later) || later->role != earlier->role)
		return false;
	return later->function != earlier->function ||
	       later->count * op_datatype_bytes(later->datatype) <
		       earlier->count * op_datatype_bytes(earlier->datatype);
}

static size_t find_swap(const struct sim_program *program, size_t at)
{
	size_t later = at + 1;

	while (later < program->count && !may_swap(&program->steps[at], &program->steps[later]))
		later++;
	return later;
}

static bool is_shared(const struct sim_job *job, int rank, int peer, int role)
{
	return job->members[rank][role].comm != -1 &&
	       job->members[rank][role].comm == job->members[peer][role].comm;
}

/* A later call on another communicator of both, before which the one at `at` must be over. */
static size_t find_crossing(const struct sim_job *job, const struct sim_program *program, size_t at,
			    const struct sim_fault *fault)
{
	const struct sim_step *first = &program->steps[at];
	bool is_waited_for = false;
	uint32_t newer = 0;
	size_t later = at + 1;

	for (; later < program->count; later++) {
		const struct sim_step *step = &program->steps[later];

		if (step->kind == SIM_WAIT && step->role == first->role && step->behind <= newer)
			is_waited_for = true;
		if ((step->kind == SIM_CALL || step->kind == SIM_ALL_TO_ALL) &&
		    step->role == first->role)
			newer++;
		if (is_waited_for && is_collective(step) && step->role != first->role &&
		    is_shared(job, fault->rank, fault->peer, step->role))
			break;
	}
	return later;
}

static void plan_detour(struct sim_engine *engine, int number, const struct sim_program *program)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_step *step = &program->steps[rank->step];
	const struct sim_fault *order =
		sim_job_fault(engine->job, SIM_MISMATCH, number, rank->host_ns);
	const struct sim_fault *deadlock =
		sim_job_fault(engine->job, SIM_DEADLOCK, number, rank->host_ns);
	size_t later = program->count;
	bool is_deadlock = false;

	if (!is_collective(step))
		return;
	if (order && order->what == SIM_MISMATCH_ORDER && !rank->has_mismatched &&
	    step->count > 1 && (order->role == -1 || order->role == step->role)) {
		later = find_swap(program, rank->step);
	} else if (deadlock && is_shared(engine->job, number, deadlock->peer, step->role)) {
		later = find_crossing(engine->job, program, rank->step, deadlock);
		is_deadlock = true;
	}
	if (later >= program->count)
		return;
	rank->has_mismatched |= !is_deadlock;
	rank->detour = (struct sim_detour){ .is_planned = true,
					    .is_deadlock = is_deadlock,
					    .iteration = rank->iteration,
					    .earlier = rank->step,
					    .later = later };
}

static bool is_on_detour(const struct sim_rank *rank)
{
	return rank->detour.is_planned && rank->detour.iteration == rank->iteration;
}

const struct sim_step *sim_detour_step(struct sim_engine *engine, int number,
				       const struct sim_program *program)
{
	struct sim_rank *rank = &engine->ranks[number];
	const struct sim_detour *detour = &rank->detour;

	if (!detour->is_planned)
		plan_detour(engine, number, program);
	if (is_on_detour(rank) && rank->step == detour->earlier && !detour->has_begun)
		return &program->steps[detour->later];
	if (is_on_detour(rank) && rank->step == detour->later)
		return detour->is_deadlock ? NULL : &program->steps[detour->earlier];
	return &program->steps[rank->step];
}

bool sim_detour_is_done(struct sim_engine *engine, int number)
{
	struct sim_rank *rank = &engine->ranks[number];
	struct sim_detour *detour = &rank->detour;

	if (!is_on_detour(rank) || !detour->is_deadlock || rank->step != detour->earlier ||
	    detour->has_begun)
		return true;
	detour->has_begun = true;
	return false;
}

bool sim_detour_is_swapped(const struct sim_rank *rank)
{
	return is_on_detour(rank) && !rank->detour.is_deadlock &&
	       (rank->step == rank->detour.earlier || rank->step == rank->detour.later);
}
