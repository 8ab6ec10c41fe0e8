/* Pickles and JSON as plain values; whatever names a class or is damaged is refused, with its place. */
#include "import/plain_values.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define BYTES(text) (text), sizeof(text) - 1

static struct plain_values values;

static const struct plain_value *unpickle(const char *bytes, size_t length)
{
	plain_values_release(&values);
	return plain_values_pickle(&values, bytes, length);
}

static const struct plain_value *parse(const char *text)
{
	plain_values_release(&values);
	return plain_values_json(&values, text, strlen(text));
}

static int64_t integer_of(const struct plain_value *value)
{
	int64_t integer = INT64_MIN;

	plain_integer(value, &integer);
	return integer;
}

static void test_numbers(void)
{
	double real = 0;
	bool truth = false;

	EXPECT_EQUAL(integer_of(unpickle(BYTES("\x80\x02K\xff."))), 255);
	EXPECT_EQUAL(integer_of(unpickle(BYTES("\x80\x02M\x01\x02."))), 0x201);
	EXPECT_EQUAL(integer_of(unpickle(BYTES("\x80\x02J\xfe\xff\xff\xff."))), -2);
	EXPECT_EQUAL(integer_of(unpickle(BYTES("\x80\x02\x8a\x00."))), 0);
	EXPECT_EQUAL(integer_of(unpickle(BYTES("\x80\x02\x8a\x01\xff."))), -1);
	EXPECT_EQUAL(
		integer_of(unpickle(BYTES("\x80\x02\x8a\x08\x01\x00\x00\x00\x00\x00\x00\x40."))),
		INT64_C(0x4000000000000001));
	EXPECT(plain_real(unpickle(BYTES("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00.")), &real) &&
	       real == 1.5);
	EXPECT(plain_real(unpickle(BYTES("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.")),
			  &real) &&
	       real == 18446744073709551616.0);
	EXPECT(plain_truth(unpickle(BYTES("\x80\x02\x88.")), &truth) && truth);
	EXPECT_THAT("none is a value of its own",
		    unpickle(BYTES("\x80\x02N."))->kind == PLAIN_NONE);
	EXPECT_EQUAL(integer_of(parse("-17")), -17);
	EXPECT_THAT("an integral number is an integer", integer_of(parse("1e3")) == 1000);
	EXPECT_THAT("a fraction is not", integer_of(parse("1.5")) == INT64_MIN);
}

static void test_texts(void)
{
	char text[8];

	EXPECT(plain_is(unpickle(BYTES("\x80\x02X\x03\x00\x00\x00"
				       "abc.")),
			"abc"));
	EXPECT(plain_is(unpickle(BYTES("\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x03"
				       "abc.")),
			"abc"));
	EXPECT(plain_is(parse("\"a\\u0062c\""), "abc"));
	EXPECT(plain_text(parse("\"a\\nb\""), text, sizeof(text)) && strcmp(text, "a?b") == 0);
	EXPECT_THAT("a text is cut between characters",
		    plain_text(parse("\"123456\xc3\xa4\""), text, sizeof(text)) &&
			    strcmp(text, "123456") == 0);
	EXPECT(!plain_text(parse("1"), text, sizeof(text)) &&
	       !plain_text(NULL, text, sizeof(text)));
}

static void test_containers(void)
{
	/* {"a": [1, 2, 3], "b": (4, 5)}: the list gets its items in two parts. */
	const struct plain_value *map = unpickle(BYTES("\x80\x02}q\x00(X\x01\x00\x00\x00"
						       "aq\x01]q\x02(K\x01K\x02"
						       "eK\x03"
						       "a"
						       "X\x01\x00\x00\x00"
						       "bK\x04K\x05\x86u."));
	const struct plain_value *list = plain_get(map, "a");

	EXPECT_EQUAL(plain_count(list), 3);
	EXPECT(plain_count(list) == 3 && integer_of(list->items[2]) == 3);
	EXPECT_EQUAL(plain_count(plain_get(map, "b")), 2);
	EXPECT_THAT("other keys are missing",
		    plain_get(map, "c") == NULL && plain_get(list, "a") == NULL);
	map = parse("{\"a\":[1,2,{\"b\":null}],\"c\":true}");
	EXPECT_EQUAL(plain_count(plain_get(map, "a")), 3);
	EXPECT(plain_get(map, "c")->kind == PLAIN_TRUTH);
	/* The second item is the first one again. */
	list = unpickle(BYTES("\x80\x02](X\x01\x00\x00\x00"
			      "aq\x05h\x05"
			      "e."));
	EXPECT_THAT("a memo place may be the next one only", list == NULL);
	list = unpickle(BYTES("\x80\x02](X\x01\x00\x00\x00"
			      "aq\x01h\x01"
			      "e."));
	EXPECT(plain_count(list) == 2 && list->items[0] == list->items[1]);
	list = unpickle(BYTES("\x80\x02]q\x00h\x00"
			      "a."));
	EXPECT_THAT("a list may contain itself", plain_count(list) == 1 && list->items[0] == list);
}

