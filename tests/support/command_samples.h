/*
 * Recordings of processes that have ended, for tests of commands. The bytes are the same each time, except for the boot
 * id, which is that of this machine, so that the processes are known to have ended.
 */
#ifndef COMMAND_SAMPLES_H
#define COMMAND_SAMPLES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "format/region_create.h"
#include "format/region_read.h"
#include "format/trace_write.h"

/* Larger than any pid on Linux. */
enum { COMMAND_NOBODY = 999999990 };

#define COMMAND_SECOND UINT64_C(1000000000)
#define COMMAND_START (1000 * COMMAND_SECOND)		     /* recorder's clock */
#define COMMAND_WALL (UINT64_C(1794708540) * COMMAND_SECOND) /* 2026-11-15T02:09:00Z */
#define COMMAND_HASH UINT64_C(0x1f2e3d4c5b6a7988)

static inline void command_must(enum status status, const char *what)
{
	if (status != OK) {
		fprintf(stderr, "samples: %s: %s\n", what, status_text(status));
		exit(1);
	}
}

/* Whose region it is, if not that of a process that has ended. */
static pid_t command_pid;
static uint64_t command_ticks = 4242;

/* Differences between the samples. */
struct command_sample {
	int rank;
	const char *mode;
	const char *region;
	const char *kernel_events;
	const char *extra;
};

static inline size_t command_make_info(char *info, size_t size, const struct command_sample *sample)
{
	char boot_id[40];

	region_boot_id(boot_id);
	text_format(info, size,
		    "host=nodea\nboot_id=%s\npid=%d\nstart_ticks=%llu\nuid=1000\njob=77\nrank=%d\n"
		    "local_rank=%d\nworld_size=2\nversion=0.1.0\nmode=%s\ninterface=5\nregion=%s\n"
		    "region_kind=shm\nkernel_events=%s\nlabel.team=blue\n%s",
		    boot_id, command_pid ? (int)command_pid : COMMAND_NOBODY + sample->rank,
		    (unsigned long long)command_ticks, sample->rank, sample->rank, sample->mode,
		    sample->region, sample->kernel_events, sample->extra);
	return strlen(info);
}

static inline struct comm_info command_make_comm(uint32_t id, const char *name, int rank)
{
	struct comm_info comm = { .id = id,
				  .interface = 5,
				  .hash = COMMAND_HASH + id,
				  .rank = rank,
				  .nranks = 2,
				  .nnodes = 2,
				  .flags = COMM_FLAG_SEES_KERNELS | COMM_FLAG_SEES_PROXIES,
				  .init_ns = COMMAND_START,
				  .gpu = rank,
				  .mask = 0xfdf,
				  .gpu_uuid = "GPU-00000000-1111-2222-3333-444444444444",
				  .gpu_bus = "0000:1b:00.0" };

	text_copy(comm.name, sizeof(comm.name), name);
	return comm;
}

static inline struct op_record command_make_op(uint64_t number, uint8_t function, uint64_t count)
{
	uint64_t at = COMMAND_START + number * 1000000;
	struct op_record op = { .sequence = number,
				.comm = 1,
				.function = function,
				.datatype = OP_BFLOAT16,
				.algorithm = OP_RING,
				.protocol = OP_SIMPLE,
				.number = number,
				.match = number,
				.signature = 0xabc0 + number,
				.count = count,
				.bytes = op_message_bytes(function, count, 2, 2),
				.nccl_sequence = number - 1,
				.stream = 0x7f0000001000,
				.root = OP_NOBODY,
				.peer = OP_NOBODY,
				.state = OP_DONE,
				.time_source = OP_TIME_KERNEL_GPU,
				.channels = 2,
				.warps = 16,
				.issue_ns = at,
				.launch_ns = at + 5000,
				.task_ns = at + 6000,
				.active_ns = at + 9000,
				.done_ns = at + 250000,
				.gpu_start_ns = COMMAND_WALL + at,
				.gpu_stop_ns = COMMAND_WALL + at + 240000,
				.start_spread_ns = 100,
				.stop_spread_ns = 200,
				.kernels_started = 2,
				.kernels_stopped = 2,
				.proxies_started = 4,
				.proxies_stopped = 4,
				.send_bytes = count * 2,
				.recv_bytes = count * 2,
				.wait_ns = { 1, 2, 3, 4, 5, 6 },
				.send_steps = 8,
				.recv_steps = 8 };

	return op;
}

