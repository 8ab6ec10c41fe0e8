/* Moments of a process: what is missing, what was lost, what hangs, how it ended. */
#include <stdlib.h>

#include "analysis/flight.h"
#include "common/op.h"
#include "common/text.h"
#include "view/viewer_rank.h"

static void note(struct viewer_rank *rank, uint64_t common_ns, const char *name,
		 const struct viewer_args *args)
{
	const struct viewer_plan *plan = rank->plan;
	struct viewer_instant instant = {
		.process = rank->source->number,
		.name = name,
		.category = "note",
		.args = args,
	};

	/* What is said of the whole recording stands inside of what is shown of it. */
	if (common_ns > plan->end_ns)
		common_ns = plan->end_ns;
	instant.at_ns = viewer_rank_ns(rank, common_ns);
	viewer_instant(rank->viewer, &instant);
}

/* Records are given in the order of their sequence: one that is missing leaves a gap. */
void viewer_rank_gap(struct viewer_rank *rank, const struct op_record *op,
		     const struct viewer_place *place)
{
	uint64_t last = rank->last_sequence;
	uint64_t missing = op->sequence > last + 1 ? op->sequence - last - 1 : 0;
	struct viewer_args args = { .count = 0 };
	char name[96], count[UNITS_TEXT];

	if (op->sequence > last)
		rank->last_sequence = op->sequence;
	if (missing == 0)
		return;
	rank->plan->tally.missing += missing;
	if (!viewer_plan_is_inside(rank->plan, place) || place->kind == VIEWER_NOWHERE)
		return;
	text_format(name, sizeof(name), "%s operations missing%s", units_count(count, missing),
		    last == 0 ? " before this" : "");
	viewer_arg_unsigned(&args, "missing", missing);
	viewer_arg_unsigned(&args, "first_sequence", last + 1);
	viewer_arg_unsigned(&args, "last_sequence", op->sequence - 1);
	note(rank, place->start_ns, name, &args);
}

static void note_losses(struct viewer_rank *rank, uint64_t at_ns)
{
	const struct recording_process *process = rank->source->times.process;

	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		struct viewer_args args = { .count = 0 };
		char name[96], count[UNITS_TEXT];

		if (process->lost[i] == 0 || op_lost_name(i) == NULL)
			continue;
		text_format(name, sizeof(name), "lost %s: %s", units_count(count, process->lost[i]),
			    op_lost_name(i));
		viewer_arg_text(&args, "reason", op_lost_name(i));
		viewer_arg_unsigned(&args, "count", process->lost[i]);
		viewer_arg_text(&args, "what",
				op_lost_is_whole(i) ? "operations" : "details of operations");
		note(rank, at_ns, name, &args);
	}
}

/* What it waits for, in words, where the network's side of it is known. */
static void put_wait(struct viewer_args *args, const struct recording_process *process,
		     const struct op_record *op, char text[static 128])
{
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];
		struct flight_wait *waits;
		size_t count;

		if (flight->op.comm != op->comm || flight->op.number != op->number ||
		    flight_waits(flight->proxies, flight->proxy_count, &waits, &count) != OK)
			continue;
		if (count > 0) {
			text_format(text, 128, "%s (rank %d of its communicator)",
				    flight_reason_name(waits[0].reason), (int)waits[0].peer);
			viewer_arg_text(args, "waits_for", text);
		}
		free(waits);
		return;
	}
}

/* The oldest of a communicator's operations in flight is the one that holds up the others. */
static void note_hang(struct viewer_rank *rank, size_t index, uint64_t at_ns)
{
	const struct op_record *op = &rank->open[index].op;
	struct viewer_args args = { .count = 0 };
	char name[160], age[UNITS_TEXT], wait[128];
	size_t behind = 0;

	for (size_t i = 0; i < rank->open_count; i++) {
		if (rank->open[i].op.comm != op->comm)
			continue;
		if (i < index)
			return;
		behind += i > index;
	}
	text_format(name, sizeof(name), "%s %llu in flight for %s",
		    recording_name(rank->source->times.process, OP_NAMES_FUNCTION, op->function),
		    (unsigned long long)op->number,
		    units_duration(age, viewer_rank_age_ns(rank, op)));
	viewer_arg_unsigned(&args, "number", op->number);
	viewer_arg_text(&args, "state", op_state_name(op->state));
	viewer_arg_unsigned(&args, "operations_behind", behind);
	put_wait(&args, rank->source->times.process, op, wait);
	note(rank, at_ns, name, &args);
}

void viewer_rank_notes(struct viewer_rank *rank)
{
	const struct viewer_source *source = rank->source;
	const struct recording_process *process = source->times.process;
	uint64_t counted_ns = viewer_common_ns(&source->times, process->counts_ns);

	note_losses(rank, counted_ns ? counted_ns : source->last_ns);
	for (size_t i = 0; i < rank->open_count; i++)
		note_hang(rank, i, source->last_ns);
	if (process->life == RECORDING_KILLED)
		note(rank, source->last_ns, "process was killed", NULL);
	else if (process->life == RECORDING_UNKNOWN)
		note(rank, source->last_ns, "recording ends here, without its closing record",
		     NULL);
}
