/*
 * A JSON scanner as a small state machine: what may come next follows from the last token and from
 * what is open. One bit per level says whether that is an object or an array.
 *
 * Strings are scanned eight bytes at a time; a word that contains a quote, a backslash, a control
 * byte or a non-ASCII byte is then scanned byte by byte. Numbers are only delimited; their value is
 * computed on request.
 */
#include "import/json_scan.h"

#include <stdlib.h>

#include "common/attributes.h"
#include "common/text.h"

/* Characters in JSON strings, for the scanner and for unescaping. */

/* The value of four hexadecimal digits; -1 if they are invalid. */
static inline int json_hex4(const char *at, const char *end)
{
	int value = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = at[i];

		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			value = value * 16 + ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return value;
}

void json_scan_init(struct json_scan *scan, const char *text, size_t length)
{
	*scan = (struct json_scan){ .start = text, .at = text, .end = text + length, .text = text };
}

size_t json_scan_offset(const struct json_scan *scan)
{
	return (size_t)(scan->at - scan->start);
}

static COLD enum json_scan_token fail(struct json_scan *scan, const char *problem)
{
	scan->problem = problem;
	scan->expects = JSON_SCAN_FAILED;
	scan->token = JSON_SCAN_END;
	return JSON_SCAN_ERROR;
}

static inline enum json_scan_token found(struct json_scan *scan, enum json_scan_token token)
{
	scan->token = (uint8_t)token;
	return token;
}

static inline void skip_blanks(struct json_scan *scan)
{
	while (scan->at < scan->end &&
	       (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
		scan->at++;
}

/* ---- strings --------------------------------------------------------------------------------- */

/*
 * One byte in each of eight lanes: 0x80 where it is a quote, a backslash, a control byte or not
 * ASCII. A lane above a marked one may be marked by mistake; the lowest marked lane is always
 * right.
 */
static inline uint64_t special_lanes(uint64_t word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
	uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');

	return (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
		((word - ones * 0x20) & ~word) | word) &
	       tops;
}

static inline const char *plain_end(const char *at, const char *end)
{
	uint64_t word, lanes;

	while (end - at >= 8) {
		memcpy(&word, at, sizeof(word));
		lanes = special_lanes(word);
		if (lanes != 0)
			return at + (__builtin_ctzll(lanes) >> 3);
		at += 8;
	}
	while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20 &&
	       (unsigned char)*at < 0x80)
		at++;
	return at;
}

/* The length of the escape sequence at `at`; 0 if it is invalid. */
static size_t escape_bytes(const char *at, const char *end)
{
	if (end - at < 2)
		return 0;
	switch (at[1]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return 2;
	case 'u':
		return json_hex4(at + 2, end) >= 0 ? 6 : 0;
	default:
		return 0;
	}
}

/*
 * Handle what stopped plain_end() and is not a quote. Returns where to continue; NULL after an
 * error.
 */
static COLD const char *pass_special(struct json_scan *scan, const char *at)
{
	size_t bytes;

	scan->at = at;
	if (at == scan->end) {
		fail(scan, "unterminated string");
		return NULL;
	}
	if (*at == '\\') {
		bytes = escape_bytes(at, scan->end);
		scan->has_escapes = true;
		if (bytes == 0)
			fail(scan, "invalid escape sequence");
	} else if ((unsigned char)*at < 0x20) {
		bytes = 0;
		fail(scan, "control character in a string");
	} else {
		bytes = utf8_bytes((const unsigned char *)at, (size_t)(scan->end - at));
		if (bytes == 0)
			fail(scan, "string is not valid UTF-8");
	}
	return bytes == 0 ? NULL : at + bytes;
}

/* scan->at is after the opening quote. */
static inline bool pass_string(struct json_scan *scan)
{
	const char *at = scan->at;

	scan->text = at;
	scan->has_escapes = false;
	for (;;) {
		at = plain_end(at, scan->end);
		if (LIKELY(at < scan->end && *at == '"'))
			break;
		at = pass_special(scan, at);
		if (at == NULL)
			return false;
	}
	scan->length = (size_t)(at - scan->text);
	scan->at = at + 1;
	return true;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

static inline bool is_digit(const struct json_scan *scan, const char *at)
{
	return at < scan->end && *at >= '0' && *at <= '9';
}

static inline const char *pass_digits(const struct json_scan *scan, const char *at)
{
	uint64_t word, others;

	while (scan->end - at >= 8) {
		memcpy(&word, at, sizeof(word));
		others = json_scan_no_digits(word);
		if (others != 0)
			return at + (__builtin_ctzll(others) >> 3);
		at += 8;
	}
	while (is_digit(scan, at))
		at++;
	return at;
}

/* After the digits: a fraction, an exponent. NULL if one is incomplete. */
static const char *pass_fraction(const struct json_scan *scan, const char *at)
{
	if (at < scan->end && *at == '.') {
		if (!is_digit(scan, at + 1))
			return NULL;
		at = pass_digits(scan, at + 1);
	}
	if (at < scan->end && (*at | 0x20) == 'e') {
		at++;
		if (at < scan->end && (*at == '+' || *at == '-'))
			at++;
		if (!is_digit(scan, at))
			return NULL;
		at = pass_digits(scan, at);
	}
	return at;
}

static inline enum json_scan_token number(struct json_scan *scan)
{
	const char *at = scan->at;

	scan->text = at;
	scan->is_plain = true;
	if (*at == '-') {
		scan->is_plain = false;
		at++;
	}
	if (!is_digit(scan, at))
		return fail(scan, "number without digits");
	if (*at == '0' && is_digit(scan, at + 1))
		return fail(scan, "number with a leading 0");
	at = pass_digits(scan, at);
	if (at < scan->end && (*at == '.' || (*at | 0x20) == 'e')) {
		scan->is_plain = false;
		at = pass_fraction(scan, at);
		if (at == NULL)
			return fail(scan, "incomplete number");
	}
	scan->length = (size_t)(at - scan->text);
	scan->at = at;
	return found(scan, JSON_SCAN_NUMBER);
}

static enum json_scan_token word(struct json_scan *scan, const char *text, size_t length,
				 enum json_scan_token token)
{
	if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, text, length) != 0)
		return fail(scan, "not a JSON value");
	scan->at += length;
	return found(scan, token);
}

