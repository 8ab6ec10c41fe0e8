/* Names of jobs that show their owner: what looks like one is one. */
#include "common/owned_name.h"

#include "common/attributes.h"
#include "tests/tap.h"

static void test_taken(void)
{
	static const struct {
		const char *name;
		bool is_taken;
	} cases[] = {
		{ "llm", false },
		{ "llm (uid 1000)", false },
		{ "llm (uid 2000)", true },
		{ "llm (uid 2000) ", true },
		{ "llm\xc2\xa0(uid 2000)", true },
		{ "llm \xef\xbc\x88uid 2000\xef\xbc\x89", true },
		{ "llm [UID 2000]", true },
		{ "llm (uid 2000) (uid 1000)", false },
		{ "uid", false },
		{ "uid 7", true },
		{ "fluid2", false },
		{ "druid (v2)", false },
		{ "a uid without a number", false },
	};
	char own[200];
	size_t length;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		EXPECT_THAT(cases[i].name,
			    owned_name_is_taken(cases[i].name, 1000) == cases[i].is_taken);
		EXPECT_THAT("of a user that is not known nothing is taken",
			    !owned_name_is_taken(cases[i].name, -1));
		owned_name_make(own, sizeof(own), cases[i].name, 1000);
		EXPECT_THAT("with its owner it is nobody else's", !owned_name_is_taken(own, 1000));
		EXPECT_THAT("and found by both names",
			    owned_name_uid(cases[i].name, &length) == 1000 ||
				    owned_name_is(cases[i].name, 1000, own));
	}
}

int main(void)
{
	test_taken();
	return tap_done();
}
