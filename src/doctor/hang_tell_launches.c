/* What CUDA events around launches show: how far GPUs are, between two launches that were timed. */
#include "doctor/hang_internal.h"

#include <inttypes.h>

#include "common/op.h"
#include "common/text.h"

#define SAY text, sizeof(text)

/* The last collective that the GPU of this seat's rank is known to have finished; 0: unknown. */
static uint64_t last_finished(const struct hang_scene *scene, uint32_t seat)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flights = hang_flights(scene, seat);
	uint64_t last = 0;

	for (size_t i = 0; i < of->flight_count; i++)
		if (hang_gpu(scene, seat, &flights[i]) == HANG_GPU_OVER &&
		    op_is_collective(flights[i].op.function) &&
		    !(flights[i].op.flags & OP_FLAG_REPLAY) && flights[i].op.match > last)
			last = flights[i].op.match;
	return last;
}

/* Its collectives before `number` that its GPU may be in: how many, and the first and the last of them. */
static uint32_t unseen_before(const struct hang_scene *scene, uint32_t seat, uint64_t number,
			      uint64_t *first, uint64_t *last)
{
	const struct hang_seat *of = &scene->seats[seat];
	const struct recording_flight *flights = hang_flights(scene, seat);
	uint32_t count = 0;

	for (size_t i = 0; i < of->flight_count; i++) {
		const struct op_record *op = &flights[i].op;

		if (!op_is_collective(op->function) || op->flags & OP_FLAG_REPLAY ||
		    op->match >= number || hang_flight_kind(scene, seat, i) != FLIGHT_UNSEEN)
			continue;
		if (count++ == 0)
			*first = op->match;
		*last = op->match;
	}
	return count;
}

size_t hang_ranks_with(struct hang_tale *tale, enum hang_gpu gpu)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	const struct hang_match *match = &scene->matches[tale->lead->comm];
	size_t count = 0;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i];

		if (!scene->seats[seat].is_over && hang_is_in_match(scene, seat, match) &&
		    hang_gpu(scene, seat, scene->seats[seat].front) == gpu)
			tale->ranks[count++] = scene->job->seats[seat].rank;
	}
	return count;
}

bool hang_is_by_launches(const struct hang_scene *scene, uint32_t c)
{
	return (scene->shows[c] & (HANG_SHOWS_LAUNCHES | COMM_FLAG_SEES_KERNELS)) ==
	       HANG_SHOWS_LAUNCHES;
}

static void tell_unknown_gpus(struct hang_tale *tale)
{
	size_t count = hang_ranks_with(tale, HANG_GPU_UNKNOWN);
	char text[400] = "";

	if (count == 0)
		return;
	hang_say_ranks(SAY, tale->scene->job, tale->ranks, count);
	verdict_missing(
		tale->verdict,
		"Whether the GPU%s of rank%s %s %s reached it is unknown: CUDA events do not "
		"show this launch there.",
		count == 1 ? "" : "s", count == 1 ? "" : "s", text, count == 1 ? "has" : "have");
}

void hang_tell_launches(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	uint32_t seat = tale->lead->seat, process = scene->job->seats[seat].process;
	uint64_t number = scene->seats[seat].front->op.match, first = 0, last = 0;
	uint64_t over = last_finished(scene, seat);
	uint64_t read_ns = scene->job->recording->processes[process]->times_read_ns;
	size_t reached = hang_ranks_with(tale, HANG_GPU_REACHED);
	uint32_t unseen = unseen_before(scene, seat, number, &first, &last);
	char text[300] = "";

	text_append(SAY,
		    "CUDA events around the launches show this: the GPU%s of %zu other rank%s "
		    "reached it, this one had not when it was last asked",
		    reached == 1 ? "" : "s", reached, reached == 1 ? " has" : "s have");
	if (read_ns != 0)
		hang_say_for(SAY, scene, " (", hang_ago(scene, process, read_ns), " ago)");
	verdict_evidence(tale->verdict, "%s.", text);
	if (over > 0)
		verdict_evidence(tale->verdict,
				 "The last collective of %.60s that this GPU is known to have "
				 "finished is #%" PRIu64 ".",
				 hang_comm(scene, seat)->label, over);
	if (unseen == 1)
		verdict_missing(tale->verdict,
				"The launch of #%" PRIu64 " was not timed there: its GPU may also "
				"be in that one.",
				first);
	else if (unseen > 1)
		verdict_missing(tale->verdict,
				"%u launches from #%" PRIu64 " to #%" PRIu64
				" were not timed there: its GPU may also be in one of these.",
				unseen, first, last);
	tell_unknown_gpus(tale);
}

