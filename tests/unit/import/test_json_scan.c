#include "import/json_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

/* One letter per token of a text. '!' is an error. */
static const char *tokens(const char *text, size_t length)
{
	static const char letters[] = ".{}[]ks0tfn";
	static char result[256];
	struct json_scan scan;
	enum json_scan_token token;
	size_t used = 0;
	/* In memory of its exact size, so that a sanitizer catches reads past the end. */
	char *copy = malloc(length == 0 ? 1 : length);

	memcpy(copy, text, length);
	json_scan_init(&scan, copy, length);
	do {
		token = json_scan_next(&scan);
		result[used++] = token == JSON_SCAN_ERROR ? '!' : letters[token];
	} while (token > JSON_SCAN_END && used < sizeof(result) - 1);
	result[used] = '\0';
	if (token == JSON_SCAN_ERROR && (json_scan_next(&scan) != JSON_SCAN_ERROR ||
					 scan.problem == NULL || json_scan_offset(&scan) > length))
		result[used - 1] = '?';
	free(copy);
	return result;
}

static int scans(const char *text, const char *wanted)
{
	const char *got = tokens(text, strlen(text));

	if (strcmp(got, wanted) == 0)
		return 1;
	printf("# %s\n# got %s, wanted %s\n", text, got, wanted);
	return 0;
}

/* It is rejected, wherever. */
static int is_refused(const char *text)
{
	const char *got = tokens(text, strlen(text));

	if (got[strlen(got) - 1] == '!')
		return 1;
	printf("# taken: %s as %s\n", text, got);
	return 0;
}

static void test_structure(void)
{
	EXPECT(scans("{}", "{}."));
	EXPECT(scans("[]", "[]."));
	EXPECT(scans(" {\t\"a\" :\r\n1 , \"b\":[true,false,null,-0.5e+3,\"\"] } ",
		     "{k0k[tfn0s]}."));
	EXPECT(scans("[[[{}]],{\"x\":{\"y\":[]}}]", "[[[{}]]{k{k[]}}]."));
	EXPECT(scans("7", "0."));
	EXPECT(scans("\"x\"", "s."));
	EXPECT_THAT("no value at all is an error", scans("", "!") && scans("  ", "!"));
}

static const char *const wrong[] = {
	"{",
	"[",
	"{\"a\"",
	"{\"a\":",
	"{\"a\":1",
	"[1",
	"[1,",
	"{]",
	"[}",
	"{\"a\":1]",
	"[1}",
	"{,}",
	"[,]",
	"[1,]",
	"{\"a\":1,}",
	"{\"a\" 1}",
	"{1:2}",
	"{a:1}",
	"[1 2]",
	"1 2",
	"{}{}",
	"tru",
	"nul",
	"True",
	"nan",
	"Infinity",
	"'a'",
	"\"a",
	"\"\\\"",
	"\"\\x\"",
	"\"\\u12\"",
	"\"\\u12g4\"",
	"\"\t\"",
	"\"\n\"",
	"01",
	"-",
	"-a",
	"+1",
	".5",
	"1.",
	"1.e3",
	"1e",
	"1e+",
	"0x10",
	"1_000",
	"/**/1",
	"\"\x80\"",
	"\"\xc0\x80\"",
	"\"\xed\xa0\x80\"",
	"\"\xf4\x90\x80\x80\"",
	"\"\xe2\x82\"",
	"\"\xff\"",
	"\xef\xbb\xbf{}",
};

static void test_refusals(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		EXPECT_THAT(wrong[i][0] >= ' ' && wrong[i][0] < 0x7f && !strchr(wrong[i], '\n') &&
					    !strchr(wrong[i], '#') && strlen(wrong[i]) < 9
				    ? wrong[i]
				    : "a text that is no JSON",
			    is_refused(wrong[i]));
	EXPECT_THAT("a NUL in a string is an error", strcmp(tokens("\"a\0b\"", 5), "!") == 0);
	EXPECT_THAT("the end of the text is its end", strcmp(tokens("[1,2]", 3), "[0!") == 0);
}

