/* Synthetic jobs and what synthetic profilers recorded of them, for tests of the comparison and its output. */
#ifndef PROFILERS_STAGE_H
#define PROFILERS_STAGE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_result.h"
#include "recording/recording.h"
#include "tests/support/sample_trace.h"

enum { STAGE_RANKS = 2, STAGE_PID = 5000, STAGE_ALIGN_BYTES = 4 };

/* Faults of a synthetic profiler. */
struct stage_faults {
	bool is_rank_missing;	/* rank 1 has no file */
	uint32_t lose_every;	/* of the calls that it sees; 0: none */
	uint32_t untimed_every; /* likewise */
	uint32_t double_every;	/* recorded twice */
	bool is_size_unknown;
	bool is_without_pid; /* only the rank identifies the process */
	double factor;	     /* reported / measured */
	uint64_t lost;	     /* the losses it reports */
};

struct stage_job {
	struct bench_run bench;
	struct recording recording;
	uint64_t now_ns;
};

/* Two ranks, wall time starting at SAMPLE_CREATED_NS. */
static inline void stage_init(struct stage_job *job)
{
	bench_run_init(&job->bench);
	recording_init(&job->recording);
	job->now_ns = SAMPLE_CREATED_NS + 1000000;
	if (bench_run_set_ranks(&job->bench, STAGE_RANKS) != OK)
		abort();
	job->bench.nodes = 1;
	job->bench.nccl_version = 22809;
	job->bench.cuda_version = 13000;
	job->bench.is_gpu_shared = true;
	job->bench.is_mps = true;
	job->bench.started_ns = SAMPLE_CREATED_NS;
	for (int32_t rank = 0; rank < STAGE_RANKS; rank++) {
		struct bench_rank *place = &job->bench.ranks[rank];

		snprintf(place->host, sizeof(place->host), "node-1");
		snprintf(place->gpu_name, sizeof(place->gpu_name), "NVIDIA H200");
		place->pid = STAGE_PID + rank;
	}
}

static inline void stage_release(struct stage_job *job)
{
	bench_run_release(&job->bench);
	recording_release(&job->recording);
}

/* Calls of slightly more than 20 us each, times `factor`. */
static inline struct bench_cell *stage_cell(struct stage_job *job, uint8_t mode, uint8_t function,
					    uint64_t bytes, uint32_t calls, double factor)
{
	bool is_shared = function == OP_ALL_GATHER || function == OP_REDUCE_SCATTER;
	struct bench_cell like = { .function = function,
				   .datatype = OP_INT32,
				   .redop = BENCH_SUM,
				   .mode = mode,
				   .root = -1,
				   .nranks = STAGE_RANKS,
				   .count = bytes / 4 / (is_shared ? STAGE_RANKS : 1),
				   .bytes = bytes,
				   .wrong = 0,
				   .calls = calls,
				   .warmups = 2,
				   .checks = 1,
				   .captured = mode == BENCH_GRAPH ? 5 : 0,
				   .aligns = mode == BENCH_BLOCKING ? calls : 0 };
	struct bench_cell *cell = bench_run_add_cell(&job->bench, &like);

	if (cell == NULL)
		abort();
	job->now_ns += 2 * 100000;
	for (uint32_t i = 0; i < calls; i++) {
		for (int32_t rank = 0; rank < STAGE_RANKS; rank++) {
			struct bench_call *call = &cell->calls_of[(size_t)rank * calls + i];

			call->begin_ns = job->now_ns + 500;
			call->gpu_ns = (uint64_t)((20000 + 100 * (i % 7)) * factor);
			call->issue_ns = (uint64_t)((4000 + 10 * (i % 5)) * factor);
			call->done_ns = mode == BENCH_BLOCKING ? call->gpu_ns + 5000 : 0;
		}
		job->now_ns += 100000;
	}
	job->now_ns += 100000;
	return cell;
}

struct stage_writer {
	struct sample sample;
	const struct stage_faults *faults;
	struct op_record rows[SAMPLE_ROWS_MAX];
	uint32_t count;
	uint64_t sequence;
	uint64_t number;
	uint64_t seen;
	int32_t rank;
};

static inline void stage_flush(struct stage_writer *writer)
{
	if (writer->count > 0)
		sample_coded(&writer->sample, TRACE_OPS, writer->rows, OP_RECORD_WORDS,
			     writer->count);
	writer->count = 0;
}

static inline void stage_put(struct stage_writer *writer, const struct op_record *like)
{
	struct op_record *row = &writer->rows[writer->count++];

	*row = *like;
	row->sequence = ++writer->sequence;
	row->number = ++writer->number;
	row->match = row->number;
	if (writer->count == SAMPLE_ROWS_MAX)
		stage_flush(writer);
}