static inline struct comm_counts command_make_counts(uint64_t issued, uint64_t recorded)
{
	struct comm_counts counts = { .issued = issued,
				      .recorded = recorded,
				      .timed = recorded,
				      .collectives = issued,
				      .signature = 0xabc,
				      .last_issue_ns = COMMAND_START + issued * 1000000,
				      .last_done_ns = COMMAND_START + recorded * 1000000 + 250000,
				      .last_done_number = recorded };

	return counts;
}

/* Functions in turn; the last one is a uint8 whose size NCCL does not report. */
static inline unsigned int command_make_ops(struct op_record *ops)
{
	ops[0] = command_make_op(1, OP_ALL_REDUCE, 1 << 20);
	ops[1] = command_make_op(2, OP_ALL_GATHER, 1000);
	ops[2] = command_make_op(3, OP_BROADCAST, 512);
	ops[2].root = 1;
	ops[3] = command_make_op(4, OP_ALL_REDUCE, 4);
	ops[3].flags = OP_FLAG_STAMP_STALE;
	ops[3].time_source = OP_TIME_PROXY;
	ops[4] = command_make_op(5, OP_ALL_REDUCE, 77);
	ops[4].datatype = OP_DATATYPE_UNKNOWN;
	ops[4].bytes = OP_BYTES_UNKNOWN;
	ops[4].time_source = OP_TIME_NONE;
	ops[4].state = OP_LAUNCHED;
	ops[4].done_ns = 0;
	return 5;
}

/* The name of the communicator. */
static const char *command_comm_name = "tp";

/* Why operations of the next trace were lost. */
static enum lost_reason command_lost_why = LOST_NO_COMM;

static inline void command_write_trace(const char *directory, const struct command_sample *sample,
				       uint64_t lost, bool is_closed)
{
	struct clock_anchor anchor = { .clock_ns = COMMAND_START, .wall_ns = COMMAND_WALL };
	struct comm_info comm = command_make_comm(1, command_comm_name, sample->rank);
	struct trace_comm_counts counts = { .id = 1 };
	struct trace_counts total = { .clock_ns = COMMAND_START + COMMAND_SECOND, .comms = 1 };
	struct trace_writer writer;
	struct op_record ops[8];
	char path[512], info[2048];
	unsigned int count = command_make_ops(ops);
	struct op_detail detail = { .sequence = 1,
				    .comm = 1,
				    .kind = OP_DETAIL_STEP,
				    .channel = 1,
				    .flags = OP_DETAIL_IS_SEND,
				    .number = 1,
				    .peer = 1 - sample->rank,
				    .step = 3,
				    .time_ns = { COMMAND_START, COMMAND_START + 10,
						 COMMAND_START + 20, COMMAND_START + 30 },
				    .bytes = 524288,
				    .origin_pid = 0 };

	text_format(path, sizeof(path), "%s/r%d-nodea-%d-4242.ringside", directory, sample->rank,
		    COMMAND_NOBODY + sample->rank);
	total.trace_records = count;
	total.ring_head = count;
	total.lost[command_lost_why] = lost;
	counts.counts = command_make_counts(count, count);
	counts.counts.timed = count - 1;
	counts.counts.untrusted = 1;
	command_must(trace_writer_open(&writer, path, 0600, 0), path);
	command_must(trace_write_text(&writer, TRACE_PROCESS, info,
				      command_make_info(info, sizeof(info), sample)),
		     "process");
	command_must(trace_write_records(&writer, TRACE_COMM, &comm, sizeof(comm), 1), "comm");
	command_must(trace_write_records(&writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1),
		     "anchor");
	command_must(trace_write_ops(&writer, ops, count), "ops");
	command_must(trace_write_details(&writer, &detail, 1), "details");
	if (is_closed)
		command_must(trace_write_counts(&writer, TRACE_CLOSE, &total, &counts), "close");
	trace_writer_close(&writer);
}

static inline uint64_t command_used(uint32_t open)
{
	return UINT64_C(1) << 32 | open;
}

