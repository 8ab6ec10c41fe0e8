/* Reading trace files. With --rewrite the golden files are written again; review the difference. */
#include "format/trace_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/trace_write.h"
#include "tests/support/sample_trace.h"
#include "tests/tap.h"

static char directory[] = "/tmp/test_trace_read.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");

	if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
		abort();
}

static struct sample read_file(const char *path)
{
	struct sample sample = { NULL, 0, 0 };
	FILE *file = fopen(path, "rb");
	unsigned char chunk[4096];
	size_t got;

	while (file != NULL && (got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		sample_put(&sample, chunk, got);
	if (file != NULL)
		fclose(file);
	return sample;
}

static int is_same(const struct sample *one, const struct sample *other)
{
	return one->size == other->size && memcmp(one->bytes, other->bytes, one->size) == 0;
}

/* Where blocks begin in the sample; the last entry is its end. */
static size_t starts[SAMPLE_BLOCKS + 1];

static void find_starts(const struct sample *sample)
{
	struct trace_block block;
	size_t at = sizeof(struct trace_header);

	for (int i = 0; i < SAMPLE_BLOCKS; i++) {
		starts[i] = at;
		memcpy(&block, sample->bytes + at, sizeof(block));
		at += sizeof(block) + block.payload_bytes;
	}
	starts[SAMPLE_BLOCKS] = at;
}

/* The same trace through the writer that the recorder uses. */
static void write_sample(const char *path)
{
	struct comm_info comms[SAMPLE_COMMS] = { sample_comm(1), sample_comm(2) };
	struct trace_name name = { .id = OP_NAME_INTERNED, .text = "ncclFloat4" };
	struct clock_anchor anchors[2] = { { 1000000, SAMPLE_CREATED_NS },
					   { 2000000, SAMPLE_CREATED_NS + 1000010 } };
	struct op_record ops[SAMPLE_OPS + SAMPLE_LATE_OPS];
	struct op_detail details[SAMPLE_DETAILS];
	struct trace_comm_counts entries[SAMPLE_COMMS];
	struct region_link links[SAMPLE_LINKS];
	struct trace_counts counts;
	struct trace_writer writer;
	int failed;

	for (int i = 0; i < SAMPLE_OPS + SAMPLE_LATE_OPS; i++)
		ops[i] = sample_op((uint64_t)i + 1);
	for (int i = 0; i < SAMPLE_DETAILS; i++)
		details[i] = sample_detail((uint64_t)i + 1);
	for (uint32_t i = 0; i < SAMPLE_LINKS; i++)
		links[i] = sample_link(i);
	failed = trace_writer_open_at(&writer, path, 0600, 0, SAMPLE_CREATED_NS);
	if (failed != OK)
		abort();
	failed |= trace_write_text(&writer, TRACE_PROCESS, sample_info, strlen(sample_info));
	failed |= trace_write_records(&writer, TRACE_COMM, comms, sizeof(comms[0]), SAMPLE_COMMS);
	failed |= trace_write_records(&writer, TRACE_NAME, &name, sizeof(name), 1);
	failed |= trace_write_records(&writer, TRACE_ANCHOR, anchors, sizeof(anchors[0]), 2);
	failed |= trace_write_ops(&writer, ops, SAMPLE_OPS);
	failed |= trace_write_details(&writer, details, SAMPLE_DETAILS);
	sample_fill_counts(SAMPLE_OPS, &counts, entries);
	failed |= trace_write_counts(&writer, TRACE_COUNTS, &counts, entries);
	failed |= trace_write_ops(&writer, ops + SAMPLE_OPS, SAMPLE_LATE_OPS);
	failed |= trace_write_records(&writer, TRACE_LINKS, links, sizeof(links[0]), SAMPLE_LINKS);
	sample_fill_counts(SAMPLE_OPS + SAMPLE_LATE_OPS, &counts, entries);
	failed |= trace_write_counts(&writer, TRACE_CLOSE, &counts, entries);
	trace_writer_close(&writer);
	EXPECT_THAT("the writer writes the sample", failed == OK);
}

/* A file of a newer minor version: an unknown block type and longer records. */
static struct sample newer_minor(void)
{
	struct sample sample = { NULL, 0, 0 };
	struct {
		struct comm_info info;
		uint64_t more[2];
	} comms[SAMPLE_COMMS] = { { sample_comm(1), { 1, 2 } }, { sample_comm(2), { 3, 4 } } };

	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR + 1);
	sample_block(&sample, TRACE_PROCESS, sample_info, strlen(sample_info), 1);
	sample_block(&sample, TRACE_COMM, comms, sizeof(comms), SAMPLE_COMMS);
	sample_block(&sample, 99, "something new", 13, 1);
	sample_ops(&sample, 1, SAMPLE_OPS);
	sample_counts(&sample, TRACE_CLOSE, SAMPLE_OPS);
	return sample;
}

static struct sample newer_major(void)
{
	struct sample sample = { NULL, 0, 0 };

