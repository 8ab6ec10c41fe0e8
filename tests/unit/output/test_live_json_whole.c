/* The whole answers of an agent about the scenes of live_scenes.h. */
#include "output/live_json.h"

#include "tests/support/expected_output.h"
#include "tests/tap.h"
#include "tests/unit/output/live_scenes.h"

#define EXPECTED "tests/unit/output/expected/"

static struct live_scene scene;

static void expect(struct sink *sink, const char *kind, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), EXPECTED "live-%s-%s.json.lines", kind, name);
	EXPECT_THAT(path, expected_json(sink, path));
}

static void expect_scene(const char *scene_name, const char *name, void (*change)(void))
{
	struct sink sink;

	live_scene_make(&scene, scene_name);
	if (change != NULL)
		change();
	sink_init_memory(&sink);
	live_json_now(&sink, &scene.live, "node-7");
	expect(&sink, "now", name);
	sink_init_memory(&sink);
	live_json_summary(&sink, &scene.live, "node-7");
	expect(&sink, "summary", name);
	/* Of a changed scene, also of each rank. */
	sink_init_memory(&sink);
	live_json_history_of(&sink, &scene.live, scene.live.wall_ns - 5000000000,
			     change == NULL ? "" : NULL);
	expect(&sink, "history", name);
	live_scene_release(&scene);
}

/* Processes that ended in different ways, ranks that do different things, unknown values, and notices of everything that a
 * notice can be about. */
static void make_uneven(void)
{
	static struct recording_left_out left_out[] = {
		{ .owner = 7, .processes = 3, .directories = 0 },
		{ .owner = 9, .processes = 1, .directories = 2 }
	};
	static const enum live_notice_kind kinds[] = { LIVE_DEAD, LIVE_STRAGGLER, LIVE_DEAD,
						       LIVE_HANG, LIVE_STRAGGLER };
	struct live *live = &scene.live;

	scene.list[1]->life = RECORDING_KILLED;
	scene.list[2]->life = RECORDING_ENDED;
	scene.list[3]->life = RECORDING_UNKNOWN;
	for (size_t i = 0; i < live->job.seat_count; i++) {
		struct live_seat *seat = &live->seats[i];

		seat->is_over = live->job.seats[i].process == 1 || live->job.seats[i].process == 2;
		seat->in_flight = i % 3;
		seat->still_ns = (40 - i % 7) * UINT64_C(1000000000);
		seat->sums.operations = 100 + i;
		seat->knows_wait = i % 2;
		seat->wait_ns = 5000 * i;
		seat->has_wait = i % 4 == 0;
		seat->wait_grown_ns = i * 90000000;
	}
	for (uint32_t i = 0; i < 5; i++)
		live->notices[i] =
			(struct live_notice){ .kind = kinds[i],
					      .comm = i == 0 ? 0 : UINT32_MAX,
					      .seat = i < 4 ? i : UINT32_MAX,
					      .since_wall_ns = live->wall_ns - i * 7000000,
					      .first_wall_ns = live->wall_ns - i * 9000000,
					      .title = "a title" };
	live->notice_count = 5;
	for (uint32_t i = 0; i < live->comms[0].history.count; i++) {
		static const float numbers[] = { 0,	   1e-7f,   1e-6f,   0.12345f,
						 999.94f,  999.96f, 9999.4f, 9999.6f,
						 5e9f,	   1234567, -1,	     NAN,
						 INFINITY, 10,	    2000,    1 };
		struct live_point *point = &live->comms[0].history.points[i];

		point->operations_per_s = numbers[i % 16];
		point->busbw = numbers[(i + 5) % 16];
		point->algbw = numbers[(i + 11) % 16];
	}
	live->job.seats[live->job.comms[0].seats[1]].comm_rank = -1;
	live->notices_left_out = 2;
	live->elapsed_ns = 1000000000;
	live->job.groups[0].owner = 1001;
	live->job.groups[0].hang_after_ns = UINT64_C(30000000000);
	live->job.groups[1].owner = -1;
	live->job.groups[1].world_size = 0;
	live->job.ranks[0].rank = -1;
	live->job.ranks[1].gpu = -1;
	scene.recording.left_out = left_out;
	scene.recording.left_out_count = 2;
}

/* Of 82 jobs of two users, 2 are earlier runs: each user has half of those that are listed. */
static void test_many_jobs(void)
{
	enum { JOBS = 82 };
	static struct job_group groups[JOBS];
	struct live live = { .job = { .groups = groups, .group_count = JOBS } };
	struct sink sink;
	int wrong = 0;

	for (int i = 0; i < JOBS; i++) {
		snprintf(groups[i].name, sizeof(groups[i].name), "job-%d.", i);
		groups[i].owner = i < 41 ? 7 : 8;
		groups[i].is_earlier_run = i == 10 || i == 60;
	}
	sink_init_memory(&sink);
	live_json_summary(&sink, &live, "node-7");
	for (int i = 0; i < JOBS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "\"name\":\"job-%d.\"", i);
		wrong += (strstr(sink_string(&sink), name) != NULL) !=
			 (i < 33 ? i != 10 : i >= 41 && i < 74 && i != 60);
	}
	EXPECT_EQUAL(wrong, 0);
	EXPECT(strstr(sink_string(&sink), "\"jobs_left_out\":16}") != NULL);
	sink_release(&sink);
	for (int i = 0; i < JOBS; i++) {
		groups[i].owner = i % 3;
		groups[i].is_earlier_run = false;
	}
	sink_init_memory(&sink);
	live_json_summary(&sink, &live, "node-7");
	EXPECT_THAT("of three users, the first 64 jobs",
		    strstr(sink_string(&sink), "\"job-63.\"") != NULL &&
			    strstr(sink_string(&sink), "\"job-64.\"") == NULL &&
			    strstr(sink_string(&sink), "\"jobs_left_out\":18}") != NULL);
	sink_release(&sink);
	live.job.group_count = LIVE_JSON_SUMMARY_JOBS;
	for (int i = 0; i < LIVE_JSON_SUMMARY_JOBS; i++)
		groups[i].owner = 7;
	sink_init_memory(&sink);
	live_json_summary(&sink, &live, "node-7");
	EXPECT_THAT("as long as all fit, one user may have them all",
		    strstr(sink_string(&sink), "\"job-63.\"") != NULL &&
			    strstr(sink_string(&sink), "\"jobs_left_out\":0}") != NULL);
	sink_release(&sink);
}

int main(void)
{
	expect_scene("hang", "hang", NULL);
	expect_scene("straggler", "straggler", NULL);
	expect_scene("straggler", "uneven", make_uneven);
	expect_scene("fresh", "fresh", NULL);
	test_many_jobs();
	return tap_done();
}
