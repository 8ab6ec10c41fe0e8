/*
 * Operations as columns equal operations one by one: the same records from the same places, with
 * the same time sources and the same counts, whatever was recorded and however damaged it is.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/text.h"
#include "format/trace_write.h"
#include "recording/recording.h"
#include "tests/support/sample_region.h"
#include "tests/tap.h"

enum { ROWS = 3000 };

static char directory[] = "/tmp/test_recording_batch.XXXXXX";
static uint64_t state = 1;

static uint64_t below(uint64_t limit)
{
	state = hash_word(state, 1);
	return (state >> 11) % limit;
}

static const char *path_of(const char *name)
{
	static char path[256];

	text_format(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	FILE *file;

	/* A new file each time: some systems wait for the disk when a file is overwritten. */
	unlink(path_of(name));
	file = fopen(path_of(name), "wb");
	if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
		abort();
}

/* ---- records ---------------------------------------------------------------------------------- */

/* A valid one; its time has one of the four sources. */
static struct op_record make_op(uint64_t sequence)
{
	struct op_record op = { .sequence = sequence,
				.comm = 1 + (uint32_t)below(3),
				.function = (uint8_t)below(OP_FUNCTIONS),
				.datatype = below(9) == 0 ? OP_NAME_INTERNED + 5 : OP_FLOAT32,
				.algorithm = OP_RING,
				.protocol = OP_LL128,
				.number = sequence,
				.match = sequence,
				.count = 1024 << below(5),
				.bytes = 4096 << below(5),
				.root = OP_NOBODY,
				.peer = OP_NOBODY,
				.state = 1 + (uint8_t)below(OP_STATES - 1),
				.time_source = (uint8_t)below(OP_TIME_SOURCES) };

	op.issue_ns = 1000 * sequence + below(100);
	op.active_ns = op.issue_ns + 50;
	op.done_ns = op.active_ns + below(1000);
	op.gpu_start_ns = 70000 + op.active_ns;
	op.gpu_stop_ns = 70000 + op.done_ns;
	return op;
}

enum { CAUSES = 14 };

/* Make it invalid: it is rejected, or its time is. */
static void spoil(struct op_record *op, uint64_t cause)
{
	switch (cause) {
	case 0:
		op->sequence = 0;
		break;
	case 1:
		op->sequence |= UINT64_C(1) << 63;
		break;
	case 2:
		op->comm = 0;
		break;
	case 3:
		op->number = 0;
		break;
	case 4:
		op->function = OP_FUNCTIONS + (uint8_t)below(OP_NAME_INTERNED - OP_FUNCTIONS);
		break;
	case 5:
		op->datatype = 192 + (uint8_t)below(64);
		break;
	case 6:
		op->algorithm = OP_ALGORITHMS;
		break;
	case 7:
		op->protocol = OP_PROTOCOLS;
		break;
	case 8:
		op->state = below(2) == 0 ? 0 : OP_STATES;
		break;
	case 9:
		op->time_source = OP_TIME_SOURCES;
		break;
	case 10:
		op->gpu_stop_ns = op->gpu_start_ns - 1;
		op->done_ns = op->active_ns - 1;
		break;
	case 11:
		op->gpu_start_ns = op->active_ns = op->issue_ns = 0;
		break;
	case 12:
		op->sequence = 1 + below(op->sequence);
		break;
	default:
		op->done_ns = op->gpu_stop_ns = 0;
	}
}

/* `wrong` of a thousand records are invalid. */
static void make_trace(const char *name, uint64_t first, uint64_t wrong)
{
	static struct op_record ops[TRACE_OPS_PER_BLOCK];
	struct trace_writer writer;
	uint64_t sequence = first;

	if (trace_writer_open_at(&writer, path_of(name), 0600, 0, SAMPLE_CREATED_NS + first) != OK)
		abort();
	trace_write_text(&writer, TRACE_PROCESS, sample_info, strlen(sample_info));
	while (sequence < first + ROWS) {
		uint32_t count = 1 + (uint32_t)(below(2) ? below(40) : below(TRACE_OPS_PER_BLOCK));

		for (uint32_t i = 0; i < count; i++) {
			ops[i] = make_op(sequence++);
			if (below(1000) < wrong)
				spoil(&ops[i], below(CAUSES));
		}
		if (trace_write_ops(&writer, ops, count) != OK)
			abort();
	}
	trace_writer_close(&writer);
}

