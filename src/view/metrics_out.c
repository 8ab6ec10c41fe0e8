#include "view/metrics_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

const char *const metrics_bound_text[METRICS_BOUNDS] = {
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

const double metrics_bounds[METRICS_BOUNDS] = {
	0x1p-20, 0x1p-18, 0x1p-16, 0x1p-14, 0x1p-12, 0x1p-10, 0x1p-8,
	0x1p-6,	 0x1p-4,  0x1p-2,  0x1p0,   0x1p2,   0x1p4,
};

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

static void hand_on(struct metrics_out *out, const struct sink *from)
{
	if (from->status == OK || out->sink->status != OK)
		return;
	out->sink->status = from->status;
	out->sink->error = from->error;
}

void metrics_out_end(struct metrics_out *out)
{
	struct sink *own[] = { &out->labels, &out->clean, &out->body, &out->message, &out->part };

	end_family(out);
	if (out->format == METRICS_OPENMETRICS)
		sink_text(out->sink, "# EOF\n");
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		hand_on(out, own[i]);
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
		if (character > 0) {
			good += character;
			continue;
		}
		sink_write(to, at, good);
		sink_text(to, "\xef\xbf\xbd");
		at += good + 1;
		left -= good + 1;
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

	/* In parts: the buffer may move while it grows. */
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
	/* After a failure nothing of it is used. */
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

size_t metrics_text_unsigned(char to[static METRICS_NUMBER], uint64_t value)
{
	char digits[20];
	size_t count = 0;

	do
		digits[count++] = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	for (size_t i = 0; i < count; i++)
		to[i] = digits[count - 1 - i];
	return count;
}

size_t metrics_text_seconds(char to[static METRICS_NUMBER], uint64_t ns)
{
	size_t length = metrics_text_unsigned(to, ns / 1000000000);
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

/* The shortest that reads as the same number. */
static size_t text_double(char to[static METRICS_NUMBER], double value)
{
	if (value >= 0 && value < 0x1p63 && value == floor(value))
		return metrics_text_unsigned(to, (uint64_t)value);
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
		metrics_text_sample(out, labels, text, metrics_text_unsigned(text, value));
}

void metrics_put_seconds(struct metrics_out *out, struct metrics_labels labels, uint64_t ns)
{
	char text[METRICS_NUMBER];

	if (out->format == METRICS_PROTOBUF)
		metrics_wire_sample(out, labels, (double)((long double)ns / 1e9L));
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
