/* Which operations are in flight, and what each waits for. */
#include "analysis/flight.h"

#include <stdlib.h>

#include "common/attributes.h"
#include "common/op.h"

/* NCCL's numbers, as in region_step.state and comm_info.mask. */
enum step_state {
	STEP_SEND_GPU_WAIT = 8,
	STEP_SEND_WAIT = 9,
	STEP_RECV_WAIT = 10,
	STEP_RECV_FLUSH_WAIT = 11,
	STEP_RECV_GPU_WAIT = 12,
	STEP_SEND_PEER_WAIT = 20,
};

/* Broadcast reports no execution from NCCL 2.29 on; see nccl_interface.c. */
enum { INTERFACE_WITHOUT_BROADCAST = 6 };

/* The state of later operations of the same communicator: calls are launched and run in order, so one that
 * was overtaken is over, or reports nothing of its execution. */
struct later {
	bool is_any_done;
	bool is_any_launched; /* or running */
};

static void note_later(struct later *later, const struct op_record *op)
{
	later->is_any_done |= op->state == OP_DONE;
	later->is_any_launched |= op->state == OP_LAUNCHED || op->state == OP_RUNNING;
}

/* Does NCCL report more of such an operation than the call? */
static bool is_execution_shown(const struct recording_comm *comm, const struct op_record *op)
{
	if (op->flags & (OP_FLAG_API_ONLY | OP_FLAG_COPY_ENGINE))
		return false;
	return !(op->function == OP_BROADCAST && op->task_ns == 0 && comm &&
		 comm->info.interface >= INTERFACE_WITHOUT_BROADCAST);
}

static bool is_end_visible(const struct recording_comm *comm, const struct op_record *op)
{
	if (!is_execution_shown(comm, op) || op->flags & OP_FLAG_SELF)
		return false;
	return comm == NULL || op_kernels_were_asked(&comm->info, op) || op->kernels_started > 0 ||
	       comm->info.flags & COMM_FLAG_SEES_PROXIES;
}

bool flight_end_shows(const struct recording_comm *comm, const struct op_record *op)
{
	if (op->state == OP_RUNNING)
		return true;
	return op->state == OP_ISSUED ? is_execution_shown(comm, op) : is_end_visible(comm, op);
}

static enum flight_kind kind_of(const struct recording_comm *comm,
				const struct recording_flight *flight, const struct later *later)
{
	const struct op_record *op = &flight->op;

	if (op->state == OP_RUNNING)
		return FLIGHT_OPEN;
	if (op->state != OP_ISSUED && op->state != OP_LAUNCHED)
		return FLIGHT_OVER;
	if (flight->open_children > 0)
		return FLIGHT_OPEN;
	if (later->is_any_done ||
	    (comm && comm->has_counts && comm->counts.last_done_number > op->number))
		return FLIGHT_OVER;
	if (op->state == OP_ISSUED && later->is_any_launched)
		return FLIGHT_UNSEEN;
	return flight_end_shows(comm, op) ? FLIGHT_OPEN : FLIGHT_UNSEEN;
}

enum flight_kind flight_kind(const struct recording_process *process,
			     const struct recording_flight *flight)
{
	struct later later = { false, false };

	for (size_t i = 0; i < process->flight_count; i++) {
		const struct op_record *other = &process->flights[i].op;

		if (other->comm == flight->op.comm && other->number > flight->op.number)
			note_later(&later, other);
	}
	return kind_of(recording_comm(process, flight->op.comm), flight, &later);
}

void flight_kinds(const struct recording_process *process, uint8_t *kinds)
{
	const struct recording_comm *comm = NULL;
	struct later later = { false, false };

	for (size_t i = process->flight_count; i-- > 0;) {
		const struct recording_flight *flight = &process->flights[i];

		if (i + 1 == process->flight_count ||
		    process->flights[i + 1].op.comm != flight->op.comm) {
			comm = recording_comm(process, flight->op.comm);
			later = (struct later){ false, false };
		}
		kinds[i] = (uint8_t)kind_of(comm, flight, &later);
		note_later(&later, &flight->op);
	}
}

static const struct {
	const char *name;
	const char *text;
} reasons[FLIGHT_REASONS] = {
	[FLIGHT_SEND_GPU] = { "send_gpu", "waits for its own GPU to produce data for rank %d" },
	[FLIGHT_SEND_PEER] = { "send_peer", "waits for rank %d to be ready to receive" },
	[FLIGHT_SEND_NET] = { "send_net", "waits for the network to complete sends to rank %d" },
	[FLIGHT_RECV_NET] = { "recv_net", "waits for data from rank %d" },
	[FLIGHT_RECV_FLUSH] = { "recv_flush", "is flushing data from rank %d to its GPU" },
	[FLIGHT_RECV_GPU] = { "recv_gpu", "waits for its own GPU to consume data from rank %d" },
	[FLIGHT_SEND_QUEUED] = { "send_queued", "has a send to rank %d queued" },
	[FLIGHT_RECV_QUEUED] = { "recv_queued", "has a receive from rank %d queued" },
	[FLIGHT_SEND_STARTING] = { "send_starting", "is about to send to rank %d" },
	[FLIGHT_RECV_STARTING] = { "recv_starting", "is about to receive from rank %d" },
};

