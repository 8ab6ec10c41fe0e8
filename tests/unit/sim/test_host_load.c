/* Loading: names, versions, when the library is mapped and unmapped. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/host.h"
#include "tests/tap.h"
#include "tests/unit/sim/witness.h"

static void releases_have_their_versions(void)
{
	static const struct {
		const char *text;
		int release, version;
	} known[] = {
		{ "2.23", HOST_NCCL_2_23, 1 },	{ "2.24", HOST_NCCL_2_24, 2 },
		{ "2.25", HOST_NCCL_2_25, 2 },	{ "2.26", HOST_NCCL_2_26, 3 },
		{ "2.27", HOST_NCCL_2_27, 4 },	{ "2.28", HOST_NCCL_2_28, 5 },
		{ "2.29", HOST_NCCL_2_29, 6 },	{ "2.30.7", HOST_NCCL_2_30, 6 },
		{ "23102", HOST_NCCL_2_31, 7 }, { "v5", HOST_NCCL_2_28, 5 },
	};
	int release = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		EXPECT_EQUAL(host_release_parse(known[i].text, &release), OK);
		EXPECT_EQUAL(release, known[i].release);
		EXPECT_EQUAL(host_release_native(release), known[i].version);
	}
	EXPECT_EQUAL(host_release_parse("2.22", &release), ERR_UNKNOWN);
	EXPECT_EQUAL(host_release_parse("v8", &release), ERR_UNKNOWN);
	EXPECT_EQUAL(host_release_parse("new", &release), ERR_FORMAT);
	EXPECT_EQUAL(host_release_native(22205), 0);
}

static char names[HOST_NAMES][HOST_NAME_SIZE];

static void expect_names(int release, const char *value, const char *first, const char *second)
{
	size_t count = host_plugin_names(release, value, names);
	char sentence[200];
	bool is_right = count == (size_t)(first != NULL) + (second != NULL) &&
			(first == NULL || strcmp(names[0], first) == 0) &&
			(second == NULL || strcmp(names[1], second) == 0);

	snprintf(sentence, sizeof(sentence), "%d opens \"%s\" as \"%s\" and \"%s\"", release,
		 value ? value : "(not set)", first ? first : "", second ? second : "");
	EXPECT_THAT(sentence, is_right);
}

static void names_follow_the_release(void)
{
	char longest[400];

	expect_names(HOST_NCCL_2_28, NULL, "libnccl-profiler.so", NULL);
	expect_names(HOST_NCCL_2_23, "ringside", "ringside", NULL);
	expect_names(HOST_NCCL_2_26, "ringside", "ringside", "libnccl-profiler-ringside.so");
	expect_names(HOST_NCCL_2_26, "/a/b.so", "/a/b.so", "libnccl-profiler-/a/b.so.so");
	expect_names(22703, "ringside", "libnccl-profiler-ringside.so", NULL);
	expect_names(22703, "/a/b.so", "libnccl-profiler-/a/b.so.so", NULL);
	expect_names(22703, "libx.so", "libx.so", NULL);
	expect_names(22705, "/a/b.so", "/a/b.so", NULL);
	expect_names(HOST_NCCL_2_28, "ringside", "ringside", "libnccl-profiler-ringside.so");
	expect_names(HOST_NCCL_2_28, "libx.so", "libx.so", NULL);
	expect_names(HOST_NCCL_2_28, "None", NULL, NULL);
	expect_names(HOST_NCCL_2_27, "none", "none", "libnccl-profiler-none.so");
	expect_names(HOST_NCCL_2_28, "static", "", NULL);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	host_plugin_names(HOST_NCCL_2_28, longest, names);
	EXPECT_EQUAL(strlen(names[0]), 254);
	host_plugin_names(HOST_NCCL_2_24, longest, names);
	EXPECT_EQUAL(strlen(names[0]), 399);
}

static void newest_version_wins(void)
{
	struct host_linked some = { .v2 = &witness_v2, .v5 = &witness_v5 };
	struct host_plugin plugin = { 0 };

	EXPECT_EQUAL(host_plugin_find(&plugin, HOST_NCCL_2_31, 0, &some), OK);
	EXPECT_EQUAL(plugin.version, 5);
	EXPECT_EQUAL(host_plugin_find(&plugin, HOST_NCCL_2_27, 0, &some), OK);
	EXPECT_EQUAL(plugin.version, 2);
	EXPECT_EQUAL(host_plugin_find(&plugin, HOST_NCCL_2_31, 4, &some), OK);
	EXPECT_EQUAL(plugin.version, 2);
	EXPECT_EQUAL(host_plugin_find(&plugin, HOST_NCCL_2_23, 0, &some), ERR_UNKNOWN);
}

/* ---- a real library -------------------------------------------------------------------------- */

static int heard_fd = -1;
static char library[4096];

