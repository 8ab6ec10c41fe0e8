/*
 * A JSON scanner: reads JSON token by token from memory, strictly by RFC 8259. Allocates and copies
 * nothing: a string or number is a position in the text until its value is requested.
 *
 *	json_scan_init(&scan, text, length);
 *	while ((token = json_scan_next(&scan)) > JSON_SCAN_END)
 *		...
 *	if (token == JSON_SCAN_ERROR)
 *		scan.problem, at json_scan_offset(&scan)
 *
 * The text is a single value. Invalid UTF-8, nesting deeper than JSON_SCAN_DEPTH_MAX and trailing
 * text are errors. After an error every further call returns the same error.
 */
#ifndef JSON_SCAN_H
#define JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { JSON_SCAN_DEPTH_MAX = 64 };

enum json_scan_token {
	JSON_SCAN_ERROR = -1,
	JSON_SCAN_END = 0, /* the value is complete */
	JSON_SCAN_OBJECT = 1,
	JSON_SCAN_OBJECT_END = 2,
	JSON_SCAN_ARRAY = 3,
	JSON_SCAN_ARRAY_END = 4,
	JSON_SCAN_KEY = 5, /* its value is the next token */
	JSON_SCAN_STRING = 6,
	JSON_SCAN_NUMBER = 7,
	JSON_SCAN_TRUE = 8,
	JSON_SCAN_FALSE = 9,
	JSON_SCAN_NULL = 10,
};

/* What may come next: private to the scanner. */
enum json_scan_expects {
	JSON_SCAN_VALUE_NEXT = 0,
	JSON_SCAN_FIRST_ITEM = 1, /* or the end of the array */
	JSON_SCAN_FIRST_KEY = 2,  /* or the end of the object */
	JSON_SCAN_MORE = 3,	  /* a comma, or the end of the current object or array */
	JSON_SCAN_NO_MORE = 4,
	JSON_SCAN_FAILED = 5,
};

struct json_scan {
	const char *start;
	const char *at;
	const char *end;
	/* The last key, string (between the quotes, including escapes) or number. */
	const char *text;
	size_t length;
	bool has_escapes;
	bool is_plain;	 /* the last number has only digits: no sign, point or exponent */
	uint8_t expects; /* enum json_scan_expects */
	uint8_t token;	 /* the last one, enum json_scan_token */
	unsigned int depth;
	uint64_t is_object;  /* bit d: depth d + 1 is an object */
	const char *problem; /* static; NULL: none */
};

/* `text` is borrowed while the scan is used. It needs no terminator. */
void json_scan_init(struct json_scan *scan, const char *text, size_t length);

enum json_scan_token json_scan_next(struct json_scan *scan);

/*
 * Skip a value: after a key, its value; after the start of an object or array, the rest of it. It
 * is checked nevertheless. False: an error.
 */
bool json_scan_skip(struct json_scan *scan);

/*
 * For parts that writers repeat on every line. After a key: if its value equals this object byte
 * for byte, skip it. The object was scanned before, so there is nothing left to check. The second
 * function is for an object in which one plain number, between `before` and `after`, changes each
 * time.
 */
bool json_scan_again(struct json_scan *scan, const char *object, size_t length);
bool json_scan_again_but(struct json_scan *scan, const char *before, size_t before_length,
			 const char *after, size_t after_length, uint64_t *number);

/* Current position in the text, in bytes; after an error, where the error is. */
size_t json_scan_offset(const struct json_scan *scan);

/*
 * The value of the last token. All return false and leave *value alone if the token is something
 * else or the value does not fit: an integer beyond 64 bits, a number with a fraction.
 */
bool json_scan_unsigned(const struct json_scan *scan, uint64_t *value);
bool json_scan_signed(const struct json_scan *scan, int64_t *value);
bool json_scan_double(const struct json_scan *scan, double *value);
/* A non-negative number times 1000, rounded: exact for numbers without an exponent. */
bool json_scan_thousandths(const struct json_scan *scan, uint64_t *value);

