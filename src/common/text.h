/*
 * Bounded strings: always terminated, never past the end, with a result that says whether text was
 * cut. Also numbers in readable form and UTF-8.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/status.h"

/* Copy; false if it was cut. NULL counts as "". */
bool text_copy(char *to, size_t size, const char *from);

/* printf into a buffer; false if it was cut. */
bool text_format(char *to, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

/* Append; false if it was cut. */
bool text_append(char *to, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

/*
 * Texts come from users and reach terminals, logs and pages of others. What would do more than show
 * itself becomes '?': control characters (C0 and C1), bytes that are not UTF-8, what changes the
 * direction of writing, and what has no width. In place; the text becomes no longer.
 */
void text_clean(char *text);
/* The same for a text without terminator; returns its new length. */
size_t text_clean_bytes(char *text, size_t length);
/* Is it such a character? */
bool text_is_unseen(uint32_t character);
/* The character of this many bytes, see utf8_bytes(). */
uint32_t text_decode(const unsigned char *at, size_t bytes);
/* The character as UTF-8, without terminator; returns its length. */
size_t text_encode(char to[static 4], uint32_t character);

/* Copy a fixed-size field that may lack its terminator, cleaned as above. */
void text_from_field(char *to, size_t size, const char *field, size_t field_size);

/*
 * "64MiB", "1GiB", "4096", "10kB": bytes. ERR_FORMAT if it is not a size, ERR_RANGE past 64 bits.
 */
enum status text_size(const char *text, uint64_t *bytes);

/* A whole decimal number within [least, most]. */
enum status text_number(const char *text, int64_t least, int64_t most, int64_t *number);

/*
 * Expand %h host, %p pid, %r rank, %j job, %% percent. ERR_FORMAT for any other letter,
 * ERR_NO_SPACE if it does not fit. A '/' inside a value becomes '_'.
 */
struct text_names {
	const char *host;
	const char *job;
	const char *rank;
	int64_t pid;
};
enum status text_expand(char *to, size_t size, const char *pattern, const struct text_names *names);

/* The text must be longer than the suffix: ".json" alone is a name without a suffix. */
bool text_ends_with(const char *text, const char *ending);

/* Capitalize the first letter. */
static inline void text_capital(char *text)
{
	if (text[0] >= 'a' && text[0] <= 'z')
		text[0] = (char)(text[0] - 'a' + 'A');
}

/* Singular or plural: text_which(ranks, "rank waits", "ranks wait"). */
static inline const char *text_which(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

/* Numbers in readable form. Bounded; all return the text they wrote. */

enum { UNITS_TEXT = 40 }; /* always large enough */

/* "0 B", "512 B", "4 KiB", "1.5 GiB": one decimal unless the number is whole. */
const char *units_bytes(char to[static UNITS_TEXT], uint64_t bytes);

/* "850 ns", "12.3 us", "12.3 ms", "1.23 s", "3 min 12 s", "2 h 05 min", "3 d 04 h". */
const char *units_duration(char to[static UNITS_TEXT], uint64_t ns);

/* "1,234,567". */
const char *units_count(char to[static UNITS_TEXT], uint64_t count);

/* Nanoseconds since 1970, in UTC: "2026-11-15T02:09:00.123456789Z". */
const char *units_wall_time(char to[static UNITS_TEXT], uint64_t wall_ns);
/* To the second: "2026-11-15 02:09:00". */
const char *units_date(char to[static UNITS_TEXT], uint64_t wall_ns);
/* Without the date: "02:09:00". */
const char *units_clock(char to[static UNITS_TEXT], uint64_t wall_ns);

/*
 * Convert a computed value: 0 if it is negative or not a number, the largest number if it is too
 * large.
 */
uint64_t units_whole(double value);

/* A text returned by value, for use as a printf argument: units_of_ns(ns).text. */
struct units_text {
	char text[UNITS_TEXT];
};
/* Like units_duration(), rounded to whole nanoseconds; "?" if it is not a duration. */
struct units_text units_of_ns(double ns);
/* Like units_bytes(). */
struct units_text units_of_bytes(uint64_t bytes);

/*
 * Length of the non-ASCII UTF-8 character at `at`; 0 if it is invalid: overlong, surrogate, too
 * high, cut.
 */
static inline size_t utf8_bytes(const unsigned char *at, size_t room)
{
	unsigned char first = at[0], least = 0x80, most = 0xbf;
	size_t bytes;

	if (first >= 0xc2 && first <= 0xdf)
		bytes = 2;
	else if (first >= 0xe0 && first <= 0xef)
		bytes = 3;
	else if (first >= 0xf0 && first <= 0xf4)
		bytes = 4;
	else
		return 0;
	if (first == 0xe0)
		least = 0xa0;
	else if (first == 0xed)
		most = 0x9f;
	else if (first == 0xf0)
		least = 0x90;
	else if (first == 0xf4)
		most = 0x8f;
	if (bytes > room || at[1] < least || at[1] > most)
		return 0;
	for (size_t i = 2; i < bytes; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	return bytes;
}

/* Values on the command line of `ringside sim`: durations, factors, sizes. */

/* "30s", "1.5s", "500ms", "20us", "7ns", "2m"; a bare number is seconds. ERR_FORMAT, ERR_RANGE. */
enum status text_duration(const char *text, uint64_t *ns);

/* "1.5": 1500. Up to three decimals. ERR_FORMAT; ERR_RANGE below `least` or above a million. */
enum status text_permille(const char *text, uint64_t least, uint64_t *permille);

/* "1KiB,4MiB": sizes as in text_size(), none of them 0. ERR_RANGE: more than `most`. */
enum status text_sizes(const char *text, uint64_t *sizes, size_t most, size_t *count);

#endif
