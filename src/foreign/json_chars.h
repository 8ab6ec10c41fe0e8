/* Characters in JSON's strings: for the scanner and for what takes texts apart. */
#ifndef JSON_CHARS_H
#define JSON_CHARS_H

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
