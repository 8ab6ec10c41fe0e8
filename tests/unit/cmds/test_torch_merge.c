/* --merge: traces of torch.profiler beside recordings, on one clock, or refused with the reason. */
#include <inttypes.h>

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* What a trace of torch.profiler says; times are ns after COMMAND_WALL. */
struct kineto {
	const char *name;
	int rank;      /* -1: not in the file */
	int64_t pid;   /* 0: no event of the host */
	int64_t shift; /* of its clock, ns */
	int calls;     /* how many of the five operations it has */
	bool has_launches, has_params, is_absolute, is_array;
	const char *more; /* further events */
};

static struct sink file;

static void put_event(const struct kineto *of, const char *name, const char *category, int64_t pid,
		      int64_t tid, int64_t start_ns, int64_t duration_ns, const char *args)
{
	start_ns += of->shift + (of->is_absolute ? (int64_t)COMMAND_WALL : 0);
	sink_format(&file,
		    ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%" PRId64
		    ",\"tid\":%" PRId64 ",\"ts\":%" PRId64 ".%03d,\"dur\":%" PRId64
		    ".%03d,\"args\":{%s}}",
		    category, name, pid, tid, start_ns / 1000, (int)(start_ns % 1000),
		    duration_ns / 1000, (int)(duration_ns % 1000), args);
}

/* The operations of command_samples.h begin every millisecond and are launched 5 us later. */
static void write_kineto(const struct kineto *of)
{
	char args[128];

	sink_init_memory(&file);
	if (of->is_array)
		sink_text(&file, "[");
	else
		sink_text(&file, "{\"schemaVersion\":1,");
	if (of->rank >= 0 && !of->is_array)
		sink_format(
			&file,
			"\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":%d,\"world_size\":2},",
			of->rank);
	if (!of->is_absolute && !of->is_array)
		sink_format(&file, "\"baseTimeNanoseconds\":%" PRIu64 ",", COMMAND_WALL);
	if (!of->is_array)
		sink_text(&file, "\"traceEvents\":[");
	sink_text(&file,
		  "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":0,\"tid\":0,\"args\":{}}");
	for (int i = 1; i <= of->calls; i++) {
		int64_t at = i * INT64_C(1000000);

		snprintf(args, sizeof(args), "\"correlation\":%d", 100 + i);
		if (of->has_params)
			put_event(of, "record_param_comms", "cpu_op", of->pid, 7001, at - 3000,
				  9000, "");
		if (of->has_launches)
			put_event(of, i % 2 ? "cudaLaunchKernelExC" : "cuLaunchKernelEx",
				  "cuda_runtime", of->pid, 7001, at + 1000, 3000, args);
		if (of->has_launches) {
			snprintf(args, sizeof(args),
				 "\"correlation\":%d,\"Process Group Description\":\"default_pg\"",
				 100 + i);
			put_event(of, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "kernel", 0, 20,
				  at + 10000, 240000, args);
		}
		put_event(of, "gemm", "kernel", 0, 7, at + 300000, 200000, "\"correlation\":7");
	}
	if (of->more)
		sink_format(&file, ",\n%s", of->more);
	sink_text(&file, of->is_array ? "]\n" : "]}\n");
	command_write_text(of->name, sink_string(&file));
	sink_release(&file);
}

static const char more_events[] =
	"{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":999999990,\"tid\":7001,\"args\":{\"name\":"
	"\"thread 7001 (python)\"}},\n"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":999999990,\"tid\":7002,"
	"\"ts\":1500,\"dur\":0,"
	"\"args\":{\"text\":\"a "
	"\\\"b\\\"\",\"list\":[1,{}],\"number\":7,\"negative\":-7,\"real\":1.5,\"yes\":true,\"no\":"
	"false,\"none\":null}},\n"
	"{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"step\",\"pid\":0,\"tid\":20,"
	"\"ts\":1000,\"dur\":1},\n"
	"{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy "
	"HtoD\",\"pid\":0,\"tid\":21,\"ts\":1001,\"dur\":0.002},\n"
	"{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"Memset\",\"pid\":0,\"tid\":21,\"ts\":1002,"
	"\"dur\":0.001},\n"
	"{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"span\",\"pid\":\"Spans\",\"tid\":\"x\",\"ts\":"
	"1,\"dur\":9},\n"
	"{\"ph\":\"i\",\"cat\":\"x\",\"name\":\"mark\",\"pid\":999999990,\"tid\":7001,\"ts\":1000}";

