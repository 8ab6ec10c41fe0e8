/*
 * Every call of a benchmark as a row of Parquet, read back by an independent reader: a line per row, and what the file
 * says about the run, in tests/unit/bench/expected/calls.parquet.txt.
 */
#include "bench/bench_result.h"

#include "tests/support/bench_sample.h"
#include "tests/support/expected_output.h"
#include "tests/support/parquet_read.h"
#include "tests/tap.h"

enum { CALL = 24, GPU = 26, COLUMNS = 29, MANY = 5000 };

static void show_cell(struct sink *text, const struct parquet_cell *cell)
{
	if (cell->is_null)
		sink_text(text, " -");
	else if (cell->text != NULL)
		sink_format(text, " '%s'", cell->text);
	else
		sink_format(text, " %llu", (unsigned long long)cell->number);
}

static bool is_same(const struct parquet_read *file, size_t column, size_t row)
{
	const struct parquet_cell *a = &file->cells[column][row - 1], *b = a + 1;

	return a->is_null == b->is_null && a->number == b->number &&
	       (a->text == NULL || b->text == NULL ? a->text == b->text
						   : strcmp(a->text, b->text) == 0);
}

/* What is the same as in the row before is left out. */
static void show_rows(struct sink *text, const struct parquet_read *file)
{
	for (size_t row = 0; row < file->rows; row++) {
		bool is_repeated = row > 0;

		for (size_t column = 0; column < CALL && is_repeated; column++)
			is_repeated = is_same(file, column, row);
		for (size_t column = 0; column < CALL && !is_repeated; column++)
			show_cell(text, &file->cells[column][row]);
		sink_text(text, is_repeated ? "  call" : "\n  call");
		for (size_t column = CALL; column < COLUMNS; column++)
			show_cell(text, &file->cells[column][row]);
		sink_text(text, "\n");
	}
}

static void show_pairs(struct sink *text, struct sink *footer)
{
	const char *at = sink_string(footer);

	while (*at != '\0') {
		size_t length = strcspn(at, "\n") + 1;

		if (strncmp(at, "2.4 ", 4) == 0 || strncmp(at, "5.", 2) == 0)
			sink_write(text, at, length);
		at += length;
	}
}

static struct parquet_read written(const struct bench_run *run, struct sink *sink)
{
	struct parquet_read file;

	sink_init_memory(sink);
	EXPECT_EQUAL(bench_parquet_write(sink, run), OK);
	file = parquet_read(sink);
	EXPECT(!file.is_bad && file.column_count == COLUMNS);
	return file;
}

static void test_everything(void)
{
	struct bench_run run;
	struct parquet_read file;
	struct sink sink, text;

	sample_everything(&run);
	run.cells[1].algorithm = OP_TREE;
	run.cells[1].protocol = OP_LL;
	file = written(&run, &sink);
	sink_init_memory(&text);
	show_rows(&text, &file);
	show_pairs(&text, &file.footer);
	EXPECT_THAT("rows as in calls.parquet.txt",
		    expected_text(&text, "tests/unit/bench/expected/calls.parquet.txt"));
	parquet_read_release(&file);
	sink_release(&sink);
	bench_run_release(&run);
}

/* More calls than are written at once, of fewer ranks than the run has. */
static void test_many_calls(void)
{
	struct bench_cell like = { .function = OP_ALL_REDUCE,
				   .datatype = OP_FLOAT32,
				   .mode = BENCH_BLOCKING,
				   .root = -1,
				   .nranks = 1,
				   .calls = MANY };
	struct bench_run run;
	struct bench_cell *cell;
	struct parquet_read file;
	struct sink sink;
	size_t wrong = 0;

	sample_start(&run, SAMPLE_RANKS);
	cell = bench_run_add_cell(&run, &like);
	if (cell == NULL)
		abort();
	for (uint32_t i = 0; i < MANY; i++)
		cell->calls_of[i].gpu_ns = 1000 + 3 * i;
	file = written(&run, &sink);
	EXPECT_EQUAL(file.rows, MANY);
	for (size_t i = 0; i < file.rows; i++)
		wrong += file.cells[CALL][i].number != i ||
			 file.cells[GPU][i].number != 1000 + 3 * i;
	EXPECT_EQUAL(wrong, 0);
	parquet_read_release(&file);
	sink_release(&sink);
	bench_run_release(&run);
}

int main(void)
{
	test_everything();
	test_many_calls();
	return tap_done();
}
