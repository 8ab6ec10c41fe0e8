#include "base/units.h"

#include <inttypes.h>
#include <time.h>

#include "base/attributes.h"
#include "base/text.h"

const char *units_bytes(char to[static UNITS_TEXT], uint64_t bytes)
{
	static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t unit = 1024, whole, tenths;
	size_t i = 0;

	if (bytes < 1024) {
		text_format(to, UNITS_TEXT, "%" PRIu64 " B", bytes);
		return to;
	}
	while (i + 1 < ARRAY_LENGTH(names) && bytes / unit >= 1024) {
		unit *= 1024;
		i++;
	}
	whole = bytes / unit;
	if (bytes % unit == 0) {
		text_format(to, UNITS_TEXT, "%" PRIu64 " %s", whole, names[i]);
		return to;
	}
	/* The largest unit is 2^60: ten times that still fits. */
	tenths = whole * 10 + (bytes % unit * 10 + unit / 2) / unit;
	if (tenths >= 10240 && i + 1 < ARRAY_LENGTH(names)) {
		tenths = 10;
		i++;
	}
	text_format(to, UNITS_TEXT, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
		    names[i]);
	return to;
}

/* Three digits of value / unit: "1.23", "12.3", "123". */
static void three_digits(char to[static UNITS_TEXT], uint64_t value, uint64_t unit,
			 const char *name)
{
	uint64_t hundredths = (value * 100 + unit / 2) / unit;
	uint64_t tenths = (value * 10 + unit / 2) / unit;

	if (hundredths < 1000)
		text_format(to, UNITS_TEXT, "%" PRIu64 ".%02" PRIu64 " %s", hundredths / 100,
			    hundredths % 100, name);
	else if (tenths < 1000)
		text_format(to, UNITS_TEXT, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
			    name);
	else
		text_format(to, UNITS_TEXT, "%" PRIu64 " %s", (value + unit / 2) / unit, name);
}

const char *units_duration(char to[static UNITS_TEXT], uint64_t ns)
{
	const uint64_t second = 1000000000;
	uint64_t seconds = ns / second;

	/* Just below a border it would round to 1000 of the smaller unit. */
	if (ns < 1000)
		text_format(to, UNITS_TEXT, "%" PRIu64 " ns", ns);
	else if (ns < 999500)
		three_digits(to, ns, 1000, "us");
	else if (ns < 999500000)
		three_digits(to, ns, 1000000, "ms");
	else if (seconds < 60)
		three_digits(to, ns, second, "s");
	else if (seconds < 3600)
		text_format(to, UNITS_TEXT, "%" PRIu64 " min %02" PRIu64 " s", seconds / 60,
			    seconds % 60);
	else if (seconds < 86400)
		text_format(to, UNITS_TEXT, "%" PRIu64 " h %02" PRIu64 " min", seconds / 3600,
			    seconds / 60 % 60);
	else
		text_format(to, UNITS_TEXT, "%" PRIu64 " d %02" PRIu64 " h", seconds / 86400,
			    seconds / 3600 % 24);
	return to;
}

const char *units_count(char to[static UNITS_TEXT], uint64_t count)
{
	char digits[24];
	size_t length, out = 0;

	text_format(digits, sizeof(digits), "%" PRIu64, count);
	for (length = 0; digits[length] != '\0'; length++)
		;
	for (size_t i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			to[out++] = ',';
		to[out++] = digits[i];
	}
	to[out] = '\0';
	return to;
}

static const char *put_wall(char to[static UNITS_TEXT], uint64_t wall_ns, const char *format)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm when;

	if (gmtime_r(&seconds, &when) == NULL || strftime(to, UNITS_TEXT, format, &when) == 0)
		text_copy(to, UNITS_TEXT, "?");
	return to;
}

const char *units_date(char to[static UNITS_TEXT], uint64_t wall_ns)
{
	return put_wall(to, wall_ns, "%Y-%m-%d %H:%M:%S");
}

const char *units_clock(char to[static UNITS_TEXT], uint64_t wall_ns)
{
	return put_wall(to, wall_ns, "%H:%M:%S");
}

const char *units_wall_time(char to[static UNITS_TEXT], uint64_t wall_ns)
{
	char second[UNITS_TEXT];

	put_wall(second, wall_ns, "%Y-%m-%dT%H:%M:%S");
	text_format(to, UNITS_TEXT, "%.20s.%09uZ", second, (unsigned int)(wall_ns % 1000000000));
	return to;
}

uint64_t units_whole(double value)
{
	if (!(value > 0))
		return 0;
	return value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
}

struct units_text units_of_ns(double ns)
{
	struct units_text to = { "?" };

	if (ns >= 0 && ns < 0x1p64)
		units_duration(to.text, (uint64_t)(ns + 0.5));
	return to;
}

struct units_text units_of_bytes(uint64_t bytes)
{
	struct units_text to;

	units_bytes(to.text, bytes);
	return to;
}
