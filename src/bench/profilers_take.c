/* The records of a profiler, brought to the ranks, functions and sizes of the job that they are about. */
#include <stdlib.h>
#include <string.h>

#include "bench/profilers_parts.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "recording/recording.h"

enum { RECORDS_MAX = 1 << 26 };

struct taking {
	struct profilers_ledger *ledger;
	struct profilers_list *records;
	const struct recording_process *process;
	int32_t rank;
	enum status status;
};

int32_t profilers_rank_of_pid(const struct bench_run *bench, const char *host, int64_t pid)
{
	int32_t found = -1, count = 0;

	for (int32_t rank = 0; rank < bench->nranks; rank++) {
		const struct bench_rank *place = &bench->ranks[rank];
		bool is_elsewhere = host && host[0] != '\0' && place->host[0] != '\0' &&
				    strcmp(host, place->host) != 0;

		if (place->pid != pid || pid <= 0 || (is_elsewhere && bench->nodes > 1))
			continue;
		found = rank;
		count++;
	}
	return count == 1 ? found : -1;
}

static int32_t rank_of_process(const struct bench_run *bench,
			       const struct recording_process *process)
{
	int32_t rank = profilers_rank_of_pid(bench, process->host, process->pid);

	if (rank < 0 && process->rank >= 0 && process->rank < bench->nranks)
		rank = (int32_t)process->rank;
	return rank;
}

/* The communicator has all ranks of the job, in their order. */
static int32_t rank_of_comm(const struct taking *taking, uint32_t id)
{
	const struct recording_comm *comm = recording_comm(taking->process, id);
	int32_t nranks = taking->ledger->bench->nranks;

	if (comm == NULL || (comm->info.nranks != 0 && comm->info.nranks != nranks))
		return -1;
	return comm->info.rank >= 0 && comm->info.rank < nranks ? comm->info.rank : -1;
}

static bool take_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct taking *taking = context;
	struct profilers_record *record;
	struct profilers_tally *tally;
	uint64_t issue_ns;
	long key;

	(void)place;
	if (op->state == OP_CAPTURED)
		return true;
	key = profilers_ledger_find(taking->ledger, op->function, op->bytes);
	record = profilers_list_add(taking->records, RECORDS_MAX);
	if (key < 0 || record == NULL) {
		taking->status = ERR_NO_SPACE;
		return false;
	}
	record->rank = taking->rank >= 0 ? taking->rank : rank_of_comm(taking, op->comm);
	record->key = (uint32_t)key;
	record->comm = op->comm;
	record->number = op->number;
	record->duration_ns = op_duration_ns(op);
	record->source = record->duration_ns ? op->time_source : OP_TIME_NONE;
	issue_ns = op->issue_ns ? op->issue_ns : op->task_ns; /* both come from within the call */
	if (issue_ns == 0 || !recording_wall_ns(taking->process, issue_ns, &record->wall_ns))
		record->wall_ns = 0;
	tally = profilers_ledger_tally(taking->ledger, record->rank, record->key);
	tally->recorded++;
	tally->untimed += record->source == OP_TIME_NONE;
	return true;
}

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_place(const void *left, const void *right)
{
	const struct profilers_record *a = left, *b = right;
	int sign = order((uint64_t)(a->rank + 1), (uint64_t)(b->rank + 1));

	sign = sign ? sign : order(a->key, b->key);
	sign = sign ? sign : order(a->comm, b->comm);
	return sign ? sign : order(a->number, b->number);
}

enum status profilers_take_records(struct profilers_ledger *ledger,
				   const struct recording *recording,
				   struct profilers_list *records)
{
	struct taking taking = { .ledger = ledger, .records = records };
	enum status status;

	for (size_t i = 0; i < recording->count; i++) {
		taking.process = recording->processes[i];
		taking.rank = rank_of_process(ledger->bench, taking.process);
		status = recording_each_op(taking.process, take_op, &taking, NULL);
		if (status == OK)
			status = taking.status;
		if (status != OK)
			return status;
	}
	if (records->count > 1)
		qsort(records->items, records->count, records->size, by_place);
	return OK;
}

bool profilers_take_lost(const struct recording *recording, enum profilers_kind kind,
			 uint64_t *lost)
{
	bool tells = false;

	*lost = 0;
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		/* Gaps in NCCL's numbering are the reader's finding, not the plugin's account. */
		if (kind == PROFILERS_INSPECTOR && process->foreign) {
			*lost += process->lost[LOST_RING_OVERRUN];
			tells = tells || process->lost[LOST_RING_OVERRUN] > 0;
		} else if (kind == PROFILERS_RINGSIDE && process->has_counts) {
			*lost += op_lost_operations(process->lost);
			tells = true;
		}
	}
	return tells;
}
