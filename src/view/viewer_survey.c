/* The first walk: from when to when each process has something, and where its GPUs' clocks stand. */
#include <stdlib.h>

#include "analysis/flight.h"
#include "common/attributes.h"
#include "common/op.h"
#include "view/viewer_plan.h"

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

static void widen(struct survey *survey, uint64_t ns)
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

static bool visit(const struct op_batch *batch, enum recording_place place, void *context)
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
			widen(survey, batch->column[times[i]][row]);
		add_stop(survey, batch, row, comm);
		if (comm >= 0 && op_state_state(batch->column[OP_WORD_STATE][row]) == OP_DONE)
			add_done(survey->source, comm, number, batch->column[OP_WORD_DONE][row]);
	}
	return viewer_plan_walked(survey->plan, batch->rows);
}

/* Before and after all operations there may be other signs of it. */
static void widen_by_process(struct survey *survey, const struct recording_process *process)
{
	uint64_t now_ns;

	for (size_t i = 0; i < process->comm_count && survey->first_ns == 0; i++)
		widen(survey, process->comms[i].info.init_ns);
	if (survey->first_ns == 0)
		return;
	widen(survey, process->ended_ns);
	if (process->life == RECORDING_ALIVE && recording_now(process, &now_ns))
		widen(survey, now_ns);
	else
		widen(survey, flight_last_ns(process));
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
	status = recording_each_batch(process, words, visit, &survey, NULL);
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
