/* Commas, nesting, escaping, numbers. */
#include "output/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/attributes.h"

void json_init(struct json *json, struct sink *sink)
{
	*json = (struct json){ .sink = sink };
}

static bool is_in_object(const struct json *json)
{
	return json->depth > 0 && (json->is_object >> (json->depth - 1) & 1);
}

static bool is_in_row(const struct json *json)
{
	return json->row_depth > 0 && json->depth == json->row_depth;
}

/* Is the next value one in a row of names, which has keys only? */
static bool is_skipped(const struct json *json)
{
	return json->skipped_depth > 0 || (json->is_names && is_in_row(json));
}

/* A comma unless it is the first item. */
static void json_separate(struct json *json)
{
	uint32_t bit;

	if (json->depth == 0)
		return;
	bit = UINT32_C(1) << (json->depth - 1);
	if (json->has_items & bit)
		sink_byte(json->sink, ',');
	json->has_items |= bit;
}

/* Before every value. */
static bool begin_value(struct json *json)
{
	bool is_separated = json->has_key && !is_in_row(json);

	if (json->skipped_depth > 0)
		return false;
	if (is_in_object(json) != json->has_key)
		json->is_wrong = true;
	json->has_key = false;
	if (json->is_wrong || is_skipped(json))
		return false;
	if (!is_separated)
		json_separate(json);
	return true;
}

static void open_scope(struct json *json, bool is_object, char bracket)
{
	bool is_unwritten = is_skipped(json);
	uint32_t bit;

	if (!begin_value(json)) {
		json->skipped_depth += is_unwritten;
		return;
	}
	if (json->depth == JSON_DEPTH_MAX) {
		json->is_wrong = true;
		return;
	}
	bit = UINT32_C(1) << json->depth++;
	json->is_object = is_object ? json->is_object | bit : json->is_object & ~bit;
	json->has_items &= ~bit;
	sink_byte(json->sink, bracket);
}

void json_object(struct json *json)
{
	open_scope(json, true, '{');
}

void json_array(struct json *json)
{
	open_scope(json, false, '[');
}

void json_row(struct json *json)
{
	if (json->row_depth > 0)
		json->is_wrong = true;
	open_scope(json, true, '[');
	json->row_depth = json->depth;
}

void json_row_names(struct json *json)
{
	json_row(json);
	json->is_names = true;
}

void json_end(struct json *json)
{
	if (json->skipped_depth > 0) {
		json->skipped_depth--;
		return;
	}
	if (json->depth == 0 || json->has_key)
		json->is_wrong = true;
	if (json->is_wrong)
		return;
	sink_byte(json->sink, is_in_object(json) && !is_in_row(json) ? '}' : ']');
	if (is_in_row(json)) {
		json->row_depth = 0;
		json->is_names = false;
	}
	json->depth--;
}

static const char *short_escape(unsigned char byte)
{
	switch (byte) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	case '\b':
		return "\\b";
	case '\f':
		return "\\f";
	default:
		return NULL;
	}
}

