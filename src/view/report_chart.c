/* Charts of one line of text. */
#include "view/report_text.h"

static double largest(const double *values, size_t count)
{
	double most = 0;

	for (size_t i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	return most;
}

/* Mean of the values above 0 among those that fall into one character. */
static double mean_of(const double *values, size_t first, size_t after)
{
	double sum = 0;
	size_t used = 0;

	for (size_t i = first; i < after; i++) {
		if (values[i] > 0) {
			sum += values[i];
			used++;
		}
	}
	return used ? sum / (double)used : 0;
}

void report_chart(struct sink *to, const double *values, size_t count, size_t most, bool has_blocks)
{
	/* U+2581 to U+2588: a block of one to eight eighths. */
	static const char *const blocks[] = { "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
					      "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
					      "\xe2\x96\x87", "\xe2\x96\x88" };
	static const char *const digits[] = { "1", "2", "3", "4", "5", "6", "7", "8" };
	double top = largest(values, count);
	size_t wide = count < most ? count : most;

	for (size_t i = 0; i < wide; i++) {
		double value = mean_of(values, i * count / wide, (i + 1) * count / wide);
		int step = top > 0 ? (int)(value / top * 8) : 0;

		if (!(value > 0))
			sink_text(to, " ");
		else
			sink_text(to, (has_blocks ? blocks : digits)[step > 7 ? 7 : step]);
	}
}
