/*
 * io.prometheus.client.MetricFamily, each after its length. A histogram is written twice in one message:
 * classic buckets for servers that know no other, and native ones, schema 3, which are ours as they are.
 * Our bucket 0 has all that is not longer than 2^-22 s: that is the zero bucket with this threshold.
 */
#include <string.h>

#include "view/metrics_out.h"
#include "view/perfetto_wire.h"

enum family_field { FAMILY_NAME = 1, FAMILY_HELP = 2, FAMILY_TYPE = 3, FAMILY_METRIC = 4 };
enum metric_field {
	METRIC_LABEL = 1,
	METRIC_GAUGE = 2,
	METRIC_COUNTER = 3,
	METRIC_HISTOGRAM = 7,
};
enum label_field { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { VALUE = 1 };
enum histogram_field {
	HISTOGRAM_COUNT = 1,
	HISTOGRAM_SUM = 2,
	HISTOGRAM_BUCKET = 3,
	HISTOGRAM_SCHEMA_OF = 5,
	HISTOGRAM_ZERO_THRESHOLD = 6,
	HISTOGRAM_ZERO_COUNT = 7,
	HISTOGRAM_POSITIVE_SPAN = 12,
	HISTOGRAM_POSITIVE_DELTA = 13,
};
enum bucket_field { BUCKET_COUNT = 1, BUCKET_BOUND = 2 };
enum span_field { SPAN_OFFSET = 1, SPAN_LENGTH = 2 };

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

void metrics_wire_label(struct metrics_out *out, const char *name, const char *value, size_t length)
{
	wire_bytes(&out->part, LABEL_NAME, name, strlen(name));
	wire_bytes(&out->part, LABEL_VALUE, value, length);
	wire_message(&out->labels, METRIC_LABEL, &out->part);
}

static void begin_metric(struct metrics_out *out, struct metrics_labels labels)
{
	out->has_samples = true;
	if (labels.length > 0)
		sink_write(&out->message, out->labels.bytes + labels.at, labels.length);
}

void metrics_wire_sample(struct metrics_out *out, struct metrics_labels labels, double value)
{
	begin_metric(out, labels);
	wire_double(&out->part, VALUE, value);
	wire_message(&out->message, out->type == METRICS_COUNTER ? METRIC_COUNTER : METRIC_GAUGE,
		     &out->part);
	wire_message(&out->body, FAMILY_METRIC, &out->message);
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* Inside the message of the sample: its parts are one level deeper than what wire_message() can hold
 * back, so their lengths are counted first. */
static size_t varint_length(uint64_t value)
{
	size_t length = 1;

	while (value >= 0x80) {
		value >>= 7;
		length++;
	}
	return length;
}

static void put_classic(struct sink *to, const struct metrics_histogram *histogram)
{
	unsigned int bucket = 0;
	uint64_t count = 0;

	for (unsigned int i = 0; i < METRICS_BOUNDS; i++) {
		while (bucket <= metrics_bound_bucket(i))
			count += histogram->buckets[bucket++];
		wire_varint(to, HISTOGRAM_BUCKET << 3 | 2);
		wire_varint(to, 1 + varint_length(count) + 9);
		wire_unsigned(to, BUCKET_COUNT, count);
		wire_double(to, BUCKET_BOUND, metrics_bounds[i]);
	}
}

static void put_span(struct sink *to, int64_t offset, uint64_t length)
{
	wire_varint(to, HISTOGRAM_POSITIVE_SPAN << 3 | 2);
	wire_varint(to, 2 + varint_length(zigzag(offset)) + varint_length(length));
	wire_unsigned(to, SPAN_OFFSET, zigzag(offset));
	wire_unsigned(to, SPAN_LENGTH, length);
}

/* The first bucket from `from` on that is not empty; all beyond the last are empty. */
static unsigned int next_full(const struct metrics_histogram *histogram, unsigned int from)
{
	while (from < HISTOGRAM_BUCKETS && histogram->buckets[from] == 0)
		from++;
	return from;
}

/* Runs of buckets: where each begins, as a distance from the end of the one before, and its length. */
static void put_spans(struct sink *to, const struct metrics_histogram *histogram)
{
	unsigned int start = next_full(histogram, 1), end;
	int64_t behind = 0;

	for (; start < HISTOGRAM_BUCKETS; start = next_full(histogram, end)) {
		for (end = start; end < HISTOGRAM_BUCKETS && histogram->buckets[end] > 0; end++)
			;
		put_span(to, histogram_prometheus_index(start) - behind, end - start);
		behind = histogram_prometheus_index(end);
	}
}

static void put_native(struct sink *to, const struct metrics_histogram *histogram)
{
	uint64_t before = 0;

	wire_unsigned(to, HISTOGRAM_SCHEMA_OF, zigzag(HISTOGRAM_SCHEMA));
	wire_double(to, HISTOGRAM_ZERO_THRESHOLD, 0x1p-22);
	wire_unsigned(to, HISTOGRAM_ZERO_COUNT, histogram->buckets[0]);
	put_spans(to, histogram);
	for (unsigned int i = 1; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t count = histogram->buckets[i];

		if (count == 0)
			continue;
		wire_unsigned(to, HISTOGRAM_POSITIVE_DELTA, zigzag((int64_t)(count - before)));
		before = count;
	}
}

void metrics_wire_histogram(struct metrics_out *out, struct metrics_labels labels,
			    const struct metrics_histogram *histogram)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += histogram->buckets[i];
	begin_metric(out, labels);
	wire_unsigned(&out->part, HISTOGRAM_COUNT, count);
	wire_double(&out->part, HISTOGRAM_SUM, (double)((long double)histogram->sum_ns / 1e9L));
	put_classic(&out->part, histogram);
	put_native(&out->part, histogram);
	wire_message(&out->message, METRIC_HISTOGRAM, &out->part);
	wire_message(&out->body, FAMILY_METRIC, &out->message);
}

/* ---------------------------------------------------------------------------------------------- */

void metrics_wire_end_family(struct metrics_out *out)
{
	static const uint64_t types[] = { 0, 1, 4 }; /* COUNTER, GAUGE, HISTOGRAM */

	wire_bytes(&out->message, FAMILY_NAME, out->name, out->name_length);
	wire_bytes(&out->message, FAMILY_HELP, out->family->help, strlen(out->family->help));
	wire_unsigned(&out->message, FAMILY_TYPE, types[out->type]);
	wire_varint(out->sink, out->message.used + out->body.used);
	if (out->message.status == OK && out->body.status == OK) {
		sink_write(out->sink, out->message.bytes, out->message.used);
		sink_write(out->sink, out->body.bytes, out->body.used);
	}
	out->message.used = 0;
	out->body.used = 0;
}
