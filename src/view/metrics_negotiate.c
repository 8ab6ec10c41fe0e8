/*
 * Accept: what a server would like, in parts with a weight.
 *
 *	application/openmetrics-text;version=1.0.0;q=0.8, text/plain;version=0.0.4;q=0.5, *;q=0.1
 *
 * The format with the largest weight wins, the first one said where weights are equal.
 */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "view/metrics.h"

const char *metrics_content_type(enum metrics_format format)
{
	switch (format) {
	case METRICS_OPENMETRICS:
		return "application/openmetrics-text; version=1.0.0; charset=utf-8";
	case METRICS_PROTOBUF:
		return "application/vnd.google.protobuf; "
		       "proto=io.prometheus.client.MetricFamily; encoding=delimited";
	default:
		return "text/plain; version=0.0.4; charset=utf-8";
	}
}

struct word {
	const char *at;
	size_t length;
};

static bool is_word(struct word word, const char *text)
{
	return word.length == strlen(text) && strncasecmp(word.at, text, word.length) == 0;
}

static struct word trimmed(const char *from, const char *to)
{
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (from < to && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	/* A parameter may stand in quotes. */
	if (to - from >= 2 && *from == '"' && to[-1] == '"') {
		from++;
		to--;
	}
	return (struct word){ from, (size_t)(to - from) };
}

/* "0.75" in thousandths; -1 when it is no weight. */
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

/* One part of the header: a kind of media with its parameters. */
struct wish {
	struct word media;
	struct word version;
	struct word proto;
	struct word encoding;
	int weight; /* thousandths */
};

static void read_parameter(struct wish *wish, const char *from, const char *to)
{
	const char *equal = memchr(from, '=', (size_t)(to - from));
	struct word name, value;

	if (equal == NULL)
		return;
	name = trimmed(from, equal);
	value = trimmed(equal + 1, to);
	if (is_word(name, "q"))
		wish->weight = weight(value);
	else if (is_word(name, "version"))
		wish->version = value;
	else if (is_word(name, "proto"))
		wish->proto = value;
	else if (is_word(name, "encoding"))
		wish->encoding = value;
}

static struct wish read_wish(const char *from, const char *to)
{
	struct wish wish = { .weight = 1000 };
	const char *end;

	for (bool is_first = true; from <= to; from = end + 1, is_first = false) {
		end = memchr(from, ';', (size_t)(to - from));
		if (end == NULL)
			end = to;
		if (is_first)
			wish.media = trimmed(from, end);
		else
			read_parameter(&wish, from, end);
	}
	return wish;
}

/* Which of ours it is; false when it is none. */
static bool format_of(const struct wish *wish, enum metrics_format *format)
{
	if (is_word(wish->media, "application/vnd.google.protobuf")) {
		*format = METRICS_PROTOBUF;
		return is_word(wish->proto, "io.prometheus.client.MetricFamily") &&
		       is_word(wish->encoding, "delimited");
	}
	if (is_word(wish->media, "application/openmetrics-text")) {
		*format = METRICS_OPENMETRICS;
		return wish->version.length == 0 || is_word(wish->version, "1.0.0");
	}
	*format = METRICS_TEXT;
	if (is_word(wish->media, "text/plain"))
		return wish->version.length == 0 || is_word(wish->version, "0.0.4");
	return is_word(wish->media, "*/*") || is_word(wish->media, "text/*");
}

enum metrics_format metrics_negotiate(const char *accept)
{
	enum metrics_format best = METRICS_TEXT, format;
	int best_weight = 0;
	const char *end;

	for (const char *at = accept ? accept : ""; *at != '\0'; at = end + (*end == ',')) {
		struct wish wish;

		end = at + strcspn(at, ",");
		wish = read_wish(at, end);
		if (format_of(&wish, &format) && wish.weight > best_weight) {
			best = format;
			best_weight = wish.weight;
		}
	}
	return best;
}
