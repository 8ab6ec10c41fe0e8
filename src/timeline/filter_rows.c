/* When an operation was, against a filter's limits; and which rows of a process pass it. */
#include "timeline/filter_rows.h"

#include "timeline/filter.h"

/* ---- limits ---------------------------------------------------------------------------------- */

/* Wall time of the job's first and last sign of life, by the hosts' own clocks. */
static void wall_span(const struct recording *recording, uint64_t *first_ns, uint64_t *last_ns)
{
	*first_ns = UINT64_MAX;
	*last_ns = 0;
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];
		uint64_t wall_ns;

		if (process->anchor_count == 0)
			continue;
		if (process->anchors[0].wall_ns < *first_ns)
			*first_ns = process->anchors[0].wall_ns;
		if (process->anchors[process->anchor_count - 1].wall_ns > *last_ns)
			*last_ns = process->anchors[process->anchor_count - 1].wall_ns;
		for (size_t i = 0; i < process->comm_count; i++)
			if (recording_wall_ns(process, process->comms[i].counts.last_done_ns,
					      &wall_ns) &&
			    wall_ns > *last_ns)
				*last_ns = wall_ns;
	}
}

static uint64_t limit_wall(const struct filter_time *time, uint64_t first_ns, uint64_t last_ns)
{
	const uint64_t day_ns = UINT64_C(86400) * 1000000000;

	switch (time->base) {
	case FILTER_FROM_START:
		return first_ns == UINT64_MAX ? 0 : first_ns + time->ns;
	case FILTER_FROM_END:
		return last_ns > time->ns ? last_ns - time->ns : 1;
	case FILTER_WALL:
		return time->ns;
	case FILTER_TIME_OF_DAY:
		return first_ns == UINT64_MAX ? 0 : first_ns - first_ns % day_ns + time->ns;
	default:
		return 0;
	}
}

void filter_wall_limits(const struct filter *filter, const struct recording *recording,
			uint64_t *since_ns, uint64_t *until_ns)
{
	uint64_t first_ns, last_ns;

	wall_span(recording, &first_ns, &last_ns);
	*since_ns = limit_wall(&filter->since, first_ns, last_ns);
	*until_ns = limit_wall(&filter->until, first_ns, last_ns);
}

void filter_clock_limits(const struct recording_process *process, uint64_t since_wall_ns,
			 uint64_t until_wall_ns, uint64_t *since_ns, uint64_t *until_ns)
{
	*since_ns = 0;
	*until_ns = UINT64_MAX;
	if (since_wall_ns != 0)
		recording_clock_ns(process, since_wall_ns, since_ns);
	if (until_wall_ns != 0)
		recording_clock_ns(process, until_wall_ns, until_ns);
}

/* ---- rows ------------------------------------------------------------------------------------ */

bool filter_is_empty(const struct filter *filter)
{
	return filter->comm_count + filter->function_count + filter->range_count == 0 &&
	       filter->since.base == FILTER_NO_TIME && filter->until.base == FILTER_NO_TIME &&
	       !filter->has_tag;
}

bool filter_rows_start(struct filter_rows *rows, const struct filter *filter, const struct job *job,
		       uint32_t process)
{
	uint64_t since_ns, until_ns;
	bool has_rank = false;

	*rows = (struct filter_rows){ .filter = filter, .job = job, .process = process };
	filter_wall_limits(filter, job->recording, &since_ns, &until_ns);
	filter_clock_limits(job->recording->processes[process], since_ns, until_ns, &rows->since_ns,
			    &rows->until_ns);
	for (size_t r = 0; r < job->rank_count; r++)
		has_rank |= job->ranks[r].process == process &&
			    filter_has_rank(filter, job->ranks[r].rank);
	return has_rank;
}

/* Communicator, function and rank: of all operations with this OP_WORD_KIND. */
static bool is_kind_passing(const struct filter_rows *rows, uint64_t kind)
{
	const struct job *job = rows->job;
	const struct job_seat *seat = job_seat(job, rows->process, op_kind_comm(kind));
	uint8_t function = job_name_number(job, rows->process, (uint8_t)op_kind_names(kind));

	return seat != NULL && filter_has_rank(rows->filter, job->ranks[seat->rank].rank) &&
	       filter_has_comm(rows->filter, &job->comms[seat->comm]) &&
	       filter_has_function(rows->filter, job, function);
}

uint32_t filter_rows_choose(struct filter_rows *rows, const struct op_batch *batch,
			    uint32_t *places)
{
	const uint64_t *kinds = batch->column[OP_WORD_KIND],
		       *tags = batch->column[OP_WORD_USER_TAG];
	uint32_t count = 0;

	for (uint32_t i = 0; i < batch->rows; i++) {
		if (kinds[i] != rows->last_kind) {
			rows->last_kind = kinds[i];
			rows->is_last_passing = is_kind_passing(rows, kinds[i]);
		}
		if (rows->is_last_passing &&
		    (!rows->filter->has_tag || tags[i] == rows->filter->tag) &&
		    filter_is_within(rows->since_ns, rows->until_ns, batch->column[OP_WORD_DONE][i],
				     batch->column[OP_WORD_ISSUE][i]))
			places[count++] = i;
	}
	return count;
}
