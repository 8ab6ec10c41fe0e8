/* One operation a line: CSV, and JSON objects. The two differ in what stands around the values. */
#include <stdlib.h>

#include "view/csv.h"
#include "view/export_format.h"
#include "view/export_rows.h"
#include "view/export_text.h"
#include "view/json.h"

struct line_export {
	struct sink *sink;
	struct json json; /* for the quoting of strings */
	struct export_rows *rows;
	bool is_json;
	uint64_t columns;
	struct export_day day;
};

static void *begin(struct sink *sink, uint64_t columns, bool is_json)
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
	return begin(sink, columns, true);
}

static void *begin_csv(struct sink *sink, uint64_t columns)
{
	void *export = begin(sink, columns, false);
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

static void process(void *writer, const struct recording_process *of)
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
		length = export_text_unsigned(text, number);
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

static enum status batch(void *writer, const struct op_batch *from)
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

/* There is no place for it in a table of text. */
static void fact(void *writer, const char *key, const char *value)
{
	(void)writer, (void)key, (void)value;
}

static enum status end(void *writer)
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
	.process = process,
	.batch = batch,
	.fact = fact,
	.end = end,
};

const struct export_format export_jsonl = {
	.name = "jsonl",
	.suffix = ".jsonl",
	.begin = begin_jsonl,
	.process = process,
	.batch = batch,
	.fact = fact,
	.end = end,
};
