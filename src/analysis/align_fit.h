/* Offset and drift between two clocks from moments that both observed. */
#ifndef ALIGN_FIT_H
#define ALIGN_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct align_sample {
	uint64_t own_ns;
	uint64_t other_ns;
};

struct align_line {
	int64_t offset_ns; /* other - own, at middle_ns of own */
	double drift;	   /* additional ns per ns of own */
	double spread_ns;  /* 90% of samples are within it of the line */
	uint64_t middle_ns;
	size_t samples;
};

/*
 * Samples in any order; they are sorted in place. The offset is a median, the drift the median slope
 * between medians of eight blocks, used only if it is larger than what the spread explains by chance.
 */
bool align_fit(struct align_sample *samples, size_t count, struct align_line *line);

#endif
