/* The JSON scanner: any bytes as a text. Its fast paths must find what the plain one finds. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_main.h"
#include "import/json_scan.h"

static const struct json_scan_key keys[] = { JSON_SCAN_KEY_OF("a"), JSON_SCAN_KEY_OF("header"),
					     JSON_SCAN_KEY_OF("coll_sn"), JSON_SCAN_KEY_OF("id") };

static void look_at(const struct json_scan *scan)
{
	char text[32];
	uint64_t number, scaled;
	int64_t with_sign;
	double real;

	if (scan->at < scan->start || scan->at > scan->end)
		abort();
	if (scan->token == JSON_SCAN_STRING || scan->token == JSON_SCAN_KEY) {
		if (scan->text + scan->length > scan->end)
			abort();
		json_scan_text(scan, text, sizeof(text));
		if (strnlen(text, sizeof(text)) == sizeof(text))
			abort();
		json_scan_is(scan, "header");
	} else if (scan->token == JSON_SCAN_NUMBER) {
		if (json_scan_unsigned(scan, &number) && json_scan_thousandths(scan, &scaled) &&
		    scaled != number * 1000)
			abort();
		json_scan_signed(scan, &with_sign);
		json_scan_double(scan, &real);
		json_scan_thousandths(scan, &scaled);
	}
}

/* The number of tokens, and whether it is JSON. */
static bool scan_plainly(const char *text, size_t size, size_t *count)
{
	struct json_scan scan;
	enum json_scan_token token;

	json_scan_init(&scan, text, size);
	for (*count = 0; (token = json_scan_next(&scan)) > JSON_SCAN_END; ++*count)
		look_at(&scan);
	if (token == JSON_SCAN_ERROR && scan.problem == NULL)
		abort();
	return token == JSON_SCAN_END;
}

/* The same through json_scan_next_key() and json_scan_take(). */
static bool scan_object(struct json_scan *scan, size_t *count)
{
	uint64_t number;
	int key, hint = 0;

	while ((key = json_scan_next_key(scan, keys, 4, &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
		++*count;
		if (key >= 0 && !json_scan_is(scan, keys[key].name))
			abort();
		if (json_scan_take(scan, &number)) {
			uint64_t again;

			if (!json_scan_unsigned(scan, &again) || again != number)
				abort();
		} else if (json_scan_next(scan) == JSON_SCAN_OBJECT) {
			if (!scan_object(scan, count))
				return false;
		} else {
			size_t before = json_scan_offset(scan);

			if (!json_scan_skip(scan) || scan->problem != NULL)
				return false;
			if (json_scan_offset(scan) < before)
				abort();
		}
	}
	return key == JSON_SCAN_KEY_NONE;
}

static bool scan_fast(const char *text, size_t size)
{
	struct json_scan scan;
	size_t count = 0;

	json_scan_init(&scan, text, size);
	return json_scan_next(&scan) == JSON_SCAN_OBJECT && scan_object(&scan, &count) &&
	       json_scan_next(&scan) == JSON_SCAN_END;
}

static bool scan_skipping(const char *text, size_t size)
{
	struct json_scan scan;

	json_scan_init(&scan, text, size);
	return json_scan_next(&scan) > JSON_SCAN_END && json_scan_skip(&scan) &&
	       json_scan_next(&scan) == JSON_SCAN_END;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of the exact size, so that reads past the end are caught. */
	char *text = malloc(size == 0 ? 1 : size);
	bool is_json, is_object;
	struct json_scan scan;
	size_t count;

	if (size > 0)
		memcpy(text, data, size);
	is_json = scan_plainly(text, size, &count);
	json_scan_init(&scan, text, size);
	is_object = json_scan_next(&scan) == JSON_SCAN_OBJECT;
	if (is_object && scan_fast(text, size) != is_json)
		abort();
	if (scan_skipping(text, size) != is_json)
		abort();
	free(text);
	return 0;
}
