#include "view/viewer_plan.h"

#include <stdlib.h>

#include "analysis/flight.h"

enum { PROGRESS_STEP = 4096 };

/* The GPUs that a process's communicators are on, each once. */
static size_t list_gpus(const struct recording_process *process, int32_t *numbers)
{
	size_t count = 0;

	for (size_t i = 0; i < process->comm_count; i++) {
		size_t at = 0;

		while (at < count && numbers[at] != process->comms[i].info.gpu)
			at++;
		if (at == count)
			numbers[count++] = process->comms[i].info.gpu;
	}
	return count;
}

static enum status init_source(struct viewer_plan *plan, size_t index)
{
	const struct recording_process *process = plan->recording->processes[index];
	struct viewer_source *source = &plan->sources[index];
	/* One more: some libraries give back NULL for nothing. */
	size_t room = process->comm_count + 1;

	source->gpu_numbers = calloc(room, sizeof(*source->gpu_numbers));
	source->gpus = calloc(room, sizeof(*source->gpus));
	source->last_done = calloc(room, sizeof(*source->last_done));
	source->last_done_ns = calloc(room, sizeof(*source->last_done_ns));
	if (!source->gpu_numbers || !source->gpus || !source->last_done || !source->last_done_ns)
		return ERR_NO_SPACE;
	source->times = (struct viewer_times){
		.process = process,
		.align = plan->align,
		.index = index,
		.gpus = source->gpus,
		.gpu_numbers = source->gpu_numbers,
		.gpu_count = list_gpus(process, source->gpu_numbers),
		.last_done_ns = source->last_done_ns,
	};
	source->is_shown = process->comm_count == 0 && plan->filter->comm_count == 0 &&
			   plan->filter->range_count == 0;
	for (uint32_t i = plan->job->first_seat[index]; i < plan->job->first_seat[index + 1]; i++)
		source->is_shown |= viewer_plan_has_seat(plan, &plan->job->seats[i]);
	plan->to_walk += 3 * (process->recorded + process->flight_count);
	return OK;
}

/* Ranks as people number them where each is there once, else processes as they come. */
static void number_sources(struct viewer_plan *plan)
{
	size_t count = plan->recording->count;
	bool is_unique = true;

	for (size_t i = 0; i < count && is_unique; i++) {
		const struct job_rank *rank = &plan->job->ranks[plan->job->process_rank[i]];

		/* Processes are sorted by rank within a job. */
		is_unique = rank->rank >= 0 && rank->rank < INT32_MAX &&
			    plan->job->group_count < 2 && rank->attempt == 0;
		plan->sources[i].number = (uint32_t)rank->rank + 1;
	}
	for (size_t i = 0; i < count && !is_unique; i++)
		plan->sources[i].number = (uint32_t)i + 1;
}

enum status viewer_plan_init(struct viewer_plan *plan, const struct job *job,
			     const struct align *align, const struct filter *filter)
{
	enum status status = OK;

	*plan = (struct viewer_plan){
		.recording = job->recording,
		.job = job,
		.align = align,
		.filter = filter,
		.to_ns = UINT64_MAX,
	};
	viewer_meet_init(&plan->meet, job, 0);
	plan->sources = calloc(plan->recording->count + 1, sizeof(*plan->sources));
	if (plan->sources == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < plan->recording->count && status == OK; i++)
		status = init_source(plan, i);
	if (status == OK)
		number_sources(plan);
	else
		viewer_plan_release(plan);
	return status;
}

void viewer_plan_release(struct viewer_plan *plan)
{
	for (size_t i = 0; plan->sources && i < plan->recording->count; i++) {
		free(plan->sources[i].gpu_numbers);
		free(plan->sources[i].gpus);
		free(plan->sources[i].last_done);
		free(plan->sources[i].last_done_ns);
	}
	free(plan->sources);
	plan->sources = NULL;
	viewer_meet_release(&plan->meet);
}

bool viewer_plan_has_seat(const struct viewer_plan *plan, const struct job_seat *seat)
{
	const struct filter *filter = plan->filter;

	if (seat == NULL)
		return filter->comm_count == 0 && filter->range_count == 0;
	return filter_has_rank(filter, plan->job->ranks[seat->rank].rank) &&
	       filter_has_comm(filter, &plan->job->comms[seat->comm]);
}

bool viewer_plan_is_open(const struct viewer_source *source, const struct op_record *op,
			 enum recording_place found)
{
	const struct recording_process *process = source->times.process;
	const struct recording_comm *comm = recording_comm(process, op->comm);
	struct recording_flight flight = { .op = *op };

