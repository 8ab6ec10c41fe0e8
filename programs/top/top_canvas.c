#include "programs/top/top_canvas.h"

#include <stdlib.h>

#include "programs/top/top_text.h"

void top_canvas_init(struct top_canvas *canvas, bool is_utf8)
{
	*canvas = (struct top_canvas){ .is_utf8 = is_utf8 };
}

void top_canvas_release(struct top_canvas *canvas)
{
	free(canvas->cells);
	*canvas = (struct top_canvas){ .is_utf8 = canvas->is_utf8 };
}

enum status top_canvas_clear(struct top_canvas *canvas, unsigned int width, unsigned int height)
{
	size_t count;

	if (width > TOP_CANVAS_WIDTH_MAX)
		width = TOP_CANVAS_WIDTH_MAX;
	if (height > TOP_CANVAS_HEIGHT_MAX)
		height = TOP_CANVAS_HEIGHT_MAX;
	count = (size_t)width * height;
	if (count > canvas->room) {
		struct top_cell *cells = realloc(canvas->cells, count * sizeof(*cells));

		if (cells == NULL) {
			canvas->width = canvas->height = 0;
			return ERR_NO_SPACE;
		}
		canvas->cells = cells;
		canvas->room = count;
	}
	canvas->width = width;
	canvas->height = height;
	for (size_t i = 0; i < count; i++)
		canvas->cells[i] = (struct top_cell){ .characters = { L' ' } };
	return OK;
}

const struct top_cell *top_canvas_cell(const struct top_canvas *canvas, unsigned int row,
				       unsigned int column)
{
	return &canvas->cells[(size_t)row * canvas->width + column];
}

static void add_mark(struct top_cell *cell, wchar_t mark)
{
	if (cell->is_second)
		cell--;
	for (int i = 1; i + 1 < TOP_CELL_CHARACTERS; i++) {
		if (cell->characters[i] == 0) {
			cell->characters[i] = mark;
			return;
		}
	}
}

static void put(struct top_cell *cell, wchar_t character, unsigned int width, enum top_style style)
{
	cell[0] = (struct top_cell){ .characters = { character }, .style = style };
	if (width == 2)
		cell[1] = (struct top_cell){ .style = style, .is_second = true };
}

unsigned int top_canvas_text(struct top_canvas *canvas, unsigned int row, unsigned int column,
			     unsigned int width, enum top_style style, const char *text)
{
	unsigned int used = 0, wide, room;
	struct top_cell *cells;
	wchar_t character;
	size_t bytes;
	bool is_cut;

	if (row >= canvas->height || column >= canvas->width)
		return 0;
	room = canvas->width - column < width ? canvas->width - column : width;
	cells = &canvas->cells[(size_t)row * canvas->width + column];
	is_cut = top_text_width(text, canvas->is_utf8) > room;
	if (is_cut && room > 0)
		room--;
	while ((bytes = top_text_next(text, canvas->is_utf8, &character, &wide)) > 0) {
		text += bytes;
		if (used + wide > room)
			break;
		if (wide > 0)
			put(&cells[used], character, wide, style);
		else if (used > 0)
			add_mark(&cells[used - 1], character);
		used += wide;
	}
	if (is_cut && width > 0)
		put(&cells[used++], L'~', 1, style);
	return used;
}

void top_canvas_right(struct top_canvas *canvas, unsigned int row, unsigned int column,
		      unsigned int width, enum top_style style, const char *text)
{
	unsigned int shown = top_text_width(text, canvas->is_utf8);
	unsigned int shift = shown < width ? width - shown : 0;

	top_canvas_text(canvas, row, column + shift, width - shift, style, text);
}

void top_canvas_style(struct top_canvas *canvas, unsigned int row, enum top_style style,
		      bool is_for_all)
{
	struct top_cell *cells = &canvas->cells[(size_t)row * canvas->width];

	for (unsigned int i = 0; row < canvas->height && i < canvas->width; i++)
		if (is_for_all || cells[i].style == TOP_PLAIN)
			cells[i].style = (uint8_t)style;
}

/* ---- as text -------------------------------------------------------------------------------- */

static void write_character(struct sink *sink, wchar_t wide)
{
	uint32_t character = (uint32_t)wide;
	char bytes[4];

	if (character < 0x80) {
		sink_byte(sink, (char)character);
	} else if (character < 0x800) {
		bytes[0] = (char)(0xc0 | character >> 6);
		bytes[1] = (char)(0x80 | (character & 0x3f));
		sink_write(sink, bytes, 2);
	} else if (character < 0x10000) {
		bytes[0] = (char)(0xe0 | character >> 12);
		bytes[1] = (char)(0x80 | (character >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (character & 0x3f));
		sink_write(sink, bytes, 3);
	} else {
		bytes[0] = (char)(0xf0 | character >> 18);
		bytes[1] = (char)(0x80 | (character >> 12 & 0x3f));
		bytes[2] = (char)(0x80 | (character >> 6 & 0x3f));
		bytes[3] = (char)(0x80 | (character & 0x3f));
		sink_write(sink, bytes, 4);
	}
}

void top_canvas_write(const struct top_canvas *canvas, struct sink *sink)
{
	for (unsigned int row = 0; row < canvas->height; row++) {
		const struct top_cell *cells = &canvas->cells[(size_t)row * canvas->width];
		unsigned int end = canvas->width;

		while (end > 0 && cells[end - 1].characters[0] == L' ')
			end--;
		for (unsigned int i = 0; i < end; i++)
			for (int j = 0; !cells[i].is_second && cells[i].characters[j] != 0; j++)
				write_character(sink, cells[i].characters[j]);
		sink_byte(sink, '\n');
	}
}
