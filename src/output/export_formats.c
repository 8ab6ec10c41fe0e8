/* Batches of rows as JSON lines, CSV and Parquet. */
#include "output/export.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/csv.h"
#include "output/json.h"
#include "output/parquet.h"

#define DAY_NS INT64_C(86400000000000)

size_t export_text_signed(char to[static EXPORT_NUMBER_TEXT], int64_t number)
{
	char digits[EXPORT_NUMBER_TEXT];
	size_t length;

	if (number >= 0)
		return sink_digits(to, (uint64_t)number);
	/* Negated as unsigned: the smallest number has no positive counterpart. It has 19 digits. */
	length = sink_digits(digits, 0 - (uint64_t)number);
	to[0] = '-';
	memcpy(to + 1, digits, length);
	return length + 1;
}

static void put_digits(char *to, unsigned int digits, uint64_t number)
{
	while (digits-- > 0) {
		to[digits] = (char)('0' + number % 10);
		number /= 10;
	}
}

static void write_day(struct export_day *day, int64_t number)
{
	time_t seconds = (time_t)(number * 86400);
	struct tm date = { 0 };

	gmtime_r(&seconds, &date);
	put_digits(day->text, 4, (uint64_t)date.tm_year + 1900);
	put_digits(day->text + 5, 2, (uint64_t)date.tm_mon + 1);
	put_digits(day->text + 8, 2, (uint64_t)date.tm_mday);
	day->text[4] = day->text[7] = '-';
	day->text[10] = 'T';
	day->day = number;
}

size_t export_text_time(char to[static EXPORT_TIME_TEXT], int64_t ns, struct export_day *day)
{
	int64_t number = ns / DAY_NS - (ns % DAY_NS < 0);
	uint64_t within = (uint64_t)ns - (uint64_t)number * (uint64_t)DAY_NS;
	uint64_t seconds = within / 1000000000;

	if (number != day->day)
		write_day(day, number);
	memcpy(to, day->text, 11);
	put_digits(to + 11, 2, seconds / 3600);
	to[13] = ':';
	put_digits(to + 14, 2, seconds / 60 % 60);
	to[16] = ':';
	put_digits(to + 17, 2, seconds % 60);
	to[19] = '.';
	put_digits(to + 20, 9, within % 1000000000);
	return EXPORT_TIME_TEXT;
}

/* One operation per line: CSV and JSON. */

struct line_export {
	struct sink *sink;
	struct json json; /* for quoting strings */
	struct export_rows *rows;
	bool is_json;
	uint64_t columns;
	struct export_day day;
};

static void *lines_begin(struct sink *sink, uint64_t columns, bool is_json)
{
	struct line_export *export = calloc(1, sizeof(*export));

	if (export == NULL)
		return NULL;
	*export = (struct line_export){ .sink = sink,
					.is_json = is_json,
					.columns = columns,
					.rows = export_rows_new(),
					.day = EXPORT_DAY_INIT };
	if (export->rows == NULL) {
		free(export);
		return NULL;
	}
	json_init(&export->json, sink);
	return export;
}

static void *begin_jsonl(struct sink *sink, uint64_t columns)
{
	return lines_begin(sink, columns, true);
}

static void *begin_csv(struct sink *sink, uint64_t columns)
{
	void *export = lines_begin(sink, columns, false);
	const char *between = "";

	for (unsigned int i = 0; i < EXPORT_COLUMNS && export != NULL; i++) {
		if (!(columns & EXPORT_COLUMN_BIT(i)))
			continue;
		sink_text(sink, between);
		csv_text(sink, export_columns[i].name);
		between = ",";
	}
	if (export != NULL)
		csv_line(sink);
	return export;
}

static void lines_process(void *writer, const struct recording_process *of)
{
	struct line_export *export = writer;

	export_rows_process(export->rows, of);
}

static void put_null(struct line_export *export)
{
	if (export->is_json)
		sink_write(export->sink, "null", 4);
}

