/*
 * Accept: the formats that a server wants, with weights.
 *
 *	application/openmetrics-text;version=1.0.0;q=0.8, text/plain;version=0.0.4;q=0.5, *;q=0.1
 *
 * The format with the largest weight wins, the first one on a tie.
 */
#include "output/metrics.h"
#include "output/metrics_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text.h"
#include "output/protobuf.h"

/*
 * Classic buckets: 2^-20 s (0.95 us) times powers of 4, up to 16 s. Each bound is also the upper bound of
 * our bucket 16 + 16 * i, so that the counts are exact.
 */
enum { METRICS_BOUNDS = 13 };
static inline unsigned int metrics_bound_bucket(unsigned int bound)
{
	return 16 + 16 * bound;
}

const char *metrics_content_type(enum metrics_format format)
{
	static const char *const types[] = {
		[METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
		[METRICS_OPENMETRICS] =
			"application/openmetrics-text; version=1.0.0; charset=utf-8",
		[METRICS_PROTOBUF] =
			("application/vnd.google.protobuf; "
			 "proto=io.prometheus.client.MetricFamily; encoding=delimited"),
	};

	return types[format];
}

struct word {
	const char *at;
	size_t length;
};

static bool is_word(struct word word, const char *text)
{
	return word.length == strlen(text) && strncasecmp(word.at, text, word.length) == 0;
}

static struct word word_trimmed(const char *from, const char *to)
{
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (from < to && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	/* A parameter may be quoted. */
	if (to - from >= 2 && *from == '"' && to[-1] == '"') {
		from++;
		to--;
	}
	return (struct word){ from, (size_t)(to - from) };
}

/* "0.75" in thousandths; -1 if it is not a weight. */
static int weight(struct word word)
{
	int value, unit = 100;

	if (word.length == 0 || word.length > 5 || (word.at[0] != '0' && word.at[0] != '1'))
		return -1;
	value = (word.at[0] - '0') * 1000;
	if (word.length > 1 && word.at[1] != '.')
		return -1;
	for (size_t i = 2; i < word.length; i++, unit /= 10) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return -1;
		value += (word.at[i] - '0') * unit;
	}
	return value <= 1000 ? value : -1;
}

/* One part of the header: a media type with its parameters. */
struct media_range {
	struct word media;
	struct word version;
	struct word proto;
	struct word encoding;
	int weight; /* thousandths */
};

static void read_parameter(struct media_range *range, const char *from, const char *to)
{
	const char *equal = memchr(from, '=', (size_t)(to - from));
	struct word name, value;

	if (equal == NULL)
		return;
	name = word_trimmed(from, equal);
	value = word_trimmed(equal + 1, to);
	if (is_word(name, "q"))
		range->weight = weight(value);
	else if (is_word(name, "version"))
		range->version = value;
	else if (is_word(name, "proto"))
		range->proto = value;
	else if (is_word(name, "encoding"))
		range->encoding = value;
}

static struct media_range read_range(const char *from, const char *to)
{
	struct media_range range = { .weight = 1000 };
	const char *end;

	for (bool is_first = true; from <= to; from = end + 1, is_first = false) {
		end = memchr(from, ';', (size_t)(to - from));
		if (end == NULL)
			end = to;
		if (is_first)
			range.media = word_trimmed(from, end);
		else
			read_parameter(&range, from, end);
	}
	return range;
}

/* The matching format; false if it is unknown. */
static bool format_of(const struct media_range *range, enum metrics_format *format)
{
	if (is_word(range->media, "application/vnd.google.protobuf")) {
		*format = METRICS_PROTOBUF;
		return is_word(range->proto, "io.prometheus.client.MetricFamily") &&
		       is_word(range->encoding, "delimited");
	}
	if (is_word(range->media, "application/openmetrics-text")) {
		*format = METRICS_OPENMETRICS;
		return range->version.length == 0 || is_word(range->version, "1.0.0");
	}
	*format = METRICS_TEXT;
	if (is_word(range->media, "text/plain"))
		return range->version.length == 0 || is_word(range->version, "0.0.4");
	return is_word(range->media, "*/*") || is_word(range->media, "text/*");
}

enum metrics_format metrics_negotiate(const char *accept)
{
	enum metrics_format best = METRICS_TEXT, format;
	int best_weight = 0;
	const char *end;

	for (const char *at = accept ? accept : ""; *at != '\0'; at = end + (*end == ',')) {
		struct media_range range;

		end = at + strcspn(at, ",");
		range = read_range(at, end);
		if (format_of(&range, &format) && range.weight > best_weight) {
			best = format;
			best_weight = range.weight;
		}
	}
	return best;
}

static const char *const metrics_bound_text[METRICS_BOUNDS] = {
	"9.5367431640625e-07",
	"3.814697265625e-06",
	"1.52587890625e-05",
	"6.103515625e-05",
	"0.000244140625",
	"0.0009765625",
	"0.00390625",
	"0.015625",
	"0.0625",
	"0.25",
	"1.0",
	"4.0",
	"16.0",
};

static const double metrics_bounds[METRICS_BOUNDS] = {
	0x1p-20, 0x1p-18, 0x1p-16, 0x1p-14, 0x1p-12, 0x1p-10, 0x1p-8,
	0x1p-6,	 0x1p-4,  0x1p-2,  0x1p0,   0x1p2,   0x1p4,
};

/*
 * Prometheus text 0.0.4 and OpenMetrics 1.0. They differ in the name of a family: OpenMetrics has _total and
 * _info in the names of samples only, and a type for infos.
 */

static size_t family_name_length(const struct metrics_out *out)
{
	size_t length = strlen(out->family->name);

	if (out->format == METRICS_TEXT)
		return out->name_length;
	return out->is_info ? length - strlen("_info") : length;
}

static void begin_family(struct metrics_out *out)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };
	bool is_info = out->is_info && out->format == METRICS_OPENMETRICS;

	if (out->has_samples)
		return;
	out->has_samples = true;
	sink_text(out->sink, "# HELP ");
	sink_write(out->sink, out->name, family_name_length(out));
	sink_byte(out->sink, ' ');
	sink_text(out->sink, out->family->help);
	sink_text(out->sink, "\n# TYPE ");
	sink_write(out->sink, out->name, family_name_length(out));
	sink_byte(out->sink, ' ');
	sink_text(out->sink, is_info ? "info" : types[out->type]);
	sink_byte(out->sink, '\n');
}

