/*
 * Writes trace files of four ranks with some timed calls, as with sampled kernel events.
 *
 *	sampled_trace DIRECTORY all|sampled|none
 *
 * Each rank has, on "world": 3,000 AllReduces of 1 MiB, 600 of 64 KiB and 300 Broadcasts of 4 KiB. With
 * `sampled`, blocks of eight collectives, about one in ten, are timed, the same on all ranks, and no Broadcast
 * is. Durations and waiting are the same in all three, so estimates can be compared with `all`.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/op_layout.h"
#include "common/text.h"
#include "format/trace_write.h"

#define SECOND UINT64_C(1000000000)
#define WALL (UINT64_C(1794708540) * SECOND)
enum { RANKS = 4, CALLS = 3900 };

static void must(enum status status, const char *what)
{
	if (status != OK) {
		fprintf(stderr, "sampled_trace: %s: %s\n", what, status_text(status));
		exit(1);
	}
}

static bool is_timed(const char *mode, uint32_t number, uint8_t function)
{
	if (strcmp(mode, "sampled") != 0)
		return strcmp(mode, "all") == 0;
	return function != OP_BROADCAST && hash_word(5, number / 8) % 10 == 0;
}

/* Ten calls of one round: large, large, small, large, ... and a Broadcast in most of them. */
static struct op_record make_op(uint32_t number, uint32_t rank, const char *mode)
{
	bool is_broadcast = number % 13 == 0, is_large = number % 6 != 0;
	uint64_t done_ns = 10 * SECOND + number * 400000;
	uint64_t base_ns = is_broadcast ? 20000 : is_large ? 100000 : 15000;
	uint64_t jitter_ns = hash_word(rank, number) % (base_ns / 10);
	uint64_t duration_ns = base_ns + jitter_ns;
	uint8_t function = is_broadcast ? OP_BROADCAST : OP_ALL_REDUCE;
	struct op_record op = { .sequence = number,
				.comm = 1,
				.function = function,
				.datatype = OP_FLOAT32,
				.algorithm = OP_RING,
				.protocol = OP_SIMPLE,
				.number = number,
				.match = number,
				.signature = 77 + number,
				.root = is_broadcast ? 0 : OP_NOBODY,
				.peer = OP_NOBODY,
				.state = OP_LAUNCHED,
				.issue_ns = done_ns - base_ns * 2,
				.launch_ns = done_ns - base_ns * 2 + 100 };

	op.bytes = is_broadcast ? 4096 : is_large ? 1048576 : 65536;
	op.count = op.bytes / 4;
	if (!is_timed(mode, number, function))
		return op;
	op.state = OP_DONE;
	op.time_source = OP_TIME_KERNEL_GPU;
	op.active_ns = done_ns - duration_ns;
	op.done_ns = done_ns;
	op.gpu_start_ns = done_ns - duration_ns;
	op.gpu_stop_ns = done_ns;
	op.kernels_started = op.kernels_stopped = 1;
	return op;
}

static void write_rank(const char *directory, uint32_t rank, const char *mode)
{
	struct trace_counts total = {
		.clock_ns = 99 * SECOND, .trace_records = CALLS, .ring_head = CALLS, .comms = 1
	};
	struct trace_comm_counts counts = { .id = 1 };
	struct clock_anchor anchor = { .clock_ns = 9 * SECOND, .wall_ns = WALL };
	struct comm_info comm = { .id = 1,
				  .interface = 5,
				  .hash = 7,
				  .rank = (int32_t)rank,
				  .nranks = RANKS,
				  .nnodes = 1,
				  .init_ns = SECOND,
				  .gpu = (int32_t)rank };
	struct trace_writer writer;
	char path[512], info[256];

	counts.counts.issued = counts.counts.recorded = counts.counts.collectives = CALLS;
	counts.counts.last_done_number = CALLS;
	text_copy(comm.name, sizeof(comm.name), "world");
	text_format(path, sizeof(path), "%s/%u.ringside", directory, rank);
	text_format(info, sizeof(info),
		    "version=0.1.0\njob=sampled\nhost=node\nrank=%u\nworld_size=4\npid=%u\n"
		    "start_time=5\nmode=trace\n",
		    rank, 100 + rank);
	must(trace_writer_open(&writer, path, 0600, 0), path);
	must(trace_write_text(&writer, TRACE_PROCESS, info, strlen(info)), "process");
	must(trace_write_records(&writer, TRACE_COMM, &comm, sizeof(comm), 1), "comm");
	must(trace_write_records(&writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1), "anchor");
	for (uint32_t i = 1; i <= CALLS; i++) {
		struct op_record op = make_op(i, rank, mode);

		counts.counts.timed += op.time_source != OP_TIME_NONE;
		must(trace_write_ops(&writer, &op, 1), "operation");
	}
	must(trace_write_counts(&writer, TRACE_CLOSE, &total, &counts), "close");
	trace_writer_close(&writer);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: sampled_trace DIRECTORY all|sampled|none\n");
		return 2;
	}
	for (uint32_t rank = 0; rank < RANKS; rank++)
		write_rank(argv[1], rank, argv[2]);
	return 0;
}