	sample_header(&sample, TRACE_MAJOR + 1, 3);
	sample_put(&sample, "whatever comes here", 19);
	return sample;
}

static void check_golden(const char *name, const struct sample *wanted, int is_rewriting)
{
	char path[128];
	struct sample golden;

	snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (is_rewriting)
		write_file(path, wanted->bytes, wanted->size);
	golden = read_file(path);
	if (!EXPECT_THAT(name, is_same(&golden, wanted)))
		printf("# tests/golden/%s: the format changed; see --rewrite\n", name);
	free(golden.bytes);
}

static void test_contents(const struct sample *sample)
{
	static const uint16_t types[SAMPLE_BLOCKS] = { TRACE_PROCESS, TRACE_COMM, TRACE_NAME,
						       TRACE_ANCHOR,  TRACE_OPS,  TRACE_DETAILS,
						       TRACE_COUNTS,  TRACE_OPS,  TRACE_LINKS,
						       TRACE_CLOSE };
	struct trace_reader reader;
	struct trace_records records;
	struct trace_item item;
	struct op_record op, wanted;
	uint64_t sequence = 1;
	int blocks = 0, ops = 0;

	EXPECT_EQUAL(trace_open_memory(&reader, sample->bytes, sample->size, NULL), OK);
	EXPECT(reader.header.created_wall_ns == SAMPLE_CREATED_NS);
	while (trace_next(&reader, &item) == TRACE_BLOCK) {
		if (item.offset != starts[blocks] || item.type != types[blocks])
			break;
		blocks++;
		if (item.type != TRACE_OPS || trace_records_init(&records, &item) != OK)
			continue;
		for (; trace_records_op(&records, &op) == OK; sequence++) {
			wanted = sample_op(sequence);
			ops += memcmp(&op, &wanted, sizeof(op)) == 0;
		}
	}
	EXPECT_EQUAL(blocks, SAMPLE_BLOCKS);
	EXPECT_EQUAL(item.found, TRACE_END);
	EXPECT(reader.is_closed && reader.damages == 0);
	EXPECT_EQUAL(ops, SAMPLE_OPS + SAMPLE_LATE_OPS);
	EXPECT_EQUAL(trace_next(&reader, &item), TRACE_END);
	trace_close(&reader);
}

static void test_plain_records(const struct sample *sample)
{
	struct trace_comm_counts entry;
	struct trace_records records;
	struct clock_anchor anchor;
	struct trace_reader reader;
	struct trace_counts counts;
	struct trace_item item;
	struct op_detail detail, wanted = sample_detail(2);
	struct trace_name name;
	struct comm_info comm, second = sample_comm(2);

	trace_open_memory(&reader, sample->bytes, sample->size, NULL);
	trace_seek(&reader, starts[1]);
	trace_next(&reader, &item);
	trace_records_init(&records, &item);
	EXPECT_EQUAL(trace_records_comm(&records, &comm), OK);
	EXPECT(trace_records_comm(&records, &comm) == OK &&
	       memcmp(&comm, &second, sizeof(comm)) == 0);
	EXPECT_EQUAL(trace_records_comm(&records, &comm), ERR_GONE);
	trace_next(&reader, &item);
	trace_records_init(&records, &item);
	EXPECT(trace_records_name(&records, &name) == OK && strcmp(name.text, "ncclFloat4") == 0);
	trace_next(&reader, &item);
	trace_records_init(&records, &item);
	EXPECT(trace_records_anchor(&records, &anchor) == OK && anchor.clock_ns == 1000000);
	trace_seek(&reader, starts[5]);
	trace_next(&reader, &item);
	trace_records_init(&records, &item);
	EXPECT_EQUAL(trace_records_detail(&records, &detail), OK);
	EXPECT(trace_records_detail(&records, &detail) == OK &&
	       memcmp(&detail, &wanted, sizeof(detail)) == 0);
	trace_next(&reader, &item);
	trace_records_init(&records, &item);
	EXPECT(trace_records_counts(&records, &counts) == OK && counts.ring_head == SAMPLE_OPS);
	EXPECT(trace_records_comm_counts(&records, &entry) == OK && entry.id == 1 &&
	       entry.counts.issued == 2);
	EXPECT(trace_records_comm_counts(&records, &entry) == OK && entry.counts.issued == 3);
	EXPECT_EQUAL(trace_records_comm_counts(&records, &entry), ERR_GONE);
	trace_seek(&reader, starts[8]);
	trace_next(&reader, &item);
	trace_records_init(&records, &item);
	for (uint32_t i = 0; i < SAMPLE_LINKS; i++) {
		struct region_link link, meant = sample_link(i);

		EXPECT(trace_records_link(&records, &link) == OK &&
		       memcmp(&link, &meant, sizeof(link)) == 0);
	}
	trace_close(&reader);
}

/* A prefix of the file gives all whole blocks, then a cut with the right offset. */
static int reads_up_to(const struct sample *sample, size_t length)
{
	unsigned char *copy = malloc(length ? length : 1);
	struct trace_reader reader;
	struct trace_item item;
	enum status status;
	int blocks = 0, is_good = 1;

	if (copy == NULL)
		return 0;
	memcpy(copy, sample->bytes, length);
	status = trace_open_memory(&reader, copy, length, NULL);
	if (length < sizeof(struct trace_header)) {
		free(copy);
		return status == (length == 0 ? ERR_FORMAT : ERR_TRUNCATED);
	}
	while (status == OK && trace_next(&reader, &item) == TRACE_BLOCK)
		is_good &= item.offset == starts[blocks++];
	is_good = is_good && status == OK && starts[blocks] <= length &&
		  (blocks == SAMPLE_BLOCKS || starts[blocks + 1] > length);
	if (length == sample->size)
		is_good = is_good && item.found == TRACE_END && reader.is_closed;
	else
		is_good = is_good && item.found == TRACE_CUT && !reader.is_closed &&
			  item.offset == starts[blocks] && item.bytes == length - starts[blocks] &&
			  trace_next(&reader, &item) == TRACE_END && reader.damages == 0;
	trace_close(&reader);
	free(copy);
	return is_good;
}

static void test_cuts(const struct sample *sample)
{
	size_t wrong = 0;

	for (size_t length = 0; length <= sample->size; length++)
		if (!reads_up_to(sample, length) && wrong++ == 0)
			printf("# a file cut at %zu\n", length);
	EXPECT_THAT("a file truncated anywhere is read up to the cut, which is reported",
		    wrong == 0);
}

/* With one bit flipped: which blocks are read, and is the damage reported? */
static int survives_flip(const struct sample *sample, unsigned char *copy, size_t at)
{
	struct status_problem problem = { .what = "" };
	struct trace_reader reader;
	struct trace_item item;
	size_t hurt = 0;
	int next = 0, is_good = 1;

	while (hurt < SAMPLE_BLOCKS && starts[hurt + 1] <= at)
		hurt++;
	if (trace_open_memory(&reader, copy, sample->size, &problem) != OK)
		return 0;
	while (trace_next(&reader, &item) != TRACE_END) {
		if (item.found != TRACE_BLOCK)
			continue;
		if (at >= starts[0] && (size_t)next == hurt)
			next++;
		is_good &= next < SAMPLE_BLOCKS && item.offset == starts[next];
		next++;
	}
	is_good &= next + (at >= starts[0] && hurt == SAMPLE_BLOCKS - 1) == SAMPLE_BLOCKS;
	is_good &= reader.damages == 1 || (reader.damages == 0 && !reader.is_closed);
	trace_close(&reader);
	return is_good;
}

static void test_flips(const struct sample *sample)
{
	unsigned char *copy = malloc(sample->size);
	size_t wrong = 0;

	if (copy == NULL)
		return;
	memcpy(copy, sample->bytes, sample->size);
	for (size_t at = 0; at < sample->size; at++)
		for (int bit = 0; bit < 9; bit++) {
			unsigned char flip = bit < 8 ? (unsigned char)(1u << bit) : 0xff;

			copy[at] ^= flip;
			if (!survives_flip(sample, copy, at) && wrong++ < 5)
				printf("# byte %zu changed by %#x\n", at, flip);
			copy[at] ^= flip;
		}
	EXPECT_THAT("whichever byte is changed, only its block is lost, and that is reported",
		    wrong == 0);
	free(copy);
}

static void test_versions(void)
{
	struct sample newer = newer_minor(), major = newer_major();
	struct status_problem problem = { .what = NULL };
	struct trace_reader reader;
	struct trace_records records;
	struct comm_info comm, second = sample_comm(2);
	struct trace_item item;
	int good = 0, unknown = 0, comms = 0;

	EXPECT_EQUAL(trace_open_memory(&reader, major.bytes, major.size, &problem), ERR_VERSION);
	EXPECT_THAT("the newer version is reported",
		    problem.found_major == TRACE_MAJOR + 1 && problem.found_minor == 3);
	EXPECT_EQUAL(trace_open_memory(&reader, newer.bytes, newer.size, &problem), OK);
	while (trace_next(&reader, &item) != TRACE_END) {
		good += item.found == TRACE_BLOCK;
		unknown += item.found == TRACE_UNKNOWN;
		if (item.found != TRACE_BLOCK || item.type != TRACE_COMM ||
		    trace_records_init(&records, &item) != OK)
			continue;
		while (trace_records_comm(&records, &comm) == OK)
			comms++;
	}
	EXPECT_THAT("blocks of unknown type are skipped and counted",
		    good == 4 && unknown == 1 && reader.unknown_blocks == 1);
	EXPECT_THAT("longer records are read as far as they are known",
		    comms == 2 && memcmp(&comm, &second, sizeof(comm)) == 0);
	EXPECT(reader.is_closed && reader.damages == 0);
	trace_close(&reader);
	free(newer.bytes);
	free(major.bytes);
}

/* As written by 2.0: without links. This file is never rewritten. */
static void test_older_minor(void)
{
	struct sample old = read_file("tests/golden/minor-0.ringside");
	struct trace_reader reader;
	struct trace_item item;
	int blocks = 0, closes = 0;

	EXPECT_EQUAL(trace_open_memory(&reader, old.bytes, old.size, NULL), OK);
	EXPECT(reader.header.minor == 0);
	while (trace_next(&reader, &item) == TRACE_BLOCK) {
		blocks++;
		closes += item.type == TRACE_CLOSE;
	}
	EXPECT_THAT("a file of an older minor version reads as before",
		    item.found == TRACE_END && blocks == SAMPLE_BLOCKS - 1 && closes == 1 &&
			    reader.is_closed && reader.damages == 0 && reader.unknown_blocks == 0);
	trace_close(&reader);
	free(old.bytes);
}

static enum status open_bytes(const void *bytes, size_t length)
{
	struct trace_reader reader;
	enum status status = trace_open_memory(&reader, bytes, length, NULL);

