/* Widths of columns, cut cells, notes; and grids, which leave out columns that do not fit. */
#include "output/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

enum { TABLE_GAP = 2, TABLE_NOTE_INDENT = 6, TABLE_COLUMNS_MAX = 32 };

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

static void table_release(struct table *table)
{
	for (size_t i = 0; i < table->used; i++)
		free(table->items[i].text);
	free(table->items);
}

void table_free(struct table *table)
{
	if (table == NULL)
		return;
	table_release(table);
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
	/* Names come from users: they must not send control codes to the terminal. */
	text_clean(text);
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

/* Terminal columns: one per UTF-8 character. */
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

static size_t total_width(const struct table *table, const size_t *widths, uint32_t shown)
{
	size_t total = 0;

	for (size_t i = 0; i < table->count; i++)
		if (shown & 1u << i)
			total += widths[i] + (total > 0 ? TABLE_GAP : 0);
	return total;
}

/* Narrow the widest column that may be cut, one character at a time, until the table fits. */
static void shrink_columns(const struct table *table, size_t *widths, uint32_t shown, size_t limit)
{
	size_t total = total_width(table, widths, shown);

	while (total > limit) {
		size_t widest = SIZE_MAX;

		for (size_t i = 0; i < table->count; i++) {
			size_t least = table->columns[i].least;

			if (!(shown & 1u << i) || least == 0 || widths[i] <= least)
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

static void write_cell(const struct table_column *column, struct sink *sink, const char *text,
		       size_t width, bool is_first, bool is_last)
{
	size_t shown = shown_width(text);

	if (!is_first)
		sink_repeat(sink, ' ', TABLE_GAP);
	if (shown > width) {
		sink_write(sink, text, bytes_of_width(text, width - 1));
		sink_text(sink, "~");
	} else if (column->align == TABLE_RIGHT) {
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

/* Bit i of `shown`: column i is. */
static enum status write_shown(const struct table *table, struct sink *sink, unsigned int width,
			       size_t *widths, uint32_t shown)
{
	uint32_t first = shown & -shown;
	size_t column = 0;

	if (width > 0)
		shrink_columns(table, widths, shown, width);
	for (size_t i = 0; i < table->count; i++)
		if (shown & 1u << i)
			write_cell(&table->columns[i], sink, table->columns[i].title, widths[i],
				   1u << i == first, shown >> i == 1);
	for (size_t i = 0; i < table->used; i++) {
		const struct table_item *item = &table->items[i];

		if (item->is_note) {
			table_wrap(sink, item->text, "      ", TABLE_NOTE_INDENT, width);
			continue;
		}
		if (shown & 1u << column)
			write_cell(&table->columns[column], sink, item->text, widths[column],
				   1u << column == first, shown >> column == 1);
		column = (column + 1) % table->count;
	}
	return sink->status;
}

enum status table_write(const struct table *table, struct sink *sink, unsigned int width)
{
	size_t widths[TABLE_COLUMNS_MAX];

	if (table->is_broken)
		return ERR_NO_SPACE;
	if (table->used == 0)
		return OK;
	measure_columns(table, widths);
	return write_shown(table, sink, width, widths, UINT32_MAX >> (32 - table->count));
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

/* ---- tables that fit ------------------------------------------------------------------------- */

void report_grid_init(struct report_grid *grid)
{
	*grid = (struct report_grid){ .table = { .columns = grid->columns } };
}

void report_grid_release(struct report_grid *grid)
{
	table_release(&grid->table);
	report_grid_init(grid);
}

void report_grid_column(struct report_grid *grid, const char *title, enum table_align align,
			unsigned int least, unsigned int rank)
{
	size_t at = grid->table.count;

	if (at == REPORT_GRID_COLUMNS)
		return;
	grid->columns[at] = (struct table_column){ title, align, least };
	grid->ranks[at] = rank;
	grid->table.count++;
}

uint32_t report_grid_filled(const struct report_grid *grid)
{
	const struct table *table = &grid->table;
	uint32_t filled = 1;
	size_t column = 0;

	for (size_t i = 0; i < table->used; i++) {
		if (table->items[i].is_note)
			continue;
		if (strcmp(table->items[i].text, "-") != 0)
			filled |= 1u << column;
		column = (column + 1) % table->count;
	}
	return filled;
}

/* Columns with content, minus those that do not fit. Bit i: column i is shown. */
static uint32_t choose_columns(const struct report_grid *grid, const size_t *widths,
			       unsigned int width, uint32_t *too_wide)
{
	const struct table *table = &grid->table;
	size_t narrow[REPORT_GRID_COLUMNS];
	uint32_t shown = grid->keeps_empty ? (1u << table->count) - 1 : report_grid_filled(grid);

	for (size_t i = 0; i < table->count; i++)
		narrow[i] = table->columns[i].least > 0 && table->columns[i].least < widths[i]
				    ? table->columns[i].least
				    : widths[i];
	while (width > 0 && total_width(table, narrow, shown) > width) {
		size_t worst = SIZE_MAX;

		for (size_t i = 0; i < table->count; i++)
			if (shown & 1u << i && grid->ranks[i] > 0 &&
			    (worst == SIZE_MAX || grid->ranks[i] >= grid->ranks[worst]))
				worst = i;
		if (worst == SIZE_MAX)
			break;
		shown &= ~(1u << worst);
		*too_wide |= 1u << worst;
	}
	return shown;
}

void report_grid_say_left_out(const struct report_grid_left_out *left_out, struct sink *sink,
			      unsigned int width)
{
	struct sink text;

	if (left_out->count == 0)
		return;
	sink_init_memory(&text);
	sink_text(&text, "(terminal too narrow for ");
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

static void write_left_out(const struct report_grid *grid, struct sink *sink, uint32_t columns,
			   unsigned int width, struct report_grid_left_out *to)
{
	struct report_grid_left_out own = { .count = 0 };

	for (size_t i = 0; i < grid->table.count; i++)
		if (columns & 1u << i)
			add_left_out(to ? to : &own, grid->columns[i].title);
	report_grid_say_left_out(&own, sink, width);
}

enum status report_grid_write(const struct report_grid *grid, struct sink *sink, unsigned int width,
			      struct report_grid_left_out *left_out)
{
	uint32_t too_wide = 0, shown;
	size_t widths[REPORT_GRID_COLUMNS];
	enum status status;

	if (grid->table.is_broken)
		return ERR_NO_SPACE;
	if (grid->table.used == 0)
		return OK;
	measure_columns(&grid->table, widths);
	shown = choose_columns(grid, widths, width, &too_wide);
	status = write_shown(&grid->table, sink, width, widths, shown);
	if (status == OK)
		write_left_out(grid, sink, too_wide, width, left_out);
	return status == OK ? sink->status : status;
}
