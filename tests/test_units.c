#include "view/units.h"

#include <string.h>

#include "tests/tap.h"

static char text[UNITS_TEXT];

#define IS(got, wanted)                                                          \
	do {                                                                     \
		if (!EXPECT(strcmp((got), (wanted)) == 0))                       \
			printf("#   got \"%s\", wanted \"%s\"\n", text, wanted); \
	} while (0)

int main(void)
{
	IS(units_bytes(text, 0), "0 B");
	IS(units_bytes(text, 1023), "1023 B");
	IS(units_bytes(text, 1024), "1 KiB");
	IS(units_bytes(text, 1025), "1.0 KiB");
	IS(units_bytes(text, 1536), "1.5 KiB");
	IS(units_bytes(text, 1024 * 1024 - 1), "1.0 MiB");
	IS(units_bytes(text, UINT64_C(3) << 29), "1.5 GiB");
	IS(units_bytes(text, UINT64_MAX), "16.0 EiB");

	IS(units_duration(text, 0), "0 ns");
	IS(units_duration(text, 999), "999 ns");
	IS(units_duration(text, 1000), "1.00 us");
	IS(units_duration(text, 9996), "10.0 us");
	IS(units_duration(text, 12340), "12.3 us");
	IS(units_duration(text, 99960), "100 us");
	IS(units_duration(text, 999499), "999 us");
	IS(units_duration(text, 999500), "1.00 ms");
	IS(units_duration(text, 12345678), "12.3 ms");
	IS(units_duration(text, 999500000), "1.00 s");
	IS(units_duration(text, UINT64_C(59990000000)), "60.0 s");
	IS(units_duration(text, UINT64_C(192000000000)), "3 min 12 s");
	IS(units_duration(text, UINT64_C(7500) * 1000000000), "2 h 05 min");
	IS(units_duration(text, UINT64_C(273600) * 1000000000), "3 d 04 h");
	IS(units_duration(text, UINT64_MAX), "213503 d 23 h");

	IS(units_count(text, 0), "0");
	IS(units_count(text, 999), "999");
	IS(units_count(text, 1000), "1,000");
	IS(units_count(text, UINT64_MAX), "18,446,744,073,709,551,615");

	IS(units_wall_time(text, 0), "1970-01-01T00:00:00.000000000Z");
	IS(units_wall_time(text, UINT64_C(1794708540123456789)), "2026-11-15T02:09:00.123456789Z");
	return tap_done();
}