const char *flight_reason_name(enum flight_reason reason)
{
	return (unsigned int)reason < FLIGHT_REASONS ? reasons[reason].name : "?";
}

const char *flight_reason_text(enum flight_reason reason)
{
	return (unsigned int)reason < FLIGHT_REASONS ? reasons[reason].text : "waits for rank %d";
}

/* Which of the three waits of its direction a transfer is in; -1 if it has just started. */
static int step_stage(const struct region_step *step)
{
	switch (step->state) {
	case STEP_SEND_GPU_WAIT:
	case STEP_RECV_WAIT:
		return 0;
	case STEP_SEND_PEER_WAIT:
	case STEP_RECV_FLUSH_WAIT:
		return 1;
	case STEP_SEND_WAIT:
	case STEP_RECV_GPU_WAIT:
		return 2;
	default:
		return -1;
	}
}

/* The oldest open transfer decides: those after it cannot overtake it. */
static void reason_of(const struct recording_proxy *of, enum flight_reason *reason,
		      uint64_t *since_ns)
{
	const struct region_proxy *proxy = &of->proxy;
	bool is_send = proxy->flags & PROXY_IS_SEND;
	int stage = of->step_count > 0 ? step_stage(&of->steps[0]) : -1;

	*since_ns = proxy->since_ns ? proxy->since_ns : proxy->start_ns;
	if (stage >= 0) {
		*reason = (is_send ? FLIGHT_SEND_GPU : FLIGHT_RECV_NET) + (enum flight_reason)stage;
		if (of->steps[0].time_ns[stage] != 0)
			*since_ns = of->steps[0].time_ns[stage];
	} else if (of->step_count == 0 && proxy->posted == 0 &&
		   !(proxy->flags & PROXY_IN_PROGRESS)) {
		*reason = is_send ? FLIGHT_SEND_QUEUED : FLIGHT_RECV_QUEUED;
		*since_ns = proxy->start_ns;
	} else {
		*reason = is_send ? FLIGHT_SEND_STARTING : FLIGHT_RECV_STARTING;
	}
}

static bool is_finished(const struct recording_proxy *of)
{
	return of->step_count == 0 && of->proxy.steps > 0 &&
	       of->proxy.done >= (uint32_t)of->proxy.steps;
}

static void add_wait(struct flight_wait *waits, size_t *count, const struct recording_proxy *of)
{
	const struct region_proxy *proxy = &of->proxy;
	struct flight_wait *wait = NULL;
	enum flight_reason reason;
	uint64_t since_ns;

	reason_of(of, &reason, &since_ns);
	for (size_t i = 0; i < *count; i++)
		if (waits[i].reason == reason && waits[i].peer == proxy->peer)
			wait = &waits[i];
	if (wait == NULL) {
		wait = &waits[(*count)++];
		*wait = (struct flight_wait){ .reason = reason,
					      .peer = proxy->peer,
					      .since_ns = since_ns };
	}
	if (since_ns < wait->since_ns)
		wait->since_ns = since_ns;
	wait->channels[proxy->channel / 64] |= UINT64_C(1) << (proxy->channel % 64);
	wait->steps_done += proxy->done;
	wait->steps += proxy->steps > 0 ? (uint64_t)proxy->steps : 0;
}

static int longest_first(const void *left, const void *right)
{
	const struct flight_wait *a = left, *b = right;

	return ORDER(a->since_ns, b->since_ns) ?:
	       ORDER(a->reason, b->reason) ?:
	       ORDER(a->peer, b->peer);
}

enum status flight_waits(const struct recording_proxy *proxies, size_t proxy_count,
			 struct flight_wait **waits, size_t *count)
{
	struct flight_wait *list;
	size_t used = 0;

	*waits = NULL;
	*count = 0;
	if (proxy_count == 0)
		return OK;
	list = calloc(proxy_count, sizeof(*list));
	if (list == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < proxy_count; i++)
		if (!is_finished(&proxies[i]))
			add_wait(list, &used, &proxies[i]);
	if (used == 0) {
		free(list);
		return OK;
	}
	qsort(list, used, sizeof(*list), longest_first);
	*waits = list;
	*count = used;
	return OK;
}

uint64_t flight_since_ns(const struct recording_flight *flight)
{
	const struct op_record *op = &flight->op;
	const uint64_t times[] = { op->issue_ns, op->launch_ns, op->task_ns, op->active_ns };

	for (size_t i = 0; i < ARRAY_LENGTH(times); i++)
		if (times[i] != 0)
			return times[i];
	return 0;
}