static void put_text(struct line_export *export, const char *text)
{
	if (export->is_json)
		json_string(&export->json, text);
	else
		csv_text(export->sink, text);
}

static void put_number(struct line_export *export, enum export_type type, uint64_t number)
{
	char text[EXPORT_TIME_TEXT];
	size_t length;

	switch (type) {
	case EXPORT_BOOL:
		sink_text(export->sink, number ? "true" : "false");
		return;
	case EXPORT_INT32:
	case EXPORT_INT64:
		length = export_text_signed(text, (int64_t)number);
		break;
	case EXPORT_TIME:
		length = export_text_time(text, (int64_t)number, &export->day);
		if (export->is_json)
			sink_byte(export->sink, '"');
		break;
	default:
		length = sink_digits(text, number);
		break;
	}
	sink_write(export->sink, text, length);
	if (type == EXPORT_TIME && export->is_json)
		sink_byte(export->sink, '"');
}

static void put_value(struct line_export *export, unsigned int id, const struct export_frame *frame,
		      uint32_t row)
{
	const struct export_column *column = &export_columns[id];
	const struct export_cell *cell;

	if (column->group == EXPORT_EACH) {
		uint64_t value = frame->values[id][row];

		if (column->is_nullable && value == column->null)
			put_null(export);
		else
			put_number(export, column->type, value);
		return;
	}
	cell = export_cell(export->rows, id, frame->entry[column->group][row]);
	if (cell->is_null)
		put_null(export);
	else if (column->type == EXPORT_STRING)
		put_text(export, cell->text);
	else
		put_number(export, column->type, cell->number);
}

static void put_row(struct line_export *export, const struct export_frame *frame, uint32_t row)
{
	char between = export->is_json ? '{' : '\0';

	for (unsigned int i = 0; i < EXPORT_COLUMNS; i++) {
		if (!(export->columns & EXPORT_COLUMN_BIT(i)))
			continue;
		if (between != '\0')
			sink_byte(export->sink, between);
		if (export->is_json) {
			sink_byte(export->sink, '"');
			sink_text(export->sink, export_columns[i].name);
			sink_write(export->sink, "\":", 2);
		}
		put_value(export, i, frame, row);
		between = ',';
	}
	if (export->is_json)
		sink_write(export->sink, "}\n", 2);
	else
		csv_line(export->sink);
}

static enum status lines_batch(void *writer, const struct op_batch *from)
{
	struct line_export *export = writer;
	struct export_frame frame;
	uint32_t at = 0;

	while (at < from->rows && export->sink->status == OK && export->rows->status == OK) {
		at += export_rows_take(export->rows, from, at, &frame);
		for (uint32_t i = 0; i < frame.rows; i++)
			put_row(export, &frame, i);
		if (export->rows->is_full)
			export_rows_forget(export->rows);
	}
	return export->rows->status != OK ? export->rows->status : export->sink->status;
}

/* Text tables have no metadata. */
static void lines_fact(void *writer, const char *key, const char *value)
{
	(void)writer, (void)key, (void)value;
}

static enum status lines_end(void *writer)
{
	struct line_export *export = writer;
	enum status status =
		export->rows->status != OK ? export->rows->status : export->sink->status;

	export_rows_free(export->rows);
	free(export);
	return status;
}

const struct export_format export_csv = {
	.name = "csv",
	.suffix = ".csv",
	.begin = begin_csv,
	.process = lines_process,
	.batch = lines_batch,
	.fact = lines_fact,
	.end = lines_end,
};

const struct export_format export_jsonl = {
	.name = "jsonl",
	.suffix = ".jsonl",
	.begin = begin_jsonl,
	.process = lines_process,
	.batch = lines_batch,
	.fact = lines_fact,
	.end = lines_end,
};

/*
 * Columns of a group are written to Parquet as codes: each entry of the group is looked up once per row group and
 * column; rows use the number of the entry.
 */

