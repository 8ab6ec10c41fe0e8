/* Cells of text with colors, and numbers that fit into them. */
#include "top/top.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"

#define TOP_BARS_WINDOW_NS UINT64_C(60000000000)

/* Terminals treat variation selectors in different ways. */
static bool is_format(uint32_t character)
{
	return text_is_unseen(character) || (character >= 0xfe00 && character <= 0xfe0f);
}

/* One character of a text: its length in bytes and how it is shown; width 0 is a combining mark.
 * 0 at the end of the text. */
static size_t top_text_next(const char *at, bool is_utf8, wchar_t *character, unsigned int *width)
{
	const unsigned char *bytes = (const unsigned char *)at;
	size_t length = 1;
	int columns;

	*character = L'?';
	*width = 1;
	if (bytes[0] == '\0')
		return 0;
	if (bytes[0] < 0x80) {
		if (bytes[0] >= 0x20 && bytes[0] < 0x7f)
			*character = bytes[0];
		return 1;
	}
	length = utf8_bytes(bytes, strnlen(at, 4));
	if (length == 0)
		return 1;
	if (!is_utf8)
		return length;
	columns = is_format(text_decode(bytes, length))
			  ? -1
			  : wcwidth((wchar_t)text_decode(bytes, length));
	if (columns >= 0 && columns <= 2) {
		*character = (wchar_t)text_decode(bytes, length);
		*width = (unsigned int)columns;
	}
	return length;
}

unsigned int top_text_width(const char *text, bool is_utf8)
{
	unsigned int total = 0, width;
	wchar_t character;
	size_t bytes;

	while ((bytes = top_text_next(text, is_utf8, &character, &width)) > 0) {
		text += bytes;
		total += width;
	}
	return total;
}

size_t top_text_line(const char *text, unsigned int width, bool is_utf8, size_t *skip)
{
	size_t used = 0, blank = 0, bytes;
	unsigned int columns = 0, wide;
	wchar_t character;

	while ((bytes = top_text_next(text + used, is_utf8, &character, &wide)) > 0) {
		if (text[used] == ' ')
			blank = used;
		if (columns + wide > width && used > 0)
			break;
		columns += wide;
		used += bytes;
	}
	if (bytes > 0 && blank > 0)
		used = blank;
	*skip = strspn(text + used, " ");
	return used;
}

const char *top_text_rate(char to[static TOP_TEXT_NUMBER], double per_s)
{
	if (!isfinite(per_s) || per_s < 0)
		text_copy(to, TOP_TEXT_NUMBER, "-");
	else if (per_s == 0 || (per_s >= 9.95 && per_s < 999.5))
		text_format(to, TOP_TEXT_NUMBER, "%.0f", per_s);
	else if (per_s < 9.95)
		text_format(to, TOP_TEXT_NUMBER, per_s < 0.095 ? "%.2f" : "%.1f", per_s);
	else if (per_s < 999.5e3)
		text_format(to, TOP_TEXT_NUMBER, per_s < 99.95e3 ? "%.1fk" : "%.0fk", per_s / 1e3);
	else
		text_format(to, TOP_TEXT_NUMBER, per_s < 99.95e6 ? "%.1fM" : "%.0fM", per_s / 1e6);
	return to;
}

const char *top_text_bandwidth(char to[static TOP_TEXT_NUMBER], double bytes_per_s)
{
	static const char *const units[] = { "B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s" };
	unsigned int unit = 0;

	if (!isfinite(bytes_per_s) || bytes_per_s < 0) {
		text_copy(to, TOP_TEXT_NUMBER, "-");
		return to;
	}
	while (bytes_per_s >= 999.5 && unit + 1 < ARRAY_LENGTH(units)) {
		bytes_per_s /= 1000;
		unit++;
	}
	text_format(to, TOP_TEXT_NUMBER, "%.*f %s",
		    unit == 0 || bytes_per_s >= 99.95 ? 0
		    : bytes_per_s >= 9.995	      ? 1
						      : 2,
		    bytes_per_s, units[unit]);
	return to;
}

const char *top_text_share(char to[static TOP_TEXT_NUMBER], double share)
{
	double percent = share * 100;

	if (!isfinite(percent) || percent < 0)
		text_copy(to, TOP_TEXT_NUMBER, "-");
	else if (percent > 0 && percent < 1)
		text_copy(to, TOP_TEXT_NUMBER, "<1%");
	else
		text_format(to, TOP_TEXT_NUMBER, "%.0f%%", percent > 999 ? 999 : percent);
	return to;
}

const char *top_text_age(char to[static TOP_TEXT_NUMBER], uint64_t ns)
{
	uint64_t seconds = ns / SECOND_NS;

	if (ns == 0)
		text_copy(to, TOP_TEXT_NUMBER, "-");
	else if (ns < MS_NS)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "us", ns < US_NS ? 1 : ns / US_NS);
	else if (ns < SECOND_NS)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "ms", ns / MS_NS);
	else if (seconds < 60)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 ".%" PRIu64 "s", seconds,
			    ns % SECOND_NS / (SECOND_NS / 10));
	else if (seconds < 3600)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "m%02" PRIu64 "s", seconds / 60,
			    seconds % 60);
	else if (seconds < 86400)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "h%02" PRIu64 "m", seconds / 3600,
			    seconds / 60 % 60);
	else if (seconds >= 100 * UINT64_C(86400))
		text_copy(to, TOP_TEXT_NUMBER, ">99d");
	else
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "d%02" PRIu64 "h", seconds / 86400,
			    seconds / 3600 % 24);
	return to;
}

