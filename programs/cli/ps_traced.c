#include "programs/cli/ps_traced.h"

#include <stdlib.h>
#include <string.h>

#include "programs/cli/cli_memory.h"

/* More cannot be in flight: a recorder has no more slots either. */
enum { TRACED_MAX = 4096 };

struct traced {
	struct recording_flight *flights;
	size_t count;
};

static void drop(struct traced *traced, size_t index)
{
	traced->count--;
	memmove(&traced->flights[index], &traced->flights[index + 1],
		(traced->count - index) * sizeof(*traced->flights));
}

/* Operations of a communicator run in order: what came before one that is done is over. */
static void drop_before(struct traced *traced, const struct op_record *done)
{
	for (size_t i = traced->count; i-- > 0;) {
		const struct op_record *op = &traced->flights[i].op;

		if (op->comm == done->comm && op->number < done->number && op->state != OP_RUNNING)
			drop(traced, i);
	}
}

static bool take(const struct op_record *op, enum recording_place place, void *context)
{
	struct traced *traced = context;

	(void)place;
	if (op->state == OP_DONE)
		drop_before(traced, op);
	if (op->state != OP_ISSUED && op->state != OP_LAUNCHED && op->state != OP_RUNNING)
		return true;
	if (traced->count == TRACED_MAX)
		drop(traced, 0);
	traced->flights[traced->count++] = (struct recording_flight){ .op = *op };
	return true;
}

void ps_traced(const struct recording_process *process, struct recording_flight **flights,
	       size_t *count)
{
	struct traced traced = { NULL, 0 };

	*flights = NULL;
	*count = 0;
	if (process->region || process->file_count == 0 || process->life == RECORDING_ENDED)
		return;
	traced.flights = cli_realloc(NULL, TRACED_MAX * sizeof(*traced.flights));
	if (recording_each_op(process, take, &traced, NULL) == ERR_NO_SPACE)
		cli_no_memory();
	if (traced.count == 0) {
		free(traced.flights);
		return;
	}
	*flights = cli_realloc(traced.flights, traced.count * sizeof(*traced.flights));
	*count = traced.count;
}
