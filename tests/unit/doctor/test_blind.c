#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "tests/support/expected_verdicts.h"
#include "tests/tap.h"

static struct verdicts verdicts;
static struct expected_text all_found;

static void find_in(const struct recording *recording, const struct scene *scene,
		    const struct blind_options *options, const char *test)
{
	blind_find(&verdicts, recording, scene, options);
	expected_put_verdicts(&all_found, test, &verdicts);
}

#define find(recording, scene, options) find_in(recording, scene, options, __func__)

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

	find(&recording, &scene, &options);
	find(&recording, NULL, &options);
	EXPECT_THAT("nothing to report", verdicts.count == 0);
	options.sources = &source;
	options.source_count = 1;
	find(&recording, NULL, &options);
	EXPECT_THAT("an agent without processes", only("nothing") && only("nothing")->is_unjudged);
	verdicts_release(&verdicts);
	source.is_silent = true;
	find(&recording, NULL, &options);
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
	find(&recording, NULL, &options);
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
	find(&recording, NULL, &options);
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

	find(&recording, &scene, &options);
	EXPECT_THAT("a recording with an end", verdicts.count == 0);
	recording.count = 2;
	find(&recording, &scene, &options);
	EXPECT_THAT("one without", only("end") && only("end")->is_unjudged &&
					   only("end")->severity == VERDICT_WARNING);
	EXPECT(only("end") && strstr(only("end")->title, "1 of 2 recordings have no end"));
	EXPECT(only("end") && strstr(only("end")->evidence.list[0], "2023-11-14 22:13:20"));
	verdicts_release(&verdicts);
	options.wall_ns = anchor.wall_ns + 25 * SECOND_NS;
	find(&recording, &scene, &options);
	EXPECT_THAT("not if it was written just now", verdicts.count == 0);
	recording.count = 3;
	find(&recording, &scene, &options);
	EXPECT_THAT("a file without any record",
		    only("end") && strstr(only("end")->title, "1 of 3"));
	verdicts_release(&verdicts);
	verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR);
	find(&recording, &scene, &options);
	EXPECT_THAT("a hung job has no end", verdicts.count == 1);
	verdicts_release(&verdicts);
	recording.count = 1;
	scene.communicators = 0;
	find(&recording, &scene, &options);
	EXPECT_THAT("no communicator", only("nothing") && only("nothing")->is_unjudged);
	verdicts_release(&verdicts);
}

static void test_missing(void)
{
	struct recording recording = { .count = 0 };
	struct scene scene = { .ranks = 500, .missing = 12 };
	struct blind_options options = { .source_count = 0 };

	find(&recording, &scene, &options);
	EXPECT(only("ranks") && only("ranks")->severity == VERDICT_NOTE);
	EXPECT(only("ranks") && strstr(only("ranks")->title, "12 of 512 ranks"));
	verdicts_release(&verdicts);
	options.is_whole = true;
	find(&recording, &scene, &options);
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

	find(&recording, &scene, &options);
	EXPECT_THAT("only whole operations count, and not those lost while recording was off",
		    only("lost") && strncmp(only("lost")->title, "5 operations", 12) == 0);
	EXPECT(only("lost") && only("lost")->severity == VERDICT_NOTE);
	verdicts_release(&verdicts);
	process.lost[LOST_NOT_SHOWN] = 2;
	find(&recording, &scene, &options);
	EXPECT_THAT("and those that NCCL did not report",
		    only("lost") && strncmp(only("lost")->title, "7 operations", 12) == 0 &&
			    strcmp(only("lost")->evidence.list[1], "not reported by NCCL: 2") == 0);
	verdicts_release(&verdicts);
	process.lost[LOST_NOT_SHOWN] = 0;
	scene.operations = 400;
	find(&recording, &scene, &options);
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

	find(&recording, NULL, &options);
	EXPECT_THAT("truncated files and files of others are not damage", verdicts.count == 0);
	recording.trouble_count = 3;
	find(&recording, NULL, &options);
	EXPECT(only("files") && only("files")->severity == VERDICT_WARNING);
	EXPECT(only("files") &&
	       strcmp(only("files")->evidence.list[0], "x.ringside: damaged") == 0);
	verdicts_release(&verdicts);
}

/* The last records of two recordings, one of them a log of another tool. */
static void test_dates(void)
{
	struct clock_anchor anchors[] = { { .clock_ns = 1000, .wall_ns = 1700000000 * SECOND_NS },
					  { .clock_ns = 1000, .wall_ns = 1700000777 * SECOND_NS } };
	char path[] = "region";
	struct recording_process list[5] = {
		{ .life = RECORDING_UNKNOWN, .foreign = (void *)anchors },
		{ .life = RECORDING_UNKNOWN, .region_path = path },
		{ .life = RECORDING_UNKNOWN }, /* neither file nor region: there is nothing to end */
		{ .life = RECORDING_ALIVE, .region_path = path },
		{ .life = RECORDING_UNKNOWN, .region_path = path },
	};
	struct recording_process *processes[] = { &list[0], &list[1], &list[2], &list[3],
						  &list[4] };
	struct recording recording = { .processes = processes, .count = 1 };
	struct scene scene = { .ranks = 5, .communicators = 1 };
	struct blind_options options = { .hang_ns = 20 * SECOND_NS };

	for (int i = 0; i < 5; i++) {
		list[i].counts_ns = 1000;
		list[i].anchors = &anchors[i % 2];
		list[i].anchor_count = 1;
	}
	list[4].counts_ns = list[4].anchor_count = 0;
	for (recording.count = 1; recording.count <= 5; recording.count++) {
		find(&recording, &scene, &options);
		verdicts_release(&verdicts);
	}
	recording.count = 2;
	/* Records are written every 10 s; a hang takes 20 s. */
	for (int late = 0; late < 2; late++) {
		options.wall_ns = anchors[1].wall_ns + 30 * SECOND_NS + (uint64_t)late;
		find(&recording, &scene, &options);
		verdicts_release(&verdicts);
	}
	verdicts_add(&verdicts, VERDICT_SLOW_RANK, VERDICT_ERROR);
	find(&recording, &scene, &options);
	EXPECT_THAT("a slow rank is no hang", verdicts.count == 2);
	verdicts_release(&verdicts);
	for (int what = 0; what < 3; what++) {
		struct verdict *verdict;

		verdicts_add(&verdicts, VERDICT_SLOW_RANK, VERDICT_ERROR);
		verdict = verdicts_add(&verdicts, VERDICT_BLIND, VERDICT_NOTE);
		verdict->is_unjudged = what > 0;
		snprintf(verdict->rule, sizeof(verdict->rule), what == 1 ? "speed" : "hang");
		find(&recording, &scene, &options);
		EXPECT_THAT("nor is what was not judged, unless it may hang",
			    (only("end") != NULL) == (what < 2));
		verdicts_release(&verdicts);
	}
}

