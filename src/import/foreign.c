/*
 * Reads other tools' logs line by line into one buffer. An incomplete line is moved to the front
 * before more is read; the buffer grows only for a line that is longer than it.
 *
 *	buffer | returned | from ... to: lines | free
 */
#include "import/foreign.h"
#include "import/foreign_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "common/attributes.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"

/* Limits for one file. */
enum { FOREIGN_PROCESSES_MAX = 1 << 14, FOREIGN_COMMS_MAX = 1 << 20 };

enum { BUFFER_BYTES = 256 << 10, PACKED_BYTES = 64 << 10 };

static bool is_gzip(int fd)
{
	unsigned char start[2];

	return file_pread(fd, start, sizeof(start), 0) == OK && start[0] == 0x1f &&
	       start[1] == 0x8b;
}

enum status foreign_lines_init(struct foreign_lines *lines, int fd, uint64_t limit)
{
	z_stream *stream;

	*lines = (struct foreign_lines){ .fd = fd, .limit = limit, .is_gzip = is_gzip(fd) };
	lines->room = BUFFER_BYTES;
	lines->buffer = malloc(lines->room);
	if (lines->buffer == NULL)
		return ERR_NO_SPACE;
	if (!lines->is_gzip)
		return OK;
	lines->packed = malloc(PACKED_BYTES);
	stream = calloc(1, sizeof(*stream));
	/* 16: expect gzip's header and nothing else. */
	if (stream == NULL || lines->packed == NULL ||
	    inflateInit2(stream, MAX_WBITS + 16) != Z_OK) {
		free(stream);
		return ERR_NO_SPACE;
	}
	lines->inflate = stream;
	return OK;
}

void foreign_lines_release(struct foreign_lines *lines)
{
	if (lines->inflate != NULL)
		inflateEnd(lines->inflate);
	free(lines->inflate);
	free(lines->packed);
	free(lines->buffer);
	*lines = (struct foreign_lines){ .fd = -1, .is_over = true };
}

/* Read some bytes of the file; 0 at its end, or if it cannot be read. */
static size_t read_file(struct foreign_lines *lines, void *to, size_t size)
{
	uint64_t left = lines->limit > lines->read_at ? lines->limit - lines->read_at : 0;
	ssize_t got;

	if (size > left)
		size = (size_t)left;
	do {
		got = pread(lines->fd, to, size, (off_t)lines->read_at);
	} while (got == -1 && errno == EINTR);
	if (got == -1)
		lines->status = ERR_SYSTEM;
	if (got <= 0)
		return 0;
	lines->read_at += (uint64_t)got;
	return (size_t)got;
}

/* A gzip file can have several members: `cat a.gz b.gz`. Zeros after the last are padding. */
static bool next_member(struct foreign_lines *lines, z_stream *stream)
{
	for (;;) {
		while (stream->avail_in > 0 && *stream->next_in == 0) {
			stream->next_in++;
			stream->avail_in--;
		}
		if (stream->avail_in > 0)
			return inflateReset(stream) == Z_OK;
		stream->next_in = lines->packed;
		stream->avail_in = (uInt)read_file(lines, lines->packed, PACKED_BYTES);
		if (stream->avail_in == 0)
			return false;
	}
}

static size_t read_packed(struct foreign_lines *lines, char *to, size_t size)
{
	z_stream *stream = lines->inflate;
	int result = Z_OK;

	stream->next_out = (unsigned char *)to;
	stream->avail_out = (uInt)size;
	while (stream->avail_out == size) {
		if (stream->avail_in == 0) {
			stream->next_in = lines->packed;
			stream->avail_in = (uInt)read_file(lines, lines->packed, PACKED_BYTES);
		}
		if (stream->avail_in == 0) {
			if (lines->status == OK)
				lines->status = ERR_TRUNCATED;
			break;
		}
		result = inflate(stream, Z_NO_FLUSH);
		if (result == Z_STREAM_END) {
			if (!next_member(lines, stream)) {
				lines->is_over = true;
				break;
			}
		} else if (result != Z_OK && result != Z_BUF_ERROR) {
			lines->status = result == Z_MEM_ERROR ? ERR_NO_SPACE : ERR_FORMAT;
			break;
		}
	}
	return size - stream->avail_out;
}

static void lines_fill(struct foreign_lines *lines)
{
	size_t room = lines->room - lines->to, got;

	got = lines->is_gzip ? read_packed(lines, lines->buffer + lines->to, room)
			     : read_file(lines, lines->buffer + lines->to, room);
	lines->to += got;
	if (got == 0 || lines->status != OK)
		lines->is_over = true;
}

/* Make room at the end. False: out of memory. */
static bool lines_make_room(struct foreign_lines *lines)
{
	size_t room = lines->room;
	char *more;

	if (lines->from > 0) {
		memmove(lines->buffer, lines->buffer + lines->from, lines->to - lines->from);
		lines->to -= lines->from;
		lines->seen -= lines->from;
		lines->from = 0;
	}
	if (lines->to < room)
		return true;
	more = realloc(lines->buffer, room * 2);
	if (more == NULL)
		return false;
	lines->buffer = more;
	lines->room = room * 2;
	return true;
}

