#include "output/export.h"

#include <string.h>

#include "tests/tap.h"

static int is_time(int64_t ns, const char *wanted)
{
	struct export_day day = EXPORT_DAY_INIT;
	char text[EXPORT_TIME_TEXT + 1] = "";
	size_t length = export_text_time(text, ns, &day);

	return length == strlen(wanted) && strcmp(text, wanted) == 0;
}

static int is_signed(int64_t number, const char *wanted)
{
	char text[EXPORT_NUMBER_TEXT];
	size_t length = export_text_signed(text, number);

	return length == strlen(wanted) && memcmp(text, wanted, length) == 0;
}

static int is_unsigned(uint64_t number, const char *wanted)
{
	char text[EXPORT_NUMBER_TEXT];
	size_t length = sink_digits(text, number);

	return length == strlen(wanted) && memcmp(text, wanted, length) == 0;
}

int main(void)
{
	struct export_day day = EXPORT_DAY_INIT;
	char text[EXPORT_TIME_TEXT + 1] = "";

	EXPECT(is_unsigned(0, "0"));
	EXPECT(is_unsigned(10, "10"));
	EXPECT(is_unsigned(UINT64_MAX, "18446744073709551615"));
	EXPECT(is_signed(0, "0"));
	EXPECT(is_signed(-1, "-1"));
	EXPECT(is_signed(INT64_MAX, "9223372036854775807"));
	EXPECT(is_signed(INT64_MIN, "-9223372036854775808"));
	EXPECT(is_time(0, "1970-01-01T00:00:00.000000000"));
	EXPECT(is_time(-1, "1969-12-31T23:59:59.999999999"));
	EXPECT(is_time(INT64_C(1794708540123456789), "2026-11-15T02:09:00.123456789"));
	EXPECT(is_time(INT64_C(1709251199999999999), "2024-02-29T23:59:59.999999999"));
	EXPECT(is_time(INT64_MAX, "2262-04-11T23:47:16.854775807"));
	EXPECT(is_time(INT64_MIN, "1677-09-21T00:12:43.145224192"));
	export_text_time(text, 86399999999999, &day);
	export_text_time(text, 86400000000000, &day);
	EXPECT_THAT("a new day", strcmp(text, "1970-01-02T00:00:00.000000000") == 0);
	return tap_done();
}
