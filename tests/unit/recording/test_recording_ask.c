/* Asking a process to time everything: what is written, and where. */
#include "recording/recording.h"

#include <fcntl.h>
#include <stddef.h>
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
	recording_ask_kernel(&ask, &process, 10);
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
	test_elsewhere();
	region_close(&region);
	munmap(writer.header, writer.bytes);
	return tap_done();
}
