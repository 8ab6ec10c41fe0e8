/* Parses durations, factors and sizes on the command line of `ringside sim`. */
#include "common/text_amounts.h"

#include <string.h>

#include "common/attributes.h"
#include "common/text.h"

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
			whole += (uint64_t)(*at - '0') * unit;
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