static void metrics_text_label(struct metrics_out *out, const char *name, const char *value)
{
	struct sink *to = &out->labels;
	size_t plain;

	sink_text(to, name);
	sink_text(to, "=\"");
	for (;; value += plain + 1) {
		plain = strcspn(value, "\\\"\n");
		sink_write(to, value, plain);
		if (value[plain] == '\0')
			break;
		sink_byte(to, '\\');
		sink_byte(to, value[plain] == '\n' ? 'n' : value[plain]);
	}
	/* Each label ends with a comma, so that sets can be concatenated; the last comma is omitted. */
	sink_text(to, "\",");
}

static void put_labels(struct metrics_out *out, struct metrics_labels labels)
{
	if (labels.length > 0)
		sink_write(out->sink, out->labels.bytes + labels.at, labels.length - 1);
}

static void metrics_text_sample(struct metrics_out *out, struct metrics_labels labels,
				const char *value, size_t length)
{
	begin_family(out);
	sink_write(out->sink, out->name, out->name_length);
	if (labels.length > 0) {
		sink_byte(out->sink, '{');
		put_labels(out, labels);
		sink_byte(out->sink, '}');
	}
	sink_byte(out->sink, ' ');
	sink_write(out->sink, value, length);
	sink_byte(out->sink, '\n');
}

static void put_part(struct metrics_out *out, const char *suffix, struct metrics_labels labels,
		     const char *bound, const char *value, size_t length)
{
	sink_write(out->sink, out->name, out->name_length);
	sink_text(out->sink, suffix);
	sink_byte(out->sink, '{');
	put_labels(out, labels);
	if (bound != NULL) {
		sink_text(out->sink, labels.length > 0 ? ",le=\"" : "le=\"");
		sink_text(out->sink, bound);
		sink_byte(out->sink, '"');
	}
	sink_text(out->sink, "} ");
	sink_write(out->sink, value, length);
	sink_byte(out->sink, '\n');
}

