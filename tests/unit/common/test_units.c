#include "common/text.h"

#include <string.h>

#include "tests/tap.h"

static char text[UNITS_TEXT];

static void is(const char *got, const char *wanted)
{
	if (!EXPECT_THAT(wanted, strcmp(got, wanted) == 0))
		printf("#   got \"%s\", wanted \"%s\"\n", got, wanted);
}

int main(void)
{
	is(units_bytes(text, 0), "0 B");
	is(units_bytes(text, 1023), "1023 B");
	is(units_bytes(text, 1024), "1 KiB");
	is(units_bytes(text, 1025), "1.0 KiB");
	is(units_bytes(text, 1536), "1.5 KiB");
	is(units_bytes(text, 1024 * 1024 - 1), "1.0 MiB");
	is(units_bytes(text, UINT64_C(3) << 29), "1.5 GiB");
	is(units_bytes(text, UINT64_MAX), "16.0 EiB");

	is(units_duration(text, 0), "0 ns");
	is(units_duration(text, 999), "999 ns");
	is(units_duration(text, 1000), "1.00 us");
	is(units_duration(text, 9996), "10.0 us");
	is(units_duration(text, 12340), "12.3 us");
	is(units_duration(text, 99960), "100 us");
	is(units_duration(text, 999499), "999 us");
	is(units_duration(text, 999500), "1.00 ms");
	is(units_duration(text, 12345678), "12.3 ms");
	is(units_duration(text, 999500000), "1.00 s");
	is(units_duration(text, UINT64_C(59990000000)), "60.0 s");
	is(units_duration(text, UINT64_C(192000000000)), "3 min 12 s");
	is(units_duration(text, UINT64_C(7500) * 1000000000), "2 h 05 min");
	is(units_duration(text, UINT64_C(273600) * 1000000000), "3 d 04 h");
	is(units_duration(text, UINT64_MAX), "213503 d 23 h");

	is(units_count(text, 0), "0");
	is(units_count(text, 999), "999");
	is(units_count(text, 1000), "1,000");
	is(units_count(text, UINT64_MAX), "18,446,744,073,709,551,615");

	is(units_wall_time(text, 0), "1970-01-01T00:00:00.000000000Z");
	is(units_wall_time(text, UINT64_C(1794708540123456789)), "2026-11-15T02:09:00.123456789Z");
	is(units_date(text, UINT64_C(1794708540999999999)), "2026-11-15 02:09:00");
	is(units_clock(text, UINT64_C(1794708540999999999)), "02:09:00");

	is(units_of_ns(999.6).text, "1.00 us");
	is(units_of_ns(0.4).text, "0 ns");
	is(units_of_ns(150e9).text, "2 min 30 s");
	is(units_of_ns(-1).text, "?");
	is(units_of_ns(0.0 / 0.0).text, "?");
	is(units_of_ns(0x1p64).text, "?");
	EXPECT_THAT("a whole number is unchanged", units_whole(1.9) == 1);
	EXPECT_THAT("a negative value or NaN becomes 0",
		    units_whole(-1) == 0 && units_whole(0.0 / 0.0) == 0);
	EXPECT_THAT("a value that is too large becomes the largest",
		    units_whole(0x1p64) == UINT64_MAX);
	is(units_of_bytes(1536).text, "1.5 KiB");
	return tap_done();
}
