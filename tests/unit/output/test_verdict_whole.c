/* Whole verdicts, as text and as JSON: with every field known, with none, several of them, and of a finished recording. */
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "output/verdict_show.h"
#include "tests/support/expected_output.h"
#include "tests/tap.h"

#define EXPECTED "tests/unit/output/expected/"

static struct job_comm comms[] = { { .label = "world", .nranks = 8 },
				   { .label = "tp-0", .nranks = 4 },
				   { .label = "tp-1", .nranks = 4 } };
static struct job job = { .comms = comms, .comm_count = 3 };
/* Stuck, without operations, going on. */
static struct scene_comm scene_comms[] = {
	{ .open = 8,
	  .inside = 7,
	  .age_ns = 40000000000,
	  .still_ns = 40000000000,
	  .most_issued = 812,
	  .least_issued = 811,
	  .number = 812,
	  .function = "AllReduce" },
	{ .comm = 1, .still_ns = UINT64_MAX },
	{ .comm = 2,
	  .open = 4,
	  .inside = 4,
	  .age_ns = 1000000,
	  .most_issued = 5,
	  .least_issued = 5,
	  .number = 5,
	  .function = "Send" },
};

static void add_full(struct verdicts *verdicts, enum verdict_severity severity)
{
	struct verdict *verdict = verdicts_add(verdicts, VERDICT_NETWORK_STUCK, severity);

	text_copy(verdict->job, sizeof(verdict->job), "train");
	verdict->rank = 3;
	text_copy(verdict->rank_label, sizeof(verdict->rank_label), "3");
	text_copy(verdict->host, sizeof(verdict->host), "node-a");
	verdict->pid = 4711;
	verdict->gpu = 3;
	verdict->peer = 4;
	text_copy(verdict->peer_label, sizeof(verdict->peer_label), "4");
	text_copy(verdict->peer_host, sizeof(verdict->peer_host), "node-b");
	verdict->channel = 0;
	text_copy(verdict->channels, sizeof(verdict->channels), "0-7");
	text_copy(verdict->comm, sizeof(verdict->comm), "world");
	verdict->comm_hash = 0xabc;
	verdict->comm_rank = 3;
	text_copy(verdict->function, sizeof(verdict->function), "AllReduce");
	verdict->number = 812;
	text_copy(verdict->rule, sizeof(verdict->rule), "others");
	verdict->job_start_wall_ns = UINT64_C(1768430000000000000);
	verdict->since_wall_ns = UINT64_C(1768435022000000000);
	verdict->for_ns = 40000000000;
	verdict->is_allowed = true;
	verdict->dead_wall_ns = UINT64_C(1768435030000000000);
	verdict->victims = 7;
	verdict->gpu_hours = 5.75;
	verdict->money = 12.5;
	verdict->percent = 31;
	verdict->cost_percent = 12;
	verdict->is_cost_bound = true;
	verdict->confidence = 0.875;
	verdict_title(verdict, "network send stuck: rank 3 -> rank 4");
	text_copy(verdict->place, sizeof(verdict->place), "in train.py:88 in step");
	for (int i = 0; i < 8; i++)
		verdict_evidence(verdict, "evidence %d", i);
	verdict_missing(verdict, "a caveat that is long enough to be wrapped on a narrow terminal, "
				 "because it goes on and on");
	verdict_advice(verdict, "Look at the network:");
	verdict_advice(verdict, "$ ssh node-a ip -s link");
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclHangNetwork.md");
}

static void expect(const struct verdicts *verdicts, const struct verdict_look *look,
		   const struct verdict_text_options *options, const char *name)
{
	char path[128];
	struct sink sink;
	struct json json;

	snprintf(path, sizeof(path), EXPECTED "verdicts-%s.txt", name);
	sink_init_memory(&sink);
	EXPECT_EQUAL(verdict_text(&sink, verdicts, look, options), OK);
	EXPECT_THAT(path, expected_text(&sink, path));
	snprintf(path, sizeof(path), EXPECTED "verdicts-%s.json.lines", name);
	sink_init_memory(&sink);
	json_init(&json, &sink);
	verdict_json(&json, verdicts, look);
	EXPECT_THAT(path, expected_json(&sink, path));
}

