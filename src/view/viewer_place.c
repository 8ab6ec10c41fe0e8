#include "view/viewer_place.h"

#include "common/attributes.h"
#include "common/op.h"
#include "view/viewer.h"

/* Later is no time of a recording but damage: the year 2116. */
#define LAST_NS (UINT64_C(1) << 62)

const char *viewer_place_name(enum viewer_place_kind kind)
{
	switch (kind) {
	case VIEWER_NOWHERE:
		return "nowhere";
	case VIEWER_TIMED:
		return "timed";
	case VIEWER_SEEN:
		return "seen";
	case VIEWER_CALLED:
		return "called";
	case VIEWER_IN_FLIGHT:
		return "in_flight";
	}
	return "?";
}

uint64_t viewer_common_ns(const struct viewer_times *times, uint64_t clock_ns)
{
	return align_ns(times->align, times->index, clock_ns);
}

static const struct viewer_clock_fit *gpu_of(const struct viewer_times *times, uint32_t comm)
{
	const struct recording_comm *of = recording_comm(times->process, comm);
	int32_t number = of ? of->info.gpu : -1;

	for (size_t i = 0; i < times->gpu_count; i++)
		if (times->gpu_numbers[i] == number)
			return &times->gpus[i];
	return NULL;
}

uint64_t viewer_gpu_ns(const struct viewer_times *times, uint32_t comm, uint64_t gpu_ns,
		       uint64_t near_ns)
{
	const struct viewer_clock_fit *fit = gpu_of(times, comm);

	return fit && fit->is_known ? viewer_clock_ns(fit, gpu_ns, near_ns) : 0;
}

static uint64_t first_of(const uint64_t *times, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (times[i] != 0)
			return times[i];
	return 0;
}

uint64_t viewer_first_sign_ns(const struct op_record *op)
{
	const uint64_t times[] = { op->issue_ns, op->launch_ns, op->task_ns, op->active_ns,
				   op->done_ns };

	return first_of(times, ARRAY_LENGTH(times));
}

/* When something of its execution was first seen, or else the call. */
static uint64_t first_activity_ns(const struct op_record *op)
{
	const uint64_t times[] = { op->active_ns, op->task_ns, op->launch_ns, op->issue_ns };

	return first_of(times, ARRAY_LENGTH(times));
}

/* From and to on the recorder's clock. */
static struct viewer_place between(const struct viewer_times *times, enum viewer_place_kind kind,
				   uint64_t from_ns, uint64_t to_ns)
{
	struct viewer_place place = { .kind = kind };

	place.start_ns = viewer_common_ns(times, from_ns);
	place.end_ns = place.start_ns + (to_ns > from_ns ? to_ns - from_ns : 0);
	return place;
}

/* The end decides: it is what ranks are aligned by, and the GPU's own duration leads back. */
static struct viewer_place by_duration(const struct viewer_times *times, const struct op_record *op)
{
	struct viewer_place place = { .kind = VIEWER_TIMED };
	uint64_t duration_ns = op_duration_ns(op);
	uint64_t end_ns = op->done_ns;

	if (op->time_source == OP_TIME_KERNEL_GPU) {
		uint64_t gpu_ns = viewer_gpu_ns(times, op->comm, op->gpu_stop_ns,
						op->done_ns ? op->done_ns : op->active_ns);

		if (gpu_ns != 0)
			end_ns = gpu_ns;
	}
	if (end_ns < duration_ns || end_ns == 0)
		return (struct viewer_place){ .kind = VIEWER_NOWHERE };
	place.end_ns = viewer_common_ns(times, end_ns);
	place.start_ns = place.end_ns - duration_ns;
	return place;
}

/* When an operation that nobody saw ending must have been over. */
static uint64_t abandoned_ns(const struct viewer_times *times, const struct op_record *op)
{
	const struct recording_comm *comm = recording_comm(times->process, op->comm);

	if (op->done_ns != 0)
		return op->done_ns;
	if (comm && comm->info.finalize_ns != 0)
		return comm->info.finalize_ns;
	return times->process->ended_ns;
}

/* Operations of a communicator run one after the other: before the last one ended it was queued. */
static struct viewer_place in_flight(const struct viewer_times *times, const struct op_record *op,
				     uint64_t from_ns)
{
	const struct recording_comm *comm = recording_comm(times->process, op->comm);
	uint64_t free_ns = comm ? times->last_done_ns[comm - times->process->comms] : 0;
	struct viewer_place place;

	if (free_ns > from_ns)
		from_ns = free_ns;
	place = between(times, VIEWER_IN_FLIGHT, from_ns, from_ns);
	place.end_ns = VIEWER_OPEN;
	return place;
}

static struct viewer_place find_place(const struct viewer_times *times, const struct op_record *op,
				      bool is_open)
{
	uint64_t from_ns = first_activity_ns(op);
	uint64_t to_ns = op->done_ns;
	struct viewer_place place;

	if (op->time_source != OP_TIME_NONE && !is_open) {
		place = by_duration(times, op);
		if (place.kind != VIEWER_NOWHERE)
			return place;
	}
	if (from_ns == 0)
		from_ns = op->done_ns;
	if (from_ns == 0)
		return (struct viewer_place){ .kind = VIEWER_NOWHERE };
	if (is_open)
		return in_flight(times, op, from_ns);
	if (op->state == OP_ABANDONED)
		to_ns = abandoned_ns(times, op);
	if (to_ns >= from_ns)
		return between(times, VIEWER_SEEN, from_ns, to_ns);
	from_ns = viewer_first_sign_ns(op);
	to_ns = op->task_ns > op->launch_ns ? op->task_ns : op->launch_ns;
	return between(times, VIEWER_CALLED, from_ns, to_ns);
}

bool viewer_place_is_sane(const struct viewer_place *place)
{
	uint64_t end_ns = place->end_ns == VIEWER_OPEN ? place->start_ns : place->end_ns;

	return place->start_ns != 0 && place->start_ns <= end_ns && end_ns < LAST_NS;
}

struct viewer_place viewer_place(const struct viewer_times *times, const struct op_record *op,
				 bool is_open)
{
	struct viewer_place place = find_place(times, op, is_open);

	if (!viewer_place_is_sane(&place))
		return (struct viewer_place){ .kind = VIEWER_NOWHERE };
	return place;
}

struct viewer_place viewer_place_call(const struct viewer_times *times, const struct op_record *op)
{
	struct viewer_place place = between(times, VIEWER_CALLED, op->issue_ns, op->launch_ns);

	if (op->issue_ns == 0 || !viewer_place_is_sane(&place))
		place.kind = VIEWER_NOWHERE;
	return place;
}
