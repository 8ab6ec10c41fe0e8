#include "view/export_text.h"

#include <string.h>
#include <time.h>

#define DAY_NS INT64_C(86400000000000)

size_t export_text_unsigned(char to[static EXPORT_NUMBER_TEXT], uint64_t number)
{
	char text[EXPORT_NUMBER_TEXT];
	size_t at = sizeof(text);

	do {
		text[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	memcpy(to, text + at, sizeof(text) - at);
	return sizeof(text) - at;
}

size_t export_text_signed(char to[static EXPORT_NUMBER_TEXT], int64_t number)
{
	char digits[EXPORT_NUMBER_TEXT];
	size_t length;

	if (number >= 0)
		return export_text_unsigned(to, (uint64_t)number);
	/* Negated as unsigned: the least number has no positive partner. It has 19 digits. */
	length = export_text_unsigned(digits, 0 - (uint64_t)number);
	to[0] = '-';
	memcpy(to + 1, digits, length);
	return length + 1;
}

static void put_digits(char *to, unsigned int digits, uint64_t number)
{
	while (digits-- > 0) {
		to[digits] = (char)('0' + number % 10);
		number /= 10;
	}
}

static void write_day(struct export_day *day, int64_t number)
{
	time_t seconds = (time_t)(number * 86400);
	struct tm date = { 0 };

	gmtime_r(&seconds, &date);
	put_digits(day->text, 4, (uint64_t)date.tm_year + 1900);
	put_digits(day->text + 5, 2, (uint64_t)date.tm_mon + 1);
	put_digits(day->text + 8, 2, (uint64_t)date.tm_mday);
	day->text[4] = day->text[7] = '-';
	day->text[10] = 'T';
	day->day = number;
}

size_t export_text_time(char to[static EXPORT_TIME_TEXT], int64_t ns, struct export_day *day)
{
	int64_t number = ns / DAY_NS - (ns % DAY_NS < 0);
	uint64_t within = (uint64_t)ns - (uint64_t)number * (uint64_t)DAY_NS;
	uint64_t seconds = within / 1000000000;

	if (number != day->day)
		write_day(day, number);
	memcpy(to, day->text, 11);
	put_digits(to + 11, 2, seconds / 3600);
	to[13] = ':';
	put_digits(to + 14, 2, seconds / 60 % 60);
	to[16] = ':';
	put_digits(to + 17, 2, seconds % 60);
	to[19] = '.';
	put_digits(to + 20, 9, within % 1000000000);
	return EXPORT_TIME_TEXT;
}
