/*
 * Any bytes as the name of a communicator: the output stays in its columns and contains no terminal
 * control.
 */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "top/top.h"

enum { WIDTH = 24, TEXT = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is)
{
	if (!is)
		abort();
}

static void check_row(const struct top_canvas *canvas)
{
	for (unsigned int i = 0; i < canvas->width; i++) {
		const struct top_cell *cell = top_canvas_cell(canvas, 0, i);

		require(cell->is_second ||
			(cell->characters[0] >= 0x20 && cell->characters[0] != 0x7f));
		require(cell->is_second || cell->characters[0] < 0x80 ||
			cell->characters[0] >= 0xa0);
		require(cell->characters[TOP_CELL_CHARACTERS - 1] == 0);
		require(!cell->is_second || (i > 0 && !cell[-1].is_second));
	}
	/* Nothing was drawn outside the text. */
	require(top_canvas_cell(canvas, 0, 0)->characters[0] == L' ');
	require(top_canvas_cell(canvas, 0, WIDTH - 1)->characters[0] == L' ');
}

static void check_lines(const char *text, unsigned int width, bool is_utf8)
{
	while (*text != '\0') {
		size_t skip, length = top_text_line(text, width, is_utf8, &skip);

		require(length + skip > 0 && length + skip <= strlen(text));
		text += length + skip;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct top_canvas canvas;
	char text[TEXT];
	struct sink sink;

	if (size < 1)
		return 0;
	if (canvas.cells == NULL)
		setlocale(LC_CTYPE, "C.UTF-8");
	canvas.is_utf8 = data[0] & 1;
	size = size - 1 < sizeof(text) - 1 ? size - 1 : sizeof(text) - 1;
	memcpy(text, data + 1, size);
	text[size] = '\0';

	require(top_canvas_clear(&canvas, WIDTH, 1) == OK);
	require(top_canvas_text(&canvas, 0, 1, WIDTH - 2, TOP_PLAIN, text) <= WIDTH - 2);
	check_row(&canvas);
	require(top_canvas_clear(&canvas, WIDTH, 1) == OK);
	top_canvas_right(&canvas, 0, 1, data[0] % (WIDTH - 1), TOP_PLAIN, text);
	check_row(&canvas);
	check_lines(text, 1 + data[0] % 40, canvas.is_utf8);
	sink_init_memory(&sink);
	top_canvas_write(&canvas, &sink);
	require(sink.status == OK);
	sink_release(&sink);
	return 0;
}