/*
 * The last key or string, unescaped and terminated. False if it was cut to `size`, which happens
 * between characters. A lone surrogate and a NUL become U+FFFD.
 */
bool json_scan_text(const struct json_scan *scan, char *to, size_t size);

/* Is the last key or string this text? */
bool json_scan_is(const struct json_scan *scan, const char *text);

/*
 * Lenient reading: the value of the last key, or the item of an array, if it is of this type.
 * Anything else is skipped and leaves *value, or the text, as it was. Errors stay in the scan.
 */
void json_scan_read_unsigned(struct json_scan *scan, uint64_t *value);
void json_scan_read_double(struct json_scan *scan, double *value);
void json_scan_read_text(struct json_scan *scan, char *to, size_t size);
bool json_scan_read_truth(struct json_scan *scan); /* false also if it is neither */
/* Is it an object, or an array, as requested? Then its items are next. */
bool json_scan_enter(struct json_scan *scan, enum json_scan_token what);
/* Enter the next object of the current array, or go to its next string; false: end of the array. */
bool json_scan_next_object(struct json_scan *scan);
bool json_scan_next_string(struct json_scan *scan);
/* As json_scan_read_text(), of this member of an object. */
void json_scan_read_member(struct json_scan *scan, const char *name, char *to, size_t size);

/*
 * The next key of the current object: its index in `keys`, or one of enum json_scan_other. Writers
 * keep an order, so those after the last hit are tried first: *hint is 0 at the start of an object
 * and is kept by the caller.
 */
struct foreign_reading;
struct json_scan_key {
	const char *name;
	size_t length;
	const char *quoted; /* "name": */
	/* Only for foreign_read_members(): where the value goes, and how it is read. */
	uint8_t how; /* enum foreign_how */
	uint16_t at;
	uint16_t size;
	bool (*take)(struct foreign_reading *reading, void *object);
};
#define JSON_SCAN_KEY_NAMED(text) \
	.name = (text), .length = sizeof(text) - 1, .quoted = "\"" text "\":"
#define JSON_SCAN_KEY_OF(text)            \
	{                                 \
		JSON_SCAN_KEY_NAMED(text) \
	}
enum json_scan_other {
	JSON_SCAN_KEY_UNKNOWN = -1,
	JSON_SCAN_KEY_NONE = -2, /* end of the object */
	JSON_SCAN_KEY_ERROR = -3,
};
int json_scan_find_key(struct json_scan *scan, const struct json_scan_key *keys, int count,
		       int *hint);

/* ---- inline, because they are called for every field of every line --------------------------- */

/* Short, mostly equal texts: faster than a call. */
static inline bool json_scan_is_same(const char *one, const char *other, size_t length)
{
	uint64_t a, b;
	size_t at = 0;

	for (; at + 8 <= length; at += 8) {
		memcpy(&a, one + at, 8);
		memcpy(&b, other + at, 8);
		if (a != b)
			return false;
	}
	if (length >= 8) {
		memcpy(&a, one + length - 8, 8);
		memcpy(&b, other + length - 8, 8);
		return a == b;
	}
	for (; at < length; at++)
		if (one[at] != other[at])
			return false;
	return true;
}

/* The next key, if it is written in the usual way: after the comma, without blanks. */
static inline const char *json_scan_key_at(const struct json_scan *scan)
{
	const char *at = scan->at;

	if (scan->expects == JSON_SCAN_FIRST_KEY)
		return at;
	if (scan->expects == JSON_SCAN_MORE && at < scan->end && *at == ',' &&
	    (scan->is_object >> (scan->depth - 1) & 1))
		return at + 1;
	return NULL;
}

