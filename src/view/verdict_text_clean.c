#include <string.h>

#include "view/json.h"
#include "view/verdict_text.h"

/* Controls of the second kind, and those that turn the direction of what follows. */
static bool is_unseemly(const unsigned char *at, size_t length)
{
	if (length == 2)
		return at[0] == 0xc2 && at[1] < 0xa0;
	if (length != 3 || at[0] != 0xe2)
		return false;
	return (at[1] == 0x80 &&
		((at[2] >= 0xa8 && at[2] <= 0xae) || at[2] == 0x8e || at[2] == 0x8f)) ||
	       (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
}

void verdict_text_clean(char *to, size_t size, const char *from)
{
	const unsigned char *at = (const unsigned char *)from;
	size_t used = 0;

	while (*at != '\0') {
		bool is_plain = *at >= ' ' && *at < 0x7f;
		size_t length = is_plain ? 1 : json_utf8_length(at);

		if (used + (length > 0 ? length : 1) >= size)
			break;
		if (is_plain || (length > 1 && !is_unseemly(at, length))) {
			memcpy(to + used, at, length);
			used += length;
		} else {
			to[used++] = '?';
		}
		at += length > 0 ? length : 1;
	}
	to[used] = '\0';
}
