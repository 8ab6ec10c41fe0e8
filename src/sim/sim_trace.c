/*
 * --offline: converts the outcome of calls to the records, links and trace files that the plugin would have
 * written.
 */
#include "sim/sim_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"
#include "common/timing.h"
#include "format/region_layout.h"
#include "format/trace_layout.h"
#include "format/trace_write.h"

/* What a simulated rank moved to and from each peer, added up like in the recorder. */

struct sim_links {
	struct region_link *slots; /* by hash of key; key 0: free; NULL: none yet */
	uint32_t room;		   /* a power of two */
	uint32_t count;
};

/*
 * The trace files of a simulated job, one per rank, as the plugin would have written them. Only one is open at a
 * time; records are collected per rank and written in order of completion.
 */

struct sim_pending {
	uint64_t done_ns; /* sort key */
	struct op_record op;
};

/*
 * The recorder's events around a launch in a CUDA graph. Only the last replay can be read, so it is held back until the
 * next one starts.
 */
struct sim_pair {
	struct op_record call; /* as it was captured */
	unsigned int index;    /* among the pairs of its rank */
	int role;
	bool has_replay;
	struct sim_pending replay; /* its record, if NCCL shows it */
	uint64_t start_ns, end_ns; /* job's time */
};

enum { PAIRS = 128 }; /* per rank: GRAPH_PAIRS of the recorder */

struct sim_file {
	struct sim_identity identity;
	uint64_t bytes;
	uint64_t sequence;
	uint64_t detail_sequence;
	struct sim_pending *pending;
	uint32_t pending_count;
	struct op_detail *details; /* NULL: none yet */
	uint32_t detail_count;
	struct comm_info comms[SIM_ROLES];
	struct comm_counts counts[SIM_ROLES];
	uint64_t in_flight[SIM_ROLES];
	struct timing_launches launches;
	struct timing_pace paces[SIM_ROLES];
	struct timing_kinds kinds[SIM_ROLES];
	bool has_timed; /* an ordinary launch */
	uint64_t credit_ns[SIM_ROLES];
	struct sim_pair *pairs; /* NULL: none yet */
	unsigned int pair_count;
	struct sim_links links;
};

struct sim_trace {
	const struct sim_job *job;
	const char *directory;
	struct sim_file *files; /* by rank */
	uint32_t pending_room;
	int blocks_fd;	       /* memory file in which the blocks of one file are assembled */
	unsigned char *buffer; /* one block, shared by all */
	struct trace_encoder *encoder;
	struct op_record *block;
	char failed[512]; /* the file that could not be written */
};

/*
 * Details of its channels (KERNEL), connections (PROXY) and open transfers (STEP), without sequences. Returns how
 * many; at most SIM_DETAILS_MAX.
 */
enum { SIM_DETAILS_MAX = SIM_CHANNELS_MAX + SIM_EDGES_MAX * (1 + SIM_WINDOW) };

enum { ROOM_LEAST = 16, STATES = 3 };

static struct region_link *place_of(const struct sim_links *links, uint64_t key)
{
	uint32_t mask = links->room - 1, at = (uint32_t)hash_word(key, key) & mask;

	while (links->slots[at].key != 0 && links->slots[at].key != key)
		at = (at + 1) & mask;
	return &links->slots[at];
}

static bool links_grow(struct sim_links *links)
{
	struct sim_links more = { .room = links->room ? links->room * 2 : ROOM_LEAST,
				  .count = links->count };

	if (links->slots != NULL && links->count < links->room / 2)
		return true;
	more.slots = calloc(more.room, sizeof(*more.slots));
	if (more.slots == NULL)
		return false;
	for (uint32_t i = 0; i < links->room; i++)
		if (links->slots[i].key != 0)
			*place_of(&more, links->slots[i].key) = links->slots[i];
	free(links->slots);
	*links = more;
	return true;
}

/* A connection's transfers: until when, after the call began, and which share of that time one is on the wire. */
struct on_the_wire {
	double until_ns, share;
};

static int by_end(const void *one, const void *other)
{
	const struct on_the_wire *a = one, *b = other;

	return ORDER(a->until_ns, b->until_ns);
}

/* How long a call had a transfer to this peer on the wire. Its channels do so independently of each other. */
static uint64_t wire_ns(const struct sim_outcome *outcome, int32_t peer)
{
	struct on_the_wire list[SIM_EDGES_MAX];
	double from_ns = 0, sum_ns = 0;
	size_t count = 0;

	for (int i = 0; i < outcome->edge_count && outcome->begin_ns != 0; i++) {
		const struct sim_edge *edge = &outcome->edges[i];
		double until_ns = (double)edge->stop_ns - (double)outcome->begin_ns;

		if (edge->is_send && edge->peer == peer && until_ns > 0)
			list[count++] = (struct on_the_wire){
				until_ns, fmin(1, (double)edge->wait_ns[STATES - 1] / until_ns)
			};
	}
	qsort(list, count, sizeof(*list), by_end);
	for (size_t i = 0; i < count; i++) {
		double none = 1;

		for (size_t j = i; j < count; j++)
			none *= 1 - list[j].share;
		sum_ns += (list[i].until_ns - from_ns) * (1 - none);
		from_ns = list[i].until_ns;
	}
	return (uint64_t)sum_ns;
}

/* The connection of a call that stands for all with the same peer. */
static bool is_first_to_peer(const struct sim_outcome *outcome, int index)
{
	const struct sim_edge *edge = &outcome->edges[index];

	for (int i = 0; i < index; i++)
		if (outcome->edges[i].is_send && outcome->edges[i].peer == edge->peer &&
		    outcome->edges[i].stop_ns != 0)
			return false;
	return edge->is_send;
}

