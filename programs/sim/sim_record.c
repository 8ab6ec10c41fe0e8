#include "programs/sim/sim_record.h"

#include "common/op.h"
#include "programs/sim/sim_random.h"

enum {
	TASK_NS = 2500,	      /* after the launch */
	POLL_NS = 4000,	      /* until the proxy sees a kernel start or stop, at least ... */
	POLL_RANGE_NS = 9000, /* ... and so much more, at most */
	WARPS = 16,
	SEND_WAITS = OP_WAIT_SEND_GPU,
	RECV_WAITS = OP_WAIT_RECV_NET,
};

/* Does this release show the call, but nothing of its execution? */
static bool is_api_only(const struct sim_job *job, uint8_t function)
{
	return job->interface >= 6 && function == OP_BROADCAST;
}

/* The recorder samples processes that use neither Send nor Recv ... */
static bool samples(const struct sim_job *job)
{
	return job->options.kernel == KERNEL_EVENTS_SAMPLED && job->options.workload != SIM_TP_PP &&
	       job->options.workload != SIM_MOE;
}

/* ... by the collective's number. */
static bool is_sampled(const struct sim_job *job, const struct sim_call *call)
{
	const struct sim_member *member = &job->members[call->launch->rank][call->launch->role];

	return samples(job) && sample_level(job->comms[member->comm].hash, call->match) >=
				       job->options.sample_level;
}

static bool has_kernels(const struct sim_job *job, const struct sim_call *call)
{
	if (job->interface < 3)
		return false;
	return job->options.kernel == KERNEL_EVENTS_ON || is_sampled(job, call);
}

/* The plugin's stamps come when NCCL's proxy thread looks. */
static uint64_t seen_ns(const struct sim_job *job, const struct sim_call *call, uint64_t ns)
{
	return ns + POLL_NS +
	       sim_random_below(POLL_RANGE_NS, job->options.seed, call->number,
				(uint64_t)call->launch->rank << 8 | (uint64_t)call->launch->role);
}

/* What NCCL says of the message differs by release; see "count" in docs/OPERATIONS.md. */
static void set_message(struct op_record *op, const struct sim_job *job,
			const struct sim_call *call)
{
	int nranks = job->comms[job->members[call->launch->rank][call->launch->role].comm].nranks;
	unsigned int element_bytes = op_datatype_bytes(call->datatype);

	op->function = call->function;
	op->datatype = call->datatype;
	op->count = call->count;
	if (job->interface <= 4 &&
	    (call->function == OP_ALL_GATHER || call->function == OP_BROADCAST)) {
		op->datatype = OP_DATATYPE_UNKNOWN;
		op->count *= element_bytes;
		element_bytes = 1;
	}
	op->bytes = op_message_bytes(op->function, op->count, element_bytes,
				     job->interface >= 4 ? nranks : 0);
	/* NCCL says root 0 of whatever has none. */
	op->root = call->root == OP_NOBODY && call->peer == OP_NOBODY ? 0 : call->root;
	op->peer = call->peer;
}

static void set_host_times(struct op_record *op, const struct sim_job *job,
			   const struct sim_clocks *clocks, const struct sim_call *call)
{
	uint64_t launch_ns = call->launch->launch_ns;

	if (call->launch->is_unlaunched) {
		op->issue_ns = sim_clock(clocks, call->issue_ns);
		return;
	}
	if (job->interface < 5) {
		op->issue_ns = op->task_ns = sim_clock(clocks, launch_ns + TASK_NS);
		return;
	}
	op->issue_ns = sim_clock(clocks, call->issue_ns);
	op->launch_ns = op->task_ns = sim_clock(clocks, launch_ns);
	op->stream = UINT64_C(0x7f0000000000) + (uint64_t)call->launch->role * 0x1000;
}

static void set_kernels(struct op_record *op, const struct sim_job *job,
			const struct sim_clocks *clocks, const struct sim_outcome *outcome)
{
	uint64_t first_start = UINT64_MAX, last_start = 0, first_stop = UINT64_MAX, last_stop = 0;

	for (int i = 0; i < outcome->kernel_count; i++) {
		const struct sim_kernel *kernel = &outcome->kernels[i];
		uint64_t start = sim_gpu_clock(clocks, kernel->start_ns);
		uint64_t stop = sim_gpu_clock(clocks, kernel->stop_ns);

		first_start = start < first_start ? start : first_start;
		last_start = start > last_start ? start : last_start;
		op->kernels_started++;
		if (kernel->stop_ns == 0)
			continue;
		first_stop = stop < first_stop ? stop : first_stop;
		last_stop = stop > last_stop ? stop : last_stop;
		op->kernels_stopped++;
	}
	if (op->kernels_started == 0 || job->interface < 4)
		return;
	op->gpu_start_ns = first_start;
	if (op->kernels_stopped == 0)
		return;
	op->gpu_stop_ns = last_stop;
	op->start_spread_ns = (uint32_t)(last_start - first_start);
	op->stop_spread_ns = (uint32_t)(last_stop - first_stop);
}

