/* Where in the program ranks of a hang are: places of calls, and stacks. Rank 5 has not called AllReduce #2. */
#include "common/text.h"
#include "tests/tap.h"
#include "tests/unit/doctor/hang_stage.h"

enum { RANKS = 8, MISSING = 5 };

static struct hang_stage stage;

static void begin(void)
{
	stage_begin(&stage, RANKS, 4);
	for (int i = 0; i < RANKS; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 61 * SECOND);
		if (i != MISSING)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 60 * SECOND);
	}
}

static void add_where(int rank, uint32_t comm, uint64_t issue_ns, bool is_open, const char *text)
{
	struct recording_process *process = stage_rank(&stage, rank);

	process->wheres =
		realloc(process->wheres, (process->where_count + 1) * sizeof(*process->wheres));
	if (process->wheres == NULL)
		abort();
	process->wheres[process->where_count++] =
		(struct recording_where){ .comm = comm,
					  .number = 1,
					  .issue_ns = issue_ns,
					  .is_open = is_open,
					  .text = text != NULL ? strdup(text) : NULL };
}

static void set_stack(int rank, const char *text)
{
	stage_rank(&stage, rank)->stack = strdup(text);
}

static size_t lines_without;

/* Lines of evidence beyond those that the hang has anyway. */
static const char *added(void)
{
	static char text[4096];

	text[0] = '\0';
	if (!stage_only(&stage, VERDICT_NEVER_ISSUED, MISSING))
		return "not the verdict";
	for (size_t i = lines_without; i < stage.verdicts.list[0].evidence.count; i++)
		text_append(text, sizeof(text), "%s\n", stage.verdicts.list[0].evidence.list[i]);
	return text;
}

static void test_without(void)
{
	begin();
	if (!stage_only(&stage, VERDICT_NEVER_ISSUED, MISSING))
		abort();
	lines_without = stage.verdicts.list[0].evidence.count;
	stage_end(&stage);
}

static void test_places(void)
{
	begin();
	add_where(MISSING, 1, 30, false, "data.py:41 in load");
	add_where(MISSING, 1, 20, false, "old.py:1");
	for (int rank = 0; rank < 3; rank++)
		add_where(rank, 1, 50, true, "train.py:88 in step");
	add_where(3, 1, 50, true, "eval.py:7");
	add_where(3, 1, 60, true, "later.py:7");
	add_where(4, 1, 50, false, "over.py:1");
	add_where(6, 1, 50, true, NULL);
	add_where(7, 9, 50, true, "elsewhere.py:1");
	EXPECT(strcmp(added(), "Rank 5 made its last call at data.py:41 in load.\n"
			       "Ranks 0-2 wait at train.py:88 in step.\n"
			       "Rank 3 waits at eval.py:7.\n") == 0);
	stage_end(&stage);

	begin();
	add_where(MISSING, 1, 30, true, "data.py:41");
	for (int rank = 0; rank < 4; rank++) {
		char place[32];

		snprintf(place, sizeof(place), "p%d.py:1", rank);
		add_where(rank, 1, 50, true, place);
	}
	EXPECT_THAT("three places are shown",
		    strcmp(added(), "Rank 5 made its current call at data.py:41.\n"
				    "Rank 0 waits at p0.py:1.\n"
				    "Rank 1 waits at p1.py:1.\n"
				    "Rank 2 waits at p2.py:1.\n"
				    "Others wait elsewhere in the program.\n") == 0);
	stage_end(&stage);
}

static void test_stacks(void)
{
	begin();
	set_stack(MISSING, "in load (data.py:41)");
	set_stack(0, "in step (train.py:88)");
	set_stack(1, "in eval (eval.py:7)");
	set_stack(3, "in step (train.py:88)");
	set_stack(7, "in step (train.py:88)");
	EXPECT(strcmp(added(),
		      "Rank 5 is in load (data.py:41), 1 min 01 s after its last NCCL call.\n"
		      "Ranks 0, 3, 7 are in step (train.py:88).\n"
		      "Rank 1 is in eval (eval.py:7).\n") == 0);
	stage_end(&stage);

	begin();
	stage_rank(&stage, MISSING)->comms[0].counts.last_issue_ns = 0;
	set_stack(MISSING, "in load");
	for (int rank = 0; rank < 4; rank++) {
		char place[16];

		snprintf(place, sizeof(place), "in p%d", rank);
		set_stack(rank, place);
	}
	EXPECT_THAT("three places, and a last call only if its time is known",
		    strcmp(added(),
			   "Rank 5 is in load.\nRank 0 is in p0.\nRank 1 is in p1.\n"
			   "Rank 2 is in p2.\nOther ranks are elsewhere in the program.\n") == 0);
	stage_end(&stage);
}

/* A verdict of another job, and one that is no hang, get no places. */
static void test_others(void)
{
	struct verdicts verdicts;

	begin();
	set_stack(0, "in step");
	if (job_make(&stage.job, &stage.recording) != OK)
		abort();
	verdicts_init(&verdicts);
	text_copy(verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR)->job, 128, "job");
	text_copy(verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR)->job, 128, "job");
	text_copy(verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR)->job, 128, "another");
	text_copy(verdicts_add(&verdicts, VERDICT_SLOW_RANK, VERDICT_ERROR)->job, 128, "job");
	hang_say_stacks(&verdicts, 1, &stage.job, NULL);
	EXPECT_THAT("from the given one on", verdicts.list[0].evidence.count == 0 &&
						     verdicts.list[1].evidence.count == 1 &&
						     verdicts.list[2].evidence.count == 0 &&
						     verdicts.list[3].evidence.count == 0);
	EXPECT(strcmp(verdicts.list[1].evidence.list[0], "Rank 0 is in step.") == 0);
	verdicts_release(&verdicts);
	stage_end(&stage);
}

int main(void)
{
	test_without();
	test_places();
	test_stacks();
	test_others();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_places.txt");
	return tap_done();
}
