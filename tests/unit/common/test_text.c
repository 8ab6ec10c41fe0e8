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
	EXPECT_THAT("nothing fits, too", text_format(to, 1, "%s", "") && is(to, ""));
	EXPECT(!text_format(to, sizeof(to), "%s", "12345678"));
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
	EXPECT(is(to, "a?b??"));
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

static void test_clean(void)
{
	static const struct {
		const char *what, *text, *clean;
	} cases[] = {
		{ "plain text stays", "train-7 (a/b)", "train-7 (a/b)" },
		{ "letters of all languages stay", "\u8a13\u7df4 \u00e9 e\u0301 \U0001f600",
		  "\u8a13\u7df4 \u00e9 e\u0301 \U0001f600" },
		{ "C0 and DEL", "a\x1b[2Jb\x07\nc\x7f", "a?[2Jb??c?" },
		{ "C1, which terminals take for escapes",
		  "\xc2\x9d"
		  "0;T\xc2\x9c\xc2\x9b"
		  "2J",
		  "?0;T??2J" },
		{ "C1 as single bytes",
		  "\x9b"
		  "2J\x9d",
		  "?2J?" },
		{ "invalid UTF-8", "a\xff\xc0\xaf\xe2\x82", "a?????" },
		{ "a surrogate", "\xed\xa0\x80", "???" },
		{ "direction", "a\u202eb\u2066c\u200fd\u061c", "a?b?c?d?" },
		{ "no width", "a\u200bb\u200dc\ufeffd\u2060e\u00adf", "a?b?c?d?e?f" },
		{ "letters without ink", "a\u3164b\u115fc\u034f", "a?b?c?" },
		{ "what marks errors elsewhere, and an emoji's style, are shown",
		  "\ufffd\u2764\ufe0f", "\ufffd\u2764\ufe0f" },
		{ "tags and separators", "a\U000e0041b\u2028c\u2029", "a?b?c?" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64], field[64];

		text_copy(text, sizeof(text), cases[i].text);
		text_clean(text);
		text_from_field(field, sizeof(field), cases[i].text, strlen(cases[i].text));
		EXPECT_THAT(cases[i].what, strcmp(text, cases[i].clean) == 0);
		if (i != 5) /* ends inside a character */
			EXPECT_THAT("as a field", strcmp(field, cases[i].clean) == 0);
	}
}

static void test_cut_field(void)
{
	char text[6];

	text_from_field(text, sizeof(text), "abcd\u8a13", 7);
	EXPECT_THAT("a character that does not fit is left out", strcmp(text, "abcd") == 0);
	text_from_field(text, sizeof(text), "ab\u8a13", 5);
	EXPECT_THAT("one that fits stays", strcmp(text, "ab\u8a13") == 0);
	text_from_field(text, sizeof(text), "ab\xff", 3);
	EXPECT_THAT("a byte that begins no character is marked", strcmp(text, "ab?") == 0);
	text_from_field(text, sizeof(text), "ab\xe8\xa8", 4);
	EXPECT_THAT("one that the field cuts is left out", strcmp(text, "ab") == 0);
}

/* Bytes after the end would complete a character. */
static void test_ends(void)
{
	char text[] = "a\xc3\xa9", to[8];
	int64_t number = 0;

	EXPECT(text_clean_bytes(text, 2) == 2 && text[1] == '?');
	text_from_field(to, sizeof(to), "\xc3\xa9", 1);
	EXPECT_THAT("of a field that is one cut character nothing is left", is(to, ""));
	text_from_field(to, sizeof(to), "x\xc2\xa9", 2);
	EXPECT(is(to, "x"));
	EXPECT(text_number("7", 7, 7, &number) == OK && number == 7);
	EXPECT(text_number("8", 7, 7, &number) == ERR_RANGE &&
	       text_number("6", 7, 7, &number) == ERR_RANGE);
}

/* The first and the last character of each length. */
static void characters_are_encoded(void)
{
	static const uint32_t characters[] = { 1,     0x7f,   0x80,    0x7ff,
					       0x800, 0xffff, 0x10000, 0x10ffff };

	for (size_t i = 0; i < ARRAY_LENGTH(characters); i++) {
		unsigned char bytes[4];
		size_t length = text_encode((char *)bytes, characters[i]);

		EXPECT_EQUAL(length, 1 + i / 2);
		EXPECT_EQUAL(text_decode(bytes, length), characters[i]);
		EXPECT(length == 1 || utf8_bytes(bytes, length) == length);
	}
}

int main(void)
{
	test_ends();
	characters_are_encoded();
	test_endings();
	copies_are_terminated_and_say_when_cut();
	formats_are_bounded();
	fields_need_no_terminator();
	sizes_have_units();
	numbers_are_whole_and_within();
	patterns_expand();
	test_clean();
	test_cut_field();
	return tap_done();
}
