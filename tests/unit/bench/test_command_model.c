/* `ringside model`: predictions from given numbers, textbook values and hand-made measurements; what is refused. */
#include "bench/bench_command.h"
#include "common/attributes.h"
#include "tests/tap.h"
#include "tests/unit/bench/command_stage.h"
#include "tests/unit/bench/cost_play.h"

#define BY_HAND "--latency inside=2us,between=9us --bandwidth inside=300,between=20"

static const struct stage_case given[] = {
	{ "a ring by hand", NULL,
	  "model allreduce 4000000 --ranks 4 --nodes 4 --latency between=10us --bandwidth "
	  "between=10 --algorithms ring" },
	{ "bits per second, and a time for each call", NULL,
	  "model allreduce 4000000 --ranks 4 --nodes 4 --latency between=10us --bandwidth "
	  "between=80Gb/s --call 40us --algorithms ring" },
	{ "other units", NULL,
	  "model allreduce 4000000 --ranks 4 --nodes 2 --latency inside=0.001ms,between=0.00001s "
	  "--bandwidth inside=0.1TB/s,between=1000MB/s --call 700ns" },
	{ "no latency, and bits by their longer name", NULL,
	  "model broadcast 1M --ranks 4 --nodes 1 --latency inside=0us --bandwidth "
	  "inside=8Gbit/s" },
	{ "two NICs for eight ranks", NULL,
	  "model alltoall 16000000 --ranks 16 --nodes 2 --nics 2 " BY_HAND },
	{ "a NIC for each rank", NULL, "model alltoall 16000000 --ranks 16 --nodes 2 " BY_HAND },
	{ "several sizes", NULL, "model allreduce 1K,64G --ranks 512 --nodes 64 " BY_HAND },
	{ "one rank", NULL, "model allreduce 1M --ranks 1 --nodes 1 " BY_HAND },
	{ "as many nodes as ranks", NULL, "model reduce 1M --ranks 5 --nodes 5 " BY_HAND },
	{ "only one algorithm", NULL,
	  "model allreduce 1M --ranks 6 --nodes 2 --algorithms tree " BY_HAND },
	{ "the other functions: AllGather", NULL,
	  "model allgather 1M --ranks 8 --nodes 2 " BY_HAND },
	{ "ReduceScatter", NULL, "model reducescatter 1M --ranks 8 --nodes 2 " BY_HAND },
	{ "SendRecv", NULL, "model sendrecv 1M --ranks 8 --nodes 2 " BY_HAND },
	{ "Gather", NULL, "model gather 1M --ranks 8 --nodes 2 " BY_HAND },
	{ "Scatter", NULL, "model scatter 1M --ranks 8 --nodes 2 " BY_HAND },
	{ "no latency was given", NULL,
	  "model allreduce 1M --ranks 8 --nodes 2 --bandwidth inside=300,between=20" },
	{ "a function without this algorithm", NULL,
	  "model allgather 8G --ranks 8 --hardware h100-ib --algorithms tree" },
	{ "a textbook", NULL, "model allreduce 8G --ranks 512 --hardware h100-ib" },
	{ "a partly filled node", NULL, "model allreduce 1K..1M*32 --ranks 9 --hardware a100-ib" },
	{ "one node", NULL, "model allreduce 1M --ranks 8 --hardware b200-ib --protocols LL128" },
	{ "a textbook with values by hand", NULL,
	  "model allgather 1M --ranks 16 --hardware pcie4-eth --latency between=1us --protocols "
	  "simple" },
};