static void test_depth(void)
{
	char text[2 * JSON_SCAN_DEPTH_MAX + 3];
	size_t most = JSON_SCAN_DEPTH_MAX;
	const char *got;

	memset(text, '[', most);
	memset(text + most, ']', most);
	got = tokens(text, 2 * most);
	EXPECT_THAT("64 levels are fine", got[strlen(got) - 1] == '.');
	memset(text, '[', most + 1);
	memset(text + most + 1, ']', most + 1);
	got = tokens(text, 2 * most + 2);
	EXPECT_THAT("65 are not", got[strlen(got) - 1] == '!');
}

/* The value of an array's only item. */
static struct json_scan item(const char *text)
{
	struct json_scan scan;

	json_scan_init(&scan, text, strlen(text));
	json_scan_next(&scan);
	json_scan_next(&scan);
	return scan;
}

static void test_numbers(void)
{
	struct json_scan scan = item("[18446744073709551615]");
	uint64_t number = 5;
	int64_t with_sign = 5;
	double real = 5;

	EXPECT(json_scan_unsigned(&scan, &number) && number == UINT64_MAX);
	EXPECT(!json_scan_signed(&scan, &with_sign) && with_sign == 5);
	scan = item("[18446744073709551616]");
	EXPECT(!json_scan_unsigned(&scan, &number));
	scan = item("[9007199254740993]");
	EXPECT_THAT("integers above 2^53 stay exact",
		    json_scan_unsigned(&scan, &number) && number == UINT64_C(9007199254740993));
	scan = item("[-9223372036854775808]");
	EXPECT(json_scan_signed(&scan, &with_sign) && with_sign == INT64_MIN);
	scan = item("[-9223372036854775809]");
	EXPECT(!json_scan_signed(&scan, &with_sign));
	scan = item("[-0]");
	EXPECT(json_scan_signed(&scan, &with_sign) && with_sign == 0);
	EXPECT(!json_scan_unsigned(&scan, &number));
	scan = item("[1.0]");
	EXPECT_THAT("a fraction is not an integer, even .0",
		    !json_scan_unsigned(&scan, &number) && !json_scan_signed(&scan, &with_sign));
	EXPECT(json_scan_double(&scan, &real) && real == 1.0);
	scan = item("[-2.5E-3]");
	EXPECT(json_scan_double(&scan, &real) && fabs(real + 0.0025) < 1e-12);
	scan = item("[\"7\"]");
	EXPECT_THAT("a string is not a number",
		    !json_scan_unsigned(&scan, &number) && !json_scan_double(&scan, &real));
}

static uint64_t thousandths(const char *text)
{
	struct json_scan scan = item(text);
	uint64_t value;

	return json_scan_thousandths(&scan, &value) ? value : UINT64_MAX;
}

static void test_thousandths(void)
{
	EXPECT_EQUAL(thousandths("[5663]"), 5663000);
	EXPECT_EQUAL(thousandths("[5663.25]"), 5663250);
	EXPECT_EQUAL(thousandths("[0.0004]"), 0);
	EXPECT_EQUAL(thousandths("[0.0005]"), 1);
	EXPECT_EQUAL(thousandths("[0.9999]"), 1000);
	EXPECT_EQUAL(thousandths("[1e3]"), 1000000);
	EXPECT_EQUAL(thousandths("[18446744073709550]"), 18446744073709550000ull);
	EXPECT_EQUAL(thousandths("[18446744073709551615]"), UINT64_MAX);
	EXPECT_EQUAL(thousandths("[-1]"), UINT64_MAX);
	EXPECT_EQUAL(thousandths("[1e30]"), UINT64_MAX);
}

static int text_is(const char *json, const char *wanted, size_t size, bool is_whole)
{
	struct json_scan scan = item(json);
	char text[64] = "";

	if (json_scan_text(&scan, text, size) == is_whole && strcmp(text, wanted) == 0 &&
	    (!is_whole || json_scan_is(&scan, wanted)))
		return 1;
	printf("# %s became %s\n", json, text);
	return 0;
}

