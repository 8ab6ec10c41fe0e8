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

static void expect_scene(const char *name)
{
	struct sink sink;

	live_scene_make(&scene, name);
	sink_init_memory(&sink);
	live_json_now(&sink, &scene.live, "node-7");
	expect(&sink, "now", name);
	sink_init_memory(&sink);
	live_json_summary(&sink, &scene.live, "node-7");
	expect(&sink, "summary", name);
	sink_init_memory(&sink);
	live_json_history_of(&sink, &scene.live, scene.live.wall_ns - 5000000000, "");
	expect(&sink, "history", name);
	live_scene_release(&scene);
}

int main(void)
{
	expect_scene("hang");
	expect_scene("straggler");
	expect_scene("fresh");
	return tap_done();
}