/* ---- comparing -------------------------------------------------------------------------------- */

struct list {
	struct op_record *ops;
	enum recording_place *places;
	size_t count, room;
};

static bool keep_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct list *list = context;

	if (list->count == list->room) {
		list->room = list->room * 2 + 1024;
		list->ops = realloc(list->ops, list->room * sizeof(*list->ops));
		list->places = realloc(list->places, list->room * sizeof(*list->places));
		if (list->ops == NULL || list->places == NULL)
			abort();
	}
	list->ops[list->count] = *op;
	list->places[list->count++] = place;
	return true;
}

struct comparison {
	const struct list *list;
	uint32_t words;
	size_t at;
	size_t batches, limit;
	bool is_wrong;
};

static bool compare_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct comparison *comparison = context;
	uint64_t record[OP_RECORD_WORDS];

	comparison->is_wrong |= batch->rows == 0 || batch->words != comparison->words;
	for (uint32_t row = 0; row < batch->rows && !comparison->is_wrong; row++) {
		size_t at = comparison->at++;

		if (at >= comparison->list->count || comparison->list->places[at] != place) {
			comparison->is_wrong = true;
			break;
		}
		memcpy(record, &comparison->list->ops[at], sizeof(record));
		for (unsigned int word = 0; word < OP_RECORD_WORDS; word++) {
			if (comparison->words & OP_WORD_BIT(word))
				comparison->is_wrong |= batch->column[word][row] != record[word];
			else
				comparison->is_wrong |= batch->column[word] != NULL;
		}
	}
	return ++comparison->batches != comparison->limit;
}

/* The address of a problem's text may differ. */
static bool is_same_walk(struct recording_walk one, struct recording_walk other)
{
	bool is_same = (one.problem == NULL) == (other.problem == NULL) &&
		       (one.problem == NULL || strcmp(one.problem, other.problem) == 0);

	one.problem = other.problem = NULL;
	return is_same && memcmp(&one, &other, sizeof(one)) == 0;
}

static bool is_same_with(const struct recording_process *process, const struct list *list,
			 const struct recording_walk *wanted, uint32_t words)
{
	struct comparison comparison = { .list = list, .words = words };
	struct recording_walk walk;
	enum status status =
		recording_each_batch(process, words, compare_batch, &comparison, &walk);

	if (!(words & OP_WORD_BIT(OP_WORD_STATE)))
		walk.untimed = wanted->untimed;
	return status == OK && !comparison.is_wrong && comparison.at == list->count &&
	       is_same_walk(walk, *wanted);
}