static void lines_give(struct foreign_lines *lines, struct foreign_line *line, size_t length,
		       bool is_ended)
{
	*line = (struct foreign_line){ .text = lines->buffer + lines->from,
				       .length = length,
				       .number = ++lines->number,
				       .offset = lines->offset,
				       .is_ended = is_ended };
	lines->from += length + is_ended;
	lines->offset += length + is_ended;
	lines->seen = lines->from;
}

/* Skip the rest of a line that is too long. */
static void pass_over(struct foreign_lines *lines, struct foreign_line *line)
{
	const char *newline = NULL;

	lines_give(lines, line, lines->to - lines->from, false);
	line->text = "";
	line->is_too_long = true;
	while (newline == NULL && !lines->is_over) {
		lines->from = lines->to = lines->seen = 0;
		lines_fill(lines);
		newline = memchr(lines->buffer, '\n', lines->to);
		lines->from = newline != NULL ? (size_t)(newline - lines->buffer) + 1 : lines->to;
		lines->offset += lines->from;
		lines->seen = lines->from;
	}
	line->is_ended = newline != NULL;
	line->length = (size_t)(lines->offset - line->offset) - line->is_ended;
}

enum status foreign_lines_next(struct foreign_lines *lines, struct foreign_line *line)
{
	for (;;) {
		const char *start = lines->buffer + lines->from;
		const char *newline =
			memchr(lines->buffer + lines->seen, '\n', lines->to - lines->seen);

		if (newline != NULL) {
			lines_give(lines, line, (size_t)(newline - start), true);
			return OK;
		}
		lines->seen = lines->to;
		if (lines->is_over) {
			if (lines->from == lines->to)
				return lines->status == ERR_NO_SPACE ? ERR_NO_SPACE : ERR_GONE;
			lines_give(lines, line, lines->to - lines->from, false);
			return OK;
		}
		if (lines->to - lines->from >= FOREIGN_LINE_MAX) {
			pass_over(lines, line);
			return OK;
		}
		if (!lines_make_room(lines))
			return ERR_NO_SPACE;
		lines_fill(lines);
	}
}

enum status foreign_lines_peek(int fd, char *to, size_t size, size_t *got)
{
	struct foreign_lines lines;
	enum status status = foreign_lines_init(&lines, fd, UINT64_MAX);

	*got = 0;
	while (status == OK && *got < size && !lines.is_over) {
		size_t some;

		lines.from = lines.to = 0;
		lines_fill(&lines);
		some = lines.to < size - *got ? lines.to : size - *got;
		memcpy(to + *got, lines.buffer, some);
		*got += some;
	}
	foreign_lines_release(&lines);
	return status;
}

/*
 * The processes of a log, by host and pid, and its communicators, by process, hash and rank.
 * Communicators are found through a hash table; a file usually has a single process.
 */

void foreign_log_init(struct foreign_log *log)
{
	*log = (struct foreign_log){ 0 };
}

void foreign_log_release(struct foreign_log *log)
{
	for (uint32_t i = 0; i < log->process_count; i++)
		free(log->processes[i].comms);
	free(log->processes);
	free(log->comms);
	free(log->comm_index);
	*log = (struct foreign_log){ 0 };
}

enum status foreign_process_of(struct foreign_log *log, const char *host, int64_t pid,
			       uint32_t *process)
{
	struct foreign_process *made;

	/* Backwards: in a file of several processes they come one after the other. */
	for (uint32_t i = log->process_count; i > 0; i--) {
		if (log->processes[i - 1].pid == pid &&
		    strcmp(log->processes[i - 1].host, host) == 0) {
			*process = i - 1;
			return OK;
		}
	}
	if (log->process_count == FOREIGN_PROCESSES_MAX)
		return ERR_RANGE;
	if (!list_grow(&log->processes, log->process_count, sizeof(*log->processes)))
		return ERR_NO_SPACE;
	made = &log->processes[log->process_count];
	*made = (struct foreign_process){ .pid = pid, .rank = -1 };
	text_copy(made->host, sizeof(made->host), host);
	*process = log->process_count++;
	return OK;
}

/* ---- communicators --------------------------------------------------------------------------- */

static uint32_t *index_place(const struct foreign_log *log, uint32_t process, uint64_t hash,
			     int32_t rank)
{
	uint64_t key = hash_word(hash_word(hash, process), (uint64_t)(int64_t)rank);
	size_t at = (size_t)key & (log->comm_index_size - 1);

	while (log->comm_index[at] != 0) {
		const struct foreign_comm *found = &log->comms[log->comm_index[at] - 1];

		if (found->process == process && found->info.hash == hash &&
		    found->info.rank == rank)
			break;
		at = (at + 1) & (log->comm_index_size - 1);
	}
	return &log->comm_index[at];
}

/* At most half full. */
static bool index_room(struct foreign_log *log)
{
	size_t size = log->comm_index_size == 0 ? 64 : log->comm_index_size * 2;
	uint32_t *index;

	if (((size_t)log->comm_count + 1) * 2 <= log->comm_index_size)
		return true;
	index = calloc(size, sizeof(*index));
	if (index == NULL)
		return false;
	free(log->comm_index);
	log->comm_index = index;
	log->comm_index_size = size;
	for (uint32_t i = 0; i < log->comm_count; i++)
		*index_place(log, log->comms[i].process, log->comms[i].info.hash,
			     log->comms[i].info.rank) = i + 1;
	return true;
}

