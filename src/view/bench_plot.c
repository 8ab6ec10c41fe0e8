/*
 * A canvas of characters, each with 2 x 4 dots. Lines set dots, marks take a character for themselves and
 * go over lines; where two marks meet, the later series is seen.
 *
 *	y label
 *	100 us ┤        ⢀⠤⠒x
 *	       │   o⠒⠊⠁
 *	       └────┬──────┬──
 *	          1 KiB   1 MiB   message size
 *	o Ring   x Tree
 */
#include "view/bench_plot.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "view/plot_scale.h"

enum {
	WIDTH_USUAL = 80,
	WIDTH_LEAST = 40,
	WIDTH_MOST = 400,
	HEIGHT_USUAL = 16,
	HEIGHT_LEAST = 4,
	HEIGHT_MOST = 100,
	DOTS_ACROSS = 2,
	DOTS_DOWN = 4,
};

struct canvas {
	size_t width; /* in characters */
	size_t height;
	uint8_t *dots;
	char *marks; /* '\0' none */
	bool is_ascii;
	struct plot_range x;
	struct plot_range y;
};

/* Marks of what was measured; a line that was computed has a letter at its end. */
static char mark_of(size_t series, bool is_line_only)
{
	static const char marks[PLOT_SERIES_MAX + 1] = "ox+*#@%&=$~^";
	static const char letters[PLOT_SERIES_MAX + 1] = "abcdefghijkl";

	return is_line_only ? letters[series] : marks[series];
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void set_dot(struct canvas *canvas, long x, long y)
{
	/* Braille: dots 1 to 3 and 7 on the left, 4 to 6 and 8 on the right. */
	static const uint8_t bits[DOTS_DOWN][DOTS_ACROSS] = {
		{ 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
	};
	size_t column = (size_t)x / DOTS_ACROSS, row = (size_t)y / DOTS_DOWN;

	if (x >= 0 && y >= 0 && column < canvas->width && row < canvas->height)
		canvas->dots[row * canvas->width + column] |= bits[y % DOTS_DOWN][x % DOTS_ACROSS];
}

/* Dots from the upper left corner. */
static bool dot_of(const struct canvas *canvas, double x, double y, long *dot_x, long *dot_y)
{
	if (!plot_range_has(&canvas->x, x) || !plot_range_has(&canvas->y, y))
		return false;
	*dot_x =
		lround(plot_range_place(&canvas->x, x) * (double)(canvas->width * DOTS_ACROSS - 1));
	*dot_y = lround((1 - plot_range_place(&canvas->y, y)) *
			(double)(canvas->height * DOTS_DOWN - 1));
	return true;
}

static void draw_line(struct canvas *canvas, const long from[2], const long to[2], bool is_dotted)
{
	long across = to[0] - from[0], down = to[1] - from[1];
	long steps = labs(across) > labs(down) ? labs(across) : labs(down);

	for (long i = 0; i <= steps; i++) {
		double part = steps > 0 ? (double)i / (double)steps : 0;

		if (!is_dotted || (from[0] + i) % 3 == 0)
			set_dot(canvas, from[0] + lround(part * (double)across),
				from[1] + lround(part * (double)down));
	}
}

static void draw_series(struct canvas *canvas, const struct plot_series *series)
{
	bool has_last = false;
	long last[2], here[2];

	for (size_t i = 0; i < series->count; i++) {
		bool is_shown = dot_of(canvas, series->xs[i], series->ys[i], &here[0], &here[1]);

		if (is_shown && has_last)
			draw_line(canvas, last, here, series->is_line_only);
		has_last = is_shown;
		memcpy(last, here, sizeof(last));
	}
}

static void draw_marks(struct canvas *canvas, const struct plot_series *series, size_t number)
{
	char mark = mark_of(number, series->is_line_only);
	char *place = NULL;
	long x, y;

	for (size_t i = 0; i < series->count; i++) {
		if (!dot_of(canvas, series->xs[i], series->ys[i], &x, &y))
			continue;
		place = &canvas->marks[(size_t)(y / DOTS_DOWN) * canvas->width +
				       (size_t)(x / DOTS_ACROSS)];
		if (!series->is_line_only)
			*place = mark;
	}
	if (series->is_line_only && place != NULL)
		*place = mark;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Columns that a text takes: its characters. */
static size_t columns_of(const char *text)
{
	size_t columns = 0;

	for (; *text != '\0'; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

static void put_text(struct sink *sink, const char *text)
{
	for (; *text != '\0'; text++)
		sink_byte(sink, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void put_cell(struct sink *sink, const struct canvas *canvas, size_t cell)
{
	uint8_t dots = canvas->dots[cell];

	if (canvas->marks[cell] != '\0') {
		sink_byte(sink, canvas->marks[cell]);
	} else if (dots == 0 || canvas->is_ascii) {
		sink_byte(sink, dots == 0 ? ' ' : '.');
	} else {
		/* U+2800 and the dots. */
		char braille[] = { (char)0xe2, (char)(0xa0 | dots >> 6),
				   (char)(0x80 | (dots & 0x3f)) };

		sink_write(sink, braille, sizeof(braille));
	}
}

static void put_row(struct sink *sink, const struct canvas *canvas, size_t row, size_t margin,
		    const char *label)
{
	size_t last = canvas->width;

	while (last > 0 && canvas->marks[row * canvas->width + last - 1] == '\0' &&
	       canvas->dots[row * canvas->width + last - 1] == 0)
		last--;
	sink_repeat(sink, ' ', margin - strlen(label));
	sink_text(sink, label);
	if (canvas->is_ascii)
		sink_text(sink, label[0] != '\0' ? " +" : " |");
	else
		sink_text(sink, label[0] != '\0' ? " \342\224\244" : " \342\224\202");
	for (size_t column = 0; column < last; column++)
		put_cell(sink, canvas, row * canvas->width + column);
	sink_byte(sink, '\n');
}

struct labels {
	double ticks[PLOT_TICKS_MAX];
	char texts[PLOT_TICKS_MAX][PLOT_VALUE_TEXT];
	size_t count;
	size_t widest;
};

static void make_labels(struct labels *labels, const struct plot_range *range, size_t most)
{
	labels->count = plot_range_ticks(range, most, labels->ticks);
	labels->widest = 0;
	for (size_t i = 0; i < labels->count; i++) {
		size_t length = strlen(
			bench_plot_value(labels->texts[i], labels->ticks[i], range->axis.unit));

		labels->widest = length > labels->widest ? length : labels->widest;
	}
}

static void put_rows(struct sink *sink, const struct canvas *canvas, const struct labels *labels)
{
	for (size_t row = 0; row < canvas->height; row++) {
		const char *label = "";

		for (size_t i = 0; i < labels->count; i++) {
			double place = 1 - plot_range_place(&canvas->y, labels->ticks[i]);

			if (lround(place * (double)(canvas->height * DOTS_DOWN - 1)) / DOTS_DOWN ==
			    (long)row)
				label = labels->texts[i];
		}
		put_row(sink, canvas, row, labels->widest, label);
	}
}

static void put_x_axis(struct sink *sink, const struct canvas *canvas, size_t margin)
{
	char ticks[WIDTH_MOST + 1] = "", texts[WIDTH_MOST + PLOT_VALUE_TEXT + 1];
	struct labels labels;
	size_t used = 0;

	make_labels(&labels, &canvas->x, canvas->width / 10);
	memset(texts, ' ', sizeof(texts));
	for (size_t i = 0; i < labels.count; i++) {
		size_t at = (size_t)lround(plot_range_place(&canvas->x, labels.ticks[i]) *
					   (double)(canvas->width - 1));
		size_t length = strlen(labels.texts[i]);
		size_t from = at > length / 2 ? at - length / 2 : 0;

		if (from + length > canvas->width)
			from = canvas->width - length;
		if (used > 0 && from < used + 2)
			continue; /* no room for it */
		ticks[at] = '+';
		memcpy(texts + from, labels.texts[i], length);
		used = from + length;
	}
	texts[used] = '\0';
	sink_repeat(sink, ' ', margin + 1);
	sink_text(sink, canvas->is_ascii ? "+" : "\342\224\224");
	for (size_t i = 0; i < canvas->width; i++)
		if (ticks[i] == '+')
			sink_text(sink, canvas->is_ascii ? "+" : "\342\224\254");
		else
			sink_text(sink, canvas->is_ascii ? "-" : "\342\224\200");
	sink_byte(sink, '\n');
	sink_repeat(sink, ' ', margin + 2);
	sink_text(sink, texts);
	sink_byte(sink, '\n');
}

static void put_legend(struct sink *sink, const struct plot_series *series, size_t count,
		       size_t width)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		size_t length = columns_of(series[i].name) + 5;

		if (used > 0 && used + length > width) {
			sink_byte(sink, '\n');
			used = 0;
		}
		sink_format(sink, "%s%c ", used > 0 ? "   " : "  ",
			    mark_of(i, series[i].is_line_only));
		put_text(sink, series[i].name);
		used += length;
	}
	sink_byte(sink, '\n');
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void put_chart(struct sink *sink, struct canvas *canvas, const struct plot_series *series,
		      size_t count, const struct labels *labels, size_t width)
{
	for (size_t i = 0; i < count; i++)
		draw_series(canvas, &series[i]);
	for (size_t i = 0; i < count; i++)
		draw_marks(canvas, &series[i], i);
	if (canvas->y.axis.label != NULL) {
		sink_text(sink, "  ");
		put_text(sink, canvas->y.axis.label);
		sink_byte(sink, '\n');
	}
	put_rows(sink, canvas, labels);
	put_x_axis(sink, canvas, labels->widest);
	if (canvas->x.axis.label != NULL) {
		size_t length = columns_of(canvas->x.axis.label);
		size_t room = labels->widest + 2 + canvas->width;

		sink_repeat(sink, ' ', room > length ? room - length : 0);
		put_text(sink, canvas->x.axis.label);
		sink_byte(sink, '\n');
	}
	put_legend(sink, series, count, width);
}

static size_t within(unsigned int value, size_t usual, size_t least, size_t most)
{
	size_t wanted = value != 0 ? value : usual;

	return wanted < least ? least : wanted > most ? most : wanted;
}

static void find_ranges(struct canvas *canvas, const struct plot_series *series, size_t count,
			const struct plot_options *options)
{
	plot_range_start(&canvas->x, &options->x);
	plot_range_start(&canvas->y, &options->y);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < series[i].count; j++)
			if (plot_range_has(&canvas->x, series[i].xs[j]) &&
			    plot_range_has(&canvas->y, series[i].ys[j])) {
				plot_range_add(&canvas->x, series[i].xs[j]);
				plot_range_add(&canvas->y, series[i].ys[j]);
			}
	plot_range_finish(&canvas->x, true);
	plot_range_finish(&canvas->y, false);
}

enum status bench_plot_text(struct sink *sink, const struct plot_series *series, size_t count,
			    const struct plot_options *options)
{
	size_t width = within(options->width, WIDTH_USUAL, WIDTH_LEAST, WIDTH_MOST);
	struct canvas canvas = {
		.height = within(options->height, HEIGHT_USUAL, HEIGHT_LEAST, HEIGHT_MOST),
		.is_ascii = options->is_ascii,
	};
	struct labels labels;

	for (size_t i = 0; i < count; i++)
		if (i >= PLOT_SERIES_MAX || series[i].count > PLOT_POINTS_MAX)
			return ERR_RANGE;
	if (options->title != NULL) {
		put_text(sink, options->title);
		sink_byte(sink, '\n');
	}
	find_ranges(&canvas, series, count, options);
	if (!canvas.x.has_values) {
		sink_text(sink, "  (nothing to draw: no point has a size and a value)\n");
		return sink->status;
	}
	make_labels(&labels, &canvas.y, canvas.height / 2);
	canvas.width = width - labels.widest - 2;
	canvas.dots = calloc(canvas.width * canvas.height, 1);
	canvas.marks = calloc(canvas.width * canvas.height, 1);
	if (canvas.dots != NULL && canvas.marks != NULL)
		put_chart(sink, &canvas, series, count, &labels, width);
	else
		sink->status = sink->status == OK ? ERR_NO_SPACE : sink->status;
	free(canvas.dots);
	free(canvas.marks);
	return sink->status;
}
