#include "base/histogram.h"

/* 10^9 * 2^(k/8) * 2^32, rounded down: the eight steps of an octave in fixed point. */
static const uint64_t octave_steps[8] = {
	UINT64_C(4294967296000000000), UINT64_C(4683695047832392561), UINT64_C(5107605667107197932),
	UINT64_C(5569883475385291208), UINT64_C(6074000999952099384), UINT64_C(6623745058664271696),
	UINT64_C(7223245205676679009), UINT64_C(7877004751727667949),
};

uint64_t histogram_upper_ns(unsigned int bucket)
{
	return octave_steps[bucket % 8] >> (32 - HISTOGRAM_FIRST_EXPONENT - (int)(bucket / 8));
}

unsigned int histogram_bucket(uint64_t ns)
{
	/* 2^8 ns is just above bucket 0; an octave of ns spans at most two of ours. */
	unsigned int log2 = ns > 255 ? 63 - (unsigned int)__builtin_clzll(ns) : 8;
	unsigned int low = (log2 - 8) * 8;
	unsigned int high = low + 16;

	if (high > HISTOGRAM_BUCKETS - 1)
		high = HISTOGRAM_BUCKETS - 1;
	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (ns <= histogram_upper_ns(middle))
			high = middle;
		else
			low = middle + 1;
	}
	return high;
}
