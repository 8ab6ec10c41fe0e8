/* Which channels of a slow link are slow: from details that the sender recorded (mode full). */
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "tests/support/sample_trace.h"
#include "tests/tap.h"
#include "tests/unit/doctor/slow_stage.h"

enum {
	SENDER = 4,
	RECEIVER = 7,
	DETAILS_MAX = 1100,
	STEP = OP_DETAIL_STEP,
	PROXY = OP_DETAIL_PROXY
};

static struct stage stage;
static struct expected_text found;

/* So many bytes took so long, in two parts. What is 0 is as usual: a transfer of world, 1 MiB, 1 ms. */
struct place {
	int32_t peer;
	uint8_t channel;
	uint64_t us;
	uint8_t kind;
	uint16_t flags; /* besides that it is sent */
	uint32_t comm;
	uint64_t bytes;
	bool is_received;
	bool has_no_bytes, has_no_start, has_no_end;
};

static struct op_detail detail_of(const struct place *place, uint64_t sequence, int part)
{
	bool is_step = place->kind != PROXY;
	uint64_t begin_ns = 1000000 * sequence, ns = 1000 * (place->us > 0 ? place->us : 1000);
	uint64_t bytes = place->bytes > 0 ? place->bytes : STAGE_MIB;
	struct op_detail detail = {
		.sequence = sequence,
		.comm = place->comm > 0 ? place->comm : 1,
		.kind = place->kind > 0 ? place->kind : STEP,
		.channel = place->channel,
		.flags = (uint16_t)(place->flags | (place->is_received ? 0 : OP_DETAIL_IS_SEND)),
		.number = 1,
		.peer = place->peer,
		.bytes = place->has_no_bytes ? 0
			 : part == 0	     ? bytes / 4
					     : bytes - bytes / 4,
	};

	/* A transfer waits for its GPU before the wire, which does not count. */
	detail.time_ns[0] = 1;
	detail.time_ns[1] = is_step ? 2 : begin_ns;
	detail.time_ns[2] = is_step ? begin_ns : begin_ns + 1;
	detail.time_ns[3] = begin_ns + (part == 0 ? ns / 4 : ns - ns / 4);
	if (place->has_no_start)
		detail.time_ns[is_step ? 2 : 1] = 0;
	if (place->has_no_end)
		detail.time_ns[3] = begin_ns;
	return detail;
}

static void find(const char *what, uint32_t peer, const struct place *places, size_t count)
{
	static struct op_detail details[2 * DETAILS_MAX];
	struct sample sample = { NULL, 0, 0 };
	struct recording file;
	struct recording_process *sender;

	for (size_t i = 0; i < count; i++) {
		details[i] = detail_of(&places[i], i + 1, 0);
		details[count + i] = detail_of(&places[i], count + i + 1, 1);
	}
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_PROCESS, sample_info, strlen(sample_info), 1);
	for (size_t at = 0; at < 2 * count; at += SAMPLE_ROWS_MAX)
		sample_coded(&sample, TRACE_DETAILS, details + at, OP_DETAIL_WORDS,
			     (uint32_t)(2 * count - at < SAMPLE_ROWS_MAX ? 2 * count - at
									 : SAMPLE_ROWS_MAX));
	recording_init(&file);
	if (recording_add_memory(&file, "sample", sample.bytes, sample.size, 0) != OK ||
	    recording_finish(&file) != OK || file.count != 1)
		abort();

	stage_begin(&stage);
	sender = stage.hand.list[SENDER];
	sender->files = file.processes[0]->files;
	sender->file_count = file.processes[0]->file_count;
	stage_made(&stage);
	stage.stragglers[stage.report.stragglers.count++] =
		(struct straggler){ .class = STRAGGLER_SLOW_LINK,
				    .pattern = STRAGGLER_ALWAYS,
				    .rank = SENDER,
				    .host = SENDER / 2,
				    .peer = peer,
				    .peer_confidence = peer != UINT32_MAX ? 1 : 0,
				    .channel = -1,
				    .comm = stage_index(&stage, STAGE_WORLD),
				    .matches = 1000,
				    .slowdown = 2.5,
				    .caused_ns = 600 * STAGE_SECOND,
				    .cost_share = 0.0875,
				    .confidence = 0.99,
				    .has_times = true,
				    .first_ns = STAGE_START,
				    .last_ns = STAGE_START + 1000 * STAGE_SECOND,
				    .share_of_time = 1 };
	stage_find(&stage, &found, what);
	sender->files = NULL;
	sender->file_count = 0;
	stage_over(&stage);
	recording_release(&file);
	free(sample.bytes);
}