/* A later line may add what an earlier one lacked. */
static void comm_complete(struct comm_info *known, const struct comm_info *info)
{
	if (known->nranks == 0)
		known->nranks = info->nranks;
	if (known->nnodes == 0)
		known->nnodes = info->nnodes;
	if (known->name[0] == '\0')
		memcpy(known->name, info->name, sizeof(known->name));
}

enum status foreign_comm_of(struct foreign_log *log, uint32_t process, const struct comm_info *info,
			    uint32_t *comm)
{
	struct foreign_process *owner = &log->processes[process];
	uint32_t *place;

	if (!index_room(log))
		return ERR_NO_SPACE;
	place = index_place(log, process, info->hash, info->rank);
	if (*place != 0) {
		*comm = *place - 1;
		comm_complete(&log->comms[*comm].info, info);
		return OK;
	}
	if (log->comm_count == FOREIGN_COMMS_MAX)
		return ERR_RANGE;
	if (!list_grow(&log->comms, log->comm_count, sizeof(*log->comms)) ||
	    !list_grow(&owner->comms, owner->comm_count, sizeof(*owner->comms)))
		return ERR_NO_SPACE;
	log->comms[log->comm_count] = (struct foreign_comm){ .info = *info, .process = process };
	owner->comms[owner->comm_count++] = log->comm_count;
	log->comms[log->comm_count].info.id = owner->comm_count;
	log->comms[log->comm_count].info.gpu = -1;
	*comm = log->comm_count;
	*place = ++log->comm_count;
	return OK;
}

/* ---- records --------------------------------------------------------------------------------- */

struct op_detail *foreign_add_detail(struct foreign_reading *reading)
{
	struct foreign_details *details = &reading->details;
	size_t room = details->room == 0 ? 64 : details->room * 2;
	struct op_detail *more;

	details->total++;
	if (!details->is_wanted)
		return NULL;
	if (details->count == details->room) {
		more = reallocarray(details->list, room, sizeof(*more));
		if (more == NULL) {
			reading->status = ERR_NO_SPACE;
			return NULL;
		}
		details->list = more;
		details->room = room;
	}
	more = &details->list[details->count++];
	*more = (struct op_detail){ .peer = OP_NOBODY };
	return more;
}

static bool is_asked_for(const struct foreign_reading *reading, uint32_t process)
{
	return reading->request->process < 0 || reading->request->process == (int64_t)process;
}

static void note_time(struct foreign_process *process, uint64_t ns)
{
	if (ns == 0)
		return;
	if (process->first_ns == 0 || ns < process->first_ns)
		process->first_ns = ns;
	if (ns > process->last_ns)
		process->last_ns = ns;
}

void foreign_give_op(struct foreign_reading *reading, uint32_t comm, struct op_record *op)
{
	struct foreign_comm *of = &reading->log->comms[comm];
	struct foreign_process *process = &reading->log->processes[of->process];

	op->sequence = ++process->records;
	op->comm = of->info.id;
	of->records++;
	if (op->number == 0)
		op->number = of->records;
	of->last_number = op->number;
	of->is_from_dump = reading->log->format == FOREIGN_TORCH_DUMP;
	of->open += op->state != OP_DONE;
	if (op->match > of->last_match)
		of->last_match = op->match;
	if (op->state == OP_DONE)
		of->last_done_number = op->number;
	if (op->issue_ns > of->last_issue_ns)
		of->last_issue_ns = op->issue_ns;
	of->timed += op_has_duration(op);
	process->untimed += op->time_source == OP_TIME_NONE;
	if (op->done_ns > of->last_done_ns)
		of->last_done_ns = op->done_ns;
	if (of->is_from_dump)
		note_time(process, op->issue_ns);
	note_time(process, op->task_ns);
	note_time(process, op->done_ns);
	if (op->time_source == OP_TIME_KERNEL_GPU) {
		/*
		 * The log has no GPU stamps, only the difference between two of them: they were put
		 * on the recorder's clock.
		 */
		of->info.flags |= COMM_FLAG_SEES_KERNELS;
		if (of->info.gpu_offset_at_ns == 0)
			of->info.gpu_offset_at_ns = op->done_ns;
	}
	if (reading->request->visit_op != NULL && is_asked_for(reading, of->process))
		reading->is_over |=
			!reading->request->visit_op(op, of->process, reading->request->context);
}

void foreign_give_details(struct foreign_reading *reading, uint32_t process, uint32_t comm_id,
			  uint64_t number)
{
	struct foreign_process *of = &reading->log->processes[process];
	struct foreign_details *details = &reading->details;
	bool is_visited = reading->request->visit_detail != NULL && is_asked_for(reading, process);

	for (size_t i = 0; i < details->count && is_visited && !reading->is_over; i++) {
		details->list[i].sequence = of->details + i + 1;
		details->list[i].comm = comm_id;
		details->list[i].number = number;
		reading->is_over |= !reading->request->visit_detail(&details->list[i], process,
								    reading->request->context);
	}
	of->details += details->total;
}