static void test_texts(void)
{
	EXPECT(text_is("[\"plain\"]", "plain", 64, true));
	EXPECT(text_is("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "\"\\/\b\f\n\r\t", 64, true));
	EXPECT(text_is("[\"\\u0041\\u00e9\\u20AC\"]", "A\xc3\xa9\xe2\x82\xac", 64, true));
	EXPECT_THAT("a pair of surrogates is one character",
		    text_is("[\"\\ud83d\\ude00!\"]", "\xf0\x9f\x98\x80!", 64, true));
	EXPECT_THAT("a lone one is replaced",
		    text_is("[\"\\ud83dx\"]", "\xef\xbf\xbdx", 64, true) &&
			    text_is("[\"\\ude00\\ud83d\"]", "\xef\xbf\xbd\xef\xbf\xbd", 64, true));
	EXPECT_THAT("a NUL does not end the text early", text_is("[\"a\\u0000b\"]",
								 "a\xef\xbf\xbd"
								 "b",
								 64, true));
	EXPECT(text_is("[\"\xf0\x9f\x98\x80\"]", "\xf0\x9f\x98\x80", 64, true));
	EXPECT_THAT("what does not fit is cut between characters",
		    text_is("[\"ab\xc3\xa9\"]", "ab", 4, false) &&
			    text_is("[\"ab\xc3\xa9\"]", "ab\xc3\xa9", 5, true));
	EXPECT_THAT("strings of any length are delimited correctly",
		    text_is("[\"12345678\"]", "12345678", 64, true) &&
			    text_is("[\"1234567\"]", "1234567", 64, true) &&
			    text_is("[\"123456789abcdef\"]", "123456789abcdef", 64, true));
}

static void test_skipping(void)
{
	static const char text[] = "{\"a\":{\"x\":[1,{\"y\":2}]},\"b\":7,\"c\":\"s\",\"d\":[{}]}";
	struct json_scan scan;
	uint64_t number = 0;

	json_scan_init(&scan, text, strlen(text));
	json_scan_next(&scan);
	json_scan_next(&scan);
	EXPECT_THAT("a whole value is skipped", json_scan_skip(&scan) &&
							json_scan_next(&scan) == JSON_SCAN_KEY &&
							json_scan_is(&scan, "b"));
	json_scan_next(&scan);
	EXPECT_THAT("a value that was read is not skipped again",
		    json_scan_unsigned(&scan, &number) && number == 7 && json_scan_skip(&scan));
	json_scan_next(&scan);
	EXPECT(json_scan_is(&scan, "c") && json_scan_skip(&scan));
	json_scan_next(&scan);
	json_scan_next(&scan);
	EXPECT_THAT("the rest of an array, too",
		    json_scan_skip(&scan) && json_scan_next(&scan) == JSON_SCAN_OBJECT_END &&
			    json_scan_next(&scan) == JSON_SCAN_END);
	json_scan_init(&scan, "{\"a\":[1,}", 9);
	json_scan_next(&scan);
	json_scan_next(&scan);
	EXPECT_THAT("skipped values are checked", !json_scan_skip(&scan) && scan.problem);
}

static const struct json_scan_key keys[] = { JSON_SCAN_KEY_OF("one"), JSON_SCAN_KEY_OF("two"),
					     JSON_SCAN_KEY_OF("three"),
					     JSON_SCAN_KEY_OF("a longer key") };

