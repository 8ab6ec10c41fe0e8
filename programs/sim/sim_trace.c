#include "programs/sim/sim_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "format/trace_layout.h"
#include "programs/sim/sim_outcome.h"
#include "programs/sim/sim_record.h"

enum {
	PENDING_BYTES = 96 << 20, /* for all ranks together */
	PENDING_LEAST = 128,
	CLOSE_NS = 30000000, /* from the last call to the end of the recording */
};

uint32_t sim_trace_comm_id(const struct sim_job *job, int rank, int role)
{
	uint32_t id = 0;

	if (job->members[rank][role].comm == -1)
		return 0;
	for (int i = 0; i <= role; i++)
		id += job->members[rank][i].comm != -1;
	return id;
}

static void file_path(struct sim_trace *trace, const struct sim_file *file)
{
	char name[96];

	sim_identity_file(&file->identity, name, sizeof(name));
	text_format(trace->failed, sizeof(trace->failed), "%s/%s", trace->directory, name);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/*
 * Blocks are put together in memory and copied to the end of the file. A writer on the file itself
 * would keep room on disk for its tail and give it back each time it is closed, which takes
 * milliseconds, and there are thousands of files.
 */
static void blocks_begin(const struct sim_trace *trace, struct trace_writer *writer)
{
	*writer = (struct trace_writer){ .fd = trace->blocks_fd,
					 .buffer = trace->buffer,
					 .encoder = trace->encoder };
}

static enum status copy_blocks(const struct sim_trace *trace, int fd, uint64_t size)
{
	off_t from = 0;

	while ((uint64_t)from < size) {
		ssize_t sent = sendfile(fd, trace->blocks_fd, &from, size - (uint64_t)from);

		if (sent == -1 && errno == EINTR)
			continue;
		if (sent <= 0)
			return errno == ENOSPC || errno == EDQUOT ? ERR_NO_SPACE : ERR_SYSTEM;
	}
	return OK;
}

/* `status` is that of the blocks; they are copied if it is OK. */
static enum status blocks_end(struct sim_trace *trace, struct sim_file *file,
			      const struct trace_writer *writer, enum status status)
{
	int fd;

	if (status != OK)
		return status;
	file_path(trace, file);
	fd = open(trace->failed, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return ERR_SYSTEM;
	if (lseek(fd, (off_t)file->bytes, SEEK_SET) == -1)
		status = ERR_SYSTEM;
	else
		status = copy_blocks(trace, fd, writer->bytes);
	close(fd);
	if (status != OK)
		return status;
	file->bytes += writer->bytes;
	trace->failed[0] = '\0';
	return OK;
}

static enum status write_anchor(const struct sim_file *file, struct trace_writer *writer,
				uint64_t ns)
{
	const struct clock_anchor anchor = { .clock_ns = sim_clock(&file->identity.clocks, ns),
					     .wall_ns = sim_wall(&file->identity.clocks, ns) };

	return trace_write_records(writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
}

static enum status write_comms(const struct sim_trace *trace, const struct sim_file *file,
			       struct trace_writer *writer)
{
	struct comm_info infos[SIM_ROLES];
	uint32_t count = 0;

	for (int role = 0; role < SIM_ROLES; role++)
		if (trace->job->members[file->identity.rank][role].comm != -1)
			infos[count++] = file->comms[role];
	return trace_write_records(writer, TRACE_COMM, infos, sizeof(infos[0]), count);
}

static enum status write_counts(const struct sim_trace *trace, const struct sim_engine *engine,
				struct sim_file *file, struct trace_writer *writer,
				enum trace_block_type type, uint64_t ns)
{
	struct trace_counts counts = { .clock_ns = sim_clock(&file->identity.clocks, ns),
				       .trace_records = file->sequence,
				       .ring_head = file->sequence };
	bool is_snapshot = sim_job_is_snapshot(trace->job);
	struct trace_comm_counts comms[SIM_ROLES];
	int rank = file->identity.rank;

	for (int role = 0; role < SIM_ROLES; role++) {
		const struct sim_stream *stream = &engine->ranks[rank].streams[role];
		struct comm_counts *own = &file->counts[role];

		if (trace->job->members[rank][role].comm == -1)
			continue;
		own->issued = stream->numbers;
		own->collectives = stream->collectives;
		own->signature = stream->signature;
		comms[counts.comms++] =
			(struct trace_comm_counts){ .id = file->comms[role].id, .counts = *own };
		/* In a snapshot what is in flight is not recorded yet. */
		if (!is_snapshot)
			continue;
		comms[counts.comms - 1].counts.recorded -= file->in_flight[role];
		counts.trace_records -= file->in_flight[role];
		counts.ring_head -= file->in_flight[role];
	}
	return trace_write_counts(writer, type, &counts, comms);
}

static int compare_pending(const void *a, const void *b)
{
	const struct sim_pending *first = a, *second = b;

	if (first->done_ns != second->done_ns)
		return first->done_ns < second->done_ns ? -1 : 1;
	if (first->op.comm != second->op.comm)
		return first->op.comm < second->op.comm ? -1 : 1;
	return first->op.number < second->op.number ? -1 : first->op.number > second->op.number;
}

static int role_of(const struct sim_file *file, uint32_t comm_id)
{
	int role = 0;

	while (file->comms[role].id != comm_id)
		role++;
	return role;
}

/* As the recorder counts when a record is finished. */
static void count_record(struct sim_file *file, struct op_record *op)
{
	int role = role_of(file, op->comm);
	struct comm_counts *counts = &file->counts[role];
	struct comm_info *info = &file->comms[role];

	op->sequence = ++file->sequence;
	counts->recorded++;
	counts->timed += op->time_source == OP_TIME_KERNEL_GPU || op->time_source == OP_TIME_PROXY;
	counts->untrusted += (op->flags & OP_STAMPS_UNTRUSTED) != 0;
	if (op->issue_ns > counts->last_issue_ns)
		counts->last_issue_ns = op->issue_ns;
	if (op->kernels_started > 0)
		info->flags |= COMM_FLAG_SEES_KERNELS;
	if (op->proxies_started > 0)
		info->flags |= COMM_FLAG_SEES_PROXIES;
	if (op->state != OP_DONE)
		return;
	if (op->done_ns > counts->last_done_ns)
		counts->last_done_ns = op->done_ns;
	if (op->number > counts->last_done_number)
		counts->last_done_number = op->number;
	if (op->time_source == OP_TIME_KERNEL_GPU) {
		int64_t offset = (int64_t)(op->gpu_stop_ns - op->done_ns);

		if (info->gpu_offset_at_ns == 0 || offset > info->gpu_offset_ns) {
			info->gpu_offset_ns = offset;
			info->gpu_offset_at_ns = op->done_ns;
		}
	}
}

static enum status write_details(struct sim_file *file, struct trace_writer *writer)
{
	enum status status = OK;

	if (file->detail_count > 0)
		status = trace_write_details(writer, file->details, file->detail_count);
	file->detail_count = 0;
	return status;
}

/* Write the oldest records, all but `keep` of them. */
static enum status write_pending(struct sim_trace *trace, struct sim_file *file,
				 struct trace_writer *writer, uint32_t keep)
{
	uint32_t count = file->pending_count > keep ? file->pending_count - keep : 0;
	enum status status = OK;
	uint32_t done = 0;

	qsort(file->pending, file->pending_count, sizeof(*file->pending), compare_pending);
	while (done < count && status == OK) {
		uint32_t some = 0;

		for (; some < TRACE_OPS_PER_BLOCK && done < count; some++, done++) {
			trace->block[some] = file->pending[done].op;
			count_record(file, &trace->block[some]);
		}
		status = trace_write_ops(writer, trace->block, some);
	}
	for (uint32_t i = count; i < file->pending_count; i++)
		file->pending[i - count] = file->pending[i];
	file->pending_count -= count;
	return status;
}

static enum status file_flush(struct sim_trace *trace, const struct sim_engine *engine,
			      struct sim_file *file, uint32_t keep)
{
	struct trace_writer writer;
	enum status status;
	uint64_t ns;

	blocks_begin(trace, &writer);
	status = write_pending(trace, file, &writer, keep);
	if (status == OK)
		status = write_details(file, &writer);
	ns = engine->ranks[file->identity.rank].host_ns;
	if (status == OK)
		status = write_anchor(file, &writer, ns);
	if (status == OK)
		status = write_counts(trace, engine, file, &writer, TRACE_COUNTS, ns);
	return blocks_end(trace, file, &writer, status);
}

/* ---- records --------------------------------------------------------------------------------- */

static enum status add_details(struct sim_trace *trace, struct sim_engine *engine,
			       struct sim_file *file, uint32_t comm_id,
			       const struct sim_outcome *outcome)
{
	struct op_detail details[SIM_DETAILS_MAX];
	int count = sim_record_details(details, trace->job, &file->identity, comm_id, outcome);

	if (file->details == NULL)
		file->details = malloc(TRACE_OPS_PER_BLOCK * sizeof(*file->details));
	if (file->details == NULL)
		return ERR_NO_SPACE;
	for (int i = 0; i < count; i++) {
		if (file->detail_count == TRACE_OPS_PER_BLOCK) {
			enum status status = file_flush(trace, engine, file, file->pending_count);

			if (status != OK)
				return status;
		}
		details[i].sequence = ++file->detail_sequence;
		file->details[file->detail_count++] = details[i];
	}
	return OK;
}

enum status sim_trace_add(struct sim_trace *trace, struct sim_engine *engine,
			  const struct sim_outcome *outcome)
{
	const struct sim_launch *launch = outcome->call->launch;
	struct sim_file *file = &trace->files[launch->rank];
	struct sim_stream *stream = &engine->ranks[launch->rank].streams[launch->role];
	struct sim_pending *pending;
	enum status status = OK;

	if (file->pending == NULL)
		file->pending = malloc(trace->pending_room * sizeof(*file->pending));
	if (file->pending == NULL)
		return ERR_NO_SPACE;
	if (file->pending_count == trace->pending_room)
		status = file_flush(trace, engine, file, trace->pending_room / 4);
	if (status != OK)
		return status;
	pending = &file->pending[file->pending_count++];
	sim_record_make(&pending->op, trace->job, &file->identity, stream,
			file->comms[launch->role].id, outcome);
	pending->done_ns = pending->op.done_ns;
	if (pending->done_ns == 0)
		pending->done_ns = sim_clock(&file->identity.clocks,
					     outcome->is_over ? outcome->end_ns : UINT64_MAX / 2);
	if (!outcome->is_over)
		file->in_flight[launch->role]++;
	if (pending->op.proxies_stopped > 0)
		status = sim_links_add(&file->links, file->comms[launch->role].id, outcome);
	if (status == OK && (trace->job->options.is_full || !outcome->is_over))
		status = add_details(trace, engine, file, file->comms[launch->role].id, outcome);
	return status;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static enum status write_head(struct sim_trace *trace, struct sim_file *file,
			      struct trace_writer *writer)
{
	struct comm_info known[SIM_ROLES];
	enum status status;
	char text[2048];
	uint32_t count = 0;

	if (!sim_identity_text(&file->identity, trace->job, text, sizeof(text)))
		return ERR_NO_SPACE;
	status = trace_write_text(writer, TRACE_PROCESS, text, strnlen(text, sizeof(text)));
	if (status == OK)
		status = write_anchor(file, writer, 0);
	if (status != OK)
		return status;
	for (int role = 0; role < SIM_ROLES; role++) {
		uint32_t id = sim_trace_comm_id(trace->job, file->identity.rank, role);

		if (id == 0)
			continue;
		sim_identity_comm(&file->identity, trace->job, role, id, &file->comms[role]);
		known[count] = file->comms[role];
		/* Before 2.27 the first operation tells who it is. */
		if (trace->job->interface < 4) {
			known[count].hash = 0;
			known[count].rank = -1;
		}
		count++;
	}
	return trace_write_records(writer, TRACE_COMM, known, sizeof(known[0]), count);
}

static enum status file_begin(struct sim_trace *trace, struct sim_file *file, int rank)
{
	struct trace_writer writer;
	enum status status;

	sim_identity_make(&file->identity, trace->job, rank);
	file_path(trace, file);
	status = trace_writer_open_at(&writer, trace->failed, 0600, 0,
				      sim_wall(&file->identity.clocks, 0));
	if (status != OK)
		return status;
	file->bytes = writer.bytes;
	trace_writer_close(&writer);
	blocks_begin(trace, &writer);
	status = write_head(trace, file, &writer);
	return blocks_end(trace, file, &writer, status);
}

enum status sim_trace_init(struct sim_trace *trace, const struct sim_job *job,
			   const char *directory)
{
	size_t world = (size_t)job->world;
	enum status status = OK;

	*trace = (struct sim_trace){ .job = job, .directory = directory, .blocks_fd = -1 };
	text_copy(trace->failed, sizeof(trace->failed), directory);
	if (mkdir(directory, 0700) == -1 && errno != EEXIST)
		return ERR_SYSTEM;
	trace->pending_room = (uint32_t)(PENDING_BYTES / sizeof(struct sim_pending) / world);
	if (trace->pending_room > 2 * TRACE_OPS_PER_BLOCK)
		trace->pending_room = 2 * TRACE_OPS_PER_BLOCK;
	if (trace->pending_room < PENDING_LEAST)
		trace->pending_room = PENDING_LEAST;
	trace->files = calloc(world, sizeof(*trace->files));
	trace->buffer = malloc(sizeof(struct trace_block) + TRACE_BLOCK_PAYLOAD_MAX);
	trace->encoder = trace_encoder_new();
	trace->block = malloc(TRACE_OPS_PER_BLOCK * sizeof(*trace->block));
	trace->blocks_fd = memfd_create("blocks", MFD_CLOEXEC);
	if (!trace->files || !trace->buffer || !trace->encoder || !trace->block)
		status = ERR_NO_SPACE;
	else if (trace->blocks_fd == -1)
		status = ERR_SYSTEM;
	for (int rank = 0; rank < job->world && status == OK; rank++)
		status = file_begin(trace, &trace->files[rank], rank);
	return status;
}

/* How the file ends: closed; as its process hangs; or cut, when it was killed. */
static enum status write_tail(struct sim_trace *trace, const struct sim_engine *engine,
			      struct sim_file *file, struct trace_writer *writer)
{
	const struct sim_rank *rank = &engine->ranks[file->identity.rank];
	uint64_t killed_ns = sim_job_killed_ns(trace->job, file->identity.rank);
	bool is_closed = rank->end == SIM_FINISHED;
	uint64_t ns = is_closed ? rank->host_ns + CLOSE_NS : engine->end_ns;
	enum status status = OK;

	if (rank->end == SIM_DEAD || (!is_closed && killed_ns < ns)) {
		/* Before 2.27 the first operation told who it is: a recorder writes that down at once. */
		if (trace->job->interface < 4)
			status = write_comms(trace, file, writer);
		if (status != OK)
			return status;
		return write_counts(trace, engine, file, writer, TRACE_COUNTS, killed_ns);
	}
	for (int role = 0; role < SIM_ROLES && is_closed; role++) {
		file->comms[role].flags |= COMM_FLAG_FINALIZED;
		file->comms[role].finalize_ns = sim_clock(&file->identity.clocks, ns - 1000000);
	}
	status = write_comms(trace, file, writer);
	if (status == OK)
		status = write_anchor(file, writer, ns);
	if (status == OK)
		status = write_counts(trace, engine, file, writer,
				      is_closed ? TRACE_CLOSE : TRACE_COUNTS, ns);
	return status;
}

static enum status file_end(struct sim_trace *trace, struct sim_engine *engine, int rank)
{
	struct sim_file *file = &trace->files[rank];
	uint64_t killed_ns = sim_job_killed_ns(trace->job, rank);
	struct trace_writer writer;
	enum status status = OK;

	/* What a killed process had in flight died with it. */
	if (engine->ranks[rank].end != SIM_FINISHED && killed_ns > engine->end_ns)
		status = sim_outcome_open_calls(engine, rank);
	if (status != OK)
		return status;
	blocks_begin(trace, &writer);
	status = write_pending(trace, file, &writer, 0);
	if (status == OK)
		status = write_details(file, &writer);
	if (status == OK)
		status = sim_links_write(&file->links, &writer);
	if (status == OK)
		status = write_tail(trace, engine, file, &writer);
	return blocks_end(trace, file, &writer, status);
}

enum status sim_trace_finish(struct sim_trace *trace, struct sim_engine *engine)
{
	enum status status = OK;

	for (int rank = 0; rank < trace->job->world && status == OK; rank++)
		status = file_end(trace, engine, rank);
	return status;
}

void sim_trace_release(struct sim_trace *trace)
{
	for (int rank = 0; trace->files && rank < trace->job->world; rank++) {
		free(trace->files[rank].pending);
		free(trace->files[rank].details);
		sim_links_release(&trace->files[rank].links);
	}
	free(trace->files);
	free(trace->buffer);
	free(trace->encoder);
	free(trace->block);
	if (trace->blocks_fd != -1)
		close(trace->blocks_fd);
	*trace = (struct sim_trace){ .blocks_fd = -1 };
}