uint64_t foreign_message_bytes(uint8_t function, uint64_t rank_bytes, int32_t nranks)
{
	/* An element of unknown size made Inspector's product wrap around. */
	if (rank_bytes >> 63 != 0)
		return OP_BYTES_UNKNOWN;
	switch (function) {
	case OP_ALL_REDUCE:
	case OP_ALL_GATHER:
	case OP_REDUCE_SCATTER:
	case OP_BROADCAST:
	case OP_REDUCE:
	case OP_SEND:
	case OP_RECV:
	case OP_SEND_RECV:
		return op_message_bytes(function, rank_bytes, 1, nranks);
	default:
		return OP_BYTES_UNKNOWN;
	}
}

/* False: this number was seen already. Only the last 64 are remembered. */
static bool note_number(struct foreign_comm *comm, unsigned int counter, uint64_t number)
{
	uint64_t *recent = &comm->recent[counter], *counted = &comm->counted[counter];
	uint64_t age;

	if (number >= *counted) {
		uint64_t ahead = number + 1 - *counted;

		*recent = (ahead < 64 ? *recent << ahead : 0) | 1;
		*counted = number + 1;
		return true;
	}
	age = *counted - 1 - number;
	if (age < 64 && *recent >> age & 1)
		return false;
	if (age < 64)
		*recent |= UINT64_C(1) << age;
	return true;
}

uint64_t foreign_count_collective(struct foreign_comm *comm, uint8_t function, uint64_t nccl_number)
{
	unsigned int counter = function - OP_ALL_REDUCE;

	_Static_assert(OP_REDUCE - OP_ALL_REDUCE + 1 == FOREIGN_COUNTERS, "counters by function");
	if (function < OP_ALL_REDUCE || function > OP_REDUCE ||
	    !note_number(comm, counter, nccl_number))
		return 0;
	comm->found[counter]++;
	/* Functions are counted separately, and so are their match numbers. */
	return (uint64_t)function << 48 | (nccl_number + 1);
}

/* ---- missing operations ---------------------------------------------------------------------- */

/* From the counters of NCCL and of its recorder. */
static uint64_t missing_of(const struct foreign_comm *comm)
{
	uint64_t missing = 0;

	for (unsigned int i = 0; i < FOREIGN_COUNTERS; i++)
		if (comm->counted[i] > comm->found[i])
			missing += comm->counted[i] - comm->found[i];
	if (comm->counted_p2p > comm->found_p2p)
		missing += comm->counted_p2p - comm->found_p2p;
	return missing;
}

uint64_t foreign_dropped(const struct foreign_log *log, uint32_t process)
{
	const struct foreign_process *of = &log->processes[process];
	uint64_t dropped = 0;

	for (uint32_t i = 0; i < of->comm_count; i++)
		dropped += log->comms[of->comms[i]].dropped;
	return dropped;
}

uint64_t foreign_not_recorded(const struct foreign_log *log, uint32_t process)
{
	const struct foreign_process *of = &log->processes[process];
	uint64_t missing = 0;

	for (uint32_t i = 0; i < of->comm_count; i++) {
		const struct foreign_comm *comm = &log->comms[of->comms[i]];

		if (missing_of(comm) > comm->dropped)
			missing += missing_of(comm) - comm->dropped;
	}
	return missing;
}

uint64_t foreign_dropped_details(const struct foreign_log *log, uint32_t process)
{
	const struct foreign_process *of = &log->processes[process];
	uint64_t dropped = 0;

	for (uint32_t i = 0; i < of->comm_count; i++)
		dropped += log->comms[of->comms[i]].dropped_details;
	return dropped;
}

void foreign_comm_counts(const struct foreign_comm *comm, struct comm_counts *counts)
{
	uint64_t collectives = 0;

	for (unsigned int i = 0; i < FOREIGN_COUNTERS; i++)
		collectives += comm->counted[i];
	*counts = (struct comm_counts){
		.issued = comm->records + comm->dropped,
		.recorded = comm->records + comm->dropped,
		.timed = comm->timed,
		.collectives = collectives,
		.last_done_ns = comm->last_done_ns,
		.last_done_number = comm->records,
	};
	if (!comm->is_from_dump)
		return;
	counts->issued = comm->last_number;
	counts->recorded = comm->last_number - comm->open;
	counts->collectives = comm->last_match;
	counts->last_issue_ns = comm->last_issue_ns;
	counts->last_done_number = comm->last_done_number;
}

bool foreign_is_wall(uint64_t ns)
{
	return ns >= UINT64_C(1000000000) * 1000000000; /* 2001 */
}

/* ---- identity -------------------------------------------------------------------------------- */

/* The job is in the name of Inspector's own directory. */
static void job_of(const char *path, char *job, size_t size)
{
	static const char prefix[] = "nccl-inspector-";
	size_t length;

	job[0] = '\0';
	for (const char *at = path; at != NULL; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, prefix, sizeof(prefix) - 1) != 0)
			continue;
		length = strcspn(at, "/") - (sizeof(prefix) - 1);
		if (length > 0 && length < size)
			text_from_field(job, length + 1, at + sizeof(prefix) - 1, length);
	}
	if (strcmp(job, "unknown-jobid") == 0)
		job[0] = '\0';
}

