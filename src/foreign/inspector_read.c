/*
 * From lines of NCCL Inspector to records.
 *
 * Up to v4.2 every line says whose it is. From v4.3 on a marker line (dump_stats) says it once for all
 * lines that follow, and how many these are. Nothing can be between a marker and its lines, so a
 * damaged line, which may have been a marker, ends what the marker says: lines behind it belong to
 * nobody until the next marker comes.
 */
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "foreign/inspector.h"

/* No communicator does more: a greater number is damage. */
#define NUMBER_MAX (UINT64_C(1) << 40)

struct inspector {
	struct foreign_reading *reading;
	struct inspector_line line;
	struct inspector_kept kept; /* of comm, and its process */
	uint32_t comm;		    /* of the line before, with its process */
	/* What the last marker says. */
	bool has_marker;
	bool is_counted; /* it says how many lines follow */
	uint32_t marker_comm;
	uint64_t marker_ns;
	uint64_t left[INSPECTOR_BODIES];
};

/* ---- whose line is it? ----------------------------------------------------------------------- */

static void drop_marker(struct inspector *inspector)
{
	inspector->has_marker = false;
	memset(inspector->left, 0, sizeof(inspector->left));
}

static uint64_t left_of_marker(const struct inspector *inspector)
{
	uint64_t left = 0;

	for (int i = 0; i < INSPECTOR_BODIES && inspector->is_counted; i++)
		left += inspector->left[i];
	return left;
}

/* Lines of the marker that never came. */
static void note_missing(struct inspector *inspector, bool is_end)
{
	uint64_t left = left_of_marker(inspector);

	if (!inspector->has_marker || left == 0)
		return;
	foreign_damage_note(inspector->reading,
			    &(struct foreign_damage){
				    .line = inspector->reading->line.number,
				    .offset = inspector->reading->line.offset,
				    .missing = left,
				    .is_cut = is_end,
				    .what = is_end ? "the log ends within a dump"
						   : "the dump before this line is not whole",
			    });
}

static bool refuse(struct inspector *inspector, const char *problem)
{
	inspector->reading->problem = problem;
	return false;
}

static bool refuse_status(struct inspector *inspector, enum status status, const char *problem)
{
	if (status == ERR_NO_SPACE)
		inspector->reading->status = status;
	return refuse(inspector, problem);
}

/* The process and the communicator that header and metadata name. */
static bool find_comm(struct inspector *inspector)
{
	struct inspector_line *line = &inspector->line;
	struct foreign_log *log = inspector->reading->log;
	enum status status;
	uint32_t process;

	if (line->is_same_metadata) {
		process = log->comms[inspector->comm].process;
		if (line->is_same_header)
			return true;
	} else {
		status = foreign_process_of(log, line->metadata.host, line->metadata.pid, &process);
		if (status != OK)
			return refuse_status(inspector, status, "too many processes in one file");
	}
	if (line->is_same_header) {
		line->comm = log->comms[inspector->comm].info;
		line->comm.flags &= COMM_FLAG_NAME_CUT;
		line->comm.gpu_offset_at_ns = 0;
	}
	status = foreign_comm_of(log, process, &line->comm, &inspector->comm);
	if (status != OK)
		return refuse_status(inspector, status, "too many communicators in one file");
	return true;
}

static void note_version(struct inspector *inspector)
{
	struct foreign_log *log = inspector->reading->log;
	struct foreign_process *process = &log->processes[log->comms[inspector->comm].process];
	const char *version = inspector->line.metadata.version;

	if (version[0] != '\0' && strcmp(process->version, version) != 0)
		text_copy(process->version, sizeof(process->version), version);
}

/* One of the marker's lines: is there one left of this kind? */
static bool take_from_marker(struct inspector *inspector)
{
	uint64_t *left = &inspector->left[inspector->line.body];

	if (!inspector->has_marker)
		return refuse(inspector, "it belongs to a marker line that is missing");
	if (!inspector->is_counted || *left == INSPECTOR_UNKNOWN)
		return true;
	if (*left == 0)
		return refuse(inspector, "its marker line told of fewer lines");
	(*left)--;
	return true;
}