static bool is_plain(unsigned char byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* JSON is read in terminals, too. Escaped, nothing is lost. */
static void write_escaped(struct sink *sink, uint32_t character)
{
	if (character >= 0x10000) {
		sink_format(sink, "\\u%04x", 0xd800 + ((character - 0x10000) >> 10));
		character = 0xdc00 + ((character - 0x10000) & 0x3ff);
	}
	sink_format(sink, "\\u%04x", character);
}

static void write_string(struct sink *sink, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	sink_byte(sink, '"');
	while (*at != '\0') {
		const unsigned char *from = at;
		size_t length;

		while (LIKELY(is_plain(*at)))
			at++;
		sink_write(sink, from, (size_t)(at - from));
		if (*at == '\0')
			break;
		length = json_utf8_length(at);
		if (length > 0 && text_is_unseen(text_decode(at, length)))
			write_escaped(sink, text_decode(at, length));
		else if (length > 0)
			sink_write(sink, at, length);
		else if (*at >= 0x80)
			sink_text(sink, "\\ufffd");
		else if (short_escape(*at))
			sink_text(sink, short_escape(*at));
		else
			sink_format(sink, "\\u%04x", *at);
		at += length ? length : 1;
	}
	sink_byte(sink, '"');
}

void json_key(struct json *json, const char *key)
{
	if (json->skipped_depth > 0)
		return;
	if (!is_in_object(json) || json->has_key)
		json->is_wrong = true;
	if (json->is_wrong)
		return;
	json->has_key = true;
	if (is_in_row(json) && !json->is_names)
		return;
	json_separate(json);
	write_string(json->sink, key);
	if (!is_in_row(json))
		sink_byte(json->sink, ':');
}

void json_string(struct json *json, const char *text)
{
	if (text == NULL)
		json_null(json);
	else if (begin_value(json))
		write_string(json->sink, text);
}

void json_unsigned(struct json *json, uint64_t number)
{
	if (begin_value(json))
		sink_unsigned(json->sink, number);
}

void json_signed(struct json *json, int64_t number)
{
	if (!begin_value(json))
		return;
	if (number < 0)
		sink_byte(json->sink, '-');
	/* Negated as unsigned: the smallest number has no positive counterpart. */
	sink_unsigned(json->sink, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void json_double(struct json *json, double number)
{
	char text[40];
	char *comma;

	if (!isfinite(number)) {
		json_null(json);
		return;
	}
	/* The shortest one that reads back as the same number. */
	for (int digits = 6; digits <= 17; digits++) {
		double back = 0;

		snprintf(text, sizeof(text), "%.*g", digits, number);
		if (sscanf(text, "%lf", &back) == 1 && back == number)
			break;
	}
	/* Some locales write a decimal comma. */
	comma = strchr(text, ',');
	if (comma)
		*comma = '.';
	if (begin_value(json))
		sink_text(json->sink, text);
}

void json_bool(struct json *json, bool is_true)
{
	if (begin_value(json))
		sink_text(json->sink, is_true ? "true" : "false");
}

void json_null(struct json *json)
{
	if (begin_value(json))
		sink_text(json->sink, "null");
}

void json_hex(struct json *json, uint64_t number)
{
	char text[20] = "\"0x................";

	if (!begin_value(json))
		return;
	for (int i = 0; i < 16; i++, number >>= 4)
		text[18 - i] = "0123456789abcdef"[number & 15];
	text[19] = '"';
	sink_write(json->sink, text, sizeof(text));
}

void json_line(struct json *json)
{
	if (json->depth != 0 || json->has_key)
		json->is_wrong = true;
	else
		sink_byte(json->sink, '\n');
}

enum status json_status(const struct json *json)
{
	if (json->is_wrong || json->depth != 0 || json->has_key)
		return ERR_FORMAT;
	return json->sink->status;
}

/* ---- a key and its value --------------------------------------------------------------------- */

void json_put_string(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

void json_put_unsigned(struct json *json, const char *key, uint64_t number)
{
	json_key(json, key);
	json_unsigned(json, number);
}

void json_put_signed(struct json *json, const char *key, int64_t number)
{
	json_key(json, key);
	json_signed(json, number);
}

void json_put_double(struct json *json, const char *key, double number)
{
	json_key(json, key);
	json_double(json, number);
}

void json_put_bool(struct json *json, const char *key, bool is_true)
{
	json_key(json, key);
	json_bool(json, is_true);
}

void json_put_null(struct json *json, const char *key)
{
	json_key(json, key);
	json_null(json);
}

void json_put_hex(struct json *json, const char *key, uint64_t number)
{
	json_key(json, key);
	json_hex(json, number);
}

void json_put_known(struct json *json, const char *key, bool is_known, uint64_t number)
{
	json_key(json, key);
	if (is_known)
		json_unsigned(json, number);
	else
		json_null(json);
}

void json_put_known_signed(struct json *json, const char *key, bool is_known, int64_t number)
{
	json_key(json, key);
	if (is_known)
		json_signed(json, number);
	else
		json_null(json);
}

void json_put_known_double(struct json *json, const char *key, bool is_known, double number)
{
	json_key(json, key);
	if (is_known)
		json_double(json, number);
	else
		json_null(json);
}

void json_put_number_or_null(struct json *json, const char *key, int64_t number)
{
	json_put_known_signed(json, key, number != -1, number);
}

void json_put_natural_or_null(struct json *json, const char *key, int64_t number)
{
	json_put_known_signed(json, key, number >= 0, number);
}

void json_put_time_or_null(struct json *json, const char *key, uint64_t ns)
{
	json_put_known(json, key, ns != 0, ns);
}

void json_put_text_or_null(struct json *json, const char *key, const char *text)
{
	json_put_string(json, key, text[0] ? text : NULL);
}

void json_put_object(struct json *json, const char *key)
{
	json_key(json, key);
	json_object(json);
}

void json_put_array(struct json *json, const char *key)
{
	json_key(json, key);
	json_array(json);
}

void json_begin(struct json *json, struct sink *sink)
{
	json_init(json, sink);
	json_object(json);
}

void json_finish(struct json *json)
{
	json_end(json);
	json_line(json);
}
