/*
 * Loads the processes of a recording from a path, an archive, a trace file or a region.
 *
 * A trace file is read in one pass, for everything but its operations. Blocks of operations are
 * counted by their headers; only the first and the last record are decoded, for their sequence.
 */
#include "recording/recording.h"
#include "recording/recording_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/status.h"
#include "common/text.h"
#include "format/region_read.h"
#include "format/tar.h"
#include "format/trace_read.h"
#include "import/foreign.h"

/* Where the bytes of a trace file are: in a file, in a part of one, or in memory. */
struct recording_source {
	const char *path;    /* its name for messages; of a file, its path */
	const char *archive; /* the file that contains it; NULL: none */
	int fd;
	const unsigned char *memory; /* NULL: use fd */
	uint64_t start;
	size_t length;
	uint64_t device;
	uint64_t inode;
};

/* State of the pass. */
struct load {
	struct recording *recording;
	struct recording_process *process;
	struct recording_file *file;
	uint64_t last_ops;     /* offset of the last valid block of operations; 0: none */
	uint64_t last_details; /* the same for details */
};

static enum status load_trace_comms(struct load *load, struct trace_records *records)
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

/* The latest block replaces older ones. */
static enum status load_links(struct load *load, const struct trace_item *item,
			      struct trace_records *records)
{
	struct recording_process *process = load->process;
	struct region_link *links = calloc((size_t)item->records + 1, sizeof(*links)), link;
	size_t count = 1; /* "other" comes first, even if it is empty */

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
		return load_trace_comms(load, &records);
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
			       "damaged at byte %llu, %llu bytes lost: %s",
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

/* `format` introduces the version, `damage` is the kind of trouble if the file is invalid. */
static void note_refusal(struct recording *recording, const char *path, enum status status,
			 const struct status_problem *problem, const char *format,
			 unsigned int major, enum recording_trouble_kind damage)
{
	if (status == ERR_VERSION)
		recording_load_trouble(recording, RECORDING_TOO_NEW, path, NULL,
				       "%s %u.%u, newer than the %u this program "
				       "reads: use a newer ringside",
				       format, problem->found_major, problem->found_minor, major);
	else if (status == ERR_SYSTEM)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL, "%s: %s",
				       problem->what, strerror(errno));
	else
		recording_load_trouble(recording, damage, path, NULL, "%s", problem->what);
}

static enum status open_source(struct trace_reader *reader, const struct recording_source *source,
			       struct status_problem *problem)
{
	if (source->memory != NULL)
		return trace_open_memory(reader, source->memory, source->length, problem);
	return trace_open_part(reader, source->fd, source->start, source->length, problem);
}

/* Remember where to find it again when its operations are read. */
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

/*
 * Load a trace file from a descriptor that stays the caller's, or from memory, which is copied.
 * *process is new and not in the list. Trouble is noted and returns a status other than OK;
 * ERR_NO_SPACE is memory.
 */
static enum status recording_trace_load(struct recording *recording,
					const struct recording_source *source,
					struct recording_process **process)
{
	struct status_problem problem = { .what = "cannot be read" };
	struct load load = { .recording = recording };
	struct trace_reader reader;
	enum status status = open_source(&reader, source, &problem);