static size_t metrics_text_seconds(char to[static METRICS_NUMBER], uint64_t ns)
{
	size_t length = sink_digits(to, ns / 1000000000);
	uint64_t rest = ns % 1000000000;

	if (rest == 0)
		return length;
	to[length] = '.';
	for (size_t i = 9; i > 0; i--, rest /= 10)
		to[length + i] = (char)('0' + rest % 10);
	length += 10;
	while (to[length - 1] == '0')
		length--;
	return length;
}

static void metrics_text_histogram(struct metrics_out *out, struct metrics_labels labels,
				   const struct metrics_histogram *histogram)
{
	char text[METRICS_NUMBER];
	unsigned int bucket = 0;
	uint64_t count = 0;

	begin_family(out);
	for (unsigned int i = 0; i < METRICS_BOUNDS; i++) {
		while (bucket <= metrics_bound_bucket(i))
			count += histogram->buckets[bucket++];
		put_part(out, "_bucket", labels, metrics_bound_text[i], text,
			 sink_digits(text, count));
	}
	while (bucket < HISTOGRAM_BUCKETS)
		count += histogram->buckets[bucket++];
	put_part(out, "_bucket", labels, "+Inf", text, sink_digits(text, count));
	put_part(out, "_sum", labels, NULL, text, metrics_text_seconds(text, histogram->sum_ns));
	put_part(out, "_count", labels, NULL, text, sink_digits(text, count));
}

/*
 * io.prometheus.client.MetricFamily messages with length prefixes. A histogram has both kinds of buckets in one
 * message: classic ones for older servers and native ones, schema 3, which equal our own. Our bucket 0 counts
 * everything up to 2^-22 s: that is the zero bucket with this threshold.
 */

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

static uint64_t protobuf_zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static void metrics_wire_label(struct metrics_out *out, const char *name, const char *value,
			       size_t length)
{
	protobuf_bytes(&out->part, LABEL_NAME, name, strlen(name));
	protobuf_bytes(&out->part, LABEL_VALUE, value, length);
	protobuf_message(&out->labels, METRIC_LABEL, &out->part);
}

static void begin_metric(struct metrics_out *out, struct metrics_labels labels)
{
	out->has_samples = true;
	if (labels.length > 0)
		sink_write(&out->message, out->labels.bytes + labels.at, labels.length);
}

static void metrics_wire_sample(struct metrics_out *out, struct metrics_labels labels, double value)
{
	begin_metric(out, labels);
	protobuf_double(&out->part, VALUE, value);
	protobuf_message(&out->message,
			 out->type == METRICS_COUNTER ? METRIC_COUNTER : METRIC_GAUGE, &out->part);
	protobuf_message(&out->body, FAMILY_METRIC, &out->message);
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* Nested in the message of the sample: one level deeper than protobuf_message() can buffer, so lengths are computed
 * first. */
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
		protobuf_varint(to, HISTOGRAM_BUCKET << 3 | 2);
		protobuf_varint(to, 1 + varint_length(count) + 9);
		protobuf_unsigned(to, BUCKET_COUNT, count);
		protobuf_double(to, BUCKET_BOUND, metrics_bounds[i]);
	}
}

static void put_span(struct sink *to, int64_t offset, uint64_t length)
{
	protobuf_varint(to, HISTOGRAM_POSITIVE_SPAN << 3 | 2);
	protobuf_varint(to, 2 + varint_length(protobuf_zigzag(offset)) + varint_length(length));
	protobuf_unsigned(to, SPAN_OFFSET, protobuf_zigzag(offset));
	protobuf_unsigned(to, SPAN_LENGTH, length);
}

/* The first non-empty bucket from `from` on; all beyond the last are empty. */
static unsigned int next_full(const struct metrics_histogram *histogram, unsigned int from)
{
	while (from < HISTOGRAM_BUCKETS && histogram->buckets[from] == 0)
		from++;
	return from;
}

