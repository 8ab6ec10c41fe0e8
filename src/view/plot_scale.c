#include "view/plot_scale.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/attributes.h"
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
		/* Three digits are not enough for 1023 of something. */
		put_scaled(to, value, 4, bytes, ARRAY_LENGTH(bytes));
		break;
	case PLOT_NS:
		put_scaled(to, value, 3, times, ARRAY_LENGTH(times));
		break;
	case PLOT_GBPS:
		text_format(to, PLOT_VALUE_TEXT, "%.3g GB/s", value);
		break;
	case PLOT_PERCENT:
		/* Nothing is rounded up to the whole. */
		text_format(to, PLOT_VALUE_TEXT, "%.4g %%",
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

static void finish_log(struct plot_range *range, bool is_tight)
{
	double room;

	if (!range->has_values) {
		range->low = 1;
		range->high = 10;
	}
	/* The very small and the very large have no room around them. */
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
	/* Counted, not added up: a step may be too small to change a large number. */
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

/* 1, 2 and 5 times powers of ten. */
/* At these parts of each power of ten; 0: there is no room for them. */
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