/* What a verdict costs, in the units that fit; and more communicators than are shown. */
static void test_costs(const struct verdict_look *look)
{
	static const struct {
		enum verdict_class class;
		double percent, gpu_hours, money;
		uint32_t victims;
		const char *title;
	} cases[] = {
		{ VERDICT_SLOW_RANK, 31.25, 0.0125, 0, 1, "a straggler" },
		{ VERDICT_SLOW_HOST, 25, 0.0999, 0.004, 5, "a host" },
		{ VERDICT_SLOW_LINK, 199.9, 0.1, 3.456, 7, "a link" },
		{ VERDICT_SLOW_LINK, 200, 12.34, 0, 0, "a slower one" },
		{ VERDICT_SLOW_LINK, 899.9, 0, 0, 1, "a much slower one" },
		{ VERDICT_SLOW_LINK, 900, 1234.5, 99.999, 2,
		  "the slowest, for which 2 ranks wait" },
		{ VERDICT_STUCK, 0, 0.5, 0, 8, "stuck" },
		{ VERDICT_NETWORK_STUCK, 0, 0, 0, 8, "8 ranks blocked" },
	};
	struct verdict_text_options options = { .width = 100, .has_all = true };
	struct scene_comm many[6];
	struct job_comm named[6];
	struct job crowd = { .comms = named, .comm_count = 6 };
	struct scene scene = *look->scene;
	struct verdict_look crowded = *look;
	struct verdicts verdicts;
	char path[] = EXPECTED "verdicts-costs.txt";
	struct sink sink;

	verdicts_init(&verdicts);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct verdict *verdict = verdicts_add(&verdicts, cases[i].class, VERDICT_WARNING);

		verdict->percent = cases[i].percent;
		verdict->gpu_hours = cases[i].gpu_hours;
		verdict->money = cases[i].money;
		verdict->victims = cases[i].victims;
		verdict->confidence = 0.5 + 0.05 * (double)i;
		verdict_title(verdict, "%s", cases[i].title);
	}
	sink_init_memory(&sink);
	EXPECT_EQUAL(verdict_text(&sink, &verdicts, look, &options), OK);
	/* From those that fit to more than fit. */
	for (int i = 0; i < 6; i++) {
		many[i] = scene_comms[0];
		many[i].comm = (uint32_t)i;
		many[i].inside = (uint32_t)(6 - i);
		named[i] = (struct job_comm){ .nranks = 6 - i };
		snprintf(named[i].label, sizeof(named[i].label), "comm %d", i);
	}
	crowded.job = &crowd;
	crowded.scene = &scene;
	scene.comms = many;
	verdicts_release(&verdicts);
	verdicts_init(&verdicts);
	verdict_title(verdicts_add(&verdicts, VERDICT_STUCK, VERDICT_ERROR), "stuck");
	options.has_all = false;
	for (scene.comm_count = 4; scene.comm_count <= 6; scene.comm_count++) {
		sink_format(&sink, "=== %zu\n", scene.comm_count);
		EXPECT_EQUAL(verdict_text(&sink, &verdicts, &crowded, &options), OK);
	}
	EXPECT(expected_text(&sink, path));
	verdicts_release(&verdicts);
}

static void test_runbooks(void)
{
	static const struct {
		const char *name, *title; /* NULL: there is none */
	} cases[] = {
		{ "HangNetwork", "# HangNetwork" },
		{ "HangNetwork.md", "# HangNetwork" },
		{ "runbooks/HangNetwork.md", "# HangNetwork" },
		{ "hang-network", "# HangNetwork" },
		{ "hang-gpu", "# HangGpu" },
		{ "hang-gp", NULL },
		{ "hang-gpus", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		size_t length = 0;
		const char *page = runbook_find(cases[i].name, &length);

		if (cases[i].title == NULL)
			EXPECT_THAT(cases[i].name, page == NULL);
		else
			EXPECT_THAT(cases[i].name,
				    page != NULL && length > 100 && page[length - 1] == '\n' &&
					    memchr(page, 1, length) == NULL &&
					    strncmp(page, cases[i].title, strlen(cases[i].title)) ==
						    0);
	}
}

int main(void)
{
	struct scene scene = { .job = "train",
			       .jobs = 1,
			       .processes = 8,
			       .ranks = 8,
			       .hosts = 2,
			       .communicators = 3,
			       .alive = 7,
			       .operations = 1234567,
			       .last_ns = 400000000,
			       .standing = 1,
			       .age_ns = 40000000000,
			       .comms = scene_comms,
			       .comm_count = ARRAY_LENGTH(scene_comms) };
	struct verdict_look live = { .source = "2 agents",
				     .scene = &scene,
				     .job = &job,
				     .wall_ns = UINT64_C(1768435062000000000),
				     .hang_ns = 20000000000,
				     .sources = 2,
				     .silent = 1,
				     .log_files = 1,
				     .log_lines = 1 };
	struct verdict_look past = { .source = "traces/",
				     .log_files = 2,
				     .log_lines = 300,
				     .has_speed = true,
				     .has_speed_reference = true };
	struct verdict_text_options wide = { .has_jobs = true, .has_all = true };
	struct verdict_text_options narrow = { .width = 60, .has_colour = true };
	struct verdicts verdicts;

	verdicts_init(&verdicts);
	expect(&verdicts, &live, &wide, "none");
	expect(&verdicts, &past, &narrow, "none-in-logs");
	add_full(&verdicts, VERDICT_ERROR);
	expect(&verdicts, &live, &wide, "one");
	verdict_title(verdicts_add(&verdicts, VERDICT_SETUP, VERDICT_NOTE), "nothing is known");
	add_full(&verdicts, VERDICT_WARNING);
	verdicts.list[2].is_cost_least = true;
	verdicts.list[2].dead_wall_ns = 0;
	verdicts.list[2].is_allowed = false;
	verdicts.list[2].number = 0;
	verdicts.left_out = 2;
	expect(&verdicts, &live, &narrow, "several");
	verdicts.left_out = 0;
	verdicts.list[2].is_cost_bound = false;
	verdicts.list[2].function[0] = '\0';
	expect(&verdicts, &past, &wide, "past");
	verdicts_release(&verdicts);
	test_costs(&live);
	test_runbooks();
	return tap_done();
}