static const char *const heights[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const plain_heights[] = { "_", ".", ":", "-", "=", "+", "*", "#" };
static const char *const lengths[] = { "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" };

static char *bar_append(char *at, const char *text)
{
	size_t length = strlen(text);

	memcpy(at, text, length + 1);
	return at + length;
}

struct column {
	double sum; /* bandwidth x time */
	double time;
};

/* A refresh represents the time since the refresh before. */
static void bar_spread_point(struct column *columns, unsigned int count, uint64_t begin_ns,
			     uint64_t from_ns, const struct live_point *point)
{
	uint64_t width_ns = TOP_BARS_WINDOW_NS / count;

	for (unsigned int i = 0; i < count; i++) {
		uint64_t left = begin_ns + i * width_ns, right = left + width_ns;
		uint64_t from = from_ns > left ? from_ns : left;
		uint64_t to = point->wall_ns < right ? point->wall_ns : right;

		if (from >= to)
			continue;
		columns[i].sum += (double)point->busbw * (double)(to - from);
		columns[i].time += (double)(to - from);
	}
}

static void take_points(struct column *columns, unsigned int count,
			const struct live_history *history, uint64_t now_wall_ns)
{
	uint64_t begin_ns = now_wall_ns > TOP_BARS_WINDOW_NS ? now_wall_ns - TOP_BARS_WINDOW_NS : 0;

	for (uint32_t i = 0; i < history->count; i++) {
		const struct live_point *point = live_point(history, i);
		/* The first one has none before it: assume the length of the next, or one column. */
		uint64_t from_ns = i > 0 ? live_point(history, i - 1)->wall_ns
					 : point->wall_ns - TOP_BARS_WINDOW_NS / count;

		if (point->wall_ns > begin_ns && point->wall_ns <= now_wall_ns &&
		    isfinite(point->busbw))
			bar_spread_point(columns, count, begin_ns, from_ns, point);
	}
}

const char *top_bars_minute(char to[static TOP_BARS_TEXT], const struct live_history *history,
			    uint64_t now_wall_ns, unsigned int columns, bool is_utf8)
{
	struct column values[TOP_BARS_COLUMNS] = { { 0 } };
	const char *const *blocks = is_utf8 ? heights : plain_heights;
	double highest = 0;
	char *at = to;

	to[0] = '\0';
	if (columns > TOP_BARS_COLUMNS)
		columns = TOP_BARS_COLUMNS;
	if (columns == 0)
		return to;
	take_points(values, columns, history, now_wall_ns);
	for (unsigned int i = 0; i < columns; i++)
		if (values[i].time > 0 && values[i].sum / values[i].time > highest)
			highest = values[i].sum / values[i].time;
	for (unsigned int i = 0; i < columns; i++) {
		double height = values[i].time > 0 && highest > 0
					? values[i].sum / values[i].time / highest * 8
					: 0;

		if (values[i].time <= 0)
			at = bar_append(at, " ");
		else
			at = bar_append(at, blocks[height < 1	 ? 0
						   : height >= 8 ? 7
								 : (int)ceil(height) - 1]);
	}
	return to;
}

const char *top_bars_share(char to[static TOP_BARS_TEXT], double share, unsigned int columns,
			   bool is_utf8)
{
	unsigned int eighths, part;
	char *at = to;

	to[0] = '\0';
	if (columns > TOP_BARS_COLUMNS)
		columns = TOP_BARS_COLUMNS;
	if (!isfinite(share) || share < 0)
		share = 0;
	if (share > 1)
		share = 1;
	eighths = (unsigned int)lround(share * columns * 8);
	/* Draw at least something for a value above 0. */
	if (share > 0 && eighths == 0)
		eighths = 1;
	for (unsigned int i = 0; i < columns; i++) {
		part = eighths > i * 8 ? eighths - i * 8 : 0;
		if (part > 8)
			part = 8;
		if (is_utf8)
			at = bar_append(at, part > 0 ? lengths[part - 1] : " ");
		else
			at = bar_append(at, part >= 4 || (i == 0 && part > 0) ? "#" : " ");
	}
	return to;
}

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

static void cell_put(struct top_cell *cell, wchar_t character, unsigned int width,
		     enum top_style style)
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
			cell_put(&cells[used], character, wide, style);
		else if (used > 0)
			add_mark(&cells[used - 1], character);
		used += wide;
	}
	if (is_cut && width > 0)
		cell_put(&cells[used++], L'~', 1, style);
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

void top_canvas_write(const struct top_canvas *canvas, struct sink *sink)
{
	char bytes[4];

	for (unsigned int row = 0; row < canvas->height; row++) {
		const struct top_cell *cells = &canvas->cells[(size_t)row * canvas->width];
		unsigned int end = canvas->width;

		while (end > 0 && cells[end - 1].characters[0] == L' ')
			end--;
		for (unsigned int i = 0; i < end; i++)
			for (int j = 0; !cells[i].is_second && cells[i].characters[j] != 0; j++)
				sink_write(sink, bytes,
					   text_encode(bytes, (uint32_t)cells[i].characters[j]));
		sink_byte(sink, '\n');
	}
}