	if (status == OK)
		trace_close(&reader);
	return status;
}

static void test_foreign(void)
{
	struct sample sample = { NULL, 0, 0 };
	struct trace_header *header;

	EXPECT_EQUAL(open_bytes("", 0), ERR_FORMAT);
	EXPECT_EQUAL(open_bytes("#!/bin/sh\n", 10), ERR_FORMAT);
	EXPECT_EQUAL(open_bytes("RRG", 3), ERR_TRUNCATED);
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	header = (void *)sample.bytes;
	header->byte_order = 0x04030201;
	header->checksum = hash_bytes(header, 32);
	EXPECT_EQUAL(open_bytes(sample.bytes, sample.size), ERR_FORMAT);
	header->byte_order = 0x01020304;
	header->header_bytes = 1 << 30;
	header->checksum = hash_bytes(header, 32);
	EXPECT_EQUAL(open_bytes(sample.bytes, sample.size), ERR_FORMAT);
	header->header_bytes = 64;
	header->checksum = hash_bytes(header, 32);
	EXPECT_EQUAL(open_bytes(sample.bytes, sample.size), ERR_TRUNCATED);
	header->header_bytes = 40;
	header->major = TRACE_MAJOR - 1;
	header->checksum = hash_bytes(header, 32);
	EXPECT_EQUAL(open_bytes(sample.bytes, sample.size), ERR_FORMAT);
	free(sample.bytes);
}

/* Valid checksums around invalid contents: a faulty or hostile writer. */
static void test_lies(void)
{
	struct sample sample = { NULL, 0, 0 };
	struct trace_counts counts = { .comms = UINT64_MAX / sizeof(struct trace_comm_counts) };
	struct trace_reader reader;
	struct trace_records records;
	struct trace_item item;
	struct op_record op;
	int damages = 0;

	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_OPS, "\0\0\0\0", 4, UINT32_MAX);
	sample_block(&sample, TRACE_OPS, "\0\0\0\0", 4, TRACE_ROWS_MAX + 1);
	sample_block(&sample, TRACE_DETAILS, "\0\0", 2, 0);
	sample_block(&sample, TRACE_COMM, "0123456789", 10, 3);
	sample_block(&sample, TRACE_ANCHOR, "", 0, 7);
	sample_block(&sample, TRACE_LINKS, "0123456789", 10, 1);
	sample_block(&sample, TRACE_COUNTS, "short", 5, 1);
	sample_block(&sample, TRACE_CLOSE, &counts, sizeof(counts), 1);
	trace_open_memory(&reader, sample.bytes, sample.size, NULL);
	while (trace_next(&reader, &item) != TRACE_END)
		damages += item.found == TRACE_DAMAGE;
	EXPECT_EQUAL(damages, 1);
	EXPECT_THAT("blocks too short for their contents are damage",
		    reader.damages == 1 && !reader.is_closed);
	trace_close(&reader);
	free(sample.bytes);

