/*
 *	test_live_json             tests
 *	test_live_json DIRECTORY   writes the scenes of tests/page there, as an agent would answer
 *
 * What the answers hold is checked by tests/page/json.t, with another reader of JSON.
 */
#include "output/live_json.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/text.h"
#include "tests/unit/output/live_scenes.h"
#include "tests/tap.h"

static struct live_scene scene;
static struct sink sink;

static const char *now_of(const char *host)
{
	sink_release(&sink);
	sink_init_memory(&sink);
	live_json_now(&sink, &scene.live, host);
	return sink_string(&sink);
}

static const char *history_of(uint64_t after_ns, const char *members)
{
	sink_release(&sink);
	sink_init_memory(&sink);
	live_json_history_of(&sink, &scene.live, after_ns, members);
	return sink_string(&sink);
}

static const char *summary_of(const char *host)
{
	sink_release(&sink);
	sink_init_memory(&sink);
	live_json_summary(&sink, &scene.live, host);
	return sink_string(&sink);
}

static bool has(const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	printf("# not there: %s\n# in: %.2000s\n", part, text);
	return false;
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
		count++;
	return count;
}

static void test_empty(void)
{
	live_scene_make(&scene, "empty");
	EXPECT_THAT("a node without processes is an answer",
		    has(now_of("n"), "\"jobs\":[],\"processes\":[],\"communicators\":[]"));
	EXPECT_THAT("so is its history", has(history_of(0, NULL), "\"communicators\":[]"));
	live_scene_release(&scene);

	struct live never = { .looks = 0 };

	sink_release(&sink);
	sink_init_memory(&sink);
	live_json_now(&sink, &never, NULL);
	EXPECT_THAT("an agent that has not looked yet has an answer, too",
		    has(sink_string(&sink), "\"host\":null,\"looks\":0"));
}

static void test_now(void)
{
	const char *now;

	live_scene_make(&scene, "hang");
	now = now_of("gpu-node-07");
	EXPECT_THAT("a line", now[strlen(now) - 1] == '\n' && strchr(now, '\n')[1] == '\0');
	EXPECT_THAT("the reason for waiting is given in words",
		    has(now, "\"reason\":\"recv_net\",\"peer\":13,\"channels\":\"0-5\","
			     "\"waiting_ns\":37482000000,\"steps_done\":24,\"steps\":64,"
			     "\"text\":\"waits for data from rank 13 on channels 0-5\""));
	EXPECT_THAT("with its kernel",
		    has(now, "\"kernel\":\"kernel: 8 of 8 channels started, 0 stopped\""));
	EXPECT_THAT("a hash keeps all its digits", has(now, "\"hash\":\"0xd3adc0de77a10001\""));
	EXPECT_THAT("seven of eight are in it",
		    count_of(now, "\"text\":\"AllReduce\",\"number\":815,\"match\":812") == 7);
	EXPECT_EQUAL(count_of(now, "\"is_behind\":true"), 1);
	EXPECT_THAT("notices come first, and name the rank",
		    has(now, "\"kind\":\"missing\"") &&
			    has(now, "\"rank\":13,\"rank_label\":\"13\""));
	EXPECT_THAT("what nobody knows is null, never a number made up",
		    has(now, "\"busbw\":null") && count_of(now, "nan") == 0 &&
			    count_of(now, "inf") == 0);
	live_scene_release(&scene);

	live_scene_make(&scene, "fresh");
	EXPECT_THAT("before the second look there are no rates",
		    count_of(now_of("n"), "\"operations_per_s\":null") ==
			    scene.live.job.comm_count + scene.live.job.seat_count);
	live_scene_release(&scene);
}

static void test_timed(void)
{
	const char *now;

	live_scene_make(&scene, "hang");
	scene.live.comms[0].sums =
		(struct live_sums){ .operations = 900, .timed = 30, .not_timed = 100 };
	now = now_of("n");
	EXPECT_THAT("how many were timed stands beside how many there were",
		    has(now, "\"operations\":900,\"timed\":30,\"not_timed\":100,"));
	EXPECT_THAT("waiting that is not known is null", has(now, "\"wait_ns\":null"));
	scene.live.seats[scene.live.job.comms[0].seats[0]].knows_wait = true;
	scene.live.seats[scene.live.job.comms[0].seats[0]].wait_ns = 4711;
	EXPECT_THAT("and a number where it is", has(now_of("n"), "\"wait_ns\":4711"));
	scene.live.seats[scene.live.job.comms[0].seats[0]].wait_ns = UINT64_MAX;
	EXPECT_THAT("which is never negative",
		    has(now_of("n"), "\"wait_ns\":18446744073709551615"));
	live_scene_release(&scene);
}

