/*
 * From details back to what a region would show. Details of one proxy operation stand together once they
 * are sorted, in the order of their sequence:
 *
 *	PROXY  queued, first transfer, -, stopped	one proxy operation
 *	STEP   posted, ready, sent, done		one of its transfers; done 0: it is open
 *	STEP   ...
 *
 * Transfers are done in order, so those before the first open one are. Which of its stamps is the last one
 * that is not 0 tells the state of a transfer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/list_grow.h"
#include "recording/recording_flights.h"
#include "recording/recording_load.h"

/* Of a process in one moment: 4096 proxy operations with eight transfers each, and their kernels. */
enum { DETAILS_MAX = 1 << 16 };

struct gather {
	struct recording_process *process;
	struct op_detail *details;
	size_t count;
	enum status status;
};

static bool is_foreign(const struct op_detail *detail)
{
	return detail->flags & OP_DETAIL_IS_FOREIGN || detail->comm == 0 || detail->number == 0;
}

static void note_kernel(struct recording_flight *flight, const struct op_detail *detail)
{
	uint64_t bit = UINT64_C(1) << detail->channel % 64;

	flight->started[detail->channel / 64] |= bit;
	if (detail->time_ns[1] != 0 || detail->time_ns[3] != 0 || detail->flags & OP_DETAIL_IS_OVER)
		flight->stopped[detail->channel / 64] |= bit;
}

/* Does it say something about this moment? Mode full has those of all that is over, too; a snapshot has
 * not, but proxy operations of which nobody knows whose they are. */
static bool is_of_now(const struct recording_process *process, const struct op_detail *detail,
		      const struct recording_flight *flight)
{
	if (process->is_snapshot)
		return flight != NULL || detail->kind != OP_DETAIL_KERNEL;
	if (is_foreign(detail))
		return detail->kind != OP_DETAIL_KERNEL &&
		       (detail->time_ns[3] == 0 || detail->flags & OP_DETAIL_IS_OVER);
	return flight != NULL && flight->op.state != OP_DONE;
}

static bool take_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	struct gather *gather = context;
	struct recording_flight *flight = NULL;

	(void)place;
	if (!is_foreign(detail))
		flight = recording_flights_at(gather->process, detail->comm, detail->number);
	if (!is_of_now(gather->process, detail, flight))
		return true;
	if (detail->kind == OP_DETAIL_KERNEL) {
		note_kernel(flight, detail);
		return true;
	}
	if (gather->count == DETAILS_MAX)
		return true;
	if (!list_grow(&gather->details, gather->count, sizeof(*gather->details))) {
		gather->status = ERR_NO_SPACE;
		return false;
	}
	gather->details[gather->count++] = *detail;
	return true;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Whose connection it is: 0 for the same. */
static int compare_owners(const struct op_detail *a, const struct op_detail *b)
{
	const uint16_t mask = OP_DETAIL_IS_SEND | OP_DETAIL_IS_FOREIGN;
	int order = compare(a->comm, b->comm);

	if (order == 0)
		order = compare(a->number, b->number);
	if (order == 0)
		order = compare(a->origin_pid, b->origin_pid);
	if (order == 0)
		order = compare(a->channel, b->channel);
	if (order == 0)
		order = compare((uint32_t)a->peer, (uint32_t)b->peer);
	return order == 0 ? compare(a->flags & mask, b->flags & mask) : order;
}

static int compare_details(const void *one, const void *other)
{
	const struct op_detail *a = one, *b = other;
	int order = compare_owners(a, b);

	return order == 0 ? compare(a->sequence, b->sequence) : order;
}

static void keep_later(uint64_t *latest, uint64_t ns)
{
	if (ns > *latest)
		*latest = ns;
}

static void fill_proxy(struct region_proxy *proxy, const struct op_detail *detail)
{
	proxy->comm = detail->comm;
	proxy->number = detail->number;
	proxy->peer = detail->peer;
	proxy->origin_pid = (int32_t)detail->origin_pid;
	proxy->channel = detail->channel;
	proxy->flags |= (uint8_t)(detail->flags & (PROXY_IS_SEND | PROXY_IS_FOREIGN));
	if (detail->kind != OP_DETAIL_PROXY)
		return;
	proxy->steps = detail->step;
	proxy->start_ns = detail->time_ns[0];
	proxy->active_ns = detail->time_ns[1];
	proxy->bytes = detail->bytes;
	keep_later(&proxy->since_ns, detail->time_ns[1]);
	keep_later(&proxy->since_ns, detail->time_ns[3]);
	if (detail->time_ns[1] != 0)
		proxy->flags |= PROXY_IN_PROGRESS;
	if (detail->time_ns[3] != 0 && detail->step > 0)
		proxy->done = (uint32_t)detail->step;
}

/* NCCL's numbers of the three states, sending and receiving. */
static uint8_t step_state(const struct op_detail *detail)
{
	static const uint8_t states[2][3] = { { 10, 11, 12 }, { 8, 20, 9 } };
	const uint8_t *of = states[detail->flags & OP_DETAIL_IS_SEND ? 1 : 0];
	uint8_t said = (uint8_t)((detail->flags & OP_DETAIL_STATE) >> 8);

	if ((said >= 8 && said <= 12) || said == 20)
		return said;
	for (unsigned int i = 3; i-- > 0;)
		if (detail->time_ns[i] != 0)
			return of[i];
	return 0;
}

