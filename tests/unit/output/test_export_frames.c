/*
 * Operations that come in one large batch are written as those that come in small ones, and Parquet has what CSV has.
 */
#include "output/export.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "tests/support/parquet_read.h"
#include "tests/tap.h"

enum { ROWS = 2 * EXPORT_FRAME_ROWS + 137 };

static uint64_t words[OP_RECORD_WORDS][ROWS];
static struct recording_comm comms[] = {
	{ .info = { .id = 1,
		    .interface = 5,
		    .hash = 0xabc,
		    .rank = 1,
		    .nranks = 4,
		    .nnodes = 2,
		    .gpu = -1,
		    .name = "tp" } },
	{ .info = { .id = 2,
		    .interface = 5,
		    .hash = 0xdef,
		    .rank = 0,
		    .nranks = 2,
		    .nnodes = 1,
		    .gpu = 3,
		    .name = "dp" } },
};
static struct clock_anchor anchors[] = { { 1000, 5000000 },
					 { 2000000, 9000000 },
					 { 4000000, 4900000 } };
static struct recording_process process = { .job = "j",
					    .rank = 1,
					    .pid = 7,
					    .comms = comms,
					    .comm_count = 2,
					    .anchors = anchors,
					    .anchor_count = 3 };

/* 0 to `most`, another one for each row and kind. */
static uint64_t drawn(uint32_t row, uint64_t kind, uint64_t most)
{
	return hash_word(hash_word(kind, row + 1), 7) % (most + 1);
}

/* Of each time some are missing, and some contradict each other. */
static struct op_record make_op(uint32_t i)
{
	uint64_t at_ns = 500 + (uint64_t)i * 700;

	return (struct op_record){
		.sequence = i + 1,
		.comm = 1 + (uint32_t)drawn(i / 50, 1, 1),
		.function = (uint8_t)(1 + drawn(i / 20, 2, 8)),
		.datatype = (uint8_t)drawn(i / 30, 3, 9),
		.algorithm = (uint8_t)drawn(i / 40, 4, 3),
		.protocol = (uint8_t)drawn(i / 40, 5, 3),
		.number = i + 1,
		.match = i,
		.bytes = drawn(i, 6, 1 << 20),
		.count = drawn(i, 7, 1 << 18),
		.root = drawn(i, 8, 3) == 0 ? 2 : OP_NOBODY,
		.peer = drawn(i, 9, 1) == 0 ? (int32_t)drawn(i, 10, 40) : OP_NOBODY,
		.state = OP_DONE,
		.flags = (uint16_t)(drawn(i / 60, 11, 3) == 0 ? OP_FLAG_REPLAY : 0),
		.time_source = (uint8_t)drawn(i / 9, 12, OP_TIME_SOURCES - 1),
		.channels = (uint8_t)drawn(i, 13, 30),
		.warps = (uint8_t)drawn(i, 14, 16),
		.issue_ns = drawn(i, 15, 5) ? at_ns : 0,
		.launch_ns = drawn(i, 16, 5) ? at_ns + drawn(i, 17, 90) : 0,
		.task_ns = drawn(i, 18, 5) ? at_ns + drawn(i, 19, 90) : 0,
		.active_ns = drawn(i, 20, 5) ? at_ns + 100 + drawn(i, 21, 90) : 0,
		.done_ns = drawn(i, 22, 5) ? at_ns + drawn(i, 23, 900) : 0,
		.gpu_start_ns = drawn(i, 24, 5) ? 1000000 + at_ns : 0,
		.gpu_stop_ns = drawn(i, 25, 5) ? 1000000 + at_ns + drawn(i, 26, 900) - 100 : 0,
		.start_spread_ns = (uint32_t)drawn(i, 27, 500),
		.stop_spread_ns = (uint32_t)drawn(i, 28, 500),
		.send_steps = (uint32_t)drawn(i, 29, 64),
		.recv_steps = (uint32_t)drawn(i, 30, 64),
		.send_bytes = drawn(i, 31, 1 << 20),
		.recv_bytes = drawn(i, 32, 1 << 20),
		.wait_ns = { i, 2 * i, 3 * i, 4 * i, 5 * i, 6 * i },
		.user_tag = drawn(i, 33, 3),
	};
}

/* The caller releases the sink. */
static enum status write_batches(struct sink *sink, const struct export_format *format,
				 uint32_t at_once)
{
	enum status status = OK, end;
	void *writer;

	sink_init_memory(sink);
	writer = format->begin(sink, EXPORT_ALL_COLUMNS);
	if (writer == NULL)
		abort();
	format->process(writer, &process);
	for (uint32_t at = 0; at < ROWS && status == OK; at += at_once) {
		struct op_batch batch = { .rows = ROWS - at < at_once ? ROWS - at : at_once,
					  .words = OP_WORDS_ALL };

		for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
			batch.column[word] = words[word] + at;
		status = format->batch(writer, &batch);
	}
	end = format->end(writer);
	return status != OK ? status : end;
}

