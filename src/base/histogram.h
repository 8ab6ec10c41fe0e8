/*
 * Buckets for durations: Prometheus' exponential layout, schema 3. Bucket i holds durations d with
 *
 *	2^((i-1)/8) s < d * 2^22 <= 2^(i/8) s
 *
 * so eight buckets an octave, each 9 % wide, from 238 ns (bucket 0 and all below) to 1024 s (bucket
 * 256 - 1 and all above). Exporting is exact, merging is addition.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 256, HISTOGRAM_SCHEMA = 3, HISTOGRAM_FIRST_EXPONENT = -22 };

/* The largest whole nanosecond that still belongs to bucket i. */
uint64_t histogram_upper_ns(unsigned int bucket);

unsigned int histogram_bucket(uint64_t ns);

/* Prometheus' own index of our bucket i in schema 3. */
static inline int histogram_prometheus_index(unsigned int bucket)
{
	return HISTOGRAM_FIRST_EXPONENT * 8 + (int)bucket;
}

#endif
