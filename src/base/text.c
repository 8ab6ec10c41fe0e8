#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void text_from_field(char *to, size_t size, const char *field, size_t field_size)
{
	size_t at = 0;

	for (; at < field_size && at + 1 < size && field[at] != '\0'; at++)
		to[at] = (unsigned char)field[at] < 0x20 || field[at] == 0x7f ? '?' : field[at];
	to[at] = '\0';
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

/* Append to a bounded buffer; a value must not smuggle a directory into a path. */
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