static const struct stage_case measured[] = {
	{ "several numbers of ranks and nodes determine everything", NULL,
	  "model allreduce 256M --ranks 16 --from @/4x1.json --from @/8x1.json --from @/16x2.json "
	  "--from @/32x4.json" },
	{ "beyond what was measured", NULL,
	  "model allreduce 1,4G --ranks 1024 --from @/4x1.json --from @/8x1.json --from "
	  "@/16x2.json --from @/32x4.json" },
	{ "one number of ranks does not determine it", NULL,
	  "model allreduce 3M --ranks 16 --from @/16x2.json" },
	{ "fewer ranks and a smaller size", NULL,
	  "model allreduce 64 --ranks 2 --nodes 1 --from @/4x1.json --from @/8x1.json" },
	{ "a node that was not measured", NULL,
	  "model allreduce 3M --ranks 8 --nodes 2 --from @/4x1.json" },
	{ "but is given", NULL,
	  "model allreduce 3M --ranks 8 --nodes 2 --from @/4x1.json --latency between=9us "
	  "--bandwidth between=20" },
	{ "or from a textbook", NULL,
	  "model allreduce 3M --ranks 16 --nodes 2 --from @/4x1.json --hardware h100-ib" },
	{ "a function that was not measured", NULL,
	  "model allgather 3M --ranks 8 --from @/4x1.json --from @/8x1.json" },
	{ "an algorithm that was not measured", NULL,
	  "model allreduce 3M --ranks 8 --from @/4x1.json --from @/8x1.json --algorithms tree" },
	{ "a real GPU, in another mode", NULL,
	  "model allreduce 1M --ranks 2 --nodes 1 --modes graph --from "
	  "tests/bench/data/h200-shared.json" },
};

static const struct stage_case refused[] = {
	{ "no parameters", NULL, "model allreduce 8G --ranks 8" },
	{ "a time for a call is none", NULL, "model allreduce 8G --ranks 8 --call 1us" },
	{ "no ranks", NULL, "model allreduce 8G --hardware h100-ib" },
	{ "no nodes", NULL, "model allreduce 8G --ranks 8 " BY_HAND },
	{ "more nodes than ranks", NULL,
	  "model allreduce 8G --ranks 8 --nodes 9 --hardware h100-ib" },
	{ "no such hardware", NULL, "model allreduce 8G --ranks 8 --hardware h100ib" },
	{ "no function", NULL, "model --ranks 8 --hardware h100-ib" },
	{ "no size", NULL, "model allreduce --ranks 8 --hardware h100-ib" },
	{ "no such function", NULL, "model allreduec 8G --ranks 8 --hardware h100-ib" },
	{ "two functions", NULL, "model allreduce,reduce 8G --ranks 8 --hardware h100-ib" },
	{ "no such size", NULL, "model allreduce 8Q --ranks 8 --hardware h100-ib" },
	{ "one operand too many", NULL, "model allreduce 8G 9G --ranks 8 --hardware h100-ib" },
	{ "a latency without unit", NULL, "model allreduce 8G --ranks 8 --latency inside=3" },
	{ "an unknown link", NULL, "model allreduce 8G --ranks 8 --latency beside=3us" },
	{ "no value", NULL, "model allreduce 8G --ranks 8 --latency inside" },
	{ "a negative latency", NULL, "model allreduce 8G --ranks 8 --latency inside=-3us" },
	{ "a latency with a sign", NULL, "model allreduce 8G --ranks 8 --latency inside=+3us" },
	{ "an infinite latency", NULL, "model allreduce 8G --ranks 8 --latency inside=infus" },
	{ "the second of two", NULL,
	  "model allreduce 8G --ranks 8 --latency inside=3us,between=3km" },
	{ "a bandwidth of nothing", NULL, "model allreduce 8G --ranks 8 --bandwidth inside=0" },
	{ "a bandwidth in another case", NULL,
	  "model allreduce 8G --ranks 8 --bandwidth inside=3gb/s" },
	{ "a call without unit", NULL, "model allreduce 8G --ranks 8 --call 8" },
	{ "no such algorithm", NULL,
	  "model allreduce 8G --ranks 8 --hardware h100-ib --algorithms star" },
	{ "no such protocol", NULL,
	  "model allreduce 8G --ranks 8 --hardware h100-ib --protocols LL64" },
	{ "no such mode", NULL, "model allreduce 8G --ranks 8 --hardware h100-ib --modes slow" },
	{ "several algorithms", NULL,
	  "model allreduce 8G --ranks 8 --hardware h100-ib --algorithms ring,tree" },
	{ "several protocols", NULL,
	  "model allreduce 8G --ranks 8 --hardware h100-ib --protocols LL,LL128" },
	{ "several modes", NULL, "model allreduce 8G --ranks 8 --hardware h100-ib --modes all" },
	{ "zero ranks", NULL, "model allreduce 8G --ranks 0 --hardware h100-ib" },
	{ "no such file", NULL, "model allreduce 8G --ranks 8 --from @/nowhere.json" },
	{ "another kind of file", NULL, "model allreduce 8G --ranks 8 --from Makefile" },
	{ "too few sizes", NULL, "model allreduce 8G --ranks 8 --from @/few.json" },
	{ "too few sizes in two files", NULL,
	  "model allreduce 8G --ranks 8 --from @/few.json --from @/few.json" },
	{ "a time out of range", NULL,
	  "model allreduce 8G --ranks 8 --nodes 1 --latency inside=1e300s --bandwidth inside=1" },
};