/* Spans of buckets: the gap to the end of the span before, and the length. */
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

	protobuf_unsigned(to, HISTOGRAM_SCHEMA_OF, protobuf_zigzag(HISTOGRAM_SCHEMA));
	protobuf_double(to, HISTOGRAM_ZERO_THRESHOLD, 0x1p-22);
	protobuf_unsigned(to, HISTOGRAM_ZERO_COUNT, histogram->buckets[0]);
	put_spans(to, histogram);
	for (unsigned int i = 1; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t count = histogram->buckets[i];

		if (count == 0)
			continue;
		protobuf_unsigned(to, HISTOGRAM_POSITIVE_DELTA,
				  protobuf_zigzag((int64_t)(count - before)));
		before = count;
	}
}

/* The double nearest to this many seconds, as a reader of the text gets it. Rounded once only: through a long double
 * it would be rounded twice and may be off by one ulp. */
static double metrics_seconds(uint64_t ns)
{
	return ns < UINT64_C(1) << 53 ? (double)ns / 1e9 : (double)((long double)ns / 1e9L);
}

static void metrics_wire_histogram(struct metrics_out *out, struct metrics_labels labels,
				   const struct metrics_histogram *histogram)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += histogram->buckets[i];
	begin_metric(out, labels);
	protobuf_unsigned(&out->part, HISTOGRAM_COUNT, count);
	protobuf_double(&out->part, HISTOGRAM_SUM, metrics_seconds(histogram->sum_ns));
	put_classic(&out->part, histogram);
	put_native(&out->part, histogram);
	protobuf_message(&out->message, METRIC_HISTOGRAM, &out->part);
	protobuf_message(&out->body, FAMILY_METRIC, &out->message);
}

/* ---------------------------------------------------------------------------------------------- */

static void metrics_wire_end_family(struct metrics_out *out)
{
	static const uint64_t types[] = { 0, 1, 4 }; /* COUNTER, GAUGE, HISTOGRAM */

	protobuf_bytes(&out->message, FAMILY_NAME, out->name, out->name_length);
	protobuf_bytes(&out->message, FAMILY_HELP, out->family->help, strlen(out->family->help));
	protobuf_unsigned(&out->message, FAMILY_TYPE, types[out->type]);
	protobuf_varint(out->sink, out->message.used + out->body.used);
	if (out->message.status == OK && out->body.status == OK) {
		sink_write(out->sink, out->message.bytes, out->message.used);
		sink_write(out->sink, out->body.bytes, out->body.used);
	}
	out->message.used = 0;
	out->body.used = 0;
}

/* ---- begin and end --------------------------------------------------------------------------- */

void metrics_out_begin(struct metrics_out *out, struct sink *sink, enum metrics_format format)
{
	*out = (struct metrics_out){ .sink = sink, .format = format };
	sink_init_memory(&out->labels);
	sink_init_memory(&out->clean);
	sink_init_memory(&out->body);
	sink_init_memory(&out->message);
	sink_init_memory(&out->part);
}

static void end_family(struct metrics_out *out)
{
	if (out->has_samples && out->format == METRICS_PROTOBUF)
		metrics_wire_end_family(out);
	out->has_samples = false;
}

void metrics_out_end(struct metrics_out *out)
{
	struct sink *own[] = { &out->labels, &out->clean, &out->body, &out->message, &out->part };

	end_family(out);
	if (out->format == METRICS_OPENMETRICS)
		sink_text(out->sink, "# EOF\n");
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		if (own[i]->status != OK)
			sink_fail(out->sink, own[i]->status, own[i]->error);
		sink_release(own[i]);
	}
}

/* ---- labels ---------------------------------------------------------------------------------- */

void metrics_clean_text(struct sink *to, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = strlen(text), good = 0, character;

	while (good < left) {
		character = at[good] < 0x80 ? 1 : utf8_bytes(at + good, left - good);
		if (character == 1 ||
		    (character > 1 && !text_is_unseen(text_decode(at + good, character)))) {
			good += character;
			continue;
		}
		sink_write(to, at, good);
		sink_text(to, "\xef\xbf\xbd");
		at += good + (character > 0 ? character : 1);
		left -= good + (character > 0 ? character : 1);
		good = 0;
	}
	sink_write(to, at, left);
}

void metrics_labels_begin(struct metrics_out *out, struct metrics_labels *labels)
{
	*labels = (struct metrics_labels){ .at = out->labels.used };
}