	if (status != OK) {
		if (status != ERR_NO_SPACE)
			/*
			 * Even if it ends inside its header: truncations are noted per process, and
			 * there is none.
			 */
			note_refusal(recording, source->path, status, &problem, "written in format",
				     TRACE_MAJOR, RECORDING_DAMAGE);
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

/* Links: what a region says was moved to and from each peer. */

static enum status take_links(struct recording_process *process)
{
	uint32_t count = region_slots(process->region, REGION_LINKS);
	struct region_link link;

	for (uint32_t i = 0; i < count; i++) {
		if (!region_link_at(process->region, i, &link)) {
			if (i != 0)
				continue;
			link = (struct region_link){ 0 };
		}
		if (!list_grow(&process->links, process->link_count, sizeof(link)))
			return ERR_NO_SPACE;
		process->links[process->link_count++] = link;
	}
	return OK;
}

/* Links come from proxy operations; without those there are none. */
enum status recording_links_load(struct recording_process *process)
{
	struct region *region = process->region;
	enum status status;
	uint64_t proxies;

	status = region_pread(region, &proxies, sizeof(proxies),
			      offsetof(struct region_header, proxy_cursor));
	if (status != OK || proxies == 0)
		return status;
	status = region_copy(region, REGION_COPY_BRIEF | REGION_COPY_LINKS);
	if (status == OK)
		status = take_links(process);
	region_copy_drop(region, REGION_COPY_LINKS);
	return status;
}

/*
 * Loading a region: identity, communicators, counts and links, and what is in flight. The ring is
 * read only when operations are walked; live slots are copied now, so nothing is missed in between.
 */

static void refuse_slot(struct recording_process *process, const char *problem)
{
	if (problem == NULL)
		return;
	process->refused++;
	process->refused_why = problem;
}

static enum status load_region_comms(struct recording_process *process)
{
	uint32_t count = region_slots(process->region, REGION_COMMS);
	struct recording_comm *comm;
	struct region_comm found;
	const char *problem;

	for (uint32_t i = 0; i < count; i++) {
		if (!region_comm_at(process->region, i, &found, &problem)) {
			refuse_slot(process, problem);
			continue;
		}
		comm = recording_load_comm(process, found.info.id);
		if (comm == NULL)
			return ERR_NO_SPACE;
		comm->info = found.info;
		comm->counts = found.counts;
		comm->has_counts = true;
	}
	recording_load_comms_end(process);
	return OK;
}

/*
 * Retiring with open children: given up when its communicator ended. Its record was written then,
 * and its slot rests.
 */
static bool is_given_up(uint64_t word)
{
	return word & LIVE_RETIRING && LIVE_OPEN(word) != 0;
}

/* Numbered, but its process was killed, or read, before counting it. */
static bool is_uncounted(const struct recording_process *process, const struct region_live *live)
{
	const struct recording_comm *comm = recording_comm(process, live->op.comm);

	return live->word & LIVE_RETIRING && comm != NULL && comm->has_counts &&
	       live->op.number > comm->counts.issued;
}

/*
 * The GPU was asked this long or longer after the launch: the launching thread has certainly recorded
 * the second event, and the answer was about this launch.
 */
#define ASKED_AFTER_NS SECOND_NS

/* Had the GPU not passed the event after this launch when it was last asked? Of a slot in use. */
static bool is_seen_open(const struct recording_process *process, const struct region_live *live)
{
	const struct op_record *op = &live->op;
	uint64_t launch_ns = op->launch_ns ?: op->task_ns ?: op->issue_ns;

	return op->flags & OP_FLAG_CUDA_EVENT && op->gpu_stop_ns == 0 &&
	       LIVE_OPEN(live->word) != 0 &&
	       (op->state == OP_LAUNCHED || op->state == OP_RUNNING) && launch_ns != 0 &&
	       process->times_read_ns > launch_ns &&
	       process->times_read_ns - launch_ns >= ASKED_AFTER_NS;
}

/* Per slot of the part: its index in the copy and its flight. */
struct from_slot {
	uint32_t copied;
	uint32_t flight; /* from 1; 0: none */
};

static enum status load_flights(struct recording_process *process, struct from_slot *of_slot)
{
	const struct region_copy *copy = &process->region->copies[REGION_LIVE];
	struct recording_flight *flight;
	struct region_live live;
	const char *problem;

	for (uint32_t i = 0; i < copy->count; i++) {
		if (!region_live_at(process->region, i, &live, &problem)) {
			refuse_slot(process, problem);
			process->filling += region_live_is_filling(process->region, i);
			continue;
		}
		if (is_given_up(live.word))
			continue;
		if (is_uncounted(process, &live)) {
			process->filling++;
			continue;
		}
		if (process->totals != NULL &&
		    recording_totals_take(process, &live, region_copy_index(copy, i)))
			continue;
		if (!list_grow(&process->flights, process->flight_count, sizeof(*process->flights)))
			return ERR_NO_SPACE;
		flight = &process->flights[process->flight_count++];
		*flight = (struct recording_flight){ .op = live.op,
						     .open_children = LIVE_OPEN(live.word),
						     .is_retiring = live.word & LIVE_RETIRING };
		flight->op.flags &= ~(uint32_t)OP_FLAG_SEEN_OPEN;
		if (is_seen_open(process, &live))
			flight->op.flags |= OP_FLAG_SEEN_OPEN;
		memcpy(flight->started, live.started, sizeof(flight->started));
		memcpy(flight->stopped, live.stopped, sizeof(flight->stopped));
		of_slot[region_copy_index(copy, i)] =
			(struct from_slot){ i, (uint32_t)process->flight_count };
	}
	return OK;
}

/* The flight that this proxy operation works for; NULL: unknown. */
static struct recording_flight *flight_of(struct recording_process *process,
					  const struct region_proxy *proxy,
					  const struct from_slot *of_slot)
{
	struct region_live live;

	if (proxy->live >= process->region->header.parts[REGION_LIVE].count ||
	    of_slot[proxy->live].flight == 0 ||
	    !region_live_at(process->region, of_slot[proxy->live].copied, &live, NULL) ||
	    !region_proxy_is_of(proxy, proxy->live, &live))
		return NULL;
	return &process->flights[of_slot[proxy->live].flight - 1];
}

static enum status load_proxies(struct recording_process *process, const struct from_slot *of_slot)
{
	uint32_t count = region_slots(process->region, REGION_PROXIES);
	struct recording_proxy found;
	const char *problem;

	for (uint32_t i = 0; i < count; i++) {
		struct recording_flight *flight;
		struct recording_proxy **list = &process->proxies;
		size_t *list_count = &process->proxy_count;

		memset(&found, 0, sizeof(found));
		if (!region_proxy_at(process->region, i, &found.proxy, &problem)) {
			refuse_slot(process, problem);
			continue;
		}
		found.step_count = region_steps(&found.proxy, found.steps);
		flight = flight_of(process, &found.proxy, of_slot);
		if (flight != NULL) {
			list = &flight->proxies;
			list_count = &flight->proxy_count;
		}
		if (!list_grow(list, *list_count, sizeof(**list)))
			return ERR_NO_SPACE;
		(*list)[(*list_count)++] = found;
	}
	return OK;
}

static enum status load_live(struct recording_process *process)
{
	uint32_t slots = process->region->header.parts[REGION_LIVE].count;
	struct from_slot *of_slot = calloc((size_t)slots + 1, sizeof(*of_slot));
	enum status status;

	if (of_slot == NULL)
		return ERR_NO_SPACE;
	status = load_flights(process, of_slot);
	if (status == OK)
		status = load_proxies(process, of_slot);
	free(of_slot);
	recording_flights_sort(process);
	return status;
}

/* The header takes precedence over the text, because everything else relies on it. */
static void load_identity(struct recording_process *process)
{
	const struct region_header *header = &process->region->header;

	process->pid = header->pid <= INT32_MAX ? (int64_t)header->pid : -1;
	process->pid_namespace = header->pid_namespace;
	process->start_ticks = header->start_ticks;
	text_from_field(process->boot_id, sizeof(process->boot_id), header->boot_id,
			sizeof(header->boot_id) - 1);
	text_copy(process->mode, sizeof(process->mode), op_mode_name(header->mode));
	process->interface = header->interface;
}

static void load_header(struct recording_process *process)
{
	const struct region_header *header = &process->region->header;

	memcpy(process->lost, header->lost, sizeof(process->lost));
	memcpy(process->odd, header->odd, sizeof(process->odd));
	process->has_counts = true;
	process->is_final = true;
	process->is_moving = process->region->is_moving;
	process->recorded = header->ring_head & RING_BUSY ? 0 : header->ring_head;
	process->drained = header->drained;
	process->ended_ns = header->ended_ns;
	process->fresh_anchor = (struct clock_anchor){ 0, 0 };
	process->counts_ns = header->last_anchor.clock_ns;
	if (region_anchor(process->region, &process->fresh_anchor))
		process->counts_ns = process->fresh_anchor.clock_ns;
	/* Without heartbeats a copy does not tell when it was made. */
	process->is_copy = header->alive_ns != 0 && region_is_copy(process->region);
	/* A damaged header must not make a process live, or its GPU answer, in the future. */
	process->alive_ns = header->alive_ns <= process->counts_ns ? header->alive_ns : 0;
	process->times_read_ns = process->region->times_read_ns <= process->counts_ns
					 ? process->region->times_read_ns
					 : 0;
	for (unsigned int i = 0; i < OP_NAMES_INTERNED_MAX; i++)
		region_name(process->region, (uint8_t)(OP_NAME_INTERNED + i), process->names[i],
			    sizeof(process->names[i]));
}

enum status recording_region_state(struct recording_process *process)
{
	const struct region_header *header = &process->region->header;
	enum status status;

	load_header(process);
	status = recording_load_anchor(process, header->first_anchor);
	if (status == OK)
		status = recording_load_anchor(process, header->last_anchor);
	if (status == OK)
		status = load_region_comms(process);
	return status == OK ? load_live(process) : status;
}

static enum status load_region(struct recording_process *process)
{
	struct region *region = process->region;
	enum status status = recording_links_load(process);

	if (status == OK)
		status = region_copy(region, RECORDING_REGION_PARTS);
	if (status == OK)
		status = recording_load_info(process, region->info, region->info_bytes);
	if (status != OK)
		return status;
	load_identity(process);
	status = recording_region_state(process);
	region_copy_drop(region, REGION_COPY_STATE);
	return status;
}

enum status recording_region_load(struct recording *recording, int fd, const char *path,
				  struct recording_process **process)
{
	struct status_problem problem = { .what = "truncated while it was read" };
	struct recording_process *made = recording_process_new();
	struct region *region = calloc(1, sizeof(*region));
	enum status status = ERR_NO_SPACE;

	if (made == NULL || region == NULL) {
		free(region);
		goto out;
	}
	made->region = region;
	made->region_path = strdup(path);
	if (made->region_path == NULL)
		goto out;
	status = region_open_fd(region, fd, &problem);
	if (status == OK)
		status = load_region(made);
	if (status != OK && status != ERR_NO_SPACE)
		note_refusal(recording, path, status, &problem, "a region of format", REGION_MAJOR,
			     status == ERR_TRUNCATED ? RECORDING_CUT : RECORDING_DAMAGE);
out:
	if (status == OK)
		*process = made;
	else
		recording_process_free(made);
	return status;
}

/*
 * What is not a file of its own: bytes in memory, and trace files in an archive. An archive in a
 * file stays there; its members are read from it, part by part.
 */

/* Archives may be nested this deep. */
enum { ARCHIVE_DEPTH_MAX = 3, PATH_BYTES = 1024 };

/* A hash of the bytes recognizes duplicates. */
static void name_memory(struct recording_source *source)
{
	source->device = 0;
	source->inode = hash_bytes(source->memory, source->length);
	source->start = 0;
}

static enum status add_trace_source(struct recording *recording,
				    const struct recording_source *source)
{
	struct recording_source named = *source;
	struct recording_process *process = NULL;
	enum status status;

	if (named.memory != NULL)
		name_memory(&named);
	status = recording_trace_load(recording, &named, &process);
	if (status != OK)
		return status == ERR_NO_SPACE ? status : OK;
	recording->files_read++;
	return recording_load_keep(recording, process);
}

static size_t start_of(const struct recording_source *source, unsigned char *start, size_t size)
{
	size_t got = 0;

	if (source->memory != NULL) {
		got = source->length < size ? source->length : size;
		memcpy(start, source->memory, got);
		return got;
	}
	if (file_pread_some(source->fd, start, source->length < size ? source->length : size,
			    source->start, &got) != OK)
		return 0;
	return got;
}

/* ---- notes ------------------------------------------------------------------------------------- */

static bool is_note(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strcmp(name, "agent.json") == 0 || strcmp(name, "agents.json") == 0 ||
	       strcmp(name, "host.json") == 0 || text_ends_with(path, "/ras/status.json") ||
	       text_ends_with(path, "/ras/status.txt");
}

/* NULL: out of memory. */
static struct recording_note *new_note(struct recording *recording, const char *path, size_t length)
{
	struct recording_note *note;

	if (!list_grow(&recording->notes, recording->note_count, sizeof(*recording->notes)))
		return NULL;
	note = &recording->notes[recording->note_count];
	*note = (struct recording_note){ strdup(path), calloc(1, length + 1), length };
	if (note->path == NULL || note->text == NULL) {
		free(note->path);
		free(note->text);
		return NULL;
	}
	recording->note_count++;
	recording->note_bytes += length;
	return note;
}

static enum status add_note(struct recording *recording, const struct recording_source *source)
{
	struct recording_note *note;

	if (recording->note_count >= RECORDING_NOTES_MAX ||
	    source->length > RECORDING_NOTES_BYTES - recording->note_bytes) {
		recording_load_trouble(recording, RECORDING_DAMAGE, source->path, NULL,
				       "not read: too many notes of agents and RAS, or too long");
		return OK;
	}
	note = new_note(recording, source->path, source->length);
	if (note == NULL)
		return ERR_NO_SPACE;
	note->length = start_of(source, (unsigned char *)note->text, source->length);
	return OK;
}

enum status recording_add_note(struct recording *recording, const char *path, const void *text,
			       size_t length)
{
	const struct recording_source source = {
		.path = path, .fd = -1, .memory = text, .length = length
	};

	return add_note(recording, &source);
}

/* ---- archives ---------------------------------------------------------------------------------- */

static enum status add_archive(struct recording *recording, const struct recording_source *source,
			       int depth);

/* Add a file of an archive; *is_known: it is of a type we read. */
static enum status add_part(struct recording *recording, const struct recording_source *source,
			    int depth, bool *is_known)
{
	unsigned char start[TAR_BLOCK];
	size_t bytes = start_of(source, start, sizeof(start));

	*is_known = true;
	if (trace_probe(start, bytes))
		return add_trace_source(recording, source);
	if (tar_is(start, bytes) && depth < ARCHIVE_DEPTH_MAX)
		return add_archive(recording, source, depth + 1);
	if (source->length > 0 && is_note(source->path))
		return add_note(recording, source);
	*is_known = false;
	return OK;
}

/*
 * A truncated archive is not a truncated trace: no process was writing it, so the rest is nowhere.
 */
static void note_end(struct recording *recording, const struct recording_source *source,
		     const struct tar_reader *reader, enum status status)
{
	if (status == ERR_TRUNCATED)
		recording_load_trouble(
			recording, RECORDING_DAMAGE, source->path, NULL,
			"archive truncated at byte %zu inside a file: the rest is missing",
			reader->at);
	else if (status != ERR_GONE)
		recording_load_trouble(recording, RECORDING_DAMAGE, source->path, NULL,
				       "archive damaged at byte %zu: the rest cannot be read",
				       reader->at);
	if (status != ERR_GONE)
		recording_load_at(recording, reader->at, reader->length - reader->at);
}

static enum status add_archive(struct recording *recording, const struct recording_source *source,
			       int depth)
{
	enum status status = OK, found;
	struct tar_reader reader;
	struct tar_entry entry;
	char path[PATH_BYTES];

	if (source->memory != NULL)
		tar_reader_init(&reader, source->memory, source->length);
	else
		tar_reader_init_fd(&reader, source->fd, source->start, source->length);
	while ((found = tar_next(&reader, &entry)) == OK && status == OK) {
		struct recording_source part = *source;
		bool is_known;

		text_format(path, sizeof(path), "%s/%s", source->path, entry.name);
		part.path = path;
		part.archive = source->memory == NULL && source->archive == NULL ? source->path
										 : source->archive;
		part.memory = entry.bytes;
		part.start = entry.offset;
		part.length = entry.length;
		status = add_part(recording, &part, depth, &is_known);
		recording->files_foreign += !is_known;
	}
	if (status == OK)
		note_end(recording, source, &reader, found);
	return status;
}

/* Add the contents of a tar archive to the recording. A part of a file, or memory, as above. */
static enum status recording_archive_load(struct recording *recording,
					  const struct recording_source *source)
{
	return add_archive(recording, source, 0);
}

enum status recording_add_memory(struct recording *recording, const char *name, const void *bytes,
				 size_t length, unsigned int flags)
{
	struct recording_source source = {
		.path = name, .fd = -1, .memory = bytes, .length = length
	};
	enum status status = OK;
	bool is_known = length > 0;

	/* Flags concern companions and other paths, which do not exist in memory. */
	(void)flags;
	if (length > 0)
		status = add_part(recording, &source, 0, &is_known);
	if (is_known || status != OK)
		return status;
	recording->files_foreign++;
	recording_load_trouble(
		recording, RECORDING_FOREIGN, name, NULL, "%s",
		length == 0 ? "empty file"
			    : "unrecognized file format (expected a Ringside trace or an archive)");
	return OK;
}

/*
 * From a path to its contents. What cannot be read is noted and skipped. Symbolic links are
 * followed only if the user named them, not if they were found in a directory.
 */

enum { DIRECTORY_DEPTH_MAX = 32 };

enum content { CONTENT_FOREIGN = 0, CONTENT_TRACE = 1, CONTENT_REGION = 2, CONTENT_ARCHIVE = 3 };

static enum content content_of(int fd)
{
	const uint64_t region_magic = REGION_MAGIC;
	unsigned char start[TAR_BLOCK];
	size_t got = 0;

	if (file_pread_some(fd, start, sizeof(start), 0, &got) != OK)
		return CONTENT_FOREIGN;
	if (got >= sizeof(region_magic) && memcmp(start, &region_magic, sizeof(region_magic)) == 0)
		return CONTENT_REGION;
	if (tar_is(start, got))
		return CONTENT_ARCHIVE;
	return trace_probe(start, got) ? CONTENT_TRACE : CONTENT_FOREIGN;
}

/* The troubles of a file move together with it. */
static void move_troubles(struct recording *to, const struct recording *from)
{
	for (size_t i = 0; i < from->trouble_count; i++) {
		const struct recording_trouble *trouble = &from->troubles[i];

		recording_load_trouble(to, trouble->kind, trouble->path, trouble->process, "%s",
				       trouble->what);
		recording_load_at(to, trouble->offset, trouble->bytes);
	}
	to->troubles_left_out += from->troubles_left_out;
	to->cuts_left_out += from->cuts_left_out;
}

static struct recording_source source_of(int fd, const char *path, const struct stat *st)
{
	return (struct recording_source){ .path = path,
					  .fd = fd,
					  .length = (size_t)st->st_size,
					  .device = st->st_dev,
					  .inode = st->st_ino };
}

/*
 * Add the companion of a process's file: the region of a trace, the trace of a region. The path in
 * an info text cannot be trusted: file_open_for() decides whether it is opened for a file of this
 * owner, and it must belong to the same process.
 */
static enum status add_companion(struct recording *recording, struct recording_process *process,
				 const char *key, enum content wanted, uid_t owner)
{
	struct recording_process *other = NULL;
	char path[PATH_MAX], boot_id[40];
	enum status status = ERR_GONE;
	struct recording_source source;
	struct recording aside;
	const char *why;
	struct stat st;
	int fd;

	region_boot_id(boot_id);
	if (!recording_info_path(process, key, path, sizeof(path)) || path[0] != '/' ||
	    strcmp(boot_id, process->boot_id) != 0)
		return OK;
	fd = file_open_for(owner, path, &why);
	if (fd == -1 && why != NULL)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, process,
				       "not read as the %s of process %lld: %s", key,
				       (long long)process->pid, why);
	if (fd == -1)
		return OK;
	recording_init(&aside);
	if (fstat(fd, &st) == 0 && content_of(fd) == wanted) {
		source = source_of(fd, path, &st);
		status = wanted == CONTENT_REGION ? recording_region_load(&aside, fd, path, &other)
						  : recording_trace_load(&aside, &source, &other);
	}
	close(fd);
	if (status == OK && recording_load_is_same(process, other)) {
		move_troubles(recording, &aside);
		status = recording_join(recording, process, other);
	} else {
		recording_process_free(other);
	}
	recording_release(&aside);
	return status == ERR_NO_SPACE ? status : OK;
}

static enum status add_trace_file(struct recording *recording, int fd, const char *path,
				  const struct stat *st, unsigned int flags)
{
	struct recording_source source = source_of(fd, path, st);
	struct recording_process *process = NULL;
	enum status status = recording_trace_load(recording, &source, &process);

	if (status != OK)
		return status == ERR_NO_SPACE ? status : OK;
	recording->files_read++;
	/* In our own file, a snapshot may say whose process it was. */
	if (!process->is_snapshot || st->st_uid != geteuid())
		process->owner = st->st_uid;
	/* A snapshot is of a different moment than what there is now. */
	if (!(flags & RECORDING_TRACES_ALONE) && !process->is_snapshot)
		status = add_companion(recording, process, "region", CONTENT_REGION, st->st_uid);
	if (status != OK) {
		recording_process_free(process);
		return status;
	}
	return recording_load_keep(recording, process);
}

static enum status add_region(struct recording *recording, int fd, const char *path,
			      const struct stat *st, unsigned int flags)
{
	struct recording_process *process = NULL;
	enum status status = recording_region_load(recording, fd, path, &process);

	if (status != OK)
		return status == ERR_NO_SPACE ? status : OK;
	recording->files_read++;
	process->owner = st->st_uid;
	if (flags & RECORDING_WITH_TRACES)
		status = add_companion(recording, process, "trace", CONTENT_TRACE, st->st_uid);
	if (status != OK) {
		recording_process_free(process);
		return status;
	}
	return recording_load_keep(recording, process);
}

/* A region gets its magic last: until then it begins with zeros. */
static const char *foreign_words(int fd, const struct stat *st)
{
	uint64_t magic;

	if (st->st_size == 0)
		return "empty file";
	if (file_pread(fd, &magic, sizeof(magic), 0) == OK && magic == 0)
		return "empty, or a region that was never completed";
	if (file_pread(fd, &magic, 2, 0) == OK && (magic & 0xffff) == 0x8b1f)
		return "compressed file: unpack it with gunzip first";
	return "unrecognized file format (expected a Ringside trace, NCCL Inspector or CoMMA log, "
	       "Flight Recorder dump or bundle)";
}

/* A recorder writes the header at once, so a trace is never empty while it is made. */
#define TRACE_ENDING ".ringside"

static enum status add_content(struct recording *recording, int fd, const char *path,
			       const struct stat *st, unsigned int flags)
{
	struct recording_source source;
	enum foreign_format format;

	switch (content_of(fd)) {
	case CONTENT_TRACE:
		return add_trace_file(recording, fd, path, st, flags);
	case CONTENT_REGION:
		return add_region(recording, fd, path, st, flags);
	case CONTENT_ARCHIVE:
		source = source_of(fd, path, st);
		return recording_archive_load(recording, &source);
	default:
		break;
	}
	format = foreign_probe_fd(fd);
	if (foreign_has_operations(format) && flags & RECORDING_LIST_FOREIGN)
		return recording_foreign_list(recording, path);
	if (foreign_has_operations(format))
		return recording_foreign_load(recording, fd, path, st);
	if (st->st_size == 0 && text_ends_with(path, TRACE_ENDING)) {
		recording_load_trouble(recording, RECORDING_DAMAGE, path, NULL,
				       "empty: copied incompletely, or the disk was full");
		return OK;
	}
	recording->files_foreign++;
	if (format != FOREIGN_NONE)
		recording_load_trouble(recording, RECORDING_FOREIGN, path, NULL,
				       "%s: contains no operations", foreign_format_name(format));
	else
		recording_load_trouble(recording, RECORDING_FOREIGN, path, NULL, "%s",
				       foreign_words(fd, st));
	return OK;
}

/* A file that cannot be read, or that needs more memory than there is, affects only itself. */
static void add_file(struct recording *recording, int fd, const char *path, unsigned int flags)
{
	unsigned char first;
	enum status status;
	struct stat st;
	size_t got;

	if (fstat(fd, &st) == -1 || file_pread_some(fd, &first, 1, 0, &got) != OK) {
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL,
				       "cannot be read: %s", strerror(errno));
		return;
	}
	if (file_is_hollow(fd)) {
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL, "not read: %s",
				       FILE_HOLLOW_WORDS);
		return;
	}
	status = add_content(recording, fd, path, &st, flags);
	if (status != OK)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL,
				       "cannot be read: %s",
				       status == ERR_NO_SPACE ? "not enough memory"
				       : status == ERR_SYSTEM ? strerror(errno)
							      : status_text(status));
}

