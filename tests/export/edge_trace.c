/*
 * Writes trace files of processes with awkward names, numbers and clocks.
 *
 *	edge_trace DIRECTORY
 *
 *	rank 0	names that need quoting, numbers up to 2^64 - 1, unknown flags, two clock anchors
 *	rank 1	no anchor: wall time unknown
 *	no rank	no job, host, communicator or operation
 *	rank 7	more kinds of operations than a group has room for
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "format/trace_write.h"

#define SECOND UINT64_C(1000000000)
#define WALL (UINT64_C(1794708540) * SECOND) /* 2026-11-15T02:09:00Z */

enum { MANY = 17000, AT_ONCE = 1000 };

static void must(enum status status, const char *what)
{
	if (status != OK) {
		fprintf(stderr, "edge_trace: %s: %s\n", what, status_text(status));
		exit(1);
	}
}

static void open_trace(struct trace_writer *writer, const char *directory, const char *name,
		       const char *info)
{
	char path[512];

	text_format(path, sizeof(path), "%s/%s", directory, name);
	must(trace_writer_open(writer, path, 0600, 0), path);
	must(trace_write_text(writer, TRACE_PROCESS, info, strlen(info)), "process");
}

static void close_trace(struct trace_writer *writer, uint64_t records)
{
	struct trace_comm_counts counts = { .id = 1 };
	struct trace_counts total = {
		.clock_ns = 99 * SECOND, .trace_records = records, .ring_head = records, .comms = 1
	};

	counts.counts.issued = records;
	counts.counts.recorded = records;
	must(trace_write_counts(writer, TRACE_CLOSE, &total, &counts), "close");
	trace_writer_close(writer);
}

static void write_comm(struct trace_writer *writer, const char *name, int nranks, int nnodes)
{
	struct comm_info comm = { .id = 1,
				  .interface = 7,
				  .hash = UINT64_MAX,
				  .rank = nranks > 0 ? nranks - 1 : -1,
				  .nranks = nranks,
				  .nnodes = nnodes,
				  .init_ns = SECOND,
				  .gpu = -1 };

	text_copy(comm.name, sizeof(comm.name), name);
	must(trace_write_records(writer, TRACE_COMM, &comm, sizeof(comm), 1), "comm");
}

static struct op_record make_op(uint64_t number)
{
	struct op_record op = { .sequence = number,
				.comm = 1,
				.function = OP_ALL_REDUCE,
				.datatype = OP_FLOAT32,
				.algorithm = OP_RING,
				.protocol = OP_SIMPLE,
				.number = number,
				.match = number,
				.count = number,
				.bytes = 4 * number,
				.root = OP_NOBODY,
				.peer = OP_NOBODY,
				.state = OP_DONE,
				.time_source = OP_TIME_HOST,
				.issue_ns = 10 * SECOND + number * 1000,
				.done_ns = 10 * SECOND + number * 1001 };

	return op;
}

/* All fields at their maximum. */
static struct op_record make_largest(uint64_t number)
{
	struct op_record op = make_op(number);

	op.match = op.signature = op.count = op.nccl_sequence = UINT64_MAX;
	op.user_tag = op.stream = op.captured_number = UINT64_MAX;
	op.bytes = UINT64_MAX - 1;
	op.send_bytes = op.recv_bytes = UINT64_MAX;
	op.root = INT32_MAX;
	op.peer = INT32_MIN;
	op.channels = op.warps = 255;
	op.start_spread_ns = op.stop_spread_ns = UINT32_MAX;
	op.kernels_started = op.kernels_stopped = UINT16_MAX;
	op.proxies_started = op.proxies_stopped = UINT16_MAX;
	op.send_steps = op.recv_steps = UINT32_MAX;
	for (unsigned int i = 0; i < OP_WAITS; i++)
		op.wait_ns[i] = UINT64_MAX - i;
	op.gpu_start_ns = 1;
	op.gpu_stop_ns = UINT64_MAX;
	return op;
}

