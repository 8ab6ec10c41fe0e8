/*
 * A canvas of characters with 2 x 4 dots each. Lines set dots; marks take a whole character and cover lines; if two
 * marks collide, the later series wins.
 *
 *	y label
 *	100 us ┤        ⢀⠤⠒x
 *	       │   o⠒⠊⠁
 *	       └────┬──────┬──
 *	          1 KiB   1 MiB   message size
 *	o Ring   x Tree
 */
#include "bench/bench_plot.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

/* ---- values in words --------------------------------------------------------------------------- */

struct step_unit {
	double size;
	const char *name;
};

static void put_scaled(char *to, double value, int digits, const struct step_unit *units,
		       size_t count)
{
	size_t i = 0;

	while (i + 1 < count && fabs(value) >= units[i + 1].size * 0.9995)
		i++;
	text_format(to, PLOT_VALUE_TEXT, "%.*g %s", digits, value / units[i].size, units[i].name);
}

const char *bench_plot_value(char to[static PLOT_VALUE_TEXT], double value, enum plot_unit unit)
{
	static const struct step_unit bytes[] = {
		{ 1, "B" },
		{ 1024, "KiB" },
		{ 1048576, "MiB" },
		{ 1073741824, "GiB" },
		{ 1099511627776, "TiB" },
		{ 1125899906842624, "PiB" },
		{ 0x1p60, "EiB" },
	};
	static const struct step_unit times[] = {
		{ 1, "ns" },
		{ 1e3, "us" },
		{ 1e6, "ms" },
		{ 1e9, "s" },
	};
	char *comma;

	switch (unit) {
	case PLOT_BYTES:
		/* 1023 needs four digits. */
		put_scaled(to, value, 4, bytes, ARRAY_LENGTH(bytes));
		break;
	case PLOT_NS:
		put_scaled(to, value, 3, times, ARRAY_LENGTH(times));
		break;
	case PLOT_GBPS:
		text_format(to, PLOT_VALUE_TEXT,
			    fabs(value) >= 999.5 && fabs(value) < 1e6 ? "%.0f GB/s" : "%.3g GB/s",
			    value);
		break;
	case PLOT_PERCENT:
		/* Never rounds up to 100%. */
		text_format(to, PLOT_VALUE_TEXT, "%.4g%%",
			    value < 100 ? floor(value * 100) / 100 : value);
		break;
	default:
		text_format(to, PLOT_VALUE_TEXT, "%.4g", value);
	}
	/* Some locales write a decimal comma. */
	comma = strchr(to, ',');
	if (comma != NULL)
		*comma = '.';
	return to;
}

/* ---- range ------------------------------------------------------------------------------------- */

void plot_range_start(struct plot_range *range, const struct plot_axis *axis)
{
	*range = (struct plot_range){ .axis = *axis };
}

bool plot_range_has(const struct plot_range *range, double value)
{
	return isfinite(value) && (range->axis.scale == PLOT_LINEAR || value > 0);
}

void plot_range_add(struct plot_range *range, double value)
{
	if (!plot_range_has(range, value))
		return;
	if (!range->has_values || value < range->low)
		range->low = value;
	if (!range->has_values || value > range->high)
		range->high = value;
	range->has_values = true;
}

void plot_range_add_points(struct plot_range *x, struct plot_range *y,
			   const struct plot_series *series, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < series[i].count; j++)
			if (plot_range_has(x, series[i].xs[j]) &&
			    plot_range_has(y, series[i].ys[j])) {
				plot_range_add(x, series[i].xs[j]);
				plot_range_add(y, series[i].ys[j]);
			}
}

bool svg_groups_has(const struct svg_groups *groups, size_t at, const struct plot_range *range)
{
	if (groups->boxes == NULL)
		return plot_range_has(range, groups->values[at]);
	return groups->boxes[at].is_there && plot_range_has(range, groups->boxes[at].p50);
}

void svg_groups_add(const struct svg_groups *groups, struct plot_range *range)
{
	for (size_t at = 0; at < groups->group_count * groups->series_count; at++) {
		if (!svg_groups_has(groups, at, range))
			continue;
		if (groups->boxes == NULL) {
			plot_range_add(range, groups->values[at]);
		} else {
			const struct svg_box *box = &groups->boxes[at];
			const double values[] = { box->low, box->p25, box->p50, box->p75,
						  box->high };

			for (size_t i = 0; i < ARRAY_LENGTH(values); i++)
				plot_range_add(range, values[i]);
		}
	}
}