/* A call as the profiler sees it; the recorder's clock is wall time minus SAMPLE_CREATED_NS. */
static inline void stage_call(struct stage_writer *writer, uint8_t function, uint64_t bytes,
			      uint64_t wall_ns, uint64_t time_ns, uint8_t state)
{
	const struct stage_faults *faults = writer->faults;
	uint64_t at = wall_ns - SAMPLE_CREATED_NS;
	struct op_record op = { .comm = 1,
				.function = function,
				.datatype = OP_INT32,
				.count = bytes / 4,
				.bytes = faults->is_size_unknown ? OP_BYTES_UNKNOWN : bytes,
				.root = OP_NOBODY,
				.peer = OP_NOBODY,
				.state = state,
				.channels = 1,
				.issue_ns = at,
				.done_ns = at + time_ns + 1000 };

	if (state != OP_CAPTURED) {
		writer->seen++;
		if (faults->lose_every && writer->seen % faults->lose_every == 0) {
			writer->number++;
			return;
		}
	}
	if (state != OP_CAPTURED &&
	    (faults->untimed_every == 0 || writer->seen % faults->untimed_every != 0)) {
		op.time_source = OP_TIME_KERNEL_GPU;
		op.gpu_start_ns = 9000000000 + at;
		op.gpu_stop_ns = op.gpu_start_ns + time_ns;
		op.kernels_started = op.kernels_stopped = 1;
	}
	stage_put(writer, &op);
	if (faults->double_every && writer->seen % faults->double_every == 0)
		stage_put(writer, &op);
}

static inline void stage_record_cell(struct stage_writer *writer, const struct bench_cell *cell)
{
	uint64_t first = cell->calls ? bench_cell_call(cell, writer->rank, 0)->begin_ns : 0;
	uint64_t last = first + UINT64_C(100000) * cell->calls;

	for (uint32_t i = 0; i < cell->captured; i++)
		stage_call(writer, cell->function, cell->bytes, first - 900, 0, OP_CAPTURED);
	for (uint32_t i = 0; i < cell->warmups; i++)
		stage_call(writer, cell->function, cell->bytes, first - 150000 + 50000 * i, 77000,
			   OP_DONE);
	for (uint32_t i = 0; i < cell->calls; i++) {
		const struct bench_call *call = bench_cell_call(cell, writer->rank, i);

		if (cell->aligns)
			stage_call(writer, OP_ALL_REDUCE, STAGE_ALIGN_BYTES, call->begin_ns - 40000,
				   9000, OP_DONE);
		stage_call(writer, cell->function, cell->bytes, call->begin_ns + 800,
			   (uint64_t)(call->gpu_ns * writer->faults->factor + 0.5), OP_DONE);
	}
	for (uint32_t i = 0; i < cell->checks; i++)
		stage_call(writer, cell->function, cell->bytes, last + 10000, 66000, OP_DONE);
}

static inline void stage_close(struct stage_writer *writer)
{
	struct {
		struct trace_counts counts;
		struct trace_comm_counts comm;
	} payload = { .comm.id = 1 };

	payload.counts.clock_ns = UINT64_C(1) << 40;
	payload.counts.trace_records = writer->sequence;
	payload.counts.ring_head = writer->sequence;
	payload.counts.lost[LOST_RING_OVERRUN] = writer->faults->lost;
	payload.counts.comms = 1;
	payload.comm.counts.issued = writer->number;
	payload.comm.counts.recorded = writer->sequence;
	sample_block(&writer->sample, TRACE_CLOSE, &payload, sizeof(payload), 1);
}

/* Another file of the job's recording: that of one rank. */
static inline void stage_record_rank(struct stage_job *job, int32_t rank,
				     const struct stage_faults *faults)
{
	struct stage_writer writer = { .faults = faults, .rank = rank };
	struct comm_info comm = sample_comm(1);
	struct clock_anchor anchor = { 0, SAMPLE_CREATED_NS };
	char info[256], name[32];

	comm.rank = rank;
	comm.nranks = STAGE_RANKS;
	snprintf(info, sizeof(info), "host=node-1\npid=%d\nrank=%d\nmode=trace\ninterface=5\n",
		 faults->is_without_pid ? 99 + rank : STAGE_PID + rank, rank);
	snprintf(name, sizeof(name), "rank%d", rank);
	sample_header(&writer.sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&writer.sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(&writer.sample, TRACE_COMM, &comm, sizeof(comm), 1);
	sample_block(&writer.sample, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
	for (size_t i = 0; i < job->bench.cell_count; i++)
		stage_record_cell(&writer, &job->bench.cells[i]);
	stage_flush(&writer);
	stage_close(&writer);
	if (recording_add_memory(&job->recording, name, writer.sample.bytes, writer.sample.size,
				 0) != OK)
		abort();
	free(writer.sample.bytes);
}

/* The job's recording, by a profiler with these faults. */
static inline void stage_record(struct stage_job *job, const struct stage_faults *faults)
{
	for (int32_t rank = 0; rank < STAGE_RANKS; rank++)
		if (rank == 0 || !faults->is_rank_missing)
			stage_record_rank(job, rank, faults);
	if (recording_finish(&job->recording) != OK)
		abort();
}

#endif
