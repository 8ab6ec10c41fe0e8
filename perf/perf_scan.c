/*
 * How fast a trace file is written and read, on one core, and its size: a file with the operations of a typical job
 * (four communicators, collectives and sends, a dozen sizes, varying times), which is then read in several ways.
 *
 * Usage: perf_scan [MILLIONS [DIRECTORY]], or perf_scan FILE to read an existing trace file. Prints one "name
 * value" line per result: millions of operations per second, the best of three rounds, in CPU time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"
#include "format/trace_read.h"
#include "format/trace_write.h"
#include "recording/recording.h"

enum { ROUNDS = 3, COMMS = 4, BLOCK = TRACE_OPS_PER_BLOCK };

static char path[512];
static struct op_record block[BLOCK];

static void fail(const char *what)
{
	fprintf(stderr, "perf_scan: %s\n", what);
	exit(1);
}

static uint64_t now(void)
{
	return clock_system_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* ---- a job ------------------------------------------------------------------------------------ */

static struct {
	uint64_t random;
	uint64_t sequence;
	uint64_t issue_ns;
	uint64_t gpu_ns; /* when the GPU is free */
	uint64_t numbers[COMMS], matches[COMMS], signatures[COMMS];
} job = { .random = 1, .issue_ns = 1000000000, .gpu_ns = 1000000000 };

static uint64_t below(uint64_t limit)
{
	job.random = hash_word(job.random, 1);
	return (job.random >> 11) % limit;
}

/* Network times of operations that use it. */
static void add_network(struct op_record *op, uint64_t duration)
{
	op->proxies_started = op->proxies_stopped = 8;
	op->send_bytes = op->recv_bytes = op->bytes;
	op->send_steps = op->recv_steps = (uint32_t)(op->bytes >> 19) + 8;
	op->wait_ns[OP_WAIT_SEND_GPU] = duration / 8 + below(duration / 16);
	op->wait_ns[OP_WAIT_SEND_NET] = duration / 2 + below(duration / 8);
	op->wait_ns[OP_WAIT_RECV_NET] = duration / 2 + below(duration / 8);
}

static void add_times(struct op_record *op)
{
	uint64_t duration = 20000 + op->bytes / 40;

	duration += below(duration / 20);
	op->issue_ns = job.issue_ns += below(20) == 0 ? 200000 + below(100000) : 4000 + below(3000);
	op->launch_ns = op->issue_ns + 2500 + below(800);
	op->task_ns = op->launch_ns + 150 + below(30);
	if (job.gpu_ns < op->launch_ns)
		job.gpu_ns = op->launch_ns;
	op->active_ns = job.gpu_ns + 5000 + below(2000);
	job.gpu_ns += duration;
	op->done_ns = op->active_ns + duration + below(2000);
	if (below(200) != 0) {
		op->gpu_start_ns = 1700000000000000000 + job.gpu_ns - duration + below(300);
		op->gpu_stop_ns = op->gpu_start_ns + duration;
		op->start_spread_ns = (uint32_t)below(1500);
		op->stop_spread_ns = (uint32_t)below(1500);
		op->kernels_started = op->kernels_stopped = 8;
		op->time_source = OP_TIME_KERNEL_GPU;
	} else {
		op->time_source = op->proxies_stopped > 0 ? OP_TIME_PROXY : OP_TIME_HOST;
	}
	if (op->proxies_started > 0)
		add_network(op, duration);
}

static struct op_record next_op(void)
{
	static const uint8_t functions[8] = { OP_ALL_REDUCE,	 OP_ALL_GATHER, OP_REDUCE_SCATTER,
					      OP_REDUCE_SCATTER, OP_ALL_GATHER, OP_ALL_REDUCE,
					      OP_SEND,		 OP_RECV };
	uint32_t comm = (uint32_t)(job.sequence / 12 % COMMS);
	struct op_record op = { .sequence = ++job.sequence,
				.comm = comm + 1,
				.function = functions[job.sequence * 5 / 7 % 8],
				.datatype = OP_BFLOAT16,
				.algorithm = OP_RING,
				.protocol = OP_SIMPLE,
				.number = ++job.numbers[comm],
				.count = UINT64_C(4096) << job.sequence % 12,
				.stream = 0x7f0000001000 + 4096 * comm,
				.root = OP_NOBODY,
				.peer = OP_NOBODY,
				.state = OP_DONE,
				.channels = 8,
				.warps = 16 };

	op.bytes = 2 * op.count;
	op.match = ++job.matches[comm];
	op.nccl_sequence = op.match - 1;
	if (op.function == OP_SEND || op.function == OP_RECV)
		op.peer = (int32_t)below(8);
	else
		op.signature = job.signatures[comm] = op_signature(
			job.signatures[comm], op_signature_name(OP_NAMES_FUNCTION, op.function),
			op_signature_name(OP_NAMES_DATATYPE, op.datatype), op.root, op.count);
	op.proxies_started = comm % 2 == 1;
	add_times(&op);
	return op;
}

/* ---- figures ---------------------------------------------------------------------------------- */

static double millions_a_second(uint64_t operations, uint64_t ns)
{
	return ns == 0 ? 0 : (double)operations * 1e3 / (double)ns;
}

