/*
 * A small trace file, composed block by block without the writer, so that writer, reader and
 * docs/FORMATS.md are compared with something that neither of them produced.
 */
#ifndef SAMPLE_TRACE_H
#define SAMPLE_TRACE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/op_layout.h"
#include "format/region_layout.h"
#include "format/trace_code.h"
#include "format/trace_layout.h"
#include "format/trace_write.h"

#define SAMPLE_CREATED_NS UINT64_C(1700000000000000000)

enum { SAMPLE_OPS = 5, SAMPLE_LATE_OPS = 2, SAMPLE_DETAILS = 3, SAMPLE_COMMS = 2 };
enum { SAMPLE_ROWS_MAX = 16 };
enum { SAMPLE_BLOCKS = 10, SAMPLE_LINKS = 3, SAMPLE_TRACE_BYTES_MAX = 1 << 14 };

struct sample {
	unsigned char *bytes; /* the caller frees it */
	size_t size;
	size_t room;
};

static const char sample_info[] = "host=node-1\n"
				  "boot_id=12345678-1234-1234-1234-123456789abc\n"
				  "pid=4711\npid_namespace=4026531836\nstart_ticks=987654\n"
				  "job=sample\nrank=3\nlocal_rank=3\nworld_size=8\n"
				  "mode=trace\ninterface=5\nlabel.team=blue\n";

static inline void sample_put(struct sample *sample, const void *bytes, size_t size)
{
	while (sample->size + size > sample->room) {
		sample->room = sample->room ? sample->room * 2 : 4096;
		sample->bytes = realloc(sample->bytes, sample->room);
		if (sample->bytes == NULL)
			abort();
	}
	if (size > 0)
		memcpy(sample->bytes + sample->size, bytes, size);
	sample->size += size;
}

/* A new one for each file: it remembers what it wrote. */
static inline struct trace_encoder *sample_encoder(void)
{
	static struct trace_encoder encoder;

	return &encoder;
}

static inline void sample_header(struct sample *sample, uint16_t major, uint16_t minor)
{
	struct trace_header header = { .magic = TRACE_MAGIC,
				       .major = major,
				       .minor = minor,
				       .byte_order = 0x01020304,
				       .header_bytes = 40,
				       .created_wall_ns = SAMPLE_CREATED_NS };

	memset(sample_encoder(), 0, sizeof(struct trace_encoder));
	header.checksum = hash_bytes(&header, 32);
	sample_put(sample, &header, sizeof(header));
}

static inline void sample_block(struct sample *sample, uint16_t type, const void *payload,
				size_t bytes, uint32_t records)
{
	struct trace_block block = { .magic = TRACE_BLOCK_MAGIC,
				     .type = type,
				     .payload_bytes = (uint32_t)bytes,
				     .records = records };

	block.checksum = trace_block_checksum(&block, payload);
	sample_put(sample, &block, sizeof(block));
	sample_put(sample, payload, bytes);
}

static inline struct op_record sample_op(uint64_t sequence)
{
	struct op_record op = { .sequence = sequence,
				.comm = 1 + (uint32_t)(sequence & 1),
				.function = sequence == 3 ? OP_SEND : OP_ALL_REDUCE,
				.datatype = sequence == 4 ? OP_NAME_INTERNED : OP_BFLOAT16,
				.algorithm = OP_RING,
				.protocol = OP_SIMPLE,
				.number = (sequence + 1) / 2,
				.match = (sequence + 1) / 2,
				.signature = hash_word(7, sequence),
				.count = UINT64_C(1024) << sequence % 32,
				.bytes = sequence == 5 ? OP_BYTES_UNKNOWN
						       : UINT64_C(2048) << sequence % 32,
				.root = OP_NOBODY,
				.peer = sequence == 3 ? 6 : OP_NOBODY,
				.state = OP_DONE,
				.time_source = OP_TIME_KERNEL_GPU,
				.channels = 2,
				.issue_ns = 1000000 + sequence * 5000,
				.done_ns = 1003000 + sequence * 5000,
				.gpu_start_ns = 9000000000 + sequence * 5000,
				.gpu_stop_ns = 9000001500 + sequence * 5000,
				.kernels_started = 2,
				.kernels_stopped = 2 };

	return op;
}

static inline struct op_detail sample_detail(uint64_t sequence)
{
	struct op_detail detail = { .sequence = sequence,
				    .comm = 1,
				    .kind = (uint8_t)sequence,
				    .channel = 1,
				    .number = 2,
				    .peer = 6,
				    .step = 4,
				    .time_ns = { 10, 20, 30, 40 },
				    .bytes = 512 };

	return detail;
}

static inline struct comm_info sample_comm(uint32_t id)
{
	struct comm_info comm = { .id = id,
				  .interface = 5,
				  .hash = 0x1122334455667788 + id,
				  .rank = 3,
				  .nranks = 8,
				  .nnodes = 2,
				  .init_ns = 500000 + id,
				  .gpu = 3,
				  .name = "tensor",
				  .gpu_uuid = "GPU-00000000-0000-0000-0000-000000000003" };

	return comm;
}

