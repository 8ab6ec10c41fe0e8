#include "programs/top/top_bars.h"

#include <math.h>
#include <string.h>

static const char *const heights[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char *const plain_heights[] = { "_", ".", ":", "-", "=", "+", "*", "#" };
static const char *const lengths[] = { "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" };

static char *append(char *at, const char *text)
{
	size_t length = strlen(text);

	memcpy(at, text, length + 1);
	return at + length;
}

struct column {
	double sum; /* bandwidth x time */
	double time;
};

/* A look speaks for the time since the look before. */
static void spread(struct column *columns, unsigned int count, uint64_t begin_ns, uint64_t from_ns,
		   const struct live_point *point)
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
		/* Of the first it is not known: about as long as the next, or a column. */
		uint64_t from_ns = i > 0 ? live_point(history, i - 1)->wall_ns
					 : point->wall_ns - TOP_BARS_WINDOW_NS / count;

		if (point->wall_ns > begin_ns && point->wall_ns <= now_wall_ns &&
		    isfinite(point->busbw))
			spread(columns, count, begin_ns, from_ns, point);
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
			at = append(at, " ");
		else
			at = append(at, blocks[height < 1    ? 0
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
	/* Something is more than nothing. */
	if (share > 0 && eighths == 0)
		eighths = 1;
	for (unsigned int i = 0; i < columns; i++) {
		part = eighths > i * 8 ? eighths - i * 8 : 0;
		if (part > 8)
			part = 8;
		if (is_utf8)
			at = append(at, part > 0 ? lengths[part - 1] : " ");
		else
			at = append(at, part >= 4 || (i == 0 && part > 0) ? "#" : " ");
	}
	return to;
}