static void add_directory(struct recording *recording, int fd, const char *path, unsigned int flags,
			  int depth);

static void add_entry(struct recording *recording, int directory, const char *parent,
		      const char *name, unsigned int flags, int depth)
{
	char path[PATH_MAX];
	int fd;

	if (!text_format(path, sizeof(path), "%s/%s", parent, name)) {
		recording_load_trouble(recording, RECORDING_UNREADABLE, parent, NULL,
				       "contains a name that is too long");
		return;
	}
	fd = file_open(directory, name, false);
	if (fd != -1) {
		add_file(recording, fd, path, flags);
		close(fd);
		return;
	}
	if (errno == EISDIR && depth < DIRECTORY_DEPTH_MAX) {
		fd = file_open_directory(directory, name, false);
		if (fd != -1) {
			add_directory(recording, fd, path, flags, depth + 1);
			return;
		}
	}
	/* Links, sockets and the like are not recordings; files may also disappear. */
	if (errno != ELOOP && errno != EINVAL && errno != ENOENT)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL,
				       "cannot be opened: %s", file_error_text(errno));
}

static int is_not_dot(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Takes over fd. Sorted by name, so that a recording reads the same everywhere. */
static void add_directory(struct recording *recording, int fd, const char *path, unsigned int flags,
			  int depth)
{
	struct dirent **entries = NULL;
	int count = scandirat(fd, ".", &entries, is_not_dot, alphasort);

	if (count < 0)
		recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL,
				       "cannot be read: %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		add_entry(recording, fd, path, entries[i]->d_name, flags, depth);
		free(entries[i]);
	}
	free(entries);
	close(fd);
}

