/*
 * What a member that stands is in, what that waits for, and what it called before. Who joins the ranks of
 * all nodes (doctor/prom.h) needs both sides of a call to say where they differ. All of it is there only
 * while something stands, so that its many labels cost nothing while a job goes on.
 */
#include "view/metrics_writer.h"

#include <inttypes.h>

#include "common/op.h"
#include "common/text.h"
#include "view/flight_words.h"

enum { OLD_NS = 1000000000 };
/* Longer than a usual pause between steps: what was called last is then another series each time. */
#define STILL_NS (10 * UINT64_C(1000000000))
#define SIGNATURE_BITS ((UINT64_C(1) << 52) - 1)

static void label_unsigned(struct metrics_out *out, const char *name, uint64_t number)
{
	char text[24];

	text_format(text, sizeof(text), "%" PRIu64, number);
	metrics_label(out, name, text);
}

static void label_if_known(struct metrics_out *out, const char *name, int64_t number, int64_t least)
{
	if (number >= least)
		metrics_label_number(out, name, number);
}

static void label_name(struct metrics_writer *writer, uint32_t seat, const char *label,
		       enum op_name_table table, uint8_t number)
{
	const struct metrics_model *model = &writer->model;
	uint8_t shown = metrics_name_number(model, model->job->seats[seat].process, table, number);

	metrics_label(&writer->out, label, metrics_name_text(model, table, shown));
}

/* What decides whether two ranks called the same. */
static void label_call(struct metrics_writer *writer, uint32_t seat, const struct op_record *op)
{
	label_name(writer, seat, "function", OP_NAMES_FUNCTION, op->function);
	label_unsigned(&writer->out, "count", op->count);
	if (op->datatype != OP_DATATYPE_UNKNOWN)
		label_name(writer, seat, "datatype", OP_NAMES_DATATYPE, op->datatype);
	label_if_known(&writer->out, "root", op->root, 0);
}

/* Its number among the collectives, and the hash over all up to it. */
static void label_place(struct metrics_out *out, const struct op_record *op)
{
	if (op->match == 0)
		return;
	label_unsigned(out, "match", op->match);
	if (op_is_collective(op->function) && op->signature != 0)
		label_unsigned(out, "signature", op->signature & SIGNATURE_BITS);
	if (op->flags & OP_FLAG_REPLAY)
		metrics_label(out, "replay", "true");
}

/* Channels whose kernels have started, and have stopped; "none" says that they would be seen. */
static void label_channels(struct metrics_out *out, const char *name, const uint64_t bits[4])
{
	char channels[FLIGHT_CHANNELS_TEXT];

	flight_words_channels(bits, channels);
	metrics_label(out, name, channels[0] != '\0' ? channels : "none");
}

static void label_kernels(struct metrics_out *out, const struct live_seat *seat)
{
	if (seat->comm == NULL || !(seat->comm->info.flags & COMM_FLAG_SEES_KERNELS))
		return;
	label_channels(out, "kernels_started", seat->oldest->started);
	label_channels(out, "kernels_stopped", seat->oldest->stopped);
}

/* The seat whose oldest operation is old; NULL: the member has none. */
static const struct live_seat *old_seat(const struct metrics_writer *writer,
					const struct metrics_member *member)
{
	if (member->kind == METRICS_PROCESS || !metrics_is_shown(writer, member) ||
	    member->oldest == METRICS_NOBODY || member->oldest_age_ns <= OLD_NS)
		return NULL;
	return &writer->model.live->seats[member->oldest];
}

static void write_infos(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_OLDEST_INFO);
	for (size_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];
		const struct live_seat *seat = old_seat(writer, member);
		struct metrics_labels labels;

		if (seat == NULL)
			continue;
		metrics_labels_begin(out, &labels);
		metrics_labels_copy(out, member->labels);
		label_call(writer, member->oldest, &seat->oldest->op);
		label_unsigned(out, "number", seat->oldest->op.number);
		label_place(out, &seat->oldest->op);
		metrics_label(out, "state", op_state_name(seat->oldest->op.state));
		label_kernels(out, seat);
		if (seat->wait_count > 0)
			metrics_label(out, "waits_for", flight_reason_name(seat->waits[0].reason));
		label_if_known(out, "peer",
			       seat->wait_count > 0 ? seat->waits[0].peer : seat->oldest->op.peer,
			       0);
		metrics_labels_end(out, &labels);
		metrics_put_unsigned(out, labels, 1);
	}
}

