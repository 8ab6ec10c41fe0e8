#include "import/kineto.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "tests/tap.h"

struct text {
	const char *text;
	size_t at;
	size_t each;
};

static struct kineto_event seen[8];
static size_t seen_count;
static char seen_args[256];
static struct kineto_about about;

static bool see(const struct kineto_event *event, void *context)
{
	(void)context;
	if (seen_count < 8)
		seen[seen_count] = *event;
	if (event->args != NULL && event->args_length < sizeof(seen_args)) {
		memcpy(seen_args, event->args, event->args_length);
		seen_args[event->args_length] = '\0';
	}
	seen_count++;
	return true;
}

static bool see_one(const struct kineto_event *event, void *context)
{
	(void)event;
	(void)context;
	return ++seen_count < 1;
}

static long more(void *source, char *to, size_t room)
{
	struct text *text = source;
	size_t length = strlen(text->text + text->at);

	length = length < text->each ? length : text->each;
	length = length < room ? length : room;
	memcpy(to, text->text + text->at, length);
	text->at += length;
	return (long)length;
}

static enum status read_in(const char *json, size_t each)
{
	struct text text = { .text = json, .each = each };

	seen_count = 0;
	return kineto_parse(more, &text, &about, see, NULL);
}

static enum status read_all(const char *json)
{
	return read_in(json, SIZE_MAX);
}

static const char whole[] =
	"{\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":3,\"world_size\":8},\n"
	"\"baseTimeNanoseconds\": 1700000000000000000 ,\"traceEvents\": [\n"
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"pid\":0,\"tid\":7,"
	"\"ts\":4000398114572.503,\"dur\":117.311,\"args\":{\"correlation\":838,\"grid\":[1,{}]}},"
	"\n"
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":7,\"args\":{\"name\":\"stream "
	"7\"}},"
	"{\"ph\":\"X\",\"cat\":\"Trace\",\"ts\":1,\"dur\":9,\"pid\":\"Spans\",\"tid\":\"x\","
	"\"name\":"
	"\"a, ] } \\\" {\"}\n], \"traceName\": \"x.json\"}\n";

static void test_whole(void)
{
	EXPECT_EQUAL(read_all(whole), OK);
	EXPECT_EQUAL(about.rank, 3);
	EXPECT_EQUAL(about.world_size, 8);
	EXPECT_THAT("the base", about.has_base && about.base_ns == 1700000000000000000);
	EXPECT_EQUAL(about.events, 3);
	EXPECT_THAT("a kernel of NCCL", seen[0].kind == KINETO_KERNEL && seen[0].is_nccl &&
						seen[0].phase == KINETO_SLICE &&
						seen[0].has_place && seen[0].tid == 7);
	EXPECT_EQUAL(seen[0].start_ns, 4000398114572503);
	EXPECT_EQUAL(seen[0].duration_ns, 117311);
	EXPECT_EQUAL(seen[0].correlation, 838);
	EXPECT(strcmp(seen_args, "{\"name\":\"stream 7\"}") == 0);
	EXPECT_THAT("the name of a stream",
		    seen[1].phase == KINETO_METADATA && strcmp(seen[1].label, "stream 7") == 0);
	EXPECT_THAT("brackets in a name do not end it",
		    strcmp(seen[2].name, "a, ] } \" {") == 0 && !seen[2].has_place);
	for (size_t each = 1; each < 40; each += 3)
		if (read_in(whole, each) != OK || seen_count != 3 ||
		    seen[0].start_ns != 4000398114572503)
			EXPECT_THAT("the same in pieces", false);
	EXPECT_EQUAL(read_all("[{\"ph\":\"X\",\"ts\":1700000000000000.125,\"dur\":0}]"), OK);
	EXPECT_THAT("a plain array, absolute",
		    !about.has_base && about.rank == -1 && seen[0].start_ns == 1700000000000000125);
}

