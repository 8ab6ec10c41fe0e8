#include "output/viewer.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "output/sink.h"
#include "tests/tap.h"

static int is_text(const struct sink *sink, const char *wanted)
{
	int is_same = strcmp(sink_string(sink), wanted) == 0;

	if (!is_same)
		printf("# got:\n%s\n# wanted:\n%s\n", sink_string(sink), wanted);
	return is_same;
}

static void write_everything(struct viewer *viewer)
{
	struct viewer_process process = {
		.process = 1, .order = 0, .name = "rank 0", .label = "x"
	};
	struct viewer_track track = { .process = 1, .track = 1, .order = 3, .name = "world" };
	struct viewer_track lane = { .process = 1, .track = 2, .lane = 2, .name = "world" };
	struct viewer_track counter = {
		.process = 1, .track = 3, .order = -2, .name = "busbw", .unit = "GB/s"
	};
	struct viewer_arrow arrows[] = { { 0x101, 12345, false }, { 0x202, 12999, true } };
	struct viewer_args args = { .count = 0 }, none = { .count = 0 };
	struct viewer_slice slice = {
		.process = 1,
		.track = 1,
		.start_ns = 12345,
		.end_ns = 13345,
		.name = "AllReduce",
		.category = "operation",
		.args = &args,
		.arrows = arrows,
		.arrow_count = 2,
	};
	struct viewer_instant instant = {
		.process = 1, .at_ns = 7, .name = "gone", .category = "note"
	};

	viewer_about(viewer, &none);
	viewer_process(viewer, &process);
	viewer_track(viewer, &track);
	viewer_track(viewer, &lane);
	viewer_track(viewer, &counter);
	viewer_arg_text(&args, "text", "a \"b\"\n");
	viewer_arg_unsigned(&args, "whole", UINT64_MAX);
	viewer_arg_signed(&args, "number", -5);
	viewer_arg_double(&args, "real", 0.125);
	viewer_arg_hex(&args, "hash", 0xabc);
	viewer_slice(viewer, &slice);
	slice.end_ns = VIEWER_OPEN;
	slice.colour = VIEWER_UNFINISHED;
	slice.args = NULL;
	slice.arrow_count = 0;
	viewer_slice(viewer, &slice);
	viewer_instant(viewer, &instant);
	viewer_value(viewer, &counter, 1000000000000001, 12.5);
}