static void finish_log(struct plot_range *range, bool is_tight)
{
	double room;

	if (!range->has_values) {
		range->low = 1;
		range->high = 10;
	}
	/* Very small and very large values get no margin. */
	range->low = fmin(fmax(range->low, 1e-150), 1e150);
	range->high = fmin(fmax(range->high, range->low), 1e150);
	room = is_tight && range->high > range->low * 1.05
		       ? 1
		       : fmax(pow(range->high / range->low, 0.04), 1.05);
	range->low /= room;
	range->high *= room;
}

static void finish_linear(struct plot_range *range, bool is_tight)
{
	if (!range->has_values)
		range->high = 1;
	if (!is_tight && range->low > 0)
		range->low = 0;
	range->low = fmax(range->low, -1e300);
	range->high = fmin(range->high, 1e300);
	if (!(range->high > range->low)) {
		double around = fabs(range->high) > 0 ? fabs(range->high) / 10 : 1;

		range->low -= range->low < 0 || is_tight ? around : 0;
		range->high += around;
	} else if (!is_tight) {
		range->high += (range->high - range->low) * 0.05;
	}
}

void plot_range_finish(struct plot_range *range, bool is_tight)
{
	if (range->axis.scale == PLOT_LINEAR)
		finish_linear(range, is_tight);
	else
		finish_log(range, is_tight);
}

double plot_range_place(const struct plot_range *range, double value)
{
	double place;

	if (range->axis.scale == PLOT_LINEAR)
		place = (value - range->low) / (range->high - range->low);
	else
		place = log(value / range->low) / log(range->high / range->low);
	return fmin(fmax(place, 0), 1);
}

/* ---- ticks ------------------------------------------------------------------------------------- */

static size_t linear_ticks(const struct plot_range *range, size_t most, double *ticks)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double span = range->high - range->low, least = span / (double)most, step;
	double ten = pow(10, floor(log10(least)));
	size_t count = 0;

	step = 10 * ten;
	for (size_t i = 0; i < ARRAY_LENGTH(steps); i++)
		if (steps[i] * ten >= least) {
			step = steps[i] * ten;
			break;
		}
	/* Multiplied instead of accumulated: a step may be too small to change a large number. */
	for (double n = ceil(range->low / step - 1e-9);
	     count < most && n * step <= range->high + span * 1e-9; n++)
		ticks[count++] = n == 0 ? 0 : n * step; /* no "-0" */
	return count;
}

/* Powers of `base`, every stride-th of them. */
static size_t power_ticks(const struct plot_range *range, double base, size_t most, double *ticks)
{
	double first = ceil(log(range->low) / log(base) - 1e-9);
	double last = floor(log(range->high) / log(base) + 1e-9);
	double stride = fmax(1, ceil((last - first + 1) / (double)most));
	size_t count = 0;

	first = ceil(first / stride) * stride;
	for (double power = first; power <= last && count < most; power += stride)
		ticks[count++] = pow(base, power);
	return count;
}

/* At these multiples of each power of ten; 0: no room for them. */
static size_t ticks_at(const struct plot_range *range, const double *parts, size_t part_count,
		       size_t most, double *ticks)
{
	double ten = floor(log10(range->low));
	size_t count = 0;

	for (; pow(10, ten) <= range->high; ten++)
		for (size_t i = 0; i < part_count; i++) {
			double value = parts[i] * pow(10, ten);

			if (value < range->low * (1 - 1e-9) || value > range->high * (1 + 1e-9))
				continue;
			if (count == most)
				return 0;
			ticks[count++] = value;
		}
	return count;
}

size_t plot_range_ticks(const struct plot_range *range, size_t most, double *ticks)
{
	static const double three[] = { 1, 2, 5 }, two[] = { 1, 3 };
	size_t count = 0;

	if (most < 2)
		most = 2;
	if (most > PLOT_TICKS_MAX)
		most = PLOT_TICKS_MAX;
	if (range->axis.scale == PLOT_LINEAR)
		return linear_ticks(range, most, ticks);
	if (range->axis.unit == PLOT_BYTES)
		count = power_ticks(range, 2, most, ticks);
	else if (range->high < range->low * 1000)
		count = ticks_at(range, three, ARRAY_LENGTH(three), most, ticks);
	if (count < 2 && range->axis.unit != PLOT_BYTES)
		count = power_ticks(range, 10, most, ticks);
	if (count < 2 && range->axis.unit != PLOT_BYTES)
		count = ticks_at(range, two, ARRAY_LENGTH(two), most, ticks);
	if (count < 2)
		count = linear_ticks(range, most, ticks);
	return count;
}

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

/* Marks of measured series; a computed line has a letter at its end. */
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

