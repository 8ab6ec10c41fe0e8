/* Numbers as people read them. Bounded; all give back the text they wrote. */
#ifndef UNITS_H
#define UNITS_H

#include <stddef.h>
#include <stdint.h>

enum { UNITS_TEXT = 40 }; /* room that is always enough */

/* "0 B", "512 B", "4 KiB", "1.5 GiB": one decimal unless the number is whole. */
const char *units_bytes(char to[static UNITS_TEXT], uint64_t bytes);

/* "850 ns", "12.3 us", "12.3 ms", "1.23 s", "3 min 12 s", "2 h 05 min", "3 d 04 h". */
const char *units_duration(char to[static UNITS_TEXT], uint64_t ns);

/* "1,234,567". */
const char *units_count(char to[static UNITS_TEXT], uint64_t count);

/* Of nanoseconds since 1970, in UTC: "2026-11-15T02:09:00.123456789Z". */
const char *units_wall_time(char to[static UNITS_TEXT], uint64_t wall_ns);
/* The same to the second: "2026-11-15 02:09:00". */
const char *units_date(char to[static UNITS_TEXT], uint64_t wall_ns);
/* The same without the day: "02:09:00". */
const char *units_clock(char to[static UNITS_TEXT], uint64_t wall_ns);

/* What was computed, as a whole number: 0 for what is negative or no number, the largest for what is larger. */
uint64_t units_whole(double value);

/* A text that is a value, to stand among the arguments of a longer one: units_of_ns(ns).text. */
struct units_text {
	char text[UNITS_TEXT];
};
/* As units_duration() has it, rounded to whole nanoseconds; "?" for what is no duration. */
struct units_text units_of_ns(double ns);
/* As units_bytes() has it. */
struct units_text units_of_bytes(uint64_t bytes);

#endif
