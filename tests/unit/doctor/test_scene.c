#include <string.h>

#include "doctor/doctor.h"
#include "tests/tap.h"
#include "tests/support/hand_made.h"
#include "tests/support/poisoned_rest.h"

#define SECOND UINT64_C(1000000000)

static const uint64_t now[HAND_PROCESSES] = { 100 * SECOND, 100 * SECOND, 100 * SECOND,
					      100 * SECOND };

/* In a collective that it called at this time. */
static void enter(struct recording_process *process, uint32_t comm, uint64_t match, uint64_t at_ns)
{
	struct op_record *op = hand_op(process, comm, OP_ALL_REDUCE, match, 1024, 0, at_ns);

	op->state = OP_RUNNING;
	op->done_ns = 0;
	op->issue_ns = at_ns;
	process->comms[comm - 1].counts.last_issue_ns = at_ns;
	process->comms[comm - 1].counts.collectives = match;
}

/* Four ranks on two hosts in "world", the first two in "tp". Rank 3 has not arrived. */
static void make(struct hand_made *hand)
{
	for (int i = 0; i < 4; i++) {
		struct recording_process *process = hand_process(hand, "job", i, i < 2 ? "a" : "b");

		process->life = RECORDING_ALIVE;
		process->world_size = 6;
		hand_comm(process, 0x100, "world", i, 4, 2);
		if (i < 2)
			hand_comm(process, 0x200, "tp", i, 2, 1);
		process->comms[0].counts.collectives = 7;
		process->comms[0].counts.last_done_ns = 50 * SECOND;
		if (i < 3)
			enter(process, 1, 8, (60 + (uint64_t)i) * SECOND);
	}
}

static void test_standing(void)
{
	struct hand_made hand = { 0 };
	struct scene scene;
	struct job job;

	make(&hand);
	EXPECT(job_make(&job, &hand.recording) == OK);
	poison_job(&job);
	EXPECT(scene_make(&scene, &job, now, 20 * SECOND) == OK);
	EXPECT(scene.ranks == 4 && scene.hosts == 2 && scene.processes == 4 && scene.alive == 4);
	EXPECT_THAT("the launcher counts six", scene.missing == 2);
	EXPECT(scene.jobs == 1 && strcmp(scene.job, "job") == 0);
	EXPECT_EQUAL(scene.comm_count, 2);
	EXPECT_EQUAL(scene.communicators, 2);
	EXPECT_EQUAL(scene.standing, 1);
	EXPECT_THAT("the communicator that ranks are in comes first",
		    strcmp(job.comms[scene.comms[0].comm].label, "world") == 0);
	EXPECT(scene.comms[0].open == 4 && scene.comms[0].inside == 3);
	EXPECT_EQUAL(scene.comms[0].age_ns, 40 * SECOND);
	EXPECT_EQUAL(scene.comms[0].still_ns, 38 * SECOND);
	EXPECT(scene.comms[0].most_issued == 8 && scene.comms[0].least_issued == 7);
	EXPECT(strcmp(scene.comms[0].function, "AllReduce") == 0 && scene.comms[0].number == 8);
	EXPECT(scene.age_ns == 40 * SECOND && scene.last_ns == 38 * SECOND);
	scene_release(&scene);
	EXPECT(scene_make(&scene, &job, now, 39 * SECOND) == OK);
	EXPECT_THAT("the last activity was 38 s ago", scene.standing == 0);
	scene_release(&scene);
	job_release(&job);
	hand_release(&hand);
}

static void test_over(void)
{
	struct hand_made hand = { 0 };
	struct scene scene;
	struct job job;

	make(&hand);
	for (int i = 0; i < 4; i++)
		hand.list[i]->life = i == 0 ? RECORDING_KILLED : RECORDING_ENDED;
	EXPECT(job_make(&job, &hand.recording) == OK);
	poison_job(&job);
	EXPECT(scene_make(&scene, &job, now, 20 * SECOND) == OK);
	EXPECT_THAT("no activity", scene.comm_count == 0 && scene.standing == 0);
	EXPECT(scene.communicators == 2 && scene.killed == 1 && scene.ended == 3);
	EXPECT(scene.last_ns == UINT64_MAX && scene.age_ns == 0);
	EXPECT_EQUAL(scene.operations, 3);
	scene_release(&scene);
	job_release(&job);
	hand_release(&hand);
}