/* The line says itself whose it is. Those of v4.1 and v4.2 are counted by a marker all the same. */
static void check_marker(struct inspector *inspector)
{
	uint64_t *left = &inspector->left[inspector->line.body];

	if (!inspector->has_marker || inspector->line.body == INSPECTOR_NO_BODY)
		return;
	if (inspector->marker_comm != inspector->comm) {
		note_missing(inspector, false);
		drop_marker(inspector);
	} else if (*left != INSPECTOR_UNKNOWN && *left > 0) {
		(*left)--;
	}
}

/* Sets inspector->comm; *dump_ns is when the line was written, 0 unknown. */
static bool find_owner(struct inspector *inspector, uint64_t *dump_ns)
{
	const struct inspector_line *line = &inspector->line;
	struct foreign_log *log = inspector->reading->log;

	if (line->has_header && line->has_metadata) {
		if (!find_comm(inspector))
			return false;
		if (!line->is_same_metadata)
			note_version(inspector);
		*dump_ns = line->metadata.dump_ns;
		check_marker(inspector);
		return true;
	}
	if (line->has_header || line->has_metadata)
		return refuse(inspector, "header or metadata is missing");
	if (!take_from_marker(inspector)) {
		log->orphans++;
		return false;
	}
	inspector->comm = inspector->marker_comm;
	inspector_forget(&inspector->kept);
	*dump_ns = inspector->marker_ns;
	return true;
}

/* ---- records --------------------------------------------------------------------------------- */

/*
 * Put what lasted time_ns onto the recorder's clock, which is the wall clock here. Verbose logs tell
 * when the last channel's stop was seen; else the operation was over when it was written.
 */
static void set_times(struct op_record *op, const struct inspector_perf *perf, uint64_t dump_ns)
{
	uint64_t stop_ns = perf->last_kernel_ns != 0 ? perf->last_kernel_ns : perf->last_stop_ns;

	op->task_ns = perf->start_ns;
	op->active_ns = perf->first_kernel_ns;
	op->done_ns = perf->last_stop_ns != 0 ? perf->last_stop_ns : dump_ns;
	if (stop_ns == 0)
		stop_ns = op->done_ns;
	/* Less than a microsecond is written as 0: no duration. */
	if (perf->time_ns == INSPECTOR_UNKNOWN || perf->time_ns == 0 ||
	    perf->time_ns >= op->done_ns || perf->time_ns >= stop_ns)
		return;
	switch (perf->source) {
	case INSPECTOR_KERNEL_GPU:
		op->time_source = OP_TIME_KERNEL_GPU;
		op->gpu_start_ns = stop_ns - perf->time_ns;
		op->gpu_stop_ns = stop_ns;
		break;
	case INSPECTOR_KERNEL_CPU:
		op->time_source = OP_TIME_PROXY;
		op->active_ns = op->done_ns - perf->time_ns;
		break;
	case INSPECTOR_COLLECTIVE_CPU:
		op->time_source = OP_TIME_HOST;
		op->issue_ns = op->done_ns - perf->time_ns;
		break;
	default:
		break;
	}
}

static uint8_t small(uint32_t number)
{
	return number > UINT8_MAX ? UINT8_MAX : (uint8_t)number;
}

static void count_number(const struct inspector_line *line, struct foreign_comm *comm,
			 struct op_record *op)
{
	const struct inspector_perf *perf = &line->perf;

	if (perf->number == INSPECTOR_UNKNOWN)
		return;
	op->nccl_sequence = perf->number;
	if (line->body == INSPECTOR_COLL) {
		op->match = foreign_count_collective(comm, perf->function, perf->number);
		return;
	}
	if (perf->number > comm->counted_p2p)
		comm->counted_p2p = perf->number;
	comm->found_p2p++;
}

static void give_op(struct inspector *inspector, uint64_t dump_ns)
{
	struct foreign_log *log = inspector->reading->log;
	struct foreign_comm *comm = &log->comms[inspector->comm];
	const struct inspector_perf *perf = &inspector->line.perf;
	struct op_record op = {
		.function = perf->function,
		.algorithm = perf->algorithm,
		.protocol = perf->protocol,
		.bytes = foreign_message_bytes(perf->function, perf->bytes, comm->info.nranks),
		.root = OP_NOBODY,
		.peer = perf->peer,
		.state = OP_DONE,
		.channels = small(perf->kernels_started),
		.kernels_started = small(perf->kernels_started),
		.kernels_stopped = small(perf->kernels_stopped),
	};

	count_number(&inspector->line, comm, &op);
	set_times(&op, perf, dump_ns);
	log->processes[comm->process].coarse += perf->last_stop_ns == 0;
	foreign_give_op(inspector->reading, inspector->comm, &op);
	foreign_give_details(inspector->reading, comm->process, op.comm, op.number);
}

