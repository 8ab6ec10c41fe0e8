/* The first two walks: time span of each process, offsets of GPU clocks, matching. */
#include "output/viewer.h"
#include "output/viewer_internal.h"

#include <stdlib.h>

#include "analysis/flight.h"
#include "common/attributes.h"
#include "common/op.h"

struct survey {
	struct viewer_plan *plan;
	struct viewer_source *source;
	struct viewer_clock *clocks; /* per GPU of the process */
	uint64_t first_ns;	     /* recorder's clock */
	uint64_t last_ns;
};

static const uint32_t words = OP_WORDS_TIME | OP_WORD_BIT(OP_WORD_KIND) |
			      OP_WORD_BIT(OP_WORD_NUMBER) | OP_WORD_BIT(OP_WORD_LAUNCH);

/* Index into process->comms, or -1. */
static int comm_index(const struct recording_process *process, uint32_t id)
{
	const struct recording_comm *comm = recording_comm(process, id);

	return comm ? (int)(comm - process->comms) : -1;
}

static void survey_widen(struct survey *survey, uint64_t ns)
{
	if (ns == 0)
		return;
	if (survey->first_ns == 0 || ns < survey->first_ns)
		survey->first_ns = ns;
	if (ns > survey->last_ns)
		survey->last_ns = ns;
}

static void add_stop(struct survey *survey, const struct op_batch *batch, uint32_t row, int comm)
{
	const struct recording_process *process = survey->source->times.process;
	uint64_t state = batch->column[OP_WORD_STATE][row];
	int32_t gpu = comm >= 0 ? process->comms[comm].info.gpu : -1;

	if (op_state_source(state) != OP_TIME_KERNEL_GPU)
		return;
	for (size_t i = 0; i < survey->source->times.gpu_count; i++)
		if (survey->source->gpu_numbers[i] == gpu)
			viewer_clock_add(&survey->clocks[i], batch->column[OP_WORD_GPU_STOP][row],
					 batch->column[OP_WORD_DONE][row]);
}

static void add_done(struct viewer_source *source, int comm, uint64_t number, uint64_t done_ns)
{
	if (number > source->last_done[comm])
		source->last_done[comm] = number;
	if (done_ns > source->last_done_ns[comm])
		source->last_done_ns[comm] = done_ns;
}

static bool survey_visit(const struct op_batch *batch, enum recording_place place, void *context)
{
	static const enum op_word times[] = { OP_WORD_ISSUE, OP_WORD_LAUNCH, OP_WORD_TASK,
					      OP_WORD_ACTIVE, OP_WORD_DONE };
	struct survey *survey = context;
	const struct recording_process *process = survey->source->times.process;

	(void)place;
	for (uint32_t row = 0; row < batch->rows; row++) {
		int comm = comm_index(process, op_kind_comm(batch->column[OP_WORD_KIND][row]));
		uint64_t number = batch->column[OP_WORD_NUMBER][row];

		for (size_t i = 0; i < ARRAY_LENGTH(times); i++)
			survey_widen(survey, batch->column[times[i]][row]);
		add_stop(survey, batch, row, comm);
		if (comm >= 0 && op_state_state(batch->column[OP_WORD_STATE][row]) == OP_DONE)
			add_done(survey->source, comm, number, batch->column[OP_WORD_DONE][row]);
	}
	return viewer_plan_walked(survey->plan, batch->rows);
}

/* There may be other events before and after all operations. */
static void widen_by_process(struct survey *survey, const struct recording_process *process)
{
	uint64_t now_ns;

	for (size_t i = 0; i < process->comm_count && survey->first_ns == 0; i++)
		survey_widen(survey, process->comms[i].info.init_ns);
	if (survey->first_ns == 0)
		return;
	survey_widen(survey, process->ended_ns);
	if (process->life == RECORDING_ALIVE && recording_now(process, &now_ns))
		survey_widen(survey, now_ns);
	else
		survey_widen(survey, recording_last_ns(process));
}

static enum status survey_process(struct viewer_plan *plan, size_t index)
{
	struct viewer_source *source = &plan->sources[index];
	const struct recording_process *process = plan->recording->processes[index];
	struct survey survey = { .plan = plan, .source = source };
	enum status status;