/* Adds the connections of a call that have stopped. ERR_NO_SPACE. */
static enum status sim_links_add(struct sim_links *links, uint32_t comm_id,
				 const struct sim_outcome *outcome)
{
	for (int i = 0; i < outcome->edge_count; i++) {
		const struct sim_edge *edge = &outcome->edges[i];
		struct region_link *link;

		if (edge->stop_ns == 0)
			continue;
		if (!links_grow(links))
			return ERR_NO_SPACE;
		link = place_of(links, REGION_LINK_KEY(comm_id, !edge->is_send, edge->peer));
		links->count += link->key == 0;
		link->key = REGION_LINK_KEY(comm_id, !edge->is_send, edge->peer);
		link->proxies++;
		link->steps += edge->done;
		link->bytes += edge->bytes;
		for (int state = 0; state < STATES; state++)
			link->wait_ns[state] += edge->wait_ns[state];
		if (is_first_to_peer(outcome, i))
			link->wire_ns += wire_ns(outcome, edge->peer);
	}
	return OK;
}

/* Writes a block of them, if there are any. */
static enum status sim_links_write(const struct sim_links *links, struct trace_writer *writer)
{
	struct region_link *list;
	enum status status;
	uint32_t count = 1; /* "other", which is empty */

	if (links->count == 0)
		return OK;
	list = calloc((size_t)links->count + 1, sizeof(*list));
	if (list == NULL)
		return ERR_NO_SPACE;
	for (uint32_t i = 0; i < links->room; i++)
		if (links->slots[i].key != 0)
			list[count++] = links->slots[i];
	if (count > TRACE_LINKS_MAX)
		count = TRACE_LINKS_MAX;
	status = trace_write_records(writer, TRACE_LINKS, list, sizeof(*list), count);
	free(list);
	return status;
}

static void sim_links_release(struct sim_links *links)
{
	free(links->slots);
	*links = (struct sim_links){ .slots = NULL };
}

enum {
	TASK_NS = 2500, /* after the launch */
	POLL_NS = 4000, /* until the proxy notices that a kernel started or stopped, at least ... */
	POLL_RANGE_NS = 9000,		/* ... plus up to this much */
	REACHED_NS = 500 * 1000 * 1000, /* a timed launch that is open: has the GPU reached it? */
	SEEN_OPEN_NS = 1000 * 1000 * 1000,
	PASS_NS = 10 * 1000 * 1000, /* between asking launches in graphs ... */
	PASS_PAIRS = 16,	    /* ... so many of them at once */
	EVENT_RESOLUTION_NS = 32,
	WARPS = 16,
	SEND_WAITS = OP_WAIT_SEND_GPU,
	RECV_WAITS = OP_WAIT_RECV_NET,
};

/* Whether this release shows the call, but not its execution. */
static bool is_api_only(const struct sim_job *job, uint8_t function)
{
	return job->interface >= 6 && function == OP_BROADCAST;
}

/* The plugin's timestamps are taken when NCCL's proxy thread polls. */
static uint64_t seen_ns(const struct sim_job *job, const struct sim_call *call, uint64_t ns)
{
	return ns + POLL_NS +
	       sim_random_below(POLL_RANGE_NS, job->options.seed, call->number,
				(uint64_t)call->launch->rank << 8 | (uint64_t)call->launch->role);
}

/* What NCCL reports about the message differs by release; see "count" in docs/ARCHITECTURE.md. */
static void set_message(struct op_record *op, const struct sim_job *job,
			const struct sim_call *call)
{
	bool is_from_task = job->interface <= 4 || call->launch->phase == SIM_REPLAYED;
	int nranks = call->launch->comm->nranks;
	unsigned int element_bytes = op_datatype_bytes(call->datatype);

	op->function = call->function;
	op->datatype = call->datatype;
	op->count = call->count;
	if (is_from_task && (call->function == OP_ALL_GATHER || call->function == OP_BROADCAST)) {
		op->datatype = OP_DATATYPE_UNKNOWN;
		op->count *= element_bytes;
		element_bytes = 1;
	}
	op->bytes = op_message_bytes(op->function, op->count, element_bytes,
				     job->interface >= 4 ? nranks : 0);
	/* NCCL reports root 0 for operations without one. */
	op->root = call->root == OP_NOBODY && call->peer == OP_NOBODY ? 0 : call->root;
	op->peer = call->peer;
}

