/*
 * From the last look to families of series, in the order of metrics_families.h.
 *
 *	live --> model: members, others, processes --> rows of totals and links --> one of three encoders
 */
#include "view/metrics.h"

#include "view/metrics_writer.h"

static void label_if_known(struct metrics_out *out, const char *name, int64_t number, int64_t least)
{
	if (number >= least)
		metrics_label_number(out, name, number);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* One that lives and was stopped, by SIGSTOP or a debugger, is neither alive nor gone. */
static const char *process_state(const struct recording_process *process)
{
	bool is_stopped = process->process_state == 'T' || process->process_state == 't';

	if (process->life == RECORDING_ALIVE && is_stopped)
		return "stopped";
	return recording_life_name(process->life);
}

static void write_process_infos(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_PROCESS_INFO);
	for (size_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];
		const struct recording_process *process;
		const struct job_rank *rank;
		struct metrics_labels labels;

		if (member->kind != METRICS_PROCESS || !metrics_is_shown(writer, member))
			continue;
		process = model->recording->processes[member->process];
		rank = &model->job->ranks[model->job->process_rank[member->process]];
		metrics_labels_begin(out, &labels);
		metrics_labels_copy(out, member->labels);
		metrics_label(out, "host", process->host);
		label_if_known(out, "local_rank", process->local_rank, 0);
		label_if_known(out, "world_size", process->world_size, 1);
		label_if_known(out, "gpu", rank->gpu, 0);
		metrics_label(out, "gpu_uuid", rank->gpu_uuid);
		metrics_label(out, "mode", process->mode);
		label_if_known(out, "interface", process->interface, 1);
		metrics_label(out, "state", process_state(process));
		metrics_labels_end(out, &labels);
		metrics_put_unsigned(out, labels, 1);
	}
}

_Static_assert((int)LOST_REASONS == (int)ODD_REASONS, "reasons are walked together");

enum loss { LOSS_OPERATIONS, LOSS_DETAILS, LOSS_ODD };

/* Name and count of a reason; NULL when there is no such reason of that kind. */
static const char *reason_name(enum loss loss, unsigned int reason)
{
	if (loss == LOSS_ODD)
		return op_odd_name(reason);
	if ((loss == LOSS_OPERATIONS) != op_lost_is_whole(reason))
		return NULL;
	return op_lost_name(reason);
}

static uint64_t reason_count(const struct metrics_model *model, const struct metrics_member *member,
			     enum loss loss, unsigned int reason)
{
	uint64_t count = 0;

	for (uint32_t p = member->process; p != METRICS_NOBODY; p = model->next_process[p]) {
		const struct recording_process *process = model->recording->processes[p];

		count += loss == LOSS_ODD ? process->odd[reason] : process->lost[reason];
	}
	return count;
}

static void write_losses(struct metrics_writer *writer, enum metrics_family family, enum loss loss)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, family);
	for (uint32_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];

		if (member->kind != METRICS_PROCESS || !metrics_is_shown(writer, member))
			continue;
		for (unsigned int reason = 0; reason < LOST_REASONS; reason++) {
			const char *name = reason_name(loss, reason);
			struct metrics_labels labels;

			if (name == NULL)
				continue;
			metrics_labels_begin(out, &labels);
			metrics_labels_copy(out, member->labels);
			metrics_label(out, "reason", name);
			metrics_labels_end(out, &labels);
			metrics_put_unsigned(out, labels,
					     reason_count(model, member, loss, reason));
		}
	}
}

/* ---- members --------------------------------------------------------------------------------- */

