#include "format/region_read.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static const char text[] = "host=a=b\n=nobody\nno equals\nrank=7\nrank=8\nempty=\nbad=12x\n"
			   "color=\033[31m\nlabel.x=1\nlast=end";

/* Without a terminator after it, so that a sanitizer catches reads past the end. */
static char *exact_copy(void)
{
	char *copy = malloc(sizeof(text) - 1);

	if (copy == NULL)
		abort();
	memcpy(copy, text, sizeof(text) - 1);
	return copy;
}

int main(void)
{
	char *info = exact_copy();
	size_t bytes = sizeof(text) - 1, at = 0, lines = 0;
	char key[8], value[16];

	EXPECT(info_get(info, bytes, "host", value, sizeof(value)) && strcmp(value, "a=b") == 0);
	EXPECT(info_get(info, bytes, "last", value, sizeof(value)) && strcmp(value, "end") == 0);
	EXPECT(info_get(info, bytes, "last", value, 3) && strcmp(value, "en") == 0);
	EXPECT(info_get(info, bytes, "empty", value, sizeof(value)) && value[0] == '\0');
	EXPECT(!info_get(info, bytes, "hos", value, sizeof(value)) && value[0] == '\0');
	EXPECT(!info_get(info, bytes, "hostx", value, sizeof(value)));
	EXPECT(!info_get(info, bytes, "no equals", value, sizeof(value)));
	EXPECT(!info_get(info, 0, "host", value, sizeof(value)));
	EXPECT(!info_get(NULL, 0, "host", value, sizeof(value)));
	EXPECT_THAT("control bytes are harmless",
		    info_get(info, bytes, "color", value, sizeof(value)) &&
			    strcmp(value, "?[31m") == 0);
	EXPECT_THAT("a path stays as it is",
		    info_get_path(info, bytes, "color", value, sizeof(value)) &&
			    strcmp(value, "\033[31m") == 0);
	EXPECT_THAT("or is none: a part of it is another path",
		    !info_get_path(info, bytes, "last", value, 3) && value[0] == '\0');
	EXPECT(!info_get_path(info, bytes, "none", value, sizeof(value)));
	EXPECT_THAT("the first one counts", info_get_number(info, bytes, "rank", -1) == 7);
	EXPECT_EQUAL(info_get_number(info, bytes, "bad", -1), -1);
	EXPECT_EQUAL(info_get_number(info, bytes, "empty", -2), -2);
	EXPECT_EQUAL(info_get_number(info, bytes, "none", -3), -3);
	while (info_next(info, bytes, &at, key, sizeof(key), value, sizeof(value)))
		lines++;
	EXPECT_THAT("lines without a key or '=' are skipped", lines == 8);
	EXPECT_THAT("a long key is cut", strcmp(key, "last") == 0 && strcmp(value, "end") == 0);
	free(info);
	return tap_done();
}