static void set_host_times(struct op_record *op, const struct sim_job *job,
			   const struct sim_clocks *clocks, const struct sim_call *call)
{
	uint64_t launch_ns = call->launch->launch_ns;

	if (call->launch->phase == SIM_REPLAYED && job->interface >= 5) {
		op->issue_ns = op->task_ns = sim_clock(clocks, call->issue_ns);
		op->user_tag = job->options.tags[call->launch->role];
		return;
	}
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
	op->user_tag = job->options.tags[call->launch->role];
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
 * A Send to itself increments the device's counter of channel 0 but not the host's (2.26 to 2.30): from then on
 * that channel's timestamps are those of earlier kernels. The recorder detects this.
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
	if (stream->has_drifted && op->gpu_start_ns != 0 && op->kernels_stopped > 0) {
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

/*
 * Without kernel or proxy events the end is not seen. A later completion on the same communicator proves that it
 * ended.
 */
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

/*
 * Two CUDA events around the launch: one time for all of its operations, on the recorder's clock. In a hang the recorder
 * asks whether the GPU has reached the launch.
 */
static void set_cuda_times(struct op_record *op, const struct sim_job *job,
			   const struct sim_clocks *clocks, const struct sim_outcome *outcome,
			   uint64_t seen_until_ns)
{
	const struct sim_launch *launch = outcome->call->launch;
	bool is_pair = !op_is_collective(op->function);
	uint64_t gone_ns = sim_job_gone_ns(job, launch->rank);
	uint64_t end_ns = is_pair ? launch->end_ns : outcome->end_ns, reached_ns;

	op->flags &= ~(uint32_t)OP_FLAG_NOT_SAMPLED;
	op->flags |= OP_FLAG_CUDA_EVENT;
	/* A Send and its Recv run at the same time. */
	if (launch->count > (is_pair ? 2u : 1u))
		op->flags |= OP_FLAG_SHARED_TIME;
	if (outcome->is_over) {
		op->gpu_start_ns = sim_clock(clocks, launch->start_ns) + clocks->place_ns;
		op->gpu_stop_ns =
			op->gpu_start_ns + ((end_ns - launch->start_ns) / EVENT_RESOLUTION_NS + 1) *
						   EVENT_RESOLUTION_NS;
		if (op->active_ns == 0)
			op->active_ns = op->gpu_start_ns;
		op->state = OP_DONE;
		op->done_ns = op->gpu_stop_ns;
		op->time_source = OP_TIME_KERNEL_GPU;
		return;
	}
	/* A stopped process does not ask any more. */
	seen_until_ns = gone_ns < seen_until_ns ? gone_ns : seen_until_ns;
	reached_ns = launch->launch_ns + REACHED_NS;
	if (launch->start_ns > reached_ns)
		reached_ns = launch->start_ns;
	if (launch->start_ns != 0 && reached_ns <= seen_until_ns && op->active_ns == 0) {
		op->active_ns = sim_clock(clocks, reached_ns);
		op->state = OP_RUNNING;
	}
	if (launch->launch_ns + SEEN_OPEN_NS <= seen_until_ns)
		op->flags |= OP_FLAG_SEEN_OPEN;
}

/*
 * Everything except the sequence. Notes in the stream which GPU timestamps are wrong. `seen_until_ns`: the end of what
 * the recorder saw.
 */
static void sim_record_make(struct op_record *op, const struct sim_job *job,
			    const struct sim_identity *identity, struct sim_stream *stream,
			    uint32_t comm_id, const struct sim_outcome *outcome,
			    uint64_t seen_until_ns)
{
	const struct sim_clocks *clocks = &identity->clocks;
	const struct sim_call *call = outcome->call;

	*op = (struct op_record){ .comm = comm_id,
				  .number = call->number,
				  .match = call->shown_match,
				  .signature = call->signature };
	/* Until its task joins a timed launch. */
	if (sim_job_has_cuda_events(job))
		op->flags |= OP_FLAG_NOT_SAMPLED;
	set_message(op, job, call);
	set_host_times(op, job, clocks, call);
	if (call->launch->phase == SIM_CAPTURED && job->interface >= 5) {
		op->task_ns = op->launch_ns = 0;
		op->peer = OP_NOBODY;
		op->state = OP_CAPTURED;
		return;
	}
	if (call->launch->phase == SIM_REPLAYED && job->interface >= 5) {
		op->flags |= OP_FLAG_REPLAY;
		op->captured_number = call->launch->captured->number;
	}
	if (is_api_only(job, call->function)) {
		op->task_ns = op->launch_ns = 0;
		op->state = OP_ISSUED;
		op->flags |= OP_FLAG_API_ONLY;
		return;
	}
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
	if (job->times == SIM_TIMES_KERNEL) {
		set_kernels(op, job, clocks, outcome);
		spoil_stamps(op, job, clocks, stream, outcome);
	}
	set_proxies(op, outcome);
	set_state(op, job, clocks, outcome);
	if (call->launch->is_timed)
		set_cuda_times(op, job, clocks, outcome, seen_until_ns);
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

/* An open transfer: the timestamps of the states it has reached; the last one says since when. */
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

static int sim_record_details(struct op_detail details[SIM_DETAILS_MAX], const struct sim_job *job,
			      const struct sim_identity *identity, uint32_t comm_id,
			      const struct sim_outcome *outcome)
{
	const struct sim_clocks *clocks = &identity->clocks;
	int count = 0;

	if (is_api_only(job, outcome->call->function) || outcome->call->launch->is_unlaunched)
		return 0;
	for (int i = 0; job->times == SIM_TIMES_KERNEL && i < outcome->kernel_count; i++)
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

enum {
	PENDING_BYTES = 96 << 20, /* for all ranks together */
	PENDING_LEAST = 128,
	CLOSE_NS = 30000000, /* from the last call to the end of the recording */
};

/* The process's own number of a rank's communicator; 0: none. */
static uint32_t sim_trace_comm_id(const struct sim_job *job, int rank, int role)
{
	uint32_t id = 0;

	if (job->members[rank][role].comm == -1)
		return 0;
	for (int i = 0; i <= role; i++)
		id += job->members[rank][i].comm != -1;
	return id;
}

static void file_path(struct sim_trace *trace, const struct sim_file *file)
{
	char name[96];

	sim_identity_file(&file->identity, name, sizeof(name));
	text_format(trace->failed, sizeof(trace->failed), "%s/%s", trace->directory, name);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/*
 * Blocks are assembled in memory and copied to the end of the file. A writer on the file itself would preallocate
 * disk space and release it each time it is closed, which takes milliseconds, and there are thousands of files.
 */
static void blocks_begin(const struct sim_trace *trace, struct trace_writer *writer)
{
	*writer = (struct trace_writer){ .fd = trace->blocks_fd,
					 .buffer = trace->buffer,
					 .encoder = trace->encoder };
}

static enum status copy_blocks(const struct sim_trace *trace, int fd, uint64_t size)
{
	off_t from = 0;

	while ((uint64_t)from < size) {
		ssize_t sent = sendfile(fd, trace->blocks_fd, &from, size - (uint64_t)from);

		if (sent == -1 && errno == EINTR)
			continue;
		if (sent <= 0)
			return errno == ENOSPC || errno == EDQUOT ? ERR_NO_SPACE : ERR_SYSTEM;
	}
	return OK;
}

/* `status` is that of the blocks; they are copied if it is OK. */
static enum status blocks_end(struct sim_trace *trace, struct sim_file *file,
			      const struct trace_writer *writer, enum status status)
{
	int fd;

	if (status != OK)
		return status;
	file_path(trace, file);
	fd = open(trace->failed, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return ERR_SYSTEM;
	if (lseek(fd, (off_t)file->bytes, SEEK_SET) == -1)
		status = ERR_SYSTEM;
	else
		status = copy_blocks(trace, fd, writer->bytes);
	close(fd);
	if (status != OK)
		return status;
	file->bytes += writer->bytes;
	trace->failed[0] = '\0';
	return OK;
}

static enum status write_anchor(const struct sim_file *file, struct trace_writer *writer,
				uint64_t ns)
{
	const struct clock_anchor anchor = { .clock_ns = sim_clock(&file->identity.clocks, ns),
					     .wall_ns = sim_wall(&file->identity.clocks, ns) };

	return trace_write_records(writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
}

static enum status write_comms(const struct sim_trace *trace, const struct sim_file *file,
			       struct trace_writer *writer)
{
	struct comm_info infos[SIM_ROLES];
	uint32_t count = 0;

	for (int role = 0; role < SIM_ROLES; role++)
		if (trace->job->members[file->identity.rank][role].comm != -1)
			infos[count++] = file->comms[role];
	return trace_write_records(writer, TRACE_COMM, infos, sizeof(infos[0]), count);
}

static enum status write_counts(const struct sim_trace *trace, const struct sim_engine *engine,
				struct sim_file *file, struct trace_writer *writer,
				enum trace_block_type type, uint64_t ns)
{
	struct trace_counts counts = { .clock_ns = sim_clock(&file->identity.clocks, ns),
				       .trace_records = file->sequence,
				       .ring_head = file->sequence };
	bool is_snapshot = sim_job_is_snapshot(trace->job);
	struct trace_comm_counts comms[SIM_ROLES];
	int rank = file->identity.rank;

	for (int role = 0; role < SIM_ROLES; role++) {
		const struct sim_stream *stream = &engine->ranks[rank].streams[role];
		struct comm_counts *own = &file->counts[role];

		if (trace->job->members[rank][role].comm == -1)
			continue;
		own->issued = stream->numbers;
		own->collectives = stream->collectives;
		own->replays = stream->replays;
		own->signature = stream->signature;
		comms[counts.comms++] =
			(struct trace_comm_counts){ .id = file->comms[role].id, .counts = *own };
		/* In a snapshot, operations in flight are not recorded yet. */
		if (!is_snapshot)
			continue;
		comms[counts.comms - 1].counts.recorded -= file->in_flight[role];
		counts.trace_records -= file->in_flight[role];
		counts.ring_head -= file->in_flight[role];
	}
	return trace_write_counts(writer, type, &counts, comms);
}

static int compare_pending(const void *a, const void *b)
{
	const struct sim_pending *first = a, *second = b;

	if (first->done_ns != second->done_ns)
		return first->done_ns < second->done_ns ? -1 : 1;
	if (first->op.comm != second->op.comm)
		return first->op.comm < second->op.comm ? -1 : 1;
	return first->op.number < second->op.number ? -1 : first->op.number > second->op.number;
}

static int role_of(const struct sim_file *file, uint32_t comm_id)
{
	int role = 0;

	while (file->comms[role].id != comm_id)
		role++;
	return role;
}

/* Counts like the recorder when a record is finished. */
static void count_record(struct sim_file *file, struct op_record *op)
{
	int role = role_of(file, op->comm);
	struct comm_counts *counts = &file->counts[role];
	struct comm_info *info = &file->comms[role];

	op->sequence = ++file->sequence;
	counts->recorded++;
	counts->captured += op->state == OP_CAPTURED;
	counts->replayed += (op->flags & OP_FLAG_REPLAY) != 0;
	counts->timed += op_has_duration(op);
	counts->untrusted += (op->flags & OP_STAMPS_UNTRUSTED) != 0;
	if (op->issue_ns > counts->last_issue_ns)
		counts->last_issue_ns = op->issue_ns;
	if (op->kernels_started > 0)
		info->flags |= COMM_FLAG_SEES_KERNELS;
	if (op->proxies_started > 0)
		info->flags |= COMM_FLAG_SEES_PROXIES;
	if (op->state != OP_DONE)
		return;
	if (op->done_ns > counts->last_done_ns)
		counts->last_done_ns = op->done_ns;
	if (op->number > counts->last_done_number)
		counts->last_done_number = op->number;
	if (op->flags & OP_FLAG_CUDA_EVENT) {
		info->place_error_ns = SIM_PLACE_ERROR_NS;
	} else if (op->time_source == OP_TIME_KERNEL_GPU) {
		int64_t offset = (int64_t)(op->gpu_stop_ns - op->done_ns);

		if (info->gpu_offset_at_ns == 0 || offset > info->gpu_offset_ns) {
			info->gpu_offset_ns = offset;
			info->gpu_offset_at_ns = op->done_ns;
		}
	}
}

static enum status write_details(struct sim_file *file, struct trace_writer *writer)
{
	enum status status = OK;

	if (file->detail_count > 0)
		status = trace_write_details(writer, file->details, file->detail_count);
	file->detail_count = 0;
	return status;
}

/* Writes the oldest records, all except `keep` of them. */
static enum status write_pending(struct sim_trace *trace, struct sim_file *file,
				 struct trace_writer *writer, uint32_t keep)
{
	uint32_t count = file->pending_count > keep ? file->pending_count - keep : 0;
	enum status status = OK;
	uint32_t done = 0;

	qsort(file->pending, file->pending_count, sizeof(*file->pending), compare_pending);
	while (done < count && status == OK) {
		uint32_t some = 0;

		for (; some < TRACE_OPS_PER_BLOCK && done < count; some++, done++) {
			trace->block[some] = file->pending[done].op;
			count_record(file, &trace->block[some]);
		}
		status = trace_write_ops(writer, trace->block, some);
	}
	for (uint32_t i = count; i < file->pending_count; i++)
		file->pending[i - count] = file->pending[i];
	file->pending_count -= count;
	return status;
}

static enum status file_flush(struct sim_trace *trace, const struct sim_engine *engine,
			      struct sim_file *file, uint32_t keep)
{
	struct trace_writer writer;
	enum status status;
	uint64_t ns;

	blocks_begin(trace, &writer);
	status = write_pending(trace, file, &writer, keep);
	if (status == OK)
		status = write_details(file, &writer);
	ns = engine->ranks[file->identity.rank].host_ns;
	if (status == OK)
		status = write_anchor(file, &writer, ns);
	if (status == OK)
		status = write_counts(trace, engine, file, &writer, TRACE_COUNTS, ns);
	return blocks_end(trace, file, &writer, status);
}

/* ---- records --------------------------------------------------------------------------------- */

static enum status add_details(struct sim_trace *trace, struct sim_engine *engine,
			       struct sim_file *file, uint32_t comm_id,
			       const struct sim_outcome *outcome)
{
	struct op_detail details[SIM_DETAILS_MAX];
	int count = sim_record_details(details, trace->job, &file->identity, comm_id, outcome);

	if (file->details == NULL)
		file->details = malloc(TRACE_OPS_PER_BLOCK * sizeof(*file->details));
	if (file->details == NULL)
		return ERR_NO_SPACE;
	for (int i = 0; i < count; i++) {
		if (file->detail_count == TRACE_OPS_PER_BLOCK) {
			enum status status = file_flush(trace, engine, file, file->pending_count);

			if (status != OK)
				return status;
		}
		details[i].sequence = ++file->detail_sequence;
		file->details[file->detail_count++] = details[i];
	}
	return OK;
}

/* What a capture makes, as the plugin's is_chosen_in_graph() does: Sends and Recvs are not timed. */
static void choose_in_graph(struct sim_trace *trace, struct sim_launch *launch)
{
	const struct sim_job *job = trace->job;
	struct sim_file *file = &trace->files[launch->rank];
	const struct sim_call *call = launch->calls;
	bool is_all = job->options.graph_times == SIM_GRAPH_TIMES_ALL;
	struct op_record op = { .comm = 0 };

	set_message(&op, job, call);
	if (job->options.graph_times == SIM_GRAPH_TIMES_NONE || !op_is_collective(op.function) ||
	    is_api_only(job, op.function) || (!is_all && op.bytes < TIMING_GRAPH_LEAST_BYTES) ||
	    !file->has_timed ||
	    (!is_all && !timing_graph_choose(&file->credit_ns[launch->role], op.bytes)) ||
	    file->pair_count == PAIRS)
		return;
	if (file->pairs == NULL)
		file->pairs = calloc(PAIRS, sizeof(*file->pairs));
	if (file->pairs == NULL)
		return;
	launch->captured->pair = &file->pairs[file->pair_count];
	launch->captured->pair->index = file->pair_count++;
	launch->captured->pair->role = launch->role;
}

void sim_trace_choose(struct sim_trace *trace, struct sim_launch *launch)
{
	const struct sim_job *job = trace->job;
	struct sim_file *file = &trace->files[launch->rank];
	const struct sim_call *first = launch->calls;
	bool is_wanted = job->times == SIM_TIMES_ALL, is_collective;
	struct timing_pace *pace;
	uint64_t number, now;

	if (!sim_job_has_cuda_events(job) || first == NULL || launch->phase == SIM_REPLAYED)
		return;
	if (launch->phase == SIM_CAPTURED) {
		choose_in_graph(trace, launch);
		return;
	}
	pace = &file->paces[launch->role];
	for (const struct sim_call *call = first; call; call = call->next) {
		struct op_record op = { .comm = 0 };

		set_message(&op, job, call);
		is_wanted |= timing_is_new(&file->kinds[launch->role], op.function, op.bytes);
		if (call != first)
			continue;
		is_collective = op_is_collective(op.function);
		number = is_collective ? call->shown_match : call->number;
		now = sim_clock(&file->identity.clocks, first->issue_ns);
		is_wanted |= timing_launch_count(&file->launches, TIMING_PAUSE_NS, now);
		is_wanted |= timing_pace_count(pace, is_collective, number, &file->launches, now);
		is_wanted |= timing_is_drawn(
			launch->comm->hash, number,
			timing_share(pace->interval_ns, pace->own_interval_ns, op.bytes));
	}
	/* Without KernelLaunch there is nothing to record events around. */
	launch->is_timed = is_wanted && !is_api_only(job, first->function);
	file->has_timed |= launch->is_timed;
}

static enum status make_room(struct sim_trace *trace, struct sim_engine *engine,
			     struct sim_file *file)
{
	if (file->pending == NULL)
		file->pending = malloc(trace->pending_room * sizeof(*file->pending));
	if (file->pending == NULL)
		return ERR_NO_SPACE;
	if (file->pending_count == trace->pending_room)
		return file_flush(trace, engine, file, trace->pending_room / 4);
	return OK;
}

/* Has the recorder asked this pair after `from_ns`, and before `to_ns`? */
static bool is_asked(const struct sim_trace *trace, const struct sim_file *file,
		     const struct sim_pair *pair, uint64_t from_ns, uint64_t to_ns)
{
	int rank = file->identity.rank;
	uint64_t phase_ns = sim_random_below(PASS_NS, trace->job->options.seed, 7, (uint64_t)rank);
	uint64_t gone_ns = sim_job_gone_ns(trace->job, rank);
	unsigned int count = file->pair_count;

	to_ns = gone_ns < to_ns ? gone_ns : to_ns;
	for (uint64_t pass = from_ns / PASS_NS; pass * PASS_NS + phase_ns < to_ns; pass++) {
		unsigned int first = (unsigned int)(pass * PASS_PAIRS % count);

		if (pass * PASS_NS + phase_ns > from_ns &&
		    (pair->index + count - first) % count < PASS_PAIRS)
			return true;
	}
	return false;
}

static void set_replay_times(struct op_record *op, const struct sim_clocks *clocks,
			     const struct sim_pair *pair)
{
	op->flags &= ~(uint32_t)OP_FLAG_NOT_SAMPLED;
	op->flags |= OP_FLAG_CUDA_EVENT;
	op->gpu_start_ns = sim_clock(clocks, pair->start_ns) + clocks->place_ns;
	op->gpu_stop_ns =
		op->gpu_start_ns +
		((pair->end_ns - pair->start_ns) / EVENT_RESOLUTION_NS + 1) * EVENT_RESOLUTION_NS;
	if (op->active_ns == 0)
		op->active_ns = op->gpu_start_ns;
	if (op->gpu_stop_ns > op->done_ns)
		op->done_ns = op->gpu_stop_ns;
	op->state = OP_DONE;
	op->time_source = OP_TIME_KERNEL_GPU;
}

/* Only its time shows that it ran. */
static void make_found(struct op_record *op, struct sim_stream *stream,
		       const struct sim_clocks *clocks, const struct sim_pair *pair)
{
	*op = pair->call;
	op->flags = OP_FLAG_REPLAY | OP_FLAG_REPLAY_READ;
	op->captured_number = op->number;
	op->number = ++stream->numbers;
	op->match = op->signature = 0;
	stream->found++;
	set_replay_times(op, clocks, pair);
	op->issue_ns = op->launch_ns = op->task_ns = op->gpu_start_ns;
}

/* Its last replay can be read until `until_ns`. Is it? */
static enum status end_replay(struct sim_trace *trace, struct sim_engine *engine,
			      struct sim_file *file, struct sim_pair *pair, uint64_t until_ns)
{
	struct sim_stream *stream = &engine->ranks[file->identity.rank].streams[pair->role];
	bool is_shown = pair->replay.op.comm != 0, is_read;
	enum status status;

	if (!pair->has_replay)
		return OK;
	pair->has_replay = false;
	is_read = is_asked(trace, file, pair, pair->end_ns, until_ns);
	if (!is_read && !is_shown)
		return OK;
	status = make_room(trace, engine, file);
	if (status != OK)
		return status;
	if (is_shown && is_read)
		set_replay_times(&pair->replay.op, &file->identity.clocks, pair);
	else if (!is_shown)
		make_found(&pair->replay.op, stream, &file->identity.clocks, pair);
	pair->replay.done_ns = pair->replay.op.done_ns;
	file->pending[file->pending_count++] = pair->replay;
	return OK;
}

static enum status begin_replay(struct sim_trace *trace, struct sim_engine *engine,
				struct sim_file *file, struct sim_pair *pair,
				const struct sim_outcome *outcome, bool *is_held)
{
	const struct sim_launch *launch = outcome->call->launch;
	enum status status = end_replay(trace, engine, file, pair,
					launch->start_ns ? launch->start_ns : UINT64_MAX);

	*is_held = status == OK && outcome->is_over;
	if (!*is_held)
		return status;
	pair->has_replay = true;
	pair->replay = (struct sim_pending){ 0 };
	pair->start_ns = launch->start_ns;
	pair->end_ns = outcome->end_ns;
	return OK;
}

/* The recorder writes what it knows of the last replays. */
static enum status end_replays(struct sim_trace *trace, struct sim_engine *engine,
			       struct sim_file *file)
{
	enum status status = OK;

	for (unsigned int i = 0; i < file->pair_count && status == OK; i++)
		status = end_replay(trace, engine, file, &file->pairs[i], engine->end_ns);
	return status;
}

static void make_record(const struct sim_trace *trace, const struct sim_engine *engine,
			const struct sim_file *file, const struct sim_outcome *outcome,
			struct sim_pending *pending)
{
	const struct sim_launch *launch = outcome->call->launch;
	struct sim_stream *stream = &engine->ranks[launch->rank].streams[launch->role];

	sim_record_make(&pending->op, trace->job, &file->identity, stream,
			file->comms[launch->role].id, outcome, engine->end_ns);
	pending->done_ns = pending->op.done_ns;
	if (pending->done_ns == 0)
		pending->done_ns = sim_clock(&file->identity.clocks,
					     launch->phase == SIM_CAPTURED ? launch->launch_ns
					     : outcome->is_over		   ? outcome->end_ns
									   : UINT64_MAX / 2);
}

enum status sim_trace_add(struct sim_trace *trace, struct sim_engine *engine,
			  const struct sim_outcome *outcome)
{
	const struct sim_launch *launch = outcome->call->launch;
	struct sim_file *file = &trace->files[launch->rank];
	struct sim_pair *pair = launch->captured != NULL ? launch->captured->pair : NULL;
	bool is_open = !outcome->is_over && launch->phase != SIM_CAPTURED, is_held = false;
	struct sim_pending made;
	enum status status = make_room(trace, engine, file);

	if (status == OK && launch->phase == SIM_REPLAYED && pair != NULL)
		status = begin_replay(trace, engine, file, pair, outcome, &is_held);
	if (status != OK || launch->is_hidden)
		return status;
	make_record(trace, engine, file, outcome, &made);
	if (launch->phase == SIM_CAPTURED && pair != NULL)
		pair->call = made.op;
	if (is_held) {
		pair->replay = made;
	} else {
		status = make_room(trace, engine, file);
		if (status != OK)
			return status;
		file->pending[file->pending_count++] = made;
	}
	if (is_open)
		file->in_flight[launch->role]++;
	if (made.op.proxies_stopped > 0)
		status = sim_links_add(&file->links, file->comms[launch->role].id, outcome);
	if (status == OK && launch->phase != SIM_CAPTURED &&
	    (trace->job->options.is_full || is_open))
		status = add_details(trace, engine, file, file->comms[launch->role].id, outcome);
	return status;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static enum status write_head(struct sim_trace *trace, struct sim_file *file,
			      struct trace_writer *writer)
{
	struct comm_info known[SIM_ROLES];
	enum status status;
	char text[2048];
	uint32_t count = 0;

	if (!sim_identity_text(&file->identity, trace->job, text, sizeof(text)))
		return ERR_NO_SPACE;
	status = trace_write_text(writer, TRACE_PROCESS, text, strnlen(text, sizeof(text)));
	if (status == OK)
		status = write_anchor(file, writer, 0);
	if (status != OK)
		return status;
	for (int role = 0; role < SIM_ROLES; role++) {
		uint32_t id = sim_trace_comm_id(trace->job, file->identity.rank, role);

		if (id == 0)
			continue;
		sim_identity_comm(&file->identity, trace->job, role, id, &file->comms[role]);
		known[count] = file->comms[role];
		/* Before 2.27 the identity comes with the first operation. */
		if (trace->job->interface < 4) {
			known[count].hash = 0;
			known[count].rank = -1;
		}
		count++;
	}
	return trace_write_records(writer, TRACE_COMM, known, sizeof(known[0]), count);
}

static enum status file_begin(struct sim_trace *trace, struct sim_file *file, int rank)
{
	struct trace_writer writer;
	enum status status;

	sim_identity_make(&file->identity, trace->job, rank);
	file_path(trace, file);
	status = trace_writer_open_at(&writer, trace->failed, 0600, 0,
				      sim_wall(&file->identity.clocks, 0));
	if (status != OK)
		return status;
	file->bytes = writer.bytes;
	trace_writer_close(&writer);
	blocks_begin(trace, &writer);
	status = write_head(trace, file, &writer);
	return blocks_end(trace, file, &writer, status);
}

/*
 * Creates the directory and all files, up to their first operation. ERR_SYSTEM with errno, or ERR_NO_SPACE;
 * `failed` has the path. `directory` and `job` are borrowed.
 */
static enum status sim_trace_init(struct sim_trace *trace, const struct sim_job *job,
				  const char *directory)
{
	size_t world = (size_t)job->world;
	enum status status = OK;

	*trace = (struct sim_trace){ .job = job, .directory = directory, .blocks_fd = -1 };
	text_copy(trace->failed, sizeof(trace->failed), directory);
	if (mkdir(directory, 0700) == -1 && errno != EEXIST)
		return ERR_SYSTEM;
	trace->pending_room = (uint32_t)(PENDING_BYTES / sizeof(struct sim_pending) / world);
	if (trace->pending_room > 2 * TRACE_OPS_PER_BLOCK)
		trace->pending_room = 2 * TRACE_OPS_PER_BLOCK;
	if (trace->pending_room < PENDING_LEAST)
		trace->pending_room = PENDING_LEAST;
	trace->files = calloc(world, sizeof(*trace->files));
	trace->buffer = malloc(sizeof(struct trace_block) + TRACE_BLOCK_PAYLOAD_MAX);
	trace->encoder = trace_encoder_new();
	trace->block = malloc(TRACE_OPS_PER_BLOCK * sizeof(*trace->block));
	trace->blocks_fd = memfd_create("blocks", MFD_CLOEXEC);
	if (!trace->files || !trace->buffer || !trace->encoder || !trace->block)
		status = ERR_NO_SPACE;
	else if (trace->blocks_fd == -1)
		status = ERR_SYSTEM;
	for (int rank = 0; rank < job->world && status == OK; rank++)
		status = file_begin(trace, &trace->files[rank], rank);
	return status;
}

/* How the file ends: closed; like that of a hung process; or cut, if it was killed. */
static enum status write_tail(struct sim_trace *trace, const struct sim_engine *engine,
			      struct sim_file *file, struct trace_writer *writer)
{
	const struct sim_rank *rank = &engine->ranks[file->identity.rank];
	uint64_t killed_ns = sim_job_killed_ns(trace->job, file->identity.rank);
	bool is_closed = rank->end == SIM_FINISHED;
	uint64_t ns = is_closed ? rank->host_ns + CLOSE_NS : engine->end_ns;
	enum status status = OK;

	if (rank->end == SIM_DEAD || (!is_closed && killed_ns < ns)) {
		/* Before 2.27 the identity came with the first operation: a recorder writes it at once. */
		if (trace->job->interface < 4)
			status = write_comms(trace, file, writer);
		if (status != OK)
			return status;
		return write_counts(trace, engine, file, writer, TRACE_COUNTS, killed_ns);
	}
	for (int role = 0; role < SIM_ROLES && is_closed; role++) {
		file->comms[role].flags |= COMM_FLAG_FINALIZED;
		file->comms[role].finalize_ns = sim_clock(&file->identity.clocks, ns - 1000000);
	}
	status = write_comms(trace, file, writer);
	if (status == OK)
		status = write_anchor(file, writer, ns);
	if (status == OK)
		status = write_counts(trace, engine, file, writer,
				      is_closed ? TRACE_CLOSE : TRACE_COUNTS, ns);
	return status;
}

static enum status file_end(struct sim_trace *trace, struct sim_engine *engine, int rank)
{
	struct sim_file *file = &trace->files[rank];
	uint64_t killed_ns = sim_job_killed_ns(trace->job, rank);
	struct trace_writer writer;
	enum status status = OK;

	/* What a killed process had in flight is lost. */
	if (engine->ranks[rank].end != SIM_FINISHED && killed_ns > engine->end_ns)
		status = sim_outcome_open_calls(engine, rank);
	if (status == OK)
		status = end_replays(trace, engine, file);
	if (status != OK)
		return status;
	blocks_begin(trace, &writer);
	status = write_pending(trace, file, &writer, 0);
	if (status == OK)
		status = write_details(file, &writer);
	if (status == OK)
		status = sim_links_write(&file->links, &writer);
	if (status == OK)
		status = write_tail(trace, engine, file, &writer);
	return blocks_end(trace, file, &writer, status);
}

/* At the end of the run: writes what is in flight and the end of each file. */
static enum status sim_trace_finish(struct sim_trace *trace, struct sim_engine *engine)
{
	enum status status = OK;

	for (int rank = 0; rank < trace->job->world && status == OK; rank++)
		status = file_end(trace, engine, rank);
	return status;
}

static void sim_trace_release(struct sim_trace *trace)
{
	for (int rank = 0; trace->files && rank < trace->job->world; rank++) {
		free(trace->files[rank].pending);
		free(trace->files[rank].pairs);
		free(trace->files[rank].details);
		sim_links_release(&trace->files[rank].links);
	}
	free(trace->files);
	free(trace->buffer);
	free(trace->encoder);
	free(trace->block);
	if (trace->blocks_fd != -1)
		close(trace->blocks_fd);
	*trace = (struct sim_trace){ .blocks_fd = -1 };
}

static enum sim_result_end offline_end_of(const struct sim_job *job,
					  const struct sim_engine *engine, int rank)
{
	if (engine->ranks[rank].end == SIM_FINISHED)
		return SIM_RESULT_FINISHED;
	if (sim_job_killed_ns(job, rank) <= engine->end_ns)
		return SIM_RESULT_KILLED;
	return engine->ranks[rank].end == SIM_STOPPED ? SIM_RESULT_STOPPED : SIM_RESULT_HUNG;
}

static void fill_result(struct sim_result *result, const struct sim_job *job,
			const struct sim_engine *engine, const struct sim_trace *trace)
{
	result->end = engine->is_hung ? SIM_RESULT_HUNG : SIM_RESULT_FINISHED;
	result->ns = engine->end_ns;
	result->still_ns = engine->latest_ns;
	result->iterations = engine->ranks[0].iteration;
	for (int rank = 0; rank < job->world; rank++) {
		struct sim_result_rank *one = &result->ranks[rank];
		const struct sim_file *file = &trace->files[rank];

		one->end = offline_end_of(job, engine, rank);
		one->pid = file->identity.pid;
		text_copy(one->host, sizeof(one->host), file->identity.host);
		result->bytes += file->bytes;
		for (int role = 0; role < SIM_ROLES; role++) {
			const struct sim_stream *stream = &engine->ranks[rank].streams[role];

			one->issued[role] = stream->numbers - stream->found + stream->hidden;
			one->hidden[role] = stream->hidden;
			one->in_flight[role] = file->in_flight[role];
		}
	}
}

enum status sim_offline_run(const struct sim_job *job, const char *directory,
			    struct sim_result *result, char *failed, size_t size)
{
	struct sim_engine engine = { 0 };
	struct sim_trace trace;
	enum status status = sim_trace_init(&trace, job, directory);
	int error;

	if (status == OK)
		status = sim_engine_init(&engine, job, &trace);
	if (status == OK)
		status = sim_engine_run(&engine);
	if (status == OK)
		status = sim_trace_finish(&trace, &engine);
	if (status == OK)
		fill_result(result, job, &engine, &trace);
	error = errno;
	text_copy(failed, size, trace.failed);
	sim_engine_release(&engine);
	sim_trace_release(&trace);
	errno = error;
	return status;
}
