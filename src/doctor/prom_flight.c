/*
 * What a member is in, and what it was in before, as its live slots would show it. An agent has decided
 * already that the oldest operation is open, and what it waits for; this turns it back into what those
 * answers are drawn from.
 */
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/status.h"
#include "common/text.h"
#include "doctor/prom_parts.h"
#include "recording/recording.h"
#include "timeline/flight.h"

/* NCCL's numbers of a transfer's state, as region_step.state holds them. */
static const uint8_t step_states[] = {
	[FLIGHT_SEND_GPU] = 8,	[FLIGHT_SEND_PEER] = 20,  [FLIGHT_SEND_NET] = 9,
	[FLIGHT_RECV_NET] = 10, [FLIGHT_RECV_FLUSH] = 11, [FLIGHT_RECV_GPU] = 12
};
enum { CHANNELS_MAX = 256 };

/* The number of a name; one that no table has gets a number of this process. */
static uint8_t name_number(struct recording_process *process, enum op_name_table table,
			   const char *name)
{
	int is_known = 0;
	uint8_t number = op_name_find(table, name, &is_known);

	if (is_known || name[0] == '\0')
		return number;
	for (unsigned int i = 0; i < OP_NAMES_INTERNED_MAX; i++) {
		char *known = process->names[i];

		if (known[0] == '\0')
			text_copy(known, sizeof(process->names[i]), name);
		if (strncmp(known, name, sizeof(process->names[i]) - 1) == 0)
			return (uint8_t)(OP_NAME_INTERNED + i);
	}
	return 0;
}

static uint8_t state_number(const char *name)
{
	for (uint8_t state = OP_ISSUED; state < OP_STATES; state++)
		if (strcmp(op_state_name(state), name) == 0)
			return state;
	return OP_ISSUED;
}

static struct op_record op_of(const struct prom *prom, const struct prom_call *call,
			      struct recording_process *process, const struct recording_comm *comm)
{
	struct op_record op = {
		.comm = comm->info.id,
		.function =
			name_number(process, OP_NAMES_FUNCTION, prom_text_of(prom, call->function)),
		.datatype =
			name_number(process, OP_NAMES_DATATYPE, prom_text_of(prom, call->datatype)),
		.number = call->number,
		.match = call->match,
		.signature = call->signature,
		.count = call->count,
		.root = call->root,
		.peer = OP_NOBODY,
		.flags = call->is_replay ? OP_FLAG_REPLAY : 0,
		.state = state_number(prom_text_of(prom, call->state)),
	};

	if (!op_is_collective(op.function))
		op.peer = call->peer;
	op.bytes = op_message_bytes(op.function, op.count, op_datatype_bytes(op.datatype),
				    comm->info.nranks);
	return op;
}

/* "0-7,12" */
static unsigned int channel_bits(const char *text, uint64_t bits[static 4])
{
	const char *at = text;

	memset(bits, 0, 4 * sizeof(*bits));
	while (*at >= '0' && *at <= '9') {
		unsigned long from = strtoul(at, (char **)&at, 10), to = from;

		if (*at == '-')
			to = strtoul(at + 1, (char **)&at, 10);
		for (unsigned long c = from; c <= to && c < CHANNELS_MAX; c++)
			bits[c / 64] |= UINT64_C(1) << (c % 64);
		if (*at == ',')
			at++;
	}
	return (unsigned int)(__builtin_popcountll(bits[0]) + __builtin_popcountll(bits[1]) +
			      __builtin_popcountll(bits[2]) + __builtin_popcountll(bits[3]));
}

static bool reason_of(const char *name, enum flight_reason *reason)
{
	for (*reason = 0; *reason < FLIGHT_REASONS; ++*reason)
		if (strcmp(flight_reason_name(*reason), name) == 0)
			return true;
	return false;
}

static struct recording_proxy proxy_of(const struct prom_wait *wait, enum flight_reason reason,
				       const struct op_record *op, uint64_t now_ns)
{
	bool is_queued = reason == FLIGHT_SEND_QUEUED || reason == FLIGHT_RECV_QUEUED;
	bool is_send = reason <= FLIGHT_SEND_NET || reason == FLIGHT_SEND_QUEUED ||
		       reason == FLIGHT_SEND_STARTING;
	uint64_t since_ns = now_ns > wait->for_ns ? now_ns - wait->for_ns : 1;
	struct recording_proxy of = { .proxy = { .comm = op->comm,
						 .number = op->number,
						 .peer = wait->peer,
						 .start_ns = since_ns,
						 .since_ns = since_ns } };

	of.proxy.flags =
		(uint8_t)((is_send ? PROXY_IS_SEND : 0) | (is_queued ? 0 : PROXY_IN_PROGRESS));
	if (reason <= FLIGHT_RECV_GPU) {
		unsigned int stage = is_send ? reason : reason - FLIGHT_RECV_NET;

		of.proxy.posted = 1;
		of.proxy.active_ns = since_ns;
		of.step_count = 1;
		of.steps[0].step_plus_1 = 1;
		of.steps[0].state = step_states[reason];
		of.steps[0].time_ns[stage] = since_ns;
	}
	return of;
}

