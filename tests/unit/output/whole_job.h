/*
 * Two jobs with a bit of everything, as trace files in memory. All numbers are round ones.
 *
 * "train" has ranks 0 and 1 on node-a, 2 and 3 on node-b; all in "world", pairs in "tp-0" and "tp-1". A round takes 10 ms:
 * an AllReduce of 1 MiB in world, to which rank 1 comes 1 ms late, an AllGather of 64 KiB in the pair, and a Send from rank 0
 * to rank 2. The recorder's clock of node-b is 5 s ahead. Rank 0 begins with odd records. Rank 3 was killed, lost
 * records, and has two operations in flight. "eval" is one rank of two; its communicator has no name.
 */
#ifndef WHOLE_JOB_H
#define WHOLE_JOB_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/recording.h"
#include "tests/support/sample_trace.h"

enum { WHOLE_OPS = 2048, WHOLE_RANKS = 4, WHOLE_DETAILS = 16 };
#define WHOLE_START_NS UINT64_C(1000000000)
#define WHOLE_AHEAD_NS UINT64_C(5000000000)
#define WHOLE_ROUND_NS UINT64_C(10000000)
#define WHOLE_WALL_NS UINT64_C(1700000000000000000)

struct whole_rank {
	struct comm_info comms[2];
	uint32_t comm_count;
	struct comm_counts counts[2];
	struct op_record ops[WHOLE_OPS];
	uint32_t count;
	struct op_detail details[WHOLE_DETAILS];
	uint32_t detail_count;
	uint64_t ahead_ns;
	uint64_t lost[LOST_REASONS];
};

static inline void whole_comm(struct whole_rank *rank, uint64_t hash, const char *name,
			      int32_t number, int32_t nranks, int32_t nnodes)
{
	struct comm_info *comm = &rank->comms[rank->comm_count++];

	*comm = (struct comm_info){ .id = rank->comm_count,
				    .interface = 5,
				    .hash = hash,
				    .rank = number,
				    .nranks = nranks,
				    .nnodes = nnodes,
				    .init_ns = rank->ahead_ns + WHOLE_START_NS,
				    .gpu = number % 2,
				    .place_error_ns = hash == 0x33 ? 20000 : 0 };
	snprintf(comm->name, sizeof(comm->name), "%s", name);
}

/* Ends at end_ns after the start, and took duration_ns on the GPU. */
static inline struct op_record *whole_op(struct whole_rank *rank, uint32_t comm, uint8_t function,
					 uint64_t bytes, uint64_t duration_ns, uint64_t end_ns)
{
	struct comm_counts *counts = &rank->counts[comm - 1];
	struct op_record *op = &rank->ops[rank->count++];
	uint64_t at_ns = rank->ahead_ns + WHOLE_START_NS + end_ns;
	bool is_collective = function != OP_SEND && function != OP_RECV;

	if (rank->count > WHOLE_OPS)
		abort();
	counts->issued++;
	counts->recorded++;
	counts->timed++;
	counts->collectives += is_collective;
	*op = (struct op_record){
		.sequence = rank->count,
		.comm = comm,
		.function = function,
		.datatype = OP_FLOAT32,
		.algorithm = OP_RING,
		.protocol = OP_SIMPLE,
		.number = counts->issued,
		.match = is_collective ? counts->collectives : 0,
		.signature = rank->comms[comm - 1].hash * 65536 + counts->collectives,
		.count = bytes / 4,
		.bytes = bytes,
		.nccl_sequence = rank->count,
		.stream = 0x7f00,
		.root = OP_NOBODY,
		.peer = OP_NOBODY,
		.state = OP_DONE,
		.time_source = OP_TIME_KERNEL_GPU,
		.channels = 2,
		.warps = 16,
		.issue_ns = at_ns - duration_ns - 30000,
		.launch_ns = at_ns - duration_ns - 20000,
		.task_ns = at_ns - duration_ns - 10000,
		.active_ns = at_ns - duration_ns,
		.done_ns = at_ns + rank->count % 4 * 5000, /* seen a bit later */
		.gpu_start_ns = at_ns - duration_ns + 7000000000,
		.gpu_stop_ns = at_ns + 7000000000,
		.start_spread_ns = 300,
		.stop_spread_ns = 400,
		.kernels_started = 2,
		.kernels_stopped = 2,
		.proxies_started = 1,
		.proxies_stopped = 1,
		.send_bytes = bytes,
		.recv_bytes = bytes,
		.wait_ns = { 1000, 2000, 3000, 4000, 5000, 6000 },
		.send_steps = 4,
		.recv_steps = 4,
	};
	counts->last_issue_ns = op->issue_ns;
	counts->last_done_ns = op->done_ns;
	counts->last_done_number = op->number;
	return op;
}