/* ---- the state machine ----------------------------------------------------------------------- */

static inline enum json_scan_token begin(struct json_scan *scan, enum json_scan_token token)
{
	if (scan->depth == JSON_SCAN_DEPTH_MAX)
		return fail(scan, "nested too deeply");
	if (token == JSON_SCAN_OBJECT)
		scan->is_object |= UINT64_C(1) << scan->depth;
	else
		scan->is_object &= ~(UINT64_C(1) << scan->depth);
	scan->depth++;
	scan->at++;
	scan->expects = token == JSON_SCAN_OBJECT ? JSON_SCAN_FIRST_KEY : JSON_SCAN_FIRST_ITEM;
	return found(scan, token);
}

static inline enum json_scan_token end(struct json_scan *scan, enum json_scan_token token)
{
	scan->depth--;
	scan->at++;
	scan->expects = scan->depth == 0 ? JSON_SCAN_NO_MORE : JSON_SCAN_MORE;
	return found(scan, token);
}

static inline enum json_scan_token value(struct json_scan *scan)
{
	if (UNLIKELY(scan->at == scan->end))
		return fail(scan, "unexpected end");
	scan->expects = scan->depth == 0 ? JSON_SCAN_NO_MORE : JSON_SCAN_MORE;
	switch (*scan->at) {
	case '"':
		scan->at++;
		return pass_string(scan) ? found(scan, JSON_SCAN_STRING) : JSON_SCAN_ERROR;
	case '{':
		return begin(scan, JSON_SCAN_OBJECT);
	case '[':
		return begin(scan, JSON_SCAN_ARRAY);
	case 't':
		return word(scan, "true", 4, JSON_SCAN_TRUE);
	case 'f':
		return word(scan, "false", 5, JSON_SCAN_FALSE);
	case 'n':
		return word(scan, "null", 4, JSON_SCAN_NULL);
	case '-':
	case '0' ... '9':
		return number(scan);
	default:
		return fail(scan, "not a JSON value");
	}
}

