/*
 * Writes a Parquet file and the same rows as JSON lines, to test independent readers. Covers every type, encoding and edge
 * case.
 *
 *	parquet_sample KIND FILE.parquet FILE.jsonl
 *
 *	empty	no rows
 *	one	one row
 *	edge	extremes, runs of null, all null, one value only, texts of all sorts
 *	pages	several pages: a value that changes late, a dictionary that overflows
 *	groups	several row groups, one of them of a single row
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "output/export.h"
#include "output/json.h"
#include "output/parquet.h"
#include "output/sink.h"

enum { COLUMNS = 22, ENTRIES = 64, AT_ONCE = 1000 };
#define NULL_VALUE UINT64_C(0xdeadbeefdeadbeef)

/* Patterns of values in a column. */
enum habit {
	CODED,	  /* a few values, put as codes */
	SAME,	  /* always the same */
	NEVER,	  /* always null */
	EXTREME,  /* minimum, maximum, 0, 1, -1 in turn */
	CLIMBING, /* increasing */
	NOISE,	  /* random */
	LATE,	  /* constant for a long time, then another value */
	MANY,	  /* more distinct values than a dictionary holds */
};

static const struct parquet_column columns[COLUMNS] = {
	{ "flag", PARQUET_BOOL, 0, false, 0 },
	{ "flag_or_null", PARQUET_BOOL, 0, true, 0 },
	{ "text", PARQUET_STRING, 0, false, 0 },
	{ "text_or_null", PARQUET_STRING, 0, true, 0 },
	{ "code8", PARQUET_UINT8, 0, false, 0 },
	{ "code16_or_null", PARQUET_UINT16, 0, true, 0 },
	{ "code_signed", PARQUET_INT64, 0, true, 0 },
	{ "same", PARQUET_UINT64, PARQUET_DELTA, false, 0 },
	{ "never", PARQUET_INT64, PARQUET_DELTA, true, NULL_VALUE },
	{ "never_text", PARQUET_STRING, 0, true, 0 },
	{ "u64_delta", PARQUET_UINT64, PARQUET_DELTA, true, NULL_VALUE },
	{ "i64_delta", PARQUET_INT64, PARQUET_DELTA, false, 0 },
	{ "i64_plain", PARQUET_INT64, PARQUET_PLAIN, true, NULL_VALUE },
	{ "u64_words", PARQUET_UINT64, PARQUET_DICTIONARY_DELTA, true, NULL_VALUE },
	{ "i32_delta", PARQUET_INT32, PARQUET_DELTA, true, NULL_VALUE },
	{ "u32_delta", PARQUET_UINT32, PARQUET_DELTA, false, 0 },
	{ "u32_plain", PARQUET_UINT32, PARQUET_PLAIN, false, 0 },
	{ "time", PARQUET_TIME_NS, PARQUET_DELTA, true, NULL_VALUE },
	{ "noise", PARQUET_UINT64, PARQUET_PLAIN, false, 0 },
	{ "late", PARQUET_INT64, PARQUET_DICTIONARY_DELTA, true, NULL_VALUE },
	{ "many", PARQUET_UINT64, PARQUET_DICTIONARY_DELTA, false, 0 },
	{ "many_plain", PARQUET_INT32, PARQUET_DICTIONARY_PLAIN, true, NULL_VALUE },
};
static const enum habit habits[COLUMNS] = {
	CODED,	 CODED,	   CODED,   CODED,   CODED,   CODED,   CODED,	SAME,
	NEVER,	 NEVER,	   EXTREME, EXTREME, EXTREME, EXTREME, EXTREME, EXTREME,
	EXTREME, CLIMBING, NOISE,   LATE,    MANY,    MANY,
};

static const char *const texts[] = {
	"AllReduce",
	"",
	"a,b;c\td",
	"a \"quoted\" name",
	"two\nlines\r\n",
	"gr\xc3\xbc\xc3\x9f dich \xe2\x86\x92 \xf0\x9d\x84\x9e",
	"null",
	"'; DROP TABLE x",
	"0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456"
	"789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
};

static uint64_t random_at(uint64_t row, unsigned int column)
{
	return hash_word(hash_word(7, row), column);
}

static bool is_narrow(enum parquet_type type)
{
	return type == PARQUET_INT32 || type == PARQUET_UINT32;
}

static uint64_t extreme(enum parquet_type type, uint64_t row)
{
	static const uint64_t wide[] = {
		0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX - 1, 1000
	};
	static const int64_t narrow[] = { 0, 1, -1, INT32_MAX, INT32_MIN, 77, -1000 };
	uint64_t value = is_narrow(type) ? (uint64_t)narrow[row % 7] : wide[row % 7];

	return type == PARQUET_UINT32 ? (uint32_t)value : value;
}

static uint64_t value_at(unsigned int column, uint64_t row)
{
	bool is_null = columns[column].is_nullable && row % 16 > 11 && row % 64 > 20;

	if (is_null)
		return columns[column].null;
	switch (habits[column]) {
	case SAME:
		return UINT64_MAX;
	case NEVER:
		return columns[column].null;
	case EXTREME:
		return extreme(columns[column].type, row);
	case CLIMBING:
		return UINT64_C(1794708540000000000) + row * 1000003 + random_at(row, 0) % 1000;
	case LATE:
		return row < 40000 ? (uint64_t)INT64_C(-5) : 3;
	case MANY:
		return row < 34000 ? row % 100 : row;
	default:
		return random_at(row, column);
	}
}

