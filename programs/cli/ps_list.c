#include "programs/cli/ps_list.h"

#include <stdlib.h>

#include "common/op.h"
#include "programs/cli/cli_memory.h"

static void add_entry(struct ps_list *list, const struct ps_entry *entry)
{
	/* Doubling at each power of two. */
	if ((list->count & (list->count - 1)) == 0)
		list->entries = cli_realloc(list->entries, (list->count ? list->count * 2 : 1) *
								   sizeof(*list->entries));
	list->entries[list->count++] = *entry;
}

static bool is_dead(const struct recording_process *process)
{
	return process->life == RECORDING_ENDED || process->life == RECORDING_KILLED;
}

static uint64_t last_call_ns(const struct recording_process *process)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < process->comm_count; i++)
		if (process->comms[i].counts.last_issue_ns > last_ns)
			last_ns = process->comms[i].counts.last_issue_ns;
	return last_ns;
}

/*
 * Is this the last call on its communicator, and does the process call nothing any more? A communicator that the
 * process left behind while it went on elsewhere (one for start-up, say) is not what it hangs in.
 */
static bool is_last_call(const struct ps_entry *entry, size_t i, uint64_t last_ns)
{
	const struct recording_process *process = entry->process;
	const struct recording_flight *flight = &process->flights[i];
	const struct recording_comm *comm = recording_comm(process, flight->op.comm);

	if (comm == NULL || comm->info.flags & COMM_FLAG_FINALIZED)
		return false;
	return (i + 1 == process->flight_count || flight[1].op.comm != flight->op.comm) &&
	       last_ns != 0 && entry->now_ns >= last_ns + PS_QUIET_NS &&
	       flight_since_ns(flight) + PS_QUIET_NS >= last_ns;
}

/* Ranks that are read here and have not called this collective: then it is not over, whatever is shown of it. */
static uint32_t count_absent(const struct recording *recording, const struct ps_entry *entry)
{
	const struct op_record *op = &entry->flight->op;
	uint32_t absent = 0;

	if (!op_is_collective(op->function) || op->match == 0 || op->flags & OP_FLAG_REPLAY)
		return 0;
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];

		for (size_t c = 0; c < process->comm_count && !is_dead(process); c++) {
			const struct recording_comm *comm = &process->comms[c];

			absent += comm->info.hash == entry->hash && comm->has_counts &&
				  !(comm->info.flags & COMM_FLAG_FINALIZED) && !comm->is_unplaced &&
				  comm->counts.collectives < op->match;
		}
	}
	return absent;
}

static void add_flights(struct ps_list *list, const struct recording *recording,
			struct ps_entry *entry, bool has_unseen)
{
	const struct recording_process *process = entry->process;
	uint8_t *kinds = cli_realloc(NULL, process->flight_count + 1);
	uint64_t last_ns = last_call_ns(process);

	flight_kinds(process, kinds);
	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];
		const struct recording_comm *comm = recording_comm(process, flight->op.comm);
		uint64_t since_ns = flight_since_ns(flight);

		entry->hash = comm ? comm->info.hash : 0;
		entry->rank = comm ? comm->info.rank : -1;
		entry->flight = flight;
		entry->kind = kinds[i];
		entry->age_ns = entry->now_ns > since_ns ? entry->now_ns - since_ns : 0;
		entry->is_last_call =
			entry->kind == FLIGHT_UNSEEN && is_last_call(entry, i, last_ns);
		entry->absent = entry->is_last_call ? count_absent(recording, entry) : 0;
		list->unseen += entry->kind == FLIGHT_UNSEEN;
		if (entry->kind == FLIGHT_OPEN || entry->is_last_call ||
		    (entry->kind == FLIGHT_UNSEEN && has_unseen))
			add_entry(list, entry);
		else
			list->unlisted += entry->kind == FLIGHT_UNSEEN;
	}
	free(kinds);
}

static void add_process(struct ps_list *list, const struct recording *recording,
			const struct recording_process *process, bool has_unseen)
{
	struct ps_entry entry = { .process = process };

	entry.is_live = !is_dead(process) && recording_now(process, &entry.now_ns);
	if (!entry.is_live)
		entry.now_ns = flight_last_ns(process);
	if (process->proxy_count > 0) {
		list->carriers = cli_realloc(list->carriers,
					     (list->carrier_count + 1) * sizeof(*list->carriers));
		list->carriers[list->carrier_count++] =
			(struct ps_carrier){ process, entry.now_ns };
	}
	add_flights(list, recording, &entry, has_unseen);
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_operation(const struct ps_entry *a, const struct ps_entry *b)
{
	int order = compare(a->hash, b->hash);

	return order ? order : compare(a->flight->op.number, b->flight->op.number);
}

static int together(const void *left, const void *right)
{
	const struct ps_entry *a = left, *b = right;
	int order = by_operation(a, b);

	return order ? order : compare(b->age_ns, a->age_ns);
}

static int oldest_first(const void *left, const void *right)
{
	const struct ps_entry *a = left, *b = right;
	int order = compare(b->group_age_ns, a->group_age_ns);

	if (order == 0)
		order = by_operation(a, b);
	return order ? order : compare((uint64_t)(a->rank + 1), (uint64_t)(b->rank + 1));
}

static void sort(struct ps_list *list)
{
	if (list->count == 0)
		return;
	qsort(list->entries, list->count, sizeof(*list->entries), together);
	for (size_t i = 0; i < list->count; i++) {
		struct ps_entry *entry = &list->entries[i];
		bool is_first = i == 0 || by_operation(entry - 1, entry) != 0;

		entry->group_age_ns = is_first ? entry->age_ns : entry[-1].group_age_ns;
	}
	qsort(list->entries, list->count, sizeof(*list->entries), oldest_first);
}

void ps_list_make(struct ps_list *list, const struct recording *recording, bool has_unseen,
		  bool has_dead)
{
	*list = (struct ps_list){ .entries = NULL };
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];

		if (is_dead(process) && !has_dead) {
			list->dead++;
			continue;
		}
		list->processes++;
		add_process(list, recording, process, has_unseen);
	}
	sort(list);
}

void ps_list_release(struct ps_list *list)
{
	free(list->entries);
	list->entries = NULL;
	free(list->carriers);
	list->carriers = NULL;
}