static inline enum json_scan_token key(struct json_scan *scan)
{
	if (UNLIKELY(scan->at == scan->end))
		return fail(scan, "unexpected end");
	if (UNLIKELY(*scan->at != '"'))
		return fail(scan, "missing key");
	scan->at++;
	if (!pass_string(scan))
		return JSON_SCAN_ERROR;
	skip_blanks(scan);
	if (UNLIKELY(scan->at == scan->end))
		return fail(scan, "unexpected end");
	if (UNLIKELY(*scan->at != ':'))
		return fail(scan, "missing ':'");
	scan->at++;
	scan->expects = JSON_SCAN_VALUE_NEXT;
	return found(scan, JSON_SCAN_KEY);
}

/* After a value: the next one, or the end of the current object or array. */
static inline enum json_scan_token more(struct json_scan *scan)
{
	bool is_object = scan->is_object >> (scan->depth - 1) & 1;

	if (UNLIKELY(scan->at == scan->end))
		return fail(scan, "unexpected end");
	if (*scan->at == ',') {
		scan->at++;
		skip_blanks(scan);
		return is_object ? key(scan) : value(scan);
	}
	if (*scan->at == '}' && is_object)
		return end(scan, JSON_SCAN_OBJECT_END);
	if (*scan->at == ']' && !is_object)
		return end(scan, JSON_SCAN_ARRAY_END);
	return fail(scan, "missing ','");
}

enum json_scan_token json_scan_next(struct json_scan *scan)
{
	skip_blanks(scan);
	switch (scan->expects) {
	case JSON_SCAN_MORE:
		return more(scan);
	case JSON_SCAN_VALUE_NEXT:
		return value(scan);
	case JSON_SCAN_FIRST_KEY:
		if (scan->at < scan->end && *scan->at == '}')
			return end(scan, JSON_SCAN_OBJECT_END);
		return key(scan);
	case JSON_SCAN_FIRST_ITEM:
		if (scan->at < scan->end && *scan->at == ']')
			return end(scan, JSON_SCAN_ARRAY_END);
		return value(scan);
	case JSON_SCAN_NO_MORE:
		if (scan->at < scan->end)
			return fail(scan, "trailing text after the value");
		return found(scan, JSON_SCAN_END);
	default:
		return JSON_SCAN_ERROR;
	}
}

bool json_scan_skip(struct json_scan *scan)
{
	unsigned int depth = scan->depth;
	enum json_scan_token token;

	if (LIKELY(scan->token == JSON_SCAN_KEY) && is_digit(scan, scan->at)) {
		scan->expects = JSON_SCAN_MORE;
		return number(scan) == JSON_SCAN_NUMBER;
	}
	if (scan->token == JSON_SCAN_OBJECT || scan->token == JSON_SCAN_ARRAY)
		depth--;
	else if (scan->token != JSON_SCAN_KEY)
		return true;
	do {
		token = json_scan_next(scan);
	} while (token > JSON_SCAN_END && scan->depth > depth);
	return token > JSON_SCAN_END;
}

static inline void passed_object(struct json_scan *scan, const char *at)
{
	scan->at = at;
	scan->expects = JSON_SCAN_MORE;
	scan->token = JSON_SCAN_OBJECT_END;
}

bool json_scan_again(struct json_scan *scan, const char *object, size_t length)
{
	if (scan->token != JSON_SCAN_KEY || length == 0 ||
	    (size_t)(scan->end - scan->at) < length || !json_scan_is_same(scan->at, object, length))
		return false;
	passed_object(scan, scan->at + length);
	return true;
}

