/* A small region in memory, filled in by hand as the recorder would. */
#ifndef SAMPLE_REGION_H
#define SAMPLE_REGION_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "format/region_layout.h"
#include "tests/support/sample_trace.h"

enum {
	SAMPLE_LIVE = 8,
	SAMPLE_PROXIES = 4,
	SAMPLE_RING = 8,
	SAMPLE_RING_HEAD = 11, /* so that the ring has wrapped: 4..11 are in it */
	SAMPLE_INFO_BYTES = 1024,
};

static const struct region_part sample_parts[REGION_PARTS] = {
	[REGION_INFO] = { 0, 1, SAMPLE_INFO_BYTES },
	[REGION_NAMES] = { 0, 4, sizeof(struct region_name) },
	[REGION_COMMS] = { 0, 4, sizeof(struct region_comm) },
	[REGION_LIVE] = { 0, SAMPLE_LIVE, sizeof(struct region_live) },
	[REGION_PROXIES] = { 0, SAMPLE_PROXIES, sizeof(struct region_proxy) },
	[REGION_PEERS] = { 0, 4, sizeof(struct region_peer) },
	[REGION_TOTALS] = { 0, 2, sizeof(struct region_total) },
	[REGION_RING] = { 0, SAMPLE_RING, OP_RECORD_BYTES },
	[REGION_DETAILS] = { 0, 4, OP_DETAIL_BYTES },
	[REGION_LINKS] = { 0, 4, sizeof(struct region_link) },
};

static inline void *sample_slot(struct sample *sample, enum region_part_index part, uint32_t index)
{
	struct region_header *header = (void *)sample->bytes;

	return sample->bytes + header->parts[part].offset +
	       (size_t)index * header->parts[part].stride;
}

static inline struct region_header *sample_head(struct sample *sample)
{
	return (void *)sample->bytes;
}

static inline void sample_set_info(struct sample *sample, const char *text)
{
	size_t length = strlen(text);

	if (length > SAMPLE_INFO_BYTES)
		abort();
	memcpy(sample_slot(sample, REGION_INFO, 0), text, length);
	sample_head(sample)->info_bytes = length;
}

/* Communicators 1 and 2, and a finalized third. */
static inline void sample_fill_comms(struct sample *sample)
{
	for (uint32_t i = 0; i < 3; i++) {
		struct region_comm *comm = sample_slot(sample, REGION_COMMS, i);

		comm->word = UINT64_C(1) << 32;
		comm->info = sample_comm(i + 1);
		comm->counts.issued = i == 2 ? 0 : 6 + (i == 0);
		comm->counts.recorded = i == 2 ? 0 : 5 + (i == 1);
		comm->counts.timed = comm->counts.recorded;
	}
	((struct region_comm *)sample_slot(sample, REGION_COMMS, 2))->word |= COMM_ENDED;
	((struct region_comm *)sample_slot(sample, REGION_COMMS, 2))->info.flags =
		COMM_FLAG_FINALIZED;
}

/* Slot 1 runs, with two proxy operations; slot 4 is done and lingers; slot 6 is free. */
static inline void sample_fill_live(struct sample *sample)
{
	struct region_live *live = sample_slot(sample, REGION_LIVE, 1);

	live->word = UINT64_C(3) << 32 | 2;
	live->op = sample_op(12);
	live->op.sequence = 0;
	live->op.comm = 1;
	live->op.number = 6;
	live->op.state = OP_RUNNING;
	live->op.time_source = OP_TIME_NONE;
	live->started[0] = 3;
	live->stopped[0] = 1;
	live = sample_slot(sample, REGION_LIVE, 4);
	live->word = UINT64_C(5) << 32;
	live->op = sample_op(13);
	live->op.sequence = 0;
	live->op.comm = 1;
	live->op.number = 7;
	live = sample_slot(sample, REGION_LIVE, 6);
	live->word = UINT64_C(6) << 32;
	live->op = sample_op(2);
}

static inline void sample_fill_proxies(struct sample *sample)
{
	for (uint32_t i = 0; i < 3; i++) {
		struct region_proxy *proxy = sample_slot(sample, REGION_PROXIES, i);

		*proxy = (struct region_proxy){ .word = UINT64_C(1) << 32,
						.live = 1,
						.live_generation = 3,
						.comm = 1,
						.peer = 4,
						.channel = (uint8_t)(2 - i),
						.flags = i == 0 ? PROXY_IS_SEND : 0,
						.number = 6,
						.steps = 16,
						.posted = 5,
						.transmitted = 4,
						.done = 3 };
	}
	/* The third works for another process. */
	((struct region_proxy *)sample_slot(sample, REGION_PROXIES, 2))->flags = PROXY_IS_FOREIGN;
	for (uint32_t i = 0; i < 3; i++) {
		struct region_step *step =
			&((struct region_proxy *)sample_slot(sample, REGION_PROXIES, 0))
				 ->open[(9 - i) % 8];

		step->step_plus_1 = 10 - i;
		step->state = i == 0 ? 8 : 9;
		step->time_ns[0] = 1060000 + i;
	}
}