static void test_channels(void)
{
	static const struct place some[] = {
		{ .peer = RECEIVER, .channel = 0 },
		{ .peer = RECEIVER, .channel = 1, .us = 3000 },
		{ .peer = RECEIVER, .channel = 2, .us = 1900 },
		{ .peer = RECEIVER, .channel = 70, .us = 2011 },
		{ .peer = 5, .channel = 3, .us = 9000 },
	};
	static const struct place one[] = {
		{ .peer = 5, .channel = 3, .us = 9000 },
		{ .peer = 5, .channel = 4 },
		{ .peer = RECEIVER, .channel = 3, .us = 4000 },
	};
	static const struct place ignored[] = {
		{ .peer = RECEIVER, .channel = 0, .us = 3000 },
		{ .peer = RECEIVER, .channel = 1 },
		{ .peer = RECEIVER, .channel = 2, .us = 90000, .kind = PROXY },
		{ .peer = RECEIVER, .channel = 3, .us = 90000, .kind = OP_DETAIL_KERNEL },
		{ .peer = RECEIVER, .channel = 4, .us = 90000, .flags = OP_DETAIL_IS_FOREIGN },
		{ .peer = RECEIVER, .channel = 5, .us = 90000, .is_received = true },
		{ .peer = RECEIVER, .channel = 6, .us = 90000, .comm = 2 },
		{ .peer = RECEIVER, .channel = 7, .us = 90000, .has_no_bytes = true },
		{ .peer = RECEIVER, .channel = 8, .us = 90000, .has_no_start = true },
		{ .peer = RECEIVER, .channel = 9, .us = 90000, .has_no_end = true },
	};
	static const struct place proxies[] = {
		{ .peer = RECEIVER, .channel = 0, .us = 3000, .kind = PROXY },
		{ .peer = RECEIVER, .channel = 1, .kind = PROXY },
		{ .peer = 5, .channel = 0, .us = 2000, .kind = PROXY },
	};
	static const struct place small[] = {
		{ .peer = 5, .channel = 0, .bytes = 2000000, .us = 2000 },
		{ .peer = RECEIVER, .channel = 1, .bytes = 100000, .us = 300 },
		{ .peer = 6, .channel = 2, .bytes = 99999, .us = 9000 },
	};

	find("three of four channels, and one to another rank", RECEIVER, some, ARRAY_LENGTH(some));
	find("the receiver is the slowest", UINT32_MAX, one, ARRAY_LENGTH(one));
	find("whatever is no send of this rank there", RECEIVER, ignored, ARRAY_LENGTH(ignored));
	find("proxy operations, if there are no transfers", UINT32_MAX, proxies,
	     ARRAY_LENGTH(proxies));
	find("few bytes take long anyway", UINT32_MAX, small, ARRAY_LENGTH(small));
	find("nothing to this receiver", 6, some, ARRAY_LENGTH(some));
}

/* More than are kept: 256 channels to each of four ranks, then a slow fifth. */
static void test_many(void)
{
	static struct place places[1026];

	for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
		places[i] = (struct place){ .peer = (int32_t)(i / 256), .channel = (uint8_t)i };
	places[1023].us = 2000;
	places[1024].us = places[1025].us = 9000;
	find("one of the 1024 that are kept", UINT32_MAX, places, ARRAY_LENGTH(places));
}

int main(void)
{
	test_channels();
	test_many();
	expected_compare(&found, "tests/unit/doctor/expected/slow_channels.txt");
	return tap_done();
}
