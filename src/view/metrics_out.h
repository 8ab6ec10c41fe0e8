/*
 * One way to write metrics; text, OpenMetrics and protocol buffers stand behind it, so that they cannot
 * disagree.
 *
 *	metrics_out_begin(&out, sink, format);
 *	labels = metrics_labels_begin(&out), metrics_label(&out, "rank", "3"), metrics_labels_end(&out)
 *	metrics_family(&out, METRICS_IN_FLIGHT);
 *	metrics_put_unsigned(&out, labels, 2);
 *	metrics_out_end(&out);
 *
 * A set of labels is encoded once and used for as many samples as wanted. A family without samples is
 * not written. Nothing is allocated per sample: buffers grow to what they need and stay.
 */
#ifndef METRICS_OUT_H
#define METRICS_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op.h"
#include "view/metrics_families.h"
#include "view/sink.h"

enum metrics_type { METRICS_COUNTER = 0, METRICS_GAUGE = 1, METRICS_HISTOGRAM = 2 };

/* Encoded labels: a place in out->labels. */
struct metrics_labels {
	size_t at;
	size_t length;
};

struct metrics_out {
	struct sink *sink; /* borrowed */
	enum metrics_format format;
	const struct metrics_name *family; /* NULL before the first */
	enum metrics_type type;
	bool is_info;
	bool has_samples;
	char name[64]; /* of its samples: with _total where that belongs to it */
	size_t name_length;
	struct sink labels;  /* all sets of labels so far */
	struct sink clean;   /* a value without what is not UTF-8 */
	struct sink body;    /* protocol buffers: the family's samples so far */
	struct sink message; /* protocol buffers: one sample */
	struct sink part;    /* protocol buffers: a part of it */
};

/* Durations in the buckets of base/histogram.h. No bucket is above METRICS_COUNT_MAX: a server that finds
 * a sum past 64 bits refuses everything, and counts come from memory that anybody may have written. */
#define METRICS_COUNT_MAX (UINT64_C(1) << 53)
struct metrics_histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t sum_ns;
};

void metrics_out_begin(struct metrics_out *out, struct sink *sink, enum metrics_format format);
/* Ends the last family and the whole; frees. A failure inside is handed to the sink. */
void metrics_out_end(struct metrics_out *out);

/* Sets of labels. Empty values are left out: Prometheus takes them as absent. */
void metrics_labels_begin(struct metrics_out *out, struct metrics_labels *labels);
void metrics_labels_copy(struct metrics_out *out, struct metrics_labels from);
void metrics_label(struct metrics_out *out, const char *name, const char *value);
void metrics_label_number(struct metrics_out *out, const char *name, int64_t number);
void metrics_labels_end(struct metrics_out *out, struct metrics_labels *labels);
/* All sets that were made since are not used any more. */
size_t metrics_labels_mark(const struct metrics_out *out);
void metrics_labels_forget(struct metrics_out *out, size_t mark);
/* Are these the same labels with the same values? */
bool metrics_labels_equal(const struct metrics_out *out, struct metrics_labels a,
			  struct metrics_labels b);

/* Every family at most once, in any order. */
void metrics_family(struct metrics_out *out, enum metrics_family family);
void metrics_put_unsigned(struct metrics_out *out, struct metrics_labels labels, uint64_t value);
/* Nanoseconds as seconds: all digits where the format has digits. */
void metrics_put_seconds(struct metrics_out *out, struct metrics_labels labels, uint64_t ns);
void metrics_put_double(struct metrics_out *out, struct metrics_labels labels, double value);
void metrics_put_histogram(struct metrics_out *out, struct metrics_labels labels,
			   const struct metrics_histogram *histogram);

/* `text` without what is not UTF-8: U+FFFD stands there instead. Appends to a memory sink. */
void metrics_clean_text(struct sink *to, const char *text);

/*
 * Classic buckets: 2^-20 s (0.95 us) times powers of 4, up to 16 s. Each is also the upper bound of
 * bucket 16 + 16 * i of ours, so that what is counted is exact.
 */
enum { METRICS_BOUNDS = 13 };
extern const char *const metrics_bound_text[METRICS_BOUNDS];
extern const double metrics_bounds[METRICS_BOUNDS];
static inline unsigned int metrics_bound_bucket(unsigned int bound)
{
	return 16 + 16 * bound;
}

/* How each format writes it: metrics_text.c, metrics_wire.c. */
void metrics_text_label(struct metrics_out *out, const char *name, const char *value);
void metrics_text_sample(struct metrics_out *out, struct metrics_labels labels, const char *value,
			 size_t length);
void metrics_text_histogram(struct metrics_out *out, struct metrics_labels labels,
			    const struct metrics_histogram *histogram);
void metrics_wire_label(struct metrics_out *out, const char *name, const char *value,
			size_t length);
void metrics_wire_sample(struct metrics_out *out, struct metrics_labels labels, double value);
void metrics_wire_histogram(struct metrics_out *out, struct metrics_labels labels,
			    const struct metrics_histogram *histogram);
void metrics_wire_end_family(struct metrics_out *out);

/* A number as text. Both give back how many bytes they wrote. */
enum { METRICS_NUMBER = 32 };
size_t metrics_text_unsigned(char to[static METRICS_NUMBER], uint64_t value);
size_t metrics_text_seconds(char to[static METRICS_NUMBER], uint64_t ns);

#endif
