#include "op/op_check.h"

#include <stdbool.h>

/* A number of a table, or one that this process interned. */
static bool is_name(uint8_t number, unsigned int table_size)
{
	return number < table_size ||
	       (number >= OP_NAME_INTERNED && number < OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX);
}

const char *op_check_live(const struct op_record *op)
{
	if (op->comm == 0)
		return "it belongs to no communicator";
	if (op->number == 0)
		return "it has no number";
	if (!is_name(op->function, OP_FUNCTIONS))
		return "there is no such function";
	if (!is_name(op->datatype, OP_DATATYPES))
		return "there is no such datatype";
	if (!is_name(op->algorithm, OP_ALGORITHMS))
		return "there is no such algorithm";
	if (!is_name(op->protocol, OP_PROTOCOLS))
		return "there is no such protocol";
	if (op->state == OP_STATE_NONE || op->state >= OP_STATES)
		return "there is no such state";
	if (op->time_source >= OP_TIME_SOURCES)
		return "there is no such source of time";
	return NULL;
}

/* The top bit of a sequence marks a ring slot that is being written: no record has it. */
static bool is_sequence(uint64_t sequence)
{
	return sequence != 0 && sequence >> 63 == 0;
}

const char *op_check(const struct op_record *op)
{
	if (!is_sequence(op->sequence))
		return "its sequence is none";
	return op_check_live(op);
}

const char *op_check_detail(const struct op_detail *detail)
{
	if (!is_sequence(detail->sequence))
		return "its sequence is none";
	if (detail->kind < OP_DETAIL_KERNEL || detail->kind > OP_DETAIL_STEP)
		return "there is no such kind of detail";
	return NULL;
}

const char *op_check_comm(const struct comm_info *comm)
{
	if (comm->id == 0)
		return "it has no number";
	if (comm->nranks < 0 || comm->nnodes < 0)
		return "its size is negative";
	return NULL;
}

bool op_check_time(struct op_record *op)
{
	bool fits = true;

	switch (op->time_source) {
	case OP_TIME_KERNEL_GPU:
		fits = op->gpu_start_ns != 0 && op->gpu_stop_ns >= op->gpu_start_ns;
		break;
	case OP_TIME_PROXY:
		fits = op->active_ns != 0 && op->done_ns >= op->active_ns;
		break;
	case OP_TIME_HOST:
		fits = op->issue_ns != 0 && op->done_ns >= op->issue_ns;
		break;
	default:
		break;
	}
	if (!fits)
		op->time_source = OP_TIME_NONE;
	return fits;
}