static void test_json(void)
{
	struct viewer viewer;
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT(viewer_init(&viewer, VIEWER_JSON, &sink, NULL, 0) == OK);
	write_everything(&viewer);
	EXPECT(viewer_end(&viewer) == OK);
	EXPECT_THAT(
		"the whole stream as Chrome's JSON, times to the nanosecond",
		is_text(&sink,
			"{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":[\n"
			"{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"ts\":0.000,\"name\":\"process_name\","
			"\"args\":{\"name\":\"rank 0\"}},\n"
			"{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"ts\":0.000,\"name\":\"process_sort_"
			"index\","
			"\"args\":{\"sort_index\":0}},\n"
			"{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"ts\":0.000,\"name\":\"process_"
			"labels\","
			"\"args\":{\"labels\":\"x\"}},\n"
			"{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"name\":\"thread_name\","
			"\"args\":{\"name\":\"world\"}},\n"
			"{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"name\":\"thread_sort_"
			"index\","
			"\"args\":{\"sort_index\":3}},\n"
			"{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"ts\":0.000,\"name\":\"thread_name\","
			"\"args\":{\"name\":\"world (2)\"}},\n"
			"{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"ts\":0.000,\"name\":\"thread_sort_"
			"index\","
			"\"args\":{\"sort_index\":0}},\n"
			"{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":12.345,\"dur\":1.000,"
			"\"name\":\"AllReduce\",\"cat\":\"operation\",\"args\":{\"text\":\"a "
			"\\\"b\\\"\\n\","
			"\"whole\":18446744073709551615,\"number\":-5,\"real\":0.125,"
			"\"hash\":\"0x0000000000000abc\"}},\n"
			"{\"ph\":\"s\",\"pid\":1,\"tid\":1,\"ts\":12.345,\"name\":\"arrow\","
			"\"cat\":\"arrow\","
			"\"id\":\"0x101\"},\n"
			"{\"ph\":\"f\",\"pid\":1,\"tid\":1,\"ts\":12.999,\"name\":\"arrow\","
			"\"cat\":\"arrow\","
			"\"id\":\"0x202\",\"bp\":\"e\"},\n"
			"{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":12.345,\"name\":\"AllReduce\","
			"\"cat\":\"operation\",\"cname\":\"terrible\",\"args\":{}},\n"
			"{\"ph\":\"i\",\"pid\":1,\"tid\":0,\"ts\":0.007,\"name\":\"gone\",\"cat\":"
			"\"note\","
			"\"s\":\"p\",\"args\":{}},\n"
			"{\"ph\":\"C\",\"pid\":1,\"tid\":0,\"ts\":1000000000000.001,\"name\":"
			"\"busbw\","
			"\"args\":{\"GB/s\":12.5}}\n"
			"]}\n"));
	EXPECT(viewer.counts.slices == 2 && viewer.counts.open_slices == 1);
	EXPECT(viewer.counts.tails == 1 && viewer.counts.heads == 1);
	EXPECT(viewer.counts.tracks == 3 && viewer.counts.values == 1);
	sink_release(&sink);
}

/* Decompresses a gzip stream. */
static char *gunzip(const struct sink *sink, size_t *length)
{
	size_t room = 64 << 20;
	char *text = malloc(room);
	z_stream stream = { .next_in = (unsigned char *)sink->bytes,
			    .avail_in = (unsigned int)sink->used,
			    .next_out = (unsigned char *)text,
			    .avail_out = (unsigned int)room };

	if (inflateInit2(&stream, 15 + 16) != Z_OK || inflate(&stream, Z_FINISH) != Z_STREAM_END) {
		free(text);
		return NULL;
	}
	*length = stream.total_out;
	inflateEnd(&stream);
	return text;
}

static void test_gzip(void)
{
	struct sink plain, packed;
	struct gzip_sink gzip;
	struct viewer one, other;
	size_t length = 0;
	char *text;

	sink_init_memory(&plain);
	sink_init_memory(&packed);
	EXPECT(gzip_sink_open(&gzip, &packed) == OK);
	EXPECT(viewer_init(&one, VIEWER_JSON, &plain, NULL, 0) == OK);
	EXPECT(viewer_init(&other, VIEWER_JSON, &gzip.plain, &gzip, 0) == OK);
	for (int i = 0; i < 2000; i++) {
		write_everything(&one);
		write_everything(&other);
	}
	EXPECT_THAT("compressed continuously, little is buffered", gzip.plain.used < (512 << 10));
	EXPECT(viewer_end(&one) == OK && viewer_end(&other) == OK);
	gzip_sink_close(&gzip);
	gzip_sink_close(&gzip);
	text = gunzip(&packed, &length);
	EXPECT_THAT("the output decompresses to the input",
		    text && length == plain.used && memcmp(text, plain.bytes, length) == 0);
	EXPECT_THAT("and it was smaller", packed.used * 10 < plain.used);
	free(text);
	sink_release(&plain);
	sink_release(&packed);
}

static void test_failure(void)
{
	struct gzip_sink gzip;
	struct viewer viewer;
	struct sink sink;

	sink_init_memory(&sink);
	EXPECT(gzip_sink_open(&gzip, &sink) == OK);
	EXPECT(viewer_init(&viewer, VIEWER_JSON, &gzip.plain, &gzip, 0) == OK);
	sink.status = ERR_SYSTEM;
	sink.error = 28;
	write_everything(&viewer);
	EXPECT_THAT("a failed output is reported at the end", viewer_end(&viewer) == ERR_SYSTEM);
	EXPECT(viewer_has_failed(&viewer) && gzip.plain.error == 28);
	gzip_sink_close(&gzip);
	sink_release(&sink);
}

static void test_args(void)
{
	struct viewer_args args = { .count = 0 };

	for (int i = 0; i < VIEWER_ARGS_MAX; i++)
		viewer_arg_unsigned(&args, "x", 1);
	EXPECT(args.count == VIEWER_ARGS_MAX && !args.is_cut);
	viewer_arg_unsigned(&args, "y", 2);
	EXPECT_THAT("an argument that does not fit is noticed",
		    args.count == VIEWER_ARGS_MAX && args.is_cut);
	EXPECT(viewer_round(1.23456) == 1.235 && viewer_round(0.0004) == 0);
}

int main(void)
{
	test_json();
	test_gzip();
	test_failure();
	test_args();
	return tap_done();
}
