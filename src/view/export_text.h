/* Numbers and times of exported rows as text. Each gives back the length; no terminator. */
#ifndef EXPORT_TEXT_H
#define EXPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { EXPORT_NUMBER_TEXT = 20, EXPORT_TIME_TEXT = 29 };

size_t export_text_unsigned(char to[static EXPORT_NUMBER_TEXT], uint64_t number);
size_t export_text_signed(char to[static EXPORT_NUMBER_TEXT], int64_t number);

/* The day that was written last: most times are of the same one. */
struct export_day {
	int64_t day; /* since 1970 */
	char text[12];
};
#define EXPORT_DAY_INIT          \
	{                        \
		.day = INT64_MIN \
	}

/* "2026-11-15T02:09:00.123456789", UTC, of nanoseconds since 1970. */
size_t export_text_time(char to[static EXPORT_TIME_TEXT], int64_t ns, struct export_day *day);

#endif
