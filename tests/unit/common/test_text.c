#include "common/text.h"

#include <string.h>

#include "common/attributes.h"
#include "tests/tap.h"

static bool is(const char *got, const char *wanted)
{
	if (strcmp(got, wanted) == 0)
		return true;
	printf("# got \"%s\", wanted \"%s\"\n", got, wanted);
	return false;
}

static void copies_are_terminated_and_say_when_cut(void)
{
	char to[8] = "#######";

	EXPECT(text_copy(to, sizeof(to), "seven77") && is(to, "seven77"));
	EXPECT(!text_copy(to, sizeof(to), "eight888") && is(to, "eight88"));
	EXPECT(text_copy(to, sizeof(to), NULL) && is(to, ""));
	EXPECT(!text_copy(to, 1, "x") && is(to, ""));
}

static void formats_are_bounded(void)
{
	char to[8];

	EXPECT(text_format(to, sizeof(to), "%d%s", 12, "345") && is(to, "12345"));
	EXPECT(!text_format(to, sizeof(to), "%s", "12345678") && is(to, "1234567"));
	EXPECT_THAT("nothing can be appended to a full buffer",
		    !text_append(to, sizeof(to), "%s", "8") && is(to, "1234567") &&
			    text_append(to, sizeof(to), "%s", ""));
	EXPECT(text_format(to, sizeof(to), "12") && text_append(to, sizeof(to), "%d", 34567) &&
	       is(to, "1234567"));
}

static void fields_need_no_terminator(void)
{
	const char field[4] = { 'a', 'b', 'c', 'd' };
	char to[8];

	text_from_field(to, sizeof(to), field, sizeof(field));
	EXPECT(is(to, "abcd"));
	text_from_field(to, 3, field, sizeof(field));
	EXPECT(is(to, "ab"));
	text_from_field(to, sizeof(to), "a\nb\x7f\x1b\xc3", 7);
	EXPECT(is(to, "a?b??\xc3"));
}

static void sizes_have_units(void)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} right[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "4096B", 4096 },
		{ "64K", 65536 },
		{ "64KiB", 65536 },
		{ "64kB", 64000 },
		{ "8M", 8388608 },
		{ "8MiB", 8388608 },
		{ "8MB", 8000000 },
		{ "2GiB", 2147483648u },
		{ "2GB", 2000000000u },
		{ "1TiB", UINT64_C(1099511627776) },
		{ "18446744073709551615", UINT64_MAX },
		{ "16777215T", UINT64_C(18446742974197923840) },
	};
	static const char *const wrong[] = { "",      "MiB", "-1",   " 8", "8 MiB", "8mib",
					     "8MiBs", "0x8", "1.5G", "+8", "8\n" };
	uint64_t bytes;

	for (size_t i = 0; i < ARRAY_LENGTH(right); i++)
		EXPECT_THAT(right[i].text,
			    text_size(right[i].text, &bytes) == OK && bytes == right[i].bytes);
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
		EXPECT(text_size(wrong[i], &bytes) == ERR_FORMAT);
	EXPECT_EQUAL(text_size("18446744073709551616", &bytes), ERR_RANGE);
	EXPECT_EQUAL(text_size("16777216T", &bytes), ERR_RANGE);
	bytes = 7;
	text_size("wrong", &bytes);
	EXPECT_THAT("nothing is written on failure", bytes == 7);
}

static void numbers_are_whole_and_within(void)
{
	int64_t number = 7;

	EXPECT(text_number("42", 0, 100, &number) == OK && number == 42);
	EXPECT(text_number("-9223372036854775808", INT64_MIN, INT64_MAX, &number) == OK &&
	       number == INT64_MIN);
	EXPECT_EQUAL(text_number("101", 0, 100, &number), ERR_RANGE);
	EXPECT_EQUAL(text_number("-1", 0, 100, &number), ERR_RANGE);
	EXPECT_EQUAL(text_number("9223372036854775808", INT64_MIN, INT64_MAX, &number), ERR_RANGE);
	EXPECT_EQUAL(text_number("", 0, 100, &number), ERR_FORMAT);
	EXPECT_EQUAL(text_number("-", 0, 100, &number), ERR_FORMAT);
	EXPECT_EQUAL(text_number("4 2", 0, 100, &number), ERR_FORMAT);
	EXPECT_EQUAL(text_number(" 42", 0, 100, &number), ERR_FORMAT);
	EXPECT_EQUAL(text_number("4x", 0, 100, &number), ERR_FORMAT);
	EXPECT(number == INT64_MIN);
}

static void patterns_expand(void)
{
	const struct text_names names = { "node/7", "job-9", "3", 4711 };
	char to[32];

	EXPECT(text_expand(to, sizeof(to), "a/%j/%h.%r.%p%%", &names) == OK &&
	       is(to, "a/job-9/node_7.3.4711%"));
	EXPECT(text_expand(to, sizeof(to), "", &names) == OK && is(to, ""));
	EXPECT_EQUAL(text_expand(to, sizeof(to), "%x", &names), ERR_FORMAT);
	EXPECT_EQUAL(text_expand(to, sizeof(to), "end%", &names), ERR_FORMAT);
	EXPECT_EQUAL(text_expand(to, 5, "%j", &names), ERR_NO_SPACE);
	EXPECT(text_expand(to, 6, "%j", &names) == OK && is(to, "job-9"));
}

static void test_endings(void)
{
	EXPECT(text_ends_with("run.json", ".json") && !text_ends_with("run.jsonl", ".json"));
	EXPECT(!text_ends_with(".json", ".json") && !text_ends_with("", ".json"));
}

int main(void)
{
	test_endings();
	copies_are_terminated_and_say_when_cut();
	formats_are_bounded();
	fields_need_no_terminator();
	sizes_have_units();
	numbers_are_whole_and_within();
	patterns_expand();
	return tap_done();
}