static uint32_t make_awkward(struct op_record *ops)
{
	uint32_t count = 0;

	ops[count] = make_op(count + 1), count++;
	ops[count] = make_largest(count + 1), count++;
	ops[count] = make_op(count + 1), count++;
	ops[count - 1].bytes = OP_BYTES_UNKNOWN;
	ops[count - 1].match = 0;
	ops[count - 1].function = OP_NAME_INTERNED;
	ops[count - 1].datatype = OP_DATATYPE_UNKNOWN;
	ops[count - 1].algorithm = OP_NAME_INTERNED + 1;
	ops[count - 1].protocol = OP_PROTOCOL_UNKNOWN;
	for (unsigned int state = OP_ISSUED; state < OP_STATES; state++) {
		ops[count] = make_op(count + 1), count++;
		ops[count - 1].state = (uint8_t)state;
		ops[count - 1].flags = 1u << state | 1u << 20;
	}
	/* Contradicting times, unknown times, times of the other anchor. */
	ops[count] = make_op(count + 1), count++;
	ops[count - 1].done_ns = 5;
	ops[count] = make_op(count + 1), count++;
	ops[count - 1].issue_ns = ops[count - 1].done_ns = 0;
	ops[count - 1].time_source = OP_TIME_NONE;
	ops[count] = make_op(count + 1), count++;
	ops[count - 1].issue_ns = 0;
	ops[count - 1].launch_ns = 60 * SECOND;
	ops[count - 1].done_ns = 61 * SECOND;
	ops[count] = make_op(count + 1), count++;
	ops[count - 1].issue_ns = 1;
	ops[count - 1].task_ns = UINT64_MAX;
	return count;
}

static void write_awkward(const char *directory)
{
	struct clock_anchor anchors[] = { { 2 * SECOND, WALL }, { 50 * SECOND, WALL + 7 } };
	struct trace_name names[] = { { OP_NAME_INTERNED, "All\"Gather\",V" },
				      { OP_NAME_INTERNED + 1, "R\xff\xc3\xbc" } };
	struct trace_writer writer;
	struct op_record ops[64];
	uint32_t count = make_awkward(ops);

	open_trace(&writer, directory, "awkward.ringside",
		   "host=node/1=a%b gr\xc3\xbc\xc3\x9f\njob=a \"job\", or 'two'\nrank=0\npid=1\n"
		   "boot_id=b\nstart_ticks=1\nmode=trace\n");
	write_comm(&writer, "t,p \"0\"\n\xe2\x86\x92\xff\xf0\x9d\x84\x9e", 8, 2);
	must(trace_write_records(&writer, TRACE_ANCHOR, anchors, sizeof(anchors[0]), 2), "anchors");
	must(trace_write_records(&writer, TRACE_NAME, names, sizeof(names[0]), 2), "names");
	must(trace_write_ops(&writer, ops, count), "ops");
	close_trace(&writer, count);
}

static void write_timeless(const char *directory)
{
	struct op_record ops[2] = { make_op(1), make_op(2) };
	struct trace_writer writer;

	open_trace(&writer, directory, "timeless.ringside",
		   "host=h\njob=1\nrank=1\npid=2\nboot_id=b\nstart_ticks=2\nmode=trace\n");
	write_comm(&writer, "", 1, 1);
	must(trace_write_ops(&writer, ops, 2), "ops");
	close_trace(&writer, 2);
}

static void write_nobody(const char *directory)
{
	struct trace_writer writer;

	open_trace(&writer, directory, "nobody.ringside", "pid=3\nstart_ticks=3\nmode=trace\n");
	close_trace(&writer, 0);
}

static void write_many(const char *directory)
{
	struct clock_anchor anchor = { 2 * SECOND, WALL };
	struct op_record ops[AT_ONCE];
	struct trace_writer writer;

	open_trace(&writer, directory, "many.ringside",
		   "host=h\njob=1\nrank=7\npid=4\nboot_id=b\nstart_ticks=4\nmode=trace\n");
	write_comm(&writer, "many", 4, 4);
	must(trace_write_records(&writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1), "anchor");
	for (uint64_t at = 0; at < MANY; at += AT_ONCE) {
		for (uint64_t i = 0; i < AT_ONCE; i++) {
			ops[i] = make_op(at + i + 1);
			ops[i].peer = (int32_t)(at + i);
			ops[i].proxies_started = (uint16_t)(at + i);
			ops[i].kernels_stopped = (uint16_t)(i % 3);
		}
		must(trace_write_ops(&writer, ops, AT_ONCE), "ops");
	}
	close_trace(&writer, MANY);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	write_awkward(argv[1]);
	write_timeless(argv[1]);
	write_nobody(argv[1]);
	write_many(argv[1]);
	return 0;
}
