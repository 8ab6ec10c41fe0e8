/* Values of what json_scan.c has found. It was checked there, so nothing here can be wrong. */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "foreign/json_chars.h"
#include "foreign/json_scan.h"

static bool digits_value(const char *text, size_t length, uint64_t *value)
{
	uint64_t sum = 0;

	/* 19 digits always fit. */
	for (size_t i = 0; i < length; i++) {
		unsigned int digit = (unsigned int)(text[i] - '0');

		if (i >= 19 &&
		    (sum > UINT64_MAX / 10 || (sum == UINT64_MAX / 10 && digit > UINT64_MAX % 10)))
			return false;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return true;
}

bool json_scan_unsigned(const struct json_scan *scan, uint64_t *value)
{
	return scan->token == JSON_SCAN_NUMBER && scan->is_plain &&
	       digits_value(scan->text, scan->length, value);
}

bool json_scan_signed(const struct json_scan *scan, int64_t *value)
{
	bool is_negative = scan->length > 0 && scan->text[0] == '-';
	uint64_t sum;

	if (scan->token != JSON_SCAN_NUMBER)
		return false;
	for (size_t i = is_negative; i < scan->length; i++)
		if (scan->text[i] < '0' || scan->text[i] > '9')
			return false;
	if (!digits_value(scan->text + is_negative, scan->length - is_negative, &sum) ||
	    sum > (uint64_t)INT64_MAX + is_negative)
		return false;
	*value = is_negative ? (int64_t)(0 - sum) : (int64_t)sum;
	return true;
}

bool json_scan_double(const struct json_scan *scan, double *value)
{
	char copy[512];

	/* More digits than that change nothing that anybody measured. */
	if (scan->token != JSON_SCAN_NUMBER || scan->length >= sizeof(copy))
		return false;
	memcpy(copy, scan->text, scan->length);
	copy[scan->length] = '\0';
	*value = strtod(copy, NULL);
	return true;
}

bool json_scan_thousandths(const struct json_scan *scan, uint64_t *value)
{
	const char *point;
	uint64_t whole, part = 0;
	size_t digits = 0;
	double real;

	if (scan->token != JSON_SCAN_NUMBER || scan->text[0] == '-')
		return false;
	if (memchr(scan->text, 'e', scan->length) != NULL ||
	    memchr(scan->text, 'E', scan->length) != NULL) {
		if (!json_scan_double(scan, &real) || !(real < 1e15))
			return false;
		*value = (uint64_t)(real * 1000 + 0.5);
		return true;
	}
	point = memchr(scan->text, '.', scan->length);
	if (point == NULL)
		point = scan->text + scan->length;
	else
		digits = scan->length - (size_t)(point - scan->text) - 1;
	if (!digits_value(scan->text, (size_t)(point - scan->text), &whole) ||
	    whole > UINT64_MAX / 1000 - 1)
		return false;
	for (size_t i = 0; i < 3; i++)
		part = part * 10 + (i < digits ? (unsigned int)(point[1 + i] - '0') : 0);
	part += digits > 3 && point[4] >= '5';
	*value = whole * 1000 + part;
	return true;
}

static size_t put_utf8(char to[static 4], uint32_t code)
{
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		to[0] = (char)(0xe0 | code >> 12);
		to[1] = (char)(0x80 | (code >> 6 & 0x3f));
		to[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | code >> 18);
	to[1] = (char)(0x80 | (code >> 12 & 0x3f));
	to[2] = (char)(0x80 | (code >> 6 & 0x3f));
	to[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* The character that \uXXXX at `at` begins; *used bytes of the text make it up. */
static uint32_t unicode_escape(const char *at, const char *end, size_t *used)
{
	uint32_t code = (uint32_t)json_hex4(at + 2, end);
	int low;

	*used = 6;
	if (code >= 0xd800 && code <= 0xdbff && end - at >= 12 && at[6] == '\\' && at[7] == 'u') {
		low = json_hex4(at + 8, end);
		if (low >= 0xdc00 && low <= 0xdfff) {
			*used = 12;
			return 0x10000 + ((code - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
		}
	}
	return code == 0 || (code >= 0xd800 && code <= 0xdfff) ? 0xfffd : code;
}

/* The character at `at`, which was checked before; *used bytes of the text make it up. */
static size_t next_character(const char *at, const char *end, char to[static 4], size_t *used)
{
	static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	const char *letter;
	size_t bytes;

	if (*at == '\\' && at[1] == 'u')
		return put_utf8(to, unicode_escape(at, end, used));
	if (*at == '\\') {
		letter = strchr(letters, at[1]);
		to[0] = letter != NULL ? meanings[letter - letters] : at[1];
		*used = 2;
		return 1;
	}
	bytes = (unsigned char)*at < 0x80
			? 1
			: utf8_bytes((const unsigned char *)at, (size_t)(end - at));
	memcpy(to, at, bytes);
	*used = bytes;
	return bytes;
}

bool json_scan_text(const struct json_scan *scan, char *to, size_t size)
{
	const char *at = scan->text, *end = at + scan->length;
	char character[4];
	size_t used, bytes, length = 0;

	if (size == 0 || (scan->token != JSON_SCAN_STRING && scan->token != JSON_SCAN_KEY))
		return false;
	if (!scan->has_escapes && scan->length < size) {
		memcpy(to, at, scan->length);
		to[scan->length] = '\0';
		return true;
	}
	while (at < end) {
		bytes = next_character(at, end, character, &used);
		if (length + bytes >= size)
			break;
		memcpy(to + length, character, bytes);
		length += bytes;
		at += used;
	}
	to[length] = '\0';
	return at == end;
}

bool json_scan_is(const struct json_scan *scan, const char *text)
{
	size_t length = strlen(text);
	char copy[256];

	if (scan->token != JSON_SCAN_STRING && scan->token != JSON_SCAN_KEY)
		return false;
	if (!scan->has_escapes)
		return scan->length == length && memcmp(scan->text, text, length) == 0;
	return json_scan_text(scan, copy, sizeof(copy)) && strcmp(copy, text) == 0;
}