/* Is this the region of the process with this pid, in either namespace? */
static bool is_of_pid(const struct recording_process *process, int64_t pid)
{
	struct region_identity identity = { process->host, process->boot_id, (uint64_t)process->pid,
					    process->pid_namespace, process->start_ticks };
	uint64_t pid_here = 0;

	if (process->pid <= 0)
		return false;
	if (region_alive(&identity, &pid_here) == REGION_ALIVE_YES)
		return (int64_t)pid_here == pid;
	return process->pid == pid;
}

static void add_places(struct recording *recording, const struct region_places *places,
		       unsigned int flags)
{
	for (size_t i = 0; i < places->count; i++) {
		int fd = region_place_open(&places->list[i]);

		/* Gone since it was found: its process ended and the region was removed. */
		if (fd == -1)
			continue;
		add_file(recording, fd, places->list[i].path, flags);
		close(fd);
	}
}

enum status recording_add_machine(struct recording *recording, const char *directory,
				  unsigned int flags)
{
	struct region_places places;
	enum status status =
		region_find(&places, directory != NULL ? directory : recording->directory);

	if (status == ERR_SYSTEM) {
		recording_load_trouble(recording, RECORDING_UNREADABLE,
				       directory != NULL ? directory : REGION_FIND_DIRECTORY, NULL,
				       "cannot be read: %s", strerror(errno));
		status = OK;
	}
	if (status == OK)
		add_places(recording, &places, flags);
	for (size_t i = 0; i < places.owner_count; i++)
		if (places.owners[i].directories_left_out > 0)
			recording_load_trouble(
				recording, RECORDING_UNREADABLE,
				directory != NULL ? directory : REGION_FIND_DIRECTORY, NULL,
				"the containers of user %u were not all searched: "
				"their lists of mounts are too long",
				places.owners[i].uid);
	region_find_release(&places);
	return status;
}