static const char *heard(void)
{
	static char text[64];
	ssize_t length = read(heard_fd, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = '\0';
	return text;
}

/* In this program's directory, or in the build directory. */
static void find_library(void)
{
	const char *build = getenv("BUILD");
	char self[2048];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[length > 0 ? length : 0] = '\0';
	*strrchr(self, '/') = '\0'; /* .../tests/unit */
	*strrchr(self, '/') = '\0';
	snprintf(library, sizeof(library), "%s/load_plugin.so", self);
	if (access(library, R_OK) != 0 && build)
		snprintf(library, sizeof(library), "%s/tests/load_plugin.so", build);
}

static void listen_to_library(void)
{
	char number[16];
	int ends[2];

	if (pipe2(ends, O_NONBLOCK) != 0)
		abort();
	heard_fd = ends[0];
	snprintf(number, sizeof(number), "%d", ends[1]);
	setenv("LOAD_PLUGIN_FD", number, 1);
}

static struct host *host_for(int release, const char *plugin)
{
	struct host_config config = { .release = release, .plugin = plugin };
	struct host *host = NULL;

	if (host_new(&host, &config) != OK)
		abort();
	return host;
}

static struct host_comm *comm_for(struct host *host, uint64_t hash)
{
	struct host_comm_config config = { .hash = hash };
	struct host_comm *comm = NULL;

	if (host_comm_new(host, &comm, &config) != OK)
		abort();
	return comm;
}

static void library_lives_as_long_as_communicators(void)
{
	struct host *host = host_for(HOST_NCCL_2_28, library);
	struct host_comm *first, *second;

	EXPECT_EQUAL(host_plugin(host)->version, 0);
	EXPECT_THAT("nothing is loaded before the first communicator", heard()[0] == '\0');
	first = comm_for(host, 1);
	EXPECT_THAT("loads it and asks for the newest version", strcmp(heard(), "m4") == 0);
	EXPECT_EQUAL(host_plugin(host)->version, 4);
	second = comm_for(host, 2);
	EXPECT_THAT("the second one finds it loaded", strcmp(heard(), "4") == 0);
	host_comm_destroy(first);
	EXPECT_THAT("and keeps it loaded", strcmp(heard(), "f") == 0);
	host_comm_destroy(second);
	EXPECT_THAT("the last one unloads it", strcmp(heard(), "fu") == 0);
	EXPECT_EQUAL(host_plugin(host)->version, 0);
	first = comm_for(host, 3);
	EXPECT_THAT("a later one loads it again", strcmp(heard(), "m4") == 0);
	host_comm_abort(first);
	EXPECT_THAT("an abort unloads it, too", strcmp(heard(), "fu") == 0);
	host_free(host);
}

static void older_release_takes_the_older_version(void)
{
	struct host *host = host_for(HOST_NCCL_2_26, library);
	struct host_comm *comm = comm_for(host, 1);

	EXPECT_THAT("v2 under 2.26", strcmp(heard(), "m2") == 0);
	host_comm_destroy(comm);
	heard();
	host_free(host);
}

static void failure_is_remembered(void)
{
	struct host *host = host_for(HOST_NCCL_2_28, "/does/not/exist.so");
	struct host_comm *comm = comm_for(host, 1);
	struct host_user user = { 0 };
	struct host_op op = host_op_make(comm, OP_ALL_REDUCE, 1, OP_INT32);
	struct host_counts counts;

	EXPECT_EQUAL(host_plugin(host)->version, 0);
	EXPECT_THAT("the error names the file", strstr(host_load_error(host), "exist.so") != NULL);
	EXPECT_EQUAL(host_play(&user, &op), OK);
	host_comm_counts(comm, &counts);
	EXPECT_EQUAL(counts.calls, 1);
	EXPECT_EQUAL(counts.hidden, 1);
	EXPECT_EQUAL(counts.shown, 0);
	host_comm_destroy(comm);
	host_free(host);
	host = host_for(HOST_NCCL_2_23, library);
	comm = comm_for(host, 1);
	EXPECT_EQUAL(host_plugin(host)->version, 0);
	EXPECT_THAT("no v1: loaded, checked, unloaded", strcmp(heard(), "mu") == 0);
	host_comm_destroy(comm);
	comm = comm_for(host, 2);
	EXPECT_THAT("and not tried again", heard()[0] == '\0');
	host_comm_destroy(comm);
	host_free(host);
}

static void none_means_none(void)
{
	struct host *host = host_for(HOST_NCCL_2_28, "none");
	struct host_comm *comm = comm_for(host, 1);

	EXPECT_EQUAL(host_plugin(host)->version, 0);
	EXPECT(strstr(host_load_error(host), "none") != NULL);
	host_comm_destroy(comm);
	host_free(host);
}

int main(void)
{
	find_library();
	listen_to_library();
	releases_have_their_versions();
	names_follow_the_release();
	newest_version_wins();
	library_lives_as_long_as_communicators();
	older_release_takes_the_older_version();
	failure_is_remembered();
	none_means_none();
	return tap_done();
}
