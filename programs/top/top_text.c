#include "programs/top/top_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/text.h"

#define US_NS UINT64_C(1000)
#define MS_NS UINT64_C(1000000)
#define SECOND_NS UINT64_C(1000000000)

/* Joiners, selectors and marks of direction: what a terminal makes of them nobody can foresee. */
static bool is_format(wchar_t character)
{
	return character == 0xad || character == 0x61c || character == 0x180e ||
	       (character >= 0x200b && character <= 0x200f) ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2060 && character <= 0x206f) ||
	       (character >= 0xfe00 && character <= 0xfe0f) || character == 0xfeff ||
	       (character >= 0xfff9 && character <= 0xfffb) || character >= 0xe0000;
}

static wchar_t decode(const unsigned char *at, size_t bytes)
{
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	wchar_t character = at[0] & masks[bytes];

	for (size_t i = 1; i < bytes; i++)
		character = character << 6 | (at[i] & 0x3f);
	return character;
}

size_t top_text_next(const char *at, bool is_utf8, wchar_t *character, unsigned int *width)
{
	const unsigned char *bytes = (const unsigned char *)at;
	size_t length = 1;
	int columns;

	*character = L'?';
	*width = 1;
	if (bytes[0] == '\0')
		return 0;
	if (bytes[0] < 0x80) {
		if (bytes[0] >= 0x20 && bytes[0] < 0x7f)
			*character = bytes[0];
		return 1;
	}
	length = utf8_bytes(bytes, strnlen(at, 4));
	if (length == 0)
		return 1;
	if (!is_utf8)
		return length;
	columns = is_format(decode(bytes, length)) ? -1 : wcwidth(decode(bytes, length));
	if (columns >= 0 && columns <= 2) {
		*character = decode(bytes, length);
		*width = (unsigned int)columns;
	}
	return length;
}

unsigned int top_text_width(const char *text, bool is_utf8)
{
	unsigned int total = 0, width;
	wchar_t character;
	size_t bytes;

	while ((bytes = top_text_next(text, is_utf8, &character, &width)) > 0) {
		text += bytes;
		total += width;
	}
	return total;
}

size_t top_text_line(const char *text, unsigned int width, bool is_utf8, size_t *skip)
{
	size_t used = 0, blank = 0, bytes;
	unsigned int columns = 0, wide;
	wchar_t character;

	while ((bytes = top_text_next(text + used, is_utf8, &character, &wide)) > 0) {
		if (text[used] == ' ')
			blank = used;
		if (columns + wide > width && used > 0)
			break;
		columns += wide;
		used += bytes;
	}
	if (bytes > 0 && blank > 0)
		used = blank;
	*skip = strspn(text + used, " ");
	return used;
}

const char *top_text_rate(char to[static TOP_TEXT_NUMBER], double per_s)
{
	if (!isfinite(per_s) || per_s < 0)
		text_copy(to, TOP_TEXT_NUMBER, "-");
	else if (per_s == 0 || (per_s >= 9.95 && per_s < 999.5))
		text_format(to, TOP_TEXT_NUMBER, "%.0f", per_s);
	else if (per_s < 9.95)
		text_format(to, TOP_TEXT_NUMBER, per_s < 0.095 ? "%.2f" : "%.1f", per_s);
	else if (per_s < 999.5e3)
		text_format(to, TOP_TEXT_NUMBER, per_s < 99.95e3 ? "%.1fk" : "%.0fk", per_s / 1e3);
	else
		text_format(to, TOP_TEXT_NUMBER, per_s < 99.95e6 ? "%.1fM" : "%.0fM", per_s / 1e6);
	return to;
}

const char *top_text_bandwidth(char to[static TOP_TEXT_NUMBER], double bytes_per_s)
{
	static const char *const units[] = { "B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s" };
	unsigned int unit = 0;

	if (!isfinite(bytes_per_s) || bytes_per_s < 0) {
		text_copy(to, TOP_TEXT_NUMBER, "-");
		return to;
	}
	while (bytes_per_s >= 999.5 && unit + 1 < ARRAY_LENGTH(units)) {
		bytes_per_s /= 1000;
		unit++;
	}
	text_format(to, TOP_TEXT_NUMBER, "%.*f %s",
		    unit == 0 || bytes_per_s >= 99.95 ? 0
		    : bytes_per_s >= 9.995	      ? 1
						      : 2,
		    bytes_per_s, units[unit]);
	return to;
}

const char *top_text_share(char to[static TOP_TEXT_NUMBER], double share)
{
	double percent = share * 100;

	if (!isfinite(percent) || percent < 0)
		text_copy(to, TOP_TEXT_NUMBER, "-");
	else if (percent > 0 && percent < 1)
		text_copy(to, TOP_TEXT_NUMBER, "<1%");
	else
		text_format(to, TOP_TEXT_NUMBER, "%.0f%%", percent > 999 ? 999 : percent);
	return to;
}

const char *top_text_age(char to[static TOP_TEXT_NUMBER], uint64_t ns)
{
	uint64_t seconds = ns / SECOND_NS;

	if (ns == 0)
		text_copy(to, TOP_TEXT_NUMBER, "-");
	else if (ns < MS_NS)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "us", ns < US_NS ? 1 : ns / US_NS);
	else if (ns < SECOND_NS)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "ms", ns / MS_NS);
	else if (seconds < 60)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 ".%" PRIu64 "s", seconds,
			    ns % SECOND_NS / (SECOND_NS / 10));
	else if (seconds < 3600)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "m%02" PRIu64 "s", seconds / 60,
			    seconds % 60);
	else if (seconds < 86400)
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "h%02" PRIu64 "m", seconds / 3600,
			    seconds / 60 % 60);
	else if (seconds >= 100 * UINT64_C(86400))
		text_copy(to, TOP_TEXT_NUMBER, ">99d");
	else
		text_format(to, TOP_TEXT_NUMBER, "%" PRIu64 "d%02" PRIu64 "h", seconds / 86400,
			    seconds / 3600 % 24);
	return to;
}