static const struct kineto files[] = {
	{ "whole.json", 0, COMMAND_NOBODY, 0, 5, true, true, false, false, more_events },
	{ "one.json", 1, COMMAND_NOBODY + 1, 0, 5, true, false, false, false, NULL },
	{ "late.json", 0, COMMAND_NOBODY, 3000000, 5, true, false, false, false, NULL },
	{ "early.json", 0, COMMAND_NOBODY, -200500, 5, true, false, false, false, NULL },
	{ "host.json", 0, COMMAND_NOBODY, 0, 5, false, true, false, false, NULL },
	{ "host-late.json", 0, COMMAND_NOBODY, 40000, 5, false, true, false, false, NULL },
	{ "three.json", 0, COMMAND_NOBODY, 0, 3, true, false, false, false, NULL },
	{ "two.json", 0, COMMAND_NOBODY, 0, 2, true, false, false, false, NULL },
	{ "silent.json", 0, COMMAND_NOBODY, 0, 5, false, false, false, false, NULL },
	{ "absolute.json", 0, COMMAND_NOBODY, 0, 5, true, false, true, false, NULL },
	{ "array.json", 0, COMMAND_NOBODY, 0, 5, true, false, true, true, NULL },
	{ "no-rank.json", -1, COMMAND_NOBODY + 1, 0, 5, true, false, false, false, NULL },
	{ "far.json", 0, COMMAND_NOBODY, INT64_C(900000000000), 5, true, false, false, false,
	  NULL },
	{ "half.json", 0, COMMAND_NOBODY, 0, 4, true, false, false, false,
	  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":999999990,"
	  "\"tid\":1,\"ts\":1500,\"dur\":1,\"args\":{\"correlation\":201}},\n"
	  "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":999999990,"
	  "\"tid\":1,\"ts\":2300,\"dur\":1,\"args\":{\"correlation\":202}},\n"
	  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclKernel\",\"pid\":0,\"tid\":20,\"ts\":"
	  "1510,"
	  "\"dur\":1,\"args\":{\"correlation\":201}},\n"
	  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclKernel\",\"pid\":0,\"tid\":20,\"ts\":"
	  "2510,"
	  "\"dur\":1,\"args\":{\"correlation\":202}}" },
	{ "other-run.json", 0, 4711, 0, 5, true, false, false, false, NULL },
	{ "other-rank.json", 7, COMMAND_NOBODY, 0, 5, true, false, false, false, NULL },
	{ "nobody.json", -1, 4711, 0, 5, true, false, false, false, NULL },
	{ "unknown.json", -1, 0, 0, 0, false, false, false, false,
	  "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":"
	  "1}" },
	{ "no-events.json", 0, COMMAND_NOBODY, 0, 0, false, false, false, false, NULL },
};

static void shown(void)
{
	static const char *const lines[] = {
		"trace traces --rank 0 -o out.json --merge whole.json --json",
		"trace traces -o out.json --merge whole.json --merge one.json",
		"trace traces -o out.json --merge both",
		"trace traces -o out.pftrace --merge whole.json",
		"trace traces -o out.json --merge late.json",
		"trace traces -o out.json --merge early.json",
		"trace traces -o out.json --merge host.json",
		"trace traces -o out.json --merge host-late.json",
		"trace traces -o out.json --merge three.json",
		"trace traces -o out.json --merge two.json",
		"trace traces -o out.json --merge silent.json",
		"trace traces -o out.json --merge absolute.json",
		"trace traces -o out.json --merge array.json",
		"trace traces -o out.json --merge no-rank.json",
		"trace traces -o out.json --rank 0 --merge one.json",
		"trace traces -o out.json --since 2ms --until 3ms --merge whole.json",
		"report --answer traces --merge whole.json",
		"report --by group,rank --csv nameless --merge whole.json --comm default_pg",
		NULL,
	};

	command("trace traces --rank 0 -o small.json --merge whole.json");
	command_show("small.json");
	command_each(lines);
	EXPECT_THAT("traces that belong to the recording",
		    command_expected("tests/unit/cmds/expected/torch-shown"));
}

static void refused(void)
{
	static const char *const lines[] = {
		"trace traces -o out.json --merge far.json",
		"trace traces -o out.json --merge half.json",
		"trace traces -o out.json --merge other-run.json",
		"trace traces -o out.json --merge other-rank.json",
		"trace traces -o out.json --merge nobody.json",
		"trace traces -o out.json --merge unknown.json",
		"trace traces -o out.json --merge no-events.json",
		"trace traces -o out.json --merge garbage.json",
		"trace traces -o out.json --merge cut.json",
		"trace traces -o out.json --merge packed.json.gz",
		"trace traces -o out.json --merge nowhere.json",
		"trace traces -o out.json --merge empty",
		"trace traces -o out.json --merge whole.json --merge nowhere.json",
		"diff traces other --merge whole.json",
		"diff traces traces --merge whole.json",
		"diff traces other --merge nobody.json",
		"diff traces other --merge garbage.json",
		"report traces --merge nobody.json",
		NULL,
	};
	size_t length;
	char *bytes = command_read(command_path("whole.json"), &length);

	command_write("cut.json", bytes, length / 2);
	free(bytes);
	command_write_text("garbage.json", "hello\n");
	command_write("packed.json.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03zzzzzzzz", 18);
	command_directory("empty");
	command_write_text("empty/README", "");
	command_sim("-o other --nodes 1 --gpus 2 --iterations 2");
	command_each(lines);
	EXPECT_THAT("traces that do not",
		    command_expected("tests/unit/cmds/expected/torch-refused"));
}

int main(void)
{
	command_begin();
	command_play.most_json = 400;
	command_make("traces");
	command_directory("both");
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
		write_kineto(&files[i]);
	command_copy(command_path("whole.json"), "both/a.json");
	command_copy(command_path("one.json"), "both/b.json");
	command_write_text("both/notes.txt", "no trace");
	command_comm_name = "";
	command_directory("nameless");
	command_samples("traces", command_path("nameless"));
	shown();
	refused();
	return tap_done();
}
