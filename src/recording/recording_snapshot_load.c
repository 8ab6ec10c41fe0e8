/* A snapshot back into what a region would have shown at that moment. */
#include <stdlib.h>
#include <string.h>

#include "base/list_grow.h"
#include "op/op_check.h"
#include "recording/recording_flights.h"
#include "recording/recording_load.h"
#include "recording/recording_snapshot.h"
#include "region/info_text.h"
#include "trace/trace_records.h"

/* No recorder has more live slots. */
enum { FLIGHTS_MAX = 16384 };

static uint64_t number_of(const struct recording_process *process, const char *key)
{
	int64_t number = info_get_number(process->info, process->info_bytes, key, 0);

	return number > 0 ? (uint64_t)number : 0;
}

static enum recording_life life_of(const struct recording_process *process)
{
	static const enum recording_life lives[] = { RECORDING_ALIVE, RECORDING_ENDED,
						     RECORDING_KILLED };
	char text[16];

	recording_info(process, "snapshot_life", text, sizeof(text));
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++)
		if (strcmp(text, recording_life_name(lives[i])) == 0)
			return lives[i];
	return RECORDING_UNKNOWN;
}

static void read_words(struct recording_process *process)
{
	char state[4];

	process->snapshot_operations = number_of(process, "snapshot_operations");
	process->snapshot_life = life_of(process);
	process->is_moving = number_of(process, "snapshot_moving") != 0;
	process->filling = (size_t)number_of(process, "snapshot_filling");
	if (recording_info(process, "snapshot_state", state, sizeof(state)) && state[1] == '\0')
		process->snapshot_state = state[0];
	if (number_of(process, "snapshot_refused") == 0)
		return;
	process->refused += (size_t)number_of(process, "snapshot_refused");
	process->refused_why = "so it was in the region when the snapshot was made";
}

/* The times of a live operation are not to be believed either. */
static enum status take_live(struct recording_process *process, struct op_record *op)
{
	struct recording_flight *flight;
	const char *problem = op_check(op);

	if (problem == NULL && process->flight_count == FLIGHTS_MAX)
		problem = "there are more than live slots";
	if (problem != NULL) {
		process->refused++;
		process->refused_why = problem;
		return OK;
	}
	if (!list_grow(&process->flights, process->flight_count, sizeof(*process->flights)))
		return ERR_NO_SPACE;
	flight = &process->flights[process->flight_count++];
	*flight = (struct recording_flight){ .op = *op,
					     .open_children =
						     (uint32_t)(op->reserved & SNAPSHOT_OPEN),
					     .is_retiring = op->reserved & SNAPSHOT_RETIRING };
	op_check_time(&flight->op);
	flight->op.reserved = 0;
	if (!(op->reserved & SNAPSHOT_RECORDED))
		flight->op.sequence = 0;
	return OK;
}

static enum status take_block(struct recording_process *process, struct recording_file *file,
			      const struct trace_item *item)
{
	struct trace_records records;
	enum status status = OK;
	struct op_record op;

	if (trace_records_init(&records, item) != OK)
		return OK;
	while (status == OK && trace_records_op(&records, &op) == OK) {
		if (op.sequence > file->live_after) {
			status = take_live(process, &op);
			continue;
		}
		file->records++;
		if (file->first_sequence == 0)
			file->first_sequence = op.sequence;
		if (op.sequence > file->last_sequence)
			file->last_sequence = op.sequence;
	}
	return status;
}

static enum status take_ops(struct recording_process *process, struct recording_file *file,
			    struct trace_reader *reader)
{
	struct trace_item item;
	enum status status = OK;

	file->records = file->first_sequence = file->last_sequence = 0;
	trace_seek(reader, reader->header.header_bytes);
	while (status == OK && trace_next(reader, &item) != TRACE_END)
		if (item.found == TRACE_BLOCK && item.type == TRACE_OPS)
			status = take_block(process, file, &item);
	return status;
}

enum status recording_snapshot_load(struct recording_process *process, struct recording_file *file,
				    struct trace_reader *reader)
{
	uint64_t wall_ns = number_of(process, "snapshot_wall_ns");
	enum status status;
	char text[4];

	if (!recording_info(process, "snapshot_wall_ns", text, sizeof(text)))
		return OK;
	process->is_snapshot = file->is_snapshot = true;
	process->snapshot_wall_ns = wall_ns != 0 ? wall_ns : 1;
	read_words(process);
	/* Its counts come last: without them it was cut, and nobody can say which of its operations are over. */
	file->live_after = process->has_counts ? process->recorded : UINT64_MAX;
	process->is_final =
		process->has_counts && (file->is_closed || file->cut_offset == file->bytes);
	status = take_ops(process, file, reader);
	if (status == OK && process->flight_count > 0) {
		recording_flights_sort(process);
		recording_flights_unique(process);
	}
	return status == OK ? recording_flights_details(process) : status;
}