	sample = (struct sample){ NULL, 0, 0 };
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_OPS, "\1\0\0\0\x08\0\2", 7, 2);
	sample_block(&sample, TRACE_OPS, "\1\0\0\0\x07\0\2", 7, 2);
	trace_open_memory(&reader, sample.bytes, sample.size, NULL);
	EXPECT_EQUAL(trace_next(&reader, &item), TRACE_BLOCK);
	trace_records_init(&records, &item);
	EXPECT(trace_records_op(&records, &op) == OK && op.sequence == 1);
	EXPECT(trace_records_op(&records, &op) == OK && op.sequence == 2);
	EXPECT_EQUAL(trace_records_op(&records, &op), ERR_GONE);
	EXPECT_EQUAL(trace_next(&reader, &item), TRACE_BLOCK);
	trace_records_init(&records, &item);
	EXPECT_EQUAL(trace_records_op(&records, &op), ERR_FORMAT);
	EXPECT_EQUAL(trace_records_op(&records, &op), ERR_GONE);
	trace_close(&reader);
	free(sample.bytes);
}

/* How many bytes a block needs for what it says it has. */
static void test_block_limits(void)
{
	enum {
		COMM = sizeof(struct comm_info),
		COUNTS = sizeof(struct trace_counts),
		ENTRY = sizeof(struct trace_comm_counts)
	};
	static const struct {
		const char *sentence;
		uint16_t type;
		uint32_t records;
		size_t bytes;
		uint64_t comms;
		bool is_good;
	} cases[] = {
		{ "none of anything", TRACE_COMM, 0, 0, 0, true },
		{ "bytes without records", TRACE_COMM, 0, 8, 0, false },
		{ "two", TRACE_COMM, 2, 2 * COMM, 0, true },
		{ "a byte too many", TRACE_COMM, 2, 2 * COMM + 1, 0, false },
		{ "two that are longer", TRACE_COMM, 2, 2 * COMM + 16, 0, true },
		{ "too short", TRACE_COMM, 1, COMM - 8, 0, false },
		{ "no operations", TRACE_OPS, 0, 4, 0, false },
		{ "a row", TRACE_OPS, 1, 4, 0, true },
		{ "as many rows as there may be", TRACE_OPS, TRACE_ROWS_MAX, 4, 0, true },
		{ "one more", TRACE_OPS, TRACE_ROWS_MAX + 1, 4, 0, false },
		{ "counts without communicators", TRACE_COUNTS, 1, COUNTS, 0, true },
		{ "a part of them", TRACE_COUNTS, 1, COUNTS - 1, 0, false },
		{ "with one", TRACE_COUNTS, 1, COUNTS + ENTRY, 1, true },
		{ "which is cut", TRACE_COUNTS, 1, COUNTS + ENTRY - 1, 1, false },
		{ "or not there", TRACE_COUNTS, 1, COUNTS + ENTRY, 2, false },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		static const struct trace_counts none;
		struct sample sample = { NULL, 0, 0 };
		unsigned char payload[4096] = { 0 };
		struct trace_counts counts = none;
		struct trace_reader reader;
		struct trace_item item;
		bool is_good;

		counts.comms = cases[i].comms;
		if (cases[i].type == TRACE_COUNTS)
			memcpy(payload, &counts, sizeof(counts));
		sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
		sample_block(&sample, cases[i].type, payload, cases[i].bytes, cases[i].records);
		trace_open_memory(&reader, sample.bytes, sample.size, NULL);
		is_good = trace_next(&reader, &item) == TRACE_BLOCK;
		EXPECT_THAT(cases[i].sentence,
			    is_good == cases[i].is_good && reader.damages == !cases[i].is_good);
		trace_close(&reader);
		free(sample.bytes);
	}
}