bool json_scan_again_but(struct json_scan *scan, const char *before, size_t before_length,
			 const char *after, size_t after_length, uint64_t *number)
{
	const char *at = scan->at;

	if (scan->token != JSON_SCAN_KEY || before_length == 0 ||
	    (size_t)(scan->end - at) < before_length ||
	    !json_scan_is_same(at, before, before_length))
		return false;
	at = json_scan_digits(at + before_length, scan->end, number);
	if (at == NULL || (size_t)(scan->end - at) < after_length ||
	    !json_scan_is_same(at, after, after_length))
		return false;
	passed_object(scan, at + after_length);
	return true;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static int find_key(const struct json_scan *scan, const struct json_scan_key *keys, int count)
{
	for (int i = 0; i < count; i++)
		if (scan->has_escapes
			    ? json_scan_is(scan, keys[i].name)
			    : scan->length == keys[i].length &&
				      json_scan_is_same(scan->text, keys[i].name, scan->length))
			return i;
	return JSON_SCAN_KEY_UNKNOWN;
}

int json_scan_find_key(struct json_scan *scan, const struct json_scan_key *keys, int count,
		       int *hint)
{
	int found_at;

	switch (json_scan_next(scan)) {
	case JSON_SCAN_KEY:
		found_at = find_key(scan, keys, count);
		if (found_at >= 0)
			*hint = found_at + 1;
		return found_at;
	case JSON_SCAN_OBJECT_END:
		return JSON_SCAN_KEY_NONE;
	default:
		return JSON_SCAN_KEY_ERROR;
	}
}

/* Values of tokens. They were checked by the scanner, so nothing can fail here. */

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

	/* More digits make no difference to anything that was measured. */
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

/* The character of the \uXXXX at `at`; *used is its length in the text. */
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

/* The character at `at`, which was checked before; *used is its length in the text. */
static size_t next_character(const char *at, const char *end, char to[static 4], size_t *used)
{
	static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
	const char *letter;
	size_t bytes;

	if (*at == '\\' && at[1] == 'u')
		return text_encode(to, unicode_escape(at, end, used));
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

/* ---- lenient reading ----------------------------------------------------------------------------- */

void json_scan_read_unsigned(struct json_scan *scan, uint64_t *value)
{
	json_scan_next(scan);
	json_scan_unsigned(scan, value);
	json_scan_skip(scan);
}

void json_scan_read_double(struct json_scan *scan, double *value)
{
	json_scan_next(scan);
	json_scan_double(scan, value);
	json_scan_skip(scan);
}

void json_scan_read_text(struct json_scan *scan, char *to, size_t size)
{
	json_scan_next(scan);
	json_scan_text(scan, to, size);
	json_scan_skip(scan);
}

bool json_scan_read_truth(struct json_scan *scan)
{
	bool is_true = json_scan_next(scan) == JSON_SCAN_TRUE;

	json_scan_skip(scan);
	return is_true;
}

bool json_scan_enter(struct json_scan *scan, enum json_scan_token what)
{
	if (json_scan_next(scan) == what)
		return true;
	json_scan_skip(scan);
	return false;
}

static bool next_of_array(struct json_scan *scan, enum json_scan_token what)
{
	enum json_scan_token token;

	while ((token = json_scan_next(scan)) > JSON_SCAN_END && token != JSON_SCAN_ARRAY_END) {
		if (token == what)
			return true;
		json_scan_skip(scan);
	}
	return false;
}

bool json_scan_next_object(struct json_scan *scan)
{
	return next_of_array(scan, JSON_SCAN_OBJECT);
}

bool json_scan_next_string(struct json_scan *scan)
{
	return next_of_array(scan, JSON_SCAN_STRING);
}

void json_scan_read_member(struct json_scan *scan, const char *name, char *to, size_t size)
{
	if (!json_scan_enter(scan, JSON_SCAN_OBJECT))
		return;
	while (json_scan_next(scan) == JSON_SCAN_KEY)
		if (json_scan_is(scan, name))
			json_scan_read_text(scan, to, size);
		else
			json_scan_skip(scan);
}
