/* Bounded strings, and numbers in readable form. */
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool text_copy(char *to, size_t size, const char *from)
{
	size_t length = from ? strlen(from) : 0;
	size_t fits = length < size ? length : size - 1;

	if (fits > 0)
		memcpy(to, from, fits);
	to[fits] = '\0';
	return fits == length;
}

bool text_format(char *to, size_t size, const char *format, ...)
{
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(to, size, format, values);
	va_end(values);
	return length >= 0 && (size_t)length < size;
}

bool text_append(char *to, size_t size, const char *format, ...)
{
	size_t used = strlen(to);
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(to + used, size - used, format, values);
	va_end(values);
	return length >= 0 && (size_t)length < size - used;
}

/*
 * Control characters, what Unicode calls default ignorable (soft hyphen, joiners, direction marks and
 * overrides, fillers, tags, the byte order mark), line separators, annotations, and planes without
 * letters. Variation selectors stay: they are parts of emoji.
 */
bool text_is_unseen(uint32_t character)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0, 0x1f },	      { 0x7f, 0x9f },	    { 0xad, 0xad },
		{ 0x34f, 0x34f },     { 0x61c, 0x61c },	    { 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x200b, 0x200f },
		{ 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },
		{ 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
		{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, UINT32_MAX },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (character <= ranges[i].last)
			return character >= ranges[i].first;
	return true;
}

uint32_t text_decode(const unsigned char *at, size_t bytes)
{
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t character = at[0] & masks[bytes];

	for (size_t i = 1; i < bytes; i++)
		character = character << 6 | (at[i] & 0x3f);
	return character;
}

size_t text_encode(char to[static 4], uint32_t character)
{
	size_t bytes = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

	for (size_t i = bytes - 1; i > 0; i--, character >>= 6)
		to[i] = (char)(0x80 | (character & 0x3f));
	/* The first byte begins with as many ones as there are bytes. */
	to[0] = (char)(bytes == 1 ? character : (0xf00u >> bytes & 0xff) | character);
	return bytes;
}

size_t text_clean_bytes(char *text, size_t length)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t to = 0, at = 0;

	while (at < length) {
		size_t count = bytes[at] < 0x80 ? 1 : utf8_bytes(bytes + at, length - at);
		bool is_shown = count > 0 && !text_is_unseen(text_decode(bytes + at, count));

		count = count > 0 ? count : 1;
		if (is_shown)
			memmove(text + to, text + at, count);
		else
			text[to] = '?';
		to += is_shown ? count : 1;
		at += count;
	}
	return to;
}

void text_clean(char *text)
{
	text[text_clean_bytes(text, strlen(text))] = '\0';
}

void text_from_field(char *to, size_t size, const char *field, size_t field_size)
{
	size_t length = strnlen(field, field_size);

	if (length > size - 1)
		length = size - 1;
	/* Of a character that is cut, nothing is left. */
	for (size_t back = 1; back < 4 && back <= length; back++) {
		unsigned char lead = (unsigned char)field[length - back];

		if (lead >= 0xc2 && lead <= 0xf4 &&
		    back < (lead < 0xe0	  ? 2u
			    : lead < 0xf0 ? 3u
					  : 4u))
			length -= back;
		if ((lead & 0xc0) != 0x80)
			break;
	}
	memcpy(to, field, length);
	to[text_clean_bytes(to, length)] = '\0';
}

enum status text_size(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *suffix;
		uint64_t factor;
	} units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "K", 1u << 10 },
		{ "KiB", 1u << 10 },
		{ "kB", 1000 },
		{ "M", 1u << 20 },
		{ "MiB", 1u << 20 },
		{ "MB", 1000000 },
		{ "G", 1u << 30 },
		{ "GiB", 1u << 30 },
		{ "GB", 1000000000 },
		{ "T", UINT64_C(1) << 40 },
		{ "TiB", UINT64_C(1) << 40 },
		{ "TB", UINT64_C(1000000000000) },
	};
	uint64_t value;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return ERR_FORMAT;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno == ERANGE)
		return ERR_RANGE;
	for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
		if (strcmp(end, units[i].suffix) != 0)
			continue;
		if (value > UINT64_MAX / units[i].factor)
			return ERR_RANGE;
		*bytes = value * units[i].factor;
		return OK;
	}
	return ERR_FORMAT;
}

enum status text_number(const char *text, int64_t least, int64_t most, int64_t *number)
{
	long long value;
	char *end;

