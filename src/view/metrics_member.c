/* A member is made of seats: what adds up, what is the largest, and what the seat that tells most of it says. */
#include "view/metrics_member.h"

const struct comm_info *metrics_seat_info(const struct metrics_model *model, uint32_t seat)
{
	const struct job *job = model->job;
	uint32_t process = job->seats[seat].process;

	return &model->recording->processes[process]->comms[seat - job->first_seat[process]].info;
}

bool metrics_seat_is_over(const struct metrics_model *model, uint32_t seat)
{
	const struct comm_info *info = metrics_seat_info(model, seat);

	return info->finalize_ns != 0 || info->flags & COMM_FLAG_FINALIZED ||
	       !metrics_is_living(model->recording->processes[model->job->seats[seat].process]);
}

static uint64_t largest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static const struct comm_counts *counts_of(const struct metrics_model *model, uint32_t seat)
{
	uint32_t process = model->job->seats[seat].process;

	return &model->recording->processes[process]
			->comms[seat - model->job->first_seat[process]]
			.counts;
}

/* Does this seat tell more of the member than the one that tells so far? A living one does; then the one
 * that was made last. */
static bool tells_more(const struct metrics_model *model, uint32_t seat, uint32_t than)
{
	const struct job_seat *seats = model->job->seats;

	if (than == METRICS_NOBODY)
		return true;
	if (metrics_seat_is_over(model, seat) != metrics_seat_is_over(model, than))
		return metrics_seat_is_over(model, than);
	return seats[seat].process == seats[than].process &&
	       seats[seat].comm_id > seats[than].comm_id;
}

static void add_position(struct metrics_member *member, const struct comm_counts *counts)
{
	member->collectives = largest(member->collectives, counts->collectives);
	member->replays = largest(member->replays, counts->replays);
	member->number_issued = largest(member->number_issued, counts->issued);
	member->number_done = largest(member->number_done, counts->last_done_number);
}

void metrics_member_add(const struct metrics_model *model, struct metrics_member *member,
			uint32_t seat)
{
	const struct live_seat *live = &model->live->seats[seat];
	const struct comm_counts *counts = counts_of(model, seat);

	member->is_used = true;
	member->issued += counts->issued;
	member->finished += counts->recorded;
	member->untrusted += counts->untrusted;
	member->wait_ns += live->wait_ns;
	member->knows_wait |= live->knows_wait;
	member->in_flight = member->kind == METRICS_OTHER
				    ? member->in_flight + live->in_flight
				    : largest(member->in_flight, live->in_flight);
	if (live->oldest != NULL && live->oldest_age_ns >= member->oldest_age_ns) {
		member->oldest_age_ns = live->oldest_age_ns;
		member->oldest = seat;
	}
	if (member->kind == METRICS_OTHER)
		return;
	if (member->seat == METRICS_NOBODY || tells_more(model, seat, member->seat)) {
		bool gives_way = member->seat != METRICS_NOBODY &&
				 metrics_seat_is_over(model, member->seat) &&
				 !metrics_seat_is_over(model, seat);

		if (gives_way)
			member->collectives = member->replays = member->number_issued =
				member->number_done = 0;
		member->seat = seat;
		member->process = model->job->seats[seat].process;
		member->gpu = model->job->seats[seat].rank;
		member->signature = counts->signature;
		member->still_ns = live->still_ns;
		member->is_ended =
			model->recording->processes[member->process]->life == RECORDING_ENDED;
	}
	if (metrics_seat_is_over(model, seat) == metrics_seat_is_over(model, member->seat))
		add_position(member, counts);
}