/* The first is "other". */
static inline struct region_link sample_link(uint32_t index)
{
	struct region_link link = { .proxies = 1 + index,
				    .steps = 4 * (1 + index),
				    .bytes = 4096 * (1 + index),
				    .wait_ns = { 100 + index, 200 + index, 300 + index } };

	if (index > 0)
		link.key = REGION_LINK_KEY(1, index > 1, 5);
	return link;
}

/*
 * Records, coded. The encoder itself is checked independently in
 * tests/unit/format/test_trace_encode.c.
 */
static inline void sample_coded(struct sample *sample, uint16_t type, const void *records,
				unsigned int words, uint32_t count)
{
	unsigned char payload[TRACE_ENCODED_MAX(TRACE_WORDS_MAX, SAMPLE_ROWS_MAX)];

	sample_block(sample, type, payload,
		     trace_encode(sample_encoder(), records, words, count, payload), count);
}

static inline void sample_ops(struct sample *sample, uint64_t first, uint32_t count)
{
	struct op_record ops[SAMPLE_ROWS_MAX];

	for (uint32_t i = 0; i < count && i < SAMPLE_ROWS_MAX; i++)
		ops[i] = sample_op(first + i);
	sample_coded(sample, TRACE_OPS, ops, OP_RECORD_WORDS, count);
}

static inline void sample_details(struct sample *sample, uint64_t first, uint32_t count)
{
	struct op_detail details[SAMPLE_ROWS_MAX];

	for (uint32_t i = 0; i < count && i < SAMPLE_ROWS_MAX; i++)
		details[i] = sample_detail(first + i);
	sample_coded(sample, TRACE_DETAILS, details, OP_DETAIL_WORDS, count);
}

/* The counts after `records` operations, the first on communicator 2, and so on in turn. */
static inline void sample_fill_counts(uint64_t records, struct trace_counts *counts,
				      struct trace_comm_counts comms[SAMPLE_COMMS])
{
	memset(counts, 0, sizeof(*counts));
	memset(comms, 0, SAMPLE_COMMS * sizeof(comms[0]));
	counts->clock_ns = 2000000 + records;
	counts->trace_records = records;
	counts->ring_head = records;
	counts->lost[LOST_PROXY_SLOT] = 1;
	counts->odd[ODD_NULL_HANDLE] = 2;
	counts->comms = SAMPLE_COMMS;
	for (uint32_t i = 0; i < SAMPLE_COMMS; i++) {
		comms[i].id = i + 1;
		comms[i].counts.recorded = (records + i) / 2;
		comms[i].counts.issued = comms[i].counts.recorded;
		comms[i].counts.timed = comms[i].counts.recorded;
	}
}

static inline void sample_counts(struct sample *sample, uint16_t type, uint64_t records)
{
	struct {
		struct trace_counts counts;
		struct trace_comm_counts comms[SAMPLE_COMMS];
	} payload;

	sample_fill_counts(records, &payload.counts, payload.comms);
	sample_block(sample, type, &payload, sizeof(payload), 1);
}

/* The blocks after the header: PROCESS COMM NAME ANCHOR OPS DETAILS COUNTS OPS LINKS CLOSE. */
static inline void sample_blocks(struct sample *sample, const char *info)
{
	struct comm_info comms[SAMPLE_COMMS] = { sample_comm(1), sample_comm(2) };
	struct trace_name name = { .id = OP_NAME_INTERNED, .text = "ncclFloat4" };
	struct clock_anchor anchors[2] = { { 1000000, SAMPLE_CREATED_NS },
					   { 2000000, SAMPLE_CREATED_NS + 1000010 } };
	struct region_link links[SAMPLE_LINKS] = { sample_link(0), sample_link(1), sample_link(2) };

	sample_block(sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(sample, TRACE_COMM, comms, sizeof(comms), SAMPLE_COMMS);
	sample_block(sample, TRACE_NAME, &name, sizeof(name), 1);
	sample_block(sample, TRACE_ANCHOR, anchors, sizeof(anchors), 2);
	sample_ops(sample, 1, SAMPLE_OPS);
	sample_details(sample, 1, SAMPLE_DETAILS);
	sample_counts(sample, TRACE_COUNTS, SAMPLE_OPS);
	sample_ops(sample, SAMPLE_OPS + 1, SAMPLE_LATE_OPS);
	sample_block(sample, TRACE_LINKS, links, sizeof(links), SAMPLE_LINKS);
	sample_counts(sample, TRACE_CLOSE, SAMPLE_OPS + SAMPLE_LATE_OPS);
}

static inline struct sample sample_trace(void)
{
	struct sample sample = { NULL, 0, 0 };

	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_blocks(&sample, sample_info);
	return sample;
}

#endif
