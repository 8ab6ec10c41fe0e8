#include "output/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_GAP = 2, TABLE_NOTE_INDENT = 6, TABLE_COLUMNS_MAX = 32 };

/* Cells and notes in the order in which they came; a note has is_note set. */
struct table_item {
	char *text;
	bool is_note;
};

struct table {
	const struct table_column *columns;
	size_t count;
	struct table_item *items;
	size_t used;
	size_t room;
	bool is_broken; /* an allocation failed */
};

struct table *table_new(const struct table_column *columns, size_t count)
{
	struct table *table;

	if (count == 0 || count > TABLE_COLUMNS_MAX)
		return NULL;
	table = calloc(1, sizeof(*table));
	if (table != NULL) {
		table->columns = columns;
		table->count = count;
	}
	return table;
}

void table_free(struct table *table)
{
	if (table == NULL)
		return;
	for (size_t i = 0; i < table->used; i++)
		free(table->items[i].text);
	free(table->items);
	free(table);
}

/* Takes over `text`. */
static void add_item(struct table *table, char *text, bool is_note)
{
	if (text != NULL && table->used == table->room) {
		size_t room = table->room ? table->room * 2 : 64;
		struct table_item *items = realloc(table->items, room * sizeof(*items));

		if (items == NULL) {
			free(text);
			text = NULL;
		} else {
			table->items = items;
			table->room = room;
		}
	}
	if (text == NULL) {
		table->is_broken = true;
		return;
	}
	/* A terminal must not be driven by what a user put into a name. */
	for (char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	table->items[table->used++] = (struct table_item){ text, is_note };
}

void table_cell(struct table *table, const char *text)
{
	add_item(table, strdup(text), false);
}

static void add_formatted(struct table *table, bool is_note, const char *format, va_list values)
{
	char *text = NULL;

	if (vasprintf(&text, format, values) == -1)
		text = NULL;
	add_item(table, text, is_note);
}

void table_cellf(struct table *table, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	add_formatted(table, false, format, values);
	va_end(values);
}

void table_note(struct table *table, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	add_formatted(table, true, format, values);
	va_end(values);
}

/* Columns on the screen: one per character of UTF-8. */
static size_t shown_width(const char *text)
{
	size_t width = 0;

	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* Bytes of the first `width` characters. */
static size_t bytes_of_width(const char *text, size_t width)
{
	const char *at = text;

	while (*at != '\0') {
		if (((unsigned char)*at & 0xc0) != 0x80 && width-- == 0)
			break;
		at++;
	}
	return (size_t)(at - text);
}

static void measure_columns(const struct table *table, size_t *widths)
{
	size_t column = 0;

	for (size_t i = 0; i < table->count; i++)
		widths[i] = shown_width(table->columns[i].title);
	for (size_t i = 0; i < table->used; i++) {
		size_t width = shown_width(table->items[i].text);

		if (table->items[i].is_note)
			continue;
		if (width > widths[column])
			widths[column] = width;
		column = (column + 1) % table->count;
	}
}

/* Take from the widest column that may still give, one by one, until the table fits. */
static void shrink_columns(const struct table *table, size_t *widths, size_t limit)
{
	size_t total = (table->count - 1) * TABLE_GAP;

	for (size_t i = 0; i < table->count; i++)
		total += widths[i];
	while (total > limit) {
		size_t widest = SIZE_MAX;

		for (size_t i = 0; i < table->count; i++) {
			size_t least = table->columns[i].least;

			if (least == 0 || widths[i] <= least)
				continue;
			if (widest == SIZE_MAX || widths[i] > widths[widest])
				widest = i;
		}
		if (widest == SIZE_MAX)
			return;
		widths[widest]--;
		total--;
	}
}

static void write_cell(const struct table *table, struct sink *sink, const char *text,
		       size_t column, size_t width)
{
	size_t shown = shown_width(text);
	bool is_last = column + 1 == table->count;

	if (column > 0)
		sink_repeat(sink, ' ', TABLE_GAP);
	if (shown > width) {
		sink_write(sink, text, bytes_of_width(text, width - 1));
		sink_text(sink, "~");
	} else if (table->columns[column].align == TABLE_RIGHT) {
		sink_repeat(sink, ' ', width - shown);
		sink_text(sink, text);
	} else {
		sink_text(sink, text);
		if (!is_last)
			sink_repeat(sink, ' ', width - shown);
	}
	if (is_last)
		sink_text(sink, "\n");
}

enum status table_write(const struct table *table, struct sink *sink, unsigned int width)
{
	size_t widths[TABLE_COLUMNS_MAX];
	size_t column = 0;

	if (table->is_broken)
		return ERR_NO_SPACE;
	if (table->used == 0)
		return OK;
	measure_columns(table, widths);
	if (width > 0)
		shrink_columns(table, widths, width);
	for (size_t i = 0; i < table->count; i++)
		write_cell(table, sink, table->columns[i].title, i, widths[i]);
	for (size_t i = 0; i < table->used; i++) {
		const struct table_item *item = &table->items[i];

		if (item->is_note) {
			table_wrap(sink, item->text, "      ", TABLE_NOTE_INDENT, width);
			continue;
		}
		write_cell(table, sink, item->text, column, widths[column]);
		column = (column + 1) % table->count;
	}
	return sink->status;
}

void table_wrap(struct sink *sink, const char *text, const char *first, size_t indent,
		unsigned int width)
{
	size_t at = shown_width(first);
	bool is_line_start = true;

	sink_text(sink, first);
	while (*text == ' ')
		text++;
	while (*text != '\0') {
		size_t length = strcspn(text, " ");
		size_t shown = 0;

		for (size_t i = 0; i < length; i++)
			shown += ((unsigned char)text[i] & 0xc0) != 0x80;
		if (width > 0 && !is_line_start && at + 1 + shown > width) {
			sink_text(sink, "\n");
			sink_repeat(sink, ' ', indent);
			at = indent;
			is_line_start = true;
		}
		if (!is_line_start)
			sink_text(sink, " ");
		sink_write(sink, text, length);
		at += shown + !is_line_start;
		is_line_start = false;
		text += length;
		while (*text == ' ')
			text++;
	}
	sink_text(sink, "\n");
}

enum { GRID_GAP = 2, GRID_CELLS_FIRST = 128 };

void report_grid_init(struct report_grid *grid)
{
	*grid = (struct report_grid){ .column_count = 0 };
}

void report_grid_release(struct report_grid *grid)
{
	for (size_t i = 0; i < grid->used; i++)
		free(grid->cells[i]);
	free(grid->cells);
	for (size_t i = 0; i < grid->note_count; i++)
		free(grid->notes[i].text);
	free(grid->notes);
	report_grid_init(grid);
}

void report_grid_column(struct report_grid *grid, const char *title, enum table_align align,
			unsigned int least, unsigned int rank)
{
	if (grid->column_count < REPORT_GRID_COLUMNS)
		grid->columns[grid->column_count++] =
			(struct report_grid_column){ title, align, least, rank };
}

/* Takes over `text`; NULL when there was no memory for it. */
static void add_cell(struct report_grid *grid, char *text)
{
	if (text != NULL && grid->used == grid->room) {
		size_t room = grid->room ? grid->room * 2 : GRID_CELLS_FIRST;
		char **cells = realloc(grid->cells, room * sizeof(*cells));

		if (cells == NULL) {
			free(text);
			text = NULL;
		} else {
			grid->cells = cells;
			grid->room = room;
		}
	}
	if (text == NULL)
		grid->is_broken = true;
	else
		grid->cells[grid->used++] = text;
}

void report_grid_cell(struct report_grid *grid, const char *text)
{
	add_cell(grid, strdup(text));
}

static char *format_list(const char *format, va_list values)
{
	char *text = NULL;

	return vasprintf(&text, format, values) == -1 ? NULL : text;
}

void report_grid_cellf(struct report_grid *grid, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	add_cell(grid, format_list(format, values));
	va_end(values);
}

static bool has_note_room(struct report_grid *grid)
{
	size_t room = grid->note_room ? grid->note_room * 2 : 8;
	struct report_grid_note *notes;

	if (grid->note_count < grid->note_room)
		return true;
	notes = realloc(grid->notes, room * sizeof(*notes));
	if (notes == NULL)
		return false;
	grid->notes = notes;
	grid->note_room = room;
	return true;
}

void report_grid_note(struct report_grid *grid, const char *format, ...)
{
	va_list values;
	char *text;

	va_start(values, format);
	text = format_list(format, values);
	va_end(values);
	if (text == NULL || grid->column_count == 0 || !has_note_room(grid)) {
		free(text);
		grid->is_broken = true;
		return;
	}
	grid->notes[grid->note_count++] =
		(struct report_grid_note){ grid->used / grid->column_count, text };
}

/* ---- choosing columns ------------------------------------------------------------------------ */

/* Columns on the screen: one per character of UTF-8. */
static unsigned int grid_text_width(const char *text)
{
	unsigned int width = 0;

	for (; *text != '\0'; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static bool is_empty(const struct report_grid *grid, size_t column)
{
	for (size_t i = column; i < grid->used; i += grid->column_count)
		if (strcmp(grid->cells[i], "-") != 0)
			return false;
	return true;
}

/* How wide a column is at least: where it may be cut, what is left then. */
static unsigned int least_width(const struct report_grid *grid, size_t column)
{
	unsigned int width = grid_text_width(grid->columns[column].title);
	unsigned int least = grid->columns[column].least;

	for (size_t i = column; i < grid->used; i += grid->column_count) {
		unsigned int cell = grid_text_width(grid->cells[i]);

		width = cell > width ? cell : width;
	}
	return least > 0 && least < width ? least : width;
}

/* Bit i: column i is shown. */
static uint32_t grid_choose_columns(const struct report_grid *grid, unsigned int width,
				    uint32_t *too_wide)
{
	unsigned int widths[REPORT_GRID_COLUMNS], total = 0;
	uint32_t shown = 0;

	for (size_t i = 0; i < grid->column_count; i++) {
		widths[i] = least_width(grid, i);
		if (i > 0 && is_empty(grid, i))
			continue;
		shown |= 1u << i;
		total += widths[i] + (i > 0 ? GRID_GAP : 0);
	}
	while (width > 0 && total > width) {
		size_t worst = SIZE_MAX;

		for (size_t i = 0; i < grid->column_count; i++)
			if (shown & 1u << i && grid->columns[i].rank > 0 &&
			    (worst == SIZE_MAX ||
			     grid->columns[i].rank >= grid->columns[worst].rank))
				worst = i;
		if (worst == SIZE_MAX)
			break;
		shown &= ~(1u << worst);
		*too_wide |= 1u << worst;
		total -= widths[worst] + GRID_GAP;
	}
	return shown;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_notes(const struct report_grid *grid, struct table *table, size_t *next,
		      size_t rows)
{
	while (*next < grid->note_count && grid->notes[*next].row == rows)
		table_note(table, "%s", grid->notes[(*next)++].text);
}

static void grid_fill_table(const struct report_grid *grid, struct table *table, uint32_t shown)
{
	size_t next = 0;

	for (size_t i = 0; i < grid->used; i++) {
		size_t column = i % grid->column_count;

		if (shown & 1u << column)
			table_cell(table, grid->cells[i]);
		if (column + 1 == grid->column_count)
			add_notes(grid, table, &next, i / grid->column_count + 1);
	}
}

void report_grid_say_left_out(const struct report_grid_left_out *left_out, struct sink *sink,
			      unsigned int width)
{
	struct sink text;

	if (left_out->count == 0)
		return;
	sink_init_memory(&text);
	sink_text(&text, "(too narrow for ");
	for (size_t i = 0; i < left_out->count; i++)
		sink_format(&text, "%s%s", i > 0 ? ", " : "", left_out->titles[i]);
	sink_text(&text, ")");
	table_wrap(sink, sink_string(&text), "", 1, width);
	sink_release(&text);
}

static void add_left_out(struct report_grid_left_out *to, const char *title)
{
	for (size_t i = 0; i < to->count; i++)
		if (strcmp(to->titles[i], title) == 0)
			return;
	if (to->count < REPORT_GRID_COLUMNS)
		to->titles[to->count++] = title;
}

static void tell_left_out(const struct report_grid *grid, struct sink *sink, uint32_t columns,
			  unsigned int width, struct report_grid_left_out *to)
{
	struct report_grid_left_out own = { .count = 0 };

	for (size_t i = 0; i < grid->column_count; i++)
		if (columns & 1u << i)
			add_left_out(to ? to : &own, grid->columns[i].title);
	report_grid_say_left_out(&own, sink, width);
}

enum status report_grid_write(const struct report_grid *grid, struct sink *sink, unsigned int width,
			      struct report_grid_left_out *left_out)
{
	struct table_column columns[REPORT_GRID_COLUMNS];
	uint32_t too_wide = 0, shown;
	struct table *table;
	enum status status;
	size_t count = 0;

	if (grid->is_broken)
		return ERR_NO_SPACE;
	if (grid->used == 0)
		return OK;
	shown = grid_choose_columns(grid, width, &too_wide);
	for (size_t i = 0; i < grid->column_count; i++)
		if (shown & 1u << i)
			columns[count++] = (struct table_column){ grid->columns[i].title,
								  grid->columns[i].align,
								  grid->columns[i].least };
	table = table_new(columns, count);
	if (table == NULL)
		return ERR_NO_SPACE;
	grid_fill_table(grid, table, shown);
	status = table_write(table, sink, width);
	table_free(table);
	if (status == OK)
		tell_left_out(grid, sink, too_wide, width, left_out);
	return status == OK ? sink->status : status;
}