_Static_assert((int)EXPORT_FRAME_ROWS <= (int)PARQUET_ROWS_AT_ONCE, "a frame is put at once");
_Static_assert((int)EXPORT_ENTRIES_MAX <= (int)PARQUET_DICTIONARY_MAX, "every entry has a code");

struct parquet_export {
	struct export_rows *rows;
	struct parquet *parquet;
	size_t column_count;
	uint8_t ids[EXPORT_COLUMNS]; /* the columns of the file */
	struct parquet_column columns[EXPORT_COLUMNS];
	uint32_t coded[EXPORT_GROUPS];	 /* entries with codes */
	uint16_t *codes[EXPORT_COLUMNS]; /* by entry; columns of groups */
	/* The current frame, in output order. */
	uint32_t counts[EXPORT_ENTRIES_MAX];
	uint16_t order[EXPORT_FRAME_ROWS];
	struct parquet_run runs[EXPORT_FRAME_ROWS]; /* of EXPORT_WHO */
	size_t run_count;
	uint16_t entry[EXPORT_GROUPS][EXPORT_FRAME_ROWS];
	uint64_t values[EXPORT_FRAME_ROWS];
};

static enum parquet_type type_of(enum export_type type)
{
	static const enum parquet_type types[] = {
		[EXPORT_STRING] = PARQUET_STRING, [EXPORT_BOOL] = PARQUET_BOOL,
		[EXPORT_INT32] = PARQUET_INT32,	  [EXPORT_INT64] = PARQUET_INT64,
		[EXPORT_UINT8] = PARQUET_UINT8,	  [EXPORT_UINT16] = PARQUET_UINT16,
		[EXPORT_UINT32] = PARQUET_UINT32, [EXPORT_UINT64] = PARQUET_UINT64,
		[EXPORT_TIME] = PARQUET_TIME_NS,
	};

	return types[type];
}

static enum parquet_style style_of(enum export_habit habit)
{
	switch (habit) {
	case EXPORT_CLIMBS:
		return PARQUET_DELTA;
	case EXPORT_REPEATS:
		return PARQUET_DICTIONARY_DELTA;
	case EXPORT_JUMPS:
		break;
	}
	return PARQUET_DICTIONARY_PLAIN;
}

static void parquet_export_release(struct parquet_export *export)
{
	for (size_t i = 0; i < export->column_count; i++)
		free(export->codes[i]);
	parquet_free(export->parquet);
	export_rows_free(export->rows);
	free(export);
}

static bool add_column(struct parquet_export *export, unsigned int id)
{
	const struct export_column *column = &export_columns[id];
	size_t at = export->column_count++;

	export->ids[at] = (uint8_t)id;
	export->columns[at] = (struct parquet_column){ .name = column->name,
						       .type = type_of(column->type),
						       .style = style_of(column->habit),
						       .is_nullable = column->is_nullable,
						       .null = column->null };
	if (column->group == EXPORT_EACH)
		return true;
	export->codes[at] = malloc(EXPORT_ENTRIES_MAX * sizeof(*export->codes[at]));
	return export->codes[at] != NULL;
}

static void *parquet_export_begin(struct sink *sink, uint64_t columns)
{
	struct parquet_export *export = calloc(1, sizeof(*export));
	bool is_good = true;

	if (export == NULL)
		return NULL;
	for (unsigned int i = 0; i < EXPORT_COLUMNS; i++)
		if (columns & EXPORT_COLUMN_BIT(i))
			is_good &= add_column(export, i);
	export->rows = export_rows_new();
	export->parquet = parquet_new(sink, export->columns, export->column_count);
	if (is_good && export->rows != NULL && export->parquet != NULL)
		return export;
	parquet_export_release(export);
	return NULL;
}

static void parquet_export_process(void *writer, const struct recording_process *of)
{
	struct parquet_export *export = writer;

	export_rows_process(export->rows, of);
}

