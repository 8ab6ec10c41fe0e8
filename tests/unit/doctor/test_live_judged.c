/*
 * What becomes of a judgement of speed, made by hand: when it is shown, when it is dropped, what is reported as
 * not judged. Two jobs of four ranks; the second one is judged after the first.
 */
#include "common/attributes.h"
#include "common/text.h"
#include "doctor/live_internal.h"
#include "tests/tap.h"
#include "tests/unit/doctor/live_stage.h"

enum { JOB_RANKS = 4, FINDINGS = 3 };

static struct stage stage;

struct finding {
	enum verdict_class class;
	enum verdict_severity severity;
	int rank; /* from 1; 0: none */
	const char *title, *rule, *advice[2];
	bool is_unjudged;
	uint64_t since_s; /* of the stage's time; 0 unknown */
	bool is_of_comm;
};

static void begin(int64_t world)
{
	stage_init(&stage);
	for (int i = 0; i < 2 * JOB_RANKS; i++) {
		struct recording_process *process =
			stage_process(&stage, i % JOB_RANKS, i < JOB_RANKS ? "node0" : "node1");

		text_copy(process->job, sizeof(process->job), i < JOB_RANKS ? "alpha" : "beta");
		process->world_size = world;
		hand_comm(process, i < JOB_RANKS ? 0x100 : 0x200, i < JOB_RANKS ? "dp" : "pp",
			  i % JOB_RANKS, JOB_RANKS, 2);
	}
	stage_looks(&stage, 1);
}

static void show(const char *what)
{
	expected_put(&stage_text, "=== %s\n", what);
	for (size_t i = 0; i < stage.live.job.group_count; i++) {
		char text[1000] = "";

		live_say_speed(text, sizeof(text), &stage.live.jobs[i]);
		expected_put(&stage_text, "%s: %s\n", stage.live.job.groups[i].name, text);
		if (stage.live.jobs[i].speed.how[0] != '\0')
			expected_put(&stage_text, "  how: %s\n", stage.live.jobs[i].speed.how);
	}
	for (size_t i = 0; i < stage.live.notice_count; i++)
		expected_put(&stage_text, "%s: %s (%d %d)\n",
			     live_notice_name(stage.live.notices[i].kind),
			     stage.live.notices[i].title, (int)stage.live.notices[i].comm,
			     (int)stage.live.notices[i].seat);
	for (size_t i = 0; i < stage.live.verdicts.count; i++)
		expected_put_verdict(&stage_text, &stage.live.verdicts.list[i]);
}

/* The next judgement, 20 s later, of the job whose turn it is. Takes so much CPU time. */
static bool judge(const char *what, const struct finding *findings, bool is_judged, uint64_t cpu_ns)
{
	struct live_judgement judgement;

	for (size_t p = 0; p < stage.hand.recording.count; p++)
		stage.hand.list[p]->recorded++;
	if (stage_look(&stage, 20 * SECOND) != OK)
		abort();
	if (!live_judge_begin(&stage.live, stage.now_ns, &judgement))
		return false;
	judgement.status = OK;
	judgement.is_judged = is_judged;
	judgement.has_wall = true;
	judgement.start_ns = stage.live.wall_ns - 100 * SECOND;
	judgement.end_ns = stage.live.wall_ns;
	for (size_t i = 0; i < FINDINGS && findings != NULL && findings[i].title != NULL; i++) {
		const struct finding *of = &findings[i];
		struct verdict *verdict = verdicts_add(&judgement.found, of->class, of->severity);
		bool is_alpha = judgement.key == stage.live.memory->job_keys[0];

		text_copy(verdict->job, sizeof(verdict->job), is_alpha ? "alpha" : "beta");
		text_copy(verdict->title, sizeof(verdict->title), of->title);
		text_copy(verdict->rule, sizeof(verdict->rule), of->rule ? of->rule : "others");
		verdict->is_unjudged = of->is_unjudged;
		verdict->since_wall_ns = of->since_s > 0 ? STAGE_WALL_NS + of->since_s * SECOND : 0;
		if (of->rank > 0) {
			verdict->rank = of->rank - 1;
			text_format(verdict->rank_label, sizeof(verdict->rank_label), "%d",
				    of->rank - 1);
		}
		if (of->is_of_comm)
			verdict->comm_hash = is_alpha ? 0x100 : 0x200;
		verdict_evidence(verdict, "It is slow.");
		for (size_t a = 0; a < ARRAY_LENGTH(of->advice); a++)
			if (of->advice[a] != NULL)
				verdict_advice(verdict, "%s", of->advice[a]);
	}
	live_judge_end(&stage.live, &judgement, cpu_ns);
	stage_looks(&stage, 1);
	show(what);
	return true;
}