static void test_refused(void)
{
	static const struct {
		const char *bytes;
		size_t length;
		size_t at;
		const char *problem;
	} cases[] = {
		{ BYTES("\x80\x02"
			"cos\nsystem\n(X\x02\x00\x00\x00idtR."),
		  2, "only plain values are read" },
		{ BYTES("\x80\x04\x8c\x02os\x8c\x06system\x93."), 14,
		  "only plain values are read" },
		{ BYTES("\x80\x07K\x01."), 0, "unknown pickle protocol" },
		{ BYTES("\x80\x02X\x09\x00\x00\x00"
			"abc."),
		  2, "the file ends too early" },
		{ BYTES("\x80\x02K\x01"), 4, "the file ends too early" },
		{ BYTES("\x80\x02(K\x01."), 5, "it ends inside a value" },
		{ BYTES("\x80\x02."), 2, "it ends inside a value" },
		{ BYTES("\x80\x02K\x01(a."), 5, "items for something that has none" },
		{ BYTES("\x80\x02}(K\x01u."), 6, "a key without a value" },
		{ BYTES("\x80\x02h\x00."), 2, "a memo place without a value" },
		{ BYTES("\x80\x02t."), 2, "an end without a beginning" },
		{ BYTES("\x80\x02"
			"0."),
		  2, "a value is missing" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EXPECT(unpickle(cases[i].bytes, cases[i].length) == NULL);
		EXPECT(values.problem != NULL && strstr(values.problem, cases[i].problem) != NULL);
		EXPECT_EQUAL(values.problem_at, cases[i].at);
	}
	EXPECT(parse("{\"a\":[1,") == NULL && values.problem != NULL);
}

/* Every prefix of a valid pickle is refused, none is read past its end (the sanitizers look). */
static void test_prefixes(void)
{
	static const char whole[] = "\x80\x02}q\x00(X\x01\x00\x00\x00"
				    "aq\x01](K\x01K\x02"
				    "eX\x01\x00\x00\x00"
				    "b"
				    "G\x3f\xf8\x00\x00\x00\x00\x00\x00u.";
	size_t read = 0;

	for (size_t length = 0; length < sizeof(whole) - 1; length++) {
		char *copy = malloc(length + 1);

		if (copy == NULL)
			break;
		memcpy(copy, whole, length);
		read += unpickle(copy, length) != NULL;
		free(copy);
	}
	EXPECT_EQUAL(read, 0);
	EXPECT(unpickle(BYTES(whole)) != NULL);
}

/* Numbers of more than 8 bytes are reals, with their sign; memo places end at the next one but one. */
static void test_limits(void)
{
	const struct plain_value *list;
	double real = 0;

	EXPECT(plain_real(unpickle(BYTES("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff.")),
			  &real) &&
	       real == -1);
	EXPECT(plain_real(unpickle(BYTES("\x80\x02\x8a\x09\x02\x00\x00\x00\x00\x00\x00\x00\x80.")),
			  &real) &&
	       real == -128 * 18446744073709551616.0 + 2);
	EXPECT(plain_real(unpickle(BYTES("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.")),
			  &real) &&
	       real == 9223372036854775808.0);
	EXPECT_EQUAL(
		integer_of(unpickle(BYTES("\x80\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."))),
		INT64_MIN);
	EXPECT_EQUAL(integer_of(unpickle(BYTES("\x80\x02\x8a\x02\x00\x80."))), -32768);
	EXPECT_EQUAL(integer_of(unpickle(BYTES("\x80\x02\x8a\x02\xff\x7f."))), 32767);
	EXPECT(unpickle(BYTES("\x80\x02\x8a\x03\x01\x02")) == NULL &&
	       strcmp(values.problem, "the file ends too early") == 0);
	/* Two values so far: place 3 is the last one allowed. */
	list = unpickle(BYTES("\x80\x02](K\x07q\x03h\x03"
			      "e."));
	EXPECT(plain_count(list) == 2 && integer_of(list->items[1]) == 7);
	EXPECT(unpickle(BYTES("\x80\x02](K\x07q\x04"
			      "e.")) == NULL &&
	       strcmp(values.problem, "a memo place beyond all values") == 0);
	EXPECT_THAT("items for a list below the mark that is open", unpickle(BYTES("\x80\x02](K\x01"
										   "a"
										   "e.")) == NULL);
}

/* A list that grows in many parts, and values in many blocks: nothing is lost or mixed up. */
static void test_many(void)
{
	enum { PARTS = 300, EACH = 100 };
	static char pickle[PARTS * (EACH * 3 + 2) + 64];
	char *at = pickle;
	const struct plain_value *list;
	size_t wrong = 0;

	memcpy(at, "\x80\x02]", 3);
	at += 3;
	for (int part = 0; part < PARTS; part++) {
		*at++ = '(';
		for (int i = 0; i < EACH; i++) {
			*at++ = 'M';
			*at++ = (char)i;
			*at++ = (char)part;
		}
		*at++ = 'e';
	}
	*at++ = '.';
	list = unpickle(pickle, (size_t)(at - pickle));
	EXPECT_EQUAL(plain_count(list), PARTS * EACH);
	for (int i = 0; i < PARTS * EACH; i++)
		wrong += integer_of(list->items[i]) != i % EACH + (i / EACH % 256) * 256;
	EXPECT_EQUAL(wrong, 0);
	EXPECT_THAT("memory is counted",
		    values.memory >= PARTS * EACH * sizeof(struct plain_value) &&
			    values.memory < 64 * PARTS * EACH * sizeof(void *));
}

int main(void)
{
	test_limits();
	test_many();
	plain_values_init(&values);
	test_numbers();
	test_texts();
	test_containers();
	test_refused();
	test_prefixes();
	plain_values_release(&values);
	return tap_done();
}