static uint16_t code_of(struct parquet_export *export, size_t column, uint32_t entry)
{
	const struct export_cell *cell = export_cell(export->rows, export->ids[column], entry);

	if (cell->is_null)
		return parquet_code_null(export->parquet, column);
	if (cell->text != NULL)
		return parquet_code_text(export->parquet, column, cell->text);
	return parquet_code_number(export->parquet, column, cell->number);
}

/*
 * Entries are numbered in order of first use. If a frame ended early because a group was full, the last entries
 * belong to later rows, so only those up to the highest one of the frame occur.
 */
static uint32_t entries_used(const struct parquet_export *export, const struct export_frame *frame,
			     enum export_group group)
{
	uint16_t most = 0;

	if (!export->rows->is_full)
		return export->rows->entries[group].count;
	for (uint32_t i = 0; i < frame->rows; i++)
		most = frame->entry[group][i] > most ? frame->entry[group][i] : most;
	return most + 1u;
}

static uint32_t code_entries(struct parquet_export *export, const struct export_frame *frame)
{
	uint32_t used[EXPORT_GROUPS];

	for (unsigned int i = 0; i < EXPORT_GROUPS; i++)
		used[i] = entries_used(export, frame, i);
	for (size_t i = 0; i < export->column_count; i++) {
		enum export_group group = export_columns[export->ids[i]].group;

		if (group == EXPORT_EACH)
			continue;
		for (uint32_t entry = export->coded[group]; entry < used[group]; entry++)
			export->codes[i][entry] = code_of(export, i, entry);
	}
	for (unsigned int i = 0; i < EXPORT_GROUPS; i++)
		if (used[i] > export->coded[i])
			export->coded[i] = used[i];
	return used[EXPORT_WHO];
}

/* The kinds of operations in a frame and their counts, into export->runs. */
static void find_runs(struct parquet_export *export, const struct export_frame *frame,
		      uint32_t entries)
{
	uint32_t *counts = export->counts;

	memset(counts, 0, entries * sizeof(*counts));
	for (uint32_t i = 0; i < frame->rows; i++)
		counts[frame->entry[EXPORT_WHO][i]]++;
	export->run_count = 0;
	for (uint32_t i = 0; i < entries; i++)
		if (counts[i] > 0)
			export->runs[export->run_count++] =
				(struct parquet_run){ .rows = counts[i], .entry = (uint16_t)i };
}

static bool has_several_comms(const struct parquet_export *export)
{
	const struct parquet_run *runs = export->runs;
	uint64_t first = export_cell(export->rows, EXPORT_COMM_ID, runs[0].entry)->number;

	for (size_t i = 1; i < export->run_count; i++)
		if (export_cell(export->rows, EXPORT_COMM_ID, runs[i].entry)->number != first)
			return true;
	return false;
}

/*
 * If communicators alternate, rows of the same communicator and kind are put together in their original order:
 * sequence numbers then increase by one, and sizes and names repeat. Without that, files take a third more time and
 * a tenth more space. Writes export->order.
 */
static void sort_rows(struct parquet_export *export, const struct export_frame *frame)
{
	uint32_t *next = export->counts;
	uint32_t at = 0;

	for (size_t i = 0; i < export->run_count; i++) {
		next[export->runs[i].entry] = at;
		at += export->runs[i].rows;
	}
	for (uint32_t i = 0; i < frame->rows; i++)
		export->order[next[frame->entry[EXPORT_WHO][i]]++] = (uint16_t)i;
}

static const uint16_t *sorted_entries(struct parquet_export *export,
				      const struct export_frame *frame, enum export_group group)
{
	for (uint32_t i = 0; i < frame->rows; i++)
		export->entry[group][i] = frame->entry[group][export->order[i]];
	return export->entry[group];
}

/* A single value needs no reordering. Most columns show several values in the first few rows. */
static bool is_constant(const uint64_t *values, uint32_t rows)
{
	return memcmp(values, values + 1, (rows - 1) * sizeof(*values)) == 0;
}