static void test_keys(void)
{
	char key[LIVE_JSON_KEY], other[LIVE_JSON_KEY], first[LIVE_JSON_KEY];

	live_scene_make(&scene, "quiet");
	live_json_key(&scene.live, 0, first);
	for (uint32_t i = 0; i < scene.live.job.comm_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(live_json_key(&scene.live, i, key),
				   live_json_key(&scene.live, j, other)) == 0)
				EXPECT_THAT("every communicator has a key of its own", false);
	live_scene_release(&scene);
	live_scene_make(&scene, "hang");
	EXPECT_THAT("it stays from look to look",
		    strcmp(live_json_key(&scene.live, 0, key), first) == 0);
	live_scene_release(&scene);

	/* Three processes that say to be the same rank of the same communicator. */
	for (int i = 0; i < 3; i++)
		scene_comm(scene_process(&scene, "a", i, 3), 0x77, "c", 0, 2, 1);
	scene_join(&scene);
	EXPECT_THAT("communicators with the same name are distinguished",
		    scene.live.job.comm_count == 3 &&
			    strcmp(live_json_key(&scene.live, 0, key),
				   live_json_key(&scene.live, 1, other)) != 0 &&
			    strcmp(other, live_json_key(&scene.live, 2, key)) != 0);
	live_scene_release(&scene);

	/* Nobody tells the hash. */
	for (int i = 0; i < 2; i++)
		scene_comm(scene_process(&scene, "a", i, 2), 0, "", -1, 0, 0);
	scene_join(&scene);
	EXPECT_THAT("so are those without a hash",
		    strcmp(live_json_key(&scene.live, 0, key),
			   live_json_key(&scene.live, 1, other)) != 0);
	live_scene_release(&scene);
}

static void test_history(void)
{
	char key[LIVE_JSON_KEY];
	const char *text;

	live_scene_make(&scene, "quiet");
	EXPECT_THAT("all members are there when nobody says otherwise",
		    count_of(history_of(0, NULL), "\"time_ms\":[") ==
			    scene.live.job.comm_count + scene.live.job.seat_count);
	EXPECT_EQUAL(count_of(history_of(0, ""), "\"time_ms\":["), scene.live.job.comm_count);
	live_json_key(&scene.live, 0, key);
	EXPECT_EQUAL(count_of(history_of(0, key), "\"time_ms\":["),
		     scene.live.job.comm_count + scene.live.job.comms[0].seat_count);
	EXPECT_THAT("a key that nobody has is nobody's",
		    count_of(history_of(0, "x"), "\"members\"") == 0);
	text = history_of(SCENE_WALL_NS - 1, "");
	EXPECT_THAT("only what is newer comes",
		    has(text, "\"until_ns\":\"1794729600123456789\",\"from_ms\":1794729600123"));
	EXPECT_EQUAL(count_of(text, "\"time_ms\":[0],"), scene.live.job.comm_count);
	EXPECT_EQUAL(count_of(history_of(SCENE_WALL_NS, ""), "\"time_ms\":[],"),
		     scene.live.job.comm_count);
	EXPECT_EQUAL(count_of(history_of(UINT64_MAX, ""), "\"time_ms\":[],"),
		     scene.live.job.comm_count);
	live_scene_release(&scene);
}

/* One communicator with these bandwidths, one after the other. */
static const char *history_with(const float *values, uint32_t count)
{
	struct live_history *history;

	scene_comm(scene_process(&scene, "a", 0, 1), 1, "c", 0, 1, 1);
	scene_join(&scene);
	history = &scene.live.comms[0].history;
	history->points = scene_memory(LIVE_POINTS, sizeof(*history->points));
	history->count = history->next = count;
	for (uint32_t i = 0; i < count; i++) {
		history->points[i].wall_ns = SCENE_WALL_NS + i * UINT64_C(1000000000);
		history->points[i].busbw = values[i];
	}
	history_of(0, "");
	live_scene_release(&scene);
	return sink_string(&sink);
}

static void test_numbers(void)
{
	const float values[] = { 0.0F,	 1.0F,	  10.0F,      12345.0F, 1.234e11F, 0.25F,
				 0.034F, 9999.6F, 999.95006F, -1.0F,	3e38F,	   1e-9F };

	EXPECT_THAT("numbers have four digits and a power of ten",
		    has(history_with(values, ARRAY_LENGTH(values)),
			"\"busbw\":[0,1,1e1,1235e1,1234e8,25e-2,34e-3,1e4,1e3,null,3e38,0]"));
}