static inline int json_scan_next_key(struct json_scan *scan, const struct json_scan_key *keys,
				     int count, int *hint)
{
	const char *at = json_scan_key_at(scan);

	/* One comparison instead of a scan. A few expected keys may be missing. */
	for (int i = *hint; at != NULL && i < *hint + 3 && i < count; i++) {
		size_t length = keys[i].length + 3;

		if ((size_t)(scan->end - at) < length ||
		    !json_scan_is_same(at, keys[i].quoted, length))
			continue;
		scan->text = at + 1;
		scan->length = keys[i].length;
		scan->has_escapes = false;
		scan->at = at + length;
		scan->expects = JSON_SCAN_VALUE_NEXT;
		scan->token = JSON_SCAN_KEY;
		*hint = i + 1;
		return i;
	}
	return json_scan_find_key(scan, keys, count, hint);
}

/* 0x80 in every lane that is not a digit; lanes above the lowest of these may be wrong. */
static inline uint64_t json_scan_no_digits(uint64_t word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);

	return ((word + ones * 0x46) | (word - ones * 0x30)) & ones << 7;
}

/* The number formed by eight digits, the first in the lowest lane. */
static inline uint64_t json_scan_eight_digits(uint64_t word)
{
	word = (word & UINT64_C(0x0f0f0f0f0f0f0f0f)) * 2561 >> 8;
	word = (word & UINT64_C(0x00ff00ff00ff00ff)) * 6553601 >> 16;
	return (word & UINT64_C(0x0000ffff0000ffff)) * UINT64_C(42949672960001) >> 32;
}

/* Up to 19 digits. Returns where they end; NULL if there are none, too many, or a leading 0. */
static inline const char *json_scan_digits(const char *at, const char *end, uint64_t *value)
{
	static const uint32_t powers[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000 };
	const char *start = at;
	uint64_t sum = 0, word, others = 0;

	while (end - at >= 8) {
		memcpy(&word, at, sizeof(word));
		others = json_scan_no_digits(word);
		if (others != 0)
			break;
		if (at - start >= 16)
			return NULL;
		sum = sum * 100000000 + json_scan_eight_digits(word);
		at += 8;
	}
	if (others != 0) {
		unsigned int count = (unsigned int)__builtin_ctzll(others) >> 3;

		/* Zeros in the low lanes make it eight digits. */
		if (count > 0)
			sum = sum * powers[count] +
			      json_scan_eight_digits(word << (64 - 8 * count));
		at += count;
	} else {
		for (; at < end && *at >= '0' && *at <= '9'; at++)
			sum = sum * 10 + (uint64_t)(*at - '0');
	}
	if (at == start || at - start > 19 || (*start == '0' && at - start > 1))
		return NULL;
	*value = sum;
	return at;
}

/*
 * Read the next value if it is a number of up to 19 digits: true. Otherwise false, and nothing has
 * happened: json_scan_next() returns what it is.
 */
static inline bool json_scan_take(struct json_scan *scan, uint64_t *value)
{
	const char *at;
	uint64_t number;

	if (scan->token != JSON_SCAN_KEY)
		return false;
	at = json_scan_digits(scan->at, scan->end, &number);
	if (at == NULL || at == scan->end || *at == '.' || (*at | 0x20) == 'e')
		return false;
	*value = number;
	scan->text = scan->at;
	scan->length = (size_t)(at - scan->at);
	scan->is_plain = true;
	scan->at = at;
	scan->expects = JSON_SCAN_MORE;
	scan->token = JSON_SCAN_NUMBER;
	return true;
}

/* The same for a string that, including its quotes, equals this text. */
static inline bool json_scan_take_text(struct json_scan *scan, const char *quoted, size_t length)
{
	if (scan->token != JSON_SCAN_KEY || (size_t)(scan->end - scan->at) < length ||
	    !json_scan_is_same(scan->at, quoted, length))
		return false;
	scan->text = scan->at + 1;
	scan->length = length - 2;
	scan->has_escapes = false;
	scan->at += length;
	scan->expects = JSON_SCAN_MORE;
	scan->token = JSON_SCAN_STRING;
	return true;
}

#endif
