/* What a release of NCCL does: its interface version, its quirks, and which events it sends for which mask. */
#include "sim/host.h"

#include "common/attributes.h"
#include "output/sink.h"
#include "tests/support/expected_file.h"
#include "tests/unit/sim/stage.h"

enum {
	ALWAYS = HOST_QUIRK_FLOOD_PEER_WAIT | HOST_QUIRK_FLOOD_STEP_START |
		 HOST_QUIRK_CHANNELS_MISSING | HOST_QUIRK_NO_COLL,
	LOST = HOST_QUIRK_LOST_START | HOST_QUIRK_STAMP_OVERRUN,
	STAMPS = HOST_QUIRK_STAMP_ZERO | HOST_QUIRK_STAMP_REVERSED,
	STEPS = HOST_QUIRK_STEP_STOP_LOST,
	NULLS = HOST_QUIRK_STOP_NULL,
};

static void releases_have_versions_and_quirks(void)
{
	static const struct {
		int release, version;
		unsigned int quirks;
	} cases[] = {
		{ 22299, 0, ALWAYS | NULLS },
		{ 22300, 1, ALWAYS | NULLS },
		{ 22399, 1, ALWAYS | NULLS },
		{ 22400, 2, ALWAYS | NULLS },
		{ 22402, 2, ALWAYS | NULLS },
		{ 22403, 2, ALWAYS | NULLS | STEPS },
		{ 22599, 2, ALWAYS | NULLS | STEPS },
		{ 22600, 3, ALWAYS | STEPS },
		{ 22601, 3, ALWAYS | STEPS },
		{ 22602, 3, ALWAYS | STEPS | LOST },
		{ 22699, 3, ALWAYS | STEPS | LOST },
		{ 22700, 4, ALWAYS | LOST },
		{ 22702, 4, ALWAYS | LOST },
		{ 22703, 4, ALWAYS | LOST | STAMPS },
		{ 22800, 5, ALWAYS | LOST | STAMPS },
		{ 22899, 5, ALWAYS | LOST | STAMPS },
		{ 22900, 6, ALWAYS | LOST | STAMPS },
		{ 23099, 6, ALWAYS | LOST | STAMPS },
		{ 23100, 7, ALWAYS },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		printf("# release %d\n", cases[i].release);
		EXPECT_EQUAL(host_release_native(cases[i].release), cases[i].version);
		EXPECT_EQUAL(host_quirks_of(cases[i].release), cases[i].quirks);
	}
}

static void texts_name_releases(void)
{
	static const struct {
		const char *text;
		enum status status;
		int release;
	} cases[] = {
		{ "v1", OK, 22304 },
		{ "v3", OK, 22602 },
		{ "v6", OK, 23007 },
		{ "v7", OK, 23102 },
		{ "v0", ERR_UNKNOWN, 0 },
		{ "v8", ERR_UNKNOWN, 0 },
		{ "v7x", ERR_FORMAT, 0 },
		{ "2.23", OK, 22304 },
		{ "2.31", OK, 23102 },
		{ "2.22", ERR_UNKNOWN, 0 },
		{ "2.32", ERR_UNKNOWN, 0 },
		{ "3.28", ERR_UNKNOWN, 0 },
		{ "2.28.0", OK, 22800 },
		{ "2.28.99", OK, 22899 },
		{ "2.28.100", ERR_UNKNOWN, 0 },
		{ "2.28.-1", ERR_UNKNOWN, 0 },
		{ "1.28.3", ERR_UNKNOWN, 0 },
		{ "2.22.3", ERR_UNKNOWN, 0 },
		{ "22809", OK, 22809 },
		{ "22209", ERR_UNKNOWN, 0 },
		{ "32809", ERR_UNKNOWN, 0 },
		{ "2.28.9.1", ERR_FORMAT, 0 },
		{ "", ERR_FORMAT, 0 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		int release = 0;

		printf("# \"%s\"\n", cases[i].text);
		EXPECT_EQUAL(host_release_parse(cases[i].text, &release), cases[i].status);
		EXPECT_EQUAL(release, cases[i].release);
	}
}

static void newest_version_is_found_first(void)
{
	struct host_linked some = { .v2 = witness_linked.v2, .v4 = witness_linked.v4 };
	static const struct {
		int release, newest, version;
	} cases[] = {
		{ 23102, 0, 4 }, { 23102, 4, 4 }, { 23102, 3, 2 }, { 22707, 0, 4 },
		{ 22602, 0, 2 }, { 22403, 7, 2 }, { 22304, 0, 0 }, { 23102, 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct host_plugin plugin = { 0 };
		enum status status =
			host_plugin_find(&plugin, cases[i].release, cases[i].newest, &some);

		EXPECT_EQUAL(status, cases[i].version ? OK : ERR_UNKNOWN);
		EXPECT_EQUAL(plugin.version, cases[i].version);
		EXPECT_EQUAL(plugin.release, cases[i].version ? cases[i].release : 0);
	}
}

/* Everything that a release has, with one bit of the mask. */
static void masks_choose_events(void)
{
	static const int releases[] = { HOST_NCCL_2_23, HOST_NCCL_2_26, HOST_NCCL_2_28,
					HOST_NCCL_2_31 };
	static const char *const names[HOST_EVENTS] = {
		"Group",    "Coll",	 "P2p",	     "ProxyOp",	    "ProxyStep", "ProxyCtrl",
		"KernelCh", "NetPlugin", "GroupApi", "CollApi",	    "P2pApi",	 "KernelLaunch",
		"CeColl",   "CeSync",	 "CeBatch",  "KernelPhase",
	};
	struct sink sink;

	sink_init_memory(&sink);
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++)
		for (unsigned int bit = 0; bit < HOST_EVENTS; bit++) {
			struct stage stage = stage_of(releases[i], 1 << bit);
			struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

			op.has_network = op.has_net_events = true;
			stage_play(&stage, &op);
			op.function = OP_SEND;
			stage_play(&stage, &op);
			op.function = OP_ALL_GATHER;
			op.path = HOST_PATH_COPY_ENGINE;
			stage_play(&stage, &op);
			stage_strike(&stage);
			sink_format(&sink, "%d %s:", releases[i], names[bit]);
			/* How often the proxy is idle depends on the machine. */
			for (unsigned int event = 0; event < HOST_EVENTS; event++)
				if (witness_starts(1u << event) > 0 && event != 5)
					sink_format(&sink, " %zu %s", witness_starts(1u << event),
						    names[event]);
			sink_text(&sink, "\n");
		}
	EXPECT_THAT("a mask chooses events, and what they need",
		    sink.status == OK && expected_file(sink_string(&sink),
						       "tests/unit/sim/expected/host_masks.txt"));
	sink_release(&sink);
}

int main(void)
{
	releases_have_versions_and_quirks();
	texts_name_releases();
	newest_version_is_found_first();
	masks_choose_events();
	return tap_done();
}