	survey.clocks = calloc(source->times.gpu_count + 1, sizeof(*survey.clocks));
	if (survey.clocks == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < source->times.gpu_count; i++)
		viewer_clock_init(&survey.clocks[i]);
	status = recording_each_batch(process, words, survey_visit, &survey, NULL);
	for (size_t i = 0; i < source->times.gpu_count; i++)
		source->gpus[i] = viewer_clock_fit(&survey.clocks[i]);
	free(survey.clocks);
	widen_by_process(&survey, process);
	source->first_ns = viewer_common_ns(&source->times, survey.first_ns);
	source->last_ns = viewer_common_ns(&source->times, survey.last_ns);
	return status == OK ? plan->status : status;
}

enum status viewer_plan_survey(struct viewer_plan *plan)
{
	for (size_t i = 0; i < plan->recording->count; i++) {
		struct viewer_source *source = &plan->sources[i];
		enum status status = survey_process(plan, i);

		if (status != OK)
			return status;
		if (!source->is_shown || source->first_ns == 0)
			continue;
		if (plan->first_ns == 0 || source->first_ns < plan->first_ns)
			plan->first_ns = source->first_ns;
		if (source->last_ns > plan->last_ns)
			plan->last_ns = source->last_ns;
	}
	return OK;
}

struct search {
	struct viewer_plan *plan;
	struct viewer_source *source;
	struct viewer_find *find;
	struct filter filter;
};

static bool is_listed(const struct viewer_find *find, uint32_t comm)
{
	for (size_t i = 0; i < find->comm_count && i < VIEWER_FIND_COMMS; i++)
		if (find->comms[i] == comm)
			return true;
	return false;
}

static void search_take(struct search *search, const struct op_record *op,
			const struct job_seat *seat, enum recording_place found)
{
	struct viewer_find *find = search->find;
	struct viewer_place place = viewer_place(&search->source->times, op,
						 viewer_plan_is_open(search->source, op, found));
	uint64_t end_ns = place.end_ns == VIEWER_OPEN ? place.start_ns : place.end_ns;

	if (place.kind == VIEWER_NOWHERE)
		return;
	if (find->count == 0 || place.start_ns < find->start_ns)
		find->start_ns = place.start_ns;
	if (end_ns > find->end_ns)
		find->end_ns = end_ns;
	find->count++;
	if (!is_listed(find, seat->comm)) {
		if (find->comm_count < VIEWER_FIND_COMMS)
			find->comms[find->comm_count] = seat->comm;
		find->comm_count++;
	}
}

static bool search_visit(const struct op_record *op, enum recording_place found, void *context)
{
	struct search *search = context;
	const struct job *job = search->plan->job;
	const struct job_seat *seat;

	if (op->number != search->find->number)
		return true;
	seat = job_seat(job, search->source->times.index, op->comm);
	if (seat && filter_has_rank(&search->filter, job->ranks[seat->rank].rank) &&
	    filter_has_comm(&search->filter, &job->comms[seat->comm]))
		search_take(search, op, seat, found);
	return true;
}

enum status viewer_find(struct viewer_plan *plan, struct viewer_find *find)
{
	struct search search = { .plan = plan, .find = find };
	enum status status = OK;

	if (find->comm) {
		search.filter.comms[0] = find->comm;
		search.filter.comm_count = 1;
	}
	if (find->rank >= 0) {
		search.filter.ranks[0] = (struct filter_range){ find->rank, find->rank };
		search.filter.range_count = 1;
	}
	for (size_t i = 0; i < plan->recording->count && status == OK; i++) {
		search.source = &plan->sources[i];
		status = recording_each_op(plan->recording->processes[i], search_visit, &search,
					   NULL);
	}
	return status;
}

enum { PROGRESS_STEP = 4096 };

/* The GPUs of the communicators of a process, each once. */
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
	/* One more, because calloc() may return NULL for 0. */
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

/* Rank numbers if unique, else the order of processes. */
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
	/*
	 * Recorders write finished operations only; simulated traces of a hung job also contain operations in
	 * flight.
	 */
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
	/* Reports progress only occasionally. */
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

/* The timeline starts with the first shown operation. */
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

static bool join_visit(const struct op_record *op, enum recording_place found, void *context)
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
		enum status status = recording_each_op(process, join_visit, &join, NULL);

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
