/* How a process times its operations, in words. */
#include "output/recorded.h"

#include <stdio.h>
#include <string.h>

#include "common/nccl_interface.h"
#include "tests/tap.h"

static bool times_say(const struct recording_process *process, uint64_t timed, uint64_t recorded,
		      const char *wanted)
{
	char text[RECORDED_TIMES_TEXT];

	recorded_times_text(process, timed, recorded, text);
	if (strcmp(text, wanted) != 0)
		printf("# got    %s\n# wanted %s\n", text, wanted);
	return strcmp(text, wanted) == 0;
}

static void test_times(void)
{
	static char info[] = "times=auto\n", off[] = "times=off\ntimes_reason=asked for\n";
	static struct region region;
	struct recording_process process = { .info = info, .info_bytes = strlen(info) };

	EXPECT(times_say(&process, 1204, 24008, "auto; 1,204 of 24,008 operations timed"));
	EXPECT_THAT("nothing recorded", times_say(&process, 0, 0, "auto"));
	process.region = &region;
	EXPECT_THAT("no launch was timed",
		    times_say(&process, 0, 5, "auto; 0 of 5 operations timed"));
	region.header.timed_launches = 1210;
	region.header.recording_ns = 1210 * 3100;
	region.header.untimed_launches = 1;
	region.header.times_taken = 1208;
	region.header.times_dropped = 2;
	EXPECT(times_say(&process, 1204, 24008,
			 "auto; 1,204 of 24,008 operations timed; CUDA events around 1,210 "
			 "launches, 3.10 us each; 1 launch had no free events; 2 of 1,210 times "
			 "dropped"));
	region.header.sampling = SAMPLING_NO_THREAD;
	EXPECT(times_say(&process, 0, 5,
			 "off: no thread could be started to read the times; so "
			 "operations within a node have no duration, and operations over the "
			 "network have the duration of their transfers"));
	process.info = off;
	process.info_bytes = strlen(off);
	region.header.sampling = SAMPLING_NONE;
	EXPECT(times_say(&process, 0, 5,
			 "off: asked for; so operations within a node have no duration, and "
			 "operations over the network have the duration of their transfers"));
}

int main(void)
{
	test_times();
	return tap_done();
}