/* Magics everywhere: searching for the next block must not take forever, nor find one. */
static void test_effort(void)
{
	struct trace_block block = { .magic = TRACE_BLOCK_MAGIC,
				     .type = TRACE_OPS,
				     .payload_bytes = 1 << 20,
				     .records = 1 };
	struct sample sample = { NULL, 0, 0 };
	struct trace_reader reader;
	struct trace_item item;
	int blocks = 0;

	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	while (sample.size < 4 << 20)
		sample_put(&sample, &block, sizeof(block));
	trace_open_memory(&reader, sample.bytes, sample.size, NULL);
	while (trace_next(&reader, &item) != TRACE_END)
		blocks += item.found == TRACE_BLOCK;
	EXPECT_THAT("a file of magics comes to an end", blocks == 0 && reader.damages == 1);
	trace_close(&reader);
	free(sample.bytes);
}

enum { LARGE_BLOCKS = 60, LARGE_DAMAGED = 31 };

/* Much larger than one read, with one damaged block. */
static void test_large(void)
{
	struct op_record *ops = calloc(TRACE_OPS_PER_BLOCK, sizeof(*ops));
	struct trace_writer writer;
	struct trace_reader reader;
	struct trace_item item;
	uint64_t hurt = 0;
	int good = 0, damages = 0;
	int fd;

	trace_writer_open(&writer, path_of("large"), 0600, 0);
	for (uint64_t block = 0; block < LARGE_BLOCKS; block++) {
		for (uint64_t i = 0; i < TRACE_OPS_PER_BLOCK; i++)
			for (int word = 0; word < OP_RECORD_WORDS; word++)
				((uint64_t *)(void *)&ops[i])[word] =
					hash_word(block * 5000 + i, (uint64_t)word);
		if (block == LARGE_DAMAGED)
			hurt = writer.bytes + 100;
		if (trace_write_ops(&writer, ops, TRACE_OPS_PER_BLOCK) != OK)
			break;
	}
	trace_writer_close(&writer);
	fd = open(path_of("large"), O_RDWR);
	if (pwrite(fd, "damage", 6, (off_t)hurt) != 6)
		abort();
	EXPECT_EQUAL(trace_open(&reader, path_of("large"), NULL), OK);
	EXPECT(reader.length > 8 << 20);
	while (trace_next(&reader, &item) != TRACE_END) {
		good += item.found == TRACE_BLOCK;
		damages += item.found == TRACE_DAMAGE;
	}
	EXPECT_EQUAL(good, LARGE_BLOCKS - 1);
	EXPECT_EQUAL(damages, 1);
	trace_close(&reader);

	/* Truncated during reading, in the middle of the next block. */
	trace_open(&reader, path_of("large"), NULL);
	trace_next(&reader, &item);
	if (ftruncate(fd, 5 << 20) == -1)
		abort();
	for (good = 1; trace_next(&reader, &item) == TRACE_BLOCK;)
		good++;
	EXPECT_THAT("a file that shrinks while it is read counts as truncated",
		    item.found == TRACE_CUT && good > 1 && good < LARGE_BLOCKS &&
			    trace_next(&reader, &item) == TRACE_END);
	trace_close(&reader);
	close(fd);
	free(ops);
}