/* Writes the file; generating the operations is not timed. */
static void write_file(uint64_t operations)
{
	static const char info[] = "host=bench\nrank=0\nmode=trace\n";
	struct trace_counts counts = { .ring_head = operations, .trace_records = operations };
	struct trace_writer writer;
	uint64_t spent = 0;

	if (trace_writer_open(&writer, path, 0600, 0) != OK ||
	    trace_write_text(&writer, TRACE_PROCESS, info, strlen(info)) != OK)
		fail("cannot create the file");
	for (uint64_t done = 0; done < operations; done += BLOCK) {
		uint64_t before;

		for (int i = 0; i < BLOCK; i++)
			block[i] = next_op();
		before = now();
		if (trace_write_ops(&writer, block, BLOCK) != OK)
			fail("cannot write the file");
		spent += now() - before;
	}
	trace_write_counts(&writer, TRACE_CLOSE, &counts, NULL);
	printf("write %.1f\n", millions_a_second(operations, spent));
	printf("bytes_per_operation %.2f\n", (double)writer.bytes / (double)operations);
	trace_writer_close(&writer);
}

/* Finding the blocks and their checksums, like loading a recording. */
static uint64_t read_blocks(void)
{
	struct trace_reader reader;
	struct trace_item item;
	uint64_t operations = 0;

	if (trace_open(&reader, path, NULL) != OK)
		fail("cannot read the file");
	while (trace_next(&reader, &item) != TRACE_END)
		operations +=
			item.found == TRACE_BLOCK && item.type == TRACE_OPS ? item.records : 0;
	trace_close(&reader);
	return operations;
}

static bool count_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	(void)place;
	*(uint64_t *)context += batch->rows;
	return true;
}

static bool count_op(const struct op_record *op, enum recording_place place, void *context)
{
	(void)op, (void)place;
	*(uint64_t *)context += 1;
	return true;
}

enum way { BLOCKS, REPORT_WORDS, TIME_WORDS, ALL_WORDS, RECORDS, COPY, WAYS };

static uint64_t go(enum way way, const struct recording_process *process, uint64_t operations)
{
	/* Like `ringside report`. */
	const uint32_t report = (OP_WORDS_TIME & ~OP_WORD_BIT(OP_WORD_TASK)) |
				OP_WORD_BIT(OP_WORD_KIND) | OP_WORD_BIT(OP_WORD_MATCH) |
				OP_WORD_BIT(OP_WORD_SIGNATURE) | OP_WORD_BIT(OP_WORD_BYTES) |
				OP_WORD_BIT(OP_WORD_ENDS) | OP_WORD_BIT(OP_WORD_STEPS) |
				OP_WORD_BIT(OP_WORD_WAITS + OP_WAIT_SEND_NET);
	static struct op_record copy[BLOCK];
	uint64_t count = 0;

	switch (way) {
	case BLOCKS:
		return read_blocks();
	case REPORT_WORDS:
		recording_each_batch(process, report, count_batch, &count, NULL);
		return count;
	case TIME_WORDS:
		recording_each_batch(process, OP_WORDS_TIME, count_batch, &count, NULL);
		return count;
	case ALL_WORDS:
		recording_each_batch(process, OP_WORDS_ALL, count_batch, &count, NULL);
		return count;
	case RECORDS:
		recording_each_op(process, count_op, &count, NULL);
		return count;
	default:
		for (; count < operations; count += BLOCK) {
			memcpy(copy, block, sizeof(copy));
			__asm__ volatile("" : : "r"(copy) : "memory");
		}
		return count;
	}
}

static void measure(const struct recording_process *process, uint64_t operations)
{
	static const char *const names[WAYS] = { "blocks",    "report_words", "time_words",
						 "all_words", "records",      "copy" };

	for (enum way way = 0; way < WAYS; way++) {
		uint64_t best = UINT64_MAX;

		for (int round = 0; round < ROUNDS; round++) {
			uint64_t began = now(), spent;

			if (go(way, process, operations) < operations)
				fail("operations are missing");
			spent = now() - began;
			best = spent < best ? spent : best;
		}
		printf("%s %.1f\n", names[way], millions_a_second(operations, best));
	}
}

int main(int argc, char **argv)
{
	bool is_there = argc > 1 && strtoull(argv[1], NULL, 10) == 0;
	uint64_t millions = argc > 1 ? strtoull(argv[1], NULL, 10) : 4;
	struct recording recording;

	if (is_there) {
		text_copy(path, sizeof(path), argv[1]);
	} else {
		text_format(path, sizeof(path), "%s/perf_scan.%d.ringside",
			    argc > 2 ? argv[2] : "/tmp", (int)getpid());
		write_file((millions * 1000000 + BLOCK - 1) / BLOCK * BLOCK);
	}
	recording_init(&recording);
	if (recording_add(&recording, path, 0) != OK || recording_finish(&recording) != OK ||
	    recording.count != 1 || recording.processes[0]->file_count != 1)
		fail("cannot load the file");
	if (is_there)
		printf("bytes_per_operation %.2f\n",
		       (double)recording.processes[0]->files[0].bytes /
			       (double)recording.processes[0]->files[0].records);
	measure(recording.processes[0], recording.processes[0]->files[0].records);
	recording_release(&recording);
	if (!is_there)
		unlink(path);
	return 0;
}