static void set_proxies(struct op_record *op, const struct sim_outcome *outcome)
{
	for (int i = 0; i < outcome->edge_count; i++) {
		const struct sim_edge *edge = &outcome->edges[i];
		int first = edge->is_send ? SEND_WAITS : RECV_WAITS;

		op->proxies_started++;
		op->proxies_stopped += edge->stop_ns != 0;
		*(edge->is_send ? &op->send_bytes : &op->recv_bytes) += edge->bytes;
		*(edge->is_send ? &op->send_steps : &op->recv_steps) += edge->done;
		for (int wait = 0; wait < 3; wait++)
			op->wait_ns[first + wait] += edge->wait_ns[wait];
	}
}

/*
 * A Send to itself moves the device's counter of channel 0 and not the host's (2.26 to 2.30): from
 * then on that channel's stamps are those of earlier kernels. The recorder finds that out.
 */
static void spoil_stamps(struct op_record *op, const struct sim_job *job,
			 const struct sim_clocks *clocks, struct sim_stream *stream,
			 const struct sim_outcome *outcome)
{
	const struct sim_kernel *kernel = &outcome->kernels[0];

	if (outcome->is_self && outcome->is_over && job->interface >= 3 && job->interface <= 6)
		stream->will_drift = true;
	if (outcome->kernel_count == 0 || kernel->channel != 0)
		return;
	if (stream->has_drifted && op->kernels_stopped > 0) {
		op->flags |= OP_FLAG_STAMP_STALE;
		if (stream->is_drift_known)
			op->flags |= OP_FLAG_STAMP_CHANNEL;
		stream->is_drift_known = true;
		op->gpu_start_ns = sim_gpu_clock(clocks, stream->old_stamps[0]);
		if (outcome->kernel_count == 1)
			op->gpu_stop_ns = sim_gpu_clock(clocks, stream->old_stamps[1]);
	}
	if (kernel->stop_ns != 0) {
		stream->old_stamps[0] = kernel->start_ns;
		stream->old_stamps[1] = kernel->stop_ns;
	}
}

/* Without kernel or proxy events nobody sees the end. What is done later on the same communicator
 * proves that it came. */
static void set_unseen(struct op_record *op, const struct sim_clocks *clocks,
		       const struct sim_outcome *outcome)
{
	op->state = OP_LAUNCHED;
	if (!outcome->is_self || !outcome->is_over)
		return;
	op->done_ns = sim_clock(clocks, outcome->call->launch->end_ns + POLL_NS);
	op->time_source = OP_TIME_HOST;
}

static void set_state(struct op_record *op, const struct sim_job *job,
		      const struct sim_clocks *clocks, const struct sim_outcome *outcome)
{
	const struct sim_call *call = outcome->call;
	uint64_t end_ns = outcome->end_ns;

	if (op->kernels_started > 0)
		op->active_ns = sim_clock(clocks, seen_ns(job, call, call->launch->start_ns));
	if (op->proxies_started > 0 && outcome->edges[0].first_ns != 0)
		op->active_ns = sim_clock(clocks, outcome->edges[0].first_ns);
	if (op->active_ns == 0) {
		set_unseen(op, clocks, outcome);
		return;
	}
	op->state = OP_RUNNING;
	if (!outcome->is_over)
		return;
	op->state = OP_DONE;
	op->done_ns = sim_clock(clocks, seen_ns(job, call, end_ns));
	if (op->gpu_stop_ns != 0 && !(op->flags & OP_STAMPS_UNTRUSTED))
		op->time_source = OP_TIME_KERNEL_GPU;
	else if (op->proxies_stopped > 0 && !(op->flags & OP_FLAG_NOT_SAMPLED))
		op->time_source = OP_TIME_PROXY;
}

void sim_record_make(struct op_record *op, const struct sim_job *job,
		     const struct sim_identity *identity, struct sim_stream *stream,
		     uint32_t comm_id, const struct sim_outcome *outcome)
{
	const struct sim_clocks *clocks = &identity->clocks;
	const struct sim_call *call = outcome->call;

	*op = (struct op_record){ .comm = comm_id,
				  .number = call->number,
				  .match = call->match,
				  .signature = call->signature };
	set_message(op, job, call);
	set_host_times(op, job, clocks, call);
	if (is_api_only(job, call->function)) {
		op->task_ns = op->launch_ns = 0;
		op->state = OP_ISSUED;
		op->flags = OP_FLAG_API_ONLY;
		return;
	}
	if (samples(job))
		op->flags |= has_kernels(job, call) ? OP_FLAG_KERNELS_ASKED : OP_FLAG_NOT_SAMPLED;
	if (call->launch->is_unlaunched) {
		op->state = OP_ISSUED;
		return;
	}
	op->nccl_sequence = call->nccl_sequence;
	op->algorithm = outcome->algorithm;
	op->protocol = outcome->protocol;
	op->channels = job->interface >= 4 ? outcome->channels : 0;
	op->warps = outcome->algorithm ? WARPS : 0;
	if (outcome->is_self)
		op->flags |= OP_FLAG_SELF;
	if (has_kernels(job, call)) {
		set_kernels(op, job, clocks, outcome);
		spoil_stamps(op, job, clocks, stream, outcome);
	}
	set_proxies(op, outcome);
	set_state(op, job, clocks, outcome);
}

