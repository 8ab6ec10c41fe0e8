#include "programs/cli/ps_list.h"

#include <stdlib.h>

#include "programs/cli/cli_memory.h"

static void add_entry(struct ps_list *list, const struct ps_entry *entry)
{
	/* Doubling at each power of two. */
	if ((list->count & (list->count - 1)) == 0)
		list->entries = cli_realloc(list->entries, (list->count ? list->count * 2 : 1) *
								   sizeof(*list->entries));
	list->entries[list->count++] = *entry;
}

static void add_flights(struct ps_list *list, struct ps_entry *entry, bool has_unseen)
{
	const struct recording_process *process = entry->process;
	uint8_t *kinds = cli_realloc(NULL, process->flight_count + 1);

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
		list->unseen += entry->kind == FLIGHT_UNSEEN;
		if (entry->kind == FLIGHT_OPEN || (entry->kind == FLIGHT_UNSEEN && has_unseen))
			add_entry(list, entry);
	}
	free(kinds);
}

static void add_process(struct ps_list *list, const struct recording_process *process,
			bool has_unseen)
{
	struct ps_entry entry = { .process = process };

	entry.is_live = process->life != RECORDING_ENDED && process->life != RECORDING_KILLED &&
			recording_now(process, &entry.now_ns);
	if (!entry.is_live)
		entry.now_ns = flight_last_ns(process);
	if (process->proxy_count > 0) {
		list->carriers = cli_realloc(list->carriers,
					     (list->carrier_count + 1) * sizeof(*list->carriers));
		list->carriers[list->carrier_count++] =
			(struct ps_carrier){ process, entry.now_ns };
	}
	add_flights(list, &entry, has_unseen);
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
		bool is_dead =
			process->life == RECORDING_ENDED || process->life == RECORDING_KILLED;

		if (is_dead && !has_dead) {
			list->dead++;
			continue;
		}
		list->processes++;
		add_process(list, process, has_unseen);
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