static void write_wait(struct metrics_writer *writer, const struct metrics_member *member,
		       const struct live_seat *seat, const struct flight_wait *wait)
{
	uint64_t since_ns = flight_since_ns(seat->oldest), later_ns = 0;
	char channels[FLIGHT_CHANNELS_TEXT];
	struct metrics_out *out = &writer->out;
	struct metrics_labels labels;

	if (since_ns != 0 && wait->since_ns > since_ns)
		later_ns = wait->since_ns - since_ns;
	if (later_ns > seat->oldest_age_ns)
		later_ns = seat->oldest_age_ns;
	metrics_labels_begin(out, &labels);
	metrics_labels_copy(out, member->labels);
	metrics_label(out, "waits_for", flight_reason_name(wait->reason));
	label_if_known(out, "peer", wait->peer, 0);
	metrics_label(out, "channels", flight_words_channels(wait->channels, channels));
	metrics_labels_end(out, &labels);
	metrics_put_seconds(out, labels, seat->oldest_age_ns - later_ns);
}

/* A pair of reason and peer is there once, so no two have the same labels. */
static void write_waits(struct metrics_writer *writer)
{
	metrics_family(&writer->out, METRICS_OLDEST_WAIT);
	for (size_t i = 0; i < writer->model.member_count; i++) {
		const struct metrics_member *member = &writer->model.members[i];
		const struct live_seat *seat = old_seat(writer, member);

		for (uint32_t w = 0; seat != NULL && w < seat->wait_count; w++)
			write_wait(writer, member, seat, &seat->waits[w]);
	}
}

void metrics_write_oldest(struct metrics_writer *writer)
{
	write_infos(writer);
	write_waits(writer);
}

/* The collective before the one that the seat is in, or the last of all; NULL: nobody knows any more. */
static const struct op_record *last_collective(const struct metrics_writer *writer, uint32_t seat)
{
	const struct job_seat *of = &writer->model.job->seats[seat];
	const struct recording_process *process = writer->model.recording->processes[of->process];
	const struct recording_flight *oldest = writer->model.live->seats[seat].oldest;
	const struct op_record *last = NULL;

	for (size_t i = 0; i < process->flight_count; i++) {
		const struct op_record *op = &process->flights[i].op;

		if (op->comm != of->comm_id || op->match == 0 || !op_is_collective(op->function) ||
		    op->flags & OP_FLAG_REPLAY ||
		    (oldest != NULL && op->number >= oldest->op.number))
			continue;
		if (last == NULL || op->match > last->match)
			last = op;
	}
	return last;
}

void metrics_write_last(struct metrics_writer *writer)
{
	const struct metrics_model *model = &writer->model;
	struct metrics_out *out = &writer->out;

	metrics_family(out, METRICS_LAST_COLLECTIVE);
	for (size_t i = 0; i < model->member_count; i++) {
		const struct metrics_member *member = &model->members[i];
		const struct op_record *op;
		struct metrics_labels labels;

		if (member->kind == METRICS_PROCESS || member->kind == METRICS_OTHER ||
		    !metrics_is_shown(writer, member) || member->seat == METRICS_NOBODY ||
		    model->live->seats[member->seat].still_ns < STILL_NS)
			continue;
		op = last_collective(writer, member->seat);
		if (op == NULL)
			continue;
		metrics_labels_begin(out, &labels);
		metrics_labels_copy(out, member->labels);
		label_call(writer, member->seat, op);
		/* With nothing in flight the gauges have both: no series for each time it rests. */
		if (model->live->seats[member->seat].oldest != NULL)
			label_place(out, op);
		metrics_labels_end(out, &labels);
		metrics_put_unsigned(out, labels, 1);
	}
}
