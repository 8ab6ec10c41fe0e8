/* `ringside bench health` on the fake GPU: every verdict as text, options, failures. */
#include "bench/bench_command.h"
#include "common/attributes.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"
#include "tests/unit/bench/command_stage.h"

#define QUICK "health --sizes 1M --seconds 600 "

/* All with exact times, so that values do not depend on the host. */
static const struct stage_case measured[] = {
	{ "wrong results and a slow pair of three ranks, two of them on one GPU",
	  "FAKE_GPUS=2 FAKE_NCCL_SLOW=2-1:10 FAKE_NCCL_WRONG=Recv:1",
	  QUICK "--ranks 3 --no-mps -o @/slow.json --expect between=7,inside=9.5" },
	{ "two ranks are not judged", "FAKE_GPUS=2", QUICK "--ranks 2 -o @/two.json" },
	{ "a single rank", NULL, QUICK "--ranks 1" },
};

static const struct stage_case recalled[] = {
	{ "judged again", NULL, "health --from @/slow.json --quiet --expect inside=9.5" },
	{ "below the expectation", NULL, "health --from @/two.json --expect inside=40,shared=7" },
	{ "strictly", NULL, "health --from @/two.json --quiet --strict" },
	{ "with an expectation", NULL, "health --from @/two.json --quiet --expect inside=9" },
	{ "exactly at the tolerance", NULL,
	  "health --from @/two.json --quiet --expect inside=9.544917 --tolerance 1" },
	{ "with a tolerance", NULL,
	  "health --from @/two.json --quiet --expect inside=40 --tolerance 0.1" },
	{ "a slow pair and a kind of link", NULL, "health --from @/slow.json --expect inside=100" },
	{ "as JSON", NULL,
	  "health --from @/slow.json --expect inside=100 -o @/judged.json --quiet" },
	{ "compared with another day", NULL, "health --from @/slow.json --expected @/slow.json" },
	{ "a file of earlier days", NULL, "health --from tests/bench/health.json" },
	{ "no measurement", NULL, "health --from Makefile" },
	{ "no file", NULL, "health --from @/nothing" },
	{ "another kind of result", NULL,
	  "health --from docs/results/profilers-training-h200.json" },
};

static const struct stage_case refused[] = {
	{ "no value", NULL, "health --expect inside" },
	{ "a link without a name", NULL, "health --expect ?=3" },
	{ "the least bandwidth", NULL, "health --from @/two.json -q --expect inside=0.000001" },
	{ "less than that", NULL, "health --expect inside=0.0000009" },
	{ "a number of the longest", NULL,
	  "health --from @/two.json -q --expect inside=9.00000000000000000000000000000" },
	{ "the least time is accepted, but not here", NULL, "health --seconds 1 --from x" },
	{ "so is the most", NULL, "health --seconds 86400 --from x" },
	{ "so is the largest size", NULL, "health --sizes 1G --from x" },
	{ "the least tolerance", NULL,
	  "health --from @/two.json -q --expect inside=900 --tolerance 0.01" },
	{ "an unknown kind of link", NULL, "health --expect outside=3" },
	{ "a kind that begins like another", NULL, "health --expect insider=3" },
	{ "a negative value", NULL, "health --expect inside=-1" },
	{ "an empty one at the end", NULL, "health --expect inside=1," },
	{ "too long a number", NULL, "health --expect inside=1234567890123456789012345678901234" },
	{ "a million is the most", NULL, "health --from @/two.json -q --expect inside=1000000" },
	{ "more than that", NULL, "health --expect inside=1000001" },
	{ "too little time", NULL, "health --seconds 0.9" },
	{ "too much time", NULL, "health --seconds 86401" },
	{ "time that is no number", NULL, "health --seconds 5s" },
	{ "too small a size", NULL, "health --sizes 1048575" },
	{ "too large a size", NULL, "health --sizes 1073741825" },
	{ "no size", NULL, "health --sizes large" },
	{ "several sizes", NULL, "health --sizes 4M,8M" },
	{ "a range of sizes", NULL, "health --sizes 4M..8M" },
	{ "too large a tolerance", NULL, "health --tolerance 1.01" },
	{ "too small a tolerance", NULL, "health --tolerance 0.009" },
	{ "two formats", NULL, "health --json --quiet" },
	{ "an operand", NULL, "health sideways" },
	{ "an expectation twice", NULL,
	  "health --expected @/two.json --expected @/two.json --from @/two.json" },
	{ "an expectation that cannot be read", NULL, "health --expected Makefile" },
	{ "measuring an earlier run", NULL, "health --from @/two.json --sizes 4M" },
	{ "a file that cannot be written", "FAKE_GPUS=2",
	  "health --sizes 1M --ranks 2 -o @/no/such.json" },
	{ "standard output as a file", NULL, "health -o -" },
	{ "no driver", "RINGSIDE_CUDA=@/none", "health --ranks 2" },
	{ "no GPU", "FAKE_GPUS=0", "health --ranks 2" },
	{ "a rank that dies", "FAKE_GPUS=3 FAKE_NCCL_DIE=1:9", QUICK "--ranks 3" },
	{ "too few ranks for the job", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2",
	  "health --ranks 3" },
};

/* What was judged, without the measurement, whose calls have times of the host. */
static void judgement_is_json(struct stage *stage)
{
	struct sink sink;
	char path[200], *text;

	text_format(path, sizeof(path), "%s/judged.json", stage->directory);
	text = stage_file(path);
	text[strcspn(text, "\n")] = '\0';
	if (strstr(text, ",\"run\":") != NULL)
		*strstr(text, ",\"run\":") = '\0';
	sink_init_memory(&sink);
	sink_format(&sink, "%s}\n", text);
	EXPECT_THAT("the judgement as JSON",
		    expected_json(&sink, "tests/unit/bench/expected/command_health.json.lines"));
	free(text);
}

int main(void)
{
	struct stage stage;

	stage_open(&stage);
	stage_run(&stage, bench_health, measured, ARRAY_LENGTH(measured));
	stage_run(&stage, bench_health, recalled, ARRAY_LENGTH(recalled));
	EXPECT_THAT("verdicts as in command_health.txt",
		    stage_is_expected(&stage, "tests/unit/bench/expected/command_health.txt"));
	judgement_is_json(&stage);
	stage_run(&stage, bench_health, refused, ARRAY_LENGTH(refused));
	EXPECT_THAT(
		"complaints as in command_health_refused.txt",
		stage_is_expected(&stage, "tests/unit/bench/expected/command_health_refused.txt"));
	sink_release(&stage.text);
	return tap_done();
}
