#include "region/info_text.h"

#include <string.h>

#include "base/text.h"

/* The line that begins at `at`; gives back where the next one begins. */
static size_t line_end(const char *text, size_t text_bytes, size_t at)
{
	const char *end = memchr(text + at, '\n', text_bytes - at);

	return end != NULL ? (size_t)(end - text) : text_bytes;
}

bool info_next(const char *text, size_t text_bytes, size_t *at, char *key, size_t key_size,
	       char *value, size_t value_size)
{
	while (*at < text_bytes) {
		const char *line = text + *at;
		size_t length = line_end(text, text_bytes, *at) - *at;
		const char *equals = memchr(line, '=', length);
		size_t key_bytes = equals != NULL ? (size_t)(equals - line) : 0;

		*at += length + 1;
		if (key_bytes == 0)
			continue;
		text_from_field(key, key_size, line, key_bytes);
		text_from_field(value, value_size, equals + 1, length - key_bytes - 1);
		return true;
	}
	return false;
}

bool info_get(const char *text, size_t text_bytes, const char *key, char *value, size_t size)
{
	size_t key_bytes = strlen(key);
	size_t end;

	value[0] = '\0';
	for (size_t at = 0; at < text_bytes; at = end + 1) {
		const char *line = text + at;

		end = line_end(text, text_bytes, at);
		if (end - at <= key_bytes || line[key_bytes] != '=' ||
		    memcmp(line, key, key_bytes) != 0)
			continue;
		text_from_field(value, size, line + key_bytes + 1, end - at - key_bytes - 1);
		return true;
	}
	return false;
}

int64_t info_get_number(const char *text, size_t text_bytes, const char *key, int64_t otherwise)
{
	char value[32];
	int64_t number;

	if (!info_get(text, text_bytes, key, value, sizeof(value)) ||
	    text_number(value, INT64_MIN, INT64_MAX, &number) != OK)
		return otherwise;
	return number;
}