/* Open all regions and drop those of other processes. */
static enum status add_pid(struct recording *recording, const char *path, unsigned int flags)
{
	struct recording all = { .directory = recording->directory };
	enum status status = OK;
	size_t found = 0;
	struct stat st;
	int64_t pid;

	if (text_number(path + 1, 1, INT32_MAX, &pid) != OK) {
		recording_load_trouble(recording, RECORDING_NOTHING, path, NULL,
				       "expected a process id after @");
		return OK;
	}
	status = recording_add_machine(&all, NULL, flags & ~(unsigned int)RECORDING_WITH_TRACES);
	for (size_t i = 0; i < all.count && status == OK; i++) {
		struct recording_process *process = all.processes[i];

		if (!is_of_pid(process, pid))
			continue;
		if (flags & RECORDING_WITH_TRACES && process->region != NULL &&
		    fstat(process->region->fd, &st) == 0)
			status = add_companion(recording, process, "trace", CONTENT_TRACE,
					       st.st_uid);
		all.processes[i] = NULL;
		if (status == OK)
			status = recording_load_keep(recording, process);
		else
			recording_process_free(process);
		recording->files_read++;
		found++;
	}
	recording_release(&all);
	if (found == 0 && status == OK)
		recording_load_trouble(recording, RECORDING_NOTHING, path, NULL,
				       "no readable recording of this process on this host");
	return status;
}

enum status recording_add(struct recording *recording, const char *path, unsigned int flags)
{
	int fd;

	if (path[0] == '@')
		return add_pid(recording, path, flags);
	fd = file_open(AT_FDCWD, path, true);
	if (fd != -1) {
		add_file(recording, fd, path, flags);
		close(fd);
		return OK;
	}
	if (errno == EISDIR) {
		fd = file_open_directory(AT_FDCWD, path, true);
		if (fd != -1) {
			add_directory(recording, fd, path, flags, 0);
			return OK;
		}
	}
	recording_load_trouble(recording, RECORDING_UNREADABLE, path, NULL, "cannot be read: %s",
			       errno == EINVAL ? "neither a file nor a directory"
					       : file_error_text(errno));
	return OK;
}
