/* `ringside bench` on the fake GPU: what is measured, and earlier results. */
#include "tests/unit/bench/command_main.h"

#include "common/attributes.h"
#include "tests/tap.h"

#define main test_command_measure_main

/* ---- every function, mode and place ---------------------------------------------------------------- */

static const struct stage_case measured[] = {
	{ "every function, on GPUs of their own", "FAKE_GPUS=3",
	  "bench all --ranks 3 -s 3000,40 -n 3 --warmup 2 --root 1 -o @/functions.json" },
	{ "every mode, on one GPU", NULL,
	  "bench --ranks 2 --modes all -s 4K -n 7 --graph-calls 3 --align nccl --no-mps "
	  "-o @/modes.json >/dev/null" },
	{ "an NCCL without AlltoAll, Gather and Scatter",
	  "RINGSIDE_NCCL=@/libnccl-old.so.2 FAKE_GPUS=2",
	  "bench alltoall gather scatter --ranks 2 -s 4K -n 2 --warmup 0 --align none "
	  "-o @/older.json" },
	{ "types and reductions, more ranks than GPUs", "FAKE_GPUS=2",
	  "bench allreduce reduce --no-mps --ranks 3 -t int8,bfloat16,float64 -r all -s 120 -n 1 "
	  "--warmup 0 "
	  "--in-place --out-of-place -o @/types.json" },
	{ "a single rank", "FAKE_GPUS=2",
	  "bench -s 1K,2K -n 2 --ranks 1 --no-check -o @/one.json" },
	{ "less memory than was asked for", "FAKE_GPU_MEMORY=4M FAKE_GPUS=2",
	  "bench --ranks 2 -s 1M,8M,3 -n 1 -o @/memory.json" },
	{ "wrong results are counted", "FAKE_NCCL_WRONG=Broadcast:1 FAKE_GPUS=2",
	  "bench --ranks 2 broadcast allreduce -s 1K,4K -n 1 -o @/wrong.json" },
	{ "the user's algorithm", "NCCL_ALGO=Ring NCCL_PROTO=LL FAKE_GPUS=2",
	  "bench --ranks 2 -s 30000 -n 4 --percentiles --histogram --over max -o @/ring.json" },
};

static void every_function_is_measured(struct stage *stage)
{
	static const char *const names[] = { "functions.json", "modes.json", "older.json",
					     "types.json",     "one.json",   "memory.json",
					     "wrong.json",     "ring.json" };
	char from[4200], to[200];

	text_format(from, sizeof(from), "%s/tests/fake_gpu/libnccl-old.so.2", stage->build);
	text_format(to, sizeof(to), "%s/libnccl-old.so.2", stage->directory);
	if (symlink(from, to) == -1)
		abort();
	stage_run(stage, bench_main, measured, ARRAY_LENGTH(measured));
	EXPECT_THAT("output as in command_measure.txt",
		    stage_is_expected(stage, "tests/unit/bench/expected/command_measure.txt"));
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		show_run(stage, names[i]);
	EXPECT_THAT("cells as in command_cells.txt",
		    stage_is_expected(stage, "tests/unit/bench/expected/command_cells.txt"));
}

/* ---- what is shown again ----------------------------------------------------------------------------- */

static const struct stage_case recalled[] = {
	{ "with a model", NULL, "bench --from tests/bench/data/h200-shared.json --model" },
	{ "the median, over the fastest rank", NULL,
	  "bench --from tests/bench/data/h200-shared.json --median --over min" },
	{ "too few sizes for a model", NULL, "bench --from @/functions.json --model --over max" },
	{ "percentiles and histograms", NULL,
	  "bench --from tests/bench/data/h200-shared.json --percentiles --histogram" },
	{ "the measurement of a health check", NULL, "bench --from tests/bench/health.json" },
	{ "wrong results are wrong again", NULL, "bench --from @/wrong.json -o @/wrong.txt" },
	{ "another kind of file", NULL, "bench --from Makefile" },
	{ "a truncated file", NULL, "bench --from @/truncated.json" },
	{ "a file of a newer version", NULL, "bench --from @/newer.json" },
	{ "a health check without its measurement", NULL, "bench --from @/lacking.json" },
	{ "no file", NULL, "bench --from @/none.json" },
	{ "a file that cannot be written", NULL, "bench --from @/ring.json -o @/no/where.txt" },
};

static void write_file(const struct stage *stage, const char *name, const char *text)
{
	char path[200];
	FILE *file;

	text_format(path, sizeof(path), "%s/%s", stage->directory, name);
	file = fopen(path, "we");
	if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0)
		abort();
}

static void damaged_files_are_written(const struct stage *stage)
{
	char *text = stage_file("tests/bench/data/h200-shared.json");

	write_file(stage, "lacking.json", "{\"format\":\"ringside-health\",\"version\":1}");
	text[strstr(text, "\"version\":1") - text + 10] = '7';
	write_file(stage, "newer.json", text);
	text[strstr(text, "\"version\":7") - text + 10] = '1';
	text[20000] = '\0';
	write_file(stage, "truncated.json", text);
	free(text);
}

int main(void)
{
	struct stage stage;

	stage_open(&stage);
	every_function_is_measured(&stage);
	damaged_files_are_written(&stage);
	stage_run(&stage, bench_main, recalled, ARRAY_LENGTH(recalled));
	EXPECT_THAT("earlier results as in command_recalled.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_recalled.txt"));
	sink_release(&stage.text);
	return tap_done();
}