/* The items of a part, and the effort that is left after all of them. */
static uint64_t read_part(int fd, uint64_t start, uint64_t length, unsigned int *items)
{
	struct trace_reader reader;
	struct trace_item item;
	uint64_t left;

	*items = 0;
	if (trace_open_part(&reader, fd, start, length, NULL) != OK)
		abort();
	while (trace_next(&reader, &item) != TRACE_END)
		*items += item.found == TRACE_BLOCK;
	EXPECT_THAT("not a byte after the part is kept",
		    reader.window_offset + reader.window_bytes <= length);
	left = reader.effort_left;
	trace_close(&reader);
	return left;
}

/* Of a file that takes many reads. */
static void test_parts(void)
{
	struct sample sample = read_file(path_of("large")), archive = { NULL, 0, 0 };
	unsigned int alone = 0, inside = 0;
	uint64_t left;
	int fd;

	fd = open(path_of("large"), O_RDONLY);
	left = read_part(fd, 0, sample.size, &alone);
	close(fd);
	sample_put(&archive, "before", 6);
	sample_put(&archive, sample.bytes, sample.size);
	sample_put(&archive, sample.bytes, sample.size);
	write_file(path_of("part"), archive.bytes, archive.size);
	fd = open(path_of("part"), O_RDONLY);
	EXPECT_THAT("bytes after a part of a file are no effort for its reader",
		    read_part(fd, 6, sample.size, &inside) == left);
	close(fd);
	EXPECT(alone > 0);
	EXPECT_EQUAL(inside, alone);
	unlink(path_of("part"));
	free(archive.bytes);
	free(sample.bytes);
}