/* The indexes of all keys, and their values if they are plain. */
static const char *walk(const char *text)
{
	static char result[128];
	struct json_scan scan;
	char *copy = malloc(strlen(text));
	size_t used = 0;
	uint64_t value;
	int key, hint = 0;

	memcpy(copy, text, strlen(text));
	json_scan_init(&scan, copy, strlen(text));
	json_scan_next(&scan);
	while ((key = json_scan_next_key(&scan, keys, 4, &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
		used += (size_t)snprintf(result + used, sizeof(result) - used, "%d", key);
		if (json_scan_take(&scan, &value))
			used += (size_t)snprintf(result + used, sizeof(result) - used, "=%llu",
						 (unsigned long long)value);
		else
			json_scan_skip(&scan);
		used += (size_t)snprintf(result + used, sizeof(result) - used, " ");
	}
	snprintf(result + used, sizeof(result) - used, "%s",
		 key == JSON_SCAN_KEY_ERROR		  ? "!"
		 : json_scan_next(&scan) == JSON_SCAN_END ? "."
							  : "?");
	free(copy);
	return result;
}

static int walks(const char *text, const char *wanted)
{
	const char *got = walk(text);

	if (strcmp(got, wanted) == 0)
		return 1;
	printf("# %s: got %s, wanted %s\n", text, got, wanted);
	return 0;
}

static void test_keys(void)
{
	EXPECT_THAT("in their order",
		    walks("{\"one\":1,\"two\":22,\"three\":12345678,\"a longer key\":0}",
			  "0=1 1=22 2=12345678 3=0 ."));
	EXPECT_THAT("in another order, with blanks and unknown keys",
		    walks("{ \"a longer key\" : 4 , \"x\":9,\"one\" :1,\"tw\\u006f\": 2}",
			  "3 -1=9 0=1 1 ."));
	EXPECT(walks("{}", "."));
	EXPECT(walks("{\"one\":1", "0 !"));
	EXPECT(walks("{\"one\":1,}", "0=1 !"));
	EXPECT(walks("{\"one\":1 \"two\":2}", "0=1 !"));
	EXPECT(walks("{\"one\":1]", "0=1 !"));
	EXPECT_THAT("numbers that are not plain are not taken",
		    walks("{\"one\":01}", "0 !") && walks("{\"one\":1.5}", "0 .") &&
			    walks("{\"one\":1e2,\"two\":-3}", "0 1 .") &&
			    walks("{\"one\":12345678901234567890}", "0 .") &&
			    walks("{\"one\":1234567890123456789}", "0=1234567890123456789 ."));
	EXPECT_THAT("a key in an array is an error", walks("{\"one\":[1,\"two\":2]}", "0 !"));
}

static void test_digits(void)
{
	char text[64];
	uint64_t value = 0, wanted;
	int mistakes = 0;

	for (size_t digits = 1; digits <= 20; digits++) {
		wanted = 0;
		for (size_t i = 0; i < digits; i++) {
			text[i] = (char)('1' + (i * 7 + digits) % 9);
			wanted = wanted * 10 + (uint64_t)(text[i] - '0');
		}
		for (size_t after = 0; after < 12; after++) {
			const char *end;

			memset(text + digits, ',', after);
			end = json_scan_digits(text, text + digits + after, &value);
			mistakes +=
				digits > 19 ? end != NULL : end != text + digits || value != wanted;
		}
	}
	EXPECT_EQUAL(mistakes, 0);
}

static void test_again(void)
{
	static const char text[] = "{\"h\":{\"id\":1},\"m\":{\"a\":77,\"b\":2}}";
	static const char object[] = "{\"id\":1}";
	struct json_scan scan;
	uint64_t number = 0;

	json_scan_init(&scan, text, strlen(text));
	json_scan_next(&scan);
	EXPECT(!json_scan_again(&scan, object, strlen(object)));
	json_scan_next(&scan);
	EXPECT_THAT("what was seen before is skipped",
		    json_scan_again(&scan, object, strlen(object)) &&
			    json_scan_next(&scan) == JSON_SCAN_KEY && json_scan_is(&scan, "m"));
	EXPECT(!json_scan_again_but(&scan, "{\"a\":", 5, ",\"b\":3}", 7, &number));
	EXPECT_THAT("except for one number",
		    json_scan_again_but(&scan, "{\"a\":", 5, ",\"b\":2}", 7, &number) &&
			    number == 77 && json_scan_next(&scan) == JSON_SCAN_OBJECT_END &&
			    json_scan_next(&scan) == JSON_SCAN_END);
}

/* Numbers up to 2^64 - 1, with twenty digits and more. */
static void test_largest(void)
{
	static const struct {
		const char *text;
		bool fits;
		uint64_t number;
	} cases[] = {
		{ "[9999999999999999999]", true, UINT64_C(9999999999999999999) },
		{ "[18446744073709551609]", true, UINT64_MAX - 6 },
		{ "[18446744073709551615]", true, UINT64_MAX },
		{ "[18446744073709551616]", false, 0 },
		{ "[18446744073709551620]", false, 0 },
		{ "[20000000000000000000]", false, 0 },
		{ "[184467440737095516150]", false, 0 },
		{ "[100000000000000000000000]", false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_scan scan;
		uint64_t number = 0;

		json_scan_init(&scan, cases[i].text, strlen(cases[i].text));
		json_scan_next(&scan);
		json_scan_next(&scan);
		EXPECT_THAT(cases[i].text, json_scan_unsigned(&scan, &number) == cases[i].fits &&
						   number == cases[i].number);
	}
}

int main(void)
{
	test_largest();
	test_structure();
	test_refusals();
	test_depth();
	test_numbers();
	test_thousandths();
	test_texts();
	test_skipping();
	test_keys();
	test_digits();
	test_again();
	return tap_done();
}