static void expect_same(const char *what, const struct export_format *format, uint32_t at_once)
{
	struct sink large, small;

	EXPECT_EQUAL(write_batches(&large, format, ROWS), OK);
	EXPECT_EQUAL(write_batches(&small, format, at_once), OK);
	EXPECT_THAT(what, large.used == small.used && large.used > (size_t)100 * ROWS / 8 &&
				  memcmp(large.bytes, small.bytes, large.used) == 0);
	sink_release(&large);
	sink_release(&small);
}

/* ---- one format against the other --------------------------------------------------------------- */

/* The next cell of a line; moves behind it. Quotes are left out. */
static const char *take_cell(char **at, bool *is_null)
{
	bool is_quoted = **at == '"';
	char *begin = *at + is_quoted, *end = begin + strcspn(begin, is_quoted ? "\"" : ",\r");

	*is_null = !is_quoted && end == begin;
	*at = end + is_quoted;
	if (**at == ',')
		++*at;
	*end = '\0';
	return begin;
}

static bool is_same_cell(const struct parquet_cell *cell, const char *text, bool is_null)
{
	if (cell->is_null || is_null)
		return cell->is_null == is_null;
	if (cell->text != NULL)
		return strcmp(cell->text, text) == 0;
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return cell->number == (text[0] == 't');
	return cell->number ==
	       (text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10));
}

/* Times are text in CSV: in Parquet, the recorder's time and the offset. */
static bool is_same_time(const struct parquet_read *file, unsigned int column, size_t row,
			 const struct op_record *op)
{
	const uint64_t times_ns[] = { op->issue_ns, op->launch_ns, op->task_ns, op->active_ns,
				      op->done_ns };
	const struct parquet_cell *cell = &file->cells[column][row];
	uint64_t ns = times_ns[column - EXPORT_ISSUE_TIME];

	return cell->is_null == (ns == 0) &&
	       (ns == 0 || cell->number == ns + file->cells[EXPORT_CLOCK_OFFSET][row].number);
}

static void test_formats(void)
{
	static char *lines[ROWS + 1];
	struct sink csv, parquet;
	size_t wrong = 0, count = 0;
	struct parquet_read file;

	EXPECT_EQUAL(write_batches(&csv, &export_csv, ROWS), OK);
	EXPECT_EQUAL(write_batches(&parquet, &export_parquet, ROWS), OK);
	for (char *at = strchr(csv.bytes, '\n'); at != NULL && at[1] != '\0' && count < ROWS;
	     at = strchr(at + 1, '\n'))
		lines[count++] = at + 1;
	EXPECT_EQUAL(count, ROWS);
	file = parquet_read(&parquet);
	EXPECT(!file.is_bad && file.rows == ROWS && file.column_count == EXPORT_COLUMNS);
	for (size_t row = 0; row < file.rows && !file.is_bad; row++) {
		uint64_t number = file.cells[EXPORT_SEQUENCE][row].number;
		struct op_record op = make_op((uint32_t)number - 1);
		char *at = number >= 1 && number <= ROWS ? lines[number - 1] : NULL;
		char line[2000], *cursor = line;

		if (at == NULL) {
			wrong++;
			continue;
		}
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
		for (unsigned int column = 0; column < EXPORT_COLUMNS; column++) {
			bool is_null,
				is_time = column >= EXPORT_ISSUE_TIME && column <= EXPORT_DONE_TIME;
			const char *text = take_cell(&cursor, &is_null);
			bool is_same =
				is_time ? is_same_time(&file, column, row, &op)
					: is_same_cell(&file.cells[column][row], text, is_null);

			if (!is_same && wrong++ < 5)
				printf("# %s of row %llu: %s\n", export_columns[column].name,
				       (unsigned long long)number, text);
		}
	}
	EXPECT_EQUAL(wrong, 0);
	parquet_read_release(&file);
	sink_release(&csv);
	sink_release(&parquet);
}

int main(void)
{
	for (uint32_t i = 0; i < ROWS; i++) {
		struct op_record op = make_op(i);

		for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
			memcpy(&words[word][i], (const char *)&op + 8 * word, 8);
	}
	expect_same("CSV", &export_csv, 97);
	expect_same("JSON lines", &export_jsonl, 4000);
	expect_same("Parquet", &export_parquet, EXPORT_FRAME_ROWS);
	test_formats();
	return tap_done();
}