void metrics_labels_copy(struct metrics_out *out, struct metrics_labels from)
{
	char part[256];
	size_t length;

	/* In parts: the buffer may move when it grows. */
	for (size_t done = 0; done < from.length && out->labels.status == OK; done += length) {
		length = from.length - done < sizeof(part) ? from.length - done : sizeof(part);
		memcpy(part, out->labels.bytes + from.at + done, length);
		sink_write(&out->labels, part, length);
	}
}

void metrics_label(struct metrics_out *out, const char *name, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return;
	out->clean.used = 0;
	metrics_clean_text(&out->clean, value);
	if (out->clean.status != OK)
		return;
	if (out->format == METRICS_PROTOBUF)
		metrics_wire_label(out, name, out->clean.bytes, out->clean.used);
	else
		metrics_text_label(out, name, out->clean.bytes);
}

void metrics_label_number(struct metrics_out *out, const char *name, int64_t number)
{
	char text[METRICS_NUMBER];

	text_format(text, sizeof(text), "%" PRId64, number);
	metrics_label(out, name, text);
}

void metrics_labels_end(struct metrics_out *out, struct metrics_labels *labels)
{
	labels->length = out->labels.used - labels->at;
	/* After a failure the output is not used. */
	if (out->labels.status != OK)
		*labels = (struct metrics_labels){ 0 };
}

size_t metrics_labels_mark(const struct metrics_out *out)
{
	return out->labels.used;
}

void metrics_labels_forget(struct metrics_out *out, size_t mark)
{
	if (out->labels.status == OK)
		out->labels.used = mark;
}

bool metrics_labels_equal(const struct metrics_out *out, struct metrics_labels a,
			  struct metrics_labels b)
{
	return a.length == b.length &&
	       (a.length == 0 ||
		memcmp(out->labels.bytes + a.at, out->labels.bytes + b.at, a.length) == 0);
}

/* ---- families and samples -------------------------------------------------------------------- */

void metrics_family(struct metrics_out *out, enum metrics_family family)
{
	const struct metrics_name *of = &metrics_names()[family];

	end_family(out);
	out->family = of;
	out->is_info = strcmp(of->type, "info") == 0;
	out->type = METRICS_GAUGE;
	if (strcmp(of->type, "counter") == 0)
		out->type = METRICS_COUNTER;
	else if (strcmp(of->type, "histogram") == 0)
		out->type = METRICS_HISTOGRAM;
	text_format(out->name, sizeof(out->name), "%s%s", of->name,
		    out->type == METRICS_COUNTER ? "_total" : "");
	out->name_length = strlen(out->name);
}

/* The shortest text that reads as the same number. */
static size_t text_double(char to[static METRICS_NUMBER], double value)
{
	if (value >= 0 && value < 0x1p63 && value == floor(value))
		return sink_digits(to, (uint64_t)value);
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(to, METRICS_NUMBER, "%.*g", digits, value);
		if (strtod(to, NULL) == value)
			break;
	}
	return strlen(to);
}

void metrics_put_unsigned(struct metrics_out *out, struct metrics_labels labels, uint64_t value)
{
	char text[METRICS_NUMBER];

	if (out->format == METRICS_PROTOBUF)
		metrics_wire_sample(out, labels, (double)value);
	else
		metrics_text_sample(out, labels, text, sink_digits(text, value));
}

void metrics_put_seconds(struct metrics_out *out, struct metrics_labels labels, uint64_t ns)
{
	char text[METRICS_NUMBER];

	if (out->format == METRICS_PROTOBUF)
		metrics_wire_sample(out, labels, metrics_seconds(ns));
	else
		metrics_text_sample(out, labels, text, metrics_text_seconds(text, ns));
}

void metrics_put_double(struct metrics_out *out, struct metrics_labels labels, double value)
{
	char text[METRICS_NUMBER];

	if (out->format == METRICS_PROTOBUF)
		metrics_wire_sample(out, labels, value);
	else
		metrics_text_sample(out, labels, text, text_double(text, value));
}

void metrics_put_histogram(struct metrics_out *out, struct metrics_labels labels,
			   const struct metrics_histogram *histogram)
{
	if (out->format == METRICS_PROTOBUF)
		metrics_wire_histogram(out, labels, histogram);
	else
		metrics_text_histogram(out, labels, histogram);
}