static enum status add_proxies(const struct prom *prom, const struct prom_wait *wait,
			       struct recording_flight *flight, uint64_t now_ns)
{
	enum flight_reason reason;
	uint64_t bits[4];

	if (!reason_of(prom_text_of(prom, wait->waits_for), &reason))
		return OK;
	if (channel_bits(prom_text_of(prom, wait->channels), bits) == 0)
		bits[0] = 1; /* not told: any will do */
	for (unsigned int c = 0; c < CHANNELS_MAX; c++) {
		struct recording_proxy proxy;

		if (!(bits[c / 64] >> (c % 64) & 1))
			continue;
		proxy = proxy_of(wait, reason, &flight->op, now_ns);
		proxy.proxy.channel = (uint8_t)c;
		if (!list_grow(&flight->proxies, flight->proxy_count, sizeof(proxy)))
			return ERR_NO_SPACE;
		flight->proxies[flight->proxy_count++] = proxy;
	}
	return OK;
}

static struct recording_flight *new_flight(struct recording_process *process)
{
	struct recording_flight *flight;

	if (!list_grow(&process->flights, process->flight_count, sizeof(*process->flights)))
		return NULL;
	flight = &process->flights[process->flight_count++];
	*flight = (struct recording_flight){ .op = { .sequence = 0 } };
	return flight;
}

/* The collective before, as a slot that is not yet used again. */
static enum status add_last(const struct prom *prom, const struct prom_member *member,
			    struct recording_process *process, const struct recording_comm *comm)
{
	struct recording_flight *flight = new_flight(process);
	struct op_record *op;

	if (flight == NULL)
		return ERR_NO_SPACE;
	op = &flight->op;
	*op = op_of(prom, &prom->calls[member->last - 1], process, comm);
	op->state = OP_DONE;
	op->done_ns = comm->counts.last_done_ns;
	op->issue_ns = op->done_ns;
	if (op->match == 0) {
		/* Nothing was in flight: it was the last one of all, which the gauges tell of. */
		op->number = comm->counts.issued;
		op->match = comm->counts.collectives;
		op->signature = comm->counts.signature;
	} else if (member->oldest != 0) {
		op->number = prom->calls[member->oldest - 1].number;
		op->number -= op->number > 0;
	} else {
		/* Of a process that is gone. */
		op->number = comm->counts.last_done_number;
	}
	if (op->number == 0 || op->match == 0)
		process->flight_count--;
	return OK;
}

static enum status add_oldest(const struct prom *prom, const struct prom_member *member,
			      struct recording_process *process, const struct recording_comm *comm)
{
	const struct prom_call *call = &prom->calls[member->oldest - 1];
	uint64_t now_ns = process->counts_ns, age_ns = member->numbers[PROM_AGE];
	struct recording_flight *flight = new_flight(process);
	enum status status = OK;
	struct op_record *op;

	if (flight == NULL)
		return ERR_NO_SPACE;
	op = &flight->op;
	*op = op_of(prom, call, process, comm);
	op->issue_ns = now_ns > age_ns ? now_ns - age_ns : 1;
	if (op->state != OP_ISSUED)
		op->task_ns = op->launch_ns = op->issue_ns;
	if (op->state == OP_RUNNING)
		op->active_ns = op->issue_ns;
	op->kernels_started =
		(uint16_t)channel_bits(prom_text_of(prom, call->kernels_started), flight->started);
	op->kernels_stopped =
		(uint16_t)channel_bits(prom_text_of(prom, call->kernels_stopped), flight->stopped);
	for (uint32_t at = member->waits; at != 0 && status == OK; at = prom->waits[at - 1].next)
		status = add_proxies(prom, &prom->waits[at - 1], flight, now_ns);
	if (flight->proxy_count > 1)
		qsort(flight->proxies, flight->proxy_count, sizeof(*flight->proxies),
		      recording_compare_proxies);
	op->proxies_started = (uint16_t)flight->proxy_count;
	if (op->kernels_started > op->kernels_stopped)
		flight->open_children = (uint32_t)(op->kernels_started - op->kernels_stopped);
	flight->open_children += (uint32_t)flight->proxy_count;
	return status;
}

enum status prom_add_flights(const struct prom *prom, const struct prom_member *member,
			     struct recording_process *process, struct recording_comm *comm)
{
	/* One that an age is not known of is over by now, or another. */
	bool is_in = member->oldest != 0 && member->numbers[PROM_AGE] > 0 &&
		     prom->calls[member->oldest - 1].number > 0;
	/* It came between two queries: of the one before it nobody knows the number. */
	bool is_unplaced = is_in && member->last != 0 && prom->calls[member->last - 1].match == 0;
	enum status status = OK;

	if (member->last != 0 && comm->has_counts && !is_unplaced)
		status = add_last(prom, member, process, comm);
	if (status == OK && is_in)
		status = add_oldest(prom, member, process, comm);
	return status;
}
