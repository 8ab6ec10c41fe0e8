#include "view/viewer_find.h"

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

static void take(struct search *search, const struct op_record *op, const struct job_seat *seat,
		 enum recording_place found)
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

static bool visit(const struct op_record *op, enum recording_place found, void *context)
{
	struct search *search = context;
	const struct job *job = search->plan->job;
	const struct job_seat *seat;

	if (op->number != search->find->number)
		return true;
	seat = job_seat(job, search->source->times.index, op->comm);
	if (seat && filter_has_rank(&search->filter, job->ranks[seat->rank].rank) &&
	    filter_has_comm(&search->filter, &job->comms[seat->comm]))
		take(search, op, seat, found);
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
		status = recording_each_op(plan->recording->processes[i], visit, &search, NULL);
	}
	return status;
}