/* Any words, and all of them. Returns how many operations there are; -1: they differ. */
static int64_t compare(const char *path)
{
	struct recording recording;
	int64_t count = 0;

	recording_init(&recording);
	if (recording_add(&recording, path, 0) != OK || recording_finish(&recording) != OK)
		abort();
	for (size_t i = 0; i < recording.count; i++) {
		const struct recording_process *process = recording.processes[i];
		struct list list = { .count = 0 };
		struct recording_walk walk;
		bool is_same = recording_each_op(process, keep_op, &list, &walk) == OK;

		is_same = is_same && is_same_with(process, &list, &walk, OP_WORDS_ALL) &&
			  is_same_with(process, &list, &walk, OP_WORDS_TIME) &&
			  is_same_with(process, &list, &walk, 0) &&
			  is_same_with(process, &list, &walk, (uint32_t)state) &&
			  is_same_with(process, &list, &walk, OP_WORD_BIT(below(32)));
		count += (int64_t)list.count;
		free(list.ops);
		free(list.places);
		if (!is_same)
			count = -1000000;
	}
	recording_release(&recording);
	return count;
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void test_files(void)
{
	make_trace("a.ringside", 1, 0);
	EXPECT_THAT("valid records", compare(path_of("a.ringside")) >= ROWS);
	unlink(path_of("a.ringside"));
	make_trace("a.ringside", 1, 5);
	EXPECT_THAT("some invalid records", compare(path_of("a.ringside")) > ROWS * 9 / 10);
	make_trace("b.ringside", ROWS / 2, 50);
	EXPECT_THAT("two files of one process with common records", compare(directory) > ROWS);
	unlink(path_of("b.ringside"));
	make_trace("b.ringside", ROWS / 2, 900);
	EXPECT_THAT("almost only invalid records", compare(directory) > 0);
	unlink(path_of("a.ringside"));
	unlink(path_of("b.ringside"));
}

/* A single invalid one among many valid, similar ones. */
static void test_causes(void)
{
	struct op_record ops[100];
	struct trace_writer writer;
	int wrong = 0;

	for (uint64_t cause = 0; cause < CAUSES * 8; cause++) {
		for (uint64_t i = 0; i < ARRAY_LENGTH(ops); i++) {
			ops[i] = make_op(i + 1);
			ops[i].time_source = 1 + cause % 3;
		}
		spoil(&ops[cause % ARRAY_LENGTH(ops)], cause % CAUSES);
		unlink(path_of("one"));
		if (trace_writer_open(&writer, path_of("one"), 0600, 0) != OK ||
		    trace_write_text(&writer, TRACE_PROCESS, sample_info, strlen(sample_info)) !=
			    OK ||
		    trace_write_ops(&writer, ops, ARRAY_LENGTH(ops)) != OK)
			abort();
		trace_writer_close(&writer);
		wrong += compare(path_of("one")) < 99;
	}
	unlink(path_of("one"));
	EXPECT_THAT("whatever is wrong with a single record", wrong == 0);
}

/* Ring and live slots. */
static void test_places(void)
{
	struct sample region = sample_region(), trace = sample_trace();
	struct trace_writer writer;
	struct op_record ops[9];

	write_file("region", region.bytes, region.size);
	EXPECT_THAT("a region", compare(path_of("region")) > 0);
	write_file("trace", trace.bytes, trace.size);
	EXPECT_THAT("a small trace", compare(path_of("trace")) == SAMPLE_OPS + SAMPLE_LATE_OPS);
	EXPECT_THAT("both, of one process: trace, ring, live slots", compare(directory) == 13);
	unlink(path_of("trace"));
	/* The sample has 6 and 7 of communicator 1 in flight. */
	for (uint64_t i = 0; i < ARRAY_LENGTH(ops); i++) {
		ops[i] = make_op(i + 1);
		ops[i].comm = 1;
	}
	if (trace_writer_open(&writer, path_of("trace"), 0600, 0) != OK ||
	    trace_write_text(&writer, TRACE_PROCESS, sample_info, strlen(sample_info)) != OK ||
	    trace_write_ops(&writer, ops, ARRAY_LENGTH(ops)) != OK)
		abort();
	trace_writer_close(&writer);
	EXPECT_THAT("live slots whose operations are in the trace", compare(directory) == 11);
	unlink(path_of("region"));
	unlink(path_of("trace"));
	free(region.bytes);
	free(trace.bytes);
}

/* With valid checksums, so that the reader continues to the columns. */
static void set_checksums(unsigned char *bytes, size_t size)
{
	struct trace_block block;

	for (size_t at = sizeof(struct trace_header); size - at >= sizeof(block);
	     at += sizeof(block) + block.payload_bytes) {
		memcpy(&block, bytes + at, sizeof(block));
		if (block.payload_bytes > size - at - sizeof(block))
			return;
		block.checksum = trace_block_checksum(&block, bytes + at + sizeof(block));
		memcpy(bytes + at, &block, sizeof(block));
	}
}

static void test_damage(void)
{
	enum { ROUNDS = TAP_IS_SLOW ? 600 : 3000 };
	struct sample trace = sample_trace();
	unsigned char *copy = malloc(trace.size);
	int wrong = 0, fewer = 0;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t count;

		memcpy(copy, trace.bytes, trace.size);
		for (uint64_t changes = 1 + below(3); changes > 0; changes--)
			copy[64 + below(trace.size - 64)] ^= (unsigned char)(1u << below(8));
		if (round % 8 != 0)
			set_checksums(copy, trace.size);
		write_file("trace", copy, trace.size);
		count = compare(path_of("trace"));
		wrong += count < 0;
		fewer += count < SAMPLE_OPS + SAMPLE_LATE_OPS;
	}
	EXPECT_THAT("files with random bits flipped", wrong == 0);
	EXPECT_THAT("some of them have fewer records, so the flips matter", fewer > ROUNDS / 30);
	unlink(path_of("trace"));
	free(copy);
	free(trace.bytes);
}

