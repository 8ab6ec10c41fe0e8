#include "common/text.h"

#include <string.h>

#include "common/attributes.h"
#include "tests/tap.h"

static char text[UNITS_TEXT];

static void is(const char *got, const char *wanted)
{
	if (!EXPECT_THAT(wanted, strcmp(got, wanted) == 0))
		printf("#   got \"%s\", wanted \"%s\"\n", got, wanted);
}

/* As options and settings spell them. */
static void durations_are_read(void)
{
	static const struct {
		const char *text;
		enum status status;
		uint64_t ns;
	} cases[] = {
		{ "0", OK, 0 },
		{ "1", OK, 1000000000 },
		{ "10s", OK, UINT64_C(10000000000) },
		{ "1.5s", OK, 1500000000 },
		{ "250ms", OK, 250000000 },
		{ "1.25us", OK, 1250 },
		{ "90.09m", OK, UINT64_C(5405400000000) },
		{ "7ns", OK, 7 },
		{ "0.0000000019", OK, 1 },
		{ "1.9ns", OK, 1 },
		{ "1000000", OK, UINT64_C(1000000000000000) },
		{ "1000000.000000001", ERR_RANGE, 0 },
		{ "1000001", ERR_RANGE, 0 },
		{ "18446744074", ERR_RANGE, 0 },
		{ "18446744073.9s", ERR_RANGE, 0 },
		{ "18446744073.709551616", ERR_RANGE, 0 },
		{ "307445734.6m", ERR_RANGE, 0 },
		{ "18446744073709551616ns", ERR_RANGE, 0 },
		{ "99999999999999999999", ERR_RANGE, 0 },
		{ "", ERR_FORMAT, 0 },
		{ "s", ERR_FORMAT, 0 },
		{ ".5", ERR_FORMAT, 0 },
		{ "1.", ERR_FORMAT, 0 },
		{ "1.s", ERR_FORMAT, 0 },
		{ "1..5", ERR_FORMAT, 0 },
		{ "1.5.2", ERR_FORMAT, 0 },
		{ "1h", ERR_FORMAT, 0 },
		{ "1 s", ERR_FORMAT, 0 },
		{ "-1", ERR_FORMAT, 0 },
		{ "1:", ERR_FORMAT, 0 },
		{ "1/", ERR_FORMAT, 0 },
		{ ":", ERR_FORMAT, 0 },
		{ "1.:", ERR_FORMAT, 0 },
		{ "1./", ERR_FORMAT, 0 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		uint64_t ns = 77;

		EXPECT_THAT(cases[i].text,
			    text_duration(cases[i].text, &ns) == cases[i].status &&
				    ns == (cases[i].status == OK ? cases[i].ns : 77));
	}
}

static void factors_are_read(void)
{
	static const struct {
		const char *text;
		uint64_t least;
		enum status status;
		uint64_t permille;
	} cases[] = {
		{ "1.5", 0, OK, 1500 },
		{ "0", 0, OK, 0 },
		{ "0.0019", 0, OK, 1 },
		{ "09.876", 0, OK, 9876 },
		{ "1", 1000, OK, 1000 },
		{ "0.999", 1000, ERR_RANGE, 0 },
		{ "1000000", 0, OK, 1000000000 },
		{ "1000000.001", 0, ERR_RANGE, 0 },
		{ "18446744073709552", 0, ERR_RANGE, 0 },
		{ "18446744073709551.9", 0, ERR_RANGE, 0 },
		{ "", 0, ERR_FORMAT, 0 },
		{ "1x", 0, ERR_FORMAT, 0 },
		{ "1.", 0, ERR_FORMAT, 0 },
		{ "x", 0, ERR_FORMAT, 0 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		uint64_t permille = 77;

		EXPECT_THAT(cases[i].text,
			    text_permille(cases[i].text, cases[i].least, &permille) ==
					    cases[i].status &&
				    permille == (cases[i].status == OK ? cases[i].permille : 77));
	}
}

static void lists_of_sizes_are_read(void)
{
	static const struct {
		const char *text;
		enum status status;
	} wrong[] = {
		{ "", ERR_FORMAT },
		{ "4K,", ERR_FORMAT },
		{ ",4K", ERR_FORMAT },
		{ "4K;8K", ERR_FORMAT },
		{ "1,2,3,4", ERR_RANGE },
		{ "0", ERR_RANGE },
		{ "4K,0", ERR_RANGE },
		{ "1025G", ERR_RANGE },
		{ "1,1099511627777", ERR_RANGE },
		{ "00000000000000000000000000000001", ERR_FORMAT },
	};
	uint64_t sizes[3] = { 0 };
	size_t count = 77;

	EXPECT(text_sizes("4K,1,8MB", sizes, 3, &count) == OK && count == 3);
	EXPECT(sizes[0] == 4096 && sizes[1] == 1 && sizes[2] == 8000000);
	EXPECT(text_sizes("1T", sizes, 3, &count) == OK && count == 1 &&
	       sizes[0] == UINT64_C(1) << 40);
	EXPECT(text_sizes("0000000000000000000000000000001", sizes, 3, &count) == OK &&
	       sizes[0] == 1);
	count = 77;
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++)
		EXPECT_THAT(wrong[i].text,
			    text_sizes(wrong[i].text, sizes, 3, &count) == wrong[i].status &&
				    count == 77);
}

int main(void)
{
	durations_are_read();
	factors_are_read();
	lists_of_sizes_are_read();
	is(units_bytes(text, 0), "0 B");
	is(units_bytes(text, 1023), "1023 B");
	is(units_bytes(text, 1024), "1 KiB");
	is(units_bytes(text, 1025), "1.0 KiB");
	is(units_bytes(text, 1536), "1.5 KiB");
	is(units_bytes(text, 1023 * 1024), "1023 KiB");
	is(units_bytes(text, 1024 * 1024), "1 MiB");
	is(units_bytes(text, UINT64_C(1) << 50), "1 PiB");
	is(units_bytes(text, UINT64_C(1) << 60), "1 EiB");
	is(units_bytes(text, UINT64_C(3) << 62), "12 EiB");
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
	is(units_duration(text, UINT64_C(60) * 1000000000), "1 min 00 s");
	is(units_duration(text, UINT64_C(3599) * 1000000000), "59 min 59 s");
	is(units_duration(text, UINT64_C(3600) * 1000000000), "1 h 00 min");
	is(units_duration(text, UINT64_C(86399) * 1000000000), "23 h 59 min");
	is(units_duration(text, UINT64_C(86400) * 1000000000), "1 d 00 h");
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
	is(units_of_ns(0).text, "0 ns");
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