/* Its launch had CUDA events around it: nothing is known of its channels, and its place is the recorder's. */
static inline void whole_cuda_event(struct op_record *op)
{
	op->flags |= OP_FLAG_CUDA_EVENT;
	op->gpu_start_ns -= 7000000000;
	op->gpu_stop_ns -= 7000000000;
	op->start_spread_ns = op->stop_spread_ns = 0;
	op->kernels_started = op->kernels_stopped = 0;
}

/* Not timed, by the host's clock, by the proxy's, untrusted, captured, abandoned; with a root and a tag. */
static inline void whole_odd_ops(struct whole_rank *rank)
{
	struct op_record *op;

	op = whole_op(rank, 2, OP_BROADCAST, 4096, 100000, 200000);
	op->root = 1;
	op->user_tag = 42;
	op->time_source = OP_TIME_HOST;
	op = whole_op(rank, 2, OP_REDUCE, OP_BYTES_UNKNOWN, 100000, 400000);
	op->root = 0;
	op->time_source = OP_TIME_NONE;
	op->state = OP_LAUNCHED;
	op->flags = OP_FLAG_API_ONLY | OP_FLAG_AFTER_GAP;
	op->gpu_start_ns = op->gpu_stop_ns = op->active_ns = op->done_ns = 0;
	op->count = op->send_bytes = op->recv_bytes = 0;
	rank->counts[1].timed--;
	op = whole_op(rank, 2, OP_ALL_REDUCE, 128, 100000, 600000);
	op->time_source = OP_TIME_PROXY;
	op->flags = OP_FLAG_STAMP_ZERO | OP_FLAG_REPLAY;
	op->captured_number = 1;
	rank->counts[1].untrusted++;
	op = whole_op(rank, 2, OP_ALL_REDUCE, 0, 100000, 800000);
	op->state = OP_ABANDONED;
	op->algorithm = OP_TREE;
	op->protocol = OP_LL;
	rank->counts[1].abandoned++;
}

static inline struct op_detail *whole_detail(struct whole_rank *rank, uint8_t kind, uint16_t flags,
					     uint64_t start_ns)
{
	struct op_detail *detail = &rank->details[rank->detail_count++];
	uint64_t at_ns = rank->ahead_ns + WHOLE_START_NS + start_ns;

	if (rank->detail_count > WHOLE_DETAILS)
		abort();
	*detail =
		(struct op_detail){ .sequence = rank->detail_count,
				    .comm = 1,
				    .kind = kind,
				    .channel = 3,
				    .flags = flags,
				    .number = 1,
				    .peer = 2,
				    .step = 4,
				    .time_ns = { at_ns, at_ns + 1000, at_ns + 3000, at_ns + 6000 },
				    .bytes = 512 };
	return detail;
}