void hang_tell_between(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct hang_end *lead = tale->lead;
	const struct job_comm *comm = &scene->job->comms[lead->comm];
	bool is_bounded = scene->matches[lead->comm].unjudged == HANG_NONE_STARTED;
	uint64_t over = UINT64_MAX;
	char text[200] = "";

	if (!hang_is_by_launches(scene, lead->comm))
		return;
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint64_t finished = last_finished(scene, comm->seats[i]);

		if (!scene->seats[comm->seats[i]].is_over && finished < over)
			over = finished;
	}
	if (over == 0 || over == UINT64_MAX)
		return;
	text_append(SAY,
		    "CUDA events around launches show that the GPUs of all ranks have finished "
		    "collective #%" PRIu64,
		    over);
	if (is_bounded && over + 1 < lead->flight->op.match)
		text_append(SAY,
			    ": they are somewhere between #%" PRIu64 " and #%" PRIu64
			    ", whose launches were not all timed",
			    over, lead->flight->op.match);
	else if (!is_bounded)
		text_append(SAY, "; they do not show the end of a later one");
	verdict_evidence(tale->verdict, "%s.", text);
}

void hang_tell_reached(struct hang_tale *tale)
{
	const struct hang_end *lead = tale->lead;
	size_t reached;

	if (lead->node != lead->comm || !hang_is_by_launches(tale->scene, lead->comm))
		return;
	reached = hang_ranks_with(tale, HANG_GPU_REACHED);
	if (reached == 0)
		return;
	verdict_evidence(
		tale->verdict,
		"The GPU%s of %zu rank%s reached it and not finished it; CUDA events around "
		"launches do not show which kernel makes no progress.",
		reached == 1 ? "" : "s", reached, reached == 1 ? " has" : "s have");
	tell_unknown_gpus(tale);
}

void hang_doubt_silent_gpus(struct hang_tale *tale)
{
	const struct hang_scene *scene = tale->scene;
	const struct job_comm *comm = &scene->job->comms[tale->lead->comm];
	uint64_t longest_ns = 0;
	size_t count = 0;
	char text[400] = "", time[UNITS_TEXT], date[60] = "";

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		uint32_t seat = comm->seats[i], p = scene->job->seats[seat].process;
		const struct hang_process *process = &scene->processes[p];

		if (process->gpu_silent_ns == 0 || process->life != HANG_RUNS ||
		    scene->seats[seat].is_over)
			continue;
		tale->ranks[count++] = scene->job->seats[seat].rank;
		if (process->gpu_silent_ns <= longest_ns)
			continue;
		longest_ns = process->gpu_silent_ns;
		date[0] = '\0';
		hang_say_wall(
			date, sizeof(date),
			hang_wall(scene, p, scene->job->recording->processes[p]->times_read_ns));
	}
	if (count == 0)
		return;
	hang_say_ranks(SAY, scene->job, tale->ranks, count);
	verdict_missing(
		tale->verdict,
		"GPU state of rank%s %s was last known %s ago%s%s%s: the CUDA driver has not "
		"answered the recorder since. Nothing is concluded from it.",
		count == 1 ? "" : "s", text, units_duration(time, longest_ns),
		date[0] ? " (at " : "", date, date[0] ? ")" : "");
}