static void test_end(void)
{
	struct list list = { .count = 0 };
	struct comparison comparison = { .list = &list, .words = OP_WORDS_ALL, .limit = 2 };
	struct recording recording;

	make_trace("a.ringside", 1, 0);
	recording_init(&recording);
	if (recording_add(&recording, path_of("a.ringside"), 0) != OK ||
	    recording_finish(&recording) != OK)
		abort();
	recording_each_op(recording.processes[0], keep_op, &list, NULL);
	EXPECT_EQUAL(recording_each_batch(recording.processes[0], OP_WORDS_ALL, compare_batch,
					  &comparison, NULL),
		     OK);
	EXPECT_THAT("a visitor can end the walk",
		    comparison.batches == 2 && comparison.at < list.count && !comparison.is_wrong);
	recording_release(&recording);
	unlink(path_of("a.ringside"));
	free(list.ops);
	free(list.places);
}

/*
 * A process that samples kernel events: operations with transfers, some of them timed by the GPU.
 */
static void make_sampled(uint64_t timed)
{
	static struct op_record ops[ROWS];
	struct comm_info info = { .id = 1, .nranks = 2 };
	struct trace_counts counts = { .trace_records = ROWS, .ring_head = ROWS, .comms = 1 };
	struct trace_comm_counts of = {
		.id = 1, .counts = { .issued = ROWS, .recorded = ROWS, .timed = timed }
	};
	struct trace_writer writer;

	for (uint64_t i = 0; i < ROWS; i++) {
		ops[i] = make_op(i + 1);
		ops[i].comm = 1;
		ops[i].state = OP_DONE;
		ops[i].time_source = i < timed ? OP_TIME_KERNEL_GPU : OP_TIME_NONE;
		ops[i].flags = i < timed ? OP_FLAG_KERNELS_ASKED : OP_FLAG_NOT_SAMPLED;
		ops[i].proxies_started = 4;
		ops[i].proxies_stopped = i % 10 == 9 ? 3 : 4;
	}
	if (trace_writer_open(&writer, path_of("sampled"), 0600, 0) != OK ||
	    trace_write_text(&writer, TRACE_PROCESS, sample_info, strlen(sample_info)) != OK ||
	    trace_write_records(&writer, TRACE_COMM, &info, sizeof(info), 1) != OK)
		abort();
	for (uint64_t i = 0; i < ROWS; i += 300)
		if (trace_write_ops(&writer, ops + i, 300) != OK)
			abort();
	if (trace_write_counts(&writer, TRACE_CLOSE, &counts, &of) != OK)
		abort();
	trace_writer_close(&writer);
}

static uint64_t with_source(enum op_time_source source)
{
	struct list list = { .count = 0 };
	struct recording recording;
	uint64_t count = 0;

	recording_init(&recording);
	if (recording_add(&recording, path_of("sampled"), 0) != OK ||
	    recording_finish(&recording) != OK ||
	    recording_each_op(recording.processes[0], keep_op, &list, NULL) != OK)
		abort();
	for (size_t i = 0; i < list.count; i++)
		count += list.ops[i].time_source == source;
	recording_release(&recording);
	free(list.ops);
	free(list.places);
	return count;
}

static void test_network_times(void)
{
	make_sampled(0);
	EXPECT_EQUAL(with_source(OP_TIME_PROXY), ROWS / 10 * 9);
	EXPECT_THAT("network times where nothing was sampled yet",
		    compare(path_of("sampled")) == ROWS);
	unlink(path_of("sampled"));
	make_sampled(1);
	EXPECT_EQUAL(with_source(OP_TIME_PROXY), 0);
	EXPECT_EQUAL(with_source(OP_TIME_KERNEL_GPU), 1);
	EXPECT_THAT("none once there is a sample", compare(path_of("sampled")) == ROWS);
	unlink(path_of("sampled"));
}

int main(void)
{
	if (mkdtemp(directory) == NULL)
		return tap_skip_all("no temporary directory");
	test_files();
	test_causes();
	test_places();
	test_damage();
	test_end();
	test_network_times();
	rmdir(directory);
	return tap_done();
}