/* Every kind of detail, finished, open, and with missing timestamps. */
static inline void whole_details(struct whole_rank *rank)
{
	struct op_detail *detail;
	uint64_t *time_ns;

	for (unsigned int i = 0; i < 4; i++) {
		uint16_t send = i % 2 ? OP_DETAIL_IS_SEND : 0;

		detail = whole_detail(rank, i < 2 ? OP_DETAIL_PROXY : OP_DETAIL_STEP, send,
				      (i + 2) * 1000000);
		detail->channel = (uint8_t)i;
		detail = whole_detail(rank, i < 2 ? OP_DETAIL_PROXY : OP_DETAIL_STEP, send,
				      (i + 3) * 1000000);
		detail->channel = (uint8_t)i;
		detail->time_ns[3] = 0;
		detail->time_ns[i % 2] = 0;
	}
	detail = whole_detail(rank, OP_DETAIL_STEP, OP_DETAIL_IS_FOREIGN, 7000000);
	detail->comm = 0;
	detail->number = 0;
	detail->origin_pid = 4711;
	time_ns = whole_detail(rank, OP_DETAIL_KERNEL, 0, 8000000)->time_ns;
	time_ns[0] = time_ns[2] + 7000000000;
	time_ns[1] = time_ns[3] + 7000000000;
	time_ns = whole_detail(rank, OP_DETAIL_KERNEL, 0, 9000000)->time_ns;
	time_ns[0] = time_ns[1] = 0;
	time_ns = whole_detail(rank, OP_DETAIL_KERNEL, 0, 9500000)->time_ns;
	time_ns[0] = time_ns[1] = time_ns[3] = 0;
	time_ns = whole_detail(rank, OP_DETAIL_PROXY, 0, 9600000)->time_ns;
	memset(time_ns, 0, 4 * sizeof(*time_ns));
}

static inline void whole_rounds(struct whole_rank *rank, int number, uint64_t rounds)
{
	for (uint64_t i = 1; i <= rounds; i++) {
		uint64_t at_ns = i * WHOLE_ROUND_NS;

		struct op_record *gather;

		whole_op(rank, 1, OP_ALL_REDUCE, 1 << 20, number == 1 ? 1000000 : 2000000, at_ns);
		gather = whole_op(rank, 2, OP_ALL_GATHER, 1 << 16, 500000, at_ns + 2000000);
		if (number >= 2)
			whole_cuda_event(gather);
		if (number == 0)
			whole_op(rank, 1, OP_SEND, 1 << 14, 250000, at_ns + 4000000)->peer = 2;
		if (number == 2)
			whole_op(rank, 1, OP_RECV, 1 << 14, 250000, at_ns + 4000000)->peer = 0;
	}
}