static inline void sample_fill_links(struct sample *sample)
{
	struct region_link *link = sample_slot(sample, REGION_LINKS, 2);

	*link = (struct region_link){ .key = REGION_LINK_KEY(1, true, 4),
				      .proxies = 3,
				      .steps = 48,
				      .bytes = 48 << 20,
				      .wait_ns = { 100, 20, 3 } };
}

static inline void sample_fill_rings(struct sample *sample)
{
	for (uint64_t sequence = SAMPLE_RING_HEAD - SAMPLE_RING + 1; sequence <= SAMPLE_RING_HEAD;
	     sequence++) {
		struct op_record *op =
			sample_slot(sample, REGION_RING, (uint32_t)(sequence - 1) % SAMPLE_RING);

		*op = sample_op(sequence);
		op->comm = 1 + (sequence & 1);
		op->number = (sequence + 1) / 2;
	}
	for (uint64_t sequence = 1; sequence <= SAMPLE_DETAILS; sequence++)
		*(struct op_detail *)sample_slot(sample, REGION_DETAILS, (uint32_t)sequence - 1) =
			sample_detail(sequence);
	sample_head(sample)->ring_head = SAMPLE_RING_HEAD;
	sample_head(sample)->details_head = SAMPLE_DETAILS;
}

static inline void sample_fill_totals(struct sample *sample)
{
	struct region_total *total = sample_slot(sample, REGION_TOTALS, 1);

	total->key = TOTALS_KEY(1, OP_ALL_REDUCE, OP_BFLOAT16, OP_RING, OP_SIMPLE, 12);
	total->count = 11;
	total->timed = 11;
	total->sum_ns = 16500;
	total->buckets[20] = 11;
}

/* As recorders up to minor version 4 wrote them: what follows a slot is not its own. */
static inline void sample_shorten_totals(struct sample *sample)
{
	struct region_part *part = &sample_head(sample)->parts[REGION_TOTALS];
	struct region_total *last = sample_slot(sample, REGION_TOTALS, part->count - 1);

	memmove(sample->bytes + part->offset + (part->count - 1) * REGION_TOTAL_BYTES_LEAST, last,
		REGION_TOTAL_BYTES_LEAST);
	part->stride = REGION_TOTAL_BYTES_LEAST;
	last = sample_slot(sample, REGION_TOTALS, part->count - 1);
	last->shared_ns = UINT64_MAX;
}

static inline void sample_fill_header(struct sample *sample)
{
	struct region_header *header = sample_head(sample);

	header->major = REGION_MAJOR;
	header->minor = REGION_MINOR;
	header->byte_order = REGION_BYTE_ORDER;
	header->pid = 4711;
	header->pid_namespace = 4026531836;
	header->start_ticks = 987654;
	text_copy(header->boot_id, sizeof(header->boot_id), "12345678-1234-1234-1234-123456789abc");
	header->mode = REGION_MODE_FLIGHT;
	header->kind = REGION_KIND_SHM;
	header->interface = 5;
	header->clock = (struct clock_source){ .kind = CLOCK_KIND_SYSTEM };
	header->first_anchor = (struct clock_anchor){ 1000000, SAMPLE_CREATED_NS };
	header->last_anchor = (struct clock_anchor){ 2000000, SAMPLE_CREATED_NS + 1000010 };
	header->lost[LOST_PROXY_SLOT] = 1;
	header->odd[ODD_NULL_HANDLE] = 2;
	header->comms_made = 3;
	header->names_used = 1;
	header->magic = REGION_MAGIC;
}

static inline struct sample sample_region(void)
{
	struct sample sample = { NULL, 0, 0 };
	struct region_part parts[REGION_PARTS];
	uint64_t at = REGION_HEADER_BYTES;

	for (int i = 0; i < REGION_PARTS; i++) {
		parts[i] = sample_parts[i];
		parts[i].offset = at;
		at = (at + (uint64_t)parts[i].count * parts[i].stride + 63) & ~UINT64_C(63);
	}
	sample.size = sample.room = at;
	sample.bytes = calloc(1, at);
	if (sample.bytes == NULL)
		abort();
	memcpy(sample_head(&sample)->parts, parts, sizeof(parts));
	sample_head(&sample)->header_bytes = REGION_HEADER_BYTES;
	sample_head(&sample)->total_bytes = at;
	sample_set_info(&sample, sample_info);
	text_copy(sample_slot(&sample, REGION_NAMES, 0), sizeof(struct region_name), "ncclFloat4");
	sample_fill_comms(&sample);
	sample_fill_live(&sample);
	sample_fill_proxies(&sample);
	sample_fill_totals(&sample);
	sample_fill_links(&sample);
	sample_fill_rings(&sample);
	sample_fill_header(&sample);
	return sample;
}

#endif
