/*
 * One pass over a trace file, for everything but its operations. Blocks of operations are counted by
 * what their heads say; only the first and the last record are decoded, for their sequence.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "op/op_check.h"
#include "region/region_read.h"
#include "recording/recording_load.h"
#include "recording/recording_snapshot.h"
#include "trace/trace_read.h"
#include "trace/trace_records.h"

/* What a pass gathers. */
struct load {
	struct recording *recording;
	struct recording_process *process;
	struct recording_file *file;
	uint64_t last_ops;     /* offset of the last good block of operations, 0 none */
	uint64_t last_details; /* the same of details */
};

static enum status load_comms(struct load *load, struct trace_records *records)
{
	struct recording_comm *comm;
	struct comm_info info;

	while (trace_records_comm(records, &info) == OK) {
		const char *what = op_check_comm(&info);

		if (what != NULL) {
			load->process->refused++;
			load->process->refused_why = what;
			continue;
		}
		comm = recording_load_comm(load->process, info.id);
		if (comm == NULL)
			return ERR_NO_SPACE;
		region_clean_comm(&info);
		comm->info = info;
	}
	return OK;
}

static enum status load_anchors(struct load *load, struct trace_records *records)
{
	struct clock_anchor anchor;
	enum status status = OK;

	while (status == OK && trace_records_anchor(records, &anchor) == OK)
		status = recording_load_anchor(load->process, anchor);
	return status;
}

static void load_names(struct load *load, struct trace_records *records)
{
	struct trace_name name;

	while (trace_records_name(records, &name) == OK) {
		if (name.id < OP_NAME_INTERNED ||
		    name.id >= OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX)
			continue;
		text_from_field(load->process->names[name.id - OP_NAME_INTERNED],
				sizeof(load->process->names[0]), name.text, sizeof(name.text) - 1);
	}
}

static enum status load_counts(struct load *load, struct trace_records *records)
{
	struct recording_process *process = load->process;
	struct trace_comm_counts entry;
	struct recording_comm *comm;
	struct trace_counts counts;

	if (trace_records_counts(records, &counts) != OK)
		return OK;
	memcpy(process->lost, counts.lost, sizeof(process->lost));
	memcpy(process->odd, counts.odd, sizeof(process->odd));
	process->counts_ns = counts.clock_ns;
	process->has_counts = true;
	if (counts.ring_head > process->recorded && !(counts.ring_head & RING_BUSY))
		process->recorded = counts.ring_head;
	while (trace_records_comm_counts(records, &entry) == OK) {
		if (entry.id == 0 || entry.id > UINT32_MAX)
			continue;
		comm = recording_load_comm(process, (uint32_t)entry.id);
		if (comm == NULL)
			return ERR_NO_SPACE;
		comm->counts = entry.counts;
		comm->has_counts = true;
	}
	return OK;
}

/* The newest block replaces what an older one said. */
static enum status load_links(struct load *load, const struct trace_item *item,
			      struct trace_records *records)
{
	struct recording_process *process = load->process;
	struct region_link *links = calloc((size_t)item->records + 1, sizeof(*links)), link;
	size_t count = 1; /* "other" comes first, with or without anything in it */

	if (links == NULL)
		return ERR_NO_SPACE;
	while (trace_records_link(records, &link) == OK) {
		if (link.key == 0)
			links[0] = link;
		else if (region_link_is_used(&link))
			links[count++] = link;
	}
	free(process->links);
	process->links = links;
	process->link_count = count;
	return OK;
}

static void load_ops(struct load *load, const struct trace_item *item,
		     struct trace_records *records)
{
	struct op_record op;

	load->file->records += item->records;
	load->last_ops = item->offset;
	if (load->file->first_sequence == 0 && trace_records_op(records, &op) == OK)
		load->file->first_sequence = op.sequence;
}

static enum status load_block(struct load *load, const struct trace_item *item)
{
	struct trace_records records;

	if (item->type == TRACE_PROCESS)
		return recording_load_info(load->process, (const char *)item->payload,
					   item->payload_bytes);
	if (trace_records_init(&records, item) != OK)
		return OK;
	switch (item->type) {
	case TRACE_COMM:
		return load_comms(load, &records);
	case TRACE_ANCHOR:
		return load_anchors(load, &records);
	case TRACE_NAME:
		load_names(load, &records);
		return OK;
	case TRACE_COUNTS:
	case TRACE_CLOSE:
		return load_counts(load, &records);
	case TRACE_LINKS:
		return load_links(load, item, &records);
	case TRACE_OPS:
		load_ops(load, item, &records);
		return OK;
	case TRACE_DETAILS:
		load->file->details += item->records;
		load->last_details = item->offset;
		return OK;
	default:
		return OK;
	}
}

static void note_damage(struct load *load, const struct trace_item *item)
{
	recording_load_trouble(load->recording, RECORDING_DAMAGE, load->file->path, load->process,
			       "damaged at byte %llu, %llu bytes are lost: %s",
			       (unsigned long long)item->offset, (unsigned long long)item->bytes,
			       item->reason);
	recording_load_at(load->recording, item->offset, item->bytes);
}

