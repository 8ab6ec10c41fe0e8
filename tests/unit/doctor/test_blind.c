#include <string.h>

#include "doctor/doctor.h"
#include "tests/tap.h"

static struct verdicts verdicts;

static const struct verdict *only(const char *rule)
{
	const struct verdict *found = NULL;

	for (size_t i = 0; i < verdicts.count; i++)
		if (strcmp(verdicts.list[i].rule, rule) == 0)
			found = &verdicts.list[i];
	return found && found->class == VERDICT_BLIND ? found : NULL;
}

static void test_nothing(void)
{
	struct recording recording = { .count = 0 };
	struct scene scene = { .ranks = 8 };
	struct hang_source source = { .name = "a:9749" };
	struct blind_options options = { 0 };

	blind_find(&verdicts, &recording, &scene, &options);
	blind_find(&verdicts, &recording, NULL, &options);
	EXPECT_THAT("nothing to report", verdicts.count == 0);
	options.sources = &source;
	options.source_count = 1;
	blind_find(&verdicts, &recording, NULL, &options);
	EXPECT_THAT("an agent without processes", only("nothing") && only("nothing")->is_unjudged);
	verdicts_release(&verdicts);
	source.is_silent = true;
	blind_find(&verdicts, &recording, NULL, &options);
	EXPECT_THAT("one that does not answer may have some", !only("nothing") && only("silent"));
	verdicts_release(&verdicts);
}

static void test_silent(void)
{
	struct recording recording = { .count = 0 };
	struct hang_source sources[40] = { { .name = "fine:1" } };
	const struct blind_options options = { .sources = sources,
					       .source_count = 40,
					       .asked = "agents" };
	const struct verdict *verdict;

	for (int i = 1; i < 40; i++)
		sources[i] = (struct hang_source){ "dead:1", true, i > 1 ? "refused" : NULL };
	blind_find(&verdicts, &recording, NULL, &options);
	verdict = only("silent");
	EXPECT(verdict && verdict->severity == VERDICT_WARNING);
	EXPECT(verdict && strcmp(verdict->title, "39 of 40 agents did not answer") == 0);
	EXPECT(verdict && strcmp(verdict->evidence.list[0], "dead:1: no answer") == 0);
	EXPECT(verdict && strcmp(verdict->evidence.list[1], "dead:1: refused") == 0);
	EXPECT_THAT("the rest is counted",
		    verdict && strcmp(verdict->evidence.list[verdict->evidence.count - 1],
				      "and 15 more") == 0);
	verdicts_release(&verdicts);
	verdicts_add(&verdicts, VERDICT_AGENT_DEAD, VERDICT_ERROR);
	blind_find(&verdicts, &recording, NULL, &options);
	verdict = only("silent");
	EXPECT_THAT("a hang blamed on the agent is not reported twice",
		    verdict && verdict->severity == VERDICT_NOTE);
	verdicts_release(&verdicts);
}

/* Up to its last record nothing is wrong; what came after is not known. */
static void test_endless(void)
{
	struct recording_file file = { .bytes = 100 };
	struct clock_anchor anchor = { .clock_ns = 1000, .wall_ns = 1700000000 * SECOND_NS };
	struct recording_process ended = { .life = RECORDING_ENDED,
					   .files = &file,
					   .file_count = 1 };
	struct recording_process cut = { .life = RECORDING_UNKNOWN,
					 .files = &file,
					 .file_count = 1,
					 .counts_ns = 1000,
					 .anchors = &anchor,
					 .anchor_count = 1 };
	struct recording_process nothing = { .life = RECORDING_UNKNOWN,
					     .files = &file,
					     .file_count = 1 };
	struct recording_process *processes[] = { &ended, &cut, &nothing };
	struct recording recording = { .processes = processes, .count = 1 };
	struct scene scene = { .ranks = 3, .communicators = 1 };
	struct blind_options options = { .hang_ns = 20 * SECOND_NS,
					 .wall_ns = anchor.wall_ns + 100 * SECOND_NS };

	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("a recording with an end", verdicts.count == 0);
	recording.count = 2;
	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("one without", only("end") && only("end")->is_unjudged &&
					   only("end")->severity == VERDICT_WARNING);
	EXPECT(only("end") && strstr(only("end")->title, "1 of 2 recordings have no end"));
	EXPECT(only("end") && strstr(only("end")->evidence.list[0], "2023-11-14 22:13:20"));
	verdicts_release(&verdicts);
	options.wall_ns = anchor.wall_ns + 25 * SECOND_NS;
	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("not if it was written just now", verdicts.count == 0);
	recording.count = 3;
	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("a file without any record",
		    only("end") && strstr(only("end")->title, "1 of 3"));
	verdicts_release(&verdicts);
	verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR);
	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("a hung job has no end", verdicts.count == 1);
	verdicts_release(&verdicts);
	recording.count = 1;
	scene.communicators = 0;
	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("no communicator", only("nothing") && only("nothing")->is_unjudged);
	verdicts_release(&verdicts);
}