/* A transfer of the second live operation, waiting since `since_ns`. */
static inline void command_add_proxy(struct region_writer *writer, uint32_t index, uint8_t channel,
				     bool is_send, uint8_t state, unsigned int stage,
				     uint64_t since_ns)
{
	struct region_proxy *proxy = &writer->proxies[index];

	*proxy = (struct region_proxy){ .word = command_used(0),
					.live = 1,
					.live_generation = 1,
					.comm = 1,
					.peer = 1,
					.channel = channel,
					.flags = is_send ? PROXY_IS_SEND : 0,
					.number = 6,
					.steps = 16,
					.chunk_bytes = 524288,
					.start_ns = since_ns - 1000,
					.since_ns = since_ns };
	if (state == 0)
		return;
	proxy->flags |= PROXY_IN_PROGRESS;
	proxy->posted = 5;
	proxy->transmitted = 3;
	proxy->done = 3;
	proxy->active_ns = since_ns - 500;
	proxy->open[3].step_plus_1 = 4;
	proxy->open[3].state = state;
	proxy->open[3].time_ns[stage] = since_ns;
	proxy->open[4].step_plus_1 = 5;
	proxy->open[4].state = 0xff;
}

static inline struct region_live *command_add_live(struct region_writer *writer, uint32_t index,
						   uint64_t number, uint8_t function, uint8_t state,
						   uint32_t open)
{
	struct region_live *live = &writer->live[index];

	*live = (struct region_live){ .word = command_used(open),
				      .op = command_make_op(number, function, 1 << 20) };
	live->op.sequence = 0;
	live->op.state = state;
	live->op.time_source = OP_TIME_NONE;
	live->op.done_ns = 0;
	live->op.gpu_start_ns = live->op.gpu_stop_ns = 0;
	live->op.kernels_started = live->op.kernels_stopped = 0;
	live->op.proxies_started = live->op.proxies_stopped = 0;
	live->op.start_spread_ns = live->op.stop_spread_ns = 0;
	if (state == OP_ISSUED)
		live->op.launch_ns = live->op.task_ns = live->op.active_ns = 0;
	if (state == OP_LAUNCHED)
		live->op.active_ns = 0;
	return live;
}

/* A running AllReduce that waits, a launched Send, and a Recv that was not launched. */
static inline void command_fill_live(struct region_writer *writer)
{
	struct region_live *live = command_add_live(writer, 1, 6, OP_ALL_REDUCE, OP_RUNNING, 4);
	uint64_t now = COMMAND_START + 30 * COMMAND_SECOND;

	live->started[0] = 3;
	live->stopped[0] = 1;
	live->op.kernels_started = 2;
	live->op.kernels_stopped = 1;
	live->op.proxies_started = 4;
	command_add_proxy(writer, 0, 0, false, 10, 0, now - 20 * COMMAND_SECOND);
	command_add_proxy(writer, 1, 1, false, 10, 0, now - 19 * COMMAND_SECOND);
	command_add_proxy(writer, 2, 0, true, 8, 0, now - 18 * COMMAND_SECOND);
	command_add_proxy(writer, 3, 1, true, 0, 0, now - 17 * COMMAND_SECOND);
	live = command_add_live(writer, 2, 7, OP_SEND, OP_LAUNCHED, 0);
	live->op.peer = 1;
	live = command_add_live(writer, 3, 8, OP_RECV, OP_ISSUED, 0);
	live->op.algorithm = live->op.protocol = 0;
	/* Finished although its end was not reported: operation 5 is done. */
	command_add_live(writer, 4, 4, OP_ALL_REDUCE, OP_LAUNCHED, 0);
	/* Finished but not moved to the ring yet. */
	live = command_add_live(writer, 5, 5, OP_ALL_REDUCE, OP_DONE, 0);
	live->op.done_ns = COMMAND_START + 5250000;
	writer->header->last_anchor =
		(struct clock_anchor){ now, COMMAND_WALL + 30 * COMMAND_SECOND };
}

