/*
 * Writes trace files of three ranks whose operations have tags.
 *
 *	tagged_trace DIRECTORY
 *
 *	ranks 0, 1	300 AllReduces on "pair", tags 1, 2, 3 in turn; rank 1 arrives 1000 ns later each time
 *	rank 2		60 AllGathers on "half", which has two ranks: the other one is not recorded; tag 2
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "format/trace_write.h"

#define SECOND UINT64_C(1000000000)
#define WALL (UINT64_C(1794708540) * SECOND)

static void must(enum status status, const char *what)
{
	if (status != OK) {
		fprintf(stderr, "tagged_trace: %s: %s\n", what, status_text(status));
		exit(1);
	}
}

static struct op_record make_op(uint32_t number, uint32_t rank)
{
	uint64_t done_ns = 10 * SECOND + number * 100000;
	uint64_t duration_ns = rank == 1 ? 4000 : 5000;

	return (struct op_record){ .sequence = number,
				   .comm = 1,
				   .function = rank < 2 ? OP_ALL_REDUCE : OP_ALL_GATHER,
				   .datatype = OP_FLOAT32,
				   .algorithm = OP_RING,
				   .protocol = OP_SIMPLE,
				   .number = number,
				   .match = number,
				   .signature = 77 + number,
				   .count = 256,
				   .bytes = 1024,
				   .user_tag = rank < 2 ? 1 + number % 3 : 2,
				   .root = OP_NOBODY,
				   .peer = OP_NOBODY,
				   .state = OP_DONE,
				   .time_source = OP_TIME_KERNEL_GPU,
				   .issue_ns = done_ns - 9000,
				   .done_ns = done_ns,
				   .gpu_start_ns = done_ns - duration_ns,
				   .gpu_stop_ns = done_ns,
				   .kernels_started = 1,
				   .kernels_stopped = 1 };
}

static void write_rank(const char *directory, uint32_t rank, uint32_t count)
{
	struct trace_counts total = {
		.clock_ns = 99 * SECOND, .trace_records = count, .ring_head = count, .comms = 1
	};
	struct trace_comm_counts counts = { .id = 1 };
	struct clock_anchor anchor = { .clock_ns = 9 * SECOND, .wall_ns = WALL };
	struct comm_info comm = { .id = 1,
				  .interface = 5,
				  .hash = rank < 2 ? 7 : 8,
				  .rank = (int32_t)rank % 2,
				  .nranks = 2,
				  .nnodes = 1,
				  .init_ns = SECOND,
				  .gpu = (int32_t)rank };
	struct trace_writer writer;
	char path[512], info[256];

	counts.counts.issued = counts.counts.recorded = counts.counts.collectives = count;
	counts.counts.last_done_number = count;
	text_copy(comm.name, sizeof(comm.name), rank < 2 ? "pair" : "half");
	text_format(path, sizeof(path), "%s/%u.ringside", directory, rank);
	text_format(info, sizeof(info),
		    "version=0.1.0\njob=tagged\nhost=node\nrank=%u\nworld_size=4\npid=%u\n"
		    "start_time=5\nmode=trace\n",
		    rank, 100 + rank);
	must(trace_writer_open(&writer, path, 0600, 0), path);
	must(trace_write_text(&writer, TRACE_PROCESS, info, strlen(info)), "process");
	must(trace_write_records(&writer, TRACE_COMM, &comm, sizeof(comm), 1), "comm");
	must(trace_write_records(&writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1), "anchor");
	for (uint32_t i = 1; i <= count; i++) {
		struct op_record op = make_op(i, rank);

		must(trace_write_ops(&writer, &op, 1), "operation");
	}
	must(trace_write_counts(&writer, TRACE_CLOSE, &total, &counts), "close");
	trace_writer_close(&writer);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: tagged_trace DIRECTORY\n");
		return 2;
	}
	write_rank(argv[1], 0, 300);
	write_rank(argv[1], 1, 300);
	write_rank(argv[1], 2, 60);
	return 0;
}