static void test_missing(void)
{
	struct recording recording = { .count = 0 };
	struct scene scene = { .ranks = 500, .missing = 12 };
	struct blind_options options = { .source_count = 0 };

	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT(only("ranks") && only("ranks")->severity == VERDICT_NOTE);
	EXPECT(only("ranks") && strstr(only("ranks")->title, "12 of 512 ranks"));
	verdicts_release(&verdicts);
	options.is_whole = true;
	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("a warning if all ranks were asked for",
		    only("ranks") && only("ranks")->severity == VERDICT_WARNING);
	verdicts_release(&verdicts);
}

static void test_lost(void)
{
	struct recording_process process = {
		.lost = { [LOST_QUOTA] = 5, [LOST_OFF] = 1000, [LOST_LATE_CHILD] = 1000 }
	};
	struct recording_process *list = &process;
	struct recording recording = { .processes = &list, .count = 1 };
	struct scene scene = { .operations = 1000 };
	const struct blind_options options = { .source_count = 0 };

	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("only whole operations count, and not those lost while recording was off",
		    only("lost") && strncmp(only("lost")->title, "5 operations", 12) == 0);
	EXPECT(only("lost") && only("lost")->severity == VERDICT_NOTE);
	verdicts_release(&verdicts);
	process.lost[LOST_NOT_SHOWN] = 2;
	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("and those that NCCL did not report",
		    only("lost") && strncmp(only("lost")->title, "7 operations", 12) == 0 &&
			    strcmp(only("lost")->evidence.list[1], "not reported by NCCL: 2") == 0);
	verdicts_release(&verdicts);
	process.lost[LOST_NOT_SHOWN] = 0;
	scene.operations = 400;
	blind_find(&verdicts, &recording, &scene, &options);
	EXPECT_THAT("a warning above 1% of the operations",
		    only("lost") && only("lost")->severity == VERDICT_WARNING);
	verdicts_release(&verdicts);
}

static void test_files(void)
{
	char path[] = "x.ringside";
	struct recording_trouble troubles[] = {
		{ .kind = RECORDING_CUT, .path = path, .what = "cut" },
		{ .kind = RECORDING_FOREIGN, .path = path, .what = "foreign" },
		{ .kind = RECORDING_DAMAGE, .path = path, .what = "damaged" },
	};
	struct recording recording = { .troubles = troubles, .trouble_count = 2 };
	const struct blind_options options = { .source_count = 0 };

	blind_find(&verdicts, &recording, NULL, &options);
	EXPECT_THAT("truncated files and files of others are not damage", verdicts.count == 0);
	recording.trouble_count = 3;
	blind_find(&verdicts, &recording, NULL, &options);
	EXPECT(only("files") && only("files")->severity == VERDICT_WARNING);
	EXPECT(only("files") &&
	       strcmp(only("files")->evidence.list[0], "x.ringside: damaged") == 0);
	verdicts_release(&verdicts);
}

int main(void)
{
	verdicts_init(&verdicts);
	test_nothing();
	test_silent();
	test_endless();
	test_missing();
	test_lost();
	test_files();
	return tap_done();
}
