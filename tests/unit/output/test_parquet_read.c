/*
 * Files of every type, style and shape, read back by an independent reader: all values, and the footer with its statistics.
 * Counts of rows are around the sizes of blocks, pages and dictionaries.
 */
#include "output/parquet.h"

#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "tests/support/expected_output.h"
#include "tests/support/parquet_read.h"
#include "tests/tap.h"

#define EXPECTED "tests/unit/output/expected/"
#define NONE UINT64_C(0xffffffff)

/* By row; what means null is NONE. */
typedef uint64_t value_of(size_t row);

static uint64_t one(size_t row)
{
	return row ? 7 : 7;
}

static uint64_t climbs(size_t row)
{
	return 1000 + row * 3;
}

static uint64_t jumps(size_t row)
{
	return hash_word(1, row) & 0xfffffff;
}

static uint64_t few(size_t row)
{
	return hash_word(2, row) % 5;
}

static uint64_t some_null(size_t row)
{
	return row % 3 == 1 ? NONE : row * row % 1000;
}

static uint64_t all_null(size_t row)
{
	return row ? NONE : NONE;
}

static uint64_t first_null(size_t row)
{
	return row < 5 ? NONE : 9;
}

static uint64_t last_differs(size_t row)
{
	return row < 126 ? 4 : 5;
}

static uint64_t negative(size_t row)
{
	return (uint64_t)((int64_t)(row % 7) - 3);
}

/* More distinct values than a dictionary holds, but only after a while. */
static uint64_t becomes_many(size_t row)
{
	return row < 4000 ? row % 10 : row;
}

static uint64_t large(size_t row)
{
	return UINT64_MAX - row;
}

