/* Every record and detail of the jobs in whole_job.h as JSON, and words about their processes. */
#include "output/recorded.h"

#include <string.h>

#include "common/attributes.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"
#include "tests/unit/output/whole_job.h"

#define EXPECTED "tests/unit/output/expected/"

struct writing {
	struct json json;
	const struct recording_process *process;
};

static bool put_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct writing *to = context;

	(void)place;
	json_object(&to->json);
	recorded_op_json(&to->json, to->process, op);
	json_end(&to->json);
	return true;
}

static bool put_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	struct writing *to = context;

	(void)place;
	json_object(&to->json);
	recorded_detail_json(&to->json, to->process, detail);
	json_end(&to->json);
	return true;
}

static void test_records(void)
{
	struct recording recording;
	struct writing to;
	struct sink sink;

	whole_make(&recording, 1);
	sink_init_memory(&sink);
	json_init(&to.json, &sink);
	json_array(&to.json);
	for (size_t i = 0; i < recording.count; i++) {
		to.process = recording.processes[i];
		EXPECT_EQUAL(recording_each_op(to.process, put_op, &to, NULL), OK);
		EXPECT_EQUAL(recording_each_detail(to.process, put_detail, &to, NULL), OK);
	}
	json_end(&to.json);
	EXPECT_THAT("all records", expected_json(&sink, EXPECTED "recorded.json.lines"));
	recording_release(&recording);
}

/* Times that contradict each other are no duration; equal ones are. */
static void test_durations(void)
{
	static const struct {
		const char *sentence;
		struct op_record op;
		const char *wanted;
	} cases[] = {
		{ "nothing took no time",
		  { .time_source = OP_TIME_KERNEL_GPU, .gpu_start_ns = 5, .gpu_stop_ns = 5 },
		  "\"duration_ns\":0," },
		{ "the GPU's clock",
		  { .time_source = OP_TIME_KERNEL_GPU, .gpu_start_ns = 5, .gpu_stop_ns = 7 },
		  "\"duration_ns\":2," },
		{ "a stop before the start",
		  { .time_source = OP_TIME_KERNEL_GPU, .gpu_start_ns = 5, .gpu_stop_ns = 4 },
		  "\"duration_ns\":null," },
		{ "no start",
		  { .time_source = OP_TIME_KERNEL_GPU, .gpu_stop_ns = 4 },
		  "\"duration_ns\":null," },
		{ "the proxy's activity is a span",
		  { .time_source = OP_TIME_PROXY, .issue_ns = 1, .active_ns = 10, .done_ns = 40 },
		  "\"duration_ns\":null," },
		{ "from the call is a bound",
		  { .time_source = OP_TIME_HOST, .issue_ns = 1, .active_ns = 10, .done_ns = 40 },
		  "\"duration_ns\":null," },
		{ "what another tool measured on the network's side",
		  { .flags = OP_FLAG_TOOL_TIME,
		    .time_source = OP_TIME_PROXY,
		    .issue_ns = 1,
		    .active_ns = 10,
		    .done_ns = 40 },
		  "\"duration_ns\":30," },
		{ "and from the call",
		  { .flags = OP_FLAG_TOOL_TIME,
		    .time_source = OP_TIME_HOST,
		    .issue_ns = 1,
		    .active_ns = 10,
		    .done_ns = 40 },
		  "\"duration_ns\":39," },
		{ "no source",
		  { .time_source = OP_TIME_NONE, .issue_ns = 1, .active_ns = 10, .done_ns = 40 },
		  "\"duration_ns\":null," },
	};
	static const struct recording_process process = { .rank = -1 };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct sink sink;
		struct json json;

		sink_init_memory(&sink);
		json_init(&json, &sink);
		json_object(&json);
		recorded_op_json(&json, &process, &cases[i].op);
		json_end(&json);
		EXPECT_THAT(cases[i].sentence, strstr(sink_string(&sink), cases[i].wanted) != NULL);
		sink_release(&sink);
	}
}

static void test_processes(void)
{
	struct recording_comm comms[] = {
		{ .info = { .id = 2, .gpu = 0, .name = "tp", .hash = 5 } },
		{ .info = { .id = 7, .gpu = 63, .hash = 0xabc, .flags = COMM_FLAG_FINALIZED } },
		{ .info = { .id = 4, .gpu = 64, .finalize_ns = 9 } },
		{ .info = { .id = 5, .gpu = -1 } },
		{ .info = { .id = 6, .gpu = 0 } },
	};
	struct recording_process process = { .comms = comms, .comm_count = 5 };
	char text[RECORDED_COMM_TEXT];

	EXPECT_EQUAL(recorded_live_comms(&process), 3);
	EXPECT_THAT("the highest number is the count", recorded_all_comms(&process) == 7);
	process.comm_count = 1;
	EXPECT_EQUAL(recorded_all_comms(&process), 2);
	process.comm_count = 0;
	EXPECT_EQUAL(recorded_all_comms(&process), 0);
	process.comm_count = 5;
	recorded_gpus(&process, text, sizeof(text));
	EXPECT_THAT("each GPU once, in order", strcmp(text, "0,63") == 0);
	process.comm_count = 0;
	recorded_gpus(&process, text, sizeof(text));
	EXPECT_THAT("no GPU is known", strcmp(text, "") == 0);
	EXPECT(strcmp(recorded_comm_text(&comms[0], text), "tp") == 0);
	EXPECT(strcmp(recorded_comm_text(&comms[1], text), "0x0000000000000abc") == 0);
	EXPECT(strcmp(recorded_comm_text(&comms[2], text), "#4") == 0);
	EXPECT(strcmp(recorded_comm_text(NULL, text), "?") == 0);
}

int main(void)
{
	test_records();
	test_durations();
	test_processes();
	return tap_done();
}