static void test_refused(void)
{
	static const struct {
		const char *text;
		enum status status;
		const char *problem;
	} cases[] = {
		{ "", ERR_TRUNCATED, "the file is empty" },
		{ "hello", ERR_FORMAT, "not a JSON trace" },
		{ "{}", ERR_FORMAT, "no traceEvents" },
		{ "{\"a\":1}", ERR_FORMAT, "no traceEvents" },
		{ "{\"traceEvents\":[{\"ph\":\"X\"}", ERR_TRUNCATED, "the file ends too early" },
		{ "{\"traceEvents\":[{\"ph\":\"X", ERR_TRUNCATED, "the file ends too early" },
		{ "{\"traceEvents\":[{} {}]}", ERR_FORMAT, "no comma between two events" },
		{ "{\"traceEvents\":[,]}", ERR_FORMAT, "a value is missing" },
		{ "{\"traceEvents\":[]} x", ERR_FORMAT, "something follows the trace" },
		{ "{\"traceEvents\":[] \"a\":1}", ERR_FORMAT, "no comma between two values" },
		{ "{traceEvents:[]}", ERR_FORMAT, "a key is missing" },
		{ "{\"traceEvents\" []}", ERR_FORMAT, "no colon after a key" },
		{ "{\"baseTimeNanoseconds\":1e30,\"traceEvents\":[]}", ERR_FORMAT,
		  "baseTimeNanoseconds is not a time" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum status status = read_all(cases[i].text);

		EXPECT_THAT(cases[i].problem, status == cases[i].status && about.problem != NULL &&
						      strcmp(about.problem, cases[i].problem) == 0);
	}
}

/* Deep brackets and endless values are cut off, not followed into memory. */
static void test_hostile(void)
{
	size_t length = 4 << 20;
	char *text = malloc(length + 64);

	if (text == NULL)
		abort();
	memset(text, '[', 1000);
	text[1000] = '\0';
	EXPECT_EQUAL(read_all(text), ERR_FORMAT);
	EXPECT(strcmp(about.problem, "too many brackets") == 0);
	text_copy(text, length, "[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"");
	memset(text + strlen(text), 'x', length);
	text_copy(text + length, 64, "\"},{\"ph\":\"X\",\"ts\":2,\"dur\":1}]");
	EXPECT_EQUAL(read_all(text), OK);
	EXPECT_THAT("one that is too long is skipped and counted",
		    about.too_long == 1 && seen_count == 1 && seen[0].start_ns == 2000);
	free(text);
	EXPECT_EQUAL(read_all("[{\"ph\":\"X\",\"ts\":-1,\"dur\":1},{\"ph\":\"X\",\"ts\":1},7,"
			      "{\"ph\":\"X\",\"ts\":9e300,\"dur\":1},{\"a\":\"\xff\"}]"),
		     OK);
	EXPECT_THAT("slices without a usable time are counted",
		    about.unusable == 5 && about.events == 5 && seen_count == 0);
}

static void test_stopped(void)
{
	struct text text = { .text = whole, .each = SIZE_MAX };

	seen_count = 0;
	EXPECT_EQUAL(kineto_parse(more, &text, &about, see_one, NULL), ERR_GONE);
	EXPECT_EQUAL(seen_count, 1);
	EXPECT_EQUAL(kineto_read("/nowhere/at/all", &about, see, NULL), ERR_SYSTEM);
}

/* Events one by one: kinds, phases, groups, and what makes one unusable. */
static void test_events(void)
{
	static const struct {
		const char *event;
		bool is_usable;
		enum kineto_phase phase;
		enum kineto_kind kind;
		const char *group;
	} cases[] = {
		{ "\"ph\":\"X\",\"cat\":\"cpu_op\",\"ts\":1,\"dur\":1", true, KINETO_SLICE,
		  KINETO_CPU_OP, "" },
		{ "\"ph\":\"X\",\"cat\":\"user_annotation\",\"ts\":1,\"dur\":1", true, KINETO_SLICE,
		  KINETO_ANNOTATION, "" },
		{ "\"ph\":\"X\",\"cat\":\"cuda_driver\",\"ts\":1,\"dur\":1", true, KINETO_SLICE,
		  KINETO_RUNTIME, "" },
		{ "\"ph\":\"X\",\"cat\":\"Kernel\",\"ts\":1,\"dur\":1", true, KINETO_SLICE,
		  KINETO_KERNEL, "" },
		{ "\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"ts\":1,\"dur\":1", true, KINETO_SLICE,
		  KINETO_MEMCPY, "" },
		{ "\"ph\":\"X\",\"cat\":\"Memset\",\"ts\":1,\"dur\":1", true, KINETO_SLICE,
		  KINETO_MEMSET, "" },
		{ "\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"ts\":1,\"dur\":1", true,
		  KINETO_SLICE, KINETO_GPU_ANNOTATION, "" },
		{ "\"ph\":\"X\",\"cat\":\"cuda_sync\",\"ts\":1,\"dur\":1", true, KINETO_SLICE,
		  KINETO_SYNC, "" },
		{ "\"ph\":\"X\",\"cat\":\"what\",\"ts\":1,\"dur\":1", true, KINETO_SLICE,
		  KINETO_OTHER, "" },
		{ "\"ph\":\"i\",\"ts\":1", true, KINETO_INSTANT, KINETO_OTHER, "" },
		{ "\"ph\":\"I\",\"ts\":1", true, KINETO_INSTANT, KINETO_OTHER, "" },
		{ "\"ph\":\"i\"", false, 0, 0, "" },
		{ "\"ph\":\"M\"", true, KINETO_METADATA, KINETO_OTHER, "" },
		{ "\"ph\":\"XX\"", true, KINETO_UNKNOWN, KINETO_OTHER, "" },
		{ "\"ph\":\"\"", true, KINETO_UNKNOWN, KINETO_OTHER, "" },
		{ "\"ph\":\"X\",\"ts\":1", false, 0, 0, "" },
		{ "\"ph\":\"X\",\"dur\":1", false, 0, 0, "" },
		{ "\"ph\":\"X\",\"ts\":{\"a\":[1]},\"dur\":1", false, 0, 0, "" },
		{ "\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":{\"a\":1},\"tid\":[2]", true,
		  KINETO_SLICE, KINETO_OTHER, "" },
		/* The last time before 2^63 ns. */
		{ "\"ph\":\"X\",\"ts\":9223372036854775.806,\"dur\":0", true, KINETO_SLICE,
		  KINETO_OTHER, "" },
		{ "\"ph\":\"X\",\"ts\":9223372036854775.807,\"dur\":0", false, 0, 0, "" },
		{ "\"ph\":\"X\",\"ts\":9223372036854775.806,\"dur\":0.001", false, 0, 0, "" },
		{ "\"ph\":\"M\",\"args\":{\"Process Group Name\":\"1\",\"Process Group "
		  "Description\":"
		  "\"tp\"}",
		  true, KINETO_METADATA, KINETO_OTHER, "tp" },
		{ "\"ph\":\"M\",\"args\":{\"Process Group Name\":\"1\",\"Process Group "
		  "Description\":"
		  "\"undefined\"}",
		  true, KINETO_METADATA, KINETO_OTHER, "1" },
		{ "\"ph\":\"M\",\"args\":{\"Process Group Name\":\"1\"}", true, KINETO_METADATA,
		  KINETO_OTHER, "1" },
		{ "\"ph\":\"M\",\"args\":[{\"Process Group Name\":\"1\"}]", true, KINETO_METADATA,
		  KINETO_OTHER, "" },
		{ "\"ph\":\"M\",\"args\":7", true, KINETO_METADATA, KINETO_OTHER, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		memset(seen, 0, sizeof(seen));
		snprintf(text, sizeof(text), "{\"x\":[{\"ph\":\"M\"}],\"traceEvents\":[{%s}]}",
			 cases[i].event);
		EXPECT_THAT(cases[i].event, read_all(text) == OK && about.events == 1 &&
						    seen_count == cases[i].is_usable &&
						    about.unusable == !cases[i].is_usable &&
						    seen[0].phase == cases[i].phase &&
						    seen[0].kind == cases[i].kind &&
						    strcmp(seen[0].group, cases[i].group) == 0);
		EXPECT(!seen[0].has_place);
	}
}

/* The place of a problem is a byte of the file, in however many pieces it is read. */
static void test_places(void)
{
	static const struct {
		const char *text;
		uint64_t offset;
	} cases[] = {
		{ "{\"traceEvents\":[{} {}]}", 19 },
		{ "{\"traceEvents\" []}", 15 },
		{ "{\"traceEvents\":[]} x", 19 },
		{ "{\"traceEvents\":[{\"ph\":\"M\"}", 26 },
		{ "{\"traceEvents\":{}}", 18 },
		{ "{\"distributedInfo\":{\"rank\":-1,\"world_size\":0}}", 46 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t each = 1; each <= 64; each += 21) {
			EXPECT(read_in(cases[i].text, each) != OK && about.rank == -1 &&
			       about.world_size == -1);
			EXPECT_EQUAL(about.offset, cases[i].offset);
		}
}

int main(void)
{
	test_events();
	test_places();
	test_whole();
	test_refused();
	test_hostile();
	test_stopped();
	return tap_done();
}