/* ---- entries of coded columns ------------------------------------------------------------------ */

/* Index of the text or number of an entry; -1: null. */
static int entry_value(unsigned int column, unsigned int entry)
{
	if (habits[column] == NEVER || (columns[column].is_nullable && entry % 5 == 3))
		return -1;
	if (columns[column].type == PARQUET_BOOL)
		return entry % 3 == 0;
	return (int)(columns[column].type == PARQUET_STRING ? entry % ARRAY_LENGTH(texts) : entry);
}

static uint64_t entry_number(unsigned int column, int value)
{
	return columns[column].type == PARQUET_INT64 ? (uint64_t)(INT64_C(-3) * value)
						     : (uint64_t)value;
}

static unsigned int entry_at(uint64_t row)
{
	return row < 700 ? (unsigned int)(row / 100) : (unsigned int)(random_at(row, 99) % ENTRIES);
}

static uint16_t code_of(struct parquet *parquet, unsigned int column, unsigned int entry)
{
	int value = entry_value(column, entry);

	if (value < 0)
		return parquet_code_null(parquet, column);
	if (columns[column].type == PARQUET_STRING)
		return parquet_code_text(parquet, column, texts[value]);
	return parquet_code_number(parquet, column, entry_number(column, value));
}

static bool is_coded(unsigned int column)
{
	return habits[column] == CODED || columns[column].type == PARQUET_STRING;
}

/* ---- files ------------------------------------------------------------------------------------- */

static void put_rows(struct parquet *parquet, uint64_t from, size_t rows)
{
	uint16_t entries[AT_ONCE], codes[ENTRIES];
	uint64_t values[AT_ONCE];

	for (size_t i = 0; i < rows; i++)
		entries[i] = (uint16_t)entry_at(from + i);
	for (unsigned int column = 0; column < COLUMNS; column++) {
		if (is_coded(column)) {
			/* Only used entries. */
			for (size_t i = 0; i < rows; i++)
				codes[entries[i]] = code_of(parquet, column, entries[i]);
			parquet_put_codes(parquet, column, entries, codes, rows);
			continue;
		}
		for (size_t i = 0; i < rows; i++)
			values[i] = value_at(column, from + i);
		parquet_put_values(parquet, column, values, rows);
	}
	parquet_end_rows(parquet, rows);
}

static void json_value(struct json *json, unsigned int column, uint64_t row)
{
	struct export_day day = EXPORT_DAY_INIT;
	char time[EXPORT_TIME_TEXT + 1] = "";
	uint64_t value;
	int entry;

	if (is_coded(column)) {
		entry = entry_value(column, entry_at(row));
		if (entry < 0)
			json_null(json);
		else if (columns[column].type == PARQUET_STRING)
			json_string(json, texts[entry]);
		else if (columns[column].type == PARQUET_BOOL)
			json_bool(json, entry);
		else
			json_signed(json, (int64_t)entry_number(column, entry));
		return;
	}
	value = value_at(column, row);
	if (columns[column].is_nullable && value == columns[column].null) {
		json_null(json);
	} else if (columns[column].type == PARQUET_TIME_NS) {
		export_text_time(time, (int64_t)value, &day);
		json_string(json, time);
	} else if (columns[column].type == PARQUET_INT64 || columns[column].type == PARQUET_INT32) {
		json_signed(json, (int64_t)value);
	} else {
		json_unsigned(json, value);
	}
}

static void write_json_row(struct json *json, uint64_t row)
{
	json_object(json);
	for (unsigned int column = 0; column < COLUMNS; column++) {
		json_key(json, columns[column].name);
		json_value(json, column, row);
	}
	json_end(json);
	json_line(json);
}

static void open_sink(struct sink *sink, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd == -1) {
		perror(path);
		exit(1);
	}
	sink_init_fd(sink, fd);
}

static void close_sink(struct sink *sink)
{
	if (sink_flush(sink) != OK)
		exit(1);
	close(sink->fd);
	sink_release(sink);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *kind;
		uint64_t rows;
		uint64_t group; /* 0: the default */
	} kinds[] = { { "empty", 0, 0 },
		      { "one", 1, 0 },
		      { "edge", 3000, 0 },
		      { "pages", 52000, 0 },
		      { "groups", 9001, 3000 } };
	struct sink binary, text;
	struct parquet *parquet;
	struct json json;
	uint64_t rows = 0, group = 0;

	for (size_t i = 0; argc == 4 && i < ARRAY_LENGTH(kinds); i++) {
		if (strcmp(kinds[i].kind, argv[1]) == 0) {
			rows = kinds[i].rows;
			group = kinds[i].group;
		}
	}
	if (argc != 4)
		return 2;
	open_sink(&binary, argv[2]);
	open_sink(&text, argv[3]);
	json_init(&json, &text);
	parquet = parquet_new(&binary, columns, COLUMNS);
	for (uint64_t at = 0; at < rows && parquet != NULL; at += AT_ONCE) {
		put_rows(parquet, at, rows - at < AT_ONCE ? (size_t)(rows - at) : AT_ONCE);
		if (group != 0 && (at + AT_ONCE) % group == 0)
			parquet_end_group(parquet);
	}
	for (uint64_t row = 0; row < rows; row++)
		write_json_row(&json, row);
	if (parquet == NULL)
		return 1;
	parquet_pair(parquet, "kind", argv[1]);
	if (parquet_finish(parquet) != OK)
		return 1;
	parquet_free(parquet);
	close_sink(&binary);
	close_sink(&text);
	return 0;
}