static void label_communicator(struct metrics_out *out, const struct metrics_model *model,
			       const struct metrics_member *member)
{
	const struct recording_process *process = model->recording->processes[member->process];
	const struct job_comm *comm = NULL;
	const struct comm_info *info = NULL;

	if (member->seat != METRICS_NOBODY) {
		comm = &model->job->comms[model->job->seats[member->seat].comm];
		info = &process->comms[member->seat - model->job->first_seat[member->process]].info;
	}
	metrics_label(out, "comm_name", info ? info->name : "other");
	metrics_label(out, "kind", job_comm_kind_name(comm ? comm->kind : JOB_COMM_UNKNOWN));
	label_if_known(out, "nranks", info ? info->nranks : 0, 1);
	label_if_known(out, "nnodes", info ? info->nnodes : 0, 1);
	if (member->gpu < model->job->rank_count)
		label_if_known(out, "global_rank", model->job->ranks[member->gpu].rank, 0);
	metrics_label(out, "host", process->host);
	metrics_label_number(out, "pid", process->pid);
	label_if_known(out, "gpu", info ? info->gpu : -1, 0);
	metrics_label(out, "gpu_uuid", info ? info->gpu_uuid : "");
	if (info && info->flags & COMM_FLAG_FINALIZED)
		metrics_label(out, "finalized", "true");
}

static void write_communicator_infos(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_COMMUNICATOR_INFO);
	for (size_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];
		struct metrics_labels labels;

		if (member->kind == METRICS_PROCESS || !metrics_is_shown(writer, member))
			continue;
		metrics_labels_begin(out, &labels);
		metrics_labels_copy(out, member->labels);
		label_communicator(out, model, member);
		metrics_labels_end(out, &labels);
		metrics_put_unsigned(out, labels, 1);
	}
}

/* The family's value of a member; false where it has none. */
static bool member_value(const struct metrics_member *member, enum metrics_family family,
			 uint64_t *value)
{
	bool is_comm = member->kind != METRICS_OTHER;

	switch (family) {
	case METRICS_OPERATIONS_ISSUED:
		*value = member->issued;
		return true;
	case METRICS_OPERATIONS_FINISHED:
		*value = member->finished;
		return true;
	case METRICS_WAIT_SECONDS:
		*value = member->wait_ns;
		return member->knows_wait;
	case METRICS_IN_FLIGHT:
		*value = member->in_flight;
		return true;
	case METRICS_OLDEST_AGE:
		*value = member->oldest_age_ns;
		return true;
	case METRICS_ACTIVITY_AGE:
		*value = member->still_ns;
		return is_comm && !member->is_ended;
	case METRICS_UNTRUSTED:
		*value = member->untrusted;
		return true;
	case METRICS_COLLECTIVE_NUMBER:
		*value = member->collectives;
		return is_comm;
	case METRICS_REPLAY_NUMBER:
		*value = member->replays;
		return is_comm && member->replays > 0;
	case METRICS_NUMBER_ISSUED:
		*value = member->number_issued;
		return is_comm;
	case METRICS_NUMBER_DONE:
		*value = member->number_done;
		return is_comm;
	case METRICS_SIGNATURE:
		*value = member->signature & ((UINT64_C(1) << 52) - 1);
		return is_comm;
	default:
		return false;
	}
}

static void write_members(struct metrics_writer *writer, enum metrics_family family)
{
	bool is_time = family == METRICS_WAIT_SECONDS || family == METRICS_OLDEST_AGE ||
		       family == METRICS_ACTIVITY_AGE;

	metrics_family(&writer->out, family);
	for (size_t i = 0; i < writer->model.member_count; i++) {
		const struct metrics_member *member = &writer->model.members[i];
		uint64_t value;

		if (member->kind == METRICS_PROCESS || !metrics_is_shown(writer, member) ||
		    !member_value(member, family, &value))
			continue;
		if (is_time)
			metrics_put_seconds(&writer->out, member->labels, value);
		else
			metrics_put_unsigned(&writer->out, member->labels, value);
	}
}

/* ---- notices --------------------------------------------------------------------------------- */

/* The seat that stands for a notice: the culprit, or the first of its communicator. */
static uint32_t notice_seat(const struct job *job, const struct live_notice *notice)
{
	if (notice->seat < job->seat_count)
		return notice->seat;
	if (notice->comm < job->comm_count && job->comms[notice->comm].seat_count > 0)
		return job->comms[notice->comm].seats[0];
	return METRICS_NOBODY;
}