#define UNJUDGED(text, first, second)                                                      \
	{                                                                                  \
		{                                                                          \
			.class = VERDICT_BLIND, .severity = VERDICT_NOTE, .title = (text), \
			.advice = { first, second }, .is_unjudged = true                   \
		}                                                                          \
	}

/* Why speed was not judged, and what to do: of the first finding that says so, and its first command. */
static void test_not_judged(void)
{
	static const struct finding cases[][FINDINGS] = {
		UNJUDGED("not judged: speed (0 of 300 calls are timed)",
			 "Do this:", "$ ringside a"),
		UNJUDGED("not judged: speed of sends (no (network) times)", "$ ringside b",
			 "$ ringside c"),
		UNJUDGED("not judged: the past", NULL, NULL),
		UNJUDGED("speed (nothing finished)", "Nothing to type", NULL),
		UNJUDGED("no match", NULL, NULL),
		{ { .class = VERDICT_SLOW_RANK, .severity = VERDICT_NOTE, .title = "it was slow" },
		  { .class = VERDICT_BLIND, .title = "not judged: one", .is_unjudged = true },
		  { .class = VERDICT_BLIND,
		    .title = "not judged: two",
		    .advice = { "$ ringside d" },
		    .is_unjudged = true } },
		{ { .title = NULL } },
	};

	for (int64_t world = JOB_RANKS; world <= JOB_RANKS + 2; world++)
		for (int is_judged = 0; is_judged < 2; is_judged++) {
			begin(world);
			for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
				char what[64];

				text_format(what, sizeof(what), "not judged %zu, world %d%s", i,
					    (int)world, is_judged ? ", stragglers were" : "");
				if (world == JOB_RANKS || i == 0 || i == 3)
					EXPECT(judge(what, cases[i], is_judged, 0));
			}
			stage_release(&stage);
		}
}

static const struct finding slow[FINDINGS] = {
	{ .class = VERDICT_SLOW_RANK,
	  .severity = VERDICT_WARNING,
	  .rank = 3,
	  .title = "rank 2 is slow" },
	{ .class = VERDICT_SLOW_LINK,
	  .severity = VERDICT_WARNING,
	  .rank = 2,
	  .title = "a link is slow",
	  .rule = "past",
	  .since_s = 4990,
	  .is_of_comm = true },
};
static const struct finding first_only[FINDINGS] = {
	{ .class = VERDICT_SLOW_RANK,
	  .severity = VERDICT_WARNING,
	  .rank = 3,
	  .title = "rank 2 is slow" },
};
static const struct finding over[FINDINGS] = {
	{ .class = VERDICT_SLOW_RANK,
	  .severity = VERDICT_NOTE,
	  .rank = 3,
	  .title = "rank 2 was slow" },
	{ .class = VERDICT_SLOW_LINK,
	  .severity = VERDICT_NOTE,
	  .rank = 2,
	  .title = "a link was slow",
	  .rule = "past",
	  .since_s = 4990,
	  .is_of_comm = true },
};

/* Jobs take turns: two judgements for a finding of both. */
static void test_found(void)
{
	begin(JOB_RANKS);
	for (int i = 0; i < 4; i++)
		EXPECT(judge(i < 2 ? "found once" : "found twice", slow, true, 0));
	for (int i = 0; i < 2; i++)
		EXPECT(judge("one of them is found again", first_only, true, 0));
	for (int i = 0; i < 6; i++)
		EXPECT(judge("neither is found again", NULL, true, 0));
	stage_release(&stage);

	begin(JOB_RANKS);
	for (int i = 0; i < 4; i++)
		EXPECT(judge("found", slow, true, 0));
	EXPECT(judge("one job is over it", over, true, 0));
	EXPECT(judge("and so is the other", over, true, 0));
	stage_release(&stage);

	/* What became slower before the buffers begin cannot be checked any more: held for ten minutes. */
	begin(JOB_RANKS);
	for (int i = 0; i < 4; i++)
		judge("found", slow, true, 0);
	for (int i = 0; i < 3; i++) {
		stage_look(&stage, 200 * SECOND);
		judge("long after", NULL, true, 0);
		judge("long after", NULL, true, 0);
	}
	stage_release(&stage);
}

/* A judgement that took 0.1 s is followed by a pause of 20 s. */
static void test_pause(void)
{
	begin(JOB_RANKS);
	EXPECT(judge("the first", NULL, true, SECOND / 10));
	EXPECT(judge("the second, in time", NULL, true, SECOND / 10));
	EXPECT(judge("a long one", NULL, true, 2 * SECOND / 10));
	EXPECT_THAT("after 0.2 s the pause is 40 s", !judge("too early", NULL, true, 0));
	EXPECT_THAT("then it goes on", judge("later", NULL, true, 0));
	stage_release(&stage);
}

int main(void)
{
	test_not_judged();
	test_found();
	test_pause();
	expected_compare(&stage_text, "tests/unit/doctor/expected/live_judged.txt");
	return tap_done();
}