	if (op->state != OP_ISSUED && op->state != OP_LAUNCHED && op->state != OP_RUNNING)
		return false;
	/* A recorder writes what is finished; who writes the trace of a job that hangs (a simulation)
	 * puts what was in flight at its end. */
	if (found != RECORDING_IN_LIVE && (process->region || process->life == RECORDING_ENDED))
		return false;
	if (op->state != OP_RUNNING && comm &&
	    op->number < source->last_done[comm - process->comms])
		return false;
	for (size_t i = 0; found == RECORDING_IN_LIVE && i < process->flight_count; i++)
		if (process->flights[i].op.comm == op->comm &&
		    process->flights[i].op.number == op->number)
			flight.open_children = process->flights[i].open_children;
	return flight_kind(process, &flight) == FLIGHT_OPEN;
}

bool viewer_plan_is_inside(const struct viewer_plan *plan, const struct viewer_place *place)
{
	if (place->kind == VIEWER_NOWHERE)
		return plan->from_ns == 0 && plan->to_ns == UINT64_MAX;
	return place->start_ns < plan->to_ns && place->end_ns >= plan->from_ns;
}

bool viewer_plan_walked(struct viewer_plan *plan, uint64_t more)
{
	double fraction;

	plan->walked += more;
	/* Not for each one. */
	if (plan->progress == NULL ||
	    plan->walked / PROGRESS_STEP == (plan->walked - more) / PROGRESS_STEP)
		return true;
	fraction = plan->to_walk ? (double)plan->walked / (double)plan->to_walk : 0;
	if (plan->progress(fraction < 1 ? fraction : 1, plan->progress_context))
		return true;
	plan->status = ERR_GONE;
	return false;
}

struct join {
	struct viewer_plan *plan;
	struct viewer_source *source;
};

/* The timeline begins with the first thing that is shown. */
static void begin_at(struct viewer_plan *plan, uint64_t ns)
{
	if (ns != 0 && (plan->origin_ns == 0 || ns < plan->origin_ns))
		plan->origin_ns = ns;
}

static void take_in(struct join *join, const struct op_record *op, const struct viewer_place *place)
{
	struct viewer_plan *plan = join->plan;
	const struct viewer_times *times = &join->source->times;

	plan->expected++;
	if (place->kind == VIEWER_NOWHERE)
		return;
	begin_at(plan, place->start_ns);
	if (plan->has_details)
		begin_at(plan, viewer_common_ns(times, op->active_ns));
	if (plan->has_calls)
		begin_at(plan, viewer_common_ns(times, op->issue_ns));
	if (place->kind == VIEWER_IN_FLIGHT && join->source->last_ns > plan->end_ns)
		plan->end_ns = join->source->last_ns;
	else if (place->kind != VIEWER_IN_FLIGHT && place->end_ns > plan->end_ns)
		plan->end_ns = place->end_ns;
}

static bool visit(const struct op_record *op, enum recording_place found, void *context)
{
	struct join *join = context;
	struct viewer_plan *plan = join->plan;
	const struct job_seat *seat = job_seat(plan->job, join->source->times.index, op->comm);
	bool is_shown = viewer_plan_has_seat(plan, seat);
	struct viewer_place place = viewer_place(&join->source->times, op,
						 viewer_plan_is_open(join->source, op, found));

	if (viewer_plan_is_inside(plan, &place)) {
		if (is_shown)
			take_in(join, op, &place);
		if (seat) {
			struct viewer_meet_op met = { op, seat, &place, is_shown };

			viewer_meet_add(&plan->meet, &met);
		}
	}
	if (plan->meet.status != OK)
		plan->status = plan->meet.status;
	return plan->status == OK && viewer_plan_walked(plan, 1);
}

enum status viewer_plan_join(struct viewer_plan *plan)
{
	for (size_t i = 0; i < plan->recording->count; i++) {
		const struct recording_process *process = plan->recording->processes[i];
		struct join join = { plan, &plan->sources[i] };
		enum status status = recording_each_op(process, visit, &join, NULL);

		if (status == OK)
			status = plan->status;
		if (status != OK)
			return status;
		for (size_t j = 0; j < process->file_count && plan->sources[i].is_shown; j++)
			plan->expected_details += process->files[j].details;
	}
	if (plan->origin_ns == 0)
		plan->origin_ns = plan->first_ns;
	if (plan->end_ns < plan->origin_ns)
		plan->end_ns = plan->origin_ns;
	return OK;
}
