/* `ringside bench crossover` on the fake GPU: what is measured and shown, what NCCL refuses, what is refused here. */
#include "bench/bench_command.h"
#include "common/attributes.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"
#include "tests/unit/bench/command_stage.h"

/* The fake's model: a tree has 4 hops and carries 2.2 of the message, a ring 6 and 1.5. */
static const struct stage_case measured[] = {
	{ "ring against tree, and what NCCL does not have here", "FAKE_GPUS=4",
	  "crossover --ranks 4 --rounds 2 -n 3 --warmup 1 --seconds 0 -s 1K,64K,256K "
	  "--algorithms ring,tree,nvls,ring -o @/rings.json" },
	{ "other functions, and a plugin that is replaced",
	  "FAKE_GPUS=3 NCCL_PROFILER_PLUGIN=/opt/other.so NCCL_ALGO=Ring NCCL_PROTO=Simple",
	  "crossover --ranks 3 --rounds 1 -n 3 --warmup 1 --seconds 0 -s 4K,64K,256K "
	  "-f allgather,broadcast --algorithms all --protocols ll,simple --ascii -t int8 "
	  "--modes graph" },
	{ "wrong results", "FAKE_GPUS=2 FAKE_NCCL_WRONG=AllReduce:1",
	  "crossover --ranks 2 --rounds 1 -n 2 --warmup 1 --seconds 600 -s 4K,64K --algorithms "
	  "ring --protocols simple" },
	{ "reductions", "FAKE_GPUS=2",
	  "crossover --ranks 2 --rounds 1 -n 1 --warmup 0 --seconds 0 -s 4K -f "
	  "reduce,reducescatter "
	  "--algorithms ring --protocols simple" },
	{ "a single size", "FAKE_GPUS=2",
	  "crossover --ranks 2 --rounds 1 -n 2 --warmup 0 --seconds 0 -s 4K --algorithms tree "
	  "--protocols LL128" },
};

static const struct stage_case recalled[] = {
	{ "shown again", NULL, "crossover --from @/rings.json -o @/again.json -o @/again.html" },
	{ "of earlier days", NULL, "crossover --from tests/bench/crossover.json --ascii" },
	{ "of a health check", NULL, "crossover --from tests/bench/health.json" },
	{ "nothing forced", NULL, "crossover --from tests/bench/data/h200-shared.json" },
};

static const struct stage_case refused[] = {
	{ "an unknown algorithm", NULL, "crossover --algorithms rings" },
	{ "the second one", NULL, "crossover --algorithms ring,tre" },
	{ "an empty one", NULL, "crossover --algorithms ring," },
	{ "an unknown protocol", NULL, "crossover --protocols fast" },
	{ "an unknown size", NULL, "crossover --sizes big" },
	{ "an unknown function", NULL, "crossover -f allreduces" },
	{ "a function without a choice", NULL, "crossover -f allreduce,sendrecv" },
	{ "a mode without single times", NULL, "crossover --modes loop" },
	{ "several modes", NULL, "crossover --modes blocking,graph" },
	{ "an unknown mode", NULL, "crossover --modes slow" },
	{ "several types", NULL, "crossover --types all" },
	{ "an unknown type", NULL, "crossover --types quad" },
	{ "no rounds", NULL, "crossover --rounds 0" },
	{ "too many rounds", NULL, "crossover --rounds 101" },
	{ "too much time", NULL, "crossover --seconds 86401" },
	{ "time that is no number", NULL, "crossover --seconds 1.5" },
	{ "no calls", NULL, "crossover -n 0" },
	{ "standard output as a file", NULL, "crossover -o -" },
	{ "an operand", NULL, "crossover allreduce" },
	{ "measuring an earlier run", NULL, "crossover --from @/rings.json -n 3" },
	{ "no file", NULL, "crossover --from @/nothing.json" },
	{ "no driver", "RINGSIDE_CUDA=@/none", "crossover --ranks 2" },
	{ "a file that cannot be written", "FAKE_GPUS=2",
	  "crossover --ranks 2 -s 4K --rounds 1 -n 1 --html @/no/where" },
	{ "a rank that dies", "FAKE_GPUS=2 FAKE_NCCL_DIE=1:9",
	  "crossover --ranks 2 -s 4K --rounds 1 -n 3" },
};

/*
 * The fit is not tested here: where it is exact, the sign of its error depends on the machine. Removes what begins with
 * `begin`, up to `end`.
 */
static void forget(char *text, const char *begin, const char *end)
{
	for (char *at = strstr(text, begin); at != NULL; at = strstr(at + strlen(begin), begin)) {
		char *from = at + strlen(begin), *to = from;

		while (*to != '\0' && strncmp(to, end, strlen(end)) != 0 &&
		       strncmp(to, "\n===", 4) != 0)
			to++;
		memmove(from, to, strlen(to) + 1);
	}
}

static void forget_number(char *text, const char *name)
{
	for (char *at = strstr(text, name); at != NULL; at = strstr(at + strlen(name), name)) {
		char *from = at + strlen(name);
		size_t length = strspn(from, "0123456789.e+-");

		if (length > 0)
			*from++ = '0';
		memmove(from, from + length - (length > 0),
			strlen(from + length - (length > 0)) + 1);
	}
}

/* What was found, without the measurement, whose calls have times of the host. */
static void document_is_expected(const struct stage *stage)
{
	char path[200], *text, *end;
	struct sink sink;

	text_format(path, sizeof(path), "%s/again.json", stage->directory);
	text = stage_file(path);
	end = strstr(text, ",\"run\":");
	if (end != NULL)
		*end = '\0';
	forget_number(text, "\"model_median_error\":");
	forget_number(text, "\"model_worst_error\":");
	forget_number(text, "\"model_ns\":");
	sink_init_memory(&sink);
	sink_format(&sink, "%s}\n", text);
	EXPECT_THAT("the document as in command_crossover.json.lines",
		    expected_json(&sink, "tests/unit/bench/expected/command_crossover.json.lines"));
	free(text);
}

static void page_is_expected(const struct stage *stage)
{
	char path[200], *text;

	text_format(path, sizeof(path), "%s/again.html", stage->directory);
	text = stage_replace(stage_file(path), stage->directory, "SCRATCH");
	text = stage_replace(text, stage->build, "BUILD");
	text = stage_replace(text, RINGSIDE_VERSION, "VERSION");
	/* The stylesheet of all pages. */
	forget(text, "<style>", "</style>");
	forget(text, "<caption>Predictions of the fitted model", "</table>");
	EXPECT_THAT("the page as in command_crossover.html",
		    expected_file(text, "tests/unit/bench/expected/command_crossover.html"));
	free(text);
}

int main(void)
{
	struct stage stage;

	stage_open(&stage);
	stage_run(&stage, bench_crossover, measured, ARRAY_LENGTH(measured));
	stage_run(&stage, bench_crossover, recalled, ARRAY_LENGTH(recalled));
	forget(stage.text.bytes, "\nMODEL\n", "\n\n");
	stage.text.used = strlen(stage.text.bytes);
	EXPECT_THAT("crossovers as in command_crossover.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_crossover.txt"));
	document_is_expected(&stage);
	page_is_expected(&stage);
	stage_run(&stage, bench_crossover, refused, ARRAY_LENGTH(refused));
	EXPECT_THAT("complaints as in command_crossover_refused.txt",
		    stage_is_expected(&stage,
				      "tests/unit/bench/expected/command_crossover_refused.txt"));
	sink_release(&stage.text);
	return tap_done();
}