static void greatest(uint64_t *to, uint64_t value)
{
	if (value > *to)
		*to = value;
}

/* Its counts are totals, so the last marker of a communicator has them all. */
static void take_marker(struct inspector *inspector, uint64_t dump_ns)
{
	const struct inspector_stats *stats = &inspector->line.stats;
	struct foreign_log *log = inspector->reading->log;
	struct foreign_comm *comm = &log->comms[inspector->comm];

	note_missing(inspector, false);
	inspector->has_marker = true;
	inspector->is_counted = true;
	inspector->marker_comm = inspector->comm;
	inspector->marker_ns = dump_ns;
	memcpy(inspector->left, stats->records, sizeof(inspector->left));
	for (int i = 0; i < INSPECTOR_BODIES; i++)
		if (inspector->left[i] == INSPECTOR_UNKNOWN)
			inspector->is_counted = false;
	greatest(&comm->dropped, stats->dropped_colls + stats->dropped_p2ps);
	greatest(&comm->dropped_details, stats->dropped_proxies + stats->dropped_proxy_ops);
	greatest(&log->processes[comm->process].foreign_ops, stats->foreign_ops);
}

static bool is_absurd(const struct inspector_line *line)
{
	const struct inspector_stats *stats = &line->stats;

	if (line->has_stats &&
	    (stats->dropped_colls > NUMBER_MAX || stats->dropped_p2ps > NUMBER_MAX ||
	     stats->dropped_proxies > NUMBER_MAX || stats->dropped_proxy_ops > NUMBER_MAX))
		return true;
	for (int i = 0; i < INSPECTOR_BODIES && line->has_stats; i++)
		if (stats->records[i] > NUMBER_MAX && stats->records[i] != INSPECTOR_UNKNOWN)
			return true;
	return (line->body == INSPECTOR_COLL || line->body == INSPECTOR_P2P) &&
	       line->perf.number != INSPECTOR_UNKNOWN && line->perf.number > NUMBER_MAX;
}

static bool take_line(struct inspector *inspector)
{
	const struct inspector_line *line = &inspector->line;
	const struct foreign_comm *comm;
	uint64_t dump_ns = 0;

	if (!inspector_parse(inspector->reading, &inspector->kept, &inspector->line))
		return false;
	if (is_absurd(line))
		return refuse(inspector, "a count that cannot be");
	if (line->body == INSPECTOR_NO_BODY && !line->has_stats) {
		/* It was parsed and is not kept: what the cache has of it is of no use. */
		inspector_forget(&inspector->kept);
		inspector->reading->log->ignored++;
		return true;
	}
	if (!find_owner(inspector, &dump_ns))
		return false;
	if (line->has_stats)
		take_marker(inspector, dump_ns);
	comm = &inspector->reading->log->comms[inspector->comm];
	if (line->body == INSPECTOR_PROXY)
		/* Its parent is told by a number that several operations may have. */
		foreign_give_details(inspector->reading, comm->process, comm->info.id, 0);
	else if (line->body != INSPECTOR_NO_BODY)
		give_op(inspector, dump_ns);
	return true;
}

static bool is_blank(const struct foreign_line *line)
{
	for (size_t i = 0; i < line->length; i++)
		if (line->text[i] != ' ' && line->text[i] != '\t' && line->text[i] != '\r')
			return false;
	return !line->is_too_long;
}

void foreign_read_inspector(struct foreign_reading *reading, struct foreign_lines *lines)
{
	struct inspector inspector = { .reading = reading };
	enum status status = OK;

	while (reading->status == OK && !reading->is_over &&
	       (status = foreign_lines_next(lines, &reading->line)) == OK) {
		reading->log->lines++;
		if (is_blank(&reading->line))
			continue;
		reading->problem = "the line is too long";
		if (reading->line.is_too_long || !take_line(&inspector)) {
			foreign_damage_line(reading);
			inspector_forget(&inspector.kept);
			drop_marker(&inspector);
		}
	}
	if (status == ERR_NO_SPACE)
		reading->status = status;
	if (reading->status == OK && !reading->is_over)
		note_missing(&inspector, true);
}