static void label_notice(struct metrics_writer *writer, const struct live_notice *notice,
			 uint32_t seat)
{
	const struct job *job = writer->model.job;
	struct metrics_out *out = &writer->out;
	char comm[METRICS_COMM_TEXT];

	if (seat != METRICS_NOBODY)
		metrics_label(out, "nccl_job",
			      job->recording->processes[job->seats[seat].process]->job);
	metrics_label(out, "kind", live_notice_name(notice->kind));
	if (seat == METRICS_NOBODY)
		return;
	metrics_comm_text(&writer->model, seat, comm);
	metrics_label(out, "comm", comm);
	if (seat == notice->seat)
		label_if_known(out, "rank", job->seats[seat].comm_rank, 0);
}

/* What two notices would say with the same labels is said once, and in one textfile only. */
static void write_notices(struct metrics_writer *writer)
{
	const struct live *live = writer->model.live;
	struct metrics_labels labels[LIVE_NOTICES_MAX];
	struct metrics_out *out = &writer->out;
	size_t count = 0;

	metrics_family(out, METRICS_NOTICE_INFO);
	for (size_t i = 0; i < live->notice_count && count < LIVE_NOTICES_MAX; i++) {
		uint32_t seat = notice_seat(&live->job, &live->notices[i]);
		bool is_new = true, is_here = writer->only < 0;

		if (seat != METRICS_NOBODY)
			is_here = metrics_is_in_file(writer, live->job.seats[seat].process);
		metrics_labels_begin(out, &labels[count]);
		label_notice(writer, &live->notices[i], seat);
		metrics_labels_end(out, &labels[count]);
		for (size_t j = 0; j < count; j++)
			is_new = is_new && !metrics_labels_equal(out, labels[j], labels[count]);
		if (is_new && is_here)
			metrics_put_unsigned(out, labels[count], 1);
		count += is_new;
	}
}

/* ---------------------------------------------------------------------------------------------- */

static void write_jobs(struct metrics_writer *writer)
{
	write_process_infos(writer);
	write_communicator_infos(writer);
	write_members(writer, METRICS_OPERATIONS_ISSUED);
	write_members(writer, METRICS_OPERATIONS_FINISHED);
	metrics_write_totals(writer);
	write_members(writer, METRICS_WAIT_SECONDS);
	write_members(writer, METRICS_IN_FLIGHT);
	write_members(writer, METRICS_OLDEST_AGE);
	metrics_write_oldest(writer);
	write_members(writer, METRICS_ACTIVITY_AGE);
	metrics_write_last(writer);
	write_members(writer, METRICS_COLLECTIVE_NUMBER);
	write_members(writer, METRICS_REPLAY_NUMBER);
	write_members(writer, METRICS_NUMBER_ISSUED);
	write_members(writer, METRICS_NUMBER_DONE);
	write_members(writer, METRICS_SIGNATURE);
	metrics_write_links(writer);
	write_members(writer, METRICS_UNTRUSTED);
	write_losses(writer, METRICS_LOST_OPERATIONS, LOSS_OPERATIONS);
	write_losses(writer, METRICS_LOST_DETAILS, LOSS_DETAILS);
	write_losses(writer, METRICS_ODD_EVENTS, LOSS_ODD);
	write_notices(writer);
	metrics_write_verdicts(writer);
}

void metrics_write(struct sink *sink, enum metrics_format format, const struct live *live,
		   const struct metrics_agent *agent, long only_process)
{
	struct metrics_writer writer = { .only = only_process };

	metrics_out_begin(&writer.out, sink, format);
	writer.status = metrics_model_make(&writer.model, live, &writer.out);
	if (writer.status == OK)
		write_jobs(&writer);
	if (writer.status == OK && agent != NULL)
		metrics_write_agent(&writer, agent);
	metrics_out_end(&writer.out);
	metrics_model_release(&writer.model);
	if (writer.status != OK && sink->status == OK)
		sink->status = writer.status;
}
