#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/doctor.h"
#include "doctor/verdict.h"
#include "output/json.h"
#include "output/sink.h"
#include "output/verdict_show.h"
#include "tests/tap.h"

static const struct verdict_text_options plain = { .width = 80 };

static struct scene scene = {
	.job = "llm-7",
	.jobs = 1,
	.processes = 512,
	.ranks = 512,
	.hosts = 64,
	.communicators = 131,
	.alive = 512,
	.operations = 1234567,
	.last_ns = 400000000,
};
static struct job_comm comm = { .label = "world", .nranks = 512 };
static struct job job = { .comms = &comm, .comm_count = 1 };
static struct scene_comm standing = {
	.open = 512,
	.inside = 511,
	.age_ns = 40000000000,
	.still_ns = 40000000000,
	.most_issued = 812,
	.least_issued = 811,
	.number = 812,
	.function = "AllReduce",
};

static struct verdict_look look_at(void)
{
	return (struct verdict_look){
		.source = "64 agents",
		.scene = &scene,
		.job = &job,
		.wall_ns = 1768435062000000000,
		.hang_ns = 20000000000,
		.sources = 64,
	};
}

static struct verdict *add_hang(struct verdicts *verdicts)
{
	struct verdict *verdict = verdicts_add(verdicts, VERDICT_NEVER_ISSUED, VERDICT_ERROR);

