/* Asking a process to time everything: what is written, and where. */
#include "recording/recording.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/nccl_interface.h"
#include "common/text.h"
#include "format/region_create.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static char dir[80];
static struct region_writer writer;
static struct region region;
static struct recording_process process = { .region = &region };
static struct recording_ask ask;

static void ask_it(void)
{
	recording_ask_times(&ask, &process, 10);
}

static uint64_t word(void)
{
	return writer.header->kernel_request;
}

static void test_answers(void)
{
	ask_it();
	EXPECT_THAT("a request is pending", ask.answer == RECORDING_PENDING);
	EXPECT_THAT("the request is in the region: a serial and seconds",
		    word() == ask.request && word() == (UINT64_C(1) << 32 | 10));
	EXPECT_THAT("no answer yet", !recording_ask_answered(&ask, &process));
	writer.header->kernel_answer = ask.request;
	EXPECT_THAT("the recorder's answer is seen", recording_ask_answered(&ask, &process) &&
							     ask.answer == RECORDING_GRANTED &&
							     ask.reason[0] == '\0');
	ask_it();
	EXPECT_THAT("the next one has another serial", word() == (UINT64_C(2) << 32 | 10));
	EXPECT_THAT("the previous answer does not count", !recording_ask_answered(&ask, &process));
	writer.header->sampling = SAMPLING_BY_GRAPH;
	EXPECT_THAT("if sampling has ended, the request is refused with the reason",
		    recording_ask_answered(&ask, &process) && ask.answer == RECORDING_REFUSED &&
			    strstr(ask.reason, "CUDA graph") != NULL);
	writer.header->sampling = SAMPLING_ACTIVE;
	region.header.sampling = SAMPLING_BY_P2P;
	ask_it();
	EXPECT_THAT("a process that no longer samples is not asked",
		    ask.answer == RECORDING_REFUSED && word() == (UINT64_C(2) << 32 | 10));
	region.header.sampling = SAMPLING_STUCK;
	ask_it();
	EXPECT_THAT("a process that times everything is not asked",
		    ask.answer == RECORDING_ALREADY && word() == (UINT64_C(2) << 32 | 10));
	region.header.sampling = SAMPLING_ACTIVE;
}

/* The state of the recorder says more than what it decided at its start. */
static void test_times(void)
{
	static char settings[] = "times=auto\nkernel_events=off\nkernel_events_reason=old\n";
	static char every[] = "times=all\n", foreign[] = "times=events\n";
	static char kernels[] = "kernel_events=on\nkernel_events_reason=asked for\n";
	struct recording_times times;

	process.info = settings;
	process.info_bytes = strlen(settings);
	region.header.timed_launches = 100;
	region.header.untimed_launches = 2;
	region.header.recording_ns = 300000;
	region.header.times_taken = 97;
	region.header.times_dropped = 3;
	recording_times(&process, &times);
	EXPECT(strcmp(times.in_effect, "auto") == 0 && times.reason[0] == '\0');
	EXPECT(times.has_counts && times.timed_launches == 100 && times.untimed_launches == 2 &&
	       times.recording_ns == 300000 && times.taken == 97 && times.dropped == 3);
	region.header.sampling = SAMPLING_BY_CUDA;
	region.header.timing_error = 700;
	recording_times(&process, &times);
	EXPECT_THAT("what ended is off", strcmp(times.in_effect, "off") == 0);
	EXPECT_THAT("with the driver's error", strstr(times.reason, "an error 700") != NULL);
	EXPECT_THAT("what was timed before is known", times.timed_launches == 100);
	process.info = every;
	process.info_bytes = strlen(every);
	ask_it();
	EXPECT_THAT("a process whose timing ended refuses, whatever it was set to",
		    ask.answer == RECORDING_REFUSED && strstr(ask.reason, "an error 700") != NULL);
	region.header.sampling = SAMPLING_ACTIVE;
	ask_it();
	EXPECT_THAT("a process that times every launch is not asked",
		    ask.answer == RECORDING_ALREADY);
	process.info = kernels;
	process.info_bytes = strlen(kernels);
	recording_times(&process, &times);
	EXPECT_THAT("older recorders say how they request kernel events",
		    strcmp(times.in_effect, "kernel") == 0 &&
			    strcmp(times.reason, "asked for") == 0 && !times.has_counts);
	process.info = foreign;
	process.info_bytes = strlen(foreign);
	recording_times(&process, &times);
	EXPECT_THAT("imported times have other words", times.in_effect[0] == '\0');
	process.info = NULL;
	process.info_bytes = 0;
	recording_times(&process, &times);
	EXPECT(times.in_effect[0] == '\0' && times.reason[0] == '\0');
}

static void write_bytes(const char *path, size_t count)
{
	static const char bytes[2 * REGION_HEADER_BYTES];
	FILE *file = fopen(path, "w");

	if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
		abort();
}

static bool is_untouched(const char *path)
{
	char byte = 0;
	FILE *file = fopen(path, "r");
	int got;

	if (file == NULL)
		abort();
	while ((got = fgetc(file)) != EOF)
		byte |= (char)got;
	fclose(file);
	return byte == 0;
}

/* The directory belongs to the user, who may put something else under the name. */
static void test_elsewhere(void)
{
	char moved[400];

	text_format(moved, sizeof(moved), "%s/moved", dir);
	if (rename(writer.path, moved) != 0)
		abort();
	write_bytes(writer.path, 2 * REGION_HEADER_BYTES);
	writer.header->kernel_request = 0;
	ask_it();
	EXPECT_THAT("another file with its name is not written to", is_untouched(writer.path));
	EXPECT_THAT("but the one that is read", ask.answer == RECORDING_PENDING && word() != 0);
	if (rename(moved, writer.path) != 0 || truncate(writer.path, 100) != 0)
		abort();
	ask_it();
	EXPECT_THAT("nor a truncated one", ask.answer == RECORDING_FAILED);
}

int main(void)
{
	struct region_request request = {
		.dir = dir, .pid = (uint64_t)getpid(), .start_ticks = 1, .group = (gid_t)-1
	};
	const char *scratch = scratch_make();

	text_format(dir, sizeof(dir), "%s/own", scratch);
	if (region_create(&writer, &request) != OK)
		return 1;
	writer.header->sampling = SAMPLING_ACTIVE;
	region_publish(&writer);
	if (region_open(&region, writer.path, 0, NULL) != OK)
		return 1;
	test_answers();
	test_times();
	test_elsewhere();
	region_close(&region);
	munmap(writer.header, writer.bytes);
	return tap_done();
}