/* ---- details --------------------------------------------------------------------------------- */

static struct op_detail detail_make(const struct sim_outcome *outcome, uint32_t comm_id,
				    enum op_detail_kind kind, uint8_t channel)
{
	return (struct op_detail){ .comm = comm_id,
				   .kind = (uint8_t)kind,
				   .channel = channel,
				   .number = outcome->call->number,
				   .peer = OP_NOBODY };
}

static struct op_detail kernel_detail(const struct sim_job *job, const struct sim_clocks *clocks,
				      uint32_t comm_id, const struct sim_outcome *outcome, int i)
{
	const struct sim_kernel *kernel = &outcome->kernels[i];
	struct op_detail detail = detail_make(outcome, comm_id, OP_DETAIL_KERNEL, kernel->channel);

	detail.time_ns[0] = sim_gpu_clock(clocks, kernel->start_ns);
	detail.time_ns[2] = sim_clock(clocks, seen_ns(job, outcome->call, kernel->start_ns));
	if (kernel->stop_ns != 0) {
		detail.time_ns[1] = sim_gpu_clock(clocks, kernel->stop_ns);
		detail.time_ns[3] = sim_clock(clocks, seen_ns(job, outcome->call, kernel->stop_ns));
	}
	return detail;
}

static uint64_t clock_or_0(const struct sim_clocks *clocks, uint64_t ns)
{
	return ns ? sim_clock(clocks, ns) : 0;
}

static struct op_detail proxy_detail(const struct sim_clocks *clocks, uint32_t comm_id,
				     const struct sim_identity *identity,
				     const struct sim_outcome *outcome, const struct sim_edge *edge)
{
	struct op_detail detail = detail_make(outcome, comm_id, OP_DETAIL_PROXY, edge->channel);

	detail.flags = edge->is_send ? OP_DETAIL_IS_SEND : 0;
	detail.peer = edge->peer;
	detail.step = (int32_t)edge->steps;
	detail.bytes = edge->bytes;
	detail.origin_pid = (uint64_t)identity->pid;
	detail.time_ns[0] = clock_or_0(clocks, edge->queued_ns);
	detail.time_ns[1] = clock_or_0(clocks, edge->first_ns);
	detail.time_ns[3] = clock_or_0(clocks, edge->stop_ns);
	return detail;
}

/* An open transfer: the stamps of the states it has reached; the last one says since when. */
static struct op_detail step_detail(const struct sim_clocks *clocks, uint32_t comm_id,
				    const struct sim_identity *identity,
				    const struct sim_outcome *outcome, const struct sim_edge *edge,
				    unsigned int nth)
{
	struct op_detail detail = proxy_detail(clocks, comm_id, identity, outcome, edge);

	detail.kind = OP_DETAIL_STEP;
	detail.step = (int32_t)(edge->done + nth);
	detail.bytes = 0;
	for (unsigned int i = 0; i < 4; i++)
		detail.time_ns[i] = i <= edge->state
					    ? sim_clock(clocks, edge->since_ns - (edge->state - i))
					    : 0;
	return detail;
}

int sim_record_details(struct op_detail details[SIM_DETAILS_MAX], const struct sim_job *job,
		       const struct sim_identity *identity, uint32_t comm_id,
		       const struct sim_outcome *outcome)
{
	const struct sim_clocks *clocks = &identity->clocks;
	int count = 0;

	if (is_api_only(job, outcome->call->function) || outcome->call->launch->is_unlaunched)
		return 0;
	for (int i = 0; has_kernels(job, outcome->call) && i < outcome->kernel_count; i++)
		details[count++] = kernel_detail(job, clocks, comm_id, outcome, i);
	for (int i = 0; i < outcome->edge_count; i++) {
		const struct sim_edge *edge = &outcome->edges[i];

		details[count++] = proxy_detail(clocks, comm_id, identity, outcome, edge);
		for (unsigned int nth = 0; nth < edge->open; nth++)
			details[count++] =
				step_detail(clocks, comm_id, identity, outcome, edge, nth);
	}
	return count;
}