/* `is_closed` false: the process was killed. */
static inline void whole_file(struct recording *recording, const struct whole_rank *rank,
			      const char *info, bool is_closed)
{
	struct sample sample = { NULL, 0, 0 };
	struct {
		struct trace_counts counts;
		struct trace_comm_counts comms[2];
	} last = { .counts = { .trace_records = rank->count,
			       .ring_head = rank->count,
			       .comms = rank->comm_count } };
	struct clock_anchor anchor = { rank->ahead_ns + WHOLE_START_NS, WHOLE_WALL_NS };

	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(&sample, TRACE_COMM, rank->comms, rank->comm_count * sizeof(struct comm_info),
		     rank->comm_count);
	sample_block(&sample, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
	for (uint32_t i = 0; i < rank->count; i += SAMPLE_ROWS_MAX)
		sample_coded(&sample, TRACE_OPS, rank->ops + i, OP_RECORD_WORDS,
			     rank->count - i < SAMPLE_ROWS_MAX ? rank->count - i : SAMPLE_ROWS_MAX);
	if (rank->detail_count > 0)
		sample_coded(&sample, TRACE_DETAILS, rank->details, OP_DETAIL_WORDS,
			     rank->detail_count);
	last.counts.clock_ns = rank->ops[rank->count - 1].done_ns + 1000000;
	memcpy(last.counts.lost, rank->lost, sizeof(last.counts.lost));
	for (uint32_t i = 0; i < rank->comm_count; i++)
		last.comms[i] = (struct trace_comm_counts){ i + 1, rank->counts[i] };
	sample_block(&sample, is_closed ? TRACE_CLOSE : TRACE_COUNTS, &last,
		     sizeof(last.counts) + rank->comm_count * sizeof(last.comms[0]), 1);
	if (recording_add_memory(recording, "memory", sample.bytes, sample.size, 0) != OK)
		abort();
	free(sample.bytes);
}

static inline void whole_train(struct recording *recording, int number, uint64_t rounds)
{
	struct whole_rank *rank = calloc(1, sizeof(*rank));
	const char *pair = number < 2 ? "tp-0" : "tp-1";
	char info[512];

	if (rank == NULL)
		abort();
	snprintf(info, sizeof(info),
		 "host=node-%c\nboot_id=12345678-1234-1234-1234-12345678000%d\npid=%d\n"
		 "pid_namespace=4026531836\nstart_ticks=987\njob=train\nrank=%d\nlocal_rank=%d\n"
		 "world_size=4\nmode=full\ninterface=5\nlabel.team=blue\n",
		 number < 2 ? 'a' : 'b', number < 2, 100 + number, number, number % 2);
	rank->ahead_ns = number < 2 ? 0 : WHOLE_AHEAD_NS;
	whole_comm(rank, 0x11, "world", number, WHOLE_RANKS, 2);
	whole_comm(rank, number < 2 ? 0x22 : 0x33, pair, number % 2, 2, 1);
	if (number == 0)
		whole_odd_ops(rank);
	else
		rank->counts[1].issued = rank->counts[1].collectives = 4;
	if (number == 0 || number == 3)
		whole_details(rank);
	whole_rounds(rank, number, rounds);
	if (number == 3) {
		for (uint32_t i = rank->count / 2; i < rank->count; i++)
			rank->ops[i].sequence += 2;
		rank->lost[LOST_RING_OVERRUN] = 2;
		rank->lost[LOST_DETAIL_OVERRUN] = 1;
	}
	whole_file(recording, rank, info, number != 3);
	free(rank);
}

static inline void whole_eval(struct recording *recording)
{
	struct whole_rank *rank = calloc(1, sizeof(*rank));

	if (rank == NULL)
		abort();
	whole_comm(rank, 0xeeee, "", 1, 2, 2);
	for (uint64_t i = 1; i <= 3; i++)
		whole_op(rank, 1, OP_REDUCE_SCATTER, 1 << 10, i * 100000, i * WHOLE_ROUND_NS);
	whole_file(recording, rank, "host=node-c\npid=7\njob=eval\nrank=1\nmode=trace\n", true);
	free(rank);
}

/* What rank 3 was in: an AllReduce that waits for data from rank 2, and an AllGather behind it. */
static inline void whole_flights(struct recording_process *process)
{
	struct recording_flight *flights = calloc(3, sizeof(*flights));

	if (flights == NULL)
		abort();
	for (unsigned int i = 0; i < 3; i++) {
		flights[i].op = (struct op_record){
			.comm = i < 2 ? 1 : 2,
			.function = i == 1 ? OP_ALL_GATHER : OP_ALL_REDUCE,
			.datatype = OP_BFLOAT16,
			.number = 1000 + i,
			.match = 1000 + i,
			.count = 512,
			.bytes = 1024,
			.root = OP_NOBODY,
			.peer = OP_NOBODY,
			.state = i == 0 ? OP_RUNNING : OP_ISSUED,
			.issue_ns = process->counts_ns - 500000 + i * 1000,
			.kernels_started = i == 0,
		};
		flights[i].started[0] = i == 0;
	}
	flights[0].proxies = calloc(1, sizeof(*flights[0].proxies));
	if (flights[0].proxies == NULL)
		abort();
	flights[0].proxy_count = 1;
	flights[0].proxies[0].proxy = (struct region_proxy){ .peer = 2, .steps = 8 };
	free(process->flights);
	process->flights = flights;
	process->flight_count = 3;
}

/* The caller releases it. */
static inline void whole_make(struct recording *recording, uint64_t rounds)
{
	recording_init(recording);
	for (int i = 0; i < WHOLE_RANKS; i++)
		whole_train(recording, i, rounds);
	whole_eval(recording);
	if (recording_finish(recording) != OK)
		abort();
	for (size_t i = 0; i < recording->count; i++)
		if (recording->processes[i]->rank == 3) {
			recording->processes[i]->life = RECORDING_KILLED;
			whole_flights(recording->processes[i]);
		}
}

#endif
