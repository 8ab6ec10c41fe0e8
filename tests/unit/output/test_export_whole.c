/* The tables of the jobs in whole_job.h: every column of every row, as CSV, as JSON lines and read back from Parquet. */
#include "output/export.h"

#include <inttypes.h>
#include <string.h>

#include "common/attributes.h"
#include "tests/support/expected_output.h"
#include "tests/support/parquet_read.h"
#include "tests/tap.h"
#include "tests/unit/output/whole_job.h"

#define EXPECTED "tests/unit/output/expected/"

static struct recording recording;

struct writing {
	const struct export_format *format;
	void *writer;
};

static bool put_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	struct writing *to = context;

	(void)place;
	return to->format->batch(to->writer, batch) == OK;
}

static void write_table(struct sink *sink, const struct export_format *format, uint64_t columns)
{
	struct writing to = { .format = format };

	sink_init_memory(sink);
	to.writer = format->begin(sink, columns);
	if (to.writer == NULL)
		abort();
	for (size_t i = 0; i < recording.count; i++) {
		format->process(to.writer, recording.processes[i]);
		EXPECT_EQUAL(recording_each_batch(recording.processes[i], export_words(), put_batch,
						  &to, NULL),
			     OK);
	}
	format->fact(to.writer, "ringside.lost", "17");
	EXPECT_EQUAL(format->end(to.writer), OK);
}

static void put_cell(struct sink *to, const struct parquet_cell *cell)
{
	if (cell->is_null)
		sink_text(to, " -");
	else if (cell->text != NULL)
		sink_format(to, " %s", cell->text[0] ? cell->text : "\"\"");
	else
		sink_format(to, " %" PRIu64, cell->number);
}

/* A line per column. */
static void show_parquet(struct sink *to, const struct parquet_read *file, uint64_t columns)
{
	size_t column = 0;

	sink_init_memory(to);
	for (unsigned int i = 0; i < EXPORT_COLUMNS; i++) {
		if (!(columns & EXPORT_COLUMN_BIT(i)))
			continue;
		sink_format(to, "%s:", export_columns[i].name);
		for (size_t row = 0; row < file->rows; row++)
			put_cell(to, &file->cells[column][row]);
		sink_byte(to, '\n');
		column++;
	}
}

static void expect_parquet(uint64_t columns, const char *path, const char *footer)
{
	struct parquet_read file;
	struct sink sink, text;

	write_table(&sink, &export_parquet, columns);
	file = parquet_read(&sink);
	if (EXPECT(!file.is_bad)) {
		show_parquet(&text, &file, columns);
		EXPECT_THAT(path, expected_text(&text, path));
		if (footer) {
			EXPECT_THAT(footer, expected_text(&file.footer, footer));
			sink_init_memory(&file.footer);
		}
	}
	parquet_read_release(&file);
	sink_release(&sink);
}

static void test_tables(void)
{
	const uint64_t few = EXPORT_COLUMN_BIT(EXPORT_RANK) | EXPORT_COLUMN_BIT(EXPORT_FUNCTION) |
			     EXPORT_COLUMN_BIT(EXPORT_ISSUE_TIME) |
			     EXPORT_COLUMN_BIT(EXPORT_WAIT_RECV_GPU);
	struct sink sink;

	write_table(&sink, &export_csv, EXPORT_ALL_COLUMNS);
	EXPECT_THAT("CSV", expected_text(&sink, EXPECTED "export-all.csv"));
	write_table(&sink, &export_jsonl, EXPORT_ALL_COLUMNS);
	EXPECT_THAT("JSON lines", expected_text(&sink, EXPECTED "export-all.jsonl"));
	write_table(&sink, &export_csv, few);
	EXPECT_THAT("a few columns", expected_text(&sink, EXPECTED "export-few.csv"));
	write_table(&sink, &export_jsonl, few);
	EXPECT_THAT("a few keys", expected_text(&sink, EXPECTED "export-few.jsonl"));
	expect_parquet(EXPORT_ALL_COLUMNS, EXPECTED "export-parquet.txt",
		       EXPECTED "export-footer.txt");
	expect_parquet(few, EXPECTED "export-parquet-few.txt", NULL);
}

/* ---- more entries than a group holds ----------------------------------------------------------- */

enum { ROWS = 4096, ROUNDS = 5 };

static uint64_t words[OP_RECORD_WORDS][ROWS];

/* Each row has a peer of its own; two communicators alternate or not. */
static struct op_batch make_batch(uint32_t round, bool is_alternating)
{
	struct op_batch batch = { .rows = ROWS, .words = OP_WORDS_ALL };

	for (uint32_t i = 0; i < ROWS; i++) {
		struct op_record op = { .sequence = round * ROWS + i + 1,
					.comm = is_alternating ? 1 + i % 2 : 1,
					.function = OP_SEND,
					.number = round * ROWS + i + 1,
					.bytes = i % 7,
					.root = OP_NOBODY,
					.peer = (int32_t)(round * ROWS + i),
					.state = OP_DONE,
					.issue_ns = 1000 + i };

		for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
			memcpy(&words[word][i], (const char *)&op + 8 * word, 8);
	}
	for (unsigned int word = 0; word < OP_RECORD_WORDS; word++)
		batch.column[word] = words[word];
	return batch;
}

/* Rows with their own peer, in any order: each sequence once, with the values that belong to it. */
static void expect_many(bool is_alternating)
{
	const uint64_t columns = EXPORT_COLUMN_BIT(EXPORT_SEQUENCE) |
				 EXPORT_COLUMN_BIT(EXPORT_COMM_ID) |
				 EXPORT_COLUMN_BIT(EXPORT_PEER) | EXPORT_COLUMN_BIT(EXPORT_BYTES);
	static const struct recording_process process = { .job = "j", .pid = 7 };
	struct sink sink;
	void *writer;
	struct parquet_read file;
	size_t wrong = 0, at[EXPORT_COLUMNS] = { 0 }, next = 0;

	sink_init_memory(&sink);
	writer = export_parquet.begin(&sink, columns);
	if (writer == NULL)
		abort();
	export_parquet.process(writer, &process);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct op_batch batch = make_batch(round, is_alternating);

		EXPECT_EQUAL(export_parquet.batch(writer, &batch), OK);
	}
	EXPECT_EQUAL(export_parquet.end(writer), OK);
	for (unsigned int i = 0; i < EXPORT_COLUMNS; i++)
		if (columns & EXPORT_COLUMN_BIT(i))
			at[i] = next++;
	file = parquet_read(&sink);
	EXPECT(!file.is_bad && file.rows == ROWS * ROUNDS);
	EXPECT_EQUAL(file.groups, 2);
	for (size_t i = 0; i < file.rows && !file.is_bad; i++) {
		uint64_t row = file.cells[at[EXPORT_SEQUENCE]][i].number - 1;

		wrong += !is_alternating && row != i;
		wrong += file.cells[at[EXPORT_PEER]][i].number != row;
		wrong += file.cells[at[EXPORT_BYTES]][i].number != row % ROWS % 7;
		wrong += file.cells[at[EXPORT_COMM_ID]][i].number !=
			 (is_alternating ? 1 + row % 2 : 1);
	}
	EXPECT_EQUAL(wrong, 0);
	parquet_read_release(&file);
	sink_release(&sink);
}

int main(void)
{
	whole_make(&recording, 2);
	test_tables();
	expect_many(false);
	expect_many(true);
	recording_release(&recording);
	return tap_done();
}