static void test_gaps(void)
{
	struct recording recording = { .count = 0 };
	struct agent_gap gaps[30];
	struct agent_notes notes = { .gaps = gaps };
	const struct blind_options options = { .notes = &notes };

	for (int i = 0; i < 30; i++) {
		snprintf(gaps[i].host, sizeof(gaps[i].host), "node%d", i);
		snprintf(gaps[i].text, sizeof(gaps[i].text),
			 i % 2 ? "it is missing" : "it is incomplete");
		gaps[i].is_warning = i % 2;
	}
	for (notes.gap_count = 1; notes.gap_count <= 3; notes.gap_count++) {
		find(&recording, NULL, &options);
		EXPECT(verdicts.count == 1 &&
		       verdicts.list[0].severity ==
			       (notes.gap_count == 1 ? VERDICT_NOTE : VERDICT_WARNING));
		verdicts_release(&verdicts);
	}
	notes.gap_count = 24;
	find(&recording, NULL, &options);
	EXPECT_THAT("all of them", verdicts.list[0].evidence.count == 24);
	verdicts_release(&verdicts);
	notes.gap_count = 30;
	notes.gaps_left_out = 5;
	find(&recording, NULL, &options);
	EXPECT_THAT("the rest is counted", verdicts.list[0].evidence.count == 25);
	verdicts_release(&verdicts);
}

static bool is_named_y(const struct recording_trouble *trouble, void *context)
{
	(void)context;
	return trouble->path[0] == 'y';
}

static void test_many(void)
{
	char path[] = "x.ringside", other[] = "y.ringside";
	struct recording_trouble troubles[30];
	struct recording_process list[3] = { { .lost = { [LOST_QUOTA] = 1 } },
					     { .mode = "trace" },
					     { .lost = {
						       [LOST_QUOTA] = 2, [LOST_NOT_SHOWN] = 4 } } };
	struct recording_process *processes[] = { &list[0], &list[1], &list[2] };
	struct recording recording = { .troubles = troubles };
	struct hang_source sources[26];
	struct blind_options options = { .sources = sources };
	struct scene scene = { .operations = 700 };

	for (int i = 0; i < 30; i++)
		troubles[i] = (struct recording_trouble){ .kind = RECORDING_DAMAGE,
							  .path = i % 3 == 2 ? other : path,
							  .what = "damaged" };
	for (int i = 0; i < 26; i++)
		sources[i] = (struct hang_source){ .name = "a:1", .is_silent = i != 1 };
	recording.trouble_count = 24;
	find(&recording, NULL, &options);
	EXPECT_THAT("all of them", only("files") && only("files")->evidence.count == 24);
	verdicts_release(&verdicts);
	recording.trouble_count = 30;
	recording.troubles_left_out = 3;
	find(&recording, NULL, &options);
	EXPECT_THAT("the rest is counted", only("files") && only("files")->evidence.count == 25);
	verdicts_release(&verdicts);
	options.is_trouble = is_named_y;
	find(&recording, NULL, &options);
	EXPECT_THAT("as far as the caller wants them", only("files"));
	verdicts_release(&verdicts);
	recording.trouble_count = 0;
	options.source_count = 2;
	find(&recording, NULL, &options);
	EXPECT_THAT("an answer from the second: nothing runs there", only("nothing"));
	verdicts_release(&verdicts);
	options.source_count = 25;
	find(&recording, NULL, &options);
	verdicts_release(&verdicts);
	verdicts_add(&verdicts, VERDICT_SLOW_RANK, VERDICT_ERROR);
	verdicts_add(&verdicts, VERDICT_AGENT_DEAD, VERDICT_ERROR);
	options.source_count = 26;
	find(&recording, NULL, &options);
	EXPECT_THAT("not reported twice",
		    only("silent") && only("silent")->severity == VERDICT_NOTE);
	verdicts_release(&verdicts);

	recording = (struct recording){ .processes = processes };
	options.source_count = 0;
	for (recording.count = 1; recording.count <= 3; recording.count++) {
		find(&recording, NULL, &options);
		verdicts_release(&verdicts);
	}
	recording.count = 3;
	for (scene.operations = 700; scene.operations <= 800; scene.operations += 100) {
		find(&recording, &scene, &options);
		EXPECT_THAT("less than 1% is a note",
			    only("lost") && only("lost")->severity == (scene.operations == 800
									       ? VERDICT_NOTE
									       : VERDICT_WARNING));
		verdicts_release(&verdicts);
	}
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
	test_dates();
	test_gaps();
	test_many();
	expected_compare(&all_found, "tests/unit/doctor/expected/blind.txt");
	return tap_done();
}
