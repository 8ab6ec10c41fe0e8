/* Events of CoMMA's latency file become records. */
#include "foreign/comma.h"

#define NUMBER_MAX (UINT64_C(1) << 40)

static void set_times(struct op_record *op, const struct comma_event *event)
{
	if (event->start_ns != COMMA_UNKNOWN)
		op->issue_ns = op->task_ns = event->start_ns;
	op->state = OP_LAUNCHED;
	if (event->child_start_ns == COMMA_UNKNOWN)
		return;
	op->state = OP_RUNNING;
	op->active_ns = event->child_start_ns;
	if (event->is_reclaimed || event->child_time_ns == COMMA_UNKNOWN ||
	    event->child_time_ns > UINT64_MAX - event->child_start_ns)
		return;
	op->state = OP_DONE;
	op->done_ns = event->child_start_ns + event->child_time_ns;
	if (event->child_time_ns > 0 && op->active_ns > 0)
		op->time_source = OP_TIME_PROXY;
}

static void give_op(struct foreign_reading *reading, const struct comma_event *event,
		    uint32_t number)
{
	struct foreign_comm *comm = &reading->log->comms[number];
	struct op_record op = {
		.function = event->function,
		.algorithm = event->algorithm,
		.protocol = event->protocol,
		.bytes = foreign_message_bytes(event->function, event->bytes, 0),
		.root = OP_NOBODY,
		.peer = event->peer,
		.channels = event->channels > UINT8_MAX ? UINT8_MAX : (uint8_t)event->channels,
	};

	if (event->category == COMMA_CATEGORY_COLL && event->number != COMMA_UNKNOWN) {
		op.nccl_sequence = event->number;
		op.match = foreign_count_collective(comm, event->function, event->number);
	}
	set_times(&op, event);
	comm->info.flags |= op.active_ns != 0 ? COMM_FLAG_SEES_PROXIES : 0;
	foreign_give_op(reading, number, &op);
	foreign_give_details(reading, comm->process, op.comm, op.number);
}

static bool refuse(struct foreign_reading *reading, enum status status)
{
	reading->problem = "too many communicators in one file";
	if (status == ERR_NO_SPACE)
		reading->status = status;
	return false;
}

/* A file is one process; its pid shows where transfers do. */
static enum status find_process(struct foreign_log *log, const struct comma_event *event)
{
	uint32_t process;
	enum status status =
		log->process_count > 0 ? OK : foreign_process_of(log, "", -1, &process);

	if (status == OK && log->processes[0].pid < 0 && event->pid > 0 &&
	    event->category != COMMA_CATEGORY_PROXY)
		log->processes[0].pid = event->pid;
	return status;
}

static bool take_event(struct foreign_reading *reading, const struct comma_event *event)
{
	const struct comm_info info = { .hash = event->hash, .rank = event->rank };
	struct foreign_log *log = reading->log;
	enum status status;
	uint32_t comm;

	if (event->category == COMMA_CATEGORY_NONE || event->category == COMMA_CATEGORY_OTHER) {
		log->ignored++;
		return true;
	}
	if (event->number != COMMA_UNKNOWN && event->number > NUMBER_MAX) {
		reading->problem = "a count that cannot be";
		return false;
	}
	status = find_process(log, event);
	if (status != OK)
		return refuse(reading, status);
	if (event->category == COMMA_CATEGORY_PROXY) {
		/* A transfer for another process, or for nobody knows whom. */
		foreign_give_details(reading, 0, 0, 0);
		return true;
	}
	status = foreign_comm_of(log, 0, &info, &comm);
	if (status != OK)
		return refuse(reading, status);
	give_op(reading, event, comm);
	return true;
}

static bool take_line(struct foreign_reading *reading)
{
	struct comma_event event;

	return comma_parse(reading, &event) && take_event(reading, &event);
}

void foreign_read_comma(struct foreign_reading *reading, struct foreign_lines *lines)
{
	enum status status = OK;

	/* Which steps are kept shows only when they are there. */
	reading->details.is_wanted = true;
	while (reading->status == OK && !reading->is_over &&
	       (status = foreign_lines_next(lines, &reading->line)) == OK) {
		reading->log->lines++;
		if (reading->line.length == 0 && !reading->line.is_too_long)
			continue;
		reading->problem = "the line is too long";
		if (reading->line.is_too_long || !take_line(reading))
			foreign_damage_line(reading);
	}
	if (status == ERR_NO_SPACE)
		reading->status = status;
}
