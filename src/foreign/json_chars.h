/* Characters in JSON's strings: what the scanner checks and what takes texts apart. */
#ifndef JSON_CHARS_H
#define JSON_CHARS_H

#include <stddef.h>

/* Bytes of the UTF-8 character at `at`, 0 when it is none: overlong, surrogate, too high, cut. */
static inline size_t json_utf8_bytes(const unsigned char *at, size_t room)
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

/* The value of four hexadecimal digits, -1 when they are none. */
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

#endif
