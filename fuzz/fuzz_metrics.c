/*
 * Any recording becomes metrics that a server accepts: the bytes are names, keys and counts of
 * processes. Each series occurs once, each line is complete and UTF-8. The bytes are also an Accept
 * header.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "fuzz/fuzz_main.h"
#define PLAY_IS_SMALL
#include "tests/support/metrics_play.h"

struct bytes {
	const uint8_t *at;
	size_t left;
};

static uint64_t take(struct bytes *bytes, size_t count)
{
	uint64_t value = 0;

	for (size_t i = 0; i < count && bytes->left > 0; i++, bytes->left--)
		value = value << 8 | *bytes->at++;
	return value;
}

static void take_text(struct bytes *bytes, char *to, size_t size)
{
	size_t length = take(bytes, 1) % size;

	for (size_t i = 0; i < length; i++)
		to[i] = (char)take(bytes, 1);
	to[length] = '\0';
}

static void take_comm(struct bytes *bytes, struct recording_process *process)
{
	struct recording_comm *comm =
		play_comm(process, take(bytes, 1) % 4, "", (int32_t)take(bytes, 1) % 4 - 1,
			  (int32_t)take(bytes, 4));

	take_text(bytes, comm->info.name, 16);
	comm->info.flags = take(bytes, 1) & COMM_FLAG_FINALIZED;
	comm->counts.issued = take(bytes, 8);
	comm->counts.signature = take(bytes, 8);
}

static void take_total(struct bytes *bytes, struct recording_process *process)
{
	struct region_total *total = &process->totals[process->total_count++];

	/* Few communicators, otherwise nothing matches. */
	total->key = (take(bytes, 1) % 8) << 40 | take(bytes, 5);
	total->count = take(bytes, 2);
	total->timed = take(bytes, 8);
	total->timed_bytes = take(bytes, 8);
	total->sum_ns = take(bytes, 8);
	total->buckets[take(bytes, 1)] = take(bytes, 8);
}

static void take_link(struct bytes *bytes, struct recording_process *process)
{
	struct region_link *link = &process->links[process->link_count++];

	link->key = (take(bytes, 1) % 8) << 34 | (take(bytes, 1) % 4) << 32 | take(bytes, 4);
	link->proxies = take(bytes, 1);
	link->bytes = take(bytes, 8);
	link->wait_ns[take(bytes, 1) % 3] = take(bytes, 8);
}

static void take_process(struct bytes *bytes, struct play *play)
{
	struct recording_process *process =
		play_process(play, "", (int64_t)(take(bytes, 1) % 3) - 1);

	take_text(bytes, process->job, 4);
	take_text(bytes, process->host, 8);
	for (size_t i = 0; i < 4; i++)
		take_text(bytes, process->names[i], 6);
	process->pid = (int64_t)(take(bytes, 1) % 2);
	process->life = (enum recording_life)(take(bytes, 1) % 4);
	for (uint64_t left = take(bytes, 1) % 80; left > 0; left--)
		take_comm(bytes, process);
	for (uint64_t left = take(bytes, 1) % 64; left > 0; left--)
		take_total(bytes, process);
	for (uint64_t left = take(bytes, 1) % 64; left > 0; left--)
		take_link(bytes, process);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_utf8(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length;

	for (size_t left = strlen(text); left > 0; left -= length, at += length) {
		length = *at < 0x80 ? 1 : utf8_bytes(at, left);
		if (length == 0)
			abort();
	}
}

/* A line is a comment or a series and its value; no duplicate series. */
static void check_lines(char *text)
{
	size_t count = 0;
	char **lines = play_room(strlen(text) + 1, sizeof(*lines));

	for (char *line = text; (line = strsep(&text, "\n")) != NULL;) {
		char *value = strrchr(line, ' ');

		if (line[0] == '#' || line[0] == '\0')
			continue;
		if (value == NULL || strncmp(line, "nccl_", 5) != 0)
			abort();
		*value = '\0';
		lines[count++] = line;
	}
	qsort(lines, count, sizeof(*lines), by_text);
	for (size_t i = 1; i < count; i++)
		if (strcmp(lines[i - 1], lines[i]) == 0)
			abort();
	free(lines);
}

static void write_all(const struct live *live)
{
	for (int format = METRICS_TEXT; format <= METRICS_PROTOBUF; format++) {
		struct sink sink;

		sink_init_memory(&sink);
		metrics_write(&sink, (enum metrics_format)format, live, NULL, -1);
		if (sink.status != OK)
			abort();
		if (format == METRICS_TEXT && sink.used > 0) {
			check_utf8(sink.bytes);
			check_lines(sink.bytes);
		}
		sink_release(&sink);
	}
}

/* Processes of a recording are sorted by job. */
static int by_job(const void *left, const void *right)
{
	const struct recording_process *const *a = left, *const *b = right;

	return strcmp((*a)->job, (*b)->job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct play play = { 0 };
	char *accept = play_room(size + 1, 1);

	if (size > 0)
		memcpy(accept, data, size);
	metrics_negotiate(accept);
	free(accept);
	for (uint64_t left = 1 + take(&bytes, 1) % 4; left > 0; left--)
		take_process(&bytes, &play);
	qsort(play.list, play.recording.count, sizeof(play.list[0]), by_job);
	write_all(play_look(&play));
	play_release(&play);
	return 0;
}