static void test_summary(void)
{
	const char *summary;

	live_scene_make(&scene, "empty");
	EXPECT_THAT("a node without processes has a summary",
		    has(summary_of("n"), "\"jobs\":[],\"jobs_left_out\":0}"));
	live_scene_release(&scene);
	live_scene_make(&scene, "hang");
	summary = summary_of("gpu-node-07");
	EXPECT_THAT("a line", summary[strlen(summary) - 1] == '\n');
	EXPECT_THAT("a stuck job has its time, verdict and notice",
		    has(summary, "\"stuck_ns\":38400000000,") &&
			    has(summary, "\"verdicts\":[\"never_issued\"],\"notices\":"
					 "[\"missing\"],\"state\":\"stuck\"}"));
	EXPECT_THAT("the other job of the node runs, and lost a process",
		    has(summary, "\"verdicts\":[],\"notices\":[\"dead\"],\"state\":\"running\"}"));
	EXPECT_THAT("it is small", strlen(summary) < 1200);
	live_scene_release(&scene);
	live_scene_make(&scene, "straggler");
	EXPECT_THAT("a job with a straggler is slow",
		    has(summary_of("n"), "\"notices\":[\"straggler\"],\"state\":\"slow\"}"));
	live_scene_release(&scene);
	live_scene_make(&scene, "many");
	for (size_t i = 0; i < scene.recording.count; i++)
		scene.recording.processes[i]->life = RECORDING_ENDED;
	summary = summary_of("n");
	EXPECT_THAT("a job whose processes have ended",
		    has(summary, "\"state\":\"ended\"}") && has(summary, "\"processes_alive\":0,"));
	live_scene_release(&scene);
}

/* What a communicator has is what its ranks have, added up. */
static void test_sums(void)
{
	struct live *live = &scene.live;
	const char *now;

	scene = (struct live_scene){ 0 };
	for (int i = 0; i < 3; i++)
		scene_comm(scene_process(&scene, "train", i, 3), 100, "world", i, 3, 1);
	scene_join(&scene);
	live->limits = live_limits_default();
	for (uint32_t i = 0; i < 3; i++) {
		live->seats[i].in_flight = 1 + i;
		live->seats[i].oldest_age_ns = i == 1 ? 7000 : 5000;
	}
	live->comms[0].straggler = UINT32_MAX;
	live->comms[0].wait_ns = 1234;
	live->comms[0].last_issued = 77;
	live->comms[0].last_done = 76;
	now = now_of("n");
	EXPECT_THAT("nobody was compared with others", has(now, "\"wait_ns\":null,"));
	live->seats[1].knows_wait = true;
	now = now_of("n");
	EXPECT_THAT("one was", has(now, "\"wait_ns\":1234,"));
	EXPECT(has(now, "\"last_issued\":77,\"last_done\":76,\"in_flight\":6,"
			"\"oldest_age_ns\":7000,"));
	EXPECT_EQUAL(count_of(now, "\"is_finalized\""), 1);
	EXPECT(has(now, "\"name\":\"train\",\"world_size\":3,\"ranks\":3,\"processes\":3,"));
	live->job.groups[0].started_wall_ns = 0;
	EXPECT_THAT("an unknown start is none", has(now_of("n"), "\"started_ms\":null,"));
	live->job.groups[0].started_wall_ns = 5999999;
	EXPECT(has(now_of("n"), "\"started_ms\":5,"));
	live_scene_release(&scene);
}

static void write_file(const char *directory, const char *name, const char *what, const char *text)
{
	char path[1024];
	FILE *file;

	text_format(path, sizeof(path), "%s/%s.%s.json", directory, name, what);
	file = fopen(path, "w");
	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		for (size_t i = 0; i < ARRAY_LENGTH(scene_names); i++) {
			live_scene_make(&scene, scene_names[i]);
			write_file(argv[1], scene_names[i], "now", now_of("gpu-node-07"));
			write_file(argv[1], scene_names[i], "history", history_of(0, NULL));
			write_file(argv[1], scene_names[i], "summary", summary_of("gpu-node-07"));
			live_scene_release(&scene);
		}
		sink_release(&sink);
		return 0;
	}
	test_empty();
	test_now();
	test_timed();
	test_keys();
	test_history();
	test_numbers();
	test_summary();
	test_sums();
	sink_release(&sink);
	return tap_done();
}
