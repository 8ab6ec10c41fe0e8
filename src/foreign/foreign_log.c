/*
 * Who is in a log: processes by host and pid, communicators by process, hash and rank. A hash table
 * finds communicators; of processes a file has one, mostly.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/op.h"
#include "common/status.h"
#include "common/text.h"
#include "foreign/foreign_parts.h"

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

	/* From behind: a file of several processes has them one after the other. */
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
	*made = (struct foreign_process){ .pid = pid };
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

/* A later line may say what an earlier one did not. */
static void complete(struct comm_info *known, const struct comm_info *info)
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
		complete(&log->comms[*comm].info, info);
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
	op->number = ++of->records;
	of->timed += op->time_source == OP_TIME_KERNEL_GPU || op->time_source == OP_TIME_PROXY;
	process->untimed += op->time_source == OP_TIME_NONE;
	if (op->done_ns > of->last_done_ns)
		of->last_done_ns = op->done_ns;
	note_time(process, op->task_ns);
	note_time(process, op->done_ns);
	if (op->time_source == OP_TIME_KERNEL_GPU) {
		/* The log has no GPU stamps, only what lies between two of them: they were put on
		 * the recorder's clock. */
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

/* False: this number was found already. Only the last 64 are remembered. */
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
	/* Functions count apart, and so must their match numbers. */
	return (uint64_t)function << 48 | (nccl_number + 1);
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* By the counters of NCCL and of its recorder. */
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
}

bool foreign_is_wall(uint64_t ns)
{
	return ns >= UINT64_C(1000000000) * 1000000000; /* 2001 */
}

/* ---- identity -------------------------------------------------------------------------------- */

/* Inspector's own directory is named by the job. */
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
	bool is_inspector = log->format == FOREIGN_INSPECTOR;
	char job[128], pid[32] = "", from[1024];

	job_of(path, job, sizeof(job));
	text_from_field(from, sizeof(from), path, strlen(path));
	if (of->pid >= 0)
		text_format(pid, sizeof(pid), "%lld", (long long)of->pid);
	return text_format(
		text, size,
		"host=%s\npid=%s\njob=%s\nrank=x\nmode=trace\nrecorder=%s\nrecorder_format=%s\n"
		"times=%s\nimported_from=%s\n",
		of->host, pid, job, is_inspector ? "nccl-inspector" : "comma", of->version,
		of->coarse == 0 ? "events" : "dumps", from);
}