static void test_refusals(void)
{
	struct status_problem problem = { .what = "" };
	struct trace_reader reader;

	EXPECT_EQUAL(trace_open(&reader, path_of("nothing"), &problem), ERR_SYSTEM);
	EXPECT_EQUAL(errno, ENOENT);
	EXPECT_EQUAL(trace_open(&reader, directory, &problem), ERR_SYSTEM);
	EXPECT_EQUAL(errno, EISDIR);
	if (mkfifo(path_of("pipe"), 0600) == -1)
		abort();
	EXPECT_THAT("a pipe is rejected without blocking",
		    trace_open(&reader, path_of("pipe"), &problem) == ERR_SYSTEM &&
			    errno == EINVAL);
}

int main(int argc, char **argv)
{
	int is_rewriting = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
	struct sample sample = sample_trace(), written, newer = newer_minor(),
		      major = newer_major();

	if (mkdtemp(directory) == NULL)
		return tap_skip_all("no temporary directory");
	find_starts(&sample);
	EXPECT(starts[SAMPLE_BLOCKS] == sample.size);
	write_sample(path_of("sample"));
	written = read_file(path_of("sample"));
	EXPECT_THAT("the writer writes what docs/FORMATS.md says", is_same(&written, &sample));
	check_golden("small.ringside", &sample, is_rewriting);
	check_golden("newer-minor.ringside", &newer, is_rewriting);
	check_golden("newer-major.ringside", &major, is_rewriting);
	test_contents(&sample);
	test_plain_records(&sample);
	test_cuts(&sample);
	test_flips(&sample);
	test_versions();
	test_older_minor();
	test_foreign();
	test_lies();
	test_block_limits();
	test_effort();
	test_large();
	test_parts();
	test_refusals();
	unlink(path_of("sample"));
	unlink(path_of("large"));
	unlink(path_of("pipe"));
	rmdir(directory);
	free(sample.bytes);
	free(written.bytes);
	free(newer.bytes);
	free(major.bytes);
	return tap_done();
}