static enum status load_blocks(struct load *load, struct trace_reader *reader)
{
	struct trace_item item;
	enum status status = OK;

	while (status == OK && trace_next(reader, &item) != TRACE_END) {
		if (item.found == TRACE_BLOCK)
			status = load_block(load, &item);
		else if (item.found == TRACE_DAMAGE)
			note_damage(load, &item);
		else if (item.found == TRACE_CUT)
			load->file->cut_offset = item.offset;
	}
	load->file->is_closed = reader->is_closed;
	load->file->damages = reader->damages;
	load->file->unknown_blocks = reader->unknown_blocks;
	return status;
}

/* The highest sequence in the block at `offset`. */
static uint64_t last_sequence(struct trace_reader *reader, uint64_t offset)
{
	struct trace_records records;
	struct trace_item item;
	struct op_record op;
	struct op_detail detail;
	uint64_t last = 0;

	trace_seek(reader, offset);
	if (offset == 0 || trace_next(reader, &item) != TRACE_BLOCK ||
	    trace_records_init(&records, &item) != OK)
		return 0;
	if (item.type == TRACE_OPS)
		while (trace_records_op(&records, &op) == OK)
			last = op.sequence > last && !(op.sequence & RING_BUSY) ? op.sequence
										: last;
	if (item.type == TRACE_DETAILS)
		while (trace_records_detail(&records, &detail) == OK)
			last = detail.sequence > last && !(detail.sequence & RING_BUSY)
				       ? detail.sequence
				       : last;
	return last;
}

static enum status load_file(struct load *load, struct trace_reader *reader)
{
	struct recording_process *process = load->process;
	struct recording_file *file = load->file;
	enum status status;

	file->bytes = reader->length;
	file->created_wall_ns = reader->header.created_wall_ns;
	status = load_blocks(load, reader);
	recording_load_comms_end(process);
	if (status != OK)
		return status;
	file->last_sequence = last_sequence(reader, load->last_ops);
	file->last_detail = last_sequence(reader, load->last_details);
	process->is_final = file->is_closed && process->has_counts;
	status = recording_snapshot_load(process, file, reader);
	if (file->last_sequence > process->recorded && !file->is_snapshot)
		process->recorded = file->last_sequence;
	return status;
}

static void note_refusal(struct recording *recording, const char *path, enum status status,
			 const struct trace_problem *problem)
{
	if (status == ERR_VERSION)
		recording_load_trouble(recording, RECORDING_TOO_NEW, path, NULL,
				       "written in format %u.%u, newer than the %u this program "
				       "reads: use a newer ringside",
				       problem->found_major, problem->found_minor, TRACE_MAJOR);
	else if (status == ERR_SYSTEM)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL, "%s: %s",
				       problem->what, strerror(errno));
	else
		/* Also one that ends inside its header: there is no process with which a cut would be told. */
		recording_load_trouble(recording, RECORDING_DAMAGE, path, NULL, "%s",
				       problem->what);
}

static enum status open_source(struct trace_reader *reader, const struct recording_source *source,
			       struct trace_problem *problem)
{
	if (source->memory != NULL)
		return trace_open_memory(reader, source->memory, source->length, problem);
	return trace_open_part(reader, source->fd, source->start, source->length, problem);
}

/* Where it is found again when its operations are walked. */
static enum status keep_place(struct recording_file *file, const struct recording_source *source)
{
	unsigned char *memory = NULL;

	file->path = strdup(source->path);
	if (file->path == NULL)
		return ERR_NO_SPACE;
	file->device = source->device;
	file->inode = source->inode;
	file->start = source->start;
	if (source->archive != NULL && (file->archive = strdup(source->archive)) == NULL)
		return ERR_NO_SPACE;
	if (source->memory == NULL)
		return OK;
	memory = malloc(source->length + 1);
	if (memory == NULL)
		return ERR_NO_SPACE;
	memcpy(memory, source->memory, source->length);
	file->memory = memory;
	return OK;
}

enum status recording_trace_load(struct recording *recording, const struct recording_source *source,
				 struct recording_process **process)
{
	struct trace_problem problem = { .what = "it cannot be read" };
	struct load load = { .recording = recording };
	struct trace_reader reader;
	enum status status = open_source(&reader, source, &problem);

	if (status != OK) {
		if (status != ERR_NO_SPACE)
			note_refusal(recording, source->path, status, &problem);
		return status;
	}
	load.process = recording_process_new();
	if (load.process != NULL)
		load.file = load.process->files = calloc(1, sizeof(*load.file));
	status = ERR_NO_SPACE;
	if (load.file != NULL) {
		load.process->file_count = 1;
		status = keep_place(load.file, source);
	}
	if (status == OK)
		status = load_file(&load, &reader);
	trace_close(&reader);
	if (status == OK)
		*process = load.process;
	else
		recording_process_free(load.process);
	return status;
}