bool foreign_info_text(const struct foreign_log *log, uint32_t process, const char *path,
		       char *text, size_t size)
{
	const struct foreign_process *of = &log->processes[process];
	const char *recorder = log->format == FOREIGN_INSPECTOR ? "nccl-inspector" : "comma";
	bool is_dump = log->format == FOREIGN_TORCH_DUMP;
	char job[128], pid[32] = "", rank[32] = "x", from[1024];

	job_of(path, job, sizeof(job));
	text_from_field(from, sizeof(from), path, strlen(path));
	if (of->pid >= 0)
		text_format(pid, sizeof(pid), "%lld", (long long)of->pid);
	if (of->rank >= 0)
		text_format(rank, sizeof(rank), "%lld", (long long)of->rank);
	return text_format(
		text, size,
		"host=%s\npid=%s\njob=%s\nrank=%s\nmode=%s\nrecorder=%s\nrecorder_format=%s\n"
		"times=%s\nimported_from=%s\n",
		of->host, pid, job, rank, is_dump ? "flight" : "trace",
		is_dump ? "pytorch-flight-recorder" : recorder, of->version,
		of->coarse == 0 ? "events" : "dumps", from);
}

/* Values in JSON, with short error messages. */

/* The next token; false if it is null or the JSON is damaged. */
static bool next_value(struct foreign_reading *reading)
{
	if (UNLIKELY(json_scan_next(&reading->scan) == JSON_SCAN_ERROR)) {
		reading->problem = reading->scan.problem;
		return false;
	}
	return reading->scan.token != JSON_SCAN_NULL;
}

static bool complain(struct foreign_reading *reading, const char *problem)
{
	reading->problem = problem;
	return false;
}

#define TAKE_NOTHING(reading) ((reading)->problem == NULL)

bool foreign_take_any_unsigned(struct foreign_reading *reading, uint64_t *value)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (!json_scan_unsigned(&reading->scan, value))
		return complain(reading, "a value is not a number from 0 to 2^64 - 1");
	return true;
}

bool foreign_take_signed(struct foreign_reading *reading, int64_t *value)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (!json_scan_signed(&reading->scan, value))
		return complain(reading, "a value is not an integer");
	return true;
}

bool foreign_take_int32(struct foreign_reading *reading, int32_t *value)
{
	uint64_t number;
	int64_t wide;

	if (LIKELY(json_scan_take(&reading->scan, &number)) && number <= INT32_MAX) {
		*value = (int32_t)number;
		return true;
	}
	/* Consumed but too large: the token still shows it. */
	if (reading->scan.token == JSON_SCAN_KEY && !next_value(reading))
		return TAKE_NOTHING(reading);
	if (!json_scan_signed(&reading->scan, &wide) || wide < INT32_MIN || wide > INT32_MAX)
		return complain(reading, "a value is not a 32-bit number");
	*value = (int32_t)wide;
	return true;
}

bool foreign_take_bool(struct foreign_reading *reading, bool *value)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (reading->scan.token != JSON_SCAN_TRUE && reading->scan.token != JSON_SCAN_FALSE)
		return complain(reading, "a value is neither true nor false");
	*value = reading->scan.token == JSON_SCAN_TRUE;
	return true;
}

bool foreign_take_any_us(struct foreign_reading *reading, uint64_t *ns)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (!json_scan_thousandths(&reading->scan, ns))
		return complain(reading, "a value is not a time in microseconds");
	return true;
}

bool foreign_take_text(struct foreign_reading *reading, char *to, size_t size)
{
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (reading->scan.token != JSON_SCAN_STRING)
		return complain(reading, "a value is not a string");
	json_scan_text(&reading->scan, to, size);
	text_clean(to);
	return true;
}

bool foreign_hash(const char *text, uint64_t *hash)
{
	uint64_t value = 0;

	if (strncmp(text, "0x", 2) != 0 || strlen(text) > 18)
		return false;
	for (const char *at = text + 2; *at != '\0'; at++) {
		char lower = (char)(*at | 0x20);

		if (*at >= '0' && *at <= '9')
			value = value << 4 | (uint64_t)(*at - '0');
		else if (lower >= 'a' && lower <= 'f')
			value = value << 4 | (uint64_t)(lower - 'a' + 10);
		else
			return false;
	}
	*hash = value;
	return true;
}

bool foreign_take_skip(struct foreign_reading *reading)
{
	if (json_scan_skip(&reading->scan))
		return true;
	return complain(reading, reading->scan.problem);
}

static bool enter(struct foreign_reading *reading, uint8_t token, const char *problem)
{
	if (!next_value(reading))
		return false;
	return reading->scan.token == token || complain(reading, problem);
}

bool foreign_enter_object(struct foreign_reading *reading)
{
	return enter(reading, JSON_SCAN_OBJECT, "a value is not an object");
}

bool foreign_enter_array(struct foreign_reading *reading)
{
	return enter(reading, JSON_SCAN_ARRAY, "a value is not an array");
}

bool foreign_next_object(struct foreign_reading *reading, const char *problem)
{
	enum json_scan_token token = json_scan_next(&reading->scan);

	if (token != JSON_SCAN_OBJECT && token != JSON_SCAN_ARRAY_END)
		reading->problem = token == JSON_SCAN_ERROR ? reading->scan.problem : problem;
	return token == JSON_SCAN_OBJECT;
}

