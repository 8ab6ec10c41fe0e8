/* Texts that come from elsewhere (names of machines, commands): formats that must be UTF-8 get them so. */
#ifndef BENCH_RESULT_INTERNAL_H
#define BENCH_RESULT_INTERNAL_H

#include <stddef.h>
#include <string.h>

#include "common/text.h"

/* Copy of a field of `size` bytes; a '?' for each byte that is no UTF-8, so that it never gets longer. `to` has
 * room for as much. */
static inline char *bench_text_clean(char *to, const char *field, size_t size)
{
	size_t length = strnlen(field, size - 1), bytes;

	memcpy(to, field, length);
	to[length] = '\0';
	for (size_t at = 0; at < length; at += bytes) {
		bytes = (unsigned char)to[at] < 0x80
				? 1
				: utf8_bytes((const unsigned char *)to + at, length - at);
		if (bytes == 0) {
			to[at] = '?';
			bytes = 1;
		}
	}
	return to;
}

#endif
