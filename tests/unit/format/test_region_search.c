/* Searching a directory in steps: what is found, what a user may cost, and what it costs us. */
#include "format/region_read.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "tests/support/sample_region.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static char directory[64];

static const char *path_of(const char *name)
{
	static char path[256];

	text_format(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(path_of(name), "wb");

	if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
		abort();
}

/* Two recorders' directories with three and two regions, two regions beside them, and a link. */
static void make_files(void)
{
	static const char *const regions[] = {
		"ringside-1/a.region", "ringside-1/b", "ringside-1/c", "ringside-2/d",
		"ringside-2/e",	       "f.region",     ".region"
	};
	const uint64_t magic = REGION_MAGIC;

	if (mkdir(path_of("ringside-1"), 0700) == -1 || mkdir(path_of("ringside-2"), 0700) == -1)
		abort();
	for (size_t i = 0; i < ARRAY_LENGTH(regions); i++)
		write_file(regions[i], &magic, sizeof(magic));
	write_file("g.regions", &magic, sizeof(magic));
	write_file("region", &magic, sizeof(magic));
	write_file("short.region", &magic, sizeof(magic) - 1);
	write_file("ringside-2/.hidden", &magic, sizeof(magic));
	if (symlink("f.region", path_of("link.region")) == -1)
		abort();
}

enum {
	OPENED = 16,	  /* what opening costs; a name costs 1 */
	TOP_NAMES = 8,	  /* two directories, f, .region, g, region, short and link */
	DOTS_AND_END = 3, /* ".", "..", and none left */
};

/* In steps of this effort; the caller frees it. */
static struct region_search *search_in(const char *path, uint64_t step, size_t owner_files)
{
	const struct region_search_limits limits = { .owner_files = owner_files };
	struct region_search *search;
	bool is_over = false;

	if (region_search_new(&search, path, false, &limits) != OK)
		abort();
	while (!is_over)
		if (region_search_step(search, step, &is_over) != OK)
			abort();
	return search;
}

/* Names below the directory, in their order. */
static bool has_names(const struct region_search *search, const char *wanted)
{
	const struct region_places *places = region_search_places(search);
	char text[1024] = "";

	for (size_t i = 0; i < places->count; i++)
		text_append(text, sizeof(text), "%s ",
			    places->list[i].path + strlen(directory) + 1);
	if (strcmp(text, wanted) != 0)
		printf("# %s\n", text);
	return strcmp(text, wanted) == 0;
}

static const char all[] = ".region f.region ringside-1/a.region ringside-1/b ringside-1/c "
			  "ringside-2/d ringside-2/e ";

static void everything_in_any_steps(void)
{
	static const uint64_t steps[] = { UINT64_MAX, UINT64_MAX - 1, 1000, 17, 16, 1 };
	const uint64_t top = TOP_NAMES + DOTS_AND_END;
	const uint64_t below = 2 * (OPENED + DOTS_AND_END) + 5 * (OPENED + 1) + 1;

	for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
		struct region_search *search = search_in(directory, steps[i], 0);
		const struct region_places *places = region_search_places(search);

		EXPECT(has_names(search, all));
		EXPECT_THAT("what does not begin as a region is counted", places->foreign == 1);
		EXPECT_EQUAL(places->unreadable, 0);
		EXPECT_THAT("all of one user", places->owner_count == 1 &&
						       places->owners[0].uid == geteuid() &&
						       places->owners[0].directories_left_out == 0);
		/* f, .region, short and the link are tried. */
		EXPECT_EQUAL(region_search_effort(search), top + below + top + 4 * OPENED);
		region_search_free(search);
	}
}

static void what_a_user_may_have(void)
{
	for (size_t most = 1; most <= 8; most++) {
		struct region_search *search = search_in(directory, UINT64_MAX, most);
		const struct region_places *places = region_search_places(search);

		EXPECT_EQUAL(places->count, most < 7 ? most : 7);
		EXPECT_EQUAL(places->owners[0].directories_left_out > 0, most < 7);
		if (most == 1)
			EXPECT_THAT("both directories",
				    places->owners[0].directories_left_out == 2);
		region_search_free(search);
	}
}

static void a_step_does_no_more_than_it_may(void)
{
	const struct region_search_limits limits = { 0 };
	struct region_search *search;
	bool is_over = true;

	EXPECT_EQUAL(region_search_new(&search, directory, false, &limits), OK);
	EXPECT(region_search_step(search, 0, &is_over) == OK && !is_over &&
	       region_search_effort(search) == 0);
	for (uint64_t effort = 1; effort <= 3; effort++) {
		uint64_t before = region_search_effort(search);

		EXPECT_EQUAL(region_search_step(search, effort, &is_over), OK);
		EXPECT(!is_over && region_search_effort(search) >= before + effort &&
		       region_search_effort(search) <= before + effort + OPENED);
	}
	region_search_free(search);
	region_search_free(NULL);
}

static void directories_that_are_none(void)
{
	const struct region_search_limits limits = { 0 };
	static char too_long[PATH_MAX + 1];
	struct region_search *search;
	static const char *const none[] = { "nowhere", "f.region" };

	for (size_t i = 0; i < ARRAY_LENGTH(none); i++) {
		search = search_in(path_of(none[i]), UINT64_MAX, 0);
		EXPECT(region_search_places(search)->count == 0 &&
		       region_search_places(search)->unreadable == 0);
		region_search_free(search);
	}
	memset(too_long, 'x', PATH_MAX);
	errno = 0;
	EXPECT(region_search_new(&search, too_long, false, &limits) == ERR_SYSTEM &&
	       errno == ENAMETOOLONG);
	region_search_free(search);
	too_long[PATH_MAX - 1] = '\0';
	EXPECT_THAT("a name that is too long for the system is no empty place",
		    region_search_new(&search, too_long, false, &limits) == ERR_SYSTEM &&
			    errno == ENAMETOOLONG);
	region_search_free(search);
}

int main(void)
{
	text_copy(directory, sizeof(directory), scratch_make());
	make_files();
	everything_in_any_steps();
	what_a_user_may_have();
	a_step_does_no_more_than_it_may();
	directories_that_are_none();
	return tap_done();
}