bool foreign_begin_line(struct foreign_reading *reading)
{
	reading->problem = NULL;
	reading->details.count = reading->details.total = 0;
	json_scan_init(&reading->scan, reading->line.text, reading->line.length);
	if (json_scan_next(&reading->scan) != JSON_SCAN_OBJECT)
		reading->problem =
			reading->scan.problem != NULL ? reading->scan.problem : "not a JSON object";
	return reading->problem == NULL;
}

bool foreign_take_choice(struct foreign_reading *reading, const char *const *quoted, uint8_t count,
			 uint8_t *choice)
{
	const struct json_scan *scan = &reading->scan;

	for (uint8_t i = 0; i < count; i++) {
		if (json_scan_take_text(&reading->scan, quoted[i], strlen(quoted[i]))) {
			*choice = i;
			return true;
		}
	}
	*choice = count;
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (scan->token != JSON_SCAN_STRING)
		return complain(reading, "a value is not a string");
	/* The same after a blank. */
	for (uint8_t i = 0; i < count; i++)
		if (!scan->has_escapes && scan->length + 2 == strlen(quoted[i]) &&
		    memcmp(scan->text, quoted[i] + 1, scan->length) == 0)
			*choice = i;
	return true;
}

/* Names of functions that only other tools use: the first by Inspector, the others by CoMMA. */
static uint8_t find_function(const char *name)
{
	static const struct {
		const char *name;
		uint8_t function;
	} others[] = {
		{ "All2All", OP_ALL_TO_ALL },
		{ "all_reduce", OP_ALL_REDUCE },
		{ "all_gather", OP_ALL_GATHER },
		{ "reduce_scatter", OP_REDUCE_SCATTER },
		{ "broadcast", OP_BROADCAST },
		{ "reduce", OP_REDUCE },
		{ "send", OP_SEND },
		{ "recv", OP_RECV },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
		if (strcmp(others[i].name, name) == 0)
			return others[i].function;
	return OP_FUNCTION_UNKNOWN;
}

/* A name of NCCL or of another tool; CoMMA writes algorithms and protocols in lower case. */
static uint8_t find_number(enum op_name_table table, const char *name)
{
	char large[FOREIGN_NAME_BYTES];
	int is_known;
	uint8_t number = op_name_find(table, name, &is_known);

	if (is_known)
		return number;
	if (table == OP_NAMES_FUNCTION)
		return find_function(name);
	text_copy(large, sizeof(large), name);
	for (char *at = large; *at != '\0'; at++)
		if (*at >= 'a' && *at <= 'z')
			*at = (char)(*at - 'a' + 'A');
	return op_name_find(table, large, &is_known);
}

static uint8_t find_name(struct foreign_names *names, enum op_name_table table, const char *text,
			 size_t length)
{
	unsigned int at = names->next++ % FOREIGN_NAMES_KEPT;
	char name[FOREIGN_NAME_BYTES];

	memcpy(name, text, length);
	name[length] = '\0';
	text_format(names->kept[at].quoted, sizeof(names->kept[at].quoted), "\"%s\"", name);
	names->kept[at].length = (uint8_t)(length + 2);
	names->kept[at].number = find_number(table, name);
	return names->kept[at].number;
}

bool foreign_take_name(struct foreign_reading *reading, enum op_name_table table, uint8_t *number)
{
	struct foreign_names *names = &reading->names[table];
	struct json_scan *scan = &reading->scan;

	for (unsigned int i = 0; i < FOREIGN_NAMES_KEPT && names->kept[i].length > 0; i++) {
		if (json_scan_take_text(scan, names->kept[i].quoted, names->kept[i].length)) {
			*number = names->kept[i].number;
			return true;
		}
	}
	if (!next_value(reading))
		return TAKE_NOTHING(reading);
	if (scan->token != JSON_SCAN_STRING)
		return complain(reading, "a value is not a string");
	*number = 0;
	if (!scan->has_escapes && scan->length > 0 && scan->length + 2 < FOREIGN_NAME_BYTES)
		*number = find_name(names, table, scan->text, scan->length);
	return true;
}

static bool take_member(struct foreign_reading *reading, const struct json_scan_key *key,
			void *object)
{
	void *to = (char *)object + key->at;

	switch ((enum foreign_how)key->how) {
	case FOREIGN_U64:
		return foreign_take_unsigned(reading, to);
	case FOREIGN_I64:
		return foreign_take_signed(reading, to);
	case FOREIGN_I32:
		return foreign_take_int32(reading, to);
	case FOREIGN_BOOL:
		return foreign_take_bool(reading, to);
	case FOREIGN_US:
		return foreign_take_us(reading, to);
	case FOREIGN_TEXT:
		return foreign_take_text(reading, to, key->size);
	case FOREIGN_FUNCTION:
		return foreign_take_name(reading, OP_NAMES_FUNCTION, to);
	case FOREIGN_ALGORITHM:
		return foreign_take_name(reading, OP_NAMES_ALGORITHM, to);
	case FOREIGN_PROTOCOL:
		return foreign_take_name(reading, OP_NAMES_PROTOCOL, to);
	case FOREIGN_CALL:
		return key->take(reading, object);
	case FOREIGN_SKIP:
		break;
	}
	return foreign_take_skip(reading);
}

bool foreign_read_members(struct foreign_reading *reading, const struct json_scan_key *keys,
			  int count, void *object)
{
	int key, hint = 0;

	while ((key = foreign_next_key(reading, keys, count, &hint)) != JSON_SCAN_KEY_NONE)
		if (key < 0 ? !foreign_take_skip(reading)
			    : !take_member(reading, &keys[key], object))
			return false;
	return reading->problem == NULL;
}

bool foreign_read_object(struct foreign_reading *reading, const struct json_scan_key *keys,
			 int count, void *object)
{
	if (!foreign_enter_object(reading))
		return TAKE_NOTHING(reading);
	return foreign_read_members(reading, keys, count, object);
}

bool foreign_read_array(struct foreign_reading *reading, const char *not_an_object,
			bool (*take)(struct foreign_reading *reading, void *object), void *object)
{
	if (!foreign_enter_array(reading))
		return TAKE_NOTHING(reading);
	while (foreign_next_object(reading, not_an_object))
		if (!take(reading, object))
			return false;
	return reading->problem == NULL;
}

const char *foreign_format_name(enum foreign_format format)
{
	switch (format) {
	case FOREIGN_INSPECTOR:
		return "NCCL Inspector's log";
	case FOREIGN_COMMA:
		return "CoMMA's latency file";
	case FOREIGN_TORCH_DUMP:
		return "dump of PyTorch's Flight Recorder";
	case FOREIGN_COMMA_SUMMARY:
		return "CoMMA's summary";
	case FOREIGN_NCCL_TESTS:
		return "nccl-tests' output";
	case FOREIGN_NCCL_TESTS_JSON:
		return "nccl-tests' JSON";
	case FOREIGN_EXPECTED:
		return "a table of expected bandwidth";
	case FOREIGN_NONE:
		break;
	}
	return "an unknown format";
}

bool foreign_has_operations(enum foreign_format format)
{
	return format == FOREIGN_INSPECTOR || format == FOREIGN_COMMA ||
	       format == FOREIGN_TORCH_DUMP;
}

/* ---- detecting the format -------------------------------------------------------------------- */

#define KEY JSON_SCAN_KEY_OF

enum probe_key {
	PROBE_HEADER,
	PROBE_METADATA,
	PROBE_COLL,
	PROBE_P2P,
	PROBE_STATS,
	PROBE_PROXY,
	PROBE_PH,
	PROBE_CAT,
	PROBE_FORMAT,
	PROBE_KEYS,
};

/* A whole object on a line: recognized by keys that only one format has. */
static enum foreign_format probe_object(const char *text, size_t length)
{
	static const struct json_scan_key keys[PROBE_KEYS] = {
		[PROBE_HEADER] = KEY("header"),
		[PROBE_METADATA] = KEY("metadata"),
		[PROBE_COLL] = KEY("coll_perf"),
		[PROBE_P2P] = KEY("p2p_perf"),
		[PROBE_STATS] = KEY("dump_stats"),
		[PROBE_PROXY] = KEY("proxy_trace"),
		[PROBE_PH] = KEY("ph"),
		[PROBE_CAT] = KEY("cat"),
		[PROBE_FORMAT] = KEY("format"),
	};
	unsigned int has = 0;
	bool is_comma = false;
	struct json_scan scan;
	int key, hint = 0;

	json_scan_init(&scan, text, length);
	if (json_scan_next(&scan) != JSON_SCAN_OBJECT)
		return FOREIGN_NONE;
	while ((key = json_scan_next_key(&scan, keys, PROBE_KEYS, &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (key >= 0)
			has |= 1u << key;
		if (key != PROBE_CAT && key != PROBE_FORMAT) {
			if (!json_scan_skip(&scan))
				return FOREIGN_NONE;
			continue;
		}
		json_scan_next(&scan);
		is_comma |= json_scan_is(&scan, "COLL") || json_scan_is(&scan, "P2P") ||
			    json_scan_is(&scan, "PROXY") || json_scan_is(&scan, "GROUP");
		if (key == PROBE_FORMAT && (json_scan_is(&scan, "ringside-expected") ||
					    json_scan_is(&scan, "ringside-bench") ||
					    json_scan_is(&scan, "ringside-health") ||
					    json_scan_is(&scan, "ringside-crossover")))
			return FOREIGN_EXPECTED;
	}
	if (scan.problem != NULL)
		return FOREIGN_NONE;
	if (has & (1u << PROBE_COLL | 1u << PROBE_P2P | 1u << PROBE_STATS | 1u << PROBE_PROXY))
		return FOREIGN_INSPECTOR;
	return (has & 1u << PROBE_PH) != 0 && is_comma ? FOREIGN_COMMA : FOREIGN_NONE;
}

static bool has(const char *text, size_t length, const char *what)
{
	return memmem(text, length, what, strlen(what)) != NULL;
}

/* Formats with several lines: recognized by words that nothing else has. */
static enum foreign_format probe_text(const char *text, size_t length)
{
	size_t at = 0;

	while (at < length &&
	       (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
		at++;
	if (at < length && text[at] == '{') {
		if (has(text, length, "\"collective_seq_id\"") ||
		    (has(text, length, "\"pg_config\"") && has(text, length, "\"entries\"")))
			return FOREIGN_TORCH_DUMP;
		if (has(text, length, "\"ringside-expected\"") ||
		    has(text, length, "\"ringside-bench\"") ||
		    has(text, length, "\"ringside-health\"") ||
		    has(text, length, "\"ringside-crossover\""))
			return FOREIGN_EXPECTED;
		if (has(text, length, "\"message_sizes\"") ||
		    has(text, length, "\"latency_distribution\"") ||
		    has(text, length, "\"collective_counts\""))
			return FOREIGN_COMMA_SUMMARY;
		if (has(text, length, "\"start_time\"") && has(text, length, "\"args\"") &&
		    has(text, length, "\"version\""))
			return FOREIGN_NCCL_TESTS_JSON;
	}
	if (has(text, length, "# nThread ") || has(text, length, "# Collective test starting:") ||
	    (has(text, length, "algbw") && has(text, length, "busbw") &&
	     has(text, length, "#wrong")))
		return FOREIGN_NCCL_TESTS;
	return FOREIGN_NONE;
}

/* A pickle of protocol 2 to 5, with the keys of a dump near its start. */
static bool is_pickled_dump(const char *text, size_t length)
{
	return length > 2 && (unsigned char)text[0] == 0x80 && text[1] >= 2 && text[1] <= 5 &&
	       (has(text, length, "entries") || has(text, length, "pg_config"));
}

enum foreign_format foreign_probe(const char *text, size_t length)
{
	enum foreign_format format = FOREIGN_NONE;
	size_t at = 0;

	if (is_pickled_dump(text, length))
		return FOREIGN_TORCH_DUMP;
	/* A few lines may be damaged or not JSON at all; the last may be truncated. */
	for (int lines = 0; lines < 64 && at < length && format == FOREIGN_NONE; lines++) {
		const char *newline = memchr(text + at, '\n', length - at);
		size_t end = newline != NULL ? (size_t)(newline - text) : length;

		format = probe_object(text + at, end - at);
		at = end + 1;
	}
	return format != FOREIGN_NONE ? format : probe_text(text, length);
}

enum foreign_format foreign_probe_fd(int fd)
{
	enum foreign_format format = FOREIGN_NONE;
	char *text = malloc(FOREIGN_PROBE_BYTES);
	size_t got;

	if (text != NULL && foreign_lines_peek(fd, text, FOREIGN_PROBE_BYTES, &got) == OK)
		format = foreign_probe(text, got);
	free(text);
	return format;
}

/* ---- reading --------------------------------------------------------------------------------- */

void foreign_damage_note(struct foreign_reading *reading, const struct foreign_damage *damage)
{
	reading->log->damaged++;
	if (damage->is_cut)
		reading->log->is_cut = true;
	if (reading->request->visit_damage != NULL)
		reading->request->visit_damage(damage, reading->request->context);
}

void foreign_damage_line(struct foreign_reading *reading)
{
	const struct foreign_line *line = &reading->line;

	/* Out of memory is not damage: it ends the reading. */
	if (reading->status != OK)
		return;
	foreign_damage_note(
		reading, &(struct foreign_damage){
				 .line = line->number,
				 .offset = line->offset,
				 .bytes = line->length + line->is_ended,
				 .is_cut = !line->is_ended,
				 .what = line->is_ended ? reading->problem : "last line truncated",
			 });
}

/* Why there are no more lines before the end of the file. */
static enum status note_early_end(struct foreign_reading *reading,
				  const struct foreign_lines *lines)
{
	struct foreign_damage damage = { .offset = lines->read_at };

	switch (lines->status) {
	case OK:
		return OK;
	case ERR_TRUNCATED:
		damage.is_cut = true;
		damage.what = "gzip data truncated";
		break;
	case ERR_FORMAT:
		damage.what = "gzip data damaged, the rest cannot be read";
		break;
	default:
		return lines->status;
	}
	foreign_damage_note(reading, &damage);
	return OK;
}

static enum status read_lines(struct foreign_reading *reading, struct foreign_lines *lines)
{
	if (reading->log->format == FOREIGN_INSPECTOR)
		foreign_read_inspector(reading, lines);
	else
		foreign_read_comma(reading, lines);
	if (reading->status == OK && !reading->is_over)
		reading->status = note_early_end(reading, lines);
	reading->log->bytes = lines->read_at;
	return reading->status;
}

enum status foreign_read(struct foreign_log *log, int fd, const struct foreign_request *request)
{
	struct foreign_reading *reading = calloc(1, sizeof(*reading));
	uint64_t limit = request->limit_bytes != 0 ? request->limit_bytes : UINT64_MAX;
	struct foreign_lines lines;
	enum status status;

	if (reading == NULL)
		return ERR_NO_SPACE;
	log->format = foreign_probe_fd(fd);
	if (!foreign_has_operations(log->format)) {
		free(reading);
		return ERR_UNKNOWN;
	}
	reading->log = log;
	reading->request = request;
	reading->details.is_wanted = request->visit_detail != NULL;
	if (log->format == FOREIGN_TORCH_DUMP) {
		foreign_read_torch_dump(reading, fd, limit);
		status = reading->status;
	} else {
		status = foreign_lines_init(&lines, fd, limit);
		if (status == OK)
			status = read_lines(reading, &lines);
		foreign_lines_release(&lines);
	}
	free(reading->details.list);
	free(reading);
	free(log->comm_index);
	log->comm_index = NULL;
	log->comm_index_size = 0;
	return status;
}
