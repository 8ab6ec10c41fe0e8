#include <stdlib.h>

#include "recording/recording_flights.h"

int recording_compare_proxies(const void *one, const void *other)
{
	const struct region_proxy *a = &((const struct recording_proxy *)one)->proxy;
	const struct region_proxy *b = &((const struct recording_proxy *)other)->proxy;

	if (a->channel != b->channel)
		return a->channel < b->channel ? -1 : 1;
	if (a->peer != b->peer)
		return a->peer < b->peer ? -1 : 1;
	return (int)(b->flags & PROXY_IS_SEND) - (int)(a->flags & PROXY_IS_SEND);
}

static int compare_flights(const void *one, const void *other)
{
	const struct op_record *a = &((const struct recording_flight *)one)->op;
	const struct op_record *b = &((const struct recording_flight *)other)->op;

	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (int)a->state - (int)b->state;
}

void recording_flights_sort(struct recording_process *process)
{
	for (size_t i = 0; i < process->flight_count; i++)
		if (process->flights[i].proxy_count > 1)
			qsort(process->flights[i].proxies, process->flights[i].proxy_count,
			      sizeof(struct recording_proxy), recording_compare_proxies);
	if (process->proxy_count > 1)
		qsort(process->proxies, process->proxy_count, sizeof(*process->proxies),
		      recording_compare_proxies);
	if (process->flight_count > 1)
		qsort(process->flights, process->flight_count, sizeof(*process->flights),
		      compare_flights);
}

void recording_flights_unique(struct recording_process *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->flight_count; i++) {
		const struct op_record *op = &process->flights[i].op, *next = op;

		if (i + 1 < process->flight_count)
			next = &process->flights[i + 1].op;
		/* The one that is further on is behind the other. */
		if (next == op || next->comm != op->comm || next->number != op->number)
			process->flights[kept++] = process->flights[i];
	}
	process->flight_count = kept;
}

struct recording_flight *recording_flights_at(const struct recording_process *process,
					      uint32_t comm, uint64_t number)
{
	size_t from = 0, to = process->flight_count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct op_record *op = &process->flights[middle].op;

		if (op->comm < comm || (op->comm == comm && op->number < number))
			from = middle + 1;
		else
			to = middle;
	}
	if (from < process->flight_count && process->flights[from].op.comm == comm &&
	    process->flights[from].op.number == number)
		return &process->flights[from];
	return NULL;
}
