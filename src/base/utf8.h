/* UTF-8, byte by byte: for whoever checks texts or writes them where only UTF-8 may stand. */
#ifndef UTF8_H
#define UTF8_H

#include <stddef.h>

/* Bytes of the character at `at`, which is not ASCII; 0 when it is none: overlong, surrogate, too
 * high, cut. */
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

#endif
