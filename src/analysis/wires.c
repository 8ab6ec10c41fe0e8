/* The network by links: wires.h. */
#include "analysis/wires.h"

#include <stdlib.h>

#include "analysis/stats.h"
#include "common/attributes.h"

/* A link with less than this part of the bytes of the largest one may be a barrier's: latency is all it shows. */
enum { MAIN_PART = 100 };

double wire_rate(const struct wire_row *row)
{
	return row->wire_ns > 0 ? (double)row->bytes * 1e9 / (double)row->wire_ns : 0;
}

static int by_bytes(const void *one, const void *other)
{
	const struct wire_row *a = one, *b = other;

	return ORDER(b->bytes, a->bytes) ?: ORDER(a->from, b->from) ?: ORDER(a->peer, b->peer);
}

static enum status take_seat(struct wires *wires, const struct job *job, uint32_t seat)
{
	const struct job_seat *of = &job->seats[seat];
	const struct recording_process *process = job->recording->processes[of->process];

	for (size_t i = 0; i < process->link_count; i++) {
		const struct region_link *link = &process->links[i];
		int32_t peer = (int32_t)((uint32_t)link->key - 1);

		if (link->key >> 34 != of->comm_id || link->key >> 32 & 1 || link->bytes == 0)
			continue;
		if (!list_grow(&wires->list, wires->count, sizeof(*wires->list)))
			return ERR_NO_SPACE;
		wires->list[wires->count++] = (struct wire_row){
			.from = seat,
			.to = job_member(job, &job->comms[of->comm], peer),
			.peer = peer,
			.bytes = link->bytes,
			.transfers = link->steps,
			.wire_ns = link->wire_ns & LINK_WIRE_PARTIAL ? 0 : link->wire_ns,
		};
	}
	return OK;
}

static enum status compare(struct wires *wires)
{
	double *rates = calloc(wires->count + 1, sizeof(*rates));

	if (rates == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < wires->count; i++) {
		struct wire_row *row = &wires->list[i];
		double rate = wire_rate(row);

		row->is_main = row->bytes >= wires->list[0].bytes / MAIN_PART;
		if (!row->is_main || rate == 0)
			continue;
		if (wires->known == 0 || rate < wires->least) {
			wires->least = rate;
			wires->slowest = i;
		}
		if (rate > wires->most)
			wires->most = rate;
		rates[wires->known++] = rate;
	}
	wires->median = wires->known > 0 ? stats_median(rates, wires->known) : 0;
	free(rates);
	return OK;
}

enum status wires_make(struct wires *wires, const struct job *job, const struct filter *filter)
{
	enum status status = OK;

	*wires = (struct wires){ .list = NULL };
	if (filter->function_count > 0 || filter->has_tag || filter->since.base != FILTER_NO_TIME ||
	    filter->until.base != FILTER_NO_TIME)
		return OK;
	for (uint32_t s = 0; status == OK && s < job->seat_count; s++)
		if (filter_has_rank(filter, job->ranks[job->seats[s].rank].rank) &&
		    filter_has_comm(filter, &job->comms[job->seats[s].comm]))
			status = take_seat(wires, job, s);
	if (status == OK && wires->count > 0) {
		qsort(wires->list, wires->count, sizeof(*wires->list), by_bytes);
		status = compare(wires);
	}
	if (status != OK)
		wires_release(wires);
	return status;
}

void wires_release(struct wires *wires)
{
	free(wires->list);
	*wires = (struct wires){ .list = NULL };
}