/* Unrolled: there are thirty such columns. */
static const uint64_t *sorted_values(struct parquet_export *export, const uint64_t *from,
				     uint32_t rows)
{
	const uint16_t *order = export->order;
	uint64_t *to = export->values;
	uint32_t i = 0;

	for (; i + 4 <= rows; i += 4) {
		uint64_t a = from[order[i]], b = from[order[i + 1]];
		uint64_t c = from[order[i + 2]], d = from[order[i + 3]];

		to[i] = a;
		to[i + 1] = b;
		to[i + 2] = c;
		to[i + 3] = d;
	}
	for (; i < rows; i++)
		to[i] = from[order[i]];
	return to;
}

static void put_sorted(struct parquet_export *export, const struct export_frame *frame)
{
	const uint16_t *entry[EXPORT_GROUPS];

	sort_rows(export, frame);
	for (unsigned int i = EXPORT_WHO + 1; i < EXPORT_GROUPS; i++)
		entry[i] = sorted_entries(export, frame, i);
	for (size_t i = 0; i < export->column_count; i++) {
		unsigned int id = export->ids[i];
		enum export_group group = export_columns[id].group;
		const uint64_t *values = frame->values[id];

		if (group == EXPORT_WHO) {
			parquet_put_runs(export->parquet, i, export->runs, export->run_count,
					 export->codes[i]);
		} else if (group != EXPORT_EACH) {
			parquet_put_codes(export->parquet, i, entry[group], export->codes[i],
					  frame->rows);
		} else {
			if (!is_constant(values, frame->rows))
				values = sorted_values(export, values, frame->rows);
			parquet_put_values(export->parquet, i, values, frame->rows);
		}
	}
}

static void put_as_it_is(struct parquet_export *export, const struct export_frame *frame)
{
	for (size_t i = 0; i < export->column_count; i++) {
		unsigned int id = export->ids[i];
		enum export_group group = export_columns[id].group;

		if (group == EXPORT_EACH)
			parquet_put_values(export->parquet, i, frame->values[id], frame->rows);
		else
			parquet_put_codes(export->parquet, i, frame->entry[group], export->codes[i],
					  frame->rows);
	}
}

static void put_frame(struct parquet_export *export, const struct export_frame *frame)
{
	find_runs(export, frame, code_entries(export, frame));
	if (has_several_comms(export))
		put_sorted(export, frame);
	else
		put_as_it_is(export, frame);
	parquet_end_rows(export->parquet, frame->rows);
}

static enum status status_of(const struct parquet_export *export)
{
	return export->rows->status != OK ? export->rows->status : parquet_status(export->parquet);
}

static enum status parquet_export_batch(void *writer, const struct op_batch *from)
{
	struct parquet_export *export = writer;
	struct export_frame frame;
	uint32_t at = 0;

	while (at < from->rows && status_of(export) == OK) {
		at += export_rows_take(export->rows, from, at, &frame);
		if (frame.rows > 0)
			put_frame(export, &frame);
		if (!export->rows->is_full && !parquet_is_group_full(export->parquet))
			continue;
		parquet_end_group(export->parquet);
		export_rows_forget(export->rows);
		memset(export->coded, 0, sizeof(export->coded));
	}
	return status_of(export);
}

static void parquet_export_fact(void *writer, const char *key, const char *value)
{
	struct parquet_export *export = writer;

	parquet_pair(export->parquet, key, value);
}

static enum status parquet_export_end(void *writer)
{
	struct parquet_export *export = writer;
	enum status status = status_of(export);

	if (status == OK)
		status = parquet_finish(export->parquet);
	parquet_export_release(export);
	return status;
}

const struct export_format export_parquet = {
	.name = "parquet",
	.suffix = ".parquet",
	.is_binary = true,
	.begin = parquet_export_begin,
	.process = parquet_export_process,
	.batch = parquet_export_batch,
	.fact = parquet_export_fact,
	.end = parquet_export_end,
};
