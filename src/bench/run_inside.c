#include "bench/run_inside.h"

#include <stdbool.h>

#include "import/json_scan.h"

/* The value of the key that was read last. False: it is damaged. */
static bool take_value(struct json_scan *scan, const char *text, const char **at, size_t *size)
{
	size_t from;

	if (json_scan_next(scan) != JSON_SCAN_OBJECT)
		return false;
	from = json_scan_offset(scan) - 1;
	if (!json_scan_skip(scan))
		return false;
	*at = text + from;
	*size = json_scan_offset(scan) - from;
	return true;
}

/* The format is the first key, as we write it: a document of megabytes is refused at its beginning. */
static bool is_ours(struct json_scan *scan, bool *is_whole)
{
	if (json_scan_next(scan) != JSON_SCAN_OBJECT || json_scan_next(scan) != JSON_SCAN_KEY ||
	    !json_scan_is(scan, "format") || json_scan_next(scan) != JSON_SCAN_STRING)
		return false;
	*is_whole = json_scan_is(scan, "ringside-bench");
	return *is_whole || json_scan_is(scan, "ringside-crossover") ||
	       json_scan_is(scan, "ringside-health");
}

enum status run_inside(const char *text, size_t length, const char **at, size_t *size)
{
	enum json_scan_token token;
	struct json_scan scan;
	bool is_whole;

	json_scan_init(&scan, text, length);
	if (!is_ours(&scan, &is_whole))
		return ERR_UNKNOWN;
	if (is_whole) {
		*at = text;
		*size = length;
		return OK;
	}
	while ((token = json_scan_next(&scan)) == JSON_SCAN_KEY) {
		if (json_scan_is(&scan, "run"))
			return take_value(&scan, text, at, size) ? OK : ERR_FORMAT;
		if (!json_scan_skip(&scan))
			return ERR_FORMAT;
	}
	return ERR_FORMAT;
}
