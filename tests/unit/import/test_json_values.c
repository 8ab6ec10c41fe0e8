/* Every token of JSON texts with all its values, and where wrong ones fail; also of every beginning of each text. */
#include "import/json_scan.h"

#include "common/attributes.h"
#include "tests/support/shown_text.h"
#include "tests/tap.h"

static void show_number(const struct json_scan *scan)
{
	uint64_t whole, thousandths;
	int64_t number;
	double real;

	show(" number %.*s%s:", (int)scan->length, scan->text, scan->is_plain ? " (plain)" : "");
	if (json_scan_unsigned(scan, &whole))
		show(" unsigned %" PRIu64, whole);
	if (json_scan_signed(scan, &number))
		show(" signed %" PRId64, number);
	if (json_scan_double(scan, &real))
		show(" double %.17g", real);
	if (json_scan_thousandths(scan, &thousandths))
		show(" thousandths %" PRIu64, thousandths);
	show("\n");
}

static void show_string(const struct json_scan *scan, const char *name)
{
	char text[64], cut[4];
	bool is_whole = json_scan_text(scan, text, sizeof(text));

	show(" %s%s '", name, scan->has_escapes ? " (escapes)" : "");
	for (const char *at = text; *at != '\0'; at++)
		show((unsigned char)*at >= 0x20 && (unsigned char)*at < 0x7f ? "%c" : "<%02x>",
		     (unsigned char)*at);
	show("'%s, %zu bytes", is_whole ? "" : " (cut)", scan->length);
	is_whole = json_scan_text(scan, cut, sizeof(cut));
	show("; cut to %zu%s\n", strlen(cut), is_whole ? " (whole)" : "");
}

/* All tokens of a text in memory of its size; returns whether it is right. */
static bool scan_all(const char *text, size_t length, bool is_shown)
{
	static const char *const names[] = { "end",    "{",	 "}",	 "[",	  "]",	 "key",
					     "string", "number", "true", "false", "null" };
	char *copy = malloc(length + 1);
	enum json_scan_token token;
	struct json_scan scan;

	memcpy(copy + 1, text, length);
	json_scan_init(&scan, copy + 1, length);
	while ((token = json_scan_next(&scan)) > JSON_SCAN_END) {
		if (!is_shown)
			continue;
		if (token == JSON_SCAN_NUMBER)
			show_number(&scan);
		else if (token == JSON_SCAN_STRING || token == JSON_SCAN_KEY)
			show_string(&scan, names[token]);
		else
			show(" %s\n", names[token]);
	}
	if (token == JSON_SCAN_ERROR && is_shown)
		show(" wrong at %zu: %s\n", json_scan_offset(&scan), scan.problem);
	free(copy);
	return token == JSON_SCAN_END;
}

/* The same through keys and skipped values. */
static bool skip_all(const char *text, size_t length)
{
	static const struct json_scan_key keys[] = { JSON_SCAN_KEY_OF("a"),
						     JSON_SCAN_KEY_OF("bcdefghij"),
						     JSON_SCAN_KEY_OF("k") };
	char *copy = malloc(length + 1);
	struct json_scan scan;
	int key = JSON_SCAN_KEY_ERROR, hint = 0;
	bool is_right = false;

	memcpy(copy + 1, text, length);
	json_scan_init(&scan, copy + 1, length);
	if (json_scan_next(&scan) == JSON_SCAN_OBJECT)
		while ((key = json_scan_next_key(&scan, keys, 3, &hint)) >= JSON_SCAN_KEY_UNKNOWN)
			if (!json_scan_skip(&scan))
				break;
	is_right = key == JSON_SCAN_KEY_NONE && json_scan_next(&scan) == JSON_SCAN_END;
	free(copy);
	return is_right;
}

static const char *const right[] = {
	"{\"a\":1,\"bcdefghij\":[1,-2,3.5],\"k\":{\"x\":null},\"other\":\"text\"}",
	" {\t\"k\" :\r\n12345678 , \"a\":[true,false,null,-0.5e+3,\"\"],\"a\":0 } ",
	"{\"bcdefghij\":18446744073709551615,\"\\u0061\":"
	"\"\\u00e9\\ud83d\\ude00\\u0000\\ud800x\\udc00\\n\\\"\\/\\\\\"}",
	"{\"a\":\"01234567\\b\\f\\r\\t0123456789abcdef\x7f\",\"b\":"
	"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}",
	"[0,-0,9,10,1234567,12345678,123456789,1234567890123456,1234567890123456789]",
	"[18446744073709551614,18446744073709551615,18446744073709551616,99999999999999999999,"
	"100000000000000000000]",
	"[9223372036854775807,9223372036854775808,-9223372036854775808,-9223372036854775809]",
	"[0.5,0.25,0.0004,0.0005,1.9994,1.9995,123.4567891,18446744073709550.999,18446744073709551,"
	"1e3,1.5E-3,1e15,9e14,-1.5]",
};

static const char *const wrong[] = {
	"{\"a\" 1}", "{\"a\":1 \"b\":2}",
	"[1 2]",     "{\"a\":1]",
	"[1}",	     "{1:2}",
	"{,}",	     "[,]",
	"01",	     "-",
	"-a",	     "1.",
	"1.e3",	     "1e",
	"1e+",	     "1.5x",
	"tru",	     "fals",
	"nul",	     "nuII",
	"\"\\x\"",   "\"\\u12g4\"",
	"\"\\u12\"", "\"\t\"",
	"\"\x1f\"",  "\"\x80\"",
	"\"\xe2\"",  "\"12345678\x01\"",
	"7 8",	     "{}x",
	"",	     "  ",
};

int main(void)
{
	size_t count = 0, taken = 0, skipped = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(right); i++) {
		show("=== right %zu\n", i);
		EXPECT(scan_all(right[i], strlen(right[i]), true));
		if (strchr(right[i], '{') != NULL)
			EXPECT(skip_all(right[i], strlen(right[i])));
		for (size_t length = 0; length + 1 < strlen(right[i]); length++) {
			count++;
			taken += scan_all(right[i], length, false);
			skipped += skip_all(right[i], length);
		}
	}
	EXPECT_THAT("a beginning is no whole text", count > 500 && taken == 0 && skipped == 0);
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		show("=== wrong %zu\n", i);
		EXPECT(!scan_all(wrong[i], strlen(wrong[i]), true));
	}
	EXPECT_THAT("tokens have the expected values",
		    shown_is_expected("tests/unit/import/expected/json_values.txt"));
	return tap_done();
}
