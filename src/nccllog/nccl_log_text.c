/* Reading numbers and words out of a message. */
#include <string.h>

#include "nccllog/nccl_log_parts.h"

/* memmem makes a table first: too much for texts as short as these. */
bool log_find(struct log_text *text, const char *literal)
{
	size_t length = strlen(literal);
	const char *at = text->at;

	while ((size_t)(text->end - at) >= length) {
		at = memchr(at, literal[0], (size_t)(text->end - at) - length + 1);
		if (at == NULL)
			return false;
		if (memcmp(at, literal, length) == 0) {
			text->at = at + length;
			return true;
		}
		at++;
	}
	return false;
}

bool log_has(struct log_text text, const char *literal)
{
	return log_find(&text, literal);
}

bool log_number(struct log_text *text, int64_t *number)
{
	const char *at = text->at;
	bool is_negative = at < text->end && *at == '-';
	int64_t value = 0;
	const char *first;

	first = at += is_negative;
	for (; at < text->end && *at >= '0' && *at <= '9' && at - first < 18; at++)
		value = value * 10 + (*at - '0');
	if (at == first || (at < text->end && *at >= '0' && *at <= '9'))
		return false;
	*number = is_negative ? -value : value;
	text->at = at;
	return true;
}

bool log_int(struct log_text *text, int32_t *number)
{
	struct log_text copy = *text;
	int64_t value;

	if (!log_number(&copy, &value) || value < INT32_MIN || value > INT32_MAX)
		return false;
	*number = (int32_t)value;
	*text = copy;
	return true;
}

static int hex_digit(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f')
		return (byte | 0x20) - 'a' + 10;
	return -1;
}

bool log_hex(struct log_text *text, uint64_t *number)
{
	struct log_text copy = *text;
	const char *first;
	uint64_t value = 0;

	if (LOG_SKIP(&copy, "(nil)")) { /* how printf writes a NULL pointer */
		*number = 0;
		*text = copy;
		return true;
	}
	LOG_SKIP(&copy, "0x");
	for (first = copy.at; copy.at < copy.end && hex_digit(*copy.at) >= 0; copy.at++)
		value = value << 4 | (uint64_t)hex_digit(*copy.at);
	if (copy.at == first || copy.at - first > 16)
		return false;
	*number = value;
	*text = copy;
	return true;
}

/* As printf("%.2f") writes it; no exponents, no locale. */
bool log_real(struct log_text *text, double *number)
{
	struct log_text copy = *text;
	double value = 0, scale = 1;
	int64_t whole;
	bool is_negative = log_left(&copy) > 0 && *copy.at == '-';

	if (!log_number(&copy, &whole))
		return false;
	if (LOG_SKIP(&copy, "."))
		for (; copy.at < copy.end && *copy.at >= '0' && *copy.at <= '9'; copy.at++) {
			scale /= 10;
			value += (*copy.at - '0') * scale;
		}
	*number = (double)whole + (is_negative ? -value : value);
	*text = copy;
	return true;
}

struct log_text log_until(struct log_text *text, char stop)
{
	const char *found = memchr(text->at, stop, log_left(text));
	struct log_text part = { text->at, found != NULL ? found : text->end };

	text->at = found != NULL ? found + 1 : text->end;
	return part;
}

struct log_text log_trim(struct log_text text)
{
	while (text.at < text.end && (*text.at == ' ' || *text.at == '\t'))
		text.at++;
	while (text.at < text.end &&
	       (text.end[-1] == ' ' || text.end[-1] == '\t' || text.end[-1] == '\r'))
		text.end--;
	return text;
}