static const struct {
	const char *name;
	value_of *value;
	bool is_nullable;
	bool is_wide; /* 64 bits only */
} kinds[] = {
	{ "one", one, false, false },
	{ "climbs", climbs, false, false },
	{ "jumps", jumps, false, false },
	{ "few", few, false, false },
	{ "some null", some_null, true, false },
	{ "all null", all_null, true, false },
	{ "first null", first_null, true, false },
	{ "last differs", last_differs, true, false },
	{ "negative", negative, false, false },
	{ "becomes many", becomes_many, true, false },
	{ "large", large, false, true },
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Puts `rows` rows of each column, at most `at_once` at a time. */
static void put_rows(struct parquet *parquet, value_of *const *values, size_t columns, size_t rows,
		     size_t at_once)
{
	static uint64_t some[PARQUET_ROWS_AT_ONCE];

	for (size_t at = 0; at < rows;) {
		size_t count = rows - at < at_once ? rows - at : at_once;

		for (size_t c = 0; c < columns; c++) {
			for (size_t i = 0; i < count; i++)
				some[i] = values[c](at + i);
			parquet_put_values(parquet, c, some, count);
		}
		parquet_end_rows(parquet, count);
		if (parquet_is_group_full(parquet))
			parquet_end_group(parquet);
		at += count;
	}
}

static size_t count_wrong(const struct parquet_read *file, size_t column, value_of *value,
			  const struct parquet_column *of, size_t rows)
{
	bool is_narrow = of->type != PARQUET_UINT64 && of->type != PARQUET_INT64 &&
			 of->type != PARQUET_TIME_NS;
	size_t wrong = 0;

	for (size_t i = 0; i < rows; i++) {
		const struct parquet_cell *cell = &file->cells[column][i];
		uint64_t wanted = value(i);

		if (of->is_nullable && wanted == of->null)
			wrong += !cell->is_null;
		else
			wrong += cell->is_null ||
				 cell->number != (is_narrow ? (uint32_t)wanted : wanted);
	}
	return wrong;
}

static void expect_values(enum parquet_type type, enum parquet_style style, size_t rows,
			  size_t at_once)
{
	struct parquet_column columns[KINDS];
	value_of *values[KINDS];
	struct parquet_read file;
	struct parquet *parquet;
	size_t wrong = 0;
	struct sink sink;
	char sentence[128];
	size_t count = 0;

	for (size_t i = 0; i < KINDS; i++) {
		if (kinds[i].is_wide && type != PARQUET_UINT64)
			continue;
		columns[count] = (struct parquet_column){ kinds[i].name, type, style,
							  kinds[i].is_nullable, NONE };
		values[count++] = kinds[i].value;
	}
	sink_init_memory(&sink);
	parquet = parquet_new(&sink, columns, count);
	if (parquet == NULL)
		abort();
	put_rows(parquet, values, count, rows, at_once);
	EXPECT_EQUAL(parquet_finish(parquet), OK);
	parquet_free(parquet);
	file = parquet_read(&sink);
	EXPECT_EQUAL(file.column_count, count);
	for (size_t i = 0; i < count && !file.is_bad; i++)
		wrong += count_wrong(&file, i, values[i], &columns[i], rows);
	snprintf(sentence, sizeof(sentence), "type %d, style %d, %zu rows, %zu at once", (int)type,
		 (int)style, rows, at_once);
	EXPECT_THAT(sentence, !file.is_bad && file.rows == rows && wrong == 0);
	parquet_read_release(&file);
	sink_release(&sink);
}

static void test_values(void)
{
	static const size_t counts[] = { 2, 8, 127, 128, 130, 257 };
	static const enum parquet_type types[] = { PARQUET_INT32, PARQUET_UINT16, PARQUET_UINT32,
						   PARQUET_INT64, PARQUET_TIME_NS };

	for (size_t i = 0; i < ARRAY_LENGTH(counts); i++)
		expect_values(PARQUET_UINT64, i % 2 ? PARQUET_DELTA : PARQUET_DICTIONARY_DELTA,
			      counts[i], 4096);
	for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
		expect_values(types[i], (enum parquet_style)(i % 4), 300, 100);
	for (enum parquet_style style = PARQUET_DELTA; style <= PARQUET_DICTIONARY_PLAIN; style++) {
		expect_values(PARQUET_UINT64, style, 1, 1);
		expect_values(PARQUET_UINT64, style, 129, 64);
		expect_values(PARQUET_UINT64, style, 5000, 4096);
	}
	expect_values(PARQUET_UINT64, PARQUET_DELTA, 40000, 4096);
	expect_values(PARQUET_UINT64, PARQUET_DICTIONARY_PLAIN, 40000, 4096);
	expect_values(PARQUET_UINT64, PARQUET_DELTA, 300, 3);
	expect_values(PARQUET_UINT64, PARQUET_DICTIONARY_DELTA, 300, 1);
}

/* ---- codes ------------------------------------------------------------------------------------ */

static const char *const names[] = { "b", "", "world", "ab", "a", "a longer name than the others" };
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static const struct parquet_column coded[] = {
	{ "name", PARQUET_STRING, 0, true, 0 },	   { "required", PARQUET_STRING, 0, false, 0 },
	{ "flag", PARQUET_BOOL, 0, true, 0 },	   { "size", PARQUET_INT32, 0, true, 0 },
	{ "number", PARQUET_UINT64, 0, false, 0 },
};
enum { CODED = sizeof(coded) / sizeof(coded[0]) };

/* The entry of a row; NAMES is null where that is allowed. */
static uint16_t entry_of(size_t row, size_t is_run)
{
	return (uint16_t)(is_run ? row / 20 % (NAMES + 1) : hash_word(3, row) % (NAMES + 1));
}

static uint64_t number_of(size_t column, uint16_t entry)
{
	static const uint64_t numbers[][NAMES + 1] = {
		[2] = { 0, 1, 1, 0, 1, 0, 0 },
		[3] = { 5, (uint64_t)-5, 0, 77, 1000000, (uint64_t)-1, 0 },
		[4] = { 1, UINT64_MAX, 3, 4, 5, 6, 7 },
	};

	return numbers[column][entry];
}

static void make_codes(struct parquet *parquet, uint16_t codes[CODED][NAMES + 1])
{
	for (size_t c = 0; c < CODED; c++)
		for (uint16_t i = 0; i <= NAMES; i++)
			if (i == NAMES && coded[c].is_nullable)
				codes[c][i] = parquet_code_null(parquet, c);
			else if (coded[c].type == PARQUET_STRING)
				codes[c][i] = parquet_code_text(parquet, c, names[i % NAMES]);
			else
				codes[c][i] = parquet_code_number(parquet, c, number_of(c, i));
}

static void put_coded(struct parquet *parquet, size_t at, size_t count, bool is_run,
		      uint16_t codes[CODED][NAMES + 1])
{
	static struct parquet_run runs[PARQUET_ROWS_AT_ONCE];
	static uint16_t entries[PARQUET_ROWS_AT_ONCE];
	size_t run_count = 0;

	for (size_t i = 0; i < count; i++) {
		entries[i] = entry_of(at + i, is_run);
		if (run_count == 0 || runs[run_count - 1].entry != entries[i])
			runs[run_count++] = (struct parquet_run){ 0, entries[i] };
		runs[run_count - 1].rows++;
	}
	for (size_t c = 0; c < CODED; c++) {
		if (is_run)
			parquet_put_runs(parquet, c, runs, run_count, codes[c]);
		else
			parquet_put_codes(parquet, c, entries, codes[c], count);
	}
	parquet_end_rows(parquet, count);
}

static bool is_cell(const struct parquet_cell *cell, size_t column, uint16_t entry)
{
	uint64_t number;

	if (entry == NAMES && coded[column].is_nullable)
		return cell->is_null;
	if (coded[column].type == PARQUET_STRING)
		return !cell->is_null && cell->text &&
		       strcmp(cell->text, names[entry % NAMES]) == 0;
	number = number_of(column, entry);
	return !cell->is_null &&
	       cell->number == (coded[column].type == PARQUET_INT32 ? (uint32_t)number : number);
}

static void expect_codes(size_t rows, size_t at_once, bool is_run, const char *name)
{
	uint16_t codes[CODED][NAMES + 1];
	struct parquet_read file;
	struct parquet *parquet;
	size_t wrong = 0;
	struct sink sink;
	char sentence[64];

	sink_init_memory(&sink);
	parquet = parquet_new(&sink, coded, CODED);
	if (parquet == NULL)
		abort();
	make_codes(parquet, codes);
	for (size_t at = 0; at < rows; at += at_once)
		put_coded(parquet, at, rows - at < at_once ? rows - at : at_once, is_run, codes);
	if (name != NULL) {
		parquet_end_group(parquet);
		make_codes(parquet, codes);
		put_coded(parquet, 0, 3, false, codes);
		parquet_pair(parquet, "ringside.lost", "17");
		parquet_pair(parquet, "empty", "");
	}
	EXPECT_EQUAL(parquet_finish(parquet), OK);
	parquet_free(parquet);
	file = parquet_read(&sink);
	for (size_t c = 0; c < CODED && !file.is_bad; c++)
		for (size_t i = 0; i < rows; i++)
			wrong += !is_cell(&file.cells[c][i], c, entry_of(i, is_run));
	snprintf(sentence, sizeof(sentence), "%zu codes, %zu at once%s", rows, at_once,
		 is_run ? ", in runs" : "");
	EXPECT_THAT(sentence, !file.is_bad && wrong == 0);
	if (name != NULL) {
		EXPECT_EQUAL(file.groups, 2);
		EXPECT_EQUAL(file.rows, rows + 3);
		EXPECT_THAT(name, expected_text(&file.footer, name));
		sink_init_memory(&file.footer);
	} else {
		EXPECT_EQUAL(file.rows, rows);
	}
	parquet_read_release(&file);
	sink_release(&sink);
}

static void test_codes(void)
{
	static const size_t counts[] = { 1, 8, 9, 100, 4096, 40000 };

	for (size_t i = 0; i < ARRAY_LENGTH(counts); i++) {
		expect_codes(counts[i], 4096, false, NULL);
		expect_codes(counts[i], 4096, true, NULL);
	}
	expect_codes(500, 7, false, NULL);
	expect_codes(500, 33, true, NULL);
	expect_codes(70, 4096, true, EXPECTED "parquet-codes.txt");
}

/* Rows that are all null need no dictionary entry; a row group ends by its rows. */
static void test_footer(void)
{
	static const struct parquet_column columns[] = {
		{ "signed", PARQUET_INT64, PARQUET_DELTA, false, 0 },
		{ "narrow", PARQUET_INT32, PARQUET_DICTIONARY_PLAIN, false, 0 },
		{ "byte", PARQUET_UINT8, PARQUET_PLAIN, true, NONE },
		{ "time", PARQUET_TIME_NS, PARQUET_DICTIONARY_DELTA, true, NONE },
		{ "none", PARQUET_UINT64, PARQUET_DELTA, true, NONE },
	};
	static value_of *const values[] = { negative, negative, few, some_null, all_null };
	struct parquet_read file;
	struct parquet *parquet;
	struct sink sink;

	sink_init_memory(&sink);
	parquet = parquet_new(&sink, columns, ARRAY_LENGTH(columns));
	if (parquet == NULL)
		abort();
	put_rows(parquet, values, ARRAY_LENGTH(columns), 20, 20);
	EXPECT_EQUAL(parquet_finish(parquet), OK);
	parquet_free(parquet);
	file = parquet_read(&sink);
	EXPECT(!file.is_bad && file.rows == 20 && file.groups == 1);
	EXPECT_THAT("the footer", expected_text(&file.footer, EXPECTED "parquet-values.txt"));
	sink_init_memory(&file.footer);
	parquet_read_release(&file);
	sink_release(&sink);
}

int main(void)
{
	test_values();
	test_codes();
	test_footer();
	return tap_done();
}