static void add_step(struct recording_proxy *to, const struct op_detail *detail)
{
	struct region_step step = { .step_plus_1 = (uint32_t)detail->step + 1,
				    .state = step_state(detail),
				    .bytes = detail->bytes };
	unsigned int at = to->step_count;

	memcpy(step.time_ns, detail->time_ns, sizeof(step.time_ns));
	for (unsigned int i = 0; i < 4; i++)
		keep_later(&to->proxy.since_ns, detail->time_ns[i]);
	if (detail->flags & OP_DETAIL_IS_OVER) {
		to->proxy.done = (uint32_t)detail->step + 1;
		return;
	}
	if (detail->time_ns[3] != 0) {
		to->proxy.done++;
		return;
	}
	if (step.state == 0 || detail->step < 0 || at == WINDOW_STEPS)
		return;
	for (; at > 0 && to->steps[at - 1].step_plus_1 > step.step_plus_1; at--)
		to->steps[at] = to->steps[at - 1];
	to->steps[at] = step;
	to->step_count++;
}

/* What follows from the transfers. */
static void complete(struct recording_proxy *of, bool is_done_known)
{
	struct region_proxy *proxy = &of->proxy;

	if (!is_done_known && of->step_count > 0 && of->steps[0].step_plus_1 - 1 > proxy->done)
		proxy->done = of->steps[0].step_plus_1 - 1;
	proxy->posted = proxy->done + of->step_count;
	proxy->transmitted = proxy->done;
	for (unsigned int i = 0; i < of->step_count; i++) {
		const struct region_step *step = &of->steps[i];

		proxy->open[(step->step_plus_1 - 1) % WINDOW_STEPS] = *step;
		proxy->transmitted += step->state == 9 || step->state == 11 || step->state == 12;
	}
}

/* One proxy operation: as many details as were taken. */
static size_t read_proxy(const struct op_detail *details, size_t count, struct recording_proxy *to,
			 bool *is_stopped)
{
	bool is_done_known = false, has_proxy = false;
	size_t taken = 0;

	memset(to, 0, sizeof(*to));
	*is_stopped = false;
	for (; taken < count && compare_owners(&details[0], &details[taken]) == 0; taken++) {
		const struct op_detail *detail = &details[taken];

		if (detail->kind == OP_DETAIL_PROXY && has_proxy)
			break;
		/* Transfers that are over come before their proxy operation when that is over. */
		if (detail->kind == OP_DETAIL_PROXY && taken > 0 && detail->time_ns[3] == 0)
			break;
		if (detail->kind == OP_DETAIL_PROXY || taken == 0)
			fill_proxy(&to->proxy, detail);
		if (detail->kind == OP_DETAIL_PROXY) {
			has_proxy = true;
			*is_stopped = detail->time_ns[3] != 0;
		}
		if (detail->kind == OP_DETAIL_STEP) {
			add_step(to, detail);
			is_done_known |= detail->flags & OP_DETAIL_IS_OVER;
		}
	}
	complete(to, is_done_known);
	return taken;
}

static enum status keep_proxy(struct recording_process *process, const struct op_detail *detail,
			      const struct recording_proxy *proxy)
{
	struct recording_proxy **list = &process->proxies;
	struct recording_flight *flight = NULL;
	size_t *count = &process->proxy_count;

	if (!is_foreign(detail))
		flight = recording_flights_at(process, detail->comm, detail->number);
	if (flight != NULL) {
		list = &flight->proxies;
		count = &flight->proxy_count;
	}
	if (!list_grow(list, *count, sizeof(**list)))
		return ERR_NO_SPACE;
	(*list)[(*count)++] = *proxy;
	return OK;
}

static enum status make_proxies(struct recording_process *process, const struct gather *gather)
{
	enum status status = OK;

	for (size_t at = 0; at < gather->count && status == OK;) {
		const struct op_detail *first = &gather->details[at];
		struct recording_proxy proxy;
		bool is_stopped;

		at += read_proxy(first, gather->count - at, &proxy, &is_stopped);
		/* A region has those alone that have not. */
		if (!is_stopped)
			status = keep_proxy(process, first, &proxy);
	}
	recording_flights_sort(process);
	return status;
}

enum status recording_flights_details(struct recording_process *process)
{
	struct gather gather = { .process = process };
	uint64_t details = 0;
	enum status status;

	for (size_t i = 0; i < process->file_count; i++)
		details += process->files[i].details;
	if (details == 0)
		return OK;
	status = recording_each_detail(process, take_detail, &gather, NULL);
	if (status == OK)
		status = gather.status;
	if (gather.count > 1)
		qsort(gather.details, gather.count, sizeof(*gather.details), compare_details);
	if (status == OK)
		status = make_proxies(process, &gather);
	free(gather.details);
	return status;
}
