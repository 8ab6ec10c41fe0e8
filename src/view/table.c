#include "view/table.h"

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

static void measure(const struct table *table, size_t *widths)
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
static void shrink(const struct table *table, size_t *widths, size_t limit)
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
	measure(table, widths);
	if (width > 0)
		shrink(table, widths, width);
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
