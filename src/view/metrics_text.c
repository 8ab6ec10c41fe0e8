/*
 * Prometheus' text 0.0.4 and OpenMetrics 1.0. They differ in what a family is called: OpenMetrics leaves
 * _total and _info to the samples, and has a type for infos.
 */
#include <string.h>

#include "view/metrics_out.h"

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

void metrics_text_label(struct metrics_out *out, const char *name, const char *value)
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
	/* Each ends in a comma, so that sets can be put together; the last one is left out. */
	sink_text(to, "\",");
}

static void put_labels(struct metrics_out *out, struct metrics_labels labels)
{
	if (labels.length > 0)
		sink_write(out->sink, out->labels.bytes + labels.at, labels.length - 1);
}

void metrics_text_sample(struct metrics_out *out, struct metrics_labels labels, const char *value,
			 size_t length)
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

void metrics_text_histogram(struct metrics_out *out, struct metrics_labels labels,
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
			 metrics_text_unsigned(text, count));
	}
	while (bucket < HISTOGRAM_BUCKETS)
		count += histogram->buckets[bucket++];
	put_part(out, "_bucket", labels, "+Inf", text, metrics_text_unsigned(text, count));
	put_part(out, "_sum", labels, NULL, text, metrics_text_seconds(text, histogram->sum_ns));
	put_part(out, "_count", labels, NULL, text, metrics_text_unsigned(text, count));
}