/* Writes the text and counts its columns. */
void bench_line_text(struct sink *sink, const char *text)
{
	for (; *text != '\0'; text++)
		sink_byte(sink, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

size_t bench_within(size_t value, size_t usual, size_t least, size_t most)
{
	size_t wanted = value != 0 ? value : usual;

	return wanted < least ? least : wanted > most ? most : wanted;
}

size_t bench_columns(const char *text)
{
	size_t columns = 0;

	for (; *text != '\0'; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
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
		size_t length = bench_columns(series[i].name) + 5;

		if (used > 0 && used + length > width) {
			sink_byte(sink, '\n');
			used = 0;
		}
		sink_format(sink, "%s%c ", used > 0 ? "   " : "  ",
			    mark_of(i, series[i].is_line_only));
		bench_line_text(sink, series[i].name);
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
		bench_line_text(sink, canvas->y.axis.label);
		sink_byte(sink, '\n');
	}
	put_rows(sink, canvas, labels);
	put_x_axis(sink, canvas, labels->widest);
	if (canvas->x.axis.label != NULL) {
		size_t length = bench_columns(canvas->x.axis.label);
		size_t room = labels->widest + 2 + canvas->width;

		sink_repeat(sink, ' ', room > length ? room - length : 0);
		bench_line_text(sink, canvas->x.axis.label);
		sink_byte(sink, '\n');
	}
	put_legend(sink, series, count, width);
}

enum status bench_plot_text(struct sink *sink, const struct plot_series *series, size_t count,
			    const struct plot_options *options)
{
	size_t width = bench_within(options->width, WIDTH_USUAL, WIDTH_LEAST, WIDTH_MOST);
	struct canvas canvas = {
		.height = bench_within(options->height, HEIGHT_USUAL, HEIGHT_LEAST, HEIGHT_MOST),
		.is_ascii = options->is_ascii,
	};
	struct labels labels;

	for (size_t i = 0; i < count; i++)
		if (i >= PLOT_SERIES_MAX || series[i].count > PLOT_POINTS_MAX)
			return ERR_RANGE;
	if (options->title != NULL) {
		bench_line_text(sink, options->title);
		sink_byte(sink, '\n');
	}
	plot_range_start(&canvas.x, &options->x);
	plot_range_start(&canvas.y, &options->y);
	plot_range_add_points(&canvas.x, &canvas.y, series, count);
	plot_range_finish(&canvas.x, true);
	plot_range_finish(&canvas.y, false);
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

enum {
	ROWS_WIDTH_USUAL = 100,
	ROWS_WIDTH_LEAST = 60,
	ROWS_WIDTH_MOST = 200,
	PLOT_LEAST = 20,
	VALUE_WIDTH = 9
};

/* What a column of a row shows; later values cover earlier ones. */
enum mark { EMPTY, ACROSS, LINE, LEFT_END, RIGHT_END, BAND, MEDIAN, MARKS };

static const char *const glyphs[MARKS] = {
	[EMPTY] = " ",
	[ACROSS] = "\342\224\212",    /* U+250A, dashed */
	[LINE] = "\342\224\200",      /* U+2500 */
	[LEFT_END] = "\342\224\234",  /* U+251C */
	[RIGHT_END] = "\342\224\244", /* U+2524 */
	[BAND] = "\342\226\222",      /* U+2592, grey */
	[MEDIAN] = "\342\226\210",    /* U+2588 */
};

struct layout {
	struct sink *sink;
	const struct svg_options *options;
	struct plot_range range;
	size_t group; /* columns for the names */
	size_t series;
	size_t plot; /* columns for the plot */
};

static size_t widest_name(const char *const *names, size_t count)
{
	size_t most = 0;

	for (size_t i = 0; i < count; i++)
		most = bench_columns(names[i]) > most ? bench_columns(names[i]) : most;
	return most;
}

static void put_name(struct sink *sink, const char *name, size_t columns)
{
	bench_line_text(sink, name);
	sink_repeat(sink, ' ', columns - bench_columns(name) + 2);
}

static void rows_lay_out(struct layout *layout, const struct svg_groups *groups, unsigned int width)
{
	size_t wide = bench_within(width, ROWS_WIDTH_USUAL, ROWS_WIDTH_LEAST, ROWS_WIDTH_MOST);
	size_t names;

	layout->group = widest_name(groups->groups, groups->group_count);
	layout->series = widest_name(groups->series, groups->series_count);
	names = layout->group + 2 + layout->series + 2 + VALUE_WIDTH;
	layout->plot = wide > names + PLOT_LEAST ? wide - names : PLOT_LEAST;
}

static size_t column_at(const struct layout *layout, double value)
{
	return (size_t)lround(plot_range_place(&layout->range, value) * (double)(layout->plot - 1));
}

static void put_bar(const struct layout *layout, double value)
{
	double part = layout->range.high > 0 ? value / layout->range.high : 0;
	size_t length = (size_t)lround(fmin(fmax(part, 0), 1) * (double)layout->plot);
	char text[PLOT_VALUE_TEXT];

	if (length == 0 && value > 0)
		length = 1;
	for (size_t i = 0; i < length; i++)
		sink_text(layout->sink, glyphs[MEDIAN]);
	sink_format(layout->sink, " %s\n", bench_plot_value(text, value, layout->options->y.unit));
}

/* Columns from one value to another; none if one of them cannot be shown. */
static void put_between(const struct layout *layout, unsigned char *line, double from, double to,
			unsigned char glyph)
{
	if (!plot_range_has(&layout->range, from) || !plot_range_has(&layout->range, to))
		return;
	for (size_t i = column_at(layout, from); i <= column_at(layout, to); i++)
		line[i] = glyph;
}

static void put_box(const struct layout *layout, const struct svg_box *box)
{
	unsigned char line[ROWS_WIDTH_MOST] = { EMPTY };
	char text[PLOT_VALUE_TEXT];

	if (layout->options->has_mark)
		line[column_at(layout, layout->options->mark)] = ACROSS;
	put_between(layout, line, box->low, box->high, LINE);
	put_between(layout, line, box->low, box->low, LEFT_END);
	put_between(layout, line, box->high, box->high, RIGHT_END);
	put_between(layout, line, box->p25, box->p75, BAND);
	line[column_at(layout, box->p50)] = MEDIAN;
	for (size_t i = 0; i < layout->plot; i++)
		sink_text(layout->sink, glyphs[line[i]]);
	if (layout->options->y.unit == PLOT_PLAIN)
		text_format(text, sizeof(text), "%.3f", box->p50);
	else
		bench_plot_value(text, box->p50, layout->options->y.unit);
	sink_format(layout->sink, " %s\n", text);
}

/* Values above their columns, as many as fit, followed by the name of the mark. */
static void put_scale(const struct layout *layout)
{
	double ticks[PLOT_TICKS_MAX];
	size_t count = plot_range_ticks(&layout->range, layout->plot / 10, ticks), used = 0;
	char text[PLOT_VALUE_TEXT];

	sink_repeat(layout->sink, ' ', layout->group + 2 + layout->series + 2);
	for (size_t i = 0; i < count; i++) {
		size_t at = column_at(layout, ticks[i]);

		bench_plot_value(text, ticks[i], layout->options->y.unit);
		if ((used > 0 && at <= used) || at + strlen(text) > layout->plot + VALUE_WIDTH)
			continue;
		sink_repeat(layout->sink, ' ', at - used);
		sink_text(layout->sink, text);
		used = at + strlen(text);
	}
	sink_text(layout->sink, "\n");
}

enum status plot_rows_groups(struct sink *sink, const struct svg_groups *groups,
			     const struct svg_options *options, unsigned int width)
{
	struct layout layout = { .sink = sink, .options = options };
	size_t count = groups->group_count * groups->series_count;
	size_t named = SIZE_MAX; /* the group of the row above */

	if (groups->group_count > SVG_GROUPS_MAX || groups->series_count > SVG_SERIES_MAX)
		return ERR_RANGE;
	rows_lay_out(&layout, groups, width);
	plot_range_start(&layout.range, &options->y);
	svg_groups_add(groups, &layout.range);
	if (groups->boxes != NULL && options->has_mark && layout.range.has_values)
		plot_range_add(&layout.range, options->mark);
	plot_range_finish(&layout.range, true);
	if (options->title != NULL)
		sink_format(sink, "%s\n", options->title);
	if (groups->boxes != NULL && !layout.range.has_values) {
		sink_text(sink, "nothing was measured\n");
		return sink->status;
	}
	if (groups->boxes != NULL)
		put_scale(&layout);
	for (size_t i = 0; i < count; i++) {
		size_t group = i / groups->series_count, series = i % groups->series_count;
		bool is_shown = svg_groups_has(groups, i, &layout.range);

		if (groups->boxes != NULL && !is_shown)
			continue;
		put_name(sink, group != named ? groups->groups[group] : "", layout.group);
		put_name(sink, groups->series[series], layout.series);
		named = group;
		if (!is_shown)
			sink_text(sink, "-\n");
		else if (groups->boxes != NULL)
			put_box(&layout, &groups->boxes[i]);
		else
			put_bar(&layout, groups->values[i]);
	}
	return sink->status;
}