static void test_jobs(void)
{
	struct hand_made hand = { 0 };
	struct scene scene;
	struct job job;

	hand_process(&hand, "one", 0, "a");
	hand_process(&hand, "one", 0, "a"); /* restarted */
	hand_process(&hand, "other", 0, "a");
	EXPECT(job_make(&job, &hand.recording) == OK);
	poison_job(&job);
	EXPECT(scene_make(&scene, &job, NULL, 20 * SECOND) == OK);
	EXPECT(scene.jobs == 2 && scene.job[0] == '\0' && scene.ranks == 2 && scene.processes == 3);
	scene_release(&scene);
	job_release(&job);
	hand_release(&hand);
}

/* In one word: an exit code and what a page shows depend on it. */
static void test_answers(void)
{
	static const struct {
		const char *sentence;
		enum scene_answer answer;
		struct {
			enum verdict_class class;
			enum verdict_severity severity;
			bool is_unjudged;
		} list[3];
		size_t count;
		size_t processes, killed, ended; /* no processes: there is no scene */
		bool is_unhealthy;
	} cases[] = {
		{ "nothing", SCENE_NOTHING_WRONG, { { 0 } }, 0, 0, 0, 0, false },
		{ "notes",
		  SCENE_NOTHING_WRONG,
		  { { VERDICT_SLOW_RANK, VERDICT_NOTE, false } },
		  1,
		  0,
		  0,
		  0,
		  false },
		{ "a note about what was not judged",
		  SCENE_NOTHING_WRONG,
		  { { VERDICT_BLIND, VERDICT_NOTE, true } },
		  1,
		  0,
		  0,
		  0,
		  true },
		{ "not visible",
		  SCENE_UNKNOWN,
		  { { VERDICT_BLIND, VERDICT_WARNING, false } },
		  1,
		  0,
		  0,
		  0,
		  true },
		{ "not visible and slow",
		  SCENE_TROUBLE,
		  { { VERDICT_BLIND, VERDICT_WARNING, false },
		    { VERDICT_SLOW_RANK, VERDICT_WARNING, false } },
		  2,
		  0,
		  0,
		  0,
		  true },
		{ "stuck",
		  SCENE_STUCK,
		  { { VERDICT_STUCK, VERDICT_WARNING, false } },
		  1,
		  0,
		  0,
		  0,
		  true },
		{ "stuck twice and slow",
		  SCENE_STUCK,
		  { { VERDICT_STUCK, VERDICT_WARNING, false },
		    { VERDICT_SLOW_RANK, VERDICT_WARNING, false },
		    { VERDICT_STUCK, VERDICT_WARNING, false } },
		  3,
		  0,
		  0,
		  0,
		  true },
		{ "another hang has a cause",
		  SCENE_TROUBLE,
		  { { VERDICT_STUCK, VERDICT_WARNING, false },
		    { VERDICT_DEADLOCK, VERDICT_WARNING, false } },
		  2,
		  0,
		  0,
		  0,
		  true },
		{ "all alive", SCENE_NOTHING_WRONG, { { 0 } }, 0, 4, 0, 0, false },
		{ "all ended", SCENE_NOTHING_WRONG, { { 0 } }, 0, 4, 0, 4, false },
		{ "one killed, others alive", SCENE_NOTHING_WRONG, { { 0 } }, 0, 4, 1, 2, false },
		{ "one killed, others ended", SCENE_TROUBLE, { { 0 } }, 0, 4, 1, 3, true },
		{ "all killed, and not visible",
		  SCENE_TROUBLE,
		  { { VERDICT_BLIND, VERDICT_WARNING, false } },
		  1,
		  4,
		  4,
		  0,
		  true },
	};
	static const char *const names[] = { [SCENE_NOTHING_WRONG] = "nothing_wrong",
					     [SCENE_TROUBLE] = "trouble",
					     [SCENE_STUCK] = "stuck_cause_unknown",
					     [SCENE_UNKNOWN] = "could_not_tell" };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct scene scene = { .processes = cases[i].processes,
					     .killed = cases[i].killed,
					     .ended = cases[i].ended };
		const struct scene *shown = cases[i].processes > 0 ? &scene : NULL;
		struct verdicts verdicts;

		verdicts_init(&verdicts);
		for (size_t v = 0; v < cases[i].count; v++)
			verdicts_add(&verdicts, cases[i].list[v].class, cases[i].list[v].severity)
				->is_unjudged = cases[i].list[v].is_unjudged;
		EXPECT_THAT(cases[i].sentence,
			    scene_answer(shown, &verdicts) == cases[i].answer &&
				    scene_is_healthy(shown, &verdicts) == !cases[i].is_unhealthy);
		EXPECT(strcmp(scene_answer_name(cases[i].answer), names[cases[i].answer]) == 0);
		verdicts_release(&verdicts);
	}
}

int main(void)
{
	test_standing();
	test_over();
	test_jobs();
	test_answers();
	return tap_done();
}