	if (text[0] != '-' && (text[0] < '0' || text[0] > '9'))
		return ERR_FORMAT;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (*end != '\0' || end == text)
		return ERR_FORMAT;
	if (errno == ERANGE || value < least || value > most)
		return ERR_RANGE;
	*number = value;
	return OK;
}

/* Append to a bounded buffer; a value must not add a directory to a path. */
static enum status append(char *to, size_t size, size_t *at, const char *value, bool is_value)
{
	for (; *value != '\0'; value++) {
		if (*at + 1 >= size)
			return ERR_NO_SPACE;
		to[(*at)++] = (char)(is_value && *value == '/' ? '_' : *value);
	}
	return OK;
}

enum status text_expand(char *to, size_t size, const char *pattern, const struct text_names *names)
{
	enum status status = OK;
	char number[24];
	size_t at = 0;

	text_format(number, sizeof(number), "%lld", (long long)names->pid);
	for (; *pattern != '\0' && status == OK; pattern++) {
		const char plain[2] = { *pattern, '\0' };

		if (*pattern != '%') {
			status = append(to, size, &at, plain, false);
			continue;
		}
		switch (*++pattern) {
		case 'h':
			status = append(to, size, &at, names->host, true);
			break;
		case 'j':
			status = append(to, size, &at, names->job, true);
			break;
		case 'r':
			status = append(to, size, &at, names->rank, true);
			break;
		case 'p':
			status = append(to, size, &at, number, true);
			break;
		case '%':
			status = append(to, size, &at, "%", false);
			break;
		default:
			return ERR_FORMAT;
		}
	}
	if (status == OK)
		to[at] = '\0';
	return status;
}

bool text_ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), part = strlen(ending);

	return length > part && strcmp(text + length - part, ending) == 0;
}

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

	/* Just below a boundary it would round to 1000 of the smaller unit. */
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

/* Parses durations, factors and sizes on the command line of `ringside sim`. */

enum { SIZE_TEXT_BYTES = 32 };

/* Digits, optionally a point and more digits: the number times `unit`, truncated. */
static enum status text_decimal(const char **text, uint64_t unit, uint64_t *value)
{
	const char *at = *text;
	uint64_t whole = 0;

	if (*at < '0' || *at > '9')
		return ERR_FORMAT;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(whole, UINT64_C(10), &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
			return ERR_RANGE;
	if (__builtin_mul_overflow(whole, unit, &whole))
		return ERR_RANGE;
	if (*at == '.') {
		at++;
		if (*at < '0' || *at > '9')
			return ERR_FORMAT;
		for (unit /= 10; *at >= '0' && *at <= '9'; at++, unit /= 10)
			if (__builtin_add_overflow(whole, (uint64_t)(*at - '0') * unit, &whole))
				return ERR_RANGE;
	}
	*text = at;
	*value = whole;
	return OK;
}

enum status text_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {
		{ "", 1000000000 },
		{ "s", 1000000000 },
		{ "ms", 1000000 },
		{ "us", 1000 },
		{ "m", UINT64_C(60000000000) },
		{ "ns", 1 },
	};
	const char *suffix = text + strspn(text, "0123456789.");

	for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
		uint64_t value;
		enum status status;

		if (strcmp(suffix, units[i].suffix) != 0)
			continue;
		status = text_decimal(&text, units[i].ns, &value);
		if (status != OK || text != suffix)
			return status == OK ? ERR_FORMAT : status;
		if (value > UINT64_C(1000000) * 1000000000)
			return ERR_RANGE;
		*ns = value;
		return OK;
	}
	return ERR_FORMAT;
}

enum status text_permille(const char *text, uint64_t least, uint64_t *permille)
{
	uint64_t value;
	enum status status = text_decimal(&text, 1000, &value);

	if (status != OK || *text != '\0')
		return status == OK ? ERR_FORMAT : status;
	if (value < least || value > UINT64_C(1000000) * 1000)
		return ERR_RANGE;
	*permille = value;
	return OK;
}

enum status text_sizes(const char *text, uint64_t *sizes, size_t most, size_t *count)
{
	size_t found = 0;

	for (;;) {
		size_t length = strcspn(text, ",");
		char word[SIZE_TEXT_BYTES];
		enum status status;

		if (found == most)
			return ERR_RANGE;
		if (length >= sizeof(word))
			return ERR_FORMAT;
		memcpy(word, text, length);
		word[length] = '\0';
		status = text_size(word, &sizes[found]);
		if (status != OK)
			return status;
		if (sizes[found] == 0 || sizes[found] > UINT64_C(1) << 40)
			return ERR_RANGE;
		found++;
		if (text[length] == '\0')
			break;
		text += length + 1;
	}
	*count = found;
	return OK;
}
