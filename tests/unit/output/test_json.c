#include "output/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

/* Written to by each test. */
static struct sink sink;
static struct json json;

static void start(void)
{
	sink_release(&sink);
	sink_init_memory(&sink);
	json_init(&json, &sink);
}

static int wrote(const char *wanted)
{
	if (json_status(&json) == OK && strcmp(sink_string(&sink), wanted) == 0)
		return 1;
	printf("# status %d, wrote: %s\n# wanted:          %s\n", json_status(&json),
	       sink_string(&sink), wanted);
	return 0;
}

static int string_becomes(const char *text, const char *wanted)
{
	start();
	json_string(&json, text);
	return wrote(wanted);
}

static void test_nesting(void)
{
	start();
	json_object(&json);
	json_put_unsigned(&json, "a", 1);
	json_put_array(&json, "b");
	json_signed(&json, -1);
	json_object(&json);
	json_end(&json);
	json_array(&json);
	json_bool(&json, true);
	json_null(&json);
	json_end(&json);
	json_end(&json);
	json_put_object(&json, "c");
	json_end(&json);
	json_put_bool(&json, "d", false);
	json_end(&json);
	EXPECT_THAT("commas and brackets",
		    wrote("{\"a\":1,\"b\":[-1,{},[true,null]],\"c\":{},\"d\":false}"));

	start();
	json_unsigned(&json, 1);
	json_line(&json);
	json_unsigned(&json, 2);
	json_line(&json);
	EXPECT_THAT("one value per line", wrote("1\n2\n"));
}

static void test_numbers(void)
{
	start();
	json_array(&json);
	json_unsigned(&json, UINT64_MAX);
	json_signed(&json, INT64_MIN);
	json_signed(&json, INT64_MAX);
	json_unsigned(&json, 0);
	json_unsigned(&json, UINT64_C(9007199254740993));
	json_end(&json);
	EXPECT_THAT("integers keep 64 bits",
		    wrote("[18446744073709551615,-9223372036854775808,9223372036854775807,0,"
			  "9007199254740993]"));

	start();
	json_array(&json);
	json_double(&json, 0.1);
	json_double(&json, 1e300);
	json_double(&json, -2.5);
	json_double(&json, 1.0 / 3);
	json_double(&json, NAN);
	json_double(&json, -INFINITY);
	json_end(&json);
	EXPECT_THAT("doubles read back exactly; NaN and infinity are null",
		    wrote("[0.1,1e+300,-2.5,0.3333333333333333,null,null]"));

	start();
	json_hex(&json, 0xbeef);
	EXPECT_THAT("a hash is a string of fixed width", wrote("\"0x000000000000beef\""));
}

static void test_strings(void)
{
	EXPECT(string_becomes("", "\"\""));
	EXPECT(string_becomes(NULL, "null"));
	EXPECT(string_becomes("a\"b\\c/d", "\"a\\\"b\\\\c/d\""));
	EXPECT(string_becomes("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""));
	EXPECT(string_becomes("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\""));
	EXPECT(string_becomes("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
			      "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""));
}

static void test_broken_utf8(void)
{
	EXPECT_THAT("a lone continuation", string_becomes("a\x80z", "\"a\\ufffdz\""));
	EXPECT_THAT("a truncated sequence", string_becomes("a\xe2\x82", "\"a\\ufffd\\ufffd\""));
	EXPECT_THAT("a truncated sequence before a letter",
		    string_becomes("\xc3z", "\"\\ufffdz\""));
	EXPECT_THAT("an overlong form", string_becomes("\xc0\xaf", "\"\\ufffd\\ufffd\""));
	EXPECT_THAT("an overlong form of three",
		    string_becomes("\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\""));
	EXPECT_THAT("a surrogate", string_becomes("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""));
	EXPECT_THAT("past the last code point",
		    string_becomes("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""));
	EXPECT_THAT("invalid bytes", string_becomes("\xfe\xff", "\"\\ufffd\\ufffd\""));
}

/* Every byte alone: the output is ASCII without control bytes. */
static void test_every_byte(void)
{
	int bad = 0;

	for (int byte = 1; byte < 256; byte++) {
		char text[2] = { (char)byte, '\0' };

		start();
		json_string(&json, text);
		for (const char *at = sink_string(&sink); *at != '\0'; at++)
			bad += (unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e;
	}
	EXPECT_EQUAL(bad, 0);
}

static void write_row(unsigned int number)
{
	json_put_unsigned(&json, "number", number);
	json_put_object(&json, "nested");
	json_put_array(&json, "list");
	json_unsigned(&json, 2);
	json_end(&json);
	json_put_string(&json, "text", "x");
	json_end(&json);
	json_put_null(&json, "unknown");
	json_end(&json);
}

static void test_rows(void)
{
	start();
	json_array(&json);
	json_row_names(&json);
	write_row(0);
	json_row(&json);
	write_row(1);
	json_object(&json);
	write_row(3);
	json_end(&json);
	EXPECT_THAT("a row is an array of values, a row of names one of keys",
		    strcmp(sink_string(&sink),
			   "[[\"number\",\"nested\",\"unknown\"],"
			   "[1,{\"list\":[2],\"text\":\"x\"},null],"
			   "{\"number\":3,\"nested\":{\"list\":[2],\"text\":\"x\"},"
			   "\"unknown\":null}]") == 0);
	EXPECT_EQUAL(json_status(&json), OK);

	start();
	json_row(&json);
	json_unsigned(&json, 1);
	EXPECT_THAT("a value without key is an error in a row, too",
		    json_status(&json) == ERR_FORMAT);
}

static void test_wrong_calls(void)
{
	start();
	json_object(&json);
	EXPECT_THAT("something left open is an error", json_status(&json) == ERR_FORMAT);

	start();
	json_object(&json);
	json_unsigned(&json, 1);
	json_end(&json);
	EXPECT_THAT("a value without key is an error", json_status(&json) == ERR_FORMAT);

	start();
	json_array(&json);
	json_key(&json, "a");
	EXPECT_THAT("a key in an array is an error", json_status(&json) == ERR_FORMAT);

	start();
	json_object(&json);
	json_key(&json, "a");
	json_end(&json);
	EXPECT_THAT("a key without value is an error", json_status(&json) == ERR_FORMAT);

	start();
	json_end(&json);
	EXPECT_THAT("an extra end is an error", json_status(&json) == ERR_FORMAT);

	start();
	for (int i = 0; i <= JSON_DEPTH_MAX; i++)
		json_array(&json);
	EXPECT_THAT("nesting past the limit is an error", json_status(&json) == ERR_FORMAT);

	start();
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_array(&json);
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		json_end(&json);
	EXPECT_THAT("nesting up to the limit is none", json_status(&json) == OK);
}

int main(void)
{
	test_nesting();
	test_numbers();
	test_strings();
	test_broken_utf8();
	test_every_byte();
	test_rows();
	test_wrong_calls();
	sink_release(&sink);
	return tap_done();
}