	verdict->rank = 247;
	text_copy(verdict->rank_label, sizeof(verdict->rank_label), "247");
	text_copy(verdict->host, sizeof(verdict->host), "node30");
	text_copy(verdict->comm, sizeof(verdict->comm), "world");
	text_copy(verdict->function, sizeof(verdict->function), "AllReduce");
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclHangRankMissing.md");
	verdict->number = 812;
	verdict->comm_hash = 0xabc;
	verdict->victims = 511;
	verdict->for_ns = 40000000000;
	verdict->since_wall_ns = 1768435022000000000;
	verdict->gpu_hours = 5.69;
	verdict->confidence = 0.9;
	verdict_title(verdict, "rank 247 on node30 has not called AllReduce #812 of world");
	verdict_evidence(verdict,
			 "511 ranks have been in AllReduce #812, rank 247 has called up to #811");
	verdict_missing(verdict, "what its Python code does meanwhile");
	verdict_advice(verdict, "Find out what the process does:");
	verdict_advice(verdict, "$ ssh node30 py-spy dump --pid 4711");
	return verdict;
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

static size_t longest_line(const char *text)
{
	size_t longest = 0;

	while (*text != '\0') {
		size_t length = strcspn(text, "\n");

		if (length > longest)
			longest = length;
		text += length + (text[length] == '\n');
	}
	return longest;
}

static void test_hang(void)
{
	struct verdict_look look = look_at();
	struct verdicts verdicts;
	struct sink sink;

	scene.comms = &standing;
	scene.comm_count = scene.standing = 1;
	verdicts_init(&verdicts);
	add_hang(&verdicts);
	sink_init_memory(&sink);
	EXPECT(verdict_text(&sink, &verdicts, &look, &plain) == OK);
	EXPECT_THAT("what was examined comes first",
		    strncmp(sink_string(&sink),
			    "job llm-7: 512 ranks on 64 hosts, 131 communicators; from 64",
			    60) == 0);
	EXPECT(strstr(sink_string(&sink),
		      "\nerror       rank 247 on node30 has not called AllReduce #812 of world\n"));
	EXPECT(strstr(sink_string(&sink),
		      "since 2026-01-14 23:57:02 UTC, for 40.0 s; 511 ranks wait for it;"));
	EXPECT(strstr(sink_string(&sink), "\nevidence    - 511 ranks have been in AllReduce #812"));
	EXPECT(strstr(sink_string(&sink), "\nconfidence  90%\ncaveat      - what its Python"));
	EXPECT(strstr(sink_string(&sink), "\nnext steps  - Find out what the process does:\n       "
					  "       $ ssh node30 py-spy dump --pid 4711\n"));
	EXPECT(strstr(sink_string(&sink), "\nrunbook     ringside help nccl-hang-rank-missing\n"));
	EXPECT(strstr(sink_string(&sink),
		      "world           512   512     511  AllReduce #812  40.0 s  811-812\n"));
	EXPECT_THAT("one cause fits on a screen", count_lines(sink_string(&sink)) <= 24);
	EXPECT(longest_line(sink_string(&sink)) <= 80);
	EXPECT_THAT("no colours", strchr(sink_string(&sink), '\033') == NULL);
	sink_release(&sink);
	sink_init_memory(&sink);
	verdicts.list[0].confidence = 0.9999;
	verdict_text_one(&sink, &verdicts.list[0], 0, &plain);
	EXPECT_THAT("nearly certain is not 100%",
		    strstr(sink_string(&sink), "\nconfidence  >99%\n") != NULL);
	sink_release(&sink);
	sink_init_memory(&sink);
	verdicts.list[0].gpu_hours = 9.35e-06;
	verdict_text_one(&sink, &verdicts.list[0], 0, &plain);
	EXPECT_THAT("little time is in seconds, without an exponent",
		    strstr(sink_string(&sink), "0.0337 GPU-seconds") != NULL);
	sink_release(&sink);
	verdicts_release(&verdicts);
	scene.comms = NULL;
	scene.comm_count = scene.standing = 0;
}

static void test_healthy(void)
{
	const struct verdict_text_options wide = { .width = 200 };
	struct verdict_look look = look_at();
	struct verdicts verdicts;
	struct sink sink;

	scene.comms = &standing;
	scene.comm_count = 1;
	verdicts_init(&verdicts);
	sink_init_memory(&sink);
	EXPECT(verdict_text(&sink, &verdicts, &look, &wide) == OK);
	EXPECT(strstr(sink_string(&sink),
		      "\nhealthy     512 ranks on 64 hosts, 131 communicators; no"));
	EXPECT(strstr(sink_string(&sink), "stuck for 20.0 s"));
	EXPECT(strstr(sink_string(&sink), "400 ms ago"));
	sink_release(&sink);
	verdicts_release(&verdicts);
	scene.comms = NULL;
	scene.comm_count = 0;
}

static void test_many(void)
{
	const struct verdict_text_options all = { .width = 80, .has_all = true };
	struct verdict_look look = look_at();
	struct verdicts verdicts;
	struct sink sink;
	size_t lines;

	verdicts_init(&verdicts);
	for (int i = 0; i < 40; i++) {
		struct verdict *verdict = add_hang(&verdicts);

		for (int j = 0; j < 20; j++)
			verdict_evidence(verdict, "line %d", j);
	}
	sink_init_memory(&sink);
	verdict_text(&sink, &verdicts, &look, &plain);
	lines = count_lines(sink_string(&sink));
	EXPECT(strstr(sink_string(&sink), "... and 17 more: --all"));
	EXPECT(strstr(sink_string(&sink), "\nerror       4. rank 247"));
	EXPECT(strstr(sink_string(&sink), "... and 25 more: --all\n"));
	sink_release(&sink);
	sink_init_memory(&sink);
	verdict_text(&sink, &verdicts, &look, &all);
	EXPECT_THAT("--all shows all of them",
		    count_lines(sink_string(&sink)) > 40 * 24 && lines < 80);
	EXPECT(strstr(sink_string(&sink), "more: --all") == NULL);
	sink_release(&sink);
	verdicts_release(&verdicts);
}

static void test_colour(void)
{
	const struct verdict_text_options style = { .width = 60, .has_colour = true };
	struct verdicts verdicts;
	struct sink painted, bare;
	struct verdict *verdict;
	char *kept, *to;

	verdicts_init(&verdicts);
	verdict = add_hang(&verdicts);
	verdict_title(verdict,
		      "a title that is much longer than what fits into one line of sixty columns");
	sink_init_memory(&painted);
	sink_init_memory(&bare);
	verdict_text_one(&painted, verdict, 0, &style);
	verdict_text_one(&bare, verdict, 0, &(struct verdict_text_options){ .width = 60 });
	EXPECT(strstr(sink_string(&painted), "\033[1;31merror       \033[0m\033[1ma title"));
	kept = to = malloc(painted.used + 1);
	for (const char *at = sink_string(&painted); *at != '\0'; at++) {
		if (*at == '\033')
			at += strcspn(at, "m");
		else
			*to++ = *at;
	}
	*to = '\0';
	EXPECT_THAT("without its colours it is the same text",
		    strcmp(kept, sink_string(&bare)) == 0);
	EXPECT(longest_line(kept) <= 60);
	free(kept);
	sink_release(&painted);
	sink_release(&bare);
	verdicts_release(&verdicts);
}

static void test_jobs(void)
{
	struct verdict_look look = look_at();
	struct verdicts verdicts;
	struct verdict *verdict;
	struct sink sink;

	verdicts_init(&verdicts);
	verdict = add_hang(&verdicts);
	text_copy(verdict->job, sizeof(verdict->job), "llm-7");
	sink_init_memory(&sink);
	verdict_text(&sink, &verdicts, &look, &plain);
	EXPECT(strstr(sink_string(&sink), "\n            job llm-7; since") == NULL);
	scene.jobs = 2;
	verdict_text(&sink, &verdicts, &look, &plain);
	scene.jobs = 1;
	EXPECT_THAT("with several jobs each verdict shows its job",
		    strstr(sink_string(&sink), "\n            job llm-7; since"));
	sink_release(&sink);
	verdicts_release(&verdicts);
}

static void test_json(void)
{
	struct verdict_look look = look_at();
	struct verdicts verdicts;
	struct verdict *verdict;
	struct sink sink;
	struct json json;

	verdicts_init(&verdicts);
	verdict = add_hang(&verdicts);
	text_copy(verdict->host, sizeof(verdict->host), "no\"de\n");
	sink_init_memory(&sink);
	json_init(&json, &sink);
	verdict_json(&json, &verdicts, &look);
	EXPECT(json_status(&json) == OK);
	EXPECT(strstr(sink_string(&sink), "\"class\":\"never_issued\""));
	EXPECT(strstr(sink_string(&sink), "\"host\":\"no\\\"de\\n\""));
	EXPECT(strstr(sink_string(&sink), "\"peer\":null"));
	EXPECT(strstr(sink_string(&sink),
		      "\"operation\":{\"function\":\"AllReduce\",\"number\":812}"));
	EXPECT(strstr(sink_string(&sink), "\"since\":\"2026-01-14T23:57:02"));
	EXPECT(strstr(sink_string(&sink), "\"since_ns\":1768435022000000000"));
	EXPECT(strstr(sink_string(&sink), "\"is_healthy\":false"));
	sink_release(&sink);
	verdicts_release(&verdicts);
}

/* No problem found, but not everything was judged. */
static void test_unjudged(void)
{
	struct verdict_look look = look_at();
	struct verdicts verdicts;
	struct verdict *verdict;
	struct sink sink;
	struct json json;

	verdicts_init(&verdicts);
	verdict = verdicts_add(&verdicts, VERDICT_BLIND, VERDICT_NOTE);
	text_copy(verdict->rule, sizeof(verdict->rule), "speed");
	verdict_title(verdict, "not judged: speed");
	verdict->is_unjudged = true;
	EXPECT_THAT("that is not healthy", !scene_is_healthy(&scene, &verdicts));
	EXPECT_THAT("and no trouble", scene_answer(&scene, &verdicts) == SCENE_NOTHING_WRONG);
	sink_init_memory(&sink);
	EXPECT(verdict_text(&sink, &verdicts, &look, &plain) == OK);
	EXPECT(strstr(sink_string(&sink), "no hang     512 ranks"));
	EXPECT(strstr(sink_string(&sink), "healthy") == NULL);
	EXPECT(strstr(sink_string(&sink), "note        not judged: speed"));
	sink_release(&sink);
	sink_init_memory(&sink);
	json_init(&json, &sink);
	verdict_json(&json, &verdicts, &look);
	EXPECT(strstr(sink_string(&sink), "\"is_healthy\":false"));
	EXPECT(strstr(sink_string(&sink), "\"not_judged\":[{\"aspect\":\"speed\""));
	EXPECT(strstr(sink_string(&sink), "\"reason\":\"not judged: speed\""));
	sink_release(&sink);
	verdicts_release(&verdicts);
}

/* Four answers, the same in text, JSON and exit code. */
static void test_answers(void)
{
	struct verdict_look look = look_at();
	struct verdicts verdicts;
	struct sink sink;
	struct json json;

	verdicts_init(&verdicts);
	EXPECT_THAT("nothing wrong", scene_answer(&scene, &verdicts) == SCENE_NOTHING_WRONG &&
					     scene_is_healthy(&scene, &verdicts));
	verdict_title(verdicts_add(&verdicts, VERDICT_BLIND, VERDICT_WARNING), "files are cut");
	EXPECT_THAT("what is not visible may hide trouble",
		    scene_answer(&scene, &verdicts) == SCENE_UNKNOWN);
	EXPECT(!scene_is_healthy(&scene, &verdicts));
	sink_init_memory(&sink);
	EXPECT(verdict_text(&sink, &verdicts, &look, &plain) == OK);
	EXPECT(strstr(sink_string(&sink), "not judged  512 ranks"));
	EXPECT(strstr(sink_string(&sink), "healthy") == NULL);
	EXPECT(strstr(sink_string(&sink), "warning     files are cut"));
	sink_release(&sink);
	sink_init_memory(&sink);
	json_init(&json, &sink);
	verdict_json(&json, &verdicts, &look);
	EXPECT(strstr(sink_string(&sink), "\"answer\":\"could_not_tell\",\"is_healthy\":false"));
	sink_release(&sink);
	verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR);
	EXPECT_THAT("stuck, cause unknown", scene_answer(&scene, &verdicts) == SCENE_STUCK);
	verdicts_add(&verdicts, VERDICT_SLOW_RANK, VERDICT_WARNING);
	EXPECT_THAT("slowness does not explain it", scene_answer(&scene, &verdicts) == SCENE_STUCK);
	verdicts_add(&verdicts, VERDICT_PROCESS_DEAD, VERDICT_WARNING);
	EXPECT_THAT("trouble", scene_answer(&scene, &verdicts) == SCENE_TROUBLE);
	verdicts_release(&verdicts);
}

int main(void)
{
	test_hang();
	test_unjudged();
	test_answers();
	test_healthy();
	test_many();
	test_colour();
	test_jobs();
	test_json();
	return tap_done();
}