/* A send on behalf of another process of the machine. */
static inline void command_fill_foreign(struct region_writer *writer)
{
	struct region_proxy *proxy = &writer->proxies[0];

	command_add_proxy(writer, 0, 3, true, 20, 1, COMMAND_START + COMMAND_SECOND / 2);
	proxy->live = proxy->live_generation = proxy->comm = 0;
	proxy->number = 0;
	proxy->origin_pid = COMMAND_NOBODY + 5;
	proxy->flags |= PROXY_IS_FOREIGN;
}

static inline void command_write_region(const char *directory, const struct command_sample *sample,
					bool has_live)
{
	struct region_request request = { .dir = directory,
					  .pid = command_pid
							 ? (uint64_t)command_pid
							 : COMMAND_NOBODY + (uint64_t)sample->rank,
					  .start_ticks = command_ticks,
					  .ring_bytes = 16 * OP_RECORD_BYTES,
					  .group = (gid_t)-1 };
	struct region_writer writer;
	struct region_header *header;
	struct stat namespace;
	struct op_record ops[8];
	unsigned int count = has_live ? 3 : command_make_ops(ops);

	command_make_ops(ops);
	command_must(region_create(&writer, &request), "region");
	header = writer.header;
	header->pid = request.pid;
	header->start_ticks = request.start_ticks;
	if (command_pid && stat("/proc/self/ns/pid", &namespace) == 0)
		header->pid_namespace = namespace.st_ino;
	region_boot_id(header->boot_id);
	header->mode = REGION_MODE_FLIGHT;
	header->kind = REGION_KIND_SHM;
	header->interface = 5;
	header->mask = 0xfdf;
	header->clock = (struct clock_source){ .kind = CLOCK_KIND_SYSTEM };
	header->first_anchor = header->last_anchor =
		(struct clock_anchor){ COMMAND_START, COMMAND_WALL };
	header->info_bytes = command_make_info(writer.info, REGION_INFO_BYTES, sample);
	header->comms_made = 1;
	header->ring_head = count;
	for (unsigned int i = 0; i < count; i++)
		writer.ring[i] = ops[i];
	writer.comms[0] =
		(struct region_comm){ .word = command_used(0),
				      .info = command_make_comm(1, command_comm_name, sample->rank),
				      .counts = command_make_counts(has_live ? 8 : count, count) };
	if (has_live) {
		command_fill_live(&writer);
		writer.comms[0].counts.last_done_number = 5;
	} else {
		header->ended_ns = COMMAND_START + COMMAND_SECOND;
		writer.comms[0].info.flags |= COMM_FLAG_FINALIZED;
		writer.comms[0].info.finalize_ns = COMMAND_START + COMMAND_SECOND;
	}
	if (strcmp(sample->mode, "profile") == 0)
		command_fill_foreign(&writer);
	region_publish(&writer);
}

#define COMMAND_SAMPLES "traces|lossy|gap|open|stuck|ended|carrier"

/* Writes recordings of this kind, one of COMMAND_SAMPLES, into an existing directory. False: there is no such kind. */
static inline bool command_samples(const char *kind, const char *directory)
{
	struct command_sample sample = { 0, "trace", "", "on", "" };

	if (strcmp(kind, "traces") == 0) {
		command_write_trace(directory, &sample, 0, true);
		sample.rank = 1;
		command_write_trace(directory, &sample, 0, true);
	} else if (strcmp(kind, "lossy") == 0) {
		command_write_trace(directory, &sample, 12, true);
	} else if (strcmp(kind, "gap") == 0) {
		command_lost_why = LOST_NOT_SHOWN;
		command_write_trace(directory, &sample, 3, true);
		command_lost_why = LOST_NO_COMM;
	} else if (strcmp(kind, "open") == 0) {
		command_write_trace(directory, &sample, 0, false);
	} else if (strcmp(kind, "stuck") == 0) {
		sample.mode = "flight";
		command_write_region(directory, &sample, true);
	} else if (strcmp(kind, "ended") == 0) {
		sample = (struct command_sample){ 1, "flight", "", "off",
						  "kernel_events_reason=/dev/shm has 64 MiB, "
						  "NCCL wants 40 MiB per communicator\n" };
		command_write_region(directory, &sample, false);
	} else if (strcmp(kind, "carrier") == 0) {
		sample.mode = "profile";
		command_write_region(directory, &sample, false);
	} else {
		return false;
	}
	return true;
}

#endif