static const struct stage_case documents[] = {
	{ "by hand", NULL,
	  "model allreduce 1M --ranks 8 --nodes 2 --json --call 3us --latency "
	  "inside=2us,between=9us --bandwidth inside=300,between=20" },
	{ "no answer", NULL,
	  "model allreduce 1M,2M --ranks 8 --nodes 2 --json --latency inside=2us" },
	{ "measured", NULL,
	  "model allreduce 3M --ranks 32 --json --from @/8x1.json --from @/few.json --from "
	  "@/16x2.json --hardware h100-ib" },
};

static void write_run(const struct stage *stage, const char *name, struct bench_run *run)
{
	char path[200];
	struct sink sink;
	FILE *file;

	text_format(path, sizeof(path), "%s/%s.json", stage->directory, name);
	sink_init_memory(&sink);
	file = fopen(path, "we");
	if (file == NULL || bench_json_write(&sink, run) != OK ||
	    fputs(sink_string(&sink), file) == EOF || fclose(file) != 0)
		abort();
	sink_release(&sink);
	bench_run_release(run);
}

static void write_runs(const struct stage *stage)
{
	struct bench_run run;
	char name[32];

	for (size_t i = 0; i < SHAPES; i++) {
		run_of(&run, shapes[i][0], shapes[i][1]);
		add_sizes(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1024, 1 << 28, 0.03);
		text_format(name, sizeof(name), "%dx%d", (int)shapes[i][0], (int)shapes[i][1]);
		write_run(stage, name, &run);
	}
	run_of(&run, 8, 1);
	add_sizes(&run, OP_ALL_REDUCE, OP_RING, OP_SIMPLE, 1024, 4096, 0.03);
	write_run(stage, "few", &run);
}

/* Numbers with five digits: those of a fit depend on the machine beyond that. One key in a line. */
static void documents_are_complete(struct stage *stage)
{
	const char *from;
	struct sink sink;

	stage_run(stage, bench_model, documents, ARRAY_LENGTH(documents));
	sink_init_memory(&sink);
	for (from = sink_string(&stage->text); *from != '\0';) {
		size_t length = strspn(from, "+-.0123456789eE");

		if (length > 0 && (from[-1] == ':' || from[-1] == '[') && from[0] != 'e') {
			sink_format(&sink, "%.5g", strtod(from, NULL));
			from += length;
			continue;
		}
		sink_byte(&sink, *from);
		if (strchr(",[{", *from) != NULL && from[1] != ' ')
			sink_byte(&sink, '\n');
		from++;
	}
	EXPECT_THAT("documents as in command_model.json.lines",
		    expected_file(sink_string(&sink),
				  "tests/unit/bench/expected/command_model.json.lines"));
	sink_release(&sink);
}

int main(void)
{
	struct stage stage;

	stage_open(&stage);
	write_runs(&stage);
	stage_run(&stage, bench_model, given, ARRAY_LENGTH(given));
	EXPECT_THAT("predictions as in command_model.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_model.txt"));
	stage_run(&stage, bench_model, measured, ARRAY_LENGTH(measured));
	EXPECT_THAT("fits as in command_model_fit.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_model_fit.txt"));
	stage_run(&stage, bench_model, refused, ARRAY_LENGTH(refused));
	EXPECT_THAT(
		"complaints as in command_model_refused.txt",
		stage_is_expected(&stage, "tests/unit/bench/expected/command_model_refused.txt"));
	documents_are_complete(&stage);
	sink_release(&stage.text);
	return tap_done();
}
